"""One query as HTML: its items, its passages with all grades and their text once, and the grades of each item."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

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
    Link,
    ReviewAddress,
    item_names,
    page_text,
    passage_link,
    rows_in_blocks,
    shade,
    snippet,
    table,
    words,
)
from rubric_measures.verification.reports import ReportSettings

__all__ = ["QueryPlaces", "query_blocks"]

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
    return '<td class="none">–</td>' if value is None else f'<td class="number">{value:g}</td>'


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
        name = page_text(names[row.item_id])
        linked = f'<a href="{items[row.item_id].href}">{name}</a>' if row.item_id in items else name
        counts = "".join(f'<td class="number">{one}</td>' for one in (row.spurious, row.relevant, row.covering))
        rows.append(
            f'<tr><td dir="auto">{linked}</td>{counts}<td class="id" dir="auto">{page_text(row.item_id)}</td></tr>\n'
        )
    heads = [
        "Item",
        f"Not relevant passages that cover it (from {level})",
        "Relevant ones",
        "All that cover it",
        "Item id",
    ]
    for body, count in rows_in_blocks(rows):
        add(f"<details><summary><h3>Items ({count})</h3></summary>\n{table(heads, body)}</details>\n", f"{anchor}items")


def _uncovered(
    query: CheckedQuery,
    anchor: str,
    settings: ReportSettings,
    passages: Mapping[str, Link],
    add: Callable[[str, str], Link],
) -> None:
    found = uncovered_passages(query, settings.min_judgment, settings.min_rating)
    rows = (
        f"<tr>{passage_link(passages[row.doc_id], row.text)}{_number(row.judgment)}{_number(row.best_grade)}</tr>\n"
        for row in found
    )
    for body, count in rows_in_blocks(rows):
        title = f"Relevant passages that no item covers ({count})"
        markup = table(["Passage", "Judgment", "Best grade"], body)
        add(f"<details><summary><h3>{title}</h3></summary>\n{markup}</details>\n", f"{anchor}uncovered")
