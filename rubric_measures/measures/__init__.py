"""Measures over grades, registered with ir_measures, and the provider that computes them."""

from rubric_measures.measures import definitions, provider
from rubric_measures.measures.definitions import (
    NuggetA,
    NuggetV,
    NuggetW,
    RubricCover,
    RubricQrels,
    WeightedCover,
    nRubricCover,
)

__all__ = [
    "NuggetA",
    "NuggetV",
    "NuggetW",
    "RubricCover",
    "RubricQrels",
    "WeightedCover",
    "nRubricCover",
    "register",
]


def register() -> None:
    """Registers the measures and the provider with ir_measures; importing `rubric_measures` does it."""
    definitions.register()
    provider.register()
