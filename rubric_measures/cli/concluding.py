"""Commands that conclude: agreement, calibrate, compare, correlate, power, tournament.

`compare`: runs against runs from per-query scores, with corrected tests and groups of equals.

`correlate`: leaderboards against the official one; or every measure and grade set of a graded file (a grid).

`agreement`: two or more label sources on the same documents: judgments, graded records, item grades.

`calibrate`: a grader held to a few grades of assessors, or of another grader.

`power`: how many queries an experiment needs, from the scores of a board that is there.

`tournament`: games between answers to ratings; plays the games first where a model is named.
"""

from __future__ import annotations

import argparse
import logging
import os
from collections.abc import Sequence

from rubric_measures import api
from rubric_measures.analysis.label_sources import tables_report
from rubric_measures.base.errors import InputError
from rubric_measures.base.files import atomic_writer
from rubric_measures.base.tables import FORMS
from rubric_measures.cli.declared import Call, command
from rubric_measures.cli.inputs import (
    DRAWS,
    NamedValue,
    Once,
    Printed,
    add_document_options,
    add_draw_options,
    add_endpoint_options,
    add_grade_options,
    add_limit_options,
    add_output_options,
    add_places_option,
    add_plot_option,
    is_watched,
    keep_inputs_of,
    passed,
    settings_of,
    write_output,
)
from rubric_measures.corpora.overwriting import keep_apart, keep_cache
from rubric_measures.measures.findings import say


@command(compare="rubric_measures.api.comparing:compare", files={"scores": "BOARD…"}, spelled={"form": "--board-form"})
def compare(compare: Call, *, plot: str | None = None, printed: Printed = Printed()) -> int:
    """how sure means are, and which runs differ: intervals, paired tests, groups, from per-query scores

    example:
      rubric_measures leaderboard graded.jsonl.gz runs/*.run --bank questions.jsonl -o board.json
      rubric_measures compare board.json
      rubric_measures compare board.json -m 'RubricCover(rel=4)@20' --baseline bm25 --correction holm
      rubric_measures compare board.json --smallest 0.03 --format tsv   (all pairs)

    Ends with 1 when queries or tests are missing.

    Args:
        plot: also draw the ranking with its groups, or the differences to the baseline: .pdf, .svg or .png.
    """
    found = compare()
    if plot is not None:
        found.plot(plot)
    printed.write(found.report(printed.places))
    found.log_notes()
    return 0 if found.is_complete else 1


_LOG = logging.getLogger("rubric_measures")


@command(
    correlate="rubric_measures.api.comparing:correlate",
    files={"official": "OFFICIAL", "others": "[LEADERBOARD…]"},
    spelled={"form": "--board-form"},
)  # fmt: skip
def correlate(
    correlate: Call,
    *,
    official: str | os.PathLike[str],
    others: Sequence[str | os.PathLike[str]] = (),
    plot: str | None = None,
    printed: Printed = Printed(),
) -> int:
    """rank correlation of leaderboards with the official one

    examples:
      rubric_measures correlate official.json leaderboard.tsv --coefficients kendall spearman kendall@15
      rubric_measures correlate official.json graded.jsonl.gz --bank questions.jsonl   (a grid, best marked *)
      rubric_measures correlate board.json   (a board of `leaderboard --qrels`: ours against the official measure)

    Args:
        official: the official leaderboard, of any form that is read.
        others: leaderboards, or graded records (every grade set and measure); none where OFFICIAL has both sides.
        plot: also draw scores against official scores, or the ranks of several leaderboards: .pdf, .svg or .png.
    """
    found = correlate(official, *others, notes=False)
    report = found.report(printed.places)
    if plot is not None:
        found.plot(plot)
    printed.write(report)
    if found.official.ranks and found.asked.official_ranks is None:
        _LOG.info("%s: read as ranks, 1 best (--no-official-ranks reads scores)", official)
    say(found.notes)
    return 0 if found.is_complete else 1


def add_bootstrap_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of bootstrap intervals."""
    add_draw_options(parser.add_argument_group("intervals"), rounds="; 0: no intervals")


def add_agreement_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    parser.add_argument(
        "sources", metavar="SOURCE", nargs="+",
        help="qrels, tables of labels or grades, graded records (their labels), or judgments:RECORDS; the first is the "
        "truth, the others are judges; one records file alone: its labels against its judgments; one table: its judges",
    )  # fmt: skip
    text = "compare item grades, not labels of passages (of their items the highest; `qrels` writes other labels)"
    parser.add_argument("--items", action="store_true", help=text)
    parser.add_argument(
        "--cutoff", metavar=("A", "B"), nargs=2, type=int, action="append", default=[],
        help="binarise: first source at least A, the others at least B; may be repeated (default: at each label)",
    )  # fmt: skip
    parser.add_argument(
        "--runs", metavar="RUN", nargs="+",
        help="TREC runs: also correlate the leaderboard that each judge's labels make with the truth's",
    )  # fmt: skip
    parser.add_argument(
        "-m", "--measures", dest="measure", metavar="MEASURE", default="nDCG@10", help="of --runs (default: nDCG@10)"
    )
    parser.add_argument("--grader-b", metavar="GRADER", action=Once, help="that of the second source, of records too")
    parser.add_argument(
        "--tables", dest="min_judgment", type=int, choices=[1, 2],
        help="the Rubric workbench's tables of one records file; judgments are relevant from 1 on, as in the program, "
        "or from 2 on, as in its paper",
    )  # fmt: skip
    add_plot_option(parser, "the differences of the first two sources' labels")
    add_bootstrap_options(parser)
    add_output_options(parser)
    add_places_option(parser)
    add_grade_options(parser, scores=False)
    parser.epilog = """examples:
  rubric_measures agreement assessors.qrels model.qrels --cutoff 2 2
  rubric_measures agreement assessors.qrels judges/*.qrels --runs runs/*.run
  rubric_measures agreement graded.jsonl.gz --cutoff 4 2        (labels against the judgments inside)
  rubric_measures agreement graded.jsonl.gz --tables 1 --format latex
  rubric_measures agreement graded.jsonl.gz graded.jsonl.gz --items --grader prompt=A --grader-b prompt=B"""


def run_agreement(options: argparse.Namespace) -> int:
    """Runs the command."""
    keep_inputs_of(options, options.bank, *(source.removeprefix("judgments:") for source in options.sources))
    if options.min_judgment is not None:
        if len(options.sources) != 1:
            raise InputError("--tables takes one graded-records file")
        tables = api.agreement_tables(options.sources[0], **passed(options, api.agreement_tables))
        write_output(options, tables_report(tables))
        return 0
    options.cutoff = [(a, b) for a, b in options.cutoff]
    result = api.agreement(*options.sources, **passed(options, api.agreement), notes=False)
    if options.plot is not None:
        result.plot(options.plot)
    write_output(options, result.report(options.places))
    say(result.notes)
    return 1 if result.agreement.kappa is None else 0


@command(calibrate="rubric_measures.api.graders:calibrate", files={"graded": "GRADED"})
def calibrate(calibrate: Call, *, printed: Printed = Printed()) -> int:
    """bias of a grader, what its grades are worth, calibrated scores

    examples:
      rubric_measures calibrate reviewed.jsonl.gz --bank nuggets.jsonl
      rubric_measures calibrate regraded.jsonl.gz --anchors graded.jsonl.gz --against gpt-4o --grader gpt-5
    """
    printed.write(calibrate().report(printed.places))
    return 0


@command(power="rubric_measures.api.comparing:power", files={"scores": "BOARD…"}, spelled={"form": "--board-form"})
def power(power: Call, *, printed: Printed = Printed()) -> int:
    """how many queries an experiment needs, and what a board could tell

    example:
      rubric_measures power board.json --smallest 0.05
    """
    found = power()
    printed.write(found.report(printed.places))
    found.log_notes()
    return 0 if found.is_complete else 1


_EXAMPLE = """examples:
  rubric_measures tournament games.jsonl
  rubric_measures tournament --answers a.jsonl b.jsonl c.jsonl --query-file queries.tsv --model openai:gpt-4o \\
      --save games.jsonl
  rubric_measures tournament games.jsonl --assessor-games verdicts.jsonl --compat ragelo --format json > tournament.json

Games are JSON lines {query_id, agent_a, agent_b, verdict: a, b, tie, both_bad or null}, RAGElo's CSV, or battles of
RAGDoll. A game without a verdict counts for nobody. With --model, games are played through the reply cache
(SAVE.cache.sqlite unless --cache names one) and kept in SAVE; run the same command again to go on, or with more
answers to add an agent: only new games are played.
The output is a leaderboard: `correlate` compares --format tsv and --format json with any other."""


def add_tournament_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    parser.epilog = _EXAMPLE
    add = parser.add_argument
    add("games", metavar="GAMES", nargs="*", help="played games (JSON lines, RAGElo's CSV or battles of RAGDoll)")
    add("--assessor-games", metavar="FILE", action="append", default=[],
        help="games judged by assessors; mixed in and marked")  # fmt: skip
    add_output_options(
        parser, list(FORMS), "text",
        "a table with intervals (default), or a leaderboard, also by the ending of FILE; json has everything",
    )  # fmt: skip
    add_plot_option(parser, "ratings, groups and the win matrix")
    add_places_option(parser, None, " of ratings", "1; tsv, json, jsonl and trec_eval: all digits")

    ratings = parser.add_argument_group("ratings")
    rating = ratings.add_argument
    rating("--compat", choices=["ragelo", "ragelo-0.4", "ragdoll"],
           help="Elo as RAGElo's program has it (0.4: up to release 0.4); ragdoll: no prior, its draws of games and of "
           "who is shown first")  # fmt: skip
    add_draw_options(ratings)

    play = parser.add_argument_group("playing games").add_argument
    play("--answers", metavar="FILE", nargs="+", default=[], help="reports or plain answers; their runs are the agents")
    play("--query-file", dest="queries", metavar="FILE", help="the texts of the queries")
    play("--model", help="lexical, scripted:FILE, hf:NAME, openai:NAME or litellm:PROVIDER/NAME")
    add_endpoint_options(play)
    play("--option", action=NamedValue, default={}, metavar="NAME=VALUE", help="a further generation option")
    play("--save", metavar="FILE", help="where the games are kept (JSON lines); those in it stay")
    add_document_options(play, "what to show beside answers")
    play("--prompt", default="", metavar="NAME", help="prompt name or .toml file (default: ragelo.answer_pairwise)")
    play(
        "--games-per", default="", metavar="UNIT=N",
        help="query=5: five random pairs a query, balanced (default: all pairs); with --compat ragdoll also pair=N "
        "(queries of a pair) and agent=N (games of an agent in a query)",
    )  # fmt: skip
    play("--temperature", type=float, default=0.0, help="0 (default) takes the most probable reply")
    play("--max-tokens", type=int, help="the longest reply (default: by the prompt)")
    play("--retries", type=int, default=1, metavar="N", help="further draws of a reply without verdict (default 1)")
    add_limit_options(play, "SAVE.cache.sqlite")


def run_tournament(options: argparse.Namespace) -> int:
    """Runs the command; 1 when games have no verdict, or agents never met."""
    from rubric_measures.api import tournament
    from rubric_measures.games.tournaments import render
    from rubric_measures.grading.asking import Asking
    from rubric_measures.models.settings import Calls

    # What was paid for is kept: the ratings alone go to standard output.
    missing = [name for name in ("answers", "queries", "save") if options.model and not getattr(options, name)]
    if missing:
        raise InputError(f"playing games needs {', '.join(missing)}", settings=missing)
    read = (
        *options.games,
        *options.assessor_games,
        *options.answers,
        options.queries,
        options.documents,
        options.prices,
    )
    keep_inputs_of(options, *read)
    keep_apart(output=options.output, save=options.save, plot=options.plot)
    keep_cache(options.cache or (f"{options.save}.cache.sqlite" if options.save else None), options.output)
    shown = ("output", "output_format", "places", "plot", *DRAWS)
    settings = {name: value for name, value in vars(options).items() if name not in shown}
    # Elo as another program has it, and replies as another has them, are called alike.
    compat = settings.pop("compat")
    asking, calls = settings_of(Asking, settings), settings_of(Calls, settings)
    draws = passed(options, tournament)["draws"]
    result = tournament(**settings, compat=compat, draws=draws, asking=asking, calls=calls, progress=is_watched())
    if options.plot is not None:
        result.plot(options.plot)
    with atomic_writer(options.output) as stream:
        stream.write(render(result, options.output_format, _places(options)))
    for note in result.notes:
        _LOG.warning("%s", note)
    return 0 if result.is_complete else 1


def _places(options: argparse.Namespace) -> int:
    """The decimal places: what the user chose; else one in tables for people, and all digits in files for programs."""
    if options.places is not None:
        return int(options.places)
    return 1 if options.output_format in ("text", "latex", "markdown") else -1
