"""`run`: a chain of commands from a TOML file; a step is left out where nothing that it reads or writes changed."""

from __future__ import annotations

import argparse
import contextlib
import glob
import hashlib
import io
import json
import logging
import shlex
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rubric_measures import __version__
from rubric_measures.base.errors import FormatError, InputError, escaped
from rubric_measures.base.files import atomic_writer, read_text
from rubric_measures.base.json_files import parse_json

_LOG = logging.getLogger("rubric_measures")
_FORMAT = "rubric_measures/pipeline/1"
# What options (and the folder of `bundle`) write; all other values that name a file are read.
_WRITTEN = ("output", "plot", "report", "save", "manifest", "export", "folder")
# What changes with every call, and never a result.
_PASSED_OVER = (*_WRITTEN, "cache", "state")


class _Step(NamedTuple):
    """One command.

    Attributes:
        arguments: the command and its arguments, file patterns replaced by files.
        settings: all options with their values, those left out too.
        inputs: the files and folders that it reads.
        outputs: those that it writes.
    """

    arguments: list[str]
    settings: dict[str, Any]
    inputs: list[str]
    outputs: list[str]

    def __str__(self) -> str:
        return escaped(shlex.join(self.arguments))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    parser.add_argument("pipeline", metavar="PIPELINE.toml", help="the steps; paths in it are seen from its folder")
    parser.add_argument("--force", action="store_true", help="run all steps, also those that are up to date")
    parser.add_argument("--dry-run", action="store_true", help="say what would run, and why; run nothing")
    parser.epilog = """A step is a command; what it reads and writes is seen from its arguments, or stated:

  [[step]]
  run = "grade passages.jsonl.gz --bank questions.jsonl --model lexical -o graded.jsonl.gz"

  [[step]]
  run = "leaderboard graded.jsonl.gz runs/*.run --bank questions.jsonl -o board.json"
  inputs = ["settings.txt"]

Settings and digests stand in PIPELINE.manifest.json. A step runs again when its arguments, a file that it reads or
writes, or the version of this package changed; without a file that it writes it runs always.

example:
  rubric_measures run pipeline.toml"""


def run(options: argparse.Namespace) -> int:
    """Runs the command."""
    file = Path(options.pipeline)
    source = read_text(options.pipeline)
    manifest = file.with_suffix(".manifest.json")
    with contextlib.chdir(file.parent):
        steps = _steps(source, options.pipeline)
        kept = _kept(Path(manifest.name), str(manifest))
        return _run(steps, kept, Path(manifest.name), force=options.force, is_dry=options.dry_run)


def _run(steps: Sequence[_Step], kept: list[dict[str, Any]], manifest: Path, force: bool, is_dry: bool) -> int:
    from rubric_measures.cli import run_command

    worst = 0
    done: list[dict[str, Any]] = []
    # What an earlier step will write is not what it will be.
    stale: set[str] = set()
    made = {Path(name) for step in steps for name in step.outputs}
    for number, step in enumerate(steps, 1):
        before = kept[number - 1] if number <= len(kept) else {}
        reason = "all steps are asked for" if force else _reason(step, before, stale, made)
        if reason is None:
            _LOG.info("step %d of %d is up to date: %s", number, len(steps), step)
            done.append(before)
            continue
        _LOG.info("step %d of %d (%s): %s", number, len(steps), reason, step)
        if is_dry:
            stale.update(step.outputs)
            continue
        inputs = _digests(step.inputs, made)
        status = run_command(step.arguments)
        if status > 1:
            _LOG.warning("step %d ended with status %d; what is behind it was not run", number, status)
            return status
        worst = max(worst, status)
        # What is incomplete is tried again.
        entry = {"arguments": step.arguments, "settings": step.settings, "version": __version__, "status": status}
        done.append(entry | {"inputs": inputs, "outputs": _digests(step.outputs, made)})
        with atomic_writer(manifest) as stream:
            json.dump({"format": _FORMAT, "steps": done}, stream, indent=1, sort_keys=True)
            stream.write("\n")
    return worst


def _reason(step: _Step, before: Mapping[str, Any], stale: set[str], made: set[Path]) -> str | None:
    """Why a step has to run; None where it is up to date."""
    if not step.outputs:
        return "it writes no file"
    if not before:
        return "it was not run"
    if before["arguments"] != step.arguments:
        return "its arguments changed"
    if before["version"] != __version__:
        return f"it was run by version {before['version']}"
    if before["status"]:
        return "it was incomplete"
    for what, names in (("inputs", step.inputs), ("outputs", step.outputs)):
        recorded = before[what]
        if sorted(recorded) != sorted(names):
            return f"its {what} are others"
        for name in names:
            if name in stale:
                return f"{escaped(name)} is made anew"
            if not Path(name).exists():
                return f"{escaped(name)} is not there"
            if _digest(Path(name), made) != recorded[name]:
                return f"{escaped(name)} changed"
    return None


def _steps(source: str, path: str) -> list[_Step]:
    try:
        content = tomllib.loads(source)
    except (tomllib.TOMLDecodeError, RecursionError, ValueError) as error:
        raise FormatError(f"is no TOML ({error})", path=path) from None
    entries = content.get("step")
    if not isinstance(entries, list) or not entries or set(content) != {"step"}:
        raise FormatError("expected steps: [[step]], and run = the command with its arguments", path=path)
    steps: list[_Step] = []
    writers: dict[str, int] = {}
    for number, entry in enumerate(entries, 1):
        try:
            step = _step(entry)
        except InputError as error:
            raise FormatError(f"step {number}: {error}", path=path) from None
        if twice := next((name for name in step.outputs if name in writers), None):
            text = f"writes {twice}, as step {writers[twice]} does; give each step a file of its own"
            raise FormatError(f"step {number}: {text}", path=path)
        writers.update(dict.fromkeys(step.outputs, number))
        steps.append(step)
    for number, step in enumerate(steps, 1):
        if late := next((name for name in step.inputs if writers.get(name, 0) >= number), None):
            raise FormatError(f"step {number}: reads {late}, which step {writers[late]} writes", path=path)
    return steps


def _step(entry: Any) -> _Step:
    from rubric_measures.cli import COMMANDS, _command_parser

    known = {"run", "inputs", "outputs"}
    if not isinstance(entry, dict) or "run" not in entry or not set(entry) <= known:
        raise InputError(f"expected run, and where needed inputs and outputs; it has {', '.join(map(str, entry))}")
    words = entry["run"]
    try:
        words = shlex.split(words) if isinstance(words, str) else words
    except ValueError as error:
        raise InputError(f"run: {error}") from None
    for name in ("inputs", "outputs"):
        if not _is_texts(entry.get(name, [])):
            raise InputError(f"{name}: expected a list of files")
    if not _is_texts(words) or not words:
        raise InputError("run: expected a command with its arguments, as a text or a list of texts")
    words = words[1:] if words[0] == "rubric_measures" else words
    if not words or words[0] not in COMMANDS or words[0] == "run":
        raise InputError(f"run: {words[0] if words else ''!r} is no command; `rubric_measures --help` lists them")
    words = [words[0], *(name for word in words[1:] for name in _files(word))]
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
            settings = vars(_command_parser(words[0])[0].parse_intermixed_args(words[1:]))
    except SystemExit:
        raise InputError(said.getvalue().strip().partition("\n")[0]) from None
    outputs = [value for name in _WRITTEN for value in [settings.get(name)] if isinstance(value, str) and value != "-"]
    inputs = [name for option, value in settings.items() if option not in _PASSED_OVER for name in _named(value)]
    writes = sorted({*outputs, *entry.get("outputs", [])})
    reads = sorted({*inputs, *entry.get("inputs", [])})
    return _Step(words, json.loads(json.dumps(settings, default=str)), reads, writes)


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def _files(word: str) -> list[str]:
    """A word as the shell would pass it on: a pattern becomes the files that it fits."""
    if word.startswith("-") or not any(letter in word for letter in "*?"):
        return [word]
    found = sorted(glob.glob(word))  # noqa: PTH207 - the word may be absolute
    if not found:
        raise InputError(f"no file fits {word}")
    return found


def _named(value: object) -> Iterator[str]:
    """Values of options that may name files: what has the ending of one, or is there; also behind `scripted:`."""
    if isinstance(value, str):
        name = value if _is_there(value) else value.partition(":")[2]
        if name and _is_there(name):
            yield name
        elif Path(value).suffix in _ENDINGS or value.endswith(".gz"):
            yield value
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _named(one)


def _is_there(name: str) -> bool:
    try:
        return Path(name).exists()
    except (OSError, ValueError):
        # Too long for a file, or with a NUL.
        return False


# Of files that an earlier step will write.
_ENDINGS = (".jsonl", ".json", ".run", ".tsv", ".csv", ".txt", ".qrels", ".sqlite")


def _digests(names: Sequence[str], made: set[Path]) -> dict[str, str]:
    missing = next((name for name in names if not Path(name).exists()), None)
    if missing is not None:
        raise InputError(f"{missing}: no such file")
    return {name: _digest(Path(name), made) for name in names}


def _digest(path: Path, made: set[Path]) -> str:
    """The digest of a file, or of the files in a folder with their names: not of caches, or of what steps make."""
    found = hashlib.sha256()
    files = sorted(one for one in path.rglob("*") if one.is_file()) if path.is_dir() else [path]
    for one in files:
        if path.is_dir():
            if one in made or ".sqlite" in one.name or one.name.endswith(".manifest.json"):
                continue
            found.update(one.relative_to(path).as_posix().encode("utf-8", "surrogateescape") + b"\0")
        with one.open("rb") as stream:
            hashlib.file_digest(stream, lambda: found)
    return found.hexdigest()


def _kept(path: Path, name: str) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    content = parse_json(read_text(path), path=name)
    fields = {"arguments", "version", "status", "inputs", "outputs"}
    steps = content.get("steps") if isinstance(content, dict) and content.get("format") == _FORMAT else None
    if not isinstance(steps, list) or not all(isinstance(one, dict) and fields <= set(one) for one in steps):
        raise FormatError("is no manifest of a pipeline; move it away, and all steps run", path=name)
    return steps
