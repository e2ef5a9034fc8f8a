"""The lines of docs/grading.md that ask a second model about some cells, with two models behind one server."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from rubric_measures.cli import main
from rubric_measures.records.models import (
    GradedPassage,
    PassageData,
    QueryPassages,
    RankingEntry,
    grade_of_items,
    load_graded,
    write_graded,
)
from tests.fault_server import running

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "grading.md").read_text(encoding="utf-8")
LINES = re.findall(r"^rubric_measures (.*)$", PAGE, re.MULTILINE)


def test_a_second_model_for_some_cells(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("openai")
    pytest.importorskip("aiohttp")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    ranked = PassageData(rankings=[RankingEntry(method="a", doc_id="d1", query_id="q1", rank=1, score=1)])
    passage = GradedPassage(doc_id="d1", text="Tea is made of leaves.", paragraph_data=ranked)
    write_graded("passages.jsonl.gz", [QueryPassages("q1", [passage])])
    items = [{"query_id": "q1", "question_id": f"q1/{one}", "question_text": f"{one}?"} for one in ("heat", "leaf")]
    Path("bank.jsonl.gz").write_text(json.dumps({"query_id": "q1", "query_text": "tea", "items": items}) + "\n")
    # The first model replies first.
    rules = [{"contains": "heat?", "reply": ["5", "0"]}, {"contains": "leaf?", "reply": ["2", "4"]}]
    Path("replies.jsonl").write_text("".join(json.dumps(rule) + "\n" for rule in rules), encoding="utf-8")
    with running(replies="replies.jsonl") as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        for line in LINES:
            assert main(shlex.split(line)) == 0, (line, capsys.readouterr().err)
        assert server.stats()["models"] == {"small": 2, "large": 1}
    assert [shlex.split(line)[0] for line in LINES] == ["grade", "grade", "combine", "leaderboard"]
    [passage] = load_graded("best.jsonl.gz")[0].passages
    found = {entry.llm: grade_of_items(entry) for entry in passage.exam_grades or ()}
    assert found == {
        "small": {"q1/heat": 5, "q1/leaf": 2}, "large": {"q1/leaf": 4}, "panel:prefer": {"q1/heat": 5, "q1/leaf": 4},
    }  # fmt: skip
