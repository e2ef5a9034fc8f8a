"""What a measure is: its name, its parameters, their levels on a scale; of citations, and of one's own.
How users write measures: read, checked, and found among the columns of a board.

Measures describe. What they compute stands in `core`, and `scoring` puts it together. Of standard measures over labels,
and of the programs behind ir_measures, this file says what they cannot do, and their errors.
"""

from __future__ import annotations

import contextlib
import inspect
import math
import os
import re
import sys
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, TypeAlias, TypeVar

import ir_measures
from ir_measures import providers
from ir_measures.measures.base import _NOT_PROVIDED, Agg, MeanAgg, Measure, ParamInfo
from ir_measures.util import Metric

from rubric_measures.base.errors import InputError, MeasureError, MeasureNameError, UnknownNameError, origin_of
from rubric_measures.base.plugins import PlugIn, plug_ins, usable
from rubric_measures.types.scales import CONTRADICTED, Scale

if TYPE_CHECKING:
    from rubric_measures.measures.grades import OnFailed, QueryGrades
    from rubric_measures.types.entities import CitedSentence

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


def parameters_of(measure: Measure) -> str:
    """The parameters that a measure knows, for an error: those that it needs are marked."""
    known = [f"{name} (needed)" if info.required else name for name, info in measure.SUPPORTED_PARAMS.items()]
    return f"{measure.NAME} has the parameters {', '.join(known)}" if known else f"{measure.NAME} has no parameters"


def checked_measure(measure: Measure) -> Measure:
    """The measure, of this package or of ir_measures, when its parameters are there and have the right type.

    Raises:
        MeasureError: a parameter is unknown, missing, or has a wrong value; names what is expected.
    """
    of, known = measure.NAME, measure.SUPPORTED_PARAMS
    for name, value in measure.params.items():
        if name not in known:
            raise MeasureError(f"{of} has no parameter {name!r}; {parameters_of(measure)}")
        kind, choices = known[name].dtype, known[name].choices
        # bool is an int to Python, but rel=True is a slip.
        if not known[name].validate(value) or (kind is int and isinstance(value, bool)):
            expected = getattr(kind, "__name__", kind) if choices is _NOT_PROVIDED else " or ".join(map(repr, choices))
            raise MeasureError(f"{of}: {name}={value!r}; expected {expected}")
    if measure.params.get("cutoff", 1) < 1:
        raise MeasureError(f"{of}: cutoff={measure.params['cutoff']}; expected 1 or more")
    for name in (name for name, info in known.items() if info.required and name not in measure.params):
        example = f"{of}@10" if name == measure.AT_PARAM else f"{of}({name}=…)"
        raise MeasureError(f"{of} needs the parameter {name}, as in {example}; {parameters_of(measure)}")
    return measure


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
        cls.SHORT_DESC = (cls.__doc__ or cls.NAME).partition("\n")[0]

    # Whether the scale says the levels that are left out.
    needs_levels = True
    # Whether the values of queries are put together by their exact mean.
    is_averaged = True
    NAME: str
    params: dict[str, Any]
    validated: bool

    def __init__(self, **params: Any) -> None:
        names = (*self.SUPPORTED_PARAMS, *params)
        super().__init__(**{name: params[name] for name in names if params.get(name) is not None})
        # Without parameters a measure that needs one is what the others are made of.
        if self.params or not any(info.required for info in self.SUPPORTED_PARAMS.values()):
            self.validate_params()

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
        checked_measure(self)
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
        measure: RubricMeasure = self(**{name: levels[name] for name in asked})
        return measure

    def value(self, name: str) -> Any:
        """The parameter's value, its default, or None."""
        value = self[name] if name in self.SUPPORTED_PARAMS else None
        return None if value is _NOT_PROVIDED else value

    def __reduce__(self) -> tuple[Any, ...]:
        # The classes of functions have no place of their own.
        return _named, (repr(self),)


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
    """The share of the query's items that some passage among the top k covers.

    RubricCover(rel)@k = |{r in R_q : some p among the top k has grade(p, r) >= rel}| / |R_q|

    Range: 0 to 1. R_q is the complete test bank of the query, so items that nobody graded count.

    .. cite:: Dietz, A Workbench for Autograding Retrieve/Generate Systems, SIGIR 2024 (as EXAM-Cover);
       Farzi and Dietz, EXAM++, LLM4Eval 2024, section 4.3
    """

    SUPPORTED_PARAMS = _COVER


class _nRubricCover(ItemMeasure):
    """Rubric-Cover divided by what any graded passages reach.

    nRubricCover(rel)@k = items that the top k cover / items that any graded passage covers

    Range: 0 to 1; 0 where no graded passage covers any item. It changes when passages are added to the pool.

    .. cite:: Dietz, SIGIR 2024 (normalised EXAM-Cover)
    """

    SUPPORTED_PARAMS = _COVER


class _NuggetA(ItemMeasure):
    """The mean credit over all nuggets.

    A = sum of s_i / N,   s_i = 1 (grade >= rel), 0.5 (grade >= partial_rel), else 0

    Range: 0 to 1. With strict=True partial support earns 0. Of several passages the best grade of a nugget counts.

    .. cite:: Pradeep et al., AutoNuggetizer (TREC 2024 RAG), scoring
    """

    SUPPORTED_PARAMS = _CREDIT


class _NuggetV(ItemMeasure):
    """The mean credit over the vital nuggets.

    V = sum of s_i over vital / n_vital,   s_i as of NuggetA

    Range: 0 to 1; 0 where no nugget is vital. A bank without importance is refused. V with strict=True is the primary
    measure of the TREC 2024 RAG track.

    .. cite:: Pradeep et al., AutoNuggetizer (TREC 2024 RAG), scoring
    """

    SUPPORTED_PARAMS = _CREDIT


class _NuggetW(ItemMeasure):
    """The mean credit over all nuggets, okay ones counting half.

    W = (sum of s_i over vital + 0.5 sum over okay) / (n_vital + 0.5 n_okay),   s_i as of NuggetA

    Range: 0 to 1. A bank without importance is refused.

    .. cite:: Pradeep et al., AutoNuggetizer (TREC 2024 RAG), scoring
    """

    SUPPORTED_PARAMS = _CREDIT


class _WeightedCover(ItemMeasure):
    """The weighted credit over criteria of any weight; negative weights are penalties.

    WeightedCover = sum of w_i s_i / sum of the positive w_i,   s_i as of NuggetA

    Range: up to 1, and below 0 where penalties weigh more; with clip=True not below 0. It is 0 where no criterion has a
    positive weight.

    .. cite:: weighted criteria, as in ResearchRubrics and RAGDoll
    """

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
            number a ranking. Its parameters have defaults: a number, a text, `True` or `False`. `rel` without one is
            the level that covers on the scale. `cutoff` and `judged_only` come with every measure. Its first docstring
            line describes it.

    Raises:
        MeasureError: it is no such function, or another measure has its name.
    """
    import inspect

    is_function = inspect.isfunction(function)
    origin = f"{function.__code__.co_filename}:{function.__name__}" if is_function else f"{function!r:.60}"
    named = is_function and function.__name__.isidentifier()
    takes = list(inspect.signature(function).parameters.values()) if named else []
    if not takes:
        raise MeasureNameError(f"{origin} is no measure; give a function over the view of a query, with a name")
    name = function.__name__
    params: dict[str, ParamInfo] = {}
    for one in takes[1:]:
        if one.name in ("cutoff", "judged_only"):
            raise MeasureNameError(f"{name}: {one.name} comes with every measure; leave it out of the function")
        if one.name == "rel" and one.default is inspect.Parameter.empty:
            params["rel"] = min_grade("covering an item")
        elif type(one.default) not in (int, float, str, bool):
            raise MeasureNameError(f"{name}: give the parameter {one.name} a default: a number, a text, True or False")
        else:
            params[one.name] = ParamInfo(dtype=type(one.default), default=one.default, desc=f"see {name}")
    fields = {
        "NAME": name,
        "SUPPORTED_PARAMS": {**params, "cutoff": CUTOFF, "judged_only": JUDGED_ONLY},
        "__doc__": inspect.getdoc(function),
        "function": staticmethod(function),
        "origin": origin,
    }
    return register(type(name, (FunctionMeasure,), fields))


@measure_of
def WeightedContradiction(view: Any) -> Any:  # noqa: N802 - a measure is called as its function
    """The share of the items, by weight, of which an answer says the opposite (grade -2).

    WeightedContradiction = sum of w_i of items whose best grade is -2 / sum of w_i

    Range: 0 to 1. Less is better. An item without a weight weighs 1, and a penalty nothing. Failed grades contradict
    nothing.

    .. cite:: Zhang, Smucker and Clarke, resources of the TREC 2025 DRAGUN track (the contradictory score)
    """
    # numpy is imported when something is computed.
    from rubric_measures.measures.core import contradicted

    return contradicted(view)


def measure_in(path: str, name: str) -> FunctionMeasure:
    """The measure that a function in a Python file computes; see `measure_of`.

    Raises:
        MeasureError: there is no such file or function, or the file cannot be run.
    """
    import inspect
    import runpy
    from pathlib import Path

    if not Path(path).is_file():
        raise MeasureNameError(f"{path}: there is no such file; it should have the measure {name}")
    try:
        # From its text each time: of a file that is written twice in one second, Python would take its older bytecode.
        found = runpy.run_path(path)
    except (Exception, SystemExit) as error:
        said = " ".join(str(error).split())
        raise MeasureNameError(f"{path}: cannot be run ({type(error).__name__}: {said})") from None
    own = {key: value for key, value in found.items() if inspect.isfunction(value)}
    if name not in own:
        raise UnknownNameError("measure", name, own, where=path)
    return measure_of(own[name])


_GROUP = "rubric_measures.measures"


def register_plug_ins() -> None:
    """Registers the measures of all packages that work; of each other one the reason is said in one line."""
    found = plug_ins(_GROUP, "measure")
    # A package that imports `rubric_measures` is not ready yet where it came first; it registers its measures itself.
    specs = {name: getattr(sys.modules.get(one.entry_point.module), "__spec__", None) for name, one in found.items()}
    ready = {name: one for name, one in found.items() if not getattr(specs[name], "_initializing", False)}
    list(usable(ready, _registered))


def _registered(plug_in: PlugIn, found: Any) -> RubricMeasure:
    named = getattr(found, "__name__", plug_in.name)
    if named != plug_in.name:
        raise plug_in.refused(f"its function is named {named}; give the entry point and the function one name")
    try:
        return found if isinstance(found, FunctionMeasure) else measure_of(found)
    except Exception as error:
        raise plug_in.refused(f"{type(error).__name__}: {error}") from error


# What ir_measures calls the provider of this package.
PROVIDER = __name__.partition(".")[0]


def other_providers() -> providers.FallbackProvider:
    """ir_measures' pipeline without this package's provider."""
    return providers.FallbackProvider([one for one in ir_measures.DefaultPipeline.providers if one.NAME != PROVIDER])


def real_label(qrels: Iterable[Any]) -> Any | None:
    """The first judgment whose label has a fraction; None where all are whole."""
    return next((row for row in qrels if isinstance(row.relevance, float) and row.relevance % 1), None)


def refuse_real(qrels: Iterable[Any], shown: object) -> None:
    """Refuses labels with fractions: the programs behind ir_measures read whole ones, and some would cut the rest off.

    Args:
        qrels: the judgments.
        shown: what the error calls the measure.

    Raises:
        MeasureError: a label has a fraction.
    """
    row = real_label(qrels)
    if row is not None:
        raise MeasureError(
            f"{shown}: the program behind it reads whole labels, and document {row.doc_id!r} of query "
            f"{row.query_id!r} has {row.relevance}; write qrels with larger, whole labels first (times 100, say), or "
            "take a measure that is computed here (nDCG, ERR, RBP, AP, RR, P, R, Success)"
        )


@contextlib.contextmanager
def delegated(measures: Sequence[Measure], shown: object = None) -> Iterator[None]:
    """Turns what a program behind ir_measures raises over its input into a `MeasureError`; errors of ours pass.

    Args:
        measures: what it computes.
        shown: how the error calls them; their own names by default.

    Raises:
        MeasureError: the program cannot compute a measure with these parameters, from these judgments.
    """
    name = " ".join(map(str, measures)) if shown is None else str(shown)
    known = "; ".join(dict.fromkeys(map(parameters_of, measures)))
    try:
        yield
    except (MeasureError, MemoryError, OSError):
        raise
    except Exception as error:
        if origin_of(error) == PROVIDER:
            raise
        # Of unsupported measures ir_measures says which program, if installed, could compute them.
        why = " ".join(f"{type(error).__name__}: {error}".split()).rstrip(" .:")
        raise MeasureError(
            f"{name}: no program here computes it from these judgments and this ranking ({why[:400]}); give other "
            f"parameters ({known}) or leave it out; where the scale is said, RubricQrels has nDCG, ERR and RBP",
            settings=("scale",),
        ) from None


def compute(measures: Sequence[Measure], qrels: Any, run: Any) -> list[Metric]:
    """The values of measures over plain judgments, as ir_measures computes them.

    Args:
        measures: the measures.
        qrels: the judgments, more than one time readable; of documents also query_id -> document -> whole label.
        run: the scored documents, also query_id -> document -> score.

    Raises:
        MeasureError: one of the measures cannot be computed; names it alone. A label has a fraction.
    """
    if not isinstance(qrels, dict):
        with delegated(measures):
            refuse_real(qrels, " ".join(map(str, measures)))
    found: list[Metric] = []
    # Gains, and the count of all documents, change what pytrec_eval makes of other measures in one call.
    is_apart = any(one.NAME == "NumRet" or "gains" in one.params for one in measures)
    for some in [[one] for one in measures] if is_apart else [measures]:
        try:
            with delegated(some):
                found += ir_measures.iter_calc(some, qrels, run)
        except MeasureError:
            for measure in some if len(some) > 1 else ():
                with delegated([measure]):
                    list(ir_measures.iter_calc([measure], qrels, run))
            raise
    return found


class _RubricQrels(RubricMeasure):
    """Any measure of ir_measures over the labels that the grades imply (Rubric-Qrels, EXAM-Qrels).

    label="max":   label(p) = max over r of grade(p, r), and 0 where that is below rel
    label="count": label(p) = the number of items with grade(p, r) >= rel

    Range: that of the measure. Passages without grades are unjudged. With label="max" a measure with a level takes
    `rel` as its own; write another one inside the name: measure="P(rel=2)@20".

    .. cite:: Farzi and Dietz, EXAM++, LLM4Eval 2024, section 4.3; Dietz, SIGIR 2024
    """

    SUPPORTED_PARAMS = {
        "measure": ParamInfo(dtype=str, required=True, desc="the standard measure, such as nDCG@10 or AP"),
        "label": ParamInfo(dtype=str, choices=["max", "count"], default="max", desc="how item grades become a label"),
        "rel": min_grade("relevant (max), or as covering an item (count)"),
        "cutoff": CUTOFF,
    }

    # The standard measure with this measure's cutoff and relevance level put in.
    inner: Measure

    def __init__(self, **params: Any) -> None:
        given = params.get("measure")
        super().__init__(**{**params, "measure": _with_level(given) if isinstance(given, Measure) else given})

    def validate_params(self) -> None:
        """As of every measure; the standard measure is one, and no parameter is given twice.

        Raises:
            MeasureError: also where the measure is unknown, or is one over items.
        """
        if self.validated:
            return
        super().validate_params()
        name, cutoff, rel = (self.params.get(one) for one in ("measure", "cutoff", "rel"))
        label = self.params.get("label", "max")
        try:
            inner = ir_measures.parse_measure(name)
        except (NameError, ValueError) as error:
            raise MeasureError(f"RubricQrels: measure={name!r}: {error}") from None
        if isinstance(inner, RubricMeasure) or inner.NAME in INTENT_AWARE:
            raise MeasureError(f"RubricQrels: {name} reads items, not labels; use it by itself")
        if label == "count" or "rel" not in inner.SUPPORTED_PARAMS:
            rel = None
        for param, value, what in (("cutoff", cutoff, "cutoffs"), ("rel", rel, "levels")):
            if value is not None and inner.params.get(param, value) != value:
                raise MeasureError(f"RubricQrels: {name} and {param}={value} are two {what}; give one")
            inner = inner if value is None else inner(**{param: value})
        try:
            self.inner = checked_measure(inner)
        except MeasureError as error:
            raise MeasureError(f"RubricQrels: measure={name!r}: {error}") from None
        self.is_averaged = isinstance(inner.aggregator(), MeanAgg)
        # Whether it reads labels as relevant or not, and nobody said from which label on.
        info = inner.SUPPORTED_PARAMS.get("rel")
        is_open = info is not None and info.default is not _NOT_PROVIDED and "rel" not in inner.params
        self.needs_levels = label == "count" or is_open

    def aggregator(self) -> Agg:
        """As the standard measure is aggregated: counts (NumRet, NumRel, NumQ) are summed, all others averaged."""
        return super().aggregator() if self.is_averaged else self.inner.aggregator()


RubricQrels = register(_RubricQrels)


# Measures of citations: is what an answer's sentences say in the documents that they cite?
#
# A label is the grade of a pair (sentence, cited document): full support (the scale's covering grade), partial support,
# none, or -2 where the document says the opposite. A pair that nobody labelled, or whose grade failed, is never a 0: it
# stays out, and `coverage` counts it. An answer that a run does not have scores 0.
_STRICT = ParamInfo(dtype=bool, default=False, desc="partial support earns nothing")
_RELAXED = ParamInfo(dtype=bool, default=False, desc="partial support counts as support")
_CITATIONS = ParamInfo(
    dtype=str,
    choices=["first", "all"],
    default="first",
    desc="a sentence has the label of its first citation, or the mean over those of its citations that have a label",
)


class Labelled(NamedTuple):
    """A sentence with the labels of its citations.

    Attributes:
        sentence: the sentence.
        labels: of each citation 1 (full support), ½ (partial), 0 (none) or -1 (its document says the opposite); None
            where it has no label.
        failed: whether a label that is missing failed, and was not just never given.
    """

    sentence: CitedSentence
    labels: Sequence[float | None]
    failed: bool

    @property
    def known(self) -> list[float]:
        """The labels that there are."""
        return [label for label in self.labels if label is not None]


class SupportMeasure(RubricMeasure):
    """A measure of what the citations of an answer support: the mean of some scores; a subclass has `scores`.

    Its ranking is an answer, called after its run, as records of cited answers have it.
    """

    # The best value of some answers: the greatest, of rates of mistakes the least.
    best_of: ClassVar[Callable[..., float]] = max
    # What a score counts, and a sentence without citations: of a mean 1, and 0 or 1; of F1 2 and 1.
    counts: ClassVar[tuple[int, int]] = 1, 0

    @property
    def citations(self) -> Literal["first", "citations"]:
        """Whether it needs the labels of first citations alone, or of all."""
        return "first" if self.value("citations") == "first" else "citations"

    @property
    def least(self) -> float:
        """The least label that supports."""
        return 0.5 if self.value("relaxed") else 1

    @abstractmethod
    def scores(self, one: Labelled) -> Iterable[float | None]:
        """The scores that a sentence adds, in [0, 1]; None for one that is not known."""

    def of_query(self, grades: QueryGrades, on_failed: OnFailed) -> Callable[[Sequence[str]], float | None]:
        """What gives the value of the answers that a ranking of the query names: 0 where nothing is counted, None where
        all that it lacks is what failed.

        It raises MeasureError where a ranked document is no answer with sentences and citations.
        """
        labelled = _labels(grades, on_failed)

        def value(doc_ids: Sequence[str]) -> float | None:
            other = next((doc_id for doc_id in doc_ids if doc_id not in grades.answers), None)
            if other is not None:
                raise MeasureError(
                    f"{self}: query {grades.query_id!r}: {other!r} is no answer with sentences and citations; grade "
                    "the citations of answers first (support)"
                )
            sentences = [labelled(one) for doc_id in doc_ids for one in grades.answers[doc_id]]
            scores = [score for one in sentences for score in self.scores(one) if score is not None]
            if not scores and any(one.failed for one in sentences):
                return None
            of_score, of_uncited = self.counts
            among = of_score * len(scores) + of_uncited * sum(not one.labels for one in sentences)
            return of_score * math.fsum(scores) / among if among else 0.0

        return value


def _labels(grades: QueryGrades, on_failed: OnFailed) -> Callable[[CitedSentence], Labelled]:
    """What labels sentences by the grades of the pairs (sentence, cited document)."""
    covers = 1 if grades.scale is None else grades.scale.covers
    partial = covers if grades.scale is None or grades.scale.partial is None else grades.scale.partial
    places, matrix = {item.item_id: place for place, item in enumerate(grades.items)}, grades.grades.tolist()
    lost = None if grades.failed is None else grades.failed.tolist()

    def labelled(sentence: CitedSentence) -> Labelled:
        labels, failed, place = list[float | None](), False, places.get(sentence.item_id)
        for doc_id in sentence.citations:
            row = None if place is None else grades.docs.get(doc_id)
            grade = -math.inf if row is None else matrix[row][place]
            if grade == -math.inf and row is not None and lost is not None and lost[row][place]:
                failed, grade = (failed, 0) if on_failed == "zero" else (True, grade)
            support = 1 if grade >= covers else 0.5 if grade >= partial else -1 if grade == CONTRADICTED else 0
            labels.append(None if grade == -math.inf else support)
        return Labelled(sentence, labels, failed)

    return labelled


class _OfSentences(SupportMeasure):
    """What precision and recall share: the scores of the sentences that have one."""

    SUPPORTED_PARAMS = {"citations": _CITATIONS, "strict": _STRICT}

    def scores(self, one: Labelled) -> Iterable[float | None]:
        """The mean credit of the citations that count."""
        asked = one.labels[:1] if self.value("citations") == "first" else one.labels
        least = 1 if self.value("strict") else 0
        known = [label if label >= least else 0.0 for label in asked if label is not None]
        return [math.fsum(known) / len(known) if known else None] if one.labels else []


class _SupportPrecision(_OfSentences):
    """How far the sentences that cite something are supported.

    SupportPrecision = sum of the scores of the sentences that have one / their number

    Range: 0 to 1; 0 where no sentence has a score. Full, partial and no support score 1, 0.5 and 0; with strict=True
    partial support earns 0. With citations="first" the label of the first citation counts, and a sentence whose first
    citation has none is out. With "all" it is the mean over the labels that there are.

    .. cite:: Thakur et al., Support Evaluation for the TREC 2024 RAG Track, SIGIR 2025
    """


class _SupportRecall(_OfSentences):
    """How far all sentences are supported.

    SupportRecall = sum of the scores / (sentences with a score + sentences without citations)

    Range: 0 to 1. The scores are those of SupportPrecision. Sentences that are out count nowhere.

    .. cite:: Thakur et al., Support Evaluation for the TREC 2024 RAG Track, SIGIR 2025
    """

    counts = 1, 1


class _CitationF1(_OfSentences):
    """The harmonic mean of SupportPrecision and SupportRecall, answer by answer.

    CitationF1 = 2 P R / (P + R)

    Range: 0 to 1; 0 where both are 0.

    .. cite:: the two of Thakur et al., SIGIR 2025
    """

    # 2 P R / (P + R) = 2 sum of the scores / (2 |J| + |U|).
    counts = 2, 1


class _SupportRate(SupportMeasure):
    """The share of the citations that support their sentence.

    SupportRate = supporting citations / citations with a label

    Range: 0 to 1; 0 without any. With relaxed=True partial support counts.

    .. cite:: Gupta et al., Overview of TREC 2024 Biomedical Generative Retrieval (BioGen)
    """

    SUPPORTED_PARAMS = {"relaxed": _RELAXED}

    def scores(self, one: Labelled) -> Iterable[float | None]:
        """Whether each labelled citation supports."""
        return [label >= self.least for label in one.known]


class _ContradictionRate(SupportMeasure):
    """The share of the citations whose document says the opposite of the sentence.

    ContradictionRate = contradicting citations / citations with a label

    Range: 0 to 1; 0 without any. Less is better. It needs grades of a prompt that knows contradiction (-2).

    .. cite:: Gupta et al., Overview of TREC 2024 Biomedical Generative Retrieval (BioGen)
    """

    best_of = min

    def of_query(self, grades: QueryGrades, on_failed: OnFailed) -> Callable[[Sequence[str]], float | None]:
        """As of every measure; refuses grades that know no contradiction, as the rate would be 0 for every run.

        Raises:
            MeasureError: the scale does not begin at -2.
        """
        scale = grades.scale
        if scale is not None and scale.lowest > CONTRADICTED:
            raise MeasureError(
                f"{self}: the grades are on the scale {scale}, which knows no contradiction (-2); grade with a prompt "
                "that does (SupportOrContradiction)"
            )
        return super().of_query(grades, on_failed)

    def scores(self, one: Labelled) -> Iterable[float | None]:
        """Whether each labelled citation contradicts."""
        return [label == -1 for label in one.known]


class _CitationCoverage(SupportMeasure):
    """The share of the sentences that one of their citations supports.

    CitationCoverage = sentences with a supporting citation / sentences

    Range: 0 to 1; 0 without any. With relaxed=True partial support counts. A sentence with citations of which none has
    a label is out, and so is one whose unlabelled ones could support it.

    .. cite:: Gupta et al., Overview of TREC 2024 Biomedical Generative Retrieval (BioGen)
    """

    SUPPORTED_PARAMS = {"relaxed": _RELAXED}

    def scores(self, one: Labelled) -> Iterable[float | None]:
        """Whether a citation supports the sentence."""
        is_supported = any(label >= self.least for label in one.known)
        return [is_supported if is_supported or None not in one.labels else None]


class _ALCERecall(SupportMeasure):
    """The share of the sentences that their documents together entail.

    ALCERecall = sentences that the documents which they cite entail together / sentences

    Range: 0 to 1; 0 without any. A sentence without citations counts 0. Of one citation its own label counts, of
    several the label that was given to all of them together; a sentence without that label is out. Full support is
    entailment, all else is not.

    .. cite:: Gao et al., Enabling Large Language Models to Generate Text with Citations (ALCE), EMNLP 2023
    """

    def scores(self, one: Labelled) -> Iterable[float | None]:
        """Whether the sentence is entailed."""
        return [_entailed(one)]


class _ALCEPrecision(SupportMeasure):
    """The share of the citations that their sentence needs.

    ALCEPrecision = citations that count / citations

    Range: 0 to 1; 0 without any. No citation counts where the documents together do not entail the sentence. Where they
    do, each counts, but one that does not entail it alone while the others do without it. Of three citations no label
    says what two of them entail: a citation that does not entail by itself is then out, and so are citations of
    sentences without a joined label.

    .. cite:: Gao et al., Enabling Large Language Models to Generate Text with Citations (ALCE), EMNLP 2023
    """

    def scores(self, one: Labelled) -> Iterable[float | None]:
        """Whether each citation counts."""
        entailed = _entailed(one)
        for label, other in zip(one.labels, one.labels[::-1], strict=True) if entailed is not None else ():
            if not entailed or len(one.labels) == 1 or label == 1:
                yield entailed
            elif len(one.labels) == 2 and label is not None and other is not None:
                yield other < 1


def _entailed(one: Labelled) -> bool | None:
    """Whether all cited documents together entail the sentence; None where no label says so."""
    # Labels of citations together are those of TREC's files: 2 is full support.
    if len(one.labels) > 1:
        return None if one.sentence.joined is None else one.sentence.joined >= 2
    return False if not one.labels else None if one.labels[0] is None else one.labels[0] == 1


SupportPrecision = register(_SupportPrecision)
SupportRecall = register(_SupportRecall)
CitationF1 = register(_CitationF1)
ContradictionRate = register(_ContradictionRate)
SupportRate = register(_SupportRate)
CitationCoverage = register(_CitationCoverage)
ALCERecall = register(_ALCERecall)
ALCEPrecision = register(_ALCEPrecision)


Measures: TypeAlias = str | Measure | Iterable[str | Measure]
"""One measure or several: objects of ir_measures, or text (`RubricCover(rel=4)@20`; several with blanks between).

`my.py:CoveredTwice@20` is a function of a file, see `measure_of`.
"""
# What stands between blanks, or between commas too, but not inside parentheses: `NuggetV(rel=4, strict=True)` is one.
_BY_BLANKS, _BY_COMMAS = (re.compile(rf"(?:\((?:[^()]|\([^()]*\))*\)|[^\s{one}])+") for one in ("", ","))
# A measure of a file of one's own: the file, the measure, its name.
_IN_FILE = re.compile(r"(?P<path>[^:]+\.py):(?P<measure>(?P<name>\w+).*)", re.DOTALL)


def parse_measures(measures: Measures) -> list[Measure]:
    """The measures, each once, in the order given.

    >>> parse_measures("NuggetV(rel=4, strict=True) nDCG@10")
    [NuggetV(rel=4,strict=True), nDCG@10]

    Raises:
        InputError: one is neither text nor a measure.
        MeasureError: a measure cannot be read, or there is none.
        UnknownNameError: a measure is not known; names near ones.
        PlugInError: it is a measure of another package that cannot be used.
    """
    given = [measures] if isinstance(measures, str | Measure) or not isinstance(measures, Iterable) else measures
    # With the level that was written, see `_with_level`.
    found: dict[tuple[Measure, Any], Measure] = {}
    for one in given:
        if not isinstance(one, str | Measure):
            problem = f"measures: {one!r:.60} is no measure; give names, as 'RubricCover@20', or objects of ir_measures"
            raise InputError(problem, settings=("measures",))
        for text in [one] if isinstance(one, Measure) else _BY_BLANKS.findall(one):
            if isinstance(text, str) and (in_file := _IN_FILE.fullmatch(text)) is not None:
                measure_in(in_file["path"], in_file["name"])
                text = in_file["measure"]
            try:
                measure = ir_measures.parse_measure(text)
                # Ours say themselves what is wrong.
                measure.validate_params() if isinstance(measure, RubricMeasure) else checked_measure(measure)
            except NameError:
                _refuse_other_spelling(str(text))
                name = str(text).split("(")[0].split("@")[0]
                # Why a measure of another package is not known.
                if (plug_in := plug_ins(_GROUP, "measure").get(name)) is not None:
                    _registered(plug_in, plug_in.load())
                raise UnknownNameError("measure", name, ir_measures.measures.registry) from None
            except (ValueError, AssertionError) as error:
                _refuse_other_spelling(str(text))
                if "problem parsing" in str(error):
                    text = f"{text}: is no measure; one is written NAME(key=value)@k without blanks"
                    raise MeasureNameError(f"{text}, as RubricCover(rel=4)@20 or RubricCover@20") from None
                raise MeasureNameError(f"{text}: {error}") from None
            found.setdefault((measure, measure.params.get("rel")), measure)
    if not found:
        raise MeasureNameError("name at least one measure")
    return list(found.values())


def _refuse_other_spelling(text: str) -> None:
    """Says how measures are written that come as trec_eval or papers call them, or with commas between them; and files.

    Raises:
        MeasureError: they do.
    """
    if not text.isidentifier() and os.path.isfile(text):  # noqa: PTH113 - for so much pathlib takes long to import
        raise MeasureNameError(f"{text} is a file, and no measure; runs stand before them (evaluate takes one run)")
    parts = _BY_COMMAS.findall(text)
    if len(parts) > 1:
        raise MeasureNameError(f"{text}: separate measures by blanks, not commas: {' '.join(parts)}")
    # As papers write it (V_strict), and nuggetizer's program (strict_vital_score).
    of = re.fullmatch("(?:strict_)?(?:([VWA])|([va])(?:ital|ll)_score)(?:_?strict)?", text)
    known: list[Any] = [f"Nugget{(of[1] or of[2]).upper()}" + "(strict=True)" * ("strict" in text)] if of else []
    with contextlib.suppress(ValueError):
        known = known or ([] if text in ir_measures.measures.registry else ir_measures.parse_trec_measure(text))
    if known:
        raise MeasureNameError(f"{text} is another program's name; here it is {' '.join(map(str, known))}")


def column_named(name: str, columns: Sequence[str], hint: str = "") -> str:
    """The column of a leaderboard that a name means.

    That is the column itself, or the same measure in other quotes or spaces, or the same one with the levels that the
    scale said: `NuggetA` means `NuggetA(rel=2,partial_rel=1)`.

    `nDCG@10` means the column of `RubricQrels(measure='nDCG@10')`, too, as this is what scoring makes of it, and the
    other way round: over labels of assessors the column is `nDCG@10`.

    Raises:
        UnknownNameError: there is none; names near ones.
    """
    found = columns_named(name, columns)
    if len(found) == 1:
        return found[0]
    raise UnknownNameError("measure", name, found or columns, hint=hint)


def columns_named(name: str, columns: Sequence[str]) -> list[str]:
    """The columns that a name may mean, see `column_named`: one, several that differ in their levels, or none."""
    asked = _measure_named(name)
    if name in columns or asked is None:
        return [name] if name in columns else []
    found = {column: measure for column in columns if (measure := _measure_named(column)) is not None}
    unsaid = {"rel", "partial_rel"} - _said(asked)[1].keys()
    return (
        [column for column, one in found.items() if str(one) == str(asked)]
        or [column for column, one in found.items() if _said(one) == _said(asked)]
        or [column for column, one in found.items() if _said(one, unsaid) == _said(asked)]
    )


def _said(measure: Measure, but: Collection[str] = ()) -> tuple[str, dict[str, Any]]:
    """Name and parameters of a measure; of standard ones as they are over grades, their levels in their names."""
    (of,) = rubric_measures_of([measure])
    return of.NAME, {key: value for key, value in of.params.items() if key not in but}


def _measure_named(name: str) -> Measure | None:
    try:
        return ir_measures.parse_measure(name)
    except (NameError, ValueError, AssertionError):
        return None


def kind_of(name: str) -> Measure | None:
    """The measure that a column is of, whatever its parameters; None where it is not known."""
    measure: Measure | None = ir_measures.measures.registry.get(re.split("[(@]", name)[0])
    return measure


def is_standard(name: str) -> bool:
    """Whether a column of a leaderboard is of a measure that reads judgments, as `nDCG@10` does, and no grades."""
    measure = kind_of(name)
    return measure is not None and not is_supported(measure)


def inner_names(name: str) -> list[str]:
    """The measure inside a `RubricQrels`, whatever it makes of grades; none of other columns."""
    measure = _measure_named(name)
    return [str(measure.value("measure"))] if isinstance(measure, type(RubricQrels)) else []


def rubric_measures_of(measures: Iterable[Measure]) -> list[Measure]:
    """The measures with standard ones wrapped, `nDCG@10` as `RubricQrels(measure='nDCG@10')`; see `of_wrapped`."""
    wrapped = (one if is_supported(one) else RubricQrels(measure=_with_level(one)) for one in measures)
    return list({(one, one.params.get("rel")): one for one in wrapped}.values())


def _with_level(measure: Measure) -> str:
    """The measure's name with the level that was written: `AP(rel=1)` is `AP` to ir_measures, and no scale's `AP`."""
    of, text, level = measure.NAME, str(measure), measure.params.get("rel")
    if level is None or level != measure.SUPPORTED_PARAMS["rel"].default:
        return text
    more = text.removeprefix(of)
    return f"{of}(rel={level},{more[1:]}" if more.startswith("(") else f"{of}(rel={level}){more}"


def measure_names(measures: Sequence[Measure], asked: Sequence[Measure] | None = None) -> list[str]:
    """The names of a leaderboard's columns.

    Args:
        measures: with all levels said.
        asked: the measures that were asked for, where their levels are those of the scale.

    Raises:
        MeasureError: there is none, or one twice.
    """
    names = [str(measure) for measure in measures]
    if not names:
        raise MeasureError("name at least one measure")
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        written = {str(one) for one, name in zip(asked or measures, names, strict=True) if name == twice}
        raise MeasureError(f"measure {twice} is asked for twice, as {' and '.join(sorted(written))}: drop one")
    return names


def _ours() -> dict[str, Any]:
    return {name: one for name, one in ir_measures.measures.registry.items() if isinstance(one, RubricMeasure)}


def measure_table() -> Any:
    """The measures of this package and of plug-ins, a row each."""
    from rubric_measures.base.tables import Table, columns

    rows = []
    for name, one in _ours().items():
        parameters = getattr(one, "SUPPORTED_PARAMS", {})
        shown = ", ".join(parameter for parameter in parameters if parameter != "cutoff")
        said = (inspect.getdoc(one) or "").partition("\n")[0]
        rows.append([f"{name}@k" if "cutoff" in parameters else name, shown, said])
    return Table(columns(["measure", "parameters", "what it is"], left=3), rows)


def described(name: str) -> str:
    """What a measure is, with its formula and source.

    Raises:
        UnknownNameError: there is no such measure of this package.
    """
    known, plain = _ours(), re.split("[(@]", name)[0]
    if plain not in known:
        raise UnknownNameError("measure", name, known)
    return f"{name}\n\n{inspect.getdoc(known[plain])}\n"
