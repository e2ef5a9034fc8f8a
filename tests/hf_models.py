"""Tiny random models with tokenizers trained on the fly, saved to a folder: what the Hugging Face backends are tested
on."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

WORDS = """The epidermis is the outer layer of the skin. A leap year has 366 days, an ordinary one 365. Can the question
be answered based on the available context? choose one: 5: highly relevant 4: 3: 2: 1: 0: Question: Context: Answer:
Yes No user assistant system What is named? Rivers carry water to the sea; lakes keep it for a while."""

CHAT_TEMPLATE = (
    "{% for message in messages %}{% if message['role'] == 'system' and no_system is defined %}"
    "{{ raise_exception('no system') }}{% endif %}"
    "<|{{ message['role'] }}|>{{ message['content'] }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


def save_tokenizer(folder: Path, *, bert: bool = False, limit: int = 512, chat: bool = False) -> Any:
    """Trains a byte-level tokenizer (T5, Llama) or a WordPiece one with pairs (BERT), and saves it."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    if bert:
        special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
        raw = Tokenizer(models.WordPiece(unk_token="[UNK]"))
        raw.normalizer = normalizers.BertNormalizer()
        raw.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        raw.train_from_iterator([WORDS], trainers.WordPieceTrainer(vocab_size=200, special_tokens=special))
        raw.post_processor = processors.TemplateProcessing(
            single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
        )
        names = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    else:
        special = ["<pad>", "</s>", "<|user|>", "<|assistant|>", "<|system|>", "<|end|>"]
        raw = Tokenizer(models.BPE())
        raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        raw.decoder = decoders.ByteLevel()
        alphabet = pre_tokenizers.ByteLevel.alphabet()
        trainer = trainers.BpeTrainer(vocab_size=400, special_tokens=special, initial_alphabet=alphabet)
        raw.train_from_iterator([WORDS], trainer)
        if not chat:
            raw.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
        names = {"pad_token": "<pad>", "eos_token": "<|end|>" if chat else "</s>"}
        names |= {"additional_special_tokens": special[2:]} if chat else {}  # type: ignore[dict-item]
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=raw, model_max_length=limit, **names)
    if bert:
        tokenizer.model_input_names = ["input_ids", "token_type_ids", "attention_mask"]
    if chat:
        tokenizer.chat_template = CHAT_TEMPLATE
    tokenizer.save_pretrained(folder)
    return tokenizer


def save_unigram(folder: Path) -> Any:
    """A tokenizer of FLAN-T5's kind: it normalises (NFKC), and its control tokens are pieces of its vocabulary."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    special = ["<pad>", "</s>", "<unk>", "<extra_id_0>"]
    raw = Tokenizer(models.Unigram())
    invisible = normalizers.Replace("\u200b", "")
    raw.normalizer = normalizers.Sequence([normalizers.NFKC(), invisible])
    raw.pre_tokenizer = pre_tokenizers.Metaspace()
    raw.decoder = decoders.Metaspace()
    trainer = trainers.UnigramTrainer(vocab_size=120, special_tokens=special, unk_token="<unk>")
    raw.train_from_iterator([WORDS] * 3 + ["</s> <extra_id_0> < / s >"], trainer)
    raw.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    names = {"pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=raw, model_max_length=512, additional_special_tokens=special[3:], **names
    )
    tokenizer.save_pretrained(folder)
    return tokenizer


Taught = Mapping[str, str | tuple[str, ...]]


def save_t5(folder: Path, *, seed: int = 0, taught: Taught | None = None, unigram: bool = False) -> Path:
    """A T5 of two layers; `taught` maps prompts to the replies that it is trained to give (several: each as often)."""
    import torch
    from transformers import T5Config, T5ForConditionalGeneration

    tokenizer = save_unigram(folder) if unigram else save_tokenizer(folder)
    torch.manual_seed(seed)
    config = T5Config(
        vocab_size=len(tokenizer), d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, decoder_start_token_id=0,
        pad_token_id=0, eos_token_id=1, dropout_rate=0.0, initializer_factor=1.0,
    )  # fmt: skip
    network = T5ForConditionalGeneration(config)
    if taught:
        pairs = _pairs(taught)
        shown = tokenizer([prompt for prompt, _ in pairs], padding=True, return_tensors="pt")
        wanted = tokenizer([reply for _, reply in pairs], padding=True, return_tensors="pt")
        labels = wanted["input_ids"].masked_fill(wanted["attention_mask"] == 0, -100)
        _teach(network, input_ids=shown["input_ids"], attention_mask=shown["attention_mask"], labels=labels)
    network.save_pretrained(folder)
    return folder


def save_llama(folder: Path, *, chat: bool = True, seed: int = 0, taught: Taught | None = None) -> Path:
    """A Llama of two layers; `taught` maps prompts (in the chat template already) to replies."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    tokenizer = save_tokenizer(folder, chat=chat)
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=512, pad_token_id=0, bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id, initializer_range=0.2,
    )  # fmt: skip
    network = LlamaForCausalLM(config)
    if taught:
        pairs = _pairs(taught)
        texts = [prompt + reply + tokenizer.eos_token for prompt, reply in pairs]
        shown = tokenizer(texts, padding=True, padding_side="right", add_special_tokens=False, return_tensors="pt")
        labels = shown["input_ids"].masked_fill(shown["attention_mask"] == 0, -100)
        for row, (prompt, _) in enumerate(pairs):
            labels[row, : len(tokenizer(prompt, add_special_tokens=False)["input_ids"])] = -100
        _teach(network, input_ids=shown["input_ids"], attention_mask=shown["attention_mask"], labels=labels)
    network.save_pretrained(folder)
    return folder


def save_bert(folder: Path, *, seed: int = 0, positions: int = 64) -> Path:
    """A BERT of two layers with a span head."""
    import torch
    from transformers import BertConfig, BertForQuestionAnswering

    tokenizer = save_tokenizer(folder, bert=True, limit=positions)
    torch.manual_seed(seed)
    config = BertConfig(
        vocab_size=len(tokenizer), hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
        max_position_embeddings=positions, initializer_range=0.5,
    )  # fmt: skip
    BertForQuestionAnswering(config).save_pretrained(folder)
    return folder


def _pairs(taught: Taught) -> list[tuple[str, str]]:
    return [(prompt, reply) for prompt, said in taught.items() for reply in ([said] if isinstance(said, str) else said)]


def _teach(network: Any, steps: int = 150, **batch: Any) -> None:
    import torch

    network.train()
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-2)
    for _ in range(steps):
        optimizer.zero_grad()
        loss = network(**batch).loss
        loss.backward()
        optimizer.step()
        if loss.item() < 0.02:
            break
    network.eval()


# What a tiny decoder needs beside its vocabulary, by the model class; each looks back in its own way.
_SMALL = {
    "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
    "max_position_embeddings": 512, "pad_token_id": 0, "bos_token_id": None, "initializer_range": 0.4,
}  # fmt: skip
_GROUPED = {**_SMALL, "num_key_value_heads": 2, "head_dim": 8}
_EXPERTS = {"num_local_experts": 2, "num_experts_per_tok": 1}
_OLDER = {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 512, "initializer_range": 0.4}
DECODERS: Mapping[str, Mapping[str, Any]] = {
    "BloomForCausalLM": {"hidden_size": 32, "n_layer": 2, "n_head": 4, "initializer_range": 0.4},
    "Cohere2ForCausalLM": _GROUPED,
    "FalconH1ForCausalLM": {
        **_GROUPED, "mamba_d_ssm": 32, "mamba_n_heads": 4, "mamba_d_head": 8, "mamba_d_state": 4, "mamba_n_groups": 1,
        "mamba_chunk_size": 8,
    },
    "GPT2LMHeadModel": _OLDER,
    "GPTNeoForCausalLM": {
        **_SMALL, "num_layers": 2, "num_heads": 4, "attention_types": [[["global", "local"], 1]],
    },
    "Gemma3ForCausalLM": _GROUPED,
    "GptOssForCausalLM": {**_GROUPED, **_EXPERTS},
    "LlamaForCausalLM": _GROUPED,
    "MambaForCausalLM": {
        "hidden_size": 32, "state_size": 4, "num_hidden_layers": 2, "expand": 2, "pad_token_id": 0,
        "initializer_range": 0.4,
    },
    "MistralForCausalLM": _GROUPED,
    "Phi3ForCausalLM": {**_SMALL, "num_key_value_heads": 2},
    "BartForCausalLM": {
        "d_model": 32, "decoder_layers": 2, "decoder_attention_heads": 4, "decoder_ffn_dim": 64, "init_std": 0.4,
        "forced_eos_token_id": None,
        "max_position_embeddings": 512, "pad_token_id": 0,
    },
    "RobertaForCausalLM": {**_SMALL, "is_decoder": True},
}  # fmt: skip


def save_decoder(folder: Path, name: str, *, window: int | None = None, seed: int = 0, **settings: Any) -> Path:
    """A decoder of two layers of the class `name` (of `DECODERS`), with a window where one is given."""
    import torch
    import transformers

    tokenizer = save_tokenizer(folder, chat=True)
    kind = getattr(transformers, name)
    given = {**DECODERS[name], **settings, "vocab_size": len(tokenizer), "eos_token_id": tokenizer.eos_token_id}
    if window is not None:
        given["window_size" if name.startswith("GPTNeo") else "sliding_window"] = window
    torch.manual_seed(seed)
    kind(kind.config_class(**given)).save_pretrained(folder)
    return folder
