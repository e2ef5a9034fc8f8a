"""The state of a review without its page: events, versions, undo, queues, agreement, files, access."""

from __future__ import annotations

import json
import sqlite3
import tempfile
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rubric_measures.base.errors import InputError
from rubric_measures.cli import main
from rubric_measures.formats.banks import bank_entries, load_bank, read_bank
from rubric_measures.measures.grade_sets import Grader, grades_by_assessors
from rubric_measures.records.models import load_graded
from rubric_measures.review.app import open_review
from rubric_measures.review.queues import (
    Material,
    QueueChoice,
    load_material,
    make_queue,
)
from rubric_measures.review.screens import mark_words
from rubric_measures.review.session import (
    Review,
    agreement_rows,
    corrected_groups,
    export_review,
)
from rubric_measures.review.store import (
    CellKey,
    ConflictError,
    ItemState,
    ReviewStore,
    Snapshot,
    edited_entries,
)
from rubric_measures.types.entities import RubricItem, TestBank, make_item_id
from tests.example_records import BANK, bank_from_items, grade_set, passage, write_lines

A, B = CellKey("q1", "d1", "q1/a"), CellKey("q1", "d1", "q1/b")


_OPEN: list[ReviewStore] = []


def live_items(snapshot: Snapshot, query_id: str) -> list[ItemState]:
    return [state for state in snapshot.live().values() if state.item.query_id == query_id]


def open_store(path: Path | str, bank: TestBank) -> ReviewStore:
    """A store that is closed when the test ends."""
    _OPEN.append(ReviewStore(path, bank))
    return _OPEN[-1]


@pytest.fixture(autouse=True)
def _close_stores() -> Iterator[None]:
    yield
    while _OPEN:
        _OPEN.pop().close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """q1: a second grader says 1 where the first says 4 (item a of d1), and the same elsewhere."""
    records = [
        [
            "q1",
            [
                passage(
                    "q1",
                    "d1",
                    [grade_set({"q1/a": 4, "q1/b": 1, "q1/c": 0}), grade_set({"q1/a": 1, "q1/b": 1}, llm="other")],
                    {"one": 1},
                    2,
                ),
                passage("q1", "d2", [grade_set({"q1/a": 0, "q1/b": 5, "q1/c": 0})], {"one": 2, "two": 1}, 0),
            ],
        ],
        ["q2", [passage("q2", "d3", [grade_set({"q2/a": 5})], {"one": 1}, 3)]],
    ]
    write_lines(tmp_path / "graded.jsonl.gz", records)
    write_lines(tmp_path / "bank.jsonl", BANK)
    return tmp_path


@pytest.fixture
def material(folder: Path) -> Material:
    return load_material(folder / "graded.jsonl.gz", folder / "bank.jsonl", Grader("model"))


@pytest.fixture
def store(folder: Path, material: Material) -> ReviewStore:
    return open_store(folder / "state.sqlite", material.bank)


def texts(store: ReviewStore, query_id: str = "q1") -> list[str]:
    return [state.item.text for state in live_items(store.snapshot(), query_id)]


@pytest.mark.parametrize("wrong", [-1, 6])
def test_grades_outside_of_the_scale_and_hasty_decisions_are_refused(store: ReviewStore, wrong: int) -> None:
    with pytest.raises(InputError, match="0 to 5"):
        store.grade("ada", A, wrong, 4)
    with pytest.raises(InputError, match="your own grade"):
        store.decide("ada", A, "accept", 4, "")
    with pytest.raises(InputError, match="accept, override or adjudicate"):
        store.decide("ada", A, "maybe", 4, "x")
    assert store.events() == []
    # Undecided is no grade of one's own either.
    store.grade("ada", A, None, 4)
    for decision in ("accept", "override"):
        with pytest.raises(InputError, match="your own grade"):
            store.decide("ada", A, decision, 4, "x")
    assert store.snapshot().grades[A]["ada"].stands is None


def test_a_reworded_item_has_a_new_id_and_a_corrected_one_keeps_its_grades(store: ReviewStore) -> None:
    store.edit_all("ada", [("item_edit", {"key": "q1/a", "text": "What is alpha?"}, {"q1/a": 0})])
    state = store.snapshot().items["q1/a"]
    assert state.item.item_id == make_item_id("q1", "What is alpha?") and state.regrade
    store.edit_all("ada", [("item_edit", {"key": "q1/b", "text": "What is b ?", "same_meaning": True}, {"q1/b": 0})])
    state = store.snapshot().items["q1/b"]
    assert (state.item.item_id, state.item.text, state.regrade) == ("q1/b", "What is b ?", False)
    store.edit_all("ada", [("item_edit", {"key": "q1/c", "importance": "vital", "weight": 2.0}, {"q1/c": 0})])
    state = store.snapshot().items["q1/c"]
    assert (state.item.importance, state.item.weight, state.regrade) == ("vital", 2.0, False)
    store.edit_all("ada", [("item_edit", {"key": "q1/d", "gold_answers": ["x"]}, {"q1/d": 0})])
    state = store.snapshot().items["q1/d"]
    assert (state.item.item_id, state.item.gold_answers, state.regrade) == ("q1/d", ("x",), True)
    assert [version.assessor for version in state.history] == ["", "ada"]


def test_split_and_merge_keep_place_and_properties(store: ReviewStore) -> None:
    store.edit_all("ada", [("item_split", {"key": "q1/a", "texts": ["one?", "two?"]}, {"q1/a": 0})])
    assert texts(store) == ["one?", "two?", "What is b?", "What is c?", "What is d?"]
    assert [state.item.importance for state in live_items(store.snapshot(), "q1")][:2] == ["vital", "vital"]
    # okay and vital merged are vital; the new item stands where the last of them stood.
    store.edit_all("bob", [("item_merge", {"keys": ["q1/c", "q1/d"], "text": "c and d?"}, {"q1/c": 0, "q1/d": 0})])
    assert texts(store) == ["one?", "two?", "What is b?", "c and d?"]
    assert live_items(store.snapshot(), "q1")[-1].item.importance == "vital"
    store.undo("bob")
    store.undo("ada")
    assert texts(store) == ["What is a?", "What is b?", "What is c?", "What is d?"]
    assert not any(state.version or state.retired for state in store.snapshot().items.values())


def test_a_text_stands_once_in_a_query(store: ReviewStore) -> None:
    for kind, payload, expected in [
        ("item_add", {"query_id": "q1", "text": "new?"}, {}),
        ("item_edit", {"key": "q1/a", "text": "other?"}, {"q1/a": 0}),
    ]:
        store.edit_all("ada", [(kind, payload, expected)])
    for text in ("new?", "other?"):
        with pytest.raises(InputError, match="already"):
            store.edit_all("ada", [("item_add", {"query_id": "q1", "text": text}, {})])
    with pytest.raises(InputError, match="has an item with this text already"):
        store.edit_all("ada", [("item_split", {"key": "q1/b", "texts": ["x?", "x?"]}, {"q1/b": 0})])
    with pytest.raises(InputError, match="needs a text"):
        store.edit_all("ada", [("item_add", {"query_id": "q1", "text": " "}, {})])


def test_words_that_an_item_left_behind_can_be_used_again(tmp_path: Path) -> None:
    item = RubricItem(make_item_id("q", "old?"), "q", "old?")
    store = open_store(tmp_path / "s.sqlite", bank_from_items([item]))
    store.edit_all("ada", [("item_edit", {"key": item.item_id, "text": "new?"}, {item.item_id: 0})])
    store.edit_all("bob", [("item_add", {"query_id": "q", "text": "old?"}, {})])
    assert sorted(texts(store, "q")) == ["new?", "old?"]
    # Taking back ada's rewording would make two items of the old words.
    with pytest.raises(InputError, match="cannot be taken back"):
        store.undo("ada")
    assert store.undo("bob") is not None and store.undo("ada") is not None
    assert texts(store, "q") == ["old?"]
    assert store.undo("ada") is None


def test_state_survives_and_two_stores_on_one_file_see_each_other(folder: Path, material: Material) -> None:
    one, two = (open_store(folder / "state.sqlite", material.bank) for _ in range(2))
    one.grade("ada", A, 2, 4)
    assert two.snapshot().grades[A]["ada"].first == 2
    two.edit_all("bob", [("item_retire", {"key": "q1/a"}, {"q1/a": 0})])
    with pytest.raises(ConflictError):
        one.edit_all("ada", [("item_edit", {"key": "q1/a", "text": "x?"}, {"q1/a": 0})])
    assert one.secret("token") == two.secret("token") != one.secret("sessions")
    one.close()
    two.close()
    assert len(open_store(folder / "state.sqlite", material.bank).events()) == 2


def test_a_state_of_another_version_is_refused_and_stays_as_it_was(folder: Path, material: Material) -> None:
    path = folder / "old.sqlite"
    with closing(sqlite3.connect(path)) as file, file:
        file.execute("create table events (event_id integer primary key, payload text)")
        file.execute("insert into events values (1, '{}')")
    before = path.read_bytes()
    with pytest.raises(InputError, match=r"old\.sqlite: cannot be used .* name another state file"):
        open_store(path, material.bank)
    assert path.read_bytes() == before
    with pytest.raises(InputError, match="cannot be used as the state"):
        open_store(folder / "bank.jsonl", material.bank)


def test_a_grade_that_no_records_hold_is_said_with_the_file(folder: Path, material: Material) -> None:
    store = open_store(folder / "s.sqlite", material.bank)
    store.grade("ada", A, 2, 4)
    with closing(sqlite3.connect(folder / "s.sqlite")) as file, file:
        file.execute("update grade set first = 1 << 62")
    with pytest.raises(InputError, match=r"s\.sqlite: is damaged"):
        open_store(folder / "s.sqlite", material.bank).snapshot()


def test_a_new_state_waits_for_another_server_that_begins_with_it(folder: Path, material: Material) -> None:
    with closing(sqlite3.connect(folder / "s.sqlite", isolation_level=None, check_same_thread=False)) as other:
        other.execute("begin immediate")
        free = threading.Timer(0.5, other.execute, ["rollback"])
        free.start()
        open_store(folder / "s.sqlite", material.bank).grade("ada", A, 4, 4)
        free.join()


_STEPS = st.lists(
    st.tuples(
        st.sampled_from(["ada", "bob"]),
        st.sampled_from(["edit", "add", "retire", "split", "merge", "grade", "undo"]),
        st.integers(0, 5),
    ),
    max_size=14,
)


def act(store: ReviewStore, assessor: str, what: str, number: int) -> None:
    """What an assessor may do."""
    live = live_items(store.snapshot(), "q")
    state = live[number % len(live)] if live else None
    if what == "grade":
        store.grade(assessor, CellKey("q", "d", "i"), number, 3)
    elif what == "add":
        store.edit_all(assessor, [("item_add", {"query_id": "q", "text": f"{number}?"}, {})])
    elif state is not None and what == "edit":
        payload = {"key": state.key, "text": f"{number + 1}?"}
        store.edit_all(assessor, [("item_edit", payload, {state.key: state.version})])
    elif state is not None and what == "retire":
        store.edit_all(assessor, [("item_retire", {"key": state.key}, {state.key: state.version})])
    elif state is not None and what == "split":
        payload = {"key": state.key, "texts": [f"{number}a?", f"{number}b?"]}
        store.edit_all(assessor, [("item_split", payload, {state.key: state.version})])
    elif len(live) > 1 and what == "merge":
        expected = {one.key: one.version for one in live[:2]}
        store.edit_all(assessor, [("item_merge", {"keys": list(expected), "text": f"{number}m?"}, expected)])


def told(store: ReviewStore) -> list[Any]:
    """How things stand, without the numbers of events."""
    snapshot = store.snapshot()
    said = [(cell, name, one) for cell, of_cell in snapshot.grades.items() for name, one in of_cell.items()]
    grades = [(cell, name, one.grade, one.first, one.final) for cell, name, one in said]
    states = snapshot.items.values()
    return [grades, *((state.item, state.retired, state.regrade, len(state.history)) for state in states)]


@settings(max_examples=60, deadline=None)
@given(_STEPS)
def test_what_is_undone_was_never_done(steps: list[tuple[str, str, int]]) -> None:
    """After each undo of the last action things stand as before it, in this store and in one that reads it all anew."""
    bank = bank_from_items([RubricItem(make_item_id("q", f"{n}?"), "q", f"{n}?") for n in range(3)])
    with tempfile.TemporaryDirectory() as name:
        store, stack = ReviewStore(Path(name) / "s", bank), list[tuple[str, list[Any]]]()
        for assessor, what, number in steps:
            before, first = told(store), store.snapshot()
            held = (dict(first.grades), dict(first.items))
            try:
                if what == "undo" and stack and stack[-1][0] == assessor:
                    assert store.undo(assessor) is not None
                    assert told(store) == stack.pop()[1]
                elif what != "undo":
                    act(store, assessor, what, number)
                    if store.snapshot() is not first:
                        stack.append((assessor, before))
            except InputError:
                assert told(store) == before
            # Whoever looks at the earlier snapshot still sees what it was.
            assert (first.grades, first.items) == held
        with closing(ReviewStore(Path(name) / "s", bank)) as again:
            assert told(again) == told(store)
            read, kept = again.snapshot(), store.snapshot()
            assert (read.grades, read.items, read.last_id) == (kept.grades, kept.items, kept.last_id)
        snapshot = store.snapshot()
        assert {item.item_id for item in bank} <= set(snapshot.items)
        assert len(snapshot.live()) == sum(not state.retired for state in snapshot.items.values())
        store.close()


def test_a_queue_of_some_queries(material: Material, store: ReviewStore) -> None:
    found = make_queue(material, QueueChoice("query", queries=("q2",)), store.snapshot())
    assert {cell.query_id for cell in found} == {"q2"}


def test_a_changed_grade_leaves_the_first_blind_one_to_agreement(material: Material, store: ReviewStore) -> None:
    """The reviewer's case: 5 given blindly where the grader says 1, then changed to 2."""
    store.grade("zoe", B, 5, 1)
    store.grade("zoe", B, 2, 1, blind=False)
    said = store.snapshot().grades[B]["zoe"]
    assert (said.first, said.blind, said.grade, said.final) == (5, True, 2, None)
    assert [(row.pairs, row.exact) for row in agreement_rows(material, store.snapshot())] == [(1, 0.0)]
    store.decide("zoe", B, "override", 2, "half of it")
    said = store.snapshot().grades[B]["zoe"]
    assert (said.first, said.blind, said.grade, said.final) == (5, True, 2, 2)
    # Undecided is no grade: the first one comes after it, and is as blind as both are.
    store.grade("ada", B, None, 1)
    store.grade("ada", B, 3, 1)
    store.grade("bob", B, None, 1, blind=False)
    store.grade("bob", B, 3, 1)
    assessors = store.snapshot().grades[B]
    assert (assessors["ada"].first, assessors["ada"].blind) == (3, True)
    assert (assessors["bob"].first, assessors["bob"].blind) == (3, False)
    # Taking the later grade back leaves the first one.
    store.grade("eve", A, 0, 4)
    store.grade("eve", A, 4, 4, blind=False)
    store.undo("eve")
    said = store.snapshot().grades[A]["eve"]
    assert (said.first, said.blind, said.grade, said.final) == (0, True, 0, None)


def test_to_have_looked_is_nothing_to_take_back(store: ReviewStore) -> None:
    store.grade("ada", A, 4, 4)
    store.look("ada", [A, B])
    undone = store.undo("ada")
    assert undone is not None and undone.kind == "grade"
    assert A not in store.snapshot().grades or "ada" not in store.snapshot().grades[A]


def test_export_appends_and_a_second_export_repeats_nothing(
    folder: Path, material: Material, store: ReviewStore
) -> None:
    store.grade("ada", A, 4, 4)
    store.grade("bob", B, None, 1)
    paths = export_review(Review(material, store, str(folder / "bank.jsonl")), folder / "out").paths
    after = load_graded(paths[0])
    sets = after[0].passages[0].exam_grades or []
    assert [one.llm for one in sets] == ["model", "other", "human:ada", "human:ada"]
    assert sets[:2] == (material.groups[0].passages[0].exam_grades or [])
    again = load_material(paths[0], paths[1], Grader("model"))
    assert next(corrected_groups(again, store.snapshot())).passages == after[0].passages
    # Beside a grade that is there already a further one of the same passage is new.
    store.grade("ada", B, 1, 1)
    [more, *_] = next(corrected_groups(again, store.snapshot())).passages
    assert grades_by_assessors(more, None, None).by_assessor["human:ada"] == {"q1/a": 4, "q1/b": 1}
    assert load_bank(paths[1]) == material.bank
    assert read_bank(paths[1])[0].items == read_bank(folder / "bank.jsonl")[0].items
    with pytest.raises(InputError, match="another folder"):
        export_review(Review(material, store, str(folder / "out" / "bank.jsonl")), folder / "out")


def test_an_edited_bank_keeps_what_else_its_file_said(tmp_path: Path) -> None:
    item = {"query_id": "q", "nugget_id": "n1", "nugget_text": "Old.", "info": {"by": "x"}, "colour": "red"}
    other = {"query_id": "q", "nugget_id": "n2", "nugget_text": "Other.", "colour": "blue"}
    entry = {
        "query_id": "q",
        "query_text": "Q?",
        "test_collection": "c",
        "info": {"model": "m"},
        "items": [item, other],
    }
    write_lines(tmp_path / "bank.jsonl", [entry])
    bank = load_bank(tmp_path / "bank.jsonl")
    store = open_store(tmp_path / "s.sqlite", bank)
    store.edit_all("ada", [("item_edit", {"key": "n1", "text": "New."}, {"n1": 0})])
    (made,) = edited_entries(read_bank(tmp_path / "bank.jsonl"), bank, store.snapshot())
    said = {"query_id": "q", "query_text": "Q?", "test_collection": "c", "info": {"model": "m"}}
    edited, kept = made.row["items"]
    assert made.row == {**said, "former_items": ["n1"], "items": [edited, other]} and kept == other
    assert (edited["nugget_text"], edited["nugget_id"]) == ("New.", make_item_id("q", "New."))
    assert (edited["colour"], edited["info"]["by"], edited["info"]["edited_by"]) == ("red", "x", "ada")
    assert bank_entries(bank)[0].items[0].item_id == "n1"


def test_files_can_be_made_without_a_server(
    folder: Path, store: ReviewStore, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("jinja2")
    made = store.grade("ada", A, 4, 4)
    store.close()
    common = ["review", str(folder / "graded.jsonl.gz"), "--bank", str(folder / "bank.jsonl"), "--grader", "model"]
    state = ["--state", str(folder / "state.sqlite")]
    assert main([*common, *state, "--export", str(folder / "out")]) == 0
    (line,) = (folder / "out" / "audit.jsonl").read_text().splitlines()
    assert json.loads(line)["person"] == "ada" and json.loads(line)["uid"] == made.uid
    assert main([*common, "--state", str(folder / "stat.sqlite"), "--export", str(folder / "other")]) == 2
    assert not (folder / "other").exists() and not (folder / "stat.sqlite").exists()
    assert main(["review", "-", "--bank", "x"]) == 2
    assert "no texts of queries" not in capsys.readouterr().err
    bare = [{key: value for key, value in entry.items() if key != "query_text"} for entry in BANK]
    write_lines(folder / "bank.jsonl", bare)
    # Records that were moved have no state beside them; and who only looked at a report did nothing to export.
    assert main([*common, "--export", str(folder / "new")]) == 2 and not (folder / "new").exists()
    said = capsys.readouterr().err
    with closing(open_review(common[1], common[3], grader="model").store) as looked:
        looked.look("ada", [A])
    assert main([*common, "--export", str(folder / "new")]) == 2 and not (folder / "new").exists()
    assert "bank.jsonl: has no texts of queries, so assessors see ids; give them" in said
    assert "graded.jsonl.gz.review.sqlite: holds nothing that assessors did, so there is nothing to export" in said


def test_a_state_goes_on_only_with_what_it_was_begun_with(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    common = ["review", str(folder / "graded.jsonl.gz"), "--bank", str(folder / "bank.jsonl"), "--grader", "model"]
    # An export of nothing begins no review.
    assert main([*common, "--export", str(folder / "out")]) == 2
    assert not list(folder.glob("*.sqlite"))
    open_review(common[1], common[3], grader="model").store.close()
    assert main([*common[:-1], "other", "--export", str(folder / "out")]) == 2
    assert "another grader" in capsys.readouterr().err
    write_lines(folder / "bank.jsonl", BANK[:2])
    assert main([*common, "--export", str(folder / "out")]) == 2
    assert "another bank" in capsys.readouterr().err


def test_records_without_the_reviewed_passages_are_refused(
    folder: Path, store: ReviewStore, capsys: pytest.CaptureFixture[str]
) -> None:
    store.grade("ada", CellKey("q2", "d3", "q2/a"), 5, 5)
    write_lines(folder / "less.jsonl", [["q1", [passage("q1", "d1", [grade_set({"q1/a": 4})])]]])
    command = [
        "review",
        str(folder / "less.jsonl"),
        "--bank",
        str(folder / "bank.jsonl"),
        "--export",
        str(folder / "o"),
    ]
    assert main([*command, "--state", str(folder / "state.sqlite")]) == 2
    assert "has grades of 1 passage" in capsys.readouterr().err


@given(st.text(max_size=200), st.text(max_size=60))
def test_marking_changes_no_character(text: str, item: str) -> None:
    assert "".join(piece.text for piece in mark_words(text, item)) == text


def test_marked_words_have_the_stem_of_a_content_word() -> None:
    marked = [piece.text for piece in mark_words("The Epidermis of skins is the layer.", "Which layer of the skin?")]
    assert marked == ["The Epidermis of ", "skins", " is the ", "layer", "."]


def test_an_export_replaces_an_export_and_nothing_else(folder: Path, material: Material, store: ReviewStore) -> None:
    target = folder / "out"
    target.mkdir()
    (target / "bank.jsonl").write_text("somebody's")
    with pytest.raises(InputError, match=r"holds bank\.jsonl already"):
        export_review(Review(material, store, str(folder / "bank.jsonl")), target)
    assert [path.name for path in target.iterdir()] == ["bank.jsonl"]
    (target / "bank.jsonl").unlink()
    for _ in range(2):
        paths = export_review(Review(material, store, str(folder / "bank.jsonl")), target).paths
    assert load_bank(target / "bank.jsonl") == material.bank
    # Also one that was killed: the first file that it writes is what it is known by.
    assert min(map(Path, paths), key=lambda path: path.stat().st_mtime_ns).name == "audit.jsonl"


def test_a_real_grade_of_another_program_can_be_accepted(folder: Path) -> None:
    write_lines(folder / "real.jsonl", [["q1", [passage("q1", "d2", [grade_set({"q1/a": 3.25, "q1/b": 5})])]]])
    found = load_material(folder / "real.jsonl", folder / "bank.jsonl")
    store = open_store(folder / "real.sqlite", found.bank)
    cell = CellKey("q1", "d2", "q1/a")
    store.grade("ada", cell, 4, found.grade(cell).grade)
    store.decide("ada", cell, "accept", found.grade(cell).grade, "near enough")
    assert store.snapshot().grades[cell]["ada"].stands == 3.25
