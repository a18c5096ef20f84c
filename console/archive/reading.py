"""Reading the file of an export, which may come from anywhere: only known names, never more bytes than it says, every row in
the shape of its table. Every fault is a refusal in one sentence."""

import base64
import io
import json
import uuid
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import IO, Any

import msgspec
from django.db import models

from console.archive.layout import (
    ACTORS,
    FORMAT,
    LINE_BYTES,
    MANIFEST,
    MANIFEST_BYTES,
    Manifest,
    Part,
    file_at,
    file_place,
    table_at,
    table_place,
)
from console.archive.tables import ACTOR_COLUMNS, BY_NAME, Table
from console.errors import Conflict, DomainError

LARGEST_NUMBER = 2**53  # of a row: JSON elsewhere counts no further, and numbers here go on after it
_BLOCK = 1 << 20
_BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, msgspec.DecodeError)


def damaged(what: str) -> DomainError:
    """The refusal of a file that is ours and not whole."""
    return DomainError("damaged", f"The file is damaged: {what}. Nothing was restored.")


class Archive:
    """An opened export whose names, sizes and manifest fit each other."""

    def __init__(self, zip: zipfile.ZipFile) -> None:
        self._zip = zip
        self.files: dict[str, tuple[str, int]] = {}  # name of the file: (attachment, bytes that it may have)
        self.manifest = self._read_manifest()
        self._check_places()

    def rows(self, table: Table) -> Iterator[dict[str, Any]]:
        """The rows as columns with values for the database; columns that are newer than the file have their defaults."""
        part = self.manifest.tables[table.name]
        fields = {field.attname: field for field in table.fields}
        takers = [(name, _taker(fields[name], name in table.json)) for name in part.columns]
        late = {name: field.get_default() for name, field in fields.items() if name not in part.columns}
        key = table.model._meta.pk
        for row in self._lines(table.name, part):
            found = dict(late)
            for (name, take), value in zip(takers, row, strict=True):
                try:
                    found[name] = take(value)
                except (TypeError, ValueError, RecursionError):
                    raise damaged(f"a row of {table.name} has an impossible {name}") from None
            if key is not None and table.numbered and not part.first <= found[key.attname] <= part.last:
                raise damaged(f"a row of {table.name} has a number that the file does not announce")
            yield found

    def actors(self) -> Iterator[dict[str, Any]]:
        """The rows of actors, as they stand in the file."""
        part = self.manifest.tables[ACTORS]
        for row in self._lines(ACTORS, part):
            yield dict(zip(part.columns, row, strict=True))

    def blocks(self, name: str) -> Iterator[bytes]:
        """A file's bytes, within what it may have."""
        limit, size = self.files[name][1], 0
        with reading(), self._zip.open(file_place(name)) as member:
            while block := member.read(_BLOCK):
                size += len(block)
                if size > limit:
                    raise damaged(f"{name} is larger than any file of its kind")
                yield block

    def _read_manifest(self) -> Manifest:
        try:
            with self._zip.open(MANIFEST) as member:
                text = member.read(MANIFEST_BYTES + 1)
            head = msgspec.json.decode(text, type=dict[str, Any])
            if isinstance(head.get("format"), int) and head["format"] > FORMAT:
                raise _newer(f"it has format {head['format']}, and this console reads up to {FORMAT}")
            manifest = msgspec.json.decode(text, type=Manifest)
        except (KeyError, *_BROKEN):
            raise _not_ours() from None
        for name, part in manifest.tables.items():
            table = BY_NAME.get(name)
            known = ACTOR_COLUMNS if name == ACTORS else table.columns if table else []
            if not known or not set(part.columns) <= set(known):
                raise _newer(f"it has {name} in a shape that is not known here")
            if min(part.rows, part.bytes, part.first) < 0 or not part.first <= part.last <= LARGEST_NUMBER:
                raise damaged(f"what it says of {name} is impossible")
        missing = {ACTORS, *BY_NAME} - set(manifest.tables)
        if missing:
            raise damaged(f"it says nothing of {min(missing)}")
        return manifest

    def _check_places(self) -> None:
        tables: set[str] = set()
        for info in self._zip.infolist():
            place = info.filename
            table, file = table_at(place), file_at(place)
            if table in self.manifest.tables and table not in tables:
                assert table is not None
                tables.add(table)
                if info.file_size != self.manifest.tables[table].bytes:
                    raise damaged(
                        f"{place} has {info.file_size} bytes, not the {self.manifest.tables[table].bytes} it says"
                    )
            elif file is not None and file[1] not in self.files and info.file_size <= file[2]:
                self.files[file[1]] = (file[0], file[2])
            elif place != MANIFEST:
                raise damaged(f"{place[:80]!r} does not belong there")
        if len(tables) < len(self.manifest.tables) or len(self.files) != self.manifest.files:
            raise damaged("a part of it is missing")

    def _lines(self, name: str, part: Part) -> Iterator[list[Any]]:
        rows = size = 0
        with reading(), self._zip.open(table_place(name)) as member:
            lines = io.BufferedReader(_Raw(member), _BLOCK)
            while line := lines.readline(LINE_BYTES + 1):
                rows, size = rows + 1, size + len(line)
                if len(line) > LINE_BYTES or size > part.bytes or rows > part.rows:
                    raise damaged(f"{name} has more than the file says")
                row = msgspec.json.decode(line)
                if not isinstance(row, list) or len(row) != len(part.columns):
                    raise damaged(f"row {rows} of {name} has not {len(part.columns)} columns")
                yield row
        if rows != part.rows:
            raise damaged(f"{name} has {rows} rows, not {part.rows}")


@contextmanager
def opened_archive(path: Path) -> Iterator[Archive]:
    """The file, open. Refusals: `not_an_export`, `newer`, `damaged`."""
    try:
        zip = zipfile.ZipFile(path)
    except (OSError, *_BROKEN):
        raise _not_ours() from None
    with zip:
        yield Archive(zip)


@contextmanager
def reading() -> Iterator[None]:
    """What zip and JSON raise on broken bytes, as a refusal."""
    try:
        yield
    except _BROKEN as error:
        raise damaged(str(error) or "its bytes cannot be read") from None


class _Raw(io.RawIOBase):
    """A member of the zip, so that a buffer may stand before it: its own lines are slow."""

    def __init__(self, member: IO[bytes]) -> None:
        self._member = member

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        block = self._member.read(len(buffer))
        buffer[: len(block)] = block
        return len(block)


def _taker(field: "models.Field[Any, Any]", is_json: bool) -> Callable[[Any], Any]:
    """Turns what JSON has into what the column takes; raises ValueError or TypeError for anything else."""
    take = _take_json_text if is_json else _taker_of_kind(field)
    choices = {str(value) for value, _ in field.flatchoices} | ({""} if field.blank else set())

    def taken(value: Any) -> Any:
        if value is None:
            if field.null:
                return None
            raise ValueError
        if field.flatchoices and value not in choices:
            raise ValueError
        return take(value)

    return taken


def _taker_of_kind(field: "models.Field[Any, Any]") -> Callable[[Any], Any]:
    if isinstance(field, models.ForeignKey):
        return _taker_of_kind(field.target_field)
    if isinstance(field, models.DateTimeField):
        return _take_time
    if isinstance(field, models.BooleanField):
        return _take_flag
    if isinstance(field, models.IntegerField):
        return _take_number
    if isinstance(field, models.UUIDField):
        return uuid.UUID
    if isinstance(field, models.BinaryField):
        return lambda value: base64.b64decode(value, validate=True)
    if isinstance(field, models.JSONField):
        return lambda value: value
    if isinstance(field, models.CharField | models.TextField):
        return _take_text
    raise AssertionError(f"{field} has a type that no file can have yet")


def _take_text(value: Any) -> str:
    if not isinstance(value, str) or "\0" in value:
        raise ValueError
    return value


def _take_json_text(value: Any) -> str:
    """JSON exactly as it was stored (R10). It goes out again as it is, so it has to be JSON."""
    text = _take_text(value)
    if text:
        json.loads(text)
    return text


def _take_time(value: Any) -> datetime:
    moment = datetime.fromisoformat(value)
    if moment.tzinfo is None:
        raise ValueError
    return moment


def _take_flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError
    return value


def _take_number(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or abs(value) >= 2**63:
        raise TypeError
    return value


def _newer(why: str) -> DomainError:
    return Conflict("newer", f"The file was made by a newer console: {why}. Bring this one up to date first.")


def _not_ours() -> DomainError:
    return DomainError(
        "not_an_export", "This file is no export of a console, or its end is missing. Nothing was restored."
    )
