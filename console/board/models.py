"""Rows of the board (R9). Derived: everything here can be made again from the tree, so no row refers to another by key.

`version` grows with every change of a row, over all rows of both tables; only the keeper draws it, so that versions are
committed in order and "newer than V" misses nothing.
"""

from typing import ClassVar

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

HOURS = 24  # of the activity that a row shows
LINE_LENGTH = 240  # characters of a last line: one line of a wide screen

NEEDING = ("approval", "answer", "failed")  # states in which a conversation waits for a person


class BoardRow(models.Model):
    """One root on the dashboard."""

    root = models.BigIntegerField(primary_key=True)
    version = models.BigIntegerField(unique=True)
    title = models.CharField(max_length=200, blank=True)
    states = models.JSONField(default=dict)  # {state: conversations in it}; those owned by others are not counted
    needs = models.JSONField(default=list)  # what waits for a person, the oldest first; at most NEEDS of the keeper
    needing = models.PositiveIntegerField(default=0)  # how many there are in all
    needing_since = models.DateTimeField(null=True, blank=True)
    last = models.JSONField(
        null=True, blank=True
    )  # the last line that changed: {text, conversation, seq, author, time}
    touched = models.DateTimeField()
    day = models.DateField()  # of the two that follow
    landed = models.PositiveIntegerField(default=0)
    cost_micros = models.BigIntegerField(null=True, blank=True)  # none where no answer of the day has a price
    hour = models.BigIntegerField()  # hours since 1970 of the last one in `activity`
    activity = ArrayField(models.PositiveIntegerField(), size=HOURS)  # entries in each of the last hours

    def __str__(self) -> str:
        return f"#{self.root} {self.title}".rstrip()


class TreeRow(models.Model):
    """One conversation of a root, as it was when its root's row was made: the next change is counted from here."""

    conversation = models.BigIntegerField(primary_key=True)
    root = models.BigIntegerField()
    version = models.BigIntegerField(unique=True)
    state = models.CharField(max_length=10)
    since = models.DateTimeField()
    counted = models.BooleanField()  # among the states of its root
    head = models.PositiveIntegerField()
    day = models.DateField()
    cost_micros = models.BigIntegerField(null=True, blank=True)
    last = models.JSONField(null=True, blank=True)  # as BoardRow's
    touched = models.DateTimeField()

    class Meta:
        indexes: ClassVar = [
            models.Index(fields=["root", "version"], name="tree_row_version"),
            models.Index(fields=["root", "since"], name="tree_row_needing", condition=Q(state__in=NEEDING)),
            models.Index(fields=["-touched"], name="tree_row_feed", condition=Q(last__isnull=False)),
        ]

    def __str__(self) -> str:
        return f"#{self.conversation} {self.state}"
