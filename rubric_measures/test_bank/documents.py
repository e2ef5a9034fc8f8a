"""Which documents nuggets are made from: those judged related by people, by a direct grader, or all that are listed."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Literal

from rubric_measures.errors import InputError
from rubric_measures.formats.workbench import DirectGrade, GradedPassage, QueryPassages
from rubric_measures.test_bank.nuggetization import Segment

__all__ = ["RelatedBy", "direct_label", "related_segments"]

_LOGGER = logging.getLogger("rubric_measures")
RelatedBy = Literal["judgments", "direct", "all"]


def related_segments(
    groups: Iterable[QueryPassages],
    *,
    by: RelatedBy = "judgments",
    level: int = 1,
    qrels: Mapping[tuple[str, str], int] | None = None,
    llm: str = "",
    prompt_class: str = "",
) -> dict[str, list[Segment]]:
    """Query id -> the segments that are related to it, in file order; the same text is shown once.

    Args:
        groups: passages with their texts.
        by: `judgments`: the judgments in the records (or `qrels`); `direct`: the labels of a direct grader in the
            records; `all`: every passage.
        level: the lowest label that counts as related (inclusive).
        qrels: (query id, doc id) -> judgment, in place of the judgments in the records.
        llm: only direct grades of this model.
        prompt_class: only direct grades of this prompt.

    Raises:
        InputError: a passage has several direct grades that fit; the message lists them.

    Source: Pradeep et al., TREC 2024 RAG, AutoNuggetizer report, section 3: documents judged at least related (1).
    """
    found: dict[str, list[Segment]] = {}
    unlabelled = 0
    for group in groups:
        segments = found.setdefault(group.query_id, [])
        shown = {segment.text for segment in segments}
        for passage in group.passages:
            if by == "all":
                label: int | None = level
            elif by == "direct":
                label = direct_label(group.query_id, passage, llm=llm, prompt_class=prompt_class)
            elif qrels is not None:
                label = qrels.get((group.query_id, passage.doc_id))
            else:
                label = max((judgment.relevance for judgment in passage.judgments), default=None)
            unlabelled += label is None
            if label is not None and label >= level and passage.text.strip() and passage.text not in shown:
                shown.add(passage.text)
                segments.append(Segment(passage.doc_id, passage.text))
    if unlabelled:
        _LOGGER.warning("%d passages left out: no %s", unlabelled, "direct grade" if by == "direct" else "judgment")
    return found


def direct_label(query_id: str, passage: GradedPassage, *, llm: str = "", prompt_class: str = "") -> int | None:
    """The label of a passage by the one direct grader that fits; None when there is none or it came to nothing.

    Raises:
        InputError: several graders fit.
    """
    entries = [
        entry
        for entry in passage.grades or ()
        if (not llm or entry.llm == llm)
        and (not prompt_class or (entry.prompt_info is not None and entry.prompt_info.prompt_class == prompt_class))
    ]
    if len(entries) > 1:
        listed = ", ".join(sorted(f"{_class_of(entry)} by {entry.llm}" for entry in entries))
        raise InputError(
            f"query {query_id!r}, passage {passage.doc_id!r}: several direct grades fit ({listed}); "
            "choose one with --prompt-class or --llm"
        )
    return entries[0].label if entries else None


def _class_of(entry: DirectGrade) -> str:
    return entry.prompt_info.prompt_class if entry.prompt_info else "no prompt class"
