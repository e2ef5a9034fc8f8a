"""The commands of docs/support.md, run as they stand there on the example and on a small file of labels."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, commands, run
from tests.support_data import line, write


def test_the_commands_of_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(ROOT / "resources" / "example", "example")
    shutil.copytree("example/answers", "answers")
    # A person on two sentences of the example: document d0101 is there, and says the first.
    person = line("thorough", "q01", (["2"], ["0"]))
    for sentence, text in zip(
        person["sentences"], ("Leaves stay green forever.", "Chlorophyll is green."), strict=True
    ):
        sentence["text"], sentence["citations"][0]["reference"] = text, "d0101"
    write(Path("labels.jsonl"), person)
    write(Path("rag24.webassess.jsonl.gz"), line("one", "t1"), line("two", "t1", (["1"],)))
    write(Path("rag24.without-prediction.jsonl.gz"), line("one", "t2", (["2"],), style="ID") | {"topic_id": "t2"})
    outputs = [printed.out for printed in run(commands("support"), capsys)]
    board = outputs[1].splitlines()
    assert board[0].split() == [
        "run",
        *("SupportPrecision", "SupportRecall", "CitationF1"),
        *("present:SupportPrecision", "present:SupportRecall", "present:CitationF1"),
        "grades",
    ]
    # What is fluent and empty has no word of what it cites; one run has an empty answer, which is there and scores 0.
    assert [row.split()[0] for row in board[1:4]] == ["thorough", "concise", "fluent-but-empty"]
    # One: t1 1.5 / 3, t2 1. Two: t1 1/2, t2 absent.
    published = {row.split("\t")[0]: row.split("\t") for row in outputs[5].splitlines()}
    columns = published["run_id"]
    place, present = columns.index("SupportPrecision"), columns.index("present:SupportPrecision")
    assert (published["one"][place], published["two"][place]) == ("0.750000", "0.250000")
    assert (published["one"][present], published["two"][present]) == ("0.750000", "0.500000")
    # The person says 2 and 0; of "leaves stay green forever" the document has two words of four, and of the other all.
    assert re.search(r"^pairs +2 ", outputs[7], re.MULTILINE)
    assert Path("corrected/graded.jsonl.gz").exists()
