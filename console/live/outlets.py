"""One socket's way out: frames go in order and nobody waits for them (D16).

Where the server offers `console.wire`, a frame is written straight to the socket; elsewhere it is sent by ASGI.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

from console.live.frames import Frame
from console.wire import BUFFERED, WRITE, WRITE_LIMIT, Buffered, Write

type Send = Callable[[dict[str, Any]], Awaitable[None]]

# Answers to what a client sent are never dropped. One that asks on and on without reading is closed here.
REPLY_LIMIT = 8 * 1024 * 1024


class Outlet(Protocol):
    def offer(self, frame: Frame) -> bool:
        """Write a frame of the fan-out. False: too much is unsent already, and nothing was written."""

    def reply(self, frame: Frame) -> bool:
        """Write a frame that must not be lost. False: the client has not read much older ones; the caller closes."""

    def unsent(self) -> int:
        """Bytes that were taken and not yet handed on."""

    async def close(self, code: int) -> None:
        """Close the socket after what was written before."""


def outlet_for(scope: Mapping[str, Any], send: Send) -> Outlet:
    if WRITE in scope and BUFFERED in scope:
        return WireOutlet(send, scope[WRITE], scope[BUFFERED])
    return SendOutlet(send)


class SendOutlet:
    """By `websocket.send`. A server that makes senders wait for a slow client holds up this client's queue alone."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._queue: deque[Frame] = deque()
        self._unsent = 0
        self._sender: asyncio.Task[None] | None = None

    def offer(self, frame: Frame) -> bool:
        if self._unsent > WRITE_LIMIT:
            return False
        self._put(frame)
        return True

    def reply(self, frame: Frame) -> bool:
        if self.unsent() > REPLY_LIMIT:
            return False
        self._put(frame)
        return True

    def unsent(self) -> int:
        return self._unsent

    async def close(self, code: int) -> None:
        if self._sender is not None and not self._sender.done():
            await asyncio.wait({self._sender}, timeout=1)  # what was said before, unless the client does not read
        await self._send({"type": "websocket.close", "code": code})

    def _put(self, frame: Frame) -> None:
        self._queue.append(frame)
        self._unsent += len(frame)
        if self._sender is None or self._sender.done():
            # Started at once: where the server takes the frame without waiting, it is gone when this returns.
            self._sender = asyncio.Task(self._drain(), loop=asyncio.get_running_loop(), eager_start=True)

    async def _drain(self) -> None:
        try:
            while self._queue:
                frame = self._queue.popleft()
                await self._send(frame.message)
                self._unsent -= len(frame)
        except Exception:  # the connection is gone, in whichever way this server says so; it also says "disconnect"
            self._queue.clear()


class WireOutlet(SendOutlet):
    """Straight to the socket. What `console.write` refuses to take and must arrive goes by `websocket.send`, which
    ends in the same transport, behind what was written before."""

    def __init__(self, send: Send, write: Write, buffered: Buffered) -> None:
        super().__init__(send)
        self._write = write
        self._buffered = buffered

    def offer(self, frame: Frame) -> bool:
        # What waits in the other road's queue is never overtaken.
        return not self._unsent and self._write(frame.wire)

    def reply(self, frame: Frame) -> bool:
        return self.offer(frame) or super().reply(frame)

    def unsent(self) -> int:
        return self._buffered() + self._unsent
