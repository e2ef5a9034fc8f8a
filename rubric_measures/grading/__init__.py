"""Grading: prompts put to a model, replies read, grades with a status added to passage records."""

from rubric_measures.grading._grader import Grader, default_prompts
from rubric_measures.grading._manifest import make_manifest, write_manifest
from rubric_measures.grading._report import GradingReport, note_amended, note_report
from rubric_measures.grading._settings import GradingSettings
from rubric_measures.grading.estimate import Estimate, GradingPlan, estimate
from rubric_measures.grading.regrading import BankChange

__all__ = [
    "BankChange",
    "Estimate",
    "Grader",
    "GradingPlan",
    "GradingReport",
    "GradingSettings",
    "default_prompts",
    "estimate",
    "make_manifest",
    "note_amended",
    "note_report",
    "write_manifest",
]
