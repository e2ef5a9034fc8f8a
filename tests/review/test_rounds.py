"""Review after review on what the last one exported: what waits for grades, waits until they were made anew."""

from __future__ import annotations

import random
import tempfile
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from rubric_measures.base.errors import InputError
from rubric_measures.formats.banks import load_bank, read_bank
from rubric_measures.measures.grade_sets import Grader
from rubric_measures.records.models import SelfRating, load_graded, provenance_of, write_graded
from rubric_measures.review.queues import Material, load_material
from rubric_measures.review.session import Review, export_review
from rubric_measures.review.store import ReviewStore
from rubric_measures.types.entities import item_content, make_item_id
from tests.example_records import grade_set, passage, write_lines


def make_files(folder: Path, chance: random.Random) -> tuple[Path, Path]:
    """Two queries of three items and three passages, by two graders; ids of q1's items are made of their texts."""
    records: list[Any] = []
    bank: list[Any] = []
    for query_id in ("q1", "q2"):
        texts = [f"What is {number} of {query_id}?" for number in range(3)]
        ids = [make_item_id(query_id, text) if query_id == "q1" else f"{query_id}/{text[8]}" for text in texts]
        items = [
            {"question_id": one, "question_text": text, "importance": chance.choice(["vital", "okay"])}
            for one, text in zip(ids, texts, strict=True)
        ]
        bank.append({"query_id": query_id, "query_text": "Query?", "items": items})
        passages = []
        for number in range(3):
            failed = {one: "unparsed" for one in ids if chance.random() < 0.1}
            sets = [
                grade_set({one: chance.randint(0, 5) for one in ids if one not in failed}, status=failed),
                grade_set(dict.fromkeys(ids, chance.randint(0, 5)), llm="other"),
            ]
            ranks = {run: 1 + (number + shift) % 3 for shift, run in enumerate(("one", "two", "three"))}
            passages.append(passage(query_id, f"{query_id}-{number}", sets, ranks, chance.choice([None, 0, 2])))
        records.append([query_id, passages])
    return write_lines(folder / "graded.jsonl", records), write_lines(folder / "bank.jsonl", bank)


def act(store: ReviewStore, material: Material, chance: random.Random) -> None:
    """Something that an assessor may do: grades, edits of every kind, and taking back."""
    assessor, snapshot = chance.choice(["ada", "bob"]), store.snapshot()
    live = [state for state in snapshot.items.values() if not state.retired]
    what = chance.choice(["grade"] * 4 + ["undo", "retire", "importance", "comma", "gold", "reword", "add", "split"])
    state = chance.choice(live) if live else None
    if what == "grade":
        cell = chance.choice(material.cells)
        grade, grader = chance.choice([0, 3, 5]), material.grade(cell).grade
        store.grade(assessor, cell, grade, grader)
        if grader not in (None, grade):
            store.decide(assessor, cell, "override", grade, "why")
    elif what == "undo":
        store.undo(assessor)
    elif what == "add":
        # Words that some item had once.
        item = chance.choice(list(snapshot.items.values())).history[0].item
        store.edit_all(
            assessor, [("item_add", {"query_id": item.query_id, "text": item.text, "importance": "okay"}, {})]
        )
    elif state is not None:
        if what == "comma" and state.place in material.stale:
            # While another grader's grades are older than the mark, other words make all wait again.
            what = "importance"
        text = state.item.text
        payload: dict[str, Any] = {
            "retire": {},
            "importance": {"importance": chance.choice(["vital", "okay"])},
            "comma": {"text": text.replace("What is", "What, then, is"), "same_meaning": True},
            "gold": {"gold_answers": [chance.choice("xy")]},
            "reword": {"text": f"{text} {chance.choice('ab')}"},
            "split": {"texts": [text, f"part {chance.randint(0, 9)}"]},
        }[what]
        kind = f"item_{what if what in ('retire', 'split') else 'edit'}"
        store.edit_all(assessor, [(kind, {"key": state.key, **payload}, {state.key: state.version})])


def regrade(graded: Path, bank: Path, waiting: set[str], chance: random.Random) -> Path:
    """The records as the main grader leaves them when it graded anew what waits; the other one did not."""
    items = {item.item_id: item for item in load_bank(bank)}
    groups = load_graded(graded)
    for group in groups:
        ids = sorted(one for one in waiting if items[one].query_id == group.query_id)
        for place, one in enumerate(group.passages):
            sets = list(one.exam_grades or ())
            for number, entry in enumerate(sets):
                if entry.llm != "model":
                    continue
                ratings = [rating for rating in entry.self_ratings or () if rating.item_id not in ids]
                ratings += [SelfRating(question_id=item_id, self_rating=chance.randint(0, 5)) for item_id in ids]
                known = provenance_of(entry).get("regraded", {})
                made = {"regraded": {**known, **{item_id: item_content(items[item_id]) for item_id in ids}}}
                status = {name: said for name, said in (entry.item_status or {}).items() if name not in ids}
                changes = {"self_ratings": ratings, "item_status": status, "provenance": made}
                sets[number] = entry.replacing(**changes)
            group.passages[place] = one.replacing(exam_grades=sets)
    path = graded.with_name("regraded.jsonl")
    write_graded(path, groups)
    return path


def marks(bank: Path) -> set[str]:
    items = [item for entry in read_bank(bank) for item in entry.items]
    return {str(item.item_id) for item in items if isinstance(item.info, dict) and item.info.get("regrade")}


@given(st.integers(0, 1 << 30))
@settings(max_examples=15, deadline=None)
def test_items_wait_for_grades_review_after_review(seed: int) -> None:
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory() as name:
        graded, bank = make_files(Path(name), chance)
        pending: set[str] = set()
        for number in range(3):
            material = load_material(graded, bank, Grader("model"))
            # What was not graded anew waits on; what was, waits no longer.
            assert {item_id for _, item_id in material.waiting} == pending
            with closing(
                ReviewStore(Path(name) / f"{number}.sqlite", material.bank, waiting=material.waiting)
            ) as store:
                for _ in range(chance.randint(0, 6)):
                    with suppress(InputError):
                        act(store, material, chance)
                states = store.snapshot().items.values()
                folder = Path(name) / str(number)
                paths = export_review(Review(material, store, str(bank)), folder).paths
            graded, bank, pending = Path(paths[0]), Path(paths[1]), {one.item.item_id for one in states if one.waits}
            assert pending <= marks(bank)
            if {item.item_id for item in load_bank(bank)} <= pending:
                return
            if pending and chance.random() < 0.5:
                graded, pending = regrade(graded, bank, pending, chance), set()
