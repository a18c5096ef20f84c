"""Who acts: people, the agents of tokens, and what each may do in a root (S1, S2). The rows of the board and of
search live in `console.board` and `console.search`."""

from typing import ClassVar

from django.contrib.auth.models import AbstractUser
from django.db import models
from django.db.models import Q

from console.board.models import BoardRow, TreeRow
from console.search.models import SearchDue, SearchMark, SearchRow

__all__ = [
    "Actor",
    "ActorKind",
    "BoardRow",
    "Membership",
    "Request",
    "Role",
    "SearchDue",
    "SearchMark",
    "SearchRow",
    "SigninFailure",
    "SigninLink",
    "Token",
    "Touched",
    "TreeRow",
    "User",
]

NAME_LENGTH = 80  # a name stands on one line of every page
REQUEST_ID_LENGTH = 200  # R4


class User(AbstractUser):
    """An account of a person. What the product shows and records is its actor."""


class ActorKind(models.TextChoices):
    PERSON = "person"
    AGENT = "agent"  # of a token whose role is agent
    CLIENT = "client"  # of a token with another role: a script of a person


class Actor(models.Model):
    """A person or the agent of a token, as author of what is recorded. Never deleted, only closed and renamed (R6)."""

    kind = models.CharField(max_length=10, choices=ActorKind)
    name = models.CharField(max_length=NAME_LENGTH)
    user = models.OneToOneField(User, null=True, blank=True, on_delete=models.PROTECT, related_name="actor")
    created = models.DateTimeField()
    closed = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(
                name="actor_person_has_user",
                # A person whose account is elsewhere came with a restored tree, and can do nothing here.
                condition=Q(kind="person", user__isnull=False)
                | Q(kind="person", closed__isnull=False)
                | (~Q(kind="person") & Q(user__isnull=True)),
            )
        ]

    def __str__(self) -> str:
        return self.name


class Role(models.TextChoices):
    """What an actor may do in a root. The order is only that of a page; `access.PERMISSIONS` says what each may."""

    VIEWER = "viewer"
    AGENT = "agent"
    OPERATOR = "operator"
    OWNER = "owner"


class Membership(models.Model):
    """A person's role in one root (S2). Tokens have theirs in `Token`."""

    root = models.ForeignKey("lineage.Root", on_delete=models.CASCADE, related_name="memberships")
    actor = models.ForeignKey(Actor, on_delete=models.PROTECT, related_name="memberships")
    role = models.CharField(max_length=10, choices=[r for r in Role.choices if r[0] != Role.AGENT])
    created = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["root", "actor"], name="membership_once"),
            models.CheckConstraint(name="membership_role", condition=Q(role__in=["viewer", "operator", "owner"])),
        ]

    def __str__(self) -> str:
        return f"{self.actor} is {self.role} of #{self.root_id}"


class Token(models.Model):
    """A bearer token: one root, one conversation, one role. Shown once, stored as a SHA-256 hash (S2)."""

    actor = models.OneToOneField(Actor, on_delete=models.PROTECT, related_name="token")
    root = models.ForeignKey("lineage.Root", on_delete=models.CASCADE, related_name="tokens")
    conversation = models.ForeignKey("lineage.Conversation", on_delete=models.CASCADE, related_name="tokens")
    role = models.CharField(max_length=10, choices=[r for r in Role.choices if r[0] != Role.OWNER])
    secret_hash = models.CharField(max_length=64, unique=True)
    created_by = models.ForeignKey(Actor, null=True, blank=True, on_delete=models.PROTECT, related_name="+")
    created = models.DateTimeField()
    expires = models.DateTimeField(null=True, blank=True)
    revoked = models.DateTimeField(null=True, blank=True)
    used = models.DateTimeField(null=True, blank=True)  # to the minute, so that reading does not write each time

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(name="token_role", condition=Q(role__in=["viewer", "agent", "operator"]))
        ]

    def __str__(self) -> str:
        return f"token of {self.actor}"


class SigninLink(models.Model):
    """A one-time link. GET shows a button, POST spends it; 24 hours; stored hashed (S1)."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="signin_links")
    secret_hash = models.CharField(max_length=64, unique=True)
    created = models.DateTimeField()
    expires = models.DateTimeField()
    spent = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"link for {self.user}"


class SigninFailure(models.Model):
    """Failed sign-ins of one name or one address within the window (S3)."""

    key = models.CharField(max_length=200, unique=True)
    count = models.PositiveIntegerField()
    since = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.key}: {self.count}"


class Request(models.Model):
    """The first result of an accepted request (R4): unique per receiving row, actor and id. Refusals are not remembered."""

    receiver = models.CharField(max_length=40)  # "conversation:12", "root:3", "document:7"
    actor = models.ForeignKey(Actor, null=True, blank=True, on_delete=models.PROTECT, related_name="+")
    request_id = models.CharField(max_length=REQUEST_ID_LENGTH)
    result = models.TextField()  # JSON as answered (R10)
    created = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["receiver", "actor", "request_id"], name="request_once", nulls_distinct=False
            )
        ]

    def __str__(self) -> str:
        return f"{self.receiver} {self.request_id}"


class Touched(models.Model):
    """A conversation changed since the board keeper last looked (R9). Only inserted by writers, only removed by the keeper."""

    conversation = models.BigIntegerField()

    def __str__(self) -> str:
        return f"#{self.conversation}"
