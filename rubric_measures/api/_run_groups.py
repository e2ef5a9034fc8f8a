"""Groups of runs, wherever they are named, and the runs that pass conditions on them."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rubric_measures.api._loading import File, file_path
from rubric_measures.base.errors import UnknownNameError

if TYPE_CHECKING:
    from rubric_measures.leaderboards.board import Leaderboard
    from rubric_measures.meta_evaluation.leaderboard_correlation import RunScores

__all__ = ["families_of", "groups_of", "note_relatives", "runs_where"]
_LOG = logging.getLogger("rubric_measures")


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


def families_of(made_by: File | Mapping[str, str]) -> dict[str, str]:
    """Run -> the family of the model that made it; a model that nobody knows is a family of its own."""
    from rubric_measures.meta_evaluation.families import family_of

    return {run: family_of(model) or model for run, model in (groups_of(made_by) or {}).items()}


def note_relatives(board: Leaderboard, made_by: File | Mapping[str, str]) -> dict[str, list[str]]:
    """Warns where a run of a board was made by a model of the grader's family, which may favour it.

    Args:
        board: the board; its signature names the graders.
        made_by: run -> model, or a file of lines `run model`.

    Returns:
        family -> such runs; empty where there are none.

    Raises:
        UnknownNameError: a run is not on the board.
    """
    from rubric_measures.meta_evaluation.families import relatives

    models = groups_of(made_by) or {}
    for run in models:
        if run not in board.values:
            raise UnknownNameError("run", run, board.values, settings=("made_by",))
    sets: Any = board.signature.settings.get("grades") or ()
    graders = [named[1] for one in sets if (named := re.match(r"llm=(.*?) prompt_class=", str(one)))]
    found = relatives(models, graders)
    for family, runs in found.items():
        _LOG.warning(
            "%d of %d runs (such as %s) are made by models of the grader's family, %s: it may favour them; correlate "
            "with assessors by family says how far",
            *(len(runs), len(models), runs[0], family),
        )
    return found
