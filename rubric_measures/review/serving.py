"""The server of a review: where it listens, and the address that assessors open."""

from __future__ import annotations

import logging
import secrets
import socket
from collections.abc import Iterable, Sequence
from urllib.parse import quote

from rubric_measures.base.errors import InputError
from rubric_measures.base.plugins import require
from rubric_measures.review.requests import assessor_link
from rubric_measures.review.safety import ANY_ADDRESS, Access, is_loopback
from rubric_measures.review.session import Review

__all__ = ["listen", "serve"]

_LOG = logging.getLogger("rubric_measures")


def serve(
    review: Review,
    hosts: Iterable[str],
    *,
    bind: str = "127.0.0.1",
    port: int = 8642,
    token: str | None = None,
    host_name: Sequence[str] = (),
) -> None:
    """Serves a review until Ctrl-C.

    Args:
        review: what is reviewed.
        hosts: the names under which the server may be asked (`check_bind` gives them).
        bind: the address where it listens.
        port: 0 takes a free one.
        token: for other machines; None draws one where they can connect.
        host_name: names of this machine; the first is shown where it listens at all addresses.

    Raises:
        InputError: it cannot listen there.
        MissingExtraError: the server is not installed.
    """
    from rubric_measures.review.app import make_app

    require("jinja2", "review")
    uvicorn = require("uvicorn", "review")
    token = review.token = token or (None if is_loopback(bind) else secrets.token_urlsafe(24))
    app = make_app(review, Access(frozenset(hosts), review.store.secret(), token))
    listener = listen(bind, port)
    # All addresses of the machine have no name of their own that a browser elsewhere could open.
    name = host_name[0] if bind in ANY_ADDRESS else bind
    shown = f"[{name}]" if ":" in name else name
    address = f"http://{shown}:{listener.getsockname()[1]}/"
    start = address + (f"?token={quote(token)}" if token else "")
    _LOG.info("review at %s (Ctrl-C stops; everything is kept in %s)", start, review.store.path)
    for name in review.link_names:
        works = "decides what assessors differ on" if name == review.adjudicator else "works"
        _LOG.info("%s %s at %s", name, works, address + assessor_link(name, token).removeprefix("/"))
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        lifespan="off",
        server_header=False,
        # Longer than clients keep an idle connection: a server that closes first may do so under a request in flight.
        timeout_keep_alive=75,
    )
    uvicorn.Server(config).run(sockets=[listener])


def listen(address: str, port: int) -> socket.socket:
    """A socket that listens.

    Raises:
        InputError: it cannot listen there.
    """
    if not 0 <= port <= 65535:
        raise InputError(f"a port is 0 to 65535, not {port}", settings=("port",))
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    # asyncio sends small packets at once only where the protocol is named; else the end of an answer waits 40 ms for
    # the browser's word that its beginning arrived.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((address, port))
        # Before the address is printed: whoever reads it may connect at once.
        listener.listen(128)
    except OSError as error:
        listener.close()
        raise InputError(f"{address}:{port}: cannot listen there ({error.strerror or error})") from None
    return listener
