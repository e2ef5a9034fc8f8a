"""Tests of reports and plain answer files: citations of all tracks, what is refused, grades, identity after writing."""

import json
import logging
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rubric_measures.base.errors import FormatError, InputError
from rubric_measures.formats.answers import ANSWERS, read_answers
from rubric_measures.formats.reports import (
    Answer,
    answer_doc_id,
    answer_of_report,
    grades_of_reports,
    read_reports,
    report_of_answer,
    write_reports,
)
from rubric_measures.types.entities import Grade

SHARED = Path(os.environ.get("RUBRIC_MEASURES_SHARED", Path(__file__).parents[3] / "shared")) / "data"

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
        "1 citations point to positions that references does not have"
    ]


def test_reports_are_the_same_after_writing_unknown_fields_included(tmp_path: Path) -> None:
    reports = read_reports(_write(tmp_path, ALL))
    write_reports(tmp_path / "again.jsonl", reports)
    rows = [json.loads(line) for line in (tmp_path / "again.jsonl").read_text().splitlines()]
    # The number of the narrative becomes text; all else is as it was.
    assert rows == [{**RAG, "metadata": {**RAG["metadata"], "narrative_id": "14"}}, *ALL[1:]]
    assert read_reports(tmp_path / "again.jsonl") == reports


def test_reports_are_written_byte_for_byte(tmp_path: Path) -> None:
    # RAGTIME's schema lets a request_id stand for the topic_id; the order of fields and the blanks are the file's.
    line = '{"references":  [], "metadata": {"x": 1.50, "request_id": "300", "run_id": "rt"}, "responses": []}\n'
    (tmp_path / "reports.jsonl").write_text(line)
    reports = read_reports(tmp_path / "reports.jsonl")
    assert (reports[0].query_id, reports[0].run_name) == ("300", "rt")
    write_reports(tmp_path / "again.jsonl", reports)
    assert (tmp_path / "again.jsonl").read_text() == line


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


def test_a_cut_table_is_asked_about(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "answers.tsv").write_text("q1\tr\tSome te")
    assert read_answers(tmp_path / "answers.tsv") == [Answer("q1", "r", "Some te")]
    assert "answers.tsv: the last line has no line end; is the file complete?" in caplog.text


def test_an_answer_makes_a_report_of_itself() -> None:
    answer = Answer("1", "r", "A. B.", ("A.", "B."), (("d1",), ()))
    assert answer_of_report(report_of_answer(answer)) == answer
    assert answer_of_report(report_of_answer(Answer("1", "r", "A."))) == Answer("1", "r", "A.", ("A.",), ((),))
    assert answer_of_report(report_of_answer(Answer("1", "r", ""))) == Answer("1", "r", "")


def test_item_grades_are_grades_of_the_run(tmp_path: Path) -> None:
    graded = {
        **DRAGUN,
        "evaldata": {
            "nugget_grades": {"i1": {"grade": 4, "reasoning": "yes"}, "i2": {"grade": None}, "i3": {"grade": 0}},
            "other": [1],
        },
    }
    (report,) = read_reports(_write(tmp_path, [graded]))
    grades = list(grades_of_reports([report]))
    assert grades == [
        Grade("m#1", "dr", 4, "i1", "graded", "yes"),
        Grade("m#1", "dr", None, "i2", "failed", "", "", "no grade in evaldata.nugget_grades"),
        Grade("m#1", "dr", 0, "i3"),
    ]
    (bad,) = read_reports(_write(tmp_path, [{**DRAGUN, "evaldata": {"nugget_grades": {"i1": 4}}}]))
    with pytest.raises(InputError, match="nugget_grades is not"):
        bad.item_grades()


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], ": is empty"),
        ([{"metadata": {"run_id": "r", "topic_id": "1"}}], ":1: has neither answer nor responses"),
        ([{"metadata": {"topic_id": "1"}, "responses": []}], ":1: names no run_id"),
        ([{"metadata": {"run_id": "r", "topic_id": ""}, "responses": []}], ":1: names no topic_id or narrative_id"),
        ([{**DRAGUN, "topic_id": "2"}], ":1: names two topic_id or narrative_id: 2, m#1"),
        ([{**DRAGUN, "answer": [{"text": "Two."}]}], ":1: answer and responses differ"),
        ([DRAGUN, DRAGUN], ":2: run 'dr' has answered query 'm#1' in line 1"),
        ([{**DRAGUN, "responses": [{"text": 1}]}], ":1: responses[0].text: "),
        ([{"query_id": "1", "text": "x"}], ":1: run_id: expected run_id or run"),
        ([{"query_id": "1", "run_id": "r", "text": {}}], ":1: text: expected a text; found '{}'"),
        ([7], ":1: the header lacks query_id or qid"),
    ],
)
def test_bad_files_are_refused_with_file_and_line(tmp_path: Path, rows: list[object], message: str) -> None:
    path = _write(tmp_path, rows)
    with pytest.raises(FormatError) as error:
        read_answers(path)
    assert str(error.value).startswith(f"{path}{message}")


_VALUES = st.recursive(
    st.one_of(st.none(), st.integers(-2, 2), st.floats(-2, 2), st.sampled_from(["", "a", "r"])),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(["metadata", "run_id", "topic_id", "responses", "answer", "text", "citations", "query_id"]),
            inner,
        ),
    ),
    max_leaves=10,
)


@settings(deadline=None, max_examples=150)
@given(rows=st.lists(_VALUES, max_size=3), tail=st.binary(max_size=4))
def test_mutated_files_are_read_or_refused_in_one_line(
    tmp_path_factory: pytest.TempPathFactory, rows: list[object], tail: bytes
) -> None:
    path = _write(tmp_path_factory.mktemp("mutated"), rows)
    path.write_bytes(path.read_bytes() + tail)
    for read in (read_answers, read_reports):
        try:
            read(path)
        except InputError as error:
            assert "\n" not in str(error)


def test_real_reports_are_the_same_after_writing(tmp_path: Path) -> None:
    if not (SHARED / "kiddie").is_dir():
        pytest.skip("the public data are not here")
    for name, sentences in (("run1", 5), ("run2", 4)):
        path = SHARED / "kiddie" / f"kiddie.{name}.jsonl"
        write_reports(tmp_path / name, read_reports(path))
        written = [json.loads(line) for line in (tmp_path / name).read_text().splitlines()]
        assert written == [json.loads(line) for line in path.read_text().splitlines()]
        answers = read_answers(path)
        assert {answer.run_id for answer in answers} == {name}
        assert answers[0].query_id == "leaf"
        assert len(answers[0].sentences) == len(answers[0].citations) == sentences
