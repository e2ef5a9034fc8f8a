"""The public functions: any file or object in, objects out; `rubric_measures` exports them, and the commands call them.

Each function has its module, imported when it is asked for, so that `import rubric_measures` is instant. One that needs
a single room lives there; those that join several live here.
"""

# ruff: noqa: F403 - types find the names in the modules; at run time those of `_NAMES` are there
from typing import TYPE_CHECKING

from rubric_measures.base.plugins import lazy_names

if TYPE_CHECKING:
    from rubric_measures.analysis.boards import *
    from rubric_measures.analysis.boards import argue as argue
    from rubric_measures.analysis.boards import default_measures as default_measures
    from rubric_measures.analysis.calibration import Calibration as Calibration
    from rubric_measures.analysis.comparing import *
    from rubric_measures.analysis.correlating import *
    from rubric_measures.analysis.graders import *
    from rubric_measures.api.answers import *
    from rubric_measures.api.files import *
    from rubric_measures.api.judging import *
    from rubric_measures.boards.single import evaluate as evaluate
    from rubric_measures.corpora.converting import convert as convert
    from rubric_measures.corpora.loading import *
    from rubric_measures.corpora.pooling import pool as pool
    from rubric_measures.corpora.run_checks import check_run as check_run
    from rubric_measures.grading.generation import *
    from rubric_measures.grading.grade import *
    from rubric_measures.pages.board_page import write_report as write_report
    from rubric_measures.verification.graders import calibrate as calibrate
    from rubric_measures.verification.html import verify as verify
else:
    _NAMES = {
        "analysis.boards": "Board argue default_measures load_board reusability score",
        "analysis.calibration": "Calibration",
        "analysis.comparing": "Comparisons Designs compare power",
        "analysis.correlating": "Correlations correlate",
        "analysis.graders": "Combined agreement agreement_tables combine",
        "api.answers": "EvaluatedAnswers evaluate_answers",
        "api.files": "check_board check_bundle check_conclusions write_qrels",
        "api.judging": "check_tournament tournament",
        "boards.single": "evaluate",
        "corpora.converting": "convert",
        "corpora.loading": "load load_bank",
        "corpora.pooling": "pool",
        "corpora.run_checks": "check_run",
        "grading.generation": "generate",
        "grading.grade": "grade grade_support regrade",
        "pages.board_page": "write_report",
        "verification.graders": "calibrate",
        "verification.html": "verify",
    }
    _HOMES = {f"rubric_measures.{module}": names.split() for module, names in _NAMES.items()}
    __all__ = [name for names in _HOMES.values() for name in names]
    __getattr__, __dir__ = lazy_names(__name__, _HOMES)
