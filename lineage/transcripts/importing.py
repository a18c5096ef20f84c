"""Reading session files into the database: each from where it was left, in pieces of one transaction (T1–T3).

`lineage.actions.imports` records; this module reads files, and decides whether one is unchanged, grown or written anew.
"""

import gc
import os
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from lineage.actions.imported import Carried
from lineage.actions.imports import Looks, OpenFolder, begin_again, note_looks, open_folder, settle_folder, take_lines
from lineage.models import TranscriptFile, TranscriptPiece
from lineage.transcripts.compressed import PackedError, is_compressed, unpacked
from lineage.transcripts.folders import Found, FoundFolder, meta_of
from lineage.transcripts.lines import LINE_BYTES, Line, LineSplitter

BLOCK = 1024 * 1024  # bytes read at once
LOOK = 16 * 1024  # bytes read at once of a first line
PIECE_LINES = 2000  # of one transaction: its locks are held for well under a second
PIECE_BYTES = 4 * 1024 * 1024
COLLECTED = 16  # pieces between two looks for cycles of values that nobody holds
PATIENCE = 1.0  # seconds that an agent's file waits for the line that called it, or its meta file, before it is read all the same


@dataclass
class Reading:
    """What came of one file."""

    file: Found
    conversation: int | None = None
    new: bool = False
    read: int = 0  # bytes
    unreadable: int = 0  # lines
    carried: Carried = field(default_factory=Carried)
    failed: str = ""  # why it could not be read
    lasting: bool = False  # and never will, as it is


class UnreadableError(Exception):
    """A file cannot be read now; its message is the system's own words."""


class FolderImport:
    """Reads one folder's files, again and again as they grow. `root`: where sessions that begin go, if not by their folder."""

    def __init__(self, *, format: str, path: Path, root: int | None = None) -> None:
        self.opened: OpenFolder = open_folder(format=format, path=os.fsencode(path).decode("utf-8", "backslashreplace"))
        self._root = root
        self._waiting_since: dict[str, float] = {}
        self._metas: dict[str, dict[str, Any]] = {}

    def read(
        self, files: list[Found], *, patient: bool = False, progress: Callable[[int], None] = lambda _: None
    ) -> list[Reading]:
        """Read what is new in these files. With `patient` an agent's file may wait for a later call; else it is read at the end."""
        rows = {row.name: row for row in TranscriptFile.objects.filter(folder=self.opened.folder)}
        readings: list[Reading] = []
        waiting: list[Found] = []
        for file in files:
            reading = self._read_file(file, rows.get(file.name), progress=progress)
            if reading is None:
                waiting.append(file)
            else:
                readings.append(reading)
        while waiting:
            # Agents of agents: each round may read the call that another waits for.
            before = len(waiting)
            for file in list(waiting):
                reading = self._read_file(file, rows.get(file.name), progress=progress)
                if reading is not None:
                    waiting.remove(file)
                    readings.append(reading)
            if len(waiting) == before:
                ripe = [file for file in waiting if not patient or self._has_waited(file.name)]
                if not ripe:
                    break
                waiting.remove(ripe[0])
                reading = self._read_file(ripe[0], rows.get(ripe[0].name), progress=progress, force=True)
                assert reading is not None
                readings.append(reading)
        told = [self._tell_meta(file) for file in files if patient and file.agent]
        if any(told) or any(reading.carried.entries for reading in readings):
            settle_folder(opened=self.opened)
        return readings

    def _has_waited(self, name: str) -> bool:
        return time.monotonic() - self._waiting_since.setdefault(name, time.monotonic()) >= PATIENCE

    def _read_file(
        self, file: Found, row: TranscriptFile | None, *, progress: Callable[[int], None], force: bool = False
    ) -> Reading | None:
        """None: it waits. A file that has vanished, or cannot be read now, changes nothing (T3)."""
        reading = Reading(file=file, new=row is None, conversation=row.conversation_id if row else None)
        waits = False
        try:
            with _opened(file.path) as source:
                if is_compressed(file.path):
                    waits = not self._read_packed(source, file, row, reading, progress, force)
                else:
                    waits = not self._read_source(source, file, row, _looks(source), reading, progress, force)
        except UnreadableError as error:
            reading.failed = str(error)
        except PackedError as error:
            reading.failed, reading.lasting = str(error), True
        if waits:
            self._waiting_since.setdefault(file.name, time.monotonic())
            return None
        self._waiting_since.pop(file.name, None)
        return reading

    def _read_packed(
        self,
        packed: int,
        file: Found,
        row: TranscriptFile | None,
        reading: Reading,
        progress: Callable[[int], None],
        force: bool,
    ) -> bool:
        """A compressed file, unless it was read as it is. Its lines are known from the time before it was compressed."""
        looks = _looks(packed)
        progress(looks.size)
        if row is not None and (row.device, row.inode, row.modified) == (looks.device, looks.inode, looks.modified):
            return True
        with os.fdopen(os.dup(packed), "rb") as stream, unpacked(stream) as plain:
            size = os.fstat(plain.fileno()).st_size
            looks = replace(looks, size=size)
            return self._read_source(plain.fileno(), file, row, looks, reading, lambda _: None, force)

    def _read_source(
        self,
        source: int,
        file: Found,
        row: TranscriptFile | None,
        looks: Looks,
        reading: Reading,
        progress: Callable[[int], None],
        force: bool,
    ) -> bool:
        """Read what is new. False: the file waits."""
        place = self._place(source, file, row, looks)
        progress(place[0] if place else looks.size)
        if place is None:
            return True
        with _collecting_seldom():
            return self._read_on(source, file, looks, place, reading, progress, force)

    def _read_on(
        self,
        source: int,
        file: Found,
        looks: Looks,
        place: tuple[int, int],
        reading: Reading,
        progress: Callable[[int], None],
        force: bool,
    ) -> bool:
        """Read from `place` (offset, generation) to the end. False: the file waits."""
        self._tell_meta(file)
        begun, pieces = None, 0
        while place != begun:  # once more when another importer went on meanwhile
            begun = place
            for lines in _pieces(source, place[0]):
                taken = take_lines(
                    opened=self.opened,
                    name=file.name,
                    generation=place[1],
                    lines=lines,
                    looks=looks,
                    root=self._root,
                    force=force,
                )
                if taken.waiting:
                    return False
                reading.carried.add(taken.carried)
                reading.unreadable += taken.unreadable
                reading.conversation = taken.conversation or reading.conversation
                reading.read += max(0, taken.offset - place[0])
                progress(max(0, taken.offset - place[0]))
                place = taken.offset, taken.generation
                pieces += 1
                if pieces % COLLECTED == 0:
                    gc.collect(0)
                if place[0] != lines[-1].offset + lines[-1].size:
                    break
        if place[0] != looks.size:
            note_looks(opened=self.opened, name=file.name, looks=looks)
        return True

    def _tell_meta(self, file: Found) -> bool:
        """Tell the reader what the file beside an agent's file says; whether it is new."""
        meta = meta_of(file.path) if file.agent else None
        if meta is None:
            return False
        new = self._metas.get(file.name) != meta
        self._metas[file.name] = meta
        self.opened.reader.tell_meta(file.name, meta)
        return new

    def _place(self, source: int, file: Found, row: TranscriptFile | None, looks: Looks) -> tuple[int, int] | None:
        """(offset, generation) to read on from, or none when nothing is new."""
        if row is None:
            return (0, 0) if looks.size else None
        if (row.device, row.inode, row.size, row.modified) == (looks.device, looks.inode, looks.size, looks.modified):
            return None
        moved = (row.device, row.inode) != (looks.device, looks.inode)
        if row.offset and (looks.size < row.offset or not self._begins_alike(source, row, whole=moved)):
            return 0, begin_again(opened=self.opened, name=file.name, looks=looks)
        if looks.size == row.offset:
            note_looks(opened=self.opened, name=file.name, looks=looks)
            return None
        return row.offset, row.generation

    def _begins_alike(self, source: int, row: TranscriptFile, *, whole: bool) -> bool:
        """Whether the file still holds what was read of it: its first line, or with `whole` all of it."""
        if not whole:
            return sha256(_first_line(source)).hexdigest() == row.first_line
        pieces = TranscriptPiece.objects.filter(file=row, generation=row.generation).order_by("offset")
        for offset, size, raw in pieces.values_list("offset", "size", "raw").iterator(chunk_size=8):
            known = zlib.decompress(raw)
            if known and _read(source, size, offset) != known:
                return False
        return True


def import_folders(
    folders: list[FoundFolder], *, root: int | None = None, progress: Callable[[int], None] = lambda _: None
) -> Iterator[Reading]:
    """Read all files of these folders, once. `progress` gets the bytes done, read or known."""
    for folder in folders:
        yield from FolderImport(format=folder.format, path=folder.path, root=root).read(folder.files, progress=progress)


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    try:
        source = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise UnreadableError(error.strerror or str(error)) from error
    try:
        yield source
    finally:
        os.close(source)


@contextmanager
def _collecting_seldom() -> Iterator[None]:
    """Reading makes a hundred thousand values for each piece, which all go when it is written. Looking for cycles among them over
    and over would take a third of the time; once for each piece is enough."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def _looks(source: int) -> Looks:
    stat = os.fstat(source)
    return Looks(device=stat.st_dev, inode=stat.st_ino, size=stat.st_size, modified=stat.st_mtime_ns)


def _read(source: int, size: int, offset: int) -> bytes:
    try:
        return os.pread(source, size, offset)
    except OSError as error:
        raise UnreadableError(error.strerror or str(error)) from error


def _first_line(source: int) -> bytes:
    """As far as its LF, or the end. A line that is too long to be kept counts as an empty one, as when it was read."""
    line = b""
    while block := _read(source, LOOK, len(line)):
        line += block
        if b"\n" in block or len(line) > LINE_BYTES:
            break
    line = line.partition(b"\n")[0]
    return line if len(line) <= LINE_BYTES else b""


def _pieces(source: int, offset: int) -> Iterator[list[Line]]:
    """The whole lines from `offset` on, in pieces of one transaction; none when there is no whole line."""
    splitter = LineSplitter(offset)
    lines: list[Line] = []
    size, position = 0, offset
    while block := _read(source, BLOCK, position):
        position += len(block)
        for line in splitter.feed(block):
            lines.append(line)
            size += line.size
            if len(lines) >= PIECE_LINES or size >= PIECE_BYTES:
                yield lines
                lines, size = [], 0
    last = splitter.last()
    if last is not None:
        lines.append(last)
    if lines:
        yield lines
