"""Who may open a socket, and who loses it (S2)."""

from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth import login
from django.contrib.sessions.backends.db import SessionStore
from django.http import HttpRequest

from console.access import Who, who_is_user
from console.actions.people import make_user
from console.clock import moved, now
from console.crossing import crossed
from console.live import rounds
from console.live.hub import hub
from console.live.refusals import CLOSED, SIGNED_OUT
from console.models import Actor, Role, Token, User
from lineage.actions.members import set_member
from lineage.actions.tokens import revoke_token
from tests.console.live.conftest import Connect
from tests.console.live.peers import Peer
from tests.factories import make_agent, make_root

HOST = b"127.0.0.1:8000"


def sign_in(name: str = "mira", *, superuser: bool = False) -> tuple[User, Who, str]:
    """An account, and the key of a session that it signed in with."""
    user = make_user(username=name, superuser=superuser)
    request = HttpRequest()
    request.session = SessionStore()
    login(request, user, backend="django.contrib.auth.backends.ModelBackend")
    request.session.save()
    assert request.session.session_key is not None
    return user, who_is_user(user), request.session.session_key


def browser(key: str, origin: bytes | None = b"http://127.0.0.1:8000") -> list[tuple[bytes, bytes]]:
    headers = [(b"host", HOST), (b"cookie", f"other=1; {settings.SESSION_COOKIE_NAME}={key}".encode())]
    return headers + ([(b"origin", origin)] if origin is not None else [])


async def test_a_page_of_ours_signs_in_with_its_cookie(transactional_db: None, connect: Connect) -> None:
    _, who, key = await crossed(sign_in)
    root = await crossed(make_root, who)
    peer = await connect(None, browser(key))
    assert (await peer.subscribe(f"conversation:{root.pk}"))["type"] == "snapshot"


@pytest.mark.parametrize(
    "origin",
    [
        b"https://evil.example",
        b"null",
        b"http://127.0.0.1:9000",
        b"ftp://127.0.0.1:8000",
        b"http://[::1",
        b"http://127.0.0.1.evil.example:8000",
    ],
)
async def test_a_page_of_another_site_is_refused_before_the_handshake(origin: bytes) -> None:
    peer = Peer(headers=browser("whatever", origin))
    assert (await peer.connect())[0] is False


async def test_a_trusted_origin_may_sign_in(transactional_db: None, connect: Connect, settings: Any) -> None:
    settings.CSRF_TRUSTED_ORIGINS = ["https://console.example"]
    _, _, key = await crossed(sign_in)
    await connect(None, browser(key, b"https://console.example"))


async def test_a_host_that_is_not_ours_is_refused(settings: Any) -> None:
    settings.ALLOWED_HOSTS = ["console.example"]
    peer = Peer(headers=browser("whatever"))
    assert (await peer.connect())[0] is False


@pytest.mark.parametrize("token", [None, "nobody's", ""])
async def test_who_is_not_signed_in_hears_why(token: str | None, connect: Connect) -> None:
    peer = await connect(token)
    assert await peer.hear_close() == SIGNED_OUT
    assert peer.heard[0]["error"]["code"] == "signed_out"


async def test_a_token_that_is_offered_counts_alone(transactional_db: None, connect: Connect) -> None:
    _, _, key = await crossed(sign_in)
    peer = await connect("nobody's", browser(key))
    assert await peer.hear_close() == SIGNED_OUT


async def test_an_expired_token_does_not_sign_in(transactional_db: None, connect: Connect) -> None:
    who, secret = await crossed(make_agent, await crossed(make_root))
    await crossed(Token.objects.filter(actor=who.actor).update, expires=now() - timedelta(seconds=1))
    peer = await connect(secret)
    assert await peer.hear_close() == SIGNED_OUT


async def test_a_revoked_token_closes_its_socket_at_once(transactional_db: None, connect: Connect) -> None:
    mira = (await crossed(sign_in))[1]
    root = await crossed(make_root, mira)
    (who, secret), (_, other) = await crossed(make_agent, root), await crossed(make_agent, root)
    peer, stays = await connect(secret), await connect(other)
    await peer.subscribe(f"conversation:{root.pk}")
    assert who.token is not None
    await crossed(revoke_token, who=mira, token=who.token)
    assert await peer.hear_close() == SIGNED_OUT
    assert peer.heard[-1]["error"]["code"] == "signed_out"
    assert (await stays.subscribe(f"conversation:{root.pk}"))["type"] == "snapshot"


async def test_a_lost_membership_drops_its_streams_and_no_others(transactional_db: None, connect: Connect) -> None:
    _, mira, key = await crossed(sign_in)
    owner = (await crossed(sign_in, "teo"))[1]
    mine, theirs = await crossed(make_root, mira), await crossed(make_root, owner)
    await crossed(set_member, who=owner, root=theirs.pk, actor=mira.actor, role=Role.VIEWER)
    peer = await connect(None, browser(key))
    for root in (mine, theirs):
        assert (await peer.subscribe(f"conversation:{root.pk}"))["type"] == "snapshot"
    await crossed(set_member, who=owner, root=theirs.pk, actor=mira.actor, role=None)
    frame = await peer.hear_type("error")
    assert (frame["stream"], frame["error"]["code"]) == (f"conversation:{theirs.pk}", "not_found")
    assert set(next(iter(hub().sockets)).subscriptions) == {f"conversation:{mine.pk}"}


def end_session(user: User, key: str) -> None:
    SessionStore(key).flush()


def close_actor(user: User, key: str) -> None:
    Actor.objects.filter(user=user).update(closed=now())


def deactivate(user: User, key: str) -> None:
    User.objects.filter(pk=user.pk).update(is_active=False)


def change_password(user: User, key: str) -> None:
    user.set_password("another one, longer")
    user.save()


@pytest.mark.parametrize(
    ("end", "code"),
    [(end_session, SIGNED_OUT), (change_password, SIGNED_OUT), (close_actor, CLOSED), (deactivate, CLOSED)],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
async def test_a_round_finds_what_nobody_told(end: Any, code: int, transactional_db: None, connect: Connect) -> None:
    """S2: also without Valkey. The round itself runs each 8 s."""
    assert rounds.ACCESS_S <= 10
    user, who, key = await crossed(sign_in)
    root = await crossed(make_root, who)
    peer = await connect(None, browser(key))
    await peer.subscribe(f"conversation:{root.pk}")
    await rounds.ask_for_access(hub())
    await crossed(end, user, key)
    await rounds.ask_for_access(hub())
    assert await peer.hear_close() == code
    assert not hub().sockets


async def test_tokens_that_expire_are_found_by_the_round(transactional_db: None, connect: Connect) -> None:
    who, secret = await crossed(make_agent, await crossed(make_root))
    await crossed(Token.objects.filter(actor=who.actor).update, expires=now() + timedelta(hours=1))
    peer = await connect(secret)
    await peer.subscribe(f"conversation:{who.conversation}")
    await rounds.ask_for_access(hub())
    with moved(timedelta(hours=2)):
        await rounds.ask_for_access(hub())
    assert await peer.hear_close() == SIGNED_OUT


async def test_a_superuser_sees_everything_until_it_is_none(transactional_db: None, connect: Connect) -> None:
    user, _, key = await crossed(sign_in, superuser=True)
    root = await crossed(make_root)
    peer = await connect(None, browser(key))
    assert (await peer.subscribe(f"conversation:{root.pk}"))["type"] == "snapshot"
    await crossed(User.objects.filter(pk=user.pk).update, is_superuser=False)
    await rounds.ask_for_access(hub())
    assert (await peer.hear_type("error"))["error"]["code"] == "not_found"
    assert (await peer.subscribe(f"conversation:{root.pk}"))["type"] == "error"


async def test_many_sockets_are_asked_about_in_four_queries(transactional_db: None) -> None:
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    from console.live.rights import Asker, read_standings
    from console.live.signing_in import Session

    def count(people: int) -> int:
        askers = []
        for number in range(people):
            user, who, key = sign_in(f"p{people}-{number}")
            make_root(who)
            askers.append(Asker(who=who, session=Session(key=key, hash=user.get_session_auth_hash())))
        askers.append(Asker(who=make_agent(make_root())[0], session=None))
        with CaptureQueriesContext(
            connection,
        ) as queries:
            standings = read_standings(askers)
        assert not any(standing.gone for standing in standings)
        return len(queries)

    assert (await crossed(count, 1), await crossed(count, 5)) == (4, 4)
