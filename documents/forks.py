"""How documents look from a conversation (D9).

Documents of the root's own conversation are one live text for the whole tree. Those of another conversation are live there;
a fork reads them as they stood at its fork entry, until its first edit makes a document of its own from that revision.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from django.db.models import Case, F, OuterRef, PositiveBigIntegerField, Q, QuerySet, Subquery, Value, When
from django.db.models.functions import Coalesce

from console.access import Who
from console.errors import NotFound
from documents.access import LARGEST_ID
from documents.models import Document, EditBatch
from documents.owners import owners


class Seen(NamedTuple):
    """A document as a conversation sees it: the revision it reads, and whether that is the document's live text."""

    document: Document
    revision: int
    live: bool


def viewpoint(who: Who, conversation: int | None) -> int | None:
    """From where somebody looks: as asked, else a token looks from its own conversation; people look at the document itself."""
    return who.conversation if conversation is None else conversation


def seen_from(document: Document, conversation: int | None) -> Seen:
    """The document as that conversation of the same tree sees it; what it does not inherit, it sees as it is."""
    live = Seen(document, document.revision, True)
    if conversation is None or document.is_shared or document.conversation_id == conversation:
        return live
    if not 0 < conversation <= LARGEST_ID or owners().root_of(conversation) != document.root_id:
        raise NotFound("conversation", f"#{conversation}")
    path = owners().path_of(conversation)
    if document.head > dict(path).get(document.conversation_id, -1):
        return live
    origin = document.origin_id or document.pk
    line = Document.objects.filter(Q(pk=origin) | Q(origin=origin))
    (seen,) = _nearest(line, path, conversation)
    return seen


def documents_seen(conversation: int, root: int) -> list[Seen]:
    """The documents that a conversation sees: the root's, what it inherits and its own; in the order they were begun."""
    shared = [Seen(row, row.revision, True) for row in Document.objects.filter(conversation=root)]
    path = [] if conversation == root else owners().path_of(conversation)
    others = [] if conversation == root else _nearest(Document.objects.exclude(conversation=root), path, conversation)
    return sorted([*shared, *others], key=lambda seen: seen.document.origin_id or seen.document.pk)


def _nearest(documents: QuerySet[Document], path: Sequence[tuple[int, int]], conversation: int) -> Iterable[Seen]:
    """Of each line of copies the one that is nearest on the way up from the conversation."""
    visible = Q(conversation=conversation)
    for place, upto in path:
        visible |= Q(conversation=place, head__lte=upto)
    number = PositiveBigIntegerField()
    upto_here = Case(*(When(conversation=place, then=Value(upto)) for place, upto in path), output_field=number)
    # Heads never fall from one batch to the next, so the newest one at or before the entry is found by the index.
    newest = EditBatch.objects.filter(document=OuterRef("pk"), head__lte=OuterRef("upto")).order_by(
        "-head", "-revision"
    )
    rows = documents.filter(visible).alias(upto=upto_here)
    rows = rows.annotate(
        seen=Coalesce(Subquery(newest.values("revision")[:1]), F("source_revision"), Value(0), output_field=number)
    )
    distance = {place: number for number, (place, _) in enumerate(reversed(path), 1)} | {conversation: 0}
    found: dict[int, Seen] = {}
    for row in sorted(rows, key=lambda row: distance[row.conversation_id]):
        live = row.conversation_id == conversation
        found.setdefault(row.origin_id or row.pk, Seen(row, row.revision if live else row.seen, live))
    return found.values()
