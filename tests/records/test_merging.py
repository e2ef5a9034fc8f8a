"""Tests of putting graded records together."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rubric_measures.base.errors import InputError
from rubric_measures.records.merging import merge_records
from rubric_measures.records.models import (
    DirectGrade,
    GradedPassage,
    ItemGradeSet,
    PromptInfo,
    QueryPassages,
    grade_of_items,
)


def graded(grades: dict[str, int], llm: str = "m", prompt: str = "P", **more: Any) -> ItemGradeSet:
    answers = [(item_id, f"says {grade}") for item_id, grade in grades.items()]
    answers += [(item_id, "?") for item_id in more.get("item_status", {})]
    return ItemGradeSet.build(grades, answers=answers, llm=llm, prompt_info=PromptInfo(prompt_class=prompt), **more)


def passage(doc_id: str = "d", **fields: Any) -> GradedPassage:
    return GradedPassage(**{"paragraph_id": doc_id, "text": f"text of {doc_id}", **fields})


def data(judgments: dict[str, int] | None = None, places: dict[str, int] | None = None) -> dict[str, Any]:
    return {
        "judgments": [
            {"paragraphId": "d", "query": query, "relevance": rel} for query, rel in (judgments or {}).items()
        ],
        "rankings": [
            {"method": method, "paragraphId": "d", "queryId": "q", "rank": rank, "score": 1.0 / rank}
            for method, rank in (places or {}).items()
        ],
    }


def merged(*passages: GradedPassage) -> GradedPassage:
    """What records of one passage each merge to."""
    ((query_id, (found,), _),) = merge_records([[QueryPassages("q", [one])] for one in passages])
    assert query_id == "q"
    return found


def test_judgments_and_rankings_are_united() -> None:
    one = passage(paragraph_data=data({"q": 2}, {"bm25": 1}), mine=1)
    other = passage(paragraph_data=data({"q": 2, "q2": 0}, {"dense": 3, "bm25": 1}), theirs={"a": 1})
    found = merged(one, other)
    assert [(judgment.query_id, judgment.relevance) for judgment in found.judgments] == [("q", 2), ("q2", 0)]
    assert [(place.method, place.rank) for place in found.rankings] == [("bm25", 1), ("dense", 3)]
    assert {"mine": 1, "theirs": {"a": 1}}.items() <= found.as_json().items()
    assert merged(passage(), one) == one


def test_two_runs_of_one_name_and_two_scales_of_one_grader_are_refused() -> None:
    parts = [[QueryPassages("q", [passage(doc_id, paragraph_data=data(None, {"bm25": 1}))])] for doc_id in ("d", "d")]
    parts[1][0].passages[0] = passage("e", paragraph_data={"rankings": [
        {"method": "bm25", "paragraphId": "e", "queryId": "q", "rank": 1, "score": 1.0}]})  # fmt: skip
    with pytest.raises(InputError, match="the run 'bm25' has 'd' at rank 1 in one file and 'e' in another; two runs"):
        merge_records(parts)
    made = []
    for doc_id, scale in (("d", [0, 5]), ("e", [0, 2])):
        info = PromptInfo(prompt_class="P", scale=scale)
        entry = ItemGradeSet.build({"i": 1}, answers=[("i", "1")], llm="m", prompt_info=info)
        made.append([QueryPassages("q", [passage(doc_id, exam_grades=[entry])])])
    with pytest.raises(InputError, match=r"passage 'e': grades by m \(P\) are on the scale .*, and elsewhere on"):
        merge_records(made)


def judged(*rows: tuple[int, str | None]) -> GradedPassage:
    """A passage with judgments of one query, (label, assessor)."""
    judgments: list[dict[str, Any]] = [{"paragraphId": "d", "query": "q", "relevance": label} for label, _ in rows]
    for judgment, (_, assessor) in zip(judgments, rows, strict=True):
        if assessor is not None:
            judgment["assessor"] = assessor
    return passage(paragraph_data={"judgments": judgments})


def said(found: GradedPassage) -> list[tuple[int, str | None]]:
    return [(one["relevance"], one.get("assessor")) for one in found.as_json()["paragraph_data"]["judgments"]]


@pytest.mark.parametrize(
    ("one", "other", "united"),
    [
        # Two assessors judged the passage 3 and 0 for one query; another file has one of them.
        ([(3, None), (0, None)], [(0, None)], [(3, None), (0, None)]),
        ([(0, None)], [(3, None), (0, None)], [(3, None), (0, None)]),
        ([(3, "ann"), (0, "bob")], [(0, "bob")], [(3, "ann"), (0, "bob")]),
        # Equal labels are as many judgments as one file has of them.
        ([(2, None), (2, None)], [(2, None)], [(2, None), (2, None)]),
        ([(2, None)], [(2, None), (2, None)], [(2, None), (2, None)]),
    ],
)
def test_several_judgments_of_a_passage_are_kept(
    one: list[tuple[int, str | None]], other: list[tuple[int, str | None]], united: list[tuple[int, str | None]]
) -> None:
    assert said(merged(judged(*one), judged(*other))) == united


def test_grade_sets_stay_apart_by_model_prompt_and_bank() -> None:
    base = graded({"q/a": 4})
    others = [
        graded({"q/a": 1}, llm="n"),
        graded({"q/a": 1}, prompt="O"),
        graded({"q/b": 1}),
        graded({"q/a": 2}, kind="nugget"),
    ]
    found = merged(
        passage(exam_grades=[base]), *(passage(exam_grades=[one]) for one in others), passage(exam_grades=[base])
    )
    assert found.exam_grades == [base, *others]


def test_two_parts_of_one_grade_set_become_one() -> None:
    one = graded({"q/a": 4}, item_status={"q/b": "failed"}, errors={"q/b": "lost"})
    other = graded({"q/a": 4, "q/b": 0, "q/c": 3}, item_status={"q/d": "refused"})
    (found,) = merged(passage(exam_grades=[one]), passage(exam_grades=[other])).exam_grades or []
    # The grade of b stands before its failure; a, graded alike in both, is there once: 2 of 3 items are answered.
    assert grade_of_items(found) == {"q/a": 4, "q/b": 0, "q/c": 3}
    assert (found.item_status, found.llm_response_errors) == ({"q/d": "refused"}, {})
    assert (found.correct_answered, found.wrong_answered, found.exam_ratio) == (["q/a", "q/c"], ["q/b"], 2 / 3)
    assert found.answers == [("q/a", "says 4"), ("q/b", "says 0"), ("q/c", "says 3"), ("q/d", "?")]
    again = merged(passage(exam_grades=[other]), passage(exam_grades=[one])).exam_grades
    assert again and grade_of_items(again[0]) == grade_of_items(found) and again[0].item_status == {"q/d": "refused"}


def test_a_grade_of_a_truncated_text_stays_one() -> None:
    cut = graded({"q/b": 2}, item_status={"q/b": "truncated"})
    (found,) = merged(
        passage(exam_grades=[graded({"q/a": 4}, item_status={"q/b": "failed"})]), passage(exam_grades=[cut])
    ).exam_grades or [None]
    assert found and (grade_of_items(found), found.item_status) == ({"q/a": 4, "q/b": 2}, {"q/b": "truncated"})


def test_direct_labels() -> None:
    one = DirectGrade(correct_answered=True, answer="2", self_rating=2, llm="m")
    failed = DirectGrade(correct_answered=False, answer="", llm="m", status="failed")
    other = DirectGrade(correct_answered=False, answer="0", self_rating=0, llm="n")
    assert merged(passage(grades=[failed, other]), passage(grades=[one])).grades == [one, other]
    assert merged(passage(grades=[one]), passage(grades=[failed])).grades == [one]
    # A call of another program that failed has no status, and is no label that could contradict one.
    foreign = DirectGrade(correct_answered=False, answer="", llm="m", llm_response_error="timeout")
    assert merged(passage(grades=[foreign]), passage(grades=[one])).grades == [one]
    assert merged(passage(grades=[one]), passage(grades=[foreign])).grades == [one]


def direct(label: int | None = None, **fields: Any) -> dict[str, Any]:
    return {"correctAnswered": True, "answer": "yes", "relevance_label": label, "llm": "m", **fields}


@pytest.mark.parametrize(
    ("one", "other", "what"),
    [
        # The label may stand in either of two fields.
        (direct(2), direct(1), "the label by m is 2 in one file and 1 in another"),
        (direct(2), direct(self_ratings=1), "the label by m is 2 in one file and 1 in another"),
        (direct(2, self_ratings=1), direct(1, self_ratings=1), "relevance_label is 2 in one file and 1"),
        (direct(2, seen=1), direct(2, seen=2), "seen is 1 in one file and 2 in another"),
        # Two labels of truncated texts contradict each other, too.
        (direct(2, status="truncated"), direct(1, status="truncated"), "the label by m is 2"),
    ],
)
def test_direct_labels_that_contradict_each_other(one: dict[str, Any], other: dict[str, Any], what: str) -> None:
    with pytest.raises(InputError, match="query 'q', passage 'd': " + what):
        merged(passage(grades=[one]), passage(grades=[other]))


@pytest.mark.parametrize(
    ("one", "other", "united"),
    [
        # Unknown fields, and a field that one file does not fill, come from either.
        (direct(2, mine=1), direct(2, theirs=1), direct(2, mine=1, theirs=1)),
        (direct(2, provenance="x"), direct(2, provenance="x", theirs=1), direct(2, provenance="x", theirs=1)),
        (direct(self_ratings=2), direct(2, self_ratings=2), direct(2, self_ratings=2)),
        # The label of the whole text stands before that of a part of it.
        (direct(2, status="truncated"), direct(1), direct(1)),
        (direct(1), direct(2, status="truncated"), direct(1)),
        (direct(status="failed", answer=""), direct(1, status="truncated"), direct(1, status="truncated")),
    ],
)
def test_direct_labels_of_two_files(one: dict[str, Any], other: dict[str, Any], united: dict[str, Any]) -> None:
    (found,) = merged(passage(grades=[one]), passage(grades=[other])).grades or []
    assert {name: value for name, value in found.as_json().items() if value is not None} == {
        name: value for name, value in united.items() if value is not None
    }


def test_the_grade_of_an_item_that_failed_in_another_program_is_there_once() -> None:
    # That program lists what failed as wrong.
    failed = graded({"q/a": 1, "q/b": 0}, self_rated=False, errors={"q/b": "timeout"})
    for grade in (0, 1):
        other = graded({"q/b": grade}, self_rated=False)
        (found,) = merged(passage(exam_grades=[failed]), passage(exam_grades=[other])).exam_grades or []
        assert grade_of_items(found) == {"q/a": 1, "q/b": grade}
        assert sorted(found.correct_answered + found.wrong_answered) == ["q/a", "q/b"]
        assert found.exam_ratio == (1 + grade) / 2


def test_ratings_and_marks_are_not_one_set() -> None:
    one, other = graded({"q/a": 4}), graded({"q/a": 4, "q/b": 1})
    marks = graded({"q/a": 1, "q/b": 1}, self_rated=False)
    with pytest.raises(
        InputError, match="what grades by m are is 'right or wrong' in one file and 'ratings' in another"
    ):
        merged(
            passage(exam_grades=[graded({"q/a": 1}, self_rated=False)]),
            passage(exam_grades=[graded({"q/a": 1, "q/b": 3})]),
        )
    assert merged(passage(exam_grades=[one]), passage(exam_grades=[other])).exam_grades == [other]
    assert merged(passage(exam_grades=[marks]), passage(exam_grades=[marks])).exam_grades == [marks]


def by(assessor: str) -> dict[str, Any]:
    """Somebody's judgment."""
    return {"judgments": [{"paragraphId": "d", "query": "q", "relevance": 2, "assessor": assessor}]}


@pytest.mark.parametrize(
    ("one", "other", "what"),
    [
        ({"text": "a"}, {"text": "b"}, "text is 'a' in one file and 'b' in another"),
        ({"paragraph": "a"}, {"paragraph": "b"}, "paragraph is 'a'"),
        ({"mine": 1}, {"mine": 2}, "mine is 1"),
        ({"mine": {"a": 1}}, {"mine": {"a": 2}}, r"mine.a is 1 in one file and 2"),
        # Nobody knows whether these are one.
        ({"paragraph_data": by("ann")}, {"paragraph_data": by("bob")}, r"the judgment is \[{'assessor': 'ann', 'rel"),
        (
            {"paragraph_data": data({"q": 1})},
            {"paragraph_data": data({"q": 2})},
            r"the judgment is \[{'relevance': 1}\] in",
        ),
        (
            {"paragraph_data": data(places={"r": 1})},
            {"paragraph_data": data(places={"r": 2})},
            r"rank and score in 'r' is \[{'rank': 1, 'score': 1.0}\]",
        ),
        (
            {"exam_grades": [graded({"q/a": 1})]},
            {"exam_grades": [graded({"q/a": 2})]},
            "the grade of item 'q/a' by m is 1 in one file and 2",
        ),
        (
            {"grades": [{"correctAnswered": True, "answer": "1", "llm": "m"}]},
            {"grades": [{"correctAnswered": False, "answer": "0", "llm": "m"}]},
            "the label by m",
        ),
    ],
)
def test_contradictions(one: dict[str, Any], other: dict[str, Any], what: str) -> None:
    with pytest.raises(InputError, match="query 'q', passage 'd': " + what):
        merged(passage(**one), passage(**other))


PLACES = st.dictionaries(st.sampled_from(["r", "s"]), st.integers(1, 3), max_size=2)
GRADES = st.dictionaries(st.sampled_from(["q/a", "q/b", "q/c"]), st.integers(0, 5), min_size=1, max_size=3)


@given(
    whole=st.dictionaries(st.sampled_from("de"), st.tuples(PLACES, GRADES), min_size=1, max_size=2),
    parts=st.lists(st.sets(st.sampled_from([f"{doc}{what}" for doc in "de" for what in "pabc"])), max_size=4),
)
def test_parts_of_records_make_the_whole(
    whole: dict[str, tuple[dict[str, int], dict[str, int]]], parts: list[set[str]]
) -> None:
    """However records are cut into (overlapping) parts, and in whatever order those are merged."""
    # A run has one passage at a rank: those of e stand below those of d.
    below = {run_id: rank + 3 for run_id, rank in whole["e"][0].items()} if "e" in whole else {}
    whole = {doc_id: (below if doc_id == "e" else places, grades) for doc_id, (places, grades) in whole.items()}

    def part(wanted: set[str]) -> list[QueryPassages]:
        passages = []
        for doc_id, (places, grades) in whole.items():
            some = {item_id: grade for item_id, grade in grades.items() if doc_id + item_id[-1] in wanted}
            fields: dict[str, Any] = {"exam_grades": [graded(some)]} if some else {}
            if doc_id + "p" in wanted:
                fields["paragraph_data"] = data(places=places)
            passages.append(passage(doc_id, **fields))
        return [QueryPassages("q", passages)]

    everything = part({f"{doc}{what}" for doc in "de" for what in "pabc"})
    pieces = [part(wanted) for wanted in parts]
    for order in ([*pieces, everything], [everything, *pieces]):
        ((_, passages, _),) = merge_records(order)
        assert {one.doc_id: {place.method: place.rank for place in one.rankings} for one in passages} == {
            doc_id: places for doc_id, (places, _) in whole.items()
        }
        assert [len(one.exam_grades or ()) for one in passages] == [1] * len(whole)
        found = {one.doc_id: grade_of_items(entry) for one in passages for entry in one.exam_grades or ()}
        assert found == {doc_id: grades for doc_id, (_, grades) in whole.items()}
