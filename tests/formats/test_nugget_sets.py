"""Tests of weighted criteria: banks of them, identity after writing, real files."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rubric_measures.base.errors import InputError
from rubric_measures.formats.banks import RUBRICS as FORMAT
from rubric_measures.formats.banks import bank_entries, bank_of_entries, facet_ids, read_rows, written_rows
from rubric_measures.types.entities import RubricItem, TestBank

RUBRICS = {
    "qid": "q1",
    "domain": "STEM",
    "rubrics": [
        {"criterion": "Says what it is.", "weight": 5.0, "axis": "Explicit Criteria"},
        {"criterion": "Rambles.", "weight": -3.0, "axis": "Communication Quality", "note": None},
    ],
}


def test_facet_ids_are_words_and_never_the_same() -> None:
    assert facet_ids([" A b? ", None, "a B!", "", "A b?", "???"]) == {"A b?": "a-b", "a B!": "a-b-2", "???": "facet"}


@given(st.lists(st.text(max_size=80)))
def test_every_facet_text_has_an_id_of_its_own(texts: list[str]) -> None:
    ids = facet_ids(texts)
    assert set(ids) == {text.strip() for text in texts if text.strip()}
    assert len(set(ids.values())) == len(ids)
    assert all("/" not in facet_id and not any(map(str.isspace, facet_id)) for facet_id in ids.values())


def test_criteria_are_the_same_after_writing(tmp_path: Path) -> None:
    path = tmp_path / "rubrics.jsonl"
    path.write_text(json.dumps(RUBRICS) + "\n")
    lines = FORMAT.read(path)
    FORMAT.write(tmp_path / "again.jsonl", lines)
    assert json.loads((tmp_path / "again.jsonl").read_text()) == RUBRICS
    bank = bank_of_entries(lines)
    assert [(item.text, item.weight, item.facet_id, item.kind) for item in bank] == [
        ("Says what it is.", 5.0, "explicit-criteria", "nugget"),
        ("Rambles.", -3.0, "communication-quality", "nugget"),
    ]
    assert bank_of_entries(read_rows(written_rows(bank, "rubrics"), "rubrics")) == bank
    with pytest.raises(InputError, match="has no weight"):
        FORMAT.write(tmp_path / "b.jsonl", bank_entries(TestBank.from_items([RubricItem("q/a", "q", "a")])))
