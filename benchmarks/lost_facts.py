"""A gate on lost facts by simulation: how often it is red for nothing, and how often for facts that were deleted.

python -m benchmarks.lost_facts                 the table
python -m benchmarks.lost_facts --doubtful      the same flips, all on a few facts that the grader tosses a coin for
python -m benchmarks.lost_facts --repeats 10    fewer simulations
python -m benchmarks.lost_facts --peers         the same grades through the gates of rag-ci and contexttrace
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from rubric_measures.analysis.facts import Evidence, QueryEvidence, Side, diff_facts
from rubric_measures.measures.measure import NuggetV
from rubric_measures.types.entities import RubricItem
from rubric_measures.types.scales import SELF_RATING

QUESTIONS, FACTS, COVERED = 50, 5, 0.75
# A vital fact is deleted from one answer in so many; None from none.
EVERY = (None, 8, 4, 2)
# Of two grades of one judge, 4 % and 10.5 % differ: the usual judge and the worst one of those that were counted.
FLIPS, CONFIRM = (0.04, 0.105), (0, 2, 3)

Cells = NDArray[np.bool_]
Peer = Callable[[Cells, Cells], tuple[bool, set[tuple[str, str]]]]
ASKED = [f"q{query:02}" for query in range(QUESTIONS)]


def errors(flips: float, is_doubtful: bool, draw: np.random.Generator) -> NDArray[np.float64]:
    """The chance that a grade of each fact errs: 2e(1 - e) of two differ, or half of two where a coin is tossed."""
    if is_doubtful:
        return np.where(draw.random((QUESTIONS, FACTS)) < 2 * flips, 0.5, 0.0)
    return np.full((QUESTIONS, FACTS), (1 - np.sqrt(1 - 2 * flips)) / 2)


def graded(truth: Cells, errs: NDArray[np.float64], draw: np.random.Generator) -> Cells:
    """Grades of a grader that errs in each by itself."""
    return truth ^ (draw.random(truth.shape) < errs)


def side(name: str, grades: Cells) -> Side:
    """The grades as those of a version: 5 where a fact is covered, else 0."""
    queries = {}
    for query, row in zip(ASKED, grades, strict=True):
        items = tuple(RubricItem(f"i{fact}", query, "", "nugget", importance="vital") for fact in range(FACTS))
        cells = {f"i{fact}": {name: Evidence(5.0 * bool(one), "graded")} for fact, one in enumerate(row)}
        level = SELF_RATING.covers or 4
        queries[query] = QueryEvidence(query, "", items, cells, level, None, SELF_RATING, {name: "an answer"})
    return Side(name, name, queries)


def rag_ci(before: Cells, after: Cells) -> tuple[bool, set[tuple[str, str]]]:
    """Whether rag-ci's gate is red for the scores of the questions; it names no facts. As `ragci.baseline.decide`."""
    from ragci.baseline import DEFAULT_ALPHA, DEFAULT_MIN_EFFECT
    from ragci.stats import paired_bootstrap_test

    found = paired_bootstrap_test(before.mean(axis=1).tolist(), after.mean(axis=1).tolist())
    return found.p_value < DEFAULT_ALPHA and found.delta < -DEFAULT_MIN_EFFECT, set()


def contexttrace(before: Cells, after: Cells) -> tuple[bool, set[tuple[str, str]]]:
    """Whether `compare --fail-on any_regression` of contexttrace is red for a question, and the facts that it names.

    Each fact is a claim of the answer, which the grade says to be supported or not.
    """
    from contexttrace.verify.compare import compare_verifications

    def verified(row: NDArray[np.bool_]) -> dict[str, object]:
        claims = [
            {"claim": f"i{fact}", "verdict": "supported" if one else "unsupported"} for fact, one in enumerate(row)
        ]
        return {"claims": claims, "summary": {"support_rate": row.mean(), "unsupported_claim_rate": 1 - row.mean()}}

    red, named = False, set()
    for query, old, new in zip(ASKED, before, after, strict=True):
        found = compare_verifications(verified(old), verified(new))
        red = red or found["summary"]["regression"]
        named |= {(query, change["claim"]) for change in found["changes"] if change["status"] == "new_failure"}
    return red, named


def simulated(
    every: int | None,
    flips: float,
    confirm: int,
    draw: np.random.Generator,
    peer: Peer | None = None,
    is_doubtful: bool = False,
) -> tuple[bool, float]:
    """Whether one check is red, and the share of the deleted facts that it names; a peer's sees the first grades."""
    before = draw.random((QUESTIONS, FACTS)) < COVERED
    after = before.copy()
    deleted = set()
    for query in range(0, QUESTIONS, every or QUESTIONS + 1) if every else ():
        # Each answer has a fact at least.
        before[query, 0] = after[query, 0] = True
        fact = int(draw.choice(np.flatnonzero(before[query])))
        after[query, fact] = False
        deleted.add((f"q{query:02}", f"i{fact}"))
    errs = errors(flips, is_doubtful, draw)
    first = [graded(truth, errs, draw) for truth in (before, after)]
    if peer is not None:
        red, lost = peer(*first)
        return red, len(lost & deleted) / len(deleted) if deleted else 1.0
    again = [[graded(truth, errs, draw) for truth in (before, after)] for _ in range(confirm)]
    changed = first[0] != first[1]
    agree = np.ones_like(changed)
    for pair in again:
        agree &= (pair[0] == first[0]) & (pair[1] == first[1])
    doubtful = [(f"q{query:02}", f"i{fact}") for query, fact in np.argwhere(changed & ~agree)]
    made = diff_facts(side("before", first[0]), side("after", first[1]), NuggetV(rel=4), doubtful=doubtful)
    lost = {(one.query_id, one.item.item_id) for one in made.facts if one.state == "lost"}
    return made.pair.conclusion == "worse", len(lost & deleted) / len(deleted) if deleted else 1.0


def show(repeats: int, peers: bool = False, is_doubtful: bool = False) -> None:
    """Prints the table."""
    ways: list[tuple[str, int, Peer | None]] = [(f"confirm {confirm}", confirm, None) for confirm in CONFIRM]
    ways = [("rag-ci", 0, rag_ci), ("contexttrace", 0, contexttrace)] if peers else ways
    heads = [f"flips {flips:g}, {name}" for flips in FLIPS for name, _, _ in ways]
    print(f"| a fact deleted from | {' | '.join(heads)} |\n|---|{'---|' * len(heads)}")
    for every in EVERY:
        cells = []
        for place, (flips, (_, confirm, peer)) in enumerate((flips, way) for flips in FLIPS for way in ways):
            draw = np.random.default_rng((every or 0, place))
            found = [simulated(every, flips, confirm, draw, peer, is_doubtful) for _ in range(repeats)]
            red = sum(is_red for is_red, _ in found) / repeats
            cells.append(f"{red:.3f}" + (f" ({np.mean([share for _, share in found]):.0%})" if every else ""))
        said = f"1 answer in {every}" if every else "none"
        print(f"| {said} | {' | '.join(cells)} |", flush=True)


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=1000)
    parser.add_argument("--peers", action="store_true")
    parser.add_argument("--doubtful", action="store_true")
    options = parser.parse_args()
    show(options.repeats, options.peers, options.doubtful)


if __name__ == "__main__":
    main()
