"""Screenshots in the docs show what pages say now: each holds the texts of its page as they were when it was taken.

`SCREENSHOTS=1 pytest tests/docs/test_screenshots.py` takes them anew.
"""

from __future__ import annotations

import base64
import io
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest

pytest.importorskip("httpx")
pytest.importorskip("uvicorn")
pytest.importorskip("PIL.Image")
pytest.importorskip("selenium.webdriver")
pytest.importorskip("jinja2")

from PIL import Image
from PIL.PngImagePlugin import PngInfo
from selenium.webdriver.common.keys import Keys

from rubric_measures.cli import main
from rubric_measures.corpora.collections import example_folder
from rubric_measures.review.queues import load_material
from tests.browser import Browser, needs_browser
from tests.review.test_app import Server

pytestmark = needs_browser

IMAGES = Path(__file__).resolve().parents[2] / "docs" / "images"
_HELD = "Description"
# Times are another ones every day.
_TEXTS = "document.querySelectorAll('time').forEach(one => one.remove()); return document.body.innerText"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    one = Browser(tmp_path_factory.mktemp("profile"))
    one.driver.execute_cdp_cmd("Emulation.setScrollbarsHidden", {"hidden": True})
    yield one
    one.driver.quit()


def compare(browser: Browser, name: str, width: int, height: int) -> None:
    """The page says what it said when the picture was taken; where it is asked for, takes it."""
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    browser.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    taken = browser.driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})["data"]
    texts = "\n".join(line.strip() for line in browser.driver.execute_script(_TEXTS).splitlines() if line.strip())
    path = IMAGES / name
    if os.environ.get("SCREENSHOTS"):
        held = PngInfo()
        held.add_itxt(_HELD, texts, zip=True)
        with Image.open(io.BytesIO(base64.b64decode(taken))) as drawn:
            drawn.convert("P", palette=Image.Palette.ADAPTIVE).save(path, optimize=True, pnginfo=held)
    with Image.open(path) as drawn:
        assert drawn.size == (width, height)
        assert drawn.info[_HELD].splitlines() == texts.splitlines(), (
            f"take {name} again: SCREENSHOTS=1 pytest {__file__}"
        )


def test_the_reports(browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(example_folder(), tmp_path / "example")
    # Names of files stand on the pages.
    monkeypatch.chdir(tmp_path)
    answers = ["answers", "example/answers.csv", "--model", "lexical", "--folder", "report"]
    assert main(answers) == 0
    browser.open((tmp_path / "report" / "index.html").as_uri())
    browser.driver.execute_script("document.querySelector('details.query').open = true")
    compare(browser, "report.png", 1000, 1480)
    verify = ["verify", "all", "example/graded.jsonl.gz", "--bank", "example/questions.jsonl", "-o", "verify.html"]
    assert main(verify) == 0
    browser.open((tmp_path / "verify.html").as_uri())
    compare(browser, "verify.png", 1000, 1000)


def test_the_review_page(browser: Browser, tmp_path: Path) -> None:
    for name, copy in (("graded.jsonl.gz", "graded.jsonl.gz"), ("questions.jsonl", "bank.jsonl")):
        shutil.copyfile(example_folder() / name, tmp_path / copy)
    material = load_material(tmp_path / "graded.jsonl.gz", tmp_path / "bank.jsonl")
    first, second = (material.grade(cell).grade for cell in material.cells[:2])
    server = Server(tmp_path, "--assessor", "ada", "--grader", "lexical:1")
    try:
        browser.open(server.link)
        browser.url = server.url
        compare(browser, "review-start.png", 1240, 400)
        browser.open("check?order=query&" + urlencode(dict(zip("qdi", material.cells[0], strict=True))))
        # One grade is the grader's, the next one is not.
        browser.press_keys(f"{first:.0f}", "5" if second is None or second < 3 else "0")
        browser.wait_for("accept")
        compare(browser, "review-check.png", 1240, 800)
        browser.open()
        browser.keys(Keys.ENTER)
        browser.wait_for("keep")
        browser.press_keys(Keys.ENTER)
        browser.wait_for("Finished: to decide")
        browser.open("bank?query=q01")
        compare(browser, "review-bank.png", 1240, 640)
    finally:
        server.kill()
