"""What assessors did, as events, and what events add up to: grades of assessors and versions of items."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from rubric_measures.measures.grade_sets import grade_of_assessors
from rubric_measures.types.entities import RubricItem, TestBank

EDITS = ("item_add", "item_edit", "item_retire", "item_split", "item_merge")
# The decision of an adjudicator, which binds.
ADJUDICATE = "adjudicate"


class CellKey(NamedTuple):
    """One grade that can be checked: a passage and an item of a query."""

    query_id: str
    doc_id: str
    item_id: str


def cell_of(payload: Mapping[str, Any]) -> CellKey:
    """The cell that an event's payload is about."""
    return CellKey(payload["query_id"], payload["doc_id"], payload["item_id"])


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that an assessor did.

    Attributes:
        event_id: ascending; also the version of the items that the event touched.
        assessor: who.
        time: when, ISO 8601 in UTC.
        kind: `grade`, `decide`, `note`, `undo`, `look` (at scores that tell something of grades that the assessor had
            still to give), or an edit of the bank (`item_add`, `item_edit`, `item_retire`, `item_split`, `item_merge`).
        payload: what, by kind.
        uid: names the event wherever it goes.
    """

    event_id: int
    assessor: str
    time: str
    kind: str
    payload: Mapping[str, Any]
    uid: str = ""


@dataclass(frozen=True, slots=True)
class AssessorGrade:
    """What one assessor says about one cell.

    Attributes:
        grade: the assessor's own grade, as changed last; None is undecided.
        first: the first grade that the assessor gave; stays when it is changed. None while there was none.
        blind: whether the first grade was given before the grader's grade was shown.
        final: the grade after the decision; None while undecided.
        decision: `agree`, `accept` (the grader's grade), `override` (the assessor's), `adjudicate` (what assessors
            differ on was decided), or empty while open.
        reason: what the assessor wrote beside it.
        event_id: the last event about it.
        time: of that event.
        first_time: when the first grade was given; empty while there was none.
    """

    grade: float | None
    first: float | None
    blind: bool
    final: float | None
    decision: str
    reason: str
    event_id: int
    time: str
    first_time: str = ""


def adjudicated(said: Mapping[str, AssessorGrade]) -> tuple[str, float] | None:
    """Who decided a cell, and how: the latest decision of an adjudicator; None where there is none."""
    decided = [
        (one.event_id, name, one.final)
        for name, one in said.items()
        if one.decision == ADJUDICATE and one.final is not None
    ]
    return max(decided)[1:] if decided else None


class Version(NamedTuple):
    """One version of an item.

    Attributes:
        version: the id of the event that made it; 0 for that of the bank's file.
        assessor: who made it.
        time: when.
        what: by what.
        item: what it then was.
        waits: of the file's version: whether an earlier review edited it, and no grades were made anew since.
    """

    version: int
    assessor: str
    time: str
    what: str
    item: RubricItem
    waits: bool = False


@dataclass(frozen=True)
class ItemState:
    """An item with its history.

    Attributes:
        key: the id under which the item first appeared; stays when the item's id changes with its text. Where an
            item of another query has that id, the query stands before it.
        item: as it stands now.
        retired: whether it left the bank.
        regrade: whether grades must be made anew: the text or the gold answers changed, in this review or an earlier
            one, or the item is new.
        history: all versions, oldest first.
    """

    key: str
    item: RubricItem
    retired: bool
    regrade: bool
    history: tuple[Version, ...]

    @property
    def place(self) -> tuple[str, str]:
        """The item's query and its id as it stands now."""
        return self.item.query_id, self.item.item_id

    @property
    def original(self) -> RubricItem | None:
        """The item as the bank's file has it; None where assessors made it."""
        first = self.history[0]
        return first.item if first.version == 0 else None

    @property
    def first_id(self) -> str:
        """The id that the item has in the bank's file; its key where assessors made it."""
        return self.key if self.original is None else self.original.item_id

    @property
    def waits(self) -> bool:
        """Whether the item is in the bank and needs grades."""
        return self.regrade and not self.retired

    @property
    def version(self) -> int:
        """The id of the event that made the current version; 0 for the version of the bank file."""
        return self.history[-1].version


@dataclass
class Snapshot:
    """What all events add up to.

    Attributes:
        grades: cell -> assessor -> what the assessor says.
        items: key -> the item, in bank order; new items stand behind those that they come from.
        undone: ids of events that were taken back.
        looked: (assessor, cell) of grades of which the assessor saw on the impact screen which way they went.
        last_id: the last event that is in the snapshot.
    """

    grades: dict[CellKey, dict[str, AssessorGrade]] = field(default_factory=dict)
    items: dict[str, ItemState] = field(default_factory=dict)
    undone: frozenset[int] = frozenset()
    looked: frozenset[tuple[str, CellKey]] = frozenset()
    last_id: int = 0

    def bank(self, original: TestBank) -> TestBank:
        """The bank as it stands now."""
        members: dict[str, list[RubricItem]] = {query_id: [] for query_id in original.items}
        for state in self.items.values():
            if not state.retired:
                members.setdefault(state.item.query_id, []).append(state.item)
        texts = {query_id: tuple(items) for query_id, items in members.items()}
        return TestBank(texts, original.query_texts, original.facet_texts)

    def first_at(self, query_id: str, item_id: str) -> ItemState | None:
        """The item that first appeared under this id of this query; None where there is none."""
        for key in (item_id, f"{query_id} {item_id}"):
            state = self.items.get(key)
            if state is not None and state.item.query_id == query_id:
                return state
        return None

    def free_key(self, item: RubricItem) -> str:
        """The key of an item that first appears: ids need only be unique in their query."""
        return item.item_id if item.item_id not in self.items else f"{item.query_id} {item.item_id}"

    def live(self) -> dict[tuple[str, str], ItemState]:
        """(query_id, item_id) -> the items that are in the bank now."""
        return {state.place: state for state in self.items.values() if not state.retired}

    def adjudicated(self, cell: CellKey) -> tuple[str, float] | None:
        """Who decided a cell that assessors differ on, and how; None where nobody did."""
        return adjudicated(self.grades.get(cell, {}))

    def final(
        self, cell: CellKey, earlier: Mapping[str, float] | None = None, settled: tuple[str, float] | None = None
    ) -> float | None:
        """The grade of a cell by assessors, as `grade_of_assessors`; None where nobody gave a final one.

        Args:
            cell: the cell.
            earlier: assessor -> grade in the records; counts until the assessor has a final one in this review.
            settled: who decided as an adjudicator in the records, and how; binds until one decides in this review.
        """
        decided = self.adjudicated(cell) or settled
        if decided is not None:
            return decided[1]
        said = dict(earlier or {})
        said.update(
            (assessor, one.final) for assessor, one in self.grades.get(cell, {}).items() if one.final is not None
        )
        return grade_of_assessors(said.values()) if said else None
