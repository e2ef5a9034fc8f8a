"""A seeded generator of graded records, item qrels, banks and runs at TREC DL 2020 scale, and at multiples of it."""

from __future__ import annotations

import argparse
import gzip
import json
import random
from pathlib import Path

QUERIES, ITEMS, SYSTEMS, DEPTH, PASSAGES = 54, 10, 60, 1000, 11_400
WORDS = [
    f"{a}{b}{c}" for a in ("ka", "lo", "mi", "ru", "te") for b in ("ba", "de", "fo", "gi") for c in ("n", "r", "s")
]


def sentence(rng: random.Random, words: int) -> str:
    """Words without meaning."""
    return " ".join(rng.choices(WORDS, k=words)).capitalize() + "."


def generate(folder: Path, scale: int = 1, seed: int = 20, runs: bool = True, items: int = ITEMS) -> None:
    """Writes graded.jsonl.gz, items.qrels, bank.jsonl and runs/*.run.

    Args:
        folder: where to.
        scale: multiplies the passages of each query; queries, items and runs stay.
        seed: of the generator.
        runs: also write the 60 run files of 1,000 documents a query.
        items: rubric items a query.
    """
    rng = random.Random(seed)
    folder.mkdir(parents=True, exist_ok=True)
    per_query = PASSAGES * scale // QUERIES
    quality = [rng.uniform(0.5, 3.0) for _ in range(SYSTEMS)]
    run_files = []
    if runs:
        (folder / "runs").mkdir(exist_ok=True)
        run_files = [open(folder / "runs" / f"sys{s:02d}.run", "w") for s in range(SYSTEMS)]  # noqa: SIM115
    with (
        gzip.open(folder / "graded.jsonl.gz", "wt", compresslevel=1) as graded,
        open(folder / "items.qrels", "w") as qrels,
        open(folder / "bank.jsonl", "w") as bank,
    ):
        for q in range(QUERIES):
            query_id = str(100_000 + 7_919 * q)
            item_ids = [f"{query_id}/{rng.getrandbits(128):032x}" for _ in range(items)]
            questions = [
                {"query_id": query_id, "question_id": item_id, "question_text": sentence(rng, 9)}
                for item_id in item_ids
            ]
            entry = {
                "query_id": query_id,
                "query_text": sentence(rng, 6),
                "test_collection": "bench",
                "items": questions,
            }
            bank.write(json.dumps(entry) + "\n")
            doc_ids = [f"{rng.randrange(10_000_000)}p{index}" for index in range(per_query)]
            best = {doc_id: rng.betavariate(1, 3) for doc_id in doc_ids}
            tops = {doc_id: [] for doc_id in doc_ids}  # type: dict[str, list[dict[str, object]]]
            for s in range(SYSTEMS):
                scores = {doc_id: best[doc_id] * quality[s] + rng.gauss(0, 1) for doc_id in doc_ids}
                order = sorted(doc_ids, key=scores.__getitem__, reverse=True)
                for rank, doc_id in enumerate(order[:20], 1):
                    place = {"method": f"sys{s:02d}", "paragraphId": doc_id, "queryId": query_id}
                    tops[doc_id].append({**place, "rank": rank, "score": round(50 - rank - scores[doc_id] / 100, 6)})
                if runs:
                    ranked = order[: DEPTH // 3]
                    ranked += [f"{rng.randrange(10_000_000)}x{index}" for index in range(DEPTH - len(ranked))]
                    head, tail = ranked[:15], ranked[15:]
                    rng.shuffle(tail)
                    lines = [
                        f"{query_id} Q0 {doc_id} {rank} {50 - rank / 25 + rng.random() / 50:.6f} sys{s:02d}\n"
                        for rank, doc_id in enumerate([*head, *tail], 1)
                    ]
                    run_files[s].write("".join(lines))
            passages = []
            for doc_id in doc_ids:
                level = best[doc_id]
                ratings = [min(5, max(0, round(rng.gauss(5 * level - 0.8, 1.2)))) for _ in item_ids]
                qrels.writelines(
                    f"{query_id} {item_id} {doc_id} {rating}\n"
                    for item_id, rating in zip(item_ids, ratings, strict=True)
                )
                passages.append(_passage(rng, query_id, doc_id, item_ids, ratings, tops[doc_id], level))
            graded.write(json.dumps([query_id, passages]) + "\n")
    for file in run_files:
        file.close()


def _passage(
    rng: random.Random,
    query_id: str,
    doc_id: str,
    item_ids: list[str],
    ratings: list[int],
    rankings: list[dict[str, object]],
    level: float,
) -> dict[str, object]:
    rated = list(zip(item_ids, ratings, strict=True))
    correct = [item_id for item_id, rating in rated if rating > 0]
    return {
        "paragraph_id": doc_id,
        "text": sentence(rng, 55),
        "paragraph_data": {
            "judgments": [
                {"paragraphId": doc_id, "query": query_id, "relevance": int(level * 4), "titleQuery": query_id}
            ],
            "rankings": rankings,
        },
        "exam_grades": [
            {
                "correctAnswered": correct,
                "wrongAnswered": [item_id for item_id, rating in rated if rating == 0],
                "answers": [[item_id, str(rating)] for item_id, rating in rated],
                "llm": "bench",
                "llm_options": {},
                "exam_ratio": len(correct) / len(rated),
                "prompt_info": {
                    "prompt_class": "QuestionSelfRatedUnanswerablePromptWithChoices",
                    "is_self_rated": True,
                },
                "self_ratings": [{"question_id": item_id, "self_rating": rating} for item_id, rating in rated],
                "prompt_type": "question",
            }
        ],
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--scale", type=int, default=1)
    parser.add_argument("--items", type=int, default=ITEMS)
    parser.add_argument("--no-runs", action="store_true")
    options = parser.parse_args()
    generate(options.folder, options.scale, runs=not options.no_runs, items=options.items)
