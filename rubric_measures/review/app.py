"""The application: opened, and served on this machine alone.

What keeps the page safe: checked Host headers, a token in the link, one in forms, strict headers.

The addresses of all screens.

Opening a review: records, bank and the state file of what assessors did, checked to belong together.

The web application of the review page: routes, forms, and the screens' data; every answer is made by a template.

The server of a review: where it listens, and the address that assessors open.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import os
import re
import secrets
import socket
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qs, quote, urlencode

from rubric_measures.analysis.calibration import AuditPlan
from rubric_measures.base.errors import InputError, RubricMeasuresError, UnknownNameError, tell, warn
from rubric_measures.base.files import read_text
from rubric_measures.base.json_text import Finite, stored_rows
from rubric_measures.base.plugins import require
from rubric_measures.measures.grade_sets import Grader
from rubric_measures.review import screens
from rubric_measures.review.queues import load_material
from rubric_measures.review.screens import Asked, ScreenAnswer, assessor_link, checked_assessor, error_page, render
from rubric_measures.review.session import Review, blind_grades, draw, shown_cells
from rubric_measures.review.store import ReviewStore, StateError
from rubric_measures.types.entities import bank_hash

HEADERS = {
    "content-security-policy": "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


def address_of(bind: str) -> tuple[str, int]:
    """Address and port of HOST:PORT.

    Raises:
        InputError: it is something else.
    """
    host, _, port = bind.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise InputError(f"{bind}: expected HOST:PORT; a port is 0 to 65535", settings=("bind",))
    return host, int(port)


def check_bind(bind: str, allow_remote: str | None = None) -> frozenset[str]:
    """The names under which the server may be asked.

    Args:
        bind: where the server listens, HOST:PORT.
        allow_remote: what other machines that may connect call this one; by default none may connect.

    Raises:
        InputError: the address is not a loopback one and the user did not say that others may connect.
    """
    address = address_of(bind)[0]
    is_local = address == "localhost" or re.fullmatch(r"127(\.\d+){3}", address)
    if not is_local and not allow_remote:
        text = f"{address}: other machines could connect; if they shall, say what they call this machine"
        raise InputError(text, settings=("allow_remote",))
    return frozenset({"127.0.0.1", "localhost", address.lower(), (allow_remote or "localhost").lower()})


Screen = Callable[[Review, Asked], ScreenAnswer]
# Address -> what answers.
SCREENS: dict[str, dict[str, Screen]] = {
    "/": {"GET": screens.queue},
    "/check": {"GET": screens.check},
    "/guidelines": {"GET": screens.guidelines},
    "/as": {"GET": screens.work_as},
    "/bank": {"GET": screens.bank, "POST": screens.post_bank},
    "/progress": {"GET": screens.progress},
    "/export": {"GET": screens.export, "POST": screens.post_export},
    "/person": {"GET": screens.assessor, "POST": screens.post_assessor},
    "/grade": {"POST": screens.post_grade},
    "/decide": {"POST": screens.post_decide},
    "/note": {"POST": screens.post_note},
    "/undo": {"POST": screens.post_undo},
}


def open_review(
    graded: str,
    bank: str | os.PathLike[str],
    *,
    state: str | None = None,
    grader: str | Grader | None = None,
    assessor: str = "",
    blind: bool = True,
    audit: int | None = None,
    settle: Sequence[tuple[str, str]] = (),
    level: float | None = None,
    smallest: float | None = None,
    guidelines: str | os.PathLike[str] | None = None,
    assign: Sequence[str] = (),
    adjudicator: str = "",
) -> Review:
    """Opens a review; its store is to be closed.

    Args:
        graded: the file of graded records.
        bank: the file of the test bank.
        state: the file of what assessors did; None takes one beside the records.
        grader: whose grades are reviewed, where the file has those of several graders.
        assessor: who works here when the browser does not say.
        blind: the grader's grade is hidden until the assessor has given theirs.
        audit: how many passages the audit has, five items of each (50). What is said here and in the next four stays
            for the whole audit, also where it is not said again.
        settle: pairs of runs whose difference in the mean share of items that a passage covers the audit is to settle;
            it asks then only for passages that matter to it.
        level: with what probability all that an audit calls settled is right, however often one looks (0.95).
        smallest: a difference below it does not matter: such runs are settled, too.
        guidelines: a file of instructions for assessors, in Markdown; None for none.
        assign: `NAME=QUERIES` of each assessor who works on some queries only, see `parse_assignments`.
        adjudicator: who decides what assessors differ on.

    Raises:
        InputError: a file cannot be read, the state belongs to other records or another bank, or runs are to be settled
            by grades that are not blind.
    """
    if graded == "-":
        raise InputError("review reads a file, because its state lies beside it; give a file")
    material = load_material(graded, os.fspath(bank), Grader.parse(grader))
    if not material.bank.query_texts:
        warn("%s: has no texts of queries, so assessors see ids; give them in the column query_text", os.fspath(bank))
    instructions = render_markdown(read_text(guidelines)) if guidelines is not None else ""
    assignments = parse_assignments(assign, list(material.bank.items))
    path = state or f"{graded}.review.sqlite"
    name = checked_assessor(assessor) if assessor else ""
    store = ReviewStore(path, material.bank, waiting=material.waiting, scale=material.scale)
    try:
        store.belong_to(bank=bank_hash(material.bank), grader=material.grader)
        snapshot = store.snapshot()
        lost = sum(cell not in material.numbers for cell in snapshot.grades)
        if lost:
            raise InputError(
                f"{path}: has grades of {lost} passages and items that {graded} lacks; "
                "give the records that were reviewed, or another state file",
                settings=("state",),
            )
        begun = store.audit
        *pairs, passages, held, difference, ranks = begun or (50, 0.95, None, 20)
        numbers = stored_rows(tuple[int, Finite, Finite | None, int], [(passages, held, difference, ranks)], path)
        first = AuditPlan(tuple(stored_rows(tuple[str, str], pairs, path)), *numbers[0])
        # A pair is the same the other way round.
        wanted = tuple({frozenset(pair): (pair[0], pair[1]) for pair in reversed(settle or first.pairs)}.values())[::-1]
        said: dict[str, Any] = {"passages": audit, "level": level, "smallest": smallest}
        plan = replace(first, pairs=wanted, **{name: one for name, one in said.items() if one is not None})
        if wanted:
            if not blind:
                problem = "runs are settled by blind grades, and the grader's would be shown; leave one out"
                raise InputError(problem, settings=("settle",))
            draw(material, plan, frozenset(), frozenset())
        if begun and plan != first:
            drawn = draw(material, first, frozenset(snapshot.left), shown_cells(material, snapshot))
            if drawn.checked(blind_grades(material, snapshot)):
                # Whoever chose another plan after a look would settle what chance brought.
                of = ", ".join([f"{passages} passages", *map(" against ".join, first.pairs), f"level {held:g}"])
                begun_so = f"{path}: an audit has begun ({of}), and holds as it was planned"
                raise InputError(f"{begun_so}; go on with it, or give another state", settings=("state",))
        store.plan_audit([*plan.pairs, plan.passages, plan.level, plan.smallest, plan.cutoff])
    except BaseException:
        store.close(unused=True)
        raise
    return Review(
        material,
        store,
        os.fspath(bank),
        name,
        blind,
        plan,
        instructions,
        assignments,
        checked_assessor(adjudicator) if adjudicator else "",
    )


def render_markdown(text: str) -> str:
    """Markdown (CommonMark with tables) as HTML; markup in the text stays text.

    Raises:
        MissingExtraError: the extra `review` is not installed.
    """
    markdown = require("markdown_it", "review")
    # Pictures would come from elsewhere, which the page loads nothing from.
    parser = markdown.MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")
    return str(parser.render(text))


def parse_assignments(texts: Sequence[str], queries: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """assessor -> the queries that they were given, in the order of the bank.

    Args:
        texts: `NAME=QUERIES` each; queries are ids, or `FIRST-LAST` in the order of the bank, with commas between. A
            name may come again.
        queries: the ids of the bank's queries, in its order.

    Raises:
        InputError: no name or no such query.

    >>> parse_assignments(["ada=q1-q2", "bob=q2,q3"], ["q1", "q2", "q3"])
    {'ada': ('q1', 'q2'), 'bob': ('q2', 'q3')}
    """
    given: dict[str, set[str]] = {}
    for text in texts:
        name, sign, ids = text.partition("=")
        if not sign or not ids.strip():
            raise InputError(f"{text!r} assigns nothing; expected NAME=QUERIES, as ada=q1-q10", settings=("assign",))
        given.setdefault(checked_assessor(name), set()).update(
            *(_span(part.strip(), queries) for part in ids.split(",") if part.strip())
        )
    return {name: tuple(one for one in queries if one in ids) for name, ids in given.items()}


def _span(part: str, queries: Sequence[str]) -> Sequence[str]:
    """The queries that a part of an assignment names: one, or those from a first to a last one."""
    if part in queries:
        return [part]
    # Ids may have hyphens of their own.
    for at in (place for place, char in enumerate(part) if char == "-"):
        first, last = part[:at], part[at + 1 :]
        if first in queries and last in queries and queries.index(first) <= queries.index(last):
            return queries[queries.index(first) : queries.index(last) + 1]
    raise InputError(f"the bank has no query {part!r}, nor queries from and to of that name", settings=("assign",))


def make_app(review: Review, hosts: Iterable[str], token: str, secret: str) -> Any:
    """The application (ASGI).

    Args:
        review: what is reviewed.
        hosts: the names that a Host header may have.
        token: what a browser must show once.
        secret: signs the sessions of browsers.

    Raises:
        MissingExtraError: the extra `review` is not installed.
    """
    require("itsdangerous", "review")
    routing = require("starlette.routing", "review")
    wrapped = require("starlette.middleware", "review").Middleware
    trusted = require("starlette.middleware.trustedhost", "review").TrustedHostMiddleware
    sessions = require("starlette.middleware.sessions", "review").SessionMiddleware
    # Browsers keep no cookies apart by port: reviews that run side by side have one each.
    cookie = f"review_{hashlib.sha256(secret.encode()).hexdigest()[:8]}"
    packages = [("rubric_measures.review", "static"), ("rubric_measures.pages", "templates")]
    static = require("starlette.staticfiles", "review").StaticFiles(packages=packages)
    routes = [routing.Mount("/assets", static)]
    # Starlette lets whoever may get a page ask for its head.
    for path, handlers in SCREENS.items():
        routes.append(routing.Route(path, _endpoint(review, token, handlers), methods=[*handlers]))
    app = require("starlette.applications", "review").Starlette(
        routes=routes,
        exception_handlers={404: _refuse, 405: _refuse},
        middleware=[
            wrapped(require("starlette.middleware.base", "review").BaseHTTPMiddleware, dispatch=_with_headers),
            wrapped(trusted, allowed_hosts=sorted(hosts), www_redirect=False),
            # Not strict: whoever follows a link in a mail or in a report is who they are. Forms carry a token.
            wrapped(sessions, secret_key=secret, session_cookie=cookie, max_age=31_536_000),
        ],
    )
    # A redirect would be to whatever name the request calls this machine.
    app.router.redirect_slashes = False
    return app


async def _with_headers(request: Any, answered: Any) -> Any:
    """What the application answers, with `HEADERS`."""
    answer = await answered(request)
    answer.headers.update(HEADERS)
    return answer


async def _refuse(_: Any, error: Any) -> Any:
    return _refused("There is no such page." if error.status_code == 404 else "Not allowed.", error.status_code)


def _refused(text: str, status: int) -> Any:
    return _response(ScreenAnswer(render("refused.html", text=text), status))


def _response(answer: ScreenAnswer) -> Any:
    made = require("starlette.responses", "review").HTMLResponse
    if answer.redirect:
        return made("", 303, {"location": answer.redirect})
    return made(answer.content.encode("utf-8", "replace"), answer.status)


def _endpoint(review: Review, token: str, handlers: Mapping[str, Screen]) -> Callable[[Any], Any]:
    in_thread = require("starlette.concurrency", "review").run_in_threadpool
    disconnected = require("starlette.requests", "review").ClientDisconnect

    async def answer(request: Any) -> Any:
        session, path, is_form = request.session, request.url.path, request.method == "POST"
        if _is_same(request.query_params.get("token", ""), token):
            # What shows that the token was shown is also what forms carry: no other page can know it.
            session.setdefault("form_token", secrets.token_hex(24))
            if not is_form:
                # The token leaves the address, which the browser keeps in its history and shows on the screen.
                kept = [pair for pair in request.query_params.multi_items() if pair[0] != "token"]
                return _response(ScreenAnswer(redirect=path + ("?" + urlencode(kept) if kept else "")))
        if "form_token" not in session:
            return _refused("Open the address with the token that the server printed when it was started.", 403)
        form: Mapping[str, Sequence[str]] = {}
        if is_form:
            try:
                form = parse_qs((await request.body()).decode("utf-8", "replace"), keep_blank_values=True)
            except disconnected:
                # Nobody is there to be answered, and nothing was kept.
                return _refused("The form did not arrive.", 400)
            if not _is_same(next(iter(form.get("form_token", ())), ""), session["form_token"]):
                return _refused("This form did not come from this page. Go back, load the page again, and retry.", 403)
        who = session.get("assessor") or review.default_assessor
        if not who and path not in ("/person", "/as"):
            then = path + f"?{request.url.query}".rstrip("?") if request.method == "GET" else "/"
            return _response(ScreenAnswer(redirect="/person?" + urlencode({"then": then})))
        handler = handlers["GET" if request.method == "HEAD" else request.method]
        asked = Asked(path, dict(request.query_params), form, who, session["form_token"])
        made = await in_thread(_answered, handler, review, asked)
        if made.assessor:
            session["assessor"] = made.assessor
        return _response(made)

    return answer


def _is_same(given: str, known: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "replace"), known.encode())


def _answered(handler: Screen, review: Review, asked: Asked) -> ScreenAnswer:
    try:
        return handler(review, asked)
    except StateError as error:
        # Every other page would ask the same file for what it shows.
        text = f"{error}. What you sent was not kept: go back, and send it again."
        return ScreenAnswer(render("refused.html", text=text), 503)
    except UnknownNameError as error:
        return error_page(review, asked, str(error), 404)
    except (InputError, RubricMeasuresError) as error:
        return error_page(review, asked, str(error), 400)


def serve(review: Review, *, bind: str = "127.0.0.1:8642", allow_remote: str | None = None) -> None:
    """Serves a review until Ctrl-C.

    Args:
        review: what is reviewed.
        bind: the address where it listens, HOST:PORT; port 0 takes a free one.
        allow_remote: let other machines connect, which need the link; it is what they call this machine.

    Raises:
        InputError: it cannot listen there, or others could connect that may not.
        MissingExtraError: the server is not installed.
    """

    require("jinja2", "review")
    uvicorn = require("uvicorn", "review")
    hosts = check_bind(bind, allow_remote)
    host, port = address_of(bind)
    review.token = review.store.secret("token")
    app = make_app(review, hosts, review.token, review.store.secret("sessions"))
    listener = listen(host, port)
    given = {query_id for queries in review.assignments.values() for query_id in queries}
    graded = dict.fromkeys(cell.query_id for cell in review.material.cells)
    # Who was given nothing works on all.
    others = review.default_assessor and review.default_assessor not in review.assignments
    left = [query_id for query_id in graded if given and not others and query_id not in given]
    text = "%d queries (such as %s) were given to nobody: an audit waits there for good; give each query to somebody"
    warn(text, len(left), *left[:1], settings=("assign",))
    # All addresses of the machine have no name of their own that a browser elsewhere could open.
    address = f"http://{allow_remote or host}:{listener.getsockname()[1]}/"
    start = f"{address}?token={quote(review.token)}"
    tell("review at %s (Ctrl-C stops; everything is kept in %s)", start, review.store.path)
    if not logging.getLogger("rubric_measures").isEnabledFor(logging.INFO):
        # Without the link nobody comes in.
        print(start, flush=True)
    for name in review.link_names:
        works = "decides what assessors differ on" if name == review.adjudicator else "works"
        tell("%s %s at %s", name, works, address + assessor_link(name, review.token).removeprefix("/"))
    # It keeps connections longer than clients do: a server that closes first may do so under a request in flight.
    quiet = {"log_config": None, "access_log": False, "server_header": False}
    config = uvicorn.Config(app, **quiet, lifespan="off", timeout_keep_alive=75)
    uvicorn.Server(config).run(sockets=[listener])


def listen(address: str, port: int) -> socket.socket:
    """A socket that listens.

    Raises:
        InputError: it cannot listen there.
    """
    # asyncio sends small packets at once only where the protocol is named; else the end of an answer waits 40 ms for
    # the browser's word that its beginning arrived.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((address, port))
        # Before the address is printed: whoever reads it may connect at once.
        listener.listen(128)
    except OSError as error:
        listener.close()
        raise InputError(f"{address}:{port}: cannot listen there ({error.strerror})", settings=("bind",)) from None
    return listener
