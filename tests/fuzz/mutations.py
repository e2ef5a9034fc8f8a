"""What is done to a file: one function a kind of damage, each drawn from a random source that a number seeds."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import random
import sqlite3
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["MUTATIONS", "drawn", "mutated", "put"]

# What stands in the place of the bytes where a name leads to no regular file.
FOLDER, PIPE, MISSING = b"\0folder", b"\0pipe", b"\0missing"
Mutation = Callable[[bytes, random.Random, Path], bytes]

_OTHER_TYPES = (
    "null", "true", "0", "-1", "7", "1.5", '""', '"  "', '"abc"', '"1"', "[]", "{}", "[1]", '["support"]', '{"a": 1}',
    "[null]", '"a\\tb"', '"a\\nb"', '"\\u001b[31mred"', '"\\u202eabc"', '"=1+1"', '"../x"', '"\\u0000"', '"é\\u0301"',
)  # fmt: skip
_NUMBERS = (
    "NaN", "Infinity", "-Infinity", "1e308", "-1e308", "1e400", "1e-320", "1" + "0" * 400, "1" + "0" * 5000, "-0.0",
    "9007199254740993", "9" * 19, "-" + "9" * 25, "0x10", "1_000", "٣", '"NaN"', '"1e400"', "5.0", "2.5",
)  # fmt: skip
_NOTHINGS = (
    b"", b"\n", b" ", b"\n\n\n", b"\xef\xbb\xbf", gzip.compress(b"", mtime=0), b"\x1f\x8b", b"[]", b"{}", b"null", b"0",
    b'""', b"[[]]", b"[{}]", b"[null]", b"{}\n{}\n",
)  # fmt: skip
_WIDE = ("utf-16", "utf-16-le", "utf-16-be", "utf-32")
_MAGIC = (b"", b"\x1f\x8b", b"%PDF-1.7\n", b"PK\3\4", b"SQLite format 3\0")
_FIELDS = ("", "abc", "-", "null", "a b", "[", '"', "\x1b[31m", "\u202e", "=1+1", "../x", "a\tb", ",", "#", "0", "-1")


def _packed(data: bytes) -> bytes:
    return gzip.compress(data, mtime=0)


def _position(data: bytes, rng: random.Random) -> int:
    return rng.randrange(len(data)) if data else 0


def cut_last_line(data: bytes, rng: random.Random, _: Path) -> bytes:
    """The file ends inside of its last line: what a full disk or a broken copy leaves."""
    start = data.rstrip(b"\n").rfind(b"\n") + 1
    return data[: rng.randrange(start, len(data))] if len(data) > start else data


def flip(data: bytes, rng: random.Random, _: Path) -> bytes:
    damaged = bytearray(data)
    for _number in range(rng.choice((1, 1, 1, 2, 5, 40)) if data else 0):
        damaged[rng.randrange(len(damaged))] = rng.randrange(256)
    return bytes(damaged)


def bytes_lost(data: bytes, rng: random.Random, _: Path) -> bytes:
    start = _position(data, rng)
    return data[:start] + data[start + rng.choice((1, 1, 2, 10, 100)) :]


def bytes_doubled(data: bytes, rng: random.Random, _: Path) -> bytes:
    start = _position(data, rng)
    end = start + rng.choice((1, 1, 2, 10, 100))
    return data[:end] + data[start:end] + data[end:]


def _in_lines(change: Callable[[list[bytes], random.Random], None]) -> Mutation:
    """What is done to the lines of a file that has two or more."""

    def mutation(data: bytes, rng: random.Random, _: Path) -> bytes:
        lines = data.splitlines(keepends=True)
        if len(lines) > 1:
            change(lines, rng)
        return b"".join(lines)

    return mutation


def _swap(lines: list[bytes], rng: random.Random) -> None:
    one, other = rng.sample(range(len(lines)), 2)
    lines[one], lines[other] = lines[other], lines[one]


line_lost = _in_lines(lambda lines, rng: lines.pop(rng.randrange(len(lines))) and None)
line_doubled = _in_lines(lambda lines, rng: lines.insert(rng.randrange(len(lines) + 1), rng.choice(lines)))


def _json_lines(data: bytes) -> tuple[list[Any], bool] | None:
    """The values of a JSON file, and whether it holds a value a line; None where it is none."""
    try:
        return [json.loads(data)], False
    except ValueError:
        pass
    try:
        rows = [json.loads(line) for line in data.splitlines() if line.strip()]
    except ValueError:
        return None
    return (rows, True) if rows else None


def _places(value: Any, found: list[tuple[Any, Any]]) -> None:
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        found.append((value, key))
        _places(child, found)


_MARK = "@fuzz@"


def _with_value(data: bytes, rng: random.Random, make: Callable[[Any, Any, Any], str]) -> bytes | None:
    """The JSON file with one value put as what `make` says of (its holder, its key, the value); None without JSON."""
    read = _json_lines(data)
    if read is None:
        return None
    rows, by_line = read
    places: list[tuple[Any, Any]] = [(rows, number) for number in range(len(rows))]
    _places(rng.choice(rows), places)
    holder, key = rng.choice(places)
    text = make(holder, key, holder[key])
    holder[key] = _MARK
    indent = None if by_line else 1
    written = "\n".join(json.dumps(row, ensure_ascii=False, indent=indent) for row in rows) + "\n"
    return written.replace(f'"{_MARK}"', text).encode("utf-8", "surrogatepass")


def _in_table(data: bytes, rng: random.Random, fields: tuple[str, ...]) -> bytes:
    """A table, or TOML, with one field or value replaced."""
    lines = data.split(b"\n")
    number = rng.randrange(len(lines))
    text = lines[number].decode("utf-8", "replace")
    if " = " in text:
        lines[number] = f"{text.partition(' = ')[0]} = {rng.choice((*fields, *_OTHER_TYPES))}".encode()
        return b"\n".join(lines)
    between = "\t" if "\t" in text else "," if "," in text else " "
    parts = text.split(between)
    parts[rng.randrange(len(parts))] = rng.choice(fields)
    lines[number] = between.join(parts).encode()
    return b"\n".join(lines)


def other_type(data: bytes, rng: random.Random, _: Path) -> bytes:
    changed = _in_database(data, rng)
    if changed is None:
        changed = _with_value(data, rng, lambda *_: rng.choice(_OTHER_TYPES))
    return _in_table(data, rng, _FIELDS) if changed is None else changed


def number(data: bytes, rng: random.Random, _: Path) -> bytes:
    changed = _with_value(data, rng, lambda *_: rng.choice(_NUMBERS))
    return _in_table(data, rng, tuple(text.strip('"') for text in _NUMBERS)) if changed is None else changed


def deep(data: bytes, rng: random.Random, _: Path) -> bytes:
    depth = rng.choice((70, 200, 300, 1000, 5000, 100_000))
    text = rng.choice(("[" * depth + "]" * depth, '{"a":' * depth + "1" + "}" * depth, "[" * depth))
    changed = _with_value(data, rng, lambda *_: text)
    return _in_table(data, rng, (text,)) if changed is None else changed


def key_doubled(data: bytes, rng: random.Random, _: Path) -> bytes:
    def twice(holder: Any, key: Any, value: Any) -> str:
        said = json.dumps(value, ensure_ascii=False)
        if not isinstance(holder, dict):
            return f"{said}, {said}"
        return f"{said}, {json.dumps(key)}: {rng.choice((said, *_OTHER_TYPES))}"

    changed = _with_value(data, rng, twice)
    return line_doubled(data, rng, Path()) if changed is None else changed


def key_lost(data: bytes, rng: random.Random, folder: Path) -> bytes:
    read = _json_lines(data)
    if read is None:
        return line_lost(data, rng, folder)
    rows, by_line = read
    places: list[tuple[Any, Any]] = []
    _places(rng.choice(rows), places)
    if places:
        holder, key = rng.choice(places)
        del holder[key]
    return (
        "\n".join(json.dumps(row, ensure_ascii=False, indent=None if by_line else 1) for row in rows) + "\n"
    ).encode()


def lone_surrogate(data: bytes, rng: random.Random, _: Path) -> bytes:
    if rng.random() < 0.7:
        changed = _with_value(data, rng, lambda *_: '"a\\ud800"')
        if changed is not None:
            return changed
    start = _position(data, rng)
    return data[:start] + b"\xed\xa0\x80" + data[start:]


def _inserted(*some: bytes) -> Mutation:
    """One of some bytes, somewhere."""

    def mutation(data: bytes, rng: random.Random, _: Path) -> bytes:
        start = _position(data, rng)
        return data[:start] + rng.choice(some) + data[start:]

    return mutation


def byte_order_mark(data: bytes, rng: random.Random, _: Path) -> bytes:
    if rng.random() < 0.5:
        return b"\xef\xbb\xbf" + data
    start = data.find(b"\n", _position(data, rng)) + 1
    return data[:start] + b"\xef\xbb\xbf" + data[start:]


def carriage_returns(data: bytes, rng: random.Random, _: Path) -> bytes:
    if rng.random() < 0.3:
        start = _position(data, rng)
        return data[:start] + b"\r" + data[start:]
    return data.replace(b"\n", rng.choice((b"\r", b"\r\n", b"\n\n", b"\n\r", b"\xc2\x85", b"\xe2\x80\xa8", b"\x0b")))


def long_line(data: bytes, rng: random.Random, _: Path) -> bytes:
    fill = rng.choice((b"x", b"[", b'"', b" ", b"\t", b",", b"1", b"\xc3\xa9")) * rng.choice((140_000, 300_000))
    start = _position(data, rng)
    return rng.choice((fill, data[:start] + fill + data[start:]))


_DAMAGED = (
    None, 0, -1, 2**62, 1.5, float("inf"), "", "abc", "[" * 2000, "{}", "[1]", "null", b"\xff\xfe", b"", b"{}", "\0",
)  # fmt: skip


def _in_database(data: bytes, rng: random.Random) -> bytes | None:
    """An SQLite file with one value of another type, a row or column or table less; None where it is none."""
    if not data.startswith(b"SQLite format 3\0"):
        return None
    with tempfile.TemporaryDirectory() as made:
        path = Path(made) / "damaged.sqlite"
        path.write_bytes(data)
        connection = sqlite3.connect(path, isolation_level=None)
        try:
            connection.execute("pragma journal_mode=delete")
            tables = [row[0] for row in connection.execute("select name from sqlite_master where type='table'")]
            table = rng.choice(sorted(tables))
            columns = [row[1] for row in connection.execute(f'pragma table_info("{table}")')]
            column = rng.choice(columns)
            # What the file's own rules refuse stays as it was.
            with contextlib.suppress(sqlite3.Error):
                what = rng.random()
                if what < 0.05:
                    connection.execute(f'drop table "{table}"')
                elif what < 0.1:
                    connection.execute(f'alter table "{table}" drop column "{column}"')
                elif what < 0.15:
                    connection.execute(f"pragma user_version={rng.choice((1, 99, -5))}")
                elif what < 0.2:
                    connection.execute(f'delete from "{table}" where rowid in (select rowid from "{table}" limit 1)')
                else:
                    value = rng.choice(_DAMAGED)
                    where = "" if rng.random() < 0.3 else f' where rowid in (select rowid from "{table}" limit 1)'
                    connection.execute("pragma ignore_check_constraints=1")
                    cast = "cast(? as text)" if isinstance(value, bytes) and rng.random() < 0.5 else "?"
                    connection.execute(f'update "{table}" set "{column}"={cast}{where}', (value,))
        finally:
            connection.close()
        return path.read_bytes()


MUTATIONS: dict[str, Mutation] = {
    "cut": lambda data, rng, _: data[: _position(data, rng)],
    "cut-packed": lambda data, rng, _: (packed := _packed(data))[: _position(packed, rng)],
    "packed": lambda data, *_: _packed(data),
    "flip-packed": lambda data, rng, folder: flip(_packed(data), rng, folder),
    "lines-swapped": _in_lines(_swap),
    "line-lost": line_lost,
    "line-doubled": line_doubled,
    "nul": _inserted(b"\0", b"\0", b"\0" * 4096),
    "latin1": _inserted("é".encode("latin-1")),
    "utf16": lambda data, rng, _: data.decode("utf-8", "replace").encode(rng.choice(_WIDE)),
    "no-line-end": lambda data, *_: data.rstrip(b"\n"),
    "empty": lambda _, rng, __: rng.choice(_NOTHINGS),
    "folder": lambda *_: FOLDER,
    "pipe": lambda data, *_: PIPE + data,
    "missing": lambda *_: MISSING,
    "wrong-file": lambda _, rng, seeds: rng.choice(sorted(filter(Path.is_file, seeds.rglob("*")))).read_bytes(),
    "binary": lambda _, rng, __: rng.choice(_MAGIC) + rng.randbytes(rng.choice((1, 20, 5000))),
    "file-doubled": lambda data, *_: data + data,
    **{
        one.__name__.replace("_", "-"): one
        for one in (
            cut_last_line, flip, bytes_lost, bytes_doubled, other_type, number, deep, key_doubled, key_lost,
            lone_surrogate, byte_order_mark, carriage_returns, long_line,
        )
    },
}  # fmt: skip
# How often each is drawn: those with few outcomes seldom, those with many often.
_OFTEN = {"cut": 6, "cut-last-line": 4, "flip": 6, "other-type": 10, "number": 6, "key-lost": 3, "key-doubled": 3,
          "wrong-file": 3, "bytes-lost": 3, "line-doubled": 3, "lines-swapped": 2, "deep": 2}  # fmt: skip


def mutated(name: str, data: bytes, rng: random.Random, seeds: Path) -> bytes:
    """The bytes after the damage of this name."""
    return MUTATIONS[name](data, rng, seeds)


def drawn(rng: random.Random) -> str:
    """The name of a damage, drawn."""
    names = list(MUTATIONS)
    return rng.choices(names, [_OFTEN.get(name, 1) for name in names])[0]


def put(data: bytes, path: Path) -> int | None:
    """Puts a damaged file under its name; the process that fills a pipe, where there is one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if data == FOLDER:
        path.mkdir()
    elif data.startswith(PIPE):
        os.mkfifo(path)
        child = os.fork()
        if child == 0:
            with contextlib.suppress(OSError), open(path, "wb") as stream:
                stream.write(data.removeprefix(PIPE))
            os._exit(0)
        return child
    elif data != MISSING:
        path.write_bytes(data)
    return None
