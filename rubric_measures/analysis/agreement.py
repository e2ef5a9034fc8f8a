"""Agreement of labels: confusion, kappa, alpha.

Statistics of many confusion tables at once, so that data and bootstrap rounds run the same formulas.

Tables are (samples, labels, labels): the rows of each are the first source's labels, or the truth's. A value that does
not exist is NaN.

Cohen's κ: confusion tables, weights, labels binarised at cutoffs.

Do two graders agree: all statistics of two label sources, Bland–Altman, histograms, κ by query.

What a panel of graders gains over its best member: numbers and their tables.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rubric_measures.analysis.resampling import USUAL_DRAWS, Draws, FloatArray, Interval, Resample, ratio
from rubric_measures.base.tables import Report, Table, columns
from rubric_measures.measures.combining import Gathered, Outcomes, Rule, compiled, member_rule, outcomes_of

Level = Literal["nominal", "ordinal"]
# Name -> a value of every sample.
Columns = dict[str, FloatArray]


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


def gwet_ac1(tables: FloatArray) -> FloatArray:
    """Gwet's AC1 of every table; the scale has as many labels as a table has rows. NaN with one label only.

    AC1 = (p_o − p_e) / (1 − p_e), p_e = Σ_k π_k (1 − π_k) / (K − 1), π_k the mean share of label k in both sources.

    Source: Gwet, Computing inter-rater reliability and its variance in the presence of high agreement (2008).
    """
    labels = tables.shape[1]
    rows, columns = _margins(tables)
    totals = np.einsum("bi->b", rows)
    if labels < 2:
        return np.full(len(tables), np.nan)
    shares = ratio((rows + columns) / 2.0, totals[:, None])
    chance = np.einsum("bi,bi->b", shares, 1.0 - shares) / (labels - 1)
    observed = ratio(np.einsum("bii->b", tables), totals)
    return ratio(observed - chance, 1.0 - chance)


def label_columns(tables: FloatArray, scale: FloatArray) -> Columns:
    """The statistics of whole labels by name; `mean_difference` is that of first − second."""
    totals = np.einsum("bij->b", tables)
    both = tables + tables.transpose(0, 2, 1)
    return {
        "exact_match": ratio(np.einsum("bii->b", tables), totals),
        "mean_difference": ratio(np.einsum("bij,ij->b", tables, scale[:, None] - scale[None, :]), totals),
        "kappa": kappas(tables, distances(scale)),
        "quadratic_kappa": kappas(tables, distances(scale, quadratic=True)),
        "alpha_nominal": alphas(both, scale, "nominal"),
        "alpha_ordinal": alphas(both, scale, "ordinal"),
        "ac1": gwet_ac1(tables),
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


def joint_scale(a: NDArray[np.int_], b: NDArray[np.int_], ends: tuple[int, int]) -> list[int]:
    """The labels of a scale, and those outside it that one of two sources uses; AC1 counts them."""
    return sorted({*range(ends[0], ends[1] + 1), *a.tolist(), *b.tolist()})


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
    """Statistics of summed tables with BCa intervals over queries, and their bootstrap replicates.

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
    return dict(zip(names, drawn.intervals(), strict=True)), replicates


def confusion(a: ArrayLike, b: ArrayLike, labels: Sequence[int]) -> FloatArray:
    """Counts of label pairs, one table: row i, column j is how often `a` says labels[i] and `b` says labels[j].

    Args:
        a: whole-number labels.
        b: the other source's, same documents in the same order.
        labels: the scale, ascending, with all labels that occur.

    >>> confusion([0, 1, 1], [0, 0, 1], [0, 1]).tolist()
    [[[1.0, 0.0], [1.0, 1.0]]]
    """
    left, right = np.asarray(a, dtype=np.int_), np.asarray(b, dtype=np.int_)
    return query_tables(left, right, [""] * len(left), [""], labels)


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


@dataclass(frozen=True, slots=True)
class BinaryAgreement:
    """Agreement of labels binarised at a cutoff on each side (positive: label ≥ cutoff).

    Attributes:
        cutoff_a: inclusive cutoff of the first source.
        cutoff_b: of the second.
        both: positive in both.
        only_a: positive in the first only.
        only_b: positive in the second only.
        neither: positive in none.
        kappa: Cohen's κ; None where it is undefined (both sources constant).
        interval: κ with its interval over queries; None where none was computed.
    """

    cutoff_a: int
    cutoff_b: int
    both: int
    only_a: int
    only_b: int
    neither: int
    kappa: float | None
    interval: Interval | None = None

    @property
    def exact_match(self) -> float:
        """The share of documents with the same binary label."""
        return (self.both + self.neither) / (self.both + self.only_a + self.only_b + self.neither)


def binary_agreement(a: ArrayLike, b: ArrayLike, cutoff_a: int, cutoff_b: int) -> BinaryAgreement:
    """Counts and κ of `a ≥ cutoff_a` against `b ≥ cutoff_b`.

    >>> binary_agreement([5, 4, 0], [3, 1, 0], 4, 2).kappa.__round__(4)
    0.4
    """
    x, y = np.asarray(a) >= cutoff_a, np.asarray(b) >= cutoff_b
    table = confusion(~x, ~y, [0, 1])[0].astype(int)
    both, only_a, only_b, neither = table.ravel().tolist()
    return BinaryAgreement(cutoff_a, cutoff_b, both, only_a, only_b, neither, kappa_of_confusion(table))


@dataclass(frozen=True, slots=True)
class BlandAltman:
    """Bias and limits of agreement of two sources on the same scale.

    Attributes:
        bias: mean of first − second.
        deviation: standard deviation of the differences (n − 1); None with fewer than two pairs.
        low: bias − 1.96 deviation.
        high: bias + 1.96 deviation.
        pairs: number of pairs.
    """

    bias: float
    deviation: float | None
    low: float | None
    high: float | None
    pairs: int


def bland_altman(a: ArrayLike, b: ArrayLike) -> BlandAltman:
    """Bland–Altman analysis: bias = mean(a − b), limits of agreement bias ± 1.96 SD.

    Args:
        a: numbers of the first source.
        b: of the second, same documents in the same order.

    Source: Bland and Altman (Lancet 1986); in this field RAGElo (Rackauckas et al. 2024).

    >>> result = bland_altman([1, 2, 3], [1, 1, 1])
    >>> result.bias, round(result.high, 2)
    (1.0, 2.96)
    """
    left, right = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    differences = left - right
    bias = float(differences.mean())
    if len(differences) < 2:
        return BlandAltman(bias, None, None, None, 1)
    deviation = float(differences.std(ddof=1))
    return BlandAltman(bias, deviation, bias - 1.96 * deviation, bias + 1.96 * deviation, len(differences))


@dataclass(frozen=True, slots=True)
class Histogram:
    """How often a source uses each label of its scale.

    Attributes:
        counts: label -> number of documents, ascending, also labels that never occur.
        unused: labels of the scale that never occur.
    """

    counts: dict[int, int]
    unused: tuple[int, ...]


def label_histogram(labels: Iterable[float], scale: Sequence[int]) -> Histogram:
    """The label histogram of a source; `unused` has the grades that a judge never gives.

    Args:
        labels: whole numbers.
        scale: the labels that the source may use.

    >>> label_histogram([0, 3, 3], range(4)).unused
    (1, 2)
    """
    found = Counter(map(int, labels))
    every = sorted({*scale, *found})
    return Histogram({label: found[label] for label in every}, tuple(label for label in every if not found[label]))


@dataclass(frozen=True, slots=True)
class QuerySpread:
    """How κ spreads over queries.

    Attributes:
        values: query -> value, None where undefined there.
        mean: over the queries where it is defined; None without any.
        deviation: standard deviation over queries (n − 1); None with fewer than two.
        least: the smallest value; not the end of an interval.
        median: the middle one.
        greatest: the largest value.
        undefined: number of queries where it is undefined.
    """

    values: dict[str, float | None]
    mean: float | None
    deviation: float | None
    least: float | None
    median: float | None
    greatest: float | None
    undefined: int


def query_spread(a: NDArray[np.int_], b: NDArray[np.int_], queries: Sequence[str]) -> QuerySpread:
    """Cohen's κ of the two sources per query."""
    names, scale = sorted(set(queries)), np.unique(np.concatenate([a, b]))
    found = kappas(query_tables(a, b, queries, names, scale.tolist()), distances(scale.astype(np.float64)))
    values = {name: None if np.isnan(one) else float(one) for name, one in zip(names, found, strict=True)}
    known = found[~np.isnan(found)]
    if not len(known):
        return QuerySpread(values, None, None, None, None, None, len(values))
    deviation = float(known.std(ddof=1)) if len(known) > 1 else None
    least, median, greatest = (float(one) for one in (known.min(), np.median(known), known.max()))
    undefined = len(values) - len(known)
    return QuerySpread(values, float(known.mean()), deviation, least, median, greatest, undefined)


def _coincidences(table: FloatArray, present: NDArray[np.bool_], values: FloatArray) -> FloatArray:
    """What each unit adds to the coincidence matrix, (units, values, values); units have at least two labels."""
    counts = np.stack([((table == value) & present).sum(axis=0) for value in values], axis=1).astype(np.float64)
    weights = 1.0 / (counts.sum(axis=1) - 1.0)
    pairs = counts[:, :, None] * counts[:, None, :] - np.eye(len(values)) * counts[:, None, :]
    scaled: FloatArray = pairs * weights[:, None, None]
    return scaled


def alpha_intervals(ratings: FloatArray, queries: Sequence[str], draws: Draws = USUAL_DRAWS) -> dict[str, Interval]:
    """α (see `alphas`), nominal and ordinal, of two or more graders, with BCa intervals over queries.

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


@dataclass(frozen=True, slots=True)
class Agreement:
    """All agreement statistics of two label sources, on the documents that both label.

    Attributes:
        pairs: number of documents.
        labels: the joint scale, ascending.
        confusion: rows are the first source's labels, columns the second's.
        exact_match: share of documents with the same label.
        mean_difference: mean of first − second.
        kappa: Cohen's κ.
        quadratic_kappa: with quadratic weights.
        alpha_nominal: Krippendorff's α, nominal.
        alpha_ordinal: Krippendorff's α, ordinal.
        bland_altman: bias and limits of agreement.
    """

    pairs: int
    labels: tuple[int, ...]
    confusion: tuple[tuple[int, ...], ...]
    exact_match: float
    mean_difference: float
    kappa: float | None
    quadratic_kappa: float | None
    alpha_nominal: float | None
    alpha_ordinal: float | None
    bland_altman: BlandAltman


def agreement(a: ArrayLike, b: ArrayLike) -> Agreement:
    """All agreement statistics of two label sources over the same documents.

    >>> agreement([0, 1, 2, 2], [0, 1, 1, 2]).exact_match
    0.75
    """
    left, right = np.asarray(a, dtype=np.int_), np.asarray(b, dtype=np.int_)
    labels = np.unique(np.concatenate([left, right])).tolist()
    table = confusion(left, right, labels)
    found = label_columns(table, np.array(labels, dtype=np.float64))
    values = {name: None if np.isnan(column[0]) else float(column[0]) for name, column in found.items()}
    kappa, quadratic, nominal, ordinal = (
        values[name] for name in ("kappa", "quadratic_kappa", "alpha_nominal", "alpha_ordinal")
    )
    means, limits = (float((left == right).mean()), float((left - right).mean())), bland_altman(left, right)
    counts = tuple(map(tuple, table[0].astype(int).tolist()))
    return Agreement(len(left), tuple(labels), counts, *means, kappa, quadratic, nominal, ordinal, limits)


@dataclass(frozen=True)
class MemberAgreement:
    """A member of a panel against what the other members say together.

    Attributes:
        name: the member.
        grades: items of passages that it has a grade of.
        missing: those that another member has a grade of, and this one has none.
        compared: grades that are compared with those of the rest.
        same: the share of them that are equal to those of the rest; None without any.
        kappa: Cohen's κ with the rest; None where it is undefined.
        quadratic: κ with quadratic weights likewise.
        difference: how much higher its grades are on average.
    """

    name: str
    grades: int
    missing: int
    compared: int
    same: float | None
    kappa: float | None
    quadratic: float | None
    difference: float | None


@dataclass(frozen=True)
class Reached:
    """How well one grader, or several together, agree with the judgments.

    Attributes:
        name: the grader.
        kappa: Cohen's κ of its labels with the judgments, both cut to relevant or not; None where it is undefined.
    """

    name: str
    kappa: float | None


@dataclass(frozen=True)
class PanelReport:
    """What a panel says, its members, and what it gains.

    Attributes:
        name: the panel.
        members: each against the rest.
        reached: each member, then the panel, on the same judged passages.
        grades: grades of the panel.
        lost: items of passages of which it has none.
        is_panel: whether the members vote; else one stands in for another, and how they agree says nothing.
        passages: judged passages behind κ; 0 without judgments.
        cutoff: the least label and the least judgment that are relevant.
    """

    name: str
    members: Sequence[MemberAgreement]
    reached: Sequence[Reached]
    grades: int
    lost: int
    is_panel: bool
    passages: int
    cutoff: tuple[int, int]

    @property
    def gain(self) -> tuple[str, float] | None:
        """The best member by κ, and how much higher the panel is; None where one of them is unknown."""
        values = {one.name: one.kappa for one in self.reached[:-1] if one.kappa is not None}
        panel = self.reached[-1].kappa
        if panel is None or len(values) < len(self.reached) - 1:
            return None
        best = max(values, key=lambda name: values[name])
        return best, panel - values[best]

    def report(self, places: int = 4) -> Report:
        """What `base.tables.render` shows in any form."""
        heads = ("member", "grades", "missing", "compared", "same", "kappa", "quadratic kappa", "higher by")
        size = len(heads) if self.is_panel else 3
        why = "too few members have a grade" if self.is_panel else "no member has one"
        rest = Table(
            columns(heads[:size], places),
            [astuple(one)[:size] for one in self.members],
            title="each member against the rest" if self.is_panel else "members, the preferred first",
            notes=[f"{self.name}: {self.grades} grades, {self.lost} without one ({why})"],
        )
        if not self.passages:
            note = "no judgments: whether the panel is better than a member is not known"
            return Report([Table(rest.columns, rest.rows, rest.title, [*rest.notes, note])], content=self._content)
        notes = []
        if self.gain:
            best, gain = self.gain
            than = f"is {abs(gain):.4f} {'above' if gain > 0 else 'below'}" if gain else "equals"
            notes.append(f"kappa with the judgments: the panel {than} its best member, {best}")
        label, judged = self.cutoff
        notes.append(f"kappa of {self.passages} judged passages: labels from {label}, judgments from {judged} on")
        reached = Table(columns(("grader", "kappa"), places), [*map(astuple, self.reached)], "what is reached", notes)
        return Report([rest, reached], content=self._content)

    def _content(self) -> dict[str, object]:
        content = asdict(self)
        del content["is_panel"]
        return {**content, "gain": {"kappa": dict(zip(("best", "gain"), self.gain, strict=True))} if self.gain else {}}


def panel_report(
    gathered: Gathered, name: str, outcomes: Outcomes, rest: Callable[[int], Rule] | None, cutoff: tuple[int, int]
) -> PanelReport:
    """What a panel says, each member against the rest, and what the panel gains over its best member.

    Args:
        gathered: what the members say.
        name: of the panel.
        outcomes: what they say together.
        rest: from a member's place to the rule of the others, which takes what all say; for κ one that gives whole
            grades; None where the members are no panel.
        cutoff: the least label and the least judgment that are relevant.
    """
    places = range(len(gathered.names))
    everybody = [outcomes_of(gathered, member_rule(place)) for place in places]
    judged = _judged(gathered, [*everybody, outcomes])
    names = [*gathered.names, name]
    reached = [
        Reached(one, binary_agreement(labels, judged[-1], *cutoff).kappa)
        for one, labels in zip(names, judged, strict=False)
    ]
    grades = [one.grade is not None for found in outcomes.values() for one in found.values()]
    return PanelReport(
        name,
        [_member(gathered, place, rest(place) if rest else lambda _: None) for place in places],
        reached,
        sum(grades),
        len(grades) - sum(grades),
        rest is not None,
        len(judged[-1]),
        cutoff,
    )


def _member(gathered: Gathered, place: int, rest: Rule) -> MemberAgreement:
    mine: list[float] = []
    theirs: list[float] = []
    grades = missing = 0
    for table in gathered.said.values():
        for row in table.values():
            said, others = row[place], rest(row)
            if said is None or said.grade is None:
                missing += any(one is not None and one.grade is not None for one in row)
                continue
            grades += 1
            if others is not None and others.grade is not None:
                mine.append(said.grade)
                theirs.append(others.grade)
    count = len(mine)
    return MemberAgreement(
        gathered.names[place],
        grades,
        missing,
        count,
        sum(a == b for a, b in zip(mine, theirs, strict=True)) / count if count else None,
        _panels_kappa(mine, theirs),
        _panels_kappa(mine, theirs, quadratic=True),
        (sum(mine) - sum(theirs)) / count if count else None,
    )


def _panels_kappa(a: Sequence[float], b: Sequence[float], quadratic: bool = False) -> float | None:
    """κ of grades; None without any, and where some have a fraction, which κ does not know."""
    if not a or not all(type(grade) is int for grade in (*a, *b)):
        return None
    labels: list[Any] = sorted({*a, *b})
    return kappa_of_confusion(confusion(a, b, labels)[0], labels, quadratic=quadratic)


def _judged(gathered: Gathered, everybody: Sequence[Outcomes]) -> list[list[float]]:
    """The labels of each, and last the judgments, of the judged passages that all of them label, in one order."""
    labels: list[Mapping[tuple[str, str], float]] = [
        {
            (query_id, doc_id): label
            for query_id, query in compiled(gathered, outcomes).queries.items()
            for doc_id, label in query.labels("max").items()
        }
        for outcomes in everybody
    ]
    keys = [key for key in gathered.judgments if all(key in of_one for of_one in labels)]
    return [[of_one[key] for key in keys] for of_one in [*labels, gathered.judgments]]
