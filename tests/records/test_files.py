"""Tests of the graded passage records: both shapes, strictness, identity, damage."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from rubric_measures.base.errors import FormatError, InputError
from rubric_measures.records.models import (
    GradedPassage,
    PassageData,
    QueryPassages,
    RankingEntry,
    load_graded,
    write_graded,
)
from tests.example_records import write_lines
from tests.shared_data import shared_data


def passage(doc_id: str = "p1", **more: Any) -> dict[str, Any]:
    """A passage as it stands in a file, with every field."""
    return {
        "paragraph_id": doc_id,
        "text": "The epidermis is the outer layer of skin – naïve.",
        "paragraph": "",
        "paragraph_data": {
            "judgments": [{"paragraphId": doc_id, "query": "q1", "relevance": -1, "titleQuery": "skin"}],
            "rankings": [{"method": "bm25", "paragraphId": doc_id, "queryId": "q1", "rank": 0, "score": 3, "x": None}],
        },
        "exam_grades": [
            {
                "correctAnswered": ["q1/a"],
                "wrongAnswered": ["q1/b"],
                "answers": [["q1/a", "4"], ["q1/b", "0"], ["q1/c", "I cannot say"]],
                "llm": "google/flan-t5-large",
                "llm_options": {"temperature": 0.5, "stop": ["\n"]},
                "exam_ratio": 0.5,
                "prompt_info": {"prompt_class": "Rated", "is_self_rated": True, "orig_prompt_class": "unknown"},
                "self_ratings": [{"question_id": "q1/a", "self_rating": 4}, {"question_id": "q1/b", "self_rating": 0}],
                "prompt_type": "question",
                "item_status": {"q1/c": "unparsed"},
                "llm_response_errors": {"q1/c": "no number"},
                "foreign": {"kept": [1, 2.5, None, "ü"]},
            }
        ],
        "grades": [{"correctAnswered": True, "answer": "2", "self_ratings": 2, "llm": "m", "prompt_info": None}],
        "unknown": {"deep": [[], {}]},
        **more,
    }


def set_at(value: Any, where: list[int | str], new: Any) -> Any:
    """Replaces one field of a nested value, in place."""
    for key in where[:-1]:
        value = value[key]
    value[where[-1]] = new
    return value


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz"])
def test_identity_with_unknown_fields(tmp_path: Path, name: str) -> None:
    lines = [["q1", [passage("p1"), passage("p2")]], ["q/2 %#é", [{"paragraph_id": "p1", "text": ""}]]]
    source = write_lines(tmp_path / name, lines)
    groups = load_graded(source)
    target = tmp_path / f"out-{name}"
    write_graded(target, groups)
    data = target.read_bytes()
    text = gzip.decompress(data).decode() if name.endswith("gz") else data.decode()
    assert [json.loads(line) for line in text.splitlines()] == lines
    assert [group[:2] for group in load_graded(target)] == [group[:2] for group in groups]


def test_both_shapes_and_joined_lines(tmp_path: Path) -> None:
    one, two, three = passage("p1"), passage("p2"), passage("p3")
    path = write_lines(tmp_path / "a.jsonl", [["q1", one], ["q1", [two]], ["q1", three], ["q2", [one]], ["q2", two]])
    groups = load_graded(path)
    assert [(g.query_id, [p.doc_id for p in g.passages], g.line) for g in groups] == [
        ("q1", ["p1", "p2", "p3"], 1),
        ("q2", ["p1", "p2"], 4),
    ]


def test_ids_are_texts(tmp_path: Path) -> None:
    number = passage()
    number["paragraph_data"]["rankings"][0]["queryId"] = 7
    for line, field in (([7, [passage()]], "[0]"), (["7", [number]], "rankings[0].queryId")):
        with pytest.raises(FormatError, match=r"expected .*text") as error:
            load_graded(write_lines(tmp_path / "a.jsonl", [line]))
        assert field in str(error.value)


def test_a_passage_twice(tmp_path: Path) -> None:
    for number, lines in enumerate(([["q1", [passage("p1"), passage("p1")]]], [["q1", [passage("p1")]]] * 2), 1):
        path = write_lines(tmp_path / "a.jsonl", [["q2", [passage("p1")]], *lines])
        with pytest.raises(
            FormatError, match=rf"a.jsonl:{number + 1}: passage 'p1' of query 'q1' comes twice; keep one"
        ):
            load_graded(path)


RATING: list[int | str] = [1, 0, "exam_grades", 0, "self_ratings", 1, "self_rating"]
RANKING: list[int | str] = [1, 0, "paragraph_data", "rankings", 0]
JUDGED: list[int | str] = [1, 0, "paragraph_data", "judgments", 0, "relevance"]


@pytest.mark.parametrize(
    ("where", "value", "field"),
    [
        (RATING, 1000.6, "[1][0].exam_grades[0].self_ratings[1].self_rating"),
        (RATING, 99_999, "[1][0].exam_grades[0].self_ratings[1].self_rating"),
        (RATING, -1, "exam_grades[0].self_ratings[1].self_rating"),
        (RATING, -3, "[1][0].exam_grades[0].self_ratings[1].self_rating"),
        (RATING, "3", "[1][0].exam_grades[0].self_ratings[1].self_rating"),
        (RATING, True, "[1][0].exam_grades[0].self_ratings[1].self_rating"),
        (JUDGED, 10**400, "[1][0].paragraph_data.judgments[0].relevance"),
        (JUDGED, "1", "[1][0].paragraph_data.judgments[0].relevance"),
        (JUDGED, None, "[1][0].paragraph_data.judgments[0].relevance"),
        ([*RANKING, "rank"], -1, "[1][0].paragraph_data.rankings[0].rank"),
        ([*RANKING, "rank"], 1.0, "[1][0].paragraph_data.rankings[0].rank"),
        ([*RANKING, "score"], "1", "[1][0].paragraph_data.rankings[0].score"),
        ([1, 0, "text"], None, "[1][0].text"),
        ([1, 0, "paragraph_id"], 3, "[1][0].paragraph_id"),
        ([1, 0, "paragraph_id"], "", "[1][0].paragraph_id"),
        ([*RANKING, "paragraphId"], "other", "paragraph_data.rankings[0].paragraphId"),
        ([*JUDGED[:-1], "paragraphId"], "", "paragraph_data.judgments[0].paragraphId"),
        ([*RANKING, "rank"], 10**9, "[1][0].paragraph_data.rankings[0].rank"),
        ([1, 0, "exam_grades", 0, "correctAnswered"], None, "[1][0].exam_grades[0].correctAnswered"),
        ([1, 0, "exam_grades", 0, "item_status", "q1/c"], "lost", "[1][0].exam_grades[0].item_status.q1/c"),
        ([1, 0, "exam_grades", 0, "self_ratings", 1], {"self_rating": 1}, "exam_grades[0].self_ratings[1]"),
        (
            [1, 0, "exam_grades", 0, "self_ratings", 1],
            {"self_rating": 1, "question_id": "a", "nugget_id": "b"},
            "exam_grades[0].self_ratings[1]",
        ),
        ([1, 0, "grades", 0, "self_ratings"], 99_999, "[1][0].grades[0].self_ratings"),
        ([0], None, "[0]"),
    ],
)
def test_a_wrong_field_is_one_line_with_its_place(
    tmp_path: Path, where: list[int | str], value: Any, field: str
) -> None:
    line = ["q1", [passage()]]
    set_at(line, where, value)
    path = write_lines(tmp_path / "a.jsonl", [["q0", [passage()]], line])
    with pytest.raises(FormatError) as caught:
        load_graded(path)
    assert (caught.value.path, caught.value.line, caught.value.field) == (str(path), 2, field)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "holds no graded passages"),
        (b"\n \n", "holds no graded passages"),
        (b"[1, 2", "is not JSON"),
        (b'{"query_id": "q1", "items": []}\n', 'expected ["query id", [passage, …]]'),
        (b'["q1"]\n', "required field is missing"),
        (gzip.compress(json.dumps(["q1", [passage()]]).encode())[:-9], "the gzip file is truncated"),
    ],
)
def test_damaged_files(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(content)
    with pytest.raises(FormatError) as caught:
        load_graded(path)
    assert message in str(caught.value) and str(path) in str(caught.value)


def test_answers_of_direct_grades_is_written_as_answer(tmp_path: Path) -> None:
    line = ["q1", [passage(grades=[{"correctAnswered": True, "answers": "yes", "llm": "m"}])]]
    groups = load_graded(write_lines(tmp_path / "a.jsonl", [line]))
    write_graded(tmp_path / "b.jsonl", groups)
    written = json.loads((tmp_path / "b.jsonl").read_text())
    assert written[1][0]["grades"] == [{"correctAnswered": True, "answer": "yes", "llm": "m"}]
    assert load_graded(tmp_path / "b.jsonl") == groups


def test_writing_twice_or_nothing_leaves_no_file(tmp_path: Path) -> None:
    group = QueryPassages("q", [GradedPassage(doc_id="d", text="t")])
    with pytest.raises(InputError, match="'q' comes twice"):
        write_graded(tmp_path / "a.jsonl", [group, group])
    with pytest.raises(InputError, match="no graded passages to write"):
        write_graded(tmp_path / "a.jsonl", [])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["workbench/graded-q0.jsonl.gz", "workbench-golden/dl20-scale.jsonl.gz"])
def test_real_files_are_written_back_unchanged(tmp_path: Path, name: str) -> None:
    path = shared_data(name)
    write_graded(tmp_path / "a.jsonl", load_graded(path))
    with gzip.open(path) as before, (tmp_path / "a.jsonl").open() as after:
        assert [json.loads(line) for line in before] == [json.loads(line) for line in after]


def test_records_made_by_name_are_checked_as_those_of_files() -> None:
    with pytest.raises(FormatError, match="paragraph_id: expected a text of length >= 1"):
        GradedPassage(doc_id="", text="a")
    with pytest.raises(FormatError, match="text: required field is missing"):
        GradedPassage(doc_id="d")
    place = RankingEntry(method="r", doc_id="d", query_id="q", rank=-1, score=1.0)
    with pytest.raises(FormatError, match=r"paragraph_data\.rankings\[0\]\.rank: expected a whole number >= 0"):
        GradedPassage(doc_id="d", text="a", paragraph_data=PassageData(rankings=[place]))
    made = GradedPassage(doc_id="d", text="a")
    with pytest.raises(FormatError, match="text: expected a text; found 5"):
        made.replacing(text=5)
    assert made == GradedPassage(text="a", paragraph_id="d", paragraph=None) != made.replacing(text="b")


@pytest.mark.parametrize(
    ("bad", "problem"),
    [
        (b'"mine": [1, NaN]', "is not JSON: expected value at column 56"),
        (b'"mine": {"a": -Infinity}', "is not JSON: invalid number at column 5"),
        (b'"mine": "\xff"', "is not JSON: invalid unicode code point"),
        (
            b'"grades": [{"correctAnswered": true, "answer": "", "llm": "m", "provenance": {"x": 1e400}}]',
            r"grades\[0\]: is not JSON: Number out of range",
        ),
        (b'"mine": "\\ud800"', "is not JSON: "),
    ],
)
def test_no_json_in_a_field_that_nobody_reads_is_refused(tmp_path: Path, bad: bytes, problem: str) -> None:
    (tmp_path / "a.jsonl").write_bytes(b'["q", [{"paragraph_id": "p", "text": "\xc3\xbc", ' + bad + b"}]]\n")
    with pytest.raises(FormatError, match=r"a\.jsonl:1: " + problem):
        load_graded(tmp_path / "a.jsonl")
