"""Templates and assets of the page: everything is escaped; assets are served by their names only."""

from __future__ import annotations

from functools import lru_cache
from importlib import resources
from typing import Any

from rubric_measures.base.errors import counted
from rubric_measures.base.plugins import require

_SCRIPT = "text/javascript; charset=utf-8"
ASSETS = {"review.css": "text/css; charset=utf-8", "review.js": _SCRIPT, "bank.js": _SCRIPT}


@lru_cache(maxsize=8)
def read_asset(name: str) -> str:
    """The text of one of the package's own style sheets or scripts."""
    return resources.files("rubric_measures.review").joinpath("static", name).read_text(encoding="utf-8")


@lru_cache(maxsize=1)
def _environment() -> Any:
    jinja2 = require("jinja2", "review")
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("rubric_measures.review"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["counted"] = counted
    return environment


def render(template: str, **values: Any) -> str:
    """A template with values; whatever is in the values appears as text, never as markup."""
    environment = _environment()
    return str(environment.get_template(template).render(**values))


def render_markdown(text: str) -> str:
    """Markdown (CommonMark with tables) as HTML; markup in the text stays text.

    Raises:
        MissingExtraError: the extra `review` is not installed.
    """
    markdown = require("markdown_it", "review")
    # Pictures would come from elsewhere, which the page loads nothing from.
    parser = markdown.MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")
    return str(parser.render(text))
