"""No screen tells a grade that its reader has still to give: they are the same whatever the grade is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("jinja2")

from rubric_measures.measures.grade_sets import Grader
from rubric_measures.review import screens
from rubric_measures.review.queues import load_material
from rubric_measures.review.screens import Asked
from rubric_measures.review.session import Review, export_review
from rubric_measures.review.store import CellKey, ReviewStore
from tests.example_records import BANK, grade_set, passage, write_lines

Grades = dict[str, int]
A, B = CellKey("q1", "d1", "q1/a"), CellKey("q1", "d2", "q1/b")
# What two graders say of two passages.
ONE: list[tuple[Grades, Grades]] = [
    ({"q1/a": 5, "q1/b": 3}, {"q1/a": 0, "q1/b": 1}),
    ({"q1/a": 1, "q1/b": 5}, {"q1/a": 4, "q1/b": 0}),
]
SWAPPED = [(other, model) for model, other in ONE]
_OPEN: list[ReviewStore] = []


@pytest.fixture(autouse=True)
def _close_stores() -> Iterator[None]:
    yield
    while _OPEN:
        _OPEN.pop().close()


def make_files(folder: Path, grades: list[tuple[Grades, Grades]]) -> list[str]:
    """Records of two graders with replies that say the grade, and an extraction; returns the command's arguments.

    Run one ranks both passages, two and three one each: no grade moves all runs alike.
    """
    folder.mkdir()
    passages = []
    for number, (model, other) in enumerate(grades, 1):
        sets = [grade_set(model), grade_set(other, llm="other")]
        for entry in sets:
            rated = {one["question_id"]: one["self_rating"] for one in entry["self_ratings"]}
            entry["details"] = {one: {"reason": f"<b>Worth {grade}</b>"} for one, grade in rated.items()}
            entry["answers"] = [
                [rating["question_id"], f"Rating: {rating['self_rating']}"] for rating in entry["self_ratings"]
            ]
        extraction = {**grade_set({"q1/a": 1, "q1/b": 0}, prompt="Extraction"), "self_ratings": None}
        extraction["answers"] = [["q1/a", "taken from it"], ["q1/b", "4"]]
        passages.append(
            passage(
                "q1", f"d{number}", [*sets, extraction], {"one": number, ("two", "three")[number - 1]: 1}, number - 1
            )
        )
    write_lines(folder / "graded.jsonl", [["q1", passages]])
    write_lines(folder / "bank.jsonl", BANK)
    return [str(folder / "graded.jsonl"), "--bank", str(folder / "bank.jsonl")]


def open_review(folder: Path, grades: list[tuple[Grades, Grades]], prompt: str = "Question") -> Review:
    make_files(folder, grades)
    prompts = {"Question": "QuestionSelfRatedUnanswerablePromptWithChoices", "Extraction": "Extraction"}
    wanted = Grader("model", prompts[prompt])
    material = load_material(folder / "graded.jsonl", folder / "bank.jsonl", wanted)
    store = ReviewStore(folder / "state.sqlite", material.bank)
    _OPEN.append(store)
    return Review(material, store, str(folder / "bank.jsonl"))


def shown(review: Review, assessor: str, path: str, **fields: str) -> str:
    """A screen as the assessor gets it, whole: markup, attributes, comments and all; without the times of actions."""
    screen: Any = getattr(screens, path or "queue")
    answer = screen(review, Asked(f"/{path}", fields, {}, assessor, "token"))
    return re.sub(r"<time[^>]*>[^<]*</time>|[\d-]+ [\d:]+ UTC", "", str(answer.content or answer.redirect))


def every_screen(review: Review, assessor: str) -> dict[str, str]:
    pages = {path: shown(review, assessor, path) for path in ("bank", "progress", "export")}
    for order in ("audit", "query"):
        pages[f" {order}"] = shown(review, assessor, "", order=order)
        for cell in review.material.cells:
            place = dict(zip("qdi", cell, strict=True))
            pages[f"check {order} {cell}"] = shown(review, assessor, "check", order=order, **place)
    return pages


def test_screens_are_the_same_whatever_the_grades_are(tmp_path: Path) -> None:
    reviews = [open_review(tmp_path / name, grades) for name, grades in (("one", ONE), ("two", SWAPPED))]
    for review in reviews:
        # Ada differs from both graders, says so, and Bob leaves the same grade undecided.
        review.store.grade("ada", A, 2, review.material.grade(A).grade)
        review.store.decide("ada", A, "override", 2, "only half of it")
        review.store.grade("bob", A, None, review.material.grade(A).grade)
    one, two = (every_screen(review, "bob") for review in reviews)
    assert one == two
    assert "Rating:" not in "".join(one.values()) and "Worth" not in "".join(one.values())
    # With one's own grade they are there, as text.
    page = shown(reviews[0], "ada", "check", **dict(zip("qdi", A, strict=True)))
    assert 'class="text quote reason">&lt;b&gt;Worth 5&lt;/b&gt;</p>' in page


def test_an_extracted_answer_that_made_the_grade_is_shown_with_it(tmp_path: Path) -> None:
    review = open_review(tmp_path / "one", ONE, "Extraction")
    place = dict(zip("qdi", A, strict=True))
    assert "taken from it" not in shown(review, "ada", "check", **place)
    review.store.grade("ada", A, 1, 1)
    assert "taken from it" in shown(review, "ada", "check", **place)


def test_who_was_shown_the_graders_grade_of_other_gold_answers_grades_no_longer_blindly(tmp_path: Path) -> None:
    review = open_review(tmp_path / "one", ONE)
    for assessor, cell in (("ada", A), ("bob", B)):
        review.store.grade(assessor, cell, 2, review.material.grade(cell).grade)
        review.store.decide(assessor, cell, "override", 2, "only half of it")
    review.store.edit_all("ada", [("item_edit", {"key": "q1/a", "gold_answers": ["x"]}, {"q1/a": 0})])
    graded, bank, *_ = export_review(review, tmp_path / "out").paths
    wanted = Grader("model", "QuestionSelfRatedUnanswerablePromptWithChoices")
    material = load_material(graded, bank, wanted)
    store = ReviewStore(tmp_path / "second.sqlite", material.bank, waiting=material.waiting)
    _OPEN.append(store)
    # Ada's grade is stale and counts no longer, and she knows what the grader said then.
    assert (material.earlier(A), material.earlier(B)) == ({}, {"bob": 2})
    second = Review(material, store, bank)
    for assessor in ("ada", "bob"):
        for cell in (A, B):
            fields = {name: [value] for name, value in zip("qdi", cell, strict=True)}
            screens.post_grade(second, Asked("/grade", {}, {**fields, "grade": ["3"]}, assessor, "token"))
    said = store.snapshot().grades
    assert {(name, cell): one.blind for cell in (A, B) for name, one in said[cell].items()} == {
        ("ada", A): False,
        ("bob", A): True,
        ("ada", B): True,
        ("bob", B): False,
    }
