"""Models of Hugging Face: chosen, loaded, asked in batches.

Messages as the text that a Hugging Face model is shown: chat template or plain text, control tokens defused.

Batches by tokens, halved when one fails.

Finding and loading Hugging Face models: name, revision, device, dtype; tokenizer and weights when first used.

The backend `hf:NAME[@revision]`: which kind of Hugging Face model a name is, and the backend for it.

What models that write have in common: the most probable label, by forward passes, or the reply of `generate`.

Decoder-only models: chat template or plain text.

Sequence-to-sequence models (FLAN-T5): greedy replies or whole-label scores from one encoder pass a batch.

Extractive question answering (models fine-tuned on SQuAD2): the best span of the passage, or "no answer".
"""

from __future__ import annotations

import abc
import hashlib
import inspect
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain
from math import exp, inf
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from rubric_measures.base.errors import BackendError, DeviceLostError, InputError
from rubric_measures.base.json_text import parse_json
from rubric_measures.base.plugins import require
from rubric_measures.models.base import Backend, Reply, ReplyStatus, Request, check_options, one_line
from rubric_measures.types.scales import Message

# Some templates print today's date (strftime_now, date_string); a reply may not depend on the day it was asked for.
_DATE = "26 Jul 2024"
_FIXED_DATE = (
    f"{{%- macro strftime_now(form) -%}}{{{{ {{'%Y-%m-%d': '2024-07-26'}}.get(form, '{_DATE}') }}}}{{%- endmacro -%}}"
)


def defused(text: str, control: Sequence[str]) -> str:
    """A text in which no control token of the tokenizer (`<|im_end|>`, `</s>`) can be read: a space follows its first
    character.

    >>> defused("a <|im_end|> b", ["<|im_end|>"])
    'a < |im_end|> b'
    """
    present = [token for token in control if len(token) > 1 and token in text]
    if not present:
        return text
    pattern = "|".join(re.escape(token) for token in sorted(present, key=len, reverse=True))
    return re.sub(pattern, lambda found: f"{found[0][0]} {found[0][1:]}", text)


def plain_text(messages: Sequence[Message], control: Sequence[str]) -> str:
    """The contents of the messages, a blank line between them."""
    return "\n\n".join(defused(message.content, control) for message in messages)


def chat_text(tokenizer: Any, messages: Sequence[Message], control: Sequence[str], *, thinking: bool) -> str:
    """The messages in the tokenizer's chat template, up to where the reply begins.

    Where the template has no system messages (it raises an error), the system message stands in front of the first
    user message.
    """
    from jinja2.exceptions import TemplateError

    turns = [{"role": message.role, "content": defused(message.content, control)} for message in messages]
    try:
        return _rendered(tokenizer, turns, thinking)
    except TemplateError:
        if len(turns) < 2 or turns[0]["role"] != "system":
            raise
        merged = {"role": turns[1]["role"], "content": f"{turns[0]['content']}\n\n{turns[1]['content']}"}
        return _rendered(tokenizer, [merged, *turns[2:]], thinking)


def _rendered(tokenizer: Any, turns: list[dict[str, str]], thinking: bool) -> str:
    template = tokenizer.get_chat_template()
    text: str = tokenizer.apply_chat_template(
        turns,
        chat_template=_FIXED_DATE + template if "strftime_now" in template else template,
        tokenize=False,
        add_generation_prompt=True,
        enable_thinking=thinking,
        date_string=_DATE,
    )
    return text


T = TypeVar("T")


def by_length(jobs: Iterable[T], length: Callable[[T], int], budget: int) -> Iterator[list[T]]:
    """Batches of similar lengths, longest first: at most `budget` tokens with padding, and at least one job each.

    The longest come first, so that what does not fit into memory shows at once.
    """
    batch: list[T] = []
    longest = 0
    for job in sorted(jobs, key=length, reverse=True):
        if batch and longest * (len(batch) + 1) > budget:
            yield batch
            batch = []
        if not batch:
            longest = max(1, length(job))
        batch.append(job)
    if batch:
        yield batch


def padded(rows: Sequence[Sequence[int]], device: str, *, left: bool) -> tuple[Any, Any]:
    """Token ids and attention mask of rows, padded with token 0 (masked) on one side."""
    from torch import ones_like, tensor
    from torch.nn.utils.rnn import pad_sequence

    pad = partial(pad_sequence, batch_first=True, padding_side="left" if left else "right")
    ids = [tensor(row) for row in rows]
    return pad(ids).to(device), pad([ones_like(row) for row in ids]).to(device)


_OLDEST = (5, 1)
_UNLIMITED = 10**9  # tokenizers without a limit say something like 1e30


class ModelSource(NamedTuple):
    """Where a model comes from.

    Attributes:
        name: the repository's name or the path of a folder, as the user wrote it.
        model: the canonical name for `Request.model`: `hf:NAME@REVISION`, or `hf:PATH`.
        fingerprint: what the files are: the commit hash, or `sha256:…` over the files of a folder.
        config: the configuration of the transformers library.
        arguments: what every `from_pretrained` is given, so that tokenizer and weights are of the commit of the config.
    """

    name: str
    model: str
    fingerprint: str
    config: Any
    arguments: Mapping[str, str]


def find_source(spec: str) -> ModelSource:
    """Reads the configuration of `NAME[@revision]` (a model of the hub, or a folder).

    Raises:
        MissingExtraError: transformers or torch is not installed.
        BackendError: no such model, no network, or a version of transformers that computes wrong numbers.
    """
    load = _transformers().AutoConfig.from_pretrained
    if Path(spec).is_dir():
        config = _load(spec, "configuration", lambda: load(spec))
        return ModelSource(spec, f"hf:{spec}", f"sha256:{_folder_hash(Path(spec))}", config, {})
    name, _, revision = spec.rpartition("@") if "@" in spec else (spec, "", "main")
    config = _load(name, "configuration", lambda: load(name, revision=revision))
    commit = str(getattr(config, "_commit_hash", None) or revision)
    return ModelSource(name, f"hf:{name}@{revision}", commit, config, {"revision": commit})


def _transformers() -> Any:
    require("torch", "hf")
    transformers = require("transformers", "hf")
    found = tuple(int(part) for part in re.findall(r"\d+", transformers.__version__)[:2])
    if found < _OLDEST:
        # 5.0.0 scales the logits of FLAN-T5 in silence, older ones lack what is called here.
        raise BackendError(f"transformers {transformers.__version__} is too old; pip install -U 'transformers>=5.1'")
    # Its progress bars and advice stay away from the user's terminal.
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    return transformers


def _folder_hash(folder: Path) -> str:
    """A hash of all files of a folder."""
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.iterdir() if path.is_file() and not path.name.startswith(".")):
        digest.update(f"{path.name}\0{path.stat().st_size}\0".encode())
        with path.open("rb") as stream:
            hashlib.file_digest(stream, lambda: digest)
    return digest.hexdigest()[:40]


def _load(name: str, what: str, load: Callable[[], Any]) -> Any:
    try:
        return load()
    except (OSError, ValueError, KeyError, ImportError, RuntimeError, TypeError, AttributeError, MemoryError) as error:
        raise BackendError(f"hf:{name}: the {what} cannot be loaded: {one_line(error)}") from None


def choose_device(wanted: str) -> str:
    """The device to compute on: as wanted, or the first of cuda, mps, cpu that is there."""
    if wanted != "auto":
        return wanted
    torch = require("torch", "hf")
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def choose_dtype(wanted: str, device: str) -> str:
    """The dtype: as wanted, or bfloat16 where the device computes in it natively, else float32.

    A processor without bfloat16 instructions is up to 60 times slower in it than in float32 (measured), so it is taken
    on a CPU only where AVX512-BF16 or AMX are there. float16 is never chosen: T5 overflows in it.
    """
    if wanted != "auto":
        return wanted
    torch = require("torch", "hf")
    if device.startswith("cuda"):
        native = torch.cuda.is_available() and torch.cuda.get_device_capability()[0] >= 8
    elif device == "cpu":
        probes = ("_is_avx512_bf16_supported", "_is_amx_tile_supported")
        native = any(getattr(torch.cpu, probe, bool)() for probe in probes)
    else:
        native = False
    return "bfloat16" if native else "float32"


class HuggingFaceModel(abc.ABC):
    """What the three kinds of models have in common: names, options, tokenizer and weights (loaded when first used).

    Args:
        source: the model.
        device: `auto`, `cpu`, `cuda`, `cuda:1`, `mps`.
        dtype: `auto`, `float32`, `bfloat16`, `float16`.
        context: how many tokens the model may be shown, where neither tokenizer nor config says so, or says it wrongly.
        batch_tokens: tokens (padding included) computed at once; None takes 4,096 on a CPU, 32,768 on
            `mps`, 131,072 elsewhere. It is halved where so many do not fit into memory.
    """

    # Another draw at temperature 0 gives the same reply.
    deterministic = True
    auto_class = "AutoModel"
    takes = ("max_tokens", "seed", "temperature")
    look_ahead = 512  # requests that are pulled and sorted by length together

    def __init__(
        self,
        source: ModelSource,
        *,
        device: str = "auto",
        dtype: str = "auto",
        context: int | None = None,
        batch_tokens: int | None = None,
    ) -> None:
        self.source, self.model = source, source.model
        self.device = choose_device(device)
        self.dtype = choose_dtype(dtype, self.device)
        self.batch_tokens = int(batch_tokens or {"cpu": 4096, "mps": 32768}.get(self.device, 131072))
        if self.batch_tokens < 1 or (context is not None and int(context) < 1):
            raise InputError("batch_tokens and context must be positive")
        self._context = int(context) if context is not None else None

    @property
    def options(self) -> Mapping[str, object]:
        """Device, dtype and the commit (or the hash of the files): all of them can change a reply."""
        return {"device": self.device, "dtype": self.dtype, "revision": self.source.fingerprint}

    @cached_property
    def tokenizer(self) -> Any:
        """The model's own tokenizer."""
        from transformers import AutoTokenizer

        name, arguments = self.source.name, self.source.arguments
        return _load(name, "tokenizer", lambda: AutoTokenizer.from_pretrained(name, **arguments))

    @cached_property
    def network(self) -> Any:
        """The weights, on their device, ready for inference.

        Raises:
            BackendError: they cannot be loaded, or some are missing in the files (they would be random numbers).
        """
        import torch
        import transformers

        source, kind = self.source, getattr(transformers, self.auto_class)
        network, report = _load(
            source.name,
            "model",
            lambda: kind.from_pretrained(
                source.name, dtype=getattr(torch, self.dtype), output_loading_info=True, **source.arguments
            ),
        )
        if missing := sorted(report.get("missing_keys", ())):
            raise BackendError(
                f"hf:{source.name}: {len(missing)} weights are missing ({missing[0]}, …); is it for another task?"
            )
        return _load(source.name, f"model on {self.device}", lambda: network.to(self.device).eval())

    @property
    def context_tokens(self) -> int | None:
        """How many tokens the prompt may have, or, where they share the context, prompt and reply together."""
        return self.limit

    def complete(self, requests: Iterable[Request]) -> Iterator[tuple[Request, Reply]]:
        """Replies, batch by batch; `look_ahead` requests are held at a time.

        A batch that fails, for want of memory or because of one poisoned input, is halved and tried again, after memory
        was given back; a request that fails alone is answered `failed`.

        Raises:
            BackendError: the weights cannot be loaded, or an option is unknown.
            DeviceLostError: nothing can work in this process any more.
        """
        iterator = iter(requests)
        while window := list(itertools.islice(iterator, self.look_ahead)):
            jobs = []
            for request in window:
                try:
                    job = self._prepare(request)
                except BackendError:
                    raise
                except Exception as error:
                    job = Reply(None, "failed", f"the prompt cannot be prepared: {one_line(error)}")
                if isinstance(job, Reply):
                    yield request, job
                else:
                    jobs.append(job)
            for batch in by_length(jobs, lambda job: job.tokens, self.batch_tokens if self.pads else 1):
                for job, reply in zip(batch, self._attempt(batch), strict=True):
                    yield job.request, reply

    def _attempt(self, batch: Sequence[Any]) -> list[Reply]:
        try:
            return list(self._execute(batch))
        except BackendError:
            raise
        except Exception as error:
            reason = f"{type(error).__name__}: {one_line(error)}"
            if "CUDA error" in reason and "out of memory" not in reason:
                # After such an error no call of this process can use the device.
                raise DeviceLostError(f"the device is lost: {reason}") from None
        # The next try begins outside of the handler: the exception's frames hold the tensors that did not fit.
        self.release_memory()
        if len(batch) == 1:
            return [Reply(None, "failed", reason)]
        half = len(batch) // 2
        if "out of memory" in reason:
            # The next ones are not made so large only to be halved again.
            self.batch_tokens = min(self.batch_tokens, half * max(job.tokens for job in batch))
        return [*self._attempt(batch[:half]), *self._attempt(batch[half:])]

    @abc.abstractmethod
    def _prepare(self, request: Request) -> Any:
        """A job made of a request, or its reply at once."""

    @abc.abstractmethod
    def _execute(self, jobs: Sequence[Any]) -> list[Reply]:
        """The replies of a batch, in its order."""

    def count_tokens(self, text: str) -> int:
        """The number of tokens of a text as it is shown (control tokens in it defused), special tokens left out."""
        return len(self.encode(defused(text, self.control_tokens)))

    @cached_property
    def control_tokens(self) -> tuple[str, ...]:
        """The texts that the tokenizer reads as control tokens; no passage may write them."""
        # Some (`<|start_header_id|>`, `<think>`) are only added tokens; added runs of blanks are ordinary text.
        added = self.tokenizer.added_tokens_decoder.values()
        found = {str(token.content) for token in added if token.special or token.content.startswith(("<", "["))}
        return tuple(sorted(found.union(self.tokenizer.all_special_tokens)))

    def encode(self, text: str, *, special: bool = False) -> list[int]:
        """The tokens of a text, never cut."""
        ids: list[int] = self.tokenizer(text, add_special_tokens=special, verbose=False)["input_ids"]
        return ids

    @property
    def limit(self) -> int | None:
        """How many tokens the model takes: the option `context`, else what tokenizer and config say (the smaller)."""
        if self._context is not None:
            return self._context
        config = getattr(self.source.config, "text_config", None) or self.source.config
        found = [getattr(config, name, None) for name in ("max_position_embeddings", "n_positions")]
        found.append(getattr(self.tokenizer, "model_max_length", None))
        return min((int(size) for size in found if size and 0 < size < _UNLIMITED), default=None)

    @property
    def pads(self) -> bool:
        """Whether prompts of other lengths may be computed together."""
        return True

    def release_memory(self) -> None:
        """Gives memory back to the device after a batch that was too large."""
        import torch

        if self.device != "cpu":
            getattr(torch, self.device.partition(":")[0]).empty_cache()


def model_kind(source: ModelSource) -> str:
    """`seq2seq`, `decoder` or `extractive`, by the architecture in the configuration.

    Raises:
        BackendError: the model is none of them.
    """
    from transformers import AutoModelForCausalLM

    config = source.config
    names = list(getattr(config, "architectures", None) or [])
    if any(name.endswith("ForQuestionAnswering") for name in names):
        return "extractive"
    if getattr(config, "is_encoder_decoder", False):
        return "seq2seq"
    writes = any(name.endswith(("ForCausalLM", "LMHeadModel", "ForConditionalGeneration")) for name in names)
    if (writes or not names) and type(config) in AutoModelForCausalLM._model_mapping:
        return "decoder"
    found = ", ".join(names) or type(config).__name__
    raise BackendError(f"{source.model}: {found} is no sequence-to-sequence, decoder-only or extractive model")


_MODES = ("generate", "labels")
_DEFAULT_TOKENS = 64
Tokens = tuple[int, ...]


@dataclass(frozen=True)
class WritingJob:
    """A request as tokens, and how many its reply may have."""

    request: Request
    ids: Tokens
    limit: int

    @property
    def tokens(self) -> int:
        """How many tokens the prompt has."""
        return len(self.ids)


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
    def rows(self) -> list[Tokens]:
        """The fewest beginnings that begin with all others: a forward pass over them says all probabilities."""
        begun = sorted({path[:-1] for path in chain.from_iterable(self.paths)})
        return [one for one, longer in itertools.pairwise(begun) if longer[: len(one)] != one] + begun[-1:]

    def read(self, row: Tokens, scores: Sequence[Mapping[int, float]]) -> dict[Tokens, float]:
        """The probabilities of the sequences of which a row says all.

        P(sequence) = Π P(token | tokens before)

        Args:
            row: one of `rows`.
            scores: the log probabilities of tokens, behind the prompt and behind each token of the row.
        """
        paths = [path for path in chain.from_iterable(self.paths) if row[: len(path) - 1] == path[:-1]]
        return {path: exp(sum(at[token] for at, token in zip(scores, path, strict=False))) for path in paths}

    def chances(self, of_paths: Mapping[Tokens, float]) -> dict[str, float]:
        """The probability of each label: the sum of those of its sequences."""
        return {
            label: sum(of_paths[path] for path in paths) for label, paths in zip(self.labels, self.paths, strict=True)
        }


class WritingModel(HuggingFaceModel):
    """A model that writes: its mode, its label probabilities, and how it generates.

    Raises:
        InputError: there is no such mode, or the mass is no probability.
    """

    usual_mode = "generate"
    # Whether prompt and reply have one context together.
    reply_shares_context = True

    def __init__(self, source: ModelSource, *, mode: str = "", label_mass: float = 0.8, **settings: Any) -> None:
        super().__init__(source, **settings)
        mode = mode or self.usual_mode
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
    def _encoded(self, messages: Sequence[Message]) -> list[int]:
        """The tokens of messages in the form that the model is shown."""

    def _prepare(self, request: Request) -> WritingJob | Reply:
        ids = self._encoded(request.messages)
        limit = int(str(request.options.get("max_tokens") or _DEFAULT_TOKENS))
        if not ids:
            return Reply(None, "failed", "the prompt is empty")
        together = limit if self.reply_shares_context else 0
        if self.limit is not None and len(ids) + together > self.limit:
            found = f"the prompt has {len(ids)} tokens" + f" and the reply may have {limit}" * bool(together)
            return Reply(None, "failed", f"{found}; the model takes {self.limit}{' together' * bool(together)}")
        return WritingJob(request, tuple(ids), limit)

    @abc.abstractmethod
    def _spellings(self, label: str) -> tuple[Tokens, ...]:
        """The token sequences that write a label."""

    @cached_property
    def _ends(self) -> tuple[int, ...]:
        """The end tokens."""
        found = [self.network.generation_config.eos_token_id, self.tokenizer.eos_token_id]
        ids = [each for one in found for each in (one if isinstance(one, list) else [one])]
        return tuple(one for one in dict.fromkeys(ids) if one is not None)

    @cached_property
    def network(self) -> Any:
        """The weights, without penalties, forced tokens and sampling settings of the model's own."""
        from transformers import GenerationConfig

        network = super().network
        own = network.generation_config
        network.generation_config = GenerationConfig(
            eos_token_id=own.eos_token_id, decoder_start_token_id=own.decoder_start_token_id
        )
        return network

    @abc.abstractmethod
    def _shown(self, jobs: Sequence[WritingJob]) -> Any:
        """What is computed of a batch of prompts for scores and replies alike."""

    @abc.abstractmethod
    def _logits(self, shown: Any, jobs: Sequence[WritingJob], rows: Sequence[tuple[int, Tokens]], last: int) -> Any:
        """The logits of the last positions of rows: places of jobs, with beginnings of one length."""

    @abc.abstractmethod
    def _generation(self, shown: Any, jobs: Sequence[WritingJob], places: Sequence[int]) -> dict[str, Any]:
        """What the library's `generate` is given to write the replies of some jobs of the batch."""

    def _text(self, tokens: Sequence[int]) -> str:
        text: str = self.tokenizer.decode(list(tokens), skip_special_tokens=True)
        return text

    def _is_over(self, job: WritingJob, tokens: Sequence[int]) -> bool:
        """Whether a reply ends without an end token."""
        return False

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
            if rest:
                replies |= self._written(jobs, shown, rest)
        return [replies[place] for place in range(len(jobs))]

    def _scored(self, jobs: Sequence[WritingJob], shown: Any) -> dict[int, Reply]:
        """Place -> the most probable label, for jobs whose labels together have the least mass or more."""
        tables = {place: table for place, job in enumerate(jobs) if (table := self._table(job.request)) is not None}
        of_paths: dict[int, dict[Tokens, float]] = {place: {} for place in tables}
        rows = [(place, begun) for place, table in tables.items() for begun in table.rows]
        most = max(1, self.batch_tokens // max(len(job.ids) for job in jobs))
        tokens = sorted({token for table in tables.values() for paths in table.paths for token in chain(*paths)})

        def kind(row: tuple[int, Tokens]) -> int:
            return len(row[1])

        for size, alike in itertools.groupby(sorted(rows, key=kind), key=kind):
            while chunk := list(itertools.islice(alike, most)):
                logits = self._logits(shown, jobs, chunk, 1 + size)[:, -1 - size :]
                # What is wanted of all rows comes from the device at once.
                scores = logits.float().log_softmax(-1)[..., tokens].tolist()
                for (place, begun), found in zip(chunk, scores, strict=True):
                    behind = [dict(zip(tokens, at, strict=True)) for at in found]
                    of_paths[place] |= tables[place].read(begun, behind)
        chances = {place: table.chances(of_paths[place]) for place, table in tables.items()}
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
        return Reply(best, prompt_tokens=len(job.ids), completion_tokens=1, raw=raw)

    def _written(self, jobs: Sequence[WritingJob], shown: Any, places: Sequence[int]) -> dict[int, Reply]:
        """Place -> the reply that is written: the most probable token each time, or one that is drawn."""
        import torch
        from transformers import GenerationConfig

        draws = [_draw_function(jobs[place].request) for place in places]
        ends = frozenset(self._ends)
        written: dict[int, Reply] = {}
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
                job, is_end = jobs[place], found[-1] in ends
                is_whole = is_end or self._is_over(job, found)
                if is_whole or len(found) >= job.limit:
                    status: ReplyStatus = "ok" if is_whole else "truncated"
                    reason = "" if is_whole else f"the reply was cut after {len(found)} tokens"
                    text = self._text(found[:-1] if is_end else found).strip()
                    written[place] = Reply(text, status, reason, len(job.ids), len(found), {"mode": "generate"})
            return torch.tensor([place in written for place in places], device=ids.device)

        longest = max(jobs[place].limit for place in places)
        config = GenerationConfig(max_new_tokens=longest, do_sample=False, num_beams=1, pad_token_id=0)
        self.network.generate(
            **arguments, generation_config=config, logits_processor=[drawn], stopping_criteria=[is_over]
        )
        return written


def _draw_function(request: Request) -> Callable[[Any], int] | None:
    temperature = float(str(request.options.get("temperature", 0) or 0))
    if temperature <= 0:
        return None
    import torch

    # The key covers messages, options and replicate, so a draw does not depend on what else is in the batch.
    generator = torch.Generator("cpu").manual_seed(int(request.key[:15], 16))

    def draw(logits: Any) -> int:
        probabilities = torch.softmax(logits.double().cpu() / temperature, -1)
        return int(torch.multinomial(probabilities, 1, generator=generator))

    return draw


class DecoderBackend(WritingModel):
    """Llama, Qwen, Mistral, GPT-2 and others of AutoModelForCausalLM.

    Messages go through the tokenizer's chat template; without one they are plain text, blank lines between them.

    Mode `labels` (the default) takes, for requests with labels, the most probable of them:

        P(label) = Σ over its spellings of Π P(token | prompt, tokens before)

    that is, the probability that the reply *begins* with the label (with or without a blank before it). Where all
    labels together have less than `label_mass`, where one label begins another one ("1", "10"), and where a
    temperature is asked for, the reply is generated. Mode `generate` always generates. Generation takes the most
    probable token each time (or draws); penalties and sampling settings of the model's own generation config do not
    apply. A reply in channels (gpt-oss) has the marks of these. Plain-text models do not know where to end: with labels
    given, their replies end with the first line.

    Args:
        source: the model.
        mode: `labels` or `generate`.
        label_mass: the least probability of all labels together.
        thinking: whether models that can think before they reply do so (`enable_thinking` of the chat template).
        settings: see `HuggingFaceModel`.
    """

    auto_class = "AutoModelForCausalLM"
    usual_mode = "labels"

    def __init__(self, source: ModelSource, *, thinking: bool = False, **settings: Any) -> None:
        super().__init__(source, **settings)
        self.thinking = thinking

    @property
    def options(self) -> Mapping[str, object]:
        """Device, dtype, revision, mode, thinking, and in mode `labels` the least mass."""
        return {**super().options, "thinking": self.thinking}

    @property
    def context_tokens(self) -> int | None:
        """How many tokens messages and reply may have together: the model's limit less what the template adds."""
        if self.limit is None:
            return None
        return self.limit - self._overhead

    @cached_property
    def _overhead(self) -> int:
        return len(self._encoded((Message("user", "a"),)))

    def _encoded(self, messages: Sequence[Message]) -> list[int]:
        control = self.control_tokens
        if self.tokenizer.chat_template:
            return self.encode(chat_text(self.tokenizer, messages, control, thinking=self.thinking))
        return self.encode(plain_text(messages, control), special=True)

    @cached_property
    def _parameters(self) -> frozenset[str]:
        return frozenset(inspect.signature(self.network.forward).parameters)

    @cached_property
    def pads(self) -> bool:
        """Whether prompts of other lengths may be computed together: padding in front of them changes no reply.

        It would where a model keeps anything else than keys and values, or counts positions in a way of its own (those
        like RoBERTa), and with `longrope`, whose positions change for all rows that are computed with a long one.
        """
        if any(hasattr(part, "create_position_ids_from_input_ids") for part in self.network.modules()):
            return False
        rope = getattr(self.network.config.get_text_config(), "rope_parameters", None) or {}
        stateful = getattr(self.network, "_is_stateful", False)
        return "position_ids" in self._parameters and not stateful and rope.get("rope_type") != "longrope"

    def _shown(self, jobs: Sequence[WritingJob]) -> None:
        """Nothing: prompts are no part of their own."""

    def _logits(self, shown: None, jobs: Sequence[WritingJob], rows: Sequence[tuple[int, Tokens]], last: int) -> Any:
        ids, mask = padded([(*jobs[place].ids, *begun) for place, begun in rows], self.device, left=True)
        more: dict[str, Any] = {"logits_to_keep": last} if "logits_to_keep" in self._parameters else {}
        if self.pads:
            more["position_ids"] = (mask.cumsum(-1) - 1).clamp(min=0)
        return self.network(input_ids=ids, attention_mask=mask, use_cache=False, **more).logits

    def _generation(self, shown: None, jobs: Sequence[WritingJob], places: Sequence[int]) -> dict[str, Any]:
        ids, mask = padded([jobs[place].ids for place in places], self.device, left=True)
        return {"input_ids": ids, "attention_mask": mask}

    def _spellings(self, label: str) -> tuple[Tokens, ...]:
        """The token sequences that a reply of this label may begin with: at once, or after a blank."""
        found = {tuple(self.encode(label)), tuple(self.encode(f" {label}"))}
        for before in ("Answer:", "\n"):
            stem = self.encode(before)
            for text in (label, f" {label}"):
                ids = self.encode(before + text)
                if ids[: len(stem)] == stem:
                    found.add(tuple(ids[len(stem) :]))
        found.discard(())
        # A sequence that begins with another one of the same label is contained in it.
        return tuple(sorted(ids for ids in found if not any(ids[:size] in found for size in range(1, len(ids)))))

    def _is_over(self, job: WritingJob, tokens: Sequence[int]) -> bool:
        return not self.tokenizer.chat_template and bool(job.request.labels) and "\n" in self._text(tokens).lstrip()

    @cached_property
    def _channels(self) -> bool:
        """Whether the model writes in channels (gpt-oss)."""
        return {"<|channel|>", "<|message|>"} <= set(super().control_tokens)

    def _text(self, tokens: Sequence[int]) -> str:
        # The marks between what the model thinks and its answer are control tokens.
        text: str = self.tokenizer.decode(list(tokens), skip_special_tokens=not self._channels)
        return text


class Seq2SeqBackend(WritingModel):
    """T5, FLAN-T5 and others of AutoModelForSeq2SeqLM; rules that a model has for generation (BART) do not apply.

    Mode `generate` writes the reply greedily, token by token, as `model.generate(num_beams=1, do_sample=False)` does.
    Mode `labels` scores every label of `Request.labels` as a whole reply (all its tokens and the end token) and replies
    with the most probable one; where the labels together have less than `label_mass` of the probability, it generates.
    Above 1/2, the label is provably what greedy decoding writes, as every token on its way is. Requests without labels,
    and such with a temperature above 0, are generated.

    Equal requests get equal replies; in another batch, with other padding, sums are rounded in another order, which may
    flip a reply where two tokens are equally probable up to the precision of the dtype.

    Args:
        source: the model.
        mode: `generate` or `labels`.
        label_mass: the least probability of all labels together.
        settings: see `HuggingFaceModel`.
    """

    auto_class = "AutoModelForSeq2SeqLM"
    # The reply has a context of its own: the decoder's.
    reply_shares_context = False

    def _encoded(self, messages: Sequence[Message]) -> list[int]:
        return self.encode(plain_text(messages, self.control_tokens), special=True)

    def _shown(self, jobs: Sequence[WritingJob]) -> tuple[Any, Any]:
        ids, mask = padded([job.ids for job in jobs], self.device, left=False)
        return self.network.get_encoder()(input_ids=ids, attention_mask=mask).last_hidden_state, mask

    def _of_jobs(self, shown: tuple[Any, Any], places: Sequence[int]) -> dict[str, Any]:
        from transformers.modeling_outputs import BaseModelOutput

        encoded, mask = (part[list(places)] for part in shown)
        return {"encoder_outputs": BaseModelOutput(last_hidden_state=encoded), "attention_mask": mask}

    def _logits(self, shown: Any, jobs: Sequence[WritingJob], rows: Sequence[tuple[int, Tokens]], last: int) -> Any:
        import torch

        start = self.network.generation_config.decoder_start_token_id
        ids = torch.tensor([(start, *begun) for _, begun in rows], device=self.device)
        places = [place for place, _ in rows]
        return self.network(**self._of_jobs(shown, places), decoder_input_ids=ids, use_cache=False).logits

    def _generation(self, shown: Any, jobs: Sequence[WritingJob], places: Sequence[int]) -> dict[str, Any]:
        return self._of_jobs(shown, places)

    def _spellings(self, label: str) -> tuple[tuple[int, ...], ...]:
        return ((*self.encode(label), *self._ends[:1]),)


NO_ANSWER = "no answer"
_LONGEST_ANSWER = 30  # tokens; as in the SQuAD evaluation scripts
_WINDOW, _STRIDE = 384, 128  # tokens of question and passage shown together, and those that two windows share


@dataclass(frozen=True)
class _SpanJob:
    """A question about a passage; `shown` has the windows of the passage as the library makes them."""

    request: Request
    context: str
    shown: Any

    @property
    def tokens(self) -> int:
        return int(self.shown["attention_mask"].sum())


class ExtractiveBackend(HuggingFaceModel):
    """BERT, RoBERTa, DeBERTa and others of AutoModelForQuestionAnswering.

    The last message is canonical JSON, `{"context": PASSAGE, "question": QUESTION}` (the prompts
    `ExtractiveQuestionAnswering` and `ExtractiveAnswer`). The reply is the span of the passage with the highest

        score(span) = start_logit(first token) + end_logit(last token),   at most 30 tokens

    or "no answer" where the no-answer score, start_logit + end_logit of the first special token, is greater than that
    plus `no_answer_margin`. A long passage is seen in overlapping windows: the best span of all of them counts,
    and the lowest of their no-answer scores. So no passage is too long.

    Args:
        source: the model.
        no_answer_margin: how much better "no answer" must be than the best span.
        settings: see `HuggingFaceModel`.

    Source: Devlin et al. 2019 (BERT), section 4.3, for the spans and the no-answer score.
    """

    auto_class = "AutoModelForQuestionAnswering"
    reads_prompts = ("ExtractiveQuestionAnswering", "ExtractiveAnswer")
    context_tokens = None  # long passages are seen in windows

    def __init__(self, source: ModelSource, *, no_answer_margin: float = 0.0, **settings: Any) -> None:
        super().__init__(source, **settings)
        self.margin = float(no_answer_margin)

    @property
    def options(self) -> Mapping[str, object]:
        """Device, dtype, revision, window, stride and margin."""
        return {**super().options, "window": _WINDOW, "stride": _STRIDE, "no_answer_margin": self.margin}

    def _prepare(self, request: Request) -> _SpanJob | Reply:
        try:
            fields = parse_json(request.messages[-1].content, lenient=True)
            context, question = (defused(str(fields[name]), self.control_tokens) for name in ("context", "question"))
        except (ValueError, KeyError, TypeError, IndexError):
            return Reply(None, "failed", "this model reads only the prompt ExtractiveQuestionAnswering")
        if not context.strip():
            return Reply(NO_ANSWER, raw={"mode": "extractive"})
        size = min(_WINDOW, self.limit or _WINDOW)
        room = size - len(self.encode(question)) - self.tokenizer.num_special_tokens_to_add(pair=True)
        if room < 2:
            return Reply(None, "failed", f"the question leaves no room of the {size} tokens that the model is shown")
        shown = self.tokenizer(
            question.strip(),
            context,
            truncation="only_second",
            max_length=size,
            stride=min(_STRIDE, room // 2),
            return_overflowing_tokens=True,
            return_offsets_mapping=True,
            padding=True,
            return_tensors="pt",
            verbose=False,
        )
        return _SpanJob(request, context, shown)

    def _execute(self, jobs: Sequence[_SpanJob]) -> list[Reply]:
        import torch

        with torch.inference_mode():
            return [self._reply(job) for job in jobs]

    def _reply(self, job: _SpanJob) -> Reply:
        shown = job.shown
        names = [name for name in self.tokenizer.model_input_names if name in shown]
        out = self.network(**{name: shown[name].to(self.device) for name in names})
        starts, ends = (one.float().cpu().numpy() for one in (out.start_logits, out.end_logits))
        windows = np.arange(len(starts))
        special = (shown["input_ids"] == self.tokenizer.cls_token_id).int().argmax(1).numpy()
        null = float((starts[windows, special] + ends[windows, special]).min())
        offsets = shown["offset_mapping"].numpy()
        inside = np.array([[part == 1 for part in shown.sequence_ids(window)] for window in windows])
        inside &= offsets[..., 1] > offsets[..., 0]
        # Window, first token, last token; a span goes forward and is short enough.
        scores = np.where(inside, starts, -np.inf)[:, :, None] + np.where(inside, ends, -np.inf)[:, None]
        size = scores.shape[1]
        scores[:, np.tri(size, k=-1, dtype=bool) | ~np.tri(size, k=_LONGEST_ANSWER - 1, dtype=bool)] = -np.inf
        window, first, last = np.unravel_index(scores.argmax(), scores.shape)
        score, text = float(scores[window, first, last]), NO_ANSWER
        raw: dict[str, object] = {"mode": "extractive", "no_answer_score": round(null, 4)}
        if score > -np.inf:
            start, end = int(offsets[window, first, 0]), int(offsets[window, last, 1])
            raw |= {"span": [start, end], "span_score": round(score, 4)}
            if null <= score + self.margin:
                text = job.context[start:end].strip() or NO_ANSWER
        return Reply(text, prompt_tokens=job.tokens, raw=raw)


_KINDS: dict[str, type[HuggingFaceModel]] = {
    "seq2seq": Seq2SeqBackend,
    "decoder": DecoderBackend,
    "extractive": ExtractiveBackend,
}


def make_hf(name: str, **options: Any) -> Backend:
    """`hf:NAME`: a model of the Hugging Face hub, or a folder of one, on this machine; needs the extra hf.

    Its architecture says which class it is, which has the options.

    Only the configuration is read here; tokenizer and weights are loaded when they are first used, so a run that is
    answered from the cache needs no weights.

    Raises:
        MissingExtraError: transformers or torch is not installed.
        BackendError: the model does not exist, cannot be fetched, or is of a kind that writes no answers.
        UnknownNameError: models of this kind do not have an option.
        InputError: an option has a value that makes no sense.
    """
    source = find_source(name)
    maker = _KINDS[model_kind(source)]
    check_options(f"hf:{name}", maker, options)
    return maker(source, **options)
