"""Grading: prompts put to a model, replies read, grades with a status added to passage records; test banks made."""

from rubric_measures.grading.asking import Asking
from rubric_measures.grading.estimate import Estimate, GradingPlan, estimate, make_manifest, write_manifest
from rubric_measures.grading.grader import GradingEngine, GradingReport, default_prompts, note_amended, note_report
from rubric_measures.grading.recording import BankChange

__all__ = [
    "Asking",
    "BankChange",
    "Estimate",
    "GradingEngine",
    "GradingPlan",
    "GradingReport",
    "default_prompts",
    "estimate",
    "make_manifest",
    "note_amended",
    "note_report",
    "write_manifest",
]
