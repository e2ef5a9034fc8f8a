"""The package of docs/our-lab, built and installed as it stands there, and a broken one of each sort beside it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from rubric_measures.formats.base import KINDS
from tests.example_records import grade_set, passage, write_all, write_lines

PACKAGE = Path(__file__).resolve().parents[2] / "docs" / "our-lab"
BROKEN = """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"
[project]
name = "bad-lab"
version = "1.0"
[project.entry-points."rubric_measures.measures"]
BadMeasure = "bad_lab.broken:BadMeasure"
[project.entry-points."rubric_measures.backends"]
bad = "bad_lab.broken:Model"
lexical = "bad_lab.broken:Model"
[project.entry-points."rubric_measures.formats"]
bad-format = "bad_lab.broken:FORMAT"
no-format = "bad_lab:__name__"
[project.entry-points."rubric_measures.prompts"]
bad-prompts = "bad_lab.broken"
"""
WHY = "cannot be used: ModuleNotFoundError: No module named 'no_such_module'; mend it, or uninstall the package"
SCORED = """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"
[project]
name = "third-lab"
version = "1.0"
[project.entry-points."rubric_measures.formats"]
their-judgments = "third_lab:JUDGMENTS"
their-run = "third_lab:RUN"
"""
SCORED_FORMATS = """
from rubric_measures.base.files import iter_lines
from rubric_measures.formats import Format
from rubric_measures.types.entities import Qrel, make_run

def rows(path):
    return [line.decode().split("|")[1:] for _, line in iter_lines(path)]

def judgments(path):
    return [Qrel(query, doc, int(grade), item) for query, doc, item, grade in rows(path)]

def run(path):
    return [make_run("theirs", [(query, doc, float(score)) for query, doc, score in rows(path)])]

JUDGMENTS = Format("item qrels", "j|query|doc|item|grade", judgments, recognise=lambda head: head.line[:2] == "j|")
RUN = Format("runs", "r|query|doc|score", run, recognise=lambda head: head.line[:2] == "r|")
"""
UNFIT = """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"
[project]
name = "fourth-lab"
version = "1.0"
[project.entry-points."rubric_measures.measures"]
Three = "fourth_lab:THREE"
Deep = "fourth_lab:Deep"
Twice = "fourth_lab:CoveredTwice"
RubricCover = "fourth_lab:CoveredTwice"
"""
Run = Callable[..., "subprocess.CompletedProcess[str]"]


def install(source: Path, target: Path) -> None:
    """Builds the wheel of a package and unpacks it into a folder, as an installer does."""
    hatchling = pytest.importorskip("hatchling.builders.wheel")
    for wheel in hatchling.WheelBuilder(str(source)).build(directory=str(source / "dist"), versions=["standard"]):
        zipfile.ZipFile(wheel).extractall(target)


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
    source, target = tmp_path_factory.mktemp("bad-lab"), tmp_path_factory.mktemp("installed-bad")
    (source / "bad_lab").mkdir()
    (source / "pyproject.toml").write_text(BROKEN)
    (source / "bad_lab" / "__init__.py").touch()
    (source / "bad_lab" / "broken.py").write_text("import no_such_module\n")
    install(source, target)
    return target


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a command with packages installed beside ours, in a folder with the files that the page's commands name."""
    write_all(tmp_path)
    entries = [
        {"query_id": query_id, "items": [{"question_id": f"{query_id}/a", "question_text": text}]}
        for query_id, text in (("q1", "What is tea?"), ("q2", "What is frost?"))
    ]
    (tmp_path / "questions.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in entries))

    def running(*arguments: str | Path, beside: tuple[Path, ...]) -> subprocess.CompletedProcess[str]:
        root = Path(__file__).resolve().parents[2]
        monkeypatch.setenv("PYTHONPATH", ":".join(map(str, (*beside, root))))
        command = [sys.executable, "-m", "rubric_measures", *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)

    return running


def one_line(text: str) -> str:
    """The only line of a text, which is not that of a measure that every command finds broken."""
    lines = [line for line in text.splitlines() if not line.startswith("the measure 'BadMeasure'")]
    assert len(lines) == 1, text
    return lines[0]


def test_every_section_is_shorter_than_thirty_lines() -> None:
    page = (PACKAGE.parent / "plugins.md").read_text("utf-8")
    files = [PACKAGE / name for name in re.findall(r'^--8<-- "docs/our-lab/(.*)"$', page, re.MULTILINE)]
    assert set(files) == {path for path in PACKAGE.rglob("*.*") if path.is_file() and path.name != "__init__.py"}
    assert max(path.read_text("utf-8").count("\n") for path in files) < 30
    kinds = page.partition("| kind |")[2]
    named = re.findall(r"`([a-z ]+)`", "".join(re.findall(r"^\| `.*? \|", kinds, re.MULTILINE)))
    assert set(named) <= set(KINDS) and len(named) >= 9


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
    beside = (ours,) if how == "package" else ()
    start = "" if how == "package" else f"{ours}/our_lab/measures.py:"
    asked = [start + name for name in SHOWN]
    bank = ("few.jsonl", "--bank", "weighted.jsonl")
    done = run("leaderboard", *bank, "-m", " ".join(asked), "--format", "tsv", beside=beside)
    assert done.returncode == 0, done.stderr
    header, row = (line.split("\t") for line in done.stdout.splitlines()[:2])
    found = dict(zip(header, row, strict=True))
    assert {name: found[name] for name, _ in SHOWN.values()} == dict(SHOWN.values())
    done = run("evaluate", "graded.jsonl.gz", "alpha.run", f"{start}FirstCover@5", "-q", beside=beside)
    assert done.stdout.splitlines()[0] == "q1\tFirstCover(rel=4)@5\t1.0000", done.stderr


def test_what_is_no_function_stops_only_what_asks_for_it(run: Run, tmp_path: Path) -> None:
    source, target = tmp_path / "fourth-lab", tmp_path / "installed"
    (source / "fourth_lab").mkdir(parents=True)
    (source / "pyproject.toml").write_text(UNFIT)
    (source / "fourth_lab" / "__init__.py").write_text(
        "THREE = 3\n\n\ndef Deep(view, depth):\n    return depth\n\n\n"
        "def CoveredTwice(view, rel):\n    return (view.counts(rel).times >= 2).mean(axis=1)\n"
    )
    install(source, target)
    done = run("leaderboard", "graded.jsonl.gz", "-m", "RubricCover", beside=(target,))
    assert done.returncode == 0, done.stderr
    for name, why in (
        ("Three", "MeasureError: 3 is no measure; give a function over the view of a query, with a name"),
        ("Deep", "MeasureError: Deep: the parameter depth has neither a default nor one of the types"),
        ("Twice", "its function is named CoveredTwice; give the entry point and the function one name; mend it"),
    ):
        said = f"the measure '{name}' of the package 'fourth-lab' cannot be used: {why}"
        assert (said in done.stderr, "Traceback" in done.stderr) == (True, False), done.stderr
        failed = run("leaderboard", "graded.jsonl.gz", "-m", name, beside=(target,))
        assert failed.returncode == 2 and f"rubric_measures: {said}" in failed.stderr, failed.stderr
        assert "Traceback" not in failed.stderr
    # What is built in keeps its name, and the function is not known by its own.
    assert "the measure 'RubricCover' of the package 'fourth-lab' cannot be used: its function is" in done.stderr
    failed = run("leaderboard", "graded.jsonl.gz", "-m", "CoveredTwice", beside=(target,))
    assert failed.returncode == 2 and "unknown measure 'CoveredTwice'" in failed.stderr, failed.stderr


def test_a_model_a_prompt_and_a_format_of_a_package(run: Run, ours: Path, tmp_path: Path) -> None:
    assert run("convert", "questions.jsonl", "--to", "item-list", "-o", "items.txt", beside=(ours,)).returncode == 0
    assert (tmp_path / "items.txt").read_text() == "q1 => What is tea?\nq2 => What is frost?\n"
    # Read back by recognition.
    assert run("convert", "items.txt", "--to", "bank", "-o", "bank.jsonl", beside=(ours,)).returncode == 0
    assert "What is tea?" in (tmp_path / "bank.jsonl").read_text()
    # A format that is a spec: told by its columns, and errors in their names.
    (tmp_path / "team.csv").write_text("ask_id,bot,said\nq1,x,So.\nq1,y,\n")
    assert run("convert", "team.csv", "--to", "answers", "-o", "answers.jsonl", beside=(ours,)).returncode == 0
    assert '"text": "So."' in (tmp_path / "answers.jsonl").read_text()
    # Wherever answers are read, and as rows of JSON, too.
    done = run("pool", "team.csv", "-o", "pooled.jsonl", beside=(ours,))
    assert done.returncode == 0, done.stderr
    assert '"x"' in (tmp_path / "pooled.jsonl").read_text()
    (tmp_path / "team.jsonl").write_text('{"ask_id": "q1", "bot": "x", "said": "So."}\n')
    assert run("convert", "team.jsonl", "--to", "answers", "-o", "again.jsonl", beside=(ours,)).returncode == 0
    assert '"text": "So."' in (tmp_path / "again.jsonl").read_text()
    (tmp_path / "team.csv").write_text("ask_id,bot,said\nq1,,So.\n")
    failed = run("convert", "team.csv", "--to", "answers", "-o", "other.jsonl", beside=(ours,))
    assert (failed.returncode, "team.csv:2: bot: is empty" in failed.stderr) == (2, True), failed.stderr
    model = ("--model", "dice:7", "--model-option", "sides=3", "--prompt", "OurCoverage", "--cache", "r.sqlite")
    done = run("grade", "graded.jsonl.gz", "--bank", "bank.jsonl", *model, "-o", "out.jsonl", beside=(ours,))
    assert done.returncode == 0, done.stderr
    assert '"prompt_class":"OurCoverage"' in (tmp_path / "out.jsonl").read_text().replace(" ", "")
    assert "dice:7" in (tmp_path / "out.jsonl").read_text()
    listing = run("list", "formats", beside=(ours,)).stdout
    assert re.search(r"item-list +yes +yes +\w+ +a line an item", listing)


def test_judgments_and_runs_of_a_package_are_scored(run: Run, tmp_path: Path) -> None:
    source, target = tmp_path / "third-lab", tmp_path / "installed"
    (source / "third_lab").mkdir(parents=True)
    (source / "pyproject.toml").write_text(SCORED)
    (source / "third_lab" / "__init__.py").write_text(SCORED_FORMATS)
    install(source, target)
    # Of the items a and b, the run's first passage covers a, its second b.
    (tmp_path / "judgments").write_text("j|q1|d1|a|4\nj|q1|d2|b|4\n")
    (tmp_path / "run").write_text("r|q1|d1|2\nr|q1|d2|1\n")
    measures = "RubricCover(rel=4)@1 RubricCover(rel=4)"
    done = run("leaderboard", "judgments", "run", "-m", measures, "--format", "tsv", "--no-overall", beside=(target,))
    assert done.returncode == 0, done.stderr
    header, row = (line.split("\t") for line in done.stdout.splitlines()[:2])
    scores = dict(zip(header, row, strict=True))
    assert (row[0], scores["RubricCover(rel=4)@1"], scores["RubricCover(rel=4)"]) == ("theirs", "0.5000", "1.0000")
    done = run("evaluate", "judgments", "run", *measures.split(), beside=(target,))
    assert done.stdout.split() == ["RubricCover(rel=4)@1", "0.5000", "RubricCover(rel=4)", "1.0000"], done.stderr
    assert run("convert", "run", "--to", "run", "-o", "trec.run", beside=(target,)).returncode == 0
    assert (tmp_path / "trec.run").read_text().startswith("q1 Q0 d1 1 2")


def test_names_that_are_almost_those_of_a_package(run: Run, ours: Path) -> None:
    grade = (
        "grade",
        "graded.jsonl.gz",
        "--bank",
        "questions.jsonl",
        "--cache",
        "r.sqlite",
        "-o",
        "out.jsonl",
        "--model",
    )
    for arguments, expected in (
        ((*grade, "dic"), "unknown model 'dic': did you mean dice"),
        ((*grade, "dice"), "model 'dice': expected dice:SEED"),
        ((*grade, "dice:1", "--model-option", "side=2"), "unknown setting 'side': did you mean sides"),
        ((*grade, "dice:1", "--prompt", "OurCovrage"), "unknown prompt 'OurCovrage': did you mean OurCoverage"),
        (
            ("convert", "questions.jsonl", "--to", "item-lst", "-o", "x"),
            "unknown format 'item-lst': did you mean item-l",
        ),
        (("leaderboard", "graded.jsonl.gz", "-m", "FirstCovr"), "unknown measure 'FirstCovr': did you mean FirstCover"),
    ):
        done = run(*arguments, beside=(ours,))
        assert (done.returncode, expected in one_line(done.stderr)) == (2, True), done.stderr


def test_a_broken_package_stops_only_what_needs_it(run: Run, ours: Path, broken: Path, tmp_path: Path) -> None:
    beside = (ours, broken)
    for arguments in (
        ("leaderboard", "graded.jsonl.gz", "-m", "FirstCover@5"),
        ("convert", "questions.jsonl", "--to", "item-list", "-o", "items.txt"),
        ("grade", "graded.jsonl.gz", "--bank", "questions.jsonl", "--model", "dice:7", "--prompt", "OurCoverage",
         "--cache", "r.sqlite", "-o", "out.jsonl"),
    ):  # fmt: skip
        done = run(*arguments, beside=beside)
        assert done.returncode == 0, done.stderr
        assert f"the measure 'BadMeasure' of the package 'bad-lab' {WHY}" in done.stderr.splitlines()
        assert "Traceback" not in done.stderr
    done = run("convert", "items.txt", "--to", "bank", "-o", "bank.jsonl", beside=beside)
    assert done.returncode == 0
    assert f"rubric_measures: warning: the format 'bad-format' of the package 'bad-lab' {WHY}" in done.stderr
    assert "the format 'no-format' of the package 'bad-lab' cannot be used: it is no rubric_measures" in done.stderr


def test_asking_for_what_is_broken_is_one_line(run: Run, broken: Path) -> None:
    grade = (
        "grade",
        "graded.jsonl.gz",
        "--bank",
        "questions.jsonl",
        "--cache",
        "r.sqlite",
        "-o",
        "out.jsonl",
        "--model",
    )
    for arguments, what in (
        ((*grade, "bad:x"), "the model kind 'bad'"),
        ((*grade, "dice:1"), "unknown model 'dice:1'"),
        (("convert", "questions.jsonl", "--to", "bad-format", "-o", "x"), "the format 'bad-format'"),
        (("leaderboard", "graded.jsonl.gz", "-m", "BadMeasure@5"), "the measure 'BadMeasure'"),
        ((*grade, "lexical", "--prompt", "bad-prompts"), "the folder of prompts 'bad-prompts'"),
    ):
        done = run(*arguments, beside=(broken,))
        line = [line for line in done.stderr.splitlines() if line.startswith(f"rubric_measures: {what}")]
        assert (done.returncode, len(line)) == (2, 1), done.stderr
        assert what.startswith("unknown") or line[0].endswith(f"of the package 'bad-lab' {WHY}")


def test_a_built_in_name_wins_and_that_is_said(run: Run, broken: Path) -> None:
    model = ("--model", "lexical", "--cache", "r.sqlite", "-o", "out.jsonl")
    done = run("grade", "graded.jsonl.gz", "--bank", "questions.jsonl", *model, beside=(broken,))
    assert done.returncode == 0, done.stderr
    told = "the model kind 'lexical' of the package 'bad-lab' is left out: a built-in model kind has this name"
    assert done.stderr.count(told) == 1


def test_a_package_that_is_imported_first_registers_its_measure(tmp_path: Path) -> None:
    source, ours = tmp_path / "fifth-lab", tmp_path / "installed"
    (source / "fifth_lab").mkdir(parents=True)
    unfit = UNFIT.partition("Three")[0].replace("fourth", "fifth")
    (source / "pyproject.toml").write_text(f'{unfit}FirstCover = "fifth_lab:FirstCover"\n')
    (source / "fifth_lab" / "__init__.py").write_text(
        "import rubric_measures\n\n\n@rubric_measures.measure_of\n"
        "def FirstCover(view, rel):\n    return view.best.max(axis=1)\n"
    )
    install(source, ours)
    program = "import fifth_lab, ir_measures; print(ir_measures.parse_measure('FirstCover(rel=2)@3'))"
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:0] = [{str(ours)!r}, {str(root)!r}]\n{program}"],
        capture_output=True,
        text=True,
    )
    assert (done.stdout, done.stderr) == ("FirstCover(rel=2)@3\n", "")
