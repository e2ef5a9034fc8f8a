"""The one place that parses JSON, and the JSON texts of files with their places; without pydantic.

What files say is read strictly, replies of models and what we stored ourselves as Python reads it.
"""

from __future__ import annotations

import codecs
import contextlib
import itertools
import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from typing import Annotated, Any, TypeVar

import msgspec

from rubric_measures.base.errors import FormatError
from rubric_measures.base.files import open_binary, path_name

_KINDS = {
    "str": "a text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
}
_T = TypeVar("_T")
# A number of a database, which keeps infinite ones too; a whole one stays whole.
Finite = int | Annotated[float, msgspec.Meta(ge=-1e300, le=1e300)]
_decoded = msgspec.json.Decoder().decode
_STRICT, _LENIENT = json.JSONDecoder(), json.JSONDecoder(strict=False)
_BLANKS = re.compile(r"\s*")
# Bytes that are read at a time.
_PIECE = 1 << 20
_DEEPEST = 200


def parse_json(data: bytes | str, *, path: str = "", line: int = 0, lenient: bool = False) -> Any:
    """The value of one JSON text.

    NaN, infinity and lone surrogates are refused, and so are texts that nest deeper than 200 levels. Whole numbers keep
    all their digits.

    Args:
        data: the text, UTF-8 without BOM, which `iter_lines` and `read_text` take off.
        path: the file, for errors.
        line: its line, or 0.
        lenient: whether NaN, infinities, lone surrogates and control characters in strings pass: for replies of models
            and servers, and for what we stored ourselves.

    Raises:
        FormatError: it is not JSON; names file and line.
    """
    brackets = "[{" if isinstance(data, str) else (b"[", b"{")
    with contextlib.suppress(ValueError, RecursionError):
        # What nests deeper than the other parser reads cannot be written again.
        if lenient or sum(map(data.count, brackets)) <= _DEEPEST:  # type: ignore[arg-type]
            return _decoded(data)
    try:
        if lenient:
            return json.loads(data, strict=False)
        # It says best what is wrong and where; but 1e400 is a number to it, if no finite one.
        from pydantic_core import from_json

        value = from_json(data, allow_inf_nan=False)
        json.dumps(value, allow_nan=False)
        return value
    except (ValueError, RecursionError) as error:
        text, line = placed(f"is not JSON: {error}", line)
        raise FormatError(text, path=path, line=line) from None


def check_utf8(data: bytes, *, path: str = "", line: int = 0) -> None:
    """Refuses what is no UTF-8 in a JSON text: of what a decoder does not look at, nobody else checks it.

    Raises:
        FormatError: naming file and line.
    """
    if not data.isascii():
        try:
            data.decode("utf-8")
        except UnicodeDecodeError:
            # The careful parser says where.
            parse_json(data, path=path, line=line)


def decoded(
    decoder: msgspec.json.Decoder[_T], data: bytes, *, path: str = "", line: int = 0, choices: Iterable[str] = ()
) -> _T:
    """What a JSON text says, of the type that a decoder reads.

    Args:
        decoder: reads the text.
        data: the text, UTF-8 without BOM.
        path: the file, for errors.
        line: its line, or 0.
        choices: the values of fields that allow but a few texts, for errors.

    Raises:
        FormatError: it is not JSON, or says something else; names file, line and field.
    """
    try:
        return decoder.decode(data)
    except msgspec.ValidationError as error:
        field, problem = _misfit(str(error), parse_json(data, path=path, line=line), choices)
    except (ValueError, RecursionError) as error:
        # The careful parser says where.
        parse_json(data, path=path, line=line)
        field, problem = "", f"is not JSON: {error}"
    raise FormatError(problem, path=path, line=line, field=field)


def typed(kind: type[_T], value: Any, path: str) -> _T:
    """What a file says, as a record of this type.

    Raises:
        FormatError: it says something else; names file and field.
    """
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        field, problem = _misfit(str(error), value, ())
    raise FormatError(problem, path=path, field=field)


def stored_rows(kind: Any, rows: Iterable[Sequence[Any]], path: str) -> list[Any]:
    """Rows of a database of ours, each of this type: SQLite keeps what it is given, whatever the column.

    Raises:
        FormatError: one says something else; names the file.
    """
    try:
        return msgspec.convert(list(rows), list[kind])
    except msgspec.ValidationError:
        raise damaged(path) from None


def damaged(path: str) -> FormatError:
    """The error of a database of ours that does not hold what we put there."""
    return FormatError("is damaged; go on with a copy that is whole, or name another file", path=path)


def _misfit(error: str, value: Any, choices: Iterable[str]) -> tuple[str, str]:
    """The field of a value that msgspec complains about, and in one line what was expected and found there."""
    what, _, path = error.partition(" - at `$")
    field = ""
    steps = re.findall(r"\.([^.\[]+)|\[(?:(\d+)|\.\.\.)\]", path.removesuffix("`"))
    for number, (name, place) in enumerate(steps, 1):
        step: Any = int(place) if place else name
        if not step and isinstance(value, dict):
            # msgspec names no key where any may stand: there values are numbers, or texts, perhaps of a few.
            is_text, ends = "got `str`" in what, {}
            for key, one in value.items():
                with contextlib.suppress(LookupError, TypeError):
                    ends[key] = reduce(lambda at, more: at[int(more[1]) if more[1] else more[0]], steps[number:], one)
            fits = [key for key, one in ends.items() if isinstance(one, str) is is_text or repr(one) in what]
            if not fits:
                break
            step = fits[0]
        field += f"[{step}]" if place else f".{step}"
        value = value[step]
    lacks = re.match(r"Object missing required field `(.*)`|Expected `array` of length (\d+)", what)
    if lacks and (lacks[1] or len(value) < int(lacks[2])):
        field += f".{lacks[1]}" if lacks[1] else f"[{len(value)}]"
        return field.removeprefix("."), "required field is missing"
    if expected := re.match("Expected `(.*?)`([^,]*)", what):
        names = expected[1].removesuffix(" | null").replace("int | float", "float").split(" | ")
        what = f"expected {' or '.join(_KINDS.get(name, name) for name in names)}{expected[2]}"
    elif "enum" in what:
        what = f"expected one of {', '.join(choices)}" if choices else "expected another of the words of this field"
    return field.removeprefix("."), f"{what}; found {shown(value)}"


def shown(value: Any) -> str:
    """A value in a few words, for errors."""
    text = " ".join(repr(value).split()) if not isinstance(value, list | dict) else ""
    if isinstance(value, list):
        return f"a list of {len(value)}"
    if isinstance(value, dict):
        return f"an object with {', '.join(map(repr, list(value)[:4])) or 'no fields'}"
    return text if len(text) <= 60 else text[:57] + "…"


def placed(problem: str, line: int) -> tuple[str, int]:
    """A parser's message without the line that it names, and that line where no other is known."""
    found = re.search(r" at line (\d+) column (\d+)", problem)
    if found is None:
        return problem, line
    return problem.replace(found[0], f" at column {found[2]}"), line or int(found[1])


def without_nan(data: bytes) -> bytes:
    """A JSON text with null in the place of NaN; as it is where it is none."""
    try:
        value = json.loads(data, parse_constant=lambda said: None if said == "NaN" else float(said))
    except (ValueError, RecursionError):
        return data
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")


def json_at(text: str, start: int = 0, *, lenient: bool = False) -> tuple[Any, int]:
    """The JSON value that begins at a place of a text, and where it ends; `lenient` as in `parse_json`.

    Raises:
        ValueError: none begins there.
        RecursionError: one does, and nests too deep.
    """
    return (_LENIENT if lenient else _STRICT).raw_decode(text, start)


def json_texts(path: str | os.PathLike[str]) -> Iterator[tuple[int, bytes]]:
    """The JSON texts of a file, each with the line that it begins in, unread but for their ends.

    A text a line; or the elements of one list; or texts over several lines, one behind the other. A file that begins
    as no JSON is given line by line. One text is held at a time, or a megabyte.

    Raises:
        InputError: the file cannot be opened.
        FormatError: a list, or a text over several lines, is not JSON; names file and line.
    """
    name, number = path_name(path), 1
    with open_binary(name) as stream:
        first = stream.readline(_PIECE).removeprefix(b"\xef\xbb\xbf")
        while first.isspace():
            number += first.count(b"\n")
            first = stream.readline(_PIECE)
        start, is_one = first.lstrip()[:1], False
        if start == b"{":
            first += b"" if first.endswith(b"\n") else stream.readline()
            with contextlib.suppress(ValueError, RecursionError):
                is_one = bool(_decoded(first))
        if start == b"[" or (start == b"{" and not is_one):
            pieces = itertools.chain([first], iter(lambda: stream.read(_PIECE), b""))
            yield from scanned_json(pieces, name, number)
        else:
            lines = enumerate(itertools.chain([first], stream), number)
            yield from ((at, line.rstrip(b"\r\n")) for at, line in lines if line and not line.isspace())


def scanned_json(pieces: Iterable[bytes], name: str, line: int = 1) -> Iterator[tuple[int, bytes]]:
    """The JSON texts in pieces of a text, or the elements of its one list, as `json_texts` gives those of a file.

    Args:
        pieces: the text.
        name: the file.
        line: the number of its first line.
    """
    window = _Window(pieces, name, line)
    in_list = window.next() == "["
    window.place += in_list
    while (char := window.next()) and not (in_list and char == "]"):
        yield window.value()
        char = window.next()
        if in_list and char not in ("]", ","):
            break
        window.place += in_list and char == ","
    if in_list:
        if char != "]":
            raise window.wrong("expected ',' or ']' after an element of the list", window.place)
        window.place += 1
        if window.next():
            raise window.wrong("something stands behind the list", window.place)


class _Window:
    """What is looked at of a long text: what was read before is forgotten."""

    def __init__(self, pieces: Iterable[bytes], name: str, line: int) -> None:
        self.pieces, self.name, self.line = itertools.chain(pieces, [b""]), name, line
        self.decoder = codecs.getincrementaldecoder("utf-8")()
        self.text, self.place, self.counted = "", 0, 0

    def next(self) -> str:
        """The next character that is no blank, where the window then stands; none at the end."""
        while True:
            found = _BLANKS.match(self.text, self.place)
            self.place = found.end() if found else self.place
            if self.place < len(self.text) or not self.more():
                return self.text[self.place : self.place + 1]

    def value(self) -> tuple[int, bytes]:
        """The line and the text of the value that begins here."""
        self.line += self.text.count("\n", self.counted, self.place)
        self.counted = self.place
        while True:
            try:
                _, end = json_at(self.text, self.place)
            except (ValueError, RecursionError) as error:
                # Its end may not be there yet.
                at = getattr(error, "pos", self.place) - self.place
                if not self.more():
                    raise self.wrong(getattr(error, "msg", "is nested too deep"), at) from None
            else:
                size = end - self.place
                # A number may go on, as 1 with e+2.
                if end + 2 < len(self.text) or not self.more():
                    found = self.text[self.place : self.place + size]
                    self.place += size
                    return self.line, found.encode("utf-8")

    def more(self) -> bool:
        """Reads on, at least as much as is left, so that a long text is looked at a few times; whether there was more.

        The window then stands at the beginning of the text.
        """
        self.line += self.text.count("\n", self.counted, self.place)
        read, size = [self.text[self.place :]], 0
        for piece in self.pieces:
            try:
                read.append(self.decoder.decode(piece, final=not piece))
            except UnicodeDecodeError as error:
                line = self.line + "".join(read).count("\n") + error.object.count(b"\n", 0, error.start)
                raise FormatError("is not UTF-8; convert the file first", path=self.name, line=line) from None
            size += len(piece)
            if size > len(read[0]):
                break
        self.text, self.place, self.counted = "".join(read), 0, 0
        return size > 0

    def wrong(self, problem: str, place: int) -> FormatError:
        """The error of a text that is no JSON at a place of the window."""
        line = self.line + self.text.rstrip().count("\n", self.counted, place)
        return FormatError(f"is not JSON: {problem}", path=self.name, line=line)


def check_keys(data: bytes | str, *, path: str, line: int = 0) -> None:
    """Refuses an object that names a key twice: people would read the one, and parsers keep the last in silence.

    It parses the text once more, and slower, so it is for files that are written by hand: queries, test banks, nuggets,
    rubrics, leaderboards, prices.

    Raises:
        FormatError: a key comes twice; names the file and the key, and the line where that is known.
    """

    def once(pairs: list[tuple[str, Any]]) -> None:
        for name, number in Counter(name for name, _ in pairs).items() if len(dict(pairs)) < len(pairs) else ():
            if number > 1:
                problem = f"the key {name[:60]!r} comes twice in one object; keep one"
                raise FormatError(problem, path=path, line=line)

    # What is no JSON is its parser's to refuse.
    with contextlib.suppress(json.JSONDecodeError, UnicodeDecodeError, RecursionError):
        json.loads(data, object_pairs_hook=once)
