"""Official measures beside ours: a leaderboard over grades and one over judgments (qrels) of the same runs, as one."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from rubric_measures.leaderboards.board import OVERALL, BoardInputs, Cell, Leaderboard
from rubric_measures.leaderboards.scoring import inputs_settings, texts_digest
from rubric_measures.types.entities import Signature

_LOG = logging.getLogger("rubric_measures")
_NOTHING = Cell(None, None, 0, None, 0)

__all__ = ["with_official"]


def with_official(ours: Leaderboard, official: Leaderboard, measures: Sequence[str]) -> Leaderboard:
    """One leaderboard of two, of the same runs. Each measure keeps the queries that it was scored over.

    A warning says where these are not the same for grades and qrels: then the means are over different queries.

    Args:
        ours: scores over grades.
        official: scores over judgments.
        measures: all columns, in the order to show.
    """
    _say_queries(ours.inputs.grades, official.inputs.grades)
    runs = [*ours.cells, *(run for run in official.cells if run not in ours.cells)]
    inputs = BoardInputs(
        ours.inputs.grades,
        {run: texts_digest((ours.inputs.runs[run], official.inputs.runs[run])) for run in ours.inputs.runs},
        official.inputs.grades,
    )
    settings = {**ours.signature.settings, "measures": list(measures), **inputs_settings(inputs)}
    values, cells = {}, {}
    for run in runs:
        sides = [side for side in (ours, official) if run in side.cells]
        found = {name: side.values[run][name] for side in sides for name in side.measures}
        values[run] = {name: found.get(name, {}) for name in measures}
        known = {name: side.cells[run][name] for side in sides for name in side.measures}
        cells[run] = {name: known.get(name, _NOTHING) for name in measures}
    return replace(
        ours,
        measures=list(measures),
        values=values,
        cells=cells,
        signature=Signature(settings),
        missing=_united(ours.missing, official.missing),
        # What one side lacks is said once, of queries.
        unknown={
            run: both
            for run in ours.unknown
            if (both := sorted({*ours.unknown[run]} & {*official.unknown.get(run, ())}))
        },
        inputs=inputs,
    )


def _united(some: Mapping[str, Iterable[str]], more: Mapping[str, Iterable[str]]) -> dict[str, list[str]]:
    return {run: sorted({*some.get(run, ()), *more.get(run, ())}) for run in sorted({*some, *more}) if run != OVERALL}


def _say_queries(graded: Mapping[str, str], judged: Mapping[str, str]) -> None:
    if graded.keys() == judged.keys():
        return
    both = graded.keys() & judged.keys()
    _LOG.warning(
        "means are over different queries: %d are graded and judged, %d only graded%s, %d only judged%s",
        len(both),
        *_few(graded.keys() - both),
        *_few(judged.keys() - both),
    )


def _few(queries: Iterable[str]) -> tuple[int, str]:
    named = sorted(queries)
    return len(named), f" (such as {named[0]})" if named else ""
