"""Where labels come from: grades, records, their judgments, qrels, tables."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from msgspec import structs

from rubric_measures.base.errors import InputError, warn
from rubric_measures.formats.grade_tables import GRADES
from rubric_measures.formats.trec import read_qrels
from rubric_measures.measures.grade_sets import (
    ADJUDICATION,
    BLIND_REVIEW,
    FINAL_REVIEW,
    HUMAN,
    Grader,
    choices_of,
    chosen_grades,
)
from rubric_measures.measures.grades import BANK_DOC, Grades
from rubric_measures.measures.loading import collect_grades, load_records, select_queries
from rubric_measures.measures.qrels import build_grades, grades_of_table
from rubric_measures.records.models import GradeSetKey, load_graded
from rubric_measures.types.entities import TestBank
from rubric_measures.types.scales import SELF_RATING, Scale

# (query_id, doc_id), or (query_id, doc_id, item_id).
Key = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class JudgedPassage:
    """One passage with the grades of its items and its judgments.

    Attributes:
        grades: one grade an item, any order.
        judgments: the relevance labels that assessors gave it; a passage may have several.
    """

    grades: tuple[float, ...]
    judgments: tuple[float, ...]


@dataclass(frozen=True)
class LabelSource:
    """One grader's labels.

    Attributes:
        name: the grader, as it is printed.
        labels: (query_id, doc_id) -> relevance, or (query_id, doc_id, item_id) -> grade.
        scale: the scale that the labels are on, where it is known.
        failed: query_id -> how many grades failed, and how many there are with them; None where nobody knows.
        instead: whose grades a table has, where a grader was chosen and it is another.
    """

    name: str
    labels: Mapping[Key, float]
    scale: Scale | None = None
    failed: Mapping[str, tuple[int, int]] | None = None
    instead: str = ""


def labels_of(grades: Grades, name: str, items: bool = False) -> LabelSource:
    """The labels of passages, their highest grades; or all grades of items. Failed grades give none."""
    lost = {name: 0 if query.failed is None else int(query.failed.sum()) for name, query in grades.queries.items()}
    failed = {name: (count, count + int(grades.queries[name].valid.sum())) for name, count in lost.items()}
    rows = (row for query in grades.queries.values() for row in query.rows()) if items else Grades(grades.queries).qrels
    labels = {(row.query_id, row.doc_id, row.iteration)[: 2 + items]: row.relevance for row in rows}
    return LabelSource(name, labels, grades.scale, failed)


def labels_of_records(
    path: str | os.PathLike[str], bank: TestBank | None, chosen: Grader, items: bool = False
) -> LabelSource:
    """The labels (or item grades) of one grade set of graded records.

    Raises:
        InputError: no grade set, or more than one, passes the filter.
    """
    parts = [part for part in (chosen.model, chosen.prompt, chosen.kind, chosen.set) if part]
    name = " ".join([os.path.basename(os.fspath(path)), *parts])  # noqa: PTH119 - may be a stream
    if (chosen.model or "").startswith(HUMAN) and chosen.prompt in (None, FINAL_REVIEW, ADJUDICATION):
        warn(
            f"{name}: final grades of a review were settled with the grader's in sight, so they agree too well with "
            f"it; compare the first, blind ones (prompt={BLIND_REVIEW})"
        )
    return labels_of(load_records(path, bank, chosen), name, items)


def labels_of_qrels(path: str | os.PathLike[str], scale: Scale | None, items: bool = False) -> LabelSource:
    """The labels of a qrels file; of item qrels (several rows a document) the labels that the item grades imply."""
    every = read_qrels(path)
    rows = [row for row in every if row.doc_id != BANK_DOC]
    name = os.path.basename(os.fspath(path))  # noqa: PTH119 - may be a stream
    labels: dict[Key, float] = {(row.query_id, row.doc_id): row.relevance for row in rows}
    if items or len(labels) < len(rows):
        # A file of qrels has no place for grades that failed.
        return replace(labels_of(build_grades(every, scale=scale), name, items), failed=None)
    return LabelSource(name, labels)


def labels_of_table(source: Any, name: str, chosen: Grader, items: bool = False) -> LabelSource:
    """The labels (or item grades) of a table, by the only grader that it has, or the one that is named.

    Args:
        source: a file, a frame or rows.
        name: what it is called; nothing for the name of the file.
        chosen: the one that counts, where there are several.
        items: whether grades of items are asked for, and no labels.

    Raises:
        InputError: it has several graders, and none of them is called so.
    """
    rows, name = GRADES.read(source), name or os.path.basename(os.fspath(source))  # noqa: PTH119 - may be a stream
    keys = {GradeSetKey(row.grader, row.prompt_class or "", "") for row in rows}
    instead = "" if any(map(chosen.may_pass, keys)) else choices_of(keys)
    if len(keys) > 1:
        rows = chosen_grades(rows, name, chosen)
        name = " ".join(filter(None, (name, chosen.model, chosen.prompt)))
    return replace(labels_of(grades_of_table(rows, scale=chosen.scale), name, items), instead=instead)


def judgments_of_records(path: str | os.PathLike[str]) -> LabelSource:
    """The judgments inside graded records: the highest one that a passage has for its query.

    Raises:
        InputError: there is no judgment.
    """
    rows = ((group, passage) for group in load_graded(path) for passage in group.passages)
    found = {(group.query_id, passage.doc_id): passage.judged(group.query_id) for group, passage in rows}
    labels: dict[Key, float] = {key: label for key, label in found.items() if label is not None}
    name = os.path.basename(os.fspath(path))  # noqa: PTH119 - may be a stream
    if not labels:
        raise InputError(f"{os.fspath(path)}: holds no judgments")
    return LabelSource(f"judgments of {name}", labels)


def passages_of_records(
    path: str | os.PathLike[str], bank: TestBank | None = None, wanted: Grader | None = None
) -> list[JudgedPassage]:
    """The passages of graded records as the workbench's tables see them: all item grades, all judgments.

    Where several grade sets pass the filter, the first of each passage counts, as in that program.

    Raises:
        InputError: the grades are on another scale than 0 to 5, which is that of the tables, or have fractions.
    """
    groups = load_graded(path)
    chosen = structs.replace(wanted or Grader(), first=True)
    grades = collect_grades(select_queries(groups, groups.name, bank, chosen), bank)
    if grades.scale is not None and grades.scale[:2] != SELF_RATING[:2]:
        raise InputError(
            f"the workbench's tables are of grades 0 to 5, and these are on the scale {grades.scale}; leave tables out",
            settings=("tables",),
        )
    of_passage: dict[Key, list[float]] = {}
    for key, grade in labels_of(grades, "", items=True).labels.items():
        of_passage.setdefault(key[:2], []).append(grade)
    found = [
        JudgedPassage(
            tuple(of_passage.get((group.query_id, passage.doc_id), ())),
            tuple(judgment.relevance for judgment in passage.judgments),
        )
        for group in groups
        for passage in group.passages
    ]
    real = next((label for one in found for label in (*one.grades, *one.judgments) if label % 1), None)
    if real is not None:
        raise InputError(
            f"the workbench's tables are of whole grades and judgments, and there is {real}; leave tables out",
            settings=("tables",),
        )
    return found
