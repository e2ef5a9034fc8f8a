"""A grader held to a few grades of assessors: its bias, what its grades are worth, calibrated scores."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rubric_measures.api._loading import Bank, bank_of, grade_filter
from rubric_measures.base.errors import InputError

if TYPE_CHECKING:
    from rubric_measures.analysis.calibration import Bias, Calibrated, GradeValue
    from rubric_measures.base.tables import Report

_LOG = logging.getLogger("rubric_measures")


@dataclass(frozen=True)
class Calibration:
    """What anchors say of a grader; `print` shows it.

    Attributes:
        bias: over all, by grade, by kind.
        grades: what each grade is worth.
        runs: calibrated scores of answers, best first; empty where the runs rank passages.
        settings: what it was computed with; `reason` says why there are no runs.
    """

    bias: Sequence[Bias]
    grades: Sequence[GradeValue]
    runs: Sequence[Calibrated]
    settings: Mapping[str, object]

    def __str__(self) -> str:
        from rubric_measures.base.tables import render

        return "".join(render(self.report(), "text")).rstrip("\n")

    def report(self, places: int = 4) -> Report:
        """What `base.tables.render` shows in any form, with so many decimal places (-1: all digits)."""
        from rubric_measures.analysis.calibration import anchor_report

        return anchor_report(self.bias, self.grades, self.runs, places, self.settings)


def calibrate(
    graded: str | os.PathLike[str],
    *,
    anchors: str | os.PathLike[str] | None = None,
    against: str = "assessors",
    rel: int | None = None,
    smallest: float = 0.1,
    rounds: int = 10_000,
    seed: int = 42,
    level: float = 0.95,
    bank: Bank | None = None,
    **chosen: Any,
) -> Calibration:
    """How far a grader is off, what its grades are worth, and the scores that the truth would give.

    Args:
        graded: graded records of the grader.
        anchors: graded records with the truth's grades of some of the same items; the same file by default.
        against: `assessors`, or the model whose grades are the truth: an older grader (equating), or the same one at an
            earlier time (drift).
        rel: the least grade that covers; the scale's by default.
        smallest: the smallest bias that matters, in grades.
        rounds: bootstrap samples; 0 for no intervals.
        seed: of the bootstrap.
        level: nominal coverage of intervals, in (0, 1).
        bank: the test bank.
        chosen: which grades are the grader's, see `load`.

    Raises:
        InputError: nothing has both grades, or the grader gives grades outside of those that the truth graded.
    """
    from rubric_measures.analysis.calibration import bias_rows, calibrated_runs, grade_values
    from rubric_measures.analysis.resampling import Draws
    from rubric_measures.verification.graders import read_anchored

    if rounds < 0:
        raise InputError("the number of rounds is 0 or more", settings=("rounds",))
    if not 0.0 < level < 1.0:
        raise InputError(f"an interval's level is between 0 and 1, not {level:g}", settings=("level",))
    if not smallest > 0:
        raise InputError(f"the smallest bias that matters is above 0, not {smallest:g}", settings=("smallest",))
    found = read_anchored(
        graded, bank_of(bank), grade_filter(**chosen), graded if anchors is None else anchors, against, rel
    )
    if found.unmatched:
        _LOG.warning("%d grades of the truth are of nothing that the grader graded, and are left out", found.unmatched)
    reason = ""
    if found.several:
        reason = f"run {found.several} ranks several passages for a query; calibrated scores are of answers"
    elif not found.answers:
        reason = "the records rank nothing"
    draws = Draws(rounds, seed, level)
    if reason:
        _LOG.info("no calibrated scores: %s", reason)
    elif found.failed:
        _LOG.warning("%d grades of the answers failed, and are left out of their scores", found.failed)
    runs = [] if reason else calibrated_runs(found.anchors, found.answers, found.rel, draws)
    settings = {
        "against": against, "rel": found.rel, "smallest": float(smallest), "rounds": rounds, "seed": seed,
        "level": level, "reason": reason,
    }  # fmt: skip
    return Calibration(bias_rows(found.anchors, level), grade_values(found.anchors, found.rel, draws), runs, settings)
