"""The report of a board: scores, findings and evidence in one HTML file.

How the report of a board looks, and what its script does: search, and opening what a link names.

The leaderboard as a dot plot: a row a run with its mean, its interval and single queries, as HTML and inline SVG.

Places are shares of the width, so that names and numbers keep their size on a phone.

What earned or lost each grade: for every query, run and item the best passage, its nearest sentence, the reason.

The report of a board: who is best, what to look at, and for every query which run has which item, and why.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import NamedTuple

from rubric_measures.analysis.board_reports import mean_intervals
from rubric_measures.analysis.resampling import Draws
from rubric_measures.base.errors import InputError, UnknownNameError
from rubric_measures.base.words import content_stems, sentence_ends
from rubric_measures.boards.board import BELOW, Leaderboard
from rubric_measures.measures.checked import CheckedGrade, CheckedQuery, check_records
from rubric_measures.measures.grade_sets import GradeFilter, GradeSetSelector
from rubric_measures.pages.frame import fold, page, review_link, text, words
from rubric_measures.records.models import QueryPassages
from rubric_measures.types.entities import CitedAnswer, RubricItem, TestBank, sentence_items
from rubric_measures.types.scales import Scale, covering_level

STYLE = """
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(20rem, 100%), 1fr)); gap: 0 2rem; }
.cards section { border-top: 1px solid var(--line); }
.query { border-top: 1px solid var(--line); }
.query > summary { display: flex; flex-wrap: wrap; gap: .2rem .8rem; padding: .55rem 0; align-items: baseline; }
.query > summary::-webkit-details-marker { display: none; }
.query > summary::before { content: "▸"; color: var(--note); }
.query[open] > summary::before { content: "▾"; }
.query > summary b { flex: 1 1 16rem; font-weight: 600; }
.scores { color: var(--note); font-size: .875rem; font-variant-numeric: tabular-nums; }
.head, .item > summary { display: grid; gap: 3px; align-items: stretch;
  grid-template-columns: 1fr repeat(var(--runs), minmax(1.6rem, 3.2rem)); }
.item > summary { list-style: none; padding: 1.5px 0; }
.item > summary::-webkit-details-marker { display: none; }
.item > summary > span:first-child { padding: .15rem .6rem .15rem 0; }
.head { font-size: .8rem; color: var(--note); align-items: end; }
.head .run { writing-mode: vertical-rl; transform: rotate(180deg); max-height: 9rem; overflow: hidden; padding: .2rem 0;
  overflow-wrap: normal; white-space: nowrap; text-overflow: ellipsis; justify-self: center; }
.item > summary:hover { background: var(--soft); }
.cell { display: grid; place-items: center; border-radius: 3px; min-height: 1.7rem; font-size: .875rem;
  font-variant-numeric: tabular-nums; }
.s0 { background: var(--g0); color: var(--t0); } .s1 { background: var(--g1); color: var(--t1); }
.s2 { background: var(--g2); color: var(--t2); } .s3 { background: var(--g3); color: var(--t3); }
.s4 { background: var(--g4); color: var(--t4); font-weight: 700; }
.why { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(17rem, 100%), 1fr)); gap: .2rem 1.5rem;
  margin: .2rem 0 .8rem; padding: .5rem .8rem; background: var(--soft); border-radius: .3rem; font-size: .9rem; }
.why p { margin: .15rem 0; }
.key { display: inline-block; padding: 0 .45rem; border-radius: 3px; font-size: .8rem; line-height: 1.5; }
.small { font-size: .8rem; color: var(--note); }
@media (max-width: 36rem) {
  .head > span:first-child { display: none; }
  .head, .item > summary { grid-template-columns: repeat(var(--runs), minmax(1.4rem, 1fr)); }
  .item > summary > span:first-child { grid-column: 1 / -1; }
}
"""
SCRIPT = """"use strict";
const box = document.getElementById("search"), all = [...document.querySelectorAll("details.query")];
const texts = all.map((one) => one.textContent.toLowerCase());
box.parentElement.hidden = false;
box.addEventListener("input", () => {
  const asked = box.value.toLowerCase().split(/\\s+/).filter(Boolean);
  let shown = 0;
  all.forEach((one, place) => {
    one.hidden = !asked.every((word) => texts[place].includes(word));
    shown += one.hidden ? 0 : 1;
  });
  document.getElementById("shown").textContent = asked.length ? `${shown} of ${all.length}` : "";
});
"""

DOT_STYLE = """
.dots { margin: .6rem 0 0; }
.dots div { display: grid; grid-template: "name plot value" / 11rem minmax(0, 1fr) 3.4rem; column-gap: .8rem;
  align-items: center; }
.dots .name { grid-area: name; }
.dots .value { grid-area: value; }
.dots svg { grid-area: plot; width: 100%; height: 1.8rem; display: block; overflow: visible; }
.dots .value { font-variant-numeric: tabular-nums; text-align: end; white-space: nowrap; }
.dots .axis { height: 1.4rem; }
.dots text { font: .75rem system-ui, sans-serif; fill: var(--note); }
.grid { stroke: var(--line); }
.interval { stroke: var(--dot); stroke-width: 3; }
.mean { fill: var(--dot); }
.query { fill: var(--query); fill-opacity: .55; }
@media (max-width: 30rem) {
  .dots div { grid-template: "name value" "plot plot" / 1fr auto; }
}
"""


def dot_plot(
    board: Leaderboard,
    measure: str,
    runs: Sequence[str],
    intervals: Mapping[str, tuple[float, float] | None],
    level: float,
) -> str:
    """One measure in raw scores.

    Args:
        board: the scores.
        measure: the measure.
        runs: the rows, best first; one at least.
        intervals: run -> ends of the interval of its mean, where it has one.
        level: the nominal coverage of intervals.
    """
    values = {run: [one for one in board.values[run][measure].values() if one is not None] for run in runs}
    ends = [end for pair in intervals.values() if pair for end in pair]
    every = [*ends, *(value for of_run in values.values() for value in of_run)]
    low, high, ticks = _axis(every)

    def place(value: float) -> str:
        # Room at both ends for dots and for the first and last number.
        return f"{2 + 96 * (value - low) / (high - low):.2f}%"

    lines = "".join(f'<line class="grid" x1="{place(tick)}" x2="{place(tick)}" y1="0" y2="100%"/>' for tick in ticks)
    rows = []
    for run in runs:
        mean, interval = board.cells[run][measure].mean, intervals.get(run)
        # Equal values would be one dot: they stand one above the other, as many as there is room for.
        seen: dict[str, int] = {}
        dots = ""
        for value in sorted(values[run]):
            at = place(value)
            number = seen[at] = seen.get(at, 0) + 1
            if number <= 5:
                dots += (
                    f'<circle class="query" cx="{at}" cy="{50 + (number // 2) * (9 if number % 2 else -9)}%" r="2.5"/>'
                )
        bar = ""
        if interval is not None:
            low_end, high_end = map(place, interval)
            bar = f'<line class="interval" x1="{low_end}" x2="{high_end}" y1="50%" y2="50%"/>'
        dot = "" if mean is None else f'<circle class="mean" cx="{place(mean)}" cy="50%" r="5.5"/>'
        said = _said(run, measure, mean, interval, level)
        shown = "–" if mean is None else f"{mean:.3f}"
        rows.append(
            f'<div><span class="name">{text(run)}</span>'
            f'<svg role="img" aria-label="{text(said)}"><title>{text(said)}</title>{lines}{dots}{bar}{dot}</svg>'
            f'<span class="value">{shown}</span></div>'
        )
    numbers = "".join(f'<text x="{place(tick)}" y="1em" text-anchor="middle">{tick:g}</text>' for tick in ticks)
    queries = max((len(of_run) for of_run in values.values()), default=0)
    caption = f"{measure}: mean over {words(queries, 'query', 'queries')}"
    if ends:
        caption += f", with its {level:.0%} interval"
    return (
        f'<div class="dots">{"".join(rows)}<div><svg class="axis" aria-hidden="true">{numbers}</svg></div></div>'
        f'<p class="note">{text(caption)}; grey: single queries.</p>'
    )


def _said(run: str, measure: str, mean: float | None, interval: tuple[float, float] | None, level: float) -> str:
    if mean is None:
        return f"{run}: no score by {measure}"
    between = "" if interval is None else f", {level:.0%} interval {interval[0]:.3f} to {interval[1]:.3f}"
    return f"{run}: {mean:.3f}{between}"


def _axis(values: Sequence[float]) -> tuple[float, float, list[float]]:
    """The ends of the axis, and its numbers: 0 to 1 where all values are in there, else round ones around them.

    >>> _axis([0.2, 0.9])
    (0.0, 1.0, [0.0, 0.2, 0.4, 0.6, 0.8, 1.0])
    >>> _axis([3, 42])
    (0.0, 50.0, [0.0, 10.0, 20.0, 30.0, 40.0, 50.0])
    """
    lowest, highest = min([0.0, *values]), max(values, default=1.0)
    if lowest >= 0 and highest <= 1:
        lowest, highest = 0.0, 1.0
    rough = (highest - lowest) / 5
    unit = 10.0 ** math.floor(math.log10(rough))
    step = next(unit * factor for factor in (1, 2, 5, 10) if unit * factor >= rough - 1e-12)
    first, last = math.floor(lowest / step + 1e-9), math.ceil(highest / step - 1e-9)
    return first * step, last * step, [round(number * step, 12) for number in range(first, last + 1)]


# The longest stretch of a passage that is shown as its sentence, in characters.
_LONGEST = 400
Rankings = Mapping[str, Mapping[str, Sequence[str]]]
"""Run -> query -> its documents, best first, as many as count."""


class Evidence(NamedTuple):
    """Why a run has an item, or has it not.

    Attributes:
        grade: the best grade of the run's passages; None where there is none.
        status: `graded`, or why there is no grade: `unparsed`, `refused`, `truncated`, `failed`; `missing` where nobody
            graded a passage of the run for the item. Of sentences of answers also `uncited`, `textless` where
            there is no text of what is cited, and `other` where the sentence is one of another run.
        doc_id: the passage with that grade.
        sentence: its sentence that shares most content words with the item.
        reason: why the grader gave the grade, where it was asked for that.
        lacks: the content words of the item that the passage does not have, as they stand in the item.
    """

    grade: float | None
    status: str
    doc_id: str = ""
    sentence: str = ""
    reason: str = ""
    lacks: tuple[str, ...] = ()


@dataclass(frozen=True)
class QueryEvidence:
    """One query of a report.

    Attributes:
        query_id: the query.
        text: its text; empty where the bank does not give it.
        items: the items; without a bank those that were graded, with their ids as texts.
        cells: item id -> run -> evidence.
        level: the least grade that covers an item.
        partial: the least grade that earns half the credit; None where none does.
        scale: the scale of the grades; None where it is not known.
        answers: run -> its text, of runs with one passage: generated answers.
        owners: item id -> the run whose sentence it is, where grades say what citations support; else empty.
    """

    query_id: str
    text: str
    items: tuple[RubricItem, ...]
    cells: Mapping[str, Mapping[str, Evidence]]
    level: int
    partial: int | None
    scale: Scale | None
    answers: Mapping[str, str] = field(default_factory=dict)
    owners: Mapping[str, str] = field(default_factory=dict)

    def is_covered(self, item_id: str, run: str) -> bool:
        """Whether a run covers an item."""
        grade = self.cells[item_id][run].grade
        return grade is not None and grade >= self.level

    def missed(self, run: str) -> list[RubricItem]:
        """The items that a run was graded for and does not cover, vital ones first."""
        lacking = [
            item
            for item in self.items
            if self.cells[item.item_id][run].grade is not None and not self.is_covered(item.item_id, run)
        ]
        return sorted(lacking, key=lambda item: item.importance != "vital")


def evidence_of(
    groups: Iterable[QueryPassages],
    rankings: Rankings,
    bank: TestBank | None,
    wanted: GradeFilter,
    *,
    level: int | None = None,
    source: str = "",
    answers: Mapping[str, Sequence[CitedAnswer]] | None = None,
) -> Iterator[QueryEvidence]:
    """The evidence of each query of graded records, in their order.

    Args:
        groups: the records; consumed once, a query at a time.
        rankings: the runs.
        bank: the items.
        wanted: which grades count.
        level: the least grade that covers an item; None takes that of the scale.
        source: what the records are called, for errors.
        answers: query -> the answers whose sentences are the items, where grades say what citations support. The
            evidence of a sentence is then the document that it cites first, as its score is.

    Raises:
        InputError: several grade sets are left, or the covering level is not known.
        UnknownNameError: the bank lacks a query.
    """
    for checked in check_records(groups, GradeSetSelector(wanted, source), bank):
        of_query = (answers or {}).get(checked.query_id, ())
        if of_query:
            items = sentence_items(of_query)
        elif bank is not None:
            items = bank.items[checked.query_id]
        else:
            items = tuple(RubricItem(item_id, checked.query_id, item_id) for item_id in checked.items)
        found = _of_query(checked, items, rankings, level)
        yield _of_sentences(found, checked, of_query) if of_query else found


def _of_sentences(found: QueryEvidence, checked: CheckedQuery, answers: Sequence[CitedAnswer]) -> QueryEvidence:
    """The same with what stands behind sentences: what they cite, each for the run that says it."""
    documents = {passage.doc_id: passage for passage in checked.passages}
    items = {item.item_id: item for item in found.items}
    owners, cells = {}, {}
    for answer in answers:
        for sentence in answer.sentences:
            cited = documents.get(sentence.citations[0]) if sentence.citations else None
            row = None if cited is None else cited.grades.get(sentence.item_id)
            if row is None:
                shown = Evidence(None, "missing" if sentence.citations else "uncited")
            elif not row.text:
                # Files of labels have no texts of documents; a grader without one makes no call.
                status = "textless" if row.status == "failed" else row.status
                shown = Evidence(row.grade, status, row.doc_id, reason=row.reason)
            else:
                shown = _evidence(items[sentence.item_id], row)
            owners[sentence.item_id] = answer.run_id
            others = dict.fromkeys(found.cells[sentence.item_id], Evidence(None, "other"))
            cells[sentence.item_id] = {**others, answer.run_id: shown}
    return replace(found, cells=cells, owners=owners)


def _of_query(
    checked: CheckedQuery, items: tuple[RubricItem, ...], rankings: Rankings, level: int | None
) -> QueryEvidence:
    passages = {passage.doc_id: passage for passage in checked.passages}
    ranked = {
        run: [passages[doc_id] for doc_id in of_run.get(checked.query_id, ()) if doc_id in passages]
        for run, of_run in rankings.items()
    }
    graded = any(row.grade is not None for row in checked.rows())
    least = covering_level(checked.scale, level) if graded or checked.scale is not None else level or 1
    shown: dict[tuple[str, str], Evidence] = {}
    cells: dict[str, dict[str, Evidence]] = {}
    for item in items:
        of_item = cells.setdefault(item.item_id, {})
        for run, members in ranked.items():
            rows = [one.grades[item.item_id] for one in members if item.item_id in one.grades]
            # The first of the best grades; where all failed, the first of these.
            best = max(rows, key=lambda row: -math.inf if row.grade is None else row.grade, default=None)
            if best is None:
                of_item[run] = Evidence(None, "missing")
                continue
            # Runs share passages, and what is shown of them.
            key = (item.item_id, best.doc_id)
            if key not in shown:
                shown[key] = _evidence(item, best)
            of_item[run] = shown[key]
    return QueryEvidence(
        checked.query_id,
        checked.text,
        items,
        cells,
        least,
        None if checked.scale is None else checked.scale.partial,
        checked.scale,
        {run: members[0].text for run, members in ranked.items() if len(members) == 1},
    )


def _evidence(item: RubricItem, row: CheckedGrade) -> Evidence:
    wanted = set(content_stems(item.text))
    for answer in item.gold_answers:
        wanted |= set(content_stems(answer))
    sentences = _sentences(row.text)
    stated = frozenset[str]().union(*(stems for _, stems in sentences))
    lacks = tuple(dict.fromkeys(word.strip(".,;:!?()[]\"'“”") for word in item.text.split() if _lacks(word, stated)))
    # The first one of those with the most words; none where no sentence has any.
    sentence, stems = max(sentences, key=lambda one: len(wanted & one[1]), default=("", frozenset[str]()))
    shown = sentence if len(sentence) <= _LONGEST else f"{sentence[:_LONGEST].rstrip()}…"
    return Evidence(row.grade, row.status, row.doc_id, shown if wanted & stems else "", row.reason, lacks)


def _lacks(word: str, stated: frozenset[str]) -> bool:
    stems = content_stems(word)
    return bool(stems) and not stated.issuperset(stems)


@lru_cache(maxsize=64)
def _sentences(passage: str) -> tuple[tuple[str, frozenset[str]], ...]:
    """The sentences of a passage, each with the stems of its content words."""
    found, start = [], 0
    for stop in sentence_ends(passage):
        sentence = " ".join(passage[start:stop].split())
        found.append((sentence, frozenset(content_stems(sentence))))
        start = stop
    return tuple(found)


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
    runs = [run for run in board.ranking() if run not in BELOW]
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
        f'<span class="cell s{_step(query, found.grade)}" title="{text(run)}: {text(_meaning(query, found.grade))}">'
        f"{text(_number(found.grade))}</span>"
    )


def _number(grade: float) -> str:
    return f"{grade:.3g}"


def _meaning(query: QueryEvidence, grade: float) -> str:
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
    parts = [f"<p>{names}: {text(_meaning(query, found.grade))}</p>"]
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
