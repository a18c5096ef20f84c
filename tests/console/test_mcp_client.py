"""Agents outside, as they are: the official MCP client against a running console, in both eras of the protocol (A4, S2)."""

import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import CallToolResult, TextContent

from tests.console.up import Console, running_console, wait_until

assert running_console  # the fixture

ERAS = {"legacy": "2025-11-25", "2026-07-28": "2026-07-28"}  # mode of the client → revision that is then spoken
OLD_REVISIONS = ["2025-03-26", "2025-06-18", "2025-11-25"]
TEXT = "aé€😀\r\n" * 15_000  # 90,000 characters in 180,000 bytes

# CONTRACT, MCP: arguments by tool; those that must be given have an exclamation mark.
CONTRACT = {
    "note": {"to!", "text!"},
    "notify": {"id!", "wake"},
    "memory": {"read", "root"},
    "remember": {"ops!", "root"},
    "branch": {"prompt!", "title", "at"},
    "abstract": {"text!", "at", "title", "feature"},
    "inbox": {"wait"},
    "document_list": set(),
    "document_read": {"document!", "revision", "offset", "limit"},
    "document_edit": {"document!", "edits!"},
    "attachment_list": set(),
    "attachment_read": {"name!", "offset", "limit"},
    "append": {"entries!"},
}
WRITING = {"note", "notify", "remember", "branch", "abstract", "document_edit", "append"}  # these take a request_id


@dataclass
class Outsider:
    """An agent of a new root: its token over HTTP and MCP."""

    base: str
    secret: str
    http: httpx2.Client

    def __post_init__(self) -> None:
        self.root = int(self.get("roots")["items"][0]["id"])

    def get(self, path: str) -> Any:
        return self._answered(self.http.get(f"{self.base}api/{path}"))

    def post(self, path: str, body: Any = None, **more: Any) -> Any:
        return self._answered(self.http.post(f"{self.base}api/{path}", json=body, **more))

    def attach(self, filename: str, content: bytes) -> str:
        """Upload and wait for the extraction; answers the issued name."""
        answer = self.http.post(
            f"{self.base}api/conversations/{self.root}/attachments", files={"file": (filename, content)}
        )
        name = str(self._answered(answer)["name"])

        def status() -> str:
            (found,) = [
                one for one in self.get(f"conversations/{self.root}/attachments")["items"] if one["name"] == name
            ]
            return str(found["status"])

        wait_until(lambda: status() != "pending", "the extraction")
        return name

    @asynccontextmanager
    async def over_mcp(self, mode: Any) -> AsyncIterator[Client]:
        headers = {"Authorization": f"Bearer {self.secret}"}
        async with (
            httpx2.AsyncClient(headers=headers, trust_env=False, timeout=60) as http,
            Client(streamable_http_client(f"{self.base}mcp", http_client=http), mode=mode) as client,
        ):
            yield client

    @staticmethod
    def _answered(answer: httpx2.Response) -> Any:
        assert answer.status_code == 200, answer.text
        return answer.json()


@contextmanager
def outsider(console: Console, *words: str) -> Iterator[Outsider]:
    """An agent; `words` are of `manage.py token`, by default for a new root."""
    headers = {"Authorization": f"Bearer {(secret := console.token(*words))}"}
    with httpx2.Client(headers=headers, trust_env=False, timeout=60) as http:
        yield Outsider(console.base_url, secret, http)


@pytest.fixture(scope="module")
def wren(running_console: Console) -> Iterator[Outsider]:
    with outsider(running_console) as made:
        yield made


@pytest.fixture(scope="module")
def stranger(running_console: Console) -> Iterator[Outsider]:
    with outsider(running_console) as made:
        yield made


@pytest.fixture(scope="module")
def moss(running_console: Console, wren: Outsider) -> Iterator[Outsider]:
    """Another agent of the same root."""
    with outsider(running_console, "moss", "--root", str(wren.root)) as made:
        yield made


def values(result: CallToolResult) -> dict[str, Any]:
    assert not result.is_error, result.content
    assert isinstance(result.structured_content, dict)
    return result.structured_content


def refusal(result: CallToolResult) -> dict[str, Any]:
    assert result.is_error
    assert isinstance(result.structured_content, dict)
    return dict(result.structured_content["error"])


@pytest.mark.parametrize("mode", ERAS)
async def test_it_lists_the_tools_of_the_contract(wren: Outsider, mode: str) -> None:
    async with wren.over_mcp(mode) as client:
        assert client.protocol_version == ERAS[mode]
        found = {}
        for tool in (await client.list_tools()).tools:
            schema = tool.input_schema
            assert schema["type"] == "object"
            required = schema.get("required", [])
            found[tool.name] = {f"{name}!" if name in required else name for name in schema.get("properties", {})}
            assert tool.description
    keyed = {name: {"request_id"} for name in WRITING}
    assert found == {name: arguments | keyed.get(name, set()) for name, arguments in CONTRACT.items()}


@pytest.mark.parametrize("mode", ERAS)
async def test_it_edits_a_document(wren: Outsider, mode: str) -> None:
    made = wren.post(f"conversations/{wren.root}/documents", {"title": "Plan", "text": "Ship on Thursday.\n"})
    edit = {"document": made["id"], "edits": [{"old_string": "Thursday", "new_string": "Friday"}]}
    async with wren.over_mcp(mode) as client:
        listed = values(await client.call_tool("document_list", {}))
        assert made["id"] in [one["id"] for one in listed["documents"]]
        revision = values(await client.call_tool("document_edit", edit | {"request_id": mode}))["revision"]
        assert values(await client.call_tool("document_edit", edit | {"request_id": mode}))["revision"] == revision
        assert refusal(await client.call_tool("document_edit", edit))["code"] == "absent"
        read = values(await client.call_tool("document_read", {"document": made["id"]}))
    assert (read["text"], read["revision"]) == ("Ship on Friday.\n", revision)
    assert wren.get(f"documents/{made['id']}")["text"] == "Ship on Friday.\n"


@pytest.mark.parametrize("mode", ERAS)
async def test_it_leaves_a_note_that_ends_the_other_ones_next_answer(wren: Outsider, moss: Outsider, mode: str) -> None:
    """L21, L24."""
    text = f"Mind the gap in {mode}"
    async with wren.over_mcp(mode) as client, moss.over_mcp(mode) as reader:
        appended = await reader.call_tool("append", {"entries": [{"kind": "turn_end"}]})
        session = int(str(appended.content[0]).partition("#")[2].partition("/")[0])
        receipt = values(await client.call_tool("note", {"to": session, "text": text, "request_id": mode}))
        assert receipt["to"] == session
        told = await reader.call_tool("document_list", {})
        assert text in str(told.content[-1])
        assert text not in str((await reader.call_tool("document_list", {})).content)


@pytest.mark.parametrize("mode", ERAS)
async def test_it_reads_an_attachment_to_its_end(wren: Outsider, mode: str) -> None:
    """D20: following `next_offset` gives the text that went in, line ends and all."""
    name = wren.attach("long.txt", TEXT.encode())
    parts: list[str] = []
    asked: dict[str, Any] = {"name": name, "limit": 33_333}
    async with wren.over_mcp(mode) as client:
        listed = values(await client.call_tool("attachment_list", {}))["attachments"]
        assert (name, len(TEXT)) in [(one["name"], one["chars"]) for one in listed]
        while True:
            page = values(await client.call_tool("attachment_read", asked))
            parts.append(page["text"])
            assert page["truncated"] == ("next_offset" in page)
            if not page["truncated"]:
                break
            asked["offset"] = page["next_offset"]
    assert len(parts) == 3
    assert "".join(parts) == TEXT


@pytest.mark.parametrize("mode", ERAS)
async def test_what_lies_outside_its_root_is_as_if_it_were_not_there(
    wren: Outsider, stranger: Outsider, mode: str
) -> None:
    """R7, D21, S2: the same answer but for the name that was asked for."""
    path = f"conversations/{stranger.root}/documents"
    document = stranger.post(path, {"title": "Secret", "text": "secret\n"})["id"]
    name = stranger.attach("secret.txt", b"secret")
    nothing, nobody = 2**40, "0" * 32 + ".txt"
    edits = [{"old_string": "secret", "new_string": "known"}]
    pairs: list[tuple[str, str, dict[str, Any], Any, Any]] = [
        ("document_read", "document", {}, document, nothing),
        ("document_edit", "document", {"edits": edits}, document, nothing),
        ("attachment_read", "name", {}, name, nobody),
        ("note", "to", {"text": "hello"}, stranger.root, nothing),
        ("notify", "id", {}, stranger.root, nothing),
        ("memory", "root", {}, stranger.root, nothing),
    ]
    async with wren.over_mcp(mode) as client:
        for tool, argument, more, theirs, absent in pairs:
            answers = []
            for asked in (theirs, absent):
                refused = await client.call_tool(tool, {argument: asked, **more})
                said = refusal(refused)
                assert (said["code"], list(said)) == ("not_found", ["code", "message"]), tool
                (shown,) = refused.content
                assert isinstance(shown, TextContent)
                assert shown.text == said["message"]
                answers.append(re.sub(rf"\b{asked}\b", "?", shown.text))
            assert answers[0] == answers[1]
        assert name not in str(await client.call_tool("attachment_list", {}))
    assert stranger.get(f"documents/{document}")["text"] == "secret\n"


@pytest.mark.parametrize("revision", OLD_REVISIONS)
def test_each_old_revision_is_answered_in_its_own(wren: Outsider, revision: str) -> None:
    """The client speaks the newest of the old era; clients in the field speak the others too."""

    def ask(method: str, params: dict[str, Any]) -> Any:
        headers = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": revision}
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        answer = wren.http.post(f"{wren.base}mcp", json=message, headers=headers)
        assert answer.status_code == 200, answer.text
        return answer.json()["result"]

    client = {"name": "plain", "version": "1"}
    begun = ask("initialize", {"protocolVersion": revision, "capabilities": {}, "clientInfo": client})
    assert begun["protocolVersion"] == revision
    assert {tool["name"] for tool in ask("tools/list", {})["tools"]} == set(CONTRACT)
    assert not ask("tools/call", {"name": "document_list", "arguments": {}})["isError"]


async def test_without_a_live_token_it_does_not_get_in(running_console: Console) -> None:
    for secret in ("", "wrong"):
        headers = {"Authorization": f"Bearer {secret}"} if secret else {}
        async with httpx2.AsyncClient(headers=headers, trust_env=False) as http:
            answer = await http.post(f"{running_console.base_url}mcp", json={})
        assert answer.status_code == 401
        assert answer.headers["WWW-Authenticate"].startswith("Bearer")
