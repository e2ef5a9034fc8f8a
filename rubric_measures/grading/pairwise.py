"""The pairwise grader: games between answers put to a model, verdicts read; no verdict is a status, never a tie."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from rubric_measures.base.errors import InputError, UnknownNameError
from rubric_measures.base.files import peek_head
from rubric_measures.grading._asking import Ask, Asker
from rubric_measures.grading._messages import NO_DOCUMENTS
from rubric_measures.grading._settings import GradingSettings
from rubric_measures.grading.pairing import Game
from rubric_measures.measures.grade_sets import DirectLabels, GradeFilter
from rubric_measures.models.running import Job, LocalRunner, RunStats
from rubric_measures.prompts import Prompt, load_prompt
from rubric_measures.records.files import load_graded
from rubric_measures.records.models import QueryPassages
from rubric_measures.types.entities import Preference
from rubric_measures.types.scales import Message

__all__ = [
    "IDENTICAL",
    "PairwiseGrader",
    "Reference",
    "default_comparison",
    "documents_text",
    "load_references",
    "references_of_collection",
    "references_of_records",
]

_LOG = logging.getLogger("rubric_measures")

IDENTICAL = "identical answers"
_PER_MESSAGE = 8  # what a chat template or special tokens add to a message, at most


class Reference(NamedTuple):
    """A document that is shown beside the answers: its relevance label, and why it has it (empty where unknown)."""

    doc_id: str
    text: str
    label: float
    annotation: str = ""


def default_comparison(model: str) -> str:
    """The prompt for a model: `LexicalComparison` for the lexical grader, else `ragelo.answer_pairwise`."""
    return "LexicalComparison" if model.partition(":")[0] == "lexical" else "ragelo.answer_pairwise"


def references_of_records(
    groups: Iterable[QueryPassages], level: int = 2, *, prompt_class: str | None = None, grade_set: str | None = None
) -> dict[str, tuple[Reference, ...]]:
    """The relevant documents of each query with their annotations, best label first, then by id.

    The label is a model's direct label, its reply being the annotation; where a passage has none, the highest judgment
    of assessors. Documents without any are left out.

    Args:
        groups: graded records.
        level: the lowest label that is shown; the paper has 2 (of 0 to 2).
        prompt_class: the prompt of the direct labels; needed where there are several.
        grade_set: the settings of the direct labels, see `GradeFilter`; needed where there are several.

    Raises:
        InputError: there are direct labels of several prompts, models or settings.
    """
    wanted = GradeFilter(prompt_class=prompt_class, grade_set=grade_set)
    labels = DirectLabels(wanted, ("label_prompt", "label_set"))
    found: dict[str, tuple[Reference, ...]] = {}
    for group in groups:
        references = []
        for passage in group.passages:
            direct = labels.of(group.query_id, passage)
            label = direct.self_rating if direct is not None else None
            annotation = direct.answer if direct is not None and label is not None else ""
            if label is None:
                label = passage.judged(group.query_id)
            if label is not None and label >= level:
                references.append(Reference(passage.doc_id, passage.text, label, annotation))
        found[group.query_id] = tuple(sorted(references, key=lambda one: (-one.label, one.doc_id)))
    return found


def references_of_collection(source: str | Path, level: int = 2) -> dict[str, tuple[Reference, ...]]:
    """The relevant documents of each query of a collection by its judgments, best label first, then by id.

    Args:
        source: a folder, a file, or an ir_datasets id; see `load_collection`.
        level: the lowest label that is shown.

    Raises:
        InputError: there is no such collection, or it has no documents or no judgments.
    """
    from rubric_measures.corpora.collections import load_collection

    collection = load_collection(source)
    if not collection.has_docs() or not collection.judgments:
        raise InputError(f"{source}: has no documents with judgments")
    labels: dict[str, dict[str, float]] = {}
    for row in collection.judgments:
        if row.relevance >= level:
            of_query = labels.setdefault(row.query_id, {})
            of_query[row.doc_id] = max(row.relevance, of_query.get(row.doc_id, row.relevance))
    wanted = sorted({doc_id for of_query in labels.values() for doc_id in of_query})
    texts = {doc_id: str(one.default_text()) for doc_id, one in collection.docs_store().get_many(wanted).items()}
    if len(texts) < len(wanted):
        _LOG.warning("%s: %d relevant documents have no text and are not shown", source, len(wanted) - len(texts))
    return {
        query_id: tuple(
            Reference(doc_id, texts[doc_id], label)
            for doc_id, label in sorted(of_query.items(), key=lambda pair: (-pair[1], pair[0]))
            if doc_id in texts
        )
        for query_id, of_query in sorted(labels.items())
    }


def load_references(
    source: str | Path,
    level: int = 2,
    *,
    prompt_class: str | None = None,
    grade_set: str | None = None,
    annotations: bool = True,
) -> dict[str, tuple[Reference, ...]]:
    """The relevant documents of each query: of graded records with their annotations, or of a collection.

    Args:
        source: a file of graded records (see `references_of_records`), or what `references_of_collection` takes.
        level: the lowest label that is shown.
        prompt_class: the prompt of the direct labels of records; needed where there are several.
        grade_set: their settings, likewise.
        annotations: keep the reasons of the labels.

    Raises:
        InputError: the source cannot be read, or no document has such a label.
    """
    if Path(source).is_file() and peek_head(source).lstrip().startswith(b"["):
        found = references_of_records(load_graded(source), level, prompt_class=prompt_class, grade_set=grade_set)
    else:
        found = references_of_collection(source, level)
    if not annotations:
        found = {query_id: tuple(one._replace(annotation="") for one in shown) for query_id, shown in found.items()}
    if not any(found.values()):
        raise InputError(f"{source}: no document has a label of {level} or more")
    return found


@dataclass(frozen=True)
class PairwiseGrader:
    """Plays games with one prompt and one model, behind the runner's cache.

    Attributes:
        runner: backend, cache and limits.
        queries: query_id -> text.
        answers: query_id -> agent -> text.
        references: query_id -> documents to show; empty shows none.
        prompt: the prompt's name or .toml file; empty takes the one for the model.
        settings: how the prompt is put and the reply is read; replicates are not drawn.
    """

    runner: LocalRunner
    queries: Mapping[str, str]
    answers: Mapping[str, Mapping[str, str]]
    references: Mapping[str, Sequence[Reference]] = field(default_factory=dict)
    prompt: str = ""
    settings: GradingSettings = field(default_factory=GradingSettings)

    def play(self, games: Iterable[Game], stats: RunStats | None = None) -> Iterator[Preference]:
        """Plays games; yields each as it is done, in no particular order.

        Two identical answers tie without a call (grader `identical answers`).

        Args:
            games: the games.
            stats: is filled with counts of the calls.

        Raises:
            UnknownNameError: a query has no text, or an agent of a game no answer.
            InputError: the prompt compares no answers, or is not one for the backend.
            GradingError: the model cannot be used; finished calls are in the cache.
        """
        listed = list(games)
        asker = self._asker()
        jobs: list[tuple[Game, Job[Preference]]] = []
        for game in listed:
            texts = self._texts(game)
            if texts[0] == texts[1]:
                yield Preference(*game, "tie", grader=IDENTICAL, note="nobody was asked")
            else:
                jobs.append((game, self._job(asker, game, texts)))
        for _, preference in self.runner.run(iter(jobs), stats):
            yield preference

    def _asker(self) -> Asker:
        backend = self.runner.backend
        name = self.prompt or default_comparison(backend.model)
        prompt = load_prompt(name)
        if prompt.parser != "verdict" or not {"answer_a", "answer_b"} <= set(prompt.fields):
            raise InputError(f"prompt {name} does not compare answers")
        if getattr(backend, "embedded", False) != (prompt.format == "json"):
            raise InputError(
                "the lexical grader compares answers with the prompt LexicalComparison only, and no other grader does"
            )
        return Asker(backend, prompt, self.settings)

    def _texts(self, game: Game) -> tuple[str, str]:
        if game.query_id not in self.queries:
            hint = "(it has no text)"
            raise UnknownNameError("query", game.query_id, self.queries, hint=hint, settings=("queries",))
        of_query = self.answers.get(game.query_id, {})
        for agent in game[1:]:
            if agent not in of_query:
                raise UnknownNameError("agent", agent, of_query, hint=f"(no answer to query {game.query_id!r})")
        return of_query[game.agent_a], of_query[game.agent_b]

    def _job(self, asker: Asker, game: Game, texts: tuple[str, str]) -> Job[Preference]:
        """One game, as a generator for the runner."""
        references = list(self.references.get(game.query_id, ()))
        shown = self._fitting(asker, game, texts, references)
        if shown is None:
            note = f"query and answers do not fit into the model's {self.runner.backend.context_tokens} tokens"
            return Preference(*game, None, "failed", grader=self.runner.backend.model, note=note)
        messages = self._messages(asker.prompt, game, texts, references[:shown])
        (answer,) = yield from asker.ask([Ask(messages)], game.query_id)
        note = answer.note
        if answer.status == "graded" and shown < len(references):
            note = f"{len(references) - shown} of {len(references)} documents did not fit and were not shown"
        verdict: Any = answer.value if answer.status == "graded" else None
        return Preference(*game, verdict, answer.status, answer.text, self.runner.backend.model, note)

    def _fitting(self, asker: Asker, game: Game, texts: tuple[str, str], references: Sequence[Reference]) -> int | None:
        """How many documents fit, the most relevant first; None when not even the answers do."""
        backend = self.runner.backend
        if backend.context_tokens is None:
            return len(references)
        room = backend.context_tokens - asker.max_tokens()
        for shown in range(len(references), -1, -1):
            messages = self._messages(asker.prompt, game, texts, references[:shown])
            if sum(backend.count_tokens(message.content) + _PER_MESSAGE for message in messages) <= room:
                return shown
        return None

    def _messages(
        self, prompt: Prompt, game: Game, texts: tuple[str, str], references: Sequence[Reference]
    ) -> tuple[Message, ...]:
        values: dict[str, object] = {"answer_a": texts[0], "answer_b": texts[1]}
        if "query" in prompt.fields:
            values["query"] = self.queries[game.query_id]
        if "documents" in prompt.fields:
            bare = prompt.format == "json"
            shown = documents_text(references, prompt.context_line)
            values["documents"] = "\n".join(one.text for one in references) if bare else shown
        return prompt.render(**values)


def documents_text(references: Sequence[Reference], line: str = "") -> str:
    """Documents as prompts show them: `[id] text`, and the reason of the label on a line of its own.

    Args:
        references: the documents.
        line: how a prompt shows one (`Prompt.context_line`), where it says so: with `{doc_id}` and `{reason}`.
    """
    if not references:
        return NO_DOCUMENTS
    if line:
        if bare := [one.doc_id for one in references if not one.annotation.strip()]:
            raise InputError(f"the prompt shows why documents are relevant, and {bare[0]} has none; grade them first")
        return "\n".join(
            line.replace("{doc_id}", one.doc_id).replace("{reason}", one.annotation.strip()) for one in references
        )
    return "\n\n".join(
        f"[{one.doc_id}] {one.text}" + (f"\nRelevance: {one.annotation.strip()}" if one.annotation.strip() else "")
        for one in references
    )
