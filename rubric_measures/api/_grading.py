"""Grading: passages and a test bank through a model, cached and resumable, into graded records."""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, Union, Unpack

from rubric_measures.api._loading import Bank, File, PromptType, bank_of, file_path, grade_filter, is_file, listed
from rubric_measures.api._records import GradedRecords, PassageRecords
from rubric_measures.base.errors import InputError, RubricMeasuresError, UnknownNameError, naming

if TYPE_CHECKING:
    from rubric_measures.corpora.collections import Collection
    from rubric_measures.grading import BankChange, Grader, GradingReport
    from rubric_measures.grading.recording import Cells
    from rubric_measures.measures.grade_sets import QuestionSet
    from rubric_measures.models.base import Backend
    from rubric_measures.models.settings import Model, Progress, RunnerOptions
    from rubric_measures.records.models import QueryPassages
    from rubric_measures.types.entities import TestBank

_LOG = logging.getLogger("rubric_measures")
_File = str | os.PathLike[str]

Passages: TypeAlias = Union[File, "Iterable[QueryPassages]"]
"""Passages by query: a file of records, or the records (what `pool`, `grade` and `load_graded` return)."""


def passages_of(passages: Passages) -> PassageRecords:
    """The queries of a file or of records, to be gone through as often as needed."""
    from rubric_measures.records.files import load_graded

    if is_file(passages):
        with file_path(passages) as path:
            return PassageRecords(load_graded(path), path=path)
    return passages if isinstance(passages, PassageRecords) else PassageRecords(passages)


def grade(
    passages: Passages,
    bank: Bank | None = None,
    *,
    model: str | Backend,
    where: str | None = None,
    llm: str | None = None,
    prompt_class: str | None = None,
    prompt_type: PromptType | None = None,
    question_set: QuestionSet | None = None,
    grade_set: str | None = None,
    query_texts: File | Mapping[str, str] | None = None,
    support: bool = False,
    collection: _File | Sequence[_File] | Collection | None = None,
    citations: int | Literal["first", "all"] = "first",
    prompt: str | Sequence[str] = (),
    prompt_field: Mapping[str, object] | None = None,
    documents: _File | None = None,
    level_shown: int = 2,
    label_prompt: str | None = None,
    label_set: str | None = None,
    output: _File | None = None,
    manifest: _File | None = None,
    temperature: float = 0.0,
    max_tokens: int | None = None,
    option: Mapping[str, Any] | None = None,
    replicates: int = 1,
    combine: Literal["median", "majority"] = "median",
    retries: int = 1,
    explain: bool = False,
    unparsed: Literal["", "exampp", "workbench"] = "",
    compat: Literal["", "workbench", "nuggetizer"] = "",
    nuggets_per_call: int = 10,
    items_per_call: int | Literal["all"] = 1,
    shuffle_seed: int | None = None,
    long_passages: Literal["chunk", "truncate", "refuse"] = "chunk",
    only_changed: bool = False,
    old_bank: Bank | None = None,
    dry_run: bool = False,
    queries: Iterable[str] | None = None,
    limit: int | None = None,
    progress: Progress = False,
    **calls: Unpack[RunnerOptions],
) -> GradedRecords:
    """Grades passages against a test bank.

    A failed call, a refusal, and a reply that cannot be read each give a grade with a status and no number; `report` of
    the result counts them. With a cache every finished call is kept: after a Ctrl-C, calling this function again goes
    on where it stopped, and makes no call twice. Errors in prompts or passages are found before a model is asked.

    Args:
        passages: records (what `pool` gives), graded or not, or their file. Grades that they have stay.
        bank: the test bank; not needed for direct labels and aspects of answers.
        model: `lexical`, `scripted:FILE`, `hf:NAME`, `openai:NAME`, `litellm:PROVIDER/NAME`, or a backend of your own.
        where: the passages have grades: ask only about the cells (an item of a passage) whose grade fulfils this
            condition: `grade between 2 and 3`, `grade < 3`, `<=`, `>`, `>=`, `=`, or `grade failed`.
        llm: of `where`, which grades are meant, as in `load`, where the passages have several grade sets; likewise
            `prompt_class`, `prompt_type`, `question_set` and `grade_set`.
        prompt_class: see `llm`.
        prompt_type: see `llm`.
        question_set: see `llm`.
        grade_set: see `llm`.
        query_texts: texts of the queries where the bank has none: query -> text, or a file.
        support: the passages are generated answers (`Answer`s, files of reports or support labels, one or several, or
            records that this made of them): each sentence is judged by the documents that it cites. No bank is needed.
        collection: of support, where the texts of cited documents come from: see `pool`; or requests of nuggetizer,
            with what was retrieved. Texts that reports bring along come first.
        citations: of support, which citations of a sentence are judged: the `first`, `all`, or the first so many.
        prompt: the name of a prompt or a .toml file, or several; by default those that fit the bank.
        prompt_field: settings of the prompt (`domain`).
        documents: for prompts about answers, what to show: graded records, or a collection.
        level_shown: the lowest label of documents shown.
        label_prompt: the prompt whose direct labels count, where `documents` has several.
        label_set: the settings (a hash) whose direct labels count, where that prompt has several.
        output: a file for the graded records; they are written query by query and not held in memory. The cache and
            the manifest lie beside it, if nothing else is said.
        manifest: a file that says what made the grades; by default `OUTPUT.manifest.json`, none without an output.
        temperature: 0 takes the most probable reply.
        max_tokens: the longest reply; None goes by the kind of prompt.
        option: further generation options.
        replicates: draws of every reply; needs a temperature.
        combine: how replicates become one grade: `median` (of two the lower) or `majority`.
        retries: further draws of a reply that cannot be read.
        explain: ask for a reason before each grade, and keep it in the records.
        unparsed: `exampp` or `workbench` grade replies without a rating by rule.
        compat: `workbench` or `nuggetizer` read, match and count replies as that program does.
        nuggets_per_call: label lists: nuggets shown at once.
        items_per_call: so many items of a passage in one call, or `all`, by prompts that ask about one question or
            nugget; what the reply does not grade is asked about singly.
        shuffle_seed: where a call shows several items: another order for each replicate.
        long_passages: what does not fit: `chunk` (the best grade counts), `truncate` or `refuse`.
        only_changed: the passages have grades: grade only the items that edits of the bank touched.
        old_bank: the bank before edits that were not made in the review page.
        dry_run: make no call and write nothing; `plan` of the result says what would be called and what it would cost.
        queries: grade only these queries; the others are left out.
        limit: grade only this many passages of each query, the first ones.
        progress: True shows a bar on standard error; a function is told the counts (`RunStats`).
        calls: how and where the model is asked, and limits (`base_url`, `cache`, `max_cost`, `runner`, …): see
            `RunnerOptions`. The cache is `OUTPUT.cache.sqlite` by default; without an output replies are not kept.

    Raises:
        InputError: passages, bank or a setting is wrong; an output would replace what is read.
        UnknownNameError: a model, prompt, setting or query is not known; the bank does not have a query.
        MissingExtraError: what the model needs is not installed.
        GradingError: the model cannot be used; finished calls are in the cache.
        KeyboardInterrupt: Ctrl-C; calls in flight were finished, and are in the cache.
    """
    from rubric_measures.base.files import fewer_collections
    from rubric_measures.corpora.overwriting import keep_apart, keep_cache, keep_inputs
    from rubric_measures.grading import (
        Grader,
        GradingReport,
        GradingSettings,
        estimate,
        make_manifest,
        note_amended,
        note_report,
        write_manifest,
    )
    from rubric_measures.models.settings import CallSettings

    prompts = (prompt,) if isinstance(prompt, str) else tuple(prompt)
    wanted = None if queries is None else [str(name) for name in queries]
    if wanted == [] or (limit is not None and limit < 1):
        raise InputError("name a query at least, and a limit of at least 1", settings=("queries", "limit"))
    part = partial(_part, queries=wanted, limit=limit)
    _check_manifest(manifest)
    manifest = _beside(output, manifest, ".manifest.json")
    calls["cache"] = cache = _beside(output, calls.get("cache"), ".cache.sqlite")
    scripted = [model.removeprefix("scripted:")] if isinstance(model, str) and model.startswith("scripted:") else []
    prompt_files = (name for name in prompts if name.endswith(".toml"))
    read = [bank, old_bank, query_texts, documents, calls.get("prices"), *scripted, *prompt_files]
    most = _citations(support, collection, citations)
    given_files = [os.fspath(one) for one in listed(passages) if isinstance(one, str | os.PathLike)]
    given = ", ".join(given_files)
    if most is not None:
        read += [*(collection if isinstance(collection, list | tuple) else [collection]), *listed(passages)]
    # Grades may be added to the file that is graded, but not to a part of it: the rest would be lost.
    keep_inputs(output, None if wanted is None and limit is None else passages, *read)
    keep_inputs(manifest, passages, *read)
    keep_apart(output=output, manifest=manifest)
    keep_cache(cache, output, manifest, passages, *read)
    if most is not None:
        from rubric_measures.api._support import sentence_bank, support_records

        # They would do nothing, or leave out documents that are cited.
        beside = {"bank": bank, "documents": documents, "only_changed": only_changed, "limit": limit}
        if ignored := [name for name, value in beside.items() if value]:
            text = "support is judged for the sentences of answers by what they cite; leave the other setting out"
            raise InputError(text, settings=ignored)
        passages = answered = support_records(passages, collection)
        texts = _texts_of_queries(query_texts)
        with naming(*given_files):
            made = sentence_bank(answered, texts)
    else:
        made = _bank(bank, query_texts, prompts)
        _note_missing(made, prompts)
    change = _change(bank, made, old_bank, only_changed)
    asked = CallSettings(model, **calls).make()
    meant = {
        "llm": llm,
        "prompt_class": prompt_class,
        "prompt_type": prompt_type,
        "question_set": question_set,
        "grade_set": grade_set,
    }
    _check_where(where, meant, only_changed)
    greedy = temperature == 0 and "temperature" not in (option or {})
    if replicates > 1 and greedy and shuffle_seed is None:
        raise InputError(
            "replicates at temperature 0 are all the same reply; give a temperature (or a seed of shuffles)",
            settings=("temperature", "shuffle_seed"),
        )
    settings = GradingSettings(
        temperature=temperature,
        max_tokens=max_tokens,
        options=option or {},
        replicates=replicates,
        combine=combine,
        retries=retries,
        explain=explain,
        unparsed=unparsed,
        compat=compat,
        long_passages=long_passages,
        nuggets_per_call=nuggets_per_call,
        items_per_call=items_per_call,
        shuffle_seed=shuffle_seed,
        fields={name: str(value) for name, value in (prompt_field or {}).items()},
        documents=_documents(documents, level_shown, label_prompt, label_set),
    )
    source = passages_of(passages)
    with fewer_collections():
        grader = Grader(asked.runner(), prompts, settings, change, citations=most)
        if where is not None:
            only = _cells(where, meant, grader, part(source, made), source.name, made)
            only.note()
            grader = dataclasses.replace(grader, only=only)
        if dry_run:
            with asked.planning() as planned:
                grader = dataclasses.replace(grader, runner=planned)
                plan = estimate(grader, lambda: part(source, made), made, asked.price)
            return GradedRecords([], report=GradingReport(), plan=plan)
        _note_unwritten(output, manifest, asked)
        pairs = grader.check(part(source, made, _LOG.warning), made)
        with asked.asking(progress, pairs if change is None else None) as runner:
            grader = dataclasses.replace(grader, runner=runner)
            report = GradingReport()
            graded = grader.grade_records(part(source, made), made, report)
            try:
                # Closed before the cache is, also where the output cannot be written.
                with contextlib.closing(graded):
                    records = GradedRecords.kept(graded, output, report=report)
            except KeyboardInterrupt:
                _say_kept(report, asked.settings.is_kept, "run again to continue")
                raise
            except RubricMeasuresError:
                if _calls_kept(report):
                    _say_kept(report, asked.settings.is_kept, "what is wrong:")
                raise
            if manifest:
                files = {"passages": given, "bank": bank, "output": output}
                names = {role: str(name) if isinstance(name, str | os.PathLike) else "" for role, name in files.items()}
                write_manifest(manifest, make_manifest(grader, made, report, names))
            if grader.change is not None:
                note_amended(report.amended, given or "the input")
            greedy = grader.settings.temperature == 0 or "temperature" in grader.settings.options
            deterministic = greedy and getattr(asked.backend, "deterministic", False)
            note_report(report, deterministic=deterministic, is_kept=asked.settings.is_kept)
            return records


def _check_where(where: str | None, meant: Mapping[str, str | None], only_changed: bool) -> None:
    """Refuses a condition beside what chooses items by itself, and a choice of grades without a condition."""
    if where is not None and only_changed:
        text = "a condition chooses items by their grades, and edits of the bank choose others; leave one out"
        raise InputError(text, settings=("where", "only_changed"))
    if where is None and (given := [name for name, value in meant.items() if value is not None]):
        text = "which grades are meant is said for a condition; name it, or leave the choice out"
        raise InputError(text, settings=("where", *given))


def _cells(
    where: str,
    meant: Mapping[str, Any],
    grader: Grader,
    groups: Iterable[QueryPassages],
    source: str,
    bank: TestBank,
) -> Cells:
    """The cells that a condition chooses among what the prompts of a grader grade: items, or passages as a whole."""
    from rubric_measures.grading.recording import cells_where

    kinds = {maker.style.direct for maker in grader.makers(bank)}
    if len(kinds) > 1:
        text = "some of the prompts label passages and others grade items, and a condition is about one of the two"
        raise InputError(text, settings=("where", "prompt"))
    [is_direct] = kinds
    if is_direct and meant["prompt_type"] not in (None, "direct"):
        text = "the prompt labels passages, and the condition is about grades of items"
        raise InputError(text, settings=("prompt_type", "prompt"))
    if not is_direct and meant["prompt_type"] == "direct":
        text = "the prompt grades items, and the condition is about labels of passages"
        raise InputError(text, settings=("prompt_type", "prompt"))
    wanted = grade_filter(**({**meant, "prompt_type": "direct"} if is_direct else meant))
    return cells_where(where, groups, source, wanted, None if is_direct else bank)


def _calls_kept(report: GradingReport) -> int:
    return report.run.calls - report.run.failed


def _say_kept(report: GradingReport, is_kept: bool, then: str) -> None:
    if is_kept:
        _LOG.warning("%d calls of this run are in the cache: %s", _calls_kept(report), then)
    elif _calls_kept(report):
        text = "%d calls of this run are lost: name a cache to keep them"
        _LOG.warning(text, _calls_kept(report), extra={"settings": ("cache",)})


def _check_manifest(manifest: _File | None) -> None:
    """Refuses a file that cannot be written: it is written when all is done, and then it would be too late."""
    if manifest and (Path(manifest).is_dir() or not Path(manifest).parent.is_dir()):
        text = f"the manifest {os.fspath(manifest)} cannot be written; name a file in a folder that exists"
        raise InputError(text, settings=("manifest",))


def _beside(output: _File | None, named: _File | None, ending: str) -> str | None:
    """The file that was named, else one beside the output; None without an output or on standard output."""
    if named:
        return os.fspath(named)
    return None if output is None or os.fspath(output) == "-" else f"{os.fspath(output)}{ending}"


def _bank(bank: Bank | None, query_texts: File | Mapping[str, str] | None, prompts: Sequence[str]) -> TestBank:
    from rubric_measures.grading.generation import aspect_bank
    from rubric_measures.prompts import load_prompt
    from rubric_measures.types.entities import TestBank

    texts = _texts_of_queries(query_texts)
    made = bank_of(bank)
    if made is not None:
        return TestBank(made.items, {**texts, **made.query_texts}, made.facet_texts)
    if not texts or not prompts:
        raise InputError(
            "name the test bank, or, for labels and aspects, the texts of the queries and a prompt",
            settings=("bank", "query_texts", "prompt"),
        )
    aspects = [name for name in prompts if load_prompt(name).parser == "aspects"]
    return aspect_bank(texts, aspects[0]) if aspects else TestBank(dict.fromkeys(texts, ()), dict(texts))


def _texts_of_queries(query_texts: File | Mapping[str, str] | None) -> Mapping[str, str]:
    from rubric_measures.formats.queries import read_queries

    if query_texts is None or isinstance(query_texts, Mapping):
        return query_texts or {}
    with file_path(query_texts) as path:
        return read_queries(path)


def _citations(support: bool, collection: object, citations: int | str) -> int | Literal["all"] | None:
    """How many citations of a sentence are judged; None where none are."""
    if not support:
        if collection is not None or citations != "first":
            raise InputError(
                "a collection and a number of citations are of support; passages have their texts",
                settings=("support", "collection", "citations"),
            )
        return None
    if citations == "all":
        return "all"
    most = 1 if citations == "first" else citations
    if not isinstance(most, int) or isinstance(most, bool) or most < 1:
        raise InputError(
            f"citations is {citations!r}; expected first, all, or a number from 1", settings=("citations",)
        )
    return most


def _note_missing(bank: TestBank, prompts: Sequence[str]) -> None:
    """Says before anything is asked which items lack what measures over importance or weights need.

    A bank without any is for other measures; but assigned nuggets are scored by their importance, or by weights.
    """
    is_assigned = any(name.startswith("nuggets.") for name in prompts) and all(item.weight is None for item in bank)
    for what, measures in (("importance", "NuggetV and NuggetW"), ("weight", "WeightedCover")):
        without = [item for item in bank if getattr(item, what) is None]
        if without and (len(without) < len(bank) or (what == "importance" and is_assigned)):
            _LOG.warning(
                "%d of %d items have no %s, which %s need of every item (such as %s of query %s)",
                *(len(without), len(bank), what, measures, without[0].item_id, without[0].query_id),
                extra={"settings": ("bank",)},
            )


def _change(bank: Bank | None, made: TestBank, old_bank: Bank | None, only_changed: bool) -> BankChange | None:
    """What edits did to the bank, where only those are followed."""
    from rubric_measures.formats.banks import is_bank, read_bank
    from rubric_measures.grading import BankChange

    if not only_changed:
        if old_bank is not None:
            raise InputError(
                "an old bank says what changed since the grades were made, for the grading of changes only",
                settings=("old_bank", "only_changed"),
            )
        return None
    settings = ("only_changed", "bank")
    if bank is None:
        raise InputError("grading only what changed follows the edits of a test bank; name it", settings=settings)
    if not isinstance(bank, str | os.PathLike):
        if old_bank is None:
            raise InputError(
                "edits are noted in the bank's file; name it, or the bank before the edits", settings=settings
            )
        return BankChange.of((), made, bank_of(old_bank))
    if os.fspath(bank) == "-":
        raise InputError("grading only what changed reads the bank twice; name a file", settings=settings)
    # Only this format has a place for what the review page notes of edits.
    is_noted = is_bank(bank)
    if not is_noted and old_bank is None:
        raise InputError(f"{os.fspath(bank)}: notes no edits; name the bank before them", settings=("old_bank",))
    return BankChange.of(read_bank(bank) if is_noted else (), made, bank_of(old_bank))


def _documents(source: _File | None, level: int, prompt: str | None, label_set: str | None) -> dict[str, str]:
    """Query -> the documents that are shown beside an answer."""
    if source is None:
        return {}
    from rubric_measures.grading.pairwise import documents_text, load_references

    found = load_references(os.fspath(source), level, prompt_class=prompt, grade_set=label_set)
    return {query_id: documents_text(shown) for query_id, shown in found.items() if shown}


def _note_unwritten(output: _File | None, manifest: str | None, asked: Model) -> None:
    """Says which files beside the records have no name, while there is time to give one."""
    if output is None or os.fspath(output) != "-":
        return
    lacking = {"manifest": "what made the grades", "cache": "the replies"}
    if manifest is not None:
        del lacking["manifest"]
    if asked.settings.is_kept:
        del lacking["cache"]
    if lacking:
        text = "the records go to standard output; nothing keeps %s"
        _LOG.info(text, ", nor ".join(lacking.values()), extra={"settings": tuple(lacking)})


def _part(
    source: PassageRecords,
    bank: TestBank,
    log: Callable[..., None] = _LOG.debug,
    *,
    queries: Sequence[str] | None,
    limit: int | None,
) -> Iterator[QueryPassages]:
    """The passages to grade: of some queries, the first of each; a wanted query that is not there is an error."""
    from rubric_measures.records.models import QueryPassages

    found: set[str] = set()
    others = left_out = 0
    for group in source:
        found.add(group.query_id)
        if queries is None or group.query_id in queries:
            # Says where a query stands that the bank does not have.
            bank.for_query(group.query_id, f"{source.name}:{group.line}" if group.line else "")
            passages = list(group.passages)
            left_out += len(passages[limit:]) if limit is not None else 0
            yield QueryPassages(group.query_id, passages[:limit], group.line)
        else:
            others += 1
    for name in queries or ():
        if name not in found:
            raise UnknownNameError("query", name, found, hint="(there are no passages of it)")
    if others or left_out:
        text = "left out, as was asked: %d queries, %d passages of the others"
        log(text, others, left_out, extra={"settings": ("queries", "limit")})
