"""Tables in memory and in files, with several judges, through every function and command that takes grades."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import rubric_measures
from rubric_measures import Draws
from rubric_measures.api.files import write_qrels
from rubric_measures.base.errors import RubricMeasuresError
from rubric_measures.boards.single import evaluate
from rubric_measures.cli import main

# Ada's labels, and those of a judge that is off by one on d2.
ROWS = [
    {"query_id": query, "doc_id": doc, "judge": judge, "grade": grade + (judge == "gpt" and doc == "d2")}
    for judge in ("ada", "gpt")
    for query in ("q1", "q2", "q3")
    for doc, grade in (("d1", 2), ("d2", 0), ("d3", 1), ("d4", 0))
]
ALONE = [{name: cell for name, cell in row.items() if name != "judge"} for row in ROWS if row["judge"] == "ada"]
BOARD = [{"run": run, "score": score} for run, score in (("a", 0.9), ("b", 0.5), ("c", 0.1))]
RANKED = [
    {**row, "run": run, "rank": rank}
    for run, order in (
        ("a", ("d1", "d3", "d2", "d4")),
        ("b", ("d3", "d1", "d4", "d2")),
        ("c", ("d2", "d4", "d3", "d1")),
    )
    for row in ROWS
    for rank, doc in enumerate(order, 1)
    if doc == row["doc_id"]
]


def as_frame(rows: list[dict[str, Any]]) -> Any:
    return pytest.importorskip("pandas").DataFrame(rows)


def as_columns(rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
    return {name: [row[name] for row in rows] for name in rows[0]}


def as_rows(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return rows


FORMS = [as_frame, as_columns, as_rows]


def write(name: str, rows: list[dict[str, Any]], delimiter: str = ",") -> str:
    with Path(name).open("w", encoding="utf-8", newline="") as stream:
        if name.endswith(".run"):
            stream.writelines(f"{row['qid']} Q0 {row['docno']} {9 - row['score']} {row['score']} b\n" for row in rows)
            return name
        writer = csv.DictWriter(stream, list(rows[0]), delimiter=delimiter, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return name


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, rows in (("two.csv", ROWS), ("one.csv", ALONE), ("board.csv", BOARD), ("ranked.csv", RANKED)):
        write(name, rows)
    write("gpt.csv", [row for row in ROWS if row["judge"] == "gpt"])
    write("bank.csv", [{"query_id": "q1", "text": "What is tea?"}])
    write("docs.csv", [{"doc_id": f"d{number}", "text": f"Text {number}."} for number in range(1, 5)])
    lines = [f"q{query} Q0 d{doc} {doc} {9 - doc} a\n" for query in (1, 2, 3) for doc in (1, 2, 3, 4)]
    Path("a.run").write_text("".join(lines), encoding="utf-8")


GAMES = [
    {"query_id": query, "agent_a": one, "agent_b": other, "verdict": verdict}
    for query in ("q1", "q2", "q3")
    for one, other, verdict in (("a", "b", "a"), ("b", "c", "b"), ("a", "c", "tie"))
]
TABLES: dict[str, list[dict[str, Any]]] = {
    "one.csv": ALONE,
    "gpt.csv": [row for row in ROWS if row["judge"] == "gpt"],
    "two.csv": ROWS,
    "board.csv": BOARD,
    "b.run": [{"qid": query, "docno": f"d{doc}", "score": 9 - doc} for query in ("q1", "q2") for doc in (1, 2, 3)],
    "bank.csv": [{"query_id": "q1", "text": "What is tea?"}, {"query_id": "q2", "text": "Is it blue?"}],
    "docs.csv": [{"doc_id": f"d{number}", "text": f"Text {number}."} for number in range(1, 5)],
    "queries.csv": [{"query_id": query, "text": f"Tea {query}?"} for query in ("q1", "q2", "q3")],
    "asked.csv": [{"question": "What is tea?", "answer": "A leaf.", "reference": "A leaf in water."}],
    "answers.csv": [{"query_id": query, "run_id": run, "text": f"{run} {query}"}
                    for query in ("q1", "q2") for run in "ab"],
    "games.csv": GAMES,
    "each.csv": [{"run": row["run"], "query": f"q{query}", "measure": "P", "value": row["score"] / query}
                 for row in BOARD for query in (1, 2, 3)],
}  # fmt: skip


def as_tuple(rows: list[dict[str, Any]]) -> Any:
    return tuple(rows)


def as_filtered(rows: list[dict[str, Any]]) -> Any:
    """Columns of a frame that has lost its first row."""
    frame = as_frame([rows[-1], *rows]).iloc[1:]
    return {name: frame[name] for name in frame}


def as_indexed(rows: list[dict[str, Any]]) -> Any:
    return as_frame(rows).set_index([*rows[0]][:1])


def as_grouped(rows: list[dict[str, Any]]) -> Any:
    """What `groupby(…).apply(…)` gives: a column is a level, too, and numbers are one without a name."""
    frame = as_frame(rows)
    return frame.set_index([frame[next(iter(frame))], frame.index])


def texts_of(records: Any) -> list[Any]:
    return [(group.query_id, one.text, one.judged(group.query_id)) for group in records for one in group.passages]


def digests(grades: Any) -> dict[str, str]:
    return {name: query.digest for name, query in grades.queries.items()}


def planned(**given: Any) -> str:
    Path("model.jsonl").write_text('{"reply": "1. What is tea?"}\n', encoding="utf-8")
    return str(rubric_measures.generate(model="scripted:model.jsonl", dry_run=True, **given).plan)


ON_GPT = {"grader": "model=gpt,scale=0-2:1", "against": "ada"}
ON_A: dict[str, Any] = {"grader": "scale=0-2:1", "draws": Draws(50)}
TAKE: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "load": ("one.csv", lambda one: digests(rubric_measures.load(one))),
    "load_bank": ("bank.csv", lambda one: list(rubric_measures.load_bank(one))),
    "load grader": ("two.csv", lambda one: digests(rubric_measures.load(one, grader="gpt"))),
    "score": ("one.csv", lambda one: rubric_measures.score(one, "a.run").values),
    "evaluate": ("one.csv", lambda one: evaluate(one, "a.run", "nDCG@10 RR").means),
    "evaluate run": ("b.run", lambda one: evaluate("one.csv", one, "nDCG@10 RR").means),
    "score runs": ("b.run", lambda one: [*rubric_measures.score("one.csv", one).values.values()]),
    "pool": ("b.run", lambda one: texts_of(rubric_measures.pool(one, "docs.csv"))),
    "pool answers": ("answers.csv", lambda one: texts_of(rubric_measures.pool(one))),
    "pool collection": ("docs.csv", lambda one: texts_of(rubric_measures.pool("a.run", one))),
    "pool queries": ("queries.csv", lambda one: texts_of(rubric_measures.pool("a.run", "docs.csv", queries=one))),
    "pool judgments": ("one.csv", lambda one: texts_of(rubric_measures.pool("a.run", "docs.csv", judgments=one))),
    "grade": ("bank.csv", lambda one: texts_of(
        rubric_measures.grade(rubric_measures.pool("b.run", "docs.csv"), one, model="lexical"))),
    "generate": ("queries.csv", lambda one: planned(queries=one)),
    "generate passages": ("docs.csv", lambda one: planned(passages=one, examples=["Why?"], target="queries")),
    "generate examples": ("queries.csv", lambda one: planned(passages="docs.csv", examples=one, target="queries")),
    "evaluate_answers": ("asked.csv", lambda one: [
        *rubric_measures.evaluate_answers(one, model="lexical").board.values.values()]),
    "agreement": ("one.csv", lambda one: rubric_measures.agreement(one, "gpt.csv", draws=Draws(0)).rows[0].statistics),
    "correlate": ("board.csv", lambda one: rubric_measures.correlate(one, "board.csv", draws=Draws(0)).found[0].runs),
    "compare": ("each.csv", lambda one: str(rubric_measures.compare(one))),
    "calibrate": ("gpt.csv", lambda one: rubric_measures.calibrate(one, anchors="one.csv", **ON_A).bias),
    "calibrate a judge": ("two.csv", lambda one: rubric_measures.calibrate(one, **{**ON_A, **ON_GPT}).bias),
    "calibrate anchors": ("one.csv", lambda one: rubric_measures.calibrate("gpt.csv", anchors=one, **ON_A).bias),
    "combine": ("two.csv", lambda one: str(list(rubric_measures.combine(one, ["ada", "gpt"])))),
    "tournament": ("games.csv", lambda one: str(rubric_measures.tournament(one, draws=Draws(50)))),
    "convert": ("one.csv", lambda one: rubric_measures.convert(one, "out.csv", to="csv").read_text()),
}  # fmt: skip


@pytest.mark.parametrize("name", TAKE)
def test_what_takes_a_file_takes_what_it_holds(name: str) -> None:
    """Every function of a file, and every kind of what holds a table."""
    for path, rows in TABLES.items():
        write(path, rows)
    path, call = TAKE[name]
    expected = call(path)
    kinds = [Path(path), *(form(TABLES[path]) for form in (*FORMS, as_tuple, as_filtered, as_indexed, as_grouped))]
    if path in ("one.csv", "gpt.csv"):
        kinds.append(rubric_measures.load(TABLES[path]))
    with open(path, "rb") as binary, open(path, encoding="utf-8") as text:
        for kind in (*kinds, binary, text):
            assert call(kind) == expected, kind


def test_a_column_with_gaps_keeps_its_whole_numbers() -> None:
    frame = as_frame([*ALONE, {"query_id": "q1", "doc_id": "d9", "grade": None}])
    write_qrels(frame, "gaps.qrels")
    assert Path("gaps.qrels").read_text(encoding="utf-8").startswith("q1 0 d1 2\n")


@pytest.mark.parametrize("form", FORMS)
def test_what_a_table_does_not_hold_is_one_line(form: Callable[[Any], Any]) -> None:
    board, two = form(BOARD), form(ROWS)
    calls: list[Callable[[], object]] = [
        lambda: rubric_measures.load(board).queries,
        lambda: rubric_measures.load_bank(board),
        lambda: write_qrels(two, "out.qrels"),
        lambda: rubric_measures.pool(["a.run"], "docs.csv", judgments=two),
        lambda: rubric_measures.calibrate(two, draws=Draws(0)),
        lambda: rubric_measures.calibrate(board),
        lambda: rubric_measures.calibrate(form(ALONE)),
        lambda: rubric_measures.correlate("board.csv", form(ALONE), draws=Draws(0)),
        lambda: rubric_measures.correlate("board.csv", form(RANKED), draws=Draws(0)),
        lambda: rubric_measures.agreement(form(ALONE)),
        lambda: rubric_measures.compare(board),
        lambda: rubric_measures.power(board),
        lambda: rubric_measures.tournament(board),
        lambda: rubric_measures.generate(board, model="lexical"),
        lambda: rubric_measures.combine(board, ["a", "b"]),
    ]
    for call in calls:
        with pytest.raises(RubricMeasuresError) as caught:
            call()
        assert "\n" not in str(caught.value) and "rubric_measures-" not in str(caught.value)


@pytest.mark.parametrize(
    "command",
    [
        ["leaderboard", "two.csv", "a.run", "-m", "nDCG@10"],
        ["evaluate", "two.csv", "a.run", "nDCG@10"],
        ["qrels", "two.csv"],
        ["qrels", "two.csv", "-o", "out.qrels"],
        ["correlate", "board.csv", "ranked.csv", "--rounds", "0"],
        ["agreement", "one.csv", "two.csv", "--rounds", "0"],
        ["pool", "a.run", "-c", "docs.csv", "--judgments", "two.csv", "-o", "pooled.jsonl.gz"],
    ],
)
def test_of_several_judges_one_is_chosen(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(command) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "ada" in said and "gpt" in said and "--grader" in said
    assert main([*command, "--grader", "gpt"]) == 0


def test_the_graders_of_a_table_are_compared(capsys: pytest.CaptureFixture[str]) -> None:
    # The grader that is named is the truth: Ada is lower by .25.
    assert main(["agreement", "two.csv", "--rounds", "0", "--format", "tsv"]) == 0
    assert "\ntwo.csv ada \\ two.csv gpt\t" in (first := capsys.readouterr().out) and "bias\t0.2500" in first
    assert main(["agreement", "two.csv", "--rounds", "0", "--format", "tsv", "--grader", "gpt"]) == 0
    assert "\ntwo.csv gpt \\ two.csv ada\t" in (other := capsys.readouterr().out) and "bias\t-0.2500" in other
    assert main(["agreement", "one.csv"]) == 2
    assert "agreement needs two graders or more" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "command", "message"),
    [
        ("doc,grade\nd1,2\n", ["leaderboard", "x.csv", "a.run"], "x.csv:1: query_id: lacks query_id or qid"),
        ("doc,grade\nd1,2\n", ["qrels", "x.csv"], "it has doc, grade (call doc doc_id, if that is meant)"),
        ("query_id;document_id;grade\nq1;d1;2\n", ["qrels", "x.csv"], "(call document_id doc_id, if that is meant)"),
        ("query_id,doc_id,grade\nq1,d1,True\n", ["qrels", "x.csv"], "1 for True, 0 for False; found 'True'"),
        ("query_identifier,text\nq1,What?\n", ["convert", "x.csv", "--to", "bank", "-o", "y.jsonl"],
         "x.csv:1: query_id: lacks query_id or qid or question_id or topic_id or request_id or narrative_id; it has "
         "query_identifier, text (call query_identifier query_id, if that is meant)"),
        ("run;score\na;0,9\nb;0,5\n", ["correlate", "board.csv", "x.csv"],
         "x.csv: holds no number; expected a leaderboard"),
        ("run\tscore\na\t0,9\nb\t0,5\n", ["correlate", "board.csv", "x.csv"],
         "expected a leaderboard, with decimal points"),
        ("a 0,9\nb 0,5\n", ["correlate", "board.csv", "x.csv"], "x.csv:1: is none of ir_measures (run topic"),
        ("a;0,9\nb;0,5\n", ["correlate", "board.csv", "x.csv"], "x.csv:1: is none of ir_measures (run topic"),
    ],
)  # fmt: skip
def test_a_wrong_column_is_named(
    content: str, command: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("x.csv").write_text(content, encoding="utf-8")
    assert main(command) == 2
    said = capsys.readouterr().err
    assert message in said and said.count("\n") == 1


@pytest.mark.parametrize(
    "command",
    [
        ["leaderboard", "x.xlsx", "a.run"],
        ["correlate", "board.csv", "x.xlsx"],
        ["verify", "all", "x.xlsx"],
        ["pool", "a.run", "-c", "x.xlsx", "-o", "pooled.jsonl"],
        ["review", "x.xlsx", "--bank", "bank.csv"],
        ["grade", "x.xlsx", "--query-texts", "bank.csv", "--model", "lexical", "--dry-run", "--prompt", "umbrela3"],
        ["check", "x.xlsx", "--track", "rag24"],
    ],
)
def test_a_spreadsheet_is_saved_as_csv(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    Path("x.xlsx").write_bytes(b"PK\x03\x04" + bytes(range(256)))
    assert main(command) != 0
    captured = capsys.readouterr()
    assert "save it as CSV" in captured.err + captured.out


def test_a_table_with_a_column_a_judge_is_told_what_it_lacks(capsys: pytest.CaptureFixture[str]) -> None:
    Path("gaps.csv").write_text("query_id,doc_id,gpt,ada\nq1,d1,2,\nq1,d2,0,1\n", encoding="utf-8")
    assert main(["agreement", "gaps.csv", "gaps.csv"]) == 2
    said = capsys.readouterr().err
    assert "lacks grade or label" in said and "gpt, ada" in said


def test_labels_say_nothing_of_grades(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", "one.csv", "a.run", "nDCG@10"]) == 0
    # DCG 2 + 1 / log2(4) of 2 + 1 / log2(3)
    assert capsys.readouterr() == ("nDCG@10\t0.9502\n", "")


def test_an_infinite_grade_of_a_table_is_refused_and_none_that_failed(tmp_path: Path) -> None:
    rows = [{"query_id": "q1", "doc_id": "d1", "grade": 2.0}, {"query_id": "q1", "doc_id": "d2", "grade": float("inf")}]
    with pytest.raises(RubricMeasuresError, match=r"expected a number, at most 1e\+100; found 'inf'"):
        rubric_measures.convert(rows, tmp_path / "grades.csv")
