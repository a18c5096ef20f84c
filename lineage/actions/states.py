"""The small state of a conversation: replaced whole, with a growing version (R3, C2)."""

from collections.abc import Sequence

from django.db import connection

from console.clock import now
from console.events import Changed, publish_each_on_commit, raw
from console.json_text import one_line
from console.models import Touched
from lineage.models import Conversation, State
from lineage.state import conversation_states

WHY_LENGTH = 300


def set_state(*, conversation: Conversation, state: State, why: str = "") -> bool:
    """Set the state of a conversation that the caller has locked, and announce it when anything changed; whether it did."""
    changed = change_state(conversation=conversation, state=state, why=why)
    if changed:
        announce_state(conversation=conversation)
    return changed


def change_state(*, conversation: Conversation, state: State, why: str = "") -> bool:
    """The same for a caller that announces it with others; without that nothing is saved."""
    why = one_line(why, WHY_LENGTH)
    if conversation.state == state and conversation.state_why == why:
        return False
    conversation.state, conversation.state_why, conversation.state_since = state, why, now()
    return True


def announce_state(*, conversation: Conversation, board: bool = True) -> None:
    """Raise the version, save and announce: something of the small state changed (title, queue, usage, approvals...).

    `board` is false for what no board row shows: a draft that grows.
    """
    announce_states(conversations=[conversation], board=board)


def announce_states(*, conversations: Sequence[Conversation], board: bool = True) -> None:
    """The same for many, in as many statements as for one."""
    if not conversations:
        return
    for row in conversations:
        row.state_version += 1
    # Choices are told from plain strings by the driver, which wants one type to a list.
    columns = [
        [str(value) if kind == "text" else value for row in conversations for value in [getattr(row, name)]]
        for name, kind in _COLUMNS
    ]
    with connection.cursor() as cursor:
        cursor.execute(_SAVE, [[row.pk for row in conversations], *columns])
    if board:
        Touched.objects.bulk_create(Touched(conversation=row.pk) for row in conversations)
    states = conversation_states(conversations)
    publish_each_on_commit(
        [
            (f"conversation:{row.pk}", Changed(version=row.state_version, state=raw(states[row.pk])))
            for row in conversations
        ]
    )


_COLUMNS = (
    ("state", "text"),
    ("state_why", "text"),
    ("state_since", "timestamptz"),
    ("state_version", "bigint"),
    ("title", "text"),
    ("title_source", "text"),
)
_SAVE = """
UPDATE lineage_conversation c SET {changes} FROM unnest(%s::bigint[], {arrays}) AS n(id, {names}) WHERE c.id = n.id
""".format(
    changes=", ".join(f"{name} = n.{name}" for name, _ in _COLUMNS),
    arrays=", ".join(f"%s::{kind}[]" for _, kind in _COLUMNS),
    names=", ".join(name for name, _ in _COLUMNS),
)
