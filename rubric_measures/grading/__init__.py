"""Grading: prompts put to a model, replies read, grades with a status added to passage records."""

from rubric_measures.grading._grader import Grader, GradingReport, GradingTask, default_prompts
from rubric_measures.grading._manifest import make_manifest, write_manifest
from rubric_measures.grading._reproducing import Shown, shown_for_grade
from rubric_measures.grading._settings import GradingSettings
from rubric_measures.grading._spec import load_grader
from rubric_measures.grading.estimate import Estimate, Price, estimate, load_prices, price_of
from rubric_measures.grading.regrading import BankChange

__all__ = [
    "BankChange",
    "Estimate",
    "Grader",
    "GradingReport",
    "GradingSettings",
    "GradingTask",
    "Price",
    "Shown",
    "default_prompts",
    "estimate",
    "load_grader",
    "load_prices",
    "make_manifest",
    "price_of",
    "shown_for_grade",
    "write_manifest",
]
