"""Tests of the inline SVG line plot: places of points, ticks, escaping."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rubric_measures.pages.frame import LinePlot, PlotPoint, environment, ticks


def drawn(points: list[PlotPoint], *texts: str) -> ElementTree.Element:
    """The drawing, as it stands on a page."""
    figure = environment().get_template("macros.html").module.line_plot(LinePlot(points, *texts))
    return ElementTree.fromstring(figure)[0]


def test_places_and_texts() -> None:
    points = [PlotPoint(0, 0.5, 0.0, 1.0), PlotPoint(5, 1.0, 1.0, 1.0)]
    root = drawn(points, "<T> & co", "x <b>", 'y "q"')
    assert root.attrib["aria-label"] == "<T> & co"
    texts = [element.text for element in root.iter("text")]
    assert texts == ["0", "0.2", "0.4", "0.6", "0.8", "1", "0", "1", "2", "3", "4", "5", "x <b>", 'y "q"']
    # The axes span 64 to 584 across and 288 to 16 down: half of 272 is 152 from the top.
    (line,) = root.iter("polyline")
    assert line.attrib["points"].split() == ["64.0,152.0", "584.0,16.0"]
    (band,) = root.iter("polygon")
    assert band.attrib["points"].split() == ["64.0,16.0", "584.0,16.0", "584.0,16.0", "64.0,288.0"]


@given(st.floats(-5, 5), st.floats(0, 10), st.booleans())
def test_ticks_enclose_the_values(low: float, span: float, whole: bool) -> None:
    found = ticks(low, low + span, whole)
    assert found[0] <= low + 1e-6 and found[-1] >= low + span - 1e-6
    assert 2 <= len(found) <= 13
    assert not whole or all(tick == int(tick) for tick in found)
    assert found == sorted(set(found)) and found[1] - found[0] == pytest.approx(found[-1] - found[-2])
