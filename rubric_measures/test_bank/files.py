"""Files of the bank makers: queries, passages, bank entries, synthetic queries; and the bank of a prompt's aspects."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rubric_measures.base.errors import FormatError, InputError
from rubric_measures.base.files import atomic_writer, check_readable_twice, iter_lines, path_name
from rubric_measures.formats.banks import BankEntry, bank_entries
from rubric_measures.formats.queries import read_query_file
from rubric_measures.prompts import load_prompt
from rubric_measures.records.files import load_graded
from rubric_measures.test_bank.generation import BankQuery
from rubric_measures.test_bank.nuggetization import SourceSegment
from rubric_measures.test_bank.synthetic_queries import SyntheticQuery
from rubric_measures.types.entities import RubricItem, TestBank, canonical_json, make_item_id

__all__ = ["aspect_bank", "made_entries", "read_bank_queries", "read_passages", "write_synthetic"]

_ID_FIELDS = ("doc_id", "docid", "did", "id", "paragraph_id")
_TEXT_FIELDS = ("text", "segment", "contents", "document", "body")


def read_bank_queries(name: str) -> list[BankQuery]:
    """The queries of a query file (JSON, JSON lines, TSV), or of an ir_datasets id where there is no such file.

    A query with facets comes once a facet.

    Raises:
        InputError: no such file and no such id, or an id without queries.
        FormatError: the file is no query file.
    """
    if name != "-" and not Path(name).exists():
        dataset = _dataset(name)
        if not dataset.has_queries():
            raise InputError(f"{name}: this ir_datasets id has no queries")
        return [BankQuery(query.query_id, query.default_text()) for query in dataset.queries_iter()]
    found = read_query_file(name)
    facets: dict[str, list[tuple[str, str]]] = {}
    for (query_id, facet_id), text in found.facets.items():
        facets.setdefault(query_id, []).append((facet_id, text))
    queries: list[BankQuery] = []
    for query_id, text in found.texts.items():
        queries += [BankQuery(query_id, text, *facet) for facet in facets.get(query_id, [])] or [
            BankQuery(query_id, text)
        ]
    return queries


def read_passages(name: str) -> Iterator[SourceSegment]:
    """The passages of a collection, in its order.

    The collection is a file (graded passage records, JSON lines of objects with `doc_id` and `text`, or TSV of id and
    text), or an ir_datasets id where there is no such file.

    Raises:
        InputError: no such file and no such id, or an id without documents.
        FormatError: naming file and line: an id or a text is missing.
    """
    check_readable_twice(name)
    if name != "-" and not Path(name).exists():
        dataset = _dataset(name)
        if not dataset.has_docs():
            raise InputError(f"{name}: this ir_datasets id has no documents")
        for document in dataset.docs_iter():
            yield SourceSegment(document.doc_id, document.default_text())
        return
    for line, data in iter_lines(name):
        head = data.lstrip()[:1]
        if head == b"[":
            if name == "-":
                raise InputError("graded passage records cannot be read from a stream here; name the file")
            yield from _of_records(name)
            return
        yield _of_object(data, name, line) if head == b"{" else _of_columns(data, name, line)


def _of_records(name: str) -> Iterator[SourceSegment]:
    seen: set[str] = set()
    for group in load_graded(name):
        for passage in group.passages:
            if passage.doc_id not in seen:  # a passage that was retrieved for two queries is one passage
                seen.add(passage.doc_id)
                yield SourceSegment(passage.doc_id, passage.text)


def _of_object(data: bytes, name: str, line: int) -> SourceSegment:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"is not JSON ({error})", path=path_name(name), line=line) from None
    doc_id = next((value[field] for field in _ID_FIELDS if isinstance(value.get(field), str | int)), None)
    text = next((value[field] for field in _TEXT_FIELDS if isinstance(value.get(field), str)), None)
    if doc_id is None or text is None:
        missing = f"one of {', '.join(_ID_FIELDS)}" if doc_id is None else f"a text in {', '.join(_TEXT_FIELDS)}"
        raise FormatError(f"expected {missing}", path=path_name(name), line=line)
    return SourceSegment(str(doc_id), text)


def _of_columns(data: bytes, name: str, line: int) -> SourceSegment:
    try:
        doc_id, tab, text = data.decode("utf-8").partition("\t")
    except UnicodeDecodeError:
        raise FormatError("is not UTF-8; convert the file first", path=path_name(name), line=line) from None
    if not tab or not doc_id.strip():
        raise FormatError("expected `doc_id<TAB>text` or a JSON object; found no tab", path=path_name(name), line=line)
    return SourceSegment(doc_id.strip(), text)


def _dataset(name: str) -> Any:
    import ir_datasets

    # Registers this package's own ids.
    importlib.import_module("rubric_measures.corpora.collections")
    try:
        return ir_datasets.load(name)
    except KeyError:
        raise InputError(f"{name}: no such file, and no such ir_datasets id") from None


def made_entries(
    bank: TestBank,
    *,
    info: Mapping[str, object],
    test_collection: str = "",
    sources: Mapping[str, Sequence[str]] | None = None,
) -> list[BankEntry]:
    """The entries of a bank that was just made: with how it was made, and each item with its sources.

    Queries without items are left out: a bank that says that a query has no items would say that nothing is to be
    covered, where the truth is that nothing is known.

    Args:
        bank: the bank.
        info: how it was made (model, prompts and their hashes), the same in every entry.
        test_collection: the collection's name.
        sources: item id -> ids of the segments where the item comes from; becomes `info.segments` of the item.
    """
    kept = TestBank({key: items for key, items in bank.items.items() if items}, bank.query_texts, bank.facet_texts)
    entries = bank_entries(kept, test_collection=test_collection, info=info)
    if sources is None:
        return entries
    return [
        entry.model_copy(
            update={
                "items": [
                    item.model_copy(update={"info": {"segments": list(sources.get(item.given_id or "", ()))}})
                    for item in entry.items
                ]
            }
        )
        for entry in entries
    ]


def write_synthetic(name: str, queries: Iterable[SyntheticQuery]) -> None:
    """Writes synthetic queries as JSON lines: a query file whose lines also keep document, passages and model.

    Raises:
        InputError: there are none, or the file cannot be written.
    """
    lines = [canonical_json(query._asdict()) for query in queries]
    if not lines:
        raise InputError(f"{path_name(name)}: there are no queries to write")
    with atomic_writer(name) as stream:
        stream.writelines(line + "\n" for line in lines)


def aspect_bank(query_texts: Mapping[str, str], prompt: str = "ragelo.answer_pointwise") -> TestBank:
    """A bank whose items are the aspects that a prompt grades (`relevance`, `accuracy`, …), for each query.

    So each aspect has a grade of its own, and leaderboards, agreement and reports work as for any other bank.

    Args:
        query_texts: query_id -> text.
        prompt: the prompt's name or .toml file.

    Raises:
        InputError: the prompt does not grade aspects.

    >>> [item.text for item in aspect_bank({"q1": "What is ice?"})]
    ['relevance', 'accuracy', 'completeness', 'precision']
    """
    loaded = load_prompt(prompt)
    if loaded.parser != "aspects":
        raise InputError(f"prompt {prompt} does not grade aspects; name a test bank")
    items = {
        query_id: tuple(RubricItem(make_item_id(query_id, label), query_id, label) for label in loaded.labels)
        for query_id in query_texts
    }
    return TestBank(items, dict(query_texts))
