"""Waiting for something to happen in a stream without watching it: the long polls of the API (L24). Nobody polls while
Valkey answers.

One channel of the layer per process beside the hub's; it only says "look again".
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from console.crossing import crossed
from console.live.relay import Relay

LONGEST_WAIT_S = 60.0  # proxies give up on silent requests at about this
LOOK_S = 5.0  # between two looks without a ring: as often as hubs compare heads (R2)
LOOK_WITHOUT_VALKEY_S = 0.5


class Doorbell:
    """One per event loop; `doorbell()` answers it."""

    def __init__(self) -> None:
        self.relay = Relay(self._rang, always="access")
        self.waiting: dict[str, set[asyncio.Event]] = {}
        self._running: asyncio.Task[None] | None = None

    async def wait(self, streams: Sequence[str], is_there: Callable[[], bool], seconds: float) -> bool:
        """Until `is_there()`, which is asked on a thread of its own, or until the time is over; whether it is."""
        if self._running is None:
            self._running = asyncio.get_running_loop().create_task(self.relay.run())
        rung = asyncio.Event()
        end = asyncio.get_running_loop().time() + min(seconds, LONGEST_WAIT_S)
        for stream in streams:
            self.waiting.setdefault(stream, set()).add(rung)
            await self.relay.listen(stream)
        try:
            while True:
                rung.clear()
                if await crossed(is_there):
                    return True
                left = end - asyncio.get_running_loop().time()
                if left <= 0:
                    return False
                look = LOOK_WITHOUT_VALKEY_S if self.relay.is_away else LOOK_S
                try:
                    async with asyncio.timeout(min(left, look)):
                        await rung.wait()
                except TimeoutError:
                    continue
        finally:
            for stream in streams:
                waiting = self.waiting[stream]
                waiting.discard(rung)
                if not waiting:
                    del self.waiting[stream]
                    await self.relay.unlisten(stream)

    async def stop(self) -> None:
        """End its task and connections: for tests and orderly ends."""
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)
        await self.relay.close()

    def _rang(self, message: dict[str, Any]) -> None:
        for rung in self.waiting.get(str(message.get("stream", "")), ()):
            rung.set()


_doorbells: WeakKeyDictionary[asyncio.AbstractEventLoop, Doorbell] = WeakKeyDictionary()


def doorbell() -> Doorbell:
    """The doorbell of this event loop."""
    return _doorbells.setdefault(asyncio.get_running_loop(), Doorbell())
