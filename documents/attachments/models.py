"""The row of an attachment. Its bytes and its sidecar are files; the row says whose they are and repeats what the sidecar says."""

from typing import ClassVar

from django.db import models

from documents.attachments.limits import FILENAME_CHARS, REASON_CHARS


class AttachmentStatus(models.TextChoices):
    PENDING = "pending"
    EXTRACTED = "extracted"
    UNREADABLE = "unreadable"


class Attachment(models.Model):
    """An uploaded file of a conversation. `name` is the server's (D18); whoever may read the tree may read it (D21)."""

    name = models.CharField(max_length=45, unique=True)  # 32 hex digits, a dot, an extension
    conversation = models.ForeignKey("lineage.Conversation", on_delete=models.PROTECT, related_name="attachments")
    root = models.ForeignKey("lineage.Root", on_delete=models.PROTECT, related_name="attachments")
    filename = models.CharField(max_length=FILENAME_CHARS)  # what the person called it: shown, never opened
    media_type = models.CharField(max_length=100)
    size = models.PositiveBigIntegerField()  # bytes
    status = models.CharField(max_length=10, choices=AttachmentStatus, default=AttachmentStatus.PENDING)
    reason = models.CharField(max_length=REASON_CHARS, blank=True)
    chars = models.PositiveBigIntegerField(default=0)  # code points of the extracted text
    truncated = models.BooleanField(default=False)
    seq = models.PositiveIntegerField(null=True, blank=True)  # the first entry that brought it; none: not yet sent
    read = models.PositiveBigIntegerField(default=0)  # how far agents have read, in code points from the begin
    uploader = models.ForeignKey("console.Actor", on_delete=models.PROTECT, related_name="+")
    created = models.DateTimeField()

    class Meta:
        indexes: ClassVar = [models.Index(fields=["conversation", "seq"], name="attachment_place")]

    def __str__(self) -> str:
        return f"{self.filename} ({self.name})"


class FolderMark(models.Model):
    """The mark of the one folder that all machines share: the first machine writes it, the others compare (D18)."""

    only = models.BooleanField(primary_key=True, default=True)
    mark = models.CharField(max_length=32)

    class Meta:
        constraints: ClassVar = [models.CheckConstraint(name="one_folder", condition=models.Q(only=True))]

    def __str__(self) -> str:
        return self.mark
