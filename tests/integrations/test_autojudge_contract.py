"""What TIRA asks of a judge, with the real `auto-judge` command, a recording server, and no other network.

1. Endpoint and model are the injected ones. 2. CACHE_DIR is made; without it nothing is written outside the output.
3. A second run is served by the cache alone (OPENAI_BASE_URL=EMPTY). 4. Keys hold no URL; a miss is one line.
5. A cold start downloads nothing; every run and topic is scored.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rubric_measures.formats.leaderboards import LeaderboardTable, read_leaderboard
from tests.example_records import write_lines
from tests.fault_server import Running, running
from tests.integrations.word_lists import import_base, write_word_lists

import_base()
pytest.importorskip("openai")

DOCS = Path(__file__).parents[2] / "docs" / "answers.md"
# Nothing that Python code opens, in any library, gets past an audit hook: only this machine is asked.
CLOSED = """
import sys
def refuse(event, arguments):
    there = str(arguments[1:2]) if event == "socket.connect" else str(arguments[:1])
    if event in ("socket.connect", "socket.getaddrinfo", "urllib.Request") and "127.0.0.1" not in there:
        raise RuntimeError(f"asks the network: {event} {arguments}")
sys.addaudithook(refuse)
from autojudge_base.cli import main
from tests.example_records import write_lines
main(sys.argv[1:])
"""
TOPICS = [
    {"request_id": "leaf", "title": "fall leaf color change", "problem_statement": "Why do leaves turn red?"},
    {"request_id": "cloud", "title": "cloud formation", "problem_statement": "Are clouds made of smoke?"},
]
ANSWERS = {
    "run1": {"leaf": ["Leaves lose their green pigment.", "Sugar makes red."], "cloud": ["Clouds are droplets."]},
    "run2": {"leaf": ["Trees are tall."]},
}
# What the model says, the first rule that fits.
RULES = [
    {"contains": ["vital or okay", "Chlorophyll goes"], "reply": "['vital', 'okay']"},
    {"contains": "vital or okay", "reply": "['okay']"},
    {"contains": ["Labels:", "Leaves lose"], "reply": "['support', 'partial_support']"},
    {"contains": ["Labels:", "Trees are tall."], "reply": "['not_support', 'not_support']"},
    {"contains": ["Labels:", "droplets"], "reply": "['support']"},
    {"contains": ["concise nuggets", "leaf"], "reply": '{"nuggets": ["Chlorophyll goes", "Sugar makes red"]}'},
    {"contains": ["concise nuggets", "cloud"], "reply": '{"nuggets": ["Clouds are droplets"]}'},
    {"contains": ["Full Support", "Trees are tall."], "reply": "No Support"},
    {"contains": ["Full Support", "Sugar makes red."], "reply": "Partial Support"},
    {"contains": "Full Support", "reply": "Full Support"},
    {"contains": '"questions"', "reply": '{"questions": ["Is it so?"]}'},
    {"contains": "", "reply": "4"},
]


class Kit:
    """A folder as the starter kit has it, and the command that TIRA runs in it."""

    def __init__(self, folder: Path, server: Running) -> None:
        self.folder, self.server = folder, server
        (folder / "runs").mkdir()
        for run, topics in ANSWERS.items():
            rows = [self.report(run, topic, texts) for topic, texts in topics.items()]
            write_lines(folder / "runs" / f"{run}.jsonl", rows)
        write_lines(folder / "topics.jsonl", TOPICS)
        write_word_lists(folder / "nltk")
        for name in ("home", "temp", "work"):
            (folder / name).mkdir()
        (printed,) = re.findall(r"```yaml\n(judge_class.*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL)
        (folder / "nuggets.yml").write_text(printed)
        content = {"judge_class": "rubric_measures.integrations.autojudge:SupportJudge", "create_nuggets": False}
        (folder / "support.yml").write_text(json.dumps({**content, "settings": {"filebase": "{_name}"}}))

    @staticmethod
    def report(run: str, topic: str, texts: list[str]) -> dict[str, Any]:
        # Each run has an excerpt of its own, as in the starter kit.
        documents = {"d": {"id": "d", "title": "Nature", "text": f"Pigments and sugar, says {run}."}}
        responses = [{"text": text, "citations": ["d"]} for text in texts]
        return {"metadata": {"team_id": "t", "run_id": run, "topic_id": topic}, "responses": responses} | {
            "documents": documents
        }

    def judge(
        self, workflow: str, out: str, *more: str, url: str = "", cache: str = "cache/not/there", cold: bool = False
    ) -> tuple[int, str]:
        """Status and errors of the command, in this process; `cold` in one of its own that reaches no network."""
        folder = self.folder
        env: dict[str, str | None] = dict.fromkeys(
            name for name in os.environ if name.startswith(("OPENAI", "LLM", "CACHE"))
        )
        env |= {
            "OPENAI_BASE_URL": url or self.server.url,
            "OPENAI_MODEL": "m",
            "OPENAI_API_KEY": "test-key",
            **({"CACHE_DIR": str(folder / cache)} if cache else {}),
        }
        command = ["run", "--workflow", str(folder / f"{workflow}.yml"), "--rag-responses", str(folder / "runs")]
        command += ["--rag-topics", str(folder / "topics.jsonl"), "--out-dir", str(folder / out), *more]
        if not cold:
            from autojudge_base.cli import main
            from click.testing import CliRunner

            found = CliRunner().invoke(main, command, env=env)
            return found.exit_code, found.stderr
        home = {"HOME": str(folder / "home"), "TMPDIR": str(folder / "temp"), "NLTK_DATA": str(folder / "nltk")}
        known = {**os.environ, **env, **home, "PYTHONPATH": str(Path(__file__).parents[2])}
        given = {name: value for name, value in known.items() if value is not None}
        program = [sys.executable, "-c", CLOSED, *command]
        done = subprocess.run(program, cwd=folder / "work", env=given, capture_output=True, text=True)
        return done.returncode, done.stderr

    def outputs(self, out: str) -> dict[str, bytes]:
        """The files that a run wrote; that of its settings says the time."""
        found = {path.name: path.read_bytes() for path in (self.folder / out).iterdir() if path.is_file()}
        return {name: content for name, content in found.items() if not name.endswith(".config.yml")}

    def files(self) -> set[str]:
        return {str(path.relative_to(self.folder)) for path in self.folder.rglob("*") if path.is_file()}


@pytest.fixture
def kit(tmp_path: Path) -> Iterator[Kit]:
    rules = write_lines(tmp_path / "rules.jsonl", RULES)
    with running(replies=rules) as server:
        yield Kit(tmp_path, server)


def _check_nuggets(kit: Kit, table: LeaderboardTable) -> None:
    # Leaf: vital supported, okay in part; cloud: the one okay nugget supported, and no vital one. run2 says nothing.
    assert table.per_query("NuggetV(rel=2,strict=True)")["run1"] == {"leaf": 1.0, "cloud": 0.0}
    assert table.per_query("NuggetA(rel=2,partial_rel=1)")["run1"] == {"leaf": 0.75, "cloud": 1.0}
    assert set(table.per_query("NuggetA(rel=2,partial_rel=1)")["run2"].values()) == {0.0}
    banks = [json.loads(line) for line in (kit.folder / "out/autonuggetizer.nuggets.jsonl").read_text().splitlines()]
    said = {claim["claim"]: claim["importance"] for bank in banks for claim in bank["claim_bank"].values()}
    assert said == {"Chlorophyll goes": "vital", "Sugar makes red": "okay", "Clouds are droplets": "okay"}


def _check_support(kit: Kit, table: LeaderboardTable) -> None:
    shown = [json.dumps(messages) for messages in kit.server.get("/shown")]
    assert {"says run1" in text for text in shown if "Trees are tall." in text} == {False}
    assert {"says run1" in text for text in shown if "Sugar makes red." in text} == {True}
    # (1 + 1/2) / 2 and 1; the sentence of run2 is not supported, and its answer about clouds is missing.
    assert table.per_query("SupportPrecision")["run1"] == {"leaf": 0.75, "cloud": 1.0}
    assert table.column("SupportPrecision") == {"run1": 0.875, "run2": 0.0}


@pytest.mark.parametrize(("name", "check"), [("nuggets", _check_nuggets), ("support", _check_support)])
def test_a_judge_can_be_run_again_from_its_cache(kit: Kit, name: str, check: Callable[..., None]) -> None:
    more = ("--variant", "autonuggetizer") if name == "nuggets" else ()
    before = kit.files()
    assert kit.judge(name, "out", *more, cold=name == "nuggets")[0] == 0
    stats = kit.server.stats()
    assert stats["calls"] > 0 and set(stats["models"]) == {"m"}
    assert all(path.startswith(("out/", "cache/not/there/")) for path in kit.files() - before)
    table = read_leaderboard(kit.folder / "out" / f"{more[1] if more else 'default'}.eval.txt")
    everything = {run: {"leaf", "cloud"} for run in ANSWERS}
    for measure in table.measures:
        assert set(table.column(measure)) == set(ANSWERS)
        assert {run: set(topics) for run, topics in table.per_query(measure).items()} == everything
    check(kit, table)
    # The endpoint is gone, and with it its URL.
    assert kit.judge(name, "again", *more, url="EMPTY")[0] == 0
    assert kit.server.stats()["calls"] == stats["calls"]
    assert kit.outputs("again") == kit.outputs("out")


def test_without_a_cache_folder_all_is_below_the_output(kit: Kit) -> None:
    before = kit.files()
    assert kit.judge("nuggets", "out", cache="")[0] == 0
    assert all(path.startswith("out/") for path in kit.files() - before)
    # Qrels and leaderboard look at the same grades: they are asked for once.
    assert max(kit.server.stats()["attempts"].values()) == 1


def test_a_reply_that_is_not_in_the_cache_is_one_line(kit: Kit) -> None:
    code, err = kit.judge("nuggets", "out", url="EMPTY")
    assert code == 2 and "Traceback" not in err
    (line,) = [line for line in err.splitlines() if line.startswith("Error:")]
    assert "the cache does not have all replies, and OPENAI_BASE_URL names no endpoint" in line
