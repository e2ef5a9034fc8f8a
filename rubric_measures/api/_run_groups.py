"""Groups of runs, wherever they are named, and the runs that pass conditions on them."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

from rubric_measures.api._loading import File, file_path
from rubric_measures.base.errors import InputError, UnknownNameError
from rubric_measures.leaderboards.board import NO_RUNS

if TYPE_CHECKING:
    from rubric_measures.leaderboards.board import Leaderboard
    from rubric_measures.meta_evaluation.leaderboard_correlation import RunScores

_LOG = logging.getLogger("rubric_measures")
MadeBy: TypeAlias = File | Sequence[File] | Mapping[str, str]
"""Run -> model; or files: lines `run model`, ir_metadata (.yml) of a run, or runs that begin with ir_metadata."""


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


def models_of(made_by: MadeBy) -> dict[str, str]:
    """Run -> model, wherever it is said.

    Raises:
        FormatError: a file does not say it.
        InputError: two files name two models of one run.
    """
    from rubric_measures.formats.ir_metadata import has_metadata, read_model

    if isinstance(made_by, Mapping):
        return dict(made_by)
    found: dict[str, str] = {}
    files: Sequence[File] = list(made_by) if isinstance(made_by, list | tuple) else [made_by]  # type: ignore[list-item]
    for file in files:
        with file_path(file) as path:
            said = [read_model(path)] if has_metadata(path) else (groups_of(path) or {}).items()
        for run, model in said:
            if found.setdefault(run, model) != model:
                raise InputError(f"run {run!r} is made by two models, {found[run]!r} and {model!r}")
    return found


def families_of(made_by: MadeBy) -> dict[str, str]:
    """Run -> the family of the model that made it; a model that nobody knows is a family of its own."""
    from rubric_measures.meta_evaluation.families import family_of

    return {run: family_of(model) or model for run, model in models_of(made_by).items()}


def note_relatives(board: Leaderboard, made_by: MadeBy) -> dict[str, list[str]]:
    """Warns where a run of a board was made by a model of the grader's family; see `Board.relatives`."""
    from rubric_measures.meta_evaluation.families import relatives

    models = models_of(made_by)
    runs = [run for run in board.values if run not in NO_RUNS]
    for run in models:
        if run not in runs:
            raise UnknownNameError("run", run, runs, settings=("made_by",))
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
