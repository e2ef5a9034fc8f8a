"""The board that people hold: shown, compared, drawn, made a frame; its runs left out of the pool in turn.

Drawing a board: what its pictures need, put together from its scores, and from the grades behind them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from ir_measures.measures.base import Measure
from msgspec.structs import asdict, replace

from rubric_measures.base.errors import InputError, MeasureError, counted, naming, tell
from rubric_measures.base.files import paused_collector
from rubric_measures.boards.board import Leaderboard
from rubric_measures.boards.scoring import check_leaderboard, is_summed, score_records, score_run_files, score_runs
from rubric_measures.corpora.loading import (
    AnswerGrades,
    Bank,
    File,
    Gradable,
    RecordGrades,
    Runs,
    TableGrades,
    are_labels,
    bank_of,
    file_path,
    is_file,
    load,
    read_runs,
    run_list,
)
from rubric_measures.formats.base import OVERALL
from rubric_measures.measures.findings import Note, of_wrapped, refuse_other
from rubric_measures.measures.grades import OnFailed
from rubric_measures.measures.measure import Measures, is_supported, parse_measures, rubric_measures_of
from rubric_measures.types.entities import AskedBoard, LeaderboardChecks, Run, bank_hash

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from rubric_measures.analysis.comparing import Comparisons, Reusability
    from rubric_measures.analysis.plots import DotPanel
    from rubric_measures.analysis.resampling import Interval, Tests
    from rubric_measures.formats.support import ArgueReport
    from rubric_measures.measures.grade_sets import Grader
    from rubric_measures.measures.grades import Grades


# Measures on one page.
_PANELS = 4


def _dots(board: Leaderboard, tests: Tests) -> Iterator[Figure]:
    """A panel a measure; a page holds as many as can be read."""
    from rubric_measures.analysis.comparing import mean_intervals
    from rubric_measures.analysis.plots import plot_dots

    runs = board.ranking()
    intervals = mean_intervals({name: {run: board.scored(run, name) for run in runs} for name in board.measures}, tests)
    for start in range(0, len(board.measures), _PANELS):
        names = board.measures[start : start + _PANELS]
        panels = [_panel(board, name, runs, tests, intervals) for name in names]
        yield plot_dots(runs, panels, _dots_note(board, runs, panels, tests))


def _dots_note(board: Leaderboard, runs: Sequence[str], panels: Sequence[DotPanel], tests: Tests) -> str:
    counts = sorted({board.cells[run][name].queries for run in runs for name in board.measures})
    over = f"{counts[0]} to {counts[-1]} queries" if len(counts) > 1 else counted(counts[0], "query")
    interval = f", {100 * tests.level:.4g} % interval" if any(panel.intervals for panel in panels) else ""
    groups = f"; groups by {tests.correction}, α = {tests.alpha:g}" if any(one.groups for one in panels) else ""
    return f"mean{interval} over {over}{groups}"


def _panel(
    board: Leaderboard, name: str, runs: Sequence[str], tests: Tests, intervals: Mapping[str, Mapping[str, Interval]]
) -> DotPanel:
    from rubric_measures.analysis.comparing import compare
    from rubric_measures.analysis.plots import DotPanel

    means = {run: mean for run in runs if (mean := board.cells[run][name].mean) is not None}
    best = board.best[name].mean if name in board.best else None
    # A count that is summed over queries has no standard error.
    if all(row[name].standard_error is None and row[name].queries > 1 for row in board.cells.values()):
        has_queries = any(board.cells[run][name].per_query for run in runs)
        return DotPanel(f"{name} ({'sum' if has_queries else 'all queries together'})", means, line=best)
    queries = {run: board.scored(run, name) for run in means}
    shown = {run: list(values.values()) for run, values in queries.items()}
    common = set.intersection(*map(set, queries.values())) if queries else ()
    groups = compare(board, measures=name, tests=tests)[name].groups if len(means) > 1 and len(common) > 1 else ()
    ends = {run: (intervals[name][run].low, intervals[name][run].high) for run in runs}
    return DotPanel(name, means, ends, shown, groups, best)


class Board(Leaderboard, frozen=True):
    """Scores of runs by measures; `print` shows them, best run first, with standard errors and coverage.

    Attributes: see `Leaderboard`: `measures`, `values` (run -> measure -> query -> value), `cells` (run -> measure ->
    mean, standard error, coverage), `best` (measure -> best possible mean, with its values by query), `signature`, ….
    """

    def compare(
        self,
        baseline: str | None = None,
        *,
        measures: str | Sequence[str] | None = None,
        tests: Tests | None = None,
    ) -> Comparisons:
        """Paired tests over the queries, by every measure; `print` shows them.

        Args:
            baseline: compare every run with this one; None compares all pairs, and groups runs that cannot be told
                apart.
            measures: the measures to compare by; all by default.
            tests: correction, level, smallest difference that matters, and draws; None for `Tests()`.

        Raises:
            UnknownNameError: there is no such run or measure.
            InputError: there are fewer than two runs, or they share no scored query.
        """
        from rubric_measures.analysis.comparing import compare
        from rubric_measures.analysis.resampling import Tests

        return compare(self, measures=measures, baseline=baseline, tests=tests or Tests())

    def plot(self, path: str | os.PathLike[str] | None = None, *, tests: Tests | None = None) -> Figure:
        """Draws the board, in the measures' own units.

        There is a row a run, best first by the first measure, and a panel a measure: the mean with its interval, single
        queries in grey, and squares in the columns of the groups of runs that it cannot be told apart from.

        Args:
            path: the figure to write (none, where it is left out): .pdf, .svg or .png; of .svg and .png further
                pages are `NAME-2.svg` etc.
            tests: as for `compare`; intervals of means have their level, too.

        Returns:
            the figure, which a notebook shows.

        Raises:
            InputError: another ending, or a folder that does not exist.
            MissingExtraError: matplotlib is not installed.
        """
        from rubric_measures.analysis.plots import save_figures
        from rubric_measures.analysis.resampling import Tests

        return save_figures(_dots(self, tests or Tests()), path)


def reusability(
    grades: Gradable,
    runs: Runs,
    measures: Measures | None = None,
    *,
    pool_depth: int = 10,
    bank: Bank | None = None,
    grader: str | Grader | None = None,
    on_failed: OnFailed | None = None,
) -> Reusability:
    """Would a run that was not pooled be judged fairly: each run is left out, and all are scored again.

    What only the passages of a run gave that no other run has among its first `pool_depth` is then lacking.

    Args:
        grades: as for `score`; qrels, too.
        runs: two or more, as for `score`.
        measures: those by which runs are scored; left out, those that fit the grades.
        pool_depth: how many passages of each ranking were pooled, 1 or more.
        bank: the test bank.
        grader: whose grades count: a name, or `model=…,prompt=…,scale=0-5:4`; see `load`.
        on_failed: how a failed grade counts, see `load`.

    Raises:
        InputError: there are fewer than two runs; a measure is a sum over queries; or no two runs have a passage in
            common.
    """
    from rubric_measures.analysis.comparing import Reusability, left_out

    measures = None if measures is None else parse_measures(measures)
    known = load(grades, bank, grader=grader, on_failed=on_failed)
    asked = parse_measures(default_measures(known) if measures is None else measures)
    asked = asked if are_labels(known) else rubric_measures_of(asked)
    sums = [measure for measure in rubric_measures_of(asked) if is_summed(measure)]
    refuse(
        (sums, f"{', '.join(map(str, sums))} is a sum over queries, and this is about means; leave it out", ()),
        (pool_depth < 1, f"a pool has the first passage of each run or more, not {pool_depth}", ("pool_depth",)),
    )
    found = {run.run_id: run.with_scores() for run in read_runs(runs)}
    for run_id, of_run in found.items():
        refuse_other(run_id, of_run.keys(), known.queries.keys())
    queries = [(query, {run: of.get(name, ()) for run, of in found.items()}) for name, query in known.queries.items()]
    rows = left_out(queries, asked, pool_depth, known.on_failed)
    if all(row.alone == 1 for row in rows):
        text = f"no two runs have a passage in common among their first {pool_depth}; nothing was pooled of both"
        raise InputError(text)
    return Reusability(rows, pool_depth)


def load_board(source: File | Board) -> Board:
    """Reads a board that `Board.save` or the command `leaderboard` wrote (JSON).

    It has all numbers and settings of the board that was written, and can be rendered, drawn, compared and correlated
    likewise. `unknown`, `findings` and `said` are empty, as files say nothing of these; `content` is the file's.

    Args:
        source: the file. A `Board` is given back as it is.

    Raises:
        FormatError: it is no such file, or contradicts itself.
    """
    if isinstance(source, Board):
        return source
    from rubric_measures.boards.kept import read_board

    with file_path(source) as path:
        return read_board(path, Board)


def score(
    grades: Gradable,
    runs: Runs | None = None,
    measures: Measures | None = None,
    *,
    qrels: Gradable | None = None,
    overall: bool = True,
    length: bool = False,
    present: bool = False,
    checks: bool = False,
    compat: Compat | None = None,
    watch: Watch | None = None,
    notes: bool = True,
) -> Board:
    """Scores runs by measures.

    >>> import rubric_measures
    >>> from ir_measures import Qrel
    >>> grades = rubric_measures.load([Qrel("q1", "d1", 4, "item a"), Qrel("q1", "d2", 5, "item b")])
    >>> board = rubric_measures.score(grades, {"one": {"q1": {"d1": 2.0, "d2": 1.0}}}, "RubricCover(rel=4)@1")
    >>> one = board.cells["one"]
    >>> one["RubricCover(rel=4)@1"].mean
    0.5

    Args:
        grades: `Grades`, or what `load` takes.
        runs: TREC run files, or ir_measures' runs in memory; a list of them, or name -> run. None: the rankings inside
            the records, or the answers that were assigned.
        measures: objects of ir_measures, or text; standard measures (`nDCG@10`) read the best grade of a passage, or
            the qrels where these are given. None takes those that fit: Rubric-Cover of passages, nugget scores where
            items have importance, …, or what the program of `compat` shows; and nDCG@10 of the qrels.
        qrels: official judgments, as a file, an id of ir_datasets or in memory: `nDCG@10` reads them, and
            `RubricQrels(measure='nDCG@10')` the grades. Both stand on one board, each over its own queries.
        overall: find the best possible score, `Board.best`: by measures of coverage that of all graded passages
            together (whatever the cutoff: finding the best k passages is NP-hard), by others that of the best ranking.
        length: add L, the length of answers in whitespace words; for answers inside the records.
        present: add each measure once more as `present:NAME`, over the queries alone that a run answers; else a missing
            answer is a 0 like any other.
        checks: look for what may be wrong beneath the scores: unjudged passages (Judged@k), missing queries, ties that
            decide the order. Grades and runs are read a second time, and official measures are not checked.
        compat: compute as this program does: `workbench` (of rankings inside records), `nuggetizer` (of a file of
            assignments) or `ragdoll` (of its file of graded answers).
        watch: see `Watch`.
        notes: log what the means do not show, see `Board.notes`.

    Raises:
        InputError: there is no run, two runs have one name, one is called `_overall_` as the best possible score is in
            files, or arguments exclude each other.
        FormatError: a file cannot be read; names file and line.
        MeasureError: a measure cannot be read, or not be computed from these grades.
        UnknownNameError: there is no such measure, or the bank lacks a query.
    """
    # Before files are read.
    measures = None if measures is None else parse_measures(measures)
    known, given = load(grades), AskedBoard(overall, length, present, compat, checks)
    if runs is None and isinstance(known, TableGrades):
        runs = known.runs
    official: Sequence[Measure] = ()
    judged = []
    if qrels is not None:
        labels = load(qrels)
        measures, official = _official_of(known, labels, runs, measures)
        judged.append((labels, official))
    asked = parse_measures(default_measures(known, compat) if measures is None else measures)
    ours = asked if are_labels(known) else rubric_measures_of([one for one in asked if one not in official])
    kind = "graded records" if isinstance(known, RecordGrades) else getattr(known, "kind", "")
    needed, is_of_answers = _PROGRAMS.get(str(compat), ""), compat in ("nuggetizer", "ragdoll")
    refuse(
        (length and runs is not None, "lengths are those of the answers beside the grades; leave the runs out",
         ("length",)),
        (needed and (runs is not None or kind != needed),
         f"scores as of {compat} need a file of {needed}, and no runs", ("compat",)),
        (is_of_answers and (length or getattr(known, "bank", None)),
         f"{compat} takes neither a bank nor lengths; leave them out", ("bank", "length")),
        (compat and known.on_failed_given is not None,
         "the other program counts failures in its own way; leave yours out", ("on_failed",)),
        (runs is None and not isinstance(known, AnswerGrades | RecordGrades),
         "these are no graded records with rankings; name runs to score", ("runs",)),
    )  # fmt: skip
    # Rows and rankings by the hundred thousand, and no cycles among them.
    with paused_collector():
        if is_of_answers:
            from rubric_measures.boards import programs

            board = (programs.score_ragdoll if compat == "ragdoll" else programs.score_nuggetizer)(
                getattr(known, "name", ""), ours
            )
        elif runs is None:
            board = _of_rankings_inside(known, ours, given, watch)
        else:
            said: list[str] = []
            listed, both = run_list(runs, said), [(known, ours), *judged]
            paths = [run for run in listed if isinstance(run, str)]
            if paths:
                seen = iter if watch is None else lambda files: watch(files, len(paths), "runs")
                boards = score_run_files(both, paths, overall=overall, watch=seen, said=said)
            else:
                read = [run for run in listed if not isinstance(run, str)]
                boards = [
                    score_runs(of, ((run.run_id, run.with_scores()) for run in read), by, overall=overall)
                    for of, by in both
                ]
            board, *more = [replace(board, said=list(map(Note, said))) for board in boards]
            if more:
                from rubric_measures.boards.programs import with_official

                board = with_official(board, more[0], asked)
    if checks:
        board = replace(board, checks=_checks(board, known, runs))
    # Who reads the board from a file would take it for that.
    text = f"a run is called {OVERALL}, the name of the best possible score in files; rename it"
    refuse((OVERALL in board.cells, text, ()))
    if present or length:
        from rubric_measures.boards.programs import with_lengths, with_present

        board = with_present(board) if present else board
        board = with_lengths(board, _lengths(known)) if length else board
    wrapped = () if ours == asked or official else of_wrapped(asked)
    made = Board(**{**asdict(board), "wrapped": wrapped, "asked": given})
    if notes:
        made.log_notes()
    return made


# What is shown where nobody asks for measures: of passages; of items with importance; of criteria with weights; of
# answers to items with neither; also where answers may contradict items; of labels of passages, given by assessors and
# by models; of answers whose citations were judged.
OF_PASSAGES = ("RubricCover@20", "nRubricCover@20", "RubricQrels(measure='nDCG@10')")
OF_NUGGETS = ("NuggetV(strict=True)", "NuggetV", "NuggetW", "NuggetA")
OF_CRITERIA = ("WeightedCover",)
OF_ANSWERS = ("NuggetA",)
OF_CONTRADICTIONS = ("WeightedContradiction",)
OF_LABELS = ("nDCG@10",)
OF_DIRECT = ("RubricQrels(measure='nDCG@10')",)
OF_CITATIONS = ("SupportPrecision", "SupportRecall", "CitationF1")
Compat: TypeAlias = Literal["workbench", "nuggetizer", "ragdoll"]
# What another program shows.
OF_PROGRAM: dict[Compat, tuple[str, ...]] = {
    "workbench": ("RubricCover@20", "nRubricCover@20"),
    "nuggetizer": ("NuggetV(strict=True)", "NuggetV", "NuggetA(strict=True)", "NuggetA"),
    "ragdoll": ("WeightedCover", "WeightedCover(strict=True)"),
}
# And the files that it scores.
_PROGRAMS = {"workbench": "graded records", "nuggetizer": "assignments", "ragdoll": "graded answers"}
Watch: TypeAlias = Callable[[Iterable[Any], int | None, str], Iterable[Any]]
"""Wraps what is worked through (things, how many, what they are), as a progress bar does."""


def refuse(*rows: tuple[object, str, tuple[str, ...]]) -> None:
    """Refuses what does not go together.

    Args:
        rows: whether it is so; what is wrong; the parameters that mend it.

    Raises:
        InputError: of the first row that is so.
    """
    for is_so, text, settings in rows:
        if is_so:
            raise InputError(text, settings=settings)


def _official_of(
    grades: Grades, judged: Grades, runs: Runs | None, measures: Measures | None
) -> tuple[Sequence[Measure], Sequence[Measure]]:
    """The measures, and those of them that read the judgments."""
    asked = parse_measures([*default_measures(grades), *OF_LABELS] if measures is None else measures)
    official = [one for one in asked if not is_supported(one)]
    refuse(
        (runs is None, "official measures are of runs; name run files", ("qrels", "runs")),
        (are_labels(grades), "these are labels of passages like the qrels; score each by itself", ("qrels",)),
        (not are_labels(judged), "these are no qrels: one label a passage is expected", ("qrels",)),
        (not 0 < len(official) < len(asked),
         "name a measure that reads the qrels, such as nDCG@10, and one that reads the grades, such as "
         "RubricQrels(measure='nDCG@10'); or score either alone", ("qrels", "measures")),
    )  # fmt: skip
    return asked, official


def _checks(board: Leaderboard, known: Grades, runs: Runs | None) -> LeaderboardChecks:
    """What can be wrong beneath a board, from its grades and the files of its runs once more."""
    if runs is None or any(isinstance(run, Run) for run in run_list(runs)):
        raise InputError("checks need run files: make them of the records with convert", settings=("checks",))
    measures = parse_measures(board.measures)
    if board.inputs.qrels:
        # The grades say nothing of official measures.
        measures = list(filter(is_supported, measures))
    return check_leaderboard(known, read_runs(runs), measures)


def default_measures(grades: Grades, compat: Compat | None = None) -> tuple[str, ...]:
    """The measures that fit grades, where nobody asks for others; a note says where these are labels by a grader.

    Args:
        grades: what is scored.
        compat: the program that scores are computed as; its own measures fit.
    """
    if compat is not None:
        return OF_PROGRAM[compat]
    if isinstance(grades, RecordGrades):
        if grades.wanted.kind == "direct":
            return OF_DIRECT
        if grades.are_of == "citations":
            return OF_CITATIONS
        is_open = grades.wanted.kind is None and grades.bank is None
        # The first graded query shows it: labels and grades of items together are two grade sets, of which one has to
        # be chosen.
        if is_open and next((one.grades.is_of_labels for one in grades.record_queries() if one.grades.docs), False):
            by = " ".join(OF_DIRECT)
            tell(f"{grades.name}: holds labels of passages, no grades of items, and is scored by {by}")
            return OF_DIRECT
        # Records say nothing of items but their ids.
        items = list(grades.bank or ())
    elif are_labels(grades):
        return OF_LABELS
    else:
        items = [item for query in grades.queries.values() for item in query.items]
    more = OF_CONTRADICTIONS if isinstance(grades, AnswerGrades) and grades.kind == "assessments" else ()
    if items and all(item.importance is not None for item in items):
        return OF_NUGGETS
    if items and all(item.weight is not None for item in items):
        return (*OF_CRITERIA, *more)
    is_of_answers = grades.are_of == "answers" if isinstance(grades, RecordGrades) else isinstance(grades, AnswerGrades)
    return (*OF_ANSWERS, *more) if is_of_answers else OF_PASSAGES


def _of_rankings_inside(
    grades: Grades, measures: Sequence[Measure], asked: AskedBoard, watch: Watch | None
) -> Leaderboard:
    if isinstance(grades, AnswerGrades):
        return score_runs(grades, grades.rankings, measures, overall=asked.overall)
    assert isinstance(grades, RecordGrades)
    settings: dict[str, object] = {"bank": None if grades.bank is None else bank_hash(grades.bank)}
    if asked.compat is not None:
        from rubric_measures.boards.programs import score_workbench

        queries = grades.record_queries(keep_ranks=True, wanted=replace(grades.wanted, first=True))
        board = score_workbench(queries, measures, settings)
        return board if asked.overall else replace(board, best={})
    seen = grades.record_queries() if watch is None else watch(grades.record_queries(), None, "queries")
    board = score_records(seen, measures, on_failed=grades.on_failed_given, overall=asked.overall, settings=settings)
    _refuse_cited_alone(grades, board)
    return board


def _refuse_cited_alone(grades: RecordGrades, board: Leaderboard) -> None:
    """Refuses the zeros of answers that have no grades, because the documents that they cite have them."""
    for measure in board.measures:
        cells = [row[measure] for row in board.cells.values()]
        if all(cell.coverage == 0.0 and not cell.failed for cell in cells) and grades.are_of == "citations":
            raise MeasureError(
                f"{measure}: no answer has a grade, only what answers cite; name a measure of citations, such as "
                f"{OF_CITATIONS[0]}",
                settings=("measures",),
            )


def _lengths(grades: Grades) -> Any:
    from rubric_measures.measures.loading import lengths_of_records

    if isinstance(grades, AnswerGrades):
        return grades.lengths
    if isinstance(grades, RecordGrades):
        return lengths_of_records(grades.groups, grades.name)
    raise InputError("lengths are measured in files of graded records or assignments", settings=("length",))


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
        raise InputError("coverage needs the nuggets of a bank; name it", settings=("bank",))
    if is_file(judgments):
        with file_path(judgments) as path:
            reports = ARGUE.read(path)
    else:
        reports = list(judgments)
    for report in reports:
        known.for_query(
            report.report.query_id, os.fspath(judgments) if isinstance(judgments, str | os.PathLike) else ""
        )
    with naming(bank, judgments):
        found = argue_scores(reports, known, weights)
    if scores is not None:
        write_argue_scores(scores, found.rows)
    return Board(**asdict(found.board))
