"""Rubrics of RAGDoll, the toolkit of TREC RAG 2026: JSON lines, a task a line.

A criterion has a weight, a type and a tier. Tasks that failed stay in the file, with a `status` other than `completed`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal, get_args

from pydantic import Field, TypeAdapter

from rubric_measures.base.errors import InputError, warn
from rubric_measures.base.files import path_name
from rubric_measures.base.json_files import JsonLines, Record, TextId
from rubric_measures.formats.base import Format, PathName, given, write_objects
from rubric_measures.formats.nuggetizer import Criterion, RubricLine

_Type = Literal["explicit", "implicit", "synthesis", "references", "communication", "instruction"]
_Tier = Literal["mandatory", "optional"]
# The weight that a criterion from a vital nugget has; a tier that nobody said follows it.
_VITAL = 5


class _Criterion(Record):
    text: Annotated[str, Field(pattern=r"\S")]
    type: _Type
    tier: _Tier
    weight: float
    source_nugget: str | None = None

    def criterion(self) -> Criterion:
        said = {"weight": self.weight, "axis": self.type, "tier": self.tier, "source_nugget": self.source_nugget}
        return Criterion(**given({"criterion": self.text, **said}))


class _Rubric(Record):
    status: str
    qid: Annotated[TextId, Field(min_length=1)]
    query: str | None = None
    criteria: list[_Criterion] | None = None


def _rubric(query_id: str, query: str | None, criteria: Iterable[Criterion]) -> RubricLine:
    return RubricLine(**given({"qid": query_id, "query": query}), rubrics=list(criteria))


_RUBRICS = JsonLines(TypeAdapter(_Rubric), "rubrics of RAGDoll", lambda line: (line.qid,))


def read_ragdoll_rubrics(path: PathName) -> list[RubricLine]:
    """The rubrics of a file; the type is the axis. Tasks that failed have no criteria; they are counted and left out.

    Raises:
        InputError: the file cannot be opened, or every task failed.
        FormatError: naming file, line and field; also when a query comes twice.
    """
    found = _RUBRICS.read(path)
    kept = [one for one in found if one.status == "completed"]
    if not kept:
        raise InputError(f"{path_name(path)}: every task failed; there are no criteria")
    warn("%s: %d tasks failed and have no criteria; left out", path_name(path), len(found) - len(kept))
    return [_rubric(one.qid, one.query, [each.criterion() for each in one.criteria or ()]) for one in kept]


def write_ragdoll_rubrics(path: PathName, lines: Iterable[RubricLine]) -> None:
    """Writes weighted criteria as rubrics of RAGDoll; a tier that nobody said is `mandatory` from weight 5 on.

    Raises:
        InputError: the file cannot be written, there are no criteria, or an axis is no type of RAGDoll.
    """
    tasks = (
        {
            "task_id": line.qid, "status": "completed", "qid": line.qid, "query": line.query or "",
            "criteria": [_written(line.qid, one) for one in line.rubrics],
        }
        for line in lines
    )  # fmt: skip
    write_objects(path, tasks, "criteria")


def _written(query_id: str, one: Criterion) -> dict[str, Any]:
    if one.axis not in get_args(_Type):
        known = ", ".join(get_args(_Type))
        raise InputError(f"query {query_id!r}: {one.criterion!r:.60} has the axis {one.axis!r}; RAGDoll knows {known}")
    tier = one.tier or ("mandatory" if one.weight >= _VITAL else "optional")
    weight = int(one.weight) if one.weight.is_integer() else one.weight
    return {
        "text": one.criterion, "type": one.axis, "tier": tier, "weight": weight, "source_nugget": one.source_nugget,
    }  # fmt: skip


def _criteria(head: Mapping[str, Any]) -> list[Any] | None:
    """The criteria of the first line, if it is a task of RAGDoll."""
    found = head.get("criteria")
    is_task = "qid" in head and "status" in head and "criteria" in head
    return (found if isinstance(found, list) else []) if is_task else None


RUBRIC = Format(
    "rubrics",
    "rubrics of RAGDoll (TREC RAG 2026)",
    read_ragdoll_rubrics,
    write_ragdoll_rubrics,
    lambda head: _criteria(head.object) is not None and "run_id" not in head.object,
)
