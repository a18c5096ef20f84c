"""A root's memory (L25–L28): what is remembered now, how it came to be, and what waits for a decision."""

from typing import ClassVar

from django.db import models

from lineage.models.conversations import Conversation, Root
from lineage.models.tally import Landing

SLUG_LENGTH = 48
LINE_LENGTH = 160
BODY_LENGTH = 4000
MEMORIES = 400  # of one root: the index of all of them is part of each brief


class MemoryKind(models.TextChoices):
    DECISION = "decision"
    FACT = "fact"
    LESSON = "lesson"


class Memory(models.Model):
    """One memory as it stands. `line` is its line in the index; `source` names the entry it comes from."""

    root = models.ForeignKey(Root, on_delete=models.PROTECT, related_name="memories")
    slug = models.CharField(max_length=SLUG_LENGTH)
    kind = models.CharField(max_length=10, choices=MemoryKind)
    line = models.CharField(max_length=LINE_LENGTH)
    body = models.TextField()
    source = models.CharField(max_length=60, blank=True)
    changed = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["root", "slug"], name="memory_slug")]

    def __str__(self) -> str:
        return self.slug


class MemoryChange(models.Model):
    """History: one row per applied op, immutable. `version` counts the batches of a root; `after` is empty for a delete."""

    root = models.ForeignKey(Root, on_delete=models.PROTECT, related_name="memory_changes")
    version = models.PositiveIntegerField()
    ordinal = models.PositiveIntegerField()
    op = models.CharField(max_length=10, choices=[(op, op) for op in ("add", "update", "delete")])
    slug = models.CharField(max_length=SLUG_LENGTH)
    before = models.TextField(blank=True)
    after = models.TextField(blank=True)
    author = models.ForeignKey("console.Actor", null=True, blank=True, on_delete=models.PROTECT, related_name="+")
    time = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["root", "version", "ordinal"], name="memory_change_once")
        ]
        indexes: ClassVar = [models.Index(fields=["root", "slug"], name="memory_change_slug")]

    def __str__(self) -> str:
        return f"{self.op} {self.slug}"


class ProposalStatus(models.TextChoices):
    WAITING = "waiting"
    ACCEPTED = "accepted"
    DROPPED = "dropped"


class MemoryProposal(models.Model):
    """Ops that a memorize task proposes after a landing, at most once per landing (L27). `ops` is JSON."""

    root = models.ForeignKey(Root, on_delete=models.PROTECT, related_name="memory_proposals")
    landing = models.OneToOneField(Landing, on_delete=models.PROTECT, related_name="proposal")
    ops = models.TextField()
    why = models.CharField(max_length=300, blank=True)  # why it waits for a person
    status = models.CharField(max_length=10, choices=ProposalStatus, default=ProposalStatus.WAITING)
    decided_by = models.ForeignKey("console.Actor", null=True, blank=True, on_delete=models.PROTECT, related_name="+")
    decided = models.DateTimeField(null=True, blank=True)
    created = models.DateTimeField()

    def __str__(self) -> str:
        return f"proposal {self.pk} of landing {self.landing_id}"


class LoadReceipt(models.Model):
    """What one request carried of the memory and of AGENTS.md, computed from the body as sent (L28)."""

    conversation = models.ForeignKey(Conversation, on_delete=models.PROTECT, related_name="load_receipts")
    request = models.CharField(max_length=200)
    memories = models.TextField()  # JSON list of slugs
    agents_md = models.PositiveIntegerField(default=0)  # characters of AGENTS.md that were carried
    agents_md_whole = models.PositiveIntegerField(default=0)  # characters it had
    time = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["conversation", "request"], name="load_receipt_once")]

    def __str__(self) -> str:
        return f"receipt of {self.request}"
