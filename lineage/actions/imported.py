"""The steps of a reader as rows (T2): what one transaction of an import writes into conversations.

The folder's row is locked. Then, in the order of R5: the roots of sessions that begin, and the conversations by id.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import PurePath
from typing import TypeIs

from django.db import connection

from console.clock import now
from console.json_text import one_line, storable
from console.models import Touched
from lineage.actions.entries import NewEdit, NewEntry, NewUsage, place_entries
from lineage.actions.forks import fork_conversation
from lineage.actions.joining import mark_import
from lineage.actions.roots import create_root, create_session, lock_root
from lineage.actions.settling import QUIET, owned_by
from lineage.actions.states import WHY_LENGTH, announce_state, set_state
from lineage.actions.wakes import conversation_subject, wake, wake_awaited
from lineage.models import Conversation, Kind, Root, State, TitleSource, TranscriptConversation, TranscriptFolder
from lineage.models.conversations import FOLDER_LENGTH, TITLE_LENGTH
from lineage.models.transcripts import KEY_LENGTH
from lineage.transcripts.numbering import Numbering
from lineage.transcripts.plan import (
    Appended,
    Linked,
    Opened,
    OpenedKind,
    Place,
    PlannedEntry,
    RunState,
    Stated,
    Step,
    Titled,
    TitleRank,
    Used,
)  # fmt: skip

INTENT = 80  # characters of an intent line made of a prompt (L14)
CALL_LENGTH = MODEL_LENGTH = 200  # of `Conversation.owner_call` and `model`
_AT_BIRTH = ["created", "touched", "title", "title_source", "state", "state_why", "state_since", "turn_open", "model"]
_SOURCES = {
    TitleRank.PROMPT: TitleSource.INTENT,
    TitleRank.SUMMARY: TitleSource.SUMMARY,
    TitleRank.PERSON: TitleSource.PERSON,
}
_RANKS = {str(source): rank for rank, source in enumerate((TitleSource.NONE, *_SOURCES.values()))}
_WORKING = frozenset({RunState.RUNNING, RunState.ANSWER, RunState.CHILD})
_ROOT_LOCK = 0x6C63_726F  # first key of the advisory locks on working folders


@dataclass(frozen=True, kw_only=True)
class Brought:
    """A conversation that a folder's files brought."""

    conversation: int
    root: int
    numbering: Numbering


@dataclass
class Carried:
    """What was written: new entries by conversation, conversations that began, and how many entries were left out because
    their conversation was erased."""

    entries: dict[int, int] = field(default_factory=dict)
    opened: list[int] = field(default_factory=list)
    left_out: int = 0

    def add(self, other: "Carried") -> None:
        for conversation, count in other.entries.items():
            self.entries[conversation] = self.entries.get(conversation, 0) + count
        self.opened += other.opened
        self.left_out += other.left_out


class Carrying:
    """Carries out steps within the caller's transaction. `written` are (seq, offset, size) of entries by conversation."""

    def __init__(self, *, folder: TranscriptFolder, brought: dict[str, Brought], root: int | None) -> None:
        self.written: dict[int, list[tuple[int, int, int]]] = {}
        self._folder = folder
        self._brought = brought
        self._root = root
        self._roots: dict[int, Root] = {}
        self._root_of: dict[str, int] = {}  # by working folder
        self._titles: dict[str, str] = {}
        self._rows: dict[str, Conversation] = {}
        self._new: set[str] = set()
        self._waiting: dict[str, list[PlannedEntry]] = {}
        self._changed: dict[str, list[Titled | Stated | Used]] = {}
        self._carried = Carried()

    def carry_out(self, steps: Sequence[Step]) -> Carried:
        self._lock(steps)
        for step in steps:
            match step:
                case Opened():
                    self._open(step)
                case Appended() if step.key in self._rows:
                    self._waiting.setdefault(step.key, []).append(step.entry)
                case Appended():
                    self._carried.left_out += 1
                case Linked() if step.key in self._rows and step.owner.conversation in self._brought:
                    self._link(self._rows[step.key], step.owner, step.call)
                case Titled() | Stated() | Used() if step.key in self._rows:
                    self._changed.setdefault(step.key, []).append(step)
        for key in list(self._waiting):
            self._flush(key)
        for key, changes in self._changed.items():
            self._change(key, changes)
        for key in self._new:
            self._rows[key].save(update_fields=_AT_BIRTH)
        self._note_numbers()
        return self._carried

    def _lock(self, steps: Sequence[Step]) -> None:
        """Lock all that will be written, before anything is."""
        openings = [step for step in steps if isinstance(step, Opened)]
        folders = {step.folder for step in openings if step.kind == OpenedKind.SESSION}
        self._root_of = {folder: self._root or _root_of(folder) for folder in sorted(folders)}
        parents = [self._brought[step.parent.conversation] for step in openings if self._is_known(step.parent)]
        numbers = {*self._root_of.values(), *(one.root for one in parents)}
        self._roots = {number: lock_root(number) for number in sorted(numbers)}
        self._titles = _titles(steps)
        keys = {step.key for step in steps}
        keys |= {step.parent.conversation for step in openings if step.parent}
        found = {self._brought[key].conversation: key for key in keys if key in self._brought}
        locked = Conversation.objects.select_for_update(of=("self",), no_key=True).order_by("pk")
        for row in locked.filter(pk__in={*found, *self._roots}):
            if row.pk in found:
                self._rows[found[row.pk]] = row

    def _open(self, step: Opened) -> None:
        title = self._titles.get(step.key, "")
        row: Conversation | None = None
        if step.kind == OpenedKind.SESSION:
            root = self._roots[self._root_of[step.folder]]
            row = create_session(root=root, title=title, folder=_folder(step), source=self._folder.format)
            row.title_source = TitleSource.INTENT if title else TitleSource.NONE
        elif step.parent is not None and step.parent.conversation in self._rows:
            row = self._fork(step, step.parent, title)
        elif step.owner is not None and step.owner.conversation in self._brought:
            row = self._create_agent(step, step.owner)
        if row is None:
            return  # what it hangs on was erased
        row.created = row.touched = row.state_since = _known(step.time)
        self._brought[step.key] = Brought(conversation=row.pk, root=row.root_id, numbering=Numbering(row.at))
        self._rows[step.key] = row
        self._new.add(step.key)
        self._carried.opened.append(row.pk)

    def _fork(self, step: Opened, place: Place, title: str) -> Conversation:
        self._flush(place.conversation)
        parent = self._rows[place.conversation]
        row = fork_conversation(
            source=parent,
            at=self._seq(place),
            title=title,
            title_source=TitleSource.INTENT if title else TitleSource.NONE,
            folder=_folder(step),
            allow_none=True,
            origin=self._folder.format,
        )
        mark_import(root=self._roots[row.root_id], branch=row, source=parent)
        return row

    def _create_agent(self, step: Opened, owner: Place) -> Conversation:
        caller = Conversation.objects.get(pk=self._brought[owner.conversation].conversation)
        moment = now()
        row = Conversation.objects.create(
            kind=Kind.AGENT,
            root_id=caller.root_id,
            owner=caller,
            owner_at=self._seq(owner) if owner.ordinal else None,
            owner_call=storable(step.call)[:CALL_LENGTH],
            folder=_folder(step),
            source=self._folder.format,
            state_since=moment,
            created=moment,
            touched=moment,
        )
        Touched.objects.create(conversation=row.pk)
        return row

    def _link(self, row: Conversation, owner: Place, call: str) -> None:
        row.owner_id = self._brought[owner.conversation].conversation
        row.owner_at, row.owner_call = self._seq(owner), storable(call)[:CALL_LENGTH]
        row.save(update_fields=["owner", "owner_at", "owner_call"])
        Touched.objects.create(conversation=row.pk)

    def _is_known(self, place: Place | None) -> TypeIs[Place]:
        return place is not None and place.conversation in self._brought

    def _seq(self, place: Place) -> int:
        """The number of a planned place, also of an entry that waits to be written."""
        numbering = self._brought[place.conversation].numbering
        if place.ordinal > numbering.count:
            return self._rows[place.conversation].head + place.ordinal - numbering.count
        return numbering.seq_of(place.ordinal)

    def _flush(self, key: str) -> None:
        planned = self._waiting.pop(key, [])
        if not planned:
            return
        row = self._rows[key]
        first = row.head + 1
        self._brought[key].numbering.add(len(planned), row.head)
        new = [self._as_new(entry) for entry in planned]
        made = place_entries(conversation=row, entries=new, announce=key not in self._new)
        row.touched = _known(planned[-1].time)
        if key not in self._new:
            row.save(update_fields=["touched"])
        self._carried.entries[row.pk] = self._carried.entries.get(row.pk, 0) + len(made)
        self.written.setdefault(row.pk, []).extend(
            (seq, entry.source.offset, entry.source.size) for seq, entry in enumerate(planned, first)
        )

    def _as_new(self, entry: PlannedEntry) -> NewEntry:
        usage = entry.usage
        return NewEntry(
            kind=entry.kind,
            model=entry.model,
            data=entry.data,
            time=entry.time,
            head=self._seq(entry.keeps) if entry.head and entry.keeps else entry.head,
            edits=[
                *(NewEdit(target=self._seq(place)) for place in entry.omits),
                *(NewEdit(target=self._seq(place), messages=messages) for place, messages in entry.replaces),
            ],
            message_id=entry.message_id,
            outcome=entry.outcome,
            prompt=entry.prompt,
            usage=NewUsage(
                message_id=usage.message_id,
                model=usage.model,
                input_tokens=usage.input_tokens,
                output_tokens=usage.output_tokens,
                cache_read_tokens=usage.cache_read_tokens,
                cache_write_tokens=usage.cache_write_tokens,
                cost_micros=usage.cost_micros,
            )
            if usage
            else None,
        )

    def _change(self, key: str, changes: Sequence[Titled | Stated | Used]) -> None:
        """Title, model and state as the last lines left them. Nobody watches yet what is new; of others viewers are told."""
        row, told = self._rows[key], None
        title = (row.title, row.title_source)
        for step in changes:
            match step:
                case Titled() if _RANKS[_SOURCES[step.rank]] >= _RANKS[row.title_source]:
                    row.title, row.title_source = one_line(step.title, TITLE_LENGTH), _SOURCES[step.rank]
                case Stated():
                    told = step
                case Used():
                    row.model = storable(step.model)[:MODEL_LENGTH]
        if told is not None:
            row.turn_open = told.state in _WORKING
        if key in self._new:
            if told is not None:
                row.state, row.state_why, row.state_since = (
                    State(told.state),
                    one_line(told.why, WHY_LENGTH),
                    row.touched,
                )
            return
        row.save(update_fields=["turn_open", "model"])
        changed = told is not None and set_state(conversation=row, state=_observed(row, told), why=told.why)
        if not changed and (row.title, row.title_source) != title:
            announce_state(conversation=row)
        if told is not None and row.state in QUIET:
            wake_awaited([conversation_subject(row.pk)])  # also after a turn that began and ended in these lines
            if changed and row.owner_id is not None:
                wake(conversation_subject(row.owner_id))

    def _note_numbers(self) -> None:
        """How the readers' ordinals and the numbers go together from here on."""
        rows = [
            TranscriptConversation(
                folder=self._folder,
                key=key[:KEY_LENGTH],
                conversation=self._rows[key],
                count=self._brought[key].numbering.count,
                numbers=self._brought[key].numbering.pairs,
            )
            for key, row in self._rows.items()
            if row.pk in self._carried.entries or key in self._new
        ]
        TranscriptConversation.objects.bulk_create(
            rows, update_conflicts=True, unique_fields=["folder", "key"], update_fields=["count", "numbers"]
        )


def _observed(row: Conversation, told: Stated) -> State:
    """An agent that ended its turn waits for a child as long as one that it owns works on (C2, L8)."""
    if told.state == RunState.IDLE:
        owned = Conversation.objects.filter(pk__in=owned_by(row.pk))
        if owned.exclude(state__in=QUIET).exists():
            return State.CHILD
    return State(told.state)


def _titles(steps: Sequence[Step]) -> dict[str, str]:
    """What conversations that begin here will be called, for the marker in their root: the last title told, else the prompt."""
    titles: dict[str, str] = {}
    for step in steps:
        if isinstance(step, Appended) and step.entry.prompt:
            titles.setdefault(step.key, one_line(step.entry.prompt, INTENT))
    titles |= {step.key: one_line(step.title, TITLE_LENGTH) for step in steps if isinstance(step, Titled)}
    return titles


def _root_of(folder: str) -> int:
    """The root of a working folder (CONTRACT: one for each), made when there is none; two importers make it once."""
    folder = storable(folder)[:FOLDER_LENGTH]
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s, hashtext(%s))", [_ROOT_LOCK, folder])
    found = Conversation.objects.filter(kind=Kind.ROOT, folder=folder).order_by("pk").first()
    if found is not None:
        return int(found.pk)
    title = one_line(PurePath(folder).name, TITLE_LENGTH) or "Sessions without a working folder"
    return int(create_root(who=None, title=title, folder=folder, source="import").pk)


def _folder(step: Opened) -> str:
    return storable(step.folder)[:FOLDER_LENGTH]


def _known(time: datetime | None) -> datetime:
    """The transcript's clock, as far as it does not lie ahead of ours."""
    moment = now()
    return min(time, moment) if time else moment
