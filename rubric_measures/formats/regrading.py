"""What banks and records say about grades that edits made stale: which items need new ones, and which got them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from rubric_measures.formats.bank import BankEntry
from rubric_measures.formats.workbench import ItemGradeSet, provenance_of
from rubric_measures.records import make_item_id

__all__ = ["RegradeMark", "regrade_marks", "regraded_of"]


class RegradeMark(NamedTuple):
    """What a review wrote beside an item that it edited.

    Attributes:
        needed: whether the item needs new grades (`info.regrade`).
        same_as: what the item said before in other words that mean the same (`info.same_as`, as
            `signature.item_content`): grades that were made anew for these hold.
    """

    needed: bool
    same_as: frozenset[str]


def regrade_marks(entries: Iterable[BankEntry]) -> dict[tuple[str, str], RegradeMark]:
    """(query_id, item_id) -> what the bank's file says about its grades, of the items that have such a mark."""
    found: dict[tuple[str, str], RegradeMark] = {}
    for entry in entries:
        for item in entry.items:
            if isinstance(item.info, dict) and isinstance(item.info.get("regrade"), bool):
                facet_id = item.facet_id if item.facet_id is not None else entry.facet_id
                item_id = item.given_id or make_item_id(entry.query_id, item.text, facet_id)
                same: Any = item.info.get("same_as")
                contents = frozenset(one for one in same if isinstance(one, str)) if isinstance(same, list) else ()
                found[entry.query_id, item_id] = RegradeMark(item.info["regrade"], frozenset(contents))
    return found


def regraded_of(entry: ItemGradeSet) -> Mapping[str, str]:
    """item_id -> what the item said when it was graded anew after an edit; empty for sets that never were."""
    known: Any = provenance_of(entry).get("regraded")
    return known if isinstance(known, Mapping) else {}
