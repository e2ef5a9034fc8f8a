"""Graded records as what is scored: the grades of the one grade set that is chosen, rankings, judgments."""

from __future__ import annotations

import os
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import compress

import numpy as np
from msgspec import Struct

from rubric_measures.base.errors import InputError, warn
from rubric_measures.base.files import path_name, paused_collector
from rubric_measures.measures.core import Array
from rubric_measures.measures.grade_sets import Grader, GradeSetSelector
from rubric_measures.measures.grades import Grades, OnFailed, QueryGrades, note_left_out, placed
from rubric_measures.measures.scoring import tied
from rubric_measures.records.models import (
    DirectGrade,
    GradedPassage,
    GradeSetKey,
    ItemGradeSet,
    QueryPassages,
    RankingEntry,
    cited_answer,
    iter_graded,
)
from rubric_measures.types.entities import (
    CitedAnswer,
    RubricItem,
    TestBank,
    by_rank,
    describe,
    made_by,
    sentence_items,
)


class RecordQuery(Struct, frozen=True):
    """One query of a graded-records file, ready to be scored.

    Attributes:
        grades: the compiled grades of the one grade set that was selected.
        rankings: run -> doc_ids by rank; a `Gap` where a document has no record (see `by_rank`).
        ranks: run -> rank and document of all its places, whatever query they name; only where asked for, in the place
            of the rankings.
        judgments: doc_id -> the highest judgment of the passage for the query.
        grade_sets: the grade sets that its grades are of; one, unless the first of several was asked for.
        made: the signatures of the graders that made them, where the records have any.
        tied: the runs of which nearly all places have one rank.
        notes: what is to be said of the rankings, see `by_rank`.
    """

    grades: QueryGrades
    rankings: Mapping[str, Sequence[str]]
    ranks: Mapping[str, Sequence[tuple[int, str]]]
    judgments: Mapping[str, float]
    grade_sets: frozenset[GradeSetKey] = frozenset()
    made: frozenset[str] = frozenset()
    tied: frozenset[str] = frozenset()
    notes: Mapping[str, int] = {}

    @property
    def query_id(self) -> str:
        """The query."""
        return self.grades.query_id


class _Open:
    """A query of the records while its passages are looked at; of these only grades and places are kept.

    Args:
        group: the query, or the first piece of it.
        selector: chooses the grade set of each passage.
        bank: the test bank.
        keep_ranks: see `RecordQuery.ranks`.
    """

    def __init__(
        self, group: QueryPassages, selector: GradeSetSelector, bank: TestBank | None, keep_ranks: bool = False
    ) -> None:
        self.query_id, self._selector, self._bank, self._keep_ranks = group.query_id, selector, bank, keep_ranks
        self._items = selector.items_of(group, bank)
        self._doc_ids: list[str] = []
        # Of the passages that were graded: their places, and how many grades they have; of these item and grade.
        self._graded, self._sizes = array("i"), array("i")
        self._columns: dict[str, int] = {item_id: place for place, item_id in enumerate(self._items or ())}
        self._cells = array("i"), array("d")
        self._lost: list[tuple[int, int]] = []
        # Of the places in rankings: passage, run, rank and score.
        self._runs: dict[str, int] = {}
        self._places: list[list[Array]] = []
        self._judgments: dict[str, float] = {}
        self._answers: dict[str, CitedAnswer] = {}

    def add(self, passages: Iterable[GradedPassage]) -> None:
        """Takes some passages.

        Raises:
            InputError: several grade sets pass the filter.
        """
        selector, query_id, bank, items = self._selector, self.query_id, self._bank, self._items
        doc_ids, columns, (places, values), judgments = self._doc_ids, self._columns, self._cells, self._judgments
        is_edited = bank is not None and bool(bank.edited)
        known: list[str] = []
        of_known, ranked, of_ranked = array("i"), list[RankingEntry](), list[int]()
        for place, passage in enumerate(passages, len(doc_ids)):
            doc_id, data = passage.doc_id, passage.paragraph_data
            doc_ids.append(doc_id)
            if passage.paragraph and (answer := cited_answer(query_id, passage)) is not None:
                self._answers[doc_id] = answer
            entry = selector.choose(passage, items)
            if is_edited and bank is not None:
                selector.count_old(query_id, passage, bank)
            if entry is not None:
                if (
                    isinstance(entry, ItemGradeSet)
                    and entry.self_ratings
                    and not (entry.item_status or entry.llm_response_errors)
                ):
                    ids, grades = entry.rated()
                else:
                    ids, grades = self._grades_of(entry)
                # Most passages are graded for the same items, in one order.
                if ids != known:
                    if len(set(ids)) < len(ids):
                        # The later grade counts.
                        of_items = dict(zip(ids, grades, strict=True))
                        ids, grades = list(of_items), list(of_items.values())
                    known, of_known = ids, array("i", [columns.setdefault(one, len(columns)) for one in ids])
                places.extend(of_known)
                values.fromlist(grades)
                self._graded.append(place)
                self._sizes.append(len(grades))
            if data is not None and data.rankings:
                ranked += data.rankings
                of_ranked += [place] * len(data.rankings)
            if data is not None and data.judgments:
                said = [one.relevance for one in data.judgments if one.query_id == query_id]
                judgments |= {doc_id: max(said)} if said else {}
        own = [self._keep_ranks or one.query_id == query_id for one in ranked]
        if not all(own):
            selector.strangers += own.count(False)
            ranked, of_ranked = list(compress(ranked, own)), list(compress(of_ranked, own))
        runs = [self._runs.setdefault(one.method, len(self._runs)) for one in ranked]
        listed = of_ranked, runs, [one.rank for one in ranked], [one.score for one in ranked]
        self._places.append([np.array(of, kind) for of, kind in zip(listed, "iiid", strict=True)])

    def _grades_of(self, entry: ItemGradeSet | DirectGrade) -> tuple[list[str], list[float]]:
        """The items that the chosen grade set of a passage grades, and their grades; notes those that failed."""
        grades, statuses = self._selector.grades_of(entry)
        for item_id in statuses:
            if item_id not in grades:
                self._lost.append((len(self._graded), self._columns.setdefault(item_id, len(self._columns))))
        return list(grades), list(grades.values())

    def done(self) -> RecordQuery:
        """The query, of which all passages were taken.

        Raises:
            InputError: a grade is not on the scale, or a document stands twice in a ranking.
        """
        selector, rankings, notes = self._selector, dict[str, Sequence[str]](), Counter[str]()
        every: dict[str, list[tuple[int, str]]] = {}
        places, runs, ranks, scores = map(np.concatenate, zip(*self._places, strict=True))
        order = np.lexsort((ranks, runs))
        places, runs, ranks, scores = places[order], runs[order], ranks[order], scores[order]
        doc_ids = list(map(self._doc_ids.__getitem__, places.tolist()))
        starts = np.flatnonzero(np.diff(runs, prepend=-1))
        first = np.repeat(starts, np.diff(starts, append=len(runs)))
        # Most rankings have each rank once, and scores in their order.
        is_next = (ranks - ranks[first] == np.arange(len(runs)) - first) & (ranks[first] <= 1)
        is_next[1:] &= (scores[1:] <= scores[:-1]) | (first[1:] != first[:-1])
        is_plain = np.logical_and.reduceat(is_next, starts).tolist()
        ends, level = [*starts.tolist(), len(runs)][1:], set[str]()
        for run_id, start, end, plain in zip(self._runs, starts.tolist(), ends, is_plain, strict=True):
            of_run = doc_ids[start:end]
            if self._keep_ranks:
                every[run_id] = list(zip(ranks[start:end].tolist(), of_run, strict=True))
                continue
            if not plain and tied(ranks[start:end]):
                level.add(run_id)
            if not plain or len(set(of_run)) < len(of_run):
                where = f"{selector.source}: query {self.query_id!r}"
                triples = zip(ranks[start:end].tolist(), scores[start:end].tolist(), of_run, strict=True)
                of_run, counts = by_rank(triples, where, run_id)
                notes.update(counts)
            rankings[run_id] = of_run
        if self._answers and self._items is None:
            # The sentences are all items that there are, also those that nobody graded.
            items = sentence_items(self._answers.values())
        elif self._items is not None:
            items = tuple(self._items.values())
        else:
            items = tuple(RubricItem(item_id, self.query_id, "") for item_id in sorted(self._columns))
        column = {item.item_id: place for place, item in enumerate(items)}
        docs = {self._doc_ids[place]: row for row, place in enumerate(self._graded)}
        # Where the items were not known, they have other columns now; those of no item leave.
        moved = np.array([column.get(item_id, -1) for item_id in self._columns], int)
        rows, values = np.repeat(np.arange(len(docs)), self._sizes), np.array(self._cells[1])
        lost_rows, lost_places = np.array(self._lost, int).reshape(-1, 2).T
        places, lost_places = moved[self._cells[0]], moved[lost_places]
        if len(moved) > len(items):
            named = list(self._columns)
            selector.left_out.update(named[place] for place in np.array(self._cells[0])[places < 0])
            rows, values, places = rows[places >= 0], values[places >= 0], places[places >= 0]
            lost_rows, lost_places = lost_rows[lost_places >= 0], lost_places[lost_places >= 0]
        answers = {doc_id: answer.sentences for doc_id, answer in self._answers.items()}
        said = {"scale": selector.scale, "answers": answers, "is_partial": bool(selector.asked_for)}
        return RecordQuery(
            placed(self.query_id, items, docs, (rows, places, values), (lost_rows, lost_places), **said),
            rankings,
            every,
            self._judgments,
            frozenset(selector.found) | selector.assessors,
            frozenset(selector.made),
            frozenset(level),
            notes=notes,
        )


def select_query(group: QueryPassages, selector: GradeSetSelector, bank: TestBank | None) -> RecordQuery:
    """One query of the records as what is scored.

    Raises:
        InputError: several grade sets pass the filter.
        UnknownNameError: the bank does not have the query.
    """
    query = _Open(group, selector, bank)
    query.add(group.passages)
    return query.done()


def read_records(
    path: str | os.PathLike[str],
    bank: TestBank | None = None,
    wanted: Grader | None = None,
    *,
    keep_ranks: bool = False,
) -> Iterator[RecordQuery]:
    """The queries of a graded-records file with the grades of exactly one grade set.

    Queries of the bank that the file lacks come last, without grades.

    Args:
        path: the file; `-` is standard input.
        bank: the complete test bank: the denominators, and the choice among grade sets over different items.
        wanted: the filter.
        keep_ranks: also fill `RecordQuery.ranks`.

    Raises:
        FormatError: the file is no graded-records file.
        InputError: no grade set, or more than one, passes the filter.
        UnknownNameError: the bank lacks a query of the file.
    """
    yield from select_queries(iter_graded(path), path_name(path), bank, wanted, keep_ranks=keep_ranks)


def select_queries(
    groups: Iterable[QueryPassages],
    name: str,
    bank: TestBank | None = None,
    wanted: Grader | None = None,
    *,
    keep_ranks: bool = False,
) -> Iterator[RecordQuery]:
    """The queries of graded records with the grades of exactly one grade set; see `read_records`.

    Args:
        groups: the records; a query may come in several pieces. They are all looked at, and not kept.
        name: what the records are called in messages.
        bank: as for `read_records`.
        wanted: as for `read_records`.
        keep_ranks: as for `read_records`.
    """
    selector = GradeSetSelector(wanted or Grader(), name)
    found: dict[str, _Open] = {}
    with paused_collector():
        for group in groups:
            query = found.get(group.query_id)
            if query is None:
                query = found[group.query_id] = _Open(group, selector, bank, keep_ranks)
            query.add(group.passages)
            # The next line is read a third faster where this one is gone.
            del group
    seen = set(found)
    # A query is let go of when it was given.
    while found:
        yield found.pop(next(iter(found))).done()
    if not selector.found:
        inside = "" if bank is None else " of items in the bank"
        if bank is not None and any(key.kind == "direct" for key in selector.outside):
            inside += " (labels of whole passages are no grades of items; leave the bank out to use them)"
        if stale := selector.counts["stale"]:
            inside += f" ({stale} grades by assessors were given to other words or gold answers of their items)"
        raise selector.nothing_found(inside)
    if bank is not None:
        for query_id, items in bank.items.items():
            if query_id not in seen:
                yield RecordQuery(QueryGrades.empty(query_id, items, selector.scale), {}, {}, {})
    # Whether an entry is of the grade set or of another one is known at the end only.
    left_out = sum((selector.outside.get(key, Counter()) for key in selector.found), selector.left_out)
    if left_out:
        note_left_out(left_out)
    if selector.counts.total() or selector.asked_for or selector.wanted.assessors is not None:
        selector.note_counts()
    if selector.strangers and not keep_ranks:
        warn("%s: %d rankings name another query and were left out", name, selector.strangers)


def load_records(
    path: str | os.PathLike[str],
    bank: TestBank | None = None,
    wanted: Grader | None = None,
    on_failed: OnFailed | None = None,
) -> Grades:
    """The grades of a graded-records file, to be given to ir_measures as qrels; see `read_records`."""
    return collect_grades(read_records(path, bank, wanted), bank, on_failed)


def collect_grades(queries: Iterable[RecordQuery], bank: TestBank | None, on_failed: OnFailed | None = None) -> Grades:
    """The grades of a stream of `select_queries`, all together."""
    found: dict[str, QueryGrades] = {}
    sets, made = frozenset[GradeSetKey](), frozenset[str]()
    for query in queries:
        found[query.grades.query_id] = query.grades
        sets |= query.grade_sets
        made |= query.made
    return Grades(found, on_failed, {**describe(sets, bank), **(made_by(made) if made else {})})


def lengths_of_records(groups: Iterable[QueryPassages], name: str) -> dict[str, dict[str, int]]:
    """Run -> query -> L: the whitespace words of all passages that the run ranks for the query (its whole answer).

    Raises:
        InputError: the records hold no rankings.
    """
    lengths: dict[str, dict[str, int]] = {}
    for group in groups:
        for passage in group.passages:
            words = len(passage.text.split())
            for run_id in {ranking.method for ranking in passage.rankings if ranking.query_id == group.query_id}:
                of_run = lengths.setdefault(run_id, {})
                of_run[group.query_id] = of_run.get(group.query_id, 0) + words
    if not lengths:
        raise InputError(f"{name}: holds no rankings, so it does not say whose answers to measure")
    return lengths
