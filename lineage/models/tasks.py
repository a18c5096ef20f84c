"""Durable work (L9): a task is a row with a lease; everything else that knows of it is a nudge."""

from typing import ClassVar

from django.db import models
from django.db.models import Q

from lineage.models.conversations import Conversation

TASK_KIND_LENGTH = 40
SUBJECT_LENGTH = 60


class TaskStatus(models.TextChoices):
    PENDING = "pending"  # due at `due`
    RUNNING = "running"  # some worker holds the lease
    WAITING = "waiting"  # holds no worker; a wake of its `subject` makes it run again
    COMPLETING = "completing"  # its outcome is decided, its children still end
    TERMINAL = "terminal"


class TaskOutcome(models.TextChoices):
    COMPLETED = "completed"
    FAILED = "failed"
    ABORTED = "aborted"


LIVE = (TaskStatus.PENDING, TaskStatus.RUNNING, TaskStatus.WAITING, TaskStatus.COMPLETING)


class Task(models.Model):
    """A task. `phase` and `facts` are its checkpoint; `input` and `facts` are JSON text (R10)."""

    conversation = models.ForeignKey(Conversation, on_delete=models.PROTECT, related_name="tasks")
    parent = models.ForeignKey("self", null=True, blank=True, on_delete=models.PROTECT, related_name="children")
    kind = models.CharField(max_length=TASK_KIND_LENGTH)
    version = models.PositiveIntegerField()
    input = models.TextField()
    phase = models.CharField(max_length=40)
    facts = models.TextField(default="{}")
    status = models.CharField(max_length=10, choices=TaskStatus, default=TaskStatus.PENDING)
    outcome = models.CharField(max_length=10, blank=True, choices=TaskOutcome)
    result = models.TextField(default="null")
    error = models.TextField(blank=True)  # the last failure, in words
    foreground = models.BooleanField()  # counts for idleness (L8)
    aborting = models.BooleanField(default=False)  # the abort mark
    due = models.DateTimeField()  # pending: not before; also the end of a back-off
    attempts = models.PositiveIntegerField(default=0)  # claims of the present phase that ended in no commit
    lease = models.UUIDField(null=True, blank=True)
    lease_until = models.DateTimeField(null=True, blank=True)
    subject = models.CharField(max_length=SUBJECT_LENGTH, blank=True)  # waiting: what wakes it
    waits_as = models.CharField(max_length=10, blank=True)  # waiting: the state that its conversation shows (C2)
    why = models.CharField(max_length=300, blank=True)  # waiting: one line for people
    blocked = models.CharField(max_length=300, blank=True)  # why no worker of this version may run it; never lost (L9)
    created = models.DateTimeField()
    ended = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(
                name="task_lease_while_running",
                condition=(Q(status="running", lease__isnull=False, lease_until__isnull=False))
                | (~Q(status="running") & Q(lease__isnull=True, lease_until__isnull=True)),
            ),
            models.CheckConstraint(
                name="task_outcome_at_end",
                condition=(Q(status__in=["completing", "terminal"]) & ~Q(outcome=""))
                | (~Q(status__in=["completing", "terminal"]) & Q(outcome="")),
            ),
            models.CheckConstraint(name="task_subject", condition=~Q(status="waiting", subject="")),
        ]
        indexes: ClassVar = [
            models.Index(fields=["due"], name="task_pending", condition=Q(status="pending")),
            models.Index(fields=["lease_until"], name="task_running", condition=Q(status="running")),
            models.Index(fields=["subject"], name="task_waiting", condition=Q(status="waiting")),
            models.Index(fields=["conversation", "kind"], name="task_live", condition=~Q(status="terminal")),
        ]

    def __str__(self) -> str:
        return f"task {self.pk} {self.kind}"


class Wake(models.Model):
    """A commit that may have ended the wait for this subject (L11). Written with it, removed by the worker that looked."""

    subject = models.CharField(max_length=SUBJECT_LENGTH)
    created = models.DateTimeField()

    class Meta:
        indexes: ClassVar = [models.Index(fields=["subject"], name="wake_subject")]

    def __str__(self) -> str:
        return self.subject
