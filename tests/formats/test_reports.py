"""Reports and answers of all tracks, and support labels: read, refused, and the same after writing."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest

import rubric_measures
from rubric_measures import Draws
from rubric_measures.base.errors import FormatError, InputError
from rubric_measures.corpora.converting import convert
from rubric_measures.formats import detect_format
from rubric_measures.formats.answers import (
    ANSWERS,
    Answer,
    read_answers,
)
from rubric_measures.formats.support import read_support_labels, records_of_support_labels
from tests.example_records import write_lines
from tests.support_data import line, write

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


def test_reports_of_every_track_are_read(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="rubric_measures"):
        answers = read_answers(write_lines(tmp_path / "reports.jsonl", ALL))
    assert answers == [
        Answer("14", "rag", "One. Two.", ("One.", "Two."), (("d2", "d1"), ())),
        Answer("2024-1", "old", "A b.", ("A b.",), ((),)),
        Answer("300", "rt", "One.", ("One.",), (("d2", "d1"),)),
        Answer("m#1", "dr", "One.", ("One.",), (("d2", "d1"),)),
        Answer("1", "no", "", (), (), (("d", "x"),)),
    ]
    assert [answer.words for answer in answers] == [2, 2, 1, 1, 0]
    assert [record.getMessage().partition(": ")[2] for record in caplog.records] == [
        "1 citation points to positions that references does not have"
    ]


def test_plain_lines_and_tables_are_answers_too(tmp_path: Path) -> None:
    expected = [Answer("q1", "r", "Some text."), Answer("2", "r", "")]
    objects = [{"query_id": "q1", "run_id": "r", "text": "Some text."}, {"qid": 2, "agent": "r", "answer": ""}]
    assert read_answers(write_lines(tmp_path / "reports.jsonl", objects)) == expected
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


SUBMISSION = {
    "run_name": "nlm-1",
    "team_id": "nlm",
    "contact_email": "a@b.org",
    "results": [
        {
            "topic_id": "131",
            "answer": "Aspirin thins the blood [11, 12]. It may help Dr. Smith [13,11]. [16, 17] It is cheap [sic].",
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
    # 16 and 17 stand behind the end of their sentence, which the track discards.
    assert first.citations == (("11", "12"), ("13", "11"), ())
    assert "2 citations stand behind the end of a sentence" in caplog.text
    assert (second.sentences, second.citations) == (("Nobody knows.",), ((),))


def test_a_bank_of_questions_keeps_an_empty_one(tmp_path: Path) -> None:
    bank = {"metadata": {"run_id": "b1", "topic_id": "1"}, "nugget_bank": [{"question": ""}, {"question": "What?"}]}
    (answer,) = read_answers(_file(tmp_path, bank))
    assert (answer.query_id, answer.run_id, answer.questions) == ("1", "b1", ("", "What?"))


@pytest.mark.parametrize("indent", [None, 2])
def test_lists_of_biogen_2025_are_read_and_ids_may_be_numbers(tmp_path: Path, indent: int | None) -> None:
    path = _file(tmp_path, TASK_B, indent)
    assert detect_format(path) == "reports"
    assert [(answer.query_id, answer.citations) for answer in read_answers(path)] == [
        ("181", (("31",),)),
        ("182", (("32",),)),
    ]


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


def test_a_text_that_is_nan_is_none(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    wordless = line("one", labels=(["2"],))
    wordless["sentences"][0]["text"] = float("nan")
    with caplog.at_level(logging.WARNING):
        [answer] = read_support_labels(write(tmp_path / "labels.jsonl", line("two"), wordless))[1:]
    assert answer.sentences[0].text is None
    assert "1 sentence has no text" in caplog.text


def test_what_nobody_defined_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "labels.jsonl", line("two"), line("one", labels=(["3"],)))
    with pytest.raises(FormatError, match=r"labels.jsonl:2: .*support: .*'3'"):
        read_support_labels(path)
    again = write(tmp_path / "again.jsonl", line("one"), line("one"))
    with pytest.raises(FormatError, match="stands in line 1 already; keep one"):
        read_support_labels(again)
    double = line("one", labels=(["2", "0"],))
    double["sentences"][0]["citations"][1]["reference"] = "d0.0"
    answers = read_support_labels(write(tmp_path / "double.jsonl", double))
    with pytest.raises(InputError, match=r"document 'd0\.0' has two labels"):
        records_of_support_labels(answers)
    with pytest.raises(InputError, match=r"double\.jsonl: query 't1', run 'one', 'Sentence 0 of one.': "):
        rubric_measures.load(tmp_path / "double.jsonl")


def test_labels_of_several_files_are_joined_and_compared(tmp_path: Path) -> None:
    one = write(tmp_path / "one.jsonl", line("one"))
    two = write(tmp_path / "two.jsonl", line("two", labels=(["2"], ["0"], ["2", "2"])))
    convert([one, two], tmp_path / "both.jsonl", to="records")
    board = rubric_measures.score(str(tmp_path / "both.jsonl"), overall=False, notes=False)
    assert board.cells["one"]["SupportPrecision"].mean == pytest.approx(0.5)
    assert board.cells["two"]["SupportPrecision"].mean == pytest.approx(2 / 3)
    # The same answer by somebody else: 5 pairs (sentence, document) have both labels, 4 of them the same one.
    other = write(tmp_path / "other.jsonl", line("one", labels=(["2"], ["0"], ["0", "2"], ["2"], [], ["-1", "2"])))
    found = rubric_measures.agreement(one, other, items=True, draws=Draws(0))
    assert found.rows[0].documents == 5
    assert found.rows[0].statistics["exact_match"].estimate == pytest.approx(4 / 5)
