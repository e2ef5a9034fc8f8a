"""What came of each item, and from several answers to one grade: the best chunk, median or majority of replicates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from rubric_measures.grading._asking import ReadReply
from rubric_measures.grading._distributions import mean_distribution
from rubric_measures.types.entities import GradeStatus, RubricItem
from rubric_measures.types.scales import CONTRADICTED


class Unit(NamedTuple):
    """What one job grades: a passage and some items of its query (none for a direct relevance label)."""

    query_id: str
    query_text: str
    doc_id: str
    text: str
    items: tuple[RubricItem, ...] = ()


class Outcome(NamedTuple):
    """What came of one item of a passage.

    Attributes:
        item_id: the item; `"0"` for a direct relevance label.
        grade: the grade; None where there is none.
        status: as in `Grade`.
        answer: the raw reply that the grade comes from.
        note: the reason of a status other than `graded`.
        details: what else is worth keeping: the replies of the other chunks and replicates, the answer that was
            matched, the number of retries.
    """

    item_id: str
    grade: float | None
    status: GradeStatus = "graded"
    answer: str = ""
    note: str = ""
    details: Mapping[str, object] | None = None


# How the notes of grades end that only the rules of the nuggetizer program make.
BY_RULE = "(nuggetizer)"


def as_nuggetizer(answer: ReadReply, place: int, labels: Sequence[str]) -> ReadReply:
    """The answer about one nugget as the nuggetizer program counts it.

    An unknown label earns nothing, and so does a list that cannot be read after all retries (its label is `failed`);
    both stay in the denominator. A nugget without a label, because the list is too short, is dropped: it has no grade.
    Labels too many are ignored. A call that failed or was refused is no grade here either.

    Args:
        answer: its value being the labels as they stand, in small letters.
        place: of the nugget, from 0.
        labels: the known labels, by grade from 0.

    Source: nuggetizer 0.0.5.
    """
    if answer.value is None:
        if answer.status != "unparsed":
            return answer
        return answer._replace(value=0, status="graded", note=f"{answer.note}; counts as failed, 0 {BY_RULE}")
    if place >= len(answer.value):
        return answer._replace(value=None, status="unparsed", note=f"no label for this nugget; dropped {BY_RULE}")
    label = answer.value[place]
    if label not in labels:
        return answer._replace(value=0, note=f"unknown label {label[:40]!r}; counts as 0 {BY_RULE}")
    return answer._replace(value=labels.index(label))


def best_answer(answers: Sequence[ReadReply], top: int, what: str = "chunks") -> ReadReply:
    """The answer with the highest grade; the first of equal ones; with the retries of all of them.

    One without a grade could have had the highest one, so it decides the status, unless another has the top of the
    scale anyway.

    Args:
        answers: the answers about the chunks of a passage, or the checks of one answer; their values being grades.
        top: the highest grade of the scale.
        what: what they are answers about, as the note says it.
    """
    if len(answers) == 1:
        return answers[0]
    retries = sum(answer.retries for answer in answers)
    graded = [answer for answer in answers if answer.value is not None]
    # A chunk that says the opposite says more than one that says nothing.
    best = max(graded, key=lambda answer: 0.5 if answer.value == CONTRADICTED else answer.value, default=None)
    if best is not None and (len(graded) == len(answers) or best.value >= top):
        return best._replace(retries=retries)
    lost = next(answer for answer in answers if answer.value is None)
    missing = len(answers) - len(graded)
    note = f"{missing} of {len(answers)} {what} have no grade: {lost.note}"
    return lost._replace(note=note, retries=retries)


def combine_grades(grades: Sequence[int], how: str) -> int:
    """One grade of several draws.

    `median`: the middle one; of an even number the lower middle, so that it is a grade that was given. `majority`: the
    most frequent; of equally frequent ones the lowest.

    >>> combine_grades([5, 1, 3, 3], "median"), combine_grades([4, 4, 1, 1], "majority")
    (3, 1)
    """
    ordered = sorted(grades)
    if how == "median":
        return ordered[(len(ordered) - 1) // 2]
    counts = Counter(ordered)
    return min(counts, key=lambda grade: (-counts[grade], grade))


def combine_replicates(item_id: str, answers: Sequence[ReadReply], how: str, details: dict[str, object]) -> Outcome:
    """The outcome of an item from the answers of its replicates.

    Replicates without a grade are left out as long as more than half of them have one; otherwise the item has the
    status of the first one without. The grades of all replicates are kept in the details.

    Args:
        item_id: the item.
        answers: one answer a replicate, their values being grades.
        how: `median` or `majority`.
        details: what else is known about the item; the replicates are added.
    """
    if len(answers) == 1:
        # The usual case, and the one that a night of grading consists of.
        value, status, text, note, *said = answers[0]
        if any(said):
            details.update(_said_of(answers))
        return Outcome(item_id, value, status, text, note, details or None)
    details.update(_said_of(answers))
    grades = [answer.value for answer in answers if answer.value is not None]
    details["replicates"] = [[answer.value, answer.text] for answer in answers]
    if 2 * len(grades) <= len(answers):
        lost = next(answer for answer in answers if answer.value is None)
        note = f"{len(answers) - len(grades)} of {len(answers)} replicates have no grade: {lost.note}"
        return Outcome(item_id, None, lost.status, lost.text, note, details)
    grade = combine_grades(grades, how)
    shown = next(answer for answer in answers if answer.value == grade)
    return Outcome(item_id, grade, shown.status, shown.text, shown.note, details)


def _said_of(answers: Sequence[ReadReply]) -> dict[str, object]:
    """What replies say besides grades, as details: one value where there is one reply, else a list."""

    def each(values: Sequence[str]) -> object:
        return (values[0] if len(values) == 1 else [*values]) if any(values) else None

    distribution = None
    if answers[0].distribution is not None or any(answer.distribution for answer in answers):
        valued = [(answer.value, answer.distribution) for answer in answers if answer.value is not None]
        distribution = {str(grade): float(f"{share:.6g}") for grade, share in mean_distribution(valued).items()}
    found = {
        "retries": sum(answer.retries for answer in answers) or None,
        "checks": [list(check) for answer in answers for check in answer.checks] or None,
        "thinking": each([answer.thinking for answer in answers]),
        "reason": each([answer.reason for answer in answers]),
        "max_tokens": max(answer.max_tokens for answer in answers) or None,
        "distribution": distribution,
    }
    return {name: value for name, value in found.items() if value is not None}
