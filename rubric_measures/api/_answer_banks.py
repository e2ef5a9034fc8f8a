"""The test bank of a table of answers: given, kept from an earlier run, or made from references or questions."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from rubric_measures.api._answer_rows import Questions, short
from rubric_measures.api._loading import Bank, bank_of
from rubric_measures.base.errors import InputError, counted
from rubric_measures.grading.generation import reference_sentences
from rubric_measures.types.entities import TestBank

if TYPE_CHECKING:
    from rubric_measures.models.settings import CallOptions, Progress

_LOG = logging.getLogger("rubric_measures")
BankSource: TypeAlias = Literal["references", "sentences", "questions"]
_MADE_FROM = {
    "references": "nuggets that the model found in the reference answers",
    "sentences": "the sentences of the reference answers",
    "questions": "questions that the model asked for each query",
}
_BANK = ("bank", "bank_from")


def given_bank(bank: Bank | None, bank_from: BankSource | None, folder: Path | None) -> TestBank | None:
    """The bank that was given, or the one that stands in the folder from an earlier run; None where there is none."""
    if bank is not None and bank_from is not None:
        raise InputError("a bank is given, so none is made; leave one out", settings=("bank", "bank_from"))
    kept = None if folder is None else folder / "bank.csv"
    if kept is None or not kept.exists():
        return bank_of(bank)
    there = bank_of(kept)
    if bank is None:
        _LOG.info("%s is used again; remove it to have it made anew", kept)
        return there
    given = bank_of(bank)
    assert given is not None and there is not None
    if dict(given.items) != dict(there.items):
        text = f"{kept} holds another bank, perhaps edited; name that one, remove it, or name another folder"
        raise InputError(text, settings=("bank", "output"))
    return given


def made_bank(
    asked: Questions,
    kept: TestBank | None,
    bank_from: BankSource | None,
    model: str,
    progress: Progress,
    calls: CallOptions,
) -> TestBank:
    """The bank of all questions: items that are kept stay, those of other questions are made."""
    kept = kept or TestBank({})
    missing = {query_id: text for query_id, text in asked.texts.items() if query_id not in kept.items}
    if not missing:
        return kept
    source = bank_from or _usual_source(asked, missing, model)
    _check_source(source, asked, missing, model)
    references = {query_id: asked.references[query_id] for query_id in missing if query_id in asked.references}
    if source == "sentences":
        made = reference_sentences(references, missing)
    else:
        made = _generated(source, missing, references, model, progress, calls)
    without = [query_id for query_id in missing if not made.items.get(query_id)]
    if without:
        text = f"no item could be made for {len(without)} queries (such as {short(missing[without[0]])})"
        raise InputError(f"{text}; name a bank, or make it from something else", settings=_BANK)
    kinds = {item.kind for item in kept} | {item.kind for item in made}
    if len(kinds) > 1:
        text = "the bank that is kept has items of another kind than the new ones; name a bank, or remove bank.csv"
        raise InputError(text, settings=_BANK)
    items, queries = counted(len(made), "item"), counted(len(missing), "query")
    _LOG.info("test bank: %s of %s, %s", items, queries, _MADE_FROM[source])
    return TestBank({**kept.items, **made.items}, {**kept.query_texts, **missing}, kept.facet_texts, kept.edited)


def _check_source(source: BankSource, asked: Questions, missing: Mapping[str, str], model: str) -> None:
    lacking = [query_id for query_id in missing if query_id not in asked.references]
    if source != "questions" and lacking:
        text = f"{len(lacking)} of {len(missing)} queries have no reference answer (such as"
        text += f" {short(missing[lacking[0]])}); write some, name a bank, or make it from the queries"
        raise InputError(text, settings=_BANK)
    if model.partition(":")[0] == "lexical" and source != "sentences":
        what = "finds no nuggets" if source == "references" else "asks no questions"
        text = f"the lexical grader {what}; choose a model that can write, reference answers with their sentences, or a"
        raise InputError(f"{text} bank", settings=("model", *_BANK))


def _usual_source(asked: Questions, missing: Mapping[str, str], model: str) -> BankSource:
    if not any(query_id in asked.references for query_id in missing):
        if model.partition(":")[0] == "lexical":
            text = "there is no bank and no reference answer to make one from; give one of them, or a model that asks"
            raise InputError(f"{text} questions", settings=("bank", "columns", "model"))
        return "questions"
    return "sentences" if model.partition(":")[0] == "lexical" else "references"


def _generated(
    source: BankSource,
    texts: Mapping[str, str],
    references: Mapping[str, Sequence[str]],
    model: str,
    progress: Progress,
    calls: CallOptions,
) -> TestBank:
    from rubric_measures.api._generating import generate
    from rubric_measures.records.models import GradedPassage, QueryPassages

    options: Any = {"model": model, "progress": progress, **calls}
    if source == "questions":
        return generate(texts, target="questions", **options).bank
    groups = [
        QueryPassages(query_id, [GradedPassage(doc_id=f"reference/{query_id}", text="\n".join(parts))])
        for query_id, parts in references.items()
    ]
    return generate(texts, target="nuggets", from_documents=groups, by="all", **options).bank


def of_asked(bank: TestBank, asked: Questions) -> TestBank:
    """The bank of the questions that were asked; others in it are left out, and counted."""
    lacking = [query_id for query_id in asked.texts if query_id not in bank.items]
    if lacking:
        text = f"the bank has no items for {len(lacking)} queries (such as {short(asked.texts[lacking[0]])})"
        raise InputError(f"{text}; queries are found by their ids, or by their texts", settings=("bank", "columns"))
    items = {query_id: bank.items[query_id] for query_id in asked.texts}
    return TestBank(items, bank.query_texts, bank.facet_texts, bank.edited)


def write_kept(path: Path, bank: TestBank) -> None:
    """Writes a bank as CSV, unless the file holds the same items."""
    from rubric_measures.formats.banks import bank_entries, write_bank_csv

    # One that is there stays as people left it where nothing is new.
    if not path.exists() or dict(bank_of(path).items) != dict(bank.items):  # type: ignore[union-attr]
        write_bank_csv(path, bank_entries(bank))
