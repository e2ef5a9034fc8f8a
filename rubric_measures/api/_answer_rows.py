"""What was asked and answered: the rows of tables of answers, brought together by query and run."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rubric_measures.api._loading import file_path, is_file
from rubric_measures.base.errors import FormatError, InputError, counted
from rubric_measures.formats.answer_tables import AnswerRow, AnswerTable, answer_rows, read_answer_table
from rubric_measures.types.entities import TestBank

_LOG = logging.getLogger("rubric_measures")


def answer_tables_of(answers: Any, columns: Mapping[str, str]) -> list[tuple[str, AnswerTable]]:
    """(name of the run where the rows say none, table)."""
    if isinstance(answers, Mapping):
        return [(str(name), _table(source, columns)) for name, source in answers.items()]
    several = isinstance(answers, list | tuple) and answers and all(_is_source(one) for one in answers)
    return _named_by_file([_table(one, columns) for one in (answers if several else [answers])])


def _is_source(one: object) -> bool:
    return is_file(one) or hasattr(one, "columns") or hasattr(one, "to_pandas")


def _table(source: Any, columns: Mapping[str, str]) -> AnswerTable:
    if is_file(source):
        with file_path(source) as path:
            return read_answer_table(path, columns)
    if hasattr(source, "to_pandas"):
        source = source.to_pandas()
    rows = source.to_dict("records") if hasattr(source, "columns") else source
    try:
        listed = [(number, dict(row)) for number, row in enumerate(rows, 1)]
    except (TypeError, ValueError):
        text = f"{source!r:.60} holds no answers; give a file, a frame, or rows with names"
        raise InputError(text, settings=("answers",)) from None
    return answer_rows(listed, columns)


def _named_by_file(tables: Sequence[AnswerTable]) -> list[tuple[str, AnswerTable]]:
    """The tables with the names of their files; two files of one name are told apart by their folders."""
    stems = [table.stem for table in tables]
    if len(set(stems)) < len(stems):
        stems = [str(Path(table.name).with_suffix("")) for table in tables]
    if len(set(stems)) < len(stems):
        raise InputError("one table is given twice; name each once, or give them names", settings=("answers",))
    said = [{row.run_id for row in table.rows} for table in tables]
    clash = any(one & other for place, one in enumerate(said) for other in said[place + 1 :])
    named = []
    for stem, table, run_ids in zip(stems, tables, said, strict=True):
        if clash and run_ids != {""}:
            rows = [row._replace(run_id="" if len(run_ids) == 1 else f"{stem}/{row.run_id}") for row in table.rows]
            table = AnswerTable(table.name, tuple(rows), table.columns, table.unused)
        named.append((stem, table))
    return named


@dataclass
class Questions:
    """What was asked and answered.

    Attributes:
        texts: query id -> question, in the order of the tables.
        answers: (query id, run) -> (place of its row, row).
        references: query id -> the reference answer, in one text or several.
    """

    texts: dict[str, str] = field(default_factory=dict)
    answers: dict[tuple[str, str], tuple[str, AnswerRow]] = field(default_factory=dict)
    references: dict[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def runs(self) -> list[str]:
        """The runs, in the order of the tables."""
        return list(dict.fromkeys(run_id for _, run_id in self.answers))


def asked_in(tables: Sequence[tuple[str, AnswerTable]], bank: TestBank | None) -> Questions:
    """Brings together what the tables say of each question.

    Raises:
        FormatError: a query has two ids or an id two queries, a run answers a query twice, or a query has
            two references.
    """
    asked = Questions()
    ids = _query_ids(tables, bank)
    for name, table in tables:
        _note_table(table)
        for row in table.rows:
            where = f"{table.name}:{row.line}"
            query_id = ids[table.name, row.query_id, row.query]
            asked.texts.setdefault(query_id, row.query)
            key = (query_id, row.run_id or name)
            if key in asked.answers:
                before = asked.answers[key][0]
                problem = f"{key[1]} answers {short(row.query)} a second time (before: {before}); keep one, or name a "
                raise FormatError(
                    f"{problem}column that tells runs apart", path=table.name, line=row.line, settings=("columns",)
                )
            asked.answers[key] = (where, row)
            if row.reference:
                known = asked.references.setdefault(query_id, row.reference)
                if known != row.reference:
                    problem = f"{short(row.query)} has another reference answer in a row above; keep one"
                    raise FormatError(problem, path=table.name, line=row.line, field=table.columns["reference"])
    return asked


def short(text: str) -> str:
    """A text in one quoted line of at most 50 characters."""
    text = " ".join(text.split())
    return repr(text if len(text) <= 50 else f"{text[:49]}…")


def _note_table(table: AnswerTable) -> None:
    read = ", ".join(f"{role}={column}" for role, column in table.columns.items())
    left = f"; not read: {', '.join(table.unused[:8])}{', …' if len(table.unused) > 8 else ''}" if table.unused else ""
    _LOG.info("%s: %s (%s%s)", table.name, counted(len(table.rows), "answer"), read, left)


def _query_ids(tables: Sequence[tuple[str, AnswerTable]], bank: TestBank | None) -> dict[tuple[str, str, str], str]:
    """(table, id, question) as they stand in rows -> query id.

    Ids of a column `id` may be those of rows. They are taken for those of questions only where each question has one,
    and each id one question; else questions are told apart by their texts.
    """
    texts: dict[str, tuple[str, str, int]] = {}
    given: dict[str, tuple[str, str, int]] = {}
    problem: FormatError | None = None
    has_ids = all("id" in table.columns for _, table in tables)
    for _, table in tables:
        for row in table.rows:
            if not has_ids or not row.query_id:
                has_ids = False
                continue
            known, *_ = texts.setdefault(row.query, (row.query_id, table.name, row.line))
            question, *_ = given.setdefault(row.query_id, (row.query, table.name, row.line))
            if problem is None and (known != row.query_id or question != row.query):
                said = (
                    f"{short(row.query)} has the ids {known} and {row.query_id}"
                    if known != row.query_id
                    else f"id {row.query_id} is of {short(question)} and of {short(row.query)}"
                )
                problem = FormatError(
                    f"{said}; an id is that of a query, one for all runs",
                    path=table.name, line=row.line, settings=("columns",),
                )  # fmt: skip
    if problem is not None:
        if any(table.columns.get("id", "id").lower() != "id" for _, table in tables):
            raise problem
        _LOG.info("the column id names rows; queries are told apart by their texts", extra={"settings": ("columns",)})
        has_ids = False
    return _ids_of(tables, bank, has_ids)


def _ids_of(
    tables: Sequence[tuple[str, AnswerTable]], bank: TestBank | None, has_ids: bool
) -> dict[tuple[str, str, str], str]:
    of_text: dict[str, str] = {}
    for query_id, text in ({} if bank is None else bank.query_texts).items():
        of_text.setdefault(_same(text), query_id)
    known = set() if bank is None else set(bank.items)
    questions = list(dict.fromkeys(_same(row.query) for _, table in tables for row in table.rows))
    free = (f"q{number:0{max(2, len(str(len(questions))))}}" for number in range(1, 1 << 60))
    found: dict[tuple[str, str, str], str] = {}
    for _, table in tables:
        for row in table.rows:
            text = _same(row.query)
            if has_ids and (row.query_id in known or text not in of_text):
                query_id = row.query_id
            else:
                query_id = of_text.get(text) or next(one for one in free if one not in known)
                of_text[text] = query_id
            found[table.name, row.query_id, row.query] = query_id
    return found


def _same(text: str) -> str:
    """A question as questions are compared: blanks count as one."""
    return " ".join(text.split())
