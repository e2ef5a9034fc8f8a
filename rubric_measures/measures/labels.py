"""Measures over the labels that grades imply, and those that go to other programs.

The common measures over relevance labels, as trec_eval, gdeval and cwl_eval define them, up to any label.

Measures that programs behind ir_measures compute: their errors as one line, and the names of what they cannot do.

Rubric-Qrels: any standard measure over the relevance labels that grades imply.
"""

from __future__ import annotations

import contextlib
import functools
import math
import os
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from itertools import compress
from typing import Any

import ir_measures
from ir_measures import providers
from ir_measures.measures.base import _NOT_PROVIDED, Agg, MeanAgg, Measure, ParamInfo
from ir_measures.util import Metric, ScoredDoc

from rubric_measures.base.errors import MeasureError, origin_of
from rubric_measures.measures.grades import Label
from rubric_measures.measures.intent_aware import INTENT_AWARE, bits
from rubric_measures.measures.measure import (
    CUTOFF,
    BoundsScorer,
    OfIrMeasures,
    QueryContext,
    RankedDocs,
    RankingScorer,
    RubricMeasure,
    min_grade,
    register,
)
from rubric_measures.types.entities import ScoredIds
from rubric_measures.types.scales import Scale

LabelScorer = Callable[[RankedDocs], float]


def _ndcg(labels: Mapping[str, float], ideal_labels: Mapping[str, float], cutoff: int | None, exp: bool) -> LabelScorer:
    """nDCG = sum of gain / log2(rank + 1), over that of the labels in descending order; labels below 0 count as 0.

    The gain is the label, or 2^label - 1 where it is exponential.

    Source: Järvelin and Kekäläinen, TOIS 2002, in trec_eval's form (`ndcg`, `ndcg_cut`); Burges et al., ICML 2005.
    """
    gains = {doc_id: 2.0**label - 1 if exp else label for doc_id, label in labels.items() if label > 0}
    best = sorted((label for label in ideal_labels.values() if label > 0), reverse=True)[:cutoff]
    ideal = sum((2.0**label - 1 if exp else label) / math.log2(rank + 1) for rank, label in enumerate(best, 1))

    def score(ranked: RankedDocs) -> float:
        if not gains:
            return 0.0
        top = ranked.within(cutoff)
        total = 0.0
        for rank, gain in zip(ranked.ranks[:top], map(gains.get, ranked.judged[:top]), strict=True):
            if gain is not None:
                total += gain / math.log2(rank + 1)
        return _over(total, ideal)

    return score


def _over(value: float, best: float) -> float:
    """A value over the best one; where that is 0, any value is the best."""
    return value / best if best else float(value > 0)


def _err(labels: Mapping[str, float], cutoff: int | None, highest: int) -> LabelScorer:
    """ERR = sum over ranks of R / rank times the product of (1 - R) above, with R = (2^label - 1) / 2^highest.

    Labels below 0 count as 0. Source: Chapelle et al., CIKM 2009; gdeval has the highest label 4 always.
    """
    stops = {doc_id: (2.0**label - 1) / 2.0**highest for doc_id, label in labels.items() if label > 0}

    def score(ranked: RankedDocs) -> float:
        top = ranked.within(cutoff)
        total, goes_on = 0.0, 1.0
        for rank, stop in zip(ranked.ranks[:top], map(stops.get, ranked.judged[:top]), strict=True):
            if stop is not None:
                total += goes_on * stop / rank
                goes_on *= 1 - stop
        return total

    return score


def _rank_biased_precision(gains: Mapping[str, float], cutoff: int | None, persistence: float) -> LabelScorer:
    """RBP = (1 - p) sum of gain * p^(rank - 1), with gains in [0, 1].

    Source: Moffat and Zobel, TOIS 2008.
    """

    def score(ranked: RankedDocs) -> float:
        top = ranked.within(cutoff)
        placed = zip(ranked.ranks[:top], ranked.judged[:top], strict=True)
        return (1 - persistence) * sum(gains.get(doc_id, 0.0) * persistence ** (rank - 1) for rank, doc_id in placed)

    return score


def _average_precision(relevant: Set[str], number: int, cutoff: int | None) -> LabelScorer:
    """AP = sum over the ranks of relevant documents of the precision there, over the number of relevant documents."""

    def found_of(ranked: RankedDocs) -> float:
        total = 0.0
        for found, rank in enumerate(ranked.ranks_of(relevant, cutoff), 1):
            total += found / rank
        return total

    # Where grades failed, the lowest that they may be seldom makes other documents relevant.
    key = "AP", relevant, cutoff
    return lambda ranked: _over(ranked.kept(key, lambda: found_of(ranked)), number)


def _reciprocal_rank(relevant: Set[str], cutoff: int | None) -> LabelScorer:
    """RR = 1 / rank of the first relevant document; 0 when there is none (within the cutoff)."""

    def score(ranked: RankedDocs) -> float:
        first = next(compress(ranked.ranks, map(relevant.__contains__, ranked.judged)), None)
        return 0.0 if first is None or (cutoff is not None and first > cutoff) else 1 / first

    return score


def _found(relevant: Set[str], cutoff: int, ranked: RankedDocs) -> int:
    return len(ranked.ranks_of(relevant, cutoff))


def _precision(relevant: Set[str], cutoff: int) -> LabelScorer:
    """P@k = relevant documents among the first k, over k (also when the ranking is shorter)."""
    return lambda ranked: _found(relevant, cutoff, ranked) / cutoff


def _recall(relevant: Set[str], number: int, cutoff: int) -> LabelScorer:
    """R@k = relevant documents among the first k, over the number of relevant documents; 0 when there are none."""
    return lambda ranked: _over(_found(relevant, cutoff, ranked), number)


def _success(relevant: Set[str], cutoff: int) -> LabelScorer:
    """Success@k = 1 when a relevant document is among the first k, else 0."""
    return lambda ranked: float(_found(relevant, cutoff, ranked) > 0)


def label_scorer(
    measure: Measure,
    labels: Mapping[str, float],
    highest: int | None = None,
    ideal_labels: Mapping[str, float] | None = None,
) -> LabelScorer | None:
    """The scorer of one query for a standard measure, or None where ir_measures has to compute it.

    Args:
        measure: a measure of ir_measures.
        labels: doc_id -> relevance label of the query.
        highest: the highest label of their scale, where it is known: ERR and graded RBP are normalised by it.
        ideal_labels: what measures that are normalised by the best ranking are normalised by; the labels by default.

    Returns:
        a function from a ranking to the value.
    """
    cutoff = measure.params.get("cutoff")
    ideal = labels if ideal_labels is None else ideal_labels
    given = {name for name, value in measure.params.items() if value != measure.SUPPORTED_PARAMS[name].default}
    name = measure.NAME
    if name == "nDCG" and given <= {"cutoff", "dcg"}:
        return _ndcg(labels, ideal, cutoff, measure["dcg"] == "exp-log2")
    if name == "ERR" and highest is not None:
        return _err(labels, cutoff, highest)
    if name == "RBP" and (highest is not None or "rel" in given):
        if "rel" in given:
            gains = {doc_id: 1.0 for doc_id, label in labels.items() if label >= measure["rel"]}
        else:
            gains = {doc_id: label / (highest or 1) for doc_id, label in labels.items() if label > 0}
        return _rank_biased_precision(gains, cutoff, measure["p"])
    if name not in ("AP", "RR", "P", "R", "Success") or not given <= {"cutoff", "rel"}:
        return None
    rel = measure["rel"]
    relevant = frozenset([doc_id for doc_id, label in labels.items() if label >= rel])
    number = len(relevant) if ideal is labels else len([label for label in ideal.values() if label >= rel])
    if name == "AP":
        return _average_precision(relevant, number, cutoff)
    if name == "RR":
        return _reciprocal_rank(relevant, cutoff)
    if cutoff is None:
        return None
    if name == "R":
        return _recall(relevant, number, cutoff)
    return {"P": _precision, "Success": _success}[name](relevant, cutoff)


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


def compute(measures: Sequence[Measure], qrels: Any, run: Sequence[Any], provider: str | None = None) -> list[Metric]:
    """The values of measures over plain judgments, computed by a program behind ir_measures.

    Args:
        measures: the measures.
        qrels: the judgments, more than one time readable.
        run: the scored documents.
        provider: the name of one of ir_measures' providers; None leaves the choice to ir_measures.

    Raises:
        MeasureError: one of the measures cannot be computed; names it alone. A label has a fraction.
    """
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

    def levels(self, scale: Scale | None) -> dict[str, int]:
        """As of every measure; measures that read graded labels need no level."""
        if self.value("label") != "count" and not _needs_level(self.inner()):
            return {}
        return super().levels(scale)

    def said_levels(self) -> list[int]:
        """As of every measure; where the label is a grade, also the level inside the standard measure."""
        inner = self.inner().params.get("rel")
        return super().said_levels() + ([inner] if self.value("label") != "count" and isinstance(inner, int) else [])

    def check(self) -> None:
        """The standard measure is one, and no parameter is given twice."""
        self.inner()

    def inner(self) -> Measure:
        """The standard measure with this measure's cutoff and relevance level put in.

        Raises:
            MeasureError: the measure is unknown, is one over items, or a parameter is given twice.
        """
        return _standard(self.params["measure"], self.value("cutoff"), self.value("label"), self.params.get("rel"))

    def aggregator(self) -> Agg:
        """As the standard measure is aggregated: counts (NumRet, NumRel, NumQ) are summed, all others averaged."""
        aggregator = self.inner().aggregator()
        return super().aggregator() if isinstance(aggregator, MeanAgg) else aggregator

    @property
    def depth(self) -> int | None:
        """The cutoff, here or in the standard measure; of single items failed grades may be anywhere."""
        return None if self.value("label") == "item" else self._cutoff

    @property
    def needs(self) -> int | None:
        """The grades up to the cutoff."""
        return self._cutoff

    @property
    def _cutoff(self) -> int | None:
        cutoff = self.inner().params.get("cutoff")
        return cutoff if isinstance(cutoff, int) else None

    @property
    def reads_items(self) -> bool:
        """Whether items have labels of their own."""
        return bool(self.value("label") == "item")

    @property
    def skips_unjudged(self) -> bool:
        """Whether the standard measure does."""
        return bool(self.inner().params.get("judged_only"))

    def prepare(self, query: QueryContext) -> RankingScorer:
        """The standard measure over the labels of the query: by a formula of ours, else by a program's."""
        inner = self.inner()
        label, rel = self.value("label"), self.value("rel")
        if label == "item":
            return self._mean_over_items(query, inner)
        labels = query.labels(label, rel)
        highest = query.grades.scale.highest if label == "max" and query.grades.scale is not None else None
        scorer = label_scorer(inner, labels, highest)
        if scorer is not None:
            return scorer
        if inner.NAME == "NumRel":
            # The program behind ir_measures' own counts from label 1 only. As there, 0 for what a run does not rank.
            count = float(sum(label >= inner["rel"] for label in labels.values()))
            return lambda ranked: count if ranked.doc_ids else 0.0
        return _delegated(inner, self, query.query_id, labels, _by_rank)

    def _mean_over_items(self, query: QueryContext, inner: Measure) -> RankingScorer:
        """The mean over the items of the standard measure by the grades of one item.

        For an item the passages leave the ranking whose grade of it failed, where failures count as expected.
        """
        of_item: dict[int, dict[str, float]] = {}
        for doc_id, levels in query.grades.levels.items():
            for grade, mask in levels.items():
                for bit in bits(mask):
                    of_item.setdefault(bit, {})[doc_id] = grade
        scale = query.grades.scale
        scorers = []
        level = inner.params.get("rel")
        for bit, labels in sorted(of_item.items()):
            best = max(labels.values())
            if best > 0 if level is None else best >= level:
                scorer = label_scorer(inner, labels, None if scale is None else scale.highest)
                if scorer is None:
                    raise MeasureError(
                        f"{self}: nDCG, AP, RR, P, R and Success are averaged over items, and where the scale is known "
                        "ERR and RBP; name one of these"
                    )
                lost = query.grades.failed.items() if query.is_expecting else ()
                scorers.append((scorer, frozenset(doc_id for doc_id, mask in lost if mask >> bit & 1)))

        def score(ranked: RankedDocs) -> float:
            values = []
            for scorer, lost in scorers:
                hit = lost and not lost.isdisjoint(ranked.doc_ids)
                kept = query.ranked([one for one in ranked.doc_ids if one not in lost]) if hit else ranked
                values.append(scorer(kept))
            # fsum: the order of the items must not show, not even in the last digit.
            return math.fsum(values) / len(values) if values else 0.0

        return score

    def best(self, query: QueryContext, score: RankingScorer) -> float | None:
        """The value of the passages by descending label; over items the best ranking is not known."""
        label = self.value("label")
        return None if label == "item" else score(query.by_label(label, self.value("rel")))

    def bounds(self, lowest: QueryContext, highest: QueryContext) -> BoundsScorer | None:
        """By the lowest labels, normalised by the highest, and the other way round; of measures that we compute.

        They are not known over items.
        """
        label, rel = self.value("label"), self.value("rel")
        if label == "item" or (label == "max" and lowest.grades.scale is None):
            return None
        return _label_bounds(self.inner(), lowest, highest, label, rel)


def _by_rank(ranking: Sequence[str]) -> list[tuple[str, float]]:
    # Scores that say the rank: every provider then sees the order of the one sort, without ties. All above 0, which is
    # what Compat takes documents for that are not ranked.
    top = len(ranking)
    return [(doc_id, float(top - place)) for place, doc_id in enumerate(ranking)]


def _as_given(ranking: Sequence[str]) -> Sequence[tuple[str, float]]:
    # Programs sort in several ways: by single or double precision, ties by document or by place.
    return ranking.given if isinstance(ranking, ScoredIds) else _by_rank(ranking)


def _delegated(
    inner: Measure,
    shown: Measure,
    query_id: str,
    labels: Mapping[str, float],
    scored: Callable[[Sequence[str]], Sequence[tuple[str, float]]],
) -> RankingScorer:
    """The scorer of a standard measure by the program that ir_measures has for it.

    Args:
        inner: the measure.
        shown: what errors call it.
        query_id: the query.
        labels: doc_id -> label.
        scored: gives the scores of a ranking's documents.
    """
    qrels = [ir_measures.Qrel(query_id, doc_id, label) for doc_id, label in labels.items()]
    if not qrels:
        return lambda ranked: float(inner.DEFAULT)
    refuse_real(qrels, shown)
    with delegated([inner], shown):
        evaluator = other_providers().evaluator([inner], qrels)

    def score(ranked: RankedDocs) -> float:
        ranking: Sequence[str] = ranked.doc_ids
        if not ranking:
            return float(inner.DEFAULT)
        run = [ScoredDoc(query_id, doc_id, score) for doc_id, score in scored(ranking)]
        with delegated([inner], shown):
            value = float(evaluator.calc_aggregate(run)[inner])
        if math.isnan(value):
            raise MeasureError(f"{shown} has no value for query {query_id!r}; leave the measure or the query out")
        return value

    return score


class StandardMeasure(OfIrMeasures):
    """A measure of ir_measures over labels that stand for themselves, computed by the program behind it.

    Of a query with labels that have fractions, which no such program reads, it is computed here.
    """

    def __init__(self, measure: Measure) -> None:
        super().__init__(checked_measure(measure))

    def prepare(self, query: QueryContext) -> RankingScorer:
        """The value of a ranking by the labels of the query.

        Raises:
            MeasureError: there are grades of items, which it would silently collapse.
        """
        if not query.grades.is_of_labels:
            raise MeasureError(
                f"{self.measure} is no measure over rubric items; write RubricQrels(measure={str(self.measure)!r})"
            )
        labels = query.labels()
        if any(type(label) is not int for label in labels.values()):
            scale = query.grades.scale
            scorer = label_scorer(self.measure, labels, None if scale is None else scale.highest)
            if scorer is not None:
                return scorer
        return _delegated(self.measure, self.measure, query.query_id, labels, _as_given)

    def best(self, query: QueryContext, score: RankingScorer) -> float | None:
        """The value of the passages by descending label."""
        return score(query.by_label())

    def bounds(self, lowest: QueryContext, highest: QueryContext) -> BoundsScorer | None:
        """As of `RubricQrels`."""
        return None if lowest.grades.scale is None else _label_bounds(self.measure, lowest, highest, "max", None)


def _label_bounds(
    measure: Measure, lowest: QueryContext, highest: QueryContext, label: Label, rel: int | None
) -> BoundsScorer | None:
    low, high = lowest.labels(label, rel), highest.labels(label, rel)
    scale = lowest.grades.scale
    top = scale.highest if label == "max" and scale is not None else None
    # All measures there rise with every label of the ranking: only what they are normalised by stands against it.
    least, most = label_scorer(measure, low, top, high), label_scorer(measure, high, top, low)
    if least is None or most is None:
        return None
    of_least, of_most = least, most

    def bounds(of_lowest: RankedDocs, of_highest: RankedDocs) -> tuple[float, float]:
        return of_least(of_lowest), min(of_most(of_highest), 1.0)

    return bounds


def _needs_level(measure: Measure) -> bool:
    """Whether a standard measure reads labels as relevant or not, and nobody said from which label on."""
    info = measure.SUPPORTED_PARAMS.get("rel")
    return info is not None and info.default is not _NOT_PROVIDED and "rel" not in measure.params


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
