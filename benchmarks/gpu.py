"""Grading with a GPU: grades a second of `grade`, with its cache and records, beside a bare loop over such prompts.

In this process (`hf:FOLDER`) the bare loop is the library alone, over batches tokenised before. Behind `transformers
serve` it is the openai client alone. Random weights of real geometries, tokens of a small vocabulary: speed carries
over, grades do not. What is measured begins when the weights are loaded. Without a GPU it runs, slowly.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import random
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import torch
import transformers

import rubric_measures
from benchmarks.hugging_face import save_t5
from rubric_measures.formats.banks import write_bank
from rubric_measures.models import Request, make_backend
from rubric_measures.models.hf import by_length, padded
from rubric_measures.models.openai import OpenAICompatible
from rubric_measures.records.models import GradedPassage, QueryPassages, write_graded
from rubric_measures.types.entities import RubricItem
from tests.example_records import bank_from_items
from tests.function_backend import FunctionBackend
from tests.hf_models import WORDS, save_tokenizer

ITEMS, A_QUERY = 10, 50
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
# Llama: width, inner width, layers, heads, heads of keys, vocabulary. 8b: Llama 3.
LLAMA = {"tiny": (64, 128, 2, 4, 2, 1024), "8b": (4096, 14336, 32, 32, 8, 128256)}
TEMPLATE = (
    "{% for message in messages %}<|{{ message['role'] }}|>{{ message['content'] }}<|end|>{% endfor %}"
    "{% if 'There are several' in messages[-1]['content'] %}<|list|>{% else %}<|assistant|>{% endif %}"
)


def save_llama(folder: Path, size: str) -> None:
    """A Llama whose next token depends on the last one alone: it writes `3`, or JSON of ten grades in 62 tokens."""
    tokenizer = save_tokenizer(folder, chat=True, limit=8192)
    # Newlines between the grades, a run of another length each: so every token has one that follows.
    runs = iter("\n" * count for count in range(5, 60))
    chain = []
    for number in range(1, ITEMS + 1):
        chain += [f'{"," if number > 1 else "{"}"{number}":', *itertools.islice(runs, 4), f'"3"{next(runs)}']
    chain.append(" }")
    tokenizer.add_special_tokens({"additional_special_tokens": ["<|list|>"]}, replace_extra_special_tokens=False)
    tokenizer.add_tokens([transformers.AddedToken(part, normalized=False) for part in chain])
    tokenizer.chat_template = TEMPLATE
    tokenizer.save_pretrained(folder)
    width, inner, layers, heads, key_heads, vocabulary = LLAMA[size]
    config = transformers.LlamaConfig(
        vocab_size=vocabulary, hidden_size=width, intermediate_size=inner, num_hidden_layers=layers,
        num_attention_heads=heads, num_key_value_heads=key_heads, max_position_embeddings=8192, pad_token_id=0,
        bos_token_id=None, eos_token_id=tokenizer.eos_token_id, dtype="bfloat16",
    )  # fmt: skip
    torch.manual_seed(0)
    torch.set_default_dtype(torch.bfloat16)
    with torch.device(DEVICE):
        network = transformers.LlamaForCausalLM(config)
    torch.set_default_dtype(torch.float32)
    with torch.no_grad():
        embedding, out = network.model.embed_tokens.weight.normal_(), network.lm_head.weight
        for layer in network.model.layers:
            layer.self_attn.o_proj.weight /= 100
            layer.mlp.down_proj.weight /= 100
        three, end, asked, *written = tokenizer.convert_tokens_to_ids(
            ["3", tokenizer.eos_token, "<|assistant|>", "<|list|>", *chain]
        )
        follows = [*itertools.pairwise([*written, end]), (asked, three), (three, end)]
        out[[after for _, after in follows]] = 0
        for before, after in follows:  # scores about 30 there; others reach 4
            out[after] += embedding[before] / embedding[before].norm() * 30 / width**0.5
    network.save_pretrained(folder)


def write_inputs(folder: Path, passages: int, words: int, seed: int) -> tuple[Path, Path]:
    """Passages of about so many words, 50 a query, and a bank of ten questions a query."""
    draw = random.Random(seed)

    def text(count: int) -> str:
        return " ".join(draw.choices(WORDS.split(), k=count))

    records, items = [], []
    for query in map(str, range((passages - 1) // A_QUERY + 1)):
        items += [RubricItem(f"{query}/{number}", query, f"{text(8)}?", "question") for number in range(ITEMS)]
        ids = range(int(query) * A_QUERY, min(passages, (int(query) + 1) * A_QUERY))
        texts = {f"{seed}-{place}": text(draw.randint(words // 2, words * 3 // 2)) for place in ids}
        records.append(QueryPassages(query, [GradedPassage(doc_id=doc, text=shown) for doc, shown in texts.items()]))
    write_bank(folder / "bank.jsonl", bank_from_items(items))
    write_graded(folder / "passages.jsonl.gz", records)
    return folder / "passages.jsonl.gz", folder / "bank.jsonl"


def ours(backend: Any, passages: int, words: int, items: Any, seed: int, busy: list[int]) -> float:
    """Grades a second of `grade`, its cache and its records on disk; notes how busy the GPU is meanwhile."""
    watch = ["nvidia-smi", "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits", "-lms", "200"]
    with tempfile.TemporaryDirectory() as name:
        paths = write_inputs(Path(name), passages, words, seed)
        asking = rubric_measures.Asking(items_per_call=items)
        watcher = subprocess.Popen(watch if DEVICE == "cuda" else ["true"], stdout=subprocess.PIPE, text=True)
        began = time.perf_counter()
        records = rubric_measures.grade(*paths, model=backend, asking=asking, output=Path(name, "out.jsonl.gz"))
        spent = time.perf_counter() - began
        watcher.terminate()
        busy += [int(line) for line in watcher.communicate()[0].split() if line.isdigit()]
        assert records.report.by_status == {"graded": passages * ITEMS} and not records.report.singly, records.report
        return passages * ITEMS / spent


def prompts_of(backend: Any, passages: int, words: int, items: Any, seed: int) -> list[Request]:
    """The requests of such a run."""
    reply = "3" if items == 1 else "{" + ",".join(f'"{number}": 3' for number in range(1, ITEMS + 1)) + "}"
    recorder = FunctionBackend(lambda request: reply, backend.model)
    with tempfile.TemporaryDirectory() as name:
        paths = write_inputs(Path(name), passages, words, seed)
        rubric_measures.grade(*paths, model=recorder, asking=rubric_measures.Asking(items_per_call=items))
    return recorder.seen[::-1]


def tokens_of(tokenizer: Any, request: Request) -> list[int]:
    """A prompt as tokens, as the library makes them."""
    if not tokenizer.chat_template:
        found: list[int] = tokenizer(request.messages[0].content)["input_ids"]
        return found
    turns = [{"role": message.role, "content": message.content} for message in request.messages]
    return list(tokenizer.apply_chat_template(turns, add_generation_prompt=True, return_dict=True)["input_ids"])


def bare(backend: Any, rows: Sequence[list[int]], limit: int, items: Any) -> float:
    """Calls a second of the library alone: `generate`, or for labels one forward pass (of a T5, the encoder's)."""
    network, is_t5 = backend.network, backend.source.config.is_encoder_decoder
    generation = {"max_new_tokens": limit, "do_sample": False, "pad_token_id": 0}
    began = time.perf_counter()
    with torch.inference_mode():
        for start in range(0, len(rows), backend.look_ahead):
            for batch in by_length(rows[start : start + backend.look_ahead], len, backend.batch_tokens):
                ids, mask = padded(batch, backend.device, left=not is_t5)
                if backend.mode == "generate" or items != 1:
                    network.generate(input_ids=ids, attention_mask=mask, **generation).tolist()
                elif is_t5:
                    network.get_encoder()(input_ids=ids, attention_mask=mask).last_hidden_state[:, 0, 0].tolist()
                else:
                    network(input_ids=ids, attention_mask=mask, use_cache=False, logits_to_keep=1).logits.tolist()
    return len(rows) / (time.perf_counter() - began)


async def client(url: str, model: str, requests: Sequence[Request], concurrency: int) -> float:
    """Calls a second of the openai client alone."""
    import openai

    settings: Any = {"api_key": "none", "base_url": url, "max_retries": 0, "timeout": 600}
    async with openai.AsyncOpenAI(http_client=openai.DefaultAioHttpClient(), **settings) as session:
        waiting = iter(requests)

        async def work() -> None:
            for request in waiting:
                messages: Any = [{"role": message.role, "content": message.content} for message in request.messages]
                limit: Any = request.options["max_tokens"]
                await session.chat.completions.create(model=model, messages=messages, max_tokens=limit, temperature=0)

        began = time.perf_counter()
        await asyncio.gather(*(work() for _ in range(concurrency)))
        return len(requests) / (time.perf_counter() - began)


@contextmanager
def serving(folder: Path, *arguments: str) -> Iterator[str]:
    """The base URL of `transformers serve`."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    serve = [sys.executable, "-m", "transformers.cli.transformers", "serve", str(folder), "--port", str(port)]
    process = subprocess.Popen([*serve, *arguments], stdout=subprocess.DEVNULL)
    try:
        while True:
            assert process.poll() is None
            with suppress(OSError), urlopen(f"http://127.0.0.1:{port}/health", timeout=2):
                break
            time.sleep(0.5)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.kill()
        process.wait()


def compare(backend: Any, url: str | None, items: Any, options: argparse.Namespace) -> None:
    """Prints a row: the best of some rounds in turns, each over other passages."""
    seeds, busy, rates = itertools.count(), [], []
    tokenizer = transformers.AutoTokenizer.from_pretrained(options.folder)
    size = options.passages, options.words, items
    ours(backend, max(2, options.passages // 20), options.words, items, next(seeds), [])  # warms up
    for _ in range(options.rounds):
        requests = prompts_of(backend, *size, next(seeds))
        rows = [tokens_of(tokenizer, request) for request in requests]
        if url:
            calls = asyncio.run(client(url, str(options.folder), requests, options.concurrency))
        else:
            calls = bare(backend, rows, int(str(requests[0].options["max_tokens"])), items)
        rates.append((ours(backend, *size, next(seeds), busy), calls * (1 if items == 1 else ITEMS)))
    mine, alone = (max(found) for found in zip(*rates, strict=True))
    mode = "served" if url else backend.mode
    used = f"{sum(busy) / len(busy):.0f} %" if busy else ""
    tokens = sum(map(len, rows)) / len(rows)
    print(
        f"| {options.folder.name} | {items} | {mode} | {tokens:.0f} | {mine:.1f} | {alone:.1f} | {alone / mine:.2f} "
        f"| {used} |",
        flush=True,
    )


def main() -> None:
    """Prints the rows of benchmarks/README.md, section "On a GPU"."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=["t5", "llama", "serve"])
    parser.add_argument("--size", default="small", help="of t5: small, base, large, xl; of others: tiny, 8b")
    parser.add_argument("--folder", type=Path, required=True, help="where the model is, or is made")
    parser.add_argument("--passages", type=int, default=4)
    parser.add_argument("--words", type=int, default=25, help="of a passage")
    parser.add_argument("--items", nargs="+", default=["1"], help="items a call: 1, all")
    parser.add_argument("--modes", nargs="+", default=["generate"], help="generate, labels")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--concurrency", type=int, default=128)
    parser.add_argument("--serve", type=str.split, default=[], help="--serve='…': further arguments of the server")
    options = parser.parse_args()
    if not (options.folder / "config.json").exists():
        with torch.device(DEVICE) if options.kind == "t5" else nullcontext():
            (save_t5 if options.kind == "t5" else save_llama)(options.folder, options.size)
    print(
        "| model | items a call | mode | tokens a prompt | grades/s | the loop alone | × | GPU busy |\n"
        + "|---" * 8
        + "|"
    )
    with serving(options.folder, *options.serve) if options.kind == "serve" else nullcontext() as url:
        for mode, items in itertools.product(options.modes, options.items):
            if url:
                backend: Any = OpenAICompatible(str(options.folder), url, concurrency=options.concurrency, timeout=600)
            else:
                backend = make_backend(f"hf:{options.folder}", mode=mode)
            compare(backend, url, 1 if items == "1" else items, options)


if __name__ == "__main__":
    main()
