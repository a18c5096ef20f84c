"""Giving rows to workers: a claim skips what others are taking (L9), a wake claims waiters in batches (L11)."""

from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID, uuid4

from django.db import transaction
from django.db.models import F, Q, QuerySet

from console.clock import now
from lineage.models import Task, TaskStatus
from lineage.tasks.definitions import known_kinds

LEASE = timedelta(seconds=15)  # how long a killed worker's task rests before another takes it
BATCH = 500  # tasks of one claim: those that one commit may end together


@dataclass(frozen=True, kw_only=True)
class Claim:
    """Tasks that this worker may run until `LEASE` has passed without renewal."""

    lease: UUID
    tasks: list[Task]


def claim_one(task: int | None = None) -> Claim:
    """This task if it is due; without a number the one that is due the longest. One at a time: a phase may take minutes,
    and other workers are free meanwhile."""
    rows = due_tasks()
    return _claim(rows if task is None else rows.filter(pk=task), 1)


def claim_batch() -> Claim:
    """Due tasks of those kinds that run many in one commit."""
    return _claim(due_tasks().filter(kind__in=_batching()), BATCH)


def claim_waiting(subject: str, *, after: int = 0) -> Claim:
    """Waiters for this subject above the task number `after`, of those kinds that run many in one commit."""
    waiting = Task.objects.filter(runnable(), status=TaskStatus.WAITING, subject=subject, kind__in=_batching())
    return _claim(waiting.filter(pk__gt=after), BATCH)


def release_waiting(subject: str) -> list[int]:
    """Make the subject's other waiters pending; answers their numbers."""
    others = Task.objects.filter(status=TaskStatus.WAITING, subject=subject).exclude(kind__in=_batching())
    with transaction.atomic():
        ids = list(others.order_by("pk").select_for_update(skip_locked=True, no_key=True).values_list("pk", flat=True))
        Task.objects.filter(pk__in=ids).update(status=TaskStatus.PENDING, due=now(), subject="")
    return ids


def due_tasks() -> QuerySet[Task]:
    """Pending ones whose time has come, and those whose worker let its lease pass; only kinds that this process runs."""
    moment = now()
    return Task.objects.filter(
        Q(status=TaskStatus.PENDING, due__lte=moment) | Q(status=TaskStatus.RUNNING, lease_until__lt=moment),
        runnable(),
    )


def runnable() -> Q:
    """Kinds and versions that this process has definitions for. Others stay where they are (L9)."""
    runnable = Q(pk__in=[])
    for definition in known_kinds():
        low, high = definition.versions
        runnable |= Q(kind=definition.kind, version__gte=low, version__lte=high)
    return runnable


def _batching() -> list[str]:
    return [definition.kind for definition in known_kinds() if definition.batches]


def unrunnable_tasks() -> QuerySet[Task]:
    """Live tasks that this process has no definition for."""
    return Task.objects.exclude(status=TaskStatus.TERMINAL).exclude(runnable())


def _claim(rows: QuerySet[Task], limit: int) -> Claim:
    lease = uuid4()
    with transaction.atomic():
        ids = list(
            rows.order_by("pk").select_for_update(skip_locked=True, no_key=True).values_list("pk", flat=True)[:limit]
        )
        claimed = Task.objects.filter(pk__in=ids)
        if ids:
            claimed.update(
                status=TaskStatus.RUNNING,
                lease=lease,
                lease_until=now() + LEASE,
                attempts=F("attempts") + 1,
                subject="",
                blocked="",
            )
        return Claim(lease=lease, tasks=list(claimed.order_by("pk")) if ids else [])
