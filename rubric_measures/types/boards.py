"""What the file of a board says, as one model: its reader, its writer, `check` and the schema in the docs have it.

Cells, what failed grades leave open, the best possible scores, inputs, checks, and what was asked for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct

BOARD_FORMAT: Literal["rubric_measures leaderboard 1"] = "rubric_measures leaderboard 1"


class Failures(Struct, frozen=True):
    """What failed grades leave open of one run's score by one measure.

    Attributes:
        share: the share of the needed grades that failed, in [0, 1]. Of a measure that is normalised by all passages of
            a query it may be 0: then only grades of others failed.
        unscored: the queries without a value, because all grades that they need failed.
        credit: what failed grades earn: the score minus that with all of them as zero; None where it is not known.
        standard_error: that of the score for failures at random; None where it is not known. It does not hold where
            covering grades fail more often than others; the bounds do.
        bounds: what the score lies between, whatever the failed grades were; None where it is not known.
    """

    share: float
    unscored: int
    credit: float | None
    standard_error: float | None
    bounds: tuple[float, float] | None


class Cell(Struct, frozen=True):
    """One run's score by one measure.

    Attributes:
        mean: the mean over the scored queries, of counts (NumRet, NumRel, NumQ) their sum, as ir_measures and trec_eval
            have it; None where no query could be scored.
        standard_error: sample standard deviation (n - 1) over the square root of n; None for fewer than two queries,
            and of a sum.
        queries: the number of queries in the mean.
        coverage: the share of the grades the value needed (ranked passages in the cutoff × items) that exist, in
            [0, 1]; None where none was needed.
        failed: the number of needed grades that failed.
        failures: what these leave open; None where none failed.
    """

    mean: float | None
    standard_error: float | None
    queries: int
    coverage: float | None
    failed: int
    failures: Failures | None = None


class Best(Struct, frozen=True):
    """The best possible score by one measure: of measures of coverage that of all graded passages together, whatever
    the cutoff (finding the best k of them is NP-hard); of others that of the best ranking.

    Attributes:
        mean: over the queries, as in `Cell`.
        standard_error: as in `Cell`.
        per_query: query_id -> value.
    """

    mean: float
    standard_error: float | None
    per_query: Mapping[str, float]


class BoardInputs(Struct, frozen=True, omit_defaults=True):
    """The digests of what a leaderboard was scored from.

    Attributes:
        grades: query_id -> digest of its items and grades.
        runs: run_id -> digest of its rankings of these queries, as deep as the measures look.
        qrels: query_id -> digest of its judgments, where official measures stand beside ours.
    """

    grades: Mapping[str, str]
    runs: Mapping[str, str]
    qrels: Mapping[str, str] = {}


class RunCheck(Struct, frozen=True):
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


class TopRun(Struct, frozen=True):
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


class LeaderboardChecks(Struct, frozen=True):
    """The checks of a leaderboard.

    Attributes:
        cutoff: k, the largest cutoff of the measures; None when one reads the whole ranking.
        runs: one check a run, in order of run_id.
        top: the best runs by each measure.
    """

    cutoff: int | None
    runs: tuple[RunCheck, ...]
    top: tuple[TopRun, ...]

    @property
    def names(self) -> list[str]:
        """What the columns of `cells` are called."""
        at = "" if self.cutoff is None else f"@{self.cutoff}"
        return ["missing", f"judged{at}", f"tied{at}", f"order by ties{at}", f"order by precision{at}"]

    @property
    def cells(self) -> dict[str, list[float | None]]:
        """Run -> a number for each of the `names`."""
        return {
            one.run_id: [len(one.missing), one.judged, one.tied, one.order_by_ties, one.order_by_precision]
            for one in self.runs
        }


class AskedBoard(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What was asked for: the arguments of `score`."""

    overall: bool = True
    facets: bool = False
    per_facet: bool = False
    length: bool = False
    present: bool = False
    summary: bool = False
    compat: Literal["workbench", "nuggetizer", "ragdoll"] | None = None
    checks: bool = False


class KeptCell(Cell, frozen=True, kw_only=True, omit_defaults=True):
    """One run's score by one measure, with the values of its queries.

    Attributes: those of `Cell`, and `per_query`: query_id -> value, None where the grades of all items failed.
    """

    per_query: Mapping[str, float | None]


class KeptRun(Struct, frozen=True):
    """One run.

    Attributes:
        run_id: the run.
        missing_queries: queries that it does not rank (scored 0).
        measures: measure -> its score.
    """

    run_id: str
    missing_queries: Sequence[str]
    measures: Mapping[str, KeptCell]


class KeptBoard(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A leaderboard as JSON, runs best first; a tournament's file says more, of the games.

    Attributes:
        format: what this file is.
        measures: the measures, in the order asked for.
        runs: the runs.
        exact: where grades were asked only as far as some measures need them, the measures that have all they need.
        best: measure -> best possible score, where it is known for every query and was asked for.
        signature: the settings in one text.
        signature_hash: its hash.
        settings: what produced the numbers.
        asked: what was asked for, where it is not the usual.
        checks: what may be wrong beneath the scores, where it was asked for.
        inputs: what was scored.
    """

    format: Literal["rubric_measures leaderboard 1"]
    measures: Sequence[str]
    runs: Sequence[KeptRun]
    exact: Sequence[str] | None = None
    best: Mapping[str, Best] = {}
    signature: str
    signature_hash: str
    settings: Mapping[str, Any]
    asked: AskedBoard | None = None
    checks: LeaderboardChecks | None = None
    inputs: BoardInputs | None = None
