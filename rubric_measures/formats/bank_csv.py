"""A test bank as a table, an item a row, for people who edit it in a spreadsheet: CSV, or TSV by the file's name."""

from __future__ import annotations

import csv
import json
import logging
import math
from collections.abc import Iterable, Mapping
from typing import Any

from rubric_measures.base.errors import FormatError, InputError
from rubric_measures.base.files import atomic_writer, path_name
from rubric_measures.base.tables import active, inert
from rubric_measures.formats.bank import BankEntry, BankItem, item_id_of
from rubric_measures.formats.base import Format, Head, PathName
from rubric_measures.formats.delimited import cells_of, read_delimited

__all__ = ["BANK_CSV", "COLUMNS", "read_bank_csv", "write_bank_csv"]

COLUMNS = (
    "query_id", "item_id", "text", "kind", "importance", "weight", "facet", "gold_answers", "query_text",
)  # fmt: skip
_LOG = logging.getLogger("rubric_measures")
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
    header, rows = read_delimited(path)
    _check_header(header, name)
    read = [(line, dict(zip(header, (active(cell.strip()) for cell in cells), strict=True))) for line, cells in rows]
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
        BankEntry(
            query_id=query_id,
            items=items,
            **({"facet_id": facet} if facet else {}),
            **({"query_text": texts[query_id]} if query_id in texts else {}),
        )
        for (query_id, facet), items in members.items()
    ]


def _check_header(header: tuple[str, ...], name: str) -> None:
    missing = [column for column in ("query_id", "text") if column not in header]
    unknown = [column for column in header if column not in COLUMNS]
    if missing or unknown or len(set(header)) < len(header):
        said = [
            *([f"lacks {', '.join(missing)}"] if missing else []),
            *([f"has {', '.join(unknown)}"] if unknown else []),
            *(["names a column twice"] if len(set(header)) < len(header) else []),
        ]
        raise FormatError(f"the header {' and '.join(said)}; expected {','.join(COLUMNS)}", path=name, line=1)


def _item(cells: Mapping[str, str], usual: str, name: str, line: int) -> BankItem:
    def wrong(field: str, expected: str) -> FormatError:
        return FormatError(f"{cells[field]!r:.60} is not {expected}", path=name, line=line, field=field)

    kind = cells.get("kind") or usual
    if kind not in _KINDS:
        raise wrong("kind", "question or nugget")
    if not cells["text"]:
        raise FormatError("is empty; remove the row, or give the item a text", path=name, line=line, field="text")
    fields: dict[str, Any] = {f"{kind}_text": cells["text"]}
    if cells.get("item_id"):
        fields[f"{kind}_id"] = cells["item_id"]
    if cells.get("facet"):
        fields["facet_id"] = cells["facet"]
    if importance := cells.get("importance"):
        if importance not in _IMPORTANCES:
            raise wrong("importance", "vital or okay")
        fields["importance"] = importance
    if weight := cells.get("weight"):
        try:
            fields["weight"] = float(weight)
        except ValueError:
            raise wrong("weight", "a number") from None
        if not math.isfinite(fields["weight"]):
            raise wrong("weight", "a number")
    if answers := _answers(cells.get("gold_answers", "")):
        fields["gold_answers"] = answers
    return BankItem(**fields)


def _answers(cell: str) -> list[str]:
    if cell.startswith("["):
        try:
            listed = json.loads(cell)
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
