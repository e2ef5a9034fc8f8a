"""How published programs read replies: what counts as no answer (EXAM++), and which ratings the workbench sees."""

from __future__ import annotations

import re

from rubric_measures.prompts._replies import clean_reply

__all__ = ["is_unanswerable", "workbench_rating"]

_EXPRESSIONS = (
    "unanswerable", "no", "no answer", "not enough information", "unknown", "it is not possible to tell",
    "it does not say", "no relevant information",
)  # fmt: skip
_UNANSWERABLE = re.compile(
    r"\W*(?:" + "|".join(_EXPRESSIONS) + r")\W*"
    # The longer expressions also open sentences: "It does not say in the text.", "No relevant information was found."
    r"|\W*(?:there is |the (?:context|passage|text) (?:has|contains|gives|provides) )?"
    r"(?:" + "|".join((*_EXPRESSIONS[-3:], "not enough information")) + r")"
    r"(?: (?:in|to|from|about|for|on|is|was|provided|given|available|here|why|what|how|who|when|where)\b[^\n]{0,120})?"
    r"\W*"
    r"|\W*(?:the|this) (?:question|query) is unanswerable\W*",
    re.IGNORECASE,
)
_ILL_FORMED = re.compile(r"\(?(?:[a-z]|[ivx]{1,5})[.)]+|\((?:[a-z]|[ivx]{1,5})\)\.?|\W*", re.IGNORECASE)


def is_unanswerable(text: str) -> bool:
    """Whether a reply says that there is no answer ("unknown", "It does not say.") or is none ("a.", "(iii)", "").

    Source: EXAM++ (Farzi & Dietz 2024, section 4.2) lists the expressions and the ill-formed answers.

    >>> is_unanswerable("No relevant information."), is_unanswerable("(iii)"), is_unanswerable("No evidence of frost")
    (True, True, False)
    """
    stripped = " ".join(clean_reply(text).split())
    return bool(_UNANSWERABLE.fullmatch(stripped) or _ILL_FORMED.fullmatch(stripped))


def workbench_rating(text: str, scale: tuple[int, int]) -> int:
    """The rating that the workbench's program reads: one digit of the scale between non-word characters."""
    digits = "|".join(str(grade) for grade in range(scale[0], scale[1] + 1))
    if match := re.fullmatch(rf"\W*({digits})\W*", text):
        return int(match[1])
    return 1 if is_unanswerable(text) else 0
