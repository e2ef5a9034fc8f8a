"""Runners: the order and the parallelism of calls, and nothing else."""

from rubric_measures.runners.local import Job, LocalRunner, Pricing
from rubric_measures.runners.stats import RunStats

__all__ = ["Job", "LocalRunner", "Pricing", "RunStats"]
