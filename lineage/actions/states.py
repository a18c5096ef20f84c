"""The small state of a conversation: replaced whole, with a growing version (R3, C2)."""

from console.clock import now
from console.events import Changed, publish_on_commit, raw
from console.json_text import one_line
from console.models import Touched
from lineage.models import Conversation, State
from lineage.state import conversation_state

WHY_LENGTH = 300


def set_state(*, conversation: Conversation, state: State, why: str = "") -> bool:
    """Set the state of a conversation that the caller has locked, and announce it when anything changed; whether it did."""
    why = one_line(why, WHY_LENGTH)
    if conversation.state == state and conversation.state_why == why:
        return False
    conversation.state, conversation.state_why, conversation.state_since = state, why, now()
    announce_state(conversation=conversation)
    return True


def announce_state(*, conversation: Conversation, board: bool = True) -> None:
    """Raise the version, save and announce: something of the small state changed (title, queue, usage, approvals...).

    `board` is false for what no board row shows: a draft that grows.
    """
    conversation.state_version += 1
    conversation.save(update_fields=["state", "state_why", "state_since", "state_version", "title", "title_source"])
    if board:
        Touched.objects.create(conversation=conversation.pk)
    publish_on_commit(
        f"conversation:{conversation.pk}",
        Changed(version=conversation.state_version, state=raw(conversation_state(conversation))),
    )
