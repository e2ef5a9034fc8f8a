"""The counts of a run: what was asked, what answered it, what it cost; one piece for every maker of grades."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from rubric_measures.backends.base import ATTEMPT_STEP, Reply, Request
from rubric_measures.base.errors import counted

__all__ = ["RunStats", "tokens_in"]


def tokens_in(raw: Mapping[str, Any], name: str) -> int:
    """A count of tokens that a reply keeps beside its text; 0 where it has none."""
    count = raw.get(name)
    return count if type(count) is int and count > 0 else 0


@dataclass
class RunStats:
    """Counts of one run; they only grow.

    Attributes:
        jobs: jobs that are done.
        cached: requests answered from the cache.
        shared: requests answered by an equal one in flight.
        calls: requests answered by the backend.
        failed: of these, those without an answer.
        truncated: of these, those whose reply was cut; they are answers.
        redrawn: of the calls, those that drew a reply again which could not be read.
        cached_prompt_tokens: tokens that were shown when the cached replies were made.
        cached_completion_tokens: tokens that were written then.
        missing: requests that were not in the cache when no call, or no further one, was allowed.
        prompt_tokens: tokens shown in calls.
        completion_tokens: tokens written in calls, thoughts included.
        reasoning_tokens: of these, those of thoughts.
        prefix_tokens: of the tokens shown, those that the endpoint had in its own cache.
        left_out: field -> replies of calls that were made without it, as the endpoint does not take it.
        cost: what the calls cost, by their price; 0 without one.
        unpriced: answers that neither cost anything nor say how many tokens they took: what they cost is unknown.
        limit: which limit on calls or cost was reached; empty when none was.
        query_limit: likewise, the limit on the cost of a query.
        limited_queries: the queries for which it was reached.
        returned: (model id, system fingerprint) as the replies name them -> replies, cached ones included.
    """

    jobs: int = 0
    cached: int = 0
    shared: int = 0
    calls: int = 0
    failed: int = 0
    truncated: int = 0
    redrawn: int = 0
    cached_prompt_tokens: int = 0
    cached_completion_tokens: int = 0
    missing: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    reasoning_tokens: int = 0
    prefix_tokens: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    cost: float = 0.0
    unpriced: int = 0
    limit: str = ""
    query_limit: str = ""
    limited_queries: set[str] = field(default_factory=set)
    returned: Counter[tuple[str, str]] = field(default_factory=Counter)

    def see(self, reply: Reply) -> None:
        """Counts what a reply says about the model that wrote it."""
        model, fingerprint = reply.raw.get("model"), reply.raw.get("system_fingerprint")
        if model or fingerprint:
            self.returned[str(model or ""), str(fingerprint or "")] += 1

    def count_call(self, request: Request, reply: Reply, cost: float = 0.0) -> None:
        """Counts a call by its request and its reply."""
        is_answer = reply.is_answer
        self.calls += 1
        self.redrawn += request.replicate >= ATTEMPT_STEP
        self.failed += not is_answer
        self.truncated += is_answer and reply.status == "truncated"
        self.prompt_tokens += reply.prompt_tokens
        self.completion_tokens += reply.completion_tokens
        if reply.raw:
            self._count_parts(reply.raw)
        self.cost += cost
        self.unpriced += is_answer and not cost + reply.prompt_tokens
        self.see(reply)

    def _count_parts(self, raw: Mapping[str, Any]) -> None:
        self.reasoning_tokens += tokens_in(raw, "reasoning_tokens")
        self.prefix_tokens += tokens_in(raw, "cached_tokens")
        left_out = raw.get("left_out")
        self.left_out.update(map(str, left_out) if isinstance(left_out, list) else ())

    def count_cached(self, replies: Iterable[Reply | None]) -> None:
        """Counts replies from the cache, with the tokens that they once took; None is a reply that is not there."""
        for reply in replies:
            if reply is not None:
                self.cached += 1
                self.cached_prompt_tokens += reply.prompt_tokens
                self.cached_completion_tokens += reply.completion_tokens
                if reply.raw:
                    self.see(reply)

    @property
    def answered(self) -> int:
        """Requests that have their reply, wherever it came from."""
        return self.cached + self.shared + self.calls + self.missing

    @property
    def progress(self) -> dict[str, int]:
        """What a progress bar shows beside its length."""
        tokens = self.prompt_tokens + self.completion_tokens
        cut = {"truncated": self.truncated} if self.truncated else {}
        return {"calls": self.calls, "cached": self.cached, "failed": self.failed, **cut, "tokens": tokens}

    def __str__(self) -> str:
        counts = {"failed": self.failed, "truncated": self.truncated}
        said = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
        calls = counted(self.calls, "call") if self.calls else "no calls"
        return f"{calls}{f' ({said})' if said else ''}, {counted(self.cached, 'reply')} from the cache"
