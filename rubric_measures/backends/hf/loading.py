"""Finding and loading Hugging Face models: name, revision, device, dtype; tokenizer and weights when first used."""

from __future__ import annotations

import abc
import contextlib
import hashlib
import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from rubric_measures.backends.base import Message, Reply, Request
from rubric_measures.backends.hf._batching import one_line, run_batches
from rubric_measures.backends.hf.text import defused
from rubric_measures.base.errors import BackendError, InputError, MissingExtraError
from rubric_measures.base.plugins import require

__all__ = ["FORGED", "HuggingFaceModel", "ModelSource", "choose_device", "choose_dtype", "find_source"]

_DTYPES = ("auto", "float32", "bfloat16", "float16")
_OLDEST = (5, 1)
_WHOLE = 256 << 20  # files up to this size are hashed whole
_BLOCK = 1 << 20
_UNLIMITED = 10**9  # tokenizers without a limit say something like 1e30
_Encoder = Callable[[Sequence[Message]], list[int]]
FORGED = "the text writes a control token of the model"
GENERATION_OPTIONS = frozenset({"temperature", "max_tokens", "seed", "top_p"})


@dataclass(frozen=True)
class ModelSource:
    """Where a model comes from.

    Attributes:
        name: the repository's name or the path of a folder, as the user wrote it.
        revision: the branch, tag or commit that was asked for; empty for a folder.
        fingerprint: what the files are: the commit hash, or `sha256:…` over the files of a folder.
        config: the configuration of the transformers library.
    """

    name: str
    revision: str
    fingerprint: str
    config: Any

    @property
    def model(self) -> str:
        """The canonical name for `Request.model`: `hf:NAME@REVISION`, or `hf:PATH`."""
        return f"hf:{self.name}@{self.revision}" if self.revision else f"hf:{self.name}"

    @property
    def arguments(self) -> dict[str, Any]:
        """What every `from_pretrained` is given, so that tokenizer and weights are of the commit of the config."""
        commit = self.fingerprint if re.fullmatch(r"[0-9a-f]{40}", self.fingerprint) else self.revision
        return {"revision": commit} if commit else {}


def find_source(spec: str) -> ModelSource:
    """Reads the configuration of `NAME[@revision]` (a model of the hub, or a folder).

    Raises:
        MissingExtraError: transformers or torch is not installed.
        BackendError: no such model, no network, or a version of transformers that computes wrong numbers.
    """
    transformers = _transformers()
    name, revision = spec, ""
    if not Path(spec).is_dir():
        name, _, revision = spec.rpartition("@") if "@" in spec else (spec, "", "")
        revision = revision or "main"
    arguments = {"revision": revision} if revision else {}
    config = _load(name, "configuration", lambda: transformers.AutoConfig.from_pretrained(name, **arguments))
    if revision:
        return ModelSource(name, revision, str(getattr(config, "_commit_hash", None) or revision), config)
    return ModelSource(name, "", f"sha256:{_folder_hash(Path(name))}", config)


def _transformers() -> Any:
    try:
        torch = require("torch", "hf")
        transformers = require("transformers", "hf")
    except MissingExtraError:
        raise MissingExtraError("the backend hf:NAME", "hf") from None
    del torch
    found = tuple(int(part) for part in re.findall(r"\d+", transformers.__version__)[:2])
    if found < _OLDEST:
        # 5.0.0 scales the logits of FLAN-T5 in silence, older ones lack what is called here.
        raise BackendError(f"transformers {transformers.__version__} is too old; pip install -U 'transformers>=5.1'")
    return transformers


def _folder_hash(folder: Path) -> str:
    """A hash of all files of a folder; of a file above 256 MB, of its size and 64 blocks of 1 MB spread over it."""
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.iterdir() if path.is_file() and not path.name.startswith(".")):
        size = path.stat().st_size
        digest.update(f"{path.name}\0{size}\0".encode())
        with path.open("rb") as stream:
            if size <= _WHOLE:
                while block := stream.read(_BLOCK):
                    digest.update(block)
            else:
                for place in range(64):
                    stream.seek((size - _BLOCK) * place // 63)
                    digest.update(stream.read(_BLOCK))
    return digest.hexdigest()[:40]


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keeps the library's progress bars and advice away from the user's terminal while something is loaded."""
    from transformers.utils import logging as library_logging

    level, bars = library_logging.get_verbosity(), library_logging.is_progress_bar_enabled()
    library_logging.set_verbosity_error()
    library_logging.disable_progress_bar()
    try:
        yield
    finally:
        library_logging.set_verbosity(level)
        if bars:
            library_logging.enable_progress_bar()


def _load(name: str, what: str, load: Callable[[], Any]) -> Any:
    try:
        with _quiet():
            return load()
    except (OSError, ValueError, KeyError, ImportError, RuntimeError, TypeError, AttributeError, MemoryError) as error:
        offline = os.environ.get("HF_HUB_OFFLINE", "") not in ("", "0")
        hint = " (HF_HUB_OFFLINE is set)" if offline and isinstance(error, OSError) else ""
        raise BackendError(f"hf:{name}: the {what} cannot be loaded{hint}: {one_line(error)}") from None


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

    Raises:
        InputError: the dtype is unknown.
    """
    if wanted not in _DTYPES:
        raise InputError(f"dtype {wanted!r}: expected one of {', '.join(_DTYPES)}")
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
        batch_tokens: tokens (padding included) computed at once; None takes 4,096 on a CPU, 32,768 elsewhere.
        look_ahead: how many requests are pulled and sorted by length together.
    """

    # Another draw at temperature 0 gives the same reply.
    deterministic = True
    auto_class = "AutoModel"

    def __init__(
        self,
        source: ModelSource,
        *,
        device: str = "auto",
        dtype: str = "auto",
        context: int | None = None,
        batch_tokens: int | None = None,
        look_ahead: int = 512,
    ) -> None:
        self.source = source
        self.device = choose_device(device)
        self.dtype = choose_dtype(dtype, self.device)
        self.batch_tokens = int(batch_tokens or (4096 if self.device == "cpu" else 32768))
        self.look_ahead = int(look_ahead)
        if self.batch_tokens < 1 or self.look_ahead < 1 or (context is not None and int(context) < 1):
            raise InputError("batch_tokens, look_ahead and context must be positive")
        self._context = int(context) if context is not None else None
        self._lock = threading.RLock()
        self._tokenizer: Any = None
        self._network: Any = None
        self._frames: dict[tuple[str, ...], int] = {}

    @property
    def model(self) -> str:
        """`hf:NAME@REVISION`, or `hf:PATH`."""
        return self.source.model

    @property
    def options(self) -> Mapping[str, object]:
        """Device, dtype and the commit (or the hash of the files): all of them can change a reply."""
        return {"device": self.device, "dtype": self.dtype, "revision": self.source.fingerprint}

    @property
    def tokenizer(self) -> Any:
        """The model's own tokenizer."""
        with self._lock:
            if self._tokenizer is None:
                from transformers import AutoTokenizer

                source = self.source
                self._tokenizer = _load(
                    source.name, "tokenizer", lambda: AutoTokenizer.from_pretrained(source.name, **source.arguments)
                )
            return self._tokenizer

    @property
    def network(self) -> Any:
        """The weights, on their device, ready for inference.

        Raises:
            BackendError: they cannot be loaded, or some are missing in the files (they would be random numbers).
        """
        with self._lock:
            if self._network is None:
                self._network = self._load_network()
            return self._network

    def _load_network(self) -> Any:
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
    @abc.abstractmethod
    def context_tokens(self) -> int | None:
        """How many tokens messages and reply may have together."""

    def complete(self, requests: Iterable[Request]) -> Iterator[tuple[Request, Reply]]:
        """Replies, batch by batch.

        Raises:
            BackendError: the weights cannot be loaded, or an option is unknown.
        """
        return run_batches(
            requests,
            self._prepare,
            self._plan,
            self._execute,
            look_ahead=self.look_ahead,
            release=self.release_memory,
        )

    @abc.abstractmethod
    def _prepare(self, request: Request) -> Any:
        """A job made of a request, or its reply at once."""

    @abc.abstractmethod
    def _plan(self, jobs: list[Any]) -> Iterator[list[Any]]:
        """The jobs in batches."""

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

    @cached_property
    def control_ids(self) -> frozenset[int]:
        """The control tokens, as the tokenizer numbers them."""
        tokenizer = self.tokenizer
        ids = {tokenizer.convert_tokens_to_ids(token) for token in self.control_tokens if len(token) > 1}
        # The token of unknown characters orders nothing.
        return frozenset(ids) - {None, tokenizer.unk_token_id}

    def _controls(self, ids: Sequence[int]) -> int:
        return sum(map(self.control_ids.__contains__, ids))

    def prompt_tokens(
        self, messages: Sequence[Message], encoded: Callable[[Sequence[Message]], list[int]]
    ) -> list[int]:
        """The tokens of messages in the form that the model is shown (`encoded`).

        Raises:
            ValueError: the tokenizer finds a control token in a content (written in fullwidth letters).
        """
        ids = encoded(messages)
        if self._controls(ids) != self._frame_controls(tuple(message.role for message in messages), encoded):
            raise ValueError(FORGED)
        return ids

    def _frame_controls(self, roles: tuple[str, ...], encoded: _Encoder) -> int:
        """How many control tokens stand around the contents."""
        if roles not in self._frames:
            self._frames[roles] = self._controls(encoded([Message(role, "a") for role in roles]))
        return self._frames[roles]

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
        found = [
            getattr(self.tokenizer, "model_max_length", None),
            getattr(config, "max_position_embeddings", None),
            getattr(config, "n_positions", None),
        ]
        return min((int(size) for size in found if size and 0 < size < _UNLIMITED), default=None)

    def check_options(self, request: Request) -> None:
        """Refuses generation options that would be ignored, and settings other than those that replies are made with.

        Raises:
            BackendError: the request has an option that this backend does not know, or another one's settings.
        """
        own = self.options
        if unknown := sorted(set(request.options) - set(own) - GENERATION_OPTIONS):
            known = ", ".join(sorted(GENERATION_OPTIONS))
            raise BackendError(f"{self.model}: unknown generation option {', '.join(unknown)} (known: {known})")
        for name, value in own.items():
            if (asked := request.options.get(name, value)) != value:
                raise BackendError(f"{self.model}: {name} is {value!r} here, the request says {asked!r}")

    def release_memory(self) -> None:
        """Gives memory back to the device after a batch that was too large."""
        import torch

        if self.device.startswith("cuda"):
            torch.cuda.empty_cache()
        elif self.device == "mps":
            torch.mps.empty_cache()
