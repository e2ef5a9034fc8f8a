"""Tests of the HTML report: data stay text, nothing is fetched, every section is there; in a browser where one is."""

from __future__ import annotations

import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest

from rubric_measures.cli import main
from rubric_measures.verification.html_report import render_html
from rubric_measures.verification.sections import Section
from tests.example_records import RECORDS, write_lines

NASTY = "<script>document.title = 'broken'</script> \"double\" 'single' & <img src=x onerror=alert(1)> שלום \x07"


class Reader(HTMLParser):
    """Collects the tags, the attributes, and the text of the cells."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.cells: list[str] = []
        self._open = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag == "td":
            self.cells.append("")
        self._open = tag == "td"

    def handle_data(self, data: str) -> None:
        if self._open:
            self.cells[-1] += data

    def handle_endtag(self, tag: str) -> None:
        self._open = False


def page(*sections: Section, title: str = "Report") -> str:
    return "".join(render_html(sections, title))


def test_data_are_text_wherever_they_stand() -> None:
    text = page(Section(NASTY, NASTY, [NASTY, "grade"], [[NASTY, 3], [None, 0.5]]), title=NASTY)
    reader = Reader()
    reader.feed(text)
    assert (reader.tags.count("script"), reader.tags.count("img")) == (1, 0)
    assert not [name for name, _ in reader.attributes if name.startswith("on")]
    assert reader.cells == [NASTY.replace("\x07", r"\x07"), "3", "–", "0.5000"]
    assert ("dir", "auto") in reader.attributes
    assert ("data-grade", "3") in reader.attributes


def test_nothing_is_fetched() -> None:
    text = page(Section("grading", "t", ["grade"], [[1]]))
    assert not re.search(r"https?:|\bsrc=|\bhref=|@import|url\(|fetch\(", text)
    assert "default-src 'none'" in text


def test_the_command_puts_all_reports_into_one_file(tmp_path: Path) -> None:
    graded = write_lines(tmp_path / "graded.jsonl", list(RECORDS))
    report = tmp_path / "report.html"
    assert main(["verify", str(graded), "-o", "html", "--output", str(report)]) == 0
    kinds = re.findall(r'<details data-kind="([^"]*)"', report.read_text(encoding="utf-8"))
    assert set(kinds) == {
        *("grading", "grid", "uncovered", "bad-items", "items", "duplicate-items", "bank-stability"),
        *("graders", "grader-agreement", "disagreements"),
    }
    assert main(["verify", str(graded), "--bad-question", "-o", "html", "--output", str(report)]) == 0
    assert set(re.findall(r'data-kind="([^"]*)"', report.read_text(encoding="utf-8"))) == {"bad-items"}


def test_in_a_browser(tmp_path: Path) -> None:
    browser = shutil.which("chromium")
    if browser is None:
        pytest.skip("chromium is not installed")
    rows = [[NASTY, 3], ["plain", 5], ["plain too", None]]
    text = page(Section("grading", "q1", ["text", "grade"], rows))
    # The reader's hand: a search, then the page's own filter at once.
    hand = '<script>byId("search").value = "SCRIPT שלום"; filter();</script></body>'
    path = tmp_path / "report.html"
    path.write_text(text.replace("</body>", hand), encoding="utf-8")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
    command = [browser, *options, "--dump-dom", f"--user-data-dir={tmp_path / 'profile'}", path.as_uri()]
    dom = subprocess.run(command, capture_output=True, text=True, timeout=240).stdout
    assert "<title>Report</title>" in dom
    assert "1 of 3 rows" in dom
    assert dom.count('<tr data-grade="3">') == 1
    assert dom.count('<tr data-grade="5" hidden="">') == 1
