"""Agents at work (A1–A5): the answer that is being written, what the model was sent, and what waits for a person."""

import json
from typing import Any, ClassVar

from django.db import models
from django.db.models import Q

from lineage.models.conversations import Conversation, Root
from lineage.models.tasks import Task

RULE_LENGTH = 4000  # characters of what a rule allows: a whole command
COMMENT_LENGTH = 2000
CALL_LENGTH = 200


class Draft(models.Model):
    """An answer that is being streamed (A5); it becomes one entry at its end. `blocks` is JSON, stored a few times a second."""

    conversation = models.OneToOneField(Conversation, primary_key=True, on_delete=models.PROTECT, related_name="draft")
    task = models.ForeignKey(Task, on_delete=models.PROTECT, related_name="+")
    request = models.CharField(max_length=200)
    message_id = models.CharField(max_length=200, blank=True)
    model = models.CharField(max_length=200, blank=True)
    blocks = models.TextField(default="[]")
    began = models.DateTimeField()

    def __str__(self) -> str:
        return f"draft of #{self.conversation_id}"


class ModelRequest(models.Model):
    """What a model was sent, written before it was sent: `ledger` (A1) and `receipt` (L28) are JSON, read off the body."""

    conversation = models.ForeignKey(Conversation, on_delete=models.PROTECT, related_name="requests")
    name = models.CharField(max_length=200)  # task, round and try: unique, and what note receipts name
    at = models.PositiveIntegerField()  # the newest entry that it could carry
    seq = models.PositiveIntegerField(null=True, blank=True)  # the answer's entry
    model = models.CharField(max_length=200)
    ledger = models.TextField()
    receipt = models.TextField()
    time = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["conversation", "name"], name="model_request_once")]
        indexes: ClassVar = [models.Index(fields=["conversation", "-id"], name="model_request_newest")]

    def __str__(self) -> str:
        return f"request {self.name} of #{self.conversation_id}"


class Rule(models.Model):
    """A policy of a root (A3): calls of `tool` that fit `match` are approved without asking, until it is ended.

    For run_command `match` is the exact command, for edit_file a path with `*` for any part of it.
    """

    root = models.ForeignKey(Root, on_delete=models.PROTECT, related_name="rules")
    tool = models.CharField(max_length=40)
    match = models.CharField(max_length=RULE_LENGTH)
    made_by = models.ForeignKey("console.Actor", on_delete=models.PROTECT, related_name="+")
    made = models.DateTimeField()
    ended_by = models.ForeignKey("console.Actor", null=True, blank=True, on_delete=models.PROTECT, related_name="+")
    ended = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["root", "tool", "match"], condition=Q(ended=None), name="rule_once")
        ]

    def __str__(self) -> str:
        return f"{self.tool} {self.match}"


class ApprovalStatus(models.TextChoices):
    WAITING = "waiting"
    APPROVED = "approved"
    DECLINED = "declined"
    ENDED = "ended"  # by the system: stopped, expired, the file changed


class Approval(models.Model):
    """A call that waits for a decision, or waited (A3). Decided once; `decided_by` is none where a rule or the system did."""

    task = models.ForeignKey(Task, on_delete=models.PROTECT, related_name="approvals")
    conversation = models.ForeignKey(Conversation, on_delete=models.PROTECT, related_name="approvals")
    root = models.ForeignKey(Root, on_delete=models.PROTECT, related_name="approvals")
    seq = models.PositiveIntegerField()  # the entry that holds the call
    call = models.CharField(max_length=CALL_LENGTH)
    tool = models.CharField(max_length=40)
    line = models.CharField(max_length=300)  # what it would do, on one line
    preview = models.TextField()  # JSON: {path, diff, cut, added, removed} or {command, folder, seconds}
    hash = models.CharField(max_length=64, blank=True)  # SHA-256 of the file as shown; "" where there is none yet
    why = models.TextField(blank=True)  # the last prose before the call
    anew = models.BooleanField(default=False)  # asked again, since the file changed
    status = models.CharField(max_length=10, choices=ApprovalStatus, default=ApprovalStatus.WAITING)
    decided_by = models.ForeignKey("console.Actor", null=True, blank=True, on_delete=models.PROTECT, related_name="+")
    rule = models.ForeignKey(Rule, null=True, blank=True, on_delete=models.PROTECT, related_name="approvals")
    comment = models.CharField(max_length=COMMENT_LENGTH, blank=True)  # of a decline, or why the system ended it
    asked = models.DateTimeField()
    expires = models.DateTimeField()
    decided = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints: ClassVar = [
            # One to one with its waiting task; a second row exists only after the first was decided.
            models.UniqueConstraint(fields=["task"], condition=Q(status="waiting"), name="approval_waiting_once"),
            models.CheckConstraint(
                name="approval_decided_when",
                condition=Q(status="waiting", decided=None) | (~Q(status="waiting") & Q(decided__isnull=False)),
            ),
        ]
        indexes: ClassVar = [
            models.Index(fields=["root", "id"], name="approval_waiting", condition=Q(status="waiting")),
            models.Index(fields=["conversation", "id"], name="approval_of_conversation"),
            models.Index(fields=["root", "-decided"], name="approval_decided"),
        ]

    def __str__(self) -> str:
        return f"approval {self.pk}: {self.line}"

    @property
    def arguments(self) -> dict[str, Any]:
        """What the call was given."""
        found = json.loads(self.task.input)["input"]
        return found if isinstance(found, dict) else {}
