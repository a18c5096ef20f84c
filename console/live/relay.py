"""The process's one channel of the channel layer: what its hub listens to, and whether Valkey answers (D16, R2).

The layer resubscribes by itself when Valkey comes back. What it cannot tell is told here: whether a subscription stands,
and whether messages arrive at all.
"""

import asyncio
import logging
import secrets
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import redis
import redis.asyncio
from channels.layers import get_channel_layer
from django.conf import settings
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from console.live.publishing import PAUSE_S, addressed, group_of

logger = logging.getLogger(__name__)

PULSE_S = 0.5  # how often the way to Valkey and back is tried, and how long it may take
CONFIRM_S = 0.5  # a subscription that is not confirmed by then is left to the comparing of heads
MARK_S = 0.025  # a mark that overtook the subscription is sent again after this
# Writers pause after a failure, so that they may still be silent for so long when Valkey answers again.
UNSURE_S = PAUSE_S + 2 * PULSE_S

# Beats that Valkey took and that never arrived, after which the subscription is made anew. The layer itself needs two to
# come back after a restart.
DEAF = 6

_LOST = (redis.RedisError, OSError, TimeoutError)

type Arrived = Callable[[dict[str, Any]], None]


class Relay:
    """`arrived` gets each message of a stream that is listened to, in the order of arrival; of `always` from the start."""

    def __init__(self, arrived: Arrived, *, always: str) -> None:
        self.answers = asyncio.Event()  # set while what is sent to Valkey comes back
        self._arrived = arrived
        self._layer: Any = get_channel_layer()  # type: ignore[no-untyped-call]
        self._client: Any = _client()
        self._channel: str | None = None
        self._groups = {always}
        self._marks: dict[str, asyncio.Event] = {}
        self.lost = asyncio.Event()  # set from a failure until it comes back again
        self._unsure_until = 0.0
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def is_away(self) -> bool:
        """Whether Valkey is away, or was a moment ago: heads are compared often meanwhile."""
        return not self.answers.is_set() or time.monotonic() < self._unsure_until

    async def listen(self, stream: str) -> None:
        """Join the stream's group. On return what is published from now on arrives, unless Valkey is away."""
        self._groups.add(stream)
        if self._channel is None or self.lost.is_set():
            return
        try:
            async with asyncio.timeout(CONFIRM_S):
                await self._layer.group_add(group_of(stream), self._channel)
                async with self._mark() as (mark, seen):
                    message = {"type": "relay.mark", "mark": mark}
                    while not seen.is_set():
                        # The subscription went over another connection, and may still be on its way.
                        await self._client.publish(*addressed(stream, message))
                        await _set_within(seen, MARK_S)
        except _LOST as error:
            self._lose(error)

    async def unlisten(self, stream: str) -> None:
        self._groups.discard(stream)
        if self._channel is None:
            return
        try:
            async with asyncio.timeout(CONFIRM_S):
                await self._layer.group_discard(group_of(stream), self._channel)
        except _LOST as error:
            self._lose(error)

    async def publish(self, stream: str, message: dict[str, Any]) -> None:
        """Tell the other hubs that watch the stream, and this one: for what is not stored (D17)."""
        if not self.answers.is_set():
            return
        try:
            await self._client.publish(*addressed(stream, message))
        except _LOST as error:
            self._lose(error)

    async def run(self) -> None:
        """Hand over what arrives, for as long as the hub lives."""
        async with asyncio.TaskGroup() as tasks:
            receiving = tasks.create_task(self._receive())
            silent = 0
            while True:
                silent = silent + 1 if await self._is_deaf() else 0
                if silent == DEAF:
                    # The layer's own receiver has ended, or reads a connection that is none any more.
                    logger.warning("The fan-out takes messages but delivers none: subscribing anew.")
                    receiving.cancel()
                    self._channel = None
                    await self._layer.flush()
                    receiving = tasks.create_task(self._receive())
                    silent = 0
                await asyncio.sleep(PULSE_S)

    async def close(self) -> None:
        await self._client.aclose()
        await self._layer.flush()

    async def _receive(self) -> None:
        while self._channel is None:
            try:
                self._channel = await self._layer.new_channel("live.")
            except _LOST as error:
                self._lose(error)
                await self._layer.flush()  # forget the half-made channel
                await asyncio.sleep(PULSE_S)
        self._start(self._rejoin())
        while True:
            message = await self._layer.receive(self._channel)
            mark = self._marks.get(message.get("mark", ""))
            if mark is not None:
                mark.set()
            elif message["type"] != "relay.mark":
                self._arrived(message)

    async def _is_deaf(self) -> bool:
        """Send something round through Valkey. Whether it was taken and did not come back."""
        if self._channel is None:
            return False
        try:
            async with asyncio.timeout(PULSE_S), self._mark() as (mark, seen):
                message = {"type": "relay.mark", "mark": mark}
                await self._client.publish(self._channel, self._layer.serialize(message))
                await seen.wait()
        except TimeoutError as error:
            self._lose(error)
            return True
        except _LOST as error:
            self._lose(error)
            return False
        if self.lost.is_set():
            logger.info("The fan-out answers again.")
            self.lost.clear()
            self._start(self._rejoin())
        self.answers.set()
        return False

    async def _rejoin(self) -> None:
        for stream in list(self._groups):
            await self.listen(stream)

    def _lose(self, error: BaseException) -> None:
        if not self.lost.is_set():
            logger.warning("The fan-out does not answer (%r): asking the database meanwhile.", error)
        self.lost.set()
        self.answers.clear()
        self._unsure_until = time.monotonic() + UNSURE_S

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    @asynccontextmanager
    async def _mark(self) -> AsyncIterator[tuple[str, asyncio.Event]]:
        mark, seen = secrets.token_hex(8), asyncio.Event()
        self._marks[mark] = seen
        try:
            yield mark, seen
        finally:
            del self._marks[mark]


async def _set_within(event: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        pass


def _client() -> Any:
    return redis.asyncio.Redis.from_url(
        settings.REDIS_URL,
        socket_timeout=PULSE_S,
        socket_connect_timeout=PULSE_S,
        retry=Retry(NoBackoff(), 1, supported_errors=(redis.ConnectionError,)),
    )
