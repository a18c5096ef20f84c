"""What a hub knows of one stream, and the frames that bring its watchers on. Pure: no network, no database, no clock.

`head` is how far it has taken in, `sent` how far frames were made: every watcher is at `sent`, or on the way there. What
lies between is pending; one flush makes it one frame (D16). Gaps are closed by reading the database, never by waiting.
"""

from collections import deque
from collections.abc import Collection
from dataclasses import dataclass
from typing import Protocol

import msgspec

from console.events import Changed, Event, Facts, Grown, Rows
from console.live.frames import Frame, events_frames, heads_frame, rows_frame, snapshot_frame, state_frame

CATCH_UP = 1000  # events; who is further behind gets a snapshot (CONTRACT)
RECENT_BYTES = 2 * 1024 * 1024  # of events kept for those who join while others are on the way
EARLY = 100  # events held that overtook their predecessors; the gap is closed from the database anyway
RECENT_ROWS = 200  # changes of the board kept for those who join

type Sees = frozenset[int] | None
"""The roots whose board rows a watcher may see; none: every root's."""

type Addressed = tuple[Frame, Collection[Sees] | None]
"""A frame and those for whom it is; none: all watchers of the stream."""


@dataclass(frozen=True, kw_only=True)
class Head:
    """How far a stream is: the number of its newest fact (version of its newest row, on the board), its state's version."""

    seq: int
    version: int = 0


@dataclass(frozen=True, kw_only=True)
class Place:
    """What one who asks may watch: the root that decides it (0 for the team's board), what is seen of it, and how far it is."""

    root: int
    head: Head
    sees: Sees = None


@dataclass(frozen=True, kw_only=True)
class Opening:
    """A stream as read from the database, up to `head`: the events after what somebody had, or a snapshot.

    A snapshot comes with the present state as an event, for the log itself.
    """

    head: Head
    snapshot: msgspec.Raw | None = None
    events: tuple[Event, ...] = ()

    def frames(self, stream: str) -> list[Frame]:
        """What one who joins gets first. Who has everything already hears the head, so that each subscription is answered."""
        if self.snapshot is not None:
            return self._snapshot_frames(stream)
        frames: list[Frame] = []
        for event in self.events:
            match event:
                case Facts(items=items):
                    frames += events_frames(stream, items)
                case Changed(version=version, state=state):
                    frames.append(state_frame(stream, version, state))
                case Rows(version=version, rows=rows):
                    frames.append(rows_frame(stream, version, [row for _, row in rows]))
                case _:
                    pass
        return frames or [heads_frame({stream: self.head.seq})]

    def _snapshot_frames(self, stream: str) -> list[Frame]:
        """Made once: many who come together share one snapshot (D16)."""
        made: list[Frame] | None = self.__dict__.get("made")
        if made is None:
            assert self.snapshot is not None
            made = self.__dict__["made"] = [snapshot_frame(stream, self.head.seq, self.snapshot)]
        return made


class Log(Protocol):
    """One stream's side of the hub."""

    stream: str

    @property
    def head(self) -> Head: ...
    @property
    def sent(self) -> Head: ...
    @property
    def is_incomplete(self) -> bool:
        """Whether something is known to be missing, so that the database must be asked."""

    def start(self, opening: Opening) -> None:
        """Begin at the opening's head; every watcher is brought there by the caller."""

    def take(self, event: Event) -> None:
        """Take in what was committed; what is known already is dropped."""

    def ask(self) -> None:
        """The database is about to be read from `head` on: what is known to be missing will be in the answer."""

    def flush(self, audience: Collection[Sees]) -> list[Addressed]:
        """The frames of all that is pending; nothing is pending afterwards."""

    def joining(self, opening: Opening, sees: Sees = None) -> list[Frame] | None:
        """The frames that bring one who gets `opening` to `sent`; none where it must be read again."""


def is_behind(log: Log, head: Head) -> bool:
    """Whether the database is further on than the log."""
    return head.seq > log.head.seq or head.version > log.head.version


def has_pending(log: Log) -> bool:
    """Whether a flush would make a frame."""
    return log.head != log.sent


class FactsLog:
    """Entries of a conversation or batches of a document, and the small state beside them."""

    def __init__(self, stream: str) -> None:
        self.stream = stream
        self._head = self._sent = self._version = self._sent_version = 0
        self._state: msgspec.Raw | None = None
        self._recent: deque[msgspec.Raw] = deque()  # the events that end at `_head`
        self._recent_bytes = 0
        self._early: dict[int, Facts] = {}
        self._missed = False

    @property
    def head(self) -> Head:
        return Head(seq=self._head, version=self._version)

    @property
    def sent(self) -> Head:
        return Head(seq=self._sent, version=self._sent_version)

    @property
    def is_incomplete(self) -> bool:
        return self._missed or bool(self._early)

    def start(self, opening: Opening) -> None:
        self._head = self._sent = opening.head.seq
        self._version = self._sent_version = opening.head.version
        self._state = next((event.state for event in opening.events if isinstance(event, Changed)), None)
        self._recent.clear()
        self._recent_bytes = 0
        self.ask()

    def take(self, event: Event) -> None:
        match event:
            case Facts():
                self._take_facts(event)
            case Changed(version=version, state=state) if version > self._version:
                self._version, self._state = version, state
            case Grown():
                self._missed = True
            case _:
                pass

    def ask(self) -> None:
        self._early.clear()
        self._missed = False

    def flush(self, audience: Collection[Sees]) -> list[Addressed]:
        frames: list[Frame] = []
        if self._head > self._sent:
            frames += events_frames(self.stream, self._between(self._sent, self._head))
            self._sent = self._head
            while self._recent and (len(self._recent) > CATCH_UP or self._recent_bytes > RECENT_BYTES):
                self._recent_bytes -= len(bytes(self._recent.popleft()))
        if self._version > self._sent_version and self._state is not None:
            frames.append(state_frame(self.stream, self._version, self._state))
        self._sent_version = self._version
        return [(frame, None) for frame in frames]

    def joining(self, opening: Opening, sees: Sees = None) -> list[Frame] | None:
        seq = opening.head.seq
        if not self._head - len(self._recent) <= seq <= self._sent:
            return None
        stale = opening.head.version < self._sent_version
        if stale and self._state is None:
            return None
        frames = opening.frames(self.stream) + events_frames(self.stream, self._between(seq, self._sent))
        if stale and self._state is not None:
            frames.append(state_frame(self.stream, self._version, self._state))
        return frames

    def _take_facts(self, facts: Facts) -> None:
        if facts.first > self._head + 1:
            if len(self._early) < EARLY:
                self._early[facts.first] = facts
            return
        self._append(facts)
        for first in sorted(self._early):
            if first <= self._head + 1:
                self._append(self._early.pop(first))

    def _append(self, facts: Facts) -> None:
        for item in facts.items[self._head + 1 - facts.first :]:
            self._head += 1
            self._recent.append(item)
            self._recent_bytes += len(bytes(item))

    def _between(self, after: int, upto: int) -> list[msgspec.Raw]:
        start = len(self._recent) - (self._head - after)
        return list(self._recent)[start : start + upto - after]


class RowsLog:
    """Rows of the board: replaced whole, each with a version of its own; the newest version is the stream's number (R9)."""

    def __init__(self, stream: str) -> None:
        self.stream = stream
        self._head = self._sent = 0
        self._pending: list[tuple[int, msgspec.Raw]] = []
        self._recent: deque[Rows] = deque()
        self._recent_from = 0  # `_recent` has all changes above this version
        self._incomplete = False

    @property
    def head(self) -> Head:
        return Head(seq=self._head)

    @property
    def sent(self) -> Head:
        return Head(seq=self._sent)

    @property
    def is_incomplete(self) -> bool:
        return self._incomplete

    def start(self, opening: Opening) -> None:
        self._head = self._sent = self._recent_from = opening.head.seq
        self._pending.clear()
        self._recent.clear()
        self.ask()

    def take(self, event: Event) -> None:
        match event:
            case Rows(version=version, rows=rows) if version > self._head:
                self._head = version
                self._pending += rows
                self._recent.append(event)
                if len(self._recent) > RECENT_ROWS:
                    self._recent_from = self._recent.popleft().version
            case Grown():
                self._incomplete = True
            case _:
                pass

    def ask(self) -> None:
        self._incomplete = False

    def flush(self, audience: Collection[Sees]) -> list[Addressed]:
        pending, self._pending, self._sent = self._pending, [], self._head
        addressed: list[Addressed] = []
        for sees in set(audience):
            rows = _visible(pending, sees)
            if rows:
                addressed.append((rows_frame(self.stream, self._sent, rows), {sees}))
        return addressed

    def joining(self, opening: Opening, sees: Sees = None) -> list[Frame] | None:
        if not self._recent_from <= opening.head.seq <= self._sent:
            return None
        frames = opening.frames(self.stream)
        missing = [
            pair for event in self._recent if opening.head.seq < event.version <= self._sent for pair in event.rows
        ]
        rows = _visible(missing, sees)
        return [*frames, rows_frame(self.stream, self._sent, rows)] if rows else frames


def _visible(pairs: Collection[tuple[int, msgspec.Raw]], sees: Sees) -> list[msgspec.Raw]:
    return [row for root, row in pairs if sees is None or root in sees]
