"""Tests of assignments in bulk: the fast lines, older ones, errors, and that none of it needs pydantic."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rubric_measures.base.errors import FormatError
from rubric_measures.corpora.assigned import AssignedRow, assignment_rows
from rubric_measures.formats.nuggetizer import read_assignments
from rubric_measures.formats.nuggets import facet_ids, item_of_nugget

NUGGETS = [
    {"text": "x", "importance": "vital", "assignment": "support", "mapped_sub_narrative": "Side effects?"},
    {"text": " y ", "importance": "failed", "assignment": "failed", "source": "post-edit"},
    {"text": "z", "assignment": "not_support"},
]
LINE: dict[str, Any] = {"qid": "q", "query": "?", "run_id": "a", "answer_text": " b  c\n", "nuggets": NUGGETS}


def write(folder: Path, *rows: dict[str, Any] | str) -> Path:
    path = folder / "mine.jsonl"
    path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
    return path


def rows_of(folder: Path, *rows: dict[str, Any] | str) -> list[AssignedRow]:
    return list(assignment_rows(write(folder, *rows)))


def test_a_line(tmp_path: Path) -> None:
    (row,) = rows_of(tmp_path, LINE)
    assert (row.query_id, row.run_id, row.text, row.line) == ("q", "a", " b  c\n", 1)
    assert list(row.labels) == ["support", "failed", "not_support"]
    first, second, third = row.nuggets.items
    assert (first.text, first.importance, first.facet_id, first.info) == ("x", "vital", "side-effects", None)
    assert (second.text, second.importance, second.info) == ("y", None, {"source": "post-edit"})
    assert (third.text, third.importance) == ("z", None)


def test_lines_of_a_query_share_their_nuggets(tmp_path: Path) -> None:
    other = [{**nugget, "assignment": "support", "source": "original"} for nugget in NUGGETS]
    rows = rows_of(
        tmp_path,
        LINE,
        {**LINE, "run_id": "b", "nuggets": NUGGETS[:1] * 2},
        {**LINE, "qid": "other"},
        {**LINE, "run_id": "c", "nuggets": other},
        {**LINE, "run_id": "d", "nuggets": [{**one, "assignment": "Partial Support"} for one in NUGGETS]},
        {**LINE, "run_id": "e", "nuggets": [{**NUGGETS[0], "importance": "okay"}, *NUGGETS[1:]]},
    )
    first, shorter, foreign, same, older, less = (row.nuggets for row in rows)
    # Who wrote a nugget makes it no other one.
    assert first is same is older
    assert len({id(one) for one in (first, shorter, foreign, less)}) == 4
    assert shorter.items[0] is not shorter.items[1]
    assert {item.query_id for item in foreign.items} == {"other"}
    assert list(rows[4].labels) == ["partial_support"] * 3


def test_the_models_say_the_same(tmp_path: Path) -> None:
    draw = random.Random(7)
    written = []
    for number in range(300):
        nuggets: list[dict[str, Any]] = []
        for place in range(draw.randint(0, 6)):
            nugget = {"text": f"fact {place}", "assignment": draw.choice(["support", "failed", "Not Support", "fail"])}
            nugget |= draw.choice([{}, {"importance": draw.choice(["vital", "okay", "okey", None])}])
            nugget |= draw.choice([{}, {"mapped_sub_narrative": draw.choice(["A", "A?", None])}, {"more": [1]}])
            nuggets.append(nugget)
        line: dict[str, Any] = {"qid": draw.choice(["q", 7]), "run_id": draw.choice([f"r{number}", number])}
        line |= draw.choice([{"answer_text": "a b"}, {"answer_text": None}, {}, {"response_length": 9}])
        written.append({**line, "nuggets": nuggets})
    path = write(tmp_path, *written)
    for row, line in zip(assignment_rows(path), read_assignments(path), strict=True):
        facets = facet_ids(one.mapped_sub_narrative for one in line.nuggets)
        said = line.answer_text if line.answer_text is not None else line.response_length or 0
        assert (row.query_id, row.run_id, row.text) == (line.qid, line.run_id, said)
        assert row.nuggets.items == tuple(item_of_nugget(line.qid, one, facets) for one in line.nuggets)
        assert list(row.labels) == [one.assignment for one in line.nuggets]


def test_lines_without_a_run_are_of_the_file(tmp_path: Path) -> None:
    (row,) = rows_of(tmp_path, {name: value for name, value in LINE.items() if name != "run_id"})
    assert row.run_id == "mine"


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ({**LINE, "qid": None}, ":2: qid: "),
        ({**LINE, "run_id": ""}, ":2: run_id: names no run"),
        ({**LINE, "nuggets": [*NUGGETS, {"text": "x", "assignment": "sure"}]}, ":2: nuggets[3].assignment: "),
        ({**LINE, "nuggets": [{"text": " ", "assignment": "support"}]}, ":2: nuggets[0].text: "),
        ({**LINE, "nuggets": [{"text": "x"}]}, ":2: nuggets[0].assignment: required field is missing"),
        ({**LINE, "nuggets": [{**NUGGETS[0], "importance": "much"}]}, ":2: nuggets[0].importance: "),
        ({**LINE, "more": float("nan")}, ":2: is not JSON: "),
        ('{"qid": ', ":2: is not JSON: EOF"),
        ("[" * 100_000, ":2: is not JSON: "),
    ],
)
def test_errors_name_file_line_and_field(line: Any, problem: str, tmp_path: Path) -> None:
    path = write(tmp_path, LINE, line)
    with pytest.raises(FormatError) as found:
        list(assignment_rows(path))
    assert str(found.value).startswith(f"{path}{problem}") and "\n" not in str(found.value)


def test_empty_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"mine.jsonl: is empty; expected assignments"):
        rows_of(tmp_path)


def test_labels_that_nobody_defined_are_counted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = write(tmp_path, LINE, {**LINE, "run_id": "b", "nuggets": [{**one, "assignment": "sure"} for one in NUGGETS]})
    rows = list(assignment_rows(path, "failed"))
    assert caplog.messages == [f"{path}: 3 labels that nobody defined ('sure' 3) are failed grades"]
    assert list(rows[1].labels) == ["failed"] * 3
    assert rows[0].nuggets is rows[1].nuggets


def test_lines_of_today_need_no_pydantic(tmp_path: Path) -> None:
    code = (
        "import sys; from rubric_measures.corpora.assigned import assignment_rows; "
        "print(len(list(assignment_rows(sys.argv[1]))), 'pydantic' in sys.modules)"
    )
    command = [sys.executable, "-c", code, str(write(tmp_path, LINE, {**LINE, "run_id": "b"}))]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "2 False\n"
