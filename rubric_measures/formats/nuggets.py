"""Nuggets and their assignments in bulk: facets, items, banks, labels, and the lines of nuggetizer's files as structs.

Lines are read nearly at the speed of parsing them. Those that are not as nuggetizer writes them today go through the
models of `formats.nuggetizer`, which know older forms and name the field that is wrong. These are imported only then:
pydantic takes as long as 10,000 lines.
"""

from __future__ import annotations

import logging
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, get_args

import msgspec

from rubric_measures.base.errors import FormatError, InputError
from rubric_measures.base.files import path_name, run_of_file
from rubric_measures.base.json_text import json_texts, parse_json
from rubric_measures.types.entities import RubricItem, TestBank, make_item_id

if TYPE_CHECKING:
    from rubric_measures.formats.nuggetizer import AssignmentLine, Nugget

_LOG = logging.getLogger("rubric_measures")
ImportanceLabel = Literal["vital", "okay", "failed"]
AssignmentLabel = Literal["support", "partial_support", "not_support", "failed"]
# The grades of the labels, from 0; `failed` is a status and no grade.
ASSIGNMENT_GRADES: Mapping[str, int] = MappingProxyType({"not_support": 0, "partial_support": 1, "support": 2})
UnknownLabels: TypeAlias = Literal["failed"]
"""What labels that nobody defined count as; without it they are refused."""


class _BulkNugget(msgspec.Struct, gc=False):
    text: str
    assignment: AssignmentLabel
    importance: ImportanceLabel | None = None
    mapped_sub_narrative: str | None = None
    source: str | None = None


class _BulkLine(msgspec.Struct, gc=False):
    """A line as nuggetizer writes it today: with the answer, and the run that gave it; further fields are skipped."""

    qid: str
    run_id: str
    answer_text: str
    nuggets: list[_BulkNugget]
    # Only looked at: a text that is no UTF-8 says that the file is damaged.
    query: object = None


def facet_ids(texts: Iterable[str | None]) -> dict[str, str]:
    """Facet text -> a short id: its lower-case words joined by hyphens, numbered where two would be the same.

    Blank texts are no facet.

    >>> facet_ids(['"Key advantages of nuclear energy"', None, "Key advantages of nuclear energy?"])
    {'"Key advantages of nuclear energy"': 'key-advantages-of-nuclear-energy', \
'Key advantages of nuclear energy?': 'key-advantages-of-nuclear-energy-2'}
    """
    ids: dict[str, str] = {}
    used: set[str] = set()
    for text in texts:
        stripped = (text or "").strip()
        if not stripped or stripped in ids:
            continue
        words = "-".join(re.findall(r"\w+", stripped.lower()))[:60].rstrip("-") or "facet"
        facet_id, number = words, 1
        while facet_id in used:
            number += 1
            facet_id = f"{words}-{number}"
        used.add(facet_id)
        ids[stripped] = facet_id
    return ids


def bank_of_items(
    items: Mapping[str, Sequence[RubricItem]],
    query_texts: Mapping[str, str] | None = None,
    facet_texts: Mapping[tuple[str, str], str] | None = None,
) -> TestBank:
    """A bank in which an item that comes twice in its query is kept once, counted.

    Raises:
        InputError: the two have different importances, weights or gold answers.
    """
    kept: dict[str, tuple[RubricItem, ...]] = {}
    repeated = 0
    for query_id, members in items.items():
        unique: dict[str, RubricItem] = {}
        for item in members:
            earlier = unique.setdefault(item.item_id, item)
            if earlier != item:
                what = "comes twice with different importance, weight or answers; keep one"
                raise InputError(f"query {query_id!r}: {item.text!r} {what}")
        repeated += len(members) - len(unique)
        kept[query_id] = tuple(unique.values())
    if repeated:
        _LOG.warning("%d items come twice in their query; each is kept once", repeated)
    return TestBank(kept, dict(query_texts or {}), dict(facet_texts or {}))


def item_of_nugget(query_id: str, nugget: _BulkNugget | Nugget, facets: Mapping[str, str]) -> RubricItem:
    """The rubric item that a nugget of a query is; `facets` says the ids of sub-narratives."""
    facet_id = facets.get((nugget.mapped_sub_narrative or "").strip())
    return RubricItem(
        item_id=make_item_id(query_id, nugget.text, facet_id),
        query_id=query_id,
        text=nugget.text.strip(),
        kind="nugget",
        facet_id=facet_id,
        importance=None if nugget.importance == "failed" else nugget.importance,
        info=None if nugget.source is None else {"source": nugget.source},
    )


@dataclass(frozen=True, eq=False)
class NuggetSet:
    """The items of nuggets that stand together, in order; each set is itself alone, so that much can be kept by it."""

    items: tuple[RubricItem, ...]


def known_label(value: Any) -> Any:
    """Older files write labels with capitals, spaces and hyphens, and `okey`; RAGDoll writes `fail`."""
    if not isinstance(value, str):
        return value
    label = "_".join(value.lower().replace("-", " ").replace("_", " ").split())
    return {"okey": "okay", "fail": "failed"}.get(label, label)


def label_treatment(unknown_labels: object) -> Counter[str] | None:
    """Where labels that nobody defined are counted, if they are to count as failed; None where they are refused.

    Raises:
        InputError: something else is to be done with them.
    """
    if unknown_labels not in (None, "failed"):
        raise InputError(f"unknown_labels is {unknown_labels!r}; expected failed, or nothing")
    return None if unknown_labels is None else Counter()


def with_known_labels(content: Any, found: Counter[str]) -> Any:
    """A line of assignments in which labels that nobody defined are `failed`; they are counted."""
    nuggets = content.get("nuggets") if isinstance(content, dict) else None
    if not isinstance(nuggets, list):
        return content
    known = []
    for nugget in nuggets:
        label = nugget.get("assignment") if isinstance(nugget, dict) else None
        if isinstance(label, str) and known_label(label) not in get_args(AssignmentLabel):
            found[label] += 1
            nugget = {**nugget, "assignment": "failed"}
        known.append(nugget)
    return {**content, "nuggets": known}


def note_unknown_labels(found: Counter[str] | None, name: str) -> None:
    """Says how many labels counted as failed because nobody defined them."""
    if found:
        shown = ", ".join(f"{label!r} {count}" for label, count in found.most_common(3))
        _LOG.warning("%s: %d labels that nobody defined (%s) are failed grades", name, found.total(), shown)


_EMPTY = "is empty; expected assignments, one JSON object a line"
_decoded = msgspec.json.Decoder(_BulkLine).decode


class AssignedRow(NamedTuple):
    """The nuggets of a query, assigned to the answer of a run.

    Attributes:
        query_id: the query.
        run_id: the run.
        nuggets: the nuggets.
        labels: the label of each: `support`, `partial_support`, `not_support` or `failed`.
        text: the answer.
        said_length: its length, as the file says it, where it lacks the text.
        line: where it stands in the file.
    """

    query_id: str
    run_id: str
    nuggets: NuggetSet
    labels: Sequence[str]
    text: str | None
    said_length: int | None
    line: int

    @property
    def length(self) -> int:
        """L, the length of the answer in whitespace words: of the text, else what the file says."""
        return len(self.text.split()) if self.text is not None else self.said_length or 0


def assignment_rows(path: str | os.PathLike[str], unknown_labels: UnknownLabels | None = None) -> Iterator[AssignedRow]:
    """The lines of a file of assignments, one after the other, whatever their order.

    Args:
        path: the file; several runs may be in it.
        unknown_labels: what labels that nobody defined count as, with a note in the end; None refuses them.

    Raises:
        InputError: the file cannot be opened.
        FormatError: naming file, line and field; also when there are no lines.
    """
    name = path_name(path)
    unknown = label_treatment(unknown_labels)
    # Of each query the nuggets of its last line, labels aside; most lines have those of the one before.
    last: dict[str, tuple[list[_BulkNugget], NuggetSet]] = {}
    sets: dict[tuple[object, ...], NuggetSet] = {}
    for number, data in json_texts(name):
        text: str | None
        said_length = None
        try:
            line = _decoded(data)
            query_id, run_id, text, nuggets = line.qid, line.run_id, line.answer_text, line.nuggets
        except (ValueError, RecursionError):
            run_id = ""
        if not run_id:
            found = _careful(data, name, number, unknown)
            query_id, run_id, text, said_length = found.qid, str(found.run_id), found.answer_text, found.response_length
            nuggets = [
                _BulkNugget(one.text, one.assignment, one.importance, one.mapped_sub_narrative, one.source)
                for one in found.nuggets
            ]
        labels = [one.assignment for one in nuggets]
        for one in nuggets:
            one.assignment = "failed"
        before, alike = last.get(query_id, (None, None))
        if alike is None or nuggets != before:
            # Who wrote a nugget makes it no other one.
            key = (query_id, *[(one.text, one.importance, one.mapped_sub_narrative) for one in nuggets])
            alike = sets.get(key)
            if alike is None:
                if not all(one.text.strip() for one in nuggets):
                    _careful(data, name, number, unknown)
                facets = facet_ids(one.mapped_sub_narrative for one in nuggets)
                alike = sets[key] = NuggetSet(tuple([item_of_nugget(query_id, one, facets) for one in nuggets]))
            last[query_id] = nuggets, alike
        yield AssignedRow(query_id, run_id, alike, labels, text, said_length, number)
    if not last:
        raise FormatError(_EMPTY, path=name)
    note_unknown_labels(unknown, name)


class RawRow(NamedTuple):
    """A line as nuggetizer's own program reads it: any importance and any label, as they stand.

    Attributes:
        query_id: the query.
        run_id: the run; of a line without one, that which the file is named after.
        importances: of each nugget.
        labels: of each nugget.
    """

    query_id: str
    run_id: str
    importances: list[str]
    labels: list[str]


def raw_rows(path: str | os.PathLike[str]) -> Iterator[RawRow]:
    """The lines of a file of assignments as they stand, one after the other.

    Raises:
        InputError: the file cannot be opened.
        FormatError: naming file, line and field; also when there are no lines.
    """
    name, number = path_name(path), 0
    for number, data in json_texts(name):
        yield _raw(parse_json(data, path=name, line=number), name, number)
    if not number:
        raise FormatError(_EMPTY, path=name)


def _raw(content: Any, name: str, number: int) -> RawRow:
    try:
        query_id, run = content["qid"], content.get("run_id")
        if run is None:
            run = run_of_file(name)
        importances = [nugget["importance"] for nugget in content["nuggets"]]
        labels = [nugget["assignment"] for nugget in content["nuggets"]]
    except (KeyError, TypeError, AttributeError):
        problem = "expected qid, run_id and nuggets with importance and assignment"
        raise FormatError(problem, path=name, line=number) from None
    if run == "":
        raise FormatError("names no run; say which one it is", path=name, line=number, field="run_id")
    for what, found in (("qid", query_id), ("run_id", run), *(("nuggets", text) for text in importances + labels)):
        # Some files write ids as numbers.
        if not isinstance(found, str) and (what == "nuggets" or type(found) is not int):
            problem = f"expected a text; found {type(found).__name__}"
            raise FormatError(problem, path=name, line=number, field=what)
    return RawRow(str(query_id), str(run), importances, labels)


def _careful(data: bytes, name: str, line: int, unknown: Counter[str] | None) -> AssignmentLine:
    """A line in whatever form files ever had."""
    from rubric_measures.formats.nuggetizer import validate_assignments

    content = parse_json(data, path=name, line=line)
    return validate_assignments(data if unknown is None else with_known_labels(content, unknown), name, line)
