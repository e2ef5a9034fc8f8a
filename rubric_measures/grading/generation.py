"""Making test banks and synthetic queries, and their files.

Test banks from queries: a chat model breaks each query (or title and subtopic) into questions or nuggets.

Reference answers to a test bank without a model: each sentence is a nugget.

Synthetic queries: models write questions for long passages, a seeded sample by model is the query set (RAGElo).

Files of the bank makers: queries, passages, bank entries, synthetic queries; and the bank of a prompt's aspects.
"""

from __future__ import annotations

import hashlib
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from msgspec.structs import replace

from rubric_measures.base.errors import InputError, UnknownNameError, warn
from rubric_measures.base.files import atomic_writer, begins_records, check_readable_twice, path_name
from rubric_measures.base.words import sentence_ends
from rubric_measures.formats.banks import BankEntry, bank_entries
from rubric_measures.formats.documents import iter_documents
from rubric_measures.formats.queries import read_query_file
from rubric_measures.grading.nuggetization import (
    Caller,
    Failure,
    MadeBank,
    SourceSegment,
    normalised,
    without_duplicates,
)
from rubric_measures.prompts.library import Prompt, load_prompt
from rubric_measures.records.models import load_graded
from rubric_measures.types.entities import ItemKind, RubricItem, TestBank, canonical_json, make_item_id
from rubric_measures.types.scales import Message


class BankQuery(NamedTuple):
    """What one call is about: a query, or one facet (subtopic) of a query."""

    query_id: str
    text: str
    facet_id: str | None = None
    facet_text: str = ""


def generation_prompt(kind: ItemKind, query: BankQuery, program: str = "") -> Prompt:
    """The published prompt for a query, `dl`, or for a facet of it, `car`.

    `program` takes the words that a program sends (`workbench`) in the place of the paper's.
    """
    style = "dl" if query.facet_id is None else "car"
    return load_prompt(f"bank.{kind}.{style}{program and f'@{program}'}")


def query_messages(kind: ItemKind, query: BankQuery, program: str = "") -> tuple[Prompt, tuple[Message, ...]]:
    """The prompt for a query, and what the model is shown."""
    prompt = generation_prompt(kind, query, program)
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
        program: whose words it is put in; see `generation_prompt`.

    Returns:
        The bank with the failures beside it. The order of the items is that of the replies; it does not depend on
        which reply came first.

    Raises:
        InputError: there are no queries, one comes twice or has no text, or a prompt does not fit.

    Source: Dietz, SIGIR 2024, section 3.1 and Table 1; ids: the workbench's bank files.
    """
    check_queries(queries)
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
    return MadeBank(bank, tuple(failures))


def check_queries(queries: Iterable[BankQuery]) -> None:
    """Refuses what no bank can be made for.

    Raises:
        InputError: a query comes twice, has no text, or there are none.
    """
    seen: set[tuple[str, str | None]] = set()
    for query in queries:
        key = (query.query_id, query.facet_id)
        where = f"query {query.query_id!r}" + (f", facet {query.facet_id!r}" if query.facet_id is not None else "")
        if key in seen:
            raise InputError(f"{where} comes twice; leave one out")
        seen.add(key)
        if not query.text.strip():
            raise InputError(f"{where} has no text; there is nothing to ask about")
    if not seen:
        raise InputError("there are no queries to generate a test bank for")


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


class SyntheticQueries(NamedTuple):
    """The queries of all models and what happened on the way.

    Attributes:
        queries: by model in the order given, then by passage, then in the order of the reply.
        failures: calls that led to nothing; `query_id` is the document, `step` the model and the first passage.
    """

    queries: tuple[SyntheticQuery, ...]
    failures: tuple[Failure, ...]


def document_of(doc_id: str) -> str:
    """The document of a passage id: what stands before the first "#", or the whole id.

    >>> document_of("msmarco_v2.1_doc_00_0#3_41"), document_of("p7")
    ('msmarco_v2.1_doc_00_0', 'p7')
    """
    return doc_id.partition("#")[0] or doc_id


def long_passages(
    passages: Iterable[SourceSegment],
    count_tokens: Callable[[str], int],
    *,
    max_tokens: int = PASSAGE_TOKENS,
) -> Iterator[LongPassage]:
    """Joins consecutive passages of a document up to about `max_tokens` tokens.

    A passage is never split: one that is longer by itself stands alone. Passages of a document that are not next to
    each other in the input are not joined.

    Args:
        passages: in collection order.
        count_tokens: the length of a text (a backend's own count, or an estimate).
        max_tokens: the longest join.

    Raises:
        InputError: `max_tokens` is below one.
    """
    if max_tokens < 1:
        raise InputError(f"passages of {max_tokens} tokens: at least 1 is needed")
    members: list[SourceSegment] = []
    length = 0
    for passage in passages:
        if not passage.text.strip():
            continue
        tokens = count_tokens(passage.text)
        if members and (document_of(members[0].doc_id) != document_of(passage.doc_id) or length + tokens > max_tokens):
            yield _joined(members)
            members, length = [], 0
        members.append(passage)
        length += tokens
    if members:
        yield _joined(members)


def _joined(members: Sequence[SourceSegment]) -> LongPassage:
    return LongPassage(
        document_of(members[0].doc_id),
        tuple(member.doc_id for member in members),
        "\n".join(member.text.strip() for member in members),
    )


def sample_passages(passages: Iterable[LongPassage], count: int, *, seed: int = 0) -> list[LongPassage]:
    """A seeded sample without replacement of a stream, in its order; memory is that of the sample.

    Source: reservoir sampling, algorithm R (Vitter 1985, section 2).
    """
    chooser = random.Random(f"passages/{seed}")
    kept: list[tuple[int, LongPassage]] = []
    for place, passage in enumerate(passages):
        if len(kept) < count:
            kept.append((place, passage))
        elif (slot := chooser.randrange(place + 1)) < count:
            kept[slot] = (place, passage)
    return [passage for _, passage in sorted(kept, key=lambda pair: pair[0])]


def generate_queries(
    passages: Sequence[LongPassage],
    callers: Sequence[Caller],
    *,
    examples: Sequence[str],
    max_questions: int = MAX_QUESTIONS,
) -> SyntheticQueries:
    """Has every model write up to `max_questions` questions for every passage; equal questions are kept once.

    A question that repeats an example is left out, too: it is not about the passage.

    Args:
        passages: the texts to ask about, see `long_passages`.
        callers: the models; of equal questions, the one of the earlier model and passage is kept.
        examples: real questions, shown to every model.
        max_questions: the most questions of one reply; further ones are left out and counted as a note.

    Raises:
        InputError: there are no passages, models or examples, or a model is named twice.

    Source: Rackauckas, Camara & Zavrel, LLM4Eval 2024, section 3; the prompt's wording is ours.
    """
    _check(passages, callers, examples, max_questions)
    prompt = load_prompt("queries.from_passage")
    shown = "\n".join(f"- {' '.join(example.split())}" for example in examples)
    given = {normalised(example) for example in examples}
    seen: set[str] = set()
    queries: list[SyntheticQuery] = []
    failures: list[Failure] = []
    duplicates = surplus = copied = 0
    for caller in callers:
        asked = [
            (prompt, prompt.render(passage=passage.text, examples=shown, max_questions=max_questions))
            for passage in passages
        ]
        for passage, outcome in zip(passages, caller.ask_each(asked), strict=True):
            if outcome.value is None:
                step = f"{caller.model}, passage {passage.doc_ids[0]}"
                failures.append(Failure(passage.document_id, step, outcome.reason))
                continue
            surplus += max(0, len(outcome.value) - max_questions)
            for text in outcome.value[:max_questions]:
                if (key := normalised(text)) in given:
                    copied += 1
                    continue
                if key in seen:
                    duplicates += 1
                    continue
                seen.add(key)
                # Of the text alone, so that adding a model or a passage renames nothing.
                digest = hashlib.md5(text.strip().encode("utf-8"), usedforsecurity=False).hexdigest()
                ids = (passage.document_id, passage.doc_ids)
                queries.append(SyntheticQuery(f"syn-{digest[:16]}", text, *ids, caller.model))
    warn("%d questions left out: more than %d in one reply", surplus, max_questions)
    warn("%d questions left out: they repeat an example", copied)
    warn("%d questions left out: the same text was there already", duplicates)
    return SyntheticQueries(tuple(queries), tuple(failures))


def _check(
    passages: Sequence[LongPassage], callers: Sequence[Caller], examples: Sequence[str], max_questions: int
) -> None:
    if not passages:
        raise InputError("there are no passages to write queries for", settings=("passages",))
    if not any(example.strip() for example in examples):
        raise InputError("there are no real questions to show as examples", settings=("examples",))
    if max_questions < 1:
        raise InputError(f"{max_questions} questions a passage: at least 1 is needed")
    models = [caller.model for caller in callers]
    if not models or len(set(models)) < len(models):
        raise InputError(f"name every model once; given: {', '.join(models) or 'none'}")


def sample_by_model(
    queries: Sequence[SyntheticQuery], quotas: Mapping[str, int], *, seed: int = 0
) -> tuple[tuple[SyntheticQuery, ...], dict[str, int]]:
    """A seeded sample without replacement of `quotas[model]` queries of each model; models without a quota give none.

    The sample depends on the set of a model's queries and the seed, not on their order, nor on the other models.

    Returns:
        The sample in the order of `queries`, and model -> how many are missing, where a model wrote too few.

    Raises:
        UnknownNameError: a quota names a model that wrote none of the queries.
        InputError: a quota is negative.
    """
    written = Counter(query.model for query in queries)
    chosen: set[str] = set()
    missing: dict[str, int] = {}
    for model, quota in sorted(quotas.items()):
        if model not in written:
            raise UnknownNameError("model", model, written, hint="(no query was written by it)")
        if quota < 0:
            raise InputError(f"quota {quota} of {model}: it cannot be negative")
        ids = sorted(query.query_id for query in queries if query.model == model)
        # A generator of its own for each model: a string seeds it the same whatever the hash seed.
        chosen.update(random.Random(f"{seed}/{model}").sample(ids, min(quota, len(ids))))
        if quota > len(ids):
            missing[model] = quota - len(ids)
    return tuple(query for query in queries if query.query_id in chosen), missing


def read_bank_queries(name: str) -> list[BankQuery]:
    """The queries of a query file (JSON, JSON lines, TSV), or of an ir_datasets id where there is no such file.

    A query with facets comes once a facet.

    Raises:
        InputError: no such file and no such id, or an id without queries.
        FormatError: the file is no query file.
    """
    if name != "-" and not Path(name).exists():
        dataset = _dataset(name)
        if not dataset.has_queries():
            raise InputError(f"{name}: this ir_datasets id has no queries")
        return [BankQuery(query.query_id, query.default_text()) for query in dataset.queries_iter()]
    found = read_query_file(name)
    facets: dict[str, list[tuple[str, str]]] = {}
    for (query_id, facet_id), text in found.facets.items():
        facets.setdefault(query_id, []).append((facet_id, text))
    queries: list[BankQuery] = []
    for query_id, text in found.texts.items():
        queries += [BankQuery(query_id, text, *facet) for facet in facets.get(query_id, [])] or [
            BankQuery(query_id, text)
        ]
    return queries


def read_passages(name: str) -> Iterator[SourceSegment]:
    """The passages of a collection, in its order.

    The collection is a file of graded passage records or of documents (see `iter_documents`), or an ir_datasets id
    where there is no such file.

    Raises:
        InputError: no such file and no such id, or an id without documents.
        FormatError: naming file and line: an id or a text is missing.
    """
    check_readable_twice(name)
    if name != "-" and not Path(name).exists():
        dataset = _dataset(name)
        if not dataset.has_docs():
            raise InputError(f"{name}: this ir_datasets id has no documents")
        for document in dataset.docs_iter():
            yield SourceSegment(document.doc_id, document.default_text())
        return
    if begins_records(name):
        if name == "-":
            raise InputError("graded passage records cannot be read from a stream here; name the file")
        yield from _of_records(name)
        return
    for _, document in iter_documents(name):
        yield SourceSegment(document.doc_id, document.text)


def _of_records(name: str) -> Iterator[SourceSegment]:
    seen: set[str] = set()
    for group in load_graded(name):
        for passage in group.passages:
            if passage.doc_id not in seen:  # a passage that was retrieved for two queries is one passage
                seen.add(passage.doc_id)
                yield SourceSegment(passage.doc_id, passage.text)


def _dataset(name: str) -> Any:
    from rubric_measures.corpora.collections import load_collection

    return load_collection(name)


def made_entries(
    bank: TestBank,
    *,
    info: Mapping[str, object],
    sources: Mapping[str, Sequence[str]] | None = None,
) -> list[BankEntry]:
    """The entries of a bank that was just made: with how it was made, and each item with its sources.

    Queries without items are left out: a bank that says that a query has no items would say that nothing is to be
    covered, where the truth is that nothing is known.

    Args:
        bank: the bank.
        info: how it was made (model, prompts and their hashes), the same in every entry.
        sources: item id -> ids of the segments where the item comes from; becomes `info.segments` of the item.
    """
    items = {query_id: found for query_id, found in bank.items.items() if found}
    if sources is not None:
        items = {
            query_id: tuple(replace(one, info={"segments": list(sources.get(one.item_id, ()))}) for one in found)
            for query_id, found in items.items()
        }
    return bank_entries(replace(bank, items=items, edited={}), info=info)


def write_synthetic(name: str, queries: Iterable[SyntheticQuery]) -> None:
    """Writes synthetic queries as JSON lines: a query file whose lines also keep document, passages and model.

    Raises:
        InputError: there are none, or the file cannot be written.
    """
    lines = [canonical_json(query._asdict()) for query in queries]
    if not lines:
        raise InputError(f"{path_name(name)}: there are no queries to write")
    with atomic_writer(name) as stream:
        stream.writelines(line + "\n" for line in lines)


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
