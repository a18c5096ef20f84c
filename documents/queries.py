"""What the live socket and pages read of documents (house rule: they ask here, never the models)."""

from collections.abc import Sequence

import msgspec
from django.db.models import QuerySet

from documents.batch_json import recorded_event
from documents.models import Document
from documents.texts import batches_between


def document_heads(documents: Sequence[int]) -> QuerySet[Document, tuple[int, int, int]]:
    """(id, revision, version of the title) of each that exists."""
    return Document.objects.filter(pk__in=documents).values_list("pk", "revision", "title_version")


def events_after(document: Document, after: int) -> tuple[msgspec.Raw, ...]:
    """The recorded batches above a revision, up to that of the row, as CONTRACT's events."""
    batches = batches_between(document, after, document.revision).select_related("actor")
    return tuple(recorded_event(batch) for batch in batches)
