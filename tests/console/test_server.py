"""The direct road to a socket, on the pinned Daphne and Twisted: what it must survive (DESIGN 12, D16)."""

import asyncio
import json
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any
from urllib.request import ProxyHandler, Request, build_opener

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from console import wire
from console.data import CHECKOUT
from console.embedded.children import start_bound
from console.listening import bind
from console.server import _direct_road
from console.wire import LARGEST_FRAME, text_frame
from tests.console.wire_app import text

SIZES = [5, 125, 126, 127, 4_000, 65_535, 65_536, 140_000]


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with bind("127.0.0.1", 0) as listening:
        process = start_bound(
            [sys.executable, "-m", "tests.console.wire_app", str(listening.fileno())],
            pass_fds=(listening.fileno(),),
            stdout=subprocess.DEVNULL,
            cwd=CHECKOUT,
        )
        yield f"ws://127.0.0.1:{listening.getsockname()[1]}/"
        process.terminate()
        process.wait(10)


@asynccontextmanager
async def joined(url: str, name: str = "one", **options: Any) -> AsyncIterator[ClientConnection]:
    async with connect(url + name, proxy=None, open_timeout=30, max_size=None, max_queue=None, **options) as client:
        assert json.loads(await client.recv()) == {"refused": True}
        yield client


async def received(client: ClientConnection, count: int) -> list[str]:
    return [str(await client.recv()) for _ in range(count)]


@pytest.mark.parametrize("compression", [None, "deflate"])
async def test_frames_of_every_length_arrive_in_order_among_ordinary_sends(url: str, compression: Any) -> None:
    sizes = SIZES * 3
    async with joined(url, compression=compression) as client:
        await client.send(json.dumps({"frames": sizes, "send": [0, 3, 9, 10, 23]}))
        assert await received(client, len(sizes)) == [text(number, size) for number, size in enumerate(sizes)]


async def test_pings_and_fragments_of_the_client_pass_between_frames(url: str) -> None:
    async with joined(url) as client:
        await client.send(json.dumps({"frames": [2_000] * 400}))
        pongs = [await client.ping() for _ in range(5)]
        order = json.dumps({"frames": [7] * 3})
        await client.send([order[start : start + 2] for start in range(0, len(order), 2)])
        await asyncio.gather(*pongs)
        got = await received(client, 403)
    assert got == [text(number, 2_000) for number in range(400)] + [text(number, 7) for number in range(3)]


async def test_sockets_close_while_frames_go_out(url: str) -> None:
    """By the server after a last frame, by the client, and by a cut line: right codes, and the server lives on."""

    async def one(number: int) -> int:
        async with joined(url, f"close-{number}") as client:
            if number % 3 == 0:
                await client.send(json.dumps({"close": 4000 + number}))
                assert await client.recv() == "last"
                with pytest.raises(ConnectionClosed) as closed:
                    await client.recv()
                assert closed.value.rcvd is not None
                return closed.value.rcvd.code - number
            await client.send(json.dumps({"frames": [5_000] * 200}))
            await client.recv()
            if number % 3 == 1:
                client.transport.abort()
        return 4000

    assert await asyncio.gather(*[one(number) for number in range(30)]) == [4000] * 30
    async with joined(url) as client:
        await client.send(json.dumps({"frames": [9]}))
        assert await client.recv() == text(0, 9)


async def test_a_slow_client_is_refused_early_and_then_gets_all_that_was_taken(url: str) -> None:
    """D16: past 256 KiB unsent it is stale; the kernel does not take megabytes for it first."""
    slow = _connected_without_reading(url)
    async with joined(url, "other") as other:
        slow.sendall(_client_text(json.dumps({"flood": 24})))
        unsent = await _settled(other, "slow")
        assert wire.WRITE_LIMIT < unsent <= wire.WRITE_LIMIT + 2 * 65_546
        taken = await asyncio.to_thread(_read_flood, slow)
    assert taken["refused"] == 1
    assert 256 * 1024 < taken["taken"] * 65_536 < 4 * 1024 * 1024
    slow.close()


async def test_a_frame_above_the_limit_closes_with_1009(url: str) -> None:
    async with joined(url) as client:
        await client.send("x" * (LARGEST_FRAME + 1))
        with pytest.raises(ConnectionClosed) as closed:
            await client.recv()
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1009


def test_a_client_does_not_say_where_the_console_is_mounted(url: str) -> None:
    """Daphne takes a root path from a header; links in an answer that somebody caches would lead elsewhere."""
    request = Request(url.replace("ws:", "http:") + "page", headers={"Daphne-Root-Path": "/elsewhere"})
    with build_opener(ProxyHandler({})).open(request, timeout=30) as answer:
        assert answer.read() == b"|/page"
        assert "Server" not in answer.headers


def test_without_the_expected_internals_there_is_no_direct_road() -> None:
    """Then the application sends with `websocket.send`."""
    assert _direct_road(SimpleNamespace(transport=object())) == {}


def test_a_text_frame_is_as_the_rfc_draws_it() -> None:
    """RFC 6455, 5.7 has the first; the others are its 5.2."""
    assert text_frame(b"Hello") == bytes.fromhex("810548656c6c6f")
    assert text_frame(b"x" * 256)[:4] == bytes.fromhex("817e0100")
    assert text_frame(b"x" * 65_536)[:10] == bytes.fromhex("817f0000000000010000")


def _connected_without_reading(url: str) -> socket.socket:
    host, port = url.removeprefix("ws://").rstrip("/").split(":")
    client = socket.create_connection((host, int(port)))
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
    head = f"GET /slow HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
    client.sendall((head + key).encode())
    client.settimeout(30)
    answer = b""
    while not answer.endswith(b'{"refused": true}'):
        answer += client.recv(1)
    return client


def _client_text(payload: str) -> bytes:
    """A masked text frame whose mask is zero."""
    data = payload.encode()
    assert len(data) < 126
    return b"\x81" + bytes([0x80 | len(data)]) + bytes(4) + data


async def _settled(other: ClientConnection, name: str) -> int:
    """What is unsent to that client once two looks agree."""
    before = -1
    while True:
        await other.send(json.dumps({"waiting": name}))
        waiting = int(await other.recv())
        if waiting == before and waiting > 0:
            return waiting
        before = waiting


def _read_flood(slow: socket.socket) -> dict[str, int]:
    """Everything that was taken, and the server's report behind it."""
    got = b""
    while not got.endswith(b"}"):
        got += slow.recv(1 << 20)
    report, frames = got[-40:], 0
    body = got
    while body[1] == 127:
        size = int.from_bytes(body[2:10])
        assert body[10 : 10 + size] == b"x" * size
        body, frames = body[10 + size :], frames + 1
    found: dict[str, int] = json.loads(report[report.index(b"{") :])
    assert frames == found["taken"]
    return found
