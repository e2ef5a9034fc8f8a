"""Passages graded with a model: all, some again, or what answers cite; texts and bank in, records out.

Answers and what they cite as records whose pairs (sentence, cited document) can be graded.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from msgspec.structs import replace

from rubric_measures.base.errors import InputError, UnknownNameError, naming, tell, warn
from rubric_measures.base.files import atomic_writer, fewer_collections
from rubric_measures.corpora.loading import (
    Bank,
    File,
    PassageRecords,
    Passages,
    content_of,
    file_beside,
    file_path,
    listed,
    load_bank,
    passages_of,
    query_texts_of,
    read_runs,
)
from rubric_measures.corpora.overwriting import keep_cache, keep_inputs, refuse_table
from rubric_measures.formats.answers import Answer, answer_doc_id, read_answers
from rubric_measures.formats.banks import is_bank
from rubric_measures.grading.asking import Asking
from rubric_measures.measures.measure import parse_measures
from rubric_measures.models.settings import Calls, refuse_plain
from rubric_measures.prompts.library import load_prompt
from rubric_measures.records.models import (
    GradedPassage,
    QueryPassages,
    cited_answer,
    cited_answers,
    load_graded,
)
from rubric_measures.types.entities import CitedAnswer, TestBank, canonical_json, sentence_items

if TYPE_CHECKING:
    from rubric_measures.corpora.collections import Collection
    from rubric_measures.corpora.loading import Runs
    from rubric_measures.grading.grader import GradedRecords
    from rubric_measures.grading.lazy import NeededFor
    from rubric_measures.grading.recording import BankChange
    from rubric_measures.measures.measure import Measures
    from rubric_measures.models.base import Backend
    from rubric_measures.models.settings import Progress


def grade(
    passages: Passages,
    bank: Bank | None = None,
    *,
    model: str | Backend,
    prompt: str | Sequence[str] = (),
    asking: Asking = Asking(),
    calls: Calls = Calls(),
    measures: Measures = (),
    runs: Runs | None = None,
    query_texts: File | Mapping[str, str] | None = None,
    documents: _File | None = None,
    queries: Iterable[str] | None = None,
    limit: int | None = None,
    output: _File | None = None,
    give_up_after: int | None = None,
    dry_run: bool = False,
    progress: Progress = False,
) -> GradedRecords:
    """Grades passages against a test bank.

    A failed call, a refusal, and a reply that cannot be read each give a grade with a status and no number; `report` of
    the result counts them. With a cache every finished call is kept: after a Ctrl-C, calling this function again goes
    on where it stopped, and makes no call twice. Errors in prompts or passages are found before a model is asked.

    With measures a grade is asked for only while it can change one of them, so the board by these is the same, to the
    last digit, as with all grades. The passages that may settle most are asked about first. A pair that no run needs is
    never asked; records and manifest say for which measures and runs the others were. Boards say which measures are
    exact, and what others lie between. Another time, further measures, levels or runs ask only for what is new.

    Args:
        passages: records (what `pool` gives), graded or not, or their file. Grades that they have stay.
        bank: the test bank; not needed for direct labels and aspects of answers.
        model: `lexical`, `scripted:FILE`, `hf:NAME`, `openai:NAME` or `litellm:PROVIDER/NAME`. In Python also a backend
            of your own.
        prompt: the name of a prompt or a .toml file, or several; by default those that fit the bank.
        asking: how prompts are put to the model and its replies are read.
        calls: where the model is called, what is kept, and what it may cost. The cache is `OUTPUT.cache.sqlite` by
            default; without an output replies are not kept.
        measures: ask only for grades that can change these: RubricCover, NuggetV, NuggetW, NuggetA, WeightedCover.
        runs: the runs that measures score; by default the rankings in the records. In Python as `score` takes them.
        query_texts: texts of the queries where the bank has none: query -> text, or a file.
        documents: for prompts about answers, what to show: graded records with labels by one grader, or a
            collection.
        queries: grade only these queries; the others are left out.
        limit: grade only this many passages of each query, the first ones.
        output: a file for the graded records; they are written query by query and not held in memory. The cache and
            OUTPUT.manifest.json, which says what made the grades, lie beside it.
        give_up_after: end with an error where none of the first so many replies can be read; by default never. Then
            a further run asks anew for what cannot be read.
        dry_run: make no call and write nothing, but say what would be called and what it would cost. In Python `plan`
            of the result says it.
        progress: True shows a bar; a function is told the counts (`RunStats`).

    Raises:
        InputError: passages, bank or a setting is wrong; an output would replace what is read.
        UnknownNameError: a model, prompt, setting or query is not known; the bank does not have a query.
        MissingExtraError: what the model needs is not installed.
        GradingError: the model cannot be used; finished calls are in the cache.
        KeyboardInterrupt: Ctrl-C; calls in flight were finished, and are in the cache.
    """
    run = _Grading(model, prompt, asking, calls, queries, limit, output, give_up_after, dry_run, progress)
    run = run.kept(passages, bank, query_texts, documents)
    made = run.test_bank(bank, query_texts)
    if documents is not None:
        run = run.showing(documents)
    needed = _needed(measures, runs) if measures or runs is not None else None
    return run.over(passages, made, _files(passages), bank, needed=needed)


def regrade(
    graded: Passages,
    bank: Bank | None = None,
    *,
    model: str | Backend,
    old_bank: Bank | None = None,
    prompt: str | Sequence[str] = (),
    asking: Asking = Asking(),
    calls: Calls = Calls(),
    query_texts: File | Mapping[str, str] | None = None,
    queries: Iterable[str] | None = None,
    output: _File | None = None,
    dry_run: bool = False,
    progress: Progress = False,
) -> GradedRecords:
    """Grades the items that edits of the bank touched.

    Items whose words edits of the bank changed are graded anew in passages that this grader graded, new items are
    graded, and grades of what changed or left are taken out.

    Args:
        graded: records with grades, or their file.
        bank: the test bank. Edits are noted in the file of a bank that the review page changed.
        model: see `grade`, also for what is not named here.
        old_bank: the bank before edits that were not made in the review page.
        prompt: see `grade`.
        asking: see `grade`.
        calls: see `grade`.
        query_texts: see `grade`.
        queries: see `grade`.
        output: see `grade`.
        dry_run: see `grade`.
        progress: see `grade`.

    Raises:
        InputError: nothing says what changed in the bank, or as in `grade`.
        GradingError: as in `grade`; so are all others.
    """
    run = _Grading(model, prompt, asking, calls, queries, None, output, None, dry_run, progress)
    run = run.kept(graded, bank, old_bank, query_texts)
    made = run.test_bank(bank, query_texts)
    return run.over(graded, made, _files(graded), bank, change=_change(bank, made, old_bank))


def grade_support(
    answers: Any,
    collection: _File | Sequence[_File] | Collection | None = None,
    *,
    model: str | Backend,
    citations: int | Literal["first", "all"] = "first",
    query_texts: File | Mapping[str, str] | None = None,
    prompt: str | Sequence[str] = (),
    asking: Asking = Asking(),
    calls: Calls = Calls(),
    queries: Iterable[str] | None = None,
    output: _File | None = None,
    give_up_after: int | None = None,
    dry_run: bool = False,
    progress: Progress = False,
) -> GradedRecords:
    """Judges each sentence of generated answers by the documents that it cites.

    Args:
        answers: `Answer`s, files of reports or support labels, one or several, or records that this made of them.
        collection: the texts of cited documents: whatever `pool` takes as collection. Texts that reports bring along
            come first.
        model: see `grade`, also for what is not named here.
        citations: which citations of a sentence are judged: the `first`, `all`, or the first so many.
        query_texts: see `grade`.
        prompt: see `grade`.
        asking: see `grade`.
        calls: see `grade`.
        queries: see `grade`.
        output: see `grade`.
        give_up_after: see `grade`.
        dry_run: see `grade`.
        progress: see `grade`.

    Raises:
        InputError: answers, collection or a setting is wrong; an output would replace what is read.
        GradingError: as in `grade`; so are all others.
    """
    most = 1 if citations == "first" else citations
    if most != "all" and (not isinstance(most, int) or isinstance(most, bool) or most < 1):
        text = f"citations is {citations!r}; expected first, all, or a number from 1"
        raise InputError(text, settings=("citations",))
    run = _Grading(model, prompt, asking, calls, queries, None, output, give_up_after, dry_run, progress)
    several = [answers] if isinstance(answers, Answer) else listed(answers)
    texts_in = collection if isinstance(collection, list | tuple) else [collection]
    # An answer's file is no place for its grades.
    run = run.kept(None, query_texts, *texts_in, *several)
    records = support_records(several, collection)
    texts = query_texts_of(query_texts)
    with naming(*_files(several)):
        made = sentence_bank(records, texts)
    return run.over(records, made, _files(several), citations=most)


def _files(sources: Any) -> list[str]:
    """The names of the files among what is read."""
    several = sources if isinstance(sources, list | tuple) else [sources]
    return [os.fspath(one) for one in several if isinstance(one, str | os.PathLike)]


@dataclass(frozen=True)
class _Grading:
    """What all grading takes: see `grade`."""

    model: str | Backend
    prompts: str | Sequence[str]
    asking: Asking
    calls: Calls
    queries: Iterable[str] | None
    limit: int | None
    output: _File | None
    give_up_after: int | None
    dry_run: bool
    progress: Progress
    manifest: str | None = None  # the file that says what made the grades; None where no file has them

    def kept(self, passages: Any, *read: Any) -> _Grading:
        """The same with all names of files and prompts, after a look that none that is read would be written."""
        refuse_plain(self.model, self.asking, self.calls)
        refuse_table(self.output)
        wanted = None if self.queries is None else [str(name) for name in self.queries]
        if wanted == [] or (self.limit is not None and self.limit < 1):
            raise InputError("name at least one query, and a limit of at least 1", settings=("queries", "limit"))
        model = self.model
        prompts = (self.prompts,) if isinstance(self.prompts, str) else tuple(self.prompts)
        manifest = file_beside(self.output, None, ".manifest.json")
        calls = dataclasses.replace(self.calls, cache=file_beside(self.output, self.calls.cache, ".cache.sqlite"))
        scripted = [model.removeprefix("scripted:")] if isinstance(model, str) and model.startswith("scripted:") else []
        read = (*read, calls.prices, *scripted, *(name for name in prompts if name.endswith(".toml")))
        # Grades may be added to the file that is graded, but not to a part of it: the rest would be lost.
        keep_inputs(self.output, None if wanted is None and self.limit is None else passages, *read)
        keep_inputs(manifest, passages, *read)
        keep_cache(calls.cache, self.output, manifest, passages, *read)
        return dataclasses.replace(self, prompts=prompts, queries=wanted, calls=calls, manifest=manifest)

    def showing(self, source: _File) -> _Grading:
        """The same, with the documents that are shown beside answers."""
        from rubric_measures.grading.pairwise import documents_text, load_references

        found = load_references(source)
        shown = {query_id: documents_text(those) for query_id, those in found.items() if those}
        return dataclasses.replace(self, asking=dataclasses.replace(self.asking, document_texts=shown or None))

    def test_bank(self, bank: Bank | None, query_texts: File | Mapping[str, str] | None) -> TestBank:
        """The bank, with the texts of queries; one of aspects, or without items, where the prompts need none."""
        texts = {} if query_texts is None else query_texts_of(query_texts)
        if bank is not None:
            made = load_bank(bank)
            return replace(made, query_texts={**texts, **made.query_texts}, edited={})
        if not texts or not self.prompts:
            raise InputError(
                "name the test bank, or, for labels and aspects, the texts of the queries and a prompt",
                settings=("bank", "query_texts", "prompt"),
            )
        if aspects := [name for name in self.prompts if load_prompt(name).parser == "aspects"]:
            from rubric_measures.grading.generation import aspect_bank

            return aspect_bank(texts, aspects[0])
        return TestBank(dict.fromkeys(texts, ()), dict(texts))

    def over(
        self,
        passages: Passages,
        bank: TestBank,
        files: Sequence[str],
        named: Bank | None = None,
        **which: Any,
    ) -> GradedRecords:
        """Grades passages.

        Args:
            passages: the passages.
            bank: the items.
            files: where the passages are from, and `named` where the bank is from: for errors and the manifest.
            named: see `files`.
            which: which pairs are graded, where not all are; see `GradingEngine`.
        """
        from rubric_measures.grading import grader

        runner = self.calls.to(self.model)
        source = passages_of(passages, "grading")
        with fewer_collections():
            groups = _part(source, bank, self.queries, self.limit)
            engine = grader.GradingEngine(
                runner.backend, bank, tuple(self.prompts), self.asking, give_up_after=self.give_up_after, **which
            )
            pairs = engine.check(groups)
            if self.dry_run:
                with dataclasses.replace(self.calls, max_calls=0).asking(runner) as planned:
                    plan = grader.estimate(engine, groups, planned)
                if engine.needed is not None:
                    tell("these are the most: what a grade settles is asked no more")
                return grader.GradedRecords([], report=grader.GradingReport(), plan=plan)
            if self.output is not None and self.manifest is None:
                text = "the records go to standard output; nothing keeps what made the grades"
                tell(text if self.calls.is_kept else f"{text}, nor the replies (name a cache)")
            if (there := os.fspath(self.output or "")) and source.path not in ("", there) and Path(there).is_file():
                tell(f"{there}: was there, and is replaced; to add grades to a file, name it as the passages")
            report = grader.GradingReport()
            total = pairs if engine.change is None and engine.needed is None else None
            with self.calls.asking(runner, self.progress, total, stats=report.run) as opened:
                # Closed before the cache is, also where the output cannot be written.
                with contextlib.closing(engine.grade_records(groups, opened, report)) as graded:
                    records = grader.GradedRecords.kept(graded, self.output, report=report)
                given = ", ".join(files)
                if self.manifest:
                    names = {"passages": given, "bank": "".join(_files(named)), "output": "".join(_files(self.output))}
                    with atomic_writer(self.manifest) as stream:
                        stream.write(canonical_json(grader.make_manifest(engine, opened, report, names)) + "\n")
                greedy = self.asking.temperature == 0 or "temperature" in (self.asking.option or {})
                deterministic = greedy and getattr(runner.backend, "deterministic", False)
                grader.note_report(report, deterministic=deterministic, is_kept=self.calls.is_kept)
                return records


def _needed(measures: Measures, runs: Runs | None) -> NeededFor:
    """The measures and runs that grades are asked for.

    Raises:
        InputError: runs are named without measures.
    """
    if not measures:
        raise InputError("runs say which grades measures need; name the measures", settings=("measures", "runs"))
    from rubric_measures.grading.lazy import NeededFor

    read = None if runs is None else tuple(read_runs(runs))
    return NeededFor(tuple(parse_measures(measures)), read)


def _change(bank: Bank | None, made: TestBank, old_bank: Bank | None) -> BankChange:
    """What edits did to the bank.

    Raises:
        InputError: nothing says it.
    """
    from rubric_measures.grading.recording import BankChange

    # Only files of this format have a place for what the review page notes of edits.
    if bank is None or (old_bank is None and not (isinstance(bank, str | os.PathLike) and is_bank(os.fspath(bank)))):
        text = "only the file of a bank that was edited in a review notes edits; name it, or the banks before and after"
        raise InputError(text, settings=("only_changed", "bank", "old_bank"))
    return BankChange.of(made, None if old_bank is None else load_bank(old_bank))


def _part(
    source: PassageRecords, bank: TestBank, queries: Iterable[str] | None, limit: int | None
) -> list[QueryPassages]:
    """The passages to grade: of some queries, the first of each; a wanted query that is not there is an error."""
    wanted, found = None if queries is None else set(queries), {group.query_id for group in source}
    for name in queries or ():
        if name not in found:
            raise UnknownNameError("query", name, found, hint="(there are no passages of it)")
    groups = [group for group in source if wanted is None or group.query_id in wanted]
    for group in groups:
        # Says where a query stands that the bank does not have.
        bank.for_query(group.query_id, group.at(source.name))
    parts = [group._replace(passages=list(group.passages)[:limit]) for group in groups]
    others = len(found) - len({group.query_id for group in groups})
    left_out = sum(len(group.passages) - len(part.passages) for group, part in zip(groups, parts, strict=True))
    if others or left_out:
        text = f"left out, as was asked: {others} queries, {left_out} passages of the others"
        warn(text, settings=("queries", "limit"))
    return parts


_File = str | os.PathLike[str]
_Texts: TypeAlias = "str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | Collection"


_SETTINGS = ("support",)


def support_records(sources: Any, collection: _Texts | None) -> list[QueryPassages]:
    """The records of answers and of the documents that they cite, with the texts that there are.

    Args:
        sources: one or several: files of reports or of support labels, graded records of cited answers or their file,
            or `Answer`s.
        collection: where the texts of cited documents come from, beside those that reports bring along.

    Raises:
        InputError: something else is given, an answer comes twice, or it has no sentences.
    """
    from rubric_measures.records.merging import merge_records

    several = [sources] if isinstance(sources, Answer) else listed(sources)
    answers = [one for one in several if isinstance(one, Answer)]
    parts = [groups] if (groups := [one for one in several if isinstance(one, QueryPassages)]) else []
    for source in several:
        if not isinstance(source, Answer | QueryPassages):
            with file_path(source) as path:
                found = _support_read(path)
            if found and isinstance(found[0], Answer):
                answers += found
            else:
                parts.append(found)
    texts: dict[str, str] = {}
    if answers:
        with naming(*several):
            parts.append(_of_answers(answers, texts))
    merged = merge_records(parts) if len(parts) > 1 else parts[0] if parts else []
    if without := [group.query_id for group in merged if not cited_answers(group)]:
        problem = "the records hold no answers with sentences and citations"
        raise InputError(f"query {without[0]!r}: {problem}", settings=_SETTINGS)
    return _with_texts(merged, texts, collection)


def sentence_bank(groups: Iterable[QueryPassages], query_texts: Mapping[str, str]) -> TestBank:
    """The sentences of all answers as a bank."""

    return TestBank({group.query_id: sentence_items(cited_answers(group)) for group in groups}, dict(query_texts))


def _support_read(path: str) -> list[Any]:
    """The answers of a file, or the records that it holds."""
    from rubric_measures.formats.support import read_support_labels, records_of_support_labels

    content = content_of(path)
    if content == "records":
        return load_graded(path)
    if content == "support labels":
        with naming(path):
            return records_of_support_labels(read_support_labels(path))
    return list(read_answers(path, keep_lost=True))


def _of_answers(answers: Sequence[Answer], texts: dict[str, str]) -> list[QueryPassages]:
    """The records of answers; the texts of documents that stand beside them are put into `texts`."""
    from rubric_measures.formats.support import records_of_cited_answers

    plain = [answer for answer in answers if answer.text.strip() and not answer.sentences]
    if plain:
        raise InputError(
            f"{len(plain)} answers have no sentences, and so no citations (such as that of run {plain[0].run_id!r} to "
            f"query {plain[0].query_id!r}); give reports, with a list of sentences",
            settings=_SETTINGS,
        )
    answers = _by_own_texts(answers)
    for answer in answers:
        texts.update(answer.documents)
    return records_of_cited_answers(
        CitedAnswer.of(answer.query_id, answer.run_id, answer.sentences, answer.citations) for answer in answers
    )


def _by_own_texts(answers: Sequence[Answer]) -> Sequence[Answer]:
    """The answers; documents of which they have different texts are called after their texts, too: `ID@` and a hash."""
    names: dict[str, dict[str, str]] = {}
    for answer in answers:
        for doc_id, text in answer.documents:
            names.setdefault(doc_id, {})[text] = f"{doc_id}@{answer_doc_id(text)[:8]}"
    several = {doc_id: found for doc_id, found in names.items() if len(found) > 1}
    if not several:
        return answers
    warn(
        "%d documents (such as %s) have different texts in the answers; each sentence is judged by that of its own "
        "answer, and such a document is called %s@ and the beginning of its text's md5",
        *(len(several), min(several), min(several)),
    )
    renamed = []
    for answer in answers:
        own = {one: several[one][text] for one, text in answer.documents if one in several}
        documents = tuple((own.get(doc_id, doc_id), text) for doc_id, text in answer.documents)
        citations = tuple(tuple(own.get(doc_id, doc_id) for doc_id in cited) for cited in answer.citations)
        renamed.append(answer._replace(documents=documents, citations=citations))
    return renamed


def _with_texts(
    groups: Sequence[QueryPassages], known: Mapping[str, str], collection: _Texts | None
) -> list[QueryPassages]:
    """The records with the texts of their documents; those that have none are counted."""

    bare = dict.fromkeys(
        (group.query_id, passage.doc_id)
        for group in groups
        for passage in group.passages
        if not passage.text.strip() and cited_answer(group.query_id, passage) is None
    )
    lacking = list(dict.fromkeys(doc_id for _, doc_id in bare if doc_id not in known))
    texts = {**({} if collection is None else _texts_of(lacking, collection)), **known}
    filled = {pair: text for pair in bare if (text := texts.get(pair[1], "")).strip()}
    if lost := bare.keys() - filled.keys():
        warn(
            "%d cited documents have no text (such as %s), so nobody can grade their citations: these have no grade, "
            "and the status failed where they are asked for",
            *(len({doc_id for _, doc_id in lost}), min(lost)[1]),
            settings=("collection",),
        )

    def with_text(query_id: str, passage: GradedPassage) -> GradedPassage:
        text = filled.get((query_id, passage.doc_id))
        return passage if text is None else passage.replacing(text=text)

    return [group._replace(passages=[with_text(group.query_id, one) for one in group.passages]) for group in groups]


def _texts_of(doc_ids: Sequence[str], collection: _Texts) -> Mapping[str, str]:
    """The texts of documents in a collection."""
    from rubric_measures.corpora.collections import load_collection, texts_of

    known = load_collection(collection)
    if not known.has_docs():
        raise InputError(f"{known.source}: has no documents", settings=("collection",))
    return texts_of(known.docs_store(), doc_ids)
