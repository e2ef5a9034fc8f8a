"""The test bank of a table of answers: given, kept from an earlier run, or made from references or questions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from rubric_measures.base.errors import InputError, counted, some_of, tell, warn
from rubric_measures.corpora.answers import Questions, short
from rubric_measures.corpora.loading import Bank, bank_of, load_bank
from rubric_measures.grading.generation import reference_sentences
from rubric_measures.grading.grader import GradingPlan
from rubric_measures.models.settings import Calls
from rubric_measures.types.entities import TestBank

if TYPE_CHECKING:
    from rubric_measures.models.base import Backend
    from rubric_measures.models.settings import Progress


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
    given = bank_of(bank)
    if kept is None or not kept.exists() or str(kept) == str(bank):
        return given
    there = load_bank(kept)
    if given is None:
        tell("%s is used again; remove it to have it made anew", kept)
        return there
    if dict(given.items) != dict(there.items):
        text = f"{kept} holds another bank, perhaps edited; name that one, remove it, or name another folder"
        raise InputError(text, settings=("bank", "output"))
    return given


def made_bank(
    asked: Questions,
    kept: TestBank | None,
    bank_from: BankSource | None,
    model: str | Backend,
    progress: Progress,
    calls: Calls,
    dry_run: bool = False,
) -> TestBank | GradingPlan:
    """The bank of all questions: items that are kept stay, those of other questions are made.

    In a dry run that a model would make them in, what that takes.
    """
    kept = kept or TestBank({})
    missing = {query_id: text for query_id, text in asked.texts.items() if query_id not in kept.items}
    if not missing:
        return kept
    source = _source(bank_from, asked, missing, model)
    references = {query_id: asked.references[query_id] for query_id in missing if query_id in asked.references}
    if source == "sentences":
        made = reference_sentences(references, missing)
    else:
        from rubric_measures.grading.generation import generate
        from rubric_measures.records.models import GradedPassage, QueryPassages

        how: Any = {"target": "questions"}
        if source == "references":
            groups = [
                QueryPassages(query_id, [GradedPassage(doc_id=f"reference/{query_id}", text="\n".join(parts))])
                for query_id, parts in references.items()
            ]
            how = {"target": "nuggets", "from_documents": groups, "by": "all"}
        found = generate(missing, model=model, progress=progress, dry_run=dry_run, calls=calls, **how)
        if dry_run:
            tell("grading comes on top: its calls follow from the bank that is made")
            return GradingPlan(replace(one, name="test bank") for one in found.plan)
        # What was refused is refused again; the rest counts without it.
        if failed := [failure for failure in found.failures if not failure.is_final]:
            text = f"{counted(len(failed), 'call')} for the test bank led to nothing, and no bank is kept"
            raise InputError(f"{text}; run again, or name a bank", settings=_BANK)
        made = found.bank
    without = [query_id for query_id in missing if not made.items.get(query_id)]
    if without:
        text = f"no item could be made for {counted(len(without), 'query')} (such as {short(missing[without[0]])})"
        raise InputError(f"{text}; name a bank, or make it from something else", settings=_BANK)
    items, queries = counted(len(made), "item"), counted(len(missing), "query")
    tell(f"test bank: {items} of {queries}, {_MADE_FROM[source]}")
    return TestBank({**kept.items, **made.items}, {**kept.query_texts, **missing}, kept.facet_texts, kept.edited)


def _source(
    bank_from: BankSource | None, asked: Questions, missing: Mapping[str, str], model: str | Backend
) -> BankSource:
    """What the bank is made from: what was asked for, else references where there are any."""
    lacking = [query_id for query_id in missing if query_id not in asked.references]
    is_lexical = isinstance(model, str) and model.partition(":")[0] == "lexical"
    usual: BankSource = "sentences" if is_lexical else "references" if len(lacking) < len(missing) else "questions"
    source = bank_from or usual
    if source != "questions" and lacking:
        text = f"{len(lacking)} of {len(missing)} queries have no reference answer (such as"
        text += f" {short(missing[lacking[0]])}); write some, name a bank, or make it from the queries"
        raise InputError(text, settings=_BANK)
    if is_lexical and source != "sentences":
        what = "finds no nuggets" if source == "references" else "asks no questions"
        text = f"the lexical grader {what}; choose a model that can write, reference answers with their sentences, or a"
        raise InputError(f"{text} bank", settings=("model", *_BANK))
    return source


def of_asked(bank: TestBank, asked: Questions) -> TestBank:
    """The bank with the texts of questions that were asked; what it has besides scores 0, and is named."""
    lacking = [query_id for query_id in asked.texts if query_id not in bank.items]
    if lacking:
        text = f"the bank has no items for {counted(len(lacking), 'query')} (such as {short(asked.texts[lacking[0]])})"
        raise InputError(f"{text}; queries are found by their ids, or by their texts", settings=("bank", "columns"))
    if others := [query_id for query_id in bank.items if query_id not in asked.texts]:
        text = f"no row answers {counted(len(others), 'query')} of the bank, which will score 0 ({some_of(others)})"
        warn(f"{text}; give a bank without them, or remove the bank.csv of an earlier run", settings=("bank", "output"))
    return TestBank(bank.items, {**asked.texts, **bank.query_texts}, bank.facet_texts, bank.edited)


def write_kept(path: Path, bank: TestBank, known: TestBank | None) -> None:
    """Writes a bank as CSV, unless the file holds the same items: those of `given_bank`."""
    from rubric_measures.formats.banks import BANK_CSV

    # One that is there stays as people left it where nothing is new.
    if known is None or not path.exists() or dict(known.items) != dict(bank.items):
        BANK_CSV.write(path, bank)
