"""The commands of docs/review.md, run on the example as they stand there: servers answer, and exports have it."""

from __future__ import annotations

import gzip
import json
import re
import shutil
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pytest

from rubric_measures.cli import main
from tests.docs.test_commands import commands

pytest.importorskip("httpx")
pytest.importorskip("uvicorn")
pytest.importorskip("itsdangerous")
pytest.importorskip("jinja2")

from tests.review.test_app import Assessor, Server

ROOT = Path(__file__).resolve().parents[2]


def test_the_commands_of_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    example = ROOT / "resources" / "example"
    for name in ("graded.jsonl.gz", "questions.jsonl"):
        shutil.copyfile(example / name, name)
    runs = sorted(map(str, (example / "runs").iterdir()))
    assert main(["pool", *runs, "--collection", str(example), "-o", "passages.jsonl.gz"]) == 0
    assert main(["convert", "questions.jsonl", "-o", "draft.csv"]) == 0
    written: dict[str, str] = {}
    shown = commands("docs/review.md")
    assert [name for name, *_ in shown].count("review") == 6
    for command in shown:
        capsys.readouterr()
        if command[0] == "review" and "--export" not in command:
            _visit(command)
        else:
            if command[0] == "combine":
                _with_bob_and_carol(Path(command[1]))
            assert main(command) in (0, 1), (command, capsys.readouterr().err)
            written[command[0]] = capsys.readouterr().out
    # Ada graded two cells blindly.
    assert re.search("^pairs +2 ", written["agreement"], re.MULTILINE), written["agreement"]
    assert len(written["leaderboard"].splitlines()) > len(runs)


def _with_bob_and_carol(path: Path) -> None:
    """Gives Ada's grades to Bob, too, and as decisions to Carol."""
    text = gzip.decompress(path.read_bytes()).decode()
    queries = [json.loads(line) for line in text.splitlines()]
    for sets in (passage["exam_grades"] for _, passages in queries for passage in passages):
        for one in [one for one in sets if one["prompt_info"]["prompt_class"] == "HumanReview"]:
            decided = {**one["prompt_info"], "prompt_class": "HumanAdjudication"}
            sets += [{**one, "llm": "human:bob"}, {**one, "llm": "human:carol", "prompt_info": decided}]
    path.write_bytes(gzip.compress("".join(f"{json.dumps(one)}\n" for one in queries).encode()))


def _visit(command: list[str]) -> None:
    """Starts the server on a free port, and grades two cells of the audit where there are any, as an assessor does."""
    server = Server(Path(), command=command)
    try:
        if "--allow-remote" in command:
            assert server.link.startswith("http://lab.example:") and "token=" in server.link
            return
        ada = Assessor(server, "ada")
        for _ in range(2):
            place = ada.client.get("/", params={"order": "audit"}).headers.get("location", "")
            if not place:
                # The draft of a bank: there is nothing to grade.
                return
            answer = ada.post("/grade", **dict(parse_qsl(urlsplit(place).query)), grade="3")
            assert answer.status_code == 303, answer.text
    finally:
        server.kill()
