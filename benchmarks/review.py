"""How fast the review page answers with 10,000 passages × 20 items: `python -m benchmarks.review`.

Beside the wall time of each answer stands the processor time that the server took for it: the machine may be busy.
"""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
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


def _seconds(pid: int) -> float:
    """The processor time that a process has used (Linux)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _wait_until_idle(pid: int) -> None:
    """Returns when the process used no processor time for 30 ms."""
    used = -1.0
    while (now := _seconds(pid)) != used:
        used = now
        time.sleep(0.03)


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
            times: dict[str, list[tuple[float, float]]] = {}

            def measure(name: str, ask: Callable[[int], httpx.Response], status: int = 200) -> None:
                for number in range(ROUNDS):
                    grade()
                    # What the server does after the answer is not part of the next one.
                    _wait_until_idle(process.pid)
                    used, start = _seconds(process.pid), time.perf_counter()
                    answer = ask(number)
                    took = time.perf_counter() - start
                    times.setdefault(name, []).append((took, _seconds(process.pid) - used))
                    assert answer.status_code == status, (name, answer.text)

            form = {"form_token": token.group(1), "order": "disagreement"}
            measure("grade", lambda _: client.post("/grade", data={**form, **cell(), "grade": "3"}), 303)
            for order in ("disagreement", "influence", "audit", "query"):
                measure(f"queue, {order}", lambda _, order=order: client.get("/", params={"order": order}))
                measure(
                    f"check, {order}", lambda _, order=order: client.get("/check", params={**cell(), "order": order})
                )
            measure(
                "queue, new seed", lambda number: client.get("/", params={"order": "audit", "seed": str(number + 1)})
            )
            measure("queue, one query", lambda number: client.get("/", params={"query": f"q{number:02}"}))
            measure("queue as a page", lambda _: client.get("/queue.html", params={"order": "audit"}))
            for name in ("bank", "impact", "progress", "export"):
                measure(name, lambda _, name=name: client.get(f"/{name}"))
            edit = {**form, "edit": "item_edit", "query": "q01"}
            measure(
                "edit",
                lambda number: client.post(
                    "/bank", data={**edit, "key": f"q01/{number}", "version": "0", "text": f"new {number}?"}
                ),
                303,
            )
            measure("impact, edited", lambda _: client.get("/impact"))
            measure("impact, one query", lambda _: client.get("/impact", params={"query": "q01"}))
            measure("undo", lambda _: client.post("/undo", data=form), 303)
        process.kill()
        process.wait()
        print(f"load of the machine: {os.getloadavg()[0]:.1f}")
        for name, values in times.items():
            wall, used = (sorted(1000 * one for one in column) for column in zip(*values, strict=True))
            half = len(wall) // 2
            print(
                f"{name:22} median {wall[half]:6.0f} ms, max {wall[-1]:6.0f} ms; "
                f"processor median {used[half]:6.0f} ms, max {used[-1]:6.0f} ms"
            )


if __name__ == "__main__":
    main()
