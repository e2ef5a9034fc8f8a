"""Where the variance of a leaderboard's scores comes from: runs, queries, and the rest that only both explain."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

__all__ = ["Components", "variance_components"]


@dataclass(frozen=True, slots=True)
class Components:
    """Variance components of scores, in squared units of the measure.

    Attributes:
        runs: variance of the runs' true means; 0 where the estimate is negative.
        queries: variance of the queries' difficulty; likewise.
        rest: variance of what a run does on a query beyond both; noise of runs and queries cannot be told from it.
        run_count: how many runs.
        query_count: how many queries.
    """

    runs: float
    queries: float
    rest: float
    run_count: int
    query_count: int

    @property
    def shares(self) -> list[float | None]:
        """The shares of runs, queries and rest in the sum of the three; None of 0."""
        parts = (self.runs, self.queries, self.rest)
        total = self.runs + self.queries + self.rest
        return [part / total if total else None for part in parts]

    @property
    def reliability(self) -> float | None:
        """The share of the variance of the means that is of runs: runs / (runs + rest / queries), Eρ²; None of 0."""
        whole = self.runs + self.rest / self.query_count
        return self.runs / whole if whole > 0 else None


def variance_components(scores: ArrayLike) -> Components:
    """The components of a two-way analysis of variance of runs and queries, both random, one score a cell.

    MS_runs = n Σ (x̄_r − x̄)² / (k − 1), MS_queries = k Σ (x̄_q − x̄)² / (n − 1), MS_rest that of what is left;
    σ²_runs = (MS_runs − MS_rest) / n, σ²_queries = (MS_queries − MS_rest) / k, σ²_rest = MS_rest.

    Args:
        scores: (queries, runs), complete, two or more of both.

    Source: Bodoff and Li (SIGIR 2007) and Urbano, Marrero and Martín (SIGIR 2013), generalizability theory for test
    collections; the expected mean squares are those of Cornfield and Tukey (1956).

    >>> found = variance_components([[0.2, 0.6], [0.4, 0.6], [0.6, 0.9]])
    >>> round(found.runs, 4), round(found.queries, 4), round(found.rest, 4)
    (0.0433, 0.03, 0.005)
    """
    table = np.asarray(scores, dtype=np.float64)
    n, k = table.shape
    by_run, by_query, mean = table.mean(axis=0), table.mean(axis=1), table.mean()
    runs = n * float(((by_run - mean) ** 2).sum()) / (k - 1)
    queries = k * float(((by_query - mean) ** 2).sum()) / (n - 1)
    rest = float(((table - by_run - by_query[:, None] + mean) ** 2).sum()) / ((n - 1) * (k - 1))
    # What is left by rounding alone is nothing.
    rest = rest if rest > 1e-20 * max(1.0, runs, queries) else 0.0
    return Components(max((runs - rest) / n, 0.0), max((queries - rest) / k, 0.0), rest, k, n)
