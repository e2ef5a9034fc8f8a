"""Support judgments of RAGDoll: with the answers they are labelled answers, and back; what does not fit together."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rubric_measures.cli import main
from rubric_measures.formats import detect_format
from rubric_measures.formats.leaderboards import read_leaderboard
from rubric_measures.formats.support import read_support_labels
from tests.example_records import write_lines as write

# The sentences of the one answer, and what each cites; the last one cites nothing.
SENTENCES = [("Ada wrote it.", ["d1", "d2"]), ("It was 1843.", ["d3"]), ("So it is.", ["d1"]), ("Thanks.", [])]


def task(sentence: int, citation: int, label: str | None, **changes: Any) -> dict[str, Any]:
    text, cited = SENTENCES[sentence]
    metadata = {"topic_id": "t1", "run_id": "x", "sentence_index": sentence, "citation_index": citation}
    return {
        "task_id": f"x:t1:s{sentence}:c{citation}", "statement": text, "citation": "…", "support_label": label,
        "raw_output": label or "", "status": "completed" if label else "failed", "error": None if label else "timeout",
        "metadata": {**metadata, "docid": cited[citation]}, **changes,
    }  # fmt: skip


TASKS = [task(0, 0, "PS"), task(0, 1, "FS"), task(1, 0, "NS"), task(2, 0, None)]


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    answer = [{"text": text, "citations": cited} for text, cited in SENTENCES]
    # As its own files have answers.
    text = " ".join(text for text, _ in SENTENCES)
    line = {"run_id": "x", "qid": "t1", "query": "Who?", "answer_text": text, "answer": answer, "response_length": 9}
    write(tmp_path / "answers.jsonl", [line])
    write(tmp_path / "tasks.jsonl", TASKS)
    return tmp_path


def test_judgments_and_answers_are_labels_that_score(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert detect_format("tasks.jsonl") == "ragdoll:support"
    convert = ["convert", "tasks.jsonl", "--answers", "answers.jsonl"]
    assert main([*convert, "--to", "support-labels", "-o", "labels.jsonl"]) == 0
    assert "1 support judgment failed; their citations have no label (-1)" in capsys.readouterr().err
    [answer] = read_support_labels("labels.jsonl")
    assert [[one.support for one in sentence.citations] for sentence in answer.sentences] == [
        ["1", "2"], ["0"], ["-1"], [],
    ]  # fmt: skip
    measures = ["-m", "SupportPrecision", "SupportRecall", "SupportPrecision(citations='all')"]
    assert main(["leaderboard", "labels.jsonl", *measures, "--no-overall", "--output", "board.tsv"]) in (0, 1)
    board = read_leaderboard("board.tsv")
    # First citations: ½, 0 and one that is out; one sentence cites nothing: P = ½/2, R = ½/3. All: (¾ + 0) / 2.
    found = [board.column(name)["x"] for name in board.measures]
    assert found == pytest.approx([0.25, 1 / 6, 0.375], abs=5e-5)
    # Straight to records, and from these back to judgments: those that have a label.
    assert main([*convert, "--to", "records", "-o", "records.jsonl.gz"]) == 0
    assert main(["convert", "records.jsonl.gz", "--to", "ragdoll:support", "-o", "again.jsonl"]) == 0
    assert "1 citation without a label left out" in capsys.readouterr().err
    again = [json.loads(line) for line in Path("again.jsonl").read_text().splitlines()]
    names = ("task_id", "statement", "support_label", "status", "metadata")
    assert [{name: one[name] for name in names} for one in again] == [
        {name: one[name] for name in names} for one in TASKS[:3]
    ]
    assert again[1]["raw_output"] == "Full Support"


@pytest.mark.parametrize(
    ("tasks", "message"),
    [
        ([task(0, 0, "FS", statement="It was 1843.")], "sentence 0: the answers have no such sentence (--answers)"),
        ([task(0, 0, "FS") | {"metadata": task(0, 0, "FS")["metadata"] | {"docid": "d9"}}], "does not cite 'd9'"),
        ([task(0, 0, "FS") | {"metadata": task(0, 0, "FS")["metadata"] | {"run_id": "y"}}], "no such sentence"),
        ([task(0, 0, "FS") | {"metadata": task(0, 0, "FS")["metadata"] | {"sentence_index": 4}}], "no such sentence"),
        ([task(0, 0, "FS", status="failed")], "expected a support_label exactly when the status is completed"),
        ([task(0, 0, "XS")], "tasks.jsonl:1: support_label: "),
        ([task(0, 0, "FS"), task(0, 1, "NS") | {"metadata": task(0, 1, "NS")["metadata"] | {"docid": "d1"}}],
         "document 'd1' has two labels; keep one"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_one_line(
    tasks: list[dict[str, Any]], message: str, files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(files / "tasks.jsonl", tasks)
    assert main(["convert", "tasks.jsonl", "--answers", "answers.jsonl", "--to", "records", "-o", "r.jsonl.gz"]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert message in line and not (files / "r.jsonl.gz").exists()


def test_judgments_alone_are_no_answers_and_no_queries(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["convert", "tasks.jsonl", "--to", "support-labels", "-o", "labels.jsonl"]) == 2
    assert "name the answers that they are about (--answers)" in capsys.readouterr().err
    assert main(["convert", "tasks.jsonl", "--to", "queries", "-o", "q.json"]) == 2
    assert "ragdoll:support cannot become queries; it can become: " in capsys.readouterr().err
    assert main(["convert", "answers.jsonl", "--answers", "answers.jsonl", "--to", "answers", "-o", "a.jsonl"]) == 2
    assert "answers would have no effect here" in capsys.readouterr().err
    assert main(["leaderboard", "tasks.jsonl"]) == 2
    said = "holds no grades (its format is ragdoll:support, which can be converted to records, support-labels, csv "
    said += "with the answers that they are about)"
    assert f"tasks.jsonl:1: {said}; accepted" in capsys.readouterr().err
