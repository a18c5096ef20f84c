"""Notes as their senders and readers see them (L21). Reads only."""

from lineage.models import Conversation, Note

PAGE = 100  # the newest notes of a conversation; older ones stand among its entries


def notes_of(conversation: Conversation, direction: str) -> list[Note]:
    """The newest that it sent or received."""
    rows = Note.objects.select_related("submission").order_by("-pk")
    if direction == "sent":
        return list(rows.filter(sender=conversation)[:PAGE])
    return list(rows.filter(submission__conversation=conversation)[:PAGE])
