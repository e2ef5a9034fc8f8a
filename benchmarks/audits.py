"""Audits by simulation: how often two equal runs are "settled", what intervals hold when it ends, and what it costs.

python -m benchmarks.audits                      everything
python -m benchmarks.audits looks                one part: looks, means, stages or board
python -m benchmarks.audits --repeats 10 looks   fewer audits

The part `board` reads public data, which no test needs: RUBRIC_MEASURES_SHARED names its folder.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from rubric_measures.analysis.calibration import (
    AuditPlan,
    DrawnPassage,
    PairAudit,
    Place,
    Settled,
    make_audit,
)
from rubric_measures.formats.trec import read_qrels
from rubric_measures.records.models import grade_of_items, load_graded

# Seconds an assessor needs: to read a passage, and for an item then.
READING, GRADING = 30.0, 8.0
# How alike errors within a passage are; their correlation is then .24, as of public grades by GPT-4.
ALIKE = 0.62
# Queries, how often the grader is right, how often it flatters one run, and how much that run leads.
LOOKED_AT = (
    *((50, 0.85, 0.0, 0.0), (50, 0.85, 0.2, 0.0), (25, 0.85, 0.0, 0.0), (100, 0.7, 0.0, 0.0)),
    *((50, 0.85, 0.0, 0.7), (50, 0.85, 0.2, 0.3), (25, 0.7, 0.0, 0.7)),
)


@dataclass(frozen=True)
class World:
    """Queries, each with passages × items, and two runs.

    Attributes:
        truth: (query, passage, item): whether it covers.
        labels: the grader's.
        rankings: of the runs `a` and `b`.
        means: of these runs: the mean share of items that their passages cover.
    """

    truth: NDArray[np.bool_]
    labels: dict[Place, dict[str, bool]]
    rankings: dict[str, dict[str, list[str]]]
    means: tuple[float, float]


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
    found = truth.mean(axis=2)
    means = tuple(float(np.take_along_axis(found, tops[run], axis=1).mean()) for run in "ab")
    return World(truth, labels, rankings, (means[0], means[1]))


def found_by(world: World, drawn: Sequence[DrawnPassage]) -> dict[tuple[str, str, str], bool]:
    """What assessors find in passages that are drawn."""
    return {
        (*one.place, item): bool(world.truth[int(one.query_id), int(one.doc_id), int(item)])
        for one in drawn
        for item in one.items
    }


def audited(world: World, plan: AuditPlan) -> tuple[PairAudit, list[tuple[int, float]]]:
    """The audit of the two runs, with what assessors find of all that is planned."""
    audit = make_audit(plan, world.labels, world.rankings)
    return audit.pairs[0], audit.corrections(0, found_by(world, audit.drawn))


def looks(repeats: int) -> None:
    """Audits of two runs, looked at after every passage, until one settles them."""
    print(f"\n150 passages planned, looked at after each, nominal 5 % and 95 %, {repeats} audits a row\n")
    print("| queries | right | flatters | lead | “settled” | wrongly | with a usual interval | interval holds |")
    print("|---|---|---|---|---|---|---|---|")
    for queries, agreement, flattered, lead in LOOKED_AT:
        generator = np.random.default_rng(queries)
        settled, usual, ends, real = 0, 0, list[Settled](), list[float]()
        for seed in range(repeats):
            world = make_world(generator, queries=queries, agreement=agreement, flattered=flattered, lead=lead)
            real.append(world.means[0] - world.means[1])
            audit, checked = audited(world, AuditPlan([("a", "b")], 150, seed=seed))
            stopped, called = None, False
            for size in range(1, len(checked) + 1):
                found = audit.settled(checked[:size])
                if found.estimate is None or found.high is None:
                    continue
                # The interval of one look, of the same error.
                half = (found.high - found.estimate) / 2.2414 * np.sqrt(size / audit.planned) * 1.96
                called |= abs(found.estimate) > half
                stopped = stopped or (found if found.verdict != "open" else None)
                # What else comes tells of the usual interval alone.
                if stopped and called:
                    break
            settled += stopped is not None
            usual += called
            ends.append(stopped or found)
        # The interval is of what more such queries would show.
        truth = np.mean(real) if lead else 0.0
        held = sum(one.low <= truth <= one.high for one in ends if one.low is not None and one.high is not None)
        wrongly = sum(one.verdict == "worse" or (one.verdict == "better" and not lead) for one in ends)
        shares = " | ".join(f"{one / repeats:.3f}" for one in (settled, wrongly, usual, held))
        print(f"| {queries} | {agreement} | {flattered} | {truth:.3f} | {shares} |", flush=True)


def means(repeats: int) -> None:
    """The calibrated board of the runs of an audit without pairs, looked at four times."""
    print(f"\nThe mean of run a, 150 passages planned, looked at four times, nominal 95 %, {repeats} audits a row\n")
    print("| queries | right | flatters | truth | grader | holds at all looks | half an interval at the end |")
    print("|---|---|---|---|---|---|---|")
    for queries, agreement, flattered, lead in LOOKED_AT:
        generator = np.random.default_rng(queries)
        low, high, real, said = [], [], [], []
        for seed in range(repeats):
            world = make_world(generator, queries=queries, agreement=agreement, flattered=flattered, lead=lead)
            audit = make_audit(AuditPlan([], 150, seed=seed), world.labels, world.rankings)
            looks_at = [audit.settled(found_by(world, audit.drawn[:size]))[0] for size in (40, 75, 110, 150)]
            real.append(world.means[0])
            said.append(looks_at[-1].grader)
            low.append([one.low or 0.0 for one in looks_at])
            high.append([one.high or 0.0 for one in looks_at])
        truth, ends = np.mean(real), np.array([low, high])
        held = ((ends[0] <= truth) & (truth <= ends[1])).all(axis=1).mean()
        half = (ends[1] - ends[0])[:, -1].mean() / 2
        row = f"{truth:.3f} | {np.mean(said):.3f} | {held:.3f} | {half:.3f}"
        print(f"| {queries} | {agreement} | {flattered} | {row} |", flush=True)


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


def often_wrong(data: Path) -> dict[bool, float]:
    """Whether a model's label covers -> how often people's label of the same passage says otherwise (TREC RAG 2025)."""
    people, model = (
        {(one.query_id, one.doc_id): one.relevance >= 2 for one in read_qrels(data / "rag25" / f"{name}.txt.gz")}
        for name in ("qrels.rag25.test", "qrels.rag25.test-umbrela2")
    )
    pairs = [(said, people[place]) for place, said in model.items() if place in people]
    return {label: float(np.mean([said != held for said, held in pairs if said is label])) for label in (True, False)}


def read_board(data: Path) -> tuple[dict[Place, dict[str, bool]], dict[str, dict[str, list[str]]]]:
    """The grader's labels, and the runs: run -> query -> passages, the best first."""
    labels: dict[Place, dict[str, bool]] = {}
    ranks: dict[str, dict[str, dict[str, int]]] = {}
    for group in load_graded(data / "workbench-golden" / "dl20-scale.jsonl.gz"):
        for passage in group.passages:
            (entry,) = passage.exam_grades or ()
            labels[group.query_id, passage.doc_id] = {item: grade >= 4 for item, grade in grade_of_items(entry).items()}
            for one in passage.rankings:
                ranks.setdefault(one.method, {}).setdefault(group.query_id, {})[passage.doc_id] = one.rank
    return labels, {run: {q: sorted(of, key=lambda doc: of[doc]) for q, of in qs.items()} for run, qs in ranks.items()}


def board(repeats: int) -> None:
    """A board of the size of TREC DL 2020, five pairs of runs that stand twenty ranks apart."""
    data = Path(os.environ.get("RUBRIC_MEASURES_SHARED", Path(__file__).parents[2] / "shared")) / "data"
    if not data.is_dir():
        print(f"\n{data} is not there: no board")
        return
    wrong = often_wrong(data)
    labels, rankings = read_board(data)
    said = np.array([[*of.values()] for of in labels.values()])
    row = {place: number for number, place in enumerate(labels)}
    shown = {run: [row[q, doc] for q, docs in of.items() for doc in docs[:20]] for run, of in rankings.items()}
    best = sorted(rankings, key=lambda run: -said[shown[run]].mean())
    pairs = [(best[at], best[at + 20]) for at in range(0, len(best) - 20, 8)]
    audits = max(1, repeats // 40)
    print(
        f"\n{len(best)} runs, {len(pairs)} pairs, {audits} audits of each, 150 minutes at most. People say otherwise of"
    )
    print(f"{wrong[True]:.2f} of what the grader covers, and of {wrong[False]:.2f} of the rest.\n")
    print("| items a passage | planned | error at the end | settled | wrongly | minutes |\n|---|---|---|---|---|---|")
    for items in (1, 5):
        minutes = (READING + items * GRADING) / 60
        planned = int(150 / minutes)
        generator = np.random.default_rng(7)
        errors, ends, wrongly = list[float](), list[float](), 0
        for seed in range(audits):
            noise = np.sqrt(1 - ALIKE**2) * generator.normal(size=said.shape)
            noise += ALIKE * generator.normal(size=(len(said), 1))
            truth = said ^ (noise > ndtri(1 - np.where(said, wrong[True], wrong[False])))
            for pair in pairs:
                audit = make_audit(AuditPlan([pair], planned, items=items, seed=seed), labels, rankings)
                weights = audit.weights[pair]
                terms = [w * truth[row[q, doc]].mean() for q, docs in weights.items() for doc, w in docs.items()]
                real = sum(terms) / len(weights)
                found = {
                    (*one.place, item): bool(holds)
                    for one in audit.drawn
                    for item, holds in zip(labels[one.place], truth[row[one.place]], strict=True)
                }
                checked, of_pair = audit.corrections(0, found), audit.pairs[0]
                errors.append((of_pair.settled(checked).estimate or 0.0) - real)
                looks_at = (of_pair.settled(checked[:size]) for size in range(10, len(checked) + 1))
                end = next((one for one in looks_at if one.verdict != "open"), None)
                if end is not None:
                    ends.append(end.checked * minutes)
                    wrongly += (end.verdict == "better") != (real > 0)
        error, count = np.sqrt(np.mean(np.square(errors))), len(errors)
        shares = f"{error:.4f} | {len(ends) / count:.3f} | {wrongly / count:.3f} | {np.mean(ends or [np.nan]):.0f}"
        print(f"| {items} | {planned} | {shares} |", flush=True)


PARTS = {"looks": looks, "means": means, "stages": stages, "board": board}


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
