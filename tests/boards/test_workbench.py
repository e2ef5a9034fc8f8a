"""Tests of --compat workbench against what the workbench's own program computed (where its oracle is here)."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from ir_measures.measures.base import Measure

from rubric_measures import RubricCover
from rubric_measures.base.errors import MeasureError
from rubric_measures.boards.board import Leaderboard
from rubric_measures.boards.programs import score_workbench
from rubric_measures.boards.scoring import score_records
from rubric_measures.formats.trec import read_qrels
from rubric_measures.measures.grade_sets import Grader
from rubric_measures.measures.loading import load_records, read_records
from rubric_measures.measures.measure import nRubricCover
from rubric_measures.measures.qrels import qrels_of
from tests.example_records import write_all
from tests.shared_data import shared_data

MEASURES = [measure(rel=rel) @ 20 for rel in range(1, 6) for measure in (RubricCover, nRubricCover)]


@pytest.fixture(scope="module")
def golden() -> Path:
    return shared_data("workbench-golden")


@pytest.fixture(scope="module")
def board(golden: Path) -> Leaderboard:
    queries = read_records(golden / "dl20-scale.jsonl.gz", wanted=Grader(first=True), keep_ranks=True)
    return score_workbench(queries, MEASURES)


@pytest.mark.parametrize("table", ["bool", "1", "2", "3", "4", "5"])
def test_cover_errors_and_queries_equal_the_program(golden: Path, board: Leaderboard, table: str) -> None:
    oracle = json.loads(gzip.decompress((golden / "precise-cover.json.gz").read_bytes()))[table]
    rel = 1 if table == "bool" else int(table)
    cover, normalised = str(RubricCover(rel=rel) @ 20), str(nRubricCover(rel=rel) @ 20)
    # Its row `_overall_` is no run of ours.
    rows = {**board.cells, "_overall_": board.best}
    values = {**board.values, "_overall_": {name: best.per_query for name, best in board.best.items()}}
    assert set(rows) == set(oracle)
    for run_id, expected in oracle.items():
        row = rows[run_id]
        assert row[cover].mean == pytest.approx(expected["examScore"], abs=1e-12)
        assert row[cover].standard_error == pytest.approx(expected["examScoreStd"], abs=1e-12)
        assert row[normalised].mean == pytest.approx(expected["nExamScore"], abs=1e-12)
        assert row[normalised].standard_error == pytest.approx(expected["nExamScoreStd"], abs=1e-12)
        assert len(values[run_id][cover]) == expected["n_queries"]
        assert values[run_id][cover] == pytest.approx(expected["perQuery"], abs=1e-12)
        assert values[run_id][normalised] == pytest.approx(expected["nPerQuery"], abs=1e-12)


@pytest.mark.parametrize(("name", "label"), [("rated.qrels.gz", "max"), ("count.qrels.gz", "count")])
def test_qrels_equal_the_program(golden: Path, name: str, label: str) -> None:
    grades = load_records(golden / "dl20-scale.jsonl.gz")
    found = qrels_of(grades, "passage", label, rel=1)  # type: ignore[arg-type]
    ours = {(row.query_id, row.doc_id): row.relevance for row in found}
    theirs = {(row.query_id, row.doc_id): row.relevance for row in read_qrels(golden / name)}
    assert ours == theirs


def test_other_measures_are_refused() -> None:
    with pytest.raises(MeasureError, match="cuts rankings by rank; write one cutoff"):
        score_workbench([], [RubricCover(rel=4)])
    with pytest.raises(MeasureError, match="nRubricCover without judged_only"):
        score_workbench([], [RubricCover(rel=4, judged_only=True) @ 20])


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (RubricCover(rel=4) @ 20, r"is asked for twice, as RubricCover.* and RubricCover"),
        (RubricCover @ 20, "twice"),
    ],
)
def test_measures_that_are_one_are_refused(tmp_path: Path, other: Measure, said: str) -> None:
    path = write_all(tmp_path) / "graded.jsonl.gz"
    for score in (score_workbench, score_records):
        with pytest.raises(MeasureError, match=said):
            score(read_records(path, keep_ranks=True), [RubricCover @ 20, other])
