"""Collections: documents, queries, banks and grades, as ir_datasets has them.

What stands behind a collection: a folder of files, a file of records, or an ir_datasets id; read when asked.

The handlers of a collection: what ir_datasets asks for documents, queries, judgments and rankings, read lazily.

Collections as ir_datasets knows them: a folder, graded records, or any ir_datasets id, with banks and grades.

Importing this module registers `rubric-measures/example` and a pattern for folders and files (`rubric-measures/PATH`)
with ir_datasets, so that `ir_datasets.load` and `ir_datasets export` know them. Behind any of them may stand a view:
`/items` (qrels of rubric items), `/nuggets` and `/questions` (the grades over that bank; `/nuggets/items` too),
`/judgments` (qrels of assessors), `/runs/NAME` (scoreddocs of that run). ir_datasets' export command with these ids:
`python -m rubric_measures.corpora.collections export ID docs|queries|qrels|scoreddocs`.

A folder holds any of: `docs`, `corpus` or `collection` (.jsonl, .tsv, .csv, .parquet, .json), `queries` (.tsv, .json,
.jsonl, .csv), `qrels.txt` (BEIR: `qrels/test.tsv`), `questions.jsonl` and `nuggets.jsonl` (test banks), `runs/*.run`,
`answers/*.jsonl` (reports), `graded*.jsonl` (records); each may be gzipped. Or it holds nothing but files of documents.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

import ir_datasets
from ir_datasets.formats import (
    BaseDocs,
    BaseQrels,
    BaseQueries,
    BaseScoredDocs,
    GenericDoc,
    GenericQrel,
    GenericQuery,
    GenericScoredDoc,
    TrecQrel,
)
from ir_datasets.indices import Docstore
from msgspec.structs import replace

from rubric_measures.base.errors import InputError, RubricMeasuresError, UnknownNameError
from rubric_measures.base.files import begins_records, paused_collector
from rubric_measures.formats.answers import read_answers
from rubric_measures.formats.banks import load_bank
from rubric_measures.formats.documents import is_documents, read_documents
from rubric_measures.formats.grade_tables import read_judgments
from rubric_measures.formats.queries import read_queries
from rubric_measures.formats.reports import Answer
from rubric_measures.formats.trec import distinct_run_names, read_run, runs_of_records
from rubric_measures.measures.grade_sets import GradeFilter
from rubric_measures.measures.grades import BANK_DOC, Grades
from rubric_measures.measures.loading import load_records
from rubric_measures.records.models import GradedPassage, QueryPassages, RankingEntry, iter_graded, load_graded
from rubric_measures.types.entities import Qrel, Run, TestBank

_LOG = logging.getLogger("rubric_measures")
# What files of a folder are called, the first one that is there.
_DOC_FILES = [
    f"{name}.{form}" for name in ("docs", "corpus", "collection") for form in ("jsonl", "tsv", "csv", "parquet", "json")
]
_QUERY_FILES = ("queries.tsv", "queries.json", "queries.jsonl", "queries.csv")


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
        docs = _first(folder, *_DOC_FILES)
        self.docs = [] if docs is None else [docs]
        self.queries = _first(folder, *_QUERY_FILES)
        self.qrels = _first(folder, "qrels.txt", "qrels/test.tsv")
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
        """`qrels.txt`, or BEIR's `qrels/test.tsv`."""
        return read_judgments(self.qrels) if self.qrels else ()

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


class _Ranked(NamedTuple):
    """A passage of records, of which all but the rankings is let go."""

    doc_id: str
    rankings: list[RankingEntry]


class RecordsSource(CollectionSource):
    """A file of records, without their grades, which take most of the room."""

    def __init__(self, path: Path, bank: TestBank | None, wanted: GradeFilter | None) -> None:
        self.path = path
        self.wanted = wanted
        self.bank = bank
        self.banks = {"bank": bank} if bank is not None else {}
        self.is_graded = False
        self.judgments: list[Qrel] = []
        self._texts: dict[str, str] = {}
        self._twice = ""
        self._titles: dict[str, str] = {}
        self._ranked: dict[str, list[Any]] = {}
        with paused_collector():
            for group in iter_graded(path):
                self._add(*group[:2])
                # See `iter_graded`.
                del group

    def _add(self, query_id: str, passages: Iterable[GradedPassage]) -> None:
        ranked = self._ranked.setdefault(query_id, [])
        self._titles.setdefault(query_id, "")
        for one in passages:
            self.is_graded = self.is_graded or bool(one.exam_grades or one.grades)
            if self._texts.setdefault(one.doc_id, one.text) != one.text:
                self._twice = one.doc_id
            ranked.append(_Ranked(one.doc_id, one.rankings))
            if not (judgments := one.judgments):
                continue
            # The workbench wants a title, so the id stands there where nobody knew one.
            titles = (said.title_query for said in judgments if said.title_query not in (query_id, None))
            self._titles[query_id] = self._titles[query_id] or next(titles, "") or ""
            if (label := one.judged(query_id)) is not None:
                self.judgments.append(Qrel(query_id, one.doc_id, label))

    def texts(self) -> dict[str, str]:
        """doc_id -> text."""
        if self._twice:
            raise InputError(f"{self.path}: document {self._twice!r} has two texts in different queries")
        return self._texts

    def query_texts(self) -> dict[str, str]:
        """query_id -> text: the bank's, else the title in a judgment, else empty (records hold no query texts)."""
        known = self.bank.query_texts if self.bank is not None else {}
        return {query_id: known.get(query_id) or title for query_id, title in self._titles.items()}

    @cached_property
    def runs(self) -> Mapping[str, Run]:  # type: ignore[override]
        """The rankings inside the records, by run."""
        groups = (QueryPassages(query_id, passages) for query_id, passages in self._ranked.items())
        return {run.run_id: run for run in runs_of_records(groups, str(self.path))}

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


class _Rows(Iterator[Any]):
    """An iterator that can also be asked for a position or a slice, as ir_datasets' document iterators can."""

    def __init__(self, rows: Sequence[Any]) -> None:
        self._rows = rows
        self._next = iter(rows)

    def __next__(self) -> Any:
        return next(self._next)

    def __getitem__(self, key: int | slice) -> Any:
        return _Rows(self._rows[key]) if isinstance(key, slice) else self._rows[key]


class _Store(Docstore):  # type: ignore[misc]
    """Documents by id, of files that are read when they are asked for."""

    def __init__(self, docs: DocsHandler) -> None:
        self._docs = docs
        self._id_field = "doc_id"

    @property
    def _doc_cls(self) -> Any:
        return self._docs.docs_cls()

    def keep(self, doc_ids: Iterable[str]) -> None:
        """Reads the files once for all that will be asked for; what is not among it takes another reading, of all."""
        self._docs.keep(doc_ids)

    def get_many_iter(self, doc_ids: Iterable[str]) -> Iterator[Any]:
        """The documents that exist, in the order asked for."""
        asked = list(doc_ids)
        found = self._docs.found(asked)
        return (found[doc_id] for doc_id in asked if doc_id in found)


class DocsHandler(BaseDocs):  # type: ignore[misc]
    """Documents: doc_id -> text or document; what was asked for is read on first use and kept.

    Args:
        read: gives the documents of some ids, or all of them (None).
    """

    def __init__(self, read: Callable[[frozenset[str] | None], Mapping[str, Any]]) -> None:
        self._read = read
        self._asked: frozenset[str] = frozenset()
        self._kept: Mapping[str, Any] = {}

    @cached_property
    def _docs(self) -> Mapping[str, Any]:
        return self._made(None)

    def _made(self, wanted: frozenset[str] | None) -> Mapping[str, Any]:
        found = self._read(wanted)
        has_titles = any(not isinstance(one, str) and one.title for one in found.values())
        if has_titles:
            return found
        return {key: GenericDoc(key, one if isinstance(one, str) else one.text) for key, one in found.items()}

    def keep(self, doc_ids: Iterable[str]) -> None:
        """Reads these documents, if not all are there."""
        self._asked = frozenset(doc_ids)
        if self._asked and "_docs" not in self.__dict__:
            self._kept = self._made(self._asked)

    def found(self, doc_ids: Iterable[str]) -> Mapping[str, Any]:
        """Documents by id, these among them: of the first question these alone."""
        if not self._asked:
            self.keep(doc_ids)
        is_kept = "_docs" not in self.__dict__ and self._asked.issuperset(doc_ids)
        return self._kept if is_kept else self._docs

    def docs_iter(self) -> Iterator[Any]:
        """All documents, in file order; the iterator takes positions and slices."""
        return _Rows(list(self._docs.values()))

    def docs_store(self) -> Docstore:
        """The documents by id."""
        return _Store(self)

    def docs_cls(self) -> Any:
        """The type of the documents."""
        return next((type(document) for document in self._docs.values()), GenericDoc)

    def docs_count(self) -> int:
        """How many there are."""
        return len(self._docs)


class QueriesHandler(BaseQueries):  # type: ignore[misc]
    """Queries: query_id -> text, read on first use and kept."""

    def __init__(self, read: Callable[[], Mapping[str, str]]) -> None:
        self._read = read

    @cached_property
    def _queries(self) -> list[GenericQuery]:
        return [GenericQuery(query_id, text) for query_id, text in self._read().items()]

    def queries_iter(self) -> Iterator[GenericQuery]:
        """All queries, in file order."""
        return iter(self._queries)

    def queries_count(self) -> int:
        """How many there are."""
        return len(self._queries)


class QrelsHandler(BaseQrels):  # type: ignore[misc]
    """Judgments, read on first use and kept."""

    def __init__(self, read: Callable[[], Sequence[Any]], row_type: type, definitions: Mapping[int, str]) -> None:
        self._read = read
        self._row_type = row_type
        self._definitions = dict(definitions)

    @cached_property
    def _rows(self) -> Sequence[Any]:
        return self._read()

    def qrels_iter(self) -> Iterator[Any]:
        """All judgments."""
        return iter(self._rows)

    def qrels_cls(self) -> Any:
        """The type of the rows."""
        return self._row_type

    def qrels_defs(self) -> dict[int, str]:
        """What the labels mean, where that is known."""
        return dict(self._definitions)

    def qrels_count(self) -> int:
        """How many there are."""
        return len(self._rows)


class ScoredDocsHandler(BaseScoredDocs):  # type: ignore[misc]
    """One run, read on first use."""

    def __init__(self, read: Callable[[], Run]) -> None:
        self._read = read

    def scoreddocs_iter(self) -> Iterator[GenericScoredDoc]:
        """The run's documents, query by query, best first."""
        for query_id, ranking in self._read().rankings.items():
            for doc_id, score in zip(ranking.doc_ids, ranking.scores, strict=True):
                yield GenericScoredDoc(query_id, doc_id, score)

    def scoreddocs_count(self) -> int:
        """How many there are."""
        return sum(len(ranking) for ranking in self._read().rankings.values())


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


def _of_parts(name: str, doc: str) -> Any:
    return property(attrgetter(f"_parts.{name}"), doc=doc)


class Collection(ir_datasets.Dataset):  # type: ignore[misc]
    """An ir_datasets Dataset with rubric items and grades.

    As a Dataset it has docs_iter, docs_store, queries_iter, qrels_iter and scoreddocs_iter, as far as its source goes.
    qrels_iter gives one label a passage: the maximum grade (Rubric-Qrels) where passages are graded, else what
    assessors said; `unit="item"` gives one row an item, `iteration` being the item id, and `unit="judgment"` what
    assessors said. scoreddocs_iter gives one run.

    Attributes:
        source: the folder, file or id.
    """

    def __init__(self, source: str, parts: CollectionSource, *constituents: object) -> None:
        super().__init__(*constituents)
        self.source = source
        self._parts = parts

    banks = _of_parts("banks", "Name (`questions`, `nuggets`) -> test bank.")
    judgments = _of_parts("judgments", "What assessors said: a row a (query, document), or more in diversity qrels.")
    runs = _of_parts("runs", "run_id -> retrieval run, sorted by id.")
    answers = _of_parts("answers", "Generated answers.")
    grades = _of_parts("grades", "The grades of the one grade set that is left, over its bank; None without records.")

    @property
    def query_texts(self) -> Mapping[str, str]:
        """query_id -> text."""
        queries = self.queries_iter() if self.has_queries() else ()
        return {one.query_id: str(one.default_text() if hasattr(one, "default_text") else one[1]) for one in queries}


def opened_collection(collection: Any) -> Any:
    """The collection that an argument of a public function names: one file or several, a folder, an id, or itself.

    Raises:
        InputError: it is none of these; see also `load_collection`.
    """
    several = list(collection) if isinstance(collection, list | tuple) else [collection]
    if several and all(isinstance(one, str | os.PathLike) for one in several):
        return load_collection(list(map(os.fspath, several)))
    if collection is not None and not hasattr(collection, "has_docs"):
        problem = (
            f"collection: {collection!r:.60} is none; give a folder, a file, an id of ir_datasets, or a Collection"
        )
        raise InputError(problem, settings=("collection",))
    return collection


def load_collection(
    source: str | Path | Sequence[str | Path],
    *,
    bank: TestBank | None = None,
    wanted: GradeFilter | None = None,
    unit: str = "passage",
    run: str | None = None,
) -> Collection:
    """A folder, a file, or an ir_datasets id as a collection; files are read when they are asked for.

    Args:
        source: a folder (see the module), a file of graded records, a file of documents, or an id; or several files of
            documents, in any of the forms of `formats.documents`.
        bank: the test bank of a records file.
        wanted: which grades count where there are several sets.
        unit: the rows of qrels_iter: `passage` (labels), `item` (one row a rubric item, for item measures) or
            `judgment` (what assessors said, also where passages are graded).
        run: the run of scoreddocs_iter; the first by name if None.

    Raises:
        UnknownCollectionError: there is nothing of that name, or nothing in the folder.
        InputError: a file is not what it should be (now, or when it is read).
    """
    if unit not in ("passage", "item", "judgment"):
        raise InputError(f"unit is {unit!r}; expected passage, item or judgment")
    if not isinstance(source, str | Path):
        paths = list(map(Path, source))
        if len(paths) > 1:
            for path in paths:
                if not path.is_file():
                    raise UnknownCollectionError(f"{path}: no such file; several are files of documents")
            return Collection(
                " ".join(map(str, paths)), CollectionSource(), DocsHandler(partial(read_documents, paths))
            )
        source = str(source[0])
    name, path = str(source), Path(source)
    if path.is_dir():
        parts = FolderSource(path, wanted)
        if not parts.files:
            raise UnknownCollectionError(f"{name}: holds no documents, queries.tsv, qrels.txt, banks, runs or records")
        return Collection(name, parts, *_folder_handlers(parts, unit, run))
    if path.is_file():
        if not begins_records(path):
            return Collection(name, CollectionSource(), DocsHandler(partial(read_documents, [path])))
        records = RecordsSource(path, bank, wanted)
        return Collection(name, records, *_record_handlers(records, unit, run))
    try:
        dataset = ir_datasets.load(name)
    except KeyError:
        raise UnknownCollectionError(f"{name}: no such folder, file or ir_datasets id") from None
    # The registry wraps what is registered, to add metadata.
    ours = (part for part in (dataset, *getattr(dataset, "_constituents", ())) if isinstance(part, Collection))
    return next(ours, None) or Collection(name, DatasetSource(dataset), dataset)


def _qrels_handler(parts: CollectionSource, unit: str, graded: bool) -> QrelsHandler:
    if unit == "item":
        return QrelsHandler(parts.item_rows, TrecQrel, _RATINGS)
    if unit == "judgment" or not graded:
        return QrelsHandler(parts.judgment_rows, GenericQrel, {})
    return QrelsHandler(parts.label_rows, GenericQrel, _RATINGS)


def _folder_handlers(parts: FolderSource, unit: str, run: str | None) -> list[object]:
    handlers: list[object] = []
    docs, queries = parts.docs, parts.queries
    if docs:
        handlers.append(DocsHandler(partial(read_documents, docs)))
    if queries is not None:
        handlers.append(QueriesHandler(lambda: read_queries(queries)))
    elif parts.bank_files:
        handlers.append(QueriesHandler(lambda: _bank_queries(parts.banks)))
    if parts.qrels is not None if unit == "judgment" else parts.graded or (parts.qrels is not None and unit != "item"):
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


def _record_handlers(records: RecordsSource, unit: str, run: str | None) -> list[object]:
    handlers: list[object] = [DocsHandler(lambda _: records.texts()), QueriesHandler(records.query_texts)]
    if records.judgments if unit == "judgment" else records.is_graded or (unit != "item" and records.judgments):
        handlers.append(_qrels_handler(records, unit, records.is_graded))
    if records.runs:
        handlers.append(ScoredDocsHandler(lambda: records.run(run)))
    return handlers


def example_folder() -> Path:
    """The folder of the example collection: in the installed package, or in the source tree.

    Raises:
        InputError: it is in neither.
    """
    here = Path(__file__).parents[1]
    for folder in (here / "resources" / "example", here.parent / "resources" / "example"):
        if folder.is_dir():
            return folder
    raise InputError("the example collection is not installed; reinstall the package or clone its repository")


def _from_id(dataset_id: str, groups: tuple[str, ...]) -> Collection:
    """What an id after `rubric-measures/` means: a path, maybe with views behind it."""
    path, views = _path_and_views(groups[0])
    if path is None:
        raise UnknownCollectionError(f"{dataset_id}: no such folder or file")
    options: dict[str, Any] = {}
    while views:
        view = views.pop(0)
        if view == "runs" and views:
            options["run"] = views.pop(0)
        elif view in ("items", "judgments"):
            options["unit"] = view.removesuffix("s")
        elif view in ("questions", "nuggets"):
            options["wanted"] = GradeFilter(prompt_type=view.removesuffix("s"))
        else:
            raise UnknownCollectionError(f"{dataset_id}: no such folder or file")
    return load_collection(path, **options)


def _path_and_views(name: str) -> tuple[Path | None, list[str]]:
    """The folder or file that an id names, None where there is none; the views behind it."""
    if name == "example" or name.startswith("example/"):
        name = str(example_folder()) + name.removeprefix("example")
    views: list[str] = []
    while not Path(name).exists():
        name, slash, view = name.rpartition("/")
        if not slash or not name:
            return None, []
        views.insert(0, view)
    if views and name.endswith("/runs"):
        # The folder of runs is there too, but a run is a view of its collection.
        name, views = name.removesuffix("/runs"), ["runs", *views]
    return Path(name), views


def files_of(source: str | Path) -> list[Path]:
    """The files that a collection is read from: those of a folder, or the file; none of other packages' ids."""
    path: Path | None = Path(source)
    if path is not None and not path.exists():
        prefix, _, name = str(source).partition("/")
        path = _path_and_views(name)[0] if prefix == PREFIX and name else None
    if path is not None and path.is_dir():
        return FolderSource(path, None).files
    return [] if path is None else [path]


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
    for view in ("/items", "/nuggets", "/nuggets/items", "/judgments"):
        registry.register(marker + view, _from_id(marker + view, (f"example{view}",)))


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
