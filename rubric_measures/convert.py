"""Any format that we read into any that we write: a table of formats, and bridges between what they hold."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rubric_measures.answers import read_answers
from rubric_measures.errors import FormatError, InputError, UnknownNameError
from rubric_measures.files import open_binary, path_name
from rubric_measures.formats.bank import BankEntry, bank_entries, bank_of_entries, read_bank, write_bank
from rubric_measures.formats.json_models import parse_json
from rubric_measures.formats.leaderboard_writers import write_leaderboard
from rubric_measures.formats.leaderboards import FORMS, Form, LeaderboardTable, read_leaderboard
from rubric_measures.formats.merging import add_judgments, add_runs, merge_records, records_of_item_grades
from rubric_measures.formats.queries import read_queries, write_queries
from rubric_measures.formats.tqa import read_tqa
from rubric_measures.formats.trec import Qrel, Run, make_run, read_qrels, read_run, write_qrels, write_runs
from rubric_measures.formats.workbench import QueryPassages, load_graded, write_graded
from rubric_measures.graded import Grades, Label, build_grades
from rubric_measures.pooling import pool
from rubric_measures.qrels import qrels_of
from rubric_measures.records import TestBank
from rubric_measures.selection import GradeFilter, load_records

__all__ = ["FORMATS", "Format", "Options", "convert", "detect_format"]

Path_ = str | os.PathLike[str]


@dataclass(frozen=True)
class Options:
    """What conversions may need besides the files.

    Attributes:
        collection: where texts come from, for records made of qrels or runs.
        bank: the test bank of grades.
        wanted: which grade set of records counts.
        label: how item grades become a label, `max` or `count`.
        rel: the minimum grade that counts, see `QueryGrades.labels`.
        depth: documents of each ranking; all if None.
        grader: who made the grades of item qrels.
        run: the run to write, of several.
    """

    collection: str | None = None
    bank: TestBank | None = None
    wanted: GradeFilter = field(default_factory=GradeFilter)
    label: Label = "max"
    rel: int = 1
    depth: int | None = None
    grader: str = "qrels"
    run: str | None = None


@dataclass(frozen=True)
class Format:
    """One file format.

    Attributes:
        kind: what a file holds: `records`, `qrels`, `item qrels`, `bank`, `queries`, `runs`, `answers`. Formats of one
            kind convert into each other without loss of what both can hold.
        description: one line.
        read: path -> content; None where it is only written.
        write: (path, content); None where it is only read.
    """

    kind: str
    description: str
    read: Callable[[Path_], Any] | None = None
    write: Callable[[Path_, Any], None] | None = None


def _read_passage_qrels(path: Path_) -> list[Qrel]:
    rows = read_qrels(path)
    if len({row[:2] for row in rows}) < len(rows):
        raise FormatError("judges items (several lines a document); read it as item-qrels", path=path_name(path))
    return rows


def _write_runs(path: Path_, runs: Sequence[Run]) -> None:
    """One file; or one file a run, when `path` is a folder."""
    if Path(path).is_dir():
        bad = next((run.run_id for run in runs if "/" in run.run_id or run.run_id in ("", ".", "..")), None)
        if bad is not None:
            raise InputError(f"the run {bad!r} cannot name a file; choose one with --run, and name its file")
        for run in runs:
            write_runs(Path(path) / f"{run.run_id}.run", [run])
        return
    if len(runs) > 1:
        names = ", ".join(run.run_id for run in runs[:4])
        raise InputError(
            f"{path_name(path)}: a run file holds one run, not {len(runs)} ({names}, …); choose one with --run, "
            "or name a folder"
        )
    write_runs(path, runs)


def _read_runs(path: Path_) -> list[Run]:
    return [read_run(path)]


def _read_tqa_entries(path: Path_) -> list[BankEntry]:
    return bank_entries(read_tqa(path), test_collection="tqa2")


def _leaderboard(form: Form | None, description: str) -> Format:
    def write(path: Path_, table: LeaderboardTable) -> None:
        write_leaderboard(path, table, form or "ir_measures")

    return Format("leaderboard", description, lambda path: read_leaderboard(path, form=form), write)


# A new format is one entry here (and a module in formats/).
FORMATS: dict[str, Format] = {
    "records": Format("records", "graded passages of the Rubric workbench (.jsonl.gz)", load_graded, write_graded),
    "qrels": Format("qrels", "a label a passage; of records, what the grades imply", _read_passage_qrels, write_qrels),
    "judgments": Format("judgments", "of records, what people said, as qrels", None, write_qrels),
    "item-qrels": Format("item qrels", "one grade an item (diversity qrels)", read_qrels, write_qrels),
    "run": Format("runs", "TREC run; of records, their rankings (several into a folder)", _read_runs, _write_runs),
    "bank": Format("bank", "test bank of the Rubric workbench (.jsonl.gz)", read_bank, write_bank),
    "tqa": Format("bank", "TQA lessons with answer keys", _read_tqa_entries),
    "queries": Format("queries", "queries: .json, .jsonl or .tsv by name", read_queries, write_queries),
    "answers": Format("answers", "reports with generated answers", read_answers),
    "leaderboard": _leaderboard(None, "leaderboard in any form; written as run topic measure value"),
    **{f"leaderboard:{form}": _leaderboard(form, f"leaderboard, form {form}") for form in FORMS},
}


def convert(
    paths: Sequence[Path_],
    output: Path_,
    *,
    to: str | None = None,
    source: str | None = None,
    runs: Sequence[Path_] = (),
    qrels: Sequence[Path_] = (),
    options: Options | None = None,
) -> None:
    """Reads files of one format, puts them together, and writes them in another; inputs stay as they are.

    Args:
        paths: files of one kind; several are merged (a contradiction between them is an error).
        output: the file to write; it appears only when all went well.
        to: the format to write (a key of `FORMATS`); that of the input if None.
        source: the format of the input; told by content if None.
        runs: run files whose rankings are added to records.
        qrels: judgments that are added to records.
        options: what the conversion may need.

    Raises:
        UnknownNameError: there is no such format.
        InputError: a file is wrong, files contradict each other, or there is no way from the one format to the other.
    """
    options = options or Options()
    if not paths:
        raise InputError("name a file to convert")
    for name in (to, source):
        if name is not None and name not in FORMATS:
            raise UnknownNameError("format", name, FORMATS)
    sources = [source or detect_format(path) for path in paths]
    target = FORMATS[to or sources[0]]
    write = target.write
    if write is None:
        raise InputError(f"{to or sources[0]} is only read; choose another format with --to")
    if len({FORMATS[name].kind for name in sources}) > 1:
        listing = ", ".join(f"{path_name(path)} ({name})" for path, name in zip(paths, sources, strict=True))
        raise InputError(f"the files do not hold the same: {listing}; convert them one by one")
    kind = FORMATS[sources[0]].kind
    content = _merged(kind, [_reader(name)(path) for path, name in zip(paths, sources, strict=True)])
    if kind != target.kind:
        bridge = _BRIDGES.get((kind, target.kind))
        if bridge is None:
            ways = sorted(name for name, one in FORMATS.items() if one.write and _reaches(kind, one.kind))
            raise InputError(f"{kind} cannot become {target.kind}; they can become: {', '.join(ways)}")
        content = bridge(content, options)
    if runs or qrels:
        if target.kind != "records":
            raise InputError("runs and judgments can be added to records only")
        content = add_runs(content, [read_run(path) for path in runs], options.depth)
        content = add_judgments(content, [row for path in qrels for row in _read_passage_qrels(path)])
    write(output, content)


def _reaches(kind: str, other: str) -> bool:
    return kind == other or (kind, other) in _BRIDGES


def _reader(name: str) -> Callable[[Path_], Any]:
    read = FORMATS[name].read
    if read is None:
        raise InputError(f"{name} is only written; choose another format with --from")
    return read


def _merged(kind: str, contents: Sequence[Any]) -> Any:
    if len(contents) == 1:
        return contents[0]
    if kind == "records":
        return merge_records(contents)
    if kind == "queries":
        texts: dict[str, str] = {}
        for content in contents:
            for query_id, text in content.items():
                if texts.setdefault(query_id, text) != text:
                    raise InputError(f"query {query_id!r} has different texts in the files")
        return texts
    if kind == "leaderboard":
        raise InputError("leaderboards are converted one by one")
    rows = [row for content in contents for row in content]
    if kind == "bank":
        # Says what contradicts.
        bank_of_entries(rows)
    elif kind in ("qrels", "item qrels"):
        labels: dict[tuple[str, str, str], int] = {}
        for row in rows:
            if labels.setdefault((row.query_id, row.doc_id, row.iteration), row.relevance) != row.relevance:
                raise InputError(f"query {row.query_id!r}, document {row.doc_id!r} has different labels in the files")
        rows = list(dict.fromkeys(rows))
    return rows


def _grades(groups: Sequence[QueryPassages], options: Options) -> Grades:
    """The grades of records in memory; the one reader of grade sets reads files."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "records.jsonl"
        write_graded(path, groups)
        try:
            return load_records(path, options.bank, options.wanted)
        except UnknownNameError:
            raise
        except InputError as error:
            # The user does not know this file.
            raise InputError(str(error).removeprefix(f"{path}: ")) from None


def _records_to_qrels(groups: Sequence[QueryPassages], options: Options) -> list[Any]:
    return list(qrels_of(_grades(groups, options), "passage", options.label, options.rel))


def _records_to_item_qrels(groups: Sequence[QueryPassages], options: Options) -> list[Any]:
    return list(qrels_of(_grades(groups, options), "item"))


def _records_to_judgments(groups: Sequence[QueryPassages], _: Options) -> list[Qrel]:
    rows = [
        Qrel(one.query_id, passage.doc_id, one.relevance)
        for group in groups
        for passage in group.passages
        for one in passage.judgments
    ]
    if not rows:
        raise InputError("the records hold no judgments")
    return list(dict.fromkeys(rows))


def _records_to_runs(groups: Sequence[QueryPassages], options: Options) -> list[Run]:
    rows: dict[str, list[tuple[str, str, float]]] = {}
    for group in groups:
        for passage in group.passages:
            for place in passage.rankings:
                rows.setdefault(place.method, []).append((place.query_id, passage.doc_id, place.score))
    if not rows:
        raise InputError("the records hold no rankings")
    if options.run is not None and options.run not in rows:
        raise UnknownNameError("run", options.run, rows)
    chosen = sorted(rows) if options.run is None else [options.run]
    return [make_run(run_id, rows[run_id]) for run_id in chosen]


def _item_qrels_to_qrels(rows: Sequence[Qrel], options: Options) -> list[Any]:
    return list(qrels_of(build_grades(rows, options.bank), "passage", options.label, options.rel))


def _texts(rows: Sequence[Qrel], options: Options) -> dict[str, str]:
    docs = _docs(options)
    found = docs.get_many(sorted({row.doc_id for row in rows}))
    return {
        doc_id: str(one.default_text() if hasattr(one, "default_text") else one.text) for doc_id, one in found.items()
    }


def _docs(options: Options) -> Any:
    if options.collection is None:
        raise InputError("records need the texts of their passages; name a collection with --collection")
    from rubric_measures.collection import load_collection

    collection = load_collection(options.collection)
    if not collection.has_docs():
        raise InputError(f"{options.collection}: has no documents")
    return collection.docs_store()


def _item_qrels_to_records(rows: Sequence[Qrel], options: Options) -> list[QueryPassages]:
    kinds = {item.kind for item in options.bank} if options.bank is not None else set()
    kind = kinds.pop() if len(kinds) == 1 else "question"
    return records_of_item_grades(rows, _texts(rows, options), grader=options.grader, kind=kind)


def _qrels_to_records(rows: Sequence[Qrel], options: Options) -> list[QueryPassages]:
    return list(pool(docs=_docs(options), judgments=rows, judged=True))


def _runs_to_records(runs: Sequence[Run], options: Options) -> list[QueryPassages]:
    return list(pool(runs, options.depth or 20, _docs(options)))


def _bank_to_queries(entries: Sequence[Any], _: Options) -> dict[str, str]:
    texts = dict(bank_of_entries(entries).query_texts)
    if not texts:
        raise InputError("the bank does not give the texts of its queries")
    return texts


_Bridge = Callable[[Any, Options], Any]
_BRIDGES: Mapping[tuple[str, str], _Bridge] = {
    ("records", "qrels"): _records_to_qrels,
    ("records", "item qrels"): _records_to_item_qrels,
    ("records", "judgments"): _records_to_judgments,
    ("records", "runs"): _records_to_runs,
    ("item qrels", "qrels"): _item_qrels_to_qrels,
    ("item qrels", "records"): _item_qrels_to_records,
    ("qrels", "records"): _qrels_to_records,
    ("runs", "records"): _runs_to_records,
    ("answers", "records"): lambda answers, _: list(pool(answers=answers)),
    ("bank", "queries"): _bank_to_queries,
}


def detect_format(path: Path_) -> str:
    """The name of a file's format, by its content.

    Raises:
        InputError: the file cannot be opened, or is standard input (which can be read once only).
        FormatError: it is none that is told by content.
    """
    name = path_name(path)
    if name == "-":
        raise InputError("the format of standard input is not told by content; name it with --from")
    with open_binary(path) as stream:
        head = stream.read(3).removeprefix(b"\xef\xbb\xbf") + stream.readline(1 << 24)
        while head and head.isspace():
            head = stream.readline(1 << 24)
        rest = stream.read(1 << 16)
    start = head.lstrip()[:1]
    if not start:
        raise FormatError("is empty", path=name)
    if start in (b"[", b"{"):
        return _json_format(head, rest, name)
    return _column_format(head.decode("utf-8", "replace").rstrip("\r\n"), rest, name)


def _json_format(head: bytes, rest: bytes, name: str) -> str:
    try:
        value = parse_json(head, path=name, line=1)
    except FormatError:
        # One JSON text over several lines: lessons or queries.
        if head.strip() in (b"[", b"{") or head.rstrip().endswith((b",", b"{", b"[")):
            return "tqa" if b'"globalID"' in head + rest else "queries"
        raise
    if isinstance(value, list):
        first = value[0] if value else None
        if isinstance(first, dict):
            return "tqa" if "globalID" in first else "queries"
        return "records"
    if "items" in value:
        return "bank"
    if "metadata" in value or isinstance(value.get("answer"), list) or "responses" in value:
        return "answers"
    return "queries"


def _column_format(line: str, rest: bytes, name: str) -> str:
    columns = line.split()
    if len(columns) in (5, 6) and columns[3].isdecimal() and line.count("\t") != 1:
        return "run"
    if len(columns) == 4 and columns[3].lstrip("-").isdecimal() and line.count("\t") != 1:
        lines = [line, *rest.decode("utf-8", "replace").split("\n")[:-1]]
        pairs = [tuple(row[:1] + row[2:3]) for row in map(str.split, lines) if len(row) == 4]
        return "item-qrels" if len(set(pairs)) < len(pairs) or columns[1] not in ("0", "Q0") else "qrels"
    if "\t" in line:
        return "queries"
    raise FormatError("is of no format that can be told by content; name it with --from", path=name, line=1)
