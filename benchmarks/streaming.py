"""Scoring in a stream: whole processes over a million passages × 20 items, grouped by query and not: time, memory."""

from __future__ import annotations

import argparse
import gzip
import random
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from benchmarks.generate_collection import generate
from benchmarks.measures import COVER, measure

READING_JSON = """
import gzip, json, sys
for line in gzip.open(sys.argv[1]):
    json.loads(line)
"""


def shuffle(source: Path, target: Path, seed: int = 1) -> None:
    """Writes the records of a generated file with one passage a line, in random order; memory is that of one query."""
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        parts = [gzip.open(Path(folder) / str(number), "wb", compresslevel=1) for number in range(64)]  # noqa: SIM115
        with gzip.open(source) as stream:
            for line in stream:
                head, _, rest = line.rstrip(b"\n").removesuffix(b"]]").partition(b", [")
                first, *others = rest.split(b', {"paragraph_id":')
                for passage in (first, *(b'{"paragraph_id":' + other for other in others)):
                    rng.choice(parts).write(head + b", " + passage + b"]\n")
        for part in parts:
            part.close()
        with gzip.open(target, "wb", compresslevel=1) as stream:
            for number in range(len(parts)):
                with gzip.open(Path(folder) / str(number)) as part:
                    lines = part.readlines()
                rng.shuffle(lines)
                stream.writelines(lines)


def commands(folder: Path, output: Path) -> dict[str, list[str]]:
    """The name and the command of each measurement."""
    program = [sys.executable, "-m", "rubric_measures"]
    graded, shuffled, bank = (str(folder / name) for name in ("graded.jsonl.gz", "shuffled.jsonl.gz", "bank.jsonl"))
    runs = sorted(str(path) for path in (folder / "runs").glob("*.run"))
    of_bank = ["--bank", bank]
    reports = {
        "verify, statistics of items and graders": ["--item-statistics", "--grader-statistics"],
        "verify, uncovered passages and spurious items": ["--uncovered-passages", "--bad-question"],
    }
    return {
        "Python: gunzip and json.loads of the records": [sys.executable, "-c", READING_JSON, graded],
        "evaluate, Cover at five levels and nDCG@10": [
            *[*program, "evaluate", graded, runs[0], *COVER, "nDCG@10", "-q", *of_bank],
        ],
        "qrels, a label a passage": [*program, "qrels", graded, *of_bank, "-o", str(output)],
        "qrels, a row an item": [*program, "qrels", graded, "--per", "item", *of_bank, "-o", str(output)],
        "leaderboard, Cover at five levels, the 60 systems inside": [
            *[*program, "leaderboard", graded, *of_bank, "-m", *COVER],
        ],
        "leaderboard, the same of 60 run files": [
            *[*program, "leaderboard", graded, *runs, *of_bank, "-m", *COVER],
        ],
        "leaderboard, the same of 60 run files with --checks": [
            *[*program, "leaderboard", graded, *runs, *of_bank, "--checks", "--format", "json", "-m", *COVER],
        ],
        **{
            name: [*program, "verify", graded, *of_bank, "--output", str(output), *options]
            for name, options in reports.items()
        },
        "leaderboard, Cover at five levels, shuffled lines": [
            *[*program, "leaderboard", shuffled, *of_bank, "-m", *COVER],
        ],
    }


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--scale", type=int, default=88, help="multiplies 11,400 passages (default: 88, a million)")
    parser.add_argument("--items", type=int, default=20)
    parser.add_argument("--only", nargs="+", default=[""], metavar="TEXT", help="commands whose name has one of these")
    options = parser.parse_args()
    folder = options.folder / f"x{options.scale}"
    # In another process: the peak of a command that is started begins with the memory of the process that starts it.
    with ProcessPoolExecutor(1) as pool:
        if not (folder / "graded.jsonl.gz").exists():
            pool.submit(generate, folder, options.scale, items=options.items).result()
        if not (folder / "shuffled.jsonl.gz").exists():
            pool.submit(shuffle, folder / "graded.jsonl.gz", folder / "shuffled.jsonl.gz").result()
    print(f"{'what':<66} {'seconds':>8} {'CPU':>7} {'MB':>6}")
    with tempfile.TemporaryDirectory() as temporary:
        for name, command in commands(folder, Path(temporary) / "output").items():
            if any(part in name for part in options.only):
                wall, cpu, peak = measure(command)
                print(f"{name:<66} {wall:>8.2f} {cpu:>7.2f} {peak:>6.0f}", flush=True)


if __name__ == "__main__":
    main()
