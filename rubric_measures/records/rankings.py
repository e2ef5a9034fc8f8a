"""The rankings inside graded records as runs: ordered by rank; documents that have no record keep their places."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Sequence

from rubric_measures.base.sorting import Gap, RankNotes, by_rank
from rubric_measures.records.models import QueryPassages
from rubric_measures.types.entities import Ranking, Run, put_in_order

__all__ = ["runs_of_records"]

_LOG = logging.getLogger("rubric_measures")


def runs_of_records(groups: Iterable[QueryPassages], name: str = "") -> list[Run]:
    """The runs of records, sorted by name, with scores that give every program the same order.

    In a run file only scores count, not ranks. So a document that the records lack stands there under an id of no
    document (see `Gap`), with a score between those of its neighbours. Where the scores of the records do not give the
    order of the ranks, the scores are 1 / rank instead. Both are counted and said.

    Raises:
        InputError: a document stands twice in a ranking.
    """
    say = f"{name}: " if name else ""
    rankings: dict[str, dict[str, Ranking]] = {}
    strangers = rewritten = 0
    notes = RankNotes()
    for group in groups:
        places: dict[str, list[tuple[int, float, str]]] = {}
        for passage in group.passages:
            for place in passage.rankings:
                if place.query_id == group.query_id:
                    places.setdefault(place.method, []).append((place.rank, place.score, passage.doc_id))
                else:
                    strangers += 1
        known = [passage.doc_id for passage in group.passages]
        for run_id, of_run in places.items():
            one = by_rank(of_run, known, f"{say}query {group.query_id!r}", run_id)
            notes = notes.adding(one)
            ranking = _scored(one.doc_ids, {doc_id: score for _, score, doc_id in of_run})
            rewritten += ranking is None
            rankings.setdefault(run_id, {})[group.query_id] = ranking or Ranking(
                one.doc_ids, [1 / rank for rank in range(1, len(one.doc_ids) + 1)]
            )
    if strangers:
        _LOG.warning("%s%d rankings name another query and were left out", say, strangers)
    notes.say(name)
    if rewritten:
        _LOG.warning("%s%d rankings have the scores 1 / rank, as their own give another order", say, rewritten)
    return [Run(run_id, of_run) for run_id, of_run in sorted(rankings.items())]


def _scored(doc_ids: Sequence[str], scores: dict[str, float]) -> Ranking | None:
    """The documents with their scores, and gaps between those of their neighbours; None where that is another order."""
    filled: list[float] = []
    waiting = 0
    for doc_id in doc_ids:
        if isinstance(doc_id, Gap):
            waiting += 1
            continue
        score = scores[doc_id]
        above = filled[-1] if filled else score + waiting + 1
        filled += [above + (score - above) * step / (waiting + 1) for step in range(1, waiting + 1)]
        filled.append(score)
        waiting = 0
    if not all(map(math.isfinite, filled)):
        return None
    ranking = put_in_order(doc_ids, filled)
    return ranking if list(ranking.doc_ids) == list(doc_ids) else None
