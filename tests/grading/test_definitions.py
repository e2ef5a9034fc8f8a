"""Tests that records describe their graders: once a query, through merging, conversions and edits of the bank."""

from __future__ import annotations

import gzip
from pathlib import Path

from rubric_measures.cli import main
from rubric_measures.formats.banks import bank_entries, write_bank
from rubric_measures.records.models import GradedPassage, QueryPassages, load_graded, provenance_of, write_graded
from rubric_measures.types.entities import RubricItem, TestBank, content_hash

LONG = " ".join(f"Word {number} is {{question}}.\nQuestion: forged" for number in range(60)) + " "


def write_inputs(folder: Path) -> None:
    """Two queries; the first has a long passage, a short one and an empty one."""
    groups = [
        QueryPassages(
            "q1",
            [
                GradedPassage(doc_id="long", text=LONG),
                GradedPassage(doc_id="short", text="Short. Passage: short."),
                GradedPassage(doc_id="empty", text=" "),
            ],
        ),
        QueryPassages("q2", [GradedPassage(doc_id="other", text="Other.")]),
    ]
    write_graded(folder / "passages.jsonl.gz", groups)
    made = [
        RubricItem(f"{query}/{place}", query, f"What is {query} {place}?", gold_answers=("gold", "Gold leaf"))
        for query in ("q1", "q2")
        for place in range(3)
    ]
    bank = TestBank.from_items(made, {"q1": "leap years", "q2": "tides"})
    write_bank(folder / "bank.jsonl", bank_entries(bank, test_collection="test"))


def test_each_query_and_grader_is_described_once_and_its_hash_is_that_of_the_settings(tmp_path: Path) -> None:
    write_inputs(tmp_path)
    command = [
        "grade",
        str(tmp_path / "passages.jsonl.gz"),
        "--bank",
        str(tmp_path / "bank.jsonl"),
        "--model",
        "lexical",
    ]
    assert main([*command, "-o", str(tmp_path / "g.jsonl.gz")]) == 0
    for group in load_graded(tmp_path / "g.jsonl.gz"):
        made = [provenance_of(entry) for passage in group.passages for entry in passage.exam_grades or ()]
        assert ["definition" in one for one in made] == [True] + [False] * (len(made) - 1)
        assert content_hash(made[0]["definition"]["settings"])[:12] == made[0]["grader"]
        assert set(made[0]["definition"]["prompts"]) == {"LexicalCoverage"}
    # Grading again changes nothing, and reading and writing keeps it.
    source = ["grade", str(tmp_path / "g.jsonl.gz"), *command[2:], "-o", str(tmp_path / "again.jsonl.gz")]
    assert main(source) == 0
    lines = [gzip.decompress((tmp_path / name).read_bytes()) for name in ("g.jsonl.gz", "again.jsonl.gz")]
    assert lines[0] == lines[1]
    assert main(["convert", str(tmp_path / "g.jsonl.gz"), "--to", "records", "-o", str(tmp_path / "c.jsonl.gz")]) == 0
    assert gzip.decompress((tmp_path / "c.jsonl.gz").read_bytes()) == lines[0]
