"""Frames of `/live/` (CONTRACT): built once, then written to however many sockets (D16)."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import msgspec

from console.errors import DomainError
from console.events import encode_json
from console.json_text import storable
from console.models import REQUEST_ID_LENGTH
from console.wire import text_frame

LARGEST_PART = 4 * 1024 * 1024  # bytes of events in one frame: what a browser parses without a pause that is felt
LONGEST_NAME = 80  # characters of a wrong stream's name that an error repeats; real ones are shorter


class Frame:
    """One JSON text. Its WebSocket bytes and its ASGI message are made when first needed, then shared."""

    def __init__(self, payload: bytes) -> None:
        self.payload = payload

    def __len__(self) -> int:
        return len(self.payload)

    @cached_property
    def wire(self) -> bytes:
        return text_frame(self.payload)

    @cached_property
    def message(self) -> dict[str, str]:
        return {"type": "websocket.send", "text": self.payload.decode()}


def framed(value: Mapping[str, Any]) -> Frame:
    """A frame of this JSON object; `msgspec.Raw` parts go out as they are (R10)."""
    return Frame(encode_json(value))


def snapshot_frame(stream: str, seq: int, state: msgspec.Raw) -> Frame:
    return framed({"type": "snapshot", "stream": stream, "seq": seq, "state": state})


def events_frames(stream: str, items: Sequence[msgspec.Raw]) -> list[Frame]:
    """The events in order: one frame, or several where they are large."""
    frames: list[Frame] = []
    part: list[msgspec.Raw] = []
    size = 0
    for item in items:
        length = len(bytes(item))
        if part and size + length > LARGEST_PART:
            frames.append(framed({"type": "events", "stream": stream, "events": part}))
            part, size = [], 0
        part.append(item)
        size += length
    return [*frames, framed({"type": "events", "stream": stream, "events": part})] if part else frames


def state_frame(stream: str, version: int, state: msgspec.Raw) -> Frame:
    return framed({"type": "state", "stream": stream, "version": version, "state": state})


def rows_frame(stream: str, version: int, rows: Sequence[msgspec.Raw]) -> Frame:
    return framed({"type": "rows", "stream": stream, "version": version, "rows": rows})


def heads_frame(heads: Mapping[str, int]) -> Frame:
    return framed({"type": "heads", "heads": heads})


def error_frame(refusal: DomainError, stream: str | None = None) -> Frame:
    """A refusal as a frame (R7). `stream` is what the client named, whatever that was; left out where it named none."""
    about = {} if stream is None else {"stream": storable(stream[:LONGEST_NAME])}
    return framed({"type": "error", **about, "error": refusal.as_json()})


def accepted_frame(request_id: str | None, document: int, recorded_in: int, revision: int) -> Frame:
    """After the commit (D10). `copy` names another document where a fork's first edit made one of its own (D9)."""
    copy = {} if recorded_in == document else {"copy": recorded_in}
    answer = {"type": "accepted", "request_id": _echoed(request_id), "document": document, "revision": revision}
    return framed(answer | copy)


def refused_frame(request_id: str | None, document: int | None, refusal: DomainError) -> Frame:
    """Nothing of the batch was applied. `revision` is the document's present one where the refusal knows it (D5)."""
    revision = refusal.facts.get("revision")
    about = {"type": "refused", "request_id": _echoed(request_id), "document": document}
    return framed({**about, "error": refusal.as_json(), "revision": revision})


def _echoed(request_id: str | None) -> str | None:
    """The id as it came; one that no text can hold is refused anyway, and is not repeated as it is."""
    return None if request_id is None else storable(request_id[:REQUEST_ID_LENGTH])
