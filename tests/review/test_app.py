"""The review page over HTTP: screens, forms, safety. Browser tests are in test_browser."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from rubric_measures.cli import main
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
# How often a server is killed while three people grade.
KILLS = 3


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
    for path in ("/", "/bank", "/progress", "/export", "/person"):
        page = ada.get(path)
        assert "ada &lt;b&gt;" in page and "<b>" not in page.replace("<b>u</b>", ""), path
    page = ada.get("/check", **CELL)
    assert "<script>document" not in page and "<img" not in page
    assert "&lt;script&gt;" in page and 'dir="auto"' in page


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
    # A stranger is asked for a name, and comes back to the same cell.
    stranger = Assessor(server).client.get("/check?q=q1&d=d1&i=x")
    assert stranger.headers["location"] == "/person?then=%2Fcheck%3Fq%3Dq1%26d%3Dd1%26i%3Dx"
    for path, status in (("/check?q=q1&d=d9", 404), ("/check?q=q1&d=d1&i=no", 404)):
        assert ada.client.get(path).status_code == status


def test_grades_can_be_shown_at_once_and_are_not_blind_then(tmp_path: Path) -> None:
    running = Server(make_project(tmp_path), "--show-grades")
    try:
        ada = Assessor(running, "ada")
        page = ada.get("/check", **CELL)
        assert 'class="graders shown">4</b>' in page
        ada.post("/grade", **CELL, grade="4")
        assert "not blind" in ada.get("/check", **CELL)
        assert "There are no blind grades to compare yet" in ada.get("/progress")
    finally:
        running.kill()


def test_an_override_is_exported(server: Server, tmp_path: Path) -> None:
    ada = Assessor(server, "ada")
    ada.post("/grade", **CELL, grade="0")
    ada.post("/decide", **CELL, decision="override", reason="not said")
    out = tmp_path / "graded.jsonl.gz.review-export"
    assert out.name in ada.get("/export") and str(out / "audit.jsonl") in ada.post("/export").text
    before, after = load_graded(tmp_path / "graded.jsonl.gz"), load_graded(out / "graded.jsonl.gz")
    old, new = before[0].passages[0].exam_grades or [], after[0].passages[0].exam_grades or []
    assert new[: len(old)] == old and [entry.llm for entry in new[len(old) :]] == ["human:ada", "human:ada"]
    assert [rating.self_rating for rating in new[-2].self_ratings or []] == [0]
    assert new[-2].answers == [("q1/a", "not said")]
    audit = [json.loads(line) for line in (out / "audit.jsonl").read_text().splitlines()]
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
    assert ada.client.get("/assets/..%2Fapp.py").status_code == 404
    assert "default-src 'none'" in ada.client.get("/").headers["content-security-policy"]
    for then in ("//evil.example", "https://evil.example", "/\\evil.example", "/ä", "/\r\nset-cookie: a=b"):
        assert ada.post("/person", person="eve", then=then).headers["location"] == "/", then


def test_of_three_writers_at_a_server_that_is_killed_no_acknowledged_grade_is_lost(tmp_path: Path) -> None:
    ids = [f"q1/{number}" for number in range(20)]
    passages = [passage("q1", f"d{number}", [grade_set(dict.fromkeys(ids, 4))]) for number in range(50)]
    write_lines(tmp_path / "graded.jsonl.gz", [["q1", passages]])
    items = [{"query_id": "q1", "question_id": one, "question_text": one} for one in ids]
    write_lines(tmp_path / "bank.jsonl", [{"query_id": "q1", "items": items}])
    cells = [{"q": "q1", "d": f"d{number}", "i": one} for number in range(50) for one in ids]
    server, sent = Server(tmp_path), set[tuple[str, str, str]]()

    def write(one: Assessor, name: str, cells: list[dict[str, str]]) -> None:
        fields = {"form_token": one.token(), "order": "query", "grade": "4"}
        with contextlib.suppress(httpx.TransportError):
            for cell in cells:
                if one.client.post("/grade", data=fields | cell).status_code == 303:
                    sent.add((name, cell["d"], cell["i"]))

    for turn in range(KILLS):
        people = [(Assessor(server, name), name) for name in ("ada", "bob", "cleo")]
        writers = [threading.Thread(target=write, args=(*one, cells[turn::KILLS])) for one in people]
        before = len(sent)
        for writer in writers:
            writer.start()
        while len(sent) < before + 40:
            time.sleep(0.002)
        server.process.kill()
        for writer in writers:
            writer.join()
        server.kill()
        if turn + 1 < KILLS:
            server.start()
    material = load_material(tmp_path / "graded.jsonl.gz", tmp_path / "bank.jsonl")
    with contextlib.closing(ReviewStore(tmp_path / "graded.jsonl.gz.review.sqlite", material.bank)) as store:
        kept = {(name, *cell[1:]) for cell, said in store.snapshot().grades.items() for name in said}
    assert len(sent) >= 40 * KILLS and sent <= kept, sent - kept


def test_a_state_file_that_another_program_keeps_locked_is_said(tmp_path: Path) -> None:
    """A page that says so, and nothing is kept; once the file is free, the same form goes through."""
    folder = make_project(tmp_path)
    material = load_material(folder / "graded.jsonl.gz", folder / "bank.jsonl", Grader("model"))
    store = ReviewStore(folder / "state.sqlite", material.bank, patience=0.05)
    review = Review(material, store, str(folder / "bank.jsonl"), "ada")
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
        *(("/?order=fun", 400), ("/bank?query=q9", 400)),
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


@pytest.mark.parametrize(
    ("more", "is_said"), [([], True), (["--assessor", "bob"], True), (["--assessor", "ada"], False)]
)
def test_a_quiet_server_prints_its_link_and_which_queries_nobody_has(
    tmp_path: Path, more: list[str], is_said: bool
) -> None:
    make_project(tmp_path)
    command = ["review", str(tmp_path / "graded.jsonl.gz"), "--bank", str(tmp_path / "bank.jsonl"), "--grader", "model"]
    command += ["--bind", "127.0.0.1:0", "--assign", "bob=q2", "--quiet", *more]
    program = [sys.executable, "-m", "rubric_measures", *command]
    with subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None and "/?token=" in running.stdout.readline()
        running.send_signal(signal.SIGINT)
        said = running.communicate(timeout=60)[1]
    # Ada, who was given nothing, works on all.
    assert ("warning: 1 query (such as q1) was given to nobody: an audit waits there for good" in said) is is_said


def test_other_machines_need_a_flag_a_name_and_a_token(tmp_path: Path) -> None:
    make_project(tmp_path)
    command = ["review", str(tmp_path / "graded.jsonl.gz"), "--bank", str(tmp_path / "bank.jsonl"), "--grader", "model"]
    command += ["--bind", "0.0.0.0:0"]
    result = subprocess.run(
        [sys.executable, "-m", "rubric_measures", *command], capture_output=True, text=True, timeout=60
    )
    assert result.returncode == 2 and "--allow-remote" in result.stderr and "Traceback" not in result.stderr
    running = Server(tmp_path, "--bind", "0.0.0.0:0", "--allow-remote", "lab.example")
    try:
        # What is printed can be opened from elsewhere; the token is random.
        parts = urlsplit(running.link)
        (token,) = parse_qs(parts.query)["token"]
        assert parts.hostname == "lab.example" and len(token) >= 32
        assert Path(f"{tmp_path}/graded.jsonl.gz.review.sqlite").stat().st_mode & 0o077 == 0
        with httpx.Client(base_url=f"http://127.0.0.1:{parts.port}", timeout=60, trust_env=False) as client:
            named = {"host": f"lab.example:{parts.port}"}
            # Any account of this machine can connect to it, too, and has no token.
            for query in ("", "?token=", "?token=wrong", f"?token={token}x"):
                for path in ("/", "/bank", "/person", "/as"):
                    refused = client.get(path + query, headers=named)
                    assert refused.status_code == 403 and token not in refused.text, (path, query)
                assert client.post("/grade" + query, headers=named, data={"grade": "1"}).status_code == 403
            assert client.get(f"/?token={token}", headers={"host": "evil.example"}).status_code == 400
            # The token leaves the address at once: it would stay in the history and on the screen.
            entered = client.get("/person", params={"then": "/bank", "token": token}, headers=named)
            assert (entered.status_code, entered.headers["location"]) == (303, "/person?then=%2Fbank")
            (cookie,) = entered.headers.get_list("set-cookie")
            assert token not in cookie and "httponly" in cookie and "samesite=lax" in cookie
            for value, status in ((cookie.partition(";")[0], 200), (cookie.partition("=")[0] + "=wrong", 403)):
                client.cookies.clear()
                assert client.get("/person", headers={**named, "cookie": value}).status_code == status
    finally:
        running.kill()
