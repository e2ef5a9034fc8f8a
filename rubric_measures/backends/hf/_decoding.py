"""Writing replies token by token, and scoring whole labels, over any state that can step and be selected from."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import exp
from typing import Any, Protocol

from rubric_measures.backends.base import Request


class DecoderState(Protocol):
    """Rows of a batch in the middle of decoding.

    Attributes:
        logits: of the next token, rows × vocabulary, float32.
    """

    logits: Any

    def step(self, tokens: Sequence[int]) -> None:
        """Appends one token to each row and computes the next logits."""

    def select(self, rows: Sequence[int]) -> DecoderState:
        """A new state of some rows (repeated where a row is named twice); this one stays as it is."""
        ...


@dataclass(frozen=True)
class Written:
    """A reply as tokens, without the end token; `ended` says whether the model ended it itself."""

    tokens: tuple[int, ...]
    ended: bool


@dataclass(frozen=True)
class LabelTable:
    """The token sequences that write each label; all sequences together are free of prefixes.

    Attributes:
        labels: the labels.
        paths: for each label, one or more sequences; with the end token where the whole reply has to be the label.
    """

    labels: tuple[str, ...]
    paths: tuple[tuple[tuple[int, ...], ...], ...]

    @property
    def usable(self) -> bool:
        """Whether there are labels, and no sequence begins another one: their probabilities may then be added."""
        sequences = sorted(path for paths in self.paths for path in paths)
        begins = any(longer[: len(path)] == path for path, longer in itertools.pairwise(sequences))
        return bool(self.labels) and all(self.paths) and all(sequences) and not begins


@dataclass(frozen=True)
class LabelScores:
    """The most probable label of a row, and the probabilities of all labels."""

    best: str
    probabilities: Mapping[str, float]

    @property
    def is_greedy(self) -> bool:
        """Whether greedy decoding provably writes the same: above 1/2, so is every token of the label on its way."""
        return self.probabilities[self.best] > 0.5


def write_replies(
    state: DecoderState,
    requests: Sequence[Request],
    limits: Sequence[int],
    ends: frozenset[int],
    stops: Callable[[int, Sequence[int]], bool] | None = None,
) -> list[Written]:
    """Decodes until each row wrote an end token or reached its limit; rows that are done leave the batch.

    A request says its temperature (0: the most probable token) and `top_p`, and its key seeds the draws. `stops` is
    called with row and tokens, for replies that end otherwise.
    """
    draws = [_draw_function(request) for request in requests]
    tokens: list[list[int]] = [[] for _ in requests]
    ended = [False] * len(requests)
    rows = list(range(len(requests)))
    while rows:
        likely = state.logits.argmax(-1).tolist()
        keep = []
        for place, row in enumerate(rows):
            draw = draws[row]
            token = draw(state.logits[place]) if draw else likely[place]
            if token in ends:
                ended[row] = True
                continue
            tokens[row].append(token)
            if stops and stops(row, tokens[row]):
                ended[row] = True
            elif len(tokens[row]) < limits[row]:
                keep.append(place)
        if not keep:
            break
        if len(keep) < len(rows):
            state, rows = state.select(keep), [rows[place] for place in keep]
        state.step([tokens[row][-1] for row in rows])
    return [Written(tuple(found), end) for found, end in zip(tokens, ended, strict=True)]


def _draw_function(request: Request) -> Callable[[Any], int] | None:
    temperature = float(str(request.options.get("temperature", 0) or 0))
    if temperature <= 0:
        return None
    import torch

    top_p = float(str(request.options.get("top_p", 1.0)))
    # The key covers messages, options and replicate, so a draw does not depend on what else is in the batch.
    generator = torch.Generator("cpu").manual_seed(int(request.key[:15], 16))

    def draw(logits: Any) -> int:
        probabilities = torch.softmax(logits.double().cpu() / temperature, -1)
        if top_p < 1.0:
            ordered, order = probabilities.sort(descending=True)
            probabilities = probabilities.clone()
            probabilities[order[ordered.cumsum(-1) - ordered >= top_p]] = 0.0
        return int(torch.multinomial(probabilities, 1, generator=generator))

    return draw


def score_labels(state: DecoderState, tables: Sequence[LabelTable], least_mass: float) -> list[LabelScores | None]:
    """The most probable label of each row; None where all labels together have less than `least_mass`.

        P(label) = Σ over its token sequences of Π P(token | tokens before)

    First tokens come from the logits at hand, and say for some rows that the mass is too small (a sequence is never
    more probable than its first token). In the others every sequence is followed to its end. The state is not changed.
    """
    import torch

    first = torch.log_softmax(state.logits, -1)
    rows = [_RowLabels(table, first[row], least_mass) for row, table in enumerate(tables)]
    wanted = [(row, path) for row, scores in enumerate(rows) if not scores.hopeless for path in scores.open_paths()]
    size = max(len(rows), 8)
    for start in range(0, len(wanted), size):
        chunk = wanted[start : start + size]
        for (row, path), found in zip(chunk, _follow(state, chunk), strict=True):
            rows[row].known[path] = rows[row].bounds[path] + found
    return [scores.outcome() for scores in rows]


def _follow(state: DecoderState, pairs: Sequence[tuple[int, tuple[int, ...]]]) -> list[float]:
    """Log probabilities of paths after their first tokens."""
    import torch

    branch = state.select([row for row, _ in pairs])
    sums = [0.0] * len(pairs)
    for depth in range(1, max(len(path) for _, path in pairs)):
        # A path that has ended goes on with its last token; nothing of it is read any more.
        branch.step([path[min(depth, len(path)) - 1] for _, path in pairs])
        targets = torch.tensor([path[min(depth, len(path) - 1)] for _, path in pairs], device=branch.logits.device)
        found = torch.log_softmax(branch.logits, -1).gather(1, targets[:, None])[:, 0].tolist()
        for place, (_, path) in enumerate(pairs):
            if depth < len(path):
                sums[place] += found[place]
    return sums


class _RowLabels:
    """What is known of one row's labels: log probabilities, of first tokens (`bounds`) and of whole paths (`known`)."""

    def __init__(self, table: LabelTable, first: Any, least_mass: float) -> None:
        import torch

        self.table, self.least_mass = table, least_mass
        paths: list[tuple[int, ...]] = [path for paths in table.paths for path in paths]
        starts = list(dict.fromkeys(path[0] for path in paths))
        values = dict(zip(starts, first[torch.tensor(starts, device=first.device)].tolist(), strict=True))
        self.bounds: dict[tuple[int, ...], float] = {path: values[path[0]] for path in paths}
        self.known: dict[tuple[int, ...], float] = {
            path: bound for path, bound in self.bounds.items() if len(path) == 1
        }
        self.hopeless = sum(map(exp, values.values())) < least_mass

    def open_paths(self) -> list[tuple[int, ...]]:
        """Paths of which only the first token is known."""
        return [path for path in self.bounds if path not in self.known]

    def outcome(self) -> LabelScores | None:
        if self.hopeless:
            return None
        found = {
            label: sum(exp(self.known[path]) for path in paths)
            for label, paths in zip(self.table.labels, self.table.paths, strict=True)
        }
        if sum(found.values()) < self.least_mass:
            return None
        return LabelScores(max(found, key=lambda label: found[label]), found)


def selected_cache(cache: Any, rows: Any) -> Any:
    """A copy of some rows of a cache of keys and values; the cache itself stays as it is.

    All rows in their order share the tensors with it: a cache grows by new tensors, never in place.
    """
    new = copy.copy(cache)
    new.layers = [copy.copy(layer) for layer in cache.layers]
    if rows.tolist() != list(range(cache.layers[0].keys.shape[0])):
        new.batch_select_indices(rows)
    return new


def padded(rows: Sequence[Sequence[int]], device: str, *, left: bool) -> tuple[Any, Any]:
    """Token ids and attention mask of rows, padded with token 0 (masked) on one side."""
    import torch

    width = max(len(row) for row in rows)
    ids = torch.zeros((len(rows), width), dtype=torch.long)
    mask = torch.zeros((len(rows), width), dtype=torch.long)
    for place, row in enumerate(rows):
        where = slice(width - len(row), width) if left else slice(0, len(row))
        ids[place, where] = torch.tensor(row, dtype=torch.long)
        mask[place, where] = 1
    return ids.to(device), mask.to(device)
