"""Fan-out of a live document (DESIGN 11): watchers, edits a second, what arrives when, and what it costs.

    uv run python -m tests.bench.fanout --watchers 1000 --rate 50 --seconds 5
    uv run python -m tests.bench.fanout --watchers 1000 --rate 0     # as fast as answers come, 16 edits in flight

A 51 kB document, 40-character edits, four writers over the same socket as everybody. Eight watchers read everything and
keep the time from an edit's sending to its arrival; the others count what they got up to. Server CPU is that of the web
process, PostgreSQL and Valkey; the generator runs in this process and shares the machine.
"""

import argparse
import asyncio
import json
import time
from typing import Any

from tests.bench.place import cpu_seconds, engine_pids, own_console, web_process

WRITERS = 4
READERS = 8  # watchers that read everything
IN_FLIGHT = 16
FILLER = "The quick brown fox jumps over the lazy dog, again.\n" * 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--watchers", type=int, default=1000)
    parser.add_argument("--rate", type=int, default=50, help="edits a second; 0: as fast as they are answered")
    parser.add_argument("--seconds", type=float, default=5.0)
    options = parser.parse_args()
    with own_console():
        from console.models import Role
        from tests.factories import make_agent, make_document, make_root

        who, secret = make_agent(make_root(), role=Role.OPERATOR)
        assert who.root is not None
        marks = "".join(f"{mark(number, 0, 0)}\n" for number in range(WRITERS))
        document = make_document(who, who.root, marks + FILLER).pk
        with web_process() as (place, process):
            asyncio.run(measure(place, secret, document, options, process.pid))


async def measure(place: str, secret: str, document: int, options: argparse.Namespace, web: int) -> None:
    writers = [await opened(place, secret) for _ in range(WRITERS)]  # the server is up
    pids = [web, *engine_pids()]
    cpu, began = cpu_seconds(*pids), time.monotonic()
    watchers = await joined(place, secret, document, options.watchers)
    print(
        f"{len(watchers)} watchers joined in {time.monotonic() - began:.2f} s;"
        f" server {(cpu_seconds(*pids) - cpu) / len(watchers) * 1000:.2f} CPU ms each"
    )
    cpu, own, began = cpu_seconds(*pids), time.process_time(), time.monotonic()
    edits = await written(writers, document, options.rate, options.seconds)
    await asyncio.gather(*(watcher.until(edits) for watcher in watchers))
    took = time.monotonic() - began
    used, generator = cpu_seconds(*pids) - cpu, time.process_time() - own
    delays = sorted(delay for watcher in watchers[:READERS] for delay in watcher.delays)
    deliveries = edits * len(watchers)
    print(
        f"{len(watchers)} watchers, {'max' if not options.rate else options.rate} edits/s: {edits} edits in {took:.2f} s"
        f" ({edits / took:.0f}/s), {deliveries / took / 1000:.0f} k deliveries/s, all delivered;"
        f" p50 {delays[len(delays) // 2] * 1000:.1f} ms, p99 {delays[int(len(delays) * 0.99)] * 1000:.1f} ms;"
        f" server {used:.2f} CPU s, {used / deliveries * 1000:.4f} a 1,000 deliveries; generator {generator:.2f} CPU s"
    )
    for end in [*watchers, *writers]:
        end.close()


def mark(writer: int, number: int, moment: int) -> str:
    """40 characters that occur once."""
    return f"<{writer}:{number:08}:{moment:020}>".ljust(40, ".")


async def written(writers: "list[Socket]", document: int, rate: int, seconds: float) -> int:
    """The number of edits that were recorded; each writer replaces its own mark again and again."""
    end = asyncio.get_running_loop().time() + seconds

    async def write(name: int, socket: Socket) -> int:
        loop = asyncio.get_running_loop()
        flying = 1000 if rate else IN_FLIGHT // WRITERS
        room = asyncio.Semaphore(flying)

        async def answered() -> None:
            while True:
                frame = json.loads(await socket.next())
                if frame["type"] in {"accepted", "refused"}:
                    assert frame["type"] == "accepted", frame
                    room.release()

        reading = asyncio.create_task(answered())
        before, number, due = mark(name, 0, 0), 0, loop.time() + name / max(1, rate)
        while loop.time() < end:
            await room.acquire()
            if rate:
                await asyncio.sleep(max(0.0, due - loop.time()))
                due += WRITERS / rate
            number += 1
            now = mark(name, number, time.monotonic_ns())
            edit = {"old_string": before, "new_string": now}
            socket.say({"op": "edit", "document": document, "request_id": f"{name}-{number}", "edits": [edit]})
            before = now
        for _ in range(flying):  # until every answer is there
            await room.acquire()
        reading.cancel()
        return number

    return sum(await asyncio.gather(*(write(name, socket) for name, socket in enumerate(writers))))


async def joined(place: str, secret: str, document: int, count: int) -> "list[Socket]":
    """Watchers that have their snapshot, fifty at a time."""
    watchers: list[Socket] = []
    for start in range(0, count, 50):
        some = await asyncio.gather(*(opened(place, secret) for _ in range(start, min(count, start + 50))))
        for socket in some:
            socket.say({"op": "subscribe", "stream": f"document:{document}"})
        await asyncio.gather(*(socket.started.wait() for socket in some))
        watchers += some
    for socket in watchers[READERS:]:
        socket.reads = False
    return watchers


async def opened(place: str, secret: str) -> "Socket":
    host, port = place.split(":")
    loop = asyncio.get_running_loop()
    deadline = loop.time() + 120
    while True:
        try:
            _, socket = await loop.create_connection(lambda: Socket(host, secret), host, int(port))
            async with asyncio.timeout(60):
                await socket.accepted.wait()
        except (OSError, TimeoutError):
            if loop.time() > deadline:
                raise
            await asyncio.sleep(0.2)
        else:
            return socket


class Socket(asyncio.Protocol):
    """As little WebSocket client as will do: a thousand of them share one core with the server."""

    def __init__(self, host: str, secret: str) -> None:
        self.accepted, self.started = asyncio.Event(), asyncio.Event()
        self.reads = True
        self.revision = 0
        self.delays: list[float] = []
        self._host, self._secret = host, secret
        self._buffer = bytearray()
        self._frames: asyncio.Queue[bytes] = asyncio.Queue()
        self._goal: tuple[int, asyncio.Event] | None = None
        self._transport: Any = None

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        transport.write(
            f"GET /live/ HTTP/1.1\r\nHost: {self._host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
            f"Sec-WebSocket-Protocol: console.v1, bearer.{self._secret}\r\n\r\n".encode()
        )

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if not self.accepted.is_set():
            end = self._buffer.find(b"\r\n\r\n")
            if end < 0:
                return
            assert self._buffer.startswith(b"HTTP/1.1 101"), bytes(self._buffer[:200])
            del self._buffer[: end + 4]
            self.accepted.set()
        at = 0
        while (frame := self._frame(at)) is not None:
            opcode, start, at = frame
            self._heard(opcode, memoryview(self._buffer)[start:at])
        del self._buffer[:at]

    def _frame(self, at: int) -> tuple[int, int, int] | None:
        """(opcode, where its payload begins, where it ends), when it is there as a whole."""
        buffer = self._buffer
        if len(buffer) < at + 2:
            return None
        size, start = buffer[at + 1], at + 2
        if size > 125:
            start += 2 if size == 126 else 8
            size = int.from_bytes(buffer[at + 2 : start])
        return (buffer[at] & 15, start, start + size) if len(buffer) >= start + size else None

    def _heard(self, opcode: int, payload: memoryview) -> None:
        if opcode == 9:
            self._send(10, bytes(payload))
        elif opcode == 1:
            if self.reads:
                self._read(bytes(payload))
            elif bytes(payload[9:15]) == b"events":
                self._count(bytes(payload))
        payload.release()

    def _count(self, payload: bytes) -> None:
        """Up to which revision: the last event's number, without reading the rest."""
        at = payload.rindex(b'"seq":') + 6
        self._reached(int(payload[at : payload.index(b",", at)]))

    def _read(self, payload: bytes) -> None:
        moment = time.monotonic_ns()
        frame = json.loads(payload)
        if frame["type"] == "snapshot":
            self.revision = frame["seq"]
            self.started.set()
        elif frame["type"] == "events":
            for event in frame["events"]:
                assert event["seq"] == self.revision + 1
                sent = int(event["edits"][0]["new_string"].split(":")[2].split(">")[0])
                self.delays.append((moment - sent) / 1e9)
                self._reached(event["seq"])
        else:
            self._frames.put_nowait(payload)

    def _reached(self, revision: int) -> None:
        self.revision = revision
        if self._goal is not None and revision >= self._goal[0]:
            self._goal[1].set()

    async def until(self, revision: int) -> None:
        """Everything up to that revision has arrived."""
        self._goal = (revision, asyncio.Event())
        if self.revision < revision:
            async with asyncio.timeout(60):
                await self._goal[1].wait()

    async def next(self) -> bytes:
        return await self._frames.get()

    def say(self, operation: dict[str, Any]) -> None:
        self._send(1, json.dumps(operation).encode())

    def close(self) -> None:
        self._transport.abort()

    def _send(self, opcode: int, payload: bytes) -> None:
        size = len(payload)
        head = bytes([0x80 | opcode, 0x80 | size]) if size < 126 else bytes([0x80 | opcode, 0xFE]) + size.to_bytes(2)
        self._transport.write(head + b"\0\0\0\0" + payload)  # a mask of zeros leaves the bytes as they are


if __name__ == "__main__":
    main()
