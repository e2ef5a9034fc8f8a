"""Whether an extracted answer matches a gold answer, by its words or as a model sees it; what grade that makes."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Generator, Iterable, Sequence
from functools import lru_cache

from rubric_measures.base.words import stem
from rubric_measures.grading._asking import Ask, Asker, ReadReply
from rubric_measures.grading._combining import best_answer
from rubric_measures.grading._long_passages import Fitter
from rubric_measures.grading._settings import GradingSettings
from rubric_measures.models.base import Backend, Reply, Request
from rubric_measures.prompts import Prompt, load_prompt
from rubric_measures.prompts.parsers import is_unanswerable
from rubric_measures.types.entities import RubricItem

# NLTK's list of English stopwords; its own package holds none, but downloads it.
_STOPWORDS_TEXT = """
    a about above after again against ain all am an and any are aren aren't as at be because been before being below
    between both but by can couldn couldn't d did didn didn't do does doesn doesn't doing don don't down during each
    few for from further had hadn hadn't has hasn hasn't have haven haven't having he her here hers herself him
    himself his how i if in into is isn isn't it it's its itself just ll m ma me mightn mightn't more most mustn
    mustn't my myself needn needn't no nor not now o of off on once only or other our ours ourselves out over own re
    s same shan shan't she she's should should've shouldn shouldn't so some such t than that that'll the their
    theirs them themselves then there these they this those through to too under until up ve very was wasn wasn't we
    were weren weren't what when where which while who whom why will with won won't wouldn wouldn't y you you'd
    you'll you're you've your yours yourself yourselves
    """
_STOPWORDS = frozenset(_STOPWORDS_TEXT.split())
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
        fitter: knows what the model's context can hold.

    Source: EXAM++, Farzi and Dietz, LLM4Eval 2024, section 4.2.
    """

    def __init__(self, backend: Backend, prompt: Prompt, settings: GradingSettings, fitter: Fitter) -> None:
        self._compat = settings.compat
        self._fitter = fitter
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
        checks: dict[tuple[int, str], ReadReply] = {}
        asks: dict[tuple[int, str], Ask] = {}
        for place, (item, replicate, answer) in enumerate(zip(items, replicates, answers, strict=True)):
            if answer.value is None or is_unanswerable(answer.value):
                continue
            for gold in dict.fromkeys(item.gold_answers):
                ask = self._ask(item, gold, answer, replicate)
                if problem := self._fitter.why_too_long(ask.messages, self._asker.max_tokens()):
                    checks[place, gold] = ReadReply(None, "failed", "", f"the check of the extracted answer: {problem}")
                else:
                    asks[place, gold] = ask
        if asks:
            found = yield from self._asker.ask(list(asks.values()), group)
            checks.update(zip(asks, found, strict=True))
        return [
            _checked(answer, {gold: checks[place, gold] for gold in item.gold_answers if (place, gold) in checks})
            for place, (item, answer) in enumerate(zip(items, answers, strict=True))
        ]

    def most_tokens(self, items: Iterable[RubricItem], answer_tokens: int) -> tuple[int, int, int]:
        """What checking one extracted answer takes at most, before there is one.

        Args:
            items: what the answer may be an answer to.
            answer_tokens: the longest answer.

        Returns:
            The checks, the tokens that they show in all, and those that they may write; zeros where words are matched.
        """
        checks = shown = 0
        if self._asker is None:
            return 0, 0, 0
        for item in items:
            asks = [self._ask(item, gold, ReadReply("", "graded", ""), 0) for gold in dict.fromkeys(item.gold_answers)]
            checks = max(checks, len(asks))
            shown = max(
                shown,
                sum(
                    sum(self._fitter.count(message.content) for message in ask.messages) + answer_tokens for ask in asks
                ),
            )
        return checks, shown, checks * self._asker.max_tokens()

    def _ask(self, item: RubricItem, gold: str, answer: ReadReply, replicate: int) -> Ask:
        assert self._asker is not None
        values = {"question": item.text, "correct_answer": gold, "answer": answer.value}
        return Ask(self._asker.prompt.render(**values), replicate)


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
