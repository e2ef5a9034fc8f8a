"""The main job with sockets closed: scoring, grading with `lexical` and the report ask nobody anything."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

# Nothing that Python code opens, in any library, gets past an audit hook.
CLOSED = """
import sys
def refuse(event, arguments):
    if event.startswith("socket.") and event != "socket.__new__" or event in ("os.system", "urllib.Request"):
        raise RuntimeError(f"asks the network: {event} {arguments}")
sys.addaudithook(refuse)
from rubric_measures.cli import main
sys.exit(main(sys.argv[1:]))
"""
EXAMPLE = Path(__file__).parents[2] / "resources" / "example"


def closed(folder: Path, *arguments: object) -> str:
    done = subprocess.run(
        [sys.executable, "-c", CLOSED, *map(str, arguments)],
        cwd=folder,
        env={**os.environ, "IR_DATASETS_HOME": str(folder / "none"), "MPLCONFIGDIR": str(folder)},
        capture_output=True,
        text=True,
    )
    assert done.returncode in (0, 1), done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout


def test_the_main_job_needs_no_network(tmp_path: Path) -> None:
    closed(tmp_path, "pool", "--collection", EXAMPLE, "-o", "pool.jsonl")
    bank = EXAMPLE / "questions.jsonl"
    closed(tmp_path, "grade", "pool.jsonl", "--bank", bank, "--model", "lexical", "-o", "graded.jsonl.gz")
    runs = sorted((EXAMPLE / "runs").iterdir())[:2]
    assert "Rubric" in closed(tmp_path, "leaderboard", "graded.jsonl.gz", *runs, "--bank", bank)
    assert "RubricCover" in closed(tmp_path, "evaluate", "graded.jsonl.gz", runs[0], "RubricCover@20", "--bank", bank)
    closed(tmp_path, "verify", "all", "graded.jsonl.gz", "--bank", bank, "--format", "html", "--output", "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "<html" in page
    # Links to the review page of this machine are no requests.
    page = page.replace('href="http://127.0.0.1:', "")
    assert not [mark for mark in ('src="http', 'href="http', "@import", "url(http") if mark in page]


def test_telemetry_of_optional_libraries_is_off() -> None:
    script = (
        "import os\n"
        "from rubric_measures.base.plugins import require\n"
        "require('json', 'hf')\n"
        "print(os.environ['HF_HUB_DISABLE_TELEMETRY'], os.environ['RAY_USAGE_STATS_ENABLED'])\n"
    )
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "RAY_"))}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True)
    assert done.stdout == "1 0\n", done.stderr
    told = subprocess.run(
        [sys.executable, "-c", script],
        env={**environment, "HF_HUB_DISABLE_TELEMETRY": "0"},
        capture_output=True,
        text=True,
    )
    # Whoever says otherwise has the last word.
    assert told.stdout == "0 0\n"
