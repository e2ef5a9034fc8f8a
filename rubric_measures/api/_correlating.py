"""Correlating leaderboards with the official one."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from rubric_measures.api._loading import (
    Bank,
    File,
    RecordGrades,
    bank_of,
    content_of,
    file_path,
    grade_filter,
    refuse_filters,
)
from rubric_measures.base.errors import InputError, naming
from rubric_measures.base.files import path_name
from rubric_measures.boards.board import Leaderboard
from rubric_measures.measures.grades import OnFailed
from rubric_measures.measures.scoring import (
    column_named,
    columns_named,
    inner_names,
    is_standard,
    note_labels,
    parse_measures,
    rubric_measures_of,
)

if TYPE_CHECKING:
    import pandas

    from rubric_measures.analysis.leaderboards import GridCell, LeaderboardCorrelation, Pick, RunScores
    from rubric_measures.base.tables import Report
    from rubric_measures.formats.leaderboards import Form, LeaderboardTable

GRID_MEASURES = ("RubricCover@20", "nRubricCover@20", "RubricQrels(measure='P@20')", "RubricQrels(measure='nDCG@10')")
Scores: TypeAlias = File | Leaderboard | RecordGrades | Mapping[str, float]
"""Scores of runs: a leaderboard file, a board, or run -> score; graded records (every grade set and measure)."""
PlotKind = Literal["ranks", "scatter"]


@dataclass(frozen=True)
class Correlations:
    """Leaderboards against the official one; `print` shows them.

    Attributes:
        official: the official column; the first where each measure has its own, see `LeaderboardCorrelation.official`.
        official_path: where it comes from.
        results: (where it comes from, what was found) of each leaderboard's column.
        grid: a cell a grade set and measure of graded records.
        columns: the scores behind `results`, in their order.
        errors: label of a column -> run -> standard error.
        coefficients: what was computed.
        bootstrap: rounds, seed and level.
        groups: places in `results` of leaderboards that the first coefficient cannot tell apart, best group first. All
            see the same resampled queries; so this is None where their queries or runs differ.
    """

    official: RunScores
    official_path: str
    results: Sequence[tuple[str, LeaderboardCorrelation]]
    grid: Sequence[GridCell]
    columns: Sequence[RunScores]
    errors: Mapping[str, Mapping[str, float]]
    coefficients: Sequence[str]
    bootstrap: Mapping[str, object]
    one_file: bool = field(default=True, repr=False)
    groups: Sequence[Sequence[int]] | None = None

    def __repr__(self) -> str:
        return f"<Correlations of {len(self.results) + len(self.grid)} leaderboards with {self.official.name}>"

    def __str__(self) -> str:
        from rubric_measures.base.tables import render

        return "".join(render(self.report(), "text")).rstrip("\n")

    def report(self, best_by: str | None = None, places: int = 4) -> Report:
        """What `base.tables.render` shows in any form.

        Args:
            best_by: the coefficient whose best cells of a grid are marked; the first by default.
            places: decimal places; -1 prints all digits.

        Raises:
            UnknownNameError: `best_by` was not computed.
        """
        from rubric_measures.analysis.leaderboards import correlation_report

        source, results, grid = self.official_path, self.results, self.grid
        names, drawn = self.coefficients, self.bootstrap
        pick = self.pick(best_by) if len(grid) > 1 and drawn["rounds"] and best_by in {None, *names} else None
        return correlation_report(
            self.official, source, results, grid, names, best_by, places, drawn, pick, self.groups
        )

    def pick(self, best_by: str | None = None) -> Pick:
        """By how much the best cell of the grid flatters: picked on half of the queries, looked at on the other.

        Args:
            best_by: the coefficient; the first by default.
        """
        from rubric_measures.analysis.leaderboards import pick_of_grid

        seed = self.bootstrap["seed"]
        return pick_of_grid(self.official, self.grid, best_by or self.coefficients[0], seed=int(str(seed)))

    @property
    def found(self) -> list[LeaderboardCorrelation]:
        """Every correlation, of leaderboards and of the grid."""
        return [*(one for _, one in self.results), *(cell.result for cell in self.grid if cell.result is not None)]

    def to_dataframe(self) -> pandas.DataFrame:
        """A row a leaderboard and coefficient.

        Returns:
            the columns leaderboard, measure, coefficient, value, low and high (the interval; NaN where there is none).

        Raises:
            MissingExtraError: pandas is not installed.
        """
        from rubric_measures.base.plugins import require

        named = [(path, one.name, one) for path, one in self.results]
        named += [
            (f"{cell.llm} {cell.prompt_class}", cell.measure, cell.result)
            for cell in self.grid
            if cell.result is not None
        ]
        rows = [
            (path, measure, one.coefficient.name, one.coefficient.value,
             None if one.interval is None else one.interval.low, None if one.interval is None else one.interval.high)
            for path, measure, result in named
            for one in result.coefficients
        ]  # fmt: skip
        names = ["leaderboard", "measure", "coefficient", "value", "low", "high"]
        frame: pandas.DataFrame = require("pandas", "pandas").DataFrame(rows, columns=names)
        return frame

    def plot(self, path: str | os.PathLike[str], kind: PlotKind = "ranks") -> None:
        """Draws ranks against official ranks, or scores against official ones.

        - `ranks`: a panel a leaderboard, with τ and the names of the runs that move most.
        - `scatter`: one column against the official one, a named point a run; with scores by query on both sides also a
          small point a query and run.

        Args:
            path: the figure to write: .pdf, .svg or .png.
            kind: what is drawn.

        Raises:
            InputError: there is no leaderboard file to draw, or too many columns.
            MissingExtraError: matplotlib is not installed.
        """
        from rubric_measures.pages.plots import plot_ranks, plot_scatter
        from rubric_measures.pages.style import save_figures

        official = self.official
        if len({result.official for _, result in self.results}) > 1:
            raise InputError("a figure has one official column; choose it", settings=("official_measure",))
        named = {
            column.name if self.one_file else f"{source}: {column.name}": column
            for (source, _), column in zip(self.results, self.columns, strict=True)
        }
        if not named:
            raise InputError("leaderboards are drawn; a grid is not", settings=("plot",))
        first = f"official {official.name}"
        if kind == "ranks":
            queries = len({query for values in official.queries.values() for query in values})
            others = {name: one.means for name, one in named.items()}
            save_figures([plot_ranks(official.means, others, first, queries)], path)
            return
        if len(named) > 1:
            raise InputError(f"a figure of kind {kind} shows one column; choose it", settings=("measures",))
        name, column = next(iter(named.items()))
        runs = sorted(official.means.keys() & column.means.keys())
        sides = [[one.means[run] for run in runs] for one in (official, column)]
        tables = [self._table(one, runs) for one in (official, column)]
        x, y = tables if all(tables) else sides
        errors = (self.errors[first], next(found for label, found in self.errors.items() if label != first))
        save_figures([plot_scatter(runs, x, y, (first, name), errors)], path)

    def _table(self, scores: RunScores, runs: Sequence[str]) -> list[list[float]]:
        """(queries, runs) scores, NaN where one is missing; empty where there are none by query."""
        if not any(scores.queries.get(run) for run in runs):
            return []
        every = (self.official, *self.columns)
        queries = sorted({query for one in every for run in runs for query in one.queries.get(run, ())})
        return [[scores.queries.get(run, {}).get(query, math.nan) for run in runs] for query in queries]


def correlate(
    official: Scores,
    *others: Scores,
    measures: str | Sequence[str] | None = None,
    official_measure: str | None = None,
    coefficients: Sequence[str] | None = None,
    form: Form | None = None,
    official_form: Form | None = None,
    official_ranks: bool | None = None,
    rel: Sequence[int] | None = None,
    compat: Literal["workbench"] | None = None,
    rounds: int = 10_000,
    seed: int = 42,
    level: float = 0.95,
    bank: Bank | None = None,
    on_failed: OnFailed | None = None,
    **chosen: Any,
) -> Correlations:
    """Rank correlation of leaderboards with the official one, joined on their runs.

    >>> import rubric_measures
    >>> found = rubric_measures.correlate({"a": 3, "b": 2, "c": 1}, {"a": 0.9, "b": 0.2, "c": 0.5}, rounds=0)
    >>> round(found.found[0].value("kendall"), 2)
    0.33

    Args:
        official: the official leaderboard: a file of any form that we read, a board, or run -> score.
        others: the same; or graded records (a file, or what `load` gives of it), of which every grade set is scored by
            every measure: a grid. None: `official` has official measures beside ours, as `score` makes it with qrels;
            ours are correlated with them.
        measures: the columns to correlate; all by default.
        official_measure: the official column, where there are several. Without it each measure is correlated with the
            one of its own name (`RubricQrels(measure='nDCG@10')` with `nDCG@10`).
        coefficients: `kendall`, `spearman`, `pearson`, `tau_ap_b`, `tau_gap`, `rbo`, `max_rank_drop`, …, also of the
            official top k (`kendall@15`).
        form: the form of the other files, where their content does not show it.
        official_form: that of the official file.
        official_ranks: whether the official numbers are ranks, 1 best; told by the column's name if None.
        rel: the levels of a grid; None takes all of each grade set's scale (where it is not known, the grades that
            occur).
        compat: `workbench`: a missing run is an error, and a grid scores as that program does.
        rounds: bootstrap samples; 0 for no intervals.
        seed: of the bootstrap.
        level: nominal coverage of intervals, in (0, 1).
        bank: the test bank of a grid.
        on_failed: see `load`.
        chosen: which grades make a grid, see `load`.

    Raises:
        InputError: there is nothing to correlate with, or several official columns and no choice: none is named, and a
            measure has none of its own.
        UnknownNameError: there is no such column or coefficient.
    """
    from rubric_measures.analysis.leaderboards import DEFAULT_COEFFICIENTS, correlate_leaderboards, standard_errors
    from rubric_measures.analysis.panels import equal_boards
    from rubric_measures.analysis.resampling import Draws

    if rounds < 0:
        raise InputError("the number of rounds is 0 or more", settings=("rounds",))
    wanted = [measures] if isinstance(measures, str) else measures
    side = _official_side(official, official_form, official_ranks)
    asked = wanted
    if not others:
        side, wanted = _alone(official, side, wanted)
        others = (official,)
    records = [_records(other) for other in others]
    if not any(records):
        refuse_filters(" and ".join(map(_name, others)), chosen, "scores of runs")
    names = tuple(coefficients or DEFAULT_COEFFICIENTS)
    is_paired = official_measure is None and not any(records) and side.choice(None, asked) is None
    column, errors = side.take(side.columns[0] if is_paired else side.chosen(official_measure, asked))
    draws = Draws(rounds, seed, level)
    results: list[tuple[str, LeaderboardCorrelation]] = []
    columns: list[RunScores] = []
    spreads = {f"official {column.name}": errors}
    grid: list[GridCell] = []
    for other, path in zip(others, records, strict=True):
        if path is not None:
            known = other.records if isinstance(other, RecordGrades) else None
            with naming(path):
                grid += _grid(
                    path,
                    column,
                    names,
                    wanted,
                    rel,
                    compat,
                    bank=known.bank if known else bank_of(bank),
                    wanted=known.wanted if known else grade_filter(**chosen),
                    on_failed=other.on_failed_given if isinstance(other, RecordGrades) else on_failed,
                    draws=draws,
                )
            continue
        for scores, spread in _columns(other, wanted, form, column):
            label = scores.name if len(others) == 1 else f"{_name(other)}: {scores.name}"
            columns.append(scores)
            spreads[label] = {**standard_errors(scores), **spread}
            own = side.take(side.own(scores.name))[0] if is_paired else column
            with naming(_name(other)):
                found = correlate_leaderboards(own, scores, names, draws, strict=compat is not None)
            results.append((_name(other), found))
    together = None if is_paired else equal_boards(column, columns, names[0], draws)
    return Correlations(
        column, _name(official), results, grid, columns, spreads, names, asdict(draws), len(others) == 1, together
    )


def _name(scores: Scores) -> str:
    if isinstance(scores, str | os.PathLike):
        return path_name(scores)
    name = getattr(scores, "name", None)
    return name if isinstance(name, str) else "scores"


def _records(scores: Scores) -> str | None:
    """The file of graded records behind scores, where that is what they are."""
    if isinstance(scores, RecordGrades) and isinstance(scores.records.source, str):
        return scores.records.source
    if isinstance(scores, str | os.PathLike) and os.fspath(scores) != "-":
        return os.fspath(scores) if content_of(os.fspath(scores)) == "records" else None
    return None


@dataclass(frozen=True)
class _OfficialSide:
    """The official leaderboard.

    Attributes:
        name: what it is called in messages.
        columns: its columns.
        take: name of a column -> its scores, and the standard errors that the file gives or per-query scores have.
    """

    name: str
    columns: Sequence[str]
    take: Callable[[str], tuple[RunScores, Mapping[str, float]]]

    def choice(self, name: str | None, wanted: Sequence[str] | None) -> str | None:
        """The column that is named, or the only one that is asked for; None where there are several."""
        if name is not None:
            return column_named(name, self.columns, f"(columns of {self.name})")
        asked = list(dict.fromkeys(found for one in wanted or () for found in columns_named(one, self.columns)))
        choice = asked if len(asked) == 1 else self.columns
        return choice[0] if len(choice) == 1 else None

    def chosen(self, name: str | None, wanted: Sequence[str] | None) -> str:
        """The same where there has to be one."""
        found = self.choice(name, wanted)
        if found is None:
            raise self._several()
        return found

    def own(self, name: str) -> str:
        """The official column of a measure, by its name."""
        found = columns_named(name, self.columns) or [one for one in inner_names(name) if one in self.columns]
        if len(found) != 1:
            raise self._several(f", and none for {name}")
        return found[0]

    def _several(self, why: str = "") -> InputError:
        return InputError(
            f"{self.name}: several columns{why}, choose one: {'|'.join(self.columns)}", settings=("official_measure",)
        )


def _official_side(official: Scores, form: Form | None, ranks: bool | None) -> _OfficialSide:
    from rubric_measures.analysis import leaderboards as correlation
    from rubric_measures.formats.leaderboards import read_leaderboard

    if isinstance(official, Mapping):
        given = correlation.RunScores("official", {run: float(score) for run, score in official.items()})
        return _OfficialSide("the official scores", ["official"], lambda _: (given, {}))
    if isinstance(official, RecordGrades):
        raise InputError("the official scores are a leaderboard, not grades; score them first")
    if isinstance(official, Leaderboard):

        def of_board(name: str) -> tuple[RunScores, Mapping[str, float]]:
            scores = correlation.scores_of_board(official, name)
            return scores, correlation.standard_errors(scores)

        return _OfficialSide("the official board", official.measures, of_board)
    with file_path(official) as path:
        table = read_leaderboard(path, form=form)

    def of_table(name: str) -> tuple[RunScores, Mapping[str, float]]:
        scores = correlation.scores_of_table(table, name, ranks=ranks)
        return scores, {**correlation.standard_errors(scores), **table.errors(name)}

    return _OfficialSide(path, table.measures, of_table)


def official_scores(official: Scores, name: str | None) -> RunScores:
    """The official column: the one that is named, or the only one."""
    side = _official_side(official, None, None)
    return side.take(side.chosen(name, None))[0]


def _alone(board: Scores, side: _OfficialSide, wanted: Sequence[str] | None) -> tuple[_OfficialSide, Sequence[str]]:
    """The official columns of one leaderboard, which stand beside ours, and ours."""
    if hasattr(board, "read") or board == "-":
        raise InputError(f"{side.name}: is read twice; give a file, or name a leaderboard to correlate with it")
    official = [name for name in side.columns if is_standard(name)]
    asked = side.columns if wanted is None else [column_named(name, side.columns) for name in wanted]
    ours = [name for name in asked if name not in official]
    if not official or not ours:
        raise InputError(
            f"{side.name}: has no official measures (such as nDCG@10) beside ours; name a leaderboard to correlate "
            "with it, or score with qrels, too"
        )
    return replace(side, columns=official), ours


def _columns(
    other: Scores, wanted: Sequence[str] | None, form: Form | None, official: RunScores
) -> list[tuple[RunScores, Mapping[str, float]]]:
    from rubric_measures.analysis import leaderboards as correlation
    from rubric_measures.formats.leaderboards import read_leaderboard

    if isinstance(other, Mapping):
        return [(correlation.RunScores("scores", {run: float(score) for run, score in other.items()}), {})]
    if isinstance(other, RecordGrades):
        raise InputError("a grid is of a file of graded records, not of records in memory; score them first")
    if isinstance(other, Leaderboard):
        chosen = [column_named(name, other.measures) for name in wanted or other.measures]
        return [(correlation.scores_of_board(other, name), {}) for name in chosen]
    with file_path(other) as path:
        queries = {query for values in official.queries.values() for query in values}
        table: LeaderboardTable = read_leaderboard(
            path, form=form, queries=queries, runs=official.means, measures=wanted or ()
        )
        hint = f"(columns of {path})"
        chosen = [column_named(name, table.measures, hint) for name in wanted or table.measures]
        return [(correlation.scores_of_table(table, name), table.errors(name)) for name in chosen]


def _grid(
    path: str,
    official: RunScores,
    coefficients: Sequence[str],
    wanted_measures: Sequence[str] | None,
    rel: Sequence[int] | None,
    compat: Literal["workbench"] | None,
    **more: Any,
) -> list[GridCell]:
    from rubric_measures.analysis.leaderboards import correlate_grid

    default = GRID_MEASURES[:2] if compat == "workbench" else GRID_MEASURES
    asked = parse_measures(wanted_measures or default)
    cells = correlate_grid(
        path, official, rubric_measures_of(asked), rels=rel, coefficients=coefficients, compat=compat, **more
    )
    note_labels(asked)
    return cells
