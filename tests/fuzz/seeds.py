"""The files that are damaged: a piece of the example collection, and one small file of every kind that is read."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from rubric_measures.cli import main
from rubric_measures.formats.banks import load_bank
from rubric_measures.review.store import CellKey, ReviewStore
from tests.boards.test_argue import BANKS, REPORTS
from tests.formats.test_every_format import LINES, text_of
from tests.formats.test_ragdoll import FULL, NOT, PART, battle, graded

EXAMPLE = Path(__file__).parents[2] / "resources" / "example"
QUERIES = ("q01", "q02", "q03")
DEPTH = 5

_REPORTS = [
    {
        "metadata": {"team_id": "t", "run_id": "rag", "narrative_id": "q01", "type": "automatic"},
        "references": ["d0101", "d0102"],
        "answer": [{"text": "Chlorophyll goes.", "citations": [1, 0]}, {"text": "Red stays.", "citations": []}],
        "evaldata": {"nugget_grades": {"i1": {"grade": 4, "reasoning": "yes"}, "i2": {"grade": 0}}},
    },
    {
        "metadata": {"run_id": "rt", "topic_id": "q02"},
        "responses": [{"text": "Walk more.", "citations": {"d0201": 0.25, "d0202": 0.5}, "metadata": {"x": 1}}],
        "evaldata": {"nugget_grades": {"i1": {"grade": 2}, "i2": {"grade": None}}},
    },
]
_ASSIGNMENTS = [
    {
        "query": "who?",
        "qid": str(query),
        "run_id": run,
        "answer_text": "Ada did.",
        "response_length": 2,
        "nuggets": [
            {"text": "Ada", "importance": "vital", "assignment": found, "reasoning": "it says so"},
            {"text": "1843", "importance": "okay", "assignment": "partial_support"},
            {"text": "notes", "importance": "okay", "assignment": "failed" if query == 2 else "not_support"},
        ],
    }
    for query in (1, 2)
    for run, found in (("a", "support"), ("b", "not_support"))
]
_METADATA = """tag: {run}
actor: {{team: lab}}
method:
  automatic: true
  retrieval:
  - name: bm25
    k1: 0.9
  generation:
    llm: openai/gpt-4o
"""
_TOPICS = [
    {"request_id": "q01", "title": "Leaves", "problem_statement": "Why?", "limit": 2000, "collection_ids": ["c"]},
    {"qid": "q02", "query": "who wrote it"},
]
_GAMES = [
    {"query_id": query, "agent_a": one, "agent_b": other, "verdict": verdict, "answer": "so", "grader": "openai:judge"}
    for query, verdicts in (("q1", ("a", "tie", "b")), ("q2", ("a", "a", None)))
    for (one, other), verdict in zip((("x", "y"), ("y", "z"), ("x", "z")), verdicts, strict=True)
]
_RAGELO_GAMES = "qid,agent_a,agent_b,raw_answer,answer\n1,x,y,So [[A]],A\n1,y,x,So,C\n2,x,y,[[B]],B\n"
_REPLIES = [
    {"contains": ["red", "leaf"], "reply": "1"},
    {"contains": "leaves", "reply": "2", "prompt_tokens": 9, "completion_tokens": 2},
    {"contains": "sun", "reply": "no", "status": "refused", "error": "policy"},
    {"contains": "list", "reply": '{"questions": ["Which leaf?", "How hot?"]}'},
    {"reply": "Score: 1"},
]
_VERDICTS = [{"contains": "Chlorophyll", "reply": "[[A]]"}, {"reply": "So: [[C]]"}]
_PROMPT = '''# A prompt of one's own.
target = "question"
task = "grade"
parser = "rating"
scale = [0, 5]
covers = 4
partial = 3
reply_tokens = 20
text = """
How well does the passage answer the question? 0 to 5.
Question: {question}
Passage: {context}"""
'''


def _lines(rows: Sequence[Mapping[str, object]]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)  # type: ignore[arg-type]


def _call(*arguments: str) -> None:
    status = main(list(arguments))
    if status not in (0, 1):
        raise AssertionError(f"a seed cannot be made: {' '.join(arguments)}")


def _first_of_each(path: Path, wanted: int = DEPTH, column: int = 0) -> str:
    """The first lines of each of the queries."""
    counts: dict[str, int] = {}
    kept = []
    for line in path.read_text(encoding="utf-8").splitlines(keepends=True):
        query = line.split()[column]
        counts[query] = counts.get(query, 0) + 1
        if query in QUERIES and counts[query] <= wanted:
            kept.append(line)
    return "".join(kept)


def _banks(path: Path) -> str:
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return _lines([{**row, "items": row["items"][:4]} for row in rows if row["query_id"] in QUERIES])


_SENTENCES = [{"text": "Leaves turn red.", "citations": ["d0101", "d0102"]}, {"text": "In autumn.", "citations": []}]


def _ragdoll() -> dict[str, list[dict[str, Any]]]:
    """File -> lines, as RAGDoll writes them."""
    verdicts = (("A", "x", "y"), ("A", "y", "x"), ("Tie", "x", "y"), ("Tie (Both Bad)", "y", "x"))
    battles = [battle(f"q{number}", *said) for number, said in enumerate(verdicts)]
    judged = [graded("x", "q01", FULL, NOT, NOT, FULL), graded("y", "q01", PART, NOT, FULL, FULL)]
    support = [
        {
            "task_id": f"x:q01:s0:c{place}", "statement": "Leaves turn red.", "citation": "…", "support_label": label,
            "raw_output": label, "status": "completed", "error": None,
            "metadata": {"topic_id": "q01", "run_id": "x", "sentence_index": 0, "citation_index": place, "docid": doc},
        }
        for place, (doc, label) in enumerate((("d0101", "FS"), ("d0102", "NS")))
    ]  # fmt: skip
    return {
        "ragdoll-battles.jsonl": battles,
        "ragdoll-graded.jsonl": judged,
        "ragdoll-support.jsonl": support,
        "ragdoll-answers.jsonl": [{"run_id": "x", "qid": "q01", "answer_text": "…", "answer": _SENTENCES}],
    }


def make_seeds(folder: Path) -> None:
    """Writes all seeds into `folder`, which is the current one: files are named as commands will name them."""

    def write(name: str, text: str) -> None:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")

    docs = (EXAMPLE / "docs.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    write("collection/docs.jsonl", "".join(line for line in docs if '"d01' in line or '"d02' in line or '"d03' in line))
    write("collection/queries.tsv", _first_of_each(EXAMPLE / "queries.tsv"))
    write("collection/qrels.txt", _first_of_each(EXAMPLE / "qrels.txt", 99))
    for name in ("bm25", "fusion", "tfidf"):
        rows = _first_of_each(EXAMPLE / "runs" / f"{name}.run", 12)
        kept = [row for row in rows.splitlines(keepends=True) if row.split()[2][:3] in ("d01", "d02", "d03")]
        write(f"{name}.run", "".join(kept))
        write(f"example/runs/{name}.run", "".join(kept))
    for name in ("docs.jsonl", "queries.tsv", "qrels.txt"):
        write(f"example/{name}", (folder / "collection" / name).read_text(encoding="utf-8"))
    for name in ("concise", "thorough"):
        rows = (EXAMPLE / "answers" / f"{name}.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
        write(f"{name}.jsonl", "".join(rows[:3]))
    write("questions.jsonl", _banks(EXAMPLE / "questions.jsonl"))
    write("nuggetbank.jsonl", _banks(EXAMPLE / "nuggets.jsonl"))
    write("questions2.jsonl", _banks(EXAMPLE / "questions.jsonl").replace("Which pigment", "What pigment"))
    write("queries.tsv", _first_of_each(EXAMPLE / "queries.tsv"))
    texts = dict(line.split("\t") for line in (folder / "queries.tsv").read_text(encoding="utf-8").splitlines())
    write("queries.json", json.dumps(texts, indent=1))
    write("queries.jsonl", _lines([{"query_id": key, "text": text} for key, text in texts.items()]))
    write("qrels.txt", _first_of_each(EXAMPLE / "qrels.txt", 99))
    write("real.txt", "".join(f"{text}\n" for text in texts.values()))
    write("reports.jsonl", _lines(_REPORTS))
    write("assignments.jsonl", _lines(_ASSIGNMENTS))
    write("topics.trec", "<top>\n<num> Number: 401\n<title> ports\n<desc> Description:\nWhere?\n</top>\n")
    write("questions.tsv", 'q01\tteam\trun\t1\tWhere, and when?\nq01\tteam\trun\t2\t"Who, or what?"\n')
    write("nuggets-argue.jsonl", _lines(BANKS))
    write("argue.jsonl", _lines(REPORTS))
    header = "".join(f"# {line}\n" for line in _METADATA.format(run="tfidf").splitlines())
    write("annotated.run", f"# ir_metadata.start\n{header}# ir_metadata.end\n{Path('tfidf.run').read_text()}")
    write("topics.jsonl", _lines(_TOPICS))
    write("games.jsonl", _lines(_GAMES))
    write("assessor-games.jsonl", _lines([{**game, "grader": "human:ada"} for game in _GAMES[:3]]))
    for name, rows in _ragdoll().items():
        write(name, _lines(rows))
    write("ragelo-games.csv", _RAGELO_GAMES)
    for name in LINES:
        write(f"{name}.file", text_of(name))
    write("answers.tsv", "query_id\trun_id\ttext\nq01\tx\tLeaves turn red.\nq01\ty\tNo.\nq02\tx\tWalk.\nq02\ty\tRun.\n")
    write("replies.jsonl", _lines(_REPLIES))
    write("verdicts.jsonl", _lines(_VERDICTS))
    write("prompt.toml", _PROMPT)
    write(
        "prices.json", json.dumps({"lexical": {"input": 2.5, "output": 10}, "*": {"input": 1, "output": 1}}, indent=1)
    )

    table = "".join((EXAMPLE / "answers.csv").read_text(encoding="utf-8").splitlines(keepends=True)[:7])
    write("table.csv", table)
    write("table2.csv", table.replace("chlorophyll", "a pigment"))
    cited = [
        {**row, "answer": f"{row['answer']} [1]", "contexts": [row["reference"], "no"]}
        for row in csv.DictReader(io.StringIO(table))
    ]
    write("table.json", json.dumps(cited, indent=1))
    _call("answers", "table.csv", "--model", "lexical", "--folder", "evaluated")

    runs = ["bm25.run", "fusion.run", "tfidf.run"]
    _call("pool", *runs, "-c", "collection", "-k", str(DEPTH), "-o", "passages.jsonl")
    _call("grade", "passages.jsonl", "--bank", "questions.jsonl", "--model", "lexical", "-o", "graded.jsonl",
          "--cache", "cache.sqlite")  # fmt: skip
    _call("grade", "passages.jsonl", "--bank", "nuggetbank.jsonl", "--model", "lexical", "-o", "graded2.jsonl",
          "--cache", "cache2.sqlite")  # fmt: skip
    _call("grade", "graded.jsonl", "--model", "scripted:replies.jsonl", "--prompt", "Thomas", "-o", "direct.jsonl",
          "--query-texts", "queries.tsv", "--cache", "cache3.sqlite")  # fmt: skip
    _call("grade", "--support", "reports.jsonl", "--collection", "collection", "--model", "lexical",
          "-o", "support.jsonl")  # fmt: skip
    _call("convert", "ragdoll-support.jsonl", "--answers", "ragdoll-answers.jsonl", "--to", "support-labels",
          "-o", "labels.jsonl")  # fmt: skip
    _call("grade", "passages.jsonl", "--bank", "questions.jsonl", "--model", "scripted:replies.jsonl",
          "-o", "drawn.jsonl", "--prompt", "prompt.toml", "--replicates", "2", "--temperature", "1",
          "--passages-per-query", "2")  # fmt: skip
    (folder / "graded.jsonl.gz").write_bytes(gzip.compress((folder / "graded.jsonl").read_bytes(), mtime=0))
    (folder / "bm25.run.gz").write_bytes(gzip.compress((folder / "bm25.run").read_bytes(), mtime=0))
    _call("qrels", "graded.jsonl", "--per", "item", "-o", "items.qrels")
    measures = ["RubricCover(rel=4)@5", "RubricQrels(measure='nDCG@5')", "AP"]
    _call("leaderboard", "graded.jsonl", *runs, "-m", *measures, "--format", "json", "--output", "board.json")
    _call("convert", "board.json", "--from", "leaderboard", "--to", "leaderboard:ir_measures",
          "-o", "board-ir_measures.txt")  # fmt: skip
    _call("leaderboard", "graded.jsonl", *runs, "-m", measures[0], "--format", "json", "--output", "one.json")
    _call("check", "one.json", "graded.jsonl", *runs, "--pack", "bundle")
    _call("compare", "one.json", "--rounds", "50", "--format", "json", "-o", "compared.json")
    rows = [line.split() for line in (folder / "board-ir_measures.txt").read_text(encoding="utf-8").splitlines()]
    names = ("run_id", "topic_id", "measure", "value")
    write("board-jsonl.jsonl", _lines([{**dict(zip(names, row, strict=True)), "value": float(row[3])} for row in rows]))
    means = {run: float(value) for run, topic, measure, value in rows if topic == "all" and measure == measures[0]}
    write("board-wide.txt", f"run\t{measures[0]}\n" + "".join(f"{run}\t{value}\n" for run, value in means.items()))
    write("board-dict.json", json.dumps(means, indent=1))
    rows = [row for row in rows if row[0] == "bm25"]
    write("board-trec_eval.txt", "".join(f"{measure}\t{topic}\t{value}\n" for _, topic, measure, value in rows))
    passages = [json.loads(line) for line in (folder / "graded.jsonl").read_text(encoding="utf-8").splitlines()]
    cells = [
        (query, passage["paragraph_id"], next(iter(rating.values())), rating["self_rating"])
        for query, group in passages
        for passage in group[:2]
        for rating in passage["exam_grades"][0]["self_ratings"][:2]
    ]
    with closing(ReviewStore("review.sqlite", load_bank("questions.jsonl"))) as store:
        for query, doc, item, grade in cells:
            mine = 5 - (grade or 0)
            store.grade("bob", CellKey(query, doc, item), mine, grade)
            if mine != grade:
                store.decide("bob", CellKey(query, doc, item), "override", mine, "so")
    query, [passage, *_] = json.loads((folder / "graded2.jsonl").read_text(encoding="utf-8").splitlines()[0])
    rating = passage["exam_grades"][0]["self_ratings"][0]
    with closing(ReviewStore("begun.sqlite", load_bank("nuggetbank.jsonl"))) as store:
        cell = CellKey(query, passage["paragraph_id"], next(iter(rating.values())))
        store.grade("bob", cell, 3, rating["self_rating"])
    _call("review", "graded.jsonl", "--bank", "questions.jsonl", "--state", "review.sqlite", "--export", "exported")
