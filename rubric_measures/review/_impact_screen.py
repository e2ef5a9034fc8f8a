"""The impact screen: what grades and edits do to leaderboards and items, without telling grades to come."""

from __future__ import annotations

from urllib.parse import urlencode

from rubric_measures.base.errors import InputError
from rubric_measures.review._actions import is_done
from rubric_measures.review._events import CellKey
from rubric_measures.review._impact import changed_cells
from rubric_measures.review._stale_items import words_of
from rubric_measures.review.requests import Asked, ScreenAnswer, page
from rubric_measures.review.session import Review

__all__ = ["impact", "post_impact"]

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
