"""What is reviewed: grades and banks read in, stale items, the queues of an assessor.

What there is to review: the passages, the items, and what every grader said, read once from graded records.

In what order assessors check grades: disagreement, influence on the leaderboard, uncertainty, an audit, a query.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, NamedTuple, overload

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from rubric_measures.base.errors import InputError, UnknownNameError
from rubric_measures.base.files import path_name
from rubric_measures.corpora.conversion import read_entries
from rubric_measures.formats.banks import bank_of_entries
from rubric_measures.formats.grade_tables import read_as_records
from rubric_measures.measures.checked import CheckedGrade, CheckedPassage, check_records
from rubric_measures.measures.grade_sets import (
    HUMAN,
    Grader,
    GradeSetSelector,
    grade_of_assessors,
    grade_sets,
    grades_by_assessors,
    is_blind_set,
    prompt_cells,
    scale_of_set,
    undecided,
)
from rubric_measures.measures.loading import RecordQuery, select_query
from rubric_measures.records.models import (
    DirectGrade,
    GradedPassage,
    GradeSetKey,
    ItemGradeSet,
    QueryPassages,
    grade_of_items,
    grade_set_key,
    items_of_set,
    stale_in,
)
from rubric_measures.review.store import AssessorGrade, CellKey, Snapshot, adjudicated
from rubric_measures.types.entities import RubricItem, TestBank, bank_content
from rubric_measures.types.scales import HELD, SELF_RATING, Scale, known_scale
from rubric_measures.verification.graders import by_machines


def left_note(snapshot: Snapshot, earlier: Mapping[str, Collection[CellKey]]) -> str:
    """How many of the grades by assessors that an export holds are of such items; empty where none is.

    Args:
        snapshot: what assessors did.
        earlier: assessor -> the grades that the records have of them, from earlier reviews.
    """
    given = {
        (name, cell)
        for cell, assessors in snapshot.grades.items()
        for name, said in assessors.items()
        if said.stands is not None
    }
    given |= {(name, cell) for name, cells in earlier.items() for cell in cells}
    count = sum((cell.query_id, cell.item_id) in snapshot.left for _, cell in given)
    if not count:
        return ""
    return (
        f"{count} grades of the export are of items that left the bank, or wait for grades anew (reworded, other gold "
        "answers): kept, and they do not count"
    )


def words_of(snapshot: Snapshot, cell: CellKey, otherwise: str) -> str:
    """The words of a cell's item as the bank has them now; `otherwise` where no item of the bank has its id."""
    state = snapshot.first_at(cell.query_id, cell.item_id)
    if state is None or state.retired or state.place != (cell.query_id, cell.item_id):
        return otherwise
    return state.item.text or otherwise


def stale_items(
    groups: Iterable[QueryPassages],
    bank: TestBank,
    is_reviewed: Callable[[ItemGradeSet], bool],
) -> tuple[frozenset[tuple[str, str]], frozenset[tuple[str, str]]]:
    """(items that wait for grades of the reviewed grader; these and those of which another's grades are stale).

    A bank marks the items that reviews edited. Grades of a marked item hold where their set says that they were made
    anew since (`provenance.regraded`), or that all of it was made against this bank. An item waits where any of the
    grader's grades of it does not hold, and where there is none.

    Args:
        groups: the records, without assessors' grades.
        bank: the bank.
        is_reviewed: whether a grade set is the reviewed grader's.
    """
    if not bank.edited:
        return frozenset(), frozenset()
    marked = {(query_id, item_id) for query_id, edited in bank.edited.items() for item_id in edited}
    name = bank_content(bank)[:16]
    there: set[tuple[str, str]] = set()
    old: set[tuple[str, str]] = set()
    old_elsewhere: set[tuple[str, str]] = set()
    for group in groups:
        query_id, edited = group.query_id, bank.edited.get(group.query_id, {})
        for entry in (entry for passage in group.passages for entry in passage.exam_grades or () if edited):
            grades, statuses = items_of_set(entry)
            found = edited.keys() & (grades.keys() | statuses.keys())
            stale = {(query_id, item_id) for item_id in stale_in(entry, found, edited, name)}
            if is_reviewed(entry):
                there |= {(query_id, item_id) for item_id in found}
                old |= stale
            else:
                old_elsewhere |= stale
    waiting = frozenset(old | (marked - there))
    return waiting, waiting | old_elsewhere


# What the grades of a scale without names are called on the page.
_NAMES = {
    (0, 5): ("not at all", "barely", "partly", "fairly", "well", "completely"),
    (0, 1): ("no", "yes"),
}


@dataclass(frozen=True)
class QueryMaterial:
    """One query of the records.

    Attributes:
        query_id: the query.
        text: its text.
        passages: doc_id -> the passage with the grades of the main grader, in file order.
        ratings: doc_id -> grader -> item_id -> grade, of all graders on the main one's scale, that one too.
        record: the compiled grades and the rankings, for leaderboards; assessors' grades in the records stand in the
            main grader's place.
        assessors: (doc_id, item_id) -> assessor -> grade, of those grades by assessors.
        graded_once: (doc_id, item_id) -> assessors who graded other words or gold answers of the item, in the records:
            these grades do not count, and their assessors saw the grader's.
        settled: (doc_id, item_id) -> (name, grade): what an adjudicator decided, in the records.
    """

    query_id: str
    text: str
    passages: Mapping[str, CheckedPassage]
    ratings: Mapping[str, Mapping[str, Mapping[str, float]]]
    record: RecordQuery
    assessors: Mapping[tuple[str, str], Mapping[str, float]]
    graded_once: Mapping[tuple[str, str], Collection[str]]
    settled: Mapping[tuple[str, str], tuple[str, float]] = field(default_factory=dict)

    @cached_property
    def earlier_grades(self) -> Mapping[tuple[str, str], float]:
        """(doc_id, item_id) -> the one grade of assessors that the records have."""
        found = {place: grade_of_assessors(given.values()) for place, given in self.assessors.items()}
        return found | {place: grade for place, (_, grade) in self.settled.items()}

    def others(self, doc_id: str, item_id: str) -> dict[str, float]:
        """grader -> grade of one passage and item, of graders on the main one's scale and assessors (`human:NAME`)."""
        graders = self.ratings.get(doc_id, {}).items()
        return {grader: grades[item_id] for grader, grades in graders if item_id in grades}


@dataclass(frozen=True)
class Material:
    """All that is reviewed.

    Attributes:
        bank: the test bank as its file has it.
        queries: query_id -> its passages and grades.
        groups: the records as they were read.
        grader: the main grader: the one whose grades are checked and make the leaderboard; empty before grading.
        path: the records' file.
        overriding: takes the main grader's grades, and assessors' in their place.
        waiting: (query_id, item_id) of items that an earlier review edited, and that wait for the main grader's grades.
        stale: these, and those of which another grader's grades are older than the edit.
        scale: the scale of the main grader's grades.
        blind: assessor -> cell -> the first, blind grade, of earlier reviews.
    """

    bank: TestBank
    queries: Mapping[str, QueryMaterial]
    groups: Sequence[QueryPassages]
    grader: str
    path: str
    overriding: GradeSetSelector
    waiting: frozenset[tuple[str, str]] = frozenset()
    stale: frozenset[tuple[str, str]] = frozenset()
    scale: Scale = SELF_RATING
    blind: Mapping[str, Mapping[CellKey, float]] = field(default_factory=dict)

    @property
    def is_draft(self) -> bool:
        """Whether nothing was graded yet: the records hold passages alone, and only the bank can be edited."""
        return not self.grader

    @property
    def grade_names(self) -> dict[int, str]:
        """The grades that can be given, each with its name; the lowest and the highest always have one."""
        lowest, highest = self.scale[:2]
        ends = ("not at all", *("",) * (highest - lowest - 1), "completely")
        known = self.scale.names or _NAMES.get((lowest, highest), ends)
        # Where a scale names its grades, one without a name is none that anybody gives.
        return {
            grade: name.replace("_", " ") for grade, name in enumerate(known, lowest) if name or not self.scale.names
        }

    @cached_property
    def cells(self) -> list[CellKey]:
        """All grades of the main grader, in file order."""
        return [
            CellKey(query_id, doc_id, item_id)
            for query_id, query in self.queries.items()
            for doc_id, passage in query.passages.items()
            for item_id in passage.grades
        ]

    @cached_property
    def numbers(self) -> dict[CellKey, int]:
        """The place of each grade in `cells`."""
        return {cell: number for number, cell in enumerate(self.cells)}

    @cached_property
    def ranges(self) -> dict[str, range]:
        """query_id -> the places of its grades in `cells`."""
        ranges, start = {}, 0
        for query_id, query in self.queries.items():
            end = start + sum(len(passage.grades) for passage in query.passages.values())
            ranges[query_id], start = range(start, end), end
        return ranges

    @cached_property
    def spreads(self) -> NDArray[np.float32]:
        """How far the graders lie apart, max − min, for each grade in `cells`; 0 where one grader graded it."""
        found: list[float] = []
        for query in self.queries.values():
            for doc_id, passage in query.passages.items():
                graders = list(query.ratings.get(doc_id, {}).values())
                for item_id in passage.grades:
                    grades = [of_grader[item_id] for of_grader in graders if item_id in of_grader]
                    found.append(max(grades) - min(grades) if grades else 0)
        return np.array(found, dtype=np.float32)

    @cached_property
    def confidences(self) -> NDArray[np.float64]:
        """The probability of the most probable grade, for each grade in `cells`; NaN without a distribution."""
        rows = (
            row for query in self.queries.values() for one in query.passages.values() for row in one.grades.values()
        )
        return np.array([np.nan if row.confidence is None else row.confidence for row in rows], dtype=np.float64)

    @cached_property
    def influence(self) -> tuple[NDArray[np.float64], NDArray[np.int64], int]:
        """How much of the leaderboard turns on each grade in `cells`, how many runs it moves, and how many there are.

        A grade moves the Rubric-Cover@20 of those runs that rank the passage and have no other passage in the cutoff
        that covers the item. With n such runs of N, score = n (N − n) / |R_q|: the pairs of runs whose difference
        changes if the grade falls on the other side of the level that covers, each by 1 / |R_q|. All runs alike
        (n = N) move together: score 0.
        """
        runs = len({run for query in self.queries.values() for run in query.record.rankings})
        scores, moved = np.zeros(len(self.cells)), np.zeros(len(self.cells), dtype=np.int64)
        for query_id, query in self.queries.items():
            for (doc_id, item_id), count in _moved(query, self.scale.covers).items():
                number = self.numbers[CellKey(query_id, doc_id, item_id)]
                moved[number], scores[number] = count, count * (runs - count) / len(query.record.grades.items)
        return scores, moved, runs

    @cached_property
    def graded_by(self) -> dict[str, frozenset[CellKey]]:
        """assessor -> the grades in `cells` that have one by the assessor in the records."""
        found: dict[str, set[CellKey]] = {}
        for query_id, query in self.queries.items():
            for (doc_id, item_id), assessors in query.assessors.items():
                if item_id in query.passages[doc_id].grades:
                    for assessor in assessors:
                        found.setdefault(assessor, set()).add(CellKey(query_id, doc_id, item_id))
        return {assessor: frozenset(cells) for assessor, cells in found.items()}

    def earlier(self, cell: CellKey) -> Mapping[str, float]:
        """assessor -> the grade of a cell that the records have."""
        return self.queries[cell.query_id].assessors.get((cell.doc_id, cell.item_id), {})

    def settled(self, cell: CellKey) -> tuple[str, float] | None:
        """Who decided a cell as an adjudicator, and how, in the records; None where nobody did."""
        return self.queries[cell.query_id].settled.get((cell.doc_id, cell.item_id))

    def was_shown(self, assessor: str, cell: CellKey) -> bool:
        """Whether an assessor graded a cell in an earlier review, and was shown the grader's grade there."""
        place, query = (cell.doc_id, cell.item_id), self.queries[cell.query_id]
        known = {*query.assessors.get(place, ()), *query.graded_once.get(place, ())}
        return assessor in known or cell in self.blind.get(assessor, ())

    @cached_property
    def items(self) -> dict[tuple[str, str], RubricItem]:
        """(query_id, item_id) -> the item."""
        return {(item.query_id, item.item_id): item for item in self.bank}

    def grade(self, cell: CellKey) -> CheckedGrade:
        """The main grader's grade of a cell.

        Raises:
            UnknownNameError: the records have no such query, passage or grade.
        """
        query = self.queries.get(cell.query_id)
        if query is None:
            raise UnknownNameError("query", cell.query_id, self.queries)
        passage = query.passages.get(cell.doc_id)
        if passage is None:
            raise UnknownNameError("passage", cell.doc_id, query.passages)
        if cell.item_id not in passage.grades:
            raise UnknownNameError("graded item", cell.item_id, passage.grades)
        return passage.grades[cell.item_id]


def load_material(
    graded: str | os.PathLike[str], bank: str | os.PathLike[str], wanted: Grader | None = None
) -> Material:
    """Reads records and bank.

    Args:
        graded: graded records; grades by assessors in it are not reviewed, and count in the grader's place. Without
            any grade it is a draft of the bank that is reviewed.
        bank: the test bank, in any format that holds one.
        wanted: which grade set is reviewed; of several that pass, the one that comes first by model and prompt.

    Raises:
        InputError: no grades of items of the bank pass; that model graded them with that prompt in several settings;
            or the scale of the grades is not known.
        FormatError: a file cannot be read.
    """
    name = os.fspath(graded)
    the_bank = bank_of_entries(read_entries(bank), path_name(bank))
    groups = read_as_records(name, "a review")
    # What a review looks at: grades by assessors are what it makes.
    machine = list(by_machines(groups))
    wanted = wanted or Grader()
    keys = grade_sets(machine)
    prompts = prompt_cells(keys)
    # Sets that are taken for one have a key of their own among those that pass.
    chosen = _first_set(machine, grade_sets(machine, wanted), wanted, name, the_bank)
    selector = GradeSetSelector(chosen, name)
    checked = {query.query_id: query for query in check_records(machine, selector, the_bank)}
    is_draft = wanted == Grader() and not grade_sets(groups)
    if not selector.found and not is_draft:
        raise InputError(f"{name}: holds no grades of items of the bank that pass the filter")
    found = next(iter(selector.found), None)
    scale = known_scale(selector.scale) if found else SELF_RATING
    if scale.lowest < HELD[0] or scale.highest > HELD[1]:
        raise InputError(
            f"{name}: records hold grades {HELD[0]} to {HELD[1]}, and the scale is {scale}", settings=("scale",)
        )
    overriding = GradeSetSelector(replace(chosen, assessors="override"), name)
    queries: dict[str, QueryMaterial] = {}
    for group, whole in zip(machine, groups, strict=True):
        query = checked[group.query_id]
        passages = {passage.doc_id: passage for passage in query.passages}
        assessors, graded_once, settled = _assessors(whole, passages, found.kind if found else "", the_bank)
        queries[group.query_id] = QueryMaterial(
            group.query_id,
            query.text,
            passages,
            _ratings(group.passages, prompts, scale, assessors),
            select_query(whole, overriding, the_bank),
            assessors,
            graded_once,
            settled,
        )
    overriding.note_assessors()
    if found is None:
        return Material(the_bank, queries, groups, "", name, overriding)
    grader = grader_name(found.llm, prompts.get(found, f"{found.prompt_class} [{found.grade_set}]"))
    waiting, stale = stale_items(machine, the_bank, lambda entry: chosen.key_of(entry) == found)
    return Material(the_bank, queries, groups, grader, name, overriding, waiting, stale, scale, _blind(groups, queries))


def _blind(groups: Iterable[QueryPassages], queries: Mapping[str, QueryMaterial]) -> dict[str, dict[CellKey, float]]:
    """assessor -> cell -> the first, blind grade that earlier reviews exported, of cells that are reviewed."""
    found: dict[str, dict[CellKey, float]] = {}
    for group in groups:
        for passage in group.passages:
            for entry in filter(is_blind_set, passage.exam_grades or ()):
                said = found.setdefault(entry.llm.removeprefix(HUMAN), {})
                for item_id, grade in grade_of_items(entry).items():
                    if item_id in queries[group.query_id].passages[passage.doc_id].grades:
                        said.setdefault(CellKey(group.query_id, passage.doc_id, item_id), grade)
    return found


def grader_name(llm: str, prompt_class: str) -> str:
    """How the page calls a grader: the model and the prompt."""
    return f"{llm} {prompt_class}".strip()


def _first_set(
    groups: Sequence[QueryPassages], keys: Iterable[GradeSetKey], wanted: Grader, name: str, bank: TestBank
) -> Grader:
    """The filter for the first grade set that passes and has grades of the bank; the filter itself where there is none.

    Raises:
        InputError: sets of other settings are called alike.
    """
    passing: dict[GradeSetKey, Grader] = {}
    told: dict[GradeSetKey, ItemGradeSet | DirectGrade] = {}
    for key in keys:
        # Of each item the grade that was given is shown, and assessors' beside it.
        exact = replace(wanted.only(key), assessors=None, grade=None)
        # Labels of whole passages are no grades of items.
        may = key.kind != "direct" and (not passing or next(iter(passing))[:3] == key[:3])
        selector = GradeSetSelector(exact, name)
        if may and wanted.passes(key, lambda: ()) and _finds(selector, groups, bank):
            passing[key] = exact
            told |= selector.found
    if len(passing) > 1:
        raise undecided(name, passing, told)
    return next(iter(passing.values()), wanted)


def _finds(selector: GradeSetSelector, groups: Sequence[QueryPassages], bank: TestBank) -> bool:
    """Whether there are grades of the bank."""
    for group in groups:
        items = {item.item_id: item for item in bank.items.get(group.query_id, ())}
        if any(selector.choose(passage, items) is not None for passage in group.passages):
            return True
    return False


def _assessors(
    group: QueryPassages, passages: Mapping[str, CheckedPassage], kind: str, bank: TestBank
) -> tuple[
    dict[tuple[str, str], dict[str, float]], dict[tuple[str, str], set[str]], dict[tuple[str, str], tuple[str, float]]
]:
    """(doc_id, item_id) -> assessor -> grade, of those that are not stale; whose are; and what was decided."""
    items = {item.item_id: item for item in bank.items.get(group.query_id, ())}
    found: dict[tuple[str, str], dict[str, float]] = {}
    once: dict[tuple[str, str], set[str]] = {}
    settled: dict[tuple[str, str], tuple[str, float]] = {}
    for passage in group.passages:
        # As in `GradeSetSelector`: nobody's grades count of a passage that the grader did not grade.
        if not passages[passage.doc_id].grades:
            continue
        assessors = grades_by_assessors(passage, kind, items)
        for item_id, (name, grade) in assessors.settled.items():
            settled[passage.doc_id, item_id] = name.removeprefix(HUMAN), grade
        for name, grades in assessors.by_assessor.items():
            for item_id, grade in grades.items():
                found.setdefault((passage.doc_id, item_id), {})[name.removeprefix(HUMAN)] = grade
        if assessors.stale:
            for name, all_of_them in grades_by_assessors(passage, kind, None).by_assessor.items():
                for item_id in all_of_them.keys() - assessors.by_assessor.get(name, {}).keys():
                    once.setdefault((passage.doc_id, item_id), set()).add(name.removeprefix(HUMAN))
    return found, once, settled


def _ratings(
    passages: Iterable[GradedPassage],
    prompts: Mapping[GradeSetKey, str],
    scale: Scale,
    assessors: Mapping[tuple[str, str], Mapping[str, float]],
) -> dict[str, dict[str, dict[str, float]]]:
    found: dict[str, dict[str, dict[str, float]]] = {}
    for passage in passages:
        for entry in passage.exam_grades or ():
            its_scale = scale_of_set(entry)
            if its_scale is None or its_scale[:2] != scale[:2]:
                continue
            grader = grader_name(entry.llm, prompts[grade_set_key(entry)])
            of_passage = found.setdefault(passage.doc_id, {})
            of_passage[grader] = {**of_passage.get(grader, {}), **grade_of_items(entry)}
    for (doc_id, item_id), given in assessors.items():
        for assessor, grade in given.items():
            found.setdefault(doc_id, {}).setdefault(f"{HUMAN}{assessor}", {})[item_id] = grade
    return found


Order = Literal["disagreement", "influence", "uncertainty", "audit", "query", "decide", "differ"]
ORDERS: tuple[Order, ...] = ("disagreement", "influence", "uncertainty", "audit", "query")


def _far(material: Material) -> int:
    """From which difference on graders lie far apart: 3 of the scale 0 to 5, 2 of 0 to 3 and 0 to 2, 1 of yes and no.

    The queue tells no more than that: a place among cells that are 5 apart would say that the graders gave 0 and 5, to
    somebody who knows the grades of its neighbours and has still to give this one.
    """
    return -(-3 * (material.scale.highest - material.scale.lowest) // 5)


@dataclass(frozen=True)
class QueueChoice:
    """Which queue.

    Attributes:
        order: of the grades.
        query_id: only this query; empty takes all.
        assessor: who asks, of the orders `decide` and `differ`; empty in others.
        queries: only these queries, where the assessor was given some; empty takes all.
        judges: of the order `differ`: the assessor is the adjudicator, who decides what others differ on.
    """

    order: Order = "disagreement"
    query_id: str = ""
    assessor: str = ""
    queries: tuple[str, ...] = ()
    judges: bool = False

    @property
    def fields(self) -> dict[str, str]:
        """The choice as the fields of an address."""
        return {"order": self.order, **({"query": self.query_id} if self.query_id else {})}


class QueueEntry(NamedTuple):
    """One grade to check, and why it stands where it stands."""

    cell: CellKey
    why: str


class CellQueue(Sequence[QueueEntry]):
    """A queue as the places of its grades in `Material.cells`: entries are made when they are looked at.

    Args:
        material: the grades.
        numbers: the places, in the order of the queue; no place twice.
        why: why the grade of a place stands there.
    """

    def __init__(self, material: Material, numbers: NDArray[np.int64], why: Callable[[int], str]) -> None:
        self._cells, self._known, self._numbers, self._why = material.cells, material.numbers, numbers, why
        self._start = int(numbers.min()) if len(numbers) else 0
        self._places = np.full(int(numbers.max()) + 1 - self._start if len(numbers) else 0, -1, dtype=np.int64)
        self._places[numbers - self._start] = np.arange(len(numbers))

    def __len__(self) -> int:
        return len(self._numbers)

    @overload
    def __getitem__(self, place: int) -> QueueEntry: ...

    @overload
    def __getitem__(self, place: slice) -> list[QueueEntry]: ...

    def __getitem__(self, place: int | slice) -> QueueEntry | list[QueueEntry]:
        if isinstance(place, slice):
            return [self[one] for one in range(*place.indices(len(self)))]
        number = int(self._numbers[place])
        return QueueEntry(self._cells[number], self._why(number))

    def place(self, cell: CellKey) -> int | None:
        """Where a grade stands; None where it is not in the queue."""
        at = self._known.get(cell, -1) - self._start
        found = int(self._places[at]) if 0 <= at < len(self._places) else -1
        return found if found >= 0 else None


def make_queue(
    material: Material,
    choice: QueueChoice,
    assessors: Mapping[CellKey, Mapping[str, AssessorGrade]],
    kept: NDArray[np.bool_] | None = None,
    audit: Sequence[CellKey] = (),
) -> CellQueue:
    """The queue of a choice: grades by a score, the highest first, and those of score 0 left out. Ties stand in file
    order.

    Args:
        material: what is reviewed.
        choice: which queue.
        assessors: what assessors say now; only the orders of disagreement and of decisions hang on it.
        kept: see `kept_cells`; None keeps all.
        audit: what an audit asks, in its order.
    """
    asked = [
        places
        for query_id, places in material.ranges.items()
        if choice.query_id in ("", query_id) and (not choice.queries or query_id in choice.queries)
    ]
    numbers = np.concatenate([np.arange(0), *(np.arange(places.start, places.stop) for places in asked)])
    if kept is not None:
        numbers = numbers[kept[numbers]]
    if choice.order == "audit":
        drawn = np.array([material.numbers[cell] for cell in audit], dtype=np.int64)
        return CellQueue(material, drawn[np.isin(drawn, numbers)], lambda _: "audit")
    scores, why = _scores(material, choice, assessors)
    if choice.order != "query":
        ranks = np.argsort(-scores[numbers], kind="stable")
        numbers = numbers[ranks[: np.count_nonzero(scores[numbers])]]
    return CellQueue(material, numbers, why)


def _scores(
    material: Material, choice: QueueChoice, assessors: Mapping[CellKey, Mapping[str, AssessorGrade]]
) -> tuple[NDArray[Any], Callable[[int], str]]:
    """The score of each grade in `cells` in an order, and why the grade of a place has it.

    By disagreement it is 2 where graders on one scale and assessors lie far apart (max − min ≥ `_far`), and 1 where
    they differ. By certainty it falls with the probability of the most probable grade; grades without a distribution
    have 0. What is most probable is not told: the assessor has still to give a grade.
    """
    cells = material.cells
    if choice.order == "disagreement":

        def differ(number: int) -> str:
            grades = _all_grades(material, cells[number], assessors.get(cells[number], {}))
            return f"{len(grades)} grades differ by {max(grades) - min(grades):.6g}"

        spreads = material.spreads.copy()
        for cell, said in assessors.items():
            grades = _all_grades(material, cell, said)
            spreads[material.numbers[cell]] = max(grades) - min(grades) if grades else 0
        return (spreads > 0).astype(np.int8) + (spreads >= _far(material)), differ
    if choice.order == "influence":
        scores, moved, runs = material.influence
        return scores, lambda number: f"moves {moved[number]} of {runs} runs"
    if choice.order == "uncertainty":
        known = np.nan_to_num(2 - material.confidences)
        return known, lambda number: f"confidence {material.confidences[number]:.2f}"
    chosen = np.zeros(len(cells), dtype=np.int8)
    for cell, said in assessors.items():
        if choice.order == "decide":
            chosen[material.numbers[cell]] = waits_for(said, choice.assessor)
        elif choice.order == "differ":
            chosen[material.numbers[cell]] = _is_split(material, cell, said, choice)
    return chosen, lambda _: {"decide": "to decide", "differ": "assessors differ"}.get(choice.order, "")


def waits_for(said: Mapping[str, AssessorGrade], assessor: str) -> bool:
    """Whether an assessor's grade of a cell differs from the grader's, and nobody said yet which grade stands."""
    mine = said.get(assessor)
    return mine is not None and mine.grade is not None and mine.final is None and adjudicated(said) is None


def _is_split(material: Material, cell: CellKey, said: Mapping[str, AssessorGrade], choice: QueueChoice) -> bool:
    """Whether assessors differ on a cell, nobody decided it, and the one who asks has not still to grade it blindly."""
    if adjudicated(said) is not None or material.settled(cell) is not None:
        return False
    grades = dict(material.earlier(cell))
    for name, one in said.items():
        if one.stands is not None:
            grades[name] = one.stands
    return len(set(grades.values())) > 1 and (choice.assessor in grades or choice.judges)


def kept_cells(material: Material, left: Collection[tuple[str, str]]) -> NDArray[np.bool_]:
    """For each grade in `cells`, whether it is of none of these items, given as (query_id, item_id)."""
    kept = np.ones(len(material.cells), dtype=np.bool_)
    for query_id in {query_id for query_id, _ in left}:
        for number in material.ranges.get(query_id, range(0)):
            kept[number] = (query_id, material.cells[number].item_id) not in left
    return kept


def _all_grades(material: Material, cell: CellKey, said: Mapping[str, AssessorGrade]) -> Collection[float]:
    grades = material.queries[cell.query_id].others(cell.doc_id, cell.item_id)
    # Who graded it in an earlier review, too, has one grade: the later.
    grades |= {f"{HUMAN}{name}": one.final for name, one in said.items() if one.final is not None}
    return grades.values()


def _moved(query: QueryMaterial, rel: int, cutoff: int = 20) -> dict[tuple[str, str], int]:
    counts: dict[tuple[str, str], int] = {}
    grades = query.record.grades
    column = {item.item_id: place for place, item in enumerate(grades.items)}
    for ranking in query.record.rankings.values():
        top = [doc_id for doc_id in ranking[:cutoff] if doc_id in grades.docs]
        hits = grades.grades[[grades.docs[doc_id] for doc_id in top]] >= rel
        # A grade matters where nothing covers the item, or only this passage does.
        matters = hits.sum(axis=0) - hits == 0
        for doc_id, of_items in zip(top, matters.tolist(), strict=True):
            for item_id in query.passages[doc_id].grades:
                if of_items[column[item_id]]:
                    counts[doc_id, item_id] = counts.get((doc_id, item_id), 0) + 1
    return counts
