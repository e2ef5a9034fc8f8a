"""Ids that hold spaces or control characters in TREC files: percent-encoded on writing, found again where known."""

from __future__ import annotations

import functools
import logging
import re
from collections.abc import Collection, Mapping, Sequence
from urllib.parse import unquote

from rubric_measures.base.errors import CONTROL, InputError

__all__ = ["IdCleaner", "as_known", "renamed", "spaced_form", "spaced_ids", "spaced_pairs", "written_id"]

_LOG = logging.getLogger("rubric_measures")
# Spaces part the columns, and a terminal would obey the others.
_SPACE = re.compile(r"[\s" + CONTROL.pattern[1:])
# Ids that are remembered at a time.
_MANY = 1 << 16


@functools.cache
def _encoded() -> re.Pattern[str]:
    """What `written_id` makes of each space that there is."""
    spaces = filter(_SPACE.match, map(chr, range(0x3001)))
    return re.compile("|".join("".join(f"%{byte:02X}" for byte in space.encode()) for space in spaces))


def written_id(identifier: str) -> str:
    """The id as TREC files have it: spaces and control characters as `%20` and the like.

    >>> written_id("my answer")
    'my%20answer'
    """
    if identifier.isprintable() and " " not in identifier:
        return identifier
    return _SPACE.sub(lambda found: "".join(f"%{byte:02X}" for byte in found[0].encode()), identifier)


def spaced_ids(known: Collection[str]) -> Mapping[str, str]:
    """The known ids that hold spaces, by what TREC files have in their place; most collections have none."""
    if not _SPACE.search("\0".join(known)):
        return {}
    return {written: identifier for identifier in known if (written := written_id(identifier)) != identifier}


def spaced_form(identifier: str) -> str:
    """The id that an id of a TREC file may stand for, which is itself where nothing in it looks like a space of ours.

    For stores that cannot list their ids: what a file says literally goes before it.

    >>> spaced_form("my%20answer%2F1")
    'my answer%2F1'
    """
    return _encoded().sub(lambda found: unquote(found.group()), identifier) if "%" in identifier else identifier


def spaced_pairs(known: Collection[tuple[str, str]]) -> Mapping[tuple[str, str], tuple[str, str]]:
    """The known (query, document) by what TREC files have in their place; empty where no id holds a space."""
    queries, docs = spaced_ids({query_id for query_id, _ in known}), spaced_ids({doc_id for _, doc_id in known})
    if not queries and not docs:
        return {}
    return {(written_id(query_id), written_id(doc_id)): (query_id, doc_id) for query_id, doc_id in known}


def as_known(identifiers: Sequence[str], known: Collection[str]) -> Sequence[str]:
    """Ids of a TREC file, those that stand for a known id with spaces replaced by it."""
    return renamed(identifiers, spaced_ids(known))


def renamed(identifiers: Sequence[str], forms: Mapping[str, str]) -> Sequence[str]:
    """`as_known` for many sequences: what `spaced_ids` found of the known ids is found once for all."""
    return [forms.get(identifier, identifier) for identifier in identifiers] if forms else identifiers


class IdCleaner:
    """Percent-encodes the spaces of ids, and counts the ids that had some.

    Calling it with an id gives the id to write; `InputError` for an empty one.
    """

    def __init__(self) -> None:
        self._written: dict[str, str] = {}
        # Rows repeat the ids of queries, documents and items.
        self._done: dict[str, str] = {}

    def __call__(self, identifier: str) -> str:
        """The id to write; an `InputError` for an empty one."""
        if identifier in self._done:
            return self._done[identifier]
        if not identifier:
            raise InputError("an empty id cannot be written to a TREC file")
        if len(self._done) >= _MANY:
            self._done.clear()
        written = self._done[identifier] = written_id(identifier)
        if written != identifier:
            self._written[identifier] = written
        return written

    def say(self, name: str) -> None:
        """Says once, with the count, that ids were changed in the file `name`."""
        if self._written:
            identifier, written = next(iter(self._written.items()))
            _LOG.warning(
                "%s: %d ids hold spaces or control characters and were percent-encoded (%r became %s)",
                name,
                len(self._written),
                identifier,
                written,
            )
