"""Prompt texts (TOML, with scale and citation); `parsers` reads their replies."""

from typing import TYPE_CHECKING

from rubric_measures.base.extras import lazy_names
from rubric_measures.prompts._scales import scale_of_prompt

if TYPE_CHECKING:
    from rubric_measures.prompts._delimiters import neutralise
    from rubric_measures.prompts._library import Prompt, list_text, load_prompt, load_prompt_file, prompt_names
else:
    # Reading records asks for a scale, and for nothing of the prompts themselves.
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "rubric_measures.prompts._delimiters": ["neutralise"],
            "rubric_measures.prompts._library": [
                "Prompt",
                "list_text",
                "load_prompt",
                "load_prompt_file",
                "prompt_names",
            ],
        },
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
