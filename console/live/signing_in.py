"""Who opens a socket: a bearer token in the subprotocols, or the session cookie of a page of ours (S2, CONTRACT)."""

from collections.abc import Mapping
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from importlib import import_module
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.auth import HASH_SESSION_KEY, get_user
from django.http import HttpRequest
from django.http.request import validate_host

from console.access import Who, who_has_token, who_is_user
from console.models import User
from console.secrets import hashed

PROTOCOL = "console.v1"
BEARER = "bearer."


@dataclass(frozen=True, kw_only=True)
class Session:
    """A signed-in browser session. `hash` changes with the password."""

    key: str
    hash: str


@dataclass(frozen=True, kw_only=True)
class SignedIn:
    who: Who
    session: Session | None = None


def is_foreign(scope: Mapping[str, Any]) -> bool:
    """Whether a page of another site opened this socket with our cookie.

    Browsers always send Origin; a client that sends none is no browser, and nobody's cookie comes to it by accident.
    """
    headers = _headers(scope)
    origin = headers.get("origin")
    if origin is None or _bearer(scope) is not None:
        return False
    if origin in settings.CSRF_TRUSTED_ORIGINS:
        return False
    host = headers.get("host", "")
    try:
        parts = urlsplit(origin)
        allowed = validate_host(_name(host), settings.ALLOWED_HOSTS or ["localhost", "127.0.0.1", "[::1]"])
    except ValueError:
        return True
    return parts.scheme not in {"http", "https"} or parts.netloc.lower() != host.lower() or not allowed


def signed_in(scope: Mapping[str, Any]) -> SignedIn | None:
    """Who it is, or none. A token that is offered counts alone, so that a bad one never falls back to a cookie."""
    bearer = _bearer(scope)
    if bearer is not None:
        who = who_has_token(hashed(bearer))
        return None if who is None else SignedIn(who=who)
    key = _session_key(_headers(scope).get("cookie", ""))
    if key is None:
        return None
    request = HttpRequest()
    request.session = import_module(settings.SESSION_ENGINE).SessionStore(key)
    user = get_user(request)
    if not isinstance(user, User) or not user.is_active or user.actor.closed is not None:
        return None
    session = Session(key=key, hash=request.session.get(HASH_SESSION_KEY, ""))
    return SignedIn(who=who_is_user(user), session=session)


def offered(scope: Mapping[str, Any]) -> str | None:
    """The subprotocol to answer with; the one that carries the token is never repeated."""
    return PROTOCOL if PROTOCOL in scope["subprotocols"] else None


def _bearer(scope: Mapping[str, Any]) -> str | None:
    for protocol in scope["subprotocols"]:
        if protocol.startswith(BEARER):
            return str(protocol[len(BEARER) :])
    return None


def _session_key(cookies: str) -> str | None:
    try:
        morsel = SimpleCookie(cookies).get(settings.SESSION_COOKIE_NAME)
    except CookieError:
        return None
    return None if morsel is None else morsel.value


def _headers(scope: Mapping[str, Any]) -> dict[str, str]:
    return {name.decode("latin1").lower(): value.decode("latin1") for name, value in scope["headers"]}


def _name(host: str) -> str:
    """The host without its port."""
    name, colon, port = host.rpartition(":")
    return name if colon and port.isdecimal() else host
