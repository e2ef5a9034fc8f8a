"""How fast the review page answers with 10,000 passages × 20 items: `python -m benchmarks.review`."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx

QUERIES, PASSAGES, ITEMS, RUNS, ROUNDS = 50, 200, 20, 20, 15


def _entry(rng: random.Random, ids: list[str], llm: str) -> dict[str, Any]:
    grades = {item_id: rng.choice((0, 0, 1, 2, 4, 5)) for item_id in ids}
    return {
        "correctAnswered": [item_id for item_id, grade in grades.items() if grade],
        "wrongAnswered": [item_id for item_id, grade in grades.items() if not grade],
        "answers": [[item_id, str(grade)] for item_id, grade in grades.items()],
        "llm": llm,
        "llm_options": {},
        "exam_ratio": 0.5,
        "prompt_info": {"prompt_class": "P"},
        "self_ratings": [{"question_id": item_id, "self_rating": grade} for item_id, grade in grades.items()],
        "prompt_type": "question",
    }


def make_files(folder: Path, queries: int = QUERIES) -> None:
    """Writes graded.jsonl and bank.jsonl: two graders, rankings of twenty runs, passages of 150 words."""
    rng = random.Random(0)
    words = [f"word{number}" for number in range(3000)]
    with (folder / "graded.jsonl").open("w") as graded, (folder / "bank.jsonl").open("w") as bank:
        for number in range(queries):
            query_id = f"q{number:02}"
            ids = [f"{query_id}/{item}" for item in range(ITEMS)]
            items = [
                {"query_id": query_id, "question_id": item_id, "question_text": " ".join(rng.choices(words, k=9))}
                for item_id in ids
            ]
            bank.write(json.dumps({"query_id": query_id, "query_text": f"query {number}", "items": items}) + "\n")
            places: dict[int, list[dict[str, Any]]] = {}
            for run in range(RUNS):
                for rank, doc in enumerate(rng.sample(range(PASSAGES), 50), 1):
                    ranking = {"method": f"run{run}", "paragraphId": f"{query_id}-d{doc}", "queryId": query_id}
                    places.setdefault(doc, []).append({**ranking, "rank": rank, "score": 1.0 / rank})
            passages = [
                {
                    "paragraph_id": f"{query_id}-d{doc}",
                    "text": " ".join(rng.choices(words, k=150)),
                    "paragraph_data": {"judgments": [], "rankings": places.get(doc, [])},
                    "exam_grades": [_entry(rng, ids, "one"), _entry(rng, ids, "two")],
                }
                for doc in range(PASSAGES)
            ]
            graded.write(json.dumps([query_id, passages]) + "\n")


def _start(folder: Path) -> tuple[subprocess.Popen[str], str]:
    command = [sys.executable, "-m", "rubric_measures", "review", str(folder / "graded.jsonl")]
    command += ["--bank", str(folder / "bank.jsonl"), "--port", "0", "--person", "ada"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    for line in process.stderr:
        found = re.search(r"http://\S+", line)
        if found:
            return process, found.group()
    raise SystemExit("the server did not start")


def main() -> None:
    """Prints the median and the largest answer time of every screen; a person grades before each request."""
    rng = random.Random(1)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_files(folder)
        begin = time.perf_counter()
        process, url = _start(folder)
        print(f"started in {time.perf_counter() - begin:.1f} s")
        with httpx.Client(base_url=url, trust_env=False, timeout=60) as client:
            token = re.search(r'name="form_token" value="(\w+)"', client.get("/person").text)
            assert token is not None

            def cell() -> dict[str, str]:
                query = f"q{rng.randrange(QUERIES):02}"
                return {
                    "q": query,
                    "d": f"{query}-d{rng.randrange(PASSAGES)}",
                    "i": f"{query}/{rng.randrange(ITEMS)}",
                }

            def grade() -> float:
                data = {"form_token": token.group(1), **cell(), "order": "disagreement", "grade": rng.choice("012345")}
                start = time.perf_counter()
                assert client.post("/grade", data=data).status_code == 303
                return time.perf_counter() - start

            for _ in range(500):
                grade()
            screens = {
                **{f"queue, {order}": f"/?order={order}" for order in ("disagreement", "influence", "audit", "query")},
                **{name: f"/{name}" for name in ("bank", "impact", "progress", "export")},
            }
            times: dict[str, list[float]] = {"grade": [grade() for _ in range(ROUNDS)]}
            for name, path in screens.items():
                for _ in range(ROUNDS):
                    grade()
                    start = time.perf_counter()
                    assert client.get(path).status_code == 200
                    times.setdefault(name, []).append(time.perf_counter() - start)
            for _ in range(ROUNDS):
                grade()
                start = time.perf_counter()
                assert client.get("/check", params={**cell(), "order": "disagreement"}).status_code == 200
                times.setdefault("check", []).append(time.perf_counter() - start)
        process.kill()
        process.wait()
        for name, values in times.items():
            print(
                f"{name:22} median {1000 * sorted(values)[len(values) // 2]:6.0f} ms, max {1000 * max(values):6.0f} ms"
            )


if __name__ == "__main__":
    main()
