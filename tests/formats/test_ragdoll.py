"""RAGDoll: rubrics and answers graded by them, battles, support judgments; scored in our way and in its own."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path
from typing import Any

import pytest

import rubric_measures
from rubric_measures import Draws
from rubric_measures.base.errors import InputError
from rubric_measures.cli import main
from rubric_measures.formats import detect_format
from rubric_measures.formats.banks import load_bank
from rubric_measures.formats.leaderboards import read_leaderboard
from rubric_measures.formats.plain import BATTLES, GAMES, RAGELO_GAMES
from rubric_measures.formats.support import read_support_labels
from rubric_measures.measures.grades import all_rows
from tests.example_records import write_lines as write
from tests.shared_data import shared_data

# (text, type, tier, weight, source nugget)
CRITERIA = [
    ("Names the cause", "explicit", "mandatory", 5, "n0"),
    ("Weighs both sides", "synthesis", "optional", 2, None),
    ("Cites a source", "references", "optional", 2, None),
    ("Adds advertisements", "communication", "optional", -1, None),
]
FULL, PART, NOT, FAILED = "satisfied", "partially_satisfied", "not_satisfied", "failed"


def criteria(verdicts: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    names = ("text", "type", "tier", "weight", "source_nugget")
    made = [dict(zip(names, one, strict=True)) for one in CRITERIA]
    return [{**one, "verdict": verdict} for one, verdict in zip(made, verdicts, strict=True)] if verdicts else made


def graded(run_id: str, qid: str, *verdicts: str, **changes: Any) -> dict[str, Any]:
    return {
        "task_id": f"{run_id}:{qid}", "status": "completed", "qid": qid, "run_id": run_id, "query": f"What is {qid}?",
        "answer_text": f"{run_id} answers {qid}.", "response_length": 3.0,
        "criteria": criteria(verdicts) if verdicts else [], **changes,
    }  # fmt: skip


@pytest.fixture
def rubric(tmp_path: Path) -> Path:
    lines = [
        {"task_id": qid, "status": "completed", "qid": qid, "query": f"What is {qid}?", "criteria": criteria()}
        for qid in ("q1", "q2")
    ]
    return write(tmp_path / "rubric.jsonl", lines)


@pytest.fixture
def answers(tmp_path: Path) -> Path:
    lines = [
        graded("x", "q1", PART, FULL, NOT, FULL), graded("x", "q2", FULL, FULL, FULL, NOT),
        graded("y", "q1", FULL, NOT, FAILED, NOT), graded("y", "q2"),
    ]  # fmt: skip
    return write(tmp_path / "graded.jsonl", lines)


def scores(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[dict[str, tuple[str, ...]], str]:
    measures = ["-m", "WeightedCover", "WeightedCover(strict=True)", "--no-overall", "--format", "json"]
    assert main(["leaderboard", *map(str, arguments), *measures]) in (0, 1)
    captured = capsys.readouterr()
    runs = json.loads(captured.out)["runs"]
    return {
        run["run_id"]: tuple(f"{cell['mean']:.6f}" for cell in run["measures"].values()) for run in runs
    }, captured.err


def test_ours_tells_what_failed_from_what_is_not_satisfied(answers: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # Weights 5 + 2 + 2 = 9. x: q1 (2.5 + 2 − 1) / 9 = 3.5/9, strict (2 − 1) / 9; q2 9/9. Means 12.5/18 and 10/18.
    found, _ = scores(capsys, answers, "--on-failed", "expected")
    assert found["x"] == ("0.694444", "0.555556")
    # y: nobody judged q2, and one criterion of q1; the other weights are 5 + 2, of which 5 are met.
    assert found["y"] == ("0.714286", "0.714286")
    # Without a word about failures they are too many for a number.
    assert main(["leaderboard", str(answers)]) == 2
    assert "of the grades that WeightedCover" in capsys.readouterr().err
    # A query of which no task was completed has no value, and is not in the mean.
    lines = [graded("x", "q1", PART, FULL, NOT, FULL), graded("x", "q2", FULL, FULL, FULL, NOT, status="failed")]
    write(answers, lines)
    assert scores(capsys, answers, "--on-failed", "expected")[0] == {"x": ("0.388889", "0.111111")}


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["-m", "NuggetA"], "RAGDoll knows WeightedCover, WeightedCover(strict=True), not NuggetA"),
        (["--bank", "rubric.jsonl"], "ragdoll takes neither a bank nor lengths"),
        (["--on-failed", "zero"], "the other program counts failures in its own way"),
        (["--grader", "x"], "grader"),
    ],
)
def test_what_its_rule_does_not_know(
    more: list[str], message: str, answers: Path, rubric: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(rubric.parent)
    assert main(["leaderboard", str(answers), "--compat", "ragdoll", *more]) == 2
    assert message in capsys.readouterr().err.splitlines()[-1]


def test_a_rubric_is_a_bank(rubric: Path, tmp_path: Path) -> None:
    assert detect_format(rubric) == "ragdoll:rubric"
    bank = rubric_measures.load_bank(rubric)
    assert [(item.weight, item.facet_id) for item in bank.for_query("q1")] == [
        (5, "explicit"), (2, "synthesis"), (2, "references"), (-1, "communication"),
    ]  # fmt: skip
    assert bank.query_texts == {"q1": "What is q1?", "q2": "What is q2?"}
    for to, name in (("bank", "b.jsonl"), ("rubrics", "r.jsonl"), ("ragdoll:rubric", "again.jsonl")):
        assert main(["convert", str(rubric), "--to", to, "-o", str(tmp_path / name)]) == 0
    assert (tmp_path / "again.jsonl").read_text() == rubric.read_text()
    with pytest.raises(InputError, match="cannot hold the bank: status: lacks status"):
        rubric_measures.convert(tmp_path / "b.jsonl", tmp_path / "no.jsonl", to="ragdoll:rubric")
    assert load_bank(tmp_path / "b.jsonl") == bank
    assert json.loads((tmp_path / "r.jsonl").read_text().splitlines()[0])["rubrics"][0] == {
        "criterion": "Names the cause", "weight": 5.0, "axis": "explicit", "tier": "mandatory", "source_nugget": "n0",
    }  # fmt: skip


def test_graded_answers_are_records(
    answers: Path, rubric: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert detect_format(answers) == "ragdoll:graded"
    records = tmp_path / "records.jsonl.gz"
    assert main(["convert", str(answers), "--to", "records", "-o", str(records)]) == 0
    # What is scored of records is what is scored of the file.
    of_records, _ = scores(capsys, records, "--bank", rubric, "--on-failed", "expected")
    assert of_records == scores(capsys, answers, "--bank", rubric, "--on-failed", "expected")[0]


def test_a_model_gives_verdicts_ten_criteria_a_call(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    many = [{**criteria()[1], "text": f"Says {number}"} for number in range(12)]
    line = {"task_id": "q1", "status": "completed", "qid": "q1", "query": "What?", "criteria": many}
    rubric = write(tmp_path / "rubric.jsonl", [line])
    write(tmp_path / "a.jsonl", [{"query_id": "q1", "run_id": "x", "text": "One and two."}])
    ten = json.dumps([FULL, PART, *[NOT] * 8])
    replies = [{"contains": "against 10 criteria", "reply": ten}, {"reply": "[Satisfied, maybe]"}]
    write(tmp_path / "r.jsonl", replies)
    passages, out = (str(tmp_path / name) for name in ("p.jsonl.gz", "g.jsonl.gz"))
    assert main(["pool", str(tmp_path / "a.jsonl"), "-o", passages]) == 0
    model = f"scripted:{tmp_path / 'r.jsonl'}"
    command = ["grade", passages, "--bank", str(rubric), "--prompt", "criteria.verdicts", "--model", model]
    assert main([*command, "--retries", "0", "-o", out]) == 1
    assert "2 calls" in capsys.readouterr().err
    # A verdict that is none makes no grade of its list.
    grades = {
        row.iteration: row.relevance for query in rubric_measures.load(out).queries.values() for row in all_rows(query)
    }
    assert [grades[item.item_id] for item in rubric_measures.load_bank(rubric)] == [2, 1, *[0] * 8, None, None]


def test_a_criterion_of_two_weights_needs_a_bank(
    answers: Path, rubric: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answers.write_text(answers.read_text().replace('"weight": 5', '"weight": 4', 1))
    assert main(["leaderboard", str(answers), "--on-failed", "expected"]) == 2
    assert (
        "has two weights or importances in two answers; keep one, or name the bank that counts (--bank)"
        in capsys.readouterr().err
    )
    assert scores(capsys, answers, "--on-failed", "expected", "--bank", rubric)[0]["x"] == ("0.694444", "0.555556")


def test_the_toolkits_own_scores(capsys: pytest.CaptureFixture[str]) -> None:
    folder = shared_data("support")
    board = rubric_measures.score(
        folder / "graded.jsonl", measures=["WeightedCover", "WeightedCover(strict=True)"], compat="ragdoll"
    )
    names = {"ternary_score": "WeightedCover", "binary_score": "WeightedCover(strict=True)"}
    for row in csv.DictReader((folder / "expected.cell_scores.csv").read_text().splitlines()):
        for column, name in names.items():
            value = board.values[row["run_id"]][name][row["qid"]]
            assert (f"{value:.6f}" if value is not None else "") == (f"{float(row[column]):.6f}" if row[column] else "")
    for row in csv.DictReader((folder / "expected.run_scores.csv").read_text().splitlines()):
        for column, name in names.items():
            assert board.cells[row["run_id"]][name].mean == pytest.approx(float(row[column]), abs=5e-7)
    _, err = scores(capsys, folder / "graded.jsonl", "--compat", "ragdoll")
    for row in csv.DictReader((folder / "expected.category_failures.csv").read_text().splitlines()):
        assert f"{row['type']} {row['n_failed']} of {row['n_total']} ({float(row['failure_rate']):.6f})" in err


def test_assignments_that_failed_as_ragdoll_writes_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nuggets = [
        {"text": str(n), "importance": "vital", "assignment": said} for n, said in enumerate(("support", "fail"))
    ]
    path = write(tmp_path / "a.jsonl", [{"qid": "q1", "run_id": "x", "answer_text": "1", "nuggets": nuggets}])
    board = tmp_path / "board.tsv"
    options = ["-m", "NuggetA", "--no-overall", "--output", str(board)]
    # In ours the label is a failure; in theirs it stays in the denominator.
    assert main(["leaderboard", str(path), "--on-failed", "expected", *options]) in (0, 1)
    assert read_leaderboard(board).column("NuggetA(rel=2,partial_rel=1)") == {"x": 1.0}
    assert main(["leaderboard", str(path), "--compat", "nuggetizer", *options]) == 0
    assert read_leaderboard(board).column("NuggetA") == {"x": 0.5}


def test_verdicts_outside_the_list_failed_and_are_0_in_its_own_scores(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Its parser counts verdicts, whatever they say.
    path = write(tmp_path / "graded.jsonl", [graded("x", "q1", FULL, "mostly_satisfied", NOT, NOT)])
    assert main(["leaderboard", str(path), "--on-failed", "zero", "--no-overall"]) == 1
    note = "graded.jsonl: 1 label that nobody defined ('mostly_satisfied' 1) counts as failed"
    assert note in capsys.readouterr().err
    [query] = rubric_measures.load(path).queries.values()
    assert int(query.failed.sum()) == 1
    # 5 of 5 + 2 + 2, whatever the second verdict would be worth.
    found, err = scores(capsys, path, "--compat", "ragdoll")
    assert found == {"x": ("0.555556", "0.555556")}
    assert "1 verdict is none of RAGDoll's; it counts as not satisfied, as there" in err


def test_the_last_row_of_a_task_counts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [graded("x", "q1", status="failed", error="timeout"), graded("x", "q1", FULL, FULL, FULL, NOT)]
    path = write(tmp_path / "graded.jsonl", rows)
    for more in ((), ("--compat", "ragdoll")):
        found, err = scores(capsys, path, *more)
        assert found == {"x": ("1.000000", "1.000000")}
        assert "1 of the graded answers was replaced by a later one, which counts" in err


VERDICTS = ("A", "A", "B", "Tie", "Tie (Both Bad)", None)


def battle(qid: str, verdict: str | None, first: str = "y", second: str = "x", **changes: Any) -> dict[str, Any]:
    """A battle in which `first` was shown first; the pair is in the order of the alphabet."""
    low, high = sorted((first, second))
    return {
        "task_id": f"arena:{low}:{high}:{qid}", "qid": qid, "query": f"What is {qid}?", "pair": [low, high],
        "assistant_a_run_id": first, "assistant_b_run_id": second, "judge_verdict": verdict,
        "preferred_run_id": {"A": first, "B": second}.get(verdict or ""), "provider": "openai", "model": "judge",
        "thinking": "none", "status": "completed" if verdict else "failed", "error": None if verdict else "no verdict",
        "raw_output": f"[[{verdict}]]" if verdict else "A is longer, so [[A]].", "elapsed_seconds": 1.5, "usage": None,
        **changes,
    }  # fmt: skip


@pytest.fixture
def battles(tmp_path: Path) -> Path:
    path = tmp_path / "judgments.jsonl"
    lines = [battle(f"q{number}", verdict) for number, verdict in enumerate(VERDICTS)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_convert_keeps_both_ties_and_says_what_it_loses(
    battles: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    games, table = (tmp_path / name for name in ("g.jsonl", "g.csv"))
    assert main(["convert", str(battles), "--to", "games", "-o", str(games)]) == 0
    assert "judgments.jsonl: 3 further columns left out: elapsed_seconds, query, thinking" in capsys.readouterr().err
    assert GAMES.read(games) == BATTLES.read(battles)
    assert main(["convert", str(games), "--to", "ragelo:games", "-o", str(table)]) == 0
    assert "both_bad of 1 row" in capsys.readouterr().err
    assert [game.verdict for game in RAGELO_GAMES.read(table)] == ["a", "a", "b", "tie", "tie", None]


def test_ratings_without_a_prior(battles: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # y has 2 wins and two ties, x one win and two ties: 3 to 2 points, so 400 · log10(1.5) points lie between them.
    apart = 400 * math.log10(1.5)
    assert main(["tournament", str(battles), "--compat", "ragdoll", "--rounds", "5", "--format", "json"]) == 1
    captured = capsys.readouterr()
    content = json.loads(captured.out)["tournament"]
    assert [one["rating"] for one in content["ratings"]] == pytest.approx([1000 + apart / 2, 1000 - apart / 2])
    counts = [(one["agent"], one["wins"], one["ties"], one["losses"], one["undecided"]) for one in content["ratings"]]
    assert counts == [("y", 2, 2, 1, 1), ("x", 1, 2, 2, 1)]
    assert (content["both_bad"], content["undecided"]) == (1, {"unparsed": 1})
    assert "in 1 of the ties both answers are bad" in captured.err


def test_a_model_plays_battles_with_bare_verdicts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answers = [{"query_id": f"q{n}", "run_id": run, "text": f"{run} on {n}"} for n in range(4) for run in "xyz"]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(line) + "\n" for line in answers))
    (tmp_path / "q.tsv").write_text("".join(f"q{n}\tWhat is {n}?\n" for n in range(4)))
    replies = ["What is 0?\", \"reply\": \" [[Tie (Both Bad)]]\\n", "What is 1?\", \"reply\": \"[[Tie]]",
               "What is 2?\", \"reply\": \"It is close: [[A]]", "What is 3?\", \"reply\": \"[[B]]"]  # fmt: skip
    (tmp_path / "r.jsonl").write_text("".join(f'{{"contains": "{reply}"}}\n' for reply in replies))
    command = [
        "tournament", "--answers", str(tmp_path / "a.jsonl"), "--query-file", str(tmp_path / "q.tsv"),
        "--model", f"scripted:{tmp_path / 'r.jsonl'}", "--prompt", "AnswerBattle", "--save", str(tmp_path / "g.jsonl"),
        "--compat", "ragdoll", "--seed", "13", "--rounds", "5", "--retries", "0",
    ]  # fmt: skip
    assert main([*command, "--games-per", "agent=1"]) == 1
    # Three systems, one game each: two games a query (3 · 1 / 2, rounded up).
    games = GAMES.read(tmp_path / "g.jsonl")
    said = {game.query_id: (game.verdict, game.status) for game in games}
    assert len(games) == 8
    assert said == {"q0": ("both_bad", "graded"), "q1": ("tie", "graded"), "q2": (None, "unparsed"),
                    "q3": ("b", "graded")}  # fmt: skip
    # All games: those that were played are not played again.
    assert main(command) == 1
    assert "12 games (4 new)" in capsys.readouterr().err
    assert set(games) <= set(GAMES.read(tmp_path / "g.jsonl"))


def test_battles_are_not_written_over(battles: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answers = tmp_path / "a.jsonl"
    answers.write_text("".join(f'{{"query_id": "q1", "run_id": "{run}", "text": "{run}"}}\n' for run in "xy"))
    (tmp_path / "q.tsv").write_text("q1\tWhy?\n")
    before = battles.read_bytes()
    play = ["tournament", "--answers", str(answers), "--query-file", str(tmp_path / "q.tsv"), "--model", "lexical"]
    assert main([*play, "--save", str(battles)]) == 2
    assert "holds battles of RAGDoll, which would be lost" in capsys.readouterr().err
    assert battles.read_bytes() == before
    for more, message in (
        (["--games-per", "agent=2"], "only RAGDoll draws so"),
        (["--games-per", "2"], "expected query=N, pair=N or agent=N"),
        (["--compat", "ragdoll", "--games-per", "pair=0"], "expected query=N, pair=N or agent=N"),
    ):
        assert main([*play, "--save", str(tmp_path / "g.jsonl"), *more]) == 2
        assert message in capsys.readouterr().err


def test_the_toolkits_own_leaderboard_and_pairs() -> None:
    folder = shared_data("support")
    from rubric_measures import tournament

    result = tournament(folder / "judgments.jsonl", compat="ragdoll", draws=Draws(5))
    rows = list(csv.DictReader((folder / "expected.leaderboard.csv").read_text().splitlines()))
    assert [(one.agent, one.games, one.wins, one.losses, one.ties) for one in result.ratings] == [
        (row["run_id"], *(int(row[name]) for name in ("n_judgments", "wins", "losses", "ties"))) for row in rows
    ]
    # Its own iteration stops 5e-4 from the maximum.
    assert [one.rating for one in result.ratings] == pytest.approx(
        [float(row["arena_score"]) for row in rows], abs=6e-4
    )
    table = result.matrix
    for row in csv.DictReader((folder / "expected.pairwise.csv").read_text().splitlines()):
        a, b = (table.agents.index(row[name]) for name in ("run_a", "run_b"))
        wins, ties, losses = table.wins[a][b], table.ties[a][b], table.wins[b][a]
        assert [wins, losses, ties] == [int(row[name]) for name in ("run_a_wins", "run_b_wins", "ties")]
        assert (wins + ties / 2) / (wins + ties + losses) == pytest.approx(
            float(row["run_a_preference_rate"]), abs=5e-7
        )


def test_the_leaderboard_of_battles_after_resuming() -> None:
    folder = shared_data("conformance")
    found = rubric_measures.tournament(folder / "ragdoll-battles.resumed.jsonl", compat="ragdoll", draws=Draws(10))
    ratings = {one.agent: one.rating for one in found.ratings}
    rows = list(csv.DictReader((folder / "ragdoll-battles.leaderboard.csv").read_text().splitlines()))
    assert ratings == pytest.approx({row["run_id"]: float(row["arena_score"]) for row in rows}, abs=1e-4)


def test_support_judgments_after_resuming(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, labels = shared_data("conformance") / "ragdoll-support.resumed.jsonl", tmp_path / "labels.jsonl"
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    # (run, topic) -> sentence -> citation -> the last row of its task; the statements stand for the answers.
    last: dict[tuple[str, str], dict[int, dict[int, Any]]] = {}
    for row in rows:
        said = row["metadata"]
        of_answer = last.setdefault((said["run_id"], said["topic_id"]), {})
        of_answer.setdefault(said["sentence_index"], {})[said["citation_index"]] = row
    answers, expected = [], {}
    for (run, topic), sentences in last.items():
        cited = {number: [row for _, row in sorted(of.items())] for number, of in sentences.items()}
        known = [{"text": cited[n][0]["statement"], "citations": [one["metadata"]["docid"] for one in cited[n]]}
                 if n in cited else {"text": "So.", "citations": []} for n in range(max(cited) + 1)]  # fmt: skip
        references = sorted({doc_id for one in known for doc_id in one["citations"]})
        answers.append({"metadata": {"run_id": run, "topic_id": topic}, "references": references, "answer": known})
        worth = [{"FS": 1.0, "PS": 0.5, "NS": 0.0}[of[0]["support_label"]] for of in cited.values()]
        expected[run, topic] = (sum(worth) / len(worth), sum(worth) / len(known))
    made = write(tmp_path / "answers.jsonl", answers)
    assert main(["convert", str(path), "--to", "support-labels", "--answers", str(made), "-o", str(labels)]) == 0
    assert "8 of the support judgments were replaced by a later one, which counts" in capsys.readouterr().err
    board = rubric_measures.score(labels, measures=["SupportPrecision", "SupportRecall"])
    for (run, topic), values in expected.items():
        assert tuple(board.values[run][name][topic] for name in board.measures) == pytest.approx(values)


# The sentences of the one answer, and what each cites; the last one cites nothing.
SENTENCES = [("Ada wrote it.", ["d1", "d2"]), ("It was 1843.", ["d3"]), ("So it is.", ["d1"]), ("Thanks.", [])]


def task(sentence: int, citation: int, label: str | None, **changes: Any) -> dict[str, Any]:
    text, cited = SENTENCES[sentence]
    metadata = {"topic_id": "t1", "run_id": "x", "sentence_index": sentence, "citation_index": citation}
    return {
        "task_id": f"x:t1:s{sentence}:c{citation}", "statement": text, "citation": "…", "support_label": label,
        "raw_output": label or "", "status": "completed" if label else "failed", "error": None if label else "timeout",
        "metadata": {**metadata, "docid": cited[citation]}, **changes,
    }  # fmt: skip


TASKS = [task(0, 0, "PS"), task(0, 1, "FS"), task(1, 0, "NS"), task(2, 0, None)]


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    answer = [{"text": text, "citations": cited} for text, cited in SENTENCES]
    # As its own files have answers.
    text = " ".join(text for text, _ in SENTENCES)
    line = {"run_id": "x", "qid": "t1", "query": "Who?", "answer_text": text, "answer": answer, "response_length": 9}
    write(tmp_path / "answers.jsonl", [line])
    write(tmp_path / "tasks.jsonl", TASKS)
    return tmp_path


def test_judgments_and_answers_are_labels_that_score(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert detect_format("tasks.jsonl") == "ragdoll:support"
    convert = ["convert", "tasks.jsonl", "--answers", "answers.jsonl"]
    assert main([*convert, "--to", "support-labels", "-o", "labels.jsonl"]) == 0
    assert "1 support judgment failed; their citations have no label (-1)" in capsys.readouterr().err
    [answer] = read_support_labels("labels.jsonl")
    assert [[one.support for one in sentence.citations] for sentence in answer.sentences] == [
        ["1", "2"], ["0"], ["-1"], [],
    ]  # fmt: skip
    measures = ["-m", "SupportPrecision", "SupportRecall", "SupportPrecision(citations='all')"]
    assert main(["leaderboard", "labels.jsonl", *measures, "--no-overall", "--output", "board.tsv"]) in (0, 1)
    board = read_leaderboard("board.tsv")
    # First citations: ½, 0 and one that is out; one sentence cites nothing: P = ½/2, R = ½/3. All: (¾ + 0) / 2.
    found = [board.column(name)["x"] for name in board.measures]
    assert found == pytest.approx([0.25, 1 / 6, 0.375], abs=5e-5)


@pytest.mark.parametrize(
    ("tasks", "message"),
    [
        ([task(0, 0, "FS", statement="It was 1843.")], "'d1' is cited by no such sentence of the answers (--answers)"),
        ([task(0, 0, "FS") | {"metadata": task(0, 0, "FS")["metadata"] | {"docid": "d9"}}], "'d9' is cited by no such"),
        ([task(0, 0, "FS") | {"metadata": task(0, 0, "FS")["metadata"] | {"run_id": "y"}}], "no such sentence"),
        ([task(0, 0, "FS") | {"metadata": task(0, 0, "FS")["metadata"] | {"sentence_index": 4}}], "no such sentence"),
        ([task(0, 0, "FS", status="failed")], "expected a support_label exactly when the status is completed"),
        ([task(0, 0, "XS")], "tasks.jsonl:1: support_label: "),
        ([task(0, 0, "FS"), task(0, 1, "NS") | {"metadata": task(0, 1, "NS")["metadata"] | {"docid": "d1"}}],
         "document 'd1' has two labels; keep one"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_one_line(
    tasks: list[dict[str, Any]], message: str, files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(files / "tasks.jsonl", tasks)
    assert (
        main(["convert", "tasks.jsonl", "--answers", "answers.jsonl", "--to", "support-labels", "-o", "r.jsonl"]) == 2
    )
    [line] = capsys.readouterr().err.splitlines()
    assert message in line and not (files / "r.jsonl").exists()


def test_judgments_alone_are_no_answers_and_no_queries(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["convert", "tasks.jsonl", "--to", "support-labels", "-o", "labels.jsonl"]) == 2
    assert "name the answers that they are about (--answers)" in capsys.readouterr().err
    assert main(["convert", "tasks.jsonl", "--to", "queries", "-o", "q.json"]) == 2
    assert "ragdoll:support cannot become queries; it can become: " in capsys.readouterr().err
    assert main(["convert", "answers.jsonl", "--answers", "answers.jsonl", "--to", "answers", "-o", "a.jsonl"]) == 2
    assert "answers would have no effect here" in capsys.readouterr().err
    assert main(["leaderboard", "tasks.jsonl"]) == 2
    said = "holds no grades: its format is ragdoll:support, which `convert` may turn into another"
    assert f"tasks.jsonl:1: {said}; accepted" in capsys.readouterr().err


def test_rubrics_of_which_all_tasks_failed_are_no_bank(answers: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(answers.parent / "failed.jsonl", [{"task_id": "q1", "status": "failed", "qid": "q1", "criteria": []}])
    assert main(["leaderboard", str(answers), "--bank", str(path)]) == 2
    said = capsys.readouterr().err
    assert "1 task failed and has no criteria" in said and "failed.jsonl: the bank holds no entries" in said
