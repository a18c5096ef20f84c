"""The MCP endpoint `/mcp` (CONTRACT, MCP): the console's tools for agents outside, over both eras of the protocol.

A token says which conversation and root its agent is. Every answer ends with what that agent has not read yet (L24), and
carries the same facts as values in `structuredContent`.
"""

from functools import partial
from typing import Annotated, Any

from asgiref.sync import async_to_sync
from django.http import HttpRequest, HttpResponse
from django_mcpz.server import MCPServer, Text, ToolError
from msgspec import Meta, Struct

from console.access import Permission, Who, may, who_has_token
from console.errors import DomainError, Invalid
from console.json_text import dumped
from console.live.doorbell import LONGEST_WAIT_S, doorbell
from console.secrets import hashed
from lineage.access import conversation_for
from lineage.actions.entries import append_entries
from lineage.actions.inbox import BESIDE, is_waiting_for, read_inbox
from lineage.agent.failures import ToolFailed
from lineage.agent.tools import OUTSIDE, Caller, Said, Tool
from lineage.outside import OutsideEntry, new_entries

VERSION = "1.0"
INSTRUCTIONS = (
    "You work in one conversation of a tree that a team watches. Notes reach you at the end of each answer; call inbox when you "
    "wait for some. Leave notes for those whom your work concerns, say with abstract where you stand, and edit documents with "
    "exact quotations."
)
REQUEST_ID = {
    "type": "string",
    "maxLength": 200,
    "description": "Makes a repeat of this call do nothing twice: the same id gives the first result.",
}


class Inbox(Struct, forbid_unknown_fields=True):
    wait: Annotated[
        float, Meta(description="Seconds to wait for something when there is nothing, 60 at most.", ge=0)
    ] = 0.0


class Append(Struct, forbid_unknown_fields=True):
    entries: Annotated[
        list[OutsideEntry],
        Meta(
            description="Entries of your own conversation: user, assistant, tool_result, turn_end, or kinds that begin with x."
        ),
    ]


class Server(MCPServer):
    """Adds the values of an answer to its text."""

    def _result(
        self, request: HttpRequest, request_id: str | int, result: dict[str, Any], *, result_type: str = "complete"
    ) -> HttpResponse:
        values = getattr(request, "mcp_values", None)
        if values is not None and "content" in result:
            result = {**result, "structuredContent": values}
        return super()._result(request, request_id, result, result_type=result_type)


def authenticate(request: HttpRequest) -> HttpResponse | None:
    """A live bearer token, or 401."""
    scheme, _, secret = request.headers.get("Authorization", "").partition(" ")
    who = who_has_token(hashed(secret.strip())) if scheme.lower() == "bearer" else None
    if who is None:
        challenge = 'Bearer error="invalid_token"' if secret else "Bearer"
        return HttpResponse("A live bearer token is needed.", status=401, headers={"WWW-Authenticate": challenge})
    request.mcp_who = who  # type: ignore[attr-defined]
    return None


def _inbox(caller: Caller, given: Inbox) -> Said:
    if given.wait > LONGEST_WAIT_S:
        raise Invalid("wait", f"wait is 0 to {LONGEST_WAIT_S:.0f} seconds.", limit=int(LONGEST_WAIT_S))
    inbox = read_inbox(who=caller.who, conversation=caller.conversation)
    if inbox.is_empty and given.wait:
        async_to_sync(_wait_for_mail)(caller, given.wait)
        inbox = read_inbox(who=caller.who, conversation=caller.conversation)
    values = {"items": inbox.items, "catch_up": inbox.catch_up}
    return Said(text=inbox.text or "Nothing new.", data=values)


async def _wait_for_mail(caller: Caller, seconds: float) -> None:
    streams = [f"conversation:{caller.conversation}", f"conversation:{caller.root}"]
    await doorbell().wait(streams, partial(is_waiting_for, caller.conversation), seconds)


def _append(caller: Caller, given: Append) -> Said:
    entries = new_entries(given.entries, author=caller.who.actor)
    seqs = append_entries(
        who=caller.who, conversation=caller.conversation, entries=entries, request_id=caller.request_id
    )
    return Said(text=f"Appended as #{caller.conversation}/{seqs[0]} to {seqs[-1]}.", data={"entries": seqs})


INBOX = Tool(
    name="inbox",
    description="Gives you what you have not read yet: notes, finishes, inputs, and the news of your tree. May wait for some.",
    arguments=Inbox,
    run=_inbox,
    replay_safe=True,
)
APPEND = Tool(
    name="append",
    description="Records entries in your conversation, so that the team sees what you do. End your turn with kind turn_end.",
    arguments=Append,
    run=_append,
    replay_safe=False,
)


def _register(tool: Tool) -> None:
    schema = dict(tool.schema)
    if not tool.reads_only and tool is not INBOX:
        schema["properties"] = {**schema.get("properties", {}), "request_id": REQUEST_ID}

    def called(request: HttpRequest, arguments: dict[str, Any]) -> list[Text]:
        return _answer(request, tool, arguments)

    server.tool(
        name=tool.name,
        description=tool.description,
        input_schema=schema,
        read_only=tool.reads_only,
        idempotent=tool.replay_safe,
    )(called)


def _answer(request: HttpRequest, tool: Tool, arguments: dict[str, Any]) -> list[Text]:
    who: Who = request.mcp_who  # type: ignore[attr-defined]
    said = _said(tool, who, arguments)
    unread = "" if tool is INBOX else _unread(who)
    if said.data is not None:
        request.mcp_values = said.data  # type: ignore[attr-defined]
    parts = [said.text, unread] if unread else [said.text]
    if said.error:
        raise ToolError("\n\n".join(parts))
    return [Text(part) for part in parts]


def _said(tool: Tool, who: Who, arguments: dict[str, Any]) -> Said:
    """What the call gave, or its refusal as a sentence with its facts, and as values (R7)."""
    try:
        return tool.run(_caller(who, tool, arguments), tool.checked(_without_id(tool, arguments)))
    except ToolFailed as failure:
        return Said(text=str(failure), error=True, data={"error": {"code": "failed", "message": str(failure)}})
    except DomainError as refusal:
        facts = f" {dumped(refusal.facts)}" if refusal.facts else ""
        return Said(text=f"{refusal.message}{facts}", error=True, data={"error": refusal.as_json()})


def _caller(who: Who, tool: Tool, arguments: dict[str, Any]) -> Caller:
    assert who.conversation is not None
    assert who.root is not None
    request_id = arguments.get("request_id")
    if request_id is not None and not isinstance(request_id, str):
        raise ToolFailed("request_id is text of at most 200 characters.")
    at = conversation_for(who, who.conversation).head
    return Caller(who=who, conversation=who.conversation, root=who.root, request_id=request_id, at=at, call=tool.name)


def _without_id(tool: Tool, arguments: dict[str, Any]) -> dict[str, Any]:
    if tool.reads_only or tool is INBOX:
        return arguments
    return {name: value for name, value in arguments.items() if name != "request_id"}


def _unread(who: Who) -> str:
    """Notes and finishes that wait, at most `BESIDE` characters of them: telling them here is their placing (L24)."""
    assert who.conversation is not None
    if who.root is None or not may(who, who.root, Permission.WRITE):
        return ""
    inbox = read_inbox(who=who, conversation=who.conversation, limit=BESIDE, catch_up=False)
    return "" if inbox.is_empty else inbox.text


server = Server(
    name="lineage-console", title="Lineage Console", version=VERSION, instructions=INSTRUCTIONS, auth=authenticate
)
for _tool in (*OUTSIDE, INBOX, APPEND):
    _register(_tool)
