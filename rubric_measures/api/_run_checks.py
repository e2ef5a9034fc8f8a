"""Checking runs of generated answers against the rules of their track."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from rubric_measures.api._loading import File, file_path, listed
from rubric_measures.base.errors import InputError

if TYPE_CHECKING:
    from rubric_measures.corpora.collections import Collection
    from rubric_measures.corpora.run_checks import Finding


def check_run(
    files: File | Iterable[File],
    track: str,
    *,
    topics: File | Mapping[str, str] | None = None,
    collection: File | Sequence[File] | Collection | None = None,
) -> list[Finding]:
    """What a track would refuse in runs of generated answers, or score otherwise; nothing is changed.

    >>> from io import StringIO
    >>> import rubric_measures
    >>> run = StringIO('{"metadata": {"team_id": "t", "run_id": "r", "topic_id": "181"}, "responses": '
    ...                '[{"text": "Yes.", "citations": [11, 12, 13, 14]}]}')
    >>> print(*rubric_measures.check_run(run, "biogen", topics={"181": "Does it?"}))
    open file:1: warning: topic 181: responses[0].citations has 4; the most is 3

    Args:
        files: the files, each one run, in the form in which it is submitted.
        track: `rag26`, `rag25`, `rag24`, `dragun`, `ragtime` (reports, rankings or nuggets, told by content), or
            `biogen` (2024, 2025 A or 2025 B, likewise).
        topics: the topics as the track gives them, or id -> text; without them nothing is said of missing and unknown
            topics, and RAGTIME has no lengths.
        collection: where documents that are cited are looked up.

    Returns:
        A `Finding` (severity, path, line, topic, kind, problem) each, in the order of the files; none where the track
        takes all of it as it is. A file that is empty, or no JSON, is a finding too.

    Raises:
        UnknownNameError: nobody knows the track.
        InputError: a file cannot be opened, the topics cannot be read, or the collection has no documents.
    """
    from rubric_measures.corpora.collections import opened_collection
    from rubric_measures.corpora.run_checks import check_runs
    from rubric_measures.formats.queries import Topic, read_track_topics
    from rubric_measures.formats.reports import track_rules

    track_rules(track)
    known = opened_collection(collection)
    if known is not None and not known.has_docs():
        raise InputError(f"{known.source}: has no documents", settings=("collection",))
    with contextlib.ExitStack() as stack:
        sources = listed(files)
        names = [stack.enter_context(file_path(one)) for one in sources]
        if topics is None:
            asked = None
        elif isinstance(topics, Mapping):
            asked = {key: Topic(request_id=key, title=text) for key, text in topics.items()}
        else:
            asked = read_track_topics(stack.enter_context(file_path(topics)))
        shown = {name: _shown(one) for name, one in zip(names, sources, strict=True)}
        found = check_runs(names, track, topics=asked, collection=known)
    return [one._replace(path=shown[one.path]) for one in found]


def _shown(source: File) -> str:
    """The name by which messages call a file."""
    name = source if isinstance(source, str | os.PathLike) else getattr(source, "name", None)
    return os.fspath(name) if isinstance(name, str | os.PathLike) else "open file"
