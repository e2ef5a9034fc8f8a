"""What scoring costs: whole processes beside the least that could read the same files, or beside a peer.

Prints a table. Commands that are compared take turns, so that what else runs on the machine disturbs all alike. Medians
of wall seconds, of CPU seconds of a process and its workers, and of the memory of the largest process.
"""

# The peak of a process begins with the memory of the one that starts it: numpy and generated data stay outside.
from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

PROGRAM = (sys.executable, "-m", "rubric_measures")
COVER = tuple(f"RubricCover(rel={rel})@20" for rel in range(1, 6))
LABELS = tuple(f"RubricQrels(measure='{name}')" for name in ("nDCG@10", "AP(rel=4)", "RR(rel=4)"))
NOVELTY = ("alpha_nDCG(rel=4)@10",)
NUGGETS = tuple(f"Nugget{which}{form}" for which in "VWA" for form in ("(strict=True)", ""))

SPLITTING = """
import sys
for path in sys.argv[1:]:
    for line in open(path):
        line.split()
"""
READING_JSON = """
import gzip, json, sys
for line in (gzip.open if sys.argv[1].endswith(".gz") else open)(sys.argv[1]):
    json.loads(line)
"""
# nuggetizer's program reads the assignments of one run; here of all, so that reading is paid once by both.
NUGGETIZER = """
import json, sys
from nuggetizer.core.metrics import calculate_global_metrics
runs = {}
for line in open(sys.argv[1]):
    record = json.loads(line)
    runs.setdefault(record["run_id"], []).append(record)
for run_id, records in runs.items():
    print(run_id, calculate_global_metrics(records))
"""


@dataclass(frozen=True)
class Work:
    """One piece of work.

    Attributes:
        name: what it is.
        command: what does it.
        beside: what it is compared with.
        times: how often it is done in a turn: what is short is done often.
        status: the exit status that says that it was done: 1 where grades failed.
    """

    name: str
    command: tuple[str, ...]
    beside: Work | None = None
    times: int = 1
    status: int = 0


@dataclass(frozen=True)
class Cost:
    """What a piece of work costs: wall seconds, CPU seconds, and peak megabytes."""

    wall: float
    cpu: float
    peak: float


def measure(work: Work) -> Cost:
    """What one turn costs. A command that fails ends the benchmark."""
    # As where a package was installed: its bytecode is there.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    wall = cpu = peak = 0.0
    for _ in range(work.times):
        start = time.perf_counter()
        process = subprocess.Popen(work.command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
        _, status, usage = os.wait4(process.pid, 0)
        wall += time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != work.status:
            raise SystemExit(f"exit status {process.returncode}: {' '.join(work.command)[:400]}")
        cpu += usage.ru_utime + usage.ru_stime
        peak = max(peak, usage.ru_maxrss / 1024)
    return Cost(wall / work.times, cpu / work.times, peak)


def measure_in_turns(works: Iterable[Work], repeats: int) -> dict[tuple[str, ...], Cost]:
    """Medians by command: of pieces of work, and of what they are compared with, which all take turns."""
    both = [one for work in works for one in (work.beside, work) if one is not None]
    each = {work.command: work for work in both}
    turns = [{command: measure(work) for command, work in each.items()} for _ in range(repeats)]
    return {
        command: Cost(
            statistics.median(turn[command].wall for turn in turns),
            statistics.median(turn[command].cpu for turn in turns),
            statistics.median(turn[command].peak for turn in turns),
        )
        for command in each
    }


def leaderboard(files: Iterable[str], measures: Sequence[str]) -> tuple[str, ...]:
    """The command that scores files."""
    return (*PROGRAM, "leaderboard", *files, "-m", *measures)


def of_run_files(folder: Path) -> Iterable[list[Work]]:
    """60 run files, by item qrels and by records, without and with tied scores, with few and with more measures."""
    items, graded, failed = (
        str(folder / name) for name in ("items.qrels", "graded.jsonl.gz", "graded-failed.jsonl.gz")
    )
    more = (*COVER, *LABELS, *NOVELTY)
    for kind, scores in (("runs", ""), ("tied", ", tied scores")):
        runs = sorted(str(path) for path in (folder / kind).glob("*.run"))
        floor = Work("`line.split()`", (sys.executable, "-c", SPLITTING, *runs))
        works = []
        for source, by in ((items, "item qrels"), (graded, "records")):
            name = f"60 runs × 1,000 × 54 by {by}{scores}: Cover at five τ"
            works.append(Work(name, leaderboard([source, *runs], COVER), floor))
            name += ", nDCG@10, AP, RR, α-nDCG@10"
            works.append(Work(name, leaderboard([source, *runs], more), floor))
        if not scores:
            complete = Work("none failed", leaderboard([graded, *runs], COVER))
            name = "60 runs × 1,000 × 54 by records: Cover at five τ, 5 % of the grades failed"
            works.append(Work(name, leaderboard([failed, *runs], COVER), complete, status=1))
        yield works


def of_one_file(folder: Path) -> Iterable[list[Work]]:
    """Records with runs inside, and assignments of nuggets; both with failed grades, too."""
    for name, file, measures, floor in (
        ("records of DL 2020's size: Cover at five τ", "graded{}.jsonl.gz", COVER, "`gunzip`, `json.loads`"),
        ("45 runs × 300 × 20 nuggets: six scores", "assignments{}.jsonl", NUGGETS, "`json.loads`"),
    ):
        whole = str(folder / file.format(""))
        command = leaderboard([whole], measures)
        works = [
            Work(name, command, Work(floor, (sys.executable, "-c", READING_JSON, whole))),
            Work(
                f"{name}, 5 % of the grades failed",
                leaderboard([str(folder / file.format("-failed"))], measures),
                Work("none failed", command),
                status=1,
            ),
        ]
        if measures is NUGGETS:
            four = (*leaderboard([whole], [*NUGGETS[:2], *NUGGETS[4:]]), "--compat", "nuggetizer")
            peer = Work("nuggetizer's metrics", (sys.executable, "-c", NUGGETIZER, whole))
            works.append(Work("45 runs × 300 × 20 nuggets: four scores, `--compat nuggetizer`", four, peer))
        yield works


def of_large_files(folder: Path) -> Iterable[list[Work]]:
    """A million graded passages; qrels and a run of five million lines each."""
    million = str(folder / "million.jsonl.gz")
    floor = Work("`gunzip`, `json.loads`", (sys.executable, "-c", READING_JSON, million))
    name = "1 million passages × 5 items in 1.8 GB of records, 10 runs inside: Cover at five τ"
    yield [Work(name, leaderboard([million], COVER), floor)]
    rest = (str(folder / "labels.qrels"), str(folder / "ranked.run"), "nDCG@10", "AP")
    peer = Work("`ir_measures`", (str(Path(sys.executable).with_name("ir_measures")), *rest))
    yield [Work("`evaluate`, qrels and a run of 5 million lines: nDCG@10, AP", (*PROGRAM, "evaluate", *rest), peer)]


def of_starting() -> list[Work]:
    """What every command pays."""
    nothing, peer, ours = (
        (sys.executable, "-c", code) for code in ("pass", "import ir_measures", "import rubric_measures")
    )
    return [
        Work("`--help`", (*PROGRAM, "--help"), Work("`python -c pass`", nothing, times=10), times=10),
        Work("`import rubric_measures`", ours, Work("`import ir_measures`", peer, times=10), times=10),
    ]


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--large", action="store_true", help="measure files of a million passages and more, too")
    parser.add_argument("--repeats", type=int, default=5, help="turns (default 5)")
    parser.add_argument("--only", default="", help="measure rows that have this in their name, such as 'nuggets'")
    options = parser.parse_args()
    generator = [sys.executable, "-m", "benchmarks.generate_collection", str(options.folder)]
    subprocess.run([*generator, *["--large"] * options.large], check=True)
    groups = [*of_run_files(options.folder / "small"), *of_one_file(options.folder / "small")]
    groups += of_large_files(options.folder / "large") if options.large else []
    print("| work | beside | its CPU s | CPU s | CPU × | wall × | MB |\n|---|---|---|---|---|---|---|", flush=True)
    for group in [*groups, of_starting()]:
        rows = [work for work in group if options.only in work.name]
        costs = measure_in_turns(rows, options.repeats)
        for work in rows:
            cost = costs[work.command]
            cells = [work.name, "", "", f"{cost.cpu:.2f}", "", "", f"{cost.peak:.0f}"]
            if work.beside is not None:
                other = costs[work.beside.command]
                cells[1:3] = [work.beside.name, f"{other.cpu:.2f}"]
                cells[4:6] = [f"{cost.cpu / other.cpu:.2f}", f"{cost.wall / other.wall:.2f}"]
            print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
