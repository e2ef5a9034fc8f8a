"""A small graded-records file with systems of known scores, for tests of what reads records."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from rubric_measures.types.entities import RubricItem, TestBank

Grades = dict[str, int]


def grade_set(
    ratings: Grades,
    *,
    llm: str = "model",
    prompt: str = "QuestionSelfRatedUnanswerablePromptWithChoices",
    kind: str = "question",
    status: dict[str, str] | None = None,
) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "correctAnswered": [item for item, grade in ratings.items() if grade > 0],
        "wrongAnswered": [item for item, grade in ratings.items() if grade == 0],
        "answers": [[item, str(grade)] for item, grade in ratings.items()],
        "llm": llm,
        "llm_options": {},
        "exam_ratio": 0.5,
        "prompt_info": {"prompt_class": prompt},
        "self_ratings": [{f"{kind}_id": item, "self_rating": grade} for item, grade in ratings.items()],
        "prompt_type": kind,
    }
    if status:
        entry["item_status"] = status
    return entry


def passage(
    query_id: str,
    doc_id: str,
    grades: list[dict[str, Any]],
    ranks: dict[str, int] | None = None,
    judgment: int | None = None,
    direct: list[dict[str, Any]] | None = None,
) -> dict[str, Any]:
    rankings = [
        {"method": method, "paragraphId": doc_id, "queryId": query_id, "rank": rank, "score": 10.0 - rank}
        for method, rank in (ranks or {}).items()
    ]
    judgments = [] if judgment is None else [{"paragraphId": doc_id, "query": query_id, "relevance": judgment}]
    return {
        "paragraph_id": doc_id,
        "text": f"Text of {doc_id}.",
        "paragraph_data": {"judgments": judgments, "rankings": rankings},
        "exam_grades": grades,
        "grades": direct or [],
    }


# Two queries. q1 has items a, b, c; system one ranks d1, d2; system two ranks d2. q2 has item a; only one ranks it.
RECORDS: list[list[Any]] = [
    [
        "q1",
        [
            passage("q1", "d1", [grade_set({"q1/a": 4, "q1/b": 1, "q1/c": 0})], {"one": 1}, 2),
            passage("q1", "d2", [grade_set({"q1/a": 0, "q1/b": 5, "q1/c": 0})], {"one": 2, "two": 1}, 0),
        ],
    ],
    ["q2", [passage("q2", "d3", [grade_set({"q2/a": 5})], {"one": 1}, 3)]],
]

BANK: list[dict[str, Any]] = [
    {
        "query_id": query_id,
        "query_text": f"Query {query_id}?",
        "items": [
            {"query_id": query_id, "question_id": f"{query_id}/{item}", "question_text": f"What is {item}?", **more}
            for item, more in items.items()
        ],
    }
    for query_id, items in {
        "q1": {
            "a": {"importance": "vital"},
            "b": {"importance": "okay"},
            "c": {"importance": "okay"},
            "d": {"importance": "vital"},
        },
        "q2": {"a": {"importance": "vital"}},
        "q3": {"a": {"importance": "vital"}},
    }.items()
]

RUNS = {
    "alpha": "q1 Q0 d1 1 9.5 alpha\nq1 Q0 d2 2 9 alpha\nq2 Q0 d9 1 3 alpha\nq2 Q0 d3 2 2 alpha\n",
    "beta": "q1 Q0 d2 1 1.5 beta\n",
}


def write_text(path: Path, text: str) -> Path:
    """Writes text as it is, line ends too; gzipped by name."""
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


def write_lines(path: Path, lines: Iterable[Any]) -> Path:
    return write_text(path, "".join(json.dumps(line) + "\n" for line in lines))


def read_lines(path: Path) -> list[Any]:
    data = path.read_bytes()
    return [json.loads(line) for line in (gzip.decompress(data) if path.suffix == ".gz" else data).splitlines()]


def write_all(folder: Path) -> Path:
    """graded.jsonl.gz, bank.jsonl, alpha.run, beta.run, qrels.txt."""
    write_lines(folder / "graded.jsonl.gz", RECORDS)
    write_lines(folder / "bank.jsonl", BANK)
    for name, text in RUNS.items():
        (folder / f"{name}.run").write_text(text)
    (folder / "qrels.txt").write_text("q1 0 d1 2\nq1 0 d2 0\nq2 0 d3 3\n")
    return folder


def board_file(cells: Mapping[str, Mapping[str, Any]], **more: Any) -> str:
    """A board as JSON: run -> what its cell by the measure V says."""
    usual = {"mean": 0.5, "standard_error": 0.1, "queries": 1, "coverage": 0.9, "failed": 0, "per_query": {}}
    runs = [{"run_id": run, "missing_queries": [], "measures": {"V": {**usual, **cell}}} for run, cell in cells.items()]
    said = {"format": "rubric_measures leaderboard 1", "measures": ["V"], "runs": runs, "settings": {}}
    return json.dumps({**said, "signature": "", "signature_hash": "", **more})


def bank_from_items(items: Iterable[RubricItem], query_texts: Mapping[str, str] | None = None) -> TestBank:
    """A bank of items in any order; the order inside a query is kept."""
    grouped: dict[str, list[RubricItem]] = {}
    for item in items:
        grouped.setdefault(item.query_id, []).append(item)
    return TestBank({query_id: tuple(members) for query_id, members in grouped.items()}, dict(query_texts or {}))
