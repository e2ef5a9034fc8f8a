"""`grade --first MODEL --then MODEL --if …`: the second model is asked about what the first one leaves in doubt."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rubric_measures.cli import main
from rubric_measures.records.files import load_graded
from rubric_measures.records.models import grade_of_items


def script(path: Path, **replies: str) -> str:
    """A model that replies by what the prompt holds; what it does not know it cannot say."""
    rules = [{"contains": said.split("|"), "reply": reply} for said, reply in replies.items()]
    path.write_text("".join(json.dumps(rule) + "\n" for rule in rules), encoding="utf-8")
    return f"scripted:{path}"


@pytest.fixture
def inputs(tmp_path: Path) -> list[str]:
    passages = [{"paragraph_id": doc_id, "text": f"{doc_id} tells of tea."} for doc_id in ("alpha", "beta")]
    (tmp_path / "passages.jsonl").write_text(json.dumps(["q1", passages]) + "\n")
    items = [
        {"query_id": "q1", "question_id": f"q1/{name}", "question_text": f"{name} what"} for name in ("leaf", "heat")
    ]
    bank = {"query_id": "q1", "query_text": "tea", "items": items}
    (tmp_path / "bank.jsonl").write_text(json.dumps(bank) + "\n")
    return [str(tmp_path / "passages.jsonl"), "--bank", str(tmp_path / "bank.jsonl")]


def grades(path: Path, llm: str) -> dict[str, dict[str, float]]:
    return {
        passage.doc_id: {item.rpartition("/")[2]: grade for item, grade in grade_of_items(entry).items()}
        for passage in load_graded(str(path))[0].passages
        for entry in passage.exam_grades or ()
        if entry.llm == llm
    }


def llms(path: Path) -> list[str]:
    return [entry.llm for entry in load_graded(str(path))[0].passages[0].exam_grades or ()]


def test_the_second_model_is_asked_where_the_first_doubts(
    inputs: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = script(
        tmp_path / "first.jsonl",
        **{"alpha|leaf": "5", "alpha|heat": "2", "beta|leaf": "I would rather not say.", "beta|heat": "0"},
    )
    # It can answer nothing else: more calls would fail, and say so.
    second = script(tmp_path / "second.jsonl", **{"alpha|heat": "4", "beta|leaf": "1"})
    out = tmp_path / "out.jsonl"
    command = ["grade", *inputs, "--first", first, "--then", second, "--if", "between=1:3", "-o", str(out)]
    assert main(command) == 0
    said = capsys.readouterr().err
    assert "the cascade (between=1:3): 2 of 4 grades by the second model" in said
    one, two, together = llms(out)
    assert together == "panel:cascade"
    assert grades(out, one) == {"alpha": {"leaf": 5, "heat": 2}, "beta": {"heat": 0}}
    assert grades(out, two) == {"alpha": {"heat": 4}, "beta": {"leaf": 1}}
    assert grades(out, together) == {"alpha": {"leaf": 5, "heat": 4}, "beta": {"leaf": 1, "heat": 0}}
    paid = json.loads((tmp_path / "out.jsonl.manifest.json").read_text())["paid"]
    assert paid["failed"] == 0
    # Again: no call, the same bytes; and over its own output, where all grades are there.
    before = out.read_bytes()
    assert main(command) == 0
    assert out.read_bytes() == before
    assert "no calls" in capsys.readouterr().err
    assert main([*command[:1], str(out), *command[2:]]) == 0
    assert grades(out, together) == {"alpha": {"leaf": 5, "heat": 4}, "beta": {"leaf": 1, "heat": 0}}
    assert llms(out).count("panel:cascade") == 1


def test_a_cascade_that_never_doubts_asks_one_model(inputs: list[str], tmp_path: Path) -> None:
    first = script(tmp_path / "first.jsonl", tea="5")
    out = tmp_path / "out.jsonl"
    command = ["grade", *inputs, "--first", first, "--then", "lexical", "--if", "between=1:3", "-o", str(out)]
    # The lexical grader reads another prompt: then both are asked with that of each.
    assert main([*command, "--dry-run"]) == 0
    assert main(command) == 0
    assert len(llms(out)) == 2
    assert grades(out, "panel:cascade") == {key: {"leaf": 5, "heat": 5} for key in ("alpha", "beta")}


def test_direct_labels_and_lost_calls(inputs: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = script(tmp_path / "first.jsonl", alpha="1")
    second = script(tmp_path / "second.jsonl", tea="2")
    out = tmp_path / "out.jsonl"
    command = ["grade", *inputs, "--prompt", "Thomas", "--first", first, "--then", second, "--if", "between=1:1"]
    # The first model knows nothing of beta: that call is lost, the second one is not asked about it, and it is said.
    assert main([*command, "-o", str(out)]) == 1
    assert "the cascade has no grade of 1: 1 failed" in capsys.readouterr().err
    alpha, beta = load_graded(str(out))[0].passages
    assert [one.label for one in alpha.grades or ()] == [1, 2, 2]
    assert [(one.label, one.known_status) for one in beta.grades or ()] == [(None, "failed")] * 2


def test_draws_that_differ_are_doubt(inputs: list[str], tmp_path: Path) -> None:
    rules = [
        {"contains": ["alpha"], "reply": "5"},
        *({"contains": ["beta"], "replicate": n, "reply": str(n)} for n in range(3)),
    ]
    (tmp_path / "first.jsonl").write_text("".join(json.dumps(rule) + "\n" for rule in rules))
    second = script(tmp_path / "second.jsonl", beta="4")
    out = tmp_path / "out.jsonl"
    command = ["grade", *inputs, "--first", f"scripted:{tmp_path / 'first.jsonl'}", "--then", second, "-o", str(out)]
    assert main([*command, "--if", "uncertain=0.6", "--replicates", "3", "--temperature", "0.7"]) == 0
    assert grades(out, "panel:cascade") == {"alpha": {"leaf": 5, "heat": 5}, "beta": {"leaf": 4, "heat": 4}}


def test_grades_that_nobody_was_asked_for_stop_no_cascade(
    inputs: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    passages = [{"paragraph_id": doc_id, "text": text} for doc_id, text in (("alpha", "alpha"), ("none", " "))]
    Path(inputs[0]).write_text(json.dumps(["q1", passages]) + "\n")
    first, second = script(tmp_path / "first.jsonl", alpha="5"), script(tmp_path / "second.jsonl", alpha="1")
    out = tmp_path / "out.jsonl"
    command = ["grade", *inputs, "--first", first, "--then", second, "--if", "uncertain", "-o", str(out)]
    assert main([*command, "--replicates", "2", "--temperature", "0.7"]) == 0
    # The empty passage has the lowest grade of both, without a call.
    assert "2 of 4 first grades do not say how sure they are; the second grader is asked" in capsys.readouterr().err
    assert grades(out, "panel:cascade") == {"alpha": {"leaf": 5, "heat": 5}, "none": {"leaf": 0, "heat": 0}}
    # Without draws nothing says how sure the first model is, and the second one is not asked at all.
    out.unlink()
    assert main(command) == 2
    assert "the first grader does not say how sure its grades are" in capsys.readouterr().err
    assert not out.exists()


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (
            ["--then", "lexical"],
            "a cascade needs a second model, and when it is asked: name both or none (--then, --if)",
        ),
        (["--if", "uncertain"], "a cascade needs a second model"),
        (["--then", "FIRST", "--if", "between=1:3"], "both models are the same, with the same settings (--then)"),
        (["--then", "SECOND", "--if", "between=3:1"], "expected between=LOW:HIGH"),
        (["--then", "SECOND", "--if", "between=1:3", "--only-changed"], "a cascade grades everything"),
        (["--then-model-option", "a=1"], "there is no second model; leave its settings out"),
        (
            [
                "--then",
                "SECOND",
                "--if",
                "between=0:1",
                "--prompt",
                "QuestionCompleteConciseUnanswerablePromptWithChoices",
            ],
            "makes no grades of which a cascade could doubt (--prompt)",
        ),
    ],
)
def test_what_is_no_cascade_is_said_before_any_call(
    more: list[str], said: str, inputs: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    models = {"FIRST": script(tmp_path / "first.jsonl", tea="1"), "SECOND": script(tmp_path / "second.jsonl", tea="2")}
    out = tmp_path / "out.jsonl"
    command = ["grade", *inputs, "--first", models["FIRST"], "-o", str(out), *(models.get(word, word) for word in more)]
    assert main(command) == 2
    errors = capsys.readouterr().err
    assert said in errors
    assert errors.count("\n") == 1
    assert not out.exists()
    assert not Path(f"{out}.cache.sqlite").exists()
