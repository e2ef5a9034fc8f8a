"""Coverage measures as terms: weights, levels and cutoff, which are all that the kernel needs to know."""

from __future__ import annotations

from dataclasses import dataclass

from rubric_measures.measures.definitions import RubricMeasure

__all__ = ["Term", "term_of"]

# A ranking without a cutoff; longer than any ranking.
_ALL = 1 << 60

_COVERAGE = {
    "RubricCover": "all",
    "nRubricCover": "all",
    "NuggetA": "all",
    "NuggetV": "vital",
    "NuggetW": "weighted",
    "WeightedCover": "weight",
}


@dataclass(frozen=True)
class Term:
    """One coverage measure, reduced to what the kernel needs.

    Attributes:
        weights: what items weigh; see `nugget_weights`.
        levels: (minimum grade, credit that reaching it adds): one for a threshold, two for partial credit.
        cutoff: how many passages count.
        judged_only: whether only judged ones do.
        normalised: divided by what any graded passage covers, not by all items.
        clip: a value below 0 is 0.
    """

    weights: str
    levels: tuple[tuple[int, float], ...]
    cutoff: int
    judged_only: bool
    normalised: bool
    clip: bool


def term_of(measure: RubricMeasure) -> Term | None:
    """The term of a measure; None for one that is not about coverage."""
    if measure.NAME not in _COVERAGE:
        return None
    cutoff = measure.value("cutoff") or _ALL
    judged_only = measure.value("judged_only")
    if measure.NAME in ("RubricCover", "nRubricCover"):
        return Term("all", ((measure.value("rel"), 1.0),), cutoff, judged_only, measure.NAME[0] == "n", False)
    rel, partial = measure.value("rel"), measure.value("partial_rel")
    levels = ((rel, 1.0),) if measure.value("strict") or partial == rel else ((rel, 0.5), (partial, 0.5))
    clip = "clip" in measure.SUPPORTED_PARAMS and measure.value("clip")
    return Term(_COVERAGE[measure.NAME], levels, cutoff, judged_only, False, clip)
