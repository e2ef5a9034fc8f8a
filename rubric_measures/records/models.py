"""What a line of a graded file holds, and such files read, passage by passage or whole, and written.

The models of graded passage records: the Rubric workbench's JSON lines under our names.

A line is `["query id", [passage, …]]`. Attributes have our names, the file has the workbench's (by alias). Unknown
fields are kept and written back; read → write → read is the identity.

Source: Dietz, "A Workbench for Autograding Retrieve/Generate Systems", SIGIR 2024, section 4.

What records say about grades that edits of the bank made stale: which items were graded anew.

What a grade set keeps about the making of single grades, under `details`: item -> `distribution` (grade ->
probability), `replicates` ([grade, reply], …), `reason`.

Answers whose citations are judged: an answer is called after its run, is ranked first by it, and keeps its sentences;
a cited document is graded for the sentences that cite it, each an item of its own, RUN/0, RUN/1, ….
"""

from __future__ import annotations

import math
import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from operator import itemgetter
from types import MappingProxyType
from typing import Annotated, Any, NamedTuple, Self, TypeAlias, cast, get_args

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from rubric_measures.base.errors import FormatError, InputError, warn
from rubric_measures.base.files import atomic_writer, iter_lines, path_name, paused_collector
from rubric_measures.base.json_text import check_utf8, decoded
from rubric_measures.types.entities import CitedAnswer, CitedSentence, GradeStatus, ItemKind, content_hash
from rubric_measures.types.scales import HELD, MOST_RELEVANT, SCALE_FIELDS

# The JSON itself; or that of which a record is a part, the field in which it stands ("" in a line), and its place.
Source: TypeAlias = "bytes | tuple[Source, str, int]"

_set = msgspec.structs.force_setattr
STATUSES = get_args(GradeStatus)


class _MadeByName(msgspec.StructMeta):
    """Makes records by calls: of `fields` by our names, and of `said` by the file's. Values are checked as a file's."""

    def __call__(self, said: Mapping[str, Any] = MappingProxyType({}), /, **fields: Any) -> Any:
        kind = cast(type[JsonRecord], self)
        names = dict(zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True))
        every = {**said, **{names.get(name, name): value for name, value in fields.items()}}
        return kind.read(msgspec.json.encode({name: _said(value) for name, value in every.items()}, enc_hook=dict))


class JsonRecord(Struct, frozen=True, gc=False, kw_only=True, metaclass=_MadeByName):
    """Base of what files hold: fields that are typed, and the JSON that has the others, too.

    Made by name (ours or the file's, also unknown names), from a text (`read`), or from another record (`replacing`).
    """

    _source: UnsetType = msgspec.field(name=" source", default=UNSET)

    @classmethod
    def read(cls, text: bytes) -> Self:
        """The record that a JSON text says.

        Raises:
            FormatError: it says none; names the field.
        """
        decoder = _DECODERS.get(cls) or _DECODERS.setdefault(cls, msgspec.json.Decoder(cls))
        try:
            found = decoder.decode(text)
        except (ValueError, RecursionError):
            found = decoded(decoder, text, choices=STATUSES)
        note_sources([found], [text])
        return cast(Self, found)

    @property
    def raw(self) -> bytes:
        """The JSON of the record, as it stands in the file."""
        return _text_at(cast(Source, self._source))

    def as_json(self) -> dict[str, Any]:
        """All that the record says, under the file's names."""
        return cast(dict[str, Any], _value_of(self.raw))

    def replacing(self, said: Mapping[str, Any] = MappingProxyType({}), /, **changes: Any) -> Self:
        """The record with other values for some fields: `said` by the file's names alone, others by ours, too.

        Raises:
            FormatError: a value is none of the field.
        """
        make = cast(Callable[..., Self], type(self))
        return make({**msgspec.json.decode(self.raw, type=dict[str, Raw]), **said}, **changes)

    def __eq__(self, other: object) -> bool:
        """Whether both say the same, whatever the order of fields; what is null is not said."""
        if type(other) is not type(self):
            return NotImplemented
        return self.raw == other.raw or content_of(self.as_json()) == content_of(other.as_json())

    __ne__ = object.__ne__

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.raw.decode('utf-8')})"

    def __reduce__(self) -> Any:
        return type(self).read, (self.raw,)


_DECODERS: dict[type[JsonRecord], msgspec.json.Decoder[Any]] = {}


def _said(value: Any) -> Any:
    if isinstance(value, JsonRecord):
        return Raw(value.raw)
    return [_said(one) for one in value] if isinstance(value, list | tuple) else value


def _text_at(source: Source) -> bytes:
    if isinstance(source, bytes):
        return source
    whole, field, place = source
    return bytes(_parts_of(_text_at(whole), field)[place])


# Who asks for one part asks for its neighbours next.
@lru_cache(maxsize=16)
def _parts_of(text: bytes, field: str) -> list[Raw]:
    if field:
        return msgspec.json.decode(msgspec.json.decode(text, type=dict[str, Raw])[field], type=list[Raw])
    passages = msgspec.json.decode(text, type=tuple[Raw, Raw])[1]
    return msgspec.json.decode(passages, type=list[Raw]) if bytes(passages).startswith(b"[") else [passages]


def content_of(value: Any) -> Any:
    """What a JSON value says, to be compared or hashed: without the order of fields, and without nulls."""
    if isinstance(value, dict):
        return frozenset((name, content_of(one)) for name, one in value.items() if one is not None)
    return tuple(map(content_of, value)) if isinstance(value, list) else value


def note_sources(records: Iterable[JsonRecord], sources: Iterable[Source]) -> None:
    """Notes where the JSON of records stands, and that of their grade sets and labels; once, by who reads them."""
    for record, source in zip(records, sources, strict=True):
        _set(record, "_source", source)
        if isinstance(record, GradedPassage):
            for name, entries in (("exam_grades", record.exam_grades), ("grades", record.grades)):
                for place, entry in enumerate(entries or ()):
                    _set(entry, "_source", (source, name, place))


_NULL = Raw(b"null")
# What grades mean does not tell who made them.
_NOT_SETTINGS = frozenset({"prompt_class", *SCALE_FIELDS})
# The field in which assessors' grade sets keep what their items said then.
ITEM_CONTENTS = "item_contents"
# What `details` say of an assessor's grade that differs from the grader's and waits for a decision.
TO_DECIDE = "to_decide"
# And of one that an audit asked: how many items of the passage, of those that the grader covers or of the others, it
# stands for.
STANDS_FOR = "stands_for"


# Longer than any ranking: what stands at a rank is looked at together with all ranks above it.
MAX_RANK = 1_000_000


# As in qrels: greater ones have no floating-point number, or are none that anybody gave.
_LABEL = Meta(ge=-MOST_RELEVANT, le=MOST_RELEVANT)
_RATING = Meta(ge=HELD[0], le=HELD[1])
# An integer is an `int`, and what is written with a fraction a `float`.
Label = Annotated[int, _LABEL] | Annotated[float, _LABEL]
Rating = Annotated[int, _RATING] | Annotated[float, _RATING]


class Judgment(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """What an assessor said about the relevance of a passage; any number up to that of 32 bits.

    Attributes:
        doc_id: the passage (`paragraphId`).
        query_id: the query (`query`).
        relevance: the label.
        title_query: the query's title, where the file has it (`titleQuery`).
    """

    doc_id: str = msgspec.field(name="paragraphId")
    query_id: str = msgspec.field(name="query")
    relevance: Label
    title_query: str | None = msgspec.field(name="titleQuery", default=None)


class RankingEntry(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """Where a run ranked the passage.

    Attributes:
        method: the run (run_id).
        doc_id: the passage (`paragraphId`).
        query_id: the query (`queryId`).
        rank: from 0 or 1, as the file has it; never negative, at most `MAX_RANK`.
        score: finite.
    """

    method: str
    doc_id: str = msgspec.field(name="paragraphId")
    query_id: str = msgspec.field(name="queryId")
    rank: Annotated[int, Meta(ge=0, le=MAX_RANK)]
    score: float


class PassageData(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """Judgments and rankings of one passage; either list may be missing, null or empty."""

    judgments: list[Judgment] | None = None
    rankings: list[RankingEntry] | None = None


class PromptInfo(JsonRecord, frozen=True, kw_only=True):
    """What measures need of the prompt that led to grades; older files leave most of it out."""

    prompt_class: str = ""
    is_self_rated: bool | None = None


class SelfRating(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """The rating of one item, 0 (worst) or more, or -2 (a document says the opposite); real ones are kept.

    Exactly one of `question_id` and `nugget_id` names the item.

    The reader of files checks that it is exactly one (a validator here would take a fifth of the reading time).
    """

    question_id: str | None = None
    nugget_id: str | None = None
    self_rating: Rating

    @property
    def item_id(self) -> str:
        """The item, whatever its kind; empty where the rating names none."""
        return self.question_id if self.question_id is not None else self.nugget_id or ""


class _MadeByModel(JsonRecord, frozen=True, kw_only=True):
    """What the sets of item grades and the direct grades of one passage say alike: by whom and how they were made."""

    llm: str
    # Thousands of entries have the same bytes here, so they are kept unread, and read once for all.
    prompt_text: Raw = msgspec.field(name="prompt_info", default=_NULL)
    provenance_text: Raw = msgspec.field(name="provenance", default=_NULL)
    prompt_type: str | None = None
    relevance_label: Label | None = None
    # Our addition: what is known about the making of single grades; see `details_of`.
    details: Any = None

    @property
    def prompt_info(self) -> PromptInfo | None:
        """The prompt."""
        return prompt_in(bytes(self.prompt_text))


_MANY = 4096


@lru_cache(maxsize=_MANY)
def object_in(text: bytes) -> Mapping[str, Any]:
    """What a JSON text says; nothing where that is no object."""
    said = _value_of(text)
    return said if isinstance(said, dict) else {}


def _value_of(text: bytes) -> Any:
    try:
        return msgspec.json.decode(text)
    except ValueError as error:
        # Nobody looked at 1e400 where it is only kept.
        raise FormatError(f"is not JSON: {error}") from None


@lru_cache(maxsize=_MANY)
def prompt_in(text: bytes) -> PromptInfo | None:
    """The prompt that a JSON text says; None where that is null.

    Raises:
        FormatError: it says no prompt; names the field.
    """
    try:
        object_in(text)
        return None if text == b"null" else PromptInfo.read(text)
    except FormatError as error:
        raise FormatError(error.problem, field=f"prompt_info.{error.field}".rstrip(".")) from None


class ItemGradeSet(_MadeByModel, frozen=True, kw_only=True):
    """The grades of one passage by one grader: one prompt class × model × bank (an entry of `exam_grades`).

    Attributes:
        correct_answered: ids of items that count as answered (`correctAnswered`).
        wrong_answered: ids of the others (`wrongAnswered`).
        answers: (item id, raw reply), in the order of grading.
        llm: the model.
        llm_options: its options.
        exam_ratio: correct / all, 0 to 1.
        prompt_info: the prompt.
        self_ratings: the ratings, when the prompt asks for some; null, absent or empty otherwise.
        prompt_type: `question` or `nugget` (free text: the workbench has others).
        llm_response_errors: item id -> what went wrong.
        relevance_label: a label derived from the grades, by the workbench's newer versions.
        item_status: our addition: item id -> status of every item that has no grade (see `Grade`).
        item_contents: our addition: item id -> what the item said when an assessor graded it.
        pairs: our addition: true where items are sentences, and passages the documents that they cite.
    """

    correct_answered: list[str] = msgspec.field(name="correctAnswered")
    wrong_answered: list[str] = msgspec.field(name="wrongAnswered")
    answers: list[tuple[str, str]]
    llm_options: dict[str, Any]
    exam_ratio: float
    self_ratings: list[SelfRating] | None = None
    llm_response_errors: dict[str, Any] | None = None
    item_status: dict[str, GradeStatus] | None = None
    item_contents: Any = None
    pairs: Any = None
    _rated: UnsetType = msgspec.field(name=" rated", default=UNSET)

    def rated(self, known: Sequence[str] = ()) -> tuple[list[str], list[float]]:
        """The items of the ratings, in order, and their ratings; an item may come twice.

        Args:
            known: items of other ratings; where these are rated in their order, they are that list itself, also later.

        Raises:
            FormatError: a rating names no item, or two, or is -1.
        """
        if self._rated is not UNSET:
            return cast("tuple[list[str], list[float]]", self._rated)
        # The innermost loop of loading.
        ratings = self.self_ratings or []
        rated: list[float] = [one.self_rating for one in ratings]
        ids: list[Any] = [one.question_id if one.nugget_id is None else None for one in ratings]
        if ids == known:
            ids = known
        elif None in ids:
            for place, one in enumerate(ratings):
                if (one.question_id is None) == (one.nugget_id is None):
                    problem = "a rating needs exactly one of question_id and nugget_id"
                    raise FormatError(problem, field=f"self_ratings[{place}]")
            ids = [one.item_id for one in ratings]
            ids = known if ids == known else ids
        if -1 in rated:
            problem = "-1 is no grade; expected 0 or more, or -2 where a document says the opposite"
            raise FormatError(problem, field=f"self_ratings[{rated.index(-1)}].self_rating")
        found = ids, rated
        _set(self, "_rated", found)
        return found

    @classmethod
    def build(
        cls,
        grades: Mapping[str, float],
        *,
        answers: Iterable[tuple[str, str]],
        llm: str,
        kind: ItemKind = "question",
        self_rated: bool = True,
        prompt_info: PromptInfo | None = None,
        item_status: Mapping[str, GradeStatus] | None = None,
        errors: Mapping[str, str] | None = None,
        **more: Any,
    ) -> ItemGradeSet:
        """Makes a grade set, with all fields that the workbench wants to read.

        Args:
            grades: item id -> grade, in bank order; only items that were graded.
            answers: (item id, raw reply) of all items.
            llm: the model.
            kind: what the items are; names the id field of the ratings.
            self_rated: the grades are ratings (else 1 answered, 0 not).
            prompt_info: the prompt.
            item_status: item id -> status of the items without a grade.
            errors: item id -> the reason of its status.
            more: further fields, by our names; none that is None.

        Returns:
            The grade set; `exam_ratio` is answered / graded items, 0.0 where none was graded.
        """
        correct = [item_id for item_id, grade in grades.items() if grade >= 1]
        wrong = [item_id for item_id, grade in grades.items() if grade < 1]
        ratings = [{f"{kind}_id": item_id, "self_rating": grade} for item_id, grade in grades.items()]
        told: dict[str, Any] = {
            "correct_answered": correct,
            "wrong_answered": wrong,
            "answers": list(answers),
            "llm": llm,
            "llm_options": {},
            "exam_ratio": exam_ratio(correct, wrong),
            "prompt_info": prompt_info or _NULL,
            "prompt_type": kind,
            "self_ratings": ratings if self_rated else None,
            "item_status": item_status or None,
            "llm_response_errors": errors or None,
            **more,
        }
        return cls(**{name: said for name, said in told.items() if said is not None})


def exam_ratio(correct: Sequence[str], wrong: Sequence[str]) -> float:
    """The share of answered items among the graded ones; 0.0 where none was graded."""
    return len(correct) / (len(correct) + len(wrong)) if correct or wrong else 0.0


class DirectGrade(_MadeByModel, frozen=True, kw_only=True):
    """A relevance label that a model gave to the passage without items (an entry of `grades`).

    Attributes:
        correct_answered: whether the label counts as relevant (`correctAnswered`).
        answer: the raw reply; files that call it `answers` are read, `answer` is written.
        self_rating: the label (`self_ratings`), or None.
        llm: the model.
        llm_options: its options.
        prompt_info: the prompt.
        prompt_type: `direct_grading`.
        llm_response_error: what went wrong.
        relevance_label: as in `ItemGradeSet`.
        status: our addition; written only when it is not `graded`.
    """

    correct_answered: bool = msgspec.field(name="correctAnswered")
    answer: str
    llm_options: dict[str, Any] | None = None
    self_rating: Rating | None = msgspec.field(name="self_ratings", default=None)
    llm_response_error: Any = None
    status: GradeStatus = "graded"

    @property
    def label(self) -> float | None:
        """The rating, else the relevance label, else 1 or 0 for yes and no; None where the call led to none of them.

        Files of other programs have no status: there `correctAnswered` means nothing beside an error of the call.
        """
        if self.status not in ("graded", "truncated"):
            return None
        answered = None if self.llm_response_error else int(self.correct_answered)
        return next((one for one in (self.self_rating, self.relevance_label) if one is not None), answered)

    @property
    def known_status(self) -> GradeStatus:
        """The status; `failed` where another program noted an error and no label."""
        return "failed" if self.status == "graded" and self.label is None else self.status


class GradedPassage(JsonRecord, frozen=True, kw_only=True):
    """One passage (or one segment of a generated answer) of a query, with all that is known about it.

    Attributes:
        doc_id: the passage (`paragraph_id`).
        text: what is graded.
        paragraph: anything that the collection says about it.
        paragraph_data: judgments and rankings.
        exam_grades: one entry for each set of item grades.
        grades: one entry for each direct grader.
    """

    doc_id: Annotated[str, Meta(min_length=1)] = msgspec.field(name="paragraph_id")
    text: str
    paragraph: Any = None
    paragraph_data: PassageData | None = None
    exam_grades: list[ItemGradeSet] | None = None
    grades: list[DirectGrade] | None = None

    @property
    def judgments(self) -> list[Judgment]:
        """The judgments; an empty list where the file has none."""
        return (self.paragraph_data.judgments if self.paragraph_data else None) or []

    def judged(self, query_id: str) -> float | None:
        """The label that assessors gave the passage for a query: the highest, where several did; None without any."""
        return max((one.relevance for one in self.judgments if one.query_id == query_id), default=None)

    @property
    def rankings(self) -> list[RankingEntry]:
        """The rankings; an empty list where the file has none."""
        return (self.paragraph_data.rankings if self.paragraph_data else None) or []


class QueryPassages(NamedTuple):
    """All passages of one query, in file order.

    Attributes:
        query_id: the query.
        passages: its passages; ids are unique.
        line: the line where the query begins, 0 when it does not come from a file.
    """

    query_id: str
    passages: list[GradedPassage]
    line: int = 0

    def at(self, source: str) -> str:
        """The file, with the line where there is one, as errors name it."""
        return f"{source}:{self.line}" if self.line else source

    @property
    def places(self) -> dict[str, list[tuple[int, float, str]]]:
        """Run -> rank, score and id of each passage that it ranks for the query, in file order."""
        found: dict[str, list[tuple[int, float, str]]] = {}
        for passage in self.passages:
            for one in passage.rankings:
                if one.query_id == self.query_id:
                    found.setdefault(one.method, []).append((one.rank, one.score, passage.doc_id))
        return found


def _rated_item(rating: Mapping[str, Any]) -> str:
    named = rating.get("question_id")
    return (rating.get("nugget_id") or "") if named is None else named


# The lists of the JSON of a grade set, and which item an element of each is about; empty where it names none.
ITEM_LISTS: Mapping[str, Callable[[Any], str]] = {
    "correctAnswered": str, "wrongAnswered": str, "answers": itemgetter(0), "self_ratings": _rated_item,
}  # fmt: skip


def of_items(entry: ItemGradeSet, item_ids: Collection[str], kept: bool = True) -> ItemGradeSet:
    """The grade set with what it says of these items alone, or where they are not `kept`, of all others."""
    said = entry.as_json()
    changes: dict[str, Any] = {
        name: [one for one in said[name] if (item_of(one) in item_ids) is kept]
        for name, item_of in ITEM_LISTS.items()
        if said.get(name)
    }
    for name in ("item_status", "llm_response_errors", "details", ITEM_CONTENTS):
        if isinstance(known := said.get(name), dict):
            changes[name] = {item_id: one for item_id, one in known.items() if (item_id in item_ids) is kept}
    ratio = exam_ratio(*(changes.get(name, ()) for name in ("correctAnswered", "wrongAnswered")))
    return entry.replacing({**changes, "exam_ratio": ratio})


def grade_of_items(entry: ItemGradeSet) -> dict[str, float]:
    """The grade of each item of one grade set, errors of calls ignored; see `items_of_set`."""
    return items_of_set(entry, lenient=True)[0]


def items_of_set(entry: ItemGradeSet, lenient: bool = False) -> tuple[dict[str, float], dict[str, GradeStatus]]:
    """The grades of one grade set, and the statuses of its items that are not simply graded.

    With self_ratings, a grade is the rating; else 1 if in correctAnswered, 0 if in wrongAnswered. An item rated twice
    has its later rating (the reader counts them), an item in both lists has 1. Items that a rated set lists without a
    rating are left out. So are those in `item_status`, because a failure is not a number; but a `truncated` text keeps
    its grade.

    Other programs note a failed call in `llm_response_errors` alone, and list its item as answered wrongly: here it is
    `failed` and has no grade. Only our grade sets have statuses; there the error is a note.

    Args:
        entry: the grade set.
        lenient: ignore errors of calls, as the workbench does.

    Returns:
        item_id -> grade; item_id -> status. A truncated item may be in both.
    """
    rated, statuses = entry.self_ratings, dict(entry.item_status or {})
    grades: dict[str, float] = dict(zip(*entry.rated(), strict=True))
    if not rated:
        grades = {**dict.fromkeys(entry.wrong_answered, 0), **dict.fromkeys(entry.correct_answered, 1)}
    for item_id in () if lenient else entry.llm_response_errors or ():
        if item_id not in statuses and (item_id not in grades or not (rated or grades[item_id])):
            statuses[item_id] = "failed"
    for item_id, status in statuses.items():
        if status not in ("graded", "truncated"):
            grades.pop(item_id, None)
    return grades, statuses


def kind_of_set(entry: ItemGradeSet) -> str:
    """What the items of a grade set are: its `prompt_type`, else what its ratings name."""
    if entry.prompt_type is not None:
        return entry.prompt_type
    return "nugget" if entry.self_ratings and entry.self_ratings[0].nugget_id is not None else "question"


def provenance_of(entry: ItemGradeSet | DirectGrade) -> Mapping[str, Any]:
    """What a grade set of ours says about its making; empty for sets of other programs and of assessors."""
    return object_in(bytes(entry.provenance_text))


# What of its making a grade set says that lacks items which some measures did not need: these measures, and the runs.
ASKED_FOR = "asked_for"


def asked_for(made: Mapping[str, Any]) -> frozenset[str]:
    """The measures for which alone a grade set was asked, by what it says of its making; empty where for all."""
    said = made.get(ASKED_FOR)
    listed = [one.get("measures") for one in said if isinstance(one, dict)] if isinstance(said, list) else []
    return frozenset(str(name) for names in listed if isinstance(names, list) for name in names)


def is_partial(entry: ItemGradeSet) -> bool:
    """Whether a grade set lacks items because the measures that it was asked for do not need them."""
    return ASKED_FOR.encode() in bytes(entry.provenance_text) and bool(asked_for(provenance_of(entry)))


def contents_of(entry: ItemGradeSet) -> Mapping[str, str]:
    """Item id -> what the item said when it was graded (`entities.item_content`), where a grade set knows it."""
    return entry.item_contents if isinstance(entry.item_contents, dict) else {}


def to_decide(entry: ItemGradeSet) -> set[str]:
    """The items whose grade by an assessor differs from the grader's, and waits for a decision."""
    return {item_id for item_id, said in details_of(entry).items() if isinstance(said, dict) and said.get(TO_DECIDE)}


def stands_for(entry: ItemGradeSet | DirectGrade) -> dict[str, float]:
    """How many items of its passage each grade of an audit stands for."""
    said = {item_id: one.get(STANDS_FOR) for item_id, one in details_of(entry).items() if isinstance(one, dict)}
    return {item_id: float(size) for item_id, size in said.items() if isinstance(size, int | float) and size > 0}


class GradeSetKey(NamedTuple):
    """What tells one grade set of a file from another.

    Its text is what chooses it, as `Grader.parse` reads it, but for the hash, which few files need: see `choices_of`.

    Attributes:
        llm: the model.
        prompt_class: the prompt.
        kind: `question`, `nugget` or `direct`; free text where a file has other prompt types.
        grade_set: the hash of what made it: model, prompt with its text, all settings, but not the bank. Grade sets of
            other programs have the hash of `llm_options` and `prompt_info`; it is empty where these say no more than
            the prompt class.
    """

    llm: str
    prompt_class: str
    kind: str
    grade_set: str = ""

    def __str__(self) -> str:
        said = zip(("model", "prompt", "kind"), self, strict=False)
        return ",".join(f"{name}={one}" for name, one in said if one) or "a grader without a name"


def making_of(entry: ItemGradeSet | DirectGrade) -> tuple[str, str, bytes, bytes, bytes]:
    """All that tells a grade set from others, as it stands there: thousands of grade sets say the same."""
    kind = "direct" if isinstance(entry, DirectGrade) else kind_of_set(entry)
    options = msgspec.json.encode(entry.llm_options) if entry.llm_options else b"{}"
    return entry.llm, kind, options, bytes(entry.prompt_text), bytes(entry.provenance_text)


def grade_set_key(entry: ItemGradeSet | DirectGrade) -> GradeSetKey:
    """What tells a grade set from others."""
    return key_of_making(*making_of(entry))


@lru_cache(maxsize=_MANY)
def key_of_making(llm: str, kind: str, options: bytes, prompt: bytes, provenance: bytes) -> GradeSetKey:
    """What tells grade sets from others that say this of their making; see `making_of`."""
    info, made = prompt_in(prompt), object_in(provenance)
    # What a grade set without provenance says of its making, apart from model and prompt class.
    told = {name: said for name, said in object_in(prompt).items() if name not in _NOT_SETTINGS}
    settings = {name: said for name, said in {**object_in(options), **told}.items() if said is not None}
    grader = made.get("grader") or (content_hash(settings)[:12] if settings else "")
    return GradeSetKey(llm, info.prompt_class if info else "", kind, str(grader))


def regraded_of(entry: ItemGradeSet) -> Mapping[str, str]:
    """item_id -> what the item said when it was graded anew after an edit; empty for sets that never were."""
    known: Any = provenance_of(entry).get("regraded")
    return known if isinstance(known, Mapping) else {}


def stale_in(entry: ItemGradeSet, item_ids: Iterable[str], edited: Mapping[str, str], bank_name: str) -> set[str]:
    """The items that a grade set graded before the bank's edit of them.

    Grades that were made anew since still hold, and so do all grades of a set that was made against this bank.

    Args:
        entry: the grade set.
        item_ids: items that it graded, all of them in `edited`.
        edited: item_id -> content, of one query, as in `TestBank.edited`.
        bank_name: how `provenance.bank` calls the bank.
    """
    if provenance_of(entry).get("bank") == bank_name:
        return set()
    regraded = regraded_of(entry)
    return {item_id for item_id in item_ids if regraded.get(item_id) != edited[item_id]}


def details_of(entry: ItemGradeSet | DirectGrade) -> Mapping[str, Mapping[str, Any]]:
    """What a grade set says about the making of single grades, by item; the item of a direct label is "0"."""
    return entry.details if isinstance(entry.details, dict) else {}


def reasons_of(entry: ItemGradeSet | DirectGrade) -> dict[str, str]:
    """Item -> the model's reason, of the items that have one; those of several draws are joined, a line each."""
    said = {item_id: details.get("reason") for item_id, details in details_of(entry).items()}
    drawn = {item_id: some if isinstance(some, list) else [some] for item_id, some in said.items()}
    texts = {item_id: [one for one in some if isinstance(one, str) and one] for item_id, some in drawn.items()}
    return {item_id: "\n".join(some) for item_id, some in texts.items() if some}


def confidences_of(entry: ItemGradeSet | DirectGrade) -> dict[str, float]:
    """Item -> the probability of its most probable grade, above 0 and at most 1, of the items that have one.

    The model gave it to the label; without that it is the share of the replicates with the most frequent grade, of
    those that gave any.

    Raises:
        FormatError: details hold no distribution over grades, or no replicates.
    """
    found: dict[str, float] = {}
    for item_id, details in details_of(entry).items():
        try:
            told = msgspec.convert(details, _Details)
        except msgspec.ValidationError as error:
            problem = f"item {item_id!r}: its details hold a wrong distribution over grades, or wrong replicates"
            raise FormatError(f"{problem}: {error}", field="details") from None
        shares = told.distribution or Counter(grade for grade, _ in told.replicates or () if grade is not None)
        if any(shares.values()):
            found[item_id] = max(shares.values()) / math.fsum(shares.values())
    return found


class _Details(msgspec.Struct):
    distribution: dict[str, Annotated[float, Meta(ge=0, le=1)]] | None = None
    replicates: list[tuple[Annotated[int, _LABEL] | None, Any]] | None = None


def answer_passage(query_id: str, run_id: str, text: str, **more: Any) -> GradedPassage:
    """A run's answer as a passage that is called after the run, which ranks it first."""
    place = RankingEntry(method=run_id, doc_id=run_id, query_id=query_id, rank=1, score=1.0)
    return GradedPassage(doc_id=run_id, text=text, paragraph_data=PassageData(rankings=[place]), **more)


def cited_answer(query_id: str, passage: GradedPassage) -> CitedAnswer | None:
    """The answer that a passage is; None where it is no answer with items.

    Raises:
        InputError: what the record says of its sentences does not fit together.
    """
    answers = passage.paragraph.get("answers") if isinstance(passage.paragraph, Mapping) else None
    [(run_id, said)] = answers.items() if isinstance(answers, Mapping) and len(answers) == 1 else [("", None)]
    if not isinstance(said, Mapping) or "items" not in said:
        return None
    try:
        told = msgspec.convert(said, _Sentences)
        joined = told.joined or [None] * len(told.items)
        rows = zip(told.items, told.sentences, told.citations, joined, strict=True)
        sentences = tuple(CitedSentence(item_id, text, tuple(cited), joined) for item_id, text, cited, joined in rows)
    except (TypeError, ValueError):
        raise InputError(
            f"query {query_id!r}, passage {passage.doc_id!r}: paragraph.answers needs sentences, citations and items, "
            "three lists of one length: texts, lists of document ids, and item ids"
        ) from None
    return CitedAnswer(query_id, run_id, sentences)


class _Sentences(msgspec.Struct):
    items: list[str]
    sentences: list[str]
    citations: list[list[str]]
    joined: list[int | None] | None = None


def cited_answers(group: QueryPassages) -> list[CitedAnswer]:
    """The answers of a query, in order; none where the records are of something else."""
    found = (cited_answer(group.query_id, passage) for passage in group.passages)
    return [answer for answer in found if answer is not None]


_LINES = msgspec.json.Decoder(tuple[str, list[GradedPassage] | GradedPassage])


class GradedFile(list[QueryPassages]):
    """The queries of a graded-records file.

    Attributes:
        name: the file, for messages.
    """

    def __init__(self, name: str, groups: Iterable[QueryPassages]) -> None:
        super().__init__(groups)
        self.name = name


def load_graded(path: str | os.PathLike[str]) -> GradedFile:
    """The whole file; lines of one query are merged wherever they stand, in the order of first appearance.

    Reads gzip (by content) or plain JSON lines, `["q", [passage, …]]` or `["q", passage]`. Where a JSON object names
    a key twice, the later value counts, and no note says so: to look for it would take an eighth more reading time.

    Raises:
        InputError: the file cannot be opened.
        FormatError: naming file, line and field: not JSON, a wrong field, a passage that comes twice, a damaged gzip
            file, no passages at all.
    """
    groups: dict[str, QueryPassages] = {}
    with paused_collector():
        for group in iter_graded(path):
            groups.setdefault(group.query_id, group._replace(passages=[])).passages.extend(group.passages)
    return GradedFile(path_name(path), groups.values())


def iter_graded(path: str | os.PathLike[str], says: bool = True) -> Iterator[QueryPassages]:
    """The lines of a file, one by one, as `load_graded` reads them; a query may come in several.

    Nothing is kept but ids. Who lets go of a line (`del`) before asking for the next one takes a third less time.

    Args:
        path: the file.
        says: whether what is odd is counted in notes.

    Raises:
        InputError, FormatError: as `load_graded`.
    """
    name = path_name(path)
    seen: dict[str, set[str]] = {}
    again = 0
    for line, data in iter_lines(name):
        try:
            query_id, passages = _parsed(data)
            known = seen.setdefault(query_id, set())
            for doc_id in [one.doc_id for one in passages]:
                if doc_id in known:
                    raise FormatError(f"passage {doc_id!r} of query {query_id!r} comes twice; keep one")
                known.add(doc_id)
            again += _check(passages)
        except FormatError as error:
            raise FormatError(error.problem, path=name, line=line, field=error.field) from None
        yield QueryPassages(query_id, passages, line)
        # Who holds on to a line while the next one is read takes a third more time.
        del passages
    if not seen:
        raise FormatError("holds no graded passages", path=name)
    said = "%s: %d grades name an item that their grade set has graded before; the later grade counts"
    warn(said, name, again if says else 0)


def write_graded(path: str | os.PathLike[str], groups: Iterable[QueryPassages]) -> None:
    """Writes records canonically: one line a query, `["q", [passage, …]]`, gzipped when the name ends in `.gz`.

    The file appears only when all is written.

    Raises:
        InputError: a query comes twice, or there is nothing to write.
    """
    seen: set[str] = set()
    with atomic_writer(path) as stream:
        for group in groups:
            if group.query_id in seen:
                raise InputError(f"{path_name(path)}: query {group.query_id!r} comes twice; join its passages first")
            seen.add(group.query_id)
            passages = [msgspec.Raw(passage.raw) for passage in group.passages]
            line = msgspec.json.format(msgspec.json.encode((group.query_id, passages)), indent=-1)
            stream.write(line.decode("utf-8"))
            stream.write("\n")
        if not seen:
            raise InputError(f"{path_name(path)}: no graded passages to write")


def _parsed(data: bytes) -> tuple[str, list[GradedPassage]]:
    """A line as (query id, passages).

    Raises:
        FormatError: not JSON, or a wrong field; names the field.
    """
    try:
        query_id, found = _LINES.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        # Some files call the replies of direct labels `answers`, which are lists of grade sets.
        data = re.sub(rb'"answers"(\s*:\s*")', rb'"answer"\1', data)
        try:
            query_id, found = decoded(_LINES, data, choices=STATUSES)
        except FormatError as error:
            if error.field or (data[:1] == b"[" and "is not JSON" in error.problem):
                raise
            raise FormatError(f'expected ["query id", [passage, …]], as `pool` writes it: {error.problem}') from None
    # Most lines are plain ASCII.
    if not data.isascii():
        check_utf8(data)
    if not query_id:
        raise FormatError("the query id is empty; expected text", field="[0]")
    passages = [found] if isinstance(found, GradedPassage) else found
    note_sources(passages, ((data, "", place) for place in range(len(passages))))
    return query_id, passages


def _check(passages: Iterable[GradedPassage]) -> int:
    """Refuses what no field tells by itself; how many grades are of items that their grade set has graded before.

    Raises:
        FormatError: a ranking or judgment is of another passage, a rating names no item or two or is -1, or what a
            grade set says about its making is none.
    """
    # Most are made by the same prompt for the same items in one order, and nearly none has details.
    items: list[str] = []
    doubles = 0
    prompt, made = msgspec.Raw(), msgspec.Raw()
    for passage in passages:
        told, doc_id = passage.paragraph_data, passage.doc_id
        for name in ("rankings", "judgments") if told is not None else ():
            for number, one in enumerate(getattr(told, name) or ()):
                if one.doc_id != doc_id:
                    problem = f"expected {doc_id!r}, the paragraph_id of the passage it is in; found {one.doc_id!r}"
                    raise FormatError(problem, field=f"paragraph_data.{name}[{number}].paragraphId")
        for name in ("exam_grades", "grades"):
            for number, entry in enumerate(getattr(passage, name) or ()):
                try:
                    if entry.prompt_text != prompt:
                        prompt_in(bytes(entry.prompt_text))
                        prompt = entry.prompt_text
                    if entry.provenance_text != made:
                        object_in(bytes(entry.provenance_text))
                        made = entry.provenance_text
                    if entry.details:
                        confidences_of(entry)
                    if not isinstance(entry, ItemGradeSet):
                        continue
                    named = entry.rated(items)[0] or [*entry.correct_answered, *entry.wrong_answered]
                except FormatError as error:
                    raise FormatError(error.problem, field=f"{name}[{number}].{error.field}".rstrip(".")) from None
                if named is not items:
                    again = len(named) - len(set(named))
                    doubles += again
                    items = [] if again else named
    return doubles
