"""What TREC runs and qrels hold: judgments, rankings in the one sort, runs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from rubric_measures.base.errors import InputError
from rubric_measures.base.sorting import compares_singles, in_order, singles

__all__ = ["Qrel", "Ranking", "Run", "ScoredIds", "count_disagreements", "make_run", "put_in_order"]


class Qrel(NamedTuple):
    """One judgment, with the fields of an ir_measures `Qrel`; `iteration` is the item (subtopic) of diversity qrels.

    A relevance without a fraction is an `int`.
    """

    query_id: str
    doc_id: str
    relevance: float
    iteration: str = "0"


class ScoredIds(list[str]):
    """The documents of one query in the one sort, with what a program needs that sorts them in its own way.

    Attributes:
        given: (doc_id, score) in the order of the file, by which some programs break ties.
    """

    __slots__ = ("given",)

    def __init__(self, doc_ids: Iterable[str], given: Sequence[tuple[str, float]]) -> None:
        super().__init__(doc_ids)
        self.given = given


@dataclass(frozen=True, slots=True)
class Ranking:
    """The documents of one query in the one sort: score descending, then doc_id descending (trec_eval's rule).

    Scores that differ only beyond single precision are equal where the trec_eval behind ir_measures takes them so.

    Attributes:
        doc_ids: the documents, best first; no document twice.
        scores: their scores, parallel to `doc_ids`; finite.
        as_given: the documents in the order of the file, where that is another one.
    """

    doc_ids: Sequence[str]
    scores: Sequence[float]
    as_given: Sequence[str] = field(default=(), compare=False)

    def __len__(self) -> int:
        return len(self.doc_ids)

    def with_scores(self, doc_ids: Sequence[str]) -> ScoredIds:
        """The documents with their scores.

        Args:
            doc_ids: what they are called, parallel to those of the ranking.
        """
        if not self.as_given:
            return ScoredIds(doc_ids, list(zip(doc_ids, self.scores, strict=True)))
        of_doc = dict(zip(self.doc_ids, zip(doc_ids, self.scores, strict=True), strict=True))
        return ScoredIds(doc_ids, [of_doc[doc_id] for doc_id in self.as_given])


@dataclass(frozen=True, slots=True)
class Run:
    """The rankings of one run.

    Attributes:
        run_id: the run's name.
        rankings: query id -> its ranking, in the order of the queries' first lines.
        rank_disagreements: neighbours whose rank column and scores disagree (the scores count).
    """

    run_id: str
    rankings: Mapping[str, Ranking]
    rank_disagreements: int = 0


def make_run(run_id: str, rows: Iterable[tuple[str, str, float]]) -> Run:
    """Builds a run from rows (query_id, doc_id, score) in any order.

    Raises:
        InputError: a score is not finite, or a document occurs twice for a query.
    """
    grouped: dict[str, tuple[list[str], list[float]]] = {}
    for query_id, doc_id, score in rows:
        doc_ids, scores = grouped.setdefault(query_id, ([], []))
        doc_ids.append(doc_id)
        scores.append(float(score))
    for query_id, (doc_ids, scores) in grouped.items():
        if len(set(doc_ids)) != len(doc_ids):
            raise InputError(f"run {run_id!r}, query {query_id!r}: document {_first_twice(doc_ids)!r} occurs twice")
        for doc_id, score in zip(doc_ids, scores, strict=True):
            if not math.isfinite(score):
                raise InputError(f"run {run_id!r}, query {query_id!r}, document {doc_id!r}: score {score} is no number")
    return Run(run_id, {query_id: put_in_order(doc_ids, scores) for query_id, (doc_ids, scores) in grouped.items()})


def put_in_order(doc_ids: Sequence[str], scores: Sequence[float]) -> Ranking:
    """The one sort: score, then doc_id, both descending; see `in_order`."""
    pairs = in_order(zip(scores, doc_ids, strict=True))
    return Ranking([doc_id for _, doc_id in pairs], [score for score, _ in pairs], doc_ids)


def count_disagreements(ranks: Iterable[str], scores: Iterable[float]) -> int:
    """Neighbours in the order of the ranks of which the later has the higher score; equal ranks say nothing.

    Where trec_eval compares scores in single precision, a score that is higher beyond it only is no higher one.
    """
    placed = list(zip(map(int, ranks), scores, strict=True))
    count = _count_higher(placed)
    if count:
        in_single = _count_higher(
            list(zip([rank for rank, _ in placed], singles(score for _, score in placed), strict=True))
        )
        if in_single != count and compares_singles():
            return in_single
    return count


def _count_higher(placed: Iterable[tuple[int, float]]) -> int:
    pairs = sorted((rank, -score) for rank, score in placed)
    return sum(earlier[0] < later[0] and earlier[1] > later[1] for earlier, later in pairwise(pairs))


def _first_twice(doc_ids: Iterable[str]) -> str:
    seen: set[str] = set()
    for doc_id in doc_ids:
        if doc_id in seen:
            return doc_id
        seen.add(doc_id)
    raise AssertionError("no document occurs twice")
