"""The board: cells, rows, the mean; tables of items."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, cast

from msgspec import Struct, to_builtins

from rubric_measures.base import tables
from rubric_measures.base.errors import MeasureError, counted, some_of
from rubric_measures.base.files import atomic_writer
from rubric_measures.base.tables import Column, Form, Ranged, Report, Table, columns, in_notebook, number
from rubric_measures.measures.findings import Note, of_queries, say
from rubric_measures.measures.grades import OnFailed
from rubric_measures.types.entities import (
    BOARD_FORMAT,
    AskedBoard,
    Best,
    BoardInputs,
    Cell,
    KeptBoard,
    KeptRun,
    LeaderboardChecks,
    Signature,
)

if TYPE_CHECKING:
    import pandas


def checked(checks: LeaderboardChecks) -> Iterator[Note]:
    """What ties do to the order."""
    for what, of in (("ties decide", "order_by_ties"), ("precision decides", "order_by_precision")):
        if found := [one.run_id for one in checks.runs if getattr(one, of)]:
            text = f"{counted(len(found), 'run')} with an order inside the cutoff that {what}: {some_of(found)}"
            yield Note(text, tuple(found))
    tied = [one for one in checks.runs if one.tied]
    if tied:
        worst = max(tied, key=lambda one: one.tied or 0.0)
        text = f"{len(tied)} of {counted(len(checks.runs), 'run')} have tied scores inside the cutoff; most has "
        yield Note(f"{text}{worst.run_id} ({100 * (worst.tied or 0.0):.1f} %)", (worst.run_id,), False)


class Leaderboard(Struct, frozen=True):
    """Scores of runs by measures.

    Attributes:
        measures: the measures, in the order asked for.
        cells: run_id -> measure -> mean, standard error, coverage, and the values of the queries.
        signature: what produced the numbers.
        missing: run_id -> queries that the run does not rank (scored 0).
        unknown: run_id -> queries that the run ranks and nobody graded (left out).
        inputs: the content that was scored; its digests are part of the signature.
        best: measure -> best possible score, of the measures by which it is known for every query; empty where nobody
            asked for it.
        findings: what may be wrong with grades and runs.
        said: what was logged while the runs were read.
        checks: what may be wrong beneath the scores; None where nobody asked for it.
        asked: what was asked for: with it a board is made again.
        inexact: where grades were asked only as far as some measures need them, the measures by which a run's score
            hangs on grades that were never asked, or failed: then its bounds alone are known. None where all were
            asked.
        content: of a board that was read, all that its file says.
        wrapped: which measures read labels that grades imply.
    """

    measures: Sequence[str]
    cells: Mapping[str, Mapping[str, Cell]]
    signature: Signature
    missing: Mapping[str, Sequence[str]] = {}
    unknown: Mapping[str, Sequence[str]] = {}
    inputs: BoardInputs = BoardInputs({}, {})
    best: Mapping[str, Best] = {}
    findings: Sequence[Note] = ()
    said: Sequence[Note] = ()
    checks: LeaderboardChecks | None = None
    asked: AskedBoard = AskedBoard()
    inexact: Sequence[str] | None = None
    content: Mapping[str, Any] = {}
    wrapped: Sequence[Note] = ()

    @property
    def values(self) -> dict[str, dict[str, Mapping[str, float | None]]]:
        """run_id -> measure -> query_id -> value (None where the grades of all items failed)."""
        return {run: {name: cell.per_query for name, cell in row.items()} for run, row in self.cells.items()}

    @property
    def exact(self) -> list[str]:
        """Where grades were asked only as far as some measures need them, the measures that have all that they need."""
        return [] if self.inexact is None else [one for one in self.measures if one not in self.inexact]

    def scored(self, run_id: str, measure: str) -> dict[str, float]:
        """Query -> value of the queries that could be scored; empty where the run has no mean: of a run that needs
        grades which were never asked, those of its queries that need none say nothing of it.
        """
        if self.cells[run_id][measure].mean is None:
            return {}
        return {query: value for query, value in self.cells[run_id][measure].per_query.items() if value is not None}

    def ranking(self, measure: str | None = None) -> list[str]:
        """The runs, best first by the first measure, and by name where they are equal."""
        name = self.measures[0] if measure is None else measure
        if name not in self.measures:
            raise MeasureError(f"the leaderboard has no measure {name}; it has {', '.join(self.measures)}")
        means = {run_id: row[name].mean for run_id, row in self.cells.items()}
        return [run for _, run in sorted((math.inf if mean is None else -mean, run) for run, mean in means.items())]

    @property
    def is_complete(self) -> bool:
        """Whether every value could be scored and no grade that was needed failed."""
        cells = [cell for row in self.cells.values() for cell in row.values()]
        return all(one.failed == 0 and one.mean is not None and None not in one.per_query.values() for one in cells)

    @property
    def on_failed(self) -> OnFailed | None:
        """How failed grades counted; None where another program's way was used."""
        return cast("OnFailed | None", self.signature.settings.get("on_failed"))

    def __repr__(self) -> str:
        return f"<Board of {counted(len(self.cells), 'run')} by {', '.join(self.measures)}>"

    def __str__(self) -> str:
        return self.render("text").rstrip("\n")

    def _repr_html_(self) -> str:
        first = [(run, self.cells[run][name]) for name in self.measures[:1] for run in self.ranking()]
        means = {run: (cell.mean, cell.standard_error or 0.0) for run, cell in first if cell.mean is not None}
        best = [run for run, (mean, _) in means.items() if mean > next(iter(means.values()))[0] - 1e-12]
        # Without a test nobody knows which differences count.
        said = (
            f"highest {self.measures[0]}: {', '.join(best)}; compare() says which runs differ" if len(means) > 1 else ""
        )
        bars = {run: Ranged(mean, mean - error, mean + error) for run, (mean, error) in means.items()}
        return in_notebook(board_tables(self), said, bars)

    def render(self, form: Form = "text", places: int = 4) -> str:
        """The board as text.

        Args:
            form: `text` (aligned), `tsv`, `json` (with per-query values and the signature), `jsonl`, `latex`,
                `markdown` or `trec_eval` (lines run, measure, query, value).
            places: decimal places, but of JSON; -1 prints all digits.
        """
        return "".join(tables.render(board_report(self, places), form))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the board as JSON, as the command `leaderboard` does; `load_board` reads it."""
        with atomic_writer(path) as stream:
            stream.write(self.render("json", -1))

    def to_dataframe(self, *, per_query: bool = False) -> pandas.DataFrame:
        """The scores as a pandas frame.

        >>> import rubric_measures
        >>> from ir_measures import Qrel
        >>> grades = rubric_measures.load([Qrel("q1", "d1", 4, "a")], grader="scale=0-5:4")
        >>> board = rubric_measures.score(grades, {"one": {"q1": {"d1": 1.0}}}, "RubricCover@1")
        >>> board.to_dataframe().to_dict()
        {'RubricCover(rel=4)@1': {'one': 1.0}}

        Args:
            per_query: a row a run, query and measure.

        Returns:
            a row a run (the index `run`, best first) and a column a measure: means, NaN where nothing could be scored.
            With `per_query` the columns run, query_id, measure, value (NaN where a value could not be scored).

        Raises:
            MissingExtraError: pandas is not installed.
        """
        from rubric_measures.base.plugins import require

        make, order = require("pandas", "pandas").DataFrame, self.ranking()
        frame: pandas.DataFrame
        if per_query:
            of = [(run, measure, self.cells[run][measure].per_query) for run in order for measure in self.measures]
            rows = [(run, query_id, measure, value) for run, measure, one in of for query_id, value in one.items()]
            frame = make(rows, columns=["run", "query_id", "measure", "value"]).astype({"value": "float64"})
        else:
            columns = {measure: [self.cells[run][measure].mean for run in order] for measure in self.measures}
            frame = make(columns, index=order, dtype="float64").rename_axis("run")
        return frame

    @property
    def notes(self) -> list[Note]:
        """What a table of means does not show: queries without grades, failed grades, coverage; and what may be wrong
        with grades and runs.
        """
        about = of_queries(self.cells, self.unknown, self.missing) if self.unknown or self.missing else ()
        of_checks = () if self.checks is None else checked(self.checks)
        notes = [*self.said, *about, *self.findings, *of_checks]
        inexact = self.inexact or ()
        scored = (cell for row in self.cells.values() for name, cell in row.items() if name not in inexact)
        unscored = sum(list(cell.per_query.values()).count(None) for cell in scored)
        if inexact:
            text = "no score by %s of runs that need grades which were never asked, or failed: only bounds are known"
            notes.append(Note(text % ", ".join(inexact), tuple(inexact)))
        failed = max((cell.failed for row in self.cells.values() for cell in row.values()), default=0)
        if failed:
            notes += self._of_failed(failed)
        if unscored:
            why = "the grades of all their items failed, or no item has a positive weight"
            notes.append(Note(f"{counted(unscored, 'value')} without a score: {why}"))
        shares = [(share, run, name) for run, of in graded_shares(self).items() for name, share in of.items()]
        share, run, name = min(shares, default=(1.0, "", ""))
        if self.inexact is not None and not inexact:
            notes.append(Note("the scores are exact, as if every grade had been asked", (), False))
        elif share < 1:
            text = f"grades exist for {100 * share:.1f} % of what {name} needs of run {run}, the least covered"
            if self.signature.settings.get("bank", "") is None and _has_items(self.measures):
                text += "; the items are those that occur there, as no test bank was given"
            notes.append(Note(text, (run,), False))
        return [*notes, *self.wrapped]

    def log_notes(self) -> None:
        """Logs the `notes`, but those that were logged while the runs were read."""
        say(self.notes[len(self.said) :])

    def _of_failed(self, count: int) -> Iterator[Note]:
        """How many grades failed, of what the worst run needs."""
        share, run, name = worst_failed(self.cells)
        many = ": many; read the bounds of the scores" if share >= MANY else ""
        of = f"({100 * share:.1f} % of what {name} needs of run {run})"
        yield Note(f"up to {counted(count, 'grade')} that a score needed failed {of}{many}", (run,))


# The share of failed grades, of those that the worst run needs, from which on the bounds count. From `TOO_MANY` on
# nobody gets scores who did not ask for them.
MANY = 0.05


def worst_failed(cells: Mapping[str, Mapping[str, Cell]]) -> tuple[float, str, str]:
    """The greatest share of needed grades that failed, with its run and measure; 0 where none did."""
    shares = [
        (cell.failures.share, run_id, name)
        for run_id, row in cells.items()
        for name, cell in row.items()
        if cell.failures is not None
    ]
    return max(shares, key=lambda found: found[0], default=(0.0, "", ""))


def _has_items(measures: Iterable[str]) -> bool:
    """Whether one of the measures has the items of the bank for its denominator."""
    from rubric_measures.measures.measure import ItemMeasure, kind_of

    return any(isinstance(kind_of(name), ItemMeasure) for name in measures)


def graded_shares(board: Leaderboard) -> dict[str, dict[str, float]]:
    """run_id -> measure -> the share of the grades that exist of those that the score needs, in [0, 1].

    Beside measures over grades, those over judgments say nothing: their share is of judgments.
    """
    from rubric_measures.measures.measure import is_standard

    names = [name for name in board.measures if not (board.inputs.qrels and is_standard(name))] or board.measures
    return {
        run_id: {name: share for name in names if (share := row[name].coverage) is not None}
        for run_id, row in board.cells.items()
    }


def board_tables(board: Leaderboard, places: int = 4) -> Iterator[Table]:
    """The leaderboard to read; below, where grades failed, what that leaves open, and the checks."""
    yield _board_table(board, places)
    yield from _failures_tables(board, places)
    if board.checks is not None:
        rows = [[one.run_id, one.queries, *board.checks.cells[one.run_id]] for one in board.checks.runs]
        yield Table(columns(["run", "queries", *board.checks.names]), rows)


def _board_table(board: Leaderboard, places: int) -> Table:
    """A row a run, best first: mean ± standard error by each measure, and the least coverage; below the best score."""
    from rubric_measures.measures.measure import kind_of

    rows, graded = [], graded_shares(board)
    for run_id in board.ranking():
        cells, shares, row = board.cells[run_id], graded[run_id].values(), [run_id]
        for name in board.measures:
            error = cells[name].standard_error
            spread = "" if error is None else f" ± {number(error, places)}"
            row.append(f"{number(cells[name].mean, places)}{spread}")
        rows.append([*row, f"{min(shares):.1%}" if shares else None])
    # Of measures of other packages, and of answered queries, nobody knows what the best possible score is the score of.
    said: dict[str, list[str]] = {}
    for name, best in board.best.items():
        measure = kind_of(name)
        what = " (all graded passages together)" if _has_items([name]) else " (the best ranking)" if measure else ""
        said.setdefault(what, []).append(f"{name} {number(best.mean, places)}")
    scores = "; ".join(", ".join(scores) + what for what, scores in said.items())
    heads = columns(["run", *board.measures, "grades"])
    notes = [f"best possible: {scores}"] if scores else []
    return Table(heads, rows, notes=notes if board.inexact is None else [*notes, *_exactness(board)])


def _exactness(board: Leaderboard) -> Iterator[str]:
    """Which scores are exact, where grades were asked only as far as some measures need them."""
    if board.exact:
        yield f"exact, as if every grade had been asked: {', '.join(board.exact)}"
    if board.inexact:
        yield f"not exact, as grades that some runs need were never asked or failed: {', '.join(board.inexact)}"


def board_content(board: Leaderboard) -> dict[str, Any]:
    """The JSON of a leaderboard (docs/json.md), with all digits, the values of all queries and the signature."""
    kept = KeptBoard(
        format=BOARD_FORMAT,
        measures=board.measures,
        runs=[
            KeptRun(run, board.missing.get(run, ()), {name: board.cells[run][name] for name in board.measures})
            for run in board.ranking()
        ],
        exact=None if board.inexact is None else board.exact,
        best=board.best,
        signature=str(board.signature),
        signature_hash=board.signature.short,
        settings=board.signature.settings,
        asked=None if board.asked == AskedBoard() else board.asked,
        checks=board.checks,
        # A tournament has the digest of its games among the settings.
        inputs=board.inputs if board.inputs.runs else None,
    )
    said: dict[str, Any] = to_builtins(kept)
    return said


def _failures_tables(board: Leaderboard, places: int) -> list[Table]:
    """A row a run and measure of which grades failed: what that leaves open. No table where none failed."""
    heads = ["run", "measure", "failed", "share", "no value", "credit", "± at random", "bounds"]
    rows: list[list[tables.Cell]] = []
    for run_id in board.ranking():
        for name in board.measures:
            cell = board.cells[run_id][name]
            found = cell.failures
            if found is None:
                continue
            credit, error = number(found.credit, places), number(found.standard_error, places)
            bounds = "-" if found.bounds is None else " to ".join(number(bound, places) for bound in found.bounds)
            rows.append([run_id, name, cell.failed, f"{found.share:.1%}", found.unscored, credit, error, bounds])
    title = "failed grades" if board.inexact is None else "what grades that were never asked, or failed, leave open"
    return [Table(columns(heads, left=2), rows, title)] if rows else []


def board_report(board: Leaderboard, places: int = 4) -> Report:
    """The leaderboard in all forms; for programs one column each for mean, standard error and coverage by a measure."""
    heads = [Column("run_id", is_left=True)]
    for name in board.measures:
        heads += [Column(name, places), Column(f"stderr:{name}", places), Column(f"coverage:{name}")]
    rows: list[list[tables.Cell]] = []
    for run_id in board.ranking():
        cells = (board.cells[run_id][name] for name in board.measures)
        rows.append([run_id, *chain(*((cell.mean, cell.standard_error, cell.coverage) for cell in cells))])
        rows[-1] += [] if board.checks is None else board.checks.cells.get(run_id, [None] * 5)
    heads += [] if board.checks is None else [Column(f"check:{name}") for name in board.checks.names]
    return Report(board_tables(board, places), [Table(heads, rows)], lambda: board_content(board))
