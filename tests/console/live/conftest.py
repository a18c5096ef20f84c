"""A Valkey of a test's own, to be stopped, killed and started again."""

import signal
import subprocess
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from redis import Redis

from console.data import VALKEY_SOCKET, socket_dir
from console.embedded.children import RunAs
from console.embedded.valkey import start_valkey, valkey_child
from console.live import publishing
from console.live.hub import hub
from tests.console.live.peers import Peer, Wire


class Valkey:
    """A server that answers at `url` while it is up."""

    def __init__(self, folder: Path) -> None:
        socket_dir(folder).mkdir(mode=0o700, parents=True)
        self.url = f"unix://{socket_dir(folder) / VALKEY_SOCKET}"
        self._child = valkey_child(folder, RunAs())
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self._process = start_valkey(self._child, self.url)

    def kill(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)
        self._process.kill()
        self._process.wait()

    def hang(self) -> None:
        """It holds its connections and answers nobody."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def client(self) -> Redis:
        client: Redis = Redis.from_url(self.url)
        return client


@contextmanager
def running_valkey() -> Iterator[Valkey]:
    with tempfile.TemporaryDirectory(prefix="live-") as folder:
        server = Valkey(Path(folder))
        server.start()
        try:
            yield server
        finally:
            server.kill()


@contextmanager
def used(server: Valkey, settings: Any) -> Iterator[Valkey]:
    """This process publishes to that server and listens there."""
    settings.REDIS_URL = server.url
    settings.CHANNEL_LAYERS = {
        "default": {
            **settings.CHANNEL_LAYERS["default"],
            "CONFIG": {"hosts": [{"address": server.url, "socket_timeout": None}]},
        }
    }
    publishing.forget_failures()
    try:
        yield server
    finally:
        publishing.forget_failures()


@pytest.fixture
def valkey(settings: Any) -> Iterator[Valkey]:
    with running_valkey() as server, used(server, settings):
        yield server


type Connect = Callable[..., Awaitable[Peer]]


@pytest_asyncio.fixture
async def connect(transactional_db: None) -> AsyncIterator[Connect]:
    """Opens sockets to the application; at the end they leave and the hub stops."""
    peers: list[Peer] = []

    async def opened(
        token: str | None = None, headers: list[tuple[bytes, bytes]] | None = None, wire: Wire | None = None
    ) -> Peer:
        peer = Peer(token=token, headers=headers, wire=wire)
        accepted, answer = await peer.connect()
        assert accepted, answer
        peers.append(peer)
        return peer

    yield opened
    for peer in peers:
        await peer.leave()
    await hub().stop()
