"""A stand-in for a backend in a dry run: it counts calls and tokens, and asks nobody."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rubric_measures.backends.base import Backend, Reply, Request

__all__ = ["CountingBackend"]


class CountingBackend:
    """Counts the requests that would go to a backend; each is answered as failed.

    In everything else (name, options, tokenizer, context, what kind of model it is) it is the backend, so that the
    same requests are made and the cache finds the same replies. A request whose key is `known` (of other prompts, say)
    is answered from the cache, or with the one in flight: it is `repeated`, and no call again. `completion_tokens` is
    the most that may be written; requests without a limit count none.
    """

    def __init__(self, backend: Backend, known: set[str] | None = None) -> None:
        self.backend = backend
        self.calls = self.repeated = self.prompt_tokens = self.completion_tokens = 0
        self._known = known if known is not None else set()

    def __getattr__(self, name: str) -> Any:
        # What only some backends say of themselves (`embedded`, `reply_shares_context`, …).
        return getattr(self.backend, name)

    @property
    def model(self) -> str:
        """The name of the backend, so that cached replies are found."""
        return self.backend.model

    @property
    def options(self) -> Mapping[str, object]:
        """The options of the backend, for the same reason."""
        return self.backend.options

    @property
    def context_tokens(self) -> int | None:
        """As the backend says."""
        return self.backend.context_tokens

    def count_tokens(self, text: str) -> int:
        """As the backend counts."""
        return self.backend.count_tokens(text)

    def complete(self, requests: Iterable[Request]) -> Iterator[tuple[Request, Reply]]:
        """Counts each request and calls nobody."""
        for request in requests:
            if request.key in self._known:
                self.repeated += 1
            else:
                self._known.add(request.key)
                self._count(request)
            yield request, Reply(None, "failed", "a dry run makes no call")

    def _count(self, request: Request) -> None:
        self.calls += 1
        self.prompt_tokens += sum(self.backend.count_tokens(message.content) for message in request.messages)
        limit = request.options.get("max_tokens", 0)
        self.completion_tokens += limit if isinstance(limit, int) else 0
