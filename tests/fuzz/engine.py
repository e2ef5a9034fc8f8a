"""Runs cases: a number and a seed say which command, which file, which damage; workers are forked, and run many."""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import importlib
import io
import json
import math
import os
import pickle
import random
import re
import resource
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType
from typing import NoReturn

from rubric_measures.cli import main
from tests.fuzz.commands import JOBS, Job
from tests.fuzz.judging import End, verdict
from tests.fuzz.mutations import drawn, mutated, put
from tests.fuzz.seeds import make_seeds

__all__ = ["Outcome", "baselines", "run_case", "run_cases"]

# Seconds that a case may take, and after which the worker ends if even the alarm is not heard.
LIMIT, DEAD = 60, 150
_MEMORY = 4 << 30
# A worker is replaced after so many cases: what commands keep for good in a process would add up.
_SHIFT = 500
_COMMANDS = sorted({job.command for job in JOBS})
# How often each command is drawn: those that read many kinds of files often.
_OFTEN = {"convert": 6, "grade": 3, "leaderboard": 3, "generate": 2, "correlate": 2, "pool": 2, "check": 2}


class Hang(BaseException):
    """The time of a case is over; no handler of errors takes it for one."""


@dataclass
class Outcome:
    """How one case ended."""

    number: int
    command: str
    file: str
    mutation: str
    verdict: str
    line: str
    words: str


@dataclass(frozen=True)
class _Case:
    job: Job
    file: str
    mutation: str
    data: bytes
    at_line_end: bool


def _case(number: int, seed: str, seeds: Path) -> _Case:
    rng = random.Random(f"{seed}/{number}")
    command = rng.choices(_COMMANDS, [_OFTEN.get(name, 1) for name in _COMMANDS])[0]
    job = rng.choice([job for job in JOBS if job.command == command])
    file = rng.choice(job.files)
    if file.endswith("/"):
        file = str(rng.choice(sorted(path for path in (seeds / file).rglob("*") if path.is_file())).relative_to(seeds))
    mutation = drawn(rng)
    whole = (seeds / file).read_bytes()
    data = mutated(mutation, whole, rng, seeds)
    # The line ends of a file that is one JSON value mean nothing, and a cut is an error anyway.
    at_line_end = not data or data.endswith(b"\n") or whole[len(data) : len(data) + 1] in (b"\n", b"")
    # Of a database `cache size` counts what cannot be read in a row of its own.
    return _Case(job, file, mutation, data, at_line_end or file.endswith(".sqlite"))


def _arguments(job: Job, seeds: Path, damaged: str | None = None, data: bytes = b"") -> tuple[list[str], int | None]:
    """The words of a command with files in the place of names, and the process that fills a pipe."""
    child = None
    words = []
    for word in job.words:
        while "{" in word:
            start, end = word.index("{"), word.index("}")
            name = word[start + 1 : end]
            may_change = name.startswith("+")
            name = name.removeprefix("+")
            here = f"seeds/{name}"
            if name == damaged:
                here = f"damaged/{name}"
                if not Path(here).exists():
                    child = put(data, Path(here))
            elif name.endswith("/") and damaged is not None and damaged.startswith(name):
                here = f"damaged/{name}"
                shutil.copytree(seeds / name, here)
                (Path("damaged") / damaged).unlink()
                child = put(data, Path("damaged") / damaged)
            elif may_change:
                here = f"copies/{name}"
                shutil.copy(seeds / name, here)
            word = word[:start] + here.removesuffix("/") + word[end + 1 :]
        words.append(word)
    return words, child


class _Streams:
    """The standard streams of a worker: files that are emptied for each case, and read after it."""

    def __init__(self, folder: Path) -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        self._files = [os.open(folder / name, os.O_RDWR | os.O_CREAT) for name in ("stdin", "stdout", "stderr")]
        for number, file in enumerate(self._files):
            os.dup2(file, number)

    def fresh(self) -> None:
        for number in range(3):
            os.ftruncate(number, 0)
            os.lseek(number, 0, os.SEEK_SET)
        raw = [io.FileIO(number, mode, closefd=False) for number, mode in enumerate(("rb", "wb", "wb"))]
        sys.stdin = io.TextIOWrapper(io.BufferedReader(raw[0]), "utf-8")
        sys.stdout = io.TextIOWrapper(io.BufferedWriter(raw[1]), "utf-8")
        sys.stderr = io.TextIOWrapper(io.BufferedWriter(raw[2]), "utf-8", "backslashreplace", line_buffering=True)

    def read(self) -> tuple[bytes, str]:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
        with contextlib.suppress(Exception):
            sys.stderr.flush()
        texts = []
        for number in (1, 2):
            os.lseek(number, 0, os.SEEK_SET)
            with open(number, "rb", closefd=False) as stream:
                texts.append(stream.read())
        return texts[0], texts[1].decode("utf-8", "replace")


def _ring(_: int, __: FrameType | None) -> NoReturn:
    raise Hang


def _place(error: BaseException) -> str:
    """The innermost line of the package that an exception went through."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "/rubric_measures/" in frame.filename]
    frames = frames or traceback.extract_tb(error.__traceback__)
    names = [f"{frame.filename.rpartition('/rubric_measures/')[2]}:{frame.name}" for frame in frames[-1:-5:-1]]
    return f"{type(error).__name__} at {' < '.join(names)} ({' '.join(str(error).split())[:120]})"


def _run(job: Job, seeds: Path, streams: _Streams, damaged: str | None = None, data: bytes = b"") -> tuple[End, str]:
    for name in ("damaged", "out", "copies"):
        shutil.rmtree(name, ignore_errors=True)
        Path(name).mkdir()
    (Path("copies") / "exported").mkdir()
    words, child = _arguments(job, seeds, damaged, data)
    streams.fresh()
    status: int | None = None
    trouble = ""
    signal.setitimer(signal.ITIMER_REAL, LIMIT)
    try:
        status = main(words)
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else 2
    except Hang as error:
        trouble = f"hang: {_place(error)}"
    except BaseException as error:
        trouble = _place(error)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        if child is not None:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
    out, err = streams.read()
    files = {
        str(path.relative_to("out")): path.read_bytes() for path in sorted(Path("out").rglob("*")) if path.is_file()
    }
    files = {name: b"" if b"SQLite format 3" in data[:20] else data for name, data in files.items()}
    return End(
        status, out.replace(b"damaged/", b"seeds/"), err.replace("damaged/", "seeds/"), files, trouble
    ), " ".join(words)


def run_case(number: int, seed: str, seeds: Path, before: dict[Job, End], streams: _Streams) -> Outcome:
    """Runs one case in this process, in the current folder."""
    case = _case(number, seed, seeds)
    after, words = _run(case.job, seeds, streams, case.file, case.data)
    names = tuple(name.rstrip("/").rpartition("/")[2] for name in case.job.files)
    found = verdict(
        before[case.job],
        after,
        case.mutation,
        names,
        at_line_end=case.at_line_end,
        # In a database nothing stands between values: "2026-11-23Inf" is a day and a model of that name.
        has_none=re.search(rb"(?i)\b(nan|inf|infinity)\b|(?-i:Inf|NaN)", case.data) is not None,
    )
    line = after.trouble or (after.err.splitlines() or [""])[-1]
    if found == "long":
        line = max(after.err.splitlines(), key=len)
    if found in ("torn", "control"):
        line = f"{line} | {after.out[:200]!r} {list(after.files)}"
    return Outcome(number, case.job.command, case.file, case.mutation, found, line[:600], words)


def _forked(folder: Path, work: Callable[[_Streams], None]) -> int:
    """The id of a process that works in a folder of its own."""
    pid = os.fork()
    if pid:
        return pid
    try:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        os.chdir(folder)
        Path("seeds").symlink_to("../seeds")
        signal.signal(signal.SIGALRM, _ring)
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        work(_Streams(folder))
    except BaseException:
        Path(f"{folder}.broken").write_text(traceback.format_exc(), encoding="utf-8")
    finally:
        os._exit(0)


def _joined(pid: int, folder: Path) -> None:
    os.waitpid(pid, 0)
    broken = Path(f"{folder}.broken")
    if broken.exists():
        raise AssertionError(f"the engine itself failed: {broken.read_text(encoding='utf-8')}")


def baselines(folder: Path) -> dict[Job, End]:
    """Makes the seeds, and says how each command ends with undamaged files; in processes of their own."""
    found, seeds = folder / "baselines", folder / "seeds"
    seeds.mkdir()

    def make(_: _Streams) -> None:
        os.chdir(seeds)
        make_seeds(Path())

    _joined(_forked(folder / "making", make), folder / "making")

    def work(streams: _Streams) -> None:
        ends = [_run(job, seeds, streams)[0] for job in JOBS]
        found.write_bytes(pickle.dumps((ends, [name for name in sys.modules if name != "__main__"])))

    _joined(_forked(folder / "baseline", work), folder / "baseline")
    ends, modules = pickle.loads(found.read_bytes())
    for name in modules:
        # So that the workers have it already; what is made up at run time cannot be imported.
        with contextlib.suppress(Exception):
            importlib.import_module(name)
    wrong = [f"{' '.join(job.words)}: {end.trouble or end.err}" for job, end in zip(JOBS, ends, strict=True)
             if end.trouble or end.status not in (0, 1)]  # fmt: skip
    if wrong:
        raise AssertionError("commands fail with undamaged files:\n" + "\n".join(wrong))
    return dict(zip(JOBS, ends, strict=True))


def run_cases(
    folder: Path, seed: str, numbers: list[int], before: dict[Job, End], workers: int, seconds: float | None
) -> Iterator[Outcome]:
    """Runs the cases of these numbers and yields how they ended, a shift of a worker at a time.

    Args:
        folder: where to work; the seeds are in `seeds` there.
        seed: with a number it says what a case is.
        numbers: the cases.
        before: how the commands end with undamaged files.
        workers: processes at a time.
        seconds: no new case is begun after so many; None runs all.
    """
    seeds = folder / "seeds"
    end = math.inf if seconds is None else time.monotonic() + seconds
    live: dict[int, tuple[int, list[int]]] = {}
    waiting = [(index, numbers[index::workers]) for index in range(workers)]
    while waiting or live:
        for index, mine in waiting:
            if mine and time.monotonic() < end:
                live[_forked(folder / f"worker{index}", _shift(folder, index, mine, seed, before, end))] = index, mine
        waiting = []
        if live:
            pid, _ = os.wait()
            index, mine = live.pop(pid)
            log = folder / f"log{index}"
            begun, ended = [], []
            for line in log.read_text(encoding="utf-8").splitlines() if log.exists() else ():
                said = json.loads(line)
                (begun if isinstance(said, int) else ended).append(said)
            log.unlink(missing_ok=True)
            yield from (Outcome(**said) for said in ended)
            if len(begun) > len(ended):
                case = _case(begun[-1], seed, seeds)
                words = " ".join(case.job.words)
                yield Outcome(
                    begun[-1], case.job.command, case.file, case.mutation, "crash", "the process ended", words
                )
            elif (broken := folder / f"worker{index}.broken").exists():
                raise AssertionError(f"the engine itself failed: {broken.read_text(encoding='utf-8')}")
            waiting = [(index, mine[len(begun) :])]


def _shift(
    folder: Path, index: int, numbers: list[int], seed: str, before: dict[Job, End], end: float
) -> Callable[[_Streams], None]:
    """Runs some of the cases, and writes down which is begun and how each ended."""

    def work(streams: _Streams) -> None:
        gc.freeze()
        with open(folder / f"log{index}", "a", encoding="utf-8", buffering=1) as log:
            for number in numbers[:_SHIFT]:
                if time.monotonic() > end:
                    return
                print(number, file=log)
                # Where even the alarm is not heard.
                faulthandler.dump_traceback_later(DEAD, exit=True)
                outcome = run_case(number, seed, folder / "seeds", before, streams)
                faulthandler.cancel_dump_traceback_later()
                print(json.dumps(asdict(outcome)), file=log)

    return work
