"""Formats as data: a spec says the fields of a row, what may come twice, and what rows become."""

from __future__ import annotations

import contextlib
import csv
import json
import math
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from enum import Enum
from functools import partial
from itertools import chain
from operator import attrgetter
from pathlib import Path
from types import MappingProxyType
from typing import Any, Generic, Literal, NamedTuple, TypeAlias, TypeVar

from msgspec import Struct, defstruct
from msgspec.json import Decoder
from msgspec.json import format as formatted
from msgspec.structs import force_setattr

from rubric_measures.base.errors import FormatError, InputError, counted, naming, tell, warn
from rubric_measures.base.files import atomic_writer, path_name, paused_collector, toml_tables
from rubric_measures.base.json_text import check_utf8, decoded, json_texts, parse_json, without_nan
from rubric_measures.base.tables import active, inert, is_formula
from rubric_measures.formats.base import (
    Format,
    Head,
    Kind,
    PathName,
    cells_of,
    given,
    is_number,
    plain_name,
    say_left_out,
)
from rubric_measures.formats.tables import PARQUET, Cells, parquet_columns, rows_of, unwrapped
from rubric_measures.records.models import JsonRecord
from rubric_measures.types.scales import LARGEST_SCORE

T = TypeVar("T")
V = TypeVar("V")
R = TypeVar("R", bound=JsonRecord)
Twice = Literal["refuse", "first wins", "last wins"]
Form = Literal["csv", "tsv", "jsonl", "json"]
_DELIMITERS: Mapping[str, str] = {"csv": ",", "tsv": "\t"}
_SHOWN = 12


# Name -> its lines of the file.
_TABLES = toml_tables(Path(__file__).with_name("formats.toml"))


def table(name: str) -> dict[str, Any]:
    """What `formats.toml` says of a format, but for where it stands."""
    said = tomllib.loads(_TABLES[name])[name]
    if "like" in said:
        said = {**table(said.pop("like")), **said}
    return {to: tuple(value) if isinstance(value, list) else value for to, value in said.items() if to != "at"}


def places() -> dict[str, str]:
    """Format -> where what reads and writes it stands."""
    found = {name: re.search(r'^at = "(.*)"$', said, re.MULTILINE) for name, said in _TABLES.items()}
    return {name: f"{__package__}.{at[1]}" for name, at in found.items() if at is not None}


NAMES = table("names")


def names_of(said: Iterable[str]) -> tuple[str, ...]:
    """Names of columns; `@query` stands for those that `NAMES` has for a query."""
    return tuple(chain.from_iterable(NAMES[one[1:]] if one[0] == "@" else (one,) for one in said))


QUERY_IDS, DOC_IDS, RUN_IDS, TOPIC_IDS = (NAMES[name] for name in ("query", "doc", "run", "topic"))
# A column that is one of these is meant as it is called.
_NAMED = [NAMES[one] for one in ("query", "doc", "run", "query_text", "text")]
_NAMED += [names_of(one["names"]) for one in table("answer table")["fields"]]
KNOWN_NAMES = {"answer", *chain.from_iterable(_NAMED)}


def meant(columns: Iterable[str], known: Mapping[str, str]) -> str:
    """How to call columns that are nearly called as one that is known (name -> how to call it), for errors."""
    import difflib

    near = ((one, to) for one in columns if one not in KNOWN_NAMES for to in difflib.get_close_matches(one, known, n=1))
    return "".join(f" (call {one} {known[to]}, if that is meant)" for one, to in near)


class Need(Enum):
    """Says in the place of a default that a field is needed: a value, a value that may be "", or its column alone."""

    VALUE, TEXT, COLUMN = range(3)


REQUIRED, PRESENT, COLUMN = Need


def text(value: Any) -> str:
    """A text; a number that stands in its place is written as one."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < math.inf:
        raise ValueError("expected a text")
    return str(int(value) if value == value // 1 else value)


def words(value: Any) -> str:
    """A text; a number in its place tells another kind of file."""
    if not isinstance(value, str):
        raise ValueError("expected a text")
    return value


def ident(value: Any) -> str:
    """An id: a text that is not blank, without blanks around it."""
    found = text(value).strip()
    if not found:
        raise ValueError("is empty")
    return found


def whole(value: Any) -> int:
    """A whole number of at most nine digits; pandas writes those of columns with gaps as 1.0."""
    said = re.fullmatch(r"\s*(-?\d{1,9})(?:\.0+)?\s*", str(value))
    if said is None:
        raise ValueError("expected a whole number")
    return int(said[1])


_TRUTH = ("True", "False")


def number(value: Any) -> float:
    """A number of at most 1e100; a whole one is an `int`."""
    found = float(value) if isinstance(value, str) and is_number(value) else value
    if isinstance(found, bool) or not isinstance(found, int | float) or not abs(found) <= LARGEST_SCORE:
        hint = ", decimals with a point" * ("," in str(value)) or ", 1 for True, 0 for False" * (str(value) in _TRUTH)
        raise ValueError(f"expected a number, at most {LARGEST_SCORE:g}{hint}")
    return int(found) if found == int(found) else found


def figure(value: Any) -> float:
    """A number as it is written."""
    found = number(value)
    return value if isinstance(value, int | float) else found


def filled(value: Any) -> str:
    """A text that is not blank, as it is."""
    ident(value)
    return text(value)


def texts(value: Any) -> list[str]:
    """A list of texts."""
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise ValueError("expected a list of texts")
    return value


def question(value: Any) -> str:
    """A question: a number is none, as the score of a run without tags may stand in its place."""
    found = ident(value)
    if is_number(found):
        raise ValueError("expected a question")
    return found


def stripped(value: Any) -> str:
    """A text without blanks around it; it may be empty."""
    return text(value).strip()


def same(value: Any) -> Any:
    """The value as it is."""
    return value


def one_of(said: Mapping[str, Any] | Iterable[str]) -> Callable[[Any], Any]:
    """What one of a few texts means; without anything said, itself."""
    values = said if isinstance(said, Mapping) else {one: one for one in said}

    def parse(value: Any) -> Any:
        found = value.strip() if isinstance(value, str) else value
        if isinstance(found, list | dict) or found not in values:
            raise ValueError(f"expected {', '.join(list(values)[:-1])} or {list(values)[-1]}")
        return values[found]

    return parse


class Field(NamedTuple):
    """One field of the rows of a file.

    Attributes:
        to: our name; empty for what is passed over without a word.
        names: what files call it, the first one where it is written; a dot parts an object from its field.
        parse: what a value means; raises ValueError.
        default: what an empty or missing one means; or REQUIRED, PRESENT or COLUMN.
        unparse: what is written for a value of ours.
    """

    to: str
    names: tuple[str, ...]
    parse: Callable[[Any], Any] = text
    default: Any = REQUIRED
    unparse: Callable[[Any], Any] = same


class Row(NamedTuple):
    """A row of a file: its line, what it says by our names, the fields that nobody knows, and as it stands there."""

    line: int
    said: dict[str, Any]
    further: dict[str, Any]
    cells: Cells = MappingProxyType({})


class Inside(Struct, frozen=True):
    """Rows that stand inside a row, in a list or an object; the `parse` and `unparse` of a `Field`.

    Attributes:
        variants: what the rows can be -> their fields. A row is the first that it names a field of, but for those that
            all have; where there is only one, it is that.
        to: by what name a row says which variant it is; empty where none asks.
        key: what the keys say where the rows stand in an object, by our names; empty where they stand in a list only.
            They may stand in a list, too, where a field says it, or where it is `key`, which nobody needs.
        is_sparse: see `Spec`.
    """

    variants: Mapping[str, tuple[Field, ...]]
    to: str = ""
    key: str = ""
    is_sparse: bool = True

    def __call__(self, value: Any) -> list[Row]:
        """The rows.

        Raises:
            ValueError: it is neither a list nor an object that has keys; a `FormatError` with the field inside it.
        """
        is_keyed = bool(self.key) and isinstance(value, dict)
        # In a list nothing says the key of a row that has no field for it.
        may_list = self.key in {"", "key", *(one.to for fields in self.variants.values() for one in fields)}
        if not is_keyed and not (may_list and isinstance(value, list)):
            raise ValueError("expected " + " or ".join(["an object"] * bool(self.key) + ["a list"] * may_list))
        rows, read = [], {name: _Reader(fields, self.is_sparse) for name, fields in self.variants.items()}
        for number, (key, cells) in enumerate(value.items() if is_keyed else enumerate(value), 1):
            try:
                if not isinstance(cells, dict):
                    raise FormatError(f"expected an object; found {cells!r:.40}")
                variant = self._variant(cells)
                said, further = read[variant](cells)
            except FormatError as error:
                where = str(key) if is_keyed else f"[{key}]"
                raise FormatError(error.problem, field=f"{where}.{error.field}".rstrip(".")) from None
            said = {self.key: key, "key": key, **given(said)} if is_keyed else said
            rows.append(Row(number, {**said, self.to: variant} if self.to else said, further))
        return rows

    def _variant(self, cells: Cells) -> str:
        own = {name: {one for field in fields for one in field.names} for name, fields in self.variants.items()}
        shared = set.intersection(*own.values()) if len(own) > 1 else set()
        found = [name for name, names in own.items() if len(own) == 1 or not (names - shared).isdisjoint(cells)]
        if len(found) != 1:
            raise FormatError(f"expected either a {' or a '.join(self.variants)}, by its fields")
        return found[0]

    def written(self, rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """The rows as they are written in a list."""
        variants = self.variants
        first = next(iter(variants))
        return [_written(variants[row[self.to] if self.to else first], row, self.is_sparse) for row in rows]

    def keyed(self, rows: Sequence[Mapping[str, Any]]) -> Any:
        """The rows as they are written in an object, by their `key`; in a list where one has none."""
        made, keys = self.written(rows), [row.get("key") for row in rows]
        return made if None in keys else dict(zip(keys, made, strict=True))


TYPES: Mapping[str, Callable[[Any], Any]] = {
    one.__name__: one for one in (text, words, filled, stripped, question, texts, ident, whole, number, figure, same)
}
_IS = {"": REQUIRED, "column": COLUMN, "text": PRESENT, "left out": None}


def fields_of(said: Iterable[Mapping[str, Any]], types: Mapping[str, Any]) -> tuple[Field, ...]:
    """Fields as `formats.toml` says them.

    Args:
        said: the fields.
        types: name -> parse and unparse, of types that are no others' but of this format.
    """
    made = []
    parse: Any
    for one in said:
        to, kind = one["to"], one.get("type", "text")
        if isinstance(kind, str):
            parse, unparse = types.get(kind) or (TYPES[kind], same)
        else:
            parse = one_of(kind)
            unparse = same if isinstance(kind, list) else {means: word for word, means in kind.items()}.get
        need = one.get("is", "" if to else "left out")
        default = one.get("default", _IS[need])
        if "rows" in one:
            rows = one["rows"] if isinstance(one["rows"], dict) else {"": one["rows"]}
            parse = Inside({which: fields_of(fields, types) for which, fields in rows.items()}, **one.get("row", {}))
            unparse = parse.keyed if parse.key else parse.written
        made.append(Field(to, names_of(one.get("names", (to,))), parse, default, unparse))
    return tuple(made)


def spec(name: str, types: Mapping[str, Any] = MappingProxyType({}), **more: Any) -> Spec[Any]:
    """A format of rows, as `formats.toml` says it.

    Args:
        name: its table.
        types: see `fields_of`.
        more: what no table can say: functions; and what is another than there.
    """
    said = {**table(name), **more}
    return Spec(**{**said, "fields": fields_of(said["fields"], types)})


def columns_in(head: Head) -> Sequence[str]:
    """The columns of the first row of a table; none where it is none."""
    if head.first.startswith(PARQUET):
        return parquet_columns(head.name)
    return list(head.object) if head.is_json else cells_of(head.line)


class Spec(Struct, Generic[T], frozen=True, kw_only=True):
    """One format of rows.

    Attributes:
        kind: see `Format`.
        description: one line.
        what: the rows in the plural, for messages.
        fields: the fields, in the order in which they are written.
        into: what the rows of a file become, by our names; `further` holds what the spec does not name.
        outof: the same backwards: the rows by our names; what has no field is counted and said.
        forms: how files are written, the first one where their name does not say it; none where they are only read.
        key: the fields of which no two rows may be alike.
        twice: what is done where they are. Rows that are alike in all are one.
        check: what is wrong with a row as a whole; None for nothing.
        told: the columns by which a file is told, or what tells it by its beginning; None for the first names of the
            fields that are needed, nothing for any of their names.
        bare: the fields of lines with tabs that have no header, by their number; names of no field are columns.
        keyed: of formats that may be one object, the field that its keys stand for, and that of values that are texts.
        keeps: whether `into` and `outof` hold further fields; else these are counted and said. Tables hold those that
            are texts, in columns of their own.
        is_sparse: whether fields without a value are not written, but for those that `further` says were there.
        is_compact: whether JSON is written without blanks.
        is_quoted: see `rows_of`.
        by_hand: see `rows_of`.
        is_guarded: whether a text that a spreadsheet would compute, but for ids, gets a `'`, which is taken off again
            where it is read; else quotes.
    """

    kind: Kind
    description: str
    what: str
    fields: tuple[Field, ...] = ()
    into: Callable[[list[Row]], Any] = list
    outof: Callable[[Any], Iterable[Mapping[str, Any]]] = lambda content: ()
    forms: tuple[Form, ...] = ("csv",)
    key: tuple[str, ...] = ()
    twice: Twice = "refuse"
    check: Callable[[Mapping[str, Any]], str | None] = lambda said: None
    told: tuple[str, ...] | Callable[[Head], bool] | None = None
    bare: tuple[tuple[str, ...], ...] = ()
    keyed: tuple[str, str] | tuple[()] = ()
    keeps: bool = False
    is_quoted: bool = True
    by_hand: bool = False
    is_guarded: bool = False
    is_sparse: bool = False
    is_compact: bool = False

    @property
    def format(self) -> Format:
        """The spec as a row of the table of formats."""
        return Format(self.kind, self.description, self.read, self.write if self.forms else None, self.recognise)

    def recognise(self, head: Head) -> bool:
        """Whether a file that begins so has the format: its object, or its header, names the columns."""
        if callable(self.told):
            return self.told(head)
        if self.told == ():
            return not self.lacking(columns_in(head))
        told = self.told
        if told is None:
            told = tuple(field.names[0] for field in self.fields if isinstance(field.default, Need))
        if head.is_json:
            return (not self.forms or "jsonl" in self.forms) and head.tells(told)
        cells = cells_of(head.line)
        is_table = not self.forms or not {"csv", "tsv"}.isdisjoint(self.forms)
        has_header = is_table and {*told} <= {*cells, *map(plain_name, cells)}
        return has_header or self._is_bare(head)

    def _is_bare(self, head: Head) -> bool:
        """Whether the first line is a row without a header: as many cells, and each of its field's type."""
        cells = head.line.split("\t")
        parse = {field.to: field.parse for field in self.fields}
        for names in self.bare:
            with contextlib.suppress(ValueError):
                if len(names) == len(cells):
                    return all(parse.get(to, same)(cell) is not None for to, cell in zip(names, cells, strict=True))
        return False

    def read(self, source: Any) -> T:
        """What a file, a frame, or rows in memory hold.

        Raises:
            InputError: the file cannot be opened.
            FormatError: naming file, line and field; also when there are no rows, or two have one key.
        """
        with paused_collector(), naming(source):
            found: T = self.into(list(self.rows(source)))
            return found

    def rows(self, source: Any, only: AbstractSet[str] | None = None) -> Iterator[Row]:
        """The rows of a file, one after the other where none can be replaced by a later one.

        Args:
            source: see `read`.
            only: the values of the first field that are wanted; of other rows nothing else is read.
        """
        found = rows_of(
            source, self.what, is_header=self.is_header, by_hand=self.by_hand, unwrap=self._unwrapped,
            bare=[[self._names_of(to)[0] for to in names] for names in self.bare], is_quoted=self.is_quoted,
            sieve=None if only is None else partial(_sieve, self.fields[0].names, only),
        )  # fmt: skip
        rows = self._parsed(found.rows, found.name, found.is_text, only)
        if not self.key:
            return rows
        keyed = ((row.line, tuple(row.said[to] for to in self.key), row) for row in rows)
        return unique(keyed, found.name, self.what, self.twice, lambda one, other: one[1:3] == other[1:3])

    def _ids(self) -> set[str]:
        """The columns of ids: programs compare them, so that nothing may stand before them."""
        return {name for field in self.fields if field.parse is ident for name in field.names}

    def _names_of(self, to: str) -> tuple[str, ...]:
        return next((field.names for field in self.fields if field.to == to), (to,))

    def is_header(self, columns: Sequence[str]) -> bool:
        """Whether a line names columns: all that are needed, or that of the id where a line may be a row as well."""
        return not self.lacking(columns) or any({*columns[:1]} & {*self._names_of(names[0])} for names in self.bare)

    def _unwrapped(self, line: int, value: dict[str, Any]) -> list[tuple[int, Any]]:
        """The rows of one object: each by its key, unless it names the field that the keys stand for.

        A key may have several texts, in a list.
        """
        names, (inner, *_) = map(self._names_of, self.keyed or ("", ""))
        lists = {key: said if isinstance(said, list) else [said] for key, said in value.items()}
        has_rows = any(isinstance(said, list) and any(isinstance(one, dict) for one in said) for said in value.values())
        if not self.keyed or has_rows or any(value.get(name) is not None for name in names):
            return unwrapped(line, value)
        pairs = ((key, one if isinstance(one, dict) else {inner: one}) for key, said in lists.items() for one in said)
        return [(line, {**said, names[0]: key}) for key, said in pairs]

    def lacking(self, columns: Collection[str]) -> list[Field]:
        """The fields that must be there and are not."""
        known = {*columns, *map(plain_name, columns)}
        needed = (field for field in self.fields if isinstance(field.default, Need))
        return [field for field in needed if known.isdisjoint(field.names)]

    def columns(self, present: Collection[str]) -> dict[str, list[str]]:
        """Field -> the columns that may hold it, of those that are there.

        Raises:
            FormatError: one that is needed has none.
        """
        return {field.to: names for field, names in _places(self.fields, present)[0]}

    def _parsed(
        self, rows: Iterable[tuple[int, Cells]], name: str, is_text: bool, only: AbstractSet[str] | None
    ) -> Iterator[Row]:
        strange: Counter[str] = Counter()
        count, read, key = 0, _Reader(self.fields, self.is_sparse), _Reader(self.fields[:1])
        ids = self._ids() if self.is_guarded and is_text else None
        for count, (line, cells) in enumerate(rows, 1):  # noqa: B007 - the number of rows
            try:
                # A row without anything says what the header lacks.
                if only is not None and any(cells.values()) and key(cells)[0][self.fields[0].to] not in only:
                    continue
                shown = cells
                if ids is not None and "'" in "".join(cells.values()):
                    shown = {column: cell if column in ids else active(cell) for column, cell in cells.items()}
                said, further = read(shown)
            except FormatError as error:
                raise FormatError(error.problem, path=name, line=line, field=error.field) from None
            if (wrong := self.check(said)) is not None:
                raise FormatError(wrong, path=name, line=line)
            if not self.keeps:
                # The index of a frame has no name.
                strange.update(
                    column for column, value in further.items() if column and value not in (None, "", {}, [])
                )
            yield Row(line, said, further, cells)
        if not count and only is None:
            raise FormatError(f"holds no {self.what}", path=name)
        found = chain.from_iterable(found for found, _ in read.places.values())
        if any(field.to == "item_id" and "question_id" in map(plain_name, names) for field, names in found):
            tell("%s: question_id is the item, as another column is the query", name)
        if strange:
            warn("%s: %d further columns left out: %s", name, len(strange), _listed(sorted(strange)))

    def write(self, path: PathName, content: T) -> None:
        """Writes what such files hold; what they have no place for is counted and said.

        Raises:
            InputError: the file cannot be written, or there is nothing to write.
        """
        name = path_name(path)
        ending = name.removesuffix(".gz").rpartition(".")[2]
        form = ending if ending in self.forms else self.forms[0]
        if ending == "parquet":
            raise InputError(f"{name}: parquet is read, and not written; name it .csv", settings=("output",))
        lost: Counter[str] = Counter()
        rows: Iterator[Any] = (self.object(said, form, lost) for said in self.outof(content))
        first = next(rows, None)
        if first is None:
            raise InputError(f"{name}: there are no {self.what} to write")
        rows = chain([first], rows)
        with atomic_writer(path) as stream:
            if form == "tsv" and self.bare and "csv" not in self.forms:
                self._write_bare(stream, rows, name, lost)
            elif form == "json" and self.keyed:
                (key, *_), (inner, *_) = map(self._names_of, self.keyed)
                entries = {row.pop(key): row if len(row) > 1 else row[inner] for row in rows}
                stream.write(json.dumps(entries, ensure_ascii=False, indent=1) + "\n")
            elif form in _DELIMITERS:
                self._write_table(stream, form, rows)
            else:
                separators = (",", ":") if self.is_compact else None
                for row in rows:
                    stream.write(json.dumps(row, ensure_ascii=False, separators=separators) + "\n")
        say_left_out(name, (f"{to} of {counted(count, 'row')}" for to, count in sorted(lost.items())))

    def object(self, said: Mapping[str, Any], form: str | None = None, lost: Counter[str] | None = None) -> Any:
        """A row as it is written in a form, the first one by itself; what has no place is counted in `lost`."""
        is_table = (form or self.forms[0]) in _DELIMITERS
        further = said.get("further") or {}
        kept = {to: value for to, value in further.items() if self.keeps and not (is_table and type(value) is not str)}
        if lost is not None:
            known = {*(field.to for field in self.fields), *further, "further"}
            lost.update(to for to, value in said.items() if value and to not in known)
            lost.update(further.keys() - kept.keys())
        return _written(self.fields, {**said, "further": kept}, self.is_sparse)

    def _write_bare(self, stream: Any, rows: Iterable[dict[str, Any]], name: str, lost: Counter[str]) -> None:
        """Lines with tabs and without a header, which hold no more than the columns that those have."""
        columns = [self._names_of(to)[0] for to in self.bare[0]]
        for row in rows:
            cells = [str(row[column]) for column in columns]
            if any(mark in cell for cell in cells for mark in "\t\r\n"):
                raise InputError(f"{name}: {cells[0]!r:.40} holds a tab or a line end; write .json or .jsonl")
            stream.write("\t".join(cells) + "\n")
            lost.update(to for to, value in row.items() if to not in columns and value)

    def _write_table(self, stream: Any, form: str, rows: Iterable[dict[str, Any]]) -> None:
        writer = csv.writer(stream, delimiter=_DELIMITERS[form], lineterminator="\n")
        quoting = csv.writer(stream, delimiter=_DELIMITERS[form], lineterminator="\n", quoting=csv.QUOTE_ALL)
        columns, ids = [field.names[0] for field in self.fields], self._ids()
        if self.keeps:
            rows = list(rows)
            columns = list(dict.fromkeys([*columns, *(to for row in rows for to in row)]))
        writer.writerow(columns)
        for row in rows:
            cells = ["" if row.get(column) is None else str(row[column]) for column in columns]
            if self.is_guarded:
                cells = [cell if column in ids else inert(cell) for column, cell in zip(columns, cells, strict=True)]
            # A reader passes over spaces after a delimiter, so a value that begins with one is quoted; so is a formula.
            is_quoted = any(cell[:1].isspace() or is_formula(cell) for cell in cells)
            (quoting if is_quoted else writer).writerow(cells)


def unique(
    rows: Iterable[tuple[int, tuple[Any, ...], V]],
    name: str,
    what: str,
    twice: Twice = "refuse",
    is_same: Callable[[V, V], bool] = lambda one, other: False,
) -> Iterator[V]:
    """Of several rows of one key the one that counts; others are counted and said.

    One that a later one replaces keeps its place, so that all are read before the first is given.

    Args:
        rows: lines, keys and rows.
        name: the file.
        what: the rows in the plural.
        twice: says which counts.
        is_same: whether two of a key say the same, and so are one.

    Raises:
        FormatError: two of one key are refused; names file and lines.
    """
    count, first = 0, dict[tuple[Any, ...], tuple[int, V]]()
    for count, (line, key, row) in enumerate(rows, 1):  # noqa: B007 - the number of rows
        before, known = first.setdefault(key, (line, row))
        if twice == "last wins":
            first[key] = line, row
        elif known is row:
            yield row
        elif twice == "refuse" and not is_same(known, row):
            said = " / ".join(str(one) for one in key if one not in (None, ""))
            raise FormatError(f"{said} stands in line {before} already; keep one", path=name, line=line)
    is_last = twice == "last wins"
    yield from (row for _, row in first.values() if is_last)
    again = "were replaced by a later one, which counts" if is_last else "repeat an earlier one; each is kept once"
    warn("%s: %d of the %s %s", name, count - len(first), what, again)


# Of each field the columns that may hold it; and those that hold none.
_Places: TypeAlias = "tuple[list[tuple[Field, list[str]]], list[str]]"


def _outer(fields: Iterable[Field]) -> set[str]:
    """The objects that hold fields of a row."""
    return {name.partition(".")[0] for field in fields for name in field.names if "." in name}


def flattened(cells: Cells, outer: Collection[str]) -> Cells:
    """A row in which the fields of these objects are columns with a dot."""
    made: dict[str, Any] = {}
    for column, value in cells.items():
        is_outer = column in outer and isinstance(value, dict)
        made |= {f"{column}.{inner}": one for inner, one in value.items()} if is_outer else {column: value}
    return made


def _nested(row: dict[str, Any], outer: set[str]) -> dict[str, Any]:
    """The same backwards."""
    made: dict[str, Any] = {}
    for column, value in row.items():
        first, dot, inner = column.partition(".")
        if dot and first in outer:
            made.setdefault(first, {})[inner] = value
        else:
            made[column] = value
    return made


def _places(fields: Sequence[Field], cells: Collection[str]) -> _Places:
    """Which columns of a row, which is flat, are which fields.

    Raises:
        FormatError: one that is needed has none; names the first field.
    """
    at = {plain_name(column): column for column in reversed(list(cells))} | {column: column for column in cells}
    taken = {name for field in fields if not field.to for name in field.names}
    found, lacking = [], []
    for field in filter(lambda field: field.to, fields):
        # Of several columns the first one that has a value counts. A name that may mean another thing, too, is taken
        # last, and then alone: question_id is the item beside topic_id, and a bare topic a question's category.
        others = {name for one in fields if one is not field for name in one.names}
        others |= {"topic"} if field.to == "query_id" else set()
        shared = {at[name]: name in others for name in field.names if name in at and at[name] not in taken}
        names = [column for column in shared if not shared[column]] or list(shared)[:1]
        taken.update(names)
        found.append((field, names))
        lacking += [field] if isinstance(field.default, Need) and not names else []
    if lacking:
        raise FormatError(lacks(lacking, cells), field=lacking[0].names[0])
    return found, [column for column in cells if column not in taken]


def lacks(lacking: Sequence[Field], columns: Collection[str]) -> str:
    """Which fields are not there, by their names, what is, and what may be meant."""
    needed = "; ".join(" or ".join(field.names[:6]) for field in lacking)
    said = meant(columns, {name: field.names[0] for field in reversed(lacking) for name in field.names})
    return f"lacks {needed}; it has {_listed(columns) or 'nothing'}{said}"


def _listed(columns: Collection[str]) -> str:
    return ", ".join(list(columns)[:_SHOWN]) + ", …" * (len(columns) > _SHOWN)


class _Reader:
    """Reads rows; most have the columns of those before.

    Args:
        fields: what a row says.
        is_sparse: whether known fields that are there without a value are kept among the others.
    """

    def __init__(self, fields: Sequence[Field], is_sparse: bool = False) -> None:
        self._fields, self._is_sparse, self._outer = fields, is_sparse, _outer(fields)
        self.places: dict[tuple[str, ...], _Places] = {}

    def __call__(self, cells: Cells) -> tuple[dict[str, Any], dict[str, Any]]:
        """What a row says by our names, and the fields that nobody knows; errors name the field."""
        cells = flattened(cells, self._outer) if self._outer else cells
        columns = tuple(cells)
        places = self.places.get(columns) or self.places.setdefault(columns, _places(self._fields, cells))
        said: dict[str, Any] = {}
        others: dict[str, Any] = {}
        for field, names in places[0]:
            if not names:
                said[field.to] = field.default
                continue
            column, value = _value(cells, names)
            if len(names) > 1:
                others.update((name, cells[name]) for name in names if name != column and cells.get(name))
            if value is None or (field.default is COLUMN and not str(value).strip()):
                if field.default is REQUIRED:
                    raise FormatError("is empty", field=column)
                other = None if field.default is COLUMN else field.default
                said[field.to] = field.parse("") if field.default is PRESENT else other
                if self._is_sparse and field.default is not PRESENT:
                    others[column] = cells[column]
                continue
            try:
                said[field.to] = field.parse(value)
            except FormatError as error:
                inner = error.field if error.field.startswith("[") else f".{error.field}"
                raise FormatError(error.problem, field=column + inner) from None
            except ValueError as error:
                problem = f"{error}; found {str(value)!r:.40}" if "found" not in str(error) else str(error)
                raise FormatError(problem, field=column) from None
        further = {column: cells[column] for column in places[1]} | others
        return said, _nested(further, self._outer) if self._outer else further


def _sieve(names: Sequence[str], only: AbstractSet[str], first: bytes) -> Callable[[bytes], bool]:
    """What tells a wanted line by its id, or that it has none, nothing else of it being read.

    Args:
        names: the fields that may be the id of objects, of which the first line tells which; else it is the first cell.
        only: the wanted ids.
        first: a line.
    """
    kept, decode = {*only, ""}, None
    if first.lstrip()[:1] == b"{":
        said = parse_json(first)
        field = next((one for one in names if said.get(one) not in (None, "")), names[0])
        id_alone: Any = defstruct("_Id", [("id", str | int | None, None)], rename={"id": field})
        decode = Decoder(id_alone).decode

    def may_be(line: bytes) -> bool:
        try:
            found = line.partition(b"\t")[0].decode() if decode is None else str(decode(line).id or "")
        except (ValueError, RecursionError):
            return True
        return found.strip() in kept

    return may_be


def _written(fields: Sequence[Field], said: Mapping[str, Any], is_sparse: bool) -> dict[str, Any]:
    """A row as it is written, with its further fields; see `Spec` for sparse ones."""
    outer = _outer(fields)
    further = flattened(said.get("further") or {}, outer)
    row: dict[str, Any] = {}
    for field in fields:
        name, value = field.names[0], said.get(field.to)
        shown = None if value is None else field.unparse(value)
        if shown is not None or not is_sparse:
            row[name] = shown
        elif name in further:
            row[name] = further[name]
    return _nested(row | {to: one for to, one in further.items() if to not in row}, outer)


def _value(cells: Cells, names: Sequence[str]) -> tuple[str, Any]:
    """The first column that has a value, and it; the first column and None where none has one."""
    for name in names:
        value = cells[name]
        # Frames have NaN where nothing stands.
        if value not in (None, "") and not (isinstance(value, float) and math.isnan(value)):
            return name, value
    return names[0], None


class RecordLines(Spec[list[R]], Generic[R], frozen=True, kw_only=True):
    """A format of objects that hold others, JSON lines: each is a typed record, which keeps what it has no field for.

    They are written as they were read, byte for byte, but for what `named`, `texts` or `is_lenient` change: the JSON of
    such an object is written anew. One that stands over several lines is put on one.

    Attributes:
        type: what each is; `key` has attributes of it.
        named: the object with what its file says of it by its name; raises ValueError.
        choices: the values of the fields that allow but a few texts, for errors.
        is_lenient: whether real files have NaN in the place of a text; it is none.
        texts: the JSON texts of a file with their lines, where they are others than those that stand there.
    """

    type: type[R]
    forms: tuple[Form, ...] = ("jsonl",)
    named: Callable[[R, str], R] | None = None
    choices: Sequence[str] = ()
    is_lenient: bool = False
    texts: Callable[[str], Iterable[tuple[int, bytes]]] = json_texts

    def each(self, path: PathName) -> Iterator[tuple[int, R]]:
        """The objects of a file with their lines, one after the other, whatever their keys.

        Raises:
            InputError: the file cannot be opened.
            FormatError: naming file, line and field; also when there are none.
        """
        name, decoder, line = path_name(path), Decoder(self.type), 0
        for line, data in self.texts(name):
            try:
                found = decoder.decode(data)
            except (ValueError, RecursionError):
                data = without_nan(data) if self.is_lenient and b"NaN" in data else data
                found = decoded(decoder, data, path=name, line=line, choices=self.choices)
            check_utf8(data, path=name, line=line)
            force_setattr(found, "_source", data)
            try:
                found = found if self.named is None else self.named(found, name)
            except ValueError as error:
                raise FormatError(str(error), path=name, line=line) from None
            yield line, found
        if not line:
            raise FormatError(f"is empty; expected {self.what}, one JSON object a line", path=name)

    def rows(self, source: Any, only: AbstractSet[str] | None = None) -> Iterator[Any]:
        """The objects that count; see `read`."""
        said = list(map(attrgetter, self.key))
        keyed = ((line, tuple(str(of(one)) for of in said) or (line,), one) for line, one in self.each(source))
        return unique(keyed, path_name(source), self.what, self.twice)

    def write(self, path: PathName, content: Iterable[R]) -> None:
        """Writes objects as they are, what they have no field for included.

        Raises:
            InputError: the file cannot be written, or there is nothing to write.
        """
        lines = [formatted(raw, indent=0) if b"\n" in raw else raw for raw in (one.raw for one in content)]
        if not lines:
            raise InputError(f"{path_name(path)}: there are no {self.what} to write")
        with atomic_writer(path) as stream:
            stream.writelines(line.decode("utf-8") + "\n" for line in lines)
