"""Aborting and retrying tasks, and hinting at them again (L9)."""

from collections.abc import Sequence

from django.db import transaction

from console.access import Permission, Who, require
from console.clock import now
from console.errors import Conflict, DomainError, NotFound
from lineage.actions.ends import abort_locked
from lineage.actions.locks import lock_all, lock_tasks
from lineage.models import Conversation, Task, TaskOutcome, TaskStatus
from lineage.tasks.nudges import nudge_on_commit, send_nudge


def abort_task(*, who: Who | None, task: int) -> Task:
    """Mark it: a waiting or pending one ends at once, a running one at its next commit. `who` is none for the product itself.

    Refusals: `not_found`, `forbidden`, `ended`.
    """
    row = _task_for(who, task)
    with transaction.atomic():
        _, rows = lock_all(conversations=[row.conversation_id])
        row = lock_tasks([row.pk])[row.pk]
        if row.status == TaskStatus.TERMINAL:
            raise Conflict("ended", f"Task {row.pk} ended already: {row.outcome}.", outcome=row.outcome)
        abort_locked(tasks=[row], conversation=rows[row.conversation_id])
    return row


def retry_task(*, who: Who, task: int) -> Task:
    """Run a failed task again from its last checkpoint; or one that rests after a failure, now.

    Refusals: `not_found`, `forbidden`, `not_failed`.
    """
    row = _task_for(who, task)
    with transaction.atomic():
        lock_all(conversations=[row.conversation_id])
        row = lock_tasks([row.pk])[row.pk]
        failed = row.status == TaskStatus.TERMINAL and row.outcome == TaskOutcome.FAILED
        if not failed and row.status != TaskStatus.PENDING:
            state = f"{row.status} {row.outcome}".rstrip()
            raise Conflict("not_failed", f"Task {row.pk} is {state}: only a failed one runs again.")
        row.status, row.outcome, row.ended = TaskStatus.PENDING, "", None
        row.attempts, row.aborting, row.due, row.error = 0, False, now(), ""
        row.save()
        nudge_on_commit(tasks=[row.pk])
    return row


def resend_nudge(*, who: Who, task: int) -> None:
    """Hint at a task again. Writes nothing. Refusals: `not_found`, `forbidden`, `ended`, `unreachable`."""
    row = _task_for(who, task)
    if row.status == TaskStatus.TERMINAL:
        raise Conflict("ended", f"Task {row.pk} ended already: {row.outcome}.", outcome=row.outcome)
    if not send_nudge([row.pk], [row.subject] if row.subject else []):
        raise DomainError(
            "unreachable", "Valkey does not answer, so no worker could be told. The sweep goes on trying.", status=503
        )


def abort_tasks_of(*, conversation: Conversation, kinds: Sequence[str] | None = None) -> int:
    """Abort the live foreground tasks of a conversation that the caller has locked; answers how many."""
    live = Task.objects.filter(conversation=conversation, foreground=True).exclude(status=TaskStatus.TERMINAL)
    if kinds is not None:
        live = live.filter(kind__in=kinds)
    rows = lock_tasks(live.values_list("pk", flat=True))
    abort_locked(tasks=list(rows.values()), conversation=conversation)
    return len(rows)


def _task_for(who: Who | None, task: int) -> Task:
    row = Task.objects.select_related("conversation").filter(pk=task).first()
    if row is None:
        raise NotFound("task", task)
    if who is not None:
        require(who, row.conversation.root_id, Permission.DECIDE, what="task", name=task)
    return row
