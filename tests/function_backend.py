"""A model made of a function, for tests that must see every request."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from rubric_measures.grading.asking import Asking
from rubric_measures.grading.generation import Caller
from rubric_measures.models.base import Reply, Request
from rubric_measures.models.running import LocalRunner


class FunctionBackend:
    """Answers with a function of the request; a str is an ok reply."""

    def __init__(
        self, answer: Callable[[Request], str | Reply], model: str = "function:test", context: int | None = None
    ):
        self.answer, self.name, self.context = answer, model, context
        self.seen: list[Request] = []

    @property
    def model(self) -> str:
        return self.name

    @property
    def options(self) -> Mapping[str, object]:
        return {"mode": "test"}

    @property
    def context_tokens(self) -> int | None:
        return self.context

    def count_tokens(self, text: str) -> int:
        return len(text.split())

    def complete(self, requests: Iterable[Request]) -> Iterator[tuple[Request, Reply]]:
        # Answered backwards: nothing may depend on the order of the replies.
        for request in reversed(list(requests)):
            self.seen.append(request)
            answer = self.answer(request)
            yield request, Reply(answer) if isinstance(answer, str) else answer


def caller_of(answer: Callable[[Request], str | Reply], model: str = "function:test", retries: int = 1) -> Caller:
    return Caller(LocalRunner(FunctionBackend(answer, model)), Asking(retries=retries))
