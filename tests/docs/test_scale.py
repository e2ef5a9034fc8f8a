"""The tables of how far it scales are those that their benchmark prints."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.scale import DL, FAMILIES, RAG, Family, Workload, count, duration

ROOT = Path(__file__).parents[2]


def test_the_page_has_the_tables() -> None:
    done = subprocess.run([sys.executable, "-m", "benchmarks.scale"], cwd=ROOT, capture_output=True, check=True)
    page = (ROOT / "benchmarks/README.md").read_text(encoding="utf-8")
    for table in done.stdout.decode().strip().split("\n\n"):
        assert table in page


def test_the_numbers_by_hand() -> None:
    # 54 queries × 211 passages × 10 items; 300 × 146 answers × 20 nuggets in calls of ten.
    assert (DL.calls, DL.texts, DL.grades) == (113_940, 11_394, 113_940)
    assert (RAG.calls, RAG.grades, RAG.hundredfold().calls) == (87_600, 876_000, 8_760_000)
    # Two passages of 100 tokens × 3 items × 150 tokens at 10 tokens a second; extracting, only passage and question (12
    # tokens) are read.
    work = Workload("", 1, 2, 3, 1, 150, 1, 100, 70)
    assert Family("", 10, "").seconds(work) == 90
    assert Family("", 10, "", extracts=True).seconds(work) == pytest.approx(67.2)
    assert [duration(seconds) for seconds in (59, 600, 7_200, 172_800, 63_072_000)] == [
        "59 s", "10 min", "2 h", "2 days", "2 years",
    ]  # fmt: skip
    assert [count(number, "B") for number in (12, 1_500, 2_500_000)] == ["12 B", "1.5 kB", "2.5 MB"]
    assert {family.source for family in FAMILIES} == {"measured", "computed"}
