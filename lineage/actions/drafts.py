"""The answer that is being written: stored and shown a few times a second, gone once it is an entry (A5)."""

import json
from typing import Any
from uuid import UUID

from django.db import transaction

from console.clock import now
from console.json_text import dumped
from lineage.actions.entries import NewEntry, lock_conversation, place_entries
from lineage.actions.states import announce_state
from lineage.models import Conversation, Draft, Entry, Outcome, Task


def store_draft(
    *,
    conversation: int,
    task: int,
    lease: UUID,
    request: str,
    message_id: str,
    model: str,
    blocks: list[dict[str, Any]],
) -> bool:
    """Keep what has come so far and show it. False, and nothing written, when another worker has the task."""
    with transaction.atomic():
        row = lock_conversation(conversation)
        if not Task.objects.filter(pk=task, lease=lease).exists():
            return False
        values = {"request": request, "message_id": message_id[:200], "model": model[:200], "blocks": dumped(blocks)}
        Draft.objects.update_or_create(
            conversation=row,
            defaults={"task_id": task, **values},
            create_defaults={"task_id": task, "began": now(), **values},
        )
        announce_state(conversation=row, board=False)
    return True


def place_partial(*, conversation: Conversation, outcome: Outcome, why: str) -> Entry | None:
    """The draft of a conversation that the caller has locked becomes an entry that the model will not read, if it says anything."""
    draft = Draft.objects.filter(conversation=conversation).first()
    if draft is None:
        return None
    draft.delete()
    # A call that was being written is none, and unsigned thinking may stay: nothing of this is ever sent again.
    blocks = [block for block in json.loads(draft.blocks) if block.get("type") in {"text", "thinking"}]
    if not any(str(block.get("text") or block.get("thinking") or "").strip() for block in blocks):
        return None
    (entry,) = place_entries(
        conversation=conversation,
        entries=[
            NewEntry(
                kind="assistant",
                model=[{"role": "assistant", "content": blocks}],
                data={str(outcome): True, "why": why},
                author=conversation.agent_id,
                outcome=outcome,
            )
        ],
    )
    return entry
