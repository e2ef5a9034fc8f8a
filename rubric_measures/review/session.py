"""One review at work: agreement of assessors, what the audit says, export.

How far assessors are, and how well they agree with the grader and with each other.

The audit: what it asks, how often the grader is right, and which runs it settles.

One review in progress: the records, the state, and what is computed once and kept (queues).

What leaves a review: corrections as grades, bank, audit trail.
"""

from __future__ import annotations

import json
import math
import os
from collections import Counter
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from itertools import chain, combinations, groupby, pairwise
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from rubric_measures.analysis import calibration
from rubric_measures.analysis.agreement import LabelSource, compare_sources
from rubric_measures.analysis.resampling import Interval
from rubric_measures.base.errors import InputError, counted
from rubric_measures.base.files import atomic_writer, path_name
from rubric_measures.base.tables import Column, Report, Table, columns, render
from rubric_measures.formats.banks import write_bank
from rubric_measures.measures.grade_sets import (
    ADJUDICATION,
    BLIND_REVIEW,
    FINAL_REVIEW,
    HUMAN,
    grade_of_assessors,
    is_adjudication,
    is_blind_set,
)
from rubric_measures.records import models
from rubric_measures.review.queues import ORDERS, CellQueue, Material, QueueChoice, make_queue, waits_for
from rubric_measures.review.store import (
    ADJUDICATE,
    AssessorGrade,
    CellKey,
    Event,
    ReviewStore,
    Snapshot,
    adjudicated,
    cell_of,
    edited_entries,
)
from rubric_measures.types.entities import ItemKind, item_content

# Below so many pairs κ and α say little, whatever they are.
FEW = 20


class AssessorRow(NamedTuple):
    """What one assessor did.

    Attributes:
        assessor: who.
        graded: grades given.
        undecided: of these, those left undecided.
        open: grades that differ from the grader's and wait for a decision.
        overridden: of these, those where the assessor's grade stands.
        accepted: those where the assessor took the grader's.
        earlier: grades of the assessor that are in the records, from earlier reviews.
        settled: those that the assessor decided for all, as the adjudicator.
    """

    assessor: str
    graded: int
    undecided: int
    open: int
    overridden: int
    accepted: int
    earlier: int = 0
    settled: int = 0


class AgreementRow(NamedTuple):
    """Agreement of two sources on the grades that both gave blindly.

    Attributes:
        first: an assessor.
        second: another assessor, or the grader.
        pairs: how many grades both gave.
        exact: share of equal ones, in [0, 1].
        found: what the command `agreement` says of the same grades, with the same intervals; None where a grade has a
            fraction.
    """

    first: str
    second: str
    pairs: int
    exact: float
    found: Mapping[str, Interval] | None


def progress_rows(
    snapshot: Snapshot, earlier: Mapping[str, Collection[CellKey]] | None = None, names: Collection[str] = ()
) -> list[AssessorRow]:
    """One row an assessor, by name.

    Args:
        snapshot: what assessors did.
        earlier: assessor -> the grades that the records have of them.
        names: of those who have a row in any case.
    """
    before = {assessor: len(cells) for assessor, cells in (earlier or {}).items()}
    rows = []
    for assessor in sorted({*before, *names, *chain.from_iterable(snapshot.grades.values())}):
        mine = [by[assessor] for by in snapshot.grades.values() if assessor in by]
        undecided = sum(one.grade is None and one.final is None for one in mine)
        waiting = sum(waits_for(by, assessor) for by in snapshot.grades.values())
        kinds = Counter(one.decision for one in mine)
        decided = (kinds["override"], kinds["accept"], before.get(assessor, 0), kinds[ADJUDICATE])
        rows.append(AssessorRow(assessor, len(mine), undecided, waiting, *decided))
    return rows


Said = Mapping[CellKey, Mapping[str, AssessorGrade]]
"""cell -> assessor -> what they say."""


def first_blind(material: Material, said: Said) -> dict[str, dict[CellKey, float]]:
    """assessor -> cell -> the first, blind grade, of this review and of earlier ones."""
    found: dict[str, dict[CellKey, float]] = {}
    for cell, by_assessor in said.items():
        for name, one in by_assessor.items():
            if one.blind and one.first is not None:
                found.setdefault(name, {})[cell] = one.first
    for name, known in material.said.blind.items():
        # Whoever graded a cell in an earlier review first said that.
        found[name] = {**found.get(name, {}), **known}
    return found


def agreement_rows(material: Material, snapshot: Snapshot) -> list[AgreementRow]:
    """Assessors against the grader, then each other; only first, blind grades: later ones know of each other."""
    first = first_blind(material, snapshot.grades)
    cells = {cell for said in first.values() for cell in said}
    grader = {cell: grade for cell in cells if (grade := material.grade(cell).grade) is not None}
    names = sorted(first)
    pairs = [(name, material.grader, first[name], grader) for name in names]
    pairs += [(one, two, first[one], first[two]) for one, two in combinations(names, 2)]
    return [_agreement(*pair) for pair in pairs if pair[2].keys() & pair[3].keys()]


def _agreement(name: str, other: str, a: Mapping[CellKey, float], b: Mapping[CellKey, float]) -> AgreementRow:
    both = sorted(a.keys() & b.keys())
    exact = sum(a[cell] == b[cell] for cell in both) / len(both)
    sources = [LabelSource(name, {cell: one[cell] for cell in both}) for one in (a, b)]
    is_whole = not any(grade % 1 for one in sources for grade in one.labels.values())
    return AgreementRow(
        name, other, len(both), exact, compare_sources(sources).rows[0].statistics if is_whole else None
    )


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


_Z = 1.959963984540054  # of 95 %
# A pause is no work; what a passage takes before anybody worked, with five items.
_PAUSE, _USUAL = 600.0, 70.0


@lru_cache(maxsize=2)
def blind_grades(material: Material, snapshot: Snapshot) -> Mapping[CellKey, float]:
    """The first, blind grade of each cell; of several assessors the one that counts."""
    first = first_blind(material, snapshot.grades).values()
    cells = dict.fromkeys(chain.from_iterable(first))
    return {cell: grade_of_assessors([grades[cell] for grades in first if cell in grades]) for cell in cells}


def shown_cells(material: Material, snapshot: Snapshot) -> frozenset[CellKey]:
    """Grades that assessors gave, none of them blindly: an audit cannot ask for them any more."""
    graded = {cell for cell, by in snapshot.grades.items() if any(one.first is not None for one in by.values())}
    return frozenset(graded.union(*material.graded_by.values()) - blind_grades(material, snapshot).keys())


@lru_cache(maxsize=2)
def draw(
    material: Material, plan: calibration.AuditPlan, left: frozenset[tuple[str, str]], shown: frozenset[CellKey]
) -> calibration.Audit:
    """The audit of the grades that count; a grade that failed covers nothing.

    Args:
        material: what is reviewed.
        plan: what is planned.
        left: (query_id, item_id) of items that count no more.
        shown: see `shown_cells`.

    Raises:
        InputError: a run of a pair is not there, or nothing tells its runs apart.
    """
    labels: dict[tuple[str, str], dict[str, bool]] = {}
    covers = material.scale.covers
    for query_id, passages in material.queries.items():
        for doc_id, passage in passages.items():
            labels[query_id, doc_id] = {
                item_id: row.grade is not None and row.grade >= covers
                for item_id, row in passage.grades.items()
                if (query_id, item_id) not in left and CellKey(query_id, doc_id, item_id) not in shown
            }
    return calibration.make_audit(plan, labels, material.rankings)


def truth_of(material: Material, snapshot: Snapshot) -> calibration.Truth:
    """What assessors found blindly."""
    return {cell: grade >= material.scale.covers for cell, grade in blind_grades(material, snapshot).items()}


def note_of(review: Review, snapshot: Snapshot) -> tuple[str, list[str]]:
    """What an audit says now, or what it will be good for.

    Returns:
        how often the grader is right, or how well that will be known; what passages wait for, where some do, and a
        sentence a pair of runs.
    """
    material, audit = review.material, review.audit(snapshot)
    blind = blind_grades(material, snapshot)
    checked, drawn = len(audit.checked(blind)), len(audit.drawn)
    minutes = _minutes(audit, snapshot.grades)
    said, left = [], audit.drawn[checked:]
    if graded := sum(all(CellKey(*one.place, item_id) in blind for item_id in one.items) for one in left):
        # One before them has an item that is undecided or nobody's yet.
        first = f"all {len(left[0].items)} items of passage {left[0].doc_id} of query {left[0].query_id}"
        said.append(f"{counted(graded, 'graded passage')} will count once {first} have a blind grade")
    found = audit.settled(truth_of(material, snapshot))
    for one, reach in zip(found, audit.expected_reaches, strict=True):
        pair = " against ".join(one.runs)
        if reach is None:
            size = f"{counted(drawn, 'passage')} of {counted(len(material.queries), 'query')}"
            said.append(f"{pair}: nothing will be settled by {size}: it takes ten of both")
        elif not checked:
            known = f"{pair}: half of such audits settle a difference of {reach:.2f} in {calibration.SETTLED_MEASURE}"
            said.append(f"{known}, if the grader is right in {100 * calibration.GUESSED_AGREEMENT:.0f} of 100")
        else:
            said.append(calibration.sentence(one, minutes))
    said += [calibration.OTHERWISE] * any(one.verdict != "open" for one in found)
    if not drawn:
        return "", said
    if not checked:
        low, high = wilson_interval(drawn, 2 * drawn)
        known = f"how often the grader is right will be known to ±{50 * (high - low):.0f} percentage points or better"
        return f"{counted(drawn, 'passage')}, about {counted(round(drawn * minutes), 'minute')}: {known}", said
    both = blind.keys() & material.numbers.keys()
    same: dict[tuple[str, str, str], bool] = {cell: material.grade(cell).grade == blind[cell] for cell in both}
    return _right(audit, same, checked), said


def found_table(review: Review, snapshot: Snapshot) -> Table:
    """The calibrated board: every run's mean share of covered items as assessors would find it, or the differences of
    the pairs that an audit is to settle; below it what else the audit says. No row where assessors checked too little.
    """
    audit, plan = review.audit(snapshot), review.plan
    rows = audit.board(truth_of(review.material, snapshot))
    right, said = note_of(review, snapshot)
    held = f"{'all intervals hold together' if plan.pairs else 'an interval holds'} at {100 * plan.level:g} %"
    known = f"{held}, however often one looks, up to the {counted(len(audit.drawn), 'passage')} that are planned"
    needs = f"there are numbers once passages of {calibration.FIRST_LOOK} queries are checked"
    first = f"over the first passages of a run, {plan.cutoff} at most"
    what = f"Shown is {calibration.SETTLED_MEASURE}, {first}, by grader and by assessors"
    notes = [f"{what}; {known if rows else needs}" if audit.weights else "", right, *said]
    heads = columns(["run", "grader", "calibrated", "low", "high"], 3)
    heads += [Column("checked", only="programs"), Column("verdict", only="programs")]
    cells = [[" − ".join(one.runs), *one[2:6], one.checked, one.verdict] for one in rows]
    return Table(heads, cells, "Calibrated board", [note for note in notes if note])


def _right(audit: calibration.Audit, same: calibration.Truth, checked: int) -> str:
    done = f"{checked} of {counted(len(audit.drawn), 'passage')} checked"
    found = audit.share(same)
    if found is None:
        return done
    share, size = found
    low, high = wilson_interval(share * size, size)
    of = "items of passages in which these runs differ" if audit.plan.pairs else "all items"
    return (
        f"{done}. The grader gives the assessors' grade in {100 * share:.0f} % of {of} "
        f"({100 * low:.0f} to {100 * high:.0f} %, at 95 % confidence)."
    )


def _minutes(audit: calibration.Audit, said: Said) -> float:
    """How long a passage takes: the median time from one passage to the next of an assessor."""
    ends: dict[str, dict[tuple[str, str], float]] = {}
    for one in audit.drawn:
        for item_id in one.items:
            for name, of_name in said.get(CellKey(*one.place, item_id), {}).items():
                if of_name.first_time:
                    time = datetime.fromisoformat(of_name.first_time).timestamp()
                    of_places = ends.setdefault(name, {})
                    of_places[one.place] = max(time, of_places.get(one.place, time))
    times = [sorted(of_places.values()) for of_places in ends.values()]
    steps = [after - before for of_name in times for before, after in pairwise(of_name)]
    return median([step for step in steps if step < _PAUSE] or [_USUAL]) / 60


@dataclass(eq=False)
class Review:
    """One review.

    Attributes:
        material: what is reviewed.
        store: what assessors did.
        bank_path: the bank's file.
        default_assessor: who works here when the browser does not say.
        blind: the grader's grade is hidden until the assessor has given theirs.
        plan: of the audit.
        guidelines: instructions for assessors, as HTML; empty where there are none.
        assignments: assessor -> the queries that they were given; others work on all.
        adjudicator: who decides what assessors differ on; empty where nobody does.
        token: what a browser has to show once.
    """

    material: Material
    store: ReviewStore
    bank_path: str
    default_assessor: str = ""
    blind: bool = True
    plan: calibration.AuditPlan = field(default_factory=lambda: calibration.AuditPlan((), 50))
    guidelines: str = ""
    assignments: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    adjudicator: str = ""
    token: str = ""

    @property
    def link_names(self) -> list[str]:
        """Those who work under a link of their own: who was given queries, and the adjudicator."""
        return list(dict.fromkeys([*self.assignments, *([self.adjudicator] if self.adjudicator else [])]))

    def spans(self, assessor: str) -> str:
        """The queries that an assessor was given, neighbours in the bank as from and to: `q1–q10, q12`."""
        given = frozenset(self.assignments.get(assessor, ()))
        runs = [list(run) for is_given, run in groupby(self.material.bank.items, given.__contains__) if is_given]
        return ", ".join(run[0] if len(run) == 1 else f"{run[0]}–{run[-1]}" for run in runs)

    def prepare(self) -> list[str]:
        """Computes what every screen needs, before the first one is asked for; what the audit says of its pairs."""
        snapshot = self.store.snapshot()
        for order in ORDERS:
            queue_of(self, QueueChoice(order), snapshot)
        return note_of(self, snapshot)[1] if self.plan.pairs else []

    def audit(self, snapshot: Snapshot) -> calibration.Audit:
        """The audit of the grades that count, and that can still be given blindly."""
        # Where nobody grades blindly, what was graded stays in the sample.
        shown = shown_cells(self.material, snapshot) if self.blind else frozenset[CellKey]()
        return draw(self.material, self.plan, frozenset(snapshot.left), shown)


@lru_cache(maxsize=24)
def queue_of(review: Review, choice: QueueChoice, snapshot: Snapshot) -> CellQueue:
    """The queue of a choice, without items that count no more."""
    if choice.order != "audit":
        return make_queue(review.material, choice, snapshot)
    audit = review.audit(snapshot)
    settled = audit.settled(truth_of(review.material, snapshot))
    ends = [one.checked for one in settled if one.verdict != "open"]
    # Nothing behind the passages that settled all pairs.
    drawn = audit.drawn[: max(ends)] if ends and len(ends) == len(settled) else audit.drawn
    cells = [CellKey(*one.place, item_id) for one in drawn for item_id in one.items]
    return make_queue(review.material, choice, snapshot, cells)


_AUDIT_FIELDS = ("event", "time", "person", "kind", "uid", "undone", "payload")


class Exported(NamedTuple):
    """What an export wrote.

    Attributes:
        paths: the files.
        waiting: items in the bank that need grades.
    """

    paths: Sequence[str]
    waiting: int


def export_review(review: Review, folder: str | os.PathLike[str]) -> Exported:
    """Writes `graded.jsonl.gz`, `bank.jsonl`, `audit.jsonl`, and what an audit found as `found.md` and `found.json` to
    a folder, which is made when it is not there; of the draft of a bank the two files without grades.

    Args:
        review: the review.
        folder: where the files go.

    Raises:
        OSError: the folder cannot be made.
        InputError: it cannot be written, or a file would replace what was read. Nothing is written then.
    """
    target, store, material = Path(folder), review.store, review.material
    events, snapshot = store.events(), store.snapshot()
    entries = edited_entries(material.entries, material.bank, snapshot, material.stale)
    # A draft of a bank has no grades.
    names = ["bank.jsonl", "audit.jsonl"]
    if not material.is_draft:
        names = ["graded.jsonl.gz", *names, "found.md", "found.json"]
    paths = [target / name for name in names]
    read = {Path(material.path).resolve(), Path(review.bank_path).resolve()}
    if read & {path.resolve() for path in paths}:
        raise InputError(f"{path_name(folder)}: holds what is reviewed; export into another folder")
    there = [path.name for path in paths if path.exists()]
    if there and not (target / "audit.jsonl").exists():
        raise InputError(
            f"{path_name(folder)}: holds {there[0]} already, and no export of a review made it; name another folder"
        )
    target.mkdir(parents=True, exist_ok=True)
    # First, because it is how a later export knows the folder for one: also when this one is killed before its end.
    with atomic_writer(target / "audit.jsonl") as stream:
        # One JSON line an event, oldest first; `undone` says whether it was taken back.
        for event in events:
            stream.write(json.dumps(dict(zip(_AUDIT_FIELDS, event, strict=True)), ensure_ascii=False) + "\n")
    if not material.is_draft:
        found = found_table(review, snapshot)
        for name, form in (("found.md", "markdown"), ("found.json", "json")):
            with atomic_writer(target / name) as stream:
                stream.writelines(render(Report([found]), form))
        models.write_graded(
            target / "graded.jsonl.gz", corrected_groups(material, snapshot, _stands(material, snapshot, events))
        )
    write_bank(target / "bank.jsonl", entries)
    return Exported([str(path) for path in paths], sum(state.waits for state in snapshot.items.values()))


class _Given(NamedTuple):
    """An assessor's grade, what stands beside it, and its details: that it waits, or how many items it stands for."""

    grade: float
    reason: str = ""
    details: Mapping[str, Any] = {}


# Assessor and prompt class (first and blind, as it stands, or decided) -> item_id -> the grade, in one passage.
_Said = Mapping[tuple[str, str], Mapping[str, _Given]]


def _stands(material: Material, snapshot: Snapshot, events: Sequence[Event]) -> dict[CellKey, float]:
    """For how many items of its passage a grade of the audit stands: those with the grader's label, by those asked."""

    given = [one.payload for one in events if one.payload.get("queue") == "audit" and not one.undone]
    # Who was undecided gave no grade that could stand for others.
    asked = {cell_of(payload) for payload in given if payload["blind"] and payload["grade"] is not None}
    strata: dict[CellKey, Hashable] = {
        CellKey(*place, item_id): (place, row.grade is not None and row.grade >= material.scale.covers)
        for place in {cell[:2] for cell in asked}
        for item_id, row in material.queries[place[0]][place[1]].grades.items()
        if (place[0], item_id) not in snapshot.left
    }
    return calibration.stands_for(strata, asked)


def corrected_groups(
    material: Material, snapshot: Snapshot, stands: Mapping[CellKey, float] | None = None
) -> Iterator[models.QueryPassages]:
    """The records with assessors' grades appended, by `human:NAME`: as they stand, first and blind ones, decided ones.

    Each are a grade set of their own (prompt class `HumanReview`, `HumanReviewBlind`, and `HumanAdjudication` of what
    an adjudicator decided), one a passage. A grade that waits for a decision stands as the assessor gave it, and is
    marked. Of several adjudicators the latest decision is there. Blind grades of the audit have what they stand for.
    What was in the records stays as it was; a grade set that is there already, from an earlier export, is not repeated.
    """
    by_passage: dict[tuple[str, str], dict[tuple[str, str], dict[str, _Given]]] = {}
    for cell, assessors in snapshot.grades.items():
        adjudicator = (adjudicated(assessors) or ("",))[0]
        for assessor, said in assessors.items():
            of_passage = by_passage.setdefault((cell.query_id, cell.doc_id), {})
            is_decision = said.decision == ADJUDICATE
            if said.stands is not None and (not is_decision or assessor == adjudicator):
                prompt = ADJUDICATION if is_decision else FINAL_REVIEW
                waits = {models.TO_DECIDE: True} if waits_for(assessors, assessor) else {}
                given = _Given(said.stands, said.reason, waits)
                of_passage.setdefault((assessor, prompt), {})[cell.item_id] = given
            if said.blind and said.first is not None:
                sample = {models.STANDS_FOR: stands[cell]} if stands and cell in stands else {}
                of_passage.setdefault((assessor, BLIND_REVIEW), {})[cell.item_id] = _Given(said.first, details=sample)
    states = _contents(material, snapshot)
    for group in material.groups:
        contents = states.get(group.query_id, {})
        passages = []
        for passage in group.passages:
            made = by_passage.get((group.query_id, passage.doc_id), {})
            passages.append(_with_assessors(passage, made, material, group.query_id, contents))
        yield models.QueryPassages(group.query_id, passages, group.line)


# item_id -> what an item said in the bank's file, and what grades of it were given to as the bank now has it.
_Contents = Mapping[str, tuple[str, str]]


def _contents(material: Material, snapshot: Snapshot) -> dict[str, _Contents]:
    """query_id -> contents of the items of the bank's file.

    Of an item that is to be graded anew, assessors' grades are of the state before: they wait.
    """
    live = snapshot.live()
    found: dict[str, dict[str, tuple[str, str]]] = {}
    for (query_id, item_id), item in material.items.items():
        state = live.get((query_id, item_id))
        changed = state is not None and not state.regrade and state.item != item
        now = state.item if state is not None and changed else item
        found.setdefault(query_id, {})[item_id] = item_content(item), item_content(now)
    return {**found}


def _prompt_of(entry: models.ItemGradeSet) -> str:
    """Which of the three kinds of an assessor's grades a set holds; what other programs wrote is final."""
    return BLIND_REVIEW if is_blind_set(entry) else ADJUDICATION if is_adjudication(entry) else FINAL_REVIEW


def _with_assessors(
    passage: models.GradedPassage, made: _Said, material: Material, query_id: str, contents: _Contents
) -> models.GradedPassage:
    """The passage with assessors' grades, also those of earlier reviews of items that were corrected since and still
    mean the same."""
    entries, known = list(passage.exam_grades or ()), _said_in(passage)
    found = {source: dict(grades) for source, grades in made.items()}
    corrected = {item_id: before for item_id, (before, now) in contents.items() if now != before}
    for source, said in known.items():
        for item_id, (given, content) in said.items():
            if content == corrected.get(item_id):
                found.setdefault(source, {}).setdefault(item_id, given)
    for (assessor, prompt), grades in sorted(found.items()):
        kinds: dict[ItemKind, dict[str, _Given]] = {}
        for item_id, value in grades.items():
            kinds.setdefault(material.items[query_id, item_id].kind, {})[item_id] = value
        for kind, values in sorted(kinds.items()):
            entry = models.ItemGradeSet.build(
                {item_id: one.grade for item_id, one in values.items()},
                answers=[(item_id, one.reason) for item_id, one in values.items()],
                llm=f"{HUMAN}{assessor}",
                kind=kind,
                prompt_info=models.PromptInfo(prompt_class=prompt, is_self_rated=True, **material.scale.as_json()),
                details={item_id: one.details for item_id, one in values.items() if one.details} or None,
            )
            given_to = {item_id: contents[item_id][1] for item_id in values}
            there = known.get((assessor, prompt), {})
            if any(there.get(item_id) != (value, given_to[item_id]) for item_id, value in values.items()):
                entries.append(entry.replacing(item_contents=given_to))
    return passage.replacing(exam_grades=entries) if found else passage


def _said_in(passage: models.GradedPassage) -> dict[tuple[str, str], dict[str, tuple[_Given, str]]]:
    """What assessors said of a passage in earlier reviews, as `_Said`: the last grade, and what the item then said (if
    known)."""
    found: dict[tuple[str, str], dict[str, tuple[_Given, str]]] = {}
    for entry in passage.exam_grades or ():
        if entry.llm.startswith(HUMAN):
            said = found.setdefault((entry.llm.removeprefix(HUMAN), _prompt_of(entry)), {})
            reasons, contents, details = dict(entry.answers), models.contents_of(entry), models.details_of(entry)
            for item_id, grade in models.grade_of_items(entry).items():
                given = _Given(grade, reasons.get(item_id, ""), details.get(item_id, {}))
                said[item_id] = given, contents.get(item_id, "")
    return found
