"""Tests of the choice of grades inside records: filters, banks, several grade sets, failures, file order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rubric_measures.base.errors import InputError, UnknownNameError
from rubric_measures.formats.banks import load_bank
from rubric_measures.measures.grade_sets import Grader
from rubric_measures.measures.loading import load_records
from rubric_measures.types.entities import RubricItem, TestBank
from tests.example_records import RECORDS, bank_from_items, grade_set, passage, write_all, write_lines
from tests.matrices import cells, lost

TWO = [grade_set({"q1/a": 4}), grade_set({"q1/n": 2}, kind="nugget", prompt="NuggetSelfRatedPrompt", llm="other")]
DIRECT = {
    "correctAnswered": True,
    "answer": "2",
    "self_ratings": 2,
    "llm": "model",
    "prompt_info": {"prompt_class": "Thomas"},
}


def given(path: Path, **wanted: str | bool) -> dict[str, dict[str, dict[str, int]]]:
    grades = load_records(path, wanted=Grader(**wanted))  # type: ignore[arg-type]
    return {query_id: cells(query) for query_id, query in grades.queries.items()}


def test_grades_without_a_bank_have_the_items_that_occur(tmp_path: Path) -> None:
    grades = load_records(write_all(tmp_path) / "graded.jsonl.gz")
    assert {q: [item.item_id for item in query.items] for q, query in grades.queries.items()} == {
        "q1": ["q1/a", "q1/b", "q1/c"],
        "q2": ["q2/a"],
    }
    assert cells(grades.queries["q1"]) == {
        "d1": {"q1/a": 4, "q1/b": 1, "q1/c": 0},
        "d2": {"q1/a": 0, "q1/b": 5, "q1/c": 0},
    }


def test_the_bank_gives_items_that_nobody_graded_and_queries_that_nobody_answered(tmp_path: Path) -> None:
    write_all(tmp_path)
    grades = load_records(tmp_path / "graded.jsonl.gz", load_bank(tmp_path / "bank.jsonl"))
    assert {q: len(query.items) for q, query in grades.queries.items()} == {"q1": 4, "q2": 1, "q3": 1}


def test_where_every_call_failed_the_prompt_says_whether_it_grades(tmp_path: Path) -> None:
    errors = {"llm_response_errors": {"q1/a": "timeout", "q1/b": "timeout"}}

    def read(rated: dict[str, object], prompt: str, **info: bool) -> dict[str, set[str]]:
        entry = {**grade_set({}, prompt=prompt), **errors, "prompt_info": {"prompt_class": prompt, **info}}
        one, two = passage("q1", "d1", [rated]), passage("q1", "d2", [entry])
        return lost(load_records(write_lines(tmp_path / "g.jsonl", [["q1", [one, two]]])).queries["q1"])

    known = grade_set({"q1/a": 4, "q1/b": 0})
    assert read(known, "QuestionSelfRatedUnanswerablePromptWithChoices") == {"d2": {"q1/a", "q1/b"}}
    own = {**grade_set({"q1/a": 4, "q1/b": 0}), "prompt_info": {"prompt_class": "Own", "is_self_rated": True}}
    assert read(own, "Own", is_self_rated=True) == {"d2": {"q1/a", "q1/b"}}
    for extraction in ("NuggetExtractionPrompt", "QuestionCompleteConciseUnanswerablePromptWithChoices", "Unknown"):
        assert read(known, extraction, is_self_rated=False) == {}


EXTRACTED = grade_set({}, prompt="NuggetExtractionPrompt") | {"answers": [["q1/a", "a text"]]}
TQA = [grade_set({"q1/x": 4}), grade_set({"q1/NDQ_1": 1}, prompt="KeyPrompt")]
OVERLAPPING = [grade_set({"q1/a": 4, "q1/b": 1}), grade_set({"q1/a": 2, "q1/c": 3})]


@pytest.mark.parametrize(
    ("sets", "direct", "wanted", "expected"),
    [
        # Texts that were extracted are no candidates.
        ([TWO[0], EXTRACTED], [], {}, {"q1/a": 4}),
        (TWO, [], {"model": "other"}, {"q1/n": 2}),
        (TWO, [], {"prompt": "NuggetSelfRatedPrompt"}, {"q1/n": 2}),
        (TWO, [], {"kind": "nugget"}, {"q1/n": 2}),
        (TWO, [], {"items": "nugget"}, {"q1/n": 2}),
        (TQA, [], {"items": "tqa"}, {"q1/NDQ_1": 1}),
        (TQA, [], {"items": "question-bank"}, {"q1/x": 4}),
        # The later grade of a counts.
        (OVERLAPPING, [], {}, {"q1/a": 2, "q1/b": 1, "q1/c": 3}),
        # Direct labels are grades of one item, where they are asked for or alone.
        (TWO[:1], [DIRECT], {}, {"q1/a": 4}),
        (TWO[:1], [DIRECT], {"prompt": "Thomas"}, {"0": 2}),
        (TWO[:1], [DIRECT], {"kind": "direct"}, {"0": 2}),
        ([], [DIRECT], {}, {"0": 2}),
    ],
)
def test_the_grades_that_are_chosen(
    sets: list[Any], direct: list[Any], wanted: dict[str, str], expected: dict[str, int], tmp_path: Path
) -> None:
    path = write_lines(tmp_path / "g.jsonl", [["q1", [passage("q1", "d1", sets, direct=direct)]]])
    assert given(path, **wanted) == {"q1": {"d1": expected}}


def test_two_sets_of_one_key_over_different_items_need_a_bank(tmp_path: Path) -> None:
    write_all(tmp_path)
    bank = load_bank(tmp_path / "bank.jsonl")
    apart = [grade_set({"q1/a": 4}), grade_set({"q1/b": 1})]
    path = write_lines(tmp_path / "g.jsonl", [["q1", [passage("q1", "d1", apart)]]])
    with pytest.raises(InputError, match="two grade sets over different items"):
        load_records(path)
    assert cells(load_records(path, bank).queries["q1"]) == {"d1": {"q1/a": 4, "q1/b": 1}}


def test_the_bank_chooses_among_sets_over_different_items(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "g.jsonl", [["q1", [passage("q1", "d1", TWO)]]])
    nuggets = [{"query_id": "q1", "items": [{"query_id": "q1", "nugget_id": "q1/n", "nugget_text": "n"}]}]
    bank = load_bank(write_lines(tmp_path / "nuggets.jsonl", nuggets))
    assert cells(load_records(path, bank).queries["q1"]) == {"d1": {"q1/n": 2}}


def test_a_direct_call_of_another_program_that_failed_is_no_label(tmp_path: Path) -> None:
    failed = {**DIRECT, "correctAnswered": False, "self_ratings": None, "llm_response_error": "timeout"}
    lines = [["q1", [passage("q1", "d1", [], direct=[DIRECT]), passage("q1", "d2", [], direct=[failed])]]]
    path = write_lines(tmp_path / "g.jsonl", lines)
    query = load_records(path).queries["q1"]
    assert (cells(query), lost(query)) == ({"d1": {"0": 2}, "d2": {}}, {"d2": {"0"}})
    # The workbench counts it as "no".
    assert given(path, prompt="Thomas", first=True)["q1"] == {"d1": {"0": 2}, "d2": {"0": 0}}


def bank_of(tmp_path: Path, **queries: list[str]) -> TestBank:
    lines = [
        {
            "query_id": query_id,
            "items": [{"question_id": f"{query_id}/{item}", "question_text": item} for item in items],
        }
        for query_id, items in queries.items()
    ]
    return load_bank(write_lines(tmp_path / "small.jsonl", lines))


def test_grades_of_a_query_whose_bank_is_empty_or_another_one_are_counted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = write_all(tmp_path) / "graded.jsonl.gz"
    grades = load_records(path, bank_of(tmp_path, q1=["a"], q2=[]))
    # q1: b and c of two passages; q2: its one grade.
    assert caplog.messages == ["5 grades left out: their 3 items are not in the test bank (such as q1/b)"]
    assert cells(grades.queries["q2"]) == {}
    caplog.clear()
    load_records(path, bank_of(tmp_path, q1=["x"], q2=["a"]))
    assert caplog.messages == ["6 grades left out: their 3 items are not in the test bank (such as q1/a)"]
    # Another grade set is no grade left out.
    caplog.clear()
    write_lines(tmp_path / "g.jsonl", [["q1", [passage("q1", "d1", TWO)]]])
    load_records(tmp_path / "g.jsonl", bank_of(tmp_path, q1=["a"]))
    assert caplog.messages == []


def test_direct_labels_are_no_grades_of_the_items_of_a_bank(tmp_path: Path) -> None:
    entry = grade_set({"q1/a": 4})
    records = [["q1", [passage("q1", "d1", [entry], direct=[DIRECT]), passage("q1", "d2", [], direct=[DIRECT])]]]
    path = write_lines(tmp_path / "g.jsonl", records)
    assert cells(load_records(path, bank_of(tmp_path, q1=["a"])).queries["q1"]) == {"d1": {"q1/a": 4}}
    with pytest.raises(
        InputError,
        match=r"holds no grades for kind=direct of items in the bank .*; there are grades of: model=",
    ):
        load_records(path, bank_of(tmp_path, q1=["a"]), Grader(kind="direct"))
    with pytest.raises(InputError, match="holds no grades of items in the bank"):
        load_records(path, bank_of(tmp_path, q1=[]))
    bank = bank_from_items([RubricItem("0", "q1", "Is it relevant?")])
    direct = load_records(path, bank, Grader(kind="direct"))
    assert cells(direct.queries["q1"]) == {"d1": {"0": 2}, "d2": {"0": 2}}


def test_a_cut_text_that_was_verified_counts_too(tmp_path: Path) -> None:
    entry = grade_set({"q1/a": 1, "q1/b": 0}, status={"q1/a": "truncated", "q1/b": "truncated", "q1/c": "truncated"})
    verified = {name: value for name, value in entry.items() if name != "self_ratings"}
    # As the grader writes it: the note of a cut text is among the errors, and its grade 0 is a grade all the same.
    verified["llm_response_errors"] = dict.fromkeys(("q1/a", "q1/b", "q1/c"), "the passage was cut")
    path = write_lines(tmp_path / "g.jsonl", [["q1", [passage("q1", "d1", [verified])]]])
    query = load_records(path).queries["q1"]
    # c has no grade at all.
    assert (cells(query), lost(query)) == ({"d1": {"q1/a": 1, "q1/b": 0}}, {"d1": {"q1/c"}})


def test_a_bank_without_the_query_is_an_error(tmp_path: Path) -> None:
    write_all(tmp_path)
    bank = load_bank(write_lines(tmp_path / "b.jsonl", [{"query_id": "q2", "items": []}]))
    with pytest.raises(UnknownNameError, match="the test bank has no such query"):
        load_records(tmp_path / "graded.jsonl.gz", bank)


def test_a_file_not_grouped_by_query_gives_the_same(tmp_path: Path) -> None:
    (q1, passages), q2 = RECORDS
    mixed = [[q1, passages[:1]], q2, [q1, passages[1:]]]
    scattered = load_records(write_lines(tmp_path / "mixed.jsonl", mixed))
    grouped = load_records(write_lines(tmp_path / "g.jsonl", RECORDS))
    for read in (cells, lost, lambda query: query.items, lambda query: query.scale):
        assert {query_id: read(query) for query_id, query in scattered.queries.items()} == {
            query_id: read(query) for query_id, query in grouped.queries.items()
        }
