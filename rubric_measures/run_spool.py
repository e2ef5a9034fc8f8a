"""Runs on disk by query: read once, so that graded records can be streamed beside any number of runs."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rubric_measures.errors import InputError
from rubric_measures.forked import forked_map
from rubric_measures.formats.run_names import distinct_run_names
from rubric_measures.formats.trec import map_run

__all__ = ["RunSpool", "spool_runs"]


@dataclass(frozen=True)
class _SpooledRun:
    """One run's rankings in a file: query_id -> (offset, length) of the doc_ids, one a line."""

    run_id: str
    path: Path
    places: Mapping[str, tuple[int, int]]


@dataclass(frozen=True)
class RunSpool:
    """Runs whose rankings lie on disk; memory is that of one query.

    Attributes:
        runs: the runs, in the order of their files.
    """

    runs: Sequence[_SpooledRun]

    def rankings(self, query_id: str) -> dict[str, Sequence[str]]:
        """run_id -> the doc_ids of a query, best first; runs that do not rank the query have none."""
        found: dict[str, Sequence[str]] = {}
        for run in self.runs:
            place = run.places.get(query_id)
            if place is not None:
                with open(run.path, "rb") as stream:
                    stream.seek(place[0])
                    found[run.run_id] = stream.read(place[1]).decode("utf-8").split("\n")
        return found


@contextlib.contextmanager
def spool_runs(
    paths: Sequence[str],
    depth: int | None = None,
    *,
    workers: int | None = None,
    watch: Callable[[Iterable[str]], Iterable[str]] = lambda paths: paths,
) -> Iterator[RunSpool]:
    """Reads run files once and keeps their rankings, by query, in a temporary folder that goes with the block.

    Args:
        paths: TREC run files.
        depth: how many documents of a ranking are needed; None keeps all.
        workers: see `forked.forked_map`.
        watch: see `forked.forked_map`.

    Raises:
        FormatError: a file is no run.
        InputError: two runs have one name, or there is no run.
    """
    if not paths:
        raise InputError("there is no run to score")
    with tempfile.TemporaryDirectory(prefix="rubric_measures-") as folder:

        def spool(path: str) -> _SpooledRun:
            handle, name = tempfile.mkstemp(dir=folder)
            os.close(handle)
            return _spool(path, Path(name), depth)

        spooled = list(forked_map(spool, paths, workers, watch))
        names = distinct_run_names([run.run_id for run in spooled], paths)
        yield RunSpool([replace(run, run_id=name) for run, name in zip(spooled, names, strict=True)])


def _spool(path: str, target: Path, depth: int | None) -> _SpooledRun:
    run_id, blocks = map_run(path, lambda _, ranking: "\n".join(ranking.doc_ids[:depth]).encode("utf-8"))
    places: dict[str, tuple[int, int]] = {}
    with open(target, "wb") as stream:
        for query_id, block in blocks.items():
            places[query_id] = (stream.tell(), len(block))
            stream.write(block)
    return _SpooledRun(run_id, target, places)
