"""The five commands of docs/nuggets.md, run as they stand there with a scripted model; scores worked out by hand."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from rubric_measures.cli import main

PAGE = Path(__file__).resolve().parents[2] / "docs" / "nuggets.md"
QUERIES = "q1\thow is tea made\nq2\twhat is frost\n"
DOCUMENTS = {
    "d1": "Boil water and pour it over the leaves.",
    "d2": "Ice crystals form on cold nights.",
    "d3": "Ships sail.",
}
RUNS = {
    "bm25": "q1 Q0 d1 1 2 bm25\nq1 Q0 d3 2 1 bm25\nq2 Q0 d2 1 2 bm25\n",
    "dense": "q1 Q0 d3 1 2 dense\nq1 Q0 d1 2 1 dense\nq2 Q0 d3 1 2 dense\n",
}
RULES: list[tuple[list[str], str]] = [
    (["You judge search results", "Query: how is tea made", "Boil"], "It explains it in 2 steps.\nGrade: 3"),
    (["You judge search results", "Query: what is frost", "Ice"], "Partly.\n**Grade: 2**"),
    (["You judge search results"], "Off topic.\nGrade: 0"),
    (["NuggetizeLLM", "Context:\n[1] Boil"], '["boil water", "pour over leaves"]'),
    (["NuggetizeLLM", "Context:\n[1] Ice"], "['ice crystals']"),
    (["NuggetizeScoreLLM", "boil water"], '["vital", "okay"]'),
    (["NuggetizeScoreLLM", "ice"], '["vital"]'),
    (["NuggetizeAssignerLLM", "Passage: Boil", "boil water"], '["support", "partial_support"]'),
    (["NuggetizeAssignerLLM", "Passage: Ice", "ice crystals"], '["support"]'),
    (["NuggetizeAssignerLLM", "boil water"], '["not_support", "not_support"]'),
    (["NuggetizeAssignerLLM"], '["not_support"]'),
]


def test_the_five_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    Path("queries.tsv").write_text(QUERIES, encoding="utf-8")
    lines = [json.dumps({"doc_id": doc_id, "text": text}) + "\n" for doc_id, text in DOCUMENTS.items()]
    Path("docs.jsonl").write_text("".join(lines), encoding="utf-8")
    Path("runs").mkdir()
    for name, text in RUNS.items():
        Path("runs", f"{name}.run").write_text(text, encoding="utf-8")
    rules = [json.dumps({"contains": contains, "reply": reply}) + "\n" for contains, reply in RULES]
    Path("model.jsonl").write_text("".join(rules), encoding="utf-8")
    block = PAGE.read_text(encoding="utf-8").split("```sh\n")[1].split("```")[0]
    commands = [shlex.split(line) for line in block.strip().split("\n")]
    assert [command[:2] for command in commands] == [
        ["rubric_measures", name] for name in ("pool", "grade", "generate", "grade", "leaderboard")
    ]
    for command in commands[:4]:
        assert main([part.replace("$MODEL", "scripted:model.jsonl") for part in command[1:]]) == 0
    capsys.readouterr()
    assert main([*commands[4][1:], "--format", "tsv", "--no-overall"]) == 0
    table = [line.split("\t") for line in capsys.readouterr().out.strip().split("\n")]
    scores = {row[0]: dict(zip(table[0][1:], row[1:], strict=True)) for row in table[1:]}
    # bm25: q1 boil water (vital) 1, pour over leaves (okay) 0.5; q2 ice crystals (vital) 1.
    #   V = (1 + 1) / 2; W = ((1 + 0.5 * 0.5) / 1.5 + 1) / 2 = 0.9167; A = (1.5 / 2 + 1) / 2 = 0.875
    # dense: q1 the same at cutoff 20; q2 nothing. V = 0.5, W = 0.8333 / 2 = 0.4167, A = 0.75 / 2 = 0.375
    # The levels are those of assigned nuggets: 2 is support, 1 partial support.
    levels = "(rel=2,partial_rel=1)@20"
    columns = ["NuggetV(rel=2,strict=True)@20", f"NuggetV{levels}", f"NuggetW{levels}", f"NuggetA{levels}"]
    found = {run: [float(row[name]) for name in columns] for run, row in scores.items()}
    assert found == {"bm25": [1.0, 1.0, 0.9167, 0.875], "dense": [0.5, 0.5, 0.4167, 0.375]}
