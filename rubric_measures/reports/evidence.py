"""What earned or lost each grade: for every query, run and item the best passage, its nearest sentence, the reason."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import NamedTuple

from rubric_measures.base.words import content_stems, sentence_ends
from rubric_measures.measures.checked import CheckedGrade, CheckedQuery, check_records
from rubric_measures.measures.grade_sets import GradeFilter, GradeSetSelector
from rubric_measures.records.details import CitedAnswer, sentence_items
from rubric_measures.records.models import QueryPassages
from rubric_measures.types.entities import RubricItem, TestBank
from rubric_measures.types.scales import Scale, covering_level

__all__ = ["Evidence", "QueryEvidence", "evidence_of"]

# The longest stretch of a passage that is shown as its sentence, in characters.
_LONGEST = 400
Rankings = Mapping[str, Mapping[str, Sequence[str]]]
"""Run -> query -> its documents, best first, as many as count."""


class Evidence(NamedTuple):
    """Why a run has an item, or has it not.

    Attributes:
        grade: the best grade of the run's passages; None where there is none.
        status: `graded`, or why there is no grade: `unparsed`, `refused`, `truncated`, `failed`; `missing` where nobody
            graded a passage of the run for the item. Of sentences of answers also `uncited`, `textless` where
            there is no text of what is cited, and `other` where the sentence is one of another run.
        doc_id: the passage with that grade.
        sentence: its sentence that shares most content words with the item.
        reason: why the grader gave the grade, where it was asked for that.
        lacks: the content words of the item that the passage does not have, as they stand in the item.
    """

    grade: float | None
    status: str
    doc_id: str = ""
    sentence: str = ""
    reason: str = ""
    lacks: tuple[str, ...] = ()


@dataclass(frozen=True)
class QueryEvidence:
    """One query of a report.

    Attributes:
        query_id: the query.
        text: its text; empty where the bank does not give it.
        items: the items; without a bank those that were graded, with their ids as texts.
        cells: item id -> run -> evidence.
        level: the least grade that covers an item.
        partial: the least grade that earns half the credit; None where none does.
        scale: the scale of the grades; None where it is not known.
        answers: run -> its text, of runs with one passage: generated answers.
        owners: item id -> the run whose sentence it is, where grades say what citations support; else empty.
    """

    query_id: str
    text: str
    items: tuple[RubricItem, ...]
    cells: Mapping[str, Mapping[str, Evidence]]
    level: int
    partial: int | None
    scale: Scale | None
    answers: Mapping[str, str] = field(default_factory=dict)
    owners: Mapping[str, str] = field(default_factory=dict)

    def is_covered(self, item_id: str, run: str) -> bool:
        """Whether a run covers an item."""
        grade = self.cells[item_id][run].grade
        return grade is not None and grade >= self.level

    def missed(self, run: str) -> list[RubricItem]:
        """The items that a run was graded for and does not cover, vital ones first."""
        lacking = [
            item
            for item in self.items
            if self.cells[item.item_id][run].grade is not None and not self.is_covered(item.item_id, run)
        ]
        return sorted(lacking, key=lambda item: item.importance != "vital")


def evidence_of(
    groups: Iterable[QueryPassages],
    rankings: Rankings,
    bank: TestBank | None,
    wanted: GradeFilter,
    *,
    level: int | None = None,
    source: str = "",
    answers: Mapping[str, Sequence[CitedAnswer]] | None = None,
) -> Iterator[QueryEvidence]:
    """The evidence of each query of graded records, in their order.

    Args:
        groups: the records; consumed once, a query at a time.
        rankings: the runs.
        bank: the items.
        wanted: which grades count.
        level: the least grade that covers an item; None takes that of the scale.
        source: what the records are called, for errors.
        answers: query -> the answers whose sentences are the items, where grades say what citations support. The
            evidence of a sentence is then the document that it cites first, as its score is.

    Raises:
        InputError: several grade sets are left, or the covering level is not known.
        UnknownNameError: the bank lacks a query.
    """
    for checked in check_records(groups, GradeSetSelector(wanted, source), bank):
        of_query = (answers or {}).get(checked.query_id, ())
        if of_query:
            items = sentence_items(of_query)
        elif bank is not None:
            items = bank.items[checked.query_id]
        else:
            items = tuple(RubricItem(item_id, checked.query_id, item_id) for item_id in checked.items)
        found = _of_query(checked, items, rankings, level)
        yield _of_sentences(found, checked, of_query) if of_query else found


def _of_sentences(found: QueryEvidence, checked: CheckedQuery, answers: Sequence[CitedAnswer]) -> QueryEvidence:
    """The same with what stands behind sentences: what they cite, each for the run that says it."""
    documents = {passage.doc_id: passage for passage in checked.passages}
    items = {item.item_id: item for item in found.items}
    owners, cells = {}, {}
    for answer in answers:
        for sentence in answer.sentences:
            cited = documents.get(sentence.citations[0]) if sentence.citations else None
            row = None if cited is None else cited.grades.get(sentence.item_id)
            if row is None:
                shown = Evidence(None, "missing" if sentence.citations else "uncited")
            elif not row.text:
                # Files of labels have no texts of documents; a grader without one makes no call.
                status = "textless" if row.status == "failed" else row.status
                shown = Evidence(row.grade, status, row.doc_id, reason=row.reason)
            else:
                shown = _evidence(items[sentence.item_id], row)
            owners[sentence.item_id] = answer.run_id
            others = dict.fromkeys(found.cells[sentence.item_id], Evidence(None, "other"))
            cells[sentence.item_id] = {**others, answer.run_id: shown}
    return replace(found, cells=cells, owners=owners)


def _of_query(
    checked: CheckedQuery, items: tuple[RubricItem, ...], rankings: Rankings, level: int | None
) -> QueryEvidence:
    passages = {passage.doc_id: passage for passage in checked.passages}
    ranked = {
        run: [passages[doc_id] for doc_id in of_run.get(checked.query_id, ()) if doc_id in passages]
        for run, of_run in rankings.items()
    }
    graded = any(row.grade is not None for row in checked.rows())
    least = covering_level(checked.scale, level) if graded or checked.scale is not None else level or 1
    shown: dict[tuple[str, str], Evidence] = {}
    cells: dict[str, dict[str, Evidence]] = {}
    for item in items:
        of_item = cells.setdefault(item.item_id, {})
        for run, members in ranked.items():
            rows = [one.grades[item.item_id] for one in members if item.item_id in one.grades]
            # The first of the best grades; where all failed, the first of these.
            best = max(rows, key=lambda row: -math.inf if row.grade is None else row.grade, default=None)
            if best is None:
                of_item[run] = Evidence(None, "missing")
                continue
            # Runs share passages, and what is shown of them.
            key = (item.item_id, best.doc_id)
            if key not in shown:
                shown[key] = _evidence(item, best)
            of_item[run] = shown[key]
    return QueryEvidence(
        checked.query_id,
        checked.text,
        items,
        cells,
        least,
        None if checked.scale is None else checked.scale.partial,
        checked.scale,
        {run: members[0].text for run, members in ranked.items() if len(members) == 1},
    )


def _evidence(item: RubricItem, row: CheckedGrade) -> Evidence:
    wanted = set(content_stems(item.text))
    for answer in item.gold_answers:
        wanted |= set(content_stems(answer))
    sentences = _sentences(row.text)
    stated = frozenset[str]().union(*(stems for _, stems in sentences))
    lacks = tuple(dict.fromkeys(word.strip(".,;:!?()[]\"'“”") for word in item.text.split() if _lacks(word, stated)))
    # The first one of those with the most words; none where no sentence has any.
    sentence, stems = max(sentences, key=lambda one: len(wanted & one[1]), default=("", frozenset[str]()))
    shown = sentence if len(sentence) <= _LONGEST else f"{sentence[:_LONGEST].rstrip()}…"
    return Evidence(row.grade, row.status, row.doc_id, shown if wanted & stems else "", row.reason, lacks)


def _lacks(word: str, stated: frozenset[str]) -> bool:
    stems = content_stems(word)
    return bool(stems) and not stated.issuperset(stems)


@lru_cache(maxsize=64)
def _sentences(passage: str) -> tuple[tuple[str, frozenset[str]], ...]:
    """The sentences of a passage, each with the stems of its content words."""
    found, start = [], 0
    for stop in sentence_ends(passage):
        sentence = " ".join(passage[start:stop].split())
        found.append((sentence, frozenset(content_stems(sentence))))
        start = stop
    return tuple(found)
