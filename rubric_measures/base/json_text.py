"""The one place that parses JSON, and the JSON texts of files with their places; without pydantic.

What files say is read strictly, replies of models and what we stored ourselves as Python reads it.
"""

from __future__ import annotations

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
from rubric_measures.base.files import decode_text, iter_lines, path_name

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
    as no JSON is given line by line.

    Raises:
        InputError: the file cannot be opened.
        FormatError: a list, or a text over several lines, is not JSON; names file and line.
    """
    name = path_name(path)
    lines = iter_lines(name)
    first = next(lines, None)
    if first is None:
        return
    start, is_one = first[1].lstrip()[:1], False
    with contextlib.suppress(ValueError, RecursionError):
        is_one = start == b"{" and bool(_decoded(first[1]))
    if start not in (b"[", b"{") or is_one:
        yield first
        yield from lines
        return
    # A corpus may be one list, of which no copy is kept.
    pairs = itertools.pairwise(itertools.chain([(1, b""), first], lines))
    text = decode_text(b"".join(b"\n" * (at - before) + line for (before, _), (at, line) in pairs), name)
    del first
    yield from scanned_json(text, name)


def scanned_json(text: str, name: str) -> Iterator[tuple[int, bytes]]:
    """The JSON texts of a text, or the elements of its one list, as `json_texts` gives those of a file."""
    in_list = text.lstrip()[:1] == "["
    place, counted, line = text.find("[") + 1 if in_list else 0, 0, 1
    while (place := _past_blanks(text, place)) < len(text) and not (in_list and text[place] == "]"):
        line += text.count("\n", counted, place)
        counted = start = place
        try:
            _, place = json_at(text, place)
        except (ValueError, RecursionError) as error:
            at = getattr(error, "pos", place)
            problem = f"is not JSON: {getattr(error, 'msg', 'is nested too deep')}"
            raise FormatError(problem, path=name, line=line + text.count("\n", counted, at)) from None
        yield line, text[start:place].encode("utf-8")
        place = _past_blanks(text, place)
        if in_list and text[place : place + 1] not in ("]", ","):
            break
        place += in_list and text[place] == ","
    if in_list and text[place : place + 1] != "]":
        problem = "is not JSON: expected ',' or ']' after an element of the list"
        raise FormatError(problem, path=name, line=text.count("\n", 0, place) + 1)


def _past_blanks(text: str, place: int) -> int:
    found = _BLANKS.match(text, place)
    return found.end() if found else place


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
