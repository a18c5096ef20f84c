"""Asking to be told when a conversation finishes (L22): one request, one delivery."""

from typing import Any

from django.db import transaction

from console.access import Permission, Who
from console.errors import Invalid
from console.models import Touched
from console.requests import checked_request_id, remember, remembered
from lineage.access import conversation_for
from lineage.actions.ends import abort_locked
from lineage.actions.locks import lock_all, lock_tasks
from lineage.actions.starts import create_task
from lineage.actions.states import announce_state
from lineage.models import Task, TaskStatus


def request_notify(
    *, who: Who, caller: int, target: int, wake: bool = True, request_id: str | None = None
) -> dict[str, Any]:
    """Tell `caller` once `target` is idle with an answer that it was not told yet; answers `{task, target, wake}`.

    An earlier request for the same target is replaced; a repeat of this one replaces nothing. Refusals: `not_found`,
    `forbidden`, `self`.
    """
    request_id = checked_request_id(request_id)
    conversation_for(who, caller, Permission.WRITE)
    conversation_for(who, target)
    if caller == target:
        raise Invalid("target", f"#{caller} cannot ask to be told of its own end.", code="self")
    with transaction.atomic():
        _, rows = lock_all(conversations=[caller])
        row = rows[caller]
        receiver = f"conversation:{caller}"
        first = remembered(receiver=receiver, actor=who.actor, request_id=request_id)
        if first is not None:
            return dict(first)
        earlier = Task.objects.filter(conversation=caller, kind="notify", input__startswith=f'{{"target":{target},')
        live = earlier.exclude(status=TaskStatus.TERMINAL).values_list("pk", flat=True)
        abort_locked(tasks=list(lock_tasks(live).values()), conversation=row)
        task = create_task(kind="notify", conversation=row, input={"target": target, "wake": wake})
        Touched.objects.create(conversation=target)  # its line says who waits for it
        announce_state(conversation=row)
        result = {"task": task.pk, "target": target, "wake": wake}
        remember(receiver=receiver, actor=who.actor, request_id=request_id, result=result)
    return result
