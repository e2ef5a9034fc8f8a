"""Panels: the grades of several graders as those of one, with what that gains."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from rubric_measures.api._correlating import Scores, official_scores
from rubric_measures.api._grading import Passages, passages_of
from rubric_measures.api._loading import Bank, bank_of, grade_filter
from rubric_measures.api._records import PassageRecords
from rubric_measures.api._runs import Runs, run_list
from rubric_measures.base.errors import InputError
from rubric_measures.base.files import check_readable_twice

if TYPE_CHECKING:
    from rubric_measures.analysis.panels import Means, PanelReport, Scored
    from rubric_measures.measures.grades import Grades
    from rubric_measures.measures.panels import Gathered
    from rubric_measures.records.models import QueryPassages
    from rubric_measures.types.entities import Run


class Combined(PassageRecords):
    """Records with the grades of a panel beside those of its members; `load` takes them.

    Attributes:
        llm: what the new grader is called: `load(records, llm=…)` chooses it.
        report: agreement of the members, and what the panel gains.
    """

    def __init__(
        self,
        groups: Iterable[QueryPassages] | None,
        *,
        path: str = "",
        llm: str,
        report: PanelReport,
    ) -> None:
        super().__init__(groups, path=path)
        self.llm, self.report = llm, report

    def __str__(self) -> str:
        from rubric_measures.base.tables import render

        return "".join(render(self.report.report(), "text")).rstrip("\n")


def combine(
    passages: Passages,
    llm: Sequence[str] = (),
    *,
    by: Literal["majority", "median", "mean", "weights", "prefer"] = "majority",
    weight: Mapping[str, float] | None = None,
    name: str = "",
    output: str | os.PathLike[str] | None = None,
    bank: Bank | None = None,
    cutoff: tuple[int, int] | None = None,
    official: Scores | None = None,
    official_measure: str | None = None,
    runs: Runs | None = None,
    measure: str | None = None,
    **chosen: Any,
) -> Combined:
    """Makes one grader of several: a panel.

    `majority` takes the grade that most members give, `median` the middle one (of two the lower), `mean` the mean (a
    real grade), `weights` that with the greatest sum of weights; of equally good ones the lowest. Members without a
    grade abstain, and more than half must have one; else the panel has none, with the status of the first that lost
    its own. `prefer` takes the grade of the first member that has one: a member that failed, or was not asked, leaves
    the item to the next.

    Args:
        passages: graded records, or their file.
        llm: the members, two or more; for `prefer` in the order of preference.
        by: how their grades become one.
        weight: member -> its weight; for `weights`.
        name: what the new grader is called; by default `panel:` and how it is made.
        output: a file for the records with the new grades.
        bank: only items of this test bank; queries without grades count in leaderboards.
        cutoff: from which label and which judgment on something is relevant, for κ with the judgments in the records;
            by default the level that covers on the scale, and 1.
        official: the official leaderboard, for τ of those by each grader and by the panel.
        official_measure: its column, where it has several.
        runs: the runs of leaderboards; by default the rankings in the records.
        measure: of leaderboards; by default `RubricCover@20`, and of labels `RubricQrels(measure='nDCG@10')`.
        chosen: which grades of each member count, see `load`.

    Raises:
        InputError: a member has no grades, or several sets; scales differ; a setting is missing or without effect.
    """
    from rubric_measures.analysis.panels import Official, panel_report
    from rubric_measures.corpora.overwriting import keep_inputs
    from rubric_measures.measures.panels import gather, outcomes_of, panel_rule, with_grades

    members = [llm] if isinstance(llm, str) else list(llm)
    if len(members) < 2:
        raise InputError("a panel has two members or more; name each", settings=("llm",))
    weights = _weights(weight, members)
    rule = panel_rule(by, weights)
    name = name or f"panel:{by}"
    if name in members:
        raise InputError(f"{name} is a member; give the panel another name", settings=("name",))
    ranked = None if runs is None else run_list(runs)
    keep_inputs(output, bank, official, *(ranked or ()))
    for one in ranked or ():
        # Each member has a leaderboard of its own.
        if isinstance(one, str):
            check_readable_twice(one)
    source = passages_of(passages)
    gathered = gather(source, source.name, [grade_filter(llm=one, **chosen) for one in members], bank_of(bank))
    outcomes = outcomes_of(gathered, rule)
    known = None
    if official is not None:
        column = official_scores(official, official_measure)
        scored = _scored(source, gathered, ranked, measure)
        known = Official(f"the official leaderboard ({column.name})", column.means, scored)
    rest = partial(_rule_of_others, by, weights, len(members))
    report = panel_report(gathered, name, outcomes, rest, _cutoff(gathered, cutoff), known)
    settings: dict[str, Any] = {"by": by, "weights": weights} if weights else {"by": by}
    made = with_grades(source, gathered, outcomes, name, settings)
    return Combined.kept(made, output, llm=name, report=report)


def _rule_of_others(by: str, weights: Sequence[float] | None, members: int, place: int) -> Any:
    """The rule of a panel without the member at a place."""
    from rubric_measures.measures.panels import panel_rule

    others = [other for other in range(members) if other != place]
    # A mean is seldom equal to a grade.
    of_others = panel_rule("median" if by == "mean" else by, weights and [weights[other] for other in others])
    return lambda said: of_others([said[other] for other in others])


def _weights(weight: Mapping[str, float] | None, members: Sequence[str]) -> list[float] | None:
    if not weight:
        return None
    if weight.keys() != {*members}:
        raise InputError(f"each member needs a weight, and nobody else: {', '.join(members)}", settings=("weight",))
    if not all(isinstance(one, int | float) and math.isfinite(one) for one in weight.values()):
        raise InputError("a weight is a number above 0", settings=("weight",))
    return [weight[one] for one in members]


def _cutoff(gathered: Gathered, cutoff: tuple[int, int] | None) -> tuple[int, int]:
    from rubric_measures.types.scales import covering_level

    if cutoff is not None or not gathered.judgments:
        return cutoff or (1, 1)
    return covering_level(gathered.scale), 1


def _scored(
    source: Iterable[QueryPassages], gathered: Gathered, runs: list[str] | list[Run] | None, measure: str | None
) -> Scored:
    """How grades become a leaderboard.

    Raises:
        InputError: there are no runs and no rankings.
    """
    from rubric_measures.api._scoring import score
    from rubric_measures.records.models import QueryPassages, runs_of_records

    whole = (QueryPassages(group.query_id, list(group.passages), group.line) for group in source)
    ranked: Any = runs_of_records(whole, gathered.source) if runs is None else runs
    if not ranked:
        text = f"{gathered.source}: holds no rankings, of which a leaderboard could be made; name runs"
        raise InputError(text, settings=("runs", "official"))
    wanted = measure or ("RubricQrels(measure='nDCG@10')" if gathered.kind == "direct" else "RubricCover@20")

    def scored(grades: Grades) -> Means:
        board = score(grades, ranked, wanted, overall=False, notes=False)
        (column,) = board.measures
        return {run: mean for run, row in board.cells.items() if (mean := row[column].mean) is not None}

    return scored
