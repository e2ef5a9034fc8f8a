"""`tournament`: games between answers to ratings; plays the games first where a model is named."""

from __future__ import annotations

import argparse
import logging

from rubric_measures.base.errors import InputError
from rubric_measures.base.files import atomic_writer
from rubric_measures.base.tables import FORMS
from rubric_measures.cli.inputs import (
    NamedValue,
    add_endpoint_options,
    add_limit_options,
    add_output_options,
    add_places_option,
    add_plot_option,
    ids,
    is_watched,
    keep_inputs_of,
)
from rubric_measures.corpora.overwriting import keep_apart, keep_cache

_LOG = logging.getLogger("rubric_measures")
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


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    parser.epilog = _EXAMPLE
    add = parser.add_argument
    add("games", metavar="GAMES", nargs="*", help="played games (JSON lines, RAGElo's CSV or battles of RAGDoll)")
    add("--assessor-games", metavar="FILE", action="append", default=[],
        help="games judged by assessors; mixed in and marked")  # fmt: skip
    add("--agents", type=ids, metavar="ID,ID,…", help="the agents that play (default: all)")
    add_output_options(
        parser, list(FORMS), "text",
        "a table with intervals (default), or a leaderboard, also by the ending of FILE; json has everything",
    )  # fmt: skip
    add_plot_option(parser, "ratings, groups and the win matrix")
    add_places_option(parser, None, " of ratings", "1; tsv, json, jsonl and trec_eval: all digits")

    rating = parser.add_argument_group("ratings").add_argument
    rating("--prior", type=float, help="Bradley-Terry: games against a middling opponent (default 0.1; 0 as RAGDoll)")
    rating("--rounds", type=int, default=1000, help="bootstrap samples (default 1000)")
    rating("--unit", choices=["queries", "games"], default="queries", help="what the bootstrap draws (default queries)")
    rating("--level", type=float, default=0.95, help="of the intervals (default 0.95)")
    rating("--k", type=float, help="Elo: the most points a game moves (default 32)")
    rating("--start", type=float, help="Elo: the first rating (default 1000)")
    rating("--replays", type=int, help="Elo: shuffled replays (default 500)")
    rating("--compat", choices=["ragelo", "ragelo-0.4", "ragdoll"],
           help="Elo as RAGElo's program has it (0.4: up to release 0.4); ragdoll: no prior, its draws of games and of "
           "who is shown first")  # fmt: skip
    rating("--seed", type=int, default=42, help="of bootstrap, shuffles and random games (default 42)")

    play = parser.add_argument_group("playing games").add_argument
    play("--answers", metavar="FILE", nargs="+", default=[], help="reports or plain answers; their runs are the agents")
    play("--query-file", dest="queries", metavar="FILE", help="the texts of the queries")
    play("--model", help="lexical, scripted:FILE, hf:NAME, openai:NAME or litellm:PROVIDER/NAME")
    add_endpoint_options(play)
    play("--option", action=NamedValue, default={}, metavar="NAME=VALUE", help="a further generation option")
    play("--save", metavar="FILE", help="where the games are kept (JSON lines); those in it stay")
    play("--documents", metavar="SOURCE", help="what to show beside answers: graded records, or a collection")
    play("--level-shown", type=int, default=2, metavar="N", help="the lowest label of documents shown (default 2)")
    play("--label-prompt", metavar="NAME", help="the prompt whose direct labels count, where records have several")
    play("--label-set", metavar="HASH", help="the settings whose direct labels count, where that prompt has several")
    play("--no-annotations", action="store_true", help="show documents without the reasons for their labels")
    play("--prompt", default="", metavar="NAME", help="prompt name or .toml file (default: ragelo.answer_pairwise)")
    play("--per-query", type=int, metavar="N", help="N random pairs a query, balanced (default: all pairs)")
    play("--per-pair", type=int, metavar="N", help="as RAGDoll: N random queries a pair (default: all)")
    play("--per-agent", type=int, metavar="N", help="as RAGDoll: N random games an agent in each query (default: all)")
    play("--one-order", action="store_true", help="judge each pair in one order only")
    play("--temperature", type=float, default=0.0, help="0 (default) takes the most probable reply")
    play("--max-tokens", type=int, help="the longest reply (default: by the prompt)")
    play("--retries", type=int, default=1, metavar="N", help="further draws of a reply without verdict (default 1)")
    add_limit_options(play, "SAVE.cache.sqlite")


def run(options: argparse.Namespace) -> int:
    """Runs the command; 1 when games have no verdict, or agents never met."""
    from rubric_measures.api import tournament
    from rubric_measures.games.tournaments import render

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
    shown = ("output", "output_format", "places", "plot")
    settings = {name: value for name, value in vars(options).items() if name not in shown}
    result = tournament(**settings, progress=is_watched())
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
