"""Entries: numbered, immutable facts of a conversation (R3, R6, L2)."""

from typing import ClassVar

from django.db import models
from django.db.models import Q

from lineage.models.conversations import Conversation

KIND_LENGTH = 64
PROMPT_LENGTH = 160  # the line of a prompt in the outline
DATA_BYTES = 16 * 1024  # what people see of one entry; the rest is kept beside it and said (L2)


class Outcome(models.TextChoices):
    """Why an answer is left out of the context (L4); a whole one has none."""

    ABORTED = "aborted"
    FAILED = "failed"


class Entry(models.Model):
    """One entry. `model` and `data` are JSON kept as text, exactly as recorded (R10); a trigger refuses changes (R6)."""

    conversation = models.ForeignKey(Conversation, on_delete=models.PROTECT, related_name="entries")
    seq = models.PositiveIntegerField()
    kind = models.CharField(max_length=KIND_LENGTH)
    author = models.ForeignKey("console.Actor", null=True, blank=True, on_delete=models.PROTECT, related_name="+")
    time = models.DateTimeField()  # when it happened, by the source's clock; order is `seq`
    model = models.TextField(blank=True)  # a JSON list of {role, content}; "" when the model reads nothing
    data = models.TextField(default="{}")
    rest = models.BooleanField(default=False)  # the whole data lies in EntryRest
    head = models.PositiveIntegerField(null=True, blank=True)  # context begins anew at this seq, mostly its own (L4)
    edits = models.BooleanField(default=False)  # EntryEdit rows belong to it
    message_id = models.CharField(max_length=200, blank=True)  # lines of one answer share it (L5)
    outcome = models.CharField(max_length=10, blank=True, choices=Outcome)  # of an answer that is left out (L4)
    prompt = models.CharField(max_length=PROMPT_LENGTH, blank=True)  # first line of what a person asked: the outline

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["conversation", "seq"], name="entry_seq"),
            models.CheckConstraint(name="entry_seq_from_one", condition=Q(seq__gte=1)),
        ]
        indexes: ClassVar = [
            models.Index(fields=["conversation", "seq"], name="entry_heads", condition=Q(head__isnull=False)),
            models.Index(fields=["conversation", "seq"], name="entry_prompts", condition=~Q(prompt="")),
            models.Index(fields=["conversation", "seq"], name="entry_editing", condition=Q(edits=True)),
        ]

    def __str__(self) -> str:
        return f"#{self.conversation_id}/{self.seq} {self.kind}"


class EntryEdit(models.Model):
    """An edit of an earlier entry in the model's eyes: omit it, or read these messages in its place (L2)."""

    entry = models.ForeignKey(Entry, on_delete=models.PROTECT, related_name="edit_rows")
    target = models.PositiveIntegerField()  # seq, on the same line of entries
    action = models.CharField(max_length=10, choices=[("omit", "omit"), ("replace", "replace")])
    messages = models.TextField(blank=True)  # JSON, for replace

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["entry", "target"], name="entry_edit_once")]

    def __str__(self) -> str:
        return f"{self.action} /{self.target}"


class EntryRest(models.Model):
    """The whole data of an entry whose shown data was cut at 16 KiB (L2)."""

    entry = models.OneToOneField(Entry, primary_key=True, on_delete=models.PROTECT, related_name="rest_row")
    data = models.TextField()

    def __str__(self) -> str:
        return f"rest of {self.entry_id}"


class Usage(models.Model):
    """Tokens and cost of one answer, stored once per message id, read as own and subtree totals (A6)."""

    conversation = models.ForeignKey(Conversation, on_delete=models.PROTECT, related_name="usages")
    message_id = models.CharField(max_length=200)
    seq = models.PositiveIntegerField()
    model = models.CharField(max_length=200, blank=True)
    input_tokens = models.PositiveBigIntegerField(default=0)
    output_tokens = models.PositiveBigIntegerField(default=0)
    cache_read_tokens = models.PositiveBigIntegerField(default=0)
    cache_write_tokens = models.PositiveBigIntegerField(default=0)
    cost_micros = models.PositiveBigIntegerField(null=True, blank=True)  # millionths of a dollar; none where unknown
    time = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["conversation", "message_id"], name="usage_once")]
        indexes: ClassVar = [models.Index(fields=["conversation", "time"], name="usage_of_day")]  # what a day cost

    def __str__(self) -> str:
        return f"{self.message_id}: {self.input_tokens} in, {self.output_tokens} out"
