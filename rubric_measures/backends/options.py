"""The settings of a kind of model: wrong ones are named, and none passes for a generation option of a request."""

from __future__ import annotations

import inspect
import re
from collections.abc import Collection, Iterable

from rubric_measures.backends.base import Backend
from rubric_measures.base.errors import InputError, UnknownNameError

__all__ = ["check_options", "refuse_settings"]

# What a request says by itself: as an option it would be sent in place of that, and the records would not know.
_SAID_ELSEWHERE = {
    "best_of": "--replicates",
    "echo": "nothing: replies come without their prompts",
    "extra_body": "each of its fields in an --option of its own",
    "max_completion_tokens": "--max-tokens",
    "max_new_tokens": "--max-tokens",
    "messages": "--prompt",
    "model": "--model",
    "n": "--replicates",
    "prompt": "--prompt",
    "stream": "nothing: replies come whole",
}
# Options that endpoints and models know, for names that are almost one of them; they may know others.
_KNOWN = frozenset((
    "adapter_id", "add_bos_token", "add_generation_prompt", "add_special_tokens", "allow_in_range", "allowed_token_ids",
    "audio", "auto_max_new_tokens", "bad_words", "ban_eos_token", "banned_strings", "banned_tokens", "bypass_eos",
    "cache_prompt", "cache_salt", "cfg_scale", "chat_template", "chat_template_kwargs", "citation_options",
    "context_length_exceeded_behavior", "continue_final_message", "custom_token_bans", "decoder_input_details",
    "details", "detokenize", "disable_reasoning", "do_sample", "documents", "dry_allowed_length", "dry_base",
    "dry_multiplier", "dry_penalty_last_n", "dry_sequence_breaker_ids", "dry_sequence_breakers", "dynamic_temperature",
    "dynatemp_exponent", "dynatemp_high", "dynatemp_low", "dynatemp_range", "early_stopping", "ebnf", "enable_thinking",
    "encoder_repetition_penalty", "epsilon_cutoff", "eta_cutoff", "format", "frequency_penalty",
    "frequency_penalty_range", "function_call", "functions", "genkey", "grammar", "grammar_retain_state",
    "grammar_string", "guidance_scale", "guided_choice", "guided_decoding_backend", "guided_grammar", "guided_json",
    "guided_regex", "guided_whitespace_pattern", "id_slot", "ignore_eos", "images", "include_reasoning",
    "include_stop_str_in_output", "include_usage", "json_schema", "keep_alive", "kv_transfer_params", "length_penalty",
    "logit_bias", "logit_filter", "logits_processors", "logprobs", "lora", "low_vram", "main_gpu", "max_context_length",
    "max_length", "max_output_tokens", "max_temp", "max_time", "max_tokens", "memory", "metadata", "min_keep",
    "min_length", "min_p", "min_temp", "min_tokens", "mirostat", "mirostat_eta", "mirostat_mode", "mirostat_tau",
    "mm_processor_kwargs", "modalities", "models", "n_discard", "n_keep", "n_predict", "n_probs", "negative_prompt",
    "no_repeat_ngram_size", "no_stop_trim", "nsigma", "num_batch", "num_beams", "num_ctx", "num_gpu", "num_keep",
    "num_predict", "num_return_sequences", "num_thread", "options", "parallel_tool_calls", "penalize_nl",
    "penalty_alpha", "penalty_range", "plugins", "post_sampling_probs", "prediction", "presence_penalty",
    "presence_penalty_range", "preset", "priority", "prompt_cache_key", "prompt_cache_retention", "prompt_logprobs",
    "prompt_mode", "prompt_truncate_len", "provider", "random_seed", "raw", "reasoning", "reasoning_budget",
    "reasoning_effort", "reasoning_format", "regex", "regex_pattern", "render_special", "rep_pen", "rep_pen_range",
    "rep_pen_slope", "repeat_last_n", "repeat_penalty", "repetition_decay", "repetition_penalty",
    "repetition_penalty_range", "repetition_range", "request_id", "response_fields", "response_format",
    "return_full_text", "return_token_ids", "return_tokens_as_token_ids", "route", "safe_prompt", "safety_identifier",
    "sampler_order", "sampler_seed", "samplers", "seed", "separate_reasoning", "service_tier", "skew",
    "skip_special_tokens", "smoothing_curve", "smoothing_factor", "spaces_between_special_tokens", "speculative_ngram",
    "stop", "stop_regex", "stop_sequence", "stop_sequences", "stop_token_ids", "store", "stream_options",
    "stream_reasoning", "structural_tag", "structured_outputs", "suffix", "system", "t_max_predict_ms", "temp",
    "temp_last", "temperature", "temperature_last", "template", "tfs", "tfs_z", "think", "thinking", "thinking_budget",
    "thinking_token_budget", "timings_per_token", "token_healing", "tool_choice", "tools", "top_a", "top_k",
    "top_logprobs", "top_n_sigma", "top_n_tokens", "top_p", "transforms", "trim_stop", "truncate",
    "truncate_prompt_tokens", "typ_p", "typical", "typical_p", "usage", "use_beam_search", "use_default_badwordsids",
    "user", "verbosity", "vllm_xargs", "watermark", "web_search_options", "xtc_probability", "xtc_threshold",
))  # fmt: skip
# Edits between two names that count as the same one, by length: among short ones many a real one is near another.
_SHORT, _LONG = 5, 8


def _settings_of(maker: type) -> set[str]:
    """The arguments with a default of a class of backends, those of the classes above it included."""
    return {
        name
        for one in maker.__mro__
        if "__init__" in vars(one)
        for name, parameter in inspect.signature(vars(one)["__init__"]).parameters.items()
        if parameter.default is not parameter.empty
    }


def check_options(model: str, maker: type, given: Iterable[str]) -> None:
    """Refuses settings that a class of backends does not have.

    Args:
        model: the model as the user wrote it.
        maker: the class; see `_settings_of`.
        given: the names that the user gave.

    Raises:
        UnknownNameError: one of them is no setting.
    """
    known = _settings_of(maker)
    for name in given:
        if name not in known:
            raise UnknownNameError("option", name, known, hint=f"(of the model {model!r})")


def _almost(name: str, known: str) -> bool:
    """Whether a name is a known one, or one slip away from it, or two slips where both are long.

    A slip is a character too many, too few, another one, or two in each other's place.
    """
    from rapidfuzz.distance import OSA

    shorter, longer = sorted((len(name), len(known)))
    slips = 2 if shorter >= _LONG else 1 if longer >= _SHORT else 0
    return OSA.distance(name, known, score_cutoff=slips) <= slips


def refuse_settings(backend: Backend, given: Collection[str]) -> None:
    """Refuses generation options that are settings of the model's backend, that a request says by itself, or misspelt.

    A request's option of such a name would stand in its key and in the record, and change nothing: the backend computes
    as it was made, and endpoints ignore in silence what they do not know. Names like no known one are let through.

    Args:
        backend: the backend, or a stand-in that holds it as `backend`.
        given: the names of the generation options.

    Raises:
        InputError: one of them is a setting, or no name.
        UnknownNameError: one of them is almost the name of another one.
    """
    for name in given:
        if name in _SAID_ELSEWHERE:
            raise InputError(f"--option {name}: is no generation option of a reply; say {_SAID_ELSEWHERE[name]}")
        if not re.fullmatch(r"[^\W\d][\w.-]*", name):
            raise InputError(f"--option {name!r}: is no name; expected NAME=VALUE without blanks")
        plain = name.lower().replace("-", "_")
        if name not in _KNOWN and any(_almost(plain, known) for known in _KNOWN):
            raise UnknownNameError("generation option", plain, _KNOWN, hint=f"(--option {name})")
    settings = _settings_of(type(getattr(backend, "backend", backend))) | set(backend.options)
    if wrong := sorted(settings.intersection(given)):
        raise InputError(
            f"--option {wrong[0]}: is a setting of the model, not of a reply; say --model-option {wrong[0]}=VALUE"
        )
