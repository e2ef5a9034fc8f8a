"""Settings of models: unknown ones are named, and none passes for a generation option, which would change nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pytest

from rubric_measures.base.errors import InputError, UnknownNameError
from rubric_measures.cli import main
from rubric_measures.models.base import Reply, Request, refuse_settings


class Precise:
    """A model with a setting that is part of every request (dtype), and one that is not (batch_tokens)."""

    model = "precise"
    context_tokens = None

    def __init__(self, dtype: str = "float32", *, batch_tokens: int = 64) -> None:
        self.dtype, self.batch_tokens = dtype, batch_tokens

    @property
    def options(self) -> Mapping[str, object]:
        return {"dtype": self.dtype}

    def count_tokens(self, text: str) -> int:
        return len(text)

    def complete(self, requests: Iterable[Request]) -> Iterator[tuple[Request, Reply]]:
        for request in requests:
            yield request, Reply("4")


@pytest.mark.parametrize("name", ["dtype", "batch_tokens"])
def test_settings_are_no_generation_options(name: str) -> None:
    refuse_settings(Precise(), ["seed", "top_p"])
    expected = f"{name} is a setting of the model, not of a reply"
    with pytest.raises(InputError) as caught:
        refuse_settings(Precise(), ["seed", name])
    assert (str(caught.value), caught.value.settings) == (expected, ("model_option",))


@pytest.mark.parametrize("name", ["model", "n", "max_completion_tokens", "extra_body"])
def test_what_a_request_says_by_itself_is_no_option(name: str) -> None:
    """Sent along, it would take the place of the model or the prompt that the records name."""
    with pytest.raises(InputError, match=f"{name} is no generation option"):
        refuse_settings(Precise(), ["seed", name])


@pytest.mark.parametrize("name", ["temperature ", "", "2"])
def test_what_is_no_name_is_no_option(name: str) -> None:
    with pytest.raises(InputError, match="is no name of a generation option"):
        refuse_settings(Precise(), ["seed", name])


@pytest.mark.parametrize(
    ("name", "meant"),
    [("MAX_TOKENS", "max_tokens"), ("temprature", "temperature"), ("top-p", "top_p"), ("seeds", "seed")],
)
def test_misspelt_options_are_refused(name: str, meant: str) -> None:
    """Endpoints ignore them in silence, and the records would name them all the same."""
    with pytest.raises(UnknownNameError, match=f"did you mean .*{meant}"):
        refuse_settings(Precise(), ["seed", name])


def test_options_that_only_some_endpoint_knows_are_let_through() -> None:
    """Also such that only begin like a known one."""
    names = ["top_k", "min_tokens", "chat_template_kwargs", "dry_multiplier", "cfg_scale", "num_predict"]
    refuse_settings(Precise(), [*names, "repetition_penalty_range", "typ_p", "min_length", "temp", "top_probs", "step"])


def test_the_command_line_says_so_before_any_call(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("openai")
    (tmp_path / "bank.jsonl").write_text(
        '{"query_id": "q", "query_text": "", "test_collection": "", "items": [{"query_id": "q", "question_id": "q/1", '
        '"question_text": "Which?"}]}\n'
    )
    (tmp_path / "passages.jsonl").write_text('["q", [{"paragraph_id": "d", "text": "x"}]]\n')
    files = [str(tmp_path / "passages.jsonl"), "--bank", str(tmp_path / "bank.jsonl"), "-o", str(tmp_path / "o.jsonl")]
    model = ["--model", "openai:m", "--base-url", "http://127.0.0.1:9/v1", "--option", "concurrency=2"]
    for option in ("temperature =0.4", "temperatur=0.4", "extra_body={}"):
        assert main(["grade", *files, *model[:4], "--option", option]) == 2
        assert capsys.readouterr().err.count("\n") == 1
    for extra in ([], ["--dry-run"]):
        assert main(["grade", *files, *model, *extra]) == 2
        said = capsys.readouterr().err
        assert "concurrency is a setting of the model, not of a reply (--model-option)" in said
        assert said.count("\n") == 1
    assert not list(tmp_path.glob("o.jsonl*"))
