"""Assessors' grades in the place of a grader's: what assessors say of a passage, and what counts where they differ."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median_low

from rubric_measures.records.details import details_of
from rubric_measures.records.models import GradedPassage, ItemGradeSet, contents_of, items_of_set, kind_of_set
from rubric_measures.types.entities import RubricItem, item_content

__all__ = [
    "ADJUDICATION",
    "BLIND_REVIEW",
    "FINAL_REVIEW",
    "HUMAN",
    "AssessorCount",
    "AssessorGrades",
    "grade_of_assessors",
    "grades_by_assessors",
    "held_sets",
    "is_adjudication",
    "is_blind_set",
    "note_stale",
    "with_assessors",
]

HUMAN = "human:"
# The prompt classes of what a review exports: assessors' final grades, and the first ones, given before the grader's
# grade was shown. Agreement is computed on the second; only the first are scored.
FINAL_REVIEW, BLIND_REVIEW = "HumanReview", "HumanReviewBlind"
# What an adjudicator decided where assessors differ: it counts in the place of all their grades.
ADJUDICATION = "HumanAdjudication"


def is_blind_set(entry: ItemGradeSet) -> bool:
    """Whether a grade set holds an assessor's first, blind grades: they count for agreement, and in no score."""
    made_by = entry.prompt_info.prompt_class if entry.prompt_info is not None else ""
    return made_by == BLIND_REVIEW and entry.llm.startswith(HUMAN)


def is_adjudication(entry: ItemGradeSet) -> bool:
    """Whether a grade set holds what an adjudicator decided where assessors differ."""
    made_by = entry.prompt_info.prompt_class if entry.prompt_info is not None else ""
    return made_by == ADJUDICATION and entry.llm.startswith(HUMAN)


def grade_of_assessors(grades: Iterable[float]) -> float:
    """The one grade of several assessors: the median, of an even number the lower one of the two in the middle.

    It is always a grade that one of them gave, and their order does not matter. Where two differ, the lower grade
    counts.

    Raises:
        statistics.StatisticsError: there is no grade.
    """
    return median_low(grades)


@dataclass
class AssessorCount:
    """What became of the grades by assessors, for one note.

    Attributes:
        replaced: grades that stand in the grader's place.
        changed: of these, those that differ from the grader's, or where the grader has none.
        split: of these, those on which assessors differ, and nobody decided.
        settled: of these, those that an adjudicator decided.
        elsewhere: grades of passages that the grader did not grade, which are left out.
        stale: grades that were given before the item's words or gold answers changed; they are left out.
    """

    replaced: int = 0
    changed: int = 0
    split: int = 0
    settled: int = 0
    elsewhere: int = 0
    stale: int = 0

    @property
    def found(self) -> int:
        """How many grades by assessors there were."""
        return self.replaced + self.elsewhere + self.stale

    def note(self, source: str) -> None:
        """Says it once."""
        log = logging.getLogger("rubric_measures")
        if not self.found:
            log.warning(
                "%s: holds no grades by assessors (%sNAME), so none stands in the grader's place", source, HUMAN
            )
            return
        log.warning(
            "%s: %d grades by assessors stand in the grader's place; %d of them say something else than the grader",
            source,
            self.replaced,
            self.changed,
        )
        if self.split:
            log.warning("%s: on %d of them assessors differ; the median counts, of two the lower", source, self.split)
        if self.settled:
            are = "is an adjudicator's decision" if self.settled == 1 else "are an adjudicator's decisions"
            log.warning("%s: %d of the grades by assessors %s", source, self.settled, are)
        if self.elsewhere:
            log.warning(
                "%s: %d grades by assessors left out: the grader graded nothing of their passages",
                source,
                self.elsewhere,
            )
        note_stale(source, self.stale)


def note_stale(source: str, count: int) -> None:
    """Says how many grades by assessors were left out because their items said something else."""
    if count:
        logging.getLogger("rubric_measures").warning(
            "%s: %d grades by assessors left out: they were given to other words or gold answers of their items than "
            "the bank has now; have them graded again",
            source,
            count,
        )


@dataclass(frozen=True)
class AssessorGrades:
    """What assessors say of one passage.

    Attributes:
        grades: item_id -> the grades that count, one an assessor; of an item that an adjudicator decided, that one.
        reasons: item_id -> what they wrote, joined.
        sets: the grade sets that hold them.
        by_assessor: `human:NAME` -> item_id -> the grade.
        stale: grades that were given before their item changed; they are not among these.
        settled: item_id -> (`human:NAME`, grade): what an adjudicator decided.
    """

    grades: Mapping[str, Collection[float]] = field(default_factory=dict)
    reasons: Mapping[str, str] = field(default_factory=dict)
    sets: Collection[ItemGradeSet] = ()
    by_assessor: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    stale: int = 0
    settled: Mapping[str, tuple[str, float]] = field(default_factory=dict)


def grades_by_assessors(
    passage: GradedPassage, kind: str | None, items: Mapping[str, RubricItem] | None
) -> AssessorGrades:
    """The grades that assessors gave a passage; where one assessor graded an item twice, the later grade counts.

    What an adjudicator decided binds: it is the one grade of its item, whatever assessors say.

    A review writes down what an item said when it was graded. Where the bank's item says something else now, the grade
    is stale and does not count. An earlier grade by the same assessor does not count either, unless it says what the
    item said then.

    Args:
        passage: the passage.
        kind: only of items of this kind; None for all.
        items: item_id -> item of the bank: only grades of these, as they are now; None for all.
    """
    entries = [
        entry
        for entry in passage.exam_grades or ()
        if entry.llm.startswith(HUMAN) and (kind is None or kind_of_set(entry) == kind) and not is_blind_set(entry)
    ]
    stale = _stale(entries, items)
    by_assessor: dict[str, dict[str, float]] = {}
    said: dict[str, dict[str, str]] = {}
    settled: dict[str, tuple[str, float]] = {}
    sets: list[ItemGradeSet] = []
    for number, entry in enumerate(entries):
        grades, _ = items_of_set(entry)
        left_out = (grades.keys() - items.keys() if items is not None else set()) | stale.get(number, set())
        kept = {item_id: grade for item_id, grade in grades.items() if item_id not in left_out}
        if not kept:
            continue
        sets.append(entry)
        by_assessor.setdefault(entry.llm, {}).update(kept)
        if is_adjudication(entry):
            settled.update((item_id, (entry.llm, grade)) for item_id, grade in kept.items())
        for item_id, reason in entry.answers:
            if item_id in kept:
                said.setdefault(item_id, {})[entry.llm] = reason
    of_items: dict[str, list[float]] = {}
    for grades in by_assessor.values():
        for item_id, grade in grades.items():
            of_items.setdefault(item_id, []).append(grade)
    for item_id, (name, grade) in settled.items():
        of_items[item_id] = [grade]
        said[item_id] = {name: said.get(item_id, {}).get(name, "")}
    reasons = {item_id: "; ".join(text for text in texts.values() if text) for item_id, texts in said.items()}
    places = {(entries[number].llm, item_id) for number, item_ids in stale.items() for item_id in item_ids}
    left = sum(item_id not in by_assessor.get(assessor, {}) for assessor, item_id in places)
    return AssessorGrades(of_items, reasons, sets, by_assessor, left, settled)


def _stale(entries: Sequence[ItemGradeSet], items: Mapping[str, RubricItem] | None) -> dict[int, set[str]]:
    """Place of a grade set -> its items that changed since they were graded.

    Earlier grades by the same assessor that do not say what the item said then are among them.
    """
    found: dict[int, set[str]] = {}
    unknown: dict[tuple[str, bool, str], set[int]] = {}
    for number, entry in enumerate(entries if items is not None else ()):
        grades, _ = items_of_set(entry)
        contents = contents_of(entry)
        for item_id in grades.keys() & (items or {}).keys():
            place = entry.llm, is_blind_set(entry), item_id
            if item_id not in contents:
                unknown.setdefault(place, set()).add(number)
                continue
            before = unknown.pop(place, set())
            if items is not None and contents[item_id] != item_content(items[item_id]):
                for one in before | {number}:
                    found.setdefault(one, set()).add(item_id)
    return found


def held_sets(passage: GradedPassage, items: Mapping[str, RubricItem]) -> tuple[list[ItemGradeSet], dict[str, int]]:
    """(the grade sets of a passage without assessors' stale grades; assessor -> how many grades were stale).

    A set without stale grades is the same object. This is for one assessor's grades by themselves;
    `grades_by_assessors` puts those of all together.
    """
    sets = list(passage.exam_grades or ())
    places = [place for place, entry in enumerate(sets) if entry.llm.startswith(HUMAN)]
    assessors = [sets[place] for place in places]
    stale = _stale(assessors, items)
    for number, item_ids in stale.items():
        sets[places[number]] = _without(assessors[number], item_ids)
    held = {(entry.llm, item_id) for entry in sets if entry.llm.startswith(HUMAN) for item_id in items_of_set(entry)[0]}
    lost = {(assessors[number].llm, item_id) for number, item_ids in stale.items() for item_id in item_ids} - held
    return sets, Counter(assessor for assessor, _ in lost)


def _without(entry: ItemGradeSet, item_ids: Collection[str]) -> ItemGradeSet:
    """The set without some of its items; everything else as it was."""
    kept = [rating for rating in entry.self_ratings or () if rating.item_id not in item_ids]
    return entry.model_copy(
        update={
            "correct_answered": [one for one in entry.correct_answered if one not in item_ids],
            "wrong_answered": [one for one in entry.wrong_answered if one not in item_ids],
            "answers": [(one, text) for one, text in entry.answers if one not in item_ids],
            "self_ratings": kept if entry.self_ratings is not None else None,
        }
    )


def with_assessors(entry: ItemGradeSet, assessors: AssessorGrades, count: AssessorCount) -> ItemGradeSet:
    """The grader's set, with an assessor's grade wherever there is one; counted.

    An assessor's reason stands where the grader's reply stood. Where assessors grade an item that failed, or that the
    grader was not asked about, theirs is its grade.
    """
    count.stale += assessors.stale
    if not assessors.grades:
        return entry
    grades, statuses = items_of_set(entry)
    theirs = {item_id: grade_of_assessors(given) for item_id, given in assessors.grades.items()}
    count.replaced += len(theirs)
    count.changed += sum(grades.get(item_id) != grade for item_id, grade in theirs.items())
    count.split += sum(len(set(given)) > 1 for given in assessors.grades.values())
    count.settled += len(assessors.settled)
    replies = {item_id: reply for item_id, reply in entry.answers if item_id not in theirs}
    replies.update((item_id, reason) for item_id in theirs if (reason := assessors.reasons.get(item_id)))
    made = ItemGradeSet.build(
        {**grades, **theirs},
        answers=replies.items(),
        llm=entry.llm,
        kind="nugget" if kind_of_set(entry) == "nugget" else "question",
        prompt_info=entry.prompt_info,
        item_status={item_id: status for item_id, status in statuses.items() if item_id not in theirs},
    )
    # What is said about the making of the grader's grades holds for those that stand.
    details = {item_id: said for item_id, said in details_of(entry).items() if item_id not in theirs}
    return made.model_copy(update={"details": details}) if details else made
