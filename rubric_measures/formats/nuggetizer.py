"""Files of nuggetizer and of TREC RAG: nuggets, assignments, their records, sets of nuggets.

Weighted criteria of ResearchRubrics, and what banks that are made of such files have in common.

Files of the nuggetizer program: nuggets, assignments, requests, metrics; also the nuggets of TREC RAG 2025.

Source: Pradeep et al., AutoNuggetizer (TREC 2024 RAG track); the program is version 0.0.5 of the package index.

What nuggetizer's files mean in our records: nuggets are banks, assignments are grades, and back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from pydantic import AliasChoices, BeforeValidator, Field, TypeAdapter

from rubric_measures.base.errors import InputError, UnknownNameError, warn
from rubric_measures.base.json_files import JsonLines, Record, TextId
from rubric_measures.formats.base import Format, given
from rubric_measures.formats.nuggets import (
    ImportanceLabel,
    bank_of_items,
    facet_ids,
    item_of_nugget,
    known_label,
)
from rubric_measures.records.models import (
    GradedPassage,
    QueryPassages,
)
from rubric_measures.types.entities import RubricItem, TestBank, make_item_id


class Criterion(Record):
    """One criterion.

    Attributes:
        criterion: what an answer shall do, never blank.
        weight: from −5 (a penalty) to 5.
        axis: the kind of quality that it is about.
        tier: RAGDoll: `mandatory` or `optional`.
        source_nugget: RAGDoll: the nugget that it was made from.
    """

    criterion: Annotated[str, Field(pattern=r"\S")]
    weight: float
    axis: str | None = None
    tier: str | None = None
    source_nugget: str | None = None


class RubricLine(Record):
    """The criteria of one query (ResearchRubrics, RAGDoll); `query` is its text, where the file has it."""

    qid: TextId
    query: str | None = None
    rubrics: list[Criterion]


_RUBRICS = JsonLines(TypeAdapter(RubricLine), "weighted criteria", by_hand=True)
read_rubrics, write_rubrics = _RUBRICS.read, _RUBRICS.write


def bank_of_rubrics(lines: Iterable[RubricLine]) -> TestBank:
    """The bank that weighted criteria make: nuggets with a weight; the axis is the facet.

    Raises:
        InputError: a query comes twice, or a criterion has two weights.
    """
    items: dict[str, list[RubricItem]] = {}
    texts: dict[str, str] = {}
    facet_texts: dict[tuple[str, str], str] = {}
    for line in lines:
        if line.qid in items:
            raise InputError(f"query {line.qid!r} has two lines of criteria; join them first")
        if line.query is not None:
            texts[line.qid] = line.query
        facets = facet_ids(criterion.axis for criterion in line.rubrics)
        facet_texts |= {(line.qid, facet_id): text for text, facet_id in facets.items()}
        members = items.setdefault(line.qid, [])
        for criterion in line.rubrics:
            facet_id = facets.get((criterion.axis or "").strip())
            text = criterion.criterion.strip()
            item_id = make_item_id(line.qid, text, facet_id)
            said = {"tier": criterion.tier, "source_nugget": criterion.source_nugget}
            info = {name: value for name, value in said.items() if value is not None} or None
            members.append(RubricItem(item_id, line.qid, text, "nugget", facet_id, weight=criterion.weight, info=info))
    return bank_of_items(items, texts, facet_texts)


def rubric_lines(bank: TestBank) -> list[RubricLine]:
    """The lines that write a bank as weighted criteria.

    Raises:
        InputError: an item has no weight.
    """
    lines = []
    for query_id, items in bank.items.items():
        criteria = []
        for item in items:
            if item.weight is None:
                raise InputError(f"item {item.item_id!r} has no weight, and a criterion needs one")
            fields = {"criterion": item.text, "weight": item.weight, "axis": _facet_text(bank, item)}
            fields |= {name: _of_info(item, name) for name in ("tier", "source_nugget")}
            criteria.append(Criterion(**given(fields)))
        lines.append(RubricLine(**given({"qid": query_id, "query": bank.query_texts.get(query_id)}), rubrics=criteria))
    return lines


RUBRICS = Format(
    "rubrics",
    "weighted criteria of ResearchRubrics",
    read_rubrics,
    write_rubrics,
    lambda head: "rubrics" in head.object,
)
_Importance = Annotated[ImportanceLabel, BeforeValidator(known_label)]


class Nugget(Record):
    """One nugget.

    Attributes:
        text: the key fact, never blank.
        importance: `vital`, `okay`, `failed` (nobody could say), or None where nobody was asked.
        mapped_sub_narrative: TREC RAG 2025: the part of the narrative (the facet) that it belongs to.
        source: TREC RAG 2025: `original` or `post-edit`.
    """

    text: Annotated[str, Field(pattern=r"\S")]
    importance: _Importance | None = None
    mapped_sub_narrative: str | None = None
    source: str | None = None


class NuggetLine(Record):
    """The nuggets of one query; `query` is its text, where the file has it."""

    qid: TextId
    query: str | None = None
    nuggets: list[Nugget]


class RequestQuery(Record):
    """The query of a request."""

    qid: TextId
    text: str


class CandidateDocument(Record):
    """The text of a candidate: a segment of MS MARCO v2.1, or what RankLLM's retrieval has of other collections."""

    segment: str = Field(validation_alias=AliasChoices("segment", "text", "contents", "content", "body", "passage"))


class Candidate(Record):
    """One document to make nuggets from."""

    docid: TextId = ""
    score: float | None = None
    doc: CandidateDocument


class RequestLine(Record):
    """A query and the documents to make its nuggets from; either may be plain text."""

    query: RequestQuery | str
    candidates: list[Candidate | str]


_NUGGETS = JsonLines(TypeAdapter(NuggetLine), "nuggets", lambda line: (line.qid,), by_hand=True)
_REQUESTS = JsonLines(TypeAdapter(RequestLine), "requests")
read_nuggets, write_nuggets = _NUGGETS.read, _NUGGETS.write
read_requests, write_requests = _REQUESTS.read, _REQUESTS.write
NUGGETS = Format(
    "nuggets",
    "nuggets of nuggetizer and of TREC RAG",
    read_nuggets,
    write_nuggets,
    lambda head: isinstance(head.object.get("nuggets"), list),
)
REQUESTS = Format(
    "requests",
    "requests of nuggetizer and RankLLM: candidates of queries",
    read_requests,
    write_requests,
    lambda head: "candidates" in head.object,
)


def bank_of_nuggets(lines: Iterable[NuggetLine]) -> TestBank:
    """The bank that nuggets make; sub-narratives become facets, importance `failed` becomes none.

    A nugget that comes twice in a query (and facet) is kept
    once; this is counted, and so are nuggets whose importance failed.

    Raises:
        InputError: a nugget has two importances.
    """
    items: dict[str, list[RubricItem]] = {}
    texts: dict[str, str] = {}
    facet_texts: dict[tuple[str, str], str] = {}
    failed = 0
    for line in lines:
        if line.query is not None:
            texts.setdefault(line.qid, line.query)
        facets = facet_ids(nugget.mapped_sub_narrative for nugget in line.nuggets)
        facet_texts |= {(line.qid, facet_id): text for text, facet_id in facets.items()}
        made = [item_of_nugget(line.qid, nugget, facets) for nugget in line.nuggets]
        failed += sum(nugget.importance == "failed" for nugget in line.nuggets)
        if items.setdefault(line.qid, made) is not made:
            raise InputError(f"query {line.qid!r} has two lines of nuggets; join them first")
    warn("%d nuggets have no importance (failed); measures of vital and okay nuggets need one", failed)
    return bank_of_items(items, texts, facet_texts)


def nugget_lines(bank: TestBank) -> list[NuggetLine]:
    """The lines that write a bank as nuggets; what they cannot hold (ids, gold answers, weights) is left out.

    Raises:
        InputError: an item is a penalty (a negative weight): as a nugget it would count for an answer that has it.
    """
    _refuse_penalties(bank)
    lines = []
    for query_id, items in bank.items.items():
        nuggets = [Nugget(**_nugget_fields(bank, item)) for item in items]
        lines.append(NuggetLine(**given({"qid": query_id, "query": bank.query_texts.get(query_id)}), nuggets=nuggets))
    return lines


def _refuse_penalties(bank: TestBank) -> None:
    for item in bank:
        if item.weight is not None and item.weight < 0:
            raise InputError(
                f"query {item.query_id!r}: {item.text!r} is a penalty (weight {item.weight:g}), and a nugget counts "
                "for an answer that has it; take penalties out of the bank first"
            )


def _nugget_fields(bank: TestBank, item: RubricItem) -> dict[str, Any]:
    said = {"importance": item.importance, "mapped_sub_narrative": _facet_text(bank, item)}
    return given({"text": item.text, **said, "source": _of_info(item, "source")})


def _facet_text(bank: TestBank, item: RubricItem) -> str | None:
    """The text of an item's facet, or else its id."""
    facet_id = item.facet_id
    return None if facet_id is None else bank.facet_texts.get((item.query_id, facet_id), facet_id)


def _of_info(item: RubricItem, name: str) -> str | None:
    """A text that the info of an item holds."""
    found = item.info.get(name) if isinstance(item.info, dict) else None
    return found if isinstance(found, str) else None


def passages_of_requests(lines: Iterable[RequestLine], query_ids: Mapping[str, str]) -> list[QueryPassages]:
    """The candidates of requests as ungraded passages, in their order; those without an id are named by their place.

    Args:
        lines: requests.
        query_ids: text -> query id, for requests that give only the text of their query.

    Raises:
        UnknownNameError: the text of a query is not among them.
    """
    groups = []
    for line in lines:
        if not isinstance(line.query, str):
            query_id = line.query.qid
        elif line.query in query_ids:
            query_id = query_ids[line.query]
        else:
            raise UnknownNameError("query text", line.query, query_ids)
        passages = []
        for place, candidate in enumerate(line.candidates, 1):
            name, text = ("", candidate) if isinstance(candidate, str) else (candidate.docid, candidate.doc.segment)
            passages.append(GradedPassage(doc_id=name or f"candidate {place}", text=text))
        groups.append(QueryPassages(query_id, passages))
    return groups
