"""Locks in the one order: root, conversations by number, tasks by number, rest (R5)."""

from collections.abc import Iterable

from lineage.actions.roots import lock_root
from lineage.models import Conversation, Root, Task

MANY = 10  # conversations from which on one more statement costs less than a row of their root beside each


def lock_all(*, root: int | None = None, conversations: Iterable[int]) -> tuple[Root | None, dict[int, Conversation]]:
    """The root when one is named, then these conversations by number; held until the transaction ends.

    A root's own conversation comes into the second answer only when it is named among them.
    """
    held = lock_root(root) if root is not None else None
    ids = set(conversations)
    rows = Conversation.objects.select_for_update(of=("self",), no_key=True).filter(pk__in=ids).order_by("pk")
    rows = rows.prefetch_related("root") if len(ids) > MANY else rows.select_related("root")
    return held, {row.pk: row for row in rows}


def lock_tasks(ids: Iterable[int]) -> dict[int, Task]:
    """These tasks by number; held until the transaction ends."""
    rows = Task.objects.select_for_update(of=("self",), no_key=True).filter(pk__in=set(ids)).order_by("pk")
    return {row.pk: row for row in rows}
