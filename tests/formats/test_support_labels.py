"""Support labels of TREC RAG: both forms of files in, records and labels out, with what the files leave open."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

import rubric_measures
from rubric_measures import Draws
from rubric_measures.base.errors import FormatError, InputError
from rubric_measures.corpora.conversion import convert_files
from rubric_measures.formats import detect_format
from rubric_measures.formats.support import SupportAnswer, read_support_labels, records_of_support_labels
from tests.support_data import LABELS, line, write


def _said(answer: SupportAnswer) -> tuple[object, ...]:
    """What an answer says, however its file writes the names of numbers."""
    sentences = [
        (one.sentence_id, one.text, one.citations, one.verification_worthy, one.combined) for one in answer.sentences
    ]
    return *answer.key, sentences


@pytest.mark.parametrize("style", ["Id", "ID"])
def test_labels_come_back_from_records_as_they_went_in(tmp_path: Path, style: str) -> None:
    joined = ("-1", "2", "1", "-1", "-1", "0") if style == "Id" else ()
    path = write(
        tmp_path / "labels.jsonl", line("one", style=style, joined=joined), line("two", labels=(), style=style)
    )
    assert detect_format(path) == "support-labels"
    convert_files([path], tmp_path / "records.jsonl", to="records")
    convert_files([tmp_path / "records.jsonl"], tmp_path / "back.jsonl", to="support-labels")
    before, after = read_support_labels(path), read_support_labels(tmp_path / "back.jsonl")
    assert list(map(_said, after)) == list(map(_said, before))
    assert [[one.support for one in sentence.citations] for sentence in after[0].sentences] == list(LABELS)


def test_a_repeated_sentence_id_is_counted_and_each_sentence_counts(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    twice = line("one", labels=(["2"], ["0"]))
    twice["sentences"][1]["sentenceId"] = 0
    twice["sentences"][1]["citations"][0]["reference"] = "d0.0"
    path = write(tmp_path / "labels.jsonl", twice)
    board = rubric_measures.score(path, measures="SupportPrecision", overall=False, notes=False)
    assert board.cells["one"]["SupportPrecision"].mean == pytest.approx(0.5)
    assert "1 sentence stands twice in its answer; each counts" in caplog.text


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
    convert_files([one, two], tmp_path / "both.jsonl", to="records")
    board = rubric_measures.score(str(tmp_path / "both.jsonl"), overall=False, notes=False)
    assert board.cells["one"]["SupportPrecision"].mean == pytest.approx(0.5)
    assert board.cells["two"]["SupportPrecision"].mean == pytest.approx(2 / 3)
    # The same answer by somebody else: 5 pairs (sentence, document) have both labels, 4 of them the same one.
    other = write(tmp_path / "other.jsonl", line("one", labels=(["2"], ["0"], ["0", "2"], ["2"], [], ["-1", "2"])))
    found = rubric_measures.agreement(one, other, items=True, draws=Draws(0))
    assert found.agreement.pairs == 5
    assert found.agreement.exact_match == pytest.approx(4 / 5)
