"""What is wrong with a ranking, or with a bank of nuggets, that is handed in as a run; the rules are the track's."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from rubric_measures.formats.reports import TrackRules

__all__ = ["Problem", "RankedTopic", "listed", "nugget_problems", "ranked_topics"]

_AGGREGATORS = ("AND", "OR")
_COLUMNS = "topic Q0 document rank score run"
_SHOWN = 5


class Problem(NamedTuple):
    """What is wrong: the kind of the rule, and one line."""

    kind: str
    text: str


def listed(names: Sequence[str]) -> str:
    """The first five names, each cut at 60 characters, and how many more there are."""
    shown = ", ".join(name if len(name) <= 60 else name[:57] + "…" for name in names[:_SHOWN])
    return f"{shown} and {len(names) - _SHOWN} more" if len(names) > _SHOWN else shown


def nugget_problems(bank: Any) -> tuple[list[Problem], list[str]]:
    """What is wrong with the list `nugget_bank` of one topic, and the documents that its answers name."""
    if not isinstance(bank, list):
        return [Problem("form", "has no list 'nugget_bank'")], []
    if not bank:
        return [Problem("empty", "the bank is empty, and scores 0")], []
    found: list[Problem] = []
    cited: list[str] = []
    for place, nugget in enumerate(bank):
        where = f"nugget_bank[{place}]"
        if not isinstance(nugget, Mapping):
            found.append(Problem("form", f"{where} is no object {{question, aggregator_type, answers}}"))
            continue
        if not _is_text(nugget.get("question")):
            found.append(Problem("blank", f"{where} has no question"))
        if nugget.get("aggregator_type") not in _AGGREGATORS:
            problem = f"{where}.aggregator_type is {nugget.get('aggregator_type')!r:.40}; expected AND or OR"
            found.append(Problem("form", problem))
        answers = nugget.get("answers")
        if not isinstance(answers, list):
            found.append(Problem("form", f"{where} has no list of answers; an empty one has none"))
            continue
        for number, answer in enumerate(answers):
            found += _of_answer(f"{where}.answers[{number}]", answer, cited)
    questions = Counter(one["question"] for one in bank if isinstance(one, Mapping) and _is_text(one.get("question")))
    if again := [question for question, count in questions.items() if count > 1]:
        found.append(Problem("twice", f"asks more than once: {listed(again)}"))
    return found, cited


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _of_answer(where: str, answer: Any, cited: list[str]) -> Iterator[Problem]:
    if not isinstance(answer, Mapping) or not _is_text(answer.get("answer")):
        yield Problem("form", f"{where} is no object {{answer, references}} with a text")
        return
    references = answer.get("references")
    if not isinstance(references, list) or not all(isinstance(one, str) for one in references):
        yield Problem("form", f"{where}.references is no list of ids")
        return
    if again := [one for one, count in Counter(references).items() if count > 1]:
        yield Problem("cited_twice", f"{where}.references has {again[0]!r} twice")
    cited += references


@dataclass
class RankedTopic:
    """The documents of one topic in a ranking.

    Attributes:
        topic: the topic; empty for what is wrong with a line that has none.
        line: its first line.
        runs: the run ids of its lines.
        rows: (rank, score, document), in file order.
        problems: lines that cannot be read.
    """

    topic: str
    line: int
    runs: set[str] = field(default_factory=set)
    rows: list[tuple[int, float, str]] = field(default_factory=list)
    problems: list[tuple[int, Problem]] = field(default_factory=list)

    @property
    def doc_ids(self) -> list[str]:
        """The documents, each once."""
        return list(dict.fromkeys(doc_id for _, _, doc_id in self.rows))

    def found(self, rules: TrackRules) -> Iterator[Problem]:
        """What is wrong with the topic as a whole."""
        doc_ids = self.doc_ids
        if rules.depth is not None and len(doc_ids) > rules.depth:
            yield Problem("length", f"ranks {len(doc_ids)} documents; the most is {rules.depth}")
        if again := [one for one, count in Counter(doc_id for _, _, doc_id in self.rows).items() if count > 1]:
            yield Problem("twice", f"ranks {listed(again)} more than once")
        by_rank: Sequence[float] = [score for _, score, _ in sorted(self.rows, key=lambda row: row[0])]
        if rising := sum(after > before for before, after in itertools.pairwise(by_rank)):
            yield Problem("order", f"the scores rise at {rising} ranks; the scores count, not the ranks")


def ranked_topics(lines: Iterable[tuple[int, bytes]]) -> list[RankedTopic]:
    """The topics of a TREC run, and what cannot be read of it."""
    topics: dict[str, RankedTopic] = {}
    for number, data in lines:
        columns = [part.decode("utf-8", "replace") for part in data.split()]
        topic = topics.setdefault(columns[0] if len(columns) == 6 else "", RankedTopic(columns[0], number))
        if len(columns) != 6 or columns[1] != "Q0":
            problem = f"has {len(columns)} columns; expected 6: {_COLUMNS}"
            if len(columns) == 6:
                problem = f"the second column is {columns[1]!r:.40}; expected Q0"
            topic.problems.append((number, Problem("form", problem)))
            continue
        _, _, doc_id, rank, score, run_id = columns
        try:
            row = (int(rank), float(score), doc_id)
        except ValueError:
            problem = f"rank {rank!r:.40} or score {score!r:.40} is no number"
            topic.problems.append((number, Problem("form", problem)))
            continue
        if not math.isfinite(row[1]):
            topic.problems.append((number, Problem("form", f"the score is {score!r:.40}, which has no order")))
            continue
        topic.runs.add(run_id)
        topic.rows.append(row)
    return list(topics.values())
