"""The grades of a query, the measures over them, and the provider that computes them for ir_measures."""

from rubric_measures.measures.measure import (
    NuggetA,
    NuggetV,
    NuggetW,
    RubricCover,
    RubricMeasure,
    WeightedCover,
    measure_of,
    nRubricCover,
    register_plug_ins,
)
from rubric_measures.measures.names import RubricQrels
from rubric_measures.measures.provider import register_provider
from rubric_measures.measures.support import (
    ALCEPrecision,
    ALCERecall,
    CitationCoverage,
    CitationF1,
    ContradictionRate,
    SupportPrecision,
    SupportRate,
    SupportRecall,
)

__all__ = [
    "ALCEPrecision",
    "ALCERecall",
    "CitationCoverage",
    "CitationF1",
    "ContradictionRate",
    "NuggetA",
    "NuggetV",
    "NuggetW",
    "RubricCover",
    "RubricMeasure",
    "RubricQrels",
    "SupportPrecision",
    "SupportRate",
    "SupportRecall",
    "WeightedCover",
    "measure_of",
    "nRubricCover",
    "register_plug_ins",
    "register_provider",
]
