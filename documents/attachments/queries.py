"""Reading lists of attachments."""

from collections.abc import Collection, Iterable
from typing import Any

from django.db.models import Q

from documents.attachments.models import Attachment

LISTED = 200  # attachments of a conversation in one answer, the newest


def attachments_of(conversation: int, ranges: Iterable[tuple[int, int, int]] = ()) -> list[Attachment]:
    """All attachments of a conversation, and those that the entries of `ranges` brought, oldest first."""
    rows = Attachment.objects.filter(Q(conversation=conversation) | _brought(ranges)).select_related("uploader")
    return list(rows.order_by("-pk")[:LISTED])[::-1]


def attachments_in(ranges: Iterable[tuple[int, int, int]]) -> list[Attachment]:
    """What the entries of these ranges (conversation, first, last) brought, in their order; the newest `LISTED`."""
    rows = Attachment.objects.filter(_brought(ranges))
    return list(rows.order_by("-seq", "-pk")[:LISTED])[::-1]


def having_attachments(conversations: Collection[int]) -> set[int]:
    """Those of these conversations that have any."""
    rows = Attachment.objects.filter(conversation__in=conversations).order_by()
    return set(rows.values_list("conversation_id", flat=True).distinct())


def attachment_json(row: Attachment) -> dict[str, Any]:
    """An attachment as HTTP, MCP and the tools list it."""
    return {
        "name": row.name,
        "filename": row.filename,
        "conversation": row.conversation_id,
        "media_type": row.media_type,
        "size": row.size,
        "status": row.status,
        "chars": row.chars,
        "truncated": row.truncated,
        "reason": row.reason or None,
        "entry": row.seq,
        "read": row.read,
        "uploader": row.uploader.name,
        "created": row.created.isoformat(),
    }


def _brought(ranges: Iterable[tuple[int, int, int]]) -> Q:
    found = Q(pk__in=())
    for conversation, first, last in ranges:
        found |= Q(conversation=conversation, seq__range=(first, last))
    return found
