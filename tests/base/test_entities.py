"""Ids, banks and rankings: what they are made of, what they refuse, how the one sort sorts."""

from __future__ import annotations

import copy
import hashlib
import math
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytrec_eval import RelevanceEvaluator

from rubric_measures.base.errors import InputError
from rubric_measures.types.entities import Gap, RubricItem, TestBank, by_rank, make_item_id, ranked
from tests.example_records import bank_from_items


def test_item_id_is_the_md5_of_the_stripped_text() -> None:
    digest = hashlib.md5("Où est-ce?".encode()).hexdigest()
    assert make_item_id("q1", "  Où est-ce?\n") == f"q1/{digest}"
    assert make_item_id("tqa2:L_0002", "Où est-ce?", "T_1") == f"tqa2:L_0002/T_1/{digest}"
    assert make_item_id("q1", "Where?") != make_item_id("q1", "where?")


def test_bank_refuses_an_item_twice_and_a_foreign_item() -> None:
    item = RubricItem("q1/a", "q1", "What?")
    with pytest.raises(InputError, match="occurs twice"):
        TestBank({"q1": (item, item)})
    with pytest.raises(InputError, match="listed under query"):
        TestBank({"q2": (item,)})


@pytest.mark.parametrize(
    ("odd", "said"),
    [
        ({"weight": math.nan}, "query 'q1', item 'q1/a': weight nan; expected a finite float"),
        ({"weight": math.inf}, "query 'q1', item 'q1/a': weight inf; expected a finite float"),
        ({"weight": "zzz"}, "query 'q1', item 'q1/a': weight 'zzz'; expected a finite float"),
        ({"item_id": 7}, "query 'q1', item 7: expected text as its id"),
        ({"query_id": 1}, "query 1: expected text as the id of a query"),
        ({"text": math.nan}, r"query 'q1', item 'q1/a': expected text as its id, its text \(nan\)"),
        ({"facet_id": math.nan}, r"query 'q1', item 'q1/a': expected text .* and its facet \(nan; or None\)"),
    ],
)
def test_an_empty_cell_or_a_number_of_a_data_frame_is_one_clear_error(odd: dict[str, Any], said: str) -> None:
    item = RubricItem(**{"item_id": "q1/a", "query_id": "q1", "text": "What?", **odd})
    with pytest.raises(InputError, match=said):
        bank_from_items([item])


def test_a_bank_can_be_copied_and_sent_to_another_process() -> None:
    bank = bank_from_items([RubricItem("q1/a", "q1", "What?", gold_answers=("this",), weight=0.5)])
    assert pickle.loads(pickle.dumps(bank)) == copy.deepcopy(bank) == bank
    assert bank.query_texts is not TestBank({}).query_texts


def test_a_missing_document_keeps_its_rank() -> None:
    doc_ids, counts = by_rank([(2, 8.0, "b"), (5, 5.0, "e"), (4, 6.0, "d")])
    assert doc_ids == ["no-record-1", "b", "no-record-3", "d", "e"] and not counts["places"]
    assert [type(doc_id) is Gap for doc_id in doc_ids] == [True, False, True, False, False]


def test_documents_of_one_rank_stand_by_score_and_id_and_push_what_follows() -> None:
    # Ranks 1, 1, 1, 2 fill the places 1 to 4; rank 6 leaves place 5 free.
    places = [(1, 1.0, "a"), (1, 2.0, "b"), (1, 1.0, "c"), (2, 1.0, "d"), (6, 0.5, "e")]
    assert by_rank(places)[0] == ["b", "c", "a", "d", "no-record-5", "e"]


def test_a_document_that_stands_twice_is_refused() -> None:
    with pytest.raises(InputError, match=r"^g: query 'q': passage 'a' occurs twice in the ranking of 'r'; keep one"):
        by_rank([(1, 1.0, "a"), (3, 1.0, "a")], "g: query 'q'", "r")


@given(st.lists(st.booleans(), max_size=30), st.data())
def test_whatever_is_taken_away_the_rest_stays_where_it_stood(kept: list[bool], data: st.DataObject) -> None:
    scores = data.draw(st.lists(st.integers(-3, 3).map(float), min_size=len(kept), max_size=len(kept)))
    whole = ranked((f"d{index}", score) for index, score in enumerate(scores))
    places = [(rank, -float(rank), doc_id) for rank, doc_id in enumerate(whole, 1)]
    left = [place for place, keep in zip(places, kept, strict=True) if keep]
    doc_ids, _ = by_rank(data.draw(st.permutations(left)))
    last = max((rank for rank, _, _ in left), default=0)
    expected = [doc_id if keep else None for doc_id, keep in zip(whole, kept, strict=True)][:last]
    assert [None if isinstance(doc_id, Gap) else doc_id for doc_id in doc_ids] == expected
    assert len(set(doc_ids)) == last


SCORES = st.sampled_from([1.0, 1 + 1e-12, 1 - 1e-12, 0.5])


@given(st.dictionaries(st.sampled_from("abcdefgh"), SCORES).map(lambda scores: list(scores.items())))
def test_the_one_sort_is_that_of_the_trec_eval_that_is_installed(scored: list[tuple[str, float]]) -> None:
    order = ranked(scored)
    for doc_id, _ in scored:
        evaluator = RelevanceEvaluator({"q": {doc_id: 1}}, {"recip_rank"})
        assert evaluator.evaluate({"q": dict(scored)})["q"]["recip_rank"] == 1 / (order.index(doc_id) + 1)
