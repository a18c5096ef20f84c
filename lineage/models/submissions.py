"""What was submitted to a conversation, and notes with their receipts (L6, L21)."""

from typing import ClassVar

from django.db import models
from django.db.models import Q

from lineage.models.conversations import Conversation
from lineage.models.entries import KIND_LENGTH
from lineage.models.tasks import Task


class SubmissionType(models.TextChoices):
    INPUT = "input"  # starts or steers a run
    WRITE = "write"  # a passive entry


class SubmissionStatus(models.TextChoices):
    QUEUED = "queued"
    PLACED = "placed"  # its entry stands at `seq`; its run goes on
    DONE = "done"
    WITHDRAWN = "withdrawn"
    UNANSWERED = "unanswered"  # `reason` says why


class WhenBusy(models.TextChoices):
    STEER = "steer"  # after the current round of tools
    FOLLOW_UP = "follow_up"  # after the answer
    REJECT = "reject"


class Submission(models.Model):
    """An input or a write. Arrival order is `id`; `model` and `data` are those of the entry it becomes (R10)."""

    conversation = models.ForeignKey(Conversation, on_delete=models.PROTECT, related_name="submissions")
    type = models.CharField(max_length=10, choices=SubmissionType)
    status = models.CharField(max_length=10, choices=SubmissionStatus)
    reason = models.CharField(max_length=40, blank=True)
    why = models.CharField(max_length=300, blank=True)  # the reason in words, with what to do
    when_busy = models.CharField(max_length=10, choices=WhenBusy, default=WhenBusy.FOLLOW_UP)
    kind = models.CharField(max_length=KIND_LENGTH)
    model = models.TextField(blank=True)
    data = models.TextField(default="{}")
    author = models.ForeignKey("console.Actor", null=True, blank=True, on_delete=models.PROTECT, related_name="+")
    seq = models.PositiveIntegerField(null=True, blank=True)
    task = models.ForeignKey(Task, null=True, blank=True, on_delete=models.PROTECT, related_name="submissions")
    created = models.DateTimeField()
    ended = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(
                name="submission_placed_has_entry",
                condition=~Q(status__in=["placed", "done"]) | Q(seq__isnull=False),
            )
        ]
        indexes: ClassVar = [
            models.Index(fields=["conversation", "id"], name="submission_queue", condition=Q(status="queued")),
            models.Index(fields=["conversation", "id"], name="submission_run", condition=Q(status="placed")),
        ]

    def __str__(self) -> str:
        return f"submission {self.pk} to #{self.conversation_id}"


class NoteSource(models.TextChoices):
    CONVERSATION = "conversation"
    OPERATOR = "operator"
    LANDER = "lander"
    FINISHED = "finished"  # the delivery of a notify


class Note(models.Model):
    """A note or a finish on its way to its reader. Receipts: made is sent, the submission's `seq` placed, `read` included."""

    submission = models.OneToOneField(Submission, primary_key=True, on_delete=models.PROTECT, related_name="note")
    source = models.CharField(max_length=12, choices=NoteSource)
    sender = models.ForeignKey(Conversation, null=True, blank=True, on_delete=models.PROTECT, related_name="sent_notes")
    title = models.CharField(max_length=200, blank=True)  # the sender's, at the time
    text = models.TextField()
    included = models.CharField(max_length=200, blank=True)  # the request that carried it, or "inbox"
    read = models.DateTimeField(null=True, blank=True)

    class Meta:
        indexes: ClassVar = [models.Index(fields=["submission"], name="note_unread", condition=Q(read__isnull=True))]

    def __str__(self) -> str:
        return f"note {self.pk}"


class Delivered(models.Model):
    """The newest answer of `target` that a notify told `caller`; 0: it had none (L22, L23). Forks start with a copy."""

    caller = models.ForeignKey(Conversation, on_delete=models.PROTECT, related_name="delivered")
    target = models.ForeignKey(Conversation, on_delete=models.PROTECT, related_name="+")
    answer = models.PositiveIntegerField()

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["caller", "target"], name="delivered_once")]

    def __str__(self) -> str:
        return f"#{self.caller_id} was told of #{self.target_id}/{self.answer}"
