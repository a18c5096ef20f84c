"""What clients send (CONTRACT, WebSocket): JSON text frames, read into typed operations."""

import json
from typing import Annotated, Any

import msgspec

from console.errors import DomainError
from console.json_door import read_json
from console.json_text import storable
from documents.edits import Edit


class Subscribe(msgspec.Struct, frozen=True, tag_field="op", tag="subscribe"):
    stream: str
    after: int | None = None


class Unsubscribe(msgspec.Struct, frozen=True, tag_field="op", tag="unsubscribe"):
    stream: str


class EditDocument(msgspec.Struct, frozen=True, tag_field="op", tag="edit"):
    document: int
    edits: list[Edit]
    request_id: str | None = None


Position = Annotated[int, msgspec.Meta(ge=0, lt=2**32)]
Unit = Annotated[str, msgspec.Meta(min_length=1, max_length=16)]  # "utf16" from browsers (D14)


class Presence(msgspec.Struct, frozen=True, tag_field="op", tag="presence"):
    """Where a person is in a document; an anchor of none: leaving."""

    document: int
    anchor: Position | None
    head: Position | None = None
    unit: Unit = "utf16"
    revision: Position | None = None

    def place(self) -> dict[str, Any]:
        head = self.anchor if self.head is None else self.head
        return {"anchor": self.anchor, "head": head, "unit": storable(self.unit), "revision": self.revision}


Operation = Subscribe | Unsubscribe | EditDocument | Presence

_decoder = msgspec.json.Decoder(Operation)


class EditNotUnderstood(DomainError):
    """A frame that is an edit as far as it can be read: who sent it waits for an answer under its id."""

    def __init__(self, reason: str, *, request_id: str | None, document: int | None) -> None:
        super().__init__("invalid", f"This edit was not understood: {reason}", status=422)
        self.request_id = request_id
        self.document = document


def read_operation(text: str) -> Operation:
    """The operation. Refusals: `not_understood`, and `EditNotUnderstood` for a broken edit; both say what is wrong."""
    try:
        operation: Operation = _decoder.decode(text)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return _read_slowly(text)
    return operation


def _read_slowly(text: str) -> Operation:
    """Whatever is JSON at all, an unpaired surrogate in it included (D6)."""
    try:
        operation: Operation = read_json(text, Operation)  # type: ignore[arg-type]
    except DomainError as refusal:
        edit = _loosely(text)
        if edit is not None:
            raise EditNotUnderstood(refusal.message, **edit) from refusal
        raise DomainError(
            "not_understood",
            f"This frame was not understood: {refusal.message} An op that the contract names is needed.",
        ) from refusal
    return operation


def _loosely(text: str) -> dict[str, Any] | None:
    """What can be told of a broken edit."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or found.get("op") != "edit":
        return None
    request_id, document = found.get("request_id"), found.get("document")
    return {
        "request_id": request_id if isinstance(request_id, str) else None,
        "document": document if type(document) is int else None,
    }
