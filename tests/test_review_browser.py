"""The review page in a real browser (headless Chromium) with a real server process: keyboard, markup, two people."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rubric_measures.formats.workbench import load_graded

webdriver = pytest.importorskip("selenium.webdriver")
pytest.importorskip("httpx")
pytest.importorskip("starlette")
pytest.importorskip("uvicorn")
pytest.importorskip("jinja2")

from selenium.common.exceptions import NoSuchElementException  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402
from selenium.webdriver.support.ui import WebDriverWait  # noqa: E402

from tests.test_review_app import CELL, EVIL, Person, Server, make_project  # noqa: E402

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(CHROMIUM is None or DRIVER is None, reason="needs chromium and chromedriver")

FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --disable-dev-shm-usage --window-size=1200,900"
)
CHECK = "check?order=query&query=q1&q=q1&d=d1&i=q1%2Fa"


OPEN = "check?order=query&query=q1&q=q1&d=d1&i=q1%2Fb"
SCREENS = ("", CHECK, OPEN, "bank?query=q1", "impact", "impact?query=q1", "progress", "export", "person", "?order=none")


class Browser:
    """One headless browser with a profile of its own."""

    def __init__(self, profile: Path, server: Server, name: str = "") -> None:
        options = webdriver.ChromeOptions()
        options.binary_location = str(CHROMIUM)
        self.downloads = profile / "downloads"
        for flag in [*FLAGS.split(), f"--user-data-dir={profile}"]:
            options.add_argument(flag)
        options.add_experimental_option("prefs", {"download.default_directory": str(self.downloads)})
        self.driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(executable_path=str(DRIVER)))
        self.server = server
        if name:
            self.open("person")
            self.find("#person").send_keys(name)
            self.find("main button").click()

    def open(self, path: str = "") -> None:
        # On a busy machine the driver may come back before the style sheet is applied, or before the old page is gone.
        self.driver.execute_script("window.isOld = true")
        self.driver.get(self.server.url + path)
        WebDriverWait(self.driver, 60).until(lambda driver: driver.execute_script(_STYLED), f"{path} is not there")

    def find(self, selector: str) -> Any:
        return WebDriverWait(self.driver, 60, ignored_exceptions=[NoSuchElementException]).until(
            lambda driver: driver.find_element(By.CSS_SELECTOR, selector)
        )

    def has(self, selector: str) -> bool:
        return bool(self.driver.find_elements(By.CSS_SELECTOR, selector))

    def keys(self, text: str) -> None:
        self.find("body").send_keys(text)

    def wait_for(self, text: str) -> None:
        WebDriverWait(self.driver, 60).until(
            lambda driver: text in driver.execute_script("return document.body ? document.body.innerText : ''"),
            f"{text!r} is not in the page",
        )

    def press(self, label: str) -> None:
        """Clicks the button with this text."""
        self.driver.find_element(By.XPATH, f"//button[normalize-space()={label!r}]").click()

    def open_details(self, summary: str) -> None:
        self.driver.find_element(By.XPATH, f"//summary[starts-with(normalize-space(), {summary!r})]").click()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    (tmp_path / "project").mkdir()
    running = Server(make_project(tmp_path / "project"))
    yield running
    running.kill()


@pytest.fixture
def people(tmp_path: Path, server: Server) -> Iterator[tuple[Browser, Browser]]:
    ada, bob = (Browser(tmp_path / name, server, name) for name in ("ada", "bob"))
    yield ada, bob
    ada.driver.quit()
    bob.driver.quit()


def test_a_person_reviews_with_the_keyboard_alone(people: tuple[Browser, Browser], tmp_path: Path) -> None:
    ada, bob = people
    ada.open(CHECK)
    # Markup in a passage is text: nothing ran, nothing was made of it, and every character is there.
    assert ada.find("#passage").get_attribute("textContent") == EVIL
    assert ada.driver.title == "Check a grade – review" and not ada.has("#passage img, #passage script")
    assert ada.driver.execute_script("return getComputedStyle(document.getElementById('passage')).unicodeBidi") == (
        "plaintext"
    )
    # Blind: the grade is nowhere in the page.
    assert not ada.has("#graders") and "LexicalCoverage" not in ada.driver.page_source
    ada.keys("1")
    assert ada.find("#graders").text == "4" and ada.find("#mine").text == "1"
    ada.keys("o")
    assert ada.driver.switch_to.active_element.get_attribute("id") == "reason"
    # Digits in the reason are text, not grades.
    ada.driver.switch_to.active_element.send_keys("no 4 at all", Keys.ENTER)
    ada.wait_for("How well")
    ada.keys("k")
    ada.wait_for("Overridden with 1: no 4 at all")
    # Undo from the header; the decision is open again.
    ada.press("Undo my last action")
    ada.wait_for("You differ from the grader")
    ada.keys("a")
    ada.wait_for("How well")
    ada.keys("u")
    ada.wait_for("How well")
    # Somebody else works at the same time.
    bob.open(CHECK)
    bob.keys("4")
    bob.wait_for("You and the grader agree on 4")
    # Killed without warning: all is there.
    ada.server.kill()
    ada.server.start()
    ada.open("progress")
    ada.wait_for("Agreement on blind grades")
    assert "bob" in ada.find("main").text and "ada" in ada.find("main").text


def test_edits_merge_conflict_impact_and_export(people: tuple[Browser, Browser], tmp_path: Path) -> None:
    ada, bob = people
    for browser in people:
        browser.open("bank?query=q1")
        browser.open_details("Edit: What is a?")
    for browser, text in ((ada, "What is alpha?"), (bob, "What is A?")):
        field = browser.find("#text-1")
        field.clear()
        field.send_keys(text)
    ada.press("Save")
    ada.wait_for("need regrading: 1")
    bob.press("Save")
    bob.wait_for("Somebody changed this meanwhile")
    assert "What is alpha?" in bob.find("#conflict").text and "What is A?" in bob.find("#conflict").text
    # Merge c and d.
    bob.open("bank?query=q1")
    boxes = bob.driver.find_elements(By.NAME, "merge")
    boxes[2].click()
    boxes[3].click()
    bob.find("#merge-text").send_keys("What are c and d?")
    bob.press("Merge")
    bob.wait_for("need regrading: 2")
    bob.open("impact")
    # a, c and d of q1 have no grades: only b counts. It is covered by d2, which both runs rank: (1/1) / 3 queries.
    bob.wait_for("are not counted yet: 2")
    assert "0.3333" in bob.find("main").text
    # Two passages for each of the two items that wait; the rows are those of a, c, d and the merged one.
    assert "4 grades to make anew, for 2 items" in bob.find("#items").text
    rows = [row.text for row in bob.driver.find_elements(By.CSS_SELECTOR, "#items tbody tr")]
    assert [("What is alpha?" in row, "merged" in row, "made by a merge" in row) for row in rows] == [
        (True, False, False),
        (False, True, False),
        (False, True, False),
        (False, False, True),
    ]
    bob.press("Undo my last action")
    bob.wait_for("need regrading: 1")
    bob.open("export")
    bob.find("input[value=nugget-bank]").click()
    bob.press("Write the files")
    bob.wait_for("1 item in the bank needs grades")
    assert "bank.nugget-bank.jsonl" in bob.find(".good").text and "--only-changed" in bob.find(".good").text
    kinds = [json.loads(line) for line in (tmp_path / "project/review-export/audit.jsonl").read_text().splitlines()]
    assert [(line["kind"], line["person"], line["undone"]) for line in kinds] == [
        ("item_edit", "ada", False),
        ("item_merge", "bob", True),
        ("undo", "bob", False),
    ]
    assert len(load_graded(tmp_path / "project/review-export/graded.jsonl.gz")) == 2


def test_a_queue_page_works_without_the_server(people: tuple[Browser, Browser], tmp_path: Path) -> None:
    ada, _ = people
    ada.open("?order=query&query=q1")
    page = tmp_path / "queue.html"
    cookies = {cookie["name"]: cookie["value"] for cookie in ada.driver.get_cookies()}
    import httpx

    with httpx.Client(base_url=ada.server.url, cookies=cookies, trust_env=False) as client:
        page.write_text(client.get("/queue.html?order=query&query=q1").text, encoding="utf-8")
    ada.driver.get(page.as_uri())
    assert ada.find("#passage").get_attribute("textContent") == EVIL and "owned" not in ada.driver.title
    ada.find("#person").send_keys("zoe")
    ada.find("h1").click()
    ada.keys("3")
    ada.keys("u")
    ada.wait_for("2 done")
    ada.driver.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(ada.downloads)})
    ada.find("#save").click()
    saved = ada.downloads / "review-grades.jsonl"
    WebDriverWait(ada.driver, 15).until(lambda _: saved.exists())
    rows = [json.loads(line) for line in saved.read_text(encoding="utf-8").splitlines()]
    assert [(row["person"], row["item_id"], row["grade"]) for row in rows] == [
        ("zoe", "q1/a", 3),
        ("zoe", "q1/b", None),
    ]
    from rubric_measures.cli import main

    project = tmp_path / "project"
    assert (
        main(
            ["review", str(project / "graded.jsonl.gz"), "--bank", str(project / "bank.jsonl"), "--import", str(saved)]
        )
        == 0
    )
    ada.open("progress")
    ada.wait_for("zoe")


def test_both_colour_schemes_are_readable_and_nothing_overflows_at_200_percent(
    people: tuple[Browser, Browser],
) -> None:
    ada, _ = people
    # Something is on every screen: a grade overridden, items of every kind of edit.
    person = Person(ada.server, "ada")
    person.post("/grade", **CELL, grade="1")
    person.post("/decide", **CELL, decision="override", reason="only in passing")
    person.post("/bank", edit="item_edit", query="q1", key="q1/a", version="0", text="What is alpha?", weight="2")
    person.post("/bank", edit="item_split", query="q1", key="q1/c", version="0", texts="What is c1?\nWhat is c2?")
    person.post("/bank", edit="item_retire", query="q1", key="q1/d", version="0")
    for scheme in ("light", "dark"):
        media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        ada.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
        for path in SCREENS:
            ada.open(path)
            assert ada.driver.execute_script(_CONTRAST) == [], (scheme, path)
    # 1280 pixels at 200 % are 640 CSS pixels; 320 are 400 %.
    for width in (640, 320):
        ada.driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": 480, "deviceScaleFactor": 2, "mobile": False},
        )
        for path in SCREENS:
            ada.open(path)
            assert ada.driver.execute_script(_TOO_WIDE) == [], (width, path)
            unnamed = ada.driver.execute_script(_UNLABELLED)
            assert unnamed == [], path


_STYLED = """
return !window.isOld && document.readyState === 'complete'
  && [...document.querySelectorAll('link[rel=stylesheet]')].every(link => link.sheet);
"""
# WCAG 2: the contrast of a text with the nearest background that has a colour must be 4.5 or more.
_CONTRAST = """
function channels(text) { return text.match(/[\\d.]+/g).map(Number); }
function light(colour) {
  const parts = colour.slice(0, 3).map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
}
function behind(element) {
  for (; element; element = element.parentElement) {
    const colour = channels(getComputedStyle(element).backgroundColor);
    if (colour.length === 3 || colour[3] > 0) return colour;
  }
  return [255, 255, 255];
}
return [...document.querySelectorAll('body *')]
  .filter(e => [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim()) && e.checkVisibility())
  .map(e => { const a = light(channels(getComputedStyle(e).color)), b = light(behind(e));
    return [e.tagName + ' ' + e.className, (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05)]; })
  .filter(row => row[1] < 4.5);
"""
# What sticks out of the window, unless something around it can be scrolled.
_TOO_WIDE = """
const root = document.documentElement;
if (root.scrollWidth <= root.clientWidth) return [];
return [...document.querySelectorAll('body *')]
  .filter(e => e.getBoundingClientRect().right > root.clientWidth && !e.closest('.scroll'))
  .map(e => e.outerHTML.slice(0, 200));
"""
_UNLABELLED = """
return [...document.querySelectorAll('input:not([type=hidden]), select, textarea, button')]
  .filter(e => !(e.labels && e.labels.length) && !e.getAttribute('aria-label') && !e.textContent.trim())
  .map(e => e.outerHTML);
"""
