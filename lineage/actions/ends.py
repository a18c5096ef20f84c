"""How tasks end (L9): their children first, then themselves, then whoever waits for them."""

from collections.abc import Sequence
from typing import Any

from django.db import connection

from console.clock import now
from console.json_text import dumped
from lineage.actions.locks import lock_tasks
from lineage.actions.runs import end_run
from lineage.actions.wakes import children_subject, task_subject, wake_awaited
from lineage.models import Conversation, Task, TaskOutcome, TaskStatus
from lineage.tasks.definitions import find_kind
from lineage.tasks.nudges import nudge_on_commit


def end_task(
    *, task: Task, conversation: Conversation, outcome: TaskOutcome, result: Any = None, error: str = ""
) -> None:
    """End a task that the caller has locked, with its parent and its conversation. Live children are aborted, and it is
    `completing` until the last of them has ended."""
    task.lease = task.lease_until = None
    task.outcome, task.result, task.error = outcome, dumped(result), error
    task.subject = task.waits_as = task.why = ""
    task.status = TaskStatus.COMPLETING
    task.save()
    children = lock_tasks(_live_children(task))
    if children:
        abort_locked(tasks=list(children.values()), conversation=conversation)
        task.refresh_from_db()
    _end_when_alone(task, conversation)


def abort_locked(*, tasks: Sequence[Task], conversation: Conversation) -> None:
    """Abort tasks of one conversation that the caller has locked with it. A running one ends at its next commit, one that
    must undo something by a worker, any other at once."""
    for task in tasks:
        definition = find_kind(task.kind)
        if task.status in (TaskStatus.TERMINAL, TaskStatus.COMPLETING) or task.aborting:
            continue
        task.aborting = True
        if task.status == TaskStatus.RUNNING:
            task.save(update_fields=["aborting"])
        elif definition is not None and definition.abort is not None:
            task.status, task.due = TaskStatus.PENDING, now()
            task.subject = task.waits_as = task.why = ""
            task.save()
            nudge_on_commit(tasks=[task.pk])
        else:
            end_task(task=task, conversation=conversation, outcome=TaskOutcome.ABORTED)


def save_tasks(tasks: Sequence[Task]) -> None:
    """Write the transitions of many locked tasks in one statement."""
    if not tasks:
        return
    columns = [
        [task.pk for task in tasks],
        *([getattr(task, name) for task in tasks] for name, _ in _COLUMNS),
    ]
    given = ", ".join(f"%s::{kind}[]" for kind in ("bigint", *(kind for _, kind in _COLUMNS)))
    names = ", ".join(name for name, _ in _COLUMNS)
    changes = ", ".join(f"{name} = n.{name}" for name, _ in _COLUMNS)
    with connection.cursor() as cursor:
        cursor.execute(
            f"UPDATE lineage_task t SET {changes} FROM unnest({given}) AS n(id, {names}) "  # noqa: S608 - names from here
            "WHERE t.id = n.id",
            columns,
        )


# What a transition changes, with the columns' types.
_COLUMNS = (
    ("phase", "text"),
    ("facts", "text"),
    ("status", "text"),
    ("outcome", "text"),
    ("result", "text"),
    ("error", "text"),
    ("due", "timestamptz"),
    ("attempts", "int"),
    ("lease", "uuid"),
    ("lease_until", "timestamptz"),
    ("subject", "text"),
    ("waits_as", "text"),
    ("why", "text"),
    ("ended", "timestamptz"),
)


def with_live_children(tasks: Sequence[int]) -> set[int]:
    """Those of these tasks that have a child which has not ended."""
    if not tasks:
        return set()
    live = Task.objects.filter(parent__in=tasks).exclude(status=TaskStatus.TERMINAL)
    return {parent for parent in live.values_list("parent_id", flat=True) if parent is not None}


def _end_when_alone(task: Task, conversation: Conversation) -> None:
    if task.status != TaskStatus.COMPLETING or _live_children(task):
        return
    task.status, task.ended = TaskStatus.TERMINAL, now()
    task.save(update_fields=["status", "ended"])
    definition = find_kind(task.kind)
    if definition is not None and definition.ended is not None:
        definition.ended(task, conversation)
    elif task.foreground:
        end_run(conversation=conversation, task=task)
    subjects = [task_subject(task.pk)]
    if task.parent_id is not None:
        subjects.append(children_subject(task.parent_id))
        parent = lock_tasks([task.parent_id])[task.parent_id]  # locked before by whoever locked this one
        _end_when_alone(parent, conversation)
    wake_awaited(subjects)


def _live_children(task: Task) -> list[int]:
    return list(Task.objects.filter(parent=task).exclude(status=TaskStatus.TERMINAL).values_list("pk", flat=True))
