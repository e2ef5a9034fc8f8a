"""The backend `litellm:PROVIDER/NAME`: what LiteLLM reaches, behind the cache, limits and statuses of ours."""

from __future__ import annotations

import os
from typing import Any

from rubric_measures.backends.base import Backend
from rubric_measures.backends.openai._backend import OpenAICompatible
from rubric_measures.backends.options import check_options
from rubric_measures.base.errors import InputError
from rubric_measures.base.plugins import require

_NOWHERE = "https://litellm"  # stands in messages where the library knows the URL of the provider


class LiteLLM(OpenAICompatible):
    """A model of a provider that LiteLLM knows (`anthropic/…`, `gemini/…`, `bedrock/…`, `azure/…`, `openrouter/…`).

    Keys are read from the variables that the library names (`ANTHROPIC_API_KEY`, `GEMINI_API_KEY`, …). The settings are
    those of `OpenAICompatible`, without the Batch API.

    Args:
        name: provider and model, as the library writes them.
        base_url: the endpoint, where it is not the provider's own.
        settings: see `OpenAICompatible`.

    Raises:
        InputError: a setting makes no sense.
        MissingExtraError: the extra `litellm` is not installed.
    """

    _extra = "litellm"

    def __init__(self, name: str, base_url: str | None = None, **settings: Any) -> None:
        if settings.get("batch") is not None:
            raise InputError("litellm has no Batch API", settings=("model_option",))
        require("litellm", "litellm")
        super().__init__(name, base_url or _NOWHERE, **settings)
        self._base_url = base_url

    @property
    def model(self) -> str:
        """`litellm:PROVIDER/NAME`, or `litellm:PROVIDER/NAME@endpoint:ENDPOINT_NAME`."""
        return f"litellm:{super().model.removeprefix('openai:')}"

    def _client(self) -> _Client:
        return _Client(self._base_url, self._policy.timeout + 5)

    def _secrets(self) -> tuple[str, ...]:
        return tuple(value for name, value in os.environ.items() if name.endswith(("_API_KEY", "_TOKEN")))


class _Client:
    """What the engine asks: the library's call in the place of an HTTP client's."""

    def __init__(self, url: str | None, timeout: float) -> None:
        # Else the import fetches a list of prices.
        os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
        import litellm

        litellm.telemetry = False
        litellm.suppress_debug_info = True
        self._library, self._url, self._timeout = litellm, url, timeout

    async def post(self, path: str, *, body: dict[str, Any], **_: Any) -> bytes:
        """Makes a call with the fields of a body of the OpenAI API."""
        import openai

        call = self._library.atext_completion if path == "/completions" else self._library.acompletion
        # The engine tries again itself. Fields that a provider does not know are refused, not dropped in silence.
        own: dict[str, Any] = {"timeout": self._timeout, "num_retries": 0, "max_retries": 0, "drop_params": False}
        if self._url:
            own["api_base"] = self._url
            # The keys of other providers are found by the library, and ours is none of theirs.
            if str(body.get("model", "")).startswith("openai/"):
                own["api_key"] = os.environ.get("OPENAI_API_KEY") or "none"
        try:
            found = await call(**body, **own)
        except openai.APIStatusError as error:
            # What the library refuses itself has no body.
            error.body = getattr(error, "body", None) or {"message": str(error)}
            raise
        return bytes(found.model_dump_json().encode())

    async def close(self) -> None:
        """Nothing is held open."""


def make(name: str, **options: Any) -> Backend:
    """The backend `litellm:PROVIDER/NAME`; see `LiteLLM` for the options."""
    check_options(f"litellm:{name}", LiteLLM, options)
    return LiteLLM(name, **options)
