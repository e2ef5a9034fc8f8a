"""The report of verify in a real browser: light and dark, zoomed, labelled."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("selenium.webdriver")

from rubric_measures.cli import main
from tests.browser import Browser, check_page, needs_browser
from tests.example_records import BANK, RECORDS, write_lines

pytestmark = needs_browser


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Browser]:
    running = Browser(tmp_path / "profile")
    yield running
    running.driver.quit()


def test_the_report_is_readable_zoomable_and_labelled(browser: Browser, tmp_path: Path) -> None:
    graded, bank = write_lines(tmp_path / "graded.jsonl", RECORDS), write_lines(tmp_path / "bank.jsonl", BANK)
    page = tmp_path / "report.html"
    assert main(["verify", "all", str(graded), "--bank", str(bank), "--output", str(page)]) == 0

    def act() -> None:
        opened = "document.querySelectorAll('details').forEach(one => { one.open = true; }); "
        assert browser.driver.execute_script(opened + "return document.querySelectorAll('details[open] td').length")

    check_page(browser, [page.as_uri()], act)
