"""What a command says beside its output: --quiet, --verbose; and what completes its options in a shell."""

from __future__ import annotations

import logging
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from rubric_measures.cli import main
from rubric_measures.corpora.collections import example_folder

BOARD = ["leaderboard", str(example_folder() / "graded.jsonl.gz"), "--grader", "kind=question"]


def test_quiet_leaves_warnings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "cut.run").write_text("q01 Q0 d0101 1 2.0 cut\nq99 Q0 d0101 1 2.0 cut", encoding="utf-8")
    command = [*BOARD, str(tmp_path / "cut.run"), "-m", "RubricCover(rel=4)@5"]
    assert main(command) == 0
    out, usual = capsys.readouterr()
    assert "signature" in usual and "warning: " in usual
    assert main([*command, "--quiet"]) == 0
    quiet = capsys.readouterr()
    assert quiet.out == out
    assert quiet.err.splitlines() == [
        line for line in usual.splitlines() if line.startswith("rubric_measures: warning:")
    ]
    assert main([*command, "--verbose"]) == 0
    timed = capsys.readouterr().err
    assert [re.sub(r": \d+\.\d s: ", ": ", line) for line in timed.splitlines()] == usual.splitlines()
    assert timed.count(" s: ") == len(usual.splitlines())
    # The next command says what it always does.
    assert logging.getLogger("rubric_measures").level == logging.NOTSET
    assert main([*command, "--quiet", "nothing.run"]) == 2
    assert "nothing.run" in capsys.readouterr().err


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_completes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("shtab")
    assert main(["--completion", "bash"]) == 0
    (tmp_path / "completion").write_text(capsys.readouterr().out, encoding="utf-8")

    def completed(*words: str) -> list[str]:
        typed = " ".join(f"'{word}'" for word in ("rubric_measures", *words))
        program = f"source completion; COMP_WORDS=({typed}); COMP_CWORD={len(words)}; _shtab_rubric_measures; "
        done = subprocess.run(
            ["bash", "-c", program + 'echo "${COMPREPLY[@]}"'], capture_output=True, text=True, check=True, cwd=tmp_path
        )
        return done.stdout.split()

    assert completed("leaderb") == ["leaderboard"]
    assert completed("leaderboard", "--format", "js") == ["json", "jsonl"]
    assert "--max-cost" in completed("grade", "--max")


def test_without_shtab_it_says_so(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(__import__("sys").modules, "shtab", None)
    assert main(["--completion", "bash"]) == 2
    assert "pip install '.[completion]'" in capsys.readouterr().err
