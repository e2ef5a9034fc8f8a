"""Judged answers as toolkits leave them: nuggetizer's assignments, RAGDoll's graded answers, DRAGUN's assessments.

Graded records stand here as one format among the others.

A line is an answer of a run with the items of its query (nuggets, criteria, short answers), each with a label. Models
write labels and importances that nobody defined, and items twice; what a toolkit's own metrics read is read here.

Sources: Pradeep et al., AutoNuggetizer (TREC 2024 RAG track), nuggetizer 0.0.5; RAGDoll, the toolkit of TREC RAG 2026;
Zhang, Smucker and Clarke, resources of the TREC 2025 DRAGUN track.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from itertools import repeat
from operator import attrgetter
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias

import msgspec
from msgspec import Meta, Struct

from rubric_measures.base.errors import FormatError, InputError, warn
from rubric_measures.base.files import run_of_file
from rubric_measures.formats.banks import (
    BankEntry,
    bank_entries,
    facet_ids,
    known_label,
    refuse_penalties,
    shown_counts,
    written_rows,
)
from rubric_measures.formats.base import Format, Head, PathName, given
from rubric_measures.formats.specs import QUERY_IDS, Field, RecordLines, Row, Spec, ident, text
from rubric_measures.records.models import (
    ItemGradeSet,
    JsonRecord,
    PromptInfo,
    QueryPassages,
    answer_passage,
    load_graded,
    write_graded,
)
from rubric_measures.types.entities import RubricItem, TestBank, make_item_id
from rubric_measures.types.scales import ASSIGNED, CONTRADICTED, Scale

FAILED = "failed"
_LABEL = attrgetter("label")
_NAME = Annotated[str, Meta(min_length=1)] | int


class AssignedNugget(Struct, gc=False, kw_only=True):
    """A nugget, and how well an answer supports it, as nuggetizer writes them; its metrics need no text."""

    text: str = ""
    label: str = msgspec.field(name="assignment")
    importance: str | None = None
    facet: str | None = msgspec.field(name="mapped_sub_narrative", default=None)
    source: str | None = None

    @property
    def odd(self) -> str | None:
        """An importance that is neither vital nor okay."""
        is_known = self.importance is None or known_label(self.importance) in ("vital", "okay")
        return None if is_known else self.importance

    def item(self, query_id: str, facet_id: str | None) -> RubricItem:
        """The item that it is; an importance that nobody defined is none, and kept in `info`."""
        importance: Any = known_label(self.importance) if self.importance is not None and self.odd is None else None
        return RubricItem(
            make_item_id(query_id, self.text, facet_id), query_id, self.text.strip(), "nugget", facet_id,
            importance=importance, info=given({"source": self.source, "importance": self.odd}) or None,
        )  # fmt: skip


class GradedCriterion(Struct, gc=False):
    """A criterion, and how well an answer meets it, as RAGDoll writes them."""

    text: str
    facet: str = msgspec.field(name="type")
    tier: str
    weight: float
    label: str = msgspec.field(name="verdict")
    source_nugget: str | None = None
    odd = None

    def item(self, query_id: str, facet_id: str | None) -> RubricItem:
        """The item that it is."""
        return RubricItem(
            make_item_id(query_id, self.text, facet_id), query_id, self.text.strip(), "nugget", facet_id,
            weight=self.weight, info=given({"tier": self.tier, "source_nugget": self.source_nugget}),
        )  # fmt: skip


class AssessedAnswer(Struct):
    """A short answer of a rubric by its id, and whether a report holds it, as DRAGUN's assessors write it."""

    text: str
    label: str
    facet: str | None
    odd = None

    def item(self, query_id: str, facet_id: str | None) -> RubricItem:
        """The item that it is; only a bank knows its text."""
        return RubricItem(f"{query_id}/{self.text}", query_id, self.text, "nugget", facet_id)


Mark: TypeAlias = AssignedNugget | GradedCriterion | AssessedAnswer


class JudgedAnswer(JsonRecord, frozen=True, kw_only=True):
    """The answer of a run to a query.

    Attributes:
        qid: the query.
        query: its text.
        run_id: the run; some files leave it out and are named after it.
        answer_text: the answer.
        response_length: its length in whitespace words.
    """

    qid: _NAME
    query: str | None = None
    run_id: str | int | None = None
    answer_text: str | None = None
    response_length: float | None = None

    @property
    def is_judged(self) -> bool:
        """Whether its labels count."""
        return True

    @property
    def key(self) -> tuple[str, str]:
        """Run and query."""
        return str(self.run_id), str(self.qid)


class AssignmentLine(JudgedAnswer, frozen=True, kw_only=True):
    """The nuggets of a query, assigned to an answer."""

    nuggets: list[AssignedNugget]

    @property
    def marks(self) -> Sequence[Mark]:
        """The nuggets with their labels."""
        return self.nuggets


class GradedAnswer(JudgedAnswer, frozen=True, kw_only=True):
    """The criteria of a query, graded for an answer; of a task that failed (`status`) no verdict counts."""

    status: str
    run_id: _NAME
    criteria: list[GradedCriterion] | None = None

    @property
    def marks(self) -> Sequence[Mark]:
        """The criteria with their verdicts."""
        return self.criteria or []

    @property
    def is_judged(self) -> bool:
        """Whether the task was completed."""
        return self.status == "completed"

    @property
    def judged(self) -> Sequence[GradedCriterion]:
        """The criteria of a task that was completed; none of another one."""
        return self.criteria or () if self.is_judged else ()


class AssessedReport(NamedTuple):
    """The short answers of a topic, assessed for the report of a run; attributes as those of `JudgedAnswer`."""

    qid: str
    run_id: str
    marks: list[AssessedAnswer]
    query: None = None
    answer_text: None = None
    response_length: None = None
    is_judged: bool = True


AnyJudged: TypeAlias = AssignmentLine | GradedAnswer | AssessedReport


def _named_run(line: AssignmentLine, name: str) -> AssignmentLine:
    """A line with its run: without one, that which the file is named after."""
    if line.run_id is not None and line.run_id != "":
        return line
    # An empty name is a mistake, and no name that was left out.
    run_id = run_of_file(name) if line.run_id is None else ""
    if not run_id:
        raise ValueError("run_id: names no run; say which one it is")
    return line.replacing(run_id=run_id)


def _has(head: Head, listed: str, *names: str) -> bool:
    """Whether the first line has all names, and under `listed` objects that have the last of them."""
    *outer, inner = names
    found = head.object.get(listed)
    objects = found if isinstance(found, list) else []
    return all(name in head.object for name in outer) and any(isinstance(o, dict) and inner in o for o in objects)


def _is_records(head: Head) -> bool:
    """Each line is a list: the query and its passages."""
    return isinstance(head.value, list) and not (head.value and isinstance(head.value[0], dict))


RECORDS = Format(
    "records", "graded passages of the Rubric workbench (.jsonl.gz)", load_graded, write_graded, _is_records
)
ASSIGNMENTS = RecordLines(
    kind="assignments", description="nuggetizer's assigned nuggets", what="assignments", type=AssignmentLine,
    key=attrgetter("key"), named=_named_run, recognise=lambda head: _has(head, "nuggets", "assignment"),
)  # fmt: skip
GRADED = RecordLines(
    kind="graded answers", description="answers graded by rubrics of RAGDoll", what="graded answers",
    type=GradedAnswer, key=attrgetter("key"), twice="last wins",
    recognise=lambda head: {"criteria", "qid", "run_id", "status"} <= head.object.keys(),
)  # fmt: skip


def _reports(rows: Iterable[Row]) -> list[AssessedReport]:
    found: dict[tuple[str, str], AssessedReport] = {}
    for row in rows:
        query_id, run_id, answer_id, label, facet = (row.said[name] for name in _OF_ASSESSMENT)
        report = found.setdefault((query_id, run_id), AssessedReport(query_id, run_id, []))
        report.marks.append(AssessedAnswer(answer_id, label, facet))
    return list(found.values())


_OF_ASSESSMENT = ("query_id", "run_id", "answer_id", "label", "question_id")
ASSESSMENTS = Spec(
    kind="assessments", description="assessments of DRAGUN's reports: a short answer a row", what="assessments",
    fields=(
        Field("query_id", ("topic_id", *QUERY_IDS), ident), Field("run_id", ("run_tag", "run_id"), ident),
        Field("answer_id", ("answer_id",), ident),
        Field("label", ("auto_assessment", "assessment", "annotation"), text),
        Field("question_id", ("question_id",), ident, None),
        Field("", ("team", "auto_rationale", "reasoning"), default=None),
    ),
    key=("query_id", "run_id", "answer_id"), into=_reports, outof=lambda reports: (),
    told=("run_tag", "answer_id"),
)  # fmt: skip


# Only read: nobody else writes them, and rationales are left behind.
ASSESSED_REPORTS = ASSESSMENTS.format._replace(write=None)


class _ShortAnswer(Struct):
    answer_id: str
    answer_text: str = ""
    text: str = ""


class _RubricQuestion(Struct):
    question_id: str
    importance: Literal["A: Have to Know", "B: Good to Know", "C: Nice to Know"]
    short_answers: list[_ShortAnswer]
    question_text: str = ""


class AssessedRubric(JsonRecord, frozen=True, kw_only=True):
    """The questions of a topic with their short answers, as DRAGUN's assessors wrote them."""

    topic_id: str
    rubrics: list[_RubricQuestion]


# What a question weighs, in the scorer of the track.
_WORTH: Mapping[str, float] = {"A: Have to Know": 4, "B: Good to Know": 2, "C: Nice to Know": 1}
_RUBRICS = RecordLines(
    kind="bank", description="rubrics of DRAGUN, a topic a line or a file", what="rubrics", type=AssessedRubric,
    key=lambda rubric: (rubric.topic_id,), choices=tuple(_WORTH),
    recognise=lambda head: _has(head, "rubrics", "topic_id", "short_answers"),
)  # fmt: skip


def read_assessed_rubrics(path: PathName) -> list[BankEntry]:
    """The bank that rubrics of DRAGUN are: an item a short answer, a facet a question.

    The weight of a question (4, 2 or 1) is divided among its answers: so `WeightedCover` is the supportive score, Σ
    over questions of weight · mean over their answers of (1, ½, 0) / Σ of weights.

    Raises:
        InputError: the file cannot be opened.
        FormatError: naming file, line and field; also when a topic comes twice.
    """
    items: dict[str, tuple[RubricItem, ...]] = {}
    facets: dict[tuple[str, str], str] = {}
    for topic in _RUBRICS.read(path):
        members: list[RubricItem] = []
        for asked in topic.rubrics:
            facets[topic.topic_id, asked.question_id] = asked.question_text
            for one in asked.short_answers:
                said = one.answer_text or one.text or one.answer_id
                share = _WORTH[asked.importance] / len(asked.short_answers)
                item_id = f"{topic.topic_id}/{one.answer_id}"
                members.append(RubricItem(item_id, topic.topic_id, said, "nugget", asked.question_id, weight=share))
        items[topic.topic_id] = tuple(members)
    return bank_entries(TestBank(items, {}, {key: said for key, said in facets.items() if said}))


ASSESSED_RUBRICS = _RUBRICS.format._replace(read=read_assessed_rubrics, write=None)


class Toolkit(NamedTuple):
    """What the labels of a toolkit mean.

    Attributes:
        name: the toolkit, as grade sets name it.
        prompt_class: how grade sets say that they are of it.
        grades: label -> grade; every other label is a grade that failed.
        scale: of the grades.
        items: what it calls its items, for notes.
        is_whole: whether an answer is asked about all items of its query: then what it says nothing of failed.
        alike: what tells two items apart.
    """

    name: str
    prompt_class: str
    grades: Mapping[str, int]
    scale: Scale
    items: str
    is_whole: bool
    alike: Callable[[Any], tuple[Any, ...]]


NUGGETIZER = Toolkit(
    "nuggetizer", "nuggets.assign", {"not_support": 0, "partial_support": 1, "support": 2}, ASSIGNED, "nuggets", False,
    attrgetter("text", "importance", "facet"),
)  # fmt: skip
RAGDOLL = Toolkit(
    "ragdoll", "criteria.verdicts", {"not_satisfied": 0, "partially_satisfied": 1, "satisfied": 2}, ASSIGNED,
    "criteria", True, attrgetter("text", "facet", "weight", "tier", "source_nugget"),
)  # fmt: skip
DRAGUN = Toolkit(
    "dragun", "dragun.assess", {"none": 0, "partial": 1, "supports": 2, "contradicts": CONTRADICTED},
    Scale(CONTRADICTED, 2, 2, 1), "short answers", False, attrgetter("text", "facet"),
)  # fmt: skip
_KINDS: Mapping[type, Toolkit] = {AssignmentLine: NUGGETIZER, GradedAnswer: RAGDOLL, AssessedReport: DRAGUN}


def toolkit_of(lines: Sequence[AnyJudged]) -> Toolkit:
    """The toolkit that lines are of."""
    return _KINDS[type(lines[0])]


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

    def code(self, label: str) -> str:
        """A label that is known: as it is written today, or `failed`, which is counted where nobody defined it."""
        known: str = known_label(label)
        if known not in self.toolkit.grades and known != FAILED:
            self.labels[label] += 1
            return FAILED
        return known

    def say(self, name: PathName = "") -> None:
        """The one note.

        Args:
            name: the file.
        """
        items, said = self.toolkit.items, []
        if self.labels:
            said.append(
                f"{self.labels.total()} labels that nobody defined ({shown_counts(self.labels)}) are failed grades"
            )
        if self.importances:
            count = self.importances.total()
            said.append(f"{count} importances other than vital and okay ({shown_counts(self.importances)}) are none")
        if self.doubles:
            said.append(f"{self.doubles} {items} come twice for one answer, of which the first counts")
        if said:
            warn(f"{name}: %s" if name else "%s", "; ".join(said))


def judged(lines: Iterable[tuple[int, AnyJudged]], notes: Oddities, name: str = "") -> Iterator[Judged]:
    """What answers say of the items of their queries, one after the other; lines of a query share their `ItemSet`.

    Args:
        lines: the lines with their numbers.
        notes: where odd importances and doubles are counted.
        name: the file, for errors.

    Raises:
        FormatError: an item has no text.
    """
    # Of each query the items of its last line; most lines have those of the one before, but for the labels.
    last: dict[str, tuple[list[Any], ItemSet]] = {}
    sets: dict[tuple[Any, ...], ItemSet] = {}
    for number, line in lines:
        marks, query_id = line.marks, str(line.qid)
        before, found = last.get(query_id, ((), None))
        labels = list(map(_LABEL, marks))
        # The fastest way to set many.
        any(map(setattr, before, repeat("label"), labels))
        if found is None or before != marks:
            key = (query_id, *map(notes.toolkit.alike, marks))
            found = sets.get(key) or sets.setdefault(key, _item_set(query_id, marks, notes.toolkit, name, number))
            last[query_id] = [copy(one) for one in marks], found
        if found.odd:
            notes.importances.update(found.odd)
        if not line.is_judged:
            labels = []
        elif found.places is not None:
            notes.doubles += len(marks) - len(found.places)
            labels = [labels[place] for place in found.places]
        shown = line.answer_text if line.answer_text is not None else int(line.response_length or 0)
        yield Judged(query_id, str(line.run_id), found, labels, shown, number)


def _item_set(query_id: str, marks: Sequence[Mark], toolkit: Toolkit, name: str, line: int) -> ItemSet:
    facets = facet_ids(one.facet for one in marks)
    unique: dict[str, tuple[int, RubricItem]] = {}
    for place, one in enumerate(marks):
        if not one.text.strip():
            raise FormatError("has no text", path=name, line=line, field=f"{toolkit.items}[{place}].text")
        item = one.item(query_id, facets.get((one.facet or "").strip()))
        unique.setdefault(item.item_id, (place, item))
    places = tuple(place for place, _ in unique.values())
    return ItemSet(
        tuple(item for _, item in unique.values()),
        None if len(places) == len(marks) else places,
        Counter(one.odd for one in marks if one.odd is not None),
        {(query_id, facet_id): said for said, facet_id in facets.items()},
    )


def bank_of_judged(lines: Sequence[AnyJudged]) -> TestBank:
    """The items of judged answers as a bank: of each query those of any of its answers, once.

    Raises:
        InputError: an item has two importances or weights.
    """
    notes = Oddities(toolkit_of(lines))
    items: dict[str, dict[str, RubricItem]] = {}
    facets: dict[tuple[str, str], str] = {}
    seen = set[ItemSet]()
    for one in judged(enumerate(lines), notes):
        known = items.setdefault(one.query_id, {})
        if one.items not in seen:
            seen.add(one.items)
            facets |= one.items.facet_texts
            for item in one.items.items:
                same_item(known.setdefault(item.item_id, item), item)
    notes.say()
    texts = {str(line.qid): line.query for line in reversed(lines) if line.query is not None}
    return TestBank({query_id: tuple(known.values()) for query_id, known in items.items()}, texts, facets)


def same_item(earlier: RubricItem, item: RubricItem) -> None:
    """Refuses an item of two answers that say other things of it.

    Raises:
        InputError: they do.
    """
    if earlier != item:
        what = "weights" if earlier.weight != item.weight else "importances"
        two = [earlier.weight, item.weight] if what == "weights" else [earlier.importance, item.importance]
        raise InputError(
            f"{item.text[:60]!r} of query {item.query_id!r} has two {what} ({two[0]} and {two[1]}) in two answers; "
            "keep one, or name the bank that counts",
            settings=("bank",),
        )


def records_of_judged(lines: Sequence[AnyJudged]) -> list[QueryPassages]:
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
        known = {item_id: notes.code(label) for item_id, label in said.items()}
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


Grades: TypeAlias = Mapping[tuple[str, str], Mapping[str, float | None]]
"""(query_id, doc_id) -> item id -> grade; None where it failed."""


def _labelled(
    toolkit: Toolkit, bank: TestBank, grades: Grades, answers: Mapping[tuple[str, str], str],
    runs: Mapping[tuple[str, str], str],
) -> Iterator[tuple[dict[str, Any], list[tuple[RubricItem, str]]]]:  # fmt: skip
    """What lines say of each answer, and its items in the order of the bank with their labels.

    An answer without any grade has no items, as long as other answers have those of its query: so it scores the same.
    Where a toolkit asks about all items, they failed.
    """
    label_of: dict[float, str] = {grade: label for label, grade in toolkit.grades.items()}
    asked = {query_id for query_id, _ in grades}
    failed = 0
    for (query_id, run_id), doc_id in runs.items():
        given = grades.get((query_id, doc_id), {})
        items = bank.for_query(query_id) if given or toolkit.is_whole or query_id not in asked else ()
        said = []
        for item in items:
            grade = given.get(item.item_id)
            if grade is not None and grade not in label_of:
                where = f"query {query_id!r}, document {doc_id!r}, item {item.item_id!r}"
                raise InputError(f"{where}: grade {grade:g} has no label; expected 0, 1 or 2")
            said.append((item, FAILED if grade is None else label_of[grade]))
        failed += sum(label == FAILED for _, label in said)
        shown = answers.get((query_id, doc_id), "")
        yield {"qid": query_id, "run_id": run_id, "answer_text": shown, "response_length": len(shown.split())}, said
    warn("%d %s have no grade and were written as failed", failed, toolkit.items)


def _info(item: RubricItem, name: str) -> Any:
    """A text that the info of an item holds."""
    found = item.info.get(name) if isinstance(item.info, dict) else None
    return found if isinstance(found, str) else None


def _facet_text(bank: TestBank, item: RubricItem) -> str | None:
    """The text of an item's facet, or else its id."""
    return None if item.facet_id is None else bank.facet_texts.get((item.query_id, item.facet_id), item.facet_id)


def assignments_of_grades(
    bank: TestBank, grades: Grades, answers: Mapping[tuple[str, str], str], runs: Mapping[tuple[str, str], str]
) -> list[AssignmentLine]:
    """The lines that write grades of answers as assignments, with all that nuggetizer's metrics read.

    An importance that nobody defined is written as it was, and `failed` where the bank has none.

    Args:
        bank: the nuggets.
        grades: grades 0 to 2; what has none is written as `failed` (counted).
        answers: (query_id, doc_id) -> text of the answer.
        runs: (query_id, run_id) -> doc_id of the run's answer.

    Raises:
        InputError: a grade is not 0, 1 or 2; an item is a penalty: as a nugget it would count for an answer.
    """
    refuse_penalties(bank)
    lines = []
    for fields, labels in _labelled(NUGGETIZER, bank, grades, answers, runs):
        nuggets: Any = [
            given({
                "text": item.text, "importance": item.importance or _info(item, "importance") or FAILED,
                "mapped_sub_narrative": _facet_text(bank, item), "source": _info(item, "source"), "assignment": label,
            }) for item, label in labels
        ]  # fmt: skip
        query = given({"query": bank.query_texts.get(fields["qid"])})
        lines.append(AssignmentLine(**query, **fields, nuggets=nuggets))
    return lines


def graded_of_grades(
    bank: TestBank, grades: Grades, answers: Mapping[tuple[str, str], str], runs: Mapping[tuple[str, str], str]
) -> list[GradedAnswer]:
    """The lines that write grades as RAGDoll's graded answers; arguments as those of `assignments_of_grades`.

    Raises:
        InputError: a grade is not 0, 1 or 2, or RAGDoll's rubrics cannot hold the bank.
    """
    rows = {row["qid"]: row["criteria"] for row in written_rows(bank, "ragdoll:rubric")}
    pairs = [pair for query_id in rows for pair in zip(bank.items[query_id], rows[query_id], strict=True)]
    criteria = {(item.query_id, item.item_id): one for item, one in pairs}
    lines = []
    for fields, labels in _labelled(RAGDOLL, bank, grades, answers, runs):
        query_id = fields["qid"]
        task: dict[str, Any] = {"task_id": f"{fields['run_id']}:{query_id}", "status": "completed"}
        task["criteria"] = [{**criteria[item.query_id, item.item_id], "verdict": label} for item, label in labels]
        lines.append(GradedAnswer(query=bank.query_texts.get(query_id, ""), **fields, **task))
    return lines
