"""Tests of a measure that a user writes: one function over the view of a query, and it works everywhere."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import ir_measures
import numpy as np
import pytest

import rubric_measures
from rubric_measures import Grade, RubricCover, measure_of
from rubric_measures.base.errors import MeasureError
from rubric_measures.boards.scoring import score_runs
from rubric_measures.cli import main
from rubric_measures.measures.core import Array, View
from rubric_measures.measures.grades import OnFailed
from rubric_measures.measures.qrels import build_grades
from tests.boards.test_provider import BANK, ROWS, RUN
from tests.example_records import board_file, write_all

FILE = '''"""Measures of our group."""

import numpy as np


def CoveredTwice(view, rel):
    """The share of the items that two passages or more cover."""
    return (view.counts(rel).times >= 2).mean(axis=1)


def FirstCover(view, rel, worth: float = 1.0):
    """1 / the rank of the first passage that covers any item."""
    covers = (view.grades >= rel).any(axis=2)
    return worth * np.where(covers, 1 / np.maximum(view.ranks, 1), 0).max(axis=1, initial=0)
'''


def FirstCover(view: View, rel: int) -> Array:
    """1 / the rank of the first passage that covers any item."""
    covers = (view.grades >= rel).any(axis=2)
    found: Array = np.where(covers, 1 / np.maximum(view.ranks, 1), 0).max(axis=1, initial=0)
    return found


def CoveredShare(view: View, rel: int) -> Array:
    """The share of the items that are covered, failed grades as they are expected."""
    share: Array = view.covered(rel).mean(axis=1)
    return share


@pytest.fixture(autouse=True)
def _forget() -> Iterator[None]:
    """Takes what a test registers out of the registry again."""
    before = dict(ir_measures.measures.registry)
    yield
    ir_measures.measures.registry.clear()
    ir_measures.measures.registry.update(before)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(write_all(tmp_path))
    Path("my.py").write_text(FILE)
    return tmp_path


def test_a_measure_of_a_user_works_everywhere() -> None:
    first = measure_of(FirstCover)
    measure = first(rel=4) @ 5
    assert (str(measure), ir_measures.parse_measure(str(measure))) == ("FirstCover(rel=4)@5", measure)
    assert measure.SHORT_DESC == "1 / the rank of the first passage that covers any item."
    grades = build_grades(ROWS, BANK)
    # At 4: q1 has d1 at rank 1, q2 and q3 nothing. At 3 also d1 of q2, at rank 2.
    frames = [grades.to_dataframe()] if find_spec("pandas") else []
    for qrels in (grades, *frames):
        assert ir_measures.calc_aggregate([measure, RubricCover(rel=1)], qrels, RUN)[measure] == pytest.approx(1 / 3)
    runs = [("one", {"q1": ["d1", "d2"], "q2": ["d9", "d1"]})]
    board = score_runs(grades, runs, [first(rel=3), first(rel=3) @ 1, RubricCover(rel=1)], overall=True)
    assert board.values["one"]["FirstCover(rel=3)"] == {"q1": 1.0, "q2": 0.5, "q3": 0.0}
    assert board.values["one"]["FirstCover(rel=3)@1"] == {"q1": 1.0, "q2": 0.0, "q3": 0.0}
    # Nobody knows the best that a ranking could reach.
    assert list(board.best) == ["RubricCover(rel=1)"]


def test_a_measure_in_a_file_works_in_both_commands_and_in_python(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    measures = ["my.py:CoveredTwice@20", "my.py:FirstCover(worth=2.0)@1"]
    assert main(["leaderboard", "graded.jsonl.gz", "alpha.run", "-m", *measures, "--format", "tsv"]) == 0
    header, row = (line.split("\t") for line in capsys.readouterr().out.splitlines()[:2])
    # The level is that of the scale. No item is covered twice; the first passage covers one for q1, and none for q2.
    found = dict(zip(header, row, strict=True))
    assert (found["CoveredTwice(rel=4)@20"], found["FirstCover(rel=4,worth=2.0)@1"]) == ("0.0000", "1.0000")
    assert main(["evaluate", "graded.jsonl.gz", "alpha.run", "my.py:FirstCover@5", "-q"]) == 0
    assert "q1\tFirstCover(rel=4)@5\t1.0000" in capsys.readouterr().out
    board = rubric_measures.score("graded.jsonl.gz", "alpha.run", "my.py:CoveredTwice(rel=1) my.py:FirstCover(rel=1)")
    # Of the three items of q1 b has two grades of 1 or more.
    assert board.values["alpha"]["CoveredTwice(rel=1)"]["q1"] == pytest.approx(1 / 3)
    assert board.values["alpha"]["FirstCover(rel=1)"]["q1"] == 1.0


def test_a_changed_file_counts_as_it_is_now(folder: Path) -> None:
    def q1() -> float | None:
        board = rubric_measures.score("graded.jsonl.gz", "alpha.run", "my.py:FirstCover(rel=1)", overall=False)
        return board.values["alpha"]["FirstCover(rel=1)"]["q1"]

    assert q1() == 1.0
    written = Path("my.py").stat()
    Path("my.py").write_text(FILE.replace("worth: float = 1.0", "worth: float = 3.0"))
    # As long as before and of the same second, as where a notebook writes it again.
    os.utime("my.py", ns=(written.st_atime_ns, written.st_mtime_ns))
    assert q1() == 3.0


def test_a_name_is_taken_once_and_a_new_version_replaces_the_old() -> None:
    assert measure_of(FirstCover) == measure_of(FirstCover)

    def RubricCover(view: View) -> Array:
        """Another measure of a known name."""
        return np.zeros(len(view.grades))

    with pytest.raises(MeasureError, match=r"there is a measure RubricCover already; give .*test_measure\.py:Rubric"):
        measure_of(RubricCover)


@pytest.mark.parametrize(("on_failed", "first", "share"), [("expected", 0.0, None), ("zero", 0.0, 0.0), (5, 1.0, 1.0)])
def test_failed_grades_are_worth_what_the_function_asks(on_failed: OnFailed, first: float, share: float | None) -> None:
    grades = build_grades([Grade("q", "d", None, "q/1", status="failed")], on_failed=on_failed)
    measures = [measure_of(FirstCover)(rel=1), measure_of(CoveredShare)(rel=1)]
    board = score_runs(grades, [("one", {"q": ["d"]})], measures, overall=False)
    assert [column["q"] for column in board.values["one"].values()] == [first, share]


def test_weights_of_its_own_say_what_a_failed_grade_is_expected_to_earn() -> None:
    # Items weigh 4, 1 and 0. Of the weight that no other passage covers, 4 of 5 valid grades cover.
    rows = [Grade("q", "d", 4, "q/1"), Grade("q", "d", None, "q/2", status="failed"), Grade("q", "e", 0, "q/2")]
    rows.append(Grade("q", "e", 0, "q/3"))

    def LengthCover(view: View, rel: int) -> Array:
        weights = np.array([4.0, 1.0, 0.0])
        found: Array = view.covered(rel, weights) @ weights / weights.sum()
        return found

    runs = [("one", {"q": ["d", "e"]})]
    for on_failed, expected in (("expected", 0.96), ("zero", 0.8), (5, 1.0)):
        grades = build_grades(rows, on_failed=on_failed)  # type: ignore[arg-type]
        board = score_runs(grades, runs, [measure_of(LengthCover)(rel=4)], overall=False)
        assert board.values["one"]["LengthCover(rel=4)"]["q"] == pytest.approx(expected)


def _lines(*body: str, head: str = "def Wrong(view, rel):") -> str:
    return "\n    ".join([head, *body]) + "\n"


# A file, the measure asked for, and what the one line says.
WRONG = [
    (_lines("return view.nothing"), "Wrong@5", "Wrong(rel=4)@5: query 'q1': AttributeError: ", "my.py:2)"),
    (_lines("return 1 / 0"), "Wrong", "Wrong(rel=4): query 'q1': ZeroDivisionError: division by zero", "my.py:2)"),
    (_lines("return 'much'"), "Wrong", "Wrong(rel=4): query 'q1': ValueError: could not convert", "my.py:1)"),
    (_lines("import sys", "sys.exit(3)"), "Wrong", "Wrong(rel=4): query 'q1': SystemExit: 3 (", "my.py:3)"),
    (_lines("return view.lengths"), "Wrong(rel=0)@20", "Wrong(rel=0)@20: every grade of the scale 0 to 5", "above 0"),
    (_lines("return view.best"), "Wrong", "Wrong(rel=4): gives (2, 3) values for 2 rankings", "a ranking"),
    # numpy warns of it, in lines of its own.
    (_lines("return view.best[:, :0].mean(axis=1)"), "Wrong", "Wrong(rel=4): query 'q1'", "is no finite number"),
    (_lines("return view.lengths"), "Wrong(depth=3)", "Wrong has no parameter 'depth'", "rel, cutoff, judged_only"),
    (_lines("return 1", head="def Wrong(view, depth):"), "Wrong", "Wrong: give the parameter depth a default", "False"),
    (_lines("return 1", head="def Wrong(view, cutoff=5):"), "Wrong", "Wrong: cutoff comes with every measure", ""),
    (
        _lines("return 1", head="def Wrong():"),
        "Wrong",
        "my.py:Wrong is no measure; give a function over the view of a query, with a name",
        "",
    ),
    (
        _lines("return 1", head="def nDCG(view):"),
        "nDCG",
        "there is a measure nDCG already; give ",
        "my.py:nDCG another",
    ),
    (_lines("return 1", head="def Wong(view):"), "Wrong", "unknown measure 'Wrong': did you mean Wong", "my.py"),
    ("Wrong = 3\n", "Wrong", "unknown measure 'Wrong'", "my.py"),
    ("def Wrong(view:\n", "Wrong", "my.py: cannot be run (SyntaxError: ", "line 1"),
    ("import no_such_module\n", "Wrong", "my.py: cannot be run (ModuleNotFoundError: No module named", ""),
    ("raise ValueError('two\\nlines')\n", "Wrong", "my.py: cannot be run (ValueError: two lines)", ""),
]


@pytest.mark.parametrize(("text", "measure", "said", "end"), WRONG)
def test_what_is_wrong_is_one_line(
    text: str, measure: str, said: str, end: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("my.py").write_text(text)
    # A board scores an empty ranking beside the run; one run alone is one ranking.
    assert main(["leaderboard", "graded.jsonl.gz", "alpha.run", "-m", f"my.py:{measure}"]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n"), "Traceback" in err) == ("", 1, False), err
    assert said in err and end in err, err
    # Whatever else is read is not to blame.
    Path("board.json").write_text(board_file({"alpha": {}, "beta": {}}))
    graded, run = "graded.jsonl.gz", "alpha.run"
    for command in (
        ["leaderboard", graded, run], ["leaderboard", graded], ["evaluate", graded, run],
        ["correlate", "board.json", graded],
        ["check", graded, run, "--pool-depth", "1"],
    ):  # fmt: skip
        assert main([*command, *["-m"] * (command[0] != "evaluate"), "mine.py:Wrong"]) == 2
        said = "rubric_measures: mine.py: there is no such file; it should have the measure Wrong"
        assert capsys.readouterr().err.startswith(said), command


@pytest.mark.parametrize("wrong", [3, "text", lambda view: view.lengths, partial(FirstCover, rel=4), dict.get])
def test_what_is_no_function_with_a_name_is_no_measure(wrong: Callable[..., Any]) -> None:
    before = dict(ir_measures.measures.registry)
    with pytest.raises(MeasureError):
        measure_of(wrong)
    assert ir_measures.measures.registry == before


def test_a_function_cannot_change_what_others_see() -> None:
    def Spoiler(view: View) -> Array:
        view.grades[:] = 5
        return np.zeros(len(view.grades))

    with pytest.raises(MeasureError, match=r"Spoiler: query 'q1': ValueError: .*read-only"):
        score_runs(build_grades(ROWS, BANK), [("one", {"q1": ["d1"]})], [measure_of(Spoiler), RubricCover(rel=4)])


def test_a_level_that_nobody_knows_is_asked_for() -> None:
    runs = [("one", {"q1": ["d1"]})]
    with pytest.raises(MeasureError, match=r"^FirstCover@5: the scale .* is not known; .* as in FirstCover\(rel=…\)"):
        score_runs(build_grades(ROWS, BANK), runs, [measure_of(FirstCover) @ 5])
