"""The replay test (STYLE 24): a stream's state before an action, and the events it published, give the state read afresh."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import msgspec
from django.test import TestCase

from console.events import Changed, Event, Facts
from console.live import publishing
from documents.access import found_document
from documents.edits import apply_edits
from documents.texts import decode_edits, text_at
from lineage.models import Conversation, Entry
from lineage.queries import entries_json
from lineage.state import conversation_state


@dataclass
class Published:
    """What went to the fan-out, in order."""

    events: list[tuple[str, Event]] = field(default_factory=list)

    def of(self, stream: str) -> list[Event]:
        return [event for name, event in self.events if name == stream]

    def facts(self, stream: str) -> list[Any]:
        """The items of the stream's facts as JSON values; asserts that their numbers have no gap."""
        items: list[Any] = []
        for event in self.of(stream):
            if isinstance(event, Facts):
                decoded = [json.loads(bytes(item)) for item in event.items]
                assert [item["seq"] for item in decoded] == list(range(event.first, event.last + 1))
                items += decoded
        seqs = [item["seq"] for item in items]
        assert seqs == list(range(seqs[0], seqs[0] + len(seqs))) if seqs else True
        return items


@contextmanager
def published() -> Iterator[Published]:
    """Collects what is published inside the block, after the commits; nothing goes to Valkey."""
    found = Published()
    with (
        mock.patch.object(publishing, "publish", lambda stream, event: found.events.append((stream, event))),
        mock.patch.object(publishing, "publish_each", found.events.extend),
        TestCase.captureOnCommitCallbacks(execute=True),
    ):
        yield found


@contextmanager
def replaying(*streams: str) -> Iterator[Published]:
    """Asserts it for each stream ("document:7", "conversation:12") when the block ends."""
    before = {stream: read_afresh(stream) for stream in streams}
    with published() as found:
        yield found
    for stream in streams:
        assert replay(stream, before[stream], found) == read_afresh(stream), stream


def read_afresh(stream: str) -> dict[str, Any]:
    """What a viewer of the stream that begins now is shown: its facts up to `seq`, and its small state."""
    kind, number = stream.split(":")
    if kind == "document":
        document = found_document(int(number))
        return {
            "seq": document.revision,
            "text": text_at(document, document.revision),
            "version": document.title_version,
            "state": {"title": document.title},
        }
    conversation = Conversation.objects.get(pk=number)
    entries = Entry.objects.filter(conversation=conversation).select_related("author").order_by("seq")
    return {
        "seq": conversation.head,
        "entries": [json.loads(bytes(item)) for item in entries_json(list(entries))],
        "version": conversation.state_version,
        "state": _plain(conversation_state(conversation)),
    }


def replay(stream: str, before: dict[str, Any], found: Published) -> dict[str, Any]:
    """The state before with the stream's events on top, as a viewer applies them (R3)."""
    after = dict(before)
    for item in found.facts(stream):
        if item["seq"] <= after["seq"]:
            continue
        assert item["seq"] == after["seq"] + 1, "a viewer would notice a gap"
        after["seq"] = item["seq"]
        if "text" in after:
            after["text"] = apply_edits(after["text"], decode_edits(json.dumps(item["edits"]).encode()))
        else:
            after["entries"] = [*after["entries"], item]
    for event in found.of(stream):
        if isinstance(event, Changed) and event.version > after["version"]:
            after["version"], after["state"] = event.version, msgspec.json.decode(event.state)
    return after


def _plain(value: Any) -> Any:
    return json.loads(json.dumps(value))
