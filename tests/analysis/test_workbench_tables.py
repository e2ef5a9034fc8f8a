"""Tests of the workbench's agreement tables: its own output on a large collection, and a small one by hand."""

import gzip
import json
import os
import re
from pathlib import Path

import pytest

from rubric_measures.analysis.graders import JudgedPassage, agreement_table, table_layouts, workbench_tables
from rubric_measures.base.errors import InputError

GOLDEN = (
    Path(os.environ.get("RUBRIC_MEASURES_SHARED", Path(__file__).parents[3] / "shared")) / "data" / "workbench-golden"
)

# The paper's: judgments of 2 and 3 are relevant.
TABLES = table_layouts(2)
PASSAGES = [
    JudgedPassage((5, 0), (3,)),
    JudgedPassage((4, 4), (2, 0)),
    JudgedPassage((1,), (0,)),
    JudgedPassage((0, 0), (-1,)),
    JudgedPassage((), (3,)),
    JudgedPassage((5,), ()),
]


def test_a_small_table_by_hand() -> None:
    table = agreement_table(PASSAGES, TABLES[3])
    # Passages without grade or judgment are out: 4 are left. ≥ 4: the first two; the second is judged 2 and 0.
    assert [[cell.both for cell in row] for row in table.cells] == [[2, 1], [0, 2]]
    assert table.totals == (2, 2)
    assert table.kappas == (1.0, pytest.approx(0.5))
    # Second highest grades, as the program has them (min(heapq.nlargest(n, grades))): 0, 4, and of the third its
    # only one; 0.
    second = agreement_table(PASSAGES, TABLES[2], 2)
    assert [[cell.both for cell in row] for row in second.cells] == [[1, 2], [1, 1]]


def test_the_least_judgment_that_is_relevant() -> None:
    """Judged relevant from 1 on, as the program does unless it is told: sets, columns and whose kappa a line has."""
    passages = [JudgedPassage((5,), (1,)), JudgedPassage((2,), (1,)), JudgedPassage((0,), (0,))]
    lenient = {level: agreement_table(passages, table_layouts(level)[2]) for level in (1, 2)}
    assert {level: table.kappas[0] for level, table in lenient.items()} == {1: 1.0, 2: 0.0}
    graded, merged, *binary = table_layouts()
    assert graded.diagonal == (1, 1, 2, 2, 2, 3)
    assert merged.judgments == ((2, 3), (1,), (-2, -1, 0))
    assert {layout.judgments for layout in binary} == {((1, 2, 3), (-2, -1, 0))}
    with pytest.raises(InputError, match="from 1 or from 2, not from 3"):
        table_layouts(3)


@pytest.mark.skipif(not GOLDEN.is_dir(), reason="the shared data are not here")
def test_all_cells_of_the_workbench() -> None:
    passages = []
    with gzip.open(GOLDEN / "dl20-scale.jsonl.gz", "rt", encoding="utf-8") as stream:
        for line in stream:
            for passage in json.loads(line)[1]:
                ratings = passage["exam_grades"][0]["self_ratings"] if passage["exam_grades"] else []
                judgments = passage["paragraph_data"].get("judgments") or []
                passages.append(
                    JudgedPassage(
                        tuple(rating["self_rating"] for rating in ratings),
                        tuple(judgment["relevance"] for judgment in judgments),
                    )
                )
    tables = workbench_tables(passages, min_judgment=2)
    ours = [
        (
            *(table.layout.name, table.min_answers, cell.label, set(cell.judgment)),
            *(cell.both, cell.label_only, cell.judgment_only, cell.neither),
        )
        for table in tables
        for row in table.cells
        for cell in row
    ]
    with gzip.open(GOLDEN / "precise-kappa.json.gz", "rt") as stream:
        golden = json.load(stream)
    theirs = [
        (
            *(row["table"], row["min_answers"], tuple(row["label"]), set(row["judgment"])),
            *(row["tp"], row["fp"], row["fn"], row["tn"]),
        )
        for row in golden
    ]
    assert ours == theirs
    kappas = [cell.kappa for table in tables for row in table.cells for cell in row]
    assert kappas == pytest.approx([row["kappa"] for row in golden], abs=1e-12)
    # Its LaTeX: every line's counts, total and κ, marks taken off.
    golden_lines = [
        re.sub(r"\\(?:fbox|textbf)|[{}]", "", line).split("&")[2:]
        for line in (GOLDEN / "inter-annotator.tex").read_text().splitlines()
        if re.match(r"&[0-9+]+&\\?[a-z{]*\\?", line)
    ]
    our_lines = [
        [*(str(cell.both) for cell in row), str(total), f"{kappa:.2g}"]
        for table in tables
        for row, total, kappa in zip(table.cells, table.totals, table.kappas, strict=True)
    ]
    cleaned = [[field.split("\\\\")[0] for field in line] for line in golden_lines]
    assert our_lines == cleaned
