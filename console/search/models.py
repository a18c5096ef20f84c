"""What search keeps: pieces of text with their words, what is to be read next, how far documents were read.

Derived: everything here can be made again from the tree, so no row refers to another by key.
"""

from typing import ClassVar

from django.contrib.postgres.indexes import GinIndex
from django.contrib.postgres.search import SearchVectorField
from django.db import models


class SearchKind(models.TextChoices):
    ENTRY = "entry"
    DOCUMENT = "document"
    MEMORY = "memory"
    TITLE = "title"  # of a conversation


class SearchRow(models.Model):
    """One piece of one text. `place` is the entry's seq or the document's number, 0 elsewhere."""

    root = models.BigIntegerField()
    conversation = models.BigIntegerField()
    kind = models.CharField(max_length=10, choices=SearchKind)
    place = models.BigIntegerField(default=0)
    slug = models.CharField(max_length=48, blank=True)  # of a memory
    part = models.PositiveIntegerField()  # counts the pieces of one text from 0
    text = models.TextField()
    words = SearchVectorField()
    cut = models.BooleanField(default=False)  # the text went on: what follows its last piece is not found
    time = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["conversation", "kind", "place", "slug", "part"], name="search_row_once")
        ]
        indexes: ClassVar = [
            GinIndex(fields=["words"], name="search_row_words"),
            models.Index(fields=["-time", "-id"], name="search_row_newest"),
        ]

    def __str__(self) -> str:
        return f"#{self.conversation} {self.kind} {self.place or self.slug}".rstrip()


class SearchDue(models.Model):
    """A conversation that has something new. Several rows of one are read once."""

    conversation = models.BigIntegerField()

    def __str__(self) -> str:
        return f"#{self.conversation}"


class SearchMark(models.Model):
    """How far a conversation's entries (its seq) or a document (its revision) were read."""

    kind = models.CharField(max_length=10, choices=[("entry", "entry"), ("document", "document")])
    place = models.BigIntegerField()  # the conversation, or the document
    upto = models.BigIntegerField()
    time = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["kind", "place"], name="search_mark_once")]

    def __str__(self) -> str:
        return f"{self.kind} {self.place} up to {self.upto}"
