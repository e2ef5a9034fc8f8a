"""Tests of a grader held to a few grades: bias, scores by confusion, against others and by hand."""

import numpy as np
import pytest

from rubric_measures.analysis.calibration import (
    Anchor,
    RunGrades,
    bias_rows,
    calibrated_runs,
    said_of,
)
from rubric_measures.analysis.resampling import Draws
from rubric_measures.base.errors import InputError

NO_DRAWS = Draws(0)


def test_bias_by_hand() -> None:
    anchors = [
        Anchor("q1", "vital", 5, 4), Anchor("q1", "vital", 3, 3), Anchor("q2", "okay", 5, 2), Anchor("q2", "okay", 0, 1)
    ]  # fmt: skip
    rows = {row.kind: row for row in bias_rows(anchors)}
    # Gaps 1 0 3 -1, mean .75; sums of (gap - .75) by query: -.5 and .5; √(2 · .5) · 2 … / 4 = .25 is the error,
    # t of one degree of freedom 12.706.
    whole = rows[""]
    assert (whole.anchors, whole.queries, whole.same, whole.mean) == (4, 2, 0.25, 0.75)
    assert whole.high - whole.mean == pytest.approx(12.7062 * 0.25, rel=1e-4)
    assert (rows["vital"].mean, rows["okay"].mean, rows["okay"].low) == (0.5, 1.0, None)


@pytest.mark.parametrize(("gaps", "said"), [
    ((1, 1), "higher"), ((-1, -1), "lower"), ((0, 0), "none that matters"), ((0.05, 0.05), "none that matters"),
    ((1, -1), "unknown"), ((0, 2), "unknown"),
])  # fmt: skip
def test_what_has_no_width_has_no_interval_but_may_be_clear(gaps, said) -> None:
    anchors = [Anchor(f"q{query}", "question", 2 + gap, 2) for query in range(8) for gap in gaps]
    (row,) = bias_rows(anchors)
    assert (row.low, row.high, said_of(row, {"smallest": 0.1})) == (None, None, said)
    assert ("all grades are off by the same" in row.reason) is (gaps[0] == gaps[1])
    (one,) = bias_rows(anchors[:2])
    assert said_of(one, {"smallest": 0.1}) == "unknown" and "one query only" in one.reason


def test_bias_as_statsmodels() -> None:
    api = pytest.importorskip("statsmodels.api")
    generator = np.random.default_rng(0)
    anchors = [Anchor(f"q{i % 12}", "question", float(generator.integers(6)), float(generator.integers(6)))
               for i in range(100)]  # fmt: skip
    gaps = np.array([one.grade - one.truth for one in anchors])
    groups = np.array([int(one.query_id[1:]) for one in anchors])
    fitted = api.OLS(gaps, np.ones(100)).fit(
        cov_type="cluster", cov_kwds={"groups": groups, "use_correction": True, "df_correction": True}, use_t=True
    )
    found = bias_rows(anchors)[0]
    assert found.mean == pytest.approx(fitted.params[0])
    assert (found.low, found.high) == pytest.approx(tuple(fitted.conf_int()[0]))


# Of what the truth covers the grader covers 3 of 4, of what it does not 1 of 4.
ANCHORS = [Anchor(f"q{i % 2}", "question", 5.0 if i < 3 else 0.0, 5.0) for i in range(4)] + [
    Anchor(f"q{i % 2}", "question", 5.0 if i < 1 else 0.0, 0.0) for i in range(4)
]
ANSWERS = [
    RunGrades("good", "q0", (5.0, 5.0, 0.0, 5.0)), RunGrades("good", "q1", (5.0, 0.0)),
    RunGrades("late", "q1", (5.0, 0.0, 0.0, 0.0)),
]  # fmt: skip


def test_scores_by_confusion_by_hand() -> None:
    found = {one.run_id: one for one in calibrated_runs(ANCHORS, ANSWERS, 4, NO_DRAWS)}
    # good covers 3/4 and 1/2, .625; TPR .75, FPR .25: (.625 - .25) / .5 = .75. late has 0 and 1/4: 0 on q0, 0 on q1.
    assert (found["good"].raw, found["good"].interval.estimate) == (0.625, pytest.approx(0.75))
    assert (found["late"].raw, found["late"].interval.estimate) == (0.125, pytest.approx(0.0))


def test_what_anchors_say_nothing_about_is_refused() -> None:
    with pytest.raises(InputError, match="gives 3, and of what the truth grades it gave nothing below 4 or above 5"):
        high = [Anchor("q0", "", 4.0, 5.0), Anchor("q1", "", 5.0, 0.0)]
        calibrated_runs(high, [RunGrades("r", "q0", (3.0,))], 4)
    with pytest.raises(InputError, match="covers 2 of 2"):
        sure = [Anchor("q0", "", 5.0, 5.0), Anchor("q1", "", 0.0, 5.0)]
        calibrated_runs(sure, [RunGrades("r", "q0", (5.0,))], 4)
    with pytest.raises(InputError, match="as often as"):
        wrong = [Anchor(f"q{i}", "", 5.0 if i % 2 else 0.0, 5.0 if i < 2 else 0.0) for i in range(4)]
        calibrated_runs(wrong, [RunGrades("r", "q0", (5.0,))], 4)
    with pytest.raises(InputError, match="two queries"):
        calibrated_runs(ANCHORS[:1], [RunGrades("r", "q0", (5.0,))], 4)
    with pytest.raises(InputError, match="no answer"):
        calibrated_runs(ANCHORS, [RunGrades("r", "q0", ())], 4)
