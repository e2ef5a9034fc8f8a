"""Grades with their reasons, from endpoints that are held to a schema and from those that are not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rubric_measures.cli import main
from tests.models.test_end_to_end_http import (
    endpoint,
    grades,
    model,
    prompts_of,
    says,
    sets,
    write_items,
    write_passages,
)
from tests.models.test_reasoning import details

pytest.importorskip("openai")
pytest.importorskip("aiohttp")


@pytest.mark.parametrize(("name", "grade", "reason"), [("plain", 0, "It says so."), ("m", 3, "It names the years.")])
def test_a_grade_comes_with_its_reason(tmp_path: Path, name: str, grade: int, reason: str) -> None:
    """The first obeys a schema (and takes its first label); the other ignores it and obeys the prompt's words."""
    passages, bank = write_passages(tmp_path, sun="about the sun"), write_items(tmp_path, "How long?")
    out = tmp_path / "out.jsonl"
    said = 'Here it is: {"reason": "It names the years.", "grade": 3}'
    with model(tmp_path, says(said, "How long?")) as server:
        command = ["grade", passages, "--bank", bank, *endpoint(server, name), "--explain", "-o", str(out)]
        assert main(command) == 0
        # Six questions find out what the endpoint obeys, once.
        assert server.stats()["calls"] == 7
        assert main(command) == 0
        assert server.stats()["calls"] == 7
        [asked] = [text for text in prompts_of(server) if "How long?" in text]
    assert grades(out) == {"sun": {"How long?": grade}}
    entry = sets(out)["sun"]
    assert details(entry)["q1/How long?"]["reason"] == reason
    assert "The reason comes first; the grade is one of 0, 1, 2, 3, 4, 5." in asked


def test_reasons_are_shown_where_grades_are_explained(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    passages, bank = write_passages(tmp_path, sun="about the sun"), write_items(tmp_path, "How long?", "Who rules?")
    out, page = tmp_path / "out.jsonl", tmp_path / "page.html"
    rules = [
        says('{"reason": "It names <the> years.", "grade": 3}', "How long?"),
        says("1", "Who rules?"),  # the prompt's words are not obeyed
    ]
    with model(tmp_path, *rules) as server:
        assert main(["grade", passages, "--bank", bank, *endpoint(server), "--explain", "-o", str(out)]) == 0
    capsys.readouterr()
    shown = [str(out), "--bank", bank]
    assert main(["verify", "grading", *shown, "--format", "jsonl"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(row["grade"], row["reason"]) for row in rows] == [(3, "It names <the> years."), (1, "")]
    assert main(["verify", "grid", *shown, "--format", "tsv"]) == 0
    assert "3: It names <the> years.\t1\n" in capsys.readouterr().out
    assert main(["verify", "grading", *shown, "--format", "html", "--output", str(page)]) == 0
    assert "It names &lt;the&gt; years." in page.read_text()
