"""Leaderboards of rubrics as RAGDoll, the toolkit of TREC RAG 2026, computes them, to recompute published ones.

It differs from `leaderboard`: A verdict that failed earns nothing and stays in the denominator. The weights are those
of each line. A line without a criterion of positive weight has no score, and is not in the mean; the mean is over the
lines that are there, so a query without a line is no zero.
"""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Iterable, Sequence

from ir_measures.measures.base import Measure

from rubric_measures.base.errors import MeasureError
from rubric_measures.formats.ragdoll import GradedCriterion, read_graded_answers
from rubric_measures.leaderboards.board import Cell, Leaderboard
from rubric_measures.leaderboards.scoring import InputsReader, cell_of, inputs_settings
from rubric_measures.types.entities import Signature

__all__ = ["ragdoll_score", "score_ragdoll"]

_LOG = logging.getLogger("rubric_measures")
# Its ternary score, and its binary one.
_PUBLISHED = ("WeightedCover", "WeightedCover(strict=True)")


def ragdoll_score(criteria: Iterable[tuple[float, str]], *, strict: bool) -> float | None:
    """The toolkit's score of one answer: Σ w_i v_i / Σ of the positive w_i; None where no weight is positive.

    v is 1 for `satisfied`, ½ for `partially_satisfied` (0 when strict), 0 for any other verdict.

    >>> ragdoll_score([(5, "partially_satisfied"), (2, "satisfied"), (2, "failed")], strict=False)
    0.5

    Args:
        criteria: (weight, verdict) of each criterion.
        strict: the binary score; else the ternary one.
    """
    listed = list(criteria)
    credits = {"satisfied": 1.0, "partially_satisfied": 0.0 if strict else 0.5}
    whole = sum(weight for weight, _ in listed if weight > 0)
    return sum(weight * credits.get(verdict, 0.0) for weight, verdict in listed) / whole if whole else None


def score_ragdoll(path: str | os.PathLike[str], measures: Sequence[Measure]) -> Leaderboard:
    """Scores a file of graded answers by the rules of the toolkit; a note counts what is not satisfied by type.

    Args:
        path: the file; several runs may be in it.
        measures: WeightedCover (the ternary score), strict (the binary one) or not, without other parameters.

    Raises:
        MeasureError: another measure is asked for.
        InputError: the file cannot be opened.
        FormatError: naming file, line and field.
    """
    names = [str(measure) for measure in measures]
    for name in names:
        if name not in _PUBLISHED:
            raise MeasureError(f"RAGDoll knows {' and '.join(_PUBLISHED)}, not {name}")
    answers = read_graded_answers(path)
    values: dict[str, dict[str, dict[str, float | None]]] = {}
    reader = InputsReader()
    for answer in sorted(answers, key=lambda one: (one.run_id, one.qid)):
        criteria = [(one.weight, one.verdict) for one in answer.judged]
        of_run = values.setdefault(answer.run_id, {name: {} for name in names})
        for name in names:
            of_run[name][answer.qid] = ragdoll_score(criteria, strict="strict" in name)
        reader.add_run(answer.run_id, [(answer.qid, str(criteria))])
    cells: dict[str, dict[str, Cell]] = {
        run: {name: cell_of(of_run[name].values()) for name in names} for run, of_run in values.items()
    }
    _say_types(one for answer in answers for one in answer.judged)
    inputs = reader.read()
    signature = Signature({"measures": names, "compat": "ragdoll", **inputs_settings(inputs)})
    return Leaderboard(names, values, cells, signature, inputs=inputs)


def _say_types(criteria: Iterable[GradedCriterion]) -> None:
    """Says how many criteria of each type are not satisfied in full: the toolkit's failures by category."""
    total: Counter[str] = Counter()
    failed: Counter[str] = Counter()
    for one in criteria:
        total[one.type] += 1
        failed[one.type] += one.verdict != "satisfied"
    shares = ", ".join(f"{kind} {failed[kind]} of {total[kind]} ({failed[kind] / total[kind]:.6f})" for kind in total)
    _LOG.info("criteria that are not satisfied in full, by type: %s", shares)
