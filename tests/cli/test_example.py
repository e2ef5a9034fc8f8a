"""The example collection holds together: files, ids, judgments, runs and answers, and the lesson its README tells."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_runs_are_what_the_script_makes() -> None:
    script = ROOT / "benchmarks" / "make_example_runs.py"
    done = subprocess.run([sys.executable, str(script), "--check"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")
