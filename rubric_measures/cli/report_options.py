"""The options of tests and of what `leaderboard` prints beside means; free of numpy, so that --help is instant."""

from __future__ import annotations

import argparse

from rubric_measures.formats.leaderboard_forms import FORMS

__all__ = ["CORRECTIONS", "add_report_options", "add_test_options", "is_asked_for"]

# As meta_evaluation.run_comparison has them, which loads numpy.
CORRECTIONS = ("holm", "bh", "none", "tukey", "randomised-tukey", "max-t")


def add_test_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of significance tests."""
    group = parser.add_argument_group("tests")
    group.add_argument("--test", choices=["t", "permutation"], default="t", help="whose p-values count (default t)")
    group.add_argument("--correction", choices=CORRECTIONS, default="holm", help="for many comparisons (default holm)")
    group.add_argument("--alpha", type=float, default=0.05, help="significance level (default 0.05)")
    group.add_argument("--rounds", type=int, default=10_000, help="rounds of what is drawn (default 10000)")
    group.add_argument("--seed", type=int, default=42, help="seed of what is drawn (default 42)")


def add_report_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options that put more beside the means; without them the output is that of the bare leaderboard."""
    group = parser.add_argument_group("uncertainty")
    group.add_argument("--intervals", action="store_true", help="bootstrap intervals of the means over topics (BCa)")
    group.add_argument("--level", type=float, default=0.95, help="nominal coverage of intervals (default 0.95)")
    group.add_argument("--baseline", metavar="RUN", help="test every run against this one; † marks differences")
    group.add_argument("--groups", action="store_true", help="mark runs that cannot be told apart with one letter")
    group.add_argument(
        "--checks",
        action="store_true",
        help="Judged@k, missing topics, ties, and whether a tie rule decides the winner",
    )
    group.add_argument(
        "--assessor-scores", metavar="SCORES",
        help="per-topic scores by assessors' grades on some topics: prediction-powered means beside the naive ones",
    )  # fmt: skip
    group.add_argument("--assessor-form", choices=FORMS, help="the form of SCORES, where it cannot be seen")
    group.add_argument("--plot", metavar="FILE", help="draw the leaderboard with standard errors (png, svg, pdf)")
    add_test_options(parser)


def is_asked_for(options: argparse.Namespace) -> bool:
    """Whether anything beside the bare leaderboard is wanted."""
    asked = (options.intervals, options.baseline, options.groups, options.checks)
    return any((*asked, options.assessor_scores, options.assessor_form))
