"""What stands behind a collection: a folder of files, a file of records, or an ir_datasets id; read when asked."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from ir_datasets.formats import GenericQrel, TrecQrel

from rubric_measures.base.errors import InputError, UnknownNameError
from rubric_measures.corpora._documents import is_documents
from rubric_measures.formats.banks import load_bank
from rubric_measures.formats.reports import Answer, read_answers
from rubric_measures.formats.trec import distinct_run_names, read_qrels, read_run
from rubric_measures.measures.grade_sets import GradeFilter
from rubric_measures.measures.grades import BANK_DOC, Grades
from rubric_measures.measures.loading import load_records
from rubric_measures.records.files import load_graded
from rubric_measures.records.models import runs_of_records
from rubric_measures.types.entities import Qrel, Run, TestBank

_LOG = logging.getLogger("rubric_measures")


class CollectionSource:
    """What a collection has besides ir_datasets' entities; everything is read when it is asked for."""

    banks: Mapping[str, TestBank] = {}
    runs: Mapping[str, Run] = {}
    answers: Sequence[Answer] = ()
    judgments: Sequence[Qrel] = ()
    grades: Grades | None = None

    def item_rows(self) -> list[TrecQrel]:
        """One row a (passage, item), and rows of grade 0 for the document `*`: each item of the bank, and the scale."""
        grades = self.grades
        if grades is None:
            return []
        rows = [TrecQrel(row.query_id, row.doc_id, row.relevance, row.iteration) for row in grades.items]
        for query in grades.queries.values():
            rows += [TrecQrel(query.query_id, BANK_DOC, 0, item.item_id) for item in query.items]
        return rows

    def label_rows(self) -> list[GenericQrel]:
        """Rubric-Qrels: the maximum grade of each graded passage."""
        rows = self.grades.qrels if self.grades is not None else []
        return [GenericQrel(row.query_id, row.doc_id, row.relevance) for row in rows]

    def judgment_rows(self) -> list[GenericQrel]:
        """What assessors said."""
        return [GenericQrel(row.query_id, row.doc_id, row.relevance) for row in self.judgments]

    def run(self, name: str | None) -> Run:
        """The run called `name`, or the first by name."""
        runs = self.runs
        if name is None:
            return runs[min(runs)]
        if name not in runs:
            raise UnknownNameError("run", name, runs)
        return runs[name]


class FolderSource(CollectionSource):
    """A folder of files."""

    def __init__(self, folder: Path, wanted: GradeFilter | None) -> None:
        self.folder = folder
        self.wanted = wanted
        docs = _first(folder, "docs.jsonl", "corpus.jsonl", "docs.tsv", "collection.tsv")
        self.docs = [] if docs is None else [docs]
        self.queries = _first(folder, "queries.tsv", "queries.json", "queries.jsonl")
        self.qrels = _first(folder, "qrels.txt")
        self.bank_files = {
            name: path for name in ("questions", "nuggets") if (path := _first(folder, f"{name}.jsonl")) is not None
        }
        self.run_files = sorted([*folder.glob("runs/*.run"), *folder.glob("runs/*.run.gz")])
        self.answer_files = sorted([*folder.glob("answers/*.jsonl"), *folder.glob("answers/*.jsonl.gz")])
        self.graded = sorted([*folder.glob("graded*.jsonl"), *folder.glob("graded*.jsonl.gz")])
        if not self.files:
            # Nothing but documents, in several files.
            files = sorted(path for path in folder.iterdir() if path.is_file() and not path.name.startswith("."))
            self.docs = [path for path in files if is_documents(path)]
            other = [path.name for path in files if path not in self.docs]
            if self.docs and other:
                text = "%s: %d of %d files hold no documents and are left out (such as %s)"
                _LOG.warning(text, folder, len(other), len(files), other[0], extra={"once": True})

    @property
    def files(self) -> list[Path]:
        """What of the folder belongs to the collection; empty where nothing does."""
        single = [path for path in (self.queries, self.qrels) if path is not None]
        return [*self.docs, *single, *self.bank_files.values(), *self.run_files, *self.answer_files, *self.graded]

    @cached_property
    def banks(self) -> Mapping[str, TestBank]:  # type: ignore[override]
        """`questions.jsonl` and `nuggets.jsonl`, by name."""
        return {name: load_bank(path) for name, path in self.bank_files.items()}

    @cached_property
    def judgments(self) -> Sequence[Qrel]:  # type: ignore[override]
        """`qrels.txt`."""
        return read_qrels(self.qrels) if self.qrels else ()

    @cached_property
    def runs(self) -> Mapping[str, Run]:  # type: ignore[override]
        """`runs/*.run`, by name."""
        runs = [read_run(path) for path in self.run_files]
        names = distinct_run_names([run.run_id for run in runs], self.run_files)
        return {name: replace(run, run_id=name) for name, run in sorted(zip(names, runs, strict=True))}

    @cached_property
    def answers(self) -> Sequence[Answer]:  # type: ignore[override]
        """The generated answers of `answers/*.jsonl`."""
        return [answer for path in self.answer_files for answer in read_answers(path)]

    @cached_property
    def grades(self) -> Grades | None:  # type: ignore[override]
        """The grades of `graded*.jsonl`; None where there are none."""
        if not self.graded:
            return None
        path = next((path for path in self.graded if path.name.startswith("graded.")), self.graded[0])
        if len(self.graded) > 1 and not path.name.startswith("graded."):
            names = ", ".join(path.name for path in self.graded)
            raise InputError(f"{self.folder}: has several graded files ({names}); load one of them by its path")
        return load_records(path, _bank_of(path, self.banks, self.wanted), self.wanted)


class RecordsSource(CollectionSource):
    """A file of graded (or ungraded) records."""

    def __init__(self, path: Path, bank: TestBank | None, wanted: GradeFilter | None) -> None:
        self.path = path
        self.wanted = wanted
        self.bank = bank
        self.groups = load_graded(path)
        passages = [passage for group in self.groups for passage in group.passages]
        self.is_graded = any(passage.exam_grades or passage.grades for passage in passages)
        self.banks = {"bank": bank} if bank is not None else {}

    def texts(self) -> dict[str, str]:
        """doc_id -> text."""
        texts: dict[str, str] = {}
        for group in self.groups:
            for passage in group.passages:
                if texts.setdefault(passage.doc_id, passage.text) != passage.text:
                    raise InputError(f"{self.path}: document {passage.doc_id!r} has two texts in different queries")
        return texts

    def query_texts(self) -> dict[str, str]:
        """query_id -> text: the bank's, else the title in a judgment, else empty (records hold no query texts)."""
        known = self.bank.query_texts if self.bank is not None else {}
        texts = {}
        for group in self.groups:
            titles = (one.title_query for passage in group.passages for one in passage.judgments)
            # The workbench wants a title, so the id stands there where nobody knew one.
            said = (title for title in titles if title and title != group.query_id)
            texts[group.query_id] = known.get(group.query_id) or next(said, "")
        return texts

    @cached_property
    def judgments(self) -> Sequence[Qrel]:  # type: ignore[override]
        """What assessors said, inside the records or the dataset."""
        judged = (
            (group.query_id, passage.doc_id, passage.judged(group.query_id))
            for group in self.groups
            for passage in group.passages
        )
        return [Qrel(query_id, doc_id, label) for query_id, doc_id, label in judged if label is not None]

    @cached_property
    def runs(self) -> Mapping[str, Run]:  # type: ignore[override]
        """The rankings inside the records, by run."""
        return {run.run_id: run for run in runs_of_records(self.groups, str(self.path))}

    @cached_property
    def grades(self) -> Grades | None:  # type: ignore[override]
        """The grades of the records; None where nothing is graded."""
        return load_records(self.path, self.bank, self.wanted) if self.is_graded else None


class DatasetSource(CollectionSource):
    """Another package's ir_datasets id."""

    def __init__(self, dataset: Any) -> None:
        self.dataset = dataset

    @cached_property
    def judgments(self) -> Sequence[Qrel]:  # type: ignore[override]
        """What assessors said, inside the records or the dataset."""
        if not self.dataset.has_qrels():
            return ()
        return [Qrel(row.query_id, row.doc_id, row.relevance) for row in self.dataset.qrels_iter()]


def _first(folder: Path, *names: str) -> Path | None:
    paths = (folder / f"{name}{packed}" for name in names for packed in ("", ".gz"))
    return next((path for path in paths if path.is_file()), None)


def _bank_of(path: Path, banks: Mapping[str, TestBank], wanted: GradeFilter | None) -> TestBank | None:
    """The bank that grades belong to: the one of the wanted kind, else the first with an item of the first grades."""
    kind = wanted.prompt_type or wanted.question_set if wanted is not None else None
    if kind == "nugget" and "nuggets" in banks:
        return banks["nuggets"]
    if kind in ("question", "question-bank") and "questions" in banks:
        return banks["questions"]
    for group in load_graded(path):
        entries = [entry for passage in group.passages for entry in passage.exam_grades or ()]
        graded = {item for entry in entries for item in (*entry.correct_answered, *entry.wrong_answered)}
        items = {name: bank.items.get(group.query_id, ()) for name, bank in banks.items()}
        found = next((name for name, members in items.items() if any(item.item_id in graded for item in members)), None)
        if found is not None:
            return banks[found]
    return None
