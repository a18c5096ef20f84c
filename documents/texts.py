"""Texts at a revision: a snapshot and the batches after it, folded by the one applier (D4, D7); kept per process.

Owns the cache and the reading of recorded batches. Writes nothing but missing snapshots, which it asks for.
"""

import sys
import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec
from django.db.models import Q, QuerySet

from documents.edits import Edit, apply_edits
from documents.models import Document, EditBatch, Snapshot

CACHE_BYTES = 64 * 1024 * 1024
"""Texts that one process keeps: a few of the longest documents, or a thousand ordinary ones."""

SNAPSHOT_BATCHES = 64
"""Batches from one snapshot to the next (D7): folding so many costs about a millisecond on an ordinary document."""

SNAPSHOT_BYTES = 256 * 1024
"""Bytes of edits after which a snapshot is made before that: what opening reads stays near the text's own size."""

PAGE = 2 * SNAPSHOT_BATCHES
"""Batches read at once: one query for any opening that finds its snapshot, and bounded memory for `manage.py verify`."""

decode_edits = msgspec.json.Decoder(tuple[Edit, ...]).decode


class Opened(NamedTuple):
    revision: int
    text: str


class TextCache:
    """The newest known text of the documents that this process used last, bounded in bytes. Safe between threads."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._bytes = 0
        self._kept: OrderedDict[int, Opened] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, document: int) -> Opened | None:
        with self._lock:
            found = self._kept.get(document)
            if found is not None:
                self._kept.move_to_end(document)
            return found

    def keep(self, document: int, opened: Opened) -> None:
        """Keep it, unless something newer is kept already."""
        with self._lock:
            before = self._kept.get(document)
            if before is not None and before.revision > opened.revision:
                return
            self._forget(document)
            self._kept[document] = opened
            self._bytes += sys.getsizeof(opened.text)
            while self._bytes > self._limit:
                self._forget(next(iter(self._kept)))

    def forget(self, document: int) -> None:
        with self._lock:
            self._forget(document)

    @property
    def size(self) -> int:
        """Bytes of the texts kept now."""
        return self._bytes

    def _forget(self, document: int) -> None:
        gone = self._kept.pop(document, None)
        if gone is not None:
            self._bytes -= sys.getsizeof(gone.text)


TEXTS = TextCache(CACHE_BYTES)


def text_at(document: Document, revision: int) -> str:
    """The text of a revision that the document has: at most `SNAPSHOT_BATCHES` are folded, whatever the history."""
    kept = TEXTS.get(document.pk)
    if kept is not None and 0 <= revision - kept.revision <= SNAPSHOT_BATCHES:
        text = kept.text
        for batch in batches_between(document, kept.revision, revision):
            text = apply_edits(text, decode_edits(batch.edits))
    else:
        text = _open(document, revision)
    if revision == document.revision:
        TEXTS.keep(document.pk, Opened(revision, text))
    return text


def batches_between(document: Document, after: int, upto: int) -> QuerySet[EditBatch]:
    """The recorded batches with `after < revision <= upto` in order, those of its sources included (D9)."""
    if after >= upto:
        return EditBatch.objects.none()
    return EditBatch.objects.filter(of_history(document), revision__gt=after, revision__lte=upto).order_by("revision")


def of_history(document: Document) -> Q:
    """Which rows with `document` and `revision` belong to a document's history: its own, and its sources' up to the copy."""
    rows = Q()
    upto: int | None = None
    step: Document | None = document
    while step is not None:
        part = Q(document=step.pk)
        if step.source_revision is not None:
            part &= Q(revision__gt=step.source_revision)
        if upto is not None:
            part &= Q(revision__lte=upto)
        rows |= part
        upto = step.source_revision
        step = step.source
    return rows


def newest_snapshot(document: Document, revision: int) -> Snapshot:
    """The last snapshot at or before a revision; every history begins with one."""
    snapshots = Snapshot.objects.filter(of_history(document), revision__lte=revision)
    return snapshots.order_by("-revision")[:1].get()


def keep_snapshots(snapshots: Sequence[Snapshot]) -> None:
    """Store snapshots; ones that somebody else stored already are the same."""
    Snapshot.objects.bulk_create(snapshots, ignore_conflicts=True)


def crosses_boundary(revision: int, size: int, added: int) -> bool:
    """Whether a snapshot belongs at this revision, whose edits grew to `size` bytes by `added` (D7).

    Boundaries are fixed multiples, so that everyone who makes snapshots makes the same ones.
    """
    return revision % SNAPSHOT_BATCHES == 0 or size // SNAPSHOT_BYTES != (size - added) // SNAPSHOT_BYTES


def walk_texts(document: Document, base: Snapshot, upto: int) -> Iterator[tuple[EditBatch, Snapshot]]:
    """Each batch after `base` up to a revision, with the snapshot (unsaved) that its result would be; streaming."""
    text, size, after = base.text, base.size, base.revision
    while rows := list(batches_between(document, after, upto)[:PAGE]):
        for batch in rows:
            text = apply_edits(text, decode_edits(batch.edits))
            size += len(batch.edits.encode())
            yield batch, Snapshot(document_id=batch.document_id, revision=batch.revision, size=size, text=text)
        after = rows[-1].revision


def _open(document: Document, revision: int) -> str:
    base = newest_snapshot(document, revision)
    text, size = base.text, base.size
    for _, after in walk_texts(document, base, revision):
        # Whoever was to make this one died between the answer and the snapshot: it is made now.
        if after.revision < revision and crosses_boundary(after.revision, after.size, after.size - size):
            keep_snapshots([after])
        text, size = after.text, after.size
    return text
