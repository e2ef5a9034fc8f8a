"""Commands of pages that ask a model, as they stand there: of an endpoint on loopback, and of a tiny local model."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from rubric_measures.cli import main
from rubric_measures.records.models import load_graded
from tests.docs.pages import ROOT, text_of
from tests.docs.test_commands import commands
from tests.models.test_end_to_end_http import Running, model, says


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The example, with the passages that README's first command makes."""
    shutil.copytree(ROOT / "resources" / "example", tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    pooled = ["pool", "runs/bm25.run", "--collection", "docs.jsonl", "-o", "passages.jsonl.gz", "--depth", "4"]
    assert main(pooled) == 0
    shutil.copy("questions.jsonl", "bank.jsonl")
    shutil.copy("questions.jsonl", "bank.jsonl.gz")
    return tmp_path


@pytest.fixture
def server(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Running]:
    """A model that makes two nuggets of a reference, finds one of two items, and prefers the first of two answers."""
    pytest.importorskip("openai")
    pytest.importorskip("aiohttp")
    rules = [
        says('["Chlorophyll breaks down", "Shorter days give the signal"]', "Updated Nugget List"),
        says("['vital', 'okay']", "vital or okay"),
        says("[[A]]", "Two assistants"),
        says('{"1": {"reason": "It says so.", "grade": 4}, "2": {"reason": "No word of it.", "grade": 0}}', '{"1": {'),
        says(["4", "0"]),
    ]
    with model(folder, *rules) as running:
        monkeypatch.setenv("OPENAI_BASE_URL", running.url)
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        yield running


def shown(page: str, *has: str) -> list[str]:
    """The one command of a page that has these parts, with a model that is here."""
    [command] = [one for one in commands(f"docs/{page}.md") if all(any(part in word for word in one) for part in has)]
    return command


def asked(command: list[str], server: Running, name: str = "m") -> list[str]:
    return [
        f"openai:{name}" if part.startswith("openai:") else server.url if part == "URL" or "PROXY" in part else part
        for part in command
    ]


def test_endpoints(server: Running) -> None:
    assert main(asked(shown("endpoints", "openai:NAME"), server)) == 0
    grades = [entry for group in load_graded("graded.jsonl.gz") for one in group.passages for entry in one.exam_grades]
    assert len(grades) == 36
    assert server.stats()["calls"] > 300


def test_a_model_in_this_process(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The first command of the page, by a tiny model of the same kind; the settings below it with a decoder."""
    pytest.importorskip("transformers")
    from tests.hf_models import save_llama, save_t5

    named = shown("grading", "hf:google/flan-t5-large")
    for place, save in (("t5", save_t5), ("llama", save_llama)):
        kind = [f"hf:{save(folder / place)}" if part.startswith("hf:") else part for part in named]
        more = ["--queries", "q01", "--model-option", "device=cpu", "--model-option", "dtype=float32"]
        assert main([*kind, *more, "--passages-per-query", "2"]) in (0, 1)
        assert str(folder / place) in Path("graded.jsonl.gz.manifest.json").read_text(encoding="utf-8")
        capsys.readouterr()


def test_grading(server: Running, capsys: pytest.CaptureFixture[str]) -> None:
    """Only what a board needs, then the paragraphs below: several items a call, draws, confidence, the cache."""
    assert main(asked(shown("grading", "--for"), server)) == 0
    assert "never asked" in capsys.readouterr().err
    ask = ["grade", "passages.jsonl.gz", "--bank", "bank.jsonl", "--queries", "q01", "--model", "openai:obedient"]
    assert "--items-per-call 10" in text_of("grading")
    assert main([*ask, "--items-per-call", "10", "-o", "several.jsonl"]) in (0, 1)
    assert main([*ask, "--model-option", "structured=choice+logprobs", "-o", "sure.jsonl"]) == 0
    board = ["leaderboard", "sure.jsonl", "runs/bm25.run", "-m", "RubricCover(rel=4)@4"]
    assert main(board) == 0
    assert main(["cache", "size", "sure.jsonl.cache.sqlite"]) == 0
    assert main(["cache", "merge", "all.sqlite", "sure.jsonl.cache.sqlite"]) == 0


def test_the_tutorial_s_real_grader(server: Running, capsys: pytest.CaptureFixture[str]) -> None:
    """`--explain`: each grade has a reason, on the page too."""
    answers = ["answers", "answers.csv", "--model", "openai:m", "--explain", "--folder", "report"]
    assert main(answers) == 0
    # One of two nuggets is there: all vital ones, 1 of 1.5, and 1 of 2.
    [row] = [line.split() for line in capsys.readouterr().out.splitlines() if line.startswith("thorough")]
    assert row[1::3][:4] == ["1.0000", "1.0000", "0.6667", "0.5000"]
    assert "It says so." in Path("report/index.html").read_text(encoding="utf-8")


def test_battles(server: Running, capsys: pytest.CaptureFixture[str]) -> None:
    command = shown("tournament", "--games-per")
    files = [
        str(one) for part in command for one in (sorted(Path("answers").glob("*.jsonl")) if "*" in part else [part])
    ]
    assert main([part.replace("topics.tsv", "queries.tsv") for part in asked(files, server)]) == 0
    assert len(Path("games.jsonl").read_text(encoding="utf-8").splitlines()) > 4


ROWS = r"^\| (?:rate passages|label|check an) .*$"
NAMED = sorted(
    {
        name
        for row in re.findall(ROWS, text_of("prompts"), re.M)
        for name in re.findall(r"`(?!Extractive)(\w[\w.]{4,})`", row)
    }
)
# What needs other files than the rest: the texts of the queries instead of a bank.
LABELS = ("umbrela3", "umbrela4", "Thomas", "FagB", "FagB_few", "HELM", "Sun_few", "ragelo.retrieval_reasoner")


@pytest.mark.parametrize("name", NAMED)
def test_prompts(name: str, server: Running) -> None:
    """Each prompt of the page's table that grades passages is sent, and the records have what came back."""
    of = ["--query-texts", "queries.tsv"] if name in LABELS else ["--bank", "questions.jsonl"]
    of = ["--bank", "nuggets.jsonl"] if "ugget" in name or name.startswith("criteria") else of
    ask = ["grade", "passages.jsonl.gz", *of, "--prompt", name, "--model", "openai:m", "--queries", "q01"]
    assert main([*ask, "--passages-per-query", "1", "-o", "graded.jsonl"]) in (0, 1)
    assert server.stats()["calls"] > 0
