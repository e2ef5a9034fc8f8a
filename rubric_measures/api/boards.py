"""Boards kept in files: checked, bundled, held to gates.

Checking a leaderboard file: was it made from these grades, this bank, these runs, with these settings?

Gates on a board: limits under which means may not fall.

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
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

import ir_measures
import msgspec
from msgspec import Struct
from msgspec.structs import asdict, replace

from rubric_measures.analysis.resampling import Tests
from rubric_measures.api.loading import (
    File,
    Gradable,
    RecordGrades,
    Runs,
    content_of,
    file_path,
    grader_of,
    load,
    load_bank,
    read_runs,
    run_list,
)
from rubric_measures.api.scoring import Board, Compat, in_units, score, units
from rubric_measures.base import tables
from rubric_measures.base.errors import FormatError, InputError, UnknownNameError, counted, tell
from rubric_measures.base.files import open_binary, path_name, read_text
from rubric_measures.base.json_text import parse_json
from rubric_measures.base.tables import Report, Table, columns
from rubric_measures.boards.board import (
    BELOW,
    ROUNDED,
    AskedBoard,
    Best,
    BoardInputs,
    Cell,
    Leaderboard,
    board_content,
)
from rubric_measures.formats.leaderboards import OWN_FORMAT
from rubric_measures.measures.grades import check_on_failed
from rubric_measures.measures.measure import column_named, is_supported, parse_measures, rubric_measures_of
from rubric_measures.types.entities import Run, Signature, TestBank, canonical_json

if TYPE_CHECKING:
    from ir_measures.measures.base import Measure

    from rubric_measures.api.comparing import Comparisons, Correlations
    from rubric_measures.boards.scoring import LeaderboardChecks
    from rubric_measures.measures.grade_sets import Grader
    from rubric_measures.measures.grades import Grades, OnFailed
    from rubric_measures.records.models import GradedPassage, QueryPassages

    _Change: TypeAlias = Callable[[QueryPassages], QueryPassages]

_T = TypeVar("_T")


def prove(
    board: Board, grades: Gradable, runs: Runs | None = None, *, qrels: Gradable | None = None, part: bool = False
) -> Proof:
    """Makes a board again, and compares every value of it, or of the file that it was read from.

    Numbers are compared to the places that the file has. Where inputs or settings differ, other numbers are no news
    and are not compared.

    Args:
        board: the board, or what `load_board` read.
        grades: as for `score`; load them with the same filters, and with `on_failed` of the board.
        runs: as for `score`.
        qrels: as for `score`.
        part: the grades are those of a certificate. Then every score has to be exact, and what hangs on all grades
            (digests, coverage, counts of failures, best possible scores) is claimed.

    Raises:
        InputError, FormatError, MeasureError: as of `score` and `report`; or the board does not say what it was scored
            from, or it has official measures and no qrels are given, or the other way round.
    """
    kept = board.content or parse_json(board.render("json", -1))
    settings = board.signature.settings
    if not board.inputs.runs:
        raise InputError("the board does not say what it was scored from; score again and keep the JSON")
    if bool(board.inputs.qrels) != (qrels is not None):
        text = "has official measures; give their qrels, too" if board.inputs.qrels else "was scored without qrels"
        raise InputError(f"the board {text}", settings=("qrels",))
    asked, wanted = asdict(board.asked), board.asked.report
    del asked["report"]
    measures: Any = settings.get("measures", board.measures)
    made = score(grades, runs, measures, qrels=qrels, **asked, notes=False)
    signature_hash = str(kept.get("signature_hash", ""))
    if part and (lacking := [name for name in board.measures if name not in made.exact]):
        text = f"{', '.join(lacking)}: not proved by a part of the grades, as needed ones failed or were never made"
        return Proof([text], {}, signature_hash)
    if wanted is None:
        content = board_content(made)
    else:
        from rubric_measures.analysis.board_reports import report_of
        from rubric_measures.api.reports import report

        options = asdict(wanted)
        del options["alpha"]
        named = ("rounds", "seed", "level", "correction", "smallest")
        options["tests"] = Tests(*(options.pop(name) for name in named))
        units = {name: asked[name] for name in ("facets", "per_facet", "compat")}
        checks = check(made, grades, runs, **units) if options.pop("checks") else None
        full = report_of(report(made, checks=checks, **options), -1).content
        content = {} if full is None else dict(full())
    # Another version of this package may prove a board; it then stands in the settings and in the signature.
    now = dict(made.signature.settings)
    claimed = ("version", "scored") if part else ("version",)
    now |= {name: settings[name] for name in claimed if name in now and name in settings}
    signature = Signature(now)
    content |= {"settings": now, "signature": str(signature), "signature_hash": signature.short}
    proof = _compared(kept, parse_json(canonical_json(content)), signature_hash, part)
    return replace(proof, exact=made.exact) if part else proof


class Proof(Struct, frozen=True):
    """What became of each value of a board, or of a bundle, when it was made again.

    Attributes:
        differences: what differs, a line each; empty where nothing does.
        values: the place of each value -> `proved` (computed again), `different`, `claimed` (nothing here can show it:
            who graded, what a text says) or `not looked at`.
        signature: of the board.
        digest: of all that a bundle holds, for a paper to cite; the same however its files are compressed.
        exact: where a certificate was there in the place of all grades, the measures whose scores it proves.
    """

    differences: Sequence[str]
    values: Mapping[str, Standing]
    signature: str
    digest: str = ""
    exact: Sequence[str] = ()

    def summary(self) -> list[str]:
        """A line on each kind of value: how many there are, and which."""
        lines = [f"exact, whatever the grades that are not here: {', '.join(self.exact)}"] if self.exact else []
        for standing in ("proved", "claimed", "not looked at"):
            names = [name for name, found in self.values.items() if found == standing]
            if standing == "proved" and names:
                lines.append(f"proved: {counted(len(names), 'value')}, computed again or held to their digest")
            elif names:
                # The part of a bundle or board that a value belongs to.
                is_claimed = standing == "claimed"
                deep = "settings/" if is_claimed else "also/"
                parts = ["/".join(one.split("/")[: 1 + one.startswith(deep)]) for one in names]
                parts = ["coverage and failures" if is_claimed and part == "runs" else part for part in parts]
                lines.append(f"{standing}: {', '.join(dict.fromkeys(parts))}")
        return lines

    def report(self) -> Report:
        """A row a value, for programs."""
        rows: list[list[tables.Cell]] = [[place, standing] for place, standing in self.values.items()]
        content = {
            "format": "rubric_measures check 1",
            "same": not self.differences,
            "differences": list(self.differences),
            "signature_hash": self.signature,
            "digest": self.digest or None,
            "exact": list(self.exact),
            "values": dict(self.values),
        }
        return Report([], [Table(columns(["value", "standing"], left=2), rows)], lambda: content)


Standing = Literal["proved", "different", "claimed", "not looked at"]
# What nobody can compute again: who graded, and how; what was asked for; which version computed the numbers first.
_CLAIMED = ("settings/grades", "settings/graders", "settings/version", "asked")
# What a certificate does not show either, as it hangs on all grades; and which of the values of a run.
_OF_ALL = ("settings/scored", "inputs/grades", "best", "exact")
_COUNTS = {"coverage", "failed", "failures"}
# The digests, and what is computed of them.
_INPUTS = ("inputs", "settings", "asked", "signature", "signature_hash")
_MADE_OF = {"grades": ("query", "grades or items"), "qrels": ("query", "judgments"), "runs": ("run", "rankings")}


def _compared(kept: Mapping[str, Any], now: Mapping[str, Any], signature: str = "", part: bool = False) -> Proof:
    """What a file says, held to what was made now; of a `part` of the grades as far as they show it."""
    found: dict[str, Standing] = {}
    lines: dict[bool, list[str]] = {True: [], False: []}
    slack = _half_a_digit(kept)
    # Another digest of an input says which query or run it is.
    digests = {"settings/scored", "settings/runs", "settings/qrels"}
    for path, old, new in _leaves(kept, now):
        place = "/".join(path)
        if part and (place.startswith(_OF_ALL) or _COUNTS.intersection(path[4:5])):
            found[place] = "claimed"
        elif _is_same(old, new, slack if ROUNDED.intersection(path) else 1e-12):
            found[place] = "claimed" if place.startswith(_CLAIMED) else "proved"
        elif path[-1] == "path" and path[0] in ("official", "leaderboards") and len(path) <= 3:
            # Where the files stood.
            found[place] = "claimed"
        elif path[0] == "prediction_powered":
            # Only the file of the assessors' scores could show it.
            found[place] = "not looked at"
        else:
            found[place] = "different"
            if place not in digests and path[0] not in ("signature", "signature_hash"):
                lines[path[0] in _INPUTS].append(_difference(path, old, new))
    if any(lines.values()) or "different" not in found.values():
        return Proof(lines[True] or lines[False], found, signature)
    forged = next(place for place, standing in found.items() if standing == "different")
    return Proof([f"{forged}: is not that of the settings"], found, signature)


_LACKS = object()


def _leaves(old: Any, new: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any, Any]]:
    """Each value of two JSON values, with its place; where only one has more below, that is one value."""
    if isinstance(old, list) and isinstance(new, list):
        names: list[list[Any]] = [
            [one.get("run_id") if isinstance(one, dict) else None for one in side] for side in (old, new)
        ]
        # Rows of runs go by their names, others by their places.
        if old and new and all(isinstance(name, str) for side in names for name in side):
            yield (*path, "order"), names[0], names[1]
        else:
            names = [[str(place) for place in range(len(side))] for side in (old, new)]
        old, new = (dict(zip(of, side, strict=True)) for of, side in zip(names, (old, new), strict=True))
    if isinstance(old, dict) and isinstance(new, dict) and (old or new):
        for name in [*old, *(one for one in new if one not in old)]:
            yield from _leaves(old.get(name, _LACKS), new.get(name, _LACKS), (*path, name))
    else:
        yield path, old, new


def _is_same(old: Any, new: Any, slack: float) -> bool:
    numbers = all(isinstance(one, int | float) and not isinstance(one, bool) for one in (old, new))
    # The order of a sum may differ from machine to machine.
    return abs(old - new) <= max(slack, 1e-9 * abs(new)) if numbers else type(old) is type(new) and old == new


def _half_a_digit(content: Mapping[str, Any]) -> float:
    """How far a number may be off by rounding to the places that the file has."""
    numbers = (old for path, old, _ in _leaves(content, content) if ROUNDED.intersection(path))
    places = max((len(repr(one).partition(".")[2]) for one in numbers if isinstance(one, float)), default=0)
    return float(0.5 * 10.0**-places) + 1e-12


def _difference(path: Sequence[str], old: Any, new: Any) -> str:
    """A value that differs, in words: what it is, and what it is in the file and now."""
    first, *rest = path
    if first == "inputs" and len(path) == 3:
        kind, what = _MADE_OF.get(path[1], (path[1], "content"))
        if old is _LACKS:
            return f"{kind} {path[2]}: given now, not in the file"
        return f"{kind} {path[2]}: " + ("in the file, not given now" if new is _LACKS else f"other {what}")
    if first in ("settings", "asked") and rest:
        return f"{'.'.join(rest)}: {_said(old)} in the file, {_said(new)} now"
    named = [one for one in rest if one != "measures"]
    if "per_query" in named:
        place = named.index("per_query")
        named[place : place + 2] = [f"query {' '.join(named[place + 1 :])}"]
    if named and first in ("runs", "best"):
        named = [f"run {named[0]}" if first == "runs" else f"best possible score, {named[0]}", *named[1:]]
        first = ""
    return f"{', '.join([first, *named] if first else named)}: {_said(old)} in the file, {_said(new)} now"


def _said(value: object) -> str:
    """A value of a file on a line."""
    if value is _LACKS:
        return "nothing"
    text = value if isinstance(value, str) else canonical_json(value)
    return text if len(text) <= 100 else f"{text[:100]}…"


def check_conclusions(path: str | os.PathLike[str], scores: Any, *others: Any, bank: Any = None) -> Proof:
    """Makes the comparisons or correlations of a file again, and compares every value of it.

    Args:
        path: what `compare` or `correlate` found, as JSON.
        scores: as for these: the board that it was made of, or the official one.
        others: the others.
        bank: of a grid.

    Raises:
        FormatError: it is no such file.
        InputError: as of `compare` and `correlate`.
    """
    from rubric_measures.analysis.board_reports import COMPARISONS
    from rubric_measures.analysis.leaderboards import CORRELATIONS
    from rubric_measures.api.comparing import AskedComparison, AskedCorrelation, compare, correlate

    problem = "is no comparison or correlation as JSON; write one with the output form json"
    name, content = _kept(path, (COMPARISONS, CORRELATIONS), problem)
    asked: Any
    made: Comparisons | Correlations
    if content["format"] == COMPARISONS:
        asked = asdict(_typed(AskedComparison, content.get("asked"), name))
        made = compare(scores, *others, **asked)
    else:
        asked = asdict(_typed(AskedCorrelation, content.get("asked"), name))
        made = correlate(scores, *others, **asked, bank=bank, notes=False)
    now = made.report().content
    return _compared(content, {} if now is None else now())


def _kept(path: str | os.PathLike[str], forms: tuple[str, ...], problem: str) -> tuple[str, dict[str, Any]]:
    """The name of a JSON file of ours and all that it says; `problem` is what is wrong with one of another format."""
    name = path_name(path)
    content = parse_json(read_text(name), path=name)
    if not isinstance(content, dict) or content.get("format") not in forms:
        raise FormatError(problem, path=name)
    return name, content


def _typed(kind: type[_T], content: object, name: str) -> _T:
    """What a file says, as a record of this type."""
    try:
        return msgspec.convert(content, kind)
    except msgspec.ValidationError as error:
        problem, _, place = str(error).partition(" - at ")
        raise FormatError(problem.replace("`", ""), path=name, field=place.strip("`$.")) from None


class _Scores(Cell, frozen=True, kw_only=True):
    per_query: dict[str, float | None]


class _Run(Struct, frozen=True):
    run_id: str
    missing_queries: list[str]
    measures: dict[str, _Scores]


class _Kept(Struct, frozen=True):
    """A leaderboard as JSON; see `board_content`."""

    measures: list[str]
    runs: list[_Run]
    settings: dict[str, Any]
    exact: list[str] | None = None
    best: dict[str, Best] = {}
    asked: AskedBoard = AskedBoard()
    inputs: BoardInputs = BoardInputs()


def load_board(source: File | Board) -> Board:
    """Reads a board that `Board.save` or the command `leaderboard` wrote (JSON).

    It has all numbers and settings of the board that was written, and can be rendered, drawn, compared and correlated
    likewise. `unknown`, `findings` and `said` are empty, as files say nothing of these; `content` is the file's.

    Args:
        source: the file. A `Board` is given back as it is.

    Raises:
        FormatError: it is no such file, or contradicts itself.
    """
    if isinstance(source, Board):
        return source
    with file_path(source) as path:
        name, content = _kept(path, (OWN_FORMAT,), "is no leaderboard as JSON; write one with `Board.save`")
        kept = _typed(_Kept, content, name)
        runs = {run.run_id: run.measures for run in kept.runs}
        try:
            # Numbers beyond 1e308 become infinite, and nothing can say those.
            canonical_json(content)
            parse_measures(msgspec.convert(kept.settings.get("measures", []), list[str]))
            if (on_failed := kept.settings.get("on_failed")) is not None:
                check_on_failed(on_failed)
        except (InputError, ValueError) as error:
            raise FormatError(str(error), path=name) from None
        if len(runs) < len(kept.runs) or any(list(row) != kept.measures for row in runs.values()):
            raise FormatError("has a run twice, or one without a measure of the board", path=name)
    return Board(
        kept.measures,
        {run: {one: found.per_query for one, found in row.items()} for run, row in runs.items()},
        {run: {one: Cell(*(getattr(found, name) for name in Cell.__struct_fields__)) for one, found in row.items()}
         for run, row in runs.items()},
        Signature(kept.settings),
        {run.run_id: run.missing_queries for run in kept.runs if run.missing_queries},
        inputs=kept.inputs,
        best=kept.best,
        asked=kept.asked,
        inexact=None if kept.exact is None else [one for one in kept.measures if one not in kept.exact],
        content=content,
    )  # fmt: skip


# How many queries a line names.
_NAMED = 5


@dataclass(frozen=True)
class Gates:
    """What a board has to pass.

    Attributes:
        limits: measure -> the least mean.
        run: the run that has to pass; None for all.
    """

    limits: Mapping[str, float] = field(default_factory=dict)
    run: str | None = None

    def refuse_others(self, measures: Sequence[Measure]) -> None:
        """Refuses limits on measures that a board will not have.

        Raises:
            InputError: there is one.
        """
        names = {measure.NAME for measure in measures}
        for name in self.limits:
            if not {measure.NAME for measure in parse_measures(name)} <= names:
                has = f"the measures are {', '.join(map(str, measures))}; name it among them"
                raise InputError(f"{name} has a limit and is not computed: {has}", settings=("fail_under", "measures"))

    def failed(self, board: Leaderboard, runs: Sequence[str] | None = None) -> list[str]:
        """What a board fails, a line each, with how much it lacks and on which queries; empty where it passes.

        Args:
            board: the scores.
            runs: the runs that have to pass, where the gates name none; None for all.

        Raises:
            UnknownNameError: there is no such measure or run.
        """
        there = [run for run in board.ranking() if run not in BELOW]
        chosen = [self.run] if self.run is not None else there if runs is None else list(runs)
        for run in chosen:
            if run not in there:
                raise UnknownNameError("run", run, there, settings=("run",))
        return list(self._under(board, chosen)) if self.limits else []

    def _under(self, board: Leaderboard, runs: Sequence[str]) -> Iterator[str]:
        """A line for each run and measure whose mean is under its limit, or that has none."""
        for name, least in self.limits.items():
            measure = column_named(name, board.measures)
            for run in runs:
                mean = board.cells[run][measure].mean
                if mean is None:
                    yield f"{measure} of {run} has no score, and {least:g} is the least"
                elif mean < least:
                    values = board.values[run][measure]
                    scored = sorted((value, query) for query, value in values.items() if value is not None)
                    said = _queries([(query, f"{value:.3g}") for value, query in scored if value < least])
                    yield f"{measure} of {run} is {mean:.4f}, {least - mean:.4f} under {least:g}; lowest: {said}"


def read_gates(fail_under: Iterable[str] | Mapping[str, float] = (), run: str | None = None) -> Gates:
    """The gates.

    Args:
        fail_under: the least means: `NuggetV=0.7`, or measure -> number.
        run: the run that has to pass; None for all.

    Raises:
        InputError: a limit is no limit, or one that no mean can reach.
    """
    limits = fail_under if isinstance(fail_under, Mapping) else dict(map(parsed_limit, fail_under or ()))
    for name, least in limits.items():
        if least > 1 and all(map(is_supported, parse_measures(name))):
            text = f"limit {name}={least:g}: {name} is 1 at most; write {least / 100:g} for {least:g} %"
            raise InputError(text if least <= 100 else text.partition(";")[0], settings=("fail_under",))
    return Gates(limits, run)


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


def _queries(changes: Sequence[tuple[str, str]]) -> str:
    said = ", ".join(f"{query} {value}" for query, value in changes[:_NAMED])
    return said + (f" and {len(changes) - _NAMED} more" if len(changes) > _NAMED else "")


_MANIFEST = "bundle.json"
_FORMAT: Literal["rubric_measures bundle 1"] = "rubric_measures bundle 1"
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
    certificate: bool = False,
    grader: str | Grader | None = None,
    on_failed: OnFailed | None = None,
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
        certificate: of the grades in graded records only the few go in that prove the scores, whatever the others are.
        grader: whose grades count, see `load`.
        on_failed: see `load`; as the board has it by default.

    Returns:
        the folder.

    Raises:
        InputError: the folder exists, two files would have one name, or the board is not what the files give. Or a
            certificate is asked for, and the board has a measure or a setting that needs all grades.
        FormatError: a file cannot be read.
    """
    target = Path(folder)
    if target.exists():
        raise InputError(f"{target}: exists; name a new folder", settings=("folder",))
    if not (texts and not certificate) and content_of(path_name(graded)) != "records":
        text = f"{path_name(graded)}: only graded records can go without texts, or without some of the grades"
        raise InputError(text, settings=("certificate" if texts else "texts",))
    wanted, kept_board = grader_of(grader), load_board(board)
    asked = {"grader": None if wanted is None else str(wanted), "on_failed": on_failed}
    given = {name: value for name, value in asked.items() if value is not None}
    grades = load(graded, bank, grader=wanted, on_failed=kept_board.on_failed if on_failed is None else on_failed)
    _refuse(prove(kept_board, grades, [os.fspath(run) for run in runs] or None, qrels=qrels), board)
    counts: Counter[str] = Counter()
    changes: list[_Change] = [] if texts else [_without_texts]
    if certificate:
        changes.append(_proving(kept_board, grades, runs, counts))
    # What `grade` wrote beside its records: prompts as sent, settings, calls and what they cost.
    beside = f"{path_name(graded)}.manifest.json"
    if Path(beside).is_file() and all(os.fspath(one) != beside for one in also):
        also = [*also, beside]
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}-") as temporary:
        made = Path(temporary) / "bundle"
        made.mkdir()
        shutil.copyfile(board, made / _BOARD)
        manifest = Manifest(
            format=_FORMAT,
            texts=texts,
            certificate=certificate,
            load=given,
            graded=_put(made, graded, f"graded{''.join(Path(graded).suffixes)}", changes),
            bank=None if bank is None else _put(made, bank, f"bank{''.join(Path(bank).suffixes)}"),
            qrels=None if qrels is None else _put(made, qrels, f"qrels{''.join(Path(qrels).suffixes)}"),
            runs=[_put(made, run, f"runs/{Path(run).name}") for run in runs],
            also=[_put(made, one, f"also/{Path(one).name}") for one in also],
            files={},
        )
        manifest = replace(manifest, files={name: _digest(made / name) for name in manifest.named})
        text = json.dumps(asdict(manifest), ensure_ascii=False, indent=1)
        (made / _MANIFEST).write_text(text + "\n", encoding="utf-8")
        if changes:
            _refuse(check_bundle(made), board)
        made.rename(target)
    if certificate:
        tell(f"{counts['kept']} of {counts['given']} grades prove the scores; the others are left out")
    return target


def _refuse(proof: Proof, board: str | os.PathLike[str]) -> None:
    """Refuses a board that is another one than the files give."""
    if proof.differences:
        first, *rest = proof.differences
        more = f" (and {len(rest)} more)" if rest else ""
        raise InputError(f"{path_name(board)}: is not what these files give: {first}{more}")


def _put(made: Path, source: str | os.PathLike[str], name: str, changes: Sequence[_Change] = ()) -> str:
    target = made / name
    if target.exists():
        raise InputError(f"{path_name(source)}: another file of the bundle is called {name}, too; rename one")
    target.parent.mkdir(exist_ok=True)
    if changes:
        from rubric_measures.records.models import load_graded, write_graded

        write_graded(target, (reduce(lambda made, change: change(made), changes, one) for one in load_graded(source)))
        return name
    try:
        shutil.copyfile(source, target)
    except FileNotFoundError:
        raise InputError(f"{path_name(source)}: no such file") from None
    return name


def _digest(path: Path) -> str:
    """The digest of what a file holds, unpacked where it is compressed."""
    with open_binary(path) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()  # type: ignore[arg-type]


def _proving(board: Board, grades: Grades, runs: Sequence[str | os.PathLike[str]], counts: Counter[str]) -> _Change:
    """Leaves of a query the grades that prove its scores; counts those that are `given` and `kept`."""
    from rubric_measures.grading.lazy import NeededFor

    if board.asked.facets or board.asked.per_facet or board.asked.compat:
        text = "a board by facets, or by another program's rules, needs all grades"
        raise InputError(text, settings=("certificate",))
    measures = parse_measures(board.measures)
    # What judgments say needs no grades of ours.
    ours = [one for one in measures if is_supported(one)] if board.inputs.qrels else rubric_measures_of(measures)
    needed = NeededFor(tuple(ours), tuple(read_runs([os.fspath(run) for run in runs])) if runs else None)

    def cut(group: QueryPassages) -> QueryPassages:
        of_query = grades.queries[group.query_id]
        made, kept = needed.proving(group, of_query)
        counts.update(kept=kept, given=int(of_query.valid.sum()))
        return made

    return cut


def _without_texts(group: QueryPassages) -> QueryPassages:
    """A query with digests in the place of texts, and without replies and reasons."""

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

    return group._replace(passages=[bare(one) for one in group.passages])


# What replies say stands in these fields of grade sets that other fields or programs add.
_WORDS = ("details", "llm_response_errors", "llm_response_error")


def _fields_only(entry: Any) -> Any:
    """A grade set without what quotes replies."""
    changed = {name: None for name in _WORDS if getattr(entry, name, None)}
    return entry.replacing(**changed) if changed else entry


class Manifest(Struct, frozen=True, forbid_unknown_fields=True):
    """What a bundle says of its files."""

    format: Literal["rubric_measures bundle 1"]
    texts: bool
    load: dict[str, Any]
    graded: str
    bank: str | None
    qrels: str | None
    runs: list[str]
    also: list[str]
    files: dict[str, str]
    certificate: bool = False

    @property
    def named(self) -> list[str]:
        """The files that it names by what they are."""
        return [*(name for name in (_BOARD, self.graded, self.bank, self.qrels) if name), *self.runs, *self.also]


def _manifest(folder: Path) -> Manifest:
    if folder.is_file():
        raise FormatError("is a file, and a bundle is a folder", path=path_name(folder))
    name, content = _kept(folder / _MANIFEST, (_FORMAT,), "is no bundle; make one with `bundle`")
    manifest = _typed(Manifest, content, name)
    for one in (*manifest.files, *manifest.named):
        path = PurePosixPath(one)
        if path.is_absolute() or ".." in path.parts or "\\" in one:
            raise FormatError(f"names a file outside of the folder: {one!r:.60}", path=name)
    if links := sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_symlink()):
        raise FormatError(f"stands beside a link, {links[0]}; a bundle holds its files themselves", path=name)
    return manifest


def check_bundle(folder: str | os.PathLike[str]) -> Proof:
    """Makes the board of a bundle again, and compares every value with it.

    Files are held to their digests, and the folder to the files that its manifest names.

    Raises:
        FormatError: the folder is no bundle, or holds links.
        InputError: as of `score`.
    """
    at = Path(folder)
    manifest = _manifest(at)
    lines: list[str] = []
    values: dict[str, Standing] = {}
    there = {path.relative_to(at).as_posix() for path in at.rglob("*") if path.is_file()} - {_MANIFEST}
    for name in sorted({*manifest.files, *manifest.named, *there}):
        kept = manifest.files.get(name)
        if name not in there:
            lines.append(f"{name}: is missing")
        elif name not in manifest.named:
            lines.append(f"{name}: is not named by {_MANIFEST}")
        elif kept is None:
            lines.append(f"{name}: without a digest")
        elif _digest(at / name) != kept:
            lines.append(f"{name}: other content than when the bundle was made")
        else:
            values[name] = "not looked at" if name in manifest.also else "proved"
            continue
        values[name] = "different"
    board = load_board(at / _BOARD)
    digest = hashlib.sha256(canonical_json({"load": manifest.load, **manifest.files}).encode()).hexdigest()
    if there.isdisjoint(manifest.named) or not there.issuperset(manifest.named):
        # Nothing can be computed again.
        values |= {"/".join(path): "not looked at" for path, *_ in _leaves(board.content, board.content)}
        return Proof(lines, values, str(board.content.get("signature_hash", "")), digest)
    chosen = {"on_failed": board.on_failed, **manifest.load}
    bank, qrels = (None if name is None else at / name for name in (manifest.bank, manifest.qrels))
    grades = load(at / manifest.graded, bank, **chosen)
    runs = [str(at / run) for run in manifest.runs] or None
    proof = prove(board, grades, runs, qrels=qrels, part=manifest.certificate)
    return replace(proof, differences=[*lines, *proof.differences], values={**values, **proof.values}, digest=digest)


def compare_bundles(first: str | os.PathLike[str], second: str | os.PathLike[str]) -> list[str]:
    """What changed from one bundle to the other, a line each: inputs, and the ranks of runs by each measure.

    The first line says what it was: the judge (other grades of the same items), the bank, the runs, the settings, or
    several of them. Where the bank is another one, the judge is one only if its name or settings are.
    """
    manifests = [_manifest(Path(folder)) for folder in (first, second)]
    old, new = (load_board(Path(folder) / _BOARD) for folder in (first, second))
    before, now = old.signature.settings, new.signature.settings
    runs = _changed(old.inputs.runs, new.inputs.runs)
    queries = _changed(old.inputs.grades, new.inputs.grades)
    judged = _changed(old.inputs.qrels, new.inputs.qrels)
    settings = [
        name
        for name in sorted(before.keys() | now.keys())
        if name not in ("scored", "runs", "bank", "graders", "grades", "version") and before.get(name) != now.get(name)
    ]
    is_bank = before.get("bank") != now.get("bank")
    graders = [name for name in ("graders", "grades") if before.get(name) != now.get(name)]
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
        lines.append(f"{name}: {before.get(name)} before, {now.get(name)} now")
    if is_bank and all(one.bank for one in manifests):
        banks = [load_bank(Path(at) / str(one.bank)) for at, one in zip((first, second), manifests, strict=True)]
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


def _moved(old: Board, new: Board) -> list[str]:
    """The runs whose rank among the runs of both changed, by each measure that both have."""
    from rubric_measures.analysis.correlation import ranks

    common = sorted(old.cells.keys() & new.cells.keys())
    lines = []
    for measure in (one for one in old.measures if one in new.measures):
        means = [[_mean(board.cells[run][measure]) for run in common] for board in (old, new)]
        before, after = (ranks(values).tolist() if values else [] for values in means)
        for place, run in enumerate(common):
            if before[place] != after[place]:
                lines.append(
                    f"{measure}: {run} from rank {before[place]:g} to {after[place]:g} "
                    f"({means[0][place]:.4f} to {means[1][place]:.4f})"
                )
    return lines


def _mean(cell: Cell) -> float:
    return float("-inf") if cell.mean is None else round(cell.mean, 12)


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
    from rubric_measures.boards.scoring import check_leaderboard
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
