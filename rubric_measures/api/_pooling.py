"""Pooling: runs, answers, judgments and texts become the passages to grade."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from rubric_measures.api._records import PassageRecords
from rubric_measures.api._sources import File, file_path, is_file

if TYPE_CHECKING:
    from rubric_measures.api._runs import AnyRun, Runs
    from rubric_measures.corpora.answers import Answer
    from rubric_measures.corpora.collections import Collection
    from rubric_measures.formats.topics import Topic

__all__ = ["pool"]

_File = str | os.PathLike[str]
Pooled: TypeAlias = "Runs | Answer | Iterable[AnyRun | Answer]"
"""What is pooled: files of runs or answers, runs in memory as `score` takes them, `Answer`s, or several of them."""


def pool(
    runs: Pooled = (),
    collection: _File | Collection | None = None,
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
    PassageRecords(9 queries, 83 passages)

    Args:
        runs: run files, runs in memory (see `score`), or generated answers (reports, or files with query_id, run_id
            and text); none takes those of the collection.
        collection: the texts: a folder, a file of documents or records, an id of ir_datasets, or a collection.
        depth: documents of each ranking; answers are always taken whole.
        queries: pool these queries: ids, query -> text, or a query file; None takes the collection's, else all.
        judgments: what people said: rows or a qrels file; None takes the collection's.
        judged: add all judged documents to the pool.
        max_words: the longest passage of an answer; None leaves answers whole.
        track: say which answers are longer than this track allows (`rag24`, `rag25`, …).
        topics: topics of a track, or their file: the queries, and their length limits.
        missing: documents that the collection does not have are an error, or left out and counted (`skip`).
        output: a file for the records, which are then not held in memory.

    Raises:
        InputError: a file is wrong, there is nothing to pool, two runs have one name, or documents are missing.
    """
    from rubric_measures.corpora.overwriting import keep_inputs
    from rubric_measures.corpora.pooling import pool_sources
    from rubric_measures.records.files import write_graded

    with contextlib.ExitStack() as stack:

        def named(source: Any) -> Any:
            return stack.enter_context(file_path(source)) if source is not None and is_file(source) else source

        listed = [named(one) for one in _several(runs)]
        read = [named(source) for source in (queries, judgments, topics)]
        keep_inputs(output, *listed, *read, collection)
        groups = pool_sources(
            listed,
            collection,
            depth=depth,
            queries=read[0],
            judgments=read[1],
            judged=judged,
            max_words=max_words,
            track=track,
            topics=read[2],
            missing=missing,
        )
        if output is None:
            return PassageRecords(groups)
        write_graded(output, groups)
        return PassageRecords(None, path=os.fspath(output))


def _several(runs: Any) -> list[Any]:
    """Files, runs and answers one by one; what else is a run in memory is read."""
    from rubric_measures.api._runs import run_list
    from rubric_measures.corpora.answers import Answer

    def is_kept(one: Any) -> bool:
        return is_file(one) or isinstance(one, Answer)

    if is_kept(runs):
        return [runs]
    if isinstance(runs, Mapping) or hasattr(runs, "columns") or hasattr(runs, "rankings"):
        return list(run_list(runs))
    several = list(runs)
    if several and not is_kept(several[0]) and hasattr(several[0], "doc_id"):
        return list(run_list(several))
    made = [one for one in several if not is_kept(one)]
    return [*(one for one in several if is_kept(one)), *(run_list(made) if made else ())]
