"""Tests of the forked map: order, errors and notes as if it ran here."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from rubric_measures.base.parallel import forked_map


@pytest.mark.parametrize("workers", [1, 3])
def test_results_come_in_order_from_closures(workers: int) -> None:
    table = {number: number * number for number in range(40)}
    assert list(forked_map(lambda number: table[number], range(40), workers)) == list(table.values())


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="forks on Linux only")
def test_work_is_done_elsewhere() -> None:
    # In a process of its own: where another test has left a thread, the map rightly does not fork.
    program = """
import os
from rubric_measures.base.parallel import forked_map
print(os.getpid() in set(forked_map(lambda _: os.getpid(), range(8), 2)))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


_PROGRAM = """
import os, signal, sys, time
from pathlib import Path
from rubric_measures.base.errors import RubricMeasuresError
from rubric_measures.base.parallel import forked_map

def end(*_):
    raise KeyboardInterrupt

for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, end)

def work(number):
    if number == 5 and sys.argv[1] == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if number == 5:
        Path(sys.argv[1]).touch()
        time.sleep(600)
    return number

try:
    print(list(forked_map(work, range(20), 2)))
except RubricMeasuresError as error:
    print(error)
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="forks on Linux only")
def test_a_killed_worker_ends_the_map() -> None:
    command = [sys.executable, "-c", _PROGRAM, "killed"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert "a worker process was killed" in done.stdout
    assert done.stderr == ""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="forks on Linux only")
@pytest.mark.parametrize("to_all", [True, False])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_end_the_map_at_once(tmp_path: Path, number: signal.Signals, to_all: bool) -> None:
    """A terminal and a batch system signal the workers as well, whatever locks they hold."""
    path = tmp_path / "working"
    command = [sys.executable, "-c", _PROGRAM, str(path)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, start_new_session=True) as process:
        while not path.exists():
            time.sleep(0.02)
        (os.killpg if to_all else os.kill)(process.pid, number)
        out, errors = process.communicate(timeout=60)
    assert (out, errors) == ("interrupted\n", "")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="forks on Linux only")
def test_a_signal_to_a_worker_that_just_began_is_not_answered_by_the_parents_handler() -> None:
    hook = "os.register_at_fork(after_in_child=lambda: os.kill(os.getpid(), signal.SIGHUP))\n"
    command = [sys.executable, "-c", _PROGRAM.replace("try:\n", f"{hook}try:\n", 1), os.devnull]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert "a worker process was killed" in done.stdout
    assert done.stderr == ""


def test_a_process_with_threads_does_not_fork() -> None:
    stop = threading.Event()
    thread = threading.Thread(target=stop.wait)
    thread.start()
    try:
        assert set(forked_map(lambda _: os.getpid(), range(8), 2)) == {os.getpid()}
    finally:
        stop.set()
        thread.join()


@pytest.mark.parametrize("workers", [1, 2])
def test_the_first_error_in_order_is_raised(workers: int) -> None:
    def fail(number: int) -> int:
        if number >= 3:
            raise ValueError(f"number {number}")
        return number

    done = []
    with pytest.raises(ValueError, match="number 3"):
        for result in forked_map(fail, range(9), workers):
            done.append(result)
    assert done == [0, 1, 2]


@pytest.mark.parametrize("workers", [1, 2])
def test_notes_are_said_here_in_order(workers: int, caplog: pytest.LogCaptureFixture) -> None:
    def note(number: int) -> int:
        logging.getLogger("rubric_measures").warning("note %d", number)
        return number

    assert list(forked_map(note, range(5), workers)) == [0, 1, 2, 3, 4]
    assert caplog.messages == [f"note {number}" for number in range(5)]
