"""Where labels come from (qrels, graded records, their judgments, item grades), and how far several sources agree."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from rubric_measures.base.entities import TestBank
from rubric_measures.base.errors import InputError
from rubric_measures.base.scales import SELF_RATING
from rubric_measures.base.tables import Cell, Report, Table, columns, plain, render
from rubric_measures.formats.trec import read_qrels
from rubric_measures.formats.trec_ids import spaced_ids, written_id
from rubric_measures.grades.compiled import BANK_DOC, Grades, Label
from rubric_measures.grades.grade_sets import GradeFilter
from rubric_measures.grades.loading import load_records
from rubric_measures.grades.qrels import note_counted
from rubric_measures.grades.rows import build_grades
from rubric_measures.meta_evaluation._bootstrap import USUAL_DRAWS, Draws, Interval
from rubric_measures.meta_evaluation.agreement import (
    Agreement,
    Histogram,
    QuerySpread,
    agreement,
    krippendorff_alpha,
    label_histogram,
    query_spread,
)
from rubric_measures.meta_evaluation.kappa import (
    BinaryAgreement,
    binary_agreement,
    binary_at_all_cutoffs,
    kappa_interval,
)
from rubric_measures.meta_evaluation.workbench_tables import JudgedPassage
from rubric_measures.records.streaming import GradedFile, PassageGroup

__all__ = [
    "LabelSource",
    "SourceAgreement",
    "agreement_report",
    "compare_sources",
    "judgments_of_records",
    "labels_of_grades",
    "labels_of_qrels",
    "labels_of_records",
    "passages_of_records",
]

# (query_id, doc_id), or (query_id, doc_id, item_id).
Key = tuple[str, ...]
T = TypeVar("T")


@dataclass(frozen=True)
class LabelSource:
    """One grader's labels.

    Attributes:
        name: the grader, as it is printed.
        labels: (query_id, doc_id) -> relevance, or (query_id, doc_id, item_id) -> grade.
    """

    name: str
    labels: Mapping[Key, int]


def labels_of_grades(
    grades: Grades, name: str, *, items: bool = False, label: Label = "max", rel: int | None = None
) -> LabelSource:
    """The labels, or the item grades, of compiled grades; failed grades give none.

    Args:
        grades: the grades.
        name: of the source.
        items: item grades, not passage labels.
        label: see `QueryGrades.labels`.
        rel: see `QueryGrades.labels`.
    """
    if items:
        rows: dict[Key, int] = {
            (row.query_id, row.doc_id, row.iteration): row.relevance
            for query in grades.queries.values()
            for row in query.rows()
        }
        return LabelSource(name, rows)
    if label == "count" and rel is None:
        note_counted(grades.queries.values(), name)
    return LabelSource(
        name,
        {
            (query_id, doc_id): value
            for query_id, query in grades.queries.items()
            for doc_id, value in query.labels(label, rel).items()
        },
    )


def labels_of_records(
    path: str | os.PathLike[str],
    bank: TestBank | None = None,
    wanted: GradeFilter | None = None,
    *,
    items: bool = False,
    label: Label = "max",
    rel: int | None = None,
) -> LabelSource:
    """The labels (or item grades) of one grade set of graded records.

    Raises:
        InputError: no grade set, or more than one, passes the filter.
    """
    chosen = wanted or GradeFilter()
    parts = [part for part in (chosen.llm, chosen.prompt_class, chosen.prompt_type, chosen.grade_set) if part]
    name = " ".join([os.path.basename(os.fspath(path)), *parts])  # noqa: PTH119 - may be a stream
    return labels_of_grades(load_records(path, bank, chosen), name, items=items, label=label, rel=rel)


def labels_of_qrels(
    path: str | os.PathLike[str], *, items: bool = False, label: Label = "max", rel: int | None = None
) -> LabelSource:
    """The labels of a qrels file; of item qrels (several rows a document) the labels that the item grades imply."""
    rows = [row for row in read_qrels(path) if row.doc_id != BANK_DOC]
    name = os.path.basename(os.fspath(path))  # noqa: PTH119 - may be a stream
    labels: dict[Key, int] = {(row.query_id, row.doc_id): row.relevance for row in rows}
    if items or len(labels) < len(rows):
        return labels_of_grades(build_grades(rows), name, items=items, label=label, rel=rel)
    return LabelSource(name, labels)


def _consume(consume: Callable[[Iterator[PassageGroup]], T], path: str | os.PathLike[str]) -> T:
    with GradedFile(path) as source:
        return source.consume(consume)


def judgments_of_records(path: str | os.PathLike[str]) -> LabelSource:
    """The judgments inside graded records: the highest one that a passage has for its query.

    Raises:
        InputError: there is no judgment.
    """

    def judged(groups: Iterator[PassageGroup]) -> dict[Key, int]:
        labels: dict[Key, int] = {}
        for group in groups:
            for passage in group.passages:
                label = passage.judged(group.query_id)
                if label is not None:
                    labels[group.query_id, passage.doc_id] = label
        return labels

    labels = _consume(judged, path)
    name = os.path.basename(os.fspath(path))  # noqa: PTH119 - may be a stream
    if not labels:
        raise InputError(f"{os.fspath(path)}: holds no judgments")
    return LabelSource(f"judgments of {name}", labels)


def passages_of_records(
    path: str | os.PathLike[str], bank: TestBank | None = None, wanted: GradeFilter | None = None
) -> list[JudgedPassage]:
    """The passages of graded records as the workbench's tables see them: all item grades, all judgments.

    Where several grade sets pass the filter, the first of each passage counts, as in that program.

    Raises:
        InputError: the grades are on another scale than 0 to 5, which is that of the tables.
    """
    grades = load_records(path, bank, replace(wanted or GradeFilter(), first=True))
    if grades.scale is not None and grades.scale[:2] != SELF_RATING[:2]:
        raise InputError(
            f"the workbench's tables are of grades 0 to 5, and these are on the scale {grades.scale}; leave tables out",
            settings=("tables",),
        )
    of_passage: dict[Key, list[int]] = {}
    for query in grades.queries.values():
        for row in query.rows():
            of_passage.setdefault((row.query_id, row.doc_id), []).append(row.relevance)

    def together(groups: Iterator[PassageGroup]) -> list[JudgedPassage]:
        return [
            JudgedPassage(
                tuple(of_passage.get((group.query_id, passage.doc_id), ())),
                tuple(judgment.relevance for judgment in passage.judgments),
            )
            for group in groups
            for passage in group.passages
        ]

    return _consume(together, path)


def _as_written(source: LabelSource) -> LabelSource:
    """The source with ids as TREC files have them, so that records and qrels can be compared.

    Raises:
        InputError: two ids of the source are written alike.
    """
    forms = [spaced_ids(set(column)) for column in zip(*source.labels, strict=True)]
    if not any(forms):
        return source
    return LabelSource(source.name, {tuple(map(written_id, key)): label for key, label in source.labels.items()})


@dataclass(frozen=True)
class SourceAgreement:
    """How far label sources agree; pairwise numbers are of the first two.

    Attributes:
        names: the sources.
        only_in: for each source, the documents that no other source labels.
        aligned: the labels of the first two on their common documents, in order of the documents' keys.
        agreement: all statistics of the first two.
        kappa_interval: κ over queries; None when no interval was asked for.
        quadratic_interval: quadratic κ likewise.
        cutoffs: binarised at the cutoffs asked for.
        all_cutoffs: binarised at every pair of cutoffs.
        query_kappa: κ per query.
        histograms: label histogram of each source, all its labels.
        scale: the labels that the histograms count.
        alpha_nominal: Krippendorff's α of all sources, missing labels allowed.
        alpha_ordinal: the same, ordinal.
    """

    names: tuple[str, ...]
    only_in: tuple[int, ...]
    aligned: tuple[NDArray[np.int_], NDArray[np.int_]]
    agreement: Agreement
    kappa_interval: Interval | None
    quadratic_interval: Interval | None
    cutoffs: tuple[BinaryAgreement, ...]
    all_cutoffs: tuple[BinaryAgreement, ...]
    query_kappa: QuerySpread
    histograms: tuple[Histogram, ...]
    scale: tuple[int, ...]
    alpha_nominal: float | None
    alpha_ordinal: float | None

    def __repr__(self) -> str:
        return f"<SourceAgreement of {' and '.join(self.names)} on {self.agreement.pairs} pairs>"

    def __str__(self) -> str:
        return "".join(render(agreement_report(self), "text")).rstrip("\n")


def compare_sources(
    sources: Sequence[LabelSource],
    cutoffs: Sequence[tuple[int, int]] = (),
    *,
    scale: Sequence[int] | None = None,
    draws: Draws = USUAL_DRAWS,
) -> SourceAgreement:
    """Compares label sources by all agreement statistics.

    Args:
        sources: two or more; pairwise statistics are of the first two, α is of all.
        cutoffs: (cutoff of the first, of the second), inclusive.
        scale: the labels that a source may use; by default from the smallest (or 0) to the largest that any uses.
        draws: of κ's intervals over queries; 0 rounds for none.

    Raises:
        InputError: fewer than two sources, or the first two have no document in common.
    """
    if len(sources) < 2:
        raise InputError("agreement needs two sources")
    sources = list(map(_as_written, sources))
    first, second = sources[0].labels, sources[1].labels
    common = sorted(first.keys() & second.keys())
    if not common:
        raise InputError(
            f"{sources[0].name} and {sources[1].name} label no common document: "
            f"{'/'.join(min(first, default=('nothing',)))} against {'/'.join(min(second, default=('nothing',)))}"
        )
    a, b = (np.array([labels[key] for key in common], dtype=np.int_) for labels in (first, second))
    queries = [key[0] for key in common]
    every = sorted({key for source in sources for key in source.labels})
    counts = {key: sum(key in source.labels for source in sources) for key in every}
    used = {value for source in sources for value in source.labels.values()}
    labels = tuple(scale) if scale is not None else tuple(range(min(0, *used), max(used) + 1))
    ratings = np.array([[source.labels.get(key, np.nan) for key in every] for source in sources], dtype=np.float64)
    kappa = quadratic = None
    if draws.rounds:
        kappa = kappa_interval(a, b, queries, draws=draws)
        quadratic = kappa_interval(a, b, queries, "quadratic", draws)
    return SourceAgreement(
        tuple(source.name for source in sources),
        tuple(sum(1 for key in source.labels if counts[key] == 1) for source in sources),
        (a, b),
        agreement(a, b),
        kappa,
        quadratic,
        tuple(binary_agreement(a, b, *pair) for pair in cutoffs),
        tuple(binary_at_all_cutoffs(a, b)),
        query_spread(a, b, queries),
        tuple(label_histogram(list(source.labels.values()), labels) for source in sources),
        tuple(sorted({*labels, *used})),
        krippendorff_alpha(ratings, "nominal"),
        krippendorff_alpha(ratings, "ordinal"),
    )


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
        "query_kappa": result.query_kappa,
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
    """Name, value and interval; κ over queries has its range in the interval's place."""
    one, spread = result.agreement, result.query_kappa
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
        "kappa per query: mean": spread.mean,
    }
    rows: list[list[Cell]] = []
    for name, value in values.items():
        interval = intervals.get(name)
        rows.append([name, value, *((None, None) if interval is None else (interval.low, interval.high))])
    if spread.deviation is not None:
        rows.append(["kappa per query: deviation", spread.deviation, None, None])
        rows.append(["kappa per query: median", spread.median, spread.low, spread.high])
    return rows
