"""Calibration: how often assessors agree with grades of which the grader is so and so certain; a table and a figure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from rubric_measures.base.errors import InputError
from rubric_measures.measures.grade_sets import GradeSetSelector, grade_of_assessors, grades_by_assessors
from rubric_measures.measures.grades import DIRECT_ITEM
from rubric_measures.records.details import confidence_of, distributions_of, grade_by
from rubric_measures.records.models import DirectGrade, QueryPassages, kind_of_set
from rubric_measures.types.entities import TestBank
from rubric_measures.verification.anchored import machine_graded
from rubric_measures.verification.sections import PlotPoint, Section, line_plot

__all__ = [
    "CalibrationBin",
    "calibration_bins",
    "calibration_section",
    "checked_pairs",
    "wilson_interval",
]

_BINS = 10
_Z = 1.959963984540054  # of 95 %


class CalibrationBin(NamedTuple):
    """The grades whose confidence lies in one range.

    Attributes:
        low: the confidence is above this,
        high: and at most this.
        grades: how many there are, 1 or more.
        confidence: their mean confidence.
        agreement: the share of them that assessors give, too.
        least: the lower end of its Wilson interval (95 %).
        most: the upper end.
    """

    low: float
    high: float
    grades: int
    confidence: float
    agreement: float
    least: float
    most: float


def checked_pairs(
    groups: Iterable[QueryPassages], selector: GradeSetSelector, bank: TestBank | None = None
) -> Iterator[tuple[float, bool]]:
    """The confidence of each grade that assessors gave, too, and whether theirs is the grader's most probable one.

    Of items these are the grades of assessors in the records (of several the median, of two the lower), of labels of
    whole passages the judgments. Grades without a distribution are left out.

    Args:
        groups: graded records; consumed once.
        selector: chooses the grader.
        bank: only grades of its items.

    Raises:
        InputError: several graders pass, or assessors graded on another scale.
    """
    for group in groups:
        items = None if bank is None else {item.item_id: item for item in bank.for_query(group.query_id)}
        for passage in group.passages:
            entry = selector.choose(machine_graded(passage), items)
            sure = distributions_of(entry) if entry is not None else {}
            if entry is None or not sure:
                continue
            if isinstance(entry, DirectGrade):
                label = passage.judged(group.query_id)
                theirs = {} if label is None else {DIRECT_ITEM: label}
            else:
                found = grades_by_assessors(passage, kind_of_set(entry), items)
                selector.check_scales(found.sets)
                theirs = {item_id: grade_of_assessors(given) for item_id, given in found.grades.items()}
            for item_id in sure.keys() & theirs.keys():
                yield confidence_of(sure[item_id]), grade_by(sure[item_id], "mode") == theirs[item_id]


def calibration_bins(pairs: Iterable[tuple[float, bool]]) -> list[CalibrationBin]:
    """Confidence against agreement, by ten ranges of confidence of one width; empty ranges are left out.

    Args:
        pairs: (confidence, whether assessors agree).

    Source: Guo et al., ICML 2017; the interval is Wilson's (JASA 1927).
    """
    sums: dict[int, list[float]] = {}
    for confidence, agrees in pairs:
        of_bin = sums.setdefault(max(math.ceil(round(confidence * _BINS, 9)) - 1, 0), [0, 0.0, 0])
        of_bin[0] += 1
        of_bin[1] += confidence
        of_bin[2] += agrees
    found = []
    for place, (count, total, hits) in sorted(sums.items()):
        share = hits / count
        least, most = wilson_interval(hits, count)
        found.append(CalibrationBin(place / _BINS, (place + 1) / _BINS, int(count), total / count, share, least, most))
    return found


def wilson_interval(hits: float, count: float) -> tuple[float, float]:
    """The 95 % interval of a share, in [0, 1].

    Args:
        hits: how many of them.
        count: of how many, at least 1.

    Source: Wilson, "Probable inference, the law of succession, and statistical inference", JASA 1927.
    """
    share = hits / count
    middle = (share + _Z**2 / (2 * count)) / (1 + _Z**2 / count)
    half = _Z / (1 + _Z**2 / count) * math.sqrt(share * (1 - share) / count + _Z**2 / (4 * count**2))
    return max(middle - half, 0.0), min(middle + half, 1.0)


def calibration_error(found: Sequence[CalibrationBin]) -> float:
    """The expected calibration error: the mean of |agreement − confidence| over the ranges, by their grades."""
    return math.fsum(one.grades * abs(one.agreement - one.confidence) for one in found) / sum(
        one.grades for one in found
    )


def calibration_section(found: Sequence[CalibrationBin]) -> Section:
    """The table with its drawing.

    Raises:
        InputError: there is no grade to compare.
    """
    if not found:
        raise InputError(
            "no grade has both a distribution and a grade by assessors: calibration needs grades with label "
            "probabilities or replicates, and assessors' grades of the same items (or judgments of labelled passages)"
        )
    count = sum(one.grades for one in found)
    agreement = math.fsum(one.agreement * one.grades for one in found) / count
    points = [PlotPoint(one.confidence, one.agreement, one.least, one.most) for one in found]
    return Section(
        "calibration",
        f"Calibration: {count} grades with assessors', agreement {agreement:.3f}, expected calibration error "
        f"{calibration_error(found):.3f}",
        ["above", "up_to", "grades", "confidence", "agreement", "low", "high"],
        [list(one) for one in found],
        line_plot(points, "Confidence and agreement with assessors", "confidence", "agreement"),
    )
