"""One grade from chunks and from replicates."""

from __future__ import annotations

import pytest

from rubric_measures.base.errors import GradingError
from rubric_measures.grading.asking import ReadReply, Trial, combine_replicates

LOST = ReadReply(None, "unparsed", "hm", "no rating")


def rated(grade: int) -> ReadReply:
    return ReadReply(grade, "graded", str(grade))


@pytest.mark.parametrize(("grades", "median"), [([5, 1, 3], 3), ([5, 1, 3, 3], 3), ([4, 4, 1, 1], 1), ([5, 5, 0], 5)])
def test_the_lower_median_counts(grades: list[int], median: int) -> None:
    assert combine_replicates("i", [*map(rated, grades)], {}).grade == median


def test_replicates_need_a_majority_of_grades() -> None:
    two_of_three = combine_replicates("i", [rated(4), LOST, rated(2)], {})
    assert (two_of_three.grade, two_of_three.status, two_of_three.answer) == (2, "graded", "2")
    assert two_of_three.details == {"replicates": [[4, "4"], [None, "hm"], [2, "2"]]}
    one_of_two = combine_replicates("i", [rated(4), LOST], {})
    assert (one_of_two.grade, one_of_two.status) == (None, "unparsed")
    assert "1 of 2 replicates" in one_of_two.note


def test_the_last_of_the_replies_that_are_tried_ends_a_run() -> None:
    trial = Trial(2)
    trial.note(LOST)
    with pytest.raises(GradingError, match="none of the first 2 replies can be read: no rating"):
        trial.note(LOST)
