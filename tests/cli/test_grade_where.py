"""`grade --where` asks a model about some cells of graded records; `combine --by prefer` takes what it says of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import rubric_measures
from rubric_measures.cli import main
from rubric_measures.records.models import grade_of_items, load_graded
from tests.fault_server import Running, running

# passage -> item -> what the first model says; the second item of d4 cannot be read.
FIRST = {
    "d1": {"leaf": "5", "heat": "2"},
    "d2": {"leaf": "3", "heat": "0"},
    "d3": {"leaf": "1", "heat": "4"},
    "d4": {"leaf": "2", "heat": "I would rather not say."},
}
ALL = [(doc_id, item) for doc_id, row in FIRST.items() for item in row]


def rules(path: Path, replies: dict[tuple[str, str], str]) -> str:
    """What a model says to the prompts that hold the passage and the item; anything else fails."""
    lines = [
        {"contains": [f"{doc_id} tells", f"{item} what"], "reply": said} for (doc_id, item), said in replies.items()
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return str(path)


@pytest.fixture
def bank(tmp_path: Path) -> str:
    items = [{"query_id": "q1", "question_id": f"q1/{name}", "question_text": f"{name} what"} for name in FIRST["d1"]]
    entry = {"query_id": "q1", "query_text": "tea", "items": items}
    (tmp_path / "bank.jsonl").write_text(json.dumps(entry) + "\n")
    return str(tmp_path / "bank.jsonl")


@pytest.fixture
def first(tmp_path: Path, bank: str, capsys: pytest.CaptureFixture[str]) -> str:
    """The file that the first model graded."""
    passages = [{"paragraph_id": doc_id, "text": f"{doc_id} tells of tea."} for doc_id in FIRST]
    (tmp_path / "passages.jsonl").write_text(json.dumps(["q1", passages]) + "\n")
    replies = {(doc_id, item): said for doc_id, row in FIRST.items() for item, said in row.items()}
    model = f"scripted:{rules(tmp_path / 'first-replies.jsonl', replies)}"
    out = str(tmp_path / "first.jsonl")
    assert main(["grade", str(tmp_path / "passages.jsonl"), "--bank", bank, "--model", model, "-o", out]) == 1
    capsys.readouterr()
    return out


def grades(path: str, llm: str) -> dict[tuple[str, str], float | None]:
    """(passage, item) -> grade of what a model was asked about; None where it failed."""
    return {
        (passage.doc_id, item_id.rpartition("/")[2]): grade_of_items(entry).get(item_id)
        for group in load_graded(path)
        for passage in group.passages
        for entry in passage.exam_grades or ()
        if entry.llm == llm
        for item_id, _ in entry.answers
    }


def llms(path: str) -> list[str]:
    """The models, in the order of their grade sets."""
    found = [
        entry.llm for group in load_graded(path) for passage in group.passages for entry in passage.exam_grades or ()
    ]
    return list(dict.fromkeys(found))


def asked_of(server: Running) -> list[tuple[str, str]]:
    """The cells that the server was asked about, sorted."""
    shown = server.stats()["order"]
    return sorted(
        next(cell for cell in ALL if f"{cell[0]} tells" in text and f"{cell[1]} what" in text) for text in shown
    )


def test_a_day_with_two_models(first: str, bank: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("aiohttp")
    replies = rules(tmp_path / "server.jsonl", {("d1", "heat"): "4", ("d2", "leaf"): "0", ("d4", "leaf"): "hm"})
    out, both = str(tmp_path / "second.jsonl"), str(tmp_path / "both.jsonl")
    [one] = llms(first)
    with running(replies=replies) as server:
        command = ["grade", first, "--bank", bank, "--model", "openai:m", "--base-url", server.url, "--retries", "0"]
        command += ["--where", "grade between 2 and 3", "-o", out]
        # A plan asks nothing and writes nothing.
        assert main([*command, "--dry-run"]) == 0
        planned = capsys.readouterr()
        assert planned.out.splitlines()[1].split("\t")[1:4] == ["3", "0", "0"]
        assert "grade between 2 and 3: 3 of 8 cells" in planned.err
        assert server.stats()["calls"] == 0 and not Path(out).exists()
        assert main(command) == 1
        assert "grade between 2 and 3: 3 of 8 cells" in capsys.readouterr().err
        cells = [("d1", "heat"), ("d2", "leaf"), ("d4", "leaf")]
        assert asked_of(server) == cells
        # The same again: every readable reply is in the cache.
        calls = server.stats()["calls"]
        before = Path(out).read_bytes()
        assert main(command) == 1
        assert server.stats()["calls"] == calls and Path(out).read_bytes() == before
    capsys.readouterr()
    assert llms(out) == [one, "m"]
    assert grades(out, one) == grades(first, one)
    assert grades(out, "m") == {("d1", "heat"): 4, ("d2", "leaf"): 0, ("d4", "leaf"): None}
    manifest = json.loads(Path(f"{out}.manifest.json").read_text(encoding="utf-8"))
    assert (manifest["where"]["condition"], manifest["where"]["cells"]) == ("grade between 2 and 3", 3)
    # Where the second one has no grade, the first one's counts; where both have none, there is none.
    assert main(["combine", out, "--by", "prefer", "--grader", "m", "--grader", one, "-o", both]) == 0
    assert grades(both, "panel:prefer") == {
        **grades(first, one), ("d1", "heat"): 4, ("d2", "leaf"): 0, ("d4", "leaf"): 2,
    }  # fmt: skip
    assert grades(both, "panel:prefer")["d4", "heat"] is None
    assert main(["combine", out, "--by", "prefer", "--grader", one, "--grader", "m", "-o", both]) == 0
    assert grades(both, "panel:prefer") == grades(first, one)
    assert main(["combine", out, "--by", "prefer", "--grader", "m", "--grader", one, "-o", both]) == 0
    (tmp_path / "a.run").write_text("".join(f"q1 Q0 d{rank} {rank} {9 - rank} a\n" for rank in range(1, 5)))
    capsys.readouterr()
    board = ["leaderboard", both, str(tmp_path / "a.run"), "--bank", bank, "-m", "RubricCover@1", "--no-overall"]
    covered = {}
    for llm in (one, "panel:prefer"):
        assert main([*board, "--grader", llm, "--format", "tsv"]) == 0
        covered[llm] = capsys.readouterr().out.splitlines()[1].split("\t")[1]
    # Of the first passage one item of two is covered by the first model, and both by the two together.
    assert covered == {one: "0.5000", "panel:prefer": "1.0000"}


@pytest.mark.parametrize(
    ("where", "cells"),
    [
        ("grade between 2 and 3", ["d1 heat", "d2 leaf", "d4 leaf"]),
        ("grade < 2", ["d2 heat", "d3 leaf"]),
        ("grade <= 2", ["d1 heat", "d2 heat", "d3 leaf", "d4 leaf"]),
        ("grade > 4", ["d1 leaf"]),
        ("grade>=3.5", ["d1 leaf", "d3 heat"]),
        ("grade = 0", ["d2 heat"]),
        ("grade failed", ["d4 heat"]),
    ],
)
def test_conditions(where: str, cells: list[str], first: str, bank: str, tmp_path: Path) -> None:
    model = f"scripted:{rules(tmp_path / 'second-replies.jsonl', dict.fromkeys(ALL, '5'))}"
    made = rubric_measures.regrade(first, bank, model=model, where=where, output=tmp_path / "out.jsonl")
    second = llms(made.path)[-1]
    assert sorted(" ".join(cell) for cell in grades(made.path, second)) == cells
    assert made.report.is_complete and made.report.by_status.total() == len(cells)


def test_labels_of_passages(tmp_path: Path, bank: str, capsys: pytest.CaptureFixture[str]) -> None:
    passages = [{"paragraph_id": doc_id, "text": f"{doc_id} tells of tea."} for doc_id in ("d1", "d2")]
    (tmp_path / "passages.jsonl").write_text(json.dumps(["q1", passages]) + "\n")
    models = []
    for name, replies in (("one", {"d1": "1", "d2": "2"}), ("two", {"d1": "0", "d2": "0"})):
        lines = [{"contains": f"{doc_id} tells", "reply": said} for doc_id, said in replies.items()]
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        models.append(f"scripted:{tmp_path / f'{name}.jsonl'}")
    out, labels = str(tmp_path / "out.jsonl"), ["--bank", bank, "--prompt", "Thomas", "-o"]
    assert main(["grade", str(tmp_path / "passages.jsonl"), *labels, out, "--model", models[0]]) == 0
    # Grades of items beside the labels are not meant.
    assert main(["grade", out, "--bank", bank, "--model", "lexical", "-o", out]) == 0
    capsys.readouterr()
    assert main(["grade", out, *labels, out, "--model", models[1], "--where", "grade = 1"]) == 0
    assert "grade = 1: 1 of 2 cells" in capsys.readouterr().err
    found = [[label.label for label in passage.grades or ()] for passage in load_graded(out)[0].passages]
    assert found == [[1, 0], [2]]
    both = ["--prompt", "NuggetSelfRatedPrompt", "--where", "grade = 1"]
    nuggets = {"query_id": "q1", "items": [{"query_id": "q1", "nugget_id": "q1/n", "nugget_text": "leaf"}]}
    Path(bank).write_text(json.dumps(nuggets) + "\n")
    assert main(["grade", out, *labels, out, "--model", models[1], *both]) == 2
    said = capsys.readouterr().err
    assert "some of the prompts label passages and others grade items" in said and said.count("\n") == 1


SECOND = ["--model", "lexical", "--where"]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (
            ["--model", "lexical", "--where", "uncertain"],
            "'uncertain': expected grade between 2 and 3, grade < 3, grade <= 3, grade > 3, grade >= 3, grade = 3, or "
            "grade failed (--where)",
        ),
        ([*SECOND, "grade between 3 and 1"], "'grade between 3 and 1': name the lower grade first (--where)"),
        ([*SECOND, "grade == 3"], "'grade == 3': expected grade between 2 and 3"),
        ([*SECOND, "grade < three"], "'grade < three': expected grade between 2 and 3"),
        ([*SECOND, "grade < 3", "--grader", "X"], "holds no grades for model=X; there are grades of: model="),
        ([*SECOND, "grade < 3", "--only-changed"], "leave it out (--only-changed, --where)"),
        (
            ["--model", "lexical", "--grader", "X"],
            "grader would have no effect where all items are graded; leave it out (--grader, --where)",
        ),
        ([*SECOND, "grade < 3", "--grader", "kind=direct"], "grades items, and the condition is about labels"),
    ],
)
def test_what_is_no_choice_of_cells(
    more: list[str], said: str, first: str, bank: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.jsonl"
    assert main(["grade", first, "--bank", bank, "-o", str(out), *more]) == 2
    errors = capsys.readouterr().err
    assert said in errors and errors.count("\n") == 1
    assert not out.exists() and not Path(f"{out}.cache.sqlite").exists()
