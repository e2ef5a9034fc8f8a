"""The report of a board: who is best, what to look at, and for every query which run has which item, and why."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from rubric_measures.analysis.board_reports import mean_intervals
from rubric_measures.analysis.resampling import Draws
from rubric_measures.base.errors import InputError, UnknownNameError
from rubric_measures.base.pages import fold, page, text, words
from rubric_measures.boards.board import BELOW, Leaderboard
from rubric_measures.formats.leaderboards import OVERALL
from rubric_measures.reports._look import SCRIPT, STYLE
from rubric_measures.reports.dots import DOT_STYLE, dot_plot
from rubric_measures.reports.evidence import Evidence, QueryEvidence
from rubric_measures.types.entities import RubricItem
from rubric_measures.verification.page_parts import review_link

__all__ = ["board_page"]

# How many lines of a list stand before the fold.
_SHOWN = 8
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


@dataclass(frozen=True)
class _Report:
    board: Leaderboard
    queries: Sequence[QueryEvidence]
    runs: Sequence[str]
    baseline: str | None
    measure: str
    review: str | None

    @property
    def is_of_sentences(self) -> bool:
        return any(query.owners for query in self.queries)

    def value(self, run: str, query_id: str) -> float | None:
        return self.board.values[run][self.measure].get(query_id)

    def difference(self, query_id: str) -> float:
        """How far the worst run is from the baseline; without one the mean of all runs."""
        if self.baseline is None:
            values = [value for run in self.runs if (value := self.value(run, query_id)) is not None]
            return sum(values) / len(values) if values else 0.0
        base = self.value(self.baseline, query_id)
        others = [
            value for run in self.runs if run != self.baseline and (value := self.value(run, query_id)) is not None
        ]
        return 0.0 if base is None else min((value - base for value in others), default=0.0)


def board_page(
    board: Leaderboard,
    queries: Iterable[QueryEvidence],
    *,
    title: str,
    baseline: str | None = None,
    level: float = 0.95,
    notes: Sequence[str] = (),
    review: str | None = None,
) -> Iterator[str]:
    """The page, in parts.

    Args:
        board: the scores.
        queries: the evidence of each query, of the runs of the board.
        title: the heading.
        baseline: the run with which others are compared: queries on which a run loses most against it come first.
            Without one the queries come first that all runs do worst on.
        level: the nominal coverage of intervals (BCa, over queries), in (0, 1).
        notes: further lines below the heading.
        review: the address of the review page to which each grade leads; None for no links.

    Raises:
        InputError: there is no run, or no query.
        UnknownNameError: there is no such baseline.
    """
    runs = [run for run in board.ranking() if run != OVERALL and run not in BELOW]
    if baseline is not None and baseline not in runs:
        raise UnknownNameError("run", baseline, runs, settings=("baseline",))
    listed = list(queries)
    if not listed or not runs:
        raise InputError("there is nothing to report: no run, or no query")
    report = _Report(board, listed, runs, baseline, board.measures[0], review)
    style = f":root {{ --runs: {len(runs)}; }}{DOT_STYLE}{STYLE}"
    return iter(page(title, _body(report, title, level, notes), style=style, script=SCRIPT))


def _body(report: _Report, title: str, level: float, notes: Sequence[str]) -> Iterator[str]:
    items = sum(len(query.items) for query in report.queries)
    yield f"<header><h1>{text(title)}</h1>"
    yield f'<p class="note">{words(len(report.runs), "run")}, {words(len(report.queries), "query", "queries")}, '
    what = "sentence" if report.is_of_sentences else "item"
    says = "what the first citations support" if report.is_of_sentences else "what good answers say"
    yield f"{words(items, what)}: {says}.</p>"
    yield "".join(f'<p class="note">{text(note)}</p>' for note in notes)
    yield "</header>\n<main>"
    yield from _scores(report, level)
    yield from _to_look_at(report)
    yield from _queries(report)
    signature = report.board.signature
    settings = f'<p class="small">{text(signature)}</p>'
    yield fold("How these numbers were made", f'<p class="note">signature {text(signature.short)}</p>{settings}')
    yield "</main>"


# The scores.


def _scores(report: _Report, level: float) -> Iterator[str]:
    board = report.board
    found = mean_intervals(board, Draws(level=level))
    intervals = {
        run: {
            name: None if (one := found[run][name]).low is None or one.high is None else (one.low, one.high)
            for name in board.measures
        }
        for run in report.runs
    }
    yield "<h2>Leaderboard</h2>"
    for place, name in enumerate(board.measures):
        plot = dot_plot(
            board,
            name,
            [run for run in board.ranking(name) if run in report.runs],
            {run: intervals[run][name] for run in report.runs},
            level,
        )
        yield plot if place == 0 else fold(text(name), plot)
    heads = "".join(f'<th class="number">{text(name)}</th>' for name in board.measures)
    rows = ""
    for run in report.runs:
        cells = ""
        for name in board.measures:
            mean, ends = board.cells[run][name].mean, intervals[run][name]
            between = "" if ends is None else f' <span class="small">{ends[0]:.3f}–{ends[1]:.3f}</span>'
            cells += f'<td class="number">{"–" if mean is None else f"{mean:.4f}"}{between}</td>'
        rows += f"<tr><td>{text(run)}{' (baseline)' if run == report.baseline else ''}</td>{cells}</tr>"
    inside = f"<table><thead><tr><th>run</th>{heads}</tr></thead><tbody>{rows}</tbody></table>"
    table = f'<div class="scroll" tabindex="0">{inside}</div>'
    yield fold(f"All scores, with {level:.0%} intervals", table)


# What to look at.


def _to_look_at(report: _Report) -> Iterator[str]:
    yield '<h2>What to look at</h2><div class="cards">'
    found = False
    for heading, said, lines in _findings(report):
        if not lines:
            continue
        found = True
        shown = "".join(f"<li>{line}</li>" for line in lines[:_SHOWN])
        more = "".join(f"<li>{line}</li>" for line in lines[_SHOWN:])
        rest = fold(f"{len(lines) - _SHOWN} more", f"<ul>{more}</ul>") if more else ""
        yield f'<section><h3>{heading} ({len(lines)})</h3><p class="note">{said}</p><ul>{shown}</ul>{rest}</section>'
    yield "</div>" if found else "</div><p>Nothing stands out: every item is covered, and every grade is there.</p>"


def _findings(report: _Report) -> Iterator[tuple[str, str, list[str]]]:
    """Heading, what it means, lines of markup."""
    several = len(report.runs) > 1
    nobody: list[tuple[bool, str]] = []
    separating: list[tuple[int, int, str]] = []
    failed: list[str] = []
    silent: list[str] = []
    for place, query in enumerate(report.queries):
        for number, item in enumerate(query.items):
            cells = query.cells[item.item_id]
            covering = [run for run in report.runs if query.is_covered(item.item_id, run)]
            link = f'<a href="#i{place}-{number}">{text(item.text)}</a>{_importance(item)}'
            owner = query.owners.get(item.item_id)
            lost = [run for run in report.runs if cells[run].grade is None and cells[run].status not in _NO_FAILURE]
            if lost:
                failed.append(f"{link} {_of(lost)}: {_FAILED.get(cells[lost[0]].status, 'no grade')}")
            elif owner and cells[owner].status == "missing":
                continue  # nobody judged it, and scores leave it out
            elif not covering:
                nobody.append((item.importance != "vital", f"{link} {_of([owner])}" if owner else link))
            elif several and not owner and len(covering) < len(report.runs):
                lacking = [run for run in report.runs if run not in covering]
                # What the best runs lack comes first, and then what splits the runs most evenly.
                line = f'{link} <span class="small">only in {_of(covering)}</span>'
                separating.append((report.runs.index(lacking[0]), abs(len(covering) - len(lacking)), line))
        here = f'<a href="#q{place}">{text(query.text or query.query_id)}</a>'
        silent += [f"{here} {_of([run])}: {said}" for run in report.runs if (said := _silence(query, run))]
    nobody.sort(key=lambda one: one[0])
    separating.sort(key=lambda one: one[:2])
    what = "No run covers them" if several else "They are not covered"
    facts = "Facts" if all(item.kind == "nugget" for query in report.queries for item in query.items) else "Items"
    heading, says = f"{facts} that nobody has", f"{what}: missing in the answers, or wrong in the bank."
    if report.is_of_sentences:
        heading = "Sentences without full support"
        says = "They cite nothing, or what they cite first supports them in part or not at all."
    yield heading, says, [line for _, line in nobody]
    yield f"{facts} that separate runs", "Some runs cover them, others do not.", [line for *_, line in separating]
    yield "Failed grades", "They are no numbers: scores count them as the signature says (on_failed).", failed
    yield "Empty and missing answers", "They score 0.", silent


def _silence(query: QueryEvidence, run: str) -> str:
    """That a run has no answer, or an empty one; empty where it has one."""
    missing = (query.cells[item.item_id][run].status == "missing" for item in query.items)
    if run not in query.answers if query.owners else query.items and all(missing):
        return "no answer"
    return "" if query.answers.get(run, "?").strip() else "the answer is empty"


def _of(runs: Sequence[str]) -> str:
    named = ", ".join(text(run) for run in runs[:4])
    return named + (f" and {len(runs) - 4} more" if len(runs) > 4 else "")


def _importance(item: RubricItem) -> str:
    said = [
        *([item.importance] if item.importance else []),
        *([f"weight {item.weight:g}"] if item.weight is not None else []),
    ]
    return f' <span class="small">{text(", ".join(said))}</span>' if said else ""


# The queries.


def _queries(report: _Report) -> Iterator[str]:
    order = sorted(
        range(len(report.queries)), key=lambda place: (report.difference(report.queries[place].query_id), place)
    )
    first = (
        "those first on which all runs together are worst"
        if report.baseline is None
        else f"those first on which a run loses most against {text(report.baseline)}"
    )
    yield f'<h2>Queries</h2><p class="note">Open one, and then an item, to see why: {first}. '
    yield _legend(report.queries[0])
    yield '</p><p hidden><label for="search">Search queries, items and answers</label><br>'
    yield '<input id="search" type="search" autocomplete="off"> <output id="shown" aria-live="polite"></output></p>'
    for place in order:
        yield _query(report, report.queries[place], place)


def _legend(query: QueryEvidence) -> str:
    scale = query.scale
    if scale is None or scale.highest - scale.lowest > 20:
        return f"An item is covered from grade {query.level} on."
    keys = "".join(
        f'<span class="key s{_step(query, grade)}">{text(scale.name_of(grade))}</span> '
        for grade in range(scale.lowest, scale.highest + 1)
    )
    return (
        f"Grades: {keys}(covered from {text(scale.name_of(query.level) if query.level in scale else query.level)} on)"
    )


def _step(query: QueryEvidence, grade: float) -> int:
    """The colour of a grade: 4 covers, 3 is partial, 0 to 2 are below."""
    if grade >= query.level:
        return 4
    if query.partial is not None and grade >= query.partial:
        return 3
    lowest = query.scale.lowest if query.scale is not None else 0
    below = (query.partial if query.partial is not None else query.level) - lowest
    return min(2, int(3 * (grade - lowest) / below)) if below > 0 and grade > lowest else 0


def _query(report: _Report, query: QueryEvidence, place: int) -> str:
    scores = []
    for run in report.runs:
        value = report.value(run, query.query_id)
        said = "–" if value is None else f"{value:.2f}"
        base = None if report.baseline in (None, run) else report.value(str(report.baseline), query.query_id)
        if value is not None and base is not None:
            said += f" ({value - base:+.2f})"
        scores.append(f"{text(run)} {said}")
    # With many runs the heading names the best and the worst.
    shown = scores if len(scores) <= 4 else [scores[0], "…", scores[-1]]
    summary = f'<b>{text(query.text or query.query_id)}</b><span class="scores">{" · ".join(shown)}</span>'
    heads = "".join(f'<span class="run">{text(run)}</span>' for run in report.runs)
    numbered = list(enumerate(query.items))
    against = report.baseline
    if against is not None:
        # What the baseline has and others lack comes first.
        numbered.sort(key=lambda one: not _is_lost(query, one[1], against, report.runs))
    rows = "".join(_item(report, query, item, f"i{place}-{number}") for number, item in numbered)
    name = f'<p class="small">query {text(query.query_id)}</p>' if query.text else ""
    grid = f'<div class="scroll" tabindex="0"><div class="head"><span></span>{heads}</div>{rows}</div>'
    inside = f"{grid}{_answers(report, query)}{name}"
    return fold(summary, inside, kind="query", name=f"q{place}")


def _is_lost(query: QueryEvidence, item: RubricItem, baseline: str, runs: Sequence[str]) -> bool:
    return query.is_covered(item.item_id, baseline) and not all(query.is_covered(item.item_id, run) for run in runs)


def _item(report: _Report, query: QueryEvidence, item: RubricItem, name: str) -> str:
    cells = query.cells[item.item_id]
    grid = "".join(_cell(query, run, cells[run]) for run in report.runs)
    groups: dict[Evidence, list[str]] = {}
    for run in report.runs:
        if cells[run].status != "other":
            groups.setdefault(cells[run], []).append(run)
    why = "".join(_why(report, query, found, runs, item) for found, runs in groups.items())
    gold = f'<p class="small">gold answers: {text(" | ".join(item.gold_answers))}</p>' if item.gold_answers else ""
    return fold(
        f"<span>{text(item.text)}{_importance(item)}</span>{grid}",
        f'<div class="why">{why}{gold}</div>',
        kind="item",
        name=name,
    )


def _cell(query: QueryEvidence, run: str, found: Evidence) -> str:
    if found.status == "other":
        return '<span class="cell"></span>'
    if found.grade is None:
        mark, kind = ("–", "s0") if found.status in _NO_FAILURE else ("!", "bad")
        why = text(_FAILED.get(found.status, found.status))
        return f'<span class="cell {kind}" title="{text(run)}: {why}">{mark}</span>'
    return (
        f'<span class="cell s{_step(query, found.grade)}" title="{text(run)}: {text(_said(query, found.grade))}">'
        f"{text(_number(found.grade))}</span>"
    )


def _number(grade: float) -> str:
    return f"{grade:.3g}"


def _said(query: QueryEvidence, grade: float) -> str:
    """What a grade means, in words."""
    step = _step(query, grade)
    meaning = "covered" if step == 4 else "partly covered" if step == 3 else "not covered"
    scale = query.scale
    if scale is None:
        return f"grade {_number(grade)}, {meaning}"
    name = scale.name_of(int(grade)) if grade == int(grade) and grade in scale and scale.names else ""
    return f"{name or f'grade {_number(grade)} of {scale.highest}'}, {meaning}"


def _why(report: _Report, query: QueryEvidence, found: Evidence, runs: Sequence[str], item: RubricItem) -> str:
    names = ", ".join(f"<b>{text(run)}</b>" for run in runs)
    if found.grade is None:
        is_unknown = found.status == "missing" and not query.owners
        said = "no answer, or no grade of it" if is_unknown else _FAILED.get(found.status, found.status)
        return f"<div><p>{names}: {text(said)}</p>{_review(report, query, item, found)}</div>"
    is_covered = found.grade >= query.level
    parts = [f"<p>{names}: {text(_said(query, found.grade))}</p>"]
    if found.sentence:
        parts.append(f"<p>{'' if is_covered else 'Nearest: '}<q>{text(found.sentence)}</q></p>")
    elif not is_covered and found.lacks:
        parts.append("<p>No sentence has a word of it.</p>")
    if found.reason:
        parts.append(f"<p>Grader: {text(found.reason)}</p>")
    if not is_covered and found.lacks and item.kind == "nugget":
        parts.append(f"<p>Words that are not there: {text(', '.join(found.lacks))}</p>")
    if query.owners or any(run not in query.answers for run in runs):
        parts.append(f'<p class="small">passage {text(found.doc_id)}</p>')
    parts.append(_review(report, query, item, found))
    return f"<div>{''.join(parts)}</div>"


def _review(report: _Report, query: QueryEvidence, item: RubricItem, found: Evidence) -> str:
    if report.review is None or not found.doc_id:
        return ""
    return f'<p class="small">{review_link(report.review, query.query_id, found.doc_id, item.item_id)}</p>'


def _answers(report: _Report, query: QueryEvidence) -> str:
    """The whole answers, each once."""
    said: dict[str, list[str]] = {}
    for run in report.runs:
        if query.answers.get(run, "").strip():
            said.setdefault(query.answers[run], []).append(run)
    if not said:
        return ""
    shown = "".join(
        f"<h3>{_of(runs)}</h3>" + "".join(f"<p>{text(part)}</p>" for part in re.split(r"\n\s*\n", answer))
        for answer, runs in said.items()
    )
    return fold("The answers", shown)
