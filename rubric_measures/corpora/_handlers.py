"""The handlers of a collection: what ir_datasets asks for documents, queries, judgments and rankings, read lazily."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from ir_datasets.formats import (
    BaseDocs,
    BaseQrels,
    BaseQueries,
    BaseScoredDocs,
    GenericDoc,
    GenericQuery,
    GenericScoredDoc,
)
from ir_datasets.indices import Docstore

from rubric_measures.types.entities import Run


class _Rows(Iterator[Any]):
    """An iterator that can also be asked for a position or a slice, as ir_datasets' document iterators can."""

    def __init__(self, rows: Sequence[Any]) -> None:
        self._rows = rows
        self._next = iter(rows)

    def __next__(self) -> Any:
        return next(self._next)

    def __getitem__(self, key: int | slice) -> Any:
        return _Rows(self._rows[key]) if isinstance(key, slice) else self._rows[key]


class _Store(Docstore):  # type: ignore[misc]
    """Documents in memory, by id."""

    def __init__(self, docs: Mapping[str, Any], doc_cls: type) -> None:
        super().__init__(doc_cls)
        self._docs = docs

    def get_many_iter(self, doc_ids: Iterable[str]) -> Iterator[Any]:
        """The documents that exist, in the order asked for."""
        for doc_id in doc_ids:
            if doc_id in self._docs:
                yield self._docs[doc_id]


class DocsHandler(BaseDocs):  # type: ignore[misc]
    """Documents: doc_id -> text or document, read on first use and kept."""

    def __init__(self, read: Callable[[], Mapping[str, Any]]) -> None:
        self._read = read

    @cached_property
    def _docs(self) -> dict[str, Any]:
        return {
            doc_id: GenericDoc(doc_id, found) if isinstance(found, str) else found
            for doc_id, found in self._read().items()
        }

    def docs_iter(self) -> Iterator[Any]:
        """All documents, in file order; the iterator takes positions and slices."""
        return _Rows(list(self._docs.values()))

    def docs_store(self) -> Docstore:
        """The documents by id."""
        return _Store(self._docs, self.docs_cls())

    def docs_cls(self) -> Any:
        """The type of the documents."""
        return next((type(document) for document in self._docs.values()), GenericDoc)

    def docs_count(self) -> int:
        """How many there are."""
        return len(self._docs)


class QueriesHandler(BaseQueries):  # type: ignore[misc]
    """Queries: query_id -> text, read on first use and kept."""

    def __init__(self, read: Callable[[], Mapping[str, str]]) -> None:
        self._read = read

    @cached_property
    def _queries(self) -> list[GenericQuery]:
        return [GenericQuery(query_id, text) for query_id, text in self._read().items()]

    def queries_iter(self) -> Iterator[GenericQuery]:
        """All queries, in file order."""
        return iter(self._queries)

    def queries_count(self) -> int:
        """How many there are."""
        return len(self._queries)


class QrelsHandler(BaseQrels):  # type: ignore[misc]
    """Judgments, read on first use and kept."""

    def __init__(self, read: Callable[[], Sequence[Any]], row_type: type, definitions: Mapping[int, str]) -> None:
        self._read = read
        self._row_type = row_type
        self._definitions = dict(definitions)

    @cached_property
    def _rows(self) -> Sequence[Any]:
        return self._read()

    def qrels_iter(self) -> Iterator[Any]:
        """All judgments."""
        return iter(self._rows)

    def qrels_cls(self) -> Any:
        """The type of the rows."""
        return self._row_type

    def qrels_defs(self) -> dict[int, str]:
        """What the labels mean, where that is known."""
        return dict(self._definitions)

    def qrels_count(self) -> int:
        """How many there are."""
        return len(self._rows)


class ScoredDocsHandler(BaseScoredDocs):  # type: ignore[misc]
    """One run, read on first use."""

    def __init__(self, read: Callable[[], Run]) -> None:
        self._read = read

    def scoreddocs_iter(self) -> Iterator[GenericScoredDoc]:
        """The run's documents, query by query, best first."""
        for query_id, ranking in self._read().rankings.items():
            for doc_id, score in zip(ranking.doc_ids, ranking.scores, strict=True):
                yield GenericScoredDoc(query_id, doc_id, score)

    def scoreddocs_count(self) -> int:
        """How many there are."""
        return sum(len(ranking) for ranking in self._read().rankings.values())
