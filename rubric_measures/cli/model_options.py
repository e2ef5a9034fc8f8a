"""What the commands that call a model share: settings as NAME=VALUE, lists of ids, and bars where somebody looks."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from rubric_measures.base.errors import InputError

__all__ = ["NamedValue", "ids", "is_watched"]


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
