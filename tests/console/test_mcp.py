"""The MCP endpoint: both eras, the tools, refusals as sentences and values, unread notes beside each answer (L24, R7)."""

import json
from typing import Any

import pytest
from django.test import Client

from console.access import Who
from console.models import Role
from documents.actions.documents import create_document
from documents.models import Document
from lineage.actions.inbox import BESIDE
from lineage.actions.notes import leave_note
from lineage.actions.tokens import revoke_token
from lineage.models import Conversation, Entry, Root
from tests.factories import make_agent, make_person, make_root, make_session

pytestmark = pytest.mark.django_db(transaction=True)

TOOLS = [
    "note", "notify", "memory", "remember", "branch", "abstract", "document_list", "document_read", "document_edit",
    "attachment_list", "attachment_read", "inbox", "append",
]  # fmt: skip


class Agent:
    """An agent with its token, as an MCP client of either era."""

    def __init__(self, secret: str, *, old: bool = False) -> None:
        self.old = old
        headers = {"host": "localhost", "authorization": f"Bearer {secret}"}
        self.client = Client(headers=headers)

    def ask(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        params = params or {}
        headers = {"mcp-protocol-version": "2025-06-18"}
        if not self.old:
            version = "2026-07-28"
            headers = {"mcp-protocol-version": version, "mcp-method": method}
            if "name" in params:
                headers["mcp-name"] = params["name"]
            params = params | {
                "_meta": {
                    "io.modelcontextprotocol/protocolVersion": version,
                    "io.modelcontextprotocol/clientCapabilities": {},
                }
            }
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        answer = self.client.post("/mcp", message, content_type="application/json", headers=headers)
        assert answer.status_code == 200, answer.content
        return dict(answer.json()["result"])

    def call(self, name: str, **arguments: Any) -> dict[str, Any]:
        return self.ask("tools/call", {"name": name, "arguments": arguments})


def texts(result: dict[str, Any]) -> list[str]:
    return [block["text"] for block in result["content"]]


@pytest.fixture
def root() -> Root:
    return make_root(make_person())


@pytest.fixture
def agent(root: Root) -> tuple[Who, Agent]:
    who, secret = make_agent(root, "wren")
    return who, Agent(secret)


@pytest.mark.parametrize("old", [True, False])
def test_both_eras_list_the_tools_in_a_fixed_order(root: Root, old: bool) -> None:
    _, secret = make_agent(root)
    client = Agent(secret, old=old)
    if old:
        client.ask("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x"}})
    tools = client.ask("tools/list")["tools"]
    assert [tool["name"] for tool in tools] == TOOLS
    by_name = {tool["name"]: tool["inputSchema"] for tool in tools}
    assert "request_id" in by_name["document_edit"]["properties"]
    assert "request_id" not in by_name["document_read"]["properties"]


@pytest.mark.parametrize("header", [None, "Bearer wrong", "Basic x", "Bearer"])
def test_without_a_live_token_nobody_enters(header: str | None) -> None:
    client = Client(headers={"host": "localhost"} | ({"authorization": header} if header else {}))
    answer = client.post("/mcp", {}, content_type="application/json")
    assert answer.status_code == 401
    assert answer["WWW-Authenticate"].startswith("Bearer")


def test_a_revoked_token_ends(root: Root) -> None:
    owner = make_person()
    mine = make_root(owner)
    who, secret = make_agent(mine)
    assert who.token is not None
    revoke_token(who=owner, token=who.token)
    answer = Client(headers={"host": "localhost", "authorization": f"Bearer {secret}"}).post("/mcp", {})
    assert answer.status_code == 401


def test_a_document_is_listed_read_and_edited(root: Root, agent: tuple[Who, Agent]) -> None:
    who, client = agent
    document = create_document(who=who, conversation=root.pk, title="Plan", text="one\ntwo\n")
    assert f"{document.pk}" in texts(client.call("document_list"))[0]
    assert "one\ntwo\n" in texts(client.call("document_read", document=document.pk))[0]
    edit = {"document": document.pk, "edits": [{"old_string": "one", "new_string": "1"}], "request_id": "r"}
    first = client.call("document_edit", **edit)
    assert first["structuredContent"]["revision"] == 1
    assert client.call("document_edit", **edit)["structuredContent"]["revision"] == 1
    assert Document.objects.get(pk=document.pk).revision == 1


def test_a_refusal_is_a_sentence_with_its_facts(root: Root, agent: tuple[Who, Agent]) -> None:
    """R7."""
    who, client = agent
    document = create_document(who=who, conversation=root.pk, title="Plan", text="a b a\n")
    refused = client.call("document_edit", document=document.pk, edits=[{"old_string": "a", "new_string": "c"}])
    assert refused["isError"]
    assert "occurs 2 times" in texts(refused)[0]
    assert '"matches":2' in texts(refused)[0]
    assert refused["structuredContent"]["error"]["code"] == "ambiguous"


def test_nothing_outside_the_root_is_there(agent: tuple[Who, Agent]) -> None:
    """S2: `root` is accepted only if equal."""
    who, client = agent
    other = make_root()
    stranger = make_session(other)
    document = create_document(who=make_agent(other)[0], conversation=other.pk, title="Secret", text="x")
    for result in (
        client.call("memory", root=other.pk),
        client.call("note", to=stranger.pk, text="hello"),
        client.call("notify", id=stranger.pk),
        client.call("document_read", document=document.pk),
    ):
        assert result["isError"]
        assert result["structuredContent"]["error"]["code"] == "not_found"
    assert not client.call("memory", root=who.root)["isError"]


@pytest.mark.parametrize(
    ("name", "arguments"),
    [("document_read", {}), ("document_read", {"document": "x"}), ("note", {"to": "root", "text": 5}), ("inbox", {"x": 1}),
     ("append", {"entries": [{"kind": "user", "head": True}]}), ("note", {"to": "root", "text": "x", "request_id": 5})],
)  # fmt: skip
def test_arguments_that_do_not_fit_are_said(agent: tuple[Who, Agent], name: str, arguments: dict[str, Any]) -> None:
    result = agent[1].call(name, **arguments)
    assert result["isError"]
    assert texts(result)[0]


def test_an_agent_records_its_work(agent: tuple[Who, Agent]) -> None:
    who, client = agent
    entries = [
        {"kind": "user", "model": [{"role": "user", "content": "Do it"}]},
        {"kind": "assistant", "model": [{"role": "assistant", "content": "Done"}]},
        {"kind": "turn_end"},
    ]
    result = client.call("append", entries=entries, request_id="a")
    assert client.call("append", entries=entries, request_id="a")["structuredContent"] == result["structuredContent"]
    rows = Entry.objects.filter(conversation=who.conversation, seq__in=result["structuredContent"]["entries"])
    assert [row.kind for row in rows.order_by("seq")] == ["user", "assistant", "turn_end"]
    assert rows.get(kind="user").prompt == "Do it"


def test_unread_notes_end_the_next_answer_once(root: Root, agent: tuple[Who, Agent]) -> None:
    """L24: telling them is their placing."""
    who, client = agent
    other, _ = make_agent(root, "moss")
    assert who.conversation is not None
    leave_note(who=other, to=who.conversation, text="Mind the gap", sender=other.conversation)
    said = texts(client.call("memory"))
    assert "Mind the gap" in said[-1]
    assert len(texts(client.call("memory"))) == 1
    assert Entry.objects.filter(conversation=who.conversation, kind="lineage.note").count() == 1


def test_an_error_ends_with_unread_notes_too(root: Root, agent: tuple[Who, Agent]) -> None:
    who, client = agent
    other, _ = make_agent(root, "moss")
    assert who.conversation is not None
    leave_note(who=other, to=who.conversation, text="Mind the gap", sender=other.conversation)
    refused = client.call("document_read", document=10**9)
    assert refused["isError"]
    assert "Mind the gap" in texts(refused)[0]


def test_what_does_not_fit_beside_an_answer_stays_for_the_inbox(root: Root, agent: tuple[Who, Agent]) -> None:
    who, client = agent
    other, _ = make_agent(root, "moss")
    assert who.conversation is not None
    for number in range(3):
        leave_note(who=other, to=who.conversation, text=f"{number} " + "x" * (BESIDE // 2), sender=other.conversation)
    beside = texts(client.call("memory"))[-1]
    assert len(beside) <= BESIDE + 200
    assert "2 more: call inbox." in beside
    inbox = texts(client.call("inbox"))
    assert len(inbox) == 1
    assert "1 xxx" in inbox[0]
    assert "2 xxx" in inbox[0]
    assert texts(client.call("inbox")) == ["Nothing new."]


def test_a_viewer_reads_and_writes_nothing(root: Root) -> None:
    _, secret = make_agent(root, role=Role.VIEWER)
    client = Agent(secret)
    assert not client.call("document_list")["isError"]
    assert client.call("note", to="root", text="x")["structuredContent"]["error"]["code"] == "forbidden"


def test_only_the_main_agent_remembers(root: Root, agent: tuple[Who, Agent]) -> None:
    """L26."""
    ops = [{"op": "add", "slug": "a", "kind": "fact", "line": "A", "body": "B"}]
    assert agent[1].call("remember", ops=ops)["structuredContent"]["error"]["code"] == "forbidden"
    _, secret = make_agent(root, "main", main=True)
    assert not Agent(secret).call("remember", ops=ops)["isError"]
    assert "A" in texts(agent[1].call("memory"))[0]


def test_a_branch_starts_from_the_agents_conversation(agent: tuple[Who, Agent]) -> None:
    who, client = agent
    client.call("append", entries=[{"kind": "user", "model": [{"role": "user", "content": "x"}]}, {"kind": "turn_end"}])
    result = client.call("branch", prompt="Try another way", title="Other way", request_id="b")
    assert not result["isError"], texts(result)
    assert (
        client.call("branch", prompt="Try another way", request_id="b")["structuredContent"]
        == result["structuredContent"]
    )
    branch = Conversation.objects.get(root=who.root, kind="branch")
    assert (branch.parent_id, branch.title) == (who.conversation, "Other way")


def test_a_browser_of_another_site_is_refused(root: Root) -> None:
    _, secret = make_agent(root)
    client = Client(
        headers={"host": "localhost", "authorization": f"Bearer {secret}", "origin": "https://evil.example"}
    )
    assert client.post("/mcp", json.dumps({}), content_type="application/json").status_code == 403
