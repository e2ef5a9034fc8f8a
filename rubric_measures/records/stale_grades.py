"""What records say about grades that edits of the bank made stale: which items were graded anew."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rubric_measures.records.models import ItemGradeSet, provenance_of

__all__ = ["regraded_of", "stale_in"]


def regraded_of(entry: ItemGradeSet) -> Mapping[str, str]:
    """item_id -> what the item said when it was graded anew after an edit; empty for sets that never were."""
    known: Any = provenance_of(entry).get("regraded")
    return known if isinstance(known, Mapping) else {}


def stale_in(
    entry: ItemGradeSet, item_ids: Iterable[str], edited: Mapping[str, frozenset[str]], bank_name: str
) -> set[str]:
    """The items that a grade set graded before the bank's edit of them.

    Grades that were made anew since still hold, and so do all grades of a set that was made against this bank.

    Args:
        entry: the grade set.
        item_ids: items that it graded, all of them in `edited`.
        edited: item_id -> contents, of one query, as in `TestBank.edited`.
        bank_name: how `provenance.bank` calls the bank.
    """
    if provenance_of(entry).get("bank") == bank_name:
        return set()
    regraded = regraded_of(entry)
    return {item_id for item_id in item_ids if regraded.get(item_id) not in edited[item_id]}
