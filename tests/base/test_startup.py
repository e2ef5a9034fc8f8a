"""Ctrl-C while the command line starts and ends: one line and 130, in real processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from rubric_measures.base import startup
from rubric_measures.cli import Interruptible
from tests.grading_data import write_inputs

ROOT = Path(startup.__file__).parents[2]
pytestmark = pytest.mark.skipif(os.name != "posix", reason="sends signals as POSIX has them")

# Interrupts the process when a module is looked for, or when the interpreter ends.
_SITE = """
import os, sys
sys.modules.pop("signal", None)
def interrupt():
    # In code from a string, as dataclasses run it: Python remembers an interrupt there, and dies of it in the end.
    exec("os.kill(os.getpid(), 2)")
class Interrupter:
    def find_spec(self, name, path=None, target=None):
        if name == os.environ["INTERRUPT_AT"]:
            interrupt()
if os.environ["INTERRUPT_AT"] == "exit":
    import atexit
    atexit.register(interrupt)
sys.meta_path.insert(0, Interrupter())
"""
# As installers write it.
_SCRIPT = """
import sys
from rubric_measures.cli import main
sys.exit(main())
"""
_STARTING = ["signal", "ir_measures", "rubric_measures.cli"]
_AGAIN = ["argparse", "exit"]
_LATER = ["rubric_measures.base.errors", "sqlite3", "exit"]


def interrupted(folder: Path, at: str, command: list[str]) -> subprocess.CompletedProcess[str]:
    """Runs `grade` on three passages in a process that gets Ctrl-C at a moment."""
    (folder / "site").mkdir()
    (folder / "site" / "sitecustomize.py").write_text(_SITE)
    passages, bank = write_inputs(folder)
    path = os.pathsep.join([str(folder / "site"), str(ROOT)])
    arguments = ["grade", str(passages), "--bank", str(bank), "--model", "lexical", "-o", str(folder / "out.jsonl")]
    environment = {**os.environ, "PYTHONPATH": path, "INTERRUPT_AT": at}
    return subprocess.run([*command, *arguments], env=environment, capture_output=True, text=True)


def script(folder: Path) -> list[str]:
    path = folder / "rubric_measures"
    path.write_text(_SCRIPT)
    return [sys.executable, str(path)]


@pytest.mark.parametrize(
    ("way", "at"),
    [*(("module", at) for at in [*_STARTING, *_LATER]), *(("script", at) for at in _AGAIN)],
)
def test_an_interrupt_is_one_line_and_130(tmp_path: Path, way: str, at: str) -> None:
    command = script(tmp_path) if way == "script" else [sys.executable, "-m", "rubric_measures"]
    done = interrupted(tmp_path, at, command)
    said = [line for line in done.stderr.splitlines() if line.startswith("rubric_measures: interrupted")]
    assert (done.returncode, len(said)) == (130, 1), done.stderr
    assert "Traceback" not in done.stderr and "KeyboardInterrupt" not in done.stderr
    assert at == "exit" or done.stderr.count("\n") == 1


def test_other_programs_keep_their_interrupts(tmp_path: Path) -> None:
    """Importing the package changes nothing: neither in scripts, nor in processes that inherit arguments of ours."""
    (tmp_path / "program.py").write_text("import rubric_measures\n")
    done = interrupted(tmp_path, "ir_measures", [sys.executable, str(tmp_path / "program.py")])
    assert done.returncode == -signal.SIGINT and done.stderr.rstrip().endswith("KeyboardInterrupt")
    child = "import sys; sys.argv = ['/usr/bin/rubric_measures', 'grade']; import rubric_measures"
    (tmp_path / "other").mkdir()
    done = interrupted(tmp_path / "other", "ir_measures", [sys.executable, "-c", child])
    assert done.returncode == -signal.SIGINT and done.stderr.rstrip().endswith("KeyboardInterrupt")


def test_ignored_interrupts_stay_ignored(tmp_path: Path) -> None:
    starts = "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN); os.execv(sys.argv[1], sys.argv[1:])"
    command = [sys.executable, "-S", "-c", starts, sys.executable, "-m", "rubric_measures"]
    done = interrupted(tmp_path, "ir_measures", command)
    assert (done.returncode, (tmp_path / "out.jsonl").is_file()) == (0, True), done.stderr


def test_inside_of_a_program_commands_leave_its_handler() -> None:
    before = signal.getsignal(signal.SIGINT)
    with Interruptible(), Interruptible():
        assert signal.getsignal(signal.SIGINT) is before
    signal.signal(signal.SIGINT, startup.leave)
    try:
        with Interruptible():
            with Interruptible():
                assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
            assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        assert signal.getsignal(signal.SIGINT) is startup.leave
    finally:
        signal.signal(signal.SIGINT, before)
