"""Making tasks (L9): a row in the transaction that needs it, and a hint after its commit."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from console.clock import now
from console.json_text import dumped
from lineage.actions.copying import create_rows
from lineage.models import Conversation, Task
from lineage.tasks.definitions import find_kind
from lineage.tasks.nudges import nudge_on_commit

HINTS = 32  # of tasks that are made together: a worker that is awake goes on with the others by itself


def create_task(
    *,
    kind: str,
    conversation: Conversation,
    input: dict[str, Any],
    facts: dict[str, Any] | None = None,
    parent: Task | None = None,
    due: datetime | None = None,
) -> Task:
    """A task in the caller's transaction, which has locked the conversation where the kind is a foreground one (L8)."""
    moment = now()
    task = _new_task(kind, conversation, input, moment)
    task.facts, task.parent, task.due = dumped(facts or {}), parent, due or moment
    task.save()
    if task.due <= moment:
        nudge_on_commit(tasks=[task.pk])
    return task


def create_tasks(*, kind: str, inputs: Sequence[tuple[Conversation, dict[str, Any]]]) -> list[Task]:
    """A task that is due at once for each of these conversations and inputs, in one statement."""
    moment = now()
    tasks = [_new_task(kind, conversation, input, moment) for conversation, input in inputs]
    create_rows(tasks)
    for task in tasks[:HINTS]:
        nudge_on_commit(tasks=[task.pk])
    return tasks


def _new_task(kind: str, conversation: Conversation, input: dict[str, Any], moment: datetime) -> Task:
    definition = find_kind(kind)
    if definition is None:
        raise ValueError(f"There is no kind of task {kind}.")
    return Task(
        conversation=conversation,
        kind=kind,
        version=definition.version,
        input=dumped(input),
        phase=definition.first,
        foreground=definition.foreground,
        due=moment,
        created=moment,
    )
