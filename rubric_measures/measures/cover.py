"""Rubric-Cover: the share of the rubric items that the top k passages cover."""

from __future__ import annotations

from collections.abc import Callable

from rubric_measures.measures.measure import (
    CUTOFF,
    JUDGED_ONLY,
    CoverageMeasure,
    QueryContext,
    Top,
    min_grade,
    register,
)

__all__ = ["RubricCover", "nRubricCover"]


class _RubricCover(CoverageMeasure):
    """The share of the query's rubric items that some passage among the top k covers.

    RubricCover(rel)@k = |{r in R_q : some p among the top k has grade(p, r) >= rel}| / |R_q|, in [0, 1]; R_q is the
    complete test bank of the query.

    .. cite:: Dietz, A Workbench for Autograding Retrieve/Generate Systems, SIGIR 2024 (as EXAM-Cover);
       Farzi and Dietz, EXAM++, LLM4Eval 2024, section 4.3
    """

    PRETTY_NAME = "Rubric-Cover"
    SHORT_DESC = "The share of the test bank's items that the top k passages cover with at least the minimum grade."
    SUPPORTED_PARAMS = {
        "rel": min_grade("covering an item"),
        "cutoff": CUTOFF,
        "judged_only": JUDGED_ONLY,
    }

    def formula(self, query: QueryContext) -> Callable[[Top], float | None]:
        """Covered items / items of the bank, without those of which nobody can know."""
        rel, size = self.value("rel"), len(query.items)

        def cover(top: Top) -> float | None:
            covered = top.at_least(rel)
            unknown = query.undetermined(top, covered)
            denominator = size - unknown.bit_count()
            if not denominator:
                return None if unknown else 0.0
            return covered.bit_count() / denominator

        return cover


class _nRubricCover(_RubricCover):
    """Rubric-Cover divided by what any graded passages reach: the items covered by at least one graded passage.

    In [0, 1]; 0 when no graded passage covers any item.

    .. cite:: Dietz, SIGIR 2024 (normalised EXAM-Cover)
    """

    PRETTY_NAME = "Normalised Rubric-Cover"
    SHORT_DESC = "The covered share of those items that any graded passage covers."

    def formula(self, query: QueryContext) -> Callable[[Top], float | None]:
        """Covered items / items that any graded passage covers."""
        rel = self.value("rel")
        reachable = query.everything.at_least(rel).bit_count()

        def cover(top: Top) -> float | None:
            covered = top.at_least(rel)
            unknown = query.undetermined(top, covered)
            if not reachable:
                return None if unknown else 0.0
            return covered.bit_count() / reachable

        return cover


RubricCover = register(_RubricCover)
nRubricCover = register(_nRubricCover)  # noqa: N816 - named as ir_measures names nDCG, nERR_IA, nNRBP
