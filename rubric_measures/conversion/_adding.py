"""Graded records extended: the rankings of runs and judgments added to them, item judgments turned into records."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Mapping

from rubric_measures.base.errors import InputError
from rubric_measures.formats.trec import spaced_pairs
from rubric_measures.records.merging import merge_records
from rubric_measures.records.models import (
    GradedPassage,
    ItemGradeSet,
    Judgment,
    PassageData,
    PromptInfo,
    QueryPassages,
    RankingEntry,
)
from rubric_measures.types.entities import ItemKind, Qrel, Run
from rubric_measures.types.scales import HELD, Scale

_LOG = logging.getLogger("rubric_measures")


def add_runs(groups: Iterable[QueryPassages], runs: Iterable[Run], depth: int | None = None) -> list[QueryPassages]:
    """Records with the rankings of further runs, ranks from 1 in the one sort.

    Ranked documents without a record cannot be added (their text is not known); they are left out and counted.

    Args:
        groups: the records.
        runs: the runs.
        depth: only the first so many documents of each ranking; all if None.

    Raises:
        InputError: the records have a ranking of that run already, and it is another one; two runs have one name; the
            depth is less than 1.
    """
    if depth is not None and depth < 1:
        raise InputError(f"rankings of depth {depth} are empty; ask for 1 or more")
    groups, runs = list(groups), list(runs)
    twice = next((name for name, count in Counter(run.run_id for run in runs).items() if count > 1), None)
    if twice is not None:
        raise InputError(f"two runs are called {twice!r}; give one of them another name")
    known = {(group.query_id, passage.doc_id) for group in groups for passage in group.passages}
    spaced = spaced_pairs(known)
    additions: dict[tuple[str, str], list[RankingEntry]] = {}
    for run in runs:
        found: dict[tuple[str, str], RankingEntry] = {}
        for query_id, ranking in run.rankings.items():
            for rank, (doc_id, score) in enumerate(
                zip(ranking.doc_ids[:depth], ranking.scores[:depth], strict=True), 1
            ):
                key = spaced.get((query_id, doc_id), (query_id, doc_id))
                found[key] = RankingEntry(method=run.run_id, doc_id=key[1], query_id=key[0], rank=rank, score=score)
        for group in groups:
            for passage in group.passages:
                here = (group.query_id, passage.doc_id)
                if here not in found and any(place.method == run.run_id for place in passage.rankings):
                    raise InputError(
                        f"query {here[0]!r}: the records have another ranking of the run {run.run_id!r} (with "
                        f"{here[1]!r}); give one of the two another name"
                    )
        _say_lost(set(found) - known, f"ranked documents of {run.run_id}")
        for key, place in found.items():
            additions.setdefault(key, []).append(place)
    # Merged once, whatever the number of runs.
    return merge_records(
        [groups, _extended(groups, {key: PassageData(rankings=places) for key, places in additions.items()})]
    )


def add_judgments(groups: Iterable[QueryPassages], rows: Iterable[Qrel]) -> list[QueryPassages]:
    """Records with further judgments; judged documents without a record are left out and counted.

    Raises:
        InputError: the records (or the rows) judge a passage otherwise.
    """
    groups = list(groups)
    known = {(group.query_id, passage.doc_id) for group in groups for passage in group.passages}
    spaced = spaced_pairs(known)
    found: dict[tuple[str, str], PassageData] = {}
    for row in rows:
        query_id, doc_id = spaced.get((row.query_id, row.doc_id), (row.query_id, row.doc_id))
        made = Judgment(doc_id=doc_id, query_id=query_id, relevance=row.relevance, title_query=query_id)
        before = found.setdefault((query_id, doc_id), PassageData(judgments=[made]))
        if before.judgments and before.judgments[0].relevance != row.relevance:
            raise InputError(
                f"query {row.query_id!r}, passage {row.doc_id!r}: judged {before.judgments[0].relevance} and "
                f"{row.relevance}; judgments of items are no judgments of passages"
            )
    _say_lost(set(found) - known, "judged documents")
    return merge_records([groups, _extended(groups, found)])


def _extended(groups: Iterable[QueryPassages], data: Mapping[tuple[str, str], PassageData]) -> list[QueryPassages]:
    """The passages that `data` speaks of, with nothing but their text and the data."""
    extended = []
    for group in groups:
        said = ((passage, data.get((group.query_id, passage.doc_id))) for passage in group.passages)
        passages = [
            GradedPassage(doc_id=passage.doc_id, text=passage.text, paragraph_data=found)
            for passage, found in said
            if found is not None
        ]
        extended.append(QueryPassages(group.query_id, passages))
    return extended


def _say_lost(lost: set[tuple[str, str]], what: str) -> None:
    if lost:
        query_id, doc_id = min(lost)
        _LOG.warning(
            "%d %s have no record and are left out (such as %s of query %s)", len(lost), what, doc_id, query_id
        )


def records_of_item_grades(
    rows: Iterable[Qrel], texts: Mapping[str, str], scale: Scale, *, grader: str, kind: ItemKind = "question"
) -> list[QueryPassages]:
    """Graded records of item judgments (diversity qrels): one grade set a passage.

    Rows of the document `*` only say that an item exists; records do not hold banks, so they are left out.

    Args:
        rows: grades; `iteration` is the item id.
        texts: doc_id -> text.
        scale: the scale of the grades; records hold -2 to 5.
        grader: who graded, the `llm` of the grade sets.
        kind: what the items are.

    Raises:
        InputError: a grade is not on the scale or not -2 to 5, an item of a document has two, or one has no text.
    """
    found: dict[str, dict[str, dict[str, float]]] = {}
    for row in rows:
        if row.doc_id == "*":
            continue
        if row.relevance not in scale or not HELD[0] <= row.relevance <= HELD[1]:
            raise InputError(
                f"query {row.query_id!r}, document {row.doc_id!r}, item {row.iteration!r}: grade {row.relevance} "
                f"is outside of {max(scale.lowest, HELD[0])} to {min(scale.highest, HELD[1])}"
            )
        if row.doc_id not in texts:
            raise InputError(f"query {row.query_id!r}: document {row.doc_id!r} is not in the collection")
        grades = found.setdefault(row.query_id, {}).setdefault(row.doc_id, {})
        if grades.setdefault(row.iteration, row.relevance) != row.relevance:
            raise InputError(
                f"query {row.query_id!r}, document {row.doc_id!r}: item {row.iteration!r} is graded "
                f"{grades[row.iteration]} and {row.relevance}; keep one"
            )
    groups = []
    info = PromptInfo.model_validate(scale.as_json())
    for query_id, documents in found.items():
        passages = []
        for doc_id, grades in documents.items():
            answers = [(item_id, str(grade)) for item_id, grade in grades.items()]
            entry = ItemGradeSet.build(grades, answers=answers, llm=grader, kind=kind, prompt_info=info)
            passages.append(GradedPassage(doc_id=doc_id, text=texts[doc_id], exam_grades=[entry]))
        groups.append(QueryPassages(query_id, passages))
    return groups
