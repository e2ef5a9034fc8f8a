"""Runs against runs by their per-query scores: files, boards or numbers, put together and tested in pairs.

How many queries an experiment needs, from the per-query scores of a board that is there.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, combinations, groupby
from operator import attrgetter
from statistics import fmean
from typing import TYPE_CHECKING, Literal

import numpy as np
from ir_measures.measures.base import Measure
from msgspec import Struct
from msgspec.structs import replace

from rubric_measures.analysis.coefficients import ranks
from rubric_measures.analysis.leaderboards import UNNAMED, QueryScores, Values, name_of_scores, read_scores
from rubric_measures.analysis.resampling import (
    USUAL_DRAWS,
    USUAL_TESTS,
    Draws,
    Interval,
    Tests,
    score_table,
    without_width,
)
from rubric_measures.analysis.resampling import mean_intervals as intervals_of_means
from rubric_measures.analysis.significance import POWER, Comparison, Design, Pair, compare_runs, design
from rubric_measures.base.errors import InputError, RubricMeasuresError, UnknownNameError, counted, naming, warn
from rubric_measures.base.tables import (
    Cell,
    Column,
    Marked,
    Ranged,
    Report,
    Reported,
    Table,
    columns,
    declared,
    letters,
    plain,
    ranged,
)
from rubric_measures.boards.scoring import is_summed
from rubric_measures.measures.grades import NONE, OnFailed, QueryGrades
from rubric_measures.measures.measure import SupportMeasure, column_named, kind_of, parse_measures
from rubric_measures.measures.scoring import Plan
from rubric_measures.types.scales import as_number

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from rubric_measures.analysis.plots import DotPanel


# How many measures the table of all has.
_OVERVIEW = 7
# The format of the JSON of comparisons.
COMPARISONS: Literal["rubric_measures compare 4"] = "rubric_measures compare 4"


class AskedComparison(Struct, frozen=True, forbid_unknown_fields=True):
    """What was asked of `compare`: its arguments but the scores."""

    measures: str | Sequence[str] | None = None
    runs: Sequence[str] | None = None
    baseline: str | None = None
    tests: Tests = USUAL_TESTS


class KeptComparisons(Struct, frozen=True):
    """Comparisons as JSON.

    Attributes:
        format: what this file is.
        comparisons: measure -> how the runs compare.
        intervals: measure -> run -> the interval of its mean.
        asked: what was asked for.
    """

    format: Literal["rubric_measures compare 4"]
    comparisons: Mapping[str, Comparison]
    intervals: Mapping[str, Mapping[str, Interval]]
    asked: AskedComparison


@dataclass(frozen=True, repr=False)
class Comparisons(Reported, Mapping[str, "Comparison"]):
    """Runs compared by each measure: measure -> `Comparison` (means, pairs with intervals, groups of equals).

    Attributes:
        by_measure: the comparisons.
        left_out: measures by which fewer than two runs have a score, or the baseline has none.
        asked: what was asked for; with it they are made again.
        scores: measure -> run -> query -> score.
    """

    by_measure: Mapping[str, Comparison]
    left_out: Sequence[str] = ()
    asked: AskedComparison = field(default_factory=AskedComparison, compare=False)
    scores: Mapping[str, Values] = field(default_factory=dict, compare=False, repr=False)

    def __getitem__(self, measure: str) -> Comparison:
        return self.by_measure[measure]

    def __iter__(self) -> Iterator[str]:
        return iter(self.by_measure)

    def __len__(self) -> int:
        return len(self.by_measure)

    def report(self) -> Report:
        """What is concluded, and each run against the best or the baseline; for programs all pairs with all numbers."""
        comparisons = self.by_measure
        kept = KeptComparisons(COMPARISONS, comparisons, self.intervals, self.asked)
        pairs = [(one, pair) for one in comparisons.values() for pair in one.pairs]
        data = declared(pairs, {
            "measure": lambda row: row[0].measure,
            "run": lambda row: row[1].first,
            "against": lambda row: row[1].second,
            Column("difference", is_ranged=True): lambda row: _difference(row[1]),
            "t": lambda row: row[1].test.t,
            "p": lambda row: row[1].test.p,
            "p_adjusted": lambda row: row[1].p_adjusted,
            "d_z": lambda row: row[1].test.effect_size,
            "wins": lambda row: row[1].test.wins,
            "ties": lambda row: row[1].test.ties,
            "losses": lambda row: row[1].test.losses,
            "conclusion": lambda row: row[1].conclusion,
            "more queries": lambda row: row[1].more_queries,
            "at most": lambda row: row[1].at_most,
            "said": lambda row: row[1].said(row[0].tests.smallest, 4),
            Column("score", is_ranged=True): lambda row: self._mean(row[0], row[1].first),
            Column("score against", is_ranged=True): lambda row: self._mean(row[0], row[1].second),
            "group": lambda row: group_letters(row[1].first, row[0].groups),
            "group against": lambda row: group_letters(row[1].second, row[0].groups),
        })  # fmt: skip
        means = self._overview()
        # A run alone has a mean and no pair.
        tables = [self._against(one) for one in comparisons.values()] if pairs else [means]
        tables += [means] if pairs and len(comparisons) > 1 else []
        return Report(tables, [data if pairs else means], lambda: plain(kept))

    @cached_property
    def intervals(self) -> Mapping[str, Mapping[str, Interval]]:
        """Measure -> run -> the interval of its mean over the queries that all runs have."""

        shown = {
            name: {run: {query: self.scores[name][run][query] for query in one.queries} for run in one.means}
            for name, one in self.by_measure.items()
            if name in self.scores
        }
        return mean_intervals(shown, self.asked.tests)

    @property
    def is_complete(self) -> bool:
        """Whether all runs have all queries, and all tests a p-value."""
        return not self.left_out and not any(
            one.left_out or one.unscored or any(pair.p_adjusted is None for pair in one.pairs)
            for one in self.by_measure.values()
        )

    def log_notes(self) -> None:
        """Logs what the tables leave out: queries that some run lacks, tests without a p-value."""
        for one in self.by_measure.values():
            for such in one.left_out[:1]:
                least, run = min((len(values), run) for run, values in self.scores[one.measure].items() if values)
                said = (one.measure, len(one.left_out), such, len(one.queries), run, least)
                text = "%s: %d queries that some run lacks left out (such as %s): everything is over the other %d"
                warn(text + "; %s has the fewest, %d", *said)
            for reason, count in Counter(pair.test.reason for pair in one.pairs if pair.p_adjusted is None).items():
                warn("no p-value of %d pairs: %s", count, reason or "so few queries or rounds decide nothing")

    def plot(self, path: str | os.PathLike[str] | None = None) -> Figure:
        """Draws the ranking of the runs with the groups that cannot be told apart, or the differences to the baseline.

        Args:
            path: the figure to write (none, where it is left out): .pdf, .svg or .png; further
                measures are `NAME-2.svg` and so on.

        Returns:
            the figure, which a notebook shows.

        Raises:
            InputError: another ending, or the file cannot be written.
            MissingExtraError: matplotlib is not installed.
        """
        from rubric_measures.analysis.plots import plot_dots, save_figures

        panels = map(self._panel, self.by_measure.values())
        return save_figures((plot_dots(list(panel.means), [panel], note) for panel, note in panels), path)

    def _panel(self, one: Comparison) -> tuple[DotPanel, str]:
        """What is drawn of a comparison, and what stands below it."""
        from rubric_measures.analysis.plots import DotPanel

        interval, over = f"{100 * one.tests.level:.4g} % interval", counted(len(one.queries), "query")
        if one.baseline is None:
            ends = {run: (of.low, of.high) for run, of in self.intervals.get(one.measure, {}).items()}
            queries = {run: list(values.values()) for run, values in self.scores.get(one.measure, {}).items()}
            note = f"mean, {interval} over {over}; groups by {one.tests.correction}, α = {one.tests.alpha:g}"
            return DotPanel(one.measure, one.means, ends, queries, one.groups), note
        pairs = sorted(one.pairs, key=lambda pair: -pair.test.mean_difference)
        means = {pair.first: pair.test.mean_difference for pair in pairs}
        ends = {pair.first: (pair.test.low, pair.test.high) for pair in pairs}
        alike = [pair.first for pair in pairs if not pair.significant]
        note = f"minus that of {one.baseline}: mean and {interval} ({one.tests.correction}), {over}"
        return DotPanel(one.measure, means, ends, self._each_query(one), (), 0.0, "", alike), note

    def _each_query(self, comparison: Comparison) -> dict[str, list[float]]:
        """Each run minus the baseline, query by query."""
        scores = self.scores[comparison.measure]
        base = scores[str(comparison.baseline)]
        return {
            run: [value - base[query] for query, value in scores[run].items() if query in base]
            for run in comparison.means
            if run != comparison.baseline
        }

    def _mean(self, comparison: Comparison, run: str) -> Ranged:
        found = self.intervals.get(comparison.measure, {}).get(run)
        return Ranged(comparison.means[run], *(() if found is None else (found.low, found.high)))

    def _standing(self, comparison: Comparison, run: str) -> tuple[Cell, str]:
        """A run's mean with its interval, the best in bold; the letters of its groups, or † where it differs."""
        if run not in comparison.means:
            return None, ""
        mean, mark = self._mean(comparison, run), group_letters(run, comparison.groups)
        if comparison.baseline is not None:
            mark = "†" if any(pair.significant for pair in comparison.pairs if pair.first == run) else ""
        return Marked(mean, "", bold=mean.value == max(comparison.means.values())), mark

    def _overview(self) -> Table:
        """A row a run, best first by the first measure: its mean by each of the first measures, with its letters."""
        runs = dict.fromkeys(run for one in self.by_measure.values() for run in one.means)
        first, *_ = shown = list(self.by_measure.values())[:_OVERVIEW]
        heads = [*columns(["run"]), *(Column(one.measure, is_left=True, is_ranged=True) for one in shown)]
        rows = [[run, *(_with_letters(*self._standing(one, run)) for one in shown)] for run in runs]
        what = "a letter in common: not told apart" if first.baseline is None else f"†: differs from {first.baseline}"
        title = f"means with {100 * first.tests.level:g} % intervals; {what}" if len(runs) > 1 else first.said()
        more = len(self.by_measure) - len(shown)
        notes = [f"{counted(more, 'more measure')} above, in TSV and in JSON"] * (more > 0)
        means = ((one.measure, self.intervals.get(one.measure, {})) for one in shown)
        lacking = without_width((f"{run} by {name}", found) for name, of in means for run, found in of.items())
        return Table(heads, rows, title, [*notes, *lacking])

    def _against(self, comparison: Comparison) -> Table:
        """Each run against the baseline, or else against the best run."""
        best = comparison.baseline or next(iter(comparison.means))
        sign = 1.0 if comparison.baseline else -1.0
        of = {pair.first if comparison.baseline else pair.second: pair for pair in comparison.pairs
              if best in (pair.first, pair.second)}  # fmt: skip
        cells: dict[Column | str, Callable[[str], Cell]] = {
            "run": lambda run: run,
            comparison.measure: lambda run: self._standing(comparison, run)[0],
            "group" if comparison.baseline is None else "†": lambda run: self._standing(comparison, run)[1],
            "difference": lambda run: _difference(of[run], sign) if run in of else None,
            "p_adjusted": lambda run: of[run].p_adjusted if run in of else None,
            Column(f"against {best}", is_left=True): lambda run: (
                of[run].said(comparison.tests.smallest, 4, of_second=sign < 0) if run in of else None
            ),
        }
        notes = [*_told(comparison), *without_width(self.intervals.get(comparison.measure, {}).items())]
        return declared(comparison.means, cells, title=comparison.said(), notes=notes)


def compare(
    *scores: QueryScores,
    measures: str | Sequence[str] | None = None,
    runs: Sequence[str] | None = None,
    baseline: str | None = None,
    tests: Tests = USUAL_TESTS,
) -> Comparisons:
    """Means with their intervals, and paired tests of runs, over the queries that all have; `print` shows them.

    >>> import rubric_measures
    >>> ours, theirs = {"q1": 0.9, "q2": 0.6, "q3": 0.8}, {"q1": 0.5, "q2": 0.4, "q3": 0.2}
    >>> found = rubric_measures.compare({"ours": ours, "theirs": theirs}, baseline="theirs")
    >>> round(found["score"].pairs[0].test.mean_difference, 2)
    0.4

    Args:
        scores: boards, or other files of per-query scores, which are put together; each gives other runs.
        measures: the measures to compare by; all by default.
        runs: compare these runs only (and the baseline).
        baseline: compare every run with this one; by default all pairs are compared, and runs that cannot be told apart
            are groups.
        tests: correction, level, smallest difference that matters, and draws.

    Raises:
        UnknownNameError: there is no such run or measure.
        InputError: no per-query scores; a run comes twice; fewer than two of several runs have a score, or they share
            no query.
    """
    found = {name: _wanted(values, runs, baseline) for name, values in per_query_scores(scores, measures).items()}
    # Where grades were asked for some measures only, a board has others by which nobody can be compared.
    lacking = [
        name
        for name, values in found.items()
        if sum(map(bool, values.values())) < min(2, len(values)) or values.get(baseline or "", True) == {}
    ]
    left_out = lacking if measures is None and len(lacking) < len(found) else []
    warn("not compared by %s: too few runs have a score, or the baseline has none", ", ".join(left_out) or 0)
    kept = {name: values for name, values in found.items() if name not in left_out}
    with naming(*map(name_of_scores, scores)):
        compared = {name: compare_runs(values, name, baseline=baseline, tests=tests) for name, values in kept.items()}
    return Comparisons(compared, left_out, AskedComparison(measures, runs, baseline, tests), kept)


def per_query_scores(scores: Sequence[QueryScores], measures: str | Sequence[str] | None) -> dict[str, Values]:
    """Measure -> run -> query -> score of all sources together; the measures that are named, or all.

    Raises:
        UnknownNameError: there is no such measure.
        InputError: no per-query scores, or a run comes twice; scores are sums over queries; boards that another bank or
            grader made.
    """
    read = [(name_of_scores(one), read_scores(one, ranks=False)) for one in scores]
    for (name, one), (other, two) in combinations(read, 2):
        # Not by `graders`: they hang on the bank's order, and on which items were graded anew. Of citations the items
        # are each answer's own sentences.
        own = any(isinstance(kind_of(column), SupportMeasure) for column in one.columns)
        made = {"grades": "grader", "qrels": "set of qrels"} | ({} if own else {"bank": "bank"})
        both = [what for what in made if what in one.settings and what in two.settings]
        if unlike := [made[what] for what in both if one.settings[what] != two.settings[what]]:
            said = f"{name} and {other}: not comparable, as another {' and another '.join(unlike)} made their scores"
            raise InputError(f"{said}; score both with the same")
    sources = [(name, one.by_query) for name, one in read]
    named = dict.fromkeys(name for _, source in sources for name in source)
    known = [name for name in named if name != UNNAMED] or ["score"] * (UNNAMED in named)
    names = ", ".join(name for name, _ in sources) or "name scores"
    if not known:
        raise InputError(f"{names}: no per-query scores; print them with -q, or a board as JSON")
    asked = [measures] if isinstance(measures, str) else measures
    chosen = dict.fromkeys(column_named(one, known, f"(columns of {names})") for one in asked or known)
    sums = [name for name in chosen if _is_summed(name)]
    if sums and (asked is not None or len(sums) == len(chosen)):
        problem = f"{sums[0]} is a sum over queries, and this is about means; leave it out"
        raise InputError(problem, settings=("measures",))
    warn("not compared by %s: a sum over queries is no mean", ", ".join(sums) or 0)
    return {name: _together(sources, name) for name in chosen if name not in sums}


def _is_summed(name: str) -> bool:
    """Whether scores of this name are put together by a sum, as counts are."""
    try:
        return any(map(is_summed, parse_measures(name)))
    except RubricMeasuresError:
        return False


def _together(sources: Sequence[tuple[str, Mapping[str, Values]]], measure: str) -> dict[str, Mapping[str, float]]:
    """Run -> query -> score of all sources."""
    found: dict[str, Mapping[str, float]] = {}
    for name, source in sources:
        for run_id, values in source.get(measure, source.get(UNNAMED, {})).items():
            if run_id in found:
                raise InputError(f"{name}: run {run_id!r} is in another file, too; give each run once")
            found[run_id] = values
    return found


def _wanted(scores: Mapping[str, Mapping[str, float]], runs: Sequence[str] | None, baseline: str | None) -> Values:
    if runs is None:
        return scores
    wanted = dict.fromkeys([*runs, *([baseline] if baseline else [])])
    for run_id in wanted:
        if run_id not in scores:
            raise UnknownNameError("run", run_id, scores)
    return {run_id: scores[run_id] for run_id in wanted}


@dataclass(frozen=True, repr=False)
class Designs(Reported):
    """Designs by each measure; `print` shows them.

    Attributes:
        designs: one a measure.
        tests: of the pilot's pairs, see `power`.
    """

    designs: Sequence[Design]
    tests: Tests

    def report(self) -> Report:
        """A row a measure."""
        wanted = " or ".join(dict.fromkeys(f"{one.smallest:g}" for one in self.designs))
        runs = " or ".join(dict.fromkeys(str(one.components.run_count) for one in self.designs))
        cells: dict[Column | str, Callable[[Design], Cell]] = {
            name: attrgetter(name.replace(" ", "_")) for name in ("measure", "deviation", "one pair", "all pairs")
        }
        note = (
            f"queries that find a difference of {wanted} with power {POWER:g} at {self.tests.alpha:g}: "
            f"of one pair, of each pair of {runs} runs (Bonferroni)"
        )
        content = {
            "format": "rubric_measures power 2", "power": POWER, "tests": self.tests, "measures": self.designs
        }  # fmt: skip
        return Report([declared(self.designs, cells, notes=[note])], content=lambda: plain(content))

    @property
    def is_complete(self) -> bool:
        """Whether each measure has a design."""
        return all(one.one_pair is not None for one in self.designs)

    def log_notes(self) -> None:
        """Logs queries that are left out, and where these are too few."""
        for one in self.designs:
            warn("%s: %d queries that some run lacks left out", one.measure, one.left_out)
            warn("%s: left out, as they have no score: %s", one.measure, ", ".join(one.unscored) or 0)
            if one.one_pair is None:
                text = "%s: ten queries or more tell how many find such a difference, up to a million"
                warn(text + "; %d queries here", one.measure, one.components.query_count)


def power(
    *scores: QueryScores,
    measures: str | Sequence[str] | None = None,
    tests: Tests = USUAL_TESTS,
) -> Designs:
    """How many queries an experiment needs to find a difference with power 0.8, from the board at hand.

    >>> import rubric_measures
    >>> from rubric_measures import Tests
    >>> board = {"a": {f"q{i}": i / 10 for i in range(10)}, "b": {f"q{i}": i % 4 / 10 for i in range(10)}}
    >>> found = rubric_measures.power(board, tests=Tests(smallest=0.05)).designs[0]
    >>> found.one_pair, round(found.deviation, 2)
    (315, 0.32)

    Args:
        scores: per-query scores of a pilot, as `compare` takes them; fewer than ten queries tell no number of queries.
        measures: the measures; all by default.
        tests: the smallest difference is the one that the experiment shall find, and the level that of its tests.

    Raises:
        UnknownNameError: there is no such measure.
        InputError: no per-query scores, fewer than two runs or common queries, or a number that makes no design.
    """
    found = per_query_scores(scores, measures)
    with naming(*map(name_of_scores, scores)):
        return Designs([design(values, measure, tests=tests) for measure, values in found.items()], tests)


def _with_letters(mean: Cell, mark: str) -> Cell:
    if not isinstance(mean, Marked) or not isinstance(mean.value, Ranged) or mark in ("", "-"):
        return mean
    return mean._replace(value=f"{ranged(*mean.value)} {mark}")


def _difference(pair: Pair, sign: float = 1.0) -> Ranged:
    ends = [end * sign for end in (pair.test.low, pair.test.high) if end is not None]
    return Ranged(pair.test.mean_difference * sign, min(ends, default=None), max(ends, default=None))


def _told(comparison: Comparison) -> Iterator[str]:
    """How the intervals were made, and what more queries would do for the board."""
    tests, share = comparison.tests, f"{100 * comparison.tests.level:g} %"
    pairs = counted(len(comparison.pairs), "pair")
    intervals = {
        "max-t": f"intervals hold all differences of {pairs} at once with {share} (sign flips of the largest t)",
        "holm": f"intervals are those of the last step of Holm's correction of {pairs}",
        "bh": f"intervals of what is told apart hold the true difference in {share} on average (BH, {pairs})",
        "none": f"intervals hold each difference by itself with {share}, not those of {pairs} at once",
    }
    if any(pair.test.low is not None for pair in comparison.pairs):
        made = "sign flips of t" if tests.correction == "max-t" else "t-test"
        is_one = len(comparison.pairs) == 1
        yield f"the interval holds the difference with {share} ({made})" if is_one else intervals[tests.correction]
    ahead = comparison.outlook
    if tests.smallest is not None:
        yield f"a difference below {tests.smallest:g} is taken not to matter"
    else:
        yield "no pair is called the same: scores are not in [0, 1], and no smallest difference that matters was given"
    if ahead is None or ahead.pairs < 2:
        return
    told = f"{counted(ahead.queries, 'query')} told {100 * ahead.separated:.0f} % of {pairs} apart"
    if ahead.expected is None:
        yield told + "; nothing says how many queries would tell more apart" * (ahead.separated < 1)
        return
    needed = [
        f"{'more than a million' if queries is None else f'{queries:,}'} for {100 * share:.0f} %"
        for share, queries in ahead.needed
        if queries is None or queries > ahead.queries
    ]
    told += f"; as many others would tell {100 * ahead.expected:.0f} %"
    yield told + "; needed: " * bool(needed) + ", ".join(needed)


def mean_intervals(scores: Mapping[str, Values], draws: Draws = USUAL_DRAWS) -> dict[str, dict[str, Interval]]:
    """The interval of every run's mean by every measure, see `resampling.mean_intervals`; all see the same queries.

    Args:
        scores: by each measure.
        draws: rounds, seed and level.

    Returns:
        measure -> run -> interval; `units` is the number of queries in the mean.
    """
    names = [(measure, run) for measure, of in scores.items() for run in of]
    table, _ = score_table([scores[measure][run] for measure, run in names])
    result: dict[str, dict[str, Interval]] = {measure: {} for measure in scores}
    for (measure, run), interval in zip(names, intervals_of_means(table, draws), strict=True):
        result[measure][run] = interval
    return result


@dataclass(frozen=True)
class LeftOut:
    """One run by one measure, when it took no part in making the pool.

    Attributes:
        run_id: the run.
        measure: the measure.
        alone: the share of its first passages that no other run has among its first.
        score: with all that there is.
        left_out: without what only these passages gave.
        rank: among all runs, 1 best, ties averaged.
        rank_left_out: likewise, where all are scored without that.
    """

    run_id: str
    measure: str
    alone: float
    score: float
    left_out: float
    rank: float
    rank_left_out: float


def without_grades(grades: QueryGrades, rows: Sequence[int]) -> QueryGrades:
    """The same, with nothing known of some passages."""
    left, failed = grades.grades.copy(), None if grades.failed is None else grades.failed.copy()
    left[rows] = NONE
    if failed is not None:
        failed[rows] = False
    return replace(grades, grades=left, failed=failed)


def left_out(
    queries: Iterable[tuple[QueryGrades, Mapping[str, Sequence[str]]]],
    measures: Sequence[Measure],
    depth: int,
    on_failed: OnFailed = "expected",
) -> list[LeftOut]:
    """Each run left out of the pool, one after the other, and all runs scored again.

    A passage is brought by the runs that have it among their first. What no run has there is brought by somebody else,
    and stays.

    Args:
        queries: the grades of each query, with run -> its ranking, best first.
        measures: measures that are averaged over queries.
        depth: how many passages of a ranking are pooled.
        on_failed: how failed grades count, see `Grades`.

    Returns:
        measure by measure, the best run first.

    Source: Zobel, How reliable are the results of large-scale information retrieval experiments? (SIGIR 1998).
    """
    known = [(grades, rankings) for grades, rankings in queries if grades.items]
    runs = sorted({run for _, rankings in known for run in rankings})
    plan = Plan(measures, on_failed)
    # Of the queries that have a value: the run that is left out (last none) × measures × runs.
    sums, counts = np.zeros((2, len(runs) + 1, len(measures), len(runs)))
    own_and_all = np.zeros((len(runs), 2))
    for grades, rankings in known:
        grades.refuse_partial("a run that is left out needs others")
        scorer = plan.for_query(grades)
        ranked = [scorer.ranked(rankings.get(run, ())) for run in runs]
        values = np.stack([scorer.score(ranked).values] * len(sums))
        tops = [dict.fromkeys(rankings.get(run, ())[:depth]) for run in runs]
        times = Counter(chain(*tops))
        for place, top in enumerate(tops):
            own = [doc_id for doc_id in top if times[doc_id] == 1]
            own_and_all[place] += len(own), len(top)
            if rows := [grades.docs[doc_id] for doc_id in own if doc_id in grades.docs]:
                values[place] = plan.for_query(without_grades(grades, rows)).score(ranked).values
        sums += np.nan_to_num(values)
        counts += ~np.isnan(values)
    means = np.divide(sums, counts, out=np.full(sums.shape, np.nan), where=counts > 0)
    # Sums of one value in another order are ties.
    both = np.stack([means, ranks(np.round(means, 12))])
    found = [
        LeftOut(run, str(measure), own / max(all_of, 1), *both[:, [-1, at], row, at].ravel().tolist())
        for row, measure in enumerate(plan.said.measures)
        for at, (run, (own, all_of)) in enumerate(zip(runs, own_and_all.tolist(), strict=True))
    ]
    order = list(map(str, plan.said.measures))
    return sorted(found, key=lambda one: (order.index(one.measure), one.rank, one.run_id))


def lost_by(rows: Sequence[LeftOut]) -> str:
    """What runs lose that are left out, by one measure, in words."""
    drops = [row.rank_left_out - row.rank for row in rows]
    worst = int(np.argmax(drops))
    most = f" (at most {drops[worst]:g}: {rows[worst].run_id})" if drops[worst] > 0 else ""
    return (
        f"scores {fmean(row.score - row.left_out for row in rows):.4f} less and drops {fmean(drops):.2f} ranks on "
        f"average{most}; runs that lose a rank: {sum(drop > 0 for drop in drops)} of {len(rows)}"
    )


@dataclass(frozen=True, repr=False)
class Reusability(Reported):
    """Would a run that was not pooled be judged fairly; `print` shows it.

    Attributes:
        rows: each run by each measure.
        depth: how many passages of a ranking are pooled.
    """

    rows: Sequence[LeftOut]
    depth: int

    def report(self) -> Report:
        """A row a run and measure."""
        cells: Mapping[Column | str, Callable[[LeftOut], Cell]] = {
            "run": lambda row: row.run_id,
            Column("measure", is_left=True): lambda row: row.measure,
            f"alone@{self.depth}": lambda row: row.alone,
            "score": lambda row: row.score,
            "left out": lambda row: row.left_out,
            "rank": lambda row: as_number(row.rank),
            "rank left out": lambda row: as_number(row.rank_left_out),
        }
        by_measure = groupby(self.rows, lambda row: row.measure)
        notes = [f"{name}: a run that is left out of the pool {lost_by(list(of))}" for name, of in by_measure]
        content = {"format": "rubric_measures reusability 1", "depth": self.depth, "runs": self.rows}
        return Report([declared(self.rows, cells, notes=notes)], content=lambda: plain(content))


def group_letters(name: object, groups: Sequence[Sequence[object]]) -> str:
    """The groups of a name as letters: what shares a letter cannot be told apart."""
    return letters(index for index, group in enumerate(groups) if name in group)
