"""What the commands that call a model share: settings as NAME=VALUE, endpoints, the price of a model."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from rubric_measures.base.errors import InputError

if TYPE_CHECKING:
    from rubric_measures.backends import Backend
    from rubric_measures.grading import Estimate, Price

__all__ = ["backend_of", "backend_settings", "model_price", "named_values", "print_estimates"]


def named_values(option: str, pairs: Iterable[str]) -> dict[str, Any]:
    """NAME=VALUE pairs; a value that is JSON (a number, true, a list) is what it says, else text.

    Raises:
        InputError: a pair is none.
    """
    found: dict[str, Any] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals or not name:
            raise InputError(f"{option} {pair!r}: expected NAME=VALUE")
        try:
            found[name] = json.loads(text)
        except ValueError:
            found[name] = text
        if _is_no_json(found[name]):
            raise InputError(f"{option} {pair!r}: {text} is no number that a request can have")
    return found


def _is_no_json(value: Any) -> bool:
    """Whether a value has a NaN or an infinity, which Python reads and JSON does not know."""
    try:
        json.dumps(value, allow_nan=False)
    except ValueError:
        return True
    return False


def backend_settings(model_options: Iterable[str], base_urls: Sequence[str] | None) -> dict[str, Any]:
    """The settings of a backend from `--model-option` and `--base-url`; several URLs are replicas."""
    settings = named_values("--model-option", model_options)
    if base_urls:
        settings["base_url"] = list(base_urls) if len(base_urls) > 1 else base_urls[0]
    return settings


def backend_of(spec: str, settings: dict[str, Any], only_cache: str | None) -> Backend:
    """The backend of a name; with the path of a cache, the one whose replies it has (see `make_cached_backend`)."""
    from rubric_measures.backends import make_backend
    from rubric_measures.backends.replies.cached_model import make_cached_backend

    if only_cache is None:
        return make_backend(spec, **settings)
    return make_cached_backend(spec, only_cache, **settings)


def model_price(path: str | None, backend: Backend, max_cost: float | None) -> Price | None:
    """The price of a model from a price table; None where it is unknown.

    Raises:
        InputError: a limit on the cost was set, and the price is unknown.
    """
    from rubric_measures.grading import load_prices, price_of

    if max_cost is not None and not 0 <= max_cost < math.inf:
        raise InputError(f"--max-cost {max_cost}: give a sum of money, 0 or more")
    price = price_of(backend.model, load_prices(path)) if path else None
    if max_cost is not None and price is None:
        raise InputError(f"--max-cost needs a price for {backend.model}; give --prices with an entry for it")
    return price


def print_estimates(found: Sequence[Estimate]) -> None:
    """Prints what a dry run found: a line a prompt, and their sum where there are several."""
    columns = "prompt calls cached shared cached_share kept prompt_tokens completion_tokens_at_most checks_at_most"
    print(*columns.split(), "cost_of_calls", "cost_at_most", sep="\t")
    for row in found:
        counts = (row.calls, row.cached, row.shared, f"{row.cached_share:.3f}", row.kept, row.prompt_tokens)
        costs = (_total([row.cost]), _total([row.cost_at_most]))
        print(row.prompt_class, *counts, row.completion_tokens, row.checks, *costs, sep="\t")
    if len(found) > 1:
        costs = (_total([row.cost for row in found]), _total([row.cost_at_most for row in found]))
        print("all", sum(row.calls for row in found), *[""] * 7, *costs, sep="\t")


def _total(costs: Sequence[float | None]) -> str:
    known = [cost for cost in costs if cost is not None]
    return f"{sum(known):.4f}" if len(known) == len(costs) else "unknown"
