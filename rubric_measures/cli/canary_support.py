"""What `verify --canary` does: canaries through the grading path and its cache, then the report."""

from __future__ import annotations

import argparse
import contextlib
import logging
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rubric_measures.base.errors import InputError
from rubric_measures.cli.grade_notes import note_limit
from rubric_measures.cli.grade_support import Interrupts, request_bar
from rubric_measures.cli.model_options import backend_settings, model_price, print_estimates

if TYPE_CHECKING:
    from rubric_measures.base.entities import TestBank
    from rubric_measures.records.streaming import PassageGroup
    from rubric_measures.verification.sections import Section

__all__ = ["add_canary_options", "refuse_without_canary", "run_canaries"]

_LOG = logging.getLogger("rubric_measures")


def add_canary_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of the canary suite."""
    add = parser.add_argument_group("canary suite").add_argument
    add("--canary", action="store_true", help="let a grader grade known cases, and say how often it was fooled")
    add("--model", help="the grader: lexical, scripted:FILE, hf:NAME or openai:NAME")
    add("--prompt", action="append", default=[], metavar="NAME", help="its prompt; may be repeated")
    add("--base-url", metavar="URL", action="append", help="openai: the endpoint; may be repeated for replicas")
    add("--model-option", action="append", default=[], metavar="NAME=VALUE", help="a setting of the model's backend")
    add("--cache", metavar="FILE", help="the reply cache (default: replies are not kept)")
    add("--cases", type=int, default=3, metavar="N", help="cases of each kind a query, where several can be made")
    add("--dry-run", action="store_true", help="say what would be called and what it would cost; report nothing")
    add("--prices", metavar="FILE", help="price table, for --dry-run and --max-cost")
    add("--max-calls", type=int, metavar="N", help="make so many calls at most")
    add("--max-cost", type=float, metavar="COST", help="make no call that costs more in all; needs --prices")


def refuse_without_canary(options: argparse.Namespace) -> None:
    """Refuses what only the canary suite would use.

    Raises:
        InputError: naming the options.
    """
    names = "model prompt base_url model_option cache dry_run prices max_calls max_cost"
    ignored = [
        f"--{name.replace('_', '-')}" for name in names.split() if getattr(options, name) not in (None, [], False)
    ]
    if ignored:
        raise InputError(f"{', '.join(ignored)}: only the canary suite asks a grader; add --canary, or leave it out")


def run_canaries(
    options: argparse.Namespace, groups: Iterable[PassageGroup], bank: TestBank | None
) -> tuple[list[Section], bool]:
    """Builds the canaries of the passages, grades them, and reports; a dry run prints what that would need.

    Returns:
        the sections (none of a dry run), and whether every case has a grade.

    Raises:
        InputError: no model or no bank is named, or a limit on the cost without a price.
        KeyboardInterrupt: the user stopped the run; calls in flight were finished.
    """
    from rubric_measures.backends import make_backend
    from rubric_measures.backends.replies.cache import ReplyCache
    from rubric_measures.grading import Grader, GradingReport, GradingSettings, estimate
    from rubric_measures.runners import LocalRunner
    from rubric_measures.verification.canaries import build_canaries, canary_report
    from rubric_measures.verification.statistics_sections import canary_sections

    if options.model is None or bank is None:
        raise InputError("--canary needs the grader and the items: add --model and --bank")
    cases = build_canaries(groups, bank, options.seed, options.cases, options.graded)
    backend = make_backend(options.model, **backend_settings(options.model_option, options.base_url))
    price = model_price(options.prices, backend, options.max_cost)
    limits = {
        "max_calls": options.max_calls,
        "max_cost": options.max_cost,
        "price": price,
    }

    def grader(cache: ReplyCache | None, **more: Any) -> Grader:
        # An empty passage is one of the cases: what the model makes of it is to be seen.
        settings = GradingSettings(empty_texts="ask")
        return Grader(LocalRunner(backend, cache, **limits, **more), tuple(options.prompt), settings)

    if options.dry_run:
        with contextlib.ExitStack() as stack:
            is_there = options.cache is not None and Path(options.cache).is_file()
            known = stack.enter_context(ReplyCache(options.cache, read_only=True)) if is_there else None
            print_estimates(estimate(grader(known), lambda: cases, bank, price))
        return [], True
    # What is wrong with prompts is found before a cache is made.
    makers = grader(None).makers(bank)
    total = len(makers) * sum(len(case.passages) * len(bank.for_query(case.query_id)) for case in cases)
    graded = GradingReport()
    with (
        ReplyCache(options.cache or ":memory:") as cache,
        request_bar(total) as progress,
        Interrupts() as interrupts,
    ):
        grading = grader(cache, progress=progress, stop=interrupts.event)
        try:
            report = canary_report(grading.grade_records(cases, bank, graded), options.min_rating)
        except KeyboardInterrupt:
            if options.cache is None and graded.run.calls:
                _LOG.warning("%d calls of this run are lost: name a --cache to keep them", graded.run.calls)
            raise
    note_limit(graded.run, is_kept=options.cache is not None)
    _LOG.info("canary suite: %d grades: %s", graded.by_status.total(), graded.run)
    failed = sum(count.failed for count in report.counts.values())
    if failed:
        _LOG.warning("%d canary grades failed: they count neither way", failed)
    return list(canary_sections(report, options.min_rating)), not failed
