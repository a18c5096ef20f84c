"""Who asks, and the one shape of every refusal (CONTRACT, HTTP; R7)."""

import json
from datetime import timedelta
from typing import Any
from unittest import mock

import pytest
from django.conf import settings
from django.db import OperationalError
from django.test import Client
from psycopg_pool import PoolTimeout

from console.access import Who
from console.api import api
from console.clock import moved, now
from console.models import Actor, Role, Token, User
from lineage.models import Root
from tests.factories import make_agent, make_person, make_root

pytestmark = pytest.mark.django_db


def bearer(secret: str) -> Client:
    return Client(headers={"Authorization": f"Bearer {secret}"})


def signed_in(who: Who, *, csrf: bool = False) -> Client:
    client = Client(enforce_csrf_checks=csrf)
    client.force_login(User.objects.get(actor=who.actor))
    return client


def refusal(answer: Any, status: int) -> dict[str, Any]:
    """The refusal's facts; asserts its shape."""
    assert answer.status_code == status, answer.content
    assert answer["Content-Type"].startswith("application/json")
    body = json.loads(answer.content)
    assert list(body) == ["error"]
    assert isinstance(body["error"]["code"], str)
    assert body["error"]["message"].endswith((".", "…"))
    return dict(body["error"])


def post(client: Client, path: str, body: Any) -> Any:
    return client.post(path, json.dumps(body), content_type="application/json")


def test_a_token_sees_its_root() -> None:
    root = make_root()
    _, secret = make_agent(root)
    answer = bearer(secret).get("/api/roots")
    assert [item["id"] for item in answer.json()["items"]] == [root.pk]
    assert refusal(Client().get("/api/roots"), 401)["code"] == "unauthenticated"


def test_a_bad_token_is_refused_even_beside_a_good_session() -> None:
    mira = make_person()
    make_root(mira)
    client = signed_in(mira)
    assert client.get("/api/roots").status_code == 200
    answer = client.get("/api/roots", headers={"Authorization": "Bearer nonsense"})
    assert refusal(answer, 401)["code"] == "unauthenticated"
    assert answer["WWW-Authenticate"] == "Bearer"


@pytest.mark.parametrize("end", ["revoked", "expired", "closed"])
def test_tokens_end(end: str) -> None:
    who, secret = make_agent(make_root())
    assert who.token is not None
    client = bearer(secret)
    assert client.get("/api/roots").status_code == 200
    if end == "revoked":
        Token.objects.filter(pk=who.token).update(revoked=now())
    elif end == "closed":
        Actor.objects.filter(pk=who.actor).update(closed=now())
    else:
        Token.objects.filter(pk=who.token).update(expires=now() + timedelta(days=1))
        assert client.get("/api/roots").status_code == 200
    with moved(timedelta(days=2)):
        refusal(client.get("/api/roots"), 401)


def test_sessions_end_with_their_account() -> None:
    mira = make_person()
    client = signed_in(mira)
    assert client.get("/api/roots").status_code == 200
    Actor.objects.filter(pk=mira.actor).update(closed=now())
    refusal(client.get("/api/roots"), 401)


def test_a_cookie_needs_csrf_to_write_and_a_token_does_not() -> None:
    """S3."""
    mira = make_person()
    root = make_root(mira)
    client = signed_in(mira, csrf=True)
    assert client.get("/api/roots").status_code == 200
    assert refusal(post(client, "/api/roots", {"title": "Other"}), 403)["code"] == "csrf"
    client.get("/signin/")
    key = "x" * 32
    client.cookies[settings.CSRF_COOKIE_NAME] = key
    answer = client.post("/api/roots", '{"title": "Other"}', "application/json", headers={"X-CSRFToken": key})
    assert answer.status_code == 200
    _, secret = make_agent(root)
    writing = Client(enforce_csrf_checks=True, headers={"Authorization": f"Bearer {secret}"})
    entries = {"entries": [{"kind": "turn_end"}]}
    assert post(writing, f"/api/conversations/{root.pk}/entries", entries).status_code == 200
    refusal(post(Client(enforce_csrf_checks=True), "/api/roots", {"title": "Other"}), 401)


def test_refusals_of_actions_have_their_status() -> None:
    root = make_root()
    (_, viewer), (_, agent) = make_agent(root, role=Role.VIEWER), make_agent(root)
    entries = {"entries": [{"kind": "turn_end"}]}
    path = f"/api/conversations/{root.pk}/entries"
    assert refusal(post(bearer(viewer), path, entries), 403) == {
        "code": "forbidden",
        "message": "You may read here, but not write. Ask an owner of the root for the role operator.",
        "role": "viewer",
    }
    assert post(bearer(agent), path, entries).status_code == 200
    assert refusal(bearer(agent).get("/api/conversations/999999"), 404)["code"] == "not_found"


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"{", 400, "not_json"),
        (b"\xff", 400, "not_json"),
        (b'{"title": ' + b"[" * 100_000, 400, "not_json"),
        (b"[]", 422, "invalid"),
        (b"{}", 422, "invalid"),
        (b'{"title": 7}', 422, "invalid"),
    ],
)
def test_bodies_that_are_not_understood(body: bytes, status: int, code: str) -> None:
    client = signed_in(make_person())
    found = refusal(client.post("/api/roots", body, content_type="application/json"), status)
    assert found["code"] == code
    assert client.post("/api/roots", b'{"title": "Plan"}', content_type="application/json").status_code == 200


def test_a_wrong_body_names_the_places() -> None:
    client = signed_in(make_person())
    found = refusal(post(client, "/api/roots", {"title": None, "folder": 3}), 422)
    assert found["field"] == "body.body.title"
    assert [place["field"] for place in found["errors"]] == ["body.body.title", "body.body.folder"]


def test_a_body_has_a_size() -> None:
    client = signed_in(make_person())
    body = json.dumps({"title": "x" * 100})
    with mock.patch.object(settings, "DATA_UPLOAD_MAX_MEMORY_SIZE", len(body) - 1):
        found = refusal(client.post("/api/roots", body, content_type="application/json"), 413)
    assert (found["code"], found["limit"], found["actual"]) == ("body_too_large", len(body) - 1, len(body))
    assert client.post("/api/roots", body, content_type="application/json").status_code == 200


def test_addresses_and_methods_that_are_not_there() -> None:
    client = signed_in(make_person())
    for path in ("/api/nothing", "/api/roots/1/nothing", "/api/conversations/x/y"):
        refusal(client.get(path), 404)
    answer = client.delete("/api/roots")
    assert refusal(answer, 405)["code"] == "method_not_allowed"
    assert set(answer["Allow"].split(", ")) == {"GET", "POST"}


@pytest.mark.parametrize(
    ("cause", "code"), [(PoolTimeout("no connection"), "busy"), (None, "unavailable")], ids=["pool", "down"]
)
def test_a_database_that_does_not_answer_is_a_503(cause: Exception | None, code: str) -> None:
    client = signed_in(make_person())
    error = OperationalError("no connection")
    error.__cause__ = cause
    with mock.patch("lineage.api.visible_roots", side_effect=error):
        assert refusal(client.get("/api/roots"), 503)["code"] == code
    assert client.get("/api/roots").status_code == 200


def test_a_fault_of_ours_has_the_shape_too() -> None:
    client = signed_in(make_person())
    client.raise_request_exception = False
    with mock.patch("lineage.api.visible_roots", side_effect=ZeroDivisionError("secret")):
        found = refusal(client.get("/api/roots"), 500)
    assert (found["code"], "secret" in found["message"]) == ("internal", False)
    client.raise_request_exception = True
    with mock.patch("lineage.api.visible_roots", side_effect=ZeroDivisionError), pytest.raises(ZeroDivisionError):
        client.get("/api/roots")


def test_the_api_describes_itself() -> None:
    """Its page loads nothing from elsewhere."""
    page = Client().get("/api/docs")
    assert page.status_code == 200
    assert b"http" not in page.content.replace(b"http://testserver", b"")
    described = Client().get("/api/openapi.json").json()
    assert {"/api/roots", "/api/documents/{document}/edits"} <= set(described["paths"])
    body = described["paths"]["/api/documents/{document}/edits"]["post"]["requestBody"]
    properties = body["content"]["application/json"]["schema"]["properties"]
    assert set(properties["edits"]["items"]["properties"]) == {"old_string", "new_string"}


def test_roots_are_only_those_of_the_asker() -> None:
    make_root()
    mira = make_person()
    assert [root["title"] for root in signed_in(mira).get("/api/roots").json()["items"]] == []
    root = make_root(mira, "Hers")
    assert [item["id"] for item in signed_in(mira).get("/api/roots").json()["items"]] == [root.pk]
    assert Root.objects.count() == 2


def test_each_call_is_described_once(capsys: pytest.CaptureFixture[str]) -> None:
    """`/api/docs` would list a call twice whose router was added twice; ninja only warns."""
    described = api.get_openapi_schema()
    assert "already used" not in "".join(capsys.readouterr())
    assert "/api/transcripts/claude" in described["paths"]
