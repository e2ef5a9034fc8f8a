"""The rows of the bank's table: an item, and what grades say of it where its reader may know that."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rubric_measures.review._actions import is_done
from rubric_measures.review._events import CellKey, ItemState, Snapshot
from rubric_measures.review.session import Review


class BankRow(NamedTuple):
    """One item of the table; a number is a text, empty where there is none or its reader may not see it yet.

    Attributes:
        state: the item.
        coverage: how many passages cover it, of how many that are graded: `3/12`.
        agreement: how many first, blind grades of it by assessors are the grader's, of how many: `4/5`.
        flips: how many pairs of runs change their order when it is left out.
        never: whether no graded passage covers it.
        hidden: whether its numbers are not shown, because its reader has blind grades of it to give.
    """

    state: ItemState
    coverage: str = ""
    agreement: str = ""
    flips: str = ""
    never: bool = False
    hidden: bool = False


@dataclass(frozen=True)
class BankTable:
    """The items of one query.

    Attributes:
        rows: the items in the bank, in its order.
        retired: those that left it.
        blind: grades of the query that the reader has still to give blindly.
    """

    rows: Sequence[BankRow]
    retired: Sequence[ItemState]
    blind: Sequence[CellKey]


def blind_cells(review: Review, snapshot: Snapshot, query_id: str, assessor: str) -> list[CellKey]:
    """The grades of a query that an assessor has still to give blindly."""
    if not review.blind:
        return []
    material, places = review.material, review.material.ranges.get(query_id, range(0))
    return [
        cell
        for cell in material.cells[places.start : places.stop]
        if not is_done(snapshot.grades.get(cell, {}).get(assessor))
        and (assessor, cell) not in snapshot.looked
        and not material.was_shown(assessor, cell)
    ]


def bank_table(review: Review, snapshot: Snapshot, query_id: str, assessor: str, *, knows_board: bool) -> BankTable:
    """The items of a query as an assessor may see them.

    Coverage and agreement of an item are sums over its grades: they are there once the assessor has no blind grade of
    the item left. Flips hang on all grades of the query, and on the leaderboard, which only who `knows_board` may see.
    """
    states = [state for state in snapshot.items.values() if state.item.query_id == query_id]
    live = [state for state in states if not state.retired]
    blind = blind_cells(review, snapshot, query_id, assessor)
    hidden = {cell.item_id for cell in blind}
    known = {state.item.item_id for state in live} - hidden if query_id in review.material.queries else set()
    shows_flips = not blind and knows_board
    found = review.item_statistics(snapshot, query_id, shows_flips) if known else {}
    same, pairs = _agreement(review, snapshot, query_id) if known else ({}, {})
    rows = []
    for state in live:
        name = state.item.item_id
        if name in hidden or name not in known:
            rows.append(BankRow(state, hidden=name in hidden))
            continue
        one = found.get(name)
        graded = one is not None and one.graded > 0 and not state.regrade
        rows.append(
            BankRow(
                state,
                f"{one.covering}/{one.graded}" if one is not None and graded else "",
                f"{same.get(name, 0)}/{pairs[name]}" if name in pairs else "",
                str(one.flips) if one is not None and graded and shows_flips and one.flips is not None else "",
                graded and one is not None and not one.covering,
            )
        )
    return BankTable(rows, [state for state in states if state.retired], blind)


def _agreement(review: Review, snapshot: Snapshot, query_id: str) -> tuple[Mapping[str, int], Mapping[str, int]]:
    """item_id -> first, blind grades by assessors that are the grader's, and how many there are."""
    same: Counter[str] = Counter()
    pairs: Counter[str] = Counter()
    for cell, said in snapshot.grades.items():
        if cell.query_id != query_id:
            continue
        grade = review.material.grade(cell).grade
        for one in said.values():
            if one.blind and None not in (one.first, grade):
                pairs[cell.item_id] += 1
                same[cell.item_id] += one.first == grade
    return same, pairs
