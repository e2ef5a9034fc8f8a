"""Grading as users do it, with models: tiny ones that were taught a few replies make banks, grades and leaderboards."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from rubric_measures.cli import main
from rubric_measures.formats.banks import load_bank
from rubric_measures.prompts.library import load_prompt
from tests.hf_models import CHAT_TEMPLATE, save_llama, save_t5
from tests.models.test_end_to_end_http import RATING, grades, write_items, write_passages

for _module in ("torch", "transformers"):
    pytest.importorskip(_module)

# The prompts' own names of the parts of a tiny chat template.
CHAT = "<|user|>{}<|end|><|assistant|>"
assert "<|assistant|>" in CHAT_TEMPLATE


def shown(name: str, **fields: str) -> str:
    """What a model without a chat template is shown."""
    return "\n\n".join(message.content for message in load_prompt(name).render(**fields))


def in_chat(taught: Mapping[str, str]) -> dict[str, str]:
    return {CHAT.format(prompt): reply for prompt, reply in taught.items()}


def graded(
    folder: Path, passages: str, bank: str, model: Path, *more: str, code: int = 0, out: str = "o.jsonl"
) -> Path:
    command = ["grade", passages, "--bank", bank, "--model", f"hf:{model}", "-o", str(folder / out), *more]
    assert main(command) == 0
    return folder / out


def test_a_model_makes_a_bank_and_grades_with_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "queries.tsv").write_text("q1\ttea\n", encoding="utf-8")
    (tmp_path / "one.run").write_text("q1 Q0 hot 1 2.0 one\n")
    texts = {"hot": "Boil it.", "cold": "Frost."}
    rates = {("hot", "How hot?"): "5", ("cold", "How hot?"): "1", ("hot", "Which?"): "0", ("cold", "Which?"): "0"}
    taught = {shown("bank.question.dl", query_text="tea"): '["How hot?", "Which?", "how hot"]'}
    taught |= {shown(RATING, question=item, context=texts[doc]): rate for (doc, item), rate in rates.items()}
    model = save_llama(tmp_path / "llama", taught=in_chat(taught))
    bank = str(tmp_path / "bank.jsonl")
    queries = str(tmp_path / "queries.tsv")
    assert main(["generate", queries, "--model", f"hf:{model}", "--max-tokens", "40", "-o", bank]) == 0
    assert [item.text for item in load_bank(bank)] == ["How hot?", "Which?"]
    out = graded(tmp_path, write_passages(tmp_path, **texts), bank, model)
    ids = {item.text: item.item_id.rpartition("/")[2] for item in load_bank(bank)}
    assert grades(out) == {doc: {ids[item]: int(rates[doc, item]) for item in ids} for doc in texts}
    capsys.readouterr()
    measure = "RubricCover(rel=4)@20"
    assert (
        main(["leaderboard", str(out), str(tmp_path / "one.run"), "--bank", bank, "-m", measure, "--format", "json"])
        == 0
    )
    rows = {row["run_id"]: row["measures"] for row in json.loads(capsys.readouterr().out)["runs"]}
    assert rows["one"][measure]["mean"] == 0.5


@pytest.mark.parametrize("kind", ["seq2seq", "decoder"])
def test_a_dry_run_counts_the_calls_that_are_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    model = save_t5(tmp_path / kind) if kind == "seq2seq" else save_llama(tmp_path / kind)
    # Of 512 tokens a decoder keeps 100 for the reply, an encoder-decoder none: the chunks are of different lengths.
    texts = {"long": "The epidermis is the outer layer of the skin. " * 40, "short": "A leap year."}
    passages, bank = write_passages(tmp_path, **texts), write_items(tmp_path, "How long?")
    out = tmp_path / "o.jsonl"
    command = ["grade", passages, "--bank", bank, "--model", f"hf:{model}", "--max-tokens", "100", "-o", str(out)]
    # A model of random weights writes until it is cut, and is asked once.
    command += ["--retries", "0"]
    assert main([*command, "--dry-run"]) == 0
    header, row = capsys.readouterr().out.splitlines()
    planned = dict(zip(header.split("\t"), row.split("\t"), strict=True))
    assert main(command) == 1
    made = json.loads(Path(f"{out}.manifest.json").read_text())["calls"]["made"]
    assert int(planned["calls"]) == made > 2
