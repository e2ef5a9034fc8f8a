"""Extracted answers as grades: does one match the answer key, by its words or as a model sees it?"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence

from rubric_measures.backends.base import Backend, Reply, Request
from rubric_measures.base.entities import RubricItem
from rubric_measures.grading._asking import Ask, Asker, ReadReply
from rubric_measures.grading._combining import best_answer
from rubric_measures.grading._long_passages import Fitter
from rubric_measures.grading._matching import matches_any
from rubric_measures.grading._settings import GradingSettings
from rubric_measures.prompts import Prompt, load_prompt
from rubric_measures.prompts.parsers import is_unanswerable

__all__ = ["Verifier"]


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
    )
    if answer.status == "graded" or best.value is None:
        return made._replace(status=best.status, note=best.note)
    return made
