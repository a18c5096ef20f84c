"""The web server: Daphne on a socket that its parent bound, with a direct road to each WebSocket (`console.wire`).

Run as `python -m console.server --fd N`. Daphne's and Twisted's internals that the direct road uses are probed for
each connection, and the versions are pinned: where one is missing, the application falls back to `websocket.send`.
"""

import argparse
import logging
import socket
import sys
from collections.abc import Callable
from typing import Any

from daphne.endpoints import build_endpoint_description_strings
from daphne.server import Server
from django.conf import settings
from twisted.internet import tcp

from console.counters import SOCKETS, count_request
from console.wire import BUFFERED, KERNEL_BUFFER, LARGEST_FRAME, WRITE, WRITE_LIMIT, Buffered, Write

logger = logging.getLogger(__name__)


class WireServer(Server):
    """Daphne that adds the keys of `console.wire` to WebSocket scopes."""

    def create_application(self, protocol: Any, scope: dict[str, Any]) -> Any:
        scope["root_path"] = self.root_path  # Daphne would take it from a header that any client may send
        if scope["type"] == "websocket":
            protocol.failByDrop = False  # say 1009 and the like to the client instead of cutting the line
            scope |= _direct_road(protocol)
        return super().create_application(protocol, scope)  # type: ignore[no-untyped-call]

    def log_action(self, protocol: str, action: str, details: dict[str, Any]) -> None:
        """Daphne tells here what happened, static files and refusals of Django's included."""
        match protocol, action:
            case "http", "complete":
                count_request(
                    method=details["method"], status=int(details["status"]), seconds=float(details["time_taken"])
                )
            case "websocket", "connected":
                SOCKETS.inc()
            case "websocket", "disconnected":
                SOCKETS.dec()


def _direct_road(protocol: Any) -> dict[str, Callable[..., object]]:
    """The two functions for this connection, or nothing when Daphne is not as expected."""
    transport: Any = protocol.transport
    # A TLS endpoint of Daphne's own would need its bytes encrypted; TLS belongs to the proxy in front.
    if not isinstance(transport, tcp.Connection) or transport.TLS:
        return {}
    expected: list[tuple[Any, str]] = [
        (protocol, "state"),
        (protocol, "STATE_OPEN"),
        (protocol, "send_queue"),
        (protocol, "autoFragmentSize"),
        (transport, "socket"),
    ]
    expected += [(transport, name) for name in ("dataBuffer", "offset", "_tempDataLen", "connected", "disconnecting")]
    missing = [name for holder, name in expected if not hasattr(holder, name)]
    # A frame must not fall between the pieces of a message that the server sends in pieces.
    if missing or protocol.autoFragmentSize:
        logger.warning("This Daphne lacks %s: frames take the slower road.", missing or "whole messages")
        return {}
    transport.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, KERNEL_BUFFER)
    buffered = _buffered_of(transport)
    return {WRITE: _write_of(protocol, transport, buffered), BUFFERED: buffered}


def _buffered_of(transport: Any) -> Buffered:
    def buffered() -> int:
        waiting: int = len(transport.dataBuffer) - transport.offset + transport._tempDataLen
        return waiting

    return buffered


def _write_of(protocol: Any, transport: Any, buffered: Buffered) -> Write:
    def write(frame: bytes) -> bool:
        if protocol.state != protocol.STATE_OPEN or protocol.send_queue:
            return False
        if not transport.connected or transport.disconnecting:
            return False
        waiting = buffered()
        if waiting > WRITE_LIMIT:
            return False
        sent = 0
        if not waiting:
            # Twisted would register for writability and send a turn later: 3.5 times slower with many watchers.
            try:
                sent = transport.socket.send(frame)
            except BlockingIOError:
                sent = 0
            except OSError:
                return False  # the connection is lost; Twisted notices by itself
        if sent < len(frame):
            transport.write(frame[sent:])
        return True

    return write


def make_server(application: Any, descriptor: int) -> WireServer:
    """A server of that ASGI application on a bound, listening socket; `run` serves until SIGTERM."""
    return WireServer(
        application=application,
        endpoints=build_endpoint_description_strings(file_descriptor=descriptor),
        websocket_max_message_size=LARGEST_FRAME,
        websocket_max_frame_size=LARGEST_FRAME,
        # With TLS declared, a proxy stands in front, and the client's address is what that proxy says.
        proxy_forwarded_address_header="X-Forwarded-For" if settings.TLS else None,
        proxy_forwarded_port_header="X-Forwarded-Port" if settings.TLS else None,
        proxy_forwarded_proto_header="X-Forwarded-Proto" if settings.TLS else None,
        server_name="",
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Serve the console on a bound, listening socket.")
    parser.add_argument("--fd", type=int, required=True, help="its file descriptor")
    options = parser.parse_args()

    from console.asgi import application

    server = make_server(application, options.fd)
    server.run()
    if server.abort_start:
        sys.exit(1)


if __name__ == "__main__":
    main()
