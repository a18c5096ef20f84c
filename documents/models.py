"""The rows of live documents (D7, D9): the narrow document, its recorded batches, and snapshots to open it from."""

from typing import ClassVar

from django.db import models
from django.db.models import F, Q

from console.models import REQUEST_ID_LENGTH
from documents.attachments.models import Attachment, AttachmentStatus, FolderMark

__all__ = ["Attachment", "AttachmentStatus", "AuthorRuns", "Document", "EditBatch", "FolderMark", "Snapshot"]

TITLE_LENGTH = 200  # as a conversation's: both stand in the same lists


class Document(models.Model):
    """One live text. Its row stays narrow, since every group of batches writes it anew; the text lies in snapshots.

    Documents of a root's own conversation are shared by the whole tree. Those of other conversations follow forks: the first
    edit of a fork makes a row with a `source`, whose batches up to `source_revision` are its own history too (D9).
    """

    conversation = models.ForeignKey("lineage.Conversation", on_delete=models.PROTECT, related_name="documents")
    root = models.ForeignKey("lineage.Root", on_delete=models.PROTECT, related_name="documents")
    title = models.CharField(max_length=TITLE_LENGTH)
    title_version = models.PositiveIntegerField(default=0)  # of the small state that a new title is (R3)
    revision = models.PositiveBigIntegerField(default=0)
    size = models.PositiveBigIntegerField(default=0)  # bytes of all edits as JSON: says when a snapshot is due
    head = models.PositiveIntegerField()  # the conversation's head entry when it was made (D9)
    source = models.ForeignKey("self", null=True, blank=True, on_delete=models.PROTECT, related_name="copies")
    source_revision = models.PositiveBigIntegerField(null=True, blank=True)
    origin = models.ForeignKey("self", null=True, blank=True, on_delete=models.PROTECT, related_name="+")
    creator = models.ForeignKey("console.Actor", on_delete=models.PROTECT, related_name="+")
    created = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            # One of a line of copies in each conversation: two first edits of a fork meet in one document.
            models.UniqueConstraint(fields=["conversation", "origin"], name="document_copied_once"),
            models.CheckConstraint(
                name="document_copy",
                condition=Q(source=None, source_revision=None, origin=None)
                | Q(source__isnull=False, origin__isnull=False, source_revision__isnull=False),
            ),
            models.CheckConstraint(
                name="document_counts_on",
                condition=Q(source_revision=None) | Q(revision__gte=F("source_revision")),
            ),
        ]

    def __str__(self) -> str:
        return f"document {self.pk} {self.title}"

    @property
    def is_shared(self) -> bool:
        """Whether it is one live text for the whole tree: a document of the root's own conversation (D9)."""
        return bool(self.conversation_id == self.root_id)


class EditBatch(models.Model):
    """One recorded batch: revision N is the text after it. Immutable (R6); `edits` is JSON as text (R10)."""

    # Without indexes of their own: the constraints below begin with the document, and actors are never deleted (R6).
    document = models.ForeignKey(Document, on_delete=models.PROTECT, related_name="batches", db_index=False)
    revision = models.PositiveBigIntegerField()
    actor = models.ForeignKey("console.Actor", on_delete=models.PROTECT, related_name="+", db_index=False)
    request_id = models.CharField(max_length=REQUEST_ID_LENGTH)  # made here when the caller gave none
    edits = models.TextField()  # [{"old_string", "new_string"}, ...]
    head = models.PositiveIntegerField()  # the document's conversation stood at this entry (D7)
    time = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["document", "revision"], name="batch_revision"),
            models.UniqueConstraint(fields=["document", "actor", "request_id"], name="batch_request"),
            models.CheckConstraint(name="batch_revision_from_one", condition=Q(revision__gte=1)),
        ]
        # As a fork saw it: the newest revision at or before an entry (D9).
        indexes: ClassVar = [models.Index(fields=["document", "head", "revision"], name="batch_at_entry")]

    def __str__(self) -> str:
        return f"document {self.document_id} revision {self.revision}"


class Snapshot(models.Model):
    """The text at a revision: the base at a document's beginning, later ones to open it quickly (D7)."""

    document = models.ForeignKey(Document, on_delete=models.PROTECT, related_name="snapshots", db_index=False)
    revision = models.PositiveBigIntegerField()
    size = models.PositiveBigIntegerField()  # of `Document.size` then
    text = models.TextField()

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["document", "revision"], name="snapshot_once")]

    def __str__(self) -> str:
        return f"snapshot of document {self.document_id} at {self.revision}"


class AuthorRuns(models.Model):
    """Who wrote which part of a snapshot's text (D15). Apart from it, since folding authors costs ten times as much as
    folding text: snapshots follow the answer at once, these when there is time."""

    document = models.ForeignKey(Document, on_delete=models.PROTECT, related_name="author_runs", db_index=False)
    revision = models.PositiveBigIntegerField()
    runs = models.TextField()  # JSON: [[actor, length in code points], ...]

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["document", "revision"], name="author_runs_once")]

    def __str__(self) -> str:
        return f"authors of document {self.document_id} at {self.revision}"
