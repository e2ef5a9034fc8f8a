"""What a panel of graders gains over its best member: numbers and their tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from rubric_measures.base.tables import Report, Table, Undefined, columns
from rubric_measures.measures.grades import Grades
from rubric_measures.measures.panels import Gathered, Outcomes, Rule, compiled, member_rule, outcomes_of
from rubric_measures.meta_evaluation.correlation import correlate
from rubric_measures.meta_evaluation.kappa import binary_agreement, confusion, kappa_of_confusion

__all__ = ["MemberAgreement", "Official", "PanelReport", "Reached", "panel_report"]

Means = Mapping[str, float]
Scored = Callable[[Grades], Means]
"""From grades to the leaderboard that they lead to: run -> mean score."""


class Official(NamedTuple):
    """The official leaderboard.

    Attributes:
        name: what it is called.
        means: it.
        scored: how grades become a leaderboard that is compared with it.
    """

    name: str
    means: Means
    scored: Scored


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
    """How well one grader, or several together, agree with a reference; None where that is unknown or undefined.

    Attributes:
        name: the grader.
        kappa: Cohen's κ of its labels with the judgments, both cut to relevant or not.
        tau: Kendall's τ of the leaderboard by its grades with the official one.
        tau_reason: why there is no τ; empty elsewhere.
    """

    name: str
    kappa: float | None
    tau: float | None
    tau_reason: str = ""


@dataclass(frozen=True)
class PanelReport:
    """What a panel says, its members, and what it gains.

    Attributes:
        name: the panel.
        members: each against the rest.
        reached: each member, then the panel, on the same judged passages.
        grades: grades of the panel.
        lost: items of passages of which it has none, because too few members have one.
        passages: judged passages behind κ; 0 without judgments.
        cutoff: the least label and the least judgment that are relevant.
        official: what the leaderboard is compared with; empty where there is none.
    """

    name: str
    members: Sequence[MemberAgreement]
    reached: Sequence[Reached]
    grades: int
    lost: int
    passages: int
    cutoff: tuple[int, int]
    official: str

    def gain(self, what: str) -> tuple[str, float] | None:
        """The best member by `kappa` or `tau`, and how much higher the panel is; None where one of them is unknown."""
        values = {one.name: getattr(one, what) for one in self.reached[:-1]}
        panel = getattr(self.reached[-1], what)
        if panel is None or None in values.values():
            return None
        best = max(values, key=lambda name: values[name])
        return best, panel - values[best]

    def report(self, places: int = 4) -> Report:
        """What `base.tables.render` shows in any form."""
        heads = ("member", "grades", "missing", "compared", "same", "kappa", "quadratic kappa", "higher by")
        rest = Table(
            columns(heads, places),
            [
                (one.name, one.grades, one.missing, one.compared, one.same, one.kappa, one.quadratic, one.difference)
                for one in self.members
            ],
            title="each member against the rest",
            notes=[f"{self.name}: {self.grades} grades, {self.lost} without one (too few members have a grade)"],
        )
        if not self.passages and not self.official:
            note = "no judgments and no official leaderboard: whether the panel is better than a member is not known"
            return Report([Table(rest.columns, rest.rows, rest.title, [*rest.notes, note])], content=self._content)
        notes = []
        for what, shown in (("kappa", "kappa with the judgments"), ("tau", "tau of the leaderboard")):
            if found := self.gain(what):
                best, gain = found
                notes.append(
                    f"{shown}: the panel is {abs(gain):.4f} {'above' if gain > 0 else 'below'} its best member, {best}"
                    if gain
                    else f"{shown}: the panel equals its best member, {best}"
                )
        if self.passages:
            label, judged = self.cutoff
            notes.append(f"kappa of {self.passages} judged passages: labels from {label}, judgments from {judged} on")
        if self.official:
            notes.append(f"tau with {self.official}")
        rows = [(one.name, one.kappa, Undefined(one.tau_reason) if one.tau_reason else one.tau) for one in self.reached]
        reached = Table(columns(("grader", "kappa", "tau"), places), rows, "what is reached", notes)
        return Report([rest, reached], content=self._content)

    def _content(self) -> dict[str, object]:
        gains = {what: self.gain(what) for what in ("kappa", "tau")}
        return {
            **asdict(self),
            "gain": {what: {"best": found[0], "gain": found[1]} for what, found in gains.items() if found},
        }


def panel_report(
    gathered: Gathered,
    name: str,
    outcomes: Outcomes,
    rest: Callable[[int], Rule],
    cutoff: tuple[int, int],
    official: Official | None = None,
) -> PanelReport:
    """What a panel says, each member against the rest, and what the panel gains over its best member.

    Args:
        gathered: what the members say.
        name: of the panel.
        outcomes: what they say together.
        rest: from a member's place to the rule of the others, which takes what all say; for κ one that gives whole
            grades.
        cutoff: the least label and the least judgment that are relevant.
        official: the official leaderboard.
    """
    places = range(len(gathered.names))
    everybody = [outcomes_of(gathered, member_rule(place)) for place in places]
    judged = _judged(gathered, [*everybody, outcomes])
    names = [*gathered.names, name]
    reached = [
        Reached(one, _kappa_with(labels, judged[-1], cutoff), *_tau(official, gathered, of_one))
        for one, labels, of_one in zip(names, judged, [*everybody, outcomes], strict=False)
    ]
    grades = [one.grade is not None for found in outcomes.values() for one in found.values()]
    return PanelReport(
        name,
        [_member(gathered, place, rest(place)) for place in places],
        reached,
        sum(grades),
        len(grades) - sum(grades),
        len(judged[-1]),
        cutoff,
        "" if official is None else official.name,
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
        _kappa(mine, theirs),
        _kappa(mine, theirs, quadratic=True),
        (sum(mine) - sum(theirs)) / count if count else None,
    )


def _kappa(a: Sequence[float], b: Sequence[float], quadratic: bool = False) -> float | None:
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


def _tau(official: Official | None, gathered: Gathered, outcomes: Outcomes) -> tuple[float | None, str]:
    """Kendall's τ over the runs that both leaderboards have, and why there is none."""
    if official is None:
        return None, ""
    scores = official.scored(compiled(gathered, outcomes))
    runs = sorted(official.means.keys() & scores.keys())
    found = correlate([official.means[run] for run in runs], [scores[run] for run in runs], "kendall", test=False)
    return found.value, found.reason
