"""The frame of every HTML page, and parts that pages share.

The frame of every page: one offline file with a strict policy, light and dark; and elements that pages share.

Text becomes markup here and nowhere else: whatever data say is escaped.

Parts that the HTML pages share: script, links between pages and into the review page, tables, blocks of rows.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import NamedTuple
from urllib.parse import quote

from rubric_measures.base.errors import escaped
from rubric_measures.types.scales import Scale

STYLE = """
:root { color-scheme: light dark; --back: #fff; --text: #1b1f24; --soft: #f3f5f7; --line: #c5ccd3; --edge: #7a838c;
  --note: #4c5560; --accent: #005a9c; --dot: #0072b2; --query: #8a929b; --bad: #9a3412; --bad-back: #fdeadd;
  --g0: #eef0f2; --t0: #3d454d; --g1: #dcebf6; --t1: #1b2a36; --g2: #b5d5ec; --t2: #12212d; --g3: #7fb6dc;
  --t3: #071420; --g4: #0b5e98; --t4: #fff; }
@media (prefers-color-scheme: dark) { :root { --back: #14171b; --text: #e6e9ec; --soft: #1f242a; --line: #444c55;
  --edge: #87919b; --note: #b3bcc5; --accent: #7cc0ff; --dot: #56b4e9; --query: #7d8791; --bad: #ffb88a;
  --bad-back: #45260f; --g0: #262b31; --t0: #c3cad1; --g1: #1d3447; --t1: #d9e6f0; --g2: #20496a; --t2: #e8f2fa;
  --g3: #2f6f9f; --t3: #fff; --g4: #9ed3f7; --t4: #06131d; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 0 1rem 4rem; max-width: 64rem; background: var(--back); color: var(--text);
  font: 1rem/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 1.2rem 0 .2rem; }
h2 { font-size: 1.2rem; margin: 2rem 0 .4rem; }
h3 { font-size: 1rem; margin: 1.2rem 0 .3rem; }
p, ul { margin: .3rem 0 .6rem; }
ul { padding-left: 1.2rem; }
.note { color: var(--note); font-size: .875rem; }
a { color: var(--accent); }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 1px; }
summary { cursor: pointer; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .9rem; margin: .4rem 0 1rem; }
th, td { border-bottom: 1px solid var(--line); padding: .25rem .6rem; text-align: start; vertical-align: top; }
th { font-weight: 600; }
td.number, th.number { text-align: end; font-variant-numeric: tabular-nums; white-space: nowrap; }
q { quotes: "“" "”"; }
.bad { background: var(--bad-back); color: var(--bad); }
input { font: inherit; padding: .3rem .5rem; width: min(28rem, 100%); color: var(--text); background: var(--back);
  border: 1px solid var(--edge); border-radius: .3rem; }
[hidden] { display: none; }
@media print { details { break-inside: avoid; } }
"""


def text(value: object) -> str:
    """Data as text of a page: markup is escaped, and so are marks that turn the direction of writing."""
    return escape(escaped(str(value)))


def words(count: int, one: str, many: str = "") -> str:
    """A count with its noun.

    >>> words(1, "query", "queries"), words(2, "query", "queries"), words(2, "run")
    ('1 query', '2 queries', '2 runs')
    """
    return f"{count:,} {one if count == 1 else many or f'{one}s'}"


def fold(summary: str, inside: str, *, kind: str = "", name: str = "", is_open: bool = False) -> str:
    """Something that opens; both parts are markup."""
    attributes = "".join(
        f' {attribute}="{text(value)}"' for attribute, value in (("class", kind), ("id", name)) if value
    )
    return f"<details{attributes}{' open' if is_open else ''}><summary>{summary}</summary>{inside}</details>"


def _digest(content: str) -> str:
    return "'sha256-" + base64.b64encode(hashlib.sha256(content.encode("utf-8")).digest()).decode("ascii") + "'"


# What every page with a script does besides: it opens what a link names.
FOLLOW = """
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


def page(title: str, body: Iterable[str], *, style: str = "", script: str = "") -> Iterable[str]:
    """A whole page, in parts.

    The policy names the one style and the one script by their digests, and allows nothing else: no request, no other
    script, no attribute with style. So what data hold cannot run, even if it were not escaped.

    Args:
        title: as text.
        body: markup.
        style: rules behind those that all pages share.
        script: the script, if the page has one; what a link names is opened, too.
    """
    styles = STYLE + style
    policy = f"default-src 'none'; style-src {_digest(styles)}; base-uri 'none'; form-action 'none'"
    if script:
        script += FOLLOW
        policy += f"; script-src {_digest(script)}"
    yield (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{text(title)}</title>\n<style>{styles}</style>\n</head>\n<body>\n"
    )
    yield from body
    yield f"{f'<script>{script}</script>' if script else ''}\n</body>\n</html>\n"


def readable(name: str) -> str:
    """The name of a column as people read it.

    >>> readable("by_not_relevant")
    'By not relevant'
    """
    words = re.sub(r"[_-]+", " ", name).strip()
    return words[:1].upper() + words[1:]


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

REPORT_STYLE = """
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
    return "\n".join(map(text, data.split("\n")))


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
