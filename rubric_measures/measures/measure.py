"""What a measure is: a name, parameters with defaults, a citation, and how a query's grades make its value."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

import ir_measures
from ir_measures.measures.base import _NOT_PROVIDED, Measure, ParamInfo

from rubric_measures.base.errors import MeasureError
from rubric_measures.measures.context import QueryContext, RankedDocs, Top

__all__ = [
    "CUTOFF",
    "JUDGED_ONLY",
    "Computation",
    "CoverageMeasure",
    "ParamInfo",
    "RankingScorer",
    "RubricMeasure",
    "min_grade",
    "register",
]

CUTOFF = ParamInfo(dtype=int, required=False, desc="ranking cutoff threshold; without it the whole ranking counts")
JUDGED_ONLY = ParamInfo(dtype=bool, default=False, desc="discard passages that nobody graded before the cutoff")

# The value of one ranking of a query; None where nothing can be said, because all grades that it needs failed.
RankingScorer = Callable[[RankedDocs], float | None]


def min_grade(default: int, what: str) -> ParamInfo:
    """The parameter of a minimum grade.

    Args:
        default: its value where none is given.
        what: what passages of this grade are counted as.
    """
    return ParamInfo(dtype=int, default=default, desc=f"minimum grade (inclusive) that counts as {what}")


class Computation(ABC):
    """How a measure is computed, one query after the other."""

    # Whether `prepare` says itself what failed grades mean. Otherwise a query of which all that is known is that grades
    # failed has no value, and failed grades count as if nobody had graded.
    HANDLES_FAILED: ClassVar[bool] = False

    @property
    def depth(self) -> int | None:
        """How many passages of a ranking it looks at; None when all."""
        return None

    @property
    def skips_unjudged(self) -> bool:
        """Whether `depth` counts graded passages alone, so that it looks deeper."""
        return False

    @abstractmethod
    def prepare(self, query: QueryContext) -> RankingScorer:
        """Prepares the scoring of any number of rankings of one query.

        Raises:
            MeasureError: the grades lack what the measure needs.
        """

    def best(self, query: QueryContext, score: RankingScorer) -> float | None:
        """The best value that any ranking of the graded passages could reach; None where it is not known.

        Args:
            query: the query.
            score: what `prepare` gave.
        """
        return None

    def lost_penalties(self, query: QueryContext, ranked: RankedDocs) -> int:
        """The mask of the items that cost nothing because their grade failed for a ranked passage."""
        return 0


class RubricMeasure(Measure, Computation):  # type: ignore[misc]
    """A measure over grades: a class says its name and parameters, and computes itself.

    A subclass has `SUPPORTED_PARAMS` and `prepare`, and is made known with `register`. `NAME` is the name of the class
    where it does not say another. Parameters called `cutoff` and `judged_only` mean what they mean everywhere.

    Two measures are equal exactly when their canonical text is: parameters in the order of `SUPPORTED_PARAMS`,
    defaults left out.

    Raises:
        MeasureError: a parameter is unknown or has a wrong value.
    """

    def __init_subclass__(cls) -> None:
        if "NAME" not in cls.__dict__:
            cls.NAME = cls.__qualname__.rpartition(".")[2].lstrip("_")

    NAME: str
    params: dict[str, Any]
    validated: bool

    def __init__(self, **params: Any) -> None:
        super().__init__(**{name: value for name, value in params.items() if value is not None})
        # Without parameters a measure that needs one is what the others are made of.
        if self.params or not self._needed():
            self.validate_params()

    def __call__(self, **params: Any) -> RubricMeasure:
        """The measure with these parameters."""
        measure = type(self)(**{**self.params, **params})
        measure.validate_params()
        return measure

    # ir_measures asks a measure for this.
    @property
    def __name__(self) -> str:
        return str(self.NAME)

    def _needed(self) -> list[str]:
        return [name for name, info in self.SUPPORTED_PARAMS.items() if info.required and name not in self.params]

    def validate_params(self) -> None:
        """Checks names, types and values of the parameters.

        Raises:
            MeasureError: naming the parameter and what was expected.
        """
        if self.validated:
            return
        for name, value in self.params.items():
            info = self.SUPPORTED_PARAMS.get(name)
            if info is None:
                known = ", ".join(self.SUPPORTED_PARAMS)
                raise MeasureError(f"{self.NAME} has no parameter {name!r}; it has: {known}")
            # bool is an int to Python, but rel=True is a slip.
            wrong_type = not isinstance(value, info.dtype) or (info.dtype is int and isinstance(value, bool))
            if wrong_type or (info.choices is not _NOT_PROVIDED and value not in info.choices):
                expected = (
                    info.dtype.__name__ if info.choices is _NOT_PROVIDED else " or ".join(map(repr, info.choices))
                )
                raise MeasureError(f"{self.NAME}: {name}={value!r}; expected {expected}")
        if self.params.get("cutoff", 1) < 1:
            raise MeasureError(f"{self.NAME}: cutoff={self.params['cutoff']}; expected 1 or more")
        for name in self._needed():
            raise MeasureError(f"{self.NAME} needs the parameter {name}: {self.SUPPORTED_PARAMS[name].desc}")
        self.check()
        self.validated = True

    def check(self) -> None:
        """What a measure demands beyond the types of its parameters."""

    def value(self, name: str) -> Any:
        """The parameter's value, its default, or None."""
        value = self[name]
        return None if value is _NOT_PROVIDED else value

    @property
    def depth(self) -> int | None:
        """The cutoff."""
        cutoff = self.params.get("cutoff")
        return cutoff if isinstance(cutoff, int) else None

    @property
    def skips_unjudged(self) -> bool:
        """The parameter `judged_only`."""
        return bool(self.params.get("judged_only"))

    def __repr__(self) -> str:
        shown = ",".join(
            f"{name}={self.params[name]!r}"
            for name, info in self.SUPPORTED_PARAMS.items()
            if name in self.params and name != self.AT_PARAM and self.params[name] != info.default
        )
        text = f"{self.NAME}({shown})" if shown else str(self.NAME)
        return f"{text}@{self.params[self.AT_PARAM]}" if self.AT_PARAM in self.params else text


class CoverageMeasure(RubricMeasure):
    """A measure of the items that the top k passages cover; has the parameters `cutoff` and `judged_only`.

    A subclass has `formula` in the place of `prepare`. The best that any ranking could reach is then that of all graded
    passages together, whatever the cutoff (the workbench's `_overall_`; finding the best k of them is NP-hard).
    """

    HANDLES_FAILED = True

    @abstractmethod
    def formula(self, query: QueryContext) -> Callable[[Top], float | None]:
        """The value of what the top k passages reach. Says itself what failed grades mean: `query.undetermined`."""

    def prepare(self, query: QueryContext) -> RankingScorer:
        """See `Computation`."""
        kind = query.top(self.value("cutoff"), self.value("judged_only"))
        value = self.formula(query)
        return lambda ranked: value(ranked.top(kind))

    def best(self, query: QueryContext, score: RankingScorer) -> float | None:
        """See `Computation`."""
        return self.formula(query)(query.everything)


M = TypeVar("M", bound=RubricMeasure)


def register(kind: type[M]) -> M:
    """Makes a class of measures known by its name, to `ir_measures.parse_measure` and so to every command.

    Registering it again, or a new version of it from the same module, replaces it.

    Returns:
        the measure with its default parameters, as `RubricCover` is one: `Depth = register(Depth)`.

    Raises:
        MeasureError: another measure has the name.
    """
    measure = kind()
    registry = ir_measures.measures.registry
    known = type(registry.get(measure.NAME, measure))
    if (known.__module__, known.__qualname__) != (kind.__module__, kind.__qualname__):
        raise MeasureError(f"there is a measure {measure.NAME} already; give {kind.__module__}.{kind.__name__} another")
    registry.pop(measure.NAME, None)
    ir_measures.measures.register(measure, name=measure.NAME)
    return measure
