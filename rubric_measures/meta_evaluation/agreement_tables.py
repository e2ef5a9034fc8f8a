"""The agreement of label sources as a report."""

from __future__ import annotations

from collections.abc import Iterator

from rubric_measures.base.tables import Cell, Report, Table, columns, plain
from rubric_measures.meta_evaluation.label_sources import SourceAgreement

__all__ = ["agreement_report"]


def agreement_report(result: SourceAgreement, places: int = 4) -> Report:
    """Statistics, confusion, cutoffs and histograms of label sources; with more than two, α of all."""
    content = {
        "format": "rubric_measures agreement 1",
        "sources": result.names,
        "only_in": result.only_in,
        "agreement": result.agreement,
        "kappa_interval": result.kappa_interval,
        "quadratic_kappa_interval": result.quadratic_interval,
        "cutoffs": result.cutoffs,
        "all_cutoffs": result.all_cutoffs,
        "topic_kappa": result.topic_kappa,
        "histograms": result.histograms,
        "alpha_all": {"nominal": result.alpha_nominal, "ordinal": result.alpha_ordinal},
    }
    return Report(_tables(result, places), content=lambda: plain(content))


def _tables(result: SourceAgreement, places: int) -> Iterator[Table]:
    yield Table(columns(["statistic", "value", "low", "high"], places), _statistics(result))
    one = result.agreement
    first, second = result.names[:2]
    rows: list[list[Cell]] = [
        [str(label), *counts, sum(counts)] for label, counts in zip(one.labels, one.confusion, strict=True)
    ]
    rows.append(["total", *(sum(column) for column in zip(*one.confusion, strict=True)), one.pairs])
    yield Table(columns([f"{first} \\ {second}", *map(str, one.labels), "total"]), rows)
    if result.cutoffs:
        rows = [
            [f">= {cell.cutoff_a} / >= {cell.cutoff_b}", cell.both, cell.only_a, cell.only_b, cell.neither,
             cell.exact_match, cell.kappa]
            for cell in result.cutoffs
        ]  # fmt: skip
        names = ["cutoffs", "both", "first only", "second only", "neither", "exact match", "kappa"]
        yield Table(columns(names, places), rows)
    rows = [
        [name, *(histogram.counts.get(label, 0) for label in result.scale)]
        for name, histogram in zip(result.names, result.histograms, strict=True)
    ]
    yield Table(columns(["labels used", *map(str, result.scale)]), rows)
    if len(result.names) > 2:
        rows = [["nominal", result.alpha_nominal], ["ordinal", result.alpha_ordinal]]
        yield Table(columns([f"alpha of all {len(result.names)} sources", "value"], places), rows)


def _statistics(result: SourceAgreement) -> list[list[Cell]]:
    """Name, value and interval; κ over topics has its range in the interval's place."""
    one, spread = result.agreement, result.topic_kappa
    intervals = {"kappa": result.kappa_interval, "kappa quadratic": result.quadratic_interval}
    values: dict[str, Cell] = {
        "pairs": one.pairs,
        "exact match": one.exact_match,
        "mean difference": one.mean_difference,
        "kappa": one.kappa,
        "kappa linear": one.linear_kappa,
        "kappa quadratic": one.quadratic_kappa,
        "alpha nominal": one.alpha_nominal,
        "alpha ordinal": one.alpha_ordinal,
        "Bland-Altman low": one.bland_altman.low,
        "Bland-Altman bias": one.bland_altman.bias,
        "Bland-Altman high": one.bland_altman.high,
        "kappa per topic: mean": spread.mean,
    }
    rows: list[list[Cell]] = []
    for name, value in values.items():
        interval = intervals.get(name)
        rows.append([name, value, *((None, None) if interval is None else (interval.low, interval.high))])
    if spread.deviation is not None:
        rows.append(["kappa per topic: deviation", spread.deviation, None, None])
        rows.append(["kappa per topic: median", spread.median, spread.low, spread.high])
    return rows
