"""Grade sets of records: their names, how one is chosen, which assessor made it.

The names of grade sets: model, prompt and kind; where these are alike, a hash, and in what they differ.

Assessors' grades in the place of a grader's: what assessors say of a passage, and what counts where they differ.

The grade sets of graded records: filters over them, what they say, and the choice of one a passage.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from functools import lru_cache, partial
from itertools import chain
from pathlib import Path
from statistics import median_low
from typing import Any, Literal, get_args

from msgspec import Struct, field
from msgspec.structs import asdict, force_setattr, replace

from rubric_measures.base.errors import InputError, UnknownNameError, tell, warn
from rubric_measures.base.files import begins_records, path_name
from rubric_measures.formats.judged import GRADES, OF_TABLES, GradeRow, grades_of_rows, is_grade_table, refuse_choice
from rubric_measures.formats.trec import read_qrels
from rubric_measures.measures.grades import DIRECT_ITEM
from rubric_measures.records.models import (
    ASKED_FOR,
    DirectGrade,
    GradedPassage,
    GradeSetKey,
    ItemGradeSet,
    QueryPassages,
    asked_for,
    contents_of,
    details_of,
    grade_set_key,
    is_partial,
    items_of_set,
    iter_graded,
    key_of_making,
    kind_of_set,
    making_of,
    object_in,
    of_items,
    stale_in,
    stands_for,
    to_decide,
)
from rubric_measures.types.entities import GradeStatus, Qrel, RubricItem, TestBank, bank_content, item_content
from rubric_measures.types.scales import YES_NO, Scale, parse_scale, scale_from

UNKNOWN_GRADER = "none"
_SHOWN = 12


def prompt_cells(keys: Iterable[GradeSetKey]) -> dict[GradeSetKey, str]:
    """The prompt class of each grade set, and the beginning of its hash where several are called alike."""
    return _names(keys, lambda key: key.prompt_class, " [{}]")


def _names(keys: Iterable[GradeSetKey], name: Callable[[GradeSetKey], str], mark: str) -> dict[GradeSetKey, str]:
    keys = list(keys)
    shared = Counter(key[:3] for key in set(keys))
    marks = {key: mark.format(key.grade_set[:8] or UNKNOWN_GRADER) if shared[key[:3]] > 1 else "" for key in keys}
    return {key: name(key) + marks[key] for key in keys}


def choices_of(keys: Iterable[GradeSetKey]) -> str:
    """The grade sets of an error, each as `Grader.parse` reads it: with its hash where the names are alike."""
    shown = sorted(_names(keys, str, ",set={}").items())
    return "; ".join(name for _, name in shown[:_SHOWN]) + ("; …" if len(shown) > _SHOWN else "")


def undecided(name: str, left: Collection[GradeSetKey], every: Iterable[GradeSetKey] = (), *why: str) -> InputError:
    """The error of a choice of one grade set.

    Args:
        name: the file.
        left: the grade sets that pass; none, or several.
        every: those that there are.
        why: the parameters that choose; `grader` without them.
    """
    listing, problem = choices_of(left or every), "several grade sets are left" if left else "none is called so"
    if "assessors" in why:
        listing += "; or let grades by assessors override the grader's"
    return InputError(f"{name}: {problem}, choose one of: {listing}", settings=why or ("grader",))


def chosen_grades(
    rows: Sequence[GradeRow], name: str, wanted: Grader | None = None, bank: TestBank | None = None
) -> list[GradeRow]:
    """The grades of one grader of a table.

    Args:
        rows: the table.
        name: what messages call it.
        wanted: the one that counts; needed where there are several.
        bank: the test bank; a grader that grades none of its items is not chosen beside one that does.

    Raises:
        InputError: no grader is called so, or several are left.
    """
    keys = [GradeSetKey(row.grader, row.prompt_class or "", "") for row in rows]
    items = {item.item_id for item in bank or ()}
    of_bank = dict.fromkeys(key for key, row in zip(keys, rows, strict=True) if row.item_id in items)
    every, wanted = of_bank or dict.fromkeys(keys), wanted or Grader()
    left = [key for key in every if wanted.may_pass(key)]
    if len(left) != 1:
        raise undecided(name, left, every)
    return [row for key, row in zip(keys, rows, strict=True) if key == left[0]]


def read_judgments(path: str | os.PathLike[str], wanted: Grader | None = None) -> list[Qrel]:
    """Judgments of documents or of items: those of TREC's qrels, or the grades or labels of one grader of a table.

    Grades that failed are no judgments, and are counted.

    Args:
        path: the file.
        wanted: the grader of a table that counts.

    Raises:
        InputError: the file cannot be opened, or the table has several graders, of which none is chosen.
        FormatError: it is neither; names file and line.
    """
    name = path_name(path)
    if not is_grade_table(path):
        if wanted is not None:
            raise InputError(f"{name}: holds judgments that name no grader; leave the choice out", settings=("grader",))
        return read_qrels(path)
    refuse_choice(name, wanted, OF_TABLES, "a table of grades (convert makes records of it)")
    grades = grades_of_rows(chosen_grades(GRADES.read(path), name, wanted))
    judged = [Qrel(*one[:2], one.relevance, one.iteration) for one in grades if one.relevance is not None]
    warn("%s: %d grades failed, and are no judgments", name, len(grades) - len(judged))
    return judged


HUMAN = "human:"
# The prompt classes of what a review exports: assessors' grades as they stand, and the first ones, given before the
# grader's grade was shown. The second are held against graders; only the first are scored.
FINAL_REVIEW, BLIND_REVIEW = "HumanReview", "HumanReviewBlind"
# What an adjudicator decided where assessors differ: it counts in the place of all their grades.
ADJUDICATION = "HumanAdjudication"


def is_blind_set(entry: ItemGradeSet) -> bool:
    """Whether a grade set holds an assessor's first, blind grades: they count for agreement, and in no score."""
    return entry.llm.startswith(HUMAN) and _prompt_class(entry) == BLIND_REVIEW


def is_adjudication(entry: ItemGradeSet) -> bool:
    """Whether a grade set holds what an adjudicator decided where assessors differ."""
    return entry.llm.startswith(HUMAN) and _prompt_class(entry) == ADJUDICATION


def _prompt_class(entry: ItemGradeSet) -> str:
    return entry.prompt_info.prompt_class if entry.prompt_info is not None else ""


def grade_of_assessors(grades: Iterable[float]) -> float:
    """The one grade of several assessors: the median, of an even number the lower one of the two in the middle.

    It is always a grade that one of them gave, and their order does not matter. Where two differ, the lower grade
    counts.

    Raises:
        statistics.StatisticsError: there is no grade.
    """
    return median_low(grades)


class AssessorGrades(Struct, frozen=True):
    """What assessors say of one passage.

    Attributes:
        grades: item_id -> the grades that count, one an assessor; of an item that an adjudicator decided, that one.
        blind: item_id -> the grades that were given before the grader's was seen, one an assessor; what other programs
            wrote is among them.
        reasons: item_id -> what they wrote, joined.
        sets: the grade sets that hold them.
        by_assessor: `human:NAME` -> item_id -> the grade.
        stale: grades that were given before their item changed; they are not among these.
        settled: item_id -> (`human:NAME`, grade): what an adjudicator decided.
        to_decide: items of which a grade that counts differs from the grader's and waits for a decision.
        stands: item_id -> how many items of the passage a blind grade stands for, of those that an audit asked.
    """

    grades: Mapping[str, Collection[float]] = {}
    reasons: Mapping[str, str] = {}
    sets: Collection[ItemGradeSet] = ()
    by_assessor: Mapping[str, Mapping[str, float]] = {}
    stale: int = 0
    settled: Mapping[str, tuple[str, float]] = {}
    blind: Mapping[str, Sequence[float]] = {}
    to_decide: Collection[str] = ()
    stands: Mapping[str, float] = {}

    @property
    def in_sight(self) -> set[str]:
        """The items whose grades that count are others than those that were given blindly."""
        return {
            item_id for item_id, given in self.grades.items() if sorted(given) != sorted(self.blind.get(item_id, ()))
        }

    def anchors(self, counts: Counter[str]) -> dict[str, float]:
        """item_id -> the one grade that assessors gave before they saw the grader's; counts the others."""
        counts.update(
            to_decide=len(self.blind.keys() & self.to_decide),
            in_sight=len(self.blind.keys() & self.in_sight),
            not_blind=len(self.grades.keys() - self.blind.keys()),
            stale=self.stale,
            sampled=len(self.blind.keys() & self.stands),
        )
        return {item_id: grade_of_assessors(given) for item_id, given in self.blind.items()}


def note_anchors(counts: Mapping[str, int]) -> None:
    """Says what became of assessors' grades that a grader is held to, see `AssessorGrades.anchors`."""
    for name, text in _ANCHOR_NOTES.items():
        warn(text, counts[name])


_ANCHOR_NOTES = {
    "to_decide": "%d grades by assessors differ from the grader's and wait for a decision; the blind grade counts",
    "in_sight": "%d grades by assessors were settled in sight of the grader's; the first, blind grade counts",
    "not_blind": "%d grades by assessors were given in sight of the grader's only, and are left out",
    "stale": "%d grades by assessors were given to other words of their items and are left out",
    "sampled": "%d grades by assessors are an audit's, of as many items that the grader covers as not; each counts for "
    "the items of its passage that it stands for",
}


def grades_by_assessors(
    passage: GradedPassage, kind: str | None, items: Mapping[str, RubricItem] | None
) -> AssessorGrades:
    """The grades that assessors gave a passage; where one assessor graded an item twice, the later grade counts.

    What an adjudicator decided binds: it is the one grade of its item, whatever assessors say.

    A review writes down what an item said when it was graded. Where the bank's item says something else now, the grade
    is stale and does not count. An earlier grade by the same assessor does not count either, unless it says what the
    item said then.

    Args:
        passage: the passage.
        kind: only of items of this kind; None for all.
        items: item_id -> item of the bank: only grades of these, as they are now; None for all.
    """
    by_assessor, blind = (defaultdict[str, dict[str, float]](dict) for _ in range(2))
    said, waiting = defaultdict[str, dict[str, str]](dict), defaultdict[str, set[str]](set)
    sets, settled, stands = list[ItemGradeSet](), dict[str, tuple[str, float]](), dict[str, float]()
    theirs = [entry for entry in passage.exam_grades or () if entry.llm.startswith(HUMAN)]
    held, stale = held_sets([entry for entry in theirs if kind in (None, kind_of_set(entry))], items)
    for entry in held:
        kept = {one: grade for one, grade in items_of_set(entry)[0].items() if items is None or one in items}
        name, prompt = entry.llm, _prompt_class(entry)
        sets += [entry] if kept else []
        if kept and prompt not in (FINAL_REVIEW, ADJUDICATION):
            blind[name].update(kept)
            stands |= stands_for(entry)
        if not kept or prompt == BLIND_REVIEW:
            continue
        by_assessor[name].update(kept)
        waiting[name] = waiting[name] - kept.keys() | (to_decide(entry) & kept.keys())
        if prompt == ADJUDICATION:
            settled |= {item_id: (name, grade) for item_id, grade in kept.items()}
        for item_id, reason in entry.answers:
            if item_id in kept:
                said[item_id][name] = reason
    of_items, of_blind = _by_item(by_assessor), _by_item(blind)
    for item_id, (name, grade) in settled.items():
        of_items[item_id], said[item_id] = [grade], {name: said[item_id].get(name, "")}
    reasons = {item_id: "; ".join(filter(None, texts.values())) for item_id, texts in said.items()}
    undecided = set().union(*waiting.values()) - settled.keys()
    return AssessorGrades(of_items, reasons, sets, by_assessor, stale.total(), settled, of_blind, undecided, stands)


def _by_item(by_assessor: Mapping[str, Mapping[str, float]]) -> dict[str, list[float]]:
    found = defaultdict[str, list[float]](list)
    for item_id, grade in chain.from_iterable(grades.items() for grades in by_assessor.values()):
        found[item_id].append(grade)
    return found


def held_sets(
    sets: Sequence[ItemGradeSet], items: Mapping[str, RubricItem] | None
) -> tuple[list[ItemGradeSet], Counter[str]]:
    """Grade sets without assessors' stale grades; and assessor -> how many grades are stale, and left out therefore.

    An earlier grade by the same assessor that does not say what its item said then is stale with the later one. A set
    without stale grades is the same object.

    Args:
        sets: the grade sets of a passage.
        items: item_id -> item as it is now; without them nothing is stale.
    """
    known, stale = items or {}, defaultdict[int, set[str]](set)
    unknown = defaultdict[tuple[str, bool, str], set[int]](set)
    for number, entry in enumerate(sets):
        contents = contents_of(entry)
        for item_id in items_of_set(entry)[0].keys() & known.keys() if entry.llm.startswith(HUMAN) else ():
            same = unknown[entry.llm, is_blind_set(entry), item_id]
            same.add(number)
            if item_id in contents:
                for one in same if contents[item_id] != item_content(known[item_id]) else ():
                    stale[one].add(item_id)
                same.clear()
    held = [of_items(one, stale[number], kept=False) if number in stale else one for number, one in enumerate(sets)]
    lost = {(sets[number].llm, item_id) for number, item_ids in stale.items() for item_id in item_ids}
    for entry in held if lost else ():
        lost -= {(entry.llm, item_id) for item_id in items_of_set(entry)[0]}
    return held, Counter(assessor for assessor, _ in lost)


def _with_assessors(entry: ItemGradeSet, assessors: AssessorGrades, counts: Counter[str]) -> ItemGradeSet:
    """The grader's set, with an assessor's grade wherever there is one; counted.

    An assessor's reason stands where the grader's reply stood. Where assessors grade an item that failed, or that the
    grader was not asked about, theirs is its grade.
    """
    counts["stale"] += assessors.stale
    if not assessors.grades:
        return entry
    grades, statuses = items_of_set(entry)
    theirs = {item_id: grade_of_assessors(given) for item_id, given in assessors.grades.items()}
    counts.update(
        replaced=len(theirs),
        changed=sum(grades.get(item_id) != grade for item_id, grade in theirs.items()),
        split=sum(len(set(given)) > 1 for given in assessors.grades.values()),
        settled=len(assessors.settled),
        to_decide=len(assessors.to_decide),
        in_sight=len(assessors.in_sight - assessors.settled.keys()),
    )
    replies = {item_id: reply for item_id, reply in entry.answers if item_id not in theirs}
    replies.update((item_id, reason) for item_id in theirs if (reason := assessors.reasons.get(item_id)))
    # What is said about the making of the grader's grades holds for those that stand.
    details = {item_id: said for item_id, said in details_of(entry).items() if item_id not in theirs}
    return ItemGradeSet.build(
        {**grades, **theirs},
        answers=replies.items(),
        llm=entry.llm,
        kind="nugget" if kind_of_set(entry) == "nugget" else "question",
        prompt_info=entry.prompt_info,
        item_status={item_id: status for item_id, status in statuses.items() if item_id not in theirs},
        details=details or None,
    )


QuestionSet = Literal["question-bank", "tqa", "nugget"]
_TQA = "NDQ_"
_CHOICES = {"items": get_args(QuestionSet), "assessors": ("override",)}


class Grader(Struct, frozen=True, dict=True):
    """Which grades count, where records or a table hold those of several graders; what is left out may be anything.

    >>> from rubric_measures import Grader
    >>> Grader.parse("model=gpt-4o,scale=0-5:4") == Grader("gpt-4o", scale="0-5:4")
    True

    Attributes:
        model: the model, the grader of a table, or the assessor (`human:NAME`), as the file has it (its field `llm`).
        prompt: the prompt class.
        kind: what it graded: `question`, `nugget`, or passages as a whole (`direct`).
        items: `question-bank`, `tqa` (items whose id begins with NDQ_) or `nugget`.
        set: how `GradeSetKey.grade_set` begins; `none` for sets without one. It tells sets of the same model and prompt
            apart whose prompt texts or settings differ.
        scale: the scale of the grades, in the place of what the file says: `0-5:4` (4 covers), `0-5:4:3` (3 is
            partial), or a `Scale`.
        assessors: `override` puts grades by assessors (`human:NAME`) in the grader's place wherever there are any, see
            `grade_of_assessors`; by default each assessor is a grader like any other.
        first: of several sets that pass, take the first of each passage (as the workbench does) instead of refusing.

    Raises:
        InputError: assessors are to override an assessor, or there is no such scale or kind of items.
    """

    model: str | None = None
    prompt: str | None = None
    kind: str | None = None
    items: QuestionSet | None = None
    set: str | None = None
    # Given as text, too.
    scale: Any = None
    assessors: Literal["override"] | None = None
    first: bool = False

    @classmethod
    def parse(cls, written: str | Grader | None) -> Grader:
        """What a person wrote: the name of a model, or `KEY=VALUE,…` with the attributes as keys.

        >>> str(Grader.parse("gpt-4o")), str(Grader.parse("model=gpt-4o, kind=nugget,set=3fa1"))
        ('model=gpt-4o', 'model=gpt-4o,kind=nugget,set=3fa1')

        Args:
            written: the text; a grader comes back as it is, and None chooses nothing.

        Raises:
            UnknownNameError: there is no such key.
            InputError: a key is there twice, has no value, or a wrong one.
        """
        if not isinstance(written, str):
            return written or cls()
        keys = cls.__struct_fields__[:-1]
        parts = [part.partition("=") for part in re.split(r",\s*(?=[\w-]+=)", written.strip())]
        first, equals, _ = parts[0]
        # A model's name may hold whatever looks like no key.
        if len(parts) == 1 and first and not (equals and re.fullmatch(r"[\w-]+", first)):
            return cls(written.strip())
        found: dict[str, Any] = {}
        for key, equals, value in parts:
            if equals and key not in keys:
                hint = f"(a model of this name: model={written.strip()})" if len(parts) == 1 else ""
                raise UnknownNameError("key of a grader", key, keys, hint=hint, settings=("grader",))
            if not value or key in found:
                problem = f"{key} is there twice" if key in found else f"{key!r} has no value"
                raise InputError(f"grader {written!r}: {problem}; write model=NAME,prompt=NAME,…", settings=("grader",))
            found[key] = value
        return cls(**found)

    def __post_init__(self) -> None:
        if self.scale is not None and not isinstance(self.scale, Scale):
            force_setattr(self, "scale", parse_scale(str(self.scale)))
        for name, choices in _CHOICES.items():
            if (said := getattr(self, name)) not in (None, *choices):
                problem = f"{name} of a grader: {said!r} is none of {', '.join(choices)}"
                raise InputError(problem, settings=("grader",))
        if self.assessors is not None and (self.model or "").startswith(HUMAN):
            raise InputError(
                f"{self.model}: assessors' grades stand in a grader's place; name the grader, not the assessor"
            )

    def __str__(self) -> str:
        return ",".join(f"{name}={value}" for name, value in self.given.items())

    @property
    def given(self) -> dict[str, Any]:
        """What is chosen: attribute -> value, without `first`."""
        return {name: value for name, value in asdict(self).items() if name != "first" and value is not None}

    def only(self, key: GradeSetKey) -> Grader:
        """The choice of one of the grade sets that pass."""
        exact = {"model": key.llm, "prompt": key.prompt_class, "kind": key.kind}
        return replace(self, **exact, set=key.grade_set or UNKNOWN_GRADER)

    def passes(self, key: GradeSetKey, item_ids: Callable[[], Iterable[str]]) -> bool:
        """Whether a grade set with this key and these items passes; the items are asked for only where they matter."""
        if self.items is None or not self.may_pass(key):
            return self.may_pass(key)
        if "nugget" in (self.items, key.kind):
            return self.items == key.kind
        if key.kind != "question":
            return False
        first = next(iter(item_ids()), "")
        is_tqa = first.startswith(_TQA) or first.rpartition("/")[2].startswith(_TQA)
        return is_tqa == (self.items == "tqa")

    def may_pass(self, key: GradeSetKey) -> bool:
        """The same, whatever the items."""
        asked = (self.model, key.llm), (self.prompt, key.prompt_class), (self.kind, key.kind)
        is_theirs = key.llm.startswith(HUMAN)
        return (
            all(name in (None, said) for name, said in asked)
            and not (self.assessors is not None and is_theirs)
            # What an assessor first said is no grade to score by; it is read where it is named.
            and not (is_theirs and key.prompt_class == BLIND_REVIEW and self.prompt is None and self.set is None)
            and (self.set is None or (key.grade_set or UNKNOWN_GRADER).startswith(self.set))
        )


def scale_of_set(entry: ItemGradeSet | DirectGrade) -> Scale | None:
    """The scale of a grade set: as it says itself, else that of its prompt class; None where neither is known.

    Ratings of a prompt class that nobody knows are on a scale that nobody knows. Grades without ratings are 1 for
    answered and 0 for not, whatever their prompt is called, also where it asks for ratings. A set in which every grade
    failed does not tell which of the two it is, nor does one without ratings in which nothing is answered, of a prompt
    that rates.
    """
    kind, answered = None, False
    if not isinstance(entry, DirectGrade) and not entry.self_ratings:
        kind = YES_NO if entry.correct_answered or entry.wrong_answered else None
        answered = bool(entry.correct_answered)
    return _scale(bytes(entry.prompt_text), kind, answered)


@lru_cache(maxsize=1024)
def _scale(prompt: bytes, kind: Scale | None, answered: bool) -> Scale | None:
    told = object_in(prompt)
    said = by_range = None
    # A number in the place of names: no scale that can be read, as other wrong ones.
    with contextlib.suppress(TypeError):
        if "scale" in told:
            said, by_range = scale_from(told), scale_from(told, by_range=True)
    if said is not None and told.get("covers") is not None:
        return said
    from rubric_measures.prompts.library import scale_of_prompt

    known = scale_of_prompt(told.get("prompt_class", ""))
    if by_range is not None:
        # A range alone says no level: that of the prompt class where it is on the same range, else none is known.
        return known if known is not None and known[:2] == by_range[:2] else said
    if known is not None and kind == YES_NO and known[:2] != YES_NO[:2]:
        # Right or wrong, of a prompt whose ratings were not kept.
        return kind if answered else None
    return known or kind


def grades_of_set(
    entry: ItemGradeSet | DirectGrade, lenient: bool = False
) -> tuple[dict[str, float], Mapping[str, GradeStatus]]:
    """What one grade set says about each item of its passage.

    An item may be in both: a truncated passage can have a grade, and its status says that only a part was graded. The
    item of a direct label is "0". Its grade is the rating, else the relevance label, else 1 or 0 for yes and no.

    Args:
        entry: a grade set over items, or a direct label.
        lenient: read errors of calls as the workbench does, which is not at all.

    Returns:
        item_id -> grade of the items that have one; item_id -> status of all items that are not simply `graded`.
    """
    if not isinstance(entry, DirectGrade):
        return items_of_set(entry, lenient)
    status = entry.known_status
    if lenient and status != entry.status:
        return {DIRECT_ITEM: int(entry.correct_answered)}, {}
    grades = {} if entry.label is None else {DIRECT_ITEM: entry.label}
    return grades, {} if status == "graded" else {DIRECT_ITEM: status}


# What is said at the end of what was counted, in this order; first of graders, then of assessors in their place.
_OF_GRADERS = {
    "old": "%d grades are older than an edit of their item, which the bank marks (info.regrade), and count as they "
    "stand; grading what changed makes them anew",
    "repeated": "%d grades name an item that the same model and prompt graded before in the passage; the later grade "
    "counts",
    "unrated": "%d grade sets of a prompt that rates have no ratings (self_ratings): their items count as right or "
    "wrong, 1 or 0",
    "sampled": "%d grades are an audit's, of as many items that the grader covers as not; each counts once here, so "
    "shares and κ are not those of all items (details.stands_for has the weights)",
}
_OF_ASSESSORS = {
    "replaced": "%d grades by assessors stand in the grader's place",
    "changed": "%d of them say something else than the grader",
    "split": "on %d of them assessors differ; the median counts, of two the lower",
    "settled": "%d of the grades by assessors were settled by an adjudicator",
    "to_decide": "%d of them wait for the assessor's decision between both; until then the assessor's counts",
    "in_sight": "%d of them were given or settled in sight of the grader's",
    "elsewhere": "%d grades by assessors left out: the grader graded nothing of their passages",
    "stale": "%d grades by assessors left out: they were given to other words or gold answers of their items than the "
    "bank has now; have them graded again",
}


class _Making(Struct):
    """What thousands of entries say alike: their grade set, whether the filter lets it through, and what made it.

    Attributes:
        key: the grade set.
        passes: whether it passes, but for its items.
        signatures: of the grader.
        scale: of ratings.
        asked_for: measures for which alone it was asked; empty where for all.
        is_found: whether one of the entries was chosen.
    """

    key: GradeSetKey
    passes: bool
    signatures: set[str]
    scale: Scale | None
    asked_for: frozenset[str] = frozenset()
    is_found: bool = False


class GradeSetSelector(Struct):
    """Chooses the grade set of each passage, and remembers which grade sets the file has.

    Attributes:
        wanted: the filter.
        source: the file, for errors.
        setting: the parameter that chooses one, for errors.
        every: the records, for errors; without them their file is read once more.
        found: grade sets that were chosen, each with the first of its entries.
        left_out: item -> grades of chosen sets that were left out, because the bank does not have the item.
        outside: grade set -> item -> grades, where a passage's grade set has no item of the bank.
        made: the signatures of the graders; the hashes of their settings in grade sets of other programs.
        strangers: rankings that name another query.
        assessors: grade sets of assessors whose grades stand in the grader's place.
        scale: the scale of the grades; None until it is known.
        others: grade sets that the filter does not let through.
        asked_for: measures for which alone chosen grade sets were asked: what they lack could be any grade.
        counts: how many grades are `old` (their items were edited since; they count as they stand), `repeated` (a later
            one of the same item by the same grader replaced them). Of assessors: `replaced` (they stand in the
            grader's place), of these
            `changed` (they differ from the grader's), `split` (assessors differ, and nobody decided) and `settled` (an
            adjudicator did); `elsewhere` (the grader did not grade their passages) and `stale` (given before their item
            changed), which are left out.
    """

    wanted: Grader
    source: str
    setting: str = "grader"
    every: Sequence[QueryPassages] = ()
    found: dict[GradeSetKey, ItemGradeSet | DirectGrade] = {}
    left_out: Counter[str] = field(default_factory=Counter)
    outside: dict[GradeSetKey, Counter[str]] = {}
    made: set[str] = set()
    strangers: int = 0
    assessors: set[GradeSetKey] = set()
    scale: Scale | None = None
    others: set[GradeSetKey] = set()
    asked_for: set[str] = set()
    counts: Counter[str] = field(default_factory=Counter)
    _bank: TestBank | None = None
    _bank_name: str = ""
    _makings: dict[Hashable, _Making] = {}
    _last: tuple[ItemGradeSet | DirectGrade, _Making] | None = None

    def note_counts(self) -> None:
        """Says once, at the end, which grades are old or repeated, and what assessors' did in the grader's place."""
        if self.asked_for:
            text = "%s: grades were asked only as far as they can change %s; what was never asked is not known to be 0"
            tell(text, self.source, ", ".join(sorted(self.asked_for)))
        for name, text in {**_OF_GRADERS, **_OF_ASSESSORS}.items():
            warn(f"%s: {text}", self.source, self.counts[name])
        if self.wanted.assessors is not None and not any(self.counts[name] for name in _OF_ASSESSORS):
            warn("%s: holds no grades by assessors (%sNAME), so none stands in the grader's place", self.source, HUMAN)

    def nothing_found(self, inside: str = "", settings: tuple[str, ...] = ()) -> InputError:
        """The error of records without a grade set that passes: which one was wanted, and which there are.

        Args:
            inside: in which items none was found, as words behind a blank.
            settings: see `RubricMeasuresError`.
        """
        chosen = f" for {self.wanted}" if self.wanted.given else ""
        others = f"; there are grades of: {choices_of(self.others)}" if self.others else ""
        if not (self.others or self.outside or self.counts["stale"]):
            others = ": its passages are not graded yet; grade them first"
        return InputError(f"{self.source}: holds no grades{chosen}{inside}{others}", settings=settings)

    def grades_of(self, entry: ItemGradeSet | DirectGrade) -> tuple[dict[str, float], Mapping[str, GradeStatus]]:
        """What the chosen grade set of a passage says of each item, as `grades_of_set`."""
        return grades_of_set(entry, self.wanted.first)

    def items_of(self, group: QueryPassages, bank: TestBank | None) -> dict[str, RubricItem] | None:
        """item_id -> item of a query in the bank; None without a bank.

        Raises:
            UnknownNameError: the bank lacks the query.
        """
        if bank is None:
            return None
        if self._bank is not bank:
            self._bank, self._bank_name = bank, bank_content(bank)[:16]
        return {item.item_id: item for item in bank.for_query(group.query_id, group.at(self.source))}

    def choose(
        self, passage: GradedPassage, items: Mapping[str, RubricItem] | None
    ) -> ItemGradeSet | DirectGrade | None:
        """The grade set of the passage that is selected; None when it has none.

        With a bank, only grade sets with an item of the bank are candidates, and direct labels, which grade the item
        "0". Without a bank, direct labels are candidates where they are asked for, or where the passage has no item
        grades.

        Args:
            passage: the passage.
            items: item_id -> item, of the query in the bank; None without a bank.
        """
        wanted = self.wanted
        candidates: Sequence[ItemGradeSet | DirectGrade] = passage.exam_grades or ()
        if items is not None and wanted.assessors is None:
            candidates = self._held(candidates, items)  # type: ignore[arg-type]
        if passage.grades and (wanted.kind == "direct" or wanted.prompt is not None or not candidates):
            candidates = [*candidates, *passage.grades]
        chosen: ItemGradeSet | DirectGrade | None = None
        chosen_key: GradeSetKey | None = None
        outside: list[tuple[GradeSetKey, list[str]]] = []
        for entry in candidates:
            made = self._made(entry)
            key = made.key
            if not made.passes or (wanted.items is not None and not wanted.passes(key, partial(_item_ids, entry))):
                self.others.add(key)
                continue
            rates = isinstance(entry, ItemGradeSet) and bool(entry.self_ratings)
            # Extraction keeps texts for assessors and grades nothing: no candidate, with a bank or without.
            if not (rates and items is None) and not _grades_any(entry, items):
                outside.append((key, _item_ids(entry)))
                continue
            if wanted.first and chosen is not None:
                continue
            if not made.is_found:
                made.is_found = True
                self.found.setdefault(key, entry)
                self.made |= made.signatures
                self.asked_for |= made.asked_for
            scale = wanted.scale or (made.scale if rates else scale_of_set(entry))
            if isinstance(entry, DirectGrade):
                is_bare = entry.known_status == "graded" and entry.self_rating is entry.relevance_label is None
                self.counts["unrated"] += is_bare and scale is not None and scale.highest > 1
            elif not rates and entry.prompt_info and entry.prompt_info.is_self_rated:
                # Where all grades failed there are none.
                self.counts["unrated"] += bool(entry.correct_answered or entry.wrong_answered)
            self.counts["sampled"] += len(stands_for(entry)) if entry.llm.startswith(HUMAN) else 0
            if self.scale is None or wanted.first:
                self.scale = scale or self.scale
            elif scale is not self.scale and len(self.found) == 1:
                self._refuse_scale(entry, scale, 4)
            if chosen is None:
                chosen, chosen_key = entry, key
            elif key == chosen_key:
                chosen = self._joined(chosen, entry, passage.doc_id, items is not None)
        if len(self.found) > 1 and not wanted.first:
            left = self._left()
            why = ("assessors",) if any(key.llm.startswith(HUMAN) for key in left) else ()
            raise undecided(self.source, left, (), self.setting, *why)
        for key, ids in outside:
            # Of two sets with one key the other is of another bank.
            if key != chosen_key:
                self.outside.setdefault(key, Counter()).update(ids)
        return chosen if wanted.assessors is None else self._overridden(chosen_key, chosen, passage, items)

    def _left(self) -> set[GradeSetKey]:
        """The grade sets that pass, those of later passages included."""
        is_there = not self.every and Path(self.source).is_file() and begins_records(self.source)
        groups = iter_graded(self.source, says=False) if is_there else self.every
        sets = grade_sets(groups, self.wanted, self._bank)
        # Labels of passages are no candidates beside grades of items, unless they are asked for.
        return {*self.found, *(key for key, count in sets.items() if count and key.kind != "direct")}

    def _made(self, entry: ItemGradeSet | DirectGrade) -> _Making:
        """What the entry and thousands of others say alike."""
        if self._last is not None and entry.prompt_type is not None:
            last, made = self._last
            if (
                entry.prompt_text == last.prompt_text
                and entry.provenance_text == last.provenance_text
                and entry.llm == last.llm
                and entry.prompt_type == last.prompt_type
                and entry.llm_options == last.llm_options
                and type(entry) is type(last)
            ):
                return made
        making = making_of(entry)
        found = self._makings.get(making)
        if found is None:
            key = key_of_making(*making)
            told = object_in(making[-1])
            signatures = {str(told.get("signature") or key.grade_set)} - {""}
            scale = _scale(bytes(entry.prompt_text), None, False)
            found = self._makings[making] = _Making(key, self.wanted.may_pass(key), signatures, scale)
            if ASKED_FOR in told:
                found.asked_for = asked_for(told)
        self._last = entry, found
        return found

    def _refuse_scale(self, entry: ItemGradeSet | DirectGrade, scale: Scale | None, parts: int) -> None:
        """Refuses grades on another scale than those before, by so many parts of it: its ends, and its levels."""
        if scale and self.scale and scale[:parts] != self.scale[:parts]:
            raise InputError(
                f"{self.source}: grades by {entry.llm} are on the scale {scale}, and others on {self.scale}; they are "
                "no grades of one grader. If they are on one scale, say which",
                settings=("scale",),
            )

    def count_old(self, query_id: str, passage: GradedPassage, bank: TestBank) -> None:
        """Counts the grades of a passage that are older than an edit of their item; see `TestBank.edited`."""
        edited = bank.edited.get(query_id)
        if edited is None:
            return
        is_old: dict[str, bool] = {}
        for entry in passage.exam_grades or ():
            # What assessors' grades were given to is said beside them.
            is_made = not entry.llm.startswith(HUMAN)
            if is_made and self.wanted.passes(grade_set_key(entry), partial(_item_ids, entry)):
                graded = items_of_set(entry)[0].keys() & edited.keys()
                stale = stale_in(entry, graded, edited, self._bank_name)
                is_old |= {item_id: item_id in stale for item_id in graded}
        if self.wanted.assessors is not None and any(is_old.values()):
            items = {item.item_id: item for item in bank.items[query_id]}
            is_old |= dict.fromkeys(grades_by_assessors(passage, None, items).grades, False)
        self.counts["old"] += sum(is_old.values())

    def _held(self, sets: Sequence[ItemGradeSet], items: Mapping[str, RubricItem]) -> Sequence[ItemGradeSet]:
        """The grade sets over items; of an assessor who is a grader like any other, without stale grades."""
        is_theirs = (self.wanted.model or HUMAN).startswith(HUMAN)
        if not (is_theirs and any(entry.llm.startswith(HUMAN) for entry in sets)):
            return sets
        held, left = held_sets(sets, items)
        asked = {
            entry.llm
            for entry in sets
            if entry.llm in left and self.wanted.passes(grade_set_key(entry), partial(_item_ids, entry))
        }
        self.counts["stale"] += sum(left[assessor] for assessor in asked)
        return held

    def _overridden(
        self,
        key: GradeSetKey | None,
        entry: ItemGradeSet | DirectGrade | None,
        passage: GradedPassage,
        items: Mapping[str, RubricItem] | None,
    ) -> ItemGradeSet | DirectGrade | None:
        """The chosen grade set with assessors' grades in it; none where the grader did not grade the passage."""
        if isinstance(entry, DirectGrade):
            return entry
        assessors = grades_by_assessors(passage, key.kind if key is not None else None, items)
        for one in assessors.sets if self.wanted.scale is None else ():
            self._refuse_scale(one, scale_of_set(one), 2)
        if entry is None or key is None:
            self.counts["elsewhere"] += len(assessors.grades)
            return None
        self.assessors.update(grade_set_key(one) for one in assessors.sets if not is_blind_set(one))
        return _with_assessors(entry, assessors, self.counts)

    def _joined(
        self, earlier: ItemGradeSet | DirectGrade, later: ItemGradeSet | DirectGrade, doc_id: str, has_bank: bool
    ) -> ItemGradeSet | DirectGrade:
        """Joins two sets with the same key: the later grade of an item counts, and a grade goes before a failure.

        Raises:
            InputError: they have no item in common and no bank says that they belong together.
        """
        if isinstance(earlier, DirectGrade) or isinstance(later, DirectGrade):
            self.counts["repeated"] += 1
            return later
        # An assessor grades some items of a passage today and others tomorrow.
        is_one = has_bank or later.llm.startswith(HUMAN)
        if not is_one and set(_item_ids(earlier)).isdisjoint(_item_ids(later)):
            raise InputError(
                f"{self.source}: passage {doc_id!r} has two grade sets over different items ({grade_set_key(later)}); "
                "choose one by a bank, or by its items",
                settings=("bank", "items"),
            )
        (grades, statuses), (later_grades, later_statuses) = items_of_set(earlier), items_of_set(later)
        self.counts["repeated"] += len(grades.keys() & later_grades.keys())
        grades, failed = {**grades, **later_grades}, {**statuses, **later_statuses}
        return ItemGradeSet.build(
            grades,
            answers={**dict(earlier.answers), **dict(later.answers)}.items(),
            llm=later.llm,
            self_rated=bool(earlier.self_ratings or later.self_ratings),
            item_status={item_id: status for item_id, status in failed.items() if item_id not in grades},
            details={**details_of(earlier), **details_of(later)} or None,
        )


def _grades_any(entry: ItemGradeSet | DirectGrade, items: Mapping[str, RubricItem] | None) -> bool:
    """Whether a grade set is about any item, or about one of these."""
    if not isinstance(entry, DirectGrade) and entry.self_ratings:
        # The first one settles it nearly always, and this is done for every grade set that is loaded.
        first = entry.self_ratings[0]
        if items is None or (first.question_id or first.nugget_id or "") in items:
            return True
    ids = _item_ids(entry)
    if not ids:
        return not isinstance(entry, DirectGrade) and is_partial(entry)
    return items is None or not items.keys().isdisjoint(ids)


def _item_ids(entry: ItemGradeSet | DirectGrade) -> list[str]:
    """The items that a grade set grades, or failed to; none where it keeps texts alone."""
    if isinstance(entry, DirectGrade):
        return [DIRECT_ITEM]
    if entry.self_ratings:
        ids = entry.rated()[0]
    else:
        ids = [*entry.correct_answered, *entry.wrong_answered]
    if entry.item_status:
        return [*ids, *entry.item_status]
    info = entry.prompt_info
    # Where the prompt leads to grades, and not to texts alone, as its records say or its class does.
    if not ids and entry.llm_response_errors and ((info and info.is_self_rated) or scale_of_set(entry) is not None):
        return list(entry.llm_response_errors)
    return ids


def grade_sets(
    groups: Iterable[QueryPassages],
    wanted: Grader | None = None,
    bank: TestBank | None = None,
    look_at: Callable[[GradeSetKey, ItemGradeSet | DirectGrade], None] | None = None,
) -> dict[GradeSetKey, int]:
    """The grade sets of records, with the number of passages that each graded.

    Args:
        groups: the records.
        wanted: restricts the grade sets; one that grades nothing (extracted texts) passes no filter.
        bank: count only passages of which an item of the bank was graded, or the whole passage; may be 0.
        look_at: is given every entry that passes, too.
    """
    found: Counter[GradeSetKey] = Counter()
    for group in groups:
        inside = None if bank is None else {item.item_id for item in bank.items.get(group.query_id, ())}
        for passage in group.passages:
            counted: dict[GradeSetKey, bool] = {}
            for entry in [*(passage.exam_grades or ()), *(passage.grades or ())]:
                key = grade_set_key(entry)
                is_direct = isinstance(entry, DirectGrade)
                if wanted is not None and not (wanted.passes(key, partial(_item_ids, entry)) and _item_ids(entry)):
                    continue
                graded = inside is None or is_direct or not inside.isdisjoint(_item_ids(entry))
                counted[key] = counted.get(key, False) or graded
                if look_at is not None:
                    look_at(key, entry)
            found.update({key: int(graded) for key, graded in counted.items()})
    return dict(sorted(found.items()))
