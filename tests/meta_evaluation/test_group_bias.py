"""Tests of how far a judge moves groups of runs, and of conditions on runs; by hand and by simulation."""

import numpy as np
import pytest

from rubric_measures.base.errors import InputError
from rubric_measures.meta_evaluation._bootstrap import Draws
from rubric_measures.meta_evaluation.group_bias import chosen_runs, group_shifts


def test_a_shift_by_hand() -> None:
    # Official means 0 1 2 (mean 1, s 1): -1 0 1; the judge's 2 1 3 (mean 2, s 1): 0 -1 1; gaps 1 -1 0.
    official = [[0.0, 1.0, 2.0], [0.0, 1.0, 2.0]]
    judge = [[1.0, 1.0, 2.0], [3.0, 1.0, 4.0]]
    found = {one.group: one for one in group_shifts(official, judge, ["a", "b", None], Draws(0))}
    assert found["a"].shift.estimate == pytest.approx(1 - (-1 + 0) / 2)
    assert found["b"].shift.estimate == pytest.approx(-1 - (1 + 0) / 2)
    assert (found["a"].runs, found["a"].others, found["a"].shift.low) == (1, 2, None)
    assert group_shifts(official, judge, ["a", "a", "a"], Draws(0)) == []
    with pytest.raises(InputError, match="do not fit"):
        group_shifts(official, judge, ["a", "b"])


def test_a_favoured_group_is_found_and_none_else() -> None:
    generator = np.random.default_rng(0)
    held, wrong = 0, 0
    for seed in range(60):
        quality = generator.normal(size=12)
        official = 0.1 * quality + 0.1 * generator.normal(size=(40, 12))
        judge = 0.2 * quality + 0.1 * generator.normal(size=(40, 12))
        groups = ["ours" if i < 4 else "theirs" for i in range(12)]
        (first, _) = group_shifts(official, judge, groups, Draws(200, seed))
        assert first.shift.low is not None
        wrong += not first.shift.low <= 0 <= first.shift.high
        judge[:, :4] += 0.2
        found = {one.group: one.shift for one in group_shifts(official, judge, groups, Draws(200, seed))}
        held += found["ours"].low > 0
    assert held == 60 and wrong <= 9


def test_conditions() -> None:
    runs, groups = ["a", "b", "c", "d"], {"a": "x", "b": "y", "c": "x"}
    assert chosen_runs(runs, groups, ["group=x"]) == {"a", "c"}
    assert chosen_runs(runs, groups, ["group!=x"]) == {"b", "d"}
    assert chosen_runs(runs, groups, ["group!=x", "group!=y"]) == {"d"}
    for condition in ("team=x", "group", "group=", "group=z"):
        with pytest.raises(InputError, match=condition):
            chosen_runs(runs, groups, [condition])
