"""Two or more sources of labels for the same documents: how far they agree, and their tables.

How label sources agree, as a report: two of them in full, several as a leaderboard of judges.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rubric_measures.analysis.agreement import (
    Agreement,
    BinaryAgreement,
    Columns,
    Histogram,
    QuerySpread,
    agreement,
    alpha_intervals,
    binary_agreement,
    binary_tables,
    column_intervals,
    joint_scale,
    label_columns,
    label_histogram,
    query_spread,
    query_tables,
    rates_columns,
)
from rubric_measures.analysis.leaderboards import LeaderboardCorrelation
from rubric_measures.analysis.panels import Judge, JudgeBoard, JudgeRow, judge_board
from rubric_measures.analysis.resampling import USUAL_DRAWS, Draws, FloatArray, Interval, Resample, few_queries
from rubric_measures.base.errors import InputError
from rubric_measures.base.tables import Cell, Report, Table, columns, letters, number, plain, ranged, render
from rubric_measures.formats.trec import spaced_ids, written_id
from rubric_measures.measures.labels import Key, LabelSource
from rubric_measures.types.scales import refuse_unreachable


def _as_written(source: LabelSource) -> LabelSource:
    """The source with ids as TREC files have them, so that records and qrels can be compared."""
    if not any(spaced_ids(set(column)) for column in zip(*source.labels, strict=True)):
        return source
    labels = {tuple(map(written_id, key)): label for key, label in source.labels.items()}
    failed = source.failed and {written_id(query): counts for query, counts in source.failed.items()}
    return replace(source, labels=labels, failed=failed)


@dataclass(frozen=True)
class SourceAgreement:
    """How far label sources agree; pairwise numbers are of the first two, and `judges` has every source but the truth.

    Attributes:
        names: the sources.
        only_in: for each source, the documents that no other source labels.
        aligned: the labels of the first two on their common documents, in order of the documents' keys.
        agreement: all statistics of the first two.
        intervals: the statistics of `agreement` by name, and `ac1`, with their intervals over queries.
        cutoffs: binarised at the cutoffs asked for.
        query_kappa: κ per query.
        histograms: label histogram of each source, all its labels.
        scale: the labels that the histograms count.
        alphas: Krippendorff's α of all sources by level, missing labels allowed.
        judges: every source but the truth against the truth.
    """

    names: tuple[str, ...]
    only_in: tuple[int, ...]
    aligned: tuple[NDArray[np.int_], NDArray[np.int_]]
    agreement: Agreement
    intervals: Mapping[str, Interval]
    cutoffs: tuple[BinaryAgreement, ...]
    query_kappa: QuerySpread
    histograms: tuple[Histogram, ...]
    scale: tuple[int, ...]
    alphas: Mapping[str, Interval]
    judges: JudgeBoard

    def __repr__(self) -> str:
        return f"<SourceAgreement of {' and '.join(self.names)} on {self.agreement.pairs} pairs>"

    def __str__(self) -> str:

        return "".join(render(agreement_report(self), "text")).rstrip("\n")


def _whole(source: LabelSource) -> LabelSource:
    """The source, whose labels are whole numbers: κ and the tables count equal labels.

    Raises:
        InputError: a label has a fraction.
    """
    real = next((key for key, label in source.labels.items() if type(label) is not int and label % 1), None)
    if real is not None:
        raise InputError(
            f"{source.name}: agreement is of whole labels, and {'/'.join(real)} has {source.labels[real]}; take the "
            "most probable grade (mode) or the median instead of the expected one",
            settings=("grade",),
        )
    return source


def compare_sources(
    sources: Sequence[LabelSource],
    cutoffs: Sequence[tuple[int, int]] = (),
    *,
    scale: Sequence[int] | None = None,
    draws: Draws = USUAL_DRAWS,
    truth: int = 0,
    clamp: bool = False,
) -> SourceAgreement:
    """Compares label sources by all agreement statistics.

    Args:
        sources: two or more; pairwise statistics are of the first two, α is of all.
        cutoffs: (cutoff of the first, of the second and all others), inclusive. Judges without any are binarised at
            each label of the truth's scale but the lowest, on both sides.
        scale: the labels that a source may use; by default from the smallest (or 0) to the largest that any uses.
        draws: of the intervals over queries; 0 rounds for none.
        truth: the source that all others are judged by.
        clamp: bring labels outside the truth's scale (what `scale` says, else its own, else the labels that it uses) to
            its nearest end; how many there were of each judge stands in `judges`.

    Raises:
        InputError: fewer than two sources, labels with fractions, the first two have no document in common, or a cutoff
            is above the scale.
    """
    sources = _comparable(sources, cutoffs)
    ends = _source_ends(sources[truth], scale)
    _refuse_many(sources[truth].name if scale is None else "the scale", ends)
    outside = [sum(not ends[0] <= label <= ends[1] for label in source.labels.values()) for source in sources]
    if clamp:
        sources = [_clamped(one, ends) if place != truth else one for place, one in enumerate(sources)]
    first, second = sources[0].labels, sources[1].labels
    common = sorted(first.keys() & second.keys())
    a, b = (np.array([labels[key] for key in common], dtype=np.int_) for labels in (first, second))
    queries = [key[0] for key in common]
    counts = Counter(key for source in sources for key in source.labels)
    every = sorted(counts)
    used = {int(value) for source in sources for value in source.labels.values()}
    labels = tuple(scale) if scale is not None else tuple(range(min(0, *used), max(used) + 1))
    ratings = np.array([[source.labels.get(key, np.nan) for key in every] for source in sources], dtype=np.float64)
    intervals, by_cutoff = _intervals(a, b, queries, ends, cutoffs, draws)
    judges = [
        Judge(source.name, source.labels, source.failed, count)
        for place, (source, count) in enumerate(zip(sources, outside, strict=True))
        if place != truth
    ]
    return SourceAgreement(
        tuple(source.name for source in sources),
        tuple(sum(1 for key in source.labels if counts[key] == 1) for source in sources),
        (a, b),
        agreement(a, b),
        intervals,
        tuple(by_cutoff[pair] for pair in cutoffs),
        query_spread(a, b, queries),
        tuple(label_histogram(list(source.labels.values()), labels) for source in sources),
        tuple(sorted({*labels, *used})),
        alpha_intervals(ratings, [key[0] for key in every], draws),
        judge_board(
            Judge(sources[truth].name, sources[truth].labels),
            judges,
            ends,
            [pair if truth == 0 else pair[::-1] for pair in cutoffs],
            draws,
            is_clamped=clamp,
        ),
    )


def _comparable(sources: Sequence[LabelSource], cutoffs: Sequence[tuple[int, int]]) -> list[LabelSource]:
    """The sources, with ids as files have them; `compare_sources` says what is refused."""
    if len(sources) < 2:
        raise InputError("agreement needs two sources")
    for pair in cutoffs:
        for level, source in zip(pair, sources, strict=False):
            if source.scale is not None:
                refuse_unreachable(source.scale, level, source.name)
    sources = list(map(_as_written, map(_whole, sources)))
    first, second = sources[0].labels, sources[1].labels
    for source in sources:
        _refuse_many(source.name, source.labels.values(), 10_000)
    if first.keys().isdisjoint(second):
        raise InputError(
            f"{sources[0].name} and {sources[1].name} label no common document: "
            f"{'/'.join(min(first, default=('nothing',)))} against {'/'.join(min(second, default=('nothing',)))}"
        )
    return sources


def _refuse_many(name: str, labels: Iterable[float], most: int = 200) -> None:
    """Tables over all pairs of the truth's labels at all cutoffs would fill the memory; longer histograms, too."""
    low, high = min(0, 0, *labels), max(0, 0, *labels)
    if high - low > most:
        raise InputError(
            f"{name}: labels from {low} to {high} are too many for agreement, which takes {most} (of the truth 200): "
            "are they scores, or is one a slip?"
        )


def _source_ends(truth: LabelSource, scale: Sequence[int] | None) -> tuple[int, int]:
    """The lowest and the highest label of the truth's scale: as said, as it is known, or as it is used."""
    if scale is not None:
        return min(scale), max(scale)
    if truth.scale is not None:
        return truth.scale.lowest, truth.scale.highest
    return int(min(truth.labels.values(), default=0)), int(max(truth.labels.values(), default=0))


def _clamped(source: LabelSource, ends: tuple[int, int]) -> LabelSource:
    labels = {key: min(max(label, ends[0]), ends[1]) for key, label in source.labels.items()}
    return replace(source, labels=labels)


def _intervals(
    a: NDArray[np.int_],
    b: NDArray[np.int_],
    queries: Sequence[str],
    ends: tuple[int, int],
    cutoffs: Sequence[tuple[int, int]],
    draws: Draws,
) -> tuple[dict[str, Interval], dict[tuple[int, int], BinaryAgreement]]:
    """The statistics of two sources with their intervals, and κ at the cutoffs."""
    found = {pair: binary_agreement(a, b, *pair) for pair in cutoffs}
    scale = joint_scale(a, b, ends)
    values = np.array(scale, dtype=np.float64)

    def statistics(tables: FloatArray) -> Columns:
        named = label_columns(tables, values)
        for (x, y), binary in binary_tables(tables, values, list(found)).items():
            named[f"{x} {y}"] = rates_columns(binary)["kappa"]
        return named

    by_query = query_tables(a, b, queries, sorted(set(queries)), scale)
    intervals, _ = column_intervals(by_query, statistics, Resample(len(by_query), draws))
    at = {(x, y): replace(one, interval=intervals.pop(f"{x} {y}")) for (x, y), one in found.items()}
    return intervals, at


def whole_answers(sources: Sequence[LabelSource]) -> list[LabelSource]:
    """The sources with generated answers whole, each under the name of its run, where none of their ids are alike.

    The answer of the run `concise` to the query `q01` is the document `concise` in assignments, `concise/q01` in files
    of others, and the passages `concise/q01/1`, `concise/q01/2`, … of a pool. The label of a whole answer is the
    highest of its passages. Sources whose first two have a document in common are given back as they are.
    """
    keys = [set(source.labels) for source in sources[:2]]
    if len(keys) < 2 or keys[0] & keys[1]:
        return list(sources)
    named = [{key: (key[0], _run_of_answer(*key[:2]), *key[2:]) for key in source.labels} for source in sources]
    if not set(named[0].values()) & set(named[1].values()):
        return list(sources)
    whole = []
    for source, names in zip(sources, named, strict=True):
        labels: dict[Key, float] = {}
        for key, label in source.labels.items():
            name = names[key]
            labels[name] = max(label, labels.get(name, label))
        merged = len(source.labels) - len(labels)
        if merged:
            text = "%s: %d labels of passages of answers became those of whole answers, the highest of each"
            logging.getLogger("rubric_measures").info(text, source.name, len(source.labels))
        whole.append(replace(source, labels=labels))
    return whole


def _run_of_answer(query_id: str, doc_id: str) -> str:
    """The run of `RUN/QUERY` and of `RUN/QUERY/NUMBER`; any other id as it is."""
    start, _, last = doc_id.rpartition("/")
    name = start if last.isascii() and last.isdigit() and start.endswith(f"/{query_id}") else doc_id
    return name.removesuffix(f"/{query_id}") or doc_id


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
    data = [_data(result.judges, places)] if len(result.names) > 2 else ()
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
    few = (
        few_queries(max((row.statistics["kappa"].units for row in board.rows), default=0))
        if len(board.rows) > 1
        else ""
    )
    heads = columns([f"judge of {board.truth.name}", "documents", *shown.values(), "group"])
    yield Table(heads, rows, notes=[f"group: {few}"] * bool(few and board.rows[0].statistics["kappa"].low is not None))
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
