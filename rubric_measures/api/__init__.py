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
        bundle,
        check,
        check_bundle,
        compare_bundles,
        read_board,
        read_gates,
        refuse_sums,
        report,
    )
    from rubric_measures.api.comparing import Comparisons, Correlations, Designs, compare, correlate, power
    from rubric_measures.api.evaluating import argue, check_run, convert, evaluate, write_qrels, write_report
    from rubric_measures.api.generating import generate
    from rubric_measures.api.graders import Calibration, Combined, agreement, agreement_tables, calibrate, combine
    from rubric_measures.api.grading import grade, pool, run_canaries
    from rubric_measures.api.loading import load, load_bank
    from rubric_measures.api.scoring import Board, default_measures, score
    from rubric_measures.api.tournaments import tournament
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "rubric_measures.api.graders": [
                "Calibration",
                "Combined",
                "agreement",
                "agreement_tables",
                "calibrate",
                "combine",
            ],
            "rubric_measures.api.answers": ["EvaluatedAnswers", "evaluate_answers"],
            "rubric_measures.api.evaluating": [
                "argue",
                "check_run",
                "convert",
                "evaluate",
                "write_qrels",
                "write_report",
            ],
            "rubric_measures.api.boards": [
                "Gates",
                "KeptBoard",
                "bundle",
                "check",
                "check_bundle",
                "compare_bundles",
                "read_board",
                "read_gates",
                "refuse_sums",
                "report",
            ],
            "rubric_measures.api.grading": ["grade", "pool", "run_canaries"],
            "rubric_measures.api.comparing": [
                "Comparisons",
                "Correlations",
                "Designs",
                "compare",
                "correlate",
                "power",
            ],
            "rubric_measures.api.generating": ["generate"],
            "rubric_measures.api.loading": ["load", "load_bank"],
            "rubric_measures.api.scoring": ["Board", "default_measures", "score"],
            "rubric_measures.api.tournaments": ["tournament"],
        },
    )

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
