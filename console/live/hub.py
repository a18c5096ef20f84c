"""The hub of a process: takes what was committed and brings its watchers on (D16, R2, R3).

One channel of the layer, one group per watched stream. A frame is made once and written to each watcher without
waiting; one whose socket is too slow is marked stale and gets a snapshot when it has drained. What the hub does again
and again (comparing heads, asking for access, heartbeats) is in `rounds`.
"""

import asyncio
import logging
import secrets
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

from console.access import Who
from console.crossing import crossed
from console.events import AccessChanged, Event, Told
from console.live import rounds
from console.live.frames import Frame
from console.live.logs import Log, Opening, Sees, has_pending, is_behind
from console.live.outlets import Outlet
from console.live.presence import Crowds
from console.live.publishing import unpacked
from console.live.refusals import TOO_SLOW
from console.live.relay import Relay
from console.live.signing_in import Session
from console.live.sources import named, new_log, read_joining, read_opening, read_place

logger = logging.getLogger(__name__)

REST_S = 0.005  # between flushes: joins bursts in one frame, and leaves room for everything else (D16)
CHUNK = 500  # watchers written to before others get a turn: about 6 ms
SHARED_BYTES = 2 * 1024 * 1024  # a snapshot that is kept for others; larger ones are read anew
GAP_S = 0.005  # two commits may be published in the other order; only after this is the database asked
RESTART_S = 1.0  # after an unexpected error of one of the hub's own tasks


@dataclass(eq=False, kw_only=True)
class Subscription:
    """One socket's place in one stream."""

    root: int
    sees: Sees = None
    since: int  # frames of the stream up to this number are in what it got when it joined
    head: int = 0  # only kept for the team's board, where a frame may hold nothing for it
    stale: bool = False  # a frame was not taken; it needs a snapshot
    missed: bool = False  # who is there was not taken; it is told anew, which needs no snapshot


@dataclass(eq=False, kw_only=True)
class Socket:
    """One connection that is signed in."""

    outlet: Outlet
    who: Who
    session: Session | None  # whose cookie signed it in; none with a token
    connection: str = field(default_factory=lambda: secrets.token_hex(6))  # its name in presence
    subscriptions: dict[str, Subscription] = field(default_factory=dict)
    closed: int | None = None  # the code with which the server closed it
    is_reopening: bool = False  # its stale streams are being read


@dataclass(eq=False, kw_only=True)
class Stream:
    """One stream that somebody watches, or watched a moment ago."""

    log: Log
    watchers: dict[Socket, Subscription] = field(default_factory=dict)
    is_open: bool = False
    frame: int = 0  # number of the newest frame
    flushed: asyncio.Event = field(default_factory=asyncio.Event)
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)  # of opening and catching up
    shared: Opening | None = None  # the last snapshot that was read: many come together, after a restart
    joining: int = 0
    idle_since: float = 0.0


class Hub:
    """One per event loop; `hub()` answers it."""

    def __init__(self) -> None:
        self.sockets: set[Socket] = set()
        self.streams: dict[str, Stream] = {}
        self.crowds = Crowds(self)
        self.relay = Relay(self._arrived, always="access")
        self._dirty: dict[str, Stream] = {}
        self._wake = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_running = False

    def enter(self, outlet: Outlet, who: Who, session: Session | None) -> Socket:
        """A socket that has signed in."""
        if not self._is_running:
            self._is_running = True
            for work in (self.relay.run, self._flush, self.crowds.look_after, *self._rounds()):
                self.start(self._forever(work))
        socket = Socket(outlet=outlet, who=who, session=session)
        self.sockets.add(socket)
        return socket

    def leave(self, socket: Socket) -> None:
        self.sockets.discard(socket)
        for name in list(socket.subscriptions):
            self.unsubscribe(socket, name)

    async def subscribe(self, socket: Socket, name: str, after: int | None) -> None:
        """Authorise, answer with events or a snapshot, and keep on. Again on the same stream: answered anew.

        Refusals: `invalid`, `not_found`, `forbidden`.
        """
        named(name)
        stream = self.streams.get(name)
        if stream is None:
            await crossed(read_place, socket.who, name)  # nobody makes the hub listen to what is not theirs
            stream = self.streams.setdefault(name, Stream(log=new_log(name)))
        stream.joining += 1
        try:
            await self._join(socket, name, stream, after)
        finally:
            stream.joining -= 1
            stream.idle_since = asyncio.get_running_loop().time()

    def unsubscribe(self, socket: Socket, name: str) -> None:
        self._detach(socket, name)
        if (document := _document(name)) is not None:
            self.crowds.leave(socket, document)

    def _detach(self, socket: Socket, name: str) -> None:
        subscription = socket.subscriptions.pop(name, None)
        stream = self.streams.get(name)
        if subscription is not None and stream is not None:
            subscription.stale = True  # a flush that is under way passes it over
            stream.watchers.pop(socket, None)
            stream.idle_since = asyncio.get_running_loop().time()

    def reply(self, socket: Socket, frame: Frame) -> None:
        """An answer to this socket alone. One that does not read its answers is closed with 1008."""
        if not socket.outlet.reply(frame):
            self.close(socket, TOO_SLOW)

    def offer(self, name: str, frame: Frame) -> None:
        """A frame for all watchers of a stream that is not one of its facts or states."""
        stream = self.streams.get(name)
        for socket, subscription in stream.watchers.items() if stream is not None else ():
            if not subscription.stale and not socket.outlet.offer(frame):
                subscription.missed = True

    def tell_who_is_there(self, socket: Socket, name: str) -> None:
        """All who are at a document, to one who joined or missed some of it; nothing for other streams."""
        if (document := _document(name)) is not None and socket.closed is None:
            self.crowds.join(socket, document)

    def close(self, socket: Socket, code: int) -> None:
        """Close from our side; the server's `disconnect` then ends the consumer."""
        if socket.closed is None:
            socket.closed = code
            self.leave(socket)
            self.start(socket.outlet.close(code))

    async def catch_up(self, name: str, stream: Stream) -> None:
        """Take in all that the database has and the hub has not."""
        async with stream.lock:
            stream.log.ask()
            opening = await crossed(read_opening, name, stream.log.head.seq)
            if opening.snapshot is None:
                for event in opening.events:
                    stream.log.take(event)
                self._mark(name, stream)
            elif is_behind(stream.log, opening.head):
                stream.log.start(opening)
                for subscription in stream.watchers.values():
                    subscription.stale = True

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Run it beside everything else; an error is logged, and ends nothing."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    async def stop(self) -> None:
        """End all tasks and connections: for tests and orderly ends."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.relay.close()

    # What was committed

    def _arrived(self, message: dict[str, Any]) -> None:
        if message["type"] == "stream.event":
            self._take(message["stream"], unpacked(message["event"]))
        elif message["type"] == "presence":
            self.crowds.take(message)

    def _take(self, name: str, event: Event) -> None:
        if isinstance(event, AccessChanged):
            self.start(rounds.ask_for_access(self, event.actor))
        if isinstance(event, Told):
            self.offer(name, Frame(bytes(event.frame)))
            return
        stream = self.streams.get(name)
        if stream is None or not stream.is_open:
            return
        stream.log.take(event)
        self._mark(name, stream)
        if stream.log.is_incomplete:
            asyncio.get_running_loop().call_later(GAP_S, self._fill, name, stream)

    def _fill(self, name: str, stream: Stream) -> None:
        if stream.log.is_incomplete and self.streams.get(name) is stream:
            self.start(self.catch_up(name, stream))

    def _mark(self, name: str, stream: Stream) -> None:
        if has_pending(stream.log):
            self._dirty[name] = stream
            self._wake.set()

    # Frames

    async def _flush(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            dirty, self._dirty = self._dirty, {}
            for stream in dirty.values():
                await self._flush_stream(stream)
            await asyncio.sleep(REST_S)

    async def _flush_stream(self, stream: Stream) -> None:
        watchers = list(stream.watchers.items())
        frames = stream.log.flush({subscription.sees for _, subscription in watchers})
        stream.frame += 1
        number = stream.frame
        stream.flushed.set()
        stream.flushed = asyncio.Event()
        for start in range(0, len(watchers), CHUNK):
            for socket, subscription in watchers[start : start + CHUNK]:
                if subscription.stale or subscription.since >= number:
                    continue
                for frame, sees in frames:
                    if sees is not None and subscription.sees not in sees:
                        continue
                    if not socket.outlet.offer(frame):
                        subscription.stale = True
                        break
                    subscription.head = stream.log.sent.seq
            await asyncio.sleep(0)  # a flush never starves the rest of the process

    # Joining and catching up

    async def _join(self, socket: Socket, name: str, stream: Stream, after: int | None) -> None:
        while True:
            await self._open(name, stream)
            shared = stream.shared
            known = shared.head if shared is not None else None
            place, opening = await crossed(read_joining, socket.who, name, after, known)
            if opening is None:
                assert shared is not None
                opening = shared
            elif opening.snapshot is not None and len(bytes(opening.snapshot)) <= SHARED_BYTES and place.root:
                stream.shared = opening  # the team's board is each one's own
            if is_behind(stream.log, opening.head):
                await self.catch_up(name, stream)
            while opening.head.seq > stream.log.sent.seq and has_pending(stream.log):
                await stream.flushed.wait()
            frames = stream.log.joining(opening, place.sees)
            if frames is not None:
                break
        if socket not in self.sockets:
            return
        self._detach(socket, name)
        subscription = Subscription(root=place.root, sees=place.sees, since=stream.frame, head=stream.log.sent.seq)
        socket.subscriptions[name] = stream.watchers[socket] = subscription
        for frame in frames:
            self.reply(socket, frame)
        self.tell_who_is_there(socket, name)

    async def _open(self, name: str, stream: Stream) -> None:
        """Listen first, then read: what is committed in between arrives twice rather than never."""
        async with stream.lock:
            if not stream.is_open:
                await self.relay.listen(name)
                opening = await crossed(read_opening, name, None)
                stream.log.start(opening)
                stream.is_open = True

    # Tasks

    def _rounds(self) -> list[Callable[[], Coroutine[Any, Any, None]]]:
        return [partial(each, self) for each in rounds.ROUNDS]

    async def _forever(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        while True:
            try:
                await work()
            except Exception:
                logger.exception("A task of the hub failed; it starts again.")
                await asyncio.sleep(RESTART_S)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            logger.warning("A task of the hub failed; the next round repairs it.", exc_info=error)


def _document(name: str) -> int | None:
    kind, number = named(name)
    return number if kind == "document" else None


def hub() -> Hub:
    """The hub of the running event loop: one per process."""
    loop = asyncio.get_running_loop()
    if loop not in _hubs:
        _hubs[loop] = Hub()
    return _hubs[loop]


_hubs: WeakKeyDictionary[asyncio.AbstractEventLoop, Hub] = WeakKeyDictionary()
