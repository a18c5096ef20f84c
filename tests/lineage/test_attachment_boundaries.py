"""Each boundary of D20 through the three ways in: HTTP, MCP and the inside agent's tool answer the same facts."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from django.test import Client
from msgspec import convert
from pytest_django import Settings

from console.access import Who
from console.errors import DomainError
from documents.attachments.limits import LONGEST_PAGE, PAGE_CHARS
from documents.attachments.sidecar import EXTRACTED, UNREADABLE, Meta, write_sidecar
from documents.attachments.storing import attachments_folder
from lineage.actions.agents import agent_of, who_is_agent
from lineage.actions.attachments import upload_attachment
from lineage.actions.entries import lock_conversation
from lineage.agent.tools import Caller, find_tool
from lineage.agent.tools.console import SHOWN_CHARACTERS
from lineage.models import Root
from tests.factories import make_agent, make_person, make_root

pytestmark = pytest.mark.django_db

TEXT = "aé€😀\r\n" * 20_000  # code points of one to four bytes
TOTAL = 120_000
REASON = "an image"

type Ask = Callable[[dict[str, Any]], tuple[dict[str, Any], str]]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, settings: Settings) -> None:
    settings.ATTACHMENTS_DIR = tmp_path


@pytest.fixture
def owner() -> Who:
    return make_person()


@pytest.fixture
def root(owner: Who) -> Root:
    return make_root(owner)


@pytest.fixture
def ways(root: Root) -> dict[str, Ask]:
    """Three ways to ask. Each gives the page or the refusal as values, and what a model reads of it, if one does."""
    _, secret = make_agent(root)
    client = Client(headers={"authorization": f"Bearer {secret}", "host": "localhost"})

    def over_http(asked: dict[str, Any]) -> tuple[dict[str, Any], str]:
        given = {name: value for name, value in asked.items() if name != "name"}
        answer = client.get(f"/api/attachments/{quote(asked['name'])}?{urlencode(given)}")
        found = answer.json()
        assert (answer.status_code == 200) == ("error" not in found)
        return found, ""

    def over_mcp(asked: dict[str, Any]) -> tuple[dict[str, Any], str]:
        params = {"name": "attachment_read", "arguments": asked}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        headers = {"mcp-protocol-version": "2025-11-25"}
        result = client.post("/mcp", message, content_type="application/json", headers=headers).json()["result"]
        assert result["isError"] == ("error" in result["structuredContent"])
        return result["structuredContent"], result["content"][0]["text"]

    def inside(asked: dict[str, Any]) -> tuple[dict[str, Any], str]:
        row = lock_conversation(root.pk)
        agent_of(conversation=row)
        tool = find_tool("attachment_read")
        assert tool is not None
        caller = Caller(who=who_is_agent(row), conversation=row.pk, root=row.root_id)
        try:
            said = tool.run(caller, tool.checked(asked))
        except DomainError as refusal:
            return {"error": refusal.as_json()}, ""
        assert said.data is not None
        return said.data, said.text

    return {"HTTP": over_http, "MCP": over_mcp, "inside": inside}


def answer_of(ways: dict[str, Ask], asked: dict[str, Any]) -> dict[str, Any]:
    """The one answer of all three."""
    answers = {way: ask(asked)[0] for way, ask in ways.items()}
    assert answers["MCP"] == answers["HTTP"]
    assert answers["inside"] == answers["HTTP"]
    return answers["HTTP"]


def attached(owner: Who, root: Root, text: str | None = TEXT, *, truncated: bool = False) -> str:
    """An attachment whose extraction is done: with this text, or without any."""
    name = upload_attachment(who=owner, conversation=root.pk, filename="a.txt", chunks=[b"as it came"]).name
    facts: dict[str, Any] = (
        {"status": UNREADABLE, "reason": REASON} if text is None else {"status": EXTRACTED, "reason": None}
    )
    facts |= {"chars": len(text or ""), "truncated": truncated, "media_type": "text/plain", "sha256": ""}
    source = attachments_folder() / "text"
    source.write_text(text or "", newline="")
    write_sidecar(attachments_folder(), name, convert(facts, Meta), None if text is None else source)
    return name


@pytest.mark.parametrize(
    ("asked", "offset", "limit", "length"),
    [
        ({}, 0, PAGE_CHARS, PAGE_CHARS),
        ({"offset": 0}, 0, PAGE_CHARS, PAGE_CHARS),
        ({"offset": 1, "limit": 4}, 1, 4, 4),
        ({"offset": TOTAL - 1}, TOTAL - 1, PAGE_CHARS, 1),
        ({"offset": TOTAL}, TOTAL, PAGE_CHARS, 0),
        ({"offset": TOTAL - PAGE_CHARS}, TOTAL - PAGE_CHARS, PAGE_CHARS, PAGE_CHARS),
        ({"limit": 0}, 0, PAGE_CHARS, PAGE_CHARS),
        ({"limit": -1}, 0, PAGE_CHARS, PAGE_CHARS),
        ({"limit": LONGEST_PAGE}, 0, LONGEST_PAGE, LONGEST_PAGE),
        ({"limit": LONGEST_PAGE + 1}, 0, LONGEST_PAGE, LONGEST_PAGE),
        ({"limit": 10**12, "offset": 3}, 3, LONGEST_PAGE, LONGEST_PAGE),
        ({"offset": "5", "limit": "6"}, 5, 6, 6),
        ({"offset": 5.0, "limit": 6.0}, 5, 6, 6),
    ],
)
@pytest.mark.parametrize("cut", [False, True])
def test_a_page(
    ways: dict[str, Ask], owner: Who, root: Root, asked: dict[str, Any], offset: int, limit: int, length: int, cut: bool
) -> None:
    name = attached(owner, root, truncated=cut)
    after = offset + length
    facts = {
        "name": name,
        "status": "extracted",
        "offset": offset,
        "limit": limit,
        "total_chars": TOTAL,
        "truncated": after < TOTAL,
        "text": TEXT[offset:after],
    }
    facts |= {"next_offset": after} if after < TOTAL else {}
    facts |= {"extract_truncated": True} if cut else {}
    assert answer_of(ways, {"name": name, **asked}) == facts


@pytest.mark.parametrize(
    ("asked", "code", "facts"),
    [
        ({"offset": -1}, "negative_offset", {"field": "offset", "offset": -1}),
        (
            {"offset": TOTAL + 1},
            "offset_past_end",
            {"field": "offset", "offset": TOTAL + 1, "total_chars": TOTAL},
        ),
        ({"offset": "x"}, "malformed_number", {"field": "offset"}),
        ({"offset": 1.5}, "malformed_number", {"field": "offset"}),
        ({"limit": "many"}, "malformed_number", {"field": "limit"}),
    ],
)
def test_a_refused_page(
    ways: dict[str, Ask], owner: Who, root: Root, asked: dict[str, Any], code: str, facts: dict[str, Any]
) -> None:
    error = answer_of(ways, {"name": attached(owner, root), **asked})["error"]
    assert error.pop("message")
    assert error == {"code": code, **facts}


@pytest.mark.parametrize("offset", [-1, 0, 1])
def test_pending_and_unreadable_ones(ways: dict[str, Ask], owner: Who, root: Root, offset: int) -> None:
    """The order of D20: a negative offset comes first, an offset past the end after the status."""
    pending = upload_attachment(who=owner, conversation=root.pk, filename="a.txt", chunks=[b"x"]).name
    for name, code, more in (
        (pending, "pending", {}),
        (attached(owner, root, None), "unreadable", {"reason": REASON}),
    ):
        error = answer_of(ways, {"name": name, "offset": offset})["error"]
        facts: dict[str, Any] = {"name": name, **more}
        if offset < 0:
            code, facts = "negative_offset", {"field": "offset", "offset": -1}
        assert error.pop("message")
        assert error == {"code": code, **facts}


@pytest.mark.parametrize(
    "name",
    [
        "0" * 32 + ".txt",
        "plan.txt",
        "../" + "0" * 32 + ".txt",
        "../../etc/passwd",
        "/etc/passwd",
        "a/b/c.txt",
        "%2e%2e%2fetc",
        "é€😀.txt",
        "a" * 5000,
        "x?offset=1#y",
    ],
)
@pytest.mark.parametrize("offset", [-1, 0])
def test_a_name_that_was_never_issued(ways: dict[str, Ask], name: str, offset: int) -> None:
    """D21: access comes before the offset, and no name is a path."""
    error = answer_of(ways, {"name": name, "offset": offset})["error"]
    assert error == {
        "code": "not_found",
        "message": f"There is no attachment {name[:64]}, or it is not yours to see.",
    }


def test_a_strangers_name_looks_the_same(ways: dict[str, Ask], owner: Who) -> None:
    """R7."""
    theirs = attached(owner, make_root(owner))
    error = answer_of(ways, {"name": theirs})["error"]
    assert error == {"code": "not_found", "message": f"There is no attachment {theirs}, or it is not yours to see."}


def test_a_name_with_space_around_it_is_trimmed(ways: dict[str, Ask], owner: Who, root: Root) -> None:
    name = attached(owner, root)
    assert answer_of(ways, {"name": f" {name} "})["name"] == name


@pytest.mark.parametrize("limit", [PAGE_CHARS, SHOWN_CHARACTERS, SHOWN_CHARACTERS + 1, LONGEST_PAGE])
def test_models_read_the_same_words(ways: dict[str, Ask], owner: Who, root: Root, limit: int) -> None:
    """What a result cannot carry is not skipped: its last sentence goes on exactly after what is shown."""
    name = attached(owner, root)
    shown = min(limit, SHOWN_CHARACTERS)
    words = {way: ask({"name": name, "offset": 7, "limit": limit})[1] for way, ask in ways.items() if way != "HTTP"}
    after = 7 + shown
    tail = f"\n\n({name}: characters 7 to {after} of {TOTAL}. Read on with offset={after}.)"
    assert set(words.values()) == {TEXT[7:after] + tail}


def test_an_answer_is_json_that_keeps_every_character(ways: dict[str, Ask], owner: Who, root: Root) -> None:
    text = "\u2028\u2029\x85\x01\ufffd\U0010ffff\r\n"
    name = attached(owner, root, text)
    assert answer_of(ways, {"name": name})["text"] == text
    assert json.loads(json.dumps(text)) == text
