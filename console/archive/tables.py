"""What a tree consists of (C5): each model of the product is exported, or named here with the reason why it is not.

A test holds this against the registry of models, so that a new one cannot be forgotten. Columns come from the models.
"""

from dataclasses import dataclass
from typing import Any

from django.db import models
from django.db.models import CharField, F, Q, Value
from django.db.models.functions import Cast, Concat

from console.models import Actor, Request
from documents.models import Attachment, AuthorRuns, Document, EditBatch, Snapshot
from lineage.models import (
    Approval,
    Conversation,
    Delivered,
    Draft,
    Entry,
    EntryEdit,
    EntryRest,
    Landing,
    LoadReceipt,
    Memory,
    MemoryChange,
    MemoryProposal,
    ModelRequest,
    Note,
    OpenAbstract,
    Root,
    Rule,
    Submission,
    TallyLine,
    TallySeen,
    Task,
    TranscriptConversation,
    TranscriptFile,
    TranscriptFolder,
    TranscriptPiece,
    TranscriptSpan,
    Usage,
)

_FOLDER = "@folder"  # ends a path at a folder of session files, which names no root: its conversations do


@dataclass(frozen=True, kw_only=True)
class Table:
    """One model of a tree. `path` leads from a row to its root, `json` names the text columns that hold JSON (R10),
    `chunk` is how many rows are in memory at once: few where one may be megabytes."""

    model: type[models.Model]
    path: str
    json: tuple[str, ...] = ()
    chunk: int = 500

    @property
    def name(self) -> str:
        return str(self.model._meta.model_name)

    @property
    def columns(self) -> list[str]:
        return [field.attname for field in self.fields]

    @property
    def fields(self) -> "list[models.Field[Any, Any]]":
        return list(self.model._meta.concrete_fields)

    @property
    def numbered(self) -> bool:
        """Whether its rows have numbers of their own: else a row's key is another row's."""
        return isinstance(self.model._meta.pk, models.AutoField)

    def rows_of(self, root: int) -> "models.QuerySet[Any]":
        """Its rows in that tree, in the order of their keys."""
        rows = self.model._base_manager.order_by("pk")
        if self.model is Request:
            return rows.filter(_received_in(root))
        if self.path.endswith(_FOLDER):
            return rows.filter(**{f"{self.path.removesuffix(_FOLDER)}__in": _folders_of(root)})
        return rows.filter(**{self.path: root})


TABLES = (
    Table(model=Root, path="pk"),
    Table(model=Conversation, path="root"),
    Table(model=Entry, path="conversation__root", json=("model", "data"), chunk=50),
    Table(model=EntryEdit, path="entry__conversation__root", json=("messages",), chunk=50),
    Table(model=EntryRest, path="entry__conversation__root", json=("data",), chunk=10),
    Table(model=Usage, path="conversation__root"),
    Table(model=Task, path="conversation__root", json=("input", "facts", "result"), chunk=100),
    Table(model=Draft, path="conversation__root", json=("blocks",), chunk=10),
    Table(model=ModelRequest, path="conversation__root", json=("ledger", "receipt"), chunk=100),
    Table(model=LoadReceipt, path="conversation__root", json=("memories",)),
    Table(model=Rule, path="root"),
    Table(model=Approval, path="root", json=("preview",), chunk=50),
    Table(model=Submission, path="conversation__root", json=("model", "data"), chunk=50),
    Table(model=Note, path="submission__conversation__root"),
    Table(model=Delivered, path="caller__root"),
    Table(model=TallyLine, path="root"),
    Table(model=TallySeen, path="conversation__root"),
    Table(model=OpenAbstract, path="root"),
    Table(model=Landing, path="root", json=("data",), chunk=50),
    Table(model=Memory, path="root"),
    Table(model=MemoryChange, path="root"),
    Table(model=MemoryProposal, path="root", json=("ops",), chunk=50),
    Table(model=Document, path="root"),
    Table(model=EditBatch, path="document__root", json=("edits",), chunk=20),
    Table(model=Snapshot, path="document__root", chunk=4),
    Table(model=AuthorRuns, path="document__root", json=("runs",), chunk=20),
    Table(model=Attachment, path="root"),
    Table(model=TranscriptFolder, path=f"pk{_FOLDER}"),
    Table(model=TranscriptFile, path=f"folder{_FOLDER}"),
    Table(model=TranscriptPiece, path=f"folder{_FOLDER}", chunk=8),
    Table(model=TranscriptSpan, path=f"piece__folder{_FOLDER}"),
    Table(model=TranscriptConversation, path=f"folder{_FOLDER}"),
    Table(model=Request, path="", json=("result",)),
)
BY_NAME = {table.name: table for table in TABLES}

KEPT: tuple[type[models.Model], ...] = (Conversation, Document)
"""Models whose numbers are kept: people and texts name them (#12/345, document 7). All others are moved where needed."""

LEFT_OUT = {
    "console.Actor": "goes as a table of its own, with the names of accounts instead of their numbers",
    "console.User": "accounts belong to a console; a person's actor names its account",
    "console.Membership": "a file gives nobody access: whoever restores becomes the owner",
    "console.Token": "secrets belong to a console: tokens are made anew",
    "console.SigninLink": "signing in belongs to a console",
    "console.SigninFailure": "signing in belongs to a console",
    "console.Touched": "a hint to the board keeper; a restore makes one for each conversation",
    "console.BoardRow": "made again from the tree by the board keeper",
    "console.TreeRow": "made again from the tree by the board keeper",
    "console.SearchRow": "made again from the tree by the search keeper",
    "console.SearchDue": "made again from the tree by the board keeper",
    "console.SearchMark": "how far search has read here",
    "documents.FolderMark": "of the folder that machines share, not of a tree",
    "lineage.Wake": "a hint to workers; nothing that is restored waits",
    "auth.Permission": "Django's own",
    "auth.Group": "Django's own",
    "contenttypes.ContentType": "Django's own",
    "sessions.Session": "signing in belongs to a console",
    "admin.LogEntry": "what was done in this console's administration",
}

ACTOR_COLUMNS = ["id", "kind", "name", "username", "created", "closed"]


def actor_rows(actors: set[int]) -> "models.QuerySet[Any]":
    """The columns of actors in the file."""
    rows = Actor.objects.filter(pk__in=actors).annotate(username=F("user__username")).order_by("pk")
    return rows.values_list(*ACTOR_COLUMNS)


def _received_in(root: int) -> Q:
    """Remembered requests (R4) of the root, its conversations and its documents."""

    def named(word: str, rows: "models.QuerySet[Any]") -> "models.QuerySet[Any]":
        return rows.values_list(Concat(Value(f"{word}:"), Cast("pk", CharField())), flat=True)

    return (
        Q(receiver=f"root:{root}")
        | Q(receiver__in=named("conversation", Conversation.objects.filter(root=root)))
        | Q(receiver__in=named("document", Document.objects.filter(root=root)))
    )


def _folders_of(root: int) -> "models.QuerySet[Any]":
    """Folders of session files whose conversations are all of this tree: another root's lines never go out with it."""
    others = TranscriptConversation.objects.exclude(conversation__root=root).values("folder")
    own = TranscriptConversation.objects.filter(conversation__root=root).exclude(folder__in=others)
    return own.values("folder")
