"""The backend of the library LiteLLM, against our server through its OpenAI-compatible provider."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from rubric_measures.cli import main
from tests.fault_server import Running
from tests.models.test_end_to_end_http import grades, model, says, sets, write_items, write_passages

pytest.importorskip("litellm")

# The library's own code warns, and leaves clients open.
pytestmark = pytest.mark.filterwarnings("ignore")


def asked(server: Running, name: str = "m", provider: str = "openai", **options: object) -> list[str]:
    more = [part for key, value in options.items() for part in ("--model-option", f"{key}={value}")]
    return ["--model", f"litellm:{provider}/{name}", "--base-url", server.url, *more]


def test_grades_come_through_the_library_and_stay_in_the_cache(tmp_path: Path) -> None:
    passages, bank = write_passages(tmp_path, sun="the sun", moon="a moon"), write_items(tmp_path, "How long?")
    out = tmp_path / "out.jsonl"
    with model(tmp_path, says("5", "the sun"), says("2", "a moon"), thoughts=300) as server:
        command = ["grade", passages, "--bank", bank, *asked(server), "-o", str(out)]
        assert main(command) == 0
        # One reply was cut while the model thought, before that was known.
        assert server.stats()["calls"] == 1 + 2
        assert main(command) == 0
        assert server.stats()["calls"] == 1 + 2
    assert grades(out) == {"sun": {"How long?": 5}, "moon": {"How long?": 2}}


def test_a_wrong_key_and_a_wrong_model_cost_one_call(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = {f"p{number}": f"passage {number}." for number in range(20)}
    passages, bank = write_passages(tmp_path, **texts), write_items(tmp_path, "How long?")
    with model(tmp_path, says("5", "passage")) as server:
        command = ["grade", passages, "--bank", bank, "-o", str(tmp_path / "out.jsonl")]
        assert main([*command, *asked(server, "nobody")]) == 2
        assert server.stats()["calls"] == 1
        monkeypatch.setenv("OPENAI_API_KEY", "wrong-key")
        assert main([*command, *asked(server)]) == 2
        assert server.stats()["calls"] == 2
    said = capsys.readouterr().err
    assert said.count("cannot be used: HTTP 404") == 1 and said.count("cannot be used: HTTP 401") == 1
    assert "wrong-key" not in said and "Traceback" not in said


def test_a_model_that_thinks_is_graded_with_the_defaults(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes no temperature, calls the longest reply by its newer name, thinks for 900 tokens, and shows them."""
    monkeypatch.setenv("OPENAI_API_KEY", "the-key")
    passages, bank = write_passages(tmp_path, sun="the sun", moon="a moon"), write_items(tmp_path, "How long?")
    out = tmp_path / "out.jsonl"
    rules = [says("5", "the sun"), says("2", "a moon")]
    with model(tmp_path, *rules, renamed=1, thoughts=900, shows_thoughts="reasoning_content") as server:
        assert main(["grade", passages, "--bank", bank, *asked(server, "warm"), "-o", str(out)]) == 0
        sent = server.get("/fields")
    # Refused for one field, then for the other, then cut while it thought; each grade is one call then.
    key = {"model": "warm", "authorization": "Bearer the-key"}
    assert sent == [
        {**key, "temperature": 0, "max_tokens": 64},
        {**key, "max_tokens": 64},
        {**key, "max_completion_tokens": 64},
        *2 * [{**key, "max_completion_tokens": 64 + 4096}],
    ]
    assert capsys.readouterr().err.count("takes no temperature of ours") == 1
    assert grades(out) == {"sun": {"How long?": 5}, "moon": {"How long?": 2}}
    kept = sets(out)["sun"].details["q1/How long?"]
    assert str(kept["thinking"]).startswith("Maybe 2.")
    calls = json.loads((tmp_path / "out.jsonl.manifest.json").read_text())["calls"]
    assert (calls["reasoning_tokens"], calls["left_out"]) == (2 * 900, {"temperature": 2})


def test_other_providers_never_see_the_key_of_openai(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "the-key")
    monkeypatch.setenv("HOSTED_VLLM_API_KEY", "another")
    passages, bank = write_passages(tmp_path, sun="the sun"), write_items(tmp_path, "How long?")
    with model(tmp_path, says("5", "the sun")) as server:
        command = ["grade", passages, "--bank", bank, *asked(server, provider="hosted_vllm")]
        assert main([*command, "-o", str(tmp_path / "out.jsonl")]) == 0
        assert [one["authorization"] for one in server.get("/fields")] == ["Bearer another"]


def test_the_library_fetches_nothing_when_it_is_imported() -> None:
    """It would fetch a list of prices: here through a proxy, which sees every call that leaves."""
    with socket.create_server(("127.0.0.1", 0)) as proxy:
        proxy.settimeout(0.1)
        address = f"http://127.0.0.1:{proxy.getsockname()[1]}"
        code = "from rubric_measures.models import make_backend; make_backend('litellm:openai/m')._client()"
        names = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")
        environment = {**os.environ, **dict.fromkeys(names, address)}
        environment.pop("LITELLM_LOCAL_MODEL_COST_MAP", None)
        subprocess.run([sys.executable, "-c", code], env=environment, check=True, timeout=240)
        with pytest.raises(TimeoutError):
            proxy.accept()
