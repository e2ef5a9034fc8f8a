"""What graded records say about the graders: grades given, failures, cut passages, and where graders disagree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import combinations
from typing import NamedTuple

from rubric_measures.analysis.agreement import kappa_of_confusion
from rubric_measures.measures.grade_sets import GradeFilter, grades_of_set, scale_of_set
from rubric_measures.records.details import details_of
from rubric_measures.records.models import DirectGrade, GradedPassage, GradeSetKey, ItemGradeSet, grade_set_key
from rubric_measures.types.scales import Scale

__all__ = [
    "Disagreement",
    "GraderCounter",
    "GraderPair",
    "GraderReport",
    "GraderStatistics",
]


@dataclass
class GraderStatistics:
    """The counts of one grader: one model with one prompt over items of one kind.

    Attributes:
        passages: passages that it graded.
        grades: grade -> how often it was given; failures are in `statuses` only.
        statuses: status -> how many (passage, item) have it.
        truncated: passages of which only a part was graded.
        replicated: grades that were drawn several times.
        flips: sum over them of the share of draws that differ from the grade they were combined to.
        scale: the scale of its grades; None where it is not known.
    """

    passages: int = 0
    grades: Counter[float] = field(default_factory=Counter)
    statuses: Counter[str] = field(default_factory=Counter)
    truncated: int = 0
    replicated: int = 0
    flips: float = 0.0
    scale: Scale | None = None

    @property
    def flip_rate(self) -> float | None:
        """The mean share of draws that differ from the combined grade, 0 to 1; None without replicates."""
        return self.flips / self.replicated if self.replicated else None


class GraderPair(NamedTuple):
    """How far two graders agree on what both graded; one row a pair of graders.

    Attributes:
        first: one grader.
        second: the other one.
        common: (passage, item) pairs that both graded.
        equal: how many of them have equal grades.
        distance: the mean absolute difference of the grades; None where nothing is common.
        kappa: Cohen's κ, unweighted; None where it is undefined.
        reason: why distance or kappa is None; empty otherwise.
    """

    first: GradeSetKey
    second: GradeSetKey
    common: int
    equal: int
    distance: float | None
    kappa: float | None
    reason: str = ""


class Disagreement(NamedTuple):
    """A (passage, item) on which graders disagree, with every grader's grade.

    Attributes:
        query_id: the query.
        doc_id: the passage.
        item_id: the item.
        spread: highest minus lowest grade.
        grades: grader -> grade.
    """

    query_id: str
    doc_id: str
    item_id: str
    spread: float
    grades: Mapping[GradeSetKey, float]


@dataclass(frozen=True)
class GraderReport:
    """All that a `GraderCounter` finds.

    Attributes:
        graders: grader -> its counts, sorted.
        pairs: every pair of graders, sorted.
        disagreements: where grades differ, largest difference first; all, or as many as were asked for.
        disagreed: how many there are.
    """

    graders: Mapping[GradeSetKey, GraderStatistics]
    pairs: tuple[GraderPair, ...]
    disagreements: tuple[Disagreement, ...]
    disagreed: int


class GraderCounter:
    """Counts what each grader of the records did, and compares every two on what both graded, passage by passage.

    Grade sets without ratings and without verdicts (extracted texts) grade nothing and are left out. Where one grader
    graded an item of a passage twice, the later grade counts, as in the measures. Grades on different
    scales (0 to 5, and 0 or 1) are not compared. Memory is that of the counts and the disagreements kept.

    Args:
        wanted: which graders; None takes all.
        most: how many disagreements are kept, those with the largest differences; None keeps all.
    """

    def __init__(self, wanted: GradeFilter | None = None, most: int | None = None) -> None:
        self._filter = wanted or GradeFilter()
        self._most = most
        self._graders: dict[GradeSetKey, GraderStatistics] = {}
        # For every two graders: how often the first gave one grade and the second the other.
        self._pairs: dict[tuple[GradeSetKey, GradeSetKey], Counter[tuple[float, float]]] = {}
        self._disagreements: list[Disagreement] = []
        self._disagreed = 0

    def add(self, query_id: str, passage: GradedPassage) -> None:
        """Counts one passage; each passage of a query once."""
        merged: dict[GradeSetKey, tuple[dict[str, float], dict[str, str]]] = {}
        scales: dict[tuple[GradeSetKey, str], tuple[int, int] | None] = {}
        for entry in [*(passage.exam_grades or ()), *(passage.grades or ())]:
            grades, status = grades_of_set(entry)
            key = grade_set_key(entry)
            item_ids = [*grades, *status]
            if not item_ids or not self._filter.passes(key, partial(list, item_ids)):
                continue
            of_grader = self._graders.setdefault(key, GraderStatistics())
            known = merged.setdefault(key, ({}, {}))
            known[0].update(grades)
            known[1].update(status)
            scale = self._filter.scale or scale_of_set(entry)
            of_grader.scale = of_grader.scale or scale
            scales.update(((key, item_id), scale and scale[:2]) for item_id in grades)
            _count_replicates(entry, grades, of_grader)
        for key, found in merged.items():
            _count(self._graders[key], *found)
        if len(merged) > 1:
            self._compare(query_id, passage.doc_id, {key: merged[key][0] for key in sorted(merged)}, scales)

    def _compare(
        self,
        query_id: str,
        doc_id: str,
        grades: Mapping[GradeSetKey, Mapping[str, float]],
        scales: Mapping[tuple[GradeSetKey, str], tuple[int, int] | None],
    ) -> None:
        for (first, one), (second, other) in combinations(grades.items(), 2):
            counts = self._pairs.setdefault((first, second), Counter())
            counts.update((grade, other[item_id]) for item_id, grade in one.items() if item_id in other)
        for item_id in dict.fromkeys(item_id for of_grader in grades.values() for item_id in of_grader):
            of_item = {key: scales[key, item_id] for key, of_grader in grades.items() if item_id in of_grader}
            for scale in dict.fromkeys(of_item.values()):
                given = {key: grades[key][item_id] for key, its_scale in of_item.items() if its_scale == scale}
                if len(set(given.values())) > 1:
                    spread = max(given.values()) - min(given.values())
                    self._keep(Disagreement(query_id, doc_id, item_id, spread, given))

    def _keep(self, row: Disagreement) -> None:
        self._disagreed += 1
        self._disagreements.append(row)
        # Cut now and then: far fewer comparisons than putting each in its place.
        if self._most is not None and len(self._disagreements) > 1000 + 2 * self._most:
            self._cut()

    def _cut(self) -> None:
        self._disagreements.sort(key=lambda row: (-row.spread, row[:3]))
        if self._most is not None:
            del self._disagreements[self._most :]

    def report(self) -> GraderReport:
        """What was counted."""
        self._cut()
        graders = dict(sorted(self._graders.items()))
        pairs = tuple(
            _pair(first, second, graders, self._pairs.get((first, second), {}))
            for first, second in combinations(graders, 2)
        )
        return GraderReport(graders, pairs, tuple(self._disagreements), self._disagreed)


def _count(of_grader: GraderStatistics, grades: Mapping[str, float], status: Mapping[str, str]) -> None:
    of_grader.passages += 1
    of_grader.grades.update(grades.values())
    for item_id in {**grades, **status}:
        of_grader.statuses[status.get(item_id, "graded")] += 1
    of_grader.truncated += "truncated" in status.values()


def _count_replicates(
    entry: ItemGradeSet | DirectGrade, grades: Mapping[str, float], of_grader: GraderStatistics
) -> None:
    for item_id, of_item in details_of(entry).items():
        drawn = of_item.get("replicates")
        if drawn and item_id in grades:
            of_grader.replicated += 1
            of_grader.flips += sum(one[0] != grades[item_id] for one in drawn) / len(drawn)


def _pair(
    first: GradeSetKey,
    second: GradeSetKey,
    graders: Mapping[GradeSetKey, GraderStatistics],
    counts: Mapping[tuple[float, float], int],
) -> GraderPair:
    common = sum(counts.values())
    equal = sum(count for (one, other), count in counts.items() if one == other)
    if not common:
        return GraderPair(first, second, 0, 0, None, None, "nothing in common")
    ends = [scale[:2] if (scale := graders[one].scale) else None for one in (first, second)]
    if ends[0] != ends[1]:
        said = [f"{one[0]} to {one[1]}" if one else "not known" for one in ends]
        return GraderPair(first, second, common, equal, None, None, f"scales {said[0]} and {said[1]}")
    distance = sum(abs(one - other) * count for (one, other), count in counts.items()) / common
    given = sorted({grade for pair in counts for grade in pair})
    kappa = kappa_of_confusion([[counts.get((one, other), 0) for other in given] for one in given])
    return GraderPair(first, second, common, equal, distance, kappa, "one grade only" if kappa is None else "")
