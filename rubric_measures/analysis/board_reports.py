"""What is concluded of boards: comparisons of runs as reports, means that assessors correct, runs left out of the pool.

Would a new run be judged fairly: each run left out of the pool, and all scored again.

What changed from a board to a later one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, groupby
from statistics import fmean
from typing import NamedTuple

import numpy as np
from ir_measures.measures.base import Measure
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
    Marked,
    Ranged,
    Report,
    Reported,
    Table,
    columns,
    declared,
    in_lines,
    letters,
    plain,
)
from rubric_measures.boards.board import Leaderboard
from rubric_measures.measures.grades import NONE, OnFailed, QueryGrades
from rubric_measures.measures.scoring import Plan
from rubric_measures.types.entities import TestBank
from rubric_measures.types.scales import as_number

Scores = Mapping[str, Mapping[str, float]]
"""Run -> query -> score."""


def mean_intervals(scores: Mapping[str, Scores], draws: Draws = USUAL_DRAWS) -> dict[str, dict[str, Interval]]:
    """The interval of every run's mean by every measure, see `resampling.mean_intervals`; all see the same queries.

    Args:
        scores: by each measure.
        draws: rounds, seed and level.

    Returns:
        measure -> run -> interval; `units` is the number of queries in the mean.
    """
    names = [(measure, run) for measure, of in scores.items() for run in of]
    table, _ = score_table([scores[measure][run] for measure, run in names])
    result: dict[str, dict[str, Interval]] = {measure: {} for measure in scores}
    for (measure, run), interval in zip(names, intervals_of_means(table, draws), strict=True):
        result[measure][run] = interval
    return result


def powered_means(
    scores: Mapping[str, Scores], assessed: Mapping[str, Scores], level: float = 0.95
) -> dict[str, dict[str, PredictionPowered]]:
    """Every run's mean from a few queries that assessors graded and all that the model graded (PPI++).

    Args:
        scores: by each measure, from the model's grades, on all queries.
        assessed: of the same runs by the same measures, from assessors' grades, on some queries. Where it has one
            measure only, that one stands for each measure that it does not have.
        level: the nominal coverage.

    Returns:
        measure -> run -> result, for the runs that both have. Queries are the units.

    Raises:
        InputError: no run is in both, or a run has fewer than two assessed or two other queries.
    """
    result: dict[str, dict[str, PredictionPowered]] = {}
    strangers: set[tuple[str, str]] = set()
    for measure, of in scores.items():
        truth = assessed.get(measure) if len(assessed) > 1 else next(iter(assessed.values()))
        if truth is None:
            raise InputError(f"the assessors' scores have no measure {measure}; they have {', '.join(assessed)}")
        for run in sorted(of.keys() & truth.keys()):
            model = of[run]
            both = sorted(model.keys() & truth[run].keys())
            strangers.update((run, query) for query in truth[run].keys() - model.keys())
            try:
                powered = prediction_powered_mean(
                    [truth[run][query] for query in both],
                    [model[query] for query in both],
                    [model[query] for query in sorted(model.keys() - truth[run].keys())],
                    level=level,
                )
            except InputError as error:
                raise InputError(f"run {run}, {measure}: {error}") from None
            result.setdefault(measure, {})[run] = powered
    if not result:
        raise InputError("no run has scores by assessors; their leaderboard must name the same runs")
    runs, others = ({run for of in side.values() for run in of} for side in (scores, assessed))
    _note_left_out(strangers, runs, others)
    return result


def _note_left_out(strangers: set[tuple[str, str]], runs: set[str], assessed: set[str]) -> None:
    """Says which scores by assessors are left out, and which runs have none."""
    if strangers:
        where = "of a run and query that the leaderboard has no score of (such as {} on {})".format(*min(strangers))
        warn(f"left out: {counted(len(strangers), 'score')} by assessors {where}")
    for names, what, of in (
        (assessed - runs, "not on the leaderboard and left out", " with scores by assessors"),
        (runs - assessed, "without scores by assessors", ""),
    ):
        shown = ", ".join(sorted(names)[:5]) + (", …" if len(names) > 5 else "")
        warn("%s: %s", what, f"{counted(len(names), 'run')}{of} ({shown})" if names else 0)


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
Intervals = Mapping[str, Mapping[str, Interval]]
Powered = Mapping[str, Mapping[str, PredictionPowered]]


def comparison_report(
    comparisons: Mapping[str, Comparison], intervals: Intervals, powered: Powered, places: int, asked: object
) -> Report:
    """What is concluded, and each run against the best or the baseline; for programs all pairs with all numbers.

    Args:
        comparisons: measure -> comparison.
        intervals: measure -> run -> interval of its mean.
        powered: measure -> run -> its mean as assessors correct it, where they graded some queries.
        places: decimal places; -1 prints all digits.
        asked: what was asked for, for the JSON.
    """
    content = {"format": COMPARISONS, "comparisons": comparisons, "intervals": intervals, "asked": asked}
    content |= {"prediction_powered": powered} if powered else {}
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
        Column("score", places, is_ranged=True): lambda row: _mean(row[0], row[1].first, intervals),
        Column("score against", places, is_ranged=True): lambda row: _mean(row[0], row[1].second, intervals),
        "group": lambda row: group_letters(row[1].first, row[0].groups),
        "group against": lambda row: group_letters(row[1].second, row[0].groups),
    }, places)  # fmt: skip
    means = _overview(comparisons, intervals, places)
    # A run alone has a mean and no pair.
    tables = [_against(one, intervals, places) for one in comparisons.values()] if pairs else [means]
    tables += [means] if pairs and len(comparisons) > 1 else []
    more = [_powered_table(powered, places)] if powered else []
    return Report([*tables, *more], [data if pairs else means, *more], lambda: plain(content))


def _mean(comparison: Comparison, run: str, intervals: Intervals) -> Ranged:
    found = intervals.get(comparison.measure, {}).get(run)
    return Ranged(comparison.means[run], *(() if found is None else (found.low, found.high)))


def _standing(comparison: Comparison, run: str, intervals: Intervals) -> tuple[Cell, str]:
    """A run's mean with its interval, the best in bold; the letters of its groups, or † where it differs."""
    if run not in comparison.means:
        return None, ""
    mean, mark = _mean(comparison, run, intervals), group_letters(run, comparison.groups)
    if comparison.baseline is not None:
        mark = "†" if any(pair.significant for pair in comparison.pairs if pair.first == run) else ""
    return Marked(mean, "", bold=mean.value == max(comparison.means.values())), mark


def _mark_head(comparison: Comparison) -> str:
    return "group" if comparison.baseline is None else "†"


def _overview(comparisons: Mapping[str, Comparison], intervals: Intervals, places: int) -> Table:
    """A row a run, best first by the first measure: its mean by each measure."""
    runs = dict.fromkeys(run for one in comparisons.values() for run in one.means)
    heads = columns(["run"])
    for one in comparisons.values():
        heads += [Column(one.measure, places, is_ranged=True), Column(_mark_head(one))]
    rows = [[run, *(cell for one in comparisons.values() for cell in _standing(one, run, intervals))] for run in runs]
    first = next(iter(comparisons.values()))
    what = "a letter in common: not told apart" if first.baseline is None else f"†: differs from {first.baseline}"
    title = f"means with {100 * first.tests.level:g} % intervals; {what}" if len(runs) > 1 else first.said()
    return Table(heads, rows, title)


def _difference(pair: Pair, sign: float = 1.0) -> Ranged:
    ends = [end * sign for end in (pair.test.low, pair.test.high) if end is not None]
    return Ranged(pair.test.mean_difference * sign, min(ends, default=None), max(ends, default=None))


def _against(comparison: Comparison, intervals: Intervals, places: int) -> Table:
    """Each run against the baseline, or else against the best run."""
    best = comparison.baseline or next(iter(comparison.means))
    sign = 1.0 if comparison.baseline else -1.0
    of = {pair.first if comparison.baseline else pair.second: pair for pair in comparison.pairs
          if best in (pair.first, pair.second)}  # fmt: skip
    cells: dict[Column | str, Callable[[str], Cell]] = {
        "run": lambda run: run,
        comparison.measure: lambda run: _standing(comparison, run, intervals)[0],
        _mark_head(comparison): lambda run: _standing(comparison, run, intervals)[1],
        "difference": lambda run: _difference(of[run], sign) if run in of else None,
        "p_adjusted": lambda run: of[run].p_adjusted if run in of else None,
        Column(f"against {best}", is_left=True): lambda run: (
            of[run].said(comparison.tests.smallest, places, of_second=sign < 0) if run in of else None
        ),
    }
    return declared(comparison.means, cells, places, comparison.said(), list(_told(comparison)))


def _powered_table(powered: Powered, places: int) -> Table:
    """Means from assessors and model, from assessors alone, and from the model taken as the truth."""
    rows = [(measure, run, one) for measure, of in powered.items() for run, one in of.items()]
    return declared(rows, {
        "measure": lambda row: row[0],
        Column("run", is_left=True): lambda row: row[1],
        Column("assessors + model", places, is_ranged=True): lambda row: Ranged(row[2].mean, row[2].low, row[2].high),
        Column("assessors alone", places, is_ranged=True): lambda row: Ranged(
            row[2].assessor_mean, row[2].assessor_low, row[2].assessor_high
        ),
        Column("model as truth", places, is_ranged=True): lambda row: Ranged(
            row[2].naive_mean, row[2].naive_low, row[2].naive_high
        ),
        "λ": lambda row: row[2].power,
        "assessed": lambda row: row[2].labelled,
        "other": lambda row: row[2].unlabelled,
    }, places)  # fmt: skip


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
    if len(comparison.groups) > 26:
        yield f"{len(comparison.groups)} groups: so many letters are hard to read; JSON and TSV have every pair"
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
