"""Leaderboards as the nuggetizer program computes them, to recompute published ones.

It differs from `leaderboard`: A nugget is vital where its importance is exactly `vital`; all others are one class
(`failed` too). Labels count as they stand: `failed` and unknown ones earn nothing and stay in the denominator. A nugget
that comes twice counts twice. The mean is over the lines that are there: a missing query is no zero, and a repeated
line counts again.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from typing import Any

from ir_measures.measures.base import Measure

from rubric_measures.base.errors import FormatError, MeasureError
from rubric_measures.base.files import path_name, paused_collector, run_of_file
from rubric_measures.base.json_files import json_texts, parse_json
from rubric_measures.leaderboards.board import Cell, Leaderboard
from rubric_measures.leaderboards.scoring import InputsReader, cell_of, inputs_settings
from rubric_measures.types.entities import Signature

__all__ = ["score_nuggetizer"]

_LOG = logging.getLogger("rubric_measures")
_PUBLISHED = ("NuggetV", "NuggetV(strict=True)", "NuggetA", "NuggetA(strict=True)")
_KNOWN = frozenset(("support", "partial_support", "not_support", "failed"))
_TEXT = frozenset((str,))


def score_nuggetizer(path: str | os.PathLike[str], measures: Sequence[Measure]) -> Leaderboard:
    """Scores a file of assignments by the rules of the nuggetizer program; counted notes say where they differ.

    The value of a query that a run answers in several lines is their mean; the mean of the run is over the lines.

    Args:
        path: the file; several runs may be in it. A line without `run_id` is of the run that the file is named after.
        measures: NuggetV and NuggetA, strict or not, without other parameters: the program knows no other.

    Raises:
        MeasureError: another measure is asked for.
        InputError: the file cannot be opened.
        FormatError: naming file and line.
    """
    names = [str(measure) for measure in measures]
    for name in names:
        if name not in _PUBLISHED:
            raise MeasureError(f"the nuggetizer program knows {', '.join(_PUBLISHED)}, not {name}")
    lines = _lines(path_name(path))
    cells: dict[str, dict[str, Cell]] = {}
    values: dict[str, dict[str, dict[str, float | None]]] = {}
    for run, queries in sorted(lines.items()):
        cells[run], values[run] = {}, {}
        in_order = sorted(queries.items())
        for name in names:
            vital, strict = name.startswith("NuggetV"), "strict" in name
            found = {query_id: [_score(answer[vital], strict) for answer in answers] for query_id, answers in in_order}
            cells[run][name] = cell_of([value for several in found.values() for value in several])
            values[run][name] = {query_id: sum(several) / len(several) for query_id, several in found.items()}
    reader = InputsReader()
    for run, queries in lines.items():
        # Nuggets, labels and answers come together: what a run is given is all there is.
        reader.add_run(run, ((query_id, str(sorted(answers))) for query_id, answers in queries.items()))
    inputs = reader.read()
    signature = Signature({"measures": names, "compat": "nuggetizer", **inputs_settings(inputs)})
    return Leaderboard(names, values, cells, signature, inputs=inputs)


# How many nuggets there are, how many of them are supported, and how many partly.
_Counts = tuple[int, int, int]
# Of all nuggets of a line, and of the vital ones: what its scores are made of.
_Answer = tuple[_Counts, _Counts]


def _counts(labels: Sequence[str]) -> _Counts:
    return len(labels), labels.count("support"), labels.count("partial_support")


def _score(counts: _Counts, strict: bool) -> float:
    """The program's score of one answer, Σ s_i / n over its nuggets, in [0, 1]; 0 without any.

    s_i is 1 for `support`, 0.5 for `partial_support` (0 when strict), 0 for any other label.

    Source: nuggetizer 0.0.5, its metrics.

    >>> _score((2, 1, 1), strict=False)
    0.75
    """
    nuggets, supported, partly = counts
    return (supported + (0.0 if strict else 0.5) * partly) / nuggets if nuggets else 0.0


def _lines(name: str) -> dict[str, dict[str, list[_Answer]]]:
    """Run -> query -> the counts of each of its lines."""
    found: dict[str, dict[str, list[_Answer]]] = {}
    unknown = failed = repeated = 0
    with paused_collector():
        for number, data in json_texts(name):
            query_id, run, importances, labels = _line(parse_json(data, path=name, line=number), name, number)
            answers = found.setdefault(run, {}).setdefault(query_id, [])
            repeated += bool(answers)
            vital = [label for importance, label in zip(importances, labels, strict=True) if importance == "vital"]
            answers.append((_counts(labels), _counts(vital)))
            failed += labels.count("failed")
            unknown += len(labels) - sum(map(labels.count, _KNOWN))
    if not found:
        raise FormatError("is empty; expected assignments, one JSON object a line", path=name)
    for count, what in (
        (repeated, "%d lines repeat a query of their run; each counts, as in the nuggetizer program"),
        (failed, "%d labels are failed; they count as not supported, as in the nuggetizer program"),
        (unknown, "%d labels are unknown as they stand; they count as not supported, as in the nuggetizer program"),
    ):
        if count:
            _LOG.warning(what, count)
    return found


def _line(content: Any, name: str, number: int) -> tuple[str, str, list[str], list[str]]:
    """The query and the run of a line; the importance and the assignment of each of its nuggets."""
    try:
        query_id, run = content["qid"], content.get("run_id")
        if run is None:
            run = run_of_file(name)
        importances = [nugget["importance"] for nugget in content["nuggets"]]
        labels = [nugget["assignment"] for nugget in content["nuggets"]]
    except (KeyError, TypeError, AttributeError):
        problem = "expected qid, run_id and nuggets with importance and assignment"
        raise FormatError(problem, path=name, line=number) from None
    if run == "":
        raise FormatError("names no run; say which one it is", path=name, line=number, field="run_id")
    if type(query_id) is str and type(run) is str and _TEXT.issuperset(map(type, importances + labels)):
        return query_id, run, importances, labels
    for what, found in (("qid", query_id), ("run_id", run), *(("nuggets", text) for text in importances + labels)):
        # Some files write ids as numbers.
        if not isinstance(found, str) and (what == "nuggets" or type(found) is not int):
            problem = f"expected a text; found {type(found).__name__}"
            raise FormatError(problem, path=name, line=number, field=what)
    return str(query_id), str(run), importances, labels
