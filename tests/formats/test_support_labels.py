"""Support labels of TREC RAG: both forms of files in, records and labels out, with what the files leave open."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

import rubric_measures
from rubric_measures import Draws
from rubric_measures.base.errors import FormatError, InputError
from rubric_measures.corpora.converting import convert
from rubric_measures.formats.support import read_support_labels, records_of_support_labels
from tests.support_data import line, write


def test_a_text_that_is_nan_is_none(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    wordless = line("one", labels=(["2"],))
    wordless["sentences"][0]["text"] = float("nan")
    with caplog.at_level(logging.WARNING):
        [answer] = read_support_labels(write(tmp_path / "labels.jsonl", line("two"), wordless))[1:]
    assert answer.sentences[0].text == ""
    assert "1 sentence has no text" in caplog.text


def test_what_nobody_defined_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "labels.jsonl", line("two"), line("one", labels=(["3"],)))
    with pytest.raises(FormatError, match=r"labels.jsonl:2: .*support: .*'3'"):
        read_support_labels(path)
    again = write(tmp_path / "again.jsonl", line("one"), line("one"))
    with pytest.raises(FormatError, match="stands in line 1 already; keep one"):
        read_support_labels(again)
    double = line("one", labels=(["2", "0"],))
    double["sentences"][0]["citations"][1]["reference"] = "d0.0"
    answers = read_support_labels(write(tmp_path / "double.jsonl", double))
    with pytest.raises(InputError, match=r"document 'd0\.0' has two labels"):
        records_of_support_labels(answers)
    with pytest.raises(InputError, match=r"double\.jsonl: query 't1', run 'one', sentence 0: "):
        rubric_measures.load(tmp_path / "double.jsonl")


def test_labels_of_several_files_are_joined_and_compared(tmp_path: Path) -> None:
    one = write(tmp_path / "one.jsonl", line("one"))
    two = write(tmp_path / "two.jsonl", line("two", labels=(["2"], ["0"], ["2", "2"])))
    convert([one, two], tmp_path / "both.jsonl", to="records")
    board = rubric_measures.score(str(tmp_path / "both.jsonl"), overall=False, notes=False)
    assert board.cells["one"]["SupportPrecision"].mean == pytest.approx(0.5)
    assert board.cells["two"]["SupportPrecision"].mean == pytest.approx(2 / 3)
    # The same answer by somebody else: 5 pairs (sentence, document) have both labels, 4 of them the same one.
    other = write(tmp_path / "other.jsonl", line("one", labels=(["2"], ["0"], ["0", "2"], ["2"], [], ["-1", "2"])))
    found = rubric_measures.agreement(one, other, items=True, draws=Draws(0))
    assert found.agreement.pairs == 5
    assert found.agreement.exact_match == pytest.approx(4 / 5)
