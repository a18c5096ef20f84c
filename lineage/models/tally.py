"""What the head of a tree collects (L15–L20): lines, open abstracts, landings, and how far each branch has read them."""

from typing import ClassVar

from django.db import models

from lineage.models.conversations import TITLE_LENGTH, Conversation, Root


class TallyKind(models.TextChoices):
    BRANCH = "branch"
    ABSTRACT = "abstract"
    LANDING = "landing"


class TallyLine(models.Model):
    """A root's entry that tells of another conversation, for the timeline and for catch-up. `text` is what it says."""

    root = models.ForeignKey(Root, on_delete=models.PROTECT, related_name="lines")
    seq = models.PositiveIntegerField()
    kind = models.CharField(max_length=10, choices=TallyKind)
    about = models.ForeignKey(Conversation, on_delete=models.PROTECT, related_name="+")
    text = models.TextField()

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["root", "seq"], name="tally_line_once")]
        indexes: ClassVar = [models.Index(fields=["root", "kind", "-seq"], name="tally_line_kind")]

    def __str__(self) -> str:
        return f"#{self.root_id}/{self.seq} {self.kind} of #{self.about_id}"


class TallySeen(models.Model):
    """At entry `seq` of the conversation its knowledge of the tally reaches `position`, none: not at all (L16).

    Written with catch-up notes and brief resets; with `seq` 0 when a session joins.
    """

    conversation = models.ForeignKey(Conversation, on_delete=models.PROTECT, related_name="tally_seen")
    seq = models.PositiveIntegerField()
    position = models.PositiveIntegerField(null=True, blank=True)

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["conversation", "seq"], name="tally_seen_once")]

    def __str__(self) -> str:
        return f"#{self.conversation_id}/{self.seq} knows up to {self.position}"


class OpenAbstract(models.Model):
    """A conversation's liquid abstract: `anchor` is the root's entry that keeps its place in the tally (L18)."""

    conversation = models.OneToOneField(
        Conversation, primary_key=True, on_delete=models.PROTECT, related_name="open_abstract"
    )
    root = models.ForeignKey(Root, on_delete=models.PROTECT, related_name="open_abstracts")
    anchor = models.PositiveIntegerField()
    at = models.PositiveIntegerField()
    text = models.TextField()
    title = models.CharField(max_length=TITLE_LENGTH, blank=True)
    feature = models.CharField(max_length=TITLE_LENGTH, blank=True)
    changed = models.DateTimeField()

    def __str__(self) -> str:
        return f"abstract of #{self.conversation_id} at #{self.root_id}/{self.anchor}"


class Landing(models.Model):
    """Merged work (L19, L20). Immutable; `data` is what was given, as JSON."""

    root = models.ForeignKey(Root, on_delete=models.PROTECT, related_name="landings")
    conversation = models.ForeignKey(Conversation, on_delete=models.PROTECT, related_name="landings")
    at = models.PositiveIntegerField()
    sha = models.CharField(max_length=64)
    target = models.CharField(max_length=TITLE_LENGTH)
    title = models.CharField(max_length=TITLE_LENGTH)
    feature = models.CharField(max_length=TITLE_LENGTH, blank=True)
    commit_count = models.PositiveIntegerField()
    data = models.TextField()  # JSON: what the note's data keeps (L20)
    abstract = models.TextField(blank=True)  # the abstract that it froze
    author = models.ForeignKey("console.Actor", null=True, blank=True, on_delete=models.PROTECT, related_name="+")
    restored = models.BooleanField(default=False)  # came with a whole tree, not live: nothing is memorized of it (L27)
    time = models.DateTimeField()

    class Meta:
        indexes: ClassVar = [models.Index(fields=["root", "-id"], name="landing_of_root")]

    def __str__(self) -> str:
        return f"landing {self.sha[:7]} from #{self.conversation_id}/{self.at}"
