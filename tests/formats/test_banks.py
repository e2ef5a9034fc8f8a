"""Banks: files, tables, nugget banks of Auto-Judge, lessons of TQA; what goes through one comes out as it was."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import rubric_measures
from rubric_measures.cli import main
from rubric_measures.corpora.converting import convert
from rubric_measures.formats.banks import (
    BANK_CSV,
    NUGGET_BANK,
    NUGGET_LISTS,
    TQA,
    bank_of_entries,
    load_bank,
    write_bank,
    written_rows,
)
from rubric_measures.types.entities import RubricItem, TestBank, bank_hash, make_item_id
from tests.example_records import bank_from_items, read_lines, write_lines, write_text

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


def _plain(items: tuple[RubricItem, ...]) -> tuple[RubricItem, ...]:
    """Without what else a file says of them."""
    return tuple(replace(item, info=None) for item in items)


def test_bank_of_a_file_with_facets(tmp_path: Path) -> None:
    bank = load_bank(write_lines(tmp_path / "b.jsonl.gz", LINES))
    assert {name: _plain(items) for name, items in bank.items.items()} == {
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
        bank = load_bank(write_lines(tmp_path / "b.jsonl", [line]))
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
    bank = load_bank(write_lines(tmp_path / "car.jsonl.gz", pages))
    assert (bank.query_texts, len(bank)) == ({"p": "AC / DC"}, 2)
    assert bank.facet_texts == {("p", "T_1"): "Early years", ("p", "T_2"): "A / B"}
    # A page of one section has a title, too; and what we write says the same.
    assert load_bank(write_lines(tmp_path / "one.jsonl", [pages[0]])).query_texts == {"p": "AC / DC"}
    write_bank(tmp_path / "ours.jsonl", bank)
    assert load_bank(tmp_path / "ours.jsonl") == bank
    assert caplog.messages == []


HAND_MADE = """query_id;text;importance;gold_answers
q1;"Air scatters blue light; more than red";vital;
q1;Which colour is it?;okay;blue | light blue
q2;;;
"""


def test_a_table_by_hand_needs_query_and_text_alone(tmp_path: Path) -> None:
    bank = rubric_measures.load_bank(write_text(tmp_path / "bank.csv", HAND_MADE))
    first, second = bank.items["q1"]
    # Not all texts end with a question mark, so these are nuggets.
    assert (first.text, first.kind, first.importance) == ("Air scatters blue light; more than red", "nugget", "vital")
    assert second.gold_answers == ("blue", "light blue")
    assert first.item_id == make_item_id("q1", first.text)
    assert bank.items["q2"] == ()
    asked = write_text(tmp_path / "bank.csv", "query_id,text,weight\nq1,Why?,2\nq1,How?,-1\n")
    assert [(item.kind, item.weight) for item in rubric_measures.load_bank(asked)] == [
        ("question", 2),
        ("question", -1),
    ]


def test_the_columns_are_those_of_the_docs() -> None:
    docs = Path(__file__).parents[2] / "docs" / "test-banks.md"
    columns = written_rows(TestBank({"q1": ()}), BANK_CSV)[0]
    assert f"`{','.join(columns)}`" in docs.read_text(encoding="utf-8")


RUBRICS = {
    "qid": "683a58c9", "domain": "STEM", "conceptual_breadth": "Moderate", "logical_nesting": "Intermediate",
    "rubrics": [
        {"criterion": "Names the angle side angle rule.", "weight": 5.0, "axis": "Explicit Criteria"},
        {"criterion": "Defines all symbols upon first use.", "weight": 3.0, "axis": "Communication Quality"},
        {"criterion": "Gives an example for each rule.", "weight": 4.0, "axis": "Explicit Criteria"},
        {"criterion": "Refers to a diagram that is missing.", "weight": -3.0, "axis": "Communication Quality"},
    ],
}  # fmt: skip
BANK = {
    "query_id": "q1", "query_text": "skin", "test_collection": "dl20", "info": {"gpt_model": "m"},
    "items": [
        {"query_id": "q1", "nugget_id": "q1/1c28e2a3d1ac8d4a5e9b6cb7aa5b2f95", "nugget_text": "It is an organ."},
        {"query_id": "q1", "nugget_id": "q1/x", "nugget_text": "It is thin.", "importance": "okay"},
    ],
}  # fmt: skip
# As models leave importances: beside the two words an empty text, a phrase, and the word for what nobody could say.
NUGGETS = {
    "qid": "t-2", "query": "what is a tide",
    "nuggets": [
        {"text": "The moon causes tides", "importance": "failed"},
        {"text": "Tides rise twice a day", "importance": "vital", "source": "post-edit"},
        {"text": "Spring tides are the highest", "importance": ""},
        {"text": "Others follow the moon", "importance": "active learning"},
        {"text": "Neap tides are the lowest", "importance": None}, {"text": "Nobody was asked"},
    ],
}  # fmt: skip


def through(path: Path, *formats: str) -> Any:
    """The first line of a file that went through these formats."""
    for place, to in enumerate(formats):
        after = path.with_name(f"{place}.jsonl")
        assert main(["convert", str(path), "--to", to, "-o", str(after)]) == 0
        path = after
    return json.loads(path.read_text().splitlines()[0])


def test_criteria_keep_their_order_and_what_is_said_of_the_query(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_lines(tmp_path / "rubrics.jsonl", [RUBRICS])
    assert through(path, "bank", "rubrics") == RUBRICS
    assert capsys.readouterr().err == ""
    # The axis is the facet, so a bank has a line of each part that stands together.
    entries = [json.loads(line) for line in (tmp_path / "0.jsonl").read_text().splitlines()]
    assert [(entry["facet_text"], len(entry["items"])) for entry in entries] == [
        ("Explicit Criteria", 1), ("Communication Quality", 1), ("Explicit Criteria", 1), ("Communication Quality", 1),
    ]  # fmt: skip
    assert {entry["domain"] for entry in entries} == {"STEM"}
    assert rubric_measures.load_bank(tmp_path / "0.jsonl") == rubric_measures.load_bank(path)


def test_a_table_says_what_it_leaves_behind(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_lines(tmp_path / "100%.jsonl", [BANK | {"agreed %": "87"}])
    assert main(["convert", str(path), "-o", str(tmp_path / "bank.csv")]) == 0
    said = "bank:csv cannot hold all of the bank: test_collection of 1 query, info of 1 query, agreed % of 1 query\n"
    assert capsys.readouterr().err.endswith(said)


@pytest.mark.parametrize("ways", [("nuggets",), ("bank", "nuggets"), ("nugget-bank", "nuggets")])
def test_importances_are_written_back_as_they_were(
    tmp_path: Path, ways: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_lines(tmp_path / "nuggets.jsonl", [NUGGETS])
    assert through(path, *ways) == NUGGETS
    said = "3 importances other than vital and okay ('failed' 1, '' 1, 'active learning' 1) are none"
    assert (said in capsys.readouterr().err) == (len(ways) > 1)
    bank = rubric_measures.load_bank(path)
    assert [item.importance for item in bank] == [None, "vital", None, None, None, None]


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


def test_banks_make_a_test_bank(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="rubric_measures"):
        read = [
            NUGGET_BANK.read(write_lines(tmp_path / "banks.jsonl", [V3])),
            NUGGET_LISTS.read(write_lines(tmp_path / "banks.jsonl", [LISTS])),
        ]
        bank = bank_of_entries(entry for entries in read for entry in entries)
    assert _plain(bank.for_query("q1")) == (
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
    files = [write_lines(tmp_path / "v3.jsonl", [V3]), write_lines(tmp_path / "lists.jsonl", [LISTS])]
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
    write_lines(tmp_path / "banks.jsonl", [LISTS])
    convert([tmp_path / "banks.jsonl"], tmp_path / "bank2.jsonl", to="bank")
    convert([tmp_path / "bank2.jsonl"], tmp_path / "lists.jsonl", to="nugget-lists")
    (written,) = read_lines(tmp_path / "lists.jsonl")
    assert written == {**LISTS, "nugget_bank": [LISTS["nugget_bank"][0] | {"question_id": first_id}]}  # type: ignore[operator,index]
    v3, lists = (json.loads(line) for line in (tmp_path / "again.jsonl").read_text().splitlines())
    assert v3["nugget_bank"]["Where?"] == V3["nugget_bank"]["Where?"]  # type: ignore[index]
    (who,) = lists["nugget_bank"].values()
    assert who["aggregator_type"] == "AND"
    assert who["answers"]["Ada"] == {"answer": "Ada", "references": ["d1"]}
    # Of edited answers those that stay keep their documents.
    first = bank.for_query("300")[0]
    edited = replace(first, gold_answers=("Ada", "Byron"))
    (shorter,) = written_rows(bank_from_items([edited]), NUGGET_LISTS)
    assert shorter["nugget_bank"][0]["answers"] == [
        {"answer": "Ada", "references": ["d1"]},
        {"answer": "Byron"},
    ]


def bank_of_lessons(path: Path) -> TestBank:
    return bank_of_entries(TQA.read(path), str(path))


def lesson(**question: Any) -> dict[str, Any]:
    """A lesson with one question."""
    base = {
        "beingAsked": {"processedText": "Outer layer of the skin?"},
        "answerChoices": {"a": {"processedText": "dermis"}, "b": {"processedText": "epidermis"}},
        "correctAnswer": {"processedText": "b"},
    }
    questions = {"nonDiagramQuestions": {"NDQ_007535": {**base, **question}}}
    return {"globalID": "L_0384", "lessonName": "the skin", "questions": questions}


def test_the_right_choice_is_the_gold_answer(tmp_path: Path) -> None:
    bank = bank_of_lessons(write_text(tmp_path / "tqa.json", json.dumps([lesson()])))
    assert dict(bank.items) == {
        "tqa2:L_0384": (
            RubricItem("NDQ_007535", "tqa2:L_0384", "Outer layer of the skin?", gold_answers=("epidermis",)),
        )
    }
    assert dict(bank.query_texts) == {"tqa2:L_0384": "the skin"}


def test_questions_without_choices_or_key(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    free = lesson(answerChoices={}, correctAnswer={"processedText": "epidermis"})
    assert [item.gold_answers for item in bank_of_lessons(write_text(tmp_path / "tqa.json", json.dumps([free])))] == [
        ("epidermis",)
    ]
    with caplog.at_level(logging.WARNING, "rubric_measures"):
        bank = bank_of_lessons(
            write_text(tmp_path / "tqa.json", json.dumps([lesson(correctAnswer={"processedText": "z"})]))
        )
    assert [item.gold_answers for item in bank] == [()]
    assert len(caplog.messages) == 1 and "1 question" in caplog.messages[0]
