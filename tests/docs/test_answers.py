"""The commands of docs/answers.md, run as they stand there with a scripted model; scores worked out by hand."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from rubric_measures.cli import main
from rubric_measures.formats.leaderboards import read_leaderboard
from tests.docs.pages import blocks

ANSWERS = {
    "a": {"tea": ["Boil water.", "Pour it over the leaves."], "frost": ["Ice crystals form."]},
    "b": {"tea": ["Ships sail."], "frost": []},
}
NUGGETS = {"tea": [("boil water", "vital"), ("pour over leaves", "okay")], "frost": [("ice crystals", "vital")]}
RULES: list[tuple[list[str], str]] = [
    (["Passage: Boil water. Pour", "boil water"], '["support", "partial_support"]'),
    (["Passage: Ice", "ice crystals"], '["support"]'),
    (["boil water"], '["not_support", "not_support"]'),
]


def _lines(path: Path, rows: list[object]) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def _files() -> None:
    for run_id, topics in ANSWERS.items():
        reports: list[object] = [
            {
                "metadata": {"run_id": run_id, "narrative_id": topic},
                "references": ["d1"],
                "answer": [{"text": text, "citations": [0]} for text in texts],
            }
            for topic, texts in topics.items()
        ]
        _lines(Path("runs", f"{run_id}.jsonl"), reports)
    _lines(
        Path("topics.jsonl"),
        [{"qid": "tea", "query": "how is tea made", "word_limit": 6}, {"qid": "frost", "query": "x"}],
    )
    bank: list[object] = [
        {
            "query_id": topic,
            "query_text": topic,
            "items": [{"nugget_text": t, "importance": i, "facet_id": "all"} for t, i in nuggets],
        }
        for topic, nuggets in NUGGETS.items()
    ]
    _lines(Path("nuggets.jsonl"), bank)
    _lines(Path("model.jsonl"), [{"contains": contains, "reply": reply} for contains, reply in RULES])


def _commands(block: int) -> list[list[str]]:
    given = {"runs/*.jsonl": ["runs/a.jsonl", "runs/b.jsonl"], "$MODEL": ["scripted:model.jsonl"]}
    lines = [shlex.split(line)[1:] for line in blocks("answers", "sh")[block - 1].splitlines()]
    return [[found for part in line for found in given.get(part, [part])] for line in lines]


def test_from_answers_to_scores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    _files()
    pool, grade, leaderboard = _commands(1)
    assert main(pool) == 0
    said = capsys.readouterr().err
    assert "1 empty answer, which will score 0 (such as that of run b to query frost)" in said
    assert main(grade) == 0
    assert main([*leaderboard[:-2], "-o", "board.json", "--no-overall"]) == 0
    table = read_leaderboard("board.json")
    # a: tea: vital 1, okay 0.5; frost: vital 1. V = 1; W = ((1 + 0.25) / 1.5 + 1) / 2; A = (1.5 / 2 + 1) / 2.
    assert table.column("NuggetV(rel=2,strict=True)") == {"a": 1.0, "b": 0.0}
    assert table.column("NuggetW(rel=2,partial_rel=1)")["a"] == pytest.approx(2.75 / 3)
    assert table.column("NuggetA(rel=2,partial_rel=1)")["a"] == 0.875
    # L: a has 7 and 3 words, b 2 and none.
    assert table.column("L") == {"a": 5.0, "b": 1.0}
    assert table.per_query("L")["b"] == {"tea": 2.0, "frost": 0.0}
    assert main(leaderboard) == 0


def test_a_run_is_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    _files()
    (check,) = _commands(4)
    assert main(check) == 1
    found = capsys.readouterr().out.splitlines()
    # A team, a type and a narrative are missing in two answers; an id is none of the collection; seven words of six.
    assert sum("is missing or empty" in line for line in found) == 6
    assert "runs/a.jsonl:1: warning: topic tea: has 7 words; the most is 6" in found
    assert [line.partition(" error: ")[0] for line in found if "1 id is none" in line] == [
        "runs/a.jsonl:1:",
        "runs/a.jsonl:2:",
    ]


def test_assignments_need_no_grading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    nuggets = [
        {"text": "x", "importance": "vital", "assignment": "failed"},
        {"text": "y", "importance": "okay", "assignment": "support"},
    ]
    _lines(Path("assignments.jsonl"), [{"qid": "q", "run_id": "a", "answer_text": "w w", "nuggets": nuggets}])
    (command,) = _commands(2)
    # The only vital grade failed: nobody gets scores of it who did not ask for it.
    assert main([*command, "--format", "jsonl", "--no-overall"]) == 2
    assert "100 % of the grades that NuggetV" in capsys.readouterr().err
    # V: its only nugget failed, so it cannot be scored; the command says so.
    assert main([*command, "--format", "jsonl", "--no-overall", "--on-failed", "expected"]) == 1
    assert '"NuggetV(rel=2,partial_rel=1)": null' in capsys.readouterr().out
    assert main([*command, "-o", "board.json", "--no-overall", "--on-failed", "zero"]) in (0, 1)
    assert read_leaderboard("board.json").column("NuggetV(rel=2,partial_rel=1)") == {"a": 0.0}
    assert read_leaderboard("board.json").column("NuggetA(rel=2,partial_rel=1)") == {"a": 0.5}
