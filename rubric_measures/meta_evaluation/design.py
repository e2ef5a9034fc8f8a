"""How many queries an experiment needs, and what a measure can tell: from the scores of a board that is there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from rubric_measures.base.errors import InputError
from rubric_measures.meta_evaluation._bootstrap import half_counts, weighted_means
from rubric_measures.meta_evaluation._power import check_smallest, least_queries, t_power
from rubric_measures.meta_evaluation._significance import Correction, complete_table
from rubric_measures.meta_evaluation.run_comparison import common_queries, compare_runs
from rubric_measures.meta_evaluation.variance import Components, variance_components

__all__ = ["Design", "Swaps", "design", "swap_rates"]

DEFAULT_SPLITS = 1000
# The share of swaps that sensitivity allows, as in Voorhees and Buckley.
_SWAPS = 0.05


@dataclass(frozen=True, slots=True)
class Swaps:
    """How often two halves of the queries put two runs in opposite order.

    Attributes:
        queries: how many queries a half has.
        splits: how often the queries were split.
        all: the share of swaps among all pairs that differ in the first half; None without any. A pair that is equal in
            the second half is half a swap.
        beyond: the share among pairs that differ by δ or more in the first half; None without any.
        sensitivity: the least difference in the first half from which on at most 5 % swap; None where none is so large.
    """

    queries: int
    splits: int
    all: float | None
    beyond: float | None
    sensitivity: float | None


@dataclass(frozen=True, slots=True)
class Design:
    """What one measure asks of an experiment, and what it told in the board.

    Attributes:
        measure: the measure.
        left_out: queries that some run lacks.
        components: of the variance of scores.
        deviation: σ_d, the standard deviation of a query's difference of two runs: √(2 rest).
        one_pair: the queries with which a paired t-test of two runs finds a difference of δ, with the power asked for.
        all_pairs: the same where all pairs of the runs to compare are tested, each at α / pairs (Bonferroni).
        detectable: the difference of two runs that as many queries as the board has find with that power, each pair at
            α / pairs; None with one query or no deviation.
        separated: the share of the board's pairs that are different after correction: discriminative power.
        swaps: how often halves of the queries disagree; None with fewer than four queries.
    """

    measure: str
    left_out: int
    components: Components
    deviation: float
    one_pair: int | None
    all_pairs: int | None
    detectable: float | None
    separated: float
    swaps: Swaps | None


def swap_rates(scores: ArrayLike, smallest: float, *, splits: int = DEFAULT_SPLITS, seed: int = 42) -> Swaps:
    """Swap rates of all pairs of runs over random halves of the queries.

    Args:
        scores: (queries, runs), complete, at least four queries.
        smallest: δ.
        splits: how often to split.
        seed: of the splits; they do not depend on the runs.

    Raises:
        InputError: a score is missing, or there are too few queries, runs or splits.

    Source: Voorhees and Buckley, The effect of topic set size on retrieval experiment error (SIGIR 2002), with random
    halves in the place of their sizes; Sakai (SIGIR 2006) for sensitivity.
    """
    table = complete_table(scores)
    queries, runs = table.shape
    if queries < 4 or splits < 1:
        raise InputError(f"swap rates need four queries and one split at least, not {queries} and {splits}")
    first, second = (weighted_means(counts, table) for counts in half_counts(queries, splits, seed))
    i, j = np.triu_indices(runs, 1)
    gap, again = ((half[:, i] - half[:, j]).ravel() for half in (first, second))
    sizes, swaps = np.abs(gap), np.where(again == 0, 0.5, gap * again < 0)
    kept = sizes > 0
    sizes, swaps = sizes[kept], swaps[kept]
    down = np.argsort(-sizes, kind="stable")
    sizes, swaps = sizes[down], swaps[down]
    shares = np.cumsum(swaps) / np.arange(1, len(swaps) + 1)
    # Pairs of one difference stand or fall together.
    ends = np.flatnonzero(np.append(np.diff(sizes) != 0, True)) if len(sizes) else np.empty(0, dtype=np.intp)
    allowed = ends[shares[ends] <= _SWAPS]
    beyond = int((sizes >= smallest).sum())
    return Swaps(
        queries // 2,
        splits,
        float(shares[-1]) if len(shares) else None,
        float(shares[beyond - 1]) if beyond else None,
        float(sizes[allowed[-1]]) if len(allowed) else None,
    )


def design(
    scores: Mapping[str, Mapping[str, float]],
    measure: str,
    smallest: float,
    *,
    runs: int | None = None,
    alpha: float = 0.05,
    power: float = 0.8,
    correction: Correction = "holm",
    splits: int = DEFAULT_SPLITS,
    seed: int = 42,
) -> Design:
    """Topic set size design from a board, and what the board could tell.

    All variances are of the two-way analysis of variance of runs and queries, over the queries that all runs have.

    Args:
        scores: run -> query -> score, of two runs or more.
        measure: for the result.
        smallest: δ, the difference that the experiment shall find.
        runs: how many runs it will compare, as many as the board has by default.
        alpha: the level of each of its tests before correction.
        power: with which it shall find δ.
        correction: of the board's own pairs: `holm`, `bh` or `none`.
        splits: see `swap_rates`.
        seed: of the splits.

    Raises:
        InputError: fewer than two runs or common queries, δ or the power are none.

    Source: Sakai, Topic set size design (Information Retrieval Journal 2016): the designs by t-test, with his σ²
    of the two-way analysis; Sakai (SIGIR 2006) for discriminative power.
    """
    check_smallest(smallest)
    if not 0.0 < power < 1.0:
        raise InputError(f"a power is between 0 and 1, not {power:g}", settings=("power",))
    count = len(scores) if runs is None else runs
    if count < 2:
        raise InputError(f"an experiment compares two runs at least, not {count}", settings=("run_count",))
    compared = compare_runs(scores, measure, procedure=correction, alpha=alpha, rounds=1, seed=seed)
    queries, left_out = common_queries(scores, measure)
    if len(queries) < 2:
        raise InputError(f"{measure}: one query that all runs have; a design needs the variance of two")
    table = np.array([[scores[run][query] for run in sorted(scores)] for query in queries])
    components = variance_components(table)
    deviation = float(np.sqrt(2.0 * components.rest))
    pairs = count * (count - 1) // 2
    return Design(
        measure,
        len(left_out),
        components,
        deviation,
        _least_t(smallest, deviation, alpha, power),
        _least_t(smallest, deviation, alpha / pairs, power),
        _detectable(deviation, len(queries), alpha / pairs, power),
        sum(pair.significant for pair in compared.pairs) / len(compared.pairs),
        swap_rates(table, smallest, splits=splits, seed=seed) if len(queries) >= 4 else None,
    )


def _least_t(difference: float, deviation: float, alpha: float, power: float) -> int | None:
    if not deviation:
        return 2
    queries = least_queries(lambda n: t_power(difference, deviation, n, alpha) >= power, 1)[0]
    return None if np.isinf(queries) else int(queries)


def _detectable(deviation: float, queries: int, alpha: float, power: float) -> float | None:
    """The difference that a paired t-test of so many queries finds with that power."""
    from scipy.optimize import brentq

    if not deviation:
        return None
    # In units of the standard error; a t-test of two queries at a small level asks for thousands of them.
    error = deviation / np.sqrt(queries)
    high = 1.0
    while float(t_power(high * error, deviation, queries, alpha)) < power:
        high *= 2.0
        if high > 1e9:
            return None
    found: float = brentq(lambda size: float(t_power(size * error, deviation, queries, alpha)) - power, 0.0, high)
    return float(found * error)
