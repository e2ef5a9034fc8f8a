"""Each scale through each command that scores, shows or asks: the same grades on another scale say the same."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rubric_measures.base.scales import Scale, parse_scale
from rubric_measures.cli import main
from rubric_measures.grades.grade_sets import GradeFilter
from rubric_measures.review.opening import open_review
from tests.example_records import BANK, grade_set, passage, write_lines

SCALES = ["0-1:1", "0-2:2:1", "0-3:2", "0-5:4:3"]


def write_files(folder: Path, scale: Scale) -> None:
    """Records, a bank, item qrels without a scale, and runs. Passage d1 covers a, just misses b; d2 covers b."""
    at, below = scale.covers, scale.covers - 1
    said = {"prompt_class": "Mine", **scale.as_json()}
    first = grade_set({"q1/a": at, "q1/b": below, "q1/c": 0})
    second = grade_set({"q1/a": 0, "q1/b": scale.highest, "q1/c": 0})
    sets = [{**one, "prompt_info": said} for one in (first, second)]
    other = [{**one, "llm": "other"} for one in sets[::-1]]
    third = {**grade_set({"q1/a": 0, "q1/b": below, "q1/c": 0}), "prompt_info": said}
    records = [
        [
            "q1",
            [
                passage("q1", "d1", [sets[0], other[0]], {"one": 1, "two": 2}, 2),
                passage("q1", "d2", [sets[1], other[1]], {"one": 2, "two": 1}, 0),
                passage("q1", "d3", [third], {"three": 1}, 1),
            ],
        ]
    ]
    write_lines(folder / "graded.jsonl", records)
    write_lines(folder / "bank.jsonl", BANK[:1])
    grades = {"d1": (at, below, 0), "d2": (0, scale.highest, 0), "d3": (0, below, 0)}
    rows = [f"q1 q1/{item} {doc} {grade}" for doc, of in grades.items() for item, grade in zip("abc", of, strict=True)]
    (folder / "items.qrels").write_text("\n".join(rows) + "\n")
    (folder / "one.run").write_text("q1 Q0 d1 1 2 one\nq1 Q0 d3 2 1 one\n")
    (folder / "two.run").write_text("q1 Q0 d3 1 2 two\nq1 Q0 d2 2 1 two\n")


@pytest.fixture(params=SCALES)
def scale(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scale:
    found = parse_scale(request.param)
    write_files(tmp_path, found)
    monkeypatch.chdir(tmp_path)
    return found


def call(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    capsys.readouterr()
    assert main([*arguments]) == code, capsys.readouterr().err
    out, err = capsys.readouterr()
    assert code == 0 or (not out and err.startswith("rubric_measures: ") and err.count("\n") == 1)
    return out if code == 0 else err


RECORDS_OF_MODEL = ("graded.jsonl", "--llm", "model", "--bank", "bank.jsonl")


def test_scores_are_those_of_the_scales_level(scale: Scale, capsys: pytest.CaptureFixture[str]) -> None:
    name = f"RubricCover(rel={scale.covers})@20"
    board = json.loads(call(capsys, "leaderboard", *RECORDS_OF_MODEL, "-m", "RubricCover@20", "-o", "json"))
    means = {row["run_id"]: row["measures"][name]["mean"] for row in board["runs"]}
    # Of the four items of the bank; three ranks a passage that covers none.
    assert means | {"_overall_": 0.5} == {"one": 0.5, "two": 0.5, "three": 0.0, "_overall_": 0.5}
    runs = ("one.run", "two.run")
    command = ("leaderboard", RECORDS_OF_MODEL[0], *runs, *RECORDS_OF_MODEL[1:], "-m", "RubricCover@20", "-o", "json")
    rows = json.loads(call(capsys, *command))["runs"]
    assert {row["run_id"]: row["measures"][name]["mean"] for row in rows} | {"_overall_": 0.5} == {
        "one": 0.25,
        "two": 0.25,
        "_overall_": 0.5,
    }
    printed = call(capsys, "evaluate", RECORDS_OF_MODEL[0], "one.run", "RubricCover@20", *RECORDS_OF_MODEL[1:])
    assert printed.split() == [name, "0.2500"]


def test_item_qrels_carry_the_scale_on(scale: Scale, capsys: pytest.CaptureFixture[str]) -> None:
    for writer in (("qrels", "--per", "item"), ("convert", "--to", "item-qrels")):
        call(capsys, writer[0], *RECORDS_OF_MODEL, *writer[1:], "-o", "out.qrels")
        printed = call(capsys, "evaluate", "out.qrels", "one.run", "RubricCover@20")
        assert printed.split() == [f"RubricCover(rel={scale.covers})@20", "0.2500"]


def test_reports_take_the_scales_level(scale: Scale, capsys: pytest.CaptureFixture[str]) -> None:
    out = call(capsys, "verify", *RECORDS_OF_MODEL, "--uncovered-passages", "--bad-question", "--item-statistics")
    assert f"no item graded {scale.covers} or better" in out and f"covered from grade {scale.covers}," in out
    lines = call(capsys, "verify", *RECORDS_OF_MODEL, "--item-statistics", "--uncovered-passages", "-o", "jsonl")
    rows = [json.loads(line) for line in lines.splitlines()]
    covering = {row["item_id"]: row["covering"] for row in rows if row["report"] == "items"}
    assert covering == {"q1/a": 1, "q1/b": 1, "q1/c": 0, "q1/d": 0}
    assert [row["doc_id"] for row in rows if row["report"] == "uncovered"] == ["d3"]


def test_the_review_is_on_the_scale(scale: Scale, tmp_path: Path) -> None:
    review = open_review("graded.jsonl", "bank.jsonl", wanted=GradeFilter("model"))
    try:
        assert list(review.material.grade_names) == list(range(scale.lowest, scale.highest + 1))
        assert review.material.scale == scale
        impact = review.impact(review.store.snapshot())[0]
        assert impact.measure == f"RubricCover(rel={scale.covers})@20"
        assert {row.run_id: row.before for row in impact.rows} == {"one": 0.5, "two": 0.5, "three": 0.0}
    finally:
        review.store.close()
    arguments = ["review", "graded.jsonl", "--bank", "bank.jsonl", "--export-queue", "queue.html", "--order", "audit"]
    assert main(arguments) == 0
    assert f"Single keys: {scale.lowest}–{scale.highest}," in (tmp_path / "queue.html").read_text()


def test_agreement_and_boards_are_on_the_scale(scale: Scale, capsys: pytest.CaptureFixture[str]) -> None:
    ends = f"{scale.lowest}-{scale.highest}"
    two = ("graded.jsonl", "graded.jsonl", "--llm", "model", "--llm-b", "other")
    out = call(capsys, "agreement", *two, "--items", "--scale", ends, "-o", "json")
    assert all(f'"{grade}"' in out for grade in range(scale.lowest, scale.highest + 1))
    board = call(capsys, "leaderboard", *RECORDS_OF_MODEL, "-m", "RubricCover@20", "-o", "json", "--no-overall")
    Path("board.json").write_text(board)
    name = f"RubricCover(rel={scale.covers})@20"
    assert name in call(capsys, "correlate", "board.json", "board.json", "-m", "RubricCover@20")


def test_a_scale_that_is_not_known_is_asked_for(scale: Scale, capsys: pytest.CaptureFixture[str]) -> None:
    for command in (
        ("leaderboard", "items.qrels", "one.run", "-m", "RubricCover@20"),
        ("evaluate", "items.qrels", "one.run", "RubricCover@20"),
        ("convert", "items.qrels", "--to", "records", "-c", "graded.jsonl", "-o", "made.jsonl"),
    ):
        assert "--scale" in call(capsys, *command, code=2)
        call(capsys, *command, "--scale", str(scale))
    printed = call(capsys, "evaluate", "items.qrels", "one.run", f"RubricCover(rel={scale.covers})@20")
    # Without the bank there are three items.
    assert printed.split()[-1] == "0.3333"
    assert "scale" in call(capsys, "leaderboard", "graded.jsonl", "--llm", "model", "--scale", "0-0", code=2)


def test_two_scales_of_one_grader_are_a_conflict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, text in (("a", "0-2:2"), ("b", "0-3:2")):
        (tmp_path / name).mkdir()
        write_files(tmp_path / name, parse_scale(text))
    monkeypatch.chdir(tmp_path)
    said = json.loads(Path("b/graded.jsonl").read_text())
    said[0] = "q2"
    write_lines(tmp_path / "b.jsonl", [said])
    error = call(capsys, "convert", "a/graded.jsonl", "b.jsonl", "-o", "both.jsonl", code=2)
    assert "on the scale 0-3:2, and elsewhere on 0-2:2" in error
    Path("both.jsonl").write_text(Path("a/graded.jsonl").read_text() + Path("b.jsonl").read_text())
    command = ("leaderboard", "both.jsonl", "--llm", "model", "-m", "RubricCover@20")
    assert "on the scale 0-3:2, and before on 0-2:2" in call(capsys, *command, code=2)
    call(capsys, *command, "--scale", "0-3:2")
