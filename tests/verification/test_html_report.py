"""Tests of the HTML report: what to look at stands first; data stay text, nothing is fetched; pages stay small."""

from __future__ import annotations

import random
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from rubric_measures.base.errors import InputError
from rubric_measures.cli import main
from rubric_measures.measures.checked import CheckedGrade, CheckedPassage, CheckedQuery
from rubric_measures.pages.frame import ReviewAddress
from rubric_measures.types.scales import SELF_RATING, Scale
from rubric_measures.verification.html import LARGEST_PAGE, write_html
from rubric_measures.verification.sections import ReportSettings, Section
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


def written(
    path: Path, *parts: Section | CheckedQuery, title: str = "Report", review: ReviewAddress | None = None
) -> str:
    assert write_html(str(path), parts, ReportSettings(), title, review) == [str(path)]
    return path.read_text(encoding="utf-8")


def test_data_are_text_wherever_they_stand(tmp_path: Path) -> None:
    grade = CheckedGrade(NASTY, NASTY, NASTY, NASTY, 3, "graded", NASTY, 0, NASTY, None, NASTY)
    query = CheckedQuery(
        NASTY, NASTY, {NASTY: NASTY}, [CheckedPassage(NASTY, NASTY, 0, {NASTY: grade})], Scale(0, 5, 3)
    )
    settings = ReportSettings()
    section = Section(NASTY, NASTY, [NASTY, "grade"], [[NASTY, 3], [None, 0.5]])
    path = tmp_path / "report.html"
    write_html(str(path), [section, query], settings, NASTY, ReviewAddress("http://127.0.0.1:8642", NASTY))
    reader = Reader(path.read_text(encoding="utf-8"))
    assert (reader.tags.count("script"), reader.tags.count("img")) == (1, 0)
    assert not [name for name, _ in reader.attributes if name.startswith("on") or name == "style"]
    shown = NASTY.replace("\x07", r"\x07")
    assert reader.cells.count(shown) >= 3
    assert ("dir", "auto") in reader.attributes


def test_nothing_is_fetched(tmp_path: Path) -> None:
    text = written(tmp_path / "report.html", Section("items-of", "t", ["grade"], [[1]]))
    assert not re.search(r"https?:|\bsrc=|@import|url\(|fetch\(", text)
    assert "default-src 'none'" in text


def test_the_command_opens_with_what_to_look_at(tmp_path: Path) -> None:
    graded, bank = write_lines(tmp_path / "graded.jsonl", list(RECORDS)), write_lines(tmp_path / "bank.jsonl", BANK)
    report = tmp_path / "report.html"
    command = ["verify", "all", str(graded), "--bank", str(bank), "--format", "html", "--output", str(report)]
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
    assert main(["verify", "bad-questions", *command[2:]]) == 0
    assert Reader(report.read_text(encoding="utf-8")).headings[-1] == "Items"


def test_queries_may_call_their_items_alike(tmp_path: Path) -> None:
    records = [[query, [passage(query, "d1", [grade_set({"1": 5})], judgment=1)]] for query in ("q1", "q2")]
    banks = [
        {"query_id": query, "items": [{"query_id": query, "question_id": "1", "question_text": f"What of {query}?"}]}
        for query in ("q1", "q2")
    ]
    graded, bank = write_lines(tmp_path / "graded.jsonl", records), write_lines(tmp_path / "bank.jsonl", banks)
    report = tmp_path / "report.html"
    assert main(["verify", "item-statistics", str(graded), "--bank", str(bank), "-o", str(report)]) == 0
    reader = Reader(report.read_text(encoding="utf-8"))
    first, second = (reader.cells.index(f"What of {query}?") for query in ("q1", "q2"))
    assert (reader.cells[first + 1], reader.cells[second + 1]) == ("q1", "q2")


def test_ten_thousand_passages_make_pages_of_two_megabytes(tmp_path: Path) -> None:
    chance = random.Random(1)
    words = ["the", "way", "of", "a", "long", "river", "from", "its", "mountain", "to", "the", "sea"]
    texts = [" ".join(chance.choices(words, k=60)) for _ in range(100)]
    ids = [f"{number:032x}" for number in range(2)]

    def queries():
        for number in range(20):
            passages = []
            for place in range(500):
                text, doc_id = texts[place % 100], f"d{place}"
                grades = {
                    item: CheckedGrade(
                        f"q{number}", item, f"Why {item[-1]}?", doc_id, place % 6, "graded", "4", 1, text
                    )
                    for item in ids
                }
                passages.append(CheckedPassage(doc_id, text, 1, grades))
            yield CheckedQuery(
                f"q{number}", f"query {number}", {item: f"Why {item[-1]}?" for item in ids}, passages, SELF_RATING
            )

    path = tmp_path / "a-report-with-quite-a-long-name.html"
    review = ReviewAddress("http://127.0.0.1:8642", "rubric_measures review")
    files = write_html(str(path), queries(), ReportSettings(), "Big", review)
    assert files[0] == str(path) and len(files) > 4
    assert sorted(tmp_path.iterdir()) == sorted(map(Path, files))
    sizes = {Path(name).name: Path(name).stat().st_size for name in files}
    assert max(sizes.values()) <= LARGEST_PAGE
    # All passages are there once, and links lead to places that there are.
    pages = {name: (tmp_path / name).read_text(encoding="utf-8") for name in sizes}
    assert sum(len(re.findall(r'<tr id="q\d+p', page)) for page in pages.values()) == 10_000
    known = {name: set(re.findall(r' id="([^"]+)"', page)) for name, page in pages.items()}
    for here, page in pages.items():
        for target in set(re.findall(r'href="([^":]+)"', page)):
            name, _, anchor = target.partition("#")
            assert not anchor or anchor in known[name or here], target
            assert not name or name in known, target
    # A query stands on one page.
    assert sum(page.count("<h2 id=") for page in pages.values()) == 21
    with pytest.raises(InputError, match="several pages"):
        write_html("-", queries(), ReportSettings())
