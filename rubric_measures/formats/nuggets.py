"""Nuggets and their labels, without pydantic: facets, items, banks, and assignments as nuggetizer reads them."""

from __future__ import annotations

import logging
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

from rubric_measures.base.errors import FormatError, InputError, warn
from rubric_measures.base.files import path_name, run_of_file
from rubric_measures.base.json_text import json_texts, parse_json
from rubric_measures.types.entities import RubricItem, TestBank, make_item_id

_LOG = logging.getLogger("rubric_measures")
ImportanceLabel = Literal["vital", "okay", "failed"]
AssignmentLabel = Literal["support", "partial_support", "not_support", "failed"]
# The grades of the labels, from 0; `failed` is a status and no grade.
ASSIGNMENT_GRADES: Mapping[str, int] = MappingProxyType({"not_support": 0, "partial_support": 1, "support": 2})
NO_ASSIGNMENTS = "is empty; expected assignments, one JSON object a line"
UnknownLabels: TypeAlias = Literal["failed"]
"""What labels that nobody defined count as; without it they are refused."""


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
    warn("%d items come twice in their query; each is kept once", repeated)
    return TestBank(kept, dict(query_texts or {}), dict(facet_texts or {}))


def item_of_nugget(query_id: str, nugget: Any, facets: Mapping[str, str]) -> RubricItem:
    """The rubric item that a nugget of a query is, a model or a struct; `facets` says the ids of sub-narratives."""
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
        raise FormatError(NO_ASSIGNMENTS, path=name)


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
