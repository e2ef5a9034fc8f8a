"""Graders without a model: words counted, replies from a file.

The embedded grader `lexical`: how many of an item's content words a passage states. A floor, not a grader to trust.

The backend `scripted:FILE`: a table of replies, for tests and teaching.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, get_args

import msgspec

from rubric_measures.base.errors import FormatError
from rubric_measures.base.files import iter_lines, path_name
from rubric_measures.base.json_text import decoded, parse_json
from rubric_measures.base.words import content_stems
from rubric_measures.models.base import Count, Reply, ReplyStatus, Request, check_options
from rubric_measures.types.entities import content_hash


@lru_cache(maxsize=8192)
def _item_words(text: str) -> tuple[frozenset[str], ...]:
    """The content words of an item: of its text, or, with an answer key, of its text and each answer."""
    question, *answers = text.split("\n")
    words = content_stems(question)
    return tuple(words | content_stems(answer) for answer in answers) or (words,)


def lexical_grade(item: str, passage: str) -> int:
    """The share of an item's content words that a passage states, as a grade.

        grade = ⌊5 · |W(item) ∩ W(passage)| / |W(item)|⌋

    W is the set of the stems of the words that are no stopwords; numbers count. So 5 means every content word, 4 at
    least 80 %, 3 at least 60 %, 2 at least 40 %, 1 at least 20 %, 0 less. Neither the order of the words nor their
    frequency (here or in a collection) matters. Lines of the item after the first are gold answers: the words of the
    item and of one answer are looked for, and the best answer counts.

    It measures word overlap and nothing else: a passage stuffed with keywords gets 5, a paraphrase 0. Use it as the
    floor that an LLM grader has to beat, to try out a pipeline, and in tests; not to conclude anything.

    Args:
        item: the question or key fact; gold answers on further lines.
        passage: the text to grade.

    Returns:
        0 to 5; 0 for an item without content words, or an empty passage.

    >>> lexical_grade("Outer layer of the skin?", "The epidermis is the outer layer of skin.")
    5
    """
    stated = content_stems(passage)
    return max(5 * len(words & stated) // len(words) if words else 0 for words in _item_words(item))


def lexical_support(statement: str, document: str) -> str:
    """How many of a statement's content words a document has, as a label of support.

    At least 80 % are `Full Support`, at least 60 % `Partial Support`, less `No Support`: the grades 4 and 3 of
    `lexical_grade`. A floor that a model has to beat: it sees neither negations of the document nor wrong numbers
    among right ones, and a paraphrase has no support.

    >>> lexical_support("Skin has an outer layer.", "The epidermis is the outer layer of skin.")
    'Full Support'
    """
    grade = lexical_grade(" ".join(statement.split()), document)
    return "Full Support" if grade >= 4 else "Partial Support" if grade == 3 else "No Support"


def lexical_verdict(query: str, documents: str, answer_a: str, answer_b: str) -> str:
    """The answer that covers more: `[[A]]`, `[[B]]`, or `[[C]]` when both cover equally much.

        coverage = |W(answer) ∩ W(query and documents)|,   without documents |W(answer)|

    W is as for `lexical_grade`. Repeating a word wins nothing, and the order in which the answers are shown does not
    matter; length does, as a longer answer has room for more words. A floor that a model has to beat.

    >>> lexical_verdict("Why is the sky blue?", "Air scatters blue light.", "It is blue.", "Air scatters light.")
    '[[B]]'
    """
    stated = [content_stems(answer) for answer in (answer_a, answer_b)]
    if documents.strip():
        wanted = content_stems(query + "\n" + documents)
        stated = [words & wanted for words in stated]
    first, second = map(len, stated)
    return "[[A]]" if first > second else "[[B]]" if second > first else "[[C]]"


_PROMPTS = ("LexicalCoverage", "LexicalSupport", "LexicalComparison")


class LexicalBackend:
    """`lexical`: words of the item in the passage; a floor, offline.

    It replies to `LexicalCoverage` (a digit), `LexicalSupport` and `LexicalComparison`.
    """

    # Another draw gives the same reply, and there are no generation options.
    deterministic = True
    embedded = True
    reads_prompts = _PROMPTS

    model = "lexical:1"  # the number changes when a grade would
    options: Mapping[str, object] = {}
    context_tokens: int | None = None

    def count_tokens(self, text: str) -> int:
        """Zero: nothing is shown to a model."""
        return 0

    def complete(self, requests: Iterable[Request]) -> Iterator[tuple[Request, Reply]]:
        """Grades each request; one that is of another prompt than its own fails."""
        for request in requests:
            try:
                fields = parse_json(request.messages[-1].content, lenient=True)
                if "answer_a" in fields:
                    texts = (str(fields[name]) for name in ("query", "documents", "answer_a", "answer_b"))
                    said = lexical_verdict(*texts)
                elif "statement" in fields:
                    said = lexical_support(str(fields["statement"]), str(fields["citation"]))
                else:
                    said = str(lexical_grade(str(fields["item"]), str(fields["passage"])))
            except (ValueError, KeyError, TypeError, IndexError):
                yield request, Reply(None, "failed", f"the lexical grader reads only {', '.join(_PROMPTS)}")
            else:
                yield request, Reply(said)


class ScriptedRule(msgspec.Struct, forbid_unknown_fields=True, dict=True):
    """One line of the table: which requests it answers, and the reply.

    A request must meet all conditions that are given; a rule without any answers everything that no other rule does.

    Attributes:
        reply: the text of the answer; None where there is none.
        contains: a text, or several, that must all occur in the messages.
        replicate: the replicate.
        status: of the answer; None takes `ok`, or without a text `failed`.
        error: why it is not `ok`.
        prompt_tokens: tokens shown.
        completion_tokens: tokens written.
        raw: what else came with it.
    """

    reply: str | None
    contains: str | tuple[str, ...] = ()
    replicate: int | None = None
    status: ReplyStatus | None = None
    error: str | None = None
    prompt_tokens: Count = 0
    completion_tokens: Count = 0
    raw: dict[str, Any] = {}

    @cached_property
    def answer(self) -> Reply:
        """The whole reply."""
        status = self.status or ("ok" if self.reply is not None else "failed")
        error = self.error if self.error is not None else "" if status == "ok" else "as the table says"
        return Reply(self.reply, status, error, self.prompt_tokens, self.completion_tokens, self.raw)

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """What must occur in the messages."""
        return (self.contains,) if isinstance(self.contains, str) else self.contains

    @property
    def identity(self) -> list[object]:
        """All that decides what the rule answers."""
        said = [self.answer.text, self.answer.status, self.answer.error]
        return ["", "", list(self.texts), None, self.replicate, said]

    def answers(self, request: Request, shown: str) -> bool:
        """Whether the rule answers the request; `shown` is the text of its messages."""
        return self.replicate in (None, request.replicate) and all(text in shown for text in self.texts)


class ScriptedBackend:
    """Answers from a table. Requests that no rule answers fail, with a message that says so.

    The first rule of the table whose conditions hold answers.

    Args:
        rules: the table.
        name: what the grader is called in the records; the hash of the table is added, so that the cache never
            answers for another table.
        context: how many tokens prompt and reply may have together; None for no limit. Tokens are words.
    """

    deterministic = True
    options: Mapping[str, object] = {}

    def __init__(self, rules: Sequence[ScriptedRule], name: str = "table", context: int | None = None) -> None:
        self._rules = rules
        self.context_tokens = context
        self.model = f"scripted:{name}#{content_hash([rule.identity for rule in rules])[:12]}"

    def count_tokens(self, text: str) -> int:
        """Whitespace-separated words."""
        return len(text.split())

    def complete(self, requests: Iterable[Request]) -> Iterator[tuple[Request, Reply]]:
        """Looks each request up."""
        for request in requests:
            yield request, self._reply(request)

    def _reply(self, request: Request) -> Reply:
        shown = "\n".join(message.content for message in request.messages)
        for rule in self._rules:
            if rule.answers(request, shown):
                return rule.answer
        return Reply(None, "failed", "the table of replies has no line for this request")


_LINES = msgspec.json.Decoder(ScriptedRule)


def make_scripted(file: str | os.PathLike[str], **options: Any) -> ScriptedBackend:
    """`scripted:FILE`: replies from a table, for teaching, tests and replays.

    A line of it is a JSON object with `reply` (text or null) and conditions.

    `{"contains": "leap year", "reply": "4"}`; `contains` may be a list. Further fields: `replicate`, `status`,
    `error`, `prompt_tokens`, `completion_tokens`, `raw`. The options are those of `ScriptedBackend`.

    Raises:
        InputError: the file cannot be opened.
        FormatError: a line is no such object.
    """
    name = path_name(file)
    check_options(f"scripted:{name}", ScriptedBackend, options)
    statuses = get_args(ReplyStatus)
    rules = [decoded(_LINES, line, path=name, line=number, choices=statuses) for number, line in iter_lines(name)]
    if not rules:
        raise FormatError("holds no replies", path=name)
    return ScriptedBackend(rules, **{"name": Path(name).name, **options})
