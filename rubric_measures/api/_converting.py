"""Converting files."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rubric_measures.api._loading import Bank, File, bank_of, file_path, grade_filter, listed
from rubric_measures.api._records import PassageRecords

if TYPE_CHECKING:
    from rubric_measures.formats.nuggetizer import UnknownLabels
    from rubric_measures.grades.compiled import Label

__all__ = ["convert"]


def convert(
    inputs: File | PassageRecords | Iterable[File | PassageRecords],
    output: str | os.PathLike[str],
    *,
    to: str | None = None,
    source: str | None = None,
    add_run: File | Iterable[File] = (),
    add_qrels: File | Iterable[File] = (),
    collection: str | None = None,
    bank: Bank | None = None,
    label: Label = "max",
    rel: int | None = None,
    depth: int | None = None,
    grader: str = "qrels",
    run: str | None = None,
    unknown_labels: UnknownLabels | None = None,
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
        collection: the texts, for records made of qrels or runs.
        bank: the test bank, where grades become something else.
        label: how item grades become a label, `max` or `count`.
        rel: the inclusive minimum grade that counts; left out, `max` keeps all grades, and `count` takes the level that
            covers on the scale.
        depth: documents of each ranking; all if None.
        grader: who made the grades of item qrels.
        run: the run to write, of several in records.
        unknown_labels: what labels of assigned nuggets that nobody defined count as, see `load`.
        chosen: which grades count, see `load`.

    Returns:
        the output.

    Raises:
        UnknownNameError: there is no such format.
        InputError: a file is wrong, files contradict each other, or there is no way from one format to the other.
    """
    from rubric_measures import conversion
    from rubric_measures.corpora.overwriting import keep_inputs

    with contextlib.ExitStack() as stack:
        several = [inputs] if isinstance(inputs, PassageRecords) else listed(inputs)
        files = [stack.enter_context(_file_of(one)) for one in several]
        runs, qrels = ([stack.enter_context(file_path(one)) for one in listed(group)] for group in (add_run, add_qrels))
        keep_inputs(os.fspath(output), *files, *runs, *qrels, collection)
        conversion.convert(
            files,
            output,
            to=to,
            source=source,
            runs=runs,
            qrels=qrels,
            options=conversion.Options(
                collection=collection,
                bank=bank_of(bank),
                wanted=grade_filter(**chosen),
                label=label,
                rel=rel,
                depth=depth,
                grader=grader,
                run=run,
                unknown_labels=unknown_labels,
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
