"""The public functions: any file or object in, objects out; `rubric_measures` exports them, and the commands call them.

Each function has its module, imported when it is asked for, so that `import rubric_measures` is instant.
"""

# ruff: noqa: F403 - types find the names in the modules; at run time those of `_NAMES` are there
from typing import TYPE_CHECKING

from rubric_measures.base.plugins import lazy_names

if TYPE_CHECKING:
    from rubric_measures.api.answers import *
    from rubric_measures.api.boards import *
    from rubric_measures.api.comparing import *
    from rubric_measures.api.evaluating import *
    from rubric_measures.api.generating import *
    from rubric_measures.api.graders import *
    from rubric_measures.api.grading import *
    from rubric_measures.api.scoring import *
    from rubric_measures.api.tournaments import *
    from rubric_measures.corpora.loading import *
else:
    _NAMES = {
        "answers": "EvaluatedAnswers evaluate_answers",
        "boards": "check_board check_bundle check_conclusions load_board",
        "comparing": "Comparisons Correlations Designs compare correlate power",
        "evaluating": "argue check_run convert evaluate write_qrels write_report",
        "generating": "generate",
        "graders": "Calibration Combined agreement agreement_tables calibrate combine",
        "grading": "grade grade_support pool regrade run_canaries",
        "scoring": "Board default_measures reusability score",
        "tournaments": "tournament",
    }
    _HOMES = {f"{__name__}.{module}": names.split() for module, names in _NAMES.items()}
    _HOMES["rubric_measures.corpora.loading"] = ["load", "load_bank"]
    __all__ = [name for names in _HOMES.values() for name in names]
    __getattr__, __dir__ = lazy_names(__name__, _HOMES)
