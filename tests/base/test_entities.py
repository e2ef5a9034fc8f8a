"""Tests of the records: ids, banks, and what they refuse."""

import copy
import hashlib
import math
import operator
import pickle
from typing import Any

import pytest

from rubric_measures.base.errors import InputError, UnknownNameError
from rubric_measures.types.entities import Ranking, RubricItem, TestBank, make_item_id


def test_item_id_is_the_md5_of_the_stripped_text() -> None:
    digest = hashlib.md5("Où est-ce?".encode()).hexdigest()
    assert make_item_id("q1", "  Où est-ce?\n") == f"q1/{digest}"
    assert make_item_id("tqa2:L_0002", "Où est-ce?", "T_1") == f"tqa2:L_0002/T_1/{digest}"
    assert make_item_id("q1", "Where?") != make_item_id("q1", "where?")


def test_what_is_equal_does_not_differ() -> None:
    one, same, other = (RubricItem("q/a", "q", text, info=info) for text, info in (("a", None), ("a", 1), ("b", None)))
    triples: list[tuple[object, object, object]] = [
        (one, same, other),
        (Ranking(["a"], [1.0]), Ranking(["a"], [1.0], ["a"]), Ranking(["b"], [1.0])),
    ]
    for first, second, third in triples:
        assert operator.eq(first, second) and not operator.ne(first, second)
        assert operator.ne(first, third) and not operator.eq(first, third)


def test_what_else_a_file_says_of_an_item_is_not_compared_nor_shown() -> None:
    item, same = RubricItem("q/a", "q", "What?"), RubricItem("q/a", "q", "What?", info={"note": "long"})
    assert item == same and hash(item) == hash(same) and repr(item) == repr(same)
    assert repr(item).startswith("RubricItem(item_id='q/a', query_id='q', text='What?', kind='question', ")
    assert item != RubricItem("q/a", "q", "Why?")


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
        TestBank.from_items([item])


def test_a_bank_can_be_copied_and_sent_to_another_process() -> None:
    bank = TestBank.from_items([RubricItem("q1/a", "q1", "What?", gold_answers=("this",), weight=0.5)])
    assert pickle.loads(pickle.dumps(bank)) == copy.deepcopy(bank) == bank
    assert bank.query_texts is not TestBank({}).query_texts


def test_bank_names_near_queries() -> None:
    bank = TestBank.from_items([RubricItem("query1/a", "query1", "What?")])
    assert len(bank) == 1
    with pytest.raises(UnknownNameError, match="did you mean query1"):
        bank.for_query("query2")


def test_the_facet_of_an_item_is_in_its_record_or_in_its_id() -> None:
    # (item id, query, facet_id) -> facet, part
    expected = {
        ("q/abc", "q", None): (None, "q"),
        ("q/f/abc", "q", None): ("f", "q/f"),
        ("q/f/abc", "q", "g"): ("g", "q/g"),
        ("q/f/g/abc", "q", None): ("f/g", "q/f/g"),
        ("q/r/abc", "q/r", None): (None, "q/r"),
        ("NDQ_1", "q", None): (None, "q"),
        ("other/f/abc", "q", None): (None, "q"),
        ("q", "q", None): (None, "q"),
    }
    items = [RubricItem(item_id, query_id, "", facet_id=facet_id) for item_id, query_id, facet_id in expected]
    assert [(item.facet, item.part) for item in items] == list(expected.values())
