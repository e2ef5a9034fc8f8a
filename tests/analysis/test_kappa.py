"""Tests of Cohen's κ: against scikit-learn, by hand, at cutoffs, with intervals over queries."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rubric_measures.analysis.agreement import agreement, binary_agreement, confusion
from rubric_measures.analysis.label_sources import compare_sources
from rubric_measures.analysis.resampling import Draws
from rubric_measures.measures.labels import LabelSource

labels = st.lists(st.tuples(st.integers(-1, 4), st.integers(-1, 4)), min_size=1, max_size=40)


@settings(max_examples=100, deadline=None)
@given(labels)
def test_kappas_are_scikit_learns(pairs) -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    a, b = ([pair[side] for pair in pairs] for side in (0, 1))
    ours = agreement(a, b)
    # scikit-learn weighs by position: the full scale makes position and label the same distance.
    scale = list(range(-1, 5))
    for value, weights in ((ours.kappa, None), (ours.quadratic_kappa, "quadratic")):
        if len({*a, *b}) == 1:
            assert value is None
        else:
            expected = metrics.cohen_kappa_score(a, b, labels=scale, weights=weights)
            assert value == pytest.approx(expected, abs=1e-9)
    assert np.array_equal(confusion(a, b, scale), metrics.confusion_matrix(a, b, labels=scale))
    assert ours.exact_match == pytest.approx(metrics.accuracy_score(a, b))


def test_quadratic_weights_are_distances_of_labels_not_of_positions() -> None:
    # Labels 0, 1, 5. a = 0 1 5, b = 1 1 5: one disagreement of 1² among 3.
    # Chance: rows (1,1,1), columns (0,2,1): Σ n_i m_j (l_i − l_j)² / 3 = (2·1 + 25 + 16 + 2·16) / 3 = 75 / 3 = 25.
    assert agreement([0, 1, 5], [1, 1, 5]).quadratic_kappa == pytest.approx(1 - 1 / 25)


def test_binary_agreement() -> None:
    a, b = [0, 3, 4, 5, 5], [0, 2, 1, 2, 3]
    result = binary_agreement(a, b, 4, 2)
    assert (result.both, result.only_a, result.only_b, result.neither) == (2, 1, 1, 1)
    assert result.exact_match == 0.6
    # p_e = (3·3 + 2·2)/25 = .52; κ = (.6 − .52)/.48 = 1/6
    assert result.kappa == pytest.approx(1 / 6)
    assert binary_agreement(a, b, 9, 9).kappa is None


def test_kappa_interval_resamples_queries() -> None:
    generator = np.random.default_rng(0)
    a = generator.integers(0, 3, 200)
    b = np.where(generator.random(200) < 0.6, a, generator.integers(0, 3, 200))
    keys = [(f"t{i % 10}", str(i)) for i in range(200)]
    rows = list(zip(keys, a.tolist(), b.tolist(), strict=True))

    def intervals(rows):
        sources = [LabelSource(name, {key: labels[side] for key, *labels in rows}) for side, name in enumerate("ab")]
        return compare_sources(sources, draws=Draws(500)).intervals

    found = intervals(rows)
    assert found["kappa"].estimate == pytest.approx(agreement(a, b).kappa)
    assert found["kappa"].low < found["kappa"].estimate < found["kappa"].high
    assert intervals([rows[i] for i in generator.permutation(200)]) == found
    assert intervals([(("1", "x"), 1, 1), (("2", "x"), 1, 1)])["kappa"].estimate is None
