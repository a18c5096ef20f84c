"""Notes between conversations (L21): left without waking anyone, with receipts for the sender."""

from dataclasses import dataclass
from typing import Any

from django.db import transaction

from console.access import Permission, Who
from console.errors import Invalid
from console.json_text import storable
from console.requests import checked_request_id, remember, remembered
from lineage.access import conversation_for
from lineage.actions.branches import named
from lineage.actions.entries import lock_conversation
from lineage.actions.runs import advance
from lineage.actions.submissions import NewSubmission, enqueue
from lineage.models import Conversation, Note, NoteSource, Submission, SubmissionStatus, SubmissionType

NOTE = 16_000  # characters: whoever has more to say shares a document


@dataclass(frozen=True, kw_only=True)
class NewNote:
    """A note on its way. `message` is what the reader's model reads, `text` what was said."""

    source: NoteSource
    text: str
    message: str
    data: dict[str, Any]
    sender: int | None = None
    title: str = ""
    author: int | None = None


def leave_note(
    *, who: Who, to: int | str, text: str, sender: int | None = None, request_id: str | None = None
) -> dict[str, Any]:
    """Leave a note in a conversation, or in the root of the sender's tree when `to` is "root"; answers its receipt.

    Refusals: `not_found`, `forbidden`, `invalid`.
    """
    request_id = checked_request_id(request_id)
    if sender is None and who.is_agent:
        sender = who.conversation
    source = conversation_for(who, sender, Permission.WRITE) if sender is not None else None
    target = _target(to, source)
    conversation_for(who, target, Permission.WRITE)
    new = _new_note(who, text, source)
    with transaction.atomic():
        row = lock_conversation(target)
        receiver = f"conversation:{target}"
        first = remembered(receiver=receiver, actor=who.actor, request_id=request_id)
        if first is not None:
            return dict(first)
        submission = enqueue_note(conversation=row, new=new)
        advance(conversation=row)
        submission.refresh_from_db()
        result = receipt_json(submission.note)
        remember(receiver=receiver, actor=who.actor, request_id=request_id, result=result)
    return result


def enqueue_note(*, conversation: Conversation, new: NewNote) -> Submission:
    """Queue it as a write in a conversation that the caller has locked; `advance` places it, or its reader does."""
    submission = enqueue(
        conversation=conversation,
        new=NewSubmission(
            type=SubmissionType.WRITE,
            kind="lineage.note",
            model=[{"role": "user", "content": new.message}],
            data=new.data,
            author=new.author,
        ),
    )
    submission.note = Note.objects.create(
        submission=submission, source=new.source, sender_id=new.sender, title=new.title, text=new.text
    )
    return submission


def receipt_json(note: Note) -> dict[str, Any]:
    """`{id, to, from, source, text, status, entry?, included?}`; status is sent, placed or read."""
    submission = note.submission
    status = "read" if note.read else "placed" if submission.seq is not None else "sent"
    if submission.status == SubmissionStatus.WITHDRAWN:
        status = "withdrawn"
    return {
        "id": note.pk,
        "to": submission.conversation_id,
        "from": note.sender_id,
        "source": note.source,
        "title": note.title,
        "text": note.text,
        "status": status,
        "time": submission.created.isoformat(),
        **({"entry": submission.seq} if submission.seq is not None else {}),
        **({"included": note.included} if note.included else {}),
    }


def _target(to: int | str, source: Conversation | None) -> int:
    if to != "root":
        return int(to)
    if source is None:
        raise Invalid("from", 'A note to "root" needs `from`, the conversation whose root is meant.')
    return int(source.root_id)


def _new_note(who: Who, text: str, source: Conversation | None) -> NewNote:
    text = storable(text).strip()
    if not 1 <= len(text) <= NOTE:
        raise Invalid(
            "text", f"A note has 1 to {NOTE} characters; this one has {len(text)}.", limit=NOTE, actual=len(text)
        )
    if source is None:
        return NewNote(
            source=NoteSource.OPERATOR,
            text=text,
            message=f"Note from {who.name}, who operates this console: {text}",
            data={"text": text, "source": str(NoteSource.OPERATOR), "operator": who.name},
            author=who.actor,
        )
    name = named(source.pk, who.actor)
    if name == f"#{source.pk}" and source.title:
        name = f"{name} {source.title}"
    return NewNote(
        source=NoteSource.CONVERSATION,
        text=text,
        message=f"Note from {name}: {text}",
        data={"text": text, "from": source.pk, "title": source.title},
        sender=source.pk,
        title=source.title,
        author=who.actor,
    )
