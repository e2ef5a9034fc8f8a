"""The leaderboard as a dot plot: a row a run with its mean, its interval and single queries, as HTML and inline SVG.

Places are shares of the width, so that names and numbers keep their size on a phone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from rubric_measures.base.pages import text, words
from rubric_measures.boards.board import Leaderboard

__all__ = ["DOT_STYLE", "dot_plot"]

DOT_STYLE = """
.dots { margin: .6rem 0 0; }
.dots div { display: grid; grid-template: "name plot value" / 11rem minmax(0, 1fr) 3.4rem; column-gap: .8rem;
  align-items: center; }
.dots .name { grid-area: name; }
.dots .value { grid-area: value; }
.dots svg { grid-area: plot; width: 100%; height: 1.8rem; display: block; overflow: visible; }
.dots .value { font-variant-numeric: tabular-nums; text-align: end; white-space: nowrap; }
.dots .axis { height: 1.4rem; }
.dots text { font: .75rem system-ui, sans-serif; fill: var(--note); }
.grid { stroke: var(--line); }
.interval { stroke: var(--dot); stroke-width: 3; }
.mean { fill: var(--dot); }
.query { fill: var(--query); fill-opacity: .55; }
@media (max-width: 30rem) {
  .dots div { grid-template: "name value" "plot plot" / 1fr auto; }
}
"""


def dot_plot(
    board: Leaderboard,
    measure: str,
    runs: Sequence[str],
    intervals: Mapping[str, tuple[float, float] | None],
    level: float,
) -> str:
    """One measure in raw scores.

    Args:
        board: the scores.
        measure: the measure.
        runs: the rows, best first; one at least.
        intervals: run -> ends of the interval of its mean, where it has one.
        level: the nominal coverage of intervals.
    """
    values = {run: [one for one in board.values[run][measure].values() if one is not None] for run in runs}
    ends = [end for pair in intervals.values() if pair for end in pair]
    every = [*ends, *(value for of_run in values.values() for value in of_run)]
    low, high, ticks = _axis(every)

    def place(value: float) -> str:
        # Room at both ends for dots and for the first and last number.
        return f"{2 + 96 * (value - low) / (high - low):.2f}%"

    lines = "".join(f'<line class="grid" x1="{place(tick)}" x2="{place(tick)}" y1="0" y2="100%"/>' for tick in ticks)
    rows = []
    for run in runs:
        mean, interval = board.cells[run][measure].mean, intervals.get(run)
        # Equal values would be one dot: they stand one above the other, as many as there is room for.
        seen: dict[str, int] = {}
        dots = ""
        for value in sorted(values[run]):
            at = place(value)
            number = seen[at] = seen.get(at, 0) + 1
            if number <= 5:
                dots += (
                    f'<circle class="query" cx="{at}" cy="{50 + (number // 2) * (9 if number % 2 else -9)}%" r="2.5"/>'
                )
        bar = ""
        if interval is not None:
            low_end, high_end = map(place, interval)
            bar = f'<line class="interval" x1="{low_end}" x2="{high_end}" y1="50%" y2="50%"/>'
        dot = "" if mean is None else f'<circle class="mean" cx="{place(mean)}" cy="50%" r="5.5"/>'
        said = _said(run, measure, mean, interval, level)
        shown = "–" if mean is None else f"{mean:.3f}"
        rows.append(
            f'<div><span class="name">{text(run)}</span>'
            f'<svg role="img" aria-label="{text(said)}"><title>{text(said)}</title>{lines}{dots}{bar}{dot}</svg>'
            f'<span class="value">{shown}</span></div>'
        )
    numbers = "".join(f'<text x="{place(tick)}" y="1em" text-anchor="middle">{tick:g}</text>' for tick in ticks)
    queries = max((len(of_run) for of_run in values.values()), default=0)
    caption = f"{measure}: mean over {words(queries, 'query', 'queries')}"
    if ends:
        caption += f", with its {level:.0%} interval"
    return (
        f'<div class="dots">{"".join(rows)}<div><svg class="axis" aria-hidden="true">{numbers}</svg></div></div>'
        f'<p class="note">{text(caption)}; grey: single queries.</p>'
    )


def _said(run: str, measure: str, mean: float | None, interval: tuple[float, float] | None, level: float) -> str:
    if mean is None:
        return f"{run}: no score by {measure}"
    between = "" if interval is None else f", {level:.0%} interval {interval[0]:.3f} to {interval[1]:.3f}"
    return f"{run}: {mean:.3f}{between}"


def _axis(values: Sequence[float]) -> tuple[float, float, list[float]]:
    """The ends of the axis, and its numbers: 0 to 1 where all values are in there, else round ones around them.

    >>> _axis([0.2, 0.9])
    (0.0, 1.0, [0.0, 0.2, 0.4, 0.6, 0.8, 1.0])
    >>> _axis([3, 42])
    (0.0, 50.0, [0.0, 10.0, 20.0, 30.0, 40.0, 50.0])
    """
    lowest, highest = min([0.0, *values]), max(values, default=1.0)
    if lowest >= 0 and highest <= 1:
        lowest, highest = 0.0, 1.0
    rough = (highest - lowest) / 5
    unit = 10.0 ** math.floor(math.log10(rough))
    step = next(unit * factor for factor in (1, 2, 5, 10) if unit * factor >= rough - 1e-12)
    first, last = math.floor(lowest / step + 1e-9), math.ceil(highest / step - 1e-9)
    return first * step, last * step, [round(number * step, 12) for number in range(first, last + 1)]
