"""Audits by simulation: how often two equal runs are "settled", what intervals hold when it ends, and what it costs.

python -m benchmarks.audits                      everything
python -m benchmarks.audits looks                one part: looks or stages
python -m benchmarks.audits --repeats 10 looks   fewer audits
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from rubric_measures.analysis.audits import (
    AuditPlan,
    PairAudit,
    Place,
    make_audit,
)

# Seconds an assessor needs: to read a passage, and for an item then.
READING, GRADING = 30.0, 8.0
# How alike errors within a passage are; their correlation is then .24, as of public grades by GPT-4.
ALIKE = 0.62


@dataclass(frozen=True)
class World:
    """Queries, each with passages × items, and two runs.

    Attributes:
        truth: (query, passage, item): whether it covers.
        labels: the grader's.
        rankings: of the runs `a` and `b`.
    """

    truth: NDArray[np.bool_]
    labels: dict[Place, dict[str, bool]]
    rankings: dict[str, dict[str, list[str]]]


def make_world(
    generator: np.random.Generator,
    *,
    queries: int = 50,
    agreement: float = 0.85,
    flattered: float = 0.0,
    lead: float = 0.0,
) -> World:
    """Two runs show 10 of 16 passages, each at random, of which `a` prefers good ones as far as it has a lead.

    Args:
        generator: of random numbers.
        queries: how many.
        agreement: how often the grader is right.
        flattered: how often it sees an item that is not there, in passages that only `a` shows.
        lead: how much a passage's quality counts for `a`.
    """
    passages, items, shown = 16, 10, 10
    quality = generator.normal(size=(queries, passages, 1))
    latent = quality + generator.normal(-0.5, 1, (queries, 1, items)) + 0.7 * generator.normal(size=(queries, 1, 1))
    truth = latent + 0.7 * generator.normal(size=(queries, passages, items)) > 0
    noise = generator.normal(size=(queries, passages, items))
    error = ALIKE * generator.normal(size=(queries, passages, 1)) + np.sqrt(1 - ALIKE**2) * noise
    said = truth ^ (error > ndtri(agreement))
    order = {"a": generator.normal(size=(queries, passages)) + lead * quality[:, :, 0],
             "b": generator.normal(size=(queries, passages))}  # fmt: skip
    tops = {run: np.argsort(-of_run, axis=1)[:, :shown] for run, of_run in order.items()}
    if flattered:
        alone = np.zeros((queries, passages), dtype=bool)
        np.put_along_axis(alone, tops["a"], True, axis=1)
        np.put_along_axis(alone, tops["b"], False, axis=1)
        said |= alone[:, :, None] & (generator.random(said.shape) < flattered)
    ids = [str(number) for number in range(max(queries, passages, items))]
    labels = {
        (ids[q], ids[p]): dict(zip(ids, row, strict=False))
        for q, of_query in enumerate(said.tolist())
        for p, row in enumerate(of_query)
    }
    rankings = {run: {ids[q]: [ids[p] for p in row] for q, row in enumerate(top.tolist())} for run, top in tops.items()}
    return World(truth, labels, rankings)


def audited(world: World, plan: AuditPlan) -> tuple[PairAudit, list[tuple[int, float]]]:
    """The audit of the two runs, with what assessors find of all that is planned."""
    audit = make_audit(plan, world.labels, world.rankings)
    truth = {
        (*one.place, item): bool(world.truth[int(one.query_id), int(one.doc_id), int(item)])
        for one in audit.drawn
        for item in one.items
    }
    return audit.pairs[0], audit.corrections(0, truth)


def looks(repeats: int) -> None:
    """Audits of equal runs, looked at after every passage."""
    print(f"\nTwo equal runs, 150 passages planned, looked at after each, nominal 5 % and 95 %, {repeats} audits\n")
    print(
        "| queries | grader is right | it flatters one run | false “settled” | with a usual interval | interval holds |"
    )
    print("|---|---|---|---|---|---|")
    for queries, agreement, flattered in ((50, 0.85, 0.0), (50, 0.85, 0.2), (25, 0.85, 0.0), (100, 0.7, 0.0)):
        generator = np.random.default_rng(queries)
        false, usual, held = np.zeros(3)
        for seed in range(repeats):
            world = make_world(generator, queries=queries, agreement=agreement, flattered=flattered)
            audit, checked = audited(world, AuditPlan([("a", "b")], 150, seed=seed))
            stopped, called = None, False
            for size in range(1, len(checked) + 1):
                found = audit.settled(checked[:size])
                if found.estimate is None or found.high is None:
                    continue
                # The interval of one look, of the same error.
                half = (found.high - found.estimate) / 2.2414 * np.sqrt(size / audit.planned) * 1.96
                called |= abs(found.estimate) > half
                if found.verdict != "open" and stopped is None:
                    stopped = found
            last = stopped or found
            false += stopped is not None
            usual += called
            held += last.low is not None and last.high is not None and last.low <= 0.0 <= last.high
        shares = " | ".join(f"{one / repeats:.3f}" for one in (false, usual, held))
        print(f"| {queries} | {agreement} | {flattered} | {shares} |", flush=True)


def stages(repeats: int) -> None:
    """What an audit costs: five items of a passage against one, until a lead is settled."""
    print(
        f"\nOne run leads; until that is settled, {READING:g} s a passage and {GRADING:g} s an item, {repeats} audits\n"
    )
    print("| items a passage | planned | settled | wrongly | checked | minutes |\n|---|---|---|---|---|---|")
    for items in (1, 3, 5, 10):
        # As much time for each.
        planned = int(150 * 60 / (READING + items * GRADING))
        generator = np.random.default_rng(5)
        settled, wrong, passages, minutes = np.zeros(4)
        for seed in range(repeats):
            plan = AuditPlan([("a", "b")], planned, items=items, seed=seed)
            audit, checked = audited(make_world(generator, lead=0.7), plan)
            size = next((n for n in range(10, len(checked) + 1) if audit.settled(checked[:n]).verdict != "open"), None)
            found = audit.settled(checked[:size])
            settled, wrong = settled + (size is not None), wrong + (found.verdict == "worse")
            passages += len(checked[:size])
            minutes += len(checked[:size]) * (READING + items * GRADING) / 60
        shares = f"{settled / repeats:.3f} | {wrong / repeats:.3f} | {passages / repeats:.0f} | {minutes / repeats:.0f}"
        print(f"| {items} | {planned} | {shares} |", flush=True)


PARTS = {"looks": looks, "stages": stages}


def main() -> None:
    """Runs the parts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=[[], *PARTS], help="all of them")
    parser.add_argument("--repeats", type=int, default=4000, help="audits of each row")
    options = parser.parse_args()
    for part in options.parts or PARTS:
        PARTS[part](options.repeats)


if __name__ == "__main__":
    main()
