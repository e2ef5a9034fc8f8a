"""Tests of `calibrate`: assessors inside the records, an older grader, what it refuses, its JSON."""

import re

import numpy as np
import pytest

from tests.cli.test_analysis import call, checked
from tests.example_records import grade_set, passage, write_lines


def records(path, *, assessors: bool = True, llm: str = "model", flipped: float = 0.2, seed: int = 0, first: int = 5):
    """Answers of two runs to 12 queries of 6 items; assessors grade a third of them. `first` is its 5 in half."""
    generator = np.random.default_rng(7)
    errors = np.random.default_rng(seed)
    lines = []
    for q in range(12):
        passages = []
        for run, share in (("good", 0.7), ("poor", 0.3)):
            truth = generator.random(6) < share
            says = np.where(errors.random(6) < flipped, ~truth, truth)
            items = [f"q{q}/{i}" for i in range(6)]
            sets = [
                grade_set(dict(zip(items, np.where(says, first if q < 6 else 5, 0).tolist(), strict=True)), llm=llm)
            ]
            if assessors:
                checked_items = {item: 5 if t else 0 for item, t in list(zip(items, truth, strict=True))[q % 3 :: 3]}
                sets.append(grade_set(checked_items, llm="human:ada"))
            passages.append(passage(f"q{q}", f"{run}-{q}", sets, {run: 1}))
        lines.append([f"q{q}", passages])
    return write_lines(path, lines)


def test_held_to_assessors(tmp_path, capsys) -> None:
    graded = records(tmp_path / "reviewed.jsonl")
    status, out, _ = call(capsys, "calibrate", graded, "--rounds", 300)
    assert status == 0
    assert re.search(r"run +raw +calibrated +low +high\ngood +0\.\d+ +0\.\d+", out)
    content = checked("calibrate", call(capsys, "calibrate", graded, "--rounds", 300, "--format", "json")[1])
    assert (content["against"], content["rel"]) == ("assessors", 4)
    whole = content["bias"][0]
    assert (whole["kind"], whole["anchors"], whole["queries"]) == ("", 48, 12)
    good, poor = content["runs"]
    assert (good["run_id"], poor["run_id"]) == ("good", "poor")
    assert good["interval"]["low"] < good["interval"]["estimate"] < good["interval"]["high"]
    # Errors pull both runs to the middle; calibrated they are farther apart.
    assert good["interval"]["estimate"] - poor["interval"]["estimate"] > good["raw"] - poor["raw"]


def test_grades_on_another_scale_in_half_of_the_file_are_named(tmp_path, capsys) -> None:
    graded = records(tmp_path / "reviewed.jsonl", first=1)
    said = "the highest grade is 1 up to query q5, and 5 from query q6 on: are these on two scales?"
    assert said in call(capsys, "calibrate", graded, "--rounds", 300)[2]


def test_held_to_an_older_grader_and_to_itself(tmp_path, capsys) -> None:
    old = records(tmp_path / "old.jsonl", assessors=False, llm="old", flipped=0.0)
    new = records(tmp_path / "new.jsonl", assessors=False, llm="new", flipped=0.2)
    out = call(capsys, "calibrate", new, "--anchors", old, "--against", "old", "--rounds", 300, "--format", "json")[1]
    content = checked("calibrate", out)
    assert content["bias"][0]["anchors"] == 144
    # The same grader again: nothing changed, and that is shown.
    again = call(capsys, "calibrate", old, "--against", "old", "--rounds", 0, "--format", "json")[1]
    assert checked("calibrate", again)["bias"][0]["drift"] == "none that matters"
    rows = call(capsys, "calibrate", new, "--anchors", old, "--against", "old", "--rounds", 0)[1]
    assert re.search(r"all +144 +12 +0\.\d+ +-?\d\.\d+ +-\d\.\d+ +\d\.\d+ +unknown", rows)


def test_two_equal_noisy_raters_have_no_bias(tmp_path, capsys) -> None:
    """Both see the same truth with the same noise; grade by grade each would look too far from the middle."""
    generator = np.random.default_rng(3)
    names, found = ("model", "human:ada"), []
    both = [[np.clip(np.rint(truth + generator.normal(0, 1.2, 20)), 0, 5).astype(int).tolist() for _ in names]
            for truth in generator.integers(0, 6, (40, 20))]  # fmt: skip
    for order in (names, names[::-1]):
        lines = [
            [f"q{q}", [passage(f"q{q}", "d", [grade_set({f"q{q}/{i}": grade for i, grade in enumerate(grades)}, llm=llm)
             for grades, llm in zip(of_query, order, strict=True)])]] for q, of_query in enumerate(both)
        ]  # fmt: skip
        graded = write_lines(tmp_path / "noisy.jsonl", lines)
        content = checked("calibrate", call(capsys, "calibrate", graded, "--rounds", 0, "--format", "json")[1])
        (row,) = content["bias"]
        assert row["anchors"] == 800 and row["drift"] in ("unknown", "none that matters")
        found.append(row["mean"])
    assert found[0] == -found[1] and abs(found[0]) < 0.1


def test_rankings_have_no_calibrated_scores(tmp_path, capsys) -> None:
    lines = [
        [f"q{q}", [passage(f"q{q}", f"d{i}", [grade_set({f"q{q}/a": 5 * (i % 2)}), grade_set({f"q{q}/a": 5 * (i < 2)},
         llm="human:ada")], {"x": i + 1}) for i in range(3)]] for q in range(3)
    ]  # fmt: skip
    graded = write_lines(tmp_path / "graded.jsonl", lines)
    status, out, err = call(capsys, "calibrate", graded, "--rounds", 50)
    assert status == 0 and "calibrated" not in out
    assert "no calibrated scores: run x ranks several passages" in err


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--rounds", "-1"], "(--rounds)"),
        (["--smallest", "0"], "(--smallest)"),
        (["--against", "gpt"], "holds no grades"),
        (["--grader", "other"], "holds no grades"),
    ],
)
def test_what_it_refuses(tmp_path, capsys, more, said) -> None:
    graded = records(tmp_path / "reviewed.jsonl")
    status, out, err = call(capsys, "calibrate", graded, *more)
    assert (status, out, len(err.splitlines())) == (2, "", 1) and said in err, err
    bare = records(tmp_path / "bare.jsonl", assessors=False)
    assert "holds no grades by assessors (human:NAME)" in call(capsys, "calibrate", bare)[2]
