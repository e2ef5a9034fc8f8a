"""The package of docs/our-lab, built and installed as it stands there, and a broken one of each sort beside it."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.example_records import grade_set, passage, write_all, write_lines

PACKAGE = Path(__file__).resolve().parents[2] / "docs" / "our-lab"
BROKEN = """
[project.entry-points."rubric_measures.measures"]
BadMeasure = "bad_lab.broken:BadMeasure"
[project.entry-points."rubric_measures.backends"]
bad = "bad_lab.broken:Model"
lexical = "bad_lab.broken:Model"
[project.entry-points."rubric_measures.formats"]
bad-format = "bad_lab.broken:FORMAT"
no-format = "bad_lab:__name__"
"""
WHY = "cannot be used: ModuleNotFoundError: No module named 'no_such_module'; mend it, or uninstall the package"
PROJECT = """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"
[project]
name = "{name}"
version = "1.0"
"""
# Runs several commands in one process, as plug-ins are found when the package is imported.
PROGRAM = """
import contextlib, io, json, sys
from rubric_measures.cli import main
done = []
for command in json.load(sys.stdin):
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        code = main(command)
    done.append((code, out.getvalue(), err.getvalue()))
json.dump(done, sys.stdout)
"""


class Done(NamedTuple):
    """How a command ended, and what it said; what was said when the package was imported."""

    code: int
    out: str
    err: str
    first: str


Run = Callable[..., list[Done]]


def install(source: Path, target: Path) -> None:
    """Builds the wheel of a package and unpacks it into a folder, as an installer does."""
    hatchling = pytest.importorskip("hatchling.builders.wheel")
    for wheel in hatchling.WheelBuilder(str(source)).build(directory=str(source / "dist"), versions=["standard"]):
        zipfile.ZipFile(wheel).extractall(target)


def lab(folder: Path, name: str, entries: str, **modules: str) -> Path:
    """The folder in which a package with these entry points and modules is installed."""
    source, target = folder / name, folder / "installed"
    module = source / name.replace("-", "_")
    module.mkdir(parents=True)
    (source / "pyproject.toml").write_text(PROJECT.format(name=name) + entries)
    for one, text in {"__init__": "", **modules}.items():
        (module / f"{one}.py").write_text(text)
    install(source, target)
    return target


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which the package of the page is installed."""
    source, target = tmp_path_factory.mktemp("labs") / "our-lab", tmp_path_factory.mktemp("installed")
    shutil.copytree(PACKAGE, source)
    install(source, target)
    return target


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which the broken package is installed."""
    return lab(tmp_path_factory.mktemp("bad"), "bad-lab", BROKEN, broken="import no_such_module\n")


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a command with packages installed beside ours, in a folder with the files that the page's commands name."""
    write_all(tmp_path)
    entries = [
        {"query_id": query_id, "items": [{"question_id": f"{query_id}/a", "question_text": text}]}
        for query_id, text in (("q1", "What is tea?"), ("q2", "What is frost?"))
    ]
    (tmp_path / "questions.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in entries))

    def running(*commands: str, beside: tuple[Path, ...]) -> list[Done]:
        root = Path(__file__).resolve().parents[2]
        monkeypatch.setenv("PYTHONPATH", ":".join(map(str, (*beside, root))))
        given = json.dumps([shlex.split(command) for command in commands])
        command = [sys.executable, "-c", PROGRAM]
        done = subprocess.run(command, input=given, capture_output=True, text=True, cwd=tmp_path)
        assert "Traceback" not in done.stderr and done.returncode == 0, done.stderr
        return [Done(*one, done.stderr) for one in json.loads(done.stdout)]

    return running


GRADE = "grade graded.jsonl.gz --bank questions.jsonl --cache r.sqlite -o out.jsonl --model"


# Item a of q1 is useful, b harmful, c useful at half of that; two passages cover a, one b.
WEIGHTED = [("q1/a", 2.0), ("q1/b", -1.0), ("q1/c", 1.0)]
SHOWN = {
    "CoveredTwice@20": ("CoveredTwice(rel=4)@20", "0.3333"),
    "FirstCover@1": ("FirstCover(rel=4)@1", "0.0000"),
    "FirstCover(rel=4)@5": ("FirstCover(rel=4)@5", "0.5000"),
    "HarmlessCover": ("HarmlessCover(rel=4)", "0.0000"),
    "HarmlessCover(penalty=0.25)": ("HarmlessCover(rel=4,penalty=0.25)", "0.2500"),
}


@pytest.fixture
def weighted(tmp_path: Path) -> None:
    """Graded passages and a bank with weights: the first passage of the ranking covers nothing."""
    grades = ({"q1/a": 0, "q1/b": 0, "q1/c": 0}, {"q1/a": 4, "q1/b": 5, "q1/c": 1}, {"q1/a": 5, "q1/b": 0, "q1/c": 0})
    passages = [passage("q1", f"d{place}", [grade_set(one)], {"one": place}) for place, one in enumerate(grades, 1)]
    write_lines(tmp_path / "few.jsonl", [["q1", passages]])
    items = [{"question_id": name, "question_text": name, "weight": weight} for name, weight in WEIGHTED]
    write_lines(tmp_path / "weighted.jsonl", [{"query_id": "q1", "query_text": "?", "items": items}])


@pytest.mark.usefixtures("weighted")
@pytest.mark.parametrize("how", ["package", "file"])
def test_the_measures_of_a_package_and_of_a_file(run: Run, ours: Path, how: str) -> None:
    start = "" if how == "package" else f"{ours}/our_lab/measures.py:"
    asked = " ".join(start + name for name in SHOWN)
    board, evaluated = run(
        f"leaderboard few.jsonl --bank weighted.jsonl -m '{asked}' --format tsv",
        f"evaluate graded.jsonl.gz alpha.run {start}FirstCover@5 -q",
        beside=(ours,) if how == "package" else (),
    )
    assert board.code == 0, board.err
    header, row = (line.split("\t") for line in board.out.splitlines()[:2])
    found = dict(zip(header, row, strict=True))
    assert {name: found[name] for name, _ in SHOWN.values()} == dict(SHOWN.values())
    assert evaluated.out.splitlines()[0] == "q1\tFirstCover(rel=4)@5\t1.0000", evaluated.err


def test_a_model_and_a_format_of_a_package(run: Run, ours: Path, tmp_path: Path) -> None:
    (tmp_path / "team.csv").write_text("ask_id,bot,said\nq1,x,So.\nq1,y,\n")
    (tmp_path / "team.jsonl").write_text('{"ask_id": "q1", "bot": "x", "said": "So."}\n')
    (tmp_path / "bad.csv").write_text("ask_id,bot,said\nq1,,So.\n")
    *done, failed, listing = run(
        "convert questions.jsonl --to item-list -o items.txt",
        # Read back by recognition.
        "convert items.txt --to bank -o bank.jsonl",
        # A format that is a spec: told by its columns, wherever answers are read, and as rows of JSON, too.
        "convert team.csv --to answers -o answers.jsonl",
        "convert team.jsonl --to answers -o again.jsonl",
        "pool answers.jsonl -o pooled.jsonl",
        f"{GRADE} dice:7 --model-option sides=3",
        "convert bad.csv --to answers -o other.jsonl",
        "list formats",
        beside=(ours,),
    )
    assert [one.code for one in done] == [0] * len(done), done

    def text(name: str) -> str:
        return (tmp_path / name).read_text().replace(" ", "")

    assert text("items.txt") == "q1=>Whatistea?\nq2=>Whatisfrost?\n" and "Whatistea?" in text("bank.jsonl")
    assert '"text":"So."' in text("answers.jsonl") and '"text":"So."' in text("again.jsonl")
    assert '"x"' in text("pooled.jsonl")
    assert "dice:7" in text("out.jsonl")
    assert (failed.code, "bad.csv:2: bot: is empty" in failed.err) == (2, True), failed.err
    assert re.search(r"item-list +yes +yes +\w+ +a line an item", listing.out)


def test_a_broken_package_stops_only_what_needs_it(run: Run, ours: Path, broken: Path) -> None:
    works = (
        "leaderboard graded.jsonl.gz -m FirstCover@5",
        "convert questions.jsonl --to item-list -o items.txt",
        f"{GRADE} dice:7",
        "convert items.txt --to bank -o bank.jsonl",
        f"{GRADE} lexical",
    )
    asked = {
        f"{GRADE} bad:x": "the model kind 'bad'",
        "convert questions.jsonl --to bad-format -o x": "the format 'bad-format'",
        "leaderboard graded.jsonl.gz -m BadMeasure@5": "the measure 'BadMeasure'",
    }
    done = run(*works, *asked, beside=(ours, broken))
    assert f"the measure 'BadMeasure' of the package 'bad-lab' {WHY}" in done[0].first.splitlines()
    assert [one.code for one in done] == [0] * len(works) + [2] * len(asked), done
    assert f"rubric_measures: warning: the format 'bad-format' of the package 'bad-lab' {WHY}" in done[3].err
    assert "the format 'no-format' of the package 'bad-lab' cannot be used: it is no rubric_measures" in done[3].err
    # A built-in name wins, and that is said.
    told = "the model kind 'lexical' of the package 'bad-lab' is left out: a built-in model kind has this name"
    assert sum(one.err.count(told) for one in done) >= 1
    for one, what in zip(done[len(works) :], asked.values(), strict=True):
        [line] = [line for line in one.err.splitlines() if line.startswith(f"rubric_measures: {what}")]
        assert line.endswith(f"of the package 'bad-lab' {WHY}")
