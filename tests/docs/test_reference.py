"""The reference pages name every measure and every file format; the site has every page; pages are easy to read."""

from __future__ import annotations

import inspect
import re
import runpy
from pathlib import Path

import ir_measures
import pytest

import rubric_measures
from rubric_measures.formats import FORMATS
from rubric_measures.measures.measure import RubricMeasure

DOCS = Path(__file__).resolve().parents[2] / "docs"
# Code blocks, tables, headings, HTML and the targets of links are not prose.
NO_PROSE = re.compile(r"^```.*?^```$|^(?: {4}(?![A-Z*`]| *- )|[|#<]).*?$|(?<=\])\([^)]*\)", re.MULTILINE | re.DOTALL)


def test_every_measure_has_its_section() -> None:
    hook = runpy.run_path(str(DOCS / "links.py"))
    made = hook["MEASURES"].sub(hook["_sections"], (DOCS / "measures.md").read_text(encoding="utf-8"))
    sections = dict(re.findall(r"^### (\w+)\n(.*?)(?=^##)", made, re.MULTILINE | re.DOTALL))
    # Other tests register measures of their own.
    package = str(Path(rubric_measures.__file__).parent)
    names = {
        name
        for name, one in ir_measures.measures.registry.items()
        if isinstance(one, RubricMeasure) and getattr(one, "origin", package).startswith(package)
    }
    assert set(sections) == names
    for name, text in sections.items():
        # A sentence, a formula as a block, a range, a source.
        assert re.match(r"\n[A-Z].*\.\n\n    \w.*(=|:)", text), name
        assert "**Range:** " in text and "**Source:** " in text, name


def test_all_that_is_exported_is_described() -> None:
    made = runpy.run_path(str(DOCS / "links.py"))["_exported"]()
    names = {name for name in rubric_measures.__all__ if not isinstance(getattr(rubric_measures, name), RubricMeasure)}
    assert set(re.findall(r"^::: rubric_measures\.(\w+)$", made, re.MULTILINE)) == names - {"__version__"}
    assert [name for name in names - {"__version__"} if not inspect.getdoc(getattr(rubric_measures, name))] == []


def test_every_format_is_described() -> None:
    described = set(re.findall(r"`([\w:-]+)`", (DOCS / "formats.md").read_text(encoding="utf-8")))
    assert set(FORMATS.built_in) - described == set()


def test_the_site_has_every_page() -> None:
    named = set(re.findall(r": ([\w-]+\.md)$", (DOCS.parent / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE))
    pages = {path.name for path in DOCS.glob("*.md")}
    assert named == pages
    linked = set(re.findall(r"\]\(([\w-]+\.md)\)", (DOCS / "index.md").read_text(encoding="utf-8")))
    assert linked == pages - {"index.md"}


@pytest.mark.parametrize("page", [DOCS.parent / "README.md", *sorted(DOCS.glob("*.md"))], ids=lambda page: page.name)
def test_paragraphs_and_sentences_are_short(page: Path) -> None:
    """A paragraph or an item of a list has one idea."""
    text = NO_PROSE.sub("", page.read_text(encoding="utf-8"))
    blocks = re.split(r"\n\s*\n|\n(?= *(?:[-*]|\d+\.) )", text)
    sentences = [part for block in blocks for part in re.split(r"(?<=[.!?])[)\"*_]*\s+", block)]
    assert [block for block in blocks if len(block.split()) > 110] == []
    assert [sentence for sentence in sentences if len(sentence.split()) > 40] == []
