"""Boards against boards, runs against runs, and how many queries are needed.

Comparing runs by their per-query scores: files, boards or numbers, put together and tested in pairs.

Correlating leaderboards with the official one.

How many queries an experiment needs, from the per-query scores of a board that is there.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from statistics import fmean
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from msgspec import Struct, to_builtins
from msgspec.structs import asdict

from rubric_measures.analysis.resampling import USUAL_DRAWS, USUAL_TESTS, Draws, Tests
from rubric_measures.base.errors import InputError, RubricMeasuresError, UnknownNameError, counted, naming, warn
from rubric_measures.base.files import path_name, peek_head, read_text
from rubric_measures.base.json_text import parse_json
from rubric_measures.base.tables import Cell, Report, Reported, Table, columns, plain
from rubric_measures.boards.board import BELOW, Leaderboard
from rubric_measures.boards.scoring import is_summed
from rubric_measures.corpora.loading import (
    Bank,
    File,
    RecordGrades,
    Rows,
    TableGrades,
    are_labels,
    are_rows,
    columns_of,
    content_of,
    file_path,
    grader_of,
    load,
    rankings_for,
    refuse_choice,
)
from rubric_measures.formats.grade_tables import GRADES
from rubric_measures.measures.findings import Note, of_wrapped, say
from rubric_measures.measures.grades import Grades, OnFailed
from rubric_measures.measures.measure import (
    column_named,
    columns_named,
    inner_names,
    is_standard,
    parse_measures,
    rubric_measures_of,
)
from rubric_measures.types.entities import BOARD_FORMAT

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from rubric_measures.analysis.calibration import PredictionPowered
    from rubric_measures.analysis.comparison import Comparison, Design
    from rubric_measures.analysis.leaderboards import GridCell, LeaderboardCorrelation, Pick, RunScores
    from rubric_measures.analysis.resampling import Interval
    from rubric_measures.formats.base import Form
    from rubric_measures.measures.grade_sets import Grader


# Numbers that name no measure are by whatever measure is compared.
_ANY = ""
_Values = Mapping[str, Mapping[str, float]]
QueryScores: TypeAlias = "File | Rows | Leaderboard | _Values"
"""Per-query scores: a leaderboard of any form that has them (a file, a frame), a board, or run -> query -> score."""


class AskedComparison(Struct, frozen=True, forbid_unknown_fields=True):
    """What was asked of `compare`: its arguments but the scores."""

    measures: str | Sequence[str] | None = None
    runs: Sequence[str] | None = None
    baseline: str | None = None
    tests: Tests = USUAL_TESTS
    form: str | None = None


@dataclass(frozen=True)
class Comparisons(Reported, Mapping[str, "Comparison"]):
    """Runs compared by each measure: measure -> `Comparison` (means, pairs with intervals, groups of equals).

    Attributes:
        by_measure: the comparisons.
        left_out: measures by which fewer than two runs have a score, or the baseline has none.
        asked: what was asked for; with it they are made again.
        scores: measure -> run -> query -> score.
        powered: measure -> run -> its mean as assessors correct it, where they graded some queries.
    """

    by_measure: Mapping[str, Comparison]
    left_out: Sequence[str] = ()
    asked: AskedComparison = field(default_factory=AskedComparison, compare=False)
    scores: Mapping[str, _Values] = field(default_factory=dict, compare=False, repr=False)
    powered: Mapping[str, Mapping[str, PredictionPowered]] = field(default_factory=dict)

    def __getitem__(self, measure: str) -> Comparison:
        return self.by_measure[measure]

    def __iter__(self) -> Iterator[str]:
        return iter(self.by_measure)

    def __len__(self) -> int:
        return len(self.by_measure)

    def __repr__(self) -> str:
        return f"<Comparisons by {', '.join(self.by_measure)}>"

    def report(self, places: int = 4) -> Report:
        """What `base.tables.render` shows in any form: what is concluded, and each run against the best or baseline.

        Args:
            places: decimal places; -1 prints all digits.
        """
        from rubric_measures.analysis.board_reports import comparison_report

        return comparison_report(self.by_measure, self.intervals, self.powered, places, to_builtins(self.asked))

    @cached_property
    def intervals(self) -> Mapping[str, Mapping[str, Interval]]:
        """Measure -> run -> the interval of its mean over the queries that all runs have."""
        from rubric_measures.analysis.board_reports import mean_intervals

        shown = {
            name: {run: {query: self.scores[name][run][query] for query in one.queries} for run in one.means}
            for name, one in self.by_measure.items()
            if name in self.scores
        }
        return mean_intervals(shown, self.asked.tests)

    @property
    def is_complete(self) -> bool:
        """Whether all runs have all queries, and all tests a p-value."""
        return not self.left_out and not any(
            one.left_out or one.unscored or any(pair.p_adjusted is None for pair in one.pairs)
            for one in self.by_measure.values()
        )

    def log_notes(self) -> None:
        """Logs what the tables leave out: queries that some run lacks, tests without a p-value."""
        for one in self.by_measure.values():
            for such in one.left_out[:1]:
                text = "%d queries that some run lacks: left out of the means (such as %s), which are over %d; each "
                warn(text + "test is over the queries that both runs have", len(one.left_out), such, len(one.queries))
            for reason, count in Counter(pair.test.reason for pair in one.pairs if pair.p_adjusted is None).items():
                warn("no p-value of %d pairs: %s", count, reason or "so few queries or rounds decide nothing")

    def plot(self, path: str | os.PathLike[str] | None = None) -> Figure:
        """Draws the ranking of the runs with the groups that cannot be told apart, or the differences to the baseline.

        Args:
            path: the figure to write (none, where it is left out): .pdf, .svg or .png; further
                measures are `NAME-2.svg` and so on.

        Returns:
            the figure, which a notebook shows.

        Raises:
            InputError: another ending, or the file cannot be written.
            MissingExtraError: matplotlib is not installed.
        """
        from rubric_measures.pages.plots import plot_critical_difference, plot_differences, save_figures

        return save_figures(
            (
                plot_critical_difference(one) if one.baseline is None else plot_differences(one, self._each_query(one))
                for one in self.by_measure.values()
            ),
            path,
        )

    def _each_query(self, comparison: Comparison) -> dict[str, list[float]]:
        """Each run minus the baseline, query by query."""
        scores = self.scores[comparison.measure]
        base = scores[str(comparison.baseline)]
        return {
            run: [value - base[query] for query, value in scores[run].items() if query in base]
            for run in comparison.means
            if run != comparison.baseline
        }


def compare(
    *scores: QueryScores,
    measures: str | Sequence[str] | None = None,
    runs: Sequence[str] | None = None,
    baseline: str | None = None,
    tests: Tests = USUAL_TESTS,
    assessor_scores: QueryScores | None = None,
    form: Form | None = None,
) -> Comparisons:
    """Means with their intervals, and paired tests between runs over the queries that both have; `print` shows them.

    >>> import rubric_measures
    >>> ours, theirs = {"q1": 0.9, "q2": 0.6, "q3": 0.8}, {"q1": 0.5, "q2": 0.4, "q3": 0.2}
    >>> found = rubric_measures.compare({"ours": ours, "theirs": theirs}, baseline="theirs")
    >>> round(found["score"].pairs[0].test.mean_difference, 2)
    0.4

    Args:
        scores: boards, or other files of per-query scores, which are put together; each gives other runs.
        measures: the measures to compare by; all by default.
        runs: compare these runs only (and the baseline).
        baseline: compare every run with this one; by default all pairs are compared, and runs that cannot be told apart
            are groups.
        tests: correction, level, smallest difference that matters, and draws.
        assessor_scores: scores of the same runs by assessors' grades on some queries: each mean as these correct it
            (prediction-powered), beside the sample alone and the mean that takes the model for the truth.
        form: the form of the files, where it cannot be seen.

    Raises:
        UnknownNameError: there is no such run or measure.
        InputError: no per-query scores; a run comes twice; fewer than two of several runs have a score, or they share
            no query.
    """
    from rubric_measures.analysis.board_reports import powered_means
    from rubric_measures.analysis.comparison import compare_runs

    found = {name: _wanted(values, runs, baseline) for name, values in per_query_scores(scores, form, measures).items()}
    # Where grades were asked for some measures only, a board has others by which nobody can be compared.
    lacking = [
        name
        for name, values in found.items()
        if sum(map(bool, values.values())) < min(2, len(values)) or values.get(baseline or "", True) == {}
    ]
    left_out = lacking if measures is None and len(lacking) < len(found) else []
    warn("not compared by %s: too few runs have a score, or the baseline has none", ", ".join(left_out) or 0)
    kept = {name: values for name, values in found.items() if name not in left_out}
    with naming(*map(_name, scores)):
        compared = {name: compare_runs(values, name, baseline=baseline, tests=tests) for name, values in kept.items()}
    powered: Mapping[str, Mapping[str, PredictionPowered]] = {}
    if assessor_scores is not None:
        queries = {query for of in kept.values() for values in of.values() for query in values}
        names = {"queries": queries, "runs": {run for of in kept.values() for run in of}, "measures": list(kept)}
        assessed = per_query_scores([assessor_scores], form, None, names)
        with naming(_name(assessor_scores)):
            powered = powered_means(kept, assessed, tests.level)
    return Comparisons(compared, left_out, AskedComparison(measures, runs, baseline, tests, form), kept, powered)


def per_query_scores(
    scores: Sequence[QueryScores],
    form: Form | None,
    measures: str | Sequence[str] | None,
    told: Mapping[str, Any] = MappingProxyType({}),
) -> dict[str, _Values]:
    """Measure -> run -> query -> score of all sources together; the measures that are named, or all.

    What is `told` (queries, runs, measures) tells the columns of files that do not say which they are.

    Raises:
        UnknownNameError: there is no such measure.
        InputError: no per-query scores, or a run comes twice; scores are sums over queries, or of facets apart.
    """
    for one in scores:
        _refuse_facets(one)
    sources = [(_name(one), _read(one, form, ranks=False, **told).by_query) for one in scores]
    named = dict.fromkeys(name for _, source in sources for name in source)
    known = [name for name in named if name != _ANY] or ["score"] * (_ANY in named)
    if not known:
        names = ", ".join(name for name, _ in sources) or "name scores"
        raise InputError(f"{names}: no per-query scores; print them with -q, or a board as JSON")
    asked = [measures] if isinstance(measures, str) else measures
    chosen = dict.fromkeys(_column(one, known) for one in asked or known)
    sums = [name for name in chosen if _is_summed(name)]
    if sums and (asked is not None or len(sums) == len(chosen)):
        problem = f"{sums[0]} is a sum over queries, and this is about means; leave it out"
        raise InputError(problem, settings=("measures",))
    warn("not compared by %s: a sum over queries is no mean", ", ".join(sums) or 0)
    return {name: _together(sources, name) for name in chosen if name not in sums}


def _is_summed(name: str) -> bool:
    """Whether scores of this name are put together by a sum, as counts are."""
    try:
        return any(map(is_summed, parse_measures(name)))
    except RubricMeasuresError:
        return False


def _refuse_facets(scores: QueryScores) -> None:
    """Refuses a board of facets apart: those of one query hang together, and tests take queries for independent."""
    is_board = isinstance(scores, Leaderboard)
    settings: Any = scores.signature.settings if isinstance(scores, Leaderboard) else {}
    if isinstance(scores, str | os.PathLike) and scores != "-" and BOARD_FORMAT.encode() in peek_head(scores):
        content = parse_json(read_text(scores), path=path_name(scores))
        settings = content.get("settings") if isinstance(content, dict) else {}
        is_board = isinstance(settings, dict)
    if is_board and settings.get("unit") == "per facet":
        problem = "has the scores of facets, and those of one query hang together; compare boards of whole queries"
        raise InputError(f"{_name(scores)}: {problem}")


def _column(name: str, known: Sequence[str]) -> str:
    try:
        return column_named(name, known)
    except UnknownNameError as error:
        error.settings = ("measures",)
        raise


def _together(sources: Sequence[tuple[str, Mapping[str, _Values]]], measure: str) -> dict[str, Mapping[str, float]]:
    """Run -> query -> score of all sources."""
    found: dict[str, Mapping[str, float]] = {}
    for name, source in sources:
        for run_id, values in source.get(measure, source.get(_ANY, {})).items():
            if run_id in found:
                raise InputError(f"{name}: run {run_id!r} is in another file, too; give each run once")
            if run_id not in BELOW:
                found[run_id] = values
    return found


def _wanted(scores: Mapping[str, Mapping[str, float]], runs: Sequence[str] | None, baseline: str | None) -> _Values:
    if runs is None:
        return scores
    wanted = dict.fromkeys([*runs, *([baseline] if baseline else [])])
    for run_id in wanted:
        if run_id not in scores:
            raise UnknownNameError("run", run_id, scores)
    return {run_id: scores[run_id] for run_id in wanted}


GRID_MEASURES = ("RubricCover@20", "nRubricCover@20", "RubricQrels(measure='P@20')", "RubricQrels(measure='nDCG@10')")
Scores: TypeAlias = "File | Rows | Leaderboard | RecordGrades | Mapping[str, float]"
"""Scores of runs: a leaderboard (a file, a frame), a board, or run -> score; graded records (every grade set and
measure)."""


class AskedCorrelation(Struct, frozen=True, forbid_unknown_fields=True):
    """What was asked of `correlate`: its arguments but the scores and the bank."""

    measures: str | Sequence[str] | None = None
    official_measure: str | None = None
    coefficients: Sequence[str] | None = None
    form: str | None = None
    official_ranks: bool | None = None
    compat: Literal["workbench"] | None = None
    draws: Draws = USUAL_DRAWS
    on_failed: OnFailed | None = None
    grader: str | None = None


@dataclass(frozen=True)
class Correlations(Reported):
    """Leaderboards against the official one; `print` shows them.

    Attributes:
        official: the official column; the first where each measure has its own, see `LeaderboardCorrelation.official`.
        official_path: where it comes from.
        results: (where it comes from, what was found) of each leaderboard's column.
        grid: a cell a grade set and measure of graded records.
        columns: the scores behind `results`, in their order.
        errors: label of a column -> run -> standard error.
        coefficients: what was computed.
        asked: what was asked for; with it they are made again.
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
    asked: AskedCorrelation
    one_file: bool = field(default=True, repr=False)
    groups: Sequence[Sequence[int]] | None = None

    def __repr__(self) -> str:
        return (
            f"<Correlations of {counted(len(self.results) + len(self.grid), 'leaderboard')} with {self.official.name}>"
        )

    def report(self, places: int = 4) -> Report:
        """What `base.tables.render` shows in any form, with so many decimal places (-1: all digits)."""
        from rubric_measures.analysis.leaderboards import correlation_report

        pick = self.pick() if len(self.grid) > 1 and self.asked.draws.rounds else None
        columns, asked = (self.official, self.official_path, self.results, self.grid), to_builtins(self.asked)
        return correlation_report(*columns, self.coefficients, places, asked, pick, self.groups)

    def pick(self) -> Pick:
        """By how much the best cell of the grid flatters: picked on half of the queries, looked at on the other."""
        from rubric_measures.analysis.leaderboards import pick_of_grid

        return pick_of_grid(self.official, self.grid, self.coefficients[0], seed=self.asked.draws.seed)

    @property
    def found(self) -> list[LeaderboardCorrelation]:
        """Every correlation, of leaderboards and of the grid."""
        return [*(one for _, one in self.results), *(cell.result for cell in self.grid if cell.result is not None)]

    @property
    def is_complete(self) -> bool:
        """Whether no official run is missing, and every coefficient is defined."""
        return not any(one.missing or any(part.value is None for part in one.coefficients) for one in self.found)

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
                    shown = ", ".join(names[:5]) + (", …" if len(names) > 5 else "")
                    notes[f"{counted(len(names), 'run')} {what} ({shown})"] += 1
            notes.update(result.notes)
            for one in result.coefficients:
                if one.value is None:
                    lacking.setdefault(f"undefined: {one.reason}", []).append(one.name)
                elif one.interval is not None and one.interval.low is None:
                    lacking.setdefault(f"without an interval: {one.interval.reason}", []).append(one.name)
            if result.noise_free is not None and result.noise_free.expected is None and result.noise_free.reason:
                notes[f"{result.name}: no tau without noise: {result.noise_free.reason}"] += 1
            reasons = sorted(lacking.items(), key=lambda item: item[0].startswith("without"))
            notes.update(f"{', '.join(names_of)} {what}" for what, names_of in reasons)
        said = [
            Note(f"{path}: {column.name} is read as ranks, 1 best", (path,), False)
            for (path, _), column in zip(self.results, self.columns, strict=True)
            if column.ranks
        ]
        if self.official.ranks and self.asked.official_ranks is None:
            text = f"{self.official.name}: read as ranks, 1 best"
            said.append(Note(text, (self.official.name,), False, ("official_ranks",)))
        if any(result.worst_drop for result in self.found):
            worst = max(self.found, key=lambda result: result.worst_drop or 0.0)
            text = f"the largest rank drop is {worst.worst_drop:g}, of run {worst.worst_run} by {worst.name}"
            said.append(Note(text, (str(worst.worst_run),), False))
        said += [Note(f"{text} (in {count} leaderboards)" if count > 1 else text) for text, count in notes.items()]
        for column in self.columns:
            name, means = column.name, column.means
            counts = {run: len(queries) for run, queries in column.queries.items()}
            if len(means) > 4 and column is not self.official and self.official.means == means:
                text = f"{name} has the official score of each run: is it the official leaderboard?"
                said.append(Note(text, (name,)))
            if len(means) > 4 and not column.ranks and sorted(means.values()) == list(range(1, len(means) + 1)):
                text = f"{name} has the numbers 1 to {len(means)}, of which 1 counts as the worst: are these ranks?"
                said.append(Note(text, (name,)))
            if len(set(counts.values())) > 1:
                least = min(counts, key=counts.__getitem__)
                text = f"{name}: run {least} has {counts[least]} queries, others up to {max(counts.values())}"
                said.append(Note(text, (least,), False))
        return [*said, *dict.fromkeys(note for cell in self.grid for note in cell.notes)]

    def plot(self, path: str | os.PathLike[str] | None = None) -> Figure:
        """Draws one column against the official one, or the ranks of several against official ranks.

        One column is drawn as a named point a run; with scores by query on both sides also a small point a query and
        run. Several, a grid, and official ranks are a panel a leaderboard, with τ and the names of the runs that move
        most, 12 on a page.

        Args:
            path: the figure to write (none, where it is left out): .pdf, .svg or .png.

        Returns:
            the figure, which a notebook shows.

        Raises:
            InputError: there is no leaderboard to draw, or there are several official columns.
            MissingExtraError: matplotlib is not installed.
        """
        from rubric_measures.pages.plots import plot_ranks, plot_scatter, save_figures

        official = self.official
        if len({result.official for _, result in self.results}) > 1:
            raise InputError("a figure has one official column; choose it", settings=("official_measure",))
        named = {
            column.name if self.one_file else f"{source}: {column.name}": column
            for (source, _), column in zip(self.results, self.columns, strict=True)
        }
        cells = {f"{one.llm} {one.prompt_class}: {one.measure}": one.scores for one in self.grid if one.scores}
        others = [(name, one.means) for name, one in {**named, **cells}.items()]
        if not others:
            raise InputError("no leaderboard has scores to draw", settings=("plot",))
        first = f"official {official.name}"
        if len(others) > 1 or official.ranks or cells:
            queries = len({query for values in official.queries.values() for query in values})
            pages = [dict(others[start : start + 12]) for start in range(0, len(others), 12)]
            return save_figures((plot_ranks(official.means, page, first, queries) for page in pages), path)
        name, column = next(iter(named.items()))
        runs = sorted(official.means.keys() & column.means.keys())
        sides = [[one.means[run] for run in runs] for one in (official, column)]
        tables = [self._table(one, runs) for one in (official, column)]
        x, y = tables if all(tables) else sides
        errors = (self.errors[first], next(found for label, found in self.errors.items() if label != first))
        return save_figures([plot_scatter(runs, x, y, (first, name), errors)], path)

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
            grade set's scale, or, where it is not known, at the grades that occur.
        official_measure: the official column, where there are several. Without it each measure is correlated with the
            one of its own name (`RubricQrels(measure='nDCG@10')` with `nDCG@10`).
        coefficients: `kendall`, `spearman`, `pearson`, `tau_ap_b`, `tau_gap`, `rbo`, `max_rank_drop`, …, also of the
            official top k (`kendall@15`). Of a grid the best cells by the first one are marked.
        form: the form of all files, where their content does not show it.
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
    from rubric_measures.analysis.leaderboards import (
        DEFAULT_COEFFICIENTS,
        correlate_grid,
        correlate_leaderboards,
        equal_boards,
    )

    chosen = grader_of(grader)
    given = (measures, official_measure, coefficients, form, official_ranks, compat)
    about = AskedCorrelation(*given, draws, on_failed, None if chosen is None else str(chosen))
    wanted = [measures] if isinstance(measures, str) else measures
    side = _read(official, form, "official", official_ranks)
    asked = wanted
    if not others:
        side, wanted = _alone(official, side, wanted)
        others = (official,)
    called, more = [_name(other) for other in others], {"bank": bank, "grader": chosen, "on_failed": on_failed}
    opened = [_opened(other, **more) for other in others]
    of_grid = [isinstance(one, RecordGrades) for one in opened]
    if not any(of_grid) and all(one is other for one, other in zip(opened, others, strict=True)):
        refuse_choice(" and ".join(called), chosen, (), "scores of runs")
        if idle := [name for name, value in more.items() if value is not None]:
            text = f"{' and '.join(called)}: scores of runs, and {', '.join(idle)} is of a grid of graded records"
            raise InputError(f"{text}; leave it out", settings=idle)
    names = tuple(coefficients or DEFAULT_COEFFICIENTS)
    is_paired = official_measure is None and not any(of_grid) and len(side.fitting(None, asked)) > 1
    column = side.only(side.columns[:1] if is_paired else side.fitting(official_measure, asked))
    results: list[tuple[str, LeaderboardCorrelation]] = []
    columns: list[RunScores] = []
    spreads = {f"official {column.name}": side.errors(column)}
    grid: list[GridCell] = []
    known: Any = {"queries": {query for values in column.queries.values() for query in values}, "runs": column.means}
    for other, name in zip(opened, called, strict=True):
        if isinstance(other, RecordGrades) and isinstance(path := other.held, str):
            with naming(path):
                asked_of_grid = parse_measures(wanted or GRID_MEASURES[: 2 if compat == "workbench" else None])
                grid += correlate_grid(
                    path,
                    column,
                    rubric_measures_of(asked_of_grid),
                    coefficients=names,
                    compat=compat,
                    bank=other.bank,
                    wanted=other.wanted,
                    on_failed=other.on_failed_given,
                    draws=draws,
                )
                say(of_wrapped(asked_of_grid))
            continue
        if isinstance(other, Grades):
            other = _scored(other, name, wanted)
        theirs = _read(other, form, **known, measures=wanted or ())
        # Numbers without a name are by whatever is asked for.
        chosen_ones = theirs.columns if theirs.is_unnamed else wanted or theirs.columns
        for scores in (theirs.take(theirs.named(one)) for one in chosen_ones):
            label = scores.name if len(others) == 1 else f"{name}: {scores.name}"
            columns.append(scores)
            spreads[label] = theirs.errors(scores)
            inner = [one for one in inner_names(scores.name) if one in side.columns]
            like = columns_named(scores.name, side.columns) or inner
            own = side.only(like, f", and none for {scores.name}") if is_paired else column
            with naming(name):
                found = correlate_leaderboards(own, scores, names, draws, strict=compat is not None)
            results.append((name, found))
    together = None if is_paired else equal_boards(column, columns, names[0], draws)
    found_of = (column, _name(official), results, grid, columns, spreads)
    made = Correlations(*found_of, names, about, len(others) == 1, together)
    if notes:
        say(made.notes)
    return made


def _name(scores: Scores | QueryScores) -> str:
    """What messages call scores."""
    if isinstance(scores, str | os.PathLike):
        return path_name(scores)
    name = getattr(scores, "name", None)
    kind = "the board" if isinstance(scores, Leaderboard) else "the table" if are_rows(scores) else "scores"
    return name if isinstance(name, str) else kind


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
    if isinstance(known, RecordGrades):
        raise InputError("a grid is of a file of graded records, not of records in memory; score them first")
    if not isinstance(known, TableGrades):
        text = "is a table of grades that says no runs; give it to score with run files, or a leaderboard"
        raise InputError(f"{name}: {text}")
    from rubric_measures.boards.scoring import score_runs

    asked = parse_measures(measures or ("nDCG@10" if are_labels(known) else "RubricCover@20"))
    runs = ((run.run_id, rankings_for(run, known)) for run in known.runs)
    return score_runs(known, runs, asked if are_labels(known) else rubric_measures_of(asked))


@dataclass(frozen=True)
class _AnyScores:
    """Scores of any form.

    Attributes:
        name: what messages call them.
        columns: the columns.
        take: name of a column -> its scores.
        errors: scores -> the standard errors that the file gives or per-query scores have.
        runs: all runs, also those without a score by some measure.
        is_unnamed: whether the numbers name no measure.
    """

    name: str
    columns: Sequence[str]
    take: Callable[[str], RunScores]
    errors: Callable[[RunScores], Mapping[str, float]] = lambda _: MappingProxyType({})
    runs: Iterable[str] = ()
    is_unnamed: bool = False

    @property
    def by_query(self) -> dict[str, _Values]:
        """Column -> run -> query -> score, of the columns that have such; `_ANY` is one without a name."""
        found = {_ANY if self.is_unnamed else name: self.take(name).queries for name in self.columns}
        return {name: {**{run: {} for run in self.runs}, **of} for name, of in found.items() if of}

    def named(self, name: str) -> str:
        """The column that a name means."""
        return column_named(name, self.columns, f"(columns of {self.name})")

    def fitting(self, name: str | None, wanted: Sequence[str] | None) -> Sequence[str]:
        """The column that is named, or the only one that is asked for; all where there are several."""
        if name is not None:
            return [self.named(name)]
        asked = list(dict.fromkeys(found for one in wanted or () for found in columns_named(one, self.columns)))
        return asked if len(asked) == 1 else self.columns

    def only(self, fitting: Sequence[str], why: str = "") -> RunScores:
        """The scores of the one column that fits."""
        if len(fitting) != 1:
            text = f"{self.name}: several columns{why}, choose one: {'|'.join(self.columns)}"
            raise InputError(text, settings=("official_measure",))
        return self.take(fitting[0])


def _read(
    scores: Scores | QueryScores, form: Form | None, kind: str = "", ranks: bool | None = None, **known: Any
) -> _AnyScores:
    """Scores of any form.

    Args:
        scores: the scores.
        form: the form of a file, where it cannot be seen.
        kind: `official` or empty.
        ranks: whether the numbers are ranks, 1 best; None where the name of the column tells.
        known: tells columns of a file that does not.
    """
    from rubric_measures.analysis.leaderboards import scores_of_board, scores_of_table, standard_errors
    from rubric_measures.formats.leaderboards import read_leaderboard

    called = f"the {kind} " if kind else "the "
    if isinstance(scores, Mapping) and not are_rows(scores):
        given = _given_scores(kind or "scores", scores)
        return _AnyScores(f"{called}scores", [given.name], lambda _: given, is_unnamed=True)
    if isinstance(scores, RecordGrades):
        raise InputError("the official scores are a leaderboard, not grades; score them first")
    if isinstance(scores, Leaderboard):
        take = partial(scores_of_board, scores)
        return _AnyScores(f"{called}board", scores.measures, take, standard_errors, scores.values)
    with file_path(scores) as path:
        table = read_leaderboard(path, form=form, **known)
    # A run with scores by another measure alone has none by this one, which is said.
    return _AnyScores(
        _name(scores),
        table.measures,
        partial(scores_of_table, table, ranks=ranks),
        lambda found: {**standard_errors(found), **table.errors(found.name)},
        (*table.run_ids, *table.unscored),
    )


def _given_scores(name: str, scores: Any) -> RunScores:
    """The scores of run -> score, or of run -> query -> score."""
    from rubric_measures.analysis.leaderboards import RunScores

    try:
        if all(isinstance(one, Mapping) for one in scores.values()):
            means = {run: fmean(of_query.values()) for run, of_query in scores.items() if of_query}
            return RunScores(name, means, scores)
        return RunScores(name, {str(run): float(score) for run, score in scores.items()})
    except (TypeError, ValueError):
        problem = f"expected run -> score, or run -> query -> score; found {scores!r:.60}"
        raise InputError(f"the {name}: {problem}") from None


def _alone(board: Scores, side: _AnyScores, wanted: Sequence[str] | None) -> tuple[_AnyScores, Sequence[str]]:
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


class AskedDesign(Struct, frozen=True):
    """What was asked of `power`: how many runs an experiment will compare, and the rest of its arguments."""

    runs: int
    power: float
    tests: Tests


@dataclass(frozen=True)
class Designs(Reported):
    """Designs by each measure; `print` shows them.

    Attributes:
        designs: one a measure.
        settings: what they were computed with.
    """

    designs: Sequence[Design]
    settings: AskedDesign

    def report(self, places: int = 4) -> Report:
        """What `base.tables.render` shows in any form, with so many decimal places (-1: all digits).

        A row a measure in each table; for programs one row with everything.
        """
        said = self.settings
        wanted = " or ".join(dict.fromkeys(f"{one.smallest:g}" for one in self.designs))
        parts = [one.components for one in self.designs]
        rows: list[list[Cell]] = [[one.measure, one.deviation, one.one_pair, one.all_pairs] for one in self.designs]
        note = (
            f"queries that find a difference of {wanted} with power {said.power:g} at {said.tests.alpha:g}: "
            f"of one pair, of each pair of {said.runs} runs (Bonferroni)"
        )
        needed = Table(columns(["measure", "deviation", "one pair", "all pairs"], places), rows, notes=[note])
        rows = [
            [design.measure, one.run_count, one.query_count, *one.shares, one.reliability]
            for design, one in zip(self.designs, parts, strict=True)
        ]
        note = (
            "shares of the variance of scores; reliability: the share of the variance of the means that is of the runs"
        )
        heads = ["measure", "of runs", "of queries", "runs", "queries", "rest", "reliability"]
        variance = Table(columns(heads, places), rows, notes=[note])
        rows = [[one.measure, one.separated, one.detectable] for one in self.designs]
        note = (
            f"separated: share of pairs that differ ({said.tests.correction}); "
            "detectable: by these queries, of each pair"
        )
        told = Table(columns(["measure", "separated", "detectable"], places), rows, notes=[note])
        joined = Table(
            [*needed.columns, *variance.columns[1:], *told.columns[1:]],
            [[*a, *b[1:], *c[1:]] for a, b, c in zip(needed.rows, variance.rows, told.rows, strict=True)],
        )
        measures = [
            {**plain(one), "components": {**plain(one.components), "reliability": one.components.reliability}}
            for one in self.designs
        ]
        content = {"format": "rubric_measures power 1", **asdict(said), "measures": measures}
        return Report([needed, variance, told], [joined], lambda: plain(content))

    @property
    def is_complete(self) -> bool:
        """Whether each measure has a design."""
        return all(one.one_pair is not None for one in self.designs)

    def log_notes(self) -> None:
        """Logs queries that are left out, and where these are too few."""
        for one in self.designs:
            warn("%s: %d queries that some run lacks left out", one.measure, one.left_out)
            warn("%s: left out, as they have no score: %s", one.measure, ", ".join(one.unscored) or 0)
            if one.one_pair is None:
                text = "%s: how many queries find such a difference is not known: ten or more tell it, up to a million"
                warn(text + "; %d queries here", one.measure, one.components.query_count)


def power(
    *scores: QueryScores,
    measures: str | Sequence[str] | None = None,
    run_count: int | None = None,
    power: float = 0.8,
    tests: Tests = USUAL_TESTS,
    form: Form | None = None,
) -> Designs:
    """How many queries an experiment needs to find a difference, and what the board at hand could tell.

    >>> import rubric_measures
    >>> from rubric_measures import Tests
    >>> board = {"a": {f"q{i}": i / 10 for i in range(10)}, "b": {f"q{i}": i % 4 / 10 for i in range(10)}}
    >>> found = rubric_measures.power(board, tests=Tests(smallest=0.05)).designs[0]
    >>> found.one_pair, round(found.deviation, 2)
    (315, 0.32)

    Args:
        scores: per-query scores of a pilot, as `compare` takes them; fewer than ten queries tell no number of queries.
        measures: the measures; all by default.
        run_count: how many runs the experiment will compare; by default as many as the pilot has.
        power: the chance to find the smallest difference that matters, between 0 and 1.
        tests: of the pilot's pairs; its smallest difference is the one that the experiment shall find, and its level
            that of the experiment's tests.
        form: the form of the files, where it cannot be seen.

    Raises:
        UnknownNameError: there is no such measure.
        InputError: no per-query scores, fewer than two runs or common queries, or a number that makes no design.
    """
    from rubric_measures.analysis.comparison import design

    found = per_query_scores(scores, form, measures)
    designs = [design(values, measure, runs=run_count, power=power, tests=tests) for measure, values in found.items()]
    runs = run_count or max(one.components.run_count for one in designs)
    return Designs(designs, AskedDesign(runs, power, tests))
