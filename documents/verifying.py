"""Folding every document again and comparing with what is kept (D7): for `manage.py verify`. Reads only; bounded memory."""

from collections.abc import Iterator

from documents.author_runs import authors_at
from documents.edits import EditError
from documents.models import Document, Snapshot
from documents.texts import walk_texts


def document_faults() -> Iterator[str]:
    """A sentence for each fault: a gap, a batch that does not apply, a snapshot or a length that differs."""
    for document in Document.objects.order_by("pk").iterator(chunk_size=100):
        yield from _faults_of(document)


def _faults_of(document: Document) -> Iterator[str]:
    name = f"document {document.pk}"
    base = document.snapshots.order_by("revision").first()
    if base is None:
        yield f"{name}: it has no first snapshot"
        return
    kept = {row.revision: row for row in document.snapshots.filter(revision__gt=base.revision).defer("text")}
    revision, text = base.revision, base.text
    try:
        for batch, after in walk_texts(document, base, document.revision):
            if batch.revision != revision + 1:
                yield f"{name}: revision {revision} is followed by {batch.revision}"
            revision, text = batch.revision, after.text
            yield from _differs(name, kept.get(revision), after)
    except EditError as error:
        yield f"{name}: revision {revision + 1} does not apply: {error.message}"
        return
    if revision != document.revision:
        yield f"{name}: it says revision {document.revision}, and its batches end at {revision}"
    beyond = document.batches.filter(revision__gt=document.revision).count()
    if beyond:
        yield f"{name}: {beyond} batches lie beyond its revision {document.revision}"
    try:
        length = sum(count for _, count in authors_at(document, document.revision))
    except EditError:  # they are folded from a snapshot, which was said to differ
        return
    if length != len(text):
        yield f"{name}: its authors cover {length} characters of {len(text)}"


def _differs(name: str, kept: Snapshot | None, folded: Snapshot) -> Iterator[str]:
    if kept is not None and kept.text != folded.text:  # the text is read here, one at a time
        yield f"{name}: the snapshot of revision {folded.revision} differs from its fold"
