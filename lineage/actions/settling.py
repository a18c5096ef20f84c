"""What state a conversation is in (C2, L8), decided under its lock and told to whoever waits for it."""

from collections.abc import Iterable, Sequence

from django.db import connection, transaction
from django.db.models import QuerySet

from lineage.actions.locks import lock_all
from lineage.actions.states import announce_states, change_state
from lineage.actions.wakes import conversation_subject, wake_awaited, wake_each
from lineage.models import (
    Conversation,
    Kind,
    State,
    Submission,
    SubmissionStatus,
    SubmissionType,
    Task,
    TaskStatus,
)

QUIET = (State.IDLE, State.FAILED)  # nothing is under way
_WAITING_STATES = (State.APPROVAL, State.ANSWER, State.CHILD)  # the first that any task shows is the conversation's

_OWNED = """
WITH RECURSIVE owned AS (
    SELECT id FROM lineage_conversation WHERE owner_id = %s
    UNION ALL SELECT c.id FROM lineage_conversation c JOIN owned o ON c.owner_id = o.id
) SELECT id FROM owned ORDER BY id
"""

_BUSY_OWNED = """
WITH RECURSIVE owned AS (
    SELECT owner_id AS top, id, title, state FROM lineage_conversation WHERE owner_id = ANY(%s)
    UNION ALL SELECT o.top, c.id, c.title, c.state FROM lineage_conversation c JOIN owned o ON c.owner_id = o.id
) SELECT DISTINCT ON (top) top, id, title FROM owned WHERE state <> ALL(%s) ORDER BY top, id
"""


def owned_by(conversation: int) -> list[int]:
    """The conversations that it owns, at any depth; forks never count (L8)."""
    with connection.cursor() as cursor:
        cursor.execute(_OWNED, [conversation])
        return [row[0] for row in cursor.fetchall()]


def is_idle(conversation: Conversation) -> bool:
    """L8: nothing under way in it, nor in what it owns. `state` is set in the transaction that changes what it tells of."""
    if conversation.state not in QUIET:
        return False
    return not Conversation.objects.filter(pk__in=owned_by(conversation.pk)).exclude(state__in=QUIET).exists()


def settle(*, conversation: Conversation, failed: str = "", fresh: bool = False, announce: bool = False) -> None:
    """Set the state of a conversation that the caller has locked, and wake what waits for it once it is quiet.

    `failed` says why a run failed, `fresh` forgets an earlier failure; `announce` tells the watchers even when only the queue
    changed.
    """
    settle_each(conversations=[conversation], failed=failed, fresh=fresh, announce=announce)


def settle_each(
    *, conversations: Sequence[Conversation], failed: str = "", fresh: bool = False, announce: bool = False
) -> None:
    """The same for many, each locked, in as many statements as for one."""
    seen = _observed(conversations, failed, fresh)
    changed = [
        row
        for row in conversations
        if change_state(conversation=row, state=seen[row.pk][0], why=seen[row.pk][1]) or announce
    ]
    announce_states(conversations=changed)
    quiet = [row for row in conversations if row.state in QUIET]
    if quiet:
        wake_awaited([conversation_subject(row.pk) for row in quiet])
        wake_each({conversation_subject(row.owner_id) for row in quiet if row.owner_id is not None})


def set_turn(*, conversation: Conversation, open: bool) -> None:
    """An outside agent works, or its turn ended (L8); the caller has locked the conversation."""
    if conversation.turn_open != open:
        conversation.turn_open = open
        conversation.save(update_fields=["turn_open"])
    settle(conversation=conversation, fresh=True)


def look_again(subject: str) -> None:
    """After a commit in an owned conversation: settle its owner afresh, so that two children that end at the same moment
    do not each leave the other's state behind (L11)."""
    name, _, number = subject.partition(":")
    if name != "conversation" or not Conversation.objects.filter(owner=int(number)).exists():
        return
    with transaction.atomic():
        _, rows = lock_all(conversations=[int(number)])
        settle(conversation=rows[int(number)])


def live_tasks(conversation: int) -> QuerySet[Task]:
    """Its foreground tasks that have not ended."""
    return Task.objects.filter(conversation=conversation, foreground=True).exclude(status=TaskStatus.TERMINAL)


Seen = tuple[State, str]


def _observed(conversations: Sequence[Conversation], failed: str, fresh: bool) -> dict[int, Seen]:
    """State and line of each; what is decided already is not asked for further."""
    found = _seen_working(conversations)
    left = [row for row in conversations if row.pk not in found]
    having = _having_input(left)
    found |= {row.pk: (State.RUNNING, "") for row in left if row.pk in having}
    left = [row for row in left if row.pk not in found]
    found |= _seen_waiting_for_children(left)
    left = [row for row in left if row.pk not in found]
    if failed:
        return found | {row.pk: (State.FAILED, failed) for row in left}
    found |= {row.pk: (State.FAILED, row.state_why) for row in left if row.state == State.FAILED and not fresh}
    left = [row for row in left if row.pk not in found]
    why = _unanswered(left)
    return found | {row.pk: (State.IDLE, why.get(row.pk, "")) for row in left}


def _seen_working(conversations: Sequence[Conversation]) -> dict[int, Seen]:
    """Those with a foreground task or an open turn."""
    live: dict[int, list[tuple[str, str]]] = {}
    rows = Task.objects.filter(conversation__in=[row.pk for row in conversations], foreground=True)
    rows = rows.exclude(status=TaskStatus.TERMINAL).order_by("pk")
    for pk, waits_as, why in rows.values_list("conversation_id", "waits_as", "why"):
        live.setdefault(pk, []).append((waits_as, why))
    found: dict[int, Seen] = {}
    for row in conversations:
        shown = dict(reversed(live.get(row.pk, ())))  # of each waiting state the first task's line
        waits = next((state for state in _WAITING_STATES if state in shown), None)
        if waits is not None:
            found[row.pk] = waits, shown[waits]
        elif row.turn_open and row.state == State.ANSWER:
            found[row.pk] = State.ANSWER, row.state_why  # an outside agent has asked, by its own format's mark
        elif row.pk in live or row.turn_open:
            found[row.pk] = State.RUNNING, ""
    return found


def _seen_waiting_for_children(conversations: Iterable[Conversation]) -> dict[int, Seen]:
    ids = [row.pk for row in conversations]
    if not ids:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(_BUSY_OWNED, [ids, list(QUIET)])
        return {top: (State.CHILD, f"waits for #{pk} {title}".rstrip()) for top, pk, title in cursor.fetchall()}


def _unanswered(conversations: Iterable[Conversation]) -> dict[int, str]:
    """Why the newest input got no answer, where it got none."""
    ids = [row.pk for row in conversations]
    inputs = Submission.objects.filter(conversation__in=ids, type=SubmissionType.INPUT)
    newest = inputs.order_by("conversation", "-pk").distinct("conversation")
    rows = newest.values_list("conversation_id", "status", "why") if ids else ()
    return {pk: why for pk, status, why in rows if status == SubmissionStatus.UNANSWERED}


def _having_input(conversations: Iterable[Conversation]) -> set[int]:
    """Where an input waits or runs. What lies in a session's inbox is mail, not work (L8)."""
    ids = [row.pk for row in conversations if row.kind != Kind.SESSION]
    if not ids:
        return set()
    waiting = Submission.objects.filter(
        conversation__in=ids,
        type=SubmissionType.INPUT,
        status__in=[SubmissionStatus.QUEUED, SubmissionStatus.PLACED],
    )
    return set(waiting.values_list("conversation_id", flat=True))
