"""Any format that we read into any that we write; files of one kind are merged on the way."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import Any

from msgspec import structs

from rubric_measures.base.errors import InputError, UnknownNameError, naming
from rubric_measures.base.files import path_name, paused_collector
from rubric_measures.corpora.bridges import Options, add_judgments, add_runs, bridged, targets_of
from rubric_measures.corpora.pooling import by_query
from rubric_measures.formats import FORMATS, detect_format
from rubric_measures.formats.banks import BY_FACET, bank_of_entries
from rubric_measures.formats.base import PathName
from rubric_measures.formats.grade_tables import is_grade_table, read_judgments
from rubric_measures.formats.queries import join_queries
from rubric_measures.formats.trec import distinct_run_names, read_passage_qrels, read_run, run_file
from rubric_measures.records.merging import merge_records
from rubric_measures.types.entities import Run

_LOG = logging.getLogger("rubric_measures")

# Kinds that hold one grade set of records.
_OF_ONE_GRADER = ("qrels", "item qrels", "assignments", "evaluations", "support labels", "graded answers")


def convert_files(
    paths: Sequence[PathName],
    output: PathName,
    *,
    to: str | None = None,
    source: str | None = None,
    runs: Sequence[PathName] = (),
    qrels: Sequence[PathName] = (),
    options: Options | None = None,
) -> None:
    """Reads files of one format, puts them together, and writes them in another; inputs stay as they are.

    Args:
        paths: the files; several are merged (a contradiction between them is an error).
        output: the file to write; it appears only when all went well.
        to: the format to write (a key of `FORMATS`); None for that of the input; of records and banks, None is the
            table that the name of the output says (`.csv`, `.tsv`, `.parquet`).
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
    kinds = [FORMATS[name].kind for name in sources]
    to = to or _named_format(path_name(output), paths, kinds[0]) or sources[0]
    target = FORMATS[to]
    write = target.write
    if write is None:
        raise InputError(f"{path_name(paths[0])}: {to} is only read; choose another format to write", settings=("to",))

    def written(content: Any) -> None:
        if target.kind == "runs" and Path(output).is_dir():
            _keep_runs(Path(output), content, [*paths, *runs, *qrels])
        write(output, content)

    _check_ways(list(zip(paths, sources, kinds, strict=True)), to, is_told=source is not None)
    _check_options(options, kinds, to)
    if len(paths) == 1:
        options = replace(options, name=path_name(paths[0]))
        if sources == ["records"] and not (runs or qrels or "-" in (*paths, output)):
            with naming(*paths), paused_collector():
                by_query(paths[0], lambda groups: written(bridged(groups, "records", target.kind, options)))
                return
    contents = []
    for path, name in zip(paths, sources, strict=True):
        with naming(path):
            contents.append(_reader(name)(path))
    with naming(*paths):
        if len(set(kinds)) == 1 and (kinds[0] != "requests" or target.kind == "requests"):
            content = bridged(_merged(kinds[0], contents), kinds[0], target.kind, options)
        else:
            # Different kinds meet in the target's, and so do requests: each file is a run of its own.
            made = [
                bridged(one, kind, target.kind, replace(options, name=path_name(path)))
                for path, one, kind in zip(paths, contents, kinds, strict=True)
            ]
            content = _merged(target.kind, made)
    if runs or qrels:
        if target.kind != "records":
            raise InputError(f"{path_name(paths[0])}: runs and judgments can be added to records only")
        with naming(*runs):
            content = add_runs(content, _named_runs(runs), options.depth)
        with naming(*qrels):
            judged = (read_judgments(path) if is_grade_table(path) else read_passage_qrels(path) for path in qrels)
            content = add_judgments(content, chain.from_iterable(judged))
    with naming(*paths):
        written(content)


def _check_ways(inputs: Sequence[tuple[PathName, str, str]], to: str, is_told: bool) -> None:
    """Refuses files (path, format, kind) that cannot become the format `to`; the user told their format, or did not."""
    for path, name, kind in inputs:
        if not targets_of(kind, [FORMATS[to].kind]):
            ways = sorted(way for way, one in FORMATS.items() if one.write and targets_of(kind, [one.kind]))
            told = "" if is_told else "; its content told its format"
            raise InputError(
                f"{path_name(path)}: {name} cannot become {to}; it can become: {', '.join(ways)}{told}",
                settings=() if is_told else ("source",),
            )


def _check_options(options: Options, kinds: Sequence[str], to: str) -> None:
    """Refuses options that would change nothing."""
    target = FORMATS[to].kind
    filters = tuple(options.wanted.settings())
    # Item qrels may not say their scale, and records must.
    says_scale = filters == ("scale",) and "item qrels" in kinds and target == "records"
    is_of_table = "grades" in kinds and {*filters} <= {"grader", "prompt_class", "scale"} and target != "grades"
    if filters and not (says_scale or is_of_table or ("records" in kinds and target in _OF_ONE_GRADER)):
        raise InputError(
            f"{', '.join(filters)}: chooses the one grade set of records for {', '.join(_OF_ONE_GRADER)}; "
            f"{to} keeps all grade sets or has none, so leave it out",
            settings=filters,
        )
    if options.answers is not None and "support judgments" not in kinds:
        raise InputError("answers are only put beside support judgments; leave them out", settings=("answers",))


def _named_format(output: str, inputs: Sequence[PathName], kind: str) -> str | None:
    """The table that the name of the output says, for what would be written as JSON lines; None for what it is."""

    def ending(name: str) -> str:
        return name.removesuffix(".gz").rpartition(".")[2]

    said = ending(output)
    if said not in ("csv", "tsv", "parquet") or any(ending(path_name(path)) == said for path in inputs):
        return None
    has_grades = bool(targets_of(kind, ["grades"]))
    named = said.replace("tsv", "csv") if has_grades else "bank:csv" if kind == "bank" and said != "parquet" else None
    if named is None and said != "tsv":
        raise InputError(f"{output}: {kind} cannot be written as {said}; name another ending, or say the format")
    return named


def _keep_runs(folder: Path, runs: Sequence[Run], inputs: Sequence[PathName]) -> None:
    """Refuses to write the files of runs over one that was read."""
    read = {Path(path).resolve() for path in inputs if path_name(path) != "-"}
    for run in runs:
        file = run_file(folder, run)
        if file.resolve() in read:
            raise InputError(f"{file}: is read here, and would be replaced; name another folder")


def _named_runs(paths: Sequence[PathName]) -> list[Run]:
    runs = [read_run(path) for path in paths]
    names = distinct_run_names([run.run_id for run in runs], paths)
    return [structs.replace(run, run_id=name) for run, name in zip(runs, names, strict=True)]


def _reader(name: str) -> Callable[[PathName], Any]:
    read = FORMATS[name].read
    if read is None:
        raise InputError(f"{name} is only written; choose another format to read", settings=("source",))
    return read


def _merged(kind: str, contents: Sequence[Any]) -> Any:
    if len(contents) == 1:
        return contents[0]
    if kind == "records":
        return merge_records(contents)
    if kind == "queries":
        return join_queries(contents)
    if kind in ("leaderboard", "experiment"):
        raise InputError(f"{kind}s are converted one by one")
    rows = [row for content in contents for row in content]
    if kind == "bank":
        # Says what contradicts.
        bank_of_entries(rows, says=False)
    elif kind in ("qrels", "item qrels"):
        labels: dict[tuple[str, str, str], int] = {}
        for row in rows:
            if labels.setdefault((row.query_id, row.doc_id, row.iteration), row.relevance) != row.relevance:
                raise InputError(f"query {row.query_id!r}, document {row.doc_id!r} has different labels in the files")
        rows = list(dict.fromkeys(rows))
    if kind in _KEYS:
        keys = Counter(_KEYS[kind](row) for row in rows)
        twice = next((key for key, count in keys.items() if count > 1), None)
        if twice is not None:
            raise InputError(f"{kind} of {' '.join(map(str, twice))} are in several files; keep one")
    return rows


# What there may be only one of, in kinds of which files are joined end to end.
_KEYS: Mapping[str, Callable[[Any], tuple[Any, ...]]] = {
    "runs": lambda run: (run.run_id,),
    **dict.fromkeys(
        ("assignments", "graded answers", "assessments", "argue judgments", "support labels", "support judgments"),
        attrgetter("key"),
    ),
    "bank": lambda entry: (id(entry),) if entry.form in BY_FACET else (entry.query_id,),
    "requests": lambda line: (line.query_id or line.query,),
    "reports": lambda report: (report.query_id, report.run_name),
    "answers": lambda answer: (answer.query_id, answer.run_id),
    "evaluations": lambda grade: (grade.query_id, grade.doc_id),
    "games": lambda game: (game.query_id, game.agent_a, game.agent_b, game.grader),
}
