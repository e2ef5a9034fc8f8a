"""Tests of reports and plain answer files: citations of all tracks, what is refused, grades, identity after writing."""

import json
import logging
from pathlib import Path

import pytest

from rubric_measures.base.errors import InputError
from rubric_measures.formats.answers import ANSWERS, read_answers
from rubric_measures.formats.reports import (
    Answer,
    answer_doc_id,
)

RAG = {
    "metadata": {"team_id": "t", "run_id": "rag", "narrative_id": 14, "type": "automatic"},
    "references": ["d1", "d2"],
    "answer": [{"text": "One.", "citations": [1, 0, 1]}, {"text": "Two.", "citations": [7]}],
}
RAG_2024 = {"topic_id": "2024-1", "run_id": "old", "references": [], "response_length": 2, "answer": [{"text": "A b."}]}
RAGTIME = {
    "metadata": {"run_id": "rt", "topic_id": "300"},
    "responses": [{"text": "One.", "citations": {"d1": 0.25, "d2": 0.5}, "metadata": {"x": 1}}],
}
DRAGUN = {"metadata": {"run_id": "dr", "topic_id": "m#1"}, "responses": [{"text": "One.", "citations": ["d2", "d1"]}]}
EMPTY = {"metadata": {"run_id": "no", "topic_id": "1"}, "responses": [], "documents": {"d": {"text": "x", "url": None}}}
ALL = [RAG, RAG_2024, RAGTIME, DRAGUN, EMPTY]


def _write(folder: Path, rows: list[object], name: str = "reports.jsonl") -> Path:
    path = folder / name
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


def test_reports_of_every_track_are_read(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="rubric_measures"):
        answers = read_answers(_write(tmp_path, ALL))
    assert answers == [
        Answer("14", "rag", "One. Two.", ("One.", "Two."), (("d2", "d1"), ())),
        Answer("2024-1", "old", "A b.", ("A b.",), ((),)),
        Answer("300", "rt", "One.", ("One.",), (("d2", "d1"),)),
        Answer("m#1", "dr", "One.", ("One.",), (("d2", "d1"),)),
        Answer("1", "no", "", (), (), (("d", "x"),)),
    ]
    assert [answer.words for answer in answers] == [2, 2, 1, 1, 0]
    assert answers[2].doc_id == answers[3].doc_id == answer_doc_id("One.")
    assert [record.getMessage().partition(": ")[2] for record in caplog.records] == [
        "1 citation points to positions that references does not have"
    ]


def test_plain_lines_and_tables_are_answers_too(tmp_path: Path) -> None:
    expected = [Answer("q1", "r", "Some text."), Answer("2", "r", "")]
    objects = [{"query_id": "q1", "run_id": "r", "text": "Some text."}, {"qid": 2, "agent": "r", "answer": ""}]
    assert read_answers(_write(tmp_path, objects)) == expected
    for head in ("", "query_id\trun_id\ttext\n"):
        (tmp_path / "answers.tsv").write_text(head + "q1\tr\tSome text.\n2\tr\t\n")
        assert read_answers(tmp_path / "answers.tsv") == expected
    # As spreadsheets and RAGElo write them.
    (tmp_path / "answers.csv").write_text('qid,agent,answer\nq1,r,"Some text."\n2,r,\n')
    assert read_answers(tmp_path / "answers.csv") == expected
    for name in ("again.jsonl", "again.tsv"):
        assert ANSWERS.write is not None
        ANSWERS.write(tmp_path / name, expected)
        assert read_answers(tmp_path / name) == expected
    with pytest.raises(InputError, match="no answers to write"):
        ANSWERS.write(tmp_path / "none.jsonl", [])
