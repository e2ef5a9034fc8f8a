"""Hugging Face backends in CPU seconds: the encoder alone, labels, generation; a decoder; an extractive model.

Random weights of real geometries: speed carries over, grades do not. One thread, so that CPU seconds are comparable.
"""

from __future__ import annotations

import argparse
import functools
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
import transformers

from rubric_measures.models import make_backend
from rubric_measures.models.base import Backend, Request
from rubric_measures.models.hf import Seq2SeqBackend, by_length, padded
from rubric_measures.types.entities import canonical_json
from rubric_measures.types.scales import Message
from tests.hf_models import WORDS, save_tokenizer

LABELS = tuple("012345")
VOCABULARY = 32128
# FLAN-T5 by its published geometry: d_model, d_ff, layers of encoder and of decoder, heads.
T5 = {
    "small": (512, 1024, 8, 6),
    "base": (768, 2048, 12, 12),
    "large": (1024, 2816, 24, 16),
    "xl": (2048, 5120, 24, 32),
}


def cpu_seconds(work: Callable[[], object]) -> float:
    """CPU time of this process for one call."""
    start = time.process_time()
    work()
    return time.process_time() - start


def text_of(tokenizer: Any, tokens: int, draw: random.Random) -> str:
    """Random words that make about so many tokens."""
    words: list[str] = []
    while len(tokenizer(" ".join(words))["input_ids"]) < tokens:
        words += draw.choices(WORDS.split(), k=max(1, tokens // 8))
    return tokenizer.decode(tokenizer(" ".join(words), add_special_tokens=False)["input_ids"][:tokens])


def save_t5(folder: Path, size: str) -> None:
    """The geometry of a FLAN-T5, with an output layer that makes it write one label and the end token."""
    tokenizer = save_tokenizer(folder)
    torch.manual_seed(0)
    width, inner, layers, heads = T5[size]
    config = transformers.T5Config(
        vocab_size=VOCABULARY, d_model=width, d_kv=64, d_ff=inner, num_layers=layers, num_heads=heads,
        feed_forward_proj="gated-gelu", tie_word_embeddings=False, decoder_start_token_id=0, pad_token_id=0,
        eos_token_id=1, dropout_rate=0.0,
    )  # fmt: skip
    network = transformers.T5ForConditionalGeneration(config).eval()
    label_ids = [tokenizer(label)["input_ids"][0] for label in LABELS]
    with torch.no_grad():
        # Little is added to what a decoder's last token is, so that it says what follows: a label, then the end.
        for name, weight in network.decoder.named_parameters():
            if name.endswith((".o.weight", ".wo.weight")):
                weight /= 100
        # FLAN-T5 has an output layer of its own; the library ties it to the embedding until a file holds both.
        shown = network.shared.weight.detach()
        rows = torch.randn_like(shown) * width**-0.5
        said = shown / shown.norm(dim=1, keepdim=True) * 30 / width**0.5
        rows[label_ids] = said[0] * torch.linspace(0.9, 1, len(LABELS))[:, None]
        rows[1] = said[label_ids].sum(0)
        network.lm_head.weight = torch.nn.Parameter(rows)
    network.save_pretrained(folder)


def requests_of(backend: Backend, prompts: Sequence[str]) -> list[Request]:
    """Rating requests."""
    options = {"temperature": 0, "max_tokens": 8, **backend.options}
    return [Request(backend.model, (Message("user", prompt),), options, LABELS) for prompt in prompts]


def seq2seq(folder: Path, count: int, size: str, rounds: int) -> None:
    """Labels and generation against the encoder alone, over the same batches: in turns, so that load hits all alike."""
    save_t5(folder, size)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    draw = random.Random(2)
    prompts = [text_of(tokenizer, draw.randint(250, 350), draw) for _ in range(count)]
    labels = make_backend(f"hf:{folder}", mode="labels", dtype="float32")
    assert isinstance(labels, Seq2SeqBackend)
    network = labels.network

    def encode() -> None:
        rows = [labels.encode(prompt, special=True) for prompt in prompts]
        with torch.inference_mode():
            for batch in by_length(rows, len, labels.batch_tokens):
                ids, mask = padded(batch, "cpu", left=False)
                network.get_encoder()(input_ids=ids, attention_mask=mask)

    def library(shown: Sequence[str]) -> None:
        for prompt in shown:
            ids = tokenizer(prompt, return_tensors="pt")["input_ids"]
            network.generate(input_ids=ids, max_new_tokens=8, do_sample=False)

    replies = list(labels.complete(requests_of(labels, prompts[:16])))  # also warms up
    modes = [(str(reply.raw["mode"]), reply.text) for _, reply in replies]
    print(f"replies of the first 16 prompts: {sorted(set(modes))}")
    few = prompts[: max(1, count // 10)]
    generate = make_backend(f"hf:{folder}", mode="generate", dtype="float32")
    list(generate.complete(requests_of(generate, prompts[:2])))

    def run(backend: Backend) -> None:
        list(backend.complete(requests_of(backend, prompts)))

    ways: dict[str, Callable[[], object]] = {
        "encoder alone": encode,
        "mode labels": functools.partial(run, labels),
        "mode generate": functools.partial(run, generate),
    }
    spent: dict[str, list[float]] = {name: [] for name in ways}
    for name, way in [*ways.items()] * rounds:
        spent[name].append(cpu_seconds(way))
    alone = spent["encoder alone"]
    for name, found in spent.items():
        ratio = statistics.median(one / other for one, other in zip(found, alone, strict=True))
        shortest = min(found) / min(alone)
        print(f"{name:30s} {min(found):7.1f} s   {shortest:.2f} x the encoder (median of {rounds} rounds {ratio:.2f})")
    one_by_one = cpu_seconds(lambda: library(few)) * count / len(few)
    print(f"library, one prompt at a time  {one_by_one:7.1f} s   {one_by_one / min(alone):.2f} x (from {len(few)})")


def decoder(folder: Path, prompts: int) -> None:
    """Prompts of about 299 tokens, a label each."""
    tokenizer = save_tokenizer(folder, chat=True)
    torch.manual_seed(0)
    geometry: dict[str, Any] = {
        "vocab_size": VOCABULARY, "hidden_size": 576, "intermediate_size": 1536, "num_hidden_layers": 12,
        "num_attention_heads": 9, "num_key_value_heads": 3, "max_position_embeddings": 2048, "pad_token_id": 0,
        "bos_token_id": None, "eos_token_id": tokenizer.eos_token_id,
    }  # fmt: skip
    transformers.LlamaForCausalLM(transformers.LlamaConfig(**geometry)).save_pretrained(folder)
    backend = make_backend(f"hf:{folder}", dtype="float32", label_mass=0.0)
    draw = random.Random(3)
    requests = requests_of(backend, [text_of(tokenizer, 296, draw) for _ in range(prompts)])
    list(backend.complete(requests[:2]))
    spent = cpu_seconds(lambda: list(backend.complete(requests)))
    print(f"decoder, {prompts} prompts                {spent:7.1f} s")


def extractive(folder: Path, count: int) -> None:
    """The geometry of BERT-base: one question of 10 tokens about each passage of 250 to 350."""
    save_tokenizer(folder, bert=True)
    torch.manual_seed(0)
    config = transformers.BertConfig(vocab_size=VOCABULARY, max_position_embeddings=512)
    transformers.BertForQuestionAnswering(config).save_pretrained(folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    backend = make_backend(f"hf:{folder}", dtype="float32")
    draw = random.Random(4)
    contents = [
        {"context": text_of(tokenizer, draw.randint(250, 350), draw), "question": text_of(tokenizer, 10, draw)}
        for _ in range(count)
    ]
    requests = [
        Request(backend.model, (Message("user", canonical_json(content)),), {**backend.options}, (), 0, "")
        for content in contents
    ]
    list(backend.complete(requests[:2]))
    spent = cpu_seconds(lambda: list(backend.complete(requests)))
    print(f"extractive, {count} questions           {spent:7.1f} s")


def dtypes() -> None:
    """One matrix product of the model's size in both dtypes: whether this processor computes in bfloat16."""
    found = {}
    for dtype in (torch.float32, torch.bfloat16):
        left, right = torch.randn(1024, 512).to(dtype), torch.randn(512, 1024).to(dtype)
        _ = left @ right
        found[dtype] = cpu_seconds(lambda left=left, right=right: [left @ right for _ in range(4)])
    ratio = found[torch.bfloat16] / found[torch.float32]
    print(f"a product in bfloat16 takes {ratio:.1f} x the CPU time of one in float32")


def main() -> None:
    """Prints the figures of benchmarks/README.md, section "Hugging Face backends"."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--prompts", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3, help="of the sequence-to-sequence part; the shortest counts")
    parser.add_argument("--size", choices=list(T5), default="small", help="the FLAN-T5 whose geometry is measured")
    parser.add_argument("--only", choices=["seq2seq", "decoder", "extractive", "dtypes"], help="one part")
    options = parser.parse_args()
    torch.set_num_threads(1)
    parts: dict[str, Callable[[Path], None]] = {
        "seq2seq": lambda folder: seq2seq(folder, options.prompts, options.size, options.rounds),
        "decoder": lambda folder: decoder(folder, options.prompts),
        "extractive": lambda folder: extractive(folder, options.prompts),
        "dtypes": lambda folder: dtypes(),
    }
    for name, part in parts.items():
        if options.only in (None, name):
            with tempfile.TemporaryDirectory() as folder:
                part(Path(folder))


if __name__ == "__main__":
    main()
