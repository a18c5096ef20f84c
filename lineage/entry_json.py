"""An entry as CONTRACT's JSON, composed from the stored texts without parsing them (R10)."""

from collections.abc import Iterable

import msgspec

from console.events import encode_json
from lineage.models import Entry, EntryEdit


def entry_json(entry: Entry, edits: Iterable[EntryEdit] = ()) -> msgspec.Raw:
    """`{seq, conversation, kind, author, time, model, data, head?, edits?}`. `entry.author` must be loaded."""
    author = entry.author
    parts = {
        "seq": entry.seq,
        "conversation": entry.conversation_id,
        "kind": entry.kind,
        "author": {"id": author.pk, "name": author.name, "kind": author.kind} if author else None,
        "time": entry.time.isoformat(),
        "model": msgspec.Raw((entry.model or "[]").encode()),
        "data": msgspec.Raw(entry.data.encode()),
    }
    if entry.head is not None:
        parts["head"] = entry.head
    rows = [
        {"target": edit.target, "action": edit.action}
        | ({"messages": msgspec.Raw(edit.messages.encode())} if edit.messages else {})
        for edit in edits
    ]
    if rows:
        parts["edits"] = rows
    return msgspec.Raw(encode_json(parts))
