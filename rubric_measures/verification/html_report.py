"""The report as one HTML file that needs no network: tables with search and filters; data are text, never markup."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape

from rubric_measures.base.errors import escaped
from rubric_measures.base.tables import Cell, Marked, Undefined, number
from rubric_measures.verification.sections import Section

__all__ = ["render_html"]

_NAMES = {
    "grading": "Grades by item",
    "grid": "Grid",
    "uncovered": "Uncovered passages",
    "bad-items": "Spurious items",
    "items": "Item statistics",
    "duplicate-items": "Near-duplicate items",
    "bank-stability": "Size of the bank",
    "bank": "Does the bank hold",
    "bank-ends": "Items at floor and ceiling",
    "bank-against": "Items against the rest",
    "bank-pairs": "Items that the same passages cover",
    "bank-groups": "Items and groups of runs",
    "bank-saturation": "Saturation",
    "bank-suggestions": "Suggestions",
    "reusability-run": "Reusability: runs left out",
    "reusability-group": "Reusability: groups left out",
    "graders": "Graders",
    "grader-agreement": "Agreement of graders",
    "disagreements": "Disagreements",
    "canaries": "Canary suite",
    "fooled": "Canaries that fooled a grader",
}

# The policy forbids every request; the two inline blocks are the only style and script.
_HEAD = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; --back: #fff; --text: #1b1b1b; --soft: #f2f4f6; --line: #b8bec5;
  --edge: #7f8790; --note: #4a525a; --accent: #005a9c; }}
@media (prefers-color-scheme: dark) {{ :root {{ --back: #16191d; --text: #e8eaed; --soft: #22272e; --line: #555e68;
  --edge: #848e99; --note: #b4bcc5; --accent: #7cc0ff; }} }}
body {{ margin: 0 auto; padding: 0 1rem 3rem; max-width: 90rem; background: var(--back); color: var(--text);
  font: 1rem/1.45 system-ui, sans-serif; }}
form {{ position: sticky; top: 0; display: flex; flex-wrap: wrap; gap: .5rem 1rem; align-items: end; z-index: 1;
  padding: .6rem 0; background: var(--back); border-bottom: 1px solid var(--line); }}
label {{ display: grid; font-size: .85rem; color: var(--note); }}
input, select {{ font: inherit; padding: .25rem .4rem; color: var(--text); background: var(--back);
  border: 1px solid var(--edge); border-radius: .25rem; max-width: min(22rem, 100%); }}
:focus-visible {{ outline: 2px solid var(--accent); outline-offset: 1px; }}
output {{ color: var(--note); font-size: .85rem; }}
summary {{ cursor: pointer; padding: .35rem 0; overflow-wrap: anywhere; }}
summary h2 {{ display: inline; font-size: 1rem; font-weight: 600; }}
summary span {{ color: var(--note); font-size: .85rem; }}
/* At 400 % the form would cover most of what it filters. */
@media (max-width: 30rem), (max-height: 30rem) {{ form {{ position: static; }} }}
.scroll {{ overflow-x: auto; }}
table {{ border-collapse: collapse; font-size: .875rem; margin: .2rem 0 1rem; }}
th, td {{ border: 1px solid var(--line); padding: .2rem .45rem; text-align: start; vertical-align: top;
  max-width: 34rem; overflow-wrap: break-word; white-space: pre-wrap; }}
th {{ background: var(--soft); max-width: 14rem; font-weight: 600; }}
figure {{ margin: .5rem 0; max-width: 40rem; }}
svg.plot {{ width: 100%; height: auto; display: block; }}
td.number {{ text-align: end; font-variant-numeric: tabular-nums; }}
td.none {{ color: var(--note); }}
[hidden] {{ display: none; }}
</style>
</head>
<body>
<header><h1>{title}</h1></header>
<form role="search">
<label>Search <input type="search" id="search" autocomplete="off"></label>
<label>Report <select id="kind"><option value="">all</option></select></label>
<label>Least grade <input type="number" id="low" min="0" max="5" step="1"></label>
<label>Highest grade <input type="number" id="high" min="0" max="5" step="1"></label>
<output id="shown" aria-live="polite"></output>
</form>
<main>
"""

_TAIL = """</main>
<script>
"use strict";
const byId = (id) => document.getElementById(id);
const sections = [...document.querySelectorAll("details")].map((box) => ({
  box, kind: box.dataset.kind, title: box.querySelector("h2").textContent.toLowerCase(),
  rows: [...box.querySelectorAll("tbody tr")].map((row) => ({row, text: row.textContent.toLowerCase(),
    grade: row.dataset.grade})),
}));
const names = new Map();
for (const box of document.querySelectorAll("details")) names.set(box.dataset.kind, box.dataset.name);
for (const [kind, name] of names) byId("kind").append(new Option(name, kind));
function filter() {
  const words = byId("search").value.toLowerCase().split(/\\s+/).filter(Boolean);
  const kind = byId("kind").value, low = byId("low").value, high = byId("high").value;
  let shown = 0, all = 0;
  for (const section of sections) {
    let here = 0;
    for (const {row, text, grade} of section.rows) {
      const graded = (low === "" && high === "") || (grade !== undefined
        && (low === "" || Number(grade) >= Number(low)) && (high === "" || Number(grade) <= Number(high)));
      const fits = graded && words.every((word) => text.includes(word) || section.title.includes(word));
      row.hidden = !fits;
      here += fits;
    }
    const wanted = kind === "" || kind === section.kind;
    const filtered = words.length > 0 || low !== "" || high !== "";
    section.box.hidden = !wanted || (filtered && here === 0);
    if (words.length > 0 && wanted && here > 0) section.box.open = true;
    all += section.rows.length;
    if (wanted) shown += here;
  }
  byId("shown").textContent = `${shown} of ${all} rows`;
}
let waiting = 0;
for (const id of ["search", "kind", "low", "high"]) byId(id).addEventListener("input", () => {
  clearTimeout(waiting);
  waiting = setTimeout(filter, 120);
});
document.querySelector("form").addEventListener("submit", (event) => event.preventDefault());
filter();
</script>
</body>
</html>
"""


def render_html(sections: Iterable[Section], title: str = "Verification report") -> Iterator[str]:
    """The sections as the pieces of one self-contained HTML page.

    Search finds rows by all words, anywhere in the row or the title of its table; filters choose the kind of report and
    the range of grades. Without JavaScript everything is there, unfiltered. Every cell is escaped and has its own
    direction (`dir="auto"`); a policy in the page forbids all requests.

    Args:
        sections: the tables; consumed once.
        title: of the page.
    """
    yield _HEAD.format(title=escape(title))
    for section in sections:
        yield from _section(section)
    yield _TAIL


def _section(section: Section) -> Iterator[str]:
    kind, name = escape(section.kind), escape(_NAMES.get(section.kind, section.kind))
    count = len(section.rows)
    # What there is a lot of stays closed.
    opened = "" if section.kind in ("grading", "grid") else " open"
    yield f'<details data-kind="{kind}" data-name="{name}"{opened}>\n'
    heading = f'<h2 dir="auto">{_text(section.title)}</h2>'
    yield f"<summary><span>{name} ·</span> {heading} <span>({count})</span></summary>\n"
    if section.figure:
        yield f"<figure>{section.figure}</figure>\n"
    yield '<div class="scroll" tabindex="0"><table>\n<thead><tr>'
    yield "".join(f'<th scope="col" dir="auto">{_text(column)}</th>' for column in section.columns)
    yield "</tr></thead>\n<tbody>\n"
    place = next((at for at, column in enumerate(section.columns) if column in ("grade", "best", "best_grade")), None)
    for row in section.rows:
        grade = None if place is None else row[place]
        yield "<tr>" if grade is None else f'<tr data-grade="{_text(str(grade))}">'
        yield "".join(_cell(cell) for cell in row)
        yield "</tr>\n"
    yield "</tbody></table></div>\n</details>\n"


def _text(text: str) -> str:
    # Browsers drop or replace control characters; lines of a text stay lines.
    return escape("\n".join(map(escaped, text.split("\n"))))


def _cell(cell: Cell) -> str:
    if isinstance(cell, Undefined):
        return f'<td class="none">– ({_text(cell.reason)})</td>'
    value = cell.value if isinstance(cell, Marked) else cell
    if value is None:
        return '<td class="none">–</td>'
    if isinstance(value, str):
        return f'<td dir="auto">{_text(value)}</td>'
    return f'<td class="number">{number(value) if isinstance(value, float) else value}</td>'
