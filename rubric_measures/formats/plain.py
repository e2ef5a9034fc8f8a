"""Formats of flat rows: RAGElo's four tables, games, battles; RAGElo's experiments, requests of nuggetizer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from msgspec import Struct, convert

from rubric_measures.base.errors import UnknownNameError
from rubric_measures.base.files import path_name
from rubric_measures.formats.answers import Answer
from rubric_measures.formats.base import PathName
from rubric_measures.formats.judged import places_of_runs
from rubric_measures.formats.queries import QueryFile, queries_of, said_of_queries
from rubric_measures.formats.specs import NAMES, RecordLines, Row, Spec, same, spec, table
from rubric_measures.records.models import GradedPassage, JsonRecord, PassageData, QueryPassages, RankingEntry
from rubric_measures.types.entities import GradeStatus, Preference, make_run


def _passages(
    rows: Iterable[Mapping[str, Any]], places: Mapping[tuple[str, str], list[RankingEntry]] = MappingProxyType({})
) -> list[QueryPassages]:
    groups: dict[str, list[GradedPassage]] = {}
    for said in rows:
        query_id, doc_id = said["query_id"], said["doc_id"]
        data = PassageData(judgments=[], rankings=list(places.get((query_id, doc_id), ())))
        groups.setdefault(query_id, []).append(GradedPassage(doc_id=doc_id, text=said["text"], paragraph_data=data))
    return [QueryPassages(query_id, passages) for query_id, passages in groups.items()]


def _is_one_game(said: Mapping[str, Any]) -> str | None:
    if said["agent_a"] == said["agent_b"] and said["agent_a"] is not None:
        return f"query {said['query_id']!r}: agent {said['agent_a']!r} plays against itself; remove the game"
    status = said.get("state") or said.get("status")
    if status is not None and (said["verdict"] is None) == (status in ("graded", "completed")):
        return "expected a verdict exactly when the status is graded, or completed"
    return None


def _status_of(said: Mapping[str, Any]) -> GradeStatus:
    """What became of a game that does not say it: a verdict that nobody gave is no tie."""
    if said["verdict"]:
        return "graded"
    return "unparsed" if said.get("answer") or not said.get("note") else "failed"


def games_of(rows: Iterable[Row]) -> list[Preference]:
    """Games; results of RAGElo that name no agents are none. RAGDoll names a provider beside the model."""
    return [
        Preference(
            said["query_id"], said["agent_a"], said["agent_b"], said["verdict"], said.get("status") or _status_of(said),
            said.get("answer") or "", ":".join(filter(None, map(said.get, ("provider", "grader")))),
            said.get("note") or "",
        )
        for _, said, *_ in rows
        if None not in (said["agent_a"], said["agent_b"])
    ]  # fmt: skip


def _said_of_games(games: Iterable[Preference]) -> Iterator[dict[str, Any]]:
    for game in games:
        said = game._asdict()
        if said["status"] == _status_of(said) != "failed":
            # That is what the verdict says.
            del said["status"]
        yield {name: value for name, value in said.items() if value or name == "verdict"}


RAGELO_QUERIES = spec("ragelo:queries", into=queries_of, outof=said_of_queries)
RAGELO_DOCUMENTS = spec(
    "ragelo:documents", into=lambda rows: _passages(row.said for row in rows),
    outof=lambda groups: (
        {"query_id": group.query_id, "doc_id": one.doc_id, "text": one.text,
         "grades": one.exam_grades or one.grades, "judgments": one.judgments, "rankings": one.rankings}
        for group in groups for one in group.passages
    ),
)  # fmt: skip
RAGELO_GAMES = spec(
    "ragelo:games", check=_is_one_game, into=games_of,
    outof=lambda games: (
        {**said, "both_bad": True, "verdict": "tie"} if said["verdict"] == "both_bad" else said
        for said in _said_of_games(games)
    ),
)  # fmt: skip
GAMES: Spec[list[Preference]] = spec("games", check=_is_one_game, into=games_of, outof=_said_of_games)


BATTLES: Spec[list[Preference]] = spec("ragdoll:battles", check=_is_one_game, into=games_of)
# Only read: what a model said of both answers is left behind.
RAGELO_RESULTS: Spec[list[Preference]] = spec("ragelo:results", check=_is_one_game, into=games_of)


_EXPERIMENTS: Spec[list[Row]] = spec(
    "ragelo:experiment", {"scores": (lambda value: convert(value, dict[str, float | None]), same)}
)


def read_experiment(path: PathName) -> dict[str, Any]:
    """What a file of an experiment holds, by kind: `queries`, `records`, `answers`, `games`.

    Documents are ranked by the scores of who retrieved them. The program keeps the verdicts of games beside the file
    `NAME.json`, in `NAME_results.jsonl`.

    Raises:
        InputError: a file cannot be opened.
        FormatError: naming file, line and field.
    """
    asked = [row.said for saved in _EXPERIMENTS.read(path) for row in saved.said["queries"]]
    documents, answers = (
        [{**row.said, "query_id": one["query_id"]} for one in asked for row in one.get(to, ())]
        for to in ("documents", "answers")
    )
    runs: dict[str, list[tuple[str, str, float]]] = {}
    for one in documents:
        for agent, score in one.get("retrieved_by", {}).items():
            runs.setdefault(agent, []).append((one["query_id"], one["doc_id"], score or 0.0))
    places = places_of_runs(make_run(agent, rows) for agent, rows in runs.items())
    beside = Path(path_name(path).removesuffix(".gz")).with_suffix("")
    results = beside.with_name(f"{beside.name}_results.jsonl")
    # Without games the program leaves that file empty.
    games = RAGELO_RESULTS.read(results) if results.is_file() and results.stat().st_size else []
    return {
        "queries": QueryFile({one["query_id"]: one["text"] for one in asked}), "games": games,
        "records": _passages(documents, places),
        "answers": [Answer(one["query_id"], one["run_id"], one["text"]) for one in answers if "text" in one],
    }  # fmt: skip


RAGELO_EXPERIMENT = _EXPERIMENTS.format._replace(read=read_experiment)


class RequestQuery(Struct):
    """The query of a request."""

    qid: str | int
    text: str


class Candidate(Struct):
    """One document to make nuggets from: a segment of MS MARCO v2.1, or what RankLLM's retrieval has of others."""

    doc: dict[str, Any]
    docid: str | int = ""
    score: float | None = None

    def __post_init__(self) -> None:
        if self.text is None:
            raise ValueError(f"expected a text in {', '.join(NAMES['text'])}")

    @property
    def text(self) -> str | None:
        """Its text; every candidate has one."""
        return next((said for name in NAMES["text"] if isinstance(said := self.doc.get(name), str)), None)


class RequestLine(JsonRecord, frozen=True, kw_only=True):
    """A query and the documents to make its nuggets from; either may be plain text."""

    query: RequestQuery | str
    candidates: list[Candidate | str]


REQUESTS = RecordLines(**table("requests"), type=RequestLine)


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
        query_id = query_ids.get(line.query) if isinstance(line.query, str) else str(line.query.qid)
        if query_id is None:
            raise UnknownNameError("query text", str(line.query), query_ids)
        said = (("", one) if isinstance(one, str) else (str(one.docid), one.text or "") for one in line.candidates)
        passages = [
            GradedPassage(doc_id=to or f"candidate {place}", text=one) for place, (to, one) in enumerate(said, 1)
        ]
        groups.append(QueryPassages(query_id, passages))
    return groups
