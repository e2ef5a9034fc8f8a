"""Comparing runs by their per-query scores: files, boards or numbers, put together and tested in pairs."""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from rubric_measures.api._loading import File, file_path
from rubric_measures.base.errors import InputError, UnknownNameError, naming
from rubric_measures.base.files import path_name
from rubric_measures.boards.board import NO_RUNS, Leaderboard
from rubric_measures.measures.scoring import column_named

if TYPE_CHECKING:
    import pandas

    from rubric_measures.analysis.comparison import Comparison, Test
    from rubric_measures.analysis.resampling import Correction
    from rubric_measures.formats.leaderboards import Form

_LOG = logging.getLogger("rubric_measures")
# Numbers that name no measure are by whatever measure is compared.
_ANY = ""
_Values = Mapping[str, Mapping[str, float]]
QueryScores: TypeAlias = File | Leaderboard | _Values
"""Per-query scores: a leaderboard file of any form that has them, a board, or run -> query -> score."""


@dataclass(frozen=True)
class Comparisons(Mapping[str, "Comparison"]):
    """Runs compared by each measure: measure -> `Comparison` (means, pairs with p-values, groups of equals)."""

    by_measure: Mapping[str, Comparison]

    def __getitem__(self, measure: str) -> Comparison:
        return self.by_measure[measure]

    def __iter__(self) -> Iterator[str]:
        return iter(self.by_measure)

    def __len__(self) -> int:
        return len(self.by_measure)

    def __repr__(self) -> str:
        return f"<Comparisons by {', '.join(self.by_measure)}>"

    def __str__(self) -> str:
        from rubric_measures.analysis.board_reports import comparison_report
        from rubric_measures.base.tables import render

        shown = (
            f"{measure}\n{''.join(render(comparison_report(one, 4, {}), 'text'))}"
            for measure, one in self.by_measure.items()
        )
        return "\n".join(shown).rstrip("\n")

    @property
    def is_complete(self) -> bool:
        """Whether all runs have all queries, and all tests a p-value."""
        return not any(
            one.left_out or any(pair.p_adjusted is None for pair in one.pairs) for one in self.by_measure.values()
        )

    def log_notes(self) -> None:
        """Logs what the tables leave out: queries that some run lacks, tests without a p-value; and who is best."""
        for one in self.by_measure.values():
            if one.left_out:
                text = (
                    "%d queries that some run lacks are left out of the means (such as %s), which are over %d; each "
                    "test is over the queries that both runs have"
                )
                _LOG.warning(text, len(one.left_out), one.left_out[0], len(one.queries))
            for reason, count in Counter(pair.test.reason for pair in one.pairs if pair.p_adjusted is None).items():
                _LOG.warning("%d comparisons have no p-value: %s", count, reason or "no variance is left")
            shifts = sum(pair.test.p is not None and pair.test.p_t is None for pair in one.pairs)
            if shifts and one.test == "t":
                text = "%d comparisons are of runs that differ by the same on every query: the permutation test counts"
                _LOG.info(text, shifts)
            if one.groups and one.groups[0][0] == next(iter(one.means)):
                others = one.groups[0][1:]
                named = ", ".join(others[:5]) + (", …" if len(others) > 5 else "")
                _LOG.info("the best run cannot be told apart from %d others (%s)", len(others), named)

    def to_dataframe(self) -> pandas.DataFrame:
        """A row a measure and pair of runs.

        Returns:
            the columns measure, run, against, difference, low, high (its interval, see `Comparison.intervals`),
            p_adjusted, significant and effect_size.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        from rubric_measures.base.plugins import require

        names = ["measure", "run", "against", "difference", "low", "high", "p_adjusted", "significant", "effect_size"]
        rows = [
            (
                measure, pair.first, pair.second, pair.test.mean_difference, pair.test.low, pair.test.high,
                pair.p_adjusted, pair.significant, pair.test.effect_size,
            )
            for measure, comparison in self.by_measure.items()
            for pair in comparison.pairs
        ]  # fmt: skip
        frame: pandas.DataFrame = require("pandas", "pandas").DataFrame(rows, columns=names)
        return frame

    def plot(self, path: str | os.PathLike[str]) -> None:
        """Draws the ranking of the runs with the groups that cannot be told apart, or the differences to the baseline.

        Args:
            path: the figure to write: .pdf, .svg or .png; further measures are `NAME-2.svg` and so on.

        Raises:
            InputError: another ending, or the file cannot be written.
            MissingExtraError: matplotlib is not installed.
        """
        from rubric_measures.pages.plots import plot_critical_difference, plot_differences
        from rubric_measures.pages.style import save_figures

        save_figures(
            (
                plot_critical_difference(one) if one.baseline is None else plot_differences(one)
                for one in self.by_measure.values()
            ),
            path,
        )


def compare(
    *scores: QueryScores,
    measures: str | Sequence[str] | None = None,
    runs: Sequence[str] | None = None,
    baseline: str | None = None,
    correction: Correction = "holm",
    test: Test = "t",
    alpha: float = 0.05,
    rounds: int = 10_000,
    seed: int = 42,
    smallest: float | None = None,
    form: Form | None = None,
) -> Comparisons:
    """Paired tests between runs over the queries that both have; `print` shows them.

    >>> import rubric_measures
    >>> ours, theirs = {"q1": 0.9, "q2": 0.6, "q3": 0.8}, {"q1": 0.5, "q2": 0.4, "q3": 0.2}
    >>> found = rubric_measures.compare({"ours": ours, "theirs": theirs}, baseline="theirs")
    >>> round(found["score"].pairs[0].test.mean_difference, 2)
    0.4

    Args:
        scores: one source or several, which are put together; each gives other runs.
        measures: the measures to compare by; needed where there are several.
        runs: compare these runs only (and the baseline).
        baseline: compare every run with this one; None compares all pairs, and groups runs that cannot be told apart.
        correction: for many comparisons: `holm`, `bh` or `none`.
        test: whose p-values count: `t` or `permutation`.
        alpha: significance level, in (0, 1); intervals of differences are of 1 − alpha, for all pairs at once with
            `holm`, for each by itself with the others.
        rounds: of the permutation tests.
        seed: of the permutation tests.
        smallest: the smallest difference that matters, in the measure's unit: each pair gets a verdict (better, worse,
            the same within it, undecided) and, where it is undecided, how many more queries would decide it.
        form: the form of the files, where it cannot be seen.

    Raises:
        UnknownNameError: there is no such run or measure.
        InputError: no per-query scores; a run comes twice; there are fewer than two runs, or they share no query.
    """
    from rubric_measures.analysis.comparison import compare_runs

    if rounds < 1:
        raise InputError("the number of rounds is 1 or more", settings=("rounds",))
    found = per_query_scores(scores, form, measures)
    if measures is None and len(found) > 1:
        raise InputError(f"several measures, choose one: {' '.join(found)}", settings=("measures",))
    with naming(*(_called(one) for one in scores)):
        return Comparisons(
            {
                name: compare_runs(
                    _wanted(values, runs, baseline),
                    name,
                    baseline=baseline,
                    procedure=correction,
                    test=test,
                    alpha=alpha,
                    rounds=rounds,
                    seed=seed,
                    smallest=smallest,
                )
                for name, values in found.items()
            }
        )


def per_query_scores(
    scores: Sequence[QueryScores], form: Form | None, measures: str | Sequence[str] | None
) -> dict[str, _Values]:
    """Measure -> run -> query -> score of all sources together; the measures that are named, or all.

    Raises:
        UnknownNameError: there is no such measure.
        InputError: no per-query scores, or a run comes twice.
    """
    sources = [_read(one, form) for one in scores]
    named = dict.fromkeys(name for source in sources for name in source.by_measure)
    known = [name for name in named if name != _ANY] or ["score"] * (_ANY in named)
    if not known:
        names = ", ".join(source.name for source in sources) or "name scores"
        raise InputError(f"{names}: no per-query scores; print them with -q, or a board as JSON")
    asked = [measures] if isinstance(measures, str) else measures
    return {name: _together(sources, name) for name in dict.fromkeys(_column(one, known) for one in asked or known)}


def _called(scores: QueryScores) -> str:
    """What messages call a source."""
    if isinstance(scores, str | os.PathLike):
        return path_name(scores)
    return "the board" if isinstance(scores, Leaderboard) else "scores"


def _column(name: str, known: Sequence[str]) -> str:
    try:
        return column_named(name, known)
    except UnknownNameError as error:
        error.settings = ("measures",)
        raise


class _Source(NamedTuple):
    """What one source holds: measure -> run -> query -> score."""

    name: str
    by_measure: Mapping[str, _Values]


def _read(scores: QueryScores, form: Form | None) -> _Source:
    from rubric_measures.formats.leaderboards import read_leaderboard

    if isinstance(scores, Leaderboard):
        return _Source(
            _called(scores),
            {
                name: {
                    run: {query: value for query, value in row[name].items() if value is not None}
                    for run, row in scores.values.items()
                }
                for name in scores.measures
            },
        )
    if isinstance(scores, Mapping):
        return _Source(_called(scores), {_ANY: scores})
    with file_path(scores) as path:
        table = read_leaderboard(path, form=form)
        return _Source(path, {name: found for name in table.measures if (found := table.per_query(name))})


def _together(sources: Sequence[_Source], measure: str) -> dict[str, Mapping[str, float]]:
    """Run -> query -> score of all sources."""
    found: dict[str, Mapping[str, float]] = {}
    for source in sources:
        for run_id, values in source.by_measure.get(measure, source.by_measure.get(_ANY, {})).items():
            if run_id in found:
                raise InputError(f"{source.name}: run {run_id!r} is in another file, too; give each run once")
            if run_id not in NO_RUNS:
                found[run_id] = values
    return found


def _wanted(scores: Mapping[str, Mapping[str, float]], runs: Sequence[str] | None, baseline: str | None) -> _Values:
    if runs is None:
        return scores
    wanted = dict.fromkeys([*runs, *([baseline] if baseline else [])])
    for run_id in wanted:
        if run_id not in scores:
            raise UnknownNameError("run", run_id, scores)
    return {run_id: scores[run_id] for run_id in wanted}
