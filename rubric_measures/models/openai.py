"""Models behind OpenAI-compatible endpoints, and by LiteLLM.

The backend `openai:NAME`: an OpenAI-compatible endpoint (vLLM, Ollama, TGI, the official one, …).

The backend `litellm:PROVIDER/NAME`: what LiteLLM reaches, behind the cache, limits and statuses of ours.
"""

from __future__ import annotations

import functools
import itertools
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from rubric_measures.base.errors import BackendError, InputError
from rubric_measures.base.plugins import require
from rubric_measures.models.base import ENDPOINT_MARK, Reply, Request
from rubric_measures.models.calling import EndpointSettings, Engine
from rubric_measures.models.wire import Endpoint

_OFFICIAL_URL = "https://api.openai.com/v1"
_OLDEST_CLIENT = 3  # earlier ones have no client over aiohttp of their own
_LOOK_AHEAD = 2  # requests pulled, in multiples of the calls that may be in flight
_PULLED_AT_ONCE = 16
_MOST_ASLEEP = 4096


class OpenAICompatible:
    """`openai:NAME`: a model behind any endpoint that speaks OpenAI's protocol; needs the extra openai.

    Where it is served is no part of the cache key: a server may move, and a full cache needs none. The key is taken
    from `OPENAI_API_KEY` and goes nowhere but to the endpoint; servers that need none get a placeholder.

    Args:
        name: the model as the endpoint knows it.
        base_url: the endpoint; without one `OPENAI_BASE_URL` (read with the first call), else the official endpoint.
        endpoint_name: part of the cache key where two servers have different weights under one name.
        structured: how replies to prompts with a closed list of replies are constrained: `off`, `choice` (vLLM),
            `json_schema`, each perhaps with `+logprobs` (scores of the first token in `Reply.raw`).
        concurrency: the most calls in flight.
        timeout: seconds until a call counts as failed.
        attempts: how often a failing call is tried.
        patience: seconds for which a call lets itself be turned away by a rate limit.
        backoff: seconds before the second attempt.
        context_tokens: how many tokens prompt and reply may have together, when known.
        thinking_tokens: the tokens that a model which thinks before it replies gets for that, beside `max_tokens`;
            None goes by `max_tokens`: 64 times as many, at least 4,096 and at most 16,384.

    Raises:
        InputError: a URL or a setting makes no sense.
        MissingExtraError: the extra `openai` is not installed.
        BackendError: the client of the extra is too old.
    """

    _kind = "openai"
    settings_class = EndpointSettings

    def __init__(self, name: str, base_url: str | None = None, **settings: Any) -> None:
        self._require()
        self._name = name
        self._given = _endpoint(base_url) if base_url else ""
        self._settings = EndpointSettings(**settings)
        # What was given: endpoints have no common way to say it.
        self.context_tokens = self._settings.context_tokens
        # `openai:NAME`, or `openai:NAME@endpoint:ENDPOINT_NAME`; of LiteLLM with `litellm:` in front.
        endpoint = self._settings.endpoint_name
        self.model = f"{self._kind}:{name}{endpoint and f'{ENDPOINT_MARK}{endpoint}'}"
        self.options: Mapping[str, object] = {"api": "chat", "structured": self._settings.structured}

    def _require(self) -> None:
        client = require("openai", "openai")
        require("aiohttp", "openai")
        if int(client.__version__.partition(".")[0]) < _OLDEST_CLIENT:
            raise BackendError(f"openai {client.__version__} is too old; pip install -U 'openai[aiohttp]>=3'")

    @functools.cached_property
    def _url(self) -> str:
        try:
            return self._given or _endpoint(os.environ.get("OPENAI_BASE_URL") or _OFFICIAL_URL)
        except InputError as error:
            # It is looked at with the first call that the cache cannot answer.
            raise InputError(
                f"the cache does not have all replies, and OPENAI_BASE_URL names no endpoint: {error}"
            ) from None

    @functools.cached_property
    def _endpoint(self) -> Endpoint:
        return Endpoint(self._name, shown_url(self._url), self._secrets(), self._settings.thinking_tokens)

    def count_tokens(self, text: str) -> int:
        """An estimate: a token for four bytes, that is four letters, two of other alphabets, or 1.3 Chinese ones."""
        return -(-len(text.encode("utf-8", "replace")) // 4)

    def complete(self, requests: Iterable[Request]) -> Iterator[tuple[Request, Reply]]:
        """Sends requests in their order, and yields each with its reply as it comes.

        Requests are pulled in the caller's thread, at most twice as many as may be in flight.

        Raises:
            BackendError: nothing can work (no connection, wrong key, unknown model, an outage that lasts).
        """
        iterator, window = iter(requests), _LOOK_AHEAD * self._settings.concurrency
        engine = Engine(self._endpoint, self._client, self._settings)
        engine.interrupted = getattr(requests, "stop", engine.interrupted)
        try:
            outstanding, exhausted, at_once = 0, False, min(_PULLED_AT_ONCE, window // 2)
            while outstanding or not exhausted:
                # Calls that wait for their next attempt are no work for the endpoint.
                while not exhausted and outstanding + at_once <= window + min(engine.sleeping, _MOST_ASLEEP):
                    pulled = list(itertools.islice(iterator, at_once))
                    exhausted = not pulled
                    engine.submit(pulled)
                    outstanding += len(pulled)
                if outstanding:
                    outstanding -= 1
                    if (found := engine.reply()) is None:
                        return
                    yield found
        finally:
            engine.close()

    def _client(self) -> Any:
        import openai

        policy = self._settings
        seconds = policy.timeout + 5  # the engine measures the whole call, the client each step of it
        limits = type(openai.DEFAULT_CONNECTION_LIMITS)(
            max_connections=None, max_keepalive_connections=policy.concurrency
        )
        return openai.AsyncOpenAI(
            api_key=api_key(self._url),
            base_url=self._url,
            http_client=openai.DefaultAioHttpClient(limits=limits, timeout=seconds),
            # The engine tries again itself: the client's retries know nothing of each other.
            max_retries=0,
            timeout=seconds,
        )

    def _secrets(self) -> tuple[str, ...]:
        return tuple(os.environ.get(name, "") for name in ("OPENAI_API_KEY", "OPENAI_ADMIN_KEY"))


def _endpoint(base_url: str) -> str:
    url = base_url.strip().rstrip("/")
    try:
        parts = urlsplit(url)
        is_endpoint = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        # A port that is none, or half an address in brackets.
        is_endpoint = False
    if not is_endpoint:
        raise InputError(f"base URL {url.rpartition('@')[2]!r:.100}: expected http://HOST:PORT/v1 or https://…")
    if "@" in parts.netloc:
        text = f"base URL {shown_url(url)!r:.100}: it has a user name or a password in front, which are never sent"
        raise InputError(f"{text}; leave them out, and set OPENAI_API_KEY", settings=("base_url",))
    return url


def shown_url(url: str) -> str:
    """A URL without user name, password, query and fragment, as keys, files and messages show it."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def api_key(url: str) -> str:
    """The key for an endpoint: `OPENAI_API_KEY`, or a placeholder for servers that need none.

    Raises:
        InputError: the official endpoint is meant and there is no key.
    """
    key = os.environ.get("OPENAI_API_KEY", "")
    if not key and shown_url(url) == _OFFICIAL_URL:
        raise InputError(
            "the official endpoint needs a key: set OPENAI_API_KEY, or name another endpoint", settings=("base_url",)
        )
    return key or "none"


_NOWHERE = "https://litellm"  # stands in messages where the library knows the URL of the provider


class LiteLLM(OpenAICompatible):
    """`litellm:PROVIDER/NAME`: Anthropic, Gemini, Bedrock, … by the library LiteLLM; needs the extra litellm.

    Keys are read from the variables that the library names (`ANTHROPIC_API_KEY`, `GEMINI_API_KEY`, …). The settings are
    those of `OpenAICompatible`.

    Args:
        name: provider and model, as the library writes them.
        base_url: the endpoint, where it is not the provider's own.
        settings: see `OpenAICompatible`.

    Raises:
        InputError: a setting makes no sense.
        MissingExtraError: the extra `litellm` is not installed.
    """

    _kind = "litellm"

    def __init__(self, name: str, base_url: str | None = None, **settings: Any) -> None:
        super().__init__(name, base_url or _NOWHERE, **settings)
        self._base_url = base_url

    def _require(self) -> None:
        require("litellm", "litellm")

    def _client(self) -> _Client:
        return _Client(self._base_url, self._settings.timeout + 5)

    def _secrets(self) -> tuple[str, ...]:
        return tuple(value for name, value in os.environ.items() if name.endswith(("_API_KEY", "_TOKEN")))


class _Client:
    """What the engine asks: the library's call in the place of an HTTP client's."""

    def __init__(self, url: str | None, timeout: float) -> None:
        import litellm

        litellm.telemetry = False
        litellm.suppress_debug_info = True
        self._library, self._url, self._timeout = litellm, url, timeout

    async def post(self, _: str, *, body: dict[str, Any], **__: Any) -> bytes:
        """Makes a call with the fields of a body of the OpenAI API."""
        import openai

        # The engine tries again itself. Fields that a provider does not know are refused, not dropped in silence.
        own: dict[str, Any] = {"timeout": self._timeout, "num_retries": 0, "max_retries": 0, "drop_params": False}
        if self._url:
            own["api_base"] = self._url
            # The keys of other providers are found by the library, and ours is none of theirs.
            if str(body.get("model", "")).startswith("openai/"):
                own["api_key"] = os.environ.get("OPENAI_API_KEY") or "none"
        try:
            found = await self._library.acompletion(**body, **own)
        except openai.APIStatusError as error:
            # What the library refuses itself has no body.
            error.body = getattr(error, "body", None) or {"message": str(error)}
            raise
        return bytes(found.model_dump_json().encode())

    async def close(self) -> None:
        """Nothing is held open."""
