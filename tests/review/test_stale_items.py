"""Queues and screens follow edits of the bank: what left it is not asked for, and words are new."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("jinja2")

from rubric_measures import RubricCover
from rubric_measures.analysis.calibration import AuditPlan
from rubric_measures.measures.grade_sets import Grader
from rubric_measures.review import screens
from rubric_measures.review.queues import ORDERS, QueueChoice, load_material, make_queue
from rubric_measures.review.screens import Asked
from rubric_measures.review.session import Review, cells_of, export_review, queue_of
from rubric_measures.review.store import CellKey, ReviewStore
from tests.example_records import BANK, grade_set, passage, write_lines


@pytest.fixture
def review(tmp_path: Path) -> Iterator[Review]:
    """q1: four items on three passages, of which two graders think differently everywhere; run two ranks only d1."""
    passages = [
        passage(
            "q1",
            f"d{number}",
            [
                grade_set({f"q1/{letter}": 5 for letter in "abcd"}),
                grade_set({f"q1/{letter}": 0 for letter in "abcd"}, llm="other"),
            ],
            {"one": number, "two": 1} if number == 1 else {"one": number},
        )
        for number in (1, 2, 3)
    ]
    write_lines(tmp_path / "graded.jsonl", [["q1", passages]])
    write_lines(tmp_path / "bank.jsonl", BANK)
    material = load_material(tmp_path / "graded.jsonl", tmp_path / "bank.jsonl", Grader("model"))
    store = ReviewStore(tmp_path / "graded.jsonl.review.sqlite", material.bank)
    measures = [RubricCover(rel=4) @ 20]
    yield Review(material, store, measures, str(tmp_path / "bank.jsonl"), tmp_path)
    store.close()


def listed(review: Review, order: Any) -> list[str]:
    """The item of each entry; the queue that is kept and one that is made anew are the same."""
    snapshot = review.store.snapshot()
    choice = QueueChoice(order)
    queue = queue_of(review, choice, snapshot)
    entries = list(queue)
    assert [queue.place(cell) for cell in entries] == list(range(len(entries)))
    audit = cells_of(review.audit(snapshot))
    made = make_queue(review.material, choice, snapshot, audit=audit)
    assert entries == list(made)
    return sorted(cell.item_id for cell in entries)


def shown(review: Review, path: str, **fields: str) -> str:
    screen: Any = getattr(screens, path or "queue")
    return str(screen(review, Asked(f"/{path}", fields, {}, "ada", "token")).content)


# These grades have no distribution, so the queue of uncertainty is empty from the start.
@pytest.mark.parametrize("order", sorted({*ORDERS} - {"uncertainty", "decide", "differ"}))
def test_items_that_count_no_more_leave_every_queue(review: Review, order: str) -> None:
    store, first = review.store, listed(review, order)
    assert set(first) == {"q1/a", "q1/b", "q1/c", "q1/d"}
    # Assessors' grades move entries of the queue of disagreement; those of items that left stay out as well.
    store.grade("bob", CellKey("q1", "d1", "q1/a"), 2, 5)
    store.decide("bob", CellKey("q1", "d1", "q1/a"), "override", 2, "half")
    store.edit_all("ada", [("item_retire", {"key": "q1/a"}, {"q1/a": 0})])
    assert set(listed(review, order)) == {"q1/b", "q1/c", "q1/d"}
    store.edit_all("ada", [("item_edit", {"key": "q1/b", "text": "What is beta?"}, {"q1/b": 0})])
    assert set(listed(review, order)) == {"q1/c", "q1/d"}
    store.edit_all("ada", [("item_edit", {"key": "q1/c", "gold_answers": ["x"]}, {"q1/c": 0})])
    assert set(listed(review, order)) == {"q1/d"}
    store.edit_all("ada", [("item_edit", {"key": "q1/d", "text": "What is d ?", "same_meaning": True}, {"q1/d": 0})])
    assert set(listed(review, order)) == {"q1/d"}
    store.edit_all(
        "ada", [("item_split", {"key": "q1/d", "texts": ["d1?", "d2?"]}, {"q1/d": store.events()[-1].event_id})]
    )
    assert listed(review, order) == [] and f'data-order="{order}"' in shown(review, "", order=order)
    # All comes back when it is taken back, or given back.
    for _ in range(5):
        store.undo("ada")
    assert listed(review, order) == first


def test_an_audit_sample_is_filled_up_from_the_items_that_count(review: Review) -> None:
    review.plan = AuditPlan([], 3, items=2)
    assert len(listed(review, "audit")) == 6
    review.store.edit_all("ada", [("item_merge", {"keys": ["q1/a", "q1/b"], "text": "both?"}, {"q1/a": 0, "q1/b": 0})])
    # Two items are left on three passages.
    assert listed(review, "audit") == ["q1/c"] * 3 + ["q1/d"] * 3


def test_screens_have_the_words_of_now(review: Review) -> None:
    place = {"order": "query", "q": "q1", "d": "d1", "i": "q1/a"}
    edit = {"key": "q1/a", "text": "What is an A?", "same_meaning": True}
    review.store.edit_all("bob", [("item_edit", edit, {"q1/a": 0})])
    page = shown(review, "check", **place)
    assert "What is an A?" in page and "What is a?" not in page
    # So has the list of what assessors changed.
    cell = CellKey("q1", "d1", "q1/a")
    review.store.grade("ada", cell, 2, 5)
    review.store.decide("ada", cell, "override", 2, "half")
    page = shown(review, "impact")
    assert "What is an A?" in page[page.rindex("<h2") :] and "What is a?" not in page[page.rindex("<h2") :]
    review.store.undo("ada")
    review.store.undo("ada")
    # Reworded to mean something else: the grades were given to the old words, which are shown with them.
    version = review.store.snapshot().items["q1/a"].version
    review.store.edit_all("bob", [("item_edit", {"key": "q1/a", "text": "What is not a?"}, {"q1/a": version})])
    page = shown(review, "check", **place)
    assert "This item was reworded since" in page and "What is a?" in page and "What is not a?" not in page
    assert CellKey("q1", "d1", "q1/a") not in queue_of(review, QueueChoice("query"), review.store.snapshot())


def test_an_export_says_how_many_grades_count_no_more(review: Review, tmp_path: Path) -> None:
    for assessor, item, grade in (("ada", "q1/a", 5), ("bob", "q1/a", 5), ("ada", "q1/b", 5), ("ada", "q1/c", 5)):
        review.store.grade(assessor, CellKey("q1", "d1", item), grade, 5)
    # Undecided is no grade, and no export has it.
    review.store.grade("ada", CellKey("q1", "d2", "q1/a"), None, 5)

    def exported(place: str) -> list[str]:
        made = export_review(review.store, review.material, str(tmp_path / "bank.jsonl"), tmp_path / place)
        return [note for note in made.notes if "do not count" in note]

    assert exported("before") == []
    review.store.edit_all("bob", [("item_retire", {"key": "q1/a"}, {"q1/a": 0})])
    review.store.edit_all("bob", [("item_edit", {"key": "q1/b", "gold_answers": ["x"]}, {"q1/b": 0})])
    (note,) = exported("after")
    assert note.startswith("3 grades of the export are of items that left the bank, or wait for grades anew")
    # Grades of an earlier review, too: those of the first export, beside one given now.
    material = load_material(
        tmp_path / "before" / "graded.jsonl.gz", tmp_path / "before" / "bank.jsonl", Grader("model")
    )
    with closing(ReviewStore(tmp_path / "second.sqlite", material.bank)) as store:
        store.grade("ada", CellKey("q1", "d1", "q1/a"), 5, 5, blind=False)
        store.grade("ada", CellKey("q1", "d3", "q1/a"), 5, 5)
        store.edit_all("bob", [("item_retire", {"key": "q1/a"}, {"q1/a": 0})])
        made = export_review(store, material, str(tmp_path / "before" / "bank.jsonl"), tmp_path / "third")
    assert [note.partition(" are ")[0] for note in made.notes] == ["3 grades of the export"]
