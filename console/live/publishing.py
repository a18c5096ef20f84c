"""The sending side of the fan-out: one PUBLISH per event to the channel layer's group of the stream (D16, R2).

Only `console.events` and this package come here. What is sent is a hint; who misses it asks the database.
"""

import logging
import time
from collections.abc import Sequence
from functools import cache
from itertools import batched
from typing import Any, assert_never

import msgspec
import redis
from channels.layers import get_channel_layer
from django.conf import settings
from redis.backoff import NoBackoff
from redis.retry import Retry

from console.events import AccessChanged, Changed, Event, Facts, Grown, Rows, Told

logger = logging.getLogger(__name__)

GIVE_UP_S = 0.2  # R2: what a dead Valkey may cost a writer
PAUSE_S = 2.0  # after a failure nobody tries for so long: hubs compare heads meanwhile
TOGETHER = 100  # events of one round trip
LARGEST_EVENT = 1024 * 1024  # bytes; a larger one is only pointed at, so that no hub's buffer in Valkey overflows

_paused_until = 0.0


def publish(stream: str, event: Event) -> None:
    """Send now, or give up after 200 ms. The layer's own wire form is used, so that its subscribers need nothing special."""
    publish_each([(stream, event)])


def publish_each(events: Sequence[tuple[str, Event]]) -> None:
    """The same for many, a hundred in one round trip."""
    global _paused_until
    if time.monotonic() < _paused_until:
        return
    try:
        for some in batched(events, TOGETHER, strict=False):
            pipe = _client().pipeline(transaction=False)
            for stream, event in some:
                pipe.publish(*addressed(stream, {"type": "stream.event", "stream": stream, "event": packed(event)}))
            pipe.execute()
    except (redis.RedisError, OSError) as error:
        _paused_until = time.monotonic() + PAUSE_S
        logger.warning("The fan-out does not answer (%s): viewers ask the database meanwhile.", error)


def addressed(stream: str, message: dict[str, Any]) -> tuple[str, bytes]:
    """Channel and bytes under which the layer delivers this to the hubs that watch the stream."""
    # The layer's own attribute would want a running loop.
    layer: dict[str, Any] = settings.CHANNEL_LAYERS["default"]
    prefix = layer["CONFIG"].get("prefix", "asgi")
    return f"{prefix}__group__{group_of(stream)}", get_channel_layer().serialize(message)  # type: ignore[no-untyped-call]


def group_of(stream: str) -> str:
    """The layer group of a stream: group names may not hold a colon."""
    return stream.replace(":", ".")


def packed(event: Event) -> list[Any]:
    """The event as lists, numbers and bytes for the layer's msgpack. JSON parts travel as bytes: a lone surrogate in
    one of them, which is legal there (R10), would not survive being read as part of a larger JSON text."""
    match event:
        case Facts(first=first, items=items):
            parts = [bytes(item) for item in items]
            fits = sum(map(len, parts)) <= LARGEST_EVENT
            return ["facts", first, parts] if fits else ["grown"]
        case Changed(version=version, state=state):
            fits = len(bytes(state)) <= LARGEST_EVENT
            return ["changed", version, bytes(state)] if fits else ["grown"]
        case Rows(version=version, rows=rows):
            pairs = [(root, bytes(row)) for root, row in rows]
            fits = sum(len(row) for _, row in pairs) <= LARGEST_EVENT
            return ["rows", version, pairs] if fits else ["grown"]
        case Told(frame=frame):
            return ["told", bytes(frame)]
        case AccessChanged(actor=actor):
            return ["access", actor]
        case Grown():
            return ["grown"]
        case _:
            assert_never(event)


def unpacked(parts: list[Any]) -> Event:
    """The event that `packed` made these from. Raises ValueError for anything else."""
    match parts:
        case ["facts", int(first), [*items]]:
            return Facts(first=first, items=tuple(msgspec.Raw(item) for item in items))
        case ["changed", int(version), bytes(state)]:
            return Changed(version=version, state=msgspec.Raw(state))
        case ["rows", int(version), [*pairs]]:
            return Rows(version=version, rows=tuple((root, msgspec.Raw(row)) for root, row in pairs))
        case ["told", bytes(frame)]:
            return Told(frame=msgspec.Raw(frame))
        case ["access", int(actor)]:
            return AccessChanged(actor=actor)
        case ["grown"]:
            return Grown()
        case _:
            raise ValueError(f"not an event: {parts!r:.80}")


def forget_failures() -> None:
    """Try again at once, with new connections: after a fork, and when the address has changed."""
    global _paused_until
    _paused_until = 0.0
    _client.cache_clear()


@cache
def _client() -> redis.Redis:
    """One pool per process. A stale connection of a restarted Valkey is tried once more; a silent one is not."""
    client: redis.Redis = redis.Redis.from_url(
        settings.REDIS_URL,
        socket_timeout=GIVE_UP_S,
        socket_connect_timeout=GIVE_UP_S,
        retry=Retry(NoBackoff(), 1, supported_errors=(redis.ConnectionError,)),
    )
    return client
