"""What leaves a review: corrections as grades, bank, audit trail."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from rubric_measures.base.errors import InputError
from rubric_measures.base.files import atomic_writer, path_name
from rubric_measures.base.tables import inert
from rubric_measures.formats.banks import write_bank
from rubric_measures.measures.grade_sets import (
    ADJUDICATION,
    BLIND_REVIEW,
    FINAL_REVIEW,
    HUMAN,
    is_adjudication,
    is_blind_set,
)
from rubric_measures.records.files import write_graded
from rubric_measures.records.models import (
    ITEM_CONTENTS,
    GradedPassage,
    ItemGradeSet,
    PromptInfo,
    QueryPassages,
    contents_of,
    grade_of_items,
)
from rubric_measures.review._agreement import open_note
from rubric_measures.review._bank_edits import edited_entries
from rubric_measures.review._events import ADJUDICATE, Event, Snapshot
from rubric_measures.review._stale_items import left_note
from rubric_measures.review.queues import waits_for
from rubric_measures.review.review_data import Material, read_entries
from rubric_measures.review.store import ReviewStore
from rubric_measures.types.entities import ItemKind, item_content

__all__ = [
    "Exported",
    "corrected_groups",
    "export_review",
    "inside",
]

_GRADE_COLUMNS = (
    *("assessor", "query_id", "doc_id", "item_id", "grader_grade", "first_grade", "first_time", "blind"),
    *("grade", "decision", "final_grade", "time", "note", "adjudicated_grade", "adjudicator"),
)


def inside(project: Path, name: str) -> Path:
    """The path that `name` means inside the project folder.

    Raises:
        InputError: it lies elsewhere (an absolute path, `..`, a link that leads out).
    """
    root = project.resolve()
    try:
        path = (root / name).resolve()
    except (OSError, ValueError):
        raise InputError(f"{name!r} is no path") from None
    if path != root and root not in path.parents:
        raise InputError(f"{name!r} lies outside of the project folder; name a folder inside it")
    return path


class Exported(NamedTuple):
    """What an export wrote.

    Attributes:
        paths: the files.
        notes: how many grades count no more because of edits of the bank; how many wait for a decision.
        waiting: items in the bank that need grades.
    """

    paths: Sequence[str]
    notes: Sequence[str]
    waiting: int


def export_review(store: ReviewStore, material: Material, bank_path: str, folder: str | os.PathLike[str]) -> Exported:
    """Writes `graded.jsonl.gz`, `bank.jsonl`, `grades.csv` (a row a grade) and `audit.jsonl` into a folder, which is
    made when it is not there; of the draft of a bank the two files without grades.

    Args:
        store: what assessors did.
        material: what they reviewed.
        bank_path: the bank's file.
        folder: where the files go.

    Raises:
        InputError: the folder cannot be written, or a file would replace what was read. Nothing is written then.
    """
    target = Path(folder)
    events, snapshot = store.events(), store.snapshot()
    entries = edited_entries(read_entries(bank_path), material.bank, snapshot, material.stale)
    # A draft of a bank has no grades.
    names = ["bank.jsonl", "audit.jsonl"]
    if not material.is_draft:
        names = ["graded.jsonl.gz", *names, "grades.csv"]
    paths = [target / name for name in names]
    read = {Path(material.path).resolve(), Path(bank_path).resolve()}
    if read & {path.resolve() for path in paths}:
        raise InputError(f"{path_name(folder)}: holds what is reviewed; export into another folder")
    there = [path.name for path in paths if path.exists()]
    if there and not (target / "audit.jsonl").exists():
        raise InputError(
            f"{path_name(folder)}: holds {there[0]} already, and no export of a review made it; name another folder"
        )
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{path_name(folder)}: cannot be made ({error.strerror or error})") from None
    # First, because it is how a later export knows the folder for one: also when this one is killed before its end.
    with atomic_writer(target / "audit.jsonl") as stream:
        for line in _audit_lines(events, snapshot):
            stream.write(line)
    if not material.is_draft:
        with atomic_writer(target / "grades.csv") as stream:
            rows = csv.writer(stream, lineterminator="\n")
            rows.writerow(_GRADE_COLUMNS)
            rows.writerows(_grade_rows(material, snapshot))
        write_graded(target / "graded.jsonl.gz", corrected_groups(material, snapshot))
    write_bank(target / "bank.jsonl", entries)
    notes = [note for note in (left_note(snapshot, material.graded_by), open_note(snapshot)) if note]
    waiting = sum(state.waits for state in snapshot.items.values())
    return Exported([str(path) for path in paths], notes, waiting)


def _grade_rows(material: Material, snapshot: Snapshot) -> Iterator[tuple[object, ...]]:
    """Who graded what, when, blind or not, and what came of it: a row a grade of this review, as `_GRADE_COLUMNS` says.

    `decision` is `agree`, `override` (theirs stands), `accept` (the grader's), `adjudicate` (what others differ on was
    decided), `to decide`, or empty while undecided. What was decided, and by whom, stands in each row of the cell, also
    where the records have it from an earlier review.
    """
    for cell, assessors in snapshot.grades.items():
        adjudicator, adjudicated = snapshot.adjudicated(cell) or material.settled(cell) or (None, None)
        grader = material.grade(cell).grade
        for name, said in sorted(assessors.items()):
            decision = said.decision or ("to decide" if waits_for(assessors, name) else "")
            first = (grader, said.first, said.first_time, "yes" if said.blind else "no")
            row = (
                name,
                *cell,
                *first,
                said.grade,
                decision,
                said.final,
                said.time,
                said.reason,
                adjudicated,
                adjudicator,
            )
            yield tuple(inert(value) if isinstance(value, str) else value for value in row)


def _audit_lines(events: Sequence[Event], snapshot: Snapshot) -> Iterator[str]:
    """One JSON line an event, oldest first; `undone` says whether it was taken back."""
    for event in events:
        line = {
            "event": event.event_id,
            "time": event.time,
            "person": event.assessor,
            "kind": event.kind,
            "uid": event.uid,
            "undone": event.event_id in snapshot.undone,
            **{"payload": dict(event.payload)},
        }
        yield json.dumps(line, ensure_ascii=False) + "\n"


# Assessor and prompt class (first and blind, final, or decided) -> item_id -> grade and reason, in one passage.
_Said = Mapping[tuple[str, str], Mapping[str, tuple[float, str]]]


def corrected_groups(material: Material, snapshot: Snapshot) -> Iterator[QueryPassages]:
    """The records with assessors' grades appended, by `human:NAME`: final ones, first and blind ones, and decided ones.

    Each are a grade set of their own (prompt class `HumanReview`, `HumanReviewBlind`, and `HumanAdjudication` of what
    an adjudicator decided), one a passage. The blind ones are there also while a grade waits for a decision, so that
    agreement with the grader is that of all blind grades. Of several adjudicators the latest decision is there.
    What was in the records stays as it was; a grade set that is there already, from an earlier export, is not repeated.
    """
    by_passage: dict[tuple[str, str], dict[tuple[str, str], dict[str, tuple[float, str]]]] = {}
    for cell, assessors in snapshot.grades.items():
        adjudicator = (snapshot.adjudicated(cell) or ("",))[0]
        for assessor, said in assessors.items():
            of_passage = by_passage.setdefault((cell.query_id, cell.doc_id), {})
            is_decision = said.decision == ADJUDICATE
            if said.final is not None and (not is_decision or assessor == adjudicator):
                prompt = ADJUDICATION if is_decision else FINAL_REVIEW
                of_passage.setdefault((assessor, prompt), {})[cell.item_id] = said.final, said.reason
            if said.blind and said.first is not None:
                of_passage.setdefault((assessor, BLIND_REVIEW), {})[cell.item_id] = said.first, ""
    states = _contents(material, snapshot)
    for group in material.groups:
        contents = states.get(group.query_id, {})
        passages = []
        for passage in group.passages:
            made = _renewed(passage, by_passage.get((group.query_id, passage.doc_id), {}), contents)
            passages.append(_with_assessors(passage, made, material, group.query_id, contents) if made else passage)
        yield QueryPassages(group.query_id, passages, group.line)


class _Content(NamedTuple):
    """What an item said in the bank's file, and what grades of it were given to as the bank now has it."""

    before: str
    now: str


def _contents(material: Material, snapshot: Snapshot) -> dict[str, dict[str, _Content]]:
    """query_id -> item_id -> contents, of the items of the bank's file.

    Of an item that is to be graded anew, assessors' grades are of the state before: as on the impact screen, they wait.
    """
    live = snapshot.live()
    found: dict[str, dict[str, _Content]] = {}
    for (query_id, item_id), item in material.items.items():
        state = live.get((query_id, item_id))
        before = item_content(item)
        changed = state is not None and not state.regrade and state.item != item
        now = item_content(state.item) if state is not None and changed else before
        found.setdefault(query_id, {})[item_id] = _Content(before, now)
    return found


def _renewed(passage: GradedPassage, made: _Said, contents: Mapping[str, _Content]) -> _Said:
    """Assessors' grades, with those of earlier reviews of items that were corrected since and still mean the same."""
    corrected = {item_id for item_id, one in contents.items() if one.now != one.before}
    if not corrected:
        return made
    found = {source: dict(grades) for source, grades in made.items()}
    sources = {(entry.llm, _prompt_of(entry)) for entry in passage.exam_grades or () if entry.llm.startswith(HUMAN)}
    for name, prompt in sources:
        for item_id, (grade, reason, content) in _said_by(name, prompt, passage.exam_grades or ()).items():
            if item_id in corrected and content == contents[item_id].before:
                found.setdefault((name.removeprefix(HUMAN), prompt), {}).setdefault(item_id, (grade, reason))
    return found


def _prompt_of(entry: ItemGradeSet) -> str:
    """Which of the three kinds of an assessor's grades a set holds; what other programs wrote is final."""
    return BLIND_REVIEW if is_blind_set(entry) else ADJUDICATION if is_adjudication(entry) else FINAL_REVIEW


def _with_assessors(
    passage: GradedPassage, made: _Said, material: Material, query_id: str, contents: Mapping[str, _Content]
) -> GradedPassage:
    entries = list(passage.exam_grades or ())
    for (assessor, prompt), grades in sorted(made.items()):
        known = _said_by(f"{HUMAN}{assessor}", prompt, entries)
        kinds: dict[ItemKind, dict[str, tuple[float, str]]] = {}
        for item_id, value in grades.items():
            kinds.setdefault(material.items[query_id, item_id].kind, {})[item_id] = value
        for kind, values in sorted(kinds.items()):
            entry = ItemGradeSet.build(
                {item_id: grade for item_id, (grade, _) in values.items()},
                answers=[(item_id, reason) for item_id, (_, reason) in values.items()],
                llm=f"{HUMAN}{assessor}",
                kind=kind,
                prompt_info=PromptInfo.model_validate(
                    {"prompt_class": prompt, "is_self_rated": True, **material.scale.as_json()}
                ),
            )
            given_to = {item_id: contents[item_id].now for item_id in values}
            if any(known.get(item_id) != (*value, given_to[item_id]) for item_id, value in values.items()):
                entries.append(entry.model_copy(update={ITEM_CONTENTS: given_to}))
    return passage.model_copy(update={"exam_grades": entries})


def _said_by(assessor: str, prompt: str, entries: Sequence[ItemGradeSet]) -> dict[str, tuple[float, str, str]]:
    """item_id -> the last grade of an assessor in a passage, its reason, and what the item then said (if known)."""
    found: dict[str, tuple[float, str, str]] = {}
    for entry in entries:
        if entry.llm == assessor and _prompt_of(entry) == prompt:
            reasons, contents = dict(entry.answers), contents_of(entry)
            for item_id, grade in grade_of_items(entry).items():
                found[item_id] = grade, reasons.get(item_id, ""), contents.get(item_id, "")
    return found
