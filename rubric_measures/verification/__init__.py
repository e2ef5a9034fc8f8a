"""Reports with which assessors check grades and banks."""

from typing import Literal, get_args

__all__ = ["REPORTS", "ReportName"]

# The names are those of the Rubric workbench's flags, where it has the report.
ReportName = Literal["grading", "grid", "uncovered-passages", "bad-questions", "item-statistics", "all"]
REPORTS: tuple[ReportName, ...] = get_args(ReportName)
