"""Passages by query, graded or not, as functions take and return them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self, overload

from rubric_measures.base.errors import InputError, counted

if TYPE_CHECKING:
    from rubric_measures.grading import GradingPlan, GradingReport
    from rubric_measures.records.models import QueryPassages


class PassageRecords(Sequence["QueryPassages"]):
    """Passages by query: a sequence of `QueryPassages`, each with the passages of one query.

    Args:
        groups: the queries; None where they are in a file.
        path: the file that has them. It is read when they are looked at.
    """

    def __init__(self, groups: Iterable[QueryPassages] | None, *, path: str = "") -> None:
        self.path = path
        if groups is not None and not isinstance(groups, Iterable):
            problem = f"passages: {groups!r:.60} is neither a file nor records; give what `pool` returns, or its file"
            raise InputError(problem, settings=("passages",))
        self._given = None if groups is None else list(groups)

    @classmethod
    def kept(cls, groups: Iterable[QueryPassages], output: str | os.PathLike[str] | None, **more: Any) -> Self:
        """The records in memory, or written to the output and read from there; `more` is what else they have."""
        if output is None:
            return cls(groups, **more)
        from rubric_measures.records.files import write_graded

        write_graded(output, groups)
        return cls(None, path=os.fspath(output), **more)

    @cached_property
    def _groups(self) -> list[QueryPassages]:
        from rubric_measures.records.files import load_graded
        from rubric_measures.records.models import QueryPassages

        if self._given is None:
            if self.path == "-":
                raise InputError("the records went to standard output, and cannot be read again")
            return load_graded(self.path)
        for group in self._given:
            if not isinstance(group, QueryPassages):
                raise InputError(f"expected the passages of a query (QueryPassages), found {type(group).__name__}")
        return self._given

    @overload
    def __getitem__(self, place: int) -> QueryPassages: ...
    @overload
    def __getitem__(self, place: slice) -> list[QueryPassages]: ...
    def __getitem__(self, place: int | slice) -> QueryPassages | list[QueryPassages]:
        return self._groups[place]

    def __len__(self) -> int:
        return len(self._groups)

    def __iter__(self) -> Iterator[QueryPassages]:
        return iter(self._groups)

    @property
    def name(self) -> str:
        """The file, or what stands for it in an error."""
        return self.path or "the passages"

    def write(self, path: str | os.PathLike[str]) -> None:
        """Writes the records, which every command and `load` read: JSON lines, gzip where the name ends with .gz."""
        from rubric_measures.records.files import write_graded

        write_graded(path, self._groups)

    def __repr__(self) -> str:
        if self.path == "-":
            return f"{type(self).__name__}(written to standard output)"
        passages = [passage for group in self._groups for passage in group.passages]
        sets = sum(len(passage.exam_grades or ()) + len(passage.grades or ()) for passage in passages)
        graded = f", {counted(sets, 'grade set')}" if sets else ""
        return f"{type(self).__name__}({counted(len(self), 'query')}, {counted(len(passages), 'passage')}{graded})"


class GradedRecords(PassageRecords):
    """Graded passages by query; `load` takes them.

    Attributes:
        report: what was made: grades by status, kept ones, calls and tokens; `report.is_complete` says whether all
            that was asked for is there.
        plan: of a dry run, what grading would need; the records are empty then.
    """

    def __init__(
        self,
        groups: Iterable[QueryPassages] | None,
        *,
        path: str = "",
        report: GradingReport,
        plan: GradingPlan | None = None,
    ) -> None:
        super().__init__(groups, path=path)
        self.report, self.plan = report, plan

    def __repr__(self) -> str:
        if self.plan is not None:
            return str(self.plan)
        lacking = ", ".join(f"{count} {status}" for status, count in sorted(self.report.ungraded.items()) if count)
        return super().__repr__()[:-1] + (f", not graded: {lacking})" if lacking else ")")
