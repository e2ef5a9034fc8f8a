"""Converting files, and writing grades as qrels."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rubric_measures.api._loading import (
    Bank,
    File,
    Gradable,
    are_labels,
    bank_of,
    file_path,
    grade_filter,
    listed,
    loaded,
)
from rubric_measures.api._records import PassageRecords
from rubric_measures.base.errors import InputError

if TYPE_CHECKING:
    from rubric_measures.formats.nuggetizer import UnknownLabels
    from rubric_measures.measures.grades import Label
    from rubric_measures.measures.qrels import Unit


def convert(
    inputs: File | PassageRecords | Iterable[File | PassageRecords],
    output: str | os.PathLike[str],
    *,
    to: str | None = None,
    source: str | None = None,
    add_run: File | Iterable[File] = (),
    add_qrels: File | Iterable[File] = (),
    collection: str | Sequence[str] | None = None,
    bank: Bank | None = None,
    label: Label = "max",
    rel: int | None = None,
    depth: int | None = None,
    grader: str = "qrels",
    run: str | None = None,
    unknown_labels: UnknownLabels | None = None,
    answers: Iterable[File] = (),
    **chosen: Any,
) -> Path:
    """Writes files of any format that we read in any format that we write; several are merged.

    Args:
        inputs: the files, or records of `pool` and `grade`; what contradicts each other is an error.
        output: the file to write, gzipped where its name ends in `.gz`; it may not be one that is read.
        to: the format to write; that of the input if None. `rubric_measures convert --help` lists the formats.
        source: the format of the input; told by content if None.
        add_run: run files whose rankings are added to records.
        add_qrels: judgments that are added to records.
        collection: the texts, for records made of qrels or runs: a source as in `pool`, or several files.
        bank: the test bank, where grades become something else.
        label: how item grades become a label, `max` or `count`.
        rel: the inclusive minimum grade that counts; left out, `max` keeps all grades, and `count` takes the level that
            covers on the scale.
        depth: documents of each ranking; all if None.
        grader: who made the grades of item qrels.
        run: the run to write, of several in records.
        unknown_labels: what labels of assigned nuggets that nobody defined count as, see `load`.
        answers: files of the answers that support judgments of RAGDoll are about.
        chosen: which grades count, see `load`.

    Returns:
        the output.

    Raises:
        UnknownNameError: there is no such format.
        InputError: a file is wrong, files contradict each other, or there is no way from one format to the other.
    """
    from rubric_measures.corpora.bridges import Options
    from rubric_measures.corpora.conversion import convert_files
    from rubric_measures.corpora.overwriting import keep_inputs
    from rubric_measures.formats.reports import read_answers

    with contextlib.ExitStack() as stack:
        several = [inputs] if isinstance(inputs, PassageRecords) else listed(inputs)
        files = [stack.enter_context(_file_of(one)) for one in several]
        runs, qrels = ([stack.enter_context(file_path(one)) for one in listed(group)] for group in (add_run, add_qrels))
        beside = [stack.enter_context(file_path(one)) for one in listed(answers)]
        keep_inputs(output, *files, *runs, *qrels, *beside, bank, *listed(collection or ()))
        convert_files(
            files,
            output,
            to=to,
            source=source,
            runs=runs,
            qrels=qrels,
            options=Options(
                collection=collection,
                bank=bank_of(bank),
                wanted=grade_filter(**chosen),
                label=label,
                rel=rel,
                depth=depth,
                grader=grader,
                run=run,
                unknown_labels=unknown_labels,
                answers=[one for path in beside for one in read_answers(path)] if beside else None,
            ),
        )
    return Path(output)


@contextlib.contextmanager
def _file_of(source: File | PassageRecords) -> Iterator[str]:
    """The file of an input; records in memory are written to one that lasts until the block ends."""
    if isinstance(source, PassageRecords) and not source.path:
        with tempfile.TemporaryDirectory(prefix="rubric_measures-") as folder:
            path = f"{folder}/records.jsonl"
            source.write(path)
            yield path
    else:
        with file_path(source.path if isinstance(source, PassageRecords) else source) as path:
            yield path


def write_qrels(
    grades: Gradable,
    output: str | os.PathLike[str],
    *,
    per: Unit = "passage",
    label: Label = "max",
    rel: int | None = None,
    times: int | None = None,
) -> int:
    """Writes grades as a TREC qrels file.

    Args:
        grades: `Grades`, or what `load` takes.
        output: the file, gzipped where its name ends in `.gz`; `-` is standard output.
        per: one label a `passage`; a `facet`, as the query `query/facet`; or one line an `item` (diversity qrels).
        label: `max` or `count`, see `QueryGrades.labels`; not for items.
        rel: the inclusive minimum grade that counts; left out, `max` keeps all grades, and `count` takes the level that
            covers on the scale. Not for items.
        times: multiply every label by this, and round it, for programs that read whole labels only; the levels of
            measures are then multiplied, too.

    Returns:
        the number of grades that failed.

    Raises:
        InputError: no passage has a grade, no item names a facet, a label of items is asked for, lines of items of what
            has one label a passage, or items are to be counted and neither a level nor the scale is known.
    """
    from rubric_measures.formats import trec
    from rubric_measures.measures.qrels import qrels_of, times_rows

    if per == "item" and (label, rel) != ("max", None):
        raise InputError(
            "lines of items hold the grades themselves; leave out how they become labels", settings=("label", "rel")
        )
    known = loaded(grades)
    if per == "item" and are_labels(known):
        raise InputError(
            "there are no item grades here, only one label a passage; write qrels of passages", settings=("per",)
        )
    trec.write_qrels(output, times_rows(qrels_of(known, per, label, rel), times))
    return sum(mask.bit_count() for query in known.queries.values() for mask in query.failed.values())
