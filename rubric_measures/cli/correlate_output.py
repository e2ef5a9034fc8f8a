"""Output of `correlate`: tables and JSON of correlations and grids, and what the numbers leave out."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Sequence

from rubric_measures.base.errors import UnknownNameError
from rubric_measures.cli.tables import as_json, number, render_table
from rubric_measures.meta_evaluation.intervals import CoefficientInterval, TopicTau
from rubric_measures.meta_evaluation.leaderboard_correlation import (
    DEFAULT_COEFFICIENTS,
    GridCell,
    LeaderboardCorrelation,
    RunScores,
    best_cells,
)
from rubric_measures.meta_evaluation.pair_agreement import PairAgreement

__all__ = ["render_correlations", "say_correlations"]

_LOG = logging.getLogger("rubric_measures")
_PAIRS = ("official", "found", "opposite", "agreement of both")


def _shown(one: CoefficientInterval, places: int) -> str:
    value = one.coefficient.value
    if value is None or one.interval is None:
        return number(value, places)
    if one.interval.low is None or one.interval.high is None:
        return f"{number(value, places)} [no interval]"
    return f"{number(value, places)} [{number(one.interval.low, places)}, {number(one.interval.high, places)}]"


def _fields(result: LeaderboardCorrelation, best: set[str], options: argparse.Namespace) -> list[str]:
    fields = []
    for one in result.coefficients:
        mark = "*" if one.coefficient.name in best else ""
        if options.output_format != "tsv":
            fields.append(_shown(one, options.places) + mark)
            continue
        interval = one.interval
        low, high = (interval.low, interval.high) if interval is not None else (None, None)
        values = [one.coefficient.value, low, high, one.coefficient.p_value]
        fields += ["" if value is None else number(value, options.places) for value in values]
    return fields


def _header(coefficients: Sequence[str], tsv: bool) -> list[str]:
    if not tsv:
        return list(coefficients)
    return [f"{prefix}{name}" for name in coefficients for prefix in ("", "low:", "high:", "p:")]


def render_correlations(
    official: RunScores,
    names: Sequence[str],
    results: Sequence[LeaderboardCorrelation],
    grid: Sequence[GridCell],
    options: argparse.Namespace,
) -> str:
    """What the command prints: leaderboards first, then the grid; `names` are the files of the results."""
    coefficients = list(options.coefficients or DEFAULT_COEFFICIENTS)
    best_by = options.best_by or coefficients[0]
    if best_by not in coefficients:
        raise UnknownNameError("coefficient", best_by, coefficients, hint="(--best-by names one that is computed)")
    best = best_cells(grid, best_by)
    if options.output_format == "json":
        return as_json(
            "correlate",
            {
                "official": {"path": options.official, "measure": official.name, "ranks": official.ranks},
                "leaderboards": [{"path": path, **_json(result)} for path, result in zip(names, results, strict=True)],
                "grid": [_grid_json(cell, index in best) for index, cell in enumerate(grid)],
                "bootstrap": {"rounds": options.rounds, "seed": options.seed, "level": options.level},
                "best_by": best_by,
            },
        )
    is_tsv = options.output_format == "tsv"
    parts = []
    if results:
        several = len(set(names)) > 1
        header = [*(["leaderboard"] if several else []), "measure", "runs", *_header(coefficients, is_tsv)]
        topics = any(result.topic_kendall is not None for result in results)
        if topics:
            header += _topic_header(is_tsv)
        tested = is_tsv and any(result.pairs is not None for result in results)
        if tested:
            header += [f"pairs:{name}" for name in _PAIRS]
        rows = []
        for path, result in zip(names, results, strict=True):
            row = [*([path] if several else []), result.name, str(len(result.runs))]
            row += _fields(result, set(), options)
            if topics:
                row += [*_topic(result.topic_kendall, options), *_topic(result.pooled_kendall, options)]
            if tested:
                row += [""] * len(_PAIRS) if result.pairs is None else _pairs(result.pairs, options)
            rows.append(row)
        parts.append(render_table(header, rows, options.output_format))
    pairs = [(result.name, result.pairs) for result in results if result.pairs is not None]
    if pairs and not is_tsv:
        rows = [[name, *_pairs(one, options)] for name, one in pairs]
        parts.append(render_table(["significantly different pairs", *_PAIRS], rows, options.output_format))
    if grid:
        header = ["measure", "llm", "prompt_class", "kind", "runs", *_header(coefficients, is_tsv)]
        if is_tsv:
            header.append("best")
        rows = []
        for index, cell in enumerate(grid):
            start = [cell.measure, cell.llm, cell.prompt_class, cell.kind]
            marks = {best_by} if index in best else set()
            if cell.result is None:
                fields = ["0", *["" if is_tsv else "undefined"] * len(_header(coefficients, is_tsv))]
            else:
                fields = [str(len(cell.result.runs)), *_fields(cell.result, marks, options)]
            rows.append([*start, *fields, *(["*" if marks else ""] if is_tsv else [])])
        parts.append(render_table(header, rows, options.output_format))
    return "\n".join(parts)


def _topic_header(tsv: bool) -> list[str]:
    names = ("topic_kendall", "pooled_kendall")
    return [f"{prefix}{name}" for name in names for prefix in (("", "low:", "high:") if tsv else ("",))]


def _topic(tau: TopicTau | None, options: argparse.Namespace) -> list[str]:
    """The cells of a τ at topic level: in TSV value, low and high; elsewhere one cell."""
    if options.output_format == "tsv":
        values = (None, None, None) if tau is None else (tau.interval.estimate, tau.interval.low, tau.interval.high)
        return ["" if value is None else number(value, options.places) for value in values]
    if tau is None:
        return ["-"]
    value, low, high = tau.interval.estimate, tau.interval.low, tau.interval.high
    if low is None or high is None:
        return [number(value, options.places)]
    return [f"{number(value, options.places)} [{number(low, options.places)}, {number(high, options.places)}]"]


def _pairs(one: PairAgreement, options: argparse.Namespace) -> list[str]:
    share = one.active_share
    empty = share is None and options.output_format == "tsv"
    counts = (one.reference_significant, one.recovered, one.active_disagreements)
    return [*map(str, counts), "" if empty else number(share, options.places)]


def _json(result: LeaderboardCorrelation) -> dict[str, object]:
    coefficients = []
    for one in result.coefficients:
        interval = one.interval
        coefficients.append(
            {
                "name": one.coefficient.name,
                "value": one.coefficient.value,
                "runs": one.coefficient.runs,
                "p_value": one.coefficient.p_value,
                "reason": one.coefficient.reason,
                "interval": None if interval is None else interval,
                "resampled": one.unit,
            }
        )
    return {
        "measure": result.name,
        "runs": result.runs,
        "missing": result.missing,
        "extra": result.extra,
        "coefficients": coefficients,
        "worst_run": result.worst_run,
        "worst_drop": result.worst_drop,
        "topic_kendall": result.topic_kendall,
        "pooled_kendall": result.pooled_kendall,
        "significant_pairs": result.pairs,
        "notes": result.notes,
    }


def _grid_json(cell: GridCell, best: bool) -> dict[str, object]:
    result = None if cell.result is None else _json(cell.result)
    start = {"llm": cell.llm, "prompt_class": cell.prompt_class, "kind": cell.kind, "measure": cell.measure}
    return {**start, "best": best, "reason": cell.reason, "result": result}


def _without_interval(result: LeaderboardCorrelation) -> dict[str, list[str]]:
    """Reason -> the coefficients that have a value, and for this reason no interval."""
    reasons: dict[str, list[str]] = {}
    for one in result.coefficients:
        if one.coefficient.value is not None and one.interval is not None and one.interval.low is None:
            reasons.setdefault(one.interval.reason, []).append(one.coefficient.name)
    return reasons


def say_correlations(results: Sequence[LeaderboardCorrelation]) -> int:
    """Notes what the numbers leave out, each once; 1 when official runs are missing or a coefficient is undefined."""
    notes: dict[str, int] = {}
    incomplete = False
    for result in results:
        if result.missing:
            incomplete = True
            names = ", ".join(result.missing[:5]) + (", …" if len(result.missing) > 5 else "")
            text = f"{len(result.missing)} official runs are missing and left out ({names})"
            notes[text] = notes.get(text, 0) + 1
        if result.extra:
            names = ", ".join(result.extra[:5]) + (", …" if len(result.extra) > 5 else "")
            text = f"{len(result.extra)} runs are not in the official leaderboard and left out ({names})"
            notes[text] = notes.get(text, 0) + 1
        for text in result.notes:
            notes[text] = notes.get(text, 0) + 1
        undefined: dict[str, list[str]] = {}
        for one in result.coefficients:
            if one.coefficient.value is None:
                incomplete = True
                undefined.setdefault(one.coefficient.reason, []).append(one.coefficient.name)
        for reason, names_of in undefined.items():
            text = f"{', '.join(names_of)} undefined: {reason}"
            notes[text] = notes.get(text, 0) + 1
        for reason, names_of in _without_interval(result).items():
            text = f"{', '.join(names_of)} without an interval: {reason}"
            notes[text] = notes.get(text, 0) + 1
    drops = [result for result in results if result.worst_drop]
    if drops:
        worst = max(drops, key=lambda result: result.worst_drop or 0.0)
        _LOG.info("the largest rank drop is %g, of run %s by %s", worst.worst_drop, worst.worst_run, worst.name)
    for text, count in notes.items():
        _LOG.warning("%s%s", text, f" (in {count} leaderboards)" if count > 1 else "")
    return 1 if incomplete else 0
