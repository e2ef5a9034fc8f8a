"""Runs against runs: paired tests of all pairs or against a baseline, corrected, with groups of equals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Literal

import numpy as np

from rubric_measures.base.errors import InputError, UnknownNameError
from rubric_measures.meta_evaluation._bootstrap import DEFAULT_ROUNDS, DEFAULT_SEED
from rubric_measures.meta_evaluation._significance import Correction, PairedTest, adjust, groups_of_equals, paired_tests
from rubric_measures.meta_evaluation.variance import Components, variance_components
from rubric_measures.meta_evaluation.verdicts import Outlook, Verdict, outlook, verdicts

__all__ = ["CORRECTIONS", "Comparison", "Correction", "Pair", "adjust", "common_queries", "compare_runs"]

Test = Literal["t", "permutation"]
Intervals = Literal["simultaneous", "each"]
CORRECTIONS: tuple[Correction, ...] = ("holm", "bh", "none")


@dataclass(frozen=True)
class Pair:
    """Two runs.

    Attributes:
        first: run id; in a comparison with a baseline the other run.
        second: run id; the baseline.
        test: the paired tests of first − second, over the queries that both have. Its interval is as
            `Comparison.intervals` says.
        p_adjusted: the p-value after correction; None where the test is undefined.
        significant: whether p_adjusted < alpha.
        verdict: what is concluded; None where it was not asked for.
    """

    first: str
    second: str
    test: PairedTest
    p_adjusted: float | None
    significant: bool
    verdict: Verdict | None = None


@dataclass(frozen=True)
class Comparison:
    """Runs compared by one measure.

    Attributes:
        measure: the measure.
        baseline: the run that all others are compared with; None when all pairs are.
        means: run -> mean over the queries that all runs have, best first.
        queries: the queries that all runs have.
        left_out: queries that some run lacks.
        pairs: the comparisons.
        groups: groups of runs that cannot be told apart, best first; empty with a baseline.
        procedure: the correction for the number of comparisons.
        test: whose p-values are corrected: `t` or `permutation`.
        alpha: the significance level.
        intervals: `simultaneous` where all intervals of differences hold the true ones at once with probability
            1 − alpha: Bonferroni's for `holm` (a little wider than its test asks). `each` where each does so by itself,
            and the correction is of the p-values alone.
        outlook: how many queries separate how many pairs; None where verdicts were not asked for.
    """

    measure: str
    baseline: str | None
    means: Mapping[str, float]
    queries: tuple[str, ...]
    left_out: tuple[str, ...]
    pairs: tuple[Pair, ...]
    groups: tuple[tuple[str, ...], ...]
    procedure: Correction
    test: Test
    alpha: float
    intervals: Intervals = "each"
    outlook: Outlook | None = None


def common_queries(scores: Mapping[str, Mapping[str, float]], measure: str) -> tuple[list[str], list[str]]:
    """The queries that all runs have, and those that some run lacks, sorted.

    Raises:
        InputError: there is no query that all have.
    """
    every = {query for values in scores.values() for query in values}
    common = sorted(query for query in every if all(query in values for values in scores.values()))
    if not common:
        raise InputError(f"{measure}: the runs have no query in common; compare runs over the same queries")
    return common, sorted(every - set(common))


def compare_runs(
    scores: Mapping[str, Mapping[str, float]],
    measure: str,
    *,
    baseline: str | None = None,
    procedure: Correction = "holm",
    test: Test = "t",
    alpha: float = 0.05,
    rounds: int = DEFAULT_ROUNDS,
    seed: int = DEFAULT_SEED,
    smallest: float | None = None,
) -> Comparison:
    """Paired comparisons of runs over the queries that both have.

    Of a run that is better by the same on every query, the exact permutation test counts, whatever the test.

    Args:
        scores: run -> query -> score.
        measure: what the scores are, for the output.
        baseline: compare every other run with this one; None compares all pairs.
        procedure: `holm`, `bh` or `none`, for the number of p-values.
        test: `t` (paired t-test) or `permutation` (sign flips).
        alpha: significance level.
        rounds: of the permutation tests.
        seed: of the permutation tests.
        smallest: the smallest difference that matters, for verdicts; None for none.

    Raises:
        InputError: fewer than two runs, no common query, a procedure that does not fit, or alpha is no level.
        UnknownNameError: the baseline is not among the runs.
    """
    _check(scores, measure, baseline, procedure, test, alpha)
    queries, left_out = common_queries(scores, measure)
    # By id, so that draws do not depend on the order of the runs.
    runs = sorted(scores)
    table = np.array([[scores[run][query] for run in runs] for query in queries])
    means = dict(sorted(zip(runs, table.mean(axis=0).tolist(), strict=True), key=lambda item: (-item[1], item[0])))
    order = list(means)
    if baseline is None:
        names = list(combinations(order, 2))
    else:
        names = [(run, baseline) for run in order if run != baseline]
    level = 1.0 - alpha / (len(names) if procedure == "holm" else 1)
    tests = _tests(scores, names, rounds, seed, level)
    adjusted = adjust([one.p if test == "t" else one.p_permutation for one in tests], procedure)
    pairs = tuple(
        Pair(a, b, one, p, p is not None and p < alpha) for (a, b), one, p in zip(names, tests, adjusted, strict=True)
    )
    groups = () if baseline is not None else _groups(order, means, pairs, alpha)
    intervals: Intervals = "simultaneous" if procedure == "holm" else "each"
    found = Comparison(
        measure, baseline, means, tuple(queries), tuple(left_out), pairs, groups, procedure, test, alpha, intervals
    )
    if smallest is None:
        return found
    flips = (rounds, seed) if test == "permutation" else None
    components = variance_components(table) if len(queries) > 1 else None
    return _with_verdicts(found, scores, components, smallest, flips)


def _with_verdicts(
    found: Comparison,
    scores: Mapping[str, Mapping[str, float]],
    components: Components | None,
    smallest: float,
    flips: tuple[int, int] | None,
) -> Comparison:
    """The comparison with a verdict on each pair."""
    differences = [
        np.array([scores[pair.first][query] - scores[pair.second][query]
                  for query in sorted(scores[pair.first].keys() & scores[pair.second].keys())])
        for pair in found.pairs
    ]  # fmt: skip
    concluded = verdicts(
        differences, [pair.p_adjusted for pair in found.pairs], found.procedure,
        smallest=smallest, alpha=found.alpha, flips=flips,
    )  # fmt: skip
    ahead = outlook(
        differences, [pair.significant for pair in found.pairs], found.procedure, components,
        smallest=smallest, alpha=found.alpha,
    )  # fmt: skip
    pairs = tuple(replace(pair, verdict=one) for pair, one in zip(found.pairs, concluded, strict=True))
    return replace(found, pairs=pairs, outlook=ahead)


def _check(
    scores: Mapping[str, object], measure: str, baseline: str | None, procedure: str, test: str, alpha: float
) -> None:
    if procedure not in CORRECTIONS or test not in ("t", "permutation"):
        raise InputError(f"unknown correction {procedure!r} or test {test!r}")
    if baseline is not None and baseline not in scores:
        raise UnknownNameError("run", baseline, scores, settings=("baseline",))
    if not 0.0 < alpha < 1.0:
        raise InputError(f"a significance level is between 0 and 1, not {alpha:g}")
    if len(scores) < 2:
        raise InputError(f"{measure}: {len(scores)} run(s) with per-query scores; a comparison needs two")


def _tests(
    scores: Mapping[str, Mapping[str, float]], names: Sequence[tuple[str, str]], rounds: int, seed: int, level: float
) -> list[PairedTest]:
    """The paired tests of each two runs over the queries that both have."""
    # Pairs over the same queries see the same flips, so they are tested together.
    places: dict[tuple[str, ...], list[int]] = {}
    for place, (a, b) in enumerate(names):
        places.setdefault(tuple(sorted(scores[a].keys() & scores[b].keys())), []).append(place)
    found: dict[int, PairedTest] = {}
    for queries, pairs in places.items():
        first, second = (
            np.array([[scores[names[pair][side]][query] for pair in pairs] for query in queries]) for side in (0, 1)
        )
        found |= zip(pairs, paired_tests(first, second, rounds=rounds, seed=seed, level=level), strict=True)
    return [found[place] for place in range(len(names))]


def _groups(
    order: Sequence[str], means: Mapping[str, float], pairs: Sequence[Pair], alpha: float
) -> tuple[tuple[str, ...], ...]:
    place = {run: index for index, run in enumerate(order)}
    matrix = np.full((len(order), len(order)), np.nan)
    for pair in pairs:
        if pair.p_adjusted is not None:
            i, j = place[pair.first], place[pair.second]
            matrix[i, j] = matrix[j, i] = pair.p_adjusted
    found = groups_of_equals([means[run] for run in order], matrix, alpha)
    return tuple(tuple(order[index] for index in group) for group in found)
