"""What it costs to find the texts of a pool in a large file of documents, beside a loop over the lines of that file."""

from __future__ import annotations

import argparse
import json
import random
import sys
from pathlib import Path

from benchmarks.measures import PROGRAM, Work, measure_in_turns

LOOP = "import sys\nfor line in open(sys.argv[1]):\n    pass"
WORDS = 56


def generate(folder: Path, passages: int, queries: int, depth: int) -> None:
    """Passages as JSON lines, as one JSON list and as TSV, a run, and a file of the passages that it has."""
    random.seed(1)
    words = [f"w{number:04d}" for number in range(5_000)]
    pooled = [random.sample(range(passages), depth) for _ in range(queries)]
    wanted = {number for ranking in pooled for number in ranking}
    with (
        (folder / "docs.jsonl").open("w") as objects,
        (folder / "docs.tsv").open("w") as columns,
        (folder / "wanted.tsv").open("w") as few,
    ):
        for number in range(passages):
            text = " ".join(random.choices(words, k=WORDS))
            objects.write(json.dumps({"doc_id": f"d{number}", "text": text}) + "\n")
            for stream in (columns, few) if number in wanted else (columns,):
                stream.write(f"d{number}\t{text}\n")
    with (folder / "docs.jsonl").open() as lines, (folder / "docs.json").open("w") as listed:
        for number, line in enumerate(lines):
            listed.write(("," if number else "[") + line.rstrip("\n"))
        listed.write("]\n")
    with (folder / "pooled.run").open("w") as run:
        for query, ranking in enumerate(pooled):
            for rank, number in enumerate(ranking, 1):
                run.write(f"q{query} Q0 d{number} {rank} {depth - rank} r\n")


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--passages", type=int, default=600_000)
    parser.add_argument("--repeats", type=int, default=5, help="turns (default 5)")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    generate(options.folder, options.passages, 20, 20)
    works = []
    for name, file in (
        ("JSON lines", "docs.jsonl"),
        ("one JSON list", "docs.json"),
        ("TSV", "docs.tsv"),
        ("the wanted passages alone, TSV", "wanted.tsv"),
    ):
        path, output = str(options.folder / file), str(options.folder / "out.jsonl")
        floor = Work("`for line in open(path)`", (sys.executable, "-c", LOOP, path))
        run = str(options.folder / "pooled.run")
        works.append(Work(name, (*PROGRAM, "pool", run, "-c", path, "-o", output), floor))
    costs = measure_in_turns(works, options.repeats)
    print("| documents | loop, CPU s | `pool`, CPU s | MB |\n|---|---|---|---|")
    for work in works:
        assert work.beside is not None
        cost, floor_cost = costs[work.command], costs[work.beside.command]
        print(f"| {work.name} | {floor_cost.cpu:.2f} | {cost.cpu:.2f} | {cost.peak:.0f} |")


if __name__ == "__main__":
    main()
