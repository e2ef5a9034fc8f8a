"""Making test banks and synthetic queries, and their files.

Asking a model questions whose replies are read: retries as further draws, failures as records.

Test banks from queries: a chat model breaks each query (or title and subtopic) into questions or nuggets.

Nuggets from documents (AutoNuggetizer): create over windows of segments, label by importance, trim.

Reference answers to a test bank without a model: each sentence is a nugget.

Synthetic queries: models write questions for long passages, a seeded sample by model is the query set (RAGElo).

Files of the bank makers: queries, passages, bank entries, synthetic queries; and the bank of a prompt's aspects.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import itertools
import os
import random
import re
import unicodedata
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

from msgspec.structs import replace

from rubric_measures.base import __version__
from rubric_measures.base.errors import GradingError, InputError, naming, tell, warn
from rubric_measures.base.files import atomic_writer, peek_head, read_text
from rubric_measures.base.words import sentence_ends
from rubric_measures.corpora.loading import File, Rows, file_beside, grader_of, is_given, named_files, refuse_unused
from rubric_measures.corpora.overwriting import keep_cache, keep_inputs, refuse_table
from rubric_measures.formats.banks import write_bank
from rubric_measures.formats.base import cells_of
from rubric_measures.formats.plain import REQUESTS, passages_of_requests
from rubric_measures.formats.queries import read_queries, read_query_file
from rubric_measures.formats.specs import QUERY_IDS
from rubric_measures.grading.asking import Ask, Asker, Asking, Trial
from rubric_measures.grading.grader import Estimate
from rubric_measures.measures.grade_sets import Grader, GradeSetSelector
from rubric_measures.models.base import Reply, Request, Tally
from rubric_measures.models.running import Job, LocalRunner, RunStats
from rubric_measures.models.settings import Calls, interrupts, note_limit, refuse_plain
from rubric_measures.prompts.library import Prompt, list_text, load_prompt
from rubric_measures.prompts.parsers import Parsed
from rubric_measures.records.models import QueryPassages, load_graded
from rubric_measures.types.entities import ItemKind, RubricItem, TestBank, canonical_json, make_item_id
from rubric_measures.types.scales import Message

if TYPE_CHECKING:
    from rubric_measures.models.base import Backend
    from rubric_measures.models.settings import Progress


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
    """

    runner: LocalRunner
    settings: Asking = Asking()
    stats: RunStats = field(default_factory=RunStats)
    trial: Trial = field(default_factory=Trial)

    @property
    def model(self) -> str:
        """The backend's canonical name."""
        return self.runner.backend.model

    def asker(self, prompt: Prompt) -> Asker:
        """What puts a prompt to the model.

        Raises:
            InputError: a generation option is a setting of the backend.
        """
        asker = Asker(self.runner.backend, prompt, self.settings)
        # A list that was cut is none.
        asker.told = lambda one: self.trial.note(one._replace(value=None) if one.status == "truncated" else one)
        return asker

    def run(self, jobs: Iterable[tuple[K, Job[T]]]) -> dict[K, T]:
        """Runs all jobs; name -> result, in the order in which they were done: look results up by name."""
        return dict(self.runner.run(jobs, self.stats, self.trial.waits))

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

    @property
    def is_final(self) -> bool:
        """Whether a further run would read the same: a reply that refuses, or that leaves no item."""
        return self.reason.startswith(("refused", "the reply empties"))


class MadeBank(NamedTuple):
    """A bank that was made, and what happened on the way.

    Attributes:
        bank: every query is in it, in the order given; one whose calls all failed with an empty list. Nuggets from
            documents have the ids of the segments that were shown when they first appeared, as `info["segments"]`.
        failures: calls that led to nothing; `step` is "query", a facet, "create 2/5" or "importance 1/3". A failed
            creation call left the list as it was, a failed importance call left its nuggets without importance.
        prompts: those that were used, the first one first.
    """

    bank: TestBank
    failures: tuple[Failure, ...]
    prompts: tuple[Prompt, ...]


def ask_all(asker: Asker, asks: Sequence[Ask]) -> _Steps[list[Parsed[Any]]]:
    """A step of a job that asks some questions together; the outcomes are in their order.

    What does not fit the model is not asked. A reply that was cut is none: it may lack an item.
    """
    return [
        Parsed(one.value, one.note)
        if one.status in ("graded", "unparsed")
        else Parsed(None, f"{one.status}: {one.note}")
        for one in (yield from asker.ask_what_fits(asks))
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
    first: dict[str, str] = {}
    for text in texts:
        first.setdefault(normalised(text), text)
    first.pop("", None)
    return tuple(first.values())


class BankQuery(NamedTuple):
    """What one call is about: a query, or one facet (subtopic) of a query."""

    query_id: str
    text: str
    facet_id: str | None = None
    facet_text: str = ""


def query_messages(kind: ItemKind, query: BankQuery, program: str = "") -> tuple[Prompt, tuple[Message, ...]]:
    """The published prompt for a query, `dl`, or for a facet of it, `car`, and what the model is shown.

    `program` takes the words that a program sends (`workbench`) in the place of the paper's.
    """
    style = "dl" if query.facet_id is None else "car"
    prompt = load_prompt(f"bank.{kind}.{style}{program and f'@{program}'}")
    if "query_subtopic" in prompt.fields:
        return prompt, prompt.render(query_title=query.text, query_subtopic=query.facet_text or query.facet_id)
    return prompt, prompt.render(query_text=query.text)


def generate_bank(
    queries: Sequence[BankQuery],
    caller: Caller,
    *,
    kind: ItemKind = "question",
    program: str = "",
) -> MadeBank:
    """Generates a bank: one call a query, duplicates left out, ids by the rule of the workbench.

    Args:
        queries: the queries, or the facets of the queries; one call each.
        caller: the model.
        kind: what to generate.
        program: whose words it is put in; see `query_messages`.

    Returns:
        The bank with the failures beside it. The order of the items is that of the replies; it does not depend on
        which reply came first.

    Source: Dietz, SIGIR 2024, section 3.1 and Table 1; ids: the workbench's bank files.
    """
    asked = [query_messages(kind, query, program) for query in queries]
    outcomes = caller.ask_each(asked)
    items: dict[str, list[RubricItem]] = {query.query_id: [] for query in queries}
    failures: list[Failure] = []
    duplicates = 0
    for query, outcome in zip(queries, outcomes, strict=True):
        texts = outcome.value
        if texts is None:
            failures.append(Failure(query.query_id, query.facet_id or "query", outcome.reason))
            continue
        kept = without_duplicates(text.strip() for text in texts)
        duplicates += len(texts) - len(kept)
        items[query.query_id] += [
            RubricItem(make_item_id(query.query_id, text, query.facet_id), query.query_id, text, kind, query.facet_id)
            for text in kept
        ]
    warn("%d generated %ss left out: the same text was there already", duplicates, kind)
    bank = TestBank(
        {query_id: tuple(members) for query_id, members in items.items()},
        {query.query_id: query.text for query in queries},
        {(query.query_id, query.facet_id): query.facet_text for query in queries if query.facet_id is not None},
    )
    return MadeBank(bank, tuple(failures), tuple({prompt.prompt_class: prompt for prompt, _ in asked}.values()))


def reference_sentences(references: Mapping[str, Sequence[str]], texts: Mapping[str, str]) -> TestBank:
    """The sentences of reference answers as vital nuggets: what the reference says, a good answer has to say.

    Lines of a list are sentences, too, without their bullets. A sentence that comes twice is one nugget.

    Args:
        references: query id -> its reference answer, in one text or several.
        texts: query id -> the query.

    >>> bank = reference_sentences({"q1": ["Air scatters blue light. Eyes see little violet."]}, {})
    >>> [item.text for item in bank]
    ['Air scatters blue light.', 'Eyes see little violet.']
    """
    items: dict[str, tuple[RubricItem, ...]] = {}
    for query_id, parts in references.items():
        made: dict[str, RubricItem] = {}
        for sentence in (one for part in parts for line in part.splitlines() for one in _sentences(line)):
            item_id = make_item_id(query_id, sentence)
            made.setdefault(item_id, RubricItem(item_id, query_id, sentence, "nugget", importance="vital"))
        items[query_id] = tuple(made.values())
    return TestBank(items, {query_id: texts[query_id] for query_id in references if query_id in texts})


def _sentences(text: str) -> list[str]:
    text = text.strip().removeprefix("- ").removeprefix("* ").removeprefix("• ")
    found, start = [], 0
    for stop in sentence_ends(text):
        sentence = " ".join(text[start:stop].split())
        # Marks alone state nothing.
        if any(char.isalnum() for char in sentence):
            found.append(sentence)
        start = stop
    return found


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
    labels = GradeSetSelector(replace(grader or Grader(), kind="direct"), "the passages")
    found: dict[str, list[SourceSegment]] = {}
    unlabelled = 0
    for group in groups:
        segments = found.setdefault(group.query_id, [])
        shown = {segment.text for segment in segments}
        for passage in group.passages:
            if by == "all":
                label: float | None = level
            elif by == "direct":
                direct: Any = labels.choose(passage, None)
                label = None if direct is None else direct.label
            else:
                label = passage.judged(group.query_id)
            unlabelled += label is None
            if label is not None and label >= level and passage.text.strip() and passage.text not in shown:
                shown.add(passage.text)
                segments.append(SourceSegment(passage.doc_id, passage.text))
    labels.note_counts()
    warn("%d passages left out: no %s", unlabelled, "direct grade" if by == "direct" else "judgment")
    return found


BATCH = 10  # segments a creation call, and nuggets an importance call (Pradeep et al. 2024, section 3)
MAX_NUGGETS = 30
KEPT = 20


class SourceSegment(NamedTuple):
    """One segment of a document that was judged related to the query."""

    doc_id: str
    text: str


def nuggetize(
    queries: Sequence[BankQuery],
    segments: Mapping[str, Sequence[SourceSegment]],
    caller: Caller,
    *,
    over_generate: bool = False,
    program: str = "",
) -> MadeBank:
    """Builds each query's nuggets from its related documents.

    Ten segments a call; the list so far goes in, the updated list comes out, cut to 30. Then importance, ten nuggets a
    call, and the trim to 20. Queries go side by side, the calls of one query one after the other, so the same replies
    from the cache give the same bank.

    Args:
        queries: the queries.
        segments: query id -> the segments judged related, in the order in which they are shown.
        caller: the model.
        over_generate: for assessors to edit: all 30 nuggets, no importance, no trim.
        program: `nuggetizer` puts the prompts in that program's words, and keeps all 30; empty has the paper's.

    Source: Pradeep et al., TREC 2024 RAG, AutoNuggetizer report, section 3, Figures 3 and 4.
    """
    steps = ["create"] if over_generate else ["create", "importance"]
    askers = [caller.asker(load_prompt(f"nuggets.{step}{program and f'@{program}'}")) for step in steps]
    jobs = ((query.query_id, _nuggets(query, segments.get(query.query_id, ()), askers, program)) for query in queries)
    found = caller.run(jobs)
    items = {query.query_id: found[query.query_id][0] for query in queries}
    long = sum(len(item.text.split()) > 12 for made in items.values() for item in made)
    warn("%d nuggets are longer than the 12 words that the prompt asks for; they were kept", long)
    bank = TestBank(items, {query.query_id: query.text for query in queries})
    failures = tuple(failure for query_id in items for failure in found[query_id][1])
    return MadeBank(bank, failures, tuple(asker.prompt for asker in askers))


def label_importance(bank: TestBank, caller: Caller) -> MadeBank:
    """A bank whose items have the importance that the model gives them, ten a call; nothing else changes.

    Args:
        bank: the nuggets; the texts of its queries are shown beside them.
        caller: the model.

    Returns:
        the bank, with the calls that failed: their items have no importance.

    Source: Pradeep et al., TREC 2024 RAG, AutoNuggetizer report, section 3 and Figure 4.
    """
    asker = caller.asker(load_prompt("nuggets.importance"))
    found = caller.run(
        (query_id, _label(BankQuery(query_id, bank.query_texts[query_id]), items, asker))
        for query_id, items in bank.items.items()
    )
    items = {query_id: found[query_id][0] for query_id in bank.items}
    failures = tuple(failure for query_id in items for failure in found[query_id][1])
    return MadeBank(replace(bank, items=items, edited={}), failures, (asker.prompt,))


# What the steps of one query lead to: its items, and what failed.
_Listed = tuple[tuple[RubricItem, ...], tuple[Failure, ...]]


def _batches(some: Sequence[T]) -> list[Sequence[T]]:
    return [some[start : start + BATCH] for start in range(0, len(some), BATCH)]


def _nuggets(
    query: BankQuery, segments: Sequence[SourceSegment], askers: Sequence[Asker], program: str
) -> _Steps[_Listed]:
    """The job of one query: all creation calls one after the other, then all importance calls together."""
    if not segments:
        return (), (Failure(query.query_id, "documents", "none is related to it"),)
    asker, *labelling = askers
    nuggets: tuple[RubricItem, ...] = ()
    failures: tuple[Failure, ...] = ()
    windows = _batches(segments)
    for number, shown in enumerate(windows, 1):
        (outcome,) = yield from ask_all(asker, [_creation(asker.prompt, query, shown, nuggets, program)])
        texts = without_duplicates(outcome.value or ())
        if outcome.value is None or (nuggets and not texts):
            reason = f"{outcome.reason or 'the reply empties the list'}; the list stays as it was"
            failures += (Failure(query.query_id, f"create {number}/{len(windows)}", reason),)
            continue
        # One that was there keeps its first sources; a new or reworded one came from what was shown.
        known = {normalised(item.text): item.info for item in nuggets}
        info = {"segments": [segment.doc_id for segment in shown]}
        name = query.query_id
        made = [(text, known.get(normalised(text), info)) for text in texts[:MAX_NUGGETS]]
        nuggets = tuple(RubricItem(make_item_id(name, text), name, text, "nugget", info=said) for text, said in made)
    if not labelling:
        return nuggets, failures
    labelled, more = yield from _label(query, nuggets, labelling[0])
    return trim(labelled, MAX_NUGGETS if program else KEPT), failures + more


def trim(nuggets: Sequence[RubricItem], keep: int) -> tuple[RubricItem, ...]:
    """The first `keep` nuggets, vital ones first, all others as one class, each in the order of creation.

    Source: Pradeep et al. 2024, section 3; nuggets without importance go with the okay ones, as in the published code.
    """
    return tuple(sorted(nuggets, key=lambda nugget: nugget.importance != "vital")[:keep])


def _creation(
    prompt: Prompt, query: BankQuery, shown: Sequence[SourceSegment], nuggets: Sequence[RubricItem], program: str
) -> Ask:
    # One line a segment: a segment cannot pretend to be the next one. Programs show segments as they are.
    texts = [segment.text if program else " ".join(segment.text.split()) for segment in shown]
    context = "\n".join(
        prompt.context_line.replace("{rank}", str(rank)).replace("{segment}", text)
        for rank, text in enumerate(texts, 1)
    )
    messages = prompt.render(
        query=query.text,
        context=context,
        nuggets=list_text((nugget.text for nugget in nuggets), prompt.lists),
        nuggets_length=len(nuggets),
        max_nuggets=MAX_NUGGETS,
    )
    return Ask(messages)


def _label(query: BankQuery, nuggets: Sequence[RubricItem], asker: Asker) -> _Steps[_Listed]:
    """Asks for the importance of all nuggets, a batch a call, the calls together."""
    prompt, batches = asker.prompt, _batches(nuggets)
    asks = []
    for batch in batches:
        listed = list_text((nugget.text for nugget in batch), prompt.lists)
        messages = prompt.render(query=query.text, nuggets=listed, nuggets_length=len(batch))
        asks.append(Ask(messages, labels=len(batch)))
    outcomes = yield from ask_all(asker, asks)
    labelled: list[RubricItem] = []
    failures: tuple[Failure, ...] = ()
    for number, (batch, outcome) in enumerate(zip(batches, outcomes, strict=True), 1):
        if outcome.value is None:
            reason = f"{outcome.reason}; its nuggets have no importance"
            failures += (Failure(query.query_id, f"importance {number}/{len(batches)}", reason),)
        labels = outcome.value or [None] * len(batch)
        labelled += [
            replace(nugget, importance=label and ("vital" if label == "vital" else "okay"))
            for nugget, label in zip(batch, labels, strict=True)
        ]
    return tuple(labelled), failures


MAX_QUESTIONS = 10
PASSAGE_TOKENS = 2_000


class LongPassage(NamedTuple):
    """Consecutive passages of one document, joined.

    Attributes:
        document_id: the document.
        doc_ids: its passages that are inside, in order.
        text: their texts, one paragraph each.
    """

    document_id: str
    doc_ids: tuple[str, ...]
    text: str


class SyntheticQuery(NamedTuple):
    """A query that a model wrote, and where it comes from."""

    query_id: str
    text: str
    document_id: str
    doc_ids: tuple[str, ...]
    model: str


def document_of(doc_id: str) -> str:
    """The document of a passage id: what stands before the first "#", or the whole id.

    >>> document_of("msmarco_v2.1_doc_00_0#3_41"), document_of("p7")
    ('msmarco_v2.1_doc_00_0', 'p7')
    """
    return doc_id.partition("#")[0] or doc_id


def long_passages(passages: Iterable[SourceSegment], count_tokens: Callable[[str], int]) -> Iterator[LongPassage]:
    """Joins consecutive passages of a document up to about 2,000 tokens.

    A passage is never split: one that is longer by itself stands alone. Passages of a document that are not next to
    each other in the input are not joined.

    Args:
        passages: in collection order.
        count_tokens: the length of a text (a backend's own count, or an estimate).
    """
    told = (passage for passage in passages if passage.text.strip())
    for document, several in itertools.groupby(told, key=lambda passage: document_of(passage.doc_id)):
        members: list[SourceSegment] = []
        length = 0
        for passage in several:
            tokens = count_tokens(passage.text)
            if members and length + tokens > PASSAGE_TOKENS:
                yield _joined(document, members)
                members, length = [], 0
            members.append(passage)
            length += tokens
        yield _joined(document, members)


def _joined(document: str, members: Sequence[SourceSegment]) -> LongPassage:
    ids, texts = zip(*members, strict=True)
    return LongPassage(document, ids, "\n".join(map(str.strip, texts)))


def generate_queries(
    passages: Sequence[LongPassage], callers: Sequence[Caller], *, examples: Sequence[str]
) -> tuple[tuple[SyntheticQuery, ...], tuple[Failure, ...]]:
    """Has every model write up to ten questions for every passage; equal questions are kept once.

    A question that repeats an example is left out, too: it is not about the passage.

    Args:
        passages: the texts to ask about, see `long_passages`.
        callers: the models; of equal questions, the one of the earlier model and passage is kept.
        examples: real queries, shown to every model.

    Returns:
        The queries by model in the order given, then by passage, then in the order of the reply; and calls that led to
        nothing: their `query_id` is the document, `step` the model and the first passage.

    Raises:
        InputError: there are no passages or examples.

    Source: Rackauckas, Camara & Zavrel, LLM4Eval 2024, section 3; the prompt's wording is ours.
    """
    if not passages:
        raise InputError("there are no passages to write queries for", settings=("passages",))
    if not any(example.strip() for example in examples):
        raise InputError("there are no real queries to show as examples", settings=("examples",))
    prompt = load_prompt("queries.from_passage")
    shown = "\n".join(f"- {' '.join(example.split())}" for example in examples)
    seen = {normalised(example) for example in examples}
    queries: list[SyntheticQuery] = []
    failures: list[Failure] = []
    left_out = 0
    for caller in callers:
        asked = [
            (prompt, prompt.render(passage=passage.text, examples=shown, max_questions=MAX_QUESTIONS))
            for passage in passages
        ]
        for passage, outcome in zip(passages, caller.ask_each(asked), strict=True):
            if outcome.value is None:
                step = f"{caller.model}, passage {passage.doc_ids[0]}"
                failures.append(Failure(passage.document_id, step, outcome.reason))
            for number, text in enumerate(outcome.value or ()):
                key = normalised(text)
                if number >= MAX_QUESTIONS or key in seen:
                    left_out += 1
                    continue
                seen.add(key)
                # Of the text alone, so that adding a model or a passage renames nothing.
                digest = hashlib.md5(text.strip().encode("utf-8"), usedforsecurity=False).hexdigest()
                ids = (passage.document_id, passage.doc_ids)
                queries.append(SyntheticQuery(f"syn-{digest[:16]}", text, *ids, caller.model))
    text = "%d questions left out: the same text was there already, or their reply had more than %d"
    warn(text, left_out, MAX_QUESTIONS)
    return tuple(queries), tuple(failures)


def sample_by_model(
    queries: Sequence[SyntheticQuery], quotas: Mapping[str, int], *, seed: int = 0
) -> tuple[tuple[SyntheticQuery, ...], dict[str, int]]:
    """A seeded sample without replacement of `quotas[model]` queries of each model; models without a quota give none.

    The sample depends on the set of a model's queries and the seed, not on their order, nor on the other models.

    Returns:
        The sample in the order of `queries`, and model -> how many are missing, where a model wrote too few.
    """
    chosen: set[str] = set()
    missing: dict[str, int] = {}
    for model, quota in sorted(quotas.items()):
        ids = sorted(query.query_id for query in queries if query.model == model)
        # A generator of its own for each model: a string seeds it the same whatever the hash seed.
        chosen.update(random.Random(f"{seed}/{model}").sample(ids, min(quota, len(ids))))
        if quota > len(ids):
            missing[model] = quota - len(ids)
    return tuple(query for query in queries if query.query_id in chosen), missing


def read_bank_queries(source: Any) -> list[BankQuery]:
    """The queries of a file or table (see `read_query_file`), or of an ir_datasets id where there is no such file.

    A query with facets comes once a facet.

    Args:
        source: what holds them; also query -> text.

    Raises:
        InputError: no such file and no such id, an id without queries, or a query without text.
        FormatError: the file is no query file.
    """
    facets: Mapping[str, Mapping[str, str]] = {}
    if isinstance(source, str) and source != "-" and not Path(source).exists():
        texts: Mapping[str, str] = _dataset(source, "queries").query_texts
    else:
        found = read_query_file(source)
        texts, facets = found.texts, found.facets
    if blank := [query_id for query_id, text in texts.items() if not text.strip()]:
        raise InputError(f"query {blank[0]!r} has no text; there is nothing to ask about")
    return [
        BankQuery(query_id, texts[query_id], *facet)
        for query_id in texts
        for facet in facets.get(query_id, {}).items() or [()]
    ]


def read_passages(name: str) -> Iterator[SourceSegment]:
    """The passages of a collection, in its order.

    Raises:
        InputError: it is no collection (`load_collection`), or has no documents.
        FormatError: naming file and line: an id or a text is missing.
    """
    for document in _dataset(name, "docs").docs_iter():
        yield SourceSegment(document.doc_id, document.default_text())


def _dataset(name: str, what: str) -> Any:
    from rubric_measures.corpora.collections import load_collection

    found = load_collection(name)
    if not getattr(found, f"has_{what}")():
        raise InputError(f"{name} has no {'documents' if what == 'docs' else what}")
    return found


def aspect_bank(query_texts: Mapping[str, str], prompt: str = "ragelo.answer_pointwise") -> TestBank:
    """A bank whose items are the aspects that a prompt grades (`relevance`, `accuracy`, …), for each query.

    So each aspect has a grade of its own, and leaderboards, agreement and reports work as for any other bank.

    Args:
        query_texts: query_id -> text.
        prompt: the prompt's name or .toml file.

    Raises:
        InputError: the prompt does not grade aspects.

    >>> [item.text for item in aspect_bank({"q1": "What is ice?"})]
    ['relevance', 'accuracy', 'completeness', 'precision']
    """
    loaded = load_prompt(prompt)
    if loaded.parser != "aspects":
        raise InputError(f"prompt {prompt} does not grade aspects; name a test bank")
    items = {
        query_id: tuple(RubricItem(make_item_id(query_id, label), query_id, label) for label in loaded.labels)
        for query_id in query_texts
    }
    return TestBank(items, dict(query_texts))


_File = str | os.PathLike[str]
# Failures that are listed one by one.
_SHOWN = 20
_LONGEST = 2048  # tokens of a reply
# What is made -> the arguments that are about it, and the program whose words there are for its prompts.
_USED_BY: Mapping[str, Sequence[str]] = {
    "queries": ("passages", "examples", "quota"),
    "nuggets of documents": ("queries", "from_documents", "by", "min_judgment", "grader", "over_generate"),
    "a bank": ("queries",),
}
_WORDS = {"queries": "", "nuggets of documents": "nuggetizer", "a bank": "workbench"}


@dataclass(frozen=True, repr=False)
class Generated:
    """What was made.

    Attributes:
        bank: the test bank; without items where queries were asked for, or in a dry run.
        queries: the synthetic queries.
        failures: calls that led to nothing.
        missing: model -> queries that its quota asked for and that it did not write.
        plan: of a dry run, what each model would be asked: a row a model, called after it.
    """

    bank: TestBank
    queries: tuple[SyntheticQuery, ...] = ()
    failures: tuple[Failure, ...] = ()
    missing: Mapping[str, int] = field(default_factory=dict)
    plan: tuple[Estimate, ...] = ()

    @property
    def is_complete(self) -> bool:
        """Whether all that was asked for is there."""
        return not self.failures and not self.missing


def generate(
    queries: File | Mapping[str, str] | Rows | None = None,
    *,
    model: str | Backend | Sequence[str | Backend],
    target: Literal["questions", "nuggets", "queries"] = "questions",
    output: _File | None = None,
    program: Literal["", "workbench", "nuggetizer"] = "",
    from_documents: File | Sequence[QueryPassages] | None = None,
    by: Literal["judgments", "direct", "all"] = "judgments",
    min_judgment: int = 1,
    grader: str | Grader | None = None,
    over_generate: bool = False,
    passages: File | Rows | None = None,
    examples: File | Rows | Sequence[str] | None = None,
    quota: Mapping[str, int] | None = None,
    asking: Asking = Asking(),
    calls: Calls = Calls(),
    dry_run: bool = False,
    progress: Progress = False,
) -> Generated:
    """Lets a model write a test bank for queries, or synthetic queries for passages.

    A call that led to nothing is in `failures` of the result; all else is made. With a cache, calling this function
    again asks only what is missing.

    Args:
        queries: query -> text, a file (JSON, JSON lines, TSV), a frame, or an ir_datasets id.
        model: `hf:NAME`, `openai:NAME`, `litellm:PROVIDER/NAME` or `scripted:FILE`; several for synthetic queries. In
            Python also a backend of your own.
        target: what to make.
        output: the file to write; the cache lies beside it, if nothing else is said.
        program: put the prompts in the words that this program sends (`workbench` without documents, `nuggetizer` with
            them), not in those of the papers. `nuggetizer` keeps all 30 nuggets, where its paper keeps 20.
        from_documents: nuggets from these passages: records, or nuggetizer's requests.
        by: what makes a passage related.
        min_judgment: the lowest label that is related.
        grader: of direct labels: whose count; a name, or `model=…,prompt=…`.
        over_generate: keep all nuggets, without importance, for assessors to edit.
        passages: synthetic queries: the collection (records, JSON lines, TSV, or an ir_datasets id).
        examples: real queries: texts, or a file (one a line, or a query file).
        quota: model -> how many of its queries to keep; all of them by default.
        asking: temperature, longest reply (2048 tokens by default), further options and retries.
        calls: where models are called, what is kept, and what it may cost. The cache is `OUTPUT.cache.sqlite` by
            default; without an output replies are not kept.
        dry_run: make no call and write nothing, but say what would be asked. In Python `plan` of the result says it.
        progress: True shows a bar; a function is told the counts (`RunStats`).

    Raises:
        InputError: a setting is missing, wrong or without effect, or an input cannot be read.
        GradingError: the model cannot be used, or no call led to anything.
    """
    given = dict(locals())
    several: Any = model if isinstance(model, list | tuple) else [model]
    for one in several:
        refuse_plain(one, asking, calls)
    models: dict[str, str | Backend] = {one if isinstance(one, str) else one.model: one for one in several}
    specs = list(models)
    path = file_beside(output, calls.cache, ".cache.sqlite")
    calls = dataclasses.replace(calls, cache=path)
    made_of = "queries" if target == "queries" else "nuggets of documents" if is_given(from_documents) else "a bank"
    _check(made_of, specs, given)
    if calls.max_calls == 0 and path is None:
        text = "a run that makes no call needs a cache; name it, or the output beside which it lies"
        raise InputError(text, settings=("max_calls", "cache"))
    read = [queries, from_documents, passages, examples, calls.prices]
    read += [spec.removeprefix("scripted:") for spec in specs if spec.startswith("scripted:")]
    keep_inputs(output, *read)
    refuse_table(output)
    keep_cache(path, output, *read)
    how = asking.only("temperature", "max_tokens", "option", "retries")
    how = dataclasses.replace(how, max_tokens=how.max_tokens or _LONGEST)
    with contextlib.ExitStack() as stack, _callers(models, calls, how, dry_run, progress) as callers:
        queries, passages, examples, from_documents = (
            named_files(one, stack) for one in (queries, passages, examples, from_documents)
        )
        first = callers[0]
        if made_of == "queries":
            shown = long_passages(read_passages(str(passages)), first.runner.backend.count_tokens)
            # A quota names a model as it was named; its queries bear the canonical name.
            names = {spec: caller.model for spec, caller in zip(specs, callers, strict=True)}
            if unknown := [spec for spec in quota or {} if spec not in names]:
                raise InputError(f"a quota of {unknown[0]}: expected one of {', '.join(names)}", settings=("quota",))
            quotas = {names[spec]: count for spec, count in (quota or {}).items()}
            written, failed = generate_queries(list(shown), callers, examples=_examples(examples))
        else:
            with naming(queries):
                listed = read_bank_queries(queries)
            if made_of == "a bank":
                kind: Literal["nugget", "question"] = "nugget" if target == "nuggets" else "question"
                found = generate_bank(listed, first, kind=kind, program=program)
            else:
                texts = {query.query_id: query.text for query in listed}
                related = _related(from_documents, texts, by, min_judgment, grader_of(grader))
                every = [BankQuery(*one) for one in texts.items()]
                found = nuggetize(every, related, first, over_generate=over_generate, program=program)
                if dry_run and not over_generate:
                    text = "importance takes up to %d calls more, as many nuggets as are created"
                    tell(text, -(-MAX_NUGGETS // BATCH) * sum(bool(related.get(one)) for one in texts))
        if dry_run:
            return Generated(TestBank({}), plan=tuple(Estimate.of(one.model, one.runner, one.stats) for one in callers))
        made = _drawn(written, failed, quotas, output) if made_of == "queries" else _finished(first, found, output)
        for caller in callers:
            tell("%s: %s", caller.model, caller.stats)
            note_limit(caller.stats, is_kept=path is not None)
        return made


def _check(made_of: str, specs: Sequence[str], given: Mapping[str, Any]) -> None:
    """Refuses what is missing and what would be ignored in silence."""
    if made_of == "queries" and not (is_given(given["passages"]) and is_given(given["examples"])):
        raise InputError("synthetic queries need passages and examples", settings=("passages", "examples"))
    if made_of != "queries" and not is_given(given["queries"]):
        raise InputError("name the queries: a file or an ir_datasets id")
    if made_of != "queries" and len(specs) > 1:
        raise InputError("only synthetic queries take several models; name one", settings=("model", "target"))
    if made_of == "nuggets of documents" and given["target"] != "nuggets":
        raise InputError("only nuggets are made from documents", settings=("from_documents", "target"))
    if given["program"] not in ("", words := _WORDS[made_of]):
        known = f"the words of {words}" if words else "no program's words"
        raise InputError(f"{given['program']}: there are {known} for these prompts", settings=("program",))
    others = [name for names in _USED_BY.values() for name in names if name not in _USED_BY[made_of]]
    refuse_unused(generate, given, others)
    if wrong := [count for count in (given["quota"] or {}).values() if type(count) is not int or count < 0]:
        raise InputError(f"a quota is a number of queries, not {wrong[0]!r}", settings=("quota",))


@contextlib.contextmanager
def _callers(
    models: Mapping[str, str | Backend], calls: Calls, how: Asking, dry_run: bool, progress: Progress
) -> Iterator[list[Caller]]:
    """What puts questions to the models, behind their cache; of a dry run, what counts them."""
    if dry_run:
        calls, progress = dataclasses.replace(calls, max_calls=0), False
    with contextlib.ExitStack() as stack:
        stop = stack.enter_context(interrupts())
        found = []
        for spec, one in models.items():
            stats = RunStats()
            asking = calls.asking(calls.to(one), progress, None, "calls", spec, stop, stats)
            runner = dataclasses.replace(stack.enter_context(asking), tally=Tally() if dry_run else None)
            found.append(caller := Caller(runner, how, stats))
            if not dry_run:
                stack.callback(lambda cache, trial: cache.forget(trial.unread), runner.cache, caller.trial)
        yield found


def _say_failures(failures: Sequence[Failure]) -> None:
    """Lists what led to nothing, and what helps."""
    for failure in failures[:_SHOWN]:
        warn("query %s, %s: %s", *failure)
    warn("and %d more calls that led to nothing", len(failures[_SHOWN:]))
    if not all(failure.is_final for failure in failures):
        text = "run again to ask anew for what failed or cannot be read; replies that were cut need a higher max_tokens"
        tell(text, settings=("max_tokens",))


def _related(
    source: Any, texts: Mapping[str, str], by: RelatedBy, level: int, grader: Grader | None
) -> Mapping[str, Sequence[SourceSegment]]:
    """Query -> the segments that are related to it, of graded records or of nuggetizer's requests."""
    name = "the passages"
    if isinstance(source, str | os.PathLike):
        name = os.fspath(source)
        if name == "-" or peek_head(name).lstrip()[:1] != b"{":
            source = load_graded(name)
        elif by == "all":
            source = passages_of_requests(REQUESTS.read(name), {text: query_id for query_id, text in texts.items()})
        else:
            raise InputError(f"{name}: requests hold no labels of their documents; take all", settings=("by",))
    groups = [group for group in source if group.query_id in texts]
    segments = related_segments(groups, by=by, level=level, grader=grader)
    if not any(segments.values()):
        raise InputError(f"{name}: no query has a passage of level {level} or more")
    return segments


def _finished(caller: Caller, found: MadeBank, output: _File | None) -> Generated:
    """Writes what there is, where it shall be written, and says what there is not."""
    bank, failures = found.bank, found.failures
    _say_failures(failures)
    if not len(bank):
        raise GradingError(f"{caller.model}: no call led to an item; nothing was written")
    if output is not None:
        info = {
            "made_by": f"rubric_measures {__version__}",
            "model": caller.model,
            "options": dict(caller.asker(found.prompts[0]).request(Ask(()), "").options),
            "prompts": {prompt.prompt_class: prompt.hash for prompt in found.prompts},
        }
        # A query without items in a bank would say that nothing is to be covered, where nothing is known.
        items = {query_id: found for query_id, found in bank.items.items() if found}
        further = {query_id: {**bank.further.get(query_id, {}), "info": info} for query_id in items}
        write_bank(output, replace(bank, items=items, edited={}, further=further))
    return Generated(bank, failures=failures)


def _drawn(
    written: Sequence[SyntheticQuery], failures: Sequence[Failure], quotas: Mapping[str, int], output: _File | None
) -> Generated:
    """Draws as many as were asked for, writes them, and says what there is not."""
    _say_failures(failures)
    # A model of which every call failed takes nothing from the others.
    queries, missing = sample_by_model(written, quotas) if quotas else (written, {})
    for model, count in missing.items():
        warn("%s: %d queries fewer than its quota; give it more passages", model, count)
    if not queries:
        raise GradingError("no call led to a query; nothing was written")
    if output is not None:
        # A query file whose lines also keep document, passages and model.
        with atomic_writer(output) as stream:
            stream.writelines(canonical_json(query._asdict()) + "\n" for query in queries)
    return Generated(TestBank({}), tuple(queries), tuple(failures), missing)


def _examples(source: Any) -> list[str]:
    """Real questions: texts, those of a query file, or the lines of a file of plain text."""

    if not isinstance(source, str | os.PathLike):
        return list(source)
    text = read_text(source)
    if text.lstrip()[:1] in ("{", "[", "<") or "\t" in text or {*cells_of(text.partition("\n")[0])[:1]} & {*QUERY_IDS}:
        return list(read_queries(source).values())
    return [line.strip() for line in text.split("\n") if line.strip()]
