"""Prompt texts (TOML, with scale and citation) and the parsers of their replies."""

from rubric_measures.prompts._delimiters import neutralise
from rubric_measures.prompts._injection import looks_like_instruction
from rubric_measures.prompts._library import (
    Prompt,
    list_text,
    load_prompt,
    load_prompt_file,
    prompt_names,
)
from rubric_measures.prompts.parsers import Parsed, is_unanswerable

__all__ = [
    "Parsed",
    "Prompt",
    "is_unanswerable",
    "list_text",
    "load_prompt",
    "load_prompt_file",
    "looks_like_instruction",
    "neutralise",
    "prompt_names",
]
