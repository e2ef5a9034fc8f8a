"""The OpenAI-compatible backend beside `transformers serve` on a tiny chat model: a server that is not ours."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest

from rubric_measures.cli import main
from rubric_measures.prompts.library import load_prompt
from tests.hf_models import save_llama
from tests.models.test_end_to_end_http import RATING, grades, write_items, write_passages

for _module in ("openai", "aiohttp", "transformers", "torch", "fastapi", "uvicorn"):
    pytest.importorskip(_module)

_STARTUP_SECONDS = 300


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """(base URL, model) of a server under way."""
    folder = tmp_path_factory.mktemp("llama")
    shown = {"question": "How long?", "context": "A leap year."}
    [message] = load_prompt(RATING).render(**shown)
    save_llama(folder, taught={f"<|user|>{message.content}<|end|><|assistant|>": "4"})
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    program = Path(sys.executable).with_name("transformers")
    command = [str(program), "serve", str(folder), "--host", "127.0.0.1", "--port", str(port)]
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1", "NO_COLOR": "1"}
    log = folder / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*command, "--device", "cpu", "--dtype", "float32"], env=environment, stdout=output, stderr=output
        )
    try:
        deadline = time.monotonic() + _STARTUP_SECONDS
        while not _is_up(port):
            assert process.poll() is None and time.monotonic() < deadline, log.read_text(errors="replace")[-2000:]
            time.sleep(0.3)
        yield f"http://127.0.0.1:{port}/v1", str(folder)
    finally:
        process.kill()
        process.wait()


def _is_up(port: int) -> bool:
    with contextlib.suppress(URLError, OSError), urlopen(f"http://127.0.0.1:{port}/health", timeout=2) as answer:
        return bool(answer.status == 200)
    return False


def test_grades_of_a_served_model_by_the_command_line(served: tuple[str, str], tmp_path: Path) -> None:
    url, model = served
    passages, bank = write_passages(tmp_path, leap="A leap year."), write_items(tmp_path, "How long?")
    command = ["grade", passages, "--bank", bank, "--model", f"openai:{model}", "--base-url", url]
    out = tmp_path / "served.jsonl"
    assert main([*command, "-o", str(out)]) == 0
    # The same model in this process, without HTTP.
    local = tmp_path / "local.jsonl"
    assert main(["grade", passages, "--bank", bank, "--model", f"hf:{model}", "-o", str(local)]) == 0
    assert grades(out) == grades(local) == {"leap": {"How long?": 4}}
