"""The garbage collector's pause: nested, undone after errors, and no second look at what a whole file was made into."""

from __future__ import annotations

import gc

import pytest

from rubric_measures.base.files import paused_collector


def in_generation(generation: int, wanted: object) -> bool:
    return any(one is wanted for one in gc.get_objects(generation=generation))


def test_it_goes_on_after_the_outermost_block_and_only_if_it_was_on() -> None:
    with paused_collector():
        with pytest.raises(ValueError, match="x"), paused_collector():
            raise ValueError("x")
        assert not gc.isenabled()
    assert gc.isenabled()
    gc.disable()
    try:
        with paused_collector():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_what_a_whole_file_was_made_into_is_old_at_once() -> None:
    with paused_collector():
        line = [[number] for number in range(100)]
        assert in_generation(0, line)
    gc.collect()
    with paused_collector():
        file = [[number] for number in range(300_000)]
        assert in_generation(0, file)
    assert in_generation(2, file)
    assert gc.get_freeze_count() == 0
    assert len(line) == 100


def test_what_somebody_froze_stays_frozen() -> None:
    frozen: list[list[int]] = [[]]
    gc.collect()
    gc.freeze()
    try:
        count = gc.get_freeze_count()
        with paused_collector():
            file = [[number] for number in range(300_000)]
        assert gc.get_freeze_count() >= count - 1000
        assert not in_generation(2, frozen)
        assert len(file) == 300_000
    finally:
        gc.unfreeze()
