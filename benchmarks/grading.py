"""Grading, whole processes: a first run and fully cached re-runs of 11,400 passages × 20 items; time and memory."""

from __future__ import annotations

import argparse
import os
import random
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

from rubric_measures.formats.bank import bank_entries, write_bank
from rubric_measures.formats.workbench import GradedPassage, QueryPassages, write_graded
from rubric_measures.records import RubricItem, TestBank

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
    write_bank(folder / "bank.jsonl", bank_entries(TestBank.from_items(items), test_collection="benchmark"))
    (folder / "table.jsonl").write_text('{"reply": "3"}\n', encoding="utf-8")


def measure(command: list[str]) -> Measured:
    """Runs a command of ours in a process of its own."""
    began = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-m", "rubric_measures", *command], stderr=subprocess.PIPE)
    assert process.stderr is not None
    note = process.stderr.read().decode()
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(note)
    return Measured(time.perf_counter() - began, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


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
        command = ["grade", str(args.folder / "passages.jsonl.gz"), "--bank", str(args.folder / "bank.jsonl")]
        command += ["--model", model, "--cache", str(args.folder / f"{name}.sqlite")]
        out = ["-o", str(args.folder / f"{name}.jsonl.gz")]
        for what, repeats in (("first run", 1), ("cached re-run", args.repeats)):
            if what == "first run" and (args.folder / f"{name}.sqlite").exists():
                continue
            runs = [measure([*command, *out]) for _ in range(repeats)]
            middle = Measured(*(statistics.median(values) for values in zip(*runs, strict=True)))
            calls = PASSAGES * ITEMS
            print(
                f"{name}, {what}: {middle.wall:.1f} s wall, {middle.cpu:.1f} s CPU, {middle.peak:.0f} MB, "
                f"{calls / middle.cpu:,.0f} grades a CPU second",
                flush=True,
            )


if __name__ == "__main__":
    main()
