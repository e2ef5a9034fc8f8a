"""Boards kept in files: what they say, and what became of each value when it was made again.

Gates on a board: limits under which means may not fall.

A bundle: an evaluation as a folder that a stranger can check. Its manifest says what each file is.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, Literal, TypeVar

from ir_measures.measures.base import Measure
from msgspec import Struct
from msgspec.structs import asdict

from rubric_measures.base import tables
from rubric_measures.base.errors import FormatError, InputError, UnknownNameError, counted, some_of
from rubric_measures.base.files import open_binary, path_name, read_text
from rubric_measures.base.json_text import check_keys, parse_json, typed
from rubric_measures.base.tables import Report, Reported, Table, columns, in_lines
from rubric_measures.boards.board import Leaderboard
from rubric_measures.measures.grades import check_on_failed
from rubric_measures.measures.measure import column_named, is_supported, parse_measures
from rubric_measures.types.entities import BOARD_FORMAT, AskedBoard, BoardInputs, KeptBoard, Signature, canonical_json

_Board = TypeVar("_Board", bound=Leaderboard)


@dataclass(frozen=True, repr=False)
class Proof(Reported):
    """What became of each value of a board, of a bundle, or of conclusions, when it was made again.

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

    @property
    def holds(self) -> bool:
        """Whether nothing differs."""
        return not self.differences

    def _lines(self) -> Iterator[str]:
        """What differs, and a line on each kind of value: how many there are, and which."""
        yield from self.differences or [f"the same: signature {self.signature}" if self.signature else "the same"]
        if self.exact:
            yield f"exact, whatever the grades that are not here: {', '.join(self.exact)}"
        for standing in ("proved", "claimed", "not looked at"):
            names = [name for name, found in self.values.items() if found == standing]
            if standing == "proved" and names:
                yield f"proved: {counted(len(names), 'value')}, computed again or held to their digest"
            elif names:
                # The part of a bundle or board that a value belongs to.
                parts = ["/".join(one.split("/")[: 1 + one.startswith(("settings/", "also/"))]) for one in names]
                is_claimed = standing == "claimed"
                parts = ["coverage and failures" if is_claimed and part == "runs" else part for part in parts]
                yield f"{standing}: {', '.join(dict.fromkeys(parts))}"
        if self.digest and not self.differences:
            yield f"bundle sha256:{self.digest}"

    def report(self) -> Report:
        """Lines to read, and a row a value for programs."""
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
        return Report([in_lines(self._lines())], [Table(columns(["value", "standing"], left=2), rows)], lambda: content)


Standing = Literal["proved", "different", "claimed", "not looked at"]
# What nobody can compute again: who graded, and how; what was asked for; which version computed the numbers first.
_CLAIMED = ("settings/grades", "settings/graders", "settings/version", "asked")
# What a certificate does not show either, as it hangs on all grades; and which of the values of a run.
_OF_ALL = ("settings/scored", "inputs/grades", "best", "exact")
_COUNTS = {"coverage", "failed", "failures"}
# The digests, and what is computed of them.
_INPUTS = ("inputs", "settings", "asked", "signature", "signature_hash")


def compared(kept: Mapping[str, Any], now: Mapping[str, Any], signature: str = "", part: bool = False) -> Proof:
    """What a file says, held to what was made now; of a `part` of the grades as far as they show it."""
    found: dict[str, Standing] = {}
    lines: dict[bool, list[str]] = {True: [], False: []}
    # Another digest of an input says which query or run it is.
    digests = {"settings/scored", "settings/runs", "settings/qrels"}
    for path, old, new in _leaves(kept, now):
        place = "/".join(path)
        if part and (place.startswith(_OF_ALL) or _COUNTS.intersection(path[4:5])):
            found[place] = "claimed"
        elif _is_same(old, new):
            found[place] = "claimed" if place.startswith(_CLAIMED) else "proved"
        elif path[-1] == "path" and path[0] in ("official", "leaderboards") and len(path) <= 3:
            # Where the files stood.
            found[place] = "claimed"
        else:
            found[place] = "different"
            if place not in digests and path[0] not in ("signature", "signature_hash"):
                lines[path[0] in _INPUTS].append(f"{', '.join(path)}: {_said(old)} in the file, {_said(new)} now")
    if any(lines.values()) or "different" not in found.values():
        return Proof(lines[True] or lines[False], found, signature)
    forged = next(place for place, standing in found.items() if standing == "different")
    return Proof([f"{forged}: is not that of the settings"], found, signature)


def held(
    kept: Mapping[str, Any], now: dict[str, Any], signature: Signature, claimed: Sequence[str], part: bool = False
) -> Proof:
    """What a file with a signature says, held to what was made now; `claimed` are settings that need not be the same.

    Another version of this package may prove a file; it then stands in the settings and in the signature.
    """
    settings = dict(signature.settings)
    settings |= {name: one for name, one in kept["settings"].items() if name in claimed and name in settings}
    signed = Signature(settings)
    now |= {"settings": settings, "signature": str(signed), "signature_hash": signed.short}
    return compared(kept, parse_json(canonical_json(now)), str(kept.get("signature_hash", "")), part)


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


def unread(content: Mapping[str, Any]) -> dict[str, Standing]:
    """The values of a file that nobody looks at."""
    return {"/".join(path): "not looked at" for path, *_ in _leaves(content, content)}


def _is_same(old: Any, new: Any) -> bool:
    # What no float holds is compared as it is written.
    numbers = all(isinstance(one, int | float) and type(one) is not bool and abs(one) < 1e300 for one in (old, new))
    # The order of a sum may differ from machine to machine.
    return abs(old - new) <= max(1e-12, 1e-9 * abs(new)) if numbers else type(old) is type(new) and old == new


def _said(value: object) -> str:
    """A value of a file on a line."""
    if value is _LACKS:
        return "nothing"
    text = value if isinstance(value, str) else canonical_json(value)
    return text if len(text) <= 100 else f"{text[:100]}…"


def read_kept(path: str | os.PathLike[str], forms: tuple[str, ...], problem: str) -> tuple[str, dict[str, Any]]:
    """The name of a JSON file of ours and all that it says; `problem` is what is wrong with one of another format."""
    name = path_name(path)
    text = read_text(name)
    # A table of ours, say, is no damaged JSON.
    content = parse_json(text, path=name) if text.lstrip().startswith("{") else None
    if not isinstance(content, dict) or content.get("format") not in forms:
        raise FormatError(problem, path=name)
    check_keys(text, path=name)
    return name, content


def read_board(path: str | os.PathLike[str], kind: type[_Board]) -> _Board:
    """Reads a board that was written as JSON; its `content` is all that the file says.

    Raises:
        FormatError: it is no such file, or contradicts itself.
    """
    name, content = read_kept(path, (BOARD_FORMAT,), "is no leaderboard as JSON; write one with the output form json")
    kept = typed(KeptBoard, content, name)
    runs = {run.run_id: run.measures for run in kept.runs}
    measures = typed(list[str], kept.settings.get("measures", kept.measures), name)
    try:
        # Numbers beyond 1e308 become infinite, and nothing can say those.
        canonical_json(content)
        if kept.inputs is not None:
            parse_measures(measures)
        if (on_failed := kept.settings.get("on_failed")) is not None:
            check_on_failed(on_failed)
    except (InputError, ValueError) as error:
        raise FormatError(str(error), path=name) from None
    if len(runs) < len(kept.runs) or any(list(row) != kept.measures for row in runs.values()):
        raise FormatError("has a run twice, or one without a measure of the board", path=name)
    return kind(
        kept.measures,
        runs,
        Signature(dict(kept.settings)),
        {run.run_id: run.missing_queries for run in kept.runs if run.missing_queries},
        inputs=kept.inputs or BoardInputs({}, {}),
        best=kept.best,
        checks=kept.checks,
        asked=kept.asked or AskedBoard(),
        inexact=None if kept.exact is None else [one for one in kept.measures if one not in kept.exact],
        content=content,
    )


@dataclass(frozen=True)
class Gates:
    """What a board has to pass.

    Attributes:
        limits: measure -> the least mean.
        run: the run that has to pass; None for all.

    Raises:
        InputError: a limit is one that no mean can reach.
    """

    limits: Mapping[str, float] = field(default_factory=dict)
    run: str | None = None

    def __post_init__(self) -> None:
        for name, least in self.limits.items():
            if not (isinstance(name, str) and hasattr(least, "__float__")):
                raise InputError(f"{name!r}, {least!r}: expected the name of a measure, then the least mean")
            if least > 1 and all(map(is_supported, parse_measures(name))):
                text = f"limit {name}={least:g}: {name} is 1 at most; write {least / 100:g} for {least:g} %"
                raise InputError(text if least <= 100 else text.partition(";")[0], settings=("fail_under",))

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
        there = board.ranking()
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
                    values = board.cells[run][measure].per_query
                    scored = sorted((value, query) for query, value in values.items() if value is not None)
                    said = some_of(f"{query} {value:.3g}" for value, query in scored if value < least)
                    yield f"{measure} of {run} is {mean:.4f}, {least - mean:.4f} under {least:g}; lowest: {said}"


BUNDLE: Literal["rubric_measures bundle 2"] = "rubric_measures bundle 2"
MANIFEST, BOARD = "bundle.json", "board.json"


class _Loaded(Struct, forbid_unknown_fields=True):
    """Whose grades of a bundle count, and how failed ones do where its board does not say it."""

    grader: str | None = None
    on_failed: str | float | None = None


class Manifest(Struct, frozen=True, forbid_unknown_fields=True):
    """What a bundle says of its files."""

    format: Literal["rubric_measures bundle 2"]
    graded: str
    bank: str | None
    qrels: str | None
    runs: list[str]
    also: list[str]
    load: dict[str, Any]
    certificate: bool
    files: dict[str, str]

    @property
    def named(self) -> list[str]:
        """The files that it names by what they are."""
        names = (BOARD, self.graded, self.bank, self.qrels, *self.runs, *self.also)
        return [name for name in names if name is not None]

    @property
    def digest(self) -> str:
        """That of all that the bundle holds and says."""
        return hashlib.sha256(canonical_json(asdict(self)).encode()).hexdigest()

    def places(self, folder: Path) -> dict[str, Path]:
        """Where each file of a folder stands that it names: packed or unpacked, it is the same file."""
        places = {}
        for name in sorted({*self.files, *self.named}):
            other = folder / (name.removesuffix(".gz") if name.endswith(".gz") else f"{name}.gz")
            places[name] = other if other.is_file() and not (folder / name).is_file() else folder / name
        return places

    def held(self, folder: Path) -> tuple[list[str], dict[str, Standing]]:
        """What differs between the files of a folder and those that are named here, and what became of each."""
        wrong: dict[str, str] = {}
        places = self.places(folder)
        others = {path for path in folder.rglob("*") if path.is_file()} - {folder / MANIFEST, *places.values()}
        places |= {path.relative_to(folder).as_posix(): path for path in sorted(others)}
        for name, path in places.items():
            if not path.is_file():
                wrong[name] = "is missing"
            elif name not in self.named:
                wrong[name] = f"is not named by {MANIFEST}"
            elif name not in self.files:
                wrong[name] = "without a digest"
            elif digest_of(path) != self.files[name]:
                wrong[name] = "other content than when the bundle was made"
        # Nobody computes what was only packed, too.
        right: dict[str, Standing] = {name: "claimed" if name in self.also else "proved" for name in places}
        return [f"{name}: {what}" for name, what in wrong.items()], right | dict.fromkeys(wrong, "different")


def digest_of(path: Path) -> str:
    """The digest of what a file holds, unpacked where it is compressed."""
    with open_binary(path) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()  # type: ignore[arg-type]


def read_manifest(folder: Path) -> Manifest:
    """What a bundle says of its files.

    Raises:
        FormatError: the folder is no bundle, holds links or pipes, or names files outside of it.
    """
    if not (folder / MANIFEST).is_file():
        raise FormatError(f"is no bundle, which is a folder with a file {MANIFEST}", path=path_name(folder))
    name, content = read_kept(folder / MANIFEST, (BUNDLE,), "is of another version")
    manifest = typed(Manifest, content, name)
    typed(_Loaded, manifest.load, name)
    for one in (*manifest.files, *manifest.named):
        path = PurePosixPath(one)
        if not path.parts or path.is_absolute() or ".." in path.parts or "\\" in one:
            raise FormatError(f"names a file outside of the folder: {one!r:.60}", path=name)
    # Links lead out of it, and nobody has what a pipe says.
    odd = (path for path in folder.rglob("*") if path.is_symlink() or not (path.is_file() or path.is_dir()))
    if others := sorted(str(path.relative_to(folder)) for path in odd):
        raise FormatError(f"stands beside {others[0]}, which is no file; a bundle holds its files", path=name)
    return manifest
