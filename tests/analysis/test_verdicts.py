"""Tests of verdicts on pairs of runs, and of what more queries would do, against other programs and by hand."""

import itertools

import numpy as np
import pytest

from rubric_measures.analysis.comparison import (
    compare_runs,
    equivalence_p,
    equivalence_power,
    outlook,
    t_power,
    variance_components,
    verdicts,
)
from rubric_measures.analysis.resampling import adjust, one_sided_flips
from rubric_measures.base.errors import InputError


def test_equivalence_by_hand() -> None:
    # d̄ = .005, s² = ((.005)² + (.015)² + (.015)² + (.005)²) / 3 = .0005 / 3, s/√4 = .0064550;
    # t = (.005 - .05) / .0064550 = -6.9714 = -x √3, x = 4.0249; with 3 degrees of freedom
    # p = 1/2 - (x / (1 + x²) + atan x) / π = .5 - (.23401 + 1.32727) / π = .00303.
    assert equivalence_p([0.01, -0.01, 0.02, 0.0], 0.05) == pytest.approx(0.00303, abs=1e-5)
    # A run that is the same everywhere: the signs of four queries, 1 of 16.
    assert equivalence_p([0.01] * 4, 0.05) == 1 / 16
    assert equivalence_p([0.05] * 4, 0.05) == 1.0
    assert equivalence_p([0.01], 0.05) is None


def test_equivalence_as_statsmodels() -> None:
    weightstats = pytest.importorskip("statsmodels.stats.weightstats")
    generator = np.random.default_rng(0)
    for queries, smallest in ((5, 0.1), (50, 0.02), (50, 0.3)):
        a, b = generator.normal(size=(2, queries)) * 0.1
        expected = weightstats.ttost_paired(a, b, -smallest, smallest)[0]
        assert equivalence_p(a - b, smallest) == pytest.approx(expected, rel=1e-9)


def test_one_sided_flips_are_enumerated() -> None:
    differences = np.array([[0.3, -0.1], [0.1, 0.2], [0.2, 0.05]])
    signs = np.array(list(itertools.product([1, -1], repeat=3)))
    expected = [(signs @ column >= column.sum() - 1e-12).mean() for column in differences.T]
    assert one_sided_flips(differences).tolist() == expected


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


def test_power_of_equivalence_as_an_integral() -> None:
    from scipy import integrate, stats

    for d, sigma, n, alpha, smallest in ((0.0, 0.1, 100, 0.05, 0.03), (0.01, 0.1, 12, 0.05, 0.1)):
        reach = stats.t.ppf(1 - alpha, n - 1) / np.sqrt(n)

        def inside(s, d=d, sigma=sigma, n=n, reach=reach, smallest=smallest):
            error = sigma / np.sqrt(n)
            ends = (smallest - reach * s - d) / error, (reach * s - smallest - d) / error
            gap = stats.norm.cdf(ends[0]) - stats.norm.cdf(ends[1])
            return max(gap, 0.0) * stats.chi.pdf(s / sigma * np.sqrt(n - 1), n - 1) * np.sqrt(n - 1) / sigma

        expected = integrate.quad(inside, 0, smallest / reach, limit=200)[0]
        assert float(equivalence_power(d, sigma, n, alpha, smallest)) == pytest.approx(expected, abs=2e-4)


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


def test_verdicts_of_a_board() -> None:
    found = compare_runs(board(), "m", smallest=0.02)
    said = {frozenset((pair.first, pair.second)): pair.verdict for pair in found.pairs}
    concluded = {key: one.conclusion for key, one in said.items()}
    far = {frozenset((a, b)) for a in ("best", "near") for b in ("far", "like")}
    assert {key for key, word in concluded.items() if word == "better"} == far
    assert said[frozenset(("best", "near"))].within
    open_pair = said[frozenset(("far", "like"))]
    assert open_pair.conclusion == "undecided"
    assert 0 < open_pair.more_queries <= open_pair.at_most
    # The level is that of Holm's next pair, and the number the least that has the power.
    pair = next(one for one in found.pairs if one.verdict is open_pair)
    d = np.array([board()[pair.first][q] - board()[pair.second][q] for q in board()["far"]])
    decided = sum(one.significant for one in found.pairs)
    same = sum(one.verdict.within for one in found.pairs)
    levels = 0.05 / (6 - decided), 0.05 / (6 - same)

    def power(n):
        return max(
            float(t_power(d.mean(), d.std(ddof=1), n, levels[0])),
            float(equivalence_power(d.mean(), d.std(ddof=1), n, levels[1], 0.02)),
        )

    needed = 40 + open_pair.more_queries
    assert needed == 40 + open_pair.at_most or power(needed) >= 0.8 > power(needed - 1)
    assert [one.p_same for one in said.values()] == adjust(
        [equivalence_p([board()[p.first][q] - board()[p.second][q] for q in sorted(board()["far"])], 0.02)
         for p in found.pairs]
    )  # fmt: skip


def test_at_most_decides_whatever_the_mean_is() -> None:
    from scipy import stats

    base = np.random.default_rng(3).normal(0, 0.1, 30)
    base -= base.mean()
    (one,) = verdicts([base + 0.02], [0.5], "holm", smallest=0.02)
    n = 30 + one.at_most
    s = base.std(ddof=1)
    half = stats.t.ppf(0.975, n - 1) * s / np.sqrt(n) + stats.t.ppf(0.95, n - 1) * s / np.sqrt(n)
    before = stats.t.ppf(0.975, n - 2) * s / np.sqrt(n - 1) + stats.t.ppf(0.95, n - 2) * s / np.sqrt(n - 1)
    assert half <= 0.02 < before
    # A true difference of just δ is never shown to be smaller, so nothing decides sooner than a difference does.
    assert one.more_queries == min(one.at_most, one.more_queries)


def test_permutation_and_baseline() -> None:
    found = compare_runs(board(), "m", baseline="best", smallest=0.02, test="permutation", rounds=2000)
    said = {pair.first: pair.verdict.conclusion for pair in found.pairs}
    assert said["far"] == said["like"] == "worse"
    assert {pair.first: pair.verdict.within for pair in found.pairs} == {"far": False, "like": False, "near": True}


@pytest.mark.parametrize("smallest", [0.0, -1.0, float("inf"), float("nan")])
def test_what_is_no_smallest_difference(smallest) -> None:
    with pytest.raises(InputError, match="above 0"):
        compare_runs(board(), "m", smallest=smallest)


def test_equal_runs_and_one_query() -> None:
    same = {"a": {"q1": 0.5, "q2": 0.4}, "b": {"q1": 0.5, "q2": 0.4}}
    found = compare_runs(same, "m", smallest=0.02)
    # Two queries: 1 of 4 signs, no conclusion; none of them says how many more.
    assert (found.pairs[0].verdict.conclusion, found.pairs[0].verdict.p_same) == ("undecided", 0.25)
    assert found.outlook.expected is None and found.outlook.needed == ()
    one = compare_runs({"a": {"q1": 0.5}, "b": {"q1": 0.9}}, "m", smallest=0.02)
    assert one.pairs[0].verdict.conclusion == "undecided" and one.pairs[0].verdict.more_queries is None


def test_the_outlook_grows_with_queries() -> None:
    generator = np.random.default_rng(5)
    runs, queries = 12, 40
    table = 0.1 * generator.normal(size=runs) + 0.2 * generator.normal(size=(queries, runs))
    first, second = np.triu_indices(runs, 1)
    differences = list((table[:, first] - table[:, second]).T)
    found = outlook(differences, [False] * len(differences), "holm", variance_components(table))
    needed = [queries for _, queries in found.needed]
    assert needed == sorted(needed) and 0 < found.expected < 1
    assert [share for share, _ in found.needed] == [0.5, 0.75, 0.9, 0.95]
    # Without a correction fewer do.
    bare = outlook(differences, [False] * len(differences), "none", variance_components(table))
    assert all(a <= b for (_, a), (_, b) in zip(bare.needed, found.needed, strict=True))
