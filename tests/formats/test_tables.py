"""Tables in files and in memory, tables of answers as programs write them, and cells of any kind."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rubric_measures.base.errors import FormatError, InputError
from rubric_measures.formats.answers import AnswerRow, parsed_columns, read_answer_table
from rubric_measures.formats.queries import QUERIES
from rubric_measures.formats.specs import Field, Spec, number, text
from rubric_measures.formats.tables import rows_of
from rubric_measures.types.entities import Preference
from tests.example_records import write_text

# As a format of another package says it.
NUMBERED: Spec[list[dict[str, Any]]] = Spec(
    kind="records", description="numbers", what="numbers", fields=(Field("id", ("id",)), Field("n", ("n",), number)),
    into=lambda rows: [row.said for row in rows], outof=lambda rows: rows, keeps=True, is_guarded=True,
)  # fmt: skip


@pytest.mark.parametrize(
    "content", ["question,answer,answer\nWhy?,a,b\n", "\n\nquestion\tanswer\tanswer\nWhy?\ta\tb\n"]
)
def test_two_columns_of_one_name_are_refused(content: str, tmp_path: Path) -> None:
    (tmp_path / "t").write_text(content)
    line = 3 if content.startswith("\n") else 1
    with pytest.raises(FormatError, match=rf"t:{line}: the header names answer twice; keep one$"):
        read_answer_table(tmp_path / "t")


def test_names_of_columns_of_frames_are_texts_and_each_comes_once() -> None:
    pandas = pytest.importorskip("pandas")
    for frame, said in (
        (pandas.DataFrame([["q", "t"]]), "that are texts; found 0"),
        (pandas.DataFrame([["q", "t", "u"]], columns=["query_id", "text", "text"]), "names text twice"),
    ):
        with pytest.raises(InputError, match=said):
            QUERIES.read(frame)


def test_arrays_scalars_and_gaps_are_plain_values() -> None:
    numpy, pandas = pytest.importorskip("numpy"), pytest.importorskip("pandas")
    rows = [
        {"id": numpy.str_("a"), "n": numpy.int64(1), "more": numpy.array(["x", "y"])},
        {"id": numpy.int64(7), "n": numpy.float32(0.5), "more": [pandas.NA, {"in": numpy.bool_(True)}]},
        {"id": "c", "n": 2, "more": pandas.NaT},
    ]
    plain = [["x", "y"], [None, {"in": True}], None]
    for source in (rows, pandas.DataFrame(rows), {name: [row[name] for row in rows] for name in rows[0]}):
        assert NUMBERED.read(source) == [{"id": "a", "n": 1}, {"id": "7", "n": 0.5}, {"id": "c", "n": 2}]
        assert [cells["more"] for _, cells in rows_of(source, "numbers").rows] == plain
    assert NUMBERED.read({"id": numpy.array(["a", "b"]), "n": numpy.array([1, 2])})[1] == {"id": "b", "n": 2}
    assert NUMBERED.read(pandas.DataFrame(rows)[["id", "n"]].to_dict())[1] == {"id": "7", "n": 0.5}
    with pytest.raises(FormatError, match="the numbers:1: n: is empty"):
        NUMBERED.read([{"id": "a", "n": pandas.NA}])


def test_whole_numbers_of_many_digits(tmp_path: Path) -> None:
    digits = "9" * 400
    (tmp_path / "q.jsonl").write_text(f'{{"query_id": {digits}, "text": "a"}}\n{{"query_id": 2, "text": "b"}}\n')
    assert set(QUERIES.read(tmp_path / "q.jsonl").texts) == {digits, "2"}
    (tmp_path / "n.jsonl").write_text(f'{{"id": "a", "n": {digits}}}\n')
    with pytest.raises(FormatError, match=r"n\.jsonl:1: n: expected a number, at most 1e\+100; found '999"):
        NUMBERED.read(tmp_path / "n.jsonl")
    assert [text(one) for one in (2, 2.0, 2.5, -0.0, 1e16)] == ["2", "2", "2.5", "0", "10000000000000000"]


# As `EvaluationDataset.to_csv` of ragas writes it: lists are Python's.
RAGAS = """user_input,retrieved_contexts,response,reference
Why is the sky blue?,"['Air scatters light.', ""It isn't paint.""]",Because of the air.,Air scatters blue light.
"""
# As deepeval keeps a test run.
DEEPEVAL = {
    "testCases": [
        {
            "name": "test_case_0",
            "input": "Why is the sky blue?",
            "actualOutput": "Because of the air.",
            "expectedOutput": "Air scatters blue light.",
            "context": ["what should have been found"],
            "retrievalContext": ["Air scatters light.", "It isn't paint."],
            "success": True,
        }
    ],
    "metricsScores": [],
}
ROW = AnswerRow(1, "Why is the sky blue?", "Because of the air.", reference=("Air scatters blue light.",))
CONTEXTS = ("Air scatters light.", "It isn't paint.")


def write(folder: Path, name: str, content: Any) -> Path:
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content, indent=1), encoding="utf-8")
    return path


def test_ragas(tmp_path: Path) -> None:
    assert read_answer_table(write(tmp_path, "r.csv", RAGAS)).rows == (ROW._replace(line=2, contexts=CONTEXTS),)
    # The names of its first versions, as a data set writes them: columns.
    old = {
        "question": [ROW.query],
        "answer": [ROW.answer],
        "contexts": [[*CONTEXTS]],
        "ground_truths": [[*ROW.reference]],
    }
    assert read_answer_table(write(tmp_path, "r.json", old)).rows == (ROW._replace(contexts=CONTEXTS),)


def test_deepeval(tmp_path: Path) -> None:
    assert read_answer_table(write(tmp_path, "run.json", DEEPEVAL)).rows == (ROW._replace(contexts=CONTEXTS),)
    flat = {"input": ROW.query, "actual_output": ROW.answer, "expected_output": ROW.reference[0]}
    assert read_answer_table(write(tmp_path, "cases.json", [flat])).rows == (ROW._replace(line=2),)


def test_objects_inside_of_rows_have_columns_with_dots(tmp_path: Path) -> None:
    row = {
        "provider": {"id": "openai:one"}, "vars": {"question": ROW.query}, "response": {"output": ROW.answer},
        "id": "result-1",
    }  # fmt: skip
    path = write(tmp_path, "promptfoo.jsonl", json.dumps(row) + "\n")
    columns = {"query": "vars.question", "run": "provider.id", "id": ""}
    assert read_answer_table(path, columns).rows == (ROW._replace(run_id="openai:one", reference=()),)


SYSTEMS = """question,expected,prod,candidate
Why is the sky blue?,Air scatters blue light.,Because of the air.,It is paint.
Why is grass green?,Chlorophyll.,,"Leaves, and chlorophyll."
"""


def test_a_column_a_system(tmp_path: Path) -> None:
    path = write(tmp_path, "both.csv", SYSTEMS)
    table = read_answer_table(path, systems=["prod", "candidate"])
    assert [(row.line, row.query, row.run_id, row.answer) for row in table.rows] == [
        (2, "Why is the sky blue?", "prod", "Because of the air."),
        (2, "Why is the sky blue?", "candidate", "It is paint."),
        (3, "Why is grass green?", "prod", ""),
        (3, "Why is grass green?", "candidate", "Leaves, and chlorophyll."),
    ]
    assert table.columns["answer"] == "column prod or candidate"
    assert {row.reference for row in table.rows} == {("Air scatters blue light.",), ("Chlorophyll.",)}
    rows = [dict(zip(("ask", "prod", "answer"), ("Why?", "a", "b"), strict=True))]
    assert read_answer_table(rows, {"query": "ask"}, ["prod", "answer"]).rows == (
        AnswerRow(1, "Why?", "a", run_id="prod"),
        AnswerRow(1, "Why?", "b", run_id="answer"),
    )
    with pytest.raises(FormatError, match="has no column 'canditate' with the answers of a run; it has"):
        read_answer_table(path, systems=["prod", "canditate"])


def test_hugging_face_datasets(tmp_path: Path) -> None:
    # Newer versions of pyarrow refuse the oldest numpy that we take.
    pyarrow = pytest.importorskip("pyarrow", exc_type=ImportError)
    parquet = pytest.importorskip("pyarrow.parquet", exc_type=ImportError)
    rows = {"id": [7], "question": [ROW.query], "response": [ROW.answer], "answer": [ROW.reference[0]]}
    parquet.write_table(pyarrow.table(rows), tmp_path / "data.parquet")
    table = read_answer_table(tmp_path / "data.parquet")
    # Beside a response, the answer is the reference.
    assert table.rows == (ROW._replace(query_id="7"),)
    assert table.columns == {"query": "question", "answer": "response", "reference": "answer", "id": "id"}
    served = {"rows": [{"row_idx": 0, "row": {"question": ROW.query, "answer": ROW.answer}, "truncated_cells": []}]}
    assert read_answer_table(write(tmp_path, "rows.json", served)).rows == (ROW._replace(reference=()),)
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 and nothing else")
    with pytest.raises(FormatError, match="cannot be read as parquet"):
        read_answer_table(tmp_path / "bad.parquet")


def test_other_names_are_said(tmp_path: Path) -> None:
    path = write(tmp_path, "own.tsv", "ask\tsaid\tid\nWhy is the sky blue?\tBecause of the air.\t3\n")
    columns = parsed_columns("query=ask, answer=said,id=")
    assert read_answer_table(path, columns).rows == (ROW._replace(line=2, reference=()),)
    with pytest.raises(FormatError) as caught:
        read_answer_table(path)
    assert "lacks user_input or question or query" in str(caught.value)
    assert "it has ask, said, id; or say which" in str(caught.value)
    with pytest.raises(FormatError, match="has no column 'asks'; it has ask, said, id"):
        read_answer_table(path, {"query": "asks"})
    with pytest.raises(InputError, match="'ask' is none of query, answer"):
        read_answer_table(path, {"ask": "query"})
    for wrong in ("query", "query=a,query=b"):
        with pytest.raises(InputError, match="expected query=COLUMN"):
            parsed_columns(wrong)


def test_cells_that_are_no_texts() -> None:
    table = read_answer_table([{"question": 5.0, "answer": None, "contexts": [{"page_content": "a"}, " ", "b"]}])
    assert table.rows == (AnswerRow(1, "5", "", contexts=("a", "b")),)


GAMES = [
    Preference("q1", "x", "y", "a", answer="… [[A]]", grader="openai:judge"),
    Preference("q1", "y", "x", "tie"),
    Preference("q2", "x", "y", None, "failed", grader="openai:judge", note="no reply"),
    Preference("q2", "x", "y", "b", grader="human:ada"),
]


def test_a_row_of_columns_as_pandas_writes_them_is_called_by_its_number(tmp_path: Path) -> None:
    path = write_text(tmp_path / "t.json", '{"question": {"0": "Why?", "1": ""}, "answer": {"0": "So.", "1": "No."}}')
    with pytest.raises(FormatError, match=r"t.json:2: question"):
        read_answer_table(path)
