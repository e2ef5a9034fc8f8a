"""Tests of Auto-Judge nugget banks in both forms, and of measures.yml."""

import json
import logging
import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from rubric_measures.base.errors import FormatError, InputError
from rubric_measures.corpora.conversion import convert_files
from rubric_measures.formats.banks import (
    NUGGET_BANK,
    NUGGET_LISTS,
    bank_entries,
    bank_of_entries,
    load_bank,
    read_rows,
    written_rows,
)
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
    for form, row in ((NUGGET_BANK, V3), (NUGGET_LISTS, LISTS)):
        banks = form.read(_write(tmp_path, [row]))
        form.write(tmp_path / "again", banks)
        assert _rows(tmp_path / "again") == [row]
        assert form.read(tmp_path / "again") == banks


@pytest.mark.parametrize(
    "said",
    [
        {"nugget_bank": {"a": {"question": "t", "x": 1}, "b": {"question": "t", "x": 2}}},
        {"nugget_bank": [{"question": "t", "x": 1}, {"question": "t", "x": 2}], "claim_bank": {"k": {"claim": "c"}}},
        {"nugget_bank": {"k1": {"question": "t", "answers": [{"answer": "A", "n": 1}, {"answer": "A"}], "key": 1}}},
        {"nugget_bank": {"t": {"question": "t", "answers": {"k": {"answer": "A"}}}}, "claim_bank": {}},
        {"claim_bank": {"c": {"claim": "c"}}},
    ],
)
def test_keys_and_containers_stay(tmp_path: Path, said: dict[str, object]) -> None:
    path = _write(tmp_path, [{"query_id": "q", **said}])
    NUGGET_BANK.write(tmp_path / "again", NUGGET_BANK.read(path))
    assert (tmp_path / "again").read_text() == json.dumps({"query_id": "q", **said}, separators=(",", ":")) + "\n"


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
    assert "1 importances other than vital and okay ('high' 1) are none" in caplog.text
    assert "1 questions need all of their answers" in caplog.text


def test_a_test_bank_is_the_same_in_both_forms(tmp_path: Path) -> None:
    questions = [
        RubricItem("i1", "q", "Where?", "question", None, ("Here",), "okay"),
        RubricItem("i2", "q", "Why?", "question", weight=-2.0),
    ]
    bank = TestBank.from_items([*questions, RubricItem("c1", "q", "Big.", "nugget")], {"q": "Ports"})
    assert bank_of_entries(read_rows(written_rows(bank, "nugget-bank"), "nugget-bank")) == bank
    with pytest.raises(InputError, match="'c1' is a nugget, and this form has questions only"):
        written_rows(bank, "nugget-lists")
    only = TestBank.from_items(questions)
    NUGGET_LISTS.write(tmp_path / "lists", bank_entries(only))
    assert bank_of_entries(NUGGET_LISTS.read(tmp_path / "lists")) == only
    with pytest.raises(InputError, match="two items have the same text"):
        written_rows(TestBank.from_items([RubricItem("a", "q", "W?"), RubricItem("b", "q", "W?")]), "nugget-bank")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], ": is empty"),
        ([{"claim_bank": {"x": {"claim": "x"}}}], ":1: query_id: expected query_id; found 'claim_bank'"),
        ([{"query_id": "q", "nugget_bank": {"x": {}}}], ":1: nugget_bank.x.question: expected question; found nothing"),
        ([V3, {**V3, "title_query": "Sea"}], ":2: q1 stands in line 1 already; keep one"),
        (
            [{"query_id": "q", "nugget_bank": {"x": {"question": "x", "importance": 10**400}}}],
            ":1: nugget_bank.x.importance: is too large for a weight",
        ),
        (
            [{"query_id": "q", "nugget_bank": {"x": {"question": "x", "importance": True}}}],
            ":1: nugget_bank.x.importance: expected a number",
        ),
        (
            [{"query_id": "q", "nugget_bank": {"x": {"question": "x", "answers": [{"answer": 5}]}}}],
            ":1: nugget_bank.x.answers: expected a list or an object of answers",
        ),
        (
            [{"query_id": "q", "nugget_bank": {"x": {"question": "x", "answers": [{"answer": ["x"]}]}}}],
            ":1: nugget_bank.x.answers: expected a list or an object of answers",
        ),
        ([{**V3, "query_id": "q2"}], ":1: items[0].query_id: the item belongs to query 'q1', its entry to 'q2'"),
    ],
)
def test_bad_banks_are_refused_with_file_line_and_field(tmp_path: Path, rows: list[object], message: str) -> None:
    path = _write(tmp_path, rows)
    with pytest.raises(FormatError) as error:
        bank_of_entries(NUGGET_BANK.read(path), str(path))
    assert str(error.value).startswith(f"{path}{message}")


def test_real_banks_are_the_same_after_writing(tmp_path: Path) -> None:
    if not (SHARED / "kiddie").is_dir():
        pytest.skip("the public data are not here")
    path = SHARED / "kiddie" / "kiddie.nuggets.jsonl"
    banks = NUGGET_BANK.read(path)
    NUGGET_BANK.write(tmp_path / "again", banks)
    assert _rows(tmp_path / "again") == _rows(path)
    bank = bank_of_entries(banks)
    assert next(iter(bank)).item_id == "d14cb1d22ea3e8700012835a364c593e"
    assert bank_of_entries(read_rows(written_rows(bank, "nugget-bank"), "nugget-bank")) == bank


def test_a_bank_keeps_answers_with_documents_and_how_they_are_joined(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    files = [_write(tmp_path, [V3], "v3.jsonl"), _write(tmp_path, [LISTS], "lists.jsonl")]
    convert_files(files, tmp_path / "bank.jsonl", to="bank")
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
        convert_files([tmp_path / "bank.jsonl"], tmp_path / "again.jsonl", to="nugget-bank")
    # Version 3 has no place for who made the bank.
    assert "nugget-bank cannot hold all of the bank: metadata of 1 query" in caplog.text
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
    (shorter,) = written_rows(TestBank.from_items([edited]), "nugget-lists")
    assert shorter["nugget_bank"][0]["answers"] == [
        {"answer": "Ada", "references": ["d1"]},
        {"answer": "Byron"},
    ]
