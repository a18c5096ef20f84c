"""The HTTP calls on documents (CONTRACT)."""

import asyncio
import json
from typing import Any
from unittest import mock

import pytest
from asgiref.sync import sync_to_async
from django.db import connection
from django.test import AsyncClient, Client
from hypothesis import given, settings
from hypothesis import strategies as st

from console.crossing import crossed
from console.models import Role
from documents import reading
from documents.edits import Edit
from documents.models import Document
from documents.reading import LONGEST_PAGE, read_document, read_text
from lineage.models import Conversation
from tests.factories import change, make_agent, make_document, make_fork, make_person, make_root, say

# Edits cross to a thread with a connection of its own, which sees only what is committed.
pytestmark = pytest.mark.django_db(transaction=True)


def scene(text: str = "one\ntwo\n") -> tuple[Client, Document]:
    """A script of an operator, and a document of its root."""
    root = make_root()
    who, secret = make_agent(root, "script", role=Role.OPERATOR)
    return Client(headers={"Authorization": f"Bearer {secret}"}), make_document(who, root.pk, text)


def post(client: Client, path: str, body: Any) -> Any:
    return client.post(path, json.dumps(body), content_type="application/json")


def edit(client: Client, document: int, old: str, new: str, **more: Any) -> Any:
    body = {"edits": [{"old_string": old, "new_string": new}], **more}
    return post(client, f"/api/documents/{document}/edits", body)


def test_make_read_and_edit() -> None:
    client, document = scene()
    made = post(client, f"/api/conversations/{document.root_id}/documents", {"title": "Plan", "text": "a\r\nb"})
    assert made.status_code == 200
    number = made.json()["id"]
    assert made.json() == {"id": number, "revision": 0}
    assert edit(client, number, "b", "c", request_id="r1").json() == {"revision": 1, "document": number}
    read = client.get(f"/api/documents/{number}").json()
    assert (read["id"], read["title"], read["revision"], read["text"]) == (number, "Plan", 1, "a\r\nc")
    older = client.get(f"/api/documents/{number}?revision=0").json()
    assert (older["revision"], older["newest"], older["text"]) == (0, 1, "a\r\nb")
    for revision in (2, -1, 10**30):
        assert client.get(f"/api/documents/{number}?revision={revision}").status_code == 404


def test_a_document_without_text_can_be_edited() -> None:
    client, document = scene()
    made = post(client, f"/api/conversations/{document.root_id}/documents", {"title": "Empty"}).json()
    assert edit(client, made["id"], "\n", "Hello\n").status_code == 200


def test_a_repeat_gives_the_first_result() -> None:
    client, document = scene()
    assert edit(client, document.pk, "one", "1", request_id="r1").json()["revision"] == 1
    assert edit(client, document.pk, "two", "2", request_id="r1").json()["revision"] == 1
    path = f"/api/conversations/{document.root_id}/documents"
    first = post(client, path, {"title": "Plan", "request_id": "r2"}).json()
    assert post(client, path, {"title": "Other", "request_id": "r2"}).json() == first
    assert client.get(f"/api/documents/{document.pk}").json()["text"] == "1\ntwo\n"


def test_a_refused_edit_says_what_is_wrong_and_where() -> None:
    client, document = scene("ship it\nship it\n")
    answer = edit(client, document.pk, "ship", "sail")
    assert answer.status_code == 422
    error = answer.json()["error"]
    assert (error["code"], error["ordinal"], error["matches"], error["lines"]) == ("ambiguous", 1, 2, [1, 2])
    assert error["revision"] == 0
    error = edit(client, document.pk, "shipped it", "x").json()["error"]
    assert (error["code"], error["nearest"]["line"]) == ("absent", 1)
    assert edit(client, document.pk, "ship it\nship", "x").json()["revision"] == 1


@pytest.mark.parametrize("field", ["old_string", "new_string"])
def test_an_unpaired_surrogate_is_answered_by_its_name(field: str) -> None:
    """D6: legal JSON, but no text; no answer repeats it."""
    client, document = scene()
    body = json.dumps({"edits": [{"old_string": "one", "new_string": "1"} | {field: "one\ud800"}]})
    assert "\\ud800" in body
    answer = client.post(f"/api/documents/{document.pk}/edits", body, content_type="application/json")
    assert answer.status_code == 422
    error = answer.json()["error"]
    assert (error["code"], error["ordinal"], error["field"]) == ("invalid_text", 1, field)
    assert b"ud800" not in answer.content
    made = client.post(
        f"/api/conversations/{document.root_id}/documents", '{"title": "P", "text": "\\udc00"}', "application/json"
    )
    assert made.json()["error"]["code"] == "invalid_text"
    named = client.post(
        f"/api/documents/{document.pk}/edits",
        '{"edits": [{"old_string": "one", "new_string": "1"}], "request_id": "\\udc00"}',
        content_type="application/json",
    )
    assert named.json()["error"]["field"] == "request_id"


@pytest.mark.parametrize(
    ("body", "status", "field"),
    [
        ("{", 400, None),
        ("[]", 422, "body"),
        ("{}", 422, "body"),
        ('{"edits": [{"old_string": "one"}]}', 422, "edits[0]"),
        ('{"edits": [{"old_string": "one", "new_string": 7}]}', 422, "edits[0].new_string"),
        ('{"edits": [{"old_string": "one", "new_string": 7}], "x": "\\ud800"}', 422, "edits[0].new_string"),
    ],
)
def test_a_wrong_body_names_its_place(body: str, status: int, field: str | None) -> None:
    client, document = scene()
    answer = client.post(f"/api/documents/{document.pk}/edits", body, content_type="application/json")
    assert (answer.status_code, answer.json()["error"].get("field")) == (status, field)


def test_no_edits_are_refused() -> None:
    client, document = scene()
    answer = post(client, f"/api/documents/{document.pk}/edits", {"edits": []})
    assert (answer.status_code, answer.json()["error"]["code"]) == (422, "no_edits")


def test_batches_in_pages() -> None:
    client, document = scene("0")
    for n in range(5):
        edit(client, document.pk, str(n), str(n + 1), request_id=f"r{n}")
    path = f"/api/documents/{document.pk}/batches"
    first = client.get(f"{path}?limit=2").json()
    assert [item["seq"] for item in first["items"]] == [1, 2]
    item = first["items"][0]
    assert set(item) == {"seq", "kind", "author", "request_id", "edits", "revision", "time", "head"}
    assert (item["kind"], item["request_id"]) == ("edits", "r0")
    assert item["edits"] == [{"old_string": "0", "new_string": "1"}]
    assert item["author"]["name"] == "script"
    second = client.get(f"{path}?after={first['next']}&limit=2").json()
    third = client.get(f"{path}?after={second['next']}&limit=2").json()
    assert [item["seq"] for item in second["items"] + third["items"]] == [3, 4, 5]
    assert third["next"] is None
    assert client.get(f"{path}?after=5").json() == {"items": [], "next": None}
    for limit in (0, LONGEST_PAGE + 1):
        assert client.get(f"{path}?limit={limit}").json()["error"]["code"] == "invalid"
    assert client.get(f"{path}?limit={LONGEST_PAGE}").status_code == 200


def test_a_page_of_large_batches_ends_early() -> None:
    """Nothing is cut in silence: `next` says that more follow."""
    client, document = scene("0")
    for n in range(3):
        edit(client, document.pk, str(n), str(n + 1), request_id=f"r{n}")
    one = len('[{"old_string":"0","new_string":"1"}]')
    path = f"/api/documents/{document.pk}/batches"
    for room, expected in ((2 * one, ([1, 2], "2")), (2 * one - 1, ([1], "1")), (1, ([1], "1"))):
        with mock.patch.object(reading, "PAGE_BYTES", room):
            found = client.get(path).json()
        assert ([item["seq"] for item in found["items"]], found["next"]) == expected
    found = client.get(path).json()
    assert ([item["seq"] for item in found["items"]], found["next"]) == ([1, 2, 3], None)


def test_authors_are_fetched_apart() -> None:
    client, document = scene("aaaa")
    mira = make_person(superuser=True)
    change(mira, document.pk, "aaaa", "aabb")
    found = client.get(f"/api/documents/{document.pk}/authors").json()
    assert found["items"] == [[document.creator_id, 2], [mira.actor, 2]]
    assert {actor["id"]: actor["name"] for actor in found["actors"]} == {
        document.creator_id: "script",
        mira.actor: mira.name,
    }
    assert client.get(f"/api/documents/{document.pk}/authors?revision=0").json()["items"] == [[document.creator_id, 4]]


def test_lists_and_forks() -> None:
    root = make_root()
    who, secret = make_agent(root, "wren")
    client = Client(headers={"Authorization": f"Bearer {secret}"})
    assert who.conversation is not None
    say(who, who.conversation, "Hello")
    shared, own = make_document(who, root.pk, title="Shared"), make_document(who, who.conversation, "a", title="Own")
    fork = make_fork(Conversation.objects.get(pk=who.conversation), 2)
    say(who, who.conversation, "more")
    assert edit(client, own.pk, "a", "b").json() == {"revision": 1, "document": own.pk}
    seen = client.get(f"/api/conversations/{fork.pk}/documents").json()
    assert [(item["id"], item["revision"], item["live"]) for item in seen["items"]] == [
        (shared.pk, 0, True),
        (own.pk, 0, False),
    ]
    read = client.get(f"/api/documents/{own.pk}?conversation={fork.pk}").json()
    assert (read["text"], read["live"], read["newest"]) == ("a", False, 0)
    done = edit(client, own.pk, "a", "fork", conversation=fork.pk).json()
    assert (done["revision"], done["document"] != own.pk) == (1, True)
    read = client.get(f"/api/documents/{own.pk}?conversation={fork.pk}").json()
    assert (read["id"], read["text"], read["live"]) == (done["document"], "fork", True)
    assert client.get(f"/api/documents/{own.pk}").json()["text"] == "b"


def test_titles() -> None:
    client, document = scene()
    path = f"/api/documents/{document.pk}"
    assert client.patch(path, '{"title": " New "}', "application/json").json() == {"id": document.pk, "title": "New"}
    assert client.get(path).json()["title"] == "New"
    assert client.patch(path, '{"title": " "}', "application/json").status_code == 422


def test_others_see_nothing() -> None:
    """R7, S2: every call, with the same answer as for what is not there."""
    client, document = scene()
    other, _ = scene()
    root, number = document.root_id, document.pk

    def calls(who: Client, root: int, number: int) -> list[tuple[int, str]]:
        answers = [
            who.get(f"/api/conversations/{root}/documents"),
            post(who, f"/api/conversations/{root}/documents", {"title": "x"}),
            who.get(f"/api/documents/{number}"),
            who.patch(f"/api/documents/{number}", '{"title": "x"}', "application/json"),
            edit(who, number, "one", "1"),
            who.get(f"/api/documents/{number}/batches"),
            who.get(f"/api/documents/{number}/authors"),
        ]
        return [(answer.status_code, answer.json().get("error", {}).get("code", "")) for answer in answers]

    assert calls(other, root, number) == calls(other, 10**9, 10**9) == [(404, "not_found")] * 7
    assert calls(client, root, number) == [(200, "")] * 7
    assert calls(Client(), root, number) == [(401, "unauthenticated")] * 7


async def test_edits_at_the_same_time() -> None:
    """D11: over HTTP too, each gets its own answer."""
    root = await crossed(make_root)
    who, secret = await crossed(make_agent, root, "script", role=Role.OPERATOR)
    document = await crossed(make_document, who, root.pk, "".join(f"<{n}>" for n in range(20)))
    client, headers = AsyncClient(), {"Authorization": f"Bearer {secret}"}

    async def send(n: int) -> int:
        body = {"edits": [{"old_string": f"<{n}>", "new_string": f"({n})"}]}
        path = f"/api/documents/{document.pk}/edits"
        answer = await client.post(path, body, content_type="application/json", headers=headers)
        assert answer.status_code == 200, answer.content
        return int(answer.json()["revision"])

    revisions = await asyncio.gather(*(send(n) for n in range(20)))
    await sync_to_async(lambda: connection.close())()  # of the thread that asked who it is
    assert sorted(revisions) == list(range(1, 21))
    text = await crossed(lambda: read_text(read_document(who=who, document=document.pk)))
    assert text == "".join(f"({n})" for n in range(20))


@settings(deadline=None, max_examples=20)
@given(st.text(max_size=20))
def test_any_text_is_answered_and_never_an_error_of_ours(text: str) -> None:
    client, document = scene("start")
    body = {"edits": [{"old_string": "start", "new_string": text}]}
    answer = post(client, f"/api/documents/{document.pk}/edits", body)
    read = client.get(f"/api/documents/{document.pk}").json()["text"]
    if answer.status_code == 200:
        assert read == text
    else:
        assert (answer.status_code, read) == (422, "start")
        assert answer.json()["error"]["code"] == ("would_be_empty" if text == "" else "invalid_text")


def test_edit_is_the_shape_of_the_contract() -> None:
    assert Edit.__struct_fields__ == ("old_string", "new_string")
