"""Judged answers as toolkits leave them: nuggetizer's assignments, RAGDoll's graded answers, DRAGUN's assessments.

A line is an answer of a run with the items of its query (nuggets, criteria, short answers), each with a label. Models
write labels and importances that nobody defined, and items twice; what a toolkit's own metrics read is read here.
Graded records, and the requests that nuggets are made from, stand here as formats among the others.

Sources: Pradeep et al., AutoNuggetizer (TREC 2024 RAG track), nuggetizer 0.0.5; RAGDoll, the toolkit of TREC RAG 2026;
Zhang, Smucker and Clarke, resources of the TREC 2025 DRAGUN track.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from itertools import repeat
from operator import attrgetter, itemgetter
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import Meta, Struct

from rubric_measures.base.errors import FormatError, InputError, UnknownNameError, warn
from rubric_measures.base.files import path_name, run_of_file
from rubric_measures.formats.banks import (
    items_of,
    known_label,
    shown_counts,
    written_rows,
)
from rubric_measures.formats.base import Format, Head, PathName
from rubric_measures.formats.grade_tables import GradeRow
from rubric_measures.formats.specs import NAMES, RecordLines, Row, Spec, spec, table
from rubric_measures.records.models import (
    GradedPassage,
    ItemGradeSet,
    JsonRecord,
    PromptInfo,
    QueryPassages,
    answer_passage,
    load_graded,
    write_graded,
)
from rubric_measures.types.entities import RubricItem, TestBank
from rubric_measures.types.scales import ASSIGNED, Scale

FAILED = "failed"
_LABEL = attrgetter("label")
_Name = Annotated[str, Meta(min_length=1)] | int


class AssignedNugget(Struct, gc=False, kw_only=True):
    """A nugget, and how well an answer supports it, as nuggetizer writes them; its metrics need no text."""

    text: str = ""
    importance: str | None = None
    facet_text: str | None = msgspec.field(name="mapped_sub_narrative", default=None)
    source: str | None = None
    label: str = msgspec.field(name="assignment")


class GradedCriterion(Struct, gc=False, kw_only=True):
    """A criterion, and how well an answer meets it, as RAGDoll writes them."""

    text: str
    facet_text: str = msgspec.field(name="type")
    tier: str
    weight: float
    source_nugget: str | None = None
    label: str = msgspec.field(name="verdict")


class AssessedAnswer(Struct):
    """A short answer of a rubric, and whether a report holds it, as DRAGUN's assessors write it; banks have texts."""

    text: str
    label: str
    item_id: str


class JudgedAnswer(JsonRecord, frozen=True, kw_only=True):
    """The answer of a run to a query.

    Attributes:
        qid: the query.
        query: its text.
        run_id: the run; some files leave it out and are named after it.
        answer_text: the answer.
        response_length: its length in whitespace words.
        status: `completed`, or what became of the task: then no label counts.
        marks: the items of the query with their labels.
    """

    qid: _Name
    query: str | None = None
    run_id: str | int | None = None
    answer_text: str | None = None
    response_length: float | None = None
    status: str = "completed"
    marks: Any = ()

    @property
    def key(self) -> tuple[str, str]:
        """Run and query."""
        return str(self.run_id), str(self.qid)


class AssignmentLine(JudgedAnswer, frozen=True, kw_only=True):
    """The nuggets of a query, assigned to an answer."""

    marks: list[AssignedNugget] = msgspec.field(name="nuggets")


class GradedAnswer(JudgedAnswer, frozen=True, kw_only=True):
    """The criteria of a query, graded for an answer."""

    run_id: _Name
    status: str
    marks: list[GradedCriterion] | None = msgspec.field(name="criteria", default=None)


class AssessedReport(JudgedAnswer, frozen=True, kw_only=True):
    """The short answers of a topic, assessed for the report of a run."""

    marks: list[AssessedAnswer]


def _named_run(line: AssignmentLine, name: str) -> AssignmentLine:
    """A line with its run: without one, that which the file is named after."""
    if line.run_id is not None and line.run_id != "":
        return line
    # An empty name is a mistake, and no name that was left out.
    run_id = run_of_file(name) if line.run_id is None else ""
    if not run_id:
        raise ValueError("run_id: names no run; say which one it is")
    return line.replacing(run_id=run_id)


def _is_records(head: Head) -> bool:
    """Each line is a list: the query and its passages."""
    return isinstance(head.value, list) and not head.object


RECORDS = Format(**table("records"), read=load_graded, write=write_graded, recognise=_is_records)
ASSIGNMENTS = RecordLines(**table("assignments"), type=AssignmentLine, key=attrgetter("key"), named=_named_run)
GRADED = RecordLines(**table("ragdoll:graded"), type=GradedAnswer, key=attrgetter("key"))


def _reports(rows: Iterable[Row]) -> list[AssessedReport]:
    rows = list(rows)
    lost = sum(bool((row.said["reason"] or "").strip()) for row in rows)
    warn("rationales of %d assessments left out: only the labels are kept", lost)
    found: dict[tuple[str, str], list[AssessedAnswer]] = {}
    for _, said, *_ in rows:
        query_id, run_id, text, label, _ = said.values()
        found.setdefault((query_id, run_id), []).append(AssessedAnswer(text, label, f"{query_id}/{text}"))
    return [AssessedReport(qid=query_id, run_id=run_id, marks=marks) for (query_id, run_id), marks in found.items()]


# Only read: nobody else writes them, and rationales are left behind (counted).
ASSESSMENTS: Spec[list[AssessedReport]] = spec("dragun:assessments", into=_reports)


def _compared(rows: Iterable[Row]) -> list[GradeRow]:
    """Questions as they are called where runs of them are pooled, graded by the questions of their topic."""
    return [
        GradeRow(
            said["query_id"], f"{said['run_id']}/{said['query_id']}/{said['rank']}", said["run_id"], said["rank"],
            f"{said['query_id']}/{said['number']}", None, said["grade"], "graded", "", None, said["reason"],
        )
        for _, said, *_ in rows
    ]  # fmt: skip


QUESTION_ASSESSMENTS = spec("dragun:question-assessments", into=_compared)


class Toolkit(NamedTuple):
    """What the labels of a toolkit mean.

    Attributes:
        name: the toolkit, as grade sets name it.
        prompt_class: how grade sets say that they are of it.
        grades: label -> grade; every other label is a grade that failed.
        scale: of the grades.
        type: its lines.
        items: what it calls its items; where its lines list them.
        form: the format of banks that has such items; empty where they are ids alone.
        fields: what its items say but for the label, by our names.
        is_whole: whether an answer is asked about all items of its query: then what it says nothing of failed.
    """

    name: str
    prompt_class: str
    grades: Mapping[str, int]
    scale: Scale
    type: Any
    items: str
    form: str
    fields: tuple[str, ...]
    is_whole: bool = False


_LINES = {"nuggetizer": AssignmentLine, "ragdoll": GradedAnswer, "dragun": AssessedReport}
_SAID = {name: {**table(f"toolkit {name}"), "name": name, "type": lines} for name, lines in _LINES.items()}
# Without a scale of its own, a toolkit has that of assigned nuggets.
NUGGETIZER, RAGDOLL, DRAGUN = (
    Toolkit(**{**said, "scale": Scale(*said["scale"]) if "scale" in said else ASSIGNED}) for said in _SAID.values()
)


def toolkit_of(lines: Sequence[JudgedAnswer]) -> Toolkit:
    """The toolkit that lines are of.

    Raises:
        InputError: there are none.
    """
    if not lines:
        raise InputError("there are no judged answers")
    return next(one for one in (NUGGETIZER, RAGDOLL, DRAGUN) if isinstance(lines[0], one.type))


class ItemSet(Struct, frozen=True, eq=False):
    """Items that stand together; each set is itself alone, so that much can be kept by it.

    Attributes:
        items: the items, each once.
        places: their places among the labels; None where no item comes twice.
        odd: the importances that are none, with their counts.
        facet_texts: (query, facet) -> text.
    """

    items: tuple[RubricItem, ...]
    places: tuple[int, ...] | None
    odd: Mapping[str, int]
    facet_texts: Mapping[tuple[str, str], str]


class Judged(NamedTuple):
    """An answer, and what was said of the items of its query.

    Attributes:
        query_id: the query.
        run_id: the run.
        items: what was asked about.
        labels: the label of each item, as it was written; empty where the task failed.
        text: the answer; its length in whitespace words, as the file says it, where it lacks the text.
        line: where it stands in the file.
    """

    query_id: str
    run_id: str
    items: ItemSet
    labels: Sequence[str]
    text: str | int
    line: int


@dataclass
class Oddities:
    """What is odd in judged answers: said in one note."""

    toolkit: Toolkit
    labels: Counter[str] = field(default_factory=Counter)
    importances: Counter[str] = field(default_factory=Counter)
    doubles: int = 0

    def known(self, label: str) -> str:
        """A label as it is written today, or `failed`, which is counted where nobody defined it."""
        known: str = known_label(label)
        if known in self.toolkit.grades or known == FAILED:
            return known
        self.labels[label] += 1
        return FAILED

    def say(self, name: PathName = "") -> None:
        """The one note.

        Args:
            name: the file.
        """
        counts = (
            (self.labels, "labels that nobody defined (%s) count as failed"),
            (self.importances, "importances other than vital and okay (%s) are none"),
        )
        said = [f"{counted.total()} {what}" % shown_counts(counted) for counted, what in counts if counted]
        if self.doubles:
            said.append(f"{self.doubles} {self.toolkit.items} come twice for one answer, of which the first counts")
        if said:
            warn("%s%s", f"{path_name(name)}: " if name else "", "; ".join(said))


def judged(lines: Iterable[tuple[int, JudgedAnswer]], notes: Oddities, name: str = "") -> Iterator[Judged]:
    """What answers say of the items of their queries, one after the other; lines of a query share their `ItemSet`.

    Args:
        lines: the lines with their numbers.
        notes: where odd importances and doubles are counted.
        name: the file, for errors.

    Raises:
        FormatError: an item has no text.
    """
    # Of each query the items of a line; most lines have those of the one before, but for the labels.
    last: dict[str, tuple[Sequence[Any], ItemSet]] = {}
    sets: dict[tuple[Any, ...], ItemSet] = {}
    said_of = attrgetter(*notes.toolkit.fields)
    for number, line in lines:
        query_id, marks = str(line.qid), line.marks or ()
        labels = list(map(_LABEL, marks))
        before, found = last.get(query_id, ((), None))
        # The fastest way to set many, and to compare all but the labels.
        any(map(setattr, before, repeat("label"), labels))
        if found is None or before != marks:
            said = list(map(said_of, marks))
            found = sets.get(key := (query_id, *said))
            if found is None:
                found = sets[key] = _item_set(query_id, said, notes.toolkit, name, number)
            last[query_id] = list(map(copy, marks)), found
        if found.odd:
            notes.importances.update(found.odd)
        if line.status != "completed":
            labels = []
        if found.places is not None and labels:
            notes.doubles += len(labels) - len(found.places)
            labels = [labels[place] for place in found.places]
        shown = line.answer_text if line.answer_text is not None else int(line.response_length or 0)
        yield Judged(query_id, str(line.run_id), found, labels, shown, number)


def _item_set(query_id: str, said: Sequence[Sequence[Any]], toolkit: Toolkit, name: str, line: int) -> ItemSet:
    rows = [(dict(zip(toolkit.fields, one, strict=True)), dict[str, Any]()) for one in said]
    for place, (one, _) in enumerate(rows):
        if not one["text"].strip():
            raise FormatError("has no text", path=name, line=line, field=f"{toolkit.items}[{place}].text")
    made, facets, odd = items_of(toolkit.form, query_id, rows, "nugget")
    # The first of each id.
    unique = {item.item_id: (place, item) for place, item in reversed(list(enumerate(made)))}
    places, found = zip(*sorted(unique.values(), key=itemgetter(0)), strict=True) if unique else ((), ())
    facet_texts = {(query_id, facet_id): text for facet_id, text in facets.items()}
    return ItemSet(found, None if len(places) == len(said) else places, odd, facet_texts)


def bank_of_judged(lines: Sequence[JudgedAnswer]) -> TestBank:
    """The items of judged answers as a bank: of each query those of any of its answers, once.

    Raises:
        InputError: an item has two importances or weights.
    """
    notes = Oddities(toolkit_of(lines))
    items: dict[str, dict[str, RubricItem]] = {}
    facets: dict[tuple[str, str], str] = {}
    for query_id, found in dict.fromkeys((one.query_id, one.items) for one in judged(enumerate(lines), notes)):
        known = items.setdefault(query_id, {})
        facets |= found.facet_texts
        for item in found.items:
            same_item(known.setdefault(item.item_id, item), item)
    notes.say()
    texts = {str(line.qid): line.query for line in reversed(lines) if line.query is not None}
    return TestBank({query_id: tuple(known.values()) for query_id, known in items.items()}, texts, facets)


def same_item(earlier: RubricItem, item: RubricItem) -> None:
    """Refuses an item of two answers that say other things of it.

    Raises:
        InputError: they do.
    """
    if earlier is not item and earlier != item:
        what = "weights" if earlier.weight != item.weight else "importances"
        two = [earlier.weight, item.weight] if what == "weights" else [earlier.importance, item.importance]
        raise InputError(
            f"{item.text[:60]!r} of query {item.query_id!r} has two {what} ({two[0]} and {two[1]}) in two answers; "
            "keep one, or name the bank that counts",
            settings=("bank",),
        )


def records_of_judged(lines: Sequence[JudgedAnswer]) -> list[QueryPassages]:
    """Graded records: one passage for each run's answer, ranked first by its run; labels that failed are failed grades.

    Their grade sets have a prompt class of the toolkit, so that measures and leaderboards read them like grades that
    were made here. Where an answer is asked about all items of its query, those that it says nothing of failed.
    """
    toolkit = toolkit_of(lines)
    notes = Oddities(toolkit)
    rows = list(judged(enumerate(lines), notes))
    asked: dict[str, dict[str, str]] = {}
    for query_id, item_set in dict.fromkeys((row.query_id, row.items) for row in rows if toolkit.is_whole):
        asked.setdefault(query_id, {}).update(dict.fromkeys((item.item_id for item in item_set.items), FAILED))
    info = PromptInfo(prompt_class=toolkit.prompt_class, **toolkit.scale.as_json())
    groups: dict[str, QueryPassages] = {}
    for row in rows:
        ids = (one.item_id for one in row.items.items)
        said = {**asked.get(row.query_id, {}), **dict(zip(ids, row.labels, strict=False))}
        known = {item_id: notes.known(label) for item_id, label in said.items()}
        entry = ItemGradeSet.build(
            {item_id: toolkit.grades[label] for item_id, label in known.items() if label != FAILED},
            answers=list(said.items()), llm=toolkit.name, kind="nugget", prompt_info=info,
            item_status={item_id: "failed" for item_id, label in known.items() if label == FAILED},
        )  # fmt: skip
        text = row.text if isinstance(row.text, str) else ""
        passage = answer_passage(row.query_id, row.run_id, text, exam_grades=[entry])
        groups.setdefault(row.query_id, QueryPassages(row.query_id, [])).passages.append(passage)
    notes.say()
    return list(groups.values())


def lines_of_grades(
    bank: TestBank,
    grades: Mapping[tuple[str, str], Mapping[str, float | None]],
    answers: Mapping[tuple[str, str], str],
    runs: Mapping[tuple[str, str], str],
) -> list[AssignmentLine]:
    """The lines that write grades of answers as nuggetizer does, with all that its metrics read.

    An answer without any grade has no items, as long as other answers have those of its query: so it scores the same.

    Args:
        bank: the items.
        grades: (query_id, doc_id) -> item id -> grade 0 to 2; what has none is written as `failed` (counted).
        answers: (query_id, doc_id) -> text of the answer.
        runs: (query_id, run_id) -> doc_id of the run's answer.

    Raises:
        InputError: a grade is not 0, 1 or 2, or such lines cannot hold the bank.
    """
    label_of: dict[float | None, str] = {None: FAILED, **{one: label for label, one in NUGGETIZER.grades.items()}}
    rows = {row["qid"]: row for row in written_rows(bank, "nuggets")}
    asked = {query_id for query_id, _ in grades}
    made, failed = [], 0
    for (query_id, run_id), doc_id in runs.items():
        of_answer = grades.get((query_id, doc_id), {})
        marks = []
        for item, mark in zip(bank.for_query(query_id), rows[query_id]["nuggets"], strict=True):
            grade = of_answer.get(item.item_id)
            if grade not in label_of:
                where = f"query {query_id!r}, document {doc_id!r}, item {item.item_id!r}"
                raise InputError(f"{where}: grade {grade:g} has no label; expected 0, 1 or 2")
            # The program asks each nugget for an importance, and writes `failed` where there is none.
            marks.append({"importance": FAILED, **mark, "assignment": label_of[grade]})
        marks = marks if of_answer or query_id not in asked else []
        failed += sum(mark["assignment"] == FAILED for mark in marks)
        shown = answers.get((query_id, doc_id), "")
        said: Any = {"run_id": run_id, "answer_text": shown, "response_length": len(shown.split()), "nuggets": marks}
        made.append(AssignmentLine(**{**rows[query_id], **said}))
    warn("%d nuggets have no grade and were written as failed", failed)
    return made


class RequestQuery(Struct):
    """The query of a request."""

    qid: str | int
    text: str


class Candidate(Struct):
    """One document to make nuggets from: a segment of MS MARCO v2.1, or what RankLLM's retrieval has of others."""

    doc: dict[str, Any]
    docid: str | int = ""
    score: float | None = None

    def __post_init__(self) -> None:
        if self.text is None:
            raise ValueError(f"expected a text in {', '.join(NAMES['text'])}")

    @property
    def text(self) -> str | None:
        """Its text; every candidate has one."""
        return next((said for name in NAMES["text"] if isinstance(said := self.doc.get(name), str)), None)


class RequestLine(JsonRecord, frozen=True, kw_only=True):
    """A query and the documents to make its nuggets from; either may be plain text."""

    query: RequestQuery | str
    candidates: list[Candidate | str]

    @property
    def query_id(self) -> str | None:
        """The query, where it has an id."""
        return None if isinstance(self.query, str) else str(self.query.qid)

    @property
    def documents(self) -> list[tuple[str, str]]:
        """Id, which may be empty, and text of each candidate."""
        return [("", one) if isinstance(one, str) else (str(one.docid), one.text or "") for one in self.candidates]


REQUESTS = RecordLines(**table("requests"), type=RequestLine)


def passages_of_requests(lines: Iterable[RequestLine], query_ids: Mapping[str, str]) -> list[QueryPassages]:
    """The candidates of requests as ungraded passages, in their order; those without an id are named by their place.

    Args:
        lines: requests.
        query_ids: text -> query id, for requests that give only the text of their query.

    Raises:
        UnknownNameError: the text of a query is not among them.
    """
    groups = []
    for line in lines:
        query_id = query_ids.get(line.query) if isinstance(line.query, str) else line.query_id
        if query_id is None:
            raise UnknownNameError("query text", str(line.query), query_ids)
        passages = [
            GradedPassage(doc_id=doc_id or f"candidate {place}", text=said)
            for place, (doc_id, said) in enumerate(line.documents, 1)
        ]
        groups.append(QueryPassages(query_id, passages))
    return groups
