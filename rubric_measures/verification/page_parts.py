"""Parts that the HTML pages share: script, links between pages and into the review page, tables, blocks of rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple
from urllib.parse import quote

from rubric_measures.base.pages import text as one_line
from rubric_measures.types.scales import Scale

__all__ = [
    "PAGE",
    "SCRIPT",
    "SEARCH",
    "STYLE",
    "Link",
    "ReviewAddress",
    "item_names",
    "page_text",
    "passage_link",
    "rows_in_blocks",
    "shade",
    "snippet",
    "table",
]

# Stands before the number of a page in links, until its name is known; no text of data has it.
PAGE = "\x00"
# A table goes on in another block beyond so many characters.
_BLOCK = 250_000
# What a cell shows of a passage that stands in full elsewhere.
_SNIPPET = 110

SEARCH = """<form role="search">
<label>Search <input type="search" id="search" autocomplete="off"></label>
<output id="shown" aria-live="polite"></output>
</form>
"""

STYLE = """
body { max-width: 90rem; }
form { position: sticky; top: 0; display: flex; flex-wrap: wrap; gap: .5rem 1rem; align-items: end; z-index: 1;
  padding: .6rem 0; background: var(--back); border-bottom: 1px solid var(--line); }
label { display: grid; font-size: .85rem; color: var(--note); }
output { color: var(--note); font-size: .875rem; }
summary h3 { display: inline; }
/* At 400 % the form would cover most of what it filters. */
@media (max-width: 30rem), (max-height: 30rem) { form { position: static; } }
th, td { max-width: 34rem; min-width: 2.5rem; }
th { background: var(--soft); max-width: 14rem; overflow-wrap: break-word; }
td.text { white-space: pre-wrap; min-width: 14rem; }
th button { font: inherit; color: inherit; background: none; border: 0; padding: 0; text-align: start;
  cursor: pointer; }
th[aria-sort="ascending"] button::after { content: " ▲"; }
th[aria-sort="descending"] button::after { content: " ▼"; }
td.none { color: var(--note); }
td.id { color: var(--note); max-width: 10rem; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
td.grade { text-align: center; }
td.covers { font-weight: 700; }
td.g0 { background: var(--g0); color: var(--t0); } td.g1 { background: var(--g1); color: var(--t1); }
td.g2 { background: var(--g2); color: var(--t2); } td.g3 { background: var(--g3); color: var(--t3); }
td.g4 { background: var(--g4); color: var(--t4); }
figure { margin: .5rem 0; max-width: 40rem; }
svg.plot { width: 100%; height: auto; display: block; }
"""

SCRIPT = r"""
"use strict";
const rows = [...document.querySelectorAll("tbody tr")].map((row) => ({row, text: row.textContent.toLowerCase()}));
const search = document.getElementById("search");
function filter() {
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  let shown = 0;
  for (const {row, text} of rows) {
    row.hidden = !words.every((word) => text.includes(word));
    shown += !row.hidden;
  }
  for (const box of document.querySelectorAll("details")) {
    if (words.length && box.querySelector("tbody tr:not([hidden])")) box.open = true;
  }
  document.getElementById("shown").textContent = words.length ? `${shown} of ${rows.length} rows` : "";
}
let waiting = 0;
search.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(filter, 120); });
document.querySelector("form").addEventListener("submit", (event) => event.preventDefault());
const numberOf = (text) => text.trim() === "" ? NaN : Number(text.replace("−", "-").replace(/\s?%$/, ""));
for (const head of document.querySelectorAll("thead th")) {
  const button = document.createElement("button");
  button.append(...head.childNodes);
  head.append(button);
  button.addEventListener("click", () => {
    const way = head.ariaSort === "ascending" ? -1 : 1;
    for (const other of head.parentNode.children) other.removeAttribute("aria-sort");
    head.ariaSort = way > 0 ? "ascending" : "descending";
    const body = head.closest("table").tBodies[0], place = head.cellIndex;
    const keyed = [...body.rows].map((row) => {
      const text = row.cells[place].textContent;
      return {row, text, number: numberOf(text)};
    });
    keyed.sort((a, b) => Number.isNaN(a.number) || Number.isNaN(b.number)
      ? Number.isNaN(a.number) - Number.isNaN(b.number) || way * a.text.localeCompare(b.text)
      : way * (a.number - b.number));
    body.append(...keyed.map(({row}) => row));
  });
}
function openTarget() {
  const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  for (let box = target; box; box = box.parentElement) if (box.tagName === "DETAILS") box.open = true;
  if (target) {
    if (target.tagName === "TR") for (const box of target.querySelectorAll("details")) box.open = true;
    target.scrollIntoView();
  }
}
addEventListener("hashchange", openTarget);
openTarget();
"""


class Link(NamedTuple):
    """A place on a page."""

    page: int
    anchor: str

    @property
    def href(self) -> str:
        """As it stands in markup."""
        return f"{PAGE}{self.page}#{self.anchor}"


class ReviewAddress(NamedTuple):
    """Where single grades can be reviewed.

    Attributes:
        address: of the review page, without a slash at its end.
        command: what starts it.
    """

    address: str
    command: str

    @property
    def note(self) -> str:
        """What a page with such links says of them."""
        return f"Links called review work while this runs: {self.command}"

    def link(self, query_id: str, doc_id: str, item_id: str) -> str:
        """A link to one cell."""
        return review_link(self.address, query_id, doc_id, item_id)


def review_link(address: str, query_id: str, doc_id: str, item_id: str) -> str:
    """A link to one cell of the review page at an address, which is told that its grade was seen here."""
    cell = "/".join(quote(part, safe="") for part in (query_id, doc_id, item_id))
    return f'<a href="{page_text(address)}/check/{cell}?seen=1">review</a>'


def page_text(data: str) -> str:
    """Data as text of a page; its lines stay lines."""
    return "\n".join(map(one_line, data.split("\n")))


def shade(grade: float, scale: Scale | None) -> str:
    """The class of a cell by how high a grade is on its scale: five shades, as in the report of a board."""
    if scale is None or scale.highest <= scale.lowest:
        return "grade"
    share = (grade - scale.lowest) / (scale.highest - scale.lowest)
    return f"grade g{max(0, min(4, round(4 * share)))}"


def item_names(items: Mapping[str, str]) -> dict[str, str]:
    """item_id -> its text; a number where it has none, because ids say nothing to readers."""
    return {item_id: text or f"Item {place}" for place, (item_id, text) in enumerate(items.items(), 1)}


def snippet(text: str) -> str:
    """The beginning of a text, in one line."""
    line = " ".join(text[: 4 * _SNIPPET].split())
    cut = len(line) > _SNIPPET or len(text) > 4 * _SNIPPET
    return page_text(line[:_SNIPPET] + ("…" if cut else "")) or "(empty)"


def passage_link(link: Link, text: str) -> str:
    """A cell with the beginning of a passage, which leads to all of it."""
    return f'<td dir="auto"><a href="{link.href}">{snippet(text)}</a></td>'


def table(heads: Sequence[str], body: str) -> str:
    """A table that scrolls sideways; its heads are plain text."""
    head = "".join(f'<th scope="col" dir="auto">{page_text(name)}</th>' for name in heads)
    start = f'<div class="scroll" tabindex="0"><table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n'
    return f"{start}{body}</tbody></table></div>\n"


def rows_in_blocks(rows: Iterable[str]) -> Iterator[tuple[str, int]]:
    """Rows put together to blocks that a page has room for, each with the number of its rows; one block at least."""
    held: list[str] = []
    size = blocks = 0
    for row in rows:
        if held and size + len(row) > _BLOCK:
            yield "".join(held), len(held)
            blocks += 1
            held, size = [], 0
        held.append(row)
        size += len(row)
    if held or not blocks:
        yield "".join(held), len(held)
