"""The sweep (L9): each second one process finds what no hint brought to a worker, and says what no worker here can run."""

from datetime import timedelta

from console.clock import now
from lineage.models import Task, TaskStatus, Wake
from lineage.tasks.claiming import due_tasks, runnable, unrunnable_tasks
from lineage.tasks.definitions import find_kind
from lineage.tasks.nudges import send_nudge

GRACE = timedelta(milliseconds=500)  # younger ones have a hint of their own on its way
HINTS = 200  # of one sweep: workers go on by themselves once they are awake
UNKNOWN = "No worker here runs"  # how a note of the sweep begins, so that it can be taken back


def sweep_tasks() -> bool:
    """Hint at what waits for a worker; never more to do at once."""
    moment = now() - GRACE
    late = due_tasks().exclude(status=TaskStatus.PENDING, due__gt=moment).order_by("due").values_list("pk", flat=True)
    for task in late[:HINTS]:
        if not send_nudge([task], []):
            break
    subjects = Wake.objects.filter(created__lt=moment).order_by("subject").values_list("subject", flat=True).distinct()
    for subject in subjects[:HINTS]:
        if not send_nudge([], [subject]):
            break
    mark_blocked()
    return False


def mark_blocked() -> None:
    """Say on each row why nobody runs it, and take it back once somebody can."""
    for task in unrunnable_tasks().filter(blocked=""):
        definition = find_kind(task.kind)
        why = f"the kind {task.kind}" if definition is None else f"version {task.version} of {task.kind}"
        has = "" if definition is None else f"; it runs version {definition.version}"
        Task.objects.filter(pk=task.pk, blocked="").update(blocked=f"{UNKNOWN} {why}{has}.")
    Task.objects.filter(runnable(), blocked__startswith=UNKNOWN).update(blocked="")
