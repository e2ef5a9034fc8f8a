"""The report in a real browser: offline, light and dark, on a phone, by keyboard; nothing that data hold runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser import Browser, check_page, needs_browser
from tests.pages.test_board_page import evaluated, page_of

pytestmark = needs_browser


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    folder = tmp_path_factory.mktemp("report")
    (folder / "index.html").write_text(page_of(evaluated()), encoding="utf-8")
    one = Browser(folder / "profile", (folder / "index.html").as_uri())
    one.driver.execute_cdp_cmd("Network.enable", {})
    one.driver.execute_cdp_cmd(
        "Network.emulateNetworkConditions",
        {"offline": True, "latency": 0, "downloadThroughput": 0, "uploadThroughput": 0},
    )
    yield one
    one.driver.quit()


def test_light_and_dark_and_on_a_phone(browser: Browser) -> None:
    check_page(browser, [""], lambda: browser.driver.execute_script(OPEN_ALL))


OPEN_ALL = "document.querySelectorAll('details').forEach(one => { one.open = true; })"


def test_nothing_in_the_data_runs_and_nothing_is_refused(browser: Browser) -> None:
    browser.open()
    assert browser.driver.title == "Answers"
    assert [line for line in browser.driver.get_log("browser") if "Content Security" in line["message"]] == []


def test_search_and_links_open_what_they_name(browser: Browser, tmp_path: Path) -> None:
    browser.open()
    browser.find("#search").send_keys("steep")
    browser.wait_for("1 of 3")
    assert len(browser.driver.find_elements("css selector", "details.query:not([hidden])")) == 1
    browser.find("#search").clear()
    browser.open()
    browser.find(".cards a[href^='#i']").click()
    browser.wait_for("Words that are not there")
