"""Grades as one tidy table: a row a grade, of all grade sets, with failed ones."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from rubric_measures.cli import main
from tests.example_records import grade_set, passage, write_lines

COLUMNS = ["query_id", "doc_id", "run_id", "rank", "item_id", "text", "grade", "status", "grader", "prompt_class"]


def rows_of(path: Path, delimiter: str = ",") -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream, delimiter=delimiter))


def test_grades_are_one_table(tmp_path: Path) -> None:
    from rubric_measures.corpora.collections import example_folder

    example = example_folder()
    output = tmp_path / "grades.csv"
    # The ending says what is wanted; a bank gives the texts.
    asked = ["convert", str(example / "graded.jsonl.gz"), "--bank", str(example / "questions.jsonl")]
    assert main([*asked, "-o", str(output)]) == 0
    rows = rows_of(output)
    assert list(rows[0]) == [*COLUMNS, "reason"]
    one = next(row for row in rows if row["run_id"] == "bm25" and row["rank"] == "1")
    assert one["text"] and float(one["grade"]) in range(6) and one["status"] == "graded"
    # Each document has each grade once a run.
    keys = [tuple(row[name] for name in COLUMNS if name not in ("text", "grade", "status", "rank")) for row in rows]
    assert len(set(keys)) == len(keys)
    assert main([*asked, "--to", "csv", "-o", str(tmp_path / "grades.tsv")]) == 0
    assert rows_of(tmp_path / "grades.tsv", "\t") == rows


def test_failed_grades_and_documents_without_a_run_are_rows(tmp_path: Path) -> None:
    graded = grade_set({"q1/a": 3}, status={"q1/b": "refused"})
    line = ["q1", [passage("q1", "d1", [graded], {"one": 1, "two": 4}), passage("q1", "d2", [graded])]]
    write_lines(tmp_path / "records.jsonl", [line])
    assert main(["convert", str(tmp_path / "records.jsonl"), "--to", "csv", "-o", str(tmp_path / "all.csv")]) == 0
    names = ("doc_id", "run_id", "rank", "item_id", "grade", "status")
    pairs = [("q1/a", "3", "graded"), ("q1/b", "", "refused")]
    places = [("d1", "one", "1"), ("d1", "two", "4"), ("d2", "", "")]
    rows = [tuple(row[name] for name in names) for row in rows_of(tmp_path / "all.csv")]
    assert rows == [(*place, *pair) for place in places for pair in pairs]


def test_assigned_nuggets_and_item_qrels_are_such_a_table(tmp_path: Path) -> None:
    nuggets = [
        {"text": "The air scatters blue.", "importance": "vital", "assignment": "support"},
        {"text": "The eye sees violet less.", "importance": "okay", "assignment": "partial_support"},
    ]
    line = {
        "query": "Why blue?",
        "qid": "q1",
        "answer_text": "Air.",
        "response_length": 1,
        "run_id": "one",
        "nuggets": nuggets,
    }
    write_lines(tmp_path / "assigned.jsonl", [line])
    assert main(["convert", str(tmp_path / "assigned.jsonl"), "-o", str(tmp_path / "assigned.csv")]) == 0
    rows = rows_of(tmp_path / "assigned.csv")
    assert [(row["query_id"], row["run_id"], row["text"], row["grade"]) for row in rows] == [
        ("q1", "one", "The air scatters blue.", "2"), ("q1", "one", "The eye sees violet less.", "1")
    ]  # fmt: skip
    (tmp_path / "items.qrels").write_text("q1 a d1 4\nq1 b d1 0\n", encoding="utf-8")
    more = ["--from", "item-qrels", "--grader", "judge"]
    assert main(["convert", str(tmp_path / "items.qrels"), *more, "-o", str(tmp_path / "items.csv")]) == 0
    found = [(row["doc_id"], row["item_id"], row["grade"], row["grader"]) for row in rows_of(tmp_path / "items.csv")]
    assert found == [("d1", "a", "4", "judge"), ("d1", "b", "0", "judge")]


def test_parquet(tmp_path: Path) -> None:
    # Newer versions of pyarrow refuse the oldest numpy that we take.
    parquet = pytest.importorskip("pyarrow.parquet", exc_type=ImportError)
    from rubric_measures.corpora.collections import example_folder

    records = str(example_folder() / "graded.jsonl.gz")
    assert main(["convert", records, "-o", str(tmp_path / "g.parquet")]) == 0
    assert main(["convert", records, "-o", str(tmp_path / "g.csv")]) == 0
    table = parquet.read_table(tmp_path / "g.parquet")
    assert table.num_rows == len(rows_of(tmp_path / "g.csv")) and str(table.schema.field("grade").type) == "double"
    assert main(["convert", records, "--to", "parquet", "-o", "-"]) == 2
