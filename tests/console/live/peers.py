"""Clients of `/live/` in the test's own event loop, and what they hear."""

import asyncio
import json
from collections import deque
from collections.abc import Callable
from typing import Any

from channels.testing import WebsocketCommunicator

from console.asgi import application
from console.wire import BUFFERED, WRITE, WRITE_LIMIT

PATIENCE = 10.0  # seconds until a frame that was promised counts as missing


class Wire:
    """The direct road to a socket (`console.wire`), whose client may stop reading."""

    def __init__(self) -> None:
        self.reads = True
        self.taken = 0  # frames
        self._queue: deque[bytes] = deque()
        self._deliver: Callable[[str], None] = lambda text: None

    def attach(self, deliver: Callable[[str], None]) -> None:
        self._deliver = deliver

    def write(self, frame: bytes) -> bool:
        if self.buffered() > WRITE_LIMIT:
            return False
        self.taken += 1
        self._queue.append(frame)
        if self.reads:
            self.drain()
        return True

    def buffered(self) -> int:
        return sum(map(len, self._queue))

    def drain(self) -> None:
        """The client reads everything that was written."""
        while self._queue:
            frame = self._queue.popleft()
            start = {126: 4, 127: 10}.get(frame[1], 2)
            self._deliver(frame[start:].decode())


class Peer:
    """One socket. It remembers everything that it heard."""

    def __init__(
        self,
        *,
        token: str | None = None,
        headers: list[tuple[bytes, bytes]] | None = None,
        wire: Wire | None = None,
    ) -> None:
        protocols = ["console.v1"] + ([f"bearer.{token}"] if token else [])
        self._socket: Any = WebsocketCommunicator(  # type: ignore[no-untyped-call]
            application, "/live/", headers=headers or [], subprotocols=protocols
        )
        if wire is not None:
            wire.attach(lambda text: self._socket.output_queue.put_nowait({"type": "websocket.send", "text": text}))
            self._socket.scope |= {WRITE: wire.write, BUFFERED: wire.buffered}
        self.heard: list[dict[str, Any]] = []
        self.closed: int | None = None

    async def connect(self) -> tuple[bool, Any]:
        """(accepted, the subprotocol; or the code with which it was refused)."""
        accepted, answer = await self._socket.connect(timeout=PATIENCE)
        return bool(accepted), answer

    async def say(self, **operation: Any) -> None:
        await self._socket.send_to(text_data=json.dumps(operation))

    async def say_raw(self, text: str) -> None:
        await self._socket.send_to(text_data=text)

    async def hear(self, *, wanted: Callable[[dict[str, Any]], bool] = lambda frame: True) -> dict[str, Any]:
        """The next frame that is wanted; those before it are passed over, and remembered."""
        async with asyncio.timeout(PATIENCE):
            while True:
                message = await self._socket.receive_output(timeout=PATIENCE)
                if message["type"] == "websocket.close":
                    self.closed = message["code"]
                    raise AssertionError(f"closed with {self.closed}; heard {self.heard}")
                frame = json.loads(message["text"])
                self.heard.append(frame)
                if wanted(frame):
                    return frame  # type: ignore[no-any-return]

    async def hear_type(self, kind: str, stream: str | None = None) -> dict[str, Any]:
        return await self.hear(wanted=lambda f: f["type"] == kind and stream in (None, f.get("stream")))

    async def hear_close(self) -> int:
        """The code with which the server closes; what it says before is remembered."""
        async with asyncio.timeout(PATIENCE):
            while self.closed is None:
                message = await self._socket.receive_output(timeout=PATIENCE)
                if message["type"] == "websocket.close":
                    self.closed = message["code"]
                else:
                    self.heard.append(json.loads(message["text"]))
        return self.closed

    async def subscribe(self, stream: str, after: int | None = None) -> dict[str, Any]:
        """Subscribe, and the first frame about that stream."""
        await self.say(op="subscribe", stream=stream, **({} if after is None else {"after": after}))
        return await self.hear(wanted=lambda f: f.get("stream") == stream or stream in f.get("heads", {}))

    async def leave(self) -> None:
        await self._socket.disconnect(timeout=PATIENCE)


def seqs(frame: dict[str, Any]) -> list[int]:
    """The numbers of a frame's events."""
    return [event["seq"] for event in frame["events"]]
