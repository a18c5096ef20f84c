"""Uploading attachments, recording what was extracted from them, what brings them, and how far agents read (D18, D19, L9)."""

import json
import mimetypes
from collections.abc import Iterable, Mapping
from typing import Any

from django.db import transaction

from console.access import Permission, Who
from console.clock import now
from console.errors import Conflict, Invalid, NotFound
from console.json_text import one_line
from console.requests import checked_request_id, remember, remembered
from documents.attachments.access import attachment_for
from documents.attachments.limits import FILENAME_CHARS, NAMED
from documents.attachments.models import Attachment
from documents.attachments.names import new_name
from documents.attachments.queries import attachments_of
from documents.attachments.sidecar import Meta
from documents.attachments.storing import forget_upload, store_upload
from lineage.access import conversation_for
from lineage.actions.entries import lock_conversation
from lineage.actions.starts import create_task
from lineage.actions.states import announce_state
from lineage.loading import visible_ranges
from lineage.models import Conversation, Submission, SubmissionStatus
from lineage.queries import unsent_attachments


def upload_attachment(
    *, who: Who, conversation: int, filename: str, chunks: Iterable[bytes], request_id: str | None = None
) -> Attachment:
    """Keep a file and order its extraction, which happens once. Refusals: `not_found`, `forbidden`, `attachment_too_large`.

    The file is on disk before the row that names it: a crash between leaves a file that nobody refers to.
    """
    request_id = checked_request_id(request_id)
    row = conversation_for(who, conversation, Permission.WRITE)
    shown = one_line(filename.replace("\\", "/").rsplit("/", 1)[-1], FILENAME_CHARS)
    if not shown:
        raise Invalid("file", "The file has no name. Send it as multipart field file with a filename.")
    name = new_name(shown)
    size = store_upload(name, chunks)
    with transaction.atomic():
        locked = lock_conversation(row.pk)
        receiver = f"conversation:{locked.pk}"
        first = remembered(receiver=receiver, actor=who.actor, request_id=request_id)
        if first is not None:
            forget_upload(name)  # nothing names it
            kept = Attachment.objects.filter(name=first).first()
            if kept is None:  # taken back since
                raise NotFound("attachment", first)
            return kept
        made = Attachment.objects.create(
            name=name,
            conversation_id=locked.pk,
            root_id=locked.root_id,
            filename=shown,
            media_type=mimetypes.guess_type(shown)[0] or "application/octet-stream",
            size=size,
            uploader_id=who.actor,
            created=now(),
        )
        create_task(conversation=locked, kind="extract", input={"name": name, "filename": shown})
        remember(receiver=receiver, actor=who.actor, request_id=request_id, result=name)
    return made


def record_extraction(*, conversation: Conversation, name: str, meta: Meta) -> None:
    """Repeat the sidecar's facts in the row and announce them, in the caller's transaction with the conversation locked."""
    known = Attachment.objects.filter(name=name).update(
        status=meta.status,
        chars=meta.chars,
        truncated=meta.truncated,
        reason=meta.reason or "",
        media_type=meta.media_type[:100],
    )
    if not known:  # taken back while it was extracted
        transaction.on_commit(lambda: forget_upload(name))
        return
    announce_state(conversation=conversation)


def take_back_attachment(*, who: Who, name: str) -> None:
    """Remove a file that no input has brought yet. Refusals: `not_found`, `forbidden`, `brought`."""
    row = attachment_for(who, name)
    conversation_for(who, row.conversation_id, Permission.WRITE)
    with transaction.atomic():
        conversation = lock_conversation(row.conversation_id)
        row.refresh_from_db()
        queued = Submission.objects.filter(conversation=conversation, status=SubmissionStatus.QUEUED)
        if row.seq is not None or queued.filter(data__contains=row.name).exists():
            raise Conflict(
                "brought", f"{row.filename} was sent already, so it stays. Withdraw its input if it still waits."
            )
        row.delete()
        announce_state(conversation=conversation)
        transaction.on_commit(lambda: forget_upload(row.name))


def brought_by(*, conversation: Conversation, names: list[str] | None, author: int, is_input: bool) -> dict[str, Any]:
    """The `data` of an entry that brings these attachments, of a conversation that the caller has locked.

    Without names an input brings what its author uploaded here and nothing has brought yet. Refusals: `not_found`, `invalid`.
    """
    own = Attachment.objects.filter(conversation=conversation)
    if names is None:
        rows = unsent_attachments(conversation.pk, author=author) if is_input else []
    else:
        if len(names) > NAMED:
            raise Invalid(
                "attachments", f"An input brings at most {NAMED} attachments; these are {len(names)}.", limit=NAMED
            )
        seen = {row.name: row for row in attachments_of(conversation.pk, visible_ranges(conversation))}
        seen |= {row.name: row for row in own.filter(name__in=[name for name in names if name not in seen])}
        for name in names:
            if name not in seen:
                raise NotFound("attachment", name[:64])
        rows = [seen[name] for name in dict.fromkeys(names)]
    return {"attachments": [{"name": row.name, "filename": row.filename} for row in rows]} if rows else {}


def bring_attachments(*, conversation: int, data: str, seq: int) -> None:
    """The entry `seq` with this `data` was placed: what it names and nothing brought before stands there from now on."""
    if '"attachments"' not in data:
        return
    found = json.loads(data).get("attachments")
    given = found if isinstance(found, list) else []
    names = [item["name"] for item in given if isinstance(item, dict) and isinstance(item.get("name"), str)]
    Attachment.objects.filter(conversation=conversation, seq=None, name__in=names).update(seq=seq)


def record_reading(*, who: Who, name: str, upto: int) -> None:
    """An agent has read an attachment that it may see up to this code point; what people read is not kept."""
    if who.is_agent:
        with transaction.atomic():
            note_readings(conversation=attachment_for(who, name).conversation_id, readings={name: upto})


def note_readings(*, conversation: int, readings: Mapping[str, int]) -> None:
    """Agents have read these attachments so far (code points by name), in the caller's transaction. `conversation` is told;
    those of an ancestor show it when they are asked for."""
    further = [
        name for name, upto in readings.items() if Attachment.objects.filter(name=name, read__lt=upto).update(read=upto)
    ]
    if further:
        announce_state(conversation=lock_conversation(conversation), board=False)
