"""The screens that edit the test bank (add, reword, split, merge, retire, …) and show what edits and grades do."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from rubric_measures.base.errors import InputError
from rubric_measures.review._actions import is_done
from rubric_measures.review._bank_edits import state_of
from rubric_measures.review._events import CellKey
from rubric_measures.review._impact import changed_cells
from rubric_measures.review._stale_items import words_of
from rubric_measures.review.requests import Asked, ScreenAnswer, page
from rubric_measures.review.session import Review
from rubric_measures.review.store import ConflictError


def bank(review: Review, asked: Asked) -> ScreenAnswer:
    """The items of one query, with their histories."""
    return _page(review, asked)


def _page(
    review: Review, asked: Asked, *, status: int = 200, conflict: Mapping[str, Any] | None = None
) -> ScreenAnswer:
    snapshot = review.store.snapshot()
    queries = list(review.material.bank.items)
    query_id = asked.get("query") or next(iter(queries), "")
    if query_id not in review.material.bank.items:
        raise InputError(f"the bank has no query {query_id!r}")
    states = [state for state in snapshot.items.values() if state.item.query_id == query_id]
    return page(
        "bank.html",
        review,
        asked,
        status=status,
        title="Edit the bank",
        queries={name: review.material.bank.query_texts.get(name, "") for name in queries},
        query_id=query_id,
        states=[state for state in states if not state.retired],
        retired=[state for state in states if state.retired],
        facets=sorted({state.item.facet_id for state in states if state.item.facet_id}),
        waiting=sum(state.waits for state in snapshot.items.values()),
        conflict=conflict,
    )


def post_bank(review: Review, asked: Asked) -> ScreenAnswer:
    """One edit; where somebody was faster, both versions are shown and nothing is changed."""
    kind = asked.get("edit")
    payload, expected = _edit_of(review, asked, kind)
    try:
        review.store.edit(asked.assessor, kind, payload, expected)
    except ConflictError as error:
        states = review.store.snapshot().items
        # What the assessor typed is shown with what the other one did, and can be sent again.
        conflict = {
            "theirs": [states[key] for key in error.keys if key in states],
            "live": [states[key] for key in expected if key in states and not states[key].retired],
            "mine": payload,
            "kind": kind,
        }
        return _page(review, asked, status=409, conflict=conflict)
    return ScreenAnswer(redirect="/bank?" + urlencode({"query": asked.get("query")}) + "#items")


def _edit_of(review: Review, asked: Asked, kind: str) -> tuple[dict[str, Any], dict[str, int]]:
    """The payload of an edit, and the versions that the editor saw."""
    if kind == "item_add":
        fields = _fields(asked)
        facet = asked.get("facet").strip()
        kind_of = _kind(review, asked.get("query"))
        added = {"query_id": asked.get("query"), "facet_id": facet or None, "kind": kind_of, **fields}
        if added["query_id"] not in review.material.bank.items:
            raise InputError(f"the bank has no query {added['query_id']!r}")
        return added, {}
    if kind == "item_merge":
        keys = [value.rpartition("@")[0] for value in asked.all("merge")]
        if len(set(keys)) < 2:
            raise InputError("choose at least two items to merge")
        versions = [
            int(number) if (number := value.rpartition("@")[2]).isdigit() else -1 for value in asked.all("merge")
        ]
        texts = {state.item.query_id for key in keys if (state := state_of(review.store.snapshot(), key))}
        if len(texts) != 1:
            raise InputError("items of different queries cannot be merged")
        return {"keys": keys, "text": asked.get("text")}, dict(zip(keys, versions, strict=True))
    key = asked.get("key")
    state_of(review.store.snapshot(), key)
    expected = {key: asked.number("version", -1)}
    if kind == "item_retire":
        return {"key": key}, expected
    if kind == "item_split":
        parts = [line.strip() for line in asked.get("texts").splitlines() if line.strip()]
        if len(parts) < 2:
            raise InputError("a split needs at least two texts, one a line")
        return {"key": key, "texts": parts}, expected
    if kind == "item_edit":
        return {"key": key, **_fields(asked), "same_meaning": asked.get("same_meaning") == "yes"}, expected
    raise InputError(f"there is no edit {kind!r}")


def _kind(review: Review, query_id: str) -> str:
    """What the query's items are: new ones are of the same kind."""
    items = review.material.bank.items.get(query_id) or tuple(review.material.bank)
    return items[0].kind if items else "question"


def _fields(asked: Asked) -> dict[str, Any]:
    importance = asked.get("importance") or None
    if importance not in (None, "vital", "okay"):
        raise InputError(f"importance is vital, okay or nothing, not {importance!r}")
    weight: float | None = None
    if asked.get("weight").strip():
        try:
            weight = float(asked.get("weight"))
        except ValueError:
            weight = math.nan
        if not math.isfinite(weight):
            raise InputError(f"a weight is a number, not {asked.get('weight')!r}")
    if not asked.get("text").strip():
        raise InputError("an item needs a text")
    answers = [line.strip() for line in asked.get("gold_answers").splitlines() if line.strip()]
    return {"text": asked.get("text").strip(), "importance": importance, "weight": weight, "gold_answers": answers}


_ITEMS = 25


def impact(review: Review, asked: Asked) -> ScreenAnswer:
    """The leaderboards and the items before and after."""
    snapshot = review.store.snapshot()
    changed = changed_cells(review.material, snapshot)
    query_id = asked.get("query")
    if query_id and query_id not in review.material.bank.items:
        raise InputError(f"the bank has no query {query_id!r}")
    number = max(asked.number("page", 1), 1)
    items = review.item_impact(snapshot, query_id, (number - 1) * _ITEMS, _ITEMS)
    # Whoever has not graded a cell yet shall do it blind: that it is here tells that assessors differ from the grader.
    seen = [one for one in changed if not review.blind or is_done(snapshot.grades[one[0]].get(asked.assessor))]
    return page(
        "impact.html",
        review,
        asked,
        title="Impact",
        impacts=review.impact(snapshot),
        changed=[
            (cell, words_of(snapshot, cell, review.material.grade(cell).item_text), old, new)
            for cell, old, new in seen[:200]
        ],
        changed_more=max(len(seen) - 200, 0),
        changed_hidden=len(changed) - len(seen),
        # Nor are the scores and counts shown, unasked, that tell which way they went.
        hidden=len(_hidden(review, asked)),
        items=items,
        query_id=query_id,
        queries=_query_texts(review),
        page_number=number,
        pages=max(1, -(-items.total // _ITEMS)),
        page_url="/impact?" + urlencode({"query": query_id}),
        min_rating=review.material.scale.covers,
    )


def _hidden(review: Review, asked: Asked) -> list[CellKey]:
    """Changed grades that the assessor has still to give blindly, and has not yet chosen to see the effect of."""
    if not review.blind:
        return []
    snapshot = review.store.snapshot()
    changed = [cell for cell, _, _ in changed_cells(review.material, snapshot)]
    open_ones = [cell for cell in changed if not is_done(snapshot.grades[cell].get(asked.assessor))]
    return [cell for cell in open_ones if (asked.assessor, cell) not in snapshot.looked]


def post_impact(review: Review, asked: Asked) -> ScreenAnswer:
    """Shows scores and counts all the same, and remembers that the assessor has seen them."""
    cells = _hidden(review, asked)
    if cells:
        review.store.look(asked.assessor, cells)
    return ScreenAnswer(redirect="/impact?" + urlencode({"query": asked.get("query")}))


def _query_texts(review: Review) -> dict[str, str]:
    """query_id -> text, of the bank."""
    texts = review.material.bank.query_texts
    return {name: texts.get(name, "") for name in review.material.bank.items}
