"""Writing pictures: PDF, SVG or PNG, under their name only when they are whole."""

from __future__ import annotations

import io
import logging
import os
import warnings
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from rubric_measures.base.errors import InputError
from rubric_measures.base.files import atomic_writer
from rubric_measures.base.plugins import require

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["SUFFIXES", "check_figure_path", "save_figures"]

_LOG = logging.getLogger("rubric_measures")
SUFFIXES = (".pdf", ".svg", ".png")
# Pages that are files of their own.
_MOST_FILES = 100
# Text stays text in SVG, fonts are embedded as such in PDF; equal figures give equal bytes.
_SETTINGS = {"svg.fonttype": "none", "svg.hashsalt": "rubric_measures", "pdf.fonttype": 42}


def check_figure_path(path: str | os.PathLike[str]) -> Path:
    """The path, if a figure can be written there; a command asks before it computes.

    Raises:
        InputError: no file name, another ending than .pdf, .svg or .png, or a folder that does not exist.
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

    PDF holds all pages. SVG and PNG (300 dpi) hold one: further ones are `NAME-2.svg`, `NAME-3.svg` and so on beside
    it, which is said.

    Args:
        figures: one or more; made one after the other, so that many pages need no memory.
        path: the file. Where it is a symbolic link, its target is written.

    Raises:
        InputError: another ending, a file cannot be written, or there are more than 100 pages for as many files; then
            nothing is left of any.
    """
    target = check_figure_path(path)
    with (
        require("matplotlib", "plot").rc_context(_SETTINGS),
        warnings.catch_warnings(record=True) as said,
    ):
        warnings.simplefilter("always")
        # Not into the file: where the disk is full, some formats end in other errors, which do not name it.
        drawn = [_pdf(figures)] if target.suffix.lower() == ".pdf" else _files(figures, target)
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
        _LOG.info("%d pages: %s to %s; .pdf holds all in one file", len(drawn), target, last)


def _files(figures: Iterable[Figure], target: Path) -> list[bytes]:
    drawn: list[bytes] = []
    form = target.suffix.lower()[1:]
    for figure in figures:
        if len(drawn) == _MOST_FILES:
            raise InputError(f"{target}: there are more than {_MOST_FILES} pages, and as many files; give .pdf")
        page = io.BytesIO()
        figure.savefig(page, format=form, dpi=300, metadata={"Date": None} if form == "svg" else {})
        drawn.append(page.getvalue())
    return drawn


def _pdf(figures: Iterable[Figure]) -> bytes:
    drawn = io.BytesIO()
    pages: Any = require("matplotlib.backends.backend_pdf", "plot").PdfPages
    with pages(drawn, metadata={"CreationDate": None}) as book:
        for figure in figures:
            book.infodict().setdefault("Title", " ".join(figure.get_suptitle().split()))
            book.savefig(figure)
    return drawn.getvalue()
