"""Pooling: the passages to grade, from runs to a depth, judgments, texts and generated answers."""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from msgspec.structs import replace

from rubric_measures.base.errors import InputError, warn
from rubric_measures.corpora.answers import answer_passages, say_missing
from rubric_measures.corpora.collections import Collection, load_collection, texts_of
from rubric_measures.corpora.loading import (
    File,
    PassageRecords,
    Rows,
    are_rows,
    columns_of,
    grader_of,
    is_file,
    named_files,
    read_runs,
)
from rubric_measures.corpora.overwriting import keep_inputs, refuse_table
from rubric_measures.formats import head_of
from rubric_measures.formats.answers import PLAIN_ANSWERS, QUESTION_RUNS, Answer, read_answers
from rubric_measures.formats.base import cells_of
from rubric_measures.formats.judged import places_of_runs
from rubric_measures.formats.queries import read_queries
from rubric_measures.formats.trec import distinct_run_names, read_run
from rubric_measures.measures.grade_sets import Grader, read_judgments
from rubric_measures.records.models import GradedPassage, Judgment, PassageData, QueryPassages, RankingEntry
from rubric_measures.types.entities import Gap, Qrel, Ranking, Run

if TYPE_CHECKING:
    from rubric_measures.corpora.loading import AnyRun, Runs


class _Member(NamedTuple):
    """A pooled text: its rankings, and what its answers say about sentences and citations (run -> …)."""

    doc_id: str
    text: str
    places: list[RankingEntry]
    sources: dict[str, dict[str, Any]]


def _answered(answers: Sequence[Answer], max_words: int | None) -> tuple[dict[str, dict[str, _Member]], set[str]]:
    """The passages of answers, by query and text; the runs that gave some."""
    twice = next((pair for pair, count in Counter(one[:2] for one in answers).items() if count > 1), None)
    if twice is not None:
        raise InputError(f"run {twice[1]!r} answers query {twice[0]!r} twice; keep one answer")
    # An answer that is in no record would be missing in every file made of them, and programs that take means over the
    # lines that are there would leave it out.
    listed = [(one, answer_passages(one, max_words) or [one._replace(text="")]) for one in answers]
    ranked = [(one.run_id, rank, passage) for one, of in listed for rank, passage in enumerate(of, 1)]
    found, repeated = dict[str, dict[str, _Member]](), list[tuple[int, Answer]]()
    for run_id, rank, one in sorted(ranked, key=itemgetter(0, 1)):
        made = _Member(f"{run_id}/{one.query_id}/{rank}", one.text, [], {})
        doc_id, _, places, sources = found.setdefault(one.query_id, {}).setdefault(one.text, made)
        if any(place.method == run_id for place in places):
            # The repetition covers nothing new, and one passage has one rank in a run.
            repeated.append((rank, one))
            continue
        places.append(RankingEntry(method=run_id, doc_id=doc_id, query_id=one.query_id, rank=rank, score=1 / rank))
        if one.sentences:
            sources[run_id] = {"sentences": list(one.sentences), "citations": list(map(list, one.citations))}
    for rank, one in repeated[:1]:
        text = "%d parts of answers repeat an earlier part of the same answer; only the first is ranked "
        warn(text + "(such as part %s of run %s for query %s)", len(repeated), rank, one.run_id, one.query_id)
    return found, {answer.run_id for answer in answers}


def _labels_of(judgments: Iterable[Qrel]) -> dict[str, dict[str, float]]:
    """Query -> document -> label."""
    labels: dict[str, dict[str, float]] = {}
    for row in judgments:
        of_query = labels.setdefault(row.query_id, {})
        if of_query.setdefault(row.doc_id, row.relevance) != row.relevance:
            problem = f"document {row.doc_id!r} has two judgments for query {row.query_id!r}; give one label a document"
            raise InputError(problem, settings=("judgments",))
    return labels


def _query_order(pooled: set[str], queries: Iterable[str] | None) -> list[str]:
    asked = sorted(pooled) if queries is None else list(dict.fromkeys(queries))
    order, strangers = [query_id for query_id in asked if query_id in pooled], pooled.difference(asked)
    text = "unknown and left out: %d queries of the runs (such as %s)"
    warn(text, len(strangers), min(strangers, default=""))
    warn("%d of %d queries have no passages", len(asked) - len(order), len(asked))
    if not order:
        raise InputError("the pool is empty: no run retrieves anything for the queries", settings=("queries",))
    return order


def _passage(member: _Member, query_id: str, label: float | None, title: str) -> GradedPassage:
    doc_id, text, places, sources = member
    said = [] if label is None else [Judgment(relevance=label, doc_id=doc_id, query_id=query_id, title_query=title)]
    data = PassageData(judgments=said, rankings=sorted(places, key=lambda place: place.method))
    more: dict[str, Any] = {"paragraph": {"answers": sources}} if sources else {}
    return GradedPassage(doc_id=doc_id, text=text, paragraph_data=data, **more)


Pooled: TypeAlias = "Runs | Answer | Rows | Iterable[AnyRun | Answer | Rows]"
"""What is pooled: files of runs or answers, runs in memory as `score` takes them, `Answer`s, or several of them."""


def pool(
    runs: Pooled = (),
    collection: File | Rows | Mapping[str, str] | Sequence[File] | Collection | None = None,
    *,
    depth: int = 20,
    queries: File | Mapping[str, str] | Iterable[str] | None = None,
    judgments: File | Rows | Iterable[Any] | None = None,
    grader: str | Grader | None = None,
    judged: bool = False,
    max_words: int | None = 400,
    missing: Literal["error", "skip"] = "error",
    output: str | os.PathLike[str] | None = None,
) -> PassageRecords:
    """The passages that runs retrieved, with their texts, rankings and judgments, by query.

    A document is in the pool of a query when some run has it among its first `depth`. Answers are cut into passages
    (`answer_passages`); passage `n` of run `R` for query `Q` is `R/Q/n`, the run's document at rank n, score 1/n. One
    that several answers share is stored once, under the id that sorts first, with a ranking for each. An answer without
    words is an empty passage, so that the records know that it was given. The result does not depend on the order of
    the runs: passages stand by best rank, then doc_id.

    >>> import rubric_measures
    >>> from rubric_measures.corpora.collections import example_folder
    >>> rubric_measures.pool(collection=example_folder(), depth=2)
    PassageRecords(9 queries, 84 passages)

    Args:
        runs: run files, or generated answers (reports, or files or tables with query_id, run_id and text); by default
            those of the collection. In Python also runs in memory, see `score`.
        collection: the texts: a folder, a file of documents or records, an id of ir_datasets, a collection, a table,
            or document -> text; or several files of documents.
        depth: documents of each ranking; answers are always taken whole.
        queries: pool these queries: ids, query -> text, or a file or frame of queries or topics; default: the
            collection's, else all.
        judgments: what assessors said: a qrels file, a table of labels (a file, a frame, …) or rows; default: the
            collection's.
        grader: whose labels of that table count, where several labelled.
        judged: add all judged documents to the pool.
        max_words: the most words of a passage of an answer; without a limit answers are left whole.
        missing: documents that the collection does not have are an `error`, or left out and counted (`skip`).
        output: a file for the records (.jsonl.gz), which are then not held in memory.

    Raises:
        InputError: a file is wrong, there is nothing to pool, two runs have one name, a run answers a query twice, a
            document is judged twice for a query, or documents are missing.
    """
    if depth < 1:
        raise InputError(f"a pool of depth {depth} is empty; ask for 1 or more")
    with contextlib.ExitStack() as stack:
        is_one = isinstance(runs, Answer | Mapping) or is_file(runs) or are_rows(runs) or not isinstance(runs, Iterable)
        several = [runs] if is_one else list(runs)  # type: ignore[arg-type]
        queries, judgments = (named_files(one, stack) for one in (queries, judgments))
        source = named_files(collection, stack)
        keep_inputs(output, *several, queries, judgments, *(source if isinstance(source, list | tuple) else [source]))
        refuse_table(output)
        known = load_collection(source) or Collection("nothing")
        docs: Any = known.docs_store() if known.has_docs() else None
        read, answers = _read(several, stack) if several else (list(known.runs.values()), list(known.answers))
        if not read and not answers and not judged:
            raise InputError("nothing to pool: name runs or reports, or a collection that has some")
        asked: Any = read_queries(queries) if isinstance(queries, str) else queries
        if asked is None and known.has_queries():
            asked = known.query_texts
        rows: Any = judgments
        if isinstance(judgments, str):
            rows = read_judgments(judgments, grader_of(grader))
        elif grader is not None:
            raise InputError("a grader is chosen only in a table of labels; leave it out", settings=("grader",))
        elif judgments is None:
            rows = known.judgments
        titles = asked if isinstance(asked, Mapping) else {}
        answers.sort(key=lambda answer: answer[:2])
        say_missing(answers, asked)
        found, speaking = _answered(answers, max_words)
        twice = [name for name, count in Counter([*(run.run_id for run in read), *speaking]).items() if count > 1]
        if twice:
            raise InputError(f"two runs are called {twice[0]!r}; give one of them another tag")
        labels = _labels_of(rows)
        # Query -> document -> where runs rank it.
        places: dict[str, dict[str, list[RankingEntry]]] = {}
        for run in sorted(read, key=lambda run: run.run_id):
            first = {one: Ranking(of.doc_ids[:depth], of.scores[:depth]) for one, of in run.rankings.items()}
            for (query_id, doc_id), of_run in places_of_runs([Run(run.run_id, first)]).items():
                if not isinstance(doc_id, Gap):
                    places.setdefault(query_id, {}).setdefault(doc_id, []).extend(of_run)
        for query_id, of_query in labels.items() if judged else ():
            for doc_id in of_query:
                places.setdefault(query_id, {}).setdefault(doc_id, [])
        order = _query_order(found.keys() | places.keys(), asked)
        if hasattr(docs, "keep"):
            docs.keep({doc_id for query_id in order for doc_id in places.get(query_id, ())})

        def groups() -> Iterator[QueryPassages]:
            left_out: list[str] = []
            for query_id in order:
                members = {one.doc_id: one for one in found.get(query_id, {}).values()}
                others = {one: at for one, at in places.get(query_id, {}).items() if at or one not in members}
                if docs is None and others:
                    problem = "the runs need a collection with the texts of their documents; name one"
                    raise InputError(problem, settings=("collection",))
                texts = texts_of(docs, list(others)) if others else {}
                lost = sorted(others.keys() - texts.keys())
                if lost and missing == "error":
                    text = f"query {query_id!r}: {len(lost)} of {len(others)} pooled documents (such as {lost[0]})"
                    text += " are not in the collection; name that of the runs, or skip them"
                    raise InputError(text, settings=("collection", "missing"))
                left_out.extend(lost)
                if clash := next((doc_id for doc_id in others if doc_id in members), None):
                    raise InputError(f"query {query_id!r}: {clash!r} names a document and a passage of an answer")
                members |= {one: _Member(one, text, others[one], {}) for one, text in texts.items()}
                # The workbench wants a title beside each judgment.
                title, of_query = titles.get(query_id) or query_id, labels.get(query_id, {})
                passages = [_passage(one, query_id, of_query.get(one.doc_id), title) for one in members.values()]
                passages.sort(key=lambda one: (min([1 << 60, *(at.rank for at in one.rankings)]), one.doc_id))
                if passages:
                    yield QueryPassages(query_id, passages)
            if left_out:
                text = "%d pooled documents are not in the collection and are left out (such as %s)"
                warn(text, len(left_out), min(left_out))

        return PassageRecords.kept(groups(), output)


def _read(sources: Sequence[Any], stack: contextlib.ExitStack) -> tuple[list[Run], list[Answer]]:
    """The runs and the answers of files, told apart by content, and of what is in memory."""
    runs, names, answers, others = list[Run](), list[str](), list[Answer](), list[Any]()
    for one in sources:
        if isinstance(one, Answer):
            answers.append(one)
        # Tables of answers have texts.
        elif not is_file(one) and not (are_rows(one) and "text" in columns_of(one)):
            others.append(one)
        elif _holds_answers(path := named_files(one, stack)):
            answers += read_answers(path)
        else:
            runs.append(read_run(path))
            names.append(path)
    # Alone it may be several by name.
    made = read_runs(others[0] if len(others) == 1 else others) if others else []
    names = distinct_run_names([run.run_id for run in (*runs, *made)], [*names, *(run.run_id for run in made)])
    return [replace(run, run_id=name) for run, name in zip((*runs, *made), names, strict=True)], answers


def _holds_answers(path: str) -> bool:
    head = head_of(path)
    # JSON, or a table with the three columns query_id, run_id and text; a run has five or six, and so has a table of
    # ranked questions.
    if head.is_json or head.line.count("\t") == 2 or not PLAIN_ANSWERS.lacking(cells_of(head.line)):
        return True
    return QUESTION_RUNS.recognise(head)
