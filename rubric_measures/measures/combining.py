"""The grades that several graders gave the same passages become those of one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median_low
from typing import Any, NamedTuple

from rubric_measures.base.errors import InputError
from rubric_measures.measures.grade_sets import Grader, GradeSetSelector, prompt_cells
from rubric_measures.records.models import (
    DirectGrade,
    GradedPassage,
    GradeSetKey,
    ItemGradeSet,
    PromptInfo,
    QueryPassages,
    provenance_of,
)
from rubric_measures.types.entities import GradeStatus, TestBank, content_hash
from rubric_measures.types.scales import Scale

PANELS = ("majority", "median", "prefer")
"""How the grades of a panel become one."""


class Said(NamedTuple):
    """What one grader, or several together, say of an item of a passage.

    Attributes:
        grade: the grade; None where there is none.
        status: as in `Grade`.
        note: the reason of a status other than `graded`.
    """

    grade: float | None
    status: GradeStatus = "graded"
    note: str = ""


Rule = Callable[[Sequence[Said | None]], Said | None]
"""From what each member says of an item (None where it was not asked about it) to what they say together."""
Outcomes = Mapping[tuple[str, str], Mapping[str, Said]]
"""(query_id, doc_id) -> item_id -> what is said together."""


@dataclass
class Gathered:
    """What several graders say of the same passages.

    Attributes:
        source: the records, for messages.
        keys: the grade set of each member.
        scale: the scale that all of them are on; None where it is not known.
        kind: what the items are (`question`, `nugget`, `direct`).
        said: (query_id, doc_id) -> item_id -> what each member says.
        rated: the grades are ratings, not right or wrong.
        banks: what the members' grade sets say of the bank that they were made with.
    """

    source: str
    keys: list[GradeSetKey]
    scale: Scale | None = None
    kind: str = ""
    said: dict[tuple[str, str], dict[str, tuple[Said | None, ...]]] = field(default_factory=dict)
    rated: bool = False
    banks: set[str] = field(default_factory=set)

    @property
    def names(self) -> list[str]:
        """The members, as reports call them: the model; with prompt and hash where more than one would be called so."""
        count = Counter(key.llm for key in self.keys)
        return [key.llm if count[key.llm] == 1 else f"{key.llm} {of}" for key, of in prompt_cells(self.keys).items()]


def gather(
    groups: Iterable[QueryPassages], source: str, members: Sequence[Grader], bank: TestBank | None = None
) -> Gathered:
    """Reads what each member says of every item of every passage.

    Args:
        groups: the records.
        source: what they are, for messages.
        members: the filter that chooses each member's grade set.
        bank: only items of it.

    Raises:
        InputError: a filter passes no grade set, or several; two pass the same one; the members grade other kinds of
            items, or on other scales.
        UnknownNameError: the bank does not have a query.
    """
    selectors = [GradeSetSelector(wanted, source) for wanted in members]
    found = Gathered(source, [])
    for group in groups:
        where = group.at(source)
        items = None if bank is None else {item.item_id: item for item in bank.for_query(group.query_id, where)}
        for passage in group.passages:
            key = group.query_id, passage.doc_id
            table: dict[str, list[Said | None]] = {}
            for place, selector in enumerate(selectors):
                entry = selector.choose(passage, items)
                if entry is None:
                    continue
                is_rated = entry.self_rating is not None if isinstance(entry, DirectGrade) else entry.self_ratings
                found.rated |= bool(is_rated)
                found.banks |= {str(named) for named in [provenance_of(entry).get("bank")] if named}
                grades, statuses = selector.grades_of(entry)
                for item_id in [*grades, *(lost for lost in statuses if lost not in grades)]:
                    if items is None or isinstance(entry, DirectGrade) or item_id in items:
                        one = Said(grades.get(item_id), statuses.get(item_id, "graded"))
                        table.setdefault(item_id, [None] * len(members))[place] = one
            if table:
                found.said[key] = {item_id: tuple(row) for item_id, row in table.items()}
    _check_members(found, selectors)
    return found


def _check_members(found: Gathered, selectors: Sequence[GradeSetSelector]) -> None:
    for selector in selectors:
        if not selector.found:
            raise selector.nothing_found(settings=("grader",))
        (key,) = selector.found
        if key in found.keys:
            raise InputError(f"{found.source}: {key.llm} is named twice; a member has one vote", settings=("grader",))
        found.keys.append(key)
    found.kind = found.keys[0].kind
    if len({key.kind == "direct" for key in found.keys}) > 1:
        raise InputError(f"{found.source}: some members label passages and others grade items; choose one kind")
    scales = {name: selector.scale for name, selector in zip(found.names, selectors, strict=True) if selector.scale}
    if len({scale[:4] for scale in scales.values()}) > 1:
        told = ", ".join(f"{name} on {scale}" for name, scale in scales.items())
        raise InputError(f"{found.source}: the members are on different scales ({told}); choose others")
    found.scale = next(iter(scales.values()), None)


def panel_rule(by: str) -> Rule:
    """How the grades of a panel become one.

    `majority` is the grade that most members give (of equally frequent ones the lowest), `median` the middle one (of an
    even number the lower). Members without a grade of the item abstain, as do those that were not asked about it. More
    than half of the members must have a grade; else the panel has none, with the status of the first member that lost
    its own (`failed` where none did). `prefer` is no vote: the grade of the first member that has one.

    >>> rule = panel_rule("majority")
    >>> rule([Said(4), Said(1), Said(4)]).grade, rule([Said(4), Said(1), None]).grade
    (4, 1)
    >>> rule([Said(4), None, None]).status
    'failed'
    >>> panel_rule("prefer")([None, Said(1), Said(4)]).grade
    1

    Args:
        by: one of `PANELS`.

    Raises:
        InputError: there is no such rule.
    """
    if by not in PANELS:
        raise InputError(f"{by} combines no grades; expected one of {', '.join(PANELS)}", settings=("by",))

    def together(said: Sequence[Said | None]) -> Said:
        given = [one.grade for one in said if one is not None and one.grade is not None]
        if not given or (by != "prefer" and 2 * len(given) <= len(said)):
            lost = next((one for one in said if one is not None and one.grade is None), Said(None, "failed"))
            return Said(None, lost.status, note=f"{len(said) - len(given)} of {len(said)} members have no grade")
        if by == "prefer":
            return Said(given[0])
        if by == "median":
            return Said(median_low(given))
        if real := next((grade for grade in given if grade % 1), None):
            raise InputError(
                f"a member has the grade {real}, and only whole grades are votes; take their median",
                settings=("by",),
            )
        votes = Counter(given)
        return Said(min(votes, key=lambda grade: (-votes[grade], grade)))

    return together


def outcomes_of(gathered: Gathered, rule: Rule) -> Outcomes:
    """What the members say together, by a rule, of every item of every passage; items without an outcome are left
    out."""
    return {
        key: {item_id: one for item_id, row in table.items() if (one := rule(row)) is not None}
        for key, table in gathered.said.items()
    }


def with_grades(
    groups: Iterable[QueryPassages], gathered: Gathered, outcomes: Outcomes, name: str, settings: Mapping[str, Any]
) -> Iterator[QueryPassages]:
    """The records with the outcomes as one more grade set of each passage; one that the same settings made is replaced.

    Args:
        groups: the records that were gathered.
        gathered: what was gathered.
        outcomes: what the members say together.
        name: what the new grader is called (`llm`).
        settings: how the outcomes were made; kept in the provenance, with the members.
    """
    from rubric_measures.base import __version__

    members = [key._asdict() for key in gathered.keys]
    made: dict[str, Any] = {
        "made_by": f"rubric_measures {__version__}",
        "model": name,
        **settings,
        "members": members,
        "grader": content_hash({"members": members, **settings})[:12],
    }
    if len(gathered.banks) == 1:
        made["bank"] = next(iter(gathered.banks))
    classes = {key.prompt_class for key in gathered.keys}
    said = gathered.scale.as_json() if gathered.scale is not None else {}
    info = {"prompt_class": classes.pop() if len(classes) == 1 else "Panel", "is_self_rated": gathered.rated, **said}
    for group in groups:
        passages = []
        for passage in group.passages:
            found = outcomes.get((group.query_id, passage.doc_id))
            if found:
                row = gathered.said[group.query_id, passage.doc_id]
                entry = _entry(gathered, found, row, {"llm": name, "prompt_info": PromptInfo(**info)})
                passage = _added(passage, entry.replacing(provenance=made), made["grader"])
            passages.append(passage)
        yield QueryPassages(group.query_id, passages, group.line)


def _entry(
    gathered: Gathered,
    found: Mapping[str, Said],
    row: Mapping[str, tuple[Said | None, ...]],
    how: dict[str, Any],
) -> ItemGradeSet | DirectGrade:
    """The grade set of one passage; what each member said stands where a grader's reply stands."""
    texts = {item_id: _told(gathered.names, row[item_id]) for item_id in found}
    if gathered.kind == "direct":
        (one,) = found.values()
        if one.grade is None:
            how |= {"status": one.status, "llm_response_error": one.note}
        answer = next(iter(texts.values()))
        how |= {"prompt_type": "direct_grading", "llm_options": {}}
        return DirectGrade(correct_answered=bool(one.grade), answer=answer, self_rating=one.grade, **how)
    lost = {item_id: one for item_id, one in found.items() if one.grade is None}
    return ItemGradeSet.build(
        {item_id: one.grade for item_id, one in found.items() if one.grade is not None},
        answers=texts.items(),
        kind="nugget" if gathered.kind == "nugget" else "question",
        self_rated=gathered.rated,
        item_status={item_id: one.status for item_id, one in lost.items()},
        errors={item_id: one.note for item_id, one in lost.items()},
        **how,
    )


def _told(names: Sequence[str], row: Sequence[Said | None]) -> str:
    grades = ["not asked" if one is None else one.status if one.grade is None else str(one.grade) for one in row]
    return ", ".join(f"{name}: {grade}" for name, grade in zip(names, grades, strict=True))


def _added(passage: GradedPassage, entry: ItemGradeSet | DirectGrade, grader: str) -> GradedPassage:
    name = "grades" if isinstance(entry, DirectGrade) else "exam_grades"
    others = [one for one in getattr(passage, name) or () if provenance_of(one).get("grader") != grader]
    return passage.replacing(**{name: [*others, entry]})
