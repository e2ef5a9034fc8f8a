"""Pooling: the passages to grade, from runs to a depth, judgments, texts and generated answers."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any, Literal, NamedTuple, Protocol, TypeVar

import msgspec

from rubric_measures.base.errors import InputError, warn
from rubric_measures.corpora.answers import AnswerSegment, answer_segments, check_answers
from rubric_measures.formats.queries import Limit
from rubric_measures.formats.reports import Answer
from rubric_measures.formats.trec import as_known, spaced_form, spaced_ids, written_id
from rubric_measures.records.models import (
    GradedPassage,
    Judgment,
    PassageData,
    QueryPassages,
    RankingEntry,
    iter_graded,
    load_graded,
)
from rubric_measures.types.entities import Gap, Qrel, Ranking, Run

Missing = Literal["error", "skip"]
T = TypeVar("T")


class _ScatteredError(Exception):
    """The lines of a query do not stand together."""


def by_query(path: str | os.PathLike[str], make: Callable[[Iterable[QueryPassages]], T]) -> T:
    """What is made of the records of a file, a query at a time; of all at once where lines of a query stand apart.

    Args:
        path: the file, which may be read twice.
        make: takes the records, in the order of the file.
    """
    try:
        return make(_one_by_one(path))
    except _ScatteredError:
        return make(load_graded(path))


def _one_by_one(path: str | os.PathLike[str]) -> Iterator[QueryPassages]:
    seen: set[str] = set()
    for query_id, pieces in groupby(iter_graded(path), attrgetter("query_id")):
        if query_id in seen:
            raise _ScatteredError
        seen.add(query_id)
        first, *others = pieces
        yield first._replace(passages=[passage for piece in (first, *others) for passage in piece.passages])


class DocStore(Protocol):
    """What gives texts: the docs_store of an ir_datasets collection."""

    def get_many(self, doc_ids: Iterable[str]) -> Mapping[str, Any]:
        """doc_id -> document, for those that exist."""


class _Member(NamedTuple):
    """A pooled text: its rankings, and what its answers say about sentences and citations (run -> …)."""

    text: str
    places: list[RankingEntry]
    sources: dict[str, dict[str, Any]]


# doc_id -> member
_Pool = dict[str, _Member]


def pool(
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


def texts_of(docs: DocStore | Mapping[str, str], doc_ids: Sequence[str]) -> tuple[dict[str, str], Mapping[str, str]]:
    """The texts of documents of a TREC file, and what ids they have in the collection where those hold spaces.

    Returns:
        doc_id -> text, of those that the collection has; id in the file -> id in the collection, where they differ.
    """
    forms = {doc_id: form for doc_id in doc_ids if (form := spaced_form(doc_id)) != doc_id}
    wanted = [*dict.fromkeys([*doc_ids, *forms.values()])]
    found = {one: docs[one] for one in wanted if one in docs} if isinstance(docs, Mapping) else docs.get_many(wanted)
    texts = {doc_id: _text(document) for doc_id, document in found.items()}
    return texts, {written: form for written, form in forms.items() if written not in texts and form in texts}


def _text(document: Any) -> str:
    return str(document.default_text() if hasattr(document, "default_text") else getattr(document, "text", document))
