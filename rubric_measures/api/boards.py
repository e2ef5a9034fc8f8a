"""Boards kept in files: checked, bundled, held to gates.

Checking a leaderboard file: was it made from these grades, this bank, these runs, with these settings?

Gates on a board: limits, and a kept board that it may not be worse than.

An evaluation as a folder that a stranger can check: board, grades, bank, runs and what else belongs to it.

What may be wrong beneath a board: unjudged passages, missing queries, ties.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import ir_measures
from msgspec.structs import replace

from rubric_measures.api.loading import (
    Gradable,
    RecordGrades,
    Runs,
    content_of,
    load,
    load_bank,
    read_runs,
    run_list,
)
from rubric_measures.api.scoring import Board, Compat, in_units, score, units
from rubric_measures.base.errors import FormatError, InputError, UnknownNameError, warn
from rubric_measures.base.files import path_name, read_text
from rubric_measures.base.json_text import parse_json
from rubric_measures.boards.board import BELOW, Best, Cell, Leaderboard
from rubric_measures.formats.base import OVERALL
from rubric_measures.formats.leaderboards import read_leaderboard
from rubric_measures.measures.grades import OnFailed, check_on_failed
from rubric_measures.measures.measure import column_named, is_supported, parse_measures
from rubric_measures.types.entities import Run, TestBank, canonical_json

if TYPE_CHECKING:
    from rubric_measures.analysis.board_reports import LeaderboardChecks
    from rubric_measures.formats.leaderboards import LeaderboardTable


_INPUTS = ("scored", "runs", "qrels")
# Measure -> query_id -> score, and the mean under the empty id.
_Columns = Mapping[str, Mapping[str, float | None]]


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
        best: the best possible scores, likewise: measure -> query_id -> score.
    """

    measures: Sequence[str]
    settings: Mapping[str, Any]
    grades: Mapping[str, str]
    runs: Mapping[str, str]
    qrels: Mapping[str, str]
    signature: str
    scores: Mapping[str, _Columns]
    best: _Columns

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
            overall=bool(self.best),
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
        slack = _half_a_digit([*self.scores.values(), self.best])
        lines = [f"run {run}: scores now, none in the file" for run in board.cells if run not in self.scores]
        cells: dict[str, Mapping[str, Cell | Best]] = {**board.cells, OVERALL: board.best}
        values = {**board.values, OVERALL: {name: best.per_query for name, best in board.best.items()}}
        for run, measures in {**self.scores, OVERALL: self.best}.items():
            row = "best possible score" if run == OVERALL else f"run {run}"
            for measure, kept in measures.items():
                if measure not in cells.get(run, {}):
                    lines.append(f"{row}, {measure}: in the file, not computed now")
                    continue
                now = {**values[run][measure], "": cells[run][measure].mean}
                for query in sorted(kept.keys() | now.keys()):
                    old, new = kept.get(query), now.get(query)
                    is_same = old is new is None or (old is not None and new is not None and abs(old - new) <= slack)
                    if not is_same:
                        what = f"query {query}" if query else "mean"
                        lines.append(f"{row}, {measure}, {what}: {_number(old)} in the file, {_number(new)} now")
        return lines


def _number(value: float | None) -> str:
    return "none" if value is None else repr(value)


def _half_a_digit(rows: Iterable[_Columns]) -> float:
    """How far a number may be off by rounding to the places that the file has."""
    numbers = [value for row in rows for column in row.values() for value in column.values()]
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
    scores = _scores(content.get("runs", []), content.get("best", {}), name)
    # Where a run has this name, it is the best possible score: that was a row among the runs.
    best = {measure: column for measure, column in scores.pop(OVERALL).items() if column[""] is not None}
    try:
        parse_measures(measures)
        if settings.get("on_failed") is not None:
            check_on_failed(settings["on_failed"])
        # Numbers beyond 1e308 become infinite, and nothing can say those.
        canonical_json(settings)
    except (InputError, ValueError) as error:
        raise FormatError(str(error), path=name) from None
    return KeptBoard(measures, settings, grades, runs, qrels, str(content.get("signature_hash")), scores, best)


def _scores(runs: object, best: object, name: str) -> dict[str, dict[str, dict[str, float | None]]]:
    """Run -> measure -> query -> score, the mean under the empty id; the best possible one under its name."""
    try:
        return {
            row["run_id"]: {
                measure: {query: _score(value) for query, value in [*cell["per_query"].items(), ("", cell["mean"])]}
                for measure, cell in row["measures"].items()
            }
            for row in ({"run_id": OVERALL, "measures": best}, *runs)  # type: ignore[misc]
        }
    except (AttributeError, KeyError, OverflowError, TypeError):
        raise FormatError("has a run without scores", path=name, field="runs") from None


def _score(value: object) -> float | None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
        raise TypeError
    return None if value is None else float(value)


# How many queries a line names.
_NAMED = 5
_SAID = {"bank": "bank", "grades": "grader", "graders": "settings of the grader"}


@dataclass(frozen=True)
class Gates:
    """What a board has to pass.

    Attributes:
        limits: measure -> the least mean.
        name: the file of the kept board; empty for none.
        kept: what it says about how it was made.
        table: its scores.
        baseline: its run with which all are compared; empty where each is with the run of its name.
        by: how much lower a mean may be; None goes by the paired test.
        alpha: the significance level of the test.
    """

    limits: Mapping[str, float] = field(default_factory=dict)
    name: str = ""
    kept: KeptBoard | None = None
    table: LeaderboardTable | None = None
    baseline: str = ""
    by: float | None = None
    alpha: float = 0.05

    def failed(self, board: Leaderboard, runs: Sequence[str] | None = None) -> list[str]:
        """What a board fails, a line each, with how much it lacks and on which queries; empty where it passes.

        Args:
            board: the scores; with a kept board its first measure counts.
            runs: the runs that have to pass; None for all.

        Raises:
            InputError: a run has no run to be compared with, or shares no query with it.
            UnknownNameError: there is no such measure or run.
        """
        if not self.limits and self.kept is None:
            return []
        lines = runs_under(board, self.limits, runs)
        if self.kept is None or self.table is None:
            return lines
        now = board.signature.settings
        different = [_SAID[name] for name in _SAID if self.kept.settings.get(name) != now.get(name)]
        if different:
            warn(f"{self.name} was scored with another {' and other '.join(different)}: the difference may be theirs")
        measure = board.measures[0]
        values = self.table.per_query(column_named(measure, self.kept.measures))
        return lines + runs_worse(
            board,
            values,
            measure,
            baseline=self.baseline or None,
            by=self.by,
            alpha=self.alpha,
            runs=runs,
            name=Path(self.name).name,
        )


def read_gates(
    fail_under: Iterable[str] | Mapping[str, float] = (),
    fail_if_worse_than: str | os.PathLike[str] | None = None,
    *,
    by: float | None = None,
    alpha: float = 0.05,
) -> Gates:
    """The gates, with the kept board read: a board that is written later may take its place.

    Args:
        fail_under: the least means: `NuggetV=0.7`, or measure -> number.
        fail_if_worse_than: a board as JSON, with `:RUN` behind it where all runs are compared with that one; else each
            is with the run of its name, or with the only one. Worse is lower and told apart by a paired t-test over the
            queries that both have.
        by: worse is lower by more than this, whatever the test.
        alpha: the significance level.

    Raises:
        InputError: a limit is no limit, or there is nothing to be worse than.
        FormatError: the file is no board.
    """
    limits = fail_under if isinstance(fail_under, Mapping) else dict(map(parsed_limit, fail_under or ()))
    if fail_if_worse_than is None:
        if by is not None:
            text = "how much worse is too much is said, and not worse than what; name a kept board"
            raise InputError(text, settings=("by", "fail_if_worse_than"))
        return Gates(limits)
    path, baseline = os.fspath(fail_if_worse_than), ""
    if not Path(path).exists() and ":" in path:
        path, _, baseline = path.rpartition(":")

    return Gates(limits, path, read_board(path), read_leaderboard(path), baseline, by, alpha)


def parsed_limit(text: str) -> tuple[str, float]:
    """The measure and the least mean of `NuggetV=0.7`.

    Raises:
        InputError: it is of another form.

    >>> parsed_limit("NuggetV(strict=True)=0.7")
    ('NuggetV(strict=True)', 0.7)
    """
    name, _, number = text.rpartition("=")
    try:
        # A measure may end in a setting: `NuggetV(rel=4)` alone is no limit.
        least = float(number)
    except ValueError:
        least = math.nan
    if not name.strip() or not math.isfinite(least):
        raise InputError(f"limit {text!r}: expected MEASURE=NUMBER, as in NuggetV=0.7", settings=("fail_under",))
    return name.strip(), least


def runs_under(board: Leaderboard, limits: Mapping[str, float], runs: Sequence[str] | None = None) -> list[str]:
    """A line for each run and measure whose mean is under its limit, or that has none.

    Args:
        board: the scores.
        limits: measure -> the least mean that passes; `NuggetV` is the board's column of that measure.
        runs: the runs that have to pass; None for all.

    Raises:
        UnknownNameError: the board has no such measure or run.
    """
    lines = []
    for name, least in limits.items():
        measure = column_named(name, board.measures)
        for run in _chosen(board, runs):
            mean = board.cells[run][measure].mean
            if mean is None:
                lines.append(f"{measure} of {run} has no score, and {least:g} is the least")
            elif mean < least:
                values = board.values[run][measure]
                low = sorted((value, query) for query, value in values.items() if value is not None and value < least)
                said = _queries([(query, f"{value:.3g}") for value, query in low])
                lines.append(f"{measure} of {run} is {mean:.4f}, {least - mean:.4f} under {least:g}; lowest: {said}")
    return lines


def runs_worse(
    board: Leaderboard,
    kept: Mapping[str, Mapping[str, float]],
    measure: str,
    *,
    baseline: str | None = None,
    by: float | None = None,
    alpha: float = 0.05,
    runs: Sequence[str] | None = None,
    name: str = "the kept board",
) -> list[str]:
    """A line for each run that is worse than its baseline by one measure, over the queries that both have.

    Worse is lower and told apart by a two-sided paired t-test; with `by`, lower by more than that, whatever the test.

    Args:
        board: the scores.
        kept: run -> query -> score by the measure, of the board that is compared with.
        measure: the measure, as the board calls it.
        baseline: the run of `kept` with which all are compared; None takes the one of the same name, or the only one.
        by: how much lower a mean may be.
        alpha: the significance level.
        runs: the runs that have to pass; None for all.
        name: what the kept board is called, for messages.

    Raises:
        UnknownNameError: there is no such run.
        InputError: a run has no baseline, or shares no query with it.
    """
    from rubric_measures.analysis.comparison import compare_runs

    if by is not None and not by >= 0:
        raise InputError(f"a mean may be lower by 0 or more, not by {by:g}", settings=("by",))
    if baseline is not None and baseline not in kept:
        raise UnknownNameError("run", baseline, kept, where=name, settings=("fail_if_worse_than",))
    lines = []
    for run in _chosen(board, runs):
        other = baseline or (run if run in kept else next(iter(kept)) if len(kept) == 1 else None)
        if other is None:
            text = f"{name} has no run {run} to compare with; name one of {', '.join(kept)}"
            raise InputError(text, settings=("fail_if_worse_than",))
        ours = {query: value for query, value in board.values[run][measure].items() if value is not None}
        # Two names that are never the same.
        mine, theirs = f"{run} now", f"{other} before"
        found = compare_runs(
            {mine: ours, theirs: kept[other]}, measure, baseline=theirs, procedure="none", alpha=alpha, rounds=1
        )
        [pair] = found.pairs
        drop = -pair.test.mean_difference
        if drop <= 0 or not (pair.significant if by is None else drop > by + 1e-12):
            continue
        lost = sorted((ours[query] - kept[other][query], query) for query in found.queries)
        said = _queries([(query, f"{change:+.3g}") for change, query in lost if change < 0])
        p = "" if pair.p_adjusted is None else f" (p = {pair.p_adjusted:.2g}, {len(found.queries)} queries)"
        lines.append(f"{measure} of {run} is {drop:.4f} below {other} of {name}{p}; lost: {said}")
    return lines


def _chosen(board: Leaderboard, runs: Sequence[str] | None) -> list[str]:
    there = [run for run in board.ranking() if run not in BELOW]
    for run in runs or ():
        if run not in there:
            raise UnknownNameError("run", run, there)
    return there if runs is None else list(runs)


def _queries(changes: Sequence[tuple[str, str]]) -> str:
    said = ", ".join(f"{query} {value}" for query, value in changes[:_NAMED])
    return said + (f" and {len(changes) - _NAMED} more" if len(changes) > _NAMED else "")


_MANIFEST = "bundle.json"
_FORMAT = "rubric_measures bundle 1"
_BOARD = "board.json"
# Where texts are left out, this stands for one.
_DIGEST = "sha256:"


def bundle(
    folder: str | os.PathLike[str],
    board: str | os.PathLike[str],
    graded: str | os.PathLike[str],
    runs: Sequence[str | os.PathLike[str]] = (),
    *,
    bank: str | os.PathLike[str] | None = None,
    qrels: str | os.PathLike[str] | None = None,
    also: Sequence[str | os.PathLike[str]] = (),
    texts: bool = True,
    **chosen: Any,
) -> Path:
    """Collects an evaluation in a new folder, after it was recomputed from what goes in.

    The manifest that `grade` wrote beside the records (prompts as sent, settings, calls, costs) goes in by itself.

    Args:
        folder: the folder to make.
        board: the leaderboard, as `Board.render("json")` writes it.
        graded: what it was scored from.
        runs: the runs, where they are not inside.
        bank: the test bank.
        qrels: the judgments, where official measures stand beside ours.
        also: other files that belong to it: prompts, the ledger, other boards.
        texts: whether texts of passages, replies and reasons go in; else digests of the texts stand in graded records,
            and the replies are left out.
        chosen: which grades count, as for `load`.

    Returns:
        the folder.

    Raises:
        InputError: the folder exists, two files would have one name, or the board is not what the files give.
        FormatError: a file cannot be read.
    """
    target = Path(folder)
    if target.exists():
        raise InputError(f"{target}: exists; name a new folder", settings=("folder",))
    if not texts and content_of(path_name(graded)) != "records":
        raise InputError(f"{path_name(graded)}: only graded records can go without texts", settings=("texts",))
    given = {name: value for name, value in chosen.items() if value is not None}
    kept_board = read_board(board)
    grades = load(graded, bank, **{"on_failed": kept_board.on_failed, **given})
    _refuse(board, kept_board.differences(grades, [os.fspath(run) for run in runs] or None, qrels=qrels))
    # What `grade` wrote beside its records: prompts as sent, settings, calls and what they cost.
    beside = f"{path_name(graded)}.manifest.json"
    if Path(beside).is_file() and all(os.fspath(one) != beside for one in also):
        also = [*also, beside]
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}-") as temporary:
        made = Path(temporary) / "bundle"
        made.mkdir()
        shutil.copyfile(board, made / _BOARD)
        kept = {
            "graded": _put(made, graded, f"graded{''.join(Path(graded).suffixes)}", texts),
            "bank": None if bank is None else _put(made, bank, f"bank{''.join(Path(bank).suffixes)}"),
            "qrels": None if qrels is None else _put(made, qrels, f"qrels{''.join(Path(qrels).suffixes)}"),
            "runs": [_put(made, run, f"runs/{Path(run).name}") for run in runs],
            "also": [_put(made, one, f"also/{Path(one).name}") for one in also],
        }
        names = [_BOARD, *_names(kept)]
        manifest = {
            "format": _FORMAT,
            "texts": texts,
            "load": given,
            **kept,
            "files": {name: _digest(made / name) for name in names},
        }
        text = json.dumps(manifest, ensure_ascii=False, indent=1)
        (made / _MANIFEST).write_text(text + "\n", encoding="utf-8")
        if not texts:
            _refuse(board, check_bundle(made))
        made.rename(target)
    return target


def _refuse(board: str | os.PathLike[str], differences: Sequence[str]) -> None:
    """Refuses a board that is another one than the files give."""
    if differences:
        more = f" (and {len(differences) - 1} more)" if len(differences) > 1 else ""
        raise InputError(f"{path_name(board)}: is not what these files give: {differences[0]}{more}")


def _names(kept: Mapping[str, Any]) -> list[str]:
    single = [kept.get(name) for name in ("graded", "bank", "qrels")]
    return [*(name for name in single if name), *kept["runs"], *kept["also"]]


def _put(made: Path, source: str | os.PathLike[str], name: str, texts: bool = True) -> str:
    target = made / name
    if target.exists():
        raise InputError(f"{path_name(source)}: another file of the bundle is called {name}, too; rename one")
    target.parent.mkdir(exist_ok=True)
    if not texts:
        _without_texts(source, target)
        return name
    try:
        shutil.copyfile(source, target)
    except FileNotFoundError:
        raise InputError(f"{path_name(source)}: no such file") from None
    return name


def _digest(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _without_texts(source: str | os.PathLike[str], target: Path) -> None:
    """Graded records with digests in the place of texts, and without replies and reasons."""
    from rubric_measures.records.models import GradedPassage, QueryPassages, load_graded, write_graded

    def bare(passage: GradedPassage) -> GradedPassage:
        digest = _DIGEST + hashlib.sha256(passage.text.encode("utf-8")).hexdigest()
        sets = passage.exam_grades and [
            _fields_only(entry.replacing(answers=[(item, "") for item, _ in entry.answers]))
            for entry in passage.exam_grades
        ]
        labels = passage.grades and [_fields_only(entry.replacing(answer="")) for entry in passage.grades]
        changed = passage.replacing(text=digest, exam_grades=sets, grades=labels)
        # What the collection says about the passage may quote it.
        return changed.replacing(paragraph=None) if passage.paragraph is not None else changed

    write_graded(
        target,
        (QueryPassages(group.query_id, [bare(one) for one in group.passages]) for group in load_graded(source)),
    )


# What replies say stands in these fields of grade sets that other fields or programs add.
_WORDS = ("details", "llm_response_errors", "llm_response_error")


def _fields_only(entry: Any) -> Any:
    """A grade set without what quotes replies."""
    changed = {name: None for name in _WORDS if getattr(entry, name, None)}
    return entry.replacing(**changed) if changed else entry


def _manifest(folder: Path) -> dict[str, Any]:
    name = str(folder / _MANIFEST)
    content = parse_json(read_text(name), path=name)
    if not isinstance(content, dict) or content.get("format") != _FORMAT:
        raise FormatError("is no bundle; make one with `bundle`", path=name)
    fields = {"load": dict, "graded": str, "runs": list, "also": list, "files": dict}
    for key, kind in fields.items():
        if not isinstance(content.get(key), kind):
            raise FormatError(f"lacks {key}", path=name)
    for one in (*content["files"], *_names(content)):
        path = PurePosixPath(str(one))
        if path.is_absolute() or ".." in path.parts or "\\" in str(one):
            raise FormatError(f"names a file outside of the folder: {one!r:.60}", path=name)
    return content


def check_bundle(folder: str | os.PathLike[str]) -> list[str]:
    """What differs between a bundle and what is computed from it now, a line each; empty where nothing does.

    Files are held to their digests, then every number of the board is computed again.

    Raises:
        FormatError: the folder is no bundle.
        InputError: as of `score`.
    """
    at = Path(folder)
    content = _manifest(at)
    lines = []
    for name, digest in content["files"].items():
        if not (at / name).is_file():
            lines.append(f"{name}: is missing")
        elif _digest(at / name) != digest:
            lines.append(f"{name}: other content than when the bundle was made")
    unsaid = sorted(set(_names(content)) - set(content["files"]))
    lines += [f"{name}: without a digest" for name in unsaid]
    if any(not (at / name).is_file() for name in content["files"]):
        return lines
    board = read_board(at / _BOARD)
    bank = content.get("bank")
    chosen = {"on_failed": board.on_failed, **content["load"]}
    grades = load(at / content["graded"], None if bank is None else at / bank, **chosen)
    qrels = content.get("qrels")
    runs = [str(at / run) for run in content["runs"]] or None
    return lines + board.differences(grades, runs, qrels=None if qrels is None else at / qrels)


def compare_bundles(first: str | os.PathLike[str], second: str | os.PathLike[str]) -> list[str]:
    """What changed from one bundle to the other, a line each: inputs, and the ranks of runs by each measure.

    The first line says what it was: the judge (other grades of the same items), the bank, the runs, the settings, or
    several of them. Where the bank is another one, the judge is one only if its name or settings are.
    """
    manifests = [_manifest(Path(folder)) for folder in (first, second)]
    boards = [read_board(Path(folder) / _BOARD) for folder in (first, second)]
    old, new = boards
    runs = _changed(old.runs, new.runs)
    queries = _changed(old.grades, new.grades)
    judged = _changed(old.qrels, new.qrels)
    settings = [
        name
        for name in sorted(old.settings.keys() | new.settings.keys())
        if name not in ("scored", "runs", "bank", "graders", "grades", "version")
        and old.settings.get(name) != new.settings.get(name)
    ]
    is_bank = old.settings.get("bank") != new.settings.get("bank")
    graders = [name for name in ("graders", "grades") if old.settings.get(name) != new.settings.get(name)]
    causes = [
        name
        for name, is_so in (
            ("the bank", is_bank),
            ("the judge", bool(graders) if is_bank else bool(queries)),
            ("the judgments", bool(judged)),
            ("the runs", bool(runs)),
            ("the settings", bool(settings)),
        )
        if is_so
    ]
    lines = [f"changed: {' and '.join(causes)}" if causes else "nothing changed"]
    for name in (*settings, *graders):
        lines.append(f"{name}: {old.settings.get(name)} before, {new.settings.get(name)} now")
    if is_bank and all(one["bank"] for one in manifests):
        banks = [load_bank(Path(at) / one["bank"]) for at, one in zip((first, second), manifests, strict=True)]
        lines += _changed_items(*banks)
    # Digests of queries hold items and grades together.
    lines += [f"query {name}: other {'items or ' if is_bank else ''}grades" for name in queries]
    lines += [f"query {name}: other judgments" for name in judged]
    lines += [f"run {name}: other rankings" for name in runs]
    return lines + _moved(old, new)


def _changed(old: Mapping[str, str], new: Mapping[str, str]) -> list[str]:
    return [name for name in sorted(old.keys() | new.keys()) if old.get(name) != new.get(name)]


def _changed_items(old: TestBank, new: TestBank) -> list[str]:
    """What became of items, a line each."""
    # Items of two queries may have one id.
    before, now = ({(item.query_id, item.item_id): item for item in bank} for bank in (old, new))
    said = {key: "new" if key not in before else "changed" for key, item in now.items() if before.get(key) != item}
    said |= dict.fromkeys(before.keys() - now.keys(), "gone")
    return [f"query {query_id}, item {item_id}: {what}" for (query_id, item_id), what in sorted(said.items())]


def _moved(old: KeptBoard, new: KeptBoard) -> list[str]:
    """The runs whose rank among the runs of both changed, by each measure that both have."""
    from rubric_measures.analysis.correlation import ranks

    common = sorted(old.scores.keys() & new.scores.keys())
    lines = []
    for measure in (one for one in old.measures if one in new.measures):
        means = [[_mean(board, run, measure) for run in common] for board in (old, new)]
        before, after = (ranks(values).tolist() if values else [] for values in means)
        for place, run in enumerate(common):
            if before[place] != after[place]:
                lines.append(
                    f"{measure}: {run} from rank {before[place]:g} to {after[place]:g} "
                    f"({means[0][place]:.4f} to {means[1][place]:.4f})"
                )
    return lines


def _mean(board: KeptBoard, run: str, measure: str) -> float:
    mean = board.scores[run][measure][""]
    return float("-inf") if mean is None else round(mean, 12)


def check(
    board: Board,
    grades: Gradable,
    runs: Runs | None = None,
    *,
    facets: bool = False,
    per_facet: bool = False,
    compat: Compat | None = None,
) -> LeaderboardChecks:
    """What can be wrong beneath a board: unjudged passages, missing queries, ties that decide the winner.

    Grades and runs are read a second time, because checks need scores and grades at once.

    Args:
        board: what `score` gave; official measures, which read qrels, are not checked.
        grades: as for `score`.
        runs: as for `score`; files.
        facets: as for `score`.
        per_facet: as for `score`.
        compat: as for `score`; other programs' rules are not checked.

    Raises:
        InputError: the grades are standard input, which can be read only once; the runs are in memory, where ties are
            already broken; or `compat` is set.
    """
    from rubric_measures.analysis.board_reports import check_leaderboard
    from rubric_measures.measures.loading import RecordQuery

    known = load(grades)
    is_stdin = isinstance(known, RecordGrades) and known.records.name == "-"
    if compat is not None or is_stdin:
        raise InputError(
            "checks read the grades twice, and by our own rules: give a file, and no other program",
            settings=("checks", "compat"),
        )
    if board.inputs.qrels:
        # The grades say nothing of official measures.
        ours = [name for name in board.measures if is_supported(ir_measures.parse_measure(name))]
        board = replace(board, measures=ours)
    measures = [ir_measures.parse_measure(name) for name in board.measures]

    if runs is None:
        if not isinstance(known, RecordGrades):
            raise InputError("checks of rankings inside records need records", settings=("checks",))
        queries = units(known.records.queries(keep_ranks=True), facets, per_facet)
        return check_leaderboard(board, queries, measures, None, known.on_failed)
    if any(isinstance(run, Run) for run in run_list(runs)):
        raise InputError("ties are looked for in run files; runs in memory are in order already", settings=("checks",))
    whole = in_units(known, facets, per_facet).queries.items()
    queries = (RecordQuery(query, {}, {}, {}, [], part=name) for name, query in whole)
    return check_leaderboard(board, queries, measures, read_runs(runs), known.on_failed)
