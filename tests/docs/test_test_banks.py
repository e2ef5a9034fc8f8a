"""The commands of docs/test-banks.md, run as they stand there with scripted models."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from rubric_measures.cli import main
from rubric_measures.formats.banks import load_bank
from rubric_measures.grading.generation import BankQuery, read_bank_queries

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "test-banks.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return [part.split("```")[0] for part in PAGE.split(f"```{language}\n")[1:]]


def test_the_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("queries.tsv").write_text("q1\thow is tea made\n", encoding="utf-8")
    Path("passages.tsv").write_text("d1#0\tTea is hot.\nd1#1\tIt is brown.\nd2#0\tInk.\n", encoding="utf-8")
    Path("real.txt").write_text("is tea hot?\n", encoding="utf-8")
    rules = [
        {"contains": ["into concise questions"], "reply": '{"questions": ["Which leaf?", "How hot?"]}'},
        {"contains": ["into concise nuggets"], "reply": '```json\n{"nuggets": ["boil water"]}\n```'},
        {"contains": ["Tea is hot.\nIt is brown."], "reply": '{"questions": ["how hot is tea", "is tea brown"]}'},
        {"contains": ["[Text]\nInk."], "reply": '["what is ink"]'},
    ]
    Path("model.jsonl").write_text("".join(json.dumps(rule) + "\n" for rule in rules), encoding="utf-8")
    Path("other.jsonl").write_text(json.dumps({"reply": '["why tea", "why ink"]'}) + "\n", encoding="utf-8")
    names = {"$MODEL": "scripted:model.jsonl", "$OTHER": "scripted:other.jsonl"}
    for block in blocks("sh"):
        for line in block.strip().split("\n"):
            for name, spec in names.items():
                line = line.replace(name, spec)
            assert main(shlex.split(line)[1:]) == 0
    assert [item.text for item in load_bank("questions.jsonl.gz")] == ["Which leaf?", "How hot?"]
    assert [(item.text, item.kind) for item in load_bank("nuggets.jsonl.gz")] == [("boil water", "nugget")]
    lines = [json.loads(line) for line in Path("synthetic.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [set(line) for line in lines] == [{"query_id", "text", "document_id", "doc_ids", "model"}] * 3
    assert len({line["query_id"] for line in lines}) == 3


def test_the_query_file_with_facets(tmp_path: Path) -> None:
    path = tmp_path / "queries.json"
    path.write_text(blocks("json")[0], encoding="utf-8")
    assert read_bank_queries(str(path))[1] == BankQuery("tqa2:L_0002", "Earth science", "T_0011", "what scientists do")
