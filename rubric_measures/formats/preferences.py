"""Games between answers (`Preference` records) as JSON lines; those of assessors are told by their grader."""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Iterable
from typing import Annotated, Self

from pydantic import Field, TypeAdapter, model_validator

from rubric_measures.base.errors import FormatError
from rubric_measures.base.files import path_name
from rubric_measures.base.json_files import JsonLines, Record, TextId
from rubric_measures.formats.base import Format, write_objects
from rubric_measures.types.entities import GradeStatus, Preference, Verdict

__all__ = ["GAMES", "HUMAN", "check_games", "read_preferences", "write_preferences"]

_LOG = logging.getLogger("rubric_measures")
# Graders whose names begin so are assessors.
HUMAN = "human:"


class _Game(Record):
    query_id: Annotated[TextId, Field(min_length=1)]
    agent_a: Annotated[str, Field(min_length=1)]
    agent_b: Annotated[str, Field(min_length=1)]
    verdict: Verdict | None
    status: GradeStatus | None = None
    answer: str = ""
    grader: str = ""
    note: str = ""

    @model_validator(mode="after")
    def _one_outcome(self) -> Self:
        if self.status is not None and (self.verdict is None) == (self.status == "graded"):
            raise ValueError("expected a verdict exactly when the status is graded")
        return self


_GAMES = JsonLines(TypeAdapter(_Game), "games")


def read_preferences(path: str | os.PathLike[str], *, assessors: bool = False) -> list[Preference]:
    """Reads games: JSON lines with `query_id`, `agent_a`, `agent_b`, `verdict` (`a`, `b`, `tie`, `both_bad` or
    null).

    Further fields: `status` (`graded` unless the verdict is null, then `unparsed`), `answer`, `grader`, `note`. Others
    are left out and counted.

    Args:
        path: the file.
        assessors: the verdicts are by assessors: graders are marked `human:`, if they are not yet.

    Raises:
        InputError: the file cannot be opened.
        FormatError: a line is no game, is a game of an agent with itself, or comes twice (same query, order, grader).
    """
    name = path_name(path)
    games: list[Preference] = []
    lines: list[int] = []
    unknown: Counter[str] = Counter()
    for line, row in _GAMES.numbered(path):
        unknown.update((row.model_extra or {}).keys())
        grader = row.grader
        if assessors and not grader.startswith(HUMAN):
            grader = HUMAN + (grader or "anonymous")
        status = row.status or ("unparsed" if row.verdict is None else "graded")
        game = Preference(row.query_id, row.agent_a, row.agent_b, row.verdict, status, row.answer, grader, row.note)
        games.append(game)
        lines.append(line)
    check_games(games, lines, name)
    if unknown:
        counts = ", ".join(f"{field} ({count} lines)" for field, count in sorted(unknown.items()))
        _LOG.warning("%s: unknown fields left out: %s", name, counts)
    return games


def check_games(games: Iterable[Preference], lines: Iterable[int], name: str) -> None:
    """Refuses games of an agent with itself and games that come twice, naming file and line.

    Raises:
        FormatError: as said.
    """
    seen: dict[tuple[str, str, str, str], int] = {}
    for game, line in zip(games, lines, strict=True):
        if game.agent_a == game.agent_b:
            raise FormatError(
                f"query {game.query_id!r}: agent {game.agent_a!r} plays against itself; remove the game",
                path=name, line=line,
            )  # fmt: skip
        key = (game.query_id, game.agent_a, game.agent_b, game.grader)
        before = seen.setdefault(key, line)
        if before != line:
            raise FormatError(
                f"query {game.query_id!r}: the game of {game.agent_a!r} and {game.agent_b!r} by the same grader stands "
                f"in line {before} already; keep one",
                path=name, line=line,
            )  # fmt: skip


def write_preferences(path: str | os.PathLike[str], games: Iterable[Preference]) -> None:
    """Writes games as JSON lines, in order; empty texts and the status `graded` are left out.

    Raises:
        InputError: the file cannot be written, or there are no games.
    """
    always = ("query_id", "agent_a", "agent_b", "verdict")
    rows = (
        {
            field: value
            for field, value in game._asdict().items()
            if (value and (field, value) != ("status", "graded")) or field in always
        }
        for game in games
    )
    write_objects(path, rows, "games")


GAMES = Format(
    "games",
    "pairwise games with verdicts (JSON lines)",
    read_preferences,
    write_preferences,
    lambda head: "agent_a" in head.object,
)
