"""Reading lists of attachments."""

from collections.abc import Sequence
from typing import Any

from documents.attachments.models import Attachment

LISTED = 200  # attachments of a conversation in one answer, the newest


def attachments_of(conversations: list[int]) -> list[Attachment]:
    """The attachments of these conversations, oldest first."""
    rows = Attachment.objects.filter(conversation__in=conversations).select_related("uploader")
    return list(rows.order_by("-pk")[:LISTED])[::-1]


def having_attachments(conversations: Sequence[int]) -> set[int]:
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
        "uploader": row.uploader.name,
        "created": row.created.isoformat(),
    }
