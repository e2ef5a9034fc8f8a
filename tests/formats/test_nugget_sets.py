"""Tests of weighted criteria: banks of them, identity after writing, real files."""

import gzip
import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rubric_measures.base.errors import FormatError, InputError
from rubric_measures.formats.banks import RUBRICS as FORMAT
from rubric_measures.formats.banks import bank_entries, bank_of_entries, facet_ids, read_rows, written_rows
from rubric_measures.types.entities import RubricItem, TestBank

SHARED = Path(os.environ.get("RUBRIC_MEASURES_SHARED", Path(__file__).parents[3] / "shared")) / "data"
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


@pytest.mark.parametrize("weight", ['"five"', "1e300", "-1e300", '"1e300"', "9" * 400, "true"])
def test_bad_files_are_refused(tmp_path: Path, weight: str) -> None:
    path = tmp_path / "bad.json"
    path.write_text(f'{{"qid": "1", "rubrics": [{{"criterion": "x", "weight": {weight}}}]}}')
    with pytest.raises(FormatError, match=r"bad.json:1: rubrics\[0\].weight: "):
        FORMAT.read(path)


def test_real_files(tmp_path: Path) -> None:
    if not (SHARED / "rag26dev").is_dir():
        pytest.skip("the public data are not here")
    path = SHARED / "rag26dev" / "research-rubrics-dev-rubrics.jsonl.gz"
    lines = FORMAT.read(path)
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        rows = [json.loads(line) for line in stream]
    FORMAT.write(tmp_path / "again.jsonl", lines)
    assert [json.loads(line) for line in (tmp_path / "again.jsonl").read_text().splitlines()] == rows
    bank = bank_of_entries(lines)
    assert (len(bank.items), len(bank)) == (30, 755)
    # Penalties: 34 of −3, 25 of −5, 19 of −4, 16 of −2, 3 of −1.
    assert sum((item.weight or 0) < 0 for item in bank) == 97
