"""Test banks: the questions or key facts of each query, in the files of all programs that have some.

A bank is entries (a query, or a facet of it) with items; each format is a spec of their fields. Files of one format are
written as they were read; those of another over the `TestBank` that they make, and what that format lacks is said.

Sources: Dietz, "A Workbench for Autograding Retrieve/Generate Systems", SIGIR 2024, section 4.1 (`bank`); Pradeep et
al., AutoNuggetizer, TREC 2024 RAG track (`nuggets`); ResearchRubrics (`rubrics`); RAGDoll, the toolkit of TREC RAG 2026
(`ragdoll:rubric`); TREC Auto-Judge (`nugget-bank`) and RAGTIME 2026 (`nugget-lists`); Kembhavi et al., "Are You Smarter
Than A Sixth Grader?", CVPR 2017, used as a test bank by EXAM++, section 5 (`tqa`).
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, count, groupby, pairwise
from types import MappingProxyType
from typing import Any

from msgspec import Struct, convert
from msgspec.structs import asdict

from rubric_measures.base.errors import FormatError, InputError, counted, warn
from rubric_measures.base.files import path_name
from rubric_measures.base.json_text import parse_json
from rubric_measures.formats.base import Head, PathName, cells_of, given, head_of, plain_name
from rubric_measures.formats.specs import (
    DOC_IDS,
    Inside,
    Row,
    Spec,
    figure,
    one_of,
    same,
    spec,
    stripped,
    table,
    text,
    texts,
    words,
)
from rubric_measures.types.entities import RubricItem, TestBank, item_content, make_item_id

# What a review writes into the info of an item that it edited; no other program asks for it.
MARKS = ("edited_by", "edited_at", "edit", "regrade")


def facet_ids(texts: Iterable[str | None]) -> dict[str, str]:
    """Facet text -> a short id: its lower-case words joined by hyphens, numbered where two would be the same.

    Blank texts are no facet.

    >>> facet_ids(['"Key advantages of nuclear energy"', None, "Key advantages of nuclear energy?"])
    {'"Key advantages of nuclear energy"': 'key-advantages-of-nuclear-energy', \
'Key advantages of nuclear energy?': 'key-advantages-of-nuclear-energy-2'}
    """
    ids: dict[str, str] = {}
    for heading in filter(None, dict.fromkeys((said or "").strip() for said in texts)):
        words = "-".join(re.findall(r"\w+", heading.lower()))[:60].rstrip("-") or "facet"
        named = chain([words], (f"{words}-{number}" for number in count(2)))
        ids[heading] = next(one for one in named if one not in ids.values())
    return ids


def known_label(value: Any) -> Any:
    """Older files write labels with capitals, spaces and hyphens, and `okey`; RAGDoll writes `fail`."""
    if not isinstance(value, str):
        return value
    label = "_".join(value.lower().replace("-", " ").replace("_", " ").split())
    return {"okey": "okay", "fail": "failed"}.get(label, label)


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
        form: the format that it was read from.
        line: its line in the file.
        row: what the file says, as it is written again in the same format.
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
        query_id = entry.query_id
        members = items.setdefault(query_id, {})
        for facet_id, said in (*entry.facets.items(), (entry.facet_id, entry.facet_text)):
            if facet_id is not None and said is not None:
                known = facet_texts.setdefault((query_id, facet_id), said)
                _same(known, said, f"facet {facet_id!r}", name, entry.line)
        odd.update(entry.odd)
        kept = {to: value for to, value in entry.further.items() if value not in (None, "")}
        further[query_id] = kept | further.get(query_id, {})
        for index, one in enumerate(entry.items):
            if one.query_id != query_id:
                problem = f"the item belongs to query {one.query_id!r}, its entry to {query_id!r}"
                raise FormatError(problem, path=name, line=entry.line, field=f"items[{index}].query_id")
            notes["every"] += len(one.gold_answers) > 1 and needs_all_answers(one)
            first = members.setdefault(one.item_id, one)
            if first is not one:
                _same(first.text.strip(), one.text.strip(), f"item {one.item_id!r}", name, entry.line)
                notes["twice"] += 1
    query_texts, several = _query_texts(entries)
    if says:
        called = name or "test bank"
        warn("%s: %d items come twice in their query; the first is kept", called, notes["twice"])
        warn("%s: %d importances other than vital and okay (%s) are none", called, odd.total(), shown_counts(odd))
        warn("%s: %d queries have several texts; the first is kept, of those of facets none", called, several)
        warn(
            "%d questions need all of their answers (AND): any is gold to a grader; judged reports need all",
            notes["every"],
        )
    bank = {query_id: tuple(members.values()) for query_id, members in items.items()}
    edited = {
        query_id: contents
        for query_id, found in bank.items()
        if (contents := {one.item_id: item_content(one) for one in found if regrade_mark(one)})
    }
    return TestBank(bank, query_texts, facet_texts, edited, {one: said for one, said in further.items() if said})


def items_of(
    query_id: str,
    rows: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]],
    facet_id: str | None = None,
    is_hashed: bool = False,
) -> tuple[list[RubricItem], dict[str, str], Counter[str]]:
    """The items of an entry as they are scored, in order; facet id -> text; and importances that are none.

    Args:
        query_id: the query.
        rows: what a file says of each by our names, and what has no name here.
        facet_id: their facet, where they do not say it.
        is_hashed: whether an item without an id is called by the md5 of its text.
    """
    facets = facet_ids(said.get("facet_text") for said, _ in rows if said.get("facet_id") is None)
    odd = Counter[str]()

    made = []
    for said, others in rows:
        facet = said.get("facet_id")
        if facet is None:
            facet = facets.get((said.get("facet_text") or "").strip(), facet_id)
        stated, weight, info = said.get("importance"), said.get("weight"), said.get("info")
        importance = label if (label := known_label(stated)) in ("vital", "okay") else None
        further = given({to: value for to, value in said.items() if to not in _OF_ITEMS})
        further |= {to: value for to, value in others.items() if value is not None or to == "importance"}
        if isinstance(stated, int | float):
            weight = stated
        elif importance is None and stated is not None:
            further["importance"] = stated
        if further.get("importance") is not None:
            odd[str(further["importance"])] += 1
        answers = [one if isinstance(one, Row) else Row(0, {"text": one}, {}) for one in said.get("gold_answers") or ()]
        if any(one.further for one in answers):
            further["answers"] = [{"answer": one.said["text"], **one.further} for one in answers]
        if further:
            info = further | (info if isinstance(info, dict) else given({"info": info}))
        item_id = said.get("item_id")
        if not item_id and is_hashed:
            item_id = hashlib.md5(said["text"].encode("utf-8"), usedforsecurity=False).hexdigest()
        made.append(RubricItem(
            item_id=item_id or make_item_id(query_id, said["text"], facet),
            query_id=said.get("query_id") or query_id, text=said["text"], kind=said["kind"], facet_id=facet,
            gold_answers=tuple(one.said["text"] for one in answers),
            importance=importance, weight=None if weight is None else float(weight), info=info,
        ))  # fmt: skip
    return made, {facet: said for said, facet in facets.items()}, odd


def shown_counts(counts: Counter[str]) -> str:
    """The three words that come most often, with their counts."""
    return ", ".join(f"{word!r} {count}" for word, count in counts.most_common(3))


def _query_texts(entries: Iterable[BankEntry]) -> tuple[dict[str, str], int]:
    """The texts of queries: that of an entry without a facet, else the one that the entries of all facets share.

    The workbench's generator writes `title / section` as the text of each section of a page (a facet of the query): the
    title is the text of the query then.

    Returns:
        The texts, and how many queries have several.
    """
    own: dict[str, dict[str, None]] = {}
    shared: dict[str, dict[str, None]] = {}
    for entry in entries:
        if entry.query_text is not None:
            found, section = (own, "") if entry.facet_id is None else (shared, f" / {entry.facet_text}")
            found.setdefault(entry.query_id, {})[entry.query_text.removesuffix(section)] = None
    texts = {**shared, **own}
    kept = {one: next(iter(found)) for one, found in texts.items() if one in own or len(found) == 1}
    return kept, sum(len(found) > 1 for found in texts.values())


def _same(known: str, found: str, what: str, name: str, line: int) -> None:
    if known != found:
        text = f"{what} has two texts, {known!r} and {found!r}; keep one, or leave the id of the new one empty"
        raise FormatError(text, path=name, line=line)


def former_items(further: Mapping[str, Any]) -> list[str]:
    """The ids of items that left the bank, as a review wrote them beside a query."""
    listed = further.get("former_items")
    return [str(item_id) for item_id in listed] if isinstance(listed, list) else []


def info_of(item: RubricItem) -> Mapping[str, Any]:
    """What a file says of an item beside its fields; `info` where that is no object."""
    return item.info if isinstance(item.info, dict) else given({"info": item.info})


def regrade_mark(item: RubricItem) -> bool | None:
    """Whether an item needs new grades; None where no review said it (`info.regrade`)."""
    mark = info_of(item).get("regrade")
    return mark if isinstance(mark, bool) else None


# What of an item other files may not hold.
_SAID = ("item_id", "text", "kind", "gold_answers", "importance", "weight")


def _facts(bank: TestBank) -> Iterator[tuple[tuple[str, Hashable, str], Any]]:
    """What a bank says: of what, of which one (items by their places), by what name, and it."""
    for query_id, items in bank.items.items():
        for place, item in enumerate(items):
            for to, value in {**info_of(item), **{to: getattr(item, to) for to in _SAID}}.items():
                yield ("item", (query_id, place), to), None if to in MARKS else value
    yield from ((("query", query_id, "text"), said) for query_id, said in bank.query_texts.items())
    yield from ((("query", one, to), said) for one, further in bank.further.items() for to, said in further.items())
    yield from ((("facet", (key[0], said), "text"), said) for key, said in bank.facet_texts.items())


def losses(before: TestBank, after: TestBank) -> str:
    """What another kind of file does not hold of a bank, in words: "item_id of 2 items, weight of 1 item".

    Items are compared in order, query by query; what is said of a query as well.

    Args:
        before: the bank.
        after: what another file holds of it.
    """
    held = dict(_facts(after))
    lost = Counter((to, what) for (what, one, to), said in _facts(before) if said and held.get((what, one, to)) != said)
    return ", ".join(f"{to} of {counted(count, what)}" for (to, what), count in lost.items())


# What the rows of entries and of items have by our names; all else is further.
_OF_ENTRIES = ("query_id", "facet_id", "facet_text", "query_text")
_OF_ITEMS = (*RubricItem.__struct_fields__, "facet_text", "key")


def _bank(
    form: str,
    *,
    each: Callable[[dict[str, Any]], dict[str, Any]] = lambda item: item,
    nest: Callable[[list[Row]], Iterable[Row]] = lambda rows: rows,
    flatten: Callable[[dict[str, Any]], Iterable[dict[str, Any]]] = lambda said: (said,),
    is_hashed: bool = False,
    types: Mapping[str, Any] = MappingProxyType({}),
    **more: Any,
) -> Spec[Any]:
    """A format of banks. Its items stand in the fields that hold rows, each kind where its fields are.

    Args:
        form: its name.
        each: makes of what is said of an item from elsewhere what the format wants.
        nest: makes of the rows of a file rows with `items`, and `flatten` of such a row rows of a file.
        is_hashed: see `items_of`.
        types, more: see `spec`.
    """

    def entry(row: Row) -> BankEntry:
        own = {to: row.said.pop(to, None) for to in _OF_ENTRIES}
        listed = [one[1:3] for to in lists for one in row.said.pop(to, None) or ()]
        items, facets, odd = items_of(own["query_id"], listed, own["facet_id"], is_hashed)
        made: dict[str, Any] = {"items": items, "facets": facets, "odd": odd, "further": given(row.said) | row.further}
        return BankEntry(**own, **made, form=form, line=row.line, row=row.cells)

    def said_of(bank: TestBank) -> Iterator[dict[str, Any]]:
        """What the format says of each query, or of its items of one facet that stand together, in order."""
        for query_id, items in bank.items.items():
            further, texts = bank.further.get(query_id, {}), bank.facet_texts
            groups: Iterable[tuple[str | None, Iterable[RubricItem]]] = [(None, items)]
            if items and "facet_id" in names:
                groups = groupby(items, lambda item: item.facet_id)
            for facet_id, members in groups:
                listed = [each(said_of_item(one, texts.get((query_id, one.facet_id or "")))) for one in members]
                # All kinds have the first list, if an empty one.
                of_kind = {to: [one for one in listed if one["kind"] in has] for to, has in lists.items() if has}
                of_kind = {to: found for to, found in of_kind.items() if found or to == "items"}
                heading = texts.get((query_id, facet_id or ""))
                own = dict(zip(_OF_ENTRIES, (query_id, facet_id, heading, bank.query_texts.get(query_id)), strict=True))
                for row in flatten({**further, **given(own), "further": further, "items": listed, **of_kind}):
                    yield {to: value for to, value in row.items() if to in names}

    def said_of_item(item: RubricItem, heading: str | None) -> dict[str, Any]:
        """What it says of an item; where it knows no `info`, what that says are fields of their own, marks aside."""
        own = given({**asdict(item), "gold_answers": [*item.gold_answers] or None})
        own |= given({"facet_text": heading or item.facet_id})
        if kinds and item.kind not in kinds:
            own["kind"] = kinds[0]
        if form == "bank":
            return own
        own.pop("info", None)
        further = {to: said for to, said in info_of(item).items() if to not in MARKS}
        return {**{to: said for to, said in further.items() if to not in _OF_ITEMS}, **own, "further": further}

    def outof(content: TestBank | Sequence[BankEntry]) -> Sequence[Mapping[str, Any]]:
        entries = () if isinstance(content, TestBank) else content
        is_own = entries and all(one.form == form for one in entries)
        if is_own and ("facet_id" in names or len({one.query_id for one in entries}) == len(entries)):
            return [one.row if form == "bank:csv" else {"further": one.row} for one in entries]
        bank = content if isinstance(content, TestBank) else bank_of_entries(entries)
        kept = ((one.further, bank.further.get(one.query_id, {})) for one in entries)
        two = [to for said, first in kept for to, value in given(said).items() if first.get(to, value) != value]
        warn("%d fields of queries have two values (such as %s); the first is kept", len(two), *two[:1] or [""])
        rows = list(said_of(bank))
        if rows and form != "bank":
            try:
                after = bank_of_entries(bank_spec.read(list(map(bank_spec.object, rows))), says=False)
            except FormatError as error:
                raise InputError(f"{form} cannot hold the bank: {error.field}: {error.problem}") from None
            if any((one.weight or 0) < 0 for one in bank) and not any((one.weight or 0) < 0 for one in after):
                problem = "a penalty would count for an answer that has it; take items of negative weight out first"
                raise InputError(f"{form} cannot hold the bank: {problem}")
            if len(after) < len(bank):
                problem = f"of {counted(len(bank), 'item')} it keeps {len(after)}; of items with one text keep one"
                raise InputError(f"{form} cannot hold the bank: {problem}")
            if lost := losses(bank, after):
                warn(f"{form} cannot hold all of the bank: {lost}")
        return rows

    usual: dict[str, Any] = {"what": "items", "forms": ("jsonl",), "is_sparse": True, "is_compact": True}
    said = {**usual, "by_hand": True, "keeps": True, **table(form), **more}
    bank_spec: Spec[Any] = spec(form, types, into=lambda rows: list(map(entry, nest(rows))), outof=outof, **said)
    names = {"further", *(field.to for field in bank_spec.fields)}
    # Field of items -> the kinds that it holds.
    inside = {one.to: [*parse.variants] for one in bank_spec.fields if isinstance(parse := one.parse, Inside)}
    lists = {"items": [], **inside}
    kinds = [*chain(*lists.values())]
    return bank_spec


def written_rows(bank: TestBank, form: Spec[Any]) -> list[dict[str, Any]]:
    """The rows that write a bank in a format.

    Raises:
        InputError: that cannot hold the bank.
    """
    return list(map(form.object, form.outof(bank)))


# The workbench wants the name of a collection.
BANK = _bank("bank", flatten=lambda said: [{"test_collection": "", **said}])
read_bank, write_bank = BANK.read, BANK.write
# What a row of `bank` says of an item; all else is a field that nobody knows.
_ROWS = table("bank")["fields"][-1]["rows"].values()
OF_ITEMS = {name for fields in _ROWS for field in fields for name in field.get("names", [field["to"]])}


def bank_entries(bank: TestBank) -> list[BankEntry]:
    """A bank as entries of the workbench: one for each facet of a query."""
    rows = written_rows(bank, BANK)
    return BANK.read(rows) if rows else []


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
    with contextlib.suppress(ValueError):
        return texts(parse_json(cell))
    return [part.strip() for part in cell.split("|") if part.strip()]


def _joined(answers: Sequence[str]) -> str:
    is_plain = all("|" not in one and one == one.strip() and one[:1] not in ("", "[") for one in answers)
    return " | ".join(answers) if is_plain else json.dumps(list(answers), ensure_ascii=False)


def _item_text(value: Any) -> str:
    found = words(value).strip()
    if re.fullmatch(r"#N/A|#NV|#[A-ZÄÖÜ/0]+[!?]", found):
        raise ValueError("is a spreadsheet's error, as it took the text for a formula; write the text itself")
    return found


# The columns of the text of an item; what they begin with is its kind.
_TEXTS = ("text", "question_text", "nugget_text", "question", "nugget")


def _nested(rows: list[Row]) -> Iterator[Row]:
    """Rows of items as entries; where a row says no kind, all such are questions if all end with a question mark."""
    for row in rows:
        filled = {plain_name(column) for column, cell in row.cells.items() if cell}
        if {"question", "answer"} <= filled and "text" not in filled:
            problem = "may be answers, or a bank: of a bank, call the columns question_text and gold_answers"
            raise FormatError(problem, line=row.line)
        column = next((one for one in _TEXTS if one in filled), "text")
        row.said["kind"] = row.said["kind"] or column.removesuffix("text").removesuffix("_")
    without = [row.said["text"] for row in rows if row.said["text"] and not row.said["kind"]]
    usual = "question" if all(one.endswith(("?", "？", "؟")) for one in without) else "nugget"
    known = {(row.said["query_id"], row.said["facet_id"]) for row in rows if row.said["text"]}
    for row in rows:
        said = {**row.said, "kind": (row.said["kind"] or usual) if row.said["text"] else None}
        # A query alone is one without items.
        of_item = [said[name] for name in ("item_id", "importance", "weight", "gold_answers")] + [*row.further.values()]
        if not said["text"] and (any(of_item) or (said["query_id"], said["facet_id"]) in known):
            raise FormatError("text is empty; remove the row, or give the item a text", line=row.line)
        entry = {to: said[to] for to in ("query_id", "query_text", "facet_id")}
        items = [Row(row.line, {**said, "query_text": None}, row.further)] if said["text"] else []
        yield Row(row.line, {**entry, "items": items}, {}, {**said, "further": row.further})


def _flat(said: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for item in said["items"] or [{}]:
        # `losses` counts what is no text.
        further = {to: one for to, one in item.get("further", {}).items() if isinstance(one, str)}
        yield {**said, **item, "further": further}


def _is_table(head: Head) -> bool:
    header = set() if head.is_json else set(cells_of(head.line))
    own = {"item_id", "kind", "importance", "weight", "gold_answers", "question_text", "nugget_text"}
    # What tables of other things have.
    others = {*DOC_IDS, "run_id", "grade", "label", "relevance", "answer"}
    if "query_id" not in header or header.isdisjoint(_TEXTS) or header & others:
        return False
    # Of queries there is one line each.
    ids = [cells_of(line)[:1] for line in head.rest.split("\n")[:-1]] if cells_of(head.line)[0] == "query_id" else []
    return bool(header & own) or any(one == other for one, other in pairwise(ids))


BANK_CSV = _bank(
    "bank:csv",
    types={
        "item text": (_item_text, same), "parted texts": (_parted, _joined),
        "label": (lambda value: one_of(("vital", "okay"))(known_label(value)), same),
    },
    nest=_nested, flatten=_flat, told=_is_table,
)  # fmt: skip
NUGGETS, RUBRICS = _bank("nuggets"), _bank("rubrics")


def _completed(rows: list[Row]) -> list[Row]:
    """The tasks that have criteria; those that failed are counted and left out."""
    kept = [row for row in rows if row.said.pop("status") == "completed"]
    warn("%d tasks failed and have no criteria; left out", len(rows) - len(kept))
    return kept


RAGDOLL = _bank("ragdoll:rubric", nest=_completed)


def _stated(value: Any) -> Any:
    """An importance: a number is a weight."""
    return figure(value) if isinstance(value, int | float) else text(value)


def _as_asked(item: dict[str, Any]) -> dict[str, Any]:
    """An item with answers and an importance as Auto-Judge has them."""
    # People edit gold answers: those that stay keep what was said of them.
    known = {one["answer"]: one for one in answers_of(item["further"])}
    answers = [{"text": one, "key": one, "further": known.get(one)} for one in item.get("gold_answers", ())]
    further = {to: value for to, value in item["further"].items() if to != "answers"}
    importance = item.get("importance", item.get("weight"))
    return {**item, "key": item["text"], "gold_answers": answers or None, "importance": importance, "further": further}


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
    return info_of(item).get("aggregator_type") == "AND"


def _as_third_version(said: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """What version 3 has; it has no place for who made the bank."""
    further = {to: value for to, value in said["further"].items() if to != "metadata"}
    yield {**said, "further": {**further, "format_version": "v3"}}


def _listed(item: dict[str, Any]) -> dict[str, Any]:
    asked = _as_asked(item)
    return {**asked, "query_id": None, "further": {"aggregator_type": "OR", **asked["further"]}}


_OF_AUTO_JUDGE: dict[str, Any] = {"types": {"importance": (_stated, same)}, "is_hashed": True}
NUGGET_BANK = _bank("nugget-bank", **_OF_AUTO_JUDGE, each=_as_asked, flatten=_as_third_version)
NUGGET_LISTS = _bank("nugget-lists", **_OF_AUTO_JUDGE, each=_listed)


_PRELOADED: Spec[list[Row]] = spec("preload", {"groups": (partial(convert, type=dict[str, str]), same)})


def _read_preload(path: PathName) -> list[BankEntry]:
    """Questions with their answers; groups of them are facets, and the name of the file says the query."""
    name = path_name(path)
    called = re.search(r"_([^_/\\]+)\.preload\.json(\.gz)?$", name)
    if called is None:
        raise FormatError("does not say of which query it is; call it FILE_QUERY.preload.json", path=name)
    asked = ((row.said["groups"], one) for row in _PRELOADED.read(path) for one in row.said["items"])
    entries: list[BankEntry] = BANK_CSV.read([
        {"query_id": called[1], "question": said["text"], "gold_answers": [*answers], "facet": of.get(said["text"])}
        for of, (_, said, answers, _) in asked
    ])  # fmt: skip
    return entries


PRELOAD = _PRELOADED.format._replace(read=_read_preload)


def _lessons(rows: list[Row]) -> list[Row]:
    """Lessons with the right choice of each question as its gold answer; a key that names no choice gives none."""
    keyless = 0
    for row in rows:
        row.said.update(query_id=f"tqa2:{row.said['query_id']}", test_collection="tqa2")
        row.further.clear()
        for _, said, further, _ in row.said["items"]:
            further.clear()
            choices = {one.said["key"]: one.said["text"] for one in said.pop("choices") or ()}
            key = said.pop("answer")
            said["gold_answers"] = [choices[key]] if key in choices else [] if choices else [key]
            keyless += not said["gold_answers"]
    warn("%d questions have a correct answer that is none of their choices; they get no gold answer", keyless)
    return rows


TQA = _bank("tqa", nest=_lessons)


def _by_answer(rows: list[Row]) -> list[Row]:
    """An item a short answer, a facet a question, whose weight is divided among its answers.

    So `WeightedCover` is the supportive score, Σ over questions of weight · mean over their answers of (1, ½, 0) / Σ of
    weights.
    """
    for _, of_topic, *_ in rows:
        items = []
        for _, asked, *_ in of_topic["items"]:
            shared = {"kind": "nugget", "facet_text": asked["text"], "weight": asked["weight"] / len(asked["answers"])}
            for _, said, *_ in asked["answers"]:
                ids = {"item_id": f"{of_topic['query_id']}/{said['item_id']}", "text": said["text"] or said["item_id"]}
                items.append(Row(0, {**shared, **ids}, {}))
        of_topic["items"] = items
    return rows


def _by_question(rows: list[Row]) -> list[Row]:
    """An item a question by its number, which assessments of questions name."""
    for _, of_topic, *_ in rows:
        for _, said, further, _ in of_topic["items"]:
            further.clear()
            said["item_id"] = f"{of_topic['query_id']}/{said['item_id'].rpartition('-')[2]}"
            said["gold_answers"] = [one.said["text"] for one in said.pop("answers") if one.said["text"]]
    return rows


DRAGUN_ANSWERS = _bank("dragun:rubrics", nest=_by_answer)
DRAGUN_QUESTIONS = _bank("dragun:questions", nest=_by_question, told=lambda head: False)
