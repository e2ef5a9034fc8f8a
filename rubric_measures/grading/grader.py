"""The grader: records in, records with grades out, and its report.

What a grading run counts, and what is said at its end: what was made, what is missing and why, what helps.

The grader: passages and a bank in, graded passage records out, as a stream.

Before spending: how many calls and tokens a grading run would need, how much is cached, what it would cost.

The manifest beside graded records: what made them, in full; counts by status.
"""

from __future__ import annotations

import dataclasses
import platform
import re
import sys
from collections import Counter, deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from rubric_measures.base import __version__
from rubric_measures.base.errors import InputError, tell, warn
from rubric_measures.base.tables import Cell, Column, Report, Table, render
from rubric_measures.corpora.loading import PassageRecords
from rubric_measures.grading.asking import BY_RULE, Asking, Outcome, Trial, Unit
from rubric_measures.grading.recording import (
    BankChange,
    GradeSetMaker,
    described,
)
from rubric_measures.grading.styles import Style
from rubric_measures.models.base import Backend, Tally, llm_name
from rubric_measures.models.running import Job, LocalRunner, RunStats
from rubric_measures.models.settings import note_limit
from rubric_measures.records.models import QueryPassages, cited_answers, is_partial
from rubric_measures.types.entities import RubricItem, TestBank, asked_pairs, bank_content

if TYPE_CHECKING:
    from rubric_measures.grading.lazy import Made, NeededFor, Unsettled
    from rubric_measures.measures.scoring import Plan

_NUMBER = re.compile(r"\d+(?:\.\d+)?")


@dataclass
class GradingReport:
    """Counts of one run of a grader; they only grow.

    Attributes:
        statuses: prompt class -> status -> grades made in this run.
        kept: grades that were there already.
        passages: passages that were gone through.
        ungraded: status -> outcomes without what was asked for: a grade, or the text of an extraction. Grades of a
            reply that was cut are none of them.
        reasons: (status, reason with its numbers masked) -> how often, and one such reason.
        by_rule: grades 0 that only the rules of the nuggetizer program make (`compat`).
        singly: items that were asked about by themselves, as a reply about several did not grade them.
        taken_out: grades of items that changed or left the bank, where its edits are followed.
        never_asked: pairs of passage and item that no measure needs, where grades are asked for measures.
        asked_for: measures with their levels and runs that grades were asked for; empty where for all.
        run: the calls.
        asks_anew: a further run asks anew for replies that could not be read.
    """

    statuses: dict[str, Counter[str]] = field(default_factory=dict)
    kept: int = 0
    passages: int = 0
    ungraded: Counter[str] = field(default_factory=Counter)
    reasons: dict[tuple[str, str], tuple[int, str]] = field(default_factory=dict)
    by_rule: int = 0
    singly: int = 0
    taken_out: int = 0
    never_asked: int = 0
    asked_for: dict[str, dict[str, None]] = field(default_factory=dict)
    run: RunStats = field(default_factory=RunStats)
    asks_anew: bool = False

    @property
    def by_status(self) -> Counter[str]:
        """status -> grades, over all prompts."""
        return sum(self.statuses.values(), Counter())

    @property
    def is_complete(self) -> bool:
        """Whether all that was asked for is there: no grade is missing, and no limit ended the run."""
        return not self.run.limit and not any(self.ungraded.values())

    def add(self, prompt_class: str, outcomes: Iterable[Outcome]) -> None:
        """Counts outcomes of one prompt."""
        counts = self.statuses.setdefault(prompt_class, Counter())
        for outcome in outcomes:
            counts[outcome.status] += 1
            self.singly += "asked_singly" in (outcome.details or ())
            if outcome.status == "graded":
                self.by_rule += outcome.note.endswith(BY_RULE)
                continue
            self.ungraded[outcome.status] += outcome.grade is None
            masked = outcome.status, _NUMBER.sub("#", outcome.note)
            count, first = self.reasons.get(masked, (0, outcome.note))
            self.reasons[masked] = count + 1, first


def note_report(report: GradingReport, *, deterministic: bool = False, is_kept: bool = True) -> None:
    """Notes what was done.

    Args:
        report: the counts of the run.
        deterministic: the model would reply the same to the same request, so that asking again helps nobody.
        is_kept: there is a cache that outlives the run.
    """
    made = report.by_status
    kept = f" ({report.kept} more were there already)" if report.kept else ""
    tell(f"{made.total()} grades of {report.passages} passages{kept}: {report.run}")
    tell("%d of the calls drew replies again that could not be read", report.run.redrawn)
    tell("%d items were asked about singly, as replies about several did not grade them", report.singly)
    tell("%d stale grades of items that changed or left are taken out", report.taken_out)
    if report.asked_for:
        measures = ", ".join(report.asked_for["measures"])
        tell(f"{report.never_asked} pairs never asked: no grade of theirs can change {measures}")
    warn("%d grades are 0 only by the rules of the nuggetizer program", report.by_rule)
    warn(
        "%d grades are of replies that were cut (status truncated)",
        made["truncated"] - report.ungraded["truncated"],
    )
    note_limit(report.run, is_kept=is_kept)
    lacking = {status: count for status, count in sorted(report.ungraded.items()) if count}
    if not lacking:
        return
    counts = ", ".join(f"{count} {status}" for status, count in lacking.items())
    advice = _advice(report, deterministic)
    said = "; ".join([counts, *(text for text, _ in advice)])
    settings = tuple(name for _, name in advice if name)
    warn(f"{sum(lacking.values())} of {made.total()} are not graded: {said}", settings=settings)
    for status in lacking:
        # The most frequent ones.
        found = sorted((-count, reason) for (of, _), (count, reason) in report.reasons.items() if of == status)
        warn("%s: %s", status, "; ".join(f"{reason} ({-count})" for count, reason in found[:3]))


def _advice(report: GradingReport, deterministic: bool) -> list[tuple[str, str]]:
    """What may help against what is missing, without what cannot; each with the parameter that it is about."""
    found = []
    if report.run.failed and report.ungraded["failed"] and not deterministic:
        found.append(("run again to retry what failed", ""))
    if report.ungraded["unparsed"] and not deterministic:
        more = "unreadable replies are drawn again with more retries", "retries"
        found.append(("run again to ask anew for what cannot be read", "") if report.asks_anew else more)
    if report.ungraded["truncated"]:
        found.append(("replies that were cut need a higher max_tokens", "max_tokens"))
    return found


_AHEAD = 10_000  # passages of queries that wait for an earlier one


def default_prompts(model: str, bank: TestBank, of_pairs: bool = False) -> tuple[str, ...]:
    """The self-rating prompts for the kinds of items in a bank; `LexicalCoverage` for the lexical grader.

    Args:
        model: the model.
        bank: the test bank.
        of_pairs: citations are judged; then it is `SupportJudgment` or `LexicalSupport`.
    """
    if model.partition(":")[0] == "lexical":
        return ("LexicalSupport" if of_pairs else "LexicalCoverage",)
    if of_pairs:
        return ("SupportJudgment",)
    kinds = {item.kind for item in bank}
    names = {"question": "QuestionSelfRatedUnanswerablePromptWithChoices", "nugget": "NuggetSelfRatedPrompt"}
    return tuple(name for kind, name in names.items() if kind in kinds)


@dataclass
class _OpenGroup:
    """A query whose grades are being made: of each place of a passage and of a prompt, item_id -> outcome."""

    source: QueryPassages
    of: Unit  # the query, with all its items
    left: int = 0  # jobs that are not done
    outcomes: dict[tuple[int, int], dict[str, Outcome]] = field(default_factory=dict)
    # Of each prompt the measures and runs that it is asked for, where it is not asked for all.
    asked_for: dict[int, dict[str, list[str]]] = field(default_factory=dict)


def _nothing() -> Job[list[Outcome]]:
    """The job of a query that has all its grades, so that it takes its turn like the others."""
    yield from ()
    return []


@dataclass(frozen=True)
class GradingEngine:
    """Styles over one backend, which grade against one bank.

    Attributes:
        backend: the model.
        bank: the test bank.
        prompts: names of prompts (or of .toml files); empty takes those that fit the bank.
        settings: how prompts are put and replies are read.
        change: what edits did to the bank; then only the items that they touched are graded, in passages that have
            grades by this grader, and grades that became stale are taken out. None grades whatever has no grade.
        needed: the measures that grades are asked for, as long as they can change them; None asks for all grades.
        citations: the passages are answers and what they cite: how many citations of each sentence are judged, the
            first ones. None where passages are graded for all items of their query.
        give_up_after: ends the run where none of its first so many replies can be read; None never does.
    """

    backend: Backend
    bank: TestBank
    prompts: tuple[str, ...] = ()
    settings: Asking = Asking()
    change: BankChange | None = None
    needed: NeededFor | None = None
    citations: int | Literal["all"] | None = None
    give_up_after: int | None = None

    @cached_property
    def makers(self) -> list[GradeSetMaker]:
        """One maker of grade sets for each prompt.

        Raises:
            UnknownNameError: there is no prompt of a name.
            InputError: a prompt does not grade passages, finds no item of its kind in the bank, or is named twice.
        """
        bank, model = self.bank, self.backend.model
        names = self.prompts or default_prompts(model, bank, self.citations is not None)
        hashed = bank_content(bank)
        styles = [Style(self.backend, name, self.settings) for name in names]
        makers = [
            GradeSetMaker(one, model, "" if one.direct or one.of_pairs else hashed, self.change) for one in styles
        ]
        classes = Counter(maker.style.prompt.prompt_class for maker in makers)
        if repeated := [name for name, count in classes.items() if count > 1]:
            problem = f"two prompts are called {repeated[0]}; name it once, or set another name in one of the files"
            raise InputError(problem, settings=("prompt",))
        for style in styles:
            prompt, name = style.prompt, f"prompt {style.prompt.prompt_class}"
            if not style.items_of(tuple(bank)):
                what = ", ".join(prompt.labels) if prompt.parser == "aspects" else f"{' or '.join(style.item_kinds)}s"
                what += " with gold answers" if prompt.task == "verify" else ""
                text = f"{name} grades {what}, and the test bank has none; leave it out for one that fits"
                raise InputError(text, settings=("prompt", "bank"))
            if style.of_pairs != (self.citations is not None):
                what = "only judges" if style.of_pairs else "does not judge"
                raise InputError(f"{name} {what} what citations support", settings=("support", "prompt"))
            if style.direct and self.change is not None:
                raise InputError(f"{name} labels passages without items, so edits of the bank change nothing")
            if self.needed is not None:
                self.needed.plan(style, bank)
        if not makers:
            raise InputError("the test bank has no items")
        return makers

    def check(self, groups: Iterable[QueryPassages]) -> int:
        """Finds what `grade_records` would find wrong with the input in the middle of the work; asks nothing.

        Returns:
            How many (passage, item) and (passage, query) pairs the prompts are about.

        Raises:
            InputError: as `grade_records`.
            UnknownNameError: as `grade_records`.
        """
        makers, pairs, older, left_out = self.makers, 0, set(), Counter[str]()
        for group in groups:
            text = self.bank.query_texts.get(group.query_id, "")
            of = Unit(group.query_id, text, "", "", self.bank.for_query(group.query_id))
            for maker in makers:
                style, name = maker.style, maker.style.prompt.prompt_class
                if not text.strip() and style.shows_query:
                    problem = f"prompt {name} shows the query; {group.query_id!r} has no text"
                    raise InputError(problem, settings=("bank", "query_texts"))
                pairs += sum(map(len, self.wanted(group, maker, of)))
                if not style.direct:
                    of_kind = sum(item.kind in style.item_kinds for item in of.items)
                    left_out[name] += of_kind - len(style.items_of(of.items))
                if self.change is not None:
                    older |= {
                        is_partial(one) for passage in group.passages for one in maker.present(passage, of).values()
                    }
        for name, count in left_out.items():
            warn("%s: %d items left out: they have no gold answers, or are none of its aspects", name, count)
        if True in older:
            text = "these grades were asked only for some measures; grade for them again: of items that did not change "
            raise InputError(f"{text}the replies come from the cache", settings=("only_changed", "measures"))
        if self.change is not None and not older:
            names = ", ".join(maker.style.prompt.prompt_class for maker in makers)
            by = f"by {llm_name(self.backend.model)} with {names} and these settings"
            text = f"the records hold no grades of this bank {by}: there is nothing to go on from; grade everything"
            raise InputError(text, settings=("only_changed",))
        return pairs

    def grade_records(
        self,
        groups: Iterable[QueryPassages],
        runner: LocalRunner,
        report: GradingReport,
        makers: Sequence[GradeSetMaker] | None = None,
    ) -> Generator[QueryPassages, None, None]:
        """Adds grades to records: one new grade set for each prompt × model × bank, in the order of the input.

        What is there stays. A set that exactly this grader made before is completed: only items without a grade are
        asked again. Records are yielded query by query as they are done; the input is not changed. While the grades of
        a query are late, some 10,000 passages of later ones are graded and wait for it, and no more. Whoever does not
        read to the end closes it: what was spent is then in the cache.

        Args:
            groups: passages by query; pulled as the backend takes work.
            runner: the backend, with cache and limits.
            report: is filled with counts.
            makers: some of the makers; by default all.

        Raises:
            UnknownNameError: the bank does not have a query.
            InputError: see `makers`.
            GradingError: the model cannot be used; finished calls are in the cache.
        """
        makers = self.makers if makers is None else makers
        plans = [self.needed.plan(maker.style, self.bank) for maker in makers] if self.needed is not None else []
        run = _Ongoing(self, makers, plans, report)
        trial = Trial(self.give_up_after)
        hold = lambda under_way: trial.waits(under_way) or run.is_far_ahead(under_way)  # noqa: E731
        for maker in makers if self.give_up_after is not None else ():
            maker.style.asker.told = trial.note
        try:
            for (group, which, place), made in runner.run(run.jobs(groups), report.run, hold):
                for number, outcomes in made if place is None else [(place, made)]:
                    found = group.outcomes.setdefault((number, which), {})
                    found.update((outcome.item_id, outcome) for outcome in outcomes)
                group.left -= 1
                while run.line and not run.line[0].left:
                    yield run.finished(run.line.popleft())
        finally:
            # A part of a long passage may be lost, and the grades all be there.
            if runner.tally is None and (report.ungraded["unparsed"] or not report.by_status["graded"]):
                runner.cache.forget(trial.unread)
                report.asks_anew = bool(trial.unread)

    def wanted(self, group: QueryPassages, maker: GradeSetMaker, of: Unit) -> Sequence[tuple[RubricItem, ...]]:
        """The items that are graded of each passage: all that the style can grade, or the sentences that cite it.

        Where only edits of the bank are followed, of passages that this grader graded.
        """
        wanted = tuple(maker.style.items_of(of.items))
        found = [wanted] * len(group.passages)
        if self.change is not None:
            found = [wanted if maker.present(passage, of) else () for passage in group.passages]
        if maker.style.of_pairs:
            pairs = asked_pairs(cited_answers(group), None if self.citations == "all" else self.citations)
            ids = [pairs.get(passage.doc_id, ()) for passage in group.passages]
            found = [tuple(item for item in wanted if item.item_id in asked) for asked in ids]
        return found


@dataclass
class _Ongoing:
    """One run of an engine: jobs out, and the records of queries that are done."""

    engine: GradingEngine
    makers: Sequence[GradeSetMaker]
    plans: Sequence[Plan]
    report: GradingReport
    # The queries whose grades are being made, in the order of the input; passages that began, and are done. Jobs may be
    # handed out from a thread of the backend, so each count has one writer.
    line: deque[_OpenGroup] = field(default_factory=deque)
    begun: int = 0
    taken: int = 0

    def jobs(self, groups: Iterable[QueryPassages]) -> Iterator[tuple[tuple[_OpenGroup, int, int | None], Job[Any]]]:
        """The jobs of all queries, each with its query, the place of its prompt, and that of its passage.

        A job without a place is about several passages, and says the place of each.
        """
        bank = self.engine.bank
        for group in groups:
            query_text = bank.query_texts.get(group.query_id, "")
            opened = _OpenGroup(group, Unit(group.query_id, query_text, "", "", bank.for_query(group.query_id)))
            jobs = list(self._lazy_jobs(opened) if self.plans else self._all_jobs(opened)) or [(0, 0, _nothing())]
            opened.left = len(jobs)
            self.line.append(opened)
            self.begun += len(group.passages)
            for which, number, job in jobs:
                yield (opened, which, number), job
        if self.plans and not self.report.asked_for.get("runs"):
            text = "the passages hold no rankings of the queries, so nobody knows what is needed; name the runs"
            raise InputError(text, settings=("runs",))

    def _all_jobs(self, opened: _OpenGroup) -> Iterator[tuple[int, int, Job[list[Outcome]]]]:
        """The jobs of a query that ask for all that its passages lack, passage by passage."""
        group, of = opened.source, opened.of
        wanted = [self.engine.wanted(group, maker, of) for maker in self.makers]
        for number, passage in enumerate(group.passages):
            for which, maker in enumerate(self.makers):
                asked = wanted[which][number]
                missing = maker.missing(passage, asked, of)
                self.report.kept += len(asked) - len(missing)
                unit = of._replace(doc_id=passage.doc_id, text=passage.text, items=missing)
                for part in maker.style.units(unit):
                    yield which, number, maker.style.job(part)

    def _lazy_jobs(self, opened: _OpenGroup) -> Iterator[tuple[int, None, Job[list[Made]]]]:
        """The jobs of a query that ask for what measures need, one a prompt."""
        from rubric_measures.grading.lazy import Unsettled, in_waves

        assert self.engine.needed is not None
        group, rankings = opened.source, self.engine.needed.rankings(opened.source)
        passages = {passage.doc_id: (number, passage) for number, passage in enumerate(group.passages)}
        for which, (maker, plan) in enumerate(zip(self.makers, self.plans, strict=True)):
            items = maker.style.items_of(opened.of.items)
            opened.asked_for[which] = said = {"measures": [*map(str, plan.measures)], "runs": [*rankings]}
            for name, values in said.items():
                self.report.asked_for.setdefault(name, {}).update(dict.fromkeys(values))
            unsettled = Unsettled(plan.computations, items, [*rankings.values()])
            known = {doc_id: maker.grades_of(passage, opened.of) for doc_id, (_, passage) in passages.items()}
            self.report.kept += sum(map(len, known.values()))

            def jobs_of(
                doc_id: str, maker: GradeSetMaker = maker, unsettled: Unsettled = unsettled
            ) -> list[tuple[int, Job[list[Outcome]]]]:
                if doc_id not in passages:
                    return []
                number, passage = passages[doc_id]
                asked = [
                    item for item in maker.style.items_of(opened.of.items) if unsettled.needs(doc_id, item.item_id)
                ]
                missing = maker.missing(passage, asked, opened.of)
                unit = opened.of._replace(doc_id=doc_id, text=passage.text, items=missing)
                return [(number, maker.style.job(part)) for part in maker.style.units(unit)]

            yield which, None, in_waves(unsettled, known, jobs_of)

    def is_far_ahead(self, _: int) -> bool:
        """Whether so much waits for the first query that no other one may begin."""
        first = next(iter(self.line), None)
        return first is not None and self.begun - self.taken - len(first.source.passages) > _AHEAD

    def finished(self, group: _OpenGroup) -> QueryPassages:
        """The records of a query that is done."""
        passages = []
        self.taken += len(group.source.passages)
        makers, report, old = self.makers, self.report, group.source.passages
        for number, passage in enumerate(old):
            report.passages += 1
            for which, maker in enumerate(makers):
                outcomes, asked_for = group.outcomes.pop((number, which), {}), group.asked_for.get(which)
                if outcomes:
                    report.add(maker.style.prompt.prompt_class, outcomes.values())
                if maker.change is not None:
                    report.taken_out += maker.stale(passage, group.of)
                if outcomes or asked_for or maker.change is not None:
                    passage = maker.with_outcomes(passage, group.of, outcomes, asked_for)
                if asked_for:
                    said = maker.told(passage, group.of)
                    report.never_asked += len(maker.style.items_of(group.of.items)) - len(said)
            passages.append(passage)
        if all(new is one for new, one in zip(passages, old, strict=True)):
            return group.source
        return described(group.source._replace(passages=passages), makers, group.of.query_text)


@dataclass(frozen=True)
class Estimate:
    """What the grades of one prompt, or what one model makes, would need.

    Attributes:
        name: the prompt, or the model.
        calls: calls to make (first draws; further ones of unreadable replies and checks by a model come on top).
        cached: replies that are in the cache.
        shared: requests that equal one of the calls, of this prompt or of one before it.
        kept: grades that the records have already.
        prompt_tokens: tokens shown in the calls, by the model's tokenizer or an estimate.
        completion_tokens: tokens written at most.
        checks: checks by a model that may follow, at most: those of the item with the most gold answers for each call.
        cost: of the calls, with replies as long as they may be; None when the price is unknown.
        cost_at_most: of all that may be called: every reply cut, asked for with more tokens, as long as it may be then,
            unreadable as often as it is drawn again. None when the price is unknown, or what checks by a model show.
    """

    name: str
    calls: int
    cached: int
    shared: int
    kept: int
    prompt_tokens: int
    completion_tokens: int
    checks: int
    cost: float | None
    cost_at_most: float | None

    @classmethod
    def of(
        cls, name: str, runner: LocalRunner, run: RunStats, kept: int = 0, checks: int = 0, most: Sequence[int] = ()
    ) -> Estimate:
        """What a runner that makes no call has counted; `most` are all tokens that may be shown, and written."""
        tally, price = runner.tally or Tally(), runner.price
        tokens = tally.prompt_tokens, tally.completion_tokens
        costs = [None if price is None or not some else price.of(*some) for some in (tokens, most)]
        return cls(name, tally.calls, run.cached, run.shared + tally.repeated, kept, *tokens, checks, *costs)

    @property
    def cached_share(self) -> float:
        """The share of the requests that needs no call, 0 to 1; 1 where there are none."""
        requests = self.calls + self.cached + self.shared
        return 1 - self.calls / requests if requests else 1.0


# What heads each column of a plan, and the field or property that it has.
_COLUMNS = {
    "prompt": "name",
    **{name: name for name in ("calls", "cached", "shared", "cached_share", "kept", "prompt_tokens")},
    "completion_tokens_at_most": "completion_tokens",
    "checks_at_most": "checks",
    "cost_of_calls": "cost",
    "cost_at_most": "cost_at_most",
}


class GradingPlan(tuple[Estimate, ...]):
    """What grading would need, prompt by prompt; as text, a table with tabs between its columns."""

    __slots__ = ()

    def __str__(self) -> str:
        rows: list[list[Cell]] = [[getattr(row, name) for name in _COLUMNS.values()] for row in self]
        heads = [Column(head, places=3) if head == "cached_share" else Column(head) for head in _COLUMNS]
        return "".join(render(Report([Table(heads, rows)]), "tsv")).rstrip("\n")

    __repr__ = __str__


def estimate(engine: GradingEngine, groups: Sequence[QueryPassages], planned: LocalRunner) -> GradingPlan:
    """What grading would need, prompt by prompt; makes no call and changes no file.

    Args:
        engine: as it would grade.
        groups: the passages.
        planned: a runner that makes no call.
    """
    found = []
    known: set[str] = set()
    for maker in engine.makers:
        counter, report = Tally(known), GradingReport()
        runner = dataclasses.replace(planned, tally=counter)
        for _ in engine.grade_records(groups, runner, report, [maker]):
            pass
        shown, written = counter.prompt_tokens, counter.completion_tokens
        # A reply that another prompt asks for, too, is checked here as well.
        of_each = (
            max((len({*item.gold_answers}) for item in engine.bank), default=0) if maker.style.prompt.verify else 0
        )
        checks = of_each * (counter.calls + counter.repeated)
        most = () if checks else maker.style.at_most(engine.bank, shown, written)
        found.append(Estimate.of(maker.style.prompt.prompt_class, runner, report.run, report.kept, checks, most))
    return GradingPlan(found)


# Of the counts of a run, those that the manifest has under their own names.
_COUNTS = (
    "cached", "completion_tokens", "failed", "prefix_tokens", "prompt_tokens", "reasoning_tokens", "shared",
    "truncated",
)  # fmt: skip
_PACKAGES = ("torch", "transformers", "openai", "snowballstemmer", "rapidfuzz")


def make_manifest(
    engine: GradingEngine, runner: LocalRunner, report: GradingReport, files: dict[str, str]
) -> dict[str, Any]:
    """Everything that is needed to say how grades came about, JSON-able.

    The grade sets of the records name a signature; `prompts` spells each of them out.

    Args:
        engine: the grader.
        runner: what it graded with.
        report: the counts of the run.
        files: what was read and written, by role.
    """
    from importlib.metadata import version

    run, bank, model = report.run, engine.bank, engine.backend.model
    # Of those that took part; none is imported for it.
    packages = {name: version(name) for name in _PACKAGES if name in sys.modules}
    prompts: dict[str, Any] = {}
    # Those that made the grades: a prompt's file may be another one by now.
    for maker in engine.makers:
        prompt = maker.style.prompt
        prompts[prompt.prompt_class] = {
            "citation": prompt.citation,
            "definition": prompt.as_json(),
            "hash": prompt.hash,
            "signature": maker.provenance["signature"],
            "settings": {**maker.settings, "bank": maker.bank},
            "statuses": dict(sorted(report.statuses.get(prompt.prompt_class, {}).items())),
        }
    chosen: dict[str, Any] = {} if engine.change is None else {"only_changed": {"taken_out": report.taken_out}}
    if report.asked_for:
        chosen["asked_for"] = {
            **{name: [*of] for name, of in report.asked_for.items()},
            "never_asked": report.never_asked,
        }
    cache = runner.cache
    if cache.path != ":memory:" and (ledger := cache.ledger()):
        # By all runs over the cache, killed ones too; what calls cost that were lost in a kill is not known.
        names = {"made": "calls"} | {name: name for name in ("failed", "prompt_tokens", "completion_tokens")}
        paid: dict[str, Any] = {name: sum(getattr(row, field) for row in ledger) for name, field in names.items()}
        unpriced = any(row.cost is None and row.calls > row.failed for row in ledger)
        chosen["paid"] = paid | {"cost": None if unpriced else sum(row.cost or 0.0 for row in ledger)}
    return {
        **chosen,
        "bank": {"hash": bank_content(bank), "items": len(bank), "queries": len(bank.items)},
        "calls": {
            **{name: getattr(run, name) for name in _COUNTS},
            "cost": run.cost if runner.price and not run.unpriced else None,
            "left_out": dict(sorted(run.left_out.items())),
            "limit": run.limit or None,
            "made": run.calls,
            "retries_of_unparsed": report.run.redrawn,
        },
        "files": files,
        "llm": llm_name(model),
        "model": model,
        "passages": {"graded": report.passages, "grades_kept": report.kept},
        "prompts": prompts,
        "statuses": dict(sorted(report.by_status.items())),
        "versions": {"python": platform.python_version(), "rubric_measures": __version__, **packages},
    }


class GradedRecords(PassageRecords):
    """Graded passages by query; `load` takes them.

    Attributes:
        report: what was made: grades by status, kept ones, calls and tokens; `report.is_complete` says whether all
            that was asked for is there.
        plan: of a dry run, what grading would need; the records are empty then.
    """

    def __init__(
        self,
        groups: Iterable[QueryPassages] | None,
        *,
        path: str = "",
        report: GradingReport,
        plan: GradingPlan | None = None,
    ) -> None:
        super().__init__(groups, path=path)
        self.report, self.plan = report, plan

    def __repr__(self) -> str:
        if self.plan is not None:
            return str(self.plan)
        lacking = ", ".join(f"{count} {status}" for status, count in sorted(self.report.ungraded.items()) if count)
        return super().__repr__()[:-1] + (f", not graded: {lacking})" if lacking else ")")
