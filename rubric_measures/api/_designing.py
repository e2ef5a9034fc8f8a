"""How many queries an experiment needs, from the per-query scores of a board that is there."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rubric_measures.api._comparing import QueryScores, per_query_scores
from rubric_measures.base.errors import InputError

if TYPE_CHECKING:
    from rubric_measures.analysis.comparison import Design
    from rubric_measures.analysis.resampling import Correction
    from rubric_measures.base.tables import Report
    from rubric_measures.formats.leaderboards import Form

_LOG = logging.getLogger("rubric_measures")


@dataclass(frozen=True)
class Designs:
    """Designs by each measure; `print` shows them.

    Attributes:
        designs: one a measure.
        settings: what they were computed with.
    """

    designs: Sequence[Design]
    settings: Mapping[str, object]

    def __str__(self) -> str:
        from rubric_measures.base.tables import render

        return "".join(render(self.report(), "text")).rstrip("\n")

    def report(self, places: int = 4) -> Report:
        """What `base.tables.render` shows in any form, with so many decimal places (-1: all digits).

        A row a measure in each table; for programs one row with everything.
        """
        from rubric_measures.base.tables import Cell, Report, Table, columns, plain

        said = self.settings
        parts = [one.components for one in self.designs]
        rows: list[list[Cell]] = [[one.measure, one.deviation, one.one_pair, one.all_pairs] for one in self.designs]
        note = (
            f"queries that find a difference of {said['delta']:g} with power {said['power']:g} at {said['alpha']:g}: "
            f"of one pair, of each pair of {said['runs']} runs (Bonferroni)"
        )
        needed = Table(columns(["measure", "deviation", "one pair", "all pairs"], places), rows, notes=[note])
        rows = [
            [design.measure, one.run_count, one.query_count, *one.shares, one.reliability]
            for design, one in zip(self.designs, parts, strict=True)
        ]
        note = (
            "shares of the variance of scores; reliability: the share of the variance of the means that is of the runs"
        )
        heads = ["measure", "of runs", "of queries", "runs", "queries", "rest", "reliability"]
        variance = Table(columns(heads, places), rows, notes=[note])
        rows = [[one.measure, one.separated, one.detectable] for one in self.designs]
        note = (
            f"separated: share of pairs that differ ({said['correction']}); detectable: by these queries, of each pair"
        )
        told = Table(columns(["measure", "separated", "detectable"], places), rows, notes=[note])
        joined = Table(
            [*needed.columns, *variance.columns[1:], *told.columns[1:]],
            [[*a, *b[1:], *c[1:]] for a, b, c in zip(needed.rows, variance.rows, told.rows, strict=True)],
        )
        measures = [
            {**plain(one), "components": {**plain(one.components), "reliability": one.components.reliability}}
            for one in self.designs
        ]
        content = {"format": "rubric_measures power 1", **said, "measures": measures}
        return Report([needed, variance, told], [joined], lambda: plain(content))

    def log_notes(self) -> None:
        """Logs queries that are left out."""
        for one in self.designs:
            if one.left_out:
                _LOG.warning("%s: %d queries that some run lacks are left out", one.measure, one.left_out)


def power(
    *scores: QueryScores,
    delta: float,
    measures: str | Sequence[str] | None = None,
    run_count: int | None = None,
    alpha: float = 0.05,
    power: float = 0.8,
    correction: Correction = "holm",
    form: Form | None = None,
) -> Designs:
    """How many queries an experiment needs to find a difference, and what the board at hand could tell.

    >>> import rubric_measures
    >>> board = {"a": {"q1": 0.9, "q2": 0.5, "q3": 0.4}, "b": {"q1": 0.8, "q2": 0.6, "q3": 0.1}}
    >>> found = rubric_measures.power(board, delta=0.05).designs[0]
    >>> found.one_pair, round(found.deviation, 2)
    (128, 0.2)

    Args:
        scores: per-query scores of a pilot, as `compare` takes them.
        delta: the difference that the experiment shall find, in the measure's unit.
        measures: the measures; all by default.
        run_count: how many runs the experiment will compare; as many as the pilot has by default.
        alpha: the level of its tests.
        power: with which it shall find the difference.
        correction: of the pilot's pairs: `holm`, `bh` or `none`.
        form: the form of the files, where it cannot be seen.

    Raises:
        UnknownNameError: there is no such measure.
        InputError: no per-query scores, fewer than two runs or common queries, or a number that makes no design.
    """
    from rubric_measures.analysis.comparison import design

    if not 0.0 < alpha < 1.0:
        raise InputError(f"a significance level is between 0 and 1, not {alpha:g}", settings=("alpha",))
    found = per_query_scores(scores, form, measures)
    designs = [
        design(values, measure, delta, runs=run_count, alpha=alpha, power=power, correction=correction)
        for measure, values in found.items()
    ]
    runs = run_count or max(one.components.run_count for one in designs)
    settings = {"delta": delta, "runs": runs, "alpha": alpha, "power": power, "correction": correction}
    return Designs(designs, settings)
