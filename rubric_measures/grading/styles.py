"""How a prompt makes grades of replies; answers matched with a key.

Whether an extracted answer matches a gold answer, by its words or as a model sees it; what grade that makes.

How a prompt shows passages and items: the messages of a call, made from texts and settings alone.

Grading styles: self-rating, extraction, extraction + verification, direct labels, label lists; one job each.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from rubric_measures.base.errors import InputError
from rubric_measures.base.words import stem
from rubric_measures.grading.asking import (
    BY_RULE,
    OF_LIST,
    Ask,
    Asker,
    Asking,
    Fit,
    Outcome,
    ReadReply,
    Unit,
    as_nuggetizer,
    best_answer,
    combine_replicates,
    fit_passage,
    numbered,
    prompt_of_several,
    prompt_with_reason,
)
from rubric_measures.measures.grades import DIRECT_ITEM
from rubric_measures.models.base import Backend, Reply, Request
from rubric_measures.models.running import Job
from rubric_measures.prompts.library import Frame, Prompt, list_text, load_prompt
from rubric_measures.prompts.parsers import is_unanswerable
from rubric_measures.types.entities import RubricItem
from rubric_measures.types.scales import Message

# NLTK's list of English stopwords; its own package holds none, but downloads it.
_STOPWORDS = frozenset(Path(__file__).with_name("stopwords.txt").read_text(encoding="utf-8").split())
_TRUE = frozenset({"true", "yes", "correct"})
_FALSE = frozenset({"false", "no", "incorrect", "wrong"})
_WORD = re.compile(r"\w+(?:['’]\w+)*")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_DOT = re.compile(r"(?<!\d)\.|\.(?!\d)")


def _folded(text: str) -> str:
    return unicodedata.normalize("NFKC", text).lower().replace("’", "'")


@lru_cache(maxsize=1 << 14)
def _normal(text: str) -> str:
    """Lower case, without stopwords and punctuation, stemmed; a text of stopwords only keeps them."""
    words = _WORD.findall(_folded(text))
    stems = [
        stem(word.removesuffix("'s").replace("'", ""))
        for word in words
        if word not in _STOPWORDS and word.removesuffix("'s") not in _STOPWORDS
    ]
    return " ".join(stems) or " ".join(words) or text.strip().lower()


def matches_gold(answer: str, gold: str, *, compat: str = "") -> bool:
    """Whether an answer says what a gold answer says.

    Both are lower-cased, freed of stopwords and stemmed; they match when the edit distance (Levenshtein, characters)
    is less than 20 % of the longer one's length. Texts that differ in dots ("U.S.") and capitals only are equal (ours).

    Args:
        answer: the extracted answer.
        gold: the gold answer.
        compat: `workbench`: a similarity of 2 · matches / (total length) above 80 % instead, and gold answers "true"
            and "false" also accept yes, correct / no, incorrect, wrong, as the workbench's program has it.

    Source: EXAM++ (Farzi and Dietz 2024), section 4.2.1; the Rubric workbench's program.

    >>> matches_gold("The epidermis.", "epidermis"), matches_gold("rising", "rise"), matches_gold("dermis", "epidermis")
    (True, True, False)
    """
    from rapidfuzz.distance import Indel, Levenshtein

    if compat == "workbench":
        left, right = _normal(answer), _normal(gold)
        word = re.sub(r"[^\w\s]", "", answer).strip().lower()
        for accepted in (_TRUE, _FALSE):
            if gold.strip().lower() in ("true", "false") and gold.strip().lower() in accepted:
                return word in accepted
        total = len(left) + len(right)
        return left == right or 10 * (total - Indel.distance(left, right)) > 8 * total
    undotted = [_DOT.sub("", _folded(text)).strip() for text in (answer, gold)]
    if undotted[0] and undotted[0] == undotted[1]:
        return True
    left, right = (_normal(_THOUSANDS.sub("", text)) for text in (answer, gold))
    longer = max(len(left), len(right))
    return left == right or 5 * Levenshtein.distance(left, right) < longer


def matches_any(answer: str, gold_answers: Iterable[str], *, compat: str = "") -> bool:
    """Whether an answer matches one of the gold answers; an unanswerable expression matches none of them.

    A gold answer that is such an expression itself ("no") is matched by it.
    """
    golds = tuple(gold_answers)
    if is_unanswerable(answer) and not any(is_unanswerable(gold) for gold in golds):
        return False
    return any(matches_gold(answer, gold, compat=compat) for gold in golds)


class Verifier:
    """Checks answers that a prompt extracted against the gold answers of their items.

    grade 1 when any gold answer matches, else 0; an unanswerable expression is 0. With a prompt that names another one
    to `verify`, the model is asked about each gold answer; else words are matched.

    Args:
        backend: the model.
        prompt: the prompt that extracted the answers.
        settings: the settings.

    Source: EXAM++, Farzi and Dietz, LLM4Eval 2024, section 4.2.
    """

    def __init__(self, backend: Backend, prompt: Prompt, settings: Asking) -> None:
        self._compat = settings.compat
        self._asker = Asker(backend, load_prompt(prompt.verify), settings) if prompt.verify else None

    def verified(
        self, group: str, items: Sequence[RubricItem], replicates: Sequence[int], answers: Sequence[ReadReply]
    ) -> Generator[Sequence[Request], Sequence[Reply], list[ReadReply]]:
        """The answers with grades as their values.

        An answer that was cut stays `truncated`, whatever its grade. A check that does not fit the model is not made.

        Args:
            group: of the requests.
            items: for each answer, what it is an answer to.
            replicates: for each answer, which draw it is.
            answers: the extracted answers.
        """
        if self._asker is None:
            return [
                answer
                if answer.value is None
                else answer._replace(value=int(matches_any(answer.value, item.gold_answers, compat=self._compat)))
                for item, answer in zip(items, answers, strict=True)
            ]
        places = [
            (place, gold)
            for place, (item, answer) in enumerate(zip(items, answers, strict=True))
            if answer.value is not None and not is_unanswerable(answer.value)
            for gold in dict.fromkeys(item.gold_answers)
        ]
        asks = []
        for place, gold in places:
            fields = {"question": items[place].text, "correct_answer": gold, "answer": answers[place].value}
            asks.append(Ask(self._asker.prompt.render(**fields), replicates[place]))
        found = yield from self._asker.ask_what_fits(asks, group, "the check of the extracted answer: ")
        checks = dict(zip(places, found, strict=True))
        return [
            _checked(answer, {gold: checks[place, gold] for gold in item.gold_answers if (place, gold) in checks})
            for place, (item, answer) in enumerate(zip(items, answers, strict=True))
        ]


def _checked(answer: ReadReply, checks: dict[str, ReadReply]) -> ReadReply:
    """An extracted answer with the grade of its checks; their replies are kept."""
    if answer.value is None:
        return answer
    if not checks:
        return answer._replace(value=0)
    best = best_answer(list(checks.values()), 1, "checks")
    made = answer._replace(
        value=best.value,
        retries=answer.retries + best.retries,
        checks=tuple((gold, check.text) for gold, check in checks.items()),
        # What the best of several checks is likely to be, nobody says.
        distribution=best.distribution if len(checks) == 1 else None,
    )
    if answer.status == "graded" or best.value is None:
        return made._replace(status=best.status, note=best.note)
    return made


_PARSERS = ("rating", "yes_no", "label", "phrase", "label_list", "aspects", "text")
_TARGETS = ("question", "nugget", "support", "direct", "answer", "any")
# What a label of a passage as a whole is about.
_PASSAGE = RubricItem(DIRECT_ITEM, "", "")
NO_DOCUMENTS = "(no documents are shown)"
_PASSAGE_FIELDS = ("context", "passage", "document", "answer", "citation")
_ITEM_FIELDS = ("question", "nugget", "statement", "item", "nuggets", "nuggets_length")
# One reply of these parsers grades several items.
_OF_SEVERAL = ("label_list", "aspects")


class _Question(NamedTuple):
    """A question: some items with a piece of the passage, for a replicate."""

    part: Unit
    piece: str
    replicate: int


class Style:
    """One prompt put to one model: cuts the items of a passage into units of work, and says how a unit is done.

    What it shows follows from its prompt and settings, and from what a unit says, alone.

    Args:
        backend: the model.
        name: the published name of the prompt, or its file.
        settings: the settings.

    Raises:
        UnknownNameError: there is no such prompt.
        InputError: the prompt does not grade passages, or the backend cannot use it.

    Attributes:
        prompt: the prompt.
        asker: puts it to the model.
        shows_query: whether the text of the query is shown.
        shows_documents: whether documents are shown beside an answer.
        per_call: how many items a call lists at most; None where it is about one, or a passage.
        together: what asks about several items in words that are for one; None where nothing does.
        direct: it labels passages, without items.
        graded: its outcomes are grades (informational extraction makes none).
        item_kinds: the kinds of items that it can show.
        of_pairs: it judges sentences of answers, each by the documents that it cites.
    """

    def __init__(self, backend: Backend, name: str, settings: Asking) -> None:
        self.prompt = prompt = load_prompt(name)
        if (
            prompt.task not in ("grade", "extract", "verify")
            or prompt.target not in _TARGETS
            or prompt.parser not in _PARSERS
            or "correct_answer" in prompt.fields
        ):
            raise InputError(f"prompt {name} does not grade passages")
        if prompt.format == "json" and not getattr(backend, "reads_prompts", ()):
            raise InputError(f"prompt {name} is only for models that are shown its fields, as the lexical grader is")
        if settings.compat == "nuggetizer" and prompt.parser != "label_list":
            text = f"the nuggetizer's program reads lists of labels, and prompt {name} asks for none"
            raise InputError(text, settings=("compat",))
        self.settings = settings
        self.asker = Asker(backend, prompt, settings)
        self.direct = prompt.target == "direct" or (prompt.target == "answer" and prompt.parser != "aspects")
        self.graded = prompt.task != "extract"
        # Sentences of answers, each with the documents that it cites, and not all items with all passages.
        self.of_pairs = prompt.target == "support"
        kinds = {"any": ("question", "nugget"), "answer": ("question",), "support": ("nugget",)}
        self.item_kinds: tuple[str, ...] = kinds.get(prompt.target, (prompt.target,))
        self.shows_query = "query" in prompt.fields or "query_title" in prompt.fields
        self.shows_documents = "documents" in prompt.fields
        self._asked = prompt_with_reason(prompt) if settings.explain else prompt
        is_list = prompt.parser == "label_list"
        most = settings.items_per_call or (OF_LIST if is_list else 1)
        self.per_call = sys.maxsize if most == "all" else most if is_list or most > 1 else None
        # An item that is left alone is asked about in the prompt's own words.
        is_several = self.per_call is not None and not is_list
        self.together = prompt_of_several(prompt, settings) if is_several else None
        self._open_fields = [name for name in prompt.fields if name in _ITEM_FIELDS]
        # A passage is shown with each of its items, and its chunks with each replicate.
        self._frame = lru_cache(maxsize=8)(self._make_frame)
        # Every item is asked about by itself and once with the whole passage, and the reply is its grade.
        self._simple = (
            self.graded
            and not self.direct
            and prompt.task != "verify"
            and prompt.parser not in _OF_SEVERAL
            and settings.replicates == 1
            and self.together is None
            and self.asker.limit is None
        )
        self._verifier = Verifier(backend, prompt, settings) if prompt.task == "verify" else None

    def messages(self, unit: Unit, text: str, items: Sequence[RubricItem]) -> tuple[Message, ...]:
        """The messages about a passage's text, or a piece of it, with some items."""
        is_several = self.together is not None and len(items) > 1
        if self.prompt.parser == "label_list":
            listed = list_text((item.text for item in items), self.prompt.lists)
            values = {"nuggets": listed, "nuggets_length": str(len(items))}
        else:
            asked = numbered(items) if is_several else items[0].text
            values = {"question": asked, "nugget": asked, "statement": asked}
            if "item" in self._open_fields:
                values["item"] = "\n".join(" ".join(line.split()) for line in (asked, *items[0].gold_answers))
        return self._frame(unit.query_id, unit.query_text, text, is_several).messages(values)

    def _make_frame(self, query_id: str, query_text: str, text: str, is_several: bool) -> Frame:
        """The prompt about a passage, its items left open."""
        values: dict[str, object] = dict.fromkeys(_PASSAGE_FIELDS, text)
        values |= {"query": query_text, "query_title": query_text}
        values["documents"] = (self.settings.document_texts or {}).get(query_id) or NO_DOCUMENTS
        asked = (self.together if is_several else None) or self._asked
        return asked.frame({name: one for name, one in values.items() if name in asked.fields}, self._open_fields)

    def at_most(self, items: Iterable[RubricItem], shown: int, written: int) -> tuple[int, int]:
        """The tokens of questions with all that may follow, see `Asker.at_most`; each item of a call asked singly, too.

        A call about one item shows and writes less than the one about several.
        """
        most = 0
        if self.together is not None:
            of_queries = Counter(item.query_id for item in items)
            most = min(self.per_call or 1, max(of_queries.values(), default=0))
        return self.asker.at_most(shown * (1 + most), written * (1 + most))

    def items_of(self, items: Sequence[RubricItem]) -> list[RubricItem]:
        """The items that this style grades: those of its kind, and with a key where it checks one; or one for all.

        A prompt that grades aspects of an answer takes the items whose texts are the names of its aspects.
        """
        if self.direct:
            return [_PASSAGE]
        return [
            item
            for item in items
            if item.kind in self.item_kinds
            and (self.prompt.task != "verify" or item.gold_answers)
            and (self.prompt.parser != "aspects" or item.text in self.prompt.labels)
        ]

    def units(self, unit: Unit) -> Iterator[Unit]:
        """The units of one passage with all items to grade: the passage as a whole, or batches for a label list."""
        size = self.per_call or len(unit.items) or 1
        for start in range(0, len(unit.items), size):
            yield unit._replace(items=unit.items[start : start + size])

    def job(self, unit: Unit) -> Job[list[Outcome]]:
        """The work of one unit, as a generator for a runner; returns an outcome for each of its items.

        Pairs without a text fail, as nobody can judge them.
        """
        if self.of_pairs:
            document = "" if unit.text.strip() else f"there is no text of document {unit.doc_id}"
            why = {one.item_id: document or "the sentence has no text" * (not one.text.strip()) for one in unit.items}
            if lost := [Outcome(item_id, None, "failed", note=note) for item_id, note in why.items() if note]:
                left = tuple(item for item in unit.items if not why[item.item_id])
                return [*lost, *((yield from self.job(unit._replace(items=left))) if left else ())]
        if self.graded and not unit.text.strip():
            # No words cover nothing; nobody has to be asked.
            lowest = self.prompt.scale[0] if self.prompt.scale else 0
            rule = f" {BY_RULE}" if self.settings.compat == "nuggetizer" else ""
            return [Outcome(item.item_id, lowest, note=f"an empty text, not asked{rule}") for item in unit.items]
        group = f"{unit.query_id}\t{unit.doc_id}"
        if self._simple:
            # A night of grading consists of this, and so does its repetition from the cache.
            asks = [Ask(self.messages(unit, unit.text, (item,))) for item in unit.items]
            single = zip(unit.items, (yield from self.asker.ask(asks, group)), strict=True)
            return [combine_replicates(item.item_id, (answer,), {}) for item, answer in single]
        parts = [(part, self._fitted(part)) for part in self._shown_together(unit)]
        replicates = range(self.settings.replicates)
        asked = [
            _Question(part, piece, replicate) for part, fit in parts for replicate in replicates for piece in fit.pieces
        ]
        asks = [
            Ask(self.messages(part, piece, part.items), replicate, self._count(part))
            for part, piece, replicate in asked
        ]
        answers = yield from self.asker.ask(asks, group)
        if self._verifier is not None:
            items = [one.part.items[0] for one in asked]
            answers = yield from self._verifier.verified(group, items, [one.replicate for one in asked], answers)
        read = [self._of_items(one, answer) for one, answer in zip(asked, answers, strict=True)]
        # What a reply about several does not grade is asked about singly.
        asks = [
            Ask(self.messages(one.part, one.piece, (one.part.items[place],)), one.replicate, unread=answer.unread)
            for one, answer, row in zip(asked, answers, read, strict=True)
            for place in range(len(row))
            if row[place] is None
        ]
        alone = iter((yield from self.asker.ask(asks, group)) if asks else ())
        whole = [[said or next(alone)._replace(alone=True) for said in row] for row in read]
        told = zip(asked, whole, strict=True)
        outcomes = []
        for part, fit in parts:
            drawn = [[next(told) for _ in fit.pieces] for _ in replicates]
            outcomes += [self._outcome(part, place, drawn, fit) for place in range(len(part.items))]
        return outcomes

    def _of_items(self, asked: _Question, answer: ReadReply) -> list[ReadReply | None]:
        """What a reply says of each item of its question; None for one that is to be asked about singly."""
        items, labels = asked.part.items, self.prompt.labels
        if self.settings.compat == "nuggetizer":
            return [as_nuggetizer(answer, place, labels) for place in range(len(items))]
        is_list = self.prompt.parser == "label_list"
        if not self._is_list(asked.part) and self.prompt.parser != "aspects":
            return [answer]
        if answer.value is None:
            # A call that failed or was refused says the same of each of its items.
            is_lost = self.prompt.parser in _OF_SEVERAL or answer.status in ("failed", "refused")
            return [answer if is_lost else None for _ in items]
        if self.prompt.parser == "aspects":
            return [answer._replace(value=answer.value[item.text]) for item in items]
        if is_list:
            low = self.prompt.scale[0] if self.prompt.scale else 0
            return [answer._replace(value=low + labels.index(said)) for said in answer.value]
        said = [answer.value.get(place) for place in range(len(items))]
        explain = bool(self.settings.explain)
        return [one and answer._replace(value=one[0], reason=one[1] if explain else "") for one in said]

    def _shown_together(self, unit: Unit) -> Iterator[Unit]:
        """The parts of a unit that are one question to the model: all items, or each of them."""
        if self.prompt.parser in _OF_SEVERAL or self.direct or self._is_list(unit):
            yield unit
            return
        query_id, query_text, doc_id, text, items = unit
        for item in items:
            yield Unit(query_id, query_text, doc_id, text, (item,))

    def _outcome(
        self, unit: Unit, place: int, drawn: Sequence[Sequence[tuple[_Question, Sequence[ReadReply]]]], fit: Fit
    ) -> Outcome:
        """What the answers of all replicates and chunks say about the item of a unit at a place."""
        item = unit.items[place]
        if not fit.pieces:
            return Outcome(item.item_id, None, "failed", note=fit.note)
        of_chunks = [[row[place] for _, row in pieces] for pieces in drawn]
        details: dict[str, object] = {}
        if len(fit.pieces) > 1:
            details["chunks"] = [[answer.text for answer in some] for some in of_chunks]
            details["long_passage"] = fit.note
        if singly := [number for number, answer in enumerate(chain(*of_chunks)) if answer.alone]:
            details["asked_singly"] = singly
        answers = [self._joined(some) for some in of_chunks]
        if self.graded:
            return combine_replicates(item.item_id, answers, details)
        # The outcome of an extraction is a text for assessors, and no grade.
        first = answers[0]
        outcome = Outcome(item.item_id, None, first.status, first.text, first.note, details or None)
        if self.settings.compat == "workbench" and outcome.status == "graded":
            # The program lists every answered item as correct.
            outcome = outcome._replace(grade=int(not is_unanswerable(outcome.answer)))
        return outcome

    def _fitted(self, unit: Unit) -> Fit:
        if self.asker.limit is None:
            return Fit((unit.text,))
        frame, longest = self.messages(unit, "", unit.items), self.asker.max_tokens(self._count(unit))

        def shown(piece: str) -> str:
            # Longer, where lines would forge the prompt's own delimiters.
            return max((self.prompt.shown(name, piece) for name in _PASSAGE_FIELDS), key=len)

        return fit_passage(unit.text, frame, longest, self.asker, shown)

    def _count(self, unit: Unit) -> int | None:
        return len(unit.items) if self._is_list(unit) else None

    def _is_list(self, unit: Unit) -> bool:
        """Whether one call shows the items of a unit as a list, and has a grade of each in its reply."""
        return self.prompt.parser == "label_list" or (self.together is not None and len(unit.items) > 1)

    def _joined(self, answers: Sequence[ReadReply]) -> ReadReply:
        if self.graded:
            return best_answer(answers, self.prompt.scale[1] if self.prompt.scale else 1)
        # Texts are kept, one below the other, without the chunks that say nothing.
        said = [answer for answer in answers if answer.value is not None and not is_unanswerable(answer.text)]
        kept = said or list(answers[:1])
        first = kept[0]
        return first._replace(text="\n".join(answer.text for answer in kept), value=None)
