"""Drawing a board: what its pictures need, put together from its scores, and from the grades behind them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, get_args

from rubric_measures.analysis.resampling import Tests
from rubric_measures.api.comparing import compare
from rubric_measures.base.errors import InputError, counted
from rubric_measures.boards.board import BELOW, Leaderboard
from rubric_measures.corpora.loading import (
    AnswerGrades,
    Gradable,
    RecordGrades,
    Runs,
    are_labels,
    load,
    rankings_for,
    read_runs,
)
from rubric_measures.measures.grades import NONE
from rubric_measures.types.scales import as_number

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from rubric_measures.analysis.resampling import Interval
    from rubric_measures.measures.grades import Grades, QueryGrades
    from rubric_measures.pages.plots import DotPanel


BoardPlot = Literal["dots", "heat"]
_KINDS = get_args(BoardPlot)
# Measures on one page.
_PANELS = 4


def figures_of(
    board: Leaderboard, kind: BoardPlot, tests: Tests, grades: Gradable | None = None, runs: Runs | None = None
) -> Iterator[Figure]:
    """The pages of a picture of a board, see `Board.plot`."""
    if kind not in _KINDS:
        raise InputError(f"unknown kind of picture {kind!r}; give {', '.join(_KINDS)}", settings=("plot_kind",))
    return _heat(board, grades, runs) if kind == "heat" else _dots(board, tests)


def _runs_of(board: Leaderboard) -> list[str]:
    return [run for run in board.ranking() if run not in BELOW]


def _dots(board: Leaderboard, tests: Tests) -> Iterator[Figure]:
    """A panel a measure; a page holds as many as can be read."""
    from rubric_measures.analysis.board_reports import mean_intervals
    from rubric_measures.pages.plots import plot_dots

    runs = _runs_of(board)
    intervals = mean_intervals({name: {run: board.scored(run, name) for run in runs} for name in board.measures}, tests)
    for start in range(0, len(board.measures), _PANELS):
        names = board.measures[start : start + _PANELS]
        panels = [_panel(board, name, runs, tests, intervals) for name in names]
        yield plot_dots(runs, panels, _dots_note(board, runs, panels, tests))


def _dots_note(board: Leaderboard, runs: Sequence[str], panels: Sequence[DotPanel], tests: Tests) -> str:
    counts = sorted({board.cells[run][name].queries for run in runs for name in board.measures})
    over = f"{counts[0]} to {counts[-1]} queries" if len(counts) > 1 else counted(counts[0], "query")
    interval = f", {100 * tests.level:.4g} % interval" if any(panel.intervals for panel in panels) else ""
    groups = f"; groups by {tests.correction}, α = {tests.alpha:g}" if any(one.groups for one in panels) else ""
    return f"mean{interval} over {over}{groups}"


def _is_sum(board: Leaderboard, name: str) -> bool:
    """Whether a measure is a count that is summed over queries: such cells have no standard error."""
    return all(row[name].standard_error is None and row[name].queries > 1 for row in board.cells.values())


def _panel(
    board: Leaderboard,
    name: str,
    runs: Sequence[str],
    tests: Tests,
    intervals: Mapping[str, Mapping[str, Interval]],
) -> DotPanel:
    from rubric_measures.pages.plots import DotPanel

    means = {run: mean for run in runs if (mean := board.cells[run][name].mean) is not None}
    best = board.best[name].mean if name in board.best else None
    if _is_sum(board, name):
        has_queries = any(board.values[run].get(name) for run in runs)
        return DotPanel(f"{name} ({'sum' if has_queries else 'all queries together'})", means, best=best)
    queries = {run: board.scored(run, name) for run in means}
    shown = {run: list(values.values()) for run, values in queries.items()}
    common = set.intersection(*map(set, queries.values())) if queries else ()
    groups = compare(board, measures=name, tests=tests)[name].groups if len(means) > 1 and len(common) > 1 else ()
    ends = {run: (intervals[name][run].low, intervals[name][run].high) for run in runs}
    known = {run: (low, high) for run, (low, high) in ends.items() if low is not None and high is not None}
    return DotPanel(name, means, known, shown, groups, best)


def _heat(board: Leaderboard, grades: Gradable | None, runs: Runs | None) -> Iterator[Figure]:
    """Queries by runs by the first measure, then items by runs, a page a query."""
    from rubric_measures.pages.plots import plot_items, plot_queries

    order, name = _runs_of(board), board.measures[0]
    queries = list(dict.fromkeys(query for run in order for query in board.values[run][name]))
    table = [[board.values[run][name].get(query) for run in order] for query in queries]
    yield plot_queries(queries, order, table, name)
    known = None if grades is None else load(grades)
    if known is None or are_labels(known):
        return
    if isinstance(known, RecordGrades) and known.name == "-":
        text = "items are drawn from the grades, which are read twice: give a file, not standard input"
        raise InputError(text, settings=("plot_kind",))
    found = re.search(r"@(\d+)", " ".join(board.measures))
    cutoff = None if found is None else int(found[1])
    for query_id, query, rankings in with_rankings(known, runs):
        scale = query.scale
        yield plot_items(
            [item.text or item.item_id for item in query.items],
            {run: _best_of(query, rankings.get(run, ())[:cutoff]) for run in order},
            query_id,
            None if scale is None else (scale.lowest, scale.highest),
            None if scale is None else scale.covers,
            cutoff,
        )


def with_rankings(known: Grades, runs: Runs | None) -> list[tuple[str, QueryGrades, Mapping[str, Sequence[str]]]]:
    """The queries (`query/facet` for facets), each with its grades and the ranking of each run."""
    held: Mapping[str, Mapping[str, Sequence[str]]]
    if runs is None:
        if isinstance(known, RecordGrades):
            return [(query.query_id, query.grades, query.rankings) for query in known.record_queries()]
        if not isinstance(known, AnswerGrades):
            raise InputError("these grades hold no rankings; name the runs", settings=("runs",))
        held = known.answers.rankings
    else:
        held = {run.run_id: rankings_for(run, known) for run in read_runs(runs)}
    return [
        (name, query, {run: found.get(name, ()) for run, found in held.items()})
        for name, query in known.queries.items()
    ]


def _best_of(grades: QueryGrades, doc_ids: Sequence[str]) -> tuple[float | None, ...]:
    """The best grade of each item among some passages; None where none of them has a grade of it."""
    best = grades.grades[[grades.docs[doc_id] for doc_id in doc_ids if doc_id in grades.docs]].max(axis=0, initial=NONE)
    return tuple(None if grade == NONE else as_number(grade) for grade in best.tolist())
