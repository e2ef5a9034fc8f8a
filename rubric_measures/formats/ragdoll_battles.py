"""Battles of RAGDoll, the toolkit of TREC RAG 2026: games between answers, one JSON object a line.

Two runs meet once a topic. A and B are the answers as they were shown. A battle that failed stays in the file, with a
`status` other than `completed`. A tie of two bad answers is told from a tie of two good ones.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Annotated, Any, Literal, Self

from pydantic import Field, TypeAdapter, model_validator

from rubric_measures.base.errors import InputError
from rubric_measures.base.files import path_name
from rubric_measures.base.json_files import JsonLines, Record, TextId
from rubric_measures.formats.base import Format, Head, PathName, write_objects
from rubric_measures.formats.preferences import check_games
from rubric_measures.types.entities import GradeStatus, Preference, Verdict

__all__ = ["BATTLES", "read_battles", "write_battles"]

_LOG = logging.getLogger("rubric_measures")
_VERDICTS: dict[str | None, Verdict | None] = {
    "A": "a", "B": "b", "Tie": "tie", "Tie (Both Bad)": "both_bad", None: None,
}  # fmt: skip
_SAID = {verdict: said for said, verdict in _VERDICTS.items()}
_Run = Annotated[TextId, Field(min_length=1)]


class _Battle(Record):
    qid: Annotated[TextId, Field(min_length=1)]
    pair: tuple[_Run, _Run]
    assistant_a_run_id: _Run
    assistant_b_run_id: _Run
    judge_verdict: Literal["A", "B", "Tie", "Tie (Both Bad)"] | None
    preferred_run_id: TextId | None = None
    provider: str | None = None
    model: str | None = None
    thinking: str | None = None
    status: str
    error: str | None = None
    raw_output: str | None = None

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if {self.assistant_a_run_id, self.assistant_b_run_id} != set(self.pair):
            raise ValueError("assistant_a_run_id and assistant_b_run_id are not the runs of the pair")
        if (self.judge_verdict is None) == (self.status == "completed"):
            raise ValueError("expected a judge_verdict exactly when the status is completed")
        winner = {"A": self.assistant_a_run_id, "B": self.assistant_b_run_id}.get(self.judge_verdict or "")
        if self.preferred_run_id != winner:
            raise ValueError(f"preferred_run_id is {self.preferred_run_id!r}, the verdict says {winner!r}")
        return self

    @property
    def grader(self) -> str:
        """Who judged, as `provider:model`."""
        return ":".join(part for part in (self.provider, self.model) if part)

    def game(self) -> Preference:
        """The battle as a game; one that failed with a reply is `unparsed`, one without is `failed`."""
        status: GradeStatus = "graded" if self.judge_verdict else "unparsed" if self.raw_output else "failed"
        note = self.error or ("" if status == "graded" else self.status)
        runs = (self.assistant_a_run_id, self.assistant_b_run_id)
        verdict = _VERDICTS[self.judge_verdict]
        return Preference(self.qid, *runs, verdict, status, self.raw_output or "", self.grader, note)


_BATTLES = JsonLines(TypeAdapter(_Battle), "battles")


def read_battles(path: PathName) -> list[Preference]:
    """The battles of a file as games, in order; the grader is `provider:model`.

    Raises:
        InputError: the file cannot be opened.
        FormatError: a line is no battle, contradicts itself, is of a run with itself, or comes twice.
    """
    rows = _BATTLES.numbered(path)
    games = [battle.game() for _, battle in rows]
    check_games(games, [line for line, _ in rows], path_name(path))
    return games


def write_battles(path: PathName, games: Iterable[Preference]) -> None:
    """Writes games as battles; what games do not hold (texts of queries, times, tokens) is empty, which is said.

    Raises:
        InputError: the file cannot be written, there are no games, or a pair meets twice in a topic: such a file has
            one battle of it, in one order.
    """
    seen: set[str] = set()
    lines = []
    for game in games:
        line = _line(game)
        if line["task_id"] in seen:
            raise InputError(
                f"{path_name(path)}: query {game.query_id!r}: {game.agent_a!r} and {game.agent_b!r} meet twice, and "
                "battles have one game of a pair and query; keep one order and one grader"
            )
        seen.add(line["task_id"])
        lines.append(line)
    write_objects(path, lines, "games")
    _LOG.warning("%s: query, thinking, elapsed_seconds and usage are empty: games do not say them", path_name(path))


def _line(game: Preference) -> dict[str, Any]:
    pair = sorted((game.agent_a, game.agent_b))
    provider, colon, model = game.grader.partition(":")
    winner = {"a": game.agent_a, "b": game.agent_b}.get(game.verdict or "")
    is_decided = game.verdict is not None
    return {
        "task_id": ":".join(("arena", *pair, game.query_id)),
        "qid": game.query_id,
        "query": "",
        "pair": pair,
        "assistant_a_run_id": game.agent_a,
        "assistant_b_run_id": game.agent_b,
        "judge_verdict": _SAID[game.verdict],
        "preferred_run_id": winner,
        "provider": provider if colon else None,
        "model": model if colon else game.grader or None,
        "thinking": None,
        "status": "completed" if is_decided else "failed",
        "error": None if is_decided else game.note or game.status,
        "raw_output": game.answer,
        "elapsed_seconds": None,
        "usage": None,
    }


def is_battles(head: Head) -> bool:
    """Whether a file begins with a battle."""
    return "judge_verdict" in head.object and "pair" in head.object


BATTLES = Format("games", "battles of RAGDoll (TREC RAG 2026)", read_battles, write_battles, is_battles)
