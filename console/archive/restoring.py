"""Restoring a whole tree (C5): its conversations and documents keep their numbers, or the restore is refused.

In this order: the file is read through once and refused where it must be; files of attachments are written; then all rows in one
transaction. Nothing that was under way goes on, and whatever fails leaves nothing behind.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
from django.contrib.postgres.fields import ArrayField
from django.db import DatabaseError, connection, models, transaction

from console.archive.layout import Manifest
from console.archive.moving import WHY, Moving
from console.archive.numbers import reserve_numbers
from console.archive.reading import Archive, damaged, opened_archive
from console.archive.tables import BY_NAME, KEPT, TABLES, Table
from console.board.models import BoardRow, TreeRow
from console.clock import now
from console.errors import Conflict, Invalid, NotFound
from console.events import AccessChanged, publish_on_commit
from console.json_text import dumped
from console.models import NAME_LENGTH, Actor, ActorKind, Membership, Request, Role, Touched, User
from console.search.models import SearchDue, SearchMark, SearchRow
from documents.attachments.storing import attachments_folder
from documents.models import Attachment, AttachmentStatus, Document
from lineage.actions.drafts import place_partial
from lineage.actions.locks import lock_all
from lineage.actions.runs import advance
from lineage.actions.settling import settle
from lineage.actions.starts import create_task
from lineage.models import Conversation, Draft, Kind, Outcome, TranscriptFolder

Progress = Callable[[int], None]
"""Told how many rows more are done."""

STEP = 1000  # rows between two tellings; conversations of one statement


def restore_root(
    *, path: Path, owner: str | None = None, begin: Callable[[Manifest], Progress] = lambda manifest: lambda rows: None
) -> Manifest:
    """Bring the tree of an export in. `owner` is the name of an account that becomes its owner; without one only superusers see
    it. Refusals: `not_found` (owner), `not_an_export`, `newer`, `damaged`, `taken`, `busy`, `invalid`."""
    member = _owner(owner)
    if not path.is_file():
        raise Invalid("file", f"There is no file {path}.")
    with opened_archive(path) as archive:
        progress = begin(archive.manifest)
        moving = _looked_through(archive)
        stored: list[str] = []
        try:
            for name in archive.files:
                stored.append(name)
                _store_file(name, archive.blocks(name))
            _write(archive, moving, member, progress)
        except BaseException:
            _forget_files(archive, stored)
            raise
        return archive.manifest


def _owner(name: str | None) -> Actor | None:
    if name is None:
        return None
    found = Actor.objects.filter(user__username__iexact=name, closed__isnull=True).first()
    if found is None:
        raise NotFound("account", name)
    return found


def _looked_through(archive: Archive) -> Moving:
    """What the file has, held against what is here; then numbers are drawn. Nothing else is written."""
    manifest = archive.manifest
    conversations = {row["id"]: row["kind"] for row in archive.rows(BY_NAME["conversation"])}
    documents = frozenset(row["id"] for row in archive.rows(BY_NAME["document"]))
    attachments = {row["name"] for row in archive.rows(BY_NAME["attachment"])}
    if conversations.get(manifest.root) != Kind.ROOT or 0 in conversations or 0 in documents:
        raise damaged("it has no root")
    if not {attachment for attachment, _ in archive.files.values()} <= attachments:
        raise damaged("it has a file of no attachment")
    _refuse_taken(Conversation, "conversation", conversations, "#")
    _refuse_taken(Document, "document", documents, "")
    for name in attachments:
        if Attachment.objects.filter(name=name).exists():
            raise Conflict("taken", f"The attachment {name} is here already. Nothing was restored.", names=[name])
    distances = {
        name: reserve_numbers(table.model, part.first, part.last, kept=table.model in KEPT)
        for name, part in manifest.tables.items()
        if (table := BY_NAME.get(name)) is not None and table.numbered and part.rows
    }
    return Moving(
        root=manifest.root,
        conversations=conversations,
        documents=documents,
        files=frozenset(name for name in archive.files if name in attachments),
        parts=manifest.tables,
        distances={name: distances.get(name, 0) for name in manifest.tables},
        actors={},
        taken_folders=frozenset(),
        moment=now(),
    )


def _refuse_taken(model: type[models.Model], word: str, numbers: Any, sign: str) -> None:
    """One sentence with the first of the numbers that somebody has here."""
    taken: list[int] = []
    for some in _in_steps(sorted(numbers)):
        taken += model._base_manager.filter(pk__in=some).order_by("pk").values_list("pk", flat=True)
    if taken:
        more = f" and {len(taken) - 1} more of its numbers are" if len(taken) > 1 else " is"
        raise Conflict(
            "taken",
            f"The {word} {sign}{taken[0]}{more} taken here, and numbers are kept. Nothing was restored.",
            kind=word,
            numbers=taken[:100],
            count=len(taken),
        )


def _write(archive: Archive, moving: Moving, member: Actor | None, progress: Progress) -> None:
    """All rows, or none. Foreign keys are looked at before the commit, so the order of tables is free."""
    try:
        with transaction.atomic(durable=True):
            _forget_derived(moving)
            moving.taken_folders = frozenset(TranscriptFolder.objects.values_list("format", "path"))
            moving.actors = _place_actors(archive)
            for table in TABLES:
                _copy(table, archive, moving, progress)
            with connection.cursor() as cursor:
                cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
            _settle(moving)
            if member is not None:
                Membership.objects.create(root_id=moving.root, actor=member, role=Role.OWNER, created=moving.moment)
                publish_on_commit("access", AccessChanged(actor=member.pk))
            for some in _in_steps(sorted(moving.conversations)):
                Touched.objects.bulk_create(Touched(conversation=number) for number in some)
    except (DatabaseError, psycopg.Error) as error:
        state = getattr(error, "sqlstate", None) or getattr(error.__cause__, "sqlstate", None) or ""
        if state[:2] not in {"22", "23"}:  # data that cannot be, and constraints
            raise
        raise damaged(str(error).splitlines()[0]) from error


def _copy(table: Table, archive: Archive, moving: Moving, progress: Progress) -> None:
    """The table's rows in one stream."""
    quoted, moved = connection.ops.quote_name, moving.mover(table)
    columns = ", ".join(quoted(column.column or column.attname) for column in table.fields)
    # psycopg would write a list as an array, and bytes as they are.
    as_json = [column.attname for column in table.fields if isinstance(column, models.JSONField | ArrayField)]
    names, done = table.columns, 0
    with (
        connection.cursor() as cursor,
        cursor.copy(f"COPY {quoted(table.model._meta.db_table)} ({columns}) FROM STDIN") as copy,
    ):
        for row in archive.rows(table):
            moved(row)
            for name in as_json:
                row[name] = dumped(row[name])
            copy.write_row([row[name] for name in names])
            done += 1
            if done % STEP == 0:
                progress(STEP)
    progress(done % STEP)


def _place_actors(archive: Archive) -> dict[int, int]:
    """Who acted, as an actor of here: a person by the name of the account, everybody else anew. Agents come without a token, and
    a person without an account here comes closed."""
    found: dict[int, int] = {}
    for row in archive.actors():
        try:
            number, kind, name, username = int(row["id"]), ActorKind(row["kind"]), str(row["name"]), row["username"]
            created, closed = _moment(row["created"]), _moment(row["closed"]) if row["closed"] else None
        except (KeyError, TypeError, ValueError):
            raise damaged("an actor of it is impossible") from None
        if not 1 <= len(name) <= NAME_LENGTH or "\0" in name:
            raise damaged("an actor of it has an impossible name")
        here = _person(str(username)) if kind == ActorKind.PERSON and username else None
        if here is None:
            if kind == ActorKind.PERSON:
                closed = closed or now()
            here = Actor.objects.create(kind=kind, name=name, created=created, closed=closed).pk
        found[number] = here
    return found


def _person(username: str) -> int | None:
    users = User.objects.filter(username__iexact=username, actor__isnull=False)
    return users.values_list("actor", flat=True).first()


def _moment(text: Any) -> Any:
    return Actor._meta.get_field("created").to_python(text)


def _settle(moving: Moving) -> None:
    """The tree stands still: what was being written becomes entries, what waited to be placed is placed, states say so. A file
    that was never extracted is: that is no agent's work, and nothing else would ever read it."""
    drafts = set(Draft.objects.filter(conversation__root=moving.root).values_list("conversation_id", flat=True))
    for number in sorted(drafts | moving.unsettled):
        _, rows = lock_all(root=moving.root, conversations=[number])
        row = rows[number]
        if number in drafts:
            place_partial(conversation=row, outcome=Outcome.ABORTED, why=WHY)
        if row.kind == Kind.SESSION:  # what it was sent waits for its reader
            settle(conversation=row)
        else:
            advance(conversation=row)
    pending = Attachment.objects.filter(root=moving.root, status=AttachmentStatus.PENDING)
    for attachment in pending.select_related("conversation").order_by("pk"):
        given = {"name": attachment.name, "filename": attachment.filename}
        create_task(kind="extract", conversation=attachment.conversation, input=given)


def _forget_derived(moving: Moving) -> None:
    """What is left of an erased tree with the same numbers."""
    for some in _in_steps(sorted(moving.conversations)):
        for model in (TreeRow, SearchRow, SearchDue):
            model._base_manager.filter(conversation__in=some).delete()
        SearchMark.objects.filter(kind="entry", place__in=some).delete()
        Request.objects.filter(receiver__in=[f"conversation:{number}" for number in some]).delete()
    for some in _in_steps(sorted(moving.documents)):
        SearchMark.objects.filter(kind="document", place__in=some).delete()
        Request.objects.filter(receiver__in=[f"document:{number}" for number in some]).delete()
    BoardRow.objects.filter(root=moving.root).delete()
    Request.objects.filter(receiver=f"root:{moving.root}").delete()


def _in_steps(numbers: list[int]) -> Iterator[list[int]]:
    for start in range(0, len(numbers), STEP):
        yield numbers[start : start + STEP]


def _store_file(name: str, blocks: Iterator[bytes]) -> None:
    """Under a temporary name, synced, renamed, as an upload is (D18)."""
    folder = attachments_folder()
    draft = folder / f".{name}.{os.getpid()}"
    try:
        with draft.open("wb") as file:
            for block in blocks:
                file.write(block)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(folder / name)
    finally:
        draft.unlink(missing_ok=True)


def _forget_files(archive: Archive, stored: list[str]) -> None:
    """Remove what no row names. Asked of the database, since a lost connection may have ended after the commit (R5), and another
    restore of the same file may have won."""
    for name in stored:
        if not Attachment.objects.filter(name=archive.files[name][0]).exists():
            (attachments_folder() / name).unlink(missing_ok=True)
