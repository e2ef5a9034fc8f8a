"""The grades of a query, the measures over them, and the provider that computes them for ir_measures."""

from ir_measures.measures.base import ParamInfo

from rubric_measures.measures.cover import RubricCover, covered_share, nRubricCover
from rubric_measures.measures.labels import RubricQrels
from rubric_measures.measures.measure import (
    CUTOFF,
    JUDGED_ONLY,
    CoverageMeasure,
    QueryContext,
    RankedDocs,
    RankingScorer,
    RubricMeasure,
    Top,
    min_grade,
    register,
    register_plug_ins,
)
from rubric_measures.measures.nuggets import NuggetA, NuggetV, NuggetW, WeightedCover
from rubric_measures.measures.provider import register_provider
from rubric_measures.measures.scoring import is_supported
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
    "CUTOFF",
    "JUDGED_ONLY",
    "ALCEPrecision",
    "ALCERecall",
    "CitationCoverage",
    "CitationF1",
    "ContradictionRate",
    "CoverageMeasure",
    "NuggetA",
    "NuggetV",
    "NuggetW",
    "ParamInfo",
    "QueryContext",
    "RankedDocs",
    "RankingScorer",
    "RubricCover",
    "RubricMeasure",
    "RubricQrels",
    "SupportPrecision",
    "SupportRate",
    "SupportRecall",
    "Top",
    "WeightedCover",
    "covered_share",
    "is_supported",
    "min_grade",
    "nRubricCover",
    "register",
    "register_plug_ins",
    "register_provider",
]
