"""Two versions of answers compared fact by fact: what one gained and lost, and whether its score is another.

Both are graded with one bank by one grader. A fact is an item of the bank, asked of one question.

The evidence behind a board: for every query, run and item the best passage, its nearest sentence, the reason.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import chain
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from ir_measures.measures.base import Measure

from rubric_measures.analysis.boards import Board
from rubric_measures.analysis.resampling import Tests
from rubric_measures.analysis.significance import Comparison, Pair, compare_runs
from rubric_measures.base.errors import InputError, MeasureError, counted, escaped
from rubric_measures.base.tables import (
    Cell,
    Column,
    Report,
    Reported,
    Table,
    in_notebook,
    markdown_text,
    render,
)
from rubric_measures.base.words import content_stems, sentence_ends
from rubric_measures.boards.scoring import score_runs
from rubric_measures.corpora.loading import Gradable, RecordGrades, Runs, load, read_runs
from rubric_measures.formats.trec import runs_of_records
from rubric_measures.measures.checked import CheckedGrade, CheckedQuery, check_records
from rubric_measures.measures.grade_sets import GradeSetSelector
from rubric_measures.measures.grades import NONE, Grades, QueryGrades
from rubric_measures.measures.measure import SupportMeasure, parse_measures
from rubric_measures.measures.scoring import Plan
from rubric_measures.records.models import cited_answers
from rubric_measures.types.entities import CitedAnswer, RubricItem, sentence_items
from rubric_measures.types.scales import CONTRADICTED, Scale, covering_level

FactState: TypeAlias = Literal["lost", "unsure", "gained", "missed by both", "covered by both"]
# In the order in which they are shown.
STATES: tuple[FactState, ...] = ("lost", "unsure", "gained", "missed by both", "covered by both")
FLIPPED = ("lost", "gained")
# GitHub takes 65,536 characters.
COMMENT = 60_000
# Characters of a fact or a question that are shown.
_LONGEST_FACT = 300
# A t-test draws nothing, and unlike sign flips finds what five questions can tell.
_LEVEL = 0.05


# The longest stretch of a passage that is shown as its sentence, in characters.
_LONGEST = 400
Rankings = Mapping[str, Mapping[str, Sequence[str]]]
"""Run -> query -> its documents, best first, as many as count."""


class Evidence(NamedTuple):
    """Why a run has an item, or has it not.

    Attributes:
        grade: the best grade of the run's passages; None where there is none.
        status: `graded`, or why there is no grade: `unparsed`, `refused`, `truncated`, `failed`; `missing` where nobody
            graded a passage of the run for the item. Of sentences of answers also `uncited`, `textless` where
            there is no text of what is cited, and `other` where the sentence is one of another run.
        doc_id: the passage with that grade.
        sentence: its sentence that shares most content words with the item.
        reason: why the grader gave the grade, where it was asked for that.
        lacks: the content words of the item that the passage does not have, as they stand in the item.
        retrieved: of an item that an answer misses, whether what was retrieved for it has the item; None where that is
            not known.
    """

    grade: float | None
    status: str
    doc_id: str = ""
    sentence: str = ""
    reason: str = ""
    lacks: tuple[str, ...] = ()
    retrieved: bool | None = None

    @property
    def retrieval(self) -> str:
        """The same in words; empty where it is not known. Or what is worse: that the opposite was said."""
        if self.grade == CONTRADICTED:
            return "said wrongly"
        return "" if self.retrieved is None else "retrieved, not said" if self.retrieved else "not retrieved"


@dataclass(frozen=True)
class QueryEvidence:
    """One query of a report.

    Attributes:
        query_id: the query.
        text: its text; empty where the bank does not give it.
        items: the items; without a bank those that were graded, with their ids as texts.
        cells: item id -> run -> evidence.
        level: the least grade that covers an item.
        partial: the least grade that earns half the credit; None where none does.
        scale: the scale of the grades; None where it is not known.
        answers: run -> its text, of runs with one passage: generated answers.
        owners: item id -> the run whose sentence it is, where grades say what citations support; else empty.
    """

    query_id: str
    text: str
    items: tuple[RubricItem, ...]
    cells: Mapping[str, Mapping[str, Evidence]]
    level: int
    partial: int | None
    scale: Scale | None
    answers: Mapping[str, str] = field(default_factory=dict)
    owners: Mapping[str, str] = field(default_factory=dict)

    def is_covered(self, item_id: str, run: str) -> bool:
        """Whether a run covers an item."""
        grade = self.cells[item_id][run].grade
        return grade is not None and grade >= self.level

    def covered(self, run: str) -> int:
        """How many items a run covers."""
        return sum(self.is_covered(item.item_id, run) for item in self.items)

    def with_retrieved(self, known: Mapping[tuple[str, str, str], bool]) -> QueryEvidence:
        """The same, with what is known of (query, item, run): whether contexts have what an answer misses."""
        cells = {
            item_id: {
                run: found._replace(retrieved=known.get((self.query_id, item_id, run)))
                for run, found in of_item.items()
            }
            for item_id, of_item in self.cells.items()
        }
        return replace(self, cells=cells)

    def missed(self, run: str) -> list[RubricItem]:
        """The items that a run was graded for and does not cover, vital ones first."""
        lacking = [
            item
            for item in self.items
            if self.cells[item.item_id][run].grade is not None and not self.is_covered(item.item_id, run)
        ]
        return sorted(lacking, key=lambda item: item.importance != "vital")


def _of_sentences(found: QueryEvidence, checked: CheckedQuery, answers: Sequence[CitedAnswer]) -> QueryEvidence:
    """The same with what stands behind sentences: what they cite, each for the run that says it."""
    documents = {passage.doc_id: passage for passage in checked.passages}
    items = {item.item_id: item for item in found.items}
    owners, cells = {}, {}
    for answer in answers:
        for sentence in answer.sentences:
            cited = documents.get(sentence.citations[0]) if sentence.citations else None
            row = None if cited is None else cited.grades.get(sentence.item_id)
            if row is None:
                shown = Evidence(None, "missing" if sentence.citations else "uncited")
            elif not row.text:
                # Files of labels have no texts of documents; a grader without one makes no call.
                status = "textless" if row.status == "failed" else row.status
                shown = Evidence(row.grade, status, row.doc_id, reason=row.reason)
            else:
                shown = _evidence(items[sentence.item_id], row)
            owners[sentence.item_id] = answer.run_id
            others = dict.fromkeys(found.cells[sentence.item_id], Evidence(None, "other"))
            cells[sentence.item_id] = {**others, answer.run_id: shown}
    return replace(found, cells=cells, owners=owners)


def _of_query(
    checked: CheckedQuery, items: tuple[RubricItem, ...], rankings: Rankings, level: int | None
) -> QueryEvidence:
    passages = {passage.doc_id: passage for passage in checked.passages}
    ranked = {
        run: [passages[doc_id] for doc_id in of_run.get(checked.query_id, ()) if doc_id in passages]
        for run, of_run in rankings.items()
    }
    graded = any(row.grade is not None for row in checked.rows())
    least = covering_level(checked.scale, level) if graded or checked.scale is not None else level or 1
    shown: dict[tuple[str, str], Evidence] = {}
    cells: dict[str, dict[str, Evidence]] = {}
    for item in items:
        of_item = cells.setdefault(item.item_id, {})
        for run, members in ranked.items():
            rows = [one.grades[item.item_id] for one in members if item.item_id in one.grades]
            # The first of the best grades; where all failed, the first of these.
            best = max(rows, key=lambda row: -math.inf if row.grade is None else row.grade, default=None)
            if best is None:
                of_item[run] = Evidence(None, "missing")
                continue
            # Runs share passages, and what is shown of them.
            key = (item.item_id, best.doc_id)
            if key not in shown:
                shown[key] = _evidence(item, best)
            of_item[run] = shown[key]
    return QueryEvidence(
        checked.query_id,
        checked.text,
        items,
        cells,
        least,
        None if checked.scale is None else checked.scale.partial,
        checked.scale,
        {run: members[0].text for run, members in ranked.items() if len(members) == 1},
    )


def _evidence(item: RubricItem, row: CheckedGrade) -> Evidence:
    wanted = frozenset[str]().union(*map(content_stems, (item.text, *item.gold_answers)))
    sentences = _sentences(row.text)
    stated = frozenset[str]().union(*(stems for _, stems in sentences))
    lacking = (word for word in item.text.split() if content_stems(word) - stated)
    lacks = tuple(dict.fromkeys(word.strip(".,;:!?()[]\"'“”") for word in lacking))
    # The first one of those with the most words; none where no sentence has any.
    sentence, stems = max(sentences, key=lambda one: len(wanted & one[1]), default=("", frozenset[str]()))
    shown = sentence if len(sentence) <= _LONGEST else f"{sentence[:_LONGEST].rstrip()}…"
    return Evidence(row.grade, row.status, row.doc_id, shown if wanted & stems else "", row.reason, lacks)


@lru_cache(maxsize=64)
def _sentences(passage: str) -> tuple[tuple[str, frozenset[str]], ...]:
    """The sentences of a passage, each with the stems of its content words."""
    found, start = [], 0
    for stop in sentence_ends(passage):
        sentence = " ".join(passage[start:stop].split())
        found.append((sentence, content_stems(sentence)))
        start = stop
    return tuple(found)


def evidence(board: Board, grades: Gradable, runs: Runs | None = None) -> list[QueryEvidence]:
    """What stands behind a board, query by query: which run has which item, and why."""
    known = load(grades)
    if not isinstance(known, RecordGrades):
        text = "a report shows passages and answers; grades of this kind have no texts beside them: give graded records"
        raise InputError(text, settings=("report",))
    measures = parse_measures(list(board.measures))
    plan = Plan(measures, known.on_failed)
    # Where passages whose grades failed leave a ranking, it is looked at deeper.
    is_deeper = known.on_failed == "expected" and any(one.condenses for one in plan.computations)
    depth = None if is_deeper else plan.depth
    if known.held == "-":
        raise InputError("a report reads the records twice; name a file", settings=("report",))
    groups = list(known.groups)
    read = runs_of_records(groups) if runs is None else read_runs(runs)
    ranked = {run.run_id: run.with_scores() for run in read}
    cut = {
        run: {query: list(doc_ids[:depth]) for query, doc_ids in ranked.get(run, {}).items()}
        for run in board.ranking()
        if run in board.cells
    }
    # A level that a measure names counts; else that of the scale.
    named = measures[0].params.get("rel")
    level = named if isinstance(named, int) else None
    # The evidence of a sentence is the document that it cites first, as its score is.
    is_cited = isinstance(measures[0], SupportMeasure)
    cited = {group.query_id: cited_answers(group) for group in groups if is_cited}
    found = []
    for checked in check_records(groups, GradeSetSelector(known.wanted, known.name), known.bank):
        answers = cited.get(checked.query_id, ())
        if answers:
            items = sentence_items(answers)
        elif known.bank is not None:
            items = known.bank.items[checked.query_id]
        else:
            items = tuple(RubricItem(item_id, checked.query_id, item_id) for item_id in checked.items)
        of_query = _of_query(checked, items, cut, level)
        found.append(_of_sentences(of_query, checked, answers) if answers else of_query)
    return found


class Side(NamedTuple):
    """One version: what a run answered.

    Attributes:
        name: what it is called.
        run: the run.
        queries: question -> what stands behind its grades.
    """

    name: str
    run: str
    queries: Mapping[str, QueryEvidence]

    def answer(self, query_id: str) -> str:
        """Its answer; an empty one is none."""
        answer = self.queries[query_id].answers.get(self.run, "") if query_id in self.queries else ""
        return answer if answer.strip() else ""

    def grade(self, query_id: str, item_id: str) -> float | None:
        """Its grade of a fact; None where there is none."""
        return self.queries[query_id].cells[item_id][self.run].grade if self.answer(query_id) else None

    def covers(self, query_id: str, item_id: str, level: float) -> bool | None:
        """Whether it has a fact; None where that is not known."""
        grade = self.grade(query_id, item_id)
        return bool(self.answer(query_id)) and (None if grade is None else grade >= level)


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

    def count(self, state: FactState) -> int:
        """How many facts are in a state."""
        return sum(fact.state == state for fact in self.facts)

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


@dataclass(frozen=True, repr=False)
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
        return [run for run in self.runs if run.pair.conclusion == "worse"]

    @property
    def not_counted(self) -> str:
        """What makes no run `worse`: facts lost where the interval holds 0, and what was not compared."""
        said = [
            f"{counted(lost, 'lost fact')} of {run.after} ({run.comparison.measure} is not known to be lower)"
            for run in self.runs
            if run not in self.worse and (lost := run.count("lost"))
        ]
        return "; ".join([*said, *self.left_out])

    @property
    def rows(self) -> list[Fact]:
        """Every fact of every run."""
        return list(chain.from_iterable(run.facts for run in self.runs))

    def report(self) -> Report:
        """The facts as a table: for people those that changed, or may have."""
        shown = [(run, fact) for run in self.runs for fact in run.facts if fact.state in STATES[:3]]
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

    def _repr_html_(self) -> str:
        said = [str(run).replace("\n", "; ") for run in self.runs]
        return in_notebook(self.report().tables, "; ".join([*said, *self.left_out]))

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
    return text if len(text) <= _LONGEST_FACT else f"{text[: _LONGEST_FACT - 1]}…"


def diff_facts(
    before: Side,
    after: Side,
    measure: Measure,
    *,
    doubtful: Collection[tuple[str, str]] = (),
    runs: int = 1,
) -> RunDiff:
    """What became of every fact, and of the score.

    Args:
        before: the first version; its questions count.
        after: the second version, with another name.
        measure: what scores are compared by: one of items that is the better the higher it is.
        doubtful: (question, item) of changes that grading again did not find: they are unsure.
        runs: how many runs are compared with another.

    Raises:
        MeasureError: less is better by the measure.
        InputError: there is no question.
    """
    if measure.NAME == "WeightedContradiction":
        raise MeasureError(f"{measure} counts what is wrong, and facts are of what is said; name another measure first")
    facts = list(_facts(before, after, doubtful))
    scores = _scores(before, after, measure, {(one.query_id, one.item.item_id): one for one in facts})
    tests = Tests(rounds=1, correction="none", level=1.0 - _LEVEL / runs)
    comparison = compare_runs(scores, str(measure), baseline=before.name, tests=tests)
    facts.sort(key=lambda one: (STATES.index(one.state), one.item.importance != "vital"))
    return RunDiff(before.name, after.name, comparison, tuple(facts))


def _facts(before: Side, after: Side, doubtful: Collection[tuple[str, str]]) -> Iterator[Fact]:
    level = next(iter(after.queries.values())).level
    for query_id, query in before.queries.items():
        for item in query.items:
            had, has = (side.covers(query_id, item.item_id, level) for side in (before, after))
            state: FactState
            if had is None or has is None or (query_id, item.item_id) in doubtful:
                state = "unsure"
            elif had == has:
                state = "covered by both" if has else "missed by both"
            else:
                state = "gained" if has else "lost"
            old, new = (side.grade(query_id, item.item_id) for side in (before, after))
            there = after.queries[query_id].cells.get(item.item_id, {}) if query_id in after.queries else {}
            retrieval = there[after.run].retrieval if after.run in there else ""
            yield Fact(query_id, query.text or query_id, item, state, old, new, retrieval)


def _scores(
    before: Side, after: Side, measure: Measure, facts: Mapping[tuple[str, str], Fact]
) -> dict[str, dict[str, float]]:
    """Version -> question -> score, with the same grade on both sides where a fact is unsure."""
    queries = {}
    for query_id, query in before.queries.items():
        grades = np.full((2, len(query.items)), NONE)
        for place, item in enumerate(query.items):
            fact = facts[query_id, item.item_id]
            pair = [fact.before, fact.after]
            if fact.state == "unsure":
                known = fact.after if fact.before is None else fact.before
                pair = [known if before.answer(query_id) and after.answer(query_id) else None] * 2
            grades[:, place] = [NONE if grade is None else grade for grade in pair]
        docs = {"before": 0, "after": 1}
        queries[query_id] = QueryGrades(query_id, query.items, docs, grades, scale=query.scale)
    runs = [
        (side.name, {query_id: [doc_id] for query_id in side.queries if side.answer(query_id)})
        for side, doc_id in ((before, "before"), (after, "after"))
    ]
    board = score_runs(Grades(queries), runs, [measure], overall=False)
    return {run_id: board.scored(run_id, board.measures[0]) for run_id in board.cells}
