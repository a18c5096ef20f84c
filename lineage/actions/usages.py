"""Usage of answers that are no entries: summaries, proposals for the memory (A6)."""

from django.db import transaction

from console.clock import now
from lineage.actions.entries import lock_conversation
from lineage.actions.states import announce_state
from lineage.models import Usage


def record_usage(
    *,
    conversation: int,
    message_id: str,
    model: str,
    input_tokens: int,
    output_tokens: int,
    cache_read_tokens: int,
    cache_write_tokens: int,
    cost_micros: int | None,
) -> None:
    """Once per message id, counted to the conversation that it was for."""
    with transaction.atomic():
        row = lock_conversation(conversation)
        _, made = Usage.objects.get_or_create(
            conversation=row,
            message_id=message_id[:200],
            defaults={
                "seq": row.head,
                "time": now(),
                "model": model[:200],
                "input_tokens": input_tokens,
                "output_tokens": output_tokens,
                "cache_read_tokens": cache_read_tokens,
                "cache_write_tokens": cache_write_tokens,
                "cost_micros": cost_micros,
            },
        )
        if made:
            announce_state(conversation=row)
