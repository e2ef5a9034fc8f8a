"""Tests of the leaderboard of judges: scikit-learn, krippendorff, AC1 by hand, resampled documents, clamping."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rubric_measures.analysis.agreement import agreement, gwet_ac1
from rubric_measures.analysis.label_sources import Judge, compare_sources, judge_board
from rubric_measures.analysis.leaderboards import RunScores, equal_boards
from rubric_measures.analysis.resampling import Drawn, Draws, bootstrap_counts
from rubric_measures.base.errors import InputError
from rubric_measures.measures.labels import LabelSource
from rubric_measures.types.scales import parse_scale


def made(judges: int = 3, queries: int = 12, seed: int = 0):
    """Truth and judges, each better than the one before, as label sources over 10 documents a query."""
    generator = np.random.default_rng(seed)
    keys = [(f"q{i // 10}", f"d{i}") for i in range(10 * queries)]
    truth = generator.integers(0, 4, len(keys))
    sources = [LabelSource("truth", dict(zip(keys, truth.tolist(), strict=True)))]
    for place in range(judges):
        said = np.where(generator.random(len(keys)) < 0.3 + 0.3 * place, truth, generator.integers(0, 4, len(keys)))
        sources.append(LabelSource(f"judge {place}", dict(zip(keys, said.tolist(), strict=True))))
    return sources


pairs = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=40)


@settings(max_examples=60, deadline=None)
@given(pairs)
def test_statistics_are_those_of_other_packages(labels) -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    package = pytest.importorskip("krippendorff")
    keys = [("q", str(place)) for place in range(len(labels))]
    truth, said = ([pair[side] for pair in labels] for side in (0, 1))
    judge = Judge("judge", dict(zip(keys, said, strict=True)))
    (row,) = judge_board(Judge("truth", dict(zip(keys, truth, strict=True))), [judge], (0, 3), [], Draws(0)).rows
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
    assert list(row.cutoffs) == [(1, 1), (2, 2), (3, 3)]
    for (level, _), rates in row.cutoffs.items():
        x, y = np.array(truth) >= level, np.array(said) >= level
        for name, defined, value in (
            ("tpr", x.any(), lambda x=x, y=y: metrics.recall_score(x, y)),
            ("tnr", not x.all(), lambda x=x, y=y: metrics.recall_score(x, y, pos_label=False)),
            ("f1", (x | y).any(), lambda x=x, y=y: metrics.f1_score(x, y)),
            ("kappa", len({*x, *y}) > 1, lambda x=x, y=y: metrics.cohen_kappa_score(x, y)),
        ):
            assert rates[name].estimate == (pytest.approx(value(), abs=1e-9) if defined else None)


def test_ac1_by_hand() -> None:
    # Two labels, n = 100: both yes 90, yes/no 5, no/yes 5, both no 0. p_o = .9; π_yes = (95 + 95) / 200 = .95;
    # p_e = 2 · .95 · .05 / (2 − 1) = .095; AC1 = (.9 − .095) / .905 = .88950. κ of the same table is below 0.
    table = np.array([[[90.0, 5.0], [5.0, 0.0]]])
    assert gwet_ac1(table)[0] == pytest.approx(0.889503, abs=1e-6)
    # Three labels, n = 4: pairs 0/0, 1/1, 2/2, 0/1: p_o = .75; π = 3/8, 3/8, 2/8;
    # p_e = (15/64 + 15/64 + 12/64) / 2 = .328125; AC1 = .421875 / .671875 = .627907.
    table = np.array([[[1.0, 1, 0], [0, 1, 0], [0, 0, 1]]])
    assert gwet_ac1(table)[0] == pytest.approx(0.627907, abs=1e-6)
    assert np.isnan(gwet_ac1(np.array([[[3.0]]]))[0])


def test_intervals_are_those_of_resampled_documents() -> None:
    """κ, α and the TPR of a cutoff, computed by other packages from the documents of the queries that were drawn."""
    metrics = pytest.importorskip("sklearn.metrics")
    sources = made(1, queries=6)
    result = compare_sources(sources, [(2, 2)], draws=Draws(40, 3))
    documents = [[key for key in sources[0].labels if key[0] == f"q{query}"] for query in range(6)]
    statistics = {
        "kappa": metrics.cohen_kappa_score,
        "alpha_ordinal": lambda x, y: agreement(x, y).alpha_ordinal,
        "tpr": lambda x, y: metrics.recall_score(np.array(x) >= 2, np.array(y) >= 2),
        "cut kappa": lambda x, y: metrics.cohen_kappa_score(np.array(x) >= 2, np.array(y) >= 2),
    }
    samples = [*bootstrap_counts(6, 40, 3).astype(int), *(1 - np.eye(6, dtype=int)), np.ones(6, dtype=int)]
    (row,) = result.judges.rows
    for name, statistic in statistics.items():
        values = []
        for counts in samples:
            keys = [key for times, group in zip(counts, documents, strict=True) for key in group * times]
            values.append(statistic(*([source.labels[key] for key in keys] for source in sources)))
        columns = (np.array(some)[:, None] for some in (values[:40], values[40:46]))
        (expected,) = Drawn(np.array(values[-1:]), *columns, 6, Draws()).intervals()
        found = {
            **row.statistics,
            "tpr": row.cutoffs[2, 2]["tpr"],
            "cut kappa": result.cutoffs[0].interval,
        }[name]
        for part in ("estimate", "low", "high"):
            assert getattr(found, part) == pytest.approx(getattr(expected, part), abs=1e-9)
        if name in result.intervals:
            assert result.intervals[name] == found
    # With two sources α of all is that of the pair.
    assert result.alphas["ordinal"].low == pytest.approx(row.statistics["alpha_ordinal"].low)
    assert result.alphas["ordinal"].estimate == pytest.approx(row.statistics["alpha_ordinal"].estimate)


def test_simultaneous_p_values() -> None:
    generator = np.random.default_rng(1)
    shared = generator.normal(0, 0.1, 500)
    drawn = np.stack([0.5 + shared, 0.5 + shared, 0.52 + shared + generator.normal(0, 0.02, 500)], axis=1)
    estimates = np.array([0.5, 0.5, 0.52])

    def p_values(estimates, drawn):
        return Drawn(estimates, drawn, drawn[:0], 500, Draws()).apart()

    found = p_values(estimates, drawn)
    # The first two are equal in every round; both differ from the third by one standard deviation. By definition:
    gaps = drawn[:, 0] - drawn[:, 2]
    reach = np.abs(gaps + 0.02) / gaps.std(ddof=1)
    expected = (1 + (reach >= 0.02 / gaps.std(ddof=1)).sum()) / 501
    assert (found[0, 1], found[0, 2], found[1, 2]) == (1.0, pytest.approx(expected), pytest.approx(expected))
    assert (np.diag(found) == 1).all() and (found == found.T).all()
    far = np.stack([drawn[:, 0], drawn[:, 2] + 0.38, shared], axis=1)
    apart = p_values(np.array([0.5, 0.9, np.nan]), far)
    assert apart[0, 1] == pytest.approx(1 / 501) and np.isnan(apart[0, 2])


def test_judges_are_ranked_and_grouped() -> None:
    sources = made(queries=40)
    twin = LabelSource("twin", sources[3].labels)
    board = compare_sources([*sources, twin], draws=Draws(500)).judges
    assert [row.name for row in board.rows] == ["judge 2", "twin", "judge 1", "judge 0"]
    assert board.groups == (("judge 2", "twin"),)
    assert board.scale == (0, 3)
    turned = compare_sources([sources[0], twin, *reversed(sources[1:])], draws=Draws(500)).judges
    assert [row.statistics for row in turned.rows] == [row.statistics for row in board.rows]
    bare = compare_sources(sources, draws=Draws(0)).judges
    assert bare.groups == () and bare.rows[0].statistics["kappa"].low is None
    with pytest.raises(InputError, match="stranger and truth label no common document"):
        compare_sources([*sources, LabelSource("stranger", {("q0", "other"): 1})], draws=Draws(0))


def test_labels_outside_the_scale_are_counted() -> None:
    keys = [("q", str(place)) for place in range(5)]
    truth = LabelSource("truth", dict(zip(keys, [0, 1, 2, 3, 3], strict=True)))
    judge = LabelSource("judge", dict(zip(keys, [-1, 1, 2, 5, 4], strict=True)))
    found = compare_sources([truth, judge], draws=Draws(0))
    assert (found.judges.rows[0].outside, found.agreement.exact_match) == (3, 0.4)
    # A scale that is known, or said, goes before the labels that happen to occur.
    known = compare_sources([LabelSource("t", truth.labels, parse_scale("0-5:4")), judge], draws=Draws(0))
    assert (known.judges.scale, known.judges.rows[0].outside) == ((0, 5), 1)
    said = compare_sources([truth, judge], scale=range(5), draws=Draws(0))
    assert (said.judges.scale, said.judges.rows[0].outside) == ((0, 4), 2)


def test_the_share_of_failed_grades() -> None:
    sources = made(1, queries=4)
    counts = {"q0": (1, 11), "q1": (0, 10), "q2": (2, 12), "elsewhere": (9, 9)}
    failing = LabelSource("judge", sources[1].labels, failed=counts)
    (row,) = compare_sources([sources[0], failing], draws=Draws(200)).judges.rows
    # (1 + 0 + 2) of (11 + 10 + 12); the query that the truth does not have is left out, q3 has no grade.
    assert row.statistics["failed"].estimate == pytest.approx(3 / 33)
    assert row.statistics["failed"].low < 3 / 33 < row.statistics["failed"].high
    (row,) = compare_sources(sources, draws=Draws(0)).judges.rows
    assert "failed" not in row.statistics


def test_judges_that_give_leaderboards_are_grouped() -> None:
    generator = np.random.default_rng(5)
    runs, queries = [f"run {place:02}" for place in range(12)], [f"q{place}" for place in range(60)]
    truth = np.linspace(0.2, 0.8, 12)

    def board(name: str, means: np.ndarray, noise: float = 0.05) -> RunScores:
        table = means[:, None] + generator.normal(0, noise, (12, 60))
        by_query = {run: dict(zip(queries, map(float, row), strict=True)) for run, row in zip(runs, table, strict=True)}
        return RunScores(name, {run: float(np.mean(list(row.values()))) for run, row in by_query.items()}, by_query)

    official = board("official", truth)
    good, twin, bad = board("good", truth), board("twin", truth), board("bad", truth[::-1])
    draws = Draws(500, 1)
    assert equal_boards(official, [bad, good, twin], "kendall", draws) == ((1, 2),)
    assert equal_boards(official, [bad, good, twin], "max_rank_drop", draws) == ((1, 2),)
    assert equal_boards(official, [bad, good], "kendall", draws) == ()
    # Without rounds, by query or for the same runs nobody knows.
    means = RunScores("means", good.means)
    fewer = RunScores("fewer", dict(list(good.means.items())[1:]), dict(list(good.queries.items())[1:]))
    assert equal_boards(official, [good, bad], "kendall", Draws(0)) is None
    assert equal_boards(official, [good, means], "kendall", draws) is None
    assert equal_boards(official, [good, fewer], "kendall", draws) is None
    assert equal_boards(official, [good], "kendall", draws) is None
