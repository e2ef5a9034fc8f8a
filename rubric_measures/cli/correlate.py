"""`correlate`: leaderboards against the official one; or every measure and grade set of a graded file (a grid)."""

from __future__ import annotations

import argparse
import logging
import math
from collections.abc import Mapping, Sequence

from rubric_measures.base.errors import InputError
from rubric_measures.base.files import atomic_writer
from rubric_measures.base.tables import TABLE_FORMS, render
from rubric_measures.cli.correlate_notes import say_correlations
from rubric_measures.cli.inputs import (
    add_grade_options,
    add_places_option,
    bank_of,
    is_records,
    keep_inputs_of,
    refuse_filters,
    wanted_of,
)
from rubric_measures.formats.leaderboards import FORMS, LeaderboardTable, read_leaderboard
from rubric_measures.measures.parsing import column_named, note_labels, parse_measures, rubric_measures_of
from rubric_measures.meta_evaluation.correlation import COEFFICIENTS
from rubric_measures.meta_evaluation.correlation_tables import correlation_report
from rubric_measures.meta_evaluation.leaderboard_correlation import (
    DEFAULT_COEFFICIENTS,
    GridCell,
    LeaderboardCorrelation,
    RunScores,
    correlate_leaderboards,
    scores_of_table,
    standard_errors,
)

__all__ = ["HELP", "add_arguments", "run"]

HELP = "rank correlation of leaderboards with the official one"
GRID_MEASURES = ["RubricCover@20", "nRubricCover@20", "RubricQrels(measure='P@20')", "RubricQrels(measure='nDCG@10')"]
_LOG = logging.getLogger("rubric_measures")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    parser.add_argument("official", metavar="OFFICIAL", help="the official leaderboard: any form that we read")
    parser.add_argument(
        "others", metavar="LEADERBOARD", nargs="+", help="leaderboards, or graded records (every grade set and measure)"
    )
    parser.add_argument("-m", "--measures", metavar="MEASURE", nargs="+", action="extend", help="columns to correlate")
    parser.add_argument("--official-measure", metavar="NAME", help="the official column, where there are several")
    parser.add_argument(
        "-c", "--coefficients", metavar="NAME", nargs="+", action="extend",
        help=f"{', '.join(COEFFICIENTS)}; @k for the official top k (kendall@15). default: "
        f"{' '.join(DEFAULT_COEFFICIENTS)}",
    )  # fmt: skip
    parser.add_argument("--form", choices=FORMS, help="the form of LEADERBOARD, where it cannot be seen")
    parser.add_argument("--official-form", choices=FORMS, help="the form of OFFICIAL, where it cannot be seen")
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument("--official-ranks", action="store_true", default=None, help="OFFICIAL holds ranks, 1 best")
    kind.add_argument(
        "--official-scores", dest="official_ranks", action="store_false",
        help="OFFICIAL holds scores (a JSON dict of the numbers 1 to n is otherwise read as ranks)",
    )  # fmt: skip
    parser.add_argument("--rel", type=int, nargs="+", default=[1, 2, 3, 4, 5], help="levels of a grid (default 1 to 5)")
    parser.add_argument("--best-by", metavar="NAME", help="mark the best of this coefficient (default: the first)")
    parser.add_argument("--compat", choices=["workbench"], help="a missing run stops; a grid scores as the program")
    parser.add_argument("--plot", metavar="FILE", help="also draw the leaderboards (png, svg, pdf)")
    parser.add_argument(
        "--plot-kind", choices=["leaderboards", "scatter", "length"], default="leaderboards",
        help="all leaderboards in official order (default); official against automatic scores by topic and run; or "
        "score against length, OFFICIAL holding the lengths",
    )  # fmt: skip
    add_bootstrap_options(parser)
    parser.add_argument("-o", "--output-format", choices=TABLE_FORMS, default="text", help="default: text")
    parser.add_argument("--output", metavar="FILE", default="-", help="write there (default: standard output)")
    add_places_option(parser)
    add_grade_options(parser)
    parser.epilog = """examples:
  rubric_measures correlate official.json leaderboard.tsv -m 'RubricCover(rel=4)@20' -c kendall spearman kendall@15
  rubric_measures correlate official.json graded.jsonl.gz --bank questions.jsonl   (a grid, best marked *)"""


def add_bootstrap_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of bootstrap intervals."""
    group = parser.add_argument_group("intervals")
    group.add_argument("--rounds", type=int, default=10_000, help="bootstrap rounds (default 10000; 0: no intervals)")
    group.add_argument("--seed", type=int, default=42, help="seed of everything that is drawn (default 42)")
    group.add_argument("--level", type=float, default=0.95, help="nominal coverage of intervals (default 0.95)")


def run(options: argparse.Namespace) -> int:
    """Runs the command."""
    keep_inputs_of(options, options.official, *options.others, options.bank)
    if options.rounds < 0:
        raise InputError("--rounds is 0 or more")
    if not any(path != "-" and is_records(path) for path in options.others):
        refuse_filters(" and ".join(options.others), options, "scores of runs")
    official, errors_of_official = _official(options)
    coefficients = options.coefficients or list(DEFAULT_COEFFICIENTS)
    results: list[LeaderboardCorrelation] = []
    grid: list[GridCell] = []
    names: list[str] = []
    columns: list[RunScores] = []
    errors = {_official_label(official): errors_of_official}
    for path in options.others:
        if path != "-" and is_records(path):
            grid += _grid(path, official, coefficients, options)
        else:
            table = read_leaderboard(
                path,
                form=options.form,
                topics=_topics(official),
                runs=official.means,
                measures=options.measures or (),
            )
            for measure in _columns(table, options.measures, path):
                names.append(path)
                columns.append(scores_of_table(table, measure))
                errors[_label(path, measure, options)] = {**standard_errors(columns[-1]), **table.errors(measure)}
                results.append(
                    correlate_leaderboards(
                        official,
                        columns[-1],
                        coefficients,
                        rounds=options.rounds,
                        seed=options.seed,
                        level=options.level,
                        strict=options.compat is not None,
                    )
                )
    report = correlation_report(
        official,
        options.official,
        list(zip(names, results, strict=True)),
        grid,
        coefficients,
        options.best_by,
        options.places,
        {"rounds": options.rounds, "seed": options.seed, "level": options.level},
    )
    if options.plot is not None:
        labels = [_label(path, column.name, options) for path, column in zip(names, columns, strict=True)]
        _plot(official, dict(zip(labels, columns, strict=True)), errors, options)
    with atomic_writer(options.output) as stream:
        stream.writelines(render(report, options.output_format))
    if official.ranks and options.official_ranks is None:
        _LOG.info("%s: read as ranks, 1 best (--official-scores reads scores)", options.official)
    for path, column in zip(names, columns, strict=True):
        if column.ranks:
            _LOG.info("%s: %s is read as ranks, 1 best", path, column.name)
    return say_correlations([*results, *(cell.result for cell in grid if cell.result is not None)])


def _label(path: str, measure: str, options: argparse.Namespace) -> str:
    return measure if len(options.others) == 1 else f"{path}: {measure}"


def _official_label(official: RunScores) -> str:
    return f"official {official.name}"


def _plot(
    official: RunScores,
    columns: Mapping[str, RunScores],
    errors: Mapping[str, Mapping[str, float]],
    options: argparse.Namespace,
) -> None:
    from rubric_measures.meta_evaluation.plots import (
        plot_leaderboards,
        plot_length,
        plot_manual_automatic,
        save_figure,
    )

    if not columns:
        raise InputError("--plot draws leaderboard files; a grid is not drawn")
    if options.plot_kind == "leaderboards":
        order = sorted(official.means, key=lambda run: (-official.means[run], run))
        scores = {_official_label(official): official.means, **{name: one.means for name, one in columns.items()}}
        save_figure(plot_leaderboards(order, scores, errors), options.plot)
        return
    if len(columns) > 1:
        raise InputError(f"--plot-kind {options.plot_kind} draws one column; choose it with -m")
    name, column = next(iter(columns.items()))
    runs = sorted(official.means.keys() & column.means.keys())
    if options.plot_kind == "length":
        lengths, scores_of_runs = ([one.means[run] for run in runs] for one in (official, column))
        save_figure(plot_length(runs, lengths, scores_of_runs, (official.name, name)), options.plot)
        return
    sides = [{topic for run in runs for topic in one.topics.get(run, ())} for one in (official, column)]
    if not all(sides):
        raise InputError("--plot-kind scatter needs per-topic scores on both sides")
    topics = sorted(sides[0] | sides[1])
    tables = [
        [[one.topics.get(run, {}).get(topic, math.nan) for run in runs] for topic in topics]
        for one in (official, column)
    ]
    save_figure(plot_manual_automatic(tables[0], tables[1], (_official_label(official), name)), options.plot)


def _official(options: argparse.Namespace) -> tuple[RunScores, dict[str, float]]:
    """The official column, and the standard errors that its file gives or its per-topic scores have."""
    table = read_leaderboard(options.official, form=options.official_form)
    name = options.official_measure
    if name is None:
        wanted = [measure for measure in table.measures if measure in (options.measures or ())]
        choice = wanted if len(wanted) == 1 else list(table.measures)
        if len(choice) > 1:
            raise InputError(f"{options.official}: several columns, choose one: --official-measure {'|'.join(choice)}")
        name = choice[0]
    name = column_named(name, table.measures, f"(columns of {options.official})")
    scores = scores_of_table(table, name, ranks=options.official_ranks)
    return scores, {**standard_errors(scores), **table.errors(name)}


def _topics(scores: RunScores) -> set[str]:
    return {topic for values in scores.topics.values() for topic in values}


def _columns(table: LeaderboardTable, wanted: Sequence[str] | None, path: str) -> list[str]:
    if wanted is None:
        return list(table.measures)
    return [column_named(name, table.measures, f"(columns of {path})") for name in wanted]


def _grid(path: str, official: RunScores, coefficients: Sequence[str], options: argparse.Namespace) -> list[GridCell]:
    from rubric_measures.meta_evaluation.grid import correlate_grid, expand_measures

    default = GRID_MEASURES[:2] if options.compat == "workbench" else GRID_MEASURES
    asked = parse_measures(options.measures or default)
    cells = correlate_grid(
        path,
        official,
        expand_measures(rubric_measures_of(asked), options.rel),
        bank=bank_of(options),
        wanted=wanted_of(options),
        coefficients=coefficients,
        on_failed=options.on_failed,
        rounds=options.rounds,
        seed=options.seed,
        level=options.level,
        compat=options.compat,
    )
    note_labels(asked)
    return cells
