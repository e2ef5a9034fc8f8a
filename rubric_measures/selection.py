"""Which grades of a graded-records file are scored: filters by model, prompt and items; one grade set is left."""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from operator import itemgetter
from typing import Literal, NamedTuple, TypeVar

from rubric_measures.collector import paused_collector
from rubric_measures.errors import InputError, UnknownNameError
from rubric_measures.formats.graded_files import GradedFile, PassageGroup
from rubric_measures.formats.workbench import DirectGrade, GradedPassage, ItemGradeSet, items_of_entry
from rubric_measures.graded import DIRECT_ITEM, Grades, OnFailed, QueryGrades, note_left_out
from rubric_measures.records import RubricItem, TestBank
from rubric_measures.signature import describe, made_by

__all__ = [
    "GradeFilter",
    "GradeSetKey",
    "GradeSetSelector",
    "RankedPassage",
    "RecordQuery",
    "consume_records",
    "grade_set_key",
    "grade_sets",
    "load_records",
    "read_records",
    "select_queries",
    "select_query",
]

QuestionSet = Literal["question-bank", "tqa", "nugget"]
_TQA = "NDQ_"
T = TypeVar("T")


class GradeSetKey(NamedTuple):
    """What tells one grade set of a file from another."""

    llm: str
    prompt_class: str
    kind: str
    """`question`, `nugget` or `direct`; free text where a file has other prompt types."""

    def __str__(self) -> str:
        return f"--llm {self.llm} --prompt-class {self.prompt_class} --prompt-type {self.kind}"


@dataclass(frozen=True)
class GradeFilter:
    """The grade sets to use; None lets everything pass.

    Attributes:
        llm: the model's name as the file has it.
        prompt_class: the prompt class.
        prompt_type: `question`, `nugget` or `direct`.
        question_set: `question-bank`, `tqa` (items whose id begins with NDQ_) or `nugget`.
        first: of several sets that pass, take the first of each passage (as the workbench does) instead of refusing.
    """

    llm: str | None = None
    prompt_class: str | None = None
    prompt_type: str | None = None
    question_set: QuestionSet | None = None
    first: bool = False

    def passes(self, key: GradeSetKey, item_ids: Callable[[], Iterable[str]]) -> bool:
        """Whether a grade set with this key and these items passes; the items are asked for only where they matter."""
        if self.llm is not None and key.llm != self.llm:
            return False
        if self.prompt_class is not None and key.prompt_class != self.prompt_class:
            return False
        if self.prompt_type is not None and key.kind != self.prompt_type:
            return False
        if self.question_set is None:
            return True
        if self.question_set == "nugget":
            return key.kind == "nugget"
        if key.kind != "question":
            return False
        first = next(iter(item_ids()), "")
        is_tqa = first.startswith(_TQA) or first.rpartition("/")[2].startswith(_TQA)
        return is_tqa == (self.question_set == "tqa")

    def settings(self) -> dict[str, object]:
        """The filters that are set, for the signature."""
        return {name: value for name, value in asdict(self).items() if value not in (None, False)}


class RankedPassage(NamedTuple):
    """One entry of a system's ranking inside the records; sorts best first."""

    rank: int
    score: float
    doc_id: str


@dataclass(frozen=True)
class RecordQuery:
    """One query of a graded-records file, ready to be scored.

    Attributes:
        grades: the compiled grades of the one grade set that was selected.
        rankings: system -> doc_ids by rank, then score descending, then doc_id descending.
        ranks: system -> all its places as the file has them, whatever query they name; only where asked for.
        judgments: doc_id -> the highest judgment of the passage for the query.
        passages: all doc_ids, in file order.
        grade_sets: the grade sets that its grades are of; one, unless the first of several was asked for.
        made: the signatures of the graders that made them, where the records have any.
        part: the name of the part of the query (`query_id/facet_id`) whose items these are; None for all of them.
    """

    grades: QueryGrades
    rankings: Mapping[str, Sequence[str]]
    ranks: Mapping[str, Sequence[RankedPassage]]
    judgments: Mapping[str, int]
    passages: Sequence[str]
    grade_sets: frozenset[GradeSetKey] = frozenset()
    made: frozenset[str] = frozenset()
    part: str | None = None

    @property
    def query_id(self) -> str:
        """The query."""
        return self.grades.query_id


def _kind(entry: ItemGradeSet) -> str:
    if entry.prompt_type is not None:
        return entry.prompt_type
    return "nugget" if entry.self_ratings and entry.self_ratings[0].nugget_id is not None else "question"


def grade_set_key(entry: ItemGradeSet | DirectGrade) -> GradeSetKey:
    """What tells the grade set of an entry from others."""
    prompt_class = entry.prompt_info.prompt_class if entry.prompt_info else ""
    kind = "direct" if isinstance(entry, DirectGrade) else _kind(entry)
    return GradeSetKey(entry.llm, prompt_class, kind)


@dataclass
class _Chosen:
    """The grades of one passage: item -> grade, and the items without a valid one."""

    grades: Mapping[str, int]
    failed: Sequence[str] = ()


def _read_entry(entry: ItemGradeSet | DirectGrade, lenient: bool = False) -> _Chosen:
    """The grades of an entry; `lenient` reads errors of calls as the workbench does, which is not at all."""
    if isinstance(entry, DirectGrade):
        value = int(entry.correct_answered) if lenient and entry.known_status != entry.status else entry.label
        return _Chosen({}, [DIRECT_ITEM]) if value is None else _Chosen({DIRECT_ITEM: value})
    grades, statuses = items_of_entry(entry, lenient)
    return _Chosen(grades, [item_id for item_id in statuses if item_id not in grades])


@dataclass
class GradeSetSelector:
    """Chooses the entry of each passage, and remembers which grade sets a file turned out to have."""

    wanted: GradeFilter
    source: str
    found: dict[GradeSetKey, int] = field(default_factory=dict)
    left_out: Counter[str] = field(default_factory=Counter)
    made: set[str] = field(default_factory=set)
    strangers: int = 0

    def choose(self, passage: GradedPassage, bank_ids: frozenset[str] | None) -> ItemGradeSet | DirectGrade | None:
        """The passage's entry of the selected grade set; None when it has none.

        With a bank, only grade sets with an item of the bank are candidates. Direct labels are candidates where they
        are asked for, or where the passage has no item grades at all.
        """
        candidates: list[ItemGradeSet | DirectGrade] = list(passage.exam_grades or ())
        if self.wanted.prompt_type == "direct" or self.wanted.prompt_class is not None or not candidates:
            candidates += passage.grades or ()
        passing: dict[GradeSetKey, ItemGradeSet | DirectGrade] = {}
        for entry in candidates:
            key = grade_set_key(entry)
            if not self.wanted.passes(key, partial(_item_ids, entry)):
                continue
            if not isinstance(entry, DirectGrade):
                ids = _item_ids(entry)
                # Extraction keeps texts for people and grades nothing: no candidate, with a bank or without.
                if not ids or (bank_ids is not None and bank_ids.isdisjoint(ids)):
                    continue
            if self.wanted.first and passing:
                continue
            self.found[key] = self.found.get(key, 0) + 1
            made = (entry.model_extra or {}).get("provenance")
            if isinstance(made, Mapping):
                self.made.add(str(made.get("signature")))
            if key not in passing:
                passing[key] = entry
            else:
                passing[key] = self._joined(passing[key], entry, passage.doc_id, bank_ids is not None)
        if len(self.found) > 1 and not self.wanted.first:
            listing = "; ".join(str(key) for key in sorted(self.found))
            raise InputError(f"{self.source}: several grade sets are left, choose one of: {listing}")
        return next(iter(passing.values()), None)

    def _joined(
        self, earlier: ItemGradeSet | DirectGrade, later: ItemGradeSet | DirectGrade, doc_id: str, has_bank: bool
    ) -> ItemGradeSet | DirectGrade:
        """One set of two with the same key, in which the later grade of an item counts, and a grade before a failure.

        Raises:
            InputError: they have no item in common and no bank says that they belong together.
        """
        if isinstance(earlier, DirectGrade) or isinstance(later, DirectGrade):
            return later
        if not has_bank and set(_item_ids(earlier)).isdisjoint(_item_ids(later)):
            raise InputError(
                f"{self.source}: passage {doc_id!r} has two grade sets over different items ({grade_set_key(later)}); "
                "choose one with --bank or --question-set"
            )
        (grades, statuses), (later_grades, later_statuses) = items_of_entry(earlier), items_of_entry(later)
        grades, failed = {**grades, **later_grades}, {**statuses, **later_statuses}
        return ItemGradeSet.build(
            grades,
            answers=(),
            llm=later.llm,
            self_rated=bool(earlier.self_ratings or later.self_ratings),
            item_status={item_id: status for item_id, status in failed.items() if item_id not in grades},
        )


def _item_ids(entry: ItemGradeSet | DirectGrade) -> list[str]:
    if isinstance(entry, DirectGrade):
        return [DIRECT_ITEM]
    if entry.self_ratings:
        ids = [rating.item_id for rating in entry.self_ratings]
    else:
        ids = [*entry.correct_answered, *entry.wrong_answered]
    return [*ids, *entry.item_status] if entry.item_status else ids


def select_query(
    group: PassageGroup, selector: GradeSetSelector, bank: TestBank | None, keep_ranks: bool = False
) -> RecordQuery:
    """Compiles one query of the records; its passages are looked at once, in turn.

    Raises:
        InputError: several grade sets pass the filter.
        UnknownNameError: the bank does not have the query.
    """
    query_id = group.query_id
    items: Sequence[RubricItem] | None = None
    bank_ids: frozenset[str] | None = None
    if bank is not None:
        if query_id not in bank.items:
            raise UnknownNameError(
                "query", query_id, bank.items, hint=f"({selector.source} has it, the test bank does not)"
            )
        items = bank.items[query_id]
        bank_ids = frozenset(item.item_id for item in items)
    chosen: dict[str, _Chosen] = {}
    ranks: dict[str, list[RankedPassage]] = {}
    places: dict[str, list[tuple[int, float, str]]] = {}
    judgments: dict[str, int] = {}
    doc_ids: list[str] = []
    for passage in group.passages:
        doc_id = passage.doc_id
        doc_ids.append(doc_id)
        entry = selector.choose(passage, bank_ids)
        if entry is not None:
            chosen[doc_id] = _read_entry(entry, selector.wanted.first)
        for ranking in passage.rankings:
            if keep_ranks:
                ranks.setdefault(ranking.method, []).append(RankedPassage(ranking.rank, ranking.score, doc_id))
            if ranking.query_id == query_id:
                places.setdefault(ranking.method, []).append((ranking.rank, ranking.score, doc_id))
            else:
                selector.strangers += 1
        for judgment in passage.judgments:
            if judgment.query_id == query_id:
                judgments[doc_id] = max(judgment.relevance, judgments.get(doc_id, judgment.relevance))
    rankings = {method: _best_first(of_method) for method, of_method in places.items()}
    for method, of_method in rankings.items():
        if len(set(of_method)) < len(of_method):
            twice = next(doc_id for doc_id, count in Counter(of_method).items() if count > 1)
            raise InputError(
                f"{selector.source}: query {query_id!r}: passage {twice!r} occurs twice in the ranking of {method!r}; "
                "keep one of them"
            )
    grades = _compile(query_id, chosen, items, selector.left_out)
    return RecordQuery(grades, rankings, ranks, judgments, doc_ids, frozenset(selector.found), frozenset(selector.made))


def _best_first(places: list[tuple[int, float, str]]) -> list[str]:
    places.sort(key=itemgetter(1, 2), reverse=True)
    places.sort(key=itemgetter(0))
    return [doc_id for _, _, doc_id in places]


def _compile(
    query_id: str, chosen: Mapping[str, _Chosen], items: Sequence[RubricItem] | None, left_out: Counter[str]
) -> QueryGrades:
    if items is None:
        found: set[str] = set()
        for one in chosen.values():
            found.update(one.grades, one.failed)
        items = [RubricItem(item_id, query_id, "") for item_id in sorted(found)]
    bit = {item.item_id: 1 << index for index, item in enumerate(items)}
    levels: dict[str, dict[int, int]] = {}
    failed: dict[str, int] = {}
    for doc_id, one in chosen.items():
        of_doc = levels[doc_id] = {}
        for item_id, grade in one.grades.items():
            mask = bit.get(item_id)
            if mask is None:
                left_out[item_id] += 1
            else:
                of_doc[grade] = of_doc.get(grade, 0) | mask
        lost = 0
        for item_id in one.failed:
            lost |= bit.get(item_id, 0)
        if lost:
            failed[doc_id] = lost
    return QueryGrades(query_id, tuple(items), levels, failed)


def read_records(
    path: str | os.PathLike[str],
    bank: TestBank | None = None,
    wanted: GradeFilter | None = None,
    *,
    keep_ranks: bool = False,
) -> Iterator[RecordQuery]:
    """Streams the queries of a graded-records file with the grades of exactly one grade set.

    Memory is that of one query. Queries of the bank that the file lacks come last, without grades. A file that is not
    grouped by query is sorted on disk before its first query is handed out, which `consume_records` does only where it
    must.

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
    with GradedFile(path) as source:
        yield from select_queries(source, source.name, bank, wanted, keep_ranks=keep_ranks)


def select_queries(
    groups: Iterable[PassageGroup],
    name: str,
    bank: TestBank | None = None,
    wanted: GradeFilter | None = None,
    *,
    keep_ranks: bool = False,
) -> Iterator[RecordQuery]:
    """The queries of graded records with the grades of exactly one grade set; see `read_records`.

    Args:
        groups: the records.
        name: what they are, for errors.
        bank: see `read_records`.
        wanted: see `read_records`.
        keep_ranks: see `read_records`.
    """
    selector = GradeSetSelector(wanted or GradeFilter(), name)
    seen: set[str] = set()
    for group in groups:
        seen.add(group.query_id)
        query = select_query(group, selector, bank, keep_ranks)
        # The records themselves are no longer needed, and the reader waits to parse the next query.
        del group
        yield query
        del query
    if not selector.found:
        settings = selector.wanted.settings()
        chosen = f" for {settings}" if settings else ""
        raise InputError(f"{name}: holds no grades{chosen}" + (" of items in the bank" if bank is not None else ""))
    if bank is not None:
        for query_id, items in bank.items.items():
            if query_id not in seen:
                yield RecordQuery(QueryGrades(query_id, items, {}), {}, {}, {}, [])
    note_left_out(selector.left_out)
    if selector.strangers and not keep_ranks:
        logging.getLogger("rubric_measures").warning(
            "%s: %d rankings name another query and were left out", name, selector.strangers
        )


def consume_records(
    consume: Callable[[Iterator[RecordQuery]], T],
    path: str | os.PathLike[str],
    bank: TestBank | None = None,
    wanted: GradeFilter | None = None,
    *,
    keep_ranks: bool = False,
) -> T:
    """Hands the stream of `read_records` to `consume`, and once more where the file turns out not to be grouped.

    Returns:
        what `consume` returns.
    """
    # Nothing here makes cyclic garbage; looking for it would double the time.
    with GradedFile(path) as source, paused_collector():
        return source.consume(
            lambda groups: consume(select_queries(groups, source.name, bank, wanted, keep_ranks=keep_ranks))
        )


def load_records(
    path: str | os.PathLike[str],
    bank: TestBank | None = None,
    wanted: GradeFilter | None = None,
    on_failed: OnFailed = "exclude",
) -> Grades:
    """The grades of a graded-records file, to be given to ir_measures as qrels; see `read_records`."""
    records = consume_records(
        lambda stream: [(query.query_id, query.grades, query.grade_sets, query.made) for query in stream],
        path,
        bank,
        wanted,
    )
    queries = {query_id: grades for query_id, grades, _, _ in records}
    sets = frozenset[GradeSetKey]().union(*(sets for _, _, sets, _ in records))
    made = frozenset[str]().union(*(made for _, _, _, made in records))
    return Grades(queries, on_failed, {**describe(sets, bank), **made_by(made)})


def grade_sets(
    groups: Iterable[PassageGroup], wanted: GradeFilter | None = None, bank: TestBank | None = None
) -> dict[GradeSetKey, int]:
    """The grade sets of records, with the number of passages that each graded.

    Args:
        groups: the records.
        wanted: restricts the grade sets; one that grades nothing (extracted texts) passes no filter.
        bank: count only passages of which an item of the bank was graded, or the whole passage; may be 0.
    """
    found: Counter[GradeSetKey] = Counter()
    for group in groups:
        inside = None if bank is None else {item.item_id for item in bank.items.get(group.query_id, ())}
        for passage in group.passages:
            counted: dict[GradeSetKey, bool] = {}
            for entry in [*(passage.exam_grades or ()), *(passage.grades or ())]:
                key, is_direct = grade_set_key(entry), isinstance(entry, DirectGrade)
                if wanted is not None and not (wanted.passes(key, partial(_item_ids, entry)) and _item_ids(entry)):
                    continue
                graded = inside is None or is_direct or not inside.isdisjoint(_item_ids(entry))
                counted[key] = counted.get(key, False) or graded
            found.update({key: int(graded) for key, graded in counted.items()})
    return dict(sorted(found.items()))
