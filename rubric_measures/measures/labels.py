"""Rubric-Qrels, and measures that programs behind ir_measures compute: their errors, and what they cannot do."""

from __future__ import annotations

import contextlib
import functools
import os
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import ir_measures
from ir_measures import providers
from ir_measures.measures.base import _NOT_PROVIDED, Agg, MeanAgg, Measure, ParamInfo
from ir_measures.util import Metric

from rubric_measures.base.errors import MeasureError, origin_of
from rubric_measures.measures.measure import CUTOFF, INTENT_AWARE, RubricMeasure, min_grade, register

_GDEVAL_FAILED = "the program behind it (gdeval) failed; it knows no label above 4 and few forms of query ids"
_PACKAGE = __name__.partition(".")[0]
# What ir_measures calls the provider of this package.
PROVIDER = _PACKAGE


def other_providers() -> providers.FallbackProvider:
    """ir_measures' pipeline without this package's provider."""
    return providers.FallbackProvider([one for one in ir_measures.DefaultPipeline.providers if one.NAME != PROVIDER])


def parameters_of(measure: Measure) -> str:
    """The parameters that a measure knows, for an error: those that it needs are marked."""
    known = [f"{name} (needed)" if info.required else name for name, info in measure.SUPPORTED_PARAMS.items()]
    return f"{measure.NAME} has the parameters {', '.join(known)}" if known else f"{measure.NAME} has no parameters"


def checked_measure(measure: Measure) -> Measure:
    """The measure, when its parameters are there and have the right type.

    Raises:
        MeasureError: a parameter is unknown, missing, or of the wrong type; names those that there are.
    """
    try:
        measure.validate_params()
    except AssertionError as error:
        needed = [name for name, info in measure.SUPPORTED_PARAMS.items() if info.required]
        missing = next((name for name in needed if measure[name] is _NOT_PROVIDED), None)
        if missing is None:
            raise MeasureError(f"{error}; {parameters_of(measure)}") from None
        example = f"{measure.NAME}@10" if missing == measure.AT_PARAM else f"{measure.NAME}({missing}=…)"
        raise MeasureError(f"needs the parameter {missing}, as in {example}; {parameters_of(measure)}") from None
    if measure.params.get("cutoff", 1) < 1:
        raise MeasureError("a cutoff is 1 or more")
    return measure


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
        with _without_stderr() if any(map(_is_of_gdeval, measures)) else contextlib.nullcontext():
            yield
    except (MeasureError, MemoryError, OSError):
        raise
    except subprocess.CalledProcessError:
        raise MeasureError(f"{name}: {_GDEVAL_FAILED}{_way_out(measures, name)}", settings=("scale",)) from None
    except Exception as error:
        if origin_of(error) == _PACKAGE:
            raise
        said = " ".join(str(error).split())
        if isinstance(error, ValueError) and said.startswith("Unsupported measures"):
            # It goes on to say which program, if installed, could compute it.
            hint = said.partition("}.")[2].strip().replace(": - ", ": ").replace(" - ", ", ")
            why = f"no program here computes it with these parameters; {hint or known}"
            raise MeasureError(f"{name}: {why}{_way_out(measures, name)}") from None
        if isinstance(error, RuntimeError) and "is not available" in said:
            raise MeasureError(f"{name}: {said}") from None
        why = f"{type(error).__name__}: {said}" if said else type(error).__name__
        raise MeasureError(
            f"{name}: the program behind it cannot compute this from these judgments and this ranking ({why[:200]}); "
            f"give other parameters ({known}) or leave it out"
        ) from None


def _way_out(measures: Iterable[Measure], shown: str) -> str:
    """How what this package computes itself on a scale that is known can be had; empty for other measures."""
    own = next((one for one in measures if one.NAME == "RBP" or _is_of_gdeval(one)), None)
    if own is None:
        return ""
    asked = "it" if shown.startswith("RubricQrels") else f"RubricQrels(measure={str(own)!r})"
    return f"; {asked} is computed here where the scale of the labels is said (such as 0-5:4)"


def _is_of_gdeval(measure: Measure) -> bool:
    return bool(measure.NAME == "ERR" or measure.params.get("dcg") == "exp-log2")


@contextlib.contextmanager
def _without_stderr() -> Iterator[None]:
    """Keeps to itself what a program that is started meanwhile says about temporary files that nobody knows."""
    kept = os.dup(2)
    with open(os.devnull, "wb") as nothing:
        os.dup2(nothing.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def compute(measures: Sequence[Measure], qrels: Any, run: Any, provider: str | None = None) -> list[Metric]:
    """The values of measures over plain judgments, computed by a program behind ir_measures.

    Args:
        measures: the measures.
        qrels: the judgments, more than one time readable; of documents also query_id -> document -> whole label.
        run: the scored documents, also query_id -> document -> score.
        provider: the name of one of ir_measures' providers; None leaves the choice to ir_measures.

    Raises:
        MeasureError: one of the measures cannot be computed; names it alone. A label has a fraction.
    """
    if not isinstance(qrels, dict):
        with delegated(measures):
            refuse_real(qrels, " ".join(map(str, measures)))
    calculator = ir_measures if provider is None else ir_measures.providers.registry[provider]
    for measure in measures if provider is not None else ():
        # Some would ignore a parameter that they do not know, and give another measure's number.
        if not calculator.supports(measure):
            raise MeasureError(
                f"{measure}: the provider {provider} does not compute it; leave it to ir_measures",
                settings=("provider",),
            )
    if provider == "pyndeval":
        # Of several levels or alphas in one call all but one get an empty run, and zeros.
        found: list[Metric] = []
        for measure in measures:
            with delegated([measure]):
                found += calculator.iter_calc([measure], qrels, run)
        return found
    try:
        with delegated(measures):
            return list(calculator.iter_calc(measures, qrels, run))
    except MeasureError:
        for measure in measures if len(measures) > 1 else ():
            with delegated([measure]):
                list(calculator.iter_calc([measure], qrels, run))
        raise


class _RubricQrels(RubricMeasure):
    """Any measure of ir_measures over the labels that the grades imply (Rubric-Qrels, EXAM-Qrels).

    label="max": label(p) = max over r of grade(p, r), and 0 where that is below rel; label="count": the number of
    items with grade >= rel. Passages without grades are unjudged. A measure with a relevance level takes `rel` as its
    own for label="max" (write it inside the name, measure="P(rel=2)@20", to set it yourself, as for "count").

    label="item": intent-aware, with graded gains. Each item's grades are labels of their own, and the value is the mean
    over the items of which some passage has a grade above 0, or of `rel` where the standard measure has a level. For
    nDCG, ERR, RBP, AP, RR, P, R and Success.

    .. cite:: Farzi and Dietz, EXAM++, LLM4Eval 2024, section 4.3; Dietz, SIGIR 2024; over items Agrawal et al., WSDM
        2009, section 4
    """

    PRETTY_NAME = "Rubric-Qrels"
    SHORT_DESC = "A standard measure over relevance labels that are derived from the grades of the passages."
    SUPPORTED_PARAMS = {
        "measure": ParamInfo(dtype=str, required=True, desc="the standard measure, such as nDCG@10 or AP"),
        "label": ParamInfo(
            dtype=str, choices=["max", "count", "item"], default="max", desc="how item grades become a label"
        ),
        "rel": min_grade("relevant (max), or as covering an item (count)"),
        "cutoff": CUTOFF,
    }

    # The standard measure with this measure's cutoff and relevance level put in.
    inner: Measure

    def validate_params(self) -> None:
        """As of every measure; the standard measure is one, and no parameter is given twice.

        Raises:
            MeasureError: also where the measure is unknown, or is one over items.
        """
        if self.validated:
            return
        super().validate_params()
        label, rel = self.params.get("label", "max"), self.params.get("rel")
        self.inner = _standard(self.params["measure"], self.params.get("cutoff"), label, rel)
        # Whether it reads labels as relevant or not, and nobody said from which label on.
        info = self.inner.SUPPORTED_PARAMS.get("rel")
        is_open = info is not None and info.default is not _NOT_PROVIDED and "rel" not in self.inner.params
        self.needs_levels = label == "count" or is_open

    def aggregator(self) -> Agg:
        """As the standard measure is aggregated: counts (NumRet, NumRel, NumQ) are summed, all others averaged."""
        aggregator = self.inner.aggregator()
        return super().aggregator() if isinstance(aggregator, MeanAgg) else aggregator


@functools.lru_cache(maxsize=4096)
def _standard(name: str, cutoff: int | None, label: str, given: int | None) -> Measure:
    """The measure inside a RubricQrels; every query asks for it, and parsing takes longer than scoring."""
    try:
        inner = ir_measures.parse_measure(name)
    except (NameError, ValueError) as error:
        raise MeasureError(f"RubricQrels: measure={name!r}: {error}") from None
    if isinstance(inner, RubricMeasure) or inner.NAME in INTENT_AWARE:
        raise MeasureError(f"RubricQrels: {name} reads items, not labels; use it by itself")
    if cutoff is not None:
        if "cutoff" not in inner.SUPPORTED_PARAMS:
            raise MeasureError(f"RubricQrels: {name} has no cutoff")
        if inner.params.get("cutoff", cutoff) != cutoff:
            raise MeasureError(f"RubricQrels: {name} and @{cutoff} are two cutoffs; give one")
        inner = inner(cutoff=cutoff)
    if label != "count" and "rel" in inner.SUPPORTED_PARAMS:
        if given is not None and inner.params.get("rel", given) != given:
            raise MeasureError(f"RubricQrels: {name} and rel={given} are two levels; give one")
        if inner.NAME == "NumRet" and given is not None and "rel" not in inner.params:
            # Without a level it counts all documents, and a name does not tell the usual level from none.
            raise MeasureError(
                f'RubricQrels: {name} counts all documents; for those of a level say "{name}(rel={given})"'
            )
        if "rel" not in inner.params and given is not None:
            inner = inner(rel=given)
    try:
        return checked_measure(inner)
    except MeasureError as error:
        raise MeasureError(f"RubricQrels: measure={name!r}: {error}") from None


RubricQrels = register(_RubricQrels)
