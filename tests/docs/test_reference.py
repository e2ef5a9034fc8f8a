"""The reference pages name every measure and every file format; the site has every page."""

from __future__ import annotations

import re
from pathlib import Path

import rubric_measures
from rubric_measures.formats import FORMATS
from rubric_measures.measures.measure import RubricMeasure

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_every_measure_has_its_section() -> None:
    page = (DOCS / "measures.md").read_text(encoding="utf-8")
    sections = dict(re.findall(r"^### (\w+)\n(.*?)(?=^##)", page, re.MULTILINE | re.DOTALL))
    names = {name for name in rubric_measures.__all__ if isinstance(getattr(rubric_measures, name), RubricMeasure)}
    assert set(sections) == names
    for name, text in sections.items():
        for part in ("**Range**", "**Edge cases**"):
            assert part in text, (name, part)


def test_every_format_is_described() -> None:
    described = set(re.findall(r"`([\w:-]+)`", (DOCS / "formats.md").read_text(encoding="utf-8")))
    assert set(FORMATS.built_in) - described == set()


def test_the_site_has_every_page() -> None:
    named = set(re.findall(r": ([\w-]+\.md)$", (DOCS.parent / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE))
    pages = {path.name for path in DOCS.glob("*.md")}
    assert named == pages
    linked = set(re.findall(r"\]\(([\w-]+\.md)\)", (DOCS / "index.md").read_text(encoding="utf-8")))
    assert linked == pages - {"index.md"}
