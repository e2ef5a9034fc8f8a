"""The Ray runner: two actors against one on a compute-bound model, and what a block costs the driver.

The model is a T5 of eight layers with random weights, bound by computing. Every actor has one thread. The time until
the first block is back (Ray starts, actors load) is measured apart from the rate after it.
"""

from __future__ import annotations

import argparse
import os
import random
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from rubric_measures.backends.base import Backend, Message, Reply, Request
from rubric_measures.backends.cache import ReplyCache
from rubric_measures.runners import Job, LocalRunner, RunStats
from rubric_measures.runners.ray_pool import RaySettings
from rubric_measures.runners.ray_runner import RayRunner, ray_backend
from rubric_measures.runners.ray_worker import BackendSpec

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
    return Instant()


def jobs(backend: Backend, passages: int, words: int, seed: int) -> Iterator[tuple[int, Job[int]]]:
    """A job a passage, each of ten questions that show it."""
    draw = random.Random(seed)
    known = "the epidermis is an outer layer of skin a leap year has 366 days rivers carry water to the sea"

    def job(number: int) -> Job[int]:
        text = " ".join(draw.choices(known.split(), k=words))
        prompts = [f"Question: What is {item}? Context {number}: {text} Answer:" for item in range(ITEMS)]
        options = {**backend.options, "temperature": 0.0, "max_tokens": 4}
        replies = yield [
            Request(backend.model, (Message("user", prompt),), options, tuple("012345"), group=f"p{number}")
            for prompt in prompts
        ]
        return sum(reply.status == "ok" for reply in replies)

    return ((number, job(number)) for number in range(passages))


def actor_seconds() -> float:
    """CPU seconds of all actors so far."""
    ticks = 0
    for folder in Path("/proc").iterdir():
        try:
            if (folder / "cmdline").read_bytes().startswith(b"ray::MapWorker"):
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
                ticks += int(fields[11]) + int(fields[12])
        except OSError:
            continue
    return ticks / os.sysconf("SC_CLK_TCK")


def measure(name: str, runner: LocalRunner, passages: int, words: int, seed: int) -> None:
    """Prints one row: start, rate after the first block, CPU of actors and of this process."""
    stats = RunStats()
    start, cpu = time.perf_counter(), time.process_time()
    first: tuple[float, int, float] | None = None
    last = (0.0, 0, 0.0)
    good = 0
    for _, ok in runner.run(jobs(runner.backend, passages, words, seed), stats):
        good += ok
        if stats.calls != last[1]:
            last = time.perf_counter(), stats.calls, actor_seconds() if passages < 2000 else 0.0
            first = first or last
    assert first is not None and good == passages * ITEMS, (good, stats)
    seconds, calls, actors = (b - a for a, b in zip(first, last, strict=True))
    rate = calls / seconds if seconds else float("nan")
    used = time.process_time() - cpu
    print(
        f"| {name} | {first[0] - start:.1f} | {rate:.2f} | {1000 * actors / calls if calls else 0:.0f} | "
        f"{used:.1f} | {os.getloadavg()[0]:.1f} |",
        flush=True,
    )


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
    print("| what | s to the first block | calls a s after it | ms of CPU of the actors a call | CPU s here | load |")
    print("|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        save_model(Path(folder))
        for number in range(rounds):
            for actors in (1, 2):
                settings = RaySettings(actors=actors, gpus_per_actor=0, batch_size=2)
                options = {"mode": "labels", "label_mass": 0.0, "dtype": "float32"}
                backend, spec, settings = ray_backend(f"hf:{folder}", options, settings)
                runner = RayRunner(backend, ReplyCache(":memory:"), spec=spec, settings=settings)
                measure(f"{actors} actors, round {number + 1}", runner, passages, 40, number)


def overhead(passages: int) -> None:
    print("| what | s to the first block | calls a s after it | – | CPU s here | load |")
    print("|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        measure("local runner", LocalRunner(Instant(), ReplyCache(f"{folder}/l")), passages, 60, 1)
        for batch in (1, 16, 256):
            count = min(passages, 500 * batch)
            runner = RayRunner(
                Instant(),
                ReplyCache(f"{folder}/{batch}"),
                spec=BackendSpec("instant", {}, make_instant),
                settings=RaySettings(actors=1, gpus_per_actor=0, batch_size=batch),
            )
            measure(f"{count // batch} blocks of {batch} passages", runner, count, 60, 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=("speedup", "overhead"))
    parser.add_argument("--passages", type=int)
    parser.add_argument("--rounds", type=int, default=2)
    options: Any = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"  # else one actor alone would have as many threads as there are processors
    if options.part == "speedup":
        speedup(options.passages or 40, options.rounds)
    else:
        overhead(options.passages or 20_000)


if __name__ == "__main__":
    # Only functions of a module that has a name can be made in other processes.
    from benchmarks.ray_grading import main as run

    run()
