"""Tests of banks whose item ids are told apart by their query alone (1, 2, … of each), as people number them."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import pytest

from rubric_measures.cli import main

EXAMPLE = Path(__file__).resolve().parents[2] / "resources" / "example"
COMMANDS = (
    "leaderboard graded.jsonl {runs} --bank bank.jsonl -m RubricCover(rel=4)@5 --format json",
    "leaderboard graded.jsonl {runs} --bank bank.jsonl -m RubricCover(rel=4)@5 --report page.html -o board.json",
    "verify all graded.jsonl --bank bank.jsonl --format json",
    "convert graded.jsonl --bank bank.jsonl --to csv -o grades.csv",
    "qrels graded.jsonl --bank bank.jsonl --grader kind=question --per item -o items.qrels",
    "check board.json graded.jsonl {runs} --bank bank.jsonl --pack first",
)


def test_ids_that_repeat_across_queries_change_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bank = (EXAMPLE / "questions.jsonl").read_text(encoding="utf-8")
    graded = gzip.decompress((EXAMPLE / "graded.jsonl.gz").read_bytes()).decode("utf-8")
    places = {
        item["question_id"]: (entry["query_id"], place)
        for entry in map(json.loads, bank.splitlines())
        for place, item in enumerate(entry["items"], 1)
    }
    ids = re.compile("|".join(map(re.escape, places)))
    runs = " ".join(map(str, sorted((EXAMPLE / "runs").glob("*.run"))[:3]))
    found = []
    for name, called in (("own", "{0}-{1:02}"), ("repeated", "{1:02}")):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        for file, text in (("bank.jsonl", bank), ("graded.jsonl", graded)):
            renamed = {one: called.format(*place) for one, place in places.items()}
            Path(file).write_text(ids.sub(lambda one, to=renamed: to[one[0]], text), encoding="utf-8")
        said = []
        for line in COMMANDS:
            assert main(line.format(runs=runs).split()) == 0, (line, capsys.readouterr().err)
            said += capsys.readouterr()
        made = [
            path for path in sorted(Path().rglob("*")) if path.suffix in (".csv", ".jsonl", ".json", ".html", ".qrels")
        ]
        said += [f"{path}\n{path.read_text(encoding='utf-8')}" for path in made]
        # Hashes are of the ids, too.
        found.append([re.sub("[0-9a-f]{12,}", "#", re.sub(r"q\d\d-(\d\d)", r"\1", text)) for text in said])
    assert found[0] == found[1]
