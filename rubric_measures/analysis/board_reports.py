"""What stands beside a leaderboard: intervals, comparisons, and what other readings of the runs would give.

Would a new run be judged fairly: each run left out of the pool, and all scored again.

What changed from a board to a later one.

A leaderboard with what one needs to trust it: intervals, comparisons with a baseline or among all, checks.

Comparisons of runs, and leaderboards with intervals, comparisons and checks, as reports.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, groupby
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
from ir_measures.measures.base import Measure
from msgspec import to_builtins
from msgspec.structs import replace

from rubric_measures.analysis.calibration import PredictionPowered, prediction_powered_mean
from rubric_measures.analysis.comparison import Comparison, Pair
from rubric_measures.analysis.correlation import ranks
from rubric_measures.analysis.resampling import USUAL_DRAWS, Draws, Interval, score_table
from rubric_measures.analysis.resampling import mean_intervals as intervals_of_means
from rubric_measures.base.errors import InputError, counted, warn
from rubric_measures.base.tables import (
    Cell,
    Column,
    Ranged,
    Report,
    Reported,
    Table,
    columns,
    declared,
    in_lines,
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
from rubric_measures.measures.grades import NONE, OnFailed, QueryGrades
from rubric_measures.measures.scoring import Plan
from rubric_measures.types.entities import TestBank
from rubric_measures.types.scales import as_number

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
    # Of a run without a mean single queries say nothing, see `Leaderboard.scored`.
    known = [board.values[run][of] if board.cells[run][of].mean is not None else {} for run, of in names]
    table, _ = score_table(known)
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


class LeftOut(NamedTuple):
    """One run by one measure, when it took no part in making the pool.

    Attributes:
        run_id: the run.
        measure: the measure.
        alone: the share of its first passages that no other run has among its first.
        score: with all that there is.
        left_out: without what only these passages gave.
        rank: among all runs, 1 best, ties averaged.
        rank_left_out: likewise, where all are scored without that.
    """

    run_id: str
    measure: str
    alone: float
    score: float
    left_out: float
    rank: float
    rank_left_out: float


def without_grades(grades: QueryGrades, rows: Sequence[int]) -> QueryGrades:
    """The same, with nothing known of some passages."""
    left, failed = grades.grades.copy(), None if grades.failed is None else grades.failed.copy()
    left[rows] = NONE
    if failed is not None:
        failed[rows] = False
    return replace(grades, grades=left, failed=failed)


def left_out(
    queries: Iterable[tuple[QueryGrades, Mapping[str, Sequence[str]]]],
    measures: Sequence[Measure],
    depth: int,
    on_failed: OnFailed = "expected",
    lacking: Callable[[QueryGrades, Sequence[int]], QueryGrades] = without_grades,
) -> list[LeftOut]:
    """Each run left out of the pool, one after the other, and all runs scored again.

    A passage is brought by the runs that have it among their first. What no run has there is brought by somebody else,
    and stays.

    Args:
        queries: the grades of each query, with run -> its ranking, best first.
        measures: measures that are averaged over queries.
        depth: how many passages of a ranking are pooled.
        on_failed: how failed grades count, see `Grades`.
        lacking: what is left of a query where some rows of its grades had not been pooled.

    Returns:
        measure by measure, the best run first.

    Source: Zobel, How reliable are the results of large-scale information retrieval experiments? (SIGIR 1998).
    """
    known = [(grades, rankings) for grades, rankings in queries if grades.items]
    runs = sorted({run for _, rankings in known for run in rankings})
    plan = Plan(measures, on_failed, one_scale=True)
    # Of the queries that have a value: the run that is left out (last none) × measures × runs.
    sums, counts = np.zeros((2, len(runs) + 1, len(measures), len(runs)))
    own_and_all = np.zeros((len(runs), 2))
    for grades, rankings in known:
        grades.refuse_partial("a run that is left out needs others")
        scorer = plan.for_query(grades)
        ranked = [scorer.ranked(rankings.get(run, ())) for run in runs]
        values = np.stack([scorer.score(ranked).values] * len(sums))
        tops = [dict.fromkeys(rankings.get(run, ())[:depth]) for run in runs]
        times = Counter(chain(*tops))
        for place, top in enumerate(tops):
            own = [doc_id for doc_id in top if times[doc_id] == 1]
            own_and_all[place] += len(own), len(top)
            if rows := [grades.docs[doc_id] for doc_id in own if doc_id in grades.docs]:
                values[place] = plan.for_query(lacking(grades, rows)).score(ranked).values
        sums += np.nan_to_num(values)
        counts += ~np.isnan(values)
    means = np.divide(sums, counts, out=np.full(sums.shape, np.nan), where=counts > 0)
    # Sums of one value in another order are ties.
    both = np.stack([means, ranks(np.round(means, 12))])
    found = [
        LeftOut(run, str(measure), own / max(all_of, 1), *both[:, [-1, at], row, at].ravel().tolist())
        for row, measure in enumerate(plan.said.measures)
        for at, (run, (own, all_of)) in enumerate(zip(runs, own_and_all.tolist(), strict=True))
    ]
    order = list(map(str, plan.said.measures))
    return sorted(found, key=lambda one: (order.index(one.measure), one.rank, one.run_id))


def lost_by(rows: Sequence[LeftOut]) -> str:
    """What runs lose that are left out, by one measure, in words."""
    drops = [row.rank_left_out - row.rank for row in rows]
    worst = int(np.argmax(drops))
    most = f" (at most {drops[worst]:g}: {rows[worst].run_id})" if drops[worst] > 0 else ""
    return (
        f"scores {fmean(row.score - row.left_out for row in rows):.4f} less and drops {fmean(drops):.2f} ranks on "
        f"average{most}; runs that lose a rank: {sum(drop > 0 for drop in drops)} of {len(rows)}"
    )


@dataclass(frozen=True)
class Reusability(Reported):
    """Would a run that was not pooled be judged fairly; `print` shows it.

    Attributes:
        rows: each run by each measure.
        depth: how many passages of a ranking are pooled.
    """

    rows: Sequence[LeftOut]
    depth: int

    def report(self, places: int = 4) -> Report:
        """What `base.tables.render` shows in any form, with so many decimal places (-1: all digits)."""
        cells: Mapping[Column | str, Callable[[LeftOut], Cell]] = {
            "run": lambda row: row.run_id,
            Column("measure", is_left=True): lambda row: row.measure,
            f"alone@{self.depth}": lambda row: row.alone,
            "score": lambda row: row.score,
            "left out": lambda row: row.left_out,
            "rank": lambda row: as_number(row.rank),
            "rank left out": lambda row: as_number(row.rank_left_out),
        }
        by_measure = groupby(self.rows, lambda row: row.measure)
        notes = [f"{name}: a run that is left out of the pool {lost_by(list(of))}" for name, of in by_measure]
        rows = [row._asdict() for row in self.rows]
        content = {"format": "rubric_measures reusability 1", "depth": self.depth, "runs": rows}
        return Report([declared(self.rows, cells, places, notes=notes)], content=lambda: plain(content))


class Changes(list[str], Reported):
    """What changed from a board to a later one, a line each; `print` shows it."""

    @property
    def holds(self) -> bool:
        """Whether nothing changed."""
        return len(self) == 1 and self[0] == _SAME

    def report(self, places: int = 4) -> Report:
        """Lines to read, and a row a line for programs."""
        return Report([in_lines(self)], [Table([Column("change", is_left=True)], [[one] for one in self])])


_SAME = "nothing changed"


def changes(old: Leaderboard, new: Leaderboard, banks: Sequence[TestBank] = ()) -> Changes:
    """What changed: inputs, and the ranks of runs by each measure.

    The first line says what it was: the judge (other grades of the same items), the bank, the runs, the settings, or
    several of them. Where the bank is another one, the judge is one only if its name or settings are.

    Args:
        old: the board before.
        new: the board now.
        banks: those of both, where they are known.
    """
    runs = _changed(old.inputs.runs, new.inputs.runs)
    queries = _changed(old.inputs.grades, new.inputs.grades)
    judged = _changed(old.inputs.qrels, new.inputs.qrels)
    was, now = old.signature.settings, new.signature.settings
    others = _changed(was, now)
    is_bank, graders = "bank" in others, [name for name in others if name in ("graders", "grades")]
    made = ("scored", "runs", "bank", "graders", "grades", "version")
    settings = [name for name in others if name not in made]
    found = {
        "the bank": is_bank,
        "the judge": graders if is_bank else queries,
        "the judgments": judged,
        "the runs": runs,
        "the settings": settings,
    }
    causes = [name for name, is_so in found.items() if is_so]
    lines = [f"changed: {' and '.join(causes)}" if causes else _SAME]
    for name in (*settings, *graders):
        lines.append(f"{name}: {was.get(name)} before, {now.get(name)} now")
    if is_bank and banks:
        # Items of two queries may have one id.
        known, there = ({(item.query_id, item.item_id): item for item in bank} for bank in banks)
        said = {key: "new" if key not in known else "changed" for key, item in there.items() if known.get(key) != item}
        said |= dict.fromkeys(known.keys() - there.keys(), "gone")
        lines += [f"query {query_id}, item {item_id}: {what}" for (query_id, item_id), what in sorted(said.items())]
    # Digests of queries hold items and grades together.
    lines += [f"query {name}: other {'items or ' if is_bank else ''}grades" for name in queries]
    lines += [f"query {name}: other judgments" for name in judged]
    lines += [f"run {name}: other rankings" for name in runs]
    return Changes([*lines, *_moved(old, new)])


def _changed(old: Mapping[str, object], new: Mapping[str, object]) -> list[str]:
    return [name for name in sorted(old.keys() | new.keys()) if old.get(name) != new.get(name)]


def _moved(old: Leaderboard, new: Leaderboard) -> Iterator[str]:
    """The runs whose rank among the runs of both changed, by each measure that both have."""
    common = sorted(old.cells.keys() & new.cells.keys())
    for measure in (one for one in old.measures if one in new.measures and common):
        means = [[_rounded(board.cells[run][measure].mean) for run in common] for board in (old, new)]
        for run, *mean, was, now in zip(common, *means, *(ranks(of).tolist() for of in means), strict=True):
            if was != now:
                yield f"{measure}: {run} from rank {was:g} to {now:g} ({mean[0]:.4f} to {mean[1]:.4f})"


def _rounded(mean: float | None) -> float:
    return float("-inf") if mean is None else round(mean, 12)


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
        "said": lambda row: row[1].said(row[0].tests.smallest, places),
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
            of[run].said(comparison.tests.smallest, places, of_second=sign < 0) if run in of else None
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
    tests, share, pairs = (
        comparison.tests,
        f"{100 * comparison.tests.level:g} %",
        counted(len(comparison.pairs), "pair"),
    )
    intervals = {
        "max-t": f"intervals hold all differences of {pairs} at once with {share} (sign flips of the largest t)",
        "holm": f"intervals are those of the last step of Holm's correction of {pairs}",
        "bh": f"intervals of what is told apart hold the true difference in {share} on average (BH, {pairs})",
        "none": f"intervals hold each difference by itself with {share}, not those of {pairs} at once",
    }
    if any(pair.test.low is not None for pair in comparison.pairs):
        made = "sign flips of t" if tests.correction == "max-t" else "t-test"
        is_one = len(comparison.pairs) == 1
        yield f"the interval holds the difference with {share} ({made})" if is_one else intervals[tests.correction]
    ahead = comparison.outlook
    if tests.smallest is not None:
        yield f"a difference below {tests.smallest:g} is taken not to matter"
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
