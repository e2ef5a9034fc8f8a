"""Tests of the workbench's agreement tables: its own output on a large collection, and a small one by hand."""

import gzip
import json
import re
from pathlib import Path

import pytest

from rubric_measures.analysis.graders import agreement_tables, tables_report
from rubric_measures.base.errors import InputError
from tests.example_records import grade_set, passage, write_lines
from tests.shared_data import shared_data


def test_small_tables_by_hand(tmp_path: Path) -> None:
    # Grades and judgment of each passage; those without one of both are out: 4 are left.
    graded = [((5, 0), 3), ((4, 4), 2), ((1,), 0), ((0, 0), -1), ((), 3), ((5,), None)]
    passages = [
        passage("q", f"d{place}", [grade_set({f"q/{at}": one for at, one in enumerate(grades)})], judgment=judgment)
        for place, (grades, judgment) in enumerate(graded)
    ]
    records = write_lines(tmp_path / "graded.jsonl", [["q", passages]])
    of = {(one.table, one.min_answers): one for one in agreement_tables(records, min_judgment=2)}
    # A label of 4 or more: the first two.
    strict = of["STRICT", 1]
    assert [cell.both for cell in strict.cells] == [2, 0, 0, 2]
    assert list(strict.totals) == [2, 2] and [strict.cells[at].kappa for at in (0, 3)] == [1, 1]
    # Second highest grades, as the program has them (min(heapq.nlargest(n, grades))): 0, 4, and of the third its
    # only one; 0.
    assert [cell.both for cell in of["LENIENT", 2].cells] == [1, 1, 1, 1]
    # Judged relevant from 1 on, as the program does unless it is told.
    merged = next(one for one in agreement_tables(records) if one.table == "MERGE")
    assert [cell.judgment for cell in merged.cells[:3]] == [(2, 3), (1,), (-2, -1, 0)]
    with pytest.raises(InputError, match="from 1 or from 2, not from 3"):
        agreement_tables(records, min_judgment=3)


def test_all_cells_of_the_workbench() -> None:
    folder = shared_data("workbench-golden")
    tables = agreement_tables(folder / "dl20-scale.jsonl.gz", min_judgment=2)
    cells = [(table, cell) for table in tables for cell in table.cells]
    ours = [
        (
            *(table.table, table.min_answers, cell.label, set(cell.judgment)),
            *(cell.both, cell.label_only, cell.judgment_only, cell.neither),
        )
        for table, cell in cells
    ]
    with gzip.open(folder / "precise-kappa.json.gz", "rt") as stream:
        golden = json.load(stream)
    theirs = [
        (
            *(row["table"], row["min_answers"], tuple(row["label"]), set(row["judgment"])),
            *(row["tp"], row["fp"], row["fn"], row["tn"]),
        )
        for row in golden
    ]
    assert ours == theirs
    assert [cell.kappa for _, cell in cells] == pytest.approx([row["kappa"] for row in golden], abs=1e-12)
    # Its LaTeX: every line's counts, total and κ, marks taken off.
    golden_lines = [
        re.sub(r"\\(?:fbox|textbf)|[{}]", "", line).split("&")[2:]
        for line in (folder / "inter-annotator.tex").read_text().splitlines()
        if re.match(r"&[0-9+]+&\\?[a-z{]*\\?", line)
    ]
    our_lines = [
        [*(str(cell.value) for cell in counts), str(total), kappa]
        for table in tables_report(tables).tables
        for _, *counts, total, kappa in table.rows
    ]
    cleaned = [[field.split("\\\\")[0] for field in line] for line in golden_lines]
    assert our_lines == cleaned
