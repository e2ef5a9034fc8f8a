"""What `verify --canary` does: canaries through the grading path and its cache, then the report."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING

from rubric_measures.cli.model_options import backend_settings
from rubric_measures.errors import InputError

if TYPE_CHECKING:
    from rubric_measures.formats.workbench import QueryPassages
    from rubric_measures.records import TestBank
    from rubric_measures.verification.sections import Section

__all__ = ["add_canary_options", "run_canaries"]


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


def run_canaries(
    options: argparse.Namespace, groups: Iterable[QueryPassages], bank: TestBank | None
) -> tuple[list[Section], bool]:
    """Builds the canaries of the passages, grades them, and reports.

    Returns:
        the sections, and whether every case has a grade.

    Raises:
        InputError: no model or no bank is named.
    """
    from rubric_measures.backends import make_backend
    from rubric_measures.backends.cache import ReplyCache
    from rubric_measures.grading import Grader
    from rubric_measures.runners import LocalRunner
    from rubric_measures.verification.canaries import build_canaries, canary_report
    from rubric_measures.verification.statistics_sections import canary_sections

    if options.model is None or bank is None:
        raise InputError("--canary needs the grader and the items: add --model and --bank")
    cases = build_canaries(groups, bank, options.seed, options.cases)
    backend = make_backend(options.model, **backend_settings(options.model_option, options.base_url))
    Grader(LocalRunner(backend, None), tuple(options.prompt)).makers(bank)
    with ReplyCache(options.cache or ":memory:") as cache:
        grader = Grader(LocalRunner(backend, cache), tuple(options.prompt))
        report = canary_report(grader.grade_records(cases, bank), options.min_rating)
    failed = sum(count.failed for count in report.counts.values())
    if failed:
        logging.getLogger("rubric_measures").warning("%d canary grades failed: they count neither way", failed)
    return list(canary_sections(report, options.min_rating)), not failed
