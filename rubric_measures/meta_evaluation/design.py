"""How many queries an experiment needs, and what a measure can tell: from the scores of a board that is there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from rubric_measures.base.errors import InputError
from rubric_measures.meta_evaluation._power import check_smallest, least_queries, t_power
from rubric_measures.meta_evaluation._significance import Correction
from rubric_measures.meta_evaluation.run_comparison import common_queries, compare_runs
from rubric_measures.meta_evaluation.variance import Components, variance_components

__all__ = ["Design", "design"]


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
    """

    measure: str
    left_out: int
    components: Components
    deviation: float
    one_pair: int | None
    all_pairs: int | None
    detectable: float | None
    separated: float


def design(
    scores: Mapping[str, Mapping[str, float]],
    measure: str,
    smallest: float,
    *,
    runs: int | None = None,
    alpha: float = 0.05,
    power: float = 0.8,
    correction: Correction = "holm",
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
    compared = compare_runs(scores, measure, procedure=correction, alpha=alpha, rounds=1)
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
