"""Graded records put together: files merged, passage by passage, field by field."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import reduce
from typing import Any, NamedTuple, NoReturn, TypeVar, cast

from msgspec import Struct

from rubric_measures.base.errors import InputError, warn
from rubric_measures.base.files import paused_collector
from rubric_measures.records import models
from rubric_measures.records.models import DirectGrade, GradedPassage, GradeSetKey, ItemGradeSet, QueryPassages
from rubric_measures.types.scales import scale_from

_Json = dict[str, Any]
_Made = TypeVar("_Made", bound=ItemGradeSet | DirectGrade)
# Fields of ours of which two files may say parts, as of those that we do not know.
_OPEN = {"provenance", "details", models.ITEM_CONTENTS, "pairs"}
# Of what a judgment or ranking speaks.
_ABOUT = {"paragraphId", "query", "queryId", "method", "titleQuery"}


@paused_collector()
def merge_records(parts: Iterable[Iterable[QueryPassages]]) -> list[QueryPassages]:
    """Unites records: queries and passages in order of first appearance, no passage twice in a query.

    Judgments and rankings of a passage are united. Grade sets stay apart by model, options, prompt, kind of item,
    settings, and bank (sets without a common item are of two banks). Sets that agree in all of these become one: there
    a grade goes before a failure, and the grade of a whole text before that of a truncated one. Unknown fields are
    kept. Of two replies with the same grade the first is kept, and a note counts them. A set that was asked for some
    measures alone is of those of both files then; with one that was asked for all, it is asked for all.

    Raises:
        InputError: two files contradict each other: another text, judgment, title of the query, rank, grade or unknown
            field for one passage, or another passage at one rank of a run; the message names query and passage. Or one
            grader's grades are on two scales.
    """
    merged: dict[str, dict[str, GradedPassage]] = {}
    ranked: dict[tuple[str, str, str, int], set[str]] = {}
    replies: Counter[str] = Counter()
    for part in parts:
        for group in part:
            _check_ranks(ranked, group)
            members = merged.setdefault(group.query_id, {})
            for passage in group.passages:
                known, merger = members.get(passage.doc_id), _Merger(group.query_id, passage.doc_id, replies)
                members[passage.doc_id] = passage if known is None else merger.passage(known, passage)
    _check_scales(merged)
    llm = max(replies, key=replies.__getitem__, default="")
    left = "%d replies left out (such as one of %s): another file has another reply with the same grade"
    warn(left, replies.total(), llm)
    return [QueryPassages(query_id, list(members.values())) for query_id, members in merged.items()]


def _check_scales(merged: Mapping[str, Mapping[str, GradedPassage]]) -> None:
    """Refuses grades of one grader that are on two scales: together they mean nothing."""
    known: dict[GradeSetKey, str] = {}
    for query_id, members in merged.items():
        for doc_id, passage in members.items():
            for entry in [*(passage.exam_grades or ()), *(passage.grades or ())]:
                key, scale = models.grade_set_key(entry), _said_scale(entry)
                if scale is not None and known.setdefault(key, scale) != scale:
                    raise InputError(
                        f"query {query_id!r}, passage {doc_id!r}: grades by {key.llm} ({key.prompt_class}) are on the "
                        f"scale {scale}, and elsewhere on {known[key]}; they are no grades of one grader"
                    )


def _said_scale(entry: ItemGradeSet | DirectGrade) -> str | None:
    scale = scale_from(models.object_in(bytes(entry.prompt_text)), by_range=True)
    return None if scale is None else str(scale)


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


class _Merger(NamedTuple):
    """Merges two descriptions of one passage, and counts what it leaves out; its messages name query and passage."""

    query_id: str
    doc_id: str
    replies: Counter[str]

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
        if one == other:
            return one
        self.either("text", "the text", one.text, other.text)
        said = (None if said == "" else said for said in (one.paragraph, other.paragraph))
        fields = self.either("paragraph", "paragraph", *said)
        before, after = one.as_json(), other.as_json()
        if other.paragraph_data is not None:
            fields["paragraph_data"] = self.data(before.get("paragraph_data") or {}, after["paragraph_data"])
        if other.exam_grades is not None:
            fields["exam_grades"] = self.made_alike(one.exam_grades or [], other.exam_grades, self.grade_set)
        if other.grades is not None:
            fields["grades"] = self.made_alike(one.grades or [], other.grades, self.direct_grade)
        return one.saying(self.changes(GradedPassage, before, after, fields))

    def changes(self, kind: type[Struct], one: _Json, other: _Json, fields: _Json) -> _Json:
        """What makes `one` the union of both: new fields, those that only `other` has, and the unknown ones of both."""
        changed, known = dict(fields), set(kind.__struct_encode_fields__) - _OPEN
        for name, theirs in other.items():
            mine: Any = one.get(name)
            if name in fields or mine == theirs or (name in one and name in known):
                continue
            if not (isinstance(mine, dict) and isinstance(theirs, dict)):
                changed |= self.either(name, name, *((mine, theirs) if name in one else (theirs,)))
                continue
            # What describes a grader in full stands in one of its entries only.
            both, asked = {**theirs, **mine}, [said.get(models.ASKED_FOR) or [] for said in (mine, theirs)]
            for part in sorted(both.keys() - {"definition", models.ASKED_FOR}):
                if mine.get(part) != theirs.get(part) and (
                    name == "provenance" or {part} <= mine.keys() & theirs.keys()
                ):
                    self.conflict(f"{name} ({part})", mine.get(part), theirs.get(part))
            both.pop(models.ASKED_FOR, None)
            if all(asked):
                both[models.ASKED_FOR] = [*asked[0], *(said for said in asked[1] if said not in asked[0])]
            changed[name] = both
        return changed

    def data(self, one: _Json, other: _Json) -> _Json:
        fields = {
            name: self.united(one.get(name) or [], other[name])
            for name in ("judgments", "rankings")
            if other.get(name) is not None
        }
        return {**one, **self.changes(models.PassageData, one, other, fields)}

    def united(self, one: list[_Json], other: list[_Json]) -> list[_Json]:
        """The judgments or rankings of both lists: of a query by a run, or by assessors, those of the longer one.

        All that the other has must be among these, but for the title of the query.
        """
        entries = []
        for key in dict.fromkeys(map(_key, [*one, *other])):
            both = [[entry for entry in some if _key(entry) == key] for some in (one, other)]
            values = [[{name: of[name] for name in sorted(of.keys() - _ABOUT)} for of in some] for some in both]
            also, known = sorted(values, key=len)
            if Counter(map(models.content_of, also)) - Counter(map(models.content_of, known)):
                self.conflict(f"rank and score in {key[1]!r}" if key[1] else "the judgment", *values)
            entries += both[len(both[1]) > len(both[0])]
        return entries

    def made_alike(self, one: list[_Made], other: list[_Made], union: Callable[[_Made, _Made], _Made]) -> list[_Made]:
        """The grade sets or labels of both lists; those that are parts of one are joined."""
        found: list[_Made] = list(one)
        for entry in other:
            if entry in found:
                continue
            # Two sets without a common item may turn out to be parts of one when a third is like both.
            alike: list[int] = [place for place, known in enumerate(found) if _belong_together(known, entry)]
            if isinstance(entry, DirectGrade):
                alike = sorted(alike, key=lambda place: _label(found[place]) != _label(entry))[:1]
            made = reduce(union, [*(found[place] for place in alike), entry])
            found = [known for place, known in enumerate(found) if place not in alike]
            found.insert(alike[0] if alike else len(found), made)
        return found

    def grade_set(self, one: ItemGradeSet, other: ItemGradeSet) -> ItemGradeSet:
        """The union of two sets of one grader over one bank."""
        mine, theirs = _items(one), _items(other)
        both = {item_id: grade for item_id, grade in mine.items() if None not in (grade, theirs.get(item_id))}
        for item_id, grade in both.items():
            self.either("", f"the grade of item {item_id!r} by {one.llm}", grade, theirs[item_id])
        first = dict(one.answers)
        changed = [
            item_id for item_id, reply in other.answers if item_id in both and first.get(item_id, reply) != reply
        ]
        self.replies[one.llm] += len(changed)
        new = {item_id for item_id, grade in theirs.items() if grade is not None} - both.keys()
        if new and bool(one.self_ratings) != bool(other.self_ratings) and set(mine.values()) - {None}:
            kinds = ("ratings" if entry.self_ratings else "right or wrong" for entry in (one, other))
            self.conflict(f"what grades by {one.llm} are", *kinds)
        fields: _Json = {}
        if taken := new | (theirs.keys() - mine.keys()):
            # What the other file alone knows, and all that it says of it.
            kept = models.of_items(one, taken, kept=False).as_json()
            added = models.of_items(other, taken).as_json()
            for name in models.ITEM_LISTS:
                said = [*(kept.get(name) or ()), *(added.get(name) or ())]
                if said or name != "self_ratings":
                    fields[name] = said
            for name in ("item_status", "llm_response_errors"):
                left = {**(kept.get(name) or {}), **(added.get(name) or {})}
                if left or getattr(one, name):
                    fields[name] = left
            fields["exam_ratio"] = models.exam_ratio(fields["correctAnswered"], fields["wrongAnswered"])
            if one.relevance_label != other.relevance_label:
                # It was derived from a part of the grades.
                fields["relevance_label"] = None
        if known := models.details_of(other):
            mine_of = {name: said for name, said in models.details_of(one).items() if name not in new}
            fields["details"] = {**known, **mine_of}
        return self.joined(one, other, fields)

    def joined(self, one: _Made, other: _Made, fields: _Json) -> _Made:
        """The union of two grade sets or labels of one grader, of which some fields are known.

        The relevance label is the one that either has, and the prompt the one that says the scale.
        """
        if "relevance_label" not in fields:
            said = one.relevance_label, other.relevance_label
            fields |= self.either("relevance_label", f"the relevance label by {one.llm}", *said)
        mine, theirs = _said_scale(one), _said_scale(other)
        if self.either("", f"the scale of grades by {one.llm}", mine, theirs) and mine is None:
            fields["prompt_info"] = other.prompt_info
        return cast(_Made, one.saying(self.changes(type(one), one.as_json(), other.as_json(), fields)))

    def direct_grade(self, one: DirectGrade, other: DirectGrade) -> DirectGrade:
        """What two labels of one grader say of a passage together."""
        worse, better = sorted((other, one), key=lambda entry: _RANKS.get(entry.known_status, 0))
        if worse.known_status != better.known_status or better.label is None:
            return better
        if _label(one) != _label(other):
            self.conflict(f"the label by {one.llm}", one.label, other.label)
        self.replies[one.llm] += one.answer != other.answer
        rating = self.either("self_ratings", f"the label by {one.llm}", one.self_rating, other.self_rating)
        return self.joined(one, other, rating)


# What stands before what: a failure is no label, and a label of a part of the text is one of the text only in need.
_RANKS = {"truncated": 1, "graded": 2}


def _belong_together(one: _Made, other: _Made) -> bool:
    if models.grade_set_key(one) != models.grade_set_key(other):
        return False
    if isinstance(one, DirectGrade) or isinstance(other, DirectGrade):
        return True
    # Of pairs (sentence, cited document) each answer has its own, and of a part of the items each measure.
    if (one.pairs and other.pairs) or not _items(one).keys().isdisjoint(_items(other)):
        return True
    banks = {models.provenance_of(entry).get("bank") for entry in (one, other)}
    return len(banks) == 1 and (models.is_partial(one) or models.is_partial(other))


def _key(one: _Json) -> tuple[str, str]:
    """Of what a judgment or ranking speaks: query and run."""
    return (one["queryId"], one["method"]) if "method" in one else (one["query"], "")


def _label(entry: Any) -> tuple[bool, float | None]:
    return entry.correct_answered, entry.label


def _items(entry: ItemGradeSet) -> dict[str, float | None]:
    """item id -> grade, None where it failed."""
    grades, statuses = models.items_of_set(entry)
    return {**dict.fromkeys(statuses), **grades}
