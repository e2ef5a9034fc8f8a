"""Experiments of RAGElo 0.7: its queries, documents, answers, and the games whose results stand beside it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import rubric_measures
from rubric_measures import Draws
from rubric_measures.cli import main
from rubric_measures.formats import FORMATS, detect_format
from rubric_measures.formats.queries import read_queries
from rubric_measures.types.entities import Preference
from tests.shared_data import shared_data


def saved() -> dict[str, Any]:
    """As the program saves it, shortened."""
    found = {"d1": {"x": 0.5, "y": 1.0}, "d2": {"x": 0.9}}
    documents = {
        name: {"qid": "q_1", "did": name, "text": f"Text of {name}.", "retrieved_by": by} for name, by in found.items()
    }
    answers = {name: {"qid": "q_1", "agent": name, "text": f"{name} says so."} for name in ("x", "y")}
    first = {"qid": "q_1", "query": "Who?", "metadata": {}, "retrieved_docs": documents, "answers": answers}
    queries = {"q_1": first, "q_2": {"qid": "q_2", "query": "When?"}}
    return {"queries": queries, "experiment_name": "mine", "elo_tournaments": []}


def result(winner: str | None, query: str = "q_1", **more: Any) -> dict[str, Any]:
    """A line of its results: a game; both orders were judged."""
    answer = None if winner is None else {"answer_format": "pairwise", "winner": winner, "comparison_reasoning": "…"}
    return {
        "qid": query, "evaluator_name": "pairwise", "exception": None if winner else "timeout", "answer": answer,
        "usage": None, "agent_a": "x", "agent_b": "y", "a_vs_b_result": None, "b_vs_a_result": None, "game_id": "x-y",
        **more,
    }  # fmt: skip


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("mine.json").write_text(json.dumps(saved(), indent=4))
    judged = {"qid": "q_1", "evaluator_name": "reasoner", "did": "d1", "answer": {"score": 2}, "usage": None}
    lines = [judged, result("A"), result("C", "q_2"), result("B"), result(None, "q_3")]
    Path("mine_results.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return tmp_path


def test_what_an_experiment_holds(files: Path) -> None:
    assert detect_format("mine.json") == "ragelo:experiment"
    assert main(["convert", "mine.json", "--to", "queries", "-o", "q.json"]) == 0
    assert read_queries("q.json") == {"q_1": "Who?", "q_2": "When?"}
    assert main(["convert", "mine.json", "--to", "ragelo:documents", "-o", "d.csv"]) == 0
    assert Path("d.csv").read_text() == "qid,did,document\nq_1,d1,Text of d1.\nq_1,d2,Text of d2.\n"
    assert main(["convert", "mine.json", "--to", "answers", "-o", "a.jsonl"]) == 0
    rows = [json.loads(line) for line in Path("a.jsonl").read_text().splitlines()]
    assert [(row["query_id"], row["run_id"], row["text"]) for row in rows] == [
        ("q_1", "x", "x says so."), ("q_1", "y", "y says so."),
    ]  # fmt: skip
    # Who retrieved a document ranks it by its score.
    assert main(["convert", "mine.json", "--to", "records", "-o", "r.jsonl"]) == 0
    [line] = map(json.loads, Path("r.jsonl").read_text().splitlines())
    ranked = {
        passage["paragraph_id"]: [(one["method"], one["rank"]) for one in passage["paragraph_data"]["rankings"]]
        for passage in line[1]
    }
    assert ranked == {"d1": [("x", 2), ("y", 1)], "d2": [("x", 1)]}


def test_games_stand_in_the_results(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert detect_format("mine_results.jsonl") == "ragelo:results"
    games = [
        Preference("q_1", "x", "y", "a", grader="pairwise"),
        Preference("q_2", "x", "y", "tie", grader="pairwise"),
        Preference("q_3", "x", "y", None, "failed", grader="pairwise", note="timeout"),
    ]
    assert main(["convert", "mine.json", "--to", "games", "-o", "g.jsonl"]) == 0
    # As in the program, the first result of a game counts.
    assert "1 of the results repeats an earlier one" in capsys.readouterr().err
    assert FORMATS["games"].read(Path("g.jsonl")) == games  # type: ignore[misc]
    for source in ("mine.json", "mine_results.jsonl", "g.jsonl"):
        found = rubric_measures.tournament(source, draws=Draws(10))
        assert [rating.agent for rating in found.ratings] == ["x", "y"] and found.games == 2
    Path("mine_results.jsonl").unlink()
    assert main(["tournament", "mine.json"]) == 2
    problem = "mine.json: the experiment holds no games; RAGElo keeps verdicts in the file NAME_results.jsonl"
    assert problem in capsys.readouterr().err


def test_the_shared_experiment(tmp_path: Path) -> None:
    path = shared_data("conformance") / "ragelo-0.7.experiment.json"
    rows = json.loads(path.read_text())["queries"]
    rubric_measures.convert(path, tmp_path / "q.json", to="queries")
    assert read_queries(tmp_path / "q.json") == {query_id: one["query"] for query_id, one in rows.items()}
    rubric_measures.convert(path, tmp_path / "a.csv", to="ragelo:answers")
    answers = FORMATS["ragelo:answers"].read(tmp_path / "a.csv")  # type: ignore[misc]
    assert len(answers) == sum(len(one["answers"]) for one in rows.values())
    rubric_measures.convert(path, tmp_path / "d.csv", to="ragelo:documents")
    records = FORMATS["ragelo:documents"].read(tmp_path / "d.csv")  # type: ignore[misc]
    assert [len(group.passages) for group in records] == [len(one["retrieved_docs"]) for one in rows.values()]
