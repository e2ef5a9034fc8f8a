"""The public functions: any file or object in, objects out; `rubric_measures` exports them, and the commands call them.

Each function has its module, imported when it is asked for, so that `import rubric_measures` is instant.
"""

from typing import TYPE_CHECKING

from rubric_measures.base.plugins import lazy_names

if TYPE_CHECKING:
    from rubric_measures.api.answers import EvaluatedAnswers, evaluate_answers
    from rubric_measures.api.boards import (
        Gates,
        KeptBoard,
        Proof,
        bundle,
        check,
        check_bundle,
        compare_bundles,
        read_board,
        read_gates,
    )
    from rubric_measures.api.comparing import Comparisons, Correlations, Designs, compare, correlate, power
    from rubric_measures.api.evaluating import argue, check_run, convert, evaluate, write_qrels, write_report
    from rubric_measures.api.generating import generate
    from rubric_measures.api.graders import Calibration, Combined, agreement, agreement_tables, calibrate, combine
    from rubric_measures.api.grading import grade, pool, run_canaries
    from rubric_measures.api.loading import load, load_bank
    from rubric_measures.api.reports import refuse_sums, report
    from rubric_measures.api.scoring import Board, default_measures, score
    from rubric_measures.api.tournaments import tournament
else:
    _NAMES = {
        "answers": "EvaluatedAnswers evaluate_answers",
        "boards": "Gates KeptBoard Proof bundle check check_bundle compare_bundles read_board read_gates",
        "comparing": "Comparisons Correlations Designs compare correlate power",
        "evaluating": "argue check_run convert evaluate write_qrels write_report",
        "generating": "generate",
        "graders": "Calibration Combined agreement agreement_tables calibrate combine",
        "grading": "grade pool run_canaries",
        "loading": "load load_bank",
        "reports": "refuse_sums report",
        "scoring": "Board default_measures score",
        "tournaments": "tournament",
    }
    _HOMES = {f"{__name__}.{module}": names.split() for module, names in _NAMES.items()}
    __getattr__, __dir__ = lazy_names(__name__, _HOMES)

__all__ = [
    "Board",
    "Calibration",
    "Combined",
    "Comparisons",
    "Correlations",
    "Designs",
    "EvaluatedAnswers",
    "Gates",
    "KeptBoard",
    "Proof",
    "agreement",
    "agreement_tables",
    "argue",
    "bundle",
    "calibrate",
    "check",
    "check_bundle",
    "check_run",
    "combine",
    "compare",
    "compare_bundles",
    "convert",
    "correlate",
    "default_measures",
    "evaluate",
    "evaluate_answers",
    "generate",
    "grade",
    "load",
    "load_bank",
    "pool",
    "power",
    "read_board",
    "read_gates",
    "refuse_sums",
    "report",
    "run_canaries",
    "score",
    "tournament",
    "write_qrels",
    "write_report",
]
