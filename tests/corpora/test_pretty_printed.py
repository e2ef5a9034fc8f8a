"""Objects over several lines, or several on one, are what the same objects on a line each are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rubric_measures.cli import main
from tests.boards.test_argue import BANKS, REPORTS
from tests.formats.test_ragdoll import FULL, NOT, PART, battle, graded
from tests.support_data import line

NUGGETS = [{"text": f"nugget {number}", "importance": "vital"} for number in range(2)]
ASSIGNED = [one | {"assignment": "support"} for one in NUGGETS]
FILES: dict[str, tuple[list[dict[str, Any]], list[str]]] = {
    "labels": ([line("one"), line("two")], ["leaderboard", "--format", "tsv", "-p", "6"]),
    "graded": ([graded("x", "q1", PART, FULL, NOT, NOT), graded("y", "q1", FULL, NOT, NOT, FULL)], ["leaderboard"]),
    "assignments": (
        [{"qid": query, "run_id": "x", "nuggets": ASSIGNED} for query in ("q1", "q2")],
        ["leaderboard", "-m", "NuggetV", "--compat", "nuggetizer"],
    ),
    "nuggets": ([{"qid": query, "query": "text", "nuggets": NUGGETS} for query in ("q1", "q2")], ["convert", "bank"]),
    "battles": (
        [battle("q1", "A"), battle("q2", "B"), battle("q3", "A")],
        ["tournament", "--rounds", "9", "--format", "tsv"],
    ),
    "bank": (
        [{"query_id": query, "items": [{"question_id": "i", "question_text": "Why?"}]} for query in ("q1", "q2")],
        ["convert", "nuggets"],
    ),
    "banks": (BANKS, ["convert", "bank"]),
    "topics": (
        [{"topic_id": query, "title": "T", "problem_statement": "P", "limit": 2000} for query in ("q1", "q2")],
        ["convert", "queries"],
    ),
    "reports": ([one["report"] for one in REPORTS], ["convert", "answers"]),
}


@pytest.mark.parametrize("kind", FILES)
def test_objects_need_no_line_of_their_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    rows, (command, *more) = FILES[kind]
    found = []
    # TREC gave the topics of RAGTIME 2026 without line ends.
    for folder, indent, end in (("compact", None, "\n"), ("pretty", 2, "\n"), ("joined", None, "")):
        (tmp_path / folder).mkdir()
        monkeypatch.chdir(tmp_path / folder)
        Path("res.json").write_text("".join(json.dumps(row, indent=indent) + end for row in rows))
        options = ["--to", more[0], "-o", "out.jsonl"] if command == "convert" else more
        assert main([command, "res.json", *options]) == 0, capsys.readouterr().err
        written = Path("out.jsonl")
        found.append((capsys.readouterr().out, written.read_bytes() if written.exists() else b""))
    assert found[0] == found[1] == found[2]
    assert any(found[0])
