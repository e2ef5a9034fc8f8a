"""Panels of graders, and many judges against one truth.

A leaderboard of judges: the labels of each against the truth's, with intervals, and groups of equals.

What a panel of graders gains over its best member: numbers and their tables.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass
from typing import Any

import numpy as np

from rubric_measures.analysis.agreement import (
    Columns,
    binary_agreement,
    binary_tables,
    column_intervals,
    confusion,
    joint_scale,
    kappa_of_confusion,
    label_columns,
    query_tables,
    rates_columns,
)
from rubric_measures.analysis.correlation import drawn_over_queries, parse_coefficient
from rubric_measures.analysis.leaderboards import LeaderboardCorrelation, RunScores, query_table
from rubric_measures.analysis.resampling import (
    Drawn,
    Draws,
    FloatArray,
    Interval,
    Resample,
    groups_of_equals,
    ratio,
)
from rubric_measures.base.errors import InputError
from rubric_measures.base.tables import Report, Table, columns
from rubric_measures.measures.combining import Gathered, Outcomes, Rule, compiled, member_rule, outcomes_of


@dataclass(frozen=True)
class Judge:
    """One judge.

    Attributes:
        name: as it is printed.
        labels: (query_id, doc_id, …) -> label.
        failed: query_id -> grades that failed, and all; None where nobody knows.
        outside: how many of its labels are, or were, outside the truth's scale.
    """

    name: str
    labels: Mapping[tuple[str, ...], float]
    failed: Mapping[str, tuple[int, int]] | None = None
    outside: int = 0


@dataclass(frozen=True)
class JudgeRow:
    """One judge against the truth.

    Attributes:
        judge: the judge, labels included.
        documents: how many documents both label.
        statistics: name -> value with its interval over queries: `kappa`, `quadratic_kappa`, `alpha_nominal`,
            `alpha_ordinal`, `ac1`, `exact_match`, `bias` (mean of judge − truth) and, where it is
            known, `failed` (the share of the judge's grades that failed).
        cutoffs: (cutoff of the truth, of the judge) -> `kappa`, `tpr`, `tnr` and `f1` likewise.
        leaderboard: the leaderboard that its labels make of runs, against the truth's; None without runs.
    """

    judge: Judge
    documents: int
    statistics: Mapping[str, Interval]
    cutoffs: Mapping[tuple[int, int], Mapping[str, Interval]]
    leaderboard: LeaderboardCorrelation | None = None

    @property
    def name(self) -> str:
        """The judge's name."""
        return self.judge.name

    @property
    def outside(self) -> int:
        """How many labels are outside the truth's scale, or were before they were brought to its nearest end."""
        return self.judge.outside


@dataclass(frozen=True)
class JudgeBoard:
    """Judges against one truth, the highest κ first.

    Attributes:
        truth: the labels that judges are held to.
        scale: the lowest and the highest label of the truth's scale.
        rows: the judges.
        groups: groups of judges whose κ cannot be told apart, best first; empty without rounds.
    """

    truth: Judge
    scale: tuple[int, int]
    rows: tuple[JudgeRow, ...]
    groups: tuple[tuple[str, ...], ...]


def judge_board(
    truth: Judge,
    judges: Sequence[Judge],
    ends: tuple[int, int],
    cutoffs: Sequence[tuple[int, int]],
    draws: Draws,
) -> JudgeBoard:
    """All judges against the truth, each on the documents that both label.

    All judges see the same resampled queries: those in which one of them shares a document with the truth. Groups are
    of `Drawn.apart` of κ at 0.05.

    Args:
        truth: the labels that judges are held to.
        judges: one or more.
        ends: the truth's scale.
        cutoffs: (cutoff of the truth, of the judge); none for each label of the truth's scale but the lowest.
        draws: rounds (0 for no intervals and no groups), seed and level.

    Raises:
        InputError: a judge shares no document with the truth.
    """
    common = [sorted(truth.labels.keys() & judge.labels.keys()) for judge in judges]
    for judge, keys in zip(judges, common, strict=True):
        if not keys:
            raise InputError(f"{judge.name} and {truth.name} label no common document")
    names = sorted({key[0] for keys in common for key in keys})
    pairs = list(cutoffs) or [(level, level) for level in range(ends[0] + 1, ends[1] + 1)]
    engine = Resample(len(names), draws)
    found = [_row(truth, judge, keys, names, ends, pairs, engine) for judge, keys in zip(judges, common, strict=True)]
    found.sort(key=lambda one: (-_kappa(one[0]), one[0].name))
    rows = [row for row, _ in found]
    kappas, drawn = np.array([_kappa(row) for row in rows]), np.stack([one for _, one in found], axis=1)
    p_values = Drawn(kappas, drawn, drawn[:0], len(names), draws).apart()
    groups = groups_of_equals(kappas.tolist(), p_values < _ALPHA) if len(drawn) else []
    together = tuple(tuple(rows[place].name for place in group) for group in groups)
    return JudgeBoard(truth, ends, tuple(rows), together)


def equal_boards(
    official: RunScores,
    others: Sequence[RunScores],
    coefficient: str,
    draws: Draws,
) -> tuple[tuple[int, ...], ...] | None:
    """Leaderboards of judges that a coefficient with the official one cannot tell apart.

    All see the same resampled queries. Groups are of `Drawn.apart` of the coefficient at 0.05.

    Args:
        official: the official scores, which are resampled, too, where they are of the same queries.
        others: scores that judges give; those by query are needed.
        coefficient: what tells them apart, such as `kendall`.
        draws: rounds (0 for no groups) and seed.

    Returns:
        places in `others` of two or more each, best group first; None where nobody knows: the runs or the queries of
        two differ, or there are no scores by query.
    """
    runs = sorted(official.means.keys() & others[0].means.keys()) if others else []
    tables = [query_table(one, runs) for one in others if official.means.keys() & one.means.keys() == set(runs)]
    first = tables[0] if tables else None
    known = [table for table in tables if table is not None and first is not None and table[1] == first[1]]
    if first is None or len(known) < max(len(others), 2) or draws.rounds == 0:
        return None
    reference = query_table(official, runs)
    is_same = reference is not None and reference[1] == first[1]
    given = reference[0] if is_same and reference is not None else np.array([official.means[run] for run in runs])
    _, drawn = drawn_over_queries(given, np.stack([table for table, _ in known], axis=2), coefficient, draws)
    # Of drops the least is best.
    sign = -1.0 if parse_coefficient(coefficient)[0] == "max_rank_drop" else 1.0
    if not len(drawn.replicates) or np.isnan(drawn.estimates).any():
        return None
    return tuple(groups_of_equals((sign * drawn.estimates).tolist(), drawn.apart() < _ALPHA))


def _kappa(row: JudgeRow) -> float:
    """κ for the order of judges; those without come last."""
    value = row.statistics["kappa"].estimate
    return -np.inf if value is None else value


def _row(
    truth: Judge,
    judge: Judge,
    keys: Sequence[tuple[str, ...]],
    names: Sequence[str],
    ends: tuple[int, int],
    pairs: Sequence[tuple[int, int]],
    engine: Resample,
) -> tuple[JudgeRow, FloatArray]:
    """The row of one judge, and its κ in every bootstrap round."""
    a, b = (np.array([one.labels[key] for key in keys], dtype=np.int_) for one in (truth, judge))
    labels = joint_scale(a, b, ends)
    values = np.array(labels, dtype=np.float64)
    cells = {pair: f"{pair[0]} {pair[1]} " for pair in pairs}

    def statistics(tables: FloatArray) -> Columns:
        found = label_columns(tables, values)
        # Not its negative, which of 0 is -0.
        found["bias"] = 0.0 - found.pop("mean_difference")
        for pair, binary in binary_tables(tables, values, pairs).items():
            found |= {cells[pair] + name: column for name, column in rates_columns(binary).items()}
        return found

    by_query = query_tables(a, b, [key[0] for key in keys], names, labels)
    intervals, drawn = column_intervals(by_query, statistics, engine)
    if judge.failed is not None:
        lost = np.array([judge.failed.get(name, (0, 0)) for name in names], dtype=np.float64)
        # As a table of one row a query: failed grades before all of them.
        shares, _ = column_intervals(
            lost[:, None, :], lambda tables: {"failed": ratio(tables[:, 0, 0], tables[:, 0, 1])}, engine
        )
        intervals |= shares
    at = {pair: {name: intervals.pop(prefix + name) for name in _RATES} for pair, prefix in cells.items()}
    return JudgeRow(judge, len(keys), intervals, at), drawn["kappa"]


_RATES = ("kappa", "tpr", "tnr", "f1")
# The level of the groups.
_ALPHA = 0.05


@dataclass(frozen=True)
class MemberAgreement:
    """A member of a panel against what the other members say together.

    Attributes:
        name: the member.
        grades: items of passages that it has a grade of.
        missing: those that another member has a grade of, and this one has none.
        compared: grades that are compared with those of the rest.
        same: the share of them that are equal to those of the rest; None without any.
        kappa: Cohen's κ with the rest; None where it is undefined.
        quadratic: κ with quadratic weights likewise.
        difference: how much higher its grades are on average.
    """

    name: str
    grades: int
    missing: int
    compared: int
    same: float | None
    kappa: float | None
    quadratic: float | None
    difference: float | None


@dataclass(frozen=True)
class Reached:
    """How well one grader, or several together, agree with the judgments.

    Attributes:
        name: the grader.
        kappa: Cohen's κ of its labels with the judgments, both cut to relevant or not; None where it is undefined.
    """

    name: str
    kappa: float | None


@dataclass(frozen=True)
class PanelReport:
    """What a panel says, its members, and what it gains.

    Attributes:
        name: the panel.
        members: each against the rest.
        reached: each member, then the panel, on the same judged passages.
        grades: grades of the panel.
        lost: items of passages of which it has none.
        is_panel: whether the members vote; else one stands in for another, and how they agree says nothing.
        passages: judged passages behind κ; 0 without judgments.
        cutoff: the least label and the least judgment that are relevant.
    """

    name: str
    members: Sequence[MemberAgreement]
    reached: Sequence[Reached]
    grades: int
    lost: int
    is_panel: bool
    passages: int
    cutoff: tuple[int, int]

    @property
    def gain(self) -> tuple[str, float] | None:
        """The best member by κ, and how much higher the panel is; None where one of them is unknown."""
        values = {one.name: one.kappa for one in self.reached[:-1] if one.kappa is not None}
        panel = self.reached[-1].kappa
        if panel is None or len(values) < len(self.reached) - 1:
            return None
        best = max(values, key=lambda name: values[name])
        return best, panel - values[best]

    def report(self, places: int = 4) -> Report:
        """What `base.tables.render` shows in any form."""
        heads = ("member", "grades", "missing", "compared", "same", "kappa", "quadratic kappa", "higher by")
        size = len(heads) if self.is_panel else 3
        why = "too few members have a grade" if self.is_panel else "no member has one"
        rest = Table(
            columns(heads[:size], places),
            [astuple(one)[:size] for one in self.members],
            title="each member against the rest" if self.is_panel else "members, the preferred first",
            notes=[f"{self.name}: {self.grades} grades, {self.lost} without one ({why})"],
        )
        if not self.passages:
            note = "no judgments: whether the panel is better than a member is not known"
            return Report([Table(rest.columns, rest.rows, rest.title, [*rest.notes, note])], content=self._content)
        notes = []
        if self.gain:
            best, gain = self.gain
            than = f"is {abs(gain):.4f} {'above' if gain > 0 else 'below'}" if gain else "equals"
            notes.append(f"kappa with the judgments: the panel {than} its best member, {best}")
        label, judged = self.cutoff
        notes.append(f"kappa of {self.passages} judged passages: labels from {label}, judgments from {judged} on")
        reached = Table(columns(("grader", "kappa"), places), [*map(astuple, self.reached)], "what is reached", notes)
        return Report([rest, reached], content=self._content)

    def _content(self) -> dict[str, object]:
        content = asdict(self)
        del content["is_panel"]
        return {**content, "gain": {"kappa": dict(zip(("best", "gain"), self.gain, strict=True))} if self.gain else {}}


def panel_report(
    gathered: Gathered,
    name: str,
    outcomes: Outcomes,
    rest: Callable[[int], Rule] | None,
    cutoff: tuple[int, int],
) -> PanelReport:
    """What a panel says, each member against the rest, and what the panel gains over its best member.

    Args:
        gathered: what the members say.
        name: of the panel.
        outcomes: what they say together.
        rest: from a member's place to the rule of the others, which takes what all say; for κ one that gives whole
            grades; None where the members are no panel.
        cutoff: the least label and the least judgment that are relevant.
    """
    places = range(len(gathered.names))
    everybody = [outcomes_of(gathered, member_rule(place)) for place in places]
    judged = _judged(gathered, [*everybody, outcomes])
    names = [*gathered.names, name]
    reached = [
        Reached(one, _kappa_with(labels, judged[-1], cutoff)) for one, labels in zip(names, judged, strict=False)
    ]
    grades = [one.grade is not None for found in outcomes.values() for one in found.values()]
    return PanelReport(
        name,
        [_member(gathered, place, rest(place) if rest else lambda _: None) for place in places],
        reached,
        sum(grades),
        len(grades) - sum(grades),
        rest is not None,
        len(judged[-1]),
        cutoff,
    )


def _member(gathered: Gathered, place: int, rest: Rule) -> MemberAgreement:
    mine: list[float] = []
    theirs: list[float] = []
    grades = missing = 0
    for table in gathered.said.values():
        for row in table.values():
            said, others = row[place], rest(row)
            if said is None or said.grade is None:
                missing += any(one is not None and one.grade is not None for one in row)
                continue
            grades += 1
            if others is not None and others.grade is not None:
                mine.append(said.grade)
                theirs.append(others.grade)
    count = len(mine)
    return MemberAgreement(
        gathered.names[place],
        grades,
        missing,
        count,
        sum(a == b for a, b in zip(mine, theirs, strict=True)) / count if count else None,
        _panels_kappa(mine, theirs),
        _panels_kappa(mine, theirs, quadratic=True),
        (sum(mine) - sum(theirs)) / count if count else None,
    )


def _panels_kappa(a: Sequence[float], b: Sequence[float], quadratic: bool = False) -> float | None:
    """κ of grades; None without any, and where some have a fraction, which κ does not know."""
    if not a or not all(type(grade) is int for grade in (*a, *b)):
        return None
    labels: list[Any] = sorted({*a, *b})
    return kappa_of_confusion(confusion(a, b, labels), labels, quadratic=quadratic)


def _judged(gathered: Gathered, everybody: Sequence[Outcomes]) -> list[list[float]]:
    """The labels of each, and last the judgments, of the judged passages that all of them label, in one order."""
    labels: list[Mapping[tuple[str, str], float]] = [
        {
            (query_id, doc_id): label
            for query_id, query in compiled(gathered, outcomes).queries.items()
            for doc_id, label in query.labels("max").items()
        }
        for outcomes in everybody
    ]
    keys = [key for key in gathered.judgments if all(key in of_one for of_one in labels)]
    return [[of_one[key] for key in keys] for of_one in [*labels, gathered.judgments]]


def _kappa_with(labels: Sequence[float], judged: Sequence[float], cutoff: tuple[int, int]) -> float | None:
    if not judged:
        return None
    ours, theirs = (
        [int(label >= least) for label in side] for side, least in zip((labels, judged), cutoff, strict=True)
    )
    return binary_agreement(ours, theirs, 1, 1).kappa
