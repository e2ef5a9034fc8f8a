"""What stands beside a leaderboard: intervals, comparisons, and what other readings of the runs would give.

A leaderboard with what one needs to trust it: intervals, comparisons with a baseline or among all, checks.

Comparisons of runs, and leaderboards with intervals, comparisons and checks, as reports.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from msgspec import to_builtins
from msgspec.structs import replace

from rubric_measures.analysis.calibration import PredictionPowered, prediction_powered_mean
from rubric_measures.analysis.comparison import Comparison, Pair
from rubric_measures.analysis.resampling import USUAL_DRAWS, Draws, Interval, score_table
from rubric_measures.analysis.resampling import mean_intervals as intervals_of_means
from rubric_measures.base.errors import InputError, counted, warn
from rubric_measures.base.tables import (
    Cell,
    Column,
    Ranged,
    Report,
    Table,
    columns,
    declared,
    letters,
    number,
    plain,
    ranged,
)
from rubric_measures.boards.board import (
    BELOW,
    AskedReport,
    Leaderboard,
    board_content,
    board_data,
    board_report,
    board_tables,
)
from rubric_measures.boards.scoring import LeaderboardChecks, RunCheck
from rubric_measures.formats.leaderboards import LeaderboardTable

_LOG = logging.getLogger("rubric_measures")


@dataclass(frozen=True)
class LeaderboardReport:
    """A leaderboard and what was asked for beside it.

    Attributes:
        board: the leaderboard.
        intervals: run -> measure -> interval of the mean; empty when not asked for.
        comparisons: measure -> comparison; empty when not asked for.
        checks: None when not asked for.
        powered: run -> measure -> mean from a sample of assessors' grades and the model's; empty likewise.
        settings: what was asked for: the arguments of the report.
    """

    board: Leaderboard
    intervals: Mapping[str, Mapping[str, Interval]] = field(default_factory=dict)
    comparisons: Mapping[str, Comparison] = field(default_factory=dict)
    checks: LeaderboardChecks | None = None
    powered: Mapping[str, Mapping[str, PredictionPowered]] = field(default_factory=dict)
    settings: AskedReport = field(default_factory=AskedReport)

    @property
    def is_verdict(self) -> bool:
        """Whether a smallest difference that matters was named: then each run's conclusions stand beside it."""
        return self.settings.smallest is not None


def mean_intervals(board: Leaderboard, draws: Draws = USUAL_DRAWS) -> dict[str, dict[str, Interval]]:
    """The interval of every run's mean by every measure, see `resampling.mean_intervals`; all see the same queries.

    Args:
        board: the leaderboard; queries that could not be scored take no part in a mean.
        draws: rounds, seed and level.

    Returns:
        run -> measure -> interval; `units` is the number of queries in the mean.
    """
    names = [(run, measure) for run in board.values if run not in BELOW for measure in board.measures]
    table, _ = score_table([board.values[run][measure] for run, measure in names])
    result: dict[str, dict[str, Interval]] = {}
    for (run, measure), interval in zip(names, intervals_of_means(table, draws), strict=True):
        result.setdefault(run, {})[measure] = interval
    return result


def powered_means(
    board: Leaderboard, assessors: LeaderboardTable, *, level: float = 0.95
) -> dict[str, dict[str, PredictionPowered]]:
    """Every run's mean from a few queries that assessors graded and all that the model graded (PPI++).

    Args:
        board: scores by the model's grades, on all queries.
        assessors: per-query scores of the same runs and measures by assessors' grades, on some queries. Where it has
            one measure only, that one stands for each measure of the leaderboard that has no column of its name.
        level: the nominal coverage.

    Returns:
        run -> measure -> result, for the runs that both have. Queries are the units.

    Raises:
        InputError: no run is in both, or a run has fewer than two assessed or two other queries.
    """
    result: dict[str, dict[str, PredictionPowered]] = {}
    strangers: set[tuple[str, str]] = set()
    for measure in board.measures:
        name = assessors.measures[0] if len(assessors.measures) == 1 else measure
        if name not in assessors.measures:
            raise InputError(
                f"the assessors' scores have no measure {measure}; they have {', '.join(assessors.measures)}"
            )
        assessed = assessors.per_query(name)
        for run in sorted(board.values.keys() & assessed.keys() - {*BELOW}):
            model = board.scored(run, measure)
            both = sorted(model.keys() & assessed[run].keys())
            rest = sorted(model.keys() - assessed[run].keys())
            strangers.update((run, query) for query in assessed[run].keys() - model.keys())
            try:
                powered = prediction_powered_mean(
                    [assessed[run][query] for query in both],
                    [model[query] for query in both],
                    [model[query] for query in rest],
                    level=level,
                )
            except InputError as error:
                raise InputError(f"run {run}, {measure}: {error}") from None
            result.setdefault(run, {})[measure] = powered
    if not result:
        raise InputError("no run has scores by assessors; their leaderboard must name the same runs")
    _note_left_out(strangers, set(board.values) - {*BELOW}, set(assessors.run_ids) - {*BELOW})
    return result


def _note_left_out(strangers: set[tuple[str, str]], runs: set[str], assessed: set[str]) -> None:
    """Says which scores by assessors are left out, and which runs have none."""
    text = "%d scores by assessors left out: the leaderboard has none of that run on that query (such as %s on %s)"
    warn(text, len(strangers), *min(strangers, default=()))
    for names, what in (
        (assessed - runs, "runs with scores by assessors are not on the leaderboard and left out"),
        (runs - assessed, "runs have no scores by assessors"),
    ):
        shown = ", ".join(sorted(names)[:5]) + (", …" if len(names) > 5 else "")
        warn("%d %s (%s)", len(names), what, shown)


# The format of the JSON of comparisons.
COMPARISONS = "rubric_measures compare 3"


def comparison_report(comparisons: Mapping[str, Comparison], places: int, asked: Mapping[str, object]) -> Report:
    """What is concluded, and each run against the best or the baseline; for programs all pairs with all numbers.

    Args:
        comparisons: measure -> comparison.
        places: decimal places; -1 prints all digits.
        asked: what was asked for, for the JSON.
    """
    content = {"format": COMPARISONS, "comparisons": comparisons, "asked": asked}
    pairs = [(one, pair) for one in comparisons.values() for pair in one.pairs]
    data = declared(pairs, {
        "measure": lambda row: row[0].measure,
        "run": lambda row: row[1].first,
        "against": lambda row: row[1].second,
        Column("difference", places, is_ranged=True): lambda row: _difference(row[1]),
        "t": lambda row: row[1].test.t,
        "p": lambda row: row[1].test.p,
        "p_adjusted": lambda row: row[1].p_adjusted,
        "d_z": lambda row: row[1].test.effect_size,
        "wins": lambda row: row[1].test.wins,
        "ties": lambda row: row[1].test.ties,
        "losses": lambda row: row[1].test.losses,
        "conclusion": lambda row: row[1].conclusion,
        "more queries": lambda row: row[1].more_queries,
        "at most": lambda row: row[1].at_most,
        "said": lambda row: row[1].said(row[0].smallest, places),
    }, places)  # fmt: skip
    return Report([_against(one, places) for one in comparisons.values()], [data], lambda: plain(content))


def _difference(pair: Pair, sign: float = 1.0) -> Ranged:
    ends = [end * sign for end in (pair.test.low, pair.test.high) if end is not None]
    return Ranged(pair.test.mean_difference * sign, min(ends, default=None), max(ends, default=None))


def _against(comparison: Comparison, places: int) -> Table:
    """Each run against the baseline, or else against the best run."""
    best = comparison.baseline or next(iter(comparison.means))
    sign = 1.0 if comparison.baseline else -1.0
    of = {pair.first if comparison.baseline else pair.second: pair for pair in comparison.pairs
          if best in (pair.first, pair.second)}  # fmt: skip
    cells: dict[Column | str, Callable[[str], Cell]] = {
        "run": lambda run: run,
        comparison.measure: lambda run: comparison.means[run],
        "group": lambda run: group_letters(run, comparison.groups),
        "difference": lambda run: _difference(of[run], sign) if run in of else None,
        "p": lambda run: of[run].p_adjusted if run in of else None,
        Column(f"against {best}", is_left=True): lambda run: (
            of[run].said(comparison.smallest, places, of_second=sign < 0) if run in of else None
        ),
    }
    if comparison.baseline:
        del cells["group"]
    return declared(comparison.means, cells, places, comparison.said(), list(_told(comparison)))


def group_letters(name: str, groups: Sequence[Sequence[str]]) -> str:
    """The groups of a name as letters: what shares a letter cannot be told apart."""
    return letters(index for index, group in enumerate(groups) if name in group)


def _told(comparison: Comparison) -> Iterator[str]:
    """How the intervals were made, and what more queries would do for the board."""
    share, pairs = f"{100 * (1 - comparison.alpha):g} %", counted(len(comparison.pairs), "pair")
    intervals = {
        "max-t": f"intervals hold all differences of {pairs} at once with {share} (sign flips of the largest t)",
        "holm": f"intervals are those of the last step of Holm's correction of {pairs}",
        "bh": f"intervals of what is told apart hold the true difference in {share} on average (BH, {pairs})",
        "none": f"intervals hold each difference by itself with {share}, not those of {pairs} at once",
    }
    if any(pair.test.low is not None for pair in comparison.pairs):
        yield intervals[comparison.procedure]
    ahead = comparison.outlook
    if comparison.smallest is not None:
        yield f"a difference below {comparison.smallest:g} is taken not to matter"
    else:
        yield "no pair is called the same: scores are not in [0, 1], and no smallest difference that matters was given"
    if ahead is None or ahead.pairs < 2:
        return
    told = f"{counted(ahead.queries, 'query')} told {100 * ahead.separated:.0f} % of {pairs} apart"
    if ahead.expected is None:
        yield told + "; nothing says how many queries would tell more apart" * (ahead.separated < 1)
        return
    needed = [
        f"{'more than a million' if queries is None else f'{queries:,}'} for {100 * share:.0f} %"
        for share, queries in ahead.needed
        if queries is None or queries > ahead.queries
    ]
    yield (
        f"{told}; as many others would tell {100 * ahead.expected:.0f} %"
        + "; needed: " * bool(needed)
        + ", ".join(needed)
    )


def report_of(report: LeaderboardReport, places: int) -> Report:
    """A leaderboard and its report, in all forms; trec_eval's lines have the means only."""
    bare = board_report(report.board, places)

    def scores() -> Table:
        _LOG.info("trec_eval lines hold the scores only; what else was asked for is in the other output forms")
        assert bare.scores is not None
        return bare.scores()

    return Report(_reading(report, places), [_data(report, places)], lambda: _content(report, places), scores)


def _reading(report: LeaderboardReport, places: int) -> Iterator[Table]:
    yield from board_tables(report.board, places, lambda run, measure: _beside(report, run, measure, places))
    for comparison in report.comparisons.values():
        if comparison.baseline is not None or report.is_verdict:
            yield _against(comparison, places)
    if report.powered:
        names = ["run", "measure", "assessors + model", "assessors alone", "model as truth", "λ", "queries"]
        yield Table(columns(names), list(_powered_rows(report, places)))
    if report.checks is not None:
        rows: list[list[Cell]] = [[one.run_id, one.queries, *_check_cells(one)] for one in report.checks.runs]
        yield Table(columns(["run", "queries", *_check_names(report.checks)]), rows)


def _beside(report: LeaderboardReport, run: str, measure: str, places: int) -> str:
    """What stands behind mean and standard error: the interval, † or the letters of the groups."""
    parts = []
    interval = report.intervals.get(run, {}).get(measure)
    if interval is not None and interval.low is not None:
        parts.append(f"[{number(interval.low, places)}, {number(interval.high, places)}]")
    comparison = report.comparisons.get(measure)
    if comparison is not None and run not in BELOW:
        if comparison.baseline is None:
            parts.append(group_letters(run, comparison.groups))
        else:
            pair = _pair(comparison, run)
            parts.append("†" if pair is not None and pair.significant else " ")
    return "".join(f" {part}" for part in parts)


def _pair(comparison: Comparison, run: str) -> Pair | None:
    return next((pair for pair in comparison.pairs if pair.first == run), None)


def _check_names(checks: LeaderboardChecks) -> list[str]:
    at = "" if checks.cutoff is None else f"@{checks.cutoff}"
    return ["missing", f"judged{at}", f"tied{at}", f"order by ties{at}", f"order by precision{at}"]


def _powered_rows(report: LeaderboardReport, places: int) -> Iterator[Sequence[Cell]]:
    for run in report.board.ranking():
        for measure, one in report.powered.get(run, {}).items():
            means = (ranged(*ends, places) for ends in _three_means(one))
            yield [run, measure, *means, f"{one.power:.2f}", f"{one.labelled} + {one.unlabelled}"]


def _three_means(one: PredictionPowered) -> list[tuple[float | None, float | None, float | None]]:
    """Mean and interval from assessors and model, from assessors alone, and from the model taken as the truth."""
    return [
        (one.mean, one.low, one.high),
        (one.assessor_mean, one.assessor_low, one.assessor_high),
        (one.naive_mean, one.naive_low, one.naive_high),
    ]


def _data(report: LeaderboardReport, places: int) -> Table:
    """The bare table with more columns: `low:`, `high:`, `powered:`, `assessor:`, `difference:` and so on."""
    base = board_data(report.board, places)
    heads = list(base.columns)
    rows = [list(row) for row in base.rows]
    runs = report.board.ranking()
    added: list[tuple[list[str], list[list[Cell]]]] = []
    for measure in report.board.measures:
        if report.intervals:
            names = [f"{name}:{measure}" for name in ("queries", "low", "high")]
            intervals = [report.intervals.get(run, {}).get(measure) for run in runs]
            added.append((names, [[None] * 3 if one is None else [one.units, one.low, one.high] for one in intervals]))
        if report.powered:
            kinds = [f"{kind}{end}" for kind in ("powered", "assessor", "naive") for end in ("", "_low", "_high")]
            names = [f"{kind}:{measure}" for kind in kinds]
            found = [report.powered.get(run, {}).get(measure) for run in runs]
            added.append((names, [[None] * 9 if one is None else [*chain(*_three_means(one))] for one in found]))
        if measure in report.comparisons:
            added.append(_compared(report.comparisons[measure], runs, report.is_verdict))
    for names, cells in added:
        heads += [Column(name, places) for name in names]
        for row, more in zip(rows, cells, strict=True):
            row += more
    if report.checks is not None:
        checks = {check.run_id: check for check in report.checks.runs}
        heads += [Column(f"check:{name}") for name in _check_names(report.checks)]
        for run, row in zip(runs, rows, strict=True):
            check = checks.get(run)
            row += [None] * 5 if check is None else _check_cells(check)
    return Table(heads, rows)


def _check_cells(check: RunCheck) -> list[Cell]:
    return [len(check.missing), check.judged, check.tied, check.order_by_ties, check.order_by_precision]


def _compared(comparison: Comparison, runs: Sequence[str], is_verdict: bool) -> tuple[list[str], list[list[Cell]]]:
    heads = ["group"]
    cells: list[list[Cell]] = [[group_letters(run, comparison.groups)] for run in runs]
    if comparison.baseline is not None:
        heads = ["difference", "p"] + ["verdict"] * is_verdict
        of = {pair.first: pair for pair in comparison.pairs}
        cells = [[of[run].test.mean_difference, of[run].p_adjusted, *([of[run].conclusion] * is_verdict)]
                 if run in of else [None] * len(heads) for run in runs]  # fmt: skip
    elif is_verdict:
        heads += ["better", "same", "undecided"]
        cells = [[*row, *_counted(comparison, run)] for row, run in zip(cells, runs, strict=True)]
    cells = [[None] * len(heads) if run in BELOW else row for run, row in zip(runs, cells, strict=True)]
    return [f"{head}:{comparison.measure}" for head in heads], cells


def _counted(comparison: Comparison, run: str) -> list[Cell]:
    """How many runs a run is better than, the same as, and not told from."""
    turned = {"better": "worse", "worse": "better"}
    found = [pair.conclusion for pair in comparison.pairs if run == pair.first]
    found += [turned.get(pair.conclusion, pair.conclusion) for pair in comparison.pairs if run == pair.second]  # type: ignore[misc]
    return [found.count(word) for word in ("better", "same", "undecided")]


def _content(report: LeaderboardReport, places: int) -> dict[str, Any]:
    content = board_content(report.board, places)
    more = {"comparisons": report.comparisons, "checks": report.checks, "prediction_powered": report.powered}
    content |= plain({**more, "asked": to_builtins(replace(report.board.asked, report=report.settings))})
    if report.intervals:
        for run in content["runs"]:
            for measure, cell in run["measures"].items():
                if run["run_id"] in report.intervals:
                    cell["interval"] = plain(report.intervals[run["run_id"]][measure])
    return content
