"""Tests of what a column of a leaderboard is called, and which column a name means."""

from __future__ import annotations

import pytest

from rubric_measures.base.errors import MeasureError, UnknownNameError
from rubric_measures.measures.measure import column_named, columns_named, parse_measures

COLUMNS = [
    "RubricCover(rel=4)@20",
    "RubricCover(rel=5)@20",
    "NuggetA(rel=2,partial_rel=1)",
    "RubricQrels(measure='RR',rel=4)",
    "nDCG@10",
    "P(rel=2)@10",
    "RubricQrels(measure='AP',rel=4)",
]


@pytest.mark.parametrize(
    ("name", "column"),
    [
        ("NuggetA", COLUMNS[2]),
        ("NuggetA(partial_rel=1)", COLUMNS[2]),
        ("NuggetA(partial_rel=1, rel=2)", COLUMNS[2]),
        ("RubricCover(rel=5)@20", COLUMNS[1]),
        ('RubricQrels(measure="RR")', COLUMNS[3]),
        ("nDCG@10", "nDCG@10"),
        ("AP", "RubricQrels(measure='AP',rel=4)"),
    ],
)
def test_a_name_without_levels_finds_its_column(name: str, column: str) -> None:
    assert column_named(name, COLUMNS) == column


def test_a_name_that_may_mean_two_columns_is_refused_with_both() -> None:
    assert columns_named("RubricCover@20", COLUMNS) == COLUMNS[:2]
    with pytest.raises(UnknownNameError) as error:
        column_named("RubricCover@20", COLUMNS)
    assert all(column in str(error.value) for column in COLUMNS[:2])
    assert "nDCG" not in str(error.value)


@pytest.mark.parametrize(
    "name", ["NuggetA(rel=3)", "NuggetA(strict=True)", "RubricCover@10", "nDCG@5", "nDCG", "P@10", "?"]
)
def test_another_measure_is_not_found(name: str) -> None:
    assert columns_named(name, COLUMNS) == []
    with pytest.raises(UnknownNameError):
        column_named(name, COLUMNS)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("nDCG@10,P@5", "nDCG@10,P@5: part measures with blanks, not with commas: nDCG@10 P@5"),
        ("NuggetV(rel=4,strict=True),AP", "not with commas: NuggetV(rel=4,strict=True) AP"),
        ("ndcg_cut_10", "ndcg_cut_10 is trec_eval's name; here it is nDCG@10"),
        ("map", "map is trec_eval's name; here it is AP"),
        ("P_5", "here it is P@5"),
        ("recall_1000", "here it is R@1000"),
    ],
)
def test_other_spellings_are_refused_with_ours(text: str, said: str) -> None:
    with pytest.raises(MeasureError) as caught:
        parse_measures(text)
    assert said in str(caught.value)
    # What is proposed can be read.
    parse_measures(str(caught.value).rpartition("commas: ")[2].rpartition("here it is ")[2])
