"""Making tasks (L9): a row in the transaction that needs it, and a hint after its commit."""

from datetime import datetime
from typing import Any

from console.clock import now
from console.json_text import dumped
from lineage.models import Conversation, Task
from lineage.tasks.definitions import find_kind
from lineage.tasks.nudges import nudge_on_commit


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
    definition = find_kind(kind)
    if definition is None:
        raise ValueError(f"There is no kind of task {kind}.")
    moment = now()
    task = Task.objects.create(
        conversation=conversation,
        parent=parent,
        kind=kind,
        version=definition.version,
        input=dumped(input),
        phase=definition.first,
        facts=dumped(facts or {}),
        foreground=definition.foreground,
        due=due or moment,
        created=moment,
    )
    if due is None or due <= moment:
        nudge_on_commit(tasks=[task.pk])
    return task
