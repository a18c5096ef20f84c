"""What a model was sent, recorded before it is sent (A1, L28); the notes that it carries are read with it (L21)."""

from django.db import transaction

from console.clock import now
from console.json_text import dumped
from lineage.agent.ledger import Ledger, Receipt
from lineage.models import Conversation, LoadReceipt, ModelRequest, Note


def record_request(
    *, conversation: Conversation, name: str, at: int, model: str, ledger: Ledger, receipt: Receipt | None
) -> None:
    """Written once per name; `receipt` is none for a request that was too long to be sent."""
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
        first = ledger.left_out[1] + 1 if ledger.left_out is not None else 0
        Note.objects.filter(
            submission__conversation=conversation, submission__seq__gte=first, submission__seq__lte=at, read=None
        ).update(read=moment, included=name)
