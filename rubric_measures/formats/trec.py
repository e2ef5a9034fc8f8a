"""TREC runs and qrels, read, checked and written; and the rankings inside of graded records as runs.

Two readers give the same. The fast one takes some megabytes at a time and knows regular files only: the lines of each
query stand together, all have the same number of columns, and nothing is wrong. At the first doubt the whole file is
left to the careful one, which goes line by line, knows every shape, and names the line where something is wrong.

Ids with spaces or control characters are percent-encoded where they are written. Documents of records that have no
record keep their places.
"""

from __future__ import annotations

import io
import logging
import math
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, repeat
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple, TypeVar

from msgspec.structs import replace

from rubric_measures.base.errors import FormatError, InputError, counted, warn
from rubric_measures.base.files import (
    decode_text,
    note_unfinished,
    open_binary,
    path_name,
    paused_collector,
    run_of_file,
)
from rubric_measures.base.plugins import say_once
from rubric_measures.formats.base import Format, Head, PathName, is_number, write_columns
from rubric_measures.types.entities import Qrel, Ranking, Run, by_rank, put_in_order, rank_texts
from rubric_measures.types.scales import MOST_RELEVANT, as_number

if TYPE_CHECKING:
    from rubric_measures.formats.columns import DocRows, Ranked
    from rubric_measures.records.models import QueryPassages

_LOG = logging.getLogger("rubric_measures")
# More threads would wait for each other: part of the work holds the interpreter.
_MOST_WORKERS = 8


# Of the comments that ir_metadata puts at the top of a run (Breuer, Keller and Schaer, SIGIR 2022).
START, END = "# ir_metadata.start", "# ir_metadata.end"
_CHECKED_SPACE = re.compile("[ \t\v\f\r]+")
# What no program writes; and the longest id, in letters.
_DAMAGED, _LONGEST = re.compile("[\0-\x08\x0e-\x1f]"), 1024
_DIGITS = 18


def checked_run(text: str, name: str) -> tuple[bytes, int]:
    """The lines of any run file as `regular_rankings` reads them, and how many columns they have.

    Raises:
        FormatError: names the line where something is wrong.
    """
    seen: dict[tuple[str, str], int] = {}

    def counts(number: int, row: list[str]) -> bool:
        query_id, _, doc_id, rank, score = row[:5]
        if not is_number(score) or not math.isfinite(float(score)):
            raise FormatError(f"{score[:40]!r} is not a finite number", field="score")
        if not (rank.isascii() and rank.isdecimal()) or len(rank) > _DIGITS:
            raise FormatError(f"{rank[:40]!r} is not an integer from 0 of at most {_DIGITS} digits", field="rank")
        before = seen.setdefault((query_id, doc_id), number)
        if before != number:
            raise FormatError(f"document {doc_id!r} of query {query_id!r} is already in line {before}")
        return True

    return _checked(text, name, "query_id Q0 doc_id rank score tag", 5, counts)


def _checked(
    text: str, name: str, expected: str, least: int, counts: Callable[[int, list[str]], bool]
) -> tuple[bytes, int]:
    """The lines that count, those of a query together, and how many columns they have: all, or the least.

    Raises:
        FormatError: they have not as many, `counts` refuses one, or there are none; names the line.
    """
    columns = 0
    # ir_metadata at the top are comments.
    header = text.startswith(START)
    groups: dict[str, list[str]] = {}
    for number, line in enumerate(text.split("\n"), 1):
        row = columns_of(line)
        if not row or (header and line.startswith("#")):
            header = header and not line.startswith(END)
            continue
        try:
            if _DAMAGED.search(line):
                raise FormatError("holds a NUL or another control character; the file is damaged")
            if len(row) not in ({columns} if columns else {least, len(expected.split())}):
                raise FormatError(_wrong_columns(row, " ".join(expected.split()[: columns or None])))
            columns = len(row)
            is_new = counts(number, row)
            if len(max(row, key=len)) > _LONGEST:
                raise FormatError(f"holds an id of more than {_LONGEST} letters; the file is damaged")
            if is_new:
                groups.setdefault(row[0], []).append(" ".join(row))
        except FormatError as error:
            raise FormatError(error.problem, path=name, line=number, field=error.field) from None
    if not columns:
        raise FormatError(f"is empty; expected lines '{expected}'", path=name)
    return ("\n".join(chain.from_iterable(groups.values())) + "\n" * text.endswith("\n")).encode(), columns


def checked_qrels(text: str, name: str) -> tuple[bytes, int]:
    """The lines of any qrels file as `regular_qrels` reads them; one that repeats an earlier one is left out, counted.

    Raises:
        FormatError: names the line where something is wrong.
    """
    known: dict[tuple[str, ...], float] = {}
    repeated = 0

    def counts(_: int, row: list[str]) -> bool:
        nonlocal repeated
        query_id, doc_id, said = row[0], *row[2:]
        try:
            relevance = relevance_of(said)
        except (ValueError, OverflowError):
            raise FormatError(f"relevance {said[:40]!r} is not a number") from None
        if abs(relevance) > MOST_RELEVANT:
            raise FormatError(f"relevance {said[:40]} is too large; expected a number between ±{MOST_RELEVANT}")
        count, earlier = len(known), known.setdefault(tuple(row[:3]), relevance)
        if earlier != relevance:
            raise FormatError(f"document {doc_id!r} of query {query_id!r} was judged {earlier} before, now {said}")
        repeated += len(known) == count
        return len(known) > count

    found = _checked(text, name, "query_id iteration doc_id relevance", 4, counts)
    warn("%s: %d lines repeat an earlier judgment and were left out", name, repeated)
    return found


def columns_of(line: str) -> list[str]:
    """The columns of a line, cut at blanks and tabs only: an id may hold any other space."""
    stripped = line.strip(" \t\v\f\r")
    return _CHECKED_SPACE.split(stripped) if stripped else []


def relevance_of(token: str) -> float:
    """The relevance that a token says: an `int`, or a `float` where it has a fraction.

    Raises:
        ValueError, OverflowError: it is no finite number.
    """
    if not is_number(token):
        raise ValueError(token)
    try:
        return int(token)
    except ValueError:
        return as_number(float(token))


def _wrong_columns(row: Sequence[str], expected: str) -> str:
    found, wanted, why = len(row), len(expected.split()), "ids cannot hold spaces, and lines end in line feeds"
    if row[0].startswith("["):
        return "is JSON, as graded records are, and no run; convert merges several files of records into one"
    if row[0].startswith("{"):
        why = "it is JSON; grades there are called query_id, doc_id, grade; answers are pooled and graded first"
    if {found, wanted} == {4, 6}:
        why = f"it looks like {'a run' if found == 6 else 'qrels'}: are qrels and run the wrong way round?"
    return f"has {counted(found, 'column')}; expected {wanted}: {expected} ({why})"


T = TypeVar("T")
Found = TypeVar("Found")
# Says what is to be said of a file, once it is its turn; a list takes it, too.
Say = Callable[[list[str] | None], None]


class QueryQrels(NamedTuple):
    """The judgments of one query by column."""

    query_id: str
    doc_ids: list[str]
    relevances: list[float]
    iterations: list[str]


def regular_rankings(
    stream: BinaryIO, take: Callable[[str, Ranked], T], indexes: Sequence[DocRows] = (), columns: int = 6
) -> tuple[set[str], dict[str, tuple[T, int]], bytes] | None:
    """The tags of a run, and what `take` makes of each ranking, with the places where its rank column disagrees.

    Args:
        stream: the file.
        take: called with (query_id, ranking) as soon as a query is read; what it did counts for nothing when the file
            turns out not to be regular, so it must have no effect but its result.
        indexes: see `columns.rankings`.
        columns: how many columns it has: the sixth is the tag.

    Returns:
        the last byte, too; None where anything is in doubt.
    """
    from rubric_measures.formats.columns import DoubtError, pieces, rankings

    taken: dict[str, tuple[T, int]] = {}
    tags: set[bytes] = set()
    end = b""
    try:
        for piece in pieces(stream, columns, 2):
            tags.update(*(one.at(slice(1) if one.same().all() else slice(None)).texts() for one in piece.columns[5:]))
            for query_id, (ranked, disagreements) in zip(piece.query_ids, rankings(piece, indexes), strict=True):
                taken[query_id] = take(query_id, ranked), disagreements
            end = piece.end
    except DoubtError:
        return None
    return ({tag.decode() for tag in tags}, taken, end) if taken else None


def regular_qrels(
    stream: BinaryIO, take: Callable[[QueryQrels], T], name: str = "", columns: int = 4
) -> dict[str, T] | None:
    """What `take` makes of each query's judgments, as `regular_rankings` does it; None where anything is in doubt."""
    from rubric_measures.formats.columns import DoubtError, pieces

    taken: dict[str, T] = {}
    end = b""
    try:
        for piece in pieces(stream, columns, 1, 2):
            for query_id, of_query in zip(piece.query_ids, piece.judgments(relevance_of), strict=True):
                taken[query_id] = take(QueryQrels(query_id, *of_query))
            end = piece.end
    except DoubtError:
        return None
    note_unfinished(end, name)
    return taken or None


# A dot or hyphen at the start hides a file, or is an option; the others part folders, drives, streams and patterns.
_UNSAFE = re.compile(r'^[.-]|[\x00-\x20\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2066-\u2069/\\:*?"<>|%]')


def read_run(path: str | os.PathLike[str], said: list[str] | None = None) -> Run:
    """Reads a run file: `query_id Q0 doc_id rank score tag`, tabs or spaces; five columns where there is no tag.

    The lines of a query may stand anywhere. Scores are Python floats (double precision); the rank column is only
    compared with them. The run is named after its tag, or after the file where there is none or several (said).

    Args:
        path: the file.
        said: takes the lines that are logged.

    Raises:
        InputError: the file cannot be opened.
        FormatError: the file is empty; a line has the wrong number of columns, a score that is not a finite number, a
            rank that is not an integer from 0, or a document that its query already has.
    """
    run_id, rankings, disagreements, say = _read_rankings(path, lambda _, ranked: ranked.ranking())
    say(said)
    return Run(run_id, rankings, disagreements)


def map_runs(
    paths: Sequence[str],
    take: Callable[[str, Ranked], T],
    watch: Callable[[Iterable[str]], Iterable[str]] = lambda paths: paths,
    said: list[str] | None = None,
    indexes: Sequence[DocRows] = (),
) -> Iterator[tuple[str, dict[str, T]]]:
    """Reads run files as `read_run` does, but keeps of each ranking only what `take(query_id, ranked)` returns.

    Several are read at a time; results, notes and errors come in the order of the files, as if one by one.

    Args:
        paths: the files.
        take: a function without side effects: it is called in several threads, and may be called again for a query when
            a later line makes the file be read anew.
        watch: wraps the iteration over the files (a progress bar).
        said: takes the lines that are logged.
        indexes: see `columns.rankings`.

    Returns:
        of each file the run's name, and query_id -> result.

    Raises:
        FormatError: as `read_run`.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)
    read = partial(_read_rankings, take=take, indexes=indexes)
    # Nobody can interrupt a thread that waits for a pipe.
    several = cores > 1 and len(paths) > 1 and all(map(os.path.isfile, paths))
    reads = _in_threads(read, paths, min(cores, _MOST_WORKERS)) if several else map(read, paths)
    for _, (run_id, taken, _, say) in zip(watch(paths), reads, strict=True):
        say(said)
        yield run_id, taken


def _in_threads(function: Callable[[str], T], things: Sequence[str], workers: int) -> Iterator[T]:
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(workers) as pool:
        # After an error nothing more is begun.
        yield from pool.map(function, things)


def _read_rankings(
    path: str | os.PathLike[str], take: Callable[[str, Ranked], T], indexes: Sequence[DocRows] = ()
) -> tuple[str, dict[str, T], int, Say]:
    name = path_name(path)

    tags, taken, end = _read(path, partial(regular_rankings, take=take, indexes=indexes), checked_run)
    run_id, notes = next(iter(tags)) if len(tags) == 1 else run_of_file(name) or "run", []
    if len(tags) != 1:
        why = f"has {len(tags)} different tags" if tags else "has no tag column"
        notes.append(f"{name}: {why}; the run is called {run_id}")
    disagreements = [count for _, count in taken.values() if count]
    if disagreements:
        where = f"{counted(len(disagreements), 'query')} ({counted(sum(disagreements), 'place')})"
        notes.append(f"{name}: the rank column disagrees with the scores in {where}; the scores count")

    def say(said: list[str] | None) -> None:
        unfinished = note_unfinished(end, name)
        for note in notes:
            _LOG.warning("%s", note)
        if said is not None:
            said += [*filter(None, [unfinished]), *notes]

    return run_id, {query_id: result for query_id, (result, _) in taken.items()}, sum(disagreements), say


def _read(
    path: str | os.PathLike[str],
    regular: Callable[..., Found | None],
    checked: Callable[[str, str], tuple[bytes, int]],
) -> Found:
    """What `regular` finds in a file; where that is None, what it finds in the lines that `checked` makes of it."""
    # What can be read once only is kept in memory.
    kept, name = None, path_name(path)
    if name == "-" or not Path(path).is_file():
        with open_binary(path) as stream:
            kept = stream.read()
    with open_binary(path) if kept is None else io.BytesIO(kept) as stream:
        found = regular(stream)
    if found is None:
        with open_binary(path) if kept is None else io.BytesIO(kept) as stream:
            data = stream.read()
        if data.startswith(b"PAR1"):
            raise FormatError("is parquet; expected lines of text, as trec_eval reads them", path=name)
        lines, columns = checked(decode_text(data, name), name)
        found = regular(io.BytesIO(lines), columns=columns)
    if found is None:
        raise FormatError("cannot be read", path=name)
    return found


def read_qrels(path: str | os.PathLike[str]) -> list[Qrel]:
    """Reads judgments `query_id iteration doc_id relevance` (diversity qrels: the item id is the iteration).

    A line that repeats an earlier one is left out and counted.

    Raises:
        InputError: the file cannot be opened.
        FormatError: the file is empty; a line does not have four columns or its relevance is not a number; two lines
            judge the same query, iteration and document differently.
    """
    with paused_collector():
        return list(chain.from_iterable(map_qrels(path, _rows).values()))


def map_qrels(path: str | os.PathLike[str], take: Callable[[QueryQrels], T]) -> dict[str, T]:
    """Reads judgments as `read_qrels` does, but keeps of each query only what `take` makes of its judgments.

    Args:
        path: the file.
        take: a function without side effects, see `map_runs`.

    Returns:
        query_id -> result, in the order of the queries' first lines.

    Raises:
        FormatError: as `read_qrels`.
    """
    return _read(path, partial(regular_qrels, take=take, name=path_name(path)), checked_qrels)


def _rows(of_query: QueryQrels) -> list[Qrel]:
    rows = zip(repeat(of_query.query_id), of_query.doc_ids, of_query.relevances, of_query.iterations, strict=False)
    # As Qrel(…) does, in half the time.
    return list(map(tuple.__new__, repeat(Qrel), rows))


def distinct_run_names(
    tags: Sequence[str], paths: Sequence[str | os.PathLike[str]], said: list[str] | None = None
) -> list[str]:
    """One name a run file: its tag; runs that share a tag are called after their files, which is said once.

    `said` takes the line that is logged.

    Raises:
        InputError: two runs still have one name.
    """
    shared = {tag for tag, count in Counter(tags).items() if count > 1}
    names = [run_of_file(os.fspath(path)) if tag in shared else tag for tag, path in zip(tags, paths, strict=True)]
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        files = ", ".join(path_name(path) for name, path in zip(names, paths, strict=True) if name == twice[0])
        raise InputError(f"{files}: two runs are called {twice[0]!r}, by tag and by file; rename one")
    if shared:
        count = sum(tag in shared for tag in tags)
        text = f"{count} runs share the tag {min(shared)}; runs that share a tag are called after their files"
        say_once(text)
        if said is not None:
            said.append(text)
    return names


def runs_of_files(paths: Sequence[str | os.PathLike[str]]) -> list[Run]:
    """The runs of files; those that share a tag are called after their files, which is said."""
    runs = list(map(read_run, paths))
    names = distinct_run_names([run.run_id for run in runs], paths)
    return [replace(run, run_id=name) for run, name in zip(runs, names, strict=True)]


def write_qrels(path: PathName, qrels: Iterable[tuple[str, str, float, str]]) -> None:
    """Writes judgments (query_id, doc_id, relevance, iteration) as `query_id iteration doc_id relevance`, in order.

    A relevance with a fraction is written with it, which this package reads and trec_eval does not.

    Raises:
        InputError: see `write_columns`.
    """
    write_columns(path, ((query_id, of, doc_id, as_number(label)) for query_id, doc_id, label, of in qrels))


def write_runs(path: PathName, runs: Iterable[Run]) -> None:
    """Writes runs as `query_id Q0 doc_id rank score tag`, ranks from 1 in the one sort, one run after the other.

    Raises:
        InputError: see `write_columns`.
    """
    write_columns(
        path,
        (
            (query_id, "Q0", doc_id, rank, score, run.run_id)
            for run in runs
            for query_id, ranking in run.rankings.items()
            for rank, (doc_id, score) in enumerate(zip(ranking.doc_ids, ranking.scores, strict=True), 1)
        ),
    )


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
    return folder / f"{name or 'run'}.run"


def _write_run_files(path: PathName, runs: Sequence[Run]) -> None:
    """One file; or one file a run, when `path` is a folder."""
    if Path(path).is_dir():
        for run in runs:
            write_runs(run_file(Path(path), run), [run])
        return
    if len(runs) > 1:
        names = ", ".join(run.run_id for run in runs[:4])
        problem = f"a run file holds one run, not {len(runs)} ({names}, …); name a folder that is there"
        raise InputError(f"{path_name(path)}: {problem}")
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


RUN = Format("runs", "TREC run; of records, a file a run", lambda path: [read_run(path)], _write_run_files, _is_run)
# Tried after those of items.
QRELS = Format("qrels", "a label a passage; qrels writes it of grades", read_passage_qrels, write_qrels, _is_qrels)
ITEM_QRELS = Format("item qrels", "one grade an item (diversity qrels)", read_qrels, write_qrels, _is_item_qrels)
JUDGMENTS = Format("judgments", "of records, what assessors said, as qrels", write=write_qrels)


def runs_of_records(groups: Iterable[QueryPassages], name: str = "") -> list[Run]:
    """The runs of records, sorted by name, with scores that give every program the same order.

    In a run file only scores count, not ranks. Where the scores of the records do not give the order of the ranks, or
    lack a document (which stands there under an id of none, see `Gap`), they are 1 / rank. That is counted and said.

    Raises:
        InputError: a document stands twice in a ranking.
    """
    say = f"{name}: " if name else ""
    rankings: dict[str, dict[str, Ranking]] = {}
    strangers = rewritten = 0
    notes = Counter[str]()
    for group in groups:
        strangers += sum(place.query_id != group.query_id for one in group.passages for place in one.rankings)
        for run_id, of_run in group.places.items():
            doc_ids, counts = by_rank(of_run, f"{say}query {group.query_id!r}", run_id)
            notes.update(counts)
            stated = {doc_id: score for _, score, doc_id in of_run}
            scores = [stated.get(doc_id, math.nan) for doc_id in doc_ids]
            ranking = put_in_order(doc_ids, scores)
            if any(map(math.isnan, scores)) or list(ranking.doc_ids) != doc_ids:
                rewritten += 1
                ranking = Ranking(doc_ids, [1 / rank for rank in range(1, len(doc_ids) + 1)])
            rankings.setdefault(run_id, {})[group.query_id] = ranking
    warn("%s%d rankings name another query and were left out", say, strangers)
    for text in rank_texts(notes):
        _LOG.warning("%s%s", say, text)
    warn("%s%d rankings have the scores 1 / rank, as their own do not give the order", say, rewritten)
    return [Run(run_id, of_run) for run_id, of_run in sorted(rankings.items())]
