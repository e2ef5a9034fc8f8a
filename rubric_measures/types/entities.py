"""Items, banks, grades, preferences, judgments, runs and boards' files as frozen records.

The frozen records that the package speaks: queries, passages, rubric items, banks, grades, preferences, signatures.

A signature says what produced a number: every setting that could change it, in one canonical text and a short hash.

What TREC runs and qrels hold: judgments, runs, and the one sort of runs (score, then document id, both descending, as
trec_eval). Rankings of records, by rank.

What the file of a board says, as one model: its reader, its writer, `check` and the schema in the docs have it.
"""

from __future__ import annotations

import hashlib
import math
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise, repeat
from json import JSONEncoder
from operator import attrgetter, itemgetter
from typing import Any, Literal, NamedTuple, TypeVar

from msgspec import Struct

from rubric_measures.base.errors import InputError, UnknownNameError, counted

GradeStatus = Literal["graded", "unparsed", "refused", "truncated", "failed"]
Importance = Literal["vital", "okay"]
Verdict = Literal["a", "b", "tie", "both_bad"]
ItemKind = Literal["question", "nugget"]
Scored = TypeVar("Scored", bound=tuple[Any, ...])


class Grade(NamedTuple):
    """This text, for this query, covers this rubric item this well; one row a (query, document, item, grader).

    The first four fields are those of an ir_measures `Qrel` (`iteration` is the item id), so an iterable of grades is
    an iterable of judgments. A direct relevance label is a grade for the item `"0"`.

    Attributes:
        query_id: the query.
        doc_id: the passage or answer.
        relevance: the grade, a `float` only where it has a fraction; None exactly when `status` is not `graded` (but
            see `truncated`, which may carry one).
        iteration: the item id.
        status: `graded`, `unparsed` (no grade in the reply), `refused`, `truncated` (graded on a cut text), `failed`.
        answer: the raw reply of the grader, always kept.
        grader: who graded (`hf:google/flan-t5-large`, `human:ada`).
        note: the reason of a status other than `graded`, in one line.
    """

    query_id: str
    doc_id: str
    relevance: float | None
    iteration: str = "0"
    status: GradeStatus = "graded"
    answer: str = ""
    grader: str = ""
    note: str = ""


class CitedSentence(NamedTuple):
    """One sentence of a generated answer, with what it cites.

    Attributes:
        item_id: the item that it is: the run, and its place in the answer from 0.
        text: the sentence; may be empty.
        citations: ids of the documents that it cites, most important first, each once.
        joined: the label of all its citations together, where somebody gave one.
    """

    item_id: str
    text: str
    citations: tuple[str, ...]
    joined: int | None = None


class CitedAnswer(NamedTuple):
    """One generated answer, sentence by sentence.

    Attributes:
        query_id: the query.
        run_id: the run.
        sentences: its sentences, in order; may be empty.
    """

    query_id: str
    run_id: str
    sentences: tuple[CitedSentence, ...]

    @classmethod
    def of(
        cls,
        query_id: str,
        run_id: str,
        sentences: Iterable[str],
        citations: Sequence[Sequence[str]] = (),
        joined: Sequence[int | None] = (),
    ) -> CitedAnswer:
        """The answer with its sentences as items: RUN/0, RUN/1, ….

        Args:
            query_id: the query.
            run_id: the run.
            sentences: their texts.
            citations: for each sentence the ids of the documents that it cites; empty where none does.
            joined: for each sentence the label of its citations together; empty where there are none.
        """
        rows = zip(sentences, citations or repeat(()), joined or repeat(None), strict=False)
        made = (
            CitedSentence(f"{run_id}/{place}", text, tuple(dict.fromkeys(cited)), label)
            for place, (text, cited, label) in enumerate(rows)
        )
        return cls(query_id, run_id, tuple(made))


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


class Preference(NamedTuple):
    """One game: two agents' answers to one query, in the order shown, and the verdict.

    Attributes:
        query_id: the query.
        agent_a: the agent whose answer was shown first.
        agent_b: the agent whose answer was shown second.
        verdict: `a`, `b`, `tie`, `both_bad` (a tie of two bad answers), or None when `status` is not `graded`.
        status: as for a `Grade`.
        answer: the raw reply of the grader.
        grader: who judged.
        note: the reason of a status other than `graded`.
    """

    query_id: str
    agent_a: str
    agent_b: str
    verdict: Verdict | None
    status: GradeStatus = "graded"
    answer: str = ""
    grader: str = ""
    note: str = ""


def make_item_id(query_id: str, text: str, facet_id: str | None = None) -> str:
    """The id of a rubric item: query_id [ "/" facet_id ] "/" md5 hex of the stripped text (UTF-8, no case folding).

    Source: the Rubric workbench's test-bank format (Dietz, SIGIR 2024).

    >>> make_item_id("q1", " What is a leap year? ")
    'q1/969b08ba83da2a1c9935c5499c6ae6c6'
    """
    digest = hashlib.md5(text.strip().encode("utf-8"), usedforsecurity=False).hexdigest()
    return "/".join(part for part in (query_id, facet_id, digest) if part)


class RubricItem(Struct, frozen=True):
    """One question or nugget (key fact) that a good passage answers or mentions.

    Attributes:
        item_id: unique in the bank; see `make_item_id`.
        query_id: the query.
        text: the question or the nugget.
        kind: `question` or `nugget`.
        facet_id: the facet (subtopic) of the query that the item belongs to, or None.
        gold_answers: the answer key; empty where there is none.
        importance: `vital`, `okay`, or None where nobody said.
        weight: a criterion's weight (may be negative: a penalty), or None.
        info: what else a file says of the item, which goes along into files that can hold it; it makes no item another
            one, and changes no number.
    """

    item_id: str
    query_id: str
    text: str
    kind: ItemKind = "question"
    facet_id: str | None = None
    gold_answers: tuple[str, ...] = ()
    importance: Importance | None = None
    weight: float | None = None
    info: Any = None

    @property
    def part(self) -> str:
        """What the item is asked about: `query_id/facet_id`, or the query where it names no facet.

        The facet is `facet_id`, else what the item's id says (`query_id/facet_id/…`).
        """
        if self.facet_id is not None:
            return f"{self.query_id}/{self.facet_id}"
        head = self.item_id.rpartition("/")[0]
        return head if head.startswith(f"{self.query_id}/") else self.query_id


_COMPARED = RubricItem.__struct_fields__[:-1]
_said = attrgetter(*_COMPARED)


def sentence_items(answers: Iterable[CitedAnswer]) -> tuple[RubricItem, ...]:
    """The sentences of answers to one query as the items that they are."""
    return tuple(
        RubricItem(sentence.item_id, answer.query_id, sentence.text, "nugget")
        for answer in answers
        for sentence in answer.sentences
    )


class TestBank(Struct, frozen=True):
    """The complete list of rubric items of every query: the denominator of the measures.

    Attributes:
        items: query id -> its items, in bank order. A query may have an empty list.
        query_texts: query id -> text, where the bank gives it.
        facet_texts: (query id, facet id) -> text, where the bank gives it.
        edited: query id -> item id -> what the item says (`item_content`), of items whose gold answers
            assessors changed after they were graded; grades made for these hold.
        further: query id -> what else a file says of the query (`test_collection`, `domain`, …), which goes along into
            files that can hold it and changes no number.

    Raises:
        InputError: an item is listed under another query, an item id comes twice in its query, an id, a text or a
            facet is no text, an importance is none, or a weight is no finite number.
    """

    __test__ = False  # pytest would collect a class of this name

    items: Mapping[str, tuple[RubricItem, ...]]
    query_texts: Mapping[str, str] = {}
    facet_texts: Mapping[tuple[str, str], str] = {}
    edited: Mapping[str, Mapping[str, str]] = {}
    further: Mapping[str, Mapping[str, Any]] = {}

    def __post_init__(self) -> None:
        for query_id, items in self.items.items():
            if not isinstance(query_id, str):
                raise InputError(f"query {query_id!r}: expected text as the id of a query")
            for item in items:
                if item.query_id != query_id:
                    raise InputError(
                        f"item {item.item_id!r} is listed under query {query_id!r} but says {item.query_id!r}"
                    )
                if problem := _problem_of(item):
                    raise InputError(f"query {query_id!r}, item {item.item_id!r}: {problem}")
            ids = [item.item_id for item in items]
            if len(set(ids)) < len(ids):
                twice = next(item_id for item_id, count in Counter(ids).items() if count > 1)
                raise InputError(f"query {query_id!r}: item id {twice!r} occurs twice in the bank")

    def __repr__(self) -> str:
        return f"TestBank({counted(len(self), 'item')} of {counted(len(self.items), 'query')})"

    def _repr_html_(self) -> str:
        from rubric_measures.base import tables
        from rubric_measures.base.tables import Column, Ranged, Table, in_notebook

        names = [name for name in ("facet_id", "importance", "weight") if any(getattr(one, name) for one in self)]
        rows: list[list[tables.Cell]] = [
            [self.query_texts.get(one.query_id, one.query_id), one.text, *(getattr(one, name) for name in names)]
            for one in self
        ]
        heads = [Column(name, -1) for name in ("query", "item", *names)]
        sizes = sorted(Counter(map(len, self.items.values())).items())
        bars = {f"queries of {counted(size, 'item')}": Ranged(count) for size, count in sizes if len(sizes) > 1}
        return in_notebook(
            [Table(heads, rows)], f"{counted(len(self), 'item')} of {counted(len(self.items), 'query')}", bars
        )

    def __len__(self) -> int:
        """The number of items of all queries."""
        return sum(len(items) for items in self.items.values())

    def __iter__(self) -> Iterator[RubricItem]:
        for items in self.items.values():
            yield from items

    def for_query(self, query_id: str, where: str = "") -> tuple[RubricItem, ...]:
        """The items of one query.

        Args:
            query_id: the query.
            where: file and line that name it, for the error.

        Raises:
            UnknownNameError: the bank does not have the query.
        """
        try:
            return self.items[query_id]
        except KeyError:
            hint = "(the test bank has no such query)"
            raise UnknownNameError("query", query_id, self.items, hint=hint, where=where) from None


def _problem_of(item: RubricItem) -> str:
    """What no item can say; empty where it says nothing of the kind."""
    facet, weight = item.facet_id, item.weight
    if item.importance not in (None, "vital", "okay"):
        return f"importance {item.importance!r} is neither vital nor okay"
    if not all(isinstance(one, str) for one in (item.item_id, item.text, "" if facet is None else facet)):
        return f"expected text as its id, its text ({item.text!r:.40}) and its facet ({facet!r}; or None)"
    if weight is not None and not (isinstance(weight, float | int) and math.isfinite(weight)):
        return f"weight {weight!r}; expected a finite float, an int or None"
    return ""


# The one JSON text of a value: sorted keys, no spaces, UTF-8 as it is. A ValueError where the value holds NaN or
# infinity, or something that JSON cannot say.
canonical_json = JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode


def content_hash(value: object) -> str:
    """The sha256 hex digest of the canonical JSON of a value; the only key function of caches and manifests."""
    return hashlib.sha256(canonical_json(value).encode("utf-8", "surrogatepass")).hexdigest()


def bank_hash(bank: TestBank) -> str:
    """The first twelve hex digits of the hash of all that a bank says about its items."""
    items = sorted(bank, key=lambda item: (item.query_id, item.item_id))
    return content_hash([dict(zip(_COMPARED, _said(item), strict=True)) for item in items])[:12]


def bank_content(bank: TestBank) -> str:
    """The sha256 of the texts, ids, kinds and answer keys of a bank: what grades refer to."""
    return content_hash(
        {
            query_id: [[item.item_id, item.text, item.kind, list(item.gold_answers)] for item in items]
            for query_id, items in bank.items.items()
        }
    )


def item_content(item: RubricItem) -> str:
    """What an item says to a grader (text, kind, gold answers), in sixteen hex digits."""
    return content_hash([item.text, item.kind, list(item.gold_answers)])[:16]


def describe(grade_sets: Iterable[tuple[str, ...]], bank: TestBank | None) -> dict[str, object]:
    """What grades are, for the signature: the grade sets (`GradeSetKey`), and the bank by its content."""
    return {
        "grades": [str(key) for key in sorted(grade_sets)],
        "bank": None if bank is None else bank_hash(bank),
    }


def made_by(made: Iterable[str]) -> dict[str, object]:
    """The signatures of the graders, for the signature of what is scored; nothing where the records have none."""
    listed = sorted(made)
    return {"graders": listed} if listed else {}


class Signature(Struct, frozen=True):
    """The settings behind a number; equal signatures (and equal input) mean equal numbers.

    Attributes:
        settings: name -> JSON-able value; names are sorted in the text, so their order does not matter.
    """

    settings: Mapping[str, object]

    def __str__(self) -> str:
        """`name:value|name:value|…`, sorted by name; values as compact JSON, strings bare."""
        return "|".join(
            f"{name}:{value if isinstance(value, str) else canonical_json(value)}"
            for name, value in sorted(self.settings.items())
        )

    @property
    def short(self) -> str:
        """The first twelve hex digits of the hash of all settings."""
        return content_hash(dict(self.settings))[:12]


class Qrel(NamedTuple):
    """One judgment, with the fields of an ir_measures `Qrel`; `iteration` is the item (subtopic) of diversity qrels.

    A relevance without a fraction is an `int`.
    """

    query_id: str
    doc_id: str
    relevance: float
    iteration: str = "0"


class ScoredIds(list[str]):
    """The documents of one query in the one sort, with what a program needs that sorts them in its own way.

    Attributes:
        given: (doc_id, score) in the order of the file, by which some programs break ties.
    """

    __slots__ = ("given",)

    def __init__(self, doc_ids: Iterable[str], given: Sequence[tuple[str, float]]) -> None:
        super().__init__(doc_ids)
        self.given = given


class Ranking(Struct, frozen=True):
    """The documents of one query in the one sort: score descending, then doc_id descending (trec_eval's rule).

    Scores that differ only beyond single precision are equal, as in the trec_eval behind ir_measures.

    Attributes:
        doc_ids: the documents, best first; no document twice.
        scores: their scores, parallel to `doc_ids`; finite.
        as_given: the documents in the order of the file, where that is another one.
    """

    doc_ids: Sequence[str]
    scores: Sequence[float]
    as_given: Sequence[str] = ()

    def __len__(self) -> int:
        return len(self.doc_ids)

    def with_scores(self) -> ScoredIds:
        """The documents with their scores."""
        pairs = list(zip(self.doc_ids, self.scores, strict=True))
        of_doc = dict(pairs) if self.as_given else {}
        return ScoredIds(self.doc_ids, [(doc_id, of_doc[doc_id]) for doc_id in self.as_given] or pairs)


class Run(Struct, frozen=True):
    """The rankings of one run.

    Attributes:
        run_id: the run's name.
        rankings: query id -> its ranking, in the order of the queries' first lines.
        rank_disagreements: neighbours whose rank column and scores disagree (the scores count).
    """

    run_id: str
    rankings: Mapping[str, Ranking]
    rank_disagreements: int = 0

    def with_scores(self) -> dict[str, ScoredIds]:
        """Query id -> its documents with their scores, as programs that compute standard measures need them."""
        return {query_id: ranking.with_scores() for query_id, ranking in self.rankings.items()}


def make_run(run_id: str, rows: Iterable[tuple[str, str, float]]) -> Run:
    """Builds a run from rows (query_id, doc_id, score) in any order.

    Raises:
        InputError: a score is not finite, or a document occurs twice for a query.
    """
    grouped: dict[str, tuple[list[str], list[float]]] = {}
    for query_id, doc_id, score in rows:
        doc_ids, scores = grouped.setdefault(query_id, ([], []))
        doc_ids.append(doc_id)
        scores.append(score)
    for query_id, (doc_ids, scores) in grouped.items():
        if len(set(doc_ids)) != len(doc_ids):
            first = {doc_id: place for place, doc_id in reversed(list(enumerate(doc_ids)))}
            twice = next(doc_id for place, doc_id in enumerate(doc_ids) if first[doc_id] < place)
            raise InputError(f"run {run_id!r}, query {query_id!r}: document {twice!r} occurs twice")
        for doc_id, score in zip(doc_ids, scores, strict=True):
            # Of a text Python reads `2_0` as 20.
            if isinstance(score, str) or not math.isfinite(score):
                where = f"run {run_id!r}, query {query_id!r}, document {doc_id!r}"
                raise InputError(f"{where}: score {score!r} is no number")
    return Run(run_id, {one: put_in_order(ids, list(map(float, scores))) for one, (ids, scores) in grouped.items()})


def put_in_order(doc_ids: Sequence[str], scores: Sequence[float]) -> Ranking:
    """The one sort: score, then doc_id, both descending; see `in_order`."""
    pairs = in_order(zip(scores, doc_ids, strict=True))
    return Ranking([doc_id for _, doc_id in pairs], [score for score, _ in pairs], doc_ids)


def in_order(scored: Iterable[Scored]) -> list[Scored]:
    """Tuples that begin with score and doc_id in the one sort: by score, ties by document id, both descending.

    Scores compare in single precision, as in the trec_eval behind ir_measures.

    Args:
        scored: in any order; scores must not be NaN.
    """
    listed = list(scored)
    singles = array("f", [one[0] for one in listed]).tolist()
    return [one for *_, one in sorted(zip(singles, [one[1] for one in listed], listed, strict=True), reverse=True)]


def ranked(scored: Iterable[tuple[str, float]]) -> Sequence[str]:
    """The document ids of one query, best first, in the one sort; see `in_order`.

    Args:
        scored: (doc_id, score) in any order; scores must not be NaN.

    >>> ranked([("a", 1.0), ("c", 2.0), ("b", 1.0)])
    ['c', 'b', 'a']
    """
    return [doc_id for _, doc_id in in_order((score, doc_id) for doc_id, score in scored)]


class Gap(str):
    """What stands at a rank whose document the records lack: an id that no document of the query has.

    It is a document nobody graded, to our measures and to those of others, so what stands below it keeps its rank.
    """

    __slots__ = ()


def rank_texts(counts: Mapping[str, int]) -> list[str]:
    """What is to be said of rankings by rank; see `by_rank`."""
    gaps, without, places, disagreeing = (counts[name] for name in ("gaps", "without", "places", "disagreeing"))
    lacking = f"{gaps} ranks of {without} rankings have no record, and count as not graded"
    odd = f"the ranks disagree with the scores in {disagreeing} rankings ({places} places); the ranks count"
    return [text for text, count in ((lacking, gaps), (odd, places)) if count]


def by_rank(
    places: Iterable[tuple[int, float, str]], query: str = "", run_id: str = ""
) -> tuple[list[str], Counter[str]]:
    """The documents of one query as the ranks of records place them, whatever their scores.

    Ranks count from 1, or from 0 where one is 0. Documents of one rank stand by score, then id, both descending; what
    follows them stands no higher than its rank says. Every rank above the last that nothing stands at is a `Gap`.

    Args:
        places: (rank, score, doc_id) in any order.
        query: where the ranking is, for errors.
        run_id: whose it is, for errors.

    Returns:
        the documents, best first; and counted what is to be said: `gaps` and `places` (neighbours of which the later
        has the higher score, though its rank is lower), and whether there are some (`without`, `disagreeing`).

    Raises:
        InputError: a document stands twice in the ranking.

    >>> by_rank([(4, 0.5, "b"), (1, 2.0, "a"), (2, 1.0, "c")])[0]
    ['a', 'c', 'no-record-3', 'b']
    """
    ordered = sorted(places, key=itemgetter(1, 2), reverse=True)
    ordered.sort(key=itemgetter(0))
    doc_ids = [doc_id for _, _, doc_id in ordered]
    if len(set(doc_ids)) < len(doc_ids):
        twice = next(doc_id for doc_id, count in Counter(doc_ids).items() if count > 1)
        raise InputError(f"{query}: passage {twice!r} occurs twice in the ranking of {run_id!r}; keep one of them")
    odd = sum(one[0] < other[0] and one[1] < other[1] for one, other in pairwise(ordered))
    start, found = int(bool(ordered) and ordered[0][0] == 0), list[str]()
    for rank, _, doc_id in ordered:
        found += (Gap(f"no-record-{place}") for place in range(len(found) + 1, rank + start))
        found.append(doc_id)
    gaps = len(found) - len(doc_ids)
    return found, Counter(gaps=gaps, without=min(gaps, 1), places=odd, disagreeing=min(odd, 1))


BOARD_FORMAT: Literal["rubric_measures leaderboard 1"] = "rubric_measures leaderboard 1"


class Failures(Struct, frozen=True):
    """What failed grades leave open of one run's score by one measure.

    Attributes:
        share: the share of the needed grades that failed, in [0, 1]. Of a measure that is normalised by all passages of
            a query it may be 0: then only grades of others failed.
        unscored: the queries without a value, because all grades that they need failed.
        credit: what failed grades earn: the score minus that with all of them as zero; None where it is not known.
        standard_error: that of the score for failures at random; None where it is not known. It does not hold where
            covering grades fail more often than others; the bounds do.
        bounds: what the score lies between, whatever the failed grades were; None where it is not known.
    """

    share: float
    unscored: int
    credit: float | None
    standard_error: float | None
    bounds: tuple[float, float] | None


class Mean(Struct, frozen=True):
    """One run's score by one measure, over its queries.

    Attributes:
        mean: the mean over the scored queries, of counts (NumRet, NumRel, NumQ) their sum, as ir_measures and trec_eval
            have it; None where no query could be scored.
        standard_error: sample standard deviation (n - 1) over the square root of n; None for fewer than two queries,
            and of a sum.
        queries: the number of queries in the mean.
        coverage: the share of the grades the value needed (ranked passages in the cutoff × items) that exist, in
            [0, 1]; None where none was needed.
        failed: the number of needed grades that failed.
        failures: what these leave open; None where none failed.
    """

    mean: float | None
    standard_error: float | None
    queries: int
    coverage: float | None
    failed: int
    failures: Failures | None = None


class Cell(Mean, frozen=True, kw_only=True, omit_defaults=True):
    """One run's score by one measure.

    Attributes: those of `Mean`, and
        per_query: query_id -> value, None where the grades of all items failed.
    """

    per_query: Mapping[str, float | None]


class Best(Struct, frozen=True):
    """The best possible score by one measure: of measures of coverage that of all graded passages together, whatever
    the cutoff (finding the best k of them is NP-hard); of others that of the best ranking.

    Attributes:
        mean: over the queries, as in `Mean`.
        standard_error: as in `Mean`.
        per_query: query_id -> value.
    """

    mean: float
    standard_error: float | None
    per_query: Mapping[str, float]


class BoardInputs(Struct, frozen=True, omit_defaults=True):
    """The digests of what a leaderboard was scored from.

    Attributes:
        grades: query_id -> digest of its items and grades.
        runs: run_id -> digest of its rankings of these queries, as deep as the measures look.
        qrels: query_id -> digest of its judgments, where official measures stand beside ours.
    """

    grades: Mapping[str, str]
    runs: Mapping[str, str]
    qrels: Mapping[str, str] = {}


class RunCheck(Struct, frozen=True):
    """One run.

    Attributes:
        run_id: the run.
        queries: queries of the leaderboard that the run ranks.
        missing: queries that it does not rank.
        judged: Judged@k: the share of the passages within the cutoff that have a grade; None without passages.
        tied: the share of the passages within the cutoff whose score another passage of the ranking has, too; None
            without passages.
        order_by_ties: queries whose first passages stand in another order with ties in file order.
        order_by_precision: queries whose first passages stand in another order where scores compare in the other
            precision (single or double).
    """

    run_id: str
    queries: int
    missing: tuple[str, ...]
    judged: float | None
    tied: float | None
    order_by_ties: int
    order_by_precision: int


class LeaderboardChecks(Struct, frozen=True):
    """The checks of a leaderboard.

    Attributes:
        cutoff: k, the largest cutoff of the measures; None when one reads the whole ranking.
        runs: one check a run, in order of run_id.
    """

    cutoff: int | None
    runs: tuple[RunCheck, ...]

    @property
    def names(self) -> list[str]:
        """What the columns of `cells` are called."""
        at = "" if self.cutoff is None else f"@{self.cutoff}"
        return ["missing", f"judged{at}", f"tied{at}", f"order by ties{at}", f"order by precision{at}"]

    @property
    def cells(self) -> dict[str, list[float | None]]:
        """Run -> a number for each of the `names`."""
        return {
            one.run_id: [len(one.missing), one.judged, one.tied, one.order_by_ties, one.order_by_precision]
            for one in self.runs
        }


class AskedBoard(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What was asked for: the arguments of `score`."""

    overall: bool = True
    length: bool = False
    present: bool = False
    compat: Literal["workbench", "nuggetizer", "ragdoll"] | None = None
    checks: bool = False


class KeptRun(Struct, frozen=True):
    """One run.

    Attributes:
        run_id: the run.
        missing_queries: queries that it does not rank (scored 0).
        measures: measure -> its score.
    """

    run_id: str
    missing_queries: Sequence[str]
    measures: Mapping[str, Cell]


class KeptBoard(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A leaderboard as JSON, runs best first; a tournament's file says more, of the games.

    Attributes:
        format: what this file is.
        measures: the measures, in the order asked for.
        runs: the runs.
        exact: where grades were asked only as far as some measures need them, the measures that have all they need.
        best: measure -> best possible score, where it is known for every query and was asked for.
        signature: the settings in one text.
        signature_hash: its hash.
        settings: what produced the numbers.
        asked: what was asked for, where it is not the usual.
        checks: what may be wrong beneath the scores, where it was asked for.
        inputs: what was scored.
    """

    format: Literal["rubric_measures leaderboard 1"]
    measures: Sequence[str]
    runs: Sequence[KeptRun]
    exact: Sequence[str] | None = None
    best: Mapping[str, Best] = {}
    signature: str
    signature_hash: str
    settings: Mapping[str, Any]
    asked: AskedBoard | None = None
    checks: LeaderboardChecks | None = None
    inputs: BoardInputs | None = None
