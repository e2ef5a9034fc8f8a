"""What the commands that call a model share: its options, settings as NAME=VALUE, lists of ids, and bars."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from typing import Any

from rubric_measures.base.errors import InputError

__all__ = ["NamedValue", "add_model_options", "add_spending_options", "ids", "is_watched"]


class _ModelHelp(str):
    """The help of --model. The kinds of plug-ins stand in it, too: they are looked for when it is printed."""

    __slots__ = ()

    def __mod__(self, values: Any) -> str:
        from rubric_measures.backends import BACKENDS

        added = ", ".join(BACKENDS.added())
        return super().__mod__(values) + (f"; of plug-ins: {added}" if added else "")


def add_model_options(add: Callable[..., argparse.Action], text: str = "{}", **model: Any) -> None:
    """Adds --model and how it is reached, for a command that calls it.

    Args:
        add: adds an argument.
        text: the help of --model, with a place for the kinds of models.
        model: what else argparse is told about --model.
    """
    add("--model", help=_ModelHelp(text.format("lexical, scripted:FILE, hf:NAME or openai:NAME")), **model)
    add("--base-url", metavar="URL", action="append", help="openai: the endpoint; may be repeated for replicas")
    add("--model-option", action=NamedValue, default={}, metavar="NAME=VALUE", help="a setting of the model's backend")


def add_spending_options(add: Callable[..., argparse.Action], cache: str) -> None:
    """Adds the reply cache and the limits of what calls may take.

    Args:
        add: adds an argument.
        cache: where the cache is by default.
    """
    add("--cache", metavar="FILE", help=f"the reply cache (default: {cache})")
    add("--cache-only", action="store_true", help="make no call: what is not in the cache fails")
    add("--prices", metavar="FILE", help="price table (see `grade`), for --max-cost and what a dry run says")
    add("--max-calls", type=int, metavar="N", help="make so many calls at most; the others fail")
    add("--max-cost", type=float, metavar="COST", help="make no call that costs more in all; needs --prices")


class NamedValue(argparse.Action):
    """Gathers NAME=VALUE in a mapping; a value that is JSON (a number, true, a list) is what it says, else text."""

    def __call__(self, parser: object, options: argparse.Namespace, pair: object, option: str | None = None) -> None:
        """Adds a pair."""
        name, equals, text = str(pair).partition("=")
        if not equals or not name:
            raise InputError(f"{option} {pair!r}: expected NAME=VALUE")
        try:
            value = json.loads(text)
        except ValueError:
            value = text
        if _is_no_json(value):
            raise InputError(f"{option} {pair!r}: {text} is no number that a request can have")
        setattr(options, self.dest, {**getattr(options, self.dest), name: value})


def _is_no_json(value: Any) -> bool:
    """Whether a value has a NaN or an infinity, which Python reads and JSON does not know."""
    try:
        json.dumps(value, allow_nan=False)
    except ValueError:
        return True
    return False


def ids(text: str) -> list[str]:
    """The ids of ID,ID,…"""
    return [name.strip() for name in text.split(",") if name.strip()]


def is_watched() -> bool:
    """Whether somebody looks at standard error, so that a progress bar helps."""
    return sys.stderr.isatty()
