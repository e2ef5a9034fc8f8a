"""How label sources agree, as a report: two of them in full, several as a leaderboard of judges."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rubric_measures.base.tables import Cell, Report, Table, columns, letters, number, plain, ranged
from rubric_measures.meta_evaluation._bootstrap import Interval
from rubric_measures.meta_evaluation.judges import JudgeBoard, JudgeRow
from rubric_measures.meta_evaluation.label_sources import SourceAgreement
from rubric_measures.meta_evaluation.leaderboard_correlation import LeaderboardCorrelation

__all__ = ["agreement_report"]

# What the tables for reading show of a judge, under its heading.
_SHOWN = {
    "kappa": "kappa",
    "quadratic_kappa": "kappa quadratic",
    "alpha_ordinal": "alpha ordinal",
    "ac1": "AC1",
    "bias": "bias",
    "failed": "failed",
}
# What the JSON calls as the result does.
_SAME = ("only_in", "agreement", "intervals", "cutoffs", "query_kappa", "histograms")
_RATES = {"kappa": "kappa", "tpr": "TPR", "tnr": "TNR", "f1": "F1"}
_ALL = (
    *("kappa", "quadratic_kappa", "alpha_nominal", "alpha_ordinal", "ac1", "exact_match", "bias"),
    "failed",
)


def agreement_report(result: SourceAgreement, places: int = 4) -> Report:
    """What two sources agree on in full, then the judges; of more sources the judges, labels used and α of all.

    For programs several judges are a row each, with `low:` and `high:` before the ends of intervals.
    """
    content = {
        "format": "rubric_measures agreement 2",
        "sources": result.names,
        **{name: getattr(result, name) for name in _SAME},
        "alpha_all": result.alphas,
        "truth": {
            "source": result.judges.truth.name,
            "scale": result.judges.scale,
            "clamped": result.judges.is_clamped,
        },
        "judges": [_judge(row, result.judges) for row in result.judges.rows],
        "groups": result.judges.groups,
    }
    data = [_data(result.judges, places)] if len(result.names) > 2 else None
    return Report(_tables(result, places), data, lambda: plain(content))


def _judge(row: JudgeRow, board: JudgeBoard) -> dict[str, object]:
    return {
        "source": row.name,
        "documents": row.documents,
        "group": _group(row, board),
        "statistics": row.statistics,
        "cutoffs": [{"truth": truth, "judge": judge, **rates} for (truth, judge), rates in row.cutoffs.items()],
        "outside": row.outside,
        "leaderboard": row.leaderboard and _leaderboard(row.leaderboard),
    }


def _leaderboard(found: LeaderboardCorrelation) -> dict[str, object]:
    return {
        "measure": found.name,
        "runs": found.runs,
        "coefficients": [
            {name: getattr(one.coefficient, name) for name in ("name", "value", "reason")} | {"interval": one.interval}
            for one in found.coefficients
        ],
        "worst_run": found.worst_run,
        "worst_drop": found.worst_drop,
    }


def _group(row: JudgeRow, board: JudgeBoard) -> str:
    """The groups of a judge as letters: judges that share a letter cannot be told apart."""
    return letters(index for index, group in enumerate(board.groups) if row.name in group)


def _tables(result: SourceAgreement, places: int) -> Iterator[Table]:
    if len(result.names) == 2:
        yield from _pair_tables(result, places)
    yield from _judge_tables(result.judges, places)
    rows: list[list[Cell]] = [
        [name, *(histogram.counts.get(label, 0) for label in result.scale)]
        for name, histogram in zip(result.names, result.histograms, strict=True)
    ]
    yield Table(columns(["labels used", *map(str, result.scale)]), rows)
    if len(result.names) > 2:
        rows = [[level, alpha.estimate, alpha.low, alpha.high] for level, alpha in result.alphas.items()]
        yield Table(columns([f"alpha of all {len(result.names)} sources", "value", "low", "high"], places), rows)


def _pair_tables(result: SourceAgreement, places: int) -> Iterator[Table]:
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
             cell.exact_match, cell.kappa, *_ends(cell.interval)]
            for cell in result.cutoffs
        ]  # fmt: skip
        names = ["cutoffs", "both", "first only", "second only", "neither", "exact match", "kappa", "low", "high"]
        yield Table(columns(names, places), rows)


def _ends(interval: Interval | None) -> tuple[float | None, float | None]:
    return (None, None) if interval is None else (interval.low, interval.high)


def _statistics(result: SourceAgreement) -> list[list[Cell]]:
    """Name, value and interval; how κ spreads over queries has no interval, and says in words what its rows are."""
    one, spread = result.agreement, result.query_kappa
    names = {
        "exact match": "exact_match",
        "mean difference": "mean_difference",
        "kappa": "kappa",
        "kappa quadratic": "quadratic_kappa",
        "alpha nominal": "alpha_nominal",
        "alpha ordinal": "alpha_ordinal",
        "AC1": "ac1",
    }
    rows: list[list[Cell]] = [["pairs", one.pairs, None, None]]
    for name, field in names.items():
        interval = result.intervals[field]
        rows.append([name, interval.estimate, interval.low, interval.high])
    values: dict[str, Cell] = {
        "Bland-Altman low": one.bland_altman.low,
        "Bland-Altman bias": one.bland_altman.bias,
        "Bland-Altman high": one.bland_altman.high,
        "kappa per query: mean": spread.mean,
    }
    if spread.deviation is not None:
        values["kappa per query: deviation"] = spread.deviation
        values["kappa per query: least"] = spread.least
        values["kappa per query: median"] = spread.median
        values["kappa per query: greatest"] = spread.greatest
    return [*rows, *([name, value, None, None] for name, value in values.items())]


def _with_interval(interval: Interval | None, places: int) -> Cell:
    """A value with its interval behind it."""
    if interval is None or interval.estimate is None:
        return None
    return ranged(interval.estimate, interval.low, interval.high, places)


def _judge_tables(board: JudgeBoard, places: int) -> Iterator[Table]:
    shown = {name: head for name, head in _SHOWN.items() if any(name in row.statistics for row in board.rows)}
    rows: list[list[Cell]] = [
        [
            row.name,
            row.documents,
            *(_with_interval(row.statistics.get(name), places) for name in shown),
            _group(row, board),
        ]
        for row in board.rows
    ]
    yield Table(columns([f"judge of {board.truth.name}", "documents", *shown.values(), "group"]), rows)
    cutoffs: list[list[Cell]] = [
        [row.name, f">= {truth} / >= {judge}", *(_with_interval(rates[name], places) for name in _RATES)]
        for row in board.rows
        for (truth, judge), rates in row.cutoffs.items()
    ]
    if cutoffs:
        yield Table(columns(["judge", "truth / judge", *_RATES.values()]), cutoffs)
    boards: Sequence[tuple[str, LeaderboardCorrelation]] = [
        (row.name, row.leaderboard) for row in board.rows if row.leaderboard is not None
    ]
    if boards:
        names = [one.coefficient.name for one in boards[0][1].coefficients]
        rows = [
            [name, len(found.runs), *(_coefficient(found, index, places) for index in range(len(names))),
             found.worst_run if found.worst_drop else None]
            for name, found in boards
        ]  # fmt: skip
        yield Table(columns([f"leaderboard by {boards[0][1].name}", "runs", *names, "run that drops most"]), rows)


def _coefficient(found: LeaderboardCorrelation, index: int, places: int) -> Cell:
    one = found.coefficients[index]
    if one.interval is not None:
        return _with_interval(one.interval, places)
    return None if one.coefficient.value is None else number(one.coefficient.value, places)


def _data(board: JudgeBoard, places: int) -> Table:
    """A row a judge, a value a cell."""
    heads = ["judge", "documents", "group", "outside"]
    kept = [name for name in _ALL if any(name in row.statistics for row in board.rows)]
    pairs = list(board.rows[0].cutoffs)
    named = [*kept, *(f"{rate}>={truth}/{judge}" for truth, judge in pairs for rate in _RATES)]
    heads += [part + name for name in named for part in ("", "low:", "high:")]
    first = next((row.leaderboard for row in board.rows if row.leaderboard is not None), None)
    ranked = [] if first is None else [one.coefficient.name for one in first.coefficients]
    heads += [part + name for name in ranked for part in ("", "low:", "high:")]
    heads += ["worst_run"] if ranked else []
    rows: list[list[Cell]] = []
    for row in board.rows:
        cells: list[Cell] = [row.name, row.documents, _group(row, board), row.outside]
        found = [row.statistics.get(name) for name in kept]
        found += [row.cutoffs[pair][rate] for pair in pairs for rate in _RATES]
        for interval in found:
            cells += [None if interval is None else interval.estimate, *_ends(interval)]
        if ranked:
            board_of = row.leaderboard
            for index in range(len(ranked)):
                one = None if board_of is None else board_of.coefficients[index]
                cells += [None, None, None] if one is None else [one.coefficient.value, *_ends(one.interval)]
            cells.append(board_of.worst_run if board_of is not None and board_of.worst_drop else None)
        rows.append(cells)
    return Table(columns(heads, places), rows)
