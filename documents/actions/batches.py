"""Recording batches: the one way by which a document changes (D7, D8, D10, D11)."""

import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial

import msgspec
from django.db import IntegrityError, InterfaceError, OperationalError, connection, transaction

from console.access import Who
from console.clock import now
from console.errors import DomainError, NotFound
from console.events import Facts, encode_json, publish_on_commit
from documents.access import Place, place_of
from documents.batch_json import batch_event
from documents.edits import Edit, EditError
from documents.limits import apply_batch
from documents.models import Document, EditBatch, Snapshot
from documents.nearest import refusal_facts
from documents.owners import Edited, owners
from documents.recording import NewRow, write_batches
from documents.texts import TEXTS, Opened, crosses_boundary, text_at

RETRY_S = 10.0
"""How long a group is run again while the database goes away and comes back: a restart takes a few seconds."""

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.05, 1.0


@dataclass(frozen=True, kw_only=True)
class NewBatch:
    """A batch to record. Whether `who` may write the document has been asked already."""

    who: Who
    edits: Sequence[Edit]
    request_id: str | None = None
    # Under which it is recorded. Without an id a group could not be run again when its outcome is unknown.
    key: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", self.request_id or uuid.uuid4().hex)


@dataclass(frozen=True, kw_only=True)
class Accepted:
    """Recorded and committed as this revision; `repeated` when it was so already, under the same request id (R4)."""

    document: int
    revision: int
    repeated: bool = False


@dataclass(frozen=True, kw_only=True)
class Appended:
    """One result for each batch, in order, and the snapshots that are due now that the answer is known (D7)."""

    results: list[Accepted | DomainError]
    snapshots: list[Snapshot]


class OutcomeUnknown(DomainError):
    """The database went away and did not come back in time. This is no refusal (R5): the batch may be recorded."""

    def __init__(self) -> None:
        super().__init__(
            "outcome_unknown",
            "The database went away while the edit was recorded, so it may be saved or not."
            " Send it again with the same request_id: it is recorded once.",
            status=503,
        )


def append_batches(*, document: int, batches: Sequence[NewBatch]) -> Appended:
    """Record a group in arrival order, in one transaction; each batch is accepted or refused by itself (D11).

    Opens its own transaction, and returns after the commit that viewers read (D10). A connection that dies at COMMIT leaves
    the outcome unknown, so the same group is run again and the request ids decide (R5). Refusals: `not_found` for the
    document; for a batch those of D2 and D6 with the facts of D5 and the present `revision`. Raises `OutcomeUnknown`.
    """
    return _run_until_known(lambda again: _append(document, batches, again))


def refusal_of(error: EditError, *, text: str, revision: int, edits: Sequence[Edit]) -> DomainError:
    """The refusal of a batch on a text, with the facts of D5 and the revision it was tried on."""
    facts = error.facts | refusal_facts(text, edits, error) | {"revision": revision}
    return DomainError(error.code, error.message, status=422, **facts)


def _run_until_known(run: Callable[[bool], Appended]) -> Appended:
    end, pause, again = time.monotonic() + RETRY_S, FIRST_PAUSE_S, False
    while True:
        try:
            return run(again)
        except (OperationalError, InterfaceError) as error:
            connection.close()
            if time.monotonic() + pause > end:
                raise OutcomeUnknown from error
        time.sleep(pause)
        pause, again = min(2 * pause, LONGEST_PAUSE_S), True


def _append(document: int, batches: Sequence[NewBatch], again: bool) -> Appended:
    place = place_of(document)
    appended = None if again else _append_at_once(place, batches)
    if appended is None:
        appended = _append_under_lock(place, batches, ask=again or any(batch.request_id for batch in batches))
    return appended


def _append_at_once(place: Place, batches: Sequence[NewBatch]) -> Appended | None:
    """The usual case: nobody recorded since this process did, and no request is a repeat. One statement says so and records;
    none when it was otherwise, and nothing happened."""
    opened = TEXTS.get(place.document)
    if opened is None:
        return None
    group = _Group(place=place, text=opened.text, revision=opened.revision)
    group.add(batches)
    if not group.rows:
        return None  # a refusal is true of the present text only, and this may be an older one
    try:
        with _transaction(place, batches):
            heads = _lock_conversations(place, batches)
            written = write_batches(place, group.rows, head=group.head_after(heads), moment=now())
            if written is None:
                return None
            group.finish(heads, title=written.title, size=written.size)
    except IntegrityError:
        return None  # a request id came again; whose, the lookup says
    return group.appended()


def _append_under_lock(place: Place, batches: Sequence[NewBatch], *, ask: bool) -> Appended:
    with transaction.atomic(durable=True):
        heads = _lock_conversations(place, batches)
        row = Document.objects.select_for_update(of=("self",), no_key=True).filter(pk=place.document).first()
        if row is None:
            raise NotFound("document", place.document)
        group = _Group(place=place, text=text_at(row, row.revision), revision=row.revision)
        if ask:
            group.known = _recorded_before(place.document, batches)
        group.add(batches)
        if group.rows:
            written = write_batches(place, group.rows, head=group.head_after(heads), moment=now())
            assert written is not None  # the row is locked
            group.finish(heads, title=written.title, size=written.size)
    return group.appended()


def _transaction(place: Place, batches: Sequence[NewBatch]) -> AbstractContextManager[object]:
    """None where one statement does it all: that is a transaction by itself."""
    alone = place.is_shared and not any(batch.who.is_agent for batch in batches)
    return nullcontext() if alone and not connection.in_atomic_block else transaction.atomic(durable=True)


def _lock_conversations(place: Place, batches: Sequence[NewBatch]) -> dict[int, int]:
    """Lock what comes before the document (R5): the conversations where agents leave an entry, and the document's own. Their heads.

    A shared document has no forks to read it as at an entry, so people who type in it lock nothing but the document. In
    any other its conversation's head must stand still until the batch is recorded (D7), which editors can share.
    """
    agents = {batch.who.conversation for batch in batches if batch.who.is_agent and batch.who.conversation}
    own = set() if place.is_shared else {place.conversation}
    if agents:
        return owners().lock(agents | own)
    return {conversation: owners().share(conversation) for conversation in own}


def _recorded_before(document: int, batches: Sequence[NewBatch]) -> dict[tuple[int, str], int]:
    rows = EditBatch.objects.filter(
        document=document,
        actor__in={batch.who.actor for batch in batches},
        request_id__in=[batch.key for batch in batches],
    )
    return {(actor, key): revision for actor, key, revision in rows.values_list("actor", "request_id", "revision")}


@dataclass(kw_only=True)
class _Group:
    """What a group does to a document, batch by batch; nothing of it is written here."""

    place: Place
    text: str
    revision: int
    known: dict[tuple[int, str], int] = field(default_factory=dict)
    results: list[Callable[[], Accepted | DomainError]] = field(default_factory=list)
    rows: list[NewRow] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)  # after each row
    snapshots: list[Snapshot] = field(default_factory=list)

    def add(self, batches: Sequence[NewBatch]) -> None:
        for batch in batches:
            self._add(batch)

    def head_after(self, heads: Mapping[int, int]) -> int | None:
        """Where the document's conversation stands when the group is recorded; none when nobody needs to lock it."""
        head = heads.get(self.place.conversation)
        own = sum(edited.conversation == self.place.conversation for edited in self._edited(""))
        return None if head is None else head + own

    def finish(self, heads: Mapping[int, int], *, title: str, size: int) -> None:
        """What follows the rows in their transaction: the agents' entries, and after its commit the event."""
        edited = self._edited(title)
        if edited:
            owners().note_edited(edited, heads)
        publish_on_commit(f"document:{self.place.document}", Facts(first=self.rows[0].revision, items=self._events()))
        size -= sum(len(row.edits) for row in self.rows)
        for row, text in zip(self.rows, self.texts, strict=True):
            size += len(row.edits)
            if crosses_boundary(row.revision, size, len(row.edits)):
                snapshot = Snapshot(document_id=self.place.document, revision=row.revision, size=size, text=text)
                self.snapshots.append(snapshot)

    def appended(self) -> Appended:
        """After the commit."""
        TEXTS.keep(self.place.document, Opened(self.revision, self.text))
        return Appended(results=[result() for result in self.results], snapshots=self.snapshots)

    def _add(self, batch: NewBatch) -> None:
        key = (batch.who.actor, batch.key)
        if key in self.known:
            self._accept(self.known[key], repeated=True)
            return
        try:
            text = apply_batch(self.text, batch.edits)
        except EditError as error:
            # Its facts cost up to a third of a second, so they are found when the lock is gone; the text stays as it is.
            self.results.append(partial(refusal_of, error, text=self.text, revision=self.revision, edits=batch.edits))
            return
        self.text, self.revision = text, self.revision + 1
        self.known[key] = self.revision
        self.rows.append(
            NewRow(who=batch.who, revision=self.revision, request_id=batch.key, edits=encode_json(batch.edits))
        )
        self.texts.append(text)
        self._accept(self.revision)

    def _accept(self, revision: int, *, repeated: bool = False) -> None:
        accepted = Accepted(document=self.place.document, revision=revision, repeated=repeated)
        self.results.append(lambda: accepted)

    def _edited(self, title: str) -> list[Edited]:
        """One for each agent that changed something (D8)."""
        found: dict[tuple[int, int], Edited] = {}
        for row in self.rows:
            who = row.who
            if not who.is_agent or who.conversation is None:
                continue
            before = found.get((who.conversation, who.actor))
            found[who.conversation, who.actor] = Edited(
                conversation=who.conversation,
                who=who,
                document=self.place.document,
                title=title,
                first=before.first if before else row.revision,
                last=row.revision,
                batches=before.batches + 1 if before else 1,
            )
        return list(found.values())

    def _events(self) -> tuple[msgspec.Raw, ...]:
        return tuple(
            batch_event(seq=row.revision, author=row.who.as_author(), request_id=row.request_id, edits=row.edits)
            for row in self.rows
        )
