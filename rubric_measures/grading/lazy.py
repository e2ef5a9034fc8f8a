"""Exact lazy coverage: grades are asked for only while they can change what some measures say of some rankings.

A measure that counts an item once, by the best grade among the top k, needs no further grade of the item for a ranking
that shows a passage which covers it. So the passages that may settle most are asked about first, and each only about
items that a ranking which shows it has open. What is never asked cannot change the scores, whatever it was.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypeAlias, TypeVar

import numpy as np
from ir_measures.measures.base import Measure

from rubric_measures.base.errors import InputError
from rubric_measures.grading.asking import Outcome
from rubric_measures.grading.styles import Style
from rubric_measures.measures.grades import QueryGrades
from rubric_measures.measures.measure import measure_names
from rubric_measures.measures.scoring import Computation, Plan
from rubric_measures.models.base import Reply, Request
from rubric_measures.models.running import Job
from rubric_measures.records.models import (
    ASKED_FOR,
    GradedPassage,
    QueryPassages,
    is_partial,
    items_of_set,
    kind_of_set,
    of_items,
    provenance_of,
)
from rubric_measures.types.entities import RubricItem, Run, TestBank, by_rank
from rubric_measures.types.scales import Scale

T = TypeVar("T")
Made: TypeAlias = tuple[int, list[Outcome]]
"""The place of a passage, and what came of its items."""


@dataclass(frozen=True)
class NeededFor:
    """What grades are asked for.

    Attributes:
        measures: only grades that can change one of them are asked for.
        runs: the runs that are scored; None where the rankings stand in the records.
    """

    measures: tuple[Measure, ...]
    runs: tuple[Run, ...] | None = None

    def plan(self, style: Style, bank: TestBank) -> Plan:
        """The measures with the levels of a prompt's scale.

        Raises:
            InputError: the prompt does not grade items, or no laziness is known for a measure.
            MeasureError: an item lacks what a measure needs.
        """
        name = style.prompt.prompt_class
        if style.direct or style.of_pairs or not style.graded:
            text = f"prompt {name} does not grade items of the bank, so measures cannot say which grades they need"
            raise InputError(text, settings=("measures", "prompt"))
        plan = self._plan_on(style.prompt.grade_scale)
        plan.refuse_lacking(bank.items, style.prompt.grade_scale)
        return plan

    def _plan_on(self, scale: Scale | None) -> Plan:
        measure_names(self.measures)
        plan = Plan(self.measures).on(scale)
        for one in plan.computations:
            if one.settled_by is None:
                text = (
                    f"{one.measure}: any grade may change it, so none can be left out; RubricCover, NuggetV, NuggetW, "
                    "NuggetA and WeightedCover need fewer (without judged_only)"
                )
                raise InputError(text, settings=("measures",))
        return plan

    def rankings(self, group: QueryPassages) -> dict[str, Sequence[str]]:
        """run_id -> the documents of a query, best first."""
        if self.runs is not None:
            found = {run.run_id: run.rankings.get(group.query_id) for run in self.runs}
            return {run_id: one.doc_ids for run_id, one in found.items() if one is not None}
        query = f"query {group.query_id!r}"
        return {run_id: by_rank(of_run, query, run_id)[0] for run_id, of_run in sorted(group.places.items())}

    def proving(self, group: QueryPassages, grades: QueryGrades) -> tuple[QueryPassages, int]:
        """A query of the records with the few grades that prove what the measures say of the rankings; and how many.

        Grade sets of the items lose all other pairs and say what they were asked for; sets of other items go.

        Args:
            group: the query.
            grades: its grades, as they are scored.

        Raises:
            InputError: any grade may change one of the measures.
        """
        plan, rankings = self._plan_on(grades.scale), self.rankings(group)
        pairs = certificate(plan.computations, grades, rankings.values())
        items = {item.item_id for item in grades.items}
        asked: dict[str, Any] = {ASKED_FOR: [{"measures": [*map(str, plan.measures)], "runs": [*rankings]}]}

        def cut(passage: GradedPassage) -> GradedPassage:
            kept = [
                of_items(entry, pairs.get(passage.doc_id, set())).replacing(
                    prompt_type=kind_of_set(entry), provenance={**provenance_of(entry), **asked}
                )
                for entry in passage.exam_grades or ()
                if is_partial(entry) or not items.isdisjoint(chain(*items_of_set(entry)))
            ]
            return passage if passage.exam_grades is None else passage.replacing(exam_grades=kept)

        return group._replace(passages=[cut(passage) for passage in group.passages]), sum(map(len, pairs.values()))


def certificate(
    computations: Iterable[Computation], grades: QueryGrades, rankings: Iterable[Sequence[str]]
) -> dict[str, set[str]]:
    """Few grades of a query that prove what measures say of rankings: doc_id -> items.

    Of each item those of all passages of the rankings that miss it, and of passages that cover it for the others: of
    these one after the other, the one that covers it for most rankings (greedy set cover, Chvátal, A Greedy Heuristic
    for the Set-Covering Problem, 1979).

    Args:
        computations: the measures, each with a grade that settles an item.
        grades: all grades.
        rankings: documents, best first.
    """
    rows = [[grades.docs.get(doc_id, -1) for doc_id in doc_ids] for doc_ids in rankings]
    needed = np.zeros(grades.grades.shape, bool)
    covering: list[list[Any]] = [[] for _ in grades.items]
    for one in computations:
        # The last column stands for passages that nobody graded.
        shown = np.zeros((len(rows), len(grades.docs) + 1), bool)
        for number, of_run in enumerate(rows):
            shown[number, of_run[: one.cutoff]] = True
        covers = grades.grades >= (one.settled_by or 0)
        for place in np.flatnonzero(grades.asked[one.needed.which]).tolist():
            settling = shown[:, :-1] & covers[:, place]
            needed[:, place] |= shown[~settling.any(axis=1), :-1].any(axis=0)
            covering[place].append(settling[settling.any(axis=1)])
    for place, parts in enumerate(covering):
        left = np.concatenate(parts) if parts else np.zeros((0, len(grades.docs)), bool)
        left = left[~left[:, needed[:, place]].any(axis=1)]
        while len(left):
            most = int(left.sum(axis=0).argmax())
            needed[most, place] = True
            left = left[~left[:, most]]
    ids = [item.item_id for item in grades.items]
    return {doc_id: {ids[place] for place in np.flatnonzero(needed[row])} for doc_id, row in grades.docs.items()}


class Unsettled:
    """Which grades of a query can still change what measures say of its rankings.

    Args:
        computations: the measures.
        items: the items of the query.
        rankings: documents, best first.
    """

    def __init__(
        self, computations: Iterable[Computation], items: Sequence[RubricItem], rankings: Sequence[Sequence[str]]
    ) -> None:
        places = [{doc_id: rank for rank, doc_id in enumerate(doc_ids, 1)} for doc_ids in rankings]
        best = [(min(of[doc_id] for of in places if doc_id in of), doc_id) for doc_id in {*chain(*places)}]
        self._docs = {doc_id: place for place, (_, doc_id) in enumerate(sorted(best))}
        ranks = np.array([[of.get(doc_id, np.inf) for doc_id in self._docs] for of in places])
        self._columns = {item.item_id: place for place, item in enumerate(items)}
        bank = QueryGrades.empty("", items)
        # Cutoff, the grade that settles an item, and which items the rankings have open: once for equal measures.
        kinds = {(one.cutoff or sys.maxsize, one.settled_by or 0, one.needed.which): 0 for one in computations}
        shape = len(rankings), len(self._docs)
        self._open = [
            (np.reshape(ranks <= cutoff, shape), level, np.tile(bank.asked[which], (len(rankings), 1)))
            for cutoff, level, which in kinds
        ]

    def waves(self) -> Iterator[list[str]]:
        """The documents to ask about, some at a time; what is seen of one wave chooses the next.

        A document is worth as many grades as rankings that show it have items open: in all of them one grade may settle
        an item. The one that is worth most comes first, of equal ones that of the best rank. With it come those that
        show in no ranking with it, so that none of a wave makes another needless, and are worth half as much or more.
        """
        ids, left = list(self._docs), np.ones(len(self._docs), bool)
        while True:
            opened = [(shown, is_open.sum(axis=1)) for shown, _, is_open in self._open]
            worth = left * sum((count @ shown for shown, count in opened), np.zeros(len(ids)))
            showing = np.any([shown & (count > 0)[:, None] for shown, count in opened], axis=0)
            may = (worth > 0) & (2 * worth >= worth.max(initial=0))
            wave: list[int] = []
            while may.any():
                wave.append(int(np.argmax(worth * may)))
                may &= ~showing[showing[:, wave[-1]]].any(axis=0)
            if not wave:
                return
            left[wave] = False
            yield [ids[place] for place in wave]

    def needs(self, doc_id: str, item_id: str) -> bool:
        """Whether a ranking that shows the document has the item open."""
        doc, item = self._docs[doc_id], self._columns[item_id]
        return any(bool(is_open[shown[:, doc], item].any()) for shown, _, is_open in self._open)

    def see(self, doc_id: str, item_id: str, grade: float) -> None:
        """Takes a grade, which may settle its item for the rankings that show the document."""
        if doc_id in self._docs and item_id in self._columns:
            doc, item = self._docs[doc_id], self._columns[item_id]
            for shown, level, is_open in self._open:
                if grade >= level:
                    is_open[shown[:, doc], item] = False


def together(jobs: Sequence[Job[T]]) -> Job[list[T]]:
    """Several jobs as one, which asks what they ask side by side; their results in order."""
    results: dict[int, T] = {}
    replies: dict[int, Sequence[Reply] | None] = dict.fromkeys(range(len(jobs)))
    while replies:
        asked: dict[int, Sequence[Request]] = {}
        for place, given in replies.items():
            try:
                asked[place] = next(jobs[place]) if given is None else jobs[place].send(given)
            except StopIteration as end:
                results[place] = end.value
        got = iter((yield [request for requests in asked.values() for request in requests]) if asked else ())
        replies = {place: [next(got) for _ in requests] for place, requests in asked.items()}
    return [results[place] for place in range(len(jobs))]


def in_waves(
    unsettled: Unsettled,
    known: Mapping[str, Mapping[str, float]],
    jobs_of: Callable[[str], Iterable[tuple[int, Job[list[Outcome]]]]],
) -> Job[list[Made]]:
    """The job of a query: a wave of passages after the other, each asked about what is open then.

    Args:
        unsettled: what is open.
        known: doc_id -> item_id -> grade, of grades that there are.
        jobs_of: the jobs of a passage, each with its place, about what it is needed for by now.
    """
    for doc_id, grades in known.items():
        for item_id, grade in grades.items():
            unsettled.see(doc_id, item_id, grade)
    found: list[Made] = []
    for wave in unsettled.waves():
        named = [(doc_id, number, job) for doc_id in wave for number, job in jobs_of(doc_id)]
        results = yield from together([job for *_, job in named])
        for (doc_id, number, _), outcomes in zip(named, results, strict=True):
            found.append((number, outcomes))
            for outcome in outcomes:
                if outcome.grade is not None:
                    unsettled.see(doc_id, outcome.item_id, outcome.grade)
    return found
