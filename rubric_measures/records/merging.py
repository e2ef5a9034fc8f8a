"""Graded records put together: files merged, passage by passage, field by field."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from typing import Any, NoReturn, TypeVar

from msgspec import Struct

from rubric_measures.base.errors import InputError
from rubric_measures.base.files import paused_collector
from rubric_measures.records.models import (
    ITEM_CONTENTS,
    ITEM_LISTS,
    DirectGrade,
    GradedPassage,
    GradeSetKey,
    ItemGradeSet,
    JsonRecord,
    Judgment,
    PassageData,
    QueryPassages,
    RankingEntry,
    details_of,
    exam_ratio,
    grade_set_key,
    items_of_set,
)
from rubric_measures.types.scales import Scale, scale_from

_LOG = logging.getLogger("rubric_measures")
_Json = dict[str, Any]
_Made = TypeVar("_Made", bound=ItemGradeSet | DirectGrade)
_Record = TypeVar("_Record", bound=JsonRecord)
# Fields of ours of which two files may say parts, as of those that we do not know.
_OPEN = {"provenance", "details", ITEM_CONTENTS, "pairs", "shown_together"}


@paused_collector()
def merge_records(parts: Iterable[Iterable[QueryPassages]]) -> list[QueryPassages]:
    """Unites records: queries and passages in order of first appearance, no passage twice in a query.

    Judgments and rankings of a passage are united. Grade sets stay apart by model, options, prompt, kind of item,
    settings, and bank (sets without a common item are of two banks). Sets that agree in all of these become one: there
    a grade goes before a failure, and the grade of a whole text before that of a truncated one. Unknown fields are
    kept. Of two replies with the same grade the first is kept, and a note counts them.

    Raises:
        InputError: two files contradict each other: another text, judgment, title of the query, rank, grade or unknown
            field for one passage, or another passage at one rank of a run; the message names query and passage. Or one
            grader's grades are on two scales.
    """
    merged: dict[str, dict[str, GradedPassage]] = {}
    replies: Counter[str] = Counter()
    for part in parts:
        for group in part:
            merger = _Merger(group.query_id, replies)
            members = merged.setdefault(group.query_id, {})
            _check_ranks(group.query_id, members.values(), group.passages)
            for passage in group.passages:
                known = members.get(passage.doc_id)
                members[passage.doc_id] = passage if known is None else merger.passage(known, passage)
    _check_scales(merged)
    if replies.total():
        llm, _ = replies.most_common(1)[0]
        _LOG.warning(
            "%d replies left out (such as one of %s): another file has another reply with the same grade",
            replies.total(),
            llm,
        )
    return [QueryPassages(query_id, list(members.values())) for query_id, members in merged.items()]


def _check_scales(merged: Mapping[str, Mapping[str, GradedPassage]]) -> None:
    """Refuses grades of one grader that are on two scales: together they mean nothing."""
    known: dict[GradeSetKey, Scale] = {}
    for query_id, members in merged.items():
        for doc_id, passage in members.items():
            for entry in [*(passage.exam_grades or ()), *(passage.grades or ())]:
                scale = _said_scale(entry)
                if scale is None:
                    continue
                key = grade_set_key(entry)
                if known.setdefault(key, scale)[:4] != scale[:4]:
                    raise InputError(
                        f"query {query_id!r}, passage {doc_id!r}: grades by {key.llm} ({key.prompt_class}) are on the "
                        f"scale {scale}, and elsewhere on {known[key]}; they are no grades of one grader"
                    )


def _said_scale(entry: ItemGradeSet | DirectGrade) -> Scale | None:
    return scale_from(entry.prompt_info.unknown, by_range=True) if entry.prompt_info else None


def _check_ranks(query_id: str, known: Iterable[GradedPassage], passages: Iterable[GradedPassage]) -> None:
    """Refuses two runs of one name: they have different passages at one rank.

    Parts of one ranking have different ranks. Passages may share a rank, but then one of the files has both.
    """
    theirs = _passages_by_rank(passages)
    mine = _passages_by_rank(known) if theirs else {}
    for place, after in theirs.items():
        before = mine.get(place, after)
        if not (before <= after or after <= before):
            _, run_id, rank = place
            raise InputError(
                f"query {query_id!r}: the run {run_id!r} has {min(before - after)!r} at rank {rank} in one file and "
                f"{min(after - before)!r} in another; two runs have that name, give one of them another"
            )


def _passages_by_rank(passages: Iterable[GradedPassage]) -> dict[tuple[str, str, int], set[str]]:
    """(query, run, rank) -> ids."""
    found: dict[tuple[str, str, int], set[str]] = {}
    for passage in passages:
        for place in passage.rankings:
            found.setdefault((place.query_id, place.method, place.rank), set()).add(passage.doc_id)
    return found


class _Merger:
    """Merges two descriptions of one passage, and counts what it leaves out; its messages name the query."""

    def __init__(self, query_id: str, replies: Counter[str]) -> None:
        self.query_id = query_id
        self.replies = replies
        self.doc_id = ""

    def conflict(self, what: str, one: object, other: object) -> NoReturn:
        one, other = (" ".join(repr(value).split())[:60] for value in (one, other))
        raise InputError(
            f"query {self.query_id!r}, passage {self.doc_id!r}: {what} is {one} in one file and {other} in another"
        )

    def either(self, name: str, what: str, *said: Any) -> _Json:
        """What one description says or both say alike, as a field; none where neither says anything."""
        found = [value for value in said if value is not None]
        if len(found) == 2 and found[0] != found[1]:
            self.conflict(what, *found)
        return {name: found[0]} if found else {}

    def passage(self, one: GradedPassage, other: GradedPassage) -> GradedPassage:
        self.doc_id = one.doc_id
        if one == other:
            return one
        self.either("text", "the text", one.text, other.text)
        fields = self.either(
            "paragraph", "paragraph", *(None if said == "" else said for said in (one.paragraph, other.paragraph))
        )
        if other.paragraph_data is not None:
            data = (passage.as_json().get("paragraph_data") or {} for passage in (one, other))
            fields["paragraph_data"] = self.data(*data)
        if other.exam_grades is not None:
            fields["exam_grades"] = self.made_alike(one.exam_grades or [], other.exam_grades, self.grade_set)
        if other.grades is not None:
            fields["grades"] = self.made_alike(one.grades or [], other.grades, self.direct_grade)
        return self.joined(one, other, fields)

    def joined(self, one: _Record, other: _Record, fields: _Json) -> _Record:
        """The union of two records of which some fields are known."""
        return one.saying(self.changes(type(one), one.as_json(), other.as_json(), fields))

    def changes(self, kind: type[Struct], one: _Json, other: _Json, fields: _Json) -> _Json:
        """What makes `one` the union of both: new fields, those that only `other` has, and the unknown ones of both."""
        changed = dict(fields)
        known = set(kind.__struct_encode_fields__) - _OPEN
        for name, theirs in other.items():
            mine = one.get(name)
            if name in fields or mine == theirs or (name in one and name in known):
                continue
            if name not in one:
                changed[name] = theirs
                continue
            if not isinstance(mine, dict) or not isinstance(theirs, dict):
                self.conflict(name, mine, theirs)
            if name == ITEM_CONTENTS:
                for item_id in mine.keys() & theirs.keys():
                    self.either(name, f"what item {item_id!r} said when it was graded", mine[item_id], theirs[item_id])
            elif name != "provenance" or _bare(mine) != _bare(theirs):
                self.conflict(name, mine, theirs)
            # What describes a grader in full stands in one of its entries only.
            changed[name] = {**theirs, **mine}
        return changed

    def data(self, one: _Json, other: _Json) -> _Json:
        fields = {
            name: self.united(kind, one.get(name) or [], other[name])
            for name, kind in (("judgments", Judgment), ("rankings", RankingEntry))
            if other.get(name) is not None
        }
        return {**one, **self.changes(PassageData, one, other, fields)}

    def united(self, kind: type[Struct], one: list[_Json], other: list[_Json]) -> list[_Json]:
        """The judgments or rankings of both lists: what both say is there once, what one list says twice stays twice.

        Several judgments of one passage and query are those of several assessors. Several places of a passage in one
        ranking stay, and its reader refuses them. One list may have more of them than the other, but only one of the
        two lists may.
        """
        entries = list(one)
        free = list(range(len(one)))
        for entry in other:
            alike = [place for place in free if _said(one[place]) == _said(entry) and _may_be_one(one[place], entry)]
            if not alike:
                entries.append(entry)
                continue
            place = next((place for place in alike if one[place] == entry), alike[0])
            free.remove(place)
            if one[place] != entry:
                entries[place] = one[place] | self.changes(kind, one[place], entry, self.title(one[place], entry))
        for key in dict.fromkeys(_said(entry)[0] for entry in entries[len(one) :]):
            before, after = ([value for known, value in map(_said, some) if known == key] for some in (one, other))
            if not (set(before) <= set(after) or set(after) <= set(before)):
                what = f"rank and score in {key[1]!r}" if key[1] else "the judgment"
                self.conflict(what, *(values[0] if len(values) == 1 else values for values in (before, after)))
        return entries

    def title(self, one: _Json, other: _Json) -> _Json:
        """The title of the query beside a judgment, as a field, where two judgments say it differently.

        A title that is empty, or is the query's id, is none.
        """
        titles = [entry.get("titleQuery") for entry in (one, other)]
        if titles[0] == titles[1]:
            return {}
        said = [title if title != one["query"] else None for title in (title or None for title in titles)]
        found = self.either("titleQuery", "the title of the query (titleQuery)", *said)
        return found or {"titleQuery": titles[0] or titles[1]}

    def made_alike(
        self, one: Sequence[_Made], other: Sequence[_Made], union: Callable[[_Made, _Made], _Made]
    ) -> list[_Made]:
        """The grade sets or labels of both lists; those that are parts of one are joined."""
        found = list(one)
        for entry in other:
            if entry in found:
                continue
            # Two sets without a common item may turn out to be parts of one when a third is like both.
            alike: dict[int, _Made] = {
                place: known for place, known in enumerate(found) if _belong_together(known, entry)
            }
            if isinstance(entry, DirectGrade):
                alike = dict(sorted(alike.items(), key=lambda place: _label(place[1]) != _label(entry))[:1])
            parts: list[_Made] = [*alike.values(), entry]
            found = [known for place, known in enumerate(found) if place not in alike]
            found.insert(next(iter(alike), len(found)), reduce(union, parts))
        return found

    def grade_set(self, one: ItemGradeSet, other: ItemGradeSet) -> ItemGradeSet:
        """The union of two sets of one grader over one bank."""
        mine, theirs = _items(one), _items(other)
        known = {item_id for item_id in mine if None not in (mine[item_id], theirs.get(item_id))}
        for item_id in mine:
            if item_id in known:
                self.either("", f"the grade of item {item_id!r} by {one.llm}", mine[item_id], theirs[item_id])
        first = dict(one.answers)
        self.replies[one.llm] += sum(
            item_id in known and first.get(item_id, reply) != reply for item_id, reply in other.answers
        )
        new = {item_id for item_id, grade in theirs.items() if mine.get(item_id) is None and grade is not None}
        lost = theirs.keys() - mine.keys() - new
        details = {}
        if said := details_of(other):
            details["details"] = {**said, **{name: one for name, one in details_of(one).items() if name not in new}}
        if not new and not lost:
            return self.joined(one, other, details | self.label(one, other) | self.scale(one, other))
        if new and bool(one.self_ratings) != bool(other.self_ratings) and set(mine.values()) != {None}:
            kinds = ("ratings" if entry.self_ratings else "right or wrong" for entry in (one, other))
            self.conflict(f"what grades by {one.llm} are", *kinds)
        before, after = one.as_json(), other.as_json()
        fields: _Json = {}
        for name, item_of in ITEM_LISTS.items():
            # A failed call has left a reply at most.
            taken = new | lost if name == "answers" else new
            fields[name] = [said for said in before.get(name) or () if item_of(said) not in taken]
            fields[name] += [said for said in after.get(name) or () if item_of(said) in taken]
        if not fields["self_ratings"]:
            del fields["self_ratings"]
        fields["exam_ratio"] = exam_ratio(fields["correctAnswered"], fields["wrongAnswered"])
        if one.relevance_label != other.relevance_label:
            # It was derived from a part of the grades.
            fields["relevance_label"] = None
        fields |= details
        for name in ("item_status", "llm_response_errors"):
            left = {item_id: said for item_id, said in (before.get(name) or {}).items() if item_id not in new}
            left |= {item_id: said for item_id, said in (after.get(name) or {}).items() if item_id in lost}
            if left or before.get(name):
                fields[name] = left
        return self.joined(one, other, fields | self.scale(one, other))

    def label(self, one: _Made, other: _Made) -> _Json:
        """The relevance label that one grade set has, or both have, as a field."""
        return self.either(
            "relevance_label", f"the relevance label by {one.llm}", one.relevance_label, other.relevance_label
        )

    def scale(self, one: _Made, other: _Made) -> _Json:
        """What is said of the prompt, as a field, where only the other grade set says the scale, too."""
        mine, theirs = _said_scale(one), _said_scale(other)
        if mine is not None and theirs is not None and mine[:4] != theirs[:4]:
            self.conflict(f"the scale of grades by {one.llm}", str(mine), str(theirs))
        return {"prompt_info": other.prompt_info} if mine is None and theirs is not None else {}

    def direct_grade(self, one: DirectGrade, other: DirectGrade) -> DirectGrade:
        """What two labels of one grader say of a passage together."""
        worse, better = sorted((other, one), key=lambda entry: _RANKS.get(entry.known_status, 0))
        if worse.known_status != better.known_status or better.label is None:
            return better
        if _label(one) != _label(other):
            self.conflict(f"the label by {one.llm}", one.label, other.label)
        self.replies[one.llm] += one.answer != other.answer
        rating = self.either("self_ratings", f"the label by {one.llm}", one.self_rating, other.self_rating)
        return self.joined(one, other, self.label(one, other) | self.scale(one, other) | rating)


# What stands before what: a failure is no label, and a label of a part of the text is one of the text only in need.
_RANKS = {"truncated": 1, "graded": 2}


def _belong_together(one: _Made, other: _Made) -> bool:
    if grade_set_key(one) != grade_set_key(other):
        return False
    if isinstance(one, DirectGrade) or isinstance(other, DirectGrade):
        return True
    # Of pairs (sentence, cited document) each answer has its own.
    return bool(one.pairs and other.pairs) or not _items(one).keys().isdisjoint(_items(other))


def _may_be_one(one: _Json, other: _Json) -> bool:
    """Whether two judgments or rankings of the same content are one; an unknown field may name two assessors who
    agree."""
    names = one.keys() & other.keys() - set(Judgment.__struct_encode_fields__)
    return "method" in one or all(one[name] == other[name] for name in names)


def _said(one: _Json) -> tuple[tuple[str, str], object]:
    """Of what a judgment or ranking speaks (query and run), and what it says."""
    if "method" in one:
        return (one["queryId"], one["method"]), (one["rank"], one["score"])
    return (one["query"], ""), one["relevance"]


def _label(entry: Any) -> tuple[bool, float | None]:
    return entry.correct_answered, entry.label


def _bare(provenance: Mapping[str, Any]) -> dict[str, Any]:
    """A provenance without the definition of the grader."""
    return {name: value for name, value in provenance.items() if name != "definition"}


def _items(entry: ItemGradeSet) -> dict[str, float | None]:
    """item id -> grade, None where it failed."""
    grades, statuses = items_of_set(entry)
    return {**dict.fromkeys(statuses), **grades}
