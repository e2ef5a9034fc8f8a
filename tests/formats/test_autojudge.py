"""Tests of Auto-Judge nugget banks in both forms, and of measures.yml."""

import json
import logging
import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from rubric_measures.base.errors import FormatError, InputError
from rubric_measures.corpora.conversion import convert_files
from rubric_measures.formats.autojudge import (
    bank_of_nugget_banks,
    list_banks,
    nugget_banks,
    read_nugget_banks,
    write_nugget_banks,
)
from rubric_measures.formats.banks import load_bank
from rubric_measures.formats.nuggets import bank_of_items
from rubric_measures.types.entities import RubricItem, TestBank, bank_hash

SHARED = Path(os.environ.get("RUBRIC_MEASURES_SHARED", Path(__file__).parents[3] / "shared")) / "data"
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


def test_both_forms_are_the_same_after_writing(tmp_path: Path) -> None:
    banks = read_nugget_banks(_write(tmp_path, [V3, LISTS]))
    write_nugget_banks(tmp_path / "again", banks)
    assert _rows(tmp_path / "again") == [V3, LISTS]
    assert read_nugget_banks(tmp_path / "again") == banks


def test_banks_make_a_test_bank(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="rubric_measures"):
        bank = bank_of_nugget_banks(read_nugget_banks(_write(tmp_path, [V3, LISTS])))
    assert bank.for_query("q1") == (
        RubricItem("i1", "q1", "Where?", "question", None, ("Here",), "vital"),
        # md5 of "When?": the id that Auto-Judge gives to questions without one.
        RubricItem("a917d1c63427b3b4d6650c556aca0196", "q1", "When?", "question", weight=3.0),
        RubricItem("c1", "q1", "It is big.", "nugget"),
    )
    assert [item.gold_answers for item in bank.for_query("300")] == [("Ada", "Lovelace")]
    assert bank.query_texts == {"q1": "Ports"}
    assert "1 nuggets have an importance other than" in caplog.text
    assert "1 questions need all of their answers" in caplog.text


def test_a_test_bank_is_the_same_in_both_forms(tmp_path: Path) -> None:
    questions = [
        RubricItem("i1", "q", "Where?", "question", None, ("Here",), "okay"),
        RubricItem("i2", "q", "Why?", "question", weight=-2.0),
    ]
    bank = TestBank.from_items([*questions, RubricItem("c1", "q", "Big.", "nugget")], {"q": "Ports"})
    assert bank_of_nugget_banks(nugget_banks(bank)) == bank
    with pytest.raises(InputError, match="'c1' is a nugget, and this form has questions only"):
        list_banks(bank)
    only = TestBank.from_items(questions)
    lists = list_banks(only)
    assert bank_of_nugget_banks(lists) == only
    write_nugget_banks(tmp_path / "lists", lists)
    assert bank_of_nugget_banks(read_nugget_banks(tmp_path / "lists")) == only
    with pytest.raises(InputError, match="two items have the same text"):
        nugget_banks(TestBank.from_items([RubricItem("a", "q", "W?"), RubricItem("b", "q", "W?")]))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], ": is empty"),
        ([{"nugget_bank": []}], ":1: metadata: required field is missing"),
        ([{"query_id": "q", "nugget_bank": {"x": {}}}], ":1: nugget_bank.x.question: required field is missing"),
        ([V3, V3], ":2: 'q1' is already in line 1"),
        (
            [{"query_id": "q", "nugget_bank": {"x": {"question": "x", "importance": 10**400}}}],
            ":1: nugget_bank.x.importance: is too large for a weight",
        ),
        ([{**V3, "query_id": "q2"}], ":1: a nugget belongs to topic 'q1', its bank to 'q2'"),
    ],
)
def test_bad_banks_are_refused_with_file_line_and_field(tmp_path: Path, rows: list[object], message: str) -> None:
    path = _write(tmp_path, rows)
    with pytest.raises(FormatError) as error:
        read_nugget_banks(path)
    assert str(error.value).startswith(f"{path}{message}")


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"answers": 3}, "item 'i': info.nugget_bank.answers is no list"),
        ({"sub_nuggets": 3}, r"query 'q': the info of its items fits no nugget bank \(nugget_bank\.W\?\.sub_nuggets: "),
    ],
)
def test_info_that_fits_no_bank_is_refused(said: dict[str, object], message: str) -> None:
    item = RubricItem("i", "q", "W?", "question", None, ("Here",), info={"nugget_bank": said})
    with pytest.raises(InputError, match=message):
        nugget_banks(TestBank.from_items([item]))


def test_real_banks_are_the_same_after_writing(tmp_path: Path) -> None:
    if not (SHARED / "kiddie").is_dir():
        pytest.skip("the public data are not here")
    path = SHARED / "kiddie" / "kiddie.nuggets.jsonl"
    banks = read_nugget_banks(path)
    write_nugget_banks(tmp_path / "again", banks)
    assert _rows(tmp_path / "again") == _rows(path)
    bank = bank_of_nugget_banks(banks)
    assert next(iter(bank)).item_id == "d14cb1d22ea3e8700012835a364c593e"
    assert bank_of_nugget_banks(nugget_banks(bank)) == bank


def test_a_bank_keeps_answers_with_documents_and_how_they_are_joined(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rows = [V3, LISTS]
    convert_files([_write(tmp_path, rows)], tmp_path / "bank.jsonl", to="bank")
    bank = load_bank(tmp_path / "bank.jsonl")
    first_id = bank.for_query("300")[0].item_id
    assert bank.for_query("300")[0].info["nugget_bank"] == {
        "aggregator_type": "AND",
        "answers": [{"answer": "Ada", "references": ["d1"]}, {"answer": "Lovelace"}],
    }
    # The names of banks are those of their items, whatever else is known of these.
    bare = {query_id: [replace(one, info=None) for one in items] for query_id, items in bank.items.items()}
    assert bank_hash(bank) == bank_hash(bank_of_items(bare))
    with caplog.at_level(logging.WARNING, logger="rubric_measures"):
        convert_files([tmp_path / "bank.jsonl"], tmp_path / "again.jsonl", to="nugget-bank")
    # Version 3 has no place for who made the bank.
    assert "nugget-bank cannot hold all of the bank: info of 1 items" in caplog.text
    _write(tmp_path, [LISTS])
    convert_files([tmp_path / "banks.jsonl"], tmp_path / "bank2.jsonl", to="bank")
    convert_files([tmp_path / "bank2.jsonl"], tmp_path / "lists.jsonl", to="nugget-lists")
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
    (shorter,) = list_banks(TestBank.from_items([edited]))
    assert shorter.nugget_bank[0].model_dump(exclude_unset=True)["answers"] == [
        {"answer": "Ada", "references": ["d1"]},
        {"answer": "Byron"},
    ]
