"""Tests of the intent-aware measures against pyndeval, one measure at a time, and against hand-worked values."""

from __future__ import annotations

import math

import ir_measures
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rubric_measures.measures.core import greedy
from rubric_measures.measures.qrels import build_grades
from rubric_measures.types.entities import RubricItem
from tests import matrices
from tests.matrices import query_of
from tests.strategies import Case, cases

RUN_SIZE = 100


def run_of(case: Case) -> list[ir_measures.ScoredDoc]:
    return [ir_measures.ScoredDoc("q", doc_id, float(RUN_SIZE - rank)) for rank, doc_id in enumerate(case.ranking)]


def names(cutoff: int, rel: int) -> list[ir_measures.Measure]:
    m = ir_measures
    # ndeval leaves ERR-IA@1 and alpha-DCG@1 unnormalised (values above 1), so those two are asked from 2 on.
    from_two = [m.ERR_IA(rel=rel) @ max(cutoff, 2), m.alpha_DCG(rel=rel) @ max(cutoff, 2)]
    return [
        *from_two,
        m.nERR_IA(rel=rel) @ cutoff,
        m.alpha_nDCG(rel=rel) @ cutoff,
        # With alpha a power of two gains are exact, so ndeval and we see the same ties in the greedy ideal.
        m.alpha_nDCG(rel=rel, alpha=0.75) @ cutoff,
        m.NRBP(rel=rel),
        m.NRBP(rel=rel, alpha=0.3, beta=0.8),
        m.nNRBP(rel=rel, beta=0.2),
        m.P_IA(rel=rel) @ cutoff,
        m.AP_IA(rel=rel),
        m.StRecall(rel=rel) @ cutoff,
    ]


@pytest.mark.filterwarnings("ignore")
@given(cases(), st.integers(1, 9), st.integers(1, 5))
def test_equals_pyndeval_one_measure_at_a_time(case: Case, cutoff: int, rel: int) -> None:
    pytest.importorskip("pyndeval")
    if not case.grades or not case.ranking:
        return
    qrels = [ir_measures.Qrel("q", doc_id, grade, item_id) for (doc_id, item_id), grade in case.grades.items()]
    measures = names(cutoff, rel)
    ours = ir_measures.calc_aggregate(measures, build_grades(qrels), run_of(case))
    theirs = {str(m): ir_measures.pyndeval.calc_aggregate([m], qrels, run_of(case))[m] for m in measures}
    # pyndeval divides 0 by 0 where no passage covers any item.
    theirs = {name: 0.0 if math.isnan(value) else value for name, value in theirs.items()}
    assert {str(m): v for m, v in ours.items()} == pytest.approx(theirs, abs=1e-9)


def value(measure: ir_measures.Measure, rows: list[tuple[str, str, float]], ranking: str) -> float:
    [found] = matrices.values([measure], query_of(rows), ranking.split())
    assert found is not None
    return found


def test_alpha_dcg_by_hand() -> None:
    # d1 covers items a and b, d2 item b again, d3 item c. alpha = 0.5: gains 2, 0.5, 1.
    rows = [("d1", "a", 1.0), ("d1", "b", 1.0), ("d2", "b", 1.0), ("d3", "c", 1.0)]
    pool = np.array([[True, True, False], [False, True, False], [False, False, True]])
    gains, order = greedy(pool, None, 0.5)
    assert (gains.tolist(), order) == ([2.0, 1.0, 0.5], [0, 2, 1])
    dcg = 2 / 1 + 0.5 / math.log2(3) + 1 / 2
    # Ideal order: d1 (2), d3 (1), d2 (0.5).
    ideal = 2 / 1 + 1 / math.log2(3) + 0.5 / 2
    assert value(ir_measures.alpha_nDCG @ 3, rows, "d1 d2 d3") == pytest.approx(dcg / ideal)
    # A ranking that covers all three items at each rank gains 3, 1.5, 0.75.
    perfect = 3 + 1.5 / math.log2(3) + 0.75 / 2
    assert value(ir_measures.alpha_DCG @ 3, rows, "d1 d2 d3") == pytest.approx(dcg / perfect)
    # At 1 the maximum is 3, so the value is 2/3, not 2 as ndeval prints.
    assert value(ir_measures.alpha_DCG @ 1, rows, "d1") == pytest.approx(2 / 3)
    assert value(ir_measures.StRecall @ 2, rows, "d2 d3") == pytest.approx(2 / 3)


def test_a_query_that_nothing_covers_scores_zero() -> None:
    m = ir_measures
    measures = [m.alpha_DCG @ 2, m.alpha_nDCG @ 2, m.ERR_IA @ 2, m.nERR_IA @ 2, m.NRBP, m.nNRBP]
    measures += [m.P_IA @ 2, m.AP_IA, m.StRecall @ 2]
    for rows in ([], [("d1", "a", 0.0), ("d2", "a", 0.0)]):
        query = query_of(rows, [RubricItem("a", "q", "")])
        assert matrices.values(measures, query, ["d1", "d2"]) == [0.0] * 9
        assert matrices.values(measures, query, []) == [0.0] * 9


def test_cutoffs_beyond_twenty_and_several_parameters_in_one_call() -> None:
    # Grade 3 first at rank 1, so every level is covered at every cutoff.
    qrels = [ir_measures.Qrel("q", f"d{i}", 3 - i % 3, f"q/{i % 7}") for i in range(40)]
    run = [ir_measures.ScoredDoc("q", f"d{i}", float(-i)) for i in range(40)]
    m = ir_measures
    measures = [m.StRecall(rel=rel) @ k for rel in (1, 2, 3) for k in (1, 5, 30)]
    measures += [m.alpha_nDCG(alpha=a, judged_only=j) @ 25 for a in (0.3, 0.7) for j in (True, False)]
    together = m.calc_aggregate(measures, build_grades(qrels), run)
    assert together == {x: m.calc_aggregate([x], build_grades(qrels), run)[x] for x in measures}
    assert together[m.StRecall(rel=1) @ 30] == 1.0
    assert all(value > 0 for value in together.values())
