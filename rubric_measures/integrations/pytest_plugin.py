"""A plugin of pytest: answers graded in a test, which fails with the facts that they miss.

Pytest loads it at its start, so it imports nothing before a test asks for it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from rubric_measures.api.answers import EvaluatedAnswers


_MODEL = "rubric_model"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the option and the setting that name the model."""
    text = "the model that grades answers in tests: lexical, hf:NAME, openai:NAME, …"
    parser.getgroup("rubric_measures").addoption("--rubric-model", metavar="MODEL", help=text)
    parser.addini(_MODEL, f"{text} (--rubric-model comes first)", default="")


def pytest_configure(config: pytest.Config) -> None:
    """Hides from users that ir_measures reads measures with names that Python 3.12 calls old."""
    config.addinivalue_line("filterwarnings", "ignore::DeprecationWarning:ir_measures.util")


@pytest.fixture
def evaluate_answers(request: pytest.FixtureRequest) -> Callable[..., EvaluatedAnswers]:
    """`rubric_measures.evaluate_answers` with the model of the test run, and with pytest's cache for its replies.

    So a second run of the same tests asks the model nothing. It returns what has `assert_at_least`
    and `assert_not_worse`.
    """

    def evaluate(answers: Any, **options: Any) -> EvaluatedAnswers:
        from rubric_measures.api.answers import evaluate_answers as evaluated
        from rubric_measures.base.errors import InputError
        from rubric_measures.models.settings import Calls

        model = request.config.getoption("--rubric-model") or request.config.getini(_MODEL)
        if model:
            options.setdefault("model", model)
        elif "model" not in options:
            text = "no model grades the answers: set rubric_model in pytest.ini, or give --rubric-model or model"
            raise InputError(text)
        cache = getattr(request.config, "cache", None)
        calls = options.get("calls", Calls())
        if cache is not None and options.get("output") is None and calls.cache is None:
            options["calls"] = replace(calls, cache=cache.mkdir("rubric_measures") / "replies.sqlite")
        return evaluated(answers, **options)

    return evaluate
