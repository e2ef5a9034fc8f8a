"""Tests of runs, judgments and item grades that are added to records."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from rubric_measures.base.errors import InputError
from rubric_measures.corpora.conversion import add_judgments, add_runs
from rubric_measures.records.merging import merge_records
from rubric_measures.records.models import GradedPassage, QueryPassages
from rubric_measures.types.entities import Qrel, make_run


def passage(doc_id: str = "d", **fields: Any) -> GradedPassage:
    return GradedPassage(paragraph_id=doc_id, text=f"text of {doc_id}", **fields)


def test_runs_are_added(caplog: pytest.LogCaptureFixture) -> None:
    groups = [QueryPassages("q", [passage("d"), passage("e")])]
    run = make_run("new", [("q", "e", 2.0), ("q", "x", 1.5), ("q", "d", 1.0), ("q9", "d", 1.0)])
    with caplog.at_level(logging.WARNING, "rubric_measures"):
        (group,) = add_runs(groups, [run])
    assert [[(place.method, place.rank, place.score) for place in one.rankings] for one in group.passages] == [
        [("new", 3, 1.0)],
        [("new", 1, 2.0)],
    ]
    assert caplog.messages == ["2 ranked documents have no record and are left out (such as x of query q)"]
    assert add_runs([group], [run]) == [group]
    with pytest.raises(InputError, match="another ranking of the run 'new'"):
        add_runs([group], [make_run("new", [("q", "e", 2.0)])])
    (short,) = add_runs(groups, [run], depth=1)
    assert [len(one.rankings) for one in short.passages] == [0, 1]


def at_rank_1(doc_id: str) -> dict[str, Any]:
    return {"rankings": [{"method": "t", "paragraphId": doc_id, "queryId": "q", "rank": 1, "score": 1.0}]}


def test_two_runs_of_one_name_are_not_made_one() -> None:
    groups = [QueryPassages("q", [passage("d"), passage("e")])]
    one, other = make_run("t", [("q", "d", 1.0)]), make_run("t", [("q", "e", 1.0)])
    with pytest.raises(InputError, match="two runs are called 't'; give one of them another name"):
        add_runs(groups, [one, other])
    # The same in files that are merged: each has another passage first.
    with pytest.raises(InputError, match="query 'q': the run 't' has 'd' at rank 1 in one file and 'e' in another"):
        merge_records(
            [add_runs([QueryPassages("q", [passage(doc_id)])], [run]) for doc_id, run in (("d", one), ("e", other))]
        )
    # Parts of one run are its parts; a passage that shares a rank in the whole may be missing in a part.
    whole = make_run("t", [("q", "d", 2.0), ("q", "e", 1.0)])
    parts = [add_runs([QueryPassages("q", [passage(doc_id)])], [whole]) for doc_id in "de"]
    assert merge_records(parts) == add_runs(groups, [whole])
    tied = [QueryPassages("q", [passage(doc_id, paragraph_data=at_rank_1(doc_id)) for doc_id in "de"])]
    for order in (
        [tied, [QueryPassages("q", tied[0].passages[:1])]],
        [[QueryPassages("q", tied[0].passages[:1])], tied],
    ):
        assert merge_records(order) == tied


def test_judgments_are_added(caplog: pytest.LogCaptureFixture) -> None:
    groups = [QueryPassages("q", [passage("d"), passage("e")])]
    with caplog.at_level(logging.WARNING, "rubric_measures"):
        (group,) = add_judgments(groups, [Qrel("q", "d", 3), Qrel("q", "x", 1)])
    assert [[one.relevance for one in found.judgments] for found in group.passages] == [[3], []]
    assert caplog.messages == ["1 judged document has no record and is left out (such as x of query q)"]
    with pytest.raises(InputError, match="the judgment is 3 in"):
        add_judgments([group], [Qrel("q", "d", 0)])
    with pytest.raises(InputError, match="judged 1 and 2"):
        add_judgments(groups, [Qrel("q", "d", 1, "a"), Qrel("q", "d", 2, "b")])
