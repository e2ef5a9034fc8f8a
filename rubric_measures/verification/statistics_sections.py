"""Report sections of the statistics: items, the size of the bank, graders, canaries."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rubric_measures.base.tables import Cell, Undefined
from rubric_measures.grades.grade_set_names import options_of, prompt_cells
from rubric_measures.verification._line_plot import PlotPoint, line_plot
from rubric_measures.verification.bank_stability import RunCoverage, StabilityPoint
from rubric_measures.verification.canaries import CanaryReport
from rubric_measures.verification.grader_statistics import GraderReport
from rubric_measures.verification.item_statistics import ItemReport
from rubric_measures.verification.sections import Section

__all__ = ["canary_sections", "grader_sections", "item_sections", "stability_section"]


def _said(value: float | None, reason: str) -> Cell:
    return Undefined(reason) if value is None else value


def item_sections(report: ItemReport, min_judgment: int) -> Iterator[Section]:
    """Item statistics, and near-duplicate items."""
    runs = len(report.coverage.runs)
    covered = "" if report.min_rating is None else f" from grade {report.min_rating}"
    yield Section(
        "items",
        f"Items: covered{covered}, relevant from judgment {min_judgment}, {runs} runs",
        ["query_id", "graded", "failed", "covering", "by_relevant", "by_not_relevant", "r_judgment", "r_leaderboard",
         "covered", "flips", "item_id", "item"],
        [
            [
                row.query_id, row.graded, row.failed, row.covering,
                _said(row.relevant_share, "no relevant passage"),
                _said(row.other_share, "no passage judged not relevant"),
                _said(*row.by_judgment), _said(*row.by_run), row.always or None,
                _said(row.flips, "fewer than two runs"), row.item_id, row.item_text,
            ]
            for row in report.statistics
        ],
    )  # fmt: skip
    yield Section(
        "duplicate-items",
        "Near-duplicate items",
        ["query_id", "overlap", "same_text", "first", "second", "first_item_id", "second_item_id"],
        [
            [
                row.query_id, row.overlap, "yes" if row.same_text else "no", row.first.text, row.second.text,
                row.first.item_id, row.second.item_id,
            ]
            for row in report.duplicates
        ],
    )  # fmt: skip


def stability_section(coverage: RunCoverage, points: Sequence[StabilityPoint]) -> Section:
    """Bank size against leaderboard stability, with its drawing."""
    reason = "fewer than two runs, or all of them tied"
    drawn = [
        PlotPoint(one.size, one.mean, one.low, one.high)
        for one in points
        if one.mean is not None and one.low is not None and one.high is not None
    ]
    title = "Kendall's τ-b to the leaderboard of the full bank by the size of the bank: mean and range of the samples"
    return Section(
        "bank-stability",
        f"Bank size: Kendall's τ-b of {len(coverage.runs)} runs to the leaderboard of the full bank",
        ["items_a_query", "rounds", "undefined", "tau_mean", "tau_low", "tau_high"],
        [
            [one.size, one.rounds, one.undefined, *(_said(value, reason) for value in (one.mean, one.low, one.high))]
            for one in points
        ],
        line_plot(drawn, title, "items a query", "τ to the full bank's leaderboard"),
    )


def grader_sections(report: GraderReport) -> Iterator[Section]:
    """Grades and statuses of every grader, agreement of every two, and the disagreements that the report lists."""
    given = sorted({grade for one in report.graders.values() for grade in one.grades})
    statuses = sorted({status for one in report.graders.values() for status in one.statuses})
    prompts, options = prompt_cells(report.graders), options_of(report.graders)
    yield Section(
        "graders",
        f"Graders: how often each grade was given, statuses, cut passages ({len(report.graders)} graders)",
        ["llm", "prompt_class", "kind", "passages", *(f"grade_{grade}" for grade in given), *statuses,
         "truncated_passages", "flip_rate"],
        [
            [
                key.llm, prompts[key], key.kind, one.passages, *(one.grades[grade] for grade in given),
                *(one.statuses[name] for name in statuses), one.truncated, _said(one.flip_rate, "no replicates"),
            ]
            for key, one in report.graders.items()
        ],
    )  # fmt: skip
    yield Section(
        "grader-agreement",
        "Agreement of every two graders on what both graded",
        ["first", "second", "common", "equal", "mean_distance", "kappa"],
        [
            [
                options[row.first], options[row.second], row.common, row.equal, _said(row.distance, row.reason),
                _said(row.kappa, row.reason),
            ]
            for row in report.pairs
        ],
    )  # fmt: skip
    yield Section(
        "disagreements",
        f"Largest disagreements between graders: {len(report.disagreements)} of {report.disagreed}",
        ["spread", "query_id", "doc_id", "item_id", "grades"],
        [
            [
                row.spread, row.query_id, row.doc_id, row.item_id,
                "; ".join(f"{grade} by {key.llm} {prompts[key]}" for key, grade in row.grades.items()),
            ]
            for row in report.disagreements
        ],
    )  # fmt: skip


def canary_sections(report: CanaryReport) -> Iterator[Section]:
    """How often each grader was fooled, by kind of case, and every grade that is too high."""
    prompts = prompt_cells(key for key, _ in report.counts)
    yield Section(
        "canaries",
        f"Canary suite: grades of {_levels(report)} or better for passages that cover nothing",
        ["llm", "prompt_class", "items", "case", "passages", "fooled_passages", "grades", "fooled", "failed", "rate"],
        [
            [
                key.llm, prompts[key], key.kind, kind, one.passages, one.fooled_passages, one.graded, one.fooled,
                one.failed, _said(one.rate, "no grade"),
            ]
            for (key, kind), one in report.counts.items()
        ],
    )  # fmt: skip
    yield Section(
        "fooled",
        f"Canary suite: the {len(report.fooled)} grades that are too high",
        ["case", "grade", "query_id", "item_id", "grader", "answer", "text"],
        [
            [row.kind, row.grade, row.query_id, row.item_id, f"{row.grader.llm} {prompts[row.grader]}",
             row.answer, row.text]
            for row in report.fooled
        ],
    )  # fmt: skip


def _levels(report: CanaryReport) -> str:
    """The least grades that fool, with the prompts where graders have several."""
    prompts: dict[int, set[str]] = {}
    for grader, level in report.levels.items():
        prompts.setdefault(level, set()).add(grader.prompt_class)
    if len(prompts) < 2:
        return str(next(iter(prompts), "?"))
    return ", ".join(f"{level} ({', '.join(sorted(names))})" for level, names in sorted(prompts.items()))
