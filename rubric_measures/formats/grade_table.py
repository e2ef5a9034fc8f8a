"""Grades as one tidy table, CSV or parquet, for data frames and spreadsheets: a row a grade."""

from __future__ import annotations

import csv
import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from rubric_measures.base.errors import InputError
from rubric_measures.base.files import atomic_writer, path_name
from rubric_measures.base.plugins import require
from rubric_measures.formats.base import Format, PathName

__all__ = ["CSV", "PARQUET", "GradeRow"]


class GradeRow(NamedTuple):
    """One grade of one document; a document that several runs rank has its grades once a run.

    Attributes:
        query_id: the query.
        doc_id: the passage or answer.
        run_id: a run that ranks it; None where none does.
        rank: there, from 1; None likewise.
        item_id: the item; `0` for labels of whole passages.
        text: the item's text, where a bank is given.
        grade: None where it failed.
        status: `graded`, `truncated`, `unparsed`, `refused` or `failed`.
        grader: the model, or `human:NAME`.
        prompt_class: the prompt.
        reason: why, where the grader said it.
    """

    query_id: str
    doc_id: str
    run_id: str | None
    rank: int | None
    item_id: str
    text: str | None
    grade: float | None
    status: str
    grader: str
    prompt_class: str | None
    reason: str | None


def _write_csv(path: PathName, rows: Sequence[GradeRow]) -> None:
    name = path_name(path)
    delimiter = "\t" if name.removesuffix(".gz").endswith(".tsv") else ","
    with atomic_writer(path) as stream:
        writer = csv.writer(stream, delimiter=delimiter, lineterminator="\n")
        writer.writerow(GradeRow._fields)
        writer.writerows(rows)


def _write_parquet(path: PathName, rows: Sequence[GradeRow]) -> None:
    if path_name(path) == "-":
        raise InputError("parquet goes to a file, not to standard output; name one", settings=("output",))
    arrow, parquet = require("pyarrow", "parquet"), require("pyarrow.parquet", "parquet")
    kinds = {"rank": arrow.int64(), "grade": arrow.float64()}
    schema = arrow.schema([(name, kinds.get(name, arrow.string())) for name in GradeRow._fields])
    table = arrow.Table.from_pylist([row._asdict() for row in rows], schema=schema)
    made = Path(f"{os.fspath(path)}.tmp{os.getpid()}")
    try:
        parquet.write_table(table, made)
        made.replace(path)
    except OSError as error:
        made.unlink(missing_ok=True)
        raise InputError(f"{path_name(path)}: cannot be written ({error.strerror or error})") from None


CSV = Format("grades", "all grades as a table, a row a grade (CSV; tabs where the name says .tsv)", None, _write_csv)
PARQUET = Format("grades", "the same as parquet (extra parquet)", None, _write_parquet)
