"""What failed grades do to a board: failures drawn at random, each way to count them against the complete board."""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean

import numpy as np
from msgspec.structs import replace
from scipy.stats import kendalltau

import rubric_measures
from rubric_measures.boards.board import Leaderboard
from rubric_measures.boards.scoring import score_runs
from rubric_measures.measures.grades import NONE, Grades, OnFailed, QueryGrades
from rubric_measures.measures.measure import parse_measures
from rubric_measures.types.entities import RubricItem
from rubric_measures.types.scales import SELF_RATING

RUNS, QUERIES, PASSAGES, ITEMS = 10, 40, 60, 10
WAYS: Sequence[OnFailed] = ("zero", "expected")
MEASURES = "RubricCover(rel=4)@5 RubricCover(rel=4)@20 nRubricCover(rel=4)@20 RubricQrels(measure='nDCG@10')"

Rankings = Mapping[str, Mapping[str, Sequence[str]]]


def generated(draw: random.Random) -> tuple[Grades, Rankings]:
    """Runs of rising quality over passages that cover one item in eight; some items are hard to find."""
    queries: dict[str, QueryGrades] = {}
    runs: dict[str, dict[str, Sequence[str]]] = {f"run{run}": {} for run in range(RUNS)}
    for number in range(QUERIES):
        query_id = f"q{number}"
        chances = [draw.betavariate(0.5, 3.5) for _ in range(ITEMS)]
        table = [
            [draw.choice((4, 5)) if draw.random() < chance else draw.choice((0, 0, 0, 1, 2, 3)) for chance in chances]
            for _ in range(PASSAGES)
        ]
        grades, docs = np.array(table, float), {f"d{passage}": passage for passage in range(PASSAGES)}
        items = tuple(RubricItem(f"i{item}", query_id, "") for item in range(ITEMS))
        queries[query_id] = QueryGrades(query_id, items, docs, grades, scale=SELF_RATING)
        covers = (grades >= 4).sum(axis=1).tolist()
        for place, rankings in enumerate(runs.values()):
            worth = {doc_id: place / 8 * covers[docs[doc_id]] + draw.gauss(0, 2) for doc_id in sorted(docs)}
            rankings[query_id] = sorted(worth, key=worth.__getitem__, reverse=True)
    return Grades(queries), runs


def of_files(graded: str, paths: Sequence[str], bank: str | None) -> tuple[Grades, Rankings]:
    """Grades and run files of a user."""
    from rubric_measures.formats.trec import read_run

    found = [read_run(path) for path in paths]
    rankings = {run.run_id: {query_id: one.doc_ids for query_id, one in run.rankings.items()} for run in found}
    return rubric_measures.load(graded, bank), rankings


def losing(query: QueryGrades, is_lost: Callable[[str, int], bool]) -> QueryGrades:
    """The query in which some of its valid grades failed.

    Args:
        query: the query.
        is_lost: whether the grade of a passage and of the item at a place failed.
    """
    drawn = [[is_lost(doc_id, place) for place in range(len(query.items))] for doc_id in query.docs]
    lost = np.array(drawn, bool).reshape(query.grades.shape) & query.valid
    failed = lost if query.failed is None else lost | query.failed
    return replace(query, grades=np.where(lost, NONE, query.grades), failed=failed if failed.any() else None)


def at_random(grades: Grades, share: float, whole: bool, draw: random.Random) -> dict[str, QueryGrades]:
    """The grades with a share of them failed: one by one, or all of a passage at once."""
    queries = {}
    for query_id, query in grades.queries.items():
        passages = {doc_id: draw.random() < share for doc_id in query.docs}
        lost: Callable[[str, int], bool] = (
            (lambda doc_id, _, passages=passages: passages[doc_id])  # type: ignore[misc]
            if whole
            else (lambda _, __: draw.random() < share)
        )
        queries[query_id] = losing(query, lost)
    return queries


def main() -> None:
    """Prints a row a measure and kind of failures: bias and τ to the complete board, by each way to count."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("graded", nargs="?", help="grades of a user, with run files; generated ones by default")
    parser.add_argument("runs", nargs="*")
    parser.add_argument("--bank")
    parser.add_argument("-m", "--measures", default=MEASURES)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seed", type=int, default=42)
    options = parser.parse_args()
    draw = random.Random(options.seed)
    grades, runs = of_files(options.graded, options.runs, options.bank) if options.graded else generated(draw)
    measures = parse_measures(options.measures)

    def board(queries: Mapping[str, QueryGrades], way: OnFailed) -> Leaderboard:
        return score_runs(Grades(queries, way), runs.items(), measures, overall=False)

    def means(scored: Leaderboard, name: str) -> list[float]:
        return [scored.cells[run][name].mean or 0.0 for run in sorted(runs)]

    complete = board(grades.queries, "expected")
    print("| measure | failures | " + " | ".join(map(str, WAYS)) + " |")
    print("|---" * (2 + len(WAYS)) + "|")
    kinds = [(0.01, False), (0.05, False), (0.15, False), (0.05, True)]
    found: dict[tuple[str, float, bool, OnFailed], list[tuple[float, float]]] = {}
    for share, whole in kinds:
        for _ in range(options.rounds):
            queries = at_random(grades, share, whole, draw)
            for way in WAYS:
                scored = board(queries, way)
                for name in complete.measures:
                    true, ours = means(complete, name), means(scored, name)
                    bias = fmean(ours) - fmean(true)
                    found.setdefault((name, share, whole, way), []).append((bias, float(kendalltau(true, ours)[0])))
    for name in complete.measures:
        for share, whole in kinds:
            row = []
            for way in WAYS:
                biases, taus = zip(*found[name, share, whole, way], strict=True)
                row.append(f"{fmean(biases):+.3f} / {fmean(taus):.2f}")
            print(f"| {name} | {share:.0%}{' of the passages' if whole else ''} | " + " | ".join(row) + " |")


if __name__ == "__main__":
    sys.exit(main())
