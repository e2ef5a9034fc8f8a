"""The bank's table: several items at once, a bank of 500 items a query, and a draft."""

from __future__ import annotations

import re
import time
from pathlib import Path
from urllib.parse import unquote

import pytest

pytest.importorskip("jinja2")

from rubric_measures.base.errors import InputError
from rubric_measures.cli import main
from rubric_measures.measures.grade_sets import Grader
from rubric_measures.review import screens
from rubric_measures.review.app import open_review as open_review_of
from rubric_measures.review.queues import load_material
from rubric_measures.review.screens import Asked
from rubric_measures.review.session import Review
from rubric_measures.review.store import ReviewStore
from tests.example_records import BANK, grade_set, passage, write_lines
from tests.review.test_blindness import ONE, open_review, shown


def cells(page: str) -> dict[str, str]:
    """text of an item -> what the table says of its grades."""
    rows = re.findall(r"<tr[^>]*><td><input[^>]*><td[^>]*>(.*?)(?=\n<tr|\n</tbody>)", page, re.DOTALL)
    parted = [[re.sub(r"<[^>]*>", "", part).strip() for part in row.split("<td>")] for row in rows]
    return {one[0]: one[4] for one in parted}


def post(review: Review, assessor: str, **form: str | list[str]) -> screens.ScreenAnswer:
    fields = {name: value if isinstance(value, list) else [value] for name, value in form.items()}
    return screens.post_bank(review, Asked("/bank", {}, {"query": ["q1"], **fields}, assessor, "token"))


def test_several_items_are_retired_together_or_not_at_all(tmp_path: Path) -> None:
    review = open_review(tmp_path / "one", ONE)
    assert post(review, "bob", edit="item_edit", key="q1/b", version="0", text="What is B?").status == 200
    refused = post(review, "ada", edit="item_retire", merge=["q1/a@0", "q1/b@0"])
    assert refused.status == 409 and not review.store.snapshot().items["q1/a"].retired
    done = post(review, "ada", edit="item_retire", merge=["q1/a@0", "q1/b@1"])
    assert done.redirect == "/bank?query=q1&saved=item_retire#items"
    assert [review.store.snapshot().items[key].retired for key in ("q1/a", "q1/b")] == [True, True]


def test_an_edit_leaves_what_its_form_lacks(tmp_path: Path) -> None:
    review = open_review(tmp_path / "one", ONE)
    post(review, "ada", edit="item_edit", key="q1/a", version="0", text="What is a?", gold_answers="x\ny", weight="2")
    post(review, "ada", edit="item_edit", key="q1/a", version="1", text="What is a?", importance="okay")
    item = review.store.snapshot().items["q1/a"].item
    assert (item.gold_answers, item.weight, item.importance) == (("x", "y"), 2.0, "okay")


def test_500_items_of_a_query_are_a_small_page_and_quick(tmp_path: Path) -> None:
    ids = [f"q1/{number:032x}" for number in range(500)]
    text = "What is the {}th thing that people would ask about this topic today, and why?"
    items = [{"question_id": one, "question_text": text.format(number)} for number, one in enumerate(ids)]
    graded = passage("q1", "d1", [grade_set({one: number % 6 for number, one in enumerate(ids)})], {"one": 1, "two": 2})
    bank = write_lines(tmp_path / "bank.jsonl", [{"query_id": "q1", "query_text": "q", "items": items}])
    material = load_material(write_lines(tmp_path / "graded.jsonl", [["q1", [graded]]]), bank)
    store = ReviewStore(tmp_path / "state.sqlite", material.bank)
    review = Review(material, store, str(bank))
    shown(review, "ada", "bank", query="q1")
    start = time.perf_counter()
    post(review, "ada", edit="item_edit", key=ids[7], version="0", text="Another?")
    page = shown(review, "ada", "bank", query="q1")
    # A tenth of it on an idle machine.
    assert time.perf_counter() - start < 2
    assert len(page.encode()) < 200_000 and len(cells(page)) == 500
    store.close()


def test_a_draft_is_edited_before_anything_is_graded(tmp_path: Path) -> None:
    passages = [passage("q1", "d1", [], {"one": 1}), passage("q1", "d2", [], {"one": 2})]
    passages[1]["text"] = "Water is blue, and nobody knows why."
    graded = str(write_lines(tmp_path / "passages.jsonl.gz", [["q1", passages]]))
    draft = tmp_path / "draft.csv"
    draft.write_text("query_id,item_id,text,importance\nq1,q1/a,Why is water blue?,vital\nq1,,What is b?,\n", "utf-8")
    review = open_review_of(graded, str(draft), assessor="ada")
    review.prepare()
    for found in (shown(review, "ada", ""), shown(review, "ada", "", order="audit")):
        assert "Nothing was graded yet" in found
    page = shown(review, "ada", "bank")
    assert cells(page) == {"Why is water blue?": "", "What is b?": ""} and "A draft" in page
    # An item's page has the passages, those with its words first.
    own = shown(review, "ada", "bank", item="q1/a")
    assert own.index(">d2</td>") < own.index(">d1</td>") and "nobody knows why" in own
    assert post(review, "ada", edit="item_edit", key="q1/a", version="0", text="Why is the sea blue?").redirect
    assert "waits" not in shown(review, "ada", "bank") and "regrading" not in shown(review, "ada", "bank")
    for path in ("progress", "export", "guidelines"):
        shown(review, "ada", path)
    screens.post_export(review, Asked("/export", {}, {}, "ada", "token"))
    review.store.close()
    # What it wrote is graded and reviewed like any other bank: nothing waits.
    out = tmp_path / "passages.jsonl.gz.review-export"
    assert sorted(path.name for path in out.iterdir()) == ["audit.jsonl", "bank.jsonl"]
    bank, made = str(out / "bank.jsonl"), str(tmp_path / "graded.jsonl.gz")
    assert main(["grade", graded, "--bank", bank, "--model", "lexical", "-o", made]) == 0
    later = open_review_of(made, bank)
    assert not later.material.is_draft and not later.material.waiting
    assert [item.text for item in later.material.bank.for_query("q1")] == ["Why is the sea blue?", "What is b?"]
    later.store.close()


def test_records_without_the_grader_that_was_asked_for_are_no_draft(tmp_path: Path) -> None:
    graded = write_lines(tmp_path / "passages.jsonl", [["q1", [passage("q1", "d1", [])]]])
    bank = write_lines(tmp_path / "bank.jsonl", BANK)
    with pytest.raises(InputError, match="holds no grades"):
        load_material(graded, bank, Grader("model"))


@pytest.mark.parametrize(
    ("edit", "typed"),
    [
        ({"edit": "item_split", "texts": "One?\nTwo?"}, "One?\nTwo?"),
        ({"edit": "item_merge", "merge": ["q1/a@0", "q1/b@0"], "text": "Both?"}, "Both?"),
        ({"edit": "item_retire"}, ""),
        ({"edit": "item_edit", "text": "Mine?", "gold_answers": "x", "weight": "2"}, "Mine?"),
    ],
)
def test_what_the_second_editor_typed_is_there_to_be_sent_again(
    tmp_path: Path, edit: dict[str, str | list[str]], typed: str
) -> None:
    review = open_review(tmp_path / "one", ONE)
    post(review, "ada", edit="item_edit", key="q1/a", version="0", text="What is A?", importance="okay")
    key = {} if "merge" in edit else {"key": "q1/a", "version": "0"}
    answer = post(review, "bob", **key, **edit)
    assert answer.status == 409 and len(review.store.events()) == 1
    said = "nothing of yours was saved: ada was faster (changed text, importance: What is A?); send yours again"
    assert said in answer.content and f">{typed}</textarea>" in answer.content
    # The forms carry the version that the second one has seen now.
    assert 'name="version" value="1"' in answer.content if key else 'name=merge value="q1/a@1"' in answer.content
    sent = {**edit, "key": "q1/a", "version": "1", **({} if key else {"merge": ["q1/a@1", "q1/b@0"]})}
    assert post(review, "bob", **sent).redirect
    # Who built on it is in the way of an undo; once it left the bank, what was typed is there to be copied.
    with pytest.raises(InputError, match="bob changed the same item later"):
        screens.post_undo(review, Asked("/undo", {}, {}, "ada", "token"))
    if edit["edit"] == "item_retire":
        late = post(review, "ada", edit="item_edit", key="q1/a", version="1", text="Late?")
        assert late.status == 409 and 'it is no longer in the bank. Yours: <q dir="auto">Late?' in late.content
        # Who added an item may undo that while somebody edits it.
        post(review, "ada", edit="item_add", text="New?")
        added = next(key for key, state in review.store.snapshot().items.items() if state.item.text == "New?")
        screens.post_undo(review, Asked("/undo", {}, {}, "ada", "token"))
        with pytest.raises(InputError, match="the bank has no item"):
            post(review, "bob", edit="item_edit", key=added, version="0", text="Later?")


@pytest.mark.parametrize(
    ("form", "problem"),
    [
        ({"edit": "item_merge", "merge": ["q1/a@0"], "text": "x"}, "choose at least two items to merge"),
        ({"edit": "item_split", "key": "q1/a", "version": "0", "texts": "One?"}, "a split needs at least two texts"),
        ({"edit": "item_add", "text": "What is a?", "weight": "1"}, "has an item with this text already"),
        ({"edit": "item_add", "text": "y", "weight": "nan"}, "weight: expected a number"),
        ({"edit": "item_add", "text": "y", "importance": "much"}, "importance is vital, okay or nothing"),
        ({"edit": "item_add", "text": " "}, "an item needs a text"),
    ],
)
def test_an_edit_that_makes_no_sense_changes_nothing(
    tmp_path: Path, form: dict[str, str | list[str]], problem: str
) -> None:
    review = open_review(tmp_path / "one", ONE)
    if form["edit"] == "item_add":
        # The ids of the bank's file are not made of its texts.
        post(review, "ada", edit="item_add", text="What is a?")
    before = len(review.store.events())
    answer = post(review, "ada", **form)
    assert answer.status == 400 and problem in answer.content and len(review.store.events()) == before


def test_an_item_is_edited_that_another_query_calls_alike(tmp_path: Path) -> None:
    queries = ("q1", "q2")
    bank = [{"query_id": one, "items": [{"question_id": "1", "question_text": f"What of {one}?"}]} for one in queries]
    lines = [[one, [passage(one, "d1", [grade_set({"1": 5})], {"x": 1})]] for one in queries]
    graded = str(write_lines(tmp_path / "graded.jsonl", lines))
    review = open_review_of(graded, str(write_lines(tmp_path / "bank.jsonl", bank)), assessor="ada")
    page = shown(review, "ada", "check", q="q2", d="d1", i="1")
    (link,) = re.findall(r'href="/bank\?item=([^"]*)"', page)
    assert "What of q2?" in shown(review, "ada", "bank", item=unquote(link))
    review.store.close()
