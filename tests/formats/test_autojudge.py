"""Tests of Auto-Judge nugget banks in both forms, and of measures.yml."""

import json
import logging
from pathlib import Path

import pytest
from msgspec.structs import replace

from rubric_measures.corpora.converting import convert
from rubric_measures.formats.banks import (
    NUGGET_BANK,
    NUGGET_LISTS,
    bank_of_entries,
    load_bank,
    written_rows,
)
from rubric_measures.types.entities import RubricItem, TestBank, bank_hash

V3 = {
    "query_id": "q1",
    "title_query": "Ports",
    "format_version": "v3",
    "nugget_bank": {
        "Where?": {
            "question": "Where?",
            "question_id": "i1",
            "query_id": "q1",
            "answers": {"Here": {"answer": "Here", "references": [{"doc_id": "d", "offsets": None}]}},
            "importance": "vital",
            "aggregator_type": "OR",
            "creator": [{"is_human": True}],
        },
        "When?": {"question": "When?", "importance": 3},
    },
    "claim_bank": {"It is big.": {"claim": "It is big.", "claim_id": "c1", "importance": "high"}},
}
LISTS = {
    "metadata": {"team_id": "t", "topic_id": "300", "run_id": "r", "run_desc": "x", "extra": 1},
    "nugget_bank": [
        {
            "question": "Who?",
            "aggregator_type": "AND",
            "answers": [{"answer": "Ada", "references": ["d1"]}, {"answer": "Lovelace"}],
        }
    ],
}


def _write(folder: Path, rows: list[object], name: str = "banks.jsonl") -> Path:
    path = folder / name
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def _rows(path: Path) -> list[object]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_banks_make_a_test_bank(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="rubric_measures"):
        read = [NUGGET_BANK.read(_write(tmp_path, [V3])), NUGGET_LISTS.read(_write(tmp_path, [LISTS]))]
        bank = bank_of_entries(entry for entries in read for entry in entries)
    assert bank.for_query("q1") == (
        RubricItem("i1", "q1", "Where?", "question", None, ("Here",), "vital"),
        # md5 of "When?": the id that Auto-Judge gives to questions without one.
        RubricItem("a917d1c63427b3b4d6650c556aca0196", "q1", "When?", "question", weight=3.0),
        RubricItem("c1", "q1", "It is big.", "nugget"),
    )
    assert [item.gold_answers for item in bank.for_query("300")] == [("Ada", "Lovelace")]
    assert bank.query_texts == {"q1": "Ports"}
    assert "1 importance other than vital and okay ('high' 1) is none" in caplog.text
    assert "1 question needs all of its answers" in caplog.text


def test_a_bank_keeps_answers_with_documents_and_how_they_are_joined(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    files = [_write(tmp_path, [V3], "v3.jsonl"), _write(tmp_path, [LISTS], "lists.jsonl")]
    convert(files, tmp_path / "bank.jsonl", to="bank")
    bank = load_bank(tmp_path / "bank.jsonl")
    first_id = bank.for_query("300")[0].item_id
    assert bank.for_query("300")[0].info == {
        "aggregator_type": "AND",
        "answers": [{"answer": "Ada", "references": ["d1"]}, {"answer": "Lovelace"}],
    }
    # The names of banks are those of their items, whatever else is known of these.
    bare = {query_id: tuple(replace(one, info=None) for one in items) for query_id, items in bank.items.items()}
    assert bank_hash(bank) == bank_hash(TestBank(bare))
    with caplog.at_level(logging.WARNING, logger="rubric_measures"):
        convert([tmp_path / "bank.jsonl"], tmp_path / "again.jsonl", to="nugget-bank")
    # Version 3 has no place for who made the bank.
    assert "nugget-bank cannot hold all of the bank: metadata of 1 query" in caplog.text
    _write(tmp_path, [LISTS])
    convert([tmp_path / "banks.jsonl"], tmp_path / "bank2.jsonl", to="bank")
    convert([tmp_path / "bank2.jsonl"], tmp_path / "lists.jsonl", to="nugget-lists")
    (written,) = _rows(tmp_path / "lists.jsonl")
    assert written == {**LISTS, "nugget_bank": [LISTS["nugget_bank"][0] | {"question_id": first_id}]}  # type: ignore[operator,index]
    v3, lists = (json.loads(line) for line in (tmp_path / "again.jsonl").read_text().splitlines())
    assert v3["nugget_bank"]["Where?"] == V3["nugget_bank"]["Where?"]  # type: ignore[index]
    (who,) = lists["nugget_bank"].values()
    assert who["aggregator_type"] == "AND"
    assert who["answers"]["Ada"] == {"answer": "Ada", "references": ["d1"]}
    # Of edited answers those that stay keep their documents.
    first = bank.for_query("300")[0]
    edited = replace(first, gold_answers=("Ada", "Byron"))
    (shorter,) = written_rows(TestBank.from_items([edited]), "nugget-lists")
    assert shorter["nugget_bank"][0]["answers"] == [
        {"answer": "Ada", "references": ["d1"]},
        {"answer": "Byron"},
    ]
