"""Appending entries: the one way by which a conversation grows (R1, R3, L2)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import batched
from typing import Any

from django.db import connection, transaction

from console.access import Permission, Who
from console.clock import now
from console.errors import Conflict, Invalid
from console.events import Event, Facts, publish_each_on_commit
from console.json_text import dumped, one_line, storable
from console.models import Touched
from console.requests import checked_request_id, remember, remembered
from lineage.access import conversation_for
from lineage.actions.copying import create_rows
from lineage.entry_data import shown_data
from lineage.entry_json import entry_json
from lineage.models import Conversation, Entry, EntryEdit, EntryRest
from lineage.models.entries import KIND_LENGTH, PROMPT_LENGTH

# In the order of the table: a row made of values in order takes half the time of one made by names.
_FIELDS = tuple(field.attname for field in Entry._meta.concrete_fields)
BATCH = 1000  # entries of one call: one statement each way, and a frame that a browser takes at once
MODEL_BYTES = 8 * 1024 * 1024  # messages of one entry as JSON: a long tool result with an image
OUTSIDE_KINDS = frozenset({"user", "assistant", "tool_result", "turn_end"})  # CONTRACT: what outside runners append
ROLES = frozenset({"user", "assistant"})


@dataclass(frozen=True, kw_only=True)
class NewUsage:
    """Tokens of one answer. The largest counts win where lines of one message repeat them (T1)."""

    message_id: str
    model: str = ""
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    cost_micros: int | None = None


@dataclass(frozen=True, kw_only=True)
class NewEdit:
    """An edit of the earlier entry `target` (seq): omit it (`messages` none), or read these messages in its place."""

    target: int
    messages: list[dict[str, Any]] | None = None


@dataclass(frozen=True, kw_only=True)
class NewEntry:
    """An entry to append. `head=True` starts the context at this entry; a number starts it at that earlier seq (L4)."""

    kind: str
    model: list[dict[str, Any]] | None = None
    data: dict[str, Any] = field(default_factory=dict)
    author: int | None = None
    time: datetime | None = None
    head: bool | int = False
    edits: Sequence[NewEdit] = ()
    message_id: str = ""
    outcome: str = ""
    prompt: str = ""
    usage: NewUsage | None = None


def lock_conversation(conversation: int) -> Conversation:
    """Lock the row until the transaction ends. Lock order: root, conversation by id, task, document, rest (R5)."""
    return Conversation.objects.select_for_update(of=("self",), no_key=True).get(pk=conversation)


def place_entries(*, conversation: Conversation, entries: Sequence[NewEntry], announce: bool = True) -> list[Entry]:
    """Append to a conversation that the caller has locked in its transaction: numbers, rows, board mark, announcement.

    Without `announce` nobody is told: of a conversation that began in this transaction nobody can be watching.
    """
    return place_in_each([(conversation, entries)], announce=announce)[0]


def place_in_each(
    pairs: Sequence[tuple[Conversation, Sequence[NewEntry]]], *, announce: bool = True
) -> list[list[Entry]]:
    """The same for many conversations at once, each locked and named once, in as many statements as for one."""
    moment = now()
    made: list[list[Entry]] = []
    rests: list[EntryRest] = []
    edits: list[EntryEdit] = []
    for conversation, entries in pairs:
        placed: list[Entry] = []
        for seq, new in enumerate(entries, conversation.head + 1):
            entry, whole = _row(conversation, seq, new, moment)
            placed.append(entry)
            if whole is not None:
                rests.append(EntryRest(entry=entry, data=whole))
            edits += (_edit_row(entry, edit) for edit in new.edits)
        if placed:
            conversation.head, conversation.touched = placed[-1].seq, moment
        made.append(placed)
    grown = [conversation for (conversation, _), placed in zip(pairs, made, strict=True) if placed]
    if not grown:
        return made
    create_rows([entry for placed in made for entry in placed])
    create_rows(rests)
    create_rows(edits)
    for (conversation, entries), placed in zip(pairs, made, strict=True):
        _keep_usage(conversation, zip(placed, entries, strict=True))
    _save_heads(grown)
    Touched.objects.bulk_create([Touched(conversation=conversation.pk) for conversation in grown])
    if announce:
        of: dict[int, list[EntryEdit]] = {}
        for edit in edits:
            of.setdefault(edit.entry.conversation_id, []).append(edit)
        announce_entries([(row, placed, of.get(row.pk, ())) for (row, _), placed in zip(pairs, made, strict=True)])
    return made


def _row(conversation: Conversation, seq: int, new: NewEntry, moment: datetime) -> tuple[Entry, str | None]:
    """The entry, and its whole data where what is shown had to be cut."""
    shown, whole = shown_data(new.data)
    values = {
        "id": None,
        "conversation_id": conversation.pk,
        "seq": seq,
        "kind": storable(new.kind)[:KIND_LENGTH],
        "author_id": new.author,
        "time": new.time or moment,
        "model": dumped(new.model) if new.model else "",
        "data": shown,
        "rest": whole is not None,
        "head": seq if new.head is True else (new.head or None),
        "edits": bool(new.edits),
        "message_id": storable(new.message_id)[:200],
        "outcome": new.outcome,
        "prompt": one_line(new.prompt, PROMPT_LENGTH) if new.prompt else "",
    }
    entry = Entry(*(values[name] for name in _FIELDS))
    Entry.conversation.field.set_cached_value(entry, conversation)
    return entry, whole


def _edit_row(entry: Entry, edit: NewEdit) -> EntryEdit:
    return EntryEdit(
        entry=entry,
        target=edit.target,
        action="omit" if edit.messages is None else "replace",
        messages="" if edit.messages is None else dumped(edit.messages),
    )


def _save_heads(grown: Sequence[Conversation]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE lineage_conversation c SET head = n.head, touched = n.touched "
            "FROM unnest(%s::bigint[], %s::int[], %s::timestamptz[]) AS n(id, head, touched) WHERE c.id = n.id",
            [[row.pk for row in grown], [row.head for row in grown], [row.touched for row in grown]],
        )


def announce_entries(grown: Sequence[tuple[Conversation, Sequence[Entry], Sequence[EntryEdit]]]) -> None:
    """Tell the watchers of these conversations after the commit (R2): new entries, and the edits among them."""
    events: list[tuple[str, Event]] = []
    for conversation, made, edits in grown:
        of_entry: dict[int, list[EntryEdit]] = {}
        for edit in edits:
            of_entry.setdefault(edit.entry.seq, []).append(edit)
        for some in batched(made, BATCH, strict=False):
            items = tuple(entry_json(entry, of_entry.get(entry.seq, ())) for entry in some)
            events.append((f"conversation:{conversation.pk}", Facts(first=some[0].seq, items=items)))
    publish_each_on_commit(events)


def append_entries(
    *, who: Who, conversation: int, entries: Sequence[NewEntry], request_id: str | None = None
) -> list[int]:
    """Entries of an outside runner; answers their numbers. Refusals: `not_found`, `forbidden`, `tally`, `invalid`, limits.

    A conversation that outside entries drive is running until a `turn_end` (L8).
    """
    from lineage.actions.runs import turn_ended  # runs place entries themselves, so they stand above this module
    from lineage.actions.settling import set_turn

    request_id = checked_request_id(request_id)
    conversation_for(who, conversation, Permission.WRITE)
    _check_outside(entries)
    with transaction.atomic():
        row = lock_conversation(conversation)
        receiver = f"conversation:{row.pk}"
        first = remembered(receiver=receiver, actor=who.actor, request_id=request_id)
        if first is not None:
            return [int(seq) for seq in first]
        refuse_tally(row)
        made = place_entries(conversation=row, entries=entries)
        if entries[-1].kind == "turn_end":
            turn_ended(conversation=row)
        else:
            set_turn(conversation=row, open=True)
        seqs = [entry.seq for entry in made]
        remember(receiver=receiver, actor=who.actor, request_id=request_id, result=seqs)
    return seqs


def refuse_tally(conversation: Conversation) -> None:
    """A tally runs no turns, so nobody appends to it or puts an input in (L7)."""
    if conversation.pk == conversation.root_id and conversation.root.is_tally:
        raise Conflict(
            "tally",
            f"#{conversation.pk} is a tally and runs no turns. Start a branch from it, or leave it a note.",
        )


def _check_outside(entries: Sequence[NewEntry]) -> None:
    if not 1 <= len(entries) <= BATCH:
        raise Invalid(
            "entries",
            f"A call appends 1 to {BATCH} entries; this one has {len(entries)}.",
            limit=BATCH,
            actual=len(entries),
        )
    for number, entry in enumerate(entries, 1):
        if entry.kind not in OUTSIDE_KINDS and not is_own_kind(entry.kind):
            raise Invalid(
                "kind",
                f"Entry {number}: kind {entry.kind[:80]!r} is not for outside runners. Use user, assistant, tool_result, "
                "turn_end, or a kind of your own that begins with x. and has at most 64 characters.",
                ordinal=number,
            )
        for message in entry.model or ():
            if message.get("role") not in ROLES or not isinstance(message.get("content"), str | list):
                raise Invalid(
                    "model",
                    f"Entry {number}: each message needs a role (user or assistant) and a content (text or a list of blocks).",
                    ordinal=number,
                )
        size = len(dumped(entry.model)) if entry.model else 0
        if size > MODEL_BYTES:
            raise Invalid(
                "model",
                f"Entry {number}: its messages have {size} characters as JSON; at most {MODEL_BYTES} are kept in one entry.",
                ordinal=number,
                limit=MODEL_BYTES,
                actual=size,
            )


def is_own_kind(kind: str) -> bool:
    """A kind that an outside runner named itself: x. and something, within the length."""
    return kind.startswith("x.") and 2 < len(kind) <= KIND_LENGTH and storable(kind) == kind


_COUNTS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "cost_micros")
# One statement however many answers: imports bring thousands. GREATEST passes over NULL, so a known price stays.
_KEEP_USAGE = """
INSERT INTO lineage_usage (conversation_id, message_id, seq, time, model, {names})
SELECT %s, * FROM unnest(%s::text[], %s::int[], %s::timestamptz[], %s::text[], {arrays})
ON CONFLICT (conversation_id, message_id) DO UPDATE SET {largest}
""".format(
    names=", ".join(_COUNTS),
    arrays=", ".join(["%s::bigint[]"] * len(_COUNTS)),
    largest=", ".join(f"{name} = GREATEST(lineage_usage.{name}, EXCLUDED.{name})" for name in _COUNTS),
)


def _keep_usage(conversation: Conversation, pairs: Iterable[tuple[Entry, NewEntry]]) -> None:
    """The largest counts of each message id (A6): here among the new entries, then with what is stored."""
    rows: dict[str, tuple[int, datetime, str, list[int | None]]] = {}
    for entry, new in pairs:
        if new.usage is None:
            continue
        name = storable(new.usage.message_id)[:200]
        counts: list[int | None] = [getattr(new.usage, count) for count in _COUNTS]
        if name in rows:
            seq, time, model, before = rows[name]
            counts = [
                max((n for n in pair if n is not None), default=None) for pair in zip(before, counts, strict=True)
            ]
            rows[name] = (seq, time, model, counts)
        else:
            rows[name] = (entry.seq, entry.time, storable(new.usage.model)[:200], counts)
    if rows:
        columns = [
            list(column) for column in zip(*((name, *row[:3], *row[3]) for name, row in rows.items()), strict=True)
        ]
        with connection.cursor() as cursor:
            cursor.execute(_KEEP_USAGE, [conversation.pk, *columns])
