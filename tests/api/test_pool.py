"""Pooling from Python, and the way from runs to grades in a notebook."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
from ir_measures import ScoredDoc

import rubric_measures
from rubric_measures.base.errors import InputError
from rubric_measures.cli import main
from rubric_measures.corpora.collections import example_folder, load_collection
from rubric_measures.formats.answers import Answer
from rubric_measures.records.models import load_graded
from rubric_measures.types.entities import make_run


def test_the_example_collection(tmp_path: Path) -> None:
    passages = rubric_measures.pool(collection=example_folder(), depth=3)
    assert repr(passages).startswith("PassageRecords(9 queries, ")
    by_command, by_hand = tmp_path / "command.jsonl.gz", tmp_path / "hand.jsonl.gz"
    assert main(["pool", "--collection", str(example_folder()), "-k", "3", "-o", str(by_command)]) == 0
    passages.write(by_hand)
    assert by_hand.read_bytes() == by_command.read_bytes()
    path = tmp_path / "kept.jsonl.gz"
    kept = rubric_measures.pool(collection=load_collection(example_folder()), depth=3, output=path)
    assert list(kept) == load_graded(by_command)
    assert [group[:2] for group in kept] == [group[:2] for group in passages]
    # What is deleted would be scored all the same.
    with pytest.raises(TypeError):
        del kept[1:]  # type: ignore[attr-defined]
    assert list(copy.copy(rubric_measures.pool(collection=example_folder(), depth=3, output=path))) == list(kept)


def test_runs_and_answers_in_memory() -> None:
    collection = load_collection(example_folder())
    query_id, text = next(iter(collection.query_texts.items()))
    doc_ids = [doc.doc_id for doc, _ in zip(collection.docs_iter(), range(3), strict=False)]
    run = make_run("mine", [(query_id, doc_id, 3.0 - place) for place, doc_id in enumerate(doc_ids)])
    answer = Answer(query_id, "writer", "An answer of a few words.")
    [group] = rubric_measures.pool([run, answer], collection, depth=2, queries={query_id: text})
    assert {passage.doc_id for passage in group.passages} == {*doc_ids[:2], f"writer/{query_id}/1"}
    scores = {query_id: {doc_id: 3.0 - place for place, doc_id in enumerate(doc_ids)}}
    rows = [ScoredDoc(query_id, doc_id, score) for doc_id, score in scores[query_id].items()]
    named = [rubric_measures.pool(runs, collection, depth=2) for runs in ({"mine": scores}, {"mine": rows}, [run])]
    assert named[0][0] == named[1][0] == named[2][0]
    [alone] = rubric_measures.pool(answer)
    assert [passage.text for passage in alone.passages] == ["An answer of a few words."]


def test_bad_input(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nothing to pool"):
        rubric_measures.pool()
    run = make_run("mine", [("q1", "d1", 1.0)])
    with pytest.raises(InputError, match="need a collection"):
        rubric_measures.pool(run)
    with pytest.raises(InputError, match="two runs are called 'mine'"):
        rubric_measures.pool([run, run])
    with pytest.raises(InputError, match="depth 0"):
        rubric_measures.pool(Answer("q1", "a", "text"), depth=0)
    reports = tmp_path / "answers.tsv"
    reports.write_text("q1\ta\ttext\n")
    with pytest.raises(InputError, match="would be replaced"):
        rubric_measures.pool(reports, output=reports)
