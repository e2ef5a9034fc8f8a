"""Weighted criteria of ResearchRubrics, and what banks that are made of such files have in common."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any

from pydantic import Field, TypeAdapter

from rubric_measures.base.errors import InputError
from rubric_measures.base.json_files import JsonLines, Record, TextId
from rubric_measures.formats.base import Format
from rubric_measures.types.entities import RubricItem, TestBank, make_item_id

__all__ = [
    "RUBRICS",
    "Criterion",
    "RubricLine",
    "bank_of_items",
    "bank_of_rubrics",
    "facet_ids",
    "read_rubrics",
    "rubric_lines",
    "write_rubrics",
]

_LOG = logging.getLogger("rubric_measures")


def facet_ids(texts: Iterable[str | None]) -> dict[str, str]:
    """Facet text -> a short id: its lower-case words joined by hyphens, numbered where two would be the same.

    Blank texts are no facet.

    >>> facet_ids(['"Key advantages of nuclear energy"', None, "Key advantages of nuclear energy?"])
    {'"Key advantages of nuclear energy"': 'key-advantages-of-nuclear-energy', \
'Key advantages of nuclear energy?': 'key-advantages-of-nuclear-energy-2'}
    """
    ids: dict[str, str] = {}
    used: set[str] = set()
    for text in texts:
        stripped = (text or "").strip()
        if not stripped or stripped in ids:
            continue
        words = "-".join(re.findall(r"\w+", stripped.lower()))[:60].rstrip("-") or "facet"
        facet_id, number = words, 1
        while facet_id in used:
            number += 1
            facet_id = f"{words}-{number}"
        used.add(facet_id)
        ids[stripped] = facet_id
    return ids


def bank_of_items(
    items: Mapping[str, Sequence[RubricItem]],
    query_texts: Mapping[str, str] | None = None,
    facet_texts: Mapping[tuple[str, str], str] | None = None,
) -> TestBank:
    """A bank in which an item that comes twice in its query is kept once, counted.

    Raises:
        InputError: the two have different importances, weights or gold answers.
    """
    kept: dict[str, tuple[RubricItem, ...]] = {}
    repeated = 0
    for query_id, members in items.items():
        unique: dict[str, RubricItem] = {}
        for item in members:
            earlier = unique.setdefault(item.item_id, item)
            if earlier != item:
                what = "comes twice with different importance, weight or answers; keep one"
                raise InputError(f"query {query_id!r}: {item.text!r} {what}")
        repeated += len(members) - len(unique)
        kept[query_id] = tuple(unique.values())
    if repeated:
        _LOG.warning("%d items come twice in their query; each is kept once", repeated)
    return TestBank(kept, dict(query_texts or {}), dict(facet_texts or {}))


class Criterion(Record):
    """One criterion.

    Attributes:
        criterion: what an answer shall do, never blank.
        weight: from −5 (a penalty) to 5.
        axis: the kind of quality that it is about.
        tier: RAGDoll: `mandatory` or `optional`.
        source_nugget: RAGDoll: the nugget that it was made from.
    """

    criterion: Annotated[str, Field(pattern=r"\S")]
    weight: float
    axis: str | None = None
    tier: str | None = None
    source_nugget: str | None = None


class RubricLine(Record):
    """The criteria of one query (ResearchRubrics, RAGDoll); `query` is its text, where the file has it."""

    qid: TextId
    query: str | None = None
    rubrics: list[Criterion]


_RUBRICS = JsonLines(TypeAdapter(RubricLine), "weighted criteria", by_hand=True)
read_rubrics, write_rubrics = _RUBRICS.read, _RUBRICS.write


def bank_of_rubrics(lines: Iterable[RubricLine]) -> TestBank:
    """The bank that weighted criteria make: nuggets with a weight; the axis is the facet.

    Raises:
        InputError: a query comes twice, or a criterion has two weights.
    """
    items: dict[str, list[RubricItem]] = {}
    texts: dict[str, str] = {}
    facet_texts: dict[tuple[str, str], str] = {}
    for line in lines:
        if line.qid in items:
            raise InputError(f"query {line.qid!r} has two lines of criteria; join them first")
        if line.query is not None:
            texts[line.qid] = line.query
        facets = facet_ids(criterion.axis for criterion in line.rubrics)
        facet_texts |= {(line.qid, facet_id): text for text, facet_id in facets.items()}
        members = items.setdefault(line.qid, [])
        for criterion in line.rubrics:
            facet_id = facets.get((criterion.axis or "").strip())
            text = criterion.criterion.strip()
            item_id = make_item_id(line.qid, text, facet_id)
            said = {"tier": criterion.tier, "source_nugget": criterion.source_nugget}
            info = {name: value for name, value in said.items() if value is not None} or None
            members.append(RubricItem(item_id, line.qid, text, "nugget", facet_id, weight=criterion.weight, info=info))
    return bank_of_items(items, texts, facet_texts)


def rubric_lines(bank: TestBank) -> list[RubricLine]:
    """The lines that write a bank as weighted criteria.

    Raises:
        InputError: an item has no weight.
    """
    lines = []
    for query_id, items in bank.items.items():
        criteria = []
        for item in items:
            if item.weight is None:
                raise InputError(f"item {item.item_id!r} has no weight, and a criterion needs one")
            fields: dict[str, Any] = {"criterion": item.text, "weight": item.weight}
            if item.facet_id is not None:
                fields["axis"] = bank.facet_texts.get((query_id, item.facet_id), item.facet_id)
            said = item.info if isinstance(item.info, dict) else {}
            fields |= {name: said[name] for name in ("tier", "source_nugget") if isinstance(said.get(name), str)}
            criteria.append(Criterion(**fields))
        of_query = {"query": bank.query_texts[query_id]} if query_id in bank.query_texts else {}
        lines.append(RubricLine(qid=query_id, **of_query, rubrics=criteria))
    return lines


RUBRICS = Format(
    "rubrics",
    "weighted criteria of ResearchRubrics",
    read_rubrics,
    write_rubrics,
    lambda head: "rubrics" in head.object,
)
