"""A small line plot with a band as inline SVG, for reports that must open anywhere, without matplotlib."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from html import escape
from typing import NamedTuple

__all__ = ["PlotPoint", "line_plot"]

_WIDTH, _HEIGHT = 600, 340
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 16, 16, 52


class PlotPoint(NamedTuple):
    """One place of the line: x, the mean, and the range around it."""

    x: float
    mean: float
    low: float
    high: float


def line_plot(points: Sequence[PlotPoint], title: str, x_label: str, y_label: str) -> str:
    """The points as an SVG element: the means as a line with a dot each, their ranges as a band, axes with ticks.

    Colours come from the page (`currentColor` and its `--accent`), so it is readable in light and dark. Texts are
    escaped. Every dot has its numbers as a tooltip; the whole has the title as its name for screen readers.

    Args:
        points: in the order of x; one point is drawn as a dot.
        title: what the plot shows.
        x_label: under the horizontal axis.
        y_label: beside the vertical axis.

    Returns:
        the element; empty where there are no points.
    """
    if not points:
        return ""
    return "".join(_pieces(points, title, x_label, y_label))


def _pieces(points: Sequence[PlotPoint], title: str, x_label: str, y_label: str) -> Iterator[str]:
    x_ticks = ticks(min(point.x for point in points), max(point.x for point in points), whole=True)
    y_ticks = ticks(min(point.low for point in points), max(point.high for point in points))

    def across(value: float) -> float:
        return _LEFT + (value - x_ticks[0]) / (x_ticks[-1] - x_ticks[0]) * (_WIDTH - _LEFT - _RIGHT)

    def down(value: float) -> float:
        return _TOP + (y_ticks[-1] - value) / (y_ticks[-1] - y_ticks[0]) * (_HEIGHT - _TOP - _BOTTOM)

    name = escape(title)
    yield f'<svg class="plot" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{name}"><title>{name}</title>\n'
    base, end = _HEIGHT - _BOTTOM, _WIDTH - _RIGHT
    yield '<g fill="currentColor" font-size="13" font-family="system-ui, sans-serif">\n'
    for tick in y_ticks:
        at = down(tick)
        yield f'<line x1="{_LEFT}" y1="{at:.1f}" x2="{end}" y2="{at:.1f}" stroke="currentColor" stroke-opacity=".15"/>'
        yield f'<text x="{_LEFT - 8}" y="{at + 4:.1f}" text-anchor="end">{_number(tick)}</text>\n'
    for tick in x_ticks:
        yield f'<text x="{across(tick):.1f}" y="{base + 20}" text-anchor="middle">{_number(tick)}</text>\n'
    yield f'<line x1="{_LEFT}" y1="{base}" x2="{end}" y2="{base}" stroke="currentColor"/>\n'
    yield f'<text x="{(_LEFT + end) / 2}" y="{_HEIGHT - 10}" text-anchor="middle">{escape(x_label)}</text>\n'
    middle = (_TOP + base) / 2
    turned = f'transform="rotate(-90 16 {middle})" text-anchor="middle"'
    yield f'<text x="16" y="{middle}" {turned}>{escape(y_label)}</text></g>\n'
    edge = [*((point.x, point.high) for point in points), *((point.x, point.low) for point in reversed(points))]
    band = " ".join(f"{across(x):.1f},{down(y):.1f}" for x, y in edge)
    yield f'<polygon points="{band}" fill="var(--accent)" fill-opacity=".22"/>\n'
    line = " ".join(f"{across(point.x):.1f},{down(point.mean):.1f}" for point in points)
    yield f'<polyline points="{line}" fill="none" stroke="var(--accent)" stroke-width="2"/>\n'
    for point in points:
        said = f"{_number(point.x)}: {point.mean:.4f} ({point.low:.4f} to {point.high:.4f})"
        place = f'cx="{across(point.x):.1f}" cy="{down(point.mean):.1f}"'
        yield f'<circle {place} r="4" fill="var(--accent)"><title>{escape(said)}</title></circle>\n'
    yield "</svg>\n"


def ticks(low: float, high: float, whole: bool = False) -> list[float]:
    """Round numbers from one at or below `low` to one at or above `high`, about six of them, two at least.

    Args:
        low: the least value.
        high: the largest value, `low` or more.
        whole: only whole numbers.

    >>> ticks(0.31, 1.0)
    [0.2, 0.4, 0.6, 0.8, 1.0]
    >>> ticks(3, 3, whole=True)
    [3.0, 4.0]
    """
    # Values that differ by less than a label shows are one value.
    span = high - low if high - low > 1e-6 else 1.0
    power = 10.0 ** math.floor(math.log10(span / 5))
    step = next(power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= span / 5 * 0.999)
    if whole:
        step = max(1.0, float(round(step)))
    first = math.floor(round(low / step, 9))
    last = max(math.ceil(round(high / step, 9)), first + 1)
    return [round(number * step, 9) for number in range(first, last + 1)]


def _number(value: float) -> str:
    return f"{value:.6g}".replace("-", "−")
