"""What `generate` does around its calls: models behind their caches, progress, failures, the plan of a dry run."""

from __future__ import annotations

import argparse
import contextlib
import logging
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rubric_measures.base.errors import InputError
from rubric_measures.cli.grade_support import shown_on
from rubric_measures.cli.model_options import backend_of, backend_settings, model_price, named_values

if TYPE_CHECKING:
    from rubric_measures.runners import RunStats
    from rubric_measures.test_bank.calls import Caller, Failure

__all__ = ["cache_path", "make_caller", "print_plan", "say_failures"]

_LOGGER = logging.getLogger("rubric_measures")
_SHOWN = 20


def make_caller(
    spec: str, options: argparse.Namespace, stack: contextlib.ExitStack, stop: threading.Event | None = None
) -> Caller:
    """What puts questions to a model, behind its cache; of a dry run, what counts them.

    Args:
        spec: the model, as --model names it.
        options: of the command.
        stack: closes the cache and the progress bar.
        stop: ends the calls.
    """
    from rubric_measures.backends.counting import CountingBackend
    from rubric_measures.backends.replies.cache import ReplyCache
    from rubric_measures.runners import LocalRunner
    from rubric_measures.test_bank.calls import Caller

    if spec == "lexical":
        raise InputError("the lexical grader cannot write: choose a model that can (hf:, openai:, scripted:)")
    path = cache_path(options)
    backend = backend_of(
        spec, backend_settings(options.model_option, options.base_url), path if options.cache_only else None
    )
    price = model_price(options.prices, backend, options.max_cost)
    cache = None
    if path and not (options.dry_run and not Path(path).exists()):
        cache = stack.enter_context(ReplyCache(path, read_only=options.dry_run))
    settings = {
        "max_tokens": options.max_tokens,
        "temperature": options.temperature,
        **named_values("--option", options.option),
    }
    runner = LocalRunner(
        CountingBackend(backend) if options.dry_run else backend,
        cache,
        cache_only=options.cache_only and not options.dry_run,
        max_calls=None if options.dry_run else options.max_calls,
        max_cost=None if options.dry_run else options.max_cost,
        price=price,
        progress=None if options.dry_run else _progress(stack, spec),
        stop=stop,
    )
    return Caller(runner, settings, 0 if options.dry_run else options.retries)


def cache_path(options: argparse.Namespace) -> str:
    """The file of the reply cache; empty for none."""
    return str(options.cache or ("" if options.output == "-" else f"{options.output}.cache.sqlite"))


def _progress(stack: contextlib.ExitStack, spec: str) -> Callable[[RunStats], None] | None:
    """A bar on standard error when that is a terminal; else nothing."""
    if not sys.stderr.isatty():
        return None
    from tqdm import tqdm

    bar = stack.enter_context(tqdm(desc=spec, unit=" calls", file=sys.stderr))
    return shown_on(bar)


def say_failures(failures: Sequence[Failure]) -> None:
    """Lists what led to nothing, and what helps."""
    for failure in failures[:_SHOWN]:
        _LOGGER.warning("query %s, %s: %s", *failure)
    if len(failures) > _SHOWN:
        _LOGGER.warning("and %d more calls that led to nothing", len(failures) - _SHOWN)
    if any(failure.reason.startswith("truncated") for failure in failures):
        _LOGGER.info("replies that were cut need a higher --max-tokens")
    if any(not failure.reason.startswith(("failed", "refused", "truncated", "none is")) for failure in failures):
        # Such a reply is in the cache: the same command would read it again.
        _LOGGER.info("replies that cannot be read are drawn again with a higher --retries")


def print_plan(callers: Sequence[Caller], options: argparse.Namespace) -> None:
    """Prints what a dry run counted."""
    from rubric_measures.backends.counting import CountingBackend

    print("model", "calls", "cached", "prompt_tokens", "completion_tokens_at_most", "cost_at_most", sep="\t")
    for caller in callers:
        backend = caller.runner.backend
        if not isinstance(backend, CountingBackend):
            continue
        price = model_price(options.prices, backend, None)
        cost = "unknown" if price is None else f"{price.of(backend.prompt_tokens, backend.completion_tokens):.4f}"
        tokens = (backend.prompt_tokens, backend.completion_tokens)
        print(caller.model, backend.calls, caller.stats.cached, *tokens, cost, sep="\t")
