"""Audits: what is drawn, what a difference of runs is after checks, and that looking at it often does no harm."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pytest

from rubric_measures.analysis.calibration import (
    AuditPlan,
    DrawnPassage,
    PairAudit,
    flat_bound,
    make_audit,
    sentence,
)
from rubric_measures.base.errors import InputError

QUERIES, PASSAGES, ITEMS = 30, 8, 6
PAIR = ("new", "old")
Truth = dict[tuple[str, str, str], bool]
Labels = dict[tuple[str, str], dict[str, bool]]


def make_grades(seed: int, agreement: float = 0.8) -> tuple[Truth, Labels]:
    """What assessors would say of all passages, and a grader that is so often right."""
    generator = np.random.default_rng(seed)
    truth = {
        (f"q{q}", f"d{d}", f"i{i}"): bool(generator.random() < 0.3)
        for q, d, i in itertools.product(range(QUERIES), range(PASSAGES), range(ITEMS))
    }
    labels: Labels = {}
    for (query_id, doc_id, item_id), covers in truth.items():
        said = covers is bool(generator.random() < agreement)
        labels.setdefault((query_id, doc_id), {})[item_id] = said
    return truth, labels


def make_rankings(seed: int) -> dict[str, dict[str, list[str]]]:
    """Two runs that show four passages of each query."""
    generator = np.random.default_rng(seed)
    return {
        run: {f"q{q}": [f"d{d}" for d in generator.permutation(PASSAGES)[:4]] for q in range(QUERIES)} for run in PAIR
    }


def audited(
    plan: AuditPlan, truth: Truth, labels: Labels, rankings: dict[str, dict[str, list[str]]]
) -> tuple[PairAudit, list[tuple[int, float]], Sequence[DrawnPassage]]:
    audit = make_audit(plan, labels, rankings)
    return audit.pairs[0], audit.corrections(0, truth), audit.drawn


def true_means(truth: Truth, rankings: dict[str, dict[str, list[str]]]) -> list[float]:
    """The mean shares of items that shown passages cover, by assessors."""
    return [
        float(
            np.mean(
                [truth[query, doc, f"i{i}"] for query, docs in of_run.items() for doc in docs for i in range(ITEMS)]
            )
        )
        for of_run in rankings.values()
    ]


@pytest.mark.parametrize(("pairs", "items"), [([PAIR], 1), ([PAIR], 3), ([PAIR], 5), ([], 5)])
def test_corrected_differences_and_means_are_right_on_average(pairs: list[tuple[str, str]], items: int) -> None:
    truth, labels = make_grades(4, agreement=0.7)
    rankings = make_rankings(4)
    found = []
    for seed in range(150):
        audit, checked, _ = audited(AuditPlan(pairs, 60, items=items, seed=seed), truth, labels, rankings)
        found.append(audit.settled(checked).estimate)
    estimates = np.array(found, dtype=float)
    error = estimates.std() / np.sqrt(len(estimates))
    new, old = true_means(truth, rankings)
    assert abs(estimates.mean() - (new - old if pairs else new)) < 3.5 * error


def test_a_perfect_grader_leaves_only_the_queries_to_doubt() -> None:
    truth, labels = make_grades(6, agreement=1.0)
    audit, checked, _ = audited(AuditPlan([PAIR], 100), truth, labels, make_rankings(6))
    found = audit.settled(checked)
    assert found.estimate == pytest.approx(found.grader)
    assert (found.verdict, found.more, found.needs) == ("open", None, "queries")
    said = sentence(found)
    assert said.startswith("new against old: between −.") and said.endswith(
        ", not settled; more checks will not settle it: ask more queries"
    )
    # That is not said before half of them are checked.
    early = sentence(audit.settled(checked[:30]))
    assert early.startswith("new against old: between −.") and early.endswith(" a passage covers, not settled")


def test_two_equal_runs_are_seldom_settled_though_each_passage_is_looked_at() -> None:
    settled = 0
    for seed in range(60):
        truth, labels = make_grades(100 + seed, agreement=0.75)
        audit, checked, _ = audited(AuditPlan([PAIR], 60, seed=seed), truth, labels, make_rankings(200 + seed))
        settled += any(audit.settled(checked[:size]).verdict != "open" for size in range(10, 61))
    # 5 % is 3 of 60; nine or more have a chance of .001.
    assert settled <= 8


def test_what_an_audit_can_settle_is_known_before() -> None:
    truth, labels = make_grades(12, agreement=0.85)
    audit = make_audit(AuditPlan([PAIR], 80), labels, make_rankings(12))
    expected, (found,) = audit.expected_reaches[0], audit.settled(truth)
    assert expected is not None and found.low is not None and found.high is not None
    assert expected == pytest.approx((found.high - found.low) / 2, rel=0.3)
    assert make_audit(AuditPlan([PAIR], 5), labels, make_rankings(12)).expected_reaches[0] is None


def test_the_share_of_right_grades_is_right_on_average_and_knows_passages() -> None:
    """Errors that come a passage at a time say less than as many independent ones."""
    truth, labels = make_grades(13, agreement=0.8)
    right = {cell: covers is labels[cell[:2]][cell[2]] for cell, covers in truth.items()}
    whole = sum(right.values()) / len(right)
    found = [make_audit(AuditPlan([], 40, seed=seed), labels, {}).share(right) for seed in range(100)]
    shares = np.array([one[0] for one in found if one is not None])
    assert abs(shares.mean() - whole) < 3.5 * shares.std() / 10
    generator = np.random.default_rng(1)
    bad = {place: bool(generator.random() < 0.2) for place in labels}
    by_passage = {cell: not bad[cell[:2]] for cell in truth}
    sizes = [make_audit(AuditPlan([], 40), labels, {}).share(holds) for holds in (right, by_passage)]
    assert sizes[0] is not None and sizes[1] is not None
    assert sizes[1][1] < 60 < sizes[0][1]
    assert make_audit(AuditPlan([], 40), labels, {}).share(dict.fromkeys(truth, True)) == (1.0, 40.0)


@pytest.mark.parametrize(("level", "bound"), [(0.95, 2.2414), (0.99, 2.8070), (0.9, 1.9600), (0.5, 1.1490)])
def test_the_flat_bound_is_that_of_brownian_motion(level: float, bound: float) -> None:
    assert flat_bound(level) == pytest.approx(bound, abs=2e-4)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"pairs": [("a", "a")]}, "a: a pair is two runs"),
        ({"passages": 0}, "1 passage"),
        ({"cutoff": 0}, "1 rank"),
        ({"level": 1.0}, "level"),
        ({"smallest": 2.0}, "between 0 and 1"),
    ],
)
def test_a_plan_that_is_none_is_refused(settings: dict[str, object], said: str) -> None:
    with pytest.raises(InputError, match=said):
        AuditPlan(**{"pairs": [PAIR], "passages": 10, **settings})  # type: ignore[arg-type]


def test_a_run_that_is_not_there_is_named_with_those_that_are() -> None:
    _, labels = make_grades(1)
    with pytest.raises(InputError, match="no run newest has passages here; there are new, old"):
        make_audit(AuditPlan([("newest", "old")], 9), labels, make_rankings(1))
