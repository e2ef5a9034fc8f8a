"""Errors about the content of files name the file, or the option that takes it; numbers that overflow are refused."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from rubric_measures.cli import main
from tests.example_records import BANK, RECORDS, RUNS, board_file, write_lines

PROMPT = """target = "question"
task = "grade"
parser = "rating"
scale = [0, 5]
covers = 4
text = "Question: {question} Passage: {context}"
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_lines(tmp_path / "graded.jsonl.gz", RECORDS)
    write_lines(tmp_path / "bank.jsonl", BANK)
    for name, text in RUNS.items():
        (tmp_path / f"{name}.run").write_text(text)
    (tmp_path / "qrels.txt").write_text("q1 0 d1 1\nq1 0 d2 0\nq2 0 d1 1\n")
    (tmp_path / "prompt.toml").write_text(PROMPT)
    (tmp_path / "replies.jsonl").write_text('{"reply": "nothing to read"}\n')
    (tmp_path / "queries.tsv").write_text("q1\tWhat?\nq2\t \n")
    (tmp_path / "nuggets.jsonl").write_text('{"qid": "q1", "nuggets": [{"text": "Ada", "importance": "vital"}]}\n')
    return tmp_path


def last_line(capsys: pytest.CaptureFixture[str], command: str) -> str:
    """The error of a command that ends with 2 and prints nothing."""
    assert main(command.split()) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    return printed.err.splitlines()[-1].removeprefix("rubric_measures: ")


@pytest.mark.parametrize(
    ("command", "named"),
    [
        ("generate queries.tsv --model scripted:replies.jsonl -o b", "queries.tsv: query 'q2' has no text"),
        ("grade graded.jsonl.gz --bank nuggets.jsonl --model scripted:replies.jsonl --prompt prompt.toml -o g",
         "graded.jsonl.gz:2: unknown query 'q2'"),
        ("grade graded.jsonl.gz --bank graded.jsonl.gz --model lexical -o g", "graded.jsonl.gz: is no test bank"),
        ("grade graded.jsonl.gz --model scripted:replies.jsonl --prompt Thomas --query-texts queries.tsv -o g",
         "has no text (--bank, --query-texts)"),
        ("pool alpha.run -c docs.jsonl --query-file other.tsv -o p", "anything for the queries (--query-file)"),
        ("qrels graded.jsonl.gz --per item --bank one.jsonl -o q", "graded.jsonl.gz:2: unknown query 'q2'"),
        ("leaderboard labels.jsonl alpha.run -m RubricCover(rel=4)@5", "nDCG@10 (--measures)"),
        ("check board.json labels.jsonl alpha.run", "labels.jsonl: "),
        ("leaderboard labels.jsonl alpha.run -m RubricCover(rel=4)@5", "labels.jsonl: RubricCover"),
        ("leaderboard labels.jsonl none.run -m nDCG@10", "none.run: cannot be read"),
        ("evaluate qrels.txt none.run nDCG@10", "none.run: cannot be read"),
        ("convert qrels.txt --bank bank.jsonl -o new.qrels", "bank would have no effect here; leave it out (--bank)"),
        ("convert table.csv --to qrels -o q", "`qrels` writes grades as qrels (--to)"),
        ("pool uncited.jsonl uncited.jsonl -o p.jsonl", "twice; keep one answer"),
        ("pool alpha.run -c docs.jsonl -o p.csv", "p.csv: is written as JSON lines; name a .jsonl.gz"),
        ("correlate scores.txt qrels.txt", "qrels.txt: holds qrels or a run, and no scores of runs"),
        ("check none.json graded.jsonl.gz alpha.run", "none.json: measures[0]: expected a text; found None"),
        ("leaderboard argue.jsonl --bank weights.jsonl", "weights.jsonl"),
        ("leaderboard argue.jsonl --bank other.jsonl", "argue.jsonl: unknown query 'q1'"),
        ("qrels support.txt --bank bank.jsonl --per item", "support.txt: holds no grades of items in the bank"),
        ("tournament --answers answers.tsv answers.tsv --query-file queries.json --model scripted:replies.jsonl"
         " --save s",
         "answers.tsv: agent 'x' has two answers to query 'q1'"),
        ("combine graded.jsonl.gz --grader a --grader b --bank one.jsonl -o new.jsonl",
         "graded.jsonl.gz:2: unknown query 'q2'"),
        ("correlate scores.txt table.csv --bank other.jsonl", "table.csv: unknown query 'q1'"),
        ("agreement qrels.txt support.txt --cutoff 1 4", "support.txt: no grade of the scale 0 to 2 is 4 or more"),
        ("agreement labels.jsonl --tables 1", "labels.jsonl: no passage has both a judgment and a grade"),
        ("grade --support uncited.jsonl --collection docs.jsonl --model lexical -o g", "uncited.jsonl: paragraph_id: "),
        ("tournament games.jsonl", "games.jsonl: no game has a verdict (1 game without)"),
        ("tournament --answers answers.tsv --query-file queries.json --model scripted:replies.jsonl --save s",
         "scripted:replies.jsonl: no game has a verdict (2 games without)"),
    ],
)  # fmt: skip
def test_what_is_wrong_between_files_names_one_of_them(
    folder: Path, command: str, named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "other.tsv").write_text("q9\tWho?\n")
    (folder / "queries.json").write_text('{"q1": "What?"}')
    (folder / "docs.jsonl").write_text("".join(f'{{"doc_id": "d{n}", "text": "t"}}\n' for n in range(10)))
    bank = {
        "query_id": "q1",
        "nugget_bank": {"Who?": {"question": "Who?", "importance": "vital"}, "Why?": {"question": "Why?"}},
    }
    (folder / "weights.jsonl").write_text(json.dumps({**bank, "format_version": "v3"}) + "\n")
    sentence = {"text": "So.", "sentenceId": 0, "citations": [{"citationId": 0, "reference": "d1", "support": "2"}]}
    support = {"topic_id": "q1", "run_id": "a", "sentences": [sentence]}
    (folder / "support.txt").write_text(json.dumps(support) + "\n")
    (folder / "other.jsonl").write_text('{"qid": "q9", "nuggets": [{"text": "Ada", "importance": "vital"}]}')
    report = {"metadata": {"team_id": "t", "run_id": "a", "topic_id": "q1"}, "responses": [], "references": []}
    (folder / "argue.jsonl").write_text(json.dumps({"report": report, "judgments": []}) + "\n")
    cited = {"text": "So.", "citations": [""]}
    uncited = {"metadata": {"team_id": "t", "run_id": "a", "topic_id": "q1"}, "responses": [cited]}
    (folder / "uncited.jsonl").write_text(json.dumps({**uncited, "references": [""]}) + "\n")
    (folder / "scores.txt").write_text("a\t0.5\nb\t0.25\n")
    (folder / "table.csv").write_text("query_id,doc_id,item_id,grade\nq1,d1,a,4\n")
    (folder / "one.jsonl").write_text(json.dumps(BANK[0]) + "\n")
    (folder / "games.jsonl").write_text('{"query_id": "q", "agent_a": "A", "agent_b": "B", "verdict": null}\n')
    (folder / "answers.tsv").write_text("query_id\trun_id\ttext\nq1\tx\tYes.\nq1\ty\tNo.\n")
    grade = {
        "correctAnswered": True,
        "answer": "2",
        "self_rating": 2,
        "llm": "m",
        "llm_options": {},
        "prompt_info": {"prompt_class": "T"},
    }
    passage = {"paragraph_id": "d1", "text": "t", "paragraph_data": {}, "exam_grades": [], "grades": [grade]}
    (folder / "labels.jsonl").write_text(json.dumps(["q1", [passage]]) + "\n")
    inputs = {"grades": {}, "runs": {}}
    for name, measure in (("board", "RubricCover(rel=4)@5"), ("none", None)):
        (folder / f"{name}.json").write_text(board_file({}, inputs=inputs, measures=[measure]))
    assert named in last_line(capsys, command)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize(
    "command",
    [
        "leaderboard graded.jsonl.gz alpha.run -m AP --output /dev/full",
        "qrels graded.jsonl.gz -o /dev/full",
        "convert graded.jsonl.gz -o /dev/full",
        "grade graded.jsonl.gz --bank bank.jsonl --model lexical -o /dev/full --cache replies.sqlite",
    ],
)
def test_a_full_disk_is_named(folder: Path, command: str, capsys: pytest.CaptureFixture[str]) -> None:
    said = last_line(capsys, command)
    assert said == "/dev/full: reading or writing failed (No space left on device); make room, or name another output"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@pytest.mark.parametrize(
    "command",
    [
        "review graded.jsonl.gz --bank pipe --export out",
        "generate --target queries --passages pipe --examples bank.jsonl --model scripted:replies.jsonl -o b",
        "grade graded.jsonl.gz --bank bank.jsonl --model scripted:replies.jsonl --prompt pipe.toml -o g",
    ],
)
def test_pipes_that_would_be_read_twice_are_not_waited_for(
    folder: Path, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    # Nobody writes into them: who opened one would wait for ever.
    for name in ("pipe", "pipe.toml"):
        os.mkfifo(folder / name)
    assert "is no regular file, so it cannot be read twice" in last_line(capsys, command)


@pytest.mark.parametrize("values", [("1e308", "0.5"), ("1e308", "-1e308"), ("0.5", "1e101")])
@pytest.mark.parametrize("command", ["compare board.txt", "correlate board.txt board.txt"])
def test_scores_whose_squares_overflow_are_refused(
    folder: Path, command: str, values: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    cells = [("a", "q1", values[0]), ("a", "q2", values[1]), ("b", "q1", "0.25"), ("b", "q2", "0.5")]
    lines = "".join(f"{run} {query} nDCG@10 {value}\n" for run, query, value in cells)
    (folder / "board.txt").write_text(f"run topic measure value\n{lines}")
    said = last_line(capsys, command)
    assert said.startswith("board.txt:") and "expected a number, at most 1e+100; found" in said


def test_damaged_boards_and_topics_name_themselves(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Found by the fuzzer: a measure or setting that no board has, a topic without text."""
    inputs = {"grades": {}, "runs": {}}
    for name, measures, settings in (("m", ["suport"], {}), ("f", ["RubricCover(rel=4)@5"], {"on_failed": ""})):
        board = board_file({}, settings=settings, inputs=inputs, measures=measures)
        (folder / f"{name}.json").write_text(board)
        assert f"{name}.json: " in last_line(capsys, f"check {name}.json graded.jsonl.gz alpha.run")
    (folder / "empty.tsv").write_text("q1\t\n")
    (folder / "reports.jsonl").write_text('{"metadata": {"run_id": "a", "topic_id": "q1"}, "responses": []}\n')
    said = last_line(capsys, "check reports.jsonl --track rag25 --topics empty.tsv")
    assert "empty.tsv: " in said and "no text" in said
    (folder / "topics.jsonl").write_text('{"topic_id": "q1", "title": "t", "limit": "long"}\n')
    assert "topics.jsonl:1: limit: expected a whole number" in last_line(
        capsys, "check reports.jsonl --track ragtime --topics topics.jsonl"
    )
    # A C string ends there: the evaluator of trec_eval would take two queries for one, and abort.
    (folder / "qrels.txt").write_text("q1 0 d1 1\nq1\0 0 d1 1\n")
    assert last_line(capsys, "evaluate qrels.txt alpha.run P@1").startswith("qrels.txt:2: holds a NUL")
    (folder / "docs.jsonl").write_text('{"doc_id": "a", "text": ' + "[" * 5000 + "}\n")
    assert "docs.jsonl:1: " in last_line(capsys, "pool alpha.run --collection docs.jsonl -o p")
    (folder / "items.qrels").write_text("q1 a d1 1\nq1 scale=" + "0-5:" * 400 + " * 0\n")
    said = last_line(capsys, "qrels items.qrels")
    assert said.startswith("items.qrels: ") and "is no scale" in said and len(said) < 600


@pytest.mark.parametrize("name", ["qrels.txt", "alpha.run"])
def test_files_with_line_ends_of_old_macs_are_told(folder: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / name).write_bytes((folder / name).read_bytes().replace(b"\n", b"\r"))
    said = last_line(capsys, "evaluate qrels.txt alpha.run nDCG@10")
    assert said.startswith(f"{name}:1: has ") and said.endswith("(ids cannot hold spaces, and lines end in line feeds)")
