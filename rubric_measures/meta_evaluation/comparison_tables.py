"""Comparisons of runs, and leaderboards with intervals, comparisons and checks, as reports."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from rubric_measures.base.tables import Cell, Column, Report, Table, columns, letters, number, plain, ranged
from rubric_measures.boards.board import NO_RUNS, board_content, board_data, board_report, board_table, failures_tables
from rubric_measures.meta_evaluation.leaderboard_checks import LeaderboardChecks, RunCheck
from rubric_measures.meta_evaluation.leaderboard_report import LeaderboardReport
from rubric_measures.meta_evaluation.prediction_powered import PredictionPowered
from rubric_measures.meta_evaluation.run_comparison import Comparison, Pair
from rubric_measures.meta_evaluation.verdicts import Outlook, Verdict

__all__ = ["comparison_report", "report_of"]

_LOG = logging.getLogger("rubric_measures")
_PAIRS = ["run", "against", "difference", "interval", "p_t", "p_perm", "p_adjusted", "different", "d_z", "w/t/l"]
_VERDICTS = ["verdict", "p_same", "more queries", "at most"]


def comparison_report(comparison: Comparison, places: int, settings: Mapping[str, object]) -> Report:
    """Runs with their groups, then pairs; for programs the pairs.

    Args:
        comparison: the comparison.
        places: decimal places; -1 prints all digits.
        settings: `rounds` and `seed`, for the JSON.
    """
    pairs = _pairs(comparison, places)
    tables = [pairs] if comparison.baseline is not None else [_runs(comparison, places), pairs]
    content = {"format": "rubric_measures compare 1", "comparison": comparison, **settings}
    return Report(tables, [pairs], lambda: plain(content))


def _runs(comparison: Comparison, places: int) -> Table:
    rows: list[list[Cell]] = [[run, mean, _group(run, comparison)] for run, mean in comparison.means.items()]
    return Table(columns(["run", comparison.measure, "group"], places), rows)


def _group(run: str, comparison: Comparison) -> str:
    """The groups of a run as letters: runs that share a letter cannot be told apart."""
    return letters(index for index, group in enumerate(comparison.groups) if run in group)


def _pairs(comparison: Comparison, places: int, title: str = "") -> Table:
    names = _PAIRS if comparison.outlook is None else [*_PAIRS, *_VERDICTS]
    heads = [Column(name, 2 if name == "d_z" else places, is_left=name in ("run", "verdict")) for name in names]
    rows: list[list[Cell]] = []
    for pair in comparison.pairs:
        test, verdict = pair.test, pair.verdict
        row: list[Cell] = [
            pair.first,
            pair.second,
            test.mean_difference,
            None if test.low is None else _between(test.low, test.high, places),
            test.p_t,
            test.p_permutation,
            pair.p_adjusted,
            "yes" if pair.significant else "no",
            test.effect_size,
            f"{test.wins}/{test.ties}/{test.losses}",
        ]
        if verdict is not None:
            row += [_said(verdict), verdict.p_same, verdict.more_queries, verdict.at_most]
        rows.append(row)
    notes = [_said_of_intervals(comparison)]
    return Table(heads, rows, title, notes if comparison.outlook is None else [*notes, *_said_of(comparison.outlook)])


def _said(verdict: Verdict) -> str:
    """The verdict in words; of a difference that is there and does not matter, both."""
    is_small = verdict.within and verdict.conclusion in ("better", "worse")
    return f"{verdict.conclusion}, by too little to matter" if is_small else verdict.conclusion


def _said_of(ahead: Outlook) -> Iterator[str]:
    """What verdicts mean, and what more queries would do for the board."""
    yield f"verdict: same is a difference shown to be below {ahead.smallest:g} (two one-sided tests, corrected alike)"
    wanted = f"decide with power {ahead.power:g}"
    yield f"more queries: {wanted} if the true difference is the one seen; at most: whatever it is"
    yield f"{ahead.queries} queries separate {100 * ahead.separated:.0f} % of the {ahead.pairs} pairs"
    if ahead.expected is None:
        yield "the runs do not differ beyond noise: nothing says how many queries would separate them"
        return
    yield f"another {ahead.queries} queries are expected to separate {100 * ahead.expected:.0f} %"
    for share, queries in ahead.needed:
        found = "more than a million" if queries is None else f"{queries:,}"
        yield f"{found} queries are expected to separate {100 * share:.0f} %"


def _said_of_intervals(comparison: Comparison) -> str:
    """One line on what the intervals of differences hold."""
    share = f"{100 * (1 - comparison.alpha):g} %"
    if comparison.intervals == "each":
        return f"interval: {share} for each pair by itself; not corrected for the number of pairs"
    return f"interval: {share} for all pairs at once (Bonferroni, as wide as Holm's first step)"


def _between(low: float | None, high: float | None, places: int) -> str:
    return f"[{number(low, places)}, {number(high, places)}]"


def report_of(report: LeaderboardReport, places: int) -> Report:
    """A leaderboard and its report, in all forms; trec_eval's lines have the means only."""
    bare = board_report(report.board, places)

    def scores() -> Table:
        _LOG.info("trec_eval lines hold the scores only; what else was asked for is in the other output forms")
        assert bare.scores is not None
        return bare.scores()

    return Report(_reading(report, places), [_data(report, places)], lambda: _content(report, places), scores)


def _reading(report: LeaderboardReport, places: int) -> Iterator[Table]:
    yield board_table(report.board, places, lambda run, measure: _beside(report, run, measure, places))
    yield from failures_tables(report.board, places)
    for comparison in report.comparisons.values():
        if comparison.baseline is not None or comparison.outlook is not None:
            yield _pairs(comparison, places, comparison.measure)
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
        parts.append(_between(interval.low, interval.high, places))
    comparison = report.comparisons.get(measure)
    if comparison is not None and run not in NO_RUNS:
        if comparison.baseline is None:
            parts.append(_group(run, comparison))
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
        if report.comparisons:
            added.append(_compared(report.comparisons[measure], runs))
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


def _compared(comparison: Comparison, runs: Sequence[str]) -> tuple[list[str], list[list[Cell]]]:
    measure = comparison.measure
    if comparison.baseline is None:
        heads = [f"group:{measure}"]
        rows: list[list[Cell]] = [[None if run in NO_RUNS else _group(run, comparison)] for run in runs]
        if comparison.outlook is not None:
            heads += [f"{kind}:{measure}" for kind in ("better", "same", "undecided")]
            for run, row in zip(runs, rows, strict=True):
                row += [None] * 3 if run in NO_RUNS else _counted(comparison, run)
        return heads, rows
    pairs = [_pair(comparison, run) for run in runs]
    heads = [f"difference:{measure}", f"p:{measure}"] + ([f"verdict:{measure}"] if comparison.outlook else [])
    return heads, [_of_baseline(pair, len(heads)) for pair in pairs]


def _of_baseline(pair: Pair | None, width: int) -> list[Cell]:
    if pair is None:
        return [None] * width
    return [pair.test.mean_difference, pair.p_adjusted, *([] if pair.verdict is None else [pair.verdict.conclusion])]


def _counted(comparison: Comparison, run: str) -> list[Cell]:
    """How many runs a run is better than, the same as, and not told from."""
    found: list[str] = []
    for pair in comparison.pairs:
        if pair.verdict is not None and run in (pair.first, pair.second):
            word = pair.verdict.conclusion
            found.append({"better": "worse", "worse": "better"}.get(word, word) if run == pair.second else word)
    return [found.count(word) for word in ("better", "same", "undecided")]


def _content(report: LeaderboardReport, places: int) -> dict[str, Any]:
    content = board_content(report.board, places)
    more = {"comparisons": report.comparisons, "checks": report.checks, "prediction_powered": report.powered}
    content |= plain({**more, "drawn": report.settings})
    if report.intervals:
        for run in content["runs"]:
            for measure, cell in run["measures"].items():
                if run["run_id"] in report.intervals:
                    cell["interval"] = plain(report.intervals[run["run_id"]][measure])
    return content
