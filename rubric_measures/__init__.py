"""rubric_measures: a trec_eval-style measure extension for rubrics, nuggets and generated answers.

Importing it registers the measures with ir_measures:

>>> import ir_measures, rubric_measures
>>> ir_measures.parse_measure("RubricCover(rel=4)@20")
RubricCover(rel=4)@20

Each public name has its module, imported when it is asked for, so that `import rubric_measures` is instant.
"""

# isort: off
from importlib import import_module as _import_module
from typing import TYPE_CHECKING

from rubric_measures.base import __version__ as __version__
from rubric_measures.boards.provider import register_provider as _register_provider
from rubric_measures.measures.measure import register_plug_ins as _register_plug_ins

if TYPE_CHECKING:
    from rubric_measures.analysis.boards import Board as Board, load_board as load_board, reusability as reusability
    from rubric_measures.analysis.boards import score as score
    from rubric_measures.analysis.comparing import compare as compare, power as power
    from rubric_measures.analysis.correlating import correlate as correlate
    from rubric_measures.analysis.graders import agreement as agreement, combine as combine
    from rubric_measures.analysis.resampling import Draws as Draws, Tests as Tests
    from rubric_measures.api.answers import evaluate_answers as evaluate_answers
    from rubric_measures.api.judging import tournament as tournament
    from rubric_measures.corpora.converting import convert as convert
    from rubric_measures.corpora.loading import load as load, load_bank as load_bank
    from rubric_measures.corpora.pooling import pool as pool
    from rubric_measures.grading.asking import Asking as Asking
    from rubric_measures.grading.generation import generate as generate
    from rubric_measures.grading.grade import grade as grade, grade_support as grade_support, regrade as regrade
    from rubric_measures.measures.grade_sets import Grader as Grader
    from rubric_measures.measures.grades import Grades as Grades
    from rubric_measures.measures.measure import NuggetA as NuggetA, NuggetV as NuggetV, NuggetW as NuggetW
    from rubric_measures.measures.measure import RubricCover as RubricCover, RubricMeasure as RubricMeasure
    from rubric_measures.measures.measure import RubricQrels as RubricQrels, WeightedCover as WeightedCover
    from rubric_measures.measures.measure import measure_of as measure_of
    from rubric_measures.models.settings import Calls as Calls
    from rubric_measures.pages.board_page import write_report as write_report
    from rubric_measures.types.entities import Grade as Grade, Preference as Preference, RubricItem as RubricItem
    from rubric_measures.types.entities import TestBank as TestBank
    from rubric_measures.verification.graders import calibrate as calibrate
else:
    _NAMES = {
        "analysis.boards": "Board load_board reusability score",
        "analysis.comparing": "compare power",
        "analysis.correlating": "correlate",
        "analysis.graders": "agreement combine",
        "analysis.resampling": "Draws Tests",
        "api.answers": "evaluate_answers",
        "api.judging": "tournament",
        "corpora.converting": "convert",
        "corpora.loading": "load load_bank",
        "corpora.pooling": "pool",
        "grading.asking": "Asking",
        "grading.generation": "generate",
        "grading.grade": "grade grade_support regrade",
        "measures.grade_sets": "Grader",
        "measures.grades": "Grades",
        "measures.measure": "NuggetA NuggetV NuggetW RubricCover RubricMeasure RubricQrels WeightedCover measure_of",
        "models.settings": "Calls",
        "pages.board_page": "write_report",
        "types.entities": "Grade Preference RubricItem TestBank",
        "verification.graders": "calibrate",
    }
    _HOMES = {name: f"{__name__}.{module}" for module, names in _NAMES.items() for name in names.split()}
    __all__ = sorted(["__version__", *_HOMES])  # noqa: PLE0605

    def __getattr__(name: str) -> object:
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        # From now on the package has it.
        found = globals()[name] = getattr(_import_module(_HOMES[name]), name)
        return found

    def __dir__() -> list[str]:
        return sorted({*globals(), *_HOMES})


_register_provider()
_register_plug_ins()
