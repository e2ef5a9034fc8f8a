"""Runners: the order and the parallelism of calls, and nothing else."""

from rubric_measures.runners.local import Job, LocalRunner, RunStats

__all__ = ["Job", "LocalRunner", "RunStats"]
