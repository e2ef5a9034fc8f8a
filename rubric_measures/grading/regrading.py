"""Regrading only what edits of a bank touched: grade sets lose the grades that became stale, and get the new ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple

from rubric_measures.base.errors import InputError
from rubric_measures.formats.banks import BankEntry, RegradeMark, former_items, regrade_marks
from rubric_measures.grading._combining import Outcome
from rubric_measures.grading._recording import GradeSetMaker, shown_together
from rubric_measures.records.models import (
    GradedPassage,
    ItemGradeSet,
    grade_of_items,
    grader_hash,
    is_of_others,
    kind_of_set,
    provenance_of,
    regraded_of,
    stale_in,
)
from rubric_measures.types.entities import RubricItem, TestBank, item_content

__all__ = ["AmendCounts", "AmendingMaker", "BankChange", "amend_passage", "refuse_without_grades"]

_Place = tuple[str, str]


@dataclass(frozen=True)
class BankChange:
    """What edits did to a bank, as far as grades are concerned.

    Items that were added, reworded, split or merged have ids that no grade has, so they need no mention here.

    Attributes:
        edited: query_id -> item_id -> contents, as `TestBank.edited`, of the items that keep their id and need new
            grades.
        former: (query_id, item_id) of items that were in the bank before.
    """

    edited: Mapping[str, Mapping[str, frozenset[str]]] = field(default_factory=dict)
    former: frozenset[_Place] = frozenset()

    @classmethod
    def of(cls, entries: Iterable[BankEntry], bank: TestBank, before: TestBank | None = None) -> BankChange:
        """Reads what a bank file says about its edits, and compares it with an older bank where there is one.

        A review marks the items that it edited: `info.regrade` says whether they need new grades, and `former_items` of
        the entry lists ids that left. Items without such a mark need new grades where their text, kind or gold answers
        differ from the older bank's.

        Args:
            entries: the entries of the bank's file.
            bank: the bank that they make.
            before: the bank that the records were graded with.
        """
        entries = list(entries)
        marks = regrade_marks(entries)
        left = {(entry.query_id, item_id) for entry in entries for item_id in former_items(entry)}
        old = {(item.query_id, item.item_id): item_content(item) for item in before or ()}
        now = {(item.query_id, item.item_id): item_content(item) for item in bank}
        edited: dict[str, dict[str, frozenset[str]]] = {}
        for place, content in now.items():
            mark = marks.get(place) or RegradeMark(old.get(place, content) != content, frozenset())
            if mark.needed:
                edited.setdefault(place[0], {})[place[1]] = mark.same_as | {content}
        return cls(edited, frozenset((left | old.keys()) - now.keys()))


@dataclass
class AmendCounts:
    """What was left and what was changed; the counts only grow.

    Attributes:
        amended: grade sets that lost or got grades.
        untouched: grade sets of the same grader that are as they were.
        taken_out: grades that became stale: of items that changed, or left the bank.
        items: (query_id, item_id) of the items that were graded anew.
        failures_left: statuses other than a grade of unchanged items, which are left as they are.
        without: passages that the grader had not graded before, which are left so.
        other_settings: grade sets of the same model and prompt with other settings, which are left.
        elsewhere: grader -> its grades of changed items that keep their id; they may be older than the change.
    """

    amended: int = 0
    untouched: int = 0
    taken_out: int = 0
    items: set[_Place] = field(default_factory=set)
    failures_left: int = 0
    without: int = 0
    other_settings: int = 0
    elsewhere: Counter[str] = field(default_factory=Counter)

    def as_json(self) -> dict[str, Any]:
        """For the manifest."""
        return {
            "elsewhere": dict(sorted(self.elsewhere.items())),
            "failures_left": self.failures_left,
            "items": len(self.items),
            "passages_without": self.without,
            "sets_amended": self.amended,
            "sets_untouched": self.untouched,
            "sets_with_other_settings": self.other_settings,
            "taken_out": self.taken_out,
        }


class _Ids(NamedTuple):
    """The items that a grade set speaks of."""

    graded: Mapping[str, float]
    all: frozenset[str]


def _ids(entry: ItemGradeSet) -> _Ids:
    grades = grade_of_items(entry)
    return _Ids(grades, frozenset([*grades, *(item_id for item_id, _ in entry.answers), *(entry.item_status or ())]))


@dataclass(frozen=True)
class AmendingMaker(GradeSetMaker):
    """The maker of a style that goes on from the grades which the same style gave to an earlier state of the bank.

    Attributes:
        change: what edits did to the bank.
    """

    change: BankChange = field(default_factory=BankChange)

    @classmethod
    def after(cls, maker: GradeSetMaker, change: BankChange) -> AmendingMaker:
        """The same maker, for a bank that changed.

        Raises:
            InputError: the style grades passages as a whole, so no edit of an item touches its grades.
        """
        if maker.style.direct:
            name = maker.style.prompt.prompt_class
            raise InputError(f"prompt {name} labels passages without items, so edits of the bank change nothing")
        return cls(maker.style, maker.model, maker.bank, change)

    def named_alike(self, entry: ItemGradeSet, kind: str) -> bool:
        """Whether a grade set has this model, prompt and kind of items; perhaps with other settings."""
        prompt = entry.prompt_info.prompt_class if entry.prompt_info else ""
        return entry.llm == self._llm["llm"] and prompt == self.style.prompt.prompt_class and kind_of_set(entry) == kind

    def belongs(self, entry: ItemGradeSet, kind: str) -> bool:
        """Whether a grade set is of this style, whatever the state of the bank then was.

        Grade sets of other programs say only the model and the prompt; ours name all settings.
        """
        if not self.named_alike(entry, kind):
            return False
        made = provenance_of(entry)
        mine = self.provenance
        if "grader" in made:
            return bool(made["grader"] == mine["grader"])
        return all(made.get(name, mine[name]) == mine[name] for name in ("model", "prompt"))

    def fresh(self, entry: ItemGradeSet, query_id: str, items: Mapping[str, RubricItem]) -> frozenset[str]:
        """The items of the bank whose grades in the grade set still hold."""
        ids = _ids(entry)
        # An item whose grading anew failed is still to be graded anew: the next run goes on with it.
        failed = (entry.item_status or {}).keys() & regraded_of(entry).keys() - ids.graded.keys()
        return (ids.all & items.keys()) - failed - self.stale(entry, query_id, ids.all)

    def stale(self, entry: ItemGradeSet, query_id: str, item_ids: Set[str]) -> set[str]:
        """Those of some items that the grade set graded before they were edited."""
        edited = self.change.edited.get(query_id, {})
        return stale_in(entry, item_ids & edited.keys(), edited, str(self.provenance["bank"]))

    def _amendable(
        self, entries: Sequence[ItemGradeSet], kind: str, query_id: str, items: Mapping[str, RubricItem]
    ) -> list[ItemGradeSet]:
        """The grade sets of this style about this bank; one that has no item of it may be about another bank."""
        former = {item_id for query, item_id in self.change.former if query == query_id}
        about = items.keys() | former
        return [entry for entry in entries if self.belongs(entry, kind) and not about.isdisjoint(_ids(entry).all)]

    def has_graded(self, passage: GradedPassage) -> bool:
        """Whether the passage has grades of this style, over whatever items."""
        entries = passage.exam_grades or ()
        return any(self.belongs(entry, kind) for entry in entries for kind in self.style.item_kinds)

    def missing_of(
        self, passage: GradedPassage, query_id: str, wanted: Sequence[RubricItem], everything: Sequence[RubricItem]
    ) -> tuple[RubricItem, ...]:
        """The items that edits touched: without any grade (or failure) of this style, or with a stale one."""
        items = {item.item_id: item for item in everything}
        done: set[str] = set()
        for kind in self.style.item_kinds:
            for entry in self._amendable(passage.exam_grades or (), kind, query_id, items):
                done |= self.fresh(entry, query_id, items)
        return tuple(item for item in wanted if item.item_id not in done)

    def amend(
        self,
        entries: Sequence[ItemGradeSet],
        query_id: str,
        everything: Sequence[RubricItem],
        outcomes: Mapping[str, Outcome],
        counts: AmendCounts,
    ) -> list[ItemGradeSet]:
        """The grade sets of one passage without stale grades and with the new outcomes; those not touched are the same.

        Args:
            entries: the grade sets of the passage.
            query_id: the query.
            everything: all items of the query.
            outcomes: item_id -> what grading it anew gave.
            counts: are added to.
        """
        items = {item.item_id: item for item in everything}
        made = list(entries)
        counts.items |= {(query_id, item_id) for item_id in outcomes}
        for kind in self.style.item_kinds:
            members = [item for item in self.style.items_of(tuple(everything)) if item.kind == kind]
            new = {item.item_id: outcomes[item.item_id] for item in members if item.item_id in outcomes}
            fresh = self.item_grade_set([items[item_id] for item_id in new], new, None) if new else None
            said = {item_id: item_content(items[item_id]) for item_id in new}
            mine = self._amendable(entries, kind, query_id, items)
            for entry in mine:
                kept = self.fresh(entry, query_id, items) - new.keys()
                added = fresh if entry is mine[-1] else None
                before = _ids(entry)
                counts.taken_out += len(before.graded.keys() - kept)
                counts.failures_left += len((entry.item_status or {}).keys() & kept - before.graded.keys())
                place = next(place for place, one in enumerate(made) if one is entry)
                if before.all == kept and added is None:
                    counts.untouched += 1
                    continue
                counts.amended += 1
                if kept or added is not None:
                    made[place] = self._signed(self._amended(entry, kept, added), entry, {} if added is None else said)
                else:
                    del made[place]
            if fresh is not None and not mine:
                counts.amended += 1
                others = [entry for entry in entries if self.belongs(entry, kind)]
                made.append(self._signed(fresh, others[-1] if others else None, said))
        return made

    def _amended(self, entry: ItemGradeSet, kept: frozenset[str], fresh: ItemGradeSet | None) -> ItemGradeSet:
        """The grade set with the kept grades where they stood, then the new ones; everything else as it was."""
        parts = [(entry, kept), *([(fresh, _ids(fresh).all)] if fresh is not None else [])]

        def listed(name: str, item_of: Callable[[Any], str]) -> list[Any]:
            return [one for part, ids in parts for one in getattr(part, name) or () if item_of(one) in ids]

        correct, wrong = listed("correct_answered", str), listed("wrong_answered", str)
        changes: dict[str, Any] = {
            "correct_answered": correct,
            "wrong_answered": wrong,
            "answers": listed("answers", itemgetter(0)),
            "exam_ratio": len(correct) / (len(correct) + len(wrong)) if correct or wrong else 0.0,
        }
        if any(part.self_ratings is not None for part, _ in parts):
            changes["self_ratings"] = listed("self_ratings", attrgetter("item_id"))
        for name, nothing in (("item_status", None), ("llm_response_errors", None), ("details", {})):
            known = [((getattr(part, name, None) or {}), ids) for part, ids in parts]
            found = {item_id: said for some, ids in known for item_id, said in some.items() if item_id in ids}
            if found or known[0][0]:
                changes[name] = found or nothing
        if fresh is not None and (size := self.style.showing.per_call) is not None:
            changes["shown_together"] = [*shown_together(entry, size), *shown_together(fresh, size)]
        return entry.model_copy(update=changes)

    def _signed(self, entry: ItemGradeSet, before: ItemGradeSet | None, said: Mapping[str, str]) -> ItemGradeSet:
        """The grade set with what it was made by, and which of its items were graded after the bank changed.

        A set that goes on from one of another program is called as that one was, so that both are read as one.
        `kept_from` is the bank that the other items were graded against; `said` is what the new items said.
        """
        there = _ids(entry).all
        old = provenance_of(before) if before is not None else {}
        known = regraded_of(before) if before is not None else {}
        regraded = {item_id: content for item_id, content in known.items() if item_id in there}
        made = {**old, **self.provenance, "regraded": {**regraded, **said}}
        if before is not None and is_of_others(before):
            made["mixed"] = grader_hash(before) or True
        elif "bank" in old:
            made["kept_from"] = old.get("kept_from", old["bank"])
        return entry.model_copy(update={"provenance": made})


def amend_passage(
    passage: GradedPassage,
    query_id: str,
    items: Sequence[RubricItem],
    makers: Sequence[AmendingMaker],
    outcomes: Sequence[Mapping[str, Outcome]],
    counts: AmendCounts,
) -> GradedPassage:
    """The passage with the grade sets of all makers amended; the very same one where no edit touched it.

    Args:
        passage: as it was read.
        query_id: its query.
        items: all items of the query.
        makers: one for each prompt.
        outcomes: for each maker, item_id -> what grading it anew gave.
        counts: are added to.
    """
    old = passage.exam_grades or []
    entries: list[ItemGradeSet] = list(old)
    for maker, made in zip(makers, outcomes, strict=True):
        entries = maker.amend(entries, query_id, items, made, counts)
    _stale_elsewhere(makers, entries, query_id, counts)
    if len(entries) == len(old) and all(one is before for one, before in zip(entries, old, strict=True)):
        return passage
    return passage.model_copy(update={"exam_grades": entries})


def _stale_elsewhere(
    makers: Sequence[AmendingMaker], entries: Iterable[ItemGradeSet], query_id: str, counts: AmendCounts
) -> None:
    """Counts grades of changed items that keep their id in grade sets of other graders, and sets of other settings."""
    for entry in entries:
        kinds = [(maker, kind) for maker in makers for kind in maker.style.item_kinds]
        if any(maker.belongs(entry, kind) for maker, kind in kinds):
            continue
        counts.other_settings += any(maker.named_alike(entry, kind) for maker, kind in kinds)
        if stale := makers[0].stale(entry, query_id, _ids(entry).graded.keys()):
            counts.elsewhere[entry.llm] += len(stale)


def refuse_without_grades(makers: Sequence[AmendingMaker], counts: AmendCounts) -> None:
    """Says that there was nothing to go on from, instead of writing records that nobody graded.

    Raises:
        InputError: no grade set of the makers was found.
    """
    if counts.amended or counts.untouched:
        return
    names = ", ".join(maker.style.prompt.prompt_class for maker in makers)
    others = f"; {counts.other_settings} grade sets were made with other settings" if counts.other_settings else ""
    raise InputError(
        f"the records hold no grades of this bank by {makers[0]._llm['llm']} with {names}{others}: "
        "there is nothing to go on from; grade everything",
        settings=("only_changed",),
    )
