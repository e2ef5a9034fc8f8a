"""The reports as HTML pages.

One query as HTML: its items, its passages with all grades and their text once, and the grades of each item.

What a reader should look at first: worst items, uncovered passages, doubtful grades, canaries that failed.

The reports as HTML files without network: a first page that says what to look at, and pages of details behind it.

All of it is one file while that has room; else each further page is a file beside the first one.
"""

from __future__ import annotations

import contextlib
import heapq
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rubric_measures.base.errors import InputError
from rubric_measures.base.files import atomic_writer
from rubric_measures.base.tables import Cell, Marked, Undefined, number
from rubric_measures.measures.checked import (
    CheckedGrade,
    CheckedPassage,
    CheckedQuery,
    bad_items,
    grades_by_item,
    level_of,
    uncovered_passages,
)
from rubric_measures.pages.frame import (
    PAGE,
    SCRIPT,
    SEARCH,
    Link,
    ReviewAddress,
    item_names,
    page,
    page_text,
    passage_link,
    readable,
    rows_in_blocks,
    shade,
    snippet,
    table,
    words,
)
from rubric_measures.pages.frame import REPORT_STYLE as STYLE
from rubric_measures.verification.reports import ReportSettings
from rubric_measures.verification.sections import Section

# Of a text that is longer, the beginning is shown, and how much is left out.
_LONGEST = 100_000


@dataclass(frozen=True)
class QueryPlaces:
    """Where the parts of a query stand.

    Attributes:
        start: its heading.
        passages: doc_id -> its row with the whole text.
        items: item_id -> its grades.
    """

    start: Link
    passages: Mapping[str, Link]
    items: Mapping[str, Link]


def query_blocks(
    query: CheckedQuery,
    number: int,
    settings: ReportSettings,
    review: ReviewAddress | None,
    add: Callable[[str, str], Link],
) -> QueryPlaces:
    """Puts a query on pages, block by block.

    Args:
        query: the query.
        number: makes its anchors.
        settings: which analyses are shown.
        review: see `write_html`.
        add: puts markup with an anchor on a page, and says where.
    """
    anchor = f"q{number}"
    text = f'<span dir="auto">{page_text(query.text)}</span> ' if query.text else ""
    start = add(f'<h2 id="{anchor}">{text}<span class="note">{page_text(query.query_id)}</span></h2>\n', anchor)
    passages: dict[str, Link] = {}
    if {"verify_grading", "grid_display", "uncovered_passages"} & set(settings.reports):
        passages = _passages(query, anchor, settings, add)
    items: dict[str, Link] = {}
    if "verify_grading" in settings.reports:
        for place, (item_id, rows) in enumerate(grades_by_item(query, settings.by_uncertainty).items()):
            items[item_id] = _item(query, item_id, rows, f"{anchor}i{place}", passages, review, add)
    if "bad_question" in settings.reports:
        _bad_items(query, anchor, settings, items, add)
    if "uncovered_passages" in settings.reports:
        _uncovered(query, anchor, settings, passages, add)
    return QueryPlaces(start, passages, items)


def _whole(text: str) -> str:
    more = f" … ({len(text) - _LONGEST:,} more characters)" if len(text) > _LONGEST else ""
    return page_text(text[:_LONGEST]) + more


def _number(value: float | None) -> str:
    if value is None:
        return '<td class="none">–</td>'
    return f'<td class="number">{value if isinstance(value, int) else f"{value:g}"}</td>'


def _passages(
    query: CheckedQuery, anchor: str, settings: ReportSettings, add: Callable[[str, str], Link]
) -> dict[str, Link]:
    """A row a passage: judgment, best grade, its grade of every item, and its text, of which the beginning is seen."""
    shows_grid = "grid_display" in settings.reports
    names = list(item_names(query.items).values()) if shows_grid else []
    heads = ["Passage", "Judgment", "Best grade", *names, "Passage id"]
    covers = query.scale.covers if query.scale is not None else settings.min_rating
    places: dict[str, Link] = {}
    done = 0
    rows = (
        _passage(query, passage, f"{anchor}p{place}", shows_grid, covers)
        for place, passage in enumerate(query.passages)
    )
    for body, count in rows_in_blocks(rows):
        of_all = f"{done + 1} to {done + count} of {len(query.passages)}" if count < len(query.passages) else str(count)
        page = add(
            f"<details open><summary><h3>Passages ({of_all})</h3></summary>\n{table(heads, body)}</details>\n", anchor
        ).page
        for place in range(done, done + count):
            places[query.passages[place].doc_id] = Link(page, f"{anchor}p{place}")
        done += count
    return places


def _passage(query: CheckedQuery, passage: CheckedPassage, anchor: str, shows_grid: bool, covers: int | None) -> str:
    text = snippet(passage.text)
    if text.endswith("…"):
        text = f"<details><summary>{text}</summary>{_whole(passage.text)}</details>"
    cells = [f'<td dir="auto" class="text">{text}</td>', _number(passage.judgment), _number(passage.best)]
    for item_id in query.items if shows_grid else ():
        row = passage.grades.get(item_id)
        if row is None:
            cells.append('<td class="none">–</td>')
        elif row.grade is None:
            cells.append(f'<td class="none">{page_text(row.status)}</td>')
        else:
            kind = shade(row.grade, query.scale) + (" covers" if covers is not None and row.grade >= covers else "")
            cells.append(f'<td class="{kind}">{row.grade:g}</td>')
    return f'<tr id="{anchor}">{"".join(cells)}<td class="id" dir="auto">{page_text(passage.doc_id)}</td></tr>\n'


def _item(
    query: CheckedQuery,
    item_id: str,
    rows: list[CheckedGrade],
    anchor: str,
    passages: Mapping[str, Link],
    review: ReviewAddress | None,
    add: Callable[[str, str], Link],
) -> Link:
    """The grades of one item, each beside what the grader said, with links to the passage and into the review page."""
    has_confidence = any(row.confidence is not None for row in rows)
    has_reason = any(row.reason for row in rows)
    heads = ["Grade", *(["Confidence"] if has_confidence else []), "Judgment", "Passage", "Answer"]
    heads += ["Reason"] * has_reason + ["Review"] * (review is not None)

    def markup(row: CheckedGrade) -> Iterator[str]:
        grade = page_text(row.status) if row.grade is None else f"{row.grade:g}"
        kind = "none" if row.grade is None else shade(row.grade, query.scale)
        yield f'<tr><td class="{kind}">{grade}</td>'
        yield _number(row.confidence) if has_confidence else ""
        yield _number(row.judgment)
        yield passage_link(passages[row.doc_id], row.text)
        yield f'<td dir="auto" class="text">{_whole(row.answer)}</td>'
        yield f'<td dir="auto" class="text">{_whole(row.reason)}</td>' if has_reason else ""
        yield "" if review is None else f"<td>{review.link(query.query_id, row.doc_id, item_id)}</td>"
        yield "</tr>\n"

    name = page_text(item_names(query.items)[item_id])
    shown_id = f' <span class="note">{page_text(item_id)}</span>'
    first: Link | None = None
    for body, count in rows_in_blocks("".join(markup(row)) for row in rows):
        key = f' id="{anchor}"' if first is None else ""
        of_all = words(count, "grade") + (f" of {len(rows)}" if count < len(rows) else "")
        heading = f'<h3 dir="auto">{name}</h3>{shown_id} <span class="note">({of_all})</span>'
        place = add(f"<details{key}><summary>{heading}</summary>\n{table(heads, body)}</details>\n", anchor)
        first = first or place
    return first or Link(1, anchor)


def _bad_items(
    query: CheckedQuery,
    anchor: str,
    settings: ReportSettings,
    items: Mapping[str, Link],
    add: Callable[[str, str], Link],
) -> None:
    level, names = level_of(query, settings.min_rating), item_names(query.items)
    rows = []
    for row in bad_items(query, settings.min_judgment, settings.min_rating):
        counts = "".join(map(_number, (row.spurious, row.relevant, row.covering)))
        shown_id = f'<td class="id" dir="auto">{page_text(row.item_id)}</td>'
        rows.append(_row(_linked(items.get(row.item_id), names[row.item_id]) + counts + shown_id, None))
    spurious = f"Not relevant passages that cover it (from {level})"
    heads = ["Item", spurious, "Relevant ones", "All that cover it", "Item id"]
    for body, count in rows_in_blocks(rows):
        add(f"<details><summary><h3>Items ({count})</h3></summary>\n{table(heads, body)}</details>\n", f"{anchor}items")


def _uncovered(
    query: CheckedQuery,
    anchor: str,
    settings: ReportSettings,
    passages: Mapping[str, Link],
    add: Callable[[str, str], Link],
) -> None:
    rows = (
        f"<tr>{passage_link(passages[row.doc_id], row.text)}{_number(row.judgment)}{_number(row.best_grade)}</tr>\n"
        for row in uncovered_passages(query, settings.min_judgment, settings.min_rating)
    )
    for body, count in rows_in_blocks(rows):
        title = f"Relevant passages that no item covers ({count})"
        markup = table(["Passage", "Judgment", "Best grade"], body)
        add(f"<details><summary><h3>{title}</h3></summary>\n{markup}</details>\n", f"{anchor}uncovered")


# How many of each kind the first page lists.
_LISTED = 20
_CORRELATIONS = ("r_judgment", "r_leaderboard")


class _Worst:
    """The worst of what is found, and how much there is."""

    def __init__(self) -> None:
        self.count = 0
        # What comes first has the highest key; the number tells equal ones apart.
        self._heap: list[tuple[tuple[float, ...], int, str]] = []

    def add(self, key: tuple[float, ...], markup: str) -> None:
        self.count += 1
        heapq.heappush(self._heap, (key, -self.count, markup))
        if len(self._heap) > _LISTED:
            heapq.heappop(self._heap)

    def rows(self) -> list[str]:
        return [markup for *_, markup in sorted(self._heap, reverse=True)]


class LookAt:
    """Gathers what stands on the first page, query by query, and keeps only the rows that it lists."""

    def __init__(self, settings: ReportSettings, review: ReviewAddress | None) -> None:
        self._settings, self._review = settings, review
        self._spurious, self._never, self._uncovered, self._doubtful, self._canaries = (_Worst() for _ in range(5))
        self._against = _Worst()
        self._bad: dict[tuple[str, str], tuple[float | None, ...]] = {}
        self._queries: list[str] = []
        self._has_canaries = False
        self._failed = self._passages = self._grades = 0

    def add_section(self, section: Section) -> None:
        """Takes the canaries that fooled a grader, and the items whose statistics are bad, until their query comes."""
        self._has_canaries |= section.kind == "fooled"
        for row in section.rows if section.kind in ("items", "fooled") else ():
            said = dict(zip(section.columns, row, strict=True))
            if section.kind == "items":
                pair = tuple(r if isinstance(r := said[name], float) else None for name in _CORRELATIONS)
                if any(r is not None and r < 0 for r in pair):
                    self._bad[str(said["query_id"]), str(said["item_id"])] = pair
            else:
                cells = (page_text(str(said[name])) for name in ("case", "grade", "query_id", "grader"))
                markup = "".join(f'<td dir="auto">{cell}</td>' for cell in (snippet(str(said["text"])), *cells))
                key = float(grade) if isinstance(grade := said["grade"], int | float) else 0.0
                self._canaries.add((key,), _row(markup, None))

    def add(self, query: CheckedQuery, places: QueryPlaces) -> None:
        """Takes a query that stands on pages."""
        reports = set(self._settings.reports)
        if "bad_question" in reports:
            self._add_items(query, places)
        self._add_against(query, places)
        uncovered = 0
        if "uncovered_passages" in reports:
            for row in uncovered_passages(query, self._settings.min_judgment, self._settings.min_rating):
                uncovered += 1
                place = places.passages[row.doc_id]
                best = "–" if row.best_grade is None else f"{row.best_grade:g}"
                item = next(iter(query.items), None)
                markup = passage_link(place, row.text) + _of_query(query, places)
                markup += f'<td class="number">{row.judgment:g}</td><td class="number">{best}</td>'
                self._uncovered.add((row.judgment,), _row(markup, self._link(query, row.doc_id, item)))
        if "verify_grading" in reports:
            for grade in query.rows():
                self._add_grade(query, grade, places)
        self._passages += len(query.passages)
        counts = [len(query.passages), len(query.items), *([uncovered] if "uncovered_passages" in reports else [])]
        cells = "".join(map(_number, counts))
        shown_id = f'<td class="id" dir="auto">{page_text(query.query_id)}</td>'
        self._queries.append(_row(f"{_of_query(query, places)}{cells}{shown_id}", None))

    def _add_items(self, query: CheckedQuery, places: QueryPlaces) -> None:
        level, names = level_of(query, self._settings.min_rating), item_names(query.items)
        for row in bad_items(query, self._settings.min_judgment, self._settings.min_rating):
            markup = _linked(places.items.get(row.item_id, places.start), names[row.item_id]) + _of_query(query, places)
            if row.spurious:
                doc_id = next(
                    passage.doc_id
                    for passage in query.passages
                    if passage.judgment is not None
                    and passage.judgment < self._settings.min_judgment
                    and ((given := passage.grades.get(row.item_id)) is not None)
                    and given.grade is not None
                    and given.grade >= level
                )
                counts = _number(row.spurious) + _number(row.relevant)
                link = self._link(query, doc_id, row.item_id)
                self._spurious.add((row.spurious - row.relevant, row.spurious), _row(markup + counts, link))
            elif not row.covering:
                graded = [passage.doc_id for passage in query.passages if row.item_id in passage.grades]
                link = self._link(query, graded[0], row.item_id) if graded else None
                self._never.add((len(graded),), _row(f'{markup}<td class="number">{len(graded)}</td>', link))

    def _add_against(self, query: CheckedQuery, places: QueryPlaces) -> None:
        """The items of a query that correlate negatively with the judgments, or with the other items over the runs."""
        for item_id, name in item_names(query.items).items():
            pair = self._bad.pop((query.query_id, item_id), ())
            if not pair:
                continue
            markup = _linked(places.items.get(item_id, places.start), name) + _of_query(query, places)
            markup += "".join(f'<td class="number">{"–" if r is None else f"{r:.2f}"}</td>' for r in pair)
            doc_id = next((passage.doc_id for passage in query.passages if item_id in passage.grades), None)
            link = None if self._review is None else "" if doc_id is None else self._link(query, doc_id, item_id)
            self._against.add((-min(r for r in pair if r is not None),), _row(markup, link))

    def _add_grade(self, query: CheckedQuery, grade: CheckedGrade, places: QueryPlaces) -> None:
        """Doubtful are failed grades, unsure ones, and those that cover in a passage judged not relevant."""
        self._grades += 1
        settings = self._settings
        if grade.grade is None:
            self._failed += 1
            why, key = grade.status, 3.0
        elif grade.confidence is not None and grade.confidence < 0.5:
            why, key = f"confidence {grade.confidence:.2f}", 2.0 - grade.confidence
        elif (
            grade.judgment is not None
            and grade.judgment < settings.min_judgment
            and query.scale is not None
            and grade.grade >= (settings.min_rating or query.scale.covers)
        ):
            why, key = "covers, and the passage is judged not relevant", grade.grade / (query.scale.highest or 1)
        else:
            return
        place = places.items.get(grade.item_id, places.start)
        markup = _linked(place, item_names(query.items)[grade.item_id])
        markup += passage_link(places.passages[grade.doc_id], grade.text)
        shown = "–" if grade.grade is None else f"{grade.grade:g}"
        markup += f'<td class="number">{shown}</td><td>{page_text(why)}</td>'
        self._doubtful.add((key,), _row(markup, self._link(query, grade.doc_id, grade.item_id)))

    def _link(self, query: CheckedQuery, doc_id: str, item_id: str | None) -> str | None:
        if self._review is None:
            return None
        return "" if item_id is None else self._review.link(query.query_id, doc_id, item_id)

    def html(self) -> str:
        """What to look at, as markup."""
        reports = set(self._settings.reports)
        lists = []
        if "bad_question" in reports:
            heads = ["Item", "Query", "Not relevant passages that cover it", "Relevant ones"]
            lists.append(self._list("Items that passages judged not relevant cover", self._spurious, heads))
            heads = ["Item", "Query", "Passages graded"]
            lists.append(self._list("Items that no passage covers", self._never, heads))
        if self._against.count:
            heads = ["Item", "Query", "Correlation with judgments", "Correlation with the other items, over runs"]
            lists.append(self._list("Items that work against judgments or other items", self._against, heads))
        if "uncovered_passages" in reports:
            heads = ["Passage", "Query", "Judgment", "Best grade"]
            lists.append(self._list("Relevant passages that no item covers", self._uncovered, heads))
        if "verify_grading" in reports:
            title = f"Doubtful grades ({self._failed} failed)" if self._failed else "Doubtful grades"
            lists.append(self._list(title, self._doubtful, ["Item", "Passage", "Grade", "Why"]))
        if self._has_canaries:
            heads = ["Text", "Case", "Grade", "Query", "Grader"]
            lists.append(self._list("Canaries that failed", self._canaries, heads, links=False))
        if not lists:
            return ""
        said = f"{self._passages:,} passages, {self._grades:,} grades. " if self._grades else ""
        review = ""
        if self._review is not None:
            review = f"Links called review work while this runs: <code>{page_text(self._review.command)}</code>"
        return f'<h2>What to look at</h2>\n<p class="note">{said}{review}</p>\n{"".join(lists)}'

    def _list(self, title: str, worst: _Worst, heads: Sequence[str], links: bool = True) -> str:
        if not worst.count:
            return f"<h3>{page_text(title)}: none</h3>\n"
        shown = worst.rows()
        count = f"{len(shown)} of {worst.count:,}, the worst first" if worst.count > len(shown) else str(worst.count)
        names = [*heads, "Review"] if links and self._review is not None else heads
        body = table(names, "".join(shown))
        return f"<details open><summary><h3>{page_text(title)} ({count})</h3></summary>\n{body}</details>\n"

    def query_lists(self) -> list[str]:
        """All queries with links to their details, in blocks."""
        if not self._queries:
            return []
        missed = ["Relevant passages that no item covers"] * ("uncovered_passages" in self._settings.reports)
        heads = ["Query", "Passages", "Items", *missed, "Query id"]
        return [f"<h2>Queries</h2>\n{table(heads, body)}" for body, _ in rows_in_blocks(self._queries)]


def _linked(place: Link | None, name: str) -> str:
    """A cell with a name, which leads to its place."""
    shown = page_text(name) if place is None else f'<a href="{place.href}">{page_text(name)}</a>'
    return f'<td dir="auto">{shown}</td>'


def _of_query(query: CheckedQuery, places: QueryPlaces) -> str:
    return _linked(places.start, query.text or query.query_id)


def _row(markup: str, link: str | None) -> str:
    return f"<tr>{markup}</tr>\n" if link is None else f"<tr>{markup}<td>{link}</td></tr>\n"


# In bytes; browsers open pages of this size at once.
LARGEST_PAGE = 2_000_000

_NAMES = {
    "items": "Item statistics",
    "duplicate-items": "Near-duplicate items",
    "bank-stability": "Size of the bank",
    "bank": "Does the bank hold",
    "bank-ends": "Items at floor and ceiling",
    "bank-against": "Items against the rest",
    "bank-pairs": "Items that the same passages cover",
    "bank-suggestions": "Suggestions",
    "reusability-run": "Reusability: runs left out",
    "graders": "Graders",
    "grader-agreement": "Agreement of graders",
    "disagreements": "Disagreements",
    "calibration": "Calibration",
    "canaries": "Canary suite",
    "fooled": "Canaries that fooled a grader",
}
_HEADS = {
    "query_id": "Query",
    "item_id": "Item id",
    "first_item_id": "Id of the first",
    "second_item_id": "Id of the second",
    "with_item_id": "Id of the other",
    "with": "With",
    "doc_id": "Passage id",
    "llm": "Model",
    "prompt_class": "Prompt",
    "by_relevant": "Relevant passages that cover it",
    "by_not_relevant": "Not relevant ones that cover it",
    "r_judgment": "Correlation with judgments",
    "r_leaderboard": "Correlation with the leaderboard",
    "covered": "Covered by runs",
    "flips": "Pairs of runs that flip without it",
    "tau_mean": "Mean τ",
    "tau_low": "Least τ",
    "tau_high": "Greatest τ",
    "rate": "Share fooled",
}
# What a reader looks for first, and what only programs need.
_FIRST = ("what", "item", "first", "second", "case", "run")
_LAST = ("item_id", "with_item_id", "first_item_id", "second_item_id", "doc_id")


def write_html(
    path: str,
    parts: Iterable[Section | CheckedQuery],
    settings: ReportSettings,
    title: str = "Verification report",
    review: ReviewAddress | None = None,
) -> list[str]:
    """Writes the report; where it takes several files, none of them is left when one cannot be written.

    Args:
        path: the first page; `-` is standard output.
        parts: tables, and queries with their grades; consumed once.
        settings: which of the analyses of queries are shown, and at which levels.
        title: of the pages.
        review: where single grades can be reviewed.

    Returns:
        the files, the first page first.

    Raises:
        InputError: a file cannot be written, or there is more than standard output can take: one page.
    """
    with _Pages(path, title) as pages:
        look = LookAt(settings, review)
        contents: list[tuple[str, Link, int]] = []
        for count, part in enumerate(parts):
            if isinstance(part, Section):
                look.add_section(part)
                place, *_ = [pages.add(block, f"t{count}") for block in _section_blocks(part, f"t{count}")]
                contents.append((_NAMES.get(part.kind, readable(part.kind)), place, len(part.rows)))
            else:
                pages.heading = f"<h2>{page_text(part.text or part.query_id)}, continued</h2>\n"
                look.add(part, query_blocks(part, count, settings, review, pages.add))
        first, *further = look.query_lists() or [""]
        for count, block in enumerate(further):
            # Thousands of queries have their list on pages of their own.
            contents.append(
                ("Queries, continued", pages.add(f'<p id="l{count}"></p>{block}', f"l{count}"), block.count("<tr>"))
            )
        return pages.finish(f"{look.html()}{_contents(contents)}{first}")


class _Pages:
    """Pages that are written as soon as they are full."""

    def __init__(self, path: str, title: str) -> None:
        self._path, self._title = path, title
        self._blocks: list[str] = []
        self._size = 0
        self._written: list[str] = []
        # What a page begins with that goes on with a query.
        self.heading = ""

    def __enter__(self) -> _Pages:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is not None:
            for name in self._written:
                with contextlib.suppress(OSError):
                    Path(name).unlink()

    def add(self, block: str, anchor: str) -> Link:
        """Puts a block of markup on the page that has room for it; links in it lead to pages by `PAGE`."""
        # Links take room when pages have their names.
        size = len(block.encode("utf-8")) + block.count(PAGE) * len(self._name(1))
        if self._blocks and self._size + size > LARGEST_PAGE * 0.95:
            self._write()
            if self.heading and not block.startswith("<h2"):
                self._blocks.append(self.heading)
        self._blocks.append(block)
        self._size += size
        return Link(len(self._written) + 1, anchor)

    def finish(self, first: str) -> list[str]:
        """Writes what is left, and the first page, whose content is given."""
        size = self._size + len(first.encode("utf-8"))
        if not self._written and size <= LARGEST_PAGE * 0.95:
            self._put(self._path, [first, *self._blocks], one_page=True)
            return [self._path]
        self._write()
        self._put(self._path, [first])
        return [self._path, *self._written]

    def _write(self) -> None:
        if self._path == "-":
            raise InputError("the report takes several pages; name a file for the first one", settings=("output",))
        name = self._name(len(self._written) + 1)
        self._put(name, [f'<p><a href="{page_text(Path(self._path).name)}">What to look at</a></p>\n', *self._blocks])
        self._written.append(name)
        self._blocks.clear()
        self._size = 0

    def _name(self, page: int) -> str:
        path = Path(self._path)
        return os.fspath(path.with_name(f"{path.stem}-{page}{path.suffix}"))

    def _put(self, name: str, blocks: Sequence[str], one_page: bool = False) -> None:
        def target(link: re.Match[str]) -> str:
            return "#" if one_page else f"{page_text(Path(self._name(int(link[1]))).name)}#"

        with atomic_writer(name) as stream:
            body = [
                f"<header><h1>{page_text(self._title)}</h1></header>\n{SEARCH}<main>\n",
                *(re.sub(f"{PAGE}([0-9]+)#", target, block) for block in blocks),
                "</main>\n",
            ]
            stream.writelines(page(self._title, body, style=STYLE, script=SCRIPT))


def _contents(contents: Sequence[tuple[str, Link, int]]) -> str:
    if not contents:
        return ""
    links = "".join(
        f'<li><a href="{place.href}">{page_text(name)}</a> ({rows})</li>\n' for name, place, rows in contents
    )
    return f"<h2>Tables</h2>\n<ul>\n{links}</ul>\n"


def _section_blocks(section: Section, anchor: str) -> Iterator[str]:
    """A table, in as many blocks as it needs."""
    order = sorted(range(len(section.columns)), key=lambda place: _rank(section.columns[place]))
    heads = [_HEADS.get(section.columns[place], readable(section.columns[place])) for place in order]
    rows = (
        "<tr>" + "".join(_cell(row[place], section.columns[place]) for place in order) + "</tr>\n"
        for row in section.rows
    )
    name = page_text(_NAMES.get(section.kind, readable(section.kind)))
    for number_of, (body, _) in enumerate(rows_in_blocks(rows)):
        start = f'<h2 id="{anchor}">{name}</h2>\n<p class="note">{page_text(section.title)}</p>\n'
        figure = f"<figure>{section.figure}</figure>\n" if section.figure else ""
        yield (start + figure if number_of == 0 else f"<p>{name}, continued</p>\n") + table(heads, body)


def _rank(column: str) -> tuple[int, int]:
    if column in _FIRST:
        return 0, _FIRST.index(column)
    return (2, _LAST.index(column)) if column in _LAST else (1, 0)


def _cell(cell: Cell, column: str) -> str:
    if isinstance(cell, Undefined):
        return f'<td class="none">– ({page_text(cell.reason)})</td>'
    value = cell.value if isinstance(cell, Marked) else cell
    if value is None:
        return '<td class="none">–</td>'
    if isinstance(value, str):
        kind = ' class="id"' if column in _LAST else ""
        return f'<td dir="auto"{kind}>{page_text(value)}</td>'
    return f'<td class="number">{number(value) if isinstance(value, float) else value}</td>'
