"""Tests of verdicts on pairs of runs, and of what more queries would do, against other programs and by hand."""

import numpy as np
import pytest

from rubric_measures import Tests
from rubric_measures.analysis.comparing import Comparisons
from rubric_measures.analysis.significance import compare_runs, t_power
from rubric_measures.base.errors import InputError

OFF = {"a": 0.0, "b": 0.1, "c": 0.3}


def test_power_as_statsmodels() -> None:
    power = pytest.importorskip("statsmodels.stats.power")
    for difference, deviation, queries, alpha in ((0.5, 1, 34, 0.05), (0.02, 0.2, 50, 0.001), (0.1, 0.2, 10, 3e-5)):
        expected = power.TTestPower().power(difference / deviation, queries, alpha)
        assert float(t_power(difference, deviation, queries, alpha)) == pytest.approx(expected, abs=1e-7)


def test_power_without_another_program() -> None:
    # Cohen's table 2.4.1: 34 pairs find d = .5 with power .8 at .05, 33 do not.
    assert float(t_power(0.5, 1.0, 34, 0.05)) > 0.8 > float(t_power(0.5, 1.0, 33, 0.05))
    assert float(t_power(0.0, 1.0, 20, 0.05)) == pytest.approx(0.05)
    assert float(t_power(3.0, 0.01, 20, 0.05)) == 1.0


def board() -> dict[str, dict[str, float]]:
    """Runs of 40 queries: `near` is `best` but for a hair, `far` is worse, `like` not to be told from `far`."""
    generator = np.random.default_rng(1)
    base = generator.uniform(0.3, 0.7, 40)
    rows = {
        "best": base,
        "near": base + generator.normal(0.0, 0.002, 40),
        "far": base - 0.2 + generator.normal(0, 0.1, 40),
        "like": base - 0.19 + generator.normal(0, 0.1, 40),
    }
    return {run: {f"q{i}": float(score) for i, score in enumerate(row)} for run, row in rows.items()}


def test_scores_beyond_one_need_a_smallest_difference() -> None:
    wide = {run: {query: 10 * score for query, score in row.items()} for run, row in board().items()}
    found = compare_runs(wide, "m")
    assert found.tests.smallest is None and not [pair for pair in found.pairs if pair.conclusion == "same"]
    said = "no pair is called the same: scores are not in [0, 1], and no smallest difference that matters was given"
    assert str(Comparisons({"m": found})).count(said) == 1
    inside = {run: {query: min(max(score, 0.0), 1.0) for query, score in row.items()} for run, row in board().items()}
    assert compare_runs(inside, "m").tests.smallest == 0.02


def test_what_is_better_by_too_little_is_said_so_in_the_first_line_too() -> None:
    near = {query: score - 0.001 for query, score in board()["best"].items()}
    found = compare_runs({**board(), "near": near}, "m", tests=Tests(smallest=0.02))
    assert found.said() == "best has the highest mean; better, by too little to matter, than: near"
    assert "worse by 0.0010, too little to matter" in str(Comparisons({"m": found}))
    against = compare_runs({**board(), "near": near}, "m", baseline="near", tests=Tests(smallest=0.02))
    assert against.said() == "better than near, by too little to matter: best; worse than near: far, like"


def test_the_table_of_all_measures_has_eight_columns() -> None:
    found = Comparisons({f"m{place}": compare_runs(board(), f"m{place}") for place in range(9)})
    *_, overview = found.report().tables
    assert len(overview.columns) == 8 and overview.notes == ["2 more measures above, in TSV and in JSON"]
    assert [str(cell.value)[-2:] for cell in overview.rows[0][1:]] == [" a"] * 7


def test_equal_runs_and_few_queries() -> None:
    same = {"a": {"q1": 0.5, "q2": 0.4}, "b": {"q1": 0.5, "q2": 0.4}}
    found = compare_runs(same, "m")
    assert found.pairs[0].said() == "the same on every query" and found.outlook is None
    assert found.said() == "a, b have the same, highest mean; not told apart from a: b"
    # Of runs that differ by the same everywhere nothing contradicts what the tests say.
    ten = {f"q{place}": place / 20 for place in range(10)}
    flat = Comparisons({"m": compare_runs({"a": ten, "b": {query: one + 0.1 for query, one in ten.items()}}, "m")})
    assert "told" not in str(flat)
    # No two scores from 0 to 1 differ by more than 1.
    high = {f"q{place}": 0.9 if place else 1.0 for place in range(9)}
    (most,) = compare_runs(
        {"a": dict.fromkeys(high, 0.0), "b": high | {"q0": 0.0}}, "m", tests=Tests(correction="none")
    ).pairs
    assert most.test.high == 1.0 and most.said() == f"better by {most.test.low:.3f} to 1.000"
    # Two runs are one pair, and one number is no range.
    assert str(flat).startswith("b is better than a\n") and "worse by 0.1000\n" in str(flat)
    assert "\nthe interval holds the difference with 95 % (sign flips of t)\n" in str(flat)
    plain = Comparisons(
        {"m": compare_runs({run: board()[run] for run in ("best", "far")}, "m", tests=Tests(correction="holm"))}
    )
    assert "\nthe interval holds the difference with 95 % (t-test)\n" in str(plain)
    more = compare_runs({run: {query: one + gap for query, one in ten.items()} for run, gap in OFF.items()}, "m")
    text = str(Comparisons({"m": more}))
    assert text.endswith("10 queries told 100 % of 3 pairs apart") and "noise" not in text
    # Runs without a score are named before anything is concluded of the others.
    named = compare_runs({**board(), "gone": {}}, "m", tests=Tests(smallest=0.02)).said()
    assert named == "of 4 runs with a score (gone has none): best has the highest mean; not told apart from it: near"
    with pytest.raises(InputError, match="m: gone has no score to compare with"):
        compare_runs({**board(), "gone": {}}, "m", baseline="gone")
    with pytest.raises(InputError, match=r"1 run with per-query scores \(a without\); a comparison needs two"):
        compare_runs({"a": {}, "b": {"q": 1.0}}, "m")
    one = compare_runs({"a": {"q1": 0.5}, "b": {"q1": 0.9}}, "m").pairs[0]
    assert (one.conclusion, one.more_queries, one.said()) == ("undecided", None, "not known: 1 query only")
    nine = {run: {query: row[query] for query in [*row][:9]} for run, row in board().items()}
    few = compare_runs(nine, "m")
    assert few.outlook is None and {pair.more_queries for pair in few.pairs} == {None}
