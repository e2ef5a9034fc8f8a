"""The board that `score` gives: a leaderboard that can be shown, compared, drawn and made a frame."""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from rubric_measures.api._comparing import Comparisons, compare
from rubric_measures.grades.notes import note_queries, note_without_items
from rubric_measures.leaderboards.board import BELOW, OVERALL, Leaderboard

if TYPE_CHECKING:
    import pandas

    from rubric_measures.meta_evaluation.run_comparison import Procedure, Test

__all__ = ["Board"]

OutputForm = Literal["text", "tsv", "json", "jsonl", "latex", "markdown", "trec_eval"]


@dataclass(frozen=True)
class Board(Leaderboard):
    """Scores of runs by measures; `print` shows them, best run first, with standard errors and coverage.

    Attributes: see `Leaderboard`: `measures`, `values` (run -> measure -> query -> value), `cells` (run -> measure ->
    mean, standard error, coverage), `signature`, ….
    """

    def __repr__(self) -> str:
        runs = [run for run in self.cells if run != OVERALL]
        return f"<Board of {len(runs)} runs by {', '.join(self.measures)}>"

    def __str__(self) -> str:
        return self.render("text").rstrip("\n")

    def render(self, form: OutputForm = "text", places: int = 4) -> str:
        """The board as text.

        Args:
            form: `text` (aligned), `tsv`, `json` (with per-query values and the signature), `jsonl`, `latex`,
                `markdown` or `trec_eval` (lines run, measure, query, value).
            places: decimal places; -1 prints all digits.
        """
        from rubric_measures.leaderboards.output import render

        return render(self, form, places)

    def to_dataframe(self, *, per_query: bool = False) -> pandas.DataFrame:
        """The scores as a pandas frame.

        >>> import rubric_measures
        >>> from ir_measures import Qrel
        >>> grades = rubric_measures.load([Qrel("q1", "d1", 4, "a")])
        >>> board = rubric_measures.score(grades, {"one": {"q1": {"d1": 1.0}}}, "RubricCover@1", overall=False)
        >>> board.to_dataframe().to_dict()
        {'RubricCover@1': {'one': 1.0}}

        Args:
            per_query: a row a run, query and measure.

        Returns:
            a row a run (the index `run`, best first) and a column a measure: means, NaN where nothing could be scored.
            With `per_query` the columns run, query_id, measure, value (NaN where a value could not be scored).

        Raises:
            MissingExtraError: pandas is not installed.
        """
        from rubric_measures.base.extras import require

        make = require("pandas", "pandas").DataFrame
        frame: pandas.DataFrame
        if per_query:
            rows = [
                (run, query_id, measure, value)
                for run in self.ranking()
                for measure in self.measures
                for query_id, value in self.values[run][measure].items()
            ]
            frame = make(rows, columns=["run", "query_id", "measure", "value"])
            return frame.astype({"value": "float64"})
        order = self.ranking()
        columns = {measure: [self.cells[run][measure].mean for run in order] for measure in self.measures}
        frame = make(columns, index=order, dtype="float64")
        frame.index.name = "run"
        return frame

    def compare(
        self,
        baseline: str | None = None,
        *,
        correction: Procedure = "holm",
        test: Test = "t",
        alpha: float = 0.05,
        rounds: int = 10_000,
        seed: int = 42,
    ) -> Comparisons:
        """Paired tests over the queries, by every measure; `print` shows them.

        Args:
            baseline: compare every run with this one; None compares all pairs, and groups runs that cannot be told
                apart.
            correction: for many comparisons: `holm`, `bh`, `none`, `tukey`, `randomised-tukey` or `max-t`.
            test: whose p-values count: `t` or `permutation`.
            alpha: significance level, in (0, 1).
            rounds: of the permutation tests.
            seed: of the permutation tests.

        Raises:
            UnknownNameError: there is no such run.
            InputError: there are fewer than two runs, or they share no scored query.
        """
        return compare(
            self,
            measures=self.measures,
            baseline=baseline,
            correction=correction,
            test=test,
            alpha=alpha,
            rounds=rounds,
            seed=seed,
        )

    def log_notes(self) -> None:
        """Logs what a table of means hides: queries without grades, failed grades, coverage, ties of ranks."""
        log = logging.getLogger("rubric_measures")
        self.ranks.say()
        note_queries(self.unknown, self.missing)
        note_without_items(self.without_items)
        values = (
            value
            for run, row in self.values.items()
            if run not in BELOW
            for column in row.values()
            for value in column.values()
        )
        unscored = sum(value is None for value in values)
        failed = max((cell.failed for row in self.cells.values() for cell in row.values()), default=0)
        if failed:
            log.warning("up to %d grades that a score needed failed; see the coverage columns", failed)
        if unscored:
            log.warning("%d values are not scored, because the grades of all their items failed", unscored)
        low = [
            (cell.coverage, run)
            for run, row in self.cells.items()
            for cell in row.values()
            if cell.coverage is not None and run != OVERALL
        ]
        if low and min(low)[0] < 1:
            share, run = min(low)
            log.info("grades exist for %.1f %% of what the least covered run (%s) needs", 100 * share, run)

    def plot(self, path: str | os.PathLike[str]) -> None:
        """Draws the means with their standard errors, runs in order of the first measure.

        Args:
            path: the figure to write: .png, .svg or .pdf.

        Raises:
            InputError: another ending, or a folder that does not exist.
            MissingExtraError: matplotlib is not installed.
        """
        from rubric_measures.meta_evaluation.plots import check_figure_path, plot_leaderboards, save_figure

        check_figure_path(path)
        order = [run_id for run_id in self.ranking() if run_id != OVERALL]
        means = {
            name: {run: cell for run in order if (cell := self.cells[run][name].mean) is not None}
            for name in self.measures
        }
        errors = {name: {run: self.cells[run][name].standard_error or 0.0 for run in order} for name in self.measures}
        save_figure(plot_leaderboards(order, means, errors, f"runs in order of {self.measures[0]}"), path)
