"""What models that write have in common: the most probable label, by forward passes, or the reply of `generate`."""

from __future__ import annotations

import abc
import itertools
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import exp, inf
from typing import Any

from rubric_measures.backends.base import Reply, Request
from rubric_measures.backends.hf.loading import HuggingFaceModel, ModelSource
from rubric_measures.base.errors import InputError

_MODES = ("generate", "labels")
_DEFAULT_TOKENS = 64
Tokens = tuple[int, ...]


@dataclass(frozen=True)
class WritingJob:
    """A request as tokens, and how many its reply may have."""

    request: Request
    ids: Tokens
    limit: int


@dataclass(frozen=True)
class Written:
    """A reply as tokens, without the end token; `ended` says whether the model ended it itself."""

    tokens: Tokens
    ended: bool


@dataclass(frozen=True)
class LabelTable:
    """The token sequences that write each label; all sequences together are free of prefixes.

    Attributes:
        labels: the labels.
        paths: for each label, one or more sequences; with the end token where the whole reply has to be the label.
    """

    labels: tuple[str, ...]
    paths: tuple[tuple[Tokens, ...], ...]

    @property
    def usable(self) -> bool:
        """Whether there are labels, and no sequence begins another one: their probabilities may then be added."""
        sequences = sorted(path for paths in self.paths for path in paths)
        begins = any(longer[: len(path)] == path for path, longer in itertools.pairwise(sequences))
        return bool(self.labels) and all(self.paths) and all(sequences) and not begins

    @cached_property
    def after(self) -> Mapping[Tokens, list[int]]:
        """Beginning of a sequence -> the tokens that go on with it."""
        found: dict[Tokens, dict[int, None]] = {}
        for path in itertools.chain.from_iterable(self.paths):
            for size, token in enumerate(path):
                found.setdefault(path[:size], {})[token] = None
        return {begun: list(tokens) for begun, tokens in found.items()}

    @cached_property
    def rows(self) -> list[Tokens]:
        """The fewest beginnings that begin with all others: a forward pass over them says all probabilities."""
        begun = sorted(self.after)
        return [one for one, longer in itertools.pairwise(begun) if longer[: len(one)] != one] + begun[-1:]

    def probabilities(self, steps: Mapping[tuple[Tokens, int], float]) -> dict[str, float]:
        """The probability of each label, by the log probabilities of tokens after beginnings.

        P(label) = Σ over its token sequences of Π P(token | tokens before)
        """
        return {
            label: sum(exp(sum(steps[path[:size], token] for size, token in enumerate(path))) for path in paths)
            for label, paths in zip(self.labels, self.paths, strict=True)
        }


class WritingModel(HuggingFaceModel):
    """A model that writes: its mode, its label probabilities, and how it generates.

    Raises:
        InputError: there is no such mode, or the mass is no probability.
    """

    # Whether a label is scored as a whole reply, with its end.
    labels_are_whole = False

    def __init__(self, source: ModelSource, *, mode: str, label_mass: float, **settings: Any) -> None:
        super().__init__(source, **settings)
        if mode not in _MODES:
            raise InputError(f"mode {mode!r}: expected {' or '.join(_MODES)}")
        if not 0 <= float(label_mass) <= 1:
            raise InputError(f"label_mass is {label_mass}; expected 0 to 1")
        self.mode, self.label_mass = mode, float(label_mass)
        self._tables: dict[tuple[str, ...], LabelTable] = {}

    @property
    def options(self) -> Mapping[str, object]:
        """Device, dtype, revision, mode, and in mode `labels` the least mass."""
        mass = {"label_mass": self.label_mass} if self.mode == "labels" else {}
        return {**super().options, "mode": self.mode, **mass}

    @abc.abstractmethod
    def _spellings(self, label: str) -> tuple[Tokens, ...]:
        """The token sequences that write a label."""

    @property
    @abc.abstractmethod
    def _ends(self) -> Collection[int]:
        """The end tokens."""

    @abc.abstractmethod
    def _shown(self, jobs: Sequence[WritingJob]) -> Any:
        """What is computed of a batch of prompts for scores and replies alike."""

    @abc.abstractmethod
    def _row(self, job: WritingJob, begun: Tokens) -> Tokens:
        """The tokens that the decoder is shown where a reply has begun so."""

    @abc.abstractmethod
    def _logits(self, shown: Any, places: Sequence[int], rows: Sequence[Tokens], last: int) -> Any:
        """The logits behind the last tokens of rows of one length; `places` are those of their jobs."""

    @abc.abstractmethod
    def _generation(self, shown: Any, jobs: Sequence[WritingJob], places: Sequence[int]) -> dict[str, Any]:
        """What the library's `generate` is given to write the replies of some jobs of the batch."""

    @abc.abstractmethod
    def _reply(self, job: WritingJob, written: Written) -> Reply:
        """The reply of generation."""

    def _is_over(self, job: WritingJob, tokens: Sequence[int]) -> bool:
        """Whether a reply ends without an end token."""
        return False

    def _together(self, jobs: Sequence[WritingJob], places: Sequence[int]) -> list[Sequence[int]]:
        """The jobs of a batch whose replies may be generated together."""
        return [places]

    def _table(self, request: Request) -> LabelTable | None:
        """The labels of a request, where they are scored; a prompt asks for the same ones again and again."""
        labels = request.labels
        if self.mode != "labels" or not labels or request.options.get("temperature"):
            return None
        if labels not in self._tables:
            self._tables[labels] = LabelTable(labels, tuple(self._spellings(label) for label in labels))
        return self._tables[labels] if self._tables[labels].usable else None

    def _execute(self, jobs: Sequence[WritingJob]) -> list[Reply]:
        """The replies of a batch: by label scoring where that decides, else by writing."""
        import torch

        with torch.inference_mode():
            shown = self._shown(jobs)
            replies = self._scored(jobs, shown)
            rest = [place for place in range(len(jobs)) if place not in replies]
            for places in self._together(jobs, rest) if rest else ():
                replies |= self._written(jobs, shown, places)
        return [replies[place] for place in range(len(jobs))]

    def _scored(self, jobs: Sequence[WritingJob], shown: Any) -> dict[int, Reply]:
        """Place -> the most probable label, for jobs whose labels together have the least mass or more."""
        tables = {place: table for place, job in enumerate(jobs) if (table := self._table(job.request)) is not None}
        steps: dict[int, dict[tuple[Tokens, int], float]] = {place: {} for place in tables}
        rows = [
            (place, begun, self._row(jobs[place], begun)) for place, table in tables.items() for begun in table.rows
        ]
        # Rows of one length need no padding, so nothing that a model keeps of the tokens before can be wrong.
        rows.sort(key=lambda row: len(row[2]))
        most = max(1, self.batch_tokens // max(len(job.ids) for job in jobs))
        for _, alike in itertools.groupby(rows, key=lambda row: len(row[2])):
            of_length = list(alike)
            for start in range(0, len(of_length), most):
                chunk = of_length[start : start + most]
                last = 1 + max(len(begun) for _, begun, _ in chunk)
                logits = self._logits(shown, [place for place, _, _ in chunk], [row for _, _, row in chunk], last)
                for (place, begun, _), found in zip(chunk, logits[:, -last:].float().log_softmax(-1), strict=True):
                    for size, scores in enumerate(found[-1 - len(begun) :]):
                        tokens = tables[place].after[begun[:size]]
                        of_tokens = zip(tokens, scores[tokens].tolist(), strict=True)
                        steps[place].update({(begun[:size], token): score for token, score in of_tokens})
        chances = {place: table.probabilities(steps[place]) for place, table in tables.items()}
        return {
            place: self._label_reply(jobs[place], found)
            for place, found in chances.items()
            if sum(found.values()) >= self.label_mass
        }

    def _label_reply(self, job: WritingJob, chances: Mapping[str, float]) -> Reply:
        """The best label; the probabilities of all labels are in `raw`."""
        best = max(chances, key=lambda label: chances[label])
        raw: dict[str, object] = {
            "mode": "labels",
            "label_probabilities": {label: float(f"{value:.6g}") for label, value in chances.items()},
        }
        if self.labels_are_whole:
            # Above 1/2, so is every token of the label on its way: greedy decoding writes the same.
            raw["equals_greedy"] = chances[best] > 0.5
        return Reply(best, prompt_tokens=len(job.ids), completion_tokens=1, raw=raw)

    def _written(self, jobs: Sequence[WritingJob], shown: Any, places: Sequence[int]) -> dict[int, Reply]:
        """Place -> the reply that is written: the most probable token each time, or one that is drawn."""
        import torch
        from transformers import GenerationConfig

        draws = [_draw_function(jobs[place].request) for place in places]
        ends = frozenset(self._ends)
        written: dict[int, Written] = {}
        arguments = self._generation(shown, jobs, places)
        first = arguments["input_ids"].shape[1] if "input_ids" in arguments else 1

        def drawn(_: Any, scores: Any) -> Any:
            for row, draw in enumerate(draws):
                if draw is not None:
                    token = draw(scores[row])
                    scores[row] = -inf
                    scores[row, token] = 0.0
            return scores

        def is_over(ids: Any, *_: Any, **__: Any) -> Any:
            for place, found in zip(places, ids[:, first:].tolist(), strict=True):
                if place in written:
                    continue
                if found[-1] in ends:
                    written[place] = Written(tuple(found[:-1]), True)
                elif self._is_over(jobs[place], found):
                    written[place] = Written(tuple(found), True)
                elif len(found) >= jobs[place].limit:
                    written[place] = Written(tuple(found), False)
            return torch.tensor([place in written for place in places], device=ids.device)

        longest = max(jobs[place].limit for place in places)
        config = GenerationConfig(max_new_tokens=longest, do_sample=False, num_beams=1, pad_token_id=0)
        self.network.generate(
            **arguments, generation_config=config, logits_processor=[drawn], stopping_criteria=[is_over]
        )
        return {place: self._reply(jobs[place], written[place]) for place in places}


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


def token_limit(request: Request) -> int:
    """How many tokens the reply may have: the option `max_tokens`, 64 without it.

    Raises:
        InputError: it is less than 1.
    """
    limit = int(str(request.options.get("max_tokens") or _DEFAULT_TOKENS))
    if limit < 1:
        raise InputError(f"max_tokens is {limit}; expected 1 or more")
    return limit


def written_reply(text: str, written: Written, prompt_tokens: int) -> Reply:
    """The reply of generation; without an end before the limit it is `truncated`."""
    count = len(written.tokens) + written.ended
    if written.ended:
        return Reply(text, prompt_tokens=prompt_tokens, completion_tokens=count, raw={"mode": "generate"})
    reason = f"the reply was cut after {count} tokens"
    return Reply(text, "truncated", reason, prompt_tokens, count, {"mode": "generate"})
