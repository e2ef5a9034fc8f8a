"""Collections: documents, queries, banks and grades, as ir_datasets has them.

Importing this module registers `rubric-measures/example`, and folders and files (`rubric-measures/PATH`), as a pattern
with ir_datasets, so that `ir_datasets.load` knows them. Behind any of them may stand `/items`: its qrels are grades of
rubric items.

A folder holds any of: `docs`, `corpus` or `collection` (.jsonl, .tsv, .csv, .parquet, .json), `queries` (.tsv, .json,
.jsonl, .csv), `qrels.txt` (BEIR: `qrels/test.tsv`), `questions.jsonl` and `nuggets.jsonl` (test banks), `runs/*.run`,
`answers/*.jsonl` (reports), `graded*.jsonl` (records); each may be gzipped.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property, partial
from itertools import chain, groupby
from operator import attrgetter
from pathlib import Path
from typing import Any, TypeVar

import ir_datasets
from ir_datasets import formats
from ir_datasets.indices import Docstore
from ir_datasets.util.docs.lazy import LazyDocsIter

from rubric_measures.base.errors import InputError
from rubric_measures.base.files import begins_records, packed_beside, paused_collector
from rubric_measures.formats.answers import Answer, read_answers
from rubric_measures.formats.banks import load_bank
from rubric_measures.formats.queries import Document, read_documents, read_queries
from rubric_measures.formats.specs import table
from rubric_measures.formats.trec import runs_of_files, runs_of_records
from rubric_measures.measures.grade_sets import grade_sets, read_judgments
from rubric_measures.measures.grades import Grades
from rubric_measures.measures.loading import load_records
from rubric_measures.measures.qrels import qrels_of
from rubric_measures.records.models import QueryPassages, iter_graded, load_graded
from rubric_measures.types.entities import Qrel, Run, TestBank

PREFIX = "rubric-measures"
# What files of a folder are called; of those without a star the first one that is there counts.
_FILES: Mapping[str, Sequence[str]] = table("folder")
# What may stand behind an id, for qrels of items.
_ITEMS = "/items"


class UnknownCollectionError(InputError, KeyError):
    """No folder, file or ir_datasets id of that name (a KeyError, because that is what ir_datasets expects)."""

    def __str__(self) -> str:
        return str(self.args[0])


class _Docs(formats.BaseDocs, Docstore):  # type: ignore[misc]
    """Documents, in file order and by id: what was asked for is read once and kept.

    Args:
        read: gives the documents of some ids, or all of them (None).
    """

    _id_field = "doc_id"

    def __init__(self, read: Callable[[frozenset[str] | None], Mapping[str, Any]]) -> None:
        self._read, self._known = read, dict[frozenset[str] | None, Mapping[str, Any]]()

    @property
    def _doc_cls(self) -> Any:
        return self.docs_cls()

    def _of(self, wanted: frozenset[str] | None = None) -> Mapping[str, Any]:
        """The documents of some ids, or all of them; what is not among those of the first question takes all."""
        for asked, known in self._known.items():
            if asked is None or (wanted is not None and asked >= wanted):
                return known
        wanted = None if self._known else wanted
        found = self._read(wanted)
        if not any(one.title for one in found.values()):
            found = {key: formats.GenericDoc(key, one.text) for key, one in found.items()}
        self._known = {wanted: found}
        return found

    def keep(self, doc_ids: Iterable[str]) -> None:
        """Reads the files once for all that will be asked for."""
        if asked := frozenset(doc_ids):
            self._of(asked)

    def get_many_iter(self, doc_ids: Iterable[str]) -> Iterator[Any]:
        """The documents that exist, in the order asked for."""
        asked = list(doc_ids)
        found = self._of(frozenset(asked))
        return (found[doc_id] for doc_id in asked if doc_id in found)

    def docs_iter(self) -> Any:
        """All documents, in file order; also by position and slice, as ir_datasets and PyTerrier ask for them."""
        return LazyDocsIter(lambda: list(self._of().values()), iter(self._of().values()))

    def docs_store(self) -> Docstore:
        """The documents by id."""
        return self

    def docs_cls(self) -> Any:
        """The type of the documents."""
        return next((type(document) for document in self._of().values()), formats.GenericDoc)

    def docs_count(self) -> int:
        """How many there are."""
        return len(self._of())


def _rows(base: Any, row_type: Any, read: Callable[[], Iterable[Any]]) -> Any:
    """What ir_datasets asks of queries or judgments, which are tuples, read on first use and kept."""
    kept = cache(lambda: [row_type._make(row[: len(row_type._fields)]) for row in read()])
    answers: Mapping[str, Callable[[], Any]] = {
        "iter": lambda: iter(kept()), "count": lambda: len(kept()), "cls": lambda: row_type, "defs": dict,
    }  # fmt: skip
    made = base()
    vars(made).update({base.PREFIX + name: answer for name, answer in answers.items()})
    return made


class Collection(ir_datasets.Dataset):  # type: ignore[misc]
    """An ir_datasets Dataset with rubric items and grades; everything is read when it is asked for, once.

    As a Dataset it has docs_iter, docs_store, queries_iter and qrels_iter, as far as its source goes.
    qrels_iter gives one label a passage: the maximum grade (Rubric-Qrels) where passages are graded, else what
    assessors said; or one row an item, `iteration` being the item id, and rows of grade 0 for the document `*`: items
    and scale.

    Args:
        source: the folder, file or id.
        dataset: another one whose documents, queries and qrels these are.
        of_items: whether qrels are of items.
        docs: gives the documents of some ids, or all of them (None).
        queries: gives query id -> text.
        judged: gives what assessors said: a row a (query, document), or more in diversity qrels.
        runs: gives the retrieval runs; the attribute is run_id -> run, sorted by id.
        answers: gives the generated answers.
        banks: gives name (`questions`, `nuggets`) -> test bank.
        grades: gives the grades of the one grade set that is left, over one of the banks.
    """

    def __init__(
        self,
        source: str,
        dataset: object = None,
        *,
        of_items: bool = False,
        docs: Callable[[frozenset[str] | None], Mapping[str, Any]] | None = None,
        queries: Callable[[], Mapping[str, str]] | None = None,
        judged: Callable[[], Sequence[Qrel]] | None = None,
        runs: Callable[[], Iterable[Run]] = list,
        answers: Callable[[], Sequence[Answer]] = list,
        banks: Callable[[], Mapping[str, TestBank]] = dict,
        grades: Callable[[Mapping[str, TestBank]], Grades] | None = None,
    ) -> None:
        self.source, self._judged, self._runs, self._answers = source, judged, runs, answers
        self._banks, self._grades = banks, grades
        has_rows = grades is not None or (judged is not None and not of_items)
        row_type = formats.TrecQrel if of_items else formats.GenericQrel
        super().__init__(
            dataset,
            None if docs is None else _Docs(docs),
            None if queries is None else _rows(formats.BaseQueries, formats.GenericQuery, lambda: queries().items()),
            _rows(formats.BaseQrels, row_type, partial(self._labels, of_items)) if has_rows else None,
        )

    answers = cached_property(lambda self: self._answers())
    banks = cached_property(lambda self: self._banks())
    grades = cached_property(lambda self: None if self._grades is None else self._grades(self.banks))
    runs = cached_property(lambda self: {one.run_id: one for one in sorted(self._runs(), key=attrgetter("run_id"))})

    def _labels(self, of_items: bool) -> Iterable[Qrel]:
        if self.grades is None:
            return self.judgments
        return qrels_of(self.grades, "item") if of_items else self.grades.qrels

    @cached_property
    def judgments(self) -> Sequence[Qrel]:
        """What assessors said."""
        if self._judged is not None:
            return self._judged()
        rows = self.qrels_iter() if self._grades is None and self.has_qrels() else ()
        return [Qrel(row.query_id, row.doc_id, row.relevance) for row in rows]

    @property
    def query_texts(self) -> Mapping[str, str]:
        """query_id -> text."""
        queries = self.queries_iter() if self.has_queries() else ()
        return {one.query_id: str(one.default_text() if hasattr(one, "default_text") else one[1]) for one in queries}


def _files_in(folder: Path) -> dict[str, list[Path]]:
    """What of a folder belongs to the collection, by its kind; empty where nothing does."""
    found: dict[str, list[Path]] = {}
    for kind, names in _FILES.items():
        paths = [one for name in names for one in sorted([*folder.glob(name), *folder.glob(f"{name}.gz")])]
        if paths:
            found[kind] = paths if "*" in names[0] else paths[:1]
    return found


def _folder(folder: Path, of_items: bool) -> Collection:
    """A folder of files."""
    files = _files_in(folder)
    if not files:
        raise UnknownCollectionError(f"{folder}: holds no documents (docs.*), queries.tsv, qrels.txt, …; name files")
    return Collection(
        str(folder),
        of_items=of_items,
        docs=partial(read_documents, files["docs"]) if "docs" in files else None,
        queries=partial(read_queries, *files["queries"]) if "queries" in files else None,
        judged=(lambda: list(chain(*map(read_judgments, files["qrels"])))) if "qrels" in files else None,
        runs=lambda: runs_of_files(files.get("runs", [])),
        answers=lambda: list(chain(*map(read_answers, files.get("answers", [])))),
        banks=lambda: {name: load_bank(*files[name]) for name in ("questions", "nuggets") if name in files},
        grades=partial(_grades_in, files["graded"]) if "graded" in files else None,
    )


def _grades_in(files: Sequence[Path], banks: Mapping[str, TestBank]) -> Grades:
    """The grades of a folder's records, over the first of its banks with an item of theirs."""
    if len(files) > 1:
        names = ", ".join(path.name for path in files)
        raise InputError(f"{files[0].parent}: has several graded files ({names}); load one of them by its path")

    def is_graded(bank: TestBank) -> bool:
        sets = grade_sets(iter_graded(files[0], says=False), bank=bank)
        return any(count for key, count in sets.items() if key.kind != "direct")

    return load_records(files[0], next(filter(is_graded, banks.values()), None))


def _records(path: Path, of_items: bool) -> Collection:
    """A file of records: its rankings, titles of queries and judgments; texts and grades are read when asked for."""

    def read(groups: Iterable[QueryPassages]) -> tuple[list[Run], dict[str, str], list[Qrel], bool]:
        titles, judged, graded = dict[str, str](), list[Qrel](), list[bool]()

        def noted(group: QueryPassages) -> QueryPassages:
            query_id = group.query_id
            # The workbench wants a title, so the id stands there where nobody knew one.
            said = (one.title_query or "" for passage in group.passages for one in passage.judgments)
            titles[query_id] = next((title for title in said if title not in ("", query_id)), "")
            labels = ((one.doc_id, one.judged(query_id)) for one in group.passages)
            judged.extend(Qrel(query_id, doc_id, label) for doc_id, label in labels if label is not None)
            graded.append(any(one.exam_grades or one.grades for one in group.passages))
            return group

        return runs_of_records(map(noted, groups), str(path)), titles, judged, any(graded)

    with paused_collector():
        runs, titles, judged, is_graded = by_query(path, read)
    return Collection(
        str(path),
        of_items=of_items,
        docs=partial(_documents_in, path),
        queries=lambda: titles,
        judged=(lambda: judged) if judged else None,
        runs=lambda: runs,
        grades=(lambda _: load_records(path)) if is_graded else None,
    )


def _documents_in(path: Path, wanted: frozenset[str] | None) -> dict[str, Document]:
    """doc_id -> document, of a file of records."""
    found: dict[str, Document] = {}
    with paused_collector():
        # What is odd was said in the first reading.
        for group in iter_graded(path, says=False):
            for made in (Document(one.doc_id, "", one.text) for one in group.passages):
                if (wanted is None or made.doc_id in wanted) and found.setdefault(made.doc_id, made) != made:
                    raise InputError(f"{path}: document {made.doc_id!r} has two texts in different queries")
            # See `iter_graded`.
            del group
    return found


def load_collection(source: Any, *, of_items: bool = False) -> Any:
    """A folder, a file, or an ir_datasets id as a collection; files are read when they are asked for.

    Args:
        source: a folder (see the module), a file of graded records, a file of documents, or an id; or several files of
            documents, in any of the forms of `formats.queries`; document -> text; or a collection, or None, which is
            given back.
        of_items: whether qrels_iter gives one row a rubric item, for item measures, and not labels of passages.

    Raises:
        UnknownCollectionError: there is nothing of that name, or nothing in the folder.
        InputError: it is none of these; a file is not what it should be (now, or when it is read).
    """
    if source is None or hasattr(source, "has_docs"):
        return source
    if isinstance(source, Mapping):
        found = {one: Document(one, "", text) for one, text in source.items()}
        return Collection("the texts", docs=lambda wanted: found)
    several = list(source) if isinstance(source, list | tuple) else [source]
    if not several or not all(isinstance(one, str | os.PathLike) for one in several):
        problem = f"{source!r:.60} is no collection; give a folder, a file, an id of ir_datasets, or a Collection"
        raise InputError(problem, settings=("collection",))
    paths = list(map(Path, several))
    path = paths[0]
    # A pipe is refused there: its second reader would wait for ever.
    if len(paths) > 1 or (path.exists() and not path.is_dir() and not begins_records(path)):
        return Collection(" ".join(map(str, paths)), docs=partial(read_documents, paths))
    if path.exists():
        return (_folder if path.is_dir() else _records)(path, of_items)
    name = os.fspath(several[0])
    try:
        dataset = ir_datasets.load(name)
    except KeyError:
        problem = f"{name}: no such folder or file, and no such ir_datasets id{packed_beside(name)}"
        raise UnknownCollectionError(problem) from None
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


def _from_id(dataset_id: str, groups: tuple[str, ...]) -> Any:
    """What an id after `rubric-measures/` means: a path, maybe with a view behind it."""
    name = groups[0]
    if name == "example" or name.startswith("example/"):
        name = str(example_folder()) + name.removeprefix("example")
    of_items = name.endswith(_ITEMS) and not Path(name).exists()
    path = Path(name.removesuffix(_ITEMS) if of_items else name)
    if not path.exists():
        raise UnknownCollectionError(f"{dataset_id}: no such folder or file")
    return load_collection(path, of_items=of_items)


def files_of(folder: Path) -> list[Path]:
    """The files of a folder that belong to the collection."""
    return [file for files in _files_in(folder).values() for file in files]


ir_datasets.registry.register_pattern(rf"^{PREFIX}/(.+)$", _from_id)


T = TypeVar("T")


class _ScatteredError(Exception):
    """The lines of a query do not stand together."""


def by_query(path: str | os.PathLike[str], make: Callable[[Iterable[QueryPassages]], T]) -> T:
    """What is made of the records of a file, a query at a time; of all at once where lines of a query stand apart.

    Args:
        path: the file, which may be read twice; or a pipe.
        make: takes the records, in the order of the file, as often as it goes through them.
    """
    try:
        # A pipe is read once.
        return make(_ByQuery(path) if Path(path).is_file() else load_graded(path))
    except _ScatteredError:
        return make(load_graded(path))


class _ByQuery(Iterable[QueryPassages]):
    """The queries of a file of records, which is read as often as they are gone through."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path, self._says = path, True

    def __iter__(self) -> Iterator[QueryPassages]:
        seen: set[str] = set()
        # What is odd is said in the first reading.
        groups, self._says = iter_graded(self._path, says=self._says), False
        for query_id, pieces in groupby(groups, attrgetter("query_id")):
            if query_id in seen:
                raise _ScatteredError
            seen.add(query_id)
            first, *others = pieces
            yield first._replace(passages=[passage for piece in (first, *others) for passage in piece.passages])


def texts_of(docs: Any, doc_ids: Sequence[str]) -> dict[str, str]:
    """doc_id -> text, of those documents that a docs_store of ir_datasets has."""
    found = docs.get_many(doc_ids).items()
    return {key: str(one.default_text() if hasattr(one, "default_text") else one.text) for key, one in found}
