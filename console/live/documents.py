"""The streams `document:ID`: recorded batches by their revision, and the title beside them (CONTRACT, WebSocket)."""

from collections.abc import Sequence

from console.access import Who
from console.events import Changed, Facts, raw
from console.live.logs import CATCH_UP, FactsLog, Head, Log, Opening, Place
from documents.access import document_for, found_document
from documents.models import Document
from documents.queries import document_heads, events_after
from documents.texts import text_at


class DocumentSource:
    is_shared = True

    def log(self, stream: str) -> Log:
        return FactsLog(stream)

    def place(self, who: Who, number: int) -> Place:
        row = document_for(who, number)
        return Place(root=row.root_id, head=_head(row))

    def open(self, who: Who | None, number: int, after: int | None) -> Opening:
        row = found_document(number)
        changed = Changed(version=row.title_version, state=raw({"title": row.title}))
        if after is not None and 0 <= row.revision - after <= CATCH_UP:
            facts = Facts(first=after + 1, items=events_after(row, after))
            return Opening(head=_head(row), events=(facts, changed))
        snapshot = raw({"text": text_at(row, row.revision), "title": row.title})
        return Opening(head=_head(row), snapshot=snapshot, events=(changed,))

    def heads(self, numbers: Sequence[int]) -> dict[int, Head]:
        return {number: Head(seq=revision, version=version) for number, revision, version in document_heads(numbers)}


def _head(row: Document) -> Head:
    return Head(seq=row.revision, version=row.title_version)
