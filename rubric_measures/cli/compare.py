"""`compare`: runs against runs from per-topic scores, with corrected tests and groups of equals."""

from __future__ import annotations

import argparse
import logging

from rubric_measures.base.errors import InputError, UnknownNameError
from rubric_measures.base.files import atomic_writer
from rubric_measures.base.tables import TABLE_FORMS, render
from rubric_measures.cli.inputs import add_places_option, add_test_options, keep_inputs_of
from rubric_measures.formats.leaderboards import FORMS, read_leaderboard
from rubric_measures.leaderboards.scoring import OVERALL
from rubric_measures.measures.scoring import column_named
from rubric_measures.meta_evaluation.comparison_tables import comparison_report
from rubric_measures.meta_evaluation.run_comparison import Comparison, compare_runs

__all__ = ["HELP", "add_arguments", "run"]

HELP = "paired tests between runs, from per-topic scores"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    parser.add_argument(
        "scores", metavar="SCORES", nargs="+",
        help="leaderboards with per-topic scores: our JSON, trec_eval -q lines, …; several files are put together",
    )  # fmt: skip
    parser.add_argument("-m", "--measure", metavar="MEASURE", help="the measure, where there are several")
    parser.add_argument("--runs", metavar="RUN", nargs="+", help="compare these runs only (default: all)")
    parser.add_argument("--baseline", metavar="RUN", help="compare every run with this one (default: all pairs)")
    add_test_options(parser)
    parser.add_argument("--plot", metavar="FILE", help="also draw the ranking with its groups (png, svg, pdf)")
    parser.add_argument("--form", choices=FORMS, help="the form of SCORES, where it cannot be seen")
    parser.add_argument("-o", "--output-format", choices=TABLE_FORMS, default="text", help="default: text")
    parser.add_argument("--output", metavar="FILE", default="-", help="write there (default: standard output)")
    add_places_option(parser)
    parser.epilog = """example:
  rubric_measures leaderboard graded.jsonl.gz runs/*.run -o json > scores.json
  rubric_measures compare scores.json -m 'RubricCover(rel=4)@20' --baseline bm25 --correction holm"""


def run(options: argparse.Namespace) -> int:
    """Runs the command."""
    keep_inputs_of(options, *options.scores)
    if options.rounds < 1:
        raise InputError("--rounds is 1 or more")
    measure, scores = _scores(options)
    comparison = compare_runs(
        scores,
        measure,
        baseline=options.baseline,
        procedure=options.correction,
        test=options.test,
        alpha=options.alpha,
        rounds=options.rounds,
        seed=options.seed,
    )
    if options.plot is not None:
        from rubric_measures.meta_evaluation.plots import plot_critical_difference, save_figure

        if comparison.baseline is not None:
            raise InputError("--plot draws the groups of all pairs; leave --baseline out")
        save_figure(plot_critical_difference(comparison.means, comparison.groups, measure), options.plot)
    report = comparison_report(comparison, options.places, {"rounds": options.rounds, "seed": options.seed})
    with atomic_writer(options.output) as stream:
        stream.writelines(render(report, options.output_format))
    return _say(comparison)


def _scores(options: argparse.Namespace) -> tuple[str, dict[str, dict[str, float]]]:
    """The measure and run -> topic -> score of all files."""
    tables = [(path, read_leaderboard(path, form=options.form)) for path in options.scores]
    measures = list(dict.fromkeys(name for _, table in tables for name in table.measures if table.per_query(name)))
    if not measures:
        raise InputError(
            f"{', '.join(options.scores)}: no per-topic scores; print them with -q, or leaderboard -o json"
        )
    if options.measure is None and len(measures) > 1:
        raise InputError(f"several measures, choose one with -m: {' '.join(measures)}")
    measure = column_named(options.measure or measures[0], measures)
    scores: dict[str, dict[str, float]] = {}
    for path, table in tables:
        for run_id, values in table.per_query(measure).items() if measure in table.measures else ():
            if run_id == OVERALL:
                continue
            if run_id in scores:
                raise InputError(f"{path}: run {run_id!r} is in another file, too; give each run once")
            scores[run_id] = values
    if options.runs is not None:
        wanted = dict.fromkeys([*options.runs, *([options.baseline] if options.baseline else [])])
        for run_id in wanted:
            if run_id not in scores:
                raise UnknownNameError("run", run_id, scores)
        scores = {run_id: scores[run_id] for run_id in wanted}
    return measure, scores


def _say(comparison: Comparison) -> int:
    """Notes what the table leaves out; 1 when topics or tests are missing."""
    log = logging.getLogger("rubric_measures")
    status = 0
    if comparison.left_out:
        status = 1
        log.warning(
            "%d topics that some run lacks are left out (such as %s); %d are compared",
            len(comparison.left_out),
            comparison.left_out[0],
            len(comparison.topics),
        )
    reasons: dict[str, int] = {}
    for pair in comparison.pairs:
        if pair.p_adjusted is None:
            status = 1
            reasons[pair.test.reason] = reasons.get(pair.test.reason, 0) + 1
    for reason, count in reasons.items():
        log.warning("%d comparisons have no p-value: %s", count, reason or "no variance is left")
    _log_groups(comparison, log)
    return status


def _log_groups(comparison: Comparison, log: logging.Logger) -> None:
    if comparison.groups and comparison.groups[0][0] == next(iter(comparison.means)):
        others = comparison.groups[0][1:]
        named = ", ".join(others[:5]) + (", …" if len(others) > 5 else "")
        log.info("the best run cannot be told apart from %d others (%s)", len(others), named)
