"""Grading: prompts put to a model, replies read, grades with a status added to passage records."""

from rubric_measures.grading.grader import Grader, GradingReport, GradingTask, default_prompts, load_grader
from rubric_measures.grading.settings import GradingSettings

__all__ = ["Grader", "GradingReport", "GradingSettings", "GradingTask", "default_prompts", "load_grader"]
