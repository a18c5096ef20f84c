"""A recorded batch as CONTRACT's event, composed from the stored text without parsing it (R10)."""

from collections.abc import Mapping

import msgspec

from console.events import raw
from documents.models import EditBatch


def batch_event(*, seq: int, author: Mapping[str, object], request_id: str, edits: bytes) -> msgspec.Raw:
    """`{"seq", "kind": "edits", "author", "request_id", "edits"}`; `edits` is JSON."""
    return raw({"seq": seq, "kind": "edits", "author": author, "request_id": request_id, "edits": msgspec.Raw(edits)})


def recorded_event(batch: EditBatch) -> msgspec.Raw:
    """The same event, from a row that was read with its actor."""
    author = {"id": batch.actor.pk, "name": batch.actor.name, "kind": batch.actor.kind}
    return batch_event(seq=batch.revision, author=author, request_id=batch.request_id, edits=batch.edits.encode())
