"""The Ray runner: two actors against one on a compute-bound model, and what a block costs the driver.

The model is a T5 of eight layers with random weights, bound by computing; every process has one thread. What counts is
the time from when every process has returned a block (Ray has started, all models are loaded) to when only the blocks
that were under way at the end are left. Two plain processes beside each other, without Ray and without a driver, say
how much more than one the machine can do at all (two processors may be threads of one core).
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import multiprocessing
import os
import random
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from rubric_measures.models import make_backend
from rubric_measures.models.base import Backend, Reply, Request
from rubric_measures.models.ray_runner import RayRunner
from rubric_measures.models.replies import ReplyCache
from rubric_measures.models.running import Job, LocalRunner, RunStats
from rubric_measures.types.scales import Message

ITEMS = 10


class Instant:
    """Replies at once: what is left is the way there and back."""

    model = "instant"
    deterministic = True
    context_tokens = None

    @property
    def options(self) -> Mapping[str, object]:
        return {}

    def count_tokens(self, text: str) -> int:
        return 0

    def complete(self, requests: Iterable[Request]) -> Iterator[tuple[Request, Reply]]:
        for request in requests:
            yield request, Reply("3")


def make_instant(model: str) -> Backend:
    return Signed(Instant())


def jobs(backend: Backend, passages: int, words: int, seed: int) -> Iterator[tuple[int, Job[list[object]]]]:
    """A job a passage, each of ten questions that show it."""
    draw = random.Random(seed)
    known = "the epidermis is an outer layer of skin a leap year has 366 days rivers carry water to the sea"

    def job(number: int) -> Job[list[object]]:
        text = " ".join(draw.choices(known.split(), k=words))
        prompts = [f"Question: What is {item}? Context {number}: {text} Answer:" for item in range(ITEMS)]
        options = {**backend.options, "temperature": 0.0, "max_tokens": 4}
        replies = yield [
            Request(backend.model, (Message("user", prompt),), options, tuple("012345"), group=f"p{number}")
            for prompt in prompts
        ]
        return [reply.raw.get("system_fingerprint") for reply in replies if reply.status == "ok"]

    return ((number, job(number)) for number in range(passages))


class Signed:
    """A backend whose replies say which process gave them."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self.model, self.options, self.context_tokens = backend.model, backend.options, backend.context_tokens
        self.deterministic = True

    def count_tokens(self, text: str) -> int:
        return self._backend.count_tokens(text)

    def complete(self, requests: Iterable[Request]) -> Iterator[tuple[Request, Reply]]:
        for request, reply in self._backend.complete(requests):
            yield request, dataclasses.replace(reply, raw={**reply.raw, "system_fingerprint": str(os.getpid())})


def make_signed(model: str, **options: Any) -> Backend:
    return Signed(make_backend(model, **options))


@dataclasses.dataclass(frozen=True)
class Measured:
    """What was done between two moments: seconds to the first one, calls a second, CPU seconds of this process."""

    start: float
    rate: float
    calls: int
    cpu: float

    def row(self, name: str) -> str:
        each = 1000 * self.cpu / self.calls if self.calls else float("nan")
        return f"| {name} | {self.start:.1f} | {self.calls} | {self.rate:.2f} | {each:.2f} | {os.getloadavg()[0]:.1f} |"


HEADER = (
    "| what | s to the start | calls after it | calls a s | ms of CPU here a call | load |\n|---|---|---|---|---|---|"
)


def measure(runner: LocalRunner, processes: int, passages: int, left: int, words: int, seed: int) -> Measured:
    """Runs the jobs; counts from a block of every process on, up to the last `left` passages."""
    stats = RunStats()
    began = time.perf_counter()
    first: tuple[float, float, int] | None = None
    last = (0.0, 0.0, 0)
    good, seen = 0, set[object]()
    for _, signed in runner.run(jobs(runner.backend, passages, words, seed), stats):
        good += len(signed)
        seen.update(signed)
        if stats.calls == last[2] or passages * ITEMS - stats.calls < left * ITEMS:
            continue
        last = time.perf_counter(), time.process_time(), stats.calls
        if first is None and len(seen) >= processes:
            first = last
    if first is None or good != passages * ITEMS:
        raise SystemExit(f"{good} replies of {passages * ITEMS}, {len(seen)} processes: take more --passages")
    seconds, cpu, calls = last[0] - first[0], last[1] - first[1], last[2] - first[2]
    return Measured(first[0] - began, calls / seconds if seconds else float("nan"), calls, cpu)


def plain(folder: str, options: Mapping[str, Any], passages: int, ready: Any, rates: Any) -> None:
    """One process without Ray: loads, waits for the others, runs."""
    backend = make_signed(f"hf:{folder}", **options)
    dict(LocalRunner(backend).run(jobs(backend, 4, 40, 1)))
    ready.wait()
    began = time.perf_counter()
    dict(LocalRunner(backend).run(jobs(backend, passages, 40, 2)))
    rates.put(passages * ITEMS / (time.perf_counter() - began))


def plain_rate(folder: str, options: Mapping[str, Any], processes: int, passages: int) -> float:
    """Calls a second of plain processes beside each other, together."""
    context = multiprocessing.get_context("spawn")
    ready, rates = context.Barrier(processes), context.Queue()
    started = [context.Process(target=plain, args=(folder, options, passages, ready, rates)) for _ in range(processes)]
    for process in started:
        process.start()
    found = [rates.get() for _ in started]
    for process in started:
        process.join()
    return sum(found)


def save_model(folder: Path) -> None:
    """A model that is small to load and has much to compute."""
    import torch
    from transformers import T5Config, T5ForConditionalGeneration

    from tests.hf_models import save_tokenizer

    torch.manual_seed(0)
    config = T5Config(
        vocab_size=len(save_tokenizer(folder)), d_model=256, d_kv=32, d_ff=1024, num_layers=4, num_heads=8,
        decoder_start_token_id=0, pad_token_id=0, eos_token_id=1, dropout_rate=0.0,
    )  # fmt: skip
    T5ForConditionalGeneration(config).save_pretrained(folder)


def speedup(passages: int, rounds: int) -> None:
    options = {"mode": "labels", "label_mass": 0.0, "dtype": "float32", "device": "cpu"}
    found: dict[str, list[float]] = {"plain": [], "ray": []}
    with tempfile.TemporaryDirectory() as folder:
        save_model(Path(folder))
        print(HEADER)
        for number in range(rounds):
            alone = [plain_rate(folder, options, processes, passages // 2) for processes in (1, 2)]
            found["plain"].append(alone[1] / alone[0])
            print(f"| one and two plain processes, round {number + 1} | | | {alone[0]:.2f}, {alone[1]:.2f} | | |")
            rates = []
            for actors in (1, 2):
                make = functools.partial(make_signed, f"hf:{folder}", **options)
                with ReplyCache(":memory:") as cache:
                    runner = RayRunner(make(), cache, make=make, actors=actors, batch_size=4)
                    measured = measure(runner, actors, passages, 24, 40, number)
                rates.append(measured.rate)
                print(measured.row(f"{actors} actors, round {number + 1}"), flush=True)
            found["ray"].append(rates[1] / rates[0])
    for name, ratios in found.items():
        print(f"{name}: two did {', '.join(f'{ratio:.2f}' for ratio in ratios)} times the work of one")


def overhead(blocks: int) -> None:
    print(HEADER)
    with tempfile.TemporaryDirectory() as folder:
        local = LocalRunner(Signed(Instant()), ReplyCache(f"{folder}/l"))
        print(measure(local, 1, 4_000, 0, 60, 1).row("local runner"), flush=True)
        for batch in (1, 16, 256):
            count = max(8, blocks if batch == 1 else blocks // (batch // 4))
            runner = RayRunner(
                Instant(),
                ReplyCache(f"{folder}/{batch}"),
                make=functools.partial(make_instant, "instant"),
                actors=1,
                batch_size=batch,
            )
            measured = measure(runner, 1, count * batch, 0, 60, 1)
            each = 1000 * measured.cpu / (measured.calls / ITEMS / batch)
            print(measured.row(f"{count} blocks of {batch} passages: {each:.1f} ms of CPU here a block"), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=("speedup", "overhead"))
    parser.add_argument("--passages", type=int, default=400, help="of each arm of speedup")
    parser.add_argument("--blocks", type=int, default=500, help="of overhead, those of one passage")
    parser.add_argument("--rounds", type=int, default=3)
    options: Any = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"  # else one actor alone would have as many threads as there are processors
    if options.part == "speedup":
        speedup(options.passages, options.rounds)
    else:
        overhead(options.blocks)


if __name__ == "__main__":
    # Only functions of a module that has a name can be made in other processes.
    from benchmarks.ray_grading import main as run

    run()
