"""Files of any format that we read, written in any that we write: several are put together on the way."""

from __future__ import annotations

import contextlib
import itertools
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from msgspec import to_builtins

from rubric_measures.base.errors import InputError, counted, naming
from rubric_measures.base.files import path_name, paused_collector
from rubric_measures.base.json_text import parse_json
from rubric_measures.corpora.bridges import Options, bank_format, bridged, targets_of
from rubric_measures.corpora.loading import Bank, File, PassageRecords, bank_of, file_path, listed, refuse_unused
from rubric_measures.corpora.overwriting import keep_inputs
from rubric_measures.formats import FORMATS, banks, detect_format, judged, trec
from rubric_measures.formats.answers import read_answers
from rubric_measures.formats.base import PathName, say_left_out
from rubric_measures.formats.specs import Row
from rubric_measures.measures.grade_sets import Grader
from rubric_measures.records import models
from rubric_measures.records.merging import merge_records


def convert(
    inputs: File | PassageRecords | Iterable[File | PassageRecords],
    output: str | os.PathLike[str],
    *,
    to: str | None = None,
    source: str | None = None,
    collection: str | Sequence[str] | None = None,
    bank: Bank | None = None,
    answers: File | Iterable[File] = (),
    grader: str | Grader | None = None,
) -> Path:
    """Writes files of any format that we read in any format that we write; several are merged.

    Args:
        inputs: files of one kind, which are merged; what contradicts each other is an error. In Python also what `pool`
            and `grade` return.
        output: the file to write, gzipped where its name ends in `.gz`; it may not be one that is read.
        to: the format to write; left out, that of the input.
        source: the format of the input; left out, it is told by content.
        collection: the texts, for records made of a table of grades; a source as in `pool`, or several files of
            documents.
        bank: the test bank, where grades become something else.
        answers: the answers that support judgments of RAGDoll are about.
        grader: whose grades count: a name, or `model=…,prompt=…,scale=0-5:4`.

    Returns:
        the output.

    Raises:
        UnknownNameError: there is no such format.
        InputError: a file is wrong, files contradict each other, or there is no way from one format to the other.
    """
    given = dict(locals())
    with contextlib.ExitStack() as stack:
        paths, beside = ([stack.enter_context(file_path(one)) for one in listed(group)] for group in (inputs, answers))
        keep_inputs(output, *paths, *beside, bank, *listed(collection or ()))
        if not paths:
            raise InputError("name a file to convert")
        is_bank = to is not None and FORMATS[to].kind == "bank"
        sources = [source or (bank_format(path)[0] if is_bank else detect_format(path)) for path in paths]
        kind, *others = dict.fromkeys(FORMATS[one].kind for one in sources)
        if others:
            raise InputError(f"{', '.join(paths)}: hold {kind} and {others[0]}; convert what holds one kind")
        to = to or _named_format(path_name(output), paths, kind, sources[0]) or sources[0]
        target, write = FORMATS[to].kind, FORMATS[to].write
        if write is None or not targets_of(kind, [target]):
            ways = sorted(way for way, one in FORMATS.items() if one.write and targets_of(kind, [one.kind]))
            problem = f"{path_name(paths[0])}: {sources[0]} cannot become {to}; it can become: {', '.join(ways)}"
            more = "; `qrels` writes grades as qrels" if kind in ("records", "grades") and to.endswith("qrels") else ""
            raise InputError(problem + more, settings=("to",))
        wanted = Grader.parse(grader)
        used = {"answers": kind == "support judgments", "grader": _chooses(set(wanted.given), kind, target)}
        used |= {"collection": (kind, target) == ("grades", "records")}
        of_bank = ("records", "assignments"), *((one, "grades") for one in ("records", *judged.TOOLKITS))
        used |= {"bank": used["collection"] or (kind, target) in of_bank}
        refuse_unused(convert, given, (name for name, is_used in used.items() if not is_used))
        answered = [one for path in beside for one in read_answers(path)]
        options = Options(collection, bank_of(bank), wanted, answered, path_name(paths[0]))

        def written(content: Any) -> None:
            for one in content if target == "runs" and Path(output).is_dir() else ():
                keep_inputs(trec.run_file(Path(output), one), *paths)
            write(output, content)

        if sources == ["records"] and "-" not in (*paths, output):
            from rubric_measures.corpora.collections import by_query

            with naming(*paths), paused_collector():
                by_query(paths[0], lambda groups: written(bridged(groups, "records", target, options)))
            return Path(output)
        content = _joined(paths, sources, target, output, options)
        with naming(*paths):
            written(content)
    return Path(output)


def _joined(paths: Sequence[str], sources: Sequence[str], target: str, output: PathName, options: Options) -> Any:
    """What files of one kind hold together, as another kind; says what of them it has no place for."""
    contents = []
    kind: str = FORMATS[sources[0]].kind
    for path, name in zip(paths, sources, strict=True):
        read = FORMATS[name].read
        if read is None:
            raise InputError(f"{name} is only written; choose another format to read", settings=("source",))
        with naming(path):
            contents.append(read(path))
    with naming(*paths):
        unknown = _unknown(contents) if kind not in ("records", target) else {}
        if kind == "requests":
            # Each file is a run of its own.
            named = (replace(options, name=path_name(path)) for path in paths)
            contents = [bridged(one, kind, target, by) for one, by in zip(contents, named, strict=True)]
            kind = target
        content = bridged(_merged(kind, contents), kind, target, options)
        say_left_out(output, (f"{name} of {counted(count, 'row')}" for name, count in sorted(unknown.items())))
    return content


def _unknown(contents: Iterable[Any]) -> Counter[str]:
    """The fields that have no name here, of the rows that keep them, and how many rows have each."""

    def look(known: Any, said: Any) -> Iterator[str]:
        if isinstance(said, dict) and isinstance(known, dict):
            for name, value in said.items():
                if name in known:
                    yield from look(known[name], value)
                elif value not in (None, "", {}, []):
                    yield name
        elif isinstance(said, list) and isinstance(known, list):
            for pair in zip(known, said, strict=False):
                yield from look(*pair)

    rows = itertools.chain.from_iterable(one for one in contents if isinstance(one, list))
    kept = (row for row in rows if isinstance(row, models.JsonRecord))
    return Counter(name for row in kept for name in set(look(to_builtins(row), parse_json(bytes(row.raw)))))


def _chooses(chosen: set[str], kind: str, target: str) -> bool:
    """Whether a choice of grades (keys of a `Grader`) changes what a conversion gives."""
    is_of_table = kind == "grades" and chosen <= {*judged.OF_TABLES, "scale"} and target != "grades"
    return not chosen or is_of_table or (kind, target) == ("records", "assignments")


def _named_format(output: str, inputs: Sequence[PathName], kind: str, source: str) -> str | None:
    """The format that the name of the output says where the inputs have another ending; None for that of the inputs."""
    said, *others = (path_name(one).removesuffix(".gz").rpartition(".")[2] for one in (output, *inputs))
    if said in ("json", "jsonl") and {*others} <= {"csv", "tsv"} and kind in FORMATS:
        return kind
    # Tables of queries are read, and not written.
    if said not in ("csv", "tsv", "parquet") or (said in others and source != "queries"):
        return None
    named = "bank:csv" if kind == "bank" else "csv" if targets_of(kind, ["grades"]) else None
    if (named is None and said != "tsv") or (named == "bank:csv" and said == "parquet"):
        raise InputError(f"{output}: {kind} cannot be written as {said}; name another ending, or say the format")
    return named


def _merged(kind: str, contents: Sequence[Any]) -> Any:
    if len(contents) == 1:
        return contents[0]
    if kind == "records":
        return merge_records(contents)
    if kind in ("leaderboard", "experiment", "queries"):
        raise InputError(f"files of the kind {kind} are converted one by one")
    rows = [row for content in contents for row in content]
    if kind == "bank":
        # Says what contradicts.
        banks.bank_of_entries(rows, says=False)
    elif kind != "grades":
        rows = list(dict.fromkeys(rows)) if kind in ("qrels", "item qrels") else rows
        listed = [SimpleNamespace(**row.said) if isinstance(row, Row) else getattr(row, "report", row) for row in rows]
        keys = Counter(tuple(_first(one, names) for names in _KEY.split()) for one in listed)
        for key in (one for one, count in keys.items() if count > 1):
            raise InputError(f"{kind} of {' '.join(filter(None, key))} are in several files; keep one")
    return rows


def _first(row: Any, names: str) -> str:
    return next((str(said) for name in names.split("|") if (said := getattr(row, name, None)) is not None), "")


# What there may be only one of, in kinds of which files are joined end to end; of several names the first that is said.
_KEY = "run_name|run_id qid|query_id|query sentence place doc_id iteration agent_a agent_b grader"
