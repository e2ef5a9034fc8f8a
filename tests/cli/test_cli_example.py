"""Tests of the main job from start to end on the example collection, as the README's first command runs it."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from rubric_measures.cli import main
from rubric_measures.corpora.collections import example_folder
from rubric_measures.formats.banks import load_bank
from rubric_measures.measures.loading import load_records

GOLDEN = Path(__file__).parents[1] / "golden" / "example-leaderboard.tsv"


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("example")
    assert main(["example", "--folder", str(folder)]) == 0
    return folder


def test_the_leaderboard_is_the_golden_one(output: Path) -> None:
    assert (output / "leaderboard.tsv").read_text() == GOLDEN.read_text()


@pytest.mark.parametrize("bank", ["questions.jsonl", "nuggets.jsonl"])
def test_the_grades_are_those_that_the_collection_ships(output: Path, bank: str) -> None:
    items = load_bank(example_folder() / bank)
    ours = load_records(output / "graded.jsonl.gz", items)
    shipped = load_records(example_folder() / "graded.jsonl.gz", items)
    found, expected = ({name: one.digest for name, one in of.queries.items()} for of in (ours, shipped))
    assert found == expected
    # The empty answer of one run is there, with grades of 0.
    assert ours.queries["q08"].labels()["fluent-but-empty/q08/1"] == 0
    assert sum(len(query.docs) for query in ours.queries.values()) == 339


def test_an_output_that_is_a_file_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert main(["example", "--folder", str(tmp_path / "file")]) == 2
    assert "file: reading or writing failed (File exists)" in capsys.readouterr().err


def test_the_collection_is_copied_and_used_from_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["example", "--copy", "mine"]) == 0
    first, *lines = capsys.readouterr().out.splitlines()
    assert first.startswith("mine: the example collection") and not (tmp_path / "example-output").exists()
    assert lines[1:3] == [
        "$ mkdir -p example-output",
        "$ rubric_measures pool --collection mine -o example-output/passages.jsonl.gz",
    ]
    # A person copies them.
    (tmp_path / "example-output").mkdir()
    for line in lines[2:]:
        assert main(shlex.split(line)[2:]) == 0, line
    assert "</html>" in (tmp_path / "example-output" / "report.html").read_text(encoding="utf-8")
    capsys.readouterr()
    assert (tmp_path / "mine" / "docs.jsonl").read_bytes() == (example_folder() / "docs.jsonl").read_bytes()
    # What is there is never replaced.
    assert main(["example", "--copy", "mine"]) == 2
    assert capsys.readouterr().err == "rubric_measures: mine: is there already; name a folder that is new or empty\n"
