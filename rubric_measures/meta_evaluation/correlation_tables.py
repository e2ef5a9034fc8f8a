"""Correlations of leaderboards, and grids of them, as a report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from rubric_measures.base.errors import UnknownNameError
from rubric_measures.base.tables import Cell, Column, Marked, Report, Table, letters, number, plain, ranged
from rubric_measures.meta_evaluation.intervals import CoefficientInterval, QueryTau
from rubric_measures.meta_evaluation.leaderboard_correlation import (
    GridCell,
    LeaderboardCorrelation,
    PairAgreement,
    RunScores,
    best_cells,
)
from rubric_measures.meta_evaluation.noise_free import NoiseFreeTau
from rubric_measures.meta_evaluation.picking import Pick

__all__ = ["correlation_report"]

_PAIRS = ("official", "found", "opposite", "agreement of both")
_QUERY = ("query_kendall", "pooled_kendall")


@dataclass(frozen=True)
class _Shape:
    """How many columns a coefficient has: one for reading, one a number for programs."""

    coefficients: Sequence[str]
    places: int
    is_data: bool

    def heads(self, names: Sequence[str], parts: Sequence[str]) -> list[str]:
        """The columns of these coefficients; `parts` are those of programs."""
        return [f"{prefix}{name}" for name in names for prefix in (parts if self.is_data else ("",))]

    def coefficient(self, one: CoefficientInterval, is_best: bool) -> list[Cell]:
        """The cells of a coefficient: for programs value, low, high and p."""
        value, interval = one.coefficient.value, one.interval
        low, high = (None, None) if interval is None else (interval.low, interval.high)
        if self.is_data:
            return [value, low, high, one.coefficient.p_value]
        shown = ranged(value, low, high, self.places)
        if value is not None and interval is not None and (low is None or high is None):
            shown += " [no interval]"
        return [Marked(shown) if is_best else shown]

    def tau(self, tau: QueryTau | NoiseFreeTau | None) -> list[Cell]:
        """The cells of a τ at query level, or without noise: for programs value, low and high."""
        value = low = high = None
        if isinstance(tau, QueryTau):
            value, low, high = tau.interval.estimate, tau.interval.low, tau.interval.high
        elif tau is not None:
            value, low, high = tau.expected, tau.low, tau.high
        return [value, low, high] if self.is_data else [ranged(value, low, high, self.places)]

    def table(self, left: Sequence[str], right: Sequence[str], rows: Sequence[Sequence[Cell]]) -> Table:
        heads = [Column(name, self.places, is_left=index == 0) for index, name in enumerate((*left, *right))]
        return Table(heads, rows)


def correlation_report(
    official: RunScores,
    path: str,
    results: Sequence[tuple[str, LeaderboardCorrelation]],
    grid: Sequence[GridCell],
    coefficients: Sequence[str],
    best_by: str | None,
    places: int,
    bootstrap: Mapping[str, object],
    pick: Pick | None = None,
    together: Sequence[Sequence[int]] | None = None,
) -> Report:
    """Leaderboards first, then the grid.

    Args:
        official: the official column.
        path: its file.
        results: each leaderboard's file and what was found.
        grid: the cells of a grid.
        coefficients: the coefficients that were computed.
        best_by: the one whose best cells are marked; the first by default.
        places: decimal places; -1 prints all digits.
        bootstrap: rounds, seed and level, for the JSON.
        pick: by how much the best of the grid flatters; None where nobody asked.
        together: places of results that the first coefficient cannot tell apart; None where nobody knows.

    Raises:
        UnknownNameError: `best_by` was not computed.
    """
    name = best_by or coefficients[0]
    if name not in coefficients:
        raise UnknownNameError("coefficient", name, coefficients, settings=("best_by",))
    best = best_cells(grid, name)
    own: list[str] = []
    if together is not None:
        own = [letters(at for at, group in enumerate(together) if place in group) for place in range(len(results))]

    def tables(is_data: bool) -> Iterator[Table]:
        shape = _Shape(coefficients, places, is_data)
        pairs = [(result.name, result.pairs) for _, result in results if result.pairs is not None]
        if results:
            yield _boards(results, shape, own, coefficients[0])
        if pairs and not is_data:
            rows = [[measure, *_pair_cells(one)] for measure, one in pairs]
            yield shape.table(["significantly different pairs"], _PAIRS, rows)
        if grid:
            yield _grid(grid, shape, best, name, pick)

    content = {
        "format": "rubric_measures correlate 1",
        "official": {"path": path, "measure": official.name, "ranks": official.ranks},
        "leaderboards": [
            {"path": path, **_json(result), "group": own[place] if own else None}
            for place, (path, result) in enumerate(results)
        ],
        "grid": [_grid_json(cell, index in best) for index, cell in enumerate(grid)],
        "bootstrap": bootstrap,
        "best_by": name,
        "pick": None if pick is None else {**plain(pick), "flattery": pick.flattery},
    }
    return Report(tables(False), tables(True), lambda: plain(content))


def _boards(
    results: Sequence[tuple[str, LeaderboardCorrelation]], shape: _Shape, own: Sequence[str], first: str
) -> Table:
    several = len({path for path, _ in results}) > 1
    paired = len({result.official for _, result in results}) > 1
    has_queries = any(result.query_kendall is not None for _, result in results)
    has_free = any(result.noise_free is not None for _, result in results)
    has_pairs = shape.is_data and any(result.pairs is not None for _, result in results)
    heads = shape.heads(shape.coefficients, ("", "low:", "high:", "p:"))
    heads += shape.heads(_QUERY, ("", "low:", "high:")) if has_queries else []
    heads += shape.heads(["kendall_noise_free"], ("", "low:", "high:")) if has_free else []
    heads += [f"pairs:{name}" for name in _PAIRS] if has_pairs else []
    rows = []
    for place, (path, result) in enumerate(results):
        row: list[Cell] = [*([path] if several else []), *([result.official] if paired else [])]
        row += [result.name, len(result.runs), *([own[place]] if own else [])]
        for one in result.coefficients:
            row += shape.coefficient(one, False)
        if has_queries:
            row += [*shape.tau(result.query_kendall), *shape.tau(result.pooled_kendall)]
        if has_free:
            row += shape.tau(result.noise_free)
        if has_pairs:
            row += [None] * len(_PAIRS) if result.pairs is None else _pair_cells(result.pairs)
        rows.append(row)
    left = [
        *(["leaderboard"] if several else []),
        *(["official"] if paired else []),
        "measure",
        "runs",
        *(["group"] if own else []),
    ]
    table = shape.table(left, heads, rows)
    if not own:
        return table
    note = f"group: what shares a letter cannot be told apart by {first}; all see the same resampled queries"
    return replace(table, notes=[note])


def _grid(grid: Sequence[GridCell], shape: _Shape, best: frozenset[int], best_by: str, pick: Pick | None) -> Table:
    heads = shape.heads(shape.coefficients, ("", "low:", "high:", "p:"))
    rows = []
    for index, cell in enumerate(grid):
        row: list[Cell] = [cell.measure, cell.llm, cell.prompt_class, cell.kind]
        if cell.result is None:
            row += [0, *[None] * len(heads)]
        else:
            row.append(len(cell.result.runs))
            for one in cell.result.coefficients:
                row += shape.coefficient(one, index in best and one.coefficient.name == best_by)
        rows.append([*row, *(["*" if index in best else ""] if shape.is_data else [])])
    left = ["measure", "llm", "prompt_class", "kind", "runs"]
    table = shape.table(left, [*heads, *(["best"] if shape.is_data else [])], rows)
    return replace(table, notes=[_flattery(pick, shape)]) if pick is not None else table


def _flattery(pick: Pick, shape: _Shape) -> str:
    """What the best of a grid is worth."""
    if pick.flattery is None or pick.same is None:
        return f"by how much the best flatters is not known: {pick.reason}"
    return (
        f"picked as the best of {pick.cells} on {pick.queries} queries, {pick.coefficient} is "
        f"{number(pick.chosen, shape.places)} there and {number(pick.held_out, shape.places)} on {pick.queries} others "
        f"(mean of {pick.splits} splits; {100 * pick.same:.0f} % pick what is best on all): the pick flatters by "
        f"{number(abs(pick.flattery), shape.places)}"
    )


def _pair_cells(one: PairAgreement) -> list[Cell]:
    return [one.reference_significant, one.recovered, one.active_disagreements, one.active_share]


def _json(result: LeaderboardCorrelation) -> dict[str, object]:
    named = {"name": "measure", "pairs": "significant_pairs"}
    coefficients = [
        {**plain(one.coefficient), "interval": one.interval, "resampled": one.unit} for one in result.coefficients
    ]
    return {named.get(name, name): value for name, value in vars(result).items()} | {"coefficients": coefficients}


def _grid_json(cell: GridCell, best: bool) -> dict[str, object]:
    result = None if cell.result is None else _json(cell.result)
    start = {"llm": cell.llm, "prompt_class": cell.prompt_class, "kind": cell.kind, "measure": cell.measure}
    return {**start, "best": best, "reason": cell.reason, "result": result}
