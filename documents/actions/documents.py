"""Making, copying and naming documents."""

from django.db import transaction

from console.access import Permission, Who
from console.clock import now
from console.errors import DomainError, Invalid
from console.events import Changed, publish_on_commit, raw
from console.json_text import storable
from console.requests import checked_request_id, remember, remembered
from documents.access import document_for, root_of_conversation
from documents.author_runs import first_runs
from documents.edits import EditError
from documents.forks import Seen
from documents.limits import first_text
from documents.models import TITLE_LENGTH, Document, Snapshot
from documents.owners import owners
from documents.texts import newest_snapshot, walk_texts


def create_document(
    *, who: Who, conversation: int, title: str, text: str = "", request_id: str | None = None
) -> Document:
    """A document of a conversation, at revision 0. Without text it holds one line break, so that it can be edited (D6).

    Line ends are kept as given. Refusals: `not_found`, `forbidden`, `invalid`, `invalid_text`, `document_too_long`.
    """
    request_id = checked_request_id(request_id)
    root = root_of_conversation(who, conversation, Permission.WRITE)
    title = checked_title(title)
    try:
        text = first_text(text)
    except EditError as error:
        raise DomainError(error.code, error.message, status=422, **error.facts) from error
    receiver = f"conversation:{conversation}"
    with transaction.atomic():
        head = owners().lock([conversation])[conversation]
        first = remembered(receiver=receiver, actor=who.actor, request_id=request_id)
        if first is not None:
            return Document.objects.get(pk=first)
        document = Document.objects.create(
            conversation_id=conversation,
            root_id=root,
            title=title,
            head=head,
            creator_id=who.actor,
            created=now(),
        )
        Snapshot.objects.create(document=document, revision=0, size=0, text=text)
        first_runs(document, len(text)).save()
        owners().touch(conversation)
        remember(receiver=receiver, actor=who.actor, request_id=request_id, result=document.pk)
    return document


def copy_document(*, who: Who, seen: Seen, conversation: int) -> Document:
    """The fork's own document, beginning as it sees the one it inherits; revisions go on counting (D9).

    Whoever calls has asked whether `who` may write. Two that come together get the same one.
    """
    source = seen.document
    base = newest_snapshot(source, seen.revision)
    size = base.size
    for _, after in walk_texts(source, base, seen.revision):
        size = after.size
    with transaction.atomic():
        head = owners().lock([conversation])[conversation]
        document, made = Document.objects.get_or_create(
            conversation_id=conversation,
            origin_id=source.origin_id or source.pk,
            defaults={
                "root_id": source.root_id,
                "title": source.title,
                "revision": seen.revision,
                "size": size,
                "head": head,
                "source": source,
                "source_revision": seen.revision,
                "creator_id": who.actor,
                "created": now(),
            },
        )
        if made:
            owners().touch(conversation)
    return document


def rename_document(*, who: Who, document: int, title: str, request_id: str | None = None) -> Document:
    """Give it another title. Refusals: `not_found`, `forbidden`, `invalid`."""
    request_id = checked_request_id(request_id)
    title = checked_title(title)
    document_for(who, document, Permission.WRITE)
    receiver = f"document:{document}"
    with transaction.atomic():
        row = Document.objects.select_for_update(no_key=True).get(pk=document)
        if remembered(receiver=receiver, actor=who.actor, request_id=request_id) is None:
            row.title, row.title_version = title, row.title_version + 1
            row.save(update_fields=["title", "title_version"])
            publish_on_commit(f"document:{document}", Changed(version=row.title_version, state=raw({"title": title})))
            owners().touch(row.conversation_id)
            remember(receiver=receiver, actor=who.actor, request_id=request_id, result={"title": title})
    return row


def checked_title(title: str) -> str:
    """The title on one line, or a refusal when it is blank or too long."""
    flat = " ".join(storable(title).split())
    if not flat:
        raise Invalid("title", "A title is needed: a blank one names nothing.")
    if len(flat) > TITLE_LENGTH:
        raise Invalid(
            "title",
            f"The title has {len(flat)} characters; at most {TITLE_LENGTH} fit.",
            limit=TITLE_LENGTH,
            actual=len(flat),
        )
    return flat
