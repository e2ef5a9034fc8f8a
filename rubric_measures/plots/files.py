"""Writing pictures: PDF, SVG, PNG or a small HTML page, under their name only when they are whole."""

from __future__ import annotations

import html
import io
import logging
import os
import re
import warnings
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from rubric_measures.base.errors import InputError
from rubric_measures.base.extras import require
from rubric_measures.base.files import atomic_writer

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["SUFFIXES", "check_figure_path", "save_figures"]

_LOG = logging.getLogger("rubric_measures")
SUFFIXES = (".pdf", ".svg", ".png", ".html")
# Pages that are files of their own.
_MOST_FILES = 100
# Text stays text in SVG, fonts are embedded as such in PDF; equal figures give equal bytes.
_SETTINGS = {"svg.fonttype": "none", "svg.hashsalt": "rubric_measures", "pdf.fonttype": 42}
_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ margin: 0 auto; padding: 1rem; max-width: 72rem; font: 1rem/1.5 system-ui, sans-serif; }}
h1, h2 {{ font-size: 1.1rem; font-weight: 600; }}
/* The pictures are drawn for white paper. */
figure {{ margin: 0 0 2rem; padding: .5rem; background: #fff; color: #000; overflow-x: auto; }}
figure svg {{ max-width: 100%; height: auto; }}
</style>
</head>
<body>
<main>
{body}</main>
</body>
</html>
"""


def check_figure_path(path: str | os.PathLike[str]) -> Path:
    """The path, if a figure can be written there; a command asks before it computes.

    Raises:
        InputError: no file name, another ending than .pdf, .svg, .png or .html, or a folder that does not exist.
    """
    if not isinstance(path, str | os.PathLike):
        raise InputError(f"path: {path!r:.60} is no file name; a figure is written as {', '.join(SUFFIXES)}")
    target = Path(path)
    if target.suffix.lower() not in SUFFIXES:
        raise InputError(f"{target}: a figure is written as {', '.join(SUFFIXES)}")
    if not target.parent.is_dir():
        raise InputError(f"{target}: the folder does not exist")
    return target


def save_figures(figures: Iterable[Figure], path: str | os.PathLike[str]) -> None:
    """Writes the pages of a picture, by the name's ending; equal figures give equal bytes.

    PDF and HTML hold all pages. SVG and PNG (300 dpi) hold one: further ones are `NAME-2.svg`, `NAME-3.svg` and so on
    beside it, which is said.

    Args:
        figures: one or more; made one after the other, so that many pages need no memory.
        path: the file. Where it is a symbolic link, its target is written.

    Raises:
        InputError: another ending, a file cannot be written, or there are more than 100 pages for as many files; then
            nothing is left of any.
    """
    target = check_figure_path(path)
    suffix = target.suffix.lower()
    with (
        require("matplotlib", "plot").rc_context(_SETTINGS),
        warnings.catch_warnings(record=True) as said,
    ):
        warnings.simplefilter("always")
        # Not into the file: where the disk is full, some formats end in other errors, which do not name it.
        drawn = [_FORMS[suffix](figures)] if suffix in _FORMS else _files(figures, target)
    if any("missing from font" in str(one.message) for one in said):
        _LOG.warning("%s: the font lacks some characters of the names; they are drawn as boxes", target)
    try:
        # All are written before the first one has its name.
        with ExitStack() as written:
            for number, content in enumerate(drawn, 1):
                path = target if number == 1 else target.with_stem(f"{target.stem}-{number}")
                cast(io.TextIOWrapper, written.enter_context(atomic_writer(path))).buffer.write(content)
    except OSError as error:
        raise InputError(f"{target}: cannot be written ({error.strerror or error})") from None
    if len(drawn) > 1:
        last = target.with_stem(f"{target.stem}-{len(drawn)}").name
        _LOG.info("%d pages: %s to %s; .pdf and .html hold all in one file", len(drawn), target, last)


def _files(figures: Iterable[Figure], target: Path) -> list[bytes]:
    drawn: list[bytes] = []
    for figure in figures:
        if len(drawn) == _MOST_FILES:
            raise InputError(
                f"{target}: there are more than {_MOST_FILES} pages, and as many files; give .pdf or .html"
            )
        drawn.append(_drawn(figure, target.suffix.lower()[1:]))
    return drawn


def _drawn(figure: Figure, form: str) -> bytes:
    drawn = io.BytesIO()
    figure.savefig(drawn, format=form, dpi=300, metadata={"Date": None} if form == "svg" else {})
    return drawn.getvalue()


def _pdf(figures: Iterable[Figure]) -> bytes:
    drawn = io.BytesIO()
    pages: Any = require("matplotlib.backends.backend_pdf", "plot").PdfPages
    with pages(drawn, metadata={"CreationDate": None}) as book:
        for figure in figures:
            book.infodict().setdefault("Title", _title(figure))
            book.savefig(figure)
    return drawn.getvalue()


def _page(figures: Iterable[Figure]) -> bytes:
    """An SVG a figure, with its title as a heading of the page in the place of that in the picture."""
    parts = []
    name = ""
    for number, figure in enumerate(figures):
        title = _title(figure)
        name = name or title
        shown = figure.get_suptitle()
        figure.suptitle("")
        drawing = _drawn(figure, "svg").decode("utf-8")
        figure.suptitle(shown)
        drawing = drawing[drawing.index("<svg") :]
        # Ids are of the whole page: each picture's get its number.
        drawing = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>f{number}-", drawing)
        drawing = drawing.replace("<svg", f'<svg role="img" aria-label="{html.escape(title)}"', 1)
        heading = "h2" if number else "h1"
        parts.append(f'<{heading}>{html.escape(title)}</{heading}>\n<figure tabindex="0">\n{drawing}</figure>\n')
    return _PAGE.format(title=html.escape(name), body="".join(parts)).encode("utf-8")


_FORMS: Mapping[str, Callable[[Iterable[Figure]], bytes]] = {".pdf": _pdf, ".html": _page}


def _title(figure: Figure) -> str:
    return " ".join(figure.get_suptitle().split())
