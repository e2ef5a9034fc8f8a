"""The command `combine`: panels that vote, and graders in the order of preference, on the grades of three graders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import rubric_measures
from rubric_measures.cli import main
from rubric_measures.records.models import (
    DirectGrade,
    GradedPassage,
    ItemGradeSet,
    Judgment,
    PassageData,
    PromptInfo,
    QueryPassages,
    RankingEntry,
    grade_set_key,
    load_graded,
    provenance_of,
    write_graded,
)

RATED = PromptInfo(prompt_class="Rated", scale=[0, 5], covers=4, partial=3)
# passage -> item -> the grades of A, B and C; None where the reply could not be read.
GRADES: Mapping[str, Mapping[str, Sequence[int | None]]] = {
    "d1": {"i1": (5, 5, 1), "i2": (2, 4, 5)},
    "d2": {"i1": (0, 0, 0), "i2": (3, 3, 5)},
    "d3": {"i1": (1, 0, 1), "i2": (None, 4, 2)},
    "d4": {"i1": (4, None, None), "i2": (0, 1, 5)},
}
JUDGED = {"d1": 1, "d2": 0, "d3": 0, "d4": 1}
RUNS = {"one": ["d1", "d4", "d2", "d3"], "two": ["d2", "d3", "d1", "d4"], "three": ["d3", "d2", "d4", "d1"]}


def graded(place: int, name: str, items: Mapping[str, Sequence[int | None]], **more: Any) -> ItemGradeSet:
    grades = {item: row[place] for item, row in items.items()}
    lost = [item for item, grade in grades.items() if grade is None]
    made = ItemGradeSet.build(
        {item: grade for item, grade in grades.items() if grade is not None},
        answers=[(item, str(grade)) for item, grade in grades.items()],
        llm=name,
        prompt_info=RATED,
        item_status=dict.fromkeys(lost, "unparsed"),
    )
    return made.replacing(**more) if more else made


def passage(doc_id: str, entries: list[ItemGradeSet], judged: bool = True) -> GradedPassage:
    rankings = [
        RankingEntry(method=run, doc_id=doc_id, query_id="q1", rank=order.index(doc_id) + 1, score=-order.index(doc_id))
        for run, order in RUNS.items()
    ]
    judgments = [Judgment(doc_id=doc_id, query_id="q1", relevance=JUDGED[doc_id])] if judged else None
    data = PassageData(judgments=judgments, rankings=rankings)
    return GradedPassage(doc_id=doc_id, text=f"text of {doc_id}", paragraph_data=data, exam_grades=entries)


@pytest.fixture
def records(tmp_path: Path) -> str:
    passages = [
        passage(doc_id, [graded(place, name, items) for place, name in enumerate("ABC")])
        for doc_id, items in GRADES.items()
    ]
    path = str(tmp_path / "graded.jsonl")
    write_graded(path, [QueryPassages("q1", passages)])
    return path


def grades_of(path: str, llm: str) -> dict[str, dict[str, int]]:
    return {
        passage.doc_id: {rating.item_id: rating.self_rating for rating in entry.self_ratings or ()}
        for group in load_graded(path)
        for passage in group.passages
        for entry in passage.exam_grades or ()
        if entry.llm == llm
    }


def out_of(capsys: pytest.CaptureFixture[str], *command: object) -> tuple[int, str, str]:
    status = main([str(word) for word in command])
    said = capsys.readouterr()
    return status, said.out, said.err


PANEL = ("--grader", "A", "--grader", "B", "--grader", "C")


@pytest.mark.parametrize(
    ("by", "expected"),
    [
        # d1/i2: three different grades, the lowest; d3/i2: 4 and 2 of three members; d4/i1: one of three is no panel.
        (("majority",), {"d1": [5, 2], "d2": [0, 3], "d3": [1, 2], "d4": [0]}),
        # Of two the lower.
        (("median",), {"d1": [5, 4], "d2": [0, 3], "d3": [1, 2], "d4": [1]}),
    ],
)
def test_a_panel_is_one_more_grader(
    by: tuple[str, ...],
    expected: dict[str, list[int]],
    records: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    output = str(tmp_path / "panel.jsonl")
    status, out, err = out_of(capsys, "combine", records, *PANEL, "--by", *by, "-o", output)
    assert (status, out) == (0, "") and f"panel:{by[0]}: 7 grades, 1 without one (too few members have a grade)" in err
    found = grades_of(output, f"panel:{by[0]}")
    assert {doc_id: list(items.values()) for doc_id, items in found.items()} == expected
    # The members stay as they were.
    assert [grades_of(output, name) for name in "ABC"] == [grades_of(records, name) for name in "ABC"]
    entry = load_graded(output)[0].passages[3].exam_grades[-1]  # type: ignore[index]
    assert entry.item_status == {"i1": "unparsed"}
    assert dict(entry.answers)["i1"] == "A: 4, B: unparsed, C: unparsed"
    made = provenance_of(entry)
    assert [member["llm"] for member in made["members"]] == ["A", "B", "C"]
    assert made["by"] == by[0]
    # Again over the same file: replaced, not there twice.
    assert out_of(capsys, "combine", output, *PANEL, "--by", *by, "-o", output)[0] == 0
    assert Path(output).read_bytes().count(b'"llm":"panel:') == 4
    # Scored like any grader, on the members' scale.
    board = rubric_measures.score(rubric_measures.load(output, grader=f"panel:{by[0]}"), measures="RubricCover@1")
    assert board.measures == ["RubricCover(rel=4)@1"]


@pytest.mark.parametrize("by", ["prefer", "majority"])
def test_members_of_one_model_and_prompt_have_a_name_each(by: str, tmp_path: Path, capsys: Any) -> None:
    path = str(tmp_path / "graded.jsonl")
    sets = [graded(0, "A", GRADES["d1"], llm_options={"temperature": heat}) for heat in (0, 1)]
    write_graded(path, [QueryPassages("q1", [passage("d1", sets)])])
    hashes = [grade_set_key(one).grade_set for one in sets]
    panel = [word for one in hashes for word in ("--grader", f"set={one}")]
    output = str(tmp_path / "panel.jsonl")
    assert out_of(capsys, "combine", path, *panel, "--by", by, "-o", output)[0] == 0
    entry = load_graded(output)[0].passages[0].exam_grades[-1]  # type: ignore[index]
    first, second = (f"A Rated [{one[:8]}]" for one in hashes)
    assert dict(entry.answers)["i1"] == f"{first}: 5, {second}: 5"


def test_grades_with_fractions_are_no_votes(records: str, capsys: pytest.CaptureFixture[str]) -> None:
    (group,) = load_graded(records)
    real = ItemGradeSet.build({"i1": 2.5}, answers=[("i1", "")], llm="D", prompt_info=RATED)
    first = group.passages[0]
    first = first.replacing(exam_grades=[*(first.exam_grades or ()), real])
    write_graded(records, [group._replace(passages=[first, *group.passages[1:]])])
    command = ("combine", records, "--grader", "A", "--grader", "D", "-o", f"{records}.panel")
    code, out, errors = out_of(capsys, *command)
    assert (code, out) == (2, "")
    assert "a member has the grade 2.5, and only whole grades are votes" in errors
    (passage, *_) = rubric_measures.combine(records, ["A", "D"], by="median")[0].passages
    assert [rating.self_rating for rating in (passage.exam_grades or [])[-1].self_ratings or ()] == [2.5]


def test_the_first_that_has_a_grade_is_preferred(
    records: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # B was asked about two items only, and could not read the reply about one of them.
    asked = {"d1": {"i2": GRADES["d1"]["i2"]}, "d4": {"i1": GRADES["d4"]["i1"]}}
    passages = [
        passage(doc_id, [graded(0, "A", items), *([graded(1, "B", asked[doc_id])] if doc_id in asked else []),
                         graded(2, "C", items)])
        for doc_id, items in GRADES.items()
    ]  # fmt: skip
    write_graded(records, [QueryPassages("q1", passages)])
    output = str(tmp_path / "best.jsonl")
    assert out_of(capsys, "combine", records, "--by", "prefer", "--grader", "B", "--grader", "A", "-o", output)[0] == 0
    found = grades_of(output, "panel:prefer")
    # All of A but for B's 4 in the place of A's 2. Neither has a grade of the second item of d3.
    assert found == {**grades_of(records, "A"), "d1": {"i1": 5, "i2": 4}}
    third, last = (one.exam_grades[-1] for one in load_graded(output)[0].passages[2:])  # type: ignore[index]
    assert third.item_status == {"i2": "unparsed"}
    assert dict(last.answers) == {"i1": "B: unparsed, A: 4", "i2": "B: not asked, A: 0"}
    made = provenance_of(last)
    assert (made["by"], [member["llm"] for member in made["members"]]) == ("prefer", ["B", "A"])
    # In Python, and with a third one behind the two.
    rubric_measures.combine(records, ["B", "A", "C"], by="prefer", output=output)
    assert grades_of(output, "panel:prefer")["d3"] == {"i1": 1, "i2": 2}


def test_labels_of_passages_are_combined_too(tmp_path: Path) -> None:
    def label(name: str, grade: int | None) -> DirectGrade:
        more: dict[str, Any] = {} if grade is not None else {"status": "unparsed", "llm_response_error": "no grade"}
        info = PromptInfo(prompt_class="Thomas")
        return DirectGrade(
            correct_answered=bool(grade), answer=str(grade), self_rating=grade, llm=name, prompt_info=info, **more
        )

    passages = [
        GradedPassage(
            doc_id=doc_id, text="x", grades=[label(name, grade) for name, grade in zip("ABC", row, strict=True)]
        )
        for doc_id, row in {"d1": (2, 2, 0), "d2": (1, None, None)}.items()
    ]
    made = rubric_measures.combine([QueryPassages("q1", passages)], ["A", "B", "C"])
    first, second = ((one.grades or [])[-1] for one in made[0].passages)
    assert (first.llm, first.label, second.label, second.status) == ("panel:majority", 2, None, "unparsed")
    grades = rubric_measures.load(made, grader="model=panel:majority,kind=direct")
    assert grades.queries["q1"].labels("max") == {"d1": 2}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--grader", "A"), "a panel has two members or more; name each (--grader)"),
        (("--grader", "A", "--grader", "X"), "holds no grades for model=X; there are grades of: model=A,prompt="),
        (("--grader", "A", "--grader", "A"), "A is named twice; a member has one vote (--grader)"),
        (("--by", "prefer", "--grader", "A"), "a panel has two members or more; name each (--grader)"),
        (
            ("--by", "prefer", "--grader", "A", "--grader", "X"),
            "holds no grades for model=X; there are grades of: model=A,prompt=",
        ),
        (("--by", "prefer", "--grader", "A", "--grader", "D"), "the members are on different scales (A on 0-5:4:3"),
        ((*PANEL, "--grader", "D"), "the members are on different scales (A on 0-5:4:3"),
    ],
)
def test_what_cannot_be_combined_is_one_line(
    arguments: tuple[str, ...], said: str, records: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (group,) = load_graded(records)
    info = PromptInfo(prompt_class="Rated", scale=[0, 3], covers=2)
    other = ItemGradeSet.build({"i1": 1}, answers=[("i1", "1")], llm="D", prompt_info=info)
    passages = [one.replacing(exam_grades=[*(one.exam_grades or ()), other]) for one in group.passages]
    write_graded(records, [group._replace(passages=passages)])
    output = tmp_path / "out.jsonl"
    code, out, errors = out_of(capsys, "combine", records, *arguments, "-o", output)
    assert (code, out) == (2, "")
    assert said in errors
    assert errors.count("\n") == 1
    assert not output.exists()


def reviewed(path: Path) -> str:
    """Of A and B, and of Ada, who graded in sight of A's grades and changed one."""
    of = {"A": {"i1": 5, "i2": 4}, "B": {"i1": 1, "i2": 4}, "human:ada": {"i1": 0}}
    seen = PromptInfo(prompt_class="HumanReview", scale=[0, 5], covers=4, partial=3)
    entries = [
        ItemGradeSet.build(grades, answers=[], llm=name, prompt_info=seen if name == "human:ada" else RATED)
        for name, grades in of.items()
    ]
    write_graded(path, [QueryPassages("q1", [passage("d1", entries)])])
    return str(path)


def test_a_panel_with_final_grades_of_a_review_says_what_was_in_sight(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out = reviewed(tmp_path / "graded.jsonl"), tmp_path / "panel.jsonl"
    both = ("--grader", "human:ada", "--grader", "A", "--by", "prefer")
    status, _, err = out_of(capsys, "combine", path, *both, "-o", out)
    assert status == 0 and grades_of(str(out), "panel:prefer") == {"d1": {"i1": 0, "i2": 4}}
    assert "final grades of a review were settled with the grader's in sight" in err
