"""Numbers of ours beside those of other programs, over files as these leave them; and what they read of ours.

Prints the table of docs/conformance.md, or writes it there (`--write`). A program that is not installed keeps its rows
as they stand on the page; they are marked in what is printed. So do rows over files that a program or a track left
behind, where these files are not here: they lie in `data/conformance` of the folder RUBRIC_MEASURES_SHARED.
"""

from __future__ import annotations

import argparse
import csv
import importlib.metadata
import json
import math
import os
import random
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import chdir
from pathlib import Path
from typing import Any, NamedTuple

import rubric_measures
from rubric_measures import Draws
from rubric_measures.boards.single import evaluate
from rubric_measures.cli import main as command
from rubric_measures.formats.leaderboards import read_leaderboard

ROOT = Path(__file__).resolve().parents[1]
EXAMPLE = ROOT / "resources" / "example"
PAGE = ROOT / "docs" / "conformance.md"
HEAD = "| program | version | its file | compared | ours | its | equal to | we write, it reads |"
LINE = "|---|---|---|---|---|---|---|---|"


class Row(NamedTuple):
    """One comparison.

    Attributes:
        program: the program.
        file: the file as it leaves it, or takes it.
        compared: what is computed, of how many values.
        ours: our numbers by name.
        theirs: its numbers by the same names.
        reads: which files of ours it reads; empty where it reads none of this kind.
    """

    program: str
    file: str
    compared: str
    ours: Mapping[str, float]
    theirs: Mapping[str, float]
    reads: str = ""

    @property
    def apart(self) -> float:
        """The greatest difference between the two; infinite where one has other names."""
        if self.ours.keys() != self.theirs.keys() or not self.ours:
            return math.inf
        return max(abs(self.ours[name] - self.theirs[name]) for name in self.ours)


def _run(*given: str) -> None:
    """One of our commands; a failure ends the comparison."""
    if status := command(list(given)):
        raise RuntimeError(f"{' '.join(given)}: exit status {status}")


def _column(path: str, measure: str) -> dict[str, float]:
    return read_leaderboard(path).column(measure)


def trec_eval() -> Iterator[Row]:
    """Runs and qrels of the example, scored by both; then our qrels and run, read by trec_eval."""
    import pytrec_eval

    names = {"nDCG@10": "ndcg_cut_10", "AP": "map", "RR": "recip_rank", "R@100": "recall_100"}

    def theirs(qrels: str, run: str) -> dict[str, float]:
        with open(qrels) as judged, open(run) as ranked:
            asked = {"ndcg_cut", "map", "recip_rank", "recall"}
            scorer = pytrec_eval.RelevanceEvaluator(pytrec_eval.parse_qrel(judged), asked)
            found = scorer.evaluate(pytrec_eval.parse_run(ranked))
        return {f"{one} {query_id}": values[name] for query_id, values in found.items() for one, name in names.items()}

    def ours(qrels: str, run: str) -> dict[str, float]:
        found = evaluate(qrels, run, list(names))
        return {f"{one.measure} {one.query_id}": one.value for one in found.metrics}

    qrels, run = str(EXAMPLE / "qrels.txt"), str(EXAMPLE / "runs" / "bm25.run")
    mine = ours(qrels, run)
    _run("pool", run, "-c", str(EXAMPLE), "--depth", "100", "-o", "pool.jsonl.gz")
    _run("convert", "pool.jsonl.gz", "--to", "run", "-o", "again.run")
    again = theirs(qrels, "again.run")
    read = "runs, qrels" if all(math.isclose(again[name], mine[name], abs_tol=1e-12) for name in again) else ""
    yield Row("trec_eval", "run, qrels", "nDCG@10, AP, RR, R@100 by query", mine, theirs(qrels, run), read)


def pyndeval() -> Iterator[Row]:
    """Grades of the example as diversity qrels, which pyndeval reads; α-nDCG and its like by both."""
    import pyndeval as program

    names = {"alpha_nDCG(rel=4)@10": "alpha-nDCG@10", "ERR_IA(rel=4)@10": "ERR-IA@10", "StRecall(rel=4)@10": "strec@10"}
    graded, run = str(EXAMPLE / "graded.jsonl.gz"), str(EXAMPLE / "runs" / "bm25.run")
    chosen = ("--grader", "kind=question")
    _run("qrels", graded, *chosen, "--per", "item", "-o", "items.qrels")
    grades = rubric_measures.load(graded, bank=str(EXAMPLE / "questions.jsonl"), grader="kind=question")
    board = rubric_measures.score(grades, [run], list(names))
    mine = {
        f"{measure} {query_id}": value
        for measure, of_queries in board.values["bm25"].items()
        for query_id, value in of_queries.items()
        if value is not None
    }
    rows = [line.split() for line in Path("items.qrels").read_text().splitlines()]
    judged = [program.SubtopicQrel(row[0], row[1], row[2], int(int(row[3]) >= 4)) for row in rows]
    rows = [line.split() for line in Path(run).read_text().splitlines()]
    ranked = [program.ScoredDoc(row[0], row[2], float(row[4])) for row in rows]
    found = {}
    for one, name in names.items():
        for query_id, values in program.ndeval(judged, ranked, measures=[name]).items():
            found[f"{one} {query_id}"] = values[name]
    compared = "α-nDCG@10, ERR-IA@10, subtopic recall by query"
    yield Row("pyndeval", "diversity qrels", compared, mine, found, "item qrels")


def nuggetizer() -> Iterator[Row]:
    """Assignments with the odd labels that models write; the program's own metrics over them, and over ours."""
    from nuggetizer.core.metrics import calculate_global_metrics

    draw = random.Random(7)
    labels = ["support", "partial_support", "not_support", "failed", "Support", "mostly"]
    facts = {
        topic: [(f"fact {n} of {topic}", draw.choice(["vital", "okay", "failed"])) for n in range(8)]
        for topic in range(10)
    }
    rows = [
        {"query": f"topic {topic}", "qid": f"t{topic}", "run_id": run, "answer_text": "words", "response_length": 1,
         "nuggets": [{"text": text, "importance": importance, "assignment": draw.choice(labels)}
                     for text, importance in facts[topic]]}
        for topic in facts for run in ("one", "two")
    ]  # fmt: skip
    _lines("assignments.jsonl", rows)
    fields = {"NuggetV(strict=True)": "strict_vital_score", "NuggetA(strict=True)": "strict_all_score",
              "NuggetV": "vital_score", "NuggetA": "all_score"}  # fmt: skip

    def theirs(path: str) -> dict[str, float]:
        read = [json.loads(line) for line in Path(path).read_text().splitlines()]
        return {
            f"{run} {name}": calculate_global_metrics([row for row in read if row["run_id"] == run])[field]
            for run in ("one", "two")
            for name, field in fields.items()
        }

    _run("leaderboard", "assignments.jsonl", "-m", *fields, "--compat", "nuggetizer", "-o", "board.json")
    mine = {f"{run} {name}": value for name in fields for run, value in _column("board.json", name).items()}
    # Records hold a label that nobody defined as a failed grade: ours is written of labels that the program defines.
    for row in rows:
        for nugget in row["nuggets"]:
            nugget["assignment"] = nugget["assignment"] if nugget["assignment"] in labels[:4] else "failed"
    _lines("defined.jsonl", rows)
    _run("convert", "defined.jsonl", "--to", "records", "-o", "records.jsonl.gz")
    _run("convert", "defined.jsonl", "--to", "bank", "-o", "bank.jsonl")
    _run("convert", "records.jsonl.gz", "--bank", "bank.jsonl", "--to", "assignments", "-o", "ours.jsonl")
    same = theirs("ours.jsonl") == theirs("defined.jsonl")
    yield Row("nuggetizer", "assignments with odd labels", "V and A, strict and not", mine, theirs("assignments.jsonl"),
              "assignments" if same else "")  # fmt: skip


def evalica() -> Iterator[Row]:
    """RAGDoll's battles, rated by evalica and by `tournament --compat ragdoll`."""
    import evalica as program

    draw = random.Random(3)
    rows = []
    for number in range(120):
        first, second = draw.sample(["a", "b", "c", "d"], 2)
        verdict = draw.choice(["A", "B", "Tie", "Tie (Both Bad)"])
        low, high = sorted((first, second))
        rows.append({
            "task_id": f"arena:{low}:{high}:q{number}", "qid": f"q{number}", "query": "", "pair": [low, high],
            "assistant_a_run_id": first, "assistant_b_run_id": second, "judge_verdict": verdict,
            "preferred_run_id": {"A": first, "B": second}.get(verdict), "provider": "p", "model": "m", "thinking": None,
            "status": "completed", "error": None, "raw_output": f"[[{verdict}]]", "elapsed_seconds": 1, "usage": None,
        })  # fmt: skip
    _lines("judgments.jsonl", rows)
    winner = {"A": program.Winner.X, "B": program.Winner.Y}
    scores = program.bradley_terry(
        [row["assistant_a_run_id"] for row in rows], [row["assistant_b_run_id"] for row in rows],
        [winner.get(str(row["judge_verdict"]), program.Winner.Draw) for row in rows], tolerance=1e-12, limit=10_000,
    ).scores  # fmt: skip
    logs = {agent: 400 * math.log10(score) for agent, score in scores.items()}
    middle = sum(logs.values()) / len(logs)
    board = rubric_measures.tournament("judgments.jsonl", compat="ragdoll", draws=Draws(1))
    mine = {one.agent: one.rating for one in board.ratings}
    yield Row("evalica", "battles of RAGDoll", "Bradley-Terry, 400 points a factor ten", mine,
              {agent: 1000 + value - middle for agent, value in logs.items()})  # fmt: skip


def autojudge() -> Iterator[Row]:
    """Our leaderboard and nugget bank, read by Auto-Judge; the means of runs by both."""
    from autojudge_base.leaderboard.leaderboard import Leaderboard
    from autojudge_base.nugget_data import load_nugget_banks_from_file

    runs = [str(path) for path in sorted((EXAMPLE / "runs").glob("*.run"))]
    grades = rubric_measures.load(EXAMPLE / "graded.jsonl.gz", bank=EXAMPLE / "questions.jsonl", grader="kind=question")
    board = rubric_measures.score(grades, runs, ["RubricCover@10"])
    board.save("board.json")
    _run("convert", "board.json", "--to", "leaderboard:ir_measures", "-o", "lines.txt")
    read = Leaderboard.load(Path("lines.txt"), format="ir_measures")
    found = {
        entry.run_id: float(entry.values["RubricCover(rel=4)@10"]) for entry in read.entries if entry.topic_id == "all"
    }
    _run("convert", str(EXAMPLE / "questions.jsonl"), "--to", "nugget-bank", "-o", "banks.jsonl")
    banks = load_nugget_banks_from_file(Path("banks.jsonl"))
    mine = {run: cells["RubricCover(rel=4)@10"].mean or 0.0 for run, cells in board.cells.items()}
    reads = "leaderboards, nugget banks" if len(banks.banks) == len(grades.queries) else "leaderboards"
    yield Row("autojudge-base", "leaderboard (ir_measures)", "means of runs", mine, found, reads)


def ragelo() -> Iterator[Row]:
    """RAGElo's tables as we write them, read by RAGElo."""
    from ragelo import Experiment

    with open("queries.csv", "w", newline="") as stream:
        csv.writer(stream).writerows([("qid", "query"), ("q1", "Why?"), ("q2", "Who, and when?")])
    with open("answers.csv", "w", newline="") as stream:
        rows = [("q1", "a", "So."), ("q1", "b", "Not, so."), ("q2", "a", "He."), ("q2", "b", "She.")]
        csv.writer(stream).writerows([("qid", "agent", "answer"), *rows])
    _run("convert", "queries.csv", "--to", "queries", "-o", "queries.json")
    _run("convert", "queries.json", "--to", "ragelo:queries", "-o", "q.csv")
    _run("convert", "answers.csv", "--to", "answers", "-o", "answers.jsonl")
    _run("convert", "answers.jsonl", "--to", "ragelo:answers", "-o", "a.csv")

    def sizes(queries: str, answers: str) -> dict[str, float]:
        made = Experiment(
            "x", save_on_disk=False, queries_csv_path=queries, csv_query_id_col="qid", answers_csv_path=answers
        )
        return {f"{query.qid} answers": len(query.answers) for query in made}

    yield Row("ragelo", "queries, answers (CSV)", "answers of each query", sizes("q.csv", "a.csv"),
              sizes("queries.csv", "answers.csv"), "queries, answers")  # fmt: skip

    made = Experiment("saved", save_path="saved.json", rich_print=False)
    for query_id, text, documents in (("q1", "Why?", {"d1": 0.5, "d2": 1.5}), ("q2", "Who?", {"d2": 1.0})):
        made.add_query(text, query_id)
        for doc_id, score in documents.items():
            made.add_retrieved_doc(f"Text of {doc_id}.", query_id, doc_id, score, "bm25")
        for agent in ("a", "b"):
            made.add_agent_answer(f"{agent} says so.", agent, query_id)
    made.save()
    _run("convert", "saved.json", "--to", "records", "-o", "saved.jsonl.gz")
    _run("convert", "saved.jsonl.gz", "--to", "run", "-o", "saved.run")
    _run("convert", "saved.json", "--to", "answers", "-o", "saved.jsonl")
    ranked = [line.split() for line in Path("saved.run").read_text().splitlines()]
    mine = {f"{row[0]} {row[2]}": float(row[4]) for row in ranked}
    mine |= {f"{row['query_id']} answers": 0.0 for row in _read_lines("saved.jsonl")}
    for row in _read_lines("saved.jsonl"):
        mine[f"{row['query_id']} answers"] += 1
    found = {
        f"{query.qid} {doc_id}": float(score)
        for query in made
        for doc_id, document in query.retrieved_docs.items()
        for score in document.retrieved_by.values()
    }
    found |= {f"{query.qid} answers": float(len(query.answers)) for query in made}
    yield Row("ragelo", "experiment (JSON)", "scores of documents, answers of each query", mine, found)


def ragdoll(folder: Path) -> Iterator[Row]:
    """RAGDoll's arena judgments after `--resume`, and the leaderboard that it made of them."""
    board = rubric_measures.tournament(folder / "ragdoll-battles.resumed.jsonl", compat="ragdoll", draws=Draws(1))
    with (folder / "ragdoll-battles.leaderboard.csv").open(encoding="utf-8") as stream:
        found = {row["run_id"]: float(row["arena_score"]) for row in csv.DictReader(stream)}
    mine = {one.agent: one.rating for one in board.ratings}
    yield Row("ragdoll", "battles after --resume", "arena scores", mine, found)


def dragun(folder: Path) -> Iterator[Row]:
    """Labels of the track's organisers: the mean of 1, ½ and 0 over the short answers, by report."""
    path = folder / "dragun.report-assessments.csv"
    worth = {"supports": 1.0, "partial": 0.5}
    listed: dict[str, list[float]] = {}
    with path.open(encoding="utf-8") as stream:
        for row in csv.DictReader(stream):
            listed.setdefault(f"{row['run_tag']} {row['topic_id']}", []).append(worth.get(row["auto_assessment"], 0.0))
    board = rubric_measures.score(path, measures=["NuggetA"], overall=False, notes=False)
    mine = {
        f"{run} {topic}": value
        for run, of_run in board.values.items()
        for of_queries in of_run.values()
        for topic, value in of_queries.items()
        if value is not None
    }
    theirs = {name: math.fsum(values) / len(values) for name, values in listed.items()}
    yield Row("dragun", "assessments of reports", "supported share of short answers, by report", mine, theirs)


# What left files behind -> when that was, and the comparison with what it says of them.
LEFT: Mapping[str, tuple[str, Callable[[Path], Iterator[Row]]]] = {
    "ragdoll": ("TREC RAG 2026", ragdoll),
    "dragun": ("TREC 2025", dragun),
}
CHECKS: Mapping[str, tuple[str, Callable[[], Iterator[Row]]]] = {
    "pytrec-eval-terrier": ("pytrec_eval", trec_eval),
    "pyndeval": ("pyndeval", pyndeval),
    "nuggetizer": ("nuggetizer", nuggetizer),
    "evalica": ("evalica", evalica),
    "autojudge-base": ("autojudge_base", autojudge),
    "ragelo": ("ragelo", ragelo),
}


def _lines(path: str, rows: Sequence[Mapping[str, Any]]) -> None:
    Path(path).write_text("".join(json.dumps(row) + "\n" for row in rows))


def _read_lines(path: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(path).read_text().splitlines()]


def left_files() -> Path:
    """Where files of programs lie that are not installed."""
    return Path(os.environ.get("RUBRIC_MEASURES_SHARED", ROOT.parent / "shared")) / "data" / "conformance"


def rows_of(package: str) -> list[Row]:
    """The comparisons with one program, made in a folder of their own."""
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        return list(LEFT[package][1](left_files()) if package in LEFT else CHECKS[package][1]())


def version_of(package: str) -> str | None:
    """The version of a program, or when it left its files behind; None where neither is here."""
    if package in LEFT:
        return LEFT[package][0] if left_files().is_dir() else None
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _shown(version: str, row: Row) -> str:
    first = next(iter(row.ours), "")
    places = next((limit for limit in (1e-12, 1e-9, 1e-6, 1e-4) if row.apart <= limit), math.inf)
    cells = (
        row.program, version, row.file, f"{row.compared}: {len(row.ours)} values",
        f"{row.ours[first]:.6g}", f"{row.theirs.get(first, math.nan):.6g}", f"{places:g}", row.reads or "—",
    )  # fmt: skip
    return f"| {' | '.join(cells)} |"


def main(argv: Sequence[str] | None = None) -> int:
    """The table, printed or written; 1 where a number is another one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help=f"put the table into {PAGE.relative_to(ROOT)}")
    options = parser.parse_args(argv)
    page = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    lines, wrong = [HEAD, LINE], 0
    for package in (*CHECKS, *LEFT):
        version = version_of(package)
        if version is None:
            name = package if package in LEFT else CHECKS[package][1].__name__.replace("_", "-")
            lines += [line for line in page.splitlines() if line.startswith((f"| {package} |", f"| {name} |"))]
            sys.stderr.write(f"{package} is not here; its rows stay\n")
            continue
        for row in rows_of(package):
            lines.append(_shown(version, row))
            wrong += row.apart > 1e-4
    table = "\n".join(lines) + "\n"
    if options.write:
        before, start, rest = page.partition(HEAD)
        after = rest.partition("\n\n")[2]
        PAGE.write_text(f"{before}{table}\n{after}" if start else f"{page}{table}", encoding="utf-8")
    else:
        sys.stdout.write(table)
    return int(wrong > 0)


if __name__ == "__main__":
    raise SystemExit(main())
