"""Runs cases: a number and a seed say which command, which file, which damage; workers are forked, and run many."""

from __future__ import annotations

import contextlib
import gc
import importlib
import io
import json
import os
import random
import re
import resource
import select
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

__all__ = ["Outcome", "baselines", "run_case", "run_cases"]

# Seconds that a case may take, and after which the worker is killed if even the alarm is not heard.
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
        has_none=re.search(rb"(?i)\b(nan|inf|infinity)\b|\dInf", case.data) is not None,
    )
    line = after.trouble or (after.err.splitlines() or [""])[-1]
    if found == "long":
        line = max(after.err.splitlines(), key=len)
    if found in ("torn", "control"):
        line = f"{line} | {after.out[:200]!r} {list(after.files)}"
    return Outcome(number, case.job.command, case.file, case.mutation, found, line[:600], words)


def _child(folder: Path, work: Callable[[_Streams, int], None]) -> tuple[int, int]:
    """A forked process that works in a folder of its own; its id, and what it writes can be read here."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writing)
        return pid, reading
    try:
        os.close(reading)
        os.setpgid(0, 0)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        os.chdir(folder)
        Path("seeds").symlink_to("../seeds")
        signal.signal(signal.SIGALRM, _ring)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        work(_Streams(folder), writing)
    except BaseException:
        os.write(writing, f"broken {traceback.format_exc()!r}\n".encode())
    finally:
        os._exit(0)


def baselines(folder: Path) -> dict[Job, End]:
    """How each command ends with undamaged files, from a process of its own."""
    found = folder / "baselines.json"

    def work(streams: _Streams, writing: int) -> None:
        ends = [_run(job, folder / "seeds", streams)[0] for job in JOBS]
        rows = [
            {**asdict(end), "out": end.out.hex(), "files": {name: data.hex() for name, data in end.files.items()}}
            for end in ends
        ]
        modules = [name for name in sys.modules if name != "__main__"]
        found.write_text(json.dumps({"rows": rows, "modules": modules}), encoding="utf-8")
        os.write(writing, b"done\n")

    pid, reading = _child(folder / "baseline", work)
    with open(reading, encoding="utf-8") as stream:
        said = stream.read()
    os.waitpid(pid, 0)
    if said != "done\n":
        raise AssertionError(f"the commands cannot be run undamaged: {said}")
    told = json.loads(found.read_text(encoding="utf-8"))
    for name in told["modules"]:
        # So that the workers have it already; what is made up at run time cannot be imported.
        with contextlib.suppress(Exception):
            importlib.import_module(name)
    ends = [
        End(row["status"], bytes.fromhex(row["out"]), row["err"],
            {name: bytes.fromhex(data) for name, data in row["files"].items()}, row["trouble"])
        for row in told["rows"]
    ]  # fmt: skip
    wrong = [f"{' '.join(job.words)}: {end.trouble or end.err}" for job, end in zip(JOBS, ends, strict=True)
             if end.trouble or end.status not in (0, 1)]  # fmt: skip
    if wrong:
        raise AssertionError("commands fail with undamaged files:\n" + "\n".join(wrong))
    return dict(zip(JOBS, ends, strict=True))


@dataclass
class _Worker:
    pid: int
    reading: int
    numbers: list[int]
    rest: bytes = b""
    running: int | None = None
    since: float = 0.0


def run_cases(
    folder: Path, seed: str, numbers: list[int], before: dict[Job, End], workers: int, seconds: float | None
) -> Iterator[Outcome]:
    """Runs the cases of these numbers and yields how they ended, as they end.

    Args:
        folder: where to work; the seeds are in `seeds` there.
        seed: with a number it says what a case is.
        numbers: the cases.
        before: how the commands end with undamaged files.
        workers: processes at a time.
        seconds: no new case is begun after so many; None runs all.
    """
    seeds = folder / "seeds"
    end = None if seconds is None else time.monotonic() + seconds
    queues = [numbers[start::workers] for start in range(workers)]

    def start(index: int) -> _Worker:
        mine = queues[index][:_SHIFT]
        queues[index] = queues[index][_SHIFT:]

        def work(streams: _Streams, writing: int) -> None:
            gc.freeze()
            for number in mine:
                if end is not None and time.monotonic() > end:
                    return
                os.write(writing, f"start {number}\n".encode())
                outcome = run_case(number, seed, seeds, before, streams)
                os.write(writing, f"end {json.dumps(asdict(outcome))}\n".encode())

        pid, reading = _child(folder / f"worker{index}", work)
        return _Worker(pid, reading, mine, since=time.monotonic())

    live = {index: start(index) for index in range(workers) if queues[index]}
    try:
        while live:
            ready, _, _ = select.select([worker.reading for worker in live.values()], [], [], 1.0)
            for index, worker in list(live.items()):
                if worker.reading in ready:
                    data = os.read(worker.reading, 1 << 16)
                    if data:
                        *lines, worker.rest = (worker.rest + data).split(b"\n")
                        for line in lines:
                            what, _, said = line.decode("utf-8", "replace").partition(" ")
                            if what == "broken":
                                raise AssertionError(f"the engine itself failed in case {worker.running}: {said}")
                            worker.running = int(said) if what == "start" else None
                            worker.since = time.monotonic()
                            if what == "end":
                                yield Outcome(**json.loads(said))
                        continue
                    # It is gone.
                    os.close(worker.reading)
                    os.waitpid(worker.pid, 0)
                    del live[index]
                    if worker.running is not None:
                        yield _lost(worker.running, seed, seeds, "crash")
                        queues[index] = worker.numbers[worker.numbers.index(worker.running) + 1 :] + queues[index]
                    if queues[index] and (end is None or time.monotonic() < end):
                        live[index] = start(index)
                elif worker.running is not None and time.monotonic() - worker.since > DEAD:
                    os.killpg(worker.pid, signal.SIGKILL)
                    worker.since = time.monotonic()
    finally:
        for worker in live.values():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(worker.pid, signal.SIGKILL)
            os.waitpid(worker.pid, 0)


def _lost(number: int, seed: str, seeds: Path, how: str) -> Outcome:
    case = _case(number, seed, seeds)
    return Outcome(
        number, case.job.command, case.file, case.mutation, how, "the process ended", " ".join(case.job.words)
    )
