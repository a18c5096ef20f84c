"""The HTTP call that takes in sessions of outside agents (CONTRACT, HTTP; T1, T2)."""

from typing import Any

import msgspec
from django.http import HttpRequest, HttpResponse
from ninja import Router

from console.answers import json_answer, who_of
from console.errors import Invalid
from console.json_door import read_json
from lineage.actions.pushes import push_entries
from lineage.transcripts.pushing import ENTRIES, SessionKey, elements_in, plain

router = Router(tags=["transcripts"])

_TEXT = {"type": "string"}
_BODY: dict[str, Any] = {
    "type": "object",
    "required": ["key", "entries"],
    "properties": {
        "key": {
            "type": "object",
            "required": ["project_key", "session_id"],
            "properties": {"project_key": _TEXT, "session_id": _TEXT, "subpath": _TEXT},
            "description": "The SDK's SessionKey; projectKey and sessionId are taken too.",
        },
        "entries": {"type": "array", "maxItems": ENTRIES, "items": {"type": "object"}},
        "root": {"type": "integer", "description": "Where a new session goes; a token has its own root."},
        "request_id": {"type": "string", "maxLength": 200},
    },
}


class KeyIn(msgspec.Struct):
    project_key: str | None = None
    session_id: str | None = None
    subpath: str | None = None
    projectKey: str | None = None  # as the TypeScript SDK spells it
    sessionId: str | None = None


class PushIn(msgspec.Struct):
    key: KeyIn
    entries: list[msgspec.Raw]
    root: int | None = None
    request_id: str | None = None


@router.post(
    "/transcripts/claude",
    openapi_extra={"requestBody": {"required": True, "content": {"application/json": {"schema": _BODY}}}},
)
def post_claude(request: HttpRequest) -> HttpResponse:
    """Takes entries of a Claude Code session, as `append` of an Agent SDK's session store gets them. They are read like lines of
    its file: pushed again, they change nothing. Answers the conversation, how many lines were new, and the entries made of them."""
    body, entries = _read(request.body)
    answer = push_entries(
        who=who_of(request),
        key=_key(body.key),
        entries=entries,
        root=body.root,
        request_id=body.request_id,
    )
    return json_answer(answer)


def _read(data: bytes) -> tuple[PushIn, list[bytes]]:
    """The body, and its entries as they came (R10): the strict reader refuses an unpaired surrogate, which transcripts do hold."""
    try:
        body = msgspec.json.decode(data, type=PushIn)
    except msgspec.DecodeError:
        body = read_json(plain(data), PushIn)
        return body, elements_in(data, b"entries")
    return body, [bytes(entry) for entry in body.entries]


def _key(given: KeyIn) -> SessionKey:
    project, session = given.project_key or given.projectKey, given.session_id or given.sessionId
    if not project or not session:
        missing = "session_id" if project else "project_key"
        raise Invalid(
            f"key.{missing}", f"key.{missing} is missing: the SDK gives a key with project_key and session_id."
        )
    return SessionKey(project_key=project, session_id=session, subpath=given.subpath)
