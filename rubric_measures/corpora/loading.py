"""Whatever holds grades, banks, records or runs, taken in.

Passages by query, graded or not, as functions take and return them.

Loading grades and banks: what a file is, is decided here and nowhere else.

Runs as users have them: files, and ir_measures' forms of a run in memory.
"""

from __future__ import annotations

import contextlib
import csv
import inspect
import io
import math
import os
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from functools import cached_property
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal, Self, TypeAlias, Union

from msgspec.structs import replace

from rubric_measures.base.errors import FormatError, InputError, counted, naming, refuse_ignored, tell
from rubric_measures.base.files import begins_records, paused_collector
from rubric_measures.formats import detect_format, head_of, judged
from rubric_measures.formats.base import cells_of
from rubric_measures.formats.judged import GRADES, OF_TABLES, GradeRow, is_grade_table, read_as_records, runs_of_rows
from rubric_measures.formats.specs import DOC_IDS, QUERY_IDS, table, text
from rubric_measures.formats.tables import with_index
from rubric_measures.formats.trec import map_qrels, read_run, runs_of_files
from rubric_measures.measures.grades import BANK_DOC, NONE, Grades, OnFailed, QueryGrades, all_rows, check_on_failed
from rubric_measures.measures.qrels import build_grades, grades_of_table, read_grades
from rubric_measures.records.models import QueryPassages, cited_answer, iter_graded, load_graded, write_graded
from rubric_measures.types.entities import RubricItem, Run, TestBank, describe, make_run

if TYPE_CHECKING:
    import pandas
    from typing_extensions import TypeIs

    from rubric_measures.measures.grade_sets import Grader
    from rubric_measures.measures.loading import RecordQuery


class PassageRecords(Sequence["QueryPassages"]):
    """Passages by query: a sequence of `QueryPassages`, each with the passages of one query.

    It cannot be changed in place: functions read the file that has the queries, and would not see it.

    Args:
        groups: the queries; None where they are in a file.
        path: the file that has them. It is read when they are looked at.
    """

    def __init__(self, groups: Iterable[QueryPassages] | None, *, path: str = "") -> None:
        # The name is the file, or what stands for it in an error.
        self.path, self.name = path, path or "the passages"
        if groups is not None:
            given = list(groups) if isinstance(groups, Iterable) else [groups]
            if other := [one for one in given if not isinstance(one, QueryPassages)]:
                problem = f"passages: {other[0]!r:.60} is neither a file nor records"
                raise InputError(f"{problem}; give what `pool` returns, or its file", settings=("passages",))
            self._groups = given

    @classmethod
    def kept(
        cls, groups: Iterable[QueryPassages], output: str | os.PathLike[str] | None, as_table: bool = False, **more: Any
    ) -> Self:
        """The records in memory, or written to the output and read from there.

        Args:
            groups: the records.
            output: a file, or None.
            as_table: whether a name of a table (`.csv`, `.tsv`) asks for one of the grades.
            more: what else the records have.
        """
        if output is None:
            return cls(groups, **more)
        if as_table and os.fspath(output).removesuffix(".gz").endswith((".csv", ".tsv", ".parquet")):
            from rubric_measures.corpora.bridges import Options, bridged

            GRADES.write(output, bridged(list(groups), "records", "grades", Options()))
        else:
            write_graded(output, groups)
        return cls(None, path=os.fspath(output), **more)

    @cached_property
    def _groups(self) -> list[QueryPassages]:
        if self.path == "-":
            raise InputError("the records went to standard output, and cannot be read again")
        return read_as_records(self.path)

    def __getitem__(self, place: Any) -> Any:
        return self._groups[place]

    def __len__(self) -> int:
        return len(self._groups)

    def write(self, path: str | os.PathLike[str]) -> None:
        """Writes the records, which every command and `load` read: JSON lines, gzip where the name ends with .gz."""
        write_graded(path, self)

    def __repr__(self) -> str:
        if self.path == "-":
            return f"{type(self).__name__}(written to standard output)"
        passages = [one for group in self for one in group.passages]
        sets = sum(len(one.exam_grades or ()) + len(one.grades or ()) for one in passages)
        graded = f", {counted(sets, 'grade set')}" if sets else ""
        return f"{type(self).__name__}({counted(len(self), 'query')}, {counted(len(passages), 'passage')}{graded})"


File: TypeAlias = str | os.PathLike[str] | IO[bytes] | IO[str]
"""A file: its name (gzip or plain; `-` is standard input), or the open file, read from where it stands."""

Rows: TypeAlias = "pandas.DataFrame | Sequence[Mapping[str, Any]] | Mapping[str, Sequence[Any]]"
"""A table in memory: a frame of pandas or polars, mappings, or columns."""

Gradable: TypeAlias = "File | Grades | pandas.DataFrame | Iterable[Any]"
"""What grades can be loaded from: a file, the id of a collection, rows, a frame, graded records, or `Grades`."""


def is_file(source: object) -> TypeIs[File]:
    """Whether something is a `File`: a name, or open for reading."""
    return isinstance(source, str | os.PathLike) or hasattr(source, "read")


def query_texts_of(queries: File | Rows | Mapping[str, str] | None) -> Mapping[str, str]:
    """Query -> text, also where these are in a file."""
    from rubric_measures.formats.queries import read_queries

    if is_file(queries) or are_rows(queries):
        with file_path(queries) as path:
            return read_queries(path)
    return queries or {}


def file_beside(output: str | os.PathLike[str] | None, named: str | os.PathLike[str] | None, ending: str) -> str | None:
    """The file that was named, else one beside the output; None without an output or on standard output."""
    if named:
        return os.fspath(named)
    return None if not output or os.fspath(output) == "-" else f"{os.fspath(output)}{ending}"


def listed(files: Any) -> list[Any]:
    """One file or several, as a list; what is neither is refused when it is read."""
    is_one = isinstance(files, PassageRecords | Grades) or is_file(files) or are_rows(files)
    return list(files) if isinstance(files, Iterable) and not is_one else [files]


def are_rows(source: object) -> TypeIs[Rows]:
    """Whether something is a table in memory: a frame, mappings, or columns, and not names of tables or runs."""
    if isinstance(source, dict):
        columns = list(source.values())
        if not columns or not all(map(_is_column, columns)):
            return False
        first = [next(iter(column)) for column in columns if len(column)]
        return not first or any(not isinstance(cell, Mapping) and not hasattr(cell, "doc_id") for cell in first)
    if isinstance(source, list | tuple):
        is_row = bool(source) and isinstance(source[0], Mapping)
        return is_row and not all(isinstance(cell, Mapping) for cell in source[0].values())
    return hasattr(source, "columns") and (hasattr(source, "to_dict") or hasattr(source, "to_dicts"))


def _is_column(one: Any) -> bool:
    # Scalars of numpy and torch have a `tolist` as well, and the shape ().
    return isinstance(one, list | tuple) or (hasattr(one, "tolist") and getattr(one, "shape", None) != ())


def is_given(value: object) -> bool:
    """Whether an argument is neither None, nor False, nor empty."""
    return value is not None and value is not False and not (isinstance(value, Sized) and not len(value))


def columns_of(table: Rows) -> Any:
    """The names of the columns of a table in memory."""
    return table[0] if isinstance(table, list | tuple) else getattr(table, "columns", table)


def _kept(source: Any) -> Any:
    """Rows that come one by one, as a list; what loaded grades were loaded from; all else as it is."""
    if isinstance(source, RecordGrades):
        return PassageRecords(source.groups)
    if isinstance(source, Grades):
        rows = chain.from_iterable(map(all_rows, source.queries.values()))
        return getattr(source, "held", None) or [
            {"query_id": one[0], "doc_id": one[1], "item_id": one.iteration, "grade": one.relevance} for one in rows
        ]
    return list(source) if isinstance(source, Iterator) and not is_file(source) else source


def named_files(source: Any, stack: contextlib.ExitStack) -> Any:
    """What a function was given, with a name in the place of each open file and table; see `file_path`."""
    source = _kept(source)
    if are_rows(source) or is_file(source) or isinstance(source, PassageRecords):
        return stack.enter_context(file_path(source))
    return [named_files(one, stack) for one in source] if isinstance(source, list) else source


@contextlib.contextmanager
def file_path(source: File | Rows | PassageRecords) -> Iterator[str]:
    """The name under which a file can be read; what is open or in memory is copied to disk until then.

    Errors name the open file, or the table, not the copy.

    Raises:
        InputError: it is neither a name, nor open, nor a table.
    """
    source = _kept(source)
    if isinstance(source, PassageRecords) and source.path:
        source = source.path
    if isinstance(source, str | os.PathLike):
        yield os.fspath(source)
        return
    is_table = are_rows(source)
    if not is_table and not is_file(source) and not isinstance(source, PassageRecords):
        shown = " ".join(repr(source).split())[:60]
        raise InputError(f"cannot read {shown}; expected a file's name, a file that is open, or a table")
    name = getattr(source, "name", None)
    shown = "the table" if is_table else name if isinstance(name, str) else "open file"
    with tempfile.TemporaryDirectory(prefix="rubric_measures-") as folder:
        copy = Path(folder) / (Path(shown).name or "open file")
        if isinstance(source, PassageRecords):
            source.write(copy)
        else:
            content = _as_csv(source) if are_rows(source) else source.read()
            copy.write_bytes(content.encode("utf-8", "surrogateescape") if isinstance(content, str) else content)
        try:
            yield str(copy)
        except InputError as error:
            if isinstance(error, FormatError):
                error.path = error.path.replace(str(copy), shown)
            error.args = tuple(str(one).replace(str(copy), shown) for one in error.args)
            raise


def _as_csv(source: Rows) -> str:
    """The CSV of a table in memory; whole numbers of columns with gaps are written as such."""
    from rubric_measures.formats.tables import rows_of

    stream, rows = io.StringIO(), [row for _, row in rows_of(source, "table").rows]
    writer = csv.DictWriter(stream, dict.fromkeys(chain.from_iterable(rows)), lineterminator="\n")
    writer.writeheader()
    for row in rows:
        given = {name: cell for name, cell in row.items() if type(cell) is not float or not math.isnan(cell)}
        whole = {name: int(cell) for name, cell in given.items() if type(cell) is float and cell.is_integer()}
        writer.writerow(given | whole)
    return stream.getvalue()


Bank: TypeAlias = "TestBank | File | pandas.DataFrame | Iterable[Mapping[str, Any]] | Mapping[str, Any]"
"""A test bank, a file that holds one, or a table of items in memory."""


def load_bank(source: Bank) -> TestBank:
    """Reads a test bank of any format that this package reads; the format is told by content.

    >>> from io import StringIO
    >>> import rubric_measures
    >>> rubric_measures.load_bank(StringIO('{"qid": "q1", "nuggets": [{"text": "Blue.", "importance": "vital"}]}'))
    TestBank(1 item of 1 query)
    >>> rubric_measures.load_bank({"q1": ["Why is the sky blue?", "Why is it red?"], "q2": ["What is tea?"]})
    TestBank(3 items of 2 queries)

    Args:
        source: the file: a question or nugget bank of the Rubric workbench, nuggets or assignments of nuggetizer,
            rubrics, Auto-Judge's banks, a table with `query_id` and `text`, …; `docs/test-banks.md` lists them.
            Standard input (`-`) holds a bank of the workbench. Or in memory: a data frame or rows with these columns,
            or query id -> texts. A `TestBank` is given back as it is.

    Raises:
        InputError: the file cannot be opened.
        FormatError: it holds no bank; or it contradicts itself. Names file, line and field.
    """
    from rubric_measures.formats.banks import BANK_CSV, bank_of_entries

    if isinstance(source, TestBank):
        return source
    if not is_file(source):
        return bank_of_entries(BANK_CSV.read(source), "the items")
    with file_path(source) as path:
        from rubric_measures.corpora.bridges import read_entries

        return bank_of_entries(read_entries(path), path)


# What can be scored as it is.
_SCORED = "records, assignments, ragdoll:graded, dragun:assessments, support-labels, qrels, item-qrels, csv"


def _refused(error: FormatError, path: str) -> FormatError:
    """The error about a file that holds no grades, with the format that it has, where that is known.

    Raises:
        FormatError: it is a table whose columns are called otherwise.
    """
    name, problem = "queries", error.problem
    with contextlib.suppress(FormatError, InputError):
        name = detect_format(path)
    if name not in ("queries", "run", *_SCORED.split(", ")):
        problem = f"its format is {name}, which `convert` may turn into another"
    elif path != "-" and name != "run":
        # What is of no other format is taken for queries. What has blanks in the place of columns is no table.
        head = head_of(path)
        if head.object.keys() & {*QUERY_IDS} if head.is_json else len(cells_of(head.line)) > 1:
            GRADES.read(path)
    error.problem = f"holds no grades: {problem}; accepted: {_SCORED}"
    return error


def bank_of(bank: Bank | None) -> TestBank | None:
    """The bank itself, wherever it is."""
    return None if bank is None else load_bank(bank)


def content_of(path: str) -> str:
    """What a file holds that can be scored; a name that is no file is an id of ir_datasets.

    Returns:
        `records`, one of `TOOLKITS`, `support labels`, `argue judgments`, `grades` (a table of grades or labels),
        `judgments`, or `dataset`.
    """
    if path != "-" and not Path(path).exists():
        return "dataset"
    if begins_records(path):
        return "records"
    if is_grade_table(path):
        return "grades"
    # Judgments end with a number, and neither JSON nor the names of columns do.
    if path != "-" and not (head := head_of(path)).line.rstrip()[-1:].isdigit():
        for name in ("assignments", "ragdoll:graded", "dragun:assessments", "argue", "support-labels"):
            said = table(name)
            if head.tells(said["told"]) or {*said["told"]} <= {*cells_of(head.line)}:
                return str(said["kind"])
    return "judgments"


class LazyGrades(Grades):
    """The grades of a file or of records, read when they are looked at.

    Attributes:
        name: what is read.
        found: what is read there.
        queries: query_id -> its grades.
        source: what the grades are, for the signature.
    """

    name: str
    queries = cached_property(attrgetter("found.queries"))
    source = cached_property(attrgetter("found.source"))

    def __repr__(self) -> str:
        return f"<Grades of {self.name}>"


class RecordGrades(LazyGrades):
    """The grades of graded records: compiled when they are looked at.

    Attributes:
        held: the file, or the records themselves.
        bank: the test bank.
        wanted: which grades count.
        name: what the records are called in messages.
        is_read_again: whether they are in a file that can be read again, and so need not be kept.
    """

    def __init__(
        self,
        held: str | Sequence[QueryPassages],
        bank: TestBank | None,
        wanted: Grader | None,
        on_failed: OnFailed | None,
        name: str = "the records",
    ) -> None:
        from rubric_measures.measures.grade_sets import Grader

        self.held, self.bank, self.wanted, self.name = held, bank, wanted or Grader(), name
        self.on_failed_given = None if on_failed is None else check_on_failed(on_failed)
        self.is_read_again = isinstance(held, str) and held != "-"
        self._read: Sequence[RecordQuery] | None = None

    @cached_property
    def found(self) -> Grades:
        """The grades that count."""
        from rubric_measures.measures.loading import collect_grades

        return collect_grades(self.record_queries(), self.bank)

    @cached_property
    def groups(self) -> Sequence[QueryPassages]:
        """The records by query."""
        return load_graded(self.held) if isinstance(self.held, str) else self.held

    @cached_property
    def are_of(self) -> Literal["citations", "answers", "passages"]:
        """What the first query of the records is about, or of a file the first piece of it.

        `citations`: answers whose sentences are items, so that grades are of what they cite. `answers`: all that it
        ranks are generated answers, or the parts of them, called RUN/QUERY/PART.
        """
        first = [next(iter_graded(str(self.held)))] if self.is_read_again else self.groups[:1]
        passages = [(group.query_id, one) for group in first for one in group.passages]
        if any(one.paragraph and cited_answer(query_id, one) for query_id, one in passages):
            return "citations"
        # One passage stands for the same text of several runs.
        are_parts = [
            any(one.doc_id.startswith(f"{place.method}/{query_id}/") for place in one.rankings)
            for query_id, one in passages if one.rankings
        ]  # fmt: skip
        return "answers" if are_parts and all(are_parts) else "passages"

    def record_queries(self, *, keep_ranks: bool = False, wanted: Grader | None = None) -> Iterator[RecordQuery]:
        """The queries with the grades that count; see `measures.loading.select_queries`."""
        from rubric_measures.measures.loading import select_queries

        if self._read is None or keep_ranks or wanted is not None:
            # A file is read, and not kept.
            is_kept = not self.is_read_again or "groups" in vars(self)
            groups = self.groups if is_kept else iter_graded(str(self.held))
            found = select_queries(groups, self.name, self.bank, wanted or self.wanted, keep_ranks=keep_ranks)
            if keep_ranks or wanted is not None:
                return found
            self._read = list(found)
        return iter(self._read)


class AnswerGrades(LazyGrades):
    """The grades of judged answers, with the runs that they are about; read when they are looked at.

    The items of a query are all that any answer to it has, unless a bank is given: then its items count, and items are
    found in it by their id or text. Of an item that comes twice for one answer the first label counts, and labels that
    nobody defined are failed grades: one note counts them. A document is the answer of a run and is called after it.

    Looking at them raises an InputError where the file cannot be opened, an item has two importances or weights, or the
    bank lacks a query or an item; and a FormatError, naming file and line, also where a run answers a query twice.

    Attributes:
        name: the file; several runs may be in it, and its lines may have any order.
        bank: the complete bank, with importance or weights.
        kind: one of `judged.TOOLKITS`.
    """

    def __init__(self, path: str, bank: TestBank | None, on_failed: OnFailed | None, kind: str) -> None:
        self.held = self.name = path
        self.bank, self.kind = bank, kind
        self.on_failed_given = None if on_failed is None else check_on_failed(on_failed)

    @cached_property
    def answers(self) -> tuple[Grades, dict[str, dict[str, str | int]]]:
        """The grades; and run -> query -> the answer, or its length in whitespace words as the file says it."""
        toolkit = judged.TOOLKITS[self.kind]
        notes = judged.Oddities(toolkit)
        # What is said of an item: 0 nobody asked, 1 it failed, or a grade from 2 on.
        codes = {label: code for code, label in enumerate(("", judged.FAILED, *toolkit.grades))}
        items = {one: {item.item_id: item for item in of} for one, of in (self.bank.items if self.bank else {}).items()}
        columns: dict[judged.ItemSet, Any] = {}
        said: dict[str, dict[str, tuple[Any, bytes]]] = {query_id: {} for query_id in items}
        texts: dict[str, dict[str, str | int]] = {}
        # The lines make no cyclic garbage; looking for it would take as long as reading.
        with paused_collector():
            for row in judged.judged(toolkit.read(self.name), notes, self.name):
                if row.query_id in texts.setdefault(row.run_id, {}):
                    problem = f"run {row.run_id!r} has answered query {row.query_id!r} before"
                    raise FormatError(problem, path=self.name, line=row.line)
                texts[row.run_id][row.query_id] = row.text
                if row.items not in columns:
                    columns[row.items] = self._columns(items, row)
                try:
                    of_answer = bytes(map(codes.__getitem__, row.labels))
                except KeyError:
                    of_answer = bytes(codes[notes.known(label)] for label in row.labels)
                said.setdefault(row.query_id, {})[row.run_id] = columns[row.items][: len(of_answer)], of_answer
            notes.say(self.name)
            _note_alike(self.name, texts)
            grades = {one: _of_answers(one, items[one], of_query, toolkit) for one, of_query in said.items()}
        return Grades(grades, self.on_failed_given, {**describe((), self.bank), "grades": [self.kind]}), texts

    found = property(lambda self: self.answers[0])

    def _columns(self, items: dict[str, dict[str, RubricItem]], row: judged.Judged) -> Any:
        """The column of each item; without a bank new ones join the query's items."""
        import numpy as np

        where = f"{self.name}:{row.line}" if row.line else self.name
        if self.bank is not None:
            self.bank.for_query(row.query_id, where)
        known = items.setdefault(row.query_id, {})
        with naming(where):
            for item in row.items.items if self.bank is None else ():
                judged.same_item(known.setdefault(item.item_id, item), item)
            # Of items with one text the first.
            by_text = {item.text.strip(): place for place, item in reversed(list(enumerate(known.values())))}
            by_id = {item_id: place for place, item_id in enumerate(known)}
            found = [by_id.get(item.item_id, by_text.get(item.text)) for item in row.items.items]
            if None in found:
                lost = row.items.items[found.index(None)].text
                raise InputError(f"the test bank has no {lost[:60]!r} for query {row.query_id!r}")
            if len(set(found)) < len(found):
                raise InputError(f"the test bank has one item for two {self.kind} of query {row.query_id!r}")
        return np.array(found, int)

    @property
    def rankings(self) -> list[tuple[str, dict[str, list[str]]]]:
        """The runs, sorted, with their answer to each query as a ranking of one document."""
        return [
            (run_id, {query_id: [run_id] for query_id in of_run}) for run_id, of_run in sorted(self.answers[1].items())
        ]

    @property
    def lengths(self) -> dict[str, dict[str, int]]:
        """run -> query -> L, the length in whitespace words (of the text, else what the file says)."""
        return {
            run_id: {query_id: one if isinstance(one, int) else len(one.split()) for query_id, one in of_run.items()}
            for run_id, of_run in self.answers[1].items()
        }


def _of_answers(
    query_id: str, items: Mapping[str, RubricItem], said: Mapping[str, tuple[Any, bytes]], toolkit: judged.Toolkit
) -> QueryGrades:
    """The grades of all answers of a query."""
    import numpy as np

    codes = np.full((len(said), len(items)), int(toolkit.is_whole), np.uint8)
    for row, (columns, of_answer) in enumerate(said.values()):
        codes[row][columns] = np.frombuffer(of_answer, np.uint8)
    grades, lost = np.array([NONE, NONE, *toolkit.grades.values()])[codes], codes == 1
    docs = {run_id: row for row, run_id in enumerate(said)}
    return QueryGrades(query_id, tuple(items.values()), docs, grades, lost if lost.any() else None, toolkit.scale)


def _note_alike(name: str, texts: Mapping[str, Mapping[str, str | int]]) -> None:
    """Says which runs give the same answers to all of four queries and more."""
    known: dict[frozenset[tuple[str, str | int]], list[str]] = {}
    for run_id, of_run in texts.items():
        if len(of_run) >= 4 and any(isinstance(one, str) and one for one in of_run.values()):
            known.setdefault(frozenset(of_run.items()), []).append(run_id)
    for run_ids in known.values():
        if len(run_ids) > 1:
            alike = " and ".join(run_ids)
            tell(f"{name}: runs {alike} give the same answers to all queries: is one another run?")


class TableGrades(Grades):
    """The grades of a table that says which runs rank what."""

    def __init__(self, grades: Grades, rows: Sequence[GradeRow], name: str) -> None:
        super().__init__(grades.queries, grades.on_failed_given, grades.source)
        self._rows, self._name = rows, name

    held = property(lambda self: [row._asdict() for row in self._rows])

    @cached_property
    def runs(self) -> list[Run]:
        """These runs; nobody asks where others are given.

        Raises:
            InputError: the ranks contradict each other, or are missing.
        """
        return runs_of_rows(self._rows, self._name)


def _of_table(
    source: Any, name: str, bank: TestBank | None, wanted: Grader | None, counted: Mapping[str, Any]
) -> Grades:
    """The grades of one grader of a table."""
    from rubric_measures.measures.grade_sets import chosen_grades

    judged.refuse_choice(name, wanted, (*OF_TABLES, "scale"), "a table of grades (convert makes records of it)")
    rows = chosen_grades(GRADES.read(source), name, wanted, bank)
    with naming(name):
        grades = grades_of_table(rows, bank, **counted)
    return TableGrades(grades, rows, name) if any(row.run_id is not None for row in rows) else grades


def grader_of(grader: str | Grader | None) -> Grader | None:
    """The choice of a grader itself, also where it is written down; see `Grader.parse`. None chooses nothing."""
    if grader is None:
        return None
    from rubric_measures.measures.grade_sets import Grader

    wanted = Grader.parse(grader)
    return None if wanted == Grader() else wanted


def load(
    source: Gradable, bank: Bank | None = None, *, grader: str | Grader | None = None, on_failed: OnFailed | None = None
) -> Grades:
    """Loads the grades of anything that can be scored, for `score`, or for ir_measures as qrels.

    A file of graded records is read when its grades are looked at. All else is read at once.

    >>> import rubric_measures
    >>> from ir_measures import Qrel
    >>> grades = rubric_measures.load([Qrel("q1", "d1", 4, "item a"), Qrel("q1", "d1", 0, "item b")])
    >>> grades
    <Grades of 1 query: 2 items, 1 passage>

    Args:
        source: graded records, nuggetizer's assignments, answers graded by RAGDoll, assessments of DRAGUN, support
            labels of TREC RAG, a table of grades or labels (see `docs/formats.md`), item qrels or qrels (whose labels
            are grades of the item `0`), as a path, `-` or an open file; an id of ir_datasets; or in memory: a table as
            a frame, mappings or columns, named tuples, graded records, or
            `Grades`, which come back as they are where nothing else is asked.
        bank: the test bank: the denominators. Without it the items are those that occur.
        grader: whose grades count: a model, grader of a table or assessor (`human:NAME`); or `key=value,…` with the
            keys model, prompt, kind (question, nugget, direct), items (question-bank, tqa, nugget), set (the hash that
            an error lists), scale (0-5:4: 4 covers; 0-5:4:3: 3 is partial), assessors (override:
            their grades stand in the grader's place; of two the lower). In Python also a `Grader`.
        on_failed: a failed grade counts as much as the valid grades of the ranking let expect (`expected`, the default;
            refused from 20 % failed unless it is written out), as not covered (`zero`), or as this grade.

    Raises:
        InputError: there is no such file, a choice without grade sets to choose from, or `on_failed` beside `Grades`,
            which say it already. When the grades are looked at, also: no grade set, or more than one, is chosen.
        FormatError: the file cannot be read; names file and line.
        MeasureError: rows in memory carry no items.
    """
    if isinstance(source, Grades) and grader is None and bank is None and on_failed is None:
        return source
    if hasattr(source, "read"):
        # An open file may be closed when its grades are looked at.
        with file_path(source) as copy:
            read = load(copy, bank, grader=grader, on_failed=on_failed)
            if isinstance(read, RecordGrades):
                return RecordGrades(read.groups, read.bank, read.wanted, on_failed)
            return Grades(read.queries, on_failed, read.source)
    known_bank = None if bank is None else load_bank(bank)
    wanted = None if grader is None else grader_of(grader)
    counted: Any = {"on_failed": on_failed, "source": describe((), known_bank), "scale": wanted and wanted.scale}
    if isinstance(source, PassageRecords) and source.path:
        source = source.path
    if isinstance(source, str | os.PathLike):
        held: Any = os.fspath(source)
        content, name = content_of(held), held
        held = judgments_of(name) if content == "dataset" else held
    else:
        held, content, name = _in_memory(source)
    if content == "records":
        return RecordGrades(held, known_bank, wanted, on_failed, name)
    if content == "argue judgments":
        raise InputError(f"{name}: holds judgments of reports, no grades; `argue` computes their measures")
    if content == "support labels":
        from rubric_measures.formats.support import read_support_labels, records_of_support_labels

        with naming(name):
            labelled = records_of_support_labels(read_support_labels(name))
        return RecordGrades(labelled, known_bank, wanted, on_failed, name)
    if content in judged.TOOLKITS:
        judged.refuse_choice(name, wanted, (), judged.TOOLKITS[content].holds)
        return AnswerGrades(name, known_bank, on_failed, content)
    if content == "grades":
        return _of_table(held, name, known_bank, wanted, counted)
    if isinstance(held, Grades) and on_failed is not None:
        raise InputError("how failed grades count is chosen where they are loaded", settings=("on_failed",))
    grades: Any = None
    if isinstance(held, str):
        try:
            grades = read_grades(held, known_bank, **counted)
        except FormatError as error:
            if error.line != 1:
                raise
            raise _refused(error, held) from None
    # What a file is comes first, then what cannot be chosen of it.
    judged.refuse_choice(name, wanted, ("scale",))
    return build_grades(held, known_bank, **counted) if grades is None else grades


def _in_memory(source: Any) -> tuple[Any, str, str]:
    """What is in memory, at once; what it is, see `content_of`; what messages call it."""
    if not hasattr(source, "__iter__") and not hasattr(source, "columns"):
        raise InputError(f"cannot score {source!r:.60}; expected a file, rows, a frame, records or Grades")
    rows = source if isinstance(source, dict) or hasattr(source, "columns") else list(source)
    if isinstance(rows, list) and rows and hasattr(rows[0], "passages"):
        return rows, "records", getattr(source, "name", "the records")
    if not isinstance(rows, Grades) and not len(rows):
        raise InputError("there are no grades to score")
    return (rows, "grades", "the grades") if is_table(rows) else (rows, "judgments", "the rows")


def is_table(rows: object) -> bool:
    """Whether rows in memory are a table of grades: mappings, columns, or a frame; those of ir_measures are judgments.

    A frame of ir_measures says the item in a column `iteration`, and no grader.
    """
    names = set(getattr(rows, "columns", ()))
    is_judged = {"query_id", "doc_id", "relevance"} <= names and names & {"iteration", "item_id", "subtopic_id"}
    return are_rows(rows) and (not is_judged or "grader" in names)


def judgments_of(path: str) -> list[Any]:
    """The rows of judgments of a file or of an ir_datasets id, of documents or of items.

    Raises:
        InputError: nothing of that name, or a file of another format.
    """
    if path == "-" or Path(path).exists():
        from rubric_measures.measures.grade_sets import read_judgments

        return list(read_judgments(path))
    from rubric_measures.corpora.collections import load_collection

    found = load_collection(path)
    if not found.has_qrels():
        raise InputError(f"{path}: this ir_datasets id has no qrels")
    return list(found.qrels_iter())


def labels_in(path: str) -> dict[str, dict[str, int]] | None:
    """query_id -> document -> label of a file of judgments; None where some are of items, or have a fraction.

    Raises:
        FormatError: the file holds none.
    """
    found: dict[str, dict[str, int]] = {}
    for query_id, of_query in map_qrels(path, lambda of_query: of_query).items():
        docs = dict(zip(of_query.doc_ids, of_query.relevances, strict=True))
        if len(docs) < len(of_query.doc_ids) or BANK_DOC in docs or float in set(map(type, of_query.relevances)):
            return None
        found[query_id] = docs  # type: ignore[assignment]
    return found


def are_labels(grades: Grades) -> bool:
    """Whether these are labels of passages as assessors give them, which no grades of items stand behind."""
    return not isinstance(grades, RecordGrades | AnswerGrades) and all(
        query.is_of_labels for query in grades.queries.values()
    )


def are_items(rows: Iterable[Any]) -> bool:
    """Whether rows of judgments are of items: a document is judged several times for a query, or a bank is declared."""
    pairs = [(row.query_id, row.doc_id) for row in rows]
    return len(set(pairs)) < len(pairs) or any(doc_id == BANK_DOC for _, doc_id in pairs)


AnyRun: TypeAlias = "File | Run | Rows | Mapping[str, Mapping[str, float]] | Iterable[Any]"
"""A run: a TREC run file, a table, or what ir_measures takes: a frame, rows, or query -> document -> score."""
Runs: TypeAlias = "AnyRun | Iterable[AnyRun] | Mapping[str, AnyRun]"
"""One run or several, or name -> run. A run in memory without a name is called `run 1`, `run 2`, … in its list."""


def run_list(runs: Runs, said: list[str] | None = None) -> list[str] | list[Run]:
    """The paths, where all runs are files with names of their own; else the runs, read.

    `said` takes the lines that are logged while they are read.

    Raises:
        FormatError: a file is no run.
        InputError: there is no run, a run is none, or two have one name.
    """
    runs = [runs] if isinstance(runs, str | os.PathLike | Run) else runs
    runs = runs if isinstance(runs, list | tuple) else _kept(runs)
    if isinstance(runs, list | tuple) and runs and all(isinstance(one, str | os.PathLike) for one in runs):
        return list(map(os.fspath, runs))
    if not isinstance(runs, Iterable):
        raise InputError(f"{runs!r:.60} is no run, and no list of runs")
    given: list[tuple[str | None, Any]] = [(None, runs)]
    if isinstance(runs, Mapping) and not are_rows(runs):
        cells = chain.from_iterable(one.values() if isinstance(one, Mapping) else [None] for one in runs.values())
        given = given if all(isinstance(score, int | float) for score in cells) else list(runs.items())
    elif not are_rows(runs) and not is_file(runs):
        several = list(runs)
        # A frame has its columns as attributes.
        is_one = bool(several) and hasattr(several[0], "doc_id") and not are_rows(several[0])
        given = [(None, several)] if is_one else [(None, run) for run in several]
    if not given:
        raise InputError("there is no run to score")
    found = [_read(run, name, place, said) for place, (name, run) in enumerate(given, 1)]
    for name, count in Counter(run.run_id for run in found).items():
        if count > 1:
            raise InputError(f"two runs are called {name!r}; rename one")
    return found


def read_runs(runs: Runs) -> list[Run]:
    """The runs, read.

    Raises:
        FormatError: a file is no run.
        InputError: as `run_list`.
    """
    listed = run_list(runs)
    paths = [run for run in listed if isinstance(run, str)]
    return runs_of_files(paths) if paths else [run for run in listed if isinstance(run, Run)]


def run_of(run: AnyRun, said: list[str] | None = None) -> Run:
    """The one run that is given, in TREC's format or in memory; `said` takes the lines that are logged.

    Raises:
        InputError: as `run_list`; or there are several.
    """
    found = run_list(run, said)
    if len(found) > 1:
        raise InputError(f"{len(found)} runs are given; give one")
    return read_run(found[0], said) if isinstance(found[0], str) else found[0]


def _read(run: AnyRun, name: str | None, place: int, said: list[str] | None) -> Run:
    if is_file(run):
        with file_path(run) as path:
            run = read_run(path, said)
    if isinstance(run, Run):
        return replace(run, run_id=name or run.run_id)
    called = name or f"run {place}"
    try:
        return make_run(called, _rows(run))
    except InputError:
        raise
    except (ArithmeticError, AttributeError, KeyError, RuntimeError, TypeError, ValueError):
        problem = f"{called}: is no run; give a run file, a frame or rows with query_id, doc_id and score, or "
        raise InputError(f"{problem}query -> document -> score") from None


def _rows(run: Any) -> Iterable[tuple[str, str, float]]:
    is_table = are_rows(run)
    if isinstance(run, Mapping) and not is_table:
        return ((str(one), str(doc_id), score) for one, of in run.items() for doc_id, score in of.items())
    if not is_table:
        return ((str(row.query_id), str(row.doc_id), row.score) for row in run)
    known = columns_of(run := with_index(run))
    named = (next(name for name in names if name in known) for names in (QUERY_IDS, DOC_IDS, ("score",)))
    columns = ([row[name] for row in run] if isinstance(run, list | tuple) else run[name] for name in named)
    # Ids of a column with gaps are 1.0, ….
    query_ids, doc_ids, scores = (one.tolist() if hasattr(one, "tolist") else one for one in columns)
    return zip(map(text, query_ids), map(text, doc_ids), scores, strict=True)


Passages: TypeAlias = Union[File, "Iterable[QueryPassages]"]
"""Passages by query: a file of records, or the records (what `pool`, `grade` and `load_graded` return)."""


def passages_of(passages: Passages | Rows, needs: str = "") -> PassageRecords:
    """The queries of a file, of records, or of a table of grades, to be gone through as often as needed.

    Args:
        passages: what holds them.
        needs: what needs the texts of passages, which a table does not have; see `read_as_records`.
    """
    passages = _kept(passages)
    if is_file(passages):
        with file_path(passages) as path:
            return PassageRecords(read_as_records(path, needs), path=path)
    if are_rows(passages):
        return PassageRecords(read_as_records(passages, needs))
    return passages if isinstance(passages, PassageRecords) else PassageRecords(passages)


def refuse_unused(function: Callable[..., Any], given: Mapping[str, Any], unused: Iterable[str], *why: str) -> None:
    """Refuses arguments that are given and that this call does not use, as they would be ignored in silence.

    Args:
        function: what is called.
        given: its arguments.
        unused: those that have no effect beside the others.
        why: arguments that would give them one.

    Raises:
        InputError: one of them is given, and is not what it is by default.
    """
    usual = {name: one.default for name, one in inspect.signature(function).parameters.items()}
    named = [name for name in unused if is_given(given[name])]
    refuse_ignored((name for name in named if usual[name] is None or given[name] != usual[name]), "here", *why)
