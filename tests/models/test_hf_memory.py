"""Decoders of many families against their plain forward pass: windows, padding and positions change no reply."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from rubric_measures.models import make_backend  # noqa: E402
from rubric_measures.models.base import Reply, Request  # noqa: E402
from rubric_measures.models.hf import DecoderBackend  # noqa: E402
from rubric_measures.types.scales import Message  # noqa: E402
from tests import hf_models  # noqa: E402

LABELS = tuple("012345")
PASSAGES = ["rivers carry water to the sea " * times for times in (3, 5, 8)]
QUESTIONS = [
    "Which?",
    "What is the outer layer of the skin, and how long is it named a leap year by the sea?",
    "A leap year has 366 days an ordinary one 365 " * 2,
    "Yes?",
]
WINDOWED = ("Cohere2", "GPTNeo", "Gemma3", "GptOss", "Mistral", "Phi3")


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def backend_of(folder: Path, **options: Any) -> DecoderBackend:
    backend = make_backend(f"hf:{folder}", label_mass=0.0, dtype="float32", device="cpu", **options)
    assert isinstance(backend, DecoderBackend)
    return backend


def requests(backend: DecoderBackend, **options: Any) -> list[Request]:
    """Each passage with each question; a passage's are a group."""
    settings = {"temperature": 0, "max_tokens": 6, **backend.options, **options}
    shown = [
        (f"g{group}", f"Context: {text}\nQuestion: {question}")
        for (group, text), question in itertools.product(enumerate(PASSAGES), QUESTIONS)
    ]
    return [Request(backend.model, (Message("user", text),), settings, LABELS, 0, group) for group, text in shown]


def answered(backend: DecoderBackend, asked: Sequence[Request]) -> list[Reply]:
    found = {request.key: reply for request, reply in backend.complete(iter(asked))}
    return [found[request.key] for request in asked]


def plainly(backend: DecoderBackend, request: Request) -> dict[str, float]:
    """The probability of each label by one forward pass over the bare prompt, without padding, mask or cache."""
    ids = backend._encoded(request.messages)
    with torch.inference_mode():
        first = backend.network(torch.tensor([ids])).logits[0, -1].float().softmax(-1)
    return {label: sum(float(first[path[0]]) for path in backend._spellings(label)) for label in request.labels}


@pytest.mark.parametrize(
    ("name", "window"),
    [(name, None) for name in hf_models.DECODERS]
    + [(name, 24) for name in hf_models.DECODERS if name.startswith(WINDOWED)],
)
def test_replies_are_those_of_the_plain_forward_pass(tmp_path: Path, name: str, window: int | None) -> None:
    # Windows of 24 tokens, prompts of 34 to 150: what the padding pushed out of the window changed labels.
    backend = backend_of(hf_models.save_decoder(tmp_path, name, window=window))
    asked = requests(backend)
    expected = [plainly(backend, request) for request in asked]
    found = answered(backend, asked)
    assert [reply.error for reply in found] == [""] * len(asked)
    assert [reply.text for reply in found] == [max(one, key=lambda label: one[label]) for one in expected]
    for reply, one in zip(found, expected, strict=True):
        shown = reply.raw["label_probabilities"]
        assert isinstance(shown, dict)
        assert shown == pytest.approx({label: one[label] for label in shown}, rel=1e-3, abs=1e-6)


@pytest.mark.parametrize(
    "name",
    ["MistralForCausalLM", "Gemma3ForCausalLM", "BartForCausalLM", "LlamaForCausalLM", "FalconH1ForCausalLM"],
)
def test_generated_replies_are_those_of_single_prompts(tmp_path: Path, name: str) -> None:
    window = None if name.startswith(("Bart", "Llama", "Falcon")) else 24
    backend = backend_of(hf_models.save_decoder(tmp_path, name, window=window), mode="generate")
    asked = requests(backend)
    alone = [answered(backend, [request])[0] for request in asked]
    assert [reply.text for reply in answered(backend, asked)] == [reply.text for reply in alone]
    for request, reply in zip(asked, alone, strict=True):
        ids = torch.tensor([backend._encoded(request.messages)])
        out = backend.network.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=6, do_sample=False)
        assert backend._text(out[0, ids.shape[1] :].tolist()).strip() == reply.text


def test_rows_with_other_positions_make_batches_of_their_own(tmp_path: Path) -> None:
    # longrope: above 64 tokens the factors of the positions are others, for all rows that are computed together.
    rope = {
        "rope_type": "longrope", "rope_theta": 10000.0, "short_factor": [1.0] * 4, "long_factor": [3.0] * 4,
        "original_max_position_embeddings": 64,
    }  # fmt: skip
    settings = {"rope_parameters": rope, "original_max_position_embeddings": 64}
    backend = backend_of(hf_models.save_decoder(tmp_path, "Phi3ForCausalLM", **settings))
    asked = requests(backend)
    lengths = [len(backend._encoded(request.messages)) for request in asked]
    assert min(lengths) < 64 < max(lengths)
    for request, reply in zip(asked, answered(backend, asked), strict=True):
        expected = plainly(backend, request)
        assert reply.text == max(expected, key=lambda label: expected[label])
