"""What goes through a bank comes out as it was; what another format cannot hold is said with counts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import rubric_measures
from rubric_measures.cli import main

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


def write(path: Path, *lines: Any) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


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
    path = write(tmp_path / "rubrics.jsonl", RUBRICS)
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
    path = write(tmp_path / "100%.jsonl", BANK | {"agreed %": "87"})
    assert main(["convert", str(path), "-o", str(tmp_path / "bank.csv")]) == 0
    said = "bank:csv cannot hold all of the bank: test_collection of 1 query, info of 1 query, agreed % of 1 query\n"
    assert capsys.readouterr().err.endswith(said)


def test_what_facets_say_differently_is_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    more = {"status": "reviewed", "task_id": "t9"}
    item = {"query_id": "q1", "nugget_id": "q1/x", "nugget_text": "It is thin.", "info": {"z": 3}}
    entries = [
        {"query_id": "q1", "facet_id": "a", "dom": "x", **more, "items": [item]},
        {"query_id": "q1", "facet_id": "b", "dom": "y", **more, "items": []},
    ]
    path = write(tmp_path / "bank.jsonl", *entries)
    # What only entries of RAGDoll say of themselves is a field like others here.
    assert through(path, "nuggets").items() >= {"dom": "x", **more}.items()
    assert "1 field of queries has two values ('dom' 1); the first is kept" in capsys.readouterr().err
    # Each loss is said once.
    assert main(["convert", str(path), "-o", str(tmp_path / "bank.csv")]) == 0
    said = capsys.readouterr().err
    assert "info of 1 item, dom of 1 query, status of 1 query, task_id of 1 query" in said
    assert "z of" not in said


def test_a_status_from_elsewhere_makes_no_failed_task(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    criterion = {"criterion": "Says it.", "weight": 5, "axis": "explicit"}
    path = write(tmp_path / "rubrics.jsonl", {"qid": "q1", "status": "draft", "rubrics": [criterion]})
    assert through(path, "ragdoll:rubric")["status"] == "completed"
    assert "status of 1 query" in capsys.readouterr().err
    bank = write(tmp_path / "bank.jsonl", BANK)
    assert main(["convert", str(bank), "--to", "rubrics", "-o", str(tmp_path / "no.jsonl")]) == 2
    assert "has no weight, and a criterion needs one" in capsys.readouterr().err


@pytest.mark.parametrize("ways", [("nuggets",), ("bank", "nuggets"), ("nugget-bank", "nuggets")])
def test_importances_are_written_back_as_they_were(
    tmp_path: Path, ways: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path / "nuggets.jsonl", NUGGETS)
    assert through(path, *ways) == NUGGETS
    said = "3 importances other than vital and okay ('failed' 1, '' 1, 'active learning' 1) are none"
    assert (said in capsys.readouterr().err) == (len(ways) > 1)
    bank = rubric_measures.load_bank(path)
    assert [item.importance for item in bank] == [None, "vital", None, None, None, None]
