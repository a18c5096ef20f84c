"""What state a conversation is in (C2, L8), decided under its lock and told to whoever waits for it."""

from django.db import connection, transaction
from django.db.models import QuerySet

from lineage.actions.locks import lock_all
from lineage.actions.states import announce_state, set_state
from lineage.actions.wakes import conversation_subject, wake, wake_awaited
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
    state, line = _observed(conversation, failed, fresh)
    if state == State.FAILED and not line:
        line = conversation.state_why
    if not set_state(conversation=conversation, state=state, why=line) and announce:
        announce_state(conversation=conversation)
    if state in QUIET:
        wake_awaited([conversation_subject(conversation.pk)])
        if conversation.owner_id is not None:
            wake(conversation_subject(conversation.owner_id))


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


def _observed(conversation: Conversation, failed: str, fresh: bool) -> tuple[State, str]:
    live = list(live_tasks(conversation.pk).order_by("pk").values_list("waits_as", "why"))
    for state in _WAITING_STATES:
        for waits_as, why in live:
            if waits_as == state:
                return state, why
    if conversation.turn_open and conversation.state == State.ANSWER:
        return State.ANSWER, conversation.state_why  # an outside agent has asked, by its own format's mark
    if live or conversation.turn_open or _has_input(conversation):
        return State.RUNNING, ""
    busy = Conversation.objects.filter(pk__in=owned_by(conversation.pk)).exclude(state__in=QUIET).order_by("pk").first()
    if busy is not None:
        return State.CHILD, f"waits for #{busy.pk} {busy.title}".rstrip()
    if failed:
        return State.FAILED, failed
    if conversation.state == State.FAILED and not fresh:
        return State.FAILED, ""
    return State.IDLE, _unanswered(conversation)


def _unanswered(conversation: Conversation) -> str:
    """Why the newest input got no answer, if it got none."""
    inputs = Submission.objects.filter(conversation=conversation, type=SubmissionType.INPUT)
    last = inputs.order_by("-pk").values_list("status", "why").first()
    return last[1] if last is not None and last[0] == SubmissionStatus.UNANSWERED else ""


def _has_input(conversation: Conversation) -> bool:
    """An input waits or runs. What lies in a session's inbox is mail, not work (L8)."""
    if conversation.kind == Kind.SESSION:
        return False
    return Submission.objects.filter(
        conversation=conversation,
        type=SubmissionType.INPUT,
        status__in=[SubmissionStatus.QUEUED, SubmissionStatus.PLACED],
    ).exists()
