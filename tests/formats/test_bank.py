"""Tests of test bank files."""

from __future__ import annotations

import gzip
import json
import logging
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rubric_measures.base.errors import FormatError, InputError
from rubric_measures.formats import detect_format
from rubric_measures.formats.banks import (
    bank_entries,
    bank_of_entries,
    is_bank,
    load_bank,
    read_bank,
    write_bank,
)
from rubric_measures.types.entities import RubricItem, TestBank, make_item_id

SHARED = Path(os.environ.get("RUBRIC_MEASURES_SHARED", Path(__file__).parents[3] / "shared")) / "data"

QUESTION = {
    "query_id": "q1",
    "question_id": "q1/x",
    "question_text": "What is skin?",
    "gold_answers": ["an organ"],
    "info": {"by": "ada"},
    "importance": "vital",
    "weight": -2,
    "mine": [1],
}
NUGGET = {"nugget_id": "q1/T/y", "nugget_text": "Skin is an organ."}
LINES = [
    {"query_id": "q1", "query_text": "skin", "test_collection": "t", "hash": "2025", "items": [QUESTION]},
    {"query_id": "q1", "facet_id": "T", "facet_text": "Layers", "query_text": "skin", "items": [NUGGET], "more": {}},
    {"query_id": "q/2 é", "items": []},
]


def write_lines(path: Path, *values: Any) -> Path:
    """Writes JSON lines; gzipped by name."""
    data = "".join(json.dumps(value, ensure_ascii=False) + "\n" for value in values).encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def test_bank_of_a_file_with_facets(tmp_path: Path) -> None:
    bank = load_bank(write_lines(tmp_path / "b.jsonl.gz", *LINES))
    assert dict(bank.items) == {
        "q1": (
            RubricItem("q1/x", "q1", "What is skin?", "question", None, ("an organ",), "vital", -2.0),
            RubricItem("q1/T/y", "q1", "Skin is an organ.", "nugget", "T"),
        ),
        "q/2 é": (),
    }
    assert (dict(bank.query_texts), dict(bank.facet_texts)) == ({"q1": "skin"}, {("q1", "T"): "Layers"})


def test_identity(tmp_path: Path) -> None:
    entries = read_bank(write_lines(tmp_path / "a.jsonl", *LINES))
    write_bank(tmp_path / "b.jsonl.gz", entries)
    assert [json.loads(line) for line in gzip.decompress((tmp_path / "b.jsonl.gz").read_bytes()).splitlines()] == LINES
    assert read_bank(tmp_path / "b.jsonl.gz") == entries


TEXT = st.text(st.characters(codec="utf-8"), min_size=1, max_size=8).filter(str.strip)


@given(
    st.dictionaries(
        TEXT,
        st.lists(
            st.builds(
                lambda text, kind, gold, importance, weight: (text, kind, tuple(gold), importance, weight),
                TEXT,
                st.sampled_from(["question", "nugget"]),
                st.lists(st.text(st.characters(codec="utf-8")), max_size=2),
                st.sampled_from(["vital", "okay", None]),
                st.none() | st.floats(allow_nan=False, allow_infinity=False),
            ),
            max_size=4,
            unique_by=lambda row: row[0].strip(),
        ),
        min_size=1,
        max_size=3,
    )
)
def test_a_bank_survives_its_entries(content: dict[str, list[Any]]) -> None:
    bank = TestBank(
        {
            query_id: tuple(
                RubricItem(make_item_id(query_id, text), query_id, text, kind, None, gold, importance, weight)
                for text, kind, gold, importance, weight in rows
            )
            for query_id, rows in content.items()
        }
    )
    assert bank_of_entries(bank_entries(bank)).items == bank.items


def test_entries_of_a_bank_with_facets(tmp_path: Path) -> None:
    bank = load_bank(write_lines(tmp_path / "b.jsonl", *LINES))
    write_bank(tmp_path / "c.jsonl", bank_entries(bank, test_collection="mine", info={"by": "ada"}))
    written = [json.loads(line) for line in (tmp_path / "c.jsonl").read_text().splitlines()]
    assert [(line["query_id"], line.get("facet_id"), line.get("facet_text")) for line in written] == [
        ("q1", None, None),
        ("q1", "T", "Layers"),
        ("q/2 é", None, None),
    ]
    assert all(line["test_collection"] == "mine" and line["info"] == {"by": "ada"} for line in written)
    assert load_bank(tmp_path / "c.jsonl") == bank


def test_edited_banks(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    line = {
        "query_id": 5,
        "items": [
            {"question_text": "No id?"},
            {"question_id": "5/old-md5", "question_text": "Changed text?"},
            {"question_id": "5/old-md5", "question_text": "Changed text? "},
        ],
    }
    with caplog.at_level(logging.WARNING, "rubric_measures"):
        bank = load_bank(write_lines(tmp_path / "b.jsonl", line))
    assert [item.item_id for item in bank] == [make_item_id("5", "No id?"), "5/old-md5"]
    assert [message.rpartition(".jsonl: ")[2] for message in caplog.messages] == [
        "1 items come twice in their query; the first is kept",
    ]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([], "is empty; expected test bank entries"),
        ([["q1", []]], "b.jsonl:1: expected an object, found 'q1'"),
        ([{"query_id": "q1"}], "b.jsonl:1: items: expected items"),
        ([{"query_id": "q1", "items": [{}]}], "b.jsonl:1: items[0]: expected either a question or a nugget"),
        ([{"query_id": "q1", "items": [{**QUESTION, **NUGGET}]}], "b.jsonl:1: items[0]: expected either"),
        (
            [{"query_id": "q1", "items": [{"question_id": "x"}]}],
            "b.jsonl:1: items[0].question_text: expected",
        ),
        ([{"query_id": "q1", "items": [{**QUESTION, "importance": "huge"}]}], "items[0].importance: expected vital"),
        ([{"query_id": "q1", "items": [{**QUESTION, "weight": "much"}]}], "items[0].weight: expected a number"),
        ([{"query_id": "q2", "items": [QUESTION]}], "b.jsonl:1: items[0].query_id: the item belongs to query 'q1'"),
        ([LINES[1], {**LINES[1], "facet_text": "Hair"}], "b.jsonl:2: facet 'T' has two texts"),
        (
            [LINES[0], {**LINES[0], "items": [{**QUESTION, "question_text": "Other?"}]}],
            "b.jsonl:2: item 'q1/x' has two texts",
        ),
    ],
)
def test_wrong_banks(tmp_path: Path, lines: list[Any], message: str) -> None:
    with pytest.raises(FormatError) as caught:
        load_bank(write_lines(tmp_path / "b.jsonl", *lines))
    assert message in str(caught.value) and "\n" not in str(caught.value)


def _section(facet: str, text: str, heading: str | None) -> dict[str, Any]:
    item = {"query_id": "p", "facet_id": facet, "question_id": f"p/{facet}/1", "question_text": "Why?"}
    entry = {"query_id": "p", "facet_id": facet, "facet_text": heading, "query_text": text, "items": [item]}
    return {key: value for key, value in entry.items() if value is not None}


def test_the_sections_of_a_page(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The workbench's generator writes `title / section` as the text of each section of a page of CAR."""
    pages = [_section("T_1", "AC / DC / Early years", "Early years"), _section("T_2", "AC / DC / A / B", "A / B")]
    bank = load_bank(write_lines(tmp_path / "car.jsonl.gz", *pages))
    assert (bank.query_texts, len(bank)) == ({"p": "AC / DC"}, 2)
    assert bank.facet_texts == {("p", "T_1"): "Early years", ("p", "T_2"): "A / B"}
    # A page of one section has a title, too; and what we write says the same.
    assert load_bank(write_lines(tmp_path / "one.jsonl", pages[0])).query_texts == {"p": "AC / DC"}
    write_bank(tmp_path / "ours.jsonl", bank_entries(bank))
    assert load_bank(tmp_path / "ours.jsonl") == bank
    assert caplog.messages == []


def test_texts_that_differ_by_facet(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    parts = [_section("a", "why do leaves fall", None), _section("b", "when do leaves fall", None)]
    bank = load_bank(write_lines(tmp_path / "b.jsonl", *parts))
    assert bank.query_texts == {}
    assert bank.facet_texts == {("p", "a"): "why do leaves fall", ("p", "b"): "when do leaves fall"}
    assert caplog.messages[0].endswith(
        "1 query (such as p) has a text for each facet and none of their own, which prompts that show the query need"
    )
    # A line of the query itself says its text.
    own = {"query_id": "p", "query_text": "leaves", "items": []}
    assert load_bank(write_lines(tmp_path / "b.jsonl", *parts, own)).query_texts == {"p": "leaves"}
    same = [_section("a", "AC / DC", None), _section("b", "AC / DC", None)]
    assert load_bank(write_lines(tmp_path / "b.jsonl", *same)).query_texts == {"p": "AC / DC"}


def test_two_titles_of_a_query(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    bank = load_bank(write_lines(tmp_path / "b.jsonl", LINES[0], {**LINES[0], "query_text": "hair", "items": []}))
    assert bank.query_texts == {"q1": "skin"}
    assert [line for line in caplog.messages if line.endswith("1 query (such as q1) has two texts; the first is kept")]


def test_nothing_to_write(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no test bank entries"):
        write_bank(tmp_path / "b.jsonl", [])
    assert list(tmp_path.iterdir()) == []


VALID = "".join(json.dumps(line) + "\n" for line in LINES).encode()


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.integers(0, len(VALID) - 1), st.binary(max_size=3)), min_size=1, max_size=3))
def test_mutated_banks(tmp_path: Path, edits: list[tuple[int, bytes]]) -> None:
    data = VALID
    for position, new in edits:
        position %= len(data)
        data = data[:position] + new + data[position + 1 :]
    path = tmp_path / "b.jsonl"
    path.write_bytes(data)
    try:
        load_bank(path)
    except InputError as error:
        assert len(str(error).splitlines()) == 1 and str(path) in str(error)


def test_real_bank(tmp_path: Path) -> None:
    source = SHARED / "workbench-golden" / "dl20-scale-questions.jsonl.gz"
    if not source.exists():
        pytest.skip("the shared data folder is absent")
    bank = load_bank(source)
    assert (len(bank.items), len(bank)) == (54, 540)
    write_bank(tmp_path / "b.jsonl", read_bank(source))
    with gzip.open(source) as before, (tmp_path / "b.jsonl").open() as after:
        assert [json.loads(line) for line in before] == [json.loads(line) for line in after]


def test_a_key_that_comes_twice_is_refused_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "bank.jsonl"
    item = '{"question_id": "i", "question_text": "a?"}'
    path.write_text(f'{{"query_id": "q1", "items": [{item}]}}\n{{"query_id": "q2", "items": [], "items": [{item}]}}\n')
    with pytest.raises(FormatError, match=r"bank.jsonl:2: the key 'items' comes twice in one object; keep one"):
        load_bank(path)


def test_a_pipe_with_a_name_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "bank.jsonl")
    # Nobody writes into it: who opened it would wait for ever.
    for look in (is_bank, detect_format):
        with pytest.raises(InputError, match="is no regular file, so it cannot be read twice"):
            look(tmp_path / "bank.jsonl")


@pytest.mark.parametrize(
    ("text", "found"),
    [("hello\n", ":1: the header lacks query_id; items; it has hello"), ("[]\n", ": holds no test bank entries")],
)
def test_what_is_no_bank_is_told_what_a_bank_is(tmp_path: Path, text: str, found: str) -> None:
    (tmp_path / "notes.txt").write_text(text)
    with pytest.raises(FormatError, match=rf"notes\.txt{found}"):
        read_bank(tmp_path / "notes.txt")
