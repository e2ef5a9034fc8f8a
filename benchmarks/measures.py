"""Scoring, whole processes: leaderboards over run files and inside records, against reading alone and against peers."""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from benchmarks.generate_collection import generate

COVER = [f"RubricCover(rel={rel})@20" for rel in range(1, 6)]
LABELS = ["RubricQrels(measure='nDCG@10')"]
LABELS += [f"RubricQrels(measure='{name}',rel={rel})" for name in ("AP", "RR") for rel in (3, 4, 5)]
LABELS += [f"RubricQrels(measure='nDCG@10',rel={rel})" for rel in (3, 4, 5)]

SPLITTING = """
import sys
for path in sys.argv[1:]:
    for line in open(path):
        line.split()
"""
READING_JSON = """
import gzip, json, sys
for line in gzip.open(sys.argv[1]):
    json.loads(line)
"""
IR_MEASURES_READER = """
import ir_measures, sys
for path in sys.argv[1:]:
    for row in ir_measures.read_trec_run(path):
        pass
"""
PYNDEVAL = """
import ir_measures, sys
qrels = list(ir_measures.read_trec_qrels(sys.argv[1]))
evaluator = ir_measures.pyndeval.evaluator([ir_measures.StRecall(rel=4) @ 20], qrels)
for path in sys.argv[2:]:
    evaluator.calc_aggregate(ir_measures.read_trec_run(path))
"""


def measure(command: list[str]) -> tuple[float, float, float]:
    """Wall seconds, CPU seconds and peak megabytes of a whole process and its workers."""
    # As where a package was installed: its bytecode is there.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 1):
        raise SystemExit(f"failed: {' '.join(command)[:200]}")
    return wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def measure_in_turns(commands: Mapping[str, list[str]], repeats: int) -> dict[str, tuple[float, float, float]]:
    """Medians of commands that take turns, after one turn that only fills caches: what else runs disturbs all alike."""
    turns = [{name: measure(command) for name, command in commands.items()} for _ in range(repeats + 1)][1:]
    return {
        name: (
            statistics.median(turn[name][0] for turn in turns),
            statistics.median(turn[name][1] for turn in turns),
            statistics.median(turn[name][2] for turn in turns),
        )
        for name in commands
    }


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--scale", type=int, default=1, help="multiply the passages; 1 also scores run files")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", default="", help="measure what has this in its name, such as '60 run files'")
    options = parser.parse_args()
    folder = options.folder / f"x{options.scale}"
    if not (folder / "bank.jsonl").exists():
        generate(folder, options.scale, runs=options.scale == 1)
    program = [sys.executable, "-m", "rubric_measures"]
    graded, items = str(folder / "graded.jsonl.gz"), str(folder / "items.qrels")
    runs = sorted(str(path) for path in (folder / "runs").glob("*.run")) if options.scale == 1 else []
    commands = {
        "Python: gunzip and json.loads of the records": [sys.executable, "-c", READING_JSON, graded],
        "leaderboard, Cover at five levels, systems inside the records": [
            *program,
            "leaderboard",
            graded,
            "-m",
            *COVER,
        ],
        "--help": [*program, "--help"],
    }
    if runs:
        commands |= {
            "Python: read and split 60 run files": [sys.executable, "-c", SPLITTING, *runs],
            "leaderboard, 60 run files, item qrels, 15 measures": [
                *program,
                "leaderboard",
                items,
                *runs,
                "-m",
                *COVER,
                *LABELS,
            ],
            "leaderboard, 60 run files, graded records, 15 measures": [
                *program,
                "leaderboard",
                graded,
                *runs,
                "-m",
                *COVER,
                *LABELS,
            ],
            "ir_measures' reader alone, 60 run files": [sys.executable, "-c", IR_MEASURES_READER, *runs],
            "pyndeval through ir_measures, StRecall(rel=4)@20": [sys.executable, "-c", PYNDEVAL, items, *runs],
        }
    print(f"{'what':<66} {'seconds':>8} {'CPU':>7} {'MB':>6}")
    chosen = {name: command for name, command in commands.items() if options.only in name}
    for name, (wall, cpu, peak) in measure_in_turns(chosen, options.repeats).items():
        print(f"{name:<66} {wall:>8.2f} {cpu:>7.2f} {peak:>6.0f}", flush=True)


if __name__ == "__main__":
    main()
