"""Test banks from queries: a chat model breaks each query (or title and subtopic) into questions or nuggets."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

from rubric_measures.backends.base import Message
from rubric_measures.base.entities import ItemKind, RubricItem, TestBank, make_item_id
from rubric_measures.base.errors import InputError
from rubric_measures.prompts import Prompt, load_prompt
from rubric_measures.prompts.parsers import parse_items
from rubric_measures.test_bank.calls import BankCall, BankReply, Caller, Failure, ask_all, run_jobs, without_duplicates

__all__ = ["BankQuery", "GeneratedBank", "generate_bank", "generation_prompt", "topic_messages"]

_LOGGER = logging.getLogger("rubric_measures")


class BankQuery(NamedTuple):
    """What one call is about: a query, or one facet (subtopic) of a query."""

    query_id: str
    text: str
    facet_id: str | None = None
    facet_text: str = ""


@dataclass(frozen=True)
class GeneratedBank:
    """A generated bank and what happened on the way.

    Attributes:
        bank: every query is in it, one whose calls all failed with an empty list.
        failures: the topics whose call led to nothing; `step` is the facet, or "query".
        calls: how many replies were asked for (cached ones included), retries among them.
        duplicates: how many texts were left out because the same text was there already (of the same query and facet).
    """

    bank: TestBank
    failures: tuple[Failure, ...] = ()
    calls: int = 0
    duplicates: int = 0


def generation_prompt(kind: ItemKind, topic: BankQuery, style: str = "auto") -> Prompt:
    """The published prompt for a topic: `dl` asks about the query, `car` about a facet; `auto` looks for a facet.

    Raises:
        InputError: the style is unknown, or `car` was asked for and the query has no facets.
    """
    if style not in ("auto", "dl", "car"):
        raise InputError(f"style {style!r}: known are auto, dl, car")
    if style == "auto":
        style = "dl" if topic.facet_id is None else "car"
    if style == "car" and topic.facet_id is None:
        raise InputError(f"query {topic.query_id!r} has no facets: give them in the queries file, or use the style dl")
    return load_prompt(f"bank.{kind}.{style}")


def topic_messages(kind: ItemKind, topic: BankQuery, style: str = "auto") -> tuple[Message, ...]:
    """What the model is shown for a topic."""
    prompt = generation_prompt(kind, topic, style)
    if "query_subtopic" in prompt.fields:
        return prompt.render(query_title=topic.text, query_subtopic=topic.facet_text or topic.facet_id)
    return prompt.render(query_text=topic.text)


def generate_bank(
    topics: Sequence[BankQuery], caller: Caller, *, kind: ItemKind = "question", style: str = "auto"
) -> GeneratedBank:
    """Generates a bank: one call a topic, duplicates left out, ids by the rule of the workbench.

    Args:
        topics: the queries, or the facets of the queries; one call each.
        caller: the model.
        kind: what to generate.
        style: which published prompt; see `generation_prompt`.

    Returns:
        The bank with the failures beside it. The order of the items is that of the replies; it does not depend on
        which reply came first.

    Raises:
        InputError: there are no topics, one comes twice or has no text, or a prompt does not fit.

    Source: Dietz, SIGIR 2024, section 3.1 and Table 1; ids: the workbench's bank files.
    """
    _check(topics)
    asks = [BankCall(topic_messages(kind, topic, style), parse_items) for topic in topics]
    found = run_jobs(caller, ((n, ask_all(caller, [ask])) for n, ask in enumerate(asks)))
    outcomes: list[BankReply[tuple[str, ...]]] = [found[n][0] for n in range(len(topics))]
    items: dict[str, list[RubricItem]] = {topic.query_id: [] for topic in topics}
    failures: list[Failure] = []
    duplicates = 0
    for topic, outcome in zip(topics, outcomes, strict=True):
        texts = outcome.value
        if texts is None:
            failures.append(Failure(topic.query_id, topic.facet_id or "query", outcome.reason))
            continue
        kept = without_duplicates(text.strip() for text in texts)
        duplicates += len(texts) - len(kept)
        items[topic.query_id] += [
            RubricItem(make_item_id(topic.query_id, text, topic.facet_id), topic.query_id, text, kind, topic.facet_id)
            for text in kept
        ]
    if duplicates:
        _LOGGER.warning("%d generated %ss left out: the same text was there already", duplicates, kind)
    bank = TestBank(
        MappingProxyType({query_id: tuple(members) for query_id, members in items.items()}),
        MappingProxyType({topic.query_id: topic.text for topic in topics}),
        MappingProxyType(
            {(topic.query_id, topic.facet_id): topic.facet_text for topic in topics if topic.facet_id is not None}
        ),
    )
    return GeneratedBank(bank, tuple(failures), sum(outcome.draws for outcome in outcomes), duplicates)


def _check(topics: Iterable[BankQuery]) -> None:
    seen: set[tuple[str, str | None]] = set()
    for topic in topics:
        key = (topic.query_id, topic.facet_id)
        where = f"query {topic.query_id!r}" + (f", facet {topic.facet_id!r}" if topic.facet_id is not None else "")
        if key in seen:
            raise InputError(f"{where} comes twice; leave one out")
        seen.add(key)
        if not topic.text.strip():
            raise InputError(f"{where} has no text; there is nothing to ask about")
    if not seen:
        raise InputError("there are no queries to generate a test bank for")
