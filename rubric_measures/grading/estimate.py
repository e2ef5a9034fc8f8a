"""Before spending: how many calls and tokens a grading run would need, how much is cached, what it would cost."""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from rubric_measures.backends.base import Reply, Request
from rubric_measures.backends.counting import CountingBackend
from rubric_measures.base.entities import TestBank
from rubric_measures.base.errors import FormatError
from rubric_measures.base.files import path_name, read_text
from rubric_measures.base.json_models import parse_json
from rubric_measures.grading._grader import Grader, GradingReport, default_prompts
from rubric_measures.grading._recording import llm_name
from rubric_measures.records.files import QueryPassages
from rubric_measures.runners import LocalRunner

__all__ = ["Estimate", "Price", "estimate", "load_prices", "price_of"]


# The most tokens that a chat template puts around a message.
_FRAME = 16


@dataclass(frozen=True)
class Price:
    """What a model costs, in the user's currency for a million tokens."""

    input: float
    output: float

    def of(self, prompt_tokens: int, completion_tokens: int) -> float:
        """The cost of so many tokens.

        >>> Price(2.5, 10).of(1_000_000, 100_000)
        3.5
        """
        return (prompt_tokens * self.input + completion_tokens * self.output) / 1e6

    def of_reply(self, reply: Reply) -> float:
        """The cost of one reply, by the tokens that it reports."""
        return self.of(reply.prompt_tokens, reply.completion_tokens)

    def most_of(self, request: Request) -> float:
        """The most that a request can cost, whatever the tokenizer; infinity when its reply has no longest length.

        Of a text there are at most as many tokens as it has bytes (UTF-8), and a frame for each message.

        >>> from rubric_measures.backends.base import Message
        >>> Price(1e6, 1e6).most_of(Request("m", (Message("user", "ä?"),), {"max_tokens": 5}))
        24.0
        """
        longest = request.options.get("max_tokens")
        if not isinstance(longest, int):
            return math.inf
        shown = sum(len(message.content.encode("utf-8", "replace")) for message in request.messages)
        return self.of(shown + _FRAME * len(request.messages), longest)


def load_prices(path: str | os.PathLike[str]) -> dict[str, Price]:
    """Reads a price table: JSON, `{"gpt-4o": {"input": 2.5, "output": 10}, …}`, for a million tokens.

    Raises:
        InputError: the file cannot be opened.
        FormatError: it is no such object.
    """
    name = path_name(path)
    table = parse_json(read_text(path), path=name)
    if not isinstance(table, dict):
        raise FormatError('expected an object {"model": {"input": …, "output": …}}', path=name)
    return {model: _price(entry, name, model) for model, entry in table.items()}


def _price(entry: Any, path: str, model: str) -> Price:
    fields = entry if isinstance(entry, dict) else {}
    values: list[Any] = [fields.get("input"), fields.get("output")]
    if not all(type(value) in (int, float) and 0 <= value < math.inf for value in values):
        problem = "expected the prices input and output, numbers that are not negative"
        raise FormatError(problem, path=path, field=model)
    return Price(float(values[0]), float(values[1]))


def price_of(model: str, prices: Mapping[str, Price]) -> Price | None:
    """The price of a model by its canonical name, its name in the records, or the name with its kind; None: unknown."""
    kind = model.partition(":")[0]
    for name in (model, llm_name(model), f"{kind}:{llm_name(model)}"):
        if name in prices:
            return prices[name]
    return None


@dataclass(frozen=True)
class Estimate:
    """What the grades of one prompt would need.

    Attributes:
        prompt_class: the prompt.
        calls: calls to make (first draws; further ones of unreadable replies and checks by a model come on top).
        cached: replies that are in the cache.
        shared: requests that equal one of the calls, of this prompt or of one before it.
        kept: grades that the records have already.
        prompt_tokens: tokens shown in the calls, by the model's tokenizer or an estimate.
        completion_tokens: tokens written at most.
        checks: checks by a model that may follow, at most: those of the item with the most gold answers for each call.
        cost: of the calls, with replies as long as they may be; None when the price is unknown.
        cost_at_most: of all that may be called: every reply as long as it may be, unreadable as often as it is drawn
            again, and checked. None when the price is unknown.
    """

    prompt_class: str
    calls: int
    cached: int
    shared: int
    kept: int
    prompt_tokens: int
    completion_tokens: int
    checks: int
    cost: float | None
    cost_at_most: float | None

    @property
    def cached_share(self) -> float:
        """The share of the requests that needs no call, 0 to 1; 1 where there are none."""
        requests = self.calls + self.cached + self.shared
        return 1 - self.calls / requests if requests else 1.0


def estimate(
    grader: Grader,
    read: Callable[[], Iterable[QueryPassages]],
    bank: TestBank,
    price: Price | None = None,
) -> list[Estimate]:
    """What grading would need, prompt by prompt; makes no call and changes no file.

    Args:
        grader: as it would grade; its cache is only read.
        read: gives the passages anew for each prompt.
        bank: the test bank.
        price: what the model costs.
    """
    found = []
    known: set[str] = set()
    for name in grader.prompts or default_prompts(grader.runner.backend.model, bank):
        counter = CountingBackend(grader.runner.backend, known)
        # Nothing is called, so whatever runs the calls of the grader, here it is this process.
        runner = LocalRunner(counter, grader.runner.cache, price=grader.runner.price, stop=grader.runner.stop)
        report = GradingReport()
        single = dataclasses.replace(grader, runner=runner, prompts=(name,))
        [maker] = single.makers(bank)
        for _ in single.grade_records(read(), bank, report):
            pass
        shown, written = counter.prompt_tokens, counter.completion_tokens
        # A reply that another prompt asks for, too, is checked here as well.
        replies = counter.calls + counter.repeated
        checks, check_shown, check_written = (replies * most for most in maker.style.most_checks(bank))
        draws = maker.style.asker.draws
        most = (draws * (shown + check_shown), draws * (written + check_written))
        found.append(
            Estimate(
                maker.style.prompt.prompt_class,
                counter.calls,
                report.run.cached,
                report.run.shared + counter.repeated,
                report.kept,
                shown,
                written,
                checks,
                None if price is None else price.of(shown, written),
                None if price is None else price.of(*most),
            )
        )
    return found
