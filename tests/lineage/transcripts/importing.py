"""Importing in tests: a project folder that grows, and what the database holds of it."""

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.db.models import QuerySet

from lineage.models import Conversation, Entry, EntryEdit, Kind, TranscriptConversation, Usage
from lineage.transcripts.folders import find_folders
from lineage.transcripts.importing import Reading, import_folders
from tests.lineage.transcripts.reading import SAMPLES


def copy_samples(target: Path, *names: str, format: str = "claude") -> Path:
    """These sample files, with the agents' of each, in a folder of their own."""
    target.mkdir(parents=True, exist_ok=True)
    for name in names:
        shutil.copy(SAMPLES / format / f"{name}.jsonl", target)
        if (SAMPLES / format / name).is_dir():
            shutil.copytree(SAMPLES / format / name, target / name, dirs_exist_ok=True)
    return target


def import_all(*paths: Path, root: int | None = None) -> list[Reading]:
    """What `manage.py import` does, without its words."""
    folders, _ = find_folders(paths)
    return list(import_folders(folders, root=root))


def imported_entries() -> QuerySet[Entry]:
    """All entries but the markers in roots."""
    return Entry.objects.exclude(conversation__kind=Kind.ROOT)


def new_entries(readings: list[Reading]) -> int:
    return sum(sum(reading.carried.entries.values()) for reading in readings)


@dataclass(frozen=True)
class Stored:
    """A conversation as stored, without what differs from one import to the next (ids, clocks of arrival)."""

    kind: str
    parent: tuple[str, int] | None
    owner: tuple[str, int | None, str] | None
    title: str
    state: str
    folder: str
    model: str
    source: str
    entries: tuple[tuple[Any, ...], ...]
    usage: tuple[tuple[Any, ...], ...]


def stored() -> dict[str, Stored]:
    """All imported conversations, by the reader's key."""
    keys = dict(TranscriptConversation.objects.values_list("conversation", "key"))
    return {keys[row.pk]: _stored(row, keys) for row in Conversation.objects.filter(pk__in=keys).order_by("pk")}


def _stored(row: Conversation, keys: dict[int, str]) -> Stored:
    entries = Entry.objects.filter(conversation=row).order_by("seq")
    assert [entry.seq for entry in entries] == list(range(row.at + 1, row.head + 1))
    edits: dict[int, list[int]] = {}
    for edit in EntryEdit.objects.filter(entry__conversation=row).select_related("entry").order_by("target"):
        edits.setdefault(edit.entry.seq, []).append(edit.target)
    usage = Usage.objects.filter(conversation=row).order_by("message_id")
    return Stored(
        kind=row.kind,
        parent=(keys[row.parent_id], row.at) if row.parent_id else None,
        owner=(keys[row.owner_id], row.owner_at, row.owner_call) if row.owner_id else None,
        title=row.title,
        state=row.state,
        folder=row.folder,
        model=row.model,
        source=row.source,
        entries=tuple(
            (e.seq, e.kind, e.model, e.data, e.time, e.head, e.message_id, e.prompt, tuple(edits.get(e.seq, ())))
            for e in entries
        ),
        usage=tuple((u.message_id, u.input_tokens, u.output_tokens, u.cache_read_tokens) for u in usage),
    )


def data_of(entry: Entry) -> dict[str, Any]:
    found = json.loads(entry.data)
    assert isinstance(found, dict)
    return found
