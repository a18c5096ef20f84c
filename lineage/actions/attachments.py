"""Uploading attachments and recording what was extracted from them (D18, L9)."""

import mimetypes
from collections.abc import Iterable

from django.db import transaction

from console.access import Permission, Who
from console.clock import now
from console.errors import Invalid
from console.json_text import one_line
from console.requests import checked_request_id, remember, remembered
from documents.attachments.limits import FILENAME_CHARS
from documents.attachments.models import Attachment
from documents.attachments.names import new_name
from documents.attachments.sidecar import Meta
from documents.attachments.storing import forget_upload, store_upload
from lineage.access import conversation_for
from lineage.actions.entries import lock_conversation
from lineage.actions.starts import create_task
from lineage.actions.states import announce_state
from lineage.models import Conversation


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
            return Attachment.objects.get(name=first)
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
    Attachment.objects.filter(name=name).update(
        status=meta.status,
        chars=meta.chars,
        truncated=meta.truncated,
        reason=meta.reason or "",
        media_type=meta.media_type[:100],
    )
    announce_state(conversation=conversation)
