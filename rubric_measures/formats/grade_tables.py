"""Tables of grades of items and of labels of passages, a row a grade: read, written, as records and as runs."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from rubric_measures.base.errors import InputError
from rubric_measures.base.files import begins_records, path_name, peek_head
from rubric_measures.formats.base import given, head_of
from rubric_measures.formats.specs import RUN_IDS, Row, Spec, spec
from rubric_measures.records.models import (
    DirectGrade,
    GradedFile,
    GradedPassage,
    ItemGradeSet,
    PassageData,
    PromptInfo,
    QueryPassages,
    RankingEntry,
    load_graded,
)
from rubric_measures.types.entities import Grade, GradeStatus, ItemKind, Ranking, Run, by_rank
from rubric_measures.types.scales import HELD, Scale

# What stands in the place of an item where a whole passage was labelled.
WHOLE = "0"
# What of a `Grader` chooses one here.
OF_TABLES = ("model", "prompt")
# Whether there is no grade -> the status, where nothing else is said.
STATUS: Mapping[bool, GradeStatus] = {True: "unparsed", False: "graded"}


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
        return "a rank, and no run_id that ranks so; name the run, or give run files to score as such"
    if said["status"] is not None and (said["grade"] is None) != (said["status"] not in ("graded", "truncated")):
        return None if said["status"] == "truncated" else f"grade {said['grade']} and status {said['status']}; keep one"
    return None


def _grade_rows(rows: Iterable[Row]) -> list[GradeRow]:
    """The grades; one that is empty is `unparsed`, where nothing else is said."""
    made = [GradeRow(**row.said) for row in rows]
    return [row if row.status else row._replace(status=STATUS[row.grade is None]) for row in made]


GRADES: Spec[list[GradeRow]] = spec(
    "csv", check=_wrong, into=_grade_rows, outof=lambda rows: (row._asdict() for row in rows)
)


def is_grade_table(path: str | os.PathLike[str]) -> bool:
    """Whether a file is a table of grades or labels, by the names of its columns; standard input can be read after it.

    Raises:
        InputError: the file cannot be opened.
    """
    # A line of graded records may be as long as a file.
    return not begins_records(path) and bool(peek_head(path).strip()) and GRADES.recognise(head_of(path))


def grader_of(row: GradeRow) -> str:
    """What chooses the grader of a grade, as `Grader.parse` reads it; empty where nobody says."""
    made = zip(OF_TABLES, (row.grader, row.prompt_class), strict=True)
    return ",".join(f"{name}={said}" for name, said in made if said)


def grades_of_rows(rows: Iterable[GradeRow]) -> list[Grade]:
    """Each grade once, however many runs rank its document."""
    made = (Grade(*row[:2], row.grade, row.item_id, row.status, grader=row.grader) for row in rows)
    return list(dict.fromkeys(made))


def runs_of_rows(rows: Iterable[GradeRow], name: str) -> list[Run]:
    """The runs that rank the documents, by rank; an answer that alone is of its run needs none.

    Raises:
        InputError: a run has several documents for a query, and one of them no rank; or a document has two.
    """
    places: dict[tuple[str, str], dict[str, int | None]] = {}
    for row in rows:
        if row.run_id is not None:
            ranks = places.setdefault((row.run_id, row.query_id), {})
            if ranks.setdefault(row.doc_id, row.rank) != row.rank:
                where = f"{name}: query {row.query_id!r}, document {row.doc_id!r}, run {row.run_id!r}"
                raise InputError(f"{where}: has the ranks {ranks[row.doc_id]} and {row.rank}; keep one")
    rankings: dict[str, dict[str, Ranking]] = {}
    for (run_id, query_id), ranks in sorted(places.items()):
        if len(ranks) > 1 and None in ranks.values():
            where = f"{name}: query {query_id!r}: run {run_id!r} has several documents, and not all a rank"
            problem = f"; add a column rank, give run files, or remove the column of runs ({', '.join(RUN_IDS)})"
            raise InputError(where + problem)
        ranked = ((1 if rank is None else rank, 0.0, doc_id) for doc_id, rank in ranks.items())
        doc_ids = by_rank(ranked, (), f"query {query_id!r}", run_id).doc_ids
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
    least, most = (HELD[0], HELD[1]) if scale is None else (max(scale.lowest, HELD[0]), min(scale.highest, HELD[1]))
    found: dict[tuple[str, str], dict[tuple[str, str | None], dict[str, GradeRow]]] = {}
    for row in rows:
        where = f"{name}: query {row.query_id!r}, document {row.doc_id!r}"
        if row.grade is not None and not (least <= row.grade <= most and (scale is None or row.grade in scale)):
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
            for field, entry in _grade_sets(items, kind, {"llm": grader, "prompt_info": PromptInfo(**named)}):
                made.setdefault(field, []).append(entry)
        groups.setdefault(key[0], []).append(GradedPassage(doc_id=key[1], text=(texts or {}).get(key[1], ""), **made))
    return GradedFile(name, (QueryPassages(query_id, passages) for query_id, passages in groups.items()))


def _grade_sets(items: Mapping[str, GradeRow], kind: ItemKind, by: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """What one grader says of the items of a passage, and of all of it, with the field that holds it."""
    if of_items := {item_id: row for item_id, row in items.items() if item_id != WHOLE}:
        yield "exam_grades", ItemGradeSet.build(
            {item_id: row.grade for item_id, row in of_items.items() if row.grade is not None},
            answers=[(item_id, row.reason or _said(row)) for item_id, row in of_items.items()],
            item_status={item_id: row.status for item_id, row in of_items.items() if row.status != "graded"},
            details={item_id: {"reason": row.reason} for item_id, row in of_items.items() if row.reason} or None,
            kind=kind, **by,
        )  # fmt: skip
    if (row := items.get(WHOLE)) is not None:
        said: dict[str, Any] = given({"self_rating": row.grade, "status": row.status})
        said |= {"correct_answered": bool(row.grade), "answer": row.reason or _said(row), **by}
        yield "grades", DirectGrade(prompt_type="direct_grading", **said)


def _said(row: GradeRow) -> str:
    """What stands where a grader's reply stands."""
    return "" if row.grade is None else str(row.grade)
