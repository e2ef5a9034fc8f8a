"""How far assessors are, and how well they agree with the grader and with each other."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import combinations
from types import MappingProxyType
from typing import NamedTuple

from rubric_measures.base.errors import counted
from rubric_measures.review._events import ADJUDICATE, CellKey, Snapshot
from rubric_measures.review.queues import waits_for
from rubric_measures.review.review_data import Material
from rubric_measures.verification.sections import wilson_interval

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
        kappa: Cohen's κ; None where chance explains all, or where a grade has a fraction.
        weighted: κ with quadratic weights.
        alpha: Krippendorff's α, ordinal.
        intervals: `kappa`, `weighted` and `alpha` -> the ends of the 95 % interval over queries, where there are any.
    """

    first: str
    second: str
    pairs: int
    exact: float
    kappa: float | None
    weighted: float | None
    alpha: float | None = None
    intervals: Mapping[str, tuple[float, float]] = MappingProxyType({})


def progress_rows(snapshot: Snapshot, earlier: Mapping[str, Collection[CellKey]] | None = None) -> list[AssessorRow]:
    """One row an assessor, by name.

    Args:
        snapshot: what assessors did.
        earlier: assessor -> the grades that the records have of them.
    """
    before = {assessor: len(cells) for assessor, cells in (earlier or {}).items()}
    said = [(assessor, one, all_of) for all_of in snapshot.grades.values() for assessor, one in all_of.items()]
    rows = []
    for assessor in sorted({assessor for assessor, *_ in said} | before.keys()):
        mine = [one for name, one, _ in said if name == assessor]
        undecided = sum(one.grade is None and one.final is None for one in mine)
        rows.append(
            AssessorRow(
                assessor,
                len(mine),
                undecided,
                sum(name == assessor and waits_for(all_of, name) for name, _, all_of in said),
                sum(one.decision == "override" for one in mine),
                sum(one.decision == "accept" for one in mine),
                before.get(assessor, 0),
                sum(one.decision == ADJUDICATE for one in mine),
            )
        )
    return rows


def open_note(snapshot: Snapshot) -> str:
    """How many grades differ from the grader's and wait for a decision, by assessor; empty where none does."""
    waiting = {row.assessor: row.open for row in progress_rows(snapshot) if row.open}
    if not waiting:
        return ""
    assessors = ", ".join(f"{assessor}: {count}" for assessor, count in waiting.items())
    return (
        f"{counted(sum(waiting.values()), 'grade')} to decide ({assessors}): they differ from the grader's, and count "
        "in no score until the assessor keeps theirs or accepts the grader's on the page (queue: to decide)"
    )


def agreement_rows(material: Material, snapshot: Snapshot) -> list[AgreementRow]:
    """Assessors against the grader, then each other; only first, blind grades: later ones know of each other."""
    first: dict[str, dict[CellKey, float]] = {}
    for cell, assessors in snapshot.grades.items():
        for assessor, one in assessors.items():
            if one.blind and one.first is not None:
                first.setdefault(assessor, {})[cell] = one.first
    for assessor, known in material.blind.items():
        # Whoever graded a cell in an earlier review first said that.
        first[assessor] = {**first.get(assessor, {}), **known}
    grader: dict[CellKey, float] = {}
    for cell in {cell for said in first.values() for cell in said}:
        grade = material.grade(cell).grade
        if grade is not None:
            grader[cell] = grade
    names = sorted(first)
    pairs = [(name, material.grader, first[name], grader) for name in names]
    pairs += [(one, two, first[one], first[two]) for one, two in combinations(names, 2)]
    return [_agreement(*pair) for pair in pairs if pair[2].keys() & pair[3].keys()]


def _agreement(name: str, other: str, a: Mapping[CellKey, float], b: Mapping[CellKey, float]) -> AgreementRow:
    """What the command `agreement` says of the same grades, with the same intervals."""
    from rubric_measures.analysis.label_sources import LabelSource, compare_sources

    both = sorted(a.keys() & b.keys())
    if any(one[cell] % 1 for one in (a, b) for cell in both):
        return AgreementRow(name, other, len(both), sum(a[cell] == b[cell] for cell in both) / len(both), None, None)
    found = compare_sources([LabelSource(name, {cell: one[cell] for cell in both}) for one in (a, b)])
    one = found.agreement
    ends = {
        short: (interval.low, interval.high)
        for short, long in (("kappa", "kappa"), ("weighted", "quadratic_kappa"), ("alpha", "alpha_ordinal"))
        if (interval := found.intervals[long]).low is not None and interval.high is not None
    }
    return AgreementRow(
        name, other, one.pairs, one.exact_match, one.kappa, one.quadratic_kappa, one.alpha_ordinal, ends
    )


def sample_precision(size: int, population: int) -> str:
    """How precise the estimate of a random sample will be: half the 95 % interval where a half agrees, its widest."""
    if not size:
        return ""
    if size >= population:
        return f"All {population} grades are in it: their agreement is counted, not estimated."
    low, high = wilson_interval(size // 2, size)
    return f"{size} of {population} grades: agreement will be known to ±{50 * (high - low):.0f} percentage points."


def audit_estimate(material: Material, snapshot: Snapshot, cells: Sequence[CellKey], assessor: str) -> str:
    """How often the grader gives the grade of an assessor who graded a whole random sample; empty while they have not.

    Only first, blind grades count. What was left undecided, or failed, is no pair, and counted.
    """
    said = [snapshot.grades.get(cell, {}).get(assessor) for cell in cells]
    if not cells or None in said:
        return ""
    pairs = [
        (one.first, grade)
        for cell, one in zip(cells, said, strict=True)
        if one is not None and one.blind and None not in (one.first, grade := material.grade(cell).grade)
    ]
    if not pairs:
        return ""
    same = sum(mine == grade for mine, grade in pairs)
    low, high = wilson_interval(same, len(pairs))
    more = f"; {len(cells) - len(pairs)} were not blind, undecided or failed" if len(pairs) < len(cells) else ""
    return (
        f"The grader gave your grade to {same} of {len(pairs)} ({100 * same / len(pairs):.0f} %; of all grades "
        f"{100 * low:.0f} to {100 * high:.0f} %, at 95 % confidence{more})."
    )
