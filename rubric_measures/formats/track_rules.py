"""What tracks take as runs: `track_rules.toml`, read."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict

from rubric_measures.base.errors import UnknownNameError

__all__ = ["Kind", "Length", "TrackRules", "track_rules", "tracks"]

Length: TypeAlias = Literal["words", "characters"]
# The kinds of findings: what a rule is about.
Kind: TypeAlias = Literal[
    "form", "metadata", "type", "copies", "run_id", "missing", "unknown", "twice", "empty", "blank", "length",
    "citations", "cited_twice", "place", "ids", "references", "reference_twice", "uncited", "given", "prefix",
    "documents", "order",
]  # fmt: skip


class TrackRules(BaseModel):
    """The rules of one track and form; the head of `track_rules.toml` says what each field means."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    source: tuple[str, ...]
    form: Literal["answers", "text", "grounded", "ranking", "nuggets"] = "answers"
    sentences: Literal["answer", "responses"] = "answer"
    topic: str = "topic_id"
    metadata: tuple[str, ...] = ()
    top_level: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    copies: str | None = None
    limit: int | None = None
    unit: Length = "words"
    citations: int | None = None
    cited_in: tuple[str, ...] = ("citations",)
    cited_as: tuple[Literal["position", "id", "score"], ...] = ("id",)
    depth: int | None = None
    given: str | None = None
    ids: re.Pattern[str]
    references: Literal["required", "optional", "none"] = "none"
    references_most: int | None = None
    all_cited: bool = False
    run_id_most: int | None = None
    run_id_safe: int | None = None
    prefix: bool = False
    warnings: tuple[Kind, ...]


@cache
def _tables() -> Mapping[str, Any]:
    return tomllib.loads(resources.files(__package__).joinpath("track_rules.toml").read_text(encoding="utf-8"))


def tracks() -> tuple[str, ...]:
    """The names of the tracks, and of the forms of tracks that have several."""
    return tuple(_tables())


def track_rules(track: str) -> tuple[TrackRules, ...]:
    """The rules of a track, of each of its forms.

    >>> [rules.name for rules in track_rules("rag26")]
    ['TREC RAG 2026']

    Raises:
        UnknownNameError: nobody knows the track.
    """
    if track not in _tables():
        raise UnknownNameError("track", track, tracks())
    table = _tables()[track]
    return tuple(TrackRules.model_validate(_tables()[name]) for name in table.get("one_of", [track]))
