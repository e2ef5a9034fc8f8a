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
# So many grades are given before anything is measured; so many seconds without work are idle.
GIVEN, IDLE = 500, 0.3


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


def make_files(folder: Path) -> None:
    """Writes graded.jsonl and bank.jsonl: two graders, rankings of twenty runs, passages of 150 words."""
    rng = random.Random(0)
    words = [f"word{number}" for number in range(3000)]
    with (folder / "graded.jsonl").open("w") as graded, (folder / "bank.jsonl").open("w") as bank:
        for number in range(QUERIES):
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
    command += ["--bank", str(folder / "bank.jsonl"), "--bind", "127.0.0.1:0"]
    command += ["--assessor", "ada", "--grader", "model=one,scale=0-5:4"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    said = []
    for line in process.stderr:
        said.append(line)
        found = re.search(r"http://\S+", line)
        if found:
            return process, found.group()
    process.communicate()
    raise SystemExit(f"the server did not start: {''.join(said)}")


def _seconds(pid: int) -> float:
    """The processor time that a process has used (Linux)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _wait_until_idle(pid: int) -> None:
    """Returns when the process used no processor time for a while."""
    used = -1.0
    while (now := _seconds(pid)) != used:
        used = now
        time.sleep(IDLE)


class _Visitor:
    """An assessor at the page, who may have a new server at the same records and state."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.rng = folder, random.Random(1)
        self.start()

    def start(self) -> None:
        begin = time.perf_counter()
        self.process, url = _start(self.folder)
        print(f"started in {time.perf_counter() - begin:.1f} s ({_seconds(self.process.pid):.1f} s of the processor)")
        self.client = httpx.Client(base_url=url.partition("?")[0], trust_env=False, timeout=60)
        # The token of the link is shown once.
        self.client.get(url)
        token = re.search(r'name="form_token" value="(\w+)"', self.client.get("/person").text)
        assert token is not None
        self.form = {"form_token": token.group(1), "order": "query"}

    def stop(self) -> None:
        self.client.close()
        self.process.kill()
        self.process.communicate()

    def cell(self) -> dict[str, str]:
        rng = self.rng
        query = f"q{rng.randrange(QUERIES):02}"
        return {"q": query, "d": f"{query}-d{rng.randrange(PASSAGES)}", "i": f"{query}/{rng.randrange(ITEMS)}"}

    def grade(self) -> httpx.Response:
        return self.post("/grade", **self.cell(), grade=self.rng.choice("012345"))

    def get(self, path: str, **fields: str) -> httpx.Response:
        return self.client.get(path, params=fields)

    def post(self, path: str, **fields: str) -> httpx.Response:
        return self.client.post(path, data={**self.form, **fields})

    def timed(self, ask: Callable[[], httpx.Response], status: int = 200) -> tuple[float, float]:
        """Wall time and processor time of an answer, in milliseconds."""
        _wait_until_idle(self.process.pid)
        used, start = _seconds(self.process.pid), time.perf_counter()
        answer = ask()
        took = time.perf_counter() - start
        # A queue without grades leads nowhere: the first screen comes.
        assert answer.status_code in (status, 200), answer.text
        return 1000 * took, 1000 * (_seconds(self.process.pid) - used)


def _screens(visitor: _Visitor) -> dict[str, tuple[Callable[[int], httpx.Response], int]]:
    """What is measured: name -> (the n-th request, the status of its answer)."""
    get, post, cell = visitor.get, visitor.post, visitor.cell
    found: dict[str, tuple[Callable[[int], httpx.Response], int]] = {}
    for order in ("audit", "query"):
        found[f"queue, {order}"] = lambda _, order=order: get("/", order=order), 303
        found[f"check, {order}"] = lambda _, order=order: get("/check", order=order, **cell()), 200
    found["bank"] = lambda n: get("/bank", query=f"q{n:02}"), 200
    for name in ("progress", "export"):
        found[name] = lambda _, name=name: get(f"/{name}"), 200
    found["grade"] = lambda _: visitor.grade(), 303
    # As a browser does: the page that the answer names is asked for at once.
    found["grade, then check"] = lambda _: visitor.client.get(visitor.grade().headers["location"]), 200
    edit = {"edit": "item_edit", "query": "q01", "version": "0"}
    found["edit"] = lambda n: post("/bank", **edit, key=f"q01/{n}", text=f"new {n}?"), 303
    # Queues are made anew when an item leaves the bank, another one each time.
    gone = {"edit": "item_retire", "version": "0"}
    for place, order in enumerate(("audit", "query"), 2):
        found[f"retire, then queue, {order}"] = (
            lambda n, order=order, query=f"q0{place}": (
                post("/bank", **gone, query=query, key=f"{query}/{n}"),
                get("/", order=order),
            )[1],
            303,
        )
    found["undo"] = lambda _: post("/undo"), 303
    return found


def main() -> None:
    """Prints the first, median and largest answer time of every screen; an assessor grades before each request."""
    with tempfile.TemporaryDirectory() as name:
        make_files(Path(name))
        visitor = _Visitor(Path(name))
        for _ in range(GIVEN):
            visitor.grade()
        # A new server at a state with 500 grades: each screen is looked at for the first time.
        visitor.stop()
        visitor.start()
        screens = _screens(visitor)
        first = {screen: visitor.timed(lambda ask=ask: ask(0), status) for screen, (ask, status) in screens.items()}
        times: dict[str, list[tuple[float, float]]] = {}
        for screen, (ask, status) in screens.items():
            for number in range(1, ROUNDS + 1):
                visitor.grade()
                times.setdefault(screen, []).append(visitor.timed(lambda ask=ask, n=number: ask(n), status))
        visitor.stop()
    print(f"load of the machine: {os.getloadavg()[0]:.1f}; milliseconds, wall (processor)")
    print(f"{'':32}{'first look':>14}{'median':>14}{'worst':>14}")
    for screen, values in times.items():
        wall, used = (sorted(column) for column in zip(*values, strict=True))
        cells = [first[screen], (wall[len(wall) // 2], used[len(used) // 2]), (wall[-1], used[-1])]
        print(f"{screen:32}" + "".join(f"{took:8.0f} ({spent:3.0f})" for took, spent in cells))
    slowest = max((took, screen) for screen, values in times.items() for took, _ in [*values, first[screen]])
    print(f"slowest: {slowest[1]}, {slowest[0]:.0f} ms")


if __name__ == "__main__":
    main()
