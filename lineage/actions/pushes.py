"""Taking in entries of Claude Code sessions as an SDK's session store gets them (T1, T2): the importer, without a file.

A process keeps the readers of the projects that are pushed, since each call brings only a few lines.
"""

import threading
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field

from django.db import transaction

from console.access import PERMISSIONS, Permission, Who, role_in
from console.errors import Forbidden, Invalid
from console.requests import checked_request_id, remember, remembered
from lineage.access import root_for
from lineage.actions.imports import OpenFolder, append_lines, open_folder
from lineage.models import TranscriptFile, TranscriptFolder, TranscriptPiece
from lineage.transcripts.pushing import SessionKey, digests_of, file_name, new_among, raw_lines

PROJECTS = 32  # whose readers stay in memory
FORMAT = "claude"


@dataclass
class _Kept:
    """Digests of a file's lines up to the folder's piece `number`."""

    number: int = 0
    digests: bytes = b""


@dataclass
class _Project:
    """A project as this process knows it. One thread at a time uses its reader."""

    opened: OpenFolder
    lock: threading.Lock = field(default_factory=threading.Lock)
    files: dict[str, _Kept] = field(default_factory=dict)


_projects: dict[int, _Project] = {}
_all = threading.Lock()


def push_entries(
    *, who: Who, key: SessionKey, entries: Sequence[bytes], root: int | None = None, request_id: str | None = None
) -> dict[str, int | None]:
    """Record JSON lines of a session under a root; what was pushed before is known again, with or without `request_id`.

    Answers `conversation`, `lines` that were new, and `entries` that they made. Refuses agents: they would speak for people.
    """
    request_id = checked_request_id(request_id)
    root = _root_meant(who, root)
    name, lines = file_name(key), raw_lines(entries)
    if not lines:
        return {"conversation": None, "lines": 0, "entries": 0}
    project = _project(f"push:{root}/{key.project_key}")
    with project.lock:
        try:
            with transaction.atomic():
                return _push(project, who, root, name, lines, request_id)
        except BaseException:
            project.opened.version = -1  # the reader may be ahead of the database
            raise


def _push(
    project: _Project, who: Who, root: int, name: str, lines: Sequence[bytes], request_id: str | None
) -> dict[str, int | None]:
    TranscriptFolder.objects.select_for_update(no_key=True).get(pk=project.opened.folder)
    receiver = f"transcripts:{project.opened.folder}"
    first = remembered(receiver=receiver, actor=who.actor, request_id=request_id)
    if first is not None:
        return dict(first)
    fresh: list[bytes] = []

    def choose(file: TranscriptFile) -> Sequence[bytes]:
        fresh.extend(new_among(lines, _kept(project, file)))
        return fresh

    taken = append_lines(opened=project.opened, name=name, choose=choose, root=root)
    result = {
        "conversation": taken.conversation,
        "lines": len(fresh),
        "entries": sum(taken.carried.entries.values()),
    }
    remember(receiver=receiver, actor=who.actor, request_id=request_id, result=result)
    return result


def _root_meant(who: Who, asked: int | None) -> int:
    root = asked if asked is not None else who.root
    if root is None:
        raise Invalid("root", "Say with root under which root the session goes. A token has one of its own.")
    found = root_for(who, root)
    role = role_in(who, found.pk)
    if role is None or Permission.DECIDE not in PERMISSIONS[role]:
        raise Forbidden(
            "Sessions are pushed with the role operator or owner, since their prompts count as people's. "
            "Make a token with --role operator.",
            role=str(role),
        )
    return int(found.pk)


def _project(path: str) -> _Project:
    """The project's reader; those that were not needed for long are given back."""
    opened = open_folder(format=FORMAT, path=path)
    with _all:
        project = _projects.pop(opened.folder, None) or _Project(opened)
        _projects[opened.folder] = project
        while len(_projects) > PROJECTS:
            del _projects[next(iter(_projects))]
    return project


def _kept(project: _Project, file: TranscriptFile) -> bytes:
    """Digests of all lines that the file has; read anew is what came since, from whatever process."""
    kept = project.files.setdefault(file.name, _Kept())
    pieces = TranscriptPiece.objects.filter(file=file, number__gt=kept.number).order_by("number")
    for number, raw in pieces.values_list("number", "raw").iterator(chunk_size=8):
        kept.digests += digests_of(zlib.decompress(raw).split(b"\n")[:-1])
        kept.number = number
    return kept.digests
