"""The screens of the bank."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from rubric_measures.base.errors import InputError
from rubric_measures.review import screens
from rubric_measures.review.queues import QueueChoice, words_of
from rubric_measures.review.screens import Asked, ScreenAnswer, check_url, is_done, page
from rubric_measures.review.session import Review, changed_cells, impact_of
from rubric_measures.review.store import EDITS, CellKey, ConflictError, Edit, Snapshot, StateError, state_of

# Passages on an item's own page.
_PASSAGES = 200


def bank(
    review: Review,
    asked: Asked,
    *,
    status: int = 200,
    conflict: Mapping[str, Any] | None = None,
    problem: Mapping[str, str] | None = None,
) -> ScreenAnswer:
    """The items of one query as a table; with an item, that one with its passages and versions.

    A conflict with another editor, or what is wrong with a field, is shown with what was typed.
    """
    snapshot = review.store.snapshot()
    key = asked.get("item") or (asked.get("key") if problem else "")
    query_id = asked.get("query") or next(iter(review.material.bank.items), "")
    if key:
        query_id = state_of(snapshot, key).item.query_id
    if query_id not in review.material.bank.items:
        raise InputError(f"the bank has no query {query_id!r}")
    if key and conflict is None:
        return _item_page(review, asked, snapshot, query_id, key, status, problem)
    states = [state for state in snapshot.items.values() if state.item.query_id == query_id]
    live = [state for state in states if not state.retired]
    texts = review.material.bank.query_texts
    return page(
        "bank.html",
        review,
        asked,
        status=status,
        title="Edit the bank",
        queries={name: texts.get(name, "") for name in review.material.bank.items},
        query_id=query_id,
        fields={"query": query_id},
        live=live,
        retired=[state for state in states if state.retired],
        facets=sorted({state.item.facet_id for state in live if state.item.facet_id}),
        waiting=sum(state.waits for state in snapshot.items.values()),
        conflict=conflict,
        problem=problem,
        sent=asked,
        typed=_typed(asked),
        chosen=dict.fromkeys(value.rpartition("@")[0] for value in asked.all("merge")) if problem else {},
        saved=_saved(review, asked),
    )


def _item_page(
    review: Review,
    asked: Asked,
    snapshot: Snapshot,
    query_id: str,
    key: str,
    status: int,
    problem: Mapping[str, str] | None,
) -> ScreenAnswer:
    """One item: its forms, its versions, and its passages, each with the way to its grade."""
    state = state_of(snapshot, key)
    query = review.material.queries.get(query_id)
    choice = QueueChoice("query", query_id)
    passages = []
    for doc_id, passage in (query.passages if query else {}).items():
        cell = CellKey(query_id, doc_id, state.item.item_id)
        is_graded = cell in review.material.numbers
        said = snapshot.grades.get(cell, {}).get(asked.assessor)
        before = asked.assessor in review.material.earlier(cell)
        url = check_url(choice, cell) if is_graded else ""
        passages.append((doc_id, passage.text, url, screens.state_of_grade(said, before) if is_graded else ""))
    if review.material.is_draft:
        passages.sort(key=lambda row: -sum(piece.marked for piece in screens.mark_words(row[1], state.item.text)))
    return page(
        "bank_item.html",
        review,
        asked,
        status=status,
        title="Edit an item",
        query_id=query_id,
        fields={"query": query_id},
        state=state,
        problem=problem,
        sent=asked,
        typed=_typed(asked),
        passages=passages[:_PASSAGES],
        more=max(len(passages) - _PASSAGES, 0),
    )


def _typed(asked: Asked) -> dict[str, Any]:
    """An item as it was typed, to be shown again where it was not taken."""
    fields: dict[str, Any] = {name: asked.get(name) for name in ("text", "importance", "weight")}
    return {**fields, "gold_answers": asked.get("gold_answers").splitlines()}


def _saved(review: Review, asked: Asked) -> tuple[str, str] | None:
    """What the assessor's edit with the number in the address was, as (kind, what it was about)."""
    number = asked.get("saved")
    for event in review.store.events(number):
        if event.assessor == asked.assessor and event.kind in EDITS and not event.undone:
            return screens.DONE[event.kind], screens.about(review, event)
    return None


def post_bank(review: Review, asked: Asked) -> ScreenAnswer:
    """One edit, or the same of several items; where somebody was faster, both versions are shown, nothing is changed.

    What is wrong with a field is said at the field, and what was typed stays.
    """
    edits: list[Edit] = []
    try:
        edits = _edits_of(review, asked, asked.get("edit"))
        made = review.store.edit_all(asked.assessor, edits)
    except StateError:
        raise
    except ConflictError as error:
        states = review.store.snapshot().items
        kind, payload, expected = next(one for one in edits if set(one[2]) & set(error.keys))
        item = states[next(iter(expected))].item
        # What the assessor typed is shown with what the other one did, and can be sent again; fields that the form
        # lacks stay as they are.
        conflict = {
            "theirs": [states[key] for key in error.keys if key in states],
            "live": [states[key] for key in expected if key in states and not states[key].retired],
            "mine": {name: getattr(item, name) for name in ("importance", "weight", "gold_answers")} | dict(payload),
            "kind": kind,
        }
        return bank(review, asked, status=409, conflict=conflict)
    except InputError as error:
        return bank(review, asked, status=400, problem={next(iter(error.settings), "text"): str(error)})
    fields = {"query": asked.get("query"), "saved": str(made[-1].event_id)}
    return ScreenAnswer(redirect="/bank?" + urlencode(fields) + "#items")


def _edits_of(review: Review, asked: Asked, kind: str) -> list[Edit]:
    """The edits that a form asks for, each with the versions that the editor saw."""
    if kind == "item_add":
        fields = _fields(asked)
        facet = asked.get("facet").strip()
        # New items are of the same kind as those of the query.
        items = review.material.bank.items.get(asked.get("query")) or tuple(review.material.bank)
        kind_of = items[0].kind if items else "question"
        added = {"query_id": asked.get("query"), "facet_id": facet or None, "kind": kind_of, **fields}
        if added["query_id"] not in review.material.bank.items:
            raise InputError(f"the bank has no query {added['query_id']!r}")
        return [(kind, added, {})]
    chosen = _chosen(review, asked)
    if kind == "item_merge":
        if len(chosen) < 2:
            raise InputError("choose at least two items to merge")
        return [(kind, {"keys": list(chosen), "text": asked.get("text")}, chosen)]
    if kind == "item_retire":
        if not chosen:
            raise InputError("choose the items to retire")
        return [(kind, {"key": key}, {key: version}) for key, version in chosen.items()]
    if len(chosen) != 1:
        raise InputError("choose one item to split or edit")
    key = next(iter(chosen))
    if kind == "item_split":
        parts = [line.strip() for line in (asked.get("texts") or asked.get("text")).splitlines() if line.strip()]
        if len(parts) < 2:
            raise InputError("a split needs at least two texts, one a line", settings=("texts",))
        return [(kind, {"key": key, "texts": parts}, chosen)]
    if kind == "item_edit":
        return [(kind, {"key": key, **_fields(asked), "same_meaning": asked.get("same_meaning") == "yes"}, chosen)]
    raise InputError(f"there is no edit {kind!r}")


def _chosen(review: Review, asked: Asked) -> dict[str, int]:
    """The items that a form is about, each with the version that the editor saw."""
    parted = [value.rpartition("@") for value in asked.all("merge")]
    chosen = {key: int(number) if number.isdigit() else -1 for key, _, number in parted}
    if not parted and asked.get("key"):
        chosen = {asked.get("key"): asked.number("version", -1)}
    snapshot = review.store.snapshot()
    if len({state_of(snapshot, key).item.query_id for key in chosen}) > 1:
        raise InputError("items of different queries cannot be edited together")
    return chosen


def _fields(asked: Asked) -> dict[str, Any]:
    """The fields of an item that the form has; those that it lacks stay as they are."""
    fields: dict[str, Any] = {"text": asked.get("text").strip()}
    if not fields["text"]:
        raise InputError("an item needs a text")
    if "importance" in asked.form:
        fields["importance"] = asked.get("importance") or None
        if fields["importance"] not in (None, "vital", "okay"):
            problem = f"importance is vital, okay or nothing, not {asked.get('importance')!r}"
            raise InputError(problem, settings=("importance",))
    if "weight" in asked.form:
        fields["weight"] = _weight(asked.get("weight").strip())
    if "gold_answers" in asked.form:
        answers = [line.strip() for line in asked.get("gold_answers").splitlines()]
        fields["gold_answers"] = [answer for answer in answers if answer]
    return fields


def _weight(text: str) -> float | None:
    if not text:
        return None
    try:
        weight = float(text)
    except ValueError:
        weight = math.nan
    if not math.isfinite(weight):
        raise InputError(f"a weight is a number, not {text!r}", settings=("weight",))
    return weight


def impact(review: Review, asked: Asked) -> ScreenAnswer:
    """The leaderboards before and after, and the grades that assessors changed."""
    snapshot = review.store.snapshot()
    changed = changed_cells(review.material, snapshot)
    # Whoever has not graded a cell yet shall do it blind: that it is here tells that assessors differ from the grader.
    seen = [one for one in changed if not review.blind or is_done(snapshot.grades[one[0]].get(asked.assessor))]
    return page(
        "impact.html",
        review,
        asked,
        title="Impact",
        impacts=impact_of(review.material, review.measures, snapshot),
        changed=[
            (cell, words_of(snapshot, cell, review.material.grade(cell).item_text), old, new)
            for cell, old, new in seen[:200]
        ],
        changed_more=max(len(seen) - 200, 0),
        changed_hidden=len(changed) - len(seen),
        # Nor are the scores and counts shown, unasked, that tell which way they went.
        hidden=len(_hidden(review, asked)),
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
    return ScreenAnswer(redirect="/impact")
