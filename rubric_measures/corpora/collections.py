"""Collections: documents, queries, banks and grades, as ir_datasets has them.

Importing this module registers `rubric-measures/example` and a pattern for folders and files (`rubric-measures/PATH`)
with ir_datasets, so that `ir_datasets.load` and `ir_datasets export` know them. Behind any of them may stand a view:
`/items` (qrels of rubric items), `/nuggets` and `/questions` (the grades over that bank; `/nuggets/items` too),
`/judgments` (qrels of assessors). ir_datasets' export command with these ids:
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
from functools import cache, cached_property, partial
from operator import attrgetter
from pathlib import Path
from typing import Any

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

from rubric_measures.base.errors import InputError, RubricMeasuresError
from rubric_measures.base.files import begins_records, paused_collector
from rubric_measures.corpora.pooling import by_query
from rubric_measures.formats.answers import read_answers
from rubric_measures.formats.banks import load_bank
from rubric_measures.formats.documents import is_documents, read_documents
from rubric_measures.formats.queries import read_queries
from rubric_measures.formats.reports import Answer
from rubric_measures.formats.trec import runs_of_files, runs_of_records
from rubric_measures.measures.grade_sets import Grader, read_judgments
from rubric_measures.measures.grades import BANK_DOC, Grades
from rubric_measures.measures.loading import load_records
from rubric_measures.records.models import QueryPassages, iter_graded, load_graded
from rubric_measures.types.entities import Qrel, Run, TestBank

_LOG = logging.getLogger("rubric_measures")
PREFIX = "rubric-measures"
# What files of a folder are called; of those in `_ONE_OF` the first one that is there counts.
_FILES: Mapping[str, Sequence[str]] = {
    "docs": [
        f"{name}.{form}"
        for name in ("docs", "corpus", "collection")
        for form in ("jsonl", "tsv", "csv", "parquet", "json")
    ],
    "queries": ("queries.tsv", "queries.json", "queries.jsonl", "queries.csv"),
    "qrels": ("qrels.txt", "qrels/test.tsv"),
    "questions": ("questions.jsonl",),
    "nuggets": ("nuggets.jsonl",),
    "runs": ("runs/*.run",),
    "answers": ("answers/*.jsonl",),
    "graded": ("graded*.jsonl",),
}
_BANKS = ("questions", "nuggets")
_ONE_OF = ("docs", "queries", "qrels", *_BANKS)


class UnknownCollectionError(InputError, KeyError):
    """No folder, file or ir_datasets id of that name (a KeyError, because that is what ir_datasets expects)."""

    def __str__(self) -> str:
        return str(self.args[0])


class _Rows(Iterator[Any]):
    """An iterator that can also be asked for a position or a slice, as ir_datasets' document iterators can."""

    def __init__(self, rows: Sequence[Any]) -> None:
        self._rows = rows
        self._next = iter(rows)

    def __next__(self) -> Any:
        return next(self._next)

    def __getitem__(self, key: int | slice) -> Any:
        return _Rows(self._rows[key]) if isinstance(key, slice) else self._rows[key]


class _Docs(BaseDocs, Docstore):  # type: ignore[misc]
    """Documents, in file order and by id: doc_id -> text or document; what was asked for is read once and kept.

    Args:
        read: gives the documents of some ids, or all of them (None).
    """

    _id_field = "doc_id"

    def __init__(self, read: Callable[[frozenset[str] | None], Mapping[str, Any]]) -> None:
        self._read = read
        self._asked: frozenset[str] = frozenset()
        self._kept: Mapping[str, Any] = {}

    @cached_property
    def _all(self) -> Mapping[str, Any]:
        return self._made(None)

    @property
    def _doc_cls(self) -> Any:
        return self.docs_cls()

    def _made(self, wanted: frozenset[str] | None) -> Mapping[str, Any]:
        found = self._read(wanted)
        if any(not isinstance(one, str) and one.title for one in found.values()):
            return found
        return {key: GenericDoc(key, one if isinstance(one, str) else one.text) for key, one in found.items()}

    def keep(self, doc_ids: Iterable[str]) -> None:
        """Reads the files once for all that will be asked for; what is not among it takes another reading, of all."""
        self._asked = frozenset(doc_ids)
        if self._asked and "_all" not in self.__dict__:
            self._kept = self._made(self._asked)

    def get_many_iter(self, doc_ids: Iterable[str]) -> Iterator[Any]:
        """The documents that exist, in the order asked for; the first question is for these alone."""
        asked = list(doc_ids)
        if not self._asked:
            self.keep(asked)
        is_kept = "_all" not in self.__dict__ and self._asked.issuperset(asked)
        found = self._kept if is_kept else self._all
        return (found[doc_id] for doc_id in asked if doc_id in found)

    def docs_iter(self) -> Iterator[Any]:
        """All documents, in file order; the iterator takes positions and slices."""
        return _Rows(list(self._all.values()))

    def docs_store(self) -> Docstore:
        """The documents by id."""
        return self

    def docs_cls(self) -> Any:
        """The type of the documents."""
        return next((type(document) for document in self._all.values()), GenericDoc)

    def docs_count(self) -> int:
        """How many there are."""
        return len(self._all)


def _rows(base: Any, row_type: type, read: Callable[[], Iterable[Any]]) -> Any:
    """What ir_datasets asks of queries, judgments or ranked documents, which are read on first use and kept."""
    kept = cache(lambda: list(read()))
    answers: Mapping[str, Callable[[], Any]] = {
        "iter": lambda: iter(kept()),
        "count": lambda: len(kept()),
        "cls": lambda: row_type,
        "defs": dict,
    }
    made = base()
    for name, answer in answers.items():
        setattr(made, base.PREFIX + name, answer)
    return made


class Collection(ir_datasets.Dataset):  # type: ignore[misc]
    """An ir_datasets Dataset with rubric items and grades; everything is read when it is asked for.

    As a Dataset it has docs_iter, docs_store, queries_iter, qrels_iter and scoreddocs_iter, as far as its source goes.
    qrels_iter gives one label a passage: the maximum grade (Rubric-Qrels) where passages are graded, else what
    assessors said; `unit="item"` gives one row an item, `iteration` being the item id, and `unit="judgment"` what
    assessors said. scoreddocs_iter gives the first run by name.

    Attributes:
        source: the folder, file or id.
        banks: name (`questions`, `nuggets`) -> test bank.
        judgments: what assessors said: a row a (query, document), or more in diversity qrels.
        runs: run_id -> retrieval run, sorted by id.
        answers: generated answers.
        grades: the grades of the one grade set that is left, over its bank; None without records.
    """

    banks: Mapping[str, TestBank] = {}
    runs: Mapping[str, Run] = {}
    answers: Sequence[Answer] = ()
    grades: Grades | None = None

    def __init__(self, source: str, *constituents: object) -> None:
        super().__init__(*constituents)
        self.source = source

    @cached_property
    def judgments(self) -> Sequence[Qrel]:
        """Of the source; another package's id has them as its qrels."""
        return [Qrel(row.query_id, row.doc_id, row.relevance) for row in self.qrels_iter()] if self.has_qrels() else []

    @property
    def query_texts(self) -> Mapping[str, str]:
        """query_id -> text."""
        queries = self.queries_iter() if self.has_queries() else ()
        return {one.query_id: str(one.default_text() if hasattr(one, "default_text") else one[1]) for one in queries}

    def _qrels(self, unit: str, is_graded: bool) -> Any:
        if unit == "item":
            return _rows(BaseQrels, TrecQrel, self._item_rows)
        if is_graded and unit == "passage":
            return _rows(BaseQrels, GenericQrel, lambda: _labels(self.grades.qrels if self.grades else ()))
        return _rows(BaseQrels, GenericQrel, lambda: _labels(self.judgments))

    def _item_rows(self) -> Iterator[TrecQrel]:
        """One row a (passage, item), and rows of grade 0 for the document `*`: each item of the bank, and the scale."""
        for row in self.grades.items if self.grades is not None else ():
            yield TrecQrel(row.query_id, row.doc_id, row.relevance, row.iteration)
        for query in self.grades.queries.values() if self.grades is not None else ():
            for item in query.items:
                yield TrecQrel(query.query_id, BANK_DOC, 0, item.item_id)

    def _ranked(self) -> Any:
        """The first run, query by query, best first."""
        return _rows(
            BaseScoredDocs,
            GenericScoredDoc,
            lambda: (
                GenericScoredDoc(query_id, *row)
                for query_id, ranking in self.runs[min(self.runs)].rankings.items()
                for row in zip(ranking.doc_ids, ranking.scores, strict=True)
            ),
        )


def _labels(rows: Iterable[Qrel]) -> Iterator[GenericQrel]:
    return (GenericQrel(row.query_id, row.doc_id, row.relevance) for row in rows)


def _queries(read: Callable[[], Mapping[str, str]]) -> Any:
    return _rows(BaseQueries, GenericQuery, lambda: (GenericQuery(*pair) for pair in read().items()))


def _files_in(folder: Path) -> dict[str, list[Path]]:
    """What of a folder belongs to the collection, by its kind; empty where nothing does."""
    found: dict[str, list[Path]] = {}
    for kind, names in _FILES.items():
        paths = [one for name in names for one in sorted([*folder.glob(name), *folder.glob(f"{name}.gz")])]
        if paths:
            found[kind] = paths[:1] if kind in _ONE_OF else paths
    if not found:
        # Nothing but documents, in several files.
        files = sorted(path for path in folder.iterdir() if path.is_file() and not path.name.startswith("."))
        docs = [path for path in files if is_documents(path)]
        found = {"docs": docs} if docs else {}
        other = [path.name for path in files if path not in docs]
        if docs and other:
            text = "%s: %d of %d files hold no documents and are left out (such as %s)"
            _LOG.warning(text, folder, len(other), len(files), other[0], extra={"once": True})
    return found


class _Folder(Collection):
    """A folder of files."""

    def __init__(self, folder: Path, wanted: Grader | None, unit: str) -> None:
        self._files = files = _files_in(folder)
        if not files:
            raise UnknownCollectionError(
                f"{folder}: holds no documents, queries.tsv, qrels.txt, banks, runs or records"
            )
        self._wanted = wanted
        handlers: list[object] = []
        if "docs" in files:
            handlers.append(_Docs(partial(read_documents, files["docs"])))
        if "queries" in files:
            handlers.append(_queries(lambda: read_queries(files["queries"][0])))
        elif not files.keys().isdisjoint(_BANKS):
            handlers.append(_queries(self._bank_queries))
        if "qrels" in files if unit == "judgment" else "graded" in files or ("qrels" in files and unit != "item"):
            handlers.append(self._qrels(unit, "graded" in files))
        if "runs" in files:
            handlers.append(self._ranked())
        super().__init__(str(folder), *handlers)

    @cached_property
    def banks(self) -> Mapping[str, TestBank]:  # type: ignore[override]
        """`questions.jsonl` and `nuggets.jsonl`, by name."""
        return {name: load_bank(self._files[name][0]) for name in _BANKS if name in self._files}

    @cached_property
    def judgments(self) -> Sequence[Qrel]:
        """`qrels.txt`, or BEIR's `qrels/test.tsv`."""
        return [row for path in self._files.get("qrels", ()) for row in read_judgments(path)]

    @cached_property
    def runs(self) -> Mapping[str, Run]:  # type: ignore[override]
        """`runs/*.run`, by name."""
        return {run.run_id: run for run in sorted(runs_of_files(self._files.get("runs", [])), key=attrgetter("run_id"))}

    @cached_property
    def answers(self) -> Sequence[Answer]:  # type: ignore[override]
        """The generated answers of `answers/*.jsonl`."""
        return [answer for path in self._files.get("answers", ()) for answer in read_answers(path)]

    @cached_property
    def grades(self) -> Grades | None:  # type: ignore[override]
        """The grades of `graded*.jsonl`; None where there are none."""
        files = self._files.get("graded")
        if files is None:
            return None
        path = next((path for path in files if path.name.startswith("graded.")), files[0])
        if len(files) > 1 and not path.name.startswith("graded."):
            names = ", ".join(path.name for path in files)
            raise InputError(f"{self.source}: has several graded files ({names}); load one of them by its path")
        return load_records(path, _bank_of(path, self.banks, self._wanted), self._wanted)

    def _bank_queries(self) -> dict[str, str]:
        texts: dict[str, str] = {}
        for bank in self.banks.values():
            for query_id in bank.items:
                texts[query_id] = texts.get(query_id) or bank.query_texts.get(query_id, "")
        return texts


class _Records(Collection):
    """A file of records: its rankings and judgments; texts and grades are read when they are asked for."""

    def __init__(self, path: Path, bank: TestBank | None, wanted: Grader | None, unit: str) -> None:
        self._path, self._bank, self._wanted = path, bank, wanted
        self.banks = {"bank": bank} if bank is not None else {}
        with paused_collector():
            self.runs = by_query(path, self._runs_of)
        handlers = [_Docs(self._texts), _queries(self._query_texts)]
        if self.judgments if unit == "judgment" else self._is_graded or (unit != "item" and self.judgments):
            handlers.append(self._qrels(unit, self._is_graded))
        if self.runs:
            handlers.append(self._ranked())
        super().__init__(str(path), *handlers)

    def _runs_of(self, groups: Iterable[QueryPassages]) -> Mapping[str, Run]:
        self._titles: dict[str, str] = {}
        self._is_graded = False
        self.judgments: Sequence[Qrel] = []
        return {run.run_id: run for run in runs_of_records(map(self._noted, groups), str(self._path))}

    def _noted(self, group: QueryPassages) -> QueryPassages:
        query_id = group.query_id
        title = ""
        for one in group.passages:
            self._is_graded = self._is_graded or bool(one.exam_grades or one.grades)
            if judgments := one.judgments:
                # The workbench wants a title, so the id stands there where nobody knew one.
                titles = (said.title_query for said in judgments if said.title_query not in (query_id, None))
                title = title or next(titles, "") or ""
                if (label := one.judged(query_id)) is not None:
                    self.judgments.append(Qrel(query_id, one.doc_id, label))  # type: ignore[attr-defined]
        self._titles[query_id] = title
        return group

    def _texts(self, wanted: frozenset[str] | None) -> dict[str, str]:
        """doc_id -> text."""
        texts: dict[str, str] = {}
        with paused_collector():
            # What is odd was said in the first reading.
            for group in iter_graded(self._path, {("", "")}):
                for one in group.passages:
                    if (wanted is None or one.doc_id in wanted) and texts.setdefault(one.doc_id, one.text) != one.text:
                        problem = f"document {one.doc_id!r} has two texts in different queries"
                        raise InputError(f"{self._path}: {problem}")
                # See `iter_graded`.
                del group
        return texts

    def _query_texts(self) -> dict[str, str]:
        """query_id -> text: the bank's, else the title in a judgment, else empty (records hold no query texts)."""
        known = self._bank.query_texts if self._bank is not None else {}
        return {query_id: known.get(query_id) or title for query_id, title in self._titles.items()}

    @cached_property
    def grades(self) -> Grades | None:  # type: ignore[override]
        """The grades of the records; None where nothing is graded."""
        return load_records(self._path, self._bank, self._wanted) if self._is_graded else None


def _bank_of(path: Path, banks: Mapping[str, TestBank], wanted: Grader | None) -> TestBank | None:
    """The bank that grades belong to: the one of the wanted kind, else the first with an item of the first grades."""
    kind = wanted.kind or wanted.items if wanted is not None else None
    if kind == "nugget" and "nuggets" in banks:
        return banks["nuggets"]
    if kind in ("question", "question-bank") and "questions" in banks:
        return banks["questions"]
    for group in load_graded(path):
        entries = [entry for passage in group.passages for entry in passage.exam_grades or ()]
        graded = {item for entry in entries for item in (*entry.correct_answered, *entry.wrong_answered)}
        for bank in banks.values():
            if any(item.item_id in graded for item in bank.items.get(group.query_id, ())):
                return bank
    return None


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
    wanted: Grader | None = None,
    unit: str = "passage",
) -> Collection:
    """A folder, a file, or an ir_datasets id as a collection; files are read when they are asked for.

    Args:
        source: a folder (see the module), a file of graded records, a file of documents, or an id; or several files of
            documents, in any of the forms of `formats.documents`.
        bank: the test bank of a records file.
        wanted: which grades count where there are several sets.
        unit: the rows of qrels_iter: `passage` (labels), `item` (one row a rubric item, for item measures) or
            `judgment` (what assessors said, also where passages are graded).

    Raises:
        UnknownCollectionError: there is nothing of that name, or nothing in the folder.
        InputError: a file is not what it should be (now, or when it is read).
    """
    if unit not in ("passage", "item", "judgment"):
        raise InputError(f"unit is {unit!r}; expected passage, item or judgment")
    paths = [Path(source)] if isinstance(source, str | Path) else list(map(Path, source))
    name, path = str(source if isinstance(source, str | Path) else source[0]), paths[0]
    if len(paths) > 1 or (path.is_file() and not begins_records(path)):
        for one in paths:
            if not one.is_file():
                raise UnknownCollectionError(f"{one}: no such file; several are files of documents")
        return Collection(" ".join(map(str, paths)), _Docs(partial(read_documents, paths)))
    if path.is_dir():
        return _Folder(path, wanted, unit)
    if path.is_file():
        return _Records(path, bank, wanted, unit)
    try:
        dataset = ir_datasets.load(name)
    except KeyError:
        raise UnknownCollectionError(f"{name}: no such folder, file or ir_datasets id") from None
    # The registry wraps what is registered, to add metadata.
    ours = (part for part in (dataset, *getattr(dataset, "_constituents", ())) if isinstance(part, Collection))
    return next(ours, None) or Collection(name, dataset)


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


# What may stand behind an id -> the arguments of `load_collection` that it means.
_VIEWS: Mapping[str, Mapping[str, Any]] = {
    "items": {"unit": "item"},
    "judgments": {"unit": "judgment"},
    "questions": {"wanted": Grader(kind="question")},
    "nuggets": {"wanted": Grader(kind="nugget")},
}


def _from_id(dataset_id: str, groups: tuple[str, ...]) -> Collection:
    """What an id after `rubric-measures/` means: a path, maybe with views behind it."""
    path, views = _path_and_views(groups[0])
    if path is None or not _VIEWS.keys() >= {*views}:
        raise UnknownCollectionError(f"{dataset_id}: no such folder or file")
    return load_collection(path, **{key: value for view in views for key, value in _VIEWS[view].items()})


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
    return Path(name), views


def files_of(source: str | Path) -> list[Path]:
    """The files that a collection is read from: those of a folder, or the file; none of other packages' ids."""
    path: Path | None = Path(source)
    if path is not None and not path.exists():
        prefix, _, name = str(source).partition("/")
        path = _path_and_views(name)[0] if prefix == PREFIX and name else None
    if path is not None and path.is_dir():
        return [file for files in _files_in(path).values() for file in files]
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
