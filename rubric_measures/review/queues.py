"""What is reviewed: grades and banks read in, stale items, the queues of an assessor.

What there is to review: the passages, the items, and what every grader said, read once from graded records.

In what order assessors check grades: what they have to decide, an audit, a query.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

from msgspec.structs import replace

from rubric_measures.base.errors import InputError, UnknownNameError
from rubric_measures.base.files import path_name
from rubric_measures.corpora.bridges import read_entries
from rubric_measures.formats.banks import BankEntry, bank_of_entries
from rubric_measures.formats.judged import read_as_records
from rubric_measures.measures.checked import CheckedGrade, CheckedPassage, check_records
from rubric_measures.measures.grade_sets import (
    HUMAN,
    Grader,
    GradeSetSelector,
    grade_sets,
    grades_by_assessors,
    is_blind_set,
    prompt_cells,
)
from rubric_measures.records import models
from rubric_measures.review.store import AssessorGrade, CellKey, Snapshot, adjudicated
from rubric_measures.types.entities import RubricItem, TestBank, bank_content, by_rank
from rubric_measures.types.scales import HELD, SELF_RATING, Scale, known_scale
from rubric_measures.verification.graders import by_machines


def words_of(snapshot: Snapshot, cell: CellKey, otherwise: str) -> str:
    """The words of a cell's item as the bank has them now; `otherwise` where no item of the bank has its id."""
    state = snapshot.first_at(cell.query_id, cell.item_id)
    if state is None or state.retired or state.place != (cell.query_id, cell.item_id):
        return otherwise
    return state.item.text or otherwise


def stale_items(
    groups: Iterable[models.QueryPassages], bank: TestBank, is_reviewed: Callable[[models.ItemGradeSet], bool]
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
            grades, statuses = models.items_of_set(entry)
            found = edited.keys() & (grades.keys() | statuses.keys())
            stale = {(query_id, item_id) for item_id in models.stale_in(entry, found, edited, name)}
            if is_reviewed(entry):
                there |= {(query_id, item_id) for item_id in found}
                old |= stale
            else:
                old_elsewhere |= stale
    waiting = frozenset(old | (marked - there))
    return waiting, waiting | old_elsewhere


# What the grades of a scale without names are called on the page.
_NAMES = {(0, 5): ("not at all", "barely", "partly", "fairly", "well", "completely"), (0, 1): ("no", "yes")}


@dataclass(frozen=True)
class RecordedGrades:
    """What the records say of grades beside the main grader's.

    Attributes:
        assessors: cell -> assessor -> grade, of earlier reviews.
        shown: cell -> assessors who were shown the grader's grade; also where theirs count no more, because they graded
            other words or gold answers of the item.
        settled: what an adjudicator decided.
        blind: assessor -> cell -> the first, blind grade.
    """

    assessors: dict[CellKey, dict[str, float]] = field(default_factory=dict)
    shown: dict[CellKey, set[str]] = field(default_factory=dict)
    settled: set[CellKey] = field(default_factory=set)
    blind: dict[str, dict[CellKey, float]] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Material:
    """All that is reviewed.

    Attributes:
        bank: the test bank as its file has it.
        entries: the entries of that file.
        queries: query_id -> doc_id -> the passage with the grades of the main grader, in file order.
        groups: the records as they were read.
        grader: the main grader: the one whose grades are checked and make the leaderboard; empty before grading.
        path: the records' file.
        waiting: (query_id, item_id) of items that an earlier review edited, and that wait for the main grader's grades.
        stale: these, and those of which another grader's grades are older than the edit.
        scale: the scale of the main grader's grades.
        said: what the records say beside these grades.
        rankings: run -> query_id -> doc_ids, the best first.
    """

    bank: TestBank
    entries: Sequence[BankEntry]
    queries: Mapping[str, Mapping[str, CheckedPassage]]
    groups: Sequence[models.QueryPassages]
    grader: str
    path: str
    waiting: frozenset[tuple[str, str]] = frozenset()
    stale: frozenset[tuple[str, str]] = frozenset()
    scale: Scale = SELF_RATING
    said: RecordedGrades = field(default_factory=RecordedGrades)
    rankings: Mapping[str, Mapping[str, Sequence[str]]] = field(default_factory=dict)

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
            for query_id, passages in self.queries.items()
            for doc_id, passage in passages.items()
            for item_id in passage.grades
        ]

    @cached_property
    def numbers(self) -> dict[CellKey, int]:
        """The place of each grade in `cells`."""
        return {cell: number for number, cell in enumerate(self.cells)}

    @cached_property
    def graded_by(self) -> dict[str, frozenset[CellKey]]:
        """assessor -> the grades in `cells` that have one by the assessor in the records."""
        cells = self.said.assessors.keys() & self.numbers.keys()
        names = {name for cell in cells for name in self.said.assessors[cell]}
        return {name: frozenset(cell for cell in cells if name in self.said.assessors[cell]) for name in names}

    def earlier(self, cell: CellKey) -> Mapping[str, float]:
        """assessor -> the grade of a cell that the records have."""
        return self.said.assessors.get(cell, {})

    @cached_property
    def items(self) -> dict[tuple[str, str], RubricItem]:
        """(query_id, item_id) -> the item."""
        return {(item.query_id, item.item_id): item for item in self.bank}

    def grade(self, cell: CellKey) -> CheckedGrade:
        """The main grader's grade of a cell.

        Raises:
            UnknownNameError: the records have no such query, passage or grade.
        """
        if cell not in self.numbers:
            name = f"{cell.item_id} of passage {cell.doc_id} of query {cell.query_id}"
            raise UnknownNameError("graded item", name, ())
        return self.queries[cell.query_id][cell.doc_id].grades[cell.item_id]


def load_material(
    graded: str | os.PathLike[str], bank: str | os.PathLike[str], wanted: Grader | None = None
) -> Material:
    """Reads records and bank.

    Args:
        graded: graded records; grades by assessors in it are not reviewed. Without any grade it is a draft of the
            bank that is reviewed.
        bank: the test bank, in any format that holds one.
        wanted: which grade set is reviewed.

    Raises:
        InputError: no grades of items of the bank pass, or those of several graders; or their scale is not known.
        FormatError: a file cannot be read.
    """
    name = os.fspath(graded)
    entries = read_entries(bank)
    the_bank = bank_of_entries(entries, path_name(bank))
    groups = read_as_records(name, "a review")
    # What a review looks at: grades by assessors are what it makes.
    machine = list(by_machines(groups))
    wanted = wanted or Grader()
    # Of each item the grade that was given is shown, and assessors' beside it. Labels of whole passages are none.
    selector = GradeSetSelector(replace(wanted, assessors=None), name, every=machine)
    queries = {
        query.query_id: {passage.doc_id: passage for passage in query.passages}
        for query in check_records(machine, selector, the_bank)
    }
    selector.note_counts()
    is_draft = wanted == Grader() and not grade_sets(groups)
    if not selector.found and not is_draft:
        raise selector.nothing_found(" of items in the bank")
    found = next(iter(selector.found), None)
    scale = known_scale(selector.scale) if found else SELF_RATING
    if scale.lowest < HELD[0] or scale.highest > HELD[1]:
        raise InputError(
            f"{name}: records hold grades {HELD[0]} to {HELD[1]}, and the scale is {scale}", settings=("scale",)
        )
    if found is None:
        return Material(the_bank, entries, queries, groups, "", name)
    prompts = prompt_cells(grade_sets(machine))
    grader = f"{found.llm} {prompts.get(found, f'{found.prompt_class} [{found.grade_set}]')}".strip()
    waiting, stale = stale_items(machine, the_bank, lambda entry: models.grade_set_key(entry) == found)
    rankings: dict[str, dict[str, Sequence[str]]] = {}
    material = Material(the_bank, entries, queries, groups, grader, name, waiting, stale, scale, rankings=rankings)
    for group in groups:
        for passage in group.passages:
            # As in `GradeSetSelector`: nobody's grades count of a passage that the grader did not grade.
            if queries[group.query_id][passage.doc_id].grades:
                _hear_assessors(material, group.query_id, passage, found.kind)
        for run_id, of_run in group.places.items():
            doc_ids, _ = by_rank(of_run, f"{name}: query {group.query_id!r}", run_id)
            rankings.setdefault(run_id, {})[group.query_id] = doc_ids
    return material


def _hear_assessors(material: Material, query_id: str, passage: models.GradedPassage, kind: str) -> None:
    """Notes what assessors said of a passage in earlier reviews, where it is not stale; and blindly."""
    said, items = material.said, {item.item_id: item for item in material.bank.items.get(query_id, ())}
    found = grades_by_assessors(passage, kind, items)
    everything = grades_by_assessors(passage, kind, None) if found.stale else found
    for name, grades in found.by_assessor.items():
        for item_id, grade in grades.items():
            cell = CellKey(query_id, passage.doc_id, item_id)
            said.assessors.setdefault(cell, {})[name.removeprefix(HUMAN)] = grade
    shown = [(name, item_id) for name, grades in everything.by_assessor.items() for item_id in grades]
    for entry in filter(is_blind_set, passage.exam_grades or ()):
        name = entry.llm.removeprefix(HUMAN)
        for item_id, grade in models.grade_of_items(entry).items():
            cell = CellKey(query_id, passage.doc_id, item_id)
            if cell in material.numbers:
                said.blind.setdefault(name, {}).setdefault(cell, grade)
                shown.append((name, item_id))
    for name, item_id in shown:
        said.shown.setdefault(CellKey(query_id, passage.doc_id, item_id), set()).add(name.removeprefix(HUMAN))
    said.settled.update(CellKey(query_id, passage.doc_id, item_id) for item_id in found.settled)


# What each queue is called and what it is for, in the order of the first screen.
ORDERS: dict[str, tuple[str, str]] = {
    "decide": ("To decide", "Grades of yours that differ from the grader's. Keep yours, or accept the grader's."),
    "audit": (
        "Audit",
        "Passages drawn by chance, some items of each: how often the grader is right, and whether runs really differ "
        "in the mean share of items that their passages cover.",
    ),
    "differ": (
        "Assessors differ",
        "To settle: change your grade, or let the median stand. What the adjudicator decides here counts for all.",
    ),
    "query": ("All grades, query by query", "To check whole queries, passage by passage."),
}


@dataclass(frozen=True)
class QueueChoice:
    """Which queue.

    Attributes:
        order: of the grades.
        assessor: who asks, of the orders `decide` and `differ`; empty in others.
        queries: only these queries, where the assessor was given some; empty takes all.
        adjudicates: of the order `differ`: the assessor is the adjudicator, who decides what others differ on.
    """

    order: str = "query"
    assessor: str = ""
    queries: tuple[str, ...] = ()
    adjudicates: bool = False


class CellQueue:
    """The grades of a queue, in their order.

    Args:
        cells: the grades; none twice.
    """

    def __init__(self, cells: Sequence[CellKey]) -> None:
        self._cells, self._places = cells, {cell: place for place, cell in enumerate(cells)}

    def __len__(self) -> int:
        return len(self._cells)

    def __getitem__(self, place: int) -> CellKey:
        return self._cells[place]

    def place(self, cell: CellKey) -> int | None:
        """Where a grade stands; None where it is not in the queue."""
        return self._places.get(cell)


@lru_cache(maxsize=24)
def _asked(material: Material, queries: frozenset[str], left: frozenset[tuple[str, str]]) -> CellQueue:
    """All grades of these queries (of all where none is named) but those of items that count no more."""
    cells = (cell for cell in material.cells if not queries or cell.query_id in queries)
    return CellQueue([cell for cell in cells if (cell.query_id, cell.item_id) not in left])


def make_queue(material: Material, choice: QueueChoice, snapshot: Snapshot, audit: Sequence[CellKey] = ()) -> CellQueue:
    """The queue of a choice, without items that count no more; but for the audit in file order.

    Args:
        material: what is reviewed.
        choice: which queue.
        snapshot: how things stand; only the orders of decisions hang on what assessors say.
        audit: what an audit asks, in its order.
    """
    asked = _asked(material, frozenset(choice.queries), frozenset(snapshot.left))
    if choice.order == "query":
        return asked
    chosen: Iterable[CellKey] = audit
    if choice.order != "audit":
        chosen = sorted(snapshot.grades, key=material.numbers.__getitem__)
    if choice.order == "decide":
        chosen = (cell for cell in chosen if waits_for(snapshot.grades[cell], choice.assessor))
    if choice.order == "differ":
        chosen = (cell for cell in chosen if _is_split(material, cell, snapshot.grades[cell], choice))
    return CellQueue([cell for cell in chosen if asked.place(cell) is not None])


def waits_for(said: Mapping[str, AssessorGrade], assessor: str) -> bool:
    """Whether an assessor's grade of a cell differs from the grader's, and nobody said yet which grade stands."""
    mine = said.get(assessor)
    return mine is not None and mine.grade is not None and mine.final is None and adjudicated(said) is None


def _is_split(material: Material, cell: CellKey, said: Mapping[str, AssessorGrade], choice: QueueChoice) -> bool:
    """Whether assessors differ on a cell, nobody decided it, and the one who asks has not still to grade it blindly."""
    if adjudicated(said) is not None or cell in material.said.settled:
        return False
    grades = dict(material.earlier(cell))
    for name, one in said.items():
        if one.stands is not None:
            grades[name] = one.stands
    return len(set(grades.values())) > 1 and (choice.assessor in grades or choice.adjudicates)
