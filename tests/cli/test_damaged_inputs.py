"""Files that are damaged, or hold what nobody expects: one line that names the file, and no traceback."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from rubric_measures.base.errors import FormatError, InputError
from rubric_measures.cli import main
from rubric_measures.models.base import Reply, Request
from rubric_measures.models.replies import ReplyCache
from rubric_measures.models.running import load_prices
from rubric_measures.review.store import ReviewStore
from rubric_measures.types.entities import RubricItem, TestBank
from rubric_measures.types.scales import Message
from tests.example_records import grade_set, passage, write_lines
from tests.support_data import line


def refused(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """The one line of a command that ends with 2 and prints nothing."""
    assert main([str(argument) for argument in arguments]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1, printed.err
    return printed.err.removeprefix("rubric_measures: ").rstrip("\n")


def cache(path: Path, change: str = "", *values: object) -> Path:
    with ReplyCache(path) as made:
        for number in range(3):
            asked = Request("m", (Message("user", f"{path.name} {number}"),), {})
            made.put(asked, Reply(f"r{number}", "ok", "", 1, 1, {}))
    if change:
        connection = sqlite3.connect(path)
        connection.execute(change, values)
        connection.commit()
        connection.close()
    return path


@pytest.mark.parametrize(
    ("change", "values"),
    [
        ("update calls set reply = x'fffe' where rowid = 2", ()),
        ("update calls set reply = '[1]'", ()),
        ("update calls set reply = ?", ("[" * 100_000,)),
        ("""update calls set reply = '{"text": "a", "prompt_tokens": "x"}'""", ()),
        ("update calls set model = x'ff'", ()),
        ("update calls set key = 'abc' where rowid = 3", ()),
        ("update calls set replicate = 'abc'", ()),
        ("drop table calls", ()),
    ],
)
def test_a_damaged_cache_is_named_and_no_other(
    change: str, values: tuple[object, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good, bad = cache(tmp_path / "good"), cache(tmp_path / "bad", change, *values)
    assert refused(capsys, "cache", "merge", good, bad).startswith(f"{bad}: ")
    with ReplyCache(good) as kept:
        assert len(kept) == 3


def test_a_state_whose_schema_is_no_text_is_named(tmp_path: Path) -> None:
    path, bank = tmp_path / "state", TestBank({"q": (RubricItem("i", "q", "text"),)}, {})
    ReviewStore(path, bank).close()
    data = path.read_bytes()
    path.write_bytes(data.replace(b"primary key autoincrement", b"primary key autoincre\xed\xa0\x80t", 1))
    with pytest.raises(InputError, match=r"cannot be used as the state of a review \(its schema is damaged\)") as found:
        ReviewStore(path, bank)
    assert str(found.value).startswith(f"{path}: ")


@pytest.mark.parametrize("price", ["1" + "0" * 400, "1e400", "-1", "true"])
def test_prices_that_are_no_sums_of_money(price: str, tmp_path: Path) -> None:
    path = tmp_path / "prices.json"
    path.write_text(f'{{"m": {{"input": {price}, "output": 1}}}}')
    with pytest.raises(FormatError, match=r"Out of range|m\.input: "):
        load_prices(path)
    path.write_text('{"m": {"input": 1, "output": 1, "cached_input": 0.1}}')
    with pytest.raises(FormatError, match="unknown field `cached_input`"):
        load_prices(path)


@pytest.mark.parametrize(
    "details",
    [
        {"q1/a": "abc"},
        {"q1/a": {"distribution": {"5": "abc"}}},
        {"q1/a": {"replicates": 1e308}},
        {"q1/a": {"replicates": [["abc", "5"], [2, "2"]]}},
    ],
)
def test_details_of_grades_are_what_they_should_be(
    details: object, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    entry = {**grade_set({"q1/a": 5}), "details": details}
    path = write_lines(tmp_path / "graded.jsonl", [["q1", [passage("q1", "d1", [entry])]]])
    said = refused(capsys, "leaderboard", path, "-m", "RubricCover(rel=4)@5")
    assert said.startswith(f"{path}:1: exam_grades[0].details: item 'q1/a': its ")


@pytest.mark.parametrize(("field", "value"), [("items", [["a/0"]]), ("citations", [[["d1"]]]), ("joined", ["2"])])
def test_sentences_of_answers_are_what_they_should_be(
    field: str, value: object, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    labels = write_lines(tmp_path / "labels.jsonl", [line("a", labels=(["2"],))])
    assert main(["convert", str(labels), "--to", "records", "-o", str(tmp_path / "graded.jsonl")]) == 0
    rows = [json.loads(row) for row in (tmp_path / "graded.jsonl").read_text().splitlines()]
    [said] = [one for passage in rows[0][1] for one in (passage.get("paragraph") or {}).get("answers", {}).values()]
    said[field] = value
    write_lines(tmp_path / "graded.jsonl", rows)
    capsys.readouterr()
    error = refused(capsys, "leaderboard", tmp_path / "graded.jsonl", "-m", "SupportPrecision")
    assert "graded.jsonl" in error and "needs sentences, citations and items" in error
