"""`python -m tests.fuzz`: runs damaged files through the commands, and says by command and kind how they ended."""

from __future__ import annotations

import argparse
import os
import resource
import sys
import tempfile
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    add = parser.add_argument
    add("--cases", type=int, metavar="N", help="so many cases (default: as many as fit into --seconds)")
    add("--seconds", type=float, help="begin no case after so many (default: 60, and no end with --cases)")
    add("--seed", default=datetime.now(UTC).strftime("%Y-%m-%d"), help="of what is drawn (default: the day)")
    add("--case", type=int, metavar="NUMBER", nargs="+", help="these cases only, with all that they say")
    add("--workers", type=int, default=len(os.sched_getaffinity(0)), help="processes (default: the cores)")
    return parser.parse_args()


def main() -> int:
    """Runs cases; 1 where one ended as none may."""
    options = _options()
    if options.cases is None and options.seconds is None:
        options.seconds = 60.0
    # In memory where there is such a folder: databases wait for the disk at each commit, and nothing is kept.
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=memory) as made:
        return _fuzz(Path(made).resolve(), options)


def _fuzz(folder: Path, options: argparse.Namespace) -> int:
    # Threads of numpy would live on in no forked process.
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    from tests.fuzz.engine import baselines, run_cases
    from tests.fuzz.judging import BAD

    print(f"seed {options.seed}", flush=True)
    before = baselines(folder)
    began, spent = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    numbers = options.case or list(range(options.cases if options.cases is not None else 10_000_000))
    counts: Counter[tuple[str, str]] = Counter()
    damages: Counter[tuple[str, str]] = Counter()
    total = failed = 0
    for outcome in run_cases(folder, options.seed, numbers, before, options.workers, options.seconds):
        total += 1
        failed += outcome.verdict in BAD
        counts[outcome.command, outcome.verdict] += 1
        damages[outcome.mutation, outcome.verdict] += 1
        if outcome.verdict in BAD or options.case:
            what = f"{outcome.mutation} of {outcome.file}"
            print(f"{outcome.verdict}\t{outcome.number}\t{what}\t{outcome.words}\n\t{outcome.line}", flush=True)
    for title, table in (("command", counts), ("damage", damages)):
        _print_table(title, table)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    computed = used.ru_utime + used.ru_stime - spent.ru_utime - spent.ru_stime
    print(
        f"{total} cases in {time.monotonic() - began:.0f} s ({total / max(computed, 0.01):.0f} a CPU second), "
        f"seed {options.seed}: {failed} ended as none may"
    )
    return 1 if failed and not options.case else 0


def _print_table(title: str, counts: Counter[tuple[str, str]]) -> None:
    verdicts = sorted(
        {found for _, found in counts}, key=lambda found: -sum(n for (_, one), n in counts.items() if one == found)
    )
    print("\t".join((title, "cases", *verdicts)))
    for name in sorted({name for name, _ in counts}):
        row = [counts[name, found] for found in verdicts]
        print("\t".join((name, str(sum(row)), *map(str, row))))


if __name__ == "__main__":
    sys.exit(main())
