"""The embedded Valkey: a child without persistence, since the database is the truth. Unix socket only."""

import os
import signal
import subprocess
import time
from pathlib import Path

from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry

from console.data import VALKEY_SOCKET, socket_dir
from console.embedded.children import Child, RunAs, last_lines, start_child, wait_until_silent
from console.embedded.errors import CannotStart
from console.embedded.programs import valkey_server

READY_SECONDS = 20.0
PING_SECONDS = 2.0


def valkey_child(data: Path, run_as: RunAs) -> Child:
    """The server in the foreground."""
    folder = socket_dir(data)
    options = {
        "port": "0",
        "unixsocket": str(folder / VALKEY_SOCKET),
        "unixsocketperm": "700",
        "save": "",
        "appendonly": "no",
        "daemonize": "no",
        "dir": str(folder),
    }
    words = [word for name, value in options.items() for word in (f"--{name}", value)]
    return Child(
        name="valkey",
        program=(str(valkey_server()), *words),
        log=data / "logs" / "valkey.log",
        folder=folder,
        environment=lambda: {"PATH": os.defpath, "LC_ALL": "C"},
        stops=((signal.SIGTERM, 3.0),),
        run_as=run_as,
    )


def start_valkey(child: Child, url: str) -> subprocess.Popen[bytes]:
    """Start it and wait until it answers. Raises CannotStart with the end of its log."""
    wait_until_silent(child.name, lambda: _answers(url))
    began = time.monotonic()
    process = start_child(child)
    while not _answers(url):
        if process.poll() is not None:
            raise CannotStart(f"Valkey ended with {process.returncode}: {last_lines(child.log)}\nLog: {child.log}")
        if time.monotonic() - began > READY_SECONDS:
            process.kill()
            process.wait()
            raise CannotStart(f"Valkey did not answer within {READY_SECONDS:.0f} s. Log: {child.log}")
        time.sleep(0.02)
    return process


def ask(url: str, seconds: float) -> None:
    """One PING, tried once. Raises RedisError, OSError, or ValueError for a URL that is none."""
    # The client's default tries three times with rests between: three seconds for a server that is simply not there.
    once = Retry(NoBackoff(), 0)
    with Redis.from_url(url, retry=once, socket_timeout=seconds, socket_connect_timeout=seconds) as client:
        client.ping()


def _answers(url: str) -> bool:
    try:
        ask(url, PING_SECONDS)
    except (RedisError, OSError):
        return False
    return True
