"""Tables of answers, in the forms that programs write them: what is read from which column, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rubric_measures.base.errors import FormatError, InputError
from rubric_measures.formats.answers import AnswerRow, parsed_columns, read_answer_table

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
# As promptfoo writes its results, one a provider and test.
PROMPTFOO = {
    "evalId": "eval-1",
    "results": {
        "version": 3,
        "prompts": [{"raw": "Answer: {{question}}", "label": "Answer: {{question}}"}],
        "results": [
            {
                "id": f"result-{name}",
                "testIdx": 0,
                "provider": {"id": name, "label": ""},
                "prompt": {"raw": "Answer: Why is the sky blue?", "label": "Answer: {{question}}"},
                "vars": {"question": "Why is the sky blue?", "reference": "Air scatters blue light."},
                "response": {"output": said, "tokenUsage": {"total": 9}},
                "success": True,
            }
            for name, said in (("openai:one", "Because of the air."), ("openai:two", "It is paint."))
        ],
    },
}
PROMPTFOO_CSV = """question,reference,[openai:one] Answer: {{q}},Status,Score,[openai:two] Answer: {{q}},Status,Score
Why is the sky blue?,Air scatters blue light.,Because of the air.,PASS,1.00,It is paint.,FAIL,0.00
"""
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


def test_promptfoo(tmp_path: Path) -> None:
    rows = (ROW._replace(run_id="openai:one"), ROW._replace(answer="It is paint.", run_id="openai:two"))
    found = read_answer_table(write(tmp_path, "p.json", PROMPTFOO)).rows
    assert tuple(row._replace(line=1) for row in found) == rows
    lines = "".join(json.dumps(row) + "\n" for row in PROMPTFOO["results"]["results"])  # type: ignore[index]
    assert read_answer_table(write(tmp_path, "p.jsonl", lines)).rows == (rows[0], rows[1]._replace(line=2))
    wide = read_answer_table(write(tmp_path, "p.csv", PROMPTFOO_CSV)).rows
    assert wide == tuple(row._replace(line=2) for row in rows)


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
    assert {row.reference for row in table.rows} == {("Air scatters blue light.",), ("Chlorophyll.",)}
    rows = [dict(zip(("ask", "prod", "answer"), ("Why?", "a", "b"), strict=True))]
    assert read_answer_table(rows, {"query": "ask"}, ["prod", "answer"]).rows == (
        AnswerRow(1, "Why?", "a", run_id="prod"),
        AnswerRow(1, "Why?", "b", run_id="answer"),
    )
    with pytest.raises(FormatError, match="has no column 'canditate' with the answers of a system; it has"):
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
    assert "has no column of the query and the answer; it has ask, said, id; expected query: one of user_input" in str(
        caught.value
    )
    with pytest.raises(FormatError, match="has no column 'asks'; it has ask, said, id"):
        read_answer_table(path, {"query": "asks"})
    for wrong in ("query", "ask=query", "query=a,query=b"):
        with pytest.raises(InputError, match="expected query=COLUMN"):
            parsed_columns(wrong)


def test_cells_that_are_no_texts() -> None:
    table = read_answer_table([{"question": 5.0, "answer": None, "contexts": [{"page_content": "a"}, " ", "b"]}])
    assert table.rows == (AnswerRow(1, "5", "", contexts=("a", "b")),)
