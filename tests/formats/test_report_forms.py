"""Tests of the forms in which tracks take reports: BioGen's are read, each is written, and what is lost is said."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from rubric_measures.corpora.converting import convert
from rubric_measures.formats import detect_format
from rubric_measures.formats.answers import read_answers
from rubric_measures.formats.reports import read_reports

SUBMISSION = {
    "run_name": "nlm-1",
    "team_id": "nlm",
    "contact_email": "a@b.org",
    "results": [
        {
            "topic_id": "131",
            "answer": "Aspirin thins the blood [11, 12]. It may help Dr. Smith [13,11]. [16] It is cheap [sic].",
            "references": ["11", "12", "13"],
            "note": "kept",
        },
        {"topic_id": "132", "answer": "Nobody knows.", "references": []},
    ],
}
TASK_A = [
    {
        "metadata": {"team_id": "t", "run_id": "t-a", "qa_id": "116", "question": "Why?"},
        "answer": [
            {
                "text": "It thins the blood.",
                "existing_supported_citations": None,
                "supported_citations": [21, "22"],
                "contradicted_citations": [23],
            }
        ],
    }
]
TASK_B = [
    {"metadata": {"team_id": "t", "run_id": "t-b", "topic_id": 181}, "responses": [{"text": "A.", "citations": [31]}]},
    {
        "metadata": {"team_id": "t", "run_id": "t-b", "topic_id": 182},
        "responses": [{"text": "B.", "citations": ["32"]}],
    },
]
RAG_2026 = {
    "metadata": {"team_id": "t", "run_id": "r", "narrative_id": "rag2026-0", "narrative": "What?", "run_desc": "d"},
    "references": ["shard_1_1", "shard_1_2", "shard_1_3"],
    "answer": [{"text": "# Head", "citations": []}, {"text": "Both.", "citations": ["shard_1_2", 0, 9]}],
}
RAGTIME = {
    "metadata": {"team_id": "t", "run_id": "r", "topic_id": "300"},
    "responses": [{"text": "Later first.", "citations": {"u_1": 0.2, "u_2": 0.9}}],
}


def _file(folder: Path, content: Any, indent: int | None = None, name: str = "run.json") -> Path:
    path = folder / name
    path.write_text(json.dumps(content, indent=indent), encoding="utf-8")
    return path


@pytest.mark.parametrize("indent", [None, 1])
def test_one_object_of_biogen_2024_is_read_with_the_ids_of_its_text(
    tmp_path: Path, indent: int | None, caplog: pytest.LogCaptureFixture
) -> None:
    path = _file(tmp_path, SUBMISSION, indent)
    assert detect_format(path) == "reports"
    with caplog.at_level(logging.WARNING, logger="rubric_measures"):
        first, second = read_answers(path)
    assert (first.query_id, first.run_id) == ("131", "nlm-1")
    assert first.sentences == ("Aspirin thins the blood.", "It may help Dr. Smith.", "It is cheap [sic].")
    # 16 stands behind the end of its sentence, which the track discards.
    assert first.citations == (("11", "12"), ("13", "11"), ())
    assert "1 citation stands behind the end of a sentence" in caplog.text
    assert (second.sentences, second.citations) == (("Nobody knows.",), ((),))


@pytest.mark.parametrize("indent", [None, 2])
def test_lists_of_biogen_2025_are_read_and_ids_may_be_numbers(tmp_path: Path, indent: int | None) -> None:
    path = _file(tmp_path, TASK_B, indent)
    assert detect_format(path) == "reports"
    assert [(answer.query_id, answer.citations) for answer in read_answers(path)] == [
        ("181", (("31",),)),
        ("182", (("32",),)),
    ]
    assert [report.lost_citations for report in read_reports(path)] == [0, 0]


def test_task_a_keeps_what_contradicts_and_answers_say_that_they_do_not(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = _file(tmp_path, TASK_A)
    convert([path], tmp_path / "lines.jsonl", to="reports")
    (line,) = (tmp_path / "lines.jsonl").read_text().splitlines()
    assert json.loads(line) == TASK_A[0]
    with caplog.at_level(logging.WARNING, logger="rubric_measures"):
        (answer,) = read_answers(path)
    assert (answer.query_id, answer.citations) == ("116", (("21", "22"),))
    assert "1 contradicted_citations left out" in caplog.text


def test_positions_ids_and_scores_become_each_other(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def made(content: Any, form: str) -> dict[str, Any]:
        convert([_file(tmp_path, content)], tmp_path / "out.json", to=form)
        found: dict[str, Any] = json.loads((tmp_path / "out.json").read_text())
        return found

    with caplog.at_level(logging.WARNING, logger="rubric_measures"):
        ids = made(RAG_2026, "reports:ids")
    assert ids["metadata"]["topic_id"] == "rag2026-0"
    assert ids["responses"][1] == {"text": "Both.", "citations": ["shard_1_2", "shard_1_1"]}
    assert ids["references"] == ["shard_1_2", "shard_1_1"]
    # The position 9, and shard_1_3.
    assert "1 citation that is repeated, or positions" in caplog.text
    assert "1 reference that no sentence cites" in caplog.text

    old = made(RAG_2026, "reports:rag24")
    assert (old["topic_id"], old["topic"], old["response_length"]) == ("rag2026-0", "What?", 3)
    assert old["answer"][1]["citations"] == [1, 0]

    caplog.clear()
    with caplog.at_level(logging.WARNING, logger="rubric_measures"):
        positions = made(RAGTIME, "reports:rag")
    assert positions["references"] == ["u_2", "u_1"]
    assert positions["answer"] == [{"text": "Later first.", "citations": [0, 1]}]
    assert "2 scores of citations" in caplog.text
