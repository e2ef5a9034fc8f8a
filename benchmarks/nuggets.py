"""Six nugget scores of 45 runs × 301 topics × 20 nuggets from an assignments file, beside nuggetizer's own metrics."""

from __future__ import annotations

import argparse
import json
import random
import sys
from pathlib import Path

from benchmarks.measures import measure_in_turns

RUNS, TOPICS, NUGGETS, WORDS = 45, 301, 20, 200
SIX = [f"Nugget{which}{form}" for which in "VWA" for form in ("(strict=True)", "")]
LABELS = ("support", "partial_support", "not_support")

READING = """
import json, sys
for line in open(sys.argv[1]):
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


def generate(path: Path, seed: int = 0) -> None:
    """Writes assignments of every run to every topic, lines in random order."""
    draw = random.Random(seed)
    banks = {
        f"2024-{topic}": [
            {
                "text": f"fact {place} of topic {topic} in about ten words of text",
                "importance": draw.choice(["vital", "okay"]),
            }
            for place in range(NUGGETS)
        ]
        for topic in range(TOPICS)
    }
    pairs = [(run, topic) for run in range(RUNS) for topic in banks]
    draw.shuffle(pairs)
    with open(path, "w", encoding="utf-8") as stream:
        for run, topic in pairs:
            row = {
                "query": f"query {topic}",
                "qid": topic,
                "run_id": f"run{run:02d}",
                "answer_text": "word " * WORDS,
                "response_length": WORDS,
                "nuggets": [{**nugget, "assignment": draw.choice(LABELS)} for nugget in banks[topic]],
            }
            stream.write(json.dumps(row) + "\n")


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    path = options.folder / "assignments.jsonl"
    if not path.exists():
        generate(path)
    program = [sys.executable, "-m", "rubric_measures", "leaderboard", str(path)]
    commands = {
        "Python: json.loads of every line": [sys.executable, "-c", READING, str(path)],
        "leaderboard, six scores": [*program, "-m", *SIX],
        "leaderboard, six scores, L and summary": [*program, "-m", *SIX, "--length", "--summary"],
        "leaderboard, four scores, --compat nuggetizer": [*program, "-m", *SIX[:2], *SIX[4:], "--compat", "nuggetizer"],
        "nuggetizer's metrics (four scores, one run after the other)": [sys.executable, "-c", NUGGETIZER, str(path)],
    }
    for name, (wall, cpu, peak) in measure_in_turns(commands, options.repeats).items():
        print(f"{name}: {wall:.2f} s wall, {cpu:.2f} s CPU, {peak:.0f} MB")


if __name__ == "__main__":
    main()
