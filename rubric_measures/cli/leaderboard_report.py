"""Output of what `leaderboard` prints beside means: intervals, comparisons, groups, checks, a figure."""

from __future__ import annotations

import argparse
import json
import logging
from collections.abc import Callable, Sequence

from rubric_measures.base.errors import InputError
from rubric_measures.cli.compare import comparison_tables, letters
from rubric_measures.cli.tables import as_text, plain
from rubric_measures.formats.leaderboards import LeaderboardTable, read_leaderboard
from rubric_measures.leaderboards.output import render, render_rows
from rubric_measures.leaderboards.scoring import OVERALL, Leaderboard
from rubric_measures.meta_evaluation.leaderboard_checks import LeaderboardChecks
from rubric_measures.meta_evaluation.leaderboard_report import (
    LeaderboardReport,
    compare_board,
    mean_intervals,
    powered_means,
)
from rubric_measures.meta_evaluation.prediction_powered import PredictionPowered
from rubric_measures.meta_evaluation.system_comparison import Comparison, Pair

__all__ = ["build_report", "render_report", "say_report"]


def build_report(
    board: Leaderboard, options: argparse.Namespace, checks: Callable[[], LeaderboardChecks]
) -> LeaderboardReport:
    """Computes what the options ask for."""
    if options.rounds < 1:
        raise InputError("--rounds is 1 or more")
    if options.human_form and not options.human:
        raise InputError("--human-form says what --human reads; name its file, too")
    if options.baseline and options.groups:
        raise InputError("--baseline compares with one run, --groups all pairs; choose one")
    drawn = {"rounds": options.rounds, "seed": options.seed}
    comparisons = {}
    if options.baseline or options.groups:
        tests = {"procedure": options.correction, "test": options.test, "alpha": options.alpha}
        comparisons = compare_board(board, baseline=options.baseline, **tests, **drawn)
    return LeaderboardReport(
        board,
        mean_intervals(board, level=options.level, **drawn) if options.intervals else {},
        comparisons,
        checks() if options.checks else None,
        powered_means(board, _human_scores(board, options), level=options.level) if options.human else {},
        {**drawn, "level": options.level},
    )


def _human_scores(board: Leaderboard, options: argparse.Namespace) -> LeaderboardTable:
    """People's scores; the names of the leaderboard tell the columns of a file that does not."""
    topics = {topic for row in board.values.values() for queries in row.values() for topic in queries}
    table = read_leaderboard(
        options.human, form=options.human_form, topics=topics, runs=board.values, measures=board.measures
    )
    if not table.query_ids:
        raise InputError(f"{options.human}: holds no per-topic scores; --human compares people and model by topic")
    return table


def _pair(comparison: Comparison, run: str) -> Pair | None:
    return next((pair for pair in comparison.pairs if pair.first == run), None)


def _shown(value: float | None, places: int) -> str:
    if value is None:
        return "-"
    return repr(value) if places < 0 else f"{value:.{places}f}"


def _score(report: LeaderboardReport, run: str, measure: str, places: int) -> str:
    """What stands behind mean and standard error: the interval, † or the letters of the groups."""
    parts = []
    interval = report.intervals.get(run, {}).get(measure)
    if interval is not None and interval.low is not None:
        parts.append(f"[{_shown(interval.low, places)}, {_shown(interval.high, places)}]")
    comparison = report.comparisons.get(measure)
    if comparison is not None and run != OVERALL:
        if comparison.baseline is None:
            parts.append(letters(run, comparison.groups))
        else:
            pair = _pair(comparison, run)
            parts.append("†" if pair is not None and pair.significant else " ")
    return "".join(f" {part}" for part in parts)


def _check_rows(checks: LeaderboardChecks) -> list[list[str]]:
    return [
        [check.run_id, str(check.topics), str(len(check.missing)), _shown(check.judged, 4), _shown(check.tied, 4)]
        for check in checks.runs
    ]


def _check_header(checks: LeaderboardChecks) -> list[str]:
    at = "" if checks.cutoff is None else f"@{checks.cutoff}"
    return ["run", "topics", "missing", f"judged{at}", f"tied{at}"]


_POWERED_NAMES = ("powered", "human", "naive")
_POWERED = ["run", "measure", "people + model", "people alone", "model as truth", "λ", "topics"]


def _three_means(one: PredictionPowered | None) -> list[tuple[float | None, float | None, float | None]]:
    """Mean and interval from people and model, from people alone, and from the model taken as the truth."""
    if one is None:
        return [(None, None, None)] * 3
    return [
        (one.mean, one.low, one.high),
        (one.human_mean, one.human_low, one.human_high),
        (one.naive_mean, one.naive_low, one.naive_high),
    ]


def _powered_rows(report: LeaderboardReport, places: int) -> list[list[str]]:
    rows = []
    for run in report.board.ranking():
        for measure, one in report.powered.get(run, {}).items():
            shown = [f"{_shown(a, places)} [{_shown(b, places)}, {_shown(c, places)}]" for a, b, c in _three_means(one)]
            rows.append([run, measure, *shown, f"{one.power:.2f}", f"{one.labelled} + {one.unlabelled}"])
    return rows


def render_report(report: LeaderboardReport, output_format: str, places: int) -> str:
    """The leaderboard with what was asked for, in any of the leaderboard's formats."""
    if output_format == "json":
        return _json(report, places)
    if output_format == "tsv":
        return _tsv(report, places)
    if output_format == "trec_eval":
        return render(report.board, output_format, places)
    text = render_rows(report.board, output_format, places, lambda run, name: _score(report, run, name, places))
    if output_format != "text":
        return text
    parts = [text]
    for comparison in report.comparisons.values():
        if comparison.baseline is not None:
            parts.append(f"{comparison.measure}\n{comparison_tables(comparison, 'text', places)}")
    if report.powered:
        parts.append(as_text(_POWERED, _powered_rows(report, places)))
    if report.checks is not None:
        parts.append(as_text(_check_header(report.checks), _check_rows(report.checks)))
    return "\n".join(parts)


def _tsv(report: LeaderboardReport, places: int) -> str:
    """The bare TSV with more columns: `topics:`, `low:`, `high:`, `powered:`, `human:`, `naive:`, `difference:`, …."""
    lines = [line.split("\t") for line in render(report.board, "tsv", places).splitlines()]
    checks = {check.run_id: check for check in report.checks.runs} if report.checks is not None else {}
    for line in lines:
        run = line[0]
        is_header = line is lines[0]
        for measure in report.board.measures:
            if report.intervals:
                names = [f"{name}:{measure}" for name in ("topics", "low", "high")]
                line += names if is_header else _interval_fields(report, run, measure, places)
            if report.powered:
                one = report.powered.get(run, {}).get(measure)
                line += _powered_fields(one, measure, is_header, places)
            if report.comparisons:
                line += _comparison_fields(report.comparisons[measure], run, measure, is_header, places)
        if report.checks is not None:
            if is_header:
                line += [f"check:{name}" for name in _check_header(report.checks)[2:]]
            else:
                check = checks.get(run)
                values = (None, None) if check is None else (check.judged, check.tied)
                line += ["-" if check is None else str(len(check.missing)), *(_shown(value, 4) for value in values)]
    return "".join("\t".join(line) + "\n" for line in lines)


def _interval_fields(report: LeaderboardReport, run: str, measure: str, places: int) -> list[str]:
    interval = report.intervals[run][measure]
    return [str(interval.units), _shown(interval.low, places), _shown(interval.high, places)]


def _powered_fields(one: PredictionPowered | None, measure: str, is_header: bool, places: int) -> list[str]:
    if is_header:
        return [f"{name}{end}:{measure}" for name in _POWERED_NAMES for end in ("", "_low", "_high")]
    return [_shown(value, places) for three in _three_means(one) for value in three]


def _comparison_fields(comparison: Comparison, run: str, measure: str, is_header: bool, places: int) -> list[str]:
    if comparison.baseline is None:
        return [f"group:{measure}"] if is_header else ["-" if run == OVERALL else letters(run, comparison.groups)]
    if is_header:
        return [f"difference:{measure}", f"p:{measure}"]
    pair = _pair(comparison, run)
    if pair is None:
        return ["-", "-"]
    return [_shown(pair.test.mean_difference, places), _shown(pair.p_adjusted, places)]


def _json(report: LeaderboardReport, places: int) -> str:
    content = json.loads(render(report.board, "json", places))
    if report.intervals:
        for run in content["runs"]:
            for measure, cell in run["measures"].items():
                cell["interval"] = plain(report.intervals[run["run_id"]][measure])
    content["comparisons"] = plain(report.comparisons)
    content["checks"] = plain(report.checks)
    content["prediction_powered"] = plain(report.powered)
    content["drawn"] = plain(report.settings)
    return json.dumps(content, ensure_ascii=False, allow_nan=False, indent=1) + "\n"


def say_report(report: LeaderboardReport) -> None:
    """Notes what ties and missing grades do to the order."""
    log = logging.getLogger("rubric_measures")
    if report.checks is None:
        return
    for top in report.checks.top:
        if top.changed:
            log.warning(
                "%s: ties decide the winner: %s by document id, %s in file order",
                top.measure,
                _names(top.by_doc_id),
                _names(top.by_file_order),
            )
    tied = [check for check in report.checks.runs if check.tied]
    if tied:
        worst = max(tied, key=lambda check: check.tied or 0.0)
        log.info(
            "%d of %d runs have tied scores inside the cutoff; most has %s (%.1f %%)",
            len(tied),
            len(report.checks.runs),
            worst.run_id,
            100 * (worst.tied or 0.0),
        )


def _names(runs: Sequence[str]) -> str:
    return " and ".join(runs[:3]) + (f" and {len(runs) - 3} more" if len(runs) > 3 else "")
