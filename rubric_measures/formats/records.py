"""Graded passage records as one format among the others."""

from __future__ import annotations

from rubric_measures.formats.base import Format, Head
from rubric_measures.records.files import load_graded, write_graded

__all__ = ["RECORDS"]


def _is_records(head: Head) -> bool:
    """Each line is a list: the query and its passages."""
    return isinstance(head.value, list) and not (head.value and isinstance(head.value[0], dict))


RECORDS = Format(
    "records", "graded passages of the Rubric workbench (.jsonl.gz)", load_graded, write_graded, _is_records
)
