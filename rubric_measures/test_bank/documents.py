"""Which documents nuggets are made from: those that assessors or a direct grader judged related, or all."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Literal

from rubric_measures.grades.grade_sets import DirectLabels, GradeFilter
from rubric_measures.records.models import QueryPassages
from rubric_measures.test_bank.nuggetization import SourceSegment

__all__ = ["RelatedBy", "related_segments"]

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
    grade_set: str = "",
) -> dict[str, list[SourceSegment]]:
    """Query id -> the segments that are related to it, in file order; the same text is shown once.

    Args:
        groups: passages with their texts.
        by: `judgments`: the judgments in the records (or `qrels`); `direct`: the labels of a direct grader in the
            records; `all`: every passage.
        level: the lowest label that counts as related (inclusive).
        qrels: (query id, doc id) -> judgment, in place of the judgments in the records.
        llm: only direct grades of this model.
        prompt_class: only direct grades of this prompt.
        grade_set: only those of these settings, see `GradeFilter`.

    Raises:
        InputError: direct grades of several graders fit; the message lists them.

    Source: Pradeep et al., TREC 2024 RAG, AutoNuggetizer report, section 3: documents judged at least related (1).
    """
    wanted = GradeFilter(llm or None, prompt_class or None, grade_set=grade_set or None)
    labels = DirectLabels(wanted, ("prompt_class", "llm", "grade_set"))
    found: dict[str, list[SourceSegment]] = {}
    unlabelled = 0
    for group in groups:
        segments = found.setdefault(group.query_id, [])
        shown = {segment.text for segment in segments}
        for passage in group.passages:
            if by == "all":
                label: int | None = level
            elif by == "direct":
                direct = labels.of(group.query_id, passage)
                label = None if direct is None else direct.label
            elif qrels is not None:
                label = qrels.get((group.query_id, passage.doc_id))
            else:
                label = passage.judged(group.query_id)
            unlabelled += label is None
            if label is not None and label >= level and passage.text.strip() and passage.text not in shown:
                shown.add(passage.text)
                segments.append(SourceSegment(passage.doc_id, passage.text))
    if unlabelled:
        _LOGGER.warning("%d passages left out: no %s", unlabelled, "direct grade" if by == "direct" else "judgment")
    return found
