"""Document files: JSON lines (BEIR, Anserini, PyTerrier), tab-separated columns (MS MARCO) and TREC SGML."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, BinaryIO, NamedTuple

from ir_datasets.formats import GenericDoc, TrecDocs
from pydantic import Field, TypeAdapter, model_validator

from rubric_measures.base.errors import FormatError
from rubric_measures.base.files import iter_lines, open_binary, peek_head
from rubric_measures.base.json_files import JsonLines, Record, TextId

# Of our own files; BEIR; Anserini; PyTerrier; MS MARCO v2 (documents, passages).
_IDS = ("doc_id", "_id", "id", "docno", "docid", "pid")
_TEXTS = ("text", "contents", "body", "segment", "passage")
_KNOWN = (
    f"JSON lines (an id in {', '.join(_IDS)}; a text in {', '.join(_TEXTS)}; title, where there is one), "
    "tab-separated id and text, or id, URL, title and text (MS MARCO), or columns named in the first line, TREC SGML "
    "(<DOC>, <DOCNO>)"
)


class TitledDoc(NamedTuple):
    """A document of a collection in which documents have titles."""

    doc_id: str
    title: str
    text: str

    def default_text(self) -> str:
        """title and text"""
        return f"{self.title}\n{self.text}".strip()


class _Doc(Record):
    doc_id: Annotated[TextId, Field(min_length=1)]
    text: str
    title: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _named(cls, value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        found = [next((name for name in names if value.get(name) is not None), None) for names in (_IDS, _TEXTS)]
        if None in found:
            wanted = "an id" if found[0] is None else "a text"
            names = ", ".join(_IDS if found[0] is None else _TEXTS)
            raise ValueError(f"expected {wanted} in one of {names}; found {', '.join(map(repr, list(value)[:6]))}")
        return {"doc_id": value[found[0]], "text": value[found[1]], "title": value.get("title")}


_DOCS = JsonLines(TypeAdapter(_Doc), "documents")


def is_documents(path: Path) -> bool:
    """Whether a file begins as one of documents does: with an object, a tag, or a line with a tab."""
    head = peek_head(path).lstrip()
    return head[:1] in (b"{", b"<") or (head[:1] != b"[" and b"\t" in head.partition(b"\n")[0])


def read_docs(paths: Sequence[Path]) -> dict[str, Any]:
    """doc_id -> document of files in any of the forms, gzipped or plain; a title is kept.

    Raises:
        InputError: a file cannot be opened.
        FormatError: naming file and line: a field is missing, an id comes twice, there are no documents.
    """
    rows: dict[str, TitledDoc] = {}
    places: dict[str, tuple[Path, int]] = {}
    for path in paths:
        count = len(rows)
        for line, row in _rows(path):
            if row.doc_id in places:
                first, at = places[row.doc_id]
                where = f"line {at}" if first == path else f"{first}:{at}"
                raise FormatError(f"{row.doc_id!r} is already in {where}", path=str(path), line=line)
            places[row.doc_id] = (path, line)
            rows[row.doc_id] = row
        if len(rows) == count:
            raise FormatError(f"holds no documents; expected {_KNOWN}", path=str(path))
    if any(row.title for row in rows.values()):
        return rows
    return {row.doc_id: GenericDoc(row.doc_id, row.text) for row in rows.values()}


def _rows(path: Path) -> Iterable[tuple[int, TitledDoc]]:
    start = peek_head(path).lstrip()[:1]
    if start == b"{":
        return ((line, TitledDoc(row.doc_id, row.title or "", row.text)) for line, row in _DOCS.numbered(path))
    return _tagged(path) if start == b"<" else _columns(path)


def _columns(path: Path) -> Iterator[tuple[int, TitledDoc]]:
    places: tuple[int, int | None, int] | None = None
    width = 0
    for line, data in iter_lines(path):
        try:
            cells = data.decode("utf-8").split("\t")
        except UnicodeDecodeError:
            raise FormatError("is not UTF-8; convert the file first", path=str(path), line=line) from None
        if places is None:
            places, is_header = _places(cells, path)
            width = len(cells)
            if is_header:
                continue
        if len(cells) != width:
            problem = f"has {len(cells)} tab-separated columns, and the first line {width}"
            raise FormatError(problem, path=str(path), line=line)
        doc_id, title, text = places
        if not cells[doc_id].strip():
            raise FormatError("the document id is empty", path=str(path), line=line)
        yield line, TitledDoc(cells[doc_id].strip(), "" if title is None else cells[title].strip(), cells[text])


def _places(cells: Sequence[str], path: Path) -> tuple[tuple[int, int | None, int], bool]:
    """Where id, title and text stand, and whether the first line says so."""
    names = [cell.strip().lower() for cell in cells]
    ids, texts = ([names.index(name) for name in known if name in names] for known in (_IDS, _TEXTS))
    if ids and texts:
        return (ids[0], names.index("title") if "title" in names else None, texts[0]), True
    if len(cells) == 2:
        return (0, None, 1), False
    if len(cells) == 4:
        return (0, 2, 3), False
    raise FormatError(f"has {len(cells)} tab-separated columns; expected {_KNOWN}", path=str(path), line=1)


class _LocalFile:
    """What ir_datasets takes for a file that it downloaded."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def path(self, force: bool = True) -> Path:
        return self._path

    @contextlib.contextmanager
    def stream(self) -> Iterator[BinaryIO]:
        with open_binary(self._path) as stream:
            yield stream


def _tagged(path: Path) -> Iterator[tuple[int, TitledDoc]]:
    for number, row in enumerate(TrecDocs(_LocalFile(path), parser="sax").docs_iter(), 1):
        if not row.doc_id.strip():
            raise FormatError(f"document {number} has no <DOCNO>", path=str(path))
        yield number, TitledDoc(row.doc_id.strip(), " ".join(row.title.split()), row.body.strip())
