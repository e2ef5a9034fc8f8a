"""`tournament`: games between answers to ratings; plays the games first where a model is named."""

from __future__ import annotations

import argparse
import logging
import threading
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rubric_measures.base.errors import InputError
from rubric_measures.base.files import atomic_writer
from rubric_measures.base.tables import FORMS
from rubric_measures.cli.grade_notes import note_limit
from rubric_measures.cli.grade_support import Interrupts
from rubric_measures.cli.inputs import add_places_option, keep_apart, keep_cache, keep_inputs, progress
from rubric_measures.cli.model_options import backend_of, backend_settings, model_price, named_values

if TYPE_CHECKING:
    from rubric_measures.backends.replies.cache import ReplyCache
    from rubric_measures.base.entities import Preference
    from rubric_measures.formats.reports import Answer
    from rubric_measures.grading.pairwise import PairwiseGrader, Reference
    from rubric_measures.pairwise import Tournament, TournamentSettings

__all__ = ["HELP", "add_arguments", "run"]

HELP = "pairwise games to ratings; a model may play them"
_LOG = logging.getLogger("rubric_measures")
_EXAMPLE = """examples:
  rubric_measures tournament games.jsonl
  rubric_measures tournament --answers a.jsonl b.jsonl c.jsonl --queries queries.tsv --model openai:gpt-4o \\
      --save games.jsonl
  rubric_measures tournament games.jsonl --human verdicts.jsonl --compat ragelo -o json > tournament.json

Games are JSON lines {query_id, agent_a, agent_b, verdict: a, b, tie or null} or RAGElo's CSV. A game without a verdict
counts for nobody. With --model, games are played through the reply cache (SAVE.cache.sqlite unless --cache names one)
and kept in SAVE; run the same command again to go on, or with more answers to add an agent: only new games are played.
The output is a leaderboard: `correlate` compares -o tsv and -o json with any other."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    parser.epilog = _EXAMPLE
    add = parser.add_argument
    add("games", metavar="GAMES", nargs="*", help="played games (JSON lines or RAGElo's CSV)")
    add("--human", metavar="FILE", action="append", default=[], help="games judged by people; mixed in and marked")
    add("--agents", metavar="ID,ID,…", help="the agents that play (default: all)")
    add("-o", "--output-format", default="text", choices=list(FORMS),
        help="for people (default), or a leaderboard; json has everything")  # fmt: skip
    add("--output", metavar="FILE", default="-", help="write there (default: standard output)")
    add_places_option(parser, 1, " of ratings")

    rating = parser.add_argument_group("ratings").add_argument
    rating("--prior", type=float, default=0.1, help="Bradley-Terry: games against a middling opponent (default 0.1)")
    rating("--rounds", type=int, default=1000, help="bootstrap samples (default 1000)")
    rating("--unit", choices=["queries", "games"], default="queries", help="what the bootstrap draws (default queries)")
    rating("--level", type=float, default=0.95, help="of the intervals (default 0.95)")
    rating("--k", type=float, help="Elo: the most points a game moves (default 32)")
    rating("--start", type=float, help="Elo: the first rating (default 1000)")
    rating("--replays", type=int, help="Elo: shuffled replays (default 500)")
    rating("--compat", choices=["ragelo", "ragelo-0.4"], help="Elo as RAGElo's program has it (0.4: up to release 0.4)")
    rating("--seed", type=int, default=42, help="of bootstrap, shuffles and random games (default 42)")

    play = parser.add_argument_group("playing games").add_argument
    play("--answers", metavar="FILE", nargs="+", default=[], help="reports or plain answers; their runs are the agents")
    play("--queries", metavar="FILE", help="the texts of the queries")
    play("--model", help="lexical, scripted:FILE, hf:NAME or openai:NAME")
    play("--base-url", metavar="URL", action="append", help="openai: the endpoint; may be repeated for replicas")
    play("--model-option", action="append", default=[], metavar="NAME=VALUE", help="a setting of the model's backend")
    play("--option", action="append", default=[], metavar="NAME=VALUE", help="a further generation option")
    play("--save", metavar="FILE", help="where the games are kept (JSON lines); those in it stay")
    play("--documents", metavar="SOURCE", help="what to show beside answers: graded records, or a collection")
    play("--level-shown", type=int, default=2, metavar="N", help="the lowest label of documents shown (default 2)")
    play("--label-prompt", metavar="NAME", help="the prompt whose direct labels count, where records have several")
    play("--label-set", metavar="HASH", help="the settings whose direct labels count, where that prompt has several")
    play("--no-annotations", action="store_true", help="show documents without the reasons for their labels")
    play("--prompt", default="", metavar="NAME", help="prompt name or .toml file (default: ragelo.answer_pairwise)")
    play("--factors", default="", metavar="TEXT", help="what the judge shall consider, in place of the prompt's list")
    play("--per-query", type=int, metavar="N", help="N random pairs a query, balanced (default: all pairs)")
    play("--one-order", action="store_true", help="judge each pair in one order only")
    play("--temperature", type=float, default=0.0, help="0 (default) takes the most probable reply")
    play("--max-tokens", type=int, help="the longest reply (default: by the prompt)")
    play("--retries", type=int, default=1, metavar="N", help="further draws of a reply without verdict (default 1)")
    play("--cache", metavar="FILE", help="the reply cache (default: SAVE.cache.sqlite)")
    play("--cache-only", action="store_true", help="make no call: what is not in the cache fails")
    play("--max-calls", type=int, metavar="N", help="make so many calls at most")
    play("--prices", metavar="FILE", help="price table, for --max-cost; see `grade`")
    play("--max-cost", type=float, metavar="COST", help="make no call that costs more in all; needs --prices")


def run(options: argparse.Namespace) -> int:
    """Runs the command; 1 when games have no verdict, or agents never met."""
    from rubric_measures.pairwise import rate_games, render

    _check(options)
    read = (*options.games, *options.human, *options.answers, options.queries, options.documents, options.prices)
    keep_inputs(options.output, *read)
    # Games that are read may be those that are kept.
    keep_inputs(options.save, *options.answers, options.queries, options.documents, options.prices)
    keep_apart(output=options.output, save=options.save)
    keep_cache(_cache_path(options), options.output, options.save, *read)
    agents = [name.strip() for name in options.agents.split(",") if name.strip()] if options.agents else None
    games = [game for path in options.games for game in _read(path)]
    by_people = {path: _read(path, human=True) for path in options.human}
    if options.model:
        answers = _answers(options)
        # Before anything is spent.
        _check_people(by_people, games, (answer.run_id for answer in answers))
        games += _play(options, agents, answers)
    else:
        _check_people(by_people, games)
    games += [game for listed in by_people.values() for game in listed]
    if agents is not None:
        games = _among(games, agents)
    result = rate_games(games, _settings(options))
    with atomic_writer(options.output) as stream:
        stream.write(render(result, options.output_format, options.places))
    return _say(result)


def _check(options: argparse.Namespace) -> None:
    """Refuses what is missing and what would be ignored in silence."""
    if options.model:
        missing = [name for name in ("answers", "queries", "save") if not getattr(options, name)]
        if missing:
            raise InputError(f"playing games needs {', '.join('--' + name for name in missing)}")
        if options.save == "-":
            raise InputError("--save names a file: the ratings go to standard output")
        return
    if not options.games and not options.human:
        raise InputError("name the games, or --answers, --queries, --model and --save to play them")
    names = "answers queries save documents label_prompt label_set no_annotations prompt factors per_query one_order"
    names += " base_url model_option option max_tokens cache cache_only max_calls prices max_cost"
    ignored = [f"--{name.replace('_', '-')}" for name in names.split() if getattr(options, name)]
    if ignored:
        raise InputError(f"{', '.join(ignored)} would have no effect without --model; leave it out")


def _read(path: str, human: bool = False) -> list[Preference]:
    from rubric_measures.formats.preferences import HUMAN, read_preferences
    from rubric_measures.formats.ragelo import read_ragelo_games

    if path.removesuffix(".gz").endswith(".csv"):
        games = read_ragelo_games(path)
        return [game._replace(grader=f"{HUMAN}{path}") for game in games] if human else games
    return read_preferences(path, human=human)


def _check_people(
    by_people: Mapping[str, Sequence[Preference]], games: Sequence[Preference], agents: Iterable[str] = ()
) -> None:
    """Refuses verdicts about agents that neither play nor answer: a slip of a name would be one more agent."""
    from rubric_measures.base.errors import UnknownNameError

    known = {*agents, *(agent for game in games for agent in (game.agent_a, game.agent_b))}
    for path, listed in by_people.items() if known else ():
        for game in listed:
            for agent in (game.agent_a, game.agent_b):
                if agent not in known:
                    where = f"({path}: a verdict on query {game.query_id!r})"
                    raise UnknownNameError("agent", agent, known, hint=where)


def _among(games: list[Preference], agents: list[str]) -> list[Preference]:
    """The games between the wanted agents; an agent that plays no game is an error."""
    from rubric_measures.base.errors import UnknownNameError

    known = {agent for game in games for agent in (game.agent_a, game.agent_b)}
    for agent in agents:
        if agent not in known:
            raise UnknownNameError("agent", agent, known, hint="(it plays no game)")
    kept = [game for game in games if game.agent_a in agents and game.agent_b in agents]
    if len(kept) < len(games):
        _LOG.warning("%d of %d games left out: of other agents", len(games) - len(kept), len(games))
    return kept


def _settings(options: argparse.Namespace) -> TournamentSettings:
    from rubric_measures.pairwise import EloSettings, TournamentSettings

    named = {name: getattr(options, name) for name in ("k", "start", "replays")}
    changes = {name: value for name, value in named.items() if value is not None} | {"seed": options.seed}
    elo = EloSettings.compat(options.compat, **changes) if options.compat else EloSettings(**changes)
    return TournamentSettings(options.prior, options.rounds, options.level, options.seed, options.unit, elo)


def _play(options: argparse.Namespace, agents: list[str] | None, found: list[Answer]) -> list[Preference]:
    """Plays what is to be played, keeps all games in SAVE, and returns them."""
    from rubric_measures.backends.replies.cache import ReplyCache
    from rubric_measures.formats.preferences import write_preferences
    from rubric_measures.grading.pairing import Game, answers_by_query, pair_games
    from rubric_measures.grading.pairwise import IDENTICAL
    from rubric_measures.runners import RunStats

    answers = answers_by_query(found, agents)
    saved = _read(options.save) if Path(options.save).exists() else []
    stats = RunStats()
    with ReplyCache(_cache_path(options)) as cache, Interrupts() as interrupts:
        grader = _grader(options, answers, cache, interrupts.event)
        mine: list[Preference] = []
        others: list[Preference] = []
        for game in saved:
            can = {game.agent_a, game.agent_b} <= set(answers.get(game.query_id, ()))
            (mine if can and game.grader in (grader.runner.backend.model, IDENTICAL) else others).append(game)
        # Games that were played are put to the cache again: it answers at once, unless an answer or the prompt changed.
        wanted = [Game(*game[:3]) for game in mine]
        wanted += pair_games(
            answers, options.per_query, seed=options.seed, both_orders=not options.one_order, played=wanted
        )
        if not wanted:
            raise InputError("there is nothing to play: no query has answers of two agents")
        done = list(progress(grader.play(wanted, stats), len(wanted), "games"))
    order = {game: place for place, game in enumerate(wanted)}
    done.sort(key=lambda game: order[Game(*game[:3])])
    games = [*others, *done]
    write_preferences(options.save, games)
    new = len(wanted) - len(mine)
    _LOG.info("%d games (%d new): %s", len(wanted), new, stats)
    note_limit(stats)
    if others:
        _LOG.info("%s: %d games of other graders, or of answers that are not here, stay as they are", options.save,
                  len(others))  # fmt: skip
    return games


def _cache_path(options: argparse.Namespace) -> str:
    return str(options.cache or (f"{options.save}.cache.sqlite" if options.save else ""))


def _answers(options: argparse.Namespace) -> list[Answer]:
    from rubric_measures.formats.ragelo import read_ragelo_answers
    from rubric_measures.formats.reports import read_answers

    found: list[Answer] = []
    for path in options.answers:
        csv = path.removesuffix(".gz").endswith(".csv")
        found += read_ragelo_answers(path) if csv else read_answers(path)
    return found


def _grader(
    options: argparse.Namespace, answers: dict[str, dict[str, str]], cache: ReplyCache, stop: threading.Event
) -> PairwiseGrader:
    from rubric_measures.formats.queries import read_queries
    from rubric_measures.formats.ragelo import read_ragelo_queries
    from rubric_measures.grading import GradingSettings
    from rubric_measures.grading.pairwise import PairwiseGrader, load_references
    from rubric_measures.runners import LocalRunner

    references: dict[str, tuple[Reference, ...]] = {}
    if options.documents:
        references = load_references(
            options.documents,
            options.level_shown,
            prompt_class=options.label_prompt,
            grade_set=options.label_set,
            annotations=not options.no_annotations,
        )
    settings = backend_settings(options.model_option, options.base_url)
    backend = backend_of(options.model, settings, cache.path if options.cache_only else None)
    price = model_price(options.prices, backend, options.max_cost)
    runner = LocalRunner(
        backend,
        cache,
        cache_only=options.cache_only,
        max_calls=options.max_calls,
        max_cost=options.max_cost,
        price=price,
        stop=stop,
    )
    csv = options.queries.removesuffix(".gz").endswith(".csv")
    return PairwiseGrader(
        runner,
        read_ragelo_queries(options.queries) if csv else read_queries(options.queries),
        answers,
        references,
        options.prompt,
        options.factors,
        GradingSettings(
            temperature=options.temperature,
            options=named_values("--option", options.option),
            max_tokens=options.max_tokens,
            retries=options.retries,
        ),
    )


def _say(result: Tournament) -> int:
    for note in result.notes:
        _LOG.warning("%s", note)
    return 0 if result.is_complete else 1
