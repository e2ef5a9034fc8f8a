"""Checking a leaderboard file: was it made from these grades, this bank, these runs, with these settings?"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rubric_measures.api._loading import Gradable
from rubric_measures.api._runs import Runs
from rubric_measures.api._scoring import Board, score
from rubric_measures.base.errors import FormatError, InputError
from rubric_measures.base.files import path_name, read_text
from rubric_measures.formats.leaderboards import OVERALL
from rubric_measures.measures.grades import OnFailed, check_on_failed
from rubric_measures.measures.scoring import parse_measures
from rubric_measures.types.entities import canonical_json

_INPUTS = ("scored", "runs", "qrels")


@dataclass(frozen=True)
class KeptBoard:
    """What a leaderboard file (JSON) says about how it was made.

    Attributes:
        measures: the measures, as text.
        settings: setting -> value, as in the signature.
        grades: query_id -> digest of its items and grades.
        runs: run_id -> digest of its rankings.
        qrels: query_id -> digest of its judgments, where official measures stand beside ours.
        signature: the short hash of the signature.
        scores: run_id -> measure -> query_id -> score, and the mean under the empty id.
    """

    measures: Sequence[str]
    settings: Mapping[str, Any]
    grades: Mapping[str, str]
    runs: Mapping[str, str]
    qrels: Mapping[str, str]
    signature: str
    scores: Mapping[str, Mapping[str, Mapping[str, float | None]]]

    @property
    def on_failed(self) -> OnFailed | None:
        """How failed grades counted; None where another program's way was used."""
        found: OnFailed | None = self.settings.get("on_failed")
        return found

    def differences(self, grades: Gradable, runs: Runs | None = None, *, qrels: Gradable | None = None) -> list[str]:
        """What differs between the board and one that is scored now, a line each; empty where nothing does.

        Where inputs and settings are the same, every number is compared, too, to the places that the file has.

        Args:
            grades: as for `score`; load them with the same filters, and with `on_failed` of the board.
            runs: as for `score`.
            qrels: as for `score`.

        Raises:
            InputError, FormatError, MeasureError: as of `score`; or the board has official measures and no qrels are
                given, or the other way round.
        """
        if bool(self.qrels) != (qrels is not None):
            text = "has official measures; give their qrels, too" if self.qrels else "was scored without qrels"
            raise InputError(f"the board {text}", settings=("qrels",))
        unit = self.settings.get("unit")
        board = score(
            grades,
            runs,
            list(self.measures),
            qrels=qrels,
            overall=OVERALL in self.scores,
            facets=unit == "facet",
            per_facet=unit == "per facet",
            compat=self.settings.get("compat"),
            notes=False,
        )
        now = board.signature.settings
        lines = [
            f"{name}: {_said(self.settings, name)} in the file, {_said(now, name)} now"
            for name in sorted(self.settings.keys() | now.keys())
            if name not in _INPUTS and _said(self.settings, name) != _said(now, name)
        ]
        lines += _different("query", "grades or items", self.grades, board.inputs.grades)
        lines += _different("query", "judgments", self.qrels, board.inputs.qrels)
        lines += _different("run", "rankings", self.runs, board.inputs.runs)
        return lines or self._other_numbers(board)

    def _other_numbers(self, board: Board) -> list[str]:
        """The scores and means that the file does not have as they are computed now."""
        slack = _half_a_digit(self.scores)
        lines = [f"run {run}: scores now, none in the file" for run in board.cells if run not in self.scores]
        for run, measures in self.scores.items():
            for measure, kept in measures.items():
                if measure not in board.cells.get(run, {}):
                    lines.append(f"run {run}, {measure}: in the file, not computed now")
                    continue
                now = {**board.values[run][measure], "": board.cells[run][measure].mean}
                for query in sorted(kept.keys() | now.keys()):
                    old, new = kept.get(query), now.get(query)
                    is_same = old is new is None or (old is not None and new is not None and abs(old - new) <= slack)
                    if not is_same:
                        what = f"query {query}" if query else "mean"
                        lines.append(f"run {run}, {measure}, {what}: {_number(old)} in the file, {_number(new)} now")
        return lines


def _number(value: float | None) -> str:
    return "none" if value is None else repr(value)


def _half_a_digit(scores: Mapping[str, Mapping[str, Mapping[str, float | None]]]) -> float:
    """How far a number may be off by rounding to the places that the file has."""
    numbers = [value for row in scores.values() for column in row.values() for value in column.values()]
    places = max((len(repr(value).partition(".")[2]) for value in numbers if value is not None), default=0)
    # All digits may still differ by the order of a sum.
    return float(0.5 * 10.0**-places) + 1e-12


def _said(settings: Mapping[str, object], name: str) -> str:
    if name not in settings:
        return "nothing"
    value = settings[name]
    return value if isinstance(value, str) else canonical_json(value)


def _different(kind: str, what: str, kept: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    lines = [f"{kind} {name}: other {what}" for name in kept if name in now and kept[name] != now[name]]
    lines += [f"{kind} {name}: in the file, not given now" for name in kept if name not in now]
    return lines + [f"{kind} {name}: given now, not in the file" for name in now if name not in kept]


def read_board(path: str | os.PathLike[str]) -> KeptBoard:
    """Reads what a leaderboard file, as `Board.render("json")` writes it, says about how it was made.

    Raises:
        FormatError: it is no such file, or one without settings and digests.
    """
    from rubric_measures.base.json_files import parse_json

    name = path_name(path)
    content = parse_json(read_text(name), path=name)
    if not isinstance(content, dict) or content.get("format") != "rubric_measures leaderboard 1":
        raise FormatError("is no leaderboard as JSON; write one with the output form json", path=name)
    settings, inputs = content.get("settings"), content.get("inputs")
    if not isinstance(settings, dict) or not isinstance(inputs, dict):
        raise FormatError("does not say what it was scored from; score again and keep the JSON", path=name)
    measures, grades, runs = content.get("measures"), inputs.get("grades"), inputs.get("runs")
    qrels = inputs.get("qrels", {})
    if not (isinstance(measures, list) and isinstance(grades, dict) and isinstance(runs, dict)):
        raise FormatError("lacks measures, inputs.grades or inputs.runs", path=name)
    if not isinstance(qrels, dict):
        raise FormatError(f"{qrels!r:.60} is no digests of queries", path=name, field="inputs.qrels")
    if wrong := [one for one in measures if not isinstance(one, str)]:
        raise FormatError(f"{wrong[0]!r:.60} is no measure", path=name, field="measures")
    scores = _scores(content.get("runs", []), name)
    try:
        parse_measures(measures)
        if settings.get("on_failed") is not None:
            check_on_failed(settings["on_failed"])
        # Numbers beyond 1e308 become infinite, and nothing can say those.
        canonical_json(settings)
    except (InputError, ValueError) as error:
        raise FormatError(str(error), path=name) from None
    return KeptBoard(measures, settings, grades, runs, qrels, str(content.get("signature_hash")), scores)


def _scores(runs: object, name: str) -> dict[str, dict[str, dict[str, float | None]]]:
    """Run -> measure -> query -> score, the mean under the empty id."""
    try:
        return {
            row["run_id"]: {
                measure: {query: _score(value) for query, value in [*cell["per_query"].items(), ("", cell["mean"])]}
                for measure, cell in row["measures"].items()
            }
            for row in runs  # type: ignore[attr-defined]
        }
    except (AttributeError, KeyError, OverflowError, TypeError):
        raise FormatError("has a run without scores", path=name, field="runs") from None


def _score(value: object) -> float | None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
        raise TypeError
    return None if value is None else float(value)
