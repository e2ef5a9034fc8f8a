"""How many grades a board needs: asked for as long as they can change it, beside the fewest that prove it.

Run as `python -m benchmarks.lazy [GRADED [BANK [PROMPT_CLASS]]]` from the repository root: graded records with
rankings; without them the example's. A model that says these grades is asked through `grade`, for all pairs and lazily;
the boards have to be equal to the last digit. The certificate is that of a bundle: few grades that prove the board.
"""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Sequence

import rubric_measures
from rubric_measures import RubricCover
from rubric_measures.grading.lazy import certificate
from rubric_measures.measures.grade_sets import Grader
from rubric_measures.measures.loading import RecordQuery, read_records
from rubric_measures.measures.scoring import Plan
from rubric_measures.models.base import Request
from rubric_measures.records.models import GradedPassage, PassageData, QueryPassages, RankingEntry
from rubric_measures.types.entities import RubricItem, TestBank
from tests.example_records import bank_from_items
from tests.function_backend import FunctionBackend

EXAMPLE = ("resources/example/graded.jsonl.gz", "resources/example/questions.jsonl")
PROMPT = "QuestionSelfRatedUnanswerablePromptWithChoices"


def tops(query: RecordQuery, runs: Sequence[str], cutoff: int) -> dict[str, list[str]]:
    """The graded documents among the first of each ranking."""
    docs = query.grades.docs
    return {run: [one for one in query.rankings.get(run, ())[:cutoff] if one in docs] for run in runs}


def fewest(query: RecordQuery, runs: Sequence[str], cutoff: int, rel: int) -> int:
    """The grades of a certificate of what the runs cover."""
    computations = Plan([RubricCover(rel=rel) @ cutoff]).computations
    rankings = [query.rankings[run] for run in runs if run in query.rankings]
    return sum(map(len, certificate(computations, query.grades, rankings).values()))


def move_to_front(query: RecordQuery, runs: Sequence[str], cutoff: int, rel: int) -> int:
    """Grades that settle the same board in the order of move-to-front pooling: the run goes on that covers."""
    shown, covers, docs = tops(query, runs, cutoff), query.grades.grades >= rel, query.grades.docs
    is_open = {run: set(range(covers.shape[1])) for run in runs}
    left, priority, made, asked = {run: list(ids) for run, ids in shown.items()}, dict.fromkeys(runs, 0), 0, set[str]()
    while any(left.values()):
        run = max((run for run in runs if left[run]), key=lambda one: priority[one])
        doc = left[run].pop(0)
        if doc in asked:
            continue
        asked.add(doc)
        showing = [one for one in runs if doc in shown[one]]
        needed = set[int]().union(*(is_open[one] for one in showing))
        hits = {place for place in needed if covers[docs[doc], place]}
        made += len(needed)
        for one in showing:
            is_open[one] -= hits
        priority[run] -= not hits
    return made


def world(queries: Sequence[RecordQuery], runs: Sequence[str]) -> tuple[list[QueryPassages], TestBank, FunctionBackend]:
    """Records and bank whose texts are names, and a model that says the grades of what is named."""
    said: dict[tuple[str, str, str], str] = {}
    groups, items = [], []
    for number, query in enumerate(queries):
        ranks = {run: {doc: rank for rank, doc in enumerate(ids, 1)} for run, ids in query.rankings.items()}
        passages = []
        for doc, row in query.grades.docs.items():
            places = [
                RankingEntry(method=run, doc_id=doc, query_id=query.query_id, rank=rank, score=-rank)
                for run in runs
                if (rank := ranks.get(run, {}).get(doc))
            ]
            text = f"passage-{number}-{row}."
            passages.append(GradedPassage(doc_id=doc, text=text, paragraph_data=PassageData(rankings=places)))
            for place, grade in enumerate(query.grades.grades[row].tolist()):
                said[str(number), str(row), str(place)] = str(int(max(grade, 0)))
        groups.append(QueryPassages(query.query_id, passages))
        items += [
            RubricItem(one.item_id, query.query_id, f"item-{place}?") for place, one in enumerate(query.grades.items)
        ]

    def answer(request: Request) -> str:
        text = request.messages[-1].content
        query, row = re.findall(r"passage-(\d+)-(\d+)\.", text)[-1]
        return said[query, row, re.findall(r"item-(\d+)\?", text)[-1]]

    return groups, bank_from_items(items), FunctionBackend(answer)


def main() -> None:
    """Prints a line for each number of runs, cutoff and level."""
    path, *more = sys.argv[1:] or EXAMPLE
    bank = rubric_measures.load_bank(more[0]) if more else None
    queries = list(read_records(path, bank, Grader(prompt=more[1] if len(more) > 1 else None)))
    every = sorted({run for query in queries for run in query.rankings})
    print("| runs | k | rel | all | lazy | certificate | lazy ÷ certificate | move-to-front | equal boards |")
    print("|---|---|---|---|---|---|---|---|---|")
    for count, cutoff, rel in itertools.product(sorted({2, min(6, len(every)), len(every)}), (5, 20), (3, 4)):
        runs, measure = every[:count], f"RubricCover(rel={rel})@{cutoff}"
        groups, items, model = world(queries, runs)
        boards, made = [], []
        for measures in ((), measure):
            before = len(model.seen)
            graded = rubric_measures.grade(groups, items, model=model, prompt=PROMPT, measures=measures)
            made.append(len(model.seen) - before)
            board = rubric_measures.score(rubric_measures.load(graded, bank=items), measures=measure, notes=False)
            boards.append(
                [(run, board.values[run], board.cells[run][board.measures[0]].mean) for run in board.ranking()]
            )
            assert not measures or board.exact
        # What the rankings show down to the cutoff; the records may hold more.
        pairs = sum(
            len({doc for ids in tops(query, runs, cutoff).values() for doc in ids}) * len(query.grades.items)
            for query in queries
        )
        proof, front = (sum(of(query, runs, cutoff, rel) for query in queries) for of in (fewest, move_to_front))
        shares = [f"{part / pairs:.3f}" for part in (made[1], proof)]
        cells = [count, cutoff, rel, pairs, *shares, f"{made[1] / proof:.2f}", f"{front / pairs:.3f}"]
        print("|", " | ".join(map(str, [*cells, "yes" if boards[0] == boards[1] else "NO"])), "|", flush=True)


if __name__ == "__main__":
    main()
