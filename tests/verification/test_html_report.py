"""Tests of the HTML report: what to look at stands first; data stay text, nothing is fetched."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from rubric_measures.cli import main
from tests.example_records import BANK, RECORDS, grade_set, passage, write_lines

NASTY = "<script>document.title = 'broken'</script> \"double\" 'single' & <img src=x onerror=alert(1)> שלום \x07"


class Reader(HTMLParser):
    """Collects tags, attributes, the text of cells and headings, and where links lead."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.cells: list[str] = []
        self.headings: list[str] = []
        self._open: list[str] | None = None
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag in ("td", "h2", "h3"):
            self._open = self.cells if tag == "td" else self.headings
            self._open.append("")

    def handle_data(self, data: str) -> None:
        if self._open is not None:
            self._open[-1] += data

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "h2", "h3"):
            self._open = None

    def links(self) -> list[str]:
        return [value or "" for name, value in self.attributes if name == "href"]


def test_data_are_text_wherever_they_stand(tmp_path: Path) -> None:
    entry = {**grade_set({NASTY: 3}), "answers": [[NASTY, NASTY]]}
    one = {**passage(NASTY, NASTY, [entry], {NASTY: 1}, judgment=1), "text": NASTY}
    graded = write_lines(tmp_path / "graded.jsonl", [[NASTY, [one]]])
    bank = [{"query_id": NASTY, "query_text": NASTY, "items": [{"question_id": NASTY, "question_text": NASTY}]}]
    report = tmp_path / "report.html"
    arguments = [str(graded), "--bank", str(write_lines(tmp_path / "bank.jsonl", bank)), "-o", str(report)]
    assert main(["verify", "all", *arguments]) == 0
    reader = Reader(report.read_text(encoding="utf-8"))
    assert (reader.tags.count("script"), reader.tags.count("img")) == (1, 0)
    assert not [name for name, _ in reader.attributes if name.startswith("on") or name == "style"]
    shown = NASTY.replace("\x07", r"\x07")
    assert reader.cells.count(shown) >= 3
    assert ("dir", "auto") in reader.attributes


def test_nothing_is_fetched(tmp_path: Path) -> None:
    graded, report = write_lines(tmp_path / "graded.jsonl", list(RECORDS)), tmp_path / "report.html"
    assert main(["verify", "all", str(graded), "-o", str(report)]) == 0
    text = report.read_text(encoding="utf-8")
    assert not re.search(r"https?:|\bsrc=|@import|url\(|fetch\(", text)
    assert "default-src 'none'" in text


def test_the_command_opens_with_what_to_look_at(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    graded, bank = write_lines(tmp_path / "graded.jsonl", list(RECORDS)), write_lines(tmp_path / "bank.jsonl", BANK)
    report = tmp_path / "report.html"
    command = ["verify", "all", str(graded), "--bank", str(bank), "--output", str(report)]
    assert main(command) == 0
    text = report.read_text(encoding="utf-8")
    reader = Reader(text)
    # Three numbers, each with a link to its list, and then the lists.
    numbers = re.findall(r"<div><b>(\d+) <small>of (\d+)</small></b><a href=\"#(\w+)\">", text)
    assert [name for *_, name in numbers] == ["never", "uncovered", "doubtful"]
    assert text.index('class="figures"') < text.index("What to look at")
    assert reader.headings[0] == "What to look at"
    names = [re.sub(r"[ :(].*", "", name) for name in reader.headings[1:6]]
    assert names == ["Items", "Items", "Items", "Relevant", "Doubtful"]
    # Every link leads to a place on the page, or to a cell of the review page.
    ids = {value for name, value in reader.attributes if name == "id"}
    inside = [link[1:] for link in reader.links() if link.startswith("#")]
    assert inside and set(inside) <= ids
    cells = {link for link in reader.links() if not link.startswith("#")}
    address = r"http://127\.0\.0\.1:8642/check\?q=[^&]+&d=[^&]+&i=[^&]+&seen=1"
    assert cells and all(re.fullmatch(address, link) for link in cells)
    assert f"rubric_measures review {graded} --bank {bank}" in report.read_text(encoding="utf-8")
    # No name of a column is a word of programs, and ids stand last.
    heads = re.findall(r'<th scope="col" dir="auto">([^<]*)</th>', report.read_text(encoding="utf-8"))
    assert not [name for name in heads if "_" in name and "/" not in name]
    assert main(["verify", "bad-questions", *command[2:]]) == 2
    assert "a page shows all reports; ask for all of them, or for another form" in capsys.readouterr().err


def test_queries_may_call_their_items_alike(tmp_path: Path) -> None:
    records = [[query, [passage(query, "d1", [grade_set({"1": 5})], judgment=1)]] for query in ("q1", "q2")]
    banks = [
        {"query_id": query, "items": [{"query_id": query, "question_id": "1", "question_text": f"What of {query}?"}]}
        for query in ("q1", "q2")
    ]
    graded, bank = write_lines(tmp_path / "graded.jsonl", records), write_lines(tmp_path / "bank.jsonl", banks)
    report = tmp_path / "report.html"
    assert main(["verify", "all", str(graded), "--bank", str(bank), "-o", str(report)]) == 0
    reader = Reader(report.read_text(encoding="utf-8"))
    first, second = (reader.cells.index(f"What of {query}?") for query in ("q1", "q2"))
    assert (reader.cells[first + 1], reader.cells[second + 1]) == ("q1", "q2")


def test_grades_on_another_scale_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [["q1", [passage("q1", f"d{place}", [grade_set({"q1/a": place % 2})]) for place in range(20)]]]
    graded, report = write_lines(tmp_path / "graded.jsonl", lines), tmp_path / "report.html"
    assert main(["verify", "all", str(graded), "-o", str(report)]) == 0
    assert "no grade reaches 4, the level of labels; the highest is 1" in capsys.readouterr().err


def test_a_passage_leads_to_an_item_that_was_asked_of_it(tmp_path: Path) -> None:
    lines = [["q1", [passage("q1", "d1", [grade_set({"q1/b": 1})], judgment=2), passage("q1", "d2", [], judgment=2)]]]
    graded, bank = write_lines(tmp_path / "graded.jsonl", lines), write_lines(tmp_path / "bank.jsonl", BANK)
    report = tmp_path / "report.html"
    assert main(["verify", "all", str(graded), "--bank", str(bank), "-o", str(report)]) == 0
    places = {link.partition("/check?")[2] for link in Reader(report.read_text(encoding="utf-8")).links()} - {""}
    assert places == {"q=q1&d=d1&i=q1%2Fb&seen=1"}
