"""Tests of rank correlation: published values, scipy, definitions by enumeration, ties, what is undefined."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from rubric_measures.analysis.coefficients import correlate, rbo_batch

# The worked data of Urbano and Marrero's reference implementation (ircor), with the values it publishes.
X1 = [0.897, 0.372, 0.908, 0.898, 0.661, 0.062, 0.177, 0.384, 0.498, 0.992]
Y1 = [0.82, 0.406, 0.817, 0.953, 0.673, 0.073, 0.364, 0.547, 0.589, 0.988]
X1_TIES = [0.9, 0.4, 0.9, 0.9, 0.7, 0.1, 0.2, 0.4, 0.5, 1]
Y1_TIES = [0.8, 0.4, 0.8, 1, 0.7, 0.1, 0.4, 0.5, 0.6, 1]
X2 = [0.266, 0.573, 0.202, 0.945, 0.629, 0.206, 0.687, 0.77, 0.718, 0.38]
Y2 = [0.263, 0.843, 0.728, 0.928, 0.08, 0.114, 0.467, 0.641, 0.973, 0.644]
X2_TIES = [0.3, 0.6, 0.2, 0.9, 0.6, 0.2, 0.7, 0.8, 0.7, 0.4]
Y2_TIES = [0.3, 0.8, 0.7, 0.9, 0.1, 0.1, 0.5, 0.6, 1, 0.6]
X3 = [0.185, 0.573, 0.944, 0.129, 0.468, 0.553, 0.761, 0.405, 0.976, 0.445]
Y3 = [0.845, 0.272, 0.275, 0.924, 0.605, 0.334, 0.162, 0.872, 0.018, 0.25]
X3_TIES = [0.2, 0.6, 0.9, 0.1, 0.5, 0.6, 0.8, 0.4, 1, 0.4]
Y3_TIES = [0.8, 0.3, 0.3, 0.9, 0.6, 0.3, 0.2, 0.9, 0, 0.2]


def value(x, y, name):
    return correlate(x, y, name).value


@pytest.mark.parametrize(
    ("x", "y", "name", "expected"),
    [
        (X1, Y1, "tau_ap", 0.8519),
        (X2, Y2, "tau_ap", 0.2504),
        (X3, Y3, "tau_ap", -0.6971),
        (X1, Y1_TIES, "tau_ap", 0.7454),
        (X2, Y2_TIES, "tau_ap", 0.2692),
        (X3, Y3_TIES, "tau_ap", -0.5558),
        (X1, Y1, "tau_ap_b", 0.8333),
        (X2, Y2, "tau_ap_b", 0.2880),
        (X3, Y3, "tau_ap_b", -0.668),
        (X1_TIES, Y1_TIES, "tau_ap_b", 0.7321),
        (X2_TIES, Y2_TIES, "tau_ap_b", 0.297),
        (X3_TIES, Y3_TIES, "tau_ap_b", -0.7047),
        (X1_TIES, Y1_TIES, "kendall", 0.9398),
        (X2_TIES, Y2_TIES, "kendall", 0.3765),
        (X3_TIES, Y3_TIES, "kendall", -0.6510),
    ],
)
def test_published_values(x, y, name, expected) -> None:
    assert value(x, y, name) == pytest.approx(expected, abs=5e-5)
    if name in ("tau_ap_b", "kendall"):
        assert value(y, x, name) == pytest.approx(expected, abs=5e-5)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3)), min_size=3, max_size=12))
def test_kendall_spearman_pearson_are_scipys(pairs) -> None:
    x, y = ([float(pair[side]) for pair in pairs] for side in (0, 1))
    for name, theirs in (("kendall", stats.kendalltau), ("spearman", stats.spearmanr), ("pearson", stats.pearsonr)):
        ours = correlate(x, y, name)
        if len(set(x)) == 1 or len(set(y)) == 1:
            assert ours.value is None
            assert ours.p_value is None
            assert "tied" in ours.reason
        else:
            expected = theirs(x, y)
            assert ours.value == pytest.approx(float(expected.statistic), abs=1e-12)
            assert ours.p_value == pytest.approx(float(expected.pvalue), abs=1e-12)


def tau_ap_by_definition(x, order) -> float:
    """2/(n−1) Σ_i C(i)/(i−1) − 1 for one order of the estimated ranking, no ties."""
    total = 0.0
    for place in range(1, len(order)):
        above = sum(1 for other in order[:place] if x[other] > x[order[place]])
        total += above / place
    return 2.0 * total / (len(order) - 1) - 1.0


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_tau_ap_with_ties_is_the_mean_over_all_orders(data) -> None:
    runs = data.draw(st.integers(2, 6))
    x = data.draw(st.permutations(range(runs)))
    y = data.draw(st.lists(st.integers(0, 3), min_size=runs, max_size=runs))
    orders = [
        order
        for order in itertools.permutations(range(runs))
        if all(y[order[i]] >= y[order[i + 1]] for i in range(runs - 1))
    ]
    expected = sum(tau_ap_by_definition(x, order) for order in orders) / len(orders)
    ours = correlate(list(map(float, x)), list(map(float, y)), "tau_ap").value
    if len(set(y)) == 1:
        assert ours is None
    else:
        assert ours == pytest.approx(expected, abs=1e-12)


def rbo_by_definition(order_x, order_y, p) -> float:
    """Σ over a thousand depths of (1−p) p^(d−1) A_d; past the last run both rankings hold the same runs, A_d = 1."""
    runs, total = len(order_x), 0.0
    for depth in range(1, 1001):
        agreement = len(set(order_x[:depth]) & set(order_y[:depth])) / depth if depth <= runs else 1.0
        total += (1 - p) * p ** (depth - 1) * agreement
    return total


def all_orders(scores):
    runs = len(scores)
    return [
        order
        for order in itertools.permutations(range(runs))
        if all(scores[order[i]] >= scores[order[i + 1]] for i in range(runs - 1))
    ]


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=4))
def test_rbo_a_is_the_mean_over_all_orders(pairs) -> None:
    x, y = ([float(pair[side]) for pair in pairs] for side in (0, 1))
    combos = [rbo_by_definition(a, b, 0.9) for a in all_orders(x) for b in all_orders(y)]
    ours = float(rbo_batch(np.array([x]), np.array([y]))[0])
    assert ours == pytest.approx(sum(combos) / len(combos), abs=1e-9)


def test_tau_ap_refuses_ties_in_the_official_ranking() -> None:
    result = correlate([1.0, 1.0, 2.0], [1.0, 2.0, 3.0], "tau_ap")
    assert result.value is None
    assert "tau_ap_b" in result.reason


@pytest.mark.parametrize(
    ("y", "expected"),
    [
        ([4.0, 3.0, 2.0, 1.0], 1.0),
        ([1.0, 2.0, 3.0, 4.0], -1.0),
        # Runs A B C D have .9 .5 .45 .2. Order A C B D: C .45/.45, B .4/(.4 + .05), D 1.25/1.25: 2/3 (1 + 8/9 + 1) − 1
        ([0.8, 0.5, 0.6, 0.1], 25 / 27),
        # Order B A C D, a swap over the larger gap: A 0/.4, C (.45 + .05)/.5, D 1: 2/3 (0 + 1 + 1) − 1
        ([0.6, 0.8, 0.4, 0.1], 1 / 3),
        # B and C are tied: neither is above the other, so all that is ordered is right.
        ([0.8, 0.5, 0.5, 0.1], 1.0),
    ],
)
def test_tau_gap_weighs_pairs_by_the_gap_between_the_true_scores(y, expected) -> None:
    official = [0.9, 0.5, 0.45, 0.2]
    assert value(official, y, "tau_gap") == pytest.approx(expected, abs=1e-12)
    assert value([10 * score + 3 for score in official], y, "tau_gap") == pytest.approx(expected, abs=1e-12)


def test_tau_gap_leaves_out_runs_that_are_tied_with_all_above_in_truth() -> None:
    # y orders A B C; A and B have .5 in truth, C .1. B has no gap above and does not count; C has .4 + .4, both right.
    assert value([0.5, 0.5, 0.1], [3.0, 2.0, 1.0], "tau_gap") == 1.0
    # y orders C A B: A has the wrong gap to C, B that and none to A: 2/2 (0 + 0) − 1
    assert value([0.5, 0.5, 0.1], [2.0, 1.0, 3.0], "tau_gap") == -1.0
