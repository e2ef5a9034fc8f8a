"""Test banks in our own form, and as CSV.

Test bank files: the Rubric workbench's JSON lines, one query or facet a line, read, written, and made a `TestBank`.

Source: Dietz, "A Workbench for Autograding Retrieve/Generate Systems", SIGIR 2024, section 4.1.

A test bank as a table, an item a row, for people who edit it in a spreadsheet: CSV, or TSV by the file's name.
"""

from __future__ import annotations

import contextlib
import csv
import json
import logging
import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Self

from pydantic import TypeAdapter, model_validator

from rubric_measures.base.errors import FormatError, InputError, warn
from rubric_measures.base.files import atomic_writer, iter_lines, path_name, peek_head
from rubric_measures.base.json_files import JsonLines, Record, TextId, validate_line
from rubric_measures.base.json_text import check_keys, json_texts, parse_json
from rubric_measures.base.tables import active, inert
from rubric_measures.formats.base import Format, Head, PathName, given, head_of
from rubric_measures.formats.tables import cells_of, rows_of
from rubric_measures.types.entities import Importance, ItemKind, RubricItem, TestBank, item_content, make_item_id

_LOG = logging.getLogger("rubric_measures")
_WITHOUT_TEXT = "a text for each facet and none of their own, which prompts that show the query need"
_NUMBER_ID = re.compile(rb'"query_id"\s*:\s*[-0-9]')


class BankItem(Record):
    """One question or nugget of a bank file.

    Attributes:
        query_id: the query; that of the entry when it is left out.
        facet_id: the facet; that of the entry when it is left out.
        question_id: the id of a question; made from the text when it is left out (assessors write banks by hand).
        question_text: the question.
        nugget_id: the id of a nugget, likewise.
        nugget_text: the key fact.
        gold_answers: the answer key.
        info: anything.
        importance: our addition: `vital` or `okay`.
        weight: our addition: the weight of a criterion.
    """

    query_id: TextId | None = None
    facet_id: TextId | None = None
    question_id: TextId | None = None
    question_text: str | None = None
    nugget_id: TextId | None = None
    nugget_text: str | None = None
    gold_answers: list[str] | None = None
    info: Any = None
    importance: Importance | None = None
    weight: float | None = None

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        question = self.question_id is not None or self.question_text is not None
        nugget = self.nugget_id is not None or self.nugget_text is not None
        if question == nugget:
            raise ValueError("an item is either a question (question_id, question_text) or a nugget")
        if not self.text.strip():
            raise ValueError(f"the item has no {self.kind}_text")
        return self

    @property
    def kind(self) -> ItemKind:
        """`question` or `nugget`."""
        return "nugget" if self.nugget_id is not None or self.nugget_text is not None else "question"

    @property
    def text(self) -> str:
        """The question or the nugget."""
        return (self.nugget_text if self.kind == "nugget" else self.question_text) or ""

    @property
    def given_id(self) -> str | None:
        """The id that the file gives, if any."""
        return self.nugget_id if self.kind == "nugget" else self.question_id


class BankEntry(Record):
    """One line of a bank file: the items of one query, or of one facet of it.

    Attributes:
        query_id: the query.
        facet_id: the facet, in banks that have some.
        facet_text: its heading.
        query_text: the query's text.
        test_collection: the collection that the query belongs to; banks without one are read.
        hash: the workbench's time stamp of the generation.
        info: anything, usually how the items were generated.
        items: the items, in order.
    """

    query_id: TextId
    facet_id: TextId | None = None
    facet_text: str | None = None
    query_text: str | None = None
    test_collection: str | None = None
    hash: Any = None
    info: Any = None
    items: list[BankItem]


_ENTRIES = JsonLines(TypeAdapter(BankEntry), "test bank entries")
write_bank = _ENTRIES.write


def read_bank(path: str | os.PathLike[str]) -> list[BankEntry]:
    """The entries of a bank file (gzip or plain JSON lines), as they stand in it.

    Raises:
        InputError: the file cannot be opened.
        FormatError: naming file, line and field; also when there are no entries.
    """
    return [entry for _, entry in _numbered_entries(path_name(path))]


def _numbered_entries(name: str) -> list[tuple[int, BankEntry]]:
    entries: list[tuple[int, BankEntry]] = []
    numbers = 0
    # Records are a list a line, which is not one list of entries.
    is_list = name != "-" and peek_head(name).lstrip()[:1] == b"["
    for line, data in (iter_lines if is_list else json_texts)(name):
        numbers += _NUMBER_ID.search(data) is not None
        start = data.lstrip()[:1]
        if start == b"[" or (start != b"{" and not entries):
            found = "a list (is this a file of graded passages?)" if start == b"[" else "no JSON object"
            problem = f"expected a test bank entry {{query_id, items, …}}; found {found}"
            raise FormatError(problem, path=name, line=line)
        entries.append((line, validate_line(_ENTRIES.adapter, data, path=name, line=line)))
        check_keys(data, path=name, line=line)
    if not entries:
        raise FormatError("holds no test bank entries", path=name)
    if numbers:
        warn("%s: query ids of %d lines are numbers; read as text", name, numbers)
    return entries


def is_bank(path: str | os.PathLike[str]) -> bool:
    """Whether the first line of a file is an entry of a bank: then no other format need be tried."""
    if path_name(path) == "-":
        return False
    try:
        return {"query_id", "items"} <= head_of(path).object.keys()
    except FormatError:
        return False


def load_bank(path: str | os.PathLike[str]) -> TestBank:
    """The bank of a file; several lines of one query (its facets) are merged, in file order.

    Item ids need not be the md5 of the text, because assessors edit banks; they must be unique in their query. An item
    that comes twice with the same text is kept once and counted. Texts of a query that differ by facet are the facets'
    (`title / section`: the title is the query's); of other differing texts the first is kept, and counted.

    Raises:
        InputError: the file cannot be opened.
        FormatError: as `read_bank`; also an id of two texts, two texts of one facet, an item of another query.
    """
    name = path_name(path)
    return _merge(_numbered_entries(name), name)


def bank_of_entries(entries: Iterable[BankEntry]) -> TestBank:
    """The bank that entries make together; see `load_bank`.

    Raises:
        FormatError: entries contradict each other.
    """
    return _merge([(0, entry) for entry in entries], "")


def _merge(numbered: Sequence[tuple[int, BankEntry]], name: str) -> TestBank:
    items: dict[str, dict[str, RubricItem]] = {}
    facet_texts: dict[tuple[str, str], str] = {}
    repeated = 0
    for line, entry in numbered:
        members = items.setdefault(entry.query_id, {})
        if entry.facet_id is not None and entry.facet_text is not None:
            key = (entry.query_id, entry.facet_id)
            known = facet_texts.setdefault(key, entry.facet_text)
            _same(known, entry.facet_text, f"facet {entry.facet_id!r}", name, line)
        for index, item in enumerate(entry.items):
            made = _rubric_item(entry, item, name, line, index)
            if members.setdefault(made.item_id, made) is not made:
                _same(members[made.item_id].text.strip(), made.text.strip(), f"item {made.item_id!r}", name, line)
                repeated += 1
    if repeated:
        _LOG.warning("%s: %d items come twice in their query; the first is kept", name or "test bank", repeated)
    query_texts = _query_texts([entry for _, entry in numbered], facet_texts, name)
    edited: dict[str, dict[str, frozenset[str]]] = {}
    for (query_id, item_id), mark in regrade_marks(entry for _, entry in numbered).items():
        if mark.needed:
            contents = mark.same_as | {item_content(items[query_id][item_id])}
            edited.setdefault(query_id, {})[item_id] = contents
    return TestBank(
        {query_id: tuple(members.values()) for query_id, members in items.items()}, query_texts, facet_texts, edited
    )


def _query_texts(entries: Sequence[BankEntry], facet_texts: dict[tuple[str, str], str], name: str) -> dict[str, str]:
    """The texts of queries; texts that differ by facet are the facets'.

    The workbench's generator writes `title / section` as the text of each section of a page (a facet of the query): the
    title is the text of the query then.

    Args:
        entries: the entries of the bank.
        facet_texts: (query id, facet id) -> text; gets what the text of a query says of a facet that has none.
        name: the file, for notes.
    """
    said: dict[str, dict[str | None, BankEntry]] = {}
    differing: dict[str, None] = {}
    for entry in entries:
        if entry.query_text is not None:
            first = said.setdefault(entry.query_id, {}).setdefault(entry.facet_id, entry)
            if first.query_text != entry.query_text:
                differing[entry.query_id] = None
    texts: dict[str, str] = {}
    without: list[str] = []
    for query_id, by_facet in said.items():
        own = by_facet.pop(None, None)
        titles = {_title(entry) for entry in by_facet.values()}
        if own is not None or None in titles:
            titles = {entry.query_text for entry in ([own] if own is not None else by_facet.values())}
        if len(titles) == 1:
            texts[query_id] = titles.pop() or ""
        else:
            without.append(query_id)
        for facet_id, entry in by_facet.items():
            if facet_id is not None and entry.query_text is not None and entry.query_text != texts.get(query_id):
                facet_texts.setdefault((query_id, facet_id), entry.query_text)
    for queries, what in ((list(differing), "two texts; the first is kept"), (without, _WITHOUT_TEXT)):
        if queries:
            _LOG.warning("%s: %d queries (such as %s) have %s", name or "test bank", len(queries), queries[0], what)
    return texts


def _title(entry: BankEntry) -> str | None:
    """The title in `title / section`, the text of the query in the entry of a section; None where it is none."""
    title, slash, rest = (entry.query_text or "").rpartition(f" / {entry.facet_text}")
    return title if title and slash and not rest and entry.facet_text is not None else None


def item_id_of(entry: BankEntry, item: BankItem) -> str:
    """The id of an item of an entry: the one that it gives, else the one that its words have."""
    return item.given_id or make_item_id(entry.query_id, item.text, _facet_of(entry, item))


def _facet_of(entry: BankEntry, item: BankItem) -> str | None:
    return item.facet_id if item.facet_id is not None else entry.facet_id


class RegradeMark(NamedTuple):
    """What a review wrote beside an item that it edited.

    Attributes:
        needed: whether the item needs new grades (`info.regrade`).
        same_as: what the item said before in other words that mean the same (`info.same_as`, as
            `entities.item_content`): grades that were made anew for these hold.
    """

    needed: bool
    same_as: frozenset[str]


def former_items(entry: BankEntry) -> list[str]:
    """The ids of items of the query that left the bank, as a review wrote them."""
    listed: Any = (entry.model_extra or {}).get("former_items")
    return [str(item_id) for item_id in listed] if isinstance(listed, list) else []


def regrade_marks(entries: Iterable[BankEntry]) -> dict[tuple[str, str], RegradeMark]:
    """(query_id, item_id) -> what the bank's file says about its grades, of the items that have such a mark."""
    found: dict[tuple[str, str], RegradeMark] = {}
    for entry in entries:
        for item in entry.items:
            if isinstance(item.info, dict) and isinstance(item.info.get("regrade"), bool):
                item_id = item_id_of(entry, item)
                same: Any = item.info.get("same_as")
                contents = frozenset(one for one in same if isinstance(one, str)) if isinstance(same, list) else ()
                found.setdefault((entry.query_id, item_id), RegradeMark(item.info["regrade"], frozenset(contents)))
    return found


def _same(known: str, found: str, what: str, name: str, line: int) -> None:
    if known != found:
        raise FormatError(f"{what} has two texts, {known!r} and {found!r}; keep one", path=name, line=line)


def _rubric_item(entry: BankEntry, item: BankItem, name: str, line: int, index: int) -> RubricItem:
    if item.query_id is not None and item.query_id != entry.query_id:
        raise FormatError(
            f"the item belongs to query {item.query_id!r}, its entry to {entry.query_id!r}",
            path=name,
            line=line,
            field=f"items[{index}].query_id",
        )
    return RubricItem(
        item_id=item_id_of(entry, item),
        query_id=entry.query_id,
        text=item.text,
        kind=item.kind,
        facet_id=_facet_of(entry, item),
        gold_answers=tuple(item.gold_answers or ()),
        importance=item.importance,
        weight=item.weight,
        info=item.info,
    )


def bank_entries(
    bank: TestBank, *, test_collection: str = "", info: Mapping[str, Any] | None = None
) -> list[BankEntry]:
    """The entries that write a bank: one for each query and facet, in order of first appearance.

    Args:
        bank: the bank.
        test_collection: the name of the collection; the workbench wants one.
        info: how the bank came about, written into every entry.
    """
    entries = []
    for query_id, items in bank.items.items():
        facets: dict[str | None, list[BankItem]] = {} if items else {None: []}
        for item in items:
            facets.setdefault(item.facet_id, []).append(_bank_item(item))
        for facet_id, members in facets.items():
            fields = {
                "query_id": query_id,
                "facet_id": facet_id,
                "facet_text": None if facet_id is None else bank.facet_texts.get((query_id, facet_id)),
                "query_text": bank.query_texts.get(query_id),
                "test_collection": test_collection,
                "info": None if info is None else dict(info),
            }
            entries.append(BankEntry(**given(fields), items=members))
    return entries


def _bank_item(item: RubricItem) -> BankItem:
    fields = {
        "query_id": item.query_id,
        "facet_id": item.facet_id,
        f"{item.kind}_id": item.item_id,
        f"{item.kind}_text": item.text,
        "gold_answers": list(item.gold_answers) or None,
        "importance": item.importance,
        "weight": item.weight,
        "info": item.info,
    }
    return BankItem(**given(fields))


BANK = Format(
    "bank",
    "test bank of the Rubric workbench (.jsonl.gz)",
    read_bank,
    write_bank,
    lambda head: "items" in head.object,
)

COLUMNS = (
    "query_id", "item_id", "text", "kind", "importance", "weight", "facet", "gold_answers", "query_text",
)  # fmt: skip
_KINDS = ("question", "nugget")
_IMPORTANCES = ("vital", "okay")


def read_bank_csv(path: PathName) -> list[BankEntry]:
    """The entries of a table of items, an entry a query and facet, in order of first appearance.

    The columns `query_id` and `text` must be there. An empty `item_id` is made from the text. Where a row says no
    `kind`, it is a question if the texts of all such rows end with a question mark, else a nugget. `gold_answers` are a
    JSON list, or parted by `|`. A row without text and item id says that its query has no items.

    Raises:
        InputError: the file cannot be opened.
        FormatError: a column is missing or unknown, or a cell is wrong; names file, line and column.
    """
    name = path_name(path)
    found = rows_of(path, "items")
    _check_header(found.columns or (), name)
    read = [(line, {column: active(cell.strip()) for column, cell in cells.items()}) for line, cells in found.rows]
    if not read:
        raise FormatError("holds no items", path=name)
    without = [cells["text"] for _, cells in read if cells["text"] and not cells.get("kind")]
    usual = "question" if all(text.endswith(("?", "？", "؟")) for text in without) else "nugget"
    members: dict[tuple[str, str], list[BankItem]] = {}
    texts: dict[str, str] = {}
    places: dict[tuple[str, str], int] = {}
    for line, cells in read:
        query_id, facet = cells["query_id"], cells.get("facet", "")
        if not query_id:
            raise FormatError("is empty", path=name, line=line, field="query_id")
        said = cells.get("query_text", "")
        if said and texts.setdefault(query_id, said) != said:
            problem = f"query {query_id} has another text in a row above; keep one"
            raise FormatError(problem, path=name, line=line, field="query_text")
        items = members.setdefault((query_id, facet), [])
        if not cells["text"] and not cells.get("item_id"):
            continue
        item = _item(cells, usual, name, line)
        item_id = item_id_of(BankEntry(query_id=query_id, facet_id=facet or None, items=[]), item)
        before = places.setdefault((query_id, item_id), line)
        if before != line:
            raise FormatError(f"item {item_id} stands in line {before} already; keep one", path=name, line=line)
        items.append(item)
    return [
        BankEntry(query_id=key[0], items=items, **given({"facet_id": key[1] or None, "query_text": texts.get(key[0])}))
        for key, items in members.items()
    ]


def _check_header(header: tuple[str, ...], name: str) -> None:
    missing = [column for column in ("query_id", "text") if column not in header]
    unknown = [column for column in header if column not in COLUMNS]
    said = [f"lacks {', '.join(missing)}"] * bool(missing) + [f"has {', '.join(unknown)}"] * bool(unknown)
    said += ["names a column twice"] * (len(set(header)) < len(header))
    if said:
        raise FormatError(f"the header {' and '.join(said)}; expected {','.join(COLUMNS)}", path=name, line=1)


def _item(cells: Mapping[str, str], usual: str, name: str, line: int) -> BankItem:
    def wrong(field: str, expected: str) -> FormatError:
        return FormatError(f"{cells[field]!r:.60} is not {expected}", path=name, line=line, field=field)

    kind = cells.get("kind") or usual
    if kind not in _KINDS:
        raise wrong("kind", "question or nugget")
    if not cells["text"]:
        raise FormatError("is empty; remove the row, or give the item a text", path=name, line=line, field="text")
    importance, weight = cells.get("importance") or None, None
    if importance not in (None, *_IMPORTANCES):
        raise wrong("importance", "vital or okay")
    if cells.get("weight"):
        with contextlib.suppress(ValueError):
            weight = float(cells["weight"])
        if weight is None or not math.isfinite(weight):
            raise wrong("weight", "a number")
    fields = {
        f"{kind}_text": cells["text"],
        f"{kind}_id": cells.get("item_id") or None,
        "facet_id": cells.get("facet") or None,
        "importance": importance,
        "weight": weight,
        "gold_answers": _answers(cells.get("gold_answers", "")) or None,
    }
    return BankItem(**given(fields))


def _answers(cell: str) -> list[str]:
    if cell.startswith("["):
        try:
            listed = parse_json(cell)
        except ValueError:
            listed = None
        if isinstance(listed, list) and all(isinstance(one, str) for one in listed):
            return listed
    return [part.strip() for part in cell.split("|") if part.strip()]


def write_bank_csv(path: PathName, entries: Iterable[BankEntry]) -> None:
    """Writes a bank as a table; a name that ends in .tsv (or .tsv.gz) has tabs between its cells.

    What it has no place for (`info` of items, texts of facets) is counted and left out. No spreadsheet takes a
    text for a formula: one that begins like one gets a `'`, which the reader takes off.

    Raises:
        InputError: there are no entries, or the file cannot be written.
    """
    entries = list(entries)
    if not entries:
        raise InputError(f"{path_name(path)}: there are no items to write")
    delimiter = "\t" if path_name(path).removesuffix(".gz").endswith(".tsv") else ","
    with atomic_writer(path) as stream:
        writer = csv.writer(stream, delimiter=delimiter, lineterminator="\n")
        writer.writerow(COLUMNS)
        for entry in entries:
            listed: list[BankItem | None] = [*entry.items]
            for item in listed or [None]:
                cells = _cells(entry, item)
                writer.writerow([inert(cells.get(column, "")) for column in COLUMNS])
    lost = {
        "the info of %d items": sum(item.info is not None for entry in entries for item in entry.items),
        "the texts of %d facets": sum(entry.facet_text is not None for entry in entries),
    }
    if any(lost.values()):
        said = " and ".join(text % count for text, count in lost.items() if count)
        _LOG.warning("%s: a table of items has no place for %s; left out", path_name(path), said)


def _cells(entry: BankEntry, item: BankItem | None) -> dict[str, str]:
    cells = {"query_id": entry.query_id, "facet": entry.facet_id or "", "query_text": entry.query_text or ""}
    if item is None:
        return cells
    answers = item.gold_answers or []
    is_plain = all("|" not in one and one == one.strip() and one[:1] not in ("", "[") for one in answers)
    return cells | {
        "item_id": item_id_of(entry, item),
        "text": item.text,
        "kind": item.kind,
        "importance": item.importance or "",
        "weight": "" if item.weight is None else repr(item.weight),
        "facet": item.facet_id or entry.facet_id or "",
        "gold_answers": " | ".join(answers) if is_plain else json.dumps(answers, ensure_ascii=False),
    }


def _is_bank(head: Head) -> bool:
    header = set() if head.is_json else set(cells_of(head.line))
    own = {"item_id", "kind", "importance", "weight", "gold_answers"}
    return {"query_id", "text"} <= header <= set(COLUMNS) and bool(header & own)


BANK_CSV = Format(
    "bank",
    "test bank as a table, an item a row (.csv, .tsv)",
    read_bank_csv,
    write_bank_csv,
    _is_bank,
)
