"""Tests of joined leaderboards: missing runs, queries, ranks, and the Rubric workbench's own correlations."""

import json

import numpy as np
import pytest

from rubric_measures.analysis.leaderboards import RunScores, correlate_grid, correlate_leaderboards, scores_of_table
from rubric_measures.analysis.resampling import Draws
from rubric_measures.base.errors import InputError
from rubric_measures.corpora.loading import load
from rubric_measures.formats.leaderboards import read_leaderboard
from tests.shared_data import shared_data

NO_QUERIES = "an interval is over queries; give a leaderboard with scores by query"
OFFICIAL = RunScores("official", {"a": 4.0, "b": 3.0, "c": 2.0, "d": 1.0, "lost": 0.0})


def per_query(seed: int = 0, queries: int = 6) -> RunScores:
    table = np.random.default_rng(seed).random((queries, 4)) + np.array([0.6, 0.4, 0.2, 0.0])
    scores = {run: {f"t{i}": float(table[i, j]) for i in range(queries)} for j, run in enumerate("abcd")}
    return RunScores("m", {run: float(np.mean(list(values.values()))) for run, values in scores.items()}, scores)


def test_runs_are_joined_and_the_missing_named() -> None:
    result = correlate_leaderboards(
        OFFICIAL, RunScores("m", {"a": 0.9, "c": 0.7, "b": 0.8, "new": 1.0}), draws=Draws(50)
    )
    assert (result.runs, result.missing, result.extra) == (("a", "b", "c"), ("d", "lost"), ("new",))
    assert result.value("kendall") == 1.0
    assert {one.interval.reason for one in result.coefficients if one.interval} == {NO_QUERIES}
    with pytest.raises(InputError, match=r"of the official leaderboard 2 runs missing \(d, lost\)"):
        correlate_leaderboards(OFFICIAL, RunScores("m", {"a": 0.9, "c": 0.7, "b": 0.8}), strict=True)
    with pytest.raises(InputError, match="no run of the official"):
        correlate_leaderboards(OFFICIAL, RunScores("m", {"x": 0.9}))
    with pytest.raises(InputError, match="m: no run has a score; a leaderboard of it says why"):
        correlate_leaderboards(OFFICIAL, RunScores("m", {}))


def test_means_that_are_not_those_of_the_queries_have_no_interval() -> None:
    other = per_query()
    moved = RunScores("m", {run: value + 0.1 for run, value in other.means.items()}, other.queries)
    result = correlate_leaderboards(OFFICIAL, moved, ["kendall"], draws=Draws(50))
    assert result.coefficients[0].interval.reason == NO_QUERIES
    assert "no intervals" in result.notes[0]
    fewer = {run: dict(list(values.items())[:3]) for run, values in per_query(1).queries.items()}
    means = {run: float(np.mean(list(values.values()))) for run, values in fewer.items()}
    different = correlate_leaderboards(RunScores("o", means, fewer), other, ["kendall"], draws=Draws(50))
    said = "the two leaderboards have different queries (such as t3): the official scores are taken as given"
    assert different.notes == (said,)
    assert different.query_kendall is None


def test_the_workbenchs_correlations() -> None:
    from rubric_measures import RubricCover
    from rubric_measures.measures.measure import nRubricCover

    folder = shared_data("workbench-golden")
    official = scores_of_table(read_leaderboard(folder / "dl20-scale-official-leaderboard.json"), "rank")
    cells = correlate_grid(
        load(folder / "dl20-scale.jsonl.gz"),
        official,
        [RubricCover @ 20, nRubricCover @ 20],
        coefficients=["kendall", "spearman"],
        draws=Draws(0),
        compat="workbench",
    )
    golden = json.loads((folder / "precise-cover-correlations.json").read_text())
    ours = {cell.measure: cell.result for cell in cells}
    for rel in range(1, 6):
        expected = golden[f"cover-{rel}"]
        for name, prefix in ((f"RubricCover(rel={rel})@20", ""), (f"nRubricCover(rel={rel})@20", "n_")):
            for coefficient in ("kendall", "spearman"):
                assert ours[name].value(coefficient) == pytest.approx(expected[prefix + coefficient], abs=1e-12)
    assert len(cells) == 10
