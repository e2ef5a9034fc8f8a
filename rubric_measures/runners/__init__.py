"""Runners: the order and the parallelism of calls, and nothing else."""

from rubric_measures.runners._local import Job, LocalRunner, Pricing
from rubric_measures.runners._stats import RunStats

__all__ = ["Job", "LocalRunner", "Pricing", "RunStats"]
