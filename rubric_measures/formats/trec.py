"""TREC runs and qrels: reading (fast, and line by line where a file is in doubt), and writing."""

from __future__ import annotations

import contextlib
import io
import logging
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, repeat
from pathlib import Path
from typing import BinaryIO, TypeVar

from rubric_measures.base.errors import FormatError, InputError
from rubric_measures.base.files import atomic_writer, decode_text, open_binary, path_name
from rubric_measures.formats._trec_checked import (
    START,
    checked_qrels,
    checked_rankings,
    columns_of,
    is_number,
    run_name_of,
)
from rubric_measures.formats._trec_regular import QueryQrels, regular_qrels, regular_rankings
from rubric_measures.formats.base import Format, Head, PathName
from rubric_measures.formats.trec_ids import IdCleaner
from rubric_measures.types.entities import Qrel, Ranking, Run, make_run
from rubric_measures.types.scales import as_number

__all__ = [
    "ITEM_QRELS",
    "JUDGMENTS",
    "QRELS",
    "RUN",
    "IdCleaner",
    "Qrel",
    "QueryQrels",
    "Ranking",
    "Run",
    "columns_of",
    "distinct_run_names",
    "make_run",
    "map_qrels",
    "map_run",
    "read_passage_qrels",
    "read_qrels",
    "read_run",
    "run_file",
    "run_name_of",
    "write_qrels",
    "write_runs",
]

_LOG = logging.getLogger("rubric_measures")
T = TypeVar("T")
# A dot or hyphen at the start hides a file, or is an option; the others part folders, drives, streams and patterns.
_UNSAFE = re.compile(r'^[.-]|[\x00-\x20\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2066-\u2069/\\:*?"<>|%]')


def read_run(path: str | os.PathLike[str]) -> Run:
    """Reads a run file: `query_id Q0 doc_id rank score tag`, tabs or spaces; five columns where there is no tag.

    The lines of a query may stand anywhere. Scores are Python floats (double precision); the rank column is only
    compared with them. The run is named after its tag, or after the file where there is none or several (said).

    Raises:
        InputError: the file cannot be opened.
        FormatError: the file is empty; a line has the wrong number of columns, a score that is not a finite number, a
            rank that is not an integer from 0, or a document that its query already has.
    """
    run_id, rankings, disagreements = _map_rankings(path, lambda _, ranking: ranking)
    return Run(run_id, rankings, disagreements)


def map_run(path: str | os.PathLike[str], take: Callable[[str, Ranking], T]) -> tuple[str, dict[str, T]]:
    """Reads a run file as `read_run` does, but keeps of each ranking only what `take(query_id, ranking)` returns.

    Args:
        path: the file.
        take: a function without side effects: it may be called again for a query when a later line makes the file be
            read anew.

    Returns:
        the run's name, and query_id -> result.

    Raises:
        FormatError: as `read_run`.
    """
    return _map_rankings(path, take)[:2]


def _map_rankings(path: str | os.PathLike[str], take: Callable[[str, Ranking], T]) -> tuple[str, dict[str, T], int]:
    name = path_name(path)
    with _readable_twice(path) as again:
        regular = regular_rankings(again(), take, name)
        if regular is not None:
            run_id, taken = regular
        else:
            run_id, rankings = checked_rankings(decode_text(again().read(), name), name)
            taken = {query_id: (take(query_id, ranking), count) for query_id, (ranking, count) in rankings.items()}
    disagreements = [count for _, count in taken.values() if count]
    if disagreements:
        _LOG.warning(
            "%s: the rank column disagrees with the scores in %d queries (%d places); the scores count",
            name,
            len(disagreements),
            sum(disagreements),
        )
    return run_id, {query_id: result for query_id, (result, _) in taken.items()}, sum(disagreements)


def read_qrels(path: str | os.PathLike[str]) -> list[Qrel]:
    """Reads judgments `query_id iteration doc_id relevance` (diversity qrels: the item id is the iteration).

    A line that repeats an earlier one is left out and counted.

    Raises:
        InputError: the file cannot be opened.
        FormatError: the file is empty; a line does not have four columns or its relevance is not a number; two lines
            judge the same query, iteration and document differently.
    """
    with _readable_twice(path) as again:
        regular = regular_qrels(again(), _rows, path_name(path))
        if regular is not None:
            return list(chain.from_iterable(regular.values()))
        return checked_qrels(decode_text(again().read(), path_name(path)), path_name(path))


def map_qrels(path: str | os.PathLike[str], take: Callable[[QueryQrels], T]) -> dict[str, T]:
    """Reads judgments as `read_qrels` does, but keeps of each query only what `take` makes of its judgments.

    Args:
        path: the file.
        take: a function without side effects, see `map_run`.

    Returns:
        query_id -> result, in the order of the queries' first lines.

    Raises:
        FormatError: as `read_qrels`.
    """
    name = path_name(path)
    with _readable_twice(path) as again:
        regular = regular_qrels(again(), take, name)
        if regular is not None:
            return regular
        columns: dict[str, QueryQrels] = {}
        for query_id, doc_id, relevance, iteration in checked_qrels(decode_text(again().read(), name), name):
            of_query = columns.setdefault(query_id, QueryQrels(query_id, [], [], []))
            of_query.doc_ids.append(doc_id)
            of_query.relevances.append(relevance)
            of_query.iterations.append(iteration)
    return {query_id: take(of_query) for query_id, of_query in columns.items()}


def _rows(of_query: QueryQrels) -> list[Qrel]:
    return list(map(Qrel, repeat(of_query.query_id), of_query.doc_ids, of_query.relevances, of_query.iterations))


@contextlib.contextmanager
def _readable_twice(path: str | os.PathLike[str]) -> Iterator[Callable[[], BinaryIO]]:
    """A function that gives the file from its start: opened again, or from memory where it can be read only once."""
    with contextlib.ExitStack() as opened:
        if path_name(path) != "-" and Path(path).is_file():
            yield lambda: opened.enter_context(open_binary(path))
        else:
            data = opened.enter_context(open_binary(path)).read()
            yield lambda: io.BytesIO(data)


def distinct_run_names(tags: Sequence[str], paths: Sequence[str | os.PathLike[str]]) -> list[str]:
    """One name a run file: its tag; runs that share a tag are called after their files, which is said once.

    Raises:
        InputError: two runs still have one name.
    """
    shared = {tag for tag, count in Counter(tags).items() if count > 1}
    names = [run_name_of(os.fspath(path)) if tag in shared else tag for tag, path in zip(tags, paths, strict=True)]
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise InputError(f"two runs are called {twice[0]!r}, by tag and by file; rename one")
    if shared:
        _LOG.warning(
            "%d runs share the tag %s; runs that share a tag are called after their files",
            sum(tag in shared for tag in tags),
            min(shared),
            extra={"once": True},
        )
    return names


def write_qrels(path: str | os.PathLike[str], qrels: Iterable[tuple[str, str, float, str]]) -> None:
    """Writes judgments (query_id, doc_id, relevance, iteration) as `query_id iteration doc_id relevance`, in order.

    A relevance with a fraction is written with it, which this package reads and trec_eval does not.

    Spaces inside an id are written as `%20` and the like, said once with the count.

    Raises:
        InputError: the file cannot be written, or an id is empty.
    """
    clean = IdCleaner()
    with atomic_writer(path) as stream:
        for query_id, doc_id, relevance, iteration in qrels:
            stream.write(f"{clean(query_id)} {clean(iteration)} {clean(doc_id)} {_written(relevance)}\n")
    clean.say(path_name(path))


def _written(relevance: float) -> str:
    return f"{relevance:d}" if isinstance(relevance, int) else f"{as_number(relevance)}"


def write_runs(path: str | os.PathLike[str], runs: Iterable[Run]) -> None:
    """Writes runs as `query_id Q0 doc_id rank score tag`, ranks from 1 in the one sort, one run after the other.

    Spaces inside an id are written as `%20` and the like, said once with the count.

    Raises:
        InputError: the file cannot be written, or an id is empty.
    """
    clean = IdCleaner()
    with atomic_writer(path) as stream:
        for run in runs:
            tag = clean(run.run_id)
            for query_id, ranking in run.rankings.items():
                written = clean(query_id)
                for rank, (doc_id, score) in enumerate(zip(ranking.doc_ids, ranking.scores, strict=True), 1):
                    stream.write(f"{written} Q0 {clean(doc_id)} {rank} {score!r} {tag}\n")
    clean.say(path_name(path))


def read_passage_qrels(path: PathName) -> list[Qrel]:
    """The rows of a qrels file with one label a document.

    Raises:
        InputError: the file cannot be opened.
        FormatError: it is no qrels file, or it judges items.
    """
    rows = read_qrels(path)
    if len({row[:2] for row in rows}) < len(rows):
        raise FormatError("judges items (several lines a document); read it as item-qrels", path=path_name(path))
    return rows


def run_file(folder: Path, run: Run) -> Path:
    """Where a run is written, when several go into a folder: under its name, safe for any file system.

    What no file name may hold is written as `%2F` and the like, and so is what a shell or a listing would take for
    something else.
    """
    name = _UNSAFE.sub(lambda found: "".join(f"%{byte:02X}" for byte in found[0].encode("utf-8")), run.run_id)
    return folder / f"{name}.run"


def _write_run_files(path: PathName, runs: Sequence[Run]) -> None:
    """One file; or one file a run, when `path` is a folder."""
    if Path(path).is_dir():
        if any(not run.run_id for run in runs):
            raise InputError(
                "a run without a name cannot name a file; choose one run, and name its file", settings=("run",)
            )
        for run in runs:
            write_runs(run_file(Path(path), run), [run])
        return
    if len(runs) > 1:
        names = ", ".join(run.run_id for run in runs[:4])
        raise InputError(
            f"{path_name(path)}: a run file holds one run, not {len(runs)} ({names}, …); choose one, or name a folder",
            settings=("run",),
        )
    write_runs(path, runs)


def _columns(head: Head) -> list[str]:
    """The columns of the first line; none where a single tab says that it is a query and its text."""
    return [] if head.is_json or head.line.count("\t") == 1 else head.line.split()


def _is_run(head: Head) -> bool:
    if head.line.startswith(START):
        return True
    columns = _columns(head)
    return len(columns) in (5, 6) and columns[3].isdecimal()


def _is_qrels(head: Head) -> bool:
    columns = _columns(head)
    if len(columns) != 4:
        return False
    # A table of scores has four columns, too: run, measure, query, value.
    return columns[3].lstrip("-").isdecimal() or (columns[1] in ("0", "Q0") and is_number(columns[3]))


def _is_item_qrels(head: Head) -> bool:
    """Several labels a document, or an item where qrels for passages have 0 or Q0."""
    if not _is_qrels(head):
        return False
    lines = [head.line, *head.rest.split("\n")[:-1]]
    pairs = [tuple(row[:1] + row[2:3]) for row in map(str.split, lines) if len(row) == 4]
    return len(set(pairs)) < len(pairs) or _columns(head)[1] not in ("0", "Q0")


RUN = Format(
    "runs",
    "TREC run; of records, their rankings (several into a folder)",
    lambda path: [read_run(path)],
    _write_run_files,
    _is_run,
)
QRELS = Format(
    "qrels",
    "a label a passage; of records, what the grades imply",
    read_passage_qrels,
    write_qrels,
    lambda head: _is_qrels(head) and not _is_item_qrels(head),
)
ITEM_QRELS = Format("item qrels", "one grade an item (diversity qrels)", read_qrels, write_qrels, _is_item_qrels)
JUDGMENTS = Format("judgments", "of records, what assessors said, as qrels", write=write_qrels)
