"""Tests of the inline SVG line plot: places of points, ticks, escaping."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rubric_measures.pages.frame import ticks


@given(st.floats(-5, 5), st.floats(0, 10), st.booleans())
def test_ticks_enclose_the_values(low: float, span: float, whole: bool) -> None:
    found = ticks(low, low + span, whole)
    assert found[0] <= low + 1e-6 and found[-1] >= low + span - 1e-6
    assert 2 <= len(found) <= 13
    assert not whole or all(tick == int(tick) for tick in found)
    assert found == sorted(set(found)) and found[1] - found[0] == pytest.approx(found[-1] - found[-2])
