"""Word matching of extracted answers against gold answers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rubric_measures.grading.matching import matches_any, matches_gold


@pytest.mark.parametrize(
    ("answer", "gold", "matches"),
    [
        ("The epidermis.", "epidermis", True),  # equal after stopwords and stems
        ("rising", "rise", True),
        ("increase", "rise", False),  # a model check would accept it, words do not
        ("dermis", "epidermis", False),  # epidermi, dermi: distance 3 of 8, 37.5 %
        ("photosynthesys", "photosynthesis", True),  # 1 of at least 11 characters
        ("abcde", "abcdf", False),  # distance 1 of 5 is 20 %, not less
        ("abcdeg", "abcdfg", True),  # distance 1 of 6 is 16.7 %
        ("", "epidermis", False),
        ("1912", "1912", True),
        ("1912", "1913", False),  # 1 of 4
        ("The who", "the who", True),  # stopwords only
    ],
)
def test_words_match_below_a_fifth_of_the_longer_text(answer: str, gold: str, matches: bool) -> None:
    assert matches_gold(answer, gold) is matches


@pytest.mark.parametrize(
    ("answer", "gold", "matches"),
    [
        ("Yes.", "true", True),
        ("correct", "True", True),
        ("no", "true", False),
        ("wrong", "false", True),
        ("true", "false", False),
        # 2 · 4 / 10 is 0.8, not above; 2 · 5 / 12 is 0.833
        ("abcdu", "abcdf", False),
        ("abcdug", "abcdfg", True),
    ],
)
def test_the_workbench_matches_by_similarity_and_knows_true_and_false(answer: str, gold: str, matches: bool) -> None:
    assert matches_gold(answer, gold, compat="workbench") is matches


def test_one_gold_answer_is_enough_and_no_answer_is_none() -> None:
    assert matches_any("it rises", ("fall", "rise"))
    assert not matches_any("it rises", ("fall",))
    assert not matches_any("No answer", ("answer",))
    assert not matches_any("unknown", ())
    assert matches_any("no", ("no",))


@given(st.text(max_size=40), st.text(max_size=40))
def test_matching_is_symmetric_and_reflexive(left: str, right: str) -> None:
    assert matches_gold(left, right) == matches_gold(right, left)
    assert matches_gold(left, left)
