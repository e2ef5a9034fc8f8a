"""Reports with which assessors check grades and banks."""

__all__ = ["REPORTS"]

# Report -> what it shows. The names are those of the Rubric workbench's flags, where it has the report.
REPORTS = {
    "grading": "per item, every passage's grade beside its answer, best first",
    "uncertain": "the same, least certain first, where the records keep distributions",
    "grid": "per query, passages × items, with judgments",
    "uncovered-passages": "passages judged relevant that no item covers",
    "bad-questions": "items that passages judged not relevant cover, most first",
    "item-statistics": "how items discriminate, duplicate ones, size of the bank",
    "graders": "grades given, failures, disagreement of graders and prompts",
    "all": "all of these; a page for a browser with -o REPORT.html",
    "bank": "does the bank hold: items, stability, reusability",
    "suggest": "the same, and what to split, merge, reword and retire",
    "calibration": "confidence against agreement with assessors' grades",
    "canary": "let a grader grade known cases, and say how often it was fooled",
}
