"""Prompt texts (TOML, with scale and citation); `parsers` reads their replies."""

from typing import TYPE_CHECKING

from rubric_measures.base.plugins import lazy_names

if TYPE_CHECKING:
    from rubric_measures.prompts.delimiters import neutralise
    from rubric_measures.prompts.entries import prompt_names, scale_of_prompt
    from rubric_measures.prompts.library import Prompt, list_text, load_prompt, load_prompt_file
else:
    _HOMES = {
        "rubric_measures.prompts.delimiters": ["neutralise"],
        "rubric_measures.prompts.entries": ["prompt_names", "scale_of_prompt"],
        "rubric_measures.prompts.library": ["Prompt", "list_text", "load_prompt", "load_prompt_file"],
    }
    __getattr__, __dir__ = lazy_names(__name__, _HOMES)

__all__ = [
    "Prompt",
    "list_text",
    "load_prompt",
    "load_prompt_file",
    "neutralise",
    "prompt_names",
    "scale_of_prompt",
]
