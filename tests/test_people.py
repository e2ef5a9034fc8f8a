"""People's grades in the place of a grader's: what counts where they differ, in every command that scores."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rubric_measures import RubricCover
from rubric_measures.cli import main
from rubric_measures.errors import InputError
from rubric_measures.formats.bank import load_bank
from rubric_measures.formats.trec import read_qrels
from rubric_measures.grade_sets import GradeFilter, GradeSetSelector
from rubric_measures.leaderboard import score_records
from rubric_measures.people import grade_of_people
from rubric_measures.review.events import Cell
from rubric_measures.review.export import export_review
from rubric_measures.review.material import load_material
from rubric_measures.review.session import Review
from rubric_measures.review.store import ReviewStore
from rubric_measures.selection import consume_records, load_records
from rubric_measures.verification.analyses import check_records
from tests.example_records import BANK, grade_set, passage, write_lines

OVERRIDE = GradeFilter(people="override")


def by(person: str, grades: dict[str, int], kind: str = "question") -> dict[str, Any]:
    entry = grade_set(grades, llm=f"human:{person}", prompt="HumanReview", kind=kind)
    return {**entry, "answers": [[item_id, f"{person} says so"] for item_id in grades]}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """d1: people change a, agree on b, grade c, which failed; d2: three differ on a; d3: the grader graded nothing."""
    first = [grade_set({"q1/a": 5, "q1/b": 4}, status={"q1/c": "unparsed"})]
    first += [by("ada", {"q1/a": 1, "q1/b": 4}), by("ada", {"q1/a": 2}), by("bob", {"q1/c": 4})]
    second = [grade_set({"q1/a": 0, "q1/b": 0, "q1/c": 0})]
    second += [by("ada", {"q1/a": 5}), by("bob", {"q1/a": 1}), by("cleo", {"q1/a": 4})]
    third = [by("ada", {"q1/d": 5})]
    passages = [
        passage("q1", f"d{n}", sets, {"one": n, "two": 4 - n}) for n, sets in enumerate((first, second, third), 1)
    ]
    write_lines(tmp_path / "bank.jsonl", BANK)
    return write_lines(tmp_path / "graded.jsonl", [["q1", passages]])


# d1: a 2 (Ada's later entry), b 4, c 4 (Bob's, where the grader failed); d2: a 4, the median of 1, 4, 5.
EXPECTED = {
    ("q1", "d1", "q1/a", 2),
    ("q1", "d1", "q1/b", 4),
    ("q1", "d1", "q1/c", 4),
    ("q1", "d2", "q1/a", 4),
    ("q1", "d2", "q1/b", 0),
    ("q1", "d2", "q1/c", 0),
}


@given(st.lists(st.integers(0, 5), min_size=1))
def test_the_grade_of_people_is_one_of_theirs_and_splits_them_in_halves(grades: list[int]) -> None:
    found = grade_of_people(grades)
    assert found in grades and found == grade_of_people(sorted(grades))
    assert 2 * sum(one < found for one in grades) < len(grades) and 2 * sum(one > found for one in grades) <= len(
        grades
    )


def test_of_two_people_the_lower_grade_counts() -> None:
    assert (grade_of_people([5, 2]), grade_of_people([2, 5]), grade_of_people([0, 5, 5])) == (2, 2, 5)


@pytest.mark.parametrize("with_bank", [True, False])
def test_people_stand_in_the_graders_place_and_it_is_said(
    path: Path, with_bank: bool, caplog: pytest.LogCaptureFixture
) -> None:
    bank = load_bank(path.with_name("bank.jsonl")) if with_bank else None
    grades = load_records(path, bank, OVERRIDE)
    rows = grades.queries["q1"].rows()
    assert {(row.query_id, row.doc_id, row.iteration, row.relevance) for row in rows} == EXPECTED
    assert grades.queries["q1"].failed == {}
    said = [record.getMessage().partition(": ")[2] for record in caplog.records]
    # a, b and c of d1, a of d2; b is the grader's too. Of d2's a people differ; d3 was not graded by the grader.
    assert said == [
        "4 grades by people stand in the grader's place; 3 of them say something else than the grader",
        "on 1 of them people differ; the median counts, of two the lower",
        "1 grades by people left out: the grader graded nothing of their passages",
    ]
    assert [text.split()[1] for text in grades.source["grades"]] == ["human:ada", "human:bob", "human:cleo", "model"]


def test_streams_and_files_in_any_order_say_the_same(path: Path, tmp_path: Path) -> None:
    bank = load_bank(path.with_name("bank.jsonl"))
    (line,) = [json.loads(one) for one in path.read_text().splitlines()]
    other = ["q2", [passage("q2", "d9", [grade_set({"q2/a": 1})], {"one": 1})]]
    # A passage a line, and the query comes back after another one: the file is sorted on disk before it is streamed.
    lines = [["q1", line[1][2]], other, ["q1", line[1][1]], ["q1", line[1][0]]]
    apart = write_lines(tmp_path / "apart.jsonl", lines)
    boards = [
        consume_records(lambda stream: score_records(stream, [RubricCover(rel=4) @ 1]), one, bank, OVERRIDE)
        for one in (path, apart)
    ]
    # |R_q1| = 4. one ranks d1 first: b and c. two ranks d3 first, which the grader did not grade.
    first, second = (board.values for board in boards)
    measure = str(RubricCover(rel=4) @ 1)
    assert (first["one"][measure]["q1"], first["two"][measure]["q1"]) == (0.5, 0.0)
    assert (second["one"][measure]["q1"], second["two"][measure]["q1"]) == (0.5, 0.0)
    in_memory = load_records(apart, bank, OVERRIDE)
    rows = in_memory.queries["q1"].rows()
    assert {(row.query_id, row.doc_id, row.iteration, row.relevance) for row in rows} == EXPECTED
    assert str(boards[0].signature) == str(boards[1].signature)
    assert "human:cleo" in str(boards[0].signature)


def test_every_command_that_scores(path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = tmp_path / "one.run"
    run.write_text("q1 Q0 d1 1 2 one\nq1 Q0 d2 2 1 one\n")
    common = ["--bank", str(path.with_name("bank.jsonl")), "--people", "override"]
    assert main(["evaluate", str(path), str(run), "RubricCover(rel=4)@1", "-q", *common]) == 0
    out = capsys.readouterr()
    assert "q1\tRubricCover(rel=4)@1\t0.5000" in out.out and "4 grades by people stand" in out.err
    assert out.err.count("stand in the grader's place") == 1
    assert main(["leaderboard", str(path), "-m", "RubricCover(rel=4)@1", *common]) == 0
    assert capsys.readouterr().err.count("stand in the grader's place") == 1
    assert main(["qrels", str(path), "--output", str(tmp_path / "q.qrels"), *common]) == 0
    assert {row[:2]: row.relevance for row in read_qrels(tmp_path / "q.qrels")} == {("q1", "d1"): 4, ("q1", "d2"): 4}
    capsys.readouterr()
    assert main(["verify", str(path), "--verify-grading", "-o", "jsonl", *common]) == 0
    out = capsys.readouterr()
    rows = [json.loads(line) for line in out.out.splitlines()]
    (row,) = [row for row in rows if row["doc_id"] == "d2" and row["title"].endswith("(q1/a)")]
    assert (row["grade"], row["answer"]) == (4, "ada says so; bob says so; cleo says so")
    assert out.err.count("stand in the grader's place") == 1
    # Without the option each person is a grader, and the error says what there is.
    assert main(["qrels", str(path), *common[:2]]) == 2
    assert "--llm human:ada" in (said := capsys.readouterr().err) and "--people override" in said
    assert main(["qrels", str(path), *common, "--llm", "human:ada"]) == 2
    assert "name the grader, not the person" in capsys.readouterr().err


def test_files_without_people_say_so(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = write_lines(tmp_path / "g.jsonl", [["q1", [passage("q1", "d1", [grade_set({"q1/a": 5})])]]])
    assert load_records(path, None, OVERRIDE).queries == load_records(path).queries
    assert [record.getMessage().partition(": ")[2][:27] for record in caplog.records] == ["holds no grades by people ("]


def test_people_override_items_of_their_kind_and_of_the_bank_only(tmp_path: Path) -> None:
    nuggets = grade_set({"q1/n": 1}, kind="nugget", prompt="NuggetSelfRatedPrompt")
    sets = [nuggets, by("ada", {"q1/n": 4}, "nugget"), by("ada", {"q1/a": 5})]
    path = write_lines(tmp_path / "g.jsonl", [["q1", [passage("q1", "d1", sets)]]])
    found = [(row.iteration, row.relevance) for row in load_records(path, None, OVERRIDE).queries["q1"].rows()]
    assert found == [("q1/n", 4)]
    # Grades 0 and 1 by a key of answers become ratings beside those of people.
    keyed = {**grade_set({"q1/a": 1, "q1/b": 0}), "self_ratings": None}
    sets = [keyed, by("ada", {"q1/a": 3, "q1/gone": 5})]
    path = write_lines(tmp_path / "k.jsonl", [["q1", [passage("q1", "d1", sets)]]])
    bank = load_bank(write_lines(tmp_path / "bank.jsonl", BANK))
    found = [(row.iteration, row.relevance) for row in load_records(path, bank, OVERRIDE).queries["q1"].rows()]
    assert sorted(found) == [("q1/a", 3), ("q1/b", 0)]


def test_a_review_and_its_export_score_alike(path: Path, tmp_path: Path) -> None:
    pytest.importorskip("jinja2")
    lines = [["q1", [passage("q1", "d1", [grade_set({"q1/a": 5, "q1/b": 0})], {"one": 1, "two": 2})]]]
    lines[0][1].append(passage("q1", "d2", [grade_set({"q1/a": 0, "q1/b": 5})], {"one": 2, "two": 1}))
    graded, bank = write_lines(tmp_path / "r.jsonl", lines), path.with_name("bank.jsonl")
    material = load_material(graded, bank)
    store = ReviewStore(tmp_path / "s.sqlite", material.bank)
    try:
        cell = Cell("q1", "d1", "q1/a")
        for person, grade in (("ada", 1), ("bob", 4), ("ada", 2)):
            store.grade(person, cell, grade, 5)
            store.decide(person, cell, "override", grade, "seen otherwise")
        # Bob was the first to decide and Ada the last; with two people the lower grade counts either way.
        assert store.snapshot().final(cell) == 2
        measure = RubricCover(rel=4) @ 1
        review = Review(material, store, [measure], str(bank), tmp_path)
        (impact,) = review.impact(store.snapshot())
        made = export_review(store, material, str(bank), tmp_path / "out")
    finally:
        store.close()
    after = consume_records(
        lambda stream: score_records(stream, [measure]), made.paths[0], load_bank(made.paths[1]), OVERRIDE
    )
    # one has d1 first, where a fell: 0 of 4; two has d2 first with b: 1 of 4; q2 and q3 count with 0.
    assert {row.run_id: row.after for row in impact.rows} == {"one": 0.0, "two": 0.25 / 3}
    means = {run: sum(value or 0 for value in row[str(measure)].values()) / 3 for run, row in after.values.items()}
    del means["_overall_"]
    assert means == {"one": 0.0, "two": 0.25 / 3}


def test_a_person_cannot_be_overridden() -> None:
    with pytest.raises(InputError, match="name the grader"):
        GradeFilter(llm="human:ada", people="override")
    assert list(check_records([], GradeSetSelector(OVERRIDE, "x"))) == []
