"""Games between answers (`Preference` records) as JSON lines; verdicts of people are told by their grader."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterable
from typing import Any

from rubric_measures.base.entities import GRADE_STATUSES, Preference
from rubric_measures.base.errors import FormatError, InputError
from rubric_measures.base.files import atomic_writer, iter_lines, path_name
from rubric_measures.base.json_models import parse_json
from rubric_measures.formats.base import Format

__all__ = ["GAMES", "HUMAN", "check_games", "read_preferences", "write_preferences"]

_LOG = logging.getLogger("rubric_measures")
# Graders whose names begin so are people.
HUMAN = "human:"
_VERDICTS = ("a", "b", "tie", None)


def read_preferences(path: str | os.PathLike[str], *, assessors: bool = False) -> list[Preference]:
    """Reads games: JSON lines with `query_id`, `agent_a`, `agent_b`, `verdict` (`a`, `b`, `tie` or null).

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
    unknown: dict[str, int] = {}
    for line, data in iter_lines(name):
        fields = parse_json(data, path=name, line=line)
        if not isinstance(fields, dict):
            raise FormatError("expected an object {query_id, agent_a, agent_b, verdict}", path=name, line=line)
        for field in set(fields).difference(Preference._fields):
            unknown[field] = unknown.get(field, 0) + 1
        game = _game(fields, name, line)
        if assessors and not game.grader.startswith(HUMAN):
            game = game._replace(grader=HUMAN + (game.grader or "anonymous"))
        games.append(game)
        lines.append(line)
    if not games:
        raise FormatError("holds no games", path=name)
    check_games(games, lines, name)
    if unknown:
        counts = ", ".join(f"{field} ({count} lines)" for field, count in sorted(unknown.items()))
        _LOG.warning("%s: unknown fields left out: %s", name, counts)
    return games


def _game(fields: dict[str, Any], name: str, line: int) -> Preference:
    def wrong(field: str, expected: str) -> FormatError:
        return FormatError(f"expected {expected}; found {fields.get(field)!r:.60}", path=name, line=line, field=field)

    if type(fields.get("query_id")) is int:
        fields = {**fields, "query_id": str(fields["query_id"])}
    for field in ("query_id", "agent_a", "agent_b"):
        if not isinstance(fields.get(field), str) or not fields[field]:
            raise wrong(field, "text")
    for field in ("answer", "grader", "note"):
        if not isinstance(fields.get(field, ""), str):
            raise wrong(field, "text")
    if "verdict" not in fields or fields["verdict"] not in _VERDICTS:
        raise wrong("verdict", "a, b, tie or null")
    verdict = fields["verdict"]
    status = fields.get("status", "unparsed" if verdict is None else "graded")
    if status not in GRADE_STATUSES:
        raise wrong("status", f"one of {', '.join(GRADE_STATUSES)}")
    if (verdict is None) == (status == "graded"):
        raise wrong("verdict", "a verdict exactly when the status is graded")
    texts = (fields.get(field, "") for field in ("answer", "grader", "note"))
    return Preference(fields["query_id"], fields["agent_a"], fields["agent_b"], verdict, status, *texts)


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
    empty = True
    with atomic_writer(path) as stream:
        for game in games:
            empty = False
            fields = {
                field: value
                for field, value in game._asdict().items()
                if value or field == "verdict" or (field in ("query_id", "agent_a", "agent_b"))
            }
            if game.status == "graded":
                del fields["status"]
            stream.write(json.dumps(fields, ensure_ascii=False) + "\n")
        if empty:
            raise InputError(f"{path_name(path)}: there are no games to write")


GAMES = Format(
    "games",
    "pairwise games with verdicts (JSON lines)",
    read_preferences,
    write_preferences,
    lambda head: "agent_a" in head.object,
)
