"""RAGElo: its CSV files, read, written, read again; its experiments, and the games whose results stand beside them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import rubric_measures
from rubric_measures import Draws
from rubric_measures.base.errors import FormatError
from rubric_measures.cli import main
from rubric_measures.formats import FORMATS, detect_format
from rubric_measures.formats.leaderboards import read_leaderboard
from rubric_measures.formats.plain import (
    RAGELO_DOCUMENTS,
    RAGELO_GAMES,
    RAGELO_QUERIES,
)
from rubric_measures.formats.queries import read_queries
from rubric_measures.types.entities import Preference
from tests.example_records import write_text
from tests.shared_data import shared_data


def test_files_with_spaces_bom_and_windows_lines(tmp_path: Path) -> None:
    path = write_text(tmp_path / "q.csv", '\ufeffqid, query\r\n1, What is a leap year?\r\n2, "Why, then?"\r\n')
    assert RAGELO_QUERIES.read(path).texts == {"1": "What is a leap year?", "2": "Why, then?"}
    path = write_text(
        tmp_path / "g.csv", "qid,agent_a,agent_b,raw_answer,answer\n1, x, y, long [[A]], A\n1,y,x,none,\n"
    )
    assert RAGELO_GAMES.read(path) == [
        Preference("1", "x", "y", "a", answer="long [[A]]"),
        Preference("1", "y", "x", None, "unparsed", "none"),
    ]


@pytest.mark.parametrize("content", [b"a\rb\rc\n", b"\x8f\rqid\x00,\xff\r\n", b"x" * 200_000])
def test_a_first_line_that_is_no_csv_is_refused_in_one_line(
    content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "wrong"
    path.write_bytes(content)
    for command in (
        ["grade", "passages.jsonl", "--bank", str(path), "--model", "lexical", "-o", "out.jsonl"],
        ["qrels", str(path)],
    ):
        assert main(command) == 2
        assert capsys.readouterr().err.count("\n") == 1


FILES = {
    "queries": "qid,query\n1,What?\n",
    "documents": "qid,did,document\n1,d,Text\n",
    "answers": "qid,agent,answer\n1,x,Yes\n",
    "games": "qid,agent_a,agent_b,raw_answer,answer\n1,x,y,So [[A]],A\n1,y,x,So,\n",
}
OTHERS = {
    "queries": "queries",
    "documents": "records",
    "answers": "answers",
    "games": "games",
}


@pytest.mark.parametrize("kind", sorted(FILES))
def test_convert_reads_and_writes_each_file(kind: str, tmp_path: Path) -> None:
    path = write_text(tmp_path / "x.csv", FILES[kind])
    assert main(["convert", str(path), "-o", str(tmp_path / "same.csv")]) == 0
    assert (tmp_path / "same.csv").read_text() == FILES[kind]
    other = tmp_path / "other.jsonl"
    assert main(["convert", str(path), "--to", OTHERS[kind], "-o", str(other)]) == 0
    back = tmp_path / "back.csv"
    assert main(["convert", str(other), "--to", f"ragelo:{kind}", "-o", str(back)]) == 0
    assert back.read_text() == FILES[kind]


def test_its_older_tables_of_scores_are_leaderboards(tmp_path: Path) -> None:
    table = read_leaderboard(write_text(tmp_path / "x.csv", "agent,score\nx,1017.5\ny,982.5\n"))
    assert table.column("score") == {"x": 1017.5, "y": 982.5}


def test_games_of_several_files_are_joined_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_text(tmp_path / "x.csv", FILES["games"])
    assert main(["convert", str(path), str(path), "--to", "games", "-o", str(tmp_path / "g.jsonl")]) == 2
    assert "are in several files; keep one" in capsys.readouterr().err


def test_documents_that_two_agents_retrieved_are_kept_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "documents.csv"
    path.write_text("qid,did,document\n1,d1,One.\n1,d2,Two.\n1,d1,One.\n2,d1,One.\n")
    with caplog.at_level("INFO", logger="rubric_measures"):
        groups = RAGELO_DOCUMENTS.read(path)
    assert [(group.query_id, [one.doc_id for one in group.passages]) for group in groups] == [
        ("1", ["d1", "d2"]),
        ("2", ["d1"]),
    ]
    assert caplog.messages == [f"{path}: 1 of the documents repeats an earlier one; each is kept once"]
    path.write_text("qid,did,document\n1,d1,One.\n1,d1,Another.\n")
    with pytest.raises(FormatError, match=r"documents\.csv:3: 1 / d1 stands in line 2 already"):
        RAGELO_DOCUMENTS.read(path)


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


def test_what_an_experiment_holds(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
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
    # In a list nobody says whose an answer is.
    query = {"qid": "q_1", "query": "Who?", "answers": [{"text": "x says so."}]}
    Path("listed.json").write_text(json.dumps({**saved(), "queries": {"q_1": query}}))
    assert main(["convert", "listed.json", "--to", "answers", "-o", "a.jsonl"]) == 2
    assert "listed.json:1: queries.q_1.answers: expected an object" in capsys.readouterr().err
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
    assert "mine.json: the experiment holds no games" in capsys.readouterr().err


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
