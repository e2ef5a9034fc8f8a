"""The public functions: any file or object in, objects out; `rubric_measures` exports them, and the commands call them.

Each function has its module, imported when it is asked for, so that `import rubric_measures` is instant.
"""

from typing import TYPE_CHECKING

from rubric_measures.base.plugins import lazy_names

if TYPE_CHECKING:
    from rubric_measures.api._agreeing import agreement, agreement_tables
    from rubric_measures.api._answers import EvaluatedAnswers, evaluate_answers
    from rubric_measures.api._arguing import argue
    from rubric_measures.api._bundling import bundle, check_bundle, compare_bundles
    from rubric_measures.api._calibrating import Calibration, calibrate
    from rubric_measures.api._canaries import run_canaries
    from rubric_measures.api._checking import KeptBoard, read_board
    from rubric_measures.api._combining import Combined, combine
    from rubric_measures.api._comparing import Comparisons, compare
    from rubric_measures.api._converting import convert, write_qrels
    from rubric_measures.api._correlating import Correlations, correlate
    from rubric_measures.api._designing import Designs, power
    from rubric_measures.api._evaluating import evaluate
    from rubric_measures.api._gates import Gates, read_gates
    from rubric_measures.api._generating import generate
    from rubric_measures.api._grading import grade
    from rubric_measures.api._loading import load, load_bank
    from rubric_measures.api._pooling import pool
    from rubric_measures.api._report_pages import write_report
    from rubric_measures.api._reports import check, refuse_sums, report
    from rubric_measures.api._run_checks import check_run
    from rubric_measures.api._scoring import Board, default_measures, score
    from rubric_measures.api._tournaments import tournament
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "rubric_measures.api._agreeing": ["agreement", "agreement_tables"],
            "rubric_measures.api._answers": ["EvaluatedAnswers", "evaluate_answers"],
            "rubric_measures.api._arguing": ["argue"],
            "rubric_measures.api._bundling": ["bundle", "check_bundle", "compare_bundles"],
            "rubric_measures.api._calibrating": ["Calibration", "calibrate"],
            "rubric_measures.api._canaries": ["run_canaries"],
            "rubric_measures.api._checking": ["KeptBoard", "read_board"],
            "rubric_measures.api._combining": ["Combined", "combine"],
            "rubric_measures.api._comparing": ["Comparisons", "compare"],
            "rubric_measures.api._converting": ["convert", "write_qrels"],
            "rubric_measures.api._correlating": ["Correlations", "correlate"],
            "rubric_measures.api._designing": ["Designs", "power"],
            "rubric_measures.api._evaluating": ["evaluate"],
            "rubric_measures.api._gates": ["Gates", "read_gates"],
            "rubric_measures.api._generating": ["generate"],
            "rubric_measures.api._grading": ["grade"],
            "rubric_measures.api._loading": ["load", "load_bank"],
            "rubric_measures.api._pooling": ["pool"],
            "rubric_measures.api._report_pages": ["write_report"],
            "rubric_measures.api._reports": ["check", "refuse_sums", "report"],
            "rubric_measures.api._run_checks": ["check_run"],
            "rubric_measures.api._scoring": ["Board", "default_measures", "score"],
            "rubric_measures.api._tournaments": ["tournament"],
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
