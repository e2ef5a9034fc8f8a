"""Correlating leaderboards with the official one: any leaderboards in, coefficients out, and their report."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np
from msgspec import Struct, to_builtins

from rubric_measures.analysis.boards import score
from rubric_measures.analysis.coefficients import Coefficient
from rubric_measures.analysis.leaderboards import (
    DEFAULT_COEFFICIENTS,
    AnyScores,
    GridCell,
    LeaderboardCorrelation,
    RunScores,
    Scores,
    best_cells,
    correlate_grid,
    correlate_leaderboards,
    name_of_scores,
    read_scores,
    standard_errors,
)
from rubric_measures.analysis.resampling import USUAL_DRAWS, Draws, ranged, score_table
from rubric_measures.base.errors import InputError, counted, naming, some_of
from rubric_measures.base.tables import Cell, Column, Marked, Ranged, Report, Reported, Table, declared, plain
from rubric_measures.boards.board import Leaderboard
from rubric_measures.corpora.loading import (
    Bank,
    RecordGrades,
    TableGrades,
    are_labels,
    are_rows,
    columns_of,
    content_of,
    grader_of,
    load,
)
from rubric_measures.formats.judged import GRADES
from rubric_measures.measures.findings import Note, of_wrapped, say
from rubric_measures.measures.grades import Grades, OnFailed
from rubric_measures.measures.measure import (
    columns_named,
    inner_names,
    is_standard,
    parse_measures,
    rubric_measures_of,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from rubric_measures.measures.grade_sets import Grader


# The format of the JSON of correlations.
CORRELATIONS = "rubric_measures correlate 5"
GRID_MEASURES = ("RubricCover@20", "nRubricCover@20", "RubricQrels(measure='P@20')", "RubricQrels(measure='nDCG@10')")


class AskedCorrelation(Struct, frozen=True, forbid_unknown_fields=True):
    """What was asked of `correlate`: its arguments but the scores and the bank."""

    measures: str | Sequence[str] | None = None
    official_measure: str | None = None
    coefficients: Sequence[str] | None = None
    official_ranks: bool | None = None
    compat: Literal["workbench"] | None = None
    draws: Draws = USUAL_DRAWS
    on_failed: OnFailed | None = None
    grader: str | None = None


@dataclass(frozen=True, repr=False)
class Correlations(Reported):
    """Leaderboards against the official one; `print` shows them.

    Attributes:
        official: the official column; the first where each measure has its own, see `LeaderboardCorrelation.official`.
        official_path: where it comes from.
        results: (where it comes from, what was found) of each leaderboard's column.
        grid: a cell a grade set and measure of graded records.
        columns: the scores behind `results`, in their order.
        coefficients: what was computed.
        asked: what was asked for; with it they are made again.
    """

    official: RunScores
    official_path: str
    results: Sequence[tuple[str, LeaderboardCorrelation]]
    grid: Sequence[GridCell]
    columns: Sequence[RunScores]
    coefficients: Sequence[str]
    asked: AskedCorrelation
    one_file: bool = True

    def report(self) -> Report:
        """Leaderboards first, then the grid."""
        official, results, grid, coefficients = self.official, self.results, self.grid, self.coefficients
        best_by = coefficients[0]
        best = best_cells(grid, best_by)
        first = [_boards(results, coefficients)] if results else []
        last = [_grid(grid, coefficients, best)] if grid else []
        content = {
            "format": CORRELATIONS,
            "official": {"path": self.official_path, "measure": official.name, "ranks": official.ranks},
            "leaderboards": [{"path": path, **vars(result)} for path, result in results],
            "grid": [
                {name: value for name, value in vars(cell).items() if name not in ("scores", "notes")}
                | {"best": index in best}
                for index, cell in enumerate(grid)
            ],
            "best_by": best_by,
            "asked": to_builtins(self.asked),
        }
        return Report([*first, *last], content=lambda: plain(content))

    @property
    def found(self) -> list[LeaderboardCorrelation]:
        """Every correlation, of leaderboards and of the grid."""
        return [*(one for _, one in self.results), *(cell.result for cell in self.grid if cell.result is not None)]

    @property
    def is_complete(self) -> bool:
        """Whether no official run is missing, every coefficient is defined, and every set of grades of items scored."""
        parts = [one.missing or None in [part.value for part in one.coefficients] for one in self.found]
        return not any(parts) and all(cell.result or cell.kind == "direct" for cell in self.grid)

    def log_notes(self) -> None:
        """Logs them."""
        say(self.notes)

    @property
    def notes(self) -> list[Note]:
        """What the numbers leave out, and what may be wrong with the leaderboards."""
        notes: Counter[str] = Counter()
        for result in self.found:
            lacking: dict[str, list[str]] = {}
            for names, what in (
                (result.missing, "of the official leaderboard missing and left out"),
                (result.extra, "not in the official leaderboard and left out"),
            ):
                if names:
                    notes[f"{counted(len(names), 'run')} {what} ({some_of(names)})"] += 1
            notes.update(result.notes)
            for one in result.coefficients:
                if one.value is None:
                    lacking.setdefault(f"undefined: {one.reason}", []).append(one.name)
                elif one.interval is not None and one.interval.low is None:
                    lacking.setdefault(f"without an interval: {one.interval.reason}", []).append(one.name)
            if result.noise_free is not None and result.noise_free.estimate is None and result.noise_free.reason:
                notes[f"{result.measure}: no tau without noise: {result.noise_free.reason}"] += 1
            notes.update(f"{', '.join(names_of)} {what}" for what, names_of in lacking.items())
        said = [
            Note(f"{path}: {column.name} is read as ranks, 1 best", (path,), False)
            for (path, _), column in zip(self.results, self.columns, strict=True)
            if column.ranks
        ]
        if self.official.ranks and self.asked.official_ranks is None:
            text = f"{self.official.name}: read as ranks, 1 best"
            said.append(Note(text, (self.official.name,), False, ("official_ranks",)))
        said += [Note(f"{text} (in {count} leaderboards)" if count > 1 else text) for text, count in notes.items()]
        for column in (self.official, *self.columns):
            name, means = column.name, column.means
            counts = {run: len(queries) for run, queries in column.queries.items()}
            if len(means) > 4 and not column.ranks and sorted(means.values()) == list(range(1, len(means) + 1)):
                text = f"{name} has the numbers 1 to {len(means)}, of which 1 counts as the worst: are these ranks?"
                said.append(Note(text, (name,)))
            if len(means) > 1 and means == self.official.means and column is not self.official:
                said.append(Note(f"{name}: all scores are the official ones; is it that board itself?", (), False))
            if len(set(counts.values())) > 1:
                least = min(counts, key=counts.__getitem__)
                text = f"{name}: run {least} has {counts[least]} queries, others up to {max(counts.values())}"
                said.append(Note(text, (least,), False))
        return [*said, *dict.fromkeys(note for cell in self.grid for note in cell.notes)]

    def plot(self, path: str | os.PathLike[str] | None = None) -> Figure:
        """Draws each column, or each cell of a grid, against the official one, on a page of its own.

        A run is a named point; with scores by query on both sides there is also a small point a query and run.

        Args:
            path: the figure to write (none, where it is left out): .pdf, .svg or .png.

        Returns:
            the figure, which a notebook shows.

        Raises:
            InputError: there is no leaderboard to draw, or there are several official columns.
            MissingExtraError: matplotlib is not installed.
        """
        from rubric_measures.analysis.plots import save_figures

        if len({result.official for _, result in self.results}) > 1:
            raise InputError("a figure has one official column; choose it", settings=("official_measure",))
        pages = {
            column.name if self.one_file else f"{source}: {column.name}": column
            for (source, _), column in zip(self.results, self.columns, strict=True)
        } | {f"{one.llm} {one.prompt_class}: {one.measure}": one.scores for one in self.grid if one.scores}
        if not pages:
            raise InputError("no leaderboard has scores to draw", settings=("plot",))
        return save_figures((self._picture(name, column) for name, column in pages.items()), path)

    def _picture(self, name: str, column: RunScores) -> Figure:
        from rubric_measures.analysis.plots import plot_scatter

        sides = {f"official {self.official.name}": self.official, name: column}
        runs = sorted(self.official.means.keys() & column.means.keys())
        of_queries = [[one.queries.get(run, {}) for run in runs] for one in sides.values()]
        x, y = [[one.means[run] for run in runs] for one in sides.values()]
        if all(map(any, of_queries)):
            x, y = np.split(score_table([*of_queries[0], *of_queries[1]])[0], 2, axis=1)  # type: ignore[assignment]
        first, second = (f"{label}{' (ranks, negated)' * one.ranks}" for label, one in sides.items())
        errors = standard_errors(self.official), standard_errors(column)
        return plot_scatter(runs, x, y, (first, second), errors)


def correlate(
    official: Scores,
    *others: Scores,
    measures: str | Sequence[str] | None = None,
    official_measure: str | None = None,
    coefficients: Sequence[str] | None = None,
    official_ranks: bool | None = None,
    compat: Literal["workbench"] | None = None,
    draws: Draws = USUAL_DRAWS,
    bank: Bank | None = None,
    grader: str | Grader | None = None,
    on_failed: OnFailed | None = None,
    notes: bool = True,
) -> Correlations:
    """Rank correlation of leaderboards with the official one, joined on their runs.

    >>> import rubric_measures
    >>> from rubric_measures import Draws
    >>> found = rubric_measures.correlate({"a": 3, "b": 2, "c": 1}, {"a": 0.9, "b": 0.2, "c": 0.5}, draws=Draws(0))
    >>> round(found.found[0].value("kendall"), 2)
    0.33

    Args:
        official: the official leaderboard: a file of any form that we read, a board, or run -> score.
        others: the same; or a table of grades that says which runs rank what, which is scored; or graded records (a
            file, or what `load` gives of it), of which every grade set is scored by every measure: a grid. None:
            `official` has official measures beside ours, as `score` makes it with qrels; ours are correlated with them.
        measures: the columns to correlate; all by default. Those of a grid that name no level are at all levels of each
            grade set's scale.
        official_measure: the official column, where there are several. Without it each measure is correlated with the
            one of its own name (`RubricQrels(measure='nDCG@10')` with `nDCG@10`).
        coefficients: `kendall`, `spearman`, `pearson`, `tau_ap_b`, `tau_gap`, `rbo`, `max_rank_drop`, …, also of the
            official top k (`kendall@15`). Of a grid the best cells by the first one are marked.
        official_ranks: whether the official numbers are ranks, 1 best; by default the column's name tells.
        compat: `workbench`: a missing run is an error, and a grid scores as that program does.
        draws: of the intervals; no rounds for none.
        bank: the test bank of a grid.
        grader: whose grades make a grid: a name, or `model=…,prompt=…,scale=0-5:4`; all by default.
        on_failed: see `load`.
        notes: log what the numbers leave out, see `Correlations.notes`.

    Raises:
        InputError: there is nothing to correlate with, or several official columns and no choice: none is named, and a
            measure has none of its own.
        UnknownNameError: there is no such column or coefficient.
    """
    chosen = grader_of(grader)
    given = (measures, official_measure, coefficients, official_ranks, compat)
    about = AskedCorrelation(*given, draws, on_failed, None if chosen is None else str(chosen))
    wanted = [measures] if isinstance(measures, str) else measures
    side = read_scores(official, "official", official_ranks)
    asked = wanted
    if not others:
        side, wanted = _alone(official, side, wanted)
        others = (official,)
    called, more = [name_of_scores(other) for other in others], {"bank": bank, "grader": chosen, "on_failed": on_failed}
    opened = [_opened(other, **more) for other in others]
    of_grid = [isinstance(one, RecordGrades) for one in opened]
    idle = [name for name, value in more.items() if value is not None]
    if idle and all(one is other and not is_grid for one, other, is_grid in zip(opened, others, of_grid, strict=True)):
        text = f"{' and '.join(called)}: scores of runs, and {', '.join(idle)} is of a grid of graded records"
        raise InputError(f"{text}; leave it out", settings=idle)
    names = tuple(coefficients or DEFAULT_COEFFICIENTS)
    is_paired = official_measure is None and not any(of_grid) and len(side.fitting(None, asked)) > 1
    column = side.only(side.columns[:1] if is_paired else side.fitting(official_measure, asked))
    results: list[tuple[str, LeaderboardCorrelation]] = []
    columns: list[RunScores] = []
    grid: list[GridCell] = []
    asked_queries = {query for values in column.queries.values() for query in values}
    for other, name in zip(opened, called, strict=True):
        if isinstance(other, RecordGrades):
            with naming(name):
                asked_of_grid = parse_measures(wanted or GRID_MEASURES[: 2 if compat == "workbench" else None])
                grid += correlate_grid(other, column, rubric_measures_of(asked_of_grid), names, draws, compat)
                say(of_wrapped(asked_of_grid))
            continue
        if isinstance(other, Grades):
            other = _scored(other, name, wanted)
        theirs = read_scores(other, queries=asked_queries)
        # Numbers without a name are by whatever is asked for.
        chosen_ones = theirs.columns if theirs.is_unnamed else wanted or theirs.columns
        for scores in (theirs.take(theirs.named(one)) for one in chosen_ones):
            columns.append(scores)
            inner = [one for one in inner_names(scores.name) if one in side.columns]
            like = columns_named(scores.name, side.columns) or inner
            own = side.only(like, f", and none for {scores.name}") if is_paired else column
            with naming(name):
                found = correlate_leaderboards(own, scores, names, draws, strict=compat is not None)
            results.append((name, found))
    found_of = (column, name_of_scores(official), results, grid, columns)
    made = Correlations(*found_of, names, about, len(others) == 1)
    if notes:
        say(made.notes)
    return made


def _opened(scores: Scores, **more: Any) -> Any:
    """Graded records, and a table of grades, as grades; all else as it is."""
    if are_rows(scores):
        is_graded = GRADES.is_header(list(map(str, columns_of(scores))))
    else:
        is_named = isinstance(scores, str | os.PathLike) and scores != "-"
        is_graded = is_named and content_of(os.fspath(scores)) in ("records", "grades")  # type: ignore[arg-type]
    return load(scores, **more) if is_graded else scores


def _scored(known: Grades, name: str, measures: Sequence[str] | None) -> Leaderboard:
    """The board of a table of grades that says which runs rank what."""
    if not isinstance(known, TableGrades):
        text = "is a table of grades that says no runs; give it to score with run files, or a leaderboard"
        raise InputError(f"{name}: {text}")
    return score(known, measures=measures or ("nDCG@10" if are_labels(known) else "RubricCover@20"), notes=False)


def _alone(board: Scores, side: AnyScores, wanted: Sequence[str] | None) -> tuple[AnyScores, Sequence[str]]:
    """The official columns of one leaderboard, which stand beside ours, and ours."""
    if hasattr(board, "read") or board == "-":
        raise InputError(f"{side.name}: is read twice; give a file, or name a leaderboard to correlate with it")
    official = [name for name in side.columns if is_standard(name)]
    asked = side.columns if wanted is None else [*map(side.named, wanted)]
    ours = [name for name in asked if name not in official]
    if not official or not ours:
        problem = "has no official measures (such as nDCG@10) beside ours; name a leaderboard to correlate with it, or "
        problem += "score with qrels, too"
        if official and len(official) < len(side.columns):
            others = (name for name in side.columns if name not in official)
            problem = f"{', '.join(asked)}: official measures alone; name one of ours: {'|'.join(others)}"
        raise InputError(f"{side.name}: {problem}", settings=("measures",) * (wanted is not None))
    return replace(side, columns=official), ours


_T = TypeVar("_T")


_Cells = dict[Column | str, Callable[[_T], Cell]]


def _coefficient_cells(
    name: str, of: Callable[[_T], Coefficient | None], is_best: Callable[[_T], bool] = lambda _: False
) -> _Cells[_T]:
    """The columns of a coefficient: its value with its interval, and for programs p."""

    def shown(row: _T) -> Cell:
        one = of(row)
        found = None if one is None else Ranged(one.value, *one.ends)
        return Marked(found) if found is not None and is_best(row) else found

    return {
        Column(name, is_ranged=True): shown,
        Column(f"p:{name}", only="programs"): lambda row: None if (one := of(row)) is None else one.p_value,
    }


def _boards(results: Sequence[tuple[str, LeaderboardCorrelation]], coefficients: Sequence[str]) -> Table:
    found = [one for _, one in results]
    # A row is its file and what was found.
    cells: _Cells[tuple[str, LeaderboardCorrelation]] = {}
    if len({path for path, _ in results}) > 1:
        cells["leaderboard"] = lambda row: row[0]
    if len({one.official for one in found}) > 1:
        cells["official"] = lambda row: row[1].official
    cells |= {"measure": lambda row: row[1].measure, "runs": lambda row: len(row[1].runs)}
    notes = []
    if any(one.noise_free is not None for one in found):
        cells[Column("kendall_noise_free", is_ranged=True)] = lambda row: ranged(row[1].noise_free)
        notes.append(
            "kendall_noise_free: the tau that ever more queries would lead to; that of the means has their noise"
        )
    for place, name in enumerate(coefficients):
        cells |= _coefficient_cells(name, partial(lambda place, row: row[1].coefficients[place], place))
    if any(one.query_kendall is not None for one in found):
        cells[Column("query_kendall", is_ranged=True)] = lambda row: ranged(row[1].query_kendall)
        cells[Column("pooled_kendall", is_ranged=True)] = lambda row: ranged(row[1].pooled_kendall)
    # By simulation, see benchmarks/README.md.
    narrow = " (of 20 runs or more these may hold only 84 to 89 %)" * any(len(one.runs) >= 20 for one in found)
    drawn = [each for each in found if any(one.resampled and one.interval is not None for one in each.coefficients)]
    if drawn:
        of = "the same queries of both sides are drawn again"
        if any(each.query_kendall is None for each in drawn):
            of = "the leaderboard's queries are drawn again, and official scores are taken as given"
        notes.append(f"intervals of coefficients: {of}{narrow}")
    return declared(results, cells, notes=notes)


def _grid(grid: Sequence[GridCell], coefficients: Sequence[str], best: frozenset[int]) -> Table:
    cells: _Cells[tuple[int, GridCell]] = {
        name: partial(lambda name, row: getattr(row[1], name), name)
        for name in ("measure", "llm", "prompt_class", "kind")
    }
    cells["runs"] = lambda row: 0 if row[1].result is None else len(row[1].result.runs)
    for place, name in enumerate(coefficients):
        of = partial(lambda place, row: row[1].result and row[1].result.coefficients[place], place)
        cells |= _coefficient_cells(name, of, (lambda row: row[0] in best) if not place else lambda _: False)
    cells[Column("best", only="programs")] = lambda row: "*" if row[0] in best else ""
    notes = ["the best of many flatters: it was picked on the queries that it is shown on"] * (len(grid) > 1)
    return declared(enumerate(grid), cells, notes=notes)
