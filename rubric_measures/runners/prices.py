"""What models cost: price tables, and the price of a call before and after it is made."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rubric_measures.backends.base import Backend, Reply, Request, llm_name
from rubric_measures.base.errors import FormatError, InputError
from rubric_measures.base.files import path_name, read_text
from rubric_measures.base.json_files import check_keys, parse_json
from rubric_measures.runners._stats import tokens_in

__all__ = ["Price", "checked_price", "load_prices", "price_of"]

# The most tokens that a chat template puts around a message.
_FRAME = 16


@dataclass(frozen=True)
class Price:
    """What a model costs, in the user's currency for a million tokens.

    Attributes:
        input: of tokens shown.
        output: of tokens written, thoughts included.
        cached_input: of tokens shown that the endpoint had in its own cache; None: they cost what the others do.
    """

    input: float
    output: float
    cached_input: float | None = None

    def of(self, prompt_tokens: int, completion_tokens: int) -> float:
        """The cost of so many tokens.

        >>> Price(2.5, 10).of(1_000_000, 100_000)
        3.5
        """
        return (prompt_tokens * self.input + completion_tokens * self.output) / 1e6

    def of_reply(self, reply: Reply) -> float:
        """The cost of one reply, by the tokens that it reports."""
        whole = self.of(reply.prompt_tokens, reply.completion_tokens)
        if self.cached_input is None:
            return whole
        stored = min(reply.prompt_tokens, tokens_in(reply.raw, "cached_tokens"))
        return whole - stored * (self.input - self.cached_input) / 1e6

    def most_of(self, request: Request) -> float:
        """The most that a request can cost, whatever the tokenizer; infinity when its reply has no longest length.

        What a model thinks beside its reply comes on top, and nobody knows how much that is.

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

    An entry may say `cached_input` as well: what tokens cost that the endpoint had in its own cache.

    Raises:
        InputError: the file cannot be opened.
        FormatError: it is no such object.
    """
    name = path_name(path)
    text = read_text(path)
    table = parse_json(text, path=name)
    check_keys(text, path=name)
    if not isinstance(table, dict):
        raise FormatError('expected an object {"model": {"input": …, "output": …}}', path=name)
    return {model: _price(entry, name, model) for model, entry in table.items()}


def _price(entry: Any, path: str, model: str) -> Price:
    fields = entry if isinstance(entry, dict) else {}
    values: list[Any] = [fields.get("input"), fields.get("output"), fields.get("cached_input", fields.get("input"))]
    # A whole number of 400 digits is below infinity, and none that can be computed with.
    if not all(type(value) in (int, float) and 0 <= value <= sys.float_info.max for value in values):
        problem = f"expected the prices input and output (and cached_input), numbers from 0 to {sys.float_info.max:.0e}"
        raise FormatError(problem, path=path, field=model)
    return Price(float(values[0]), float(values[1]), float(values[2]) if "cached_input" in fields else None)


def price_of(model: str, prices: Mapping[str, Price]) -> Price | None:
    """The price of a model by its canonical name, its name in the records, or the name with its kind; None: unknown."""
    kind = model.partition(":")[0]
    for name in (model, llm_name(model), f"{kind}:{llm_name(model)}"):
        if name in prices:
            return prices[name]
    return None


def checked_price(
    prices: str | os.PathLike[str] | None, backend: Backend, limits: Mapping[str, float | None]
) -> Price | None:
    """The price of a model from a price table; None where it is unknown and nothing needs it.

    Args:
        prices: the file of the table.
        backend: the model.
        limits: the limits on the cost, by the name of their parameter.

    Raises:
        InputError: a limit is no sum of money, or there is one and the price is unknown.
    """
    given = {name: limit for name, limit in limits.items() if limit is not None}
    for name, limit in given.items():
        if not 0 <= limit < math.inf:
            raise InputError(f"a limit of {limit} on the cost: give a sum of money, 0 or more", settings=(name,))
    price = price_of(backend.model, load_prices(prices)) if prices else None
    if given and price is None:
        raise InputError(
            f"a limit on the cost needs a price for {backend.model}; give a price table with an entry for it",
            settings=(*given, "prices"),
        )
    return price
