"""Agreement of labels: confusion, kappa, alpha; of two or more sources for the same documents, and their report.

Statistics of many confusion tables at once, so that data and bootstrap rounds run the same formulas. Tables are
(samples, labels, labels): the rows of each are the first source's labels, or the truth's. A value that does not exist
is NaN.

The labels of each grader against the truth's, with intervals: one grader in full, several as a leaderboard with groups
of equals.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rubric_measures.analysis.comparing import group_letters
from rubric_measures.analysis.resampling import (
    USUAL_DRAWS,
    Drawn,
    Draws,
    FloatArray,
    Interval,
    Resample,
    few_queries,
    groups_of_equals,
    ranged,
    ratio,
    within,
    without_width,
)
from rubric_measures.base.errors import InputError, counted, some_of
from rubric_measures.base.tables import Cell, Column, Report, Reported, Table, columns, declared, plain
from rubric_measures.measures.findings import Note, say
from rubric_measures.measures.grades import refuse_unreachable
from rubric_measures.types.scales import Scale

Level = Literal["nominal", "ordinal"]
# Name -> a value of every sample.
Columns = dict[str, FloatArray]
_SHARES = ("exact_match", "tpr", "tnr", "f1", "failed")


def distances(labels: FloatArray, quadratic: bool = False) -> FloatArray:
    """The weight of every pair of labels: [i ≠ j], or (i − j)²."""
    gaps = labels[:, None] - labels[None, :]
    result: FloatArray = gaps**2 if quadratic else (gaps != 0).astype(np.float64)
    return result


def kappas(tables: FloatArray, weights: FloatArray) -> FloatArray:
    """κ of every table; NaN where chance alone explains everything. See `kappa.kappa_of_confusion`."""
    observed = np.einsum("bij,ij->b", tables, weights)
    rows, columns = _margins(tables)
    chance = np.einsum("bj,bj->b", rows @ weights, columns)
    return 1.0 - ratio(observed * np.einsum("bi->b", rows), chance)


def _margins(tables: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The sums of rows and of columns; einsum adds up short axes several times faster than sum does."""
    return np.einsum("bij->bi", tables), np.einsum("bij->bj", tables)


def alphas(coincidences: FloatArray, values: FloatArray, level: Level) -> FloatArray:
    """Krippendorff's α of every coincidence matrix; NaN where one label only occurs.

    α = 1 − D_o / D_e over the coincidence matrix: o_ck = Σ_u (pairs c, k of unit u) / (m_u − 1), n_c = Σ_k o_ck,
    D_o = Σ o_ck δ²_ck, D_e = Σ n_c n_k δ²_ck / (n − 1). δ² = [c ≠ k] (nominal) or (Σ_{g=c..k} n_g − (n_c + n_k)/2)²
    (ordinal). The coincidences of two sources without missing labels are a confusion table and its transpose, added.
    α ≤ 1; 0 is chance.

    Source: Krippendorff, Computing Krippendorff's Alpha-Reliability (2011).
    """
    sizes, _ = _margins(coincidences)
    if level == "ordinal":
        # Σ_{g=c..k} n_g − (n_c + n_k)/2 is the distance of the groups' middles.
        middle = np.cumsum(sizes, axis=1) - sizes / 2.0
        gaps = middle[:, :, None] - middle[:, None, :]
        loss = gaps * gaps
    else:
        loss = np.broadcast_to(distances(values), coincidences.shape)
    observed = np.einsum("bij,bij->b", coincidences, loss)
    expected = np.einsum("bi,bi->b", sizes, np.einsum("bij,bj->bi", loss, sizes))
    result: FloatArray = 1.0 - (np.einsum("bi->b", sizes) - 1.0) * ratio(observed, expected)
    return result


def label_columns(tables: FloatArray, scale: FloatArray) -> Columns:
    """The statistics of whole labels by name; `bias` is the mean of second − first."""
    totals = np.einsum("bij->b", tables)
    both = tables + tables.transpose(0, 2, 1)
    return {
        "exact_match": ratio(np.einsum("bii->b", tables), totals),
        "kappa": kappas(tables, distances(scale)),
        "quadratic_kappa": kappas(tables, distances(scale, quadratic=True)),
        "alpha_nominal": alphas(both, scale, "nominal"),
        "alpha_ordinal": alphas(both, scale, "ordinal"),
        "bias": ratio(np.einsum("bij,ij->b", tables, scale[None, :] - scale[:, None]), totals),
    }


def binary_tables(
    tables: FloatArray, scale: FloatArray, cutoffs: Sequence[tuple[int, int]]
) -> dict[tuple[int, int], FloatArray]:
    """The tables of labels binarised at cutoffs of both sides, positive before negative: each (samples, 2, 2)."""
    sides = [((scale >= first, scale < first), (scale >= second, scale < second)) for first, second in cutoffs]
    cells = [np.outer(row, column).ravel() for rows, columns in sides for row in rows for column in columns]
    if not cells:
        return {}
    summed = tables.reshape(len(tables), -1) @ np.stack(cells, axis=1).astype(np.float64)
    return {pair: summed[:, 4 * place : 4 * place + 4].reshape(-1, 2, 2) for place, pair in enumerate(cutoffs)}


def rates_columns(tables: FloatArray) -> Columns:
    """κ of two-by-two tables, and TPR, TNR and F1 of the second source against the first, the truth.

    TPR = TP / P, TNR = TN / N, F1 = 2 TP / (2 TP + FP + FN).
    """
    hit, missed, alarm, rest = tables[:, 0, 0], tables[:, 0, 1], tables[:, 1, 0], tables[:, 1, 1]
    return {
        "kappa": kappas(tables, distances(np.array([1.0, 0.0]))),
        "tpr": ratio(hit, hit + missed),
        "tnr": ratio(rest, rest + alarm),
        "f1": ratio(2.0 * hit, 2.0 * hit + alarm + missed),
    }


def query_tables(
    a: NDArray[np.int_], b: NDArray[np.int_], queries: Sequence[str], names: Sequence[str], scale: Sequence[int]
) -> FloatArray:
    """A confusion table of each named query: (queries, labels, labels).

    Args:
        a: the first source's labels, all of the scale.
        b: the second's.
        queries: the query of each document, one of the names.
        names: the queries in the order that they are resampled in.
        scale: the labels, ascending.
    """
    place = {name: index for index, name in enumerate(names)}
    rows = np.array([place[query] for query in queries], dtype=np.intp)
    size = len(scale)
    cells = (rows * size + np.searchsorted(scale, a)) * size + np.searchsorted(scale, b)
    counts = np.bincount(cells, minlength=len(names) * size * size).astype(np.float64)
    return counts.reshape(len(names), size, size)


def column_intervals(
    tables: FloatArray, statistics: Callable[[FloatArray], Columns], engine: Resample
) -> tuple[dict[str, Interval], Columns]:
    """Statistics of summed tables with intervals over queries, and their bootstrap replicates.

    Args:
        tables: a table (of any square size) of each query.
        statistics: summed tables -> named values.
        engine: draws the queries.
    """
    flat = tables.reshape(len(tables), -1)
    names = list(statistics(tables.sum(axis=0, keepdims=True)))

    def values(counts: FloatArray) -> FloatArray:
        found = statistics((counts @ flat).reshape(-1, *tables.shape[1:]))
        return np.stack([found[name] for name in names], axis=1)

    drawn = engine.draw(values)
    replicates = dict(zip(names, drawn.replicates.T, strict=True))
    intervals = dict(zip(names, drawn.intervals("t"), strict=True))
    for name, one in intervals.items():
        base = name.split()[-1]
        if base != "bias":
            intervals[name] = within(one, 0.0 if base in _SHARES else -1.0)
    return intervals, replicates


def kappa_of_confusion(
    table: ArrayLike, labels: Sequence[int] | None = None, *, quadratic: bool = False
) -> float | None:
    """Cohen's κ of a confusion table.

    κ = 1 − Σ w_ij n_ij / Σ w_ij e_ij, e_ij = n_i. n_.j / n; w_ij = [i ≠ j] for Cohen's κ, and (l_i − l_j)² for
    quadratic weights, l being the label itself (not its position on the scale). In [−1, 1].

    Args:
        table: square counts.
        labels: the label of each row and column; 0, 1, … by default.
        quadratic: whether errors weigh by the square of their size.

    Returns:
        κ, or None where it is undefined: nothing was labelled, or both sources give one and the same label throughout.

    Source: Cohen (1960, 1968).

    >>> round(kappa_of_confusion([[20, 5], [10, 15]]), 4)
    0.4
    """
    counts = np.asarray(table, dtype=np.float64)
    scale = np.arange(len(counts), dtype=np.float64) if labels is None else np.asarray(labels, dtype=np.float64)
    value = float(kappas(counts[None], distances(scale, quadratic))[0])
    return None if np.isnan(value) else value


def _coincidences(table: FloatArray, present: NDArray[np.bool_], values: FloatArray) -> FloatArray:
    """What each unit adds to the coincidence matrix, (units, values, values); units have at least two labels."""
    counts = np.stack([((table == value) & present).sum(axis=0) for value in values], axis=1).astype(np.float64)
    weights = 1.0 / (counts.sum(axis=1) - 1.0)
    pairs = counts[:, :, None] * counts[:, None, :] - np.eye(len(values)) * counts[:, None, :]
    scaled: FloatArray = pairs * weights[:, None, None]
    return scaled


def alpha_intervals(ratings: FloatArray, queries: Sequence[str], draws: Draws = USUAL_DRAWS) -> dict[str, Interval]:
    """α (see `alphas`), nominal and ordinal, of two or more graders, with intervals over queries.

    Documents with fewer than two labels take no part.

    Args:
        ratings: one row a grader, one column a document; NaN is a missing label.
        queries: the query of each document.
        draws: rounds (0 for no intervals), seed and level.
    """
    present = ~np.isnan(ratings)
    usable = present.sum(axis=0) >= 2
    table, present = ratings[:, usable], present[:, usable]
    values = np.unique(table[present])
    of_unit = np.asarray(queries)[usable]
    names, rows = np.unique(of_unit, return_inverse=True)
    matrices = np.zeros((len(names), len(values), len(values)))
    np.add.at(matrices, rows, _coincidences(table, present, values))

    def statistics(summed: FloatArray) -> Columns:
        return {level: alphas(summed, values, level) for level in ("nominal", "ordinal")}

    return column_intervals(matrices, statistics, Resample(len(matrices), draws))[0]


_RATES = ("kappa", "tpr", "tnr", "f1")


# (query_id, doc_id), or (query_id, doc_id, item_id).
Key = tuple[str, ...]


@dataclass(frozen=True)
class LabelSource:
    """One grader's labels.

    Attributes:
        name: the grader, as it is printed.
        labels: (query_id, doc_id) -> relevance, or (query_id, doc_id, item_id) -> grade.
        scale: the scale that the labels are on, where it is known.
        failed: query_id -> how many grades failed, and how many there are with them; None where nobody knows.
        instead: whose grades a table has, where a grader was chosen and it is another.
        graded: document -> of how many items its label is the highest grade, where it is that.
        made: what the labels are made of, see `Grades.source`.
    """

    name: str
    labels: Mapping[Key, float]
    scale: Scale | None = None
    failed: Mapping[str, tuple[int, int]] | None = None
    instead: str = ""
    graded: Mapping[tuple[str, str], int] = field(default_factory=dict)
    made: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AtCutoff:
    """A grader's labels and the truth's, each binarised at a cutoff (positive: label ≥ cutoff).

    Attributes:
        truth: inclusive cutoff of the truth.
        grader: of the grader.
        both: documents that are positive in both.
        truth_only: in the truth only.
        grader_only: in the grader's labels only.
        neither: in none.
        kappa: Cohen's κ with its interval over queries.
        tpr: the share of the truth's positives that the grader finds.
        tnr: of its negatives.
        f1: of the grader's positives.
    """

    truth: int
    grader: int
    both: int
    truth_only: int
    grader_only: int
    neither: int
    kappa: Interval
    tpr: Interval
    tnr: Interval
    f1: Interval


@dataclass(frozen=True)
class GraderRow:
    """One grader against the truth.

    Attributes:
        grader: the grader, labels included.
        documents: how many documents both label.
        outside: how many of its labels are outside the truth's scale.
        statistics: name -> value with its interval over queries: `exact_match` (the share of documents with the same
            label), `kappa` (Cohen's), `quadratic_kappa`, `alpha_nominal`, `alpha_ordinal` (Krippendorff's), `bias`
            (mean of grader − truth) and, where it is known, `failed` (the share of the grader's grades that failed).
        limits: the limits of agreement of Bland and Altman: bias ± 1.96 standard deviations (n − 1) of the differences;
            None with fewer than two documents.
        labels: the labels that occur, ascending.
        confusion: rows are the truth's labels, columns the grader's.
        cutoffs: the labels binarised, a pair of cutoffs each.
    """

    grader: LabelSource
    documents: int
    outside: int
    statistics: Mapping[str, Interval]
    limits: tuple[float, float] | None
    labels: tuple[int, ...]
    confusion: tuple[tuple[int, ...], ...]
    cutoffs: tuple[AtCutoff, ...]

    @property
    def name(self) -> str:
        """The grader's name."""
        return self.grader.name


def _kappa(row: GraderRow) -> float:
    """κ for the order of graders; those without come last."""
    value = row.statistics["kappa"].estimate
    return -np.inf if value is None else value


def _row(
    truth: LabelSource,
    grader: LabelSource,
    keys: Sequence[Key],
    ends: tuple[int, int],
    names: Sequence[str],
    pairs: Sequence[tuple[int, int]],
    engine: Resample,
) -> tuple[GraderRow, FloatArray]:
    """A grader against the truth, and its κ in every bootstrap round.

    Source of the limits: Bland and Altman (Lancet 1986); in this field RAGElo (Rackauckas et al. 2024).
    """
    a, b = (np.array([one.labels[key] for key in keys], dtype=np.int_) for one in (truth, grader))
    scale = np.union1d(a, b)
    values = scale.astype(np.float64)

    def statistics(tables: FloatArray) -> Columns:
        found = label_columns(tables, values)
        for pair, binary in binary_tables(tables, values, pairs).items():
            found |= {f"{pair} {name}": column for name, column in rates_columns(binary).items()}
        return found

    tables = query_tables(a, b, [key[0] for key in keys], names, scale.tolist())
    intervals, drawn = column_intervals(tables, statistics, engine)
    whole = tables.sum(axis=0, keepdims=True)
    at = tuple(
        AtCutoff(*pair, *binary.astype(int).ravel().tolist(), *(intervals.pop(f"{pair} {name}") for name in _RATES))
        for pair, binary in binary_tables(whole, values, pairs).items()
    )
    if grader.failed is not None:
        lost = np.array([grader.failed.get(name, (0, 0)) for name in names], dtype=np.float64)
        # As a table of one row a query: failed grades before all of them.
        intervals |= column_intervals(
            lost[:, None, :], lambda tables: {"failed": ratio(tables[:, 0, 0], tables[:, 0, 1])}, engine
        )[0]
    outside = sum(not ends[0] <= label <= ends[1] for label in grader.labels.values())
    reach = 1.96 * float((b - a).std(ddof=1)) if len(keys) > 1 else None
    bias = float((b - a).mean())
    limits = None if reach is None else (bias - reach, bias + reach)
    counts = tuple(map(tuple, whole[0].astype(int).tolist()))
    return GraderRow(grader, len(keys), outside, intervals, limits, tuple(scale.tolist()), counts, at), drawn["kappa"]


@dataclass(frozen=True, repr=False)
class SourceAgreement(Reported):
    """How far label sources agree: every source but the truth is a grader, with a row.

    Attributes:
        truth: the labels that graders are held to.
        scale: the lowest and the highest label of the truth's scale.
        rows: the graders, the highest κ first.
        groups: groups of graders whose κ cannot be told apart, best first; empty without rounds.
        names: the sources.
        only_in: for each source, the documents that no other source labels.
        alphas: Krippendorff's α of all sources by level, missing labels allowed.
        lacking: source -> queries of all the others of which it labels no document.
        unused: source -> the labels of the scale that it never uses.
    """

    truth: LabelSource
    scale: tuple[int, int]
    rows: tuple[GraderRow, ...]
    groups: tuple[tuple[str, ...], ...]
    names: tuple[str, ...]
    only_in: tuple[int, ...]
    alphas: Mapping[str, Interval]
    lacking: Mapping[str, Sequence[str]]
    unused: Mapping[str, Sequence[int]]

    def report(self) -> Report:
        """One grader in full; of several the leaderboard, and α of all sources.

        For programs several graders are a row each, with `low:` and `high:` before the ends of intervals.
        """
        content = {
            "format": "rubric_measures agreement 5",
            "sources": self.names,
            "only_in": self.only_in,
            "alpha_all": self.alphas,
            "truth": {"source": self.truth.name, "scale": self.scale},
            "graders": [
                {**vars(row), "grader": row.name, "group": group_letters(row.name, self.groups)} for row in self.rows
            ],
            "groups": self.groups,
        }
        data = [_graders(self)] if len(self.rows) > 1 else ()
        return Report(_tables(self), data, lambda: plain(content))

    @property
    def is_complete(self) -> bool:
        """Whether every κ is defined."""
        return all(row.statistics["kappa"].estimate is not None for row in self.rows)

    def log_notes(self) -> None:
        """Logs what is left out or undefined."""
        say(self.notes)

    @property
    def notes(self) -> list[Note]:
        """What is left out or undefined."""
        return list(self._notes())

    def _notes(self) -> Iterator[Note]:
        for name, queries in self.lacking.items():
            text = f"{name} labels no document of {counted(len(queries), 'query')} (such as {queries[0]})"
            yield Note(text, (name, *queries), False)
        items = len(next(iter(self.truth.labels))) > 2
        for name, count in zip(self.names, self.only_in, strict=True):
            if count:
                left = f"{counted(count, 'item grade')} by" if items else f"{counted(count, 'document')} labelled by"
                yield Note(f"left out of the pairs: {left} {name} only", (name,))
        low, high = self.scale
        for row in self.rows:
            what = f"{row.name}: {row.outside} labels are outside the truth's scale ({low} to {high}) "
            if row.outside:
                yield Note(f"{what}and count as they are", (row.name,))
            if other := sum(row.grader.graded.get(key) not in (None, n) for key, n in self.truth.graded.items()):
                text = f"{row.name}: {counted(other, 'label')} of more or fewer items than the truth's"
                yield Note(f"{text}: compare grades of items?", (row.name,), settings=("items",))
        for name, labels in self.unused.items():
            yield Note(f"{name} never uses the label{'s' * (len(labels) > 1)} {some_of(labels, 12)}", (name,), False)
        for row in self.rows:
            if row.statistics["kappa"].estimate is None:
                text = f"{row.name} and {self.truth.name} give one and the same label throughout"
                yield Note(f"kappa and alpha are undefined: {text}", (row.name,))


def _whole(source: LabelSource) -> LabelSource:
    """The source, whose labels are whole numbers: κ and the tables count equal labels.

    Raises:
        InputError: a label has a fraction.
    """
    real = next((key for key, label in source.labels.items() if type(label) is not int and label % 1), None)
    if real is not None:
        raise InputError(
            f"{source.name}: agreement is of whole labels, and {'/'.join(real)} has {source.labels[real]}; write them "
            "as whole labels",
        )
    return source


def compare_sources(
    sources: Sequence[LabelSource],
    cutoffs: Sequence[tuple[int, int]] = (),
    *,
    scale: Sequence[int] | None = None,
    draws: Draws = USUAL_DRAWS,
    truth: int = 0,
) -> SourceAgreement:
    """Compares label sources by all agreement statistics: each grader with the truth, on the documents that both label.

    All graders see the same resampled queries: those in which one of them shares a document with the truth. Groups are
    of `Drawn.apart` of κ.

    Args:
        sources: two or more.
        cutoffs: (cutoff of the first, of the second and all others), inclusive; without any, each label of the truth's
            scale but the lowest, on both sides.
        scale: the labels that a source may use; by default the truth's scale, or from its lowest label to its highest.
        draws: of the intervals over queries; 0 rounds for none.
        truth: the source that all others are held to.

    Raises:
        InputError: fewer than two sources, labels with fractions, a source has no document in common with the truth, or
            a cutoff is above the scale.
    """
    sources = _comparable(sources, cutoffs)
    held, graders = sources[truth], [*sources[:truth], *sources[truth + 1 :]]
    ends = _source_ends(held, scale)
    _refuse_many(held.name if scale is None else "the scale", ends)
    common = [sorted(held.labels.keys() & grader.labels.keys()) for grader in graders]
    for grader, keys in zip(graders, common, strict=True):
        if not keys:
            such = ("/".join(min(one.labels, default=("nothing",))) for one in (held, grader))
            raise InputError(f"{held.name} and {grader.name} label no common document: {' against '.join(such)}")
    names = sorted({key[0] for keys in common for key in keys})
    pairs = [*dict.fromkeys(pair if truth == 0 else pair[::-1] for pair in cutoffs)]
    pairs = pairs or [(level, level) for level in range(ends[0] + 1, ends[1] + 1)]
    engine = Resample(len(names), draws)
    # Each grader's row, and its κ in every bootstrap round.
    found = [_row(held, *one, ends, names, pairs, engine) for one in zip(graders, common, strict=True)]
    found.sort(key=lambda one: (-_kappa(one[0]), one[0].name))
    rows = tuple(row for row, _ in found)
    kappas, drawn = np.array([_kappa(row) for row in rows]), np.stack([one for _, one in found], axis=1)
    apart = Drawn(kappas, drawn, drawn[:0], len(names), draws).apart()
    groups = groups_of_equals(kappas.tolist(), apart) if len(drawn) else []
    counts = Counter(key for source in sources for key in source.labels)
    every = sorted(counts)
    ratings = np.array([[source.labels.get(key, np.nan) for key in every] for source in sources], dtype=np.float64)
    asked = [{key[0] for key in source.labels} for source in sources]
    others = [set.intersection(*(some for some in asked if some is not own)) - own for own in asked]
    used = [set(map(int, source.labels.values())) for source in sources]
    together = set[int]().union(*used)
    labels = scale if scale is not None else range(min(0, *together), max(together) + 1)
    return SourceAgreement(
        held,
        ends,
        rows,
        tuple(tuple(rows[place].name for place in group) for group in groups),
        tuple(source.name for source in sources),
        tuple(sum(1 for key in source.labels if counts[key] == 1) for source in sources),
        alpha_intervals(ratings, [key[0] for key in every], draws),
        {source.name: sorted(queries) for source, queries in zip(sources, others, strict=True) if queries},
        {one.name: sorted(left) for one, of in zip(sources, used, strict=True) if (left := {*labels} - of)},
    )


def _comparable(sources: Sequence[LabelSource], cutoffs: Sequence[tuple[int, int]]) -> list[LabelSource]:
    """The sources, with ids as files have them; `compare_sources` says what is refused."""
    if len(sources) < 2:
        raise InputError("agreement needs two sources")
    for pair in cutoffs:
        for level, source in zip(pair, sources, strict=False):
            refuse_unreachable(source.scale, level, source.name)
    sources = list(map(_whole, sources))
    for source in sources:
        _refuse_many(source.name, source.labels.values(), 10_000)
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


# What people see of each of several graders.
_SHOWN = ("kappa", "quadratic_kappa", "alpha_ordinal", "bias", "failed")


def _tables(result: SourceAgreement) -> Iterator[Table]:
    yield from _in_full(result) if len(result.rows) == 1 else [_graders(result)]
    yield from _further_tables(result)
    if len(result.rows) > 1:
        rows: list[list[Cell]] = [
            [level, alpha.estimate, alpha.low, alpha.high] for level, alpha in result.alphas.items()
        ]
        heads = columns([f"alpha of all {len(result.names)} sources", "value", "low", "high"])
        yield Table(heads, rows, notes=without_width(result.alphas.items()))


def _in_full(board: SourceAgreement) -> Iterator[Table]:
    (row,) = board.rows
    shown = {name.replace("_", " "): of for name, of in row.statistics.items()}
    rows: list[list[Cell]] = [["pairs", row.documents, None, None]]
    rows += [[name, of.estimate, of.low, of.high] for name, of in shown.items()]
    rows += [["limits of agreement", None, *row.limits]] if row.limits else []
    notes = [f"bias: mean of {row.name} − {board.truth.name}", *without_width(shown.items())]
    yield Table(columns(["statistic", "value", "low", "high"]), rows, notes=notes)
    rows = [[str(label), *counts, sum(counts)] for label, counts in zip(row.labels, row.confusion, strict=True)]
    rows.append(["total", *(sum(column) for column in zip(*row.confusion, strict=True)), row.documents])
    yield Table(columns([f"{board.truth.name} \\ {row.name}", *map(str, row.labels), "total"]), rows)


def _graders(board: SourceAgreement) -> Table:
    """A row a grader; people see the cutoffs in a table of their own."""
    first = board.rows[0]
    cells: dict[Column | str, Callable[[GraderRow], Cell]] = {
        "grader": lambda row: row.name,
        "documents": lambda row: row.documents,
    }

    def programs(name: str) -> Column:
        return Column(name, only="programs", is_ranged=True)

    for name in dict.fromkeys(name for row in board.rows for name in row.statistics):
        head = programs(name)._replace(only="" if name in _SHOWN else "programs")
        cells[head] = lambda row, name=name: ranged(row.statistics.get(name))  # type: ignore[misc]
    cells["group"] = lambda row: group_letters(row.name, board.groups)
    cells[Column("outside", only="programs")] = lambda row: row.outside
    for place, at in enumerate(first.cutoffs):
        for rate in _RATES:
            head = programs(f"{rate}>={at.truth}/{at.grader}")
            cells[head] = lambda row, place=place, rate=rate: ranged(getattr(row.cutoffs[place], rate))  # type: ignore[misc]
    kappa = first.statistics["kappa"]
    few = few_queries(kappa.units) if len(board.rows) > 1 else ""
    shown = ((f"{name} of {row.name}", row.statistics.get(name)) for row in board.rows for name in _SHOWN)
    notes = [
        f"held to {board.truth.name}; bias: mean of grader − truth",
        *[f"group: {few}"] * bool(few),
        *without_width(shown),
    ]
    return declared(board.rows, cells, notes=notes)


def _further_tables(board: SourceAgreement) -> Iterator[Table]:
    every = [(row.name, at) for row in board.rows for at in row.cutoffs]
    rows: list[list[Cell]] = [
        [name, f">= {at.truth} / >= {at.grader}", at.both, at.truth_only, at.grader_only, at.neither,
         *(ranged(getattr(at, rate)) for rate in _RATES)]
        for name, at in every
    ]  # fmt: skip
    if rows:
        shown = ((f"{rate} of {name}", getattr(at, rate)) for name, at in every for rate in _RATES)
        counts = ["both", "truth only", "grader only", "neither"]
        heads = ["grader", "truth / grader", *counts, "kappa", "TPR", "TNR", "F1"]
        yield Table(columns(heads), rows, notes=without_width(shown))
