"""The review page in a real browser (headless Chromium) with a real server process: keyboard, markup, two assessors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from importlib.resources import files
from itertools import groupby
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

pytest.importorskip("selenium.webdriver")
pytest.importorskip("httpx")
pytest.importorskip("starlette")
pytest.importorskip("uvicorn")
pytest.importorskip("jinja2")

from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from rubric_measures.measures.grade_sets import Grader
from rubric_measures.review.queues import load_material
from rubric_measures.review.store import ReviewStore
from tests.browser import Browser, check_page, needs_browser, violations
from tests.example_records import BANK, grade_set, passage, write_lines
from tests.review.test_app import CELL, EVIL, Assessor, Server, make_project

pytestmark = needs_browser

# With a line of code that no screen is wide enough for.
GUIDELINES = f"Grade what is **clearly** said.\n\n    {'said ' * 50}{'x' * 200}\n"
CHECK = "check?order=query&q=q1&d=d1&i=q1%2Fa"
OPEN = "check?order=query&q=q1&d=d1&i=q1%2Fb"
SCREENS = (
    "",
    CHECK,
    OPEN,
    "guidelines",
    "bank?query=q1",
    "bank?item=q1%2Fb",
    "progress",
    "export",
    "person",
    "?order=none",
)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "guidelines.md").write_text(GUIDELINES, encoding="utf-8")
    running = Server(make_project(tmp_path / "project"), "--guidelines", str(tmp_path / "project" / "guidelines.md"))
    yield running
    running.kill()


@pytest.fixture
def ada(tmp_path: Path, server: Server) -> Iterator[Browser]:
    running = Browser(tmp_path / "ada", server.link, "ada")
    yield running
    running.driver.quit()


def test_an_assessor_reviews_with_the_keyboard_alone(ada: Browser, server: Server) -> None:
    # Enter on the first screen starts the first queue that is not empty.
    ada.open("")
    ada.keys(Keys.ENTER)
    ada.wait_for("HOW WELL DOES THE PASSAGE COVER EACH")
    ada.open(CHECK)
    # Markup in a passage is text: nothing ran, nothing was made of it, and every character is there.
    assert ada.find("#passage").get_attribute("textContent") == EVIL
    assert ada.driver.title == "Check grades – review" and not ada.has("#passage img, #passage script")
    assert ada.driver.execute_script("return getComputedStyle(document.getElementById('passage')).unicodeBidi") == (
        "plaintext"
    )
    # Blind: the grade is nowhere in the page.
    assert not ada.has(".graders") and "LexicalCoverage" not in ada.driver.page_source
    ada.driver.execute_script("window.isFirst = true")
    # Typed ahead: a differs from the grader (4), b agrees (1); then a is what is to decide.
    ada.press_keys("1", "1")
    ada.wait_for("1 to decide")
    ada.wait_for("grader 1, agreed")
    assert ada.find("#current").get_attribute("data-item") == "q1/a"
    # A digit typed further ahead changes nothing: the page went there by itself.
    ada.press_keys("5", "c", "no 4 at all", Keys.ENTER, Keys.ENTER)
    # Kept without another word, with the note; on to the next passage.
    ada.wait_for("PASSAGE d2")
    ada.press_keys("[")
    ada.wait_for("✓ kept 1, grader 4")
    assert "Note: no 4 at all" in ada.find("#items").text or "no 4 at all" in ada.find("#current textarea").text
    # Taken back: the decision is open again. Then the grader's is accepted; u hides the next one still.
    ada.press_keys("z")
    ada.wait_for("Taken back: decided")
    ada.press_keys("a")
    ada.wait_for("PASSAGE d2")
    ada.press_keys("u")
    ada.wait_for("undecided")
    assert not ada.has("[data-item='q1/a'] .graders")
    ada.press_keys("?")
    ada.wait_for("keep your grade where the grader's differs")
    ada.press_keys(Keys.ESCAPE, "g")
    ada.wait_for("Grade what is clearly said")
    assert ada.find("#guidelines strong").text == "clearly"
    ada.press_keys(Keys.ESCAPE)
    # All that without loading a page.
    assert ada.driver.execute_script("return window.isFirst")
    # Killed without warning: the page says that nothing was kept, and goes on once the server is there.
    server.kill()
    ada.driver.execute_script("window.scrollTo(0, 9999)")
    ada.keys("1")
    ada.wait_for("this was not kept")
    # Wherever the page is scrolled to, and until something is kept again.
    bar = ada.driver.execute_script("return document.getElementById('bar').getBoundingClientRect().toJSON()")
    assert 0 < bar["top"] < bar["bottom"] <= ada.driver.execute_script("return innerHeight")
    server.start()
    ada.url = server.url
    ada.open("progress")
    ada.wait_for("Agreement on blind grades")
    assert "ada" in ada.find("main").text


def test_fifty_cells_of_the_example_are_graded_by_keyboard(tmp_path: Path) -> None:
    """A key a cell, and one more where assessor and grader differ; no page is loaded between items or passages."""
    example = files("rubric_measures") / "resources" / "example"
    if not example.is_dir():
        example = Path(__file__).parents[2] / "resources" / "example"
    for name in ("graded.jsonl.gz", "questions.jsonl"):
        (tmp_path / name).write_bytes((example / name).read_bytes())
    (tmp_path / "questions.jsonl").rename(tmp_path / "bank.jsonl")
    material = load_material(tmp_path / "graded.jsonl.gz", tmp_path / "bank.jsonl", Grader("lexical:1"))
    keys, count = list[str](), 0
    for _, passage_cells in groupby(material.cells, key=lambda cell: cell[:2]):
        if count >= 50:
            break
        differing = 0
        for cell in passage_cells:
            grade, count = int(material.grade(cell).grade or 0), count + 1
            # One in seven.
            differs = count % 7 == 0
            keys.append(str(5 - grade if differs else grade))
            differing += differs
        # What differs in a passage is decided before the next one: theirs stands.
        keys += [Keys.ENTER] * differing
    running = Server(tmp_path, "--grader", "lexical:1")
    ada = Browser(tmp_path / "ada", running.link, "ada")
    try:
        ada.open("check?order=query&" + urlencode(dict(zip("qdi", material.cells[0], strict=True))))
        ada.driver.execute_script("window.isFirst = true")
        ada.press_keys(*keys)
        ada.wait_for(f"{count} of ")
        ada.wait_for("0 to decide")
        assert len(keys) <= 1.15 * count
        assert ada.driver.execute_script("return window.isFirst")
    finally:
        ada.driver.quit()
        running.kill()


@pytest.mark.parametrize(
    ("words", "highest", "height"), [("Which pigment is green?", 4, 574), ("So why? " * 17, 10, 750)]
)
def test_fifteen_items_stand_on_one_screen(tmp_path: Path, words: str, highest: int, height: int) -> None:
    """Those of the queue full size, the others a line each that leads to them; the ends of the scale in words.

    A long item takes two lines until it is its turn. There are 100 queries of 20 passages.
    """
    says, records, bank = {"prompt_class": "Ours", "scale": [0, highest], "covers": 4}, list[Any](), list[Any]()
    for query in (f"q{number}" for number in range(100)):
        ids = [f"{query}/{number:02}" for number in range(15)]
        sets = [{**grade_set(dict.fromkeys(ids, 3)), "prompt_info": says}]
        records.append([query, [passage(query, f"d{rank}", sets, {"one": rank}, 2) for rank in range(1, 21)]])
        items = [{"query_id": query, "question_id": one, "question_text": f"{one}: {words}"} for one in ids]
        bank.append({"query_id": query, "items": items})
    write_lines(tmp_path / "graded.jsonl.gz", records)
    write_lines(tmp_path / "bank.jsonl", bank)
    running = Server(tmp_path, "--audit", "1")
    ada = Browser(tmp_path / "ada", running.link, "ada")
    try:
        ada.open()
        # One button; the other queues are behind a line.
        buttons = ada.driver.find_elements(By.CSS_SELECTOR, "main a.button, main button")
        assert [one.text for one in buttons if one.is_displayed()] == ["Start, 5 left Enter"]
        ada.open_details("Other queues")
        assert ada.find("[data-order=query] a.button").is_displayed()
        ada.find("[data-order=audit] a.button").click()
        ada.wait_for("HOW WELL DOES THE PASSAGE COVER EACH")
        rows = ada.driver.find_elements(By.CSS_SELECTOR, "#items li")
        assert len(rows) == 15 and sorted(row.size["height"] for row in rows)[9] < 30
        assert ada.find("#items").size["height"] <= height
        names = [one.text for one in ada.driver.find_elements(By.CSS_SELECTOR, "#current .segments button")]
        assert names == ["0 not at all", *map(str, range(1, highest)), f"{highest} completely"]
        # A line opens its item, and j and k go there, too.
        other = ada.find("#items li.brief").get_attribute("data-item")
        ada.find("#items li.brief a").click()
        ada.find(f"#current[data-item='{other}']")
        ada.press_keys("j", "k", "3")
        ada.wait_for("yours 3")
        assert "yours 3" in ada.find(f"[data-item='{other}'].brief").text and not violations(ada)
    finally:
        ada.driver.quit()
        running.kill()


def test_links_of_their_own_and_the_adjudicators_queue(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    project = make_project(tmp_path / "project")
    server = Server(project, "--assign", "ada=q1", "bob=q1", "--adjudicator", "lead")
    lead = Browser(tmp_path / "profile")
    try:
        # As in a mail or a report: from a page elsewhere, into a browser that was never here.
        base = server.url
        mail = tmp_path / "mail.html"
        links = {name: f"{base}as?name={name}&amp;{server.link.partition('?')[2]}" for name in ("ada", "bob", "lead")}
        links["cell"] = base + OPEN
        mail.write_text("".join(f'<a id="{name}" href="{url}">{name}</a> ' for name, url in links.items()))
        for name, key in (("ada", "0"), ("bob", "3")):
            lead.open(mail.as_uri())
            lead.find(f"#{name}").click()
            lead.wait_for("You were given 1 query")
            lead.open(mail.as_uri())
            lead.find("#cell").click()
            lead.wait_for("HOW WELL DOES THE PASSAGE COVER EACH")
            assert lead.find(".who bdi").text == name
            lead.press_keys(key)
            lead.wait_for("grader")
        lead.open(mail.as_uri())
        lead.find("#lead").click()
        lead.wait_for("Assessors differ")
        lead.url = base
        lead.open("progress")
        # Whoever copies a link here gives one that works elsewhere.
        assert (
            lead.find("a[href^='/as?name=bob']").get_attribute("href")
            == f"{base}as?name=bob&{server.link.partition('?')[2]}"
        )
        # What only they can do is the first card.
        lead.open()
        lead.keys(Keys.ENTER)
        lead.wait_for("decide for all")
        assert "ada: 0" in lead.find(".said").text and not violations(lead)
        # A note, and one key.
        lead.press_keys("c", "half of it", Keys.ENTER, "2")
        lead.wait_for("Finished: assessors differ")
        # With nothing left the list says so, and the undo leads back to where it was.
        lead.press_keys("z")
        lead.wait_for("decide for all")
    finally:
        lead.driver.quit()
        server.kill()


def test_both_colour_schemes_are_readable_and_nothing_overflows_at_400_percent(ada: Browser, server: Server) -> None:
    # Something is on every screen: a grade overridden, items of every kind of edit.
    assessor = Assessor(server, "ada")
    assessor.post("/grade", **CELL, grade="1")
    assessor.post("/decide", **CELL, decision="override", reason="only in passing")
    assessor.post("/bank", edit="item_edit", query="q1", key="q1/a", version="0", text="What is alpha?", weight="2")
    assessor.post("/bank", edit="item_split", query="q1", key="q1/c", version="0", texts="What is c1?\nWhat is c2?")
    assessor.post("/bank", edit="item_retire", query="q1", key="q1/d", version="0")
    check_page(ada, SCREENS)


def test_the_bank_is_edited_with_the_keyboard_alone(ada: Browser, server: Server) -> None:
    """Nothing is clicked, no page is loaded: letters move, choose and edit; the tabulator goes from field to field."""

    def rows() -> list[str]:
        """The items that the page shows: text, importance, weight, and whether they wait for grades."""
        found = []
        for row in ada.driver.find_elements(By.CSS_SELECTOR, "#items tbody tr"):
            cells = [cell.text for cell in row.find_elements(By.TAG_NAME, "td")]
            if row.is_displayed():
                found.append(" ".join(filter(None, [cells[1], cells[3], cells[4], cells[5]])))
        return found

    def press(*keys: str, then: str) -> None:
        ada.press_keys(*keys)
        ada.wait_for(then)

    def select_all() -> None:
        ActionChains(ada.driver).key_down(Keys.CONTROL).send_keys("a").key_up(Keys.CONTROL).perform()

    ada.open("bank?query=q1")
    ada.driver.execute_script("window.isFirst = true")
    # A slash goes to the search, which leaves the items with all the words; Escape leaves it.
    ada.press_keys("/", "what d?")
    assert rows() == ["What is d? vital"]
    select_all()
    ada.press_keys(Keys.BACKSPACE, Keys.ESCAPE)
    # Reword, vital, a weight that is none: the error stands at the field, and what was typed stays.
    ada.press_keys("j", "e")
    select_all()
    ada.press_keys("What is alpha?")
    ada.tab_to("select[name=importance]")
    ada.press_keys("v")
    ada.tab_to("input[name=weight]")
    press("much", Keys.ENTER, then="weight: expected a number, at most 1e+100; found 'much'")
    assert ada.find("#items [name=weight]").get_attribute("aria-describedby") == ada.find(
        "#items .error"
    ).get_attribute("id")
    assert violations(ada) == []
    select_all()
    press("2.5", Keys.ENTER, then="need regrading: 1")
    assert rows()[0] == "What is alpha? vital 2.5 waits"
    assert ada.find("#saved").text.startswith("Saved: changed")
    # Okay instead, and grades stay: the space bar ticks the box. The row that was edited has the focus.
    ada.press_keys("j", "e")
    select_all()
    ada.press_keys("What is b!")
    ada.tab_to("select[name=importance]")
    ada.press_keys("o")
    ada.tab_to("#row-form [name=same_meaning]")
    ada.press_keys(Keys.SPACE)
    ada.tab_to("#row-form button")
    press(Keys.ENTER, then="What is b!")
    assert rows()[1] == "What is b! okay"
    # Split: the bar takes the texts, and begins with that of the item. One text is no split.
    ada.press_keys("j", "x", "s")
    assert ada.find("#merge-text").get_attribute("value") == "What is c?"
    ada.tab_to("#chosen [value=item_split]")
    press(Keys.ENTER, then="at least two texts")
    ada.tab_to("#merge-text")
    select_all()
    ada.press_keys("What is c1?", Keys.ENTER, "What is c2?")
    ada.tab_to("#chosen [value=item_split]")
    press(Keys.ENTER, then="need regrading: 3")
    assert rows()[2:] == ["What is c1? okay waits", "What is c2? okay waits", "What is d? vital"]
    # Merge two of them; the choice is there while others are looked for.
    ada.tab_to("#items tr:nth-child(3) input[name=merge]")
    ada.press_keys("x", "j", "x")
    assert ada.find("#count-chosen").text == "2 chosen"
    ada.press_keys("m")
    select_all()
    press("What are c1 and c2?", Keys.ENTER, then="need regrading: 2")
    # Retire two at once, take one back; the bar says what was saved.
    ada.tab_to("#items tr:nth-child(2) input[name=merge]")
    press("x", "j", "j", "x", "d", then="Saved: retired")
    assert rows() == ["What is alpha? vital 2.5 waits", "What are c1 and c2? okay waits"]
    ada.tab_to("#saved button")
    press(Keys.ENTER, then="Taken back: retired")
    ada.press_keys("z")
    ada.find("#items tbody tr:nth-child(4)")
    # Add; a text that there is already is said at the field.
    for said in ("need regrading: 3", "has an item with this text already"):
        ada.tab_to("#text-new")
        ada.press_keys("What is new?")
        ada.tab_to("#add button")
        press(Keys.ENTER, then=said)
    assert ada.has("#text-new[aria-invalid=true]")
    assert rows()[1:] == ["What is b! okay", "What are c1 and c2? okay waits", "What is d? vital", "What is new? waits"]
    # Somebody else is faster: that is said at the field, and what was typed can be sent again.
    ada.tab_to("#items tr:nth-child(4) input[name=merge]")
    ada.press_keys("e")
    bob = Assessor(server, "bob")
    bob.post("/bank", edit="item_edit", query="q1", key="q1/d", version=bob.version("q1/d"), text="What is delta?")
    select_all()
    ada.press_keys("What is D?")
    ada.tab_to("#row-form button")
    press(Keys.ENTER, then="bob was faster (changed text: What is delta?)")
    ada.tab_to("#row-form button")
    press(Keys.ENTER, then="Saved: changed")
    assert ada.driver.execute_script("return window.isFirst")
    # To an item's passages, to a grade, and back.
    ada.tab_to("#items tr:nth-child(2) input[name=merge]")
    press("o", then="Passages of the query")
    ada.tab_to("#passages a")
    press(Keys.ENTER, then="edit item")
    assert ada.driver.current_url.endswith("check?order=query&q=q1&d=d1&i=q1%2Fb")
    ada.tab_to("a[href*='/bank?item=']")
    press(Keys.ENTER, then="Passages of the query")


@pytest.mark.parametrize("highest", [10, 100])
def test_an_assessor_gives_grades_of_two_digits_with_the_keyboard(tmp_path: Path, highest: int) -> None:
    """On 0 to 10 a digit grades at once unless another may follow; of 101 grades the digits go into a field."""
    says = {"prompt_class": "Ours", "scale": [0, highest], "covers": highest - 3}
    grades = {"q1/a": highest, "q1/b": 1, "q1/c": 7}
    sets = [{**grade_set(grades), "prompt_info": says}]
    write_lines(tmp_path / "graded.jsonl.gz", [["q1", [passage("q1", "d1", sets, {"one": 1}, 2)]]])
    write_lines(tmp_path / "bank.jsonl", BANK[:1])
    running = Server(tmp_path)
    ada = Browser(tmp_path / "ada", running.link, "ada")
    ended = [] if highest == 10 else [Keys.ENTER]
    try:
        ada.open(CHECK)
        ada.driver.execute_script("window.isFirst = true")
        assert ada.has("#current input[type=number]") == (highest == 100)
        # Typed ahead, the grade of two digits and of one that others may follow.
        ada.press_keys(*str(highest), *ended, "1")
        ada.wait_for(f"grader {highest}, agreed")
        if highest == 10:
            ada.wait_for("1… the next digit, or Enter for 1")
            ada.press_keys("5")
            ada.wait_for("15 is no grade: nothing was kept")
            ada.press_keys("1")
        ada.press_keys(Keys.ENTER)
        ada.wait_for("2 of 3")
        assert ada.driver.execute_script("return window.isFirst")
        ada.press_keys("7", *ended)
        ada.wait_for("Finished: all grades, query by query")
        assert "0 to decide" in ada.find("#head").text
        # A mouse is enough, too.
        ada.open(CHECK)
        if highest == 10:
            ada.find("[data-item='q1/c'] button[value='10']").click()
        else:
            field = ada.find("[data-item='q1/c'] input[type=number]")
            field.clear()
            field.send_keys("98")
            ada.find("[data-item='q1/c'] input[type=number] + button").click()
        ada.wait_for("1 to decide")
        ada.press_keys("?")
        ada.wait_for("keep your grade where the grader's differs")
    finally:
        ada.driver.quit()
        running.kill()
    review = load_material(tmp_path / "graded.jsonl.gz", tmp_path / "bank.jsonl", Grader("model"))
    with closing(ReviewStore(tmp_path / "graded.jsonl.gz.review.sqlite", review.bank, scale=review.scale)) as store:
        said = store.snapshot().grades
        assert [said[cell]["ada"].grade for cell in review.cells] == [highest, 1, 10 if highest == 10 else 98]
