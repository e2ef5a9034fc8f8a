"""Pooling: the passages to grade, from runs to a depth, judgments, texts and generated answers."""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import msgspec
from msgspec.structs import replace

from rubric_measures.base.errors import InputError, warn
from rubric_measures.corpora.answers import AnswerSegment, answer_segments, check_answers
from rubric_measures.corpora.collections import DocStore, load_collection, texts_of
from rubric_measures.corpora.loading import (
    File,
    PassageRecords,
    Rows,
    are_rows,
    columns_of,
    grader_of,
    is_file,
    named_files,
    run_list,
)
from rubric_measures.corpora.overwriting import keep_inputs
from rubric_measures.formats import head_of
from rubric_measures.formats.answers import QUESTION_RUNS, Answer, is_answer_header, read_answers
from rubric_measures.formats.queries import Limit, read_query_file
from rubric_measures.formats.trec import (
    as_known,
    distinct_run_names,
    read_run,
    spaced_form,
    spaced_ids,
    written_id,
)
from rubric_measures.measures.grade_sets import Grader, read_judgments
from rubric_measures.records.models import (
    GradedPassage,
    Judgment,
    PassageData,
    QueryPassages,
    RankingEntry,
)
from rubric_measures.types.entities import Gap, Qrel, Ranking, Run

if TYPE_CHECKING:
    from rubric_measures.corpora.collections import Collection
    from rubric_measures.corpora.loading import AnyRun, Runs


Missing = Literal["error", "skip"]


class _Member(NamedTuple):
    """A pooled text: its rankings, and what its answers say about sentences and citations (run -> …)."""

    text: str
    places: list[RankingEntry]
    sources: dict[str, dict[str, Any]]


# doc_id -> member
_Pool = dict[str, _Member]


def pooled(
    runs: Iterable[Run] = (),
    depth: int = 20,
    docs: DocStore | Mapping[str, str] | None = None,
    *,
    answers: Iterable[Answer] = (),
    judgments: Iterable[Qrel] = (),
    judged: bool = False,
    queries: Iterable[str] | None = None,
    max_words: int | None = 400,
    track: str | None = None,
    limits: Mapping[str, Limit] | None = None,
    missing: Missing = "error",
) -> Iterator[QueryPassages]:
    """Ungraded records of the passages that runs retrieved, with their rankings and judgments, one query at a time.

    A document is in the pool of a query when some run has it among its first `depth`. Answers are cut into passages
    (`answer_segments`); passage `n` of run `R` for query `Q` is `R/Q/n`, the run's document at rank n, score 1/n. One
    that several answers share is stored once, under the id that sorts first, with a ranking for each. An answer without
    words is an empty passage, so that the records know that it was given. The result does not depend on the order of
    the runs: passages stand by best rank, then doc_id.

    Args:
        runs: retrieval runs with different ids.
        depth: documents of each ranking, at least 1; answers are always taken whole.
        docs: doc_id -> text, or a document store. Needed when there are runs.
        answers: generated answers.
        judgments: what assessors said; kept for the passages in the pool.
        judged: judged documents are in the pool too, whether or not a run found them.
        queries: the queries to pool, in the order of the result; others in the runs are left out and counted. None
            takes all, sorted. Where it is a mapping to their texts, these are the titles beside judgments.
        max_words: the longest passage of an answer; None leaves answers whole.
        track: the track whose length limit the answers should keep; see `check_answers`.
        limits: query id -> a limit of its own.
        missing: a document without text is an error, or left out and counted.

    Raises:
        InputError: depth or max_words is less than 1; two runs have one id; a document is judged twice for a query;
            the pool is empty; while iterating: documents are missing.
    """
    if depth < 1:
        raise InputError(f"a pool of depth {depth} is empty; ask for 1 or more")
    runs = sorted(runs, key=lambda run: run.run_id)
    answers = sorted(answers, key=lambda answer: answer[:2])
    titles = queries if isinstance(queries, Mapping) else {}
    queries = None if queries is None else list(queries)
    check_answers(answers, queries, track=track, limits=limits)
    found, speaking = _answered(answers, max_words)
    twice = [name for name, count in Counter([*(run.run_id for run in runs), *speaking]).items() if count > 1]
    if twice:
        raise InputError(f"two runs are called {twice[0]!r}; give one of them another tag")
    spaced = spaced_ids({answer.query_id for answer in answers} if queries is None else set(queries))
    labels = _labels_of(judgments, spaced)
    ranked: dict[str, list[tuple[str, Ranking]]] = {query_id: [] for query_id in (labels if judged else ())}
    for run in runs:
        for written, ranking in run.rankings.items():
            ranked.setdefault(spaced.get(written, written), []).append((run.run_id, ranking))

    def places_of(query_id: str) -> dict[str, list[RankingEntry]]:
        """Document among the first `depth` of a run -> its places; judged ones may have none."""
        places: dict[str, list[RankingEntry]] = {}
        for run_id, ranking in ranked.get(query_id, ()):
            for rank, (doc_id, score) in enumerate(zip(ranking.doc_ids[:depth], ranking.scores, strict=False), 1):
                if not isinstance(doc_id, Gap):
                    place = RankingEntry(method=run_id, doc_id=doc_id, query_id=query_id, rank=rank, score=score)
                    places.setdefault(doc_id, []).append(place)
        answered = found.get(query_id, {})
        for doc_id in as_known(list(labels.get(query_id, ())), answered) if judged else ():
            if doc_id not in answered:
                places.setdefault(doc_id, [])
        return places

    order = _query_order(found.keys() | ranked.keys(), queries)
    if docs is None and any(map(places_of, ranked)):
        raise InputError(
            "the runs need a collection with the texts of their documents; name one", settings=("collection",)
        )
    keep = getattr(docs, "keep", None)
    if keep is not None:
        asked = {doc_id for query_id in order for doc_id in (labels.get(query_id, ()) if judged else ())}
        asked.update(*(one.doc_ids[:depth] for query_id in order for _, one in ranked.get(query_id, ())))
        keep(asked | set(map(spaced_form, asked)))

    def groups() -> Iterator[QueryPassages]:
        left_out: list[str] = []
        for query_id in order:
            members = found.get(query_id, {})
            texts, asked = _with_texts(docs, places_of(query_id))
            lost = sorted(set(asked).difference(texts))
            if lost and missing == "error":
                raise InputError(
                    f"query {query_id!r}: {len(lost)} of {len(asked)} pooled documents are not in the collection "
                    f"({', '.join(lost[:3])}{', …' if len(lost) > 3 else ''}); they can be skipped",
                    settings=("missing",),
                )
            left_out.extend(lost)
            if clash := next((doc_id for doc_id in asked if doc_id in members), None):
                raise InputError(f"query {query_id!r}: {clash!r} names a document and a passage of an answer")
            retrieved = {
                doc_id: _Member(texts[doc_id], places, {}) for doc_id, places in asked.items() if doc_id in texts
            }
            if members or retrieved:
                # The workbench wants a title beside each judgment.
                title = titles.get(query_id) or query_id
                yield _group(query_id, {**members, **retrieved}, labels.get(query_id, {}), title)
        if left_out:
            text = "%d pooled documents are not in the collection and are left out (such as %s)"
            warn(text, len(left_out), min(left_out))

    return groups()


def _answered(answers: Sequence[Answer], max_words: int | None) -> tuple[dict[str, _Pool], set[str]]:
    """The passages of answers, by query; the runs that gave some."""
    segments = sorted(answer_segments(answers, max_words), key=lambda segment: (segment.run_id, segment.rank))
    # An answer that is in no record would be missing in every file made of them, and programs that take means over the
    # lines that are there would leave it out.
    segments += [AnswerSegment(answer.query_id, answer.run_id, 1, "") for answer in answers if not answer.words]
    found: dict[str, _Pool] = {}
    repeated = [segment for segment in segments if not _add_segment(found.setdefault(segment.query_id, {}), segment)]
    for one in repeated[:1]:
        text = "%d parts of answers repeat an earlier part of the same answer; only the first is ranked "
        warn(text + "(such as part %s of run %s for query %s)", len(repeated), one.rank, one.run_id, one.query_id)
    return found, {segment.run_id for segment in segments}


def _labels_of(judgments: Iterable[Qrel], spaced: Mapping[str, str]) -> dict[str, dict[str, float]]:
    """Query -> document -> label."""
    labels: dict[str, dict[str, float]] = {}
    for row in judgments:
        of_query = labels.setdefault(spaced.get(row.query_id, row.query_id), {})
        if of_query.setdefault(row.doc_id, row.relevance) != row.relevance:
            raise InputError(
                f"document {row.doc_id!r} has two judgments for query {row.query_id!r}; "
                "judgments of items cannot be pooled, give one label a document",
                settings=("judgments",),
            )
    return labels


def _add_segment(members: _Pool, segment: AnswerSegment) -> bool:
    """Adds a segment to its query's pool; False where the same text of the same run is there already."""
    query_id, run_id, rank, text, sentences, citations = segment
    same = next((doc_id for doc_id, known in members.items() if known.text == text), None)
    doc_id = same or f"{run_id}/{query_id}/{rank}"
    member = members.setdefault(doc_id, _Member(text, [], {}))
    if any(place.method == run_id for place in member.places):
        # The answer repeats itself: the repetition covers nothing new, and one passage has one rank in a run.
        return False
    member.places.append(RankingEntry(method=run_id, doc_id=doc_id, query_id=query_id, rank=rank, score=1 / rank))
    if sentences:
        member.sources[run_id] = {"sentences": list(sentences), "citations": [list(ids) for ids in citations]}
    return True


def _query_order(pooled: set[str], queries: Iterable[str] | None) -> list[str]:
    if queries is None:
        order = sorted(pooled)
    else:
        asked = list(dict.fromkeys(queries))
        strangers = pooled.difference(asked)
        order = [query_id for query_id in asked if query_id in pooled]
        text = "unknown and left out: %d queries of the runs (such as %s)"
        warn(text, len(strangers), min(strangers, default=""))
        warn("%d of %d queries have no passages", len(asked) - len(order), len(asked))
    if not order:
        raise InputError("the pool is empty: no run retrieves anything for the queries", settings=("queries",))
    return order


def _group(query_id: str, members: _Pool, labels: Mapping[str, float], title: str) -> QueryPassages:
    passages = []
    for doc_id, (text, places, sources) in members.items():
        label = labels.get(doc_id, labels.get(written_id(doc_id)))
        said = []
        if label is not None:
            said.append(Judgment(doc_id=doc_id, query_id=query_id, relevance=label, title_query=title))
        data = PassageData(judgments=said, rankings=sorted(places, key=lambda place: place.method))
        made: dict[str, Any] = {"doc_id": doc_id, "text": text, "paragraph_data": data}
        if sources:
            made["paragraph"] = {"answers": sources}
        passages.append(GradedPassage(**made))
    passages.sort(key=lambda one: (min((place.rank for place in one.rankings), default=1 << 60), one.doc_id))
    return QueryPassages(query_id, passages)


def _with_texts(
    docs: DocStore | Mapping[str, str] | None, asked: Mapping[str, list[RankingEntry]]
) -> tuple[dict[str, str], dict[str, list[RankingEntry]]]:
    """The texts of documents, and the documents with their places under the ids that the collection has for them."""
    texts, names = texts_of(docs, list(asked)) if docs is not None else ({}, {})
    found: dict[str, list[RankingEntry]] = {}
    for written, places in asked.items():
        doc_id = names.get(written, written)
        found.setdefault(doc_id, []).extend(
            place if doc_id == written else msgspec.structs.replace(place, doc_id=doc_id) for place in places
        )
    return texts, found


Pooled: TypeAlias = "Runs | Answer | Rows | Iterable[AnyRun | Answer | Rows]"
"""What is pooled: files of runs or answers, runs in memory as `score` takes them, `Answer`s, or several of them."""


def pool(
    runs: Pooled = (),
    collection: File | Rows | Mapping[str, str] | Sequence[File] | Collection | None = None,
    *,
    depth: int = 20,
    queries: File | Mapping[str, str] | Iterable[str] | None = None,
    judgments: File | Rows | Iterable[Any] | None = None,
    grader: str | Grader | None = None,
    judged: bool = False,
    max_words: int | None = 400,
    track: str | None = None,
    missing: Literal["error", "skip"] = "error",
    output: str | os.PathLike[str] | None = None,
) -> PassageRecords:
    """The passages that runs retrieved, with their texts, rankings and judgments, by query.

    >>> import rubric_measures
    >>> from rubric_measures.corpora.collections import example_folder
    >>> rubric_measures.pool(collection=example_folder(), depth=2)
    PassageRecords(9 queries, 84 passages)

    Args:
        runs: run files, or generated answers (reports, or files or tables with query_id, run_id and text); by default
            those of the collection. In Python also runs in memory, see `score`.
        collection: the texts: a folder, a file of documents or records, an id of ir_datasets, a collection, a table,
            or document -> text; or several files of documents.
        depth: documents of each ranking; answers are always taken whole.
        queries: pool these queries: ids, query -> text, or a file or frame of queries or topics, which may say how long
            an answer may be; default: the collection's, else all.
        judgments: what assessors said: a qrels file, a table of labels (a file, a frame, …) or rows; default: the
            collection's.
        grader: whose labels of that table count, where several labelled.
        judged: add all judged documents to the pool.
        max_words: the most words of a passage of an answer; without a limit answers are left whole.
        track: say which answers are longer than this track allows (`rag24`, `rag25`, …).
        missing: documents that the collection does not have are an `error`, or left out and counted (`skip`).
        output: a file for the records (.jsonl.gz), which are then not held in memory.

    Raises:
        InputError: a file is wrong, there is nothing to pool, two runs have one name, or documents are missing.
    """
    with contextlib.ExitStack() as stack:
        if isinstance(collection, dict) and not are_rows(collection):
            collection = {"doc_id": [*collection], "text": [*collection.values()]}
        listed = [named_files(one, stack) for one in _several(runs)]
        queries, judgments, collection = (named_files(one, stack) for one in (queries, judgments, collection))
        several: list[Any] = list(collection) if isinstance(collection, list | tuple) else [collection]
        keep_inputs(output, *listed, queries, judgments, *several)
        known = load_collection(collection)
        read, answers = _read(listed)
        if known is not None and not listed:
            read, answers = list(known.runs.values()), list(known.answers)
        if not read and not answers and not judged:
            raise InputError("nothing to pool: name runs or reports, or a collection that has some")
        file = read_query_file(queries) if isinstance(queries, str) else None
        asked: Any = queries if file is None else file.texts
        if asked is None and known is not None and known.has_queries():
            asked = known.query_texts
        rows: Any = judgments
        if isinstance(judgments, str):
            rows = read_judgments(judgments, grader_of(grader))
        elif grader is not None:
            raise InputError("a judge is chosen of a table of labels; leave the choice out", settings=("grader",))
        elif judgments is None:
            rows = known.judgments if known is not None else ()
        groups = pooled(
            read,
            depth,
            known.docs_store() if known is not None and known.has_docs() else None,
            answers=answers,
            judgments=rows,
            judged=judged,
            queries=asked,
            max_words=max_words,
            track=track,
            limits=file.limits if file is not None else {},
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
    head = head_of(path)
    # JSON, or a table with the three columns query_id, run_id and text; a run has five or six, and so has a table of
    # ranked questions.
    if head.is_json or head.line.count("\t") == 2 or is_answer_header(head.line):
        return True
    return head.line.count("\t") == 4 and QUESTION_RUNS.recognise(head)


def _several(runs: Any) -> list[Any]:
    """Files, runs and answers one by one; what else is a run in memory is read."""

    def is_kept(one: Any) -> bool:
        # Tables of answers have texts.
        return is_file(one) or isinstance(one, Answer) or (are_rows(one) and "text" in columns_of(one))

    if is_kept(runs):
        return [runs]
    if isinstance(runs, Mapping) or are_rows(runs) or not isinstance(runs, Iterable):
        return list(run_list(runs))
    several = list(runs)
    made = [one for one in several if not is_kept(one)]
    return [*(one for one in several if is_kept(one)), *(run_list(made) if made else ())]
