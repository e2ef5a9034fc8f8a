"""Tests of commands whose standard streams are closed, full, of another encoding, or read by nobody: one line."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from rubric_measures.cli import guarded, main
from tests.example_records import RECORDS, passage, write_all, write_lines

FULL = Path("/dev/full")
needs_full_disk = pytest.mark.skipif(not FULL.exists(), reason="no /dev/full here")
BOARD = ["leaderboard", "graded.jsonl.gz", "-m", "NuggetA"]
EVALUATE = ["evaluate", "qrels.txt", "alpha.run", "nDCG@10", "-q"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_all(tmp_path)


def shell(folder: Path, redirection: str, *arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """The command with its streams redirected by a shell."""
    return subprocess.run(
        ["sh", "-c", f'"$@" {redirection}', "sh", sys.executable, "-m", "rubric_measures", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), **settings},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
    )


@needs_full_disk
@pytest.mark.parametrize("arguments", [BOARD, EVALUATE])
def test_a_full_disk_is_one_line(folder: Path, arguments: list[str]) -> None:
    done = shell(folder, "> /dev/full", *arguments)
    lines = [line for line in done.stderr.splitlines() if "No space left" in line]
    advice = "make room, or name another output"
    assert lines == [f"rubric_measures: standard output: reading or writing failed (No space left on device); {advice}"]
    assert done.returncode == 2
    assert "Traceback" not in done.stderr and "Exception ignored" not in done.stderr


def test_a_closed_output_is_one_line(folder: Path) -> None:
    done = shell(folder, ">&-", *EVALUATE)
    assert "(Bad file descriptor); leave standard output open, or name an output file" in done.stderr
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_a_closed_output_harms_nothing_that_goes_elsewhere(folder: Path) -> None:
    expected = shell(folder, "", *BOARD).stdout
    done = shell(folder, "<&- >&- 2>&-", *BOARD, "--output", "board.tsv")
    assert (done.returncode, (folder / "board.tsv").read_text(encoding="utf-8")) == (0, expected)


def test_a_closed_input_is_empty(folder: Path) -> None:
    done = shell(folder, "<&-", "evaluate", "qrels.txt", "-", "nDCG@10")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "is empty" in done.stderr


def test_errors_do_not_go_to_the_output_when_standard_error_is_closed(folder: Path) -> None:
    done = shell(folder, "2>&-", "evaluate", "nothing.txt", "alpha.run", "nDCG")
    assert (done.returncode, done.stdout) == (2, "")


@pytest.mark.parametrize("arguments", [BOARD, ["--help"]])
def test_a_reader_that_is_gone_is_no_error(folder: Path, arguments: list[str]) -> None:
    # The reader ends at once; the command starts when it is gone.
    script = 'd=$(mktemp -d); mkfifo "$d/f"; ( : < "$d/f" ) & exec 3> "$d/f"; wait; rm -r "$d"; "$@" >&3'
    done = subprocess.run(
        ["sh", "-c", script, "sh", sys.executable, "-m", "rubric_measures", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        encoding="utf-8",
    )
    said = [line for line in done.stderr.splitlines() if not line.startswith("rubric_measures: ")]
    assert (done.returncode, said) == (0, [])


def test_an_output_of_another_encoding_is_one_line(folder: Path) -> None:
    write_lines(folder / "other.jsonl", [["q1", [passage("q1", "d1", RECORDS[0][1][0]["exam_grades"], {"größe": 1})]]])
    arguments = ["leaderboard", "other.jsonl", "-m", "RubricCover"]
    done = shell(folder, "", *arguments, PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "cannot be written as ascii" in done.stderr
    assert "set PYTHONIOENCODING=utf-8" in done.stderr
    assert "größe" in shell(folder, "", *arguments, PYTHONIOENCODING="utf-8").stdout


def _raising(error: BaseException) -> int:
    raise error


def test_defects_keep_their_traceback() -> None:
    said: list[str] = []
    defects: list[Exception] = [
        FileNotFoundError(errno.ENOENT, "a file of our own"),
        UnicodeEncodeError("latin-1", "ł", 0, 1, "a defect"),
        ValueError("a defect"),
    ]
    for defect in defects:
        with pytest.raises(type(defect)):
            guarded(lambda defect=defect: _raising(defect), said.append)  # type: ignore[misc]
    assert said == []


def test_what_cannot_be_written_is_named() -> None:
    said: list[str] = []
    assert guarded(lambda: _raising(PermissionError(errno.EACCES, "Permission denied", "board.tsv")), said.append) == 2
    assert guarded(lambda: _raising(UnicodeEncodeError("utf-8", "a\ud800", 1, 2, "surrogate")), said.append) == 2
    assert said == [
        "board.tsv: reading or writing failed (Permission denied)",
        "'\\ud800' cannot be written as utf-8; repair it in the input, or set PYTHONIOENCODING=utf-8",
    ]


def test_a_collection_that_cannot_be_downloaded_is_one_line(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import ir_datasets

    def load(name: str) -> None:
        raise RuntimeError("All download sources failed", [name])

    monkeypatch.setitem(load.__globals__, "__name__", "ir_datasets.util.download")
    monkeypatch.setattr(ir_datasets, "load", load)
    assert main(["evaluate", "no-such-file", str(folder / "alpha.run"), "nDCG"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("rubric_measures: ir_datasets cannot give the collection (('All download sources failed'")
    assert said.count("\n") == 1
