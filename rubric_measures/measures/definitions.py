"""The measures as descriptions: names, parameters with defaults, citations; `plan` and `provider` compute them."""

from __future__ import annotations

import functools
from typing import Any

import ir_measures
from ir_measures.measures.base import _NOT_PROVIDED, Agg, Measure, ParamInfo

from rubric_measures.base.errors import MeasureError
from rubric_measures.measures.delegated import checked_measure

__all__ = ["NuggetA", "NuggetV", "NuggetW", "RubricCover", "RubricQrels", "WeightedCover", "nRubricCover"]

_CUTOFF = ParamInfo(dtype=int, required=False, desc="ranking cutoff threshold; without it the whole ranking counts")
_JUDGED_ONLY = ParamInfo(dtype=bool, default=False, desc="discard passages that nobody graded before the cutoff")


def _rel(default: int, what: str) -> ParamInfo:
    return ParamInfo(dtype=int, default=default, desc=f"minimum grade (inclusive) that counts as {what}")


class RubricMeasure(Measure):  # type: ignore[misc]
    """A measure of this package: checked when it is made, printed canonically.

    Two measures are equal exactly when their canonical text is: parameters in the order of `SUPPORTED_PARAMS`,
    defaults left out.
    """

    __name__: str

    def __init__(self, **params: Any) -> None:
        self.validated = False
        super().__init__(**{name: value for name, value in params.items() if value is not None})
        self.validate_params()

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
                raise MeasureError(f"{self.__name__} has no parameter {name!r}; it has: {known}")
            # bool is an int to Python, but rel=True is a slip.
            wrong_type = not isinstance(value, info.dtype) or (info.dtype is int and isinstance(value, bool))
            if wrong_type or (info.choices is not _NOT_PROVIDED and value not in info.choices):
                expected = (
                    info.dtype.__name__ if info.choices is _NOT_PROVIDED else " or ".join(map(repr, info.choices))
                )
                raise MeasureError(f"{self.__name__}: {name}={value!r}; expected {expected}")
        if self.params.get("cutoff", 1) < 1:
            raise MeasureError(f"{self.__name__}: cutoff={self.params['cutoff']}; expected 1 or more")
        for name, info in self.SUPPORTED_PARAMS.items():
            if info.required and name not in self.params:
                raise MeasureError(f"{self.__name__} needs the parameter {name}")
        self.check()
        self.validated = True

    def check(self) -> None:
        """What a measure demands beyond the types of its parameters."""

    def value(self, name: str) -> Any:
        """The parameter's value, its default, or None."""
        value = self[name]
        return None if value is _NOT_PROVIDED else value

    def __repr__(self) -> str:
        shown = ",".join(
            f"{name}={self.params[name]!r}"
            for name, info in self.SUPPORTED_PARAMS.items()
            if name in self.params and name != self.AT_PARAM and self.params[name] != info.default
        )
        text = f"{self.__name__}({shown})" if shown else self.__name__
        return f"{text}@{self.params[self.AT_PARAM]}" if self.AT_PARAM in self.params else text


class _RubricCover(RubricMeasure):
    """The share of the query's rubric items that some passage among the top k covers.

    RubricCover(rel)@k = |{r in R_q : some p among the top k has grade(p, r) >= rel}| / |R_q|, in [0, 1]; R_q is the
    complete test bank of the query.

    .. cite:: Dietz, A Workbench for Autograding Retrieve/Generate Systems, SIGIR 2024 (as EXAM-Cover);
       Farzi and Dietz, EXAM++, LLM4Eval 2024, section 4.3
    """

    __name__ = "RubricCover"
    NAME = __name__
    PRETTY_NAME = "Rubric-Cover"
    SHORT_DESC = "The share of the test bank's items that the top k passages cover with at least the minimum grade."
    SUPPORTED_PARAMS = {
        "rel": _rel(1, "covering an item"),
        "cutoff": _CUTOFF,
        "judged_only": _JUDGED_ONLY,
    }


class _nRubricCover(_RubricCover):
    """Rubric-Cover divided by what any graded passages reach: the items covered by at least one graded passage.

    In [0, 1]; 0 when no graded passage covers any item.

    .. cite:: Dietz, SIGIR 2024 (normalised EXAM-Cover)
    """

    __name__ = "nRubricCover"
    NAME = __name__
    PRETTY_NAME = "Normalised Rubric-Cover"
    SHORT_DESC = "The covered share of those items that any graded passage covers."


_CREDIT = {
    "rel": _rel(2, "support (credit 1)"),
    "partial_rel": _rel(1, "partial support (credit 0.5)"),
    "strict": ParamInfo(dtype=bool, default=False, desc="partial support earns nothing"),
    "cutoff": _CUTOFF,
    "judged_only": _JUDGED_ONLY,
}


class _CreditMeasure(RubricMeasure):
    def check(self) -> None:
        if self.value("partial_rel") > self.value("rel"):
            raise MeasureError(
                f"{self.__name__}: partial_rel={self.value('partial_rel')} is above rel={self.value('rel')}; "
                "partial support cannot ask for more than support"
            )


class _NuggetA(_CreditMeasure):
    """The mean credit over all nuggets: A = sum of s_i / N, in [0, 1].

    s_i is 1 for support, 0.5 for partial support, else 0; of several passages the best grade of a nugget counts.
    With strict=True partial support earns 0.

    .. cite:: Pradeep et al., AutoNuggetizer (TREC 2024 RAG), scoring
    """

    __name__ = "NuggetA"
    NAME = __name__
    PRETTY_NAME = "All-nugget score"
    SHORT_DESC = "The mean credit of an answer over all nuggets."
    SUPPORTED_PARAMS = _CREDIT


class _NuggetV(_CreditMeasure):
    """The mean credit over the vital nuggets: V = sum of s_i over vital / n_vital, in [0, 1]; 0 where none is vital.

    V with strict=True is the primary measure of the TREC 2024 RAG track.

    .. cite:: Pradeep et al., AutoNuggetizer (TREC 2024 RAG), scoring
    """

    __name__ = "NuggetV"
    NAME = __name__
    PRETTY_NAME = "Vital-nugget score"
    SHORT_DESC = "The mean credit of an answer over the vital nuggets."
    SUPPORTED_PARAMS = _CREDIT


class _NuggetW(_CreditMeasure):
    """The weighted credit: W = (sum of s_i over vital + 0.5 sum over okay) / (n_vital + 0.5 n_okay), in [0, 1].

    .. cite:: Pradeep et al., AutoNuggetizer (TREC 2024 RAG), scoring
    """

    __name__ = "NuggetW"
    NAME = __name__
    PRETTY_NAME = "Weighted nugget score"
    SHORT_DESC = "The mean credit of an answer, vital nuggets counting 1 and okay nuggets 0.5."
    SUPPORTED_PARAMS = _CREDIT


class _WeightedCover(_CreditMeasure):
    """The weighted credit over criteria of any weight: sum of w_i s_i / sum of the positive w_i.

    Criteria of negative weight are penalties, so the value lies in (-inf, 1]; clip=True reports values below 0 as 0.
    0 where no criterion has a positive weight.
    """

    __name__ = "WeightedCover"
    NAME = __name__
    PRETTY_NAME = "Weighted coverage"
    SHORT_DESC = "The weighted credit of an answer; criteria of negative weight are penalties."
    SUPPORTED_PARAMS = {
        **_CREDIT,
        "clip": ParamInfo(dtype=bool, default=False, desc="report values below 0 as 0"),
    }


class _RubricQrels(RubricMeasure):
    """Any measure of ir_measures over the labels that the grades imply (Rubric-Qrels, EXAM-Qrels).

    label="max": label(p) = max over r of grade(p, r), and 0 where that is below rel; label="count": the number of
    items with grade >= rel. Passages without grades are unjudged. A measure with a relevance level takes `rel` as its
    own for label="max" (write it inside the name, measure="P(rel=2)@20", to set it yourself, as for "count").

    .. cite:: Farzi and Dietz, EXAM++, LLM4Eval 2024, section 4.3; Dietz, SIGIR 2024
    """

    __name__ = "RubricQrels"
    NAME = __name__
    PRETTY_NAME = "Rubric-Qrels"
    SHORT_DESC = "A standard measure over relevance labels that are derived from the grades of the passages."
    SUPPORTED_PARAMS = {
        "measure": ParamInfo(dtype=str, required=True, desc="the standard measure, such as nDCG@10 or AP"),
        "label": ParamInfo(dtype=str, choices=["max", "count"], default="max", desc="how item grades become a label"),
        "rel": _rel(1, "relevant (max), or as covering an item (count)"),
        "cutoff": _CUTOFF,
    }

    def check(self) -> None:
        self.inner()

    def inner(self) -> Measure:
        """The standard measure with this measure's cutoff and relevance level put in.

        Raises:
            MeasureError: the measure is unknown, is one over items, or a parameter is given twice.
        """
        return _standard(self.params["measure"], self.value("cutoff"), self.value("label"), self.params.get("rel"))

    def aggregator(self) -> Agg:
        """As the standard measure is aggregated: counts (NumRet, NumRel, NumQ) are summed, all others averaged."""
        return self.inner().aggregator()


# ir_measures' own measures over subtopics; this package computes them over rubric items.
ITEM_MEASURES = frozenset(
    ("ERR_IA", "nERR_IA", "alpha_DCG", "alpha_nDCG", "NRBP", "nNRBP", "AP_IA", "P_IA", "StRecall")
)


@functools.lru_cache(maxsize=4096)
def _standard(name: str, cutoff: int | None, label: str, given: int | None) -> Measure:
    """The measure inside a RubricQrels; every query asks for it, and parsing takes longer than scoring."""
    try:
        inner = ir_measures.parse_measure(name)
    except (NameError, ValueError) as error:
        raise MeasureError(f"RubricQrels: measure={name!r}: {error}") from None
    if isinstance(inner, RubricMeasure) or inner.NAME in ITEM_MEASURES:
        raise MeasureError(f"RubricQrels: {name} reads items, not labels; use it by itself")
    if cutoff is not None:
        if "cutoff" not in inner.SUPPORTED_PARAMS:
            raise MeasureError(f"RubricQrels: {name} has no cutoff")
        if inner.params.get("cutoff", cutoff) != cutoff:
            raise MeasureError(f"RubricQrels: {name} and @{cutoff} are two cutoffs; give one")
        inner = inner(cutoff=cutoff)
    if label == "max" and "rel" in inner.SUPPORTED_PARAMS:
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


RubricCover = _RubricCover()
nRubricCover = _nRubricCover()  # noqa: N816 - named as ir_measures names nDCG, nERR_IA, nNRBP
NuggetA = _NuggetA()
NuggetV = _NuggetV()
NuggetW = _NuggetW()
WeightedCover = _WeightedCover()


class _UnboundRubricQrels(_RubricQrels):
    """RubricQrels before it knows which measure to compute; calling it makes the measure."""

    def validate_params(self) -> None:
        raise MeasureError('RubricQrels needs the parameter measure, such as RubricQrels(measure="nDCG@10")')

    def __init__(self) -> None:
        Measure.__init__(self)

    def __call__(self, **params: Any) -> _RubricQrels:
        return _RubricQrels(**params)


RubricQrels = _UnboundRubricQrels()

ALL: tuple[Measure, ...] = (RubricCover, nRubricCover, NuggetV, NuggetW, NuggetA, WeightedCover, RubricQrels)


def register() -> None:
    """Makes the measures known to `ir_measures.parse_measure`; a second call changes nothing."""
    for measure in ALL:
        if measure.__name__ not in ir_measures.measures.registry:
            ir_measures.measures.register(measure)
