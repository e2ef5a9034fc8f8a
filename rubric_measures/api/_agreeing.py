"""Agreement of graders: label sources on the same documents."""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from rubric_measures.analysis.label_sources import SourceAgreement
from rubric_measures.api._loading import (
    Bank,
    Gradable,
    RecordGrades,
    bank_of,
    content_of,
    file_path,
    grade_filter,
    is_file,
    load,
    refuse_filters,
    scale_of,
)
from rubric_measures.base.errors import InputError, naming
from rubric_measures.types.entities import TestBank
from rubric_measures.types.scales import Scale

if TYPE_CHECKING:
    from rubric_measures.analysis.label_sources import LabelSource
    from rubric_measures.analysis.leaderboards import RunScores
    from rubric_measures.analysis.resampling import Draws
    from rubric_measures.analysis.workbench import AgreementTable
    from rubric_measures.api._runs import Runs
    from rubric_measures.measures.grades import Label

AgreementPlot = Literal["bland-altman", "confusion"]
_LOG = logging.getLogger("rubric_measures")
_JUDGMENTS = "judgments:"
# τ, τ_AP, ρ and the largest rank drop.
_COEFFICIENTS = ("kendall", "tau_ap", "spearman", "max_rank_drop")


class LabelAgreement(SourceAgreement):
    """What `agreement` found, see `SourceAgreement`."""

    def plot(self, path: str | os.PathLike[str], kind: AgreementPlot = "bland-altman") -> None:
        """Draws the labels of the first two sources.

        - `bland-altman`: differences against means, with the bias and the limits of agreement.
        - `confusion`: how many documents have which two labels.

        Args:
            path: the figure to write: .pdf, .svg or .png.
            kind: what is drawn.

        Raises:
            InputError: another ending, or the file cannot be written.
            MissingExtraError: matplotlib is not installed.
        """
        from rubric_measures.pages.plots import plot_bland_altman, plot_confusion
        from rubric_measures.pages.style import save_figures

        names = (self.names[0], self.names[1])
        if kind == "confusion":
            save_figures([plot_confusion(self.agreement, names)], path)
        else:
            save_figures([plot_bland_altman(*self.aligned, names)], path)


def agreement(
    *sources: Gradable,
    items: bool = False,
    label: Label = "max",
    rel: int | None = None,
    cutoff: Iterable[tuple[int, int]] = (),
    scale: str | Scale | None = None,
    clamp: bool = False,
    runs: Runs | None = None,
    measure: str = "nDCG@10",
    rounds: int = 10_000,
    seed: int = 42,
    level: float = 0.95,
    bank: Bank | None = None,
    llm_b: str | None = None,
    prompt_class_b: str | None = None,
    grade_set_b: str | None = None,
    **chosen: Any,
) -> LabelAgreement:
    """How well label sources agree; `print` shows confusion, κ, α, cutoffs and more, or a leaderboard of judges.

    >>> import rubric_measures
    >>> from ir_measures import Qrel
    >>> ours = [Qrel("q1", "d1", 1), Qrel("q1", "d2", 0), Qrel("q1", "d3", 1)]
    >>> theirs = [Qrel("q1", "d1", 1), Qrel("q1", "d2", 0), Qrel("q1", "d3", 0)]
    >>> round(rubric_measures.agreement(ours, theirs, rounds=0).agreement.kappa, 2)
    0.4

    Args:
        sources: two or more of what `load` takes; `judgments:FILE` are the judgments inside a file of graded records,
            and such a file alone is compared with them. The first is the truth, all others are judges, with a row each
            in `judges` (of a file alone its judgments are the truth). Pairwise numbers are of the first two.
        items: compare item grades, not labels of passages.
        label: how item grades become a label, `max` or `count`.
        rel: the inclusive minimum grade that counts for a label; left out, `max` keeps all grades, and `count` takes
            the level that covers on the scale.
        cutoff: pairs to binarise at: the first source at least A, the second at least B.
        scale: the grades that a source may use, such as `0-3`.
        clamp: bring labels of judges outside the truth's scale to its nearest end; how many is in `judges`.
        runs: TREC runs: the leaderboard that each judge's labels make of them is correlated with the truth's.
        measure: of these leaderboards.
        rounds: bootstrap samples of the intervals over queries; 0 for none.
        seed: of the bootstrap.
        level: nominal coverage of intervals, in (0, 1).
        bank: the test bank of records.
        llm_b: the second source's model, where both are records.
        prompt_class_b: its prompt.
        grade_set_b: its settings.
        chosen: which grades of records count, see `load`.

    Raises:
        InputError: fewer than two sources, nothing in common, or an argument without effect.
    """
    from rubric_measures.analysis.label_sources import compare_sources, whole_answers
    from rubric_measures.analysis.resampling import Draws

    if rounds < 0:
        raise InputError("the number of rounds is 0 or more", settings=("rounds",))
    known = scale_of(scale)
    second = {"llm": llm_b, "prompt_class": prompt_class_b, "grade_set": grade_set_b}
    if runs is not None and items:
        raise InputError("leaderboards are of labels, not of item grades; leave the runs out", settings=("runs",))
    draws = Draws(rounds, seed, level)
    read = _sources(list(sources), bank_of(bank), chosen, second, {"items": items, "label": label, "rel": rel})
    if items or label == "max":
        # Counts of passages do not add up to that of the answer.
        read = whole_answers(read)
    result = compare_sources(
        read,
        list(cutoff),
        scale=None if known is None else range(known.lowest, known.highest + 1),
        draws=draws,
        truth=int(len(sources) == 1),
        clamp=clamp,
    )
    found = result if runs is None else _with_leaderboards(result, runs, measure, draws)
    return LabelAgreement(**vars(found))


def _with_leaderboards(result: SourceAgreement, runs: Runs, measure: str, draws: Draws) -> SourceAgreement:
    """The agreement with the leaderboards that the judges' labels make of runs, against the truth's."""
    from ir_measures import Qrel

    from rubric_measures.analysis.leaderboards import LeaderboardCorrelation, correlate_leaderboards, scores_of_board
    from rubric_measures.analysis.panels import Judge
    from rubric_measures.api._runs import run_list, run_of
    from rubric_measures.api._scoring import score

    def scored(judge: Judge) -> RunScores:
        rows = [Qrel(key[0], key[1], int(label)) for key, label in judge.labels.items()]
        with naming(judge.name):
            board = score(load(rows), read, measure, overall=False, notes=False)
        return scores_of_board(board, board.measures[0])

    def compared(judge: Judge) -> LeaderboardCorrelation:
        return correlate_leaderboards(truth, scored(judge), _COEFFICIENTS, draws, details=False)

    # Each run is read once for all judges.
    read = [run_of(run) if isinstance(run, str) else run for run in run_list(runs)]
    truth = scored(result.judges.truth)
    return replace(result, judges=result.judges.with_leaderboards(compared))


def agreement_tables(
    source: str | os.PathLike[str],
    *,
    min_answers: Sequence[int] = (1, 2, 5),
    min_judgment: int = 1,
    bank: Bank | None = None,
    **chosen: Any,
) -> list[AgreementTable]:
    """The Rubric workbench's inter-annotator tables: the labels of graded records against the judgments inside.

    Args:
        source: a file of graded records.
        min_answers: for each number n all tables, of which a passage's label is its n-th highest grade, or the lowest
            where it has fewer.
        min_judgment: the least judgment that is relevant: 1, the program's default, or 2, as in its paper.
        bank: the test bank.
        chosen: which grades count, see `load`; of several grade sets the first of each passage.

    Raises:
        InputError: the source is no file of graded records, or no grade set passes the choice.
    """
    from rubric_measures.analysis.label_sources import passages_of_records
    from rubric_measures.analysis.workbench import workbench_tables

    if not _is_records(source):
        raise InputError(
            f"{_called(source)}tables of labels against judgments are of one graded-records file", settings=("tables",)
        )
    passages = passages_of_records(source, bank_of(bank), grade_filter(**chosen))
    unjudged = sum(not passage.judgments for passage in passages)
    ungraded = sum(not passage.grades for passage in passages)
    if unjudged or ungraded:
        _LOG.info("%d passages without a judgment and %d without a grade are left out", unjudged, ungraded)
    return workbench_tables(passages, min_answers, min_judgment)


def _sources(
    sources: list[Gradable],
    bank: TestBank | None,
    chosen: dict[str, Any],
    second: dict[str, str | None],
    labels: dict[str, Any],
) -> Sequence[LabelSource]:
    if len(sources) == 1:
        if not _is_records(sources[0]) or sources[0] == "-":
            raise InputError(
                f"{_called(sources[0])}agreement needs two sources, or one graded-records file with judgments"
            )
        sources.append(f"{_JUDGMENTS}{os.fspath(sources[0])}")  # type: ignore[arg-type]
    graded = [_is_records(source) for source in sources]
    names = " and ".join(os.fspath(source) for source in sources if isinstance(source, str | os.PathLike))
    if not any(graded):
        refuse_filters(names, chosen)
        if bank is not None:
            raise InputError("no source is graded records, whose items a bank names; leave it out", settings=("bank",))
    if any(second.values()) and graded[1:2] != [True]:
        given = [f"{name}_b" for name, value in second.items() if value]
        raise InputError("the second source is no file of graded records; leave its choice out", settings=given)
    wanted = [chosen] * len(sources)
    if any(second.values()):
        other = {**chosen, **{name: value for name, value in second.items() if value}}
        if (second["llm"] or second["prompt_class"]) and not second["grade_set"]:
            # The hash of one grader is not that of another.
            other["grade_set"] = None
        wanted[1] = other
    return _told_apart(
        sources,
        [
            _source(source, f"source {place}", bank, filters, labels)
            for place, (source, filters) in enumerate(zip(sources, wanted, strict=True), 1)
        ],
    )


def _told_apart(sources: Sequence[Gradable], read: Sequence[LabelSource]) -> list[LabelSource]:
    """The sources; those of files that are called alike with their folders, and those still alike with a number."""
    alike = Counter(one.name for one in read)
    named = [
        replace(one, name=os.fspath(source))
        if alike[one.name] > 1 and isinstance(source, str | os.PathLike) and not _is_records(source)
        else one
        for source, one in zip(sources, read, strict=True)
    ]
    seen: Counter[str] = Counter()
    result = []
    for one in named:
        seen[one.name] += 1
        result.append(replace(one, name=f"{one.name} ({seen[one.name]})") if seen[one.name] > 1 else one)
    return result


def _called(source: Gradable) -> str:
    """The name of a file before what is wrong with it."""
    return f"{os.fspath(source)}: " if isinstance(source, str | os.PathLike) else ""


def _is_records(source: Gradable) -> bool:
    """Whether a source is a file of graded records."""
    if not isinstance(source, str | os.PathLike) or os.fspath(source).startswith(_JUDGMENTS):
        return False
    return content_of(os.fspath(source)) == "records"


def _source(
    source: Gradable, name: str, bank: TestBank | None, chosen: dict[str, Any], labels: dict[str, Any]
) -> LabelSource:
    from rubric_measures.analysis import label_sources

    if isinstance(source, str) and source.startswith(_JUDGMENTS):
        if labels["items"]:
            raise InputError("judgments have no items; compare labels", settings=("items",))
        return label_sources.judgments_of_records(source.removeprefix(_JUDGMENTS))
    if is_file(source):
        with file_path(source) as path:
            if content_of(path) == "records":
                return label_sources.labels_of_records(path, bank, grade_filter(**chosen), **labels)
            if content_of(path) == "judgments":
                return label_sources.labels_of_qrels(path, **labels)
            grades = load(path)
            grades.queries  # noqa: B018 - read while the copy of an open file is there
    else:
        grades = load(source)
    if isinstance(grades, RecordGrades):
        name = grades.records.name
    return label_sources.labels_of_grades(grades, name, **labels)
