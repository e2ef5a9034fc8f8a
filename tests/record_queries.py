"""The queries of a graded-records file, as tests read them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rubric_measures.grades.loading import RecordQuery, select_queries
from rubric_measures.records.streaming import GradedFile


def read_records(path: Path, *bank: Any, **more: Any) -> Iterator[RecordQuery]:
    """Streams the queries of a file; see `select_queries`."""
    with GradedFile(path) as source:
        yield from select_queries(source, source.name, *bank, **more)
