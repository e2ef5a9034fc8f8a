"""Runners: the order and the parallelism of calls, and nothing else."""

from rubric_measures.runners._local import LocalRunner
from rubric_measures.runners._run_state import Job
from rubric_measures.runners._stats import RunStats

__all__ = ["Job", "LocalRunner", "RunStats"]
