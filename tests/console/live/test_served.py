"""The live socket on the console's own server, with real clients: fan-out, slow clients, engines that die (D16, R2)."""

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import quote

import pytest
from django.conf import settings
from django.db import connection
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from console.access import Who
from console.crossing import crossed
from console.data import CHECKOUT
from console.embedded.children import start_bound
from console.listening import bind
from console.wire import LARGEST_FRAME, WRITE_LIMIT
from tests.console.live.conftest import Valkey, running_valkey, used
from tests.console.live.peers import PATIENCE
from tests.factories import make_agent, make_root, say

pytestmark = pytest.mark.django_db(transaction=True)

type Wren = tuple[Who, str, int]


class Served:
    """A web process on a port that outlives it."""

    def __init__(self, listening: socket.socket, environment: dict[str, str]) -> None:
        self.url = f"ws://127.0.0.1:{listening.getsockname()[1]}/live/"
        self._listening = listening
        self._environment = environment
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self._process = start_bound(
            [sys.executable, "-m", "console.server", "--fd", str(self._listening.fileno())],
            pass_fds=(self._listening.fileno(),),
            stdout=subprocess.DEVNULL,
            cwd=CHECKOUT,
            env=self._environment,
        )

    def end(self, number: signal.Signals = signal.SIGTERM) -> None:
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait(15)


@pytest.fixture(scope="module")
def engines(django_db_setup: None) -> Iterator[tuple[Valkey, Served]]:
    parts = settings.DATABASES["default"]
    url = f"postgresql://{parts['USER']}@{quote(parts['HOST'], safe='')}:{parts['PORT']}"
    with running_valkey() as valkey, bind("127.0.0.1", 0) as listening:
        environment = {
            **os.environ,
            "DATABASE_URL": f"{url}/{connection.settings_dict['NAME']}",
            "REDIS_URL": valkey.url,
            "DATABASE_POOL": "8",
            "PGAPPNAME": "served",
        }
        server = Served(listening, environment)
        server.start()
        yield valkey, server
        server.end()


@pytest.fixture
def served(engines: tuple[Valkey, Served], settings: Any) -> Iterator[Served]:
    """The server, with this process using the same engines."""
    with used(engines[0], settings):
        yield engines[1]


@pytest.fixture
def wren(transactional_db: None) -> Wren:
    who, secret = make_agent(make_root(), "wren")
    assert who.conversation is not None
    return who, secret, who.conversation


@asynccontextmanager
async def watching(
    served: Served, wren: Wren, after: int | None = None, **options: Any
) -> AsyncIterator[ClientConnection]:
    protocols: Any = ["console.v1", f"bearer.{wren[1]}"]
    async with connect(
        served.url, subprotocols=protocols, proxy=None, open_timeout=90, max_size=None, max_queue=None, **options
    ) as client:
        await client.send(json.dumps({"op": "subscribe", "stream": f"conversation:{wren[2]}", "after": after}))
        yield client


async def hear(client: ClientConnection, kind: str) -> dict[str, Any]:
    async with asyncio.timeout(PATIENCE * 3):
        while True:
            frame = json.loads(await client.recv())
            if frame["type"] == kind:
                return frame  # type: ignore[no-any-return]


async def hear_up_to(client: ClientConnection, seq: int) -> list[int]:
    heard: list[int] = []
    while not heard or heard[-1] < seq:
        heard += [event["seq"] for event in (await hear(client, "events"))["events"]]
    return heard


async def tell(wren: Wren, *texts: str) -> None:
    await crossed(say, wren[0], wren[2], *texts, end=False)


async def test_every_watcher_gets_every_event_in_order(served: Served, wren: Wren) -> None:
    async with asyncio.timeout(60), asyncio.TaskGroup() as tasks:

        async def watch() -> list[int]:
            async with watching(served, wren) as client:
                seq = (await hear(client, "snapshot"))["seq"]
                ready.release()
                return [*range(1, seq + 1), *await hear_up_to(client, 60)]

        ready = asyncio.Semaphore(0)
        watchers = [tasks.create_task(watch()) for _ in range(20)]
        for number in range(20):  # some are told while others still join
            if number == 10:
                for _ in watchers:
                    await ready.acquire()
            await tell(wren, f"a {number}", f"b {number}", f"c {number}")
    assert [watcher.result() for watcher in watchers] == [list(range(1, 61))] * 20


async def test_one_that_does_not_read_delays_nobody(served: Served, wren: Wren) -> None:
    narrow = socket.create_connection(("127.0.0.1", int(served.url.split(":")[2].split("/")[0])), timeout=30)
    narrow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 * 1024)
    large = "x" * (WRITE_LIMIT // 2)
    async with watching(served, wren, sock=narrow) as slow, watching(served, wren) as quick:
        await hear(slow, "snapshot")
        await hear(quick, "snapshot")
        slow.transport.pause_reading()
        for number in range(40):  # 5 MB, where the server keeps 256 KiB and the kernel some more
            await tell(wren, large)
            assert await hear_up_to(quick, number + 1) == [number + 1]
        slow.transport.resume_reading()
        async with asyncio.timeout(PATIENCE * 3):
            seen = 0
            while (frame := json.loads(await slow.recv()))["type"] != "snapshot":
                for event in frame.get("events", []):
                    seen += 1
                    assert event["seq"] == seen
        assert seen < 40
        assert frame["seq"] == 40
        await tell(wren, "small")
        assert await hear_up_to(slow, 41) == [41]


async def test_valkey_dies_and_comes_back_while_events_go_on(
    served: Served, wren: Wren, engines: tuple[Valkey, Served]
) -> None:
    async with watching(served, wren) as client:
        await hear(client, "snapshot")
        await tell(wren, "one")
        assert await hear_up_to(client, 1) == [1]
        engines[0].kill()
        await tell(wren, "two")
        assert await hear_up_to(client, 2) == [2]
        engines[0].start()
        await tell(wren, "three")
        assert await hear_up_to(client, 3) == [3]


async def test_postgresql_hangs_up_on_everyone(served: Served, wren: Wren) -> None:
    def hang_up() -> int:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'served'"
            )
            return int(cursor.fetchone()[0])

    async with watching(served, wren) as client:
        await hear(client, "snapshot")
        assert await crossed(hang_up) > 0
        await tell(wren, "one")
        assert await hear_up_to(client, 1) == [1]
        async with watching(served, wren) as newcomer:
            assert (await hear(newcomer, "snapshot"))["seq"] == 1


async def test_a_killed_server_loses_nothing_for_who_asks_again(served: Served, wren: Wren) -> None:
    await tell(wren, "one", "two")
    async with watching(served, wren) as client:
        assert (await hear(client, "snapshot"))["seq"] == 2
        served.end(signal.SIGKILL)
        with pytest.raises(ConnectionClosed):
            await client.recv()
    await tell(wren, "three")
    served.start()
    async with watching(served, wren, after=2) as client:
        assert await hear_up_to(client, 3) == [3]


async def test_what_is_too_large_closes_with_1009(served: Served, wren: Wren) -> None:
    async with watching(served, wren) as client:
        await hear(client, "snapshot")
        with contextlib.suppress(ConnectionClosed):  # it may close before the last byte has left
            await client.send('"' + "x" * LARGEST_FRAME + '"')
        async with asyncio.timeout(PATIENCE):
            await client.wait_closed()
        assert client.close_code == 1009
    async with watching(served, wren) as client:
        await hear(client, "snapshot")
        await client.send('"' + "x" * (LARGEST_FRAME - 2) + '"')
        assert (await hear(client, "error"))["error"]["code"] == "not_understood"


async def test_elsewhere_there_are_no_sockets(served: Served) -> None:
    from websockets.exceptions import InvalidStatus

    with pytest.raises(InvalidStatus) as refused:
        async with connect(served.url.replace("/live/", "/other/"), proxy=None, open_timeout=90):
            pass
    assert refused.value.response.status_code == 403
