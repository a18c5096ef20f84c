"""The listening socket of the web processes: bound by their parent, so that a crashed one comes back on the same
port and several can share it (DESIGN 12)."""

import resource
import socket

from console.embedded import CannotStart

LAST_PORT = 65_535
BACKLOG = 1024  # connections that wait while a web process restarts
OPEN_FILES = 65_536  # descriptors, one for each watcher and then some; the system's own limit may be lower
EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - what a browser here opens instead


def bind(host: str, port: int) -> socket.socket:
    """Listen on that address; port 0 takes a free one. Raises CannotStart."""
    try:
        if not 0 <= port <= LAST_PORT:
            raise OSError(f"a port is a number from 0 to {LAST_PORT}")
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listening = socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        raise CannotStart(
            f"Port {port} on {host} cannot be used ({error.strerror or error}): stop what uses it, or choose another "
            "with --port (0 takes a free one) and --host."
        ) from error
    listening.set_inheritable(True)
    return listening


def address_of(listening: socket.socket) -> str:
    """The URL under which a browser on this machine opens it, with a slash at its end."""
    host, port = listening.getsockname()[:2]
    host = EVERYWHERE.get(host, host)
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


def raise_open_files() -> None:
    """Let this process and its children hold as many sockets as the system allows, up to `OPEN_FILES`."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = OPEN_FILES if hard == resource.RLIM_INFINITY else min(OPEN_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
