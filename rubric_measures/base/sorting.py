"""The one sort of runs (score, then document id, both descending, as trec_eval), and records' rankings by rank."""

from __future__ import annotations

import functools
import operator
from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from itertools import islice, pairwise
from operator import itemgetter
from typing import Any, NamedTuple, TypeVar

from rubric_measures.base.errors import InputError

Scored = TypeVar("Scored", bound=tuple[Any, ...])


@functools.cache
def compares_singles() -> bool:
    """Whether the trec_eval behind ir_measures compares scores in single precision (older ones do), and not in double.

    An evaluation of two documents tells; asked only where an order depends on it.
    """
    from pytrec_eval import RelevanceEvaluator

    found = RelevanceEvaluator({"q": {"a": 1}}, {"recip_rank"}).evaluate({"q": {"a": 1 + 1e-12, "b": 1.0}})
    return bool(found["q"]["recip_rank"] < 1)


def in_order(scored: Iterable[Scored]) -> list[Scored]:
    """Tuples that begin with score and doc_id in the one sort: by score, ties by document id, both descending.

    Scores that are equal in single precision alone compare as the trec_eval behind ir_measures compares them.

    Args:
        scored: in any order; scores must not be NaN.
    """
    ordered = sorted(scored, reverse=True)
    single = array("f", [one[0] for one in ordered]).tolist()
    depends_on_precision = any(map(operator.eq, single, islice(single, 1, None))) and any(
        single[place] == single[place + 1] and ordered[place][1] < ordered[place + 1][1]
        for place in range(len(ordered) - 1)
    )
    return in_single(ordered) if depends_on_precision and compares_singles() else ordered


def in_single(scored: Sequence[Scored]) -> list[Scored]:
    """The same by score in single precision, ties by document id, both descending."""
    keyed = zip(array("f", [one[0] for one in scored]).tolist(), scored, strict=True)
    return [one for _, one in sorted(keyed, key=lambda pair: (pair[0], pair[1][1]), reverse=True)]


def ranked(scored: Iterable[tuple[str, float]]) -> Sequence[str]:
    """The document ids of one query, best first, in the one sort; see `in_order`.

    Args:
        scored: (doc_id, score) in any order; scores must not be NaN.

    >>> ranked([("a", 1.0), ("c", 2.0), ("b", 1.0)])
    ['c', 'b', 'a']
    """
    return [doc_id for _, doc_id in in_order((score, doc_id) for doc_id, score in scored)]


class Gap(str):
    """What stands at a rank whose document the records lack: an id that no document of the query has.

    It is a document nobody graded, to our measures and to those of others, so what stands below it keeps its rank.
    """

    __slots__ = ()


class Placed(NamedTuple):
    """A ranking of records.

    Attributes:
        doc_ids: best first; a `Gap` at each rank that no record has.
        disagreements: neighbours of which the later has the higher score, though its rank is lower.
    """

    doc_ids: Sequence[str]
    disagreements: int


class RankNotes(NamedTuple):
    """What is to be said of rankings by rank, counted.

    Attributes:
        gaps: ranks without a record.
        without: rankings that have some.
        places: neighbours whose scores say another order than their ranks.
        disagreeing: rankings that have some.
    """

    gaps: int = 0
    without: int = 0
    places: int = 0
    disagreeing: int = 0

    def adding(self, placed: Placed) -> RankNotes:
        """The counts with those of one more ranking."""
        gaps = sum(type(doc_id) is Gap for doc_id in placed.doc_ids)
        if not gaps and not placed.disagreements:
            return self
        return RankNotes(
            self.gaps + gaps,
            self.without + (gaps > 0),
            self.places + placed.disagreements,
            self.disagreeing + (placed.disagreements > 0),
        )

    def say(self, name: str = "") -> None:
        """Says it, once."""
        import logging

        log, start = logging.getLogger("rubric_measures"), f"{name}: " if name else ""
        if self.gaps:
            log.warning(
                "%s%d ranks of %d rankings have no record; they count as passages without grades",
                start,
                self.gaps,
                self.without,
            )
        if self.disagreeing:
            log.warning(
                "%sthe ranks disagree with the scores in %d rankings (%d places); the ranks count",
                start,
                self.disagreeing,
                self.places,
            )


_NO_RECORD = "no-record-"
# Gaps by rank, made once: rankings have the same ones.
_gaps: list[str] = []


def by_rank(
    places: Iterable[tuple[int, float, str]], known: Collection[str] = (), query: str = "", run_id: str = ""
) -> Placed:
    """The documents of one query as the ranks of records place them, whatever their scores.

    Ranks count from 1, or from 0 where one is 0. Documents of one rank stand by score, then id, both descending; what
    follows them stands no higher than its rank says. Every rank above the last that nothing stands at is a `Gap`.

    Args:
        places: (rank, score, doc_id) in any order.
        known: further ids that no gap may have.
        query: where the ranking is, for errors.
        run_id: whose it is, for errors.

    Raises:
        InputError: a document stands twice in the ranking.

    >>> by_rank([(4, 0.5, "b"), (1, 2.0, "a"), (2, 1.0, "c")]).doc_ids
    ['a', 'c', 'no-record-3', 'b']
    """
    ordered = sorted(places, key=itemgetter(1, 2), reverse=True)
    ordered.sort(key=itemgetter(0))
    ranks = [rank for rank, _, _ in ordered]
    doc_ids = [doc_id for _, _, doc_id in ordered]
    scores = [score for _, score, _ in ordered]
    if len(set(doc_ids)) < len(doc_ids):
        twice = next(doc_id for doc_id, count in Counter(doc_ids).items() if count > 1)
        raise InputError(f"{query}: passage {twice!r} occurs twice in the ranking of {run_id!r}; keep one of them")
    disagreements = 0
    if scores != sorted(scores, reverse=True):
        disagreements = sum(one[0] < other[0] and one[1] < other[1] for one, other in pairwise(ordered))
    start = int(bool(ranks) and ranks[0] == 0)
    if ranks == list(range(1 - start, len(ranks) + 1 - start)):
        return Placed(doc_ids, disagreements)
    places_of, last = [], 0
    for rank in ranks:
        last = max(last + 1, rank + start)
        places_of.append(last)
    if last == len(ranks):
        return Placed(doc_ids, disagreements)
    result = _gaps_to(last, "\n".join([*known, *doc_ids]))
    for place, doc_id in zip(places_of, doc_ids, strict=True):
        result[place - 1] = doc_id
    return Placed(result, disagreements)


def _gaps_to(last: int, known: str) -> list[str]:
    """A gap for each rank up to the last; none has an id that occurs in the text `known`."""
    prefix = _NO_RECORD
    while prefix in known:
        prefix = f"no-{prefix}"
    if prefix != _NO_RECORD:
        return [Gap(f"{prefix}{rank}") for rank in range(1, last + 1)]
    if len(_gaps) < last:
        _gaps.extend(Gap(f"{prefix}{rank}") for rank in range(len(_gaps) + 1, last + 1))
    return _gaps[:last]
