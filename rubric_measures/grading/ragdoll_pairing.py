"""Which games RAGDoll, the toolkit of TREC RAG 2026, draws, and whose answer it shows first: the same from one seed.

Every draw has a generator of its own: Python's, begun with the first 8 bytes of a SHA-256 over the seed and what the
draw is about. So a draw does not depend on any other one.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Mapping, Sequence
from itertools import combinations

from rubric_measures.base.errors import InputError
from rubric_measures.grading.pairing import Game

__all__ = ["ragdoll_games"]

_Pair = tuple[str, str]


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

    Raises:
        InputError: more than one number is given, or one is below 1.

    Source: RAGDoll, arena (2026).
    """
    given = {
        name: number
        for name, number in (("per_pair", per_pair), ("per_query", per_query), ("per_agent", per_agent))
        if number is not None
    }
    if len(given) > 1:
        raise InputError(f"{' and '.join(given)} both say how many games there are; keep one", settings=tuple(given))
    for name, said in given.items():
        if said < 1:
            raise InputError(f"{name} is {said}; ask for 1 or more", settings=(name,))
    drawn: set[tuple[str, _Pair]] = set()
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


def _of_query(query_id: str, agents: Sequence[str], number: int | None, seed: int) -> list[_Pair]:
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


def _shown(query_id: str, pair: _Pair, seed: int) -> Game:
    is_turned = _digest(seed, *pair, query_id)[0] % 2
    return Game(query_id, *(reversed(pair) if is_turned else pair))


def _random(*key: object) -> random.Random:
    return random.Random(int.from_bytes(_digest(*key)[:8], "big"))


def _digest(*key: object) -> bytes:
    return hashlib.sha256("\0".join(map(str, key)).encode("utf-8")).digest()
