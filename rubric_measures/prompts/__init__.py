"""Prompt texts (TOML, with scale and citation); `parsers` reads their replies."""

from rubric_measures.prompts.delimiters import neutralise
from rubric_measures.prompts.library import (
    Prompt,
    list_text,
    load_prompt,
    load_prompt_file,
    prompt_names,
    scale_of_prompt,
)

__all__ = [
    "Prompt",
    "list_text",
    "load_prompt",
    "load_prompt_file",
    "neutralise",
    "prompt_names",
    "scale_of_prompt",
]
