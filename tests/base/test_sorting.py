"""Tests of rankings by rank: places kept where a record is missing, ties, ranks that say another order than scores."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytrec_eval import RelevanceEvaluator

from rubric_measures.base.errors import InputError
from rubric_measures.types.entities import Gap, Placed, by_rank, ranked


def test_a_missing_document_keeps_its_rank() -> None:
    placed = by_rank([(2, 8.0, "b"), (5, 5.0, "e"), (4, 6.0, "d")])
    assert placed == Placed(["no-record-1", "b", "no-record-3", "d", "e"], 0)
    assert [type(doc_id) is Gap for doc_id in placed.doc_ids] == [True, False, True, False, False]


def test_documents_of_one_rank_stand_by_score_and_id_and_push_what_follows() -> None:
    # Ranks 1, 1, 1, 2 fill the places 1 to 4; rank 6 leaves place 5 free.
    places = [(1, 1.0, "a"), (1, 2.0, "b"), (1, 1.0, "c"), (2, 1.0, "d"), (6, 0.5, "e")]
    assert by_rank(places) == Placed(["b", "c", "a", "d", "no-record-5", "e"], 0)


def test_no_gap_has_the_id_of_a_document() -> None:
    known = ["no-record-1", "no-no-record-7"]
    gaps = by_rank([(2, 1.0, "a")], known).doc_ids
    assert gaps == ["no-no-no-record-1", "a"]


def test_a_document_that_stands_twice_is_refused() -> None:
    with pytest.raises(InputError, match=r"^g: query 'q': passage 'a' occurs twice in the ranking of 'r'; keep one"):
        by_rank([(1, 1.0, "a"), (3, 1.0, "a")], (), "g: query 'q'", "r")


@given(st.lists(st.booleans(), max_size=30), st.data())
def test_whatever_is_taken_away_the_rest_stays_where_it_stood(kept: list[bool], data: st.DataObject) -> None:
    scores = data.draw(st.lists(st.integers(-3, 3).map(float), min_size=len(kept), max_size=len(kept)))
    whole = ranked((f"d{index}", score) for index, score in enumerate(scores))
    places = [(rank, -float(rank), doc_id) for rank, doc_id in enumerate(whole, 1)]
    left = [place for place, keep in zip(places, kept, strict=True) if keep]
    placed = by_rank(data.draw(st.permutations(left)))
    last = max((rank for rank, _, _ in left), default=0)
    expected = [doc_id if keep else None for doc_id, keep in zip(whole, kept, strict=True)][:last]
    assert [None if isinstance(doc_id, Gap) else doc_id for doc_id in placed.doc_ids] == expected
    assert len(set(placed.doc_ids)) == last


@pytest.mark.parametrize(("single", "expected"), [(True, ["b", "a", "c"]), (False, ["a", "b", "c"])])
def test_scores_of_one_single_compare_as_trec_eval_compares_them(
    single: bool, expected: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rubric_measures.types.entities.compares_singles", lambda: single)
    assert ranked([("c", 0.5), ("b", 1.0), ("a", 1 + 1e-12)]) == expected


SCORES = st.sampled_from([1.0, 1 + 1e-12, 1 - 1e-12, 0.5])


@given(st.dictionaries(st.sampled_from("abcdefgh"), SCORES).map(lambda scores: list(scores.items())))
def test_the_one_sort_is_that_of_the_trec_eval_that_is_installed(scored: list[tuple[str, float]]) -> None:
    order = ranked(scored)
    for doc_id, _ in scored:
        evaluator = RelevanceEvaluator({"q": {doc_id: 1}}, {"recip_rank"})
        assert evaluator.evaluate({"q": dict(scored)})["q"]["recip_rank"] == 1 / (order.index(doc_id) + 1)
