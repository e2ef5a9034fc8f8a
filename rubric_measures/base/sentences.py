"""Where sentences end: by marks, white space and a list of abbreviations, without a model."""

from __future__ import annotations

import re
from collections.abc import Iterator

__all__ = ["sentence_ends"]

# What closes a quotation or bracket belongs to the sentence that ends before it.
_CLOSING = "\"'”’)\\]»」』】》〉）"
# A sentence ends at . ! ? … before white space; at the marks of scripts that put none behind them, or not always
# (Chinese and Japanese, Hindi, Urdu and Arabic, Armenian, Ethiopic, Burmese, Khmer); or at a blank line. Nothing of a
# run of marks is looked at twice: models that loop write many thousands of them.
_SENTENCE_END = re.compile(
    rf"(?<![.!?…])[.!?…]++[{_CLOSING}]*+(?=\s)"
    rf"|[。！？｡।॥؟۔։።፧။៕។][.!?…。！？]*+[{_CLOSING}]*+"
    r"|\n\s*(?=\n)"
)
_NEXT_CHARACTER = re.compile(r"\S")
# After these a stop ends no sentence, whatever follows: a passage that goes on for one sentence more costs little, one
# that ends in the middle of a name costs the name. Initials (J. Smith, U.S. Navy), numbers of a list, and the usual.
_ABBREVIATION = re.compile(
    r"(?:^|[\s(\[])(?:(?:[A-Z]\.)*[A-Z]|Dr|Mr|Mrs|Ms|Prof|St|Jr|Sr|Gen|Col|Capt|Lt|Sen|Rep|Gov|Inc|Ltd|Co|Corp|Mt|Rev"
    r"|et al|vs|cf|ca|a\.m|p\.m|e\.g|i\.e|Fig|fig|Eq|Sec|No|Vol|pp|approx)\.\Z"
    r"|^\s*\d{1,3}\.\Z",
    re.MULTILINE,
)
_LOOK_BACK = 12


def sentence_ends(text: str) -> Iterator[int]:
    """Where the sentences of a text end, in order; the last place is the end of the text.

    A sentence ends at `.` `!` `?` or `…` before white space, at the marks of other scripts (`。` `।` `؟` `۔` …), and at
    a blank line; not before a small letter, nor after initials, common abbreviations and the numbers of a list. Time is
    linear in the length of the text.

    >>> list(sentence_ends("Dr. Who came. He left."))
    [13, 22]
    """
    for match in _SENTENCE_END.finditer(text):
        after = _NEXT_CHARACTER.search(text, match.end())
        if not match[0].isspace() and after is not None and after[0].islower():
            continue
        if match[0] == "." and _ABBREVIATION.search(text, max(0, match.start() - _LOOK_BACK), match.end()):
            continue
        yield match.end()
    yield len(text)
