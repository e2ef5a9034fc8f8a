"""What a measure is: its name, its parameters, their levels on a scale; measures of one's own, and of plug-ins.

Measures describe. What they compute stands in `core`, and `scoring` puts it together.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

import ir_measures
from ir_measures.measures.base import _NOT_PROVIDED, Agg, MeanAgg, Measure, ParamInfo

from rubric_measures.base.errors import MeasureError, UnknownNameError
from rubric_measures.base.plugins import PlugIn, plug_ins, usable
from rubric_measures.types.scales import Scale

# ir_measures' measures over subtopics; `core.NOVELTY` has the formulas.
INTENT_AWARE = frozenset({"alpha_DCG", "alpha_nDCG", "ERR_IA", "nERR_IA", "NRBP", "nNRBP", "P_IA", "AP_IA", "StRecall"})
CUTOFF = ParamInfo(dtype=int, required=False, desc="ranking cutoff threshold; without it the whole ranking counts")
JUDGED_ONLY = ParamInfo(dtype=bool, default=False, desc="discard passages that nobody graded before the cutoff")


def min_grade(what: str) -> ParamInfo:
    """The parameter of a minimum grade; left out, the scale of the grades says it.

    Args:
        what: what passages of this grade are counted as.
    """
    return ParamInfo(
        dtype=int,
        required=False,
        desc=f"minimum grade (inclusive) that counts as {what}; the scale of the grades says it where it is left out",
    )


class ExactMean(MeanAgg):  # type: ignore[misc]
    """The mean, to the last digit whatever the order of the values."""

    def __init__(self) -> None:
        super().__init__()
        self._values: list[float] = []

    def add(self, value: float) -> None:
        """Takes the value of a query."""
        self._values.append(value)

    def result(self) -> float:
        """The mean; NaN of no value."""
        return math.fsum(self._values) / len(self._values) if self._values else float(self.default)


class RubricMeasure(Measure):  # type: ignore[misc]
    """A measure over grades: a name and its parameters. Those called `cutoff` and `judged_only` mean what they mean
    everywhere, and `rel` and `partial_rel` are levels that the scale of the grades says where they are left out.

    Two measures are equal exactly when their canonical text is: parameters in the order of `SUPPORTED_PARAMS`,
    defaults left out.

    Raises:
        MeasureError: a parameter is unknown or has a wrong value.
    """

    def __init_subclass__(cls) -> None:
        if "NAME" not in cls.__dict__:
            cls.NAME = cls.__qualname__.rpartition(".")[2].lstrip("_")

    # Whether the scale says the levels that are left out.
    needs_levels = True
    # Whether the values of queries are put together by their exact mean.
    is_averaged = True
    NAME: str
    params: dict[str, Any]
    validated: bool

    def __init__(self, **params: Any) -> None:
        super().__init__(**{name: value for name, value in params.items() if value is not None})
        # Without parameters a measure that needs one is what the others are made of.
        if self.params or not any(info.required for info in self.SUPPORTED_PARAMS.values()):
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

    def aggregator(self) -> Agg:
        """How ir_measures, `evaluate` and boards put the values of queries together: by their exact mean."""
        return ExactMean()

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
        for name, info in self.SUPPORTED_PARAMS.items():
            if info.required and name not in self.params:
                raise MeasureError(f"{self.NAME} needs the parameter {name}: {info.desc}")
        rel, partial = self.params.get("rel"), self.params.get("partial_rel")
        if isinstance(rel, int) and isinstance(partial, int) and partial > rel:
            raise MeasureError(
                f"{self.NAME}: partial_rel={partial} is above rel={rel}; partial support cannot ask for more than "
                "support"
            )
        self.validated = True

    def on(self, scale: Scale | None) -> RubricMeasure:
        """The measure with all levels said: those that are left out are the scale's.

        Args:
            scale: the scale; None where it is not known.

        Raises:
            MeasureError: the scale is not known, and a level is needed.
        """
        # Strict scores read no partial level.
        names = ("rel",) if self.params.get("strict") else ("rel", "partial_rel")
        asked = [name for name in names if name in self.SUPPORTED_PARAMS and name not in self.params]
        if not asked or not self.needs_levels:
            return self
        if scale is None:
            raise MeasureError(
                f"{self}: the scale of the grades is not known; say which grade counts, as in {self.NAME}({asked[0]}=…)"
                ", or their scale",
                settings=("scale",),
            )
        rel = self.params.get("rel", scale.covers)
        # Where no grade is partial, `partial_rel` is `rel`.
        levels = {"rel": rel, "partial_rel": rel if scale.partial is None else min(scale.partial, rel)}
        return self(**{name: levels[name] for name in asked})

    def value(self, name: str) -> Any:
        """The parameter's value, its default, or None."""
        value = self[name] if name in self.SUPPORTED_PARAMS else None
        return None if value is _NOT_PROVIDED else value

    def __reduce__(self) -> tuple[Any, ...]:
        # The classes of functions have no place of their own.
        return _named, (repr(self),)

    def __repr__(self) -> str:
        shown = ",".join(
            f"{name}={self.params[name]!r}"
            for name, info in self.SUPPORTED_PARAMS.items()
            if name in self.params and name != self.AT_PARAM and self.params[name] != info.default
        )
        text = f"{self.NAME}({shown})" if shown else str(self.NAME)
        return f"{text}@{self.params[self.AT_PARAM]}" if self.AT_PARAM in self.params else text


def is_supported(measure: Measure) -> bool:
    """Whether this package computes the measure: its own ones, and ir_measures' over subtopics."""
    return isinstance(measure, RubricMeasure) or measure.NAME in INTENT_AWARE


def _named(text: str) -> Measure:
    return ir_measures.parse_measure(text)


M = TypeVar("M", bound=RubricMeasure)


def register(kind: type[M]) -> M:
    """Makes a class of measures known by its name, to `ir_measures.parse_measure` and so to every command.

    Returns:
        the measure with its default parameters, as `RubricCover` is one.

    Raises:
        MeasureError: another measure has the name.
    """
    registry = ir_measures.measures.registry
    known = registry.get(kind.NAME)
    if known is not None and getattr(known, "origin", None) != getattr(kind, "origin", ""):
        raise MeasureError(f"there is a measure {kind.NAME} already; give {getattr(kind, 'origin', kind.NAME)} another")
    registry.pop(kind.NAME, None)
    measure = kind()
    ir_measures.measures.register(measure, name=kind.NAME)
    return measure


class ItemMeasure(RubricMeasure):
    """A measure of the items that the top k passages cover; `core.ITEM_MEASURES` has the formulas by name."""


_COVER = {"rel": min_grade("covering an item"), "cutoff": CUTOFF, "judged_only": JUDGED_ONLY}
_CREDIT = {
    "rel": min_grade("support (credit 1)"),
    "partial_rel": min_grade("partial support (credit 0.5)"),
    "strict": ParamInfo(dtype=bool, default=False, desc="partial support earns nothing"),
    "cutoff": CUTOFF,
    "judged_only": JUDGED_ONLY,
}


class _RubricCover(ItemMeasure):
    """The share of the query's rubric items that some passage among the top k covers.

    RubricCover(rel)@k = |{r in R_q : some p among the top k has grade(p, r) >= rel}| / |R_q|, in [0, 1]; R_q is
    the complete test bank of the query.

    .. cite:: Dietz, A Workbench for Autograding Retrieve/Generate Systems, SIGIR 2024 (as EXAM-Cover);
       Farzi and Dietz, EXAM++, LLM4Eval 2024, section 4.3
    """

    PRETTY_NAME = "Rubric-Cover"
    SHORT_DESC = "The share of the test bank's items that the top k passages cover with at least the minimum grade."
    SUPPORTED_PARAMS = _COVER


class _nRubricCover(ItemMeasure):
    """Rubric-Cover divided by what any graded passages reach: the items covered by at least one graded passage.

    In [0, 1]; 0 when no graded passage covers any item.

    .. cite:: Dietz, SIGIR 2024 (normalised EXAM-Cover)
    """

    PRETTY_NAME = "Normalised Rubric-Cover"
    SHORT_DESC = "The covered share of those items that any graded passage covers."
    SUPPORTED_PARAMS = _COVER


class _NuggetA(ItemMeasure):
    """The mean credit over all nuggets: A = sum of s_i / N, in [0, 1].

    s_i is 1 for support (grade >= rel), 0.5 for partial support (grade >=
    partial_rel), else 0; with strict=True partial support earns 0. Of several passages the best grade counts.

    .. cite:: Pradeep et al., AutoNuggetizer (TREC 2024 RAG), scoring
    """

    PRETTY_NAME = "All-nugget score"
    SHORT_DESC = "The mean credit of an answer over all nuggets."
    SUPPORTED_PARAMS = _CREDIT


class _NuggetV(ItemMeasure):
    """The mean credit over the vital nuggets: V = sum of s_i over vital / n_vital, in [0, 1].

    0 where none is vital. V with strict=True is the primary measure of the TREC 2024 RAG track.

    .. cite:: Pradeep et al., AutoNuggetizer (TREC 2024 RAG), scoring
    """

    PRETTY_NAME = "Vital-nugget score"
    SHORT_DESC = "The mean credit of an answer over the vital nuggets."
    SUPPORTED_PARAMS = _CREDIT


class _NuggetW(ItemMeasure):
    """The weighted credit: W = (sum of s_i over vital + 0.5 sum over okay) / (n_vital + 0.5 n_okay), in [0, 1].

    .. cite:: Pradeep et al., AutoNuggetizer (TREC 2024 RAG), scoring
    """

    PRETTY_NAME = "Weighted nugget score"
    SHORT_DESC = "The mean credit of an answer, vital nuggets counting 1 and okay nuggets 0.5."
    SUPPORTED_PARAMS = _CREDIT


class _WeightedCover(ItemMeasure):
    """The weighted credit over criteria of any weight: sum of w_i s_i / sum of the positive w_i.

    In (-inf, 1]; 0 where no criterion has a positive weight. Criteria
    of negative weight are penalties; clip=True reports values below 0 as 0.
    """

    PRETTY_NAME = "Weighted coverage"
    SHORT_DESC = "The weighted credit of an answer; criteria of negative weight are penalties."
    SUPPORTED_PARAMS = {**_CREDIT, "clip": ParamInfo(dtype=bool, default=False, desc="report values below 0 as 0")}


RubricCover = register(_RubricCover)
nRubricCover = register(_nRubricCover)  # noqa: N816
NuggetA = register(_NuggetA)
NuggetV = register(_NuggetV)
NuggetW = register(_NuggetW)
WeightedCover = register(_WeightedCover)


class FunctionMeasure(RubricMeasure):
    """A measure of one's own: a function over a `core.View`; made by `measure_of`."""

    function: ClassVar[Callable[..., Any]]
    origin: ClassVar[str]


def measure_of(function: Callable[..., Any]) -> FunctionMeasure:
    """The measure that a function computes, named as the function is.

    Args:
        function: takes a `core.View` of the top k of some rankings, and by name the parameters that it has; gives one
            number a ranking. Its parameters have defaults, or a type (`int`, `float`, `str`, `bool`) and have to be
            given. `rel` without a default is the level that covers on the scale. `cutoff` and `judged_only` come with
            every measure. Its first docstring line describes it.

    Raises:
        MeasureError: it is no such function, or another measure has its name.
    """
    import inspect

    named = inspect.isfunction(function) and function.__name__.isidentifier()
    takes = list(inspect.signature(function).parameters.values()) if named else []
    if not takes:
        raise MeasureError(f"{function!r:.60} is no measure; give a function over the view of a query, with a name")
    name, given = function.__name__, takes[1:]
    kinds = {"int": int, "float": float, "str": str, "bool": bool}
    params: dict[str, ParamInfo] = {}
    for one in given:
        if one.name in ("cutoff", "judged_only"):
            raise MeasureError(f"{name}: {one.name} comes with every measure; leave it out of the function")
        default = None if one.default is inspect.Parameter.empty else one.default
        said = getattr(one.annotation, "__name__", one.annotation)
        kind = type(default) if default is not None else kinds.get(said, int if one.name == "rel" else None)
        if kind not in kinds.values():
            raise MeasureError(
                f"{name}: the parameter {one.name} has neither a default nor one of the types int, float, str and bool"
            )
        if one.name == "rel" and default is None:
            params["rel"] = min_grade("covering an item")
        elif default is None:
            params[one.name] = ParamInfo(dtype=kind, required=True, desc=f"see {name}")
        else:
            params[one.name] = ParamInfo(dtype=kind, default=default, desc=f"see {name}")
    lines = (inspect.getdoc(function) or name).splitlines()
    fields = {
        "NAME": name,
        "PRETTY_NAME": name,
        "SHORT_DESC": lines[0],
        "SUPPORTED_PARAMS": {**params, "cutoff": CUTOFF, "judged_only": JUDGED_ONLY},
        "__doc__": inspect.getdoc(function),
        "function": staticmethod(function),
        "origin": f"{function.__code__.co_filename}:{name}",
    }
    return register(type(name, (FunctionMeasure,), fields))


def measure_in(path: str, name: str) -> FunctionMeasure:
    """The measure that a function in a Python file computes; see `measure_of`.

    Raises:
        MeasureError: there is no such file or function, or the file cannot be run.
    """
    import inspect
    import runpy
    from pathlib import Path

    if not Path(path).is_file():
        raise MeasureError(f"{path}: there is no such file, which is to have the measure {name}")
    try:
        # From its text each time: of a file that is written twice in one second, Python would take its older bytecode.
        found = runpy.run_path(path)
    except (Exception, SystemExit) as error:
        said = " ".join(str(error).split())
        raise MeasureError(f"{path}: cannot be run ({type(error).__name__}: {said})") from None
    own = {key: value for key, value in found.items() if inspect.isfunction(value)}
    if name not in own:
        raise UnknownNameError("measure", name, own, where=path)
    return measure_of(own[name])


_GROUP = "rubric_measures.measures"


def register_plug_ins() -> None:
    """Registers the measures of all packages that work; of each other one the reason is said in one line."""
    found = plug_ins(_GROUP, "measure")
    # A package that imports `rubric_measures` is not ready yet where it came first; it registers its measures itself.
    ready = {name: one for name, one in found.items() if not _is_being_imported(one.entry_point.module)}
    list(usable(ready, _registered))


def check_plug_in(name: str) -> None:
    """Says why a measure of another package is not known; nothing where no package has it.

    Raises:
        PlugInError: a package has it, and it cannot be used.
    """
    one = plug_ins(_GROUP, "measure").get(name)
    if one is not None:
        _registered(one, one.load())


def _registered(plug_in: PlugIn, found: Any) -> RubricMeasure:
    try:
        return found if isinstance(found, FunctionMeasure) else measure_of(found)
    except Exception as error:
        raise plug_in.refused(f"{type(error).__name__}: {error}") from error


def _is_being_imported(module: str) -> bool:
    return bool(getattr(getattr(sys.modules.get(module), "__spec__", None), "_initializing", False))
