"""Scales of grades and their levels; the message of a chat.

What grades mean: the scale that they are on, and the least grade that counts as covering.

A chat message: what prompts are filled into and what backends send.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from rubric_measures.base.errors import InputError

# No measure gives more. Squares of larger numbers, summed over queries, are no numbers any more.
LARGEST_SCORE = 1e100

# The greatest label that fits into 32 bits.
MOST_RELEVANT = (1 << 31) - 1
# The grade of a document that says the opposite of a sentence that cites it; -1 is no label in files of TREC.
CONTRADICTED = -2
# The lowest and the highest grade that records hold: powers of two of higher ones are no numbers any more.
HELD = (CONTRADICTED, 1000)
# The keys under which prompts and graded records say a scale.
SCALE_FIELDS = ("scale", "covers", "partial", "grade_names")
_WRITTEN = re.compile(r"(-?\d+)-(-?\d+)(?::(-?\d+))?(?::(-?\d+))?")


class Scale(NamedTuple):
    """The scale of the grades of one grade set.

    `str` writes it as `parse_scale` reads it: `0-5:4:3`.

    Attributes:
        lowest: the lowest grade.
        highest: the highest grade.
        covers: the least grade that counts as covering an item, as support, or as relevant.
        partial: the least grade that earns half the credit; None where no grade is partial.
        names: the names of the grades, lowest first; empty where they have none.
    """

    lowest: int
    highest: int
    covers: int
    partial: int | None = None
    names: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.lowest}-{self.highest}:{self.covers}" + ("" if self.partial is None else f":{self.partial}")

    def __contains__(self, grade: object) -> bool:
        """Whether a grade is on the scale."""
        return isinstance(grade, int | float) and self.lowest <= grade <= self.highest

    def name_of(self, grade: int) -> str:
        """The name of a grade; the grade itself where it has none."""
        return self.names[grade - self.lowest] if self.names else str(grade)

    def as_json(self) -> dict[str, Any]:
        """The scale under the keys `SCALE_FIELDS`, as prompts and graded records say it."""
        said: dict[str, Any] = {"scale": [self.lowest, self.highest], "covers": self.covers}
        if self.partial is not None:
            said["partial"] = self.partial
        if self.names:
            said["grade_names"] = list(self.names)
        return said


# The published scales of grades that come without a prompt: self-ratings (Farzi and Dietz, EXAM++, 2024), answered or
# not (the Rubric workbench), and assigned nuggets (Pradeep et al., AutoNuggetizer, 2024).
SELF_RATING = Scale(0, 5, 4, 3)
YES_NO = Scale(0, 1, 1)
# Where nothing is graded nothing is covered, at whatever level.
ANY_LEVEL = Scale(0, MOST_RELEVANT, 1)
ASSIGNED = Scale(0, 2, 2, 1, ("not_support", "partial_support", "support"))


# Reports have a row or a column a level: a damaged file must not ask for millions.
_MOST_STEPS = 10_000


def as_number(value: float) -> float:
    """A grade as it is kept: an `int` where it has no fraction, else a `float`.

    >>> as_number(3.0), as_number(2.5)
    (3, 2.5)

    Raises:
        ValueError, OverflowError: it is no finite number.
    """
    whole = int(value)
    return whole if whole == value else float(value)


def scale_problems(ends: Sequence[Any], covers: Any = None, partial: Any = None, names: Sequence[Any] = ()) -> str:
    """What is wrong with a scale; empty when nothing is.

    Of two grades the higher one covers. Of more, somebody has to say which do: hardly ever the highest alone.
    """
    numbers = [*ends, *(one for one in (covers, partial) if one is not None)]
    if len(ends) != 2 or not all(type(one) is int for one in numbers) or not ends[0] < ends[1]:
        return "a scale is [lowest, highest], two whole numbers, and so are its covers and partial"
    lowest, highest = ends
    if highest - lowest > _MOST_STEPS:
        return f"a scale has at most {_MOST_STEPS} steps"
    if covers is None and highest - lowest > 1:
        return "say which of its grades covers"
    least = highest if covers is None else covers
    if not lowest < least <= highest:
        return f"covers={least} is not above {lowest}, the lowest grade, and at most {highest}, the highest"
    if partial is not None and not lowest < partial < least:
        return f"partial={partial} is not between the lowest grade {lowest} and covers={least}"
    if names and len(names) != highest - lowest + 1:
        return f"{len(names)} names do not fit the grades {lowest} to {highest}: one name a grade, lowest first"
    return ""


def scale_from(said: Mapping[str, Any], by_range: bool = False) -> Scale | None:
    """The scale of a mapping with the keys of `Scale.as_json`; None where it does not say one that can be read.

    Without `partial` no grade is partial.

    Args:
        said: the mapping.
        by_range: take also what says the lowest and the highest grade alone, as if the highest covered: to tell ranges
            apart.
    """
    ends, covers, partial = said.get("scale"), said.get("covers"), said.get("partial")
    if by_range and covers is None and isinstance(ends, list | tuple) and ends:
        covers = ends[-1]
    names = said.get("grade_names") or ()
    if not isinstance(ends, list | tuple) or scale_problems(ends, covers, partial, names):
        return None
    return Scale(ends[0], ends[1], ends[1] if covers is None else covers, partial, tuple(map(str, names)))


def covering_level(scale: Scale | None, said: int | None = None) -> int:
    """The least grade that covers an item: what somebody said, else what the scale says.

    Raises:
        InputError: neither is known.
    """
    if said is not None:
        return said
    return known_scale(scale).covers


def known_scale(scale: Scale | None) -> Scale:
    """The scale, where it is known.

    Raises:
        InputError: it is not.
    """
    if scale is None:
        raise InputError(
            "the scale of the grades is not known; say it, as in 0-5:4 (4 covers an item)", settings=("scale",)
        )
    return scale


def refuse_off_scale(scale: Scale | None, grades: Mapping[str, float], where: str) -> None:
    """Refuses grades that are not on their scale.

    Args:
        scale: the scale; None where it is not known.
        grades: item_id -> grade.
        where: whose grades they are, for the error.

    Raises:
        InputError: naming the first one and the scale.
    """
    off = next(((item_id, grade) for item_id, grade in grades.items() if scale and grade not in scale), None)
    if off and scale:
        what = f"{where}, item {off[0]!r}: the grade {off[1]} is not on the scale {scale.lowest} to {scale.highest}"
        raise InputError(what, settings=("scale",))


def parse_scale(text: str) -> Scale:
    """The scale that a person wrote: `LOWEST-HIGHEST:COVERS[:PARTIAL]`; of two grades the higher one covers.

    >>> parse_scale("0-5:4:3")
    Scale(lowest=0, highest=5, covers=4, partial=3, names=())
    >>> str(parse_scale("0-1"))
    '0-1:1'

    Raises:
        InputError: it is none.
    """
    found = _WRITTEN.fullmatch(text.strip())
    numbers: list[Any] = [None if part is None else int(part) for part in found.groups()] if found else []
    problem = scale_problems(numbers[:2], *numbers[2:4]) if numbers else "expected lowest-highest:covers"
    if problem:
        raise InputError(f"{text!r} is no scale ({problem}); write 0-5:4, or 0-5:4:3 where 3 is partial")
    scale = scale_from({"scale": numbers[:2], "covers": numbers[2], "partial": numbers[3]})
    assert scale is not None
    return scale


class Message(NamedTuple):
    """One chat message.

    Attributes:
        role: `system`, `user` or `assistant`.
        content: the text.
    """

    role: str
    content: str
