"""Collections as ir_datasets knows them: a folder, graded records, or any ir_datasets id, with banks and grades.

Importing this module registers `rubric-measures/example`, `rubric-measures/example/items` and a pattern for folders and
files (`rubric-measures/PATH`, with `/items` or `/runs/NAME` behind it) with ir_datasets, so that `ir_datasets.load` and
`ir_datasets export` know them. `python -m rubric_measures.collection export ID docs|queries|qrels|scoreddocs` is the
export command of ir_datasets with this module imported.

A folder holds any of: `docs.jsonl` ({"doc_id", "text", "title"?}), `queries.tsv` (or .json, .jsonl), `qrels.txt`,
`questions.jsonl` and `nuggets.jsonl` (test banks), `runs/*.run`, `answers/*.jsonl` (reports), `graded*.jsonl`
(records); each may be gzipped.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import ir_datasets
from ir_datasets.formats import GenericQrel, TrecQrel

from rubric_measures.collection_files import DocsHandler, QrelsHandler, QueriesHandler, ScoredDocsHandler, read_docs
from rubric_measures.errors import InputError, RubricMeasuresError, UnknownNameError
from rubric_measures.files import open_binary
from rubric_measures.formats.bank import load_bank
from rubric_measures.formats.queries import read_queries
from rubric_measures.formats.reports import Answer, read_answers
from rubric_measures.formats.trec import Qrel, Run, make_run, read_qrels, read_run
from rubric_measures.formats.workbench import QueryPassages, load_graded
from rubric_measures.graded import BANK_DOC, Grades
from rubric_measures.records import TestBank
from rubric_measures.selection import GradeFilter, load_records

__all__ = ["Collection", "UnknownCollectionError", "example_folder", "load_collection", "main", "register"]

PREFIX = "rubric-measures"
_RATINGS = {
    0: "not answered or mentioned",
    1: "barely",
    2: "partly",
    3: "mostly",
    4: "well",
    5: "completely and precisely",
}


class UnknownCollectionError(InputError, KeyError):
    """No folder, file or ir_datasets id of that name (a KeyError, because that is what ir_datasets expects)."""

    def __str__(self) -> str:
        return str(self.args[0])


class Collection(ir_datasets.Dataset):  # type: ignore[misc]
    """An ir_datasets Dataset with rubric items and grades.

    As a Dataset it has docs_iter, docs_store, queries_iter, qrels_iter and scoreddocs_iter, as far as its source goes.
    qrels_iter gives one label a passage: the maximum grade (Rubric-Qrels) where passages are graded, else what people
    said; with `unit="item"` it gives one row an item, `iteration` being the item id. scoreddocs_iter gives one run.

    Attributes:
        source: the folder, file or id.
        judgments: what people said about passages.
        banks: name (`questions`, `nuggets`) -> test bank.
        runs: run_id -> retrieval run (also those inside records).
        answers: generated answers.
    """

    def __init__(self, source: str, parts: _Parts, *constituents: object) -> None:
        super().__init__(*constituents)
        self.source = source
        self._parts = parts

    @property
    def banks(self) -> Mapping[str, TestBank]:
        """Name (`questions`, `nuggets`) -> test bank."""
        return self._parts.banks

    @property
    def judgments(self) -> Sequence[Qrel]:
        """What people said: one row a (query, document), or more in diversity qrels."""
        return self._parts.judgments

    @property
    def runs(self) -> Mapping[str, Run]:
        """run_id -> retrieval run, sorted by id."""
        return self._parts.runs

    @property
    def answers(self) -> Sequence[Answer]:
        """Generated answers."""
        return self._parts.answers

    @property
    def grades(self) -> Grades | None:
        """The grades of the one grade set that the filter leaves, over the bank it belongs to; None without records."""
        return self._parts.grades

    @property
    def query_texts(self) -> Mapping[str, str]:
        """query_id -> text."""
        return {query.query_id: _query_text(query) for query in self.queries_iter()} if self.has_queries() else {}


def _query_text(query: Any) -> str:
    return str(query.default_text() if hasattr(query, "default_text") else query[1])


class _Parts:
    """What a collection has besides ir_datasets' entities; everything is read when it is asked for."""

    banks: Mapping[str, TestBank] = {}
    runs: Mapping[str, Run] = {}
    answers: Sequence[Answer] = ()
    judgments: Sequence[Qrel] = ()
    grades: Grades | None = None

    def item_rows(self) -> list[TrecQrel]:
        """One row a (passage, item), and a row of grade 0 for the document `*` for each item of the bank."""
        grades = self.grades
        if grades is None:
            return []
        rows = [TrecQrel(row.query_id, row.doc_id, row.relevance, row.iteration) for row in grades.items]
        for query in grades.queries.values():
            rows += [TrecQrel(query.query_id, BANK_DOC, 0, item.item_id) for item in query.items]
        return rows

    def label_rows(self) -> list[GenericQrel]:
        """Rubric-Qrels where passages are graded, else what people said."""
        grades = self.grades
        if grades is not None:
            return [GenericQrel(row.query_id, row.doc_id, row.relevance) for row in grades.qrels]
        return [GenericQrel(row.query_id, row.doc_id, row.relevance) for row in self.judgments]

    def run(self, name: str | None) -> Run:
        """The run called `name`, or the first by name."""
        runs = self.runs
        if name is None:
            return runs[min(runs)]
        if name not in runs:
            raise UnknownNameError("run", name, runs)
        return runs[name]


class _Folder(_Parts):
    """A folder of files."""

    def __init__(self, folder: Path, wanted: GradeFilter | None) -> None:
        self.folder = folder
        self.wanted = wanted
        self.docs = _first(folder, "docs.jsonl")
        self.queries = _first(folder, "queries.tsv", "queries.json", "queries.jsonl")
        self.qrels = _first(folder, "qrels.txt")
        self.bank_files = {
            name: path for name in ("questions", "nuggets") if (path := _first(folder, f"{name}.jsonl")) is not None
        }
        self.run_files = sorted([*folder.glob("runs/*.run"), *folder.glob("runs/*.run.gz")])
        self.answer_files = sorted([*folder.glob("answers/*.jsonl"), *folder.glob("answers/*.jsonl.gz")])
        self.graded = sorted([*folder.glob("graded*.jsonl"), *folder.glob("graded*.jsonl.gz")])

    def is_empty(self) -> bool:
        """Whether nothing in the folder belongs to a collection."""
        found = [self.docs, self.queries, self.qrels]
        return not (any(found) or self.bank_files or self.run_files or self.answer_files or self.graded)

    @cached_property
    def banks(self) -> Mapping[str, TestBank]:  # type: ignore[override]
        return {name: load_bank(path) for name, path in self.bank_files.items()}

    @cached_property
    def judgments(self) -> Sequence[Qrel]:  # type: ignore[override]
        return read_qrels(self.qrels) if self.qrels else ()

    @cached_property
    def runs(self) -> Mapping[str, Run]:  # type: ignore[override]
        runs: dict[str, Run] = {}
        for path in self.run_files:
            run = read_run(path)
            if runs.setdefault(run.run_id, run) is not run:
                raise InputError(f"{path}: another run of the folder is called {run.run_id!r} too")
        return dict(sorted(runs.items()))

    @cached_property
    def answers(self) -> Sequence[Answer]:  # type: ignore[override]
        return [answer for path in self.answer_files for answer in read_answers(path)]

    @cached_property
    def grades(self) -> Grades | None:  # type: ignore[override]
        if not self.graded:
            return None
        path = next((path for path in self.graded if path.name.startswith("graded.")), self.graded[0])
        if len(self.graded) > 1 and not path.name.startswith("graded."):
            names = ", ".join(path.name for path in self.graded)
            raise InputError(f"{self.folder}: has several graded files ({names}); load one of them by its path")
        return load_records(path, _bank_of(load_graded(path), self.banks, self.wanted), self.wanted)


class _Records(_Parts):
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
            texts[group.query_id] = known.get(group.query_id) or next((title for title in titles if title), "")
        return texts

    @cached_property
    def judgments(self) -> Sequence[Qrel]:  # type: ignore[override]
        rows = (
            Qrel(group.query_id, passage.doc_id, one.relevance)
            for group in self.groups
            for passage in group.passages
            for one in passage.judgments
            if one.query_id == group.query_id
        )
        return list(dict.fromkeys(rows))

    @cached_property
    def runs(self) -> Mapping[str, Run]:  # type: ignore[override]
        rows: dict[str, list[tuple[str, str, float]]] = {}
        for group in self.groups:
            for passage in group.passages:
                for place in passage.rankings:
                    if place.query_id == group.query_id:
                        rows.setdefault(place.method, []).append((group.query_id, passage.doc_id, place.score))
        return {run_id: make_run(run_id, members) for run_id, members in sorted(rows.items())}

    @cached_property
    def grades(self) -> Grades | None:  # type: ignore[override]
        return load_records(self.path, self.bank, self.wanted) if self.is_graded else None


class _Foreign(_Parts):
    """An ir_datasets id of somebody else."""

    def __init__(self, dataset: Any) -> None:
        self.dataset = dataset

    @cached_property
    def judgments(self) -> Sequence[Qrel]:  # type: ignore[override]
        if not self.dataset.has_qrels():
            return ()
        return [Qrel(row.query_id, row.doc_id, row.relevance) for row in self.dataset.qrels_iter()]


def _first(folder: Path, *names: str) -> Path | None:
    paths = (folder / f"{name}{packed}" for name in names for packed in ("", ".gz"))
    return next((path for path in paths if path.is_file()), None)


def _bank_of(
    groups: Sequence[QueryPassages], banks: Mapping[str, TestBank], wanted: GradeFilter | None
) -> TestBank | None:
    """The bank that grades belong to: the one of the wanted kind, else the first with a graded item."""
    kind = wanted.prompt_type or wanted.question_set if wanted is not None else None
    if kind == "nugget" and "nuggets" in banks:
        return banks["nuggets"]
    if kind in ("question", "question-bank") and "questions" in banks:
        return banks["questions"]
    entries = [entry for group in groups for passage in group.passages for entry in passage.exam_grades or ()]
    graded = {item for entry in entries for item in (*entry.correct_answered, *entry.wrong_answered)}
    return next((bank for bank in banks.values() if any(item.item_id in graded for item in bank)), None)


def load_collection(
    source: str | Path,
    *,
    bank: TestBank | None = None,
    wanted: GradeFilter | None = None,
    unit: str = "passage",
    run: str | None = None,
) -> Collection:
    """A folder, a file, or an ir_datasets id as a collection; files are read when they are asked for.

    Args:
        source: a folder (see the module), a file of graded records, a file of documents (JSON lines), or an id.
        bank: the test bank of a records file.
        wanted: which grades count where there are several sets.
        unit: the rows of qrels_iter: `passage` (labels) or `item` (one row a rubric item, for item measures).
        run: the run of scoreddocs_iter; the first by name if None.

    Raises:
        UnknownCollectionError: there is nothing of that name, or nothing in the folder.
        InputError: a file is not what it should be (now, or when it is read).
    """
    if unit not in ("passage", "item"):
        raise InputError(f"unit is {unit!r}; expected passage or item")
    name, path = str(source), Path(source)
    if path.is_dir():
        parts = _Folder(path, wanted)
        if parts.is_empty():
            raise UnknownCollectionError(f"{name}: holds no docs.jsonl, queries.tsv, qrels.txt, banks, runs or records")
        return Collection(name, parts, *_folder_handlers(parts, unit, run))
    if path.is_file():
        with open_binary(path) as stream:
            head = stream.read(4096).removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
        if head == b"{":
            return Collection(name, _Parts(), DocsHandler(lambda: read_docs(path)))
        records = _Records(path, bank, wanted)
        return Collection(name, records, *_record_handlers(records, unit, run))
    try:
        dataset = ir_datasets.load(name)
    except KeyError:
        raise UnknownCollectionError(f"{name}: no such folder, file or ir_datasets id") from None
    # The registry wraps what is registered, to add metadata.
    ours = (part for part in (dataset, *getattr(dataset, "_constituents", ())) if isinstance(part, Collection))
    return next(ours, None) or Collection(name, _Foreign(dataset), dataset)


def _qrels_handler(parts: _Parts, unit: str, graded: bool) -> QrelsHandler:
    if unit == "item":
        return QrelsHandler(parts.item_rows, TrecQrel, _RATINGS)
    return QrelsHandler(parts.label_rows, GenericQrel, _RATINGS if graded else {})


def _folder_handlers(parts: _Folder, unit: str, run: str | None) -> list[object]:
    handlers: list[object] = []
    docs, queries = parts.docs, parts.queries
    if docs is not None:
        handlers.append(DocsHandler(lambda: read_docs(docs)))
    if queries is not None:
        handlers.append(QueriesHandler(lambda: read_queries(queries)))
    elif parts.bank_files:
        handlers.append(QueriesHandler(lambda: _bank_queries(parts.banks)))
    if parts.graded or (parts.qrels is not None and unit == "passage"):
        handlers.append(_qrels_handler(parts, unit, bool(parts.graded)))
    if parts.run_files:
        handlers.append(ScoredDocsHandler(lambda: parts.run(run)))
    return handlers


def _bank_queries(banks: Mapping[str, TestBank]) -> dict[str, str]:
    texts: dict[str, str] = {}
    for bank in banks.values():
        for query_id in bank.items:
            texts[query_id] = texts.get(query_id) or bank.query_texts.get(query_id, "")
    return texts


def _record_handlers(records: _Records, unit: str, run: str | None) -> list[object]:
    handlers: list[object] = [DocsHandler(records.texts), QueriesHandler(records.query_texts)]
    if records.is_graded or (unit == "passage" and records.judgments):
        handlers.append(_qrels_handler(records, unit, records.is_graded))
    if records.runs:
        handlers.append(ScoredDocsHandler(lambda: records.run(run)))
    return handlers


def example_folder() -> Path:
    """The folder of the example collection: in the installed package, or in the source tree.

    Raises:
        InputError: it is in neither.
    """
    here = Path(__file__).parent
    for folder in (here / "resources" / "example", here.parent / "resources" / "example"):
        if folder.is_dir():
            return folder
    raise InputError("the example collection is not installed; reinstall the package or clone its repository")


def _from_id(dataset_id: str, groups: tuple[str, ...]) -> Collection:
    """What an id after `rubric-measures/` means: a path, or a path with `/items` or `/runs/NAME` behind it."""
    name = groups[0]
    base, _, view = name.rpartition("/")
    folder, _, between = base.rpartition("/")
    if name == "example" or name.startswith("example/"):
        root = example_folder()
        name = str(root) + name.removeprefix("example")
        base, folder = (str(root) + part.removeprefix("example") for part in (base, folder))
    if Path(name).exists():
        return load_collection(Path(name))
    if view == "items" and Path(base).exists():
        return load_collection(Path(base), unit="item")
    if between == "runs" and Path(folder).exists():
        return load_collection(Path(folder), run=view)
    raise UnknownCollectionError(f"{dataset_id}: no such folder or file")


def register() -> None:
    """Registers the ids with ir_datasets; a second call changes nothing."""
    registry = ir_datasets.registry
    marker = f"{PREFIX}/example"
    if any(pattern.pattern == _PATTERN for pattern, _ in registry._patterns):
        return
    registry.register_pattern(_PATTERN, _from_id)
    try:
        folder = example_folder()
    except InputError:
        return
    registry.register(marker, load_collection(folder))
    registry.register(f"{marker}/items", load_collection(folder, unit="item"))


_PATTERN = rf"^{PREFIX}/(.+)$"


def main(argv: Sequence[str] | None = None) -> int:
    """The command line of ir_datasets (export, lookup) with our ids; 2 when a file is wrong."""
    try:
        ir_datasets.main(list(sys.argv[1:] if argv is None else argv))
    except RubricMeasuresError as error:
        sys.stderr.write(f"rubric_measures: {error}\n")
        return 2
    return 0


register()

if __name__ == "__main__":
    raise SystemExit(main())
