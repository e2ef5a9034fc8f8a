"""Whose grades count: a name, keys, what is wrong with them; and what an error says is what is typed next."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

import rubric_measures
from rubric_measures import Grader
from rubric_measures.base.errors import InputError
from rubric_measures.cli import main
from tests.example_records import grade_set, passage, write_lines

PROMPT = "QuestionSelfRatedUnanswerablePromptWithChoices"
# A served model, as its endpoint is named: nothing of it is a key.
SERVED = "openai:lab/llama@http://gpu:8000/v1?temperature=0"
MEASURE = "RubricCover(rel=4)@1"


def set_of(grade_a: int, grade_b: int, llm: str, made: str = "", **more: Any) -> dict[str, Any]:
    entry = grade_set({"q1/a": grade_a, "q1/b": grade_b}, llm=llm, **more)
    made_by = {"model": llm, "prompt": "p", "signature": f"s{made}", "grader": made}
    return {**entry, "provenance": made_by} if made else entry


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four graders of one answer to two questions; one of them graded with two settings."""
    sets = [
        set_of(5, 1, "gpt-4o", "aaaa00000001"),
        set_of(0, 0, "gpt-4o", "bbbb00000002"),
        set_of(4, 4, SERVED),
        set_of(3, 1, "small", prompt="Mine"),
    ]
    monkeypatch.chdir(tmp_path)
    write_lines(tmp_path / "graded.jsonl", [["q1", [passage("q1", "d1", sets, {"one": 1})]]])


def board(capsys: pytest.CaptureFixture[str], *more: str, measure: str = MEASURE) -> str:
    """What the only run has, or the error."""
    status = main(["leaderboard", "graded.jsonl", "-m", measure, "--no-overall", *more])
    out, err = capsys.readouterr()
    assert status in (0, 2)
    return err.strip() if status else out.split()[-3]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (SERVED, "1.0000"),
        ("small", "0.0000"),
        ("model=gpt-4o,set=aaaa", "0.5000"),
        ("set=bbbb, kind=question", "0.0000"),
        (f"model={SERVED},prompt={PROMPT}", "1.0000"),
        ("prompt=Mine,items=question-bank", "0.0000"),
    ],
)
def test_a_name_or_keys_choose_the_grader(text: str, value: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert board(capsys, "--grader", text) == value
    grades = rubric_measures.load("graded.jsonl", grader=text)
    assert f"{rubric_measures.score(grades, measures=MEASURE, overall=False).cells['one'][MEASURE].mean:.4f}" == value
    with pytest.raises(InputError, match=r"is no scale .*; write 0-5:4"):
        Grader(scale=(0, 5, 4))
    # The text of an object is read back as that object.
    assert Grader.parse(str(Grader.parse(text))) == Grader.parse(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "foo=bar",
            "unknown key of a grader 'foo': known: assessors, items, kind, model, prompt, scale, set (a",
        ),
        ("modle=gpt-4o", "unknown key of a grader 'modle': did you mean model"),
        ("model=gpt-4o,prompt_class=Mine", "unknown key of a grader 'prompt_class': did you mean prompt?"),
        ("grade_set=aaaa", "unknown key of a grader 'grade_set': known: assessors, items, kind"),
        ("gpt-4o,set=aaaa", "'gpt-4o' has no value; write model=NAME,prompt=NAME,… (--grader)"),
        ("model=gpt-4o,set=", "'set' has no value"),
        ("", "'' has no value"),
        ("model=gpt-4o,model=small", "model is there twice"),
        ("items=questions", "items of a grader: 'questions' is none of question-bank, tqa, nugget"),
        ("scale=0-5", "'0-5' is no scale"),
        ("model=human:ada,assessors=override", "name the grader, not the assessor"),
        ("gpt-5", "holds no grades for model=gpt-5; there are grades of: model=gpt-4o,prompt="),
        ("kind=direct", "holds no grades for kind=direct; there are grades of: model=gpt-4o,prompt="),
    ],
)
def test_what_chooses_no_grades_is_one_line(text: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    error = board(capsys, "--grader", text)
    assert said in error and "\n" not in error
    with pytest.raises(InputError, match=re.escape(said.removesuffix(" (--grader)"))):
        rubric_measures.score(rubric_measures.load("graded.jsonl", grader=text), measures=MEASURE)


def test_an_option_that_is_given_twice_is_no_choice(capsys: pytest.CaptureFixture[str]) -> None:
    error = board(capsys, "--grader", "gpt-4o", "--grader", "set=aaaa")
    assert error.endswith("--grader is given twice; say all in one, as KEY=VALUE,…")
    assert main(["pool", "a.run", "--grader", "ada", "--grader", "bob", "-o", "pooled.jsonl"]) == 2
    assert "--grader is given twice" in capsys.readouterr().err


def test_what_an_error_lists_is_what_is_typed_next(capsys: pytest.CaptureFixture[str]) -> None:
    listing = board(capsys, "--grader", "gpt-4o")
    assert listing.endswith("(--grader)")
    found = re.findall(r"(model=[^\s;]+)", listing.partition("choose one of: ")[2])
    assert found == [f"model=gpt-4o,prompt={PROMPT},kind=question,set={made}" for made in ("aaaa0000", "bbbb0000")]
    assert [board(capsys, *shlex.split(f"--grader {one}")) for one in found] == ["0.5000", "0.0000"]
