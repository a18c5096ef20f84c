"""Writing a whole tree into a file (C5): one consistent view of the database, in bounded memory.

Files of attachments lie on disk before their rows are committed, so the view's rows always find theirs.
"""

import os
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import msgspec
from django.db import connection, models, transaction

from console.access import Permission, Who
from console.archive.layout import (
    ACTORS,
    FORMAT,
    MANIFEST,
    Manifest,
    Part,
    file_place,
    files_of,
    table_place,
)
from console.archive.tables import ACTOR_COLUMNS, TABLES, Table, actor_rows
from console.clock import now
from console.data import make_data_dir
from console.errors import Invalid, NotFound
from console.models import Actor
from documents.attachments.storing import attachments_folder
from documents.models import Attachment
from lineage.access import root_for
from lineage.models import Conversation, Root

Progress = Callable[[str, int], None]
"""Told (table, rows of it so far) while it goes on."""

_encode = msgspec.json.Encoder().encode


def export_root(*, root: int, path: Path, progress: Progress = lambda table, rows: None) -> Manifest:
    """Write the tree to `path`, for the administrator's command. A file of that name is replaced once the new one is whole;
    nothing half is ever left under it. Refusals: `not_found`, `invalid`."""
    if path.is_dir() or not path.parent.is_dir():
        raise Invalid("file", f"{path} cannot be written: give the name of a file in a folder that exists.")
    draft = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            manifest = _write(root, file, progress)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError as error:
        raise Invalid("file", f"{path} cannot be written: {error.strerror}.") from error
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
    return manifest


def export_for(*, who: Who, root: int) -> IO[bytes]:
    """The same as a file without a name, at its begin, for whoever may manage the root: it holds everything, so members with
    another role get none of it. On disk, so that a slow reader holds neither memory nor the database's view."""
    root_for(who, root, Permission.MANAGE)
    file = tempfile.TemporaryFile(dir=make_data_dir())  # noqa: SIM115 - whoever sends it closes it
    try:
        _write(root, file, lambda table, rows: None)
        file.seek(0)
    except BaseException:
        file.close()
        raise
    return file


def _write(root: int, file: IO[bytes], progress: Progress) -> Manifest:
    with transaction.atomic(durable=True), zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        row = Root.objects.select_related("conversation").filter(pk=root).first() if 0 < root < 2**63 else None
        if row is None:
            raise NotFound("root", f"#{root}")
        view = _View(root)
        tables: dict[str, Part] = {}
        for table in TABLES:
            rows = table.rows_of(root).values_list(*table.columns).iterator(chunk_size=table.chunk)
            tables[table.name] = _write_table(archive, table.name, table.columns, view.kept(table, rows), progress)
        actors = actor_rows(view.actors).iterator(chunk_size=500)
        tables[ACTORS] = _write_table(archive, ACTORS, ACTOR_COLUMNS, actors, progress)
        names = Attachment.objects.filter(root=root).order_by("pk").values_list("name", flat=True)
        files = sum(_write_files(archive, name) for name in names.iterator(chunk_size=500))
        manifest = Manifest(
            format=FORMAT,
            root=root,
            title=row.conversation.title,
            exported=now().isoformat(),
            tables=tables,
            files=files,
        )
        archive.writestr(MANIFEST, msgspec.json.format(_encode(manifest)))
    return manifest


class _View:
    """What the rows name: actors, which are exported after them, and conversations of other trees, which are not."""

    def __init__(self, root: int) -> None:
        self.actors: set[int] = set()
        self._conversations = set(Conversation.objects.filter(root=root).values_list("pk", flat=True))

    def kept(self, table: Table, rows: Iterator[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
        """The rows. What leads to another tree is left out of them, and a row that is about it alone altogether."""
        actors, outward = [], []
        for place, field in enumerate(table.fields):
            if isinstance(field, models.ForeignKey) and field.related_model is Actor:
                actors.append(place)
            elif isinstance(field, models.ForeignKey) and field.related_model is Conversation:
                outward.append((place, field.null))
        for row in rows:
            self.actors.update(row[place] for place in actors if row[place] is not None)
            strange = {
                place: null
                for place, null in outward
                if row[place] is not None and row[place] not in self._conversations
            }
            if all(strange.values()):
                yield tuple(None if place in strange else value for place, value in enumerate(row)) if strange else row


def _write_table(
    archive: zipfile.ZipFile, name: str, columns: list[str], rows: Iterator[tuple[Any, ...]], progress: Progress
) -> Part:
    count = size = first = last = 0
    with archive.open(table_place(name), "w", force_zip64=True) as member:
        for row in rows:
            line = _encode(row) + b"\n"
            member.write(line)
            count, size = count + 1, size + len(line)
            if isinstance(row[0], int):
                first, last = min(first or row[0], row[0]), max(last, row[0])
            if count % 1000 == 0:
                progress(name, count)
    progress(name, count)
    return Part(columns=columns, rows=count, bytes=size, first=first, last=last)


def _write_files(archive: zipfile.ZipFile, attachment: str) -> int:
    """The file and its sidecar; an original that was deleted is left out (D18). How many there were."""
    count = 0
    for path in files_of(attachments_folder(), attachment):
        with suppress(FileNotFoundError), path.open("rb") as source:
            with archive.open(file_place(path.name), "w", force_zip64=True) as member:
                shutil.copyfileobj(source, member, 1 << 20)
            count += 1
    return count
