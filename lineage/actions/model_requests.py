"""What a model was sent, recorded before it is sent (A1, L28); the notes that it carries are read with it (L21)."""

from django.db import transaction

from console.clock import now
from console.json_text import dumped
from lineage.actions.attachments import note_readings
from lineage.agent.ledger import Ledger, Receipt, carried_texts
from lineage.context import Message, answer_text, parse_messages
from lineage.models import Conversation, LoadReceipt, ModelRequest, Note


def record_request(
    *,
    conversation: Conversation,
    name: str,
    at: int,
    model: str,
    ledger: Ledger,
    receipt: Receipt | None = None,
    body: bytes = b"",
) -> None:
    """Written once per name; a request that was too long to be sent has no `receipt` and no `body`."""
    moment = now()
    with transaction.atomic():
        _, made = ModelRequest.objects.get_or_create(
            conversation=conversation,
            name=name,
            defaults={
                "at": at,
                "model": model,
                "ledger": dumped(ledger.as_json()),
                "receipt": dumped(receipt.as_json() if receipt is not None else None),
                "time": moment,
            },
        )
        if not made or receipt is None:
            return
        LoadReceipt.objects.get_or_create(
            conversation=conversation,
            request=name,
            defaults={
                "memories": dumped(list(receipt.memories)),
                "agents_md": receipt.agents_characters,
                "agents_md_whole": receipt.agents_total,
                "time": moment,
            },
        )
        note_readings(conversation=conversation.pk, readings=receipt.attachments)
        Note.objects.filter(pk__in=_carried(conversation, at, body)).update(read=moment, included=name)


def _carried(conversation: Conversation, at: int, body: bytes) -> list[int]:
    """The unread notes that the body carries. One that a head or the cap left out, or that an edit changed, is not read."""
    unread = Note.objects.filter(submission__conversation=conversation, submission__seq__lte=at, read=None)
    notes = list(unread.values_list("pk", "submission__model"))
    texts = carried_texts(body) if notes else frozenset[str]()
    return [pk for pk, model in notes if any(_said(message) in texts for message in parse_messages(model))]


def _said(message: Message) -> str:
    content = message.get("content")
    return content if isinstance(content, str) else answer_text([{**message, "role": "assistant"}])
