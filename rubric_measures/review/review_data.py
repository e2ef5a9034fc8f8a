"""What there is to review: the passages, the items, and what every grader said, read once from graded records."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rubric_measures.base.errors import InputError, UnknownNameError, naming
from rubric_measures.base.files import path_name
from rubric_measures.formats.banks import BankEntry, bank_of_entries, is_bank, load_bank, read_bank
from rubric_measures.measures.checked import CheckedGrade, CheckedPassage, check_records
from rubric_measures.measures.grade_sets import (
    CHOOSING,
    HUMAN,
    UNKNOWN_GRADER,
    GradeFilter,
    GradeSetSelector,
    choices_of,
    grade_of_assessors,
    grade_sets,
    grades_by_assessors,
    is_blind_set,
    prompt_cells,
    scale_of_set,
)
from rubric_measures.measures.loading import RecordQuery, select_query
from rubric_measures.records.files import load_graded
from rubric_measures.records.models import GradedPassage, GradeSetKey, QueryPassages, grade_of_items, grade_set_key
from rubric_measures.review._events import CellKey
from rubric_measures.review._stale_items import stale_items
from rubric_measures.types.entities import RubricItem, TestBank
from rubric_measures.types.scales import HELD, SELF_RATING, Scale, known_scale
from rubric_measures.verification.graders import by_machines

__all__ = ["Material", "QueryMaterial", "grader_name", "load_material", "read_entries"]

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
        """The grades that can be given, each with its name; empty where it has none."""
        lowest, highest = self.scale[:2]
        known = self.scale.names or _NAMES.get((lowest, highest), ("",) * (highest - lowest + 1))
        # Where the others have names, a grade without one is none that anybody gives.
        named = any(known)
        return {grade: name.replace("_", " ") for grade, name in enumerate(known, lowest) if name or not named}

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
        query = self.queries.get(cell.query_id)
        return query.assessors.get((cell.doc_id, cell.item_id), {}) if query is not None else {}

    def settled(self, cell: CellKey) -> tuple[str, float] | None:
        """Who decided a cell as an adjudicator, and how, in the records; None where nobody did."""
        query = self.queries.get(cell.query_id)
        return query.settled.get((cell.doc_id, cell.item_id)) if query is not None else None

    def was_shown(self, assessor: str, cell: CellKey) -> bool:
        """Whether an assessor graded a cell in an earlier review, and was shown the grader's grade there."""
        query = self.queries.get(cell.query_id)
        place = cell.doc_id, cell.item_id
        return query is not None and (
            assessor in query.assessors.get(place, ())
            or assessor in query.graded_once.get(place, ())
            or cell in self.blind.get(assessor, ())
        )

    @cached_property
    def digests(self) -> NDArray[np.uint64]:
        """A number for each grade in `cells`: the first 64 bits of the SHA-256 of its ids."""
        found = bytearray()
        for cell in self.cells:
            found += hashlib.sha256("\0".join(cell).encode("utf-8", "surrogatepass")).digest()[:8]
        return np.frombuffer(bytes(found), dtype=">u8").astype(np.uint64)

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


def read_entries(path: str | os.PathLike[str]) -> list[BankEntry]:
    """The entries of a bank in any format that holds one, as a CSV table.

    Raises:
        InputError: the file cannot be opened.
        FormatError: it holds no bank.
    """
    if path_name(path) == "-" or is_bank(path):
        return read_bank(path)
    from rubric_measures.corpora.bridges import Options, bridged, targets_of
    from rubric_measures.formats import FORMATS, detect_format

    one = FORMATS[detect_format(path)]
    if one.read is None or not targets_of(one.kind, ["bank"]):
        return read_bank(path)
    return list(bridged(one.read(path), one.kind, "bank", Options()))


def _test_bank(path: str | os.PathLike[str]) -> TestBank:
    """The bank that `read_entries` reads; errors of the workbench's own format name the line."""
    if path_name(path) == "-" or is_bank(path):
        return load_bank(path)
    with naming(path):
        return bank_of_entries(read_entries(path))


def load_material(
    graded: str | os.PathLike[str], bank: str | os.PathLike[str], wanted: GradeFilter | None = None
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
    the_bank = _test_bank(bank)
    groups = load_graded(name)
    # What a review looks at: grades by assessors are what it makes.
    machine = list(by_machines(groups))
    wanted = wanted or GradeFilter()
    keys = grade_sets(machine)
    prompts = prompt_cells(keys)
    # Sets that are taken for one have a key of their own among those that pass.
    chosen = _first_set(machine, grade_sets(machine, wanted), wanted, name, the_bank)
    selector = GradeSetSelector(chosen, name)
    checked = {query.query_id: query for query in check_records(machine, selector, the_bank)}
    is_draft = wanted == GradeFilter() and not grade_sets(groups)
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
    if overriding.assessor_count.found:
        overriding.assessor_count.note(name)
    if found is None:
        return Material(the_bank, queries, groups, "", name)
    grader = grader_name(found.llm, prompts.get(found, f"{found.prompt_class} [{found.grader}]"))
    waiting, stale = stale_items(machine, the_bank, lambda entry: chosen.key_of(entry) == found)
    return Material(the_bank, queries, groups, grader, name, waiting, stale, scale, _blind(groups, queries))


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
    groups: Sequence[QueryPassages], keys: Iterable[GradeSetKey], wanted: GradeFilter, name: str, bank: TestBank
) -> GradeFilter:
    """The filter for the first grade set that passes and has grades of the bank; the filter itself where there is none.

    Raises:
        InputError: sets of other settings are called alike.
    """
    passing: dict[GradeSetKey, GradeFilter] = {}
    told: dict[GradeSetKey, Mapping[str, Any]] = {}
    for key in keys:
        grader = key.grader or UNKNOWN_GRADER
        exact = GradeFilter(key.llm, key.prompt_class, key.kind, wanted.question_set, grader, scale=wanted.scale)
        # Labels of whole passages are no grades of items.
        may = key.kind != "direct" and (not passing or next(iter(passing))[:3] == key[:3])
        selector = GradeSetSelector(exact, name)
        if may and wanted.passes(key, lambda: ()) and _finds(selector, groups, bank):
            passing[key] = exact
            told |= selector.told
    if len(passing) > 1:
        raise InputError(
            f"{name}: several grade sets are left, choose one of: {choices_of(passing, told)}", settings=CHOOSING
        )
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
