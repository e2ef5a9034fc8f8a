"""Tests of nuggetizer's files: labels of older files, what is refused, grades and records, identity after writing."""

from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest

import rubric_measures
from rubric_measures.base.errors import InputError
from rubric_measures.cli import main
from rubric_measures.formats.banks import NUGGETS, bank_of_entries
from rubric_measures.formats.judged import ASSIGNMENTS as LINES
from rubric_measures.formats.judged import lines_of_grades
from rubric_measures.records.models import QueryPassages, answer_passage
from rubric_measures.types.entities import Grade
from tests.example_records import read_lines, write_lines


def test_a_line_without_a_run_is_of_the_run_that_the_file_is_named_after(tmp_path: Path, capsys) -> None:
    nugget = {"text": "a", "importance": "vital", "assignment": "support"}
    write_lines(tmp_path / "file.jsonl", [{"qid": "1", "answer_text": "t", "nuggets": [nugget]}]).rename(
        tmp_path / "concise.v2.jsonl"
    )
    path = tmp_path / "concise.v2.jsonl"
    assert [line.run_id for line in LINES.read(path)] == ["concise.v2"]
    for more in ((), ("--compat", "nuggetizer")):
        assert main(["leaderboard", str(path), "-m", "NuggetV", "--no-overall", *more]) == 0
        assert "concise.v2\t1.0000" in capsys.readouterr().out


def test_every_answer_stays_through_conversions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of 18 answers was lost, and with it a mean over lines moved from .0812 to .0974."""
    monkeypatch.chdir(tmp_path)
    nuggets = [{"text": f"n{i}", "importance": "vital"} for i in range(3)]
    rows: list[Any] = [
        {"query": "x", "qid": query_id, "run_id": run_id, "answer_text": "", "response_length": 0, "nuggets": []}
        for query_id in ("q1", "q2")
        for run_id in "abc"
    ]
    for row in rows:
        # b has nothing to say to q2, c was never assigned there.
        is_empty = (row["qid"], row["run_id"]) == ("q2", "b")
        if not is_empty:
            row |= {"answer_text": f"it is {row['run_id']}", "response_length": 3}
        if (row["qid"], row["run_id"]) != ("q2", "c"):
            label = "not_support" if is_empty else "support"
            row["nuggets"] = [{**one, "assignment": label} for one in nuggets]
    path = write_lines(tmp_path / "file.jsonl", rows)
    for way in (("records", "assignments"), ("records", "records", "assignments")):
        here = path
        rubric_measures.convert(path, "bank.jsonl", to="bank")
        for number, to in enumerate(way):
            bank = "bank.jsonl" if to == "assignments" else None
            here = rubric_measures.convert(here, f"{number}.jsonl", to=to, bank=bank)
        key = itemgetter("qid", "run_id")
        assert sorted(read_lines(here), key=key) == sorted(rows, key=key)


def test_a_grade_without_a_label_is_refused(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    nuggets = [{"text": "a", "importance": "vital"}, {"text": "b", "importance": "much"}]
    bank = bank_of_entries(
        NUGGETS.read(write_lines(tmp_path / "file.jsonl", [{"qid": "1", "query": "who?", "nuggets": nuggets}]))
    )
    first, second = (item.item_id for item in bank)
    answers = [QueryPassages("1", [answer_passage("1", "a", "A b.")])]
    [line] = lines_of_grades(bank, [Grade("1", "a", 2, first)], answers)
    found = [(one.text, one.importance, one.label) for one in line.marks]
    assert found == [("a", "vital", "support"), ("b", "much", "failed")] and line.response_length == 2
    assert "1 nugget has no grade and was written as failed" in caplog.text
    with pytest.raises(InputError, match="grade 5 has no label"):
        lines_of_grades(bank, [Grade("1", "a", 5, second)], answers)
