"""Agreement of sources that name generated answers differently: assignments, files of others, passages of a pool."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ir_measures import Qrel

import rubric_measures
from rubric_measures import Draws
from rubric_measures.base.errors import InputError


def assigned(path: Path) -> Path:
    labels = {("q1", "a"): "support", ("q1", "b"): "not_support", ("q2", "a"): "partial_support"}
    rows = [
        {"qid": query, "run_id": run, "answer_text": "t", "nuggets": [{"text": "n", "assignment": label}]}
        for (query, run), label in labels.items()
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_whole_answers_and_their_passages_are_matched(tmp_path: Path) -> None:
    # Of a/q1 the highest of the passages is 2, of b/q1 0, of a/q2 1: the same labels as of the assignments.
    passages = [
        Qrel("q1", "a/q1/1", 0),
        Qrel("q1", "a/q1/2", 2),
        Qrel("q1", "b/q1/1", 0),
        Qrel("q2", "a/q2/1", 1),
        Qrel("q2", "a/q2/2", 0),
    ]
    whole = [Qrel("q1", "a/q1", 2), Qrel("q1", "b/q1", 1), Qrel("q2", "a/q2", 1)]
    found = rubric_measures.agreement(assigned(tmp_path / "a.jsonl"), passages, draws=Draws(0))
    assert found.agreement.pairs == 3 and found.agreement.kappa == 1.0
    found = rubric_measures.agreement(passages, whole, draws=Draws(0))
    assert found.agreement.pairs == 3
    # In order of (query, run): a and b of q1, a of q2.
    assert [side.tolist() for side in found.aligned] == [[2, 0, 1], [2, 1, 1]]


def test_what_is_alike_stays_and_what_is_not_is_refused(tmp_path: Path) -> None:
    same = [Qrel("q1", "a/q1/1", 0), Qrel("q1", "a/q1/2", 2)]
    assert rubric_measures.agreement(same, same, draws=Draws(0)).agreement.pairs == 2
    with pytest.raises(InputError, match="label no common document"):
        rubric_measures.agreement(same, [Qrel("q1", "c/q1", 1)], draws=Draws(0))
    # What ends with another query is an id like any other.
    with pytest.raises(InputError, match="label no common document"):
        rubric_measures.agreement([Qrel("q1", "a/q2/1", 0)], [Qrel("q1", "a", 1)], draws=Draws(0))
