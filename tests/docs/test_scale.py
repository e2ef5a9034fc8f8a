"""The tables of how far it scales are those that their benchmark prints."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_page_has_the_tables() -> None:
    done = subprocess.run([sys.executable, "-m", "benchmarks.scale"], cwd=ROOT, capture_output=True, check=True)
    page = (ROOT / "benchmarks/README.md").read_text(encoding="utf-8")
    for table in done.stdout.decode().strip().split("\n\n"):
        assert table in page
