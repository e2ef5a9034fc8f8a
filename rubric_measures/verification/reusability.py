"""Would a new run be judged fairly: each run left out of pool and bank, and scored again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from rubric_measures.analysis.correlation import ranks
from rubric_measures.measures.loading import RecordQuery

__all__ = ["LeftOut", "Reusability", "reusability"]

# How many passages of a ranking are pooled, and count.
_CUTOFF = 20


@dataclass(frozen=True, slots=True)
class LeftOut:
    """One run, when it took no part in making pool and bank.

    Attributes:
        run_id: the run.
        unjudged: the share of its first passages that nobody else has among the first.
        score: Rubric-Cover with all items and grades.
        without_items: the same when items that only these passages cover are not in the bank; they are graded, as a
            model can grade them any time.
        without_grades: the same when these passages have no grades, and the bank is whole.
        without_both: the same when both are lacking.
        rank: its rank, 1 best, ties averaged.
        rank_without_items: its rank among all runs without these items.
        rank_without_grades: without these grades.
        rank_without_both: without both.
    """

    run_id: str
    unjudged: float
    score: float
    without_items: float
    without_grades: float
    without_both: float
    rank: float
    rank_without_items: float
    rank_without_grades: float
    rank_without_both: float


@dataclass(frozen=True)
class Reusability:
    """All runs left out, one after the other.

    Attributes:
        rows: best run first.
    """

    rows: tuple[LeftOut, ...]

    @property
    def slope(self) -> float | None:
        """The score that is lost for an ungraded share of 1: Σ loss · u / Σ u² (through the origin); None of no u."""
        shares = np.array([row.unjudged for row in self.rows])
        loss = np.array([row.score - row.without_grades for row in self.rows])
        return float((loss * shares).sum() / (shares**2).sum()) if shares.any() else None

    def sentence(self) -> str:
        """Would a new run be judged fairly, with numbers."""
        unjudged = 100 * float(np.mean([row.unjudged for row in self.rows]))
        return (
            f"Would a new run be judged fairly? {unjudged:.1f} % of the passages of a run that is left out "
            f"are of nobody else. Where a model grades them, and the bank lacks the items that only they cover, it "
            f"{self._said('without_items')}; where they stay without grades, it {self._said('without_both')}."
        )

    def _said(self, kind: str) -> str:
        losses = [row.score - getattr(row, kind) for row in self.rows]
        drops = [getattr(row, f"rank_{kind}") - row.rank for row in self.rows]
        worst = int(np.argmax(drops))
        kept = sum(abs(drop) < 1e-9 for drop in drops)
        most = f" (at most {drops[worst]:g}: {self.rows[worst].run_id})" if drops[worst] > 0 else ""
        return (
            f"scores {float(np.mean(losses)):.4f} less and drops {float(np.mean(drops)):.2f} ranks on average{most}, "
            f"and {kept} of {len(self.rows)} keep their rank"
        )


@dataclass
class _OfQuery:
    """What one query counts.

    Attributes:
        size: its items.
        full: run -> items that it covers.
        items: run -> items that are left where it took no part.
        own: run -> items that it covers: of those that are left, without its own passages, both.
    """

    size: int
    full: dict[str, int]
    items: dict[str, int]
    own: dict[str, tuple[int, int, int]]


def reusability(queries: Iterable[RecordQuery], min_rating: int | None = None) -> Reusability | None:
    """What each run would score if it had not been pooled; None where there are fewer than two runs.

    The pool of a query is the first 20 passages of all runs. A passage is brought by the runs that have it there;
    graded passages that no run has are brought by somebody else. What failed covers nothing here.

    Args:
        queries: the selected grades.
        min_rating: the least grade that covers an item; None takes the scale's.
    """
    ranked = [query for query in queries if query.rankings and query.grades.items]
    runs = sorted({run_id for query in ranked for run_id in query.rankings})
    if len(runs) < 2:
        return None
    shares = {run_id: [0, 0] for run_id in runs}
    counted = [_of_query(query, min_rating, shares) for query in ranked]
    full = {run: sum(one.full.get(run, 0) / one.size for one in counted) / len(counted) for run in runs}
    before = _ranks(full)
    rows = []
    for left_out in runs:
        scores = [dict.fromkeys(runs, 0.0) for _ in range(3)]
        for one in counted:
            # A query whose every item goes has no score without them; nobody covers anything there.
            left = one.items.get(left_out, one.size) or one.size
            for run, covered in one.full.items():
                counts = one.own[run] if run == left_out else (covered, covered, covered)
                for kind, size in enumerate((left, one.size, left)):
                    scores[kind][run] += counts[kind] / size / len(counted)
        after = [_ranks(one) for one in scores]
        unjudged, seen = shares[left_out]
        rows.append(
            LeftOut(
                left_out, unjudged / seen if seen else 0.0, full[left_out],
                scores[0][left_out], scores[1][left_out], scores[2][left_out],
                before[left_out], after[0][left_out], after[1][left_out], after[2][left_out],
            )
        )  # fmt: skip
    return Reusability(tuple(sorted(rows, key=lambda row: (row.rank, row.run_id))))


def _of_query(query: RecordQuery, min_rating: int | None, shares: Mapping[str, list[int]]) -> _OfQuery:
    """What a query counts; adds to a run's shares how many of its first passages are its alone, of how many."""
    covering = query.grades.at_least(query.grades.level(min_rating))
    tops = {run_id: list(ranking[:_CUTOFF]) for run_id, ranking in query.rankings.items()}
    brought: dict[str, set[str]] = {}
    for run_id, top in tops.items():
        for doc_id in top:
            brought.setdefault(doc_id, set()).add(run_id)
    full = {run_id: _union(covering, top) for run_id, top in tops.items()}
    anything = _union(covering, covering)
    size = len(query.grades.items)
    found = _OfQuery(size, {run_id: mask.bit_count() for run_id, mask in full.items()}, {}, {})
    for run_id, top in tops.items():
        only = {doc_id for doc_id, of_doc in brought.items() if of_doc == {run_id}}
        left = _union(covering, (doc_id for doc_id in covering if doc_id not in only))
        # Items that nothing covers stay: no passage of the run was needed to think of them.
        found.items[run_id] = size - (anything & ~left).bit_count()
        others = _union(covering, (doc_id for doc_id in top if doc_id not in only))
        masks = (full[run_id] & left, others, others & left)
        found.own[run_id] = (masks[0].bit_count(), masks[1].bit_count(), masks[2].bit_count())
        shares[run_id][0] += sum(doc_id in only for doc_id in top)
        shares[run_id][1] += len(top)
    return found


def _union(covering: Mapping[str, int], doc_ids: Iterable[str]) -> int:
    mask = 0
    for doc_id in doc_ids:
        mask |= covering.get(doc_id, 0)
    return mask


def _ranks(scores: Mapping[str, float]) -> dict[str, float]:
    """Ranks of runs, 1 best, ties averaged; sums of one value in another order are ties."""
    found = ranks([round(score, 12) for score in scores.values()])
    return dict(zip(scores, map(float, found), strict=True))
