"""Items that were edited: queues and screens leave them out, and they wait for grades in the next review, too."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("jinja2")

from rubric_measures.cli import main
from rubric_measures.formats.banks import load_bank, read_bank
from rubric_measures.measures.grade_sets import Grader
from rubric_measures.records.models import ItemGradeSet, grade_of_items, load_graded, provenance_of, write_graded
from rubric_measures.review import screens
from rubric_measures.review.queues import ORDERS, Material, QueueChoice, load_material
from rubric_measures.review.screens import Asked
from rubric_measures.review.session import Review, export_review, queue_of
from rubric_measures.review.store import CellKey, ReviewStore
from rubric_measures.types.entities import item_content
from tests.example_records import BANK, grade_set, passage, write_lines

ALPHA = {"key": "q1/alpha"}
CHANGED = "was changed, and its grades were not made anew since"


@pytest.fixture
def graded(tmp_path: Path) -> Path:
    """Two passages graded by the lexical grader in two ways; alpha has the gold answer "north"."""
    texts = {"alpha": "Where does the alpha river flow?", "beta": "Where is the beta layer?"}
    items: list[dict[str, Any]] = [
        {"query_id": "q1", "question_id": f"q1/{name}", "question_text": text} for name, text in texts.items()
    ]
    items[0]["gold_answers"] = ["north"]
    bank = write_lines(tmp_path / "bank.jsonl", [{"query_id": "q1", "query_text": "Query q1?", "items": items}])
    first, second = passage("q1", "d1", [], {"one": 1}), passage("q1", "d2", [], {"one": 2, "two": 1})
    first["text"], second["text"] = "The beta layer lies in the south.", "The alpha river flows north."
    source = write_lines(tmp_path / "passages.jsonl", [["q1", [first, second]]])
    out = tmp_path / "graded.jsonl.gz"
    assert main(["grade", str(source), "--bank", str(bank), "--model", "lexical", "-o", str(out)]) == 0
    return out


def reviewed(graded: Path, bank: Path, name: str, *edits: tuple[str, dict[str, Any]]) -> tuple[Path, Path]:
    """Records and bank that a review with these edits leaves."""
    material = load_material(graded, bank, Grader("lexical:1"))
    with closing(store_of(material, graded.parent / f"{name}.sqlite")) as store:
        for kind, payload in edits:
            states = store.snapshot().items
            store.edit_all("ada", [(kind, payload, {payload["key"]: states[payload["key"]].version})])
        made = export_review(Review(material, store, str(bank)), graded.parent / name).paths
    return Path(made[0]), Path(made[1])


def store_of(material: Material, path: Path) -> ReviewStore:
    return ReviewStore(path, material.bank, waiting=material.waiting)


def regraded(graded: Path, bank: Path, capsys: pytest.CaptureFixture[str], *more: str) -> tuple[Path, str]:
    out = graded.parent / f"new{len(list(graded.parent.iterdir()))}.jsonl.gz"
    capsys.readouterr()
    command = ["grade", str(graded), "--bank", str(bank), "--model", "lexical", "-o", str(out), *more]
    assert main(command) == 0
    return out, capsys.readouterr().err


def scored(graded: Path, bank: Path, capsys: pytest.CaptureFixture[str], *more: str) -> str:
    """What a leaderboard of the records says on standard error."""
    capsys.readouterr()
    assert main(["leaderboard", str(graded), "--bank", str(bank), "-m", "RubricCover(rel=4)@20", *more]) == 0
    return capsys.readouterr().err


def marks(bank: Path) -> dict[str, bool]:
    """The marks in a bank's file, of the items that have one."""
    items = [item for entry in read_bank(bank) for item in entry.items]
    return {str(item.item_id): item.info["regrade"] for item in items if isinstance(item.info, dict)}


def alpha_of(graded: Path) -> dict[str, int]:
    """doc_id -> the grade of alpha."""
    passages = load_graded(graded)[0].passages
    return {one.doc_id: grade_of_items(entry)["q1/alpha"] for one in passages for entry in one.exam_grades or ()}


OTHER_EDITS = [
    ("item_edit", {**ALPHA, "importance": "vital"}),
    ("item_edit", {**ALPHA, "text": "Where does the alpha river flow ?", "same_meaning": True}),
    ("item_edit", {"key": "q1/beta", "importance": "okay"}),
]


@pytest.mark.parametrize("edit", OTHER_EDITS, ids=["importance", "comma", "another item"])
def test_a_second_review_does_not_clear_what_the_first_one_marked(
    graded: Path, edit: tuple[str, dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    first = reviewed(
        graded, graded.with_name("bank.jsonl"), "first", ("item_edit", {**ALPHA, "gold_answers": ["west"]})
    )
    assert marks(first[1]) == {"q1/alpha": True}
    # What is scored before says that alpha's grades in both passages are of "north".
    old = "2 grades are older than an edit of their item, which the bank marks (info.regrade), and count as they stand"
    assert old in scored(*first, capsys)
    second = reviewed(*first, "second", edit)
    assert marks(second[1])["q1/alpha"] is True
    new, said = regraded(*second, capsys, "--only-changed")
    assert "2 grades of" in said
    # d2 has "north", the answer before, and not "west".
    assert alpha_of(new)["d2"] < alpha_of(second[0])["d2"] == alpha_of(graded)["d2"]
    assert old in scored(*second, capsys) and "older than" not in scored(new, second[1], capsys)
    # Graded anew it waits no longer, in a third review either; and what was made anew is not made again.
    assert load_material(new, second[1]).stale == frozenset()
    third = reviewed(new, second[1], "third", ("item_edit", {**ALPHA, "importance": "okay"}))
    assert marks(third[1])["q1/alpha"] is False
    assert "0 grades of" in regraded(*third, capsys, "--only-changed")[1]


def test_an_item_that_was_not_graded_anew_waits_in_the_next_review(graded: Path) -> None:
    first = reviewed(
        graded, graded.with_name("bank.jsonl"), "first", ("item_edit", {**ALPHA, "gold_answers": ["west"]})
    )
    material = load_material(*first)
    assert material.waiting == material.stale == {("q1", "q1/alpha")}
    with closing(store_of(material, graded.parent / "second.sqlite")) as store:
        review = Review(material, store, str(first[1]))
        states = store.snapshot().items
        assert {key: state.regrade for key, state in states.items()} == {"q1/alpha": True, "q1/beta": False}
        assert store.snapshot().left == {("q1", "q1/alpha"): CHANGED}
        for order in ORDERS:
            queue = queue_of(review, QueueChoice(order), store.snapshot())
            assert {cell.item_id for cell in queue} <= {"q1/beta"}
        for path, said in (
            ("bank", "Items of the whole bank that need regrading: 1"),
            ("check", f"This item {CHANGED}: grades of it are kept"),
        ):
            fields = {"q": "q1", "d": "d1", "i": "q1/alpha"} if path == "check" else {}
            content = getattr(screens, path)(review, Asked(f"/{path}", fields, {}, "ada", "token")).content
            assert said in re.sub(r"\s+", " ", re.sub("<[^>]+>", " ", content)), path
        # Its words change, and come back; it is retired, and added again: it waits all the same.
        for payload in ({"text": "What?"}, {"text": "Where does the alpha river flow?"}, {"gold_answers": ["north"]}):
            edit = {**ALPHA, **payload}
            store.edit_all("ada", [("item_edit", edit, {"q1/alpha": store.snapshot().items["q1/alpha"].version})])
            assert store.snapshot().items["q1/alpha"].regrade
        for _ in range(3):
            store.undo("ada")
        store.edit_all("ada", [("item_retire", ALPHA, {"q1/alpha": 0})])
        assert store.snapshot().left == {("q1", "q1/alpha"): "was retired since"}
        store.undo("ada")
        assert store.snapshot().items["q1/alpha"].regrade
        made = export_review(Review(material, store, str(first[1])), graded.parent / "again")
        assert made.waiting == 1 and marks(Path(made.paths[1])) == {"q1/alpha": True}


def test_another_grader_keeps_the_mark_and_makes_nobody_wait(graded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # A second grader, whose grades are not made anew.
    groups = load_graded(graded)
    for place, one in enumerate(groups[0].passages):
        assert one.exam_grades is not None
        extra = provenance_of(one.exam_grades[0])
        copy = one.exam_grades[0].replacing(llm="other", provenance={**extra, "grader": "other"})
        groups[0].passages[place] = one.replacing(exam_grades=[*one.exam_grades, copy])
    write_graded(graded, groups)
    first = reviewed(
        graded, graded.with_name("bank.jsonl"), "first", ("item_edit", {**ALPHA, "gold_answers": ["west"]})
    )
    new, said = regraded(*first, capsys, "--only-changed")
    assert "2 grades of" in said
    mine, other = (load_material(new, first[1], Grader(llm)) for llm in ("lexical:1", "other"))
    assert (mine.waiting, mine.stale) == (frozenset(), {("q1", "q1/alpha")})
    assert other.waiting == other.stale == {("q1", "q1/alpha")}
    comma = {**ALPHA, "text": "Where does the alpha river flow ?", "same_meaning": True}
    material = load_material(new, first[1], Grader("lexical:1"))
    with closing(store_of(material, graded.parent / "second.sqlite")) as store:
        store.edit_all("ada", [("item_edit", comma, {"q1/alpha": 0})])
        paths = export_review(Review(material, store, str(first[1])), graded.parent / "second").paths
    # The mark stays for the other one; the first one graded other words, and is asked again.
    second = Path(paths[0]), Path(paths[1])
    assert marks(second[1]) == {"q1/alpha": True}
    for llm in ("lexical:1", "other"):
        assert load_material(*second, Grader(llm)).waiting == {("q1", "q1/alpha")}
    assert "2 grades of" in regraded(*second, capsys, "--only-changed")[1]
    # Other gold answers make everybody wait again.
    third = reviewed(*second, "third", ("item_edit", {**ALPHA, "gold_answers": ["east"]}))
    assert load_material(*third, Grader("lexical:1")).waiting == {("q1", "q1/alpha")}
    assert "2 grades of" in regraded(*third, capsys, "--only-changed")[1]


def test_everything_graded_with_the_bank_that_has_the_mark_waits_for_nothing(
    graded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = reviewed(
        graded, graded.with_name("bank.jsonl"), "first", ("item_edit", {**ALPHA, "gold_answers": ["west"]})
    )
    new, _ = regraded(graded.with_name("passages.jsonl"), first[1], capsys)
    material = load_material(new, first[1])
    assert material.waiting == material.stale == frozenset()
    assert material.grade(CellKey("q1", "d2", "q1/alpha")).grade == alpha_of(new)["d2"]
    # The next bank has no mark of alpha any more, so nothing of it is called old, or is made again.
    second = reviewed(new, first[1], "second", ("item_edit", {"key": "q1/beta", "gold_answers": ["layer"]}))
    assert marks(second[1]) == {"q1/alpha": False, "q1/beta": True}
    assert load_material(*second).waiting == {("q1", "q1/beta")}
    assert "2 grades are older" in scored(*second, capsys)
    assert "2 grades of" in regraded(*second, capsys, "--only-changed")[1]


def test_grades_that_a_later_one_or_a_assessor_replaces_are_not_among_the_old_ones(
    graded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = reviewed(
        graded, graded.with_name("bank.jsonl"), "first", ("item_edit", {**ALPHA, "gold_answers": ["west"]})
    )
    groups = load_graded(first[0])
    for place, one in enumerate(groups[0].passages):
        assert one.exam_grades is not None
        if one.doc_id == "d1":
            ada = ItemGradeSet.build({"q1/alpha": 3}, answers=(), llm="human:ada")
            groups[0].passages[place] = one.replacing(exam_grades=[*one.exam_grades, ada])
    write_graded(first[0], groups)
    assert "2 grades are older" in scored(*first, capsys, "--grader", "lexical:1")
    assert "1 grade is older" in scored(*first, capsys, "--grader", "model=lexical:1,assessors=override")
    for place, one in enumerate(groups[0].passages):
        assert one.exam_grades is not None
        extra = provenance_of(one.exam_grades[0])
        anew = {"q1/alpha": item_content(load_bank(first[1]).items["q1"][0])}
        later = one.exam_grades[0].replacing(provenance={**extra, "regraded": anew})
        groups[0].passages[place] = one.replacing(exam_grades=[*one.exam_grades, later])
    write_graded(first[0], groups)
    assert "older than" not in scored(*first, capsys, "--grader", "lexical:1")


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
    yield Review(material, store, str(tmp_path / "bank.jsonl"))
    store.close()


def listed(review: Review, order: str) -> list[str]:
    """The item of each entry."""
    return sorted(cell.item_id for cell in queue_of(review, QueueChoice(order), review.store.snapshot()))


def shown(review: Review, path: str, **fields: str) -> str:
    screen: Any = getattr(screens, path or "queue")
    return str(screen(review, Asked(f"/{path}", fields, {}, "ada", "token")).content)


@pytest.mark.parametrize("order", sorted({*ORDERS} - {"decide", "differ"}))
def test_items_that_count_no_more_leave_every_queue(review: Review, order: str) -> None:
    store, first = review.store, listed(review, order)
    assert set(first) == {"q1/a", "q1/b", "q1/c", "q1/d"}
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


def test_screens_have_the_words_of_now(review: Review) -> None:
    place = {"order": "query", "q": "q1", "d": "d1", "i": "q1/a"}
    edit = {"key": "q1/a", "text": "What is an A?", "same_meaning": True}
    review.store.edit_all("bob", [("item_edit", edit, {"q1/a": 0})])
    page = shown(review, "check", **place)
    assert "What is an A?" in page and "What is a?" not in page
    # Reworded to mean something else: the grades were given to the old words, which are shown with them.
    version = review.store.snapshot().items["q1/a"].version
    review.store.edit_all("bob", [("item_edit", {"key": "q1/a", "text": "What is not a?"}, {"q1/a": version})])
    page = shown(review, "check", **place)
    assert f"This item {CHANGED}" in page and "What is a?" in page and "What is not a?" not in page
    assert CellKey("q1", "d1", "q1/a") not in queue_of(review, QueueChoice("query"), review.store.snapshot())
