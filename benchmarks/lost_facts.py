"""A gate on lost facts by simulation: how often it is red for nothing, and how often for facts that were deleted.

python -m benchmarks.lost_facts                 the table
python -m benchmarks.lost_facts --repeats 10    fewer simulations
"""

from __future__ import annotations

import argparse

import numpy as np
from numpy.typing import NDArray

from rubric_measures.analysis.facts import Question, RunDiff, Side, diff_facts
from rubric_measures.measures.measure import NuggetV
from rubric_measures.types.entities import RubricItem
from rubric_measures.types.scales import SELF_RATING

QUESTIONS, FACTS, COVERED = 50, 5, 0.75
# A vital fact is deleted from one answer in so many; None from none.
EVERY = (None, 8, 4, 2)
FLIPS, CONFIRM = (0.03, 0.08), (0, 1, 2)

Cells = NDArray[np.bool_]
ASKED = {
    f"q{query:02}": Question(
        "",
        tuple(RubricItem(f"i{fact}", f"q{query:02}", "", "nugget", importance="vital") for fact in range(FACTS)),
        SELF_RATING.covers or 4,
        SELF_RATING,
    )
    for query in range(QUESTIONS)
}


def graded(truth: Cells, flips: float, draw: np.random.Generator) -> Cells:
    """Grades of a grader that errs in each by itself."""
    return truth ^ (draw.random(truth.shape) < flips)


def side(name: str, grades: Cells) -> Side:
    """The grades as those of a version: 5 where a fact is covered, else 0."""
    rows = {query: {f"i{fact}": 5.0 * bool(one) for fact, one in enumerate(row)}
            for query, row in zip(ASKED, grades, strict=True)}  # fmt: skip
    return Side(name, rows)


def simulated(every: int | None, flips: float, confirm: int, draw: np.random.Generator) -> tuple[RunDiff, float]:
    """One check, and the share of the deleted facts that it names."""
    before = draw.random((QUESTIONS, FACTS)) < COVERED
    after = before.copy()
    deleted = set()
    for query in range(0, QUESTIONS, every or QUESTIONS + 1) if every else ():
        # Each answer has a fact at least.
        before[query, 0] = after[query, 0] = True
        fact = int(draw.choice(np.flatnonzero(before[query])))
        after[query, fact] = False
        deleted.add((f"q{query:02}", f"i{fact}"))
    first = [graded(truth, flips, draw) for truth in (before, after)]
    again = [[graded(truth, flips, draw) for truth in (before, after)] for _ in range(confirm)]
    changed = first[0] != first[1]
    agree = np.ones_like(changed)
    for pair in again:
        agree &= (pair[0] == first[0]) & (pair[1] == first[1])
    doubtful = [(f"q{query:02}", f"i{fact}") for query, fact in np.argwhere(changed & ~agree)]
    made = diff_facts(side("before", first[0]), side("after", first[1]), ASKED, NuggetV(rel=4), doubtful=doubtful)
    lost = {(one.query_id, one.item.item_id) for one in made.facts if one.state == "lost"}
    return made, len(lost & deleted) / len(deleted) if deleted else 1.0


def show(repeats: int) -> None:
    """Prints the table."""
    heads = [f"flips {flips:g}, confirm {confirm}" for flips in FLIPS for confirm in CONFIRM]
    print(f"| a fact deleted from | {' | '.join(heads)} |\n|---|{'---|' * len(heads)}")
    for every in EVERY:
        cells = []
        for place, (flips, confirm) in enumerate((flips, confirm) for flips in FLIPS for confirm in CONFIRM):
            draw = np.random.default_rng((every or 0, place))
            found = [simulated(every, flips, confirm, draw) for _ in range(repeats)]
            red = sum(made.is_worse for made, _ in found) / repeats
            cells.append(f"{red:.3f}" + (f" ({np.mean([share for _, share in found]):.0%})" if every else ""))
        said = f"1 answer in {every}" if every else "none"
        print(f"| {said} | {' | '.join(cells)} |", flush=True)


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=1000)
    show(parser.parse_args().repeats)


if __name__ == "__main__":
    main()
