"""The audit of a review: what it asks, how often the grader is right, and which runs it settles."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from rubric_measures.analysis.audits import Audit, AuditPlan, Truth, make_audit, sentence
from rubric_measures.base.errors import counted
from rubric_measures.measures.grade_sets import grade_of_assessors
from rubric_measures.review.queues import Material
from rubric_measures.review.store import AssessorGrade, CellKey
from rubric_measures.verification.sections import wilson_interval

Said = Mapping[CellKey, Mapping[str, AssessorGrade]]
"""cell -> assessor -> what they say."""

# A pause is no work; what a passage takes before anybody worked, with five items.
_PAUSE, _USUAL = 600.0, 70.0


def blind_grades(material: Material, said: Said) -> dict[CellKey, float]:
    """The first, blind grades, of this review and of earlier ones; of several assessors the one that counts."""
    found: dict[CellKey, dict[str, float]] = {}
    for name, of_name in material.blind.items():
        for cell, grade in of_name.items():
            found.setdefault(cell, {})[name] = grade
    for cell, by_assessor in said.items():
        for name, one in by_assessor.items():
            if one.blind and one.first is not None:
                found.setdefault(cell, {})[name] = one.first
    return {cell: grade_of_assessors(grades.values()) for cell, grades in found.items()}


def shown_cells(material: Material, said: Said) -> frozenset[CellKey]:
    """Grades that assessors gave, none of them blindly: an audit cannot ask for them any more."""
    graded = {cell for cell, by in said.items() if any(one.first is not None for one in by.values())}
    graded = graded.union(*material.graded_by.values())
    return frozenset(graded - blind_grades(material, said).keys())


def draw(material: Material, plan: AuditPlan, left: Collection[tuple[str, str]], shown: Collection[CellKey]) -> Audit:
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
    for query_id, query in material.queries.items():
        for doc_id, passage in query.passages.items():
            labels[query_id, doc_id] = {
                item_id: row.grade is not None and row.grade >= covers
                for item_id, row in passage.grades.items()
                if (query_id, item_id) not in left and CellKey(query_id, doc_id, item_id) not in shown
            }
    rankings: dict[str, dict[str, list[str]]] = {}
    for query_id, query in material.queries.items():
        for run_id, ranking in query.record.rankings.items():
            rankings.setdefault(run_id, {})[query_id] = list(ranking)
    return make_audit(plan, labels, rankings)


def cells_of(audit: Audit) -> list[CellKey]:
    """The grades that are asked, in their order."""
    return [CellKey(*one.place, item_id) for one in audit.drawn for item_id in one.items]


class AuditNote(NamedTuple):
    """What an audit says now.

    Attributes:
        grader: how often the grader is right, or how well that will be known.
        runs: a sentence a pair of runs.
    """

    grader: str
    runs: list[str]


def note_of(material: Material, audit: Audit, said: Said) -> AuditNote:
    """What an audit says now, or what it will be good for."""
    blind = blind_grades(material, said)
    covers = material.scale.covers
    settled = audit.settled({cell: grade >= covers for cell, grade in blind.items()})
    checked = len(audit.checked(dict.fromkeys(blind, True)))
    minutes = _minutes(audit, said)
    if not checked:
        work = f"{counted(len(audit.drawn), 'passage')}, about {counted(round(len(audit.drawn) * minutes), 'minute')}"
        reaches = [(pair, audit.expected_reach(number)) for number, pair in enumerate(audit.plan.pairs)]
        runs = [
            f"{one} against {other}: differences above {reach:.2f} will be settled, if the grader is right in 85 of 100"
            if reach is not None
            else f"{one} against {other}: nothing can be settled with fewer than ten queries or passages"
            for (one, other), reach in reaches
        ]
        low, high = wilson_interval(len(audit.drawn), 2 * len(audit.drawn)) if audit.drawn else (0.0, 0.0)
        known = f": how often the grader is right will be known to ±{50 * (high - low):.0f} percentage points or better"
        return AuditNote(work + known if audit.drawn else "", runs)
    same: dict[tuple[str, str, str], bool] = {
        cell: material.grade(cell).grade == grade for cell, grade in blind.items() if cell in material.numbers
    }
    return AuditNote(_right(audit, same, checked), [sentence(one, minutes) for one in settled])


def _right(audit: Audit, same: Truth, checked: int) -> str:
    done = f"{checked} of {counted(len(audit.drawn), 'passage')} checked"
    found = audit.share(same)
    if found is None:
        return done
    share, size = found
    low, high = wilson_interval(share * size, size)
    return (
        f"{done}. The grader gives the assessors' grade to {100 * share:.0f} % of all "
        f"({100 * low:.0f} to {100 * high:.0f} %, at 95 % confidence)."
    )


def _minutes(audit: Audit, said: Said) -> float:
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
