"""What leaves a review (corrections as grades, bank, audit trail), and what a static page brings back."""

from __future__ import annotations

import csv
import json
import logging
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from rubric_measures.base.entities import ItemKind, content_hash, item_content
from rubric_measures.base.errors import FormatError, InputError, UnknownNameError, counted
from rubric_measures.base.files import atomic_writer, iter_lines, path_name
from rubric_measures.formats.bank import write_bank
from rubric_measures.grades.assessors import (
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
from rubric_measures.review._bank_formats import made_banks, read_entries, write_banks
from rubric_measures.review._events import ADJUDICATE, PAGE, CellKey, Snapshot
from rubric_measures.review._export_rows import GRADE_COLUMNS, audit_lines, grade_rows
from rubric_measures.review._importing import PageGrade
from rubric_measures.review._stale_items import left_grades, left_items, left_note, words_of
from rubric_measures.review.requests import checked_assessor
from rubric_measures.review.review_data import Material
from rubric_measures.review.store import ReviewStore

if TYPE_CHECKING:
    from rubric_measures.review.queues import Order
    from rubric_measures.review.session import Review

__all__ = [
    "Exported",
    "corrected_groups",
    "export_review",
    "import_grades",
    "inside",
    "static_page",
    "write_queue",
]

_HALF_PAIR = re.compile("[\ud800-\udfff]")


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
        notes: what a format of the bank cannot hold, a line a format; how many grades count no more because of edits of
            the bank; how many wait for a decision.
        waiting: items in the bank that need grades.
    """

    paths: Sequence[str]
    notes: Sequence[str]
    waiting: int


def export_review(
    store: ReviewStore,
    material: Material,
    bank_path: str,
    folder: str | os.PathLike[str],
    formats: Sequence[str] = (),
) -> Exported:
    """Writes `graded.jsonl.gz`, `bank.jsonl`, `grades.csv` (a row a grade) and `audit.jsonl` into a folder, which is
    made when it is not there; of the draft of a bank the two files without grades.

    Args:
        store: what assessors did.
        material: what they reviewed.
        bank_path: the bank's file.
        folder: where the files go.
        formats: further formats of the bank (see `bank_formats`), each into `bank.FORMAT.jsonl`.

    Raises:
        InputError: the folder cannot be written, a file would replace what was read, or a format cannot hold the bank.
            Nothing is written then.
    """
    target = Path(folder)
    events, snapshot = store.events(), store.snapshot()
    entries = edited_entries(read_entries(bank_path), material.bank, snapshot, material.stale)
    banks = made_banks(entries, formats)
    # A draft of a bank has no grades.
    names = ["bank.jsonl", "audit.jsonl"]
    if not material.is_draft:
        names = ["graded.jsonl.gz", *names, "grades.csv"]
    paths = [target / name for name in (*names, *(bank.file_name for bank in banks))]
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
        for line in audit_lines(events, snapshot):
            stream.write(line)
    if not material.is_draft:
        with atomic_writer(target / "grades.csv") as stream:
            rows = csv.writer(stream, lineterminator="\n")
            rows.writerow(GRADE_COLUMNS)
            rows.writerows(grade_rows(material, snapshot))
        write_graded(target / "graded.jsonl.gz", corrected_groups(material, snapshot))
    write_bank(target / "bank.jsonl", entries)
    write_banks(target, banks)
    notes = [f"{bank.file_name} cannot hold: {bank.note}" for bank in banks if bank.note]
    left = left_note(left_grades(snapshot, material.graded_by), "the export")
    notes += [note for note in (left, open_note(snapshot)) if note]
    waiting = sum(state.waits for state in snapshot.items.values())
    return Exported([str(path) for path in paths], notes, waiting)


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


def import_grades(path: str | os.PathLike[str], store: ReviewStore, material: Material) -> tuple[int, int]:
    """Takes in the grades that a static page saved; grades that are there already, content and all, are passed over.

    A line with the uid of a grade that is there and other content is a later version: both stay in the audit trail,
    and the later one counts; with another assessor, the grade changes its name. How many there are is said.

    A note with a grade that differs from the grader's is the reason of an override; without one the grade waits for a
    decision. A grade that is older than what its assessor did on the same cell since is kept as an event and replaces
    nothing. How many there are of each is said.

    Returns:
        (how many were new, how many lines the file has).

    Raises:
        FormatError: naming file and line: no such passage or item, no grade, not JSON. Nothing is taken in then.
    """
    name = path_name(path)
    rows = [_row(name, line, data, material) for line, data in iter_lines(name)]
    if not rows:
        raise FormatError("holds no grades", path=name)
    taken = store.take_in(rows)
    said = {
        "older than what the same assessor did there since, kept in the audit trail only": taken.older,
        "another version of a grade that was there (same uid), and counts in its place": taken.versions,
        "under a corrected name, and counts for the new name (decisions on the server stay)": taken.renamed,
    }
    notes = [f"{counted(count, 'grade')} {text}" for text, count in said.items() if count]
    snapshot = store.snapshot()
    left = left_items(snapshot)
    count = sum((row.payload["query_id"], row.payload["item_id"]) in left for row in rows)
    for note in filter(None, (*notes, left_note(count, "the file"), open_note(snapshot))):
        logging.getLogger("rubric_measures").warning("%s", note)
    return taken.new, len(rows)


def _row(name: str, line: int, data: bytes, material: Material) -> PageGrade:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        raise FormatError("is not JSON", path=name, line=line) from None
    if not isinstance(value, dict):
        raise FormatError("expected {uid, person, time, query_id, doc_id, item_id, grade}", path=name, line=line)
    for field in ("uid", "person", "time", "query_id", "doc_id", "item_id"):
        said = value.get(field)
        # Half surrogate pairs can stand in JSON, but not in a file.
        if not isinstance(said, str) or not said.strip() or _HALF_PAIR.search(said):
            raise FormatError("expected a text", path=name, line=line, field=field)
    grade = value.get("grade")
    if "grade" not in value or (grade is not None and (type(grade) is not int or grade not in material.scale)):
        problem = f"expected a grade from {material.scale.lowest} to {material.scale.highest}, or null for undecided"
        raise FormatError(problem, path=name, line=line, field="grade")
    cell = CellKey(value["query_id"], value["doc_id"], value["item_id"])
    try:
        grader = material.grade(cell).grade
        assessor = checked_assessor(value["person"])
        datetime.fromisoformat(value["time"])
    except InputError as error:
        raise FormatError(str(error), path=name, line=line) from None
    except ValueError:
        raise FormatError("expected a time as in ISO 8601", path=name, line=line, field="time") from None
    # Who graded it in an earlier review was shown the grader's grade there.
    blind = not material.was_shown(assessor, cell)
    payload = {**cell._asdict(), "grade": grade, "grader_grade": grader, "blind": blind, "source": PAGE}
    if isinstance(value.get("note"), str) and value["note"].strip():
        payload["note"] = value["note"].strip().encode("utf-8", "replace").decode("utf-8")
        if None not in (grade, grader) and grade != grader:
            payload["decision"] = "override"
    return PageGrade(f"page-{value['uid']}", assessor, value["time"], payload)


def static_page(
    material: Material, snapshot: Snapshot, cells: Sequence[CellKey], title: str, by_influence: bool = False
) -> str:
    """A queue as one HTML file that works without a server; it does not contain the grader's grades.

    Its "save" button downloads JSON lines for `import_grades`.

    Args:
        material: what is reviewed.
        snapshot: what assessors did.
        cells: the grades to check.
        title: of the page.
        by_influence: the queue is one by influence, which tells something about grades: the page says so.
    """
    from rubric_measures.review._pages import render

    rows = []
    for cell in cells:
        row = material.grade(cell)
        query = material.queries[cell.query_id]
        item = material.items.get((cell.query_id, cell.item_id))
        gold = list(item.gold_answers) if item else []
        words = words_of(snapshot, cell, row.item_text)
        rows.append({**cell._asdict(), "query": query.text, "item": words, "gold": gold, "text": row.text})
    # Browsers may keep what several pages store in one place: grades of one queue are not those of another.
    grades = [[str(grade), name] for grade, name in material.grade_names.items()]
    content = {"title": title, "id": content_hash(rows)[:16], "grades": grades, "cells": rows}
    data = json.dumps(content, ensure_ascii=False)
    return render("static_page.html", title=title, data=data, by_influence=by_influence, grades=material.grade_names)


def write_queue(
    review: Review, path: str | os.PathLike[str], order: Order, query_id: str = "", seed: int = 0, size: int = 100
) -> int:
    """Writes a queue as a page that needs no server (see `static_page`); how many grades it holds.

    Args:
        review: what is reviewed.
        path: the page.
        order: of the grades: `disagreement`, `influence`, `audit` or `query`.
        query_id: only this query; empty takes all.
        seed: of the random audit sample.
        size: the most grades that it holds.

    Raises:
        UnknownNameError: the bank lacks the query.
        InputError: there is no grade to check.
    """
    from rubric_measures.review.queues import QueueChoice

    material = review.material
    if query_id and query_id not in material.bank.items:
        raise UnknownNameError("query", query_id, material.bank.items)
    snapshot = review.store.snapshot()
    entries = review.queue(QueueChoice(order, query_id, seed, size), snapshot)[:size]
    if not entries:
        raise InputError(f"the queue by {order} is empty; choose another order", settings=("order",))
    cells = [entry.cell for entry in entries]
    with atomic_writer(path) as stream:
        stream.write(static_page(material, snapshot, cells, f"Review: {order}", order == "influence"))
    return len(entries)
