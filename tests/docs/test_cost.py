"""The figures of docs/cost.md are ten times those of dry runs over 100 answers of 260 words, with ten facts each."""

from __future__ import annotations

import csv
import json
import re
import shlex
from pathlib import Path

import pytest

from rubric_measures.cli import main
from rubric_measures.corpora.collections import example_folder

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "cost.md").read_text(encoding="utf-8")


def _table(path: str, *rows: list[str]) -> None:
    with Path(path).open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream).writerows(rows)


def test_the_figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("openai")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    lines = (example_folder() / "docs.jsonl").read_text(encoding="utf-8").splitlines()
    words = " ".join(json.loads(line)["text"] for line in lines).split() * 2
    questions = [f"{number}: what is known of {' '.join(words[number : number + 5])}?" for number in range(100)]
    answers = [[question, " ".join(words[number : number + 260])] for number, question in enumerate(questions)]
    _table("results.csv", ["question", "answer"], *answers)
    facts = [[str(n), " ".join(words[n + i : n + i + 12]), one] for n, one in enumerate(questions) for i in range(10)]
    _table("bank.csv", ["query_id", "text", "query_text"], *facts)
    [prices] = re.findall(r"^```json\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    Path("prices.json").write_text(prices, encoding="utf-8")
    [command] = re.findall(r"^    rubric_measures (.*)$", PAGE, re.MULTILINE)
    arguments = shlex.split(command)
    bank = arguments.index("--bank")
    shown = re.findall(r"^\| .* \| ([\d,]+) \| ([\d.]+) million \| (\d+) \| ([\d.]+) \|$", PAGE, re.MULTILINE)
    calls = arguments, [*arguments, "--items-per-call", "1"], arguments[:bank] + arguments[bank + 2 :]
    for row, given in zip(shown, calls, strict=True):
        assert main(given) == 0, capsys.readouterr().err
        [said] = csv.DictReader(capsys.readouterr().out.splitlines(), delimiter="\t")
        assert 10 * int(said["calls"]) == int(row[0].replace(",", ""))
        tokens = int(said["prompt_tokens"]), int(said["completion_tokens_at_most"])
        assert tokens[0] / 1e5 == pytest.approx(float(row[1]), rel=0.15, abs=0.05)
        for price, cost in zip(json.loads(prices).values(), row[2:], strict=True):
            found = (tokens[0] * price["input"] + tokens[1] * price["output"]) / 1e5
            assert found == pytest.approx(float(cost), rel=0.1)
        assert 10 * float(said["cost_of_calls"]) == pytest.approx(float(row[2]), rel=0.1)
