"""Starting and ending: interrupts, names that are imported late; errors of one line."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import rubric_measures
from rubric_measures import api
from rubric_measures.base import startup
from rubric_measures.base.errors import (
    FormatError,
    InputError,
    MissingExtraError,
    UnknownNameError,
    naming,
    shortened,
)
from rubric_measures.base.plugins import require
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


@pytest.mark.parametrize("package", [rubric_measures, api])
def test_a_package_has_all_that_it_exports(package: object) -> None:
    for name in package.__all__:  # type: ignore[attr-defined]
        assert getattr(package, name) is not None
        assert name in dir(package)


def test_a_name_that_there_is_not_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'rubric_measures' has no attribute 'scores'"):
        rubric_measures.scores  # noqa: B018
    assert not hasattr(api, "scores")


@pytest.mark.parametrize(
    "error",
    [
        FormatError("bad", path="p", line=2, field="f"),
        UnknownNameError("run", "bm52", ["bm25"], hint="(h)"),
        MissingExtraError("jinja2", "review", is_module=True),
    ],
)
def test_errors_survive_pickling(error: Exception) -> None:
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), str(copy), vars(copy)) == (type(error), str(error), vars(error))


def test_an_extra_that_goes_with_another_version_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "broken_extra.py").write_text("raise ImportError('it needs NumPy 2.0, found 1.26')\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(
        InputError, match=r"^broken_extra cannot be imported \(it needs NumPy 2.0, found 1.26\); install"
    ):
        require("broken_extra", "plot")


def test_what_is_wrong_with_a_content_names_its_file() -> None:
    with pytest.raises(InputError, match=r"^one.json and 1 more: no grades$") as caught, naming("one.json", Path("b")):
        raise InputError("no grades", settings=("bank",))
    assert caught.value.settings == ("bank",)
    # Named already, or not about the content.
    for error in (FormatError("no grades", path="b"), UnknownNameError("run", "x", ["y"])):
        with pytest.raises(type(error)) as same, naming("one.json", "b"):
            raise error
        assert same.value is error


def test_no_name_makes_a_message_longer_than_a_screen() -> None:
    path = "/".join(["folder" * 40] * 3)
    assert shortened(f"{path}:3: run {'x' * 5000!r}") == f"{path}:3: run {chr(39)}{'x' * 199}…{'x' * 99}{chr(39)}"
