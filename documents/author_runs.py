"""Authors of a text at a revision (D15): kept beside snapshots, folded from there. Fetched apart from the text."""

import msgspec

from documents.authorship import Authors, Run
from documents.models import AuthorRuns, Document
from documents.texts import crosses_boundary, decode_edits, newest_snapshot, of_history, walk_texts

ADVANCE_BATCHES = 64
"""Batches that one `advance_authors` folds: about 5 ms on an ordinary document, so that edits are not held up."""

_decode_runs = msgspec.json.Decoder(list[Run]).decode
_encode = msgspec.json.Encoder().encode


def authors_at(document: Document, revision: int) -> list[Run]:
    """The runs `(actor, length in code points)` of a revision that the document has; they sum to its text's length."""
    return _fold(document, revision)[1]


def advance_authors(document: Document) -> bool:
    """Fold a bounded number of batches further than what is kept, and keep it; whether more is left to do."""
    revision = document.revision
    kept = _newest(document, revision)
    upto = min(revision, kept.revision + ADVANCE_BATCHES)
    if kept.revision == upto or not _fold(document, upto)[0]:
        return False
    return upto < revision


def first_runs(document: Document, length: int) -> AuthorRuns:
    """The base: all of the first text is its creator's."""
    return AuthorRuns(document=document, revision=document.revision, runs=_dumped([(document.creator_id, length)]))


def _fold(document: Document, revision: int) -> tuple[bool, list[Run]]:
    """Whether any was kept on the way, and the runs at the revision."""
    kept = _newest(document, revision)
    base = newest_snapshot(document, kept.revision)
    authors, text, size, found = Authors(_decode_runs(kept.runs)), base.text, base.size, False
    for batch, after in walk_texts(document, base, revision):
        if batch.revision > kept.revision:  # a snapshot may be missing where runs are kept
            authors.fold(text, decode_edits(batch.edits), batch.actor_id)
            if crosses_boundary(after.revision, after.size, after.size - size):
                _keep(batch.document_id, batch.revision, authors)
                found = True
        text, size = after.text, after.size
    return found, authors.runs()


def _newest(document: Document, revision: int) -> AuthorRuns:
    rows = AuthorRuns.objects.filter(of_history(document), revision__lte=revision)
    return rows.order_by("-revision")[:1].get()


def _keep(document: int, revision: int, authors: Authors) -> None:
    row = AuthorRuns(document_id=document, revision=revision, runs=_dumped(authors.runs()))
    AuthorRuns.objects.bulk_create([row], ignore_conflicts=True)


def _dumped(runs: list[Run]) -> str:
    return _encode(runs).decode()
