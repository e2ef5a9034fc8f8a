"""What records say beside a grade: citations of answers, distributions over grades.

Generated answers inside records, sentence by sentence with what each cites: what judgments of citations are about.

A query then has two kinds of passages. An answer is called after its run, is ranked first by it, and keeps its
sentences; nobody grades it. A cited document is graded for the sentences that cite it: each sentence of each answer is
an item of its own, RUN/0, RUN/1, ….

What records keep about the making of single grades: distributions over grades, replicates, the model's reasons.

A grade set has them under `details`: item -> `distribution` (grade -> probability), `replicates` ([grade, reply], …),
`reason`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Annotated, Any, Literal

import msgspec

from rubric_measures.base.errors import InputError
from rubric_measures.records.models import (
    DirectGrade,
    GradedPassage,
    ItemGradeSet,
    PassageData,
    QueryPassages,
    RankingEntry,
)
from rubric_measures.types.entities import CitedSentence, RubricItem
from rubric_measures.types.scales import LARGEST_SCORE, MOST_RELEVANT, as_number


@dataclass(frozen=True)
class CitedAnswer:
    """One answer.

    Attributes:
        query_id: the query.
        run_id: the run.
        sentences: its sentences, in order; may be empty.
        more: lists beside the sentences that a file has of them (`sentence_ids`), and what else it says.
    """

    query_id: str
    run_id: str
    sentences: tuple[CitedSentence, ...]
    more: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))

    @classmethod
    def of(
        cls,
        query_id: str,
        run_id: str,
        sentences: Iterable[tuple[str, Sequence[str]]],
        joined: Sequence[int | None] = (),
        more: Mapping[str, Any] | None = None,
    ) -> CitedAnswer:
        """The answer with its sentences as items.

        Args:
            query_id: the query.
            run_id: the run.
            sentences: text and ids of cited documents of each sentence.
            joined: for each sentence the label of its citations together; empty where there are none.
            more: see the class.
        """
        listed = list(sentences)
        labels = joined or [None] * len(listed)
        made = tuple(
            CitedSentence(f"{run_id}/{place}", text, tuple(dict.fromkeys(citations)), label)
            for place, ((text, citations), label) in enumerate(zip(listed, labels, strict=True))
        )
        return cls(query_id, run_id, made, more or {})

    def passage(self) -> GradedPassage:
        """The answer as a passage."""
        said: dict[str, Any] = {
            "sentences": [sentence.text for sentence in self.sentences],
            "citations": [list(sentence.citations) for sentence in self.sentences],
            "items": [sentence.item_id for sentence in self.sentences],
            **self.more,
        }
        if any(sentence.joined is not None for sentence in self.sentences):
            said["joined"] = [sentence.joined for sentence in self.sentences]
        place = RankingEntry(method=self.run_id, doc_id=self.run_id, query_id=self.query_id, rank=1, score=1.0)
        return GradedPassage(
            doc_id=self.run_id,
            text=" ".join(sentence.text for sentence in self.sentences),
            paragraph={"answers": {self.run_id: said}},
            paragraph_data=PassageData(rankings=[place]),
        )


def cited_answer(query_id: str, passage: GradedPassage) -> CitedAnswer | None:
    """The answer that a passage is; None where it is no answer with items.

    Raises:
        InputError: what the record says of its sentences does not fit together.
    """
    answers = passage.paragraph.get("answers") if isinstance(passage.paragraph, Mapping) else None
    if not isinstance(answers, Mapping) or len(answers) != 1:
        return None
    [(run_id, said)] = answers.items()
    if not isinstance(said, Mapping) or "items" not in said:
        return None
    try:
        told = msgspec.convert({**said, "joined": said.get("joined") or [None] * len(said["items"] or ())}, _Sentences)
        rows = zip(told.items, told.sentences, told.citations, told.joined, strict=True)
        sentences = tuple(CitedSentence(item_id, text, tuple(cited), joined) for item_id, text, cited, joined in rows)
    except (TypeError, ValueError):
        raise InputError(
            f"query {query_id!r}, passage {passage.doc_id!r}: paragraph.answers needs sentences, citations and items, "
            "three lists of one length: texts, lists of document ids, and item ids"
        ) from None
    more = {name: said[name] for name in said if name not in _Sentences.__struct_fields__}
    return CitedAnswer(query_id, run_id, sentences, more)


class _Sentences(msgspec.Struct):
    items: list[str]
    sentences: list[str]
    citations: list[list[str]]
    joined: list[int | None]


def cited_answers(group: QueryPassages) -> list[CitedAnswer]:
    """The answers of a query, in order; none where the records are of something else."""
    found = (cited_answer(group.query_id, passage) for passage in group.passages)
    return [answer for answer in found if answer is not None]


def sentence_items(answers: Iterable[CitedAnswer]) -> tuple[RubricItem, ...]:
    """The sentences of answers to one query as the items that they are."""
    return tuple(
        RubricItem(sentence.item_id, answer.query_id, sentence.text, "nugget")
        for answer in answers
        for sentence in answer.sentences
    )


def asked_pairs(answers: Iterable[CitedAnswer], most: int | None) -> dict[str, set[str]]:
    """Document -> the items for which it is graded.

    Args:
        answers: the answers to one query.
        most: how many citations of a sentence are looked at, the first ones; None for all.
    """
    pairs: dict[str, set[str]] = {}
    for answer in answers:
        for sentence in answer.sentences:
            for doc_id in sentence.citations[:most]:
                pairs.setdefault(doc_id, set()).add(sentence.item_id)
    return pairs


def records_of_cited_answers(
    answers: Iterable[CitedAnswer],
    texts: Mapping[str, str] | None = None,
    grades: Mapping[tuple[str, str], ItemGradeSet] | None = None,
) -> list[QueryPassages]:
    """Records of answers and of the documents that they cite, by query.

    Args:
        answers: the answers; a run has one a query.
        texts: document -> text; documents without one have an empty text.
        grades: (query, document) -> its grades.

    Raises:
        InputError: a run answers a query twice, or is called as a document that is cited.
    """
    by_query: dict[str, dict[str, CitedAnswer]] = {}
    for answer in answers:
        of_query = by_query.setdefault(answer.query_id, {})
        if answer.run_id in of_query:
            raise InputError(f"run {answer.run_id!r} answers query {answer.query_id!r} twice; keep one answer")
        of_query[answer.run_id] = answer
    groups = []
    for query_id, of_query in by_query.items():
        doc_ids = dict.fromkeys(
            doc_id for answer in of_query.values() for sentence in answer.sentences for doc_id in sentence.citations
        )
        clash = next((doc_id for doc_id in doc_ids if doc_id in of_query), None)
        if clash is not None:
            raise InputError(f"query {query_id!r}: {clash!r} names a run and a document that is cited; rename the run")
        passages = [answer.passage() for answer in of_query.values()]
        for doc_id in doc_ids:
            entry = (grades or {}).get((query_id, doc_id))
            made: dict[str, Any] = {"doc_id": doc_id, "text": (texts or {}).get(doc_id, "")}
            if entry is not None:
                made["exam_grades"] = [entry]
            passages.append(GradedPassage(**made))
        groups.append(QueryPassages(query_id, passages))
    return groups


GradeChoice = Literal["expected", "mode", "median"]
GRADE_CHOICES: tuple[GradeChoice, ...] = ("expected", "mode", "median")
Distribution = Mapping[int, float]
"""Grade -> probability; together they are 1."""


def details_of(entry: ItemGradeSet | DirectGrade) -> Mapping[str, Mapping[str, Any]]:
    """What a grade set says about the making of single grades, by item; the item of a direct label is "0"."""
    return entry.details if isinstance(entry.details, dict) else {}


def reasons_of(entry: ItemGradeSet | DirectGrade) -> dict[str, str]:
    """Item -> the model's reason, of the items that have one; those of several draws are joined, a line each."""
    found = {}
    for item_id, details in details_of(entry).items():
        said = details.get("reason")
        drawn = said if isinstance(said, list) else [said]
        if text := "\n".join(one for one in drawn if isinstance(one, str) and one):
            found[item_id] = text
    return found


def distributions_of(entry: ItemGradeSet | DirectGrade) -> dict[str, Distribution]:
    """Item -> distribution over its grades, of the items that have one.

    That is the distribution that the model gave its labels; without one, the share of the replicates that gave each
    grade, of those that gave any.

    Raises:
        InputError: one is no distribution, or replicates are none.
    """
    found: dict[str, Distribution] = {}
    for item_id, details in details_of(entry).items():
        if not isinstance(details, Mapping):
            raise InputError(f"item {item_id!r}: its details are no object ({details!r:.80})")
        said = details.get("distribution")
        grades = _drawn(details.get("replicates"), item_id)
        if said is not None:
            found[item_id] = _checked(said, item_id)
        elif grades:
            found[item_id] = {grade: count / len(grades) for grade, count in sorted(Counter(grades).items())}
    return found


_Draw = tuple[Annotated[int, msgspec.Meta(ge=-MOST_RELEVANT, le=MOST_RELEVANT)] | None, Any]


def _drawn(said: Any, item_id: str) -> list[int]:
    """The grades of the replicates that have one."""
    try:
        pairs = msgspec.convert(said, list[_Draw] | None)
    except msgspec.ValidationError:
        raise InputError(f"item {item_id!r}: its replicates are no pairs of grade and reply ({said!r:.80})") from None
    return [grade for grade, _ in pairs or () if grade is not None]


def _checked(said: Any, item_id: str) -> Distribution:
    try:
        shares = {int(grade): float(share) for grade, share in said.items()}
        total = math.fsum(shares.values())
        if min(shares.values()) < 0 or not abs(total - 1) < 1e-3 or max(map(abs, shares)) > LARGEST_SCORE:
            raise ValueError
    except (AttributeError, TypeError, ValueError):
        problem = f"item {item_id!r}: its distribution over grades is no probabilities that make 1 ({said!r:.80})"
        raise InputError(problem) from None
    return {grade: share / total for grade, share in sorted(shares.items())}


def confidence_of(distribution: Distribution) -> float:
    """The probability of the most probable grade, above 0 and at most 1."""
    return max(distribution.values())


def grade_by(distribution: Distribution, how: GradeChoice) -> float:
    """The grade that a distribution gives.

    Args:
        distribution: grade -> probability.
        how: `expected`: Σ grade · probability, rounded to six decimals, an `int` where it has no fraction; `mode`: the
            most probable grade, of equally probable ones the lowest; `median`: the lowest grade that, with those below
            it, has half of the probability or more.

    >>> grade_by({0: 0.25, 3: 0.5, 4: 0.25}, "expected"), grade_by({0: 0.5, 3: 0.5}, "mode")
    (2.5, 0)
    """
    if how == "expected":
        return as_number(round(math.fsum(grade * share for grade, share in distribution.items()), 6))
    if how == "mode":
        return max(sorted(distribution), key=distribution.__getitem__)
    below = 0.0
    for grade in sorted(distribution):
        below += distribution[grade]
        # Shares such as 1/3 do not add up to the last digit.
        if below >= 0.5 - 1e-9:
            return grade
    return max(distribution)
