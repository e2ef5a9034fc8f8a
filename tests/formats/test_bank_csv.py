"""A bank as a table: read, written, and refused with the line where a person who edits it went wrong."""

from __future__ import annotations

from pathlib import Path

import rubric_measures
from rubric_measures.formats.banks import written_rows
from rubric_measures.types.entities import TestBank, make_item_id

HAND_MADE = """query_id;text;importance;gold_answers
q1;"Air scatters blue light; more than red";vital;
q1;Which colour is it?;okay;blue | light blue
q2;;;
"""


def write(folder: Path, text: str, name: str = "bank.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_a_table_by_hand_needs_query_and_text_alone(tmp_path: Path) -> None:
    bank = rubric_measures.load_bank(write(tmp_path, HAND_MADE))
    first, second = bank.items["q1"]
    # Not all texts end with a question mark, so these are nuggets.
    assert (first.text, first.kind, first.importance) == ("Air scatters blue light; more than red", "nugget", "vital")
    assert second.gold_answers == ("blue", "light blue")
    assert first.item_id == make_item_id("q1", first.text)
    assert bank.items["q2"] == ()
    asked = write(tmp_path, "query_id,text,weight\nq1,Why?,2\nq1,How?,-1\n")
    assert [(item.kind, item.weight) for item in rubric_measures.load_bank(asked)] == [
        ("question", 2),
        ("question", -1),
    ]


def test_the_columns_are_those_of_the_docs() -> None:
    docs = Path(__file__).parents[2] / "docs" / "test-banks.md"
    columns = written_rows(TestBank({"q1": ()}), "bank:csv")[0]
    assert f"`{','.join(columns)}`" in docs.read_text(encoding="utf-8")
