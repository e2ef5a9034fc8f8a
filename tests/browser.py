"""A headless browser for tests, and what every page must be: readable in both colour schemes, zoomable, labelled."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterable
from itertools import product
from pathlib import Path
from typing import Any

import pytest

axe = pytest.importorskip("axe_playwright_python")

webdriver = pytest.importorskip("selenium.webdriver")

from selenium.common.exceptions import NoSuchElementException  # noqa: E402
from selenium.webdriver.common.action_chains import ActionChains  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402
from selenium.webdriver.support.ui import WebDriverWait  # noqa: E402

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
needs_browser = pytest.mark.skipif(CHROMIUM is None or DRIVER is None, reason="needs chromium and chromedriver")

FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --disable-dev-shm-usage --window-size=1200,900"
)


class Browser:
    """One headless browser with a profile of its own."""

    def __init__(self, profile: Path, link: str = "", name: str = "") -> None:
        options = webdriver.ChromeOptions()
        options.binary_location = str(CHROMIUM)
        self.downloads = profile / "downloads"
        for flag in [*FLAGS.split(), f"--user-data-dir={profile}"]:
            options.add_argument(flag)
        options.add_experimental_option("prefs", {"download.default_directory": str(self.downloads)})
        self.driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(executable_path=str(DRIVER)))
        # Nobody is asked about downloads, of pages that are files either.
        behavior = {"behavior": "allow", "downloadPath": str(self.downloads)}
        self.driver.execute_cdp_cmd("Browser.setDownloadBehavior", behavior)
        self.url = link.partition("?")[0]
        if link:
            self.open(link)
        if name:
            self.open("person")
            self.find("#person").send_keys(name)
            self.find("main button").click()

    def open(self, path: str = "") -> None:
        # On a busy machine the driver may come back before the style sheet is applied, or before the old page is gone.
        self.driver.execute_script("window.isOld = true")
        self.driver.get(path if "://" in path else self.url + path)
        WebDriverWait(self.driver, 60).until(lambda driver: driver.execute_script(STYLED), f"{path} is not there")

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

    def download(self, selector: str) -> Path:
        """The file that a click saves; what was saved before goes. A name that is still busy gets a number."""
        for path in self.downloads.glob("*"):
            path.unlink()
        self.find(selector).click()

        def saved(_: Any) -> Path | None:
            made = list(self.downloads.glob("*"))
            return made[0] if len(made) == 1 and made[0].suffix == ".jsonl" else None

        return WebDriverWait(self.driver, 60).until(saved, "nothing was saved")

    def press_keys(self, *keys: str) -> None:
        """Presses keys one after the other, wherever the focus is."""
        ActionChains(self.driver).send_keys(*keys).perform()

    def tab_to(self, selector: str) -> None:
        """Moves the focus with the tabulator alone until it is on what the selector names."""
        reached = "return !!document.activeElement && document.activeElement.matches(arguments[0])"
        for _ in range(200):
            if self.driver.execute_script(reached, selector):
                return
            self.press_keys(Keys.TAB)
        raise AssertionError(f"the tabulator does not reach {selector}")


def check_page(browser: Browser, paths: Iterable[str], act: Callable[[], object] = lambda: None) -> None:
    """Every page is readable in light and dark, nothing sticks out at 200 % and 400 %, and controls are labelled.

    Args:
        browser: shows the pages.
        paths: the pages.
        act: done on each page once it is there, so that something is to be seen.
    """
    driver = browser.driver
    for path in paths:
        browser.open(path)
        act()
        # 1280 pixels at 200 % are 640 CSS pixels; 320 are 400 %.
        for scheme, width in product(("light", "dark"), (1280, 640, 400, 320)):
            media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
            driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
            size = {"width": width, "height": 900 if width == 1280 else 480, "deviceScaleFactor": 1, "mobile": False}
            driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
            assert driver.execute_script(TOO_WIDE) == [], (path, scheme, width)
            assert driver.execute_script(EDGES) == [], (path, scheme, width)
            found = violations(browser)
            assert not found, (path, scheme, width, found[:5])


def violations(browser: Browser) -> list[str]:
    """What axe-core finds on a page: labels, contrast, structure, and all else that it knows of WCAG 2."""
    driver = browser.driver
    if not driver.execute_script("return typeof axe !== 'undefined'"):
        driver.execute_script(AXE)
    found = driver.execute_async_script(f"axe.run({RULES}).then(arguments[arguments.length - 1])")
    return [f"{one['id']}: {node['html'][:200]}" for one in found["violations"] for node in one["nodes"]]


AXE = (Path(str(axe.__file__)).parent / "axe.min.js").read_text(encoding="utf-8")
# Older ones know less.
assert tuple(map(int, re.findall(r"\d+", AXE[:20])[:2])) >= (4, 12), "pip install -U axe-playwright-python"
# Who speaks to a page says the words that stand on its controls.
RULES = "{resultTypes: ['violations'], rules: {'label-content-name-mismatch': {enabled: true}}}"
STYLED = """
return !window.isOld && document.readyState === 'complete'
  && [...document.querySelectorAll('link[rel=stylesheet]')].every(link => link.sheet);
"""
_COLOURS = """
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
function contrast(one, other) {
  const a = light(one), b = light(other);
  return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
}
"""
# WCAG 2, 1.4.11: the edge of a control, or its background, must stand out from what is around it by 3 or more.
EDGES = (
    _COLOURS
    + """
return [...document.querySelectorAll('input:not([type=hidden]):not([type=checkbox]), select, textarea, button')]
  .filter(e => e.checkVisibility())
  .map(e => { const around = behind(e.parentElement);
    return [e.outerHTML.slice(0, 100), Math.max(contrast(channels(getComputedStyle(e).borderTopColor), around),
      contrast(behind(e), around))]; })
  .filter(row => row[1] < 3);
"""
)
# What sticks out of the window, unless something around it can be scrolled.
TOO_WIDE = """
const root = document.documentElement;
if (root.scrollWidth <= root.clientWidth) return [];
const out = [...document.querySelectorAll('body *')]
  .filter(e => e.getBoundingClientRect().right > root.clientWidth && !e.closest('.scroll'))
  .map(e => e.outerHTML.slice(0, 200));
return out.length ? out : ['the page scrolls sideways'];
"""
