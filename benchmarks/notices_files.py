"""Collections for `benchmarks.notices`, made by a seed: grades, banks, runs, answers, and the files that hold them."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import md5
from typing import Any

__all__ = ["RUNS", "SELF_RATED", "World", "lines_of", "make_world", "number", "weights_of"]

RUNS = ("dense", "sparse", "hybrid", "rerank", "base")
ANSWERING = ("gamma", "delta", "omega")
# The prompt of the Rubric workbench, whose scale everybody knows: 0 to 5, 4 covers.
SELF_RATED = {
    "prompt_class": "QuestionSelfRatedUnanswerablePromptWithChoices",
    "prompt_style": "Can the question be answered based on the available context? Choose one",
    "context_first": False,
    "check_unanswerable": True,
    "check_answer_key": False,
    "is_self_rated": True,
}

Pair = tuple[str, str]


def number(value: float) -> int | float:
    """A whole number as one, so that it is written without a fraction."""
    return int(value) if value == int(value) else value


def lines_of(rows: Iterable[Sequence[object]]) -> str:
    """Columns parted by blanks."""
    return "".join(" ".join(map(str, row)) + "\n" for row in rows)


def _json_lines(rows: Iterable[object]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def weights_of(count: int) -> list[int]:
    """Weights of criteria: the last one is a penalty."""
    return [*[5, 3, 2, 2, 1, 1, 4, 2][: count - 1], -3]


@dataclass
class World:
    """A small collection, before it is written.

    Attributes:
        items: query_id -> its item ids.
        grades: (query_id, doc_id) -> grade of each item that was asked.
        labels: (query_id, doc_id) -> judgment of the whole passage.
        runs: run -> query_id -> (doc_id, score), best first.
        answers: run -> query_id -> grade of each item.
        scale: lowest and highest grade, the least that covers, the least of partial support.
    """

    items: dict[str, list[str]]
    grades: dict[Pair, dict[str, float]]
    labels: dict[Pair, float]
    runs: dict[str, dict[str, list[tuple[str, float]]]]
    answers: dict[str, dict[str, dict[str, float]]]
    scale: tuple[float, float, float, float] = (0, 5, 4, 3)

    def importance(self, query_id: str) -> dict[str, str]:
        """vital or okay, an item."""
        return {item: "okay" if place % 2 else "vital" for place, item in enumerate(self.items[query_id])}

    def qrels(self) -> str:
        return lines_of((query_id, 0, doc_id, number(label)) for (query_id, doc_id), label in self.labels.items())

    def item_qrels(self, says_scale: bool = True) -> str:
        """Grades of items; lines of the passage `*` say the scale and the bank, as ours do."""
        low, high, covers, partial = map(number, self.scale)
        said = f"scale={low}-{high}:{covers}" + (f":{partial}" if partial < covers else "")
        rows: list[tuple[object, ...]] = []
        for query_id, items in self.items.items():
            if says_scale:
                rows.append((query_id, said, "*", 0))
                rows += [(query_id, item, "*", 0) for item in items]
            rows += [
                (query_id, item, doc_id, number(grade))
                for (of_query, doc_id), of_doc in self.grades.items()
                if of_query == query_id
                for item, grade in of_doc.items()
            ]
        return lines_of(rows)

    def run(self, name: str) -> str:
        return lines_of(
            (query_id, "Q0", doc_id, rank, f"{score:.4f}", name)
            for query_id, ranking in self.runs[name].items()
            for rank, (doc_id, score) in enumerate(ranking, 1)
        )

    def bank(self, kind: str = "question", importance: bool = False, weights: bool = False) -> str:
        rows = []
        for query_id, items in self.items.items():
            said = self.importance(query_id)
            entries: list[dict[str, Any]] = []
            for item, weight in zip(items, weights_of(len(items)), strict=True):
                entry: dict[str, Any] = {
                    "query_id": query_id,
                    f"{kind}_id": item,
                    f"{kind}_text": f"what {item} is about",
                }
                if importance:
                    entry["importance"] = said[item]
                if weights:
                    entry["weight"] = weight
                entries.append(entry)
            rows.append({"query_id": query_id, "query_text": f"words of {query_id}", "items": entries})
        return _json_lines(rows)

    def records(self, info: Mapping[str, Any] | None = None, rankings: bool = True) -> str:
        """Graded records of passages; without `info` the prompt is the workbench's where the scale is its own."""
        if info is None:
            info = SELF_RATED if self.scale == (0, 5, 4, 3) else self._own_prompt()
        rows = []
        for query_id in self.items:
            passages = [
                self._passage(query_id, doc_id, of_doc, info, "question")
                for (of_query, doc_id), of_doc in self.grades.items()
                if of_query == query_id
            ]
            ranked: dict[str, list[dict[str, Any]]] = {}
            for name, of_run in self.runs.items() if rankings else ():
                for rank, (doc_id, score) in enumerate(of_run.get(query_id, ()), 1):
                    entry = {"method": name, "paragraphId": doc_id, "queryId": query_id, "rank": rank, "score": score}
                    ranked.setdefault(doc_id, []).append(entry)
            for passage in passages:
                doc_id = passage["paragraph_id"]
                label = self.labels.get((query_id, doc_id))
                passage["paragraph_data"] = {
                    "judgments": []
                    if label is None
                    else [{"paragraphId": doc_id, "query": query_id, "relevance": label, "titleQuery": query_id}],
                    "rankings": ranked.get(doc_id, []),
                }
            rows.append([query_id, passages])
        return _json_lines(rows)

    def answer_records(self) -> str:
        """Graded records of generated answers, an answer a passage."""
        rows = []
        for query_id in self.items:
            passages = []
            for name, of_run in self.answers.items():
                if query_id not in of_run:
                    continue
                doc_id = f"{name}/{query_id}"
                passage = self._passage(query_id, doc_id, of_run[query_id], self._own_prompt(), "nugget")
                entry = {"method": name, "paragraphId": doc_id, "queryId": query_id, "rank": 1, "score": 1.0}
                passage["paragraph_data"] = {"judgments": [], "rankings": [entry]}
                passages.append(passage)
            rows.append([query_id, passages])
        return _json_lines(rows)

    def _own_prompt(self) -> dict[str, Any]:
        low, high, covers, partial = map(number, self.scale)
        info = {
            "prompt_class": "LexicalCoverage", "prompt_style": "LexicalCoverage", "context_first": False,
            "check_unanswerable": False, "check_answer_key": False, "is_self_rated": False,
            "scale": [low, high], "covers": covers,
        }  # fmt: skip
        return info | ({"partial": partial} if partial < covers else {})

    def _passage(
        self, query_id: str, doc_id: str, of_doc: Mapping[str, float], info: Mapping[str, Any], kind: str
    ) -> dict[str, Any]:
        covered = [item for item, grade in of_doc.items() if grade >= self.scale[2]]
        missed = [item for item in of_doc if item not in set(covered)]
        graded = {
            "correctAnswered": covered,
            "wrongAnswered": missed,
            "answers": [[item, str(number(grade))] for item, grade in of_doc.items()],
            "llm": "some-model",
            "llm_options": {},
            "exam_ratio": len(covered) / len(of_doc) if of_doc else 0.0,
            "prompt_info": dict(info),
            "self_ratings": [
                {f"{kind}_id": item, "self_rating": number(grade)} for item, grade in of_doc.items()
            ],
            "prompt_type": kind,
        }  # fmt: skip
        return {"paragraph_id": doc_id, "text": f"text of {doc_id} for {query_id}", "exam_grades": [graded]}

    def assignments(self) -> str:
        """nuggetizer's labels of answers."""
        rows = []
        for name, of_run in self.answers.items():
            for query_id, of_query in of_run.items():
                said = self.importance(query_id)
                nuggets = [
                    {"text": f"what {item} is about", "importance": said[item], "assignment": self._label(grade)}
                    for item, grade in of_query.items()
                ]
                rows.append(
                    {"query": f"words of {query_id}", "qid": query_id, "run_id": name,
                     "answer_text": f"{name} says much about {query_id}", "response_length": 5, "nuggets": nuggets}
                )  # fmt: skip
        return _json_lines(rows)

    def _label(self, grade: float) -> str:
        covers, partial = self.scale[2:]
        return "support" if grade >= covers else "partial_support" if grade >= partial else "not_support"

    def verdicts(self) -> str:
        """RAGDoll's answers graded by weighted criteria."""
        said = {"support": "satisfied", "partial_support": "partially_satisfied", "not_support": "not_satisfied"}
        rows = []
        for name, of_run in self.answers.items():
            for query_id, of_query in of_run.items():
                criteria = [
                    {"text": f"what {item} is about", "type": "explicit",
                     "tier": "mandatory" if weight > 2 else "optional", "weight": weight, "source_nugget": None,
                     "verdict": said[self._label(grade)]}
                    for (item, grade), weight in zip(of_query.items(), weights_of(len(of_query)), strict=True)
                ]  # fmt: skip
                rows.append(
                    {"task_id": f"{name}:{query_id}", "status": "completed", "qid": query_id, "run_id": name,
                     "query": f"words of {query_id}", "answer_text": f"{name} says much", "response_length": 3,
                     "criteria": criteria}
                )  # fmt: skip
        return _json_lines(rows)

    def direct_records(self) -> str:
        """Records with a label a passage by a model, and rankings."""
        info = {"prompt_class": "Thomas", "prompt_style": "relevance 0 to 2", "context_first": False}
        rows = []
        for query_id in self.items:
            passages = []
            for (of_query, doc_id), label in self.labels.items():
                if of_query != query_id:
                    continue
                label = min(label, 2)
                entry = {"correctAnswered": label > 0, "answer": str(number(label)), "llm": "some-model",
                         "llm_options": {}, "prompt_info": info, "prompt_type": "direct_grading",
                         "self_ratings": number(label)}  # fmt: skip
                passages.append(
                    {"paragraph_id": doc_id, "text": f"text of {doc_id}", "grades": [entry],
                     "paragraph_data": {"judgments": [], "rankings": []}}
                )  # fmt: skip
            rows.append([query_id, passages])
        return _json_lines(rows)


def make_world(
    seed: int = 1,
    queries: int = 20,
    docs: int = 25,
    items: int = 6,
    runs: Sequence[str] = RUNS,
    depth: int = 15,
    scale: tuple[float, float, float, float] = (0, 5, 4, 3),
    labels: int = 3,
    query_id: Callable[[int], str] = "{:03d}".format,
    doc_id: Callable[[int, int], str] = "Zürich-{:03d}-{:02d}".format,
    fractions: bool = False,
) -> World:
    """A collection in which runs differ, items are harder or easier, and every passage is graded.

    Args:
        seed: of everything that is drawn.
        queries: how many, as `docs` of a query and `items` of its bank.
        runs: their names, the best first.
        depth: passages that a run ranks.
        scale: of item grades: lowest, highest, covering and partial grade.
        labels: the highest judgment of a passage.
        query_id: the id of a query from its number.
        doc_id: the id of a passage from the number of its query and its own.
        fractions: whether all grades have them, as expected grades do.
    """
    draw = random.Random(seed)
    low, high = scale[:2]
    world = World({}, {}, {}, {name: {} for name in runs}, {name: {} for name in ANSWERING}, scale)
    for place in range(1, queries + 1):
        query = query_id(place)
        bank = [f"{query}/{md5(f'{seed} {query} {one}'.encode()).hexdigest()[:12]}" for one in range(items)]
        world.items[query] = bank
        hard = [draw.betavariate(2, 3) for _ in bank]
        quality = {doc_id(place, one): draw.betavariate(1, 2) for one in range(docs)}

        def graded(worth: float, bank: Sequence[str] = bank, hard: Sequence[float] = hard) -> dict[str, float]:
            found: dict[str, float] = {}
            for item, bar in zip(bank, hard, strict=True):
                share = min(max(draw.gauss(1.1 * worth - 0.8 * bar + 0.1, 0.2), 0.0), 1.0)
                exact = low + share * (high - low)
                found[item] = round(exact, 3) if fractions else round(exact)
            return found

        for doc, worth in quality.items():
            world.grades[query, doc] = graded(worth)
            world.labels[query, doc] = min(int(worth * (labels + 1) * 1.2), labels)
        for strength, name in enumerate(runs):
            noisy = {doc: worth + draw.gauss(0, 0.1 + 0.12 * strength) for doc, worth in quality.items()}
            best = sorted(noisy, key=noisy.__getitem__, reverse=True)[:depth]
            # Scores of a place of their own, so that no two are equal.
            world.runs[name][query] = [
                (doc, round(20 - 0.7 * rank + draw.uniform(0, 0.6), 4)) for rank, doc in enumerate(best)
            ]
        for strength, name in enumerate(ANSWERING):
            world.answers[name][query] = graded(0.7 - 0.2 * strength)
    return world
