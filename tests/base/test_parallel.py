"""Tests of the forked map: order, errors and notes as if it ran here."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading

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
