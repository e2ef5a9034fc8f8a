"""The backend of the library LiteLLM, against our server through its OpenAI-compatible provider."""

from __future__ import annotations

from pathlib import Path

import pytest

from rubric_measures.backends import make_backend
from rubric_measures.backends.base import llm_name
from rubric_measures.base.errors import InputError
from rubric_measures.cli import main
from tests.backends.test_end_to_end_http import _environment, grades, model, says, write_items, write_passages
from tests.fault_server import Running

pytest.importorskip("litellm")

__all__ = ["_environment"]  # a fixture, for every test here as well

# The library's own code warns, and leaves clients open.
pytestmark = pytest.mark.filterwarnings("ignore")


def asked(server: Running, name: str = "m") -> list[str]:
    return ["--model", f"litellm:openai/{name}", "--base-url", server.url]


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


def test_names_and_settings() -> None:
    made = make_backend("litellm:anthropic/claude", concurrency=3)
    assert made.model == "litellm:anthropic/claude" and llm_name(made.model) == "anthropic/claude"
    assert llm_name(make_backend("litellm:openai/m", base_url="http://a/v1").model) == "openai/m"
    with pytest.raises(InputError, match="one base URL at most"):
        make_backend("litellm:openai/m", base_url=["http://a/v1", "http://b/v1"])
