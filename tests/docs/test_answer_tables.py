"""The commands of docs/answer-tables.md, run in a folder with the example's answers."""

from __future__ import annotations

import csv
import json
import re
import shlex
import shutil
from pathlib import Path

import pytest

from rubric_measures.cli import main
from rubric_measures.corpora.collections import example_folder
from rubric_measures.formats.specs import names_of, table

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "answer-tables.md").read_text(encoding="utf-8")


def blocks(language: str, page: str = PAGE) -> list[str]:
    return [part.split("```")[0] for part in page.split(f"```{language}\n")[1:]]


@pytest.fixture
def answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    shutil.copy(example_folder() / "answers.csv", "results.csv")
    rows = list(csv.DictReader(Path("results.csv").read_text(encoding="utf-8").splitlines()))
    for name, system in (("v1.csv", "concise"), ("v2.csv", "thorough")):
        lines = [[row["question"], row["answer"]] for row in rows if row["system"] == system]
        with Path(name).open("w", encoding="utf-8", newline="") as stream:
            csv.writer(stream).writerows([["question", "answer"], *lines])
    Path("own.csv").write_text("id,ask,said,truth\n1,Why?,So.,So it is.\n2,How?,No.,So it is not.\n", encoding="utf-8")
    rag = {"question": "Why?", "answer": "So [1].", "ground_truth": "So it is.", "contexts": ["It is so."]}
    Path("rag.jsonl").write_text(json.dumps(rag) + "\n", encoding="utf-8")
    return tmp_path


@pytest.mark.usefixtures("answers")
def test_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    for block in blocks("sh"):
        for line in block.strip().split("\n"):
            assert main(shlex.split(line)[1:]) in (0, 1), line
            assert capsys.readouterr().out.startswith("run")
    listed = {name for row in re.findall(r"^\| `([\w.]+)` \|", PAGE, re.MULTILINE) for name in [row]}
    assert listed >= {path.name for path in Path("report").iterdir() if not path.name.endswith(".manifest.json")}


def test_the_page_names_the_columns_that_are_known() -> None:
    rows = dict(re.findall(r"^\| `(\w+)`[^|]*\| (.+) \|$", PAGE, re.MULTILINE))
    for one in table("answer table")["fields"]:
        shown = {name.replace(".", "_") for name in re.findall(r"`([\w.-]+)`", rows[one["to"]])}
        assert shown == {*names_of(one["names"])}, one["to"]
