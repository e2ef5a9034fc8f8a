"""The web application of the review page: routes, forms, and the screens' data; every answer is made by a template."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, parse_qsl, quote, unquote, urlencode

from rubric_measures.base.errors import InputError, RubricMeasuresError, UnknownNameError
from rubric_measures.base.plugins import require
from rubric_measures.review._pages import ASSETS, read_asset, render
from rubric_measures.review._screens import GETS, POSTS, Screen
from rubric_measures.review.requests import Asked, ScreenAnswer, error_page
from rubric_measures.review.safety import HEADERS, Access, host_name
from rubric_measures.review.session import Review
from rubric_measures.review.store import StateError

__all__ = ["make_app"]

# Bytes of a form.
_LIMIT = 1 << 20
# What a cell's address begins with: /check/QUERY/PASSAGE/ITEM.
_CELL = "/check/"
_SESSION, _PASS, _ASSESSOR = "review_session", "review_pass", "review_person"


@dataclass(frozen=True)
class _Visit:
    """One request, as far as safety is concerned."""

    path: str
    session: str
    is_new: bool
    shown_token: bool
    assessor: str


def make_app(review: Review, access: Access) -> Any:
    """The application (ASGI).

    Raises:
        MissingExtraError: the extra `review` is not installed.
    """
    applications = require("starlette.applications", "review")
    routing = require("starlette.routing", "review")
    routes = [routing.Route("/assets/{name}", _asset, methods=["GET"])]
    for path in sorted(GETS.keys() | POSTS.keys()):
        tables = (("GET", GETS), ("HEAD", GETS), ("POST", POSTS))
        handlers = {method: table[path] for method, table in tables if path in table}
        routes.append(routing.Route(path, _endpoint(review, access, handlers), methods=[*handlers]))
    cell = _endpoint(review, access, {"GET": GETS["/check"], "HEAD": GETS["/check"]})
    routes.append(routing.Route(f"{_CELL}{{cell:path}}", cell, methods=["GET"]))
    app = applications.Starlette(routes=routes, exception_handlers={404: _refuse, 405: _refuse})
    # A redirect would be to whatever name the request calls this machine.
    app.router.redirect_slashes = False
    return _of_own_host(app, access)


def _of_own_host(app: Any, access: Access) -> Any:
    """The application for requests that call this machine by one of its names; also pages that there are not."""
    headers = require("starlette.datastructures", "review").Headers

    async def answer(scope: Any, receive: Any, send: Any) -> None:
        is_request = scope["type"] == "http"
        if is_request and host_name(headers(scope=scope).get("host", "")) not in access.hosts:
            await _refused("This server does not answer under that name.", 421)(scope, receive, send)
        else:
            await app(scope, receive, send)

    return answer


async def _refuse(_: Any, error: Any) -> Any:
    return _refused("There is no such page." if error.status_code == 404 else "Not allowed.", error.status_code)


def _response(content: str, status: int = 200, kind: str = "text/html; charset=utf-8", **headers: str) -> Any:
    responses = require("starlette.responses", "review")
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return responses.Response(
        content.encode("utf-8", "replace"), status_code=status, media_type=kind, headers={**HEADERS, **named}
    )


def _refused(text: str, status: int) -> Any:
    return _response(render("refused.html", text=text), status)


async def _asset(request: Any) -> Any:
    name = request.path_params["name"]
    if name not in ASSETS:
        return _refused("There is no such file.", 404)
    return _response(read_asset(name), kind=ASSETS[name])


def _visit(request: Any, access: Access, default_assessor: str) -> _Visit | tuple[str, int]:
    """Checks who asks; a text and a status where the answer is no."""
    cookies = request.cookies
    shown = request.query_params.get("token", "")
    if not access.may_enter(shown, cookies.get(_PASS, "")):
        return "Open the address with the token that the server printed when it was started.", 403
    session = cookies.get(_SESSION, "")
    assessor = unquote(cookies.get(_ASSESSOR, "")) or default_assessor
    return _Visit(
        request.url.path, session or secrets.token_urlsafe(24), not session, bool(access.token and shown), assessor
    )


async def _form(request: Any) -> Mapping[str, Sequence[str]] | None:
    """The fields of a form; None where it is too large."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > _LIMIT:
            return None
    return parse_qs(body.decode("utf-8", "replace"), keep_blank_values=True)


def _endpoint(review: Review, access: Access, handlers: Mapping[str, Screen]) -> Callable[[Any], Any]:
    in_thread = require("starlette.concurrency", "review").run_in_threadpool
    disconnected = require("starlette.requests", "review").ClientDisconnect

    async def answer(request: Any) -> Any:
        visit = _visit(request, access, review.default_assessor)
        if isinstance(visit, tuple):
            return _refused(*visit)
        form: Mapping[str, Sequence[str]] = {}
        if request.method == "POST":
            try:
                found = await _form(request)
            except disconnected:
                # Nobody is there to be answered, and nothing was kept.
                return _refused("The form did not arrive.", 400)
            if found is None:
                return _refused("The form is too large.", 413)
            form = found
            token = next(iter(form.get("form_token", ())), "")
            if not access.is_own_origin(request.headers.get("origin")) or not access.is_form_token(
                "" if visit.is_new else visit.session, token
            ):
                return _refused("This form did not come from this page. Go back, load the page again, and retry.", 403)
        fields = {name: values[-1] for name, values in parse_qs(request.url.query, keep_blank_values=True).items()}
        fields |= _cell_fields(request.scope)
        asked = Asked(visit.path, fields, form, visit.assessor, access.form_token(visit.session))
        if visit.shown_token and request.method == "GET":
            # The token leaves the address, which the browser keeps in its history and shows on the screen.
            kept = [pair for pair in parse_qsl(request.url.query, keep_blank_values=True) if pair[0] != "token"]
            return _finish(ScreenAnswer(redirect=visit.path + ("?" + urlencode(kept) if kept else "")), visit, access)
        if not visit.assessor and visit.path not in ("/person", "/as"):
            return _finish(ScreenAnswer(redirect="/person?" + urlencode({"then": _target(request)})), visit, access)
        return _finish(await in_thread(_answered, handlers[request.method], review, asked), visit, access)

    return answer


def _cell_fields(scope: Mapping[str, Any]) -> dict[str, str]:
    """The ids in a cell's address; a slash in an id is written %2F, which the decoded path no longer tells."""
    path = scope.get("raw_path", b"").decode("ascii", "replace").partition("?")[0]
    if not path.startswith(_CELL):
        return {}
    ids = [unquote(part) for part in path.removeprefix(_CELL).split("/")]
    return dict(zip("qdi", ids, strict=False))


def _target(request: Any) -> str:
    path = request.scope.get("raw_path", b"").decode("ascii", "replace").partition("?")[0] or request.url.path
    return path + (f"?{request.url.query}" if request.url.query else "") if request.method == "GET" else "/"


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


def _finish(answer: ScreenAnswer, visit: _Visit, access: Access) -> Any:
    headers = {"location": answer.redirect} if answer.redirect else {}
    response = _response(answer.content, 303 if answer.redirect else answer.status, **headers)
    # Not strict: whoever follows a link in a mail or in a report is who they are. Forms carry a token of their own.
    if visit.is_new:
        response.set_cookie(_SESSION, visit.session, httponly=True, samesite="lax", path="/")
    if visit.shown_token:
        response.set_cookie(_PASS, access.pass_of(), httponly=True, samesite="lax", path="/")
    if answer.assessor:
        response.set_cookie(
            _ASSESSOR, quote(answer.assessor, safe=""), httponly=True, samesite="lax", path="/", max_age=31536000
        )
    return response
