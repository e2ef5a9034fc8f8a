"""Two versions of answers compared fact by fact: what one gained and lost, and whether its score is another.

Both are graded with one bank by one grader. A fact is an item of the bank, asked of one question.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from ir_measures.measures.base import Measure

from rubric_measures.analysis.comparison import Comparison, Pair, compare_runs
from rubric_measures.analysis.resampling import Tests
from rubric_measures.base.errors import MeasureError, counted, escaped
from rubric_measures.base.tables import (
    Cell,
    Column,
    Ranged,
    Report,
    Reported,
    Table,
    in_notebook,
    markdown_text,
    render,
)
from rubric_measures.measures.grades import NONE, QueryGrades
from rubric_measures.measures.provider import evaluate_run
from rubric_measures.types.entities import RubricItem, make_run
from rubric_measures.types.scales import Scale

FactState: TypeAlias = Literal["lost", "unsure", "gained", "missed by both", "covered by both"]
# In the order in which they are shown.
STATES: tuple[FactState, ...] = ("lost", "unsure", "gained", "missed by both", "covered by both")
FLIPPED = ("lost", "gained")
# GitHub takes 65,536 characters.
COMMENT = 60_000
# Characters of a fact or a question that are shown.
_LONGEST = 300
# A t-test draws nothing, and unlike sign flips finds what five questions can tell.
_LEVEL = 0.05


class Question(NamedTuple):
    """What both versions were asked.

    Attributes:
        text: the question.
        items: its facts.
        level: the least grade that covers one.
        scale: the scale of the grades; None where it is not known.
    """

    text: str
    items: tuple[RubricItem, ...]
    level: float
    scale: Scale | None = None


class Side(NamedTuple):
    """One version.

    Attributes:
        name: what it is called.
        grades: question -> item -> grade, None where it failed. A question that was not answered is not in it.
        retrieval: (question, item) -> whether a fact that it misses was retrieved, in words.
    """

    name: str
    grades: Mapping[str, Mapping[str, float | None]]
    retrieval: Mapping[tuple[str, str], str] = {}

    def covers(self, query_id: str, item_id: str, level: float) -> bool | None:
        """Whether it has a fact; None where that is not known."""
        if query_id not in self.grades:
            return False
        grade = self.grades[query_id].get(item_id)
        return None if grade is None else grade >= level


class Fact(NamedTuple):
    """What became of one fact.

    Attributes:
        query_id: the question.
        question: its text.
        item: the fact.
        state: `gained` or `lost` by the second version, `covered by both`, `missed by both`, or `unsure`: a grade
            failed, or grading again did not find the same.
        before: its grade in the first version; None where there is none.
        after: its grade in the second one.
        retrieval: `retrieved, not said`, `not retrieved` or `said wrongly`, where the second version misses it and that
            is known.
    """

    query_id: str
    question: str
    item: RubricItem
    state: FactState
    before: float | None
    after: float | None
    retrieval: str = ""


@dataclass(frozen=True)
class RunDiff:
    """One run beside the one that it is compared with.

    Attributes:
        before: the first version.
        after: the second one.
        comparison: their scores by one measure, by a paired t-test over the questions, at 0.05 / the number of runs
            (Bonferroni): of several runs, one is worse for nothing in 5 % at most. An unsure fact counts the same for
            both.
        facts: every fact, lost ones first, vital ones before others.
    """

    before: str
    after: str
    comparison: Comparison
    facts: tuple[Fact, ...]

    @property
    def pair(self) -> Pair:
        """The test of second − first."""
        return self.comparison.pairs[0]

    @property
    def is_worse(self) -> bool:
        """Whether the whole interval of the difference is below 0."""
        return self.pair.conclusion == "worse"

    def count(self, state: FactState) -> int:
        """How many facts are in a state."""
        return Counter(fact.state for fact in self.facts)[state]

    def __str__(self) -> str:
        test = self.pair.test
        ends = "" if test.low is None or test.high is None else f" [{test.low:+.3f}, {test.high:+.3f}]"
        gained = counted(self.count("gained"), "fact")
        rest = "".join(f", {count} {state}" for state in ("missed by both", "unsure") if (count := self.count(state)))
        said = self.pair.said(self.comparison.tests.smallest)
        return (
            f"{self.comparison.measure}  {self.before} → {self.after}  {test.mean_difference:+.3f}{ends}   "
            f"{gained} gained, {self.count('lost')} lost{rest}\n{self.after} against {self.before}: {said}"
        )


@dataclass(frozen=True)
class FactDiff(Reported):
    """Runs beside those that they are compared with.

    Attributes:
        runs: the runs that were compared.
        left_out: what was not compared, a sentence each.
    """

    runs: tuple[RunDiff, ...]
    left_out: tuple[str, ...] = ()

    @property
    def worse(self) -> list[RunDiff]:
        """The runs that are worse than what they are compared with: the interval of the difference is below 0."""
        return [run for run in self.runs if run.is_worse]

    @property
    def rows(self) -> list[Fact]:
        """Every fact of every run."""
        return list(chain.from_iterable(run.facts for run in self.runs))

    def report(self) -> Report:
        """The facts as a table: for people those that one version or both miss."""
        shown = [(run, fact) for run in self.runs for fact in run.facts if fact.state != "covered by both"]
        every = [(run, fact) for run in self.runs for fact in run.facts]
        return Report([self._table(shown)] if shown else [], [self._table(every)])

    def _table(self, rows: Sequence[tuple[RunDiff, Fact]]) -> Table:
        heads = [
            Column("run", is_left=True, only="" if len(self.runs) > 1 else "programs"),
            Column("state", is_left=True),
            Column("fact", is_left=True, width=80),
            Column("importance", is_left=True),
            Column("question", is_left=True, width=40),
            *(Column(name, is_left=True, only="programs") for name in ("query_id", "item_id")),
            *(Column(name, -1) for name in ("before", "after")),
            Column("why", is_left=True, only="" if any(fact.retrieval for _, fact in rows) else "programs"),
        ]

        def cells(run: RunDiff, fact: Fact) -> list[Cell]:
            item = fact.item
            said = [run.after, fact.state, _cut(item.text), item.importance or "", _cut(fact.question)]
            return [*said, fact.query_id, item.item_id, fact.before, fact.after, fact.retrieval]

        return Table(heads, [cells(*row) for row in rows])

    def __str__(self) -> str:
        lines = [escaped(line) for run in self.runs for line in str(run).split("\n")]
        facts = "".join(render(self.report(), "text")).rstrip("\n")
        return "\n".join([*lines, *self.left_out, *(["", facts] if facts else [])])

    def __repr__(self) -> str:
        return f"<FactDiff of {', '.join(run.after for run in self.runs)}>"

    def _repr_html_(self) -> str:
        tests = {run.after: run.pair.test for run in self.runs}
        bars = {name: Ranged(test.mean_difference, test.low, test.high) for name, test in tests.items()}
        said = [str(run).replace("\n", "; ") for run in self.runs]
        return in_notebook(self.report().tables, "; ".join([*said, *self.left_out]), bars)

    def markdown(self, most: int = COMMENT, *, beside: int = 0) -> str:
        """A comment for a pull request: what is said of each run, and the facts, lost ones first.

        Args:
            most: fewer characters than this; facts for which there is no room are counted.
            beside: characters of the comment that stand beside this.
        """
        heads = []
        for run in self.runs:
            first, second = str(run).split("\n")
            heads += [f"**{markdown_text(escaped(first))}**", "", markdown_text(escaped(second)), ""]
        heads += [f"{markdown_text(line)}\n" for line in self.left_out]
        rows = "".join(render(self.report(), "markdown")).rstrip("\n").split("\n")
        # Two lines are the head of the table.
        room, kept = most - beside - sum(len(line) + 1 for line in heads) - 100, 0
        while kept < len(rows) and (room := room - len(rows[kept]) - 1) > 0:
            kept += 1
        cut = len(rows) - kept
        return "\n".join([*heads, *rows[:kept], *(["", f"and {counted(cut, 'more fact')}"] if cut else [])]) + "\n"


def _cut(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def diff_facts(
    before: Side,
    after: Side,
    asked: Mapping[str, Question],
    measure: Measure,
    *,
    doubtful: Collection[tuple[str, str]] = (),
    runs: int = 1,
) -> RunDiff:
    """What became of every fact, and of the score.

    Args:
        before: the first version.
        after: the second version, with another name.
        asked: the questions that count, with their facts.
        measure: what scores are compared by: one of items that is the better the higher it is.
        doubtful: (question, item) of changes that grading again did not find: they are unsure.
        runs: how many runs are compared with another.

    Raises:
        MeasureError: less is better by the measure.
        InputError: there is no question.
    """
    if measure.NAME == "WeightedContradiction":
        raise MeasureError(f"{measure} counts what is wrong, and facts are of what is said; name another measure first")
    facts = list(_facts(before, after, asked, doubtful))
    scores = _scores(before, after, asked, measure, {(one.query_id, one.item.item_id): one for one in facts})
    tests = Tests(rounds=1, correction="none", level=1.0 - _LEVEL / runs)
    comparison = compare_runs(scores, str(measure), baseline=before.name, tests=tests)
    facts.sort(key=lambda one: (STATES.index(one.state), one.item.importance != "vital"))
    return RunDiff(before.name, after.name, comparison, tuple(facts))


def _facts(
    before: Side, after: Side, asked: Mapping[str, Question], doubtful: Collection[tuple[str, str]]
) -> Iterator[Fact]:
    for query_id, question in asked.items():
        for item in question.items:
            had, has = (side.covers(query_id, item.item_id, question.level) for side in (before, after))
            state: FactState
            if had is None or has is None or (query_id, item.item_id) in doubtful:
                state = "unsure"
            elif had == has:
                state = "covered by both" if has else "missed by both"
            else:
                state = "gained" if has else "lost"
            old, new = (side.grades.get(query_id, {}).get(item.item_id) for side in (before, after))
            retrieval = after.retrieval.get((query_id, item.item_id), "")
            yield Fact(query_id, question.text, item, state, old, new, retrieval)


def _scores(
    before: Side,
    after: Side,
    asked: Mapping[str, Question],
    measure: Measure,
    facts: Mapping[tuple[str, str], Fact],
) -> dict[str, dict[str, float]]:
    """Version -> question -> score, with the same grade on both sides where a fact is unsure."""
    queries = []
    for query_id, question in asked.items():
        grades = np.full((2, len(question.items)), NONE)
        for place, item in enumerate(question.items):
            fact = facts[query_id, item.item_id]
            pair = [fact.before, fact.after]
            if fact.state == "unsure":
                known = fact.after if fact.before is None else fact.before
                pair = [known if query_id in before.grades and query_id in after.grades else None] * 2
            grades[:, place] = [NONE if grade is None else grade for grade in pair]
        docs = {"before": 0, "after": 1}
        queries.append(QueryGrades(query_id, question.items, docs, grades, scale=question.scale))
    found = {}
    for side, doc_id in ((before, "before"), (after, "after")):
        run = make_run(side.name, [(query_id, doc_id, 1.0) for query_id in side.grades])
        scored = evaluate_run(queries, run, [measure])
        found[side.name] = {metric.query_id: metric.value for metric in scored.metrics}
    return found
