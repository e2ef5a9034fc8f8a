"""How far people are, and how well they agree with the grader and with each other."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import combinations
from typing import NamedTuple

from rubric_measures.review._events import CellKey, Snapshot
from rubric_measures.review.review_data import Material

__all__ = ["AgreementRow", "PersonRow", "agreement_rows", "open_note", "progress_rows"]


class PersonRow(NamedTuple):
    """What one person did.

    Attributes:
        person: who.
        graded: grades given.
        undecided: of these, those left undecided.
        open: grades that differ from the grader's and wait for a decision.
        overridden: of these, those where the person's grade stands.
        accepted: those where the person took the grader's.
        earlier: grades of the person that are in the records, from earlier reviews.
    """

    person: str
    graded: int
    undecided: int
    open: int
    overridden: int
    accepted: int
    earlier: int = 0


class AgreementRow(NamedTuple):
    """Agreement of two sources on the grades that both gave blindly.

    Attributes:
        first: a person.
        second: another person, or the grader.
        pairs: how many grades both gave.
        exact: share of equal ones, in [0, 1].
        kappa: Cohen's κ; None where chance explains all.
        weighted: κ with quadratic weights.
    """

    first: str
    second: str
    pairs: int
    exact: float
    kappa: float | None
    weighted: float | None


def progress_rows(snapshot: Snapshot, earlier: Mapping[str, Collection[CellKey]] | None = None) -> list[PersonRow]:
    """One row a person, by name.

    Args:
        snapshot: what people did.
        earlier: person -> the grades that the records have of them.
    """
    before = {person: len(cells) for person, cells in (earlier or {}).items()}
    said = [(person, one) for people in snapshot.grades.values() for person, one in people.items()]
    rows = []
    for person in sorted({person for person, _ in said} | before.keys()):
        mine = [one for name, one in said if name == person]
        undecided = sum(one.grade is None and one.final is None for one in mine)
        rows.append(
            PersonRow(
                person,
                len(mine),
                undecided,
                sum(one.final is None and one.grade is not None for one in mine),
                sum(one.decision == "override" for one in mine),
                sum(one.decision == "accept" for one in mine),
                before.get(person, 0),
            )
        )
    return rows


def open_note(snapshot: Snapshot) -> str:
    """How many grades differ from the grader's and wait for a decision, by person; empty where none does."""
    waiting = {row.person: row.open for row in progress_rows(snapshot) if row.open}
    if not waiting:
        return ""
    people = ", ".join(f"{person}: {count}" for person, count in waiting.items())
    return (
        f"{sum(waiting.values())} grades wait for a decision ({people}): they differ from the grader's and are in no "
        "export until the person accepts or overrides on the page"
    )


def agreement_rows(material: Material, snapshot: Snapshot) -> list[AgreementRow]:
    """Person against grader, then person against person; only first, blind grades: later ones know of each other."""
    from rubric_measures.meta_evaluation.agreement import agreement

    first: dict[str, dict[CellKey, int]] = {}
    for cell, people in snapshot.grades.items():
        for person, one in people.items():
            if one.blind and one.first is not None:
                first.setdefault(person, {})[cell] = one.first
    grader: dict[CellKey, int] = {}
    for cell in snapshot.grades:
        grade = material.grade(cell).grade
        if grade is not None:
            grader[cell] = grade
    names = sorted(first)
    pairs = [(name, material.grader, first[name], grader) for name in names]
    pairs += [(one, two, first[one], first[two]) for one, two in combinations(names, 2)]
    rows = []
    for name, other, a, b in pairs:
        both = sorted(a.keys() & b.keys())
        if both:
            found = agreement([a[cell] for cell in both], [b[cell] for cell in both])
            rows.append(AgreementRow(name, other, found.pairs, found.exact_match, found.kappa, found.quadratic_kappa))
    return rows
