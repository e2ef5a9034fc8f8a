"""Tests of test bank files."""

from __future__ import annotations

import gzip
import json
import logging
from pathlib import Path
from typing import Any

import pytest

from rubric_measures.formats.banks import (
    bank_entries,
    facet_ids,
    load_bank,
    write_bank,
)
from rubric_measures.types.entities import RubricItem, make_item_id

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
        "1 item comes twice in its query; the first is kept",
    ]


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


def test_facets_without_ids_are_called_by_their_words() -> None:
    assert facet_ids([" A b? ", None, "a B!", "", "A b?", "???"]) == {"A b?": "a-b", "a B!": "a-b-2", "???": "facet"}
