"""The commands and the snippet of docs/answer-tables.md, run in a folder with the example's answers."""

from __future__ import annotations

import csv
import json
import re
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest

from rubric_measures.cli import main
from rubric_measures.corpora.collections import example_folder
from rubric_measures.formats.answers import _COULD_BE_EITHER, _NAMES, ROLES

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "answer-tables.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return [part.split("```")[0] for part in PAGE.split(f"```{language}\n")[1:]]


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
    shown = set[str]()
    for block in blocks("sh"):
        for line in block.strip().split("\n"):
            assert main(shlex.split(line)[1:]) in (0, 1), line
            printed = capsys.readouterr().out
            assert printed.startswith("**Nugget" if "markdown" in line else "run")
            shown |= {part for part in blocks("text") if part in printed}
    assert len(shown) == 1
    listed = {name for row in re.findall(r"^\| `([\w.]+)` \|", PAGE, re.MULTILINE) for name in [row]}
    assert listed >= {path.name for path in Path("report").iterdir() if not path.name.endswith(".manifest.json")}


@pytest.mark.usefixtures("answers")
def test_the_job_of_github_actions(capsys: pytest.CaptureFixture[str]) -> None:
    [job] = blocks("yaml")
    [command] = re.findall(r"rubric_measures (answers .*?)\n +env:", job, re.DOTALL)
    arguments = shlex.split(command.replace("openai:gpt-4o", "lexical"))
    arguments = arguments[: arguments.index(">")]
    # What the branch `main` left.
    assert main(["answers", "results.csv", "--model", "lexical", "-o", "main"]) == 0
    # One of the three answers nothing.
    assert main(arguments) == 3
    assert "of fluent-but-empty is 0.0000, 0.7000 under 0.7" in capsys.readouterr().err
    rows = Path("results.csv").read_text(encoding="utf-8").split("\n")
    kept = [row for row in rows if ",fluent-but-empty," not in row]
    Path("results.csv").write_text("\n".join(kept), encoding="utf-8")
    assert main(arguments) == 0


@pytest.mark.usefixtures("answers")
def test_the_snippet() -> None:
    names: dict[str, Any] = {"QUESTIONS": ["Why?"], "my_application": lambda question: "So it is."}
    for snippet in blocks("python"):
        exec(compile(snippet, "answer-tables.md", "exec"), names)
    # As pytest calls it.
    Path("bank.csv").write_text("query_id,text,importance,query_text\nq1,So it is not,vital,Why?\n", encoding="utf-8")
    with pytest.raises(AssertionError, match=r"answers misses of Why\?\n    - So it is not \(vital, grade"):
        names["test_answers"](
            lambda rows, **options: names["rubric_measures"].evaluate_answers(rows, model="lexical", **options)
        )


def test_the_page_names_the_columns_that_are_known() -> None:
    rows = dict(re.findall(r"^\| `(\w+)`[^|]*\| (.+) \|$", PAGE, re.MULTILINE))
    for role in ROLES:
        shown = {name.replace(".", "_") for name in re.findall(r"`([\w.]+)`", rows[role])}
        assert shown == {*_NAMES[role], *(["answer"] if role in _COULD_BE_EITHER else [])}, role
