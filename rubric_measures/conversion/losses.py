"""What a format cannot hold of a test bank: told by reading back what was made of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from rubric_measures.base.entities import RubricItem
from rubric_measures.conversion.bridges import Options, bridged
from rubric_measures.formats.bank import BankEntry, bank_of_entries

__all__ = ["losses"]

# What an item has, and how a note calls it.
_FIELDS: Mapping[str, str] = {
    "item_id": "ids",
    "text": "texts",
    "kind": "kinds",
    "gold_answers": "gold answers",
    "importance": "importance",
    "weight": "weights",
}


def losses(entries: Sequence[BankEntry], content: Any, kind: str) -> str:
    """How many items of a bank lost what in another kind of file, in words: "ids of 2 items, weights of 1 items".

    Items are compared in order, query by query; a query whose number of items changed lost the difference.

    Args:
        entries: the bank.
        content: what was made of it.
        kind: the kind of that; a bank can be made of it again.

    Returns:
        The note; empty where nothing is lost.
    """
    before, after = bank_of_entries(entries), bank_of_entries(bridged(content, kind, "bank", Options()))
    counts: Counter[str] = Counter()
    for query_id, items in before.items.items():
        found = after.items.get(query_id, ())
        if len(found) != len(items):
            counts["items"] += abs(len(items) - len(found))
            continue
        for old, new in zip(items, found, strict=True):
            counts.update(_lost(old, new))
    named = {name: counts[name] for name in ("items", *_FIELDS.values()) if counts[name]}
    return ", ".join(
        f"{name} of {count} items" if name != "items" else f"{count} items" for name, count in named.items()
    )


def _lost(old: RubricItem, new: RubricItem) -> list[str]:
    return [said for name, said in _FIELDS.items() if getattr(old, name) != getattr(new, name) and getattr(old, name)]
