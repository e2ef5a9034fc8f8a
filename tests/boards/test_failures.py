"""Tests of what boards say of failed grades: figures beside the scores, notes, and where they refuse."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path

import pytest

import rubric_measures
from rubric_measures.base.errors import MeasureError
from rubric_measures.cli import main
from rubric_measures.measures.grades import Grades, OnFailed
from rubric_measures.types.entities import Grade, RubricItem, TestBank
from tests.example_records import grade_set, passage, write_lines

COVER = "RubricCover(rel=4)@2"


def graded(rows: dict[str, dict[str, list[int | None]]], on_failed: OnFailed | None = None) -> Grades:
    """query -> passage -> a grade an item; None failed."""
    grades = [
        Grade(query, doc, grade, f"{query}/{place}", "failed" if grade is None else "graded")
        for query, passages in rows.items()
        for doc, of_items in passages.items()
        for place, grade in enumerate(of_items)
    ]
    return rubric_measures.load(grades, on_failed=on_failed, grader="scale=0-5:4")


# q1: a is covered by one, b failed once and is graded 0 once, c is 0 twice: p = 1/(1 + 3) = 1/4.
# q2: nothing is known. q3 and q4 are complete: 1 and 0.
ROWS: dict[str, dict[str, list[int | None]]] = {
    "q1": {"d1": [5, None, 0], "d2": [0, 0, 0]},
    "q2": {"d1": [None, None, None]},
    "q3": {"d1": [5, 5, 5]},
    "q4": {"d1": [0, 0, 0]},
}
RUN = {"one": {query: {doc: -float(doc[1:]) for doc in docs} for query, docs in ROWS.items()}}


def test_what_failed_grades_leave_open() -> None:
    board = rubric_measures.score(graded(ROWS, "expected"), RUN, COVER, overall=False)
    assert board.values["one"][COVER] == {"q1": pytest.approx((1 + 1 / 4) / 3), "q2": None, "q3": 1.0, "q4": 0.0}
    cell = board.cells["one"][COVER]
    failures = cell.failures
    assert failures is not None
    # 2 + 1 + 1 + 1 passages of three items.
    assert (cell.failed, failures.share, failures.unscored) == (4, pytest.approx(4 / 15), 1)
    scores = [5 / 12, 1.0, 0.0]
    mean = sum(scores) / 3
    # As zero: 1/3, 0, 1, 0; as the highest: 2/3, 1, 1, 0.
    assert cell.mean == pytest.approx(mean)
    assert failures.credit == pytest.approx(mean - float(Fraction(1, 3)))
    assert failures.bounds == (pytest.approx(1 / 3), pytest.approx(2 / 3))
    # p̃ = (1 + ½)/(1 + 3 + 1) = 3/10; the spread of q1 is √(.3 · .7)/3. Of Q = 4 queries U = 1 has no value.
    variance = sum((score - mean) ** 2 for score in scores) / 2
    squared = (math.sqrt(0.3 * 0.7) / 3) ** 2 + variance * (1 + 1 / 3)
    assert failures.standard_error == pytest.approx(math.sqrt(squared) / 4)


def test_the_forms_of_a_board_show_them() -> None:
    board = rubric_measures.score(graded(ROWS, "expected"), RUN, COVER, overall=False)
    (run,) = json.loads(board.render("json", -1))["runs"]
    shown = run["measures"][COVER]["failures"]
    assert shown["bounds"] == [pytest.approx(1 / 3), pytest.approx(2 / 3)]
    assert (shown["share"], shown["unscored"]) == (pytest.approx(4 / 15), 1)
    assert "0.3333 to 0.6667" in str(board)
    # Tables for programs are as they were.
    assert board.render("tsv").splitlines()[0].split("\t") == ["run_id", COVER, f"stderr:{COVER}", f"coverage:{COVER}"]


def rows_with(share: float) -> dict[str, dict[str, list[int | None]]]:
    """Ten passages of ten items, half of them covered, of which so many hundredths failed."""
    failed = round(100 * share)
    cells: list[int | None] = [None] * failed + [5, 0] * 50
    return {"q": {f"d{doc}": cells[10 * doc : 10 * doc + 10] for doc in range(10)}}


@pytest.mark.parametrize(
    ("share", "expected"),
    [
        (0.0, []),
        (0.01, [("WARNING", "1 grade that a score needed failed")]),
        (0.06, [("WARNING", "read the bounds")]),
    ],
)
def test_notes_grow_with_the_share(
    share: float, expected: list[tuple[str, str]], caplog: pytest.LogCaptureFixture
) -> None:
    grades = graded(rows_with(share))
    with caplog.at_level("INFO", logger="rubric_measures"):
        everything = {"q": {f"d{doc}": -float(doc) for doc in range(10)}}
        rubric_measures.score(grades, {"a": everything, "b": everything}, "NuggetA(rel=4)@10", overall=False)
    said = [(one.levelname, one.getMessage()) for one in caplog.records if "failed" in one.getMessage()]
    assert len(said) == (len(expected) if share else 0)
    for (level, text), (wanted, part) in zip(said, expected, strict=True):
        assert level == wanted and part in text


def test_from_a_fifth_on_somebody_must_ask_for_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    everything = {"a": {"q": {f"d{doc}": -float(doc) for doc in range(10)}}}
    with pytest.raises(MeasureError, match=r"20 % of the grades that RubricCover\(rel=4\)@10 needs of run a failed"):
        rubric_measures.score(graded(rows_with(0.2)), everything, "RubricCover(rel=4)@10")
    rubric_measures.score(graded(rows_with(0.2), "expected"), everything, "RubricCover(rel=4)@10")
    entry = grade_set({"q/a": 5, "q/b": 0}, status={"q/c": "failed"})
    path = str(write_lines(tmp_path / "g.jsonl", [["q", [passage("q", "d", [entry], {"s": 1})]]]))
    (tmp_path / "s.run").write_text("q Q0 d 1 1.0 s\n")
    for command in (["leaderboard", path, "-m"], ["evaluate", path, str(tmp_path / "s.run")]):
        capsys.readouterr()
        assert main([*command, "RubricCover(rel=4)@1"]) == 2
        said = capsys.readouterr().err
        assert "33 % of the grades" in said and "(--on-failed)" in said and said.count("\n") == 1
        assert main([*command, "RubricCover(rel=4)@1", "--on-failed", "expected"]) == 1
        assert "0.5000" in capsys.readouterr().out


def test_a_passage_of_which_every_call_failed_has_failed_grades(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As the workbench writes it: no list names an item, and the errors name them all."""
    items = [f"q/{name}" for name in "abcde"]
    graded_one = grade_set({**dict.fromkeys(items, 0), "q/a": 5})
    nothing = {**grade_set({}), "llm_response_errors": dict.fromkeys(items, "timeout")}
    passages = [passage("q", "d1", [graded_one], {"s": 1}), passage("q", "d2", [nothing], {"s": 2})]
    records = str(write_lines(tmp_path / "g.jsonl", [["q", passages]]))
    asked = [{"question_id": item_id, "question_text": item_id} for item_id in items]
    bank = str(write_lines(tmp_path / "bank.jsonl", [{"query_id": "q", "items": asked}]))
    command = ["leaderboard", records, "--bank", bank, "-m", "RubricCover@20"]
    # p = 1/(1 + 4), and one grade of each of four items failed: (1 + 4 · 1/5)/5.
    assert main([*command, "--on-failed", "expected"]) == 1
    assert "0.3600" in capsys.readouterr().out
    assert main(command) == 2
    assert "50 % of the grades" in capsys.readouterr().err


def test_the_share_of_failed_grades_is_of_those_that_a_measure_needs(tmp_path: Path) -> None:
    items = [RubricItem("q/v", "q", "", importance="vital"), RubricItem("q/o", "q", "", importance="okay")]
    rows = [
        Grade("q", "d1", 5, "q/v"),
        Grade("q", "d2", 0, "q/v"),
        Grade("q", "d1", None, "q/o", "failed"),
        Grade("q", "d2", 4, "q/o"),
    ]
    grades = rubric_measures.load(rows, TestBank({"q": items}), on_failed="expected", grader="scale=0-5:4")
    names = ["NuggetV(rel=4,strict=True)", "NuggetA(rel=4,strict=True)", "RubricQrels(measure='Bpref',rel=4)"]
    board = rubric_measures.score(grades, {"one": {"q": {"d1": 2.0, "d2": 1.0}}}, names, overall=False)
    vital, every = (board.cells["one"][name] for name in names[:2])
    # Of two grades of the vital item none failed; of four grades one did.
    assert (vital.failed, vital.failures, vital.coverage) == (0, None, 1.0)
    assert every.failures is not None
    assert (every.failed, every.failures.share, every.coverage) == (1, 0.25, 0.75)
