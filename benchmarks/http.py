"""How near the OpenAI-compatible backend comes to what a loopback server can give, and whether memory stays flat.

Run as `python -m benchmarks.http` from the repository root. Server and client are two processes on the same cores. All
figures of a line come from one run, in turns, because other work on the machine shifts them together.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import resource
import statistics
import time
from collections.abc import Callable, Iterator

from rubric_measures.models.base import Request
from rubric_measures.models.openai import OpenAICompatible
from rubric_measures.types.scales import Message
from tests.fault_server import Running, running

CONCURRENCY = 64


def ours(server: Running, count: int) -> float:
    """Calls a second of the backend."""
    backend = OpenAICompatible("m", server.url, concurrency=CONCURRENCY)
    began = time.perf_counter()
    done = sum(reply.status == "ok" for _, reply in backend.complete(requests(count)))
    assert done == count
    return count / (time.perf_counter() - began)


def client_alone(server: Running, count: int, aiohttp: bool = True) -> float:
    """Calls a second of the openai client by itself: as many workers, nothing around them."""
    return asyncio.run(_client_alone(server, count, aiohttp))


async def _client_alone(server: Running, count: int, aiohttp: bool) -> float:
    import openai

    transport = openai.DefaultAioHttpClient() if aiohttp else None
    async with openai.AsyncOpenAI(api_key="none", base_url=server.url, http_client=transport, max_retries=0) as client:
        numbers = iter(range(count))

        async def work() -> None:
            for number in numbers:
                message = {"role": "user", "content": f"id={number}"}
                await client.chat.completions.create(model="m", messages=[message], temperature=0)  # type: ignore

        began = time.perf_counter()
        await asyncio.gather(*(work() for _ in range(CONCURRENCY)))
        return count / (time.perf_counter() - began)


def requests(count: int) -> Iterator[Request]:
    """Short requests, made as they are pulled; groups of ten."""
    for number in range(count):
        yield Request("m", (Message("user", f"id={number}"),), {"temperature": 0}, group=f"g{number // 10}")


def compare(delay: float, count: int, rounds: int) -> None:
    """Prints the rates of one delay: ours, the client's transports, and what the server allows."""
    ways: dict[str, Callable[[Running], float]] = {
        "backend": lambda server: ours(server, count),
        "client, aiohttp": lambda server: client_alone(server, count),
        "client, default": lambda server: client_alone(server, count, aiohttp=False),
    }
    rates: dict[str, list[float]] = {name: [] for name in ways}
    spent: dict[str, list[float]] = {name: [] for name in ways}
    with running(delay=delay, remember=0) as server:
        ours(server, CONCURRENCY)  # imports are not what is measured
        for _, (name, way) in itertools.product(range(rounds), ways.items()):
            began = time.process_time()
            rates[name].append(way(server))
            spent[name].append((time.process_time() - began) / count * 1000)
    bound = CONCURRENCY / delay
    for name, found in rates.items():
        middle = statistics.median(found)
        print(
            f"{delay * 1000:3.0f} ms  {name:16} {middle:5.0f}/s  {middle / bound:6.1%} of {bound:.0f}/s, "
            f"best {max(found) / bound:6.1%}, {statistics.median(spent[name]):.2f} ms of processor a call",
            flush=True,
        )
    pairs = zip(rates["backend"], rates["client, aiohttp"], strict=True)
    ratio = statistics.median(one / other for one, other in pairs)
    print(f"{delay * 1000:3.0f} ms  backend / client with aiohttp: {ratio:.2f}, median of {rounds}", flush=True)


def turned_away(count: int) -> None:
    """Prints the rates at which calls get through a server that turns some of them away."""
    kinds: list[dict[str, object]] = [
        {},
        {"random_429": 0.1},
        {"random_429": 0.2},
        {"random_429": 0.2, "retry_after": 1},
        {"rate": 100, "burst": 20},
        {"rate": 100, "burst": 20, "retry_after": 1},
    ]
    for kind in kinds:
        with running(delay=0.05, **kind) as server:
            rate = ours(server, count)
            rejected = server.stats()["rejected"]
        print(f"{kind}: {rate:.0f}/s, {count} answered, {rejected} times turned away", flush=True)


def memory(count: int) -> None:
    """Prints the resident memory while many calls are made."""
    with running(remember=0) as server:
        backend = OpenAICompatible("m", server.url, concurrency=CONCURRENCY)
        began = time.perf_counter()
        for number, _ in enumerate(backend.complete(requests(count)), 1):
            if number in (1000, count // 10, count // 2, count):
                rate = number / (time.perf_counter() - began)
                print(f"{number:8} calls: {resident():6.1f} MB resident, {rate:.0f}/s", flush=True)
    print(f"at most {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.1f} MB")


def resident() -> float:
    """The memory of this process in megabytes."""
    with open("/proc/self/statm", encoding="ascii") as stream:
        return int(stream.read().split()[1]) * resource.getpagesize() / 2**20


def main() -> None:
    """Runs what the arguments name."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=2560, help="of each way and round; 0: only the memory")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--memory-calls", type=int, default=100_000, help="0: only the rates")
    parser.add_argument("--limited-calls", type=int, default=2000, help="against a rate limit; 0: none")
    arguments = parser.parse_args()
    if arguments.calls:
        compare(0.5, arguments.calls, arguments.rounds)
        compare(0.05, arguments.calls, arguments.rounds)
    if arguments.limited_calls:
        turned_away(arguments.limited_calls)
    if arguments.memory_calls:
        memory(arguments.memory_calls)


if __name__ == "__main__":
    main()
