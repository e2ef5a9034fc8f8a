"""Groups of runs, wherever they are named, and the runs that pass conditions on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from rubric_measures.api._loading import File, file_path

if TYPE_CHECKING:
    from rubric_measures.meta_evaluation.leaderboard_correlation import RunScores

__all__ = ["groups_of", "runs_where"]


def groups_of(groups: File | Mapping[str, str] | None) -> Mapping[str, str] | None:
    """Run -> group, wherever it is."""
    from rubric_measures.formats.run_groups import read_groups

    if groups is None or isinstance(groups, Mapping):
        return groups
    with file_path(groups) as path:
        return read_groups(path)


def runs_where(scores: RunScores, groups: Mapping[str, str], where: Sequence[str]) -> RunScores:
    """The runs that pass the conditions."""
    from rubric_measures.meta_evaluation.group_bias import chosen_runs

    runs = chosen_runs(list(scores.means), groups, where)
    means = {run: mean for run, mean in scores.means.items() if run in runs}
    return replace(scores, means=means, queries={run: of for run, of in scores.queries.items() if run in runs})
