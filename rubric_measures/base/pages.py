"""The frame of every page: one offline file with a strict policy, light and dark; and elements that pages share.

Text becomes markup here and nowhere else: whatever data say is escaped.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable
from html import escape

from rubric_measures.base.errors import escaped

__all__ = ["fold", "page", "readable", "text", "words"]

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


def page(title: str, body: Iterable[str], *, style: str = "", script: str = "") -> Iterable[str]:
    """A whole page, in parts.

    The policy names the one style and the one script by their digests, and allows nothing else: no request, no other
    script, no attribute with style. So what data hold cannot run, even if it were not escaped.

    Args:
        title: as text.
        body: markup.
        style: rules behind those that all pages share.
        script: the script, if the page has one.
    """
    styles = STYLE + style
    policy = f"default-src 'none'; style-src {_digest(styles)}; base-uri 'none'; form-action 'none'"
    if script:
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
