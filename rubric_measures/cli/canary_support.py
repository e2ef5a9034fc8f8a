"""The options of `verify` for the canary suite."""

from __future__ import annotations

import argparse
from typing import Any

from rubric_measures.base.errors import InputError
from rubric_measures.cli.model_options import NamedValue

__all__ = ["add_canary_options", "canary_settings"]


def add_canary_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of the canary suite."""
    add = parser.add_argument_group("canary suite").add_argument
    add("--canary", action="store_true", help="let a grader grade known cases, and say how often it was fooled")
    add("--model", help="the grader: lexical, scripted:FILE, hf:NAME or openai:NAME")
    add("--prompt", action="append", default=[], metavar="NAME", help="its prompt; may be repeated")
    add("--base-url", metavar="URL", action="append", help="openai: the endpoint; may be repeated for replicas")
    add("--model-option", action=NamedValue, default={}, metavar="NAME=VALUE", help="a setting of the model's backend")
    add("--cache", metavar="FILE", help="the reply cache (default: replies are not kept)")
    add("--cases", type=int, default=3, metavar="N", help="cases of each kind a query, where several can be made")
    add("--dry-run", action="store_true", help="say what would be called and what it would cost; report nothing")
    add("--prices", metavar="FILE", help="price table, for --dry-run and --max-cost")
    add("--max-calls", type=int, metavar="N", help="make so many calls at most")
    add("--max-cost", type=float, metavar="COST", help="make no call that costs more in all; needs --prices")


def canary_settings(options: argparse.Namespace) -> dict[str, Any]:
    """What only the canary suite uses.

    Raises:
        InputError: some of it is given, and the suite is not asked for.
    """
    names = "model prompt base_url model_option cache dry_run prices max_calls max_cost"
    given = {name: getattr(options, name) for name in names.split()}
    ignored = [name for name, value in given.items() if value not in (None, [], {}, False)]
    if ignored and not options.canary:
        text = f"{', '.join(ignored)}: only the canary suite asks a grader; add it, or leave that out"
        raise InputError(text, settings=(*ignored, "canary"))
    return {**given, "cases": options.cases}
