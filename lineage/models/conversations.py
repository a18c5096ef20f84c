"""Conversations and roots: the shape of a tree (L1, L3)."""

from typing import ClassVar

from django.db import models
from django.db.models import F, Q

TITLE_LENGTH = 200  # what a person may give; intent lines are shorter (L14)
FOLDER_LENGTH = 4096  # PATH_MAX


class Kind(models.TextChoices):
    ROOT = "root"
    BRANCH = "branch"  # a fork: has `parent` and `at`
    AGENT = "agent"  # owned: has `owner`
    SESSION = "session"  # of an outside agent: neither fork nor owned


class State(models.TextChoices):
    """The six states that every page shows (C2)."""

    RUNNING = "running"
    APPROVAL = "approval"  # waits for a decision of a person
    ANSWER = "answer"  # waits for an answer of a person
    CHILD = "child"  # waits for a conversation it owns
    IDLE = "idle"
    FAILED = "failed"


class TitleSource(models.TextChoices):
    """Who named it: a later one of a lower rank never renames (L14, L18)."""

    NONE = "none"
    INTENT = "intent"
    SUMMARY = "summary"
    PERSON = "person"


class Conversation(models.Model):
    """One conversation. `head` is the seq of its newest visible entry; inherited ones end at `at` (L2)."""

    kind = models.CharField(max_length=10, choices=Kind)
    root = models.ForeignKey("Root", on_delete=models.PROTECT, related_name="conversations")
    parent = models.ForeignKey("self", null=True, blank=True, on_delete=models.PROTECT, related_name="branches")
    at = models.PositiveIntegerField(default=0)  # the fork entry; 0 where nothing is inherited
    owner = models.ForeignKey("self", null=True, blank=True, on_delete=models.PROTECT, related_name="agents")
    owner_at = models.PositiveIntegerField(null=True, blank=True)  # the owner's entry that holds the call
    owner_call = models.CharField(max_length=200, blank=True)  # the call's id in it
    path = models.JSONField(default=list)  # [[conversation, up to], ...], the nearest ancestor last (L3)
    title = models.CharField(max_length=TITLE_LENGTH, blank=True)
    title_source = models.CharField(max_length=10, choices=TitleSource, default=TitleSource.NONE)
    intent = models.TextField(blank=True)  # the prompt a branch was started for
    started_by = models.ForeignKey("console.Actor", null=True, blank=True, on_delete=models.PROTECT, related_name="+")
    started_from = models.ForeignKey("self", null=True, blank=True, on_delete=models.PROTECT, related_name="+")
    folder = models.CharField(max_length=FOLDER_LENGTH, blank=True)
    model = models.CharField(max_length=200, blank=True)
    thinking = models.CharField(max_length=40, blank=True)
    tools = models.JSONField(default=list, blank=True)  # names that an agent is restricted to; empty: all (L12)
    agent = models.ForeignKey(
        "console.Actor", null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )  # who answers here
    source = models.CharField(max_length=20, default="console")  # console, http, claude, codex, pi
    head = models.PositiveIntegerField(default=0)
    state = models.CharField(max_length=10, choices=State, default=State.IDLE)
    state_why = models.CharField(max_length=300, blank=True)  # one line: what it waits for, why it failed
    state_since = models.DateTimeField()
    turn_open = models.BooleanField(default=False)  # an outside agent works until its end-of-turn mark (L8)
    state_version = models.PositiveBigIntegerField(default=0)  # of the small state sent whole (R3)
    created = models.DateTimeField()
    touched = models.DateTimeField()  # the last entry's arrival

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(
                name="conversation_shape",
                condition=Q(kind="root", parent=None, owner=None, at=0)
                | Q(kind="session", parent=None, owner=None, at=0)
                | (Q(kind="branch", owner=None) & Q(parent__isnull=False))
                | (Q(kind="agent", at=0, parent=None) & Q(owner__isnull=False)),
            ),
            models.CheckConstraint(name="conversation_head", condition=Q(head__gte=F("at"))),
        ]
        indexes: ClassVar = [models.Index(fields=["root", "kind", "-touched"], name="conversation_of_root")]

    def __str__(self) -> str:
        return f"#{self.pk} {self.title}".rstrip()

    @property
    def segments(self) -> list[tuple[int, int | None]]:
        """Where its visible entries lie, oldest first: (conversation, up to); none for its own open end (L3)."""
        return [*((int(c), int(upto)) for c, upto in self.path), (self.pk, None)]


class Root(models.Model):
    """What only the head of a tree has. Its id is its conversation's id (R8)."""

    conversation = models.OneToOneField(
        Conversation, primary_key=True, on_delete=models.PROTECT, related_name="as_root"
    )
    since = models.PositiveIntegerField(null=True, blank=True)  # the entry it became a tally at (L13)
    main = models.ForeignKey("console.Actor", null=True, blank=True, on_delete=models.PROTECT, related_name="+")

    def __str__(self) -> str:
        return f"root #{self.pk}"

    @property
    def is_tally(self) -> bool:
        return self.since is not None
