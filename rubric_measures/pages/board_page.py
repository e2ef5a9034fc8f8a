"""The report of a board: who is best, what to look at, and for every query which run has which item, and why.

Raw scores as dots with intervals, findings as lists, and the evidence behind each grade, in one HTML file
(`board.html`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rubric_measures.analysis.boards import Board
from rubric_measures.analysis.comparing import mean_intervals
from rubric_measures.analysis.facts import STATES, Evidence, FactDiff, QueryEvidence, evidence
from rubric_measures.analysis.resampling import Interval, without_width
from rubric_measures.base.errors import InputError, counted, some_of
from rubric_measures.boards.board import Leaderboard
from rubric_measures.corpora.loading import Gradable, Runs
from rubric_measures.pages.frame import PageCell, ReviewAddress, colour, in_words, page, plain_number, ticks, write_page
from rubric_measures.types.entities import RubricItem

_FAILED = {
    "unparsed": "the reply could not be read",
    "refused": "the grader refused",
    "truncated": "the text or reply was cut",
    "failed": "the call failed",
    "missing": "there is no grade",
    "uncited": "it cites nothing",
    "textless": "there is no text of what it cites",
}
# What is no failure of the grader.
_NO_FAILURE = {"missing", "uncited", "other"}


_Intervals = Mapping[str, Mapping[str, Interval]]


@dataclass(frozen=True)
class _BoardReport:
    """What the template asks for."""

    board: Leaderboard
    queries: Sequence[QueryEvidence]
    runs: Sequence[str]
    measure: str
    review: str | None

    @property
    def is_of_sentences(self) -> bool:
        return any(query.owners for query in self.queries)

    @property
    def items(self) -> int:
        return sum(len(query.items) for query in self.queries)

    def value(self, run: str, query_id: str) -> float | None:
        return self.board.cells[run][self.measure].per_query.get(query_id)

    def mean(self, query_id: str) -> float:
        """The mean of all runs."""
        values = [value for run in self.runs if (value := self.value(run, query_id)) is not None]
        return sum(values) / len(values) if values else 0.0

    def dots(self, measure: str, intervals: _Intervals) -> dict[str, Any]:
        """One measure in raw scores: a row a run, best first, with its mean, its interval, and a dot a query.

        Places are shares of the width, so that names and numbers keep their size on a phone.
        """
        board, rows = self.board, []
        known = {run: board.cells[run][measure].per_query.values() for run in self.runs}
        values = {run: sorted(one for one in of_run if one is not None) for run, of_run in known.items()}
        ends = {run: _ends(intervals[measure][run]) for run in self.runs}
        every = [value for of_run in (*values.values(), *ends.values()) for value in of_run]
        # 0 to 1 where all values are in there.
        low, high = min([0.0, *every]), max(every, default=1.0)
        axis = ticks(low, 1.0 if low >= 0 and high <= 1 else high)

        def place(value: float) -> str:
            # Room at both ends for dots and for the first and last number.
            return f"{2 + 96 * (value - axis[0]) / (axis[-1] - axis[0]):.2f}%"

        for run in (run for run in board.ranking(measure) if run in self.runs):
            mean = board.cells[run][measure].mean
            seen: dict[str, int] = {}
            dots = []
            for at in map(place, values[run]):
                # Equal values would be one dot: they stand one above the other, as many as there is room for.
                number = seen[at] = seen.get(at, 0) + 1
                if number <= 5:
                    dots.append((at, f"{50 + (number // 2) * (9 if number % 2 else -9)}%"))
            said = f"{run}: no score by {measure}" if mean is None else f"{run}: {mean:.3f}"
            if ends[run] and mean is not None:
                said += ", 95% interval {:.3f} to {:.3f}".format(*ends[run])
            rows.append((run, said, dots, [*map(place, ends[run])], mean if mean is None else (place(mean), mean)))
        queries = max(map(len, values.values()))
        caption = f"{measure}: mean over {counted(queries, 'query')}"
        caption += ", with its 95% interval" if any(ends.values()) else ""
        caption = "; ".join([caption, *without_width((run, intervals[measure][run]) for run in self.runs)])
        numbers = [(place(tick), plain_number(tick)) for tick in axis]
        return {"measure": measure, "rows": rows, "ticks": numbers, "caption": f"{caption}; grey: single queries."}

    def scores(self, intervals: _Intervals) -> list[tuple[str, list[PageCell]]]:
        """All scores, as rows of a table."""
        rows = []
        for run in self.runs:
            cells = [PageCell(run)]
            for name in self.board.measures:
                mean, ends = self.board.cells[run][name].mean, _ends(intervals[name][run])
                between = " ({:.3f}–{:.3f})".format(*ends) if ends else ""
                cells.append(PageCell(f"{'–' if mean is None else f'{mean:.4f}'}{between}", "number"))
            rows.append(("", cells))
        return rows

    @property
    def facts(self) -> str:
        return "Facts" if all(item.kind == "nugget" for query in self.queries for item in query.items) else "Items"

    def findings(self) -> Iterator[tuple[str, list[tuple[str, str, str, str]]]]:
        """The kind, and lines: where it leads, what is found, a remark, of whom."""
        several = len(self.runs) > 1
        # With what they are sorted by.
        nobody, separating, failed, silent = [], [], [], []
        # A run that covers nothing separates no facts, and a question that it does not answer stands elsewhere.
        empty = {run for run in self.runs if not any(query.covered(run) for query in self.queries)}
        for place, query in enumerate(self.queries):
            speaking = [run for run in self.runs if run not in empty and not _silence(query, run)]
            for number, item in enumerate(query.items):
                cells = query.cells[item.item_id]
                covering = [run for run in self.runs if query.is_covered(item.item_id, run)]
                link, said = f"#i{place}-{number}", importance(item)
                owner = query.owners.get(item.item_id)
                lost = [run for run in self.runs if cells[run].grade is None and cells[run].status not in _NO_FAILURE]
                if lost:
                    why = _FAILED.get(cells[lost[0]].status, "no grade")
                    failed.append((link, item.text, said, f"{some_of(lost, 4)}: {why}"))
                elif owner and cells[owner].status == "missing":
                    continue  # nobody judged it, and scores leave it out
                elif not covering:
                    whose = owner or ("" if several else query.text or query.query_id)
                    remark = ", ".join(filter(None, (said, self.retrieval(query, item.item_id, self.runs))))
                    nobody.append((item.importance != "vital", (link, item.text, remark, whose)))
                elif not owner and (lacking := [run for run in speaking if run not in covering]):
                    # What the best runs lack comes first, and then what splits the runs most evenly.
                    key = (self.runs.index(lacking[0]), abs(len(covering) - len(lacking)))
                    remark = f"{said} only in {some_of(covering, 4)}".strip()
                    separating.append((key, (link, item.text, remark, self.retrieval(query, item.item_id, lacking))))
            name = query.text or query.query_id
            silent += [(f"#q{place}", name, "", f"{run}: {why}") for run in self.runs if (why := _silence(query, run))]
        yield "nobody", [line for _, line in sorted(nobody, key=lambda one: one[0])]
        yield "separating", [line for _, line in sorted(separating, key=lambda one: one[0])]
        yield "failed", failed
        yield "silent", silent

    def retrieval(self, query: QueryEvidence, item_id: str, runs: Sequence[str]) -> str:
        """Whether what these runs miss was retrieved, in words."""
        found: dict[str, list[str]] = {}
        for run in runs:
            if said := query.cells[item_id][run].retrieval:
                found.setdefault(said, []).append(run)
        several = len(query.cells[item_id]) > 1
        return "; ".join(f"{some_of(of, 4)}: {said}" if several else said for said, of in found.items())

    def versions(self, against: FactDiff) -> Iterator[tuple[list[str], list[tuple[str, list[Any]]]]]:
        """Of each run that is compared with another: what is said of it, and by what became of them the facts that not
        both cover, as lines of findings.
        """
        places = {
            (query.query_id, item.item_id): f"#i{place}-{number}"
            for place, query in enumerate(self.queries)
            for number, item in enumerate(query.items)
        }
        for run in against.runs:
            lines: dict[str, list[Any]] = {state: [] for state in STATES}
            for fact in run.facts:
                link = places.get((fact.query_id, fact.item.item_id), "")
                remark = ", ".join(filter(None, (importance(fact.item), fact.retrieval)))
                lines[fact.state].append((link, fact.item.text, remark, fact.question))
            yield (
                str(run).split("\n"),
                [(state, of_state) for state, of_state in lines.items() if of_state and state != "covered by both"],
            )

    def legend(self) -> tuple[list[tuple[str, str]], str]:
        """The grades of the first query with their colours, and from which one on an item is covered."""
        query = self.queries[0]
        scale = query.scale
        if scale is None or scale.highest - scale.lowest > 20:
            return [], f"An item is covered from grade {query.level} on."
        keys = [(colour(query, grade), scale.name_of(grade)) for grade in range(scale.lowest, scale.highest + 1)]
        return keys, f"(covered from {scale.name_of(query.level) if query.level in scale else query.level} on)"

    def heading(self, query: QueryEvidence) -> str:
        """The scores of a query; of many runs those of the best and the worst."""
        scores = []
        for run in self.runs:
            value = self.value(run, query.query_id)
            scores.append(f"{run} {'–' if value is None else f'{value:.2f}'}")
        return " · ".join(scores if len(scores) <= 4 else [scores[0], "…", scores[-1]])

    def cells(self, query: QueryEvidence, item: RubricItem) -> Iterator[tuple[str, str, str]]:
        """Of each run: its grade, its colour, what it means."""
        for run in self.runs:
            found = query.cells[item.item_id][run]
            if found.status == "other":
                yield "", "", ""
            elif found.grade is None:
                mark, kind = ("–", "g0") if found.status in _NO_FAILURE else ("!", "bad")
                yield mark, kind, f"{run}: {_FAILED.get(found.status, found.status)}"
            else:
                meaning = f"{run}: {in_words(query, found.grade)}"
                yield f"{found.grade:.3g}", colour(query, found.grade), meaning

    def reasons(self, query: QueryEvidence, item: RubricItem) -> Iterator[dict[str, Any]]:
        """Why runs have a grade of an item, those with the same evidence together."""
        groups: dict[Evidence, list[str]] = {}
        for run in self.runs:
            found = query.cells[item.item_id][run]
            if found.status != "other":
                groups.setdefault(found, []).append(run)
        for found, runs in groups.items():
            is_covered = found.grade is not None and found.grade >= query.level
            is_unknown = found.status == "missing" and not query.owners
            failure = "no answer, or no grade of it" if is_unknown else _FAILED.get(found.status, found.status)
            lacks = found.lacks if found.grade is not None and not is_covered else ()
            is_apart = query.owners or any(run not in query.answers for run in runs)
            yield {
                "runs": runs,
                "says": failure if found.grade is None else in_words(query, found.grade),
                "sentence": found.sentence if found.grade is not None else "",
                "start": "" if is_covered else "Nearest:",
                "is_nowhere": lacks and not found.sentence,
                "reason": found.reason if found.grade is not None else "",
                "retrieval": found.retrieval,
                "lacks": ", ".join(lacks) if item.kind == "nugget" else "",
                "doc_id": found.doc_id if found.grade is not None and is_apart else "",
                "review": ReviewAddress(self.review, "").link(query.query_id, found.doc_id, item.item_id)
                if self.review is not None and found.doc_id
                else "",
            }

    def answers(self, query: QueryEvidence) -> list[tuple[str, list[str]]]:
        """The whole answers, each once, in paragraphs."""
        said: dict[str, list[str]] = {}
        for run in self.runs:
            if query.answers.get(run, "").strip():
                said.setdefault(query.answers[run], []).append(run)
        return [(some_of(runs, 4), re.split(r"\n\s*\n", answer)) for answer, runs in said.items()]


def _ends(interval: Interval) -> tuple[float, ...]:
    """The ends of an interval, where it has both."""
    return () if interval.low is None or interval.high is None else (interval.low, interval.high)


def _silence(query: QueryEvidence, run: str) -> str:
    """That a run has no answer, or an empty one; empty where it has one."""
    missing = (query.cells[item.item_id][run].status == "missing" for item in query.items)
    if run not in query.answers if query.owners else query.items and all(missing):
        return "no answer"
    return "" if query.answers.get(run, "?").strip() else "the answer is empty"


def importance(item: RubricItem) -> str:
    """Whether an item is vital, and its weight."""
    weight = "" if item.weight is None else f"weight {item.weight:g}"
    return ", ".join(filter(None, (item.importance, weight)))


def write_report(
    path: str | os.PathLike[str],
    board: Board,
    grades: Gradable,
    runs: Runs | None = None,
    *,
    title: str = "Leaderboard",
    notes: Sequence[str] = (),
    review: str | None = None,
    against: FactDiff | None = None,
    retrieved: Mapping[tuple[str, str, str], bool] | None = None,
) -> None:
    """Writes a board with its evidence as one HTML file that needs no network.

    It shows the leaderboard with intervals, what to look at, and for every query the items × runs, each with the
    passage, the nearest sentence and the reason behind the grade.

    Args:
        path: the file.
        board: what `score` gave.
        grades: the grades that it was scored from: graded records, which have the texts.
        runs: the runs that were scored; None for the rankings inside the records.
        title: the heading.
        notes: further lines below the heading.
        review: the address of the review page of these grades, as `http://127.0.0.1:8642`: each grade leads to its
            place there. None for no links.
        against: what became of each fact since other answers, see `EvaluatedAnswers.against`.
        retrieved: see `EvaluatedAnswers.retrieved`.

    Raises:
        InputError: the grades have no texts beside them, scores are not of whole queries, the file is not called
            `.html` or `.htm`, or it cannot be written.
    """
    if not os.fspath(path).endswith((".html", ".htm")):
        raise InputError(f"{os.fspath(path)}: a report is written as .html", settings=("report",))
    ranked = board.ranking()
    listed = [query.with_retrieved(retrieved or {}) for query in evidence(board, grades, runs)]
    report = _BoardReport(board, listed, ranked, board.measures[0], review)
    intervals = mean_intervals({name: {run: board.scored(run, name) for run in ranked} for name in board.measures})
    parts = page(
        "board.html",
        title,
        notes=notes,
        report=report,
        plots=[report.dots(name, intervals) for name in board.measures],
        versions=[] if against is None else [*report.versions(against)],
        left_out=() if against is None else against.left_out,
        findings=[one for one in report.findings() if one[1]],
        scores=report.scores(intervals),
        order=sorted(range(len(listed)), key=lambda place: (report.mean(listed[place].query_id), place)),
        signature=board.signature,
        importance=importance,
    )
    write_page(path, parts)
