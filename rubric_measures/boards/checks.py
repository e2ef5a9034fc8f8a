"""What can be wrong beneath a leaderboard: unjudged passages, missing queries, ties that decide the winner."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from ir_measures.measures.base import Measure
from msgspec.structs import replace

from rubric_measures.boards.board import BELOW, Leaderboard
from rubric_measures.boards.scoring import score_records
from rubric_measures.formats.trec import spaced_ids, written_id
from rubric_measures.measures.grades import OnFailed, QueryGrades
from rubric_measures.measures.loading import RecordQuery
from rubric_measures.measures.scoring import Plan
from rubric_measures.types.entities import Gap, Run, in_single, ranked


@dataclass(frozen=True, slots=True)
class RunCheck:
    """One run.

    Attributes:
        run_id: the run.
        queries: queries of the leaderboard that the run ranks.
        missing: queries that it does not rank.
        judged: Judged@k: the share of the passages within the cutoff that have a grade; None without passages.
        tied: the share of the passages within the cutoff whose score another passage of the ranking has, too; None
            without passages.
        order_by_ties: queries whose first passages stand in another order with ties in file order.
        order_by_precision: queries whose first passages stand in another order where scores compare in the other
            precision (single or double).
    """

    run_id: str
    queries: int
    missing: tuple[str, ...]
    judged: float | None
    tied: float | None
    order_by_ties: int
    order_by_precision: int


@dataclass(frozen=True, slots=True)
class TopRun:
    """Which run is best under each tie rule.

    Attributes:
        measure: the measure.
        by_doc_id: best runs (several when their means are equal) with ties by document id, descending: ours.
        by_file_order: best runs with ties in file order.
        changed: whether the two differ: then a tie rule decides the winner.
    """

    measure: str
    by_doc_id: tuple[str, ...]
    by_file_order: tuple[str, ...]
    changed: bool


@dataclass(frozen=True)
class LeaderboardChecks:
    """The checks of a leaderboard.

    Attributes:
        cutoff: k, the largest cutoff of the measures; None when one reads the whole ranking.
        runs: one check a run, in order of run_id.
        top: the best runs by each measure.
    """

    cutoff: int | None
    runs: tuple[RunCheck, ...]
    top: tuple[TopRun, ...]


def _rows_of_records(query: RecordQuery) -> dict[str, Sequence[tuple[str, float]]]:
    """The rankings inside graded records: passages in file order, scored by rank (passages of one rank are tied).

    Documents without a record stand at the end of the rows, with the ranks that they keep.
    """
    runs: dict[str, Sequence[tuple[str, float]]] = {}
    for run_id, places in query.ranks.items():
        own = set(query.rankings.get(run_id, ()))
        ranks = {place.doc_id: place.rank for place in places if place.doc_id in own}
        rows = [(doc_id, -float(ranks[doc_id])) for doc_id in query.passages if doc_id in ranks]
        below = 0
        for doc_id in reversed(query.rankings.get(run_id, ())):
            below = below - 1 if isinstance(doc_id, Gap) else ranks[doc_id]
            if isinstance(doc_id, Gap):
                rows.append((doc_id, -float(below)))
        runs[run_id] = rows
    return runs


def _rows_of_files(runs: Iterable[Run], query: QueryGrades) -> dict[str, Sequence[tuple[str, float]]]:
    """The rows of the runs under the ids of the grades where these hold spaces, which a run file cannot."""
    forms = spaced_ids(query.docs)
    rows: dict[str, Sequence[tuple[str, float]]] = {}
    for run in runs:
        ranking = run.rankings.get(query.query_id) or run.rankings.get(written_id(query.query_id))
        if ranking is not None:
            rows[run.run_id] = ranking.with_scores([forms.get(doc_id, doc_id) for doc_id in ranking.doc_ids]).given
    return rows


@dataclass
class _Tally:
    """The counts of one run, added up query by query."""

    ranked: set[str] = field(default_factory=set)
    inside: int = 0
    judged: int = 0
    tied: int = 0
    order_by_ties: int = 0
    order_by_precision: int = 0

    def add(self, query: QueryGrades, rows: Sequence[tuple[str, float]], cutoff: int | None) -> list[str]:
        """Counts one ranking, and gives its documents within the cutoff with ties in file order."""
        if not rows:
            return []
        # Sorting is stable: equal scores stay in file order.
        in_file_order = sorted(rows, key=lambda row: -row[1])[:cutoff]
        self.ranked.add(query.query_id)
        counts = Counter(score for _, score in rows)
        self.inside += len(in_file_order)
        self.tied += sum(counts[score] > 1 for _, score in in_file_order)
        in_double = sorted(((score, doc_id) for doc_id, score in rows), reverse=True)
        by_file = [doc_id for doc_id, _ in in_file_order]
        by_double = [doc_id for _, doc_id in in_double[:cutoff]]
        by_single = [doc_id for _, doc_id in in_single(in_double)[:cutoff]]
        self.order_by_ties += by_file != by_double
        self.order_by_precision += by_double != by_single
        # Which passages stand inside the cutoff depends on the rule: ours decides who counts as judged.
        self.judged += sum(doc_id in query.docs for doc_id in ranked(rows)[:cutoff])
        return by_file

    def check(self, run_id: str, queries: AbstractSet[str]) -> RunCheck:
        return RunCheck(
            run_id,
            len(self.ranked),
            tuple(sorted(queries - self.ranked)),
            self.judged / self.inside if self.inside else None,
            self.tied / self.inside if self.inside else None,
            self.order_by_ties,
            self.order_by_precision,
        )


def _best(board: Leaderboard, measure: str) -> tuple[str, ...]:
    means = {
        run: round(row[measure].mean, 12)  # type: ignore[arg-type]
        for run, row in board.cells.items()
        if run not in BELOW and row[measure].mean is not None
    }
    return tuple(sorted(run for run, mean in means.items() if mean == max(means.values())))


def check_leaderboard(
    board: Leaderboard,
    queries: Iterable[RecordQuery],
    measures: Sequence[Measure],
    runs: Sequence[Run] | None = None,
    on_failed: OnFailed = "expected",
) -> LeaderboardChecks:
    """Judged@k, missing queries and ties of every run, and whether the tie rule decides the winner.

    We break ties by document id, descending (trec_eval's rule); several other tools keep file order. All runs are
    scored a second time in file order.

    Args:
        board: the leaderboard, scored with our rule.
        queries: the grades that it was scored with; consumed once.
        measures: the measures of the leaderboard.
        runs: the runs, as their files have them. None checks the rankings inside records that were read with
            `keep_ranks`: passages of one rank are tied.
        on_failed: see `Grades`.

    Raises:
        InputError: there is no run.
    """
    cutoff = Plan(measures).depth
    tallies = {run.run_id: _Tally() for run in runs or ()}
    seen: set[str] = set()

    def counted() -> Iterator[RecordQuery]:
        for query in queries:
            seen.add(query.query_id)
            rows = _rows_of_records(query) if runs is None else _rows_of_files(runs, query.grades)
            orders = {
                run_id: tallies.setdefault(run_id, _Tally()).add(query.grades, of_run, cutoff)
                for run_id, of_run in rows.items()
            }
            yield replace(query, rankings={run_id: order for run_id, order in orders.items() if order}, ranks={})

    other = score_records(counted(), measures, run_ids=list(tallies), on_failed=on_failed, overall=False)
    top = []
    for measure in board.measures:
        ours, theirs = _best(board, measure), _best(other, measure)
        top.append(TopRun(measure, ours, theirs, ours != theirs))
    checks = tuple(tally.check(run_id, seen) for run_id, tally in sorted(tallies.items()))
    return LeaderboardChecks(cutoff, checks, tuple(top))
