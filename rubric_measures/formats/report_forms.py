"""The forms in which tracks take reports: any report written in the one of another track, what is lost said."""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from rubric_measures.base.errors import InputError
from rubric_measures.base.files import atomic_writer, path_name
from rubric_measures.formats.base import Format, PathName
from rubric_measures.formats.biogen import ORIGINAL
from rubric_measures.formats.reports import CitedReport, Sentence

__all__ = ["IDS", "RAG", "RAG24"]

_LOG = logging.getLogger("rubric_measures")
_TOPIC_FIELDS = ("topic_id", "narrative_id", "qa_id")
# What a sentence has besides its text, and what a note calls it.
_OF_SENTENCES = {"contradicted_citations": "contradicted_citations", "existing_supported_citations": "given citations"}
_Rows = Callable[[Sequence[CitedReport], Counter[str]], Iterator[Any]]


def _metadata(report: CitedReport, topic_field: str) -> dict[str, Any]:
    """The metadata under the names of a form; unknown fields stay."""
    given = report.metadata.model_dump(exclude_unset=True)
    rest = {name: value for name, value in given.items() if name not in (*_TOPIC_FIELDS, "run_id")}
    return {**rest, "run_id": report.run_name, topic_field: report.query_id}


def _further(report: CitedReport) -> dict[str, Any]:
    """What a report says besides its answer."""
    known = {"metadata", "topic_id", "qid", "run_id", "answer", "responses", "references", ORIGINAL}
    return report.model_dump(exclude_unset=True, exclude=known)


def _cited(report: CitedReport, sentence: Sentence, lost: Counter[str]) -> list[str]:
    """The ids that a sentence cites; what a form has no place for is counted."""
    if isinstance(sentence.citations, dict):
        lost["scores of citations"] += len(sentence.citations)
    fields = sentence.model_dump(exclude_unset=True)
    for name, said in _OF_SENTENCES.items():
        lost[said] += len(fields.get(name) or ())
    ids = report.cited(sentence)
    repeated_or_gone = len(sentence.citations or sentence.supported_citations or ()) - len(ids)
    lost["citations that are repeated, or positions that references does not have"] += repeated_or_gone
    return ids


def _texts(sentence: Sentence) -> dict[str, Any]:
    known = {"citations", "supported_citations", "contradicted_citations", "existing_supported_citations"}
    return sentence.model_dump(exclude=known)


def _in_positions(reports: Sequence[CitedReport], lost: Counter[str], old: bool = False) -> Iterator[dict[str, Any]]:
    """TREC RAG: positions in `references`; in 2024 run and topic stand at the top level."""
    for report in reports:
        cited = [_cited(report, sentence, lost) for sentence in report.sentences]
        references = list(dict.fromkeys([*(report.references or ()), *(one for ids in cited for one in ids)]))
        places = {doc_id: place for place, doc_id in enumerate(references)}
        answer = [
            {**_texts(sentence), "citations": [places[one] for one in ids]}
            for sentence, ids in zip(report.sentences, cited, strict=True)
        ]
        metadata = _metadata(report, "topic_id" if old else "narrative_id")
        if old:
            if "narrative" in metadata:
                metadata["topic"] = metadata.pop("narrative")
            words = sum(len(sentence.text.split()) for sentence in report.sentences)
            made = {**metadata, **_further(report), "references": references, "response_length": words}
            yield {**made, "answer": answer}
        else:
            yield {"metadata": metadata, **_further(report), "references": references, "answer": answer}


def _in_ids(reports: Sequence[CitedReport], lost: Counter[str]) -> Iterator[dict[str, Any]]:
    """RAGTIME, DRAGUN, BioGen 2025 (task B), Auto-Judge: sentences with ids; the references are what is cited."""
    for report in reports:
        cited = [_cited(report, sentence, lost) for sentence in report.sentences]
        every = list(dict.fromkeys(one for ids in cited for one in ids))
        lost["references that no sentence cites"] += len(set(report.references or ()) - set(every))
        responses = [
            {**_texts(sentence), "citations": ids} for sentence, ids in zip(report.sentences, cited, strict=True)
        ]
        made = {"metadata": _metadata(report, "topic_id"), **_further(report)}
        yield {**made, "responses": responses, "references": every}


def _writer(rows: _Rows) -> Callable[[PathName, Sequence[CitedReport]], None]:
    def write(path: PathName, reports: Sequence[CitedReport]) -> None:
        if not reports:
            raise InputError(f"{path_name(path)}: there are no reports to write")
        lost: Counter[str] = Counter()
        with atomic_writer(path) as stream:
            for row in rows(reports, lost):
                stream.write(json.dumps(row, ensure_ascii=False) + "\n")
        for what, count in lost.items():
            if count:
                _LOG.warning("%s: left out, as this form has no place for them: %d %s", path_name(path), count, what)

    return write


RAG = Format("reports", "reports in the form of TREC RAG 2025 and 2026", None, _writer(_in_positions))
RAG24 = Format("reports", "reports in the form of TREC RAG 2024", None, _writer(partial(_in_positions, old=True)))
IDS = Format("reports", "reports in the form of RAGTIME, DRAGUN and BioGen 2025 (B)", None, _writer(_in_ids))
