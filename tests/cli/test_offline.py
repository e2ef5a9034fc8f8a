"""The main job with sockets closed: scoring, grading with `lexical` and the report ask nobody anything."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

# Nothing that Python code opens, in any library, gets past an audit hook.
CLOSED = """
import os, shlex, sys
def refuse(event, arguments):
    if event.startswith("socket.") and event != "socket.__new__" or event in ("os.system", "urllib.Request"):
        raise RuntimeError(f"asks the network: {event} {arguments}")
sys.addaudithook(refuse)
from rubric_measures.base.plugins import require
from rubric_measures.cli import main
for line in sys.stdin:
    assert main(shlex.split(line)) in (0, 1), line
require("json", "hf")
print(os.environ["HF_HUB_DISABLE_TELEMETRY"], os.environ["RAY_USAGE_STATS_ENABLED"])
"""
EXAMPLE = Path(__file__).parents[2] / "resources" / "example"


def test_the_main_job_needs_no_network_and_tells_nobody(tmp_path: Path) -> None:
    bank, runs = EXAMPLE / "questions.jsonl", sorted((EXAMPLE / "runs").iterdir())[:2]
    commands = [
        f"pool --collection {EXAMPLE} -o pool.jsonl",
        f"grade pool.jsonl --bank {bank} --model lexical -o graded.jsonl.gz",
        f"leaderboard graded.jsonl.gz {runs[0]} {runs[1]} --bank {bank}",
        f"evaluate graded.jsonl.gz {runs[0]} RubricCover@20 --bank {bank}",
        f"verify all graded.jsonl.gz --bank {bank} -o report.html",
    ]
    usual = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "RAY_"))}
    done = subprocess.run(
        [sys.executable, "-c", CLOSED],
        input="\n".join(commands),
        cwd=tmp_path,
        env={**usual, "IR_DATASETS_HOME": str(tmp_path / "none"), "MPLCONFIGDIR": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr
    # Telemetry of optional libraries is off.
    assert "run_id\tRubricCover" in done.stdout and done.stdout.endswith("\n1 0\n")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "<html" in page
    # Links to the review page of this machine are no requests.
    page = page.replace('href="http://127.0.0.1:', "")
    assert not [mark for mark in ('src="http', 'href="http', "@import", "url(http") if mark in page]
