"""The review page over HTTP: screens, forms, safety. Browser tests are in test_browser."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from rubric_measures import RubricCover
from rubric_measures.cli import main
from rubric_measures.formats.banks import load_bank
from rubric_measures.measures.grade_sets import Grader
from rubric_measures.records.models import load_graded
from rubric_measures.review.app import make_app
from rubric_measures.review.queues import load_material
from rubric_measures.review.session import Review
from rubric_measures.review.store import ReviewStore, StateError
from tests.example_records import BANK, grade_set, passage, write_lines

httpx = pytest.importorskip("httpx")
pytest.importorskip("starlette")
pytest.importorskip("itsdangerous")
pytest.importorskip("uvicorn")
pytest.importorskip("jinja2")

EVIL = "<script>document.title='owned'</script> & <img src=x onerror=alert(1)> \u202e\u05e9\u05dc\u05d5\u05dd"
CELL = {"q": "q1", "d": "d1", "i": "q1/a"}


def make_project(folder: Path) -> Path:
    """The example records with a second grader that says 1 where the first says 4, and a passage of markup."""
    first = passage("q1", "d1", [grade_set({"q1/a": 4, "q1/b": 1}), grade_set({"q1/a": 1}, llm="other")], {"one": 1}, 2)
    first["text"] = EVIL
    second = passage("q1", "d2", [grade_set({"q1/a": 0, "q1/b": 5})], {"one": 2, "two": 1}, 0)
    write_lines(folder / "graded.jsonl.gz", [["q1", [first, second]], ["q2", [passage("q2", "d3", [], {"one": 1})]]])
    write_lines(folder / "bank.jsonl", BANK)
    return folder


class Server:
    """A real server process on a free port."""

    def __init__(self, folder: Path, *more: str, command: Sequence[str] = ()) -> None:
        usual = ["review", str(folder / "graded.jsonl.gz"), "--bank", str(folder / "bank.jsonl")]
        words = [*(command or usual), *([] if command or "--grader" in more else ["--grader", "model"]), *more]
        if "--bind" not in words:
            words += ["--bind", "127.0.0.1:"]
        place = words.index("--bind") + 1
        words[place] = words[place].rpartition(":")[0] + ":0"
        self.command = [sys.executable, "-m", "rubric_measures", *words]
        # What is printed, with the token; and the address alone.
        self.link = self.url = ""
        self.clients: list[httpx.Client] = []
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen(self.command, stderr=subprocess.PIPE, text=True)
        assert self.process.stderr is not None
        self.said = list[str]()
        for line in self.process.stderr:
            self.said.append(line)
            found = re.search(r"http://\S+", line)
            if found:
                self.link = found.group()
                self.url = self.link.partition("?")[0]
                return
        raise AssertionError("".join(self.said))

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        assert self.process.stderr is not None
        self.process.stderr.close()
        for client in self.clients:
            client.close()


class Assessor:
    """One browser: keeps cookies and sends the forms that the pages have; it was opened with the link, or not."""

    def __init__(self, server: Server, name: str = "", *, enters: bool = True) -> None:
        self.client = httpx.Client(base_url=server.url, timeout=120, trust_env=False)
        server.clients.append(self.client)
        if enters:
            assert self.client.get(server.link).status_code == 303
        if name:
            self.post("/person", person=name)

    def get(self, path: str, **fields: str) -> str:
        answer = self.client.get(path, params=fields or None, follow_redirects=True)
        assert answer.status_code == 200, answer.text
        return str(answer.text)

    def token(self) -> str:
        found = re.search(r'name="form_token" value="(\w+)"', self.get("/person"))
        assert found is not None
        return found.group(1)

    def post(self, path: str, **fields: object) -> httpx.Response:
        return self.client.post(path, data={"form_token": self.token(), **fields})

    def version(self, key: str, query: str = "q1") -> str:
        page = self.get("/bank", query=query)
        found = re.search(rf'name=merge value="{re.escape(key)}@(\d+)"', page)
        assert found is not None, page
        return found.group(1)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    running = Server(make_project(tmp_path))
    yield running
    running.kill()


def test_every_screen_answers_and_shows_data_as_text(server: Server) -> None:
    ada = Assessor(server, "ada <b>")
    for path in ("/", "/bank", "/impact", "/progress", "/export", "/person"):
        page = ada.get(path)
        assert "ada &lt;b&gt;" in page and "<b>" not in page.replace("<b>u</b>", ""), path
    page = ada.get("/check", **CELL)
    assert "<script>document" not in page and "<img" not in page
    assert "&lt;script&gt;" in page and 'dir="auto"' in page


def test_the_graders_grade_is_hidden_until_the_assessor_has_given_theirs(server: Server) -> None:
    ada = Assessor(server, "ada")
    assert 'class="graders' not in ada.get("/check", **CELL)
    assert ada.post("/grade", **CELL, grade="u").status_code == 303
    # Nor does a form that the page does not have take the grader's grade for the assessor's.
    refused = ada.post("/decide", **CELL, decision="accept")
    assert refused.status_code == 400 and "give your own grade" in refused.text
    assert 'class="graders' not in ada.get("/check", **CELL)
    # The page goes on to the next item, whose grade is as hidden as before.
    answer = ada.post("/grade", **CELL, grade="2")
    assert answer.headers["location"] == "/check?order=query&q=q1&d=d1&i=q1%2Fb"
    page = ada.get(answer.headers["location"])
    assert page.count('class="graders') == 1 and 'class="graders">4<' in page and "keep 2" in page
    assert 'id="to-decide" class="warn">1 to decide' in page
    # A grade that is given after the grader's was seen is marked as such.
    assert "not blind" not in page
    ada.post("/grade", **CELL, grade="3")
    assert "not blind" in ada.get("/check", **CELL)
    # Keeping one's own needs no reason; a note can be written beside it.
    assert ada.post("/decide", **CELL, decision="override").status_code == 303
    assert ada.post("/note", **CELL, note="only in passing").status_code == 303
    page = ada.get("/check", **CELL)
    assert "✓ kept 3, grader" in page and "only in passing</textarea>" in page and ">0 to decide" in page
    assert ada.post("/note", q="q1", d="d2", i="q1/a", note="x").status_code == 400


def test_grades_that_were_seen_in_a_report_are_not_blind(server: Server) -> None:
    ada = Assessor(server, "ada")
    # Whoever comes from a page that shows the grades of a passage has seen them; a reload says it no second time.
    for _ in range(2):
        answer = ada.client.get("/check?q=q1&d=d1&i=q1%2Fb&seen=1")
        assert (answer.status_code, answer.headers["location"]) == (303, "/check?order=query&q=q1&d=d1&i=q1%2Fb")
    for doc_id in ("d1", "d2"):
        ada.post("/grade", q="q1", d=doc_id, i="q1/b", grade="2")
        assert ("not blind</span>" in ada.get("/check", q="q1", d=doc_id, i="q1/b")) == (doc_id == "d1")


def test_ids_of_a_cell_stand_in_its_address(server: Server) -> None:
    ada = Assessor(server, "ada")
    page = ada.get("/check", q="q1", d="d1", i="q1/b")
    assert re.search(r'aria-current="true" data-item="q1/b"', page)
    # Of a passage alone the first item; a stranger is asked for a name, and comes back to the same cell.
    assert re.search(r'aria-current="true" data-item="q1/a"', ada.get("/check", q="q1", d="d1"))
    stranger = Assessor(server).client.get("/check?q=q1&d=d1")
    assert stranger.headers["location"] == "/person?then=%2Fcheck%3Fq%3Dq1%26d%3Dd1"
    for path, status in (("/check?q=q1&d=d9", 404), ("/check?q=q1&d=d1&i=no", 404)):
        assert ada.client.get(path).status_code == status


def test_the_models_reason_is_shown_with_its_grade_and_not_before(tmp_path: Path) -> None:
    graded = {**grade_set({"q1/a": 4}), "details": {"q1/a": {"reason": "It <b>names</b> the year."}}}
    write_lines(tmp_path / "graded.jsonl.gz", [["q1", [passage("q1", "d1", [graded], {"one": 1}, 2)]]])
    write_lines(tmp_path / "bank.jsonl", BANK)
    running = Server(tmp_path)
    try:
        ada = Assessor(running, "ada")
        assert "the year." not in ada.get("/check", **CELL)
        ada.post("/grade", **CELL, grade="4")
        page = ada.get("/check", **CELL)
        assert 'class="text quote reason">It &lt;b&gt;names&lt;/b&gt; the year.</p>' in page
    finally:
        running.kill()


def test_grades_can_be_shown_at_once_and_are_not_blind_then(tmp_path: Path) -> None:
    running = Server(make_project(tmp_path), "--show-grades")
    try:
        ada = Assessor(running, "ada")
        page = ada.get("/check", **CELL)
        assert 'class="graders shown">4</b>; <bdi>other' in page
        ada.post("/grade", **CELL, grade="4")
        assert "not blind" in ada.get("/check", **CELL)
        assert "There are no blind grades to compare yet" in ada.get("/progress")
    finally:
        running.kill()


def test_two_assessors_and_a_killed_server(server: Server, tmp_path: Path) -> None:
    ada, bob = Assessor(server, "ada"), Assessor(server, "bob")
    ada.post("/grade", **CELL, grade="1")
    bob.post("/grade", **CELL, grade="4")
    assert '✓ grader <b class="graders">4</b>, agreed' in bob.get("/check", **CELL)
    ada.post("/decide", **CELL, decision="override", reason="wrong")
    server.kill()
    server.start()
    cleo = Assessor(server, "cleo")
    page = cleo.get("/progress")
    assert '<td dir="auto">ada</td><td dir="auto">bob</td><td class="number">1, too few</td>' in page
    # 1 against 4 for ada, 4 against 4 for bob, 1 against 4 for both.
    assert page.count(">0.0 %") == 2 and page.count("100.0 %") == 1


def test_the_second_editor_sees_the_first_ones_change(server: Server) -> None:
    ada, bob = Assessor(server, "ada"), Assessor(server, "bob")
    seen = bob.version("q1/a")
    edit = {"edit": "item_edit", "query": "q1", "key": "q1/a", "gold_answers": ""}
    assert ada.post("/bank", **edit, version=seen, text="What is A really?").status_code == 303
    answer = bob.post("/bank", **edit, version=seen, text="What is alpha?")
    assert answer.status_code == 409
    assert "What is A really?" in answer.text and "What is alpha?" in answer.text and "ada" in answer.text
    assert bob.version("q1/a") == "1"
    assert bob.post("/bank", **edit, version="1", text="What is alpha?").status_code == 303
    refused = ada.post("/undo")
    assert refused.status_code == 400 and "bob changed the same item later" in refused.text
    # What was taken back is said.
    later = bob.version("q1/b")
    ada.post("/bank", edit="item_edit", query="q1", key="q1/b", version=later, text="What is B?")
    bob.post("/bank", edit="item_retire", query="q1", key="q1/b", version=bob.version("q1/b"))
    ada.post("/grade", **CELL, grade="2")
    place = ada.post("/undo", **CELL, order="query").headers["location"]
    answer = ada.client.get(place).text
    said = re.search(r'id="taken-back">.*?</div>', answer, re.DOTALL)
    assert said is not None and "Taken back: graded" in said.group() and "d1: What is a?" in said.group()
    assert "taken-back" not in bob.client.get(place).text
    for text in (">What is B?<td>", ">What is A really?<td>"):
        assert bob.post("/undo").status_code == 303
        assert text in bob.get("/bank", query="q1")


@pytest.mark.parametrize(
    ("edit", "typed", "again"),
    [
        ({"edit": "item_split", "texts": "One?\nTwo?"}, "One?\nTwo?", "Split it anyway"),
        ({"edit": "item_merge", "merge": ["q1/a@0", "q1/b@0"], "text": "Both?"}, "Both?", "Merge anyway"),
        ({"edit": "item_retire"}, "", "Retire it anyway"),
        ({"edit": "item_edit", "text": "Mine?", "gold_answers": "x", "weight": "2"}, "Mine?", "Save mine over it"),
    ],
)
def test_what_the_second_editor_typed_is_there_to_be_sent_again(
    server: Server, edit: dict[str, object], typed: str, again: str
) -> None:
    ada, bob = Assessor(server, "ada"), Assessor(server, "bob")
    ada.post("/bank", edit="item_edit", query="q1", key="q1/a", version="0", text="What is A?", importance="okay")
    answer = bob.post("/bank", query="q1", key="q1/a", version="0", **edit)
    conflict = re.search(r'<section role="alert".*?</section>', answer.text, re.DOTALL)
    assert answer.status_code == 409 and conflict is not None
    assert "What is A?</q> [okay]" in conflict.group() and typed in conflict.group() and again in conflict.group()
    # The form of the conflict carries the version that the second one has seen now.
    fields = dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', conflict.group()))
    assert fields.get("version") == "1" or "q1/a@1" in conflict.group()
    merge = re.findall(r'name="merge" value="([^"]*)"', conflict.group())
    sent = {**edit, **fields, **({"merge": merge} if merge else {})}
    assert bob.client.post("/bank", data=sent).status_code == 303
    # Once it left the bank, an edit can be added as a new item.
    if edit["edit"] == "item_retire":
        late = ada.post("/bank", edit="item_edit", query="q1", key="q1/a", version="1", text="Late?")
        assert late.status_code == 409 and "Add mine as a new item" in late.text and "Late?" in late.text


def test_edit_split_merge_retire_and_impact(server: Server, tmp_path: Path) -> None:
    ada = Assessor(server, "ada")
    ada.post("/bank", edit="item_split", query="q1", key="q1/c", version="0", texts="What is c1?\nWhat is c2?")
    ada.post("/bank", edit="item_retire", query="q1", key="q1/d", version="0")
    ada.post("/bank", edit="item_add", query="q1", text="What is new?", importance="vital", weight="2.5")
    ada.post("/bank", edit="item_merge", query="q1", merge=["q1/a@0", "q1/b@0"], text="What are a and b?")
    page = ada.get("/bank", query="q1")
    assert "need regrading: 4" in page
    # All four items of q1 wait or are gone: nothing of q1 can be scored, and the screen says so.
    assert "are not counted yet: 4" in ada.get("/impact")
    assert ada.post("/bank", edit="item_merge", query="q1", merge=["q1/a@0"], text="x").status_code == 400
    assert ada.post("/bank", edit="item_add", query="q1", text="What is new?").status_code == 400
    assert ada.post("/bank", edit="item_add", query="q1", text="y", weight="nan").status_code == 400
    assert ada.post("/undo").status_code == 303
    assert "need regrading: 3" in ada.get("/bank", query="q1")
    shown = ada.post("/export", folder="out").text
    assert "3 items in the bank need grades" in shown
    bank = load_bank(tmp_path / "out" / "bank.jsonl")
    assert [item.text for item in bank.for_query("q1")] == [
        *("What is a?", "What is b?", "What is c1?", "What is c2?", "What is new?")
    ]


def test_an_override_moves_the_leaderboard_and_is_exported(server: Server, tmp_path: Path) -> None:
    ada = Assessor(server, "ada")
    ada.post("/grade", **CELL, grade="0")
    ada.post("/decide", **CELL, decision="override", reason="not said")
    page = ada.get("/impact")
    # RubricCover(rel=4)@20, |R_q1| = 4, 3 queries: one covers a and b: (2/4)/3 = 0.1667, then b only: (1/4)/3 = 0.0833.
    assert '<td class="number">0.1667</td><td class="number">0.0833</td>' in page
    assert ada.post("/export", folder="../elsewhere").status_code == 400
    assert ada.post("/export", folder="/etc").status_code == 400
    assert ada.post("/export", folder=".").status_code == 400 or not (tmp_path / "bank.jsonl.old").exists()
    assert "audit.jsonl" in ada.post("/export", folder="out").text
    before, after = load_graded(tmp_path / "graded.jsonl.gz"), load_graded(tmp_path / "out" / "graded.jsonl.gz")
    old, new = before[0].passages[0].exam_grades or [], after[0].passages[0].exam_grades or []
    assert new[: len(old)] == old and [entry.llm for entry in new[len(old) :]] == ["human:ada", "human:ada"]
    assert [rating.self_rating for rating in new[-2].self_ratings or []] == [0]
    assert new[-2].answers == [("q1/a", "not said")]
    audit = [json.loads(line) for line in (tmp_path / "out" / "audit.jsonl").read_text().splitlines()]
    assert [(line["kind"], line["person"], line["undone"]) for line in audit] == [
        ("grade", "ada", False),
        ("decide", "ada", False),
    ]


def test_wrong_host_missing_token_and_foreign_forms_are_refused(server: Server) -> None:
    ada = Assessor(server, "ada")
    assert ada.client.get("/", headers={"host": "evil.example"}).status_code == 400
    assert ada.client.get("/assets/review.css", headers={"host": "evil.example"}).status_code == 400
    # Nor does what no screen answers, and no answer carries the name that was asked for.
    for path in ("/bank/", "/nowhere", "/check/", "/assets/", "/grade"):
        answer = ada.client.get(path, headers={"host": "evil.example"})
        assert answer.status_code == 400 and "location" not in answer.headers, path
        answer = ada.client.get(path)
        assert answer.status_code == (405 if path == "/grade" else 404) and "location" not in answer.headers, path
        assert "default-src 'none'" in answer.headers["content-security-policy"] and "<h1>" in answer.text, path
    assert ada.client.request("TRACE", "/", headers={"host": "evil.example"}).status_code == 400
    assert ada.client.get("/", headers={"host": "localhost:99"}).status_code == 200
    assert ada.client.post("/undo").status_code == 403
    assert ada.client.post("/undo", data={"form_token": "0" * 64}).status_code == 403
    assert Assessor(server).client.post("/undo", data={"form_token": ada.token()}).status_code == 403
    assert ada.client.post("/grade", content=b"x" * ((1 << 20) + 1)).status_code == 413
    assert ada.client.get("/assets/..%2Fapp.py").status_code == 404
    assert "default-src 'none'" in ada.client.get("/").headers["content-security-policy"]
    for then in ("//evil.example", "https://evil.example", "/\\evil.example", "/ä", "/\r\nset-cookie: a=b"):
        assert ada.post("/person", person="eve", then=then).headers["location"] == "/", then


def test_a_state_file_that_another_program_keeps_locked_is_said(tmp_path: Path) -> None:
    """A page that says so, and nothing is kept; once the file is free, the same form goes through."""
    folder = make_project(tmp_path)
    material = load_material(folder / "graded.jsonl.gz", folder / "bank.jsonl", Grader("model"))
    store = ReviewStore(folder / "state.sqlite", material.bank, patience=0.05)
    review = Review(material, store, [RubricCover(rel=4) @ 20], str(folder / "bank.jsonl"), folder, "ada")
    app = make_app(review, {"localhost"}, "t", "s")

    async def post(path: str, **fields: str) -> tuple[int, str]:
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            await client.get("/?token=t")
            found = re.search(r'name="form_token" value="(\w+)"', (await client.get("/person")).text)
            assert found is not None
            answer = await client.post(path, data={"form_token": found.group(1), **fields})
            return answer.status_code, answer.text

    other = sqlite3.connect(folder / "state.sqlite", isolation_level=None)
    try:
        other.execute("begin immediate")
        for path, fields in (("/grade", {**CELL, "grade": "2"}), ("/undo", {})):
            status, text = asyncio.run(post(path, **fields))
            assert status == 503 and "another program keeps it locked" in text and "was not kept" in text
        with pytest.raises(StateError, match=r"state\.sqlite: another program keeps it locked"):
            store.undo("ada")
        other.execute("rollback")
        assert asyncio.run(post("/grade", **CELL, grade="2"))[0] == 303
        assert [event.payload["grade"] for event in store.events()] == [2]
    finally:
        other.close()
        store.close()


def test_wrong_addresses_are_one_line_not_a_traceback(server: Server) -> None:
    ada = Assessor(server, "ada")
    for path, status in [
        *(("/?order=fun", 400), ("/?query=q9", 400), ("/bank?query=q9", 400)),
        *(("/check?q=q9&d=d1&i=q1/a", 404), ("/check?q=q1&d=d1&i=nothing", 404), ("/nowhere", 404)),
    ]:
        assert ada.client.get(path).status_code == status, path
    assert ada.post("/grade", **CELL, grade="6").status_code == 400
    assert ada.post("/decide", **CELL, decision="accept").status_code == 400


def test_what_goes_wrong_with_a_connection_is_no_traceback(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = make_project(tmp_path)
    command = ["review", str(folder / "graded.jsonl.gz"), "--bank", str(folder / "bank.jsonl"), "--grader", "model"]
    assert main([*command, "--bind", "127.0.0.1:99999"]) == 2
    assert "a port is 0 to 65535" in capsys.readouterr().err
    running = Server(folder, "--assign", "human:ada=q1", "--assessor", "human:zoe")
    try:
        # A client that goes in the middle of a form.
        parts = urlsplit(running.url)
        with socket.create_connection((str(parts.hostname), parts.port or 0)) as client:
            head = f"POST /grade HTTP/1.1\r\nHost: {parts.netloc}\r\nContent-Length: 1000\r\n\r\nq=q1"
            client.sendall(head.encode())
        # Ada's link makes this browser hers; the prefix of her grades is no part of her name.
        ada = Assessor(running)
        assert "You are ada; change" in ada.get("/as", name="ada")
        page = ada.get("/progress")
        assert "0 of 4" in page and 'href="/as?name=ada&amp;token=' in page
        assert ada.client.get("/as?name=eve").status_code == 404
        assert "You are zoe; change" in Assessor(running).get("/")
        assert "review.css" in ada.client.get("/nowhere").text
        ada.client.close()
        running.process.send_signal(signal.SIGINT)
        said = running.process.communicate(timeout=60)[1]
        assert "Traceback" not in said, said
    finally:
        running.kill()


def test_other_machines_need_a_flag_and_a_token(tmp_path: Path) -> None:
    make_project(tmp_path)
    command = ["review", str(tmp_path / "graded.jsonl.gz"), "--bank", str(tmp_path / "bank.jsonl"), "--grader", "model"]
    command += ["--bind", "0.0.0.0:0"]
    result = subprocess.run([sys.executable, "-m", "rubric_measures", *command], capture_output=True, text=True)
    assert result.returncode == 2 and "--allow-remote" in result.stderr and "Traceback" not in result.stderr
    running = Server(tmp_path)
    try:
        # Any account of this machine can connect to it, and has no token.
        assessor = Assessor(running, enters=False)
        for path in ("/", "/bank", "/?token=wrong", "/as?name=ada"):
            assert assessor.client.get(path).status_code == 403, path
        assert assessor.client.post("/grade", data={**CELL, "grade": "1"}).status_code == 403
        assert Path(f"{tmp_path}/graded.jsonl.gz.review.sqlite").stat().st_mode & 0o077 == 0
        # The token leaves the address at once: it would stay in the history and on the screen.
        (token,) = parse_qs(urlsplit(running.link).query)["token"]
        answer = assessor.client.get("/person", params={"then": "/bank", "token": token})
        assert (answer.status_code, answer.headers["location"]) == (303, "/person?then=%2Fbank")
        assert assessor.client.get("/person").status_code == 200
    finally:
        running.kill()


def _own_address() -> str:
    """The address by which other machines reach this one; loopback where it has none. Nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return "127.0.0.1"
        return str(probe.getsockname()[0])


def test_a_server_for_other_machines_answers_them_with_the_token_only(tmp_path: Path) -> None:
    make_project(tmp_path)
    own = _own_address()
    running = Server(tmp_path, "--bind", "0.0.0.0:0", "--allow-remote", "lab.example")
    try:
        parts = urlsplit(running.link)
        # What is printed can be opened from elsewhere; the token is random.
        assert parts.hostname == "lab.example"
        (token,) = parse_qs(parts.query)["token"]
        assert len(token) >= 32
        for address in {"127.0.0.1", own}:
            with httpx.Client(base_url=f"http://{address}:{parts.port}", timeout=60, trust_env=False) as client:
                named = {"host": f"lab.example:{parts.port}"}
                for query in ("", "?token=", "?token=wrong", f"?token={token}x"):
                    for path in ("/", "/bank", "/person"):
                        refused = client.get(path + query, headers=named)
                        assert refused.status_code == 403, (path, query)
                        (line,) = re.findall(r"<p .*?>(.*)</p>", refused.text)
                        assert line.startswith("Open the address with the token") and token not in refused.text
                    assert client.post("/grade" + query, headers=named, data={"grade": "1"}).status_code == 403
                assert client.get(f"/?token={token}", headers={"host": "evil.example"}).status_code == 400
                entered = client.get(f"/?token={token}", headers=named)
                assert (entered.status_code, entered.headers["location"]) == (303, "/")
                (cookie,) = entered.headers.get_list("set-cookie")
                assert token not in cookie and "httponly" in cookie and "samesite=lax" in cookie
                cookies = {"cookie": cookie.partition(";")[0]}
                assert client.get("/person", headers={**named, **cookies}).status_code == 200
                cookies["cookie"] = cookie.partition("=")[0] + "=wrong"
                assert client.get("/person", headers={**named, **cookies}).status_code == 403
    finally:
        running.kill()


def test_impact_hides_grades_from_those_who_have_not_graded(server: Server) -> None:
    ada, bob = Assessor(server, "ada"), Assessor(server, "bob")
    ada.post("/grade", **CELL, grade="2")
    ada.post("/decide", **CELL, decision="override", reason="only half of it")
    assert '<td class="number">4</td><td class="number">2</td>' in ada.get("/impact")
    page = bob.get("/impact")
    assert (
        "1 changed grade is hidden until" in page and '<td class="number">4</td><td class="number">2</td>' not in page
    )
    assert "What is a?" not in page
    bob.post("/grade", **CELL, grade="3")
    assert "hidden until" not in bob.get("/impact") and "What is a?" in bob.get("/impact")
