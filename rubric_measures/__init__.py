"""rubric_measures: a trec_eval-style measure extension for rubrics, nuggets and generated answers.

Importing it registers the measures with ir_measures:

>>> import ir_measures, rubric_measures
>>> ir_measures.parse_measure("RubricCover(rel=4)@20")
RubricCover(rel=4)@20
"""

from typing import TYPE_CHECKING

from rubric_measures.base import __version__
from rubric_measures.base.plugins import lazy_names as _lazy_names
from rubric_measures.boards.provider import register_provider as _register_provider
from rubric_measures.measures import support as _  # noqa: F401 - registers measures of citations
from rubric_measures.measures.measure import (
    NuggetA,
    NuggetV,
    NuggetW,
    RubricCover,
    RubricMeasure,
    RubricQrels,
    WeightedCover,
    measure_of,
)
from rubric_measures.measures.measure import register_plug_ins as _register_plug_ins

if TYPE_CHECKING:
    from rubric_measures.analysis.resampling import Draws, Tests
    from rubric_measures.api import (
        Board,
        agreement,
        calibrate,
        combine,
        compare,
        convert,
        correlate,
        evaluate_answers,
        generate,
        grade,
        grade_support,
        load,
        load_bank,
        load_board,
        pool,
        power,
        regrade,
        reusability,
        score,
        tournament,
        write_report,
    )
    from rubric_measures.grading.asking import Asking
    from rubric_measures.measures.grade_sets import Grader
    from rubric_measures.measures.grades import Grades
    from rubric_measures.models.settings import Calls
    from rubric_measures.types.entities import Grade, Preference, RubricItem, TestBank

__all__ = [
    "Asking",
    "Board",
    "Calls",
    "Draws",
    "Grade",
    "Grader",
    "Grades",
    "NuggetA",
    "NuggetV",
    "NuggetW",
    "Preference",
    "RubricCover",
    "RubricItem",
    "RubricMeasure",
    "RubricQrels",
    "TestBank",
    "Tests",
    "WeightedCover",
    "__version__",
    "agreement",
    "calibrate",
    "combine",
    "compare",
    "convert",
    "correlate",
    "evaluate_answers",
    "generate",
    "grade",
    "grade_support",
    "load",
    "load_bank",
    "load_board",
    "measure_of",
    "pool",
    "power",
    "regrade",
    "reusability",
    "score",
    "tournament",
    "write_report",
]

if not TYPE_CHECKING:
    _HOMES = {
        "rubric_measures.api": __all__,
        "rubric_measures.analysis.resampling": ["Draws", "Tests"],
        "rubric_measures.measures.grade_sets": ["Grader"],
        "rubric_measures.grading.asking": ["Asking"],
        "rubric_measures.measures.grades": ["Grades"],
        "rubric_measures.models.settings": ["Calls"],
        "rubric_measures.types.entities": ["Grade", "Preference", "RubricItem", "TestBank"],
    }
    __getattr__, __dir__ = _lazy_names(__name__, _HOMES)

_register_provider()
_register_plug_ins()
