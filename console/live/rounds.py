"""What a hub does again and again: compare heads, ask for access, say the heads, bring stale watchers back."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from console.crossing import crossed
from console.errors import DomainError, NotFound
from console.live.frames import Frame, error_frame, heads_frame, rows_frame
from console.live.logs import Head, is_behind
from console.live.refusals import GONE
from console.live.rights import Asker, read_standings
from console.live.sources import named, read_heads

if TYPE_CHECKING:
    from console.live.hub import Hub, Socket

logger = logging.getLogger(__name__)

COMPARE_S = 5.0  # R2: the heads, by query
COMPARE_AWAY_S = 0.5  # the same while Valkey is away
HEARTBEAT_S = 15.0  # CONTRACT: at least every 20 s
ACCESS_S = 8.0  # S2: lost within 20 s also without Valkey; leaves room for a slow database
STALE_S = 0.1  # how often it is looked whether a stale watcher has drained
DRAINED = 4 * 1024  # bytes unsent at which it counts as drained
LINGER_S = 10.0  # a stream that nobody watches is kept for so long: pages are reloaded


async def compare_heads(hub: Hub) -> None:
    """Catch up wherever the database is further on than what arrived (R2)."""
    elapsed = 0.0
    while True:
        await asyncio.sleep(COMPARE_AWAY_S)
        elapsed += COMPARE_AWAY_S
        if elapsed < COMPARE_S and not hub.relay.is_away:
            continue
        elapsed = 0.0
        await _drop_unwatched(hub)
        streams = {name: stream for name, stream in hub.streams.items() if stream.is_open}
        for stream in streams.values():
            if not stream.joining:
                stream.shared = None  # those who came together have it
        if not streams:
            continue
        heads = await crossed(read_heads, list(streams))
        for name, stream in streams.items():
            if stream.log.is_incomplete or is_behind(stream.log, heads.get(name, Head(seq=0))):
                await hub.catch_up(name, stream)


async def say_heads(hub: Hub) -> None:
    """A heartbeat: how far each watched stream is, so that a lost last message is noticed (R3)."""
    while True:
        await asyncio.sleep(HEARTBEAT_S)
        made: dict[tuple[str, ...], Frame] = {}
        for socket in list(hub.sockets):
            names = tuple(name for name, subscription in socket.subscriptions.items() if not subscription.stale)
            if names not in made:
                made[names] = heads_frame({name: hub.streams[name].log.sent.seq for name in names})
            _bring_to_head(hub, socket)
            socket.outlet.offer(made[names])


async def reopen_stale(hub: Hub) -> None:
    """A snapshot for every watcher that missed something, once its socket has drained (D16)."""
    while True:
        await asyncio.sleep(STALE_S)
        for socket in list(hub.sockets):
            missed = any(subscription.stale or subscription.missed for subscription in socket.subscriptions.values())
            if missed and not socket.is_reopening and socket.outlet.unsent() <= DRAINED:
                socket.is_reopening = True
                hub.start(_reopen(hub, socket))


async def ask_for_everyones_access(hub: Hub) -> None:
    """Who may no longer see a stream loses it, whether or not anybody told us (S2)."""
    while True:
        await asyncio.sleep(ACCESS_S)
        await ask_for_access(hub)


async def ask_for_access(hub: Hub, actor: int | None = None) -> None:
    """Ask again what these sockets may see: those of one actor, or all, with one set of queries."""
    sockets = [socket for socket in hub.sockets if actor is None or socket.who.actor == actor]
    if not sockets:
        return
    askers = [Asker(who=socket.who, session=socket.session) for socket in sockets]
    standings = await crossed(read_standings, askers)
    for socket, standing in zip(sockets, standings, strict=True):
        if standing.gone is not None:
            hub.reply(socket, error_frame(GONE[standing.gone]))
            hub.close(socket, standing.gone)
            continue
        socket.who = standing.who
        for name, subscription in list(socket.subscriptions.items()):
            if subscription.root and not standing.may_see(subscription.root):
                _lose(hub, socket, name)
            elif not subscription.root and subscription.sees != standing.sees:
                subscription.stale = True  # another set of roots: the board is read again


ROUNDS = (compare_heads, say_heads, reopen_stale, ask_for_everyones_access)


async def _drop_unwatched(hub: Hub) -> None:
    now = asyncio.get_running_loop().time()
    for name, stream in list(hub.streams.items()):
        if not stream.watchers and not stream.joining and now - stream.idle_since > LINGER_S:
            del hub.streams[name]
            await hub.relay.unlisten(name)


async def _reopen(hub: Hub, socket: Socket) -> None:
    try:
        for name, subscription in list(socket.subscriptions.items()):
            if socket.outlet.unsent() > DRAINED:
                continue
            if subscription.missed and not subscription.stale:
                subscription.missed = False
                hub.tell_who_is_there(socket, name)
            if not subscription.stale:
                continue
            try:
                await hub.subscribe(socket, name, None)
            except DomainError as refusal:
                if refusal.status == 503:
                    return  # busy; the next round tries again
                hub.unsubscribe(socket, name)
                hub.reply(socket, error_frame(refusal, name))
    finally:
        socket.is_reopening = False


def _lose(hub: Hub, socket: Socket, name: str) -> None:
    hub.unsubscribe(socket, name)
    kind, number = named(name)
    hub.reply(socket, error_frame(NotFound(kind, number), name))


def _bring_to_head(hub: Hub, socket: Socket) -> None:
    """Changes of the board may have held nothing for this watcher; the heartbeat would look like a gap."""
    subscription = socket.subscriptions.get("team")
    if subscription is None or subscription.stale:
        return
    version = hub.streams["team"].log.sent.seq
    if subscription.head < version:
        subscription.head = version
        socket.outlet.offer(rows_frame("team", version, []))
