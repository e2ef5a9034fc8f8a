"""`correlate`: leaderboards against the official one; or every measure and grade set of a graded file (a grid)."""

from __future__ import annotations

import argparse
import logging
import math
from collections.abc import Mapping, Sequence

from rubric_measures.cli.inputs import (
    add_grade_options,
    add_places_option,
    bank_of,
    column_named,
    is_records,
    parse_measures,
    rubric_measures_of,
    wanted_of,
)
from rubric_measures.cli.tables import as_json, number, render_table
from rubric_measures.errors import InputError, UnknownNameError
from rubric_measures.files import atomic_writer
from rubric_measures.formats.leaderboards import FORMS, LeaderboardTable, read_leaderboard
from rubric_measures.meta_evaluation.correlation import COEFFICIENTS
from rubric_measures.meta_evaluation.intervals import CoefficientInterval, TopicTau
from rubric_measures.meta_evaluation.leaderboard_correlation import (
    DEFAULT_COEFFICIENTS,
    GridCell,
    LeaderboardCorrelation,
    RunScores,
    best_cells,
    correlate_leaderboards,
    scores_of_table,
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
    parser.add_argument(
        "-o", "--output-format", choices=["text", "tsv", "json", "latex"], default="text", help="default: text"
    )
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
    if options.rounds < 0:
        raise InputError("--rounds is 0 or more")
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
                errors[_label(path, measure, options)] = table.errors(measure)
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
    text = _render(official, names, results, grid, options)
    if options.plot is not None:
        labels = [_label(path, column.name, options) for path, column in zip(names, columns, strict=True)]
        _plot(official, dict(zip(labels, columns, strict=True)), errors, options)
    with atomic_writer(options.output) as stream:
        stream.write(text)
    if official.ranks and options.official_ranks is None:
        _LOG.info("%s: read as ranks, 1 best (--official-scores reads scores)", options.official)
    for path, column in zip(names, columns, strict=True):
        if column.ranks:
            _LOG.info("%s: %s is read as ranks, 1 best", path, column.name)
    return _say([*results, *(cell.result for cell in grid if cell.result is not None)])


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
    topics = sorted({topic for one in (official, column) for run in runs for topic in one.topics.get(run, ())})
    if not topics:
        raise InputError("--plot-kind scatter needs per-topic scores on both sides")
    tables = [
        [[one.topics.get(run, {}).get(topic, math.nan) for run in runs] for topic in topics]
        for one in (official, column)
    ]
    save_figure(plot_manual_automatic(tables[0], tables[1], (_official_label(official), name)), options.plot)


def _official(options: argparse.Namespace) -> tuple[RunScores, dict[str, float]]:
    """The official column, and the standard errors that its file gives."""
    table = read_leaderboard(options.official, form=options.official_form)
    name = options.official_measure
    if name is None:
        wanted = [measure for measure in table.measures if measure in (options.measures or ())]
        choice = wanted if len(wanted) == 1 else list(table.measures)
        if len(choice) > 1:
            raise InputError(f"{options.official}: several columns, choose one: --official-measure {'|'.join(choice)}")
        name = choice[0]
    name = column_named(name, table.measures, f"(columns of {options.official})")
    return scores_of_table(table, name, ranks=options.official_ranks), table.errors(name)


def _topics(scores: RunScores) -> set[str]:
    return {topic for values in scores.topics.values() for topic in values}


def _columns(table: LeaderboardTable, wanted: Sequence[str] | None, path: str) -> list[str]:
    if wanted is None:
        return list(table.measures)
    return [column_named(name, table.measures, f"(columns of {path})") for name in wanted]


def _grid(path: str, official: RunScores, coefficients: Sequence[str], options: argparse.Namespace) -> list[GridCell]:
    from rubric_measures.meta_evaluation.grid import correlate_grid, expand_measures

    default = GRID_MEASURES[:2] if options.compat == "workbench" else GRID_MEASURES
    measures = rubric_measures_of(parse_measures(options.measures or default))
    return correlate_grid(
        path,
        official,
        expand_measures(measures, options.rel),
        bank=bank_of(options),
        wanted=wanted_of(options),
        coefficients=coefficients,
        on_failed=options.on_failed,
        rounds=options.rounds,
        seed=options.seed,
        level=options.level,
        compat=options.compat,
    )


def _shown(one: CoefficientInterval, places: int) -> str:
    value = one.coefficient.value
    if value is None or one.interval is None:
        return number(value, places)
    if one.interval.low is None or one.interval.high is None:
        return f"{number(value, places)} [no interval]"
    return f"{number(value, places)} [{number(one.interval.low, places)}, {number(one.interval.high, places)}]"


def _fields(result: LeaderboardCorrelation, best: set[str], options: argparse.Namespace) -> list[str]:
    fields = []
    for one in result.coefficients:
        mark = "*" if one.coefficient.name in best else ""
        if options.output_format != "tsv":
            fields.append(_shown(one, options.places) + mark)
            continue
        interval = one.interval
        low, high = (interval.low, interval.high) if interval is not None else (None, None)
        values = [one.coefficient.value, low, high, one.coefficient.p_value]
        fields += ["" if value is None else number(value, options.places) for value in values]
    return fields


def _header(coefficients: Sequence[str], tsv: bool) -> list[str]:
    if not tsv:
        return list(coefficients)
    return [f"{prefix}{name}" for name in coefficients for prefix in ("", "low:", "high:", "p:")]


def _render(
    official: RunScores,
    names: Sequence[str],
    results: Sequence[LeaderboardCorrelation],
    grid: Sequence[GridCell],
    options: argparse.Namespace,
) -> str:
    coefficients = list(options.coefficients or DEFAULT_COEFFICIENTS)
    best_by = options.best_by or coefficients[0]
    if best_by not in coefficients:
        raise UnknownNameError("coefficient", best_by, coefficients, hint="(--best-by names one that is computed)")
    best = best_cells(grid, best_by)
    if options.output_format == "json":
        return as_json(
            "correlate",
            {
                "official": {"path": options.official, "measure": official.name, "ranks": official.ranks},
                "leaderboards": [{"path": path, **_json(result)} for path, result in zip(names, results, strict=True)],
                "grid": [_grid_json(cell, index in best) for index, cell in enumerate(grid)],
                "bootstrap": {"rounds": options.rounds, "seed": options.seed, "level": options.level},
                "best_by": best_by,
            },
        )
    is_tsv = options.output_format == "tsv"
    parts = []
    if results:
        several = len(set(names)) > 1
        header = [*(["leaderboard"] if several else []), "measure", "runs", *_header(coefficients, is_tsv)]
        topics = any(result.topic_kendall is not None for result in results)
        if topics:
            header += _header(["topic_kendall", "pooled_kendall"], False)
        rows = []
        for path, result in zip(names, results, strict=True):
            row = [*([path] if several else []), result.name, str(len(result.runs))]
            row += _fields(result, set(), options)
            if topics:
                row += [_topic(result.topic_kendall, options), _topic(result.pooled_kendall, options)]
            rows.append(row)
        parts.append(render_table(header, rows, options.output_format))
    pairs = [(result.name, result.pairs) for result in results if result.pairs is not None]
    if pairs and options.output_format == "text":
        header = ["significantly different pairs", "official", "found", "opposite", "agreement of both"]
        rows = [
            [name, str(one.reference_significant), str(one.recovered), str(one.active_disagreements),
             number(one.active_share, options.places)]
            for name, one in pairs
        ]  # fmt: skip
        parts.append(render_table(header, rows, options.output_format))
    if grid:
        header = ["measure", "llm", "prompt_class", "kind", "runs", *_header(coefficients, is_tsv)]
        if is_tsv:
            header.append("best")
        rows = []
        for index, cell in enumerate(grid):
            start = [cell.measure, cell.llm, cell.prompt_class, cell.kind]
            marks = {best_by} if index in best else set()
            if cell.result is None:
                fields = ["0", *["" if is_tsv else "undefined"] * len(_header(coefficients, is_tsv))]
            else:
                fields = [str(len(cell.result.runs)), *_fields(cell.result, marks, options)]
            rows.append([*start, *fields, *(["*" if marks else ""] if is_tsv else [])])
        parts.append(render_table(header, rows, options.output_format))
    return "\n".join(parts)


def _topic(tau: TopicTau | None, options: argparse.Namespace) -> str:
    if tau is None:
        return "" if options.output_format == "tsv" else "-"
    value, low, high = tau.interval.estimate, tau.interval.low, tau.interval.high
    if options.output_format == "tsv" or low is None or high is None:
        return number(value, options.places)
    return f"{number(value, options.places)} [{number(low, options.places)}, {number(high, options.places)}]"


def _json(result: LeaderboardCorrelation) -> dict[str, object]:
    coefficients = []
    for one in result.coefficients:
        interval = one.interval
        coefficients.append(
            {
                "name": one.coefficient.name,
                "value": one.coefficient.value,
                "runs": one.coefficient.runs,
                "p_value": one.coefficient.p_value,
                "reason": one.coefficient.reason,
                "interval": None if interval is None else interval,
                "resampled": one.unit,
            }
        )
    return {
        "measure": result.name,
        "runs": result.runs,
        "missing": result.missing,
        "extra": result.extra,
        "coefficients": coefficients,
        "worst_run": result.worst_run,
        "worst_drop": result.worst_drop,
        "topic_kendall": result.topic_kendall,
        "pooled_kendall": result.pooled_kendall,
        "significant_pairs": result.pairs,
        "notes": result.notes,
    }


def _grid_json(cell: GridCell, best: bool) -> dict[str, object]:
    result = None if cell.result is None else _json(cell.result)
    start = {"llm": cell.llm, "prompt_class": cell.prompt_class, "kind": cell.kind, "measure": cell.measure}
    return {**start, "best": best, "reason": cell.reason, "result": result}


def _without_interval(result: LeaderboardCorrelation) -> dict[str, list[str]]:
    """Reason -> the coefficients that have a value, and for this reason no interval."""
    reasons: dict[str, list[str]] = {}
    for one in result.coefficients:
        if one.coefficient.value is not None and one.interval is not None and one.interval.low is None:
            reasons.setdefault(one.interval.reason, []).append(one.coefficient.name)
    return reasons


def _say(results: Sequence[LeaderboardCorrelation]) -> int:
    """Notes what the numbers leave out, each once; 1 when official runs are missing or a coefficient is undefined."""
    notes: dict[str, int] = {}
    incomplete = False
    for result in results:
        if result.missing:
            incomplete = True
            names = ", ".join(result.missing[:5]) + (", …" if len(result.missing) > 5 else "")
            text = f"{len(result.missing)} official runs are missing and left out ({names})"
            notes[text] = notes.get(text, 0) + 1
        if result.extra:
            names = ", ".join(result.extra[:5]) + (", …" if len(result.extra) > 5 else "")
            text = f"{len(result.extra)} runs are not in the official leaderboard and left out ({names})"
            notes[text] = notes.get(text, 0) + 1
        for text in result.notes:
            notes[text] = notes.get(text, 0) + 1
        undefined: dict[str, list[str]] = {}
        for one in result.coefficients:
            if one.coefficient.value is None:
                incomplete = True
                undefined.setdefault(one.coefficient.reason, []).append(one.coefficient.name)
        for reason, names_of in undefined.items():
            text = f"{', '.join(names_of)} undefined: {reason}"
            notes[text] = notes.get(text, 0) + 1
        for reason, names_of in _without_interval(result).items():
            text = f"{', '.join(names_of)} without an interval: {reason}"
            notes[text] = notes.get(text, 0) + 1
    drops = [result for result in results if result.worst_drop]
    if drops:
        worst = max(drops, key=lambda result: result.worst_drop or 0.0)
        _LOG.info("the largest rank drop is %g, of run %s by %s", worst.worst_drop, worst.worst_run, worst.name)
    for text, count in notes.items():
        _LOG.warning("%s%s", text, f" (in {count} leaderboards)" if count > 1 else "")
    return 1 if incomplete else 0
