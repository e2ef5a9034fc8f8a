"""Test banks from queries: a chat model breaks each query (or title and subtopic) into questions or nuggets."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from rubric_measures.base.errors import InputError
from rubric_measures.prompts import Prompt, load_prompt
from rubric_measures.prompts.parsers import parse_items
from rubric_measures.test_bank.calls import BankCall, Caller, Failure, ask_each, without_duplicates
from rubric_measures.types.entities import ItemKind, RubricItem, TestBank, make_item_id
from rubric_measures.types.scales import Message

__all__ = ["BankQuery", "GeneratedBank", "check_queries", "generate_bank", "generation_prompt", "query_messages"]

_LOGGER = logging.getLogger("rubric_measures")


class BankQuery(NamedTuple):
    """What one call is about: a query, or one facet (subtopic) of a query."""

    query_id: str
    text: str
    facet_id: str | None = None
    facet_text: str = ""


class GeneratedBank(NamedTuple):
    """A generated bank and what happened on the way.

    Attributes:
        bank: every query is in it, one whose calls all failed with an empty list.
        failures: the queries (or facets) whose call led to nothing; `step` is the facet, or "query".
    """

    bank: TestBank
    failures: tuple[Failure, ...]


def generation_prompt(kind: ItemKind, query: BankQuery, style: str = "auto", program: str = "") -> Prompt:
    """The published prompt for a query: `dl` asks about the query, `car` about a facet; `auto` looks for a facet.

    `program` takes the words that a program sends (`workbench`) in the place of the paper's.

    Raises:
        InputError: the style is unknown, or `car` was asked for and the query has no facets.
    """
    if style not in ("auto", "dl", "car"):
        raise InputError(f"style {style!r}: known are auto, dl, car")
    if style == "auto":
        style = "dl" if query.facet_id is None else "car"
    if style == "car" and query.facet_id is None:
        raise InputError(f"query {query.query_id!r} has no facets: give them in the queries file, or use the style dl")
    return load_prompt(f"bank.{kind}.{style}{program and f'@{program}'}")


def query_messages(kind: ItemKind, query: BankQuery, style: str = "auto", program: str = "") -> tuple[Message, ...]:
    """What the model is shown for a query."""
    prompt = generation_prompt(kind, query, style, program)
    if "query_subtopic" in prompt.fields:
        return prompt.render(query_title=query.text, query_subtopic=query.facet_text or query.facet_id)
    return prompt.render(query_text=query.text)


def generate_bank(
    queries: Sequence[BankQuery],
    caller: Caller,
    *,
    kind: ItemKind = "question",
    style: str = "auto",
    program: str = "",
) -> GeneratedBank:
    """Generates a bank: one call a query, duplicates left out, ids by the rule of the workbench.

    Args:
        queries: the queries, or the facets of the queries; one call each.
        caller: the model.
        kind: what to generate.
        style: which published prompt; see `generation_prompt`.
        program: whose words it is put in; see `generation_prompt`.

    Returns:
        The bank with the failures beside it. The order of the items is that of the replies; it does not depend on
        which reply came first.

    Raises:
        InputError: there are no queries, one comes twice or has no text, or a prompt does not fit.

    Source: Dietz, SIGIR 2024, section 3.1 and Table 1; ids: the workbench's bank files.
    """
    check_queries(queries)
    asks = [BankCall(query_messages(kind, query, style, program), parse_items) for query in queries]
    outcomes = ask_each(caller, asks)
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
    if duplicates:
        _LOGGER.warning("%d generated %ss left out: the same text was there already", duplicates, kind)
    bank = TestBank(
        {query_id: tuple(members) for query_id, members in items.items()},
        {query.query_id: query.text for query in queries},
        {(query.query_id, query.facet_id): query.facet_text for query in queries if query.facet_id is not None},
    )
    return GeneratedBank(bank, tuple(failures))


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
