"""Runs as users have them: files, and ir_measures' forms of a run in memory."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from rubric_measures.api._loading import File, file_path, is_file
from rubric_measures.base.errors import InputError
from rubric_measures.formats import added_format
from rubric_measures.formats.trec import as_known, distinct_run_names, read_run, written_id
from rubric_measures.types.entities import Run, make_run

if TYPE_CHECKING:
    import pandas

    from rubric_measures.measures.grades import Grades

AnyRun: TypeAlias = "File | Run | pandas.DataFrame | Mapping[str, Mapping[str, float]] | Iterable[Any]"
"""A run: a TREC run file, or what ir_measures takes: a frame, rows, or query -> document -> score."""
Runs: TypeAlias = "AnyRun | Iterable[AnyRun] | Mapping[str, AnyRun]"
"""One run or several, or name -> run. A run in memory without a name is called `run 1`, `run 2`, … in its list."""


def run_list(runs: Runs) -> list[str] | list[Run]:
    """The paths, where all runs are files with names of their own; else the runs, read.

    Raises:
        FormatError: a file is no run.
        InputError: there is no run, a run is none, or two have one name.
    """
    named = [(name, _read_added(run)) for name, run in _named(runs)]
    if not named:
        raise InputError("there is no run to score")
    paths = [os.fspath(run) for name, run in named if name is None and isinstance(run, str | os.PathLike)]
    if len(paths) == len(named):
        return paths
    found = [_read(run, name, place) for place, (name, run) in enumerate(named, 1)]
    names = [run.run_id for run in found]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"two runs are called {twice!r}; rename one")
    return found


def _named(runs: Runs) -> Iterator[tuple[str | None, Any]]:
    """Each run with the name that it is given."""
    if isinstance(runs, Mapping):
        if all(isinstance(of_query, Mapping) and _holds_scores(of_query) for of_query in runs.values()):
            yield None, runs
        else:
            yield from runs.items()
    elif is_file(runs) or isinstance(runs, Run) or hasattr(runs, "columns"):
        yield None, runs
    else:
        if not isinstance(runs, Iterable):
            raise InputError(f"{runs!r:.60} is no run, and no list of runs")
        several = list(runs)
        if several and hasattr(several[0], "doc_id"):
            yield None, several
        else:
            yield from ((None, run) for run in several)


def _holds_scores(of_query: Mapping[str, object]) -> bool:
    return all(isinstance(score, int | float) for score in of_query.values())


def read_runs(runs: Runs) -> list[Run]:
    """The runs, read.

    Raises:
        FormatError: a file is no run.
        InputError: as `run_list`.
    """
    listed = run_list(runs)
    paths = [run for run in listed if isinstance(run, str)]
    if not paths:
        return [run for run in listed if isinstance(run, Run)]
    found = list(map(read_run, paths))
    names = distinct_run_names([run.run_id for run in found], paths)
    return [replace(run, run_id=name) for run, name in zip(found, names, strict=True)]


def run_of(path: str) -> Run:
    """The run of a file, in TREC's format or one that another package adds."""
    run = _read_added(path)
    return run if isinstance(run, Run) else read_run(path)


def _read_added(run: Any) -> Any:
    """The run, read where it is a file whose format another package adds."""
    if not isinstance(run, str | os.PathLike) or not Path(run).is_file():
        return run
    found = added_format(run)
    if found is None or found.kind != "runs" or found.read is None:
        return run
    read = found.read(run)
    if len(read) != 1:
        raise InputError(f"{os.fspath(run)}: holds {len(read)} runs; a file of one run is needed")
    return read[0]


def _read(run: AnyRun, name: str | None, place: int) -> Run:
    if is_file(run):
        with file_path(run) as path:
            run = read_run(path)
    if isinstance(run, Run):
        return run if name is None else Run(name, run.rankings, run.rank_disagreements)
    called = name or f"run {place}"
    try:
        rows = list(_rows(run))
    except (AttributeError, KeyError, TypeError, ValueError):
        raise InputError(
            f"{called}: is no run; give a run file, a frame or rows with query_id, doc_id and score, or query -> "
            "document -> score"
        ) from None
    return make_run(called, rows)


def _rows(run: Any) -> Iterator[tuple[str, str, float]]:
    if isinstance(run, Mapping):
        for query_id, scores in run.items():
            for doc_id, score in scores.items():
                yield str(query_id), str(doc_id), float(score)
    elif hasattr(run, "columns"):
        columns = (run[name].tolist() for name in ("query_id", "doc_id", "score"))
        yield from (
            (str(query_id), str(doc_id), float(score)) for query_id, doc_id, score in zip(*columns, strict=True)
        )
    else:
        yield from ((str(row.query_id), str(row.doc_id), float(row.score)) for row in run)


def rankings_for(run: Run, grades: Grades) -> dict[str, Sequence[str]]:
    """query_id -> doc_ids best first, under the ids of the grades where these hold spaces, which a run file cannot."""
    known = {written_id(query.query_id): query for query in grades.queries.values()}
    known |= {query.query_id: query for query in grades.queries.values()}
    rankings: dict[str, Sequence[str]] = {}
    for query_id, ranking in run.rankings.items():
        query = known.get(query_id)
        doc_ids = as_known(ranking.doc_ids, {} if query is None else query.levels)
        if query is not None and query.is_of_labels:
            # Standard measures over labels are computed by programs that sort in their own way.
            doc_ids = ranking.with_scores(doc_ids)
        rankings[query_id if query is None else query.query_id] = doc_ids
    return rankings
