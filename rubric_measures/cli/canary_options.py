"""The options of `verify` for the canary suite."""

from __future__ import annotations

import argparse
from typing import Any

from rubric_measures.base.errors import InputError
from rubric_measures.cli.model_options import add_model_options, add_spending_options

__all__ = ["add_canary_options", "canary_settings"]


def add_canary_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of the canary suite."""
    add = parser.add_argument_group("canary suite").add_argument
    add("--canary", action="store_true", help="let a grader grade known cases, and say how often it was fooled")
    add_model_options(add, "the grader: {}")
    add("--prompt", action="append", default=[], metavar="NAME", help="its prompt; may be repeated")
    add_spending_options(add, "replies are not kept")
    add("--cases", type=int, default=3, metavar="N", help="cases of each kind a query, where several can be made")
    add("--dry-run", action="store_true", help="say what would be called and what it would cost; report nothing")


def canary_settings(options: argparse.Namespace) -> dict[str, Any]:
    """What only the canary suite uses.

    Raises:
        InputError: some of it is given, and the suite is not asked for.
    """
    from rubric_measures.runners.models import CallOptions

    given = {name: getattr(options, name) for name in ("model", "prompt", "dry_run", *CallOptions.__annotations__)}
    ignored = [name for name, value in given.items() if value not in (None, [], {}, False)]
    if ignored and not options.canary:
        text = f"{', '.join(ignored)}: only the canary suite asks a grader; add it, or leave that out"
        raise InputError(text, settings=(*ignored, "canary"))
    return {**given, "cases": options.cases}
