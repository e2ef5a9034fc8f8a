"""From a lazy stream of requests to batches: bounded look-ahead, batches by tokens, halving when one fails."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol, TypeVar

from rubric_measures.backends.base import Reply, Request
from rubric_measures.base.errors import BackendError, DeviceLostError


class _HasRequest(Protocol):
    @property
    def request(self) -> Request: ...


J = TypeVar("J", bound=_HasRequest)
T = TypeVar("T")


def one_line(error: BaseException, limit: int = 300) -> str:
    """What an exception says, as one line of bounded length."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= limit else text[: limit - 1] + "…"


def by_length(jobs: Iterable[T], length: Callable[[T], int], budget: int) -> Iterator[list[T]]:
    """Batches of similar lengths, longest first: at most `budget` tokens with padding, and at least one job each.

    The longest come first, so that what does not fit into memory shows at once.
    """
    batch: list[T] = []
    longest = 0
    for job in sorted(jobs, key=length, reverse=True):
        if batch and longest * (len(batch) + 1) > budget:
            yield batch
            batch = []
        if not batch:
            longest = max(1, length(job))
        batch.append(job)
    if batch:
        yield batch


def padded(rows: Sequence[Sequence[int]], device: str, *, left: bool) -> tuple[Any, Any]:
    """Token ids and attention mask of rows, padded with token 0 (masked) on one side."""
    import torch

    width = max(len(row) for row in rows)
    ids = torch.zeros((len(rows), width), dtype=torch.long)
    mask = torch.zeros((len(rows), width), dtype=torch.long)
    for place, row in enumerate(rows):
        where = slice(width - len(row), width) if left else slice(0, len(row))
        ids[place, where] = torch.tensor(row, dtype=torch.long)
        mask[place, where] = 1
    return ids.to(device), mask.to(device)


def run_batches(
    requests: Iterable[Request],
    prepare: Callable[[Request], J | Reply],
    plan: Callable[[list[J]], Iterable[list[J]]],
    execute: Callable[[Sequence[J]], Sequence[Reply]],
    *,
    look_ahead: int,
    release: Callable[[], None],
) -> Iterator[tuple[Request, Reply]]:
    """Answers every request once; `look_ahead` requests are held at a time, and their jobs put into batches by `plan`.

    A batch that fails, for want of memory or because of one poisoned input, is halved and tried again, after `release`
    gave memory back; a request that fails alone is answered `failed`.

    Raises:
        BackendError: nothing can work (the weights cannot be loaded).
        DeviceLostError: nothing can work in this process any more.
    """
    iterator = iter(requests)
    while window := list(itertools.islice(iterator, look_ahead)):
        jobs: list[J] = []
        for request in window:
            try:
                job = prepare(request)
            except BackendError:
                raise
            except Exception as error:
                job = Reply(None, "failed", f"the prompt cannot be prepared: {one_line(error)}")
            if isinstance(job, Reply):
                yield request, job
            else:
                jobs.append(job)
        for batch in plan(jobs):
            for job, reply in zip(batch, _attempt(batch, execute, release), strict=True):
                yield job.request, reply


def _attempt(
    batch: Sequence[J], execute: Callable[[Sequence[J]], Sequence[Reply]], release: Callable[[], None]
) -> list[Reply]:
    try:
        return list(execute(batch))
    except BackendError:
        raise
    except Exception as error:
        reason = f"{type(error).__name__}: {one_line(error)}"
        if "CUDA error" in reason and "out of memory" not in reason:
            # After such an error no call of this process can use the device.
            raise DeviceLostError(f"the device is lost: {reason}") from None
    # The next try begins outside of the handler: the exception's frames hold the tensors that did not fit.
    release()
    if len(batch) == 1:
        return [Reply(None, "failed", reason)]
    half = len(batch) // 2
    return [*_attempt(batch[:half], execute, release), *_attempt(batch[half:], execute, release)]
