"""The streams `conversation:ID`: entries by their number, and the small state (CONTRACT, WebSocket)."""

from collections.abc import Sequence

import msgspec

from console.access import Who
from console.events import Changed, Facts, raw
from console.live.logs import CATCH_UP, FactsLog, Head, Log, Opening, Place
from lineage.access import conversation_for
from lineage.models import Conversation
from lineage.queries import PAGE, conversation_heads, entries_after, entries_before, entries_json, watched_conversation
from lineage.state import conversation_state

# Entries may carry images. A snapshot of fewer entries that arrives beats 50 that take a minute; `total` tells the rest.
SNAPSHOT_BYTES = 8 * 1024 * 1024


class ConversationSource:
    is_shared = True

    def log(self, stream: str) -> Log:
        return FactsLog(stream)

    def place(self, who: Who, number: int) -> Place:
        row = conversation_for(who, number)
        return Place(root=row.root_id, head=_head(row))

    def open(self, who: Who | None, number: int, after: int | None) -> Opening:
        row = watched_conversation(number)
        state = raw(conversation_state(row))
        changed = Changed(version=row.state_version, state=state)
        if after is not None and 0 <= row.head - after <= CATCH_UP:
            items = tuple(entries_json(entries_after(row, after=after, before=row.head + 1, limit=CATCH_UP)))
            return Opening(head=_head(row), events=(Facts(first=after + 1, items=items), changed))
        return Opening(head=_head(row), snapshot=_snapshot(row, state), events=(changed,))

    def heads(self, numbers: Sequence[int]) -> dict[int, Head]:
        return {number: Head(seq=seq, version=version) for number, seq, version in conversation_heads(numbers)}


def _head(row: Conversation) -> Head:
    return Head(seq=row.head, version=row.state_version)


def _snapshot(row: Conversation, state: msgspec.Raw) -> msgspec.Raw:
    """`{entries, total, version, state}`: the newest entries, inherited ones included, and the small state."""
    entries: list[msgspec.Raw] = []
    size = 0
    for entry in reversed(entries_json(entries_before(row, before=row.head + 1, limit=PAGE))):
        size += len(bytes(entry))
        if entries and size > SNAPSHOT_BYTES:
            break
        entries.append(entry)
    return raw({"entries": entries[::-1], "total": row.head, "version": row.state_version, "state": state})
