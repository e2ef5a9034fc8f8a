"""The one sort of the package: score, then document id, both descending, as trec_eval orders a run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

__all__ = ["ranked"]


def ranked(scored: Iterable[tuple[str, float]]) -> Sequence[str]:
    """The document ids of one query, best first: by score, ties by document id, both descending.

    Scores compare as Python floats (trec_eval rounds them to 32 bits first, so it may see a tie where this sees none).

    Args:
        scored: (doc_id, score) in any order; scores must not be NaN.

    >>> ranked([("a", 1.0), ("c", 2.0), ("b", 1.0)])
    ['c', 'b', 'a']
    """
    return [doc_id for _, doc_id in sorted(((score, doc_id) for doc_id, score in scored), reverse=True)]
