"""The commands, the job and the test of docs/comparing-versions.md, run in a folder with the example's answers."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

import rubric_measures
from rubric_measures.cli import main
from tests.docs.test_answer_tables import answers, blocks

__all__ = ["answers"]
PAGE = (Path(__file__).resolve().parents[2] / "docs" / "comparing-versions.md").read_text(encoding="utf-8")


@pytest.mark.usefixtures("answers")
def test_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    # The bank that somebody edited.
    assert main(["answers", "results.csv", "--model", "lexical", "--folder", "report"]) == 0
    Path("report/bank.csv").rename("bank.csv")
    capsys.readouterr()
    shown = list[str]()
    for block in blocks("sh", PAGE):
        for line in block.strip().split("\n"):
            assert main(shlex.split(line)[1:]) in (0, 1), line
            printed = capsys.readouterr().out
            assert printed.startswith("**Nugget" if "markdown" in line else "run")
            shown += [part for part in blocks("text", PAGE) if part in printed]
    assert shown


@pytest.mark.usefixtures("answers")
def test_the_job_of_github_actions(capsys: pytest.CaptureFixture[str]) -> None:
    [job] = blocks("yaml", PAGE)
    [command] = re.findall(r"rubric_measures (answers .*?)\n +env:", job, re.DOTALL)
    arguments = shlex.split(command.replace("openai:gpt-4o", "lexical"))
    arguments = arguments[: arguments.index(">")]
    # What the branch `main` left.
    assert main(["answers", "results.csv", "--model", "lexical", "--folder", "main"]) == 0
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
    [snippet] = blocks("python", PAGE)
    exec(compile(snippet, "comparing-versions.md", "exec"), names)
    # As pytest calls it.
    Path("bank.csv").write_text("query_id,text,importance,query_text\nq1,So it is not,vital,Why?\n", encoding="utf-8")
    with pytest.raises(AssertionError, match=r"answers misses of Why\?\n    - So it is not \(vital, grade"):
        names["test_answers"](
            lambda rows, **options: rubric_measures.evaluate_answers(rows, model="lexical", **options)
        )
