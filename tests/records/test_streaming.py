"""Tests of graded-records files as streams: any order, either shape, standard input, long lines, temporary files."""

from __future__ import annotations

import gzip
import io
import json
import logging
import os
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rubric_measures.base.errors import FormatError, InputError
from rubric_measures.records import _lines as line_sort
from rubric_measures.records import _lines as record_lines
from rubric_measures.records import streaming
from rubric_measures.records.files import load_graded, read_graded
from rubric_measures.records.models import QueryPassages
from rubric_measures.records.streaming import GradedFile, UngroupedError
from tests.example_records import grade_set, passage

FIXTURE = HealthCheck.function_scoped_fixture


def write(path: Path, lines: list[Any]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def whole(groups: Any) -> list[QueryPassages]:
    """The groups with their passages looked at once and in turn, as a consumer of a stream must."""
    return [QueryPassages(group.query_id, list(group.passages), group.line) for group in groups]


def one_passage(query_id: str, doc_id: str, text: str = "") -> dict[str, Any]:
    return passage(query_id, doc_id, [grade_set({f"{query_id}/a": len(doc_id) % 6})]) | {"text": text or doc_id}


@st.composite
def files(draw: st.DrawFn) -> list[list[Any]]:
    """Lines of a file in any order and of both shapes; sometimes a passage twice, with the same content."""
    lines: list[list[Any]] = []
    queries = draw(st.lists(st.sampled_from(["q1", "q2", "q 3", 'a"q\\4', "ü5"]), min_size=1, max_size=5, unique=True))
    for query_id in queries:
        docs = [f"d{number}" for number in range(draw(st.integers(1, 4)))]
        lines += [[query_id, one_passage(query_id, doc_id)] for doc_id in docs]
        more = [f"e{number}" for number in range(draw(st.integers(0, 3)))]
        if more:
            lines.append([query_id, [one_passage(query_id, doc_id) for doc_id in more]])
        if draw(st.booleans()) and draw(st.booleans()):
            lines.append([query_id, one_passage(query_id, "d0")])
    return draw(st.permutations(lines))


@settings(suppress_health_check=[FIXTURE], deadline=None, max_examples=40)
@given(files(), st.booleans(), st.integers(1, 3000))
def test_any_order_gives_what_memory_gives(tmp_path: Path, lines: list[list[Any]], packed: bool, room: int) -> None:
    path = write(tmp_path / "g.jsonl", lines)
    if packed:
        path.write_bytes(gzip.compress(path.read_bytes()))
    expected = load_graded(path)
    with pytest.MonkeyPatch.context() as patch:
        # Small rooms and pieces, so that small files take all ways.
        patch.setattr(line_sort, "ROOM", room)
        patch.setattr(streaming, "_LONG", room)
        patch.setattr(record_lines, "_PIECE", 200)
        with GradedFile(path) as source:
            assert source.consume(whole) == expected
            assert whole(source) == expected
            assert source.consume(whole) == expected
        with GradedFile(path) as source:
            assert whole(source) == expected


def test_ungrouped_files_are_said_to_be_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    lines = [["q1", [one_passage("q1", "d1")]], [7, [one_passage("7", "d1")]], ["q1", [one_passage("q1", "d2")]]]
    path = write(tmp_path / "g.jsonl", lines)
    with GradedFile(path) as source, caplog.at_level(logging.WARNING, "rubric_measures"):
        for _ in range(2):
            groups = source.consume(whole)
            assert [(group[0], [one.doc_id for one in group[1]], group[2]) for group in groups] == [
                ("q1", ["d1", "d2"], 1),
                ("7", ["d1"], 2),
            ]
    ungrouped, numbers = caplog.messages
    assert (
        ungrouped
        == f"{path} is not grouped by query (1 of 2 queries come back after others), so it is sorted on disk first"
    )
    assert "1 query ids are numbers" in numbers


def test_a_consumer_starts_again_only_where_it_must(tmp_path: Path) -> None:
    grouped = [["q1", one_passage("q1", "d1")], ["q1", one_passage("q1", "d2")], ["q2", one_passage("q2", "d1")]]
    for lines, starts in (
        (grouped, 1),
        ([grouped[0], grouped[2], grouped[1]], 2),
        ([*grouped, grouped[2]], 2),
        ([grouped[0], grouped[2], grouped[1], grouped[2]], 3),
    ):
        calls: list[int] = []

        def consume(groups: Any, calls: list[int] = calls) -> list[QueryPassages]:
            calls.append(1)
            return whole(groups)

        path = write(tmp_path / "g.jsonl", lines)
        with GradedFile(path) as source:
            assert source.consume(consume) == load_graded(path)
        assert len(calls) == starts


def test_queries_that_are_not_looked_at_are_passed_over(tmp_path: Path) -> None:
    lines = [["q1", one_passage("q1", "d1")], ["q1", one_passage("q1", "d2")], ["q2", one_passage("q2", "d1")]]

    def names(groups: Any) -> list[str]:
        found = []
        for group in groups:
            next(iter(group.passages))
            found.append(group.query_id)
        return found

    with GradedFile(write(tmp_path / "g.jsonl", lines)) as source:
        assert source.consume(names) == ["q1", "q2"]


def test_temporary_files_go_with_the_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    lines = [["q1", one_passage("q1", "d1")], ["q2", one_passage("q2", "d1")], ["q1", one_passage("q1", "d2")]]
    path = write(tmp_path / "g.jsonl", lines)
    with GradedFile(path) as source:
        source.consume(whole)
        if sys.platform.startswith("linux"):
            # They have no name that a killed process could leave behind.
            assert not list(folder.iterdir())
    assert not list(folder.iterdir())
    with pytest.raises(RuntimeError), GradedFile(path) as source:
        for _ in source:
            raise RuntimeError
    assert not list(folder.iterdir())


def test_standard_input_can_be_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [["q1", one_passage("q1", "d1")], ["q2", one_passage("q2", "d1")], ["q1", one_passage("q1", "d2")]]
    path = write(tmp_path / "g.jsonl", lines)
    expected = load_graded(path)
    for content in (path.read_bytes(), gzip.compress(path.read_bytes())):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        with GradedFile("-") as source:
            assert whole(source) == expected
            assert source.consume(whole) == expected
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b'["q1", [{}]]\n')))
    with GradedFile("-") as source, pytest.raises(FormatError, match=r"^-:1: \[1\]\[0\].paragraph_id"):
        source.consume(whole)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_named_pipes_can_be_read_again(tmp_path: Path) -> None:
    lines = [["q1", one_passage("q1", "d1")], ["q2", one_passage("q2", "d1")], ["q1", one_passage("q1", "d2")]]
    path = write(tmp_path / "g.jsonl", lines)
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=lambda: (tmp_path / "pipe").write_bytes(path.read_bytes()))
    writer.start()
    with GradedFile(tmp_path / "pipe") as source:
        assert whole(source) == load_graded(path)
        assert source.consume(whole) == load_graded(path)
    writer.join()
    with GradedFile(tmp_path) as source, pytest.raises(InputError, match="cannot be read"):
        source.consume(whole)


def test_errors_name_the_line_of_the_file(tmp_path: Path) -> None:
    bad = one_passage("q1", "d2")
    bad["exam_grades"][0]["self_ratings"][0]["self_rating"] = 9
    lines = [
        ["q1", [one_passage("q1", "d1")]],
        ["q2", [one_passage("q2", "d1")]],
        ["q1", [one_passage("q1", "d3"), bad]],
    ]
    path = write(tmp_path / "g.jsonl", lines)
    message = r"g.jsonl:3: \[1\]\[1\].exam_grades\[0\].self_ratings\[0\].self_rating: .* a number from -2 to 5; found 9"
    with GradedFile(path) as source, pytest.raises(FormatError, match=message):
        source.consume(whole)
    path = write(tmp_path / "g.jsonl", [lines[0], lines[1], lines[0]])
    path.write_text(path.read_text() + "[nothing\n")
    with GradedFile(path) as source, pytest.raises(FormatError, match=r"g.jsonl:4: .*JSON"):
        source.consume(whole)
    with GradedFile(write(tmp_path / "empty", [])) as source, pytest.raises(FormatError, match="no graded passages"):
        source.consume(whole)
    with GradedFile(tmp_path / "nowhere") as source, pytest.raises(InputError, match="cannot be read"):
        source.consume(whole)


def test_full_disks_are_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> bytes:
        raise OSError(28, "No space left on device")

    lines = [["q1", one_passage("q1", "d1")], ["q2", one_passage("q2", "d1")], ["q1", one_passage("q1", "d2")]]
    monkeypatch.setattr(line_sort.zlib, "compress", full)
    path = write(tmp_path / "g.jsonl", lines)
    with GradedFile(path) as source, pytest.raises(InputError, match=r"No space left on device.*TMPDIR"):
        source.consume(whole)


@pytest.mark.parametrize(
    "text",
    ["plain", 'looks like {"paragraph_id": "x"', "ends with a brace {", '"}, {"paragraph_id":', "back \\ slash\n"],
)
def test_long_lines_are_parsed_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    passages = [one_passage("q1", f"d{number}", text) for number in range(9)]
    # Objects that look like passages, inside a passage: a piece cannot begin there.
    passages[3]["paragraph"] = [{"paragraph_id": "inner"}, {"paragraph_id": "inner", "x": [{"paragraph_id": "deep"}]}]
    path = write(tmp_path / "g.jsonl", [["q1", passages], ["q2", [one_passage("q2", "d1")]]])
    expected = list(read_graded(path))
    monkeypatch.setattr(streaming, "_LONG", 1000)
    for size in (1, 100, 700, 2000, 100_000):
        monkeypatch.setattr(record_lines, "_PIECE", size)
        assert list(read_graded(path)) == load_graded(path) == expected
        with GradedFile(path) as source:
            assert source.consume(whole) == expected


@pytest.mark.parametrize("damage", ["]", "}]]", ",{}]]", '"]]', "]]]", "]] x"])
def test_damage_of_long_lines_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: str) -> None:
    passages = [one_passage("q1", f"d{number}") for number in range(9)]
    path = tmp_path / "g.jsonl"
    path.write_text(json.dumps(["q1", passages]).removesuffix("]]") + damage + "\n")
    with pytest.raises(FormatError) as expected:
        list(read_graded(path))
    monkeypatch.setattr(streaming, "_LONG", 1000)
    monkeypatch.setattr(record_lines, "_PIECE", 700)
    with pytest.raises(FormatError) as found:
        list(read_graded(path))
    assert str(found.value) == str(expected.value)


def test_read_graded_refuses_what_it_cannot_hand_out_whole(tmp_path: Path) -> None:
    lines = [["q1", one_passage("q1", "d1")], ["q2", one_passage("q2", "d1")], ["q1", one_passage("q1", "d2")]]
    with pytest.raises(UngroupedError, match=r"g.jsonl:3"):
        list(read_graded(write(tmp_path / "g.jsonl", lines)))
