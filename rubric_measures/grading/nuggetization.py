"""Nuggets made from passages, and the calls of all makers of banks.

Asking a model questions whose replies are read: retries as further draws, failures as records.

Nuggets from documents (AutoNuggetizer): create over windows of segments, label by importance, trim.
"""

from __future__ import annotations

import logging
import re
import unicodedata
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeVar

from msgspec.structs import replace

from rubric_measures.base.errors import InputError, warn
from rubric_measures.grading.asking import Ask, Asker, Asking, ReadReply, Trial
from rubric_measures.measures.grade_sets import DirectLabels, Grader
from rubric_measures.models.base import Reply, Request, refuse_settings
from rubric_measures.models.running import Job, LocalRunner, RunStats
from rubric_measures.prompts.library import Prompt, list_text, load_prompt
from rubric_measures.prompts.verdicts import Parsed
from rubric_measures.records.models import QueryPassages
from rubric_measures.types.entities import Importance, Query, RubricItem, TestBank, make_item_id
from rubric_measures.types.scales import Message

K = TypeVar("K")
T = TypeVar("T")
_Steps = Generator[Sequence[Request], Sequence[Reply], T]


@dataclass(frozen=True)
class Caller:
    """A model as the makers of test banks use it.

    Attributes:
        runner: the model behind its cache and limits.
        settings: how it is asked, for prompts of any kind.
        stats: counts of what was asked; they grow with every use.
        trial: ends the work where none of the first replies can be read.

    Raises:
        InputError: a generation option is a setting of the backend.
    """

    runner: LocalRunner
    settings: Asking = Asking()
    stats: RunStats = field(default_factory=RunStats)
    trial: Trial = field(default_factory=Trial)

    def __post_init__(self) -> None:
        refuse_settings(self.runner.backend, self.settings.option or {})

    @property
    def model(self) -> str:
        """The backend's canonical name."""
        return self.runner.backend.model

    def asker(self, prompt: Prompt) -> Asker:
        """What puts a prompt to the model."""
        asker = Asker(self.runner.backend, prompt, self.settings)
        # A list that was cut is none.
        asker.told = lambda one: self.trial.note(one._replace(value=None) if one.status == "truncated" else one)
        return asker

    def run(self, jobs: Iterable[tuple[K, Job[T]]]) -> dict[K, T]:
        """Runs all jobs; name -> result, in the order in which they were done: look results up by name."""
        return dict(self.runner.run(self.trial.watched(jobs), self.stats, self.trial.waits))

    def ask_each(self, asked: Sequence[tuple[Prompt, tuple[Message, ...]]]) -> list[Parsed[Any]]:
        """What prompts say, with their messages, that do not wait for each other; the outcomes are in their order."""
        jobs = ((place, ask_all(self.asker(prompt), [Ask(shown)])) for place, (prompt, shown) in enumerate(asked))
        found = self.run(jobs)
        return [found[place][0] for place in range(len(asked))]


class Failure(NamedTuple):
    """One call that led to nothing: for which query, which step, and why."""

    query_id: str
    step: str
    reason: str


class MadeBank(NamedTuple):
    """A bank that was made, and what happened on the way.

    Attributes:
        bank: every query is in it, in the order given; one whose calls all failed with an empty list.
        failures: calls that led to nothing; `step` is "query", a facet, "create 2/5" or "importance 1/3". A failed
            creation call left the list as it was, a failed importance call left its nuggets without importance.
        sources: of nuggets from documents: item id -> ids of the segments that were shown when it first appeared.
    """

    bank: TestBank
    failures: tuple[Failure, ...]
    sources: Mapping[str, tuple[str, ...]] | None = None


def ask_all(asker: Asker, asks: Sequence[Ask]) -> _Steps[list[Parsed[Any]]]:
    """A step of a job that asks some questions together; the outcomes are in their order.

    What does not fit the model is not asked, as it would cut it. A reply that was cut is none: it may lack an item.
    """
    problems = [asker.room.why_too_long(ask.messages, asker.max_tokens(ask.labels)) for ask in asks]
    answers = iter((yield from asker.ask([ask for ask, problem in zip(asks, problems, strict=True) if not problem])))
    found = [ReadReply(None, "failed", "", problem) if problem else next(answers) for problem in problems]
    return [
        Parsed(one.value, one.note)
        if one.status in ("graded", "unparsed")
        else Parsed(None, f"{one.status}: {one.note}")
        for one in found
    ]


_PUNCTUATION = re.compile(r"[.,;:!?'\"()\[\]{}…«»“”‘’`*_/–—]|-(?!\d)")


def normalised(text: str) -> str:
    """A text without what does not tell two items apart: case, punctuation, width, blanks (but "C++" is not "C#").

    >>> normalised("  What is a “leap” year? ") == normalised("what is a leap year")
    True
    """
    folded = unicodedata.normalize("NFKC", text).casefold()
    # A text of punctuation only keeps it: else all of them would be equal.
    return " ".join(_PUNCTUATION.sub(" ", folded).split()) or folded.strip()


def without_duplicates(texts: Iterable[str]) -> tuple[str, ...]:
    """The texts whose normalised form comes for the first time, in order."""
    known: set[str] = set()
    kept = []
    for text in texts:
        key = normalised(text)
        if key and key not in known:
            known.add(key)
            kept.append(text)
    return tuple(kept)


_LOGGER = logging.getLogger("rubric_measures")
RelatedBy = Literal["judgments", "direct", "all"]


def related_segments(
    groups: Iterable[QueryPassages],
    *,
    by: RelatedBy = "judgments",
    level: int = 1,
    grader: Grader | None = None,
) -> dict[str, list[SourceSegment]]:
    """Query id -> the segments that are related to it, in file order; the same text is shown once.

    Args:
        groups: passages with their texts.
        by: `judgments`: the judgments in the records; `direct`: the labels of a direct grader in the
            records; `all`: every passage.
        level: the lowest label that counts as related (inclusive).
        grader: only direct grades by this one.

    Raises:
        InputError: direct grades of several graders fit; the message lists them.

    Source: Pradeep et al., TREC 2024 RAG, AutoNuggetizer report, section 3: documents judged at least related (1).
    """
    labels = DirectLabels(grader or Grader(), "grader")
    found: dict[str, list[SourceSegment]] = {}
    unlabelled = 0
    for group in groups:
        segments = found.setdefault(group.query_id, [])
        shown = {segment.text for segment in segments}
        for passage in group.passages:
            if by == "all":
                label: float | None = level
            elif by == "direct":
                direct = labels.of(group.query_id, passage)
                label = None if direct is None else direct.label
            else:
                label = passage.judged(group.query_id)
            unlabelled += label is None
            if label is not None and label >= level and passage.text.strip() and passage.text not in shown:
                shown.add(passage.text)
                segments.append(SourceSegment(passage.doc_id, passage.text))
    if unlabelled:
        _LOGGER.warning("%d passages left out: no %s", unlabelled, "direct grade" if by == "direct" else "judgment")
    return found


BATCH = 10  # segments a creation call, and nuggets an importance call (Pradeep et al. 2024, section 3)
MAX_NUGGETS = 30
KEPT = 20


class SourceSegment(NamedTuple):
    """One segment of a document that was judged related to the query."""

    doc_id: str
    text: str


def published_calls(segments: int, nuggets: int) -> tuple[int, int]:
    """How many creation and importance calls one query takes when none is retried: ⌈segments/10⌉ and ⌈nuggets/10⌉.

    >>> published_calls(25, 30)
    (3, 3)
    """
    return -(-segments // BATCH), -(-nuggets // BATCH)


class _Nugget(NamedTuple):
    text: str
    sources: tuple[str, ...]
    importance: Importance | None = None


class _Made(NamedTuple):
    """What the steps of one query lead to: its list, and what failed."""

    nuggets: tuple[_Nugget, ...]
    failures: tuple[Failure, ...]


class _Plan(NamedTuple):
    max_nuggets: int
    keep: int
    over_generate: bool
    words: str  # what the names of the prompts end in: @nuggetizer for that program's


def nuggetize(
    queries: Sequence[Query],
    segments: Mapping[str, Sequence[SourceSegment]],
    caller: Caller,
    *,
    max_nuggets: int = MAX_NUGGETS,
    keep: int = KEPT,
    over_generate: bool = False,
    program: str = "",
) -> MadeBank:
    """Builds each query's nuggets from its related documents.

    Ten segments a call; the list so far goes in, the updated list comes out, cut to `max_nuggets`. Then importance, ten
    nuggets a call, and the trim to `keep`. Queries go side by side, the calls of one query one after the other, so the
    same replies from the cache give the same bank.

    Args:
        queries: the queries.
        segments: query id -> the segments judged related, in the order in which they are shown.
        caller: the model.
        max_nuggets: the longest list that creation carries on.
        keep: how many nuggets stay after the trim.
        over_generate: for assessors to edit: all `max_nuggets` nuggets, no importance, no trim.
        program: `nuggetizer` puts the prompts in that program's words; empty has the paper's.

    Raises:
        InputError: no queries, or a size below one.

    Source: Pradeep et al., TREC 2024 RAG, AutoNuggetizer report, section 3, Figures 3 and 4.
    """
    _check(queries, max_nuggets, keep)
    plan = _Plan(max_nuggets, keep, over_generate, program and f"@{program}")
    jobs = ((query.query_id, _make(query, segments.get(query.query_id, ()), caller, plan)) for query in queries)
    found = caller.run(jobs)
    made_of = {query.query_id: found[query.query_id] for query in queries}
    items: dict[str, tuple[RubricItem, ...]] = {}
    sources: dict[str, tuple[str, ...]] = {}
    for query_id, steps in made_of.items():
        made = []
        for nugget in steps.nuggets:
            item_id = make_item_id(query_id, nugget.text)
            made.append(RubricItem(item_id, query_id, nugget.text, "nugget", importance=nugget.importance))
            sources[item_id] = nugget.sources
        items[query_id] = tuple(made)
    long = sum(len(item.text.split()) > 12 for made in items.values() for item in made)
    warn("%d nuggets are longer than the 12 words that the prompt asks for; they were kept", long)
    bank = TestBank(items, {query.query_id: query.text for query in queries})
    failures = tuple(failure for steps in made_of.values() for failure in steps.failures)
    return MadeBank(bank, failures, sources)


def label_importance(bank: TestBank, caller: Caller) -> MadeBank:
    """A bank whose items have the importance that the model gives them, ten a call; nothing else changes.

    Args:
        bank: the nuggets; the texts of its queries are shown beside them.
        caller: the model.

    Returns:
        the bank, with the calls that failed: their items have no importance. There are no `sources`.

    Source: Pradeep et al., TREC 2024 RAG, AutoNuggetizer report, section 3 and Figure 4.
    """
    plan = _Plan(MAX_NUGGETS, KEPT, True, "")
    nuggets = {query_id: tuple(_Nugget(item.text, ()) for item in items) for query_id, items in bank.items.items()}
    found = caller.run(
        (query_id, _label(Query(query_id, bank.query_texts[query_id]), made, caller, plan))
        for query_id, made in nuggets.items()
    )
    items = {
        query_id: tuple(
            replace(item, importance=nugget.importance)
            for item, nugget in zip(members, found[query_id].nuggets, strict=True)
        )
        for query_id, members in bank.items.items()
    }
    failures = tuple(failure for query_id in bank.items for failure in found[query_id].failures)
    return MadeBank(TestBank(items, bank.query_texts, bank.facet_texts, further=bank.further), failures)


def trim(nuggets: Sequence[_Nugget], keep: int = KEPT) -> tuple[_Nugget, ...]:
    """The first `keep` nuggets, vital ones first, all others as one class, each in the order of creation.

    Source: Pradeep et al. 2024, section 3; nuggets without importance go with the okay ones, as in the published code.
    """
    return tuple(sorted(nuggets, key=lambda nugget: nugget.importance != "vital")[:keep])


def _check(queries: Sequence[Query], *sizes: int) -> None:
    if not queries:
        raise InputError("there are no queries to make nuggets for")
    if min(sizes) < 1:
        raise InputError("the numbers of nuggets must be at least 1", settings=("max_nuggets", "keep"))


def _windows(count: int) -> list[slice]:
    return [slice(start, min(start + BATCH, count)) for start in range(0, count, BATCH)]


def _make(query: Query, segments: Sequence[SourceSegment], caller: Caller, plan: _Plan) -> _Steps[_Made]:
    """The job of one query: all creation calls one after the other, then all importance calls together."""
    nuggets: tuple[_Nugget, ...] = ()
    failures: list[Failure] = []
    asker = caller.asker(load_prompt(f"nuggets.create{plan.words}"))
    windows = _windows(len(segments))
    for number, window in enumerate(windows, 1):
        shown = segments[window]
        (outcome,) = yield from ask_all(asker, [_creation(asker.prompt, query, shown, nuggets, plan)])
        texts = without_duplicates(outcome.value or ())
        if outcome.value is None or (nuggets and not texts):
            reason = f"{outcome.reason or 'the reply empties the list'}; the list stays as it was"
            failures.append(Failure(query.query_id, f"create {number}/{len(windows)}", reason))
        else:
            nuggets = _updated(nuggets, texts[: plan.max_nuggets], shown)
    if plan.over_generate:
        return _Made(nuggets, tuple(failures))
    labelled = yield from _label(query, nuggets, caller, plan)
    return _Made(trim(labelled.nuggets, plan.keep), (*failures, *labelled.failures))


def _creation(
    prompt: Prompt, query: Query, shown: Sequence[SourceSegment], nuggets: Sequence[_Nugget], plan: _Plan
) -> Ask:
    # One line a segment: a segment cannot pretend to be the next one. Programs show segments as they are.
    texts = [segment.text if plan.words else " ".join(segment.text.split()) for segment in shown]
    context = "\n".join(
        prompt.context_line.replace("{rank}", str(rank)).replace("{segment}", text)
        for rank, text in enumerate(texts, 1)
    )
    messages = prompt.render(
        query=query.text,
        context=context,
        nuggets=list_text((nugget.text for nugget in nuggets), prompt.lists),
        nuggets_length=len(nuggets),
        max_nuggets=plan.max_nuggets,
    )
    return Ask(messages)


def _updated(before: Sequence[_Nugget], texts: Sequence[str], shown: Sequence[SourceSegment]) -> tuple[_Nugget, ...]:
    """The new list; a nugget that was there keeps its first sources, a new or reworded one came from what was shown."""
    known = {normalised(nugget.text): nugget.sources for nugget in before}
    sources = tuple(segment.doc_id for segment in shown)
    return tuple(_Nugget(text, known.get(normalised(text), sources)) for text in texts)


def _label(query: Query, nuggets: Sequence[_Nugget], caller: Caller, plan: _Plan) -> _Steps[_Made]:
    """Asks for the importance of all nuggets, a batch a call, the calls together."""
    asker = caller.asker(load_prompt(f"nuggets.importance{plan.words}"))
    prompt, windows = asker.prompt, _windows(len(nuggets))
    asks = []
    for window in windows:
        texts = [nugget.text for nugget in nuggets[window]]
        messages = prompt.render(query=query.text, nuggets=list_text(texts, prompt.lists), nuggets_length=len(texts))
        asks.append(Ask(messages, labels=len(texts)))
    outcomes = yield from ask_all(asker, asks)
    labelled: list[_Nugget] = []
    failures: list[Failure] = []
    for number, (window, outcome) in enumerate(zip(windows, outcomes, strict=True), 1):
        if outcome.value is None:
            reason = f"{outcome.reason}; its nuggets have no importance"
            failures.append(Failure(query.query_id, f"importance {number}/{len(windows)}", reason))
            labelled += nuggets[window]
        else:
            labelled += [
                nugget._replace(importance="vital" if label == "vital" else "okay")
                for nugget, label in zip(nuggets[window], outcome.value, strict=True)
            ]
    return _Made(tuple(labelled), tuple(failures))
