"""RAGElo's graders on the common path: aspects of answers as rubric items, and document labels as qrels."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import rubric_measures
from rubric_measures.base.errors import InputError, UnknownNameError
from rubric_measures.cli import main
from rubric_measures.grading.asking import Asking
from rubric_measures.grading.generation import aspect_bank
from rubric_measures.grading.grader import GradingEngine
from rubric_measures.models.lexical import ScriptedBackend, ScriptedRule
from rubric_measures.models.running import LocalRunner
from rubric_measures.records.models import GradedPassage, PassageData, QueryPassages
from rubric_measures.types.entities import RubricItem, TestBank, make_item_id

EXAMPLE = Path(__file__).parents[2] / "resources" / "example"
PROMPT = "ragelo.answer_pointwise"
GRADES = {"relevance": 2, "accuracy": 1, "completeness": 0, "precision": 2}
REPLY = 'It means well.\n{"relevance": 2, "accuracy": 1, "completeness": 0, "precision": 2}'
QUERIES = {"q1": "What is ice?"}


def grade(reply: str, contains: str = "", **settings: object) -> dict[str, object]:
    backend = ScriptedBackend([ScriptedRule(reply, contains=(contains,))])
    passage = GradedPassage(doc_id="x/q1/1", text="Ice is frozen.", paragraph_data=PassageData())
    grader = GradingEngine(LocalRunner(backend), (PROMPT,), Asking(**settings))  # type: ignore[arg-type]
    (group,) = grader.grade_records([QueryPassages("q1", [passage])], aspect_bank(QUERIES))
    (entry,) = group.passages[0].exam_grades or ()
    return entry.as_json()


def test_each_aspect_is_a_grade_of_its_own_item() -> None:
    entry = grade(REPLY, "Ice is frozen.")
    assert entry["self_ratings"] == [
        {"question_id": make_item_id("q1", name), "self_rating": value} for name, value in GRADES.items()
    ]
    assert all(
        answer == [make_item_id("q1", name), REPLY] for answer, name in zip(entry["answers"], GRADES, strict=True)
    )  # type: ignore[call-overload]


def test_domain_and_documents_are_settings_and_stand_in_the_signature() -> None:
    plain = grade(REPLY, "questions about a variety of topics.")
    domain = grade(REPLY, "questions about water.", prompt_field={"domain": "water"})
    shown = grade(REPLY, "[DOCUMENTS RETRIEVED]\n[d1] Water.\n[User", document_texts={"q1": "[d1] Water."})
    signatures = {entry["provenance"]["signature"] for entry in (plain, domain, shown)}  # type: ignore[index]
    assert len(signatures) == 3
    with pytest.raises(UnknownNameError, match="unknown prompt field 'colour': known: domain"):
        grade(REPLY, prompt_field={"colour": "red"})


@pytest.mark.parametrize("reply", ["Two of two.", '{"relevance": 2, "accuracy": 1, "completeness": 0}'])
def test_a_reply_without_all_aspects_grades_none(reply: str) -> None:
    entry = grade(reply, retries=0)
    assert "self_ratings" not in entry or entry["self_ratings"] == []
    assert set(entry["item_status"].values()) == {"unparsed"}  # type: ignore[attr-defined]


def test_a_bank_without_aspects_is_refused() -> None:
    bank = TestBank.from_items([RubricItem("q1/1", "q1", "What is cold?")], QUERIES)
    with pytest.raises(InputError, match="the test bank has none of them"):
        GradingEngine(LocalRunner(ScriptedBackend([])), (PROMPT,)).makers(bank)
    with pytest.raises(InputError, match="does not grade aspects"):
        aspect_bank(QUERIES, "Thomas")


def test_answers_to_a_leaderboard_of_aspects(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answers = [str(path) for path in sorted((EXAMPLE / "answers").glob("*.jsonl"))]
    assert main(["pool", *answers, "--max-words", "10000", "-o", str(tmp_path / "answers.jsonl.gz")]) == 0
    replies = tmp_path / "replies.jsonl"
    rules = [{"contains": "forest in autumn", "reply": REPLY.replace("2", "1")}, {"reply": REPLY}]
    replies.write_text("".join(json.dumps(rule) + "\n" for rule in rules))
    graded = str(tmp_path / "graded.jsonl.gz")
    asking = Asking(prompt_field={"domain": "everyday questions"})
    done = rubric_measures.grade(
        tmp_path / "answers.jsonl.gz", query_texts=EXAMPLE / "queries.tsv", documents=EXAMPLE,
        model=f"scripted:{replies}", prompt=PROMPT, asking=asking, output=graded,
    )  # fmt: skip
    assert done.report.is_complete
    capsys.readouterr()
    assert main(["leaderboard", graded, "-m", "RubricCover(rel=2)@20", "--format", "tsv"]) == 0
    rows = dict(line.split("\t")[:2] for line in capsys.readouterr().out.splitlines())
    # thorough: two of four aspects have a 2, for each query; fluent-but-empty: none in q01, nothing at all in q08.
    assert rows["thorough"] == "0.5000"
    assert float(rows["fluent-but-empty"]) == pytest.approx(0.5 * 7 / 9, abs=1e-4)
