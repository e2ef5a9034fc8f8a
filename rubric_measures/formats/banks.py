"""Test banks: the questions or key facts of each query, in the files of all programs that have some.

A bank is entries (a query, or a facet of it) with items; each format is a spec of their fields. Files of one format are
written as they were read; those of another over the `TestBank` that they make, and what that format lacks is said.

Sources: Dietz, "A Workbench for Autograding Retrieve/Generate Systems", SIGIR 2024, section 4.1 (`bank`); Pradeep et
al., AutoNuggetizer, TREC 2024 RAG track (`nuggets`); ResearchRubrics (`rubrics`); RAGDoll, the toolkit of TREC RAG 2026
(`ragdoll:rubric`); TREC Auto-Judge (`nugget-bank`) and RAGTIME 2026 (`nugget-lists`); Kembhavi et al., "Are You Smarter
Than A Sixth Grader?", CVPR 2017, used as a test bank by EXAM++, section 5 (`tqa`).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from itertools import chain, count, groupby, pairwise
from types import MappingProxyType
from typing import Any, get_args

from msgspec import Struct
from msgspec.structs import asdict

from rubric_measures.base.errors import FormatError, InputError, counted, warn
from rubric_measures.base.files import path_name
from rubric_measures.base.json_text import parse_json
from rubric_measures.formats.base import Head, PathName, cells_of, given, head_of
from rubric_measures.formats.specs import (
    DOC_IDS,
    REQUIRED,
    Row,
    Spec,
    figure,
    same,
    spec,
    stripped,
    table,
    text,
    texts,
    words,
)
from rubric_measures.formats.tables import plain_name
from rubric_measures.types.entities import Importance, ItemKind, RubricItem, TestBank, item_content, make_item_id

_WITHOUT_TEXT = "a text for each facet and none of their own, which prompts that show the query need"
_KINDS: tuple[ItemKind, ...] = get_args(ItemKind)
# What a review writes into the info of an item that it edited; no other program asks for it.
MARKS = ("edited_by", "edited_at", "edit", "regrade")
# Format -> what its entries say of themselves, which is nothing of the bank.
_OF_FORM = {"nugget-bank": ("format_version", "nugget_bank", "claim_bank"), "ragdoll:rubric": ("status", "task_id")}
# Formats whose items are called by their text without the blanks around it.
_STRIPPED = ("nuggets", "rubrics", "ragdoll:rubric")
# Formats in which a query has several rows, that of an entry which was made among them.
BY_FACET = ("", "bank", "bank:csv")
# Formats that call an item without an id by the md5 of its text.
_HASHED = ("nugget-bank", "nugget-lists")


def facet_ids(texts: Iterable[str | None]) -> dict[str, str]:
    """Facet text -> a short id: its lower-case words joined by hyphens, numbered where two would be the same.

    Blank texts are no facet.

    >>> facet_ids(['"Key advantages of nuclear energy"', None, "Key advantages of nuclear energy?"])
    {'"Key advantages of nuclear energy"': 'key-advantages-of-nuclear-energy', \
'Key advantages of nuclear energy?': 'key-advantages-of-nuclear-energy-2'}
    """
    ids: dict[str, str] = {}
    for said in texts:
        stripped = (said or "").strip()
        if not stripped or stripped in ids:
            continue
        words = "-".join(re.findall(r"\w+", stripped.lower()))[:60].rstrip("-") or "facet"
        named = chain([words], (f"{words}-{number}" for number in count(2)))
        ids[stripped] = next(one for one in named if one not in ids.values())
    return ids


def known_label(value: Any) -> Any:
    """Older files write labels with capitals, spaces and hyphens, and `okey`; RAGDoll writes `fail`."""
    if not isinstance(value, str):
        return value
    label = "_".join(value.lower().replace("-", " ").replace("_", " ").split())
    return {"okey": "okay", "fail": "failed"}.get(label, label)


def known_importance(value: Any) -> Importance | None:
    """The importance that a text says; None for what is neither vital nor okay."""
    # Most say it as it is written today.
    label = value if value in ("vital", "okay") else known_label(value)
    return label if label in ("vital", "okay") else None


class BankEntry(Struct, frozen=True, kw_only=True):
    """The items of one query, or of one facet of it.

    Attributes:
        query_id: the query.
        items: the items, in order.
        facet_id: the facet, in banks that have some.
        facet_text: its heading.
        query_text: the query's text.
        facets: facet id -> text, of those that the items name.
        odd: importances other than vital and okay, with their counts.
        further: what else the file says of it: `test_collection`, `info` (usually how the items were generated), …
        form: the format that it was read from; empty where it was made.
        line: its line in the file.
        row: what the file says, as it is written again in the same format; empty where it was made.
    """

    query_id: str
    items: Sequence[RubricItem]
    facet_id: str | None = None
    facet_text: str | None = None
    query_text: str | None = None
    facets: Mapping[str, str] = {}
    odd: Mapping[str, int] = {}
    further: Mapping[str, Any] = {}
    form: str = ""
    line: int = 0
    row: Mapping[str, Any] = {}


def bank_of_entries(entries: Iterable[BankEntry], name: str = "", *, says: bool = True) -> TestBank:
    """The bank that entries make together; several of one query (its facets) are merged, in order.

    Item ids need not be the md5 of the text, because assessors edit banks; they must be unique in their query. Of an
    item that comes twice with the same text the first counts; these are counted, and so are importances other than
    vital and okay, which are none and stay in `info`. A query whose text differs by facet has none (`title / section`:
    the title is the query's); of other differing texts the first is kept. Both are counted.

    Args:
        entries: the entries.
        name: the file, for messages.
        says: whether what was counted is said.

    Raises:
        FormatError: an id of two texts, two texts of one facet, an item of another query; names file and line.
    """
    entries = list(entries)
    items: dict[str, dict[str, RubricItem]] = {}
    facet_texts: dict[tuple[str, str], str] = {}
    further: dict[str, dict[str, Any]] = {}
    notes, odd = Counter[str](), Counter[str]()
    for entry in entries:
        members = items.setdefault(entry.query_id, {})
        if entry.facet_id is not None and entry.facet_text is not None:
            known = facet_texts.setdefault((entry.query_id, entry.facet_id), entry.facet_text)
            _same(known, entry.facet_text, f"facet {entry.facet_id!r}", name, entry.line)
        facet_texts |= {(entry.query_id, facet_id): said for facet_id, said in entry.facets.items()}
        odd.update(entry.odd)
        of_form = _OF_FORM.get(entry.form, ())
        kept = {to: value for to, value in entry.further.items() if value not in (None, "") and to not in of_form}
        further[entry.query_id] = kept | further.get(entry.query_id, {})
        for index, one in enumerate(entry.items):
            if one.query_id != entry.query_id:
                problem = f"the item belongs to query {one.query_id!r}, its entry to {entry.query_id!r}"
                raise FormatError(problem, path=name, line=entry.line, field=f"items[{index}].query_id")
            notes["every"] += needs_all_answers(one) and len(one.gold_answers) > 1
            first = members.setdefault(one.item_id, one)
            if first is not one:
                _same(first.text.strip(), one.text.strip(), f"item {one.item_id!r}", name, entry.line)
                notes["twice"] += 1
    query_texts = _query_texts(entries, name, says)
    if says:
        called = name or "test bank"
        warn("%s: %d items come twice in their query; the first is kept", called, notes["twice"])
        warn("%s: %d importances other than vital and okay (%s) are none", called, odd.total(), shown_counts(odd))
        warn(
            "%d questions need all of their answers (AND): any is gold to a grader; judged reports need all",
            notes["every"],
        )
    edited: dict[str, dict[str, str]] = {}
    for (query_id, item_id), is_needed in regrade_marks(
        one for found in items.values() for one in found.values()
    ).items():
        if is_needed:
            edited.setdefault(query_id, {})[item_id] = item_content(items[query_id][item_id])
    return TestBank(
        {query_id: tuple(members.values()) for query_id, members in items.items()}, query_texts, facet_texts, edited,
        {query_id: said for query_id, said in further.items() if said},
    )  # fmt: skip


def items_of(
    form: str,
    query_id: str,
    rows: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]],
    kind: Any = None,
    facet_id: str | None = None,
) -> tuple[list[RubricItem], dict[str, str], Counter[str]]:
    """The items of an entry as they are scored, in order; facet id -> text; and importances that are none.

    Args:
        form: the format.
        query_id: the query.
        rows: what it says of each by our names, and what has no name here.
        kind: what they are, where they do not say it.
        facet_id: their facet, where they do not say it.
    """
    facets = facet_ids(said.get("facet_text") for said, _ in rows if said.get("facet_id") is None)
    odd = Counter[str]()

    def item(said: Mapping[str, Any], others: Mapping[str, Any]) -> RubricItem:
        words = said["text"].strip() if form in _STRIPPED else said["text"]
        facet = said.get("facet_id")
        if facet is None:
            facet = facets.get((said.get("facet_text") or "").strip(), facet_id)
        stated, weight, info = said.get("importance"), said.get("weight"), said.get("info")
        importance = known_importance(stated)
        further = given({to: value for to, value in said.items() if to not in _OF_ITEMS})
        further |= {to: value for to, value in others.items() if value is not None or to == "importance"}
        if isinstance(stated, int | float):
            weight = stated
        elif importance is None and stated is not None:
            further["importance"] = stated
        if further.get("importance") is not None:
            odd[str(further["importance"])] += 1
        answers = said.get("gold_answers") or []
        answers = list(answers.values()) if isinstance(answers, dict) else answers
        if any(isinstance(one, dict) and len(one) > 1 for one in answers):
            further["answers"] = answers
        if further:
            info = further | (info if isinstance(info, dict) else given({"info": info}))
        item_id = said.get("item_id")
        if not item_id and form in _HASHED:
            item_id = hashlib.md5(said["text"].encode("utf-8"), usedforsecurity=False).hexdigest()
        own = said.get("query_id")
        return RubricItem(
            item_id=item_id or make_item_id(query_id, said["text"], facet),
            query_id=query_id if own is None else own, text=words, kind=said.get("kind", kind), facet_id=facet,
            gold_answers=tuple(one if isinstance(one, str) else one["answer"] for one in answers),
            importance=importance, weight=None if weight is None else float(weight), info=info,
        )  # fmt: skip

    made = [item(said, others) for said, others in rows]
    return made, {facet: said for said, facet in facets.items()}, odd


def shown_counts(counts: Counter[str]) -> str:
    """The three words that come most often, with their counts."""
    return ", ".join(f"{word!r} {count}" for word, count in counts.most_common(3))


def _query_texts(entries: Sequence[BankEntry], name: str, says: bool) -> dict[str, str]:
    """The texts of queries: that of an entry without a facet, else the one that the entries of all facets share.

    The workbench's generator writes `title / section` as the text of each section of a page (a facet of the query): the
    title is the text of the query then.

    Args:
        entries: the entries of the bank.
        name: the file, for notes.
        says: whether what was counted is said.
    """
    own: dict[str, dict[str, None]] = {}
    shared: dict[str, dict[str, None]] = {}
    for entry in entries:
        if entry.query_text is not None:
            title = entry.query_text.removesuffix(f" / {entry.facet_text}")
            of_query = (own if entry.facet_id is None else shared).setdefault(entry.query_id, {})
            of_query[entry.query_text if entry.facet_id is None else title] = None
    texts = {query_id: next(iter(found)) for query_id, found in {**shared, **own}.items()}
    several = [one for one, found in own.items() if len(found) > 1]
    without = [one for one, found in shared.items() if one not in own and len(found) > 1]
    for queries, what in ((several, "two texts; the first is kept"), (without, _WITHOUT_TEXT)):
        if queries and says:
            warn("%s: %d queries (such as %s) have %s", name or "test bank", len(queries), queries[0], what)
    return {query_id: said for query_id, said in texts.items() if query_id not in without}


def _same(known: str, found: str, what: str, name: str, line: int) -> None:
    if known != found:
        raise FormatError(f"{what} has two texts, {known!r} and {found!r}; keep one", path=name, line=line)


def bank_entries(
    bank: TestBank, *, test_collection: str = "", info: Mapping[str, Any] | None = None, by_query: bool = False
) -> list[BankEntry]:
    """The entries that write a bank: one for each facet of a query whose items stand together, in order.

    Args:
        bank: the bank.
        test_collection: the name of the collection; empty for that which the bank itself says.
        info: how the bank came about, written into every entry.
        by_query: whether a query has one entry, in which each item names its facet.
    """
    entries = []
    headings: Mapping[Any, str] = bank.facet_texts
    for query_id, items in bank.items.items():
        further = {**bank.further.get(query_id, {}), **given({"info": info and dict(info)})}
        if not by_query:
            # The workbench wants one.
            further["test_collection"] = test_collection or further.get("test_collection", "")
        shared: dict[str, Any] = {"query_text": bank.query_texts.get(query_id), "further": further}
        groups = [(None, list(items))]
        if items and not by_query:
            groups = [(facet_id, list(found)) for facet_id, found in groupby(items, lambda item: item.facet_id)]
        for facet_id, members in groups:
            named = {one.facet_id: headings.get((query_id, one.facet_id), one.facet_id) for one in members}
            facets = {facet: said for facet, said in named.items() if facet is not None and said is not None}
            heading = headings.get((query_id, facet_id))
            entries.append(
                BankEntry(
                    query_id=query_id, facet_id=facet_id, facet_text=heading, items=members,
                    facets=facets if by_query else {}, **shared,
                )
            )  # fmt: skip
    return entries


def former_items(further: Mapping[str, Any]) -> list[str]:
    """The ids of items that left the bank, as a review wrote them beside a query."""
    listed = further.get("former_items")
    return [str(item_id) for item_id in listed] if isinstance(listed, list) else []


def regrade_marks(items: Iterable[RubricItem]) -> dict[tuple[str, str], bool]:
    """(query_id, item_id) -> whether an item needs new grades, of those of which a review said it (`info.regrade`)."""
    said = {(item.query_id, item.item_id): item.info.get("regrade") for item in items if isinstance(item.info, dict)}
    return {place: mark for place, mark in said.items() if isinstance(mark, bool)}


# What an item has, and how a note calls it.
_SAID: Mapping[str, str] = {
    "item_id": "ids", "text": "texts", "kind": "kinds", "gold_answers": "gold answers", "importance": "importance",
    "weight": "weights", "info": "info",
}  # fmt: skip


def losses(before: TestBank, after: TestBank) -> str:
    """How many items of a bank lost what in another kind of file, in words: "ids of 2 items, weights of 1 item".

    Items are compared in order, query by query; what is said of a query as well.

    Args:
        before: the bank.
        after: what another file holds of it.
    """
    counts = Counter({("", "item"): 0, **{(f"{said} of ", "item"): 0 for said in _SAID.values()}})
    for query_id, items in before.items.items():
        found = after.items.get(query_id, ())
        counts["", "item"] += abs(len(items) - len(found))
        for old, new in zip(items, found, strict=False):
            pairs = {said: (_unmarked(old, to), _unmarked(new, to)) for to, said in _SAID.items()}
            counts.update((f"{said} of ", "item") for said, (had, has) in pairs.items() if had and had != has)
        counts["texts of ", "query"] += before.query_texts.get(query_id) != after.query_texts.get(query_id)
        said = after.further.get(query_id, {})
        further = before.further.get(query_id, {})
        counts.update((f"{to} of ", "query") for to in further if said.get(to) != further[to])
    kept = {(key[0], one) for key, one in after.facet_texts.items()}
    counts["texts of ", "facet"] = len({(key[0], one) for key, one in before.facet_texts.items()} - kept)
    return ", ".join(what + counted(count, of) for (what, of), count in counts.items() if count)


def _unmarked(item: RubricItem, to: str) -> Any:
    """What an item has, without what a review notes of its grades."""
    value = getattr(item, to)
    return {one: said for one, said in value.items() if one not in MARKS} if isinstance(value, dict) else value


# What the rows of entries and of items have by our names; all else is further.
_OF_ENTRIES = ("query_id", "facet_id", "facet_text", "query_text")
_OF_ITEMS = (*RubricItem.__struct_fields__, "facet_text", "key")


def _entry(form: str, row: Row, kind: ItemKind | None) -> BankEntry:
    own: dict[str, Any] = {to: row.said.get(to) for to in _OF_ENTRIES}
    rows = [(one.said, one.further) for one in row.said.get("items") or ()]
    items, facets, odd = items_of(form, row.said["query_id"], rows, kind, own["facet_id"])
    rest = given({to: value for to, value in row.said.items() if to not in (*_OF_ENTRIES, "items")})
    made: dict[str, Any] = {"items": items, "facets": facets, "odd": odd, "further": rest | row.further}
    return BankEntry(**own, **made, form=form, line=row.line, row=row.cells)


def _said(entry: BankEntry, is_whole: bool) -> dict[str, Any]:
    """What a format says of an entry; where it knows no `info`, what that says are fields of their own, marks aside."""

    def item(one: RubricItem) -> dict[str, Any]:
        beside = {"gold_answers": one.gold_answers or None, "facet_text": entry.facets.get(one.facet_id or "")}
        own = given({**asdict(one), **beside})
        if is_whole:
            return own
        info = own.pop("info", {})
        info = info if isinstance(info, dict) else {"info": info}
        further = {to: said for to, said in info.items() if to not in MARKS}
        return {**{to: said for to, said in further.items() if to not in _OF_ITEMS}, **own, "further": further}

    own = given({to: getattr(entry, to) for to in _OF_ENTRIES})
    return {**entry.further, **own, "further": entry.further, "items": list(map(item, entry.items))}


def _bank(
    form: str,
    *,
    kind: ItemKind | None = None,
    adapt: Callable[[dict[str, Any]], dict[str, Any]] = lambda said: said,
    each: Callable[[dict[str, Any]], dict[str, Any]] = lambda item: item,
    nest: Callable[[list[Row]], Iterable[Row]] = lambda rows: rows,
    flatten: Callable[[dict[str, Any]], Iterable[dict[str, Any]]] = lambda said: (said,),
    types: Mapping[str, Any] = MappingProxyType({}),
    **more: Any,
) -> Spec[list[BankEntry]]:
    """A format of banks.

    Args:
        form: its name.
        kind: what all items are, where they do not say it.
        adapt: makes of what is said of an entry from elsewhere what the format wants, or refuses it.
        each: makes of what is said of its items what the format wants, or refuses one; before that.
        nest: makes of the rows of a file rows with `items`, and `flatten` of such a row rows of a file.
        types, more: see `spec`.
    """
    by_query = form not in BY_FACET

    def into(rows: list[Row]) -> list[BankEntry]:
        return [_entry(form, row, kind) for row in nest(rows)]

    def said_of(bank: TestBank) -> list[dict[str, Any]]:
        names = {"further", *(field.to for field in bank_spec.fields)}
        made = (_said(entry, form == "bank") for entry in bank_entries(bank, by_query=by_query))
        adapted = (adapt({**said, "items": list(map(each, said["items"]))}) for said in made)
        return [{to: one for to, one in row.items() if to in names} for said in adapted for row in flatten(said)]

    def outof(content: Iterable[BankEntry]) -> Sequence[Mapping[str, Any]]:
        entries = list(content)
        is_own = all(one.form == form for one in entries)
        if is_own and (not by_query or len({one.query_id for one in entries}) == len(entries)):
            return [one.row if form == "bank:csv" else {"further": one.row} for one in entries]
        bank = bank_of_entries(entries)
        two = Counter(to for _, to in {
            (one.query_id, to): 0 for one in entries for to, value in one.further.items()
            if value not in (None, "") and bank.further.get(one.query_id, {}).get(to, value) != value
        })  # fmt: skip
        warn("%d fields of queries have two values (%s); the first is kept", two.total(), shown_counts(two))
        rows = said_of(bank)
        if rows and form != "bank":
            after = bank_of_entries(bank_spec.read(list(map(bank_spec.object, rows))), says=False)
            if lost := losses(bank, after):
                warn(f"{form} cannot hold all of the bank: {lost}")
        return rows

    usual: dict[str, Any] = {"what": "items", "forms": ("jsonl",), "is_sparse": True, "is_compact": True}
    said = {**usual, "by_hand": True, "keeps": True, **table(form), **more}
    bank_spec: Spec[list[BankEntry]] = spec(form, types, into=into, outof=outof, **said)
    _FORMS[form] = bank_spec, said_of
    return bank_spec


# Format -> its spec, and what it says of a bank.
_FORMS: dict[str, tuple[Spec[list[BankEntry]], Callable[[TestBank], list[dict[str, Any]]]]] = {}


def read_rows(rows: Any, form: str) -> list[BankEntry]:
    """The entries that rows in memory, or a frame, are in a format (a key of `FORMATS`).

    Raises:
        InputError: they are no rows.
        FormatError: naming row and field.
    """
    return _FORMS[form][0].read(rows)


def written_rows(bank: TestBank, form: str) -> list[dict[str, Any]]:
    """The rows that write a bank in a format (a key of `FORMATS`).

    Raises:
        InputError: that cannot hold the bank.
    """
    bank_spec, said_of = _FORMS[form]
    return list(map(bank_spec.object, said_of(bank)))


BANK = _bank("bank")
read_bank, write_bank = BANK.read, BANK.write
# What a row of `bank` says of an item; all else is a field that nobody knows.
_ROWS = table("bank")["fields"][-1]["rows"].values()
OF_ITEMS = {name for fields in _ROWS for field in fields for name in field.get("names", [field["to"]])}


def row_of(entry: BankEntry) -> dict[str, Any]:
    """What a file of the workbench says of an entry."""
    return dict(entry.row if entry.form == "bank" else BANK.object(_said(entry, True)))


def load_bank(path: PathName) -> TestBank:
    """The test bank of a file of the workbench; see `bank_of_entries`.

    Raises:
        InputError: the file cannot be opened.
        FormatError: naming file, line and field.
    """
    return bank_of_entries(read_bank(path), path_name(path))


def is_bank(path: PathName) -> bool:
    """Whether the first line of a file is an entry of the workbench: then no other format need be tried."""
    return path_name(path) != "-" and {"query_id", "items"} <= head_of(path).object.keys()


def _parted(value: Any) -> list[str]:
    """Answers as a list, as JSON, or parted by `|`."""
    if isinstance(value, list):
        return texts(value)
    cell = stripped(value)
    if cell.startswith("["):
        try:
            return texts(parse_json(cell))
        except ValueError:
            pass
    return [part.strip() for part in cell.split("|") if part.strip()]


def _joined(answers: Sequence[str]) -> str:
    is_plain = all("|" not in one and one == one.strip() and one[:1] not in ("", "[") for one in answers)
    return " | ".join(answers) if is_plain else json.dumps(list(answers), ensure_ascii=False)


def _nested(rows: list[Row]) -> Iterator[Row]:
    """Rows of items as entries; where a row says no kind, all such are questions if all end with a question mark."""
    without = [row.said["text"] for row in rows if row.said["text"] and not row.said["kind"]]
    usual = "question" if all(one.endswith(("?", "？", "؟")) for one in without) else "nugget"
    for row in rows:
        filled = {plain_name(column) for column, cell in row.cells.items() if cell}
        # Beside the text of an item a column `nugget` is one more column.
        kind = "nugget" if filled & {*_ITEM_TEXTS, "nugget", "kind"} == {"nugget"} else row.said["kind"] or usual
        said = {**row.said, "kind": kind if row.said["text"] else None}
        entry = {to: said[to] for to in ("query_id", "query_text", "facet_id")}
        items = [Row(row.line, {**said, "query_text": None}, row.further)] if said["text"] else []
        yield Row(row.line, {**entry, "items": items}, {}, {**said, "further": row.further})


def _flat(said: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for item in said["items"] or [{}]:
        yield {**said, "further": {}, **item}


def _texts_only(item: dict[str, Any]) -> dict[str, Any]:
    """An item that says nothing but texts besides; `losses` counts what else it said."""
    return {**item, "further": {to: said for to, said in item["further"].items() if type(said) is str}}


# What tables of other things have.
_OTHERS = {*DOC_IDS, "run_id", "grade", "label", "relevance", "answer"}


# The columns of the text of an item, and the kind that they tell.
_ITEM_TEXTS = {"text": None, "question_text": "question", "nugget_text": "nugget", "question": "question"}


def _usual_kind(columns: Set[str]) -> Any:
    """The kind of items whose row says none: that which the column of their texts tells, if it is one."""
    if {"question", "answer"} <= columns and "text" not in columns:
        raise FormatError("may be answers, or a bank: of a bank call the columns question_text and gold_answers")
    told = {kind for name, kind in _ITEM_TEXTS.items() if name in columns and "text" not in columns}
    return REQUIRED if len(told) > 1 else next(iter(told), None)


def _is_table(head: Head) -> bool:
    header = set() if head.is_json else set(cells_of(head.line))
    own = {"item_id", "kind", "importance", "weight", "gold_answers", "question_text", "nugget_text"}
    if "query_id" not in header or header.isdisjoint({*_ITEM_TEXTS, "nugget"}) or header & _OTHERS:
        return False
    # Of queries there is one line each.
    ids = [cells_of(line)[:1] for line in head.rest.split("\n")[:-1]] if cells_of(head.line)[0] == "query_id" else []
    return bool(header & own) or any(one == other for one, other in pairwise(ids))


BANK_CSV = _bank(
    "bank:csv",
    types={
        "stripped words": (lambda value: words(value).strip(), same), "parted texts": (_parted, _joined),
        "told by columns": _usual_kind,
    },
    check=lambda said: (
        "text is empty; remove the row, or give the item a text"
        if not said["text"] and any(said[name] for name in ("item_id", "importance", "weight", "gold_answers"))
        else None
    ),
    each=_texts_only, nest=_nested, flatten=_flat, told=_is_table,
)  # fmt: skip


def _as_nugget(item: dict[str, Any]) -> dict[str, Any]:
    """The item, unless it would count for an answer that has it, though it counts against it."""
    if item.get("weight", 0) < 0:
        problem = (
            f"{item['text']!r} is a penalty (weight {item['weight']:g}), and a nugget counts for an answer that has"
        )
        raise InputError(f"query {item['query_id']!r}: {problem} it; take penalties out of the bank first")
    return item


NUGGETS = _bank("nuggets", kind="nugget", each=_as_nugget)


def _as_criterion(item: dict[str, Any]) -> dict[str, Any]:
    if "weight" not in item:
        raise InputError(f"item {item['item_id']!r} has no weight, and a criterion needs one")
    return item


RUBRICS = _bank("rubrics", kind="nugget", each=_as_criterion)


def _completed(rows: list[Row]) -> list[Row]:
    """The tasks that have criteria; those that failed are counted and left out."""
    kept = [row for row in rows if row.said["status"] == "completed"]
    if not kept:
        raise InputError("every task failed; there are no criteria")
    warn("%d tasks failed and have no criteria; left out", len(rows) - len(kept))
    return kept


def _as_task(said: dict[str, Any]) -> dict[str, Any]:
    raise InputError("RAGDoll's rubrics are written from its own files alone; write rubrics, or nuggets")


RAGDOLL = _bank("ragdoll:rubric", kind="nugget", nest=_completed, adapt=_as_task)


def _answers(value: Any) -> Any:
    """The answers of a question, with what is said of them (`references`), as they stand there."""
    listed = list(value.values()) if isinstance(value, dict) else value
    said = [isinstance(one, dict) and one.get("answer") for one in listed] if isinstance(listed, list) else [None]
    if not all(isinstance(one, str) and one for one in said):
        raise ValueError("expected a list or an object of answers {answer, references}")
    return value


def _stated(value: Any) -> Any:
    """An importance: a number is a weight."""
    return figure(value) if isinstance(value, int | float) else text(value)


def _as_asked(item: dict[str, Any]) -> dict[str, Any]:
    """An item with answers and an importance as Auto-Judge has them."""
    # People edit gold answers: those that stay keep what was said of them.
    said = {one["answer"]: one for one in answers_of(item["further"])}
    answers = [said.get(one, {"answer": one}) for one in item.get("gold_answers", ())]
    further = {to: value for to, value in item["further"].items() if to != "answers"}
    importance = item.get("importance", item.get("weight"))
    return {**item, "gold_answers": answers, "importance": importance, "further": further}


def answers_of(info: Any) -> list[dict[str, Any]]:
    """The answers {answer, references} that the info of an item holds, where a nugget bank said more than texts."""
    listed = info.get("answers") if isinstance(info, dict) else None
    return [one for one in listed if isinstance(one, dict) and "answer" in one] if isinstance(listed, list) else []


def answer_documents(item: RubricItem) -> dict[str, frozenset[str]]:
    """Gold answer -> the documents that a nugget bank lists for it; empty sets where it lists none."""
    found: dict[str, frozenset[str]] = dict.fromkeys(item.gold_answers, frozenset())
    for answer in answers_of(item.info):
        if answer["answer"] in found:
            references = answer.get("references")
            listed = references if isinstance(references, list) else []
            ids = (one.get("doc_id") if isinstance(one, dict) else one for one in listed)
            found[answer["answer"]] = frozenset(str(doc_id) for doc_id in ids if doc_id is not None)
    return found


def needs_all_answers(item: RubricItem) -> bool:
    """Whether a nugget bank wants all answers of a question (AND), and not any of them."""
    return isinstance(item.info, dict) and item.info.get("aggregator_type") == "AND"


def _as_dicts(said: dict[str, Any]) -> dict[str, Any]:
    if len({(item["kind"], item["text"]) for item in said["items"]}) < len(said["items"]):
        raise InputError(f"query {said['query_id']!r}: two items have the same text, which a nugget bank cannot hold")
    further = {to: value for to, value in said["further"].items() if to != "metadata"}
    return {**said, "format_version": "v3", "further": {"nugget_bank": {}, **further}}


def _by_answers(item: dict[str, Any]) -> dict[str, Any]:
    asked = _as_asked(item)
    return {**asked, "key": item["text"], "gold_answers": {one["answer"]: one for one in asked["gold_answers"]} or None}


def _as_listed(item: dict[str, Any]) -> dict[str, Any]:
    if item["kind"] != "question":
        raise InputError(f"item {item['item_id']!r} is a nugget, and this form has questions only")
    asked = _as_asked(item)
    return {**asked, "query_id": None, "further": {"aggregator_type": "OR", **asked["further"]}}


def _together(rows: list[Row]) -> Iterator[Row]:
    """Rows whose items are the questions and the claims."""
    for row in rows:
        items = [*(row.said["items"] or ()), *(row.said.pop("claims") or ())]
        yield row._replace(said={**row.said, "items": items})


def _apart(said: dict[str, Any]) -> Iterator[dict[str, Any]]:
    of_kind = ([item for item in said["items"] if item["kind"] == kind] or None for kind in _KINDS)
    yield {**said, **dict(zip(("items", "claims"), of_kind, strict=True))}


_OF_NUGGETS = {"answers": (_answers, same), "importance": (_stated, same)}
NUGGET_BANK = _bank(
    "nugget-bank", types=_OF_NUGGETS, adapt=_as_dicts, each=_by_answers, nest=_together, flatten=_apart,
)  # fmt: skip
NUGGET_LISTS = _bank(
    "nugget-lists", types=_OF_NUGGETS, kind="question", each=_as_listed,
)  # fmt: skip


def _lessons(rows: list[Row]) -> Iterator[Row]:
    """Lessons with the right choice of each question as its gold answer; a key that names no choice gives none."""
    keyless = 0
    for row in rows:
        items = []
        for _, said, *_ in row.said["items"]:
            key, choices = said.pop("answer"), said.pop("choices", None)
            answer = choices.get(key) if choices else key
            keyless += answer is None
            items.append(Row(row.line, {**said, "gold_answers": None if answer is None else [answer]}, {}))
        own = {"query_id": f"tqa2:{row.said['query_id']}", "items": items, "test_collection": "tqa2"}
        yield Row(row.line, {**row.said, **own}, {})
    warn("%d questions have a correct answer that is none of their choices; no gold answer", keyless)


def _choices(value: Any) -> dict[str, str]:
    if not isinstance(value, dict) or not all(isinstance(one, dict) for one in value.values()):
        raise ValueError("expected an object of choices")
    return {key: text(one.get("processedText")) for key, one in value.items()}


TQA = _bank(
    "tqa", types={"choices": (_choices, same)}, kind="question", nest=_lessons,
)  # fmt: skip


def _by_answer(rows: list[Row]) -> Iterator[Row]:
    """An item a short answer, a facet a question, whose weight is divided among its answers.

    So `WeightedCover` is the supportive score, Σ over questions of weight · mean over their answers of (1, ½, 0) / Σ of
    weights.
    """
    for row in rows:
        items = [
            Row(
                row.line,
                {
                    "text": one.said["text"] or one.said["item_id"], "kind": "nugget", "facet_text": asked.said["text"],
                    "item_id": f"{row.said['query_id']}/{one.said['item_id']}",
                    "weight": asked.said["weight"] / len(asked.said["answers"]),
                },
                {},
            )
            for asked in row.said["items"] for one in asked.said["answers"]
        ]  # fmt: skip
        yield row._replace(said={**row.said, "items": items})


def _by_question(rows: list[Row]) -> Iterator[Row]:
    """An item a question by its number, which assessments of questions name."""
    for row in rows:
        items = []
        for _, said, *_ in row.said["items"]:
            answers = [answer for one in said.pop("answers") if (answer := one.said["text"])]
            item_id = f"{row.said['query_id']}/{said['item_id'].rpartition('-')[2]}"
            items.append(Row(row.line, {**said, "item_id": item_id, "gold_answers": answers}, {}))
        yield row._replace(said={**row.said, "items": items})


DRAGUN_ANSWERS = _bank("dragun:rubrics", kind="question", nest=_by_answer)
DRAGUN_QUESTIONS = _bank("dragun:questions", kind="question", nest=_by_question, told=lambda head: False)
