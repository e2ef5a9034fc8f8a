"""The effect of the order in which a label list shows its nuggets: deviations of grades by place in the list."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

__all__ = ["OrderEffect"]


@dataclass
class OrderEffect:
    """How far the grades of one nugget depend on the place at which the model saw it; counts only grow.

    The deviation of a replicate is its grade minus the mean grade of the same nugget and passage over all replicates,
    so that easy and hard nuggets do not matter.

    Attributes:
        graded: nuggets (of a passage) with two or more graded replicates at different places.
        by_place: place in the list, from 1 -> (number of grades, sum of their deviations).
    """

    graded: int = 0
    by_place: dict[int, tuple[int, float]] = field(default_factory=dict)

    def add(self, places: Sequence[int], grades: Sequence[int | None]) -> None:
        """Counts the replicates of one nugget; those without a grade are left out."""
        known = [(place, grade) for place, grade in zip(places, grades, strict=True) if grade is not None]
        if len({place for place, _ in known}) < 2:
            return
        self.graded += 1
        mean = sum(grade for _, grade in known) / len(known)
        for place, grade in known:
            count, total = self.by_place.get(place, (0, 0.0))
            self.by_place[place] = (count + 1, total + grade - mean)

    @property
    def deviations(self) -> dict[int, float]:
        """Place -> mean deviation, in grades; 0 everywhere when the order has no effect."""
        return {place: total / count for place, (count, total) in sorted(self.by_place.items())}

    def __str__(self) -> str:
        """One line: the mean deviation at each place, and the greatest difference between two places."""
        found = self.deviations
        if not found:
            return "no nugget was graded at two places"
        listed = ", ".join(f"{place}: {value:+.3f}" for place, value in found.items())
        spread = max(found.values()) - min(found.values())
        what = "mean deviation of a nugget's grade by place in the list"
        return f"{what} {listed} (range {spread:.3f}, {self.graded} nuggets)"
