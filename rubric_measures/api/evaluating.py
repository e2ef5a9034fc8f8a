"""One run scored as ir_measures does; runs of answers checked and scored; files converted; pages of boards.

One run scored as ir_measures' own program scores it, a value a query and measure in its order.

Reports judged as Auto-ARGUE judges them: judgments and a bank in, a board out.

Checking runs of generated answers against the rules of their track.

Converting files, and writing grades as qrels.

A board with its evidence as a page: which run has which item, and why.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ir_measures.measures.base import Measure
from ir_measures.util import Metric
from msgspec.structs import asdict

from rubric_measures.api.scoring import Board
from rubric_measures.base.errors import FormatError, InputError, counted, naming, tell
from rubric_measures.base.files import atomic_writer
from rubric_measures.corpora.loading import (
    JUDGED,
    AnyRun,
    Bank,
    File,
    Gradable,
    PassageRecords,
    RecordGrades,
    Runs,
    are_items,
    are_labels,
    bank_of,
    content_of,
    file_path,
    grader_of,
    is_file,
    is_table,
    judgments_of,
    labels_in,
    listed,
    load,
    named_files,
    rankings_for,
    read_runs,
    refuse_choice,
    run_of,
)
from rubric_measures.formats.grade_tables import OF_TABLES
from rubric_measures.formats.trec import as_known, spaced_ids
from rubric_measures.measures.findings import Looked, Note, of_labels, of_wrapped, say
from rubric_measures.measures.findings import of_run as of_ranked
from rubric_measures.measures.grades import (
    BANK_DOC,
    DIRECT_ITEM,
    LABEL_ITEMS,
    Grades,
    ItemRows,
    OnFailed,
)
from rubric_measures.measures.measure import (
    INTENT_AWARE,
    Measures,
    RubricMeasure,
    compute,
    is_supported,
    parse_measures,
    real_label,
    rubric_measures_of,
)
from rubric_measures.measures.provider import Evaluation, RubricProvider, evaluate_run
from rubric_measures.types.entities import Run

if TYPE_CHECKING:
    from rubric_measures.analysis.facts import FactDiff
    from rubric_measures.corpora.collections import Collection
    from rubric_measures.corpora.run_checks import Findings
    from rubric_measures.formats.support import ArgueReport
    from rubric_measures.measures.grade_sets import Grader
    from rubric_measures.measures.grades import Label
    from rubric_measures.measures.qrels import Unit
    from rubric_measures.pages.board_page import QueryEvidence


@dataclass(frozen=True)
class RunValues:
    """The values of one run.

    Attributes:
        measures: the measures, in the order asked for; standard ones over grades as `RubricQrels`.
        metrics: a value a query and measure, in ir_measures' order.
        evaluation: what is known beside the values, where they are computed from grades.
        notes: what the values do not show, and what may be wrong with grades and run.
        said: those of them that were logged while the run was read.
    """

    measures: Sequence[Measure]
    metrics: Sequence[Metric]
    evaluation: Evaluation | None = None
    notes: Sequence[Note] = ()
    said: Sequence[Note] = ()

    @property
    def failed(self) -> int:
        """Failed grades of ranked passages."""
        return 0 if self.evaluation is None else self.evaluation.failed

    @property
    def means(self) -> Mapping[Measure, float]:
        """Each measure over all queries, as ir_measures puts its values together."""
        aggregators = {measure: measure.aggregator() for measure in self.measures}
        # A plain sum hangs on the order in its last digit; of what is computed here it is that of the query ids.
        ours = sorted((one for one in self.metrics if is_supported(one.measure)), key=lambda one: one.query_id)
        for metric in [*ours, *(one for one in self.metrics if not is_supported(one.measure))]:
            aggregators[metric.measure].add(metric.value)
        return {measure: aggregator.result() for measure, aggregator in aggregators.items()}

    def log_notes(self) -> None:
        """Logs the `notes`, but those that were logged while the run was read."""
        say(self.notes[len(self.said) :])


def evaluate(
    source: Gradable,
    run: AnyRun,
    measures: Measures,
    bank: Bank | None = None,
    *,
    provider: str | None = None,
    facets: bool = False,
    grader: str | Grader | None = None,
    on_failed: OnFailed | None = None,
) -> RunValues:
    """Scores one run. Judgments of documents go to ir_measures as they are.

    >>> from ir_measures import Qrel
    >>> import rubric_measures
    >>> found = rubric_measures.api.evaluate([Qrel("q1", "d1", 1)], {"q1": {"d2": 2.0, "d1": 1.0}}, "RR")
    >>> [(str(measure), mean) for measure, mean in found.means.items()]
    [('RR', 0.5)]

    Args:
        source: what `load` takes; `-` is standard input.
        run: a TREC run file (`-` is standard input), or a run in memory, as `score` takes it.
        measures: see `score`; ir_measures itself computes those over judgments of documents or of their subtopics.
        bank: the test bank.
        provider: compute with this provider of ir_measures.
        facets: score facets in the place of items.
        grader: whose grades count: a name, or `model=…,prompt=…,scale=0-5:4`; see `load`.
        on_failed: see `load`.

    Raises:
        InputError: an argument does nothing for what the source holds, or a file cannot be read.
        MeasureError: a measure cannot be computed from these grades.
    """
    asked, wanted, lines = parse_measures(measures), grader_of(grader), list[str]()
    with contextlib.ExitStack() as stack, naming(source, run):
        of_run = named_files(run, stack)
        # A frame of ir_measures, which may name items, is no table of grades.
        held: Any = source
        if not isinstance(held, Grades | ItemRows):
            is_frame = hasattr(held, "itertuples") and not is_table(held)
            held = held.itertuples(index=False) if is_frame else named_files(held, stack)
        if isinstance(held, str) and isinstance(of_run, str) and held == of_run == "-":
            raise InputError("only one of grades and run can be standard input")
        held = held if isinstance(held, str | Grades | ItemRows) else list(held)
        is_judged = isinstance(held, list) and bool(held) and hasattr(held[0], "relevance")
        content = content_of(held) if isinstance(held, str) else "judgments" if is_judged else "records"
        called = held if isinstance(held, str) else "the source"
        is_ours = provider in (None, RubricProvider.NAME)
        is_graded = content in ("records", *JUDGED, "support", "added") or (content == "grades" and is_ours)
        if is_graded and not is_ours:
            raise _no_judgments(called, asked, provider)
        over_subtopics = all(measure.NAME in INTENT_AWARE for measure in asked)
        is_told = provider is not None or facets or wanted is not None
        is_asked = bank is not None or (any(map(is_supported, asked)) and (is_told or not over_subtopics))
        if is_graded or (is_ours and is_asked):
            return _of_grades(load(held, bank, grader=wanted, on_failed=on_failed), of_run, asked, facets)
        refuse_choice(called, wanted, OF_TABLES if content == "grades" else ())
        if not is_ours and (bank is not None or facets):
            text = f"{provider} knows neither a bank nor facets; leave them or it out"
            raise InputError(text, settings=("bank", "facets", "provider"))
        # Most are labels of documents in a file, of which no row has to be made.
        is_other = over_subtopics or facets or is_judged or content in ("dataset", "grades") or held == "-"
        judged: Any = None if is_other else labels_in(str(held))
        best: Any = judged or {}
        if judged is None:
            rows: Any = judgments_of(held, wanted) if isinstance(held, str) else held
            has_items = are_items(rows)
            # Of real labels, too, it is said here which measures there are.
            is_read_here = has_items or over_subtopics or real_label(rows) is not None
            if is_ours and is_read_here and not (over_subtopics and _have_plain_subtopics(rows)):
                return _of_grades(load(rows, on_failed=on_failed), of_run, asked, facets)
            if has_items and not over_subtopics:
                raise _no_judgments(called, asked, provider)
            if facets:
                text = f"{called}: holds judgments of documents, which have no facets; leave them out"
                raise InputError(text, settings=("facets",))
            judged = [row for row in rows if row.doc_id != BANK_DOC]
            for row in judged:
                of_query = best.setdefault(row.query_id, {})
                of_query[row.doc_id] = max(row.relevance, of_query.get(row.doc_id, row.relevance))
        ranked = run_of(of_run, lines)
        metrics = list(compute(asked, judged, _scored_as(best, ranked), provider))
    if is_ours and over_subtopics:
        # Each of these measures was computed by itself.
        places = {query_id: place for place, query_id in enumerate(dict.fromkeys(one.query_id for one in metrics))}
        metrics.sort(key=lambda one: (places[one.query_id], asked.index(one.measure)))
    said = list(map(Note, lines))
    notes = [*said, *of_ranked(ranked, map(of_labels, best, best.values()), asked)]
    return RunValues(asked, metrics, notes=notes, said=said)


def _have_plain_subtopics(rows: Sequence[Any]) -> bool:
    """Whether judgments name subtopics, and declare no bank: ir_measures has its own numbers of them, ties too."""
    subtopics = {getattr(row, "iteration", DIRECT_ITEM) for row in rows}
    is_bank = any(row.doc_id == BANK_DOC for row in rows)
    return not (subtopics <= LABEL_ITEMS or is_bank or real_label(rows) is not None)


def _no_judgments(source: str, measures: Sequence[Measure], provider: str | None) -> InputError:
    others = [measure.NAME in INTENT_AWARE for measure in measures if not isinstance(measure, RubricMeasure)]
    ways = ["qrels of items (for measures over subtopics)"] if True in others else []
    ways += ["qrels of passages (for measures over passages)"] if False in others else []
    first = f"write {' and '.join(ways)} first, or " if ways else ""
    return InputError(
        f"{provider} reads judgments, and {source} holds grades of items; {first}leave the provider out",
        settings=("provider",),
    )


def _of_grades(grades: Grades, of_run: Any, asked: Sequence[Measure], facets: bool) -> RunValues:
    measures = asked if are_labels(grades) else rubric_measures_of(asked)
    lines: list[str] = []
    run = run_of(of_run, lines)
    said = list(map(Note, lines))
    of_queries = (grades.by_facet() if facets else grades).queries
    found = evaluate_run(of_queries.values(), run, measures, grades.on_failed_given)
    wrapped = () if measures is asked else of_wrapped(asked)
    notes = [*said, *wrapped, *found.notes, *of_ranked(run, of_queries.values(), found.measures)]
    if found.failed:
        text = (
            f"{found.failed} grades of ranked passages failed; counted as {found.on_failed}; {100 * found.share:.1f} % "
            "of what a measure needs (a leaderboard shows what they leave open)"
        )
        notes.append(Note(text, settings=("on_failed",)))
    return RunValues(found.measures, found.metrics, found, notes, said)


def _scored_as(labels: Mapping[str, Mapping[str, float]], run: Run) -> dict[str, dict[str, float]]:
    """The run in file order, by which some providers of ir_measures break ties.

    It has the ids of the judgments where those hold spaces, which a run file cannot.
    """
    queries, found = spaced_ids(labels), {}
    for written, ranking in run.rankings.items():
        query_id = queries.get(written, written)
        doc_ids = as_known(ranking.doc_ids, labels.get(query_id, ()))
        found[query_id] = dict(ranking.with_scores(doc_ids).given)
    return found


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


def check_run(
    files: File | Iterable[File],
    track: str,
    *,
    topics: File | Mapping[str, str] | None = None,
    collection: File | Sequence[File] | Collection | None = None,
) -> Findings:
    """What a track would refuse in runs of generated answers, or score otherwise; nothing is changed.

    >>> from io import StringIO
    >>> import rubric_measures
    >>> run = StringIO('{"metadata": {"team_id": "t", "run_id": "r", "topic_id": "181"}, "responses": '
    ...                '[{"text": "Yes.", "citations": [11, 12, 13, 14]}]}')
    >>> print(*rubric_measures.api.check_run(run, "biogen", topics={"181": "Does it?"}))
    open file:1: warning: topic 181: responses[0].citations has 4; the most is 3

    Args:
        files: the files, each one run, in the form in which it is submitted.
        track: `rag26`, `rag25`, `rag24`, `dragun`, `ragtime` (reports, rankings or nuggets, told by content), or
            `biogen` (2024, 2025 A or 2025 B, likewise).
        topics: the topics of the track, in any form of queries, or id -> text; without them nothing is said of missing
            and unknown topics, and RAGTIME has no lengths.
        collection: look up there whether cited documents exist.

    Returns:
        A `Finding` (severity, path, line, topic, kind, problem) each, in the order of the files; none where the track
        takes all of it as it is. A file that is empty, or no JSON, is a finding too.

    Raises:
        UnknownNameError: nobody knows the track.
        InputError: a file cannot be opened, the topics cannot be read, or the collection has no documents.
    """
    from rubric_measures.corpora.collections import load_collection
    from rubric_measures.corpora.run_checks import Findings, check_runs
    from rubric_measures.formats.queries import QueryFile, read_query_file
    from rubric_measures.formats.reports import track_rules

    track_rules(track)
    known = load_collection(collection)
    if known is not None and not known.has_docs():
        raise InputError(f"{known.source}: has no documents", settings=("collection",))
    with contextlib.ExitStack() as stack:
        sources = listed(files)
        names = named_files(sources, stack)
        asked = QueryFile(topics) if isinstance(topics, Mapping) else None
        if topics is not None and not isinstance(topics, Mapping):
            name = stack.enter_context(file_path(topics))
            asked = read_query_file(name)
            if blank := [query_id for query_id, text in asked.texts.items() if not text.strip()]:
                raise FormatError(f"topic {blank[0]!r} has no text", path=name)
        shown = {name: _shown(one) for name, one in zip(names, sources, strict=True)}
        found = check_runs(names, track, topics=asked, collection=known)
    errors = sum(one.severity == "error" for one in found)
    tell(f"{errors} errors, {len(found) - errors} warnings in {counted(len(sources), 'file')}")
    return Findings(one._replace(path=shown[one.path]) for one in found)


def _shown(source: File) -> str:
    """The name by which messages call a file."""
    name = source if isinstance(source, str | os.PathLike) else getattr(source, "name", None)
    return os.fspath(name) if isinstance(name, str | os.PathLike) else "open file"


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


def write_report(
    path: str | os.PathLike[str],
    board: Board,
    grades: Gradable,
    runs: Runs | None = None,
    *,
    title: str = "Leaderboard",
    baseline: str | None = None,
    level: float = 0.95,
    notes: Sequence[str] = (),
    review: str | None = None,
    against: FactDiff | None = None,
    retrieved: Mapping[tuple[str, str, str], bool] | None = None,
) -> None:
    """Writes a board with its evidence as one HTML file that needs no network.

    It shows the leaderboard with intervals, what to look at, and for every query the items × runs, each with the
    passage, the nearest sentence and the reason behind the grade.

    Args:
        path: the file.
        board: what `score` gave.
        grades: the grades that it was scored from: graded records, which have the texts.
        runs: the runs that were scored; None for the rankings inside the records.
        title: the heading.
        baseline: the run that others are compared with: queries on which one loses most come first.
        level: the nominal coverage of intervals, in (0, 1).
        notes: further lines below the heading.
        review: the address of the review page of these grades, as `http://127.0.0.1:8642`: each grade leads to its
            place there. None for no links.
        against: what became of each fact since other answers, see `EvaluatedAnswers.against`.
        retrieved: see `EvaluatedAnswers.retrieved`.

    Raises:
        InputError: the grades have no texts beside them, scores are not of whole queries, or the file cannot be
            written.
        UnknownNameError: there is no such baseline.
    """
    from rubric_measures.pages.board_page import board_page

    shown = [query.with_retrieved(retrieved or {}) for query in evidence(board, grades, runs)]
    about: Any = {"title": title, "baseline": baseline, "notes": notes, "review": review, "against": against}
    parts = board_page(board, shown, level=level, **about)
    with atomic_writer(path) as stream:
        stream.writelines(parts)


def evidence(board: Board, grades: Gradable, runs: Runs | None = None) -> list[QueryEvidence]:
    """What stands behind a board, query by query; see `write_report`."""
    known = load(grades)
    if not isinstance(known, RecordGrades):
        text = "a report shows passages and answers; grades of this kind have no texts beside them: give graded records"
        raise InputError(text, settings=("report",))
    if board.signature.settings.get("unit"):
        raise InputError("a report shows items of whole queries; leave facets out", settings=("report", "facets"))
    from rubric_measures.formats.trec import runs_of_records
    from rubric_measures.measures.scoring import Plan
    from rubric_measures.measures.support import SupportMeasure
    from rubric_measures.pages.board_page import evidence_of
    from rubric_measures.records.models import cited_answers

    measures = parse_measures(list(board.measures))
    plan = Plan(measures, known.on_failed)
    # Where passages whose grades failed leave a ranking, it is looked at deeper.
    is_deeper = known.on_failed == "expected" and any(one.condenses for one in plan.computations)
    depth = None if is_deeper else plan.depth
    # A level that a measure names counts; else that of the scale.
    named = measures[0].params.get("rel")
    if known.held == "-":
        raise InputError("a report reads the records twice; name a file", settings=("report",))
    groups = list(known.groups)
    read = runs_of_records(groups) if runs is None else read_runs(runs)
    ranked = {run.run_id: rankings_for(run, known) for run in read}
    cut = {
        run: {query: list(doc_ids[:depth]) for query, doc_ids in ranked.get(run, {}).items()}
        for run in board.ranking()
        if run in board.values
    }
    level = named if isinstance(named, int) else None
    cited = (
        {group.query_id: cited_answers(group) for group in groups} if isinstance(measures[0], SupportMeasure) else {}
    )
    return list(evidence_of(groups, cut, known.bank, known.wanted, level=level, source=known.name, answers=cited))
