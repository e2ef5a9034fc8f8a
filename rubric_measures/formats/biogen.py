"""Runs of TREC BioGen 2024: one object a run, each answer a text with the ids that it cites in brackets."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping
from typing import Any, TypeGuard

from rubric_measures.base.errors import FormatError
from rubric_measures.base.words import sentence_ends

__all__ = [
    "ORIGINAL",
    "is_submission",
    "lost_brackets",
    "reports_of_submission",
]

_LOG = logging.getLogger("rubric_measures")
# The field of a report that keeps the answer as it was written.
ORIGINAL = "biogen_2024"
_BRACKET = re.compile(r"\s*\[\s*((?:PMID:?\s*)?\d+(?:\s*[,;]\s*(?:PMID:?\s*)?\d+)*)\s*\]")
_ID = re.compile(r"\d+")


def is_submission(content: Any) -> TypeGuard[Mapping[str, Any]]:
    """Whether a JSON value is such a run."""
    return isinstance(content, Mapping) and isinstance(content.get("results"), list) and "run_name" in content


def _cited_sentences(text: str) -> list[tuple[str, list[str]]]:
    """The sentences of an answer without its brackets, and the ids that each cites, in order.

    Only brackets that hold numbers alone are citations. One in front of a sentence stands behind the end of the one
    before, and is nobody's, as in the track.

    >>> _cited_sentences("Aspirin thins blood [12, 7]. It may [in some] help [9].")
    [('Aspirin thins blood.', ['12', '7']), ('It may [in some] help.', ['9'])]
    """
    sentences = []
    start = 0
    for end in sentence_ends(text):
        piece, start = text[start:end].strip(), end
        while found := _BRACKET.match(piece):
            piece = piece[found.end() :].lstrip()
        if piece:
            ids = [number for found in _BRACKET.finditer(piece) for number in _ID.findall(found[1])]
            sentences.append((_BRACKET.sub("", piece).strip(), list(dict.fromkeys(ids))))
    return sentences


def lost_brackets(text: str) -> int:
    """How many citations of an answer stand behind the end of their sentence, and count nothing."""
    every = [number for found in _BRACKET.finditer(text) for number in _ID.findall(found[1])]
    kept = [number for _, ids in _cited_sentences(text) for number in ids]
    return len(set(every) - set(kept))


def reports_of_submission(
    content: Mapping[str, Any], name: str, line: int = 0, *, says: bool = True
) -> Iterator[dict[str, Any]]:
    """The answers of a run as reports: sentences with ids, and the answer as it was.

    Args:
        content: the object; see `is_submission`.
        name: its file, for errors.
        line: where in the file it begins.
        says: whether citations that belong to no sentence are counted in a note.

    Raises:
        FormatError: a result is no {topic_id, answer, references}.
    """
    further = {key: value for key, value in content.items() if key not in ("results", "run_name")}
    lost = 0
    for place, result in enumerate(content["results"]):
        if not isinstance(result, Mapping) or not isinstance(result.get("answer"), str):
            problem = "expected {topic_id, answer, references}, the answer being a text"
            raise FormatError(problem, path=name, line=line, field=f"results[{place}]")
        text = result["answer"]
        lost += lost_brackets(text)
        known = ("topic_id", "answer", "references")
        yield {
            "metadata": {**further, "run_id": content["run_name"], "topic_id": result.get("topic_id")},
            "answer": [{"text": said, "citations": ids} for said, ids in _cited_sentences(text)],
            "references": _as_text(result.get("references")),
            ORIGINAL: {"answer": text, **{key: value for key, value in result.items() if key not in known}},
        }
    if lost and says:
        _LOG.warning("%s: %d citations stand behind the end of a sentence, and belong to none", name, lost)


def _as_text(references: Any) -> Any:
    """References with numbers as text; whatever else they are is left to whoever reads the report."""
    if not isinstance(references, list):
        return references
    return [str(one) if isinstance(one, int) and not isinstance(one, bool) else one for one in references]
