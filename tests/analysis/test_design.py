"""Tests of variance components and designs of experiments, against other programs and by hand."""

import itertools

import numpy as np
import pytest

from rubric_measures.analysis.resampling import Tests
from rubric_measures.analysis.significance import design, t_power, variance_components
from rubric_measures.base.errors import InputError

SMALL = Tests(smallest=0.05)


def test_components_as_statsmodels() -> None:
    pytest.importorskip("statsmodels")
    pandas = pytest.importorskip("pandas")
    from statsmodels.formula.api import ols
    from statsmodels.stats.anova import anova_lm

    table = np.random.default_rng(0).normal(size=(9, 4)) + np.arange(4)
    rows = [(f"q{i}", f"r{j}", table[i, j]) for i, j in itertools.product(range(9), range(4))]
    frame = pandas.DataFrame(rows, columns=["query", "run", "score"])
    expected = anova_lm(ols("score ~ C(query) + C(run)", frame).fit())
    squares = expected["mean_sq"]
    found = variance_components(table)
    assert found.rest == pytest.approx(squares["Residual"])
    assert found.runs == pytest.approx((squares["C(run)"] - squares["Residual"]) / 9)
    assert found.queries == pytest.approx(max((squares["C(query)"] - squares["Residual"]) / 4, 0))


def test_a_design() -> None:
    generator = np.random.default_rng(2)
    table = 0.5 + 0.1 * np.arange(4) + generator.normal(0, 0.1, (30, 4)) + generator.normal(0, 0.1, (30, 1))
    scores = {f"r{j}": {f"q{i}": float(table[i, j]) for i in range(30)} for j in range(4)}
    found = design(scores, "m", tests=SMALL)
    deviation = found.deviation
    assert deviation == pytest.approx(np.sqrt(2 * found.components.rest))
    for queries, alpha in ((found.one_pair, 0.05), (found.all_pairs, 0.05 / 6)):
        powers = [float(t_power(0.05, deviation, n, alpha)) for n in (queries - 1, queries)]
        assert powers[0] < 0.8 <= powers[1]
    del scores["r0"]["q3"]
    assert design(scores, "m", tests=SMALL).left_out == 1


def test_what_makes_no_design() -> None:
    with pytest.raises(InputError, match="name the smallest"):
        design({"a": {"q1": 1.0, "q2": 2.0}, "b": {"q1": 3.0, "q2": 1.0}}, "m")
    with pytest.raises(InputError, match="one query"):
        design({"a": {"q1": 0.1}, "b": {"q1": 0.2}}, "m")
    # Runs that differ by the same everywhere have no noise.
    ten = {f"q{place}": place / 10 for place in range(10)}
    same = {"a": ten, "b": {query: score + 0.1 for query, score in ten.items()}}
    flat = design(same, "m", tests=Tests(smallest=0.1))
    assert (flat.one_pair, flat.all_pairs) == (2, 2)
    # Fewer than ten queries do not know the noise; a run without a score takes no part.
    nine = {run: {query: row[query] for query in [*ten][:9]} for run, row in same.items()}
    few = design({**nine, "c": {}}, "m")
    assert (few.one_pair, few.all_pairs, few.components.query_count, few.unscored) == (None, None, 9, ("c",))
