"""Graded records put together: files merged, passage by passage, field by field."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import reduce
from typing import Any, NoReturn, TypeVar

from rubric_measures.base.errors import InputError, naming
from rubric_measures.base.files import paused_collector
from rubric_measures.records import models
from rubric_measures.records.models import DirectGrade, GradedPassage, GradeSetKey, ItemGradeSet, QueryPassages
from rubric_measures.types.scales import scale_from

_Json = dict[str, Any]
_Made = TypeVar("_Made", bound=ItemGradeSet | DirectGrade)
# Of what a judgment or ranking speaks.
_ABOUT = {"paragraphId", "query", "queryId", "method", "titleQuery"}
_PLACES = ("paragraph_data.judgments", "paragraph_data.rankings")


@paused_collector()
def merge_records(parts: Iterable[Iterable[QueryPassages]]) -> list[QueryPassages]:
    """Unites records: queries and passages in order of first appearance, no passage twice in a query.

    Judgments and rankings of a passage are united. Grade sets stay apart by model, options, prompt, kind of item,
    settings, and bank (sets without a common item are of two banks, unless they name the same). Sets that agree in all
    of these become one: there a grade goes before a failure, and the grade of a whole text before that of a truncated
    one; of two replies with the same grade the first is kept. Unknown fields are kept. A set that was asked for some
    measures alone is of those of both files then; with one that was asked for all, it is asked for all.

    Raises:
        InputError: two files contradict each other: another text, judgment, title of the query, rank, grade or unknown
            field for one passage, or another passage at one rank of a run; the message names query and passage. Or one
            grader's grades are on two scales.
    """
    merged: dict[str, dict[str, GradedPassage]] = {}
    ranked: dict[tuple[str, str, str, int], set[str]] = {}
    for part in parts:
        for group in part:
            _check_ranks(ranked, group)
            members = merged.setdefault(group.query_id, {})
            for passage in group.passages:
                known = members.setdefault(passage.doc_id, passage)
                if known is not passage:
                    with naming(f"query {group.query_id!r}, passage {passage.doc_id!r}"):
                        members[passage.doc_id] = _passage(known, passage)
    _check_scales(merged)
    return [QueryPassages(query_id, list(members.values())) for query_id, members in merged.items()]


def _check_scales(merged: Mapping[str, Mapping[str, GradedPassage]]) -> None:
    """Refuses grades of one grader that are on two scales: together they mean nothing."""
    known: dict[GradeSetKey, str] = {}
    for query_id, members in merged.items():
        for doc_id, passage in members.items():
            for entry in [*(passage.exam_grades or ()), *(passage.grades or ())]:
                key = models.grade_set_key(entry)
                scale = scale_from(models.object_in(bytes(entry.prompt_text)), by_range=True)
                if scale is not None and known.setdefault(key, str(scale)) != str(scale):
                    raise InputError(
                        f"query {query_id!r}, passage {doc_id!r}: grades by {key.llm} ({key.prompt_class}) are on the "
                        f"scale {scale}, and elsewhere on {known[key]}; they are no grades of one grader"
                    )


def _check_ranks(ranked: dict[tuple[str, str, str, int], set[str]], group: QueryPassages) -> None:
    """Refuses two runs of one name: they have different passages at one rank; else notes what stands there.

    Parts of one ranking have different ranks. Passages may share a rank, but then one of the files has both.
    """
    theirs: dict[tuple[str, str, str, int], set[str]] = {}
    for passage in group.passages:
        for one in passage.rankings:
            theirs.setdefault((group.query_id, one.query_id, one.method, one.rank), set()).add(passage.doc_id)
    for place, after in theirs.items():
        before = ranked.setdefault(place, after)
        if not (before <= after or after <= before):
            _, _, run_id, rank = place
            raise InputError(
                f"query {group.query_id!r}: the run {run_id!r} has {min(before - after)!r} at rank {rank} in one file "
                f"and {min(after - before)!r} in another; two runs have that name, give one of them another"
            )
        before |= after


def _conflict(what: str, one: object, other: object) -> NoReturn:
    one, other = (" ".join(repr(value).split())[:60] for value in (one, other))
    raise InputError(f"{what} is {one} in one file and {other} in another")


def _union(name: str, one: Any, other: Any) -> Any:
    """What two descriptions say together: what one says or both say alike, of objects field by field."""
    if name == f"provenance.{models.ASKED_FOR}":
        return [*one, *(said for said in other if said not in one)]
    if one is None or other is None or one == other:
        return other if one is None else one
    if name in _PLACES:
        return _united(one, other)
    if name == "paragraph" or not (isinstance(one, dict) and isinstance(other, dict)):
        _conflict(name, one, other)
    # What one of them was asked for all of was asked for all of together.
    keys = [key for key in {**one, **other} if key != models.ASKED_FOR or (one.get(key) and other.get(key))]
    return {key: _union(f"{name}.{key}".lstrip("."), one.get(key), other.get(key)) for key in keys}


def _passage(one: GradedPassage, other: GradedPassage) -> GradedPassage:
    if one == other:
        return one
    mine, theirs = one.as_json(), other.as_json()
    fields: _Json = {}
    if other.exam_grades is not None:
        fields["exam_grades"] = _made_alike(one.exam_grades or [], other.exam_grades, _grade_set)
    if other.grades is not None:
        fields["grades"] = _made_alike(one.grades or [], other.grades, _direct_grade)
    for said in (mine, theirs):
        said.update({"exam_grades": None, "grades": None, "paragraph": said.get("paragraph") or None})
    return one.replacing({name: said for name, said in _union("", mine, theirs).items() if said is not None} | fields)


def _united(one: list[_Json], other: list[_Json]) -> list[_Json]:
    """The judgments or rankings of both lists: of a query by a run, or by assessors, those of the longer one.

    All that the other has must be among these, but for the title of the query.
    """
    entries = []
    for key in dict.fromkeys(map(_key, [*one, *other])):
        both = [[entry for entry in some if _key(entry) == key] for some in (one, other)]
        values = [[{name: of[name] for name in sorted(of.keys() - _ABOUT)} for of in some] for some in both]
        also, known = sorted(values, key=len)
        if Counter(map(models.content_of, also)) - Counter(map(models.content_of, known)):
            _conflict(f"rank and score in {key[1]!r}" if key[1] else "the judgment", *values)
        entries += both[len(both[1]) > len(both[0])]
    return entries


def _made_alike(one: list[_Made], other: list[_Made], union: Callable[[_Made, _Made], _Made]) -> list[_Made]:
    """The grade sets or labels of both lists; those that are parts of one are joined."""
    found: list[_Made] = list(one)
    for entry in other:
        # Two sets without a common item may turn out to be parts of one when a third is like both.
        alike = [place for place, known in enumerate(found) if _belong_together(known, entry)]
        parts = [*(found[place] for place in alike), entry]
        found = [known for place, known in enumerate(found) if place not in alike]
        made = reduce(lambda one, other: one if one == other else union(one, other), parts)
        found.insert(alike[0] if alike else len(found), made)
    return found


def _grade_set(one: ItemGradeSet, other: ItemGradeSet) -> ItemGradeSet:
    """The union of two sets of one grader over one bank: of the other what the first does not know."""
    mine, theirs = _items(one), _items(other)
    for item_id, grade in theirs.items():
        _union(f"the grade of item {item_id!r} by {one.llm}", mine.get(item_id), grade)
    new = {
        item_id
        for item_id, grade in theirs.items()
        if item_id not in mine or (mine[item_id] is None and grade is not None)
    }
    if new and bool(one.self_ratings) != bool(other.self_ratings) and set(mine.values()) - {None}:
        kinds = ("ratings" if entry.self_ratings else "right or wrong" for entry in (one, other))
        _conflict(f"what grades by {one.llm} are", *kinds)
    kept, added = models.of_items(one, new, kept=False).as_json(), models.of_items(other, new).as_json()
    lists: _Json = {name: [*(kept.pop(name, None) or ()), *(added.pop(name, None) or ())] for name in models.ITEM_LISTS}
    ratio = models.exam_ratio(lists["correctAnswered"], lists["wrongAnswered"])
    # A label that was derived from a part of the grades is none.
    label = one.relevance_label if one.relevance_label == other.relevance_label else None
    for said in (kept, added):
        said.update(exam_ratio=ratio, relevance_label=label)
    lists["self_ratings"] = lists["self_ratings"] or None
    return one.replacing({**_union("", kept, added), **lists})


def _direct_grade(one: DirectGrade, other: DirectGrade) -> DirectGrade:
    """What two labels of one grader say of a passage together."""
    worse, better = sorted((other, one), key=lambda entry: _RANKS.get(entry.known_status, 0))
    if worse.known_status != better.known_status or better.label is None:
        return better
    _union(f"the label by {one.llm}", one.label, other.label)
    return one.replacing(_union("", one.as_json(), {**other.as_json(), "answer": one.answer}))


# What stands before what: a failure is no label, and a label of a part of the text is one of the text only in need.
_RANKS = {"truncated": 1, "graded": 2}


def _belong_together(one: ItemGradeSet | DirectGrade, other: ItemGradeSet | DirectGrade) -> bool:
    if models.grade_set_key(one) != models.grade_set_key(other):
        return False
    if isinstance(one, DirectGrade) or isinstance(other, DirectGrade):
        return True
    # Of pairs (sentence, cited document) each answer has its own.
    if (one.pairs and other.pairs) or not _items(one).keys().isdisjoint(_items(other)):
        return True
    banks = {models.provenance_of(entry).get("bank") for entry in (one, other)}
    return (len(banks) == 1 and None not in banks) or one == other


def _key(one: _Json) -> tuple[str, str]:
    """Of what a judgment or ranking speaks: query and run."""
    return (one["queryId"], one["method"]) if "method" in one else (one["query"], "")


def _items(entry: ItemGradeSet) -> dict[str, float | None]:
    """item id -> grade, None where it failed."""
    grades, statuses = models.items_of_set(entry)
    return {**dict.fromkeys(statuses), **grades}
