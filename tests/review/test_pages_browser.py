"""Pages without a server in a real browser: the saved queue and the report, light and dark, zoomed, labelled."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("selenium.webdriver")
pytest.importorskip("jinja2")

from rubric_measures.cli import main
from tests.browser import Browser, check_page, needs_browser
from tests.example_records import BANK, RECORDS, write_lines
from tests.review.test_app import make_project

pytestmark = needs_browser


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Browser]:
    running = Browser(tmp_path / "profile")
    yield running
    running.driver.quit()


def test_a_saved_queue_is_readable_zoomable_and_labelled(browser: Browser, tmp_path: Path) -> None:
    folder, page = make_project(tmp_path), tmp_path / "queue.html"
    command = ["review", str(folder / "graded.jsonl.gz"), "--bank", str(folder / "bank.jsonl"), "--order", "query"]
    assert main([*command, "--export-queue", str(page)]) == 0

    def act() -> None:
        """Two assessors give a grade, and the page comes back to it: its button is the pressed one."""
        for name in ("ada", "bob"):
            browser.find("#person").clear()
            browser.find("#person").send_keys(name)
            browser.find("h1").click()
            browser.keys("3")
            browser.keys("k")
            assert browser.find("[aria-pressed=true]").text.startswith("3")
        # The page asks whether they are one assessor.
        assert "They are mine, too" in browser.find("#renaming").text

    check_page(browser, [page.as_uri()], act)


def test_the_report_is_readable_zoomable_and_labelled(browser: Browser, tmp_path: Path) -> None:
    graded, bank = write_lines(tmp_path / "graded.jsonl", RECORDS), write_lines(tmp_path / "bank.jsonl", BANK)
    page = tmp_path / "report.html"
    assert main(["verify", str(graded), "--bank", str(bank), "--format", "html", "--output", str(page)]) == 0

    def act() -> None:
        opened = "document.querySelectorAll('details').forEach(one => { one.open = true; }); "
        assert browser.driver.execute_script(opened + "return document.querySelectorAll('details[open] td').length")

    check_page(browser, [page.as_uri()], act)
