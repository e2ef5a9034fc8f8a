"""`correlate`: leaderboards against the official one; or every measure and grade set of a graded file (a grid)."""

from __future__ import annotations

import argparse
import logging
from collections import Counter
from collections.abc import Sequence

from rubric_measures import api
from rubric_measures.analysis.correlation import COEFFICIENTS
from rubric_measures.analysis.leaderboards import DEFAULT_COEFFICIENTS, LeaderboardCorrelation
from rubric_measures.cli.inputs import (
    add_grade_options,
    add_output_options,
    add_places_option,
    add_plot_option,
    keep_inputs_of,
    passed,
    write_output,
)
from rubric_measures.formats.leaderboards import FORMS as BOARD_FORMS

_LOG = logging.getLogger("rubric_measures")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    parser.add_argument("official", metavar="OFFICIAL", help="the official leaderboard: any form that we read")
    parser.add_argument(
        "others", metavar="LEADERBOARD", nargs="*",
        help="leaderboards, or graded records (every grade set and measure); none where OFFICIAL has both sides "
        "(`leaderboard --qrels`)",
    )  # fmt: skip
    parser.add_argument("-m", "--measures", metavar="MEASURE", nargs="+", action="extend", help="columns to correlate")
    parser.add_argument(
        "--official-measure", metavar="NAME",
        help="the official column, where there are several (default: each measure with the one of its own name)",
    )  # fmt: skip
    parser.add_argument(
        "--coefficients", metavar="NAME", nargs="+", action="extend",
        help=f"{', '.join(COEFFICIENTS)}; @k for the official top k (kendall@15). default: "
        f"{' '.join(DEFAULT_COEFFICIENTS)}",
    )  # fmt: skip
    parser.add_argument(
        "--board-form", dest="form", choices=BOARD_FORMS, help="the form of LEADERBOARD, where it cannot be seen"
    )
    parser.add_argument("--official-form", choices=BOARD_FORMS, help="the form of OFFICIAL, where it cannot be seen")
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument("--official-ranks", action="store_true", default=None, help="OFFICIAL holds ranks, 1 best")
    kind.add_argument(
        "--official-scores", dest="official_ranks", action="store_false",
        help="OFFICIAL holds scores (a JSON dict of the numbers 1 to n is otherwise read as ranks)",
    )  # fmt: skip
    parser.add_argument("--rel", type=int, nargs="+", help="levels of a grid (default: those of the scale)")
    parser.add_argument("--best-by", metavar="NAME", help="mark the best of this coefficient (default: the first)")
    parser.add_argument("--compat", choices=["workbench"], help="a missing run stops; a grid scores as the program")
    add_plot_option(parser, "ranks, or scores by run and query", ("ranks", "scatter"))
    add_bootstrap_options(parser)
    add_output_options(parser)
    add_places_option(parser)
    add_grade_options(parser)
    parser.epilog = """examples:
  rubric_measures correlate official.json leaderboard.tsv --coefficients kendall spearman kendall@15
  rubric_measures correlate official.json graded.jsonl.gz --bank questions.jsonl   (a grid, best marked *)
  rubric_measures correlate board.json   (a board of `leaderboard --qrels`: ours against the official measure)"""


def add_bootstrap_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of bootstrap intervals."""
    group = parser.add_argument_group("intervals")
    group.add_argument("--rounds", type=int, default=10_000, help="bootstrap rounds (default 10000; 0: no intervals)")
    group.add_argument("--seed", type=int, default=42, help="seed of everything that is drawn (default 42)")
    group.add_argument("--level", type=float, default=0.95, help="nominal coverage of intervals (default 0.95)")


def run(options: argparse.Namespace) -> int:
    """Runs the command."""
    keep_inputs_of(options, options.official, *options.others, options.bank)
    found = api.correlate(options.official, *options.others, **passed(options, api.correlate))
    report = found.report(options.best_by, options.places)
    if options.plot is not None:
        found.plot(options.plot, options.plot_kind)
    write_output(options, report)
    if found.official.ranks and options.official_ranks is None:
        _LOG.info("%s: read as ranks, 1 best (--official-scores reads scores)", options.official)
    for (path, _), column in zip(found.results, found.columns, strict=True):
        if column.ranks:
            _LOG.info("%s: %s is read as ranks, 1 best", path, column.name)
    return _say(found.found)


def _say(results: Sequence[LeaderboardCorrelation]) -> int:
    """Notes what the numbers leave out, each once; 1 when official runs are missing or a coefficient is undefined."""
    notes: Counter[str] = Counter()
    incomplete = False
    for result in results:
        lacking: dict[str, list[str]] = {}
        for names, what in (
            (result.missing, "official runs are missing and left out"),
            (result.extra, "runs are not in the official leaderboard and left out"),
        ):
            if names:
                notes[f"{len(names)} {what} ({', '.join(names[:5])}{', …' if len(names) > 5 else ''})"] += 1
        notes.update(result.notes)
        for one in result.coefficients:
            if one.coefficient.value is None:
                incomplete = True
                lacking.setdefault(f"undefined: {one.coefficient.reason}", []).append(one.coefficient.name)
            elif one.interval is not None and one.interval.low is None:
                lacking.setdefault(f"without an interval: {one.interval.reason}", []).append(one.coefficient.name)
        incomplete |= bool(result.missing)
        if result.noise_free is not None and result.noise_free.expected is None and result.noise_free.reason:
            notes[f"{result.name}: no tau without noise: {result.noise_free.reason}"] += 1
        reasons = sorted(lacking.items(), key=lambda item: item[0].startswith("without"))
        notes.update(f"{', '.join(names_of)} {what}" for what, names_of in reasons)
    drops = [result for result in results if result.worst_drop]
    if drops:
        worst = max(drops, key=lambda result: result.worst_drop or 0.0)
        _LOG.info("the largest rank drop is %g, of run %s by %s", worst.worst_drop, worst.worst_run, worst.name)
    for text, count in notes.items():
        _LOG.warning("%s%s", text, f" (in {count} leaderboards)" if count > 1 else "")
    return 1 if incomplete else 0
