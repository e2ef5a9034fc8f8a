"""Settings of all tests: property tests have no deadline, because a loaded machine is no failure."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
# A shell starts what runs in its background with these ignored, and so would be the commands that tests interrupt.
for ignored in (signal.SIGINT, signal.SIGHUP):
    if signal.getsignal(ignored) == signal.SIG_IGN:
        signal.signal(ignored, signal.default_int_handler if ignored == signal.SIGINT else signal.SIG_DFL)

# No test asks an endpoint, or sends a key, of whoever runs it.
for variable in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"):
    os.environ.pop(variable, None)

# What asks for an extra or a peer, by itself or through a module beside the rooms that does.
HELPERS = "browser|fault_server|hf_models|integrations.word_lists"
NEEDS_MORE = re.compile(rf"importorskip|skipif|^from tests\.(?:{HELPERS})\b", re.MULTILINE)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--with-extras-only", action="store_true", help="leave out what the core environment runs as well")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    if not config.getoption("--with-extras-only") or not collection_path.match("test_*.py"):
        return None
    return None if NEEDS_MORE.search(collection_path.read_text(encoding="utf-8")) else True
