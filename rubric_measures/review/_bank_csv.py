"""The bank as a table that is edited elsewhere: out, and in again as edits whose differences are shown first."""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

from rubric_measures.base.entities import RubricItem, TestBank
from rubric_measures.base.errors import InputError
from rubric_measures.formats.bank import BankEntry, BankItem, bank_entries, item_id_of
from rubric_measures.formats.bank_csv import read_bank_csv, write_bank_csv
from rubric_measures.formats.delimited import cells_of
from rubric_measures.review._events import ItemState, Snapshot
from rubric_measures.review.requests import Asked, ScreenAnswer, page
from rubric_measures.review.session import Review
from rubric_measures.review.store import ConflictError, Edit, StateError

_COLUMNS = ("importance", "weight", "gold_answers")
_NAME = "bank.csv"


class Difference(NamedTuple):
    """What a table says other than the bank of one item.

    Attributes:
        what: `added`, `changed` or `retired`.
        query_id: the query.
        text: the item's text in the bank; of an added one that of the table.
        fields: (field, in the bank, in the table) of a changed item.
        edit: the edit that takes it in.
    """

    what: str
    query_id: str
    text: str
    fields: Sequence[tuple[str, str, str]]
    edit: Edit


def bank_csv(review: Review, asked: Asked) -> ScreenAnswer:
    """The bank as it stands now, as a table to be saved."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / _NAME
        write_bank_csv(path, bank_entries(review.store.snapshot().bank(review.material.bank)))
        text = path.read_text(encoding="utf-8")
    return ScreenAnswer(text, file_name=_NAME, kind="text/csv; charset=utf-8")


def table(
    review: Review,
    asked: Asked,
    found: Sequence[Difference] | None = None,
    *,
    status: int = 200,
    problem: str = "",
    is_other: bool = False,
) -> ScreenAnswer:
    """The form that takes a table, and shows what one changes."""
    return page(
        "table.html",
        review,
        asked,
        status=status,
        title="The bank as a table",
        found=found,
        counts=Counter(one.what for one in found or ()),
        digest=_digest(found) if found else "",
        text=asked.get("table"),
        same_meaning=asked.get("same_meaning") == "yes",
        problem=problem,
        is_other=is_other,
    )


def post_table(review: Review, asked: Asked) -> ScreenAnswer:
    """Shows what a table changes, and takes it in once its differences were seen: all of them, or none."""
    try:
        snapshot = review.store.snapshot()
        found = _differences(review.material.bank, snapshot, asked.get("table"), asked.get("same_meaning") == "yes")
        digest = _digest(found)
        if not found or asked.get("seen") != digest:
            return table(review, asked, found, is_other=bool(asked.get("seen")))
        edits = [(kind, {**payload, "table": digest}, seen) for kind, payload, seen in (one.edit for one in found)]
        made = review.store.edit_all(asked.assessor, edits)
    except StateError:
        raise
    except ConflictError:
        return post_table(review, asked)
    except InputError as error:
        return table(review, asked, status=400, problem=str(error))
    fields = {"query": found[0].query_id, "saved": str(made[-1].event_id)}
    return ScreenAnswer(redirect="/bank?" + urlencode(fields) + "#items")


def _digest(found: Sequence[Difference]) -> str:
    """Names the differences, and the versions of the items that they are of."""
    return hashlib.sha256(json.dumps([one.edit for one in found]).encode()).hexdigest()[:16]


def _entries(text: str) -> tuple[list[BankEntry], list[str]]:
    """The entries of a table, and its columns."""
    text = text.replace("\r\n", "\n").removeprefix("\ufeff").lstrip("\n")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / _NAME
        path.write_text(text, encoding="utf-8", errors="replace")
        try:
            return read_bank_csv(path), cells_of(text.partition("\n")[0])
        except InputError as error:
            raise InputError(str(error).replace(str(path), "the table")) from None


def _differences(bank: TestBank, snapshot: Snapshot, text: str, same_meaning: bool) -> list[Difference]:
    """What a table says other than the bank, of the queries that it has: first what goes, then what changes and comes.

    Fields whose column the table lacks stay as they are.

    Raises:
        InputError: it is no table of items, has a query that the bank lacks, or another kind or facet of an item.
    """
    entries, columns = _entries(text)
    live = [state for state in snapshot.items.values() if not state.retired]
    by_id = {state.place: state for state in live}
    by_text = {(state.item.query_id, _plain(state.item.text)): state for state in reversed(live)}
    kept: set[str] = set()
    changed: list[Difference] = []
    added: list[Difference] = []
    for entry in entries:
        if entry.query_id not in bank.items:
            raise InputError(f"the bank has no query {entry.query_id!r}; take its rows out of the table")
        for item in entry.items:
            place = entry.query_id, item_id_of(entry, item)
            state = by_id.get(place) or by_text.get((entry.query_id, _plain(item.text)))
            if state is None:
                added.append(_added(entry, item))
                continue
            if state.key in kept:
                raise InputError(f"two rows are of item {state.item.item_id!r} of query {entry.query_id!r}; keep one")
            kept.add(state.key)
            _check_kept(state, entry, item, columns)
            changed += _changed(state, item, columns, same_meaning)
    queries = {entry.query_id for entry in entries}
    gone = [state for state in live if state.item.query_id in queries and state.key not in kept]
    retired = [
        Difference(
            "retired", one.item.query_id, one.item.text, (), ("item_retire", {"key": one.key}, {one.key: one.version})
        )
        for one in gone
    ]
    return [*retired, *changed, *added]


def _plain(text: str) -> str:
    return text.replace("\r\n", "\n").strip()


def _added(entry: BankEntry, item: BankItem) -> Difference:
    payload = {
        "query_id": entry.query_id,
        "facet_id": item.facet_id or entry.facet_id,
        "kind": item.kind,
        **_fields_of(item),
        "text": item.text,
    }
    return Difference("added", entry.query_id, item.text, (), ("item_add", payload, {}))


def _fields_of(item: RubricItem | BankItem) -> dict[str, Any]:
    return {
        "text": _plain(item.text),
        "importance": item.importance,
        "weight": item.weight,
        "gold_answers": list(item.gold_answers or ()),
    }


def _check_kept(state: ItemState, entry: BankEntry, item: BankItem, columns: Sequence[str]) -> None:
    old = state.item
    for name, before, now in (
        ("kind", old.kind, item.kind),
        ("facet", old.facet_id, item.facet_id or entry.facet_id),
    ):
        if name in columns and before != now:
            raise InputError(
                f"item {old.item_id!r} of query {old.query_id!r}: its {name} cannot be changed ({before or 'none'} to "
                f"{now or 'none'}); retire it, and add it without its item_id"
            )


def _changed(state: ItemState, item: BankItem, columns: Sequence[str], same_meaning: bool) -> list[Difference]:
    """What differs of an item that the bank has; empty where nothing does."""
    old, new = _fields_of(state.item), _fields_of(item)
    names = [name for name in ("text", *(one for one in _COLUMNS if one in columns)) if old[name] != new[name]]
    if not names:
        return []
    payload = {"key": state.key, **{name: new[name] for name in names}, "same_meaning": same_meaning}
    fields = [(name.replace("_", " "), _said(old[name]), _said(new[name])) for name in names]
    edit = ("item_edit", payload, {state.key: state.version})
    return [Difference("changed", state.item.query_id, state.item.text, fields, edit)]


def _said(value: object) -> str:
    if isinstance(value, list):
        return "; ".join(value)
    return "" if value is None else str(value)
