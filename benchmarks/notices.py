"""What is noticed when files are well-formed but wrong, and what is said about files that are odd but right.

Each change of `notices_changes` is made to one file of a command, and the command line runs on it. A change is silent
where the exit status is 0, the numbers are others, and nothing is said that was not said of the unchanged files, too.
ir_measures computes the same files beside it where it can read them, in a process that never imports this package.
"""

from __future__ import annotations

import argparse
import gzip
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

from benchmarks.notices_changes import CHANGES, JOBS, UNTOLD, Change, ground_files
from benchmarks.notices_files import ANSWERING, RUNS
from benchmarks.notices_odd import Odd, odd_files, shared_files
from rubric_measures.cli import main as command_line

EXAMPLE = Path(__file__).parents[1] / "resources" / "example"
# What a note may name besides numbers: other names do not make it another note.
_NAMES = re.compile(r"\b(?:" + "|".join((*RUNS, *ANSWERING)) + r")\b|Team-\d+")
_NUMBERS = re.compile(r"\d+(?:[.,]\d+)*")
# What is said of the way, and not of what may be wrong.
_OF_THE_WAY = re.compile(r"signature |standard measures read the labels that the grades imply|labels count the items")
# Warnings of today that are right where they stand among the odd files: what is said on purpose is no alarm.
SAID_ON_PURPOSE = (r"does not rank .* scores 0 there",)
# A process for each, as some files end it (segmentation fault).
PEER = """
import json, os, sys, warnings
import ir_measures

def answer(qrels, runs, measures, told):
    measures = [ir_measures.parse_measure(name) for name in measures.split()]
    numbers, said = {}, ""
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for name in runs:
                judged = list(ir_measures.read_trec_qrels(qrels))
                ranked = list(ir_measures.read_trec_run(name))
                found = ir_measures.calc_aggregate(measures, judged, ranked)
                numbers[name.rpartition("/")[2]] = {str(key): round(value, 4) for key, value in found.items()}
        said = "; ".join(sorted({str(one.message) for one in caught}))
    except Exception as error:
        said = f"{type(error).__name__}: {error}"[:200]
    return [told, numbers, said]

for line in sys.stdin:
    asked = json.loads(line)
    pid = os.fork()
    if pid == 0:
        print(json.dumps(answer(*asked)), flush=True)
        os._exit(0)
    status = os.waitpid(pid, 0)[1]
    if status:
        print(json.dumps([asked[-1], {}, f"died with status {status}"]), flush=True)
"""


@dataclass(frozen=True)
class End:
    """How a command ended: its exit status, and what it wrote."""

    status: int
    out: str
    err: str

    @property
    def notes(self) -> set[str]:
        """What was said beside numbers: lines of standard error, and the head of a table, without numbers and names."""
        lines = [line for line in self.err.splitlines() if not _OF_THE_WAY.search(line)]
        return {_NUMBERS.sub("#", _NAMES.sub("RUN", text)) for text in (*lines, *self._heads())}

    def _heads(self) -> list[str]:
        head, _, rest = self.out.partition("\n")
        # Tables have a head; lines of measures and of qrels do not.
        return head.split("\t")[1:] if head.count("\t") > 1 and rest else []


def run(words: Sequence[str]) -> End:
    """Runs a command in the current folder, in a forked process: it could end it."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        pid = os.fork()
        if pid == 0:
            for number, stream in ((1, out), (2, err)):
                os.dup2(stream.fileno(), number)
            os._exit(_status(words))
        ended = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        if ended < 0:
            # What a measure's library left in memory may be in the way, which a user's process does not have.
            program = [sys.executable, "-m", "rubric_measures", *words]
            done = subprocess.run(program, capture_output=True, text=True, check=False)
            return End(done.returncode, done.stdout, done.stderr)
        texts = []
        for stream in (out, err):
            stream.seek(0)
            texts.append(stream.read().decode("utf-8", "replace"))
    return End(ended, *texts)


def _status(words: Sequence[str]) -> int:
    """Runs a command in this process; its exit status, 70 for a traceback."""
    sys.stdout = io.TextIOWrapper(io.FileIO(1, "w", closefd=False), "utf-8", write_through=True)
    sys.stderr = io.TextIOWrapper(io.FileIO(2, "w", closefd=False), "utf-8", "backslashreplace", write_through=True)
    try:
        return command_line(list(words))
    except SystemExit as error:
        return error.code if isinstance(error.code, int) else 2
    except BaseException:
        traceback.print_exc()
        return 70


def verdict(before: End, after: End) -> str:
    """refused, equal, noticed or silent; a traceback is no notice."""
    if after.status:
        return "refused" if after.status in (1, 2) else "silent"
    if after.out == before.out:
        return "equal"
    return "noticed" if after.notes - before.notes else "silent"


def put(folder: Path, files: Mapping[str, str | bytes]) -> None:
    """Writes files below a folder."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())


def example_files() -> dict[str, str]:
    """Questions of the example collection and their grades of what the seven runs rank."""
    answering = {path.stem for path in (EXAMPLE / "answers").iterdir()}
    lines = []
    with gzip.open(EXAMPLE / "graded.jsonl.gz", "rt", encoding="utf-8") as stream:
        for line in stream:
            query, passages = json.loads(line)
            kept = []
            for passage in passages:
                passage["exam_grades"] = [one for one in passage["exam_grades"] if one["prompt_type"] == "question"]
                data = passage["paragraph_data"]
                data["rankings"] = [one for one in data["rankings"] if one["method"] not in answering]
                if "answers" not in (passage.get("paragraph") or {}):
                    kept.append(passage)
            lines.append(json.dumps([query, kept]))
    return {
        "graded.jsonl": "\n".join(lines) + "\n",
        "questions.jsonl": (EXAMPLE / "questions.jsonl").read_text(encoding="utf-8"),
    }


# Of a worker: the unchanged files, which lie in its folder, and how the commands end with them.
_GROUND: dict[str, str] = {}
_BEFORE: dict[str, End] = {}
# What is odd but right; its functions stay in the process that forks the workers.
_ODD: list[Odd] = []


def _begin(folder: str) -> None:
    here = Path(folder) / str(os.getpid())
    here.mkdir()
    os.chdir(here)
    _GROUND.update(ground_files(example_files()))
    put(Path(), _GROUND)
    # So that forked processes have all modules already.
    kept = [os.dup(number) for number in (1, 2)]
    with open(os.devnull, "w") as nowhere:
        for number in (1, 2):
            os.dup2(nowhere.fileno(), number)
        for job in JOBS.values():
            command_line(list(job.words))
    for number, one in zip((1, 2), kept, strict=True):
        os.dup2(one, number)


def _before(job: str) -> End:
    if job not in _BEFORE:
        end = run(JOBS[job].words)
        if end.status:
            raise AssertionError(f"{job}: fails with unchanged files: {end.err}")
        _BEFORE[job] = end
    return _BEFORE[job]


def changed(place: int) -> tuple[str, str]:
    """How a change ends: one word, and what was said."""
    change = CHANGES[place]
    before = _before(change.job)
    path = Path(change.file)
    text = change.edit(_GROUND[change.file], _GROUND)
    try:
        put(Path(), {change.file: text})
        after = run(JOBS[change.job].words)
    finally:
        path.write_text(_GROUND[change.file], encoding="utf-8")
    said = [line for line in after.err.splitlines() if "signature " not in line]
    return verdict(before, after), " | ".join(said[:2])


def peers(folder: Path) -> dict[int, tuple[str, str]]:
    """How ir_measures ends with each change of files that it reads: refused, equal, noticed or silent."""
    files = ground_files(example_files())
    put(folder, files)
    asked: list[tuple[str, list[str], str, str | int]] = []
    for name, job in JOBS.items():
        if job.peer is not None:
            qrels, runs, measures = job.peer
            asked.append((str(folder / qrels), [str(folder / one) for one in runs], measures, name))
    for place, change in enumerate(CHANGES):
        peer = JOBS[change.job].peer
        if peer is None:
            continue
        qrels, runs, measures = peer
        here = folder / "changed" / str(place)
        put(here, {change.file: change.edit(files[change.file], files)})
        at = {name: str((here if name == change.file else folder) / name) for name in (qrels, *runs)}
        asked.append((at[qrels], [at[one] for one in runs], measures, place))
    lines = "".join(json.dumps(one) + "\n" for one in asked)
    done = subprocess.run([sys.executable, "-c", PEER], input=lines, capture_output=True, text=True, check=True)
    before: dict[str, dict[str, dict[str, float]]] = {}
    found: dict[int, tuple[str, str]] = {}
    for line in done.stdout.splitlines():
        told, numbers, said = json.loads(line)
        if isinstance(told, str):
            if said:
                raise AssertionError(f"ir_measures says of unchanged files: {said}")
            before[told] = numbers
        elif said:
            found[told] = "noticed", said
        else:
            found[told] = ("equal" if numbers == before[CHANGES[told].job] else "silent"), ""
    return found


def alarms(place: int) -> tuple[str, list[str]]:
    """What a command says of files that are odd but right, and should not; with what is odd."""
    odd = _ODD[place]
    with tempfile.TemporaryDirectory(dir=".") as made:
        put(Path(made), odd.files())
        end = run([word.replace("{}", made) for word in odd.words])
    lines = end.err.splitlines()
    found = [line for line in lines if ": warning: " in line and not any(re.search(one, line) for one in odd.right)]
    found = [line for line in found if not any(re.search(one, line) for one in SAID_ON_PURPOSE)]
    if end.status != odd.status:
        found.append(f"exit status {end.status}: {lines[-1] if lines else ''}")
    return odd.name, found


def _table(found: Sequence[tuple[str, str]], peer: Mapping[int, tuple[str, str]]) -> Iterable[str]:
    yield "| change of | changes | refused | noticed | silent | nothing tells | ir_measures: changes | silent |"
    yield "|---" * 8 + "|"
    groups = list(dict.fromkeys(change.group for change in CHANGES))
    for group in (*groups, "all"):
        places = [place for place, change in enumerate(CHANGES) if group in (change.group, "all")]
        ours = Counter(found[place][0] for place in places)
        untold = sum(found[place][0] == "silent" and CHANGES[place].name in UNTOLD for place in places)
        theirs = Counter(peer[place][0] for place in places if place in peer)
        both = sum(theirs.values()) - theirs["equal"]
        row = (
            group, len(places) - ours["equal"], ours["refused"], ours["noticed"], ours["silent"], untold,
            both or "", theirs["silent"] if both else "",
        )  # fmt: skip
        yield "| " + " | ".join(map(str, row)) + " |"
    same = [place for place in peer if peer[place][0] != "equal" and found[place][0] != "equal"]
    theirs, ours = (Counter(one[place][0] for place in same) for one in (peer, found))
    equal = sum(word == "equal" for word, _ in found)
    yield f"\n{equal} more changes leave the numbers equal, and are not counted."
    yield (
        "Nothing tells where the files are what right ones could be as well: only who made them knows.\n"
        f"Of the {len(same)} changes that alter numbers of both, ir_measures is silent in {theirs['silent']}, we in "
        f"{ours['silent']}."
    )


def _line(change: Change, said: str) -> str:
    words = " ".join(f"'{word}'" if re.search(r"[()\"' ]", word) else word for word in JOBS[change.job].words)
    return f"{change.group}: {change.file}: {change.name}\n    rubric_measures {words}" + (
        f"\n    {said}" if said else ""
    )


def main() -> int:
    """Makes all changes, runs the odd files, and prints the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.notices", description=__doc__)
    parser.add_argument("--list", action="store_true", help="print each silent change with its command")
    parser.add_argument("--said", action="store_true", help="print all other changes, too, with what is said")
    parser.add_argument("--keep", metavar="FOLDER", type=Path, help="put the files of each silent change there")
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)), help="processes")
    options = parser.parse_args()
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    _ODD.extend((*odd_files(), *shared_files()))
    with (
        tempfile.TemporaryDirectory() as made,
        ProcessPoolExecutor(options.workers, get_context("fork"), _begin, (made,)) as pool,
    ):
        ending = pool.map(changed, range(len(CHANGES)))
        cries = pool.map(alarms, range(len(_ODD)))
        peer = peers(Path(made) / "peers")
        found, cried = list(ending), list(cries)
    print("\n".join(_table(found, peer)))
    loud = [(name, said) for name, said in cried if said]
    print(f"\nOf {len(_ODD)} odd but right inputs, {len(loud)} with an alarm.")
    for name, said in loud:
        print(f"  {name}: " + " | ".join(said))
    silent = [place for place, (word, _) in enumerate(found) if word == "silent"]
    if options.keep is not None:
        files = ground_files(example_files())
        for place in silent:
            change = CHANGES[place]
            put(options.keep / f"{place:03d}", {**files, change.file: change.edit(files[change.file], files)})
    if options.list:
        print("\nSilent:")
        for tells in (True, False):
            if not tells:
                print("\nSilent, and nothing in the files tells:")
            ours = [place for place in silent if (CHANGES[place].name in UNTOLD) != tells]
            print("\n".join(f"{place:03d} " + _line(CHANGES[place], "") for place in ours))
        print("\nSilent in ir_measures:")
        quiet = [place for place, (word, _) in peer.items() if word == "silent"]
        print("\n".join(f"{place:03d} {CHANGES[place].file}: {CHANGES[place].name}" for place in quiet))
    if options.said:
        for word in ("equal", "refused", "noticed"):
            print(f"\n{word}:")
            places = [place for place, (one, _) in enumerate(found) if one == word]
            print("\n".join(f"{place:03d} " + _line(CHANGES[place], found[place][1]) for place in places))
    return 0


if __name__ == "__main__":
    sys.exit(main())
