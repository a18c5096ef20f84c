"""Ending waits (L11): one row and one hint per subject, whoever and however many wait for it."""

from collections.abc import Iterable

from console.clock import now
from lineage.models import Task, TaskStatus, Wake
from lineage.tasks.nudges import nudge_on_commit


def wake(subject: str) -> None:
    """Have a worker look at what waits for this subject, after this transaction's commit."""
    wake_each([subject])


def wake_each(subjects: Iterable[str]) -> None:
    """The same for many: a row and a hint each."""
    moment = now()
    rows = [Wake(subject=subject, created=moment) for subject in sorted(subjects)]
    if rows:
        Wake.objects.bulk_create(rows)
        for row in rows:
            nudge_on_commit(subjects=[row.subject])


def wake_awaited(subjects: Iterable[str]) -> None:
    """Wake those of these subjects that something waits for. The caller holds the lock under which waiters park (L11)."""
    awaited = Task.objects.filter(status=TaskStatus.WAITING, subject__in=list(subjects))
    wake_each(set(awaited.values_list("subject", flat=True)))


def conversation_subject(conversation: int) -> str:
    """What a task waits for that waits for a conversation to become idle."""
    return f"conversation:{conversation}"


def task_subject(task: int) -> str:
    """What a task waits for that waits for another's end."""
    return f"task:{task}"


def children_subject(task: int) -> str:
    """What a task waits for that waits for the end of any of its children."""
    return f"children:{task}"
