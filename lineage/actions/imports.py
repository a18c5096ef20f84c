"""Carrying out what a transcript reader found: conversations, entries, states (T1, T2). One transaction for each piece of a file.

Importers lock the folder's row before any other, so two of them at once do nothing twice: the second finds the first one's
pieces, recalls them and goes on after them. Nobody who holds another lock waits for a folder's, so the order of R5 stands.
"""

import zlib
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import groupby

import msgspec
from django.db import transaction

from console.errors import NotFound
from lineage.actions.copying import create_rows
from lineage.actions.imported import Brought, Carried, Carrying
from lineage.models import (
    Root,
    TranscriptConversation,
    TranscriptFile,
    TranscriptFolder,
    TranscriptPiece,
    TranscriptSpan,
)
from lineage.transcripts.lines import Fault, Line, lines_of
from lineage.transcripts.numbering import Numbering
from lineage.transcripts.plan import Step
from lineage.transcripts.reader import READERS, Reader

NOTHING = zlib.compress(msgspec.msgpack.encode([]))  # the records of a piece that has none
FAST = 1  # zlib's level: five times smaller at 200 MB/s; higher levels cost more than they save


_UNREADABLE = {Fault.MALFORMED, Fault.NOT_AN_OBJECT, Fault.TOO_LONG}


@dataclass(frozen=True, kw_only=True)
class Looks:
    """How a file looked when it was read."""

    device: int
    inode: int
    size: int
    modified: int


@dataclass
class OpenFolder:
    """A folder as this process knows it: the reader with its memory up to `version`, and the conversations by key."""

    folder: int
    format: str
    reader: Reader
    version: int = 0
    brought: dict[str, Brought] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Taken:
    """What became of some lines. `offset` is where to read on; `waiting`: what the file hangs on has not been read yet."""

    offset: int
    generation: int = 0
    waiting: bool = False
    conversation: int | None = None
    unreadable: int = 0  # lines that are no JSON object, or too long
    carried: Carried = field(default_factory=Carried)


@dataclass(frozen=True, kw_only=True)
class Run:
    """Lines that follow each other, their bytes being compressed."""

    offset: int
    size: int
    raw: Future[bytes]


_packer = ThreadPoolExecutor(max_workers=1, thread_name_prefix="packer")


def checked_root(root: int) -> int:
    """The number of a root that sessions may go under, or a refusal."""
    if not (0 < root < 2**63 and Root.objects.filter(pk=root).exists()):
        raise NotFound("root", f"#{root}")
    return root


def open_folder(*, format: str, path: str) -> OpenFolder:
    """The folder's row, made when it is new. A folder whose conversations were all erased is forgotten, and read anew."""
    with transaction.atomic():
        TranscriptFolder.objects.get_or_create(format=format, path=path)
        folder = TranscriptFolder.objects.select_for_update(no_key=True).get(format=format, path=path)
        if folder.began and not folder.conversations.exists():
            folder.files.all().delete()
            folder.pieces.all().delete()
            folder.version, folder.began = 0, False
            folder.save(update_fields=["version", "began"])
    return OpenFolder(folder=folder.pk, format=format, reader=READERS[format]())


def take_lines(
    *,
    opened: OpenFolder,
    name: str,
    generation: int,
    lines: Sequence[Line],
    looks: Looks,
    root: int | None = None,
    force: bool = False,
) -> Taken:
    """Record these lines, which follow each other in the file, and what they mean. `root` is for sessions that begin.

    Lines that another importer has taken meanwhile are left out. With `force` a file that waits is read all the same.
    """
    try:
        with transaction.atomic():
            folder = _caught_up(opened)
            file, _ = TranscriptFile.objects.get_or_create(folder=folder, name=name)
            if file.generation != generation or (lines and lines[0].offset > file.offset):
                return Taken(offset=file.offset, generation=file.generation)
            fresh = [line for line in lines if line.offset >= file.offset]
            if fresh and not force and not opened.reader.is_ready(name, fresh):
                return Taken(offset=file.offset, generation=generation, waiting=True)
            carried = _take(opened, folder, file, fresh, root)
            _note_file(file, fresh, looks)
    except BaseException:
        opened.version = -1  # the reader is ahead of the database now: it begins anew
        raise
    return Taken(
        offset=file.offset,
        generation=generation,
        conversation=file.conversation_id,
        unreadable=sum(line.fault in _UNREADABLE for line in fresh),
        carried=carried,
    )


def append_lines(
    *, opened: OpenFolder, name: str, choose: Callable[[TranscriptFile], Sequence[bytes]], root: int
) -> Taken:
    """Record lines that come without a file, after those of that name. `choose` says which, once the folder is locked.

    Nothing waits: an agent whose call comes later is linked to it then.
    """
    try:
        with transaction.atomic():
            folder = _caught_up(opened)
            file, _ = TranscriptFile.objects.get_or_create(folder=folder, name=name)
            lines = lines_of(choose(file), offset=file.offset)
            carried = _take(opened, folder, file, lines, root)
            if lines:
                end = lines[-1].offset + lines[-1].size
                _note_file(file, lines, Looks(device=0, inode=0, size=end, modified=0))
                carried.add(_settle(opened, folder))
    except BaseException:
        opened.version = -1
        raise
    return Taken(offset=file.offset, conversation=file.conversation_id, carried=carried)


def settle_folder(*, opened: OpenFolder) -> Carried:
    """Links that need no new line: an agent whose call was found after its file."""
    try:
        with transaction.atomic():
            return _settle(opened, _caught_up(opened))
    except BaseException:
        opened.version = -1
        raise


def begin_again(*, opened: OpenFolder, name: str, looks: Looks) -> int:
    """The file was written anew: read it from its beginning. What is known of it is known again. Answers the generation."""
    with transaction.atomic():
        _caught_up(opened)
        file = TranscriptFile.objects.get(folder=opened.folder, name=name)
        file.generation += 1
        file.offset, file.first_line, file.size = 0, "", 0
        file.lines = file.unreadable = file.too_long = 0
        _note_file(file, (), looks)
    return file.generation


def note_looks(*, opened: OpenFolder, name: str, looks: Looks) -> None:
    """The file was read to its end as it looks now: half a line may be left, or it was moved or copied and is the same."""
    TranscriptFile.objects.filter(folder=opened.folder, name=name).update(
        device=looks.device, inode=looks.inode, size=looks.size, modified=looks.modified
    )


def _caught_up(opened: OpenFolder) -> TranscriptFolder:
    """The folder's row, locked, with the reader brought up to what other importers have recorded."""
    folder = TranscriptFolder.objects.select_for_update(no_key=True).get(pk=opened.folder)
    if opened.version == folder.version:
        return folder
    if not 0 <= opened.version < folder.version:
        opened.reader, opened.version = READERS[opened.format](), 0
    pieces = folder.pieces.filter(number__gt=opened.version).order_by("number").values_list("memory", flat=True)
    opened.reader.memory.recall(zlib.decompress(memory) for memory in pieces)
    opened.version = folder.version
    rows = TranscriptConversation.objects.filter(folder=folder).select_related("conversation")
    opened.brought = {
        row.key: Brought(
            conversation=row.conversation_id,
            root=row.conversation.root_id,
            numbering=Numbering(row.conversation.at, row.count, row.numbers),
        )
        for row in rows
    }
    return folder


def _take(
    opened: OpenFolder, folder: TranscriptFolder, file: TranscriptFile, lines: Sequence[Line], root: int | None
) -> Carried:
    if not lines:
        return Carried()
    runs = _packed(lines)
    carried = _carry_out(opened, folder, opened.reader.read(file.name, lines), root, file, runs)
    home = opened.brought.get(opened.reader.home_of(file.name))
    file.conversation_id = home.conversation if home else None
    return carried


def _settle(opened: OpenFolder, folder: TranscriptFolder) -> Carried:
    steps = opened.reader.settle()
    return _carry_out(opened, folder, steps, None, None, _packed(())) if steps else Carried()


def _carry_out(
    opened: OpenFolder,
    folder: TranscriptFolder,
    steps: Sequence[Step],
    root: int | None,
    file: TranscriptFile | None,
    runs: Sequence[Run],
) -> Carried:
    """Steps, raw lines and the reader's records: all or nothing."""
    carrying = Carrying(folder=folder, brought=opened.brought, root=root)
    carried = carrying.carry_out(steps)
    pieces = _pieces(folder, file, runs, opened.reader.memory.taken())
    create_rows(pieces, large=True)
    TranscriptSpan.objects.bulk_create(_spans(pieces, carrying.written))
    folder.version += len(pieces)
    folder.began = folder.began or bool(carried.opened)
    folder.save(update_fields=["version", "began"])
    opened.version = folder.version
    return carried


def _packed(lines: Sequence[Line]) -> list[Run]:
    """The lines as bytes: runs of them, and each line that is too long by itself, without bytes. One run when there are none.

    They are compressed in a thread while the reader works: zlib needs no turn of the interpreter.
    """
    parted = groupby(lines, key=lambda line: line.offset if line.fault == Fault.TOO_LONG else -1)
    runs = [list(run) for _, run in parted] or [[]]
    return [
        Run(
            offset=run[0].offset if run else 0,
            size=sum(line.size for line in run),
            raw=_packer.submit(_bytes_of, run),
        )
        for run in runs
    ]


def _bytes_of(run: Sequence[Line]) -> bytes:
    """As in the file. Only the last line of all may have no LF."""
    if run and run[0].fault == Fault.TOO_LONG:
        return zlib.compress(b"", FAST)
    return zlib.compress(b"".join(line.raw + b"\n" * (line.size - len(line.raw)) for line in run), FAST)


def _pieces(
    folder: TranscriptFolder, file: TranscriptFile | None, runs: Sequence[Run], memory: bytes
) -> list[TranscriptPiece]:
    """A row for each run. The last one has the reader's records."""
    found = [
        TranscriptPiece(
            folder=folder,
            number=number,
            file=file,
            generation=file.generation if file else 0,
            offset=run.offset,
            size=run.size,
            raw=run.raw.result(),
            memory=NOTHING,
        )
        for number, run in enumerate(runs, folder.version + 1)
    ]
    found[-1].memory = zlib.compress(memory, FAST)
    return found


def _spans(pieces: Sequence[TranscriptPiece], written: dict[int, list[tuple[int, int, int]]]) -> list[TranscriptSpan]:
    spans: list[TranscriptSpan] = []
    for piece in pieces:
        end = piece.offset + piece.size
        for conversation, entries in written.items():
            inside = [
                [seq, offset - piece.offset, size] for seq, offset, size in entries if piece.offset <= offset < end
            ]
            if inside:
                spans.append(
                    TranscriptSpan(
                        piece=piece,
                        conversation_id=conversation,
                        first=min(line[0] for line in inside),
                        last=max(line[0] for line in inside),
                        lines=msgspec.msgpack.encode(inside),
                    )
                )
    return spans


def _note_file(file: TranscriptFile, lines: Sequence[Line], looks: Looks) -> None:
    if lines:
        if file.offset == 0:
            file.first_line = sha256(lines[0].raw).hexdigest()
        file.offset = lines[-1].offset + lines[-1].size
        file.lines += len(lines)
        file.unreadable += sum(line.fault in _UNREADABLE - {Fault.TOO_LONG} for line in lines)
        file.too_long += sum(line.fault == Fault.TOO_LONG for line in lines)
    file.device, file.inode = looks.device, looks.inode
    if file.offset == looks.size:  # else more is to be read: until then it does not count as seen
        file.size, file.modified = looks.size, looks.modified
    file.save()


def raw_line(*, conversation: int, seq: int) -> bytes | None:
    """The line that an entry was made of, as the file had it (R10); none for entries that no transcript brought."""
    spans = TranscriptSpan.objects.filter(conversation=conversation, first__lte=seq, last__gte=seq)
    for lines, raw in spans.values_list("lines", "piece__raw"):
        for number, offset, size in msgspec.msgpack.decode(lines):
            if number == seq:
                return zlib.decompress(raw)[offset : offset + size].removesuffix(b"\n")
    return None
