"""Seeded files to measure scoring with: a collection of the size of TREC DL 2020, assignments of nuggets, large files.

`small` and `large` are the folders that come of it; a folder that is there is left as it is.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

WORDS = [
    f"{a}{b}{c}" for a in ("ka", "lo", "mi", "ru", "te") for b in ("ba", "de", "fo", "gi") for c in ("n", "r", "s")
]
DEPTH, FAILED = 1_000, 0.05
# Queries, passages of one, items, and runs: of TREC DL 2020.
SIZE = 54, 211, 10, 60
RUNS, TOPICS, NUGGETS, LABELS = 45, 300, 20, ("support", "partial_support", "not_support")
# A prime: multiples of a step are different ids.
PRIME = 9_999_991


@dataclass(frozen=True)
class Query:
    """A query, its passages and what graders and systems said of them.

    Attributes:
        query_id: its id.
        item_ids: of its rubric items.
        doc_ids: of its passages.
        labels: of assessors, a passage.
        grades: passages × items, 0 to 5.
        failed: which of the grades failed, in the files that say so.
        order: systems × passages: places of passages, the best one first.
        worth: systems × passages: the scores behind that.
    """

    query_id: str
    item_ids: list[str]
    doc_ids: list[str]
    labels: list[int]
    grades: list[list[int]]
    failed: list[list[bool]]
    order: list[list[int]]
    worth: list[list[float]]


def draw_queries(rng: np.random.Generator, queries: int, passages: int, items: int, systems: int) -> Iterator[Query]:
    """Queries of passages of different quality, ranked by systems of different quality."""
    quality = rng.uniform(0.5, 3.0, (systems, 1))
    for number in range(queries):
        query_id = str(100_000 + 7_919 * number)
        best = rng.beta(1, 3, passages)
        worth = best * quality + rng.normal(size=(systems, passages))
        spread = rng.normal(5 * best[:, None] - 0.8, 1.2, (passages, items))
        yield Query(
            query_id,
            [f"{query_id}/{rng.bytes(16).hex()}" for _ in range(items)],
            [f"{drawn}p{place}" for place, drawn in enumerate(draw_ids(rng, passages))],
            (best * 4).astype(int).tolist(),
            spread.round().clip(0, 5).astype(int).tolist(),
            (rng.random((passages, items)) < FAILED).tolist(),
            (-worth).argsort(axis=1).tolist(),
            worth.tolist(),
        )


def draw_ids(rng: np.random.Generator, count: int) -> list[int]:
    """Different numbers below ten million, in no order."""
    drawn: list[int] = ((rng.integers(PRIME) + rng.integers(1, PRIME) * np.arange(count)) % PRIME).tolist()
    return drawn


def draw_texts(rng: np.random.Generator) -> list[str]:
    """Texts of 55 words without meaning: enough that gzip finds none of them twice in what it looks back at."""
    return [" ".join(words).capitalize() + "." for words in rng.choice(WORDS, (5_000, 55)).tolist()]


def records_line(query: Query, texts: list[str], kept: int, with_failed: bool) -> str:
    """A query as a line of graded records, with the first passages of each run inside."""
    rankings: list[list[dict[str, Any]]] = [[] for _ in query.doc_ids]
    for system, (order, worth) in enumerate(zip(query.order, query.worth, strict=True)):
        for rank, place in enumerate(order[:kept], 1):
            named = {"method": f"sys{system:02d}", "paragraphId": query.doc_ids[place], "queryId": query.query_id}
            rankings[place].append({**named, "rank": rank, "score": round(50 - rank - worth[place] / 100, 6)})
    passages = []
    for place, (doc_id, label) in enumerate(zip(query.doc_ids, query.labels, strict=True)):
        rated = dict(zip(query.item_ids, query.grades[place], strict=True))
        lost = [
            item for item, failed in zip(query.item_ids, query.failed[place], strict=True) if failed and with_failed
        ]
        answers = [[item, "no idea" if item in lost else str(grade)] for item, grade in rated.items()]
        for item in lost:
            del rated[item]
        correct = [item for item, grade in rated.items() if grade > 0]
        grades: dict[str, Any] = {
            "correctAnswered": correct,
            "wrongAnswered": [item for item, grade in rated.items() if grade == 0],
            "answers": answers,
            "llm": "bench",
            "llm_options": {},
            "exam_ratio": len(correct) / len(rated) if rated else 0.0,
            "prompt_info": {"prompt_class": "QuestionSelfRatedUnanswerablePromptWithChoices", "is_self_rated": True},
            "self_ratings": [{"question_id": item, "self_rating": grade} for item, grade in rated.items()],
            "prompt_type": "question",
        }
        if lost:
            grades["item_status"] = dict.fromkeys(lost, "unparsed")
        named = {"paragraphId": doc_id, "query": query.query_id, "titleQuery": query.query_id}
        data = {"judgments": [{**named, "relevance": label}], "rankings": rankings[place]}
        text = texts[(int(query.query_id) + place) % len(texts)]
        passages.append({"paragraph_id": doc_id, "text": text, "paragraph_data": data, "exam_grades": [grades]})
    return json.dumps([query.query_id, passages]) + "\n"


def write_small(folder: Path) -> None:
    """54 queries, 11,394 passages, 10 items, 60 runs without and with tied scores; assignments of nuggets."""
    rng = np.random.default_rng(20)
    texts = draw_texts(rng)
    for kind in ("runs", "tied"):
        (folder / kind).mkdir()
    with (
        gzip.open(folder / "graded.jsonl.gz", "wt", compresslevel=1) as graded,
        gzip.open(folder / "graded-failed.jsonl.gz", "wt", compresslevel=1) as graded_failed,
        open(folder / "items.qrels", "w") as qrels,
    ):
        for query in draw_queries(rng, *SIZE):
            graded.write(records_line(query, texts, 20, False))
            graded_failed.write(records_line(query, texts, 20, True))
            qrels.writelines(
                f"{query.query_id} {item_id} {doc_id} {grade}\n"
                for doc_id, grades in zip(query.doc_ids, query.grades, strict=True)
                for item_id, grade in zip(query.item_ids, grades, strict=True)
            )
            for system, order in enumerate(query.order):
                fresh = draw_ids(rng, DEPTH - len(order))
                doc_ids = [*(query.doc_ids[place] for place in order), *(f"{one}x{n}" for n, one in enumerate(fresh))]
                ranked = [*doc_ids[:15], *(doc_ids[15 + place] for place in rng.permutation(DEPTH - 15).tolist())]
                scores = 50 - np.arange(1, DEPTH + 1) / 25
                for kind, digits, ours in (("runs", 6, scores + rng.random(DEPTH) / 50), ("tied", 1, scores)):
                    with open(folder / kind / f"sys{system:02d}.run", "a") as run:
                        run.write(run_lines(query.query_id, ranked, ours, f"sys{system:02d}", digits))
    write_assignments(folder)


def run_lines(query_id: str, doc_ids: list[str], scores: np.ndarray[Any, Any], run_id: str, digits: int) -> str:
    """Lines of a run file."""
    ranked = enumerate(zip(doc_ids, scores.tolist(), strict=True), 1)
    return "".join(f"{query_id} Q0 {doc_id} {rank} {score:.{digits}f} {run_id}\n" for rank, (doc_id, score) in ranked)


def write_assignments(folder: Path) -> None:
    """Labels of nuggets by every run and topic, lines in no order; the second file has labels that failed."""
    draw = random.Random(0)
    banks = {
        f"2024-{topic}": [
            {
                "text": f"fact {place} of topic {topic} in about ten words of text",
                "importance": draw.choice(["vital", "okay"]),
            }
            for place in range(NUGGETS)
        ]
        for topic in range(TOPICS)
    }
    pairs = [(run, topic) for run in range(RUNS) for topic in banks]
    draw.shuffle(pairs)
    with open(folder / "assignments.jsonl", "w") as whole, open(folder / "assignments-failed.jsonl", "w") as failed:
        for run, topic in pairs:
            answer = {"answer_text": "word " * 200, "response_length": 200}
            row = {"query": f"query {topic}", "qid": topic, "run_id": f"run{run:02d}", **answer}
            labels = draw.choices(LABELS, k=NUGGETS)
            lost = [label if draw.random() >= FAILED else "failed" for label in labels]
            for stream, ours in ((whole, labels), (failed, lost)):
                nuggets = [{**one, "assignment": label} for one, label in zip(banks[topic], ours, strict=True)]
                stream.write(json.dumps({**row, "nuggets": nuggets}) + "\n")


def write_large(folder: Path) -> None:
    """A million graded passages, a line a query; qrels and a run of five million lines each."""
    rng = np.random.default_rng(21)
    texts = draw_texts(rng)
    with gzip.open(folder / "million.jsonl.gz", "wt", compresslevel=1) as graded:
        for query in draw_queries(rng, 1_000, 1_000, 5, 10):
            graded.write(records_line(query, texts, 100, False))
    scores = 50 - np.arange(1, DEPTH + 1) / 25
    with open(folder / "labels.qrels", "w") as qrels, open(folder / "ranked.run", "w") as run:
        for number in range(5_000):
            query_id = str(100_000 + 7_919 * number)
            doc_ids = list(map(str, draw_ids(rng, DEPTH + DEPTH // 2)))
            labels = rng.binomial(3, 0.15, DEPTH).tolist()
            lines = zip(doc_ids[:DEPTH], labels, strict=True)
            qrels.write("".join(f"{query_id} 0 {doc_id} {label}\n" for doc_id, label in lines))
            ranked = [doc_ids[place] for place in rng.permutation(len(doc_ids))[:DEPTH].tolist()]
            run.write(run_lines(query_id, ranked, scores + rng.random(DEPTH) / 50, "bench", 6))


def generate(folder: Path, write: Callable[[Path], None]) -> None:
    """Writes a folder, unless it is there: whole, or not at all under its name."""
    if not folder.exists():
        half = folder.with_name(folder.name + ".part")
        half.mkdir(parents=True)
        write(half)
        half.rename(folder)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--large", action="store_true", help="write the large files, too")
    options = parser.parse_args()
    generate(options.folder / "small", write_small)
    if options.large:
        generate(options.folder / "large", write_large)
