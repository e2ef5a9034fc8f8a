"""Grading as users do it, behind HTTP: banks, grades and leaderboards by the command line, from a loopback server."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rubric_measures.cli import main
from rubric_measures.formats.banks import bank_entries, load_bank, write_bank
from rubric_measures.records.models import (
    GradedPassage,
    ItemGradeSet,
    QueryPassages,
    grade_of_items,
    load_graded,
    write_graded,
)
from rubric_measures.types.entities import ItemKind, RubricItem, TestBank
from tests.fault_server import Running, running

pytest.importorskip("openai")
pytest.importorskip("aiohttp")

RATING = "QuestionSelfRatedUnanswerablePromptWithChoices"
VERIFIED = "QuestionCompleteConcisePromptWithT5VerifiedAnswerKey2"


@contextlib.contextmanager
def model(folder: Path, *rules: dict[str, Any], **settings: object) -> Iterator[Running]:
    """A server whose model answers by rules."""
    replies = folder / "replies.jsonl"
    replies.write_text("".join(json.dumps(rule) + "\n" for rule in rules), encoding="utf-8")
    with running(replies=replies, **settings) as server:
        yield server


def says(reply: str | list[str], *contains: str) -> dict[str, Any]:
    return {"contains": list(contains), "reply": reply}


def write_passages(folder: Path, **texts: str) -> str:
    """Passages by id; those of q2 have a 2 in front."""
    groups: dict[str, list[GradedPassage]] = {"q1": [], "q2": []}
    for doc_id, text in texts.items():
        groups["q2" if doc_id.startswith("second") else "q1"].append(GradedPassage(doc_id=doc_id, text=text))
    path = folder / "passages.jsonl.gz"
    write_graded(path, [QueryPassages(query_id, found) for query_id, found in groups.items() if found])
    return str(path)


def write_items(folder: Path, *texts: str, kind: ItemKind = "question", gold: tuple[str, ...] = ()) -> str:
    items = [RubricItem(f"q1/{text}", "q1", text, kind, gold_answers=gold) for text in texts]
    path = folder / "bank.jsonl"
    write_bank(path, bank_entries(TestBank.from_items(items, {"q1": "leap years"}), test_collection="test"))
    return str(path)


def endpoint(server: Running, name: str = "m", **options: object) -> list[str]:
    more = [part for key, value in options.items() for part in ("--model-option", f"{key}={value}")]
    return ["--model", f"openai:{name}", "--base-url", server.url, *more]


def sets(path: Path | str) -> dict[str, ItemGradeSet]:
    """Passage -> its only grade set."""
    found = {}
    for group in load_graded(path):
        for passage in group.passages:
            [found[passage.doc_id]] = passage.exam_grades or ()
    return found


def grades(path: Path | str) -> dict[str, dict[str, int]]:
    """Passage -> text of the item -> grade (the ids of the test banks here end with the text)."""
    return {
        doc_id: {item_id.rpartition("/")[2]: grade for item_id, grade in grade_of_items(entry).items()}
        for doc_id, entry in sets(path).items()
    }


def prompts_of(server: Running) -> list[str]:
    return list(server.stats()["order"])


def test_from_queries_to_a_leaderboard(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "queries.tsv").write_text("q1\twhy leap years\nq2\twhy tides\n", encoding="utf-8")
    passages = write_passages(tmp_path, sun="about the sun", pope="about a pope", second_moon="about the moon")
    (tmp_path / "one.run").write_text("q1 Q0 sun 1 2.0 one\nq2 Q0 second_moon 1 1.0 one\n")
    (tmp_path / "two.run").write_text("q1 Q0 pope 1 2.0 two\n")
    rules = [
        says(
            '```json\n{"questions": ["How long?", "Who rules?", "how LONG"]}\n```', "Break the query 'why leap years'"
        ),
        says("Here they are:\n1. Which force?\n2. How high?", "Break the query 'why tides'"),
        says("5", "How long?", "about the sun"),
        says("Rating: 4", "Who rules?", "about a pope"),
        says("4: The answer is mostly there.", "Which force?"),
        says("1", "Question:"),
    ]
    bank, out = str(tmp_path / "bank.jsonl.gz"), str(tmp_path / "graded.jsonl.gz")
    with model(tmp_path, *rules) as server:
        made = ["generate", str(tmp_path / "queries.tsv"), *endpoint(server), "-o", bank]
        assert main(made) == 0
        assert "1 generated question left out: the same text was there already" in capsys.readouterr().err
        texts = {item.text for item in load_bank(bank)}
        assert texts == {"How long?", "Who rules?", "Which force?", "How high?"}
        assert main(["grade", passages, "--bank", bank, *endpoint(server), "-o", out]) == 0
        calls = server.stats()["calls"]
    # 2 queries, then 2 passages × 2 items and 1 × 2.
    assert calls == 2 + 6
    runs = [str(tmp_path / "one.run"), str(tmp_path / "two.run")]
    capsys.readouterr()
    assert main(["leaderboard", out, *runs, "--bank", bank, "-m", "RubricCover(rel=4)@20", "--format", "json"]) == 0
    rows = {row["run_id"]: row["measures"] for row in json.loads(capsys.readouterr().out)["runs"]}
    # one: q1 covers "How long?" of two, q2 "Which force?" of two; two: q1 covers "Who rules?", q2 is not answered.
    means = {run: rows[run]["RubricCover(rel=4)@20"]["mean"] for run in ("one", "two")}
    assert means == {"one": 0.5, "two": 0.25}


OWN = """
name = "Coverage4"
target = "question"
parser = "rating"
scale = [0, 4]
covers = 3
citation = "ours, 2026"
system = "You grade passages."
template = '''
How much of the answer is there? 0 is nothing, 4 is all.
Question: {question}
Passage: {context}
End with one line "Grade: N".'''
"""


def test_a_prompt_on_a_scale_to_10_is_graded_and_scored(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    prompt = tmp_path / "ten.toml"
    text = OWN.replace("Coverage4", "Ten").replace("[0, 4]\ncovers = 3", "[0, 10]\ncovers = 7\npartial = 4")
    prompt.write_text(text.replace("4 is all", "10 is all"), encoding="utf-8")
    replies = {
        "sun": ("7", 7), "pope": ("10", 10), "sea": ("It says most of it.\nGrade: 8/10", 8),
        "list": ('1. It names 3 of 12.\n2. It is short.\n\nOn a scale of 0 to 10, I rate it 4.', 4),
        "law": ("Grade: 10 out of 10.", 10), "art": ("0", 0),
        # Another scale, more than all, and words that end in a number word.
        "war": ("4/5", None), "gas": ("11", None), "ice": ("I give it seventy five.", None),
    }  # fmt: skip
    passages = write_passages(tmp_path, **{name: f"about {name}." for name in replies})
    bank, out = write_items(tmp_path, "How long?"), tmp_path / "graded.jsonl"
    rules = [says(reply, f"about {name}.") for name, (reply, _) in replies.items()]
    with model(tmp_path, *rules) as server:
        command = ["grade", passages, "--bank", bank, *endpoint(server), "--prompt", str(prompt), "-o", str(out)]
        assert main(command) == 1
    said = capsys.readouterr().err
    assert "11 is no grade of the scale 0 to 10 (1)" in said and "4 of 5 is not on the scale 0 to 10 (1)" in said
    read = {name: grade for name, (_, grade) in replies.items() if grade is not None}
    assert grades(out) == {name: {"How long?": read[name]} if name in read else {} for name in replies}
    run = tmp_path / "one.run"
    run.write_text("".join(f"q1 Q0 {name} {rank} {9 - rank} one\n" for rank, name in enumerate(("list", "sun"), 1)))
    board = ["leaderboard", str(out), str(run), "--bank", bank, "--no-overall", "--format", "tsv"]
    assert main([*board, "--on-failed", "zero", "-m", "RubricCover@1", "NuggetA@1", "RubricCover@2"]) == 0
    header, row = (line.split("\t") for line in capsys.readouterr().out.splitlines()[:2])
    cells = dict(zip(header, row, strict=True))
    # At rank 1 stands what is partial.
    expected = {"RubricCover(rel=7)@1": "0.0000", "NuggetA(rel=7,partial_rel=4)@1": "0.5000"}
    assert {**expected, "RubricCover(rel=7)@2": "1.0000"}.items() <= cells.items()
    assert main(["qrels", str(out), "--bank", bank, "-o", str(tmp_path / "made.qrels")]) == 1
    labels = [line.split() for line in (tmp_path / "made.qrels").read_text().splitlines()]
    assert {doc_id: int(label) for _, _, doc_id, label in labels if doc_id in read} == read
    assert main(["convert", str(out), "-o", str(tmp_path / "grades.csv")]) == 0
    assert ",10" in (tmp_path / "grades.csv").read_text()


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("scale = [0, 4]\ncovers = 3", "", "parser rating needs a scale"),
        ('target = "question"', "target = question", "is no TOML"),
        ('name = "Coverage4"', 'name = "Thomas"', "Thomas is the name of another prompt"),
    ],
)
def test_what_is_wrong_with_a_prompt_is_one_line_and_costs_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, expected: str
) -> None:
    prompt = tmp_path / "own.toml"
    prompt.write_text(OWN.replace(old, new), encoding="utf-8")
    passages, bank = write_passages(tmp_path, sun="about the sun"), write_items(tmp_path, "How long?")
    command = ["grade", passages, "--bank", bank, "--model", "openai:m", "--base-url", "http://127.0.0.1:9/v1"]
    assert main([*command, "--prompt", str(prompt), "-o", str(tmp_path / "o.jsonl")]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"rubric_measures: {prompt}:") and expected in said
    assert said.count("\n") == 1
    assert not list(tmp_path.glob("o.jsonl*"))
