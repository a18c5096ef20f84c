"""Session files of outside agents: what was read of them, kept as bytes, and which conversations came of it (T1, R10)."""

from typing import ClassVar

from django.db import models
from django.db.models import F, Q

from lineage.models.conversations import Conversation

KEY_LENGTH = 300  # "agent:" and an id; session ids are uuids


class TranscriptFormat(models.TextChoices):
    CLAUDE = "claude", "Claude Code"
    CODEX = "codex", "Codex"
    PI = "pi", "pi"


class TranscriptFolder(models.Model):
    """Files that one reader reads together. `version` counts its pieces; importers lock this row before any other."""

    format = models.CharField(max_length=10, choices=TranscriptFormat)
    path = models.TextField()
    version = models.PositiveBigIntegerField(default=0)
    began = models.BooleanField(default=False)  # it has brought a conversation, which may have been erased since

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["format", "path"], name="transcript_folder_once")]

    def __str__(self) -> str:
        return self.path


class TranscriptFile(models.Model):
    """One file: how far it was read, and how it looked then. Kept when the file vanishes (T3)."""

    folder = models.ForeignKey(TranscriptFolder, on_delete=models.CASCADE, related_name="files")
    name = models.TextField()  # its path inside the folder
    device = models.BigIntegerField(default=0)
    inode = models.BigIntegerField(default=0)
    size = models.BigIntegerField(default=0)  # bytes, when it was last looked at
    modified = models.BigIntegerField(default=0)  # nanoseconds, by the file system's clock
    offset = models.BigIntegerField(default=0)  # bytes read: up to the end of the last whole line
    first_line = models.CharField(max_length=64, blank=True)  # SHA-256
    generation = models.PositiveIntegerField(default=0)  # how often it was read from its beginning again
    lines = models.PositiveBigIntegerField(default=0)
    unreadable = models.PositiveBigIntegerField(default=0)  # lines that are no JSON object
    too_long = models.PositiveBigIntegerField(default=0)
    conversation = models.ForeignKey(  # that it began, else the one that it last added to
        Conversation, null=True, blank=True, on_delete=models.SET_NULL, related_name="transcript_files"
    )

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["folder", "name"], name="transcript_file_once")]

    def __str__(self) -> str:
        return self.name


class TranscriptPiece(models.Model):
    """Bytes of a file as one transaction read them, and what the reader remembered of them. Both compressed (zlib)."""

    folder = models.ForeignKey(TranscriptFolder, on_delete=models.CASCADE, related_name="pieces")
    number = models.PositiveBigIntegerField()  # the folder's version with it
    file = models.ForeignKey(TranscriptFile, null=True, blank=True, on_delete=models.CASCADE, related_name="pieces")
    generation = models.PositiveIntegerField(default=0)
    offset = models.BigIntegerField(default=0)
    size = models.BigIntegerField(default=0)
    raw = models.BinaryField()  # of a line that is too long only its size is known: it is not among these bytes
    memory = models.BinaryField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["folder", "number"], name="transcript_piece_once"),
            models.CheckConstraint(name="transcript_piece_numbered", condition=Q(number__gte=1)),
        ]
        indexes: ClassVar = [models.Index(fields=["file", "generation", "offset"], name="transcript_piece_place")]

    def __str__(self) -> str:
        return f"{self.folder_id}/{self.number}"


class TranscriptSpan(models.Model):
    """Which entries of a conversation came from a piece: `lines` is msgpack [[seq, offset in the piece, size], ...]."""

    piece = models.ForeignKey(TranscriptPiece, on_delete=models.CASCADE, related_name="spans")
    conversation = models.ForeignKey(Conversation, on_delete=models.CASCADE, related_name="transcript_spans")
    first = models.PositiveIntegerField()
    last = models.PositiveIntegerField()
    lines = models.BinaryField()

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(name="transcript_span_order", condition=Q(last__gte=F("first")))
        ]
        indexes: ClassVar = [models.Index(fields=["conversation", "first"], name="transcript_span_place")]

    def __str__(self) -> str:
        return f"#{self.conversation_id}/{self.first} to {self.last}"


class TranscriptConversation(models.Model):
    """A conversation that a folder's files brought, by the reader's key. `numbers` is JSON [[ordinal, seq], ...]: from this
    ordinal of the transcript on, entries count on from that seq. A new pair begins where somebody else wrote between."""

    folder = models.ForeignKey(TranscriptFolder, on_delete=models.CASCADE, related_name="conversations")
    key = models.CharField(max_length=KEY_LENGTH)
    conversation = models.OneToOneField(Conversation, on_delete=models.CASCADE, related_name="transcript")
    count = models.PositiveIntegerField(default=0)
    numbers = models.JSONField(default=list)

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["folder", "key"], name="transcript_conversation_once")]

    def __str__(self) -> str:
        return self.key
