"""Tests of the reports: the four analyses on records of known content, in every format, and as a command."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest

from rubric_measures.cli import main
from rubric_measures.measures.checked import CheckedQuery, check_records
from rubric_measures.measures.grade_sets import Grader, GradeSetSelector
from rubric_measures.records.models import load_graded
from rubric_measures.verification.html import verify
from tests.example_records import grade_set, passage, write_all, write_lines
from tests.shared_data import shared_data

EXTRACTED = {
    **grade_set({}, prompt="QuestionCompleteConciseUnanswerablePromptWithChoices"),
    "correctAnswered": ["q1/a", "q1/b"],
    "answers": [["q1/a", "twelve"], ["q1/b", "a | <b>bold</b> claim"]],
    "self_ratings": None,
}
RATED = "QuestionSelfRatedUnanswerablePromptWithChoices"

# d1 relevant, covers a and b; d2 not relevant, covers b; d3 relevant, covers nothing; d4 unjudged, covers b;
# d5 relevant, its grade of a failed.
LINES = [
    [
        "q1",
        [
            passage("q1", "d1", [grade_set({"q1/a": 5, "q1/b": 4}), EXTRACTED], judgment=2),
            passage("q1", "d2", [grade_set({"q1/a": 0, "q1/b": 5})], judgment=0),
            passage("q1", "d3", [grade_set({"q1/a": 1, "q1/b": 3})], judgment=3),
            passage("q1", "d4", [grade_set({"q1/a": 0, "q1/b": 4})]),
            passage("q1", "d5", [grade_set({"q1/b": 0}, status={"q1/a": "refused"})], judgment=1),
        ],
    ]
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write_lines(tmp_path / "graded.jsonl.gz", LINES)


@pytest.fixture
def query(path: Path) -> CheckedQuery:
    selector = GradeSetSelector(Grader(prompt=RATED), str(path))
    return next(check_records(load_graded(path), selector))


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["verify", *arguments]) == 0
    return capsys.readouterr().out


def test_every_report_in_every_format(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base = [str(path), "--grader", f"prompt={RATED}"]
    text = run(capsys, "uncovered-passages", *base)
    assert text.splitlines()[0] == "q1: passages judged 1 or better, no item graded 4 or better"
    assert text.splitlines()[2].split() == ["3", "3", "d3", "Text", "of", "d3."]
    rows = [json.loads(line) for line in run(capsys, "bad-questions", *base, "--format", "jsonl").splitlines()]
    assert [(row["report"], row["item_id"], row["spurious"]) for row in rows] == [
        ("bad-items", "q1/b", 1),
        ("bad-items", "q1/a", 0),
    ]
    tsv = [line.split("\t") for line in run(capsys, "grid", *base, "--format", "tsv").splitlines()]
    assert tsv[0] == ["report", "title", "doc_id", "judgment", "best", "q1/a", "q1/b"]
    assert tsv[1][2:] == ["d1", "2", "5", "5: twelve", "4: a | <b>bold</b> claim"]
    assert tsv[5][2:] == ["d5", "1", "0", "refused", "0"]
    markdown = run(capsys, "grading", *base, "--format", "markdown")
    assert r"a \| \<b\>bold\</b\> claim" in markdown
    everything = [json.loads(line)["report"] for line in run(capsys, "all", *base, "--format", "jsonl").splitlines()]
    assert {"grading", "grid", "uncovered", "bad-items", "items"} <= {*everything}


def test_several_grade_sets_and_unknown_queries_are_refused(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", "all", str(path)]) == 2
    assert "several grade sets are left" in capsys.readouterr().err
    assert main(["verify", "all", str(path), "--grader", f"prompt={RATED}", "--queries", "q9"]) == 2
    assert "has no query 'q9'" in capsys.readouterr().err
    assert main(["verify", "all", str(path), "--grader", "nobody"]) == 2
    assert "holds no grades" in capsys.readouterr().err


def raw_queries(path: Path, prompt: str) -> dict[str, list[dict[str, Any]]]:
    """What the file says of each passage, read from its JSON without any of the package's code.

    A rating that comes twice is the later one; what an extraction prompt found goes before the rater's reply; the
    judgment is the highest one that assessors gave the passage for the query.
    """
    queries: dict[str, list[dict[str, Any]]] = {}
    for line in gzip.decompress(path.read_bytes()).decode("utf-8").splitlines():
        query_id, passages = json.loads(line)
        for one in passages:
            entries = one.get("exam_grades") or []
            rated = [entry for entry in entries if entry["prompt_info"]["prompt_class"] == prompt]
            ratings = {
                rating.get("question_id") or rating["nugget_id"]: rating["self_rating"]
                for entry in rated
                for rating in entry["self_ratings"]
            }
            answers: dict[str, str] = {}
            for entry in [*rated, *(entry for entry in entries if not entry.get("self_ratings"))]:
                answers.update(dict(entry["answers"]))
            labels = [
                label["relevance"]
                for label in one["paragraph_data"].get("judgments") or ()
                if label["query"] == query_id
            ]
            found = {"doc_id": one["paragraph_id"], "text": one["text"], "judgment": max(labels, default=None)}
            queries.setdefault(query_id, []).append({**found, "ratings": ratings, "answers": answers})
    return queries


def expected_rows(queries: dict[str, list[dict[str, Any]]], least: int) -> dict[str, list[dict[str, Any]]]:
    """The rows of the four analyses for ratings of 4 and more and judgments of `least` and more, from the raw data."""
    rows: dict[str, list[dict[str, Any]]] = {"grading": [], "grid": [], "uncovered": [], "bad-items": []}
    for query_id, passages in queries.items():
        items = sorted({item_id for one in passages for item_id in one["ratings"]})
        for item_id in items:
            graded = [one for one in passages if item_id in one["ratings"]]
            for one in sorted(graded, key=lambda one: (-one["ratings"][item_id], one["doc_id"])):
                row = {"title": f"{query_id}: {item_id}", "grade": one["ratings"][item_id], "status": "graded"}
                shown = {name: one[name] for name in ("judgment", "doc_id", "text")}
                rows["grading"].append({**row, **shown, "answer": one["answers"].get(item_id, "")})
        for one in passages:
            row = {"title": query_id, "doc_id": one["doc_id"], "judgment": one["judgment"]}
            cells: dict[str, str | None] = dict.fromkeys(items)
            for item_id, rating in one["ratings"].items():
                answer = one["answers"].get(item_id, "")
                cells[item_id] = str(rating) if answer.strip() in ("", str(rating)) else f"{rating}: {answer}"
            rows["grid"].append({**row, "best": max(one["ratings"].values(), default=None), **cells})
        title = f"{query_id}: passages judged {least} or better, no item graded 4 or better"
        missing = [
            one for one in passages if (one["judgment"] or 0) >= least and max([*one["ratings"].values(), 0]) < 4
        ]
        for one in sorted(missing, key=lambda one: (-one["judgment"], one["doc_id"])):
            row = {"title": title, "judgment": one["judgment"], "doc_id": one["doc_id"], "text": one["text"]}
            rows["uncovered"].append({**row, "best_grade": max(one["ratings"].values(), default=None)})
        title = f"{query_id}: items graded 4 or better in passages judged below {least}"
        bad = []
        for item_id in items:
            labels = [one["judgment"] for one in passages if one["ratings"].get(item_id, 0) >= 4]
            judged = [label for label in labels if label is not None]
            spurious, relevant = sum(label < least for label in judged), sum(label >= least for label in judged)
            row = {"title": title, "item_id": item_id, "item": "", "covering": len(labels)}
            bad.append({**row, "spurious": spurious, "relevant": relevant})
        rows["bad-items"] += sorted(bad, key=lambda row: (-row["spurious"], row["relevant"], row["item_id"]))
    return rows


@pytest.mark.parametrize(
    ("name", "prompt", "least", "some"),
    [
        ("workbench/graded-q0.jsonl.gz", "NuggetSelfRatedPrompt", 1, 1),
        ("workbench/graded-q0.jsonl.gz", RATED, 2, 1),
        ("workbench-golden/dl20-scale.jsonl.gz", RATED, 2, 2),
    ],
)
def test_a_real_file_of_the_workbench(
    name: str, prompt: str, least: int, some: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """All rows and all fields of the four analyses, against the file's own JSON: some queries, and all with a gap."""
    path = shared_data(name)
    everything = raw_queries(path, prompt)
    gaps = {row["title"].partition(":")[0] for row in expected_rows(everything, least)["uncovered"]}
    queries = {
        query_id: everything[query_id] for query_id in everything if query_id in {*gaps, *list(everything)[:some]}
    }
    expected = expected_rows(queries, least)
    asked = ["--min-judgment", str(least), "--queries", ",".join(queries), "--format", "jsonl"]
    out = run(capsys, "all", str(path), "--grader", f"prompt={prompt}", *asked)
    rows = [json.loads(line) for line in out.splitlines()]
    for kind, wanted in expected.items():
        assert [row for row in rows if row["report"] == kind] == [{"report": kind, **row} for row in wanted]
    assert expected["grading"] and expected["grid"] and expected["bad-items"]
    # The small file has no judgments: the analyses that need them are empty there, and are not in the large one.
    assert len(expected["uncovered"]) == (4 if name.startswith("workbench-golden") else 0)


def test_a_text_is_one_value(tmp_path: Path) -> None:
    folder = write_all(tmp_path)
    graded, bank = folder / "graded.jsonl.gz", folder / "bank.jsonl"
    of_one = verify("grid", graded, bank=bank, queries="q1")
    assert str(of_one) == str(verify("grid", graded, bank=bank, queries=["q1"]))
    assert len(repr(of_one)) < 100


def test_control_characters_reach_no_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    evil = "a\x1b[31mred\x9b2J\x7f\x00b"
    entry = {**grade_set({"q\x1b]0;x\x07/a": 5}), "answers": [["q\x1b]0;x\x07/a", evil]]}
    one = {**passage("q\x1b]0;x\x07", "d\x1b1", [entry], {"s": 1}, 0), "text": evil}
    path = write_lines(tmp_path / "g.jsonl", [["q\x1b]0;x\x07", [one]]])
    bank = [{"query_id": "q\x1b]0;x\x07", "items": [{"question_id": "q\x1b]0;x\x07/a", "question_text": evil}]}]
    common = [str(path), "--bank", str(write_lines(tmp_path / "b.jsonl", bank))]
    for form in ("text", "markdown", "tsv", "jsonl", "html"):
        page = tmp_path / "page.html"
        out = run(capsys, "all", *common, *(["-o", str(page)] if form == "html" else ["--format", form]))
        out = page.read_text("utf-8") if form == "html" else out
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f]", out), form
        if form == "jsonl":
            assert evil in {json.loads(line).get("text") for line in out.splitlines()}
        else:
            # Markdown escapes the backslashes and brackets once more.
            shown = re.sub(r"\\([\\\[])", r"\1", out) if form == "markdown" else out
            assert r"a\x1b[31mred\x9b2J\x7f\x00b" in shown
