"""Measures of citations: is what an answer's sentences say in the documents that they cite?

A label is the grade of a pair (sentence, cited document): full support (the scale's covering grade), partial support,
none, or -2 where the document says the opposite. A pair that nobody labelled, or whose grade failed, is never a 0: it
stays out, and `coverage` counts it. An answer that a run does not have scores 0.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple

from ir_measures.measures.base import ParamInfo

from rubric_measures.base.errors import MeasureError
from rubric_measures.measures.measure import RubricMeasure, register
from rubric_measures.types.scales import CONTRADICTED

if TYPE_CHECKING:
    from rubric_measures.measures.grades import OnFailed, QueryGrades
    from rubric_measures.types.entities import CitedSentence

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
