"""What readers ask of documents: a text at a revision, the recorded batches, the authors, the list (D7, D9, D15)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import IntegerField, Transform

from console.access import Permission, Who
from console.errors import Invalid, NotFound
from console.models import Actor
from documents.access import document_for, root_of_conversation
from documents.author_runs import authors_at
from documents.authorship import Run
from documents.forks import Seen, documents_seen, seen_from, viewpoint
from documents.models import Document, EditBatch
from documents.texts import batches_between, text_at

BATCHES_PAGE = 100
LONGEST_PAGE = 1_000
"""Batches of one answer: as many as a live stream catches up with at once."""

PAGE_BYTES = 8 * 1024 * 1024
"""Bytes of edits in one answer, unless a single batch has more: what a client parses without a pause that is felt."""


class OctetLength(Transform):
    """Bytes of a text, told by its header: a compressed one is not unpacked."""

    function = "OCTET_LENGTH"
    output_field = IntegerField()


@dataclass(frozen=True, kw_only=True)
class Reading:
    """A document at one of its revisions. `newest` is the newest that this reader sees; `live` as in `Seen`."""

    document: Document
    revision: int
    newest: int
    live: bool


def read_document(*, who: Who, document: int, revision: int | None = None, conversation: int | None = None) -> Reading:
    """The document as `who` sees it from a conversation (D9), at that revision or the newest. Refusals: `not_found`."""
    seen = _seen(who, document, conversation)
    revision = seen.revision if revision is None else revision
    if not 0 <= revision <= seen.revision:
        raise NotFound("revision", f"{revision} of document {document}")
    return Reading(document=seen.document, revision=revision, newest=seen.revision, live=seen.live)


def read_text(reading: Reading) -> str:
    return text_at(reading.document, reading.revision)


def read_authors(reading: Reading) -> tuple[list[Run], list[Actor]]:
    """The runs of the text, and who they are."""
    runs = authors_at(reading.document, reading.revision)
    return runs, list(Actor.objects.filter(pk__in={actor for actor, _ in runs}).order_by("pk"))


def list_documents(*, who: Who, conversation: int) -> list[Seen]:
    """The documents that a conversation sees."""
    root = root_of_conversation(who, conversation, Permission.READ)
    return documents_seen(conversation, root)


def recorded_batches(
    *, who: Who, document: int, after: int, limit: int, conversation: int | None = None
) -> tuple[list[EditBatch], bool]:
    """The batches after a revision in order, with their actors, and whether more follow. Refusals: `not_found`, `invalid`."""
    seen = _seen(who, document, conversation)
    if not 1 <= limit <= LONGEST_PAGE:
        raise Invalid("limit", f"limit is 1 to {LONGEST_PAGE}; this is {limit}.", limit=LONGEST_PAGE, actual=limit)
    return page_of_batches(seen.document, max(after, 0), seen.revision, limit)


def page_of_batches(document: Document, after: int, upto: int, limit: int) -> tuple[list[EditBatch], bool]:
    """At most `limit` of the batches with `after < revision <= upto`, and at most `PAGE_BYTES` of edits where one batch alone
    has no more; and whether more follow."""
    rows = batches_between(document, after, upto)
    sizes = rows.annotate(bytes=OctetLength("edits")).values_list("revision", "bytes")[: limit + 1]
    last = _last_that_fits(list(sizes), limit)
    if last is None:
        return [], False
    return list(rows.filter(revision__lte=last).select_related("actor")), last < upto


def actor_json(actor: Actor) -> dict[str, Any]:
    return {"id": actor.pk, "name": actor.name, "kind": actor.kind}


def _seen(who: Who, document: int, conversation: int | None) -> Seen:
    row = document_for(who, document, Permission.READ)
    return seen_from(row, viewpoint(who, conversation))


def _last_that_fits(sizes: Sequence[tuple[int, int]], limit: int) -> int | None:
    last, left = None, PAGE_BYTES
    for revision, size in sizes[:limit]:
        left -= size
        if last is not None and left < 0:
            break
        last = revision
    return last
