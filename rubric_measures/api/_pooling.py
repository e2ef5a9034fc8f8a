"""Pooling: runs, answers, judgments and texts become the passages to grade."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from rubric_measures.api._loading import File, file_path, is_file
from rubric_measures.api._records import PassageRecords
from rubric_measures.api._runs import run_list
from rubric_measures.base.errors import InputError
from rubric_measures.base.files import peek_head
from rubric_measures.corpora import pooling
from rubric_measures.corpora.collections import opened_collection
from rubric_measures.corpora.overwriting import keep_inputs
from rubric_measures.formats.queries import read_queries, read_track_topics
from rubric_measures.formats.reports import Answer, read_answers
from rubric_measures.formats.trec import distinct_run_names, read_qrels, read_run
from rubric_measures.types.entities import Run

if TYPE_CHECKING:
    from rubric_measures.api._runs import AnyRun, Runs
    from rubric_measures.corpora.collections import Collection
    from rubric_measures.formats.queries import Topic

_File = str | os.PathLike[str]
Pooled: TypeAlias = "Runs | Answer | Iterable[AnyRun | Answer]"
"""What is pooled: files of runs or answers, runs in memory as `score` takes them, `Answer`s, or several of them."""


def pool(
    runs: Pooled = (),
    collection: _File | Sequence[_File] | Collection | None = None,
    *,
    depth: int = 20,
    queries: File | Mapping[str, str] | Iterable[str] | None = None,
    judgments: File | Iterable[Any] | None = None,
    judged: bool = False,
    max_words: int | None = 400,
    track: str | None = None,
    topics: File | Mapping[str, Topic] | None = None,
    missing: Literal["error", "skip"] = "error",
    output: _File | None = None,
) -> PassageRecords:
    """The passages that runs retrieved, with their texts, rankings and judgments, by query.

    >>> import rubric_measures
    >>> from rubric_measures.corpora.collections import example_folder
    >>> rubric_measures.pool(collection=example_folder(), depth=2)
    PassageRecords(9 queries, 84 passages)

    Args:
        runs: run files, runs in memory (see `score`), or generated answers (reports, or files with query_id, run_id
            and text); none takes those of the collection.
        collection: the texts: a folder, a file of documents or records, an id of ir_datasets, or a collection; or
            several files of documents.
        depth: documents of each ranking; answers are always taken whole.
        queries: pool these queries: ids, query -> text, or a query file; None takes the collection's, else all.
        judgments: what assessors said: rows or a qrels file; None takes the collection's.
        judged: add all judged documents to the pool.
        max_words: the longest passage of an answer; None leaves answers whole.
        track: say which answers are longer than this track allows (`rag24`, `rag25`, …).
        topics: topics of a track, or their file: the queries, and their length limits.
        missing: documents that the collection does not have are an error, or left out and counted (`skip`).
        output: a file for the records, which are then not held in memory.

    Raises:
        InputError: a file is wrong, there is nothing to pool, two runs have one name, or documents are missing.
    """
    with contextlib.ExitStack() as stack:

        def named(source: Any) -> Any:
            return stack.enter_context(file_path(source)) if source is not None and is_file(source) else source

        def read(source: Any, reader: Callable[[str], Any]) -> Any:
            return reader(source) if isinstance(source, str) else source

        listed = [named(one) for one in _several(runs)]
        queries, judgments, topics = (named(source) for source in (queries, judgments, topics))
        several: list[Any] = list(collection) if isinstance(collection, list | tuple) else [collection]
        keep_inputs(output, *listed, queries, judgments, topics, *several)
        known = opened_collection(collection)
        pooled, answers = _read(listed)
        if known is not None and not listed:
            pooled, answers = list(known.runs.values()), list(known.answers)
        if not pooled and not answers and not judged:
            raise InputError("nothing to pool: name runs or reports, or a collection that has some")
        limits = read(topics, read_track_topics)
        asked = limits if queries is None else read(queries, read_queries)
        if asked is None and known is not None and known.has_queries():
            asked = known.query_texts
        if judgments is None:
            rows = known.judgments if known is not None else ()
        else:
            rows = read(judgments, read_qrels)
        groups = pooling.pool(
            pooled,
            depth,
            known.docs_store() if known is not None and known.has_docs() else None,
            answers=answers,
            judgments=rows,
            judged=judged,
            queries=asked,
            max_words=max_words,
            track=track,
            topics=limits,
            missing=missing,
        )
        return PassageRecords.kept(groups, output)


def _read(sources: Sequence[Any]) -> tuple[list[Run], list[Answer]]:
    """The runs and the answers of files, told apart by content, and of what they hold."""

    runs: list[Run] = []
    names: list[str] = []
    answers: list[Answer] = []
    for source in sources:
        if isinstance(source, Answer):
            answers.append(source)
        elif isinstance(source, Run):
            runs.append(source)
            names.append(source.run_id)
        elif _holds_answers(source):
            answers += read_answers(source)
        else:
            runs.append(read_run(source))
            names.append(source)
    names = distinct_run_names([run.run_id for run in runs], names)
    return [replace(run, run_id=name) for run, name in zip(runs, names, strict=True)], answers


def _holds_answers(path: str) -> bool:
    first = peek_head(path).lstrip().partition(b"\n")[0]
    # JSON, or a table with the three columns query_id, run_id and text; a run has five or six.
    return first.startswith((b"{", b"[")) or first.count(b"\t") == 2


def _several(runs: Any) -> list[Any]:
    """Files, runs and answers one by one; what else is a run in memory is read."""

    def is_kept(one: Any) -> bool:
        return is_file(one) or isinstance(one, Answer)

    if is_kept(runs):
        return [runs]
    if isinstance(runs, Mapping) or hasattr(runs, "columns") or not isinstance(runs, Iterable):
        return list(run_list(runs))
    several = list(runs)
    if several and not is_kept(several[0]) and hasattr(several[0], "doc_id"):
        return list(run_list(several))
    made = [one for one in several if not is_kept(one)]
    return [*(one for one in several if is_kept(one)), *(run_list(made) if made else ())]
