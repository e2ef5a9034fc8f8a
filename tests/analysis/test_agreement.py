"""Tests of agreement: scikit-learn, krippendorff, published values, real labels, undefined cases."""

import gzip

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from rubric_measures.analysis.agreement import (
    LabelSource,
    alpha_intervals,
    compare_sources,
)
from rubric_measures.analysis.resampling import Draws
from rubric_measures.base.errors import InputError
from tests.shared_data import shared_data


@settings(max_examples=100, deadline=None)
@given(st.lists(st.lists(st.sampled_from([None, 0, 1, 2, 5]), min_size=3, max_size=3), min_size=2, max_size=15))
def test_alpha_is_krippendorffs(units) -> None:
    package = pytest.importorskip("krippendorff")
    matrix = np.array([[np.nan if value is None else value for value in unit] for unit in units], dtype=float).T
    usable = matrix[:, (~np.isnan(matrix)).sum(axis=0) >= 2]
    assume(usable.size)
    several = len(np.unique(usable[~np.isnan(usable)])) > 1
    ours = alpha_intervals(matrix, ["q"] * len(units), Draws(0))
    for level in ("nominal", "ordinal"):
        if several:
            expected = package.alpha(reliability_data=usable, level_of_measurement=level)
            assert ours[level].estimate == pytest.approx(expected, abs=1e-9)
        else:
            assert ours[level].estimate is None


def test_alpha_of_krippendorffs_published_example() -> None:
    # Krippendorff (2011), example C: four observers, twelve units, missing labels. Nominal .743, ordinal .815.
    none = np.nan
    ratings = [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, none, none, none],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, none, 3],
        [none, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, none],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, none],
    ]
    found = alpha_intervals(np.array(ratings), ["q"] * 12, Draws(0))
    assert found["nominal"].estimate == pytest.approx(0.743, abs=5e-4)
    assert found["ordinal"].estimate == pytest.approx(0.815, abs=5e-4)


def test_bias_is_the_grader_less_the_truth_with_the_limits_of_bland_and_altman() -> None:
    # Grader − truth: 1, −1, 0, 2: mean .5, squares about it .25 + 2.25 + .25 + 2.25 = 5, sd = sqrt(5/3) = 1.2910
    truth, grader = (
        LabelSource(name, {("q", str(place)): label for place, label in enumerate(labels)})
        for name, labels in (("truth", [1, 2, 1, 1]), ("grader", [2, 1, 1, 3]))
    )
    for sources, place in (([truth, grader], 0), ([grader, truth], 1)):
        found = compare_sources(sources, draws=Draws(0), truth=place)
        [row] = found.rows
        assert row.name == "grader" and row.statistics["bias"].estimate == 0.5
        assert row.limits == pytest.approx((0.5 - 1.96 * 1.29099, 3.0303), abs=1e-4)
        assert "bias: mean of grader − truth" in str(found)
        # The truth is above, as in every other table.
        assert row.confusion == ((1, 1, 1), (1, 0, 0), (0, 0, 0)) and "truth \\ grader" in str(found)
    one = {("q", "0"): 1}
    assert compare_sources([LabelSource("a", one), LabelSource("b", one)], draws=Draws(0)).rows[0].limits is None


def test_rag25_human_against_llm_labels() -> None:
    sources = []
    for name in ("qrels.rag25.test.txt.gz", "qrels.rag25.test-umbrela2.txt.gz"):
        with gzip.open(shared_data("rag25") / name, "rt") as stream:
            rows = [line.split() for line in stream]
        sources.append({(query_id, doc_id): int(relevance) for query_id, _, doc_id, relevance in rows})
    assessors, model = sources
    assert assessors.keys() == model.keys()
    assert len(assessors) == 10284
    found = compare_sources(
        [LabelSource("assessors", assessors), LabelSource("model", model)], [(2, 2)], draws=Draws(0)
    )
    [row] = found.rows
    assert row.statistics["kappa"].estimate == pytest.approx(0.2333, abs=5e-5)
    assert row.statistics["quadratic_kappa"].estimate == pytest.approx(0.4918, abs=5e-5)
    assert row.statistics["alpha_ordinal"].estimate == pytest.approx(0.4926, abs=5e-5)
    assert row.cutoffs[0].kappa.estimate == pytest.approx(0.4310, abs=5e-5)


def test_a_label_that_is_a_slip_is_named_and_fills_no_memory() -> None:
    labels = {("q", f"d{place}"): place % 3 for place in range(9)}
    judge, slip = LabelSource("judge", labels), LabelSource("slip", {**labels, ("q", "d8"): 1000})
    with pytest.raises(InputError, match="slip: labels from 0 to 1000 are too many for agreement, which takes 200"):
        compare_sources([slip, judge])
    with pytest.raises(InputError, match="the scale: labels from 0 to 1000"):
        compare_sources([judge, slip], scale=range(1001))
    # Outside the scale of the truth it is one label more.
    assert compare_sources([judge, slip]).rows[0].documents == 9
    with pytest.raises(InputError, match="slip: labels from 0 to 1000000 are too many"):
        compare_sources([judge, LabelSource("slip", {**labels, ("q", "d8"): 1_000_000})])


def test_quadratic_weights_are_distances_of_labels_not_of_positions() -> None:
    # Labels 0, 1, 5. a = 0 1 5, b = 1 1 5: one disagreement of 1² among 3.
    # Chance: rows (1,1,1), columns (0,2,1): Σ n_i m_j (l_i − l_j)² / 3 = (2·1 + 25 + 16 + 2·16) / 3 = 75 / 3 = 25.
    first, second = (
        LabelSource(name, {("q", f"d{place}"): label for place, label in enumerate(labels)})
        for name, labels in (("a", [0, 1, 5]), ("b", [1, 1, 5]))
    )
    found = compare_sources([first, second], draws=Draws(0))
    assert found.rows[0].statistics["quadratic_kappa"].estimate == pytest.approx(1 - 1 / 25)
