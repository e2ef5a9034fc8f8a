"""Tests of the one place that parses JSON: what it refuses, what it keeps, and that nobody parses beside it."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rubric_measures
from rubric_measures.base.errors import FormatError
from rubric_measures.base.json_text import check_keys, json_at, json_texts, parse_json, scanned_json

PACKAGE = Path(rubric_measures.__file__).parent


def test_nobody_else_parses_json() -> None:
    parsing = re.compile(r"json\.loads?\(|json\.JSONDecoder|raw_decode|\bfrom_json\(|msgspec\.json\.decode\(")
    # Records are structs of their own bytes.
    doors = {"base/json_text.py", "records/typed.py", "records/models.py"}
    found = [
        f"{path.relative_to(PACKAGE)}:{number}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if parsing.search(line) and path.relative_to(PACKAGE).as_posix() not in doors
    ]
    assert found == []


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (b"[NaN]", "f:7: is not JSON: expected value at column 2"),
        (b"[-Infinity]", "f:7: is not JSON: "),
        (rb'["a\ud800"]', "f:7: is not JSON: "),
        (rb'{"\udc00": 1}', "f:7: is not JSON: "),
        (b'["\xff"]', "f:7: is not JSON: invalid unicode code point"),
        (b"\xef\xbb\xbf[]", "f:7: is not JSON: "),
        (b'["a\tb"]', "f:7: is not JSON: control character"),
        (b"[1,]", "f:7: is not JSON: trailing comma at column 4"),
        (b"", "f:7: is not JSON: EOF while parsing a value"),
        (b"[" * 300 + b"]" * 300, "f:7: is not JSON: recursion limit exceeded"),
        (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, "f:7: is not JSON: recursion limit exceeded"),
        (b"1" + b"0" * 5000, "f:7: is not JSON: number out of range"),
    ],
)
def test_what_is_refused(text: bytes, problem: str) -> None:
    with pytest.raises(FormatError) as found:
        parse_json(text, path="f", line=7)
    assert str(found.value).startswith(problem) and "\n" not in str(found.value)


def test_the_line_is_that_of_the_text_where_no_other_is_known() -> None:
    with pytest.raises(FormatError, match=r"^f:3: is not JSON: expected value at column 1$"):
        parse_json('{"a":\n[1,\nNaN]}', path="f")


@pytest.mark.parametrize("text", ["9007199254740993", "1" + "0" * 400, "-" + "9" * 25, "18446744073709551616"])
def test_whole_numbers_keep_their_digits(text: str) -> None:
    assert [str(one) for one in parse_json(f'[{text}, {{"id": {text}}}]')[:1]] == [text]


def test_replies_are_read_as_python_reads_them() -> None:
    found = parse_json('{"a": NaN, "b": [Infinity], "c": "x\ny", "d": "\\ud800"}', lenient=True)
    assert math.isnan(found["a"]) and found["b"] == [math.inf] and found["c"] == "x\ny" and found["d"] == "\ud800"
    for wrong in ("{", "[" * 100_000, b'"\xff"'):
        with pytest.raises(FormatError):
            parse_json(wrong, lenient=True)
    assert json_at('so [1, "x\ny"] it is', 3, lenient=True) == ([1, "x\ny"], 13)
    with pytest.raises(ValueError, match="control character"):
        json_at('so [1, "x\ny"] it is', 3)


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(_VALUES, st.booleans())
def test_what_was_written_is_read(value: Any, ascii_only: bool) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only)
    for data in (text, text.encode("utf-8")):
        # Their texts are equal, too: 1 is no 1.0.
        assert repr(parse_json(data)) == repr(value)
        assert repr(parse_json(data, lenient=True)) == repr(value)


def test_texts_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "texts.json"
    for content, texts in (
        (b"", []),
        (b'\xef\xbb\xbf{"a": 1}\n\n{"b": NaN}\n', [(1, b'{"a": 1}'), (3, b'{"b": NaN}')]),
        (b'[{"a": 1},\n {"b": 2}]', [(1, b'{"a": 1}'), (2, b'{"b": 2}')]),
        (b'{\n"a": 1}\n{"b": 2}', [(1, b'{\n"a": 1}'), (3, b'{"b": 2}')]),
        (b"a\tb\n\xff\n", [(1, b"a\tb"), (2, b"\xff")]),
    ):
        path.write_bytes(content)
        assert list(json_texts(path)) == texts
    path.write_bytes(b'{\n"a": "\xff"}')
    with pytest.raises(FormatError, match=r"texts.json:2: is not UTF-8; convert the file first"):
        list(json_texts(path))


def test_keys_that_come_twice() -> None:
    check_keys('{"a": {"b": 1}, "c": [{"b": 1}, {"b": 2}]}', path="f")
    with pytest.raises(FormatError, match=r"^f:7: the key 'b' comes twice in one object; keep one$"):
        check_keys('{"a": {"b": 1,\n"\\u0062": 2}}', path="f", line=7)


@given(
    values=st.lists(_VALUES, max_size=6),
    indent=st.sampled_from([None, 0, 2]),
    is_plain=st.booleans(),
    size=st.integers(1, 40),
)
def test_a_list_in_pieces_is_its_elements_with_their_lines(
    values: list[Any], indent: int | None, is_plain: bool, size: int
) -> None:
    data = json.dumps(values, indent=indent, ensure_ascii=is_plain).encode()
    pieces = [data[start : start + size] for start in range(0, len(data), size)]
    found = list(scanned_json(pieces, "f", 3))
    assert [json.loads(text) for _, text in found] == values
    if indent is not None:
        places = [json.dumps(values[: number + 1], indent=indent).count("\n") for number in range(len(values))]
        sizes = [json.dumps(value, indent=indent).count("\n") for value in values]
        assert [line for line, _ in found] == [2 + place - of for place, of in zip(places, sizes, strict=True)]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('[\n{"a": 1}', "f:2: is not JSON: expected ',' or ']' after an element of the list"),
        ('[{"a": 1}]\n[{"a": 2}]\n', "f:2: is not JSON: something stands behind the list"),
        ('[{"a": 1},\n{"a": 2\n', "f:2: is not JSON: Expecting ',' delimiter"),
        ('[{"a": 1},\n{"a": "é', "f:2: is not JSON: Unterminated string starting at"),
        ('{"a":\n1}\n{"a":\n', "f:3: is not JSON: Expecting value"),
        ('{"a":\n1}\n{\n"a": 1,\n"b": oops\n}\n\n', "f:5: is not JSON: Expecting value"),
    ],
)
def test_where_a_list_is_cut_or_goes_on_is_one_line(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "f"
    path.write_text(text)
    with pytest.raises(FormatError) as caught:
        list(json_texts(path))
    assert str(caught.value).endswith(problem.removeprefix("f"))
