"""Synthetic queries: models write questions for long passages, a seeded sample by model is the query set (RAGElo)."""

from __future__ import annotations

import hashlib
import logging
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from rubric_measures.base.errors import InputError, UnknownNameError
from rubric_measures.prompts import load_prompt
from rubric_measures.prompts.parsers import parse_items
from rubric_measures.test_bank.calls import BankCall, Caller, Failure, ask_each, normalised
from rubric_measures.test_bank.nuggetization import SourceSegment

__all__ = [
    "LongPassage",
    "SyntheticQueries",
    "SyntheticQuery",
    "generate_queries",
    "long_passages",
    "sample_by_model",
    "sample_passages",
]

_LOGGER = logging.getLogger("rubric_measures")
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
        asks = [
            BankCall(prompt.render(passage=p.text, examples=shown, max_questions=max_questions), parse_items)
            for p in passages
        ]
        for passage, outcome in zip(passages, ask_each(caller, asks), strict=True):
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
                queries.append(
                    SyntheticQuery(_query_id(text), text, passage.document_id, passage.doc_ids, caller.model)
                )
    if surplus:
        _LOGGER.warning("%d questions left out: more than %d in one reply", surplus, max_questions)
    if copied:
        _LOGGER.warning("%d questions left out: they repeat an example", copied)
    if duplicates:
        _LOGGER.warning("%d questions left out: the same text was there already", duplicates)
    return SyntheticQueries(tuple(queries), tuple(failures))


def _query_id(text: str) -> str:
    """An id that depends on the text alone, so that adding a model or a passage renames nothing."""
    return "syn-" + hashlib.md5(text.strip().encode("utf-8"), usedforsecurity=False).hexdigest()[:16]


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
