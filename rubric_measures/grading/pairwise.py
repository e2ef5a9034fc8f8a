"""Games between answers: who plays whom, and how a model judges them.

Which games are played: all pairs of agents, or seeded random ones so that every pair meets equally often.

The pairwise grader: games between answers put to a model, verdicts read; no verdict is a status, never a tie.

Which games RAGDoll, the toolkit of TREC RAG 2026, draws, and whose answer it shows first: the same from one seed.

Every draw has a generator of its own: Python's, begun with the first 8 bytes of a SHA-256 over the seed and what the
draw is about. So a draw does not depend on any other one.
"""

from __future__ import annotations

import hashlib
import os
import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from itertools import combinations, groupby
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

from rubric_measures.base.errors import InputError, UnknownNameError, counted, warn
from rubric_measures.base.files import peek_head
from rubric_measures.formats.answers import Answer
from rubric_measures.grading.asking import Ask, Asker
from rubric_measures.grading.generation import Caller
from rubric_measures.grading.styles import NO_DOCUMENTS
from rubric_measures.measures.grade_sets import Grader, GradeSetSelector
from rubric_measures.models.running import Job
from rubric_measures.prompts.library import load_prompt
from rubric_measures.records.models import QueryPassages, load_graded
from rubric_measures.types.entities import Preference


class Game(NamedTuple):
    """A game to play: the answers of two agents to one query, in the order shown."""

    query_id: str
    agent_a: str
    agent_b: str


def answers_by_query(answers: Iterable[Answer]) -> dict[str, dict[str, str]]:
    """Query -> agent -> text, both sorted; answers that are missing are counted and said once.

    Args:
        answers: the answers; their run is the agent.

    Raises:
        InputError: an agent answers a query twice, or there are fewer than two agents.
    """
    texts: dict[str, dict[str, str]] = {}
    for answer in answers:
        of_query = texts.setdefault(answer.query_id, {})
        if answer.run_id in of_query:
            raise InputError(f"agent {answer.run_id!r} has two answers to query {answer.query_id!r}; keep one")
        of_query[answer.run_id] = answer.text
    playing = sorted({agent for of_query in texts.values() for agent in of_query})
    if len(playing) < 2:
        raise InputError(f"a tournament needs two agents or more; there is {', '.join(playing) or 'none'}")
    found = {
        query_id: {agent: texts[query_id][agent] for agent in playing if agent in texts[query_id]}
        for query_id in sorted(texts)
    }
    missing = [(agent, query_id) for query_id, of_query in found.items() for agent in playing if agent not in of_query]
    if missing:
        agent, query_id = min(missing)
        text = "%s missing (such as that of %s to %s): no games are played there"
        warn(text, counted(len(missing), "answer"), agent, query_id)
    return found


def pair_games(
    answers: Mapping[str, Mapping[str, str]],
    per_query: int | None = None,
    *,
    seed: int = 42,
    played: Iterable[Preference | Game] = (),
) -> list[Game]:
    """The games that are still to be played: of each pair two, each answer being first once.

    With `per_query`, each query gets the pairs that met least often so far, drawn by the seed among equal ones: where
    every agent has all answers, no pair meets more than once more often than another. So an agent that is added to
    games that were played needs a larger number; one without games is said.

    Args:
        answers: query -> agent -> text, as of `answers_by_query`.
        per_query: pairs a query, those played included; None takes all pairs.
        seed: of the draws.
        played: games that there are already, by any grader: they are not played again and count for the balance.

    Source: Rackauckas, Câmara & Zavrel, LLM4Eval 2024 (random games, up to all pairs); balance and orders: ours.
    """
    shown = {Game(game.query_id, game.agent_a, game.agent_b) for game in played}
    met = {Game(query_id, *sorted(pair)) for query_id, *pair in shown}
    possible = [
        Game(query_id, *pair) for query_id in sorted(answers) for pair in combinations(sorted(answers[query_id]), 2)
    ]
    wanted = set(possible)
    if per_query is not None:
        wanted = met | _drawn_pairs(possible, per_query, seed, met)
        idle = {agent for of in answers.values() for agent in of} - {agent for pair in wanted for agent in pair[1:]}
        text = "no games for %d agents (%s): %d pairs a query were played already; name a larger number"
        warn(text, len(idle), ", ".join(sorted(idle)), per_query, settings=("games_per",))
    orders = ((pair, Game(pair.query_id, pair.agent_b, pair.agent_a)) for pair in possible if pair in wanted)
    return [game for both in orders for game in both if game not in shown]


def _drawn_pairs(possible: Sequence[Game], per_query: int, seed: int, met: Set[Game]) -> set[Game]:
    """For each query that has fewer, as many more pairs as it takes, those first that met least often."""
    drawn: set[Game] = set()
    counts = Counter(pair[1:] for pair in met)
    for query_id, group in groupby(possible, key=attrgetter("query_id")):
        pairs = list(group)
        left = [pair for pair in pairs if pair not in met]
        random.Random(f"{seed}/{query_id}").shuffle(left)
        left.sort(key=lambda pair: counts[pair[1:]])
        more = left[: max(0, per_query - (len(pairs) - len(left)))]
        counts.update(pair[1:] for pair in more)
        drawn.update(more)
    return drawn


IDENTICAL = "identical answers"


class Reference(NamedTuple):
    """A document that is shown beside the answers: its relevance label, and why it has it (empty where unknown)."""

    doc_id: str
    text: str
    label: float
    annotation: str = ""


_LEAST = 2  # the lowest label of documents that are shown, as the paper has it (of 0 to 2)


def load_references(source: str | os.PathLike[str] | None) -> dict[str, tuple[Reference, ...]]:
    """The relevant documents of each query with their annotations, best label first, then by id.

    The label is a model's direct label, its reply being the annotation; where a passage has none, the highest judgment
    of assessors. Documents without any are left out.

    Args:
        source: a file of graded records, or a collection with judgments: a folder, a file, or an ir_datasets id; None
            shows nothing.

    Raises:
        InputError: the source cannot be read, no document has a label that is shown, or there are direct labels of
            several prompts, models or settings.
    """
    if source is None:
        return {}
    source = os.fspath(source)
    if Path(source).is_file() and peek_head(source).lstrip().startswith(b"["):
        groups: Iterable[QueryPassages] = load_graded(source)
    else:
        from rubric_measures.corpora.collections import load_collection, texts_of
        from rubric_measures.corpora.pooling import pool

        known = load_collection(source)
        if not known.has_docs() or not known.judgments:
            raise InputError(f"{source}: has no documents with judgments")
        relevant = [row for row in known.judgments if row.relevance >= _LEAST]
        texts = texts_of(known.docs_store(), [row.doc_id for row in relevant])
        groups = pool((), texts, judgments=relevant, judged=True, missing="skip") if relevant else ()
    labels = GradeSetSelector(Grader(kind="direct"), "the documents", "documents")
    found: dict[str, tuple[Reference, ...]] = {}
    for group in groups:
        references = []
        for passage in group.passages:
            direct: Any = labels.choose(passage, None)
            label = direct.self_rating if direct is not None else None
            annotation = direct.answer if direct is not None and label is not None else ""
            if label is None:
                label = passage.judged(group.query_id)
            if label is not None and label >= _LEAST:
                references.append(Reference(passage.doc_id, passage.text, label, annotation))
        found[group.query_id] = tuple(sorted(references, key=lambda one: (-one.label, one.doc_id)))
    labels.note_counts()
    if not any(found.values()):
        raise InputError(f"{source}: no document has a label of {_LEAST} or more")
    return found


def play(
    caller: Caller,
    games: Iterable[Game],
    queries: Mapping[str, str],
    answers: Mapping[str, Mapping[str, str]],
    references: Mapping[str, Sequence[Reference]] | None = None,
    prompt: str = "",
) -> dict[Game, Preference]:
    """Plays games with one prompt and one model.

    Two identical answers tie without a call (grader `identical answers`).

    Args:
        caller: the model; replicates are not drawn.
        games: the games.
        queries: query_id -> text.
        answers: query_id -> agent -> text; those of all games.
        references: query_id -> documents to show; by default none.
        prompt: the prompt's name or .toml file; by default `LexicalComparison` for the lexical grader, else
            `ragelo.answer_pairwise`.

    Raises:
        UnknownNameError: a query has no text.
        InputError: the prompt compares no answers, or is not one for the backend.
        GradingError: the model cannot be used; finished calls are in the cache.
    """
    is_embedded = getattr(caller.runner.backend, "embedded", False)
    loaded = load_prompt(prompt or ("LexicalComparison" if is_embedded else "ragelo.answer_pairwise"))
    compares = loaded.parser == "verdict" and {"answer_a", "answer_b"} <= set(loaded.fields)
    if not compares or is_embedded != (loaded.format == "json"):
        text = f"prompt {prompt} does not compare answers, or not by this grader: LexicalComparison is for lexical only"
        raise InputError(text, settings=("prompt",))
    asker = caller.asker(loaded)
    found: dict[Game, Preference] = {}
    jobs: list[tuple[Game, Job[Preference]]] = []
    for game in games:
        if game.query_id not in queries:
            raise UnknownNameError("query", game.query_id, queries, hint="(it has no text)", settings=("queries",))
        of_query = answers[game.query_id]
        values = {"answer_a": of_query[game.agent_a], "answer_b": of_query[game.agent_b]}
        if values["answer_a"] == values["answer_b"]:
            found[game] = Preference(*game, "tie", grader=IDENTICAL, note="nobody was asked")
            continue
        if "query" in loaded.fields:
            values["query"] = queries[game.query_id]
        jobs.append((game, _played(asker, game, values, (references or {}).get(game.query_id, ()))))
    return found | caller.run(jobs)


def _played(asker: Asker, game: Game, values: Mapping[str, str], references: Sequence[Reference]) -> Job[Preference]:
    """One game: with as many documents as fit, the most relevant first."""
    prompt, documents = asker.prompt, {}
    for shown in range(len(references), -1, -1):
        if "documents" in prompt.fields:
            bare, some = prompt.format == "json", references[:shown]
            text = "\n".join(one.text for one in some) if bare else documents_text(some, prompt.context_line)
            documents = {"documents": text}
        messages = prompt.render(**values, **documents)
        if not asker.why_too_long(messages, asker.max_tokens()):
            break
    else:
        note = f"query and answers do not fit into the model's {asker.limit} tokens"
        return Preference(*game, None, "failed", grader=asker.model, note=note)
    (answer,) = yield from asker.ask([Ask(messages)], game.query_id)
    note = answer.note
    if answer.status == "graded" and shown < len(references):
        note = f"{len(references) - shown} of {len(references)} documents did not fit and were not shown"
    verdict: Any = answer.value if answer.status == "graded" else None
    return Preference(*game, verdict, answer.status, answer.text, asker.model, note)


def documents_text(references: Sequence[Reference], line: str = "") -> str:
    """Documents as prompts show them: `[id] text`, and the reason of the label on a line of its own.

    Args:
        references: the documents.
        line: how a prompt shows one (`Prompt.context_line`), where it says so: with `{doc_id}` and `{reason}`.
    """
    if not references:
        return NO_DOCUMENTS
    if line:
        if bare := [one.doc_id for one in references if not one.annotation.strip()]:
            raise InputError(f"the prompt shows why documents are relevant, and {bare[0]} has none; grade them first")
        return "\n".join(
            line.replace("{doc_id}", one.doc_id).replace("{reason}", one.annotation.strip()) for one in references
        )
    return "\n\n".join(
        f"[{one.doc_id}] {one.text}" + (f"\nRelevance: {one.annotation.strip()}" if one.annotation.strip() else "")
        for one in references
    )


_SampledPair = tuple[str, str]


def ragdoll_games(
    answers: Mapping[str, Mapping[str, str]],
    *,
    seed: int = 13,
    per_pair: int | None = None,
    per_query: int | None = None,
    per_agent: int | None = None,
) -> list[Game]:
    """The games, each pair once a query, by query and pair; without a number all of them.

    Args:
        answers: query -> agent -> text, as of `answers_by_query`.
        seed: of the draws and of the order of answers.
        per_pair: queries a pair, drawn among those that both answer.
        per_query: games a query: with as many games as agents a ring, with half as many a matching, and further pairs.
        per_agent: games an agent in a query: as `per_query`, of half as many games as that makes.

    Source: RAGDoll, arena (2026).
    """
    drawn: set[tuple[str, _SampledPair]] = set()
    if per_pair is not None:
        agents = sorted({agent for of_query in answers.values() for agent in of_query})
        for pair in combinations(agents, 2):
            shared = sorted(query_id for query_id, of_query in answers.items() if of_query.keys() >= set(pair))
            if len(shared) > per_pair:
                shared = _random(seed, *pair).sample(shared, per_pair)
            drawn.update((query_id, pair) for query_id in shared)
    else:
        for query_id, of_query in answers.items():
            number = per_query if per_agent is None else -(-len(of_query) * per_agent // 2)
            drawn.update((query_id, pair) for pair in _of_query(query_id, sorted(of_query), number, seed))
    return [_shown(query_id, pair, seed) for query_id, pair in sorted(drawn)]


def _of_query(query_id: str, agents: Sequence[str], number: int | None, seed: int) -> list[_SampledPair]:
    """The pairs that meet about a query: a ring or a matching first, as far as the number goes."""
    pairs = list(combinations(agents, 2))
    if number is None or len(pairs) <= number:
        return pairs
    generator = _random(seed, query_id, number)
    order = list(agents)
    generator.shuffle(order)
    # An agent with its next one; the last one's is the first.
    step = 1 if number >= len(order) else 2 if number >= -(-len(order) // 2) else len(order)
    places = range(0, len(order), step) if step < len(order) else ()
    chosen = [tuple(sorted((order[place], order[(place + 1) % len(order)]))) for place in places]
    others = [pair for pair in pairs if pair not in chosen]
    return [pair for pair in pairs if pair in chosen] + generator.sample(others, number - len(chosen))


def _shown(query_id: str, pair: _SampledPair, seed: int) -> Game:
    is_turned = _digest(seed, *pair, query_id)[0] % 2
    return Game(query_id, *(reversed(pair) if is_turned else pair))


def _random(*key: object) -> random.Random:
    return random.Random(int.from_bytes(_digest(*key)[:8], "big"))


def _digest(*key: object) -> bytes:
    return hashlib.sha256("\0".join(map(str, key)).encode("utf-8")).digest()
