"""Grades as others leave them: tables, a row a grade; answers judged by nuggetizer, RAGDoll, DRAGUN's assessors.

A table has grades of items and labels of passages; it is read, written, as records and as runs.

A line is an answer of a run with the items of its query (nuggets, criteria, short answers), each with a label. Models
write labels and importances that nobody defined, and items twice; what a toolkit's own metrics read is read here.
Graded records stand here as a format among the others.

Sources: Pradeep et al., AutoNuggetizer (TREC 2024 RAG track), nuggetizer 0.0.5; RAGDoll, the toolkit of TREC RAG 2026;
Zhang, Smucker and Clarke, resources of the TREC 2025 DRAGUN track.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from itertools import repeat
from operator import attrgetter, itemgetter
from types import SimpleNamespace
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import Meta, Struct

from rubric_measures.base.errors import FormatError, InputError, warn
from rubric_measures.base.files import begins_records, path_name, peek_head, run_of_file
from rubric_measures.formats.base import Format, Head, PathName, given, head_of, plain_name
from rubric_measures.formats.specs import RUN_IDS, RecordLines, Row, Spec, columns_in, spec, table
from rubric_measures.records.models import (
    DirectGrade,
    GradedFile,
    GradedPassage,
    ItemGradeSet,
    JsonRecord,
    PassageData,
    PromptInfo,
    QueryPassages,
    RankingEntry,
    answer_passage,
    load_graded,
    write_graded,
)
from rubric_measures.types.entities import Grade, GradeStatus, ItemKind, Ranking, RubricItem, Run, TestBank, by_rank
from rubric_measures.types.scales import ASSIGNED, HELD, Scale

# What stands in the place of an item where a whole passage was labelled.
WHOLE = "0"
# What of a `Grader` chooses one here.
OF_TABLES = ("model", "prompt")


class GradeRow(NamedTuple):
    """One grade of one document; a document that several runs rank has its grades once a run.

    Attributes:
        query_id: the query.
        doc_id: the passage or answer.
        run_id: a run that ranks it; None where none does.
        rank: there, from 1; None likewise.
        item_id: the item; `0` for labels of whole passages.
        text: the item's text, where a bank is given.
        grade: None where it failed.
        status: `graded`, `truncated`, `unparsed`, `refused` or `failed`.
        grader: the model, or `human:NAME`; empty where nobody says.
        prompt_class: the prompt.
        reason: why, where the grader said it.
    """

    query_id: str
    doc_id: str
    run_id: str | None
    rank: int | None
    item_id: str
    text: str | None
    grade: float | None
    status: GradeStatus
    grader: str
    prompt_class: str | None
    reason: str | None


def _wrong(said: Mapping[str, Any]) -> str | None:
    if said["rank"] is not None and said["run_id"] is None:
        return "a rank has no run_id; name the run, or score with run files"
    if said["status"] is not None and (said["grade"] is None) != (said["status"] not in ("graded", "truncated")):
        return None if said["status"] == "truncated" else f"grade {said['grade']} and status {said['status']}; keep one"
    return None


def _grade_rows(rows: Iterable[Row]) -> list[GradeRow]:
    """The grades; one that is empty is `unparsed`, where nothing else is said."""
    made = [GradeRow(**row.said) for row in rows]
    return [row if row.status else row._replace(status="unparsed" if row.grade is None else "graded") for row in made]


GRADES: Spec[list[GradeRow]] = spec(
    "csv", check=_wrong, into=_grade_rows, outof=lambda rows: (row._asdict() for row in rows)
)


def is_grade_table(path: str | os.PathLike[str]) -> bool:
    """Whether a file is a table of grades or labels, by the names of its columns; standard input can be read after it.

    Raises:
        InputError: the file cannot be opened.
    """
    # A line of graded records may be as long as a file.
    if begins_records(path) or not peek_head(path).strip():
        return False
    columns = columns_in(head_of(path))
    lacking = [one.to for one in GRADES.lacking(columns)]
    # One without grades is read, so that it is said what the header lacks.
    return not lacking or (lacking == ["grade"] and "doc_id" in map(plain_name, columns))


def refuse_choice(name: str, wanted: Any, may: Collection[str] = (), holds: str = "judgments") -> None:
    """Refuses to choose grades where there are no grade sets to choose from: it would do nothing.

    Args:
        name: the file.
        wanted: the choice, a `Grader`; None for none.
        may: attributes that choose something there all the same.
        holds: what the file holds.

    Raises:
        InputError: another attribute is given.
    """
    given = [] if wanted is None else [one for one in wanted.given if one not in may]
    if given:
        problem = f"{name}: holds {holds}, no grade sets to choose by {', '.join(given)}; leave that out"
        raise InputError(problem, settings=("grader",))


def grader_of(row: GradeRow) -> str:
    """What chooses the grader of a grade, as `Grader.parse` reads it; empty where nobody says."""
    made = zip(OF_TABLES, (row.grader, row.prompt_class), strict=True)
    return ",".join(f"{name}={said}" for name, said in made if said)


def grades_of_rows(rows: Iterable[GradeRow]) -> list[Grade]:
    """Each grade once, however many runs rank its document."""
    return list(dict.fromkeys(Grade(*row[:2], row.grade, row.item_id, row.status, grader=row.grader) for row in rows))


def runs_of_rows(rows: Iterable[GradeRow], name: str) -> list[Run]:
    """The runs that rank the documents, by rank; an answer that alone is of its run needs none.

    Raises:
        InputError: a run has several documents for a query, and one of them no rank; or a document has two.
    """
    places: dict[tuple[str, str], set[tuple[int | None, str]]] = {}
    for row in rows:
        if row.run_id is not None:
            places.setdefault((row.run_id, row.query_id), set()).add((row.rank, row.doc_id))
    rankings: dict[str, dict[str, Ranking]] = {}
    for (run_id, query_id), listed in sorted(places.items()):
        where = f"{name}: query {query_id!r}"
        if len(listed) > 1 and any(rank is None for rank, _ in listed):
            problem = f"run {run_id!r} has several documents, and not all a rank"
            advice = f"add a column rank, give run files, or remove the column of runs ({', '.join(RUN_IDS)})"
            raise InputError(f"{where}: {problem}; {advice}")
        doc_ids = by_rank(((1 if rank is None else rank, 0.0, doc_id) for rank, doc_id in listed), where, run_id)[0]
        scores = [1 / rank for rank in range(1, len(doc_ids) + 1)]
        rankings.setdefault(run_id, {})[query_id] = Ranking(doc_ids, scores)
    return [Run(run_id, of_run) for run_id, of_run in rankings.items()]


def places_of_runs(runs: Iterable[Run]) -> dict[tuple[str, str], list[RankingEntry]]:
    """(query, document) -> where runs rank it, as records say it."""
    places: dict[tuple[str, str], list[RankingEntry]] = {}
    for run in runs:
        for query_id, ranking in run.rankings.items():
            ranked = zip(ranking.doc_ids, ranking.scores, strict=True)
            for rank, (doc_id, score) in enumerate(ranked, 1):
                place = RankingEntry(method=run.run_id, doc_id=doc_id, query_id=query_id, rank=rank, score=score)
                places.setdefault((query_id, doc_id), []).append(place)
    return places


def read_as_records(source: Any, needs: str = "") -> GradedFile:
    """Graded records of a file, or those that the grades of a table are: its passages have no texts.

    Args:
        source: the file; or a table in memory.
        needs: what needs the texts; then a table is refused. Empty where nothing does.

    Raises:
        InputError: the file cannot be opened; the table contradicts itself, or is refused.
        FormatError: it is neither; names file and line.
    """
    is_file = isinstance(source, str | os.PathLike)
    if is_file and not is_grade_table(source):
        return load_graded(source)
    name = path_name(source) if is_file else "the table"
    if needs:
        problem = f"is a table of grades, and {needs} needs the texts of passages; convert it to records"
        raise InputError(f"{name}: {problem}, with the collection that has them")
    return records_of_rows(GRADES.read(source), name)


def records_of_rows(
    rows: Sequence[GradeRow],
    name: str,
    *,
    texts: Mapping[str, str] | None = None,
    kind: ItemKind = "question",
    scale: Scale | None = None,
) -> GradedFile:
    """The grades as records: of each passage a grade set by grader and prompt, and where runs rank it.

    Args:
        rows: the table.
        name: what messages call it.
        texts: document -> text; None leaves passages without.
        kind: what the items are.
        scale: of the grades; None where only their prompt may tell it.

    Raises:
        InputError: a grade or a rank is said twice, and differently; a grade is not on the scale, or none that records
            hold; a text is missing.
    """
    least, most = HELD if scale is None else (max(scale[0], HELD[0]), min(scale[1], HELD[1]))
    found: dict[tuple[str, str], dict[tuple[str, str | None], dict[str, GradeRow]]] = {}
    for row in rows:
        where = f"{name}: query {row.query_id!r}, document {row.doc_id!r}"
        if row.grade is not None and not least <= row.grade <= most:
            raise InputError(f"{where}, item {row.item_id!r}: grade {row.grade} is outside of {least} to {most}")
        if texts is not None and row.doc_id not in texts:
            raise InputError(f"{where}: is not in the collection")
        items = found.setdefault((row.query_id, row.doc_id), {}).setdefault((row.grader, row.prompt_class), {})
        if (before := items.setdefault(row.item_id, row).grade) != row.grade:
            raise InputError(f"{where}: item {row.item_id!r} is graded {before} and {row.grade}; keep one")
    places, groups = places_of_runs(runs_of_rows(rows, name)), dict[str, list[GradedPassage]]()
    for key, sets in found.items():
        made: dict[str, Any] = {"paragraph_data": PassageData(rankings=places[key])} if key in places else {}
        for (grader, prompt_class), items in sets.items():
            named = given({"prompt_class": prompt_class, **({} if scale is None else scale.as_json())})
            for place, entry in _grade_sets(items, kind, {"llm": grader, "prompt_info": PromptInfo(**named)}):
                made.setdefault(place, []).append(entry)
        groups.setdefault(key[0], []).append(GradedPassage(doc_id=key[1], text=(texts or {}).get(key[1], ""), **made))
    return GradedFile(name, (QueryPassages(query_id, passages) for query_id, passages in groups.items()))


def _grade_sets(items: Mapping[str, GradeRow], kind: ItemKind, by: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """What one grader says of the items of a passage, and of all of it, with the field that holds it."""
    replies = {item_id: row.reason or ("" if row.grade is None else str(row.grade)) for item_id, row in items.items()}
    if of_items := {item_id: row for item_id, row in items.items() if item_id != WHOLE}:
        yield "exam_grades", ItemGradeSet.build(
            {item_id: row.grade for item_id, row in of_items.items() if row.grade is not None},
            answers=[(item_id, replies[item_id]) for item_id in of_items],
            item_status={item_id: row.status for item_id, row in of_items.items() if row.status != "graded"},
            details={item_id: {"reason": row.reason} for item_id, row in of_items.items() if row.reason} or None,
            kind=kind, **by,
        )  # fmt: skip
    if (row := items.get(WHOLE)) is not None:
        said: dict[str, Any] = given({"self_rating": row.grade, "status": row.status})
        said |= {"correct_answered": bool(row.grade), "answer": replies[WHOLE], **by}
        yield "grades", DirectGrade(prompt_type="direct_grading", **said)


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
ASSIGNMENTS = RecordLines(**table("assignments"), type=AssignmentLine, named=_named_run)
GRADED = RecordLines(**table("ragdoll:graded"), type=GradedAnswer)


def _reports(rows: Iterable[Row]) -> list[AssessedReport]:
    found: dict[tuple[str, str], list[AssessedAnswer]] = {}
    for _, said, *_ in rows:
        query_id, run_id, text, label = said.values()
        found.setdefault((query_id, run_id), []).append(AssessedAnswer(text, label, f"{query_id}/{text}"))
    return [AssessedReport(qid=query_id, run_id=run_id, marks=marks) for (query_id, run_id), marks in found.items()]


ASSESSMENTS: Spec[list[AssessedReport]] = spec("dragun:assessments", into=_reports)


def _compared(rows: Iterable[Row]) -> list[GradeRow]:
    """Questions as they are called where runs of them are pooled, graded by the questions of their topic."""
    return GRADES.read([
        {"item_id": f"{said['query_id']}/{said.pop('number')}",
         "doc_id": f"{said['run_id']}/{said['query_id']}/{said['rank']}", **said}
        for _, said, *_ in rows
    ])  # fmt: skip


QUESTION_ASSESSMENTS = spec("dragun:question-assessments", into=_compared)


class Toolkit(SimpleNamespace):
    """What the labels of a toolkit mean.

    Attributes:
        name: the toolkit, as grade sets name it.
        holds: what errors call what its files hold.
        read: the lines of a file, with their numbers where a run may answer a query twice.
        prompt_class: how grade sets say that they are of it.
        grades: label -> grade; every other label is a grade that failed.
        scale: of the grades.
        type: its lines.
        items: what it calls its items; where its lines list them.
        fields: what its items say but for the label, by our names.
        is_whole: whether an answer is asked about all items of its query: then what it says nothing of failed.
    """


_LINES: Mapping[str, tuple[type[JudgedAnswer], Callable[[str], Any]]] = {
    "nuggetizer": (AssignmentLine, ASSIGNMENTS.each),
    "ragdoll": (GradedAnswer, lambda path: zip(repeat(0), GRADED.read(path), strict=False)),
    "dragun": (AssessedReport, lambda path: zip(repeat(0), ASSESSMENTS.read(path), strict=False)),
}
# Without a scale of its own, a toolkit has that of assigned nuggets.
NUGGETIZER, RAGDOLL, DRAGUN = (
    Toolkit(name=name, type=lines, read=read, **{**said, "scale": Scale(*said.get("scale", ASSIGNED))})
    for name, (lines, read) in _LINES.items()
    for said in [{"is_whole": False, **table(f"toolkit {name}")}]
)
# By the kind of their files.
TOOLKITS = {"assignments": NUGGETIZER, "graded answers": RAGDOLL, "assessments": DRAGUN}


def toolkit_of(lines: Sequence[JudgedAnswer]) -> Toolkit:
    """The toolkit that lines, one at least, are of."""
    return next(one for one in TOOLKITS.values() if isinstance(lines[0], one.type))


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
        from rubric_measures.formats.banks import known_label

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
        from rubric_measures.formats.banks import shown_counts

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
            made = sets.get(key := (query_id, *said))
            found = sets[key] = made or _item_set(query_id, said, notes.toolkit, name, number)
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
    # Banks take time to import, and most grades bring none.
    from rubric_measures.formats.banks import items_of

    rows = [({**dict(zip(toolkit.fields, one, strict=True)), "kind": "nugget"}, dict[str, Any]()) for one in said]
    for place, (one, _) in enumerate(rows):
        one["text"] = one["text"].strip()
        if not one["text"]:
            raise FormatError("has no text", path=name, line=line, field=f"{toolkit.items}[{place}].text")
    made, facets, odd = items_of(query_id, rows)
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
    if (earlier.importance, earlier.weight) != (item.importance, item.weight):
        raise InputError(
            f"{item.text[:60]!r} of query {item.query_id!r} has two weights or importances in two answers; keep one, "
            "or name the bank that counts",
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


def lines_of_grades(bank: TestBank, grades: Iterable[Grade], groups: Iterable[QueryPassages]) -> list[AssignmentLine]:
    """The lines that write grades of answers as nuggetizer does, with all that its metrics read.

    An answer without any grade has no items, as long as other answers have those of its query: so it scores the same.

    Args:
        bank: the items.
        grades: grades 0 to 2 of its items; what has none is written as `failed` (counted).
        groups: the answers, ranked by their runs.

    Raises:
        InputError: a grade is not 0, 1 or 2, a run has two answers to a query, or such lines cannot hold the bank.
    """
    from rubric_measures.formats.banks import NUGGETS, written_rows

    label_of: dict[float | None, str] = {None: FAILED, **{one: label for label, one in NUGGETIZER.grades.items()}}
    rows = {row["qid"]: row for row in written_rows(bank, NUGGETS)}
    found: dict[tuple[str, str], dict[str, float | None]] = {}
    for row in grades:
        found.setdefault((row.query_id, row.doc_id), {})[row.iteration] = row.relevance
    asked = {query_id for query_id, _ in found}
    made: dict[tuple[str, str], AssignmentLine] = {}
    for query_id, passage in ((group.query_id, one) for group in groups for one in group.passages if one.rankings):
        of_answer, marks = found.get((query_id, passage.doc_id), {}), []
        for item, mark in zip(bank.for_query(query_id), rows[query_id]["nuggets"], strict=True):
            grade = of_answer.get(item.item_id)
            if grade not in label_of:
                where = f"query {query_id!r}, document {passage.doc_id!r}, item {item.item_id!r}"
                raise InputError(f"{where}: grade {grade:g} has no label; expected 0, 1 or 2")
            # The program asks each nugget for an importance, and writes `failed` where there is none.
            marks.append({"importance": FAILED, **mark, "assignment": label_of[grade]})
        said: Any = {"answer_text": passage.text, "response_length": len(passage.text.split())}
        said["nuggets"] = marks if of_answer or query_id not in asked else []
        for run_id in dict.fromkeys(place.method for place in passage.rankings):
            if (query_id, run_id) in made:
                problem = "assignments are for one passage a run, the whole answer"
                raise InputError(f"query {query_id!r}: {run_id!r} has several passages; {problem}")
            made[query_id, run_id] = AssignmentLine(**{**rows[query_id], "run_id": run_id, **said})
    failed = sum(mark.label == FAILED for line in made.values() for mark in line.marks)
    warn("%d nuggets have no grade and were written as failed", failed)
    return list(made.values())
