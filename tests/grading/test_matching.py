"""Word matching of extracted answers against gold answers."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rubric_measures.grading.styles import _STOPWORDS, matches_any, matches_gold


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
        ("...", "", False),
        ("1912", "1912", True),
        ("1912", "1913", False),  # 1 of 4
        ("The who", "the who", True),  # stopwords only
    ],
)
def test_words_match_below_a_fifth_of_the_longer_text(answer: str, gold: str, matches: bool) -> None:
    assert matches_gold(answer, gold) is matches


@pytest.mark.parametrize(
    ("answer", "gold"),
    [
        ("In 1912.", "1912"), ("in the water", "water"), ("a vitamin", "vitamin"), ("1,000 metres", "1000 metres"),
        ("1.50 metres long", "1.5 metres long"),
        ("-5 °C", "−5 C"), ("C++.", "c++"), ("1914–1918", "1914-1918"), ("Vitamin D", "vitamin d"),
        ("it's not toxic", "not toxic"), ("COVID-19", "Covid 19"), ("above the surface", "Above surface."),
        ("the earth’s crust", "the Earth's crust"),
        # methods.md's rule alone: 1 of 11 characters, 2 of 14, 2 of 12 …
        ("U.S. Congress", "US Congress"), ("the U.S. Constitution", "US Constitution"),
        ("U.K. government", "UK government"), ("D.C. Circuit", "DC Circuit"), ("J. K. Rowling", "JK Rowling"),
        ("J.K. Rowling", "J. K. Rowling"), ("John F. Kennedy", "John Kennedy"), ("John F Kennedy", "John Kennedy"),
        ("john f kennedy", "John Kennedy"), ("John F. Kennedy", "John F Kennedy"),
        ("Franklin D. Roosevelt", "Franklin Roosevelt"), ("George W. Bush", "George Bush"),
        ("World War 2", "World War II"), ("World War 1", "World War I"), ("Henry V", "Henry 5"),
        ("plan a trip abroad", "plan trip abroad"), ("the class I attended daily", "class attended daily"),
        ("Once Upon A Time in the West", "Once Upon Time in the West"), ("a T cell receptor", "T cell receptor"),
        ("U.S. President John F. Kennedy", "President John F. Kennedy"), ("$50", "50"), ("300 BC", "300 BCE"),
        ("US", "U.S."), ("the U.S.A.", "the USA"), ("44 BC", "44 B.C."), ("1,000", "1000"), ("1,500,000", "1500000"),
        ("stage I lung cancer", "Stage I lung cancer"), ("class A drug", "Class A drug"),
        ("Title I funding", "title I funding"), ("article I section 8", "Article I, Section 8"),
        ("group A strep", "Group A strep"), ("world war i veterans", "World War I veterans"),
        ("the Act I finale", "act I finale"), ("It is in stage I of the disease", "Stage I of the disease"),
        ("Queen Elizabeth II", "Queen Elizabeth 2nd"),
    ],
)  # fmt: skip
def test_what_says_the_same_matches(answer: str, gold: str) -> None:
    assert matches_gold(answer, gold)
    assert matches_gold(gold, answer)


def test_stopwords_are_nothing_beside_a_word() -> None:
    # Another list would be other grades.
    told = hashlib.sha256(" ".join(sorted(_STOPWORDS)).encode()).hexdigest()
    assert (len(_STOPWORDS), told[:16]) == (179, "0c98fde29ffc5a2e")
    assert [word for word in _STOPWORDS if not matches_gold(f"{word} epidermis", "epidermis")] == []


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
