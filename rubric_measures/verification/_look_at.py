"""What a reader should look at first: worst items, uncovered passages, doubtful grades, canaries that failed."""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from rubric_measures.measures.checked import CheckedGrade, CheckedQuery, bad_items, level_of, uncovered_passages
from rubric_measures.pages.frame import (
    ReviewAddress,
    item_names,
    page_text,
    passage_link,
    rows_in_blocks,
    snippet,
    table,
)
from rubric_measures.verification._query_pages import QueryPlaces
from rubric_measures.verification.reports import ReportSettings
from rubric_measures.verification.sections import Section

__all__ = ["LookAt"]

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
        found = (key, -self.count, markup)
        if len(self._heap) < _LISTED:
            heapq.heappush(self._heap, found)
        else:
            heapq.heappushpop(self._heap, found)

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
        if section.kind == "items":
            for row in section.rows:
                said = dict(zip(section.columns, row, strict=True))
                pair = tuple(r if isinstance(r := said[name], float) else None for name in _CORRELATIONS)
                if any(r is not None and r < 0 for r in pair):
                    self._bad[str(said["query_id"]), str(said["item_id"])] = pair
        if section.kind != "fooled":
            return
        self._has_canaries = True
        for row in section.rows:
            said = dict(zip(section.columns, row, strict=True))
            cells = (said["case"], said["grade"], said["query_id"], said["grader"])
            plain = "".join(f'<td dir="auto">{page_text(str(cell))}</td>' for cell in cells)
            grade = said["grade"]
            key = float(grade) if isinstance(grade, int | float) else 0.0
            text = snippet(str(said["text"]))
            self._canaries.add((key,), f'<tr><td dir="auto">{text}</td>{plain}</tr>\n')

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
        name = page_text(query.text or query.query_id)
        counts = f'<td class="number">{len(query.passages)}</td><td class="number">{len(query.items)}</td>'
        missed = f'<td class="number">{uncovered}</td>' if "uncovered_passages" in reports else ""
        self._queries.append(
            f'<tr><td dir="auto"><a href="{places.start.href}">{name}</a></td>{counts}{missed}'
            f'<td class="id" dir="auto">{page_text(query.query_id)}</td></tr>\n'
        )

    def _add_items(self, query: CheckedQuery, places: QueryPlaces) -> None:
        level, names = level_of(query, self._settings.min_rating), item_names(query.items)
        for row in bad_items(query, self._settings.min_judgment, self._settings.min_rating):
            place = places.items.get(row.item_id, places.start)
            markup = f'<td dir="auto"><a href="{place.href}">{page_text(names[row.item_id])}</a></td>'
            markup += _of_query(query, places)
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
                counts = f'<td class="number">{row.spurious}</td><td class="number">{row.relevant}</td>'
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
            place = places.items.get(item_id, places.start)
            markup = f'<td dir="auto"><a href="{place.href}">{page_text(name)}</a></td>{_of_query(query, places)}'
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
        item = page_text(item_names(query.items)[grade.item_id])
        place = places.items.get(grade.item_id, places.start)
        markup = f'<td dir="auto"><a href="{place.href}">{item}</a></td>'
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


def _of_query(query: CheckedQuery, places: QueryPlaces) -> str:
    return f'<td dir="auto"><a href="{places.start.href}">{page_text(query.text or query.query_id)}</a></td>'


def _row(markup: str, link: str | None) -> str:
    return f"<tr>{markup}</tr>\n" if link is None else f"<tr>{markup}<td>{link}</td></tr>\n"
