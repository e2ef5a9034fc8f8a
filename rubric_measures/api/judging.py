"""Games between answers, which a model judges, to ratings."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar, Union, cast

from rubric_measures.analysis.resampling import USUAL_DRAWS, Draws
from rubric_measures.base.errors import FormatError, InputError, UnknownNameError, naming, refuse_ignored, tell
from rubric_measures.corpora.loading import (
    File,
    file_beside,
    file_path,
    is_given,
    listed,
    query_texts_of,
)
from rubric_measures.formats import FORMATS, detect_format, head_of
from rubric_measures.grading.asking import Asking
from rubric_measures.models.settings import Calls, given_of, note_limit, refuse_plain
from rubric_measures.types.entities import Preference

if TYPE_CHECKING:
    from rubric_measures.formats.answers import Answer
    from rubric_measures.games.tournaments import Tournament
    from rubric_measures.models.base import Backend
    from rubric_measures.models.settings import Progress

_File = str | os.PathLike[str]
_T = TypeVar("_T")
Games: TypeAlias = File | Preference | Iterable[File | Preference]
"""Games that were played: files (JSON lines, RAGElo's CSV or experiment, battles of RAGDoll), or `Preference`s."""
Answers: TypeAlias = Union[File, "Answer", "Iterable[File | Answer]"]
"""Answers: files (reports or plain answers), or `Answer`s; their runs are the agents."""


def tournament(
    games: Games = (),
    *,
    draws: Draws = USUAL_DRAWS,
    compat: Literal["ragelo", "ragelo-0.4", "ragdoll"] | None = None,
    answers: Answers = (),
    queries: File | Mapping[str, str] | None = None,
    model: str | Backend | None = None,
    save: _File | None = None,
    documents: _File | None = None,
    prompt: str = "",
    games_per: str = "",
    asking: Asking = Asking(),
    calls: Calls = Calls(),
    progress: Progress = False,
) -> Tournament:
    """Rates agents by their games; with a model, plays the games first.

    A game without a verdict counts for nobody; the result counts them.

    >>> import rubric_measures
    >>> from rubric_measures import Preference
    >>> games = [Preference("q1", "bm25", "dense", "b"), Preference("q2", "dense", "bm25", "tie")]
    >>> [one.agent for one in rubric_measures.tournament(games).ratings]
    ['dense', 'bm25']

    Args:
        games: played games; one that an assessor judged has the grader `human:NAME`.
        draws: of the bootstrap; the seed is that of shuffles and random games, too.
        compat: Elo as RAGElo's program has it; or `ragdoll`: no prior, its draws of games and of who is shown first.
        answers: the answers that play; needs `queries` and `model`.
        queries: the texts of the queries: query -> text, or a file.
        model: who says which answer is better: `lexical`, `scripted:FILE`, `hf:NAME`, `openai:NAME` or
            `litellm:PROVIDER/NAME`. In Python also a backend of your own.
        save: a file of games (JSON lines): games that are played are added, those in it stay.
        documents: what to show beside answers: graded records, or a collection.
        prompt: the name of a prompt or a .toml file; by default the one for the model.
        games_per: `query=5` plays five random pairs a query, balanced; nothing plays all pairs. As of RAGDoll also
            `pair=N`, random queries of a pair, and `agent=N`, games of an agent in a query.
        asking: temperature, longest reply, further options, and draws of a reply without verdict.
        calls: where the model is called, what is kept, and what it may cost. The cache is `SAVE.cache.sqlite` by
            default; without both, replies are not kept.
        progress: True shows a bar; a function is told the counts (`RunStats`).

    Raises:
        InputError: games, answers or a setting is wrong.
        UnknownNameError: an agent, model or prompt is not known.
        GradingError: the model cannot be used; finished calls are in the cache.
    """
    from rubric_measures.games.tournaments import COMPATS, EloSettings, TournamentSettings, rate_games

    games, answers = _parts(games), _parts(answers)
    is_ragdoll = compat == "ragdoll"
    if compat not in (None, "ragdoll", *COMPATS):
        raise UnknownNameError("program", str(compat), ("ragdoll", *COMPATS), settings=("compat",))
    elo = dataclasses.replace(COMPATS.get(str(compat), EloSettings()), seed=draws.seed)
    refuse_plain(model or "", asking, calls)
    settings = TournamentSettings(0.0 if is_ragdoll else 0.1, draws, elo)
    asking = asking.only("temperature", "max_tokens", "option", "retries")
    playing = {
        "answers": answers,
        "queries": queries,
        "save": save,
        "documents": documents,
        "prompt": prompt,
        "games_per": games_per,
        **given_of(asking),
        **given_of(calls),
    }
    _check(model, games, playing)
    drawn_per = _games_per(games_per, is_ragdoll)
    played = _all_of(games, Preference, _read)
    if model is not None:
        from rubric_measures.corpora.overwriting import keep_cache, keep_inputs
        from rubric_measures.formats.answers import Answer, read_answers
        from rubric_measures.formats.plain import GAMES
        from rubric_measures.grading.asking import Trial
        from rubric_measures.grading.generation import Caller
        from rubric_measures.grading.pairwise import (
            IDENTICAL,
            Game,
            answers_by_query,
            load_references,
            pair_games,
            play,
            ragdoll_games,
        )
        from rubric_measures.models.running import RunStats

        calls = dataclasses.replace(calls, cache=file_beside(save, calls.cache, ".cache.sqlite"))
        read = [*answers, queries, documents, calls.prices]
        # Only the games may be read and written in one file.
        keep_inputs(save, *read)
        keep_cache(calls.cache, save, *games, *read)
        found = _all_of(answers, Answer, read_answers)
        with naming(*answers):
            of_queries = answers_by_query(found)
        references = load_references(documents)
        saved = _saved(save)
        asked = calls.to(model)
        mine: list[Preference] = []
        others: list[Preference] = []
        for game in saved:
            can = {game.agent_a, game.agent_b} <= set(of_queries.get(game.query_id, ()))
            (mine if can and game.grader in (asked.backend.model, IDENTICAL) else others).append(game)
        # Games that were played are put to the cache again: it answers at once, unless an answer or the prompt changed.
        wanted = [Game(*game[:3]) for game in mine]
        if is_ragdoll:
            drawn = ragdoll_games(of_queries, seed=draws.seed, **drawn_per)
            there = set(wanted)
            wanted += [one for one in drawn if one not in there]
        else:
            wanted += pair_games(of_queries, **drawn_per, seed=draws.seed, played=wanted)
        if not wanted:
            raise InputError("no query has answers of two agents, so there is nothing to play", settings=("answers",))
        stats = RunStats()
        with calls.asking(asked, progress, len(wanted), "games", stats=stats) as runner:
            texts = query_texts_of(queries)
            caller = Caller(runner, asking, stats, Trial(None))
            found_of = play(caller, wanted, texts, of_queries, references, prompt)
        done = [found_of[game] for game in dict.fromkeys(wanted)]
        played += [*others, *done]
        if save is not None:
            GAMES.write(save, [*others, *done])
        tell(f"{len(wanted)} games ({len(wanted) - len(mine)} new): {stats}")
        note_limit(stats, is_kept=calls.is_kept)
        tell("%s: as before: %d games of other graders, or of answers that are not here", save, len(others))
    # What is wrong with all games together is a matter of who played them, or of the first file.
    with naming(*([getattr(model, "model", model)] if model else games)):
        return rate_games(played, settings)


def _check(model: object, games: Sequence[object], playing: Mapping[str, object]) -> None:
    """Refuses what is missing and what would be ignored in silence."""
    if model is None:
        if not games:
            text = "name the games, or answers, queries and a model to play them"
            raise InputError(text, settings=("answers", "queries", "model", "save"))
        refuse_ignored((name for name, value in playing.items() if is_given(value)), "without a model", "model")
        return
    if missing := [name for name in ("answers", "queries") if not is_given(playing[name])]:
        raise InputError(f"playing games needs {', '.join(missing)}", settings=missing)
    if playing["save"] == "-":
        raise InputError("games are kept in a file, not on standard output", settings=("save",))


def _games_per(text: str, is_ragdoll: bool) -> dict[str, int]:
    """How many games are drawn, as `pair_games` and `ragdoll_games` call it."""
    if not text:
        return {}
    unit, _, number = text.partition("=")
    if unit not in ("query", "pair", "agent") or not number.isdecimal() or not int(number):
        raise InputError(f"{text!r}: expected query=N, pair=N or agent=N, N from 1", settings=("games_per",))
    if unit != "query" and not is_ragdoll:
        raise InputError(f"{text}: only RAGDoll draws so; compute as it does", settings=("games_per", "compat"))
    return {f"per_{unit}": int(number)}


def _parts(source: Any) -> list[Any]:
    """One file, game or answer, or several, as a list."""
    # Games and answers are tuples.
    return [source] if hasattr(source, "query_id") else listed(source)


def _all_of(given: Iterable[Any], kind: type[_T], read: Callable[[str], Iterable[_T]]) -> list[_T]:
    """What was given, and what the files among it hold."""
    found: list[_T] = []
    for one in given:
        if isinstance(one, kind):
            found.append(one)
        else:
            with file_path(one) as path:
                found += read(path)
    return found


def _read(path: str) -> list[Preference]:
    from rubric_measures.corpora.bridges import Options, bridged
    from rubric_measures.formats.plain import GAMES

    kind, read = "games", cast(Callable[[str], Any], GAMES.read)
    if path != "-":
        # What no format is told of gets the errors of ours.
        with contextlib.suppress(FormatError):
            one = FORMATS[detect_format(path)]
            if one.kind in ("games", "experiment") and one.read is not None:
                kind, read = one.kind, one.read
    with naming(path):
        games: list[Preference] = bridged(read(path), kind, "games", Options())
    return games


def _saved(save: _File | None) -> list[Preference]:
    """The games that are kept in a file."""
    if save is None or not Path(save).exists():
        return []
    from rubric_measures.formats.plain import BATTLES

    if BATTLES.recognise(head_of(save)):
        problem = "holds battles of RAGDoll, which would be lost; name another file, and give this one as games"
        raise InputError(f"{os.fspath(save)}: {problem}", settings=("save",))
    return _read(os.fspath(save))
