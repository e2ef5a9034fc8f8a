"""HTML pages: one file without network, under a strict policy, light and dark; and cells that tables of pages share.

Pages are templates (`templates/` of a room). Whatever data say is escaped there; nothing else makes markup of it. One
style sheet and one script are those of all pages.
"""

from __future__ import annotations

import base64
import hashlib
import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from importlib import resources
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlencode

from rubric_measures.base.errors import counted, escaped
from rubric_measures.base.files import atomic_writer
from rubric_measures.types.scales import Scale

if TYPE_CHECKING:
    from rubric_measures.analysis.facts import QueryEvidence

_HOME = "rubric_measures.pages"
# What a cell shows of a passage that stands in full elsewhere.
_SNIPPET = 110


def read_asset(name: str) -> str:
    """A style sheet or script that pages share."""
    return resources.files(_HOME).joinpath("templates", name).read_text(encoding="utf-8")


def _data(value: Any) -> Any:
    """Marks that turn the direction of writing, and control characters, are shown as escapes; lines stay lines."""
    return "\n".join(map(escaped, value.split("\n"))) if type(value) is str and not value.isprintable() else value


@lru_cache(maxsize=8)
def environment(package: str = _HOME) -> Any:
    """The templates of a package, and behind them those that pages share: `page.html`, `macros.html`. `cell` makes a
    `PageCell`."""
    import jinja2

    found = jinja2.Environment(
        loader=jinja2.ChoiceLoader([jinja2.PackageLoader(package), jinja2.PackageLoader(_HOME)]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_data,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters["counted"] = counted
    found.filters["plain"] = plain_number
    found.globals["cell"] = PageCell
    return found


def _digest(content: str) -> str:
    return "'sha256-" + base64.b64encode(hashlib.sha256(content.encode("utf-8")).digest()).decode("ascii") + "'"


def page(template: str, title: str, package: str = _HOME, **values: Any) -> Iterator[str]:
    """A whole page, in parts.

    The policy names the one style and the one script by their digests, and allows nothing else: no request, no other
    script, no attribute with style. So what data hold cannot run, even if it were not escaped.

    Args:
        template: which extends `page.html`.
        title: as text.
        package: whose template it is.
        values: what the template shows.
    """
    from markupsafe import Markup

    style, script = read_asset("style.css"), read_asset("page.js")
    policy = f"default-src 'none'; style-src {_digest(style)}; base-uri 'none'; form-action 'none'"
    ours = {"policy": f"{policy}; script-src {_digest(script)}", "style": style, "script": script}
    framed = {"title": title, **{name: Markup(text) for name, text in ours.items()}}
    found: Iterator[str] = environment(package).get_template(template).generate(**framed, **values)
    return found


def write_page(path: str | os.PathLike[str], parts: Iterable[str]) -> None:
    """Writes a page under its name only when it is whole."""
    with atomic_writer(path) as stream:
        stream.writelines(parts)


def readable(name: str) -> str:
    """The name of a column as people read it.

    >>> readable("by_not_relevant")
    'By not relevant'
    """
    words = re.sub(r"[_-]+", " ", name).strip()
    return words[:1].upper() + words[1:]


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
        return f"Links called review work while this runs, once you opened the link that it prints: {self.command}"

    def link(self, query_id: str, doc_id: str, item_id: str) -> str:
        """The address of one cell, which is told that its grade was seen here."""
        return f"{self.address}/check?" + urlencode({"q": query_id, "d": doc_id, "i": item_id, "seen": "1"})


class PageCell(NamedTuple):
    """A cell of a page.

    Attributes:
        text: what stands there.
        kind: its classes in the style sheet.
        href: where it leads.
        whole: what it opens to, where the text is the beginning of it.
        name: a hint, such as the id of what the text is of.
    """

    text: str
    kind: str = ""
    href: str = ""
    whole: str = ""
    name: str = ""


def shade(grade: float, scale: Scale) -> str:
    """The class of a cell by how high a grade is on its scale: five shades."""
    if scale.highest <= scale.lowest:
        return "grade"
    share = (grade - scale.lowest) / (scale.highest - scale.lowest)
    return f"grade g{max(0, min(4, round(4 * share)))}"


def colour(query: QueryEvidence, grade: float) -> str:
    """The colour of a grade: the darkest covers, the next is partial, others are below."""
    if grade >= query.level:
        return "g4 covers"
    if query.partial is not None and grade >= query.partial:
        return "g3"
    lowest = query.scale.lowest if query.scale is not None else 0
    below = (query.partial if query.partial is not None else query.level) - lowest
    return f"g{min(2, int(3 * (grade - lowest) / below)) if below > 0 and grade > lowest else 0}"


def in_words(query: QueryEvidence, grade: float) -> str:
    """What a grade means, in words."""
    is_partial = query.partial is not None and grade >= query.partial
    meaning = "covered" if grade >= query.level else "partly covered" if is_partial else "not covered"
    scale = query.scale
    if scale is None:
        return f"grade {grade:.3g}, {meaning}"
    name = scale.name_of(int(grade)) if grade == int(grade) and grade in scale and scale.names else ""
    return f"{name or f'grade {grade:.3g} of {scale.highest}'}, {meaning}"


def item_names(items: Mapping[str, str]) -> dict[str, str]:
    """item_id -> its text; a number where it has none, because ids say nothing to readers."""
    return {item_id: text or f"Item {place}" for place, (item_id, text) in enumerate(items.items(), 1)}


def snippet(text: str) -> str:
    """The beginning of a text, in one line; with an ellipsis where it goes on."""
    line = " ".join(text[: 4 * _SNIPPET].split())
    cut = len(line) > _SNIPPET or len(text) > 4 * _SNIPPET
    return line[:_SNIPPET] + ("…" if cut else "") or "(empty)"


def ticks(low: float, high: float) -> list[float]:
    """Round numbers from one at or below `low` to one at or above `high`, about six of them, two at least.

    Args:
        low: the least value.
        high: the largest value, `low` or more.

    >>> ticks(0.31, 1.0)
    [0.2, 0.4, 0.6, 0.8, 1.0]
    """
    # Values that differ by less than a label shows are one value.
    span = high - low if high - low > 1e-6 else 1.0
    power = 10.0 ** math.floor(math.log10(span / 5))
    step = next(power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= span / 5 * 0.999)
    first = math.floor(round(low / step, 9))
    last = max(math.ceil(round(high / step, 9)), first + 1)
    return [round(number * step, 9) for number in range(first, last + 1)]


def plain_number(value: float) -> str:
    """A number without what says nothing, with a true minus."""
    return f"{value:.6g}".replace("-", "−")
