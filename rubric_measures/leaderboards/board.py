"""What a leaderboard is: cells, values by query, the order of the runs; and digests of what it was scored from.

Two digests of inputs are equal where the content is, whatever the order of queries, passages, items, lines and runs,
and however files are called or packed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from operator import itemgetter

from ir_measures.measures.base import MeanAgg, Measure

from rubric_measures.base.entities import Signature
from rubric_measures.base.errors import MeasureError
from rubric_measures.base.sorting import RankNotes
from rubric_measures.grades.compiled import QueryGrades
from rubric_measures.measures.measure import Coverage

__all__ = [
    "BELOW",
    "OVERALL",
    "BoardInputs",
    "Cell",
    "InputsReader",
    "Leaderboard",
    "Tally",
    "cell_of",
    "collect_cells",
    "grades_digest",
    "is_summed",
    "make_cell",
    "ranking_digest",
]


def _digest(parts: Iterable[str]) -> str:
    """Twelve hex digits of texts in their order; no id holds a NUL."""
    return blake2b("\0".join(parts).encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()


def _digest_of(named: Mapping[str, str]) -> str:
    return _digest(text for pair in sorted(named.items()) for text in pair)


def grades_digest(grades: QueryGrades) -> str:
    """Twelve hex digits of all that measures read of a query: its items with importance, weight and facet; its grades.

    Grades that failed count as such; grades of items that the bank lacks are not part of it.
    """
    order = sorted(range(len(grades.items)), key=lambda index: grades.items[index].item_id)
    pick = itemgetter(*order) if order else tuple
    width = len(order)

    def canonical(mask: int) -> str:
        """The mask as a digit an item, in the order of the items' ids."""
        return "".join(pick(f"{mask:0{width}b}"[::-1]))

    parts = [f"{width} {len(grades.levels)}"]
    for index in order:
        item = grades.items[index]
        parts.append(f"{item.item_id}\0{item.importance}\0{item.weight!r}\0{item.part}")
    for doc_id, levels in sorted(grades.levels.items()):
        known = [(grade, canonical(mask)) for grade, mask in levels.items() if mask]
        parts.append(f"{doc_id}\0{sorted(known)}")
    for doc_id, mask in sorted(grades.failed.items()):
        if mask:
            parts.append(f"{doc_id}\0{canonical(mask)}")
    return _digest(parts)


def ranking_digest(doc_ids: Iterable[str]) -> str:
    """Twelve hex digits of a ranking's documents in their order."""
    return _digest(doc_ids)


@dataclass(frozen=True)
class BoardInputs:
    """The digests of what a leaderboard was scored from.

    Attributes:
        grades: query_id -> digest of its items and grades.
        runs: run_id -> digest of its rankings of these queries, as deep as the measures look.
    """

    grades: Mapping[str, str] = field(default_factory=dict)
    runs: Mapping[str, str] = field(default_factory=dict)

    def settings(self) -> dict[str, object]:
        """Both in one digest each, for the signature."""
        return {"scored": _digest_of(self.grades), "runs": _digest_of(self.runs)}


class InputsReader:
    """Collects the digests while a leaderboard is scored, in any order."""

    def __init__(self) -> None:
        self._grades: dict[str, str] = {}
        self._runs: dict[str, dict[str, str]] = {}

    def add_grades(self, name: str, grades: QueryGrades) -> None:
        """Takes the grades of a query (or of a facet, under its name)."""
        self._grades[name] = grades_digest(grades)

    def add_run(self, run_id: str, rankings: Iterable[tuple[str, str]] = ()) -> None:
        """Takes digests of a run's rankings, by query."""
        self._runs.setdefault(run_id, {}).update(rankings)

    def read(self) -> BoardInputs:
        """What was collected."""
        return BoardInputs(
            dict(sorted(self._grades.items())),
            {run_id: _digest_of(rankings) for run_id, rankings in sorted(self._runs.items())},
        )


# The row of the best score that any run could reach; the name that the Rubric workbench gives it.
OVERALL = "_overall_"
# Rows that stand below the runs: the greatest, median and least of their scores (see `with_summary`).
BELOW = ("_max_", "_median_", "_min_")


@dataclass(frozen=True)
class Cell:
    """One run's score by one measure.

    Attributes:
        mean: the mean over the scored queries, of counts (NumRet, NumRel, NumQ) their sum, as ir_measures and trec_eval
            have it; None where no query could be scored.
        standard_error: sample standard deviation (n - 1) over the square root of n; None for fewer than two queries,
            and of a sum.
        queries: the number of queries in the mean.
        coverage: the share of the grades the value needed (ranked passages in the cutoff × items) that exist, in
            [0, 1]; None where none was needed.
        failed: the number of needed grades that failed.
    """

    mean: float | None
    standard_error: float | None
    queries: int
    coverage: float | None
    failed: int


@dataclass
class Tally:
    """A count of the grades that a run's values needed."""

    needed: int = 0
    graded: int = 0
    failed: int = 0

    def add(self, coverage: Coverage) -> None:
        """Counts those of one query, too."""
        self.needed += coverage.needed
        self.graded += coverage.graded
        self.failed += coverage.failed


def cell_of(values: Iterable[float | None]) -> Cell:
    """Mean and standard error of the values of one run and measure, without counts of grades."""
    return make_cell(values, Tally())


def is_summed(measure: Measure) -> bool:
    """Whether a measure's values are not averaged over the queries: a count, which ir_measures sums."""
    return not isinstance(measure.aggregator(), MeanAgg)


def make_cell(values: Iterable[float | None], tally: Tally, measure: Measure | None = None) -> Cell:
    """Mean and standard error of the values of one run and measure, with counts of grades.

    Args:
        values: the values of the queries; None where one could not be scored.
        tally: the counts.
        measure: says whether the values are averaged; they are without it.
    """
    scored = [value for value in values if value is not None]
    share = tally.graded / tally.needed if tally.needed else None
    if not scored:
        return Cell(None, None, 0, share, tally.failed)
    if measure is not None and is_summed(measure):
        aggregator = measure.aggregator()
        for value in scored:
            aggregator.add(value)
        return Cell(float(aggregator.result()), None, len(scored), share, tally.failed)
    mean = math.fsum(scored) / len(scored)
    error = None
    if len(scored) > 1:
        error = math.sqrt(math.fsum((value - mean) ** 2 for value in scored) / (len(scored) - 1) / len(scored))
    return Cell(mean, error, len(scored), share, tally.failed)


def collect_cells(values: Mapping[str, Mapping[str, Mapping[str, float | None]]]) -> dict[str, dict[str, Cell]]:
    """Means and standard errors of run_id -> measure -> query_id -> value, without counts of grades."""
    return {
        run_id: {name: cell_of(queries.values()) for name, queries in row.items()} for run_id, row in values.items()
    }


@dataclass(frozen=True)
class Leaderboard:
    """Scores of runs by measures.

    Attributes:
        measures: the measures, in the order asked for.
        values: run_id -> measure -> query_id -> value (None where the grades of all items failed).
        cells: run_id -> measure -> mean, standard error and coverage.
        signature: what produced the numbers.
        missing: run_id -> queries that the run does not rank (scored 0).
        unknown: run_id -> queries that the run ranks and nobody graded (left out).
        ranks: what is to be said of rankings inside records.
        without_items: queries without items, which have no score (left out).
        inputs: the content that was scored; its digests are part of the signature.
    """

    measures: Sequence[str]
    values: Mapping[str, Mapping[str, Mapping[str, float | None]]]
    cells: Mapping[str, Mapping[str, Cell]]
    signature: Signature
    missing: Mapping[str, Sequence[str]] = field(default_factory=dict)
    unknown: Mapping[str, Sequence[str]] = field(default_factory=dict)
    ranks: RankNotes = field(default_factory=RankNotes)
    without_items: Sequence[str] = ()
    inputs: BoardInputs = field(default_factory=BoardInputs)

    def ranking(self, measure: str | None = None) -> list[str]:
        """The runs, best first by the (first) measure; equal ones by name; the best possible score stands on top, and
        rows that sum up the runs stand at the end.
        """
        name = self.measures[0] if measure is None else measure
        if name not in self.measures:
            raise MeasureError(f"the leaderboard has no measure {name}; it has {', '.join(self.measures)}")

        def key(run_id: str) -> tuple[int, float, str]:
            mean = self.cells[run_id][name].mean
            place = 0 if run_id == OVERALL else 1 + (run_id in BELOW and BELOW.index(run_id) + 1)
            return (place, -mean if mean is not None else math.inf, run_id)

        return sorted(self.cells, key=key)

    @property
    def is_complete(self) -> bool:
        """Whether every value could be scored and no grade that was needed failed."""
        return all(
            cell.failed == 0 and (cell.mean is not None or run_id == OVERALL)
            for run_id, row in self.cells.items()
            for cell in row.values()
        ) and not any(
            value is None for row in self.values.values() for queries in row.values() for value in queries.values()
        )
