"""Files converted, grades written as qrels, and reports scored that were judged as Auto-ARGUE judges them."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import asdict

from rubric_measures.analysis.boards import Board
from rubric_measures.base.errors import InputError, naming
from rubric_measures.corpora.loading import (
    Bank,
    File,
    Gradable,
    PassageRecords,
    are_labels,
    bank_of,
    file_path,
    is_file,
    listed,
    load,
)
from rubric_measures.formats.support import ArgueReport
from rubric_measures.measures.findings import Looked, Note, say

if TYPE_CHECKING:
    from rubric_measures.measures.grade_sets import Grader
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
    depth: int | None = None,
    name: str = "qrels",
    run: str | None = None,
    answers: Iterable[File] = (),
    grader: str | Grader | None = None,
) -> Path:
    """Writes files of any format that we read in any format that we write; several are merged.

    Args:
        inputs: files of one kind, which are merged; what contradicts each other is an error. In Python also what `pool`
            and `grade` return.
        output: the file to write, gzipped where its name ends in `.gz`; it may not be one that is read.
        to: the format to write; left out, that of the input.
        source: the format of the input; left out, it is told by content.
        add_run: add the rankings of this run file to records.
        add_qrels: add these judgments to records.
        collection: the texts, for records made of item qrels or of a table of grades; a source as in `pool`, or several
            files of documents.
        bank: the test bank, where grades become something else.
        depth: documents of each ranking; left out, all.
        name: what records call the grader of item qrels, which name none.
        run: write this run, of several in records; the name of the run in requests.
        answers: the answers that support judgments of RAGDoll are about.
        grader: whose grades count: a name, or `model=…,prompt=…,scale=0-5:4`; see `load`.

    Returns:
        the output.

    Raises:
        UnknownNameError: there is no such format.
        InputError: a file is wrong, files contradict each other, or there is no way from one format to the other.
    """
    from rubric_measures.corpora.conversion import Options, convert_files
    from rubric_measures.corpora.overwriting import keep_inputs
    from rubric_measures.formats.answers import read_answers
    from rubric_measures.measures.grade_sets import Grader

    with contextlib.ExitStack() as stack:
        groups = (inputs, add_run, add_qrels, answers)
        files, runs, qrels, beside = (
            [stack.enter_context(file_path(one)) for one in listed(group)] for group in groups
        )
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
                wanted=Grader.parse(grader),
                depth=depth,
                grader=name,
                run=run,
                answers=[one for path in beside for one in read_answers(path)] if beside else None,
            ),
        )
    return Path(output)


class QrelsWritten(NamedTuple):
    """What is to be said of qrels that were written: how many grades failed, and what may be wrong with the others."""

    failed: int
    notes: Sequence[Note]


def write_qrels(
    grades: Gradable,
    path: str | os.PathLike[str],
    *,
    per: Unit = "passage",
    label: Label = "max",
    rel: int | None = None,
    times: int | None = None,
) -> QrelsWritten:
    """Writes grades as a TREC qrels file.

    Args:
        grades: `Grades`, or what `load` takes.
        path: the file, gzipped where its name ends in `.gz`; `-` is standard output.
        per: one label a `passage`; a `facet`, as the query `query/facet`; or one line an `item` (diversity qrels).
        label: the highest grade of the items (`max`), or how many of them have `rel` (`count`); not for items. In
            Python see `QueryGrades`.
        rel: the inclusive minimum grade that counts; left out, `max` keeps all grades, and `count` takes the level that
            covers on the scale. Not for items.
        times: multiply every label by this, and round it, for programs that read whole labels only; the levels of
            measures are then multiplied, too.

    Returns:
        the number of grades that failed, and what may be wrong.

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
    known = load(grades)
    if per == "item" and are_labels(known):
        raise InputError(
            "there are no item grades here, only one label a passage; write qrels of passages", settings=("per",)
        )
    said: list[Note] = []
    trec.write_qrels(path, times_rows(qrels_of(known, per, label, rel, said), times, said))
    failed, looked = 0, Looked()
    for name, query in known.queries.items():
        failed += 0 if query.failed is None else int(query.failed.sum())
        looked.add(name, query, {})
    least = known.scale.covers if rel is None and label == "count" and known.scale is not None else rel
    say(looked.notes((), least), said)
    return QrelsWritten(failed, said)


def argue(
    judgments: str | os.PathLike[str] | Iterable[ArgueReport],
    bank: Bank,
    *,
    weights: Mapping[str, float] | None = None,
    scores: str | os.PathLike[str] | None = None,
) -> Board:
    """Scores reports that were judged sentence by sentence, as Auto-ARGUE does.

    The board has `sentence_support`, `citation_support`, `citation_relevance`, `nugget_coverage`,
    `nugget_coverage_weighted`, `f1` and `f1_weighted` as means over topics (macro), and with `_micro` those of all
    topics together. A report whose judging failed is named and has no value.

    Args:
        judgments: Auto-ARGUE's file of judgments, or what it holds.
        bank: the nuggets; of nugget banks the documents of answers and how answers are joined (AND, OR) count.
        weights: importance -> weight; vital 2 and okay 1 if None.
        scores: a file to write scores and counts to, in Auto-ARGUE's form.

    Raises:
        InputError: there is no report, or the nuggets cannot be weighed.
        FormatError: a file cannot be read; names file and line.
        UnknownNameError: the bank does not have a topic.
    """
    from rubric_measures.boards.programs import argue_scores
    from rubric_measures.corpora.overwriting import keep_inputs
    from rubric_measures.formats.support import ARGUE, write_argue_scores

    keep_inputs(scores, judgments, bank)
    known = bank_of(bank)
    if known is None:
        raise InputError("coverage is of the nuggets of a bank; name it", settings=("bank",))
    if is_file(judgments):
        with file_path(judgments) as path:
            reports = ARGUE.read(path)
    else:
        reports = list(judgments)
    for report in reports:
        known.for_query(report.query_id, os.fspath(judgments) if isinstance(judgments, str | os.PathLike) else "")
    with naming(bank, judgments):
        found = argue_scores(reports, known, weights)
    if scores is not None:
        write_argue_scores(scores, found.rows)
    return Board(**asdict(found.board))
