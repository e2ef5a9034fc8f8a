"""Tests of ERR, exponential nDCG and RBP over labels of any scale: against gdeval up to 4, by hand above."""

from __future__ import annotations

import random
import shutil

import ir_measures
import pytest
from ir_measures import Qrel, ScoredDoc

from rubric_measures import RubricQrels, load
from rubric_measures.base.errors import MeasureError
from rubric_measures.measures.grades import Grades


def _graded(labels: dict[str, int], scale: str | None) -> Grades:
    rows = [Qrel("1", doc_id, label, "item") for doc_id, label in labels.items()]
    return load(rows, grader=None if scale is None else f"scale={scale}")


def _value(name: str, labels: dict[str, int], ranking: str, scale: str | None) -> float:
    run = [ScoredDoc("1", doc_id, -float(rank)) for rank, doc_id in enumerate(ranking.split())]
    measure = RubricQrels(measure=name)
    return float(ir_measures.calc_aggregate([measure], _graded(labels, scale), run)[measure])


@pytest.mark.skipif(shutil.which("perl") is None, reason="gdeval needs perl")
@pytest.mark.parametrize("name", ["ERR@1", "ERR@5", "ERR@20", "nDCG(dcg='exp-log2')@5", "nDCG(dcg='exp-log2')@20"])
def test_equals_gdeval_up_to_its_highest_label(name: str) -> None:
    dice = random.Random(name)
    measure = ir_measures.parse_measure(name)
    for _ in range(5):
        docs = [f"d{number}" for number in range(12)]
        # Some are judged and not ranked, some ranked and not judged.
        labels = {doc_id: dice.randint(0, 4) for doc_id in docs[:9]} | {"d0": 4}
        ranking = dice.sample(docs, 9)
        run = [ScoredDoc("1", doc_id, -float(rank)) for rank, doc_id in enumerate(ranking)]
        qrels = [Qrel("1", doc_id, label) for doc_id, label in labels.items()]
        theirs = ir_measures.gdeval.calc_aggregate([measure], qrels, run)[measure]
        # It prints five digits.
        assert _value(name, labels, " ".join(ranking), "0-4:3") == pytest.approx(theirs, abs=5.01e-6)


# Labels 5, 0, 3 and 4 on a scale of 0 to 5.
LABELS = {"a": 5, "b": 0, "c": 3, "d": 4}
# R of the labels: (2^5 - 1) / 2^5 = 31/32, 0, (2^3 - 1) / 32 = 7/32, (2^4 - 1) / 32 = 15/32.
A, C, D = 31 / 32, 7 / 32, 15 / 32


@pytest.mark.parametrize(
    ("name", "ranking", "expected"),
    [
        ("ERR@1", "a b c", A),
        ("ERR@3", "a b c", A + (1 / 32) * C / 3),
        ("ERR@2", "b c", C / 2),
        # A passage that nobody graded holds its rank.
        ("ERR@3", "x d c", D / 2 + (17 / 32) * C / 3),
        ("ERR@20", "x y", 0.0),
        # Gains 31, 7, 15; log2 of 2, 3, 4 is 1, 1.584962500721156, 2.
        ("nDCG(dcg='exp-log2')@1", "d a", 15 / 31),
        (
            "nDCG(dcg='exp-log2')@3",
            "d c a",
            (15 + 7 / 1.584962500721156 + 31 / 2) / (31 + 15 / 1.584962500721156 + 7 / 2),
        ),
        # Gains 5/5, 3/5, 4/5; weights (1 - p) p^(rank - 1).
        ("RBP(p=0.5)", "a b c", 0.5 * (1 + 0.25 * 0.6)),
        ("RBP(p=0.5)@2", "a b c", 0.5),
        ("RBP(p=0.5,rel=4)", "a c d", 0.5 * (1 + 0.25)),
    ],
)
def test_labels_up_to_five_by_hand(name: str, ranking: str, expected: float) -> None:
    assert _value(name, LABELS, ranking, "0-5:4:3") == pytest.approx(expected, abs=1e-12)


@pytest.mark.skipif(shutil.which("perl") is None, reason="gdeval needs perl")
def test_without_a_scale_err_is_gdevals() -> None:
    assert _value("ERR@1", {"a": 3, "b": 1}, "a b", None) == 0.4375
    with pytest.raises(MeasureError, match="gdeval"):
        _value("ERR@1", LABELS, "a b", None)
