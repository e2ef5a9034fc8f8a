"""The grades that several graders gave the same passages become those of one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from statistics import median_low
from typing import Any, NamedTuple

from rubric_measures.base.errors import InputError, counted, tell
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
from rubric_measures.types.entities import GradeStatus, RubricItem, TestBank, content_hash

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


Rule = Callable[[Sequence[Said | None]], Said]
"""From what each member says of an item (None where it was not asked about it) to what they say together."""
_Chosen = list[ItemGradeSet | DirectGrade | None]


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
        raise InputError(f"{by!r} is no way to combine grades; expected one of {', '.join(PANELS)}", settings=("by",))

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


class Panel:
    """Several graders of the same passages, as one.

    Args:
        groups: the records; they are gone through two times.
        source: what they are, for messages.
        members: the filter that chooses each member's grade set.
        by: one of `PANELS`.
        bank: only items of it.

    Raises:
        InputError: a filter passes no grade set, or several; two pass the same one; the members grade other kinds of
            items, or on other scales.
        UnknownNameError: the bank does not have a query.
    """

    def __init__(
        self, groups: Iterable[QueryPassages], source: str, members: Sequence[Grader], by: str, bank: TestBank | None
    ) -> None:
        self._groups, self._bank = groups, bank
        self._selectors = [GradeSetSelector(wanted, source) for wanted in members]
        self._by, self._rule = by, panel_rule(by)
        # Whether the grades are ratings, not right or wrong; and what the grade sets say of the bank.
        self._is_rated, self._banks = False, set[str]()
        for group in groups:
            for _, chosen in self._chosen(group, self._selectors[0].items_of(group, bank)):
                for one in (entry for entry in chosen if entry is not None):
                    rated = one.self_rating is not None if isinstance(one, DirectGrade) else one.self_ratings
                    self._is_rated |= bool(rated)
                    self._banks |= {str(named) for named in [provenance_of(one).get("bank")] if named}
        self._keys: list[GradeSetKey] = []
        for selector in self._selectors:
            if not selector.found:
                raise selector.nothing_found(settings=("grader",))
            (key,) = selector.found
            if key in self._keys:
                raise InputError(f"{source}: {key.llm} is named twice; a member has one vote", settings=("grader",))
            self._keys.append(key)
        if len({key.kind == "direct" for key in self._keys}) > 1:
            raise InputError(f"{source}: some members label passages and others grade items; choose one kind")
        # The members, as reports call them: the model; with prompt and hash where more than one would be called so.
        count, cells = Counter(key.llm for key in self._keys), prompt_cells(self._keys)
        self._names = [key.llm if count[key.llm] == 1 else f"{key.llm} {cells[key]}" for key in self._keys]
        scales = {name: one.scale for name, one in zip(self._names, self._selectors, strict=True) if one.scale}
        if len({scale[:4] for scale in scales.values()}) > 1:
            told = ", ".join(f"{name} on {scale}" for name, scale in scales.items())
            raise InputError(f"{source}: the members are on different scales ({told}); choose others")
        self._scale = next(iter(scales.values()), None)

    def _chosen(
        self, group: QueryPassages, items: Mapping[str, RubricItem] | None
    ) -> Iterator[tuple[GradedPassage, _Chosen]]:
        for passage in group.passages:
            yield passage, [selector.choose(passage, items) for selector in self._selectors]

    def records(self, name: str) -> Iterator[QueryPassages]:
        """The records with what the members say together as one more grade set of each passage; one that the same
        settings made is replaced. What was said is counted at the end.

        Args:
            name: what the new grader is called (`llm`).
        """
        from rubric_measures.base import __version__

        settings = {"by": self._by, "members": [key._asdict() for key in self._keys]}
        made: dict[str, Any] = {"made_by": f"rubric_measures {__version__}", "model": name, **settings}
        made["grader"] = content_hash(settings)[:12]
        made |= {"bank": next(iter(self._banks))} if len(self._banks) == 1 else {}
        classes = {key.prompt_class for key in self._keys}
        scale = self._scale.as_json() if self._scale is not None else {}
        prompt = classes.pop() if len(classes) == 1 else "Panel"
        how = {
            "llm": name,
            "prompt_info": PromptInfo(prompt_class=prompt, is_self_rated=self._is_rated, **scale),
            "provenance": made,
        }
        lost = Counter[bool]()
        for group in self._groups:
            items, passages = self._selectors[0].items_of(group, self._bank), []
            for passage, chosen in self._chosen(group, items):
                rows = self._rows(chosen, items)
                found = {item_id: self._rule(row) for item_id, row in rows.items()}
                lost.update(one.grade is None for one in found.values())
                if found:
                    texts = {item_id: self._told(row) for item_id, row in rows.items()}
                    field, entry = self._entry(found, texts, how)
                    others = getattr(passage, field) or ()
                    kept = [one for one in others if provenance_of(one).get("grader") != made["grader"]]
                    passage = passage.replacing(**{field: [*kept, entry]})
                passages.append(passage)
            yield QueryPassages(group.query_id, passages, group.line)
        why = "no member has one" if self._by == "prefer" else "too few members have a grade"
        if not lost[False]:
            text = f"{name}: no item has a grade of the panel ({why}); name graders of the same items"
            raise InputError(text, settings=("grader",))
        tell(f"{name}: {counted(lost[False], 'grade')}, {lost[True]} without one ({why})")

    def _rows(self, chosen: _Chosen, items: Mapping[str, RubricItem] | None) -> dict[str, list[Said | None]]:
        """item_id -> what each member says."""
        rows: dict[str, list[Said | None]] = {}
        for place, (selector, entry) in enumerate(zip(self._selectors, chosen, strict=True)):
            grades, statuses = selector.grades_of(entry) if entry is not None else ({}, {})
            for item_id in dict.fromkeys([*grades, *statuses]):
                if items is None or isinstance(entry, DirectGrade) or item_id in items:
                    one = Said(grades.get(item_id), statuses.get(item_id, "graded"))
                    rows.setdefault(item_id, [None] * len(chosen))[place] = one
        return rows

    def _told(self, row: Sequence[Said | None]) -> str:
        """What each member said, which stands where a grader's reply stands."""
        said = ["not asked" if one is None else one.status if one.grade is None else str(one.grade) for one in row]
        return ", ".join(map("{}: {}".format, self._names, said))

    def _entry(
        self, found: Mapping[str, Said], texts: Mapping[str, str], how: Mapping[str, Any]
    ) -> tuple[str, ItemGradeSet | DirectGrade]:
        """The grade set of one passage, and the field in which it stands."""
        if self._keys[0].kind == "direct":
            ((answer, one),) = zip(texts.values(), found.values(), strict=True)
            lacks: dict[str, Any] = (
                {} if one.grade is not None else {"status": one.status, "llm_response_error": one.note}
            )
            what: dict[str, Any] = {"self_rating": one.grade, "prompt_type": "direct_grading", "llm_options": {}}
            return "grades", DirectGrade(correct_answered=bool(one.grade), answer=answer, **what, **how, **lacks)
        lost = {item_id: one for item_id, one in found.items() if one.grade is None}
        return "exam_grades", ItemGradeSet.build(
            {item_id: one.grade for item_id, one in found.items() if one.grade is not None},
            answers=texts.items(),
            kind="nugget" if self._keys[0].kind == "nugget" else "question",
            self_rated=self._is_rated,
            item_status={item_id: one.status for item_id, one in lost.items()},
            errors={item_id: one.note for item_id, one in lost.items()},
            **how,
        )
