"""Nuggets and their labels, without pydantic: facets, items, banks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from rubric_measures.base.errors import InputError, warn
from rubric_measures.types.entities import RubricItem, TestBank, make_item_id

ImportanceLabel = Literal["vital", "okay", "failed"]


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
    warn("%d items come twice in their query; each is kept once", repeated)
    return TestBank(kept, dict(query_texts or {}), dict(facet_texts or {}))


def item_of_nugget(query_id: str, nugget: Any, facets: Mapping[str, str]) -> RubricItem:
    """The rubric item that a nugget of a query is, a model or a struct; `facets` says the ids of sub-narratives."""
    facet_id = facets.get((nugget.mapped_sub_narrative or "").strip())
    return RubricItem(
        item_id=make_item_id(query_id, nugget.text, facet_id),
        query_id=query_id,
        text=nugget.text.strip(),
        kind="nugget",
        facet_id=facet_id,
        importance=None if nugget.importance == "failed" else nugget.importance,
        info=None if nugget.source is None else {"source": nugget.source},
    )


def known_label(value: Any) -> Any:
    """Older files write labels with capitals, spaces and hyphens, and `okey`; RAGDoll writes `fail`."""
    if not isinstance(value, str):
        return value
    label = "_".join(value.lower().replace("-", " ").replace("_", " ").split())
    return {"okey": "okay", "fail": "failed"}.get(label, label)
