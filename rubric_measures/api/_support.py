"""Answers and what they cite as records whose pairs (sentence, cited document) can be graded."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from rubric_measures.api._loading import content_of, file_path, is_file, listed
from rubric_measures.base.errors import InputError, naming
from rubric_measures.types.entities import TestBank

if TYPE_CHECKING:
    from rubric_measures.corpora.collections import Collection
    from rubric_measures.formats.reports import Answer
    from rubric_measures.records.models import QueryPassages

    _Texts: TypeAlias = str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | Collection

_LOG = logging.getLogger("rubric_measures")
_SETTINGS = ("support",)


def support_records(sources: Any, collection: _Texts | None) -> list[QueryPassages]:
    """The records of answers and of the documents that they cite, with the texts that there are.

    Args:
        sources: one or several: files of reports or of support labels, graded records of cited answers or their file,
            or `Answer`s.
        collection: where the texts of cited documents come from, beside those that reports bring along.

    Raises:
        InputError: something else is given, an answer comes twice, or it has no sentences.
    """
    from rubric_measures.formats.reports import Answer
    from rubric_measures.records.details import cited_answers
    from rubric_measures.records.merging import merge_records
    from rubric_measures.records.models import QueryPassages

    several = [sources] if isinstance(sources, Answer) else listed(sources)
    answers = [one for one in several if isinstance(one, Answer)]
    groups = [one for one in several if isinstance(one, QueryPassages)]
    parts = [groups] if groups else []
    for source in several:
        if isinstance(source, (Answer, QueryPassages)):
            continue
        if not is_file(source):
            raise InputError(f"{source!r:.60} is no answer, and no file of answers", settings=_SETTINGS)
        with file_path(source) as path:
            found = _read(path)
        if found and isinstance(found[0], Answer):
            answers += found
        else:
            parts.append(found)
    texts: dict[str, str] = {}
    if answers:
        parts.append(_of_answers(answers, texts))
    merged = merge_records(parts) if len(parts) > 1 else parts[0] if parts else []
    for group in merged:
        if not cited_answers(group):
            raise InputError(
                f"query {group.query_id!r}: the records hold no answers with sentences and citations",
                settings=_SETTINGS,
            )
    return list(_with_texts(merged, texts, collection))


def sentence_bank(groups: Iterable[QueryPassages], query_texts: Mapping[str, str]) -> TestBank:
    """The sentences of all answers as a bank."""
    from rubric_measures.records.details import cited_answers, sentence_items

    return TestBank({group.query_id: sentence_items(cited_answers(group)) for group in groups}, dict(query_texts))


def _read(path: str) -> list[Any]:
    """The answers of a file, or the records that it holds."""
    from rubric_measures.formats.labels import read_support_labels, records_of_support_labels
    from rubric_measures.formats.reports import read_answers
    from rubric_measures.records.files import load_graded

    content = content_of(path)
    if content == "records":
        return load_graded(path)
    if content == "support":
        with naming(path):
            return records_of_support_labels(read_support_labels(path))
    return list(read_answers(path, keep_lost=True))


def _of_answers(answers: Sequence[Answer], texts: dict[str, str]) -> list[QueryPassages]:
    """The records of answers; the texts of documents that stand beside them are put into `texts`."""
    from rubric_measures.records.details import CitedAnswer, records_of_cited_answers

    plain = [answer for answer in answers if answer.text.strip() and not answer.sentences]
    if plain:
        raise InputError(
            f"{len(plain)} answers have no sentences, and so no citations (such as that of run {plain[0].run_id!r} to "
            f"query {plain[0].query_id!r}); give reports, with a list of sentences",
            settings=_SETTINGS,
        )
    answers = _by_own_texts(answers)
    for answer in answers:
        texts.update(answer.documents)
    return records_of_cited_answers(
        CitedAnswer.of(
            answer.query_id,
            answer.run_id,
            zip(answer.sentences, answer.citations or ((),) * len(answer.sentences), strict=True),
        )
        for answer in answers
    )


def _by_own_texts(answers: Sequence[Answer]) -> Sequence[Answer]:
    """The answers; documents of which they have different texts are called after their texts, too: `ID@` and a hash."""
    texts: dict[str, set[str]] = {}
    for answer in answers:
        for doc_id, text in answer.documents:
            texts.setdefault(doc_id, set()).add(text)
    several = {doc_id for doc_id, found in texts.items() if len(found) > 1}
    if not several:
        return answers
    _LOG.warning(
        "%d documents (such as %s) have different texts in the answers; each sentence is judged by that of its own "
        "answer, and such a document is called %s@ and the beginning of its text's md5",
        *(len(several), min(several), min(several)),
    )
    from rubric_measures.formats.reports import answer_doc_id

    renamed = []
    for answer in answers:
        own = {one: f"{one}@{answer_doc_id(text)[:8]}" for one, text in answer.documents if one in several}
        documents = tuple((own.get(doc_id, doc_id), text) for doc_id, text in answer.documents)
        citations = tuple(tuple(own.get(doc_id, doc_id) for doc_id in cited) for cited in answer.citations)
        renamed.append(answer._replace(documents=documents, citations=citations))
    return renamed


def _with_texts(
    groups: Sequence[QueryPassages], known: Mapping[str, str], collection: _Texts | None
) -> Iterator[QueryPassages]:
    """The records with the texts of their documents; those that have none are counted."""
    from rubric_measures.records.details import asked_pairs, cited_answer, cited_answers

    bare = [
        (group.query_id, passage.doc_id)
        for group in groups
        for passage in group.passages
        if not passage.text.strip() and cited_answer(group.query_id, passage) is None
    ]
    lacking = dict.fromkeys(doc_id for _, doc_id in bare)
    texts = {doc_id: known[doc_id] for doc_id in lacking if doc_id in known}
    if collection is not None:
        texts = {**_texts_of([doc_id for doc_id in lacking if doc_id not in texts], collection), **texts}
    lost = {pair for pair in bare if not texts.get(pair[1], "").strip()}
    if lost:
        pairs = sum(
            len(items)
            for group in groups
            for doc_id, items in asked_pairs(cited_answers(group), None).items()
            if (group.query_id, doc_id) in lost
        )
        _LOG.warning(
            "%d citations are of %d documents without a text (such as %s), so nobody can judge them: they have no "
            "grade, and the status failed where they are asked for",
            *(pairs, len({doc_id for _, doc_id in lost}), min(lost)[1]),
            extra={"settings": ("collection",)},
        )
    filled = set(bare) - lost
    for group in groups:
        yield group._replace(
            passages=[
                passage.model_copy(update={"text": texts[passage.doc_id]})
                if (group.query_id, passage.doc_id) in filled
                else passage
                for passage in group.passages
            ]
        )


def _texts_of(doc_ids: Sequence[str], collection: _Texts) -> Mapping[str, str]:
    """The texts of documents in a collection, or in a file of requests, whose candidates are what was retrieved."""
    from rubric_measures.corpora.collections import opened_collection
    from rubric_measures.corpora.pooling import texts_of

    if isinstance(collection, list | tuple) and len(collection) == 1:
        collection = collection[0]
    if isinstance(collection, str | os.PathLike) and Path(name := os.fspath(collection)).is_file():
        from rubric_measures.formats import detect_format
        from rubric_measures.formats.nuggetizer import read_requests

        if detect_format(name) == "requests":
            return _retrieved(read_requests(name))
    known = opened_collection(collection)
    if not known.has_docs():
        raise InputError(f"{known.source}: has no documents", settings=("collection",))
    texts, names = texts_of(known.docs_store(), doc_ids)
    return {**texts, **{written: texts[doc_id] for written, doc_id in names.items()}}


def _retrieved(requests: Iterable[Any]) -> dict[str, str]:
    texts: dict[str, str] = {}
    for request in requests:
        for candidate in request.candidates:
            if not isinstance(candidate, str) and candidate.docid:
                texts.setdefault(candidate.docid, candidate.doc.segment)
    return texts
