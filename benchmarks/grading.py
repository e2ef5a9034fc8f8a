"""Grading, whole processes: a first run, fully cached re-runs of 11,400 passages × 20 items, loading the result."""

from __future__ import annotations

import argparse
import gc
import json
import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from rubric_measures.base.files import iter_lines
from rubric_measures.formats.banks import write_bank
from rubric_measures.measures.loading import load_records
from rubric_measures.records.models import GradedPassage, QueryPassages, load_graded, write_graded
from rubric_measures.types.entities import RubricItem
from tests.example_records import bank_from_items

QUERIES, PASSAGES, ITEMS, WORDS = 54, 11_400, 20, 60


class Measured(NamedTuple):
    """One process: wall seconds, its own CPU seconds, peak memory in MB."""

    wall: float
    cpu: float
    peak: float


def generate(folder: Path, seed: int = 1) -> None:
    """Passages without grades, a bank, and a table that answers every prompt with "3"."""
    draw = random.Random(seed)
    words = ["".join(draw.choices("abcdefghijklmnoprstuv", k=draw.randint(2, 9))) for _ in range(5000)]

    def text(count: int) -> str:
        return " ".join(draw.choices(words, k=count))

    def passages(query: int) -> list[GradedPassage]:
        count = PASSAGES // QUERIES + (query < PASSAGES % QUERIES)
        return [GradedPassage(doc_id=f"d{query}-{number}", text=text(WORDS) + ".") for number in range(count)]

    write_graded(
        folder / "passages.jsonl.gz", (QueryPassages(f"q{query}", passages(query)) for query in range(QUERIES))
    )
    items = [
        RubricItem(f"q{query}/{number}", f"q{query}", f"What is {text(8)}?")
        for query in range(QUERIES)
        for number in range(ITEMS)
    ]
    write_bank(folder / "bank.jsonl", bank_from_items(items))
    (folder / "table.jsonl").write_text('{"reply": "3"}\n', encoding="utf-8")


def measure(command: list[str]) -> Measured:
    """Runs Python with arguments in a process of its own."""
    began = time.perf_counter()
    with subprocess.Popen([sys.executable, *command], stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        note = process.stderr.read().decode()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if status:
        raise SystemExit(note)
    return Measured(time.perf_counter() - began, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def middle(command: list[str], repeats: int) -> Measured:
    """The medians of some runs."""
    return Measured(*(statistics.median(values) for values in zip(*map(measure, [command] * repeats), strict=True)))


def load(path: Path, repeats: int) -> None:
    """Prints what reading the records takes, beside what JSON alone takes; CPU seconds in one process, the shortest."""
    ways: dict[str, Callable[[], object]] = {
        "json.loads of every line": lambda: [json.loads(line) for _, line in iter_lines(path)],
        "load_graded": lambda: load_graded(path),
        "load_records": lambda: load_records(path),
    }
    spent: dict[str, list[float]] = {name: [] for name in ways}
    for name, way in [*ways.items()] * repeats:
        gc.collect()
        began = time.process_time()
        kept = way()
        spent[name].append(time.process_time() - began)
        del kept
    for name, found in spent.items():
        print(f"{path.name}, {name}: {min(found):.2f} s CPU", flush=True)


def main() -> None:
    """Prints a line a measurement."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="where inputs, cache and outputs go (kept)")
    parser.add_argument("--repeats", type=int, default=5)
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    if not (args.folder / "table.jsonl").exists():
        generate(args.folder)
    for name, model in (("self-rating", f"scripted:{args.folder / 'table.jsonl'}"), ("lexical", "lexical")):
        command = [
            "-m",
            "rubric_measures",
            "grade",
            str(args.folder / "passages.jsonl.gz"),
            "--bank",
            str(args.folder / "bank.jsonl"),
        ]
        command += ["--model", model, "--cache", str(args.folder / f"{name}.sqlite")]
        out = ["-o", str(args.folder / f"{name}.jsonl.gz")]
        for what, repeats in (("first run", 1), ("cached re-run", args.repeats)):
            if what == "first run" and (args.folder / f"{name}.sqlite").exists():
                continue
            found = middle([*command, *out], repeats)
            calls = PASSAGES * ITEMS
            print(
                f"{name}, {what}: {found.wall:.1f} s wall, {found.cpu:.1f} s CPU, {found.peak:.0f} MB, "
                f"{calls / found.cpu:,.0f} grades a CPU second",
                flush=True,
            )
    # Last: a child's peak memory begins with that of its parent.
    load(args.folder / "self-rating.jsonl.gz", args.repeats)


if __name__ == "__main__":
    main()
