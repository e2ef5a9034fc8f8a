"""Collections as ir_datasets knows them: a folder, graded records, or any ir_datasets id, with banks and grades.

Importing this module registers `rubric-measures/example` and a pattern for folders and files (`rubric-measures/PATH`)
with ir_datasets, so that `ir_datasets.load` and `ir_datasets export` know them. Behind any of them may stand a view:
`/items` (qrels of rubric items), `/nuggets` and `/questions` (the grades over that bank; `/nuggets/items` too),
`/judgments` (qrels of assessors), `/runs/NAME` (scoreddocs of that run). ir_datasets' export command with these ids:
`python -m rubric_measures.corpora.collections export ID docs|queries|qrels|scoreddocs`.

A folder holds any of: `docs.jsonl` (or `corpus.jsonl`, `docs.tsv`, `collection.tsv`), `queries.tsv` (or .json, .jsonl),
`qrels.txt`, `questions.jsonl` and `nuggets.jsonl` (test banks), `runs/*.run`, `answers/*.jsonl` (reports),
`graded*.jsonl` (records); each may be gzipped. Or it holds nothing but files of documents.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import ir_datasets
from ir_datasets.formats import GenericQrel, TrecQrel

from rubric_measures.base.errors import InputError, RubricMeasuresError
from rubric_measures.corpora._documents import is_documents, read_docs
from rubric_measures.corpora._handlers import DocsHandler, QrelsHandler, QueriesHandler, ScoredDocsHandler
from rubric_measures.corpora._sources import CollectionSource, DatasetSource, FolderSource, RecordsSource
from rubric_measures.formats.queries import read_queries
from rubric_measures.formats.reports import Answer
from rubric_measures.measures.grade_sets import GradeFilter
from rubric_measures.measures.grades import Grades
from rubric_measures.types.entities import Qrel, Run, TestBank

__all__ = [
    "Collection",
    "UnknownCollectionError",
    "example_folder",
    "files_of",
    "load_collection",
    "main",
    "opened_collection",
    "register",
]

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

    @property
    def banks(self) -> Mapping[str, TestBank]:
        """Name (`questions`, `nuggets`) -> test bank."""
        return self._parts.banks

    @property
    def judgments(self) -> Sequence[Qrel]:
        """What assessors said: one row a (query, document), or more in diversity qrels."""
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
            documents. Documents are JSON lines (BEIR, Anserini, PyTerrier, …), tab-separated (MS MARCO), or TREC SGML.
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
            return Collection(" ".join(map(str, paths)), CollectionSource(), DocsHandler(lambda: read_docs(paths)))
        source = str(source[0])
    name, path = str(source), Path(source)
    if path.is_dir():
        parts = FolderSource(path, wanted)
        if not parts.files:
            raise UnknownCollectionError(f"{name}: holds no documents, queries.tsv, qrels.txt, banks, runs or records")
        return Collection(name, parts, *_folder_handlers(parts, unit, run))
    if path.is_file():
        if is_documents(path):
            return Collection(name, CollectionSource(), DocsHandler(lambda: read_docs([path])))
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
        handlers.append(DocsHandler(lambda: read_docs(docs)))
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
    handlers: list[object] = [DocsHandler(records.texts), QueriesHandler(records.query_texts)]
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
