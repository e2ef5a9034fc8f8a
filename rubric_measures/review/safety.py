"""What keeps the page safe: checked Host headers, tokens in forms, a token for other machines, strict headers."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass

from rubric_measures.base.errors import InputError

__all__ = ["ANY_ADDRESS", "HEADERS", "Access", "check_bind", "host_name", "is_loopback"]

HEADERS = {
    "content-security-policy": "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
ANY_ADDRESS = ("0.0.0.0", "::")
LOCAL_NAMES = frozenset({"127.0.0.1", "localhost", "::1"})


def is_loopback(address: str) -> bool:
    """Whether only this machine can reach a server that listens at the address."""
    if address == "localhost":
        return True
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


def check_bind(address: str, allow_remote: bool, names: Iterable[str] = ()) -> frozenset[str]:
    """The names under which the server may be asked.

    Args:
        address: where the server listens.
        allow_remote: whether the user said that other machines may connect.
        names: further names of this machine.

    Raises:
        InputError: the address is not a loopback one and the user did not say so, or all addresses without any name.
    """
    given = {name.lower() for name in names}
    if is_loopback(address):
        return LOCAL_NAMES | {address.lower()} | given
    if not allow_remote:
        raise InputError(
            f"{address}: other machines could connect; allow it if they shall (they then need the token)",
            settings=("allow_remote",),
        )
    if address in ANY_ADDRESS and not given:
        raise InputError(f"{address}: name the host by which others reach this machine", settings=("host_name",))
    return LOCAL_NAMES | {address.lower()} | given


def host_name(header: str) -> str:
    """The name in a Host header, without the port and the brackets; empty where it cannot be one."""
    name = header.strip().lower()
    if name.startswith("["):
        inside, bracket, rest = name[1:].partition("]")
        return inside if bracket and (not rest or rest.startswith(":")) else ""
    return name.rpartition(":")[0] if ":" in name else name


@dataclass(frozen=True)
class Access:
    """Who may ask, and which forms are ours.

    Attributes:
        hosts: the names that a Host header may have.
        secret: makes the tokens of forms.
        token: what a browser must have shown once; None where only this machine can connect.
    """

    hosts: frozenset[str]
    secret: str
    token: str | None = None

    def _sign(self, what: str) -> str:
        return hmac.new(self.secret.encode(), what.encode("utf-8", "replace"), hashlib.sha256).hexdigest()

    def form_token(self, session: str) -> str:
        """The token that every form of a session carries."""
        return self._sign(f"form {session}")

    def is_form_token(self, session: str, given: str) -> bool:
        """Whether a form is one of the session's own."""
        return bool(session) and hmac.compare_digest(self.form_token(session).encode(), given.encode())

    def pass_of(self) -> str:
        """What the cookie of a browser holds that has shown the token; not the token itself."""
        return self._sign(f"pass {self.token}")

    def may_enter(self, shown: str, cookie: str) -> bool:
        """Whether a browser may see pages: no token is needed, or it shows the token, or it has shown it before."""
        if self.token is None:
            return True
        by_token = hmac.compare_digest(shown.encode(), self.token.encode())
        return by_token or hmac.compare_digest(cookie.encode(), self.pass_of().encode())

    def is_own_origin(self, origin: str | None) -> bool:
        """Whether an Origin header (which not every browser sends) names this server."""
        if origin is None or origin == "null":
            return origin is None
        return host_name(origin.partition("://")[2]) in self.hosts
