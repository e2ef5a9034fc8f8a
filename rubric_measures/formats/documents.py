"""Documents of collections: JSON lines or a list, CSV, TSV, parquet; all of them, or wanted ones alone."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from itertools import chain
from typing import Any, NamedTuple

import msgspec

from rubric_measures.base.errors import FormatError, warn
from rubric_measures.base.files import begins_records, iter_lines, open_binary, path_name, peek_head
from rubric_measures.base.json_text import parse_json
from rubric_measures.formats.base import PathName, cells_of
from rubric_measures.formats.specs import DOC_IDS, NAMES, Row, Spec, spec
from rubric_measures.formats.tables import PARQUET, Cells, Rows, as_object, plain_name, row_of, unwrapped


class Document(NamedTuple):
    """A document of a collection in which documents have titles."""

    doc_id: str
    title: str
    text: str

    def default_text(self) -> str:
        """title and text"""
        return f"{self.title}\n{self.text}".strip()


DOCUMENTS: Spec[list[Row]] = spec("documents")


def is_documents(path: PathName) -> bool:
    """Whether a file begins as one of documents does: an object, a list of them, a tag, a line with a tab, a header."""
    head = peek_head(path).lstrip()
    if head[:1] in (b"{", b"<", b"[") or head[:4] == b"PAR1":
        return not begins_records(path)
    first = head.partition(b"\n")[0]
    columns = set(map(plain_name, cells_of(first.decode("utf-8", "replace"))))
    return b"\t" in first or not (columns.isdisjoint(DOC_IDS) or columns.isdisjoint(NAMES["text"]))


def read_documents(paths: Sequence[PathName], wanted: AbstractSet[str] | None = None) -> dict[str, Document]:
    """doc_id -> document of files in any of the forms.

    Args:
        paths: the files, gzipped or plain.
        wanted: the ids of the documents to keep; None keeps all. Lines of other documents are passed over: that they
            have an id is all that is looked at.

    Raises:
        InputError: a file cannot be opened.
        FormatError: naming file and line: a field is missing, an id has two texts, there are no documents.
    """
    found: dict[str, Document] = {}
    places: dict[str, tuple[str, int]] = {}
    for path in paths:
        name, again, count = path_name(path), 0, 0
        for count, (line, document) in enumerate(iter_documents(path, wanted), 1):  # noqa: B007 - their number
            known = found.setdefault(document.doc_id, document)
            first, at = places.setdefault(document.doc_id, (name, line))
            if known != document:
                where = f"line {at}" if first == name else f"{first}:{at}"
                raise FormatError(f"{document.doc_id!r} has another text in {where}", path=name, line=line)
            again += (first, at) != (name, line)
        warn("%s: %d documents repeat an earlier one; each is kept once", name, again)
        if not count and wanted is None:
            raise FormatError("holds no documents", path=name)
    return found


def iter_documents(path: PathName, wanted: AbstractSet[str] | None = None) -> Iterator[tuple[int, Document]]:
    """Line, and document, one after the other; see `read_documents`."""
    if peek_head(path).lstrip()[:1] == b"<":
        raise FormatError("holds no documents in JSON lines or tables; write JSON lines", path=path_name(path))
    source = path if wanted is None else _sifted(path, wanted)
    for row in DOCUMENTS.rows(source, wanted):
        yield row.line, Document(**row.said)


def _sifted(path: PathName, wanted: AbstractSet[str]) -> PathName | Rows:
    """Of a file of lines the rows whose id is wanted, nothing of others being read; other files as they are.

    Which field of objects is the id, and whether lines have tabs and no header, is told by the first one.
    """
    name = path_name(path)
    line, first = next(iter_lines(path), (0, b"")) if name != "-" else (0, b"")
    if first.lstrip()[:1] == b"{":
        with contextlib.suppress(FormatError):
            said = parse_json(first, path=name, line=line)
            field = next((one for one in DOC_IDS if said.get(one) not in (None, "")), None)
            # An object that holds rows is no line of a document.
            if field is not None and unwrapped(line, said) == [(line, said)]:
                id_alone: Any = msgspec.defstruct("_Id", [("doc_id", str | int | None, None)], rename={"doc_id": field})
                decode = msgspec.json.Decoder(id_alone).decode
                lines = _wanted_lines(path, wanted, lambda line: decode(line).doc_id or None)
                return Rows(
                    name, None, ((at, as_object(parse_json(one, path=name, line=at), name, at)) for at, one in lines)
                )
    elif b"\t" in first and not first.lstrip().startswith((b"[", PARQUET)):
        cells = first.decode("utf-8", "replace").split("\t")
        columns = next((one for one in DOCUMENTS.bare if len(one) == len(cells)), ())
        if columns and not DOCUMENTS.is_header([cell.strip() for cell in cells]):
            lines = _wanted_lines(path, wanted, lambda line: line.partition(b"\t")[0].decode())
            return Rows(name, columns, ((at, _cells(data, columns, name, at)) for at, data in lines), True)
    return path


def _wanted_lines(
    path: PathName, wanted: AbstractSet[str], id_of: Callable[[bytes], Any]
) -> Iterator[tuple[int, bytes]]:
    """The lines of wanted documents, and those without an id, about which the reader of rows has something to say."""
    asked = {*wanted, "None", ""}
    with open_binary(path) as stream:
        for number, line in enumerate(chain([stream.readline().removeprefix(b"\xef\xbb\xbf")], stream), 1):
            try:
                is_wanted = str(id_of(line)).strip() in asked
            except (ValueError, RecursionError):
                is_wanted = True
            if is_wanted and not line.isspace():
                yield number, line.rstrip(b"\r\n")


def _cells(data: bytes, columns: Sequence[str], name: str, line: int) -> Cells:
    try:
        cells = data.decode("utf-8").split("\t")
    except UnicodeDecodeError:
        raise FormatError("is not UTF-8; convert the file first", path=name, line=line) from None
    return row_of(columns, cells, "first line", name, line)
