"""Approvals and requests over HTTP and on their pages (A1, A3, C1)."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from console.access import Who
from console.board.keeping import fold_touched
from console.models import Role, User
from console.shown import thin
from lineage.actions.members import set_member
from lineage.approvals import DIFF_CHARACTERS
from lineage.models import Approval, Conversation, Rule
from tests.factories import make_agent, make_person, make_root
from tests.lineage.agent.conftest import model
from tests.lineage.agent.fakemodel import FakeModel
from tests.lineage.agent.test_approvals import EDIT, calls, command
from tests.lineage.agent.test_turns import ask
from tests.lineage.working import work

__all__ = ["model"]  # a fixture

pytestmark = pytest.mark.django_db


def client_of(who: Who) -> Client:
    client = Client()
    client.force_login(User.objects.get(actor=who.actor))
    return client


@pytest.fixture
def mira() -> Who:
    return make_person("mira")


@pytest.fixture
def conversation(model: FakeModel, mira: Who, tmp_path: Path) -> Conversation:
    """One edit and one command wait in it."""
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    found = make_root(mira, folder=str(tmp_path)).conversation
    calls(model, EDIT, command("rm -r <b>"))
    ask(mira, found)
    work()
    return found


def post(client: Client, url: str, body: dict[str, Any]) -> Any:
    return client.post(url, json.dumps(body), content_type="application/json")


def test_the_queue_over_http(conversation: Conversation, mira: Who) -> None:
    client = client_of(mira)
    answer = client.get("/api/approvals?status=waiting").json()
    assert answer["next"] is None
    edit, run = answer["items"]
    assert (edit["tool"], edit["line"], edit["conversation"]) == ("edit_file", "edit_file a.txt +1 −1", conversation.pk)
    assert edit["path"] == [{"id": conversation.pk, "title": "Checkout service"}]
    assert run["preview"]["command"] == "rm -r <b>"
    assert client.get("/api/approvals?status=other").status_code == 422
    assert client_of(make_person("stranger")).get("/api/approvals").json()["items"] == []
    _, secret = make_agent(conversation.root)
    asked = Client(headers={"Authorization": f"Bearer {secret}"}).get("/api/approvals")
    assert len(asked.json()["items"]) == 2


def test_the_header_leads_to_the_queue(conversation: Conversation, mira: Who) -> None:
    while fold_touched():
        pass
    frame = client_of(mira).get("/").context["frame"]
    assert (frame.need, frame.need_url) == (1, "/approvals/")
    assert client_of(mira).get("/approvals/").context["frame"].tab == "need"


def test_a_long_diff_is_read_to_its_end(model: FakeModel, mira: Who, tmp_path: Path) -> None:
    """Nothing is cut in silence: what is shown of how much, and a way to the rest."""
    found = make_root(mira, folder=str(tmp_path)).conversation
    text = "".join(f"line {number} é <b>\n" for number in range(9_000))
    calls(model, {"name": "edit_file", "arguments": {"path": "new.txt", "old_string": "", "new_string": text}})
    ask(mira, found)
    work()
    row = Approval.objects.get()
    whole = json.loads(row.preview)["diff"]
    assert whole.count("\n+line") == 9_000
    client = client_of(mira)
    (item,) = client.get("/api/approvals").json()["items"]
    assert (len(item["preview"]["diff"]), item["preview"]["characters"]) == (DIFF_CHARACTERS, len(whole))
    assert item["preview"]["cut"]
    page = client.get("/approvals/").content.decode()
    assert f"characters 1 to {thin(DIFF_CHARACTERS)} of {thin(len(whole))}" in page
    assert f'href="/approvals/{row.pk}/diff/"' in page
    read, offset, goes_on = "", 0, True
    while goes_on:
        answer = client.get(f"/approvals/{row.pk}/diff/?offset={offset}")
        read += answer.context["preview"]["diff"]
        assert f"Characters {thin(offset + 1)} to {thin(len(read))} of {thin(len(whole))}" in answer.content.decode()
        part = client.get(f"/api/approvals/{row.pk}?offset={offset}").json()["preview"]["diff"]
        assert part == answer.context["preview"]["diff"]
        goes_on, offset = answer.context["next"] is not None, len(read)
    assert read == whole
    assert client.get(f"/approvals/{row.pk}/diff/?offset={len(whole) + 1}").status_code == 404
    assert client_of(make_person("stranger")).get(f"/approvals/{row.pk}/diff/").status_code == 404


def test_a_decision_over_http(conversation: Conversation, mira: Who) -> None:
    teo = make_person("teo")
    set_member(who=mira, root=conversation.pk, actor=teo.actor, role=Role.OPERATOR)
    first, second = (client_of(who) for who in (mira, teo))
    number = Approval.objects.order_by("pk")[0].pk
    url = f"/api/approvals/{number}/decision"
    answer = post(first, url, {"decision": "decline", "comment": "Not today"})
    assert (answer.status_code, answer.json()["by"], answer.json()["decision"]) == (200, mira.name, "decline")
    assert post(first, url, {"decision": "decline"}).status_code == 200
    refused = post(second, url, {"decision": "approve"})
    assert refused.status_code == 409
    assert refused.json()["error"] | {"decided": ""} == {
        "code": "decided",
        "message": refused.json()["error"]["message"],
        "decision": "declined",
        "by": mira.name,
        "comment": "Not today",
        "decided": "",
    }
    assert post(first, url, {"decision": "maybe"}).status_code == 422
    assert post(first, "/api/approvals/999999/decision", {"decision": "approve"}).status_code == 404
    _, secret = make_agent(conversation.root)
    agent = Client(headers={"Authorization": f"Bearer {secret}"})
    assert post(agent, url, {"decision": "approve"}).status_code == 403
    assert [row["id"] for row in first.get("/api/approvals?status=decided").json()["items"]] == [number]


def test_always_over_http(conversation: Conversation, mira: Who) -> None:
    client = client_of(mira)
    edit, run = Approval.objects.order_by("pk")
    wrong = post(client, f"/api/approvals/{run.pk}/decision", {"decision": "approve", "always": "make"})
    assert wrong.status_code == 422
    answer = post(client, f"/api/approvals/{edit.pk}/decision", {"decision": "approve", "always": "*.txt"})
    assert answer.status_code == 200
    (rule,) = client.get(f"/api/roots/{conversation.pk}/rules").json()["items"]
    assert (rule["tool"], rule["match"], rule["made_by"]) == ("edit_file", "*.txt", mira.name)
    assert client.delete(f"/api/rules/{rule['id']}").json()["ended"]
    assert client.get(f"/api/roots/{conversation.pk}/rules").json()["items"] == []


def test_the_page_shows_what_waits(conversation: Conversation, mira: Who) -> None:
    page = client_of(mira).get("/approvals/").content.decode()
    assert "2 wait, oldest first" in page
    assert "rm -r &lt;b&gt;" in page
    assert '<tr class="del">' in page
    assert "I need this." in page
    assert "Always for this root" in page
    parts = client_of(mira).get("/approvals/parts/").content.decode()
    assert 'id="queue-all"' in parts
    assert "<html" not in parts


def test_the_conversation_shows_what_waits_in_it(conversation: Conversation, mira: Who) -> None:
    page = client_of(mira).get(f"/conversations/{conversation.pk}/").content.decode()
    assert page.count('class="approval"') == 2
    assert 'value="approve"' in page
    viewer = make_person("anouk")
    set_member(who=mira, root=conversation.pk, actor=viewer.actor, role=Role.VIEWER)
    seen = client_of(viewer).get(f"/conversations/{conversation.pk}/").content.decode()
    assert seen.count('class="approval"') == 2
    assert 'value="approve"' not in seen


def test_a_form_decides_without_scripts(conversation: Conversation, mira: Who) -> None:
    client = client_of(mira)
    edit, run = Approval.objects.order_by("pk")
    answer = client.post(
        f"/approvals/{run.pk}/decided/", {"decision": "decline", "comment": "No", "next": "/approvals/"}
    )
    assert (answer.status_code, answer["Location"]) == (302, "/approvals/")
    answer = client.post(f"/approvals/{edit.pk}/decided/", {"decision": "always", "next": "//elsewhere/"})
    assert answer["Location"] == f"/approvals/?show=decided#a{edit.pk}"
    decided = client.get("/approvals/?show=decided").content.decode()
    assert "Declined</span> by" in decided
    assert "edit_file a.txt" in decided
    rule = Rule.objects.get()
    client.post(f"/rules/{rule.pk}/ended/", {"next": "/approvals/"})
    rule.refresh_from_db()
    assert rule.ended is not None


def test_what_the_model_was_sent_is_shown(conversation: Conversation, mira: Who) -> None:
    client = client_of(mira)
    page = client.get(f"/conversations/{conversation.pk}/").content.decode()
    assert "Sent to the model" in page
    requests = client.get(f"/conversations/{conversation.pk}/requests/").content.decode()
    assert "fake-large" in requests
    assert "Instructions" in requests
    assert client_of(make_person("stranger")).get(f"/conversations/{conversation.pk}/requests/").status_code == 404
