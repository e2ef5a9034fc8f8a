"""Generation options: what is none, or would change nothing, is said in one line before any call."""

from __future__ import annotations

from pathlib import Path

import pytest

from rubric_measures.cli import main
from rubric_measures.models import make_backend
from rubric_measures.models.base import refuse_settings


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("concurrency=2", "concurrency is a setting of the model, not of a reply (--model-option)"),
        # Sent along, it would take the place of the model or the prompt that the records name.
        *((f"{name}=1", f"{name} is no generation option") for name in ("model", "n", "max_completion_tokens")),
        ("extra_body={}", "extra_body is no generation option"),
        *((f"{name}=1", "is no name of a generation option") for name in ("temperature ", "2")),
        # Endpoints ignore them in silence, and the records would name them all the same.
        *(
            (f"{wrong}=1", f"did you mean {right}")
            for wrong, right in (("temprature", "temperature"), ("top-p", "top_p"))
        ),
    ],
)
def test_what_is_no_option_is_said_before_any_call(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], option: str, said: str
) -> None:
    pytest.importorskip("openai")
    (tmp_path / "bank.jsonl").write_text(
        '{"query_id": "q", "items": [{"question_id": "1", "question_text": "Which?"}]}'
    )
    (tmp_path / "passages.jsonl").write_text('["q", [{"paragraph_id": "d", "text": "x"}]]\n')
    files = [str(tmp_path / "passages.jsonl"), "--bank", str(tmp_path / "bank.jsonl"), "-o", str(tmp_path / "o.jsonl")]
    model = ["--model", "openai:m", "--base-url", "http://127.0.0.1:9/v1", "--option", option]
    for extra in ([], ["--dry-run"]):
        assert main(["grade", *files, *model, *extra]) == 2
        err = capsys.readouterr().err
        assert said in err and err.count("\n") == 1
    assert not list(tmp_path.glob("o.jsonl*"))


def test_options_that_only_some_endpoint_knows_are_let_through() -> None:
    """Also such that only begin like a known one."""
    names = ["top_k", "min_tokens", "chat_template_kwargs", "dry_multiplier", "cfg_scale", "num_predict"]
    names += ["repetition_penalty_range", "typ_p", "min_length", "temp", "top_probs", "step"]
    refuse_settings(make_backend("lexical"), names)
