"""Tests of the leaderboard of graders: scikit-learn, krippendorff, resampled documents, clamping."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from rubric_measures.analysis.agreement import LabelSource, compare_sources, rates_columns
from rubric_measures.analysis.resampling import Drawn, Draws
from rubric_measures.base.errors import InputError


def made(graders: int = 3, queries: int = 12, seed: int = 0):
    """Truth and graders, each better than the one before, as label sources over 10 documents a query."""
    generator = np.random.default_rng(seed)
    keys = [(f"q{i // 10}", f"d{i}") for i in range(10 * queries)]
    truth = generator.integers(0, 4, len(keys))
    sources = [LabelSource("truth", dict(zip(keys, truth.tolist(), strict=True)))]
    for place in range(graders):
        said = np.where(generator.random(len(keys)) < 0.3 + 0.3 * place, truth, generator.integers(0, 4, len(keys)))
        sources.append(LabelSource(f"grader {place}", dict(zip(keys, said.tolist(), strict=True))))
    return sources


pairs = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=40)


@settings(max_examples=60, deadline=None)
@given(pairs)
def test_statistics_are_those_of_other_packages(labels) -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    package = pytest.importorskip("krippendorff")
    keys = [("q", str(place)) for place in range(len(labels))]
    truth, said = ([pair[side] for pair in labels] for side in (0, 1))
    grader = LabelSource("grader", dict(zip(keys, said, strict=True)))
    held = LabelSource("truth", dict(zip(keys, truth, strict=True)))
    (row,) = compare_sources([held, grader], scale=range(4), draws=Draws(0)).rows
    values = {name: interval.estimate for name, interval in row.statistics.items()}
    assert row.documents == len(labels)
    assert values["exact_match"] == pytest.approx(metrics.accuracy_score(truth, said))
    assert values["bias"] == pytest.approx(np.mean(np.subtract(said, truth)))
    if len({*truth, *said}) > 1:
        for name, weights in (("kappa", None), ("quadratic_kappa", "quadratic")):
            expected = metrics.cohen_kappa_score(truth, said, labels=range(4), weights=weights)
            assert values[name] == pytest.approx(expected, abs=1e-9)
        for level in ("nominal", "ordinal"):
            expected = package.alpha(reliability_data=np.array([truth, said], float), level_of_measurement=level)
            assert values[f"alpha_{level}"] == pytest.approx(expected, abs=1e-9)
    else:
        assert values["kappa"] is values["alpha_nominal"] is None
    assert [(one.truth, one.grader) for one in row.cutoffs] == [(1, 1), (2, 2), (3, 3)]
    for one in row.cutoffs:
        level = one.truth
        x, y = np.array(truth) >= level, np.array(said) >= level
        assert [one.both, one.truth_only, one.grader_only, one.neither] == [
            (x & y).sum(), (x & ~y).sum(), (~x & y).sum(), (~x & ~y).sum()
        ]  # fmt: skip
        for name, defined, value in (
            ("tpr", x.any(), lambda x=x, y=y: metrics.recall_score(x, y)),
            ("tnr", not x.all(), lambda x=x, y=y: metrics.recall_score(x, y, pos_label=False)),
            ("f1", (x | y).any(), lambda x=x, y=y: metrics.f1_score(x, y)),
            ("kappa", len({*x, *y}) > 1, lambda x=x, y=y: metrics.cohen_kappa_score(x, y)),
        ):
            assert getattr(one, name).estimate == (pytest.approx(value(), abs=1e-9) if defined else None)


def test_rates_by_hand() -> None:
    # 3 positives found and 1 missed, 2 false alarms, 4 that are none.
    found = rates_columns(np.array([[[3.0, 1.0], [2.0, 4.0]]]))
    assert [found[name].tolist() for name in ("tpr", "tnr", "f1")] == [[3 / 4], [4 / 6], [6 / 9]]


def test_simultaneous_intervals_of_differences() -> None:
    generator = np.random.default_rng(1)
    shared = generator.normal(0, 0.1, 500)
    drawn = np.stack([0.5 + shared, 0.5 + shared, 0.52 + shared + generator.normal(0, 0.02, 500)], axis=1)
    estimates = np.array([0.5, 0.5, 0.52])

    one = Drawn(estimates, drawn, drawn[:0], 500, Draws())
    found = one.reaches()
    # The first two are equal in every round; both differ from the third by one standard deviation. By definition:
    gaps = drawn[:, 0] - drawn[:, 2]
    sizes = np.abs(gaps + 0.02) / gaps.std(ddof=1)
    # Of 501 with the data less than 5 % are as large: 25, so 24 rounds.
    limit = np.sort(sizes)[-25]
    expected = stats.t.isf(stats.norm.sf(limit), 499) * gaps.std(ddof=1) * np.sqrt(500 / 499)
    assert found[0] == pytest.approx([0.0, 0.0, expected], abs=1e-9) and (found == found.T).all()
    assert not one.apart().any()
    far = np.stack([drawn[:, 0], drawn[:, 2] + 0.38, shared], axis=1)
    apart = Drawn(np.array([0.5, 0.9, np.nan]), far, far[:0], 500, Draws()).apart()
    assert apart.tolist() == [[False, True, False], [True, False, False], [False, False, False]]


def test_graders_are_ranked_and_grouped() -> None:
    sources = made(queries=40)
    twin = LabelSource("twin", sources[3].labels)
    board = compare_sources([*sources, twin], draws=Draws(500))
    assert [row.name for row in board.rows] == ["grader 2", "twin", "grader 1", "grader 0"]
    assert board.groups == (("grader 2", "twin"),)
    assert board.scale == (0, 3)
    turned = compare_sources([sources[0], twin, *reversed(sources[1:])], draws=Draws(500))
    assert [row.statistics for row in turned.rows] == [row.statistics for row in board.rows]
    bare = compare_sources(sources, draws=Draws(0))
    assert bare.groups == () and bare.rows[0].statistics["kappa"].low is None
    with pytest.raises(InputError, match="truth and stranger label no common document: q0/d0 against q0/other"):
        compare_sources([*sources, LabelSource("stranger", {("q0", "other"): 1})], draws=Draws(0))
